"""The module `copy`, shallow and deep copies; and copies of modules with tensors of their own."""

from __future__ import annotations

from collections import OrderedDict, deque
from types import MethodType
from typing import Any

import numpy as np

from gradcli.arrays.backend import address_of
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.layout.strides import copied_in_order, memory_of
from gradcli.arrays.random.generator import Generator
from gradcli.arrays.storage import Storage
from gradcli.autograd.tensor import Tensor, alias, meta_of
from gradcli.errors import GradcliError
from gradcli.language.objects.attributes import attributes_of_tensor
from gradcli.language.objects.borders import is_array
from gradcli.language.objects.classes.extensible import Extensible
from gradcli.language.objects.classes.user_classes import BoundMethod, Instance, own_method
from gradcli.language.objects.repr import HOST_TEXT
from gradcli.language.objects.types import LanguageType, type_name
from gradcli.library.torch.nn.attributes import enlist, is_initialised, is_parameter
from gradcli.library.torch.nn.module import Module, ModuleHooks
from gradcli.library.torch.optim.optimizer import Optimizer


def copied_tensor(copied: Tensor, original: Tensor) -> Tensor:
    """Make a copy what the original is: a parameter, a buffer, one that requires grad."""
    copied.requires_grad = original.requires_grad
    if original.meta is not None:
        meta = meta_of(copied)
        meta.is_parameter = original.meta.is_parameter
        meta.persistent = original.meta.persistent
    return copied


def not_kept(value: Any, copied: Any) -> None:
    """What a shallow copy has to keep."""


def copied_module(module: Module, of: Any, keep: Any = not_kept) -> Module:
    """A module with copies of what it holds; a shallow one has its tables in common with it."""
    copy: Module = object.__new__(type(module))
    enlist(copy)
    keep(module, copy)
    shallow = keep is not_kept
    names = ["_values"]
    if is_initialised(module):
        tables = ["_parameters", "_buffers", "_modules"]
        if shallow:
            for name in (*tables, "_transient"):
                object.__setattr__(copy, name, getattr(module, name))
        else:
            names += tables
            object.__setattr__(copy, "_transient", set(module._transient))
        object.__setattr__(copy, "training", module.training)
        object.__setattr__(copy, "_hooks", _hooks(module))
    for name in names:
        table = {key: of(value) for key, value in getattr(module, name).items()}
        object.__setattr__(copy, name, table)
    for name in module.all_fields - Module.all_fields:  # it may be a data set, say, too
        if name in vars(module):
            object.__setattr__(copy, name, of(vars(module)[name]))
    if isinstance(module, _COLLECTIONS):
        raise GradcliError(
            "E205", "a copy of a module that is a collection is outside the language"
        )
    return copy


_COLLECTIONS = (list, dict, set, tuple, str, int, float)


def _hooks(module: Module) -> ModuleHooks | None:
    """The same hooks in tables of their own."""
    if module._hooks is None:
        return None
    copy = ModuleHooks()
    for name in ModuleHooks.__slots__:
        getattr(copy, name).update(getattr(module._hooks, name))
    return copy


def clone(module: Module, known: dict[int, Any] | None = None) -> Module:
    """A module like another, with tensors of its own; what stands in several places, whose copies
    are in `known`, still does.
    """
    copies: dict[int, Any] = {} if known is None else known

    def of(value: Any) -> Any:
        if id(value) in copies:
            return copies[id(value)]
        if isinstance(value, Module):
            return clone(value, copies)
        if not isinstance(value, Tensor):
            return value
        copies[id(value)] = copied_tensor(Tensor(value.array.copy()), value)
        return copies[id(value)]

    return copied_module(module, of, lambda one, copied: copies.update({id(one): copied}))


_PLAIN = (bool, int, float, complex, str, bytes, type(None), range, slice, LanguageType, type)


def copy(x: Any) -> Any:
    """`copy.copy(x)`: a value of its own that holds the same things."""
    if isinstance(x, Tensor):
        copied = copied_tensor(alias(x), x)
        own = attributes_of_tensor(x)
        if own:
            meta_of(copied).attributes = dict(own)
        return copied
    own = own_method(x, "__copy__")
    return own(x) if own is not None else _copied(x, lambda value: value, not_kept)


def deepcopy(x: Any, memo: Any = None) -> Any:
    """`copy.deepcopy(x)`: a value of its own that holds copies, each thing copied once.

    Raises E405 for a tensor that is no leaf, E205 for values of other kinds.
    """
    return (memo.copying if isinstance(memo, _Memo) else _Copying()).of(x)


