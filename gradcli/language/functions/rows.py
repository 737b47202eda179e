"""Methods that give rows of tensors: a data set's `return self.x[index], self.y[index]`.

A loader takes a whole batch of such items by one index of each tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.objects.classes.descriptors import computes
from gradcli.language.tree import syntax as tree


def rows_of(body: Sequence[tree.Statement], parameters: Sequence[str], owner: Any) -> Any:
    """The tensors whose rows at its argument a method gives, as a list; None for any other method.

    Args:
        parameters: the names of the object and of the row's number.
        owner: the object.
    """
    names = _names_of(body, parameters)
    cls = getattr(type(owner), "language_class", None)
    if not names or cls is None or any(computes(cls.find(name)) for name in names):
        return None
    try:
        tensors = [owner.language_getattr(name) for name in names]
    except AttributeError:
        return None
    return tensors if all(type(each) is Tensor for each in tensors) else None


def _names_of(body: Sequence[tree.Statement], parameters: Sequence[str]) -> list[str] | None:
    """The attributes of the object of which the rows come."""
    named: dict[str, str] = {}
    for statement in body:
        if isinstance(statement, tree.Return):
            value = statement.value
            parts = value.elements if isinstance(value, (tree.Tuple, tree.List)) else []
            attributes = [_name_of(part, parameters, named) for part in parts]
            return [name for name in attributes if name] if all(attributes) else None
        if isinstance(statement, tree.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            name = _name_of(statement.value, parameters, {})
            if name is None or not isinstance(target, tree.Name) or target.name in parameters:
                return None
            named[target.name] = name
        elif not isinstance(statement, tree.ExpressionStatement) or not isinstance(
            statement.value, tree.Constant
        ):
            return None
    return None


def _name_of(node: tree.Expression, parameters: Sequence[str], named: dict[str, str]) -> str | None:
    """`x` of `self.x[index]`, or of a name that holds it."""
    if isinstance(node, tree.Name):
        return named.get(node.name)
    if not isinstance(node, tree.Subscript) or not isinstance(node.value, tree.Attribute):
        return None
    owner, index = node.value.value, node.index
    if not isinstance(owner, tree.Name) or not isinstance(index, tree.Name):
        return None
    return node.value.name if [owner.name, index.name] == [*parameters] else None
