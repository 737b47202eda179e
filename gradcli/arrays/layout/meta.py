"""Arrays without values, PyTorch's device `meta`: a shape, strides and a dtype.

NumPy's functions see zeros in their place, so the shape of a result is NumPy's own answer; what
they write is thrown away. What asks for a value is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from gradcli.arrays.layout.sizes import Device
from gradcli.errors import GradcliError, runtime_error

META = Device("meta")


class MetaArray(np.ndarray[Any, Any]):
    """An array that holds no values; all its elements are one zero."""

    @property
    def device(self) -> Any:
        """The device `meta`."""
        return META

    @property  # type: ignore[misc]  # ndarray's can be set
    def strides(self) -> tuple[int, ...]:
        """The distance of neighbours along each dimension in bytes, were there values in row
        order.
        """
        steps = [self.itemsize]
        for size in reversed(self.shape[1:]):
            steps.append(steps[-1] * max(size, 1))
        return tuple(reversed(steps[: self.ndim]))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        keywords.pop("out", None)
        return without_values(getattr(ufunc, method)(*map(_zeros, inputs), **keywords))

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return without_values(function(*_zeros(args), **_zeros(keywords)))

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> MetaArray:
        return _of(array)

    def __getitem__(self, index: Any) -> Any:
        return _of(np.asarray(self.view(np.ndarray)[_zeros(index)]))

    def __setitem__(self, index: Any, value: Any) -> None:
        pass

    def _refused(self, *args: Any) -> NoReturn:
        raise runtime_error(
            "item(): a tensor on meta has no values",
            text="Tensor.item() cannot be called on meta tensors",
            help="make it on the CPU, or give it memory with `to_empty(device='cpu')`",
        )

    item = __bool__ = __float__ = __int__ = __complex__ = __index__ = _refused

    def get(self) -> NoReturn:
        """Values on the host: there are none, and E205 says so."""
        raise no_data()

    tolist = get


def no_data(more: str = "") -> GradcliError:
    """The refusal to copy a tensor without values to where tensors have some."""
    return GradcliError(
        "E205",
        "a tensor on meta has no values to copy",
        text=f"Cannot copy out of meta tensor; no data!{more}",
        help="`to_empty(device='cpu')` gives a module memory; `load_state_dict` its values",
    )


def without_values(value: Any) -> Any:
    """What NumPy returned, with its arrays and scalars as MetaArrays; tuples and lists alike."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _of(np.asarray(value))
    if isinstance(value, (tuple, list)):
        parts = [without_values(each) for each in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _of(array: Any) -> MetaArray:
    zero = np.zeros((), array.dtype)
    strides = tuple(0 for _ in array.shape)
    strided = np.lib.stride_tricks.as_strided(zero, array.shape, strides, writeable=False)
    return strided.view(MetaArray)


def _zeros(value: Any) -> Any:
    kind = type(value)
    if kind is MetaArray:
        return value.view(np.ndarray)
    if isinstance(value, (tuple, list)):
        return kind(map(_zeros, value))
    if kind is dict:
        return {name: _zeros(each) for name, each in value.items()}
    return value


class _Creation:
    """NumPy's functions that make arrays, making MetaArrays; every other name is NumPy's."""

    def empty(self, shape: Any, dtype: Any = float) -> MetaArray:
        return _of(np.broadcast_to(np.zeros((), dtype), shape))

    zeros = ones = empty

    def full(self, shape: Any, value: Any, dtype: Any = None) -> MetaArray:
        return self.empty(shape, np.asarray(value).dtype if dtype is None else dtype)

    def ndarray(self, shape: Any, dtype: Any, *window: Any) -> MetaArray:
        return self.empty(shape, dtype)

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if name not in _MAKING:
            return function
        return lambda *args, **keywords: without_values(function(*_zeros(args), **_zeros(keywords)))


_MAKING = frozenset({"arange", "array", "asarray", "ascontiguousarray", "eye"})

creation = _Creation()
"""What `module_of` gives for a MetaArray."""
