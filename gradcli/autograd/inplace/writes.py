"""Writes in place: which are allowed, which PyTorch rejects because tensors share
memory, and what they do to histories and views.

A write to a tensor replaces its grad_fn by the writing node. A write to a view changes its base:
the base's grad_fn becomes a `CopySlices`, which runs the writing node on the part of the gradient
that the view shows, and every view of the base replays its grad_fn, as an `AsStridedBackward0`,
when it is next read.

To replay a view is to make it of another value of its base, by its geometry there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import address_of, module_of
from gradcli.arrays.fusion.executor import assign
from gradcli.arrays.fusion.lazy_conjugation import PLAIN, reflected
from gradcli.arrays.layout.sizes import sizes_apart
from gradcli.arrays.layout.strides import overlaps_itself, row_strides, strides_of
from gradcli.autograd import tensor as tensors
from gradcli.autograd.batched import BatchedArray, unbatched
from gradcli.autograd.node import Node, extra_of, freed, stem
from gradcli.autograd.tensor import (
    Tensor,
    gradient_edge,
    is_captured,
    meta_of,
    not_installed,
    refresh,
    storage_of,
)
from gradcli.errors import GradcliError
from gradcli.state import active

# --- view replay ----------------------------------------------------------------------------------


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


# --- writes ---------------------------------------------------------------------------------------


# --- memory that tensors share --------------------------------------------------------------------


def check_apart(tensor: Tensor, *operands: Any) -> None:
    """Raise E405 where the tensor shares memory with an operand."""
    for operand in operands:
        if operand is tensor:
            storage_of(tensor)
        if type(operand) is Tensor and operand.storage is tensor.storage is not None:
            _check_overlap(unbatched(tensor.array), unbatched(operand.array), same=False)


def check_memory(tensor: Tensor, *operands: Any) -> bool:
    """Raise E405 where several elements of the tensor share an address, or where it shares a part
    of its memory with an operand.

    Returns whether the write may change elements that it reads later, which PyTorch allows.
    """
    overlapping = check_parts(tensor, *operands)
    return check_places(tensor.array) or overlapping


def check_parts(tensor: Tensor, *operands: Any) -> bool:
    """Raise E405 where the tensor shares a part of its memory with an operand; all of it in the
    same order is allowed. Returns whether operands that are not compared may share memory.
    """
    overlapping = False
    if tensor.storage is not None:
        for operand in operands:
            if (
                operand is not tensor
                and type(operand) is Tensor
                and operand.storage is tensor.storage
            ):
                overlapping |= _check_overlap(unbatched(tensor.array), unbatched(operand.array))
    return overlapping


def check_places(array: Any) -> bool:
    """Raise E405 where a stride of 0 puts several elements of an array at one address. Returns
    whether elements may share an address otherwise, as in the windows of `unfold`.
    """
    if array.ndim and array.size and 0 in array.strides:
        for stride, size in zip(array.strides, array.shape, strict=True):
            if stride == 0 and size > 1:
                raise GradcliError(
                    "E405",
                    "several elements of the written tensor share one place in memory",
                    text="unsupported operation: more than one element of the written-to tensor"
                    " refers to a single memory location. Please clone() the tensor before"
                    " performing the operation.",
                    help="clone() the expanded tensor before writing to it",
                )
    return array.ndim > 1 and array.size > 1 and overlaps_itself(array.shape, array.strides)


def _check_overlap(written: Any, read: Any, same: bool = True) -> bool:
    """Raise E405 where an operand shows a part of the written memory, or all of it in another
    order; in the same order too unless `same` allows that. As in PyTorch, only arrays without gaps
    are compared. Returns whether arrays with gaps may share memory, unless they have the same
    order.
    """
    if not (written.size and read.size):
        return False
    first, second = address_of(written), address_of(read)
    if not (_without_gaps(written) and _without_gaps(read)):
        in_step = first == second and _steps(written) == _steps(read)
        return not in_step and type(written) is np.ndarray and np.may_share_memory(written, read)
    alike = written.size == read.size and strides_of(written) == strides_of(read)
    if same and first == second and alike:
        return False
    if first < second + read.nbytes and second < first + written.nbytes:
        raise GradcliError(
            "E405",
            "the written tensor and an operand share a part of their memory",
            text="unsupported operation: some elements of the input tensor and the written-to"
            " tensor refer to a single memory location. Please clone() the tensor before performing"
            " the operation.",
            help="clone() the operand before the write",
        )
    return False


def _steps(array: Any) -> list[tuple[int, int]]:
    """Size and stride of the dimensions that hold more than one element."""
    return [each for each in zip(array.shape, array.strides, strict=True) if each[0] > 1]


def _without_gaps(array: Any) -> bool:
    """Whether the elements fill a range of memory, each address once."""
    expected = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


# --- writes ---------------------------------------------------------------------------------------


# Installed by gradcli.ops.
clone: Callable[[Tensor], Tensor] = not_installed
copied: Callable[[Tensor, Tensor], Tensor] = not_installed


class CopySlices(Node):
    """The node of a base that was written to through a view.

    Its first edge leads to the base's old history; the others are the writing node's. That node
    runs on the part of the gradient that the view shows, and its result replaces that part.
    """

    __slots__ = ("base_strides", "renewed", "view_replay", "writer")

    node_name = "CopySlices"

    renewed: weakref.ref[Node] | None
    """The first node of the written view's history since the write; a weak reference, as that node
    leads here.
    """

    def __init__(self, base: Tensor, view: Tensor, writer: Node) -> None:
        base_node, base_nr = gradient_edge(base)
        state = active.state
        state.sequence_nr += 1
        self.next_nodes = (base_node, *writer.next_nodes[1:])
        self.input_nrs = (base_nr, *writer.input_nrs[1:])
        self.metadata = ((base.array.shape, base.array.dtype),)
        self.sequence_nr = state.sequence_nr
        self.place = state.place
        self.assigned = None
        self.extra = None
        self.writer: Node | None = writer
        self.renewed = None
        self.view_replay = replay_of(view, base)
        self.base_strides = tuple(step // base.array.itemsize for step in base.array.strides)

    def _writer(self, keep: bool) -> Node:
        """The writing node, released unless `keep`; raises E403 where it already was.

        The node keeps its saved values: the graph of a gradient may hold it without this node.
        """
        writer = self.writer
        if writer is None:
            raise freed(self)
        if not keep:
            self.writer = None
        return writer

    def _copied(self, grads: Any) -> tuple[Any, Any, Any]:
        """A copy of the gradient with the base's layout, the view of its part, and the memory."""
        shape, dtype = self.metadata[0]
        memory = module_of(grads).empty(extent(shape, self.base_strides) * dtype.itemsize, np.uint8)
        gradient = shown(memory, dtype, (shape, self.base_strides, 0))
        gradient[...] = grads
        part = shown(memory, self.view_replay.dtype, self.view_replay.geometry)
        # PyTorch allows filling an expanded view, but not writing the gradient into it.
        check_places(part)
        return gradient, part, memory

    def _copied_for_examples(self, grads: Tensor) -> Tensor:
        """A copy of a gradient inside `vmap`; raises E205 where the base is not in row order."""
        if list(self.base_strides) != row_strides(self.metadata[0][0]):
            raise GradcliError(
                "E205", "vmap: a write to a view of a tensor that is not in row order"
            )
        shape, dtype = self.metadata[0]
        gradient: Tensor = active.state.batch.own(Tensor(np.zeros(shape, dtype)))
        write(gradient, copied(gradient, grads))
        return gradient

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        gradient, part, memory = self._copied(grads)
        self.view_replay.reflect(memory, gradient.dtype)
        first, *others = self._writer(keep).run(part.copy()[()], True)
        part[...] = 0 if first is None else first
        self.view_replay.reflect(memory, gradient.dtype)
        return gradient, *others

    def run_recorded(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        # PyTorch's steps, so that the graph of the gradient has its nodes.
        if active.state.batch is not None:
            gradient = self._copied_for_examples(grads)
        else:
            gradient = Tensor(self._copied(grads.array)[0])
            write(gradient, copied(gradient, grads))
        part = self.view_replay.replay(gradient)
        writer = self._writer(keep)
        extra_of(writer).renewed = self.renewed
        first, *others = writer.run_recorded(clone(part), True)
        if first is None:
            first = Tensor(module_of(part.array).zeros((), part.array.dtype))
        write(part, copied(part, first))
        return gradient, *others


def base_array(tensor: Tensor) -> Any:
    """The array of the tensor that a view shows, or the tensor's own."""
    storage_of(tensor)
    return tensor.array if tensor.base is None else tensor.base.array


def check_inplace(name: str, tensor: Tensor, /, *operands: Any, **named: Any) -> bool:
    """Raise E405 where PyTorch rejects writing to the tensor a result computed from it and the
    operands; operands that are no tensors are ignored. `name` is the writing op's, as in `add_`.
    Returns what `check_memory` does.
    """
    overlapping = check_memory(tensor, *operands, *named.values())
    check_graph(name, tensor, *operands, **named)
    return overlapping


def check_data(name: str, tensor: Tensor, /, *operands: Any, **named: Any) -> bool:
    """`check_inplace` for a write that the graph does not see: a leaf takes it, a history stays."""
    check_captured(name, tensor, *operands, **named)
    return check_memory(tensor, *operands, *named.values())


def check_captured(name: str, tensor: Tensor, /, *operands: Any, **named: Any) -> None:
    """Raise E405 for a write, by the op of that name, to a tensor that was made outside the
    function that `torch.func` differentiates.
    """
    if active.state.born is not None and is_captured(tensor):
        raise GradcliError(
            "E405",
            f"{_named(tensor)} was made outside the function that torch.func differentiates, and"
            " cannot be changed in place there",
            text="During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to"
            f" call in-place operation (aten::{overload(name, operands, named)}) that would"
            " mutate a captured Tensor. This is not supported; please rewrite the function being"
            " transformed to explicitly accept the mutated Tensor(s) as inputs.",
            help="return the new value, or pass the tensor as an argument",
        )


def check_graph(name: str, tensor: Tensor, /, *operands: Any, **named: Any) -> None:
    """Raise E405 where the history forbids a write by the op of that name; memory may be shared."""
    state = active.state
    if state.born is not None:
        check_captured(name, tensor, *operands, **named)
    if not state.grad_enabled:
        return
    if tensor.requires_grad:
        _check_history(tensor)
    elif tensor.base is not None and tensor.base.requires_grad:
        # Until the history of such a view is read, PyTorch treats it as a leaf.
        _check_creation(tensor, _CHANGED)
        raise GradcliError(
            "E405",
            f"{_named(tensor)} is a view whose base got a history after it was made",
            help="take the view anew before writing to it",
        )


def check_distinct(name: str, tensor: Tensor, /, *operands: Any, **named: Any) -> None:
    """`check_inplace` for writes that read an operand late: it may share no memory at all."""
    check_apart(tensor, *operands, *named.values())
    check_inplace(name, tensor)


def _check_history(tensor: Tensor) -> None:
    """Raise E405 where a write cannot change the tensor's history."""
    base = tensor.base
    if base is not None:
        _check_creation(tensor, _CHANGED)
        refresh(tensor)
        if tensor.requires_grad and base.grad_fn is None:
            raise GradcliError(
                "E405",
                f"the tensor is a view of {_named(base)}, a leaf that requires grad, and cannot be"
                " changed in place",
                text="a view of a leaf Variable that requires grad is being used in an in-place"
                " operation.",
                help="write under `with torch.no_grad():`, or write to a copy:"
                f" `y = {base.name or 'x'}.clone()`",
            )
    if tensor.requires_grad and (tensor.grad_fn is None or tensor.grad_fn.stands_for_leaf):
        raise GradcliError(
            "E405",
            f"{_named(tensor)} is a leaf that requires grad, and cannot be changed in place",
            text="a leaf Variable that requires grad is being used in an in-place operation.",
            help="write under `with torch.no_grad():`, or give the result a name of its own:"
            " `y = x + 1`",
        )


def _check_creation(view: Tensor, what: str) -> None:
    """Raise E405 where a write to a view cannot be recorded because of how the view was made."""
    assert view.meta is not None
    creation, node = view.meta.creation, view.grad_fn
    if not creation:
        return
    mode = creation if creation in _MODES else "no_grad"
    block, now = _MODES[mode]
    later = "is being" if what == _CHANGED else "its base or another view of its base has been"
    described = f"A view was created in {mode} mode and {later} modified inplace{now}"
    if node is not None:
        described = f"Output {view.output_nr} of {stem(node)} is a view"
        if creation in _MODES:
            described += f" of a view which was created in {mode} mode"
        described += f" and {later} modified inplace{now if creation in _MODES else ''}"
    creator = "an op" if node is None else node.node_name
    why, rest, help = {
        "multi_output": (
            f"a view {what}, and it is one of several that {creator} returned",
            _ONE_OF_SEVERAL,
            "take the part with an index or narrow(), or clone() it before writing",
        ),
        "custom_function": (
            f"a view {what}, and a custom function returned it: the change would go past the"
            " function's own backward",
            _OF_A_FUNCTION,
            "clone() what the function returned",
        ),
    }.get(
        creation,
        (
            f"a view that was made under {block} {what} while gradients are recorded",
            _OF_A_MODE.format(block),
            f"make the view and the change both inside, or both outside {block}",
        ),
    )
    raise GradcliError("E405", why, text=f"{described}. {rest}", help=help)


_CHANGED = "is changed in place"

_MODES = {
    "no_grad": ("no_grad", " with grad mode enabled"),
    "inference": ("inference_mode", " in normal mode"),
}
"""For each mode that makes views which cannot be written to later: its block, and the other one."""

_ONE_OF_SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow"
    " the output views to be modified inplace. You should replace the inplace operation by an"
    " out-of-place one."
)
_OF_A_FUNCTION = (
    "This view was created inside a custom Function (or because an input was returned as-is) and"
    " the autograd logic to handle view+inplace would override the custom backward associated with"
    " the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix"
    " this by cloning the output of the custom Function."
)
_OF_A_MODE = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your"
    " code by moving both the view and the inplace either both inside the {} block (if you don't"
    " want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def _named(tensor: Tensor) -> str:
    return f"`{tensor.name}`" if tensor.name else "the tensor"


