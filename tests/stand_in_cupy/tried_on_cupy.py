"""The stand-in's calls, tried on the real CuPy first: on arrays of the same shape, strides and
dtype, on a machine without a driver. What CuPy refuses, the stand-in refuses with the same error.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tests import driverless_cupy, stand_in_cupy

calls: Counter[str] = Counter()
"""How often each function was called."""

_LACKING = ("Failure finding", "failed inside CUB", "cudaErrorInvalidDevice")
"""Words of errors that come from behind CuPy: a library of CUDA's, or the launch itself."""


def _real(value: Any) -> Any:
    """An operand with CuPy's arrays, on the same memory, in place of the stand-in's."""
    if isinstance(value, stand_in_cupy.ndarray):
        cupy, host = driverless_cupy.load(), value.host
        return cupy.ndarray(
            host.shape, host.dtype, driverless_cupy.memory(host), strides=host.strides
        )
    if type(value) in (tuple, list):
        return type(value)(map(_real, value))
    if type(value) is dict:
        return {name: _real(each) for name, each in value.items()}
    return value


def attempt(name: str, args: Any, keywords: Any, made_of: Any) -> Callable[[Any], Any]:
    """Call CuPy's function of a name, or a kernel that is made of some arguments; raises what CuPy
    raises. The function that is returned compares a result with CuPy's.
    """
    calls[name] += 1
    root = driverless_cupy.load()
    if name.startswith("cupyx."):
        root, name = driverless_cupy.extensions(), name.removeprefix("cupyx.")
    function = functools.reduce(getattr, name.split("."), root)
    if made_of is not None:
        function = function(*made_of[0], **made_of[1])
    try:
        found = function(*_real(args), **_real(keywords))
    except (ImportError, RuntimeError) as failure:
        if not any(each in str(failure) for each in _LACKING):
            raise
        return lambda result: result
    by_values = name in _SIZED_BY_VALUES or any(_is_mask(each) for each in args[1:])
    return functools.partial(_compared, name, found, by_values)


def _is_mask(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(getattr(each, "dtype", None) == np.bool_ for each in parts)


_SIZED_BY_VALUES = frozenset(
    {"nonzero", "ndarray.nonzero", "unique", "argwhere", "flatnonzero", "repeat", "bincount"}
)


def _compared(name: str, found: Any, by_values: bool, result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        for ours, cupys in zip(result, found, strict=not by_values):
            _compared(name, cupys, by_values, ours)
    elif isinstance(result, stand_in_cupy.ndarray):
        assert found.dtype == result.dtype, f"{name}: {found.dtype}, here {result.dtype}"
        assert by_values or found.shape == result.shape, f"{name}: {found.shape}, {result.shape}"
    return result
