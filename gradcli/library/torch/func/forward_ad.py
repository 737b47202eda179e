"""`torch.autograd.forward_ad`: dual tensors, which carry a tangent through the operations.

A dual tensor begins at a node of its own in the recorded graph. What is computed from it is
recorded as usual, and a tangent is computed when it is read, by `pushforward`. So the
operations have to be recorded: inside `no_grad()` a tangent is lost, where PyTorch carries it on.
"""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import WeakSet

from gradcli.arrays.layout.strides import strides_of
from gradcli.autograd.inplace.writes import check_places
from gradcli.autograd.node import Node, reachable
from gradcli.autograd.tensor import Tensor, alias, gradient_edge, with_history
from gradcli.errors import GradcliError, attribute_error, runtime_error, type_error, value_error
from gradcli.library.torch.func.forward import pushforward
from gradcli.library.torch.func.levels import Entry, reaches_leaf, sizes_of_tangent
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import ReturnType
from gradcli.ops.creation.copies import detach
from gradcli.state import active

_MODULE = "torch.autograd.forward_ad"


class DualEntry(Entry):
    """Where a dual tensor begins: it holds the tangent, and the tensor that begins at it."""

    __slots__ = ("level", "tangent")

    node_name = "ViewBackward0"

    def __init__(self, tensor: Tensor, tangent: Tensor, level: int) -> None:
        super().__init__(tensor)
        self.tangent = tangent
        self.level = level


class Identity(Entry):
    """What makes the primal of a dual tensor a tensor without tangent."""

    __slots__ = ()

    node_name = "Identity"


