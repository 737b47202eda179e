"""`nll_loss` and `cross_entropy`: targets as class indices or as class probabilities."""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import device_of, module_of, to_host
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.fusion.tile_kernels import places_along
from gradcli.arrays.kernels.row_reductions import picked, scattered
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.kernels.windows import Sizes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, index_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.arguments import (
    check_constants,
    check_floating,
    check_tensors,
    checked_values,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import filled
from gradcli.ops.definition.doc import BY_VALUES, CHECKS, Hazard
from gradcli.ops.definition.lints import check_normalised, check_scores
from gradcli.ops.definition.op import Op, op
from gradcli.ops.indexing.along import gather, index_select, scatter_tensor
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.nn.loss.elementwise import (
    MEAN,
    NONE,
    SUM,
    reduced,
    reduction_number,
)
from gradcli.ops.nn.softmax import along, log_softmax_op
from gradcli.ops.reduction.sum import sum_all, sum_dims
from gradcli.ops.shape.views import expand, reshape, squeeze_dim, unsqueeze, view
from gradcli.state import active, computed

# --- the negative log likelihood ----------------------------------------------------------------
#
# The input has the classes in dimension 1, or as its only dimension; the target has its other
# dimensions.


def _indices(self: Any, target: Any, counted: Any) -> tuple[Any, int]:
    """The index of each class, with a dimension for the classes, and which dimension that is. What
    is ignored has index 0; its weight is 0.
    """
    dim = 1 if self.ndim > 1 else 0
    index = target if counted is None else np.where(counted, target, 0)
    index = index.astype(np.int64, copy=False)
    return (index[:, None] if dim else index[None]), dim


def _counted(target: Any, ignore_index: int) -> Any:
    """Which targets count; None where all of them do."""
    counted = target != ignore_index
    return None if np.count_nonzero(counted) == target.size else counted


def _weights(counted: Any, target: Any, weight: Any, dtype: Any) -> Any:
    """The weight of each target, a number where all have the same."""
    if weight is None:
        return dtype.type(1) if counted is None else module_of(counted).asarray(counted, dtype)
    if counted is None:
        return weight[target.astype(np.int64, copy=False)]
    return np.where(counted, weight[np.where(counted, target, 0).astype(np.int64)], 0)


def _count(counted: Any, target: Any, weight: Any, weights: Any, dtype: Any) -> Any:
    """What a mean is divided by: how many targets count, or their weights' sum."""
    if weight is not None:
        return np.add.reduce(wide(weights), axis=None).astype(dtype)
    return dtype.type(target.size if counted is None else np.count_nonzero(counted))


def _nll_array(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> Any:
    weight = forced(weight)
    if self.ndim == target.ndim:
        target = target.reshape(())
    counted = _counted(target, ignore_index)
    index, dim = _indices(self, target, counted)
    chosen = picked(self, places_along(index, dim)).reshape(target.shape)
    weights = _weights(counted, target, weight, self.dtype)
    losses = -chosen * weights
    if counted is not None:  # an ignored infinity must not turn into nan
        losses = np.where(counted, losses, 0)
    losses = losses[()]
    if reduction == NONE:
        return losses
    total = np.add.reduce(wide(losses), axis=None).astype(self.dtype)  # what is left out is 0
    if reduction == MEAN:
        total = total / _count(counted, target, weight, weights, self.dtype)
    return total


def _nll_backward_array(
    grad_output: Any, self: Any, target: Any, weight: Any = None, reduction: int = 1,
    ignore_index: int = -100,
) -> Any:  # fmt: skip
    grad_output, weight = forced(grad_output), forced(weight)
    counted = _counted(target, ignore_index)
    index, dim = _indices(self, target, counted)
    weights = _weights(counted, target, weight, self.dtype)
    if reduction == MEAN:
        grad_output = grad_output / _count(counted, target, weight, weights, self.dtype)
    chosen = -grad_output * weights
    if counted is not None:
        chosen = np.where(counted, chosen, 0)
    if chosen.ndim:
        chosen = chosen.reshape(index.shape)
    if dim == 1 and self.size >= active.state.lazy_from and device_of(self).type == "cpu":
        return scattered(index, np.broadcast_to(chosen, index.shape), self.shape)
    if type(self) in HOST_ARRAYS:
        slopes = np.zeros_like(self, order="C")
    else:
        slopes = module_of(self).zeros(self.shape, self.dtype)
    slopes[places_along(index, dim)] = chosen
    return slopes


def _weights_at(weight: Tensor, target: Tensor) -> Tensor:
    """The weight of each target."""
    return reshape(index_select(weight, 0, reshape(target, (-1,))), tuple(target.shape))


def _decomposed_weights(
    self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor | float, Tensor | float]:
    """The index of each class with a dimension for them, the weight of each target, a number where
    all have the same, and what a mean is divided by.
    """
    dim = 1 if self.array.ndim > 1 else 0
    counted = target.array != ignore_index
    total = float(np.count_nonzero(counted))
    if counted.all():
        weights = 1.0 if weight is None else _weights_at(weight, target)
        index = unsqueeze.apply(target, dim)
        return index, weights, total if weight is None else sum_all.apply(weights)
    known = Tensor(np.where(counted, target.array, 0))
    weights = Tensor(counted.astype(self.array.dtype))
    if weight is not None:
        weights = weights * _weights_at(weight, known)
    index = unsqueeze.apply(known, dim)
    return index, weights, total if weight is None else sum_all.apply(weights)


def _nll_decomposed(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Tensor:
    index, weights, total = _decomposed_weights(self, target, weight, ignore_index)
    dim = 1 if self.array.ndim > 1 else 0
    losses = -squeeze_dim.apply(gather(self, dim, index), dim) * weights
    if reduction == NONE:
        return losses
    return sum_all.apply(losses) / (total if reduction == MEAN else 1.0)


def _nll_backward_decomposed(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Tensor:
    index, weights, total = _decomposed_weights(self, target, weight, ignore_index)
    dim = 1 if self.array.ndim > 1 else 0
    share = -grad_output / (total if reduction == MEAN else 1.0) * weights
    if reduction != NONE:
        share = expand(share, tuple(target.shape))
    return scatter_tensor(zeros_like(self), dim, index, unsqueeze.apply(share, dim))


def _nll(name: str) -> Op:
    """The loss and its gradient, as `name` and `name_backward`; one for each node that PyTorch
    prints.
    """
    backward = op(
        f"{name}_backward",
        _nll_backward_array,
        decomposition=_nll_backward_decomposed,
        constant=("target", "weight"),
        grad_output=lambda grad, target, weight, reduction, ignore_index: loss(
            grad, target, weight, reduction, ignore_index
        ),
        # It does not depend on the input, only on its shape.
        self=lambda grad, self: zeros_like(self),
        raises=BY_VALUES,
    )
    loss: Op = op(
        name,
        _nll_array,
        decomposition=_nll_decomposed,
        constant=("target", "weight"),
        reads_lazy=True,
        unread=("self",),
        raises=BY_VALUES,
        self=lambda grad, self, target, weight, reduction, ignore_index: backward(
            grad, self, _of_samples(self, target), weight, reduction, ignore_index
        ),
        hazard=Hazard(
            nothing="the mean over no targets divides 0 by 0: there are none, all are ignore_index,"
            " or their weights are 0"
        ),
    )
    return loss


def _of_samples(self: Any, target: Any) -> Any:
    """The target; raises E409 for one of shape (1,) beside an input that has only the classes,
    which PyTorch's loss takes, and its gradient does not.
    """
    if len(self.shape) == len(target.shape):
        raise GradcliError(
            "E409",
            "nll_loss(): a target of shape (1,) has no gradient beside an input without samples",
            help="give the target as a 0-dim tensor",
        )
    return target


_nll_loss = _nll("nll_loss")
_nll_loss2d = _nll("nll_loss2d")


def _wrong_target(shape: Sizes, expected: Sizes, wanted: Sizes) -> str:
    """PyTorch's text for a target of another shape than the input asks for."""
    if len(shape) == len(wanted) == 1:
        return f"For 1D input, 1D target must have size 1, but got target size: {wanted[0]}"
    if len(shape) < 3:
        return "0D or 1D target tensor expected, multi-target not supported"
    if len(shape) == 4 and len(wanted) != 3:
        return (
            "only batches of spatial targets supported (3D tensors) but got targets of dimension:"
            f" {len(wanted)}"
        )
    if len(shape) == 4:
        return f"size mismatch (got input: {list(shape)} , target: {list(wanted)}"
    return f"Expected target size {list(expected)}, got {list(wanted)}"


def _check_classes(input: Tensor, target: Tensor, weight: Any, ignore_index: int) -> None:
    """Raise E203 for an operand of the wrong dtype, E301 where shapes do not fit, E302
    for a class that does not exist.
    """
    shape, wanted = input.array.shape, target.array.shape
    classes = shape[1] if len(shape) > 1 else shape[0]
    expected = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if len(shape) > 1 and wanted[:1] != shape[:1]:
        raise shape_error(
            f"nll_loss(): {shape[0]} samples, and targets of shape {tuple(wanted)}",
            text=f"Expected input batch_size ({shape[0]}) to match target batch_size"
            f" ({wanted[0] if wanted else ''}).",
            raises="ValueError",
        )
    if wanted != expected and not (len(shape) == 1 and wanted == (1,)):
        raise shape_error(
            f"nll_loss(): a target of shape {tuple(expected)} goes with an input of shape"
            f" {tuple(shape)}, not one of shape {tuple(wanted)}",
            text=_wrong_target(shape, expected, wanted),
            raises="ValueError" if len(shape) == len(wanted) == 1 else None,
        )
    if target.dtype.name not in ("int64", "uint8"):
        raise dtype_error(
            f"nll_loss(): the target must be torch.int64 or uint8, and is {target.dtype}",
            text=f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_type}",
            help=f"classes are numbers from 0: `{target.name or 'target'}.long()`",
        )
    if weight is not None and weight.array.shape != (classes,):
        raise shape_error(
            f"weight tensor should be defined either for all {classes} classes or no classes but"
            f" got weight tensor of shape: {list(weight.array.shape)}"
        )
    if weight is not None and weight.dtype is not input.dtype:
        raise dtype_error(f"nll_loss(): the weight is {weight.dtype}, the input {input.dtype}")
    check_floating("nll_loss", input)
    checked_values(_check_range, target.array, classes, ignore_index)


def _check_range(target: Any, classes: int, ignore_index: int) -> None:
    """Raise E302 for a class that does not exist."""
    outside = (target < 0) | (target >= classes)
    outside &= target != ignore_index
    if outside.any():
        raise index_error(
            f"nll_loss(): there is no class {to_host(target[outside])[0]}: the input"
            f" has {classes} classes",
            text=f"Target {to_host(target[outside])[0]} is out of bounds.",
            help=f"classes are counted from 0: the last is {classes - 1}",
        )


def _apply_nll_loss(
    input: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> Tensor:
    shape = input.array.shape
    if not shape:
        raise shape_error("Expected 1 or more dimensions (got 0)", raises="ValueError")
    kernel = "nll_loss_forward" if len(shape) < 3 else "nll_loss2d_forward"
    check_constants("nll_loss", kernel, weight=weight)
    _check_classes(input, target, weight, ignore_index)
    if len(shape) < 3:
        return _nll_loss.apply(input, target, weight, reduction, ignore_index)
    if len(shape) == 4:
        return _nll_loss2d.apply(input, target, weight, reduction, ignore_index)
    # Any other number of dimensions is brought to four.
    flat = (shape[0], 1, prod(shape[2:]))
    losses = _nll_loss2d.apply(
        view(input, (shape[0], shape[1], *flat[1:])),
        view(target, flat),
        weight,
        reduction,
        ignore_index,
    )
    return view(losses, (shape[0], *shape[2:])) if reduction == NONE else losses


@function("nll_loss", module="torch.nn.functional", autocast="float32", effects=(CHECKS,))
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability of the target's class, of shape (N, C, …) for targets of shape
    (N, …), or (C) for one target. The mean is weighted; what has class `ignore_index` is left out.

    Raises E203, E301 or E302 where the target does not fit.

    Example: F.nll_loss(tensor([[2., 1.], [1., 3.]]), tensor([0, 1]))
    """
    number = reduction_number(reduction, size_average, reduce)
    check_normalised("nll_loss", input)
    return _apply_nll_loss(input, target, weight, number, ignore_index)


# --- cross entropy ------------------------------------------------------------------------------


@function("cross_entropy", module="torch.nn.functional", autocast="float32", effects=(CHECKS,))
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`nll_loss` of the input's log_softmax over the classes. The target holds classes, or the
    probability of each class, where it is floating and of the input's shape.

    Args:
        weight: of each class.
        label_smoothing: how much of a target's weight is spread over all classes.

    Raises:
        GradcliError: as `nll_loss` does, E204 for a label_smoothing outside 0 to 1.

    Example: F.cross_entropy(tensor([[2., 1.], [1., 3.]]), tensor([0, 1]))
    """
    number = reduction_number(reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise runtime_error(
            f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}"
        )
    if weight is not None:
        check_tensors("cross_entropy", weight=weight)
    shape = input.array.shape
    class_dim = 0 if len(shape) == 1 else 1
    by_probability = target.array.shape == shape
    if by_probability:
        check_floating("cross_entropy: as probabilities the target", target, "RuntimeError")
    check_scores("cross_entropy", input, "SoftmaxBackward0")
    likelihood = along(log_softmax_op, input, class_dim, None)
    if by_probability:
        if ignore_index >= 0:
            raise runtime_error(
                "cross_entropy(): ignore_index goes with classes, not with probabilities",
                "ignore_index is not supported for floating point target",
            )
        return _with_probabilities(likelihood, target, weight, number, label_smoothing)
    loss = _apply_nll_loss(likelihood, target, weight, number, ignore_index)
    if not label_smoothing:
        return loss
    spread = _spread_loss(likelihood, target, weight, number, ignore_index)
    return loss * (1 - label_smoothing) + spread * (label_smoothing / shape[class_dim])


def _over_classes(weight: Tensor, likelihood: Tensor) -> Tensor:
    """The weights of the classes, in a shape that broadcasts over the other dimensions."""
    ndim = likelihood.array.ndim
    sizes = tuple(weight.array.size if dim == min(1, ndim - 1) else 1 for dim in range(ndim))
    return view(weight, sizes)


def _with_probabilities(
    likelihood: Tensor, target: Tensor, weight: Any, reduction: int, label_smoothing: float
) -> Tensor:
    class_dim = min(1, likelihood.array.ndim - 1)
    classes = likelihood.array.shape[class_dim]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / max(classes, 1)
    weighted = likelihood * target
    if weight is not None:
        weighted = weighted * _over_classes(weight, likelihood)
    if reduction == NONE:
        return -sum_dims.apply(weighted, (class_dim,), False)
    total = sum_all.apply(weighted)
    if reduction == MEAN and not likelihood.array.size:
        return -filled.apply(total, math.nan)
    return -total if reduction == SUM else -total / (likelihood.array.size / classes)


def _spread_loss(
    likelihood: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> Tensor:
    """The loss of targets that are spread evenly over the classes."""
    if weight is not None:
        likelihood = likelihood * _over_classes(weight, likelihood)
    class_dim = min(1, likelihood.array.ndim - 1)
    ignored = Tensor(computed(np.equal, target.array, ignore_index))
    losses = masked_fill_number.apply(-sum_dims.apply(likelihood, (class_dim,), False), ignored, 0)
    if reduction != MEAN:
        return reduced(losses, reduction)
    array = None if weight is None else weight.array
    dtype = likelihood.array.dtype
    return sum_all.apply(losses) / Tensor(
        computed(_whole_weight, target.array, array, ignore_index, dtype)
    )


def _whole_weight(target: Any, weight: Any, ignore_index: int, dtype: Any) -> Any:
    """The sum of the weights of the targets that count."""
    return np.add.reduce(_weights(target != ignore_index, target, weight, dtype), axis=None)
