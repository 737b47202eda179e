"""Samples of distributions: `normal bernoulli multinomial uniform_ normal_ bernoulli_ random_`; and
numbers that are drawn until one is accepted, `poisson binomial` and those of the gamma
distribution, by the draws that PyTorch takes on the CPU, in its order.

What is drawn does not depend on what it replaces: gradients are zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DType
from gradcli.arrays.kernels import selection
from gradcli.arrays.random.generator import Generator
from gradcli.autograd.inplace.writes import check_inplace, write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import no_derivative, zeros_like
from gradcli.ops.binding.arguments import (
    check_floating,
    check_number,
    checked_values,
    plain_float,
    plain_integer,
)
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.binding.functions import methods, operators
from gradcli.ops.creation.fill import checked_dtype, checked_sizes, chosen_device, tensor_of
from gradcli.ops.creation.random import (
    as_drawn,
    bernoulli_array,
    check_drawn_dtype,
    check_generator,
    check_probability,
    drawn,
    drawn_over,
    generator_of,
    integer_array,
    normal_array,
    normal_over,
    shaped,
    uniform_over,
)
from gradcli.ops.definition.doc import BY_KINDS, CHECKS, RANDOM, WRITES
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, dtype_names
from gradcli.ops.definition.op import Op, op
from gradcli.state import active, charge_steps, created

# --- probabilities ------------------------------------------------------------------------------


def _bernoulli_each(p: Tensor, shape: Any, dtype: DType, generator: Any) -> Any:
    """Ones and zeros of a dtype, each of a probability of its own, which is broadcast to a shape.

    Raises E204 for what is no probability, and E301 where it cannot be broadcast.
    """
    check_drawn_dtype("bernoulli", p.dtype)
    home = p.device.type
    if active.state.batch is None:
        return created(_bernoulli_array_of, p.array, tuple(shape), dtype, generator, home)
    try:
        p = p if tuple(shape) == tuple(p.array.shape) else methods.expand(p, shape)
    except GradcliError:
        raise _not_broadcast(p.array, shape) from None
    active.state.batch.refuse_same_draws(p)
    checked_values(_check_chances, p.array)
    kind = _fraction_dtype(p.array)
    source = generator_of(generator, home)
    fraction = drawn(
        p.array.shape,
        lambda sizes: shaped(as_drawn(kind, partial(source.uniform, prod(sizes))), sizes, p.dtype),
    )
    return shaped(operators.lt(Tensor(fraction), p).array, shape, dtype)


def _bernoulli_array_of(
    p: Any, shape: tuple[int, ...], dtype: DType, generator: Any, device: str
) -> Any:
    try:
        chances = module_of(p).broadcast_to(module_of(p).asarray(p), shape)
    except ValueError:
        raise _not_broadcast(p, shape) from None
    _check_chances(chances)
    source = generator_of(generator, device)
    fraction = as_drawn(_fraction_dtype(chances), partial(source.uniform, chances.size))
    return shaped(fraction.reshape(shape) < chances, shape, dtype)


def _not_broadcast(p: Any, shape: Any) -> GradcliError:
    return shape_error(
        f"bernoulli_(): probabilities of shape {tuple(p.shape)} cannot be broadcast"
        f" to {tuple(shape)}"
    )


def _fraction_dtype(chances: Any) -> Any:
    """The dtype of the numbers that are compared with probabilities."""
    return np.dtype(np.float64 if chances.dtype == np.float64 else np.float32)


def _check_chances(chances: Any) -> None:
    """Raise E204 unless numbers lie between 0 and 1."""
    if not np.all((chances >= 0) & (chances <= 1)):
        raise runtime_error(
            "bernoulli(): the probabilities do not all lie between 0 and 1",
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message"
            " be improved?  If so, please report an enhancement request to PyTorch.)",
        )


# --- drawn from tensors -------------------------------------------------------------------------


def _redrawn(name: str, node_name: str) -> Op:
    """An op that replaces a tensor by drawn values, which do not depend on it."""
    return op(
        name,
        lambda self, values: values,
        node=node_name,
        self=lambda grad: zeros_like(grad),
        raises=BY_KINDS,
    )


bernoulli_of = _redrawn("bernoulli", "BernoulliBackward0")
_poisson_of = _redrawn("poisson", "PoissonBackward0")
_bernoulli_of_number = op(
    "bernoulli",
    lambda self, values: values,
    node="NotImplemented",
    self=no_derivative("bernoulli", "draw from a detached tensor"),
    raises=BY_KINDS,
)
_normal_of_mean = op(
    "normal",
    lambda mean, values: values,
    node="NormalBackward1",
    mean=lambda grad: zeros_like(grad),
    raises=BY_KINDS,
)
_normal_of_std = op(
    "normal",
    lambda std, values: values,
    node="NormalBackward2",
    std=lambda grad: zeros_like(grad),
    raises=BY_KINDS,
)
_normal_of_both = op(
    "normal",
    lambda mean, std, values: values,
    node="NormalBackward3",
    # The engine sums what was broadcast: zeros either way.
    mean=lambda grad: zeros_like(grad),
    std=lambda grad: zeros_like(grad),
    raises=BY_KINDS,
)


@function("normal", effects=(RANDOM,))
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of the given mean and standard deviation: numbers with a size, or tensors.

    Example: torch.normal(0., tensor([1., 2.]))
    """
    of_mean, of_std = isinstance(mean, Tensor), isinstance(std, Tensor)
    if not of_mean and not of_std:
        if size is None:
            raise GradcliError("E201", "normal() of two numbers needs a size")
        sizes = checked_sizes("normal", (size,))
        target = checked_dtype("normal", dtype, dtypes.default_dtype())
        target_device = chosen_device("normal", device)
        drawn_on = target_device.type
        array = normal_array("normal", sizes, target, generator, float(mean), float(std), drawn_on)
        return tensor_of("normal", array, target_device, requires_grad)
    if size is not None:
        given = ", ".join(type(each).__name__ for each in (mean, std, size))
        raise type_error(
            "normal(): tensors have the size of the numbers that are drawn",
            text="normal() received an invalid combination of arguments - got"
            f" ({given}), but expected one of:",
        )
    means, deviations = (v.array if isinstance(v, Tensor) else v for v in (mean, std))
    first = mean if of_mean else std
    values = created(_normal_around, means, deviations, first.dtype, generator, first.device.type)
    if of_mean and of_std:
        return _normal_of_both.apply(mean, std, values)
    return _normal_of_mean.apply(mean, values) if of_mean else _normal_of_std.apply(std, values)


