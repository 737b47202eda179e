"""Checks what is assigned to, changed in place or deleted."""

from __future__ import annotations

from gradcli.errors import GradcliError
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.syntax import Expression

DESCRIPTIONS: dict[type[Expression], str] = {
    tree.Binary: "an operation",
    tree.Call: "a call",
    tree.Comparison: "a comparison",
    tree.Comprehension: "a comprehension",
    tree.Conditional: "a conditional",
    tree.Dict: "a dictionary",
    tree.FormattedString: "an f-string",
    tree.Lambda: "a lambda",
    tree.List: "a list",
    tree.Logical: "an operation",
    tree.NamedExpression: "`:=`",
    tree.Set: "a set",
    tree.Starred: "a starred expression",
    tree.Tuple: "a tuple",
    tree.Unary: "an operation",
}


def check_target(target: Expression, help: str | None = None) -> None:
    """Passes what can be assigned to; anything else is an E006, with this help."""
    # The nesting of displays is bounded, as that of all brackets is.
    if isinstance(target, (tree.Tuple, tree.List)):
        starred = 0
        for element in target.elements:
            inner = element
            if isinstance(element, tree.Starred):
                inner = element.value
                starred += 1
                if starred > 1:
                    raise GradcliError("E006", "two targets are starred", span=element.span)
            check_target(inner, help)
    elif not isinstance(target, (tree.Name, tree.Attribute, tree.Subscript)):
        raise GradcliError(
            "E006",
            f"{describe(target)} cannot be assigned to",
            span=target.span,
            help=help,
        )


def check_single_target(target: Expression, what: str) -> None:
    """Passes one name, attribute or subscript; anything else is an E006."""
    if not isinstance(target, (tree.Name, tree.Attribute, tree.Subscript)):
        raise GradcliError("E006", f"{describe(target)} cannot {what}", span=target.span)


def check_deletable(target: Expression) -> None:
    """Passes what can be deleted; anything else is an E006."""
    if isinstance(target, (tree.Tuple, tree.List)):
        for element in target.elements:
            check_deletable(element)
    else:
        check_single_target(target, "be deleted")


def describe(expression: Expression) -> str:
    """What an expression is, in words."""
    if isinstance(expression, tree.Constant):
        if isinstance(expression.value, str):
            return "a string"
        if isinstance(expression.value, (bool, type(None), type(...))):
            return f"`{expression.span.text}`"
        return "a number"
    return DESCRIPTIONS[type(expression)]