def _copied(value: Any, of: Any, keep: Any) -> Any:
    """A value like another, of what `of` gives for each thing in it; `keep` gets it first.

    Raises E205 for a schedule and the like of which the program's class says what its state is.
    """
    own = own_method(value, "__setstate__"), own_method(value, "__getstate__")
    if any(own) and isinstance(value, Module):
        return _module_by_state(value, of, keep)
    if any(own) and not isinstance(value, Instance):
        if not isinstance(value, Optimizer) or own[1] is not None:
            words = "a copy by `__getstate__` or `__setstate__` of its class"
            raise GradcliError("E205", f"{words} is outside the language")
        copied: Any = _by_slots(value, of, keep)
        own[0](copied, copied.__getstate__())
        return copied
    if isinstance(value, Module):
        return copied_module(value, of, keep)
    if isinstance(value, Instance) and not value.language_shared:
        copied = type(value).__new__(type(value))
        keep(value, copied)
        _take_state(copied, of(_state_of(value)))
        return copied
    if isinstance(value, Extensible) or hasattr(type(value), "copied_by_slots"):
        return _by_slots(value, of, keep)
    if type(value) is BoundMethod:
        return BoundMethod(of(value.receiver), value.function)
    if type(value) is MethodType and isinstance(value.__self__, (Extensible, Module)):
        return MethodType(value.__func__, of(value.__self__))
    copied = _collection(value, of, keep)
    if copied is None:
        return _as_it_is(value)
    if hasattr(value, "stored"):
        copied.stored = {key: of(each) for key, each in value.stored.items()}
    return copied


def _module_by_state(module: Module, of: Any, keep: Any) -> Any:
    """A copy of a module whose class says what its state is, or what is made of that."""
    copied = type(module).__new__(type(module))
    keep(module, copied)
    state = (own_method(module, "__getstate__") or Module.__getstate__)(module)
    (own_method(module, "__setstate__") or Module.__setstate__)(copied, of(state))
    if is_initialised(copied):
        object.__setattr__(copied, "_hooks", _hooks(module))
    return copied


def _state_of(value: Any) -> Any:
    """What a copy of an instance is made of: its attributes, or what its `__getstate__` gives."""
    own = own_method(value, "__getstate__")
    return dict(value.values) or None if own is None else own(value)


def _take_state(copied: Any, state: Any) -> None:
    """Make a copy of its state; None is the state of what holds nothing."""
    own = own_method(copied, "__setstate__")
    if state is not None and own is not None:
        own(copied, state)
    elif state is not None:
        copied.values.update(state)


def _by_slots(value: Any, of: Any, keep: Any) -> Any:
    """A copy of an optimizer, a schedule, a partial function or their like."""
    copied = object.__new__(type(value))
    keep(value, copied)
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in (*names, *getattr(value, "__dict__", ())):
        if name == "values":  # what the program set, which even a shallow copy has for itself
            copied.values = {key: of(each) for key, each in value.values.items()}
        elif hasattr(value, name):
            # The first steps of an optimizer are watched for its own program's slips.
            setattr(copied, name, None if name == "_lint" else of(getattr(value, name)))
    return copied


def _collection(value: Any, of: Any, keep: Any) -> Any:
    """A copy of a list, a dictionary, a set, a tuple or one of their kinds; None for no such."""
    kind: Any = type(value)
    base: Any
    if isinstance(value, (tuple, frozenset)):
        parts = list(map(of, value))
        if all(part is each for part, each in zip(parts, value, strict=True)):
            return value if kind is tuple or not hasattr(value, "stored") else None
        base = tuple if isinstance(value, tuple) else frozenset
        return base.__new__(kind, parts)
    if isinstance(value, deque):
        copied: Any = kind((), value.maxlen)
    elif isinstance(value, (list, dict, set)):
        copied = kind.__new__(kind)
    else:
        return None
    keep(value, copied)
    if not isinstance(value, dict):
        base = next(each for each in (deque, list, set) if isinstance(value, each))
        (base.update if base is set else base.extend)(copied, map(of, value))
        return copied
    if hasattr(value, "default_factory"):
        copied.default_factory = value.default_factory
    update = OrderedDict.update if isinstance(value, OrderedDict) else dict.update
    update(copied, {of(key): of(each) for key, each in value.items()})
    return copied


def _as_it_is(value: Any) -> Any:
    """A value that a copy shares, as Python does with what cannot change; the copy of an array and
    of a generator.
    """
    if is_array(value):
        return type(value)(value.data.copy())
    if isinstance(value, Generator):
        copied = Generator(value.device)
        copied.restore(value.snapshot())
        return copied
    if isinstance(value, (*_PLAIN, tuple, np.generic, Instance)) or callable(value):
        return value
    if type(value) in HOST_TEXT:  # dates and exact numbers
        return value
    raise GradcliError("E205", f"a copy of {type_name(value)} is outside the language")


