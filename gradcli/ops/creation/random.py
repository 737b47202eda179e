"""Random tensors: `manual_seed rand randn randint randperm rand_like randint_like`.

Seeded alike, they hold the numbers that PyTorch draws on the CPU. A program that seeds nothing
starts from a fixed seed, so that two runs of it agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DType
from gradcli.arrays.layout.strides import inverse_order, outermost_first
from gradcli.arrays.random.generator import (
    OF_TENSORS,
    Generator,
    session_seed,
)
from gradcli.arrays.scalars import finfo, iinfo
from gradcli.arrays.threads import over_tiles
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error, type_error, value_error
from gradcli.ops.binding.arguments import one_by_one
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.creation.fill import (
    check_count,
    checked_dtype,
    checked_sizes,
    chosen_device,
    tensor_of,
)
from gradcli.ops.creation.settings import by_rows
from gradcli.ops.definition.doc import RANDOM, STATE, describe, effects
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.state import active, created

# --- generators ---------------------------------------------------------------------------------


modules["torch"]["Generator"] = Generator


def get_state(generator: Generator) -> Tensor:
    """Where a generator stands, in bytes, as PyTorch writes it down."""
    return Tensor(np.frombuffer(generator.state_bytes(), np.uint8).copy())


def set_state(generator: Generator, new_state: Any) -> Generator:
    """Go back to where a generator stood; raises E202, E204 for what is no state of one."""
    if not isinstance(new_state, Tensor) or new_state.array.dtype != np.uint8:
        raise type_error("RNG state must be a torch.ByteTensor")
    try:
        generator.restore_bytes(new_state.array.tobytes())
    except ValueError as error:
        raise runtime_error(str(error)) from error
    return generator


OF_TENSORS.update(get_state=get_state, set_state=set_state)


def check_generator(generator: Any) -> None:
    """Raise E202 for what is neither a generator nor None."""
    if generator is not None and not isinstance(generator, Generator):
        raise type_error(f"generator must be a torch.Generator, not {type(generator).__name__}")


def generator_of(generator: Any, device: str = "cpu") -> Generator:
    """The generator given, or the session's own for None, on the CPU or on a GPU.

    Raises E202 for what is no generator, and E204 for one of another device.
    """
    if generator is None:
        generators = active.state.generators
        if device not in generators:
            # One that is made late begins with the seed of the session's first one.
            seed = generators["cpu"].seed_value if "cpu" in generators else session_seed()
            generators[device] = Generator(device).manual_seed(seed)
        return generators[device]
    check_generator(generator)
    if generator.device.type != device:
        raise runtime_error(
            f"numbers on {device} cannot come from a generator on {generator.device}",
            help=f"make it there: `torch.Generator('{device}')`",
        )
    return generator


def manual_seed_of(device: str, seed: Any) -> Generator:
    """Start one of the session's generators again from a seed; returns it."""
    number = int(seed)
    if not -(2**63) <= number < 2**64:
        raise value_error(
            f"manual_seed(): {number} does not fit 64 bits",
            text="Overflow when unpacking long long",
        )
    return generator_of(None, device).manual_seed(number)


def seed_of(device: str) -> int:
    """The seed that one of the session's generators started from."""
    return generator_of(None, device).initial_seed()


@function("manual_seed", effects=(STATE,))
def manual_seed(seed: Any) -> Generator:
    """Start the session's generators again from a seed; returns the CPU's.

    Example: torch.manual_seed(3)
    """
    generator = manual_seed_of("cpu", seed)
    if "cuda" in active.state.generators:
        manual_seed_of("cuda", seed)
    return generator


@function("initial_seed")
def initial_seed() -> int:
    """The seed that the session's generator started from."""
    return generator_of(None).initial_seed()


@function("seed", effects=(STATE,))
def seed() -> int:
    """Start the session's generator again from a seed that the system draws; returns the seed."""
    return generator_of(None).seed()


# --- draws --------------------------------------------------------------------------------------


_KERNELS = dict.fromkeys(("rand", "rand_like", "uniform_"), "check_uniform_bounds")
"""What PyTorch calls the kernels that draw, where not `normal_kernel_cpu`."""


