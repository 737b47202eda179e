"""The state of a module: what `state_dict` returns and `load_state_dict` reads."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error
from gradcli.language.objects.classes.user_classes import own_method
from gradcli.library.torch.nn.attributes import is_parameter, names
from gradcli.ops.creation.copies import copy_, detach
from gradcli.ops.creation.data import parameter

if TYPE_CHECKING:
    from gradcli.library.torch.nn.traversal import Members


class OrderedDict(collections.OrderedDict[Any, Any]):
    """A dictionary as a value of programs: what `state_dict()` returns.

    Attributes:
        complete: whether it came from a module, so that nothing may be missing in it.
    """

    __slots__ = ("complete",)

    complete: bool

    language_name: ClassVar[str] = "collections.OrderedDict"
    language_attributes: ClassVar[frozenset[str]] = names(
        "clear copy get items keys move_to_end pop popitem setdefault update values"
    )

    def copy(self) -> OrderedDict:
        """Another dictionary of the same keys and values."""
        return OrderedDict(self)

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        if not writer.enter(self, "..."):
            return
        cls = getattr(type(self), "language_class", None)
        writer.put(f"{cls.name if cls else 'OrderedDict'}(")
        if self:
            writer.sequence(list(self.items()), "[", "]")
        writer.put(")")
        writer.leave(self)


class IncompatibleKeys(tuple[list[str], list[str]]):
    """What `load_state_dict` returns: the keys that were missing, and those not expected."""

    __slots__ = ()

    language_name: ClassVar[str] = "torch.nn.modules.module._IncompatibleKeys"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"missing_keys", "unexpected_keys"})

    @property
    def missing_keys(self) -> list[str]:
        """The keys of the module that the state did not have."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """The keys of the state that the module does not have."""
        return self[1]

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


_EXTRA = "_extra_state"

_INSTEAD = {
    "_load_from_state_dict": "register_load_state_dict_pre_hook()",
    "_save_to_state_dict": "register_state_dict_post_hook()",
}
"""Methods of PyTorch's that nothing calls here, and what does the same."""


def get_extra_state(self: Any) -> Any:
    """What `state_dict` keeps besides tensors; a class that has such state overrides this."""
    raise runtime_error("the module has no extra state")


def set_extra_state(self: Any, state: Any) -> None:
    """Take back what `get_extra_state` returned; to be overridden with it."""
    raise runtime_error("the module has no extra state")


def _members(module: Members, method: str) -> dict[str, Any]:
    """Parameters and persistent buffers by dotted name: a module's own before its submodules'."""
    members: dict[str, Any] = {}
    for path, inner in module.each_module(remove_duplicate=False):
        members.update(_own_members(inner, f"{path}." if path else "", method))
    return members


def _own_members(module: Any, prefix: str, method: str) -> Iterator[tuple[str, Any]]:
    """A module's own parameters and persistent buffers, and the module itself behind them where its
    class has extra state. Raises E205 for a module that would do by a method of its own what is to
    be done with them.
    """
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        if tensor is not None and name not in module._transient:
            yield prefix + name, tensor
    if own_method(module, method) is not None:
        raise GradcliError(
            "E205",
            f"a method {method}() of a class of its own is outside the language",
            help=f"do the same in a hook: `{_INSTEAD[method]}`",
        )
    kind: Any = type(module)
    if (kind.get_extra_state, kind.set_extra_state) != (get_extra_state, set_extra_state):
        yield prefix + _EXTRA, module


def state_of(module: Any, state: Any, prefix: str, keep_vars: bool) -> Any:
    """Put the state of a module into a dictionary, a new one for None, between the module's hooks;
    outside the graph unless `keep_vars`.
    """
    if state is None:
        state = OrderedDict()
        state.complete = True
    hooks = module._hooks
    for hook in () if hooks is None else list(hooks.state_pre.values()):
        hook(module, prefix, keep_vars)
    for name, value in _own_members(module, prefix, "_save_to_state_dict"):
        if isinstance(value, Tensor):
            lazy = hasattr(value.array, "named")  # it has no elements yet
            state[name] = value if keep_vars or lazy else detach(value)
        elif type(value).get_extra_state is not get_extra_state:
            state[name] = value.get_extra_state()
    for name, inner in module._modules.items():
        if inner is not None:
            inner.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for key, hook in () if hooks is None else list(hooks.state.items()):
        returned = hook(module, state, prefix, {"version": 1})
        if key not in hooks.replaces_state:
            _check_nothing("state_dict", returned)
        elif returned is not None:
            state = returned
    return state


