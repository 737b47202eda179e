"""`torch.optim.lr_scheduler`: learning rates that change from epoch to epoch.

A schedule is made for an optimiser, sets the rates of epoch 0 at once, and those of the next epoch
at each `step()`. Most derive a rate from the one before, as PyTorch does, so that a program may
change it in between.

Others go by a measure of the program or are composed: `ReduceLROnPlateau SequentialLR
ChainedScheduler`.

The rates of `CosineAnnealingWarmRestarts CyclicLR OneCycleLR` rise and fall.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.language.objects.classes.extensible import Extensible, store_value, stored_value
from gradcli.language.objects.counters import Counter
from gradcli.library.torch.nn.attributes import kind_of, names, shown
from gradcli.library.torch.optim.optimizer import Group, Optimizer
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import methods
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.copies import clone
from gradcli.state import active


def check_optimizer(optimizer: Any, raises: str | None = None) -> None:
    """Raise E202 for what is no optimiser, as the class that PyTorch raises."""
    if not isinstance(optimizer, Optimizer):
        raise GradcliError(
            "E202",
            f"a schedule is for an optimizer, not {kind_of(optimizer)}",
            text=f"{type(optimizer).__name__} is not an Optimizer",
            raises=raises,
        )


def apart(rate: Any) -> Any:
    """A rate that later writes to a tensor rate leave as it is."""
    return clone(rate) if isinstance(rate, Tensor) else rate


def for_each(name: str, value: Any, groups: list[Group]) -> list[float]:
    """A setting for each group: the same one, or its own; of a tensor a copy, as a rate is written
    to.
    """
    values = value if isinstance(value, (list, tuple)) else [value] * len(groups)
    if len(values) != len(groups):
        raise value_error(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(values)}"
            f" values, param_groups has {len(groups)}."
        )
    return [apart(each) for each in values]


def check_strategy(anneal_strategy: Any) -> None:
    """Raise E204 for what is no way from one rate to another."""
    if anneal_strategy not in ("cos", "linear"):
        raise value_error(
            f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
        )


def set_rate(group: Group, rate: Any) -> None:
    """Give a group its rate: a rate that is a tensor stays that tensor, and is written to."""
    if isinstance(group["lr"], Tensor):
        methods.fill_(group["lr"], rate.item() if isinstance(rate, Tensor) else rate)
    else:
        group["lr"] = rate


def rates_of(optimizer: Optimizer) -> list[Any]:
    """The rates of an optimizer's groups now."""
    return [apart(group["lr"]) for group in optimizer.param_groups]