def is_recorded(*tensors: Tensor) -> bool:
    """Whether an operation on the tensors would be recorded, in the graph or by a recorder."""
    state = active.state
    if state.recorder is not None:
        return True
    if not state.grad_enabled:
        return False
    for tensor in tensors:
        base = tensor.base
        if tensor.requires_grad or (base is not None and base.requires_grad):
            return True
    return False


def overwrite(tensor: Tensor, array: Any) -> None:
    """`write` of an array or number of the tensor's dtype, where nothing is recorded."""
    storage = storage_of(tensor)
    try:
        _assign(tensor, Tensor(array), array)
    except ValueError:
        raise GradcliError(
            "E301",
            f"values of shape {tuple(array.shape)} cannot be written to a tensor of shape"
            f" {tuple(tensor.array.shape)}",
            text=sizes_apart(tensor.array.shape, array.shape),
        ) from None
    storage.count_write()
    if active.state.recorder is not None:
        active.state.recorder.write(tensor, array)


def write(tensor: Tensor, result: Tensor, *, counted: bool = True) -> None:
    """Make a result computed from a tensor the tensor's new value, with the result's history.

    The caller has called `check_inplace`. Without `counted` the version stays. Raises E301 and E203
    where the result's shape or dtype does not fit.
    """
    array = result.array
    if array.shape != tensor.array.shape:
        raise misshapen(tensor, array.shape)
    if array.dtype is not tensor.array.dtype:
        if not dtypes.can_cast(result.dtype, tensor.dtype):
            raise unfit(result.dtype, tensor)
        if type(array) is not BatchedArray:
            array = dtypes.cast(array, tensor.dtype)
    storage = storage_of(tensor)
    node = result.grad_fn
    if node is not None:
        if not tensor.requires_grad:
            _check_history(tensor)
        if tensor.base is not None and node.next_nodes[0] is not gradient_edge(tensor)[0]:
            # Several nodes made the result: the write becomes a node, which CopySlices can hold.
            result = copied(tensor, result)
            node = result.grad_fn
            assert node is not None
        _keep_old_value(node, tensor)
    if array is not tensor.array:
        _assign(tensor, result, array)
    if counted:
        storage.count_write()
    if active.state.recorder is not None:
        active.state.recorder.write(tensor, result, counted)
    if node is None:
        return
    node.metadata = ((tensor.array.shape, tensor.array.dtype),)
    node.save_result_storage(0, storage, tensor.array)
    rebase(tensor, node)


