"""Annotations: read as text, and evaluated when a program asks for their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError, Source
from gradcli.language.compiler.base import Compiler
from gradcli.language.objects.type_forms import TypeForm
from gradcli.language.parser.parser import parse_program
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables

Values = Callable[[], dict[str, Any]]
"""What evaluates annotations: their values by name."""


def values_of(c: Compiler, texts: dict[str, str], scope: Scope, variables: Variables) -> Values:
    """What gives the values that the texts have in a scope; a text that has none, such as a name
    that is bound later, stands for itself, as all do after `from __future__ import annotations`.
    """

    def values() -> dict[str, Any]:
        kept = c.values.get("annotations")
        if type(kept) is TypeForm and kept.text.startswith("__future__"):
            return dict(texts)
        return {name: _value(c, text, scope, variables) for name, text in texts.items()}

    return values


def _value(c: Compiler, text: str, scope: Scope, variables: Variables) -> Any:
    place = c.state.place
    try:
        (statement,) = parse_program(Source("annotation", text))
        assert isinstance(statement, tree.ExpressionStatement)
        return c.expression(statement.value, scope)(variables)
    except GradcliError:
        return text
    finally:
        c.state.place = place