class Duals:
    """The dual levels of a session.

    Attributes:
        level: the number of the open one, 0 while there is none.
        count: how many have been opened.
    """

    __slots__ = ("_ends", "count", "level")

    def __init__(self) -> None:
        self.level = 0
        self.count = 0
        self._ends: WeakSet[Node] = WeakSet()  # where tangents come from, which have none

    def tangent(self, tensor: Tensor) -> Tensor | None:
        """The tensor's tangent at the open level, None if it has none."""
        entries = self._entries(tensor)
        if not entries:
            return None
        if tensor.grad_fn is entries[0]:
            return entries[0].tangent
        starts = [with_history(tensor.array, entry) for entry in entries]
        tangents: list[Tensor | None] = [entry.tangent for entry in entries]
        connected = reaches_leaf([tensor, *[entry.tangent for entry in entries]])
        state = active.state
        state.duals = None  # the ops of pushforward work on the graph without tangents
        try:
            (result,) = pushforward([tensor], starts, tangents, create_graph=connected)
        finally:
            state.duals = self
        if not reaches_leaf([result]):
            return detach(result)
        node = gradient_edge(result)[0]
        if node is not None:
            self._ends.add(node)
        return result

    def hides_history(self, tensor: Tensor) -> bool:
        """Whether a tensor's graph leads only to dual tensors, and so is hidden from the
        program.
        """
        # The history of a view is not regenerated here: that may raise.
        return tensor.grad_fn is not None and not _begins_elsewhere(tensor.grad_fn)

    def _entries(self, tensor: Tensor) -> list[DualEntry]:
        """The dual tensors of the open level that a tensor was computed from."""
        entries: list[DualEntry] = []
        if not self.level or not tensor.requires_grad:
            return entries
        stack = [gradient_edge(tensor)[0]]
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node is None or node in seen or isinstance(node, Identity) or node in self._ends:
                continue
            seen.add(node)
            if isinstance(node, DualEntry) and node.level == self.level:
                entries.append(node)
            else:
                stack += node.next_nodes
        return entries

    def suffixes(self, tensor: Tensor, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """What is printed behind a tensor's elements: its history, unless it has none but the
        dual tensors that it was computed from, and its tangent.
        """
        if not tensor.requires_grad:
            return suffixes
        shown = () if self.hides_history(tensor) else suffixes
        tangent = self.tangent(tensor)
        if tangent is None:
            return shown
        text = tangent.item() if not tangent.array.ndim else tangent
        return (*shown, f"tangent={text!r}")


def _begins_elsewhere(end: Node) -> bool:
    """Whether the graph behind a node has an end that is no dual tensor."""
    return any(
        not any(node.next_nodes) and not isinstance(node, DualEntry) for node in reachable([end])
    )


def _duals() -> Duals:
    state = active.state
    if state.duals is None:
        state.duals = Duals()
    return state.duals


@function(module=_MODULE)
def enter_dual_level() -> int:
    """Open a dual level; raises E205 inside another one, as PyTorch has no nested ones."""
    duals = _duals()
    if duals.level:
        raise GradcliError(
            "E205",
            "dual levels cannot be nested",
            text="Nested forward mode AD is not supported at the moment",
            raises="RuntimeError",
            help="torch.func.jvp can be nested",
        )
    duals.count += 1
    duals.level = duals.count
    return 0


@function(module=_MODULE)
def exit_dual_level(*, level: int | None = None) -> None:
    """Close the dual level: its tensors have no tangent any more."""
    duals = _duals()
    if not duals.level:
        raise runtime_error(
            "there is no dual level to leave", text="Dual level must be a positive number."
        )
    duals.level = 0


class DualLevel:
    """`torch.autograd.forward_ad.dual_level()`: the context in which tangents live."""

    __slots__ = ()

    language_name: ClassVar[str] = "torch.autograd.forward_ad.dual_level"
    language_context: ClassVar[bool] = True

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


function("dual_level", module=_MODULE)(DualLevel)


class UnpackedDualTensor(ReturnType):
    """A tensor and its tangent."""

    __slots__ = ()

    name = "UnpackedDualTensor"
    fields = ("primal", "tangent")
    language_name = "torch.autograd.forward_ad.UnpackedDualTensor"
    language_attributes = frozenset(fields)

    def __repr__(self) -> str:
        return f"UnpackedDualTensor(primal={self[0]!r}, tangent={self[1]!r})"

    __str__ = __repr__


@function(module=_MODULE)
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """A dual tensor: the tensor's values, and the tangent that it carries.

    Raises E204 outside a dual level and for dtypes that have no derivative, E301 for a tangent of
    another shape.
    """
    duals = _duals()
    if not duals.level:
        raise runtime_error(
            "make_dual() needs a dual level",
            text="Trying to create a dual Tensor for forward AD but no level exists, make sure to"
            " enter_dual_level() first.",
            help="write `with torch.autograd.forward_ad.dual_level():`",
        )
    for what, part in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(part, Tensor):
            kind = type(part).__name__
            raise attribute_error(
                f"make_dual() takes tensors, not {kind}",
                text=f"'{kind}' object has no attribute 'is_floating_point'",
            )
        if part.array.dtype.kind not in "fcV":
            raise value_error(
                f"Expected {what} to be floating point or complex, but got: {part.dtype}"
            )
    if tensor.array.shape != tangent.array.shape:
        raise sizes_of_tangent(tensor, tangent)
    if duals.tangent(tensor) is not None:
        raise runtime_error(
            "make_dual(): the tensor has a tangent already",
            text="Making a dual Tensor based on a Tensor that already has a forward gradient at the"
            " same level 0 is not supported.",
        )
    if duals.tangent(tangent) is not None:
        raise runtime_error(
            "make_dual(): the tangent has a tangent itself",
            text="Setting a forward grad that itself has a forward gradient at the same level0 is"
            " not supported.",
        )
    if strides_of(tensor.array) != strides_of(tangent.array):
        check_places(tensor.array)  # PyTorch copies the tangent to memory of the same strides
    entry = DualEntry(tensor, tangent, duals.level)
    return with_history(alias(tensor).array, entry)


@function(module=_MODULE)
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent, None if it has none."""
    if not isinstance(tensor, Tensor):
        kind = type(tensor).__name__
        raise type_error(
            f"unpack_dual() takes a tensor, not {kind}",
            text=f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {kind}",
        )
    duals = _duals()
    tangent = duals.tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor((tensor, None))
    if reaches_leaf([tensor]):
        primal = with_history(tensor.array, Identity(tensor))
    else:
        primal = detach(tensor)
    return UnpackedDualTensor((primal, tangent))
