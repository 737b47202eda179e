"""Levels of nested `torch.func` transforms: which tensors each differentiates with respect to.

A transform gives its function new tensors for its inputs. They require grad whether or not the
given ones do, so each level differentiates with respect to its own inputs only, even where the
function also uses the given tensor itself. Where a given tensor requires grad already, be
it for an outer transform or for a later `backward()`, the new one is a view of it, and the results
stay connected; otherwise it is a leaf private to the level, and results that depend only on such
leaves carry no history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any
from weakref import WeakValueDictionary

from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.printing import format_tensor
from gradcli.arrays.storage import InferenceStorage
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.node import Node, reachable
from gradcli.autograd.tensor import AccumulateGrad, Tensor, alias, gradient_edge, with_history
from gradcli.errors import GradcliError, runtime_error, shape_error
from gradcli.library.torch.func.graph import refuse_hooks
from gradcli.library.torch.func.structure import leaves, mapped
from gradcli.ops.creation.copies import detach
from gradcli.state import active


def described(tensor: Tensor) -> str:
    """The text of a tensor: what it is at each level that it belongs to, outermost inside."""
    array = tensor.array
    nodes: set[Node] = set()
    if tensor.requires_grad:
        nodes = set(reachable([gradient_edge(tensor)[0]]))
    if type(array) is BatchedArray:
        text = described(array.value)
        if array.bdim is not None:
            text = _wrapped(f"BatchedTensor(lvl={array.level}, bdim={array.bdim}", text)
    else:
        text = _bare(tensor, nodes)
    for transform in active.state.transforms:
        if not nodes.isdisjoint(getattr(transform, "entries", ())):
            text = _wrapped(f"GradTrackingTensor(lvl={transform.level}", text)
    return text


def _wrapped(head: str, text: str) -> str:
    return f"{head}, value=\n{indent(text, '    ')}\n)"


def _bare(tensor: Tensor, nodes: set[Node]) -> str:
    """The text of a tensor that is not batched; its history as far as it is none of a transform."""
    own = {edge for each in active.state.transforms for edge in getattr(each, "entries", ())}
    ends = [node for node in nodes if type(node) is AccumulateGrad and node not in own]
    if own.isdisjoint(nodes) or ends:
        return tensor.text()
    return format_tensor(forced(tensor.array))


_NONE: dict[int, Tensor] = {}


class Entry(Node):
    """Where a gradient leaves a level: it flows on to the given tensor as it is."""

    __slots__ = ()

    node_name = "AliasBackward0"

    def __init__(self, tensor: Tensor) -> None:
        node, output_nr = gradient_edge(tensor)
        state = active.state
        state.sequence_nr += 1
        self.next_nodes = (node,)
        self.input_nrs = (output_nr,)
        self.metadata = ((tensor.array.shape, tensor.array.dtype),)
        self.sequence_nr = state.sequence_nr
        self.place = state.place
        self.assigned = None
        self.extra = None

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        return (grads,)

    run_recorded = run


class LevelEntry(Entry):
    """The entry of an input of a level. Outside the level the graph is shown without it.

    Attributes:
        is_open: whether the level's function runs, or is differentiated.
        stands_for_leaf: whether the input is a leaf inside.
    """

    __slots__ = ("is_open", "stands_for_leaf")

    is_hidden = True

    def __init__(self, tensor: Tensor, connected: bool, stands_for_leaf: bool) -> None:
        super().__init__(tensor)
        if not connected:
            self.next_nodes, self.input_nrs = (None,), (0,)
        self.is_open = True
        self.stands_for_leaf = stands_for_leaf


class Level:
    """One call of a transformed function, from its inputs to its results.

    Attributes:
        level: its number among the transforms that run, from 1.
        connected: whether operations were recorded around the transform; if not, its results carry
            no history.
        entries: where the gradients of the inputs arrive.
        reverse: whether it is differentiated in reverse mode, inside which no hooks are set.
    """

    __slots__ = ("_before", "_born", "_frames", "connected", "entries", "level", "reverse")

    def __init__(self, *, reverse: bool = False) -> None:
        if reverse:
            refuse_hooks()
        self.reverse = reverse
        self.connected = active.state.grad_enabled
        self.entries: list[LevelEntry] = []
        self._before: list[tuple[bool, bool, Any, bool]] = []
        self._born: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        self._frames: list[Any] = []

    def __enter__(self) -> Level:
        state = active.state
        before = (state.grad_enabled, state.inference, state.born, state.notes_creation)
        self._before.append(before)
        frame = state.batch
        if frame is not None and frame.below is None:
            frame.below, frame.born = state.grad_enabled, state.born
        else:
            frame = None
        self._frames.append(frame)
        state.grad_enabled = state.notes_creation = True
        state.inference = False
        state.born = self._born
        state.transforms.append(self)
        state.transform_count += 1
        self.level = len(state.transforms)
        return self

    def __exit__(self, *exception: object) -> None:
        state = active.state
        before = self._before.pop()
        state.grad_enabled, state.inference, state.born, state.notes_creation = before
        frame = self._frames.pop()
        if frame is not None:
            frame.below = frame.born = None
        state.transforms.pop()

    def enter(self, value: Any, as_leaves: bool = True) -> Any:
        """The inputs that the function is called with: a structure of tensors like the given one.
        It may change them in place unless they are to be leaves; the given ones change with them.

        Raises E202 for a leaf that is no tensor, E402 for one that cannot require grad.
        """
        return mapped(lambda tensor: self._input(tensor, as_leaves), value)

    def _input(self, tensor: Any, as_leaf: bool) -> Tensor:
        if not isinstance(tensor, Tensor):
            raise GradcliError(
                "E202",
                f"only tensors can be differentiated with respect to, not {type(tensor).__name__}",
                text="Thing passed to transform API must be Tensor, got <class"
                f" '{type(tensor).__name__}'>",
                raises="ValueError",
            )
        if tensor.array.dtype.kind not in "fcV":
            raise GradcliError(
                "E402",
                f"only floating and complex tensors can require grad, not {tensor.dtype}",
                text="only Tensors of floating point dtype can require gradients",
            )
        frame = active.state.batch
        if frame is not None:  # a variable for each example, also where all share its value
            tensor = frame.wrapped(tensor)
        inference = isinstance(tensor.storage, InferenceStorage)
        new = Tensor(tensor.array) if inference else alias(tensor)
        new.requires_grad = True
        self._born[id(new)] = new
        own_leaf = tensor.requires_grad and tensor.is_leaf
        new.grad_fn = entry = LevelEntry(tensor, self.connected, as_leaf or own_leaf)
        self.entries.append(entry)
        recorder = active.state.recorder
        if recorder is not None:
            recorder.entered_level(self, tensor, new)
        return new

    def described(self, tensor: Tensor) -> str:
        """How a tensor is printed inside."""
        return described(tensor)

    def close(self) -> None:
        """End the level: what depends only on its own leaves is constant outside it."""
        self._set_open(False)

    def open(self) -> None:
        """Make the inputs variables again, to differentiate what was computed from them."""
        self._set_open(True)

    def _set_open(self, value: bool) -> None:
        for entry in self.entries:
            entry.is_open = value

    def separated(self, value: Any) -> Any:
        """Results as they leave the closed level, as views: apart from the tensors that were
        recorded.
        """

        def separate(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or not self.connects([leaf]):
                return self.released(leaf)
            return with_history(alias(leaf).array, Entry(leaf))

        return mapped(separate, value)

    def connects(self, tensors: Sequence[Tensor]) -> bool:
        """Whether a gradient can flow through the tensors to the outside of the closed level."""
        return self.connected and reaches_leaf(tensors, self._born)

    def released(self, value: Any) -> Any:
        """Results as they leave the closed level: without history where nothing outside is
        reached.
        """

        def release(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or (leaf.requires_grad and self.connects([leaf])):
                return leaf
            array = leaf.array
            if type(array) is BatchedArray and array.value.requires_grad:
                # What all examples hold may come from a level around them.
                return Tensor(BatchedArray(release(array.value), array.bdim, array.level))
            if not leaf.requires_grad:
                return leaf
            returned = detach(leaf)
            recorder = active.state.recorder
            if recorder is not None:
                recorder.left_level(self, leaf, returned)
            return returned

        return mapped(release, value)

    def derived(self, outputs: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
        """Derivatives of outputs as they leave the closed level; reported to the recorder."""
        released: list[Tensor] = self.released(list(results))
        recorder = active.state.recorder
        if recorder is not None:
            recorder.derived(self, outputs, released)
        return released


def reaches_leaf(tensors: Sequence[Tensor], besides: Mapping[int, Tensor] = _NONE) -> bool:
    """Whether a leaf that requires grad, `besides` some, or an input of an open level is in the
    graphs of the tensors.
    """
    return any(
        node.is_open
        if isinstance(node, LevelEntry)
        else isinstance(node, AccumulateGrad)
        and node.variable.requires_grad
        and id(node.variable) not in besides
        for node in reachable([gradient_edge(tensor)[0] for tensor in tensors])
    )


_CALLED = {"jvp": "jvp(f, primals, tangents)", "vjp": "vjp(f, *primals)"}
"""How PyTorch's errors call the transforms; Jacobians are made of `vjp` and `jvp`."""
_CALLED["jacfwd"] = _CALLED["jvp"]


