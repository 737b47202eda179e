"""View replay: the geometry of a view in its base, so that the same view can be made of another
value of the base.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.arrays.backend import address_of, module_of
from gradcli.arrays.fusion.lazy_conjugation import PLAIN, reflected
from gradcli.autograd.batched import unbatched
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, meta_of, not_installed

# Installed by gradcli.ops.
as_strided: Callable[[Tensor, tuple[int, ...], tuple[int, ...], int], Tensor] = not_installed
conj: Callable[[Tensor], Tensor] = not_installed
negated: Callable[[Tensor], Tensor] = not_installed
view_as_complex: Callable[[Tensor], Tensor] = not_installed
view_as_real: Callable[[Tensor], Tensor] = not_installed


Geometry = tuple[tuple[int, ...], tuple[int, ...], int]
"""Shape, strides and offset of a view in its base's memory, strides and offset in the view's own
elements: a real view of complex numbers has two for each of them.
"""


def geometry(base: Any, view: Any) -> Geometry:
    """How an array lies in the memory of its base."""
    size = view.itemsize
    offset = (address_of(unbatched(view)) - address_of(unbatched(base))) // size
    return view.shape, tuple(step // size for step in view.strides), offset


def extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """How many elements of memory an array spans."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


def shown(memory: Any, dtype: Any, view: Geometry) -> Any:
    """The array that shows bytes of memory in a given geometry."""
    shape, strides, offset = view
    size = dtype.itemsize
    start = 0 if 0 in shape else offset * size
    steps = [step * size for step in strides]
    return module_of(memory).ndarray(shape, dtype, memory, start, steps)


def storage_offset(tensor: Tensor) -> int:
    """How many elements of the memory that the tensor shows lie before its first.

    Example: tensor([0.5, 1., 2.]).storage_offset()
    """
    return 0 if tensor.base is None else ViewReplay(tensor.base, tensor).geometry[2]


class ViewReplay:
    """Makes a view again, of another value of its base.

    Attributes:
        dtype: the view's dtype: it may show complex numbers as pairs of real ones, or pairs as
            complex numbers.
    """

    __slots__ = (
        "_reflected_last",
        "_reflected_twice",
        "_windows",
        "dtype",
        "geometry",
        "reflection",
    )

    def __init__(self, base: Tensor, view: Tensor) -> None:
        array, self.reflection = view.array, PLAIN
        self._reflected_last = self._reflected_twice = False
        lazy = None if view.storage is None else view.storage.lazy_conjugation
        if lazy is not None:
            of_base, of_view = lazy.reflection(base.array), lazy.reflection(array)
            node = view.grad_fn
            if of_base == of_view:
                self._reflected_twice = node is not None and node.node_name == "ConjBackward0"
            else:
                self.reflection = (of_base[0] != of_view[0], of_base[1] != of_view[1])
                array = lazy.shown(array, of_base)
                self._reflected_last = node is None or node.node_name in _REFLECTING
        self.dtype = array.dtype
        self.geometry = geometry(base.array, array)
        plain = self.dtype is base.array.dtype and self.reflection == PLAIN
        self._windows = 1 if plain else _windows_of(view.grad_fn)

    def replay(self, base: Tensor) -> Tensor:
        """The view of a base, made by the same ops as in PyTorch."""
        kind, kind_of_base = self.dtype.kind, base.array.dtype.kind
        if kind == kind_of_base:
            if self._reflected_last:
                return self._reflected(self._window(base))
            if self._reflected_twice:
                return conj(conj(self._window(base)))
            return self._windowed(self._reflected(base))
        if kind == "c":
            return self._reflected(view_as_complex(self._window(base)))
        conjugated, turned = self.reflection
        pairs = view_as_real(conj(base) if conjugated else base)
        return self._windowed(negated(pairs) if turned else pairs)

    def _windowed(self, whole: Tensor) -> Tensor:
        """The view that shows all of the base, with as many nodes as PyTorch keeps between."""
        if not self._windows and geometry(whole.array, whole.array) == self.geometry:
            return whole
        for _ in range(self._windows - 1):
            whole = as_strided(whole, *geometry(whole.array, whole.array))
        return as_strided(whole, *self.geometry)

    def _window(self, base: Tensor) -> Tensor:
        """The part of the base that the view shows, or the base where that is all of it."""
        shape, strides, offset = self.geometry
        if self.dtype.kind != base.array.dtype.kind:
            steps = tuple(2 * step for step in strides)
            shape, strides, offset = (*shape, 2), (*steps, 1), 2 * offset
        if (shape, strides, offset) == geometry(base.array, base.array):
            return base
        return as_strided(base, shape, strides, offset)

    def _reflected(self, tensor: Tensor) -> Tensor:
        conjugated, turned = self.reflection
        tensor = conj(tensor) if conjugated else tensor
        return negated(tensor) if turned else tensor

    def reflect(self, memory: Any, dtype: Any) -> None:
        """Conjugate or negate in place the bytes of a value of the base, of the given dtype."""
        if self.reflection != PLAIN:
            dtype = self.dtype if self.dtype.kind == "c" else dtype
            values = memory[: memory.size - memory.size % dtype.itemsize].view(dtype)
            values[...] = reflected(values, self.reflection)


def replay_of(view: Tensor, base: Tensor) -> ViewReplay:
    """How a view of the base is made again."""
    kept = None if view.meta is None else view.meta.replay
    return kept if isinstance(kept, ViewReplay) else ViewReplay(base, view)


def keep_replay(view: Tensor, base: Tensor) -> None:
    """Fix how a view is made again before its layout changes in place: PyTorch makes one that
    strides alone do not describe as it was made first.
    """
    replay = replay_of(view, base)
    if replay.reflection != PLAIN or replay.dtype is not base.array.dtype:
        meta_of(view).replay = replay


def _windows_of(node: Node | None) -> int:
    """How many views follow the last one that conjugates, negates or casts; 1 for none."""
    count = 0
    while node is not None and node.next_nodes:
        if node.node_name in _SHOWING_OTHERWISE:
            return count
        op = getattr(node, "op", None)
        count += op is None or not op.name.endswith("_")  # `t_` makes no new view
        node = node.next_nodes[0]
    return 1


_REFLECTING = frozenset({"ConjBackward0", "NegViewBackward0"})
"""The nodes of views that show memory conjugated or negated."""

_SHOWING_OTHERWISE = _REFLECTING | {"ViewAsRealBackward0"}
"""The nodes of views that strides alone do not describe."""
