"""The base classes of all nodes of the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcli.errors import Span


class Syntax:
    """A node of the tree."""

    __slots__ = ("span",)

    span: Span


class Expression(Syntax):
    """What has a value."""

    __slots__ = ()


class Statement(Syntax):
    """What is executed."""

    __slots__ = ()


def nodes_of(tree: Any) -> Iterator[Syntax]:
    """Every node of a tree or of trees in lists, outer ones first, without recursion."""
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting += reversed(each)
        elif isinstance(each, Syntax):
            yield each
            waiting += [getattr(each, slot, None) for slot in reversed(type(each).__slots__)]
