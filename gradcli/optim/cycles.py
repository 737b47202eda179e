"""Schedules whose rates rise and fall: `OneCycleLR CosineAnnealingWarmRestarts`."""

from __future__ import annotations

import math
from typing import Any

from gradcli.errors import GradcliError
from gradcli.ops.catalogue import modules
from gradcli.optim.optimizer import Group, Optimizer
from gradcli.optim.schedules import LRScheduler, check_optimizer


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine wave down to `eta_min`, again and again, each `T_mult` times as long."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise GradcliError("E204", f"T_0 has to be a positive integer, and is {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise GradcliError("E204", f"T_mult has to be a positive integer, and is {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch."""
        if epoch is not None:
            raise GradcliError("E205", "CosineAnnealingWarmRestarts cannot jump to an epoch")
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        super().step()

    def rate(self, group: Group, base: float) -> float:
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return self.eta_min + (base - self.eta_min) * wave / 2


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _linear(start: float, end: float, part: float) -> float:
    return (end - start) * part + start


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
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise GradcliError("E204", "OneCycleLR() needs total_steps")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise GradcliError("E204", f"total_steps has to be positive, and is {total_steps}")
        if not 0 <= pct_start <= 1:
            raise GradcliError("E204", f"pct_start has to be from 0 to 1, and is {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise GradcliError("E204", f"anneal_strategy is 'cos' or 'linear': {anneal_strategy!r}")
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        rising = float(pct_start * total_steps) - 1
        self._phases = [(rising, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            falling = float(2 * pct_start * total_steps) - 2
            self._phases += [
                (falling, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._phases.append(
                (total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
            )
        self.cycle_momentum = cycle_momentum
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise GradcliError("E204", "cycle_momentum needs an optimizer with momentum")
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, largest in zip(groups, _for_each("max_lr", max_lr, groups), strict=True):
                group["initial_lr"] = largest / div_factor
                group["max_lr"] = largest
                group["min_lr"] = group["initial_lr"] / final_div_factor
            if cycle_momentum:
                most = _for_each("max_momentum", max_momentum, groups)
                least = _for_each("base_momentum", base_momentum, groups)
                for group, high, low in zip(groups, most, least, strict=True):
                    _set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        step = self.last_epoch
        if step > self.total_steps:
            raise GradcliError("E204", f"the cycle of {self.total_steps} steps is over")
        start = 0.0
        phase = self._phases[-1]
        for earlier in self._phases[:-1]:
            if step <= earlier[0]:
                phase = earlier
                break
            start = earlier[0]
        end, *names = phase
        between = _cosine if self.anneal_strategy == "cos" else _linear
        part = (step - start) / (end - start)
        first, last, momentum_first, momentum_last = (group.get(name, 0.0) for name in names)
        if self.cycle_momentum:
            _set_momentum(group, between(momentum_first, momentum_last, part))
        return between(first, last, part)


def _for_each(name: str, value: Any, groups: list[Group]) -> list[float]:
    """A setting for each group: the same one, or its own."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise GradcliError(
            "E204", f"{len(groups)} of {name} are needed, and there are {len(value)}"
        )
    return list(value)


def _set_momentum(group: Group, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


for _kind in (CosineAnnealingWarmRestarts, OneCycleLR):
    _kind.language_name = f"torch.optim.lr_scheduler.{_kind.__name__}"
    modules["torch.optim.lr_scheduler"][_kind.__name__] = _kind
