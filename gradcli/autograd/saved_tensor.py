"""`grad_fn._raw_saved_NAME`: one saved tensor of a node, to which hooks can be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.autograd.modes import NoGrad
from gradcli.autograd.node import FREED, Node
from gradcli.autograd.tensor import Tensor, alias, in_place_of
from gradcli.errors import GradcliError, runtime_error, type_error
from gradcli.record import Record

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
