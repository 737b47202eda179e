"""CuPy's functions by NumPy's: the implementations of ufuncs, their methods and other functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.gpu.runtime import cupy, extension

Function = Callable[..., Any]


def ufunc_method(ufunc: Any, method: str) -> Function | None:
    """The function that computes a ufunc, or one of its methods, on CuPy's arrays; None where there
    is none, and the host has to compute it.
    """
    if method == "at":
        return _SCATTERED.get(ufunc) or functools.partial(_at_on_the_host, ufunc)
    compute = _ufunc(ufunc)
    if method == "__call__" or compute is None:
        return compute
    return _METHODS[method](ufunc, compute)


def function_like(function: Any) -> Function | None:
    """CuPy's function with the module and name of one of NumPy's, None where it has none."""
    if function in _OWN:
        return _OWN[function]
    try:
        module = functools.reduce(getattr, function.__module__.split(".")[1:], cupy())
        counterpart: Function = getattr(module, function.__name__)
    except AttributeError:
        return None
    if counterpart is function:
        return None
    return _raising(counterpart) if function.__module__ == "numpy.linalg" else counterpart


def _windows(array: Any, shape: Any, axis: Any = None, *, writeable: bool = False) -> Any:
    # CuPy's views can be written to, and it refuses to be asked for one.
    return cupy().lib.stride_tricks.sliding_window_view(array, shape, axis)


def _logical(name: str) -> Function:
    """A logical ufunc: CuPy has none of complex numbers."""

    def compute(*operands: Any, **keywords: Any) -> Any:
        truth = [
            each != 0 if getattr(each, "dtype", bool) in _COMPLEX else each for each in operands
        ]
        return getattr(cupy(), name)(*truth, **keywords)

    return compute


def _where(condition: Any, *choices: Any) -> Any:
    """A choice in NumPy's dtype: of bfloat16 CuPy makes float32."""
    chosen = cupy().where(condition, *choices)
    if not choices:
        return chosen
    dtype = np.result_type(*[getattr(each, "dtype", each) for each in choices])
    return chosen.astype(dtype, copy=False)


def _in_single(name: str) -> Function:
    """A function that orders elements: CuPy does not order bfloat16."""

    def compute(*operands: Any, **keywords: Any) -> Any:
        wide = [
            each.astype(np.float32) if getattr(each, "dtype", None) == "bfloat16" else each
            for each in operands
        ]
        result = getattr(cupy(), name)(*wide, **keywords)
        return result.astype(operands[0].dtype) if name == "sort" else result

    return compute


_COMPLEX = (np.complex64, np.complex128)

_OWN: dict[Any, Function] = {
    np.lib.stride_tricks.sliding_window_view: _windows,
    np.where: _where,
    np.sort: _in_single("sort"),
    np.argsort: _in_single("argsort"),
    np.isin: _in_single("isin"),
    np.logical_and: _logical("logical_and"),
    np.logical_or: _logical("logical_or"),
    np.logical_xor: _logical("logical_xor"),
    np.logical_not: _logical("logical_not"),
}
"""What CuPy has with other parameters, or for fewer dtypes."""


def _raising(function: Function) -> Function:
    """A function of linear algebra that raises LinAlgError as NumPy's does, for which CuPy waits
    for the GPU; by itself it leaves NaN.
    """

    def compute(*args: Any, **keywords: Any) -> Any:
        with extension("cupyx").errstate(linalg="raise"):
            return function(*args, **keywords)

    return compute


def _ufunc(ufunc: Any) -> Function | None:
    if ufunc in _OWN:
        return _OWN[ufunc]
    name = ufunc.__name__
    if getattr(np, name, None) is ufunc or ufunc is np.matmul:
        return getattr(cupy(), name, None)
    # SciPy's special functions are ufuncs of names of their own.
    return getattr(extension("cupyx.scipy.special"), name, None)


# --- methods --------------------------------------------------------------------------------------

_REDUCTIONS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}


def _reduce(ufunc: Any, combine: Function) -> Function | None:
    if ufunc not in _REDUCTIONS:
        return None
    reduction = getattr(cupy(), _REDUCTIONS[ufunc])

    def compute(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        out: Any = None,
    ) -> Any:
        if initial is not None and not array.size:
            shape = np.empty(array.shape, np.bool_).any(axis=axis, keepdims=keepdims).shape
            return cupy().full(shape, initial, array.dtype)
        if axis == ():
            return array.astype(dtype or array.dtype)
        options = {} if dtype is None else {"dtype": dtype}
        result = reduction(array, axis=axis, keepdims=keepdims, out=out, **options)
        if initial is None:
            return result
        return combine(result, array.dtype.type(initial))

    return compute


