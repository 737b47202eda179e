"""Schedules whose rates rise and fall: `CosineAnnealingWarmRestarts CyclicLR OneCycleLR`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.nn.attributes import shown
from gradcli.library.torch.optim.optimizer import Group, Optimizer
from gradcli.library.torch.optim.schedules import (
    LRScheduler,
    check_optimizer,
    check_strategy,
    for_each,
    set_rate,
)
from gradcli.ops.codegen.runtime import type_name


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine wave down to `eta_min`, again and again, each `T_mult` times as long.

    Example:
        torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(torch.optim.SGD([tensor(1.)],
            lr=0.1), 2)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise value_error(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise value_error(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            kind = "torch.Tensor" if isinstance(eta_min, Tensor) else type_name(eta_min)
            raise value_error(
                f"Expected float or int eta_min, but got {shown(eta_min)} of type <class '{kind}'>"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch, or of the one given, which may be between two."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise value_error(f"an epoch is 0 or more, and not {epoch}")
        else:
            self._find_wave(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        rates = self.get_lr()
        self._get_lr_called_within_step = False
        self.set_rates(rates)

    def _find_wave(self, epoch: float) -> None:
        """Find the wave that an epoch is in, and where in it."""
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            waves = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            before = self.T_0 * (self.T_mult**waves - 1) / (self.T_mult - 1)
            self.T_cur = epoch - before
            self.T_i = self.T_0 * self.T_mult**waves

    def rate(self, group: Group, base: float) -> float:
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return self.eta_min + (base - self.eta_min) * wave / 2


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _linear(start: float, end: float, part: float) -> float:
    return (end - start) * part + start


_NO_STEPS = "You must define either total_steps OR (epochs AND steps_per_epoch)"


class OneCycleLR(LRScheduler):
    """The rate rises to `max_lr` and falls to almost nothing; momentum goes the other way.

    Args:
        optimizer: whose rates it sets.
        max_lr: the largest rate, or one for each group.
        total_steps: how many steps there are; `epochs` times `steps_per_epoch` otherwise.
        pct_start: the part of the steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether momentum, or the first of the betas, is set as well.
        base_momentum, max_momentum: its bounds, or those of each group.
        div_factor: the first rate is `max_lr` over this.
        final_div_factor: the last rate is the first over this.
        three_phase: whether the rate falls to the first one before it vanishes.

    Example:
        torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD([tensor(1.)], lr=0.1), max_lr=1.,
            total_steps=10)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        total_steps = _steps_of(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise value_error(
                f"Expected float between 0 and 1 pct_start, but got {shown(pct_start)}"
            )
        check_strategy(anneal_strategy)
        self.optimizer = optimizer
        self.total_steps = total_steps
        rising = float(pct_start * total_steps) - 1
        self._schedule_phases = [
            _phase(rising, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        ]
        if three_phase:
            falling = float(2 * pct_start * total_steps) - 2
            self._schedule_phases += [
                _phase(falling, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                _phase(total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._schedule_phases.append(
                _phase(total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
            )
        self._anneal_func_type = anneal_strategy
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, largest in zip(groups, for_each("max_lr", max_lr, groups), strict=True):
                group["initial_lr"] = largest / div_factor
                group["max_lr"] = largest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _has_betas(optimizer)
            most = for_each("max_momentum", max_momentum, groups)
            least = for_each("base_momentum", base_momentum, groups)
            if last_epoch == -1:
                _begin_momentum(groups, most, least)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        step = self.last_epoch
        if step > self.total_steps:
            raise value_error(
                f"the cycle of {self.total_steps} steps is over",
                text=f"Tried to step {step} times. The specified number of total steps is"
                f" {self.total_steps}",
            )
        start = 0.0
        phase = self._schedule_phases[-1]
        for earlier in self._schedule_phases[:-1]:
            if step <= earlier["end_step"]:
                phase = earlier
                break
            start = earlier["end_step"]
        end, *names = phase.values()
        between = _cosine if self._anneal_func_type == "cos" else _linear
        part = (step - start) / (end - start)
        if names[0] not in group:
            raise GradcliError("E207", f"a group that was added later has no {names[0]!r}")
        if self.cycle_momentum:
            _set_momentum(group, between(group[names[2]], group[names[3]], part))
        return between(group[names[0]], group[names[1]], part)


def _steps_of(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    """How many steps a cycle has; raises E204 for what is no positive integer."""
    counts = {"total_steps": total_steps}
    if total_steps is None:
        if epochs is None or steps_per_epoch is None:
            raise value_error(_NO_STEPS)
        counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, count in counts.items():
        _check_count(name, count)
    return math.prod(counts.values())


def _check_count(name: str, count: Any) -> None:
    """Raise E204 unless a number of steps is a positive integer."""
    if not isinstance(count, int) or count <= 0:
        raise value_error(f"Expected positive integer {name}, but got {shown(count)}")


def _phase(end: float, *names: str) -> dict[str, Any]:
    """A phase: its last step, and the settings of a group that it goes between."""
    keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return dict(zip(keys, (end, *names), strict=True))


class CyclicLR(LRScheduler):
    """The rate goes up and down between two bounds; momentum goes the other way.

    Args:
        optimizer: whose rates it sets.
        base_lr, max_lr: the bounds, or those of each group.
        step_size_up, step_size_down: how many steps it takes to go up, and down.
        mode: "triangular" for waves of one height, "triangular2" for each half as high as the one
            before, "exp_range" for heights that fall by `gamma` with every step.
        scale_fn: a height of the program's own, of the cycle's number or the step's.
        scale_mode: "cycle" or "iterations": which of them `scale_fn` gets.
        cycle_momentum: whether momentum, or the first of the betas, is set as well.
        base_momentum, max_momentum: its bounds, or those of each group.

    Example:
        torch.optim.lr_scheduler.CyclicLR(torch.optim.SGD([tensor(1.)], lr=0.1), 0.01, 0.1,
            cycle_momentum=False)
    """

    may_raise = False

    _functions_of_program = frozenset({"_scale_fn_custom"})

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        groups = optimizer.param_groups
        base_lrs = for_each("base_lr", base_lr, groups)
        if last_epoch == -1:
            for group, rate in zip(groups, base_lrs, strict=True):
                set_rate(group, rate)
        self.max_lrs = for_each("max_lr", max_lr, groups)
        down = float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = float(step_size_up) + down
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise value_error(
                f"there is no mode {mode!r}", text="mode is invalid and scale_fn is None"
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _has_betas(optimizer)
            self.base_momentums = for_each("base_momentum", base_momentum, groups)
            self.max_momentums = for_each("max_momentum", max_momentum, groups)
            if last_epoch == -1:
                _begin_momentum(groups, self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def get_lr(self) -> list[float]:
        """The rates of the step `last_epoch`; sets momentum too."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        part = 1.0 + self.last_epoch / self.total_size - cycle
        if part <= self.step_ratio:
            height = part / self.step_ratio
        else:
            height = (part - 1) / (self.step_ratio - 1)
        scale = self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _set_momentum(group, high - (high - low) * height * scale)
        return [
            low + (high - low) * height * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def _scale(self, number: int) -> float:
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(number)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (number - 1))
        return self.gamma**number if self.mode == "exp_range" else 1.0

    def _saved(self) -> dict[str, Any]:
        saved = super()._saved()
        del saved["_scale_fn_custom"]
        return {**saved, "_scale_fn_custom": None}


def _has_betas(optimizer: Optimizer) -> bool:
    """Whether momentum is the first of the betas; raises E204 where there is no momentum."""
    if not {"momentum", "betas"} & set(optimizer.defaults):
        raise value_error(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def _begin_momentum(groups: list[Group], most: list[float], least: list[float]) -> None:
    """Set momentum to its upper bound, and note both bounds in the groups."""
    for group, high, low in zip(groups, most, least, strict=True):
        _set_momentum(group, high)
        group["max_momentum"] = high
        group["base_momentum"] = low


def _set_momentum(group: Group, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