def _normal_around(means: Any, deviations: Any, dtype: DType, generator: Any, device: str) -> Any:
    """An array of normal numbers, each of a mean and a standard deviation of its own.

    Raises E204 for a negative deviation, and E301 where the shapes do not fit.
    """
    if np.any(np.less(deviations, 0)):
        raise runtime_error(
            "normal(): the standard deviation is negative",
            "normal expects all elements of std >= 0.0",
        )
    try:
        shape = np.broadcast_shapes(np.shape(means), np.shape(deviations))
    except ValueError:
        raise shape_error(
            f"normal(): the shapes {np.shape(means)} and {np.shape(deviations)} differ"
        ) from None
    drawn = normal_array("normal", shape, dtype, generator, 0.0, 1.0, device)
    return (drawn * deviations + means).astype(dtype.numpy_dtype)[()]


@function("bernoulli", method=True, effects=(CHECKS, RANDOM))
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities that the tensor holds, or with probability p; zeros elsewhere.

    Example: torch.bernoulli(tensor([0.2, 0.8]))
    """
    if p is None:
        check_floating("bernoulli", input)
        values = _bernoulli_each(input, input.array.shape, input.dtype, generator)
        return bernoulli_of.apply(input, values)
    check_probability(p)
    check_dtype("bernoulli", input.dtype, COMPLEX)
    draw = _bernoulli_of_sizes(p, input, generator)
    return _bernoulli_of_number.apply(input, created(drawn, input.array.shape, draw))


def _bernoulli_of_sizes(p: float, like: Tensor, generator: Any) -> Callable[..., Any]:
    """What makes an array of sizes, of the dtype and for the device of a tensor, of ones and zeros
    of one probability.
    """
    dtype, home = like.dtype, like.device.type

    def draw(sizes: tuple[int, ...]) -> Any:
        return shaped(bernoulli_array(sizes, p, generator, home), sizes, dtype)

    return draw


# --- in place -----------------------------------------------------------------------------------

_uniform_written = _redrawn("uniform", "UniformBackward0")
_normal_written = _redrawn("normal_", "NormalBackward0")
_exponential_written = _redrawn("exponential", "ExponentialBackward0")
_cauchy_written = _redrawn("cauchy", "CauchyBackward0")
_geometric_written = _redrawn("geometric", "GeometricBackward0")
_log_normal_written = _redrawn("log_normal", "LogNormalBackward0")
_bernoulli_written = _redrawn("bernoulli_", "BernoulliBackward2")
_bernoulli_each_written = _redrawn("bernoulli_", "BernoulliBackward1")
_between_written = _redrawn("random", "RandomBackward0")
_below_written = _redrawn("random", "RandomBackward1")
_any_written = _redrawn("random", "RandomBackward2")


def _written(self: Tensor, entry: Op, values: Any) -> Tensor:
    """Write drawn values into a tensor."""
    write(self, entry.apply(self, values))
    return self


def _checked(name: str, self: Tensor, generator: Any, **numbers: Any) -> list[float]:
    """The numbers that describe a distribution, after what PyTorch checks before it draws."""
    plain = [plain_float(name, argument.strip("_"), value) for argument, value in numbers.items()]
    check_generator(generator)
    check_inplace(name, self)
    return plain


@method("uniform_", effects=(RANDOM, WRITES))
def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Write uniformly distributed numbers from one bound to the other, exclusive."""
    low, high = _checked("uniform_", self, generator, from_=from_, to=to)
    home = self.device.type
    settings = "uniform_", self.dtype, generator, low, high, home
    values = created(uniform_over, self.array, *settings)
    return _written(self, _uniform_written, values)