_RUNNING = {np.add: "cumsum", np.multiply: "cumprod"}


def _accumulate(ufunc: Any, combine: Function) -> Function:
    def compute(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        if ufunc in _RUNNING:
            result = getattr(cupy(), _RUNNING[ufunc])(array, axis=axis)
            result = result.astype(array.dtype, copy=False)
        else:
            result = _scan(combine, array, axis)
        if out is None:
            return result
        out[...] = result
        return out

    return compute


def _scan(combine: Function, array: Any, axis: int) -> Any:
    """The running results of an associative operation, in as many steps as the length has bits."""
    result = cupy().moveaxis(array, axis, 0).copy()
    reach = 1
    while reach < len(result):
        result[reach:] = combine(result[reach:], result[:-reach].copy())
        reach *= 2
    return cupy().moveaxis(result, 0, axis)


def _at_on_the_host(ufunc: Any, array: Any, index: Any, values: Any) -> None:
    whole = array.get()
    on_host = tuple(map(_got, index)) if isinstance(index, tuple) else _got(index)
    ufunc.at(whole, on_host, _got(values))
    array[...] = cupy().asarray(whole)


def _add_at(array: Any, index: Any, values: Any) -> None:
    values = cupy().asarray(values, array.dtype)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "c":
        _add_at(array.real, index, values.real)
        _add_at(array.imag, index, values.imag)
    elif kind == "b":
        _extreme_at("maximum", array, index, values)
    elif kind == "V" or (kind in "iu" and size < 4):
        # bfloat16, which is rounded once; small integers have the same bits, once they are cut off.
        dtype = np.float32 if kind == "V" else np.int32
        wide = array.astype(dtype)
        _add_at(wide, index, values.astype(dtype))
        array[...] = wide
    else:
        cupy().add.at(array, index, values)


def _extreme_at(name: str, array: Any, index: Any, values: Any) -> None:
    """Write the extreme of all that meets at a place, as integers that are ordered alike: CuPy
    compares floats in single precision, loses NaN, and lacks the narrow dtypes.
    """
    values = cupy().asarray(values, array.dtype)
    extreme = getattr(cupy(), name)
    if array.dtype.kind in "iu" and array.dtype.itemsize >= 4:
        extreme.at(array, index, values)
        return
    ordered = _ordered(array, name)
    extreme.at(ordered, index, _ordered(values, name))
    array[...] = _from_ordered(ordered, array.dtype)


_MAGNITUDE = np.int64(2**63 - 1)


def _ordered(array: Any, name: str) -> Any:
    """Integers in the order of an array's elements, NaN beyond all that it is to replace."""
    if array.dtype.kind not in "fV":
        return array.astype(np.int64)
    bits = array.astype(np.float64).view(np.int64)
    bits = bits ^ ((bits >> 63) & _MAGNITUDE)
    beyond = _MAGNITUDE if name == "maximum" else ~_MAGNITUDE
    return cupy().where(cupy().isnan(array), beyond, bits)


def _from_ordered(ordered: Any, dtype: Any) -> Any:
    if dtype.kind not in "fV":
        return ordered.astype(dtype)
    return (ordered ^ ((ordered >> 63) & _MAGNITUDE)).view(np.float64).astype(dtype)


_SCATTERED: dict[Any, Function] = {
    np.add: _add_at,
    np.maximum: functools.partial(_extreme_at, "maximum"),
    np.minimum: functools.partial(_extreme_at, "minimum"),
}
"""The methods `at` that compute on the GPU; the others copy the array to the host and back."""


def _got(value: Any) -> Any:
    return value.get() if isinstance(value, cupy().ndarray) else value


def _outer(ufunc: Any, combine: Function) -> Function:
    def compute(left: Any, right: Any, **keywords: Any) -> Any:
        column = left.reshape(left.shape + (1,) * right.ndim)
        return combine(column, right, **keywords)

    return compute


_METHODS: dict[str, Callable[[Any, Function], Function | None]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
}
