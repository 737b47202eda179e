"""Nodes of the backward graph.

An operation makes a node as it runs. The node's `next_functions` are the nodes that made the
operation's inputs; a leaf that requires grad is represented by its `AccumulateGrad`.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradcli.arrays.dtypes import of_numpy
from gradcli.errors import GradcliError, Label, type_error
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.errors import Span

Metadata = tuple[tuple[tuple[int, ...], Any], ...]
"""Shape and NumPy dtype of each output of the operation that made a node."""

SCALAR_METADATA: dict[type, Metadata] = {
    kind: (((), np.dtype(kind)),) for kind in (np.float32, np.float64, np.float16)
}
"""The metadata of a single 0-dim output, by the type of its NumPy scalar: shared, so that the
engine finds by identity that a gradient has the right size and dtype.
"""


class _Freed:
    """Stands in a node for a value that a backward pass has freed."""

    __slots__ = ()


FREED = _Freed()


Hooks = dict[int, Callable[..., Any]]
"""Functions that a backward pass calls, in the order of their numbers."""


class RemovableHandle:
    """What registering a hook returns: `remove()` removes the hook.

    Attributes:
        id: the hook's key in its table; no two of a session have one.
    """

    __slots__ = ("hooks", "id")

    language_name: ClassVar[str] = "torch.utils.hooks.RemovableHandle"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset({"id", "remove"})

    def __init__(self, hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> None:
        self.hooks = hooks
        self.id = active.state.hook_count
        active.state.hook_count += 1
        later = list(hooks) if prepend else []
        hooks[self.id] = hook if callable(hook) else _failing(hook)
        for key in later:
            hooks[key] = hooks.pop(key)

    def remove(self) -> None:
        """Remove the hook; nothing happens if it is removed already."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def _failing(hook: Any) -> Callable[..., Any]:
    """Stands for a hook that is no function: PyTorch accepts it, and calling it fails."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise type_error(f"a hook must be a function, not {type(hook).__name__}")

    return fail


class NodeExtra:
    """The attributes that few nodes have: a printed number, hooks, and outputs whose gradients are
    retained.

    Attributes:
        printed_number: identifies the node in print, 0 until it is first printed.
        retained: the tensors that keep the gradient of an output, by its number.
        tensor_hooks: called with the gradient of an output, by its number.
        prehooks: called with the gradients of the outputs, before the node runs.
        hooks: called with the gradients of the inputs, after it ran.
        remarks: the dict `grad_fn.metadata` of the program.
        renewed: for a node that wrote to a view, the first node of the view's history after the
            write.
    """

    __slots__ = (
        "hooks",
        "prehooks",
        "printed_number",
        "remarks",
        "renewed",
        "retained",
        "tensor_hooks",
    )

    def __init__(self) -> None:
        self.printed_number = 0
        self.retained: dict[int, weakref.ref[object]] = {}
        self.tensor_hooks: dict[int, Hooks] = {}
        self.prehooks: Hooks = {}
        self.hooks: Hooks = {}
        self.remarks: dict[Any, Any] = {}
        self.renewed: weakref.ref[Node] | None = None


def printed_number(holder: Node) -> int:
    """The small number that identifies a node in print, assigned when it is first asked for."""
    extra = extra_of(holder)
    if not extra.printed_number:
        state = active.state
        state.object_ids += 1
        extra.printed_number = state.object_ids
    return extra.printed_number


def extra_of(node: Node) -> NodeExtra:
    """The node's extra, made if there is none."""
    if node.extra is None:
        node.extra = NodeExtra()
    return node.extra