@method("normal_", effects=(RANDOM, WRITES))
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Write normally distributed numbers."""
    mean, std = _checked("normal_", self, generator, mean=mean, std=std)
    home = self.device.type
    settings = "normal_", self.dtype, generator, mean, std, home
    values = created(normal_over, self.array, *settings)
    return _written(self, _normal_written, values)


@method("exponential_", effects=(RANDOM, WRITES))
def exponential_(self: Tensor, lambd: float = 1, *, generator: Any = None) -> Tensor:
    """Write exponentially distributed numbers of the given rate. Raises E204 unless that is
    positive.
    """
    (lambd,) = _checked("exponential_", self, generator, lambd=lambd)
    check_floating("exponential_", self, "RuntimeError")
    return _redraw(self, generator, _exponential_written, _exponential, lambd)


def _exponential(source: Callable[[], Generator], count: int, rate: float) -> Any:
    if not rate > 0:
        raise runtime_error(
            f"exponential_(): the rate {rate} is not positive",
            text=f"exponential_ expects lambda > 0.0, but found lambda={rate:g}",
        )
    return source().exponential(count) / rate


def _redraw(
    self: Tensor, generator: Any, entry: Op, draw: Callable[..., Any], *numbers: float
) -> Tensor:
    """Write so many numbers as a generator draws into a tensor, of a distribution that `numbers`
    describe: `draw` checks them before it asks for the generator.
    """
    settings = self.dtype, self.device.type, generator
    return _written(self, entry, created(_redrawn_over, self.array, draw, *settings, *numbers))


def _redrawn_over(
    array: Any, draw: Callable[..., Any], dtype: DType, home: str, generator: Any, *numbers: float
) -> Any:
    def drawn(sizes: tuple[int, ...]) -> Any:
        source = partial(generator_of, generator, home)
        return shaped(draw(source, prod(sizes), *numbers), sizes, dtype)

    return drawn_over(array, drawn)


@method("cauchy_", effects=(RANDOM, WRITES))
def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Tensor:
    """Write numbers of a Cauchy distribution. Raises E204 unless `sigma` is positive.

    Example: tensor([0.5, 1., 2.]).cauchy_()
    """
    median, sigma = _checked("cauchy_", self, generator, median=median, sigma=sigma)
    check_floating("cauchy_", self, "RuntimeError")
    return _redraw(self, generator, _cauchy_written, _cauchy, median, sigma)


def _cauchy(source: Callable[[], Generator], count: int, median: float, sigma: float) -> Any:
    if not sigma > 0:
        raise runtime_error(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    uniform = source().uniform(count, np.dtype(np.float64))
    return median + sigma * np.tan(np.pi * (uniform - 0.5))


@method("geometric_", effects=(RANDOM, WRITES))
def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Write how many trials it takes until one of probability p succeeds. Raises E204 unless p is
    between 0 and 1.

    Example: tensor([0.5, 1., 2.]).geometric_(0.5)
    """
    (p,) = _checked("geometric_", self, generator, p=p)
    return _redraw(self, generator, _geometric_written, _geometric, p)


