"""Warns of slips of training loops that the text of a loop shows: a leaf that is replaced, a
gradient that is never cleared, a sum of losses that keeps their graphs, an evaluation that is
recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler import assignment
from gradcli.language.compiler.base import NUMBER_OF, Compiler, Evaluate, compiles
from gradcli.language.compiler.recipes import (
    ask,
    by_table,
    child,
    given,
    item,
    known,
    place_of,
    recipe,
    target_of,
    targets_of,
)
from gradcli.language.compiler.statements import blocks
from gradcli.language.objects.classes.instance_attributes import attributes_of
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.language.objects.types import names
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables, names_around


@compiles(tree.Assign)
def assign(c: Compiler, node: tree.Assign, scope: Scope) -> Run:
    """An assignment; inside a loop one that reads `.grad` of its own target is watched, and one
    that adds a loss to it.
    """
    run = assignment.assign(c, node, scope)
    target = node.targets[0]
    watch = _watch_of_assign(node, c.loop)
    return watch(c, node, target, scope, run) if watch and isinstance(target, tree.Name) else run


def _is_unwatched(c: Compiler, node: tree.Assign | tree.AugmentedAssign) -> bool:
    return not is_watched(node, c.loop)


for _asked in (
    ask("without loop"),
    ask("is no", "value", of=tree.Binary),
    ask("holds", of=_is_unwatched),
):
    recipe(tree.Assign, "assigned", child("value"), targets_of("targets"), asks=(_asked,))


def is_watched(node: tree.Assign | tree.AugmentedAssign, loop: tree.Statement | None) -> bool:
    """Whether a statement in a loop is one of those that are watched."""
    if isinstance(node, tree.Assign):
        return _watch_of_assign(node, loop) is not None
    return _watch_of_augmented(node, loop) is not None


Watch = Callable[[Compiler, Any, tree.Name, Scope, Run], Run]
"""What makes a statement that warns, of one that does not."""


def _watch_of_assign(node: tree.Assign, loop: tree.Statement | None) -> Watch | None:
    target = node.targets[0]
    if loop is None or len(node.targets) > 1 or not isinstance(target, tree.Name):
        return None
    if _is_step(node, target.name, loop):
        return _watched
    value = node.value
    if isinstance(value, tree.Binary) and isinstance(value.first, tree.Name):
        added = value.rest[0][1] if [sign for sign, _ in value.rest] == ["+"] else None
        if value.first.name == target.name and _is_spent(added, target, loop):
            return _summing
    return None


@compiles(tree.AugmentedAssign)
def augmented_assign(c: Compiler, node: tree.AugmentedAssign, scope: Scope) -> Run:
    """`target op= value`; in a loop a step by the target's gradient is watched, and a sum of
    losses.
    """
    run = assignment.augmented_assign(c, node, scope)
    watch = _watch_of_augmented(node, c.loop)
    return run if watch is None else watch(c, node, _stepped(node), scope, run)


for _asked in (ask("without loop"), ask("holds", of=_is_unwatched)):
    recipe(
        tree.AugmentedAssign,
        "augmented_name",
        *(place_of(), child("target"), child("value"), target_of("target")),
        *(given("target"), given("value"), item(assignment.AUGMENTED, "operator")),
        number=by_table(NUMBER_OF, "operator"),
        asks=(ask("is", "target", of=tree.Name), _asked),
    )


def _stepped(node: tree.AugmentedAssign) -> Any:
    """What `w -= …` and `w.data -= …` change."""
    target = node.target
    is_data = isinstance(target, tree.Attribute) and target.name == "data"
    return target.value if is_data else target  # type: ignore[attr-defined]


def _watch_of_augmented(node: tree.AugmentedAssign, loop: tree.Statement | None) -> Watch | None:
    target = _stepped(node)
    if loop is None or node.operator not in ("+", "-") or not isinstance(target, tree.Name):
        return None
    if _reads(node.value, target.name, {"grad"}) and not _is_cleared(loop):
        return _stepping
    if node.operator == "-" or target is not node.target:
        return None
    return _summing if _is_spent(node.value, target, loop) else None


@compiles(tree.For)
def for_statement(c: Compiler, node: tree.For, scope: Scope) -> Run:
    """A `for` loop; one that only calls models is watched as it begins."""
    run = blocks.for_statement(c, node, scope)
    watch = _watch_of_for(c, node)

    def watched(variables: Variables) -> Any:
        watch(variables)
        return run(variables)

    return watched


def _watch_of_for(c: Compiler, node: tree.For) -> Callable[[Variables], None]:
    """What watches a loop that begins."""
    state = c.state
    called: list[tree.Call] | None = None  # looked for where there are models

    def watch(variables: Variables) -> None:
        nonlocal called
        if state.modules and state.grad_enabled:
            if called is None:
                called = evaluated(node)
            check_evaluations(c, called, variables)

    return watch


recipe(
    tree.For,
    "for_loop",
    *(*blocks.OF_FOR_LOOPS, known(_watch_of_for), *blocks.BEGINNINGS_OF_LOOPS),
    number=blocks.NOT_HOT,
)


# --- a leaf that is replaced ----------------------------------------------------------------------


def _is_step(node: tree.Assign, name: str, loop: tree.Statement) -> bool:
    """Whether an assignment is a descent step on `name` whose result stays no leaf."""
    if not isinstance(node.value, tree.Binary) or not _reads(node.value, name, {"grad"}):
        return False
    if _reads(loop, name, {"requires_grad", "requires_grad_", "retain_grad"}):
        return False
    others = (each for each in tree.nodes_of(loop) if isinstance(each, tree.Assign))
    return not any(  # which makes a leaf of it again
        "requires_grad" in each.span.text
        and any(isinstance(target, tree.Name) and target.name == name for target in each.targets)
        for each in others
    )


def _reads(node: tree.Syntax, name: str, attributes: set[str]) -> bool:
    """Whether one of the attributes of a name stands anywhere in a part of the program."""
    text = node.span.text  # which tells most of them faster than a walk
    for attribute in attributes:
        if attribute in text:
            break
    else:
        return False
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


# --- a gradient that is never cleared -------------------------------------------------------------

_CLEARS = r"zero_|\.grad\s*[-+*/]?=(?!=)"
_MAKES_ANEW = r"requires_grad|detach"


def _is_cleared(loop: tree.Statement) -> bool:
    """Whether the program sets gradients back somewhere, or the loop makes the leaf anew."""
    text = loop.span.source.text
    return bool(re.search(_CLEARS, text) or re.search(_MAKES_ANEW, loop.span.text))


def _stepping(
    c: Compiler, node: tree.AugmentedAssign, target: tree.Name, scope: Scope, run: Run
) -> Run:
    """The step, with a warning (W017) where the one before used the same gradient, added to."""
    state, name = c.state, target.name
    read: Evaluate = c.expression(target, scope)
    used: Any = None

    def watched(variables: Variables) -> Any:
        nonlocal used
        leaf = read(variables)
        grad = leaf.meta.grad if type(leaf) is Tensor and leaf.meta is not None else None
        if grad is not None and grad is used:
            state.warn(
                "W017",
                f"the gradient of `{name}` holds that of the former step too: every backward()"
                " adds to .grad",
                span=node.span,
                help=f"clear it behind the step: `{name}.grad = None`",
            )
        used = grad
        run(variables)

    return watched


# --- a sum of losses ------------------------------------------------------------------------------


def _is_spent(value: Any, target: tree.Name, loop: tree.Statement) -> bool:
    """Whether a loss is added to the target that the loop differentiates by itself, while nothing
    differentiates the sum.
    """
    if not isinstance(value, tree.Name) or not _reads(loop, value.name, {"backward"}):
        return False
    return f"{target.name}.backward" not in loop.span.source.text


def _summing(c: Compiler, node: tree.Statement, target: tree.Name, scope: Scope, run: Run) -> Run:
    """The statement, with a warning (W018) where the sum has a graph."""
    state, name, span = c.state, target.name, node.span
    read: Evaluate = c.expression(target, scope)

    def watched(variables: Variables) -> Any:
        run(variables)
        total = read(variables)
        if type(total) is Tensor and total.grad_fn is not None:
            added = span.text.rpartition("+")[2].strip("= ")
            state.warn(
                "W018",
                f"`{name}` keeps the graph of each loss that is added to it: memory grows with"
                " every round",
                span=span,
                help=f"add the number: `{name} += {added}.item()`",
            )

    return watched


# --- an evaluation --------------------------------------------------------------------------------

_TRAINING = names("""backward enable_grad grad inference_mode no_grad requires_grad requires_grad_
    set_grad_enabled step train""")
"""What stands in a loop that trains, or that says itself whether it is recorded."""


def evaluated(loop: tree.For) -> list[tree.Call]:
    """The calls of names, dotted ones too, in a loop that does nothing with gradients."""
    calls = []
    for node in tree.nodes_of(list(loop.body)):
        name = getattr(node, "name", "")
        if name in _TRAINING and isinstance(node, (tree.Attribute, tree.Name)):
            return []
        if isinstance(node, tree.Call) and isinstance(node.function, (tree.Attribute, tree.Name)):
            calls.append(node)
    return calls


def _held(node: tree.Expression, variables: Variables) -> Any:
    """What a name or an attribute of an object holds now, None for nothing."""
    if isinstance(node, tree.Name):
        return variables.get(node.name, names_around(variables).get(node.name))
    owner = _held(node.value, variables) if isinstance(node, tree.Attribute) else None
    if not isinstance(owner, Instance) or not isinstance(node, tree.Attribute):
        return None
    return attributes_of(owner).get(node.name)


def check_evaluations(c: Compiler, called: list[tree.Call], variables: Variables) -> None:
    """Warn of those of the calls in a loop that are evaluations."""
    for call in called:
        _check_evaluation(c, call, variables)


def _check_evaluation(c: Compiler, call: tree.Call, variables: Variables) -> None:
    """Warn (W019) of the call of a model in `eval()` whose parameters are recorded for nothing."""
    name, model = call.function.span.text, _held(call.function, variables)
    modules: Mapping[int, Any] = c.state.modules or {}
    is_module = any(model is each for each in modules.values())
    if not is_module or model.training:
        return
    if not any(parameter.requires_grad for parameter in model.parameters()):
        return
    later = call.span.source.text[call.span.end :].partition(".train(")[0]
    if "backward(" in later or "grad(" in later:
        return  # what it gives may be differentiated
    c.state.warn(
        "W019",
        f"`{name}` evaluates, and what it computes is recorded: each result keeps a graph",
        span=call.span,
        help="put the loop under `with torch.no_grad():`",
    )
