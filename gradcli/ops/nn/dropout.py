"""`dropout alpha_dropout feature_alpha_dropout dropout1d …`: elements or channels left out at
random.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from gradcli.arrays.kernels.sums.cascade_sum import wide
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import dtype_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import add, mul
from gradcli.ops.binding.arguments import check_tensors
from gradcli.ops.binding.catalogue import function, in_place, modules
from gradcli.ops.creation.random import bernoulli_array, drawn_over
from gradcli.ops.definition.doc import RANDOM, SAMPLES, describe, effects
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype
from gradcli.ops.nn.activations import activation
from gradcli.ops.shape.views import squeeze_dim, unsqueeze
from gradcli.state import computed


def _check_probability(name: str, input: Tensor, p: float) -> None:
    check_tensors(name, input=input)
    if not 0 <= p <= 1:
        raise value_error(
            f"{name}(): p is a probability, and {p} is none",
            text=f"dropout probability has to be between 0 and 1, but got {p}",
        )


@activation("dropout", torch=True, inplace=True, written_as="mul_")
@effects(RANDOM)
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element is set to 0 with probability p, and the others are divided by 1 - p; the tensor
    itself without `training`, or with p = 0. With p = 1 nothing is drawn. Raises E204 where p is no
    probability.

    Example: torch.dropout(tensor([0.5, 1., 2.]), 0.5, True)
    """
    _check_probability("dropout", input, p)
    known = _undrawn(input, p, training)
    return _dropped(input, p, input.array) if known is None else known


def _drawn(over: Any, p: float, dtype: Any, device: str) -> Any:
    """Which elements stay: ones and zeros with the memory order of an array."""
    kept = drawn_over(over, lambda sizes: bernoulli_array(sizes, 1 - p, device=device))
    return kept.astype(dtype)


def _scaled(over: Any, p: float, dtype: Any, device: str) -> Any:
    """The same, and what stays is made up for what goes."""
    kept = _drawn(over, p, dtype, device)
    return (wide(kept) / (1 - p)).astype(dtype)  # the number keeps its digits beside half precision


def _undrawn(input: Tensor, p: float, training: bool) -> Tensor | None:
    """What is known without a draw: the tensor itself where all stays, zeros where nothing does."""
    if not training or p == 0 or not input.array.size:
        return input
    if p == 1:
        return mul.apply(input, Tensor(input.array.dtype.type(0)))
    return None


def _check_dtype(input: Tensor) -> None:
    """Raise E203 where the noise, which is made of fractions, has no dtype to be in."""
    if input.dtype.category in ("bool", "int"):
        raise dtype_error(
            f"dropout() is not defined for {input.dtype}",
            text="result type Float can't be cast to the desired output type"
            f" {input.dtype.scalar_type}",
        )
    check_dtype("dropout", input.dtype, COMPLEX, "bernoulli_")


def _dropped(input: Tensor, p: float, over: Any) -> Tensor:
    """The tensor times noise with the memory order of an array."""
    _check_dtype(input)
    kept = computed(_scaled, over, p, input.array.dtype, input.device.type)
    return mul.apply(input, Tensor(kept))


def _channels(name: str, input: Tensor) -> Any:
    """An array of one number per channel, for the noise; raises E301 where there are none."""
    shape = tuple(input.array.shape)
    if len(shape) < 2:
        raise shape_error(
            f"{name}(): the shape {shape} has no channels",
            text="Feature dropout requires at least 2 dimensions in the input",
        )
    return np.empty((*shape[:2], *(1,) * (len(shape) - 2)))


@function("feature_dropout", effects=(RANDOM,))
def feature_dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` of whole channels, the second dimension. Raises E301 where there is none.

    Example: torch.feature_dropout(tensor([[2., 1.], [1., 3.]]))
    """
    _check_probability("feature_dropout", input, p)
    known = _undrawn(input, p, training)
    return _dropped(input, p, _channels("feature_dropout", input)) if known is None else known


modules["torch"]["feature_dropout_"] = in_place(
    "feature_dropout", feature_dropout, written_as="mul_"
)

# What an element becomes instead of 0: the value that selu approaches on the left, negated.
_ALPHA = 1.7580993408473766


def _alpha_dropped(input: Tensor, p: float, over: Any) -> Tensor:
    _check_dtype(input)
    kept = computed(_drawn, over, p, input.array.dtype, input.device.type)
    scale = 1 / sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    shift = (kept - 1) * (_ALPHA * scale) + _ALPHA * scale * p
    result = add.apply(mul.apply(input, Tensor(kept * scale)), Tensor(shift))
    storage_of(result).version = 1  # PyTorch adds in place
    return result


@activation("alpha_dropout", torch=True, inplace=True, written_as="mul_")
@effects(RANDOM)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`dropout` to the lowest value of `selu`, shifted and scaled so that mean and variance stay.
    Raises E204 where p is no probability.

    Example: torch.alpha_dropout(tensor([0.5, 1., 2.5]))
    """
    _check_probability("alpha_dropout", input, p)
    known = _undrawn(input, p, training)
    return _alpha_dropped(input, p, input.array) if known is None else known


@activation("feature_alpha_dropout", torch=True, inplace=True, written_as="mul_")
@effects(RANDOM)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels. Raises E301 where there is no second dimension.

    Example: torch.feature_alpha_dropout(tensor([[2., 1.], [1., 3.]]))
    """
    _check_probability("feature_alpha_dropout", input, p)
    if (known := _undrawn(input, p, training)) is not None:
        return known
    return _alpha_dropped(input, p, _channels("feature_alpha_dropout", input))


def _of_channels(name: str, counts: tuple[int, int], sample: str) -> None:
    """`dropout` of whole channels; without a batch dimension a tensor gets one for the noise."""

    @activation(name)
    @effects(RANDOM)
    def of_channels(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
        _check_probability(name, input, p)
        if name != "dropout2d" and input.array.ndim not in counts:
            raise shape_error(
                f"{name}(): {counts[0]} or {counts[1]} dimensions are needed, not"
                f" {input.array.ndim}"
            )
        if input.array.ndim == counts[0] and name != "dropout2d":
            batched = unsqueeze.apply(input, 0)
            return squeeze_dim.apply(feature_dropout(batched, p, training), 0)
        return feature_dropout(input, p, training)

    describe(
        of_channels,
        "`dropout` of whole channels. Raises E301 for other shapes.",
        f"F.{name}({sample})",
    )


_of_channels("dropout1d", (2, 3), "ones(1, 2, 3)")
_of_channels("dropout2d", (3, 4), SAMPLES[2])
_of_channels("dropout3d", (4, 5), SAMPLES[3])
