"""The module `copy`: shallow and deep copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor, alias, meta_of
from gradcli.errors import GradcliError
from gradcli.language.objects.borders import is_array
from gradcli.language.objects.instances import Instance
from gradcli.language.objects.types import LanguageType, type_name
from gradcli.nn.copies import copied_module, copied_tensor, not_kept
from gradcli.nn.module import Module
from gradcli.nn.state_dict import OrderedDict

_PLAIN = (bool, int, float, complex, str, bytes, type(None), range, slice, LanguageType, type)


def copy(x: Any) -> Any:
    """`copy.copy(x)`: a value of its own that holds the same things."""
    if isinstance(x, Tensor):
        return copied_tensor(alias(x), x)
    if type(x) in (list, dict, set):
        return x.copy()
    if isinstance(x, OrderedDict):
        return x.copy()
    if isinstance(x, Module):
        return copied_module(x, lambda value: value)
    if isinstance(x, Instance):
        return _instance(x, lambda value: value)
    return _as_it_is(x)


def deepcopy(x: Any, memo: Any = None) -> Any:
    """`copy.deepcopy(x)`: a value of its own that holds copies, each thing copied once.

    Raises E405 for a tensor that is no leaf, E205 for values of other kinds.
    """
    return _Copying().of(x)


def _as_it_is(value: Any) -> Any:
    """A value that a copy shares, as Python does with what cannot change; an array's copy."""
    if is_array(value):
        return type(value)(value.data.copy())
    if isinstance(value, (*_PLAIN, tuple, np.generic)) or callable(value):
        return value
    raise GradcliError("E205", f"a copy of {type_name(value)} is outside the language")


class _Copying:
    """One deep copy.

    Attributes:
        originals: the originals, which must not go away meanwhile.
    """

    def __init__(self) -> None:
        self.copies: dict[int, Any] = {}
        self.originals: list[Any] = []

    def of(self, value: Any) -> Any:
        """The copy of a value."""
        if id(value) in self.copies:
            return self.copies[id(value)]
        copied = self._made(value)
        self._keep(value, copied)
        return copied

    def _keep(self, value: Any, copied: Any) -> None:
        self.copies[id(value)] = copied
        self.originals.append(value)

    def _made(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Tensor):
            return self._tensor(value)
        if kind is list:
            result: list[Any] = []
            self._keep(value, result)
            result.extend(map(self.of, value))
            return result
        if kind is dict or isinstance(value, OrderedDict):
            table = kind()
            self._keep(value, table)
            table.update({self.of(key): self.of(item) for key, item in value.items()})
            return table
        if kind is set:
            return set(map(self.of, value))
        if kind is tuple:
            return tuple(map(self.of, value))
        if isinstance(value, Module):
            return copied_module(value, self.of, self._keep)
        if isinstance(value, Instance):
            return _instance(value, self.of, self._keep)
        return _as_it_is(value)

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
        copied = copied_tensor(Tensor(array.copy()), tensor)
        if tensor.grad is not None:
            meta_of(copied).grad = self.of(tensor.grad)
        return copied


def _instance(instance: Instance, of: Any, keep: Any = not_kept) -> Instance:
    """An object of the program's with copies of what it holds."""
    made = type(instance).__new__(type(instance))
    keep(instance, made)
    made.values.update({key: of(value) for key, value in instance.values.items()})
    return made


COPY: dict[str, Any] = {"copy": copy, "deepcopy": deepcopy}
"""What the module `copy` holds."""
