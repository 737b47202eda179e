"""Batched values: the tensor that a function sees inside `torch.vmap`.

It is an ordinary `Tensor` whose array is a `BatchedArray`: the shape of one example, and the tensor
with the values of all of them. The generated `apply` of an op hands such operands to the running
`vmap` (`state.batch`), which computes all examples at once with ops on the tensors inside. So two
graphs may grow: of the tensors inside, and, where a transform inside the `vmap` differentiates, of
the examples.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor, note_creation
from gradcli.errors import runtime_error
from gradcli.state import active


class NeedsExamples(Exception):
    """A function reads the elements of one example: it has to run for one after the other."""


_ESCAPED = (
    "Either your tensor may have escaped from inside a function being vmapped and this is a user"
    " error (see https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal"
    " functorch error in `gen_vmap_plumbing` Please file an issue if it looks like the latter"
)
"""PyTorch's text."""


def needs_examples() -> Exception:
    """What is raised where one example's elements are read: E204 where no `vmap` runs any more."""
    if active.state.batch is None:
        return runtime_error("a tensor escaped from a function that vmap maps", text=_ESCAPED)
    return NeedsExamples()


def _read(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise needs_examples()


class BatchedArray:
    """The array of a batched value: it has the shape and dtype of one example, and no elements.

    Attributes:
        value: the tensor with the values of all examples; it may be batched itself.
        bdim: the dimension of `value` that counts them; None where all examples share the value.
        level: the number of the transform that batched it, counted from the outermost.
        shape, dtype: those of one example.
    """

    __slots__ = ("bdim", "dtype", "level", "shape", "value")

    def __init__(self, value: Tensor, bdim: int | None, level: int) -> None:
        self.value = value
        self.bdim = bdim
        self.level = level
        shape = value.array.shape
        self.shape = shape if bdim is None else shape[:bdim] + shape[bdim + 1 :]
        self.dtype = value.array.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of one example."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements one example has."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes of one example."""
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        """Where the values are, as their array says it."""
        return getattr(unbatched(self), "device", "cpu")

    @property
    def strides(self) -> tuple[int, ...]:
        """The steps in memory from element to element of one example, in bytes."""
        strides = self._inner.strides if self._nested else forced(self.value.array).strides
        return strides if self.bdim is None else strides[: self.bdim] + strides[self.bdim + 1 :]

    @property
    def _inner(self) -> Any:
        return self.value.array

    @property
    def _nested(self) -> bool:
        return type(self.value.array) is BatchedArray

    @property
    def flags(self) -> Any:
        """NumPy's flags of one example."""
        return self.layout.flags

    @property
    def layout(self) -> Any:
        """An array that lies in memory as one example does; its elements mean nothing."""
        strides = self.strides
        if 0 in self.shape or not self.shape:
            return np.empty(self.shape, self.dtype)
        span = 1 + sum((n - 1) * abs(s) for n, s in zip(self.shape, strides, strict=True))
        memory = np.empty(span + self.itemsize, np.uint8)
        return np.ndarray(self.shape, self.dtype, memory, 0, strides)

    def item(self) -> Any:
        """The one element, where all examples share it."""
        if self.bdim is not None:
            raise needs_examples()
        return self.value.array.item()

    def reshape(self, size: Any, *, copy: Any = None) -> Any:
        """The layout in another shape; raises ValueError where that needs a copy."""
        if tuple(size) == tuple(self.shape):
            return self
        if copy is not False:
            raise needs_examples()
        return self.layout.reshape(size, copy=False)

    def astype(self, dtype: Any, copy: bool = True) -> BatchedArray:
        """Values that no graph leads to, in another dtype."""
        return self._changed(lambda array: array.astype(dtype, copy=copy))

    def _changed(self, change: Callable[[Any], Any]) -> BatchedArray:
        return BatchedArray(Tensor(change(self.value.array)), self.bdim, self.level)

    def __getitem__(self, key: Any) -> BatchedArray:
        if type(key) is tuple and not key:
            return self
        raise needs_examples()

    def __mul__(self, other: Any) -> BatchedArray:
        return self._with(other, lambda array: array * other)

    def __add__(self, other: Any) -> BatchedArray:
        return self._with(other, lambda array: array + other)

    def __sub__(self, other: Any) -> BatchedArray:
        return self._with(other, lambda array: array - other)

    def __truediv__(self, other: Any) -> BatchedArray:
        return self._with(other, lambda array: array / other)

    def _with(self, other: Any, change: Callable[[Any], Any]) -> BatchedArray:
        if type(other) is not float and type(other) is not int:
            raise needs_examples()
        return self._changed(change)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise needs_examples()

    __array__ = __array_ufunc__ = _read
    __setitem__ = __len__ = __iter__ = __bool__ = _read
    __float__ = __int__ = __index__ = __complex__ = _read
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _read
    __radd__ = __rsub__ = __rmul__ = _read
    __rtruediv__ = __pow__ = __neg__ = __invert__ = __and__ = __or__ = __mod__ = _read
    __hash__ = object.__hash__


def unbatched(array: Any) -> Any:
    """The array with the values of all examples, of an array that may be batched."""
    while type(array) is BatchedArray:
        array = array.value.array
    return array


def of_all_examples(tensor: Tensor) -> Tensor:
    """The tensor with the values of all examples, of one that may be batched."""
    while type(tensor.array) is BatchedArray:
        tensor = tensor.array.value
    return tensor


def batched_tensor(value: Tensor, bdim: int | None, level: int) -> Tensor:
    """A batched value; it carries no gradient at its own level."""
    tensor: Tensor = object.__new__(Tensor)
    tensor.array = BatchedArray(value, bdim, level)
    tensor.requires_grad = False
    tensor.grad_fn = None
    tensor.output_nr = 0
    tensor.storage = None
    tensor.meta = None
    if active.state.notes_creation:
        note_creation(tensor, view=True)
    return tensor


def change_values(tensor: Tensor, change: Callable[[Any], Any]) -> None:
    """Give a new tensor other values, outside the graph; of all examples where it is batched."""
    while type(tensor.array) is BatchedArray:
        tensor = tensor.array.value
    tensor.array = change(tensor.array)


def shared(array: Any) -> Any:
    """The elements of an array that all examples share; raises NeedsExamples for any other."""
    while type(array) is BatchedArray:
        if array.bdim is not None:
            raise needs_examples()
        array = array.value.array
    return array


def fresh_leaf(array: Any) -> Tensor:
    """A new variable at the level of the running `vmap`, outside of any graph."""
    frame = active.state.batch
    leaf = Tensor(array)
    leaf = leaf if frame is None else frame.wrapped(leaf)
    leaf.requires_grad = True
    return leaf