class LRScheduler(Extensible):
    """The base of all schedules; a subclass computes the next rate.

    Attributes:
        optimizer: whose rates it sets.
        base_lrs: the rates that its groups began with.
        last_epoch: the epoch whose rates are set now.

    The underscored attributes stand in `state_dict()` under PyTorch's names.
    """

    home = "torch.optim.lr_scheduler"
    tables = ("torch.optim.lr_scheduler",)
    language_attributes: ClassVar[frozenset[str]] = names(
        "base_lrs get_last_lr get_lr last_epoch load_state_dict optimizer state_dict step"
    )
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"base_lrs", "last_epoch"})

    may_raise: ClassVar[bool] = True
    """Whether a step may raise at some epoch; functions of the program always may."""

    _get_lr_called_within_step = False

    _functions_of_program: ClassVar[frozenset[str]] = frozenset()
    """Attributes that `state_dict()` does not keep."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        optimizer.stepped = bool(optimizer.stepped)
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", apart(group["lr"]))
            elif "initial_lr" not in group:
                raise GradcliError("E207", "a group has no 'initial_lr' to go on from")
        self.base_lrs: list[float] = [
            apart(group["initial_lr"]) for group in optimizer.param_groups
        ]
        self.last_epoch = last_epoch
        self.begin()

    def begin(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def rate(self, group: Group, base: float) -> float:
        """The rate of the epoch `last_epoch` for a group whose rate is `group["lr"]`."""
        raise NotImplementedError

    def rate_at(self, base: float) -> float:
        """The rate of an epoch in closed form, for a jump to it, where there is one."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """The rates of the epoch `last_epoch`, one for each group."""
        if not self._get_lr_called_within_step:
            message = "`get_lr()` computes the rates of the next step"
            active.state.warn("W015", message, text=_LAST, help="write `get_last_lr()`")
        groups = self.optimizer.param_groups
        bases = [*self.base_lrs, *(group["lr"] for group in groups[len(self.base_lrs) :])]
        return [self.rate(group, base) for group, base in zip(groups, bases, strict=False)]

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, or of the one given."""
        if self._step_count == 1:
            self._check_order()
        warn_of_epoch(epoch)
        self._step_count += 1
        self.move(epoch)

    def _check_order(self) -> None:
        """Warn (W026) where the optimizer has taken no step before the schedule's first one."""
        optimizer = self.optimizer
        if "step" in optimizer.values:
            message = "the optimizer's `step` was replaced after the schedule was made"
            active.state.warn("W026", message, text=_REPLACED)
        elif not optimizer.stepped and type(optimizer).__module__.startswith(
            "gradcli.library.torch.optim."
        ):
            message = "the schedule steps before its optimizer, which misses the first rate"
            help = "call `step()` of the optimizer first"
            active.state.warn("W026", message, text=_TOO_EARLY, help=help)

    def move(self, epoch: int | None = None) -> None:
        """Go to the next epoch or to another one, without counting a step."""
        self._get_lr_called_within_step = True
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if epoch is None or type(self).rate_at is LRScheduler.rate_at:
            rates = self.get_lr()
        else:
            rates = [self.rate_at(base) for base in self.base_lrs]
        self._get_lr_called_within_step = False
        self.set_rates(rates)

    def set_rates(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            set_rate(group, rate)
        self._last_lr = rates_of(self.optimizer)

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, one for each group."""
        return self._last_lr

    def _saved(self) -> dict[str, Any]:
        unsaved = {"optimizer", *self.all_fields}
        own = {name: value for name, value in vars(self).items() if name not in unsaved}
        return {**self.values, **own}

    def state_dict(self) -> dict[str, Any]:
        """The state that a later run needs to continue."""
        return self._saved()

    def language_getattr(self, name: str) -> Any:
        """A setting, under the name that it has in PyTorch, or what the program stored."""
        is_own = name in vars(self) and name not in self.all_fields
        return vars(self)[name] if is_own else stored_value(self, name)

    def language_setattr(self, name: str, value: Any) -> None:
        """Change a setting, or store a value."""
        if name in vars(self) and name not in self.all_fields:
            setattr(self, name, value)
        else:
            store_value(self, name, value)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned; raises E207 for a key of another schedule."""
        if not isinstance(state_dict, dict):
            raise type_error(f"load_state_dict() takes a dict, not {kind_of(state_dict)}")
        known = self._saved()
        for name, value in state_dict.items():
            if name not in known:
                raise GradcliError("E207", f"the schedule has no {name!r}")
            if name in self.values:
                self.values[name] = value
            elif name not in self._functions_of_program:
                setattr(self, name, value)


class _LRScheduler(LRScheduler):
    """The name that the base had before: programs derive their schedules from it."""

    language_name = "torch.optim.lr_scheduler._LRScheduler"


modules["torch.optim.lr_scheduler"]["_LRScheduler"] = _LRScheduler


EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where"
    " possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if"
    " epoch is different from None, the closed form is used instead of the new chainable form,"
    " where available. Please open an issue if you are unable to replicate your use case:"
    " https://github.com/pytorch/pytorch/issues/new/choose."
)

modules["torch.optim.lr_scheduler"]["EPOCH_DEPRECATION_WARNING"] = EPOCH_DEPRECATION_WARNING

_SEE = " See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later,"
    " you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`."
    "  Failure to do this will result in PyTorch skipping the first value of the learning rate"
    f" schedule.{_SEE}"
)
_REPLACED = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler"
    " initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`."
    f"{_SEE}"
)
_LAST = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."


def warn_of_epoch(epoch: Any) -> None:
    """Warn (W015) of an epoch that is given to `step`."""
    if epoch is not None:
        message = "the epoch of `scheduler.step(epoch)` is deprecated"
        active.state.warn(
            "W015", message, text=EPOCH_DEPRECATION_WARNING, help="write `scheduler.step()`"
        )


def _held_by(function: Any) -> dict[str, Any] | None:
    """What an object of the program that is called as a function holds, None for a function."""
    held = getattr(function, "values", None)
    return held if isinstance(held, dict) else None