def _assign(tensor: Tensor, result: Tensor, array: Any) -> None:
    """Write a result to a tensor's memory, `array` in the tensor's dtype; the values of all
    examples inside `vmap`.
    """
    batch = active.state.batch
    if batch is None or not batch.assign(tensor, result):
        assign(tensor.array, array)


def misshapen(tensor: Tensor, shape: Any) -> GradcliError:
    """The error of a result whose shape is not that of the tensor that it is written to."""
    return GradcliError(
        "E301",
        f"the result has shape {tuple(shape)} and cannot be written to a tensor of shape"
        f" {tuple(tensor.array.shape)}",
        text=f"output with shape {list(tensor.array.shape)} doesn't match the broadcast shape"
        f" {list(shape)}",
    )


def unfit(dtype: dtypes.DType, tensor: Tensor) -> GradcliError:
    """The error of a result whose dtype cannot be written to the tensor."""
    return GradcliError(
        "E203",
        f"the result is {dtype} and cannot be written to a tensor of {tensor.dtype}",
        text=f"result type {dtype.scalar_type} can't be cast to the desired output type"
        f" {tensor.dtype.scalar_type}",
    )


def replace_layout(tensor: Tensor, result: Tensor) -> Tensor:
    """Give a tensor the shape and strides of a result that shows the same memory, and its history:
    what `t_` and its like do. Returns the tensor.

    The caller has called `check_graph`.
    """
    storage = storage_of(tensor)
    if tensor.base is not None:
        keep_replay(tensor, tensor.base)
    array = result.array
    tensor.array = np.asarray(array) if isinstance(array, np.generic) else array
    storage.count_write()
    if result.grad_fn is not None:
        if tensor.meta is not None:
            tensor.meta.attr_version = storage.version
        _replace_history(tensor, result.grad_fn)
    return tensor