def _hooks(module: Any, kind: str, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The prefix, the module and the hook for each hook of a kind: those of the modules below
    first, unless they are to be called before.
    """
    tables = module._hooks
    own = list(getattr(tables, kind).values()) if tables is not None else ()
    if kind.endswith("_pre"):
        yield from ((prefix, module, hook) for hook in own)
    for name, inner in module._modules.items():
        if inner is not None:
            yield from _hooks(inner, kind, f"{prefix}{name}.")
    if not kind.endswith("_pre"):
        yield from ((prefix, module, hook) for hook in own)


def _check_nothing(name: str, returned: Any) -> None:
    """Raise E410 for a hook that returns something where its changes are to be made in place."""
    if returned is not None:
        raise GradcliError(
            "E410",
            f"a hook of {name}() changes what it is given, and returns None",
            text=None if name == "load_state_dict" else "state_dict post-hook must return None",
            raises="AssertionError" if name == "load_state_dict" else "RuntimeError",
        )


def _quoted(names: list[Any]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _unlike(name: str, tensor: Tensor, value: Any) -> str:
    """PyTorch's message for a value of the state that a module's tensor cannot take."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{name}", expected torch.Tensor or Tensor-like'
            f" object from checkpoint but received {type(value)}"
        )
    shapes = [f"torch.Size({list(each.array.shape)})" for each in (value, tensor)]
    return (
        f"size mismatch for {name}: copying a param with shape {shapes[0]} from checkpoint, the"
        f" shape in current model is {shapes[1]}."
    )


def load(module: Members, state: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Copy the tensors of a state into a module's; see `Module.load_state_dict`."""
    if not isinstance(state, dict):
        raise type_error(
            f"Expected state_dict to be dict-like, got <class '{type(state).__name__}'>."
        )
    missing: list[str] = []
    unexpected: list[str] = []
    texts: list[str] = []
    complete = getattr(state, "complete", False)
    state = OrderedDict(state)
    for path, inner, hook in _hooks(module, "load_state_pre"):
        hook(inner, state, path, {"version": 1}, True, missing, unexpected, texts)
    members = _members(module, "_load_from_state_dict")
    for name, value in list(members.items()):
        if not isinstance(value, Tensor) and type(value).set_extra_state is set_extra_state:
            del members[name]
    missing += [
        name
        for name in members
        if name not in state and (complete or name.rpartition(".")[2] not in _COUNTS)
    ]
    places = {path: n for n, (path, _) in enumerate(module.each_module(remove_duplicate=False))}
    rest = [name for name in state if name not in members]
    unexpected += sorted(rest, key=lambda name: _place(name, places))
    problems = list(texts)
    take = _assigned if assign else _copied
    with NoGrad():
        for name in members:
            if name not in state:
                continue
            if not isinstance(members[name], Tensor):
                members[name].set_extra_state(state[name])
            else:
                problem = take(module, name, members[name], state[name])
                if problem:
                    problems.append(f"{name}: {problem}")
                    texts.append(_unlike(name, members[name], state[name]))
    keys = IncompatibleKeys((missing, unexpected))
    for _, inner, hook in _hooks(module, "load_state"):
        _check_nothing("load_state_dict", hook(inner, keys))
    if strict and unexpected:
        texts.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
        problems.append(f"keys that the module does not have: {', '.join(map(repr, unexpected))}")
    if strict and missing:
        texts.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        problems.append(f"keys that the state does not have: {', '.join(map(repr, missing))}")
    if problems:
        raise GradcliError(
            "E204",
            "load_state_dict(): the state does not fit the module",
            text=f"Error(s) in loading state_dict for {type(module).__name__}:\n\t"
            + "\n\t".join(texts),
            raises="RuntimeError",
            notes=tuple(problems),
        )
    return keys


def _place(name: Any, places: dict[str, int]) -> int:
    """The place of the module, among all, that finds a name which nothing has."""
    path = str(name).rpartition(".")[0]
    while path not in places:
        path = path.rpartition(".")[0]
    return places[path]


_COUNTS = frozenset({"num_batches_tracked"})
"""Buffers that older versions did not save: a dictionary that the program built may lack them."""


def _misfit(tensor: Tensor, value: Any) -> str:
    """What is wrong with a value that is to replace a tensor."""
    if not isinstance(value, Tensor):
        return f"it is no tensor but {type(value).__name__}"
    if hasattr(tensor.array, "materialize"):  # it has no shape yet
        tensor.array = tensor.array.materialize(value.array.shape)
    if value.array.shape != tensor.array.shape:
        return (
            f"its shape is {tuple(value.array.shape)}, and the module's {tuple(tensor.array.shape)}"
        )
    return ""


def _copied(module: Members, name: str, tensor: Tensor, value: Any) -> str:
    """Copy a value into a tensor; returns what is wrong where it does not fit."""
    problem = _misfit(tensor, value)
    if not problem:
        copy_(tensor, value)
    return problem


def _assigned(module: Members, name: str, tensor: Tensor, value: Any) -> str:
    """Replace a tensor by a value; returns what is wrong where it does not fit."""
    problem = _misfit(tensor, value)
    if problem:
        return problem
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    if last in owner._parameters:
        if not is_parameter(value):
            value = parameter(value, tensor.requires_grad)
        owner._parameters[last] = value
    else:
        owner._buffers[last] = value
    return ""
