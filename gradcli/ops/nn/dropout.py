"""`dropout alpha_dropout feature_alpha_dropout dropout1d …`: elements or channels left out at
random.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from gradcli.arrays.kernels.sums import wide
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import dtype_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import add, mul
from gradcli.ops.binding.arguments import check_tensors
from gradcli.ops.binding.catalogue import function, in_place, modules
from gradcli.ops.creation.random import bernoulli_array, drawn_over
from gradcli.ops.definition.doc import RANDOM, SAMPLES, WRITES, describe, effects, of_shapes
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype
from gradcli.ops.definition.op import Function
from gradcli.ops.nn.activations import activation
from gradcli.ops.shape.views import (
    squeeze_dim,
    squeeze_in_place,
    unsqueeze,
    unsqueeze_in_place,
)
from gradcli.state import computed


def _check_probability(name: str, input: Tensor, p: float) -> None:
    check_tensors(name, input=input)
    if not 0 <= p <= 1:
        raise value_error(
            f"{name}(): p={p} is not between 0 and 1",
            text=f"dropout probability has to be between 0 and 1, but got {p}",
        )


_multiply_in_place = in_place("mul", mul.apply)
_add_in_place = in_place("add", add.apply)

_ALPHA = 1.7580993408473766
"""What an element becomes instead of 0: the value that selu approaches on the left, negated."""


@of_shapes
def _drawn(over: Any, p: float, dtype: Any, device: str) -> Any:
    """Which elements stay: ones and zeros with the memory order of an array."""
    kept = drawn_over(over, lambda sizes: bernoulli_array(sizes, 1 - p, device=device))
    return kept.astype(dtype)


@of_shapes
def _scaled(over: Any, p: float, dtype: Any, device: str) -> Any:
    """The same, and what stays is made up for what goes."""
    kept = _drawn(over, p, dtype, device)
    return (wide(kept) / (1 - p)).astype(dtype)  # the number keeps its digits beside half precision


def _noise(draw: Function, input: Tensor, p: float, over: Any) -> Any:
    """What one of the two draws. Raises E203 where the noise has no dtype to be in: bools and
    integers are found out when it is divided, after the draw.
    """
    check_dtype("dropout", input.dtype, COMPLEX, "bernoulli_")
    noise = computed(draw, over, p, input.array.dtype, input.device.type)
    if input.dtype.category in ("bool", "int"):
        is_lowered = draw is _drawn and input.dtype.category == "bool"  # a bool less 1 is an int64
        raise dtype_error(
            f"dropout() is not defined for {input.dtype}",
            text="result type Float can't be cast to the desired output type"
            f" {'Long' if is_lowered else input.dtype.scalar_type}",
        )
    return noise


def _channels(name: str, input: Tensor) -> Any:
    """An array of one number per channel, for the noise; raises E301 where there are none."""
    shape = tuple(input.array.shape)
    if len(shape) < 2:
        raise shape_error(
            f"{name}(): the shape {shape} has no channels",
            text="Feature dropout requires at least 2 dimensions in the input",
        )
    return np.empty((*shape[:2], *(1,) * (len(shape) - 2)))


def _dropped(name: str, input: Tensor, p: float, training: bool, written: bool) -> Tensor:
    """What one of the functions below makes of a tensor, or does to it: each product and each sum
    is a write of its own.
    """
    _check_probability(name, input, p)
    if not training or p == 0 or not input.array.size:
        return input
    product = _multiply_in_place if written else mul.apply
    if p == 1:
        return product(input, Tensor(input.array.dtype.type(0)))
    over = _channels(name, input) if name.startswith("feature") else input.array
    if not name.endswith("alpha_dropout"):
        return product(input, Tensor(_noise(_scaled, input, p, over)))
    kept = _noise(_drawn, input, p, over)
    scale = 1 / sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    lowered = ((kept - 1) * (_ALPHA * scale)).astype(kept.dtype)  # rounded at each step
    shift = Tensor((lowered + _ALPHA * scale * p).astype(kept.dtype))
    result = product(input, Tensor((kept * scale).astype(kept.dtype)))
    if written:
        return _add_in_place(result, shift)
    result = add.apply(result, shift)
    storage_of(result).version = 1  # PyTorch adds in place
    return result


def _in_place(name: str, training_unless_said: bool) -> Function:
    """The in-place form of one of the functions below."""

    @effects(WRITES)
    def write_dropped(
        input: Tensor, p: float = 0.5, training: bool = training_unless_said
    ) -> Tensor:
        return _dropped(name, input, p, training, written=True)

    write_dropped.__name__ = write_dropped.__qualname__ = f"{name}_"
    return write_dropped


@activation("dropout", torch=True, inplace=True, writing=_in_place("dropout", True))
@effects(RANDOM)
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element is set to 0 with probability p, and the others are divided by 1 - p; the tensor
    itself without `training`, or with p = 0. With p = 1 nothing is drawn. Raises E204 where p is no
    probability.

    Example: torch.dropout(tensor([0.5, 1., 2.]), 0.5, True)
    """
    return _dropped("dropout", input, p, training, written=False)


