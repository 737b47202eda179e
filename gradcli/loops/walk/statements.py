"""Statements of an iteration that is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.autograd.modes import EnableGrad, InferenceMode, NoGrad, SetGradEnabled
from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler.statements.handling import within
from gradcli.language.limits import too_many_steps
from gradcli.language.objects.attributes import get_attribute, set_attribute
from gradcli.language.objects.operators import augmented
from gradcli.language.objects.subscripts import get_item, set_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import BREAK, CONTINUE, Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.language.tree.syntax import Expression, Statement
from gradcli.loops.holes import HOLES, Frame, hole
from gradcli.loops.symbols import Symbol, concrete
from gradcli.loops.walk.expressions import as_operand, check_defaults, operate

if TYPE_CHECKING:
    from gradcli.loops.capture import Capture


def _pass(walk: Capture, node: Statement, frame: Frame) -> None:
    """`pass`, `global`, `nonlocal`."""


def _expression_statement(walk: Capture, node: tree.ExpressionStatement, frame: Frame) -> None:
    walk.value(node.value, frame)


def _assign(walk: Capture, node: tree.Assign, frame: Frame) -> None:
    value = walk.value(node.value, frame)
    if len(node.targets) == 1 and isinstance(node.targets[0], tree.Name):
        name = node.targets[0]
        if f"{name.name}.grad" in node.value.span.text:  # which the interpreter watches
            _warn_of_leaf(walk, name, value, frame)
    for target in node.targets:
        walk.store(target, value, frame, assigned=True)


def _warn_of_leaf(walk: Capture, target: tree.Name, value: Any, frame: Frame) -> None:
    old = walk.holder(target.name, frame).get(target.name)
    if type(old) is Tensor and type(value) is Tensor and value.grad_fn is not None:
        walk.refuse(
            f"`{target.name}` is replaced by a tensor with a graph",
            f"change the leaf itself: `with torch.no_grad(): {target.name} -= …`",
        )


def _augment(walk: Capture, node: tree.AugmentedAssign, frame: Frame) -> None:
    target = node.target
    if isinstance(target, tree.Name):
        _augment_name(walk, node, target, frame)
        return
    if isinstance(target, tree.Attribute):
        owner, at = walk.value(target.value, frame), target.name
        get: Callable[..., Any] = get_attribute
        put: Callable[..., Any] = set_attribute
    else:
        assert isinstance(target, tree.Subscript)
        owner = walk.value(target.value, frame)
        at = walk.value(target.index, frame)
        get, put = get_item, set_item
    walk.state.place = target.span
    owner, at = walk.exact(owner), walk.exact(at)
    if isinstance(target, tree.Attribute):
        left = walk.read_attribute(owner, at, lambda: get(owner, at))
    else:
        left = walk.read_item(owner, at, lambda: get(owner, at))
    right = walk.value(node.value, frame)
    walk.state.place = node.span
    if type(left) is Symbol or (type(right) is Symbol and type(left) is not Tensor):
        new = operate(walk, node.operator, left, right, node.target, node.value, node.span)
    else:
        walk.check_list(left)
        right = as_operand(walk, node.operator, left, right)
        since = walk.builder.count
        new = augmented(node.operator, concrete(left), concrete(right))
        walk.expect_untaken([right], since)
    walk.put(owner, at, new, put)


def _augment_name(
    walk: Capture, node: tree.AugmentedAssign, target: tree.Name, frame: Frame
) -> None:
    left = walk.value(target, frame)
    right = walk.value(node.value, frame)
    if type(left) is not Tensor and (type(left) is Symbol or type(right) is Symbol):
        new = operate(walk, node.operator, left, right, target, node.value, node.span)
        walk.store(target, new, frame, assigned=True)
        return
    walk.check_list(left)
    right = as_operand(walk, node.operator, left, right)
    scope = Scope(HOLES, frozenset({target.name, "1"}))
    values = {target.name: concrete(left), "1": concrete(right)}
    step = tree.AugmentedAssign(node.span, target, node.operator, hole(node.value, 1))
    since = walk.builder.count
    walk.compiler.statement(step, scope)(values)
    walk.expect_untaken([right], since)
    walk.store(target, values[target.name], frame, assigned=True)


def _if(walk: Capture, node: tree.If, frame: Frame) -> Any:
    for test, body in node.branches:
        value = walk.value(test, frame)
        walk.state.place = test.span
        if walk.truth(value):
            return walk.block(body, frame)
    return walk.block(node.orelse, frame)


def _for(walk: Capture, node: tree.For, frame: Frame) -> Any:
    values = walk.value(node.iterable, frame)
    walk.state.place = node.iterable.span
    for value in walk.items(values):
        walk.steps.left -= 1
        if walk.steps.left < 0:
            raise too_many_steps()
        walk.store(node.target, value, frame)
        signal = walk.block(node.body, frame)
        if signal is not None:
            if signal is BREAK:
                return None
            if signal is not CONTINUE:
                return signal
        walk.state.place = node.iterable.span
    return walk.block(node.orelse, frame)


def _while(walk: Capture, node: tree.While, frame: Frame) -> Any:
    while True:
        value = walk.value(node.test, frame)
        walk.state.place = node.test.span
        if not walk.truth(value):
            return walk.block(node.orelse, frame)
        walk.steps.left -= 1
        if walk.steps.left < 0:
            raise too_many_steps()
        signal = walk.block(node.body, frame)
        if signal is not None:
            if signal is BREAK:
                return None
            if signal is not CONTINUE:
                return signal


def _with(walk: Capture, node: tree.With, frame: Frame) -> Any:
    run: Run = lambda variables: walk.block(node.body, frame)  # noqa: E731
    for context, target in reversed(node.items):
        run = _within(walk, context, target, frame, run)
    return run(frame.variables)


def _within(
    walk: Capture, context: Expression, target: Expression | None, frame: Frame, body: Run
) -> Run:
    def enter(variables: Variables) -> Any:
        value = concrete(walk.value(context, frame))
        if type(value) not in (NoGrad, EnableGrad, SetGradEnabled, InferenceMode):
            walk.refuse("a context other than a grad mode", span=context.span)
        return value

    def store(variables: Variables, value: Any) -> None:
        if target is not None:
            walk.store(target, value, frame)

    return within(walk.compiler, enter, context.span, store, body)


def _return(walk: Capture, node: tree.Return, frame: Frame) -> Any:
    return (None if node.value is None else walk.value(node.value, frame),)


def _break(walk: Capture, node: Statement, frame: Frame) -> Any:
    if frame is walk.frame:
        walk.state.place = node.span
    return BREAK


def _continue(walk: Capture, node: Statement, frame: Frame) -> Any:
    return CONTINUE


def _assert(walk: Capture, node: tree.Assert, frame: Frame) -> None:
    value = walk.value(node.test, frame)
    walk.state.place = node.test.span
    if not walk.truth(value):
        failing = tree.Assert(node.span, tree.Constant(node.test.span, False), node.message)
        walk.compiler.statement(failing, frame.scope)(frame.variables)


def _def(walk: Capture, node: tree.Def, frame: Frame) -> None:
    check_defaults(walk, node.parameters, node.span)
    if node.decorators:
        walk.refuse("a decorated function is defined in the iteration", span=node.span)
    if frame is walk.frame:
        walk.refuse(
            "a function is defined in the iteration", "define it ahead of the loop", node.span
        )
    walk.compiler.statement(node, frame.scope)(frame.variables)
    walk.symbols.pop((id(frame.variables), node.name), None)


def _delete(walk: Capture, node: tree.Del, frame: Frame) -> None:
    for target in node.targets:
        own = isinstance(target, tree.Name) and frame.scope.distance(target.name) == 0
        if not own or frame is walk.frame:
            walk.refuse("a name or an item is deleted", span=node.span)
    walk.compiler.statement(node, frame.scope)(frame.variables)


STATEMENTS: dict[type, Callable[[Capture, Any, Frame], Any]] = {
    tree.Assert: _assert,
    tree.Assign: _assign,
    tree.AugmentedAssign: _augment,
    tree.Break: _break,
    tree.Continue: _continue,
    tree.Def: _def,
    tree.Del: _delete,
    tree.ExpressionStatement: _expression_statement,
    tree.For: _for,
    tree.Global: _pass,
    tree.If: _if,
    tree.Pass: _pass,
    tree.Return: _return,
    tree.While: _while,
    tree.With: _with,
}
