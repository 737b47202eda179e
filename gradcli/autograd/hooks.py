"""Hooks: functions of the program that a backward pass calls with gradients.

Before a node runs, the hooks of its outputs' tensors are called, then the node's prehooks; after it
has run, the node's hooks. Each may return a gradient that replaces the former. A leaf's hooks are
called when its gradient arrives, its post-accumulate hooks when its `.grad` is written. A saved
tensor of a node, `grad_fn._raw_saved_NAME`, may be given hooks too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.arrays.storage import own
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.node import FREED, Hooks, Node, RemovableHandle, extra_of
from gradcli.autograd.tensor import Tensor, alias, gradient_edge, in_place_of, meta_of
from gradcli.errors import GradcliError, runtime_error, type_error
from gradcli.record import Record
from gradcli.state import active

# --- registering --------------------------------------------------------------------------------


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(gradient)` when the tensor's gradient is known; what it returns replaces it.

    Raises E402 for a tensor that does not require grad.

    Example: tensor(1., requires_grad=True).register_hook(lambda grad: grad * 2)
    """
    node, output_nr = gradient_edge(tensor)
    if not tensor.requires_grad:
        raise GradcliError(
            "E402",
            "register_hook() needs a tensor that requires grad",
            text="cannot register a hook on a tensor that doesn't require gradient",
        )
    if node is None or tensor.grad_fn is None:
        return RemovableHandle(meta_of(tensor).hooks, hook)
    return RemovableHandle(extra_of(node).tensor_hooks.setdefault(output_nr, {}), hook)


def register_post_accumulate_grad_hook(
    tensor: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Call `hook(tensor)` when a gradient was added to the leaf's `.grad`; E402 for a non-leaf.

    Example:
        tensor(1., requires_grad=True).register_post_accumulate_grad_hook(lambda grad: grad * 2)
    """
    gradient_edge(tensor)  # replays a stale view's history
    if not tensor.requires_grad or tensor.grad_fn is not None:
        raise GradcliError(
            "E402",
            "register_post_accumulate_grad_hook() needs a leaf that requires grad",
            text="post accumulate grad hooks cannot be registered on non-leaf tensors"
            if not tensor.is_leaf
            else "cannot register a hook on a tensor that doesn't require gradient",
        )
    return RemovableHandle(meta_of(tensor).accumulated_hooks, hook)


# --- calling ------------------------------------------------------------------------------------


def call_tensor_hooks(hooks: Hooks, gradient: Any) -> Any:
    """The gradient after a tensor's hooks; an array stays an array, a tensor a tensor.

    Raises E410 where a hook returns what cannot stand for the gradient.
    """
    for hook in list(hooks.values()):
        passed = _tensor(gradient)
        returned = hook(passed)
        gradient = _replaced(gradient, passed, passed if returned is None else returned, hook)
    return gradient


def call_prehooks(hooks: Hooks, grads: Any, numbers: tuple[int, ...] | None) -> Any:
    """The gradients of a node's outputs after its prehooks, which get those listed."""
    current = _seen(grads, numbers)
    for hook in list(hooks.values()):
        current = _replaced_all(current, hook, lambda gradients: (gradients,))
    if not isinstance(grads, list):
        return current[0]
    if numbers is None:
        return current
    left = list(grads)
    for number, gradient in zip(numbers, current, strict=True):
        left[number] = gradient
    return left


def call_node_hooks(
    hooks: Hooks,
    gradients: tuple[Any, ...],
    grads: Any,
    numbers: tuple[int, ...] | None = None,
) -> tuple[Any, ...]:
    """The gradients of a node's inputs after its hooks."""
    outputs = tuple(_tensor(gradient) for gradient in _seen(grads, numbers))
    current = list(gradients)
    for hook in list(hooks.values()):
        current = _replaced_all(current, hook, lambda inputs: (inputs, outputs))
    return tuple(current)


def _seen(grads: Any, numbers: tuple[int, ...] | None) -> list[Any]:
    """The gradients of the outputs that carry gradients, which an output of indices does not."""
    if not isinstance(grads, list):
        return [grads]
    return grads if numbers is None else [grads[number] for number in numbers]


def _tensor(gradient: Any) -> Tensor | None:
    """A gradient as a tensor for hooks, which may write to it."""
    if gradient is None or isinstance(gradient, Tensor):
        return gradient
    this = active.state.backward_pass
    return Tensor(own(gradient)) if this is None else this.identity_map.shown(gradient)


def _replaced_all(
    current: list[Any],
    hook: Callable[..., Any],
    arguments: Callable[[Any], tuple[Any, ...]],
) -> list[Any]:
    passed = tuple(_tensor(gradient) for gradient in current)
    returned = hook(*arguments(passed))
    if returned is None:
        # What the hook wrote stays.
        return [_replaced(old, seen, seen, hook) for old, seen in zip(current, passed, strict=True)]
    if not isinstance(returned, tuple):
        raise GradcliError(
            "E410",
            f"a hook has to return a tuple of gradients, or None, not {type(returned).__name__}",
            raises="TypeError",
        )
    if len(returned) != len(passed):
        raise GradcliError("E410", f"a hook has to return {len(passed)} gradients, or None")
    return [
        _replaced(old, seen, new, hook)
        for old, seen, new in zip(current, passed, returned, strict=True)
    ]


def check_result(variable: Tensor, returned: Any, hook: Callable[..., Any]) -> None:
    """Raise E410 where a post-accumulate hook returned anything but None or the leaf itself."""
    _replaced(variable, variable, returned, hook)
    if returned is not None and returned is not variable:
        raise GradcliError("E410", "Tensor post accumulate grad hooks should return None.")


def _replaced(gradient: Any, passed: Tensor | None, new: Any, hook: Callable[..., Any]) -> Any:
    """The gradient after a hook: its result, checked against the gradient that it received."""
    if new is None:
        return None
    if not isinstance(new, Tensor):
        raise GradcliError(
            "E410",
            f"a hook has to return a tensor or None, not {type(new).__name__}",
            text=f"expected Variable, but hook returned '{type(new).__name__}'",
            raises="TypeError",
        )
    name = getattr(hook, "__name__", type(hook).__name__)
    if passed is None:
        raise GradcliError("E410", "a hook returned a gradient where there is none")
    if new.array.shape != passed.array.shape:
        raise GradcliError(
            "E410",
            f"a hook returned a gradient of shape {tuple(new.array.shape)} for one of"
            f" {tuple(passed.array.shape)}",
            text=f"hook '{name}' has changed the size of value",
        )
    if new.array.dtype is not passed.array.dtype:
        raise GradcliError(
            "E410",
            f"a hook returned a gradient of {new.dtype} for one of {passed.dtype}",
            text=f"hook '{name}' has changed the type of"
            f" value (was torch.{passed.dtype.scalar_type}Tensor got"
            f" torch.{new.dtype.scalar_type}Tensor)",
        )
    if isinstance(gradient, Tensor):
        return new
    if new.requires_grad:
        active.state.backward_pass.identity_map.add(new)
    return new.array


Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]


