"""Schedules composed of other schedules: `SequentialLR ChainedScheduler`."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.library.torch.optim.plateau import ReduceLROnPlateau
from gradcli.library.torch.optim.schedules import LRScheduler, rates_of, set_rate


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
