"""Warns of an assignment in a loop that replaces a leaf: `w = w - lr * w.grad`."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler import assignment
from gradcli.language.compiler.base import Compiler, compiles
from gradcli.language.functions.control_flow import Run
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables


@compiles(tree.Assign)
def assign(c: Compiler, node: tree.Assign, scope: Scope) -> Run:
    """An assignment; inside a loop one that reads `.grad` of its own target is watched."""
    run = assignment.assign(c, node, scope)
    target = node.targets[0]
    if c.loop is None or len(node.targets) > 1 or not isinstance(target, tree.Name):
        return run
    return _watched(c, node, target, scope, run) if _is_step(node, target.name, c.loop) else run


def _is_step(node: tree.Assign, name: str, loop: tree.Statement) -> bool:
    """Whether an assignment is a descent step on `name` whose result stays no leaf."""
    if not isinstance(node.value, tree.Binary) or not _reads(node.value, name, {"grad"}):
        return False
    return not _reads(loop, name, {"requires_grad", "requires_grad_", "retain_grad"})


def _reads(node: tree.Syntax, name: str, attributes: set[str]) -> bool:
    """Whether one of the attributes of a name stands anywhere in a part of the program."""
    return any(
        isinstance(each, tree.Attribute)
        and each.name in attributes
        and isinstance(each.value, tree.Name)
        and each.value.name == name
        for each in tree.nodes_of(node)
    )


def _watched(c: Compiler, node: tree.Assign, target: tree.Name, scope: Scope, run: Run) -> Run:
    """The assignment, with a warning (W002) when it takes a leaf's place."""
    state, name = c.state, target.name
    read = c.expression(target, scope)

    def watched(variables: Variables) -> Any:
        old = read(variables)
        run(variables)
        new = read(variables)
        if _is_leaf(old) and type(new) is Tensor and not _is_leaf(new):
            state.warn(
                "W002",
                f"`{name}` was a leaf, and is now the result of an operation: the next round finds"
                " no gradient in it",
                span=node.span,
                help=f"change the leaf itself: `with torch.no_grad(): {name} -= …`",
            )

    return watched


def _is_leaf(value: Any) -> bool:
    """Whether a value is a tensor that gathers gradients."""
    return type(value) is Tensor and value.requires_grad and value.is_leaf