class _Memo(dict[int, Any]):
    """The copies that were made, by what they are copies of: what `__deepcopy__` is given."""

    __slots__ = ("copying",)

    def __init__(self, copying: _Copying) -> None:
        super().__init__()
        self.copying = copying


class _Copying:
    """One deep copy.

    Attributes:
        originals: the originals, which must not go away meanwhile.
        memories: the copies of the memory of tensors, and what those on it share.
    """

    def __init__(self) -> None:
        self.copies: dict[int, Any] = {}
        self.originals: list[Any] = []
        self.memories: dict[int, tuple[Any, Storage]] = {}
        self.memo = _Memo(self)

    def of(self, value: Any) -> Any:
        """The copy of a value."""
        if id(value) in self.copies:
            return self.copies[id(value)]
        own = own_method(value, "__deepcopy__")
        if isinstance(value, Tensor):
            copied: Any = self._tensor(value)
        elif own is not None:
            copied = own(value, self.memo)
        else:
            copied = _copied(value, self.of, self._keep)
        self._keep(value, copied)
        return copied

    def _keep(self, value: Any, copied: Any) -> None:
        self.copies[id(value)] = copied
        self.originals.append(value)

    def _tensor(self, tensor: Tensor) -> Tensor:
        if not tensor.is_leaf:
            raise GradcliError(
                "E405",
                "deepcopy() copies leaves, and a tensor was made by an operation",
                text="Only Tensors created explicitly by the user (graph leaves) support the"
                " deepcopy protocol at the moment.  If you were attempting to deepcopy a module,"
                " this may be because of a torch.nn.utils.weight_norm usage, see"
                " https://github.com/pytorch/pytorch/pull/103001",
                help="copy `x.detach()`",
            )
        array = forced(tensor.array)
        copied = self._alone(array) if is_parameter(tensor) else self._on_copied_memory(array)
        copied = copied_tensor(copied, tensor)
        if is_parameter(tensor):  # of which PyTorch copies no more
            return copied
        self._keep(tensor, copied)
        if tensor.grad is not None:
            meta_of(copied).grad = self.of(tensor.grad)
        own = attributes_of_tensor(tensor)
        if own:
            meta_of(copied).attributes = {name: self.of(each) for name, each in own.items()}
        return copied

    def _alone(self, array: Any) -> Tensor:
        """A tensor of the same values alone, which is what the copy of a parameter is."""
        return Tensor(copied_in_order(array) if isinstance(array, np.ndarray) else array.copy())

    def _on_copied_memory(self, array: Any) -> Tensor:
        """A tensor in a copy of the memory that an array lies in: what shared the one, and was
        copied too, shares the other.
        """
        array = np.asarray(array) if isinstance(array, np.generic) else array
        root = memory_of(array) if isinstance(array, np.ndarray) else None
        if root is None or not root.flags.c_contiguous:
            return self._alone(array)
        if id(root) not in self.memories:
            storage = Storage()
            storage.count_write()  # PyTorch gives the memory to an empty tensor
            self.memories[id(root)] = root.copy(), storage
            self.originals.append(root)
        memory, storage = self.memories[id(root)]
        start = address_of(array) - address_of(root)
        copied = Tensor(np.ndarray(array.shape, array.dtype, memory, start, array.strides))
        copied.storage = storage
        return copied


class Forked(_Copying):
    """The copy that a process of its own has, as far as a write can tell: what cannot be copied, or
    only at a price, is the same. A fork copies memory where it is written; here some is copied
    before, and no more of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left = _MOST_FORKED

    def of(self, value: Any) -> Any:
        """The copy of a value; no method of the program's is asked."""
        kind = type(value)
        if kind in _ALONE or (kind is tuple and _ALONE.issuperset(map(type, value))):
            return value
        if id(value) in self.copies:
            return self.copies[id(value)]
        if isinstance(value, Tensor) or is_array(value):
            copied = self._afforded(value)
        else:
            try:
                copied = _copied(value, self.of, self._keep)
            except GradcliError:  # of a kind that no copy is made of
                copied = value
        self._keep(value, copied)
        return copied

    def _afforded(self, value: Any) -> Any:
        array = forced(value.array) if isinstance(value, Tensor) else value.data
        self.left -= array.nbytes + _PER_TENSOR
        if self.left < 0 or (isinstance(value, Tensor) and not value.is_leaf):
            return value
        return self._tensor(value) if isinstance(value, Tensor) else _as_it_is(value)


_ALONE = frozenset({bool, int, float, complex, str, bytes, type(None)})

_MOST_FORKED, _PER_TENSOR = 1 << 23, 1 << 13
"""How many bytes are copied ahead, and what a tensor counts for besides: in all some 50 ms, as a
fork takes.
"""

COPY: dict[str, Any] = {"copy": copy, "deepcopy": deepcopy}
"""What the module `copy` holds."""
