"""Structures: tensors in tuples, lists, dictionaries and named results, nested to any depth.

`torch.func` takes and returns them. A structure is taken apart into its leaves, and a structure of
the same form is built from others. `torch.utils._pytree` does the same for programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from gradcli.errors import value_error
from gradcli.ops.binding.results import ReturnType
from gradcli.state import charge_steps


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


class TreeSpec:
    """The form of a structure."""

    __slots__ = ("_structure",)

    language_name: ClassVar[str] = "torch.utils._pytree.TreeSpec"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"num_leaves"})

    def __init__(self, structure: Any) -> None:
        self._structure = mapped(lambda _: None, structure)

    @property
    def num_leaves(self) -> int:
        """How many leaves it has."""
        return len(leaves(self._structure))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and same_form(self._structure, other._structure)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return spec_of(self._structure)

    def rebuilt(self, values: list[Any]) -> Any:
        """A structure of this form; raises E204 for another number of leaves."""
        if len(values) != self.num_leaves:
            raise value_error(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec"
                f" refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return rebuilt(self._structure, values)


def _flat(tree: Any) -> list[Any]:
    flat = leaves(tree)
    charge_steps(len(flat))
    return flat


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The leaves of a structure, and its form."""
    return _flat(tree), TreeSpec(tree)


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """The structure of a form with these leaves."""
    return treespec.rebuilt(list(leaves))


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a structure."""
    return _flat(tree)


def tree_structure(tree: Any) -> TreeSpec:
    """The form of a structure."""
    return TreeSpec(tree)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """A structure of the function's values for the leaves of structures of one form."""
    for rest in rests:
        if not same_form(tree, rest):
            raise value_error(f"tree_map(): {spec_of(rest)} is another form than {spec_of(tree)}")
    parts = zip(_flat(tree), *map(_flat, rests), strict=True)
    return rebuilt(tree, [func(*part) for part in parts])


PYTREE: dict[str, Any] = {
    "TreeSpec": TreeSpec,
    **{
        each.__name__: each
        for each in (tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten)
    },
}
"""What `torch.utils._pytree` holds."""