def _functions(lr_lambda: Any, optimizer: Optimizer) -> list[Callable[[int], float]]:
    count = len(optimizer.param_groups)
    if not isinstance(lr_lambda, (list, tuple)):
        return [lr_lambda] * count
    if len(lr_lambda) != count:
        raise value_error(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
    return list(lr_lambda)


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch.

    Example:
        torch.optim.lr_scheduler.LambdaLR(torch.optim.SGD([tensor(1.)], lr=0.1), lambda epoch: 0.9)
    """

    _functions_of_program = frozenset({"lr_lambdas"})

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        # PyTorch counts the groups before it checks the type.
        check_optimizer(optimizer, "AttributeError")
        self.lr_lambdas = _functions(lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def _function(self, group: Group) -> Callable[[int], float]:
        groups = self.optimizer.param_groups
        return next(f for f, other in zip(self.lr_lambdas, groups, strict=True) if other is group)

    def rate(self, group: Group, base: float) -> float:
        return base * self._function(group)(self.last_epoch)

    def _saved(self) -> dict[str, Any]:
        saved = super()._saved()
        del saved["lr_lambdas"]
        kept = [_held_by(each) for each in self.lr_lambdas]
        return {**saved, "lr_lambdas": [None if held is None else dict(held) for held in kept]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for each, kept in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            held = _held_by(each)
            if held is not None and kept is not None:
                held.update(kept)


class MultiplicativeLR(LambdaLR):
    """The rate before times a function of the epoch.

    Example:
        torch.optim.lr_scheduler.MultiplicativeLR(torch.optim.SGD([tensor(1.)], lr=0.1),
            lambda epoch: 0.9)
    """

    def rate(self, group: Group, base: float) -> float:
        return (
            group["lr"]
            if self._is_initial
            else group["lr"] * self._function(group)(self.last_epoch)
        )


class StepLR(LRScheduler):
    """The rate times gamma, every `step_size` epochs.

    Example: torch.optim.lr_scheduler.StepLR(torch.optim.SGD([tensor(1.)], lr=0.1), 2)
    """

    may_raise = False

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return group["lr"]
        return group["lr"] * self.gamma

    def rate_at(self, base: float) -> float:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the epochs `milestones`.

    Example: torch.optim.lr_scheduler.MultiStepLR(torch.optim.SGD([tensor(1.)], lr=0.1), [1, 2])
    """

    may_raise = False

    def __init__(
        self, optimizer: Optimizer, milestones: Any, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        times = self.milestones[self.last_epoch]
        return group["lr"] * self.gamma**times if times else group["lr"]

    def rate_at(self, base: float) -> float:
        passed = sum(times for each, times in self.milestones.items() if each <= self.last_epoch)
        return base * self.gamma**passed


class ConstantLR(LRScheduler):
    """The rate times a factor until an epoch, then the rate itself.

    Example: torch.optim.lr_scheduler.ConstantLR(torch.optim.SGD([tensor(1.)], lr=0.1), 0.9)
    """

    may_raise = False

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise value_error(f"factor has to be from 0 to 1, and is {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        if self.last_epoch == 0:
            return group["lr"] * self.factor
        if self.last_epoch != self.total_iters:
            return group["lr"]
        return group["lr"] * (1.0 / self.factor)

    def rate_at(self, base: float) -> float:
        return base * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor))


class LinearLR(LRScheduler):
    """The rate times a factor that goes evenly from one number to another.

    Example: torch.optim.lr_scheduler.LinearLR(torch.optim.SGD([tensor(1.)], lr=0.1), 0.9)
    """

    may_raise = False

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise value_error(f"start_factor has to be in (0, 1], and is {start_factor}")
        if not 0 <= end_factor <= 1:
            raise value_error(f"end_factor has to be from 0 to 1, and is {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        if self.last_epoch == 0:
            return group["lr"] * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return group["lr"]
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return group["lr"] * (1.0 + change / before)

    def rate_at(self, base: float) -> float:
        change = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return base * (self.start_factor + change * done / self.total_iters)


class ExponentialLR(LRScheduler):
    """The rate times gamma, every epoch.

    Example: torch.optim.lr_scheduler.ExponentialLR(torch.optim.SGD([tensor(1.)], lr=0.1), 0.9)
    """

    may_raise = False

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        return group["lr"] if self._is_initial else group["lr"] * self.gamma

    def rate_at(self, base: float) -> float:
        return base * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """The rate falls to 0 as a power of the epochs that are left.

    Example: torch.optim.lr_scheduler.PolynomialLR(torch.optim.SGD([tensor(1.)], lr=0.1), 2)
    """

    may_raise = False

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return group["lr"]
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return group["lr"] * (now / before) ** self.power

    def rate_at(self, base: float) -> float:
        done = min(self.total_iters, self.last_epoch)
        return base * (1.0 - done / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """The rate follows half a cosine wave down to `eta_min`, in `T_max` epochs.

    Example: torch.optim.lr_scheduler.CosineAnnealingLR(torch.optim.SGD([tensor(1.)], lr=0.1), 2)
    """

    may_raise = False

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, group: Group, base: float) -> float:
        if self._is_initial:
            return group["lr"]
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
            return group["lr"] + rise
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return now / before * (group["lr"] - self.eta_min) + self.eta_min

    def rate_at(self, base: float) -> float:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return self.eta_min + (base - self.eta_min) * wave / 2


# --- by a measure, or of other schedules ----------------------------------------------------------


class ReduceLROnPlateau(LRScheduler):
    """Lowers the rates when a measure, such as the loss, has stopped improving.

    Args:
        optimizer: whose rates it sets.
        mode: "min" where less is better, "max" where more is.
        factor: what the rates are multiplied by.
        patience: how many epochs without improvement are borne.
        threshold: by how much a measure has to be better to count.
        threshold_mode: "rel" for a part of the best one, "abs" for a number.
        cooldown: how many epochs after lowering are not judged.
        min_lr: the least rate, or one for each group.
        eps: the least change of a rate that is made.

    Example: torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([tensor(1.)], lr=0.1))
    """

    may_raise = False

    language_attributes: ClassVar[frozenset[str]] = LRScheduler.language_attributes | {
        "best",
        "num_bad_epochs",
    }

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise value_error("Factor should be < 1.0.")
        check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise value_error(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise value_error(f"threshold_mode is 'rel' or 'abs', not {threshold_mode!r}")
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        if len(self.min_lrs) != count:
            raise value_error(f"{count} least rates are needed, and there are {len(self.min_lrs)}")
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = rates_of(optimizer)
        self.mode_worse = float("inf") if mode == "min" else float("-inf")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def _is_better(self, value: float) -> bool:
        margin = self.threshold
        if self.threshold_mode == "rel":
            if self.mode == "min":
                return value < self.best * (1.0 - margin)
            return value > self.best * (margin + 1.0)
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Judge the measure of an epoch, and lower the rates if it is time."""
        value = float(metrics)
        warn_of_epoch(epoch)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._lower()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = rates_of(self.optimizer)

    def _lower(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise runtime_error(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from"
                    f" when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due"
                    " to a new param group being added to the optimizer. Please modify the"
                    " `min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_rate(group, new)


class _Combined(LRScheduler):
    """The base of both: the schedules and their states.

    Attributes:
        parts: the schedules.
    """

    parts: list[LRScheduler]

    def _saved(self) -> dict[str, Any]:
        saved = super()._saved()
        del saved["parts"]
        return {**saved, "_schedulers": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, with the states of the schedules."""
        own = {name: value for name, value in state_dict.items() if name != "_schedulers"}
        super().load_state_dict(own)
        for part, saved in zip(self.parts, state_dict["_schedulers"], strict=True):
            part.load_state_dict(saved)


def _check_parts(parts: Any, optimizer: Optimizer | None) -> Optimizer:
    """The optimiser that all schedules are for.

    Raises E202 for what is no schedule, E204 for none at all, for one driven by measures, and
    for schedules of several optimisers.
    """
    if not parts:
        raise value_error("SequentialLR expects at least one scheduler, but got no scheduler.")
    for part in parts:
        if not isinstance(part, LRScheduler):
            raise type_error(f"a list of schedules is needed, and has {kind_of(part)}")
        optimizer = optimizer or part.optimizer
        if isinstance(part, ReduceLROnPlateau):
            raise value_error("ReduceLROnPlateau cannot be one of several schedules")
        if part.optimizer is not optimizer:
            raise value_error("the schedules are for different optimizers")
    assert optimizer is not None
    return optimizer


class SequentialLR(_Combined):
    """Schedules one after the other: the next one starts at each of the epochs `milestones`.

    Example:
        s = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([tensor(1.)], lr=0.1), 2)
        torch.optim.lr_scheduler.SequentialLR(s.optimizer, [s], [])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        _check_parts(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise value_error(
                f"{len(schedulers)} schedules need {len(schedulers) - 1} milestones, and there are"
                f" {len(milestones)}"
            )
        self.parts = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first.begin()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch by the schedule whose turn it is."""
        if epoch is not None:
            raise GradcliError("E201", "SequentialLR.step() takes no epoch")
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        part = self.parts[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            part.move(0)
        else:
            part.step()
        self._last_lr = part.get_last_lr()


def _undo(schedule: LRScheduler) -> None:
    """Undo the first step of each schedule that this one combines."""
    if isinstance(schedule, _Combined):
        for part in schedule.parts:
            _undo(part)
    else:
        schedule.last_epoch -= 1


class ChainedScheduler(_Combined):
    """Schedules that all take each step, one on top of the other.

    Example:
        s = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([tensor(1.)], lr=0.1), 2)
        torch.optim.lr_scheduler.ChainedScheduler([s])
    """

    def __init__(self, schedulers: Any, optimizer: Optimizer | None = None) -> None:
        self.optimizer = _check_parts(schedulers, optimizer)
        self.parts = list(schedulers)
        self._last_lr = rates_of(self.optimizer)

    def step(self, epoch: int | None = None) -> None:
        """Let every schedule take a step."""
        if epoch is not None:
            raise GradcliError("E201", "ChainedScheduler.step() takes no epoch")
        for part in self.parts:
            part.step()
        self._last_lr = rates_of(self.optimizer)


# --- rates that rise and fall ---------------------------------------------------------------------


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
        if not isinstance(count, int) or count <= 0:
            raise value_error(f"Expected positive integer {name}, but got {shown(count)}")
    return math.prod(counts.values())


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