def called(name: str) -> str:
    """How PyTorch's errors call a transform."""
    return _CALLED.get(name, _CALLED["vjp"])


def sizes_of_tangent(tensor: Tensor, tangent: Tensor) -> GradcliError:
    """The error of a tangent of another shape than its tensor's."""
    sizes = [list(each.array.shape) for each in (tensor, tangent)]
    return shape_error(
        f"a tangent of shape {tuple(sizes[1])} for a tensor of shape {tuple(sizes[0])}",
        text="Trying to set a forward gradient that has a different size than that of the original"
        f" Tensor, this is not supported. Tensor is of size {sizes[0]} while the given forward"
        f" gradient is of size {sizes[1]}.",
    )


def tensors_of(name: str, value: Any) -> list[Tensor]:
    """The leaves of what a function returned; raises E202 for one that is no tensor."""
    tensors = leaves(value)
    if not tensors or (len(tensors) == 1 and tensors[0] is None):
        raise runtime_error(
            f"{called(name)}: Expected f to be a function that has non-empty"
            f" output (got output = {tensors})"
        )
    for leaf in tensors:
        if not isinstance(leaf, Tensor):
            raise GradcliError(
                "E202",
                f"{called(name)}: expected f(*primals) to return only tensors,"
                f" got unsupported type <class '{type(leaf).__name__}'>",
                raises="RuntimeError",
            )
    return tensors
