"""Lazy arrays: large pointwise results that are computed together, in one pass over memory.

A pointwise op on a large array does not run at once: its result is a `LazyArray`, which has a
shape, a dtype, a kernel and its operands. Rules read lazy arrays like any other, so a backward pass
extends the same plan; `gradcli.arrays.fusion.executor` runs it over tiles that fit the cache, on a
thread per core. Values are those of the unfused ops, bit for bit; sums differ in the order of their
additions.

A LazyArray stands in for an ndarray wherever one is read: NumPy's functions, indexing, attributes
and assignment compute it first. A write to memory that a plan still reads is announced at
the write barrier, which gives the plan a copy of the old values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradcli.arrays.backend import device_of, module_of
from gradcli.arrays.fusion.tile_kernels import cast_tile, choose_tile, copy_tile
from gradcli.state import active

# --- the write barrier ----------------------------------------------------------------------------


def hold(array: Any) -> None:
    """Register a lazy array whose memory plans read, so that a write leaves them the old values."""
    if active.state.pending_readers is None:
        active.state.pending_readers = WeakValueDictionary()
    active.state.pending_readers[id(array.value)] = array


def held(array: Any) -> Any:
    """The registered lazy array of an ndarray, None if no plan reads it."""
    readers = active.state.pending_readers
    reader = None if readers is None else readers.get(id(array))
    return None if reader is None or reader.value is not array else reader


def write_barrier(array: Any) -> None:
    """Copy the values that plans read from an ndarray's memory, which is about to be
    overwritten.
    """
    readers = active.state.pending_readers
    if not readers:
        return
    device = device_of(array)
    for key, reader in list(readers.items()):
        if device_of(reader.value) == device and np.may_share_memory(reader.value, array):
            reader.value = reader.value.copy()
            del readers[key]


# --- lazy arrays ----------------------------------------------------------------------------------


LONGEST_CHAIN = 60
"""The longest chain of ops in one plan; the next op computes it first."""

LONG = 4096
"""From here on, adding float32 rows one after another visibly loses digits."""


def _not_installed(arrays: Sequence[Any]) -> None:
    raise RuntimeError("gradcli.arrays.fusion.executor has to be imported before arrays are read")


evaluate: Callable[[Sequence[Any]], None] = _not_installed
"""Computes the lazy arrays among some arrays; installed by `gradcli.arrays.fusion.executor`."""

Kernel = Callable[..., Any]
"""A ufunc, or a function with the parameters `(*operands, out)`, that fills a tile."""


class LazyArray(NDArrayOperatorsMixin):
    """An array that is computed when its values are needed; its operators are NumPy's ufuncs.

    Attributes:
        shape: its sizes.
        dtype: its NumPy dtype.
        value: the ndarray once it is computed.
        length: the length of the chain of ops up to this one.
        unshared: whether no owner has taken its values yet.
    """

    __slots__ = ("__weakref__", "dtype", "length", "shape", "unshared", "value")

    # A slot of NumPy's protocol: scalars and arrays leave mixed operations to `__array_ufunc__`.
    __array_priority__: ClassVar[float] = 1000.0

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], length: int) -> None:
        self.shape = shape
        self.dtype = dtype
        self.length = length
        self.value: Any = None
        self.unshared = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def device(self) -> Any:
        """Where the values are: `"cpu"`, or a GPU of CuPy's."""
        array: Any = self
        while type(array) in LAZY:
            if array.value is not None:
                array = array.value
            elif type(array) is Constant:
                array = array.number
            else:
                array = next(each for each in array.operands if type(each) in LAZY)
        return array.device

    def force(self) -> Any:
        """The values, an ndarray, or a NumPy scalar for no dimensions; computed at the first call.

        Raises MemoryError where there is no room for them.
        """
        if self.value is None:
            evaluate([self])
        # The caller may write to this memory while plans still read this array.
        hold(self)
        return self.value

    # --- plans ----------------------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        return pointwise(cast_tile, (self,), self.shape, wanted)

    def copy(self) -> Any:
        """The same values in memory of their own."""
        return pointwise(copy_tile, (self,), self.shape, self.dtype)

    def claimed(self) -> Any:
        """Values that the caller may own: this array at the first call, then copies."""
        if self.unshared:
            self.unshared = False
            return self
        return self.copy()

    def reduced(self, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
        """The sum over axes, all for None, in the dtype of the elements.

        Partial sums are added in double precision.
        """
        over = tuple(range(self.ndim)) if axes is None else axes
        shape = tuple(
            1 if axis in over else size
            for axis, size in enumerate(self.shape)
            if keepdims or axis not in over
        )
        return Sum(self, over, shape)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        elementwise = method == "__call__" and ufunc.nout == 1 and ufunc.signature is None
        if elementwise and not keywords:
            return apply(ufunc, inputs)
        return getattr(ufunc, method)(*map(forced, inputs), **_forced_keywords(keywords))

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        if function is np.result_type:
            return np.result_type(*map(_weak, args))
        if function is np.where and len(args) == 3 and not keywords:
            return choose(*args)
        if function is np.broadcast_to and self.size == 1 and len(args) == 2:
            return np.broadcast_to(self.force(), args[1])
        return function(*[_forced_deep(arg) for arg in args], **_forced_keywords(keywords))

    __hash__ = object.__hash__

    # --- all other uses of an array need its values ----------------------------------------------

    @property  # type: ignore[misc]  # object's can be set
    def __class__(self) -> Any:
        # `isinstance` checks for ndarray accept it.
        return np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.force(), dtype=dtype, copy=copy)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array_"):  # protocols that NumPy looks for
            raise AttributeError(name)
        return getattr(self.force(), name)

    def __getitem__(self, index: Any) -> Any:
        return self if index == () and type(index) is tuple else self.force()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.force()[index] = forced(value)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter(self.force())

    def __bool__(self) -> bool:
        return bool(self.force())

    def __float__(self) -> float:
        return float(self.force())

    def __int__(self) -> int:
        return int(self.force())

    def __repr__(self) -> str:
        return repr(self.force())


