"""`torch.optim.swa_utils`: averages of a model's parameters over its training.

`AveragedModel update_bn SWALR`, and the functions that average.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.library.copy import clone
from gradcli.library.torch.nn.attributes import shown
from gradcli.library.torch.nn.layers.normalisation import BatchNorm
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.library.torch.optim.optimizer import Group, Optimizer
from gradcli.library.torch.optim.schedules import (
    LRScheduler,
    check_optimizer,
    check_strategy,
    for_each,
)
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.copies import copy_, detach

_MODULE = "torch.optim.swa_utils"

Average = Callable[[Tensor, Tensor, Any], Any]
Averages = Callable[[list[Tensor], list[Tensor], Any], Any]

_plus, _times, _over = operators.add, operators.mul, operators.truediv


@function(module=_MODULE)
def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The function that gives the exponential moving average of a parameter.

    Example: torch.optim.swa_utils.get_ema_avg_fn(0.9)(tensor(1.), tensor(2.), 1)
    """
    if not 0 <= decay <= 1:
        raise value_error(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        with NoGrad():
            return _plus(_times(decay, ema_param), _times(1 - decay, current_param))

    return ema_update


@function(module=_MODULE)
def get_swa_avg_fn() -> Average:
    """The function that gives the mean of a parameter over its updates.

    Example: torch.optim.swa_utils.get_swa_avg_fn()(tensor(1.), tensor(2.), 1)
    """

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        with NoGrad():
            change = _over(current_param - averaged_param, _plus(num_averaged, 1))
            return _plus(averaged_param, change)

    return swa_update


def _each(weight_of: Callable[[Any], float], other: Average) -> Averages:
    """A function that moves each of a list of parameters towards the current one: by a share that
    the number of updates gives, integers as `other` does.
    """

    def update(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        with NoGrad():
            for average, parameter in zip(averaged, current, strict=True):
                if average.dtype.category in ("float", "complex"):
                    methods.lerp_(average, parameter, weight_of(num_averaged))
                else:
                    copy_(average, other(average, parameter, num_averaged))

    return update


@function(module=_MODULE)
def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """The function that gives lists of parameters their exponential moving averages.

    Example: torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)([tensor(1.)], [tensor(2.)], 1)
    """
    return _each(lambda number: 1 - decay, get_ema_avg_fn(decay))


@function(module=_MODULE)
def get_swa_multi_avg_fn() -> Averages:
    """The function that gives lists of parameters their means over the updates.

    Example: torch.optim.swa_utils.get_swa_multi_avg_fn()([tensor(1.)], [tensor(2.)], 1)
    """
    return _each(lambda number: 1 / (float(number) + 1), get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    Args:
        model: the model.
        device: where the averages are kept.
        avg_fn: gives the average of one parameter; the mean by default.
        multi_avg_fn: changes a list of averages instead.
        use_buffers: whether buffers are averaged too, and not only copied.

    Example: torch.optim.swa_utils.AveragedModel(nn.Linear(2, 1)).n_averaged
    """

    language_name = f"{_MODULE}.AveragedModel"
    language_attributes: ClassVar[frozenset[str]] = Module.language_attributes | {
        "update_parameters"
    }

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        check_module("AveragedModel", model)
        if avg_fn is not None and multi_avg_fn is not None:
            raise GradcliError(
                "E201",
                "Only one of avg_fn and multi_avg_fn should be provided",
                raises="AssertionError",
            )
        self.module = clone(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters into the averages."""
        averaged = [detach(tensor) for tensor in self._averaged(self.module)]
        current = [detach(tensor) for tensor in self._averaged(model)]
        if self.n_averaged.item() == 0:
            for average, parameter in zip(averaged, current, strict=False):
                copy_(average, parameter)
        elif self.multi_avg_fn is not None:
            for dtype in dict.fromkeys(tensor.dtype for tensor in averaged):
                alike = [n for n, tensor in enumerate(averaged) if tensor.dtype == dtype]
                new = [current[n] for n in alike]
                self.multi_avg_fn([averaged[n] for n in alike], new, self.n_averaged)
        else:
            average_of: Average = self.avg_fn or get_swa_avg_fn()
            for average, parameter in zip(averaged, current, strict=True):
                copy_(average, average_of(average, parameter, self.n_averaged))
        if not self.use_buffers:
            for average, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                copy_(detach(average), detach(buffer))
        methods.add_(self.n_averaged, 1)

    def _averaged(self, model: Module) -> list[Tensor]:
        """The tensors of a model that have averages."""
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]


@function(module=_MODULE)
def update_bn(loader: Any, model: Any, device: Any = None) -> None:
    """Let the statistics of batch normalisation be those of all batches of a loader."""
    check_module("update_bn", model)
    layers = [inner for _, inner in model.each_module() if isinstance(inner, BatchNorm)]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    was_training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    with NoGrad():
        for batch in loader:
            first = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(first if device is None else methods.to(first, device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The rate goes to `swa_lr` in some epochs, and stays there.

    Example: torch.optim.swa_utils.SWALR(torch.optim.SGD([tensor(1.)], lr=0.1), 0.05)
    """

    home = _MODULE
    tables = (_MODULE,)

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer, "AttributeError")
        groups = optimizer.param_groups
        for rate, group in zip(for_each("swa_lr", swa_lr, groups), groups, strict=True):
            group["swa_lr"] = rate
        check_strategy(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise value_error(
                f"anneal_epochs must be equal or greater than 0, got {shown(anneal_epochs)}"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way to the last rate is gone after a step."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def rate(self, group: Group, base: float) -> float:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        last = group["swa_lr"]
        first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
        return last * now + first * (1 - now)


modules[_MODULE]["AveragedModel"] = AveragedModel
