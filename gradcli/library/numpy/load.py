"""Fills `numpy` and the modules in it, and lets the language know arrays and scalars, with their
methods and data attributes: once, when a program first needs them.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import charge, check_collection
from gradcli.language.objects import borders
from gradcli.language.objects.iteration import Iterator, bounded, drawing
from gradcli.language.objects.methods import METHODS, VALUES
from gradcli.language.objects.types import EXCEPTIONS, by_name, called, names
from gradcli.library.numpy import array as arrays
from gradcli.library.numpy import exchange, functions, random
from gradcli.library.numpy.array import (
    NDARRAY,
    NDArray,
    before_write,
    charge_elements,
    compute,
    cost_of,
    dtype_of,
    in_numpy,
    room,
    session_of,
    unwrap,
    usual,
    wrap,
    written,
)
from gradcli.library.numpy.functions import TABLES, Polynomial, host_arguments
from gradcli.ops.binding import catalogue
from gradcli.ops.creation.data import as_tensor
from gradcli.record import Record

# --- methods and data attributes ------------------------------------------------------------------

_GROWING = frozenset({"dot", "repeat", "take"})
_READING = """
    all any argmax argmin argpartition argsort choose clip compress conj conjugate copy cumprod
    cumsum diagonal dot flatten item max mean min nonzero prod ravel repeat reshape round
    searchsorted squeeze std sum swapaxes take trace transpose var
"""
_WRITING = "fill partition put sort"

_OWN = 2
"""How often memory that nothing else reads is referred to: by its array, and to count that."""

Method = Callable[..., Any]


def _method(name: str) -> Method:
    """A method of arrays that NumPy runs."""
    host = getattr(np.ndarray, name)
    writes = name in _WRITING.split()

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        values, named = host_arguments(name, (self, *args), kwargs)
        if writes:
            before_write(values[0])
        if name in _GROWING:
            cost = cost_of(name, values, named)
        else:
            cost = (usual(*values, *named.values()), 0)
        result = compute(host, values, named, *cost)
        out = kwargs.get("out")
        return out if type(out) is NDArray else result

    return called(name, method)


def astype(self: NDArray, dtype: Any, *, copy: bool = True, **kwargs: Any) -> Any:
    """`a.astype(dtype)`."""
    _, named = host_arguments("astype", (), kwargs)
    return compute(np.ndarray.astype, (self.data, dtype_of(dtype)), {**named, "copy": copy},
                   self.data.size)  # fmt: skip


def resize(self: NDArray, *new_shape: Any, refcheck: bool = True) -> None:
    """`a.resize(2, 3)`: other sizes for the array itself, its further elements 0.

    Raises E204 where the number of elements would change in memory that something else reads too,
    whatever `refcheck` says.
    """
    sizes = tuple(map(unwrap, new_shape))
    elements = room(sizes[0] if len(sizes) == 1 else sizes)
    before_write(self.data)
    if sys.getrefcount(self.data) > _OWN and elements == self.data.size:
        self.data = self.data.view()
    alone = sys.getrefcount(self.data) <= _OWN
    compute(partial(self.data.resize, refcheck=not alone), sizes, {}, elements)


def tolist(self: Any) -> Any:
    """`a.tolist()`: nested lists of Python's numbers."""
    check_collection(self.data.size)
    charge_elements(self.data.size, self.data.size << 6)
    return self.data.tolist()


def view(self: NDArray, dtype: Any = None) -> NDArray:
    """`a.view()`, `a.view(dtype)`: the same memory, with a dtype of numbers its bytes read anew."""
    if dtype is None:
        return NDArray(self.data.view())
    wanted = dtype_of(dtype)
    if "U" in (wanted.kind, self.data.dtype.kind) or "b" in (wanted.kind, self.data.dtype.kind):
        raise GradcliError("E205", "view() reads numbers as numbers", raises="TypeError")
    return NDArray(in_numpy(lambda: self.data.view(wanted)))