def _keep_old_value(node: Any, tensor: Tensor) -> None:
    """Let a node that saved the value about to be overwritten keep a copy, as PyTorch does."""
    if getattr(node, "saved_self", None) is tensor:
        node.saved_self = _unseen(clone, tensor)
        node.version_self = 0


def rebase(tensor: Tensor, node: Node, output_nr: int = 0) -> None:
    """Put a node that wrote to a tensor at the end of its history, or of its base's."""
    base = tensor.base
    if base is not None:
        slices = CopySlices(base, tensor, node)
        _replace_history(base, slices)
        meta_of(tensor).attr_version = -1  # a custom function's write was counted before this
        refresh(tensor)
        if tensor.grad_fn is not None:
            slices.renewed = weakref.ref(tensor.grad_fn)
    else:
        _replace_history(tensor, node, output_nr)


def _replace_history(tensor: Tensor, node: Node, output_nr: int = 0) -> None:
    old = tensor.grad_fn
    _keep_retained(tensor, node, output_nr)
    if old is not None and node.assigned is None:
        node.assigned = old.assigned
    tensor.grad_fn = node
    tensor.output_nr = output_nr
    tensor.requires_grad = True


def _keep_retained(tensor: Tensor, node: Node | None, output_nr: int = 0) -> None:
    """Let a tensor that is to get another history retain its gradient there."""
    if tensor.retains_grad and tensor.grad_fn is not None and node is not None:
        reference = extra_of(tensor.grad_fn).retained.pop(tensor.output_nr)
        extra_of(node).retained[output_nr] = reference


