"""Arrays in a GPU's memory: CuPy's, with the behaviour of NumPy's that the ops rely on.

A forward function or a rule is written once, with NumPy's functions. NumPy asks its operands what
to do (`__array_ufunc__`, `__array_function__`), and a `GPUArray` answers with CuPy's function of
that name. What CuPy lacks, or has in another form, is computed on the host and copied back.

Nothing here waits for the GPU but what needs values on the host: `get`, `item`, `bool()` and its
like, a selection by a mask, and the functions that CuPy lacks.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradcli.arrays.gpu.runtime import cupy


class GPUArray(NDArrayOperatorsMixin):
    """An array on a GPU; none of its functions waits for the GPU unless it says so.

    Attributes:
        values: CuPy's array. Two GPUArrays on one memory are views of each other.
    """

    __slots__ = ("__weakref__", "values")

    def __init__(self, values: Any) -> None:
        self.values = values

    # --- what it is -----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return int(self.values.ndim)

    @property
    def size(self) -> int:
        return int(self.values.size)

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance of neighbours along each dimension, in bytes."""
        return self.values.strides

    @property
    def real(self) -> GPUArray:
        """The real parts, in the same memory where the dtype is complex."""
        return GPUArray(self.values.real)

    @real.setter
    def real(self, value: Any) -> None:
        self.values.real = on_device(value)

    @property
    def imag(self) -> GPUArray:
        """The imaginary parts, in the same memory where the dtype is complex."""
        return GPUArray(self.values.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.values.imag = on_device(value)

    @property
    def device(self) -> Any:
        """CuPy's object for the GPU that it is on."""
        return self.values.device

    @property
    def base(self) -> GPUArray | None:
        """The array whose memory it shows, None if it has its own."""
        return None if self.values.base is None else GPUArray(self.values.base)

    @property
    def address(self) -> int:
        """The address of its first element in the GPU's memory."""
        return int(self.values.data.ptr)

    @property  # type: ignore[misc]  # object's can be set
    def __class__(self) -> Any:
        # `isinstance` checks for ndarray accept it.
        return np.ndarray

    __hash__ = object.__hash__

    # --- values on the host: these wait for the GPU ---------------------------------------------

    def get(self) -> Any:
        """A copy in the host's memory, an ndarray."""
        return self.values.get()

    def item(self, *index: int) -> Any:
        """One element as a Python number."""
        return self.values.get().item(*index)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.values.get().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError("an array on a GPU is no array of the host's: get() copies it")

    def __bool__(self) -> bool:
        return bool(self.values.get())

    def __float__(self) -> float:
        return float(self.values.get().item())

    def __int__(self) -> int:
        return int(self.values.get().item())

    def __complex__(self) -> complex:
        return complex(self.values.get().item())

    def __index__(self) -> int:
        return int(self.values.get().__index__())

    def __repr__(self) -> str:
        return f"GPUArray({self.values.get()!r})"

    # --- parts ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self.values)))

    def __getitem__(self, index: Any) -> Any:
        if type(index) is tuple and not index:
            return self
        return GPUArray(self.values[on_device(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        value = on_device(value)
        if (
            isinstance(index, np.ndarray)
            and index.dtype == np.bool_
            and getattr(value, "size", 1) != 1
        ):
            # CuPy writes one number through a mask, or several to positions.
            self.values[cupy().nonzero(on_device(index))] = value
            return
        self.values[on_device(index)] = value

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> GPUArray:
        """The elements in another shape. Raises ValueError with `copy=False` where no view has
        it.
        """
        result = self.values.reshape(*shape, order=order)
        if copy is False and result.size and result.data.ptr != self.values.data.ptr:
            raise ValueError("no view of the memory has this shape")
        return GPUArray(result)

    def view(self, dtype: Any = None) -> GPUArray:
        """The same memory, read as another dtype where one is given."""
        return GPUArray(self.values.view(self.dtype if dtype is None else dtype))

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> GPUArray:
        """The values in another dtype; itself with `copy=False` where it has it."""
        if not copy and self.dtype == dtype:
            return self
        return GPUArray(self.values.astype(dtype, order=order))

    def copy(self, order: str = "C") -> GPUArray:
        """The same values in memory of their own."""
        return GPUArray(self.values.copy(order=order))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that NumPy and Python look for
            raise AttributeError(name)
        attribute = getattr(self.values, name)
        if not callable(attribute):
            return wrapped(attribute)
        return lambda *args, **keywords: wrapped(attribute(*on_device(args), **on_device(keywords)))

    # --- NumPy's functions ----------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if any(type(each) is not GPUArray and hasattr(each, "force") for each in inputs):
            return NotImplemented  # a lazy array makes it part of its plan
        from gradcli.arrays.gpu import functions  # lazy: start-up: only arrays on a GPU

        out = keywords.pop("out", (None,))[0]
        if type(out) is GPUArray:
            keywords["out"] = out.values
        elif out is not None:
            return NotImplemented
        compute = functions.ufunc_method(ufunc, method)
        if compute is not None:
            result = compute(*map(on_device, inputs), **keywords)
            return out if out is not None else wrapped(result)
        keywords.pop("out", None)
        result = on_device(getattr(ufunc, method)(*map(on_host, inputs), **keywords))
        if out is None:
            return wrapped(result)
        out[...] = wrapped(result)
        return out

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        if any(hasattr(kind, "force") for kind in types):
            return NotImplemented
        from gradcli.arrays.gpu import functions  # lazy: start-up: only arrays on a GPU

        if function is np.result_type:
            return np.result_type(*[getattr(each, "dtype", each) for each in args])
        compute = functions.function_like(function)
        if compute is not None:
            return wrapped(compute(*on_device(args), **on_device(keywords)))
        if function in _WRITING:
            target = args[0].get()
            function(target, *on_host(args[1:]), **on_host(keywords))
            args[0][...] = target
            return None
        return wrapped(on_device(function(*on_host(args), **on_host(keywords))))


_WRITING = frozenset({np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask})
"""The functions that write to their first operand."""


def wrapped(value: Any) -> Any:
    """What CuPy returned, with its arrays as GPUArrays; tuples and lists of them alike."""
    if isinstance(value, cupy().ndarray):
        return GPUArray(value)
    if isinstance(value, (tuple, list)):
        parts = [wrapped(each) for each in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def on_device(value: Any) -> Any:
    """A value with its arrays, also NumPy's, as CuPy's."""
    kind = type(value)
    if kind is GPUArray:
        return value.values
    if kind is np.ndarray:
        return cupy().asarray(value)
    if isinstance(value, (tuple, list)):  # also an index, and np.linalg's results
        parts = [on_device(each) for each in value]
        return parts if kind is list else tuple(parts)
    if kind is dict:
        return {name: on_device(each) for name, each in value.items()}
    return value.force().values if hasattr(value, "force") else value


def on_host(value: Any) -> Any:
    """A value with its arrays as NumPy's; waits for the GPU."""
    kind = type(value)
    if kind is GPUArray:
        return value.get()
    if kind is tuple or kind is list:
        return kind([on_host(each) for each in value])
    if kind is dict:
        return {name: on_host(each) for name, each in value.items()}
    return value


ARRAYS = frozenset({np.ndarray, GPUArray})
"""The classes of arrays that are no scalars, for the quickest test."""
