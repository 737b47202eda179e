"""`torch.nn.init`: first values of parameters, written outside the graph.

Seeded alike, they are the numbers that PyTorch draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.autograd.inplace.writes import check_captured, check_data, overwrite
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.nn.attributes import names
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import linalg
from gradcli.ops.creation.copies import copy_, fill_
from gradcli.ops.creation.random import generator_of, normal_array, normal_over, uniform_over
from gradcli.ops.definition.doc import RANDOM, WRITES, describe, effects
from gradcli.state import active, created

_LINEAR = names(
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d sigmoid"
)


@function("calculate_gain", module="torch.nn.init")
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity are scaled; E204 for an unknown one.

    Example: nn.init.calculate_gain('relu')
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise value_error(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise value_error(f"Unsupported nonlinearity {nonlinearity}")


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many numbers flow into an output and out of an input of a weight (out, in, …).

    Raises E204 for fewer than two dimensions.
    """
    shape = tensor.array.shape
    if len(shape) < 2:
        raise value_error(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise value_error(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode == "fan_out"]


# --- drawn --------------------------------------------------------------------------------------


def _drawn(name: str, draw: Any, tensor: Tensor, generator: Any, *parameters: float) -> Tensor:
    """The tensor, overwritten with numbers of a distribution, drawn in the order of its memory."""
    check_data(name, tensor)
    home = tensor.device.type
    settings = name, tensor.dtype, generator, *parameters, home
    overwrite(tensor, created(draw, tensor.array, *settings))
    return tensor


@function("uniform_", module="torch.nn.init")
@effects(RANDOM, WRITES)
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Numbers drawn evenly from a to b.

    Example: nn.init.uniform_(tensor([0.5, 1., 2.]))
    """
    return _drawn("uniform_", uniform_over, tensor, generator, a, b)


@function("normal_", module="torch.nn.init")
@effects(RANDOM, WRITES)
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normally distributed numbers.

    Example: nn.init.normal_(tensor([0.5, 1., 2.]))
    """
    return _drawn("normal_", normal_over, tensor, generator, mean, std)


@function("xavier_uniform_", "glorot_uniform_", module="torch.nn.init")
@effects(RANDOM, WRITES)
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform, so scaled that values keep their variance forward and backward alike.

    Example: nn.init.xavier_uniform_(tensor([[2., 1.], [1., 3.]]))
    """
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(sum(fans(tensor))))
    return uniform_(tensor, -bound, bound, generator)


@function("xavier_normal_", module="torch.nn.init")
@effects(RANDOM, WRITES)
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal, so scaled that values keep their variance forward and backward alike.

    Example: nn.init.xavier_normal_(tensor([[2., 1.], [1., 3.]]))
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(fans(tensor)))), generator)


def _kaiming_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_correct_fan(tensor, mode))


def _kaiming(name: str, words: str, draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A filling by `draw(tensor, deviation, generator)`."""

    def fill(
        tensor: Tensor,
        a: float = 0,
        mode: str = "fan_in",
        nonlinearity: str = "leaky_relu",
        generator: Any = None,
    ) -> Tensor:
        if tensor.array.size == 0:
            return tensor
        return draw(tensor, _kaiming_deviation(tensor, a, mode, nonlinearity), generator)

    describe(
        fill,
        f"{words}, so scaled that values keep their variance through a rectifier of slope a.",
        f"nn.init.{name}(tensor([[2., 1.], [1., 3.]]))",
    )
    return function(name, module="torch.nn.init")(effects(RANDOM, WRITES)(fill))


kaiming_uniform_ = _kaiming(
    "kaiming_uniform_",
    "Uniform",
    lambda tensor, deviation, generator: uniform_(
        tensor, -math.sqrt(3.0) * deviation, math.sqrt(3.0) * deviation, generator
    ),
)
kaiming_normal_ = _kaiming(
    "kaiming_normal_",
    "Normal",
    lambda tensor, deviation, generator: normal_(tensor, 0.0, deviation, generator),
)


@function("trunc_normal_", module="torch.nn.init")
@effects(RANDOM, WRITES)
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Normally distributed numbers between a and b: what falls outside is drawn again.

    Example: nn.init.trunc_normal_(tensor([0.5, 1., 2.]))
    """
    check_data("normal_", tensor)
    settings = tensor.dtype, tensor.device.type, generator
    overwrite(tensor, created(_truncated, tensor.array, *settings, mean, std, a, b))
    return tensor


def _truncated(
    array: Any,
    dtype: DType,
    home: str,
    generator: Any,
    mean: float,
    std: float,
    a: float,
    b: float,
) -> Any:
    """Normal numbers between a and b over an array."""

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if below((b - mean) / std) - below((a - mean) / std) > 0.3:
        kind = array.dtype.type
        low, high = kind(a), kind(b)
        draw = partial(normal_over, array, "trunc_normal_", dtype, generator, mean, std, home)
        values = draw()
        while True:
            outside = (values < low) | (values > high)
            if not outside.any():
                return values
            values = np.where(outside, draw(fresh=True), values)
    # Few normal numbers would fall inside: uniform ones are kept with the density's probability.
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    values = np.zeros(array.shape, array.dtype)
    pending = np.ones(array.shape, bool)
    even = partial(uniform_over, array, "trunc_normal_", dtype, generator)
    while pending.any():
        drawn = even(a, b, home)
        values = np.where(pending, drawn, values)
        density = ((drawn - mean) / std) ** 2 * -0.5 - peak
        chance = even(0.0, 1.0, home)
        pending &= np.log(chance) > density
    return values


@function("orthogonal_", module="torch.nn.init")
@effects(RANDOM, WRITES)
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A matrix of orthonormal rows or columns, times `gain`; later dimensions count as one.

    Example: nn.init.orthogonal_(tensor([[2., 1.], [1., 3.]]))
    """
    if tensor.ndim < 2:
        raise value_error("Only tensors with 2 or more dimensions are supported")
    if tensor.array.size == 0:
        return tensor
    check_data("copy_", tensor)
    rows = tensor.array.shape[0]
    columns = tensor.array.size // rows
    drawn = normal_array("orthogonal_", (rows, columns), tensor.dtype, generator, 0.0, 1.0)
    with NoGrad():
        q, r = linalg.qr(Tensor(drawn.T if rows < columns else drawn))
    matrix = q.array * np.sign(np.diagonal(r.array))
    matrix = matrix.T if rows < columns else matrix
    overwrite(tensor, matrix.reshape(tensor.array.shape) * tensor.array.dtype.type(gain))
    return tensor


@function("sparse_", module="torch.nn.init")
@effects(RANDOM, WRITES)
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normally distributed numbers, a part of each column set to zero.

    Example: nn.init.sparse_(zeros(2, 2), 0.5)
    """
    if tensor.ndim != 2:
        raise value_error("Only tensors with 2 dimensions are supported")
    check_data("normal_", tensor)
    rows, columns = tensor.array.shape
    home = tensor.device.type
    values = normal_over(tensor.array, "sparse_", tensor.dtype, generator, 0.0, std, home)
    for column in range(columns):
        order = generator_of(None).permutation(rows)
        values[order[: math.ceil(sparsity * rows)], column] = 0
    overwrite(tensor, values)
    return tensor


# --- fixed --------------------------------------------------------------------------------------


@function("constant_", module="torch.nn.init")
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere.

    Example: nn.init.constant_(tensor([0., 0.]), 1.)
    """
    with NoGrad():
        return fill_(tensor, val)


@function("ones_", module="torch.nn.init")
def ones_(tensor: Tensor) -> Tensor:
    """Ones.

    Example: nn.init.ones_(tensor([0.5, 1., 2.]))
    """
    return constant_(tensor, 1.0)


@function("zeros_", module="torch.nn.init")
def zeros_(tensor: Tensor) -> Tensor:
    """Zeros.

    Example: nn.init.zeros_(tensor([0.5, 1., 2.]))
    """
    check_captured("zero_", tensor)
    return constant_(tensor, 0.0)


@function("eye_", module="torch.nn.init")
def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere.

    Example: nn.init.eye_(tensor([[2., 1.], [1., 3.]]))
    """
    if tensor.ndim != 2:
        raise value_error("Only tensors with 2 dimensions are supported")
    overwrite(tensor, np.eye(*tensor.array.shape, dtype=tensor.array.dtype))
    return tensor


@function("dirac_", module="torch.nn.init")
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight of a convolution that hands its channels through.

    Example: nn.init.dirac_(zeros(2, 2, 3))
    """
    shape = tensor.array.shape
    if len(shape) not in (3, 4, 5):
        raise value_error("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise value_error("dim 0 must be divisible by groups")
    values = np.zeros(shape, tensor.array.dtype)
    width = shape[0] // groups
    middle = tuple(size // 2 for size in shape[2:])
    for group in range(groups):
        for channel in range(min(width, shape[1])):
            values[(group * width + channel, channel, *middle)] = 1
    with NoGrad():
        return copy_(tensor, Tensor(values))


modules["torch.nn.init"].update(
    _calculate_correct_fan=_correct_fan,
    _calculate_fan_in_and_fan_out=fans,
    _no_grad_trunc_normal_=trunc_normal_,
)
"""What layers that people write call, underscore or not."""


# --- names of old -------------------------------------------------------------------------------


def deprecated(new: Callable[..., Tensor], home: str, module: str) -> None:
    """Register a function under its name of old, without the underscore; calling it warns (W015).

    Args:
        home: what PyTorch's warning calls the module.
    """
    name, old = new.__name__, new.__name__[:-1]

    @wraps(new)
    def fill(*args: Any, **keywords: Any) -> Tensor:
        message = f"`{home}.{old}` is now deprecated in favor of `{home}.{name}`."
        active.state.warn(
            "W015", message, text=message, category="FutureWarning", help=f"write `{home}.{name}`"
        )
        return new(*args, **keywords)

    function(old, module=module)(fill)


for _filling in (
    constant_,
    dirac_,
    eye_,
    kaiming_normal_,
    kaiming_uniform_,
    normal_,
    orthogonal_,
    sparse_,
    uniform_,
    xavier_normal_,
    xavier_uniform_,
):
    deprecated(_filling, "nn.init", "torch.nn.init")