def _geometric(source: Callable[[], Generator], count: int, p: float) -> Any:
    if not 0 < p < 1:
        raise runtime_error(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return np.ceil(np.log(source().uniform(count, np.dtype(np.float64))) / np.log1p(-p))


@method("log_normal_", effects=(RANDOM, WRITES))
def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Any = None) -> Tensor:
    """Write the exponentials of normally distributed numbers. Raises E204 unless `std` is positive.

    Example: tensor([0.5, 1., 2.]).log_normal_()
    """
    mean, std = _checked("log_normal_", self, generator, mean=mean, std=std)
    check_floating("log_normal_", self, "RuntimeError")
    return _redraw(self, generator, _log_normal_written, _log_normal, mean, std)


def _log_normal(source: Callable[[], Generator], count: int, mean: float, std: float) -> Any:
    if not std > 0:
        raise runtime_error(f"log_normal_ expects std > 0.0, but found std={std}")
    return np.exp(source().normal(count, np.dtype(np.float64), mean, std, in_blocks=False))


@method("bernoulli_", effects=(RANDOM, WRITES))
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Write ones with probability p, a number or a tensor of probabilities, and zeros elsewhere."""
    if not isinstance(p, Tensor):
        check_number("bernoulli_", "p", p)
    check_generator(generator)
    check_inplace("bernoulli_", self, p)
    check_dtype("bernoulli_", self.dtype, COMPLEX)
    if isinstance(p, Tensor):
        values = _bernoulli_each(p, self.array.shape, self.dtype, generator)
        return _written(self, _bernoulli_each_written, values)
    return _redraw(self, generator, _bernoulli_written, _bernoulli, p)


def _bernoulli(source: Callable[[], Generator], count: int, p: float) -> Any:
    check_probability(p)
    return source().uniform(count, np.dtype(np.float64)) < p


_SPANS = {
    dtypes.boolean: 2,
    dtypes.uint8: 2**8,
    dtypes.int8: 2**7,
    dtypes.int16: 2**15,
    dtypes.int32: 2**31,
    dtypes.int64: 2**63,
    dtypes.float16: 2**11 + 1,
    dtypes.bfloat16: 2**8 + 1,
    dtypes.float32: 2**24 + 1,
    dtypes.float64: 2**53 + 1,
}
"""How many integers from 0 on each dtype holds exactly."""


_NO_COMPLEX = dtype_names("complex", raises="RuntimeError")


@method("random_", effects=(RANDOM, WRITES))
def random_(self: Tensor, from_: Any = None, to: Any = None, *, generator: Any = None) -> Tensor:
    """Write integers below a bound, `random_(to)`, or from one bound up to another; without bounds
    any that the dtype holds exactly.
    """
    if from_ is not None:
        from_ = plain_integer("random_", "from", from_)
    if to is not None:
        to = plain_integer("random_", "to", to)
    check_generator(generator)
    check_inplace("random_", self, *(b for b in (from_, to) if b is not None))
    check_dtype("random_", self.dtype, COMPLEX if from_ is None else _NO_COMPLEX)
    dtype, home = self.dtype, self.device.type
    if from_ is None:
        bits = 64 if dtype.itemsize == 8 else 32
        span = _SPANS[dtype]
        return _redraw(
            self, generator, _any_written, lambda source, n: source().integers(0, span, n, bits)
        )
    low, high = (0, from_) if to is None else (from_, to)

    def draw(sizes: tuple[int, ...]) -> Any:
        return integer_array("random_", low, high, sizes, dtype, generator, home)

    values = created(drawn_over, self.array, draw)
    return _written(self, _below_written if to is None else _between_written, values)


# --- choices ------------------------------------------------------------------------------------


@function("multinomial", method=True, effects=(CHECKS, RANDOM))
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Positions chosen with the probabilities that the rows hold, up to a factor; int64.

    Raises E204 for probabilities that are negative, infinite or nan, or sum to 0, and where more
    samples are asked for than can be drawn without replacement.

    Example: torch.multinomial(tensor([0.2, 0.8]), 1)
    """
    check_floating("multinomial", input, "RuntimeError")
    chances = input.array
    if chances.ndim not in (1, 2):
        raise shape_error(
            "multinomial() takes a vector or a matrix of probabilities",
            text="prob_dist must be 1 or 2 dim",
        )
    if num_samples < 1 or (not replacement and num_samples > chances.shape[-1]):
        raise runtime_error(
            f"multinomial(): {num_samples} samples of {chances.shape[-1]} categories",
            text="cannot sample n_sample <= 0 samples"
            if num_samples < 1
            else "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
        )
    home = input.device.type
    return Tensor(created(_positions, chances, num_samples, replacement, generator, home))