def check_drawn_dtype(name: str, dtype: DType) -> None:
    if dtype.category not in ("float", "complex"):
        raise dtype_error(
            f"{name}() draws floating numbers, not {dtype}",
            text=f'"{_KERNELS.get(name, "normal_kernel_cpu")}" not implemented for'
            f" '{dtype.scalar_type}'",
            raises="NotImplementedError",
        )


def shaped(values: Any, sizes: tuple[int, ...], dtype: DType) -> Any:
    return values.reshape(sizes).astype(dtype.numpy_dtype, copy=False)[()]


def drawn_over(array: Any, draw: Callable[[tuple[int, ...]], Any]) -> Any:
    """What `draw` makes of an array's sizes, in the order in which the array lies in memory: that
    is how PyTorch fills it. Inside `vmap` a batched array where each example draws for itself.
    """
    if active.state.batch is not None:
        return active.state.batch.drawn(array.shape, draw, array)
    if array.ndim < 2 or array.flags.c_contiguous:
        return draw(array.shape)
    order = outermost_first(array.shape, array.strides)
    values = draw(tuple(array.shape[dim] for dim in order))
    return values.transpose(inverse_order(order))


def drawn(sizes: tuple[int, ...], draw: Callable[[tuple[int, ...]], Any]) -> Any:
    """What `draw` makes of sizes; inside `vmap` as `drawn_over`."""
    batch = active.state.batch
    return draw(sizes) if batch is None else batch.drawn(sizes, draw)


def _check_bounds(name: str, dtype: DType, limits: tuple[Any, Any], bounds: dict[str, Any]) -> None:
    """Raise E204 for a bound of what is drawn, by PyTorch's name for it, that a dtype does not
    hold.
    """
    least, most = limits
    for bound, value in bounds.items():
        if not least <= value <= most:
            raise runtime_error(
                f"{name}(): {dtype} does not hold {value}",
                text=f"{bound} is out of bounds for {dtype.c_name}",
            )