class Node:
    """One step of the backward graph.

    Attributes:
        next_nodes: for each input, the node that made it, None where no gradient is wanted.
        input_nrs: for each input, which output of that node it is.
        metadata: shape and NumPy dtype of each output of the forward operation.
        sequence_nr: counts nodes in the order in which they were made; the engine runs the largest
            first.
        place: the span of the operation in the source, None outside a program.
        ran_at: the span of the last backward pass that ran the node; not set before the first.
        assigned: the variable that the output was assigned to first, None if it has no name.
        extra: hooks and the like, None while there are none.
        multiple: whether the operation returns a tuple or list of outputs, even a list of one.
        outputs: the numbers of the outputs that carry gradients, None for all; hooks receive no
            others.
        reads_lazy: whether its rules accept lazy arrays as gradients.
        fresh: whether each of its gradients is its incoming gradient, or an array that it allocated
            and does not share.
        op: the op that the class was generated from; not set for other classes.
        leaves_complex: whether a complex gradient of a real input is an error; for other nodes its
            real part is taken.
        refuses: whether the operation has no derivative: the node raises when it runs, and it runs
            before all others that are ready.
        stands_for_leaf: whether its output is a leaf inside the function that a transform of
            `torch.func` runs.
        is_hidden: whether a program sees the node's own edge in place of one that leads to it.
    """

    __slots__ = (
        "__weakref__",
        "assigned",
        "extra",
        "input_nrs",
        "metadata",
        "next_nodes",
        "place",
        "ran_at",
        "sequence_nr",
    )

    next_nodes: tuple[Node | None, ...]
    input_nrs: tuple[int, ...]
    metadata: Metadata
    sequence_nr: int
    place: Span | None
    ran_at: Span | None
    assigned: str | None
    extra: NodeExtra | None

    op: ClassVar[Any]  # only where the class is generated from an op
    node_name: ClassVar[str] = "Node"
    multiple: bool = False
    outputs: ClassVar[tuple[int, ...] | None] = None
    reads_lazy: ClassVar[bool] = False
    fresh: ClassVar[bool] = False
    leaves_complex: ClassVar[bool] = False
    refuses: ClassVar[bool] = False
    stands_for_leaf: bool = False
    is_hidden: ClassVar[bool] = False
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"name", "next_functions", "register_hook", "register_prehook"}
    )

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        """The gradients of the inputs, as arrays, for the gradient(s) of the output(s).

        `grads` is one array for a node of one output, a list with None for absent gradients
        otherwise. Saved values are freed afterwards unless `keep`. Raises E403 where they already
        were, E404 where one was modified since.
        """
        raise NotImplementedError

    def run_recorded(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        """The same with tensors instead of arrays; records a graph of the gradients."""
        raise NotImplementedError

    def pass_over(self, grads: list[None], recorded: bool, keep: bool) -> tuple[Any, ...]:
        """Gradients of None where none arrived; frees unless `keep`, raises E403 as `run` does."""
        if self.refuses:
            return self.run(grads, keep)
        for slot in type(self).__slots__:
            if slot.startswith("saved_"):
                if getattr(self, slot, None) is FREED:
                    raise freed(self)
                if not keep and hasattr(self, slot):
                    setattr(self, slot, FREED)
        return (None,) * len(self.next_nodes)

    def save_result_storage(self, output_nr: int, storage: Any, array: Any) -> None:
        """Note an output's later storage and memory: the version of a result is checked there."""

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The edges to the nodes of the inputs: `(node or None, its output number)`."""
        edges = zip(self.next_nodes, self.input_nrs, strict=True)
        return tuple(
            [
                to.next_functions[0] if to is not None and to.is_hidden else (to, nr)
                for to, nr in edges
            ]
        )

    def name(self) -> str:
        """As `grad_fn.name()` gives it: names without overload number have PyTorch's namespace."""
        if any(map(str.isdecimal, self.node_name)):
            return self.node_name
        return f"torch::autograd::{self.node_name}"

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node runs; a tuple that it returns replaces them."""
        return RemovableHandle(extra_of(self).prehooks, fn)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node ran; a tuple replaces the former."""
        return RemovableHandle(extra_of(self).hooks, fn)

    def __repr__(self) -> str:
        return f"<{self.node_name} object at {hex(printed_number(self))}>"

    def language_getattr(self, name: str) -> Any:
        """`metadata`, and attributes computed from what was saved; raises AttributeError."""
        if name == "metadata":
            return extra_of(self).remarks
        raise AttributeError(name)


def reachable(ends: Iterable[Node | None]) -> Iterator[Node]:
    """The nodes that edges lead to from the given nodes, including these, each once."""
    stack = [node for node in ends if node is not None]
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack += [following for following in node.next_nodes if following is not None]


def freed(node: Node, at: Span | None = None) -> GradcliError:
    """The error of a backward pass through a node whose saved values were freed, at a place where
    that is not where it ran last.
    """
    return GradcliError(
        "E403",
        f"the values that {node.node_name} saved were freed by an earlier backward pass",
        text="Trying to backward through the graph a second time (or directly access saved tensors"
        " after they have already been freed). Saved intermediate values of the graph are freed"
        " when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to"
        " backward through the graph a second time or if you need to access saved tensors after"
        " calling backward.",
        help="pass retain_graph=True to the first backward()",
        labels=_labels(
            (node.place, f"{node.node_name} saved values here"),
            (at or getattr(node, "ran_at", None), "freed here"),
        ),
    )


def miscounted(node: Node, count: int) -> GradcliError:
    """The error of a node that returned too many gradients, or too few."""
    return GradcliError(
        "E410",
        f"{node.node_name} returned {count} gradients for {len(node.next_nodes)} inputs",
    )


def _labels(*places: tuple[Span | None, str]) -> tuple[Label, ...]:
    """Labels for the spans that are known."""
    return tuple([Label(place, text) for place, text in places if place is not None])


_NEW_KINDS = frozenset({"BFloat16", "Bool", "ComplexDouble", "ComplexFloat"})
"""Those for which PyTorch's error has no name of an older class of tensors."""


def modified(
    node: Node,
    name: str,
    metadata: tuple[tuple[int, ...], Any],
    producer: tuple[Node | None, int],
    current: int,
    expected: int,
    place: Span | None = None,
) -> GradcliError:
    """The error of a saved value that was written to, last at `place`, before backward.

    Args:
        metadata: its shape and NumPy dtype.
        producer: the node that the value is an output of, and the output's number.
    """
    shape, dtype = metadata
    kind = of_numpy(dtype).scalar_type
    shown = f"CPU{kind}Type" if kind in _NEW_KINDS else f"torch.{kind}Tensor"
    source_node, number = producer
    source = "" if source_node is None else f", which is output {number} of {stem(source_node)},"
    return GradcliError(
        "E404",
        f"`{name}`, which {node.node_name} needs for its gradient, was modified by an in-place"
        f" operation: it is at version {current}, and version {expected} was saved",
        text="one of the variables needed for gradient computation has been modified by an inplace"
        f" operation: [{shown} {list(shape)}]{source} is at version {current};"
        f" expected version {expected} instead. Hint: {_hint()}",
        help=_mend_of_write(place),
        labels=_labels(
            (node.place, f"{node.node_name} saved `{name}` here"), (place, "modified here")
        ),
    )


def _mend_of_write(place: Span | None) -> str:
    """What to do about a write to a saved value."""
    call = "" if place is None else place.text
    if call.endswith("step()"):
        return f"call `{call}` after the last backward() that needs the parameters as they were"
    if element := re.match(_ELEMENT, call):
        return f"write to a copy: `{element[1]} = {element[1]}.clone()` in front of the write"
    update = re.match(_UPDATE, call)
    name, operator, value = update.groups() if update else ("x", "+", "1")
    example = f"`{name} = {name} {operator} {value}`"
    if method := re.match(_METHOD, call):
        example = f"`{method[1]} = {method[1]}.{method[2]}({method[3]}`"
    elif "inplace=True" in call:
        return f"leave `inplace=True` out: `{call.replace('inplace=True', 'inplace=False')}`"
    return f"write the update out of place ({example}), or clone the tensor before changing it"


_ELEMENT = r"([A-Za-z_]\w*)\["
_UPDATE = r"([\w.]+) *([-+*/@%]|\*\*)= *([^\n]{1,40})$"
_METHOD = r"([\w.]+)\.(\w*[a-z])_\(([^\n]{0,40})$"


def stem(node: Node) -> str:
    """The name of a node in PyTorch's errors: that of its function, and of an overload's number."""
    name, word, number = node.name().rpartition("Backward")
    return name + (number.removeprefix("0") if not number or number.isdecimal() else word + number)


def _hint() -> str:
    """What PyTorch advises after a failed check of versions."""
    listener = active.state.recorder
    while listener is not None:
        if getattr(listener, "detects_anomalies", False):
            return (
                "the backtrace further above shows the operation that failed to compute its"
                " gradient. The variable in question was changed in there or anywhere later. Good"
                " luck!"
            )
        listener = getattr(listener, "former", None)
    return (
        "enable anomaly detection to find the operation that failed to compute its gradient, with"
        " torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def detached(node: Node, name: str) -> GradcliError:
    """The error of a saved tensor that `detach_()` took out of the graph since."""
    return GradcliError(
        "E404",
        f"`{name}`, which {node.node_name} needs for its gradient, was detached in place: its"
        " history is gone",
        text="Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
        "This is not supported, please use out-of-place `.detach()` instead",
        help="use detach(), which leaves the tensor itself in the graph",
        labels=_labels((node.place, f"{node.node_name} saved `{name}` here")),
    )
