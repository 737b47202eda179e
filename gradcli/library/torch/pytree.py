"""The module `torch.utils._pytree`: structures of tensors taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import value_error
from gradcli.library.torch.func.structure import leaves, mapped, rebuilt, same_form, spec_of
from gradcli.state import charge_steps


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
