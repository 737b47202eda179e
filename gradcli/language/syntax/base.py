"""What all nodes of the syntax tree have."""

from __future__ import annotations

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