def _regenerate(view: Tensor) -> None:
    """Replay a view's history where its base has another history than at the last replay."""
    meta, storage = view.meta, view.storage
    assert meta is not None
    assert meta.base is not None
    assert storage is not None
    base = meta.base
    if not base.requires_grad:
        if meta.loose and view.grad_fn is None:
            view.requires_grad = False
        return
    if not view.requires_grad:
        view.requires_grad = meta.loose = True
    if meta.attr_version == storage.version:
        return
    _check_creation(view, "is used after a write to its memory")
    renewed = _unseen(replay_of(view, base).replay, base)
    _keep_retained(view, renewed.grad_fn)
    view.grad_fn = renewed.grad_fn
    view.output_nr = 0
    meta.attr_version = storage.version


def _unseen(step: Callable[..., Tensor], *args: Any) -> Tensor:
    """The result of an op that is not the program's: in the graph, but hidden from recorders."""
    state = active.state
    before = state.grad_enabled, state.recorder
    state.grad_enabled, state.recorder = True, None
    try:
        return step(*args)
    finally:
        state.grad_enabled, state.recorder = before


tensors.regenerate = _regenerate


_BY_TENSOR = {
    ("Tensor", "Tensor"): "add_ sub_ mul_ div_ subtract_ multiply_ divide_ true_divide_"
    " floor_divide_",
    ("Tensor", "Scalar"): "pow_ remainder_ fmod_ fill_ masked_fill_ copysign_ float_power_ lerp_"
    " bitwise_and_ bitwise_or_ bitwise_xor_ eq_ ne_ lt_ le_ gt_ ge_ not_equal_ less_ less_equal_"
    " greater_ greater_equal_",
    ("Tensor", ""): "clamp_ clip_ clamp_min_ clamp_max_",
    ("Tensor", "Tensor_Scalar"): "bitwise_left_shift_ bitwise_right_shift_",
    ("Tensor", "Scalar_Other"): "xlogy_",
    ("int_Tensor", "int_Scalar"): "index_fill_",
    ("Tensor", "float"): "bernoulli_",
    ("src", "value"): "scatter_",
    ("two", "two"): "scatter_reduce_",
}
"""The overloads where the last operand is a tensor, and where it is none; a number that is added
becomes a tensor.
"""

_BY_COUNT = {"random_": ("", "to", "from"), "squeeze_": ("", "dim")}


def overload(name: str, operands: Sequence[Any], named: Mapping[str, Any]) -> str:
    """PyTorch's name of the writing op that such operands, and named ones, choose."""
    options = [key for key in ("rounding_mode", "decimals", "reduce") if named.get(key) is not None]
    values = [*operands, *(named[key] for key in named if key not in options)]
    if name in _BY_COUNT:
        chosen = _BY_COUNT[name][len(values)]
        if name == "squeeze_" and values and isinstance(values[0], (tuple, list)):
            chosen = "dims"
    else:
        last = values[-1] if values else None
        overloads = next((o for o, names in _BY_TENSOR.items() if name in names.split()), ("", ""))
        chosen = overloads[not isinstance(last, Tensor)]
    if "rounding_mode" in options:
        chosen = f"{chosen}_mode"
    elif options == ["decimals"]:
        chosen = "decimals"
    elif name == "scatter_" and options:
        chosen = "reduce" if chosen == "src" else "value_reduce"
    return f"{name}.{chosen}" if chosen else name