class Packed(Record):
    """A saved tensor after a pack hook: the packed value, and the function that unpacks it."""

    value: Any
    unpack: Unpack

    def tensor(self, node: Node | None, output_nr: int) -> Tensor:
        """The unpacked tensor with its history; raises E202 for what is no tensor."""
        unpacked = self.unpack(self.value)
        if not isinstance(unpacked, Tensor):
            raise type_error(
                f"unpack_hook has to return a tensor, not {type(unpacked).__name__}",
                text="Output of saved tensor unpack_hook expected to be a Tensor but got result of"
                f" type {type(unpacked).__name__}",
            )
        return in_place_of(unpacked.array, node, output_nr)


class SavedTensor(Record):
    """One tensor that a node saved.

    Attributes:
        kept: returns the tensor; None where the node saved none, `FREED` where a pass freed it.
    """

    kept: Callable[[], Any]
    has_hooks: Callable[[Any], bool]
    pack: Callable[[Pack, Unpack], None]

    language_name: ClassVar[str] = "torch._C._autograd.SavedTensor"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"register_hooks"})

    def register_hooks(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        """Keep what `pack_hook(tensor)` returns; `unpack_hook` turns it back when it is needed.

        Raises E202 for hooks that are no functions, E403 where the tensor was freed, E204 where
        there is none, where it has hooks already, and where `pack_hook` writes to it.
        """
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise type_error(f"register_hooks() takes two functions, not {type(hook).__name__}")
        kept = self.kept()
        if kept is FREED:
            raise GradcliError(
                "E403",
                "register_hooks(): the saved tensor was freed by a backward pass",
                help="give it hooks before backward(), or keep it: backward(retain_graph=True)",
            )
        if kept is None:
            raise runtime_error("register_hooks(): the node saved nothing here")
        if self.has_hooks(kept):
            raise runtime_error("register_hooks(): the saved tensor has hooks already")
        packing = unchanging(pack_hook)
        self.pack(lambda tensor: packing(alias(tensor)), unpack_hook)


def unchanging(pack: Pack) -> Pack:
    """A pack hook whose computations are not recorded, and that must not write to its tensor."""

    def packed(tensor: Tensor) -> Any:
        before = tensor.version
        with NoGrad():
            value = pack(tensor)
        if tensor.version != before:
            raise runtime_error(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as"
                " input to pack hook cannot be modified by in-place operations as this can lead to"
                " unexpected side-effects. Please open an issue if you need to perform in-place"
                " operations on the input to a pack hook."
            )
        return value

    return packed
