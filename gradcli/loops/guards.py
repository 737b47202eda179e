"""What a compiled iteration relies on and checks, since other code could change it."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

from gradcli.arrays.storage import Storage
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.objects.attributes import Method
from gradcli.language.objects.classes.user_classes import BoundMethod
from gradcli.language.tree.scopes import Variables
from gradcli.state import State, is_unobserved
from gradcli.trace.ir import Guard as ValueGuard
from gradcli.trace.ir import kind_of

Read = Callable[[Variables], Any]
"""What reads a value, given the variables of the code with the loop."""


Kind = tuple[Any, ...]
"""How an array lies in memory: its type, dtype, shape and strides; or the type of a number; or that
of a tuple or list of tensors, and how many there are.
"""


def is_new_leaf(tensor: Tensor) -> bool:
    """Whether a tensor is a leaf that no pass has reached, and nothing but its value and its name
    tell it from others.
    """
    meta = tensor.meta
    if not tensor.requires_grad or tensor.grad_fn is not None:
        return False
    return meta is None or (
        meta.grad is None
        and meta.base is None
        and not (meta.hooks or meta.accumulated_hooks or meta.is_parameter or meta.attributes)
    )


class Input(NamedTuple):
    """A value that an iteration reads from outside and that may differ from iteration to iteration.

    Attributes:
        is_leaf: whether it is a leaf, whose gradient a backward pass sets.
        is_detached: whether the iteration detaches it from its graph.
    """

    read: Callable[[Variables], Any]
    kind: Kind
    is_leaf: bool = False
    is_detached: bool = False

    def fits(self, variables: Variables) -> bool:
        """Whether it is of that kind now."""
        try:
            value = self.read(variables)
            if type(value) is not Tensor:
                kind, *length = self.kind
                return type(value) is kind and (not length or length == [len(value)])
        except (GradcliError, LookupError, TypeError):
            return False
        fits = is_new_leaf(value) if self.is_leaf else not value.requires_grad
        return (fits or self.is_detached) and kind_of(value.array) == self.kind


class Guard:
    """The values, lists and tensors that a compiled iteration takes for constants, and the modes.

    Attributes:
        values: what reads each value from outside, and the value, by where it is kept.
        contents: each list, tuple or dict that it goes through, and what is in it.
        tensors: each tensor from outside, its array, and whether it requires grad.
        hooks: those of them with hooks, and the hooks.
        facts: what gives the parts of a thing that must stay the same values, and those.
        training: the modules that it calls or switches, and whether each is in training when an
            iteration begins.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.modes = _modes(state)
        self.values: dict[Any, tuple[Read, Any]] = {}
        self.contents: dict[int, tuple[Any, Any]] = {}
        self.tensors: dict[Tensor, tuple[Any, bool]] = {}
        self.hooks: dict[Tensor, list[Any]] = {}
        self.facts: list[tuple[Callable[[], list[Any]], list[Any]]] = []
        self.checks: list[ValueGuard] = []
        self.storages: dict[Tensor, Storage | None] = {}
        self.gradients: dict[Tensor, bool] = {}
        self.lasting: dict[Tensor, Tensor] = {}
        self.training: dict[Any, bool] = {}

    def rely_on(self, parts: Callable[[], list[Any]]) -> None:
        """Rely on a function to return the same values in every iteration."""
        self.facts.append((parts, parts()))

    def rely_on_contents(self, values: Any) -> None:
        """Rely on what is in a list, a tuple or a dict."""
        if id(values) not in self.contents:
            self.contents[id(values)] = (
                values,
                dict(values) if isinstance(values, dict) else list(values),
            )

    def ignore(self, values: dict[str, Any], name: str) -> None:
        """Do not rely on one item of a dict: the iteration itself sets it."""
        if id(values) in self.contents:
            self.contents[id(values)][1][name] = _ANY

    def watch(self, tensor: Tensor) -> None:
        """Rely on a tensor from outside, and on its hooks."""
        found = None if tensor in self.tensors else hooks_of(tensor)
        self.tensors[tensor] = tensor.array, tensor.requires_grad
        if found:
            self.hooks[tensor] = found

    def has_hooks(self, tensor: Tensor) -> bool:
        """Whether the hooks of a tensor from outside are those that it had."""
        return _are_same(hooks_of(tensor), self.hooks.get(tensor, []))

    @property
    def count(self) -> int:
        """How many there are."""
        things = (self.values, self.contents, self.facts, self.tensors, self.checks, self.gradients)
        return sum(map(len, things))

    def holds(self, variables: Variables) -> bool:
        """Whether everything is as it was, for code with these variables."""
        return (
            self.has_modes()
            and all(_reads(read, variables, value) for read, value in self.values.values())
            and all(_contains(values, items) for values, items in self.contents.values())
            and all(_are_same(read(), parts) for read, parts in self.facts)
            and all(_is_same(tensor, *known) for tensor, known in self.tensors.items())
            and all(map(self.has_hooks, self.tensors))
            and all(each.holds() for each in self.checks)
            and all(tensor.storage is storage for tensor, storage in self.storages.items())
            and all(leaf.grad is None or leaf.grad is g for leaf, g in self.lasting.items())
            and all(module.training is mode for module, mode in self.training.items())
        )

    def has_modes(self) -> bool:
        """Whether the modes are what they were."""
        return _modes(self.state) == self.modes

    def finds_gradients(self) -> bool:
        """Whether the same leaves have gradients as at the capture; those that the iteration writes
        to have to be the same tensors.
        """
        return all((leaf.grad is not None) is had for leaf, had in self.gradients.items()) and all(
            leaf.grad is gradient for leaf, gradient in self.lasting.items()
        )

    def replaced(self) -> set[Any]:
        """What is known of the leaves that have another gradient than they had."""
        leaves = [leaf for leaf, gradient in self.lasting.items() if leaf.grad is not gradient]
        return {("gradient", id(leaf)) for leaf in leaves if leaf.grad is not None}

    def changed(self, variables: Variables) -> set[Any]:
        """Where values are kept that are no longer what they were, and the modules that were
        switched.
        """
        values = self.values.items()
        keys = {key for key, (read, value) in values if not _reads(read, variables, value)}
        modes = self.training.items()
        switched = {("training", id(module)) for module, mode in modes if module.training != mode}
        return keys | switched | self.replaced()

    def changed_inputs(self, variables: Variables) -> set[Any]:
        """Those of them that hold what code can be given: numbers, tensors without gradients."""
        keys = self.changed(variables)
        values = {key: _value_now(self.values[key][0], variables) for key in keys & {*self.values}}
        return {key for key in keys if is_input(values.get(key))}