class Source(LazyArray):
    """Memory that a plan reads: an ndarray as it is."""

    __slots__ = ()

    def __init__(self, array: Any) -> None:
        super().__init__(array.shape, array.dtype, 0)
        self.value = array


class Constant(LazyArray):
    """One number for all elements, as `expand` makes of the gradient of a sum.

    Attributes:
        number: the NumPy scalar.
    """

    __slots__ = ("number",)

    def __init__(self, number: Any, shape: tuple[int, ...]) -> None:
        super().__init__(shape, number.dtype, 0)
        self.number = number

    def force(self) -> Any:
        """The values as memory that may be written to."""
        if self.value is None:
            self.value = module_of(self.number).full(self.shape, self.number)
        return super().force()


class Pointwise(LazyArray):
    """The result of a kernel, computed element by element from its operands.

    Attributes:
        kernel: fills a tile of the result.
        operands: lazy arrays, whose shapes broadcast to this one's, and numbers.
    """

    __slots__ = ("kernel", "operands")

    def __init__(
        self,
        kernel: Kernel,
        operands: tuple[Any, ...],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        length: int,
    ) -> None:
        super().__init__(shape, dtype, length)
        self.unshared = True
        self.kernel = kernel
        self.operands = operands


class Sum(LazyArray):
    """A sum over axes. It stays lazy when a backward pass begins, so that both share one pass.

    Attributes:
        operands: the one lazy array that is summed.
        axes: the axes that are summed over.
    """

    __slots__ = ("axes", "operands")

    def __init__(self, operand: LazyArray, axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        super().__init__(shape, operand.dtype, operand.length + 1)
        self.unshared = True
        self.operands = (operand,)
        self.axes = axes
        active.state.lazy_sums.add(self)

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        """The sum in another shape, as the gradient of a broadcast operand is asked for."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if prod(sizes) != self.size:  # -1 among them, or a mistake
            return self.force().reshape(sizes, **keywords)
        return Sum(self.operands[0], self.axes, tuple(sizes))


LAZY = frozenset({Source, Constant, Pointwise, Sum})
"""The classes of lazy arrays, for the quickest test."""


def as_lazy(array: Any) -> Any:
    """An array as the start of a plan; unchanged where plans do not support its dtype, or where it
    is not in row order, as the results of plans are.
    """
    if type(array) in LAZY or array.dtype not in _PLANNED:
        return array
    if not any(array.strides):
        return Constant(_first(array), array.shape)
    return source_of(array) if array.flags.c_contiguous else array


def _first(array: Any) -> Any:
    """The first element, a NumPy scalar, or an array of no dimensions on a GPU."""
    return array[(0,) * array.ndim]


_PLANNED = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def forced(value: Any) -> Any:
    """The values of what may be lazy."""
    return value.force() if type(value) in LAZY else value


def source_of(array: Any) -> Any:
    """The Source of an ndarray: the same one while a plan reads it."""
    source = held(array)
    if source is None:
        source = Source(array)
        hold(source)
    return source


# --- making plans -------------------------------------------------------------------------------


def apply(ufunc: Any, inputs: Sequence[Any]) -> Any:
    """The result of a ufunc on operands of which at least one is lazy: a plan, or a Constant where
    all are constant.

    Raises ValueError for shapes that do not broadcast.
    """
    operands = []
    kinds: list[Any] = []
    for value in inputs:
        kind = type(value)
        if kind in LAZY:
            operands.append(value)
            kinds.append(value.dtype)
        elif kind in _NUMBERS:
            operands.append(value)
            kinds.append(kind)
        elif isinstance(value, np.generic):
            operands.append(value)
            kinds.append(value.dtype)
        elif isinstance(value, np.ndarray):
            operands.append(_operand(value))
            kinds.append(value.dtype)
        else:
            return NotImplemented
    if ufunc is np.power and type(inputs[1]) in _NUMBERS and inputs[1] == 2:
        ufunc, operands, kinds = np.square, operands[:1], kinds[:1]  # as NumPy's operator does
    dtype = _result_dtype(ufunc, tuple(kinds))
    if dtype is None:
        return ufunc(*map(forced, inputs))
    shape = _broadcast([o.shape for o in operands if type(o) in LAZY])
    if all(type(o) is Constant for o in operands if type(o) in LAZY):
        numbers = [o.number if type(o) is Constant else o for o in operands]
        return Constant(ufunc(*numbers), shape)
    return pointwise(ufunc, tuple(operands), shape, dtype)


def choose(condition: Any, chosen: Any, other: Any) -> Any:
    """`np.where` of operands of which one is lazy."""
    dtype = np.result_type(*[_weak(value) for value in (chosen, other)])
    operands = tuple(
        _operand(value) if isinstance(value, np.ndarray) else value
        for value in (condition, chosen, other)
    )
    shape = _broadcast([o.shape for o in operands if type(o) in LAZY])
    return pointwise(choose_tile, operands, shape, np.dtype(dtype))


def _operand(array: Any) -> Any:
    if type(array) in LAZY:
        return array
    if array.ndim == 0:
        return array[()]
    return source_of(array) if any(array.strides) else Constant(_first(array), array.shape)


def _weak(value: Any) -> Any:
    """The argument from which NumPy derives a result's dtype: a dtype, or a Python number."""
    return value.dtype if isinstance(value, (np.ndarray, np.generic)) else value


_NUMBERS = frozenset({bool, int, float, complex})


def pointwise(
    kernel: Kernel, operands: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Pointwise:
    """The lazy result of a kernel; operands whose chain would become too long are computed
    first.
    """
    length = 1
    for operand in operands:
        if type(operand) in LAZY and operand.value is None and operand.length >= length:
            length = operand.length + 1
    if length > LONGEST_CHAIN:
        for operand in operands:
            forced(operand)
        length = 1
    return Pointwise(kernel, operands, shape, dtype, length)


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            return np.broadcast_shapes(*shapes)
    return first


_dtypes: dict[tuple[Any, ...], Any] = {}


def _result_dtype(ufunc: Any, kinds: tuple[Any, ...]) -> np.dtype[Any] | None:
    """The dtype of a ufunc's result, None where the ufunc has none for these operands."""
    key = (ufunc, *kinds)
    try:
        return _dtypes[key]
    except KeyError:
        pass
    try:
        types = tuple(int if kind is bool else kind for kind in kinds)
        dtype = ufunc.resolve_dtypes((*types, None))[-1]
    except (TypeError, AttributeError):
        dtype = None
    _dtypes[key] = dtype
    return dtype


def _forced_deep(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_forced_deep(each) for each in value])
    return forced(value)


def _forced_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: _forced_deep(value) for name, value in keywords.items()}
