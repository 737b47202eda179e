"""A schedule driven by a measure of the program, such as the loss: `ReduceLROnPlateau`."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.errors import runtime_error, value_error
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
