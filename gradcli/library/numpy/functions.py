"""The functions of `numpy`, `numpy.linalg` and `numpy.fft`: which there are, and how they are
called; and `np.poly1d`, a polynomial as a value.

`np.loadtxt` and `np.genfromtxt` read tables of numbers, from texts too; `np.load`, `np.save` and
`np.savez` read and write arrays through the gate of files.
"""

from __future__ import annotations

import io
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import check_text
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import EnteredAsItself, by_name, called, names
from gradcli.library.files import StringIO, file_name, read_file
from gradcli.library.numpy.array import (
    NDArray,
    before_write,
    compute,
    cost_of,
    dtype_of,
    held,
    supported,
    unwrap,
    usual,
    wrap,
    written,
)
from gradcli.library.numpy.exchange import as_tensor
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.functions import methods
from gradcli.state import active

_REFUSED = names("device extobj formatter like overwrite_input sig signature subok")
"""Keywords of NumPy's functions that are for NumPy's own machinery."""

_TEXTS = names("append choice einsum equal insert isin not_equal select where")
"""The functions whose strings are data, never dtypes."""

_WRITES = names("copyto fill_diagonal nan_to_num place put put_along_axis putmask")
"""The functions that write to their first argument."""


def host_arguments(
    name: str, args: Any, kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Unwrapped arguments for a function of NumPy.

    Raises E201 for a keyword that programs do not have, E205 for a dtype that arrays do not have,
    and what `unwrap` raises.
    """
    for keyword in kwargs:
        if keyword in _REFUSED:
            raise GradcliError("E201", f"{name}() has no argument {keyword!r} in the language")
    values = [unwrap(value) for value in args]
    named = {key: unwrap(value) for key, value in kwargs.items()}
    if type(named.get("dtype")) is str:
        named["dtype"] = dtype_of(named["dtype"])
    if name not in _TEXTS:
        for value in values[2 if name in ("full", "full_like") else 1 :]:
            if type(value) is str:  # NumPy may take it for the name of a dtype
                with suppress(TypeError, ValueError, SyntaxError):
                    supported(np.dtype(value))
    for value in (*values, *named.values()):
        if isinstance(value, np.dtype):
            supported(value)
    for out in (*values[:1],) if name in _WRITES else (named.get("out"),):
        for array in out if isinstance(out, tuple) else (out,):
            if isinstance(array, np.ndarray):
                before_write(array)
    return values, named


def call(host: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy with a program's values."""
    values, named = host_arguments(name, args, kwargs)
    result = compute(host, values, named, *cost_of(name, values, named))
    out = kwargs.get("out")
    return out if type(out) is NDArray else result


def _function(name: str, host: Callable[..., Any]) -> Callable[..., Any]:
    return called(name, lambda *args, **kwargs: call(host, name, args, kwargs))


def _of_tensors(name: str, host: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result NumPy makes a tensor where an argument is one."""

    def function(*args: Any, **kwargs: Any) -> Any:
        result = call(host, name, args, kwargs)
        return as_tensor(result) if Tensor in map(type, args) else result

    return called(name, function)


def _by_method(name: str, host: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is a tensor's own method where the first argument is a tensor."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is Tensor:
            method = catalogue.methods.get("permute" if name == "transpose" else name)
            if method is None or name in _NOT_OF_TENSORS:
                raise type_error(
                    f"np.{name}() does not take a tensor that needs its own {name}()",
                    help=f"`tensor.{name}()`, or `np.{name}(tensor.numpy())`",
                )
            if name in ("cumprod", "cumsum") and len(args) + len(kwargs) == 1:
                return method(methods.reshape(args[0], -1), 0)
            if name == "transpose" and len(args) == 1:
                args = (args[0], tuple(range(args[0].ndim))[::-1])
            return method(*args, **kwargs)
        return call(host, name, args, kwargs)

    return called(name, function)


_NOT_OF_TENSORS = frozenset({"all", "any", "max", "mean", "min", "prod", "std", "sum", "var"})
"""NumPy calls the method with arguments that a tensor's has not, as PyTorch 2.13 answers."""


# --- ufuncs ------------------------------------------------------------------------------------


class Ufunc:
    """A ufunc as a value: `np.add(a, b)`, `np.add.at(a, i, b)`, `np.maximum.accumulate(a)`."""

    __slots__ = ("__name__", "host")

    language_name: ClassVar[str] = "numpy.ufunc"
    language_attributes = names("__name__ accumulate at nin nout outer reduce reduceat")

    def __init__(self, host: Any) -> None:
        self.host = host
        self.__name__ = host.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = call(self.host, self.__name__, args, kwargs)
        return as_tensor(result) if Tensor in map(type, args) else result

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    @property
    def nin(self) -> int:
        """How many operands it takes."""
        return int(self.host.nin)

    @property
    def nout(self) -> int:
        """How many results it gives."""
        return int(self.host.nout)

    def accumulate(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        """The running results along an axis."""
        return call(self.host.accumulate, "accumulate", (array, *args), kwargs)

    def reduce(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        """The result along an axis."""
        return call(self.host.reduce, "reduce", (array, *args), kwargs)

    def reduceat(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        """The results of slices."""
        return call(self.host.reduceat, "reduceat", (array, *args), kwargs)

    def outer(self, a: Any, b: Any) -> Any:
        """The results of all pairs."""
        values, named = host_arguments(self.__name__, (a, b), {})
        return compute(self.host.outer, values, named, held(values[0]) * held(values[1]))

    def at(self, a: Any, indices: Any, *b: Any) -> None:
        """Change the picked elements in place, one as often as it is picked."""
        values, named = host_arguments(self.__name__, (a, indices, *b), {})
        if isinstance(values[0], np.ndarray):
            before_write(values[0])
        compute(self.host.at, values, named, usual(*values))


# --- the tables --------------------------------------------------------------------------------

_UFUNCS = """
    abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
    atan2 atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees
    divide divmod equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd
    greater greater_equal heaviside hypot invert isfinite isinf isnan lcm ldexp left_shift less
    less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor matmul maximum minimum mod modf multiply negative nextafter not_equal positive pow
    power rad2deg radians reciprocal remainder right_shift rint sign signbit sin sinh spacing sqrt
    square subtract tan tanh true_divide trunc vecdot
"""

_PLAIN = """
    allclose amax amin angle append arange argpartition argwhere around array array_equal
    array_equiv cumulative_prod cumulative_sum matrix_transpose permute_dims resize
    array_split ascontiguousarray asanyarray atleast_1d atleast_2d atleast_3d average bartlett
    bincount blackman block broadcast_arrays broadcast_shapes broadcast_to can_cast choose
    column_stack may_share_memory
    concat concatenate convolve copy copyto corrcoef correlate count_nonzero cov cross diag
    diag_indices diagflat diff digitize dot dsplit dstack ediff1d einsum empty empty_like
    expand_dims extract eye fill_diagonal fix flatnonzero flip fliplr flipud format_float_positional
    format_float_scientific full full_like geomspace gradient hamming hanning histogram
    histogram2d histogram_bin_edges hsplit hstack i0 identity imag indices inner insert delete
    interp intersect1d isclose iscomplex iscomplexobj isin isneginf isposinf isreal isrealobj
    isscalar ix_ kaiser kron lexsort linspace logspace median meshgrid min_scalar_type moveaxis
    nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
    nanpercentile nanprod nanquantile nanstd nansum nanvar ndim ones ones_like outer pad partition
    percentile place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval
    promote_types put put_along_axis putmask quantile ravel_multi_index real result_type roll
    rollaxis roots rot90 select setdiff1d setxor1d sinc size sort sort_complex split stack
    take take_along_axis tensordot tile trapezoid tri tril tril_indices trim_zeros triu
    triu_indices union1d unique unique_counts unique_inverse unique_values unravel_index unwrap
    vander vdot vsplit vstack where zeros zeros_like
"""

_METHODS = """
    all any argmax argmin argsort clip compress cumprod cumsum diagonal max mean min nonzero prod
    ptp ravel repeat reshape round searchsorted squeeze std sum swapaxes trace transpose var
"""

_LINALG = "cholesky inv pinv solve tensorinv lstsq"
_LINALG_PLAIN = """
    cond cross det eig eigh eigvals eigvalsh matmul matrix_norm matrix_power matrix_rank
    matrix_transpose multi_dot norm outer qr slogdet svd svdvals tensordot trace vecdot vector_norm
    diagonal
"""
_FFT = """
    fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft
    rfft2 rfftfreq rfftn
"""


def asarray(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """`np.asarray(a)`: an array as it is, a tensor as the array on its memory."""
    if type(a) is NDArray and (dtype is None or unwrap(dtype) == a.data.dtype) and not kwargs:
        return a
    return call(np.asarray, "array", (a, dtype), kwargs)


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    """`np.astype(x, dtype)`."""
    return call(np.astype, "array", (x, dtype), {"copy": copy})


def _table(names: str, home: Any, make: Callable[[str, Callable[..., Any]], Any]) -> dict[str, Any]:
    """Functions of a module of NumPy by name: those that this NumPy has."""
    return {name: make(name, getattr(home, name)) for name in names.split() if hasattr(home, name)}


def shape(a: Any) -> Any:
    """`np.shape(a)`."""
    return a.shape if type(a) is Tensor else call(np.shape, "shape", (a,), {})


FUNCTIONS: dict[str, Any] = {
    **_table(_UFUNCS, np, lambda name, host: Ufunc(host)),
    **_table(_PLAIN, np, _function),
    **_table(_METHODS, np, _by_method),
    **by_name(asarray, astype, shape),
}
"""The functions of `numpy` that NumPy computes."""

LINALG: dict[str, Any] = {
    **_table(_LINALG, np.linalg, _of_tensors),
    **_table(_LINALG_PLAIN, np.linalg, _function),
}
"""The functions of `numpy.linalg`."""

FFT: dict[str, Any] = _table(_FFT, np.fft, _function)
"""The functions of `numpy.fft`."""


def scalar_of(host: type) -> Callable[..., Any]:
    """What calling a class of NumPy's scalars makes: a scalar, of a list an array."""

    def construct(value: Any = 0, /) -> Any:
        taken = unwrap("" if host is np.str_ and value == 0 else value)
        return compute(host, (taken,), {}, held(taken))

    return called(host.__name__, construct)


# --- polynomials ----------------------------------------------------------------------------------


_LONGEST_VARIABLE = 80


def host_of(value: Any) -> Any:
    """What NumPy's own polynomials see of a value."""
    return value.host if type(value) is Polynomial else unwrap(value)


def _wrapped(function: Callable[[], Any], elements: int, work: int = 0) -> Any:
    """What a function of NumPy gives, its polynomials the language's."""
    results: list[Any] = []
    # A polynomial is no array, so it passes by `wrap`.
    compute(lambda: results.append(function()), (), {}, elements, work)
    result = results[0]
    parts = [_value(each) for each in result] if isinstance(result, tuple) else _value(result)
    return tuple(parts) if isinstance(result, tuple) else parts


def _value(result: Any) -> Any:
    return Polynomial.of(result) if isinstance(result, np.poly1d) else wrap(result)


class Polynomial:
    """`np.poly1d([1, 0, 2])`: the polynomial with these coefficients, the highest power first."""

    __slots__ = ("host",)

    language_name: ClassVar[str] = "numpy.poly1d"
    language_str: ClassVar[bool] = True
    language_attributes = names("c coef coefficients coeffs deriv integ o order r roots variable")

    __array_ufunc__: ClassVar[None] = None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if variable is not None and (
            type(variable) is not str or len(variable) > _LONGEST_VARIABLE
        ):
            raise type_error("the variable of a polynomial is a short string")
        numbers = host_of(c_or_r)
        terms = held(np.atleast_1d(numbers))
        self.host: Any = None

        def make() -> None:
            self.host = np.poly1d(numbers, bool(r), variable)

        compute(make, (), {}, terms, terms**2 if r else 0)

    @classmethod
    def of(cls, host: Any) -> Polynomial:
        """A polynomial that NumPy made."""
        polynomial = cls.__new__(cls)
        polynomial.host = host
        return polynomial

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        if name in ("r", "roots"):
            terms = self._terms()
            return compute(lambda: self.host.roots, (), {}, terms**2, terms**3 >> 3)
        return wrap(getattr(self.host, name))

    def __call__(self, val: Any) -> Any:
        value = host_of(val)
        size = held(np.atleast_1d(value))
        return _wrapped(lambda: self.host(value), size, size * self._terms())

    def deriv(self, m: int = 1) -> Any:
        """The m-th derivative."""
        return _wrapped(lambda: self.host.deriv(unwrap(m)), self._terms())

    def integ(self, m: int = 1, k: Any = 0) -> Any:
        """The m-th antiderivative, with the constants `k`."""
        times = operator.index(unwrap(m))
        return _wrapped(lambda: self.host.integ(times, unwrap(k)), self._terms() + max(times, 0))

    def _terms(self) -> int:
        return len(self.host) + 1

    def __len__(self) -> int:
        return len(self.host)

    def __iter__(self) -> Iterator[Any]:
        return map(wrap, iter(self.host))

    def __getitem__(self, power: Any) -> Any:
        return compute(lambda: self.host[unwrap(power)], (), {}, 1)

    def __neg__(self) -> Any:
        return _wrapped(lambda: -self.host, self._terms())

    def __pow__(self, power: Any) -> Any:
        times = unwrap(power)
        terms = self._terms() * (max(times, 0) if isinstance(times, int) else 1)
        return _wrapped(lambda: self.host**times, terms, terms * self._terms())

    def __eq__(self, other: object) -> Any:
        return type(other) is Polynomial and wrap(self.host == other.host)

    def __ne__(self, other: object) -> Any:
        return type(other) is not Polynomial or wrap(self.host != other.host)

    def __repr__(self) -> str:
        return written(lambda coefficients: repr(np.poly1d(coefficients)), self.host.coeffs)

    def __str__(self) -> str:
        return written(lambda coefficients: self.host, self.host.coeffs)


def _operator(name: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """An operator of polynomials, with the polynomial on the right where it is swapped."""
    function = getattr(operator, name)

    def operate(self: Polynomial, other: Any) -> Any:
        if isinstance(other, str):
            return NotImplemented
        left, right = (host_of(other), self.host) if swapped else (self.host, host_of(other))
        terms = held(np.atleast_1d(right if left is self.host else left))
        return _wrapped(lambda: function(left, right), terms + self._terms(), terms * self._terms())

    return operate


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Polynomial, f"__{_name}__", _operator(_name))
    setattr(Polynomial, f"__r{_name}__", _operator(_name, swapped=True))


# --- functions that touch files -------------------------------------------------------------------


_INSTEAD = {
    "converters": "change the numbers after they are read",
    "like": "the result is an array of NumPy",
    "names": "`skip_header=1` leaves the names out, and columns have numbers",
    "replace_space": "columns have numbers",
    "usemask": "`np.isnan` finds what is missing",
}
"""Arguments that programs do not have, with what to do instead."""


def _lines(fname: Any, encoding: Any) -> io.StringIO:
    """The text of a file, of an open one, or of a list of lines."""
    if isinstance(fname, StringIO):
        text = fname.host.read()
    elif isinstance(fname, str) or hasattr(fname, "language_path"):
        text = read_file(fname, encoding=encoding).host.read()
    else:
        lines = list(bounded(fname))
        if not all(isinstance(line, str) for line in lines):
            raise type_error("fname must be a string, filehandle, list of strings,\nor generator")
        text = "\n".join(line.removesuffix("\n") for line in lines)
    check_text(len(text))
    return io.StringIO(text)


def _reader(host: Callable[..., Any]) -> Callable[..., Any]:
    name = host.__name__

    def read(fname: Any, *args: Any, encoding: Any = None, **kwargs: Any) -> Any:
        for keyword, instead in _INSTEAD.items():
            if kwargs.pop(keyword, None) is not None:
                raise GradcliError(
                    "E201", f"{name}() has no argument {keyword!r} in the language", help=instead
                )
        values, named = host_arguments("choice", args, kwargs)  # a delimiter is no dtype
        lines = _lines(fname, encoding if encoding != "bytes" else None)
        cells = len(lines.getvalue()) // 2 + 1
        return compute(host, [lines, *values], named, cells, 16 * cells)

    return called(name, read)


class Archive(EnteredAsItself):
    """What `np.load` gives for an .npz file: its arrays by name, read when they are asked for."""

    __slots__ = ("_arrays",)

    language_name: ClassVar[str] = "numpy.lib.npyio.NpzFile"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"close", "files", "keys"})

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays

    @property
    def files(self) -> list[str]:
        """The names."""
        return list(self._arrays)

    def keys(self) -> list[str]:
        """The names."""
        return self.files

    def close(self) -> None:
        """Nothing is open."""

    def __getitem__(self, name: Any) -> Any:
        if name not in self._arrays:
            text = f"{name} is not a file in the archive"
            raise Raised("KeyError", display(text), (text,), "E207")
        return wrap(self._arrays[name])

    def __contains__(self, name: Any) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self._arrays)


def load(file: Any, mmap_mode: Any = None, allow_pickle: Any = False, **named: Any) -> Any:
    """`np.load("x.npy")`: an array; the arrays by name of an .npz file. No pickle is read."""
    from gradcli.arrays.files.data_file import DataFile  # lazy: start-up
    from gradcli.arrays.files.formats import read  # lazy: start-up

    path = file_name("np.load()", file)
    active.state.limits.check_file(path)
    kind = "npz" if path.endswith(".npz") else "npy"
    content = read(DataFile(f"./{path}" if path == "-" else path, "", kind))
    return Archive(content) if isinstance(content, Mapping) else wrap(content)


def save(file: Any, arr: Any, allow_pickle: Any = True, **named: Any) -> None:
    """`np.save("x.npy", array)`, whose suffix may be left out."""
    _write(file, ".npy", np.asarray(unwrap(arr)))


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """`np.savez("x.npz", array, name=array)`: those without a name are `arr_0`, `arr_1`, …"""
    named = {f"arr_{number}": each for number, each in enumerate(args)}
    for name in named:
        if name in kwds:
            raise value_error(f"Cannot use un-named variables and keyword {name}")
    _write(file, ".npz", {n: np.asarray(unwrap(v)) for n, v in {**named, **kwds}.items()})


def _write(file: Any, suffix: str, value: Any) -> None:
    from gradcli.arrays.files.formats import write_arrays  # lazy: start-up

    path = file_name("np.save()", file)
    write_arrays(path if path.endswith(suffix) else path + suffix, value)


TABLES = {
    **by_name(load, save, savez),
    "savez_compressed": called("savez_compressed", lambda file, *a, **k: savez(file, *a, **k)),
    "genfromtxt": _reader(np.genfromtxt),
    "loadtxt": _reader(np.loadtxt),
}
"""The functions of `numpy` that touch files."""
