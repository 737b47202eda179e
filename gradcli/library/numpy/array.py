"""Arrays, dtypes and scalars as values of the language, and the one way into NumPy.

A program's array is an `NDArray` around the host's, which no host function takes by accident.
`unwrap` turns a program's values into what NumPy may see: numbers, bools, strings, arrays, dtypes,
and lists of them; functions and objects never get there. `compute` charges what is about to be
made, elements and work, calls NumPy, and turns its errors and warnings into the language's own;
`wrap` admits what came back.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DType
from gradcli.arrays.fusion.lazy import forced, write_barrier
from gradcli.autograd.tensor import Tensor, refresh, storage_of
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.language.limits import charge, check_collection, too_deep
from gradcli.language.objects.borders import OWN_NUMBERS, own_number
from gradcli.language.objects.classes.special_methods import ARITHMETIC, COMPARISONS
from gradcli.language.objects.exceptions import converted
from gradcli.language.objects.types import Hosted, LanguageType, called, define, names, type_name
from gradcli.ops.binding.functions import methods
from gradcli.state import active, charge_steps

# --- dtypes and the classes of scalars ------------------------------------------------------------


LONGEST_TEXT = 1000
"""Characters of a string in an array: each element takes the room of the longest."""

_CONCRETE = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16"),
    *("float32", "float64", "complex64", "complex128", "str_"),
)

SCALARS = frozenset(getattr(np, name) for name in _CONCRETE)
"""The host classes of the scalars that are values of the language."""

_DTYPES = frozenset(np.dtype(scalar) for scalar in SCALARS)


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype are values of the language: numbers, bools and short strings."""
    if dtype.kind == "U":
        return dtype.itemsize <= 4 * LONGEST_TEXT
    return dtype in _DTYPES