@function("feature_dropout", effects=(RANDOM,))
def feature_dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` of whole channels, the second dimension. Raises E301 where there is none.

    Example: torch.feature_dropout(tensor([[2., 1.], [1., 3.]]))
    """
    return _dropped("feature_dropout", input, p, training, written=False)


_feature_dropout_in_place = _in_place("feature_dropout", True)
vars(_feature_dropout_in_place)["__wrapped__"] = feature_dropout
modules["torch"]["feature_dropout_"] = _feature_dropout_in_place


@activation("alpha_dropout", torch=True, inplace=True, writing=_in_place("alpha_dropout", False))
@effects(RANDOM)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`dropout` to the lowest value of `selu`, shifted and scaled so that mean and variance stay.
    Raises E204 where p is no probability.

    Example: torch.alpha_dropout(tensor([0.5, 1., 2.5]))
    """
    return _dropped("alpha_dropout", input, p, training, written=False)


@activation(
    "feature_alpha_dropout",
    torch=True,
    inplace=True,
    writing=_in_place("feature_alpha_dropout", False),
)
@effects(RANDOM)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels. Raises E301 where there is no second dimension.

    Example: torch.feature_alpha_dropout(tensor([[2., 1.], [1., 3.]]))
    """
    return _dropped("feature_alpha_dropout", input, p, training, written=False)


def _of_channels(ndim: int, example: str) -> None:
    """`dropout` of whole channels with so many dimensions; without a batch a tensor gets one for
    the noise; `dropout2d` takes the first dimension for the batch whatever their number.
    """
    name = f"dropout{ndim}d"

    def is_batched(input: Tensor, p: float) -> bool:
        _check_probability(name, input, p)
        rank = input.array.ndim
        if ndim == 1 and rank not in (2, 3):
            raise shape_error(
                f"dropout1d(): 2 or 3 dimensions are needed, not {rank}",
                text=f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. Note that"
                " dropout1d exists to provide channel-wise dropout on inputs with 1 spatial"
                " dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D"
                " inputs).",
            )
        return ndim == 2 or rank == ndim + 2

    @effects(WRITES)
    def write_of_channels(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
        if is_batched(input, p):
            return _dropped("feature_dropout", input, p, training, written=True)
        unsqueeze_in_place(input, 0)
        return squeeze_in_place(_dropped("feature_dropout", input, p, training, written=True), 0)

    write_of_channels.__name__ = write_of_channels.__qualname__ = name

    @activation(name, writing=write_of_channels)
    @effects(RANDOM)
    def of_channels(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
        if is_batched(input, p):
            return feature_dropout(input, p, training)
        batched = unsqueeze.apply(input, 0)
        return squeeze_dim.apply(feature_dropout(batched, p, training), 0)

    describe(
        of_channels,
        "`dropout` of whole channels. Raises E301 for other shapes.",
        example,
    )


for _ndim, _sample in ((1, "ones(1, 2, 3)"), (2, SAMPLES[2]), (3, SAMPLES[3])):
    _of_channels(_ndim, f"F.dropout{_ndim}d({_sample})")