def uniform_array(
    name: str,
    sizes: tuple[int, ...],
    dtype: DType,
    generator: Any,
    low: float,
    high: float,
    device: str = "cpu",
) -> Any:
    check_drawn_dtype(name, dtype)
    real = dtype.to_real() if dtype.is_complex else dtype
    limit = finfo(real).max
    _check_bounds(name, real, (-limit, limit), {"from": low, "to": high})
    if low > high:
        raise runtime_error(
            f"{name} expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > limit:
        raise runtime_error(
            f"{name}(): {real} does not hold the distance from {low:g} to {high:g}",
            text=f"{name} expects to-from <= std::numeric_limits<{real.scalar_type}>::max(), but"
            f" found to={high:g} and from={low:g} which result in to-from to exceed the limit",
        )
    if dtype.is_complex:
        parts = uniform_array(name, (*sizes, 2), real, generator, low, high, device)
        return parts.view(dtype.numpy_dtype)[..., 0].copy()[()]
    source = generator_of(generator, device)
    fraction = as_drawn(dtype.numpy_dtype, partial(source.uniform, prod(sizes)))
    if low == 0 and high == 1:
        return shaped(fraction, sizes, dtype)
    # PyTorch multiplies and adds with one rounding; here that is done in the next wider format.
    kind = fraction.dtype.type
    wide: Any = np.float64 if kind is np.float32 or device != "cpu" else np.longdouble
    scale, start = wide(kind(high) - kind(low)), wide(kind(low))

    def stretch(tile: Any) -> None:
        values = fraction[tile].astype(wide)
        values *= scale
        values += start
        fraction[tile] = values

    if type(fraction) is np.ndarray:
        over_tiles(fraction.shape, stretch)
    else:
        stretch(slice(None))
    return shaped(fraction, sizes, dtype)


def normal_array(
    name: str,
    sizes: tuple[int, ...],
    dtype: DType,
    generator: Any,
    mean: float,
    std: float,
    device: str = "cpu",
    in_blocks: bool = True,
) -> Any:
    check_drawn_dtype(name, dtype)
    if std < 0:
        raise runtime_error(
            f"{name}(): the standard deviation {std} is negative",
            f"normal expects std >= 0.0, but found std {std:g}",
        )
    if dtype.is_complex:
        # Each part has half of the variance, and the whole mean, as in PyTorch.
        deviation = std / math.sqrt(2)
        real = dtype.to_real()
        size = (*sizes, 2)
        parts = normal_array(name, size, real, generator, mean, deviation, device, in_blocks)
        return parts.view(dtype.numpy_dtype)[..., 0][()]
    source, count = generator_of(generator, device), prod(sizes)
    drawn = as_drawn(
        dtype.numpy_dtype, lambda kind: source.normal(count, kind, mean, std, in_blocks)
    )
    return shaped(drawn, sizes, dtype)


def as_drawn(kind: Any, draw: Callable[[Any], Any]) -> Any:
    """Random numbers of a dtype of NumPy's, which `draw` is called with: float64 ones that float32
    would draw, where the session's draws are narrow.
    """
    if active.state.narrow_draws and kind == np.float64:
        return draw(np.dtype(np.float32)).astype(np.float64)
    return draw(kind)


def uniform_over(
    array: Any, name: str, dtype: DType, generator: Any, low: float, high: float, device: str
) -> Any:
    return drawn_over(
        array, lambda sizes: uniform_array(name, sizes, dtype, generator, low, high, device)
    )


def normal_over(
    array: Any,
    name: str,
    dtype: DType,
    generator: Any,
    mean: float,
    std: float,
    device: str,
    fresh: bool = False,
) -> Any:
    """Normal numbers over an array, or over a `fresh` one like it, which has no gaps: PyTorch draws
    in blocks where what it fills lies in row order.
    """
    blocks = array.ndim == 0 or array.flags.c_contiguous
    if fresh and not blocks:
        order = outermost_first(array.shape, array.strides)
        long = [dim for dim in order if array.shape[dim] != 1]
        blocks = long == sorted(long)
    return drawn_over(
        array,
        lambda sizes: normal_array(name, sizes, dtype, generator, mean, std, device, blocks),
    )


def check_probability(p: float) -> None:
    """Raise E204 unless a number lies between 0 and 1."""
    if not 0 <= p <= 1:
        raise runtime_error(f"bernoulli(): {p} is no probability")


def bernoulli_array(
    sizes: tuple[int, ...], p: float, generator: Any = None, device: str = "cpu"
) -> Any:
    """Truth values that hold with probability p: what dropout draws its mask from."""
    check_probability(p)
    fraction = generator_of(generator, device).uniform(prod(sizes), np.dtype(np.float64))
    return (fraction < p).reshape(sizes)


# --- new tensors --------------------------------------------------------------------------------


def _drawn(name: str, draw: Any, draw_over: Any) -> None:
    """`NAME` and `NAME_like`: tensors of numbers from 0 to 1, or of mean 0 and deviation 1."""

    def new(
        *sizes: Any,
        size: Any = None,
        generator: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        if not sizes and size is None:
            raise GradcliError("E201", f"{name}() needs the sizes of the tensor")
        plain = checked_sizes(name, one_by_one(name, "size", sizes, size))
        target = checked_dtype(name, dtype, dtypes.default_dtype())
        target_device = chosen_device(name, device)
        settings = target, generator, 0.0, 1.0, target_device.type
        if active.state.batch is None:
            array = created(draw, name, plain, *settings)
        else:
            array = drawn(plain, lambda sizes: draw(name, sizes, *settings))
        return tensor_of(name, array, target_device, requires_grad)

    def like(
        input: Tensor,
        *,
        generator: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        target = checked_dtype(name, dtype, input.dtype)
        target_device = input.device if device is None else chosen_device(name, device)
        if by_rows(f"{name}_like", memory_format):
            input = contiguous(input)
        array = draw_over(input.array, name, target, generator, 0.0, 1.0, target_device.type)
        return tensor_of(name, array, target_device, requires_grad)

    words = (
        "uniformly distributed numbers in [0, 1)" if name == "rand" else "normal numbers of mean 0"
    )
    describe(new, f"A tensor of {words}.", f"torch.{name}(2, 3)")
    describe(
        like,
        f"A tensor of {words}, of another one's sizes and dtype.",
        f"torch.{name}_like(tensor([0.5, 1., 2.]))",
    )
    for body, function_name in ((new, name), (like, f"{name}_like")):
        function(function_name)(effects(RANDOM)(body))


_drawn("rand", uniform_array, uniform_over)
_drawn("randn", normal_array, partial(normal_over, fresh=True))


def _unrounded(low: int, high: int, dtype: DType) -> tuple[int, int]:
    """The bounds moved inwards, where a floating dtype rounds the number next to one past it."""
    number, digits = dtype.numpy_dtype.type, 1 - round(math.log2(finfo(dtype).eps))
    first, last = int(number(low + 1)), int(number(high - 1))
    if first < low:
        low = first + (1 << (abs(low + 1).bit_length() - digits))
    if high <= last < 2**63:
        high = last - (1 << ((high - 1).bit_length() - digits))
    if low >= high:
        raise runtime_error(
            f"{dtype} rounds every number between the bounds past them",
            text="random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but"
            f" got from={low} >= to={high}",
        )
    return low, high


def integer_array(
    name: str,
    low: Any,
    high: Any,
    sizes: tuple[int, ...],
    dtype: DType,
    generator: Any,
    device: str = "cpu",
) -> Any:
    low, high = int(low), int(high)
    if low >= high:
        raise runtime_error(
            f"{name}(): there is no integer from {low} up to {high}, exclusive",
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}",
        )
    limits: Any = None
    if dtype.category != "bool":
        limits = iinfo(dtype) if dtype.category == "int" else finfo(dtype)
    held = (limits.min, limits.max) if limits else (0, 1)
    _check_bounds(name, dtype, held, {"from": low, "to - 1": high - 1})
    if dtype.category == "float":
        low, high = _unrounded(low, high, dtype)
    drawn = generator_of(generator, device).integers(low, high - low, prod(sizes))
    return shaped(drawn, sizes, dtype)


def _bounds(bounds: Sequence[Any], low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds of integers, given in order or by name; raises E201 for none or too many."""
    if len(bounds) == 2:
        low, high = bounds
    elif len(bounds) == 1:
        low, high = (low, bounds[0]) if high is None else (bounds[0], high)
    if high is None or len(bounds) > 2:
        raise GradcliError("E201", "random integers need an upper bound, perhaps a lower one")
    return low, high


@function("randint", effects=(RANDOM,))
def randint(
    *bounds_and_size: Any,
    low: Any = 0,
    high: Any = None,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers from `low`, 0 if not given, up to `high`, exclusive: `randint(high, size)` or
    `randint(low, high, size)`.

    Example: torch.randint(0, 10, (3,))
    """
    bounds = list(bounds_and_size)
    if size is None and bounds:
        size = bounds.pop()
    first, last = _bounds(bounds, low, high)
    if not isinstance(size, (tuple, list)):
        raise GradcliError("E201", "randint() needs its sizes in one tuple")
    target = checked_dtype("randint", dtype, dtypes.int64)
    check_dtype("randint", target, dtype_names("complex", raises="RuntimeError"))
    sizes = checked_sizes("randint", (size,))
    target_device = chosen_device("randint", device)
    array = drawn(
        sizes,
        lambda sizes: integer_array(
            "randint", first, last, sizes, target, generator, target_device.type
        ),
    )
    return tensor_of("randint", array, target_device, requires_grad)


@function("randint_like", effects=(RANDOM,))
def randint_like(
    input: Tensor,
    *bounds: Any,
    low: Any = 0,
    high: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Integers from `low` up to `high`, exclusive, in a tensor of another one's sizes and dtype.

    Example: torch.randint_like(tensor([0.5, 1., 2.]), 7)
    """
    name = "randint_like"
    first, last = _bounds(bounds, low, high)
    target = checked_dtype(name, dtype, input.dtype)
    target_device = input.device if device is None else chosen_device(name, device)
    if by_rows(name, memory_format):
        input = contiguous(input)
    array = drawn_over(
        input.array,
        lambda sizes: integer_array(name, first, last, sizes, target, None, target_device.type),
    )
    return tensor_of(name, array, target_device, requires_grad)


@function("randperm", effects=(RANDOM,))
def randperm(
    n: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The integers from 0 up to n, exclusive, in random order.

    Example: torch.randperm(3)
    """
    (count,) = checked_sizes("randperm", (n,))
    check_count("randperm", count)
    target = checked_dtype("randperm", dtype, dtypes.int64)
    check_dtype("randperm", target, dtype_names("bool", "complex"))
    target_device = chosen_device("randperm", device)
    order = generator_of(generator, target_device.type).permutation(count)
    return tensor_of("randperm", shaped(order, (count,), target), target_device, requires_grad)