def supported(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype itself; raises E205 where no array of the language has it."""
    if not is_supported(dtype):
        words = f"arrays of {dtype}" if dtype.names is None else "structured arrays"
        raise GradcliError(
            "E205",
            f"{words} are outside the language",
            raises="TypeError",
            help="arrays hold bools, integers, floats and complex numbers of up to 64 bits a part,"
            f" and strings of up to {LONGEST_TEXT:,} characters",
        )
    return dtype if dtype.kind == "U" else np.dtype(dtype.str)  # `longlong` is int64


class Dtype:
    """A dtype as a value: `a.dtype`, `np.dtype("float32")`."""

    __slots__ = ("dtype",)

    language_name = "numpy.dtype"
    language_attributes = frozenset({"itemsize", "kind", "name", "str", "type", "char"})
    language_str = True

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    @property
    def type(self) -> LanguageType:
        """The class of its scalars."""
        return CLASSES[self.dtype.type]

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        return getattr(self.dtype, name)

    def __eq__(self, other: object) -> bool:
        try:
            return self.dtype == dtype_of(other)
        except GradcliError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return str(self.dtype)

    def __repr__(self) -> str:
        return repr(self.dtype)


def dtype_of(value: Any) -> np.dtype[Any]:
    """The host's dtype of what programs write for one: a class, a name, a dtype; raises E202, and
    E205 for one that arrays of the language do not have.
    """
    if type(value) is Dtype:
        return value.dtype
    if isinstance(value, LanguageType) and len(value.hosts) == 1:
        host = value.hosts[0]
        if host in SCALARS or host in (bool, int, float, complex, str):
            return np.dtype(host)
    if value is None:
        return np.dtype(float)
    if isinstance(value, str):
        try:
            return supported(np.dtype(value[:80]))
        except (TypeError, ValueError, SyntaxError):
            raise type_error(f"data type {value[:80]!r} not understood") from None
    shown = f"'{value}'" if type(value) is DType else type_name(value)
    raise type_error(f"Cannot interpret {shown} as a data type")


dtype_value = cache(Dtype)
"""The value of the language for a dtype: one for each."""

DTYPE = define("numpy.dtype", Dtype, construct=lambda dtype=None: dtype_value(dtype_of(dtype)))


CLASSES: dict[type, LanguageType] = {
    scalar: define(f"numpy.{scalar.__name__}", scalar) for scalar in SCALARS
}
"""The classes of the language by their host classes."""

_ABSTRACT = (
    *("character", "complexfloating", "flexible", "floating", "generic", "inexact", "integer"),
    *("number", "signedinteger", "unsignedinteger"),
)

TYPES: dict[str, LanguageType] = {
    **{name: CLASSES[getattr(np, name)] for name in (*_CONCRETE, "bool_", "int_", "uint", "intc",
       "intp", "uintp", "byte", "ubyte", "short", "ushort", "half", "single", "double", "csingle",
       "cdouble")},
    **{name: define(f"numpy.{name}", getattr(np, name)) for name in _ABSTRACT},
}  # fmt: skip
"""The classes by the names that `numpy` has for them."""


class TypeLimits(Hosted):
    """What `np.finfo(dtype)` and `np.iinfo(dtype)` give."""

    __slots__ = ()

    language_name = "numpy.finfo"
    language_attributes = names("""bits dtype eps epsneg max min precision resolution
        smallest_normal smallest_subnormal tiny""")

    def __getattr__(self, name: str) -> Any:
        limit = super().__getattr__(name)
        return dtype_value(limit) if isinstance(limit, np.dtype) else limit


def _limits(host: Any) -> Any:
    def limits(type: Any) -> TypeLimits:
        if hasattr(type, "dtype") and isinstance(type, np.generic):
            type = Dtype(type.dtype)
        try:
            return TypeLimits(host(dtype_of(type)))
        except ValueError as error:
            raise value_error(str(error)) from None

    return called(host.__name__, limits)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """`np.issubdtype(dtype, class)`."""
    kinds = []
    for argument in (arg1, arg2):
        host = argument.hosts[0] if isinstance(argument, LanguageType) and argument.hosts else None
        if host is not None and issubclass(host, np.generic):
            kinds.append(host)
        else:
            kinds.append(dtype_of(argument).type)
    return issubclass(*kinds)


FUNCTIONS: dict[str, Any] = {
    "dtype": DTYPE,
    "finfo": _limits(np.finfo),
    "iinfo": _limits(np.iinfo),
    "issubdtype": issubdtype,
}
"""The functions of dtypes."""


# --- arrays ---------------------------------------------------------------------------------------


Function = Callable[..., Any]

_AS_THEY_ARE = frozenset({bool, float, complex, type(None), type(...)}) | SCALARS
_LEAST, _MOST = -(2**63), 2**64 - 1

_ELEMENTS_PER_STEP = 10
"""Elements, as a power of 2, that NumPy goes through in the time of one iteration of a loop."""


# --- into NumPy and out of it ------------------------------------------------------------------


def unwrap(value: Any) -> Any:
    """What NumPy sees of a program's value.

    Raises E202 for a value that NumPy does not get, E204 for an integer of more than 64 bits, E601
    and E602 for lists that are too deep or too large, and what `array_of` raises for a tensor.
    """
    kind = type(value)
    if kind is NDArray:
        return value.data
    if kind in _AS_THEY_ARE:
        return value
    if kind is int:
        return _integer(value)
    if kind is str:
        if len(value) > LONGEST_TEXT:
            words = "characters of a string in an array"
            raise active.state.limits.too_many_elements(len(value), words)
        return value
    if isinstance(value, (list, tuple, range)):
        return _items(value)
    if kind is Dtype:
        return value.dtype
    if kind is Tensor:
        return array_of(value)
    if kind is slice:
        return slice(*[unwrap(part) for part in (value.start, value.stop, value.step)])
    if isinstance(value, (LanguageType, DType)):
        return dtype_of(value)
    if kind in OWN_NUMBERS:
        return unwrap(own_number(value))
    raise type_error(
        f"NumPy takes numbers, lists of them and arrays here, not {type_name(value)}",
        help="`list(…)` makes a list of it" if hasattr(kind, "__iter__") else None,
    )


def _integer(value: int) -> int:
    if _LEAST <= value <= _MOST:
        return value
    raise GradcliError("E204", "Python int too large to convert to C long", raises="OverflowError")


def _items(values: Any) -> Any:
    """A list or tuple, with what it holds unwrapped and its size charged."""
    known: dict[int, tuple[Any, int]] = {}  # a list may hold another one many times

    def walk(items: Any, depth: int) -> tuple[Any, int]:
        walked = known.get(id(items))
        if walked is None:
            if depth > DEEPEST:
                raise too_deep("lists")
            walked = known[id(items)] = unwrapped(items, depth + 1)
        check_collection(walked[1])
        return walked

    def unwrapped(items: Any, depth: int) -> tuple[Any, int]:
        charge(len(items))
        kinds = set(map(type, items))
        if kinds <= _NUMERIC:
            if int in kinds:
                for each in items:
                    if type(each) is int:
                        _integer(each)
            return items, len(items)
        parts: list[Any] = []
        count = 0
        for each in items:
            inside = isinstance(each, (list, tuple, range))
            part, size = walk(each, depth) if inside else (unwrap(each), 1)
            parts.append(part)
            count += size
            check_collection(count)
        return (tuple(parts) if isinstance(items, tuple) else parts), count

    return walk(values, 0)[0]


DEEPEST = 100
"""Lists inside lists; an array has 64 dimensions at most."""

_NUMERIC = frozenset({bool, int, float, complex})


def array_of(tensor: Tensor) -> Any:
    """The array on a tensor's memory, as `tensor.numpy()` gives it.

    Raises PyTorch's errors: E204 for a tensor that requires grad or is conjugated, E202 for a dtype
    that NumPy does not have and for memory of a GPU.
    """
    if tensor.requires_grad and active.state.grad_enabled:
        raise runtime_error(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if tensor.meta is not None and tensor.meta.base is not None:
        refresh(tensor)
    storage_of(tensor)
    if methods.is_conj(tensor):
        raise runtime_error(
            "Can't call numpy() on Tensor that has conjugate bit set. Use"
            " tensor.resolve_conj().numpy() instead."
        )
    if methods.is_neg(tensor):
        raise runtime_error(
            "Can't call numpy() on Tensor that has negative bit set. Use"
            " tensor.resolve_neg().numpy() instead."
        )
    array = tensor.array = forced(tensor.array)
    if module_of(array) is not np:
        raise type_error(
            f"can't convert {tensor.device} device type tensor to numpy. Use Tensor.cpu() to copy"
            " the tensor to host memory first."
        )
    if not is_supported(array.dtype):
        raise type_error("Got unsupported ScalarType BFloat16")
    return array


def tensor_on(array: Any) -> Tensor:
    """A tensor on the memory of a host array."""
    check_numbers(array)
    tensor = Tensor(array)
    storage_of(tensor)
    return tensor


def check_numbers(array: Any) -> None:
    """Raise E202 for an array that no tensor can hold, E204 for one with negative strides."""
    if array.dtype not in _OF_TENSORS:
        raise type_error(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only"
            " supported types are: float64, float32, float16, complex64, complex128, int64, int32,"
            " int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    if any(stride < 0 for stride in array.strides):
        raise value_error(
            "At least one stride in the given numpy array is negative, and tensors with negative"
            " strides are not currently supported. (You can probably work around this by making a"
            " copy of your array  with array.copy().) "
        )


_OF_TENSORS = frozenset(map(np.dtype, SCALARS - {np.uint16, np.uint32, np.uint64, np.str_}))


def wrap(value: Any) -> Any:
    """A result of NumPy's as a value of the language; raises E205 for what programs do not get."""
    kind = type(value)
    if kind is np.ndarray:
        supported(value.dtype)
        return NDArray(value)
    if kind in _AS_THEY_ARE or kind in (int, str):
        return value
    if isinstance(value, np.generic):
        return supported(value.dtype).type(value)
    if kind is list:
        return [wrap(each) for each in value]
    if isinstance(value, tuple):
        parts = [wrap(each) for each in value]
        named = hasattr(kind, "_fields")
        return _named(kind.__name__, kind._fields)(parts) if named else tuple(parts)
    if isinstance(value, np.dtype):
        return dtype_value(supported(value))
    if isinstance(value, np.ndarray):  # `np.matrix` and others
        return NDArray(np.asarray(value))
    raise GradcliError("E205", f"NumPy's {kind.__name__} is outside the language")


class NamedResult(tuple[Any, ...]):
    """A result with names, such as `EigResult(eigenvalues=…, eigenvectors=…)`."""

    fields: ClassVar[tuple[str, ...]] = ()
    language_attributes: ClassVar[frozenset[str]] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name in self.fields:
            return self[self.fields.index(name)]
        raise AttributeError(name)

    def __repr__(self) -> str:
        parts = [f"{name}={part!r}" for name, part in zip(self.fields, self, strict=True)]
        return f"{type(self).__name__}({', '.join(parts)})"


@cache
def _named(name: str, fields: tuple[str, ...]) -> type[NamedResult]:
    """The class for a named tuple of NumPy's."""
    names = {"fields": fields, "language_attributes": frozenset(fields)}
    return type(name, (NamedResult,), names)


_ERRORS: tuple[tuple[type[Exception], str, str | None], ...] = (
    (np.linalg.LinAlgError, "E204", "LinAlgError"),
    (np.exceptions.AxisError, "E302", "AxisError"),
    (IndexError, "E302", None),
    (AttributeError, "E102", None),
    (AssertionError, "E701", None),
)
"""What NumPy raises beside the errors that `converted` knows."""


def refused(error: Exception) -> Exception:
    """An error of NumPy's as the language's own, with NumPy's words and class."""
    for kind, code, raises in _ERRORS:
        if isinstance(error, kind):
            failure = GradcliError(code, str(error) or kind.__name__, raises=raises)
            break
    else:
        failure = converted(error)
        if not isinstance(error, MemoryError):
            failure.message = str(error) or failure.message
    failure.__cause__ = error
    return failure


def charge_elements(count: int, work: int = 0) -> None:
    """Check and count what NumPy is about to make: elements, and further operations on them.

    Raises E602 for more elements than an array may have, E605 where the steps are used up.
    """
    limits = active.state.limits
    if count > limits.elements:
        raise limits.too_many_elements(count, raises="MemoryError")
    if count + work >> _ELEMENTS_PER_STEP:
        charge_steps(count + work >> _ELEMENTS_PER_STEP)


def _run(name: str, function: Function, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy's returns, its errors and warnings the language's own."""

    def warn(kind: str, flag: int) -> None:
        warned(f"{kind} encountered in {name}")

    try:
        with np.errstate(all="call", under="ignore", call=warn):
            return function(*args, **kwargs)
    except Exception as error:
        raise refused(error) from error


def compute(host: Function, args: Any, kwargs: dict[str, Any], elements: int, work: int = 0) -> Any:
    """What a function of NumPy gives for unwrapped arguments.

    Args:
        elements: how many the result has at most.
        work: operations beyond one for each of them.
    """
    charge_elements(elements, work)
    name = getattr(host, "__name__", "function")
    if type(host) is np.ufunc:  # it warns of nothing else
        return wrap(_run(name, host, args, kwargs))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = _run(name, host, args, kwargs)
    for each in caught:
        warned(str(each.message), each.category.__name__)
    return wrap(result)


def warned(message: str, category: str = "RuntimeWarning") -> None:
    """Emit a warning of NumPy's, unless the program switched it off."""
    session = session_of()
    if session.warns:
        active.state.warn("W011", f"{category}: {message}", text=message, category=category)


class Session:
    """What NumPy keeps for a session.

    Attributes:
        options: what `np.set_printoptions` set.
        random: the generator behind `np.random`, None before its first use.
        generators_seeded: how many generators were made without a seed.
        warns: whether floating-point errors are warned of.
    """

    __slots__ = ("generators_seeded", "options", "random", "warns")

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.random: Any = None
        self.generators_seeded = 0
        self.warns = True


def session_of() -> Session:
    """The running session's own."""
    state = active.state
    if state.arrays is None:
        state.arrays = Session()
    session: Session = state.arrays
    return session


# --- the array ----------------------------------------------------------------------------------


class NDArray:
    """An array as a value; `data` is the host's."""

    __slots__ = ("data",)

    language_name: ClassVar[str] = "numpy.ndarray"
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"imag", "real", "shape"})
    updates_in_place: ClassVar[bool] = True
    language_str: ClassVar[bool] = True

    # NumPy's own scalars and arrays leave an operator to this class.
    __array_ufunc__: ClassVar[None] = None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        sizes: tuple[int, ...] = self.data.shape
        return sizes

    @shape.setter
    def shape(self, sizes: Any) -> None:
        view = in_numpy(lambda: self.data.view().reshape(unwrap(sizes), copy=False))
        self.data = view

    @property
    def real(self) -> NDArray:
        """The real part, on the same memory."""
        return NDArray(self.data.real)

    @real.setter
    def real(self, value: Any) -> None:
        NDArray(self.data.real)[...] = value

    @property
    def imag(self) -> NDArray:
        """The imaginary part, on the same memory for complex numbers."""
        return NDArray(self.data.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        NDArray(self.data.imag)[...] = value

    def to_tensor(self) -> Tensor:
        """The tensor on its memory, which a batch is made of."""
        return tensor_on(self.data)

    def __len__(self) -> int:
        return int(in_numpy(lambda: len(self.data)))

    def __iter__(self) -> Iterator[Any]:
        return map(wrap, in_numpy(lambda: iter(self.data)))

    def __reversed__(self) -> Iterator[Any]:
        return map(wrap, in_numpy(lambda: iter(self.data[::-1])))

    def __contains__(self, value: Any) -> bool:
        return bool(in_numpy(lambda: unwrap(value) in self.data, self.data.size))

    def __bool__(self) -> bool:
        return bool(in_numpy(lambda: bool(self.data)))

    def __int__(self) -> int:
        return int(in_numpy(lambda: int(self.data)))

    def __float__(self) -> float:
        return float(in_numpy(lambda: float(self.data)))

    def __complex__(self) -> complex:
        return complex(in_numpy(lambda: complex(self.data)))

    def __index__(self) -> int:
        return int(in_numpy(lambda: operator.index(self.data)))

    def __getitem__(self, index: Any) -> Any:
        at = index_of(index)
        charge_elements(_picked(self.data, at))
        return wrap(in_numpy(lambda: self.data[at]))

    def __setitem__(self, index: Any, value: Any) -> None:
        at = index_of(index)
        new = unwrap(value)
        charge_elements(max(_picked(self.data, at), np.size(new)))
        before_write(self.data)
        in_numpy(lambda: self.data.__setitem__(at, new))

    def __str__(self) -> str:
        return written(np.array_str, self.data)

    def __repr__(self) -> str:
        return written(np.array_repr, self.data)


NDArray.__name__ = "numpy.ndarray"  # as the host's messages have it
NDARRAY = define("numpy.ndarray", NDArray)


def in_numpy(function: Callable[[], Any], elements: int = 0) -> Any:
    """What a short piece of NumPy gives, its errors the language's own."""
    charge_elements(elements)
    try:
        return function()
    except GradcliError:
        raise
    except Exception as error:
        raise refused(error) from error


def before_write(array: Any) -> None:
    """Let plans that read an array's memory take their copy of it, before it is written to."""
    if active.state.pending_readers:
        write_barrier(array)


def written(host: Function, array: Any, **options: Any) -> str:
    """The text of an array with the session's print options; raises E602 and E605."""
    session = session_of().options | options
    shown = array.size
    if shown > session.get("threshold", 1000):
        shown = min(shown, (2 * session.get("edgeitems", 3)) ** array.ndim)
    width = max(session.get("precision") or 8, array.itemsize if array.dtype.kind == "U" else 8)
    active.state.limits.check_elements(shown * width, "characters")
    charge_steps(shown)

    def write() -> str:
        with np.printoptions(**session):
            return str(host(array))

    return str(in_numpy(write))


# --- indexing ------------------------------------------------------------------------------------


def index_of(index: Any) -> Any:
    """What NumPy sees of an index; raises E302 for a value that is none."""
    if type(index) is tuple:
        return tuple([index_of(part) for part in index])
    if type(index) in (str, float, complex):
        raise GradcliError(
            "E302",
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or"
            " boolean arrays are valid indices",
        )
    host_index = unwrap(index)
    return np.asarray(host_index) if type(host_index) in (range, tuple) else host_index


def _picked(array: Any, index: Any) -> int:
    """How many elements an index picks, at most; 0 for a view."""
    parts = index if type(index) is tuple else (index,)
    chosen = [part for part in parts if type(part) in (list, np.ndarray)]
    if not chosen:
        return 0
    sizes = list(array.shape)
    axis = 0
    shapes = []
    try:
        for number, part in enumerate(parts):
            if part is None:
                continue
            if part is ...:
                used = sum(_axes(each) for each in parts[number + 1 :])
                axis = len(sizes) - used
            elif type(part) is slice:
                sizes[axis] = len(range(*part.indices(sizes[axis])))
                axis += 1
            elif type(part) in (list, np.ndarray) and np.asarray(part).dtype == np.bool_:
                mask = np.asarray(part)
                shapes.append((np.count_nonzero(mask),))
                sizes[axis : axis + mask.ndim] = [1] * mask.ndim
                axis += mask.ndim
            else:
                shapes.append(np.shape(part))
                sizes[axis] = 1
                axis += 1
        return math.prod(sizes) * math.prod(np.broadcast_shapes(*shapes))
    except (IndexError, ValueError, TypeError):  # NumPy has the words for it
        return 0


def _axes(part: Any) -> int:
    if part is None:
        return 0
    array = np.asarray(part) if type(part) in (list, np.ndarray) else None
    return array.ndim if array is not None and array.dtype == np.bool_ else 1


# --- operators -----------------------------------------------------------------------------------

UFUNCS: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide,
    "%": np.remainder, "**": np.power, "@": np.matmul, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift, "==": np.equal,
    "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
"""The ufunc of each operator, whose name is in warnings."""

_OPERANDS = (
    frozenset({bool, int, float, complex, str, list, tuple, NDArray, range, type(None)}) | SCALARS
)


def _is_operand(value: Any) -> bool:
    kind = type(value)
    return kind in _OPERANDS or kind in OWN_NUMBERS or isinstance(value, tuple)


def broadcast_size(*arrays: Any) -> int:
    """The elements of what operands broadcast to; of the largest where they do not."""
    shapes = [each.shape if type(each) is np.ndarray else np.shape(each) for each in arrays]
    different = {shape for shape in shapes if shape}
    if len(different) < 2:
        return math.prod(next(iter(different), ()))
    try:
        return math.prod(np.broadcast_shapes(*shapes))
    except ValueError:
        return max(map(math.prod, shapes))


def product_size(left: Any, right: Any) -> tuple[int, int]:
    """The elements of a matrix product, and its work in ufuncs' operations."""
    a: tuple[int, ...] = np.shape(left) or (1,)
    b: tuple[int, ...] = np.shape(right) or (1,)
    rows, columns = math.prod(a[:-1]), b[-1] if len(b) > 1 else 1
    try:
        batches = math.prod(np.broadcast_shapes(a[:-2], b[:-2]))
    except ValueError:
        batches = 1
    elements = max(batches, 1) * (a[-2] if len(a) > 1 else 1) * columns
    return elements, max(elements, rows) * a[-1] >> 6


def _apply(symbol: str, run: Function, left: Any, right: Any) -> Any:
    """A binary operator on unwrapped operands, one of them an array."""
    charge_operator(symbol, left, right)
    return _run(UFUNCS[symbol].__name__, run, (left, right), {})


def charge_operator(symbol: str, left: Any, right: Any) -> None:
    """Check and count what a binary operator makes of unwrapped operands."""
    if symbol == "@":
        charge_elements(*product_size(left, right))
    else:
        charge_elements(broadcast_size(left, right))


def _define(symbol: str, name: str) -> None:
    """Give arrays the special methods of one operator."""
    run = getattr(operator, f"__{name}__")

    def forward(self: NDArray, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return wrap(_apply(symbol, run, self.data, unwrap(other)))

    setattr(NDArray, f"__{name}__", forward)
    if symbol in COMPARISONS:
        return
    in_place = getattr(operator, f"__i{name}__")

    def reflected(self: NDArray, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return wrap(_apply(symbol, run, unwrap(other), self.data))

    def update(self: NDArray, other: Any) -> Any:
        if type(other) is not Tensor and not _is_operand(other):
            return NotImplemented
        before_write(self.data)
        _apply(symbol, in_place, self.data, unwrap(other))
        return self

    setattr(NDArray, f"__r{name}__", reflected)
    setattr(NDArray, f"__i{name}__", update)


def _unary(name: str) -> Callable[[NDArray], Any]:
    run = getattr(operator, name)
    return lambda self: wrap(in_numpy(lambda: run(self.data), self.data.size))


for _symbol, _name in (ARITHMETIC | COMPARISONS).items():
    _define(_symbol, _name)
for _name in ("abs", "invert", "neg", "pos"):
    setattr(NDArray, f"__{_name}__", _unary(_name))


# --- costs ----------------------------------------------------------------------------------------


Cost = Callable[..., Any]


def count(value: Any) -> int:
    """A number that is given for a count, at least 0."""
    return max(operator.index(value), 0)


def room(shape: Any) -> int:
    """The elements of a shape: an integer or a sequence of them."""
    if shape is None:
        return 1
    try:
        return count(shape)
    except TypeError:
        return math.prod(map(count, shape))


def usual(*args: Any, **kwargs: Any) -> int:
    """The cost of a function that has no entry."""
    values = [*args, *kwargs.values()]
    arrays = [each for each in values if isinstance(each, (np.ndarray, list, tuple))]
    if not arrays:
        return 1
    if len(arrays) == 1 and type(arrays[0]) is np.ndarray:
        return int(arrays[0].size)
    return held(arrays) + broadcast_size(*[each for each in arrays if type(each) is np.ndarray], 0)


def held(values: Any) -> int:
    """The elements of an array, or of what a nested list holds."""
    if isinstance(values, np.ndarray):
        return int(values.size)
    if isinstance(values, (list, tuple, range)):
        nested = any(isinstance(each, (list, tuple, range, np.ndarray)) for each in values)
        return sum(map(held, values)) if nested else len(values)
    return 1


def _arange(start: Any, stop: Any = None, step: Any = 1, **_: Any) -> int:
    first, last = (0, start) if stop is None else (start, stop)
    length = (last - first) / (1 if step is None else step)
    return math.ceil(abs(length)) if np.isfinite(length) else 0


def _einsum(subscripts: Any, *operands: Any, **_: Any) -> tuple[int, int]:
    """The sizes of the letters give the elements of the result, and of the whole sum."""
    if not isinstance(subscripts, str):
        raise TypeError("in this language einsum takes its subscripts as a string")
    terms, arrow, result = subscripts.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    dots = 1
    for term, value in zip(terms.split(","), operands, strict=True):
        shape = list(np.shape(value))
        before, ellipsis, after = term.partition("...")
        if ellipsis:
            hidden = shape[len(before) : len(shape) - len(after)]
            dots = max(dots, math.prod(hidden))
            shape[len(before) : len(shape) - len(after)] = []
        for letter, size in zip(before + after, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    letters = terms.replace(",", "").replace("...", "")
    kept = set(result.replace("...", "")) if arrow else {x for x in letters if letters.count(x) < 2}
    whole = dots * math.prod(sizes.values())
    return dots * math.prod(sizes[letter] for letter in kept), whole


def _like(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, **_: Any
) -> int:
    return max(held(a), room(shape))


def _histogram(a: Any, bins: Any = 10, *_: Any, **__: Any) -> int:
    if isinstance(bins, str):  # as many as the values ask for, which nobody knows before
        return held(a) + 10**6
    return held(a) + (room(bins) if np.ndim(bins) == 0 else held(bins))


def _bins(sample: Any, bins: Any = 10, **_: Any) -> int:
    each = [count(b) if np.ndim(b) == 0 else held(b) for b in (bins if np.ndim(bins) else [bins])]
    return held(sample) + (math.prod(each) if len(each) > 1 else each[0] ** 2)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> tuple[int, int]:
    left, right = np.shape(a), np.shape(b)
    if np.ndim(axes) == 0:
        summed = left[len(left) - count(axes) :]
    else:
        summed = tuple([left[axis] for axis in np.atleast_1d(axes[0])])
    inner = max(math.prod(summed), 1)
    elements = math.prod(left) // inner * (math.prod(right) // inner)
    return elements, elements * inner >> 6


def _repeat(a: Any, repeats: Any, axis: Any = None) -> int:
    times = np.asarray(repeats)
    if times.ndim == 0:
        return held(a) * count(times[()])
    along = held(a) if axis is None else np.shape(a)[axis]
    total = sum(map(count, times.reshape(-1)))
    return total * (held(a) // max(along, 1)) * (along if times.size == 1 else 1)


def _pad(array: Any, pad_width: Any, *_: Any, **__: Any) -> int:
    if isinstance(pad_width, dict):
        raise TypeError("in this language pad_width is an integer or pairs of them")
    widths = np.broadcast_to(np.asarray(pad_width), (np.ndim(array), 2))
    return math.prod(
        size + count(before) + count(after)
        for size, (before, after) in zip(np.shape(array), widths, strict=True)
    )


def _square(a: Any, *_: Any, **__: Any) -> tuple[int, int]:
    """A decomposition of matrices: their elements, and a cube of work for each."""
    shape = np.shape(a)
    size = math.prod(shape)
    return 3 * size + max(shape[-2:], default=1) ** 2, size * max(shape[-2:], default=1) >> 3


def _diag(v: Any, k: Any = 0) -> int:
    shape = np.shape(v)
    return (shape[0] + abs(operator.index(k))) ** 2 if len(shape) == 1 else held(v)


def _transform(a: Any, n: Any = None, axis: Any = -1, *_: Any, **__: Any) -> tuple[int, int]:
    size = held(a)
    along = max(np.shape(a)[axis], 1)
    elements = size // along * max(along, 2 * count(n)) if n is not None else 2 * size
    return elements, 16 * elements


def _transforms(a: Any, s: Any = None, *_: Any, **__: Any) -> tuple[int, int]:
    elements = max(2 * held(a), 2 * (room(s) if s is not None else 0) * held(a))
    return elements, 16 * elements


def _covariance(m: Any, y: Any = None, rowvar: Any = True, *_: Any, **__: Any) -> tuple[int, int]:
    shape = np.shape(m)
    rows = (shape[0] if rowvar else shape[-1]) if len(shape) > 1 else 1
    more = 0 if y is None else np.shape(y)[0]
    return (rows + more) ** 2 + held(m), (rows + more) * held(m) >> 6


def _matrix_power(a: Any, n: Any) -> tuple[int, int]:
    size, work = _square(a)
    return size, work * max(operator.index(n).bit_length(), 1)


def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> int:
    places = held(obj) if not isinstance(obj, slice) else held(arr)
    return (held(arr) + held(values)) * (1 if axis is None else max(1, places))


def _sections(ary: Any, indices_or_sections: Any, *_: Any) -> tuple[int, int]:
    parts = held(indices_or_sections)
    if np.ndim(indices_or_sections) == 0:
        parts = count(indices_or_sections)
    return max(held(ary), parts), parts << 10


_COSTS: dict[str, Cost] = {
    "arange": _arange,
    "array_split dsplit hsplit split vsplit": _sections,
    "bincount": lambda x, weights=None, minlength=0: (
        max(int(np.max(np.asarray(x), initial=0)) + 1, count(minlength)) + held(x)
    ),
    "bartlett blackman hamming hanning": count,
    "broadcast_to": lambda array, shape, **_: room(shape),
    (
        "cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_rank pinv qr slogdet "
        "solve svd svdvals tensorinv"
    ): _square,
    "convolve correlate": lambda a, v, *_: (held(a) + held(v), held(a) * held(v) >> 2),
    "corrcoef cov": _covariance,
    "diag": _diag,
    "diag_indices": lambda n, ndim=2: count(n) * count(ndim),
    "diagflat": lambda v, k=0: (held(v) + abs(operator.index(k))) ** 2,
    "dot": product_size,
    "einsum": _einsum,
    "empty full ones zeros": lambda shape, *_, **__: room(shape),
    "empty_like": lambda prototype, *more, **named: _like(prototype, *more, **named),
    "eye tri": lambda N, M=None, *_, **__: count(N) * (count(N) if M is None else count(M)),
    "fft hfft ifft ihfft irfft rfft": _transform,
    "fft2 fftn ifft2 ifftn irfft2 irfftn rfft2 rfftn": _transforms,
    "fftfreq rfftfreq": lambda n, *_, **__: count(n),
    "full_like": lambda a, fill_value, *more, **named: _like(a, *more, **named),
    "geomspace linspace logspace": lambda start, stop, num=50, *_, **__: (
        count(num) * broadcast_size(start, stop)
    ),
    "histogram histogram_bin_edges": _histogram,
    "histogram2d": lambda x, y, bins=10, *_, **__: held(y) + _bins(x, bins),
    "identity": lambda n, *_, **__: count(n) ** 2,
    "indices": lambda dimensions, *_, **__: held(dimensions) * room(dimensions),
    "inner": lambda a, b: (
        held(a) * held(b) // max(np.shape(a)[-1:] + np.shape(b)[-1:] + (1,)) ** 2,
        held(a) * held(b) // max(1, *np.shape(a)[-1:]) >> 6,
    ),
    "insert": _insert,
    "interp": lambda x, xp, fp, *_, **__: held(x) + held(xp),
    "isin": lambda element, test_elements, *_, **__: 2 * (held(element) + held(test_elements)),
    "ix_": lambda *args: sum(map(held, args)),
    "kaiser": lambda M, beta: count(M),
    "kron": lambda a, b: held(a) * held(b),
    "matmul": lambda a, b, *_, **__: product_size(a, b),
    "matrix_power": _matrix_power,
    "meshgrid": lambda *xi, **_: len(xi) * math.prod(map(held, xi)),
    "multi_dot": lambda arrays, **_: max(product_size(a, b) for a in arrays for b in arrays),
    "nanpercentile nanquantile percentile quantile": lambda value, q, *_, **__: (
        held(value) * (1 if np.ndim(q) == 0 else max(1, held(q)))
    ),
    "ones_like zeros_like": _like,
    "outer": lambda a, b, *_: held(a) * held(b),
    "pad": _pad,
    "poly": lambda seq: (held(seq), held(seq) ** 2),
    "polydiv": lambda u, v: (held(u) + held(v), held(u) * held(v)),
    "polyfit": lambda x, y, deg, *_, **__: (
        held(y) + held(x) * (1 + room(deg)),
        held(x) * (1 + room(deg)) ** 2 >> 4,
    ),
    "polymul": lambda a1, a2: (held(a1) + held(a2), held(a1) * held(a2)),
    "polyval": lambda p, x: (held(x), held(p) * held(x)),
    "repeat": _repeat,
    "resize": lambda a, new_shape: room(new_shape),
    "roots": lambda p: (held(p) ** 2, held(p) ** 3 >> 3),
    "take": lambda a, indices, axis=None, *_, **__: (
        held(indices) * (1 if axis is None else held(a) // max(1, np.shape(a)[axis]))
    ),
    "tensordot": _tensordot,
    "tile": lambda A, reps: held(A) * room(reps),
    "tril_indices triu_indices": lambda n, k=0, m=None: (
        2 * count(n) * (count(n) if m is None else count(m))
    ),
    "unravel_index": lambda indices, shape, *_: held(indices) * max(1, held(shape)),
    "vander": lambda x, N=None, *_, **__: held(x) * (held(x) if N is None else count(N)),
    "vdot": lambda a, b: (1, held(a)),
}

COSTS = {name: cost for words, cost in _COSTS.items() for name in words.split()}
"""The costs by the names of the functions."""


def cost_of(name: str, args: Any, kwargs: dict[str, Any]) -> tuple[int, int]:
    """The elements and the work of a call with unwrapped arguments."""
    cost: Cost = COSTS.get(name, usual)
    try:
        total = cost(*args, **kwargs)
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
        if name in ("einsum", "pad"):  # NumPy takes more there than is counted
            raise
        total = usual(*args, **kwargs)
    elements, work = total if isinstance(total, tuple) else (total, 0)
    return int(elements), int(work)
