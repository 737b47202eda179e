"""Schedules driven by a measure of the program or composed of other schedules: `ReduceLROnPlateau
SequentialLR ChainedScheduler`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, ClassVar

from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.library.torch.optim.schedules import (
    LRScheduler,
    check_optimizer,
    rates_of,
    set_rate,
    warn_of_epoch,
)


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
