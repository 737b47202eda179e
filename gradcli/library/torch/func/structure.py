"""Structures: tensors in tuples, lists, dictionaries and named results, nested to any depth.

`torch.func` takes and returns them. A structure is taken apart into its leaves, and a structure of
the same form is built from others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradcli.ops.binding.results import ReturnType


def leaves(structure: Any) -> list[Any]:
    """Everything in a structure that is no container, from left to right."""
    values: list[Any] = []
    _collect(structure, values)
    return values


def _collect(structure: Any, values: list[Any]) -> None:
    if isinstance(structure, (tuple, list)):
        for part in structure:
            _collect(part, values)
    elif isinstance(structure, dict):
        for part in structure.values():
            _collect(part, values)
    else:
        values.append(structure)


def mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """A structure of the same form, with the function's value for each leaf."""
    if isinstance(structure, ReturnType):
        return type(structure)(mapped(function, part) for part in structure)
    if isinstance(structure, tuple):
        if hasattr(structure, "language_fields"):  # a named tuple of the program
            return type(structure)(*[mapped(function, part) for part in structure])
        return tuple(mapped(function, part) for part in structure)
    if isinstance(structure, list):
        return [mapped(function, part) for part in structure]
    if isinstance(structure, dict):
        return {key: mapped(function, part) for key, part in structure.items()}
    return function(structure)


def rebuilt(structure: Any, values: list[Any]) -> Any:
    """A structure of the same form with other leaves, as many as it has."""
    rest: Iterator[Any] = iter(values)
    return mapped(lambda _: next(rest), structure)


def spec_of(structure: Any, indent: int = 0) -> str:
    """The form of a structure as PyTorch's errors have it."""
    if isinstance(structure, dict):
        context, parts = repr(list(structure)), list(structure.values())
    elif isinstance(structure, (tuple, list)):
        context, parts = "None", list(structure)
    else:
        return "*"
    inner = indent + 2
    shown = (",\n" + " " * inner).join([spec_of(part, inner) for part in parts])
    return f"TreeSpec({type(structure).__name__}, {context}, [{shown}])"


class Star:
    """What stands for a leaf where a form is written as the structure itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def starred(structure: Any) -> str:
    """A structure whose leaves are stars."""
    return repr(mapped(lambda _: Star(), structure))


def same_form(one: Any, other: Any) -> bool:
    """Whether two structures have the same containers at the same positions."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same_form(one[key], other[key]) for key in one)
        )
    if isinstance(one, (tuple, list)):
        return (
            isinstance(other, type(one))
            and len(one) == len(other)
            and all(same_form(a, b) for a, b in zip(one, other, strict=True))
        )
    return not isinstance(other, (tuple, list, dict))
