"""What a written round relies on, which ordinary rounds and other code could change."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import TYPE_CHECKING, Any

from gradcli.arrays.storage import Storage
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.tree.scopes import Variables
from gradcli.state import State
from gradcli.trace.guards import Guard as ValueGuard

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Evaluate


class Guard:
    """The names, lists and tensors that a written round takes for constants, and the modes.

    Attributes:
        names: what reads each name that the round knows from outside, its variables, its value; by
            the name, and whether the round itself names it or a function that it calls.
        lists: each list that it goes through, and what is in it.
        tensors: each tensor from outside, its array, and whether it requires grad.
        facts: what gives the parts of a thing that must stay the same objects, and those.
        values: checks of arrays from outside, which must pass.
        storages: those of the tensors that it writes to.
        gradients: the leaves, and whether each has a gradient when a round begins.
        lasting: the gradients among them that it adds to.
    """

    __slots__ = (
        "facts",
        "gradients",
        "lasting",
        "lists",
        "modes",
        "names",
        "state",
        "storages",
        "tensors",
        "values",
        "variables",
    )

    def __init__(self, state: State, variables: Variables) -> None:
        self.state = state
        self.variables = variables
        self.modes = _modes(state)
        self.names: dict[tuple[str, bool], tuple[Evaluate, Variables, Any]] = {}
        self.lists: list[tuple[Any, tuple[Any, ...]]] = []
        self.tensors: dict[Tensor, tuple[Any, bool]] = {}
        self.facts: list[tuple[Callable[[], list[Any]], list[Any]]] = []
        self.values: list[ValueGuard] = []
        self.storages: dict[Tensor, Storage] = {}
        self.gradients: dict[Tensor, bool] = {}
        self.lasting: dict[Tensor, Tensor] = {}

    def rely_on(self, parts: Callable[[], list[Any]]) -> None:
        """Rely on what a function gives to stay the same objects."""
        self.facts.append((parts, parts()))

    def watch(self, tensor: Tensor) -> None:
        """Rely on a tensor from outside."""
        self.tensors[tensor] = tensor.array, tensor.requires_grad

    def holds(self, variables: Variables) -> bool:
        """Whether everything is as it was."""
        return (
            variables is self.variables
            and _modes(self.state) == self.modes
            and all(_reads(*each) for each in self.names.values())
            and all(_are_same(values, items) for values, items in self.lists)
            and all(_are_same(read(), parts) for read, parts in self.facts)
            and all(_is_same(tensor, *known) for tensor, known in self.tensors.items())
            and all(each.holds() for each in self.values)
            and all(tensor.storage is storage for tensor, storage in self.storages.items())
            and all((leaf.grad is not None) is had for leaf, had in self.gradients.items())
            and all(leaf.grad is gradient for leaf, gradient in self.lasting.items())
        )


def _reads(read: Evaluate, variables: Variables, value: Any) -> bool:
    try:
        return read(variables) is value
    except GradcliError:  # the name was deleted
        return False


def _are_same(values: Any, items: Any) -> bool:
    return len(values) == len(items) and all(map(is_, values, items))


def _is_same(tensor: Tensor, array: Any, requires_grad: bool) -> bool:
    meta = tensor.meta
    return (
        tensor.array is array
        and tensor.requires_grad is requires_grad
        and tensor.grad_fn is None
        and (meta is None or not (meta.hooks or meta.accumulated_hooks))
    )


def is_ordinary(state: State) -> bool:
    """Whether nobody listens, and operations have no other meaning than always."""
    return (
        state.recorder is None
        and state.batch is None
        and state.duals is None
        and state.backward_pass is None
        and not state.inference
        and not state.transforms
    )


def _modes(state: State) -> tuple[Any, ...]:
    return is_ordinary(state), state.grad_enabled, state.defer_from, state.default_dtype