def _positions(
    chances: Any, num_samples: int, replacement: bool, generator: Any, device: str
) -> Any:
    """An array of positions that are chosen with the probabilities of rows."""
    if not np.all(np.isfinite(chances) & (chances >= 0)) or not np.all(np.sum(chances, -1)):
        text = "probability tensor contains either `inf`, `nan` or element < 0"
        if np.all(np.isfinite(chances) & (chances >= 0)):
            text = "invalid multinomial distribution (sum of probabilities <= 0)"
        raise runtime_error("multinomial(): a row holds no probabilities", text)
    source = generator_of(generator, device)
    if not replacement or num_samples == 1:
        # The positions that a race of exponential waiting times reaches first.
        waits = drawn_over(chances, lambda sizes: source.exponential(prod(sizes)).reshape(sizes))
        keys = -(chances / waits.astype(chances.dtype))
        order = np.argsort(keys, axis=-1, kind="stable")[..., :num_samples].astype(np.int64)
        if num_samples > 1 and chances.shape[-1] <= selection.LONGEST:
            # What has no chance never arrives: it comes last, in the order of PyTorch's `topk`.
            for row in np.argwhere(np.count_nonzero(chances, axis=-1) < num_samples).tolist():
                order[tuple(row)] = selection.select(keys[tuple(row)], num_samples)
        return order
    rows = np.atleast_2d(chances)
    sums = np.cumsum(rows, axis=-1)
    drawn = source.uniform(len(rows) * num_samples, np.dtype(np.float64))
    drawn = drawn.reshape(len(rows), num_samples)
    positions = [
        np.searchsorted(row / row[-1], values, side="left")
        for row, values in zip(sums, drawn, strict=True)
    ]
    return np.array(positions, np.int64).reshape(*chances.shape[:-1], num_samples)


# --- drawn until one is accepted ------------------------------------------------------------------


def _uniform(generator: Generator) -> float:
    return float(generator.uniform(1, np.float64)[0])


def _check_drawing(*tensors: Tensor) -> None:
    """Inside `vmap` examples draw one after the other; raises E204 where its mode allows none."""
    batch = active.state.batch
    if batch is not None:
        for tensor in tensors:
            batch.refuse_same_draws(tensor)
        batch.check_drawing()


def check_each(name: str, *tensors: Tensor) -> None:
    """Raise E203, E205 for tensors of which numbers are drawn one by one, and count them."""
    if any(tensor.device.type != "cpu" for tensor in tensors):
        raise GradcliError("E205", f"{name}() draws on the CPU only", help="move it: `x.cpu()`")
    for tensor in tensors:
        check_dtype(name, tensor.dtype, COMPLEX)
    charge_steps(prod(np.broadcast_shapes(*[tensor.array.shape for tensor in tensors])))