class Flags:
    """`a.flags`: how an array lies in memory."""

    __slots__ = ("_flags",)

    language_name = "numpy.flagsobj"
    language_attributes = names("c_contiguous contiguous f_contiguous owndata writeable")
    settable_attributes = frozenset({"writeable"})

    def __init__(self, flags: Any) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        return getattr(self._flags, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Memory that may not be written to stays so, whoever asks.
        if value and not self._flags.writeable:
            raise value_error("cannot set WRITEABLE flag to True of this array")
        self._flags.writeable = bool(value)


def _read(name: str) -> Method:
    # There is no `mT` of a vector.
    return lambda array: wrap(in_numpy(lambda: getattr(array.data, name)))


ARRAY_METHODS: dict[str, Method] = {
    **{name: _method(name) for name in (*_READING.split(), *_WRITING.split())},
    **by_name(astype, resize, tolist, view),
}
"""The methods of arrays."""

ARRAY_VALUES: dict[str, Method] = {
    **{
        name: _read(name)
        for name in ("T", "dtype", "imag", "itemsize", "mT", "nbytes", "ndim", "real", "shape",
                     "size", "strides")
    },
    "flags": lambda array: Flags(array.data.flags),
    "flat": lambda array: NDArray(array.data.reshape(-1)),
}  # fmt: skip
"""The data attributes of arrays."""

_SCALAR = """
    all any argmax argmin clip conj conjugate copy cumprod cumsum dot flatten item max mean min prod
    ravel repeat reshape round squeeze std sum tolist transpose var nonzero
"""


def _scalar_method(name: str) -> Method:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        values, named = host_arguments(name, (NDArray(np.asarray(self)), *args), kwargs)
        return compute(getattr(np.ndarray, name), values, named, *cost_of(name, values, named))

    return called(name, method)


def _scalar_astype(self: Any, dtype: Any, *, copy: bool = True) -> Any:
    return compute(np.ndarray.astype, (np.asarray(self), dtype_of(dtype)), {}, 1).data[()]


def methods_of(host: type) -> dict[str, Method]:
    """The methods of a class of NumPy's scalars."""
    if host is np.str_:
        return METHODS[str]
    table = {name: _scalar_method(name) for name in _SCALAR.split()}
    table["astype"] = _scalar_astype
    if issubclass(host, np.floating):
        table["is_integer"] = lambda self: bool(self.is_integer())
    if issubclass(host, np.integer):
        table["bit_count"] = lambda self: int(self.bit_count())
    return table


SCALAR_VALUES = {
    name: (lambda scalar, name=name: wrap(getattr(scalar, name)))
    for name in ("T", "dtype", "imag", "itemsize", "nbytes", "ndim", "real", "shape", "size")
}
"""The data attributes of scalars."""


# --- printing -------------------------------------------------------------------------------------

_OPTIONS = (
    *("precision", "threshold", "edgeitems", "linewidth", "suppress"),
    *("nanstr", "infstr", "sign", "floatmode"),
)

_WIDEST = 10_000


def _options(settings: dict[str, Any]) -> dict[str, Any]:
    """Print options as NumPy takes them; raises E201, E204."""
    options = {}
    for name, value in settings.items():
        if name not in _OPTIONS:
            raise GradcliError(
                "E201",
                f"set_printoptions() has no argument {name!r} in the language",
                help="numbers are written one by one with f-strings"
                if name == "formatter"
                else None,
            )
        if value is None:
            continue
        if name in ("precision", "linewidth", "edgeitems") and value != math.inf:
            value = min(value, _WIDEST if name == "precision" else 10**9)
        if name in ("nanstr", "infstr") and len(value) > 80:
            raise GradcliError("E602", f"{name} is too long")
        options[name] = value
    with np.printoptions():  # NumPy checks them, and forgets them
        try:
            np.set_printoptions(**options)
        except (TypeError, ValueError, OverflowError) as error:
            raise value_error(str(error)) from None
    return options


def set_printoptions(precision: Any = None, threshold: Any = None, **options: Any) -> None:
    """`np.set_printoptions(…)`, for this session."""
    session_of().options |= _options({"precision": precision, "threshold": threshold, **options})


def get_printoptions() -> dict[str, Any]:
    """`np.get_printoptions()`."""
    with np.printoptions(**session_of().options):
        known: dict[str, Any] = dict(np.get_printoptions())
    return {name: known[name] for name in _OPTIONS}


class PrintOptions:
    """`with np.printoptions(precision=2):`."""

    __slots__ = ("before", "options")

    language_name: ClassVar[str] = "contextlib._GeneratorContextManager"
    language_context: ClassVar[bool] = True

    def __init__(self, **options: Any) -> None:
        self.options = _options(options)
        self.before: dict[str, Any] = {}

    def __enter__(self) -> PrintOptions:
        session = session_of()
        self.before = session.options
        session.options = session.options | self.options
        return self

    def __exit__(self, *failure: object) -> None:
        session_of().options = self.before


class ErrorState:
    """`with np.errstate(divide="ignore"):`, which switches NumPy's warnings off, or on again."""

    __slots__ = ("before", "warns")

    language_name: ClassVar[str] = "numpy.errstate"
    language_context: ClassVar[bool] = True

    def __init__(self, **settings: Any) -> None:
        for name, setting in settings.items():
            if name not in ("all", "divide", "over", "under", "invalid"):
                raise GradcliError("E201", f"errstate() has no argument {name!r} in the language")
            if setting not in ("ignore", "warn"):
                raise GradcliError("E205", "errstate() takes 'ignore' and 'warn' in the language")
        self.warns = "ignore" not in settings.values()
        self.before = True

    def __enter__(self) -> None:
        session = session_of()
        self.before, session.warns = session.warns, self.warns

    def __exit__(self, *failure: object) -> None:
        session_of().warns = self.before


def seterr(**settings: Any) -> None:
    """`np.seterr(divide="ignore")`."""
    session_of().warns = ErrorState(**settings).warns


def _text_of(host: Callable[..., Any]) -> Callable[..., str]:
    def text(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None,
             separator: Any = None, **more: Any) -> str:  # fmt: skip
        kept = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
        options = _options({**kept, **more})
        array = np.asarray(unwrap(a))
        if separator is None:
            return written(host, array, **options)
        if host is not np.array2string or type(separator) is not str or len(separator) > 80:
            raise type_error("the separator is a short string")
        return written(lambda array: np.array2string(array, separator=separator), array, **options)

    return called(host.__name__, text)


# --- indices, and functions of the program -------------------------------------------------------


class Indexed(Record):
    """`np.mgrid[0:2, 0:3]`, `np.r_[1:3, 5]`, `np.s_[1:3]`: made by indexing."""

    host: Any

    language_name: ClassVar[str] = "numpy.lib._index_tricks_impl.IndexExpression"

    def __getitem__(self, index: Any) -> Any:
        if self.host is np.s_ or self.host is np.index_exp:
            return index if self.host is np.s_ or type(index) is tuple else (index,)
        parts = index if type(index) is tuple else (index,)
        lengths = [self._length(part) for part in parts]
        grid = self.host is np.mgrid
        charge_elements(math.prod(lengths) * len(parts) if grid else sum(lengths))
        at = tuple(map(unwrap, index)) if type(index) is tuple else unwrap(index)
        if any(type(part) is str for part in parts):
            raise GradcliError("E205", "strings inside the brackets are outside the language")
        return compute(lambda: self.host[at], (), {}, 0)

    @staticmethod
    def _length(part: Any) -> int:
        """The elements along the axis of one part."""
        if type(part) is not slice:
            return int(np.size(unwrap(part)))
        start, stop, step = (unwrap(each) for each in (part.start, part.stop, part.step))
        if type(step) is complex:
            return int(abs(step))
        try:
            return abs(math.ceil(((stop or 0) - (start or 0)) / (1 if step is None else step)))
        except (TypeError, ZeroDivisionError, OverflowError, ValueError):
            return 0


def ndindex(*shape: Any) -> Iterator:
    """`np.ndindex(2, 3)`: the indices of a shape."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    ranges = [range(unwrap(size)) for size in sizes]
    charge_elements(math.prod(map(len, ranges)))
    return drawing("ndindex", itertools.product(*ranges))


def ndenumerate(arr: Any, /) -> Iterator:
    """`np.ndenumerate(a)`: the indices of an array with its elements."""
    array = np.asarray(unwrap(arr))
    return drawing("ndenumerate", ((at, wrap(value)) for at, value in np.ndenumerate(array)))


def vectorize(pyfunc: Any, otypes: Any = None, **options: Any) -> Callable[..., Any]:
    """`np.vectorize(f)`: a function of arrays that calls `f` for each element."""
    if options:
        raise GradcliError("E205", "vectorize() takes a function and otypes in the language")

    def vectorized(*args: Any) -> Any:
        arrays = np.broadcast_arrays(*[unwrap(value) for value in args])
        shape = arrays[0].shape if arrays else ()
        charge(arrays[0].size if arrays else 1)
        columns = [map(wrap, array.reshape(-1)) for array in arrays]
        results = [pyfunc(*each) for each in bounded(list(zip(*columns, strict=True)))]
        dtype = None if otypes is None else otypes[0]
        settings = {} if dtype is None else {"dtype": dtype}
        array = functions.call(np.array, "array", (results,), settings)
        return wrap(array.data.reshape(shape)[()])

    return vectorized


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.apply_along_axis(f, axis, a)`: what `f` gives for each line along an axis."""
    array = np.moveaxis(np.asarray(unwrap(arr)), axis, -1)
    lines = array.reshape(-1, array.shape[-1])
    charge(len(lines))
    outcomes = [func1d(NDArray(line), *args, **kwargs) for line in lines]
    results = functions.call(np.array, "array", (outcomes,), {}).data
    whole = results.reshape(array.shape[:-1] + results.shape[1:])
    if results.ndim > 1:
        whole = np.moveaxis(whole, -1, axis)
    return wrap(whole[()])


def fromfunction(function: Any, shape: Any, *, dtype: Any = "float64", **kwargs: Any) -> Any:
    """`np.fromfunction(f, shape)`: `f` of the indices along each axis."""
    indices = functions.call(np.indices, "indices", (shape,), {"dtype": dtype})
    return function(*indices, **kwargs)


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Any:
    """`np.fromiter(values, dtype)`: an array of what an iterable gives, or of its first `count`."""
    drawn = bounded(iter)
    values = list(drawn if count < 0 else islice(drawn, count))
    return functions.call(np.array, "array", (values,), {"dtype": dtype})


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any) -> Any:
    """`np.piecewise(x, conditions, functions)`."""
    array = np.asarray(unwrap(x))
    conditions = [np.asarray(unwrap(each), bool) for each in condlist]
    result = np.zeros_like(array)
    if len(funclist) == len(conditions) + 1:
        conditions.append(~np.any(conditions, axis=0))
    for mask, function in zip(conditions, funclist, strict=True):
        value = function(wrap(array[mask]), *args) if callable(function) else function
        result[mask] = unwrap(value)
    return wrap(result)


