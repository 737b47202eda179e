"""`value[index]`, `value[index] = new` and `del value[index]`."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error
from gradcli.language.limits import check_collection
from gradcli.language.objects import borders
from gradcli.language.objects.classes.descriptors import MISSING, bound
from gradcli.language.objects.exceptions import HOST_ERRORS, Raised, converted
from gradcli.language.objects.iteration import bounded, check_key
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import LanguageType, type_name
from gradcli.ops.binding.functions import operators


def get_item(value: Any, index: Any) -> Any:
    """`value[index]`; raises E207, E302 for what is not there, E202 for no items."""
    kind = type(value)
    if kind is Tensor:
        return operators.getitem(value, borders.index(index))
    if kind is dict:
        check_key(index)
    elif not hasattr(kind, "__getitem__"):
        if isinstance(value, LanguageType):
            from gradcli.language.objects.type_forms import with_parameters  # lazy: start-up

            own = value.find("__class_getitem__") if hasattr(value, "find") else MISSING
            if own is not MISSING:
                return bound(own, None, value)(index)
            form = with_parameters(value, index)
            if form is not None:
                return form
        raise type_error(
            f"{_described(value)} has no items to pick with []",
            text=f"type '{value.name}' is not subscriptable"
            if isinstance(value, LanguageType)
            else f"'{type_name(value)}' object is not subscriptable",
        )
    try:
        return value[index]
    except HOST_ERRORS as error:
        raise _failed(value, index, error) from error


def set_item(value: Any, index: Any, new: Any) -> None:
    """`value[index] = new`."""
    kind = type(value)
    if kind is Tensor:
        operators.setitem(value, borders.index(index), borders.number(new))
        return
    if kind is dict:
        check_key(index)
    elif kind is not list and not hasattr(kind, "__setitem__"):
        raise type_error(
            f"the items of {_described(value)} cannot be assigned to",
            text=f"'{type_name(value)}' object does not support item assignment",
        )
    try:
        if kind is list and type(index) is slice:
            more = list(bounded(new))
            check_collection(len(value) + len(more))
            new = more
        value[index] = new
    except HOST_ERRORS as error:
        raise _failed(value, index, error) from error


def delete_item(value: Any, index: Any) -> None:
    """`del value[index]`."""
    kind = type(value)
    if kind is dict:
        check_key(index)
    elif kind is not list and not hasattr(kind, "__delitem__"):
        raise type_error(
            f"the items of {_described(value)} cannot be deleted",
            text=f"'{type_name(value)}' object doesn't support item deletion",
        )
    try:
        del value[index]
    except HOST_ERRORS as error:
        raise _failed(value, index, error) from error


def _described(value: Any) -> str:
    return f"the class {value.name}" if isinstance(value, LanguageType) else type_name(value)


def _failed(value: Any, index: Any, error: Exception) -> GradcliError:
    if isinstance(error, KeyError):
        return Raised("KeyError", display(index), (index,), "E207")
    if isinstance(error, IndexError):
        length = f": the length is {len(value)}" if hasattr(type(value), "__len__") else ""
        return GradcliError(
            "E302", f"index {display(index)} is out of range{length}", text=str(error)
        )
    if isinstance(error, TypeError) and not isinstance(value, dict):
        return type_error(
            f"{type_name(value)} is indexed with integers and slices, not {type_name(index)}",
            text=str(error),
        )
    return converted(error)