def _each(draw: Callable[..., float], generator: Any, dtype: Any, *parameters: Any) -> Any:
    """One number for each element, in row order."""
    arrays = np.broadcast_arrays(*[np.asarray(each, np.float64) for each in parameters])
    source = generator_of(generator)
    rows = zip(*[array.ravel().tolist() for array in arrays], strict=True)
    drawn = np.array([draw(source, *row) for row in rows], np.float64)
    return drawn.reshape(arrays[0].shape).astype(dtype)[()]


# --- gamma ----------------------------------------------------------------------------------------

_THIRD, _SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))


def _gamma(source: Generator, alpha: float) -> float:
    """Marsaglia and Tsang's method; a power of a uniform number lifts alpha above 1."""
    if not 0 < alpha < math.inf:
        return alpha if alpha == 0 else math.nan
    scale = 1.0
    if alpha < 1:
        scale = (1 - _uniform(source)) ** (1 / alpha)
        alpha += 1
    d = alpha - _THIRD
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = float(source.normal(1, np.dtype(np.float64))[0])
            y = 1 + c * x
        v = y * y * y
        u = 1 - _uniform(source)
        square = x * x
        if u < 1 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v


def standard_gamma(concentration: Any, dtype: Any) -> Any:
    """An array of gamma distributed numbers of rate 1, for an array of concentrations."""
    return _each(_gamma, None, dtype, concentration)


# --- counts ---------------------------------------------------------------------------------------


def _poisson(source: Generator, rate: float) -> float:
    if rate == 0:
        return 0.0
    if rate < 10:
        limit, product, count = math.exp(-rate), 1.0, 0
        while (product := product * _uniform(source)) > limit:
            count += 1
        return float(count)
    return _poisson_large(source, rate)


def _poisson_large(source: Generator, rate: float) -> float:
    """Hörmann's transformed rejection (PTRS)."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = _uniform(source) - 0.5, _uniform(source)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= squeeze:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        height = math.log(v) + math.log(inverse) - math.log(a / (us * us) + b)
        if height <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return float(k)


def _binomial(source: Generator, count: float, prob: float) -> float:
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return count
    few = min(prob, 1 - prob)
    drawn = (_binomial_large if count * few >= 10 else _binomial_small)(source, count, few)
    return drawn if prob <= 0.5 else count - drawn


def _binomial_small(source: Generator, count: float, prob: float) -> float:
    """Geometric gaps between successes."""
    reached, successes, log_failure = 0.0, 0, math.log1p(-prob)
    while True:
        u = _uniform(source)
        reached += math.ceil(math.log(u) / log_failure) if u > 0 else math.inf
        if reached > count:
            return float(successes)
        successes += 1


def _stirling_tail(k: float) -> float:
    return math.lgamma(k + 1) - (
        (k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi)
    )


def _binomial_large(source: Generator, count: float, prob: float) -> float:
    """Hörmann's transformed rejection (BTRS)."""
    deviation = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c, squeeze, r = count * prob + 0.5, 0.92 - 4.2 / b, prob / (1 - prob)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * prob)
    while True:
        u, v = _uniform(source) - 0.5, _uniform(source)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= squeeze:
            return float(k)
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(r * (count - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


@function("poisson", effects=(RANDOM,))
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Counts of a Poisson distribution, each element the rate of one; its gradient is 0.

    Raises E204 for negative rates.
    """
    _check_drawing(input)
    check_each("poisson", input)
    return _poisson_of.apply(input, created(_counts, input.array, generator))


def _counts(rates: Any, generator: Any) -> Any:
    if not np.all(rates >= 0):
        raise runtime_error("invalid Poisson rate, expected rate to be non-negative")
    return _each(_poisson, generator, rates.dtype, rates)


@function("binomial", effects=(RANDOM,))
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Counts of successes in `count` trials of probability `prob`.

    Example: torch.binomial(tensor([5., 9.]), tensor([0.5, 0.2]))
    """
    _check_drawing(count, prob)
    check_each("binomial", count, prob)
    return Tensor(created(_successes, count.array, prob.array, generator))


def _successes(counts: Any, probs: Any, generator: Any) -> Any:
    return _each(_binomial, generator, probs.dtype, counts, probs)