# --- testing -----------------------------------------------------------------------------------


def _assertion(name: str) -> Callable[..., None]:
    host = getattr(np.testing, name)

    def check(actual: Any, desired: Any, *args: Any, **kwargs: Any) -> None:
        functions.call(host, name, (actual, desired, *args), kwargs)

    return called(name, check)


TESTING = {
    name: _assertion(name)
    for name in ("assert_allclose", "assert_almost_equal", "assert_array_almost_equal",
                 "assert_array_equal", "assert_equal")
}  # fmt: skip
"""What `numpy.testing` holds."""

_INDEXED = "c_ index_exp mgrid ogrid r_ s_"

NUMPY: dict[str, Any] = {
    **functions.FUNCTIONS,
    **arrays.FUNCTIONS,
    **arrays.TYPES,
    **TABLES,
    **{name: getattr(np, name) for name in ("False_", "True_", "__version__", "e", "euler_gamma")},
    **{name: getattr(np, name) for name in ("inf", "nan", "pi")},
    **{name: Indexed(getattr(np, name)) for name in _INDEXED.split()},
    **by_name(_text_of(np.array2string), _text_of(np.array_repr), _text_of(np.array_str)),
    **by_name(apply_along_axis, fromfunction, fromiter, get_printoptions, ndenumerate, ndindex),
    **by_name(piecewise, set_printoptions, seterr, vectorize),
    "errstate": ErrorState,
    "ndarray": NDARRAY,
    "newaxis": None,
    "poly1d": Polynomial,
    "printoptions": PrintOptions,
}
"""What `numpy` holds."""


ERRORS: dict[str, Any] = {"AxisError": EXCEPTIONS["AxisError"]}
"""What `numpy.exceptions` holds."""

FFT = functions.FFT
LINALG: dict[str, Any] = {**functions.LINALG, "LinAlgError": EXCEPTIONS["LinAlgError"]}
RANDOM = random.RANDOM


def _make_known() -> None:
    """Let the language know arrays and scalars."""
    METHODS[NDArray] = ARRAY_METHODS
    VALUES[NDArray] = ARRAY_VALUES
    for host, cls in arrays.CLASSES.items():
        cls.construct = functions.scalar_of(host)
        METHODS[host] = methods_of(host)
        VALUES[host] = {} if host is np.str_ else dict(SCALAR_VALUES)
    borders.open_border(
        borders.Hooks(NDArray, exchange.mixed, exchange.argument, exchange.index, wrap),
        arrays.SCALARS,
    )
    catalogue.modules["torch"]["as_tensor"] = exchange.sharing(as_tensor)
    EXCEPTIONS["AxisError"].ancestors |= {"IndexError", "LookupError"}


_make_known()