_ANY = object()
"""Stands for whatever an item may be."""


def is_same_value(now: Any, then: Any) -> bool:
    """Whether a value is the same object, or an equal number, string or method."""
    if now is then:
        return True
    kind = type(now)
    if kind is not type(then):
        return False
    if kind is float:
        return repr(now) == repr(then)
    if kind in (int, bool, str, complex):
        return bool(now == then)
    if kind in (BoundMethod, Method):
        return now.receiver is then.receiver and now.function is then.function
    if kind is MethodType:
        return bool(now == then)
    return kind is tuple and len(now) == len(then) and all(map(is_same_value, now, then))


def is_input(value: Any) -> bool:
    """Whether code can be given a value, to which it need not be compiled again."""
    if type(value) in (tuple, list):
        return all(type(each) is Tensor and is_input(each) for each in value)
    if type(value) is Tensor:
        return not value.requires_grad
    return type(value) in (int, float, bool)


def _value_now(read: Read, variables: Variables) -> Any:
    try:
        return read(variables)
    except (GradcliError, KeyError):  # it was deleted
        return _ANY


def _reads(read: Read, variables: Variables, value: Any) -> bool:
    return is_same_value(_value_now(read, variables), value)


def _contains(values: Any, items: Any) -> bool:
    if len(values) != len(items):
        return False
    if isinstance(values, dict):
        pairs = zip(values.items(), items.items(), strict=True)
        return all(k is j and (u is _ANY or is_same_value(v, u)) for (k, v), (j, u) in pairs)
    return all(map(is_same_value, values, items))


def _are_same(values: Any, items: Any) -> bool:
    return len(values) == len(items) and all(map(is_same_value, values, items))


def hooks_of(tensor: Tensor) -> list[Any]:
    """The hooks of a leaf, and which of them are called when its gradient is there."""
    meta = tensor.meta
    if meta is None or not (meta.hooks or meta.accumulated_hooks):
        return []
    return [len(meta.hooks), *meta.hooks.values(), *meta.accumulated_hooks.values()]


def _is_same(tensor: Tensor, array: Any, requires_grad: bool) -> bool:
    return (
        tensor.array is array and tensor.requires_grad is requires_grad and tensor.grad_fn is None
    )


def _modes(state: State) -> tuple[Any, ...]:
    return is_unobserved(state), state.grad_enabled, state.lazy_from, state.default_dtype
