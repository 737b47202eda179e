"""Expressions of an iteration that is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.language.compiler.base import HANDLERS, Evaluate
from gradcli.language.compiler.expressions.operations import end_of_step
from gradcli.language.compiler.over_operands import Operation
from gradcli.language.objects.operators import HOST_OPERATORS, contains, get_item, tensor_operator
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.language.tree.syntax import Expression
from gradcli.loops.capture import RECORDED, Capture
from gradcli.loops.symbols import NUMBERS, Symbol, concrete, holds_tensor, is_symbolic
from gradcli.loops.walk.calls import call
from gradcli.trace.ir import GraphBreak, Inline, placeholder


def _name(walk: Capture, node: tree.Name, scope: Scope) -> Evaluate:
    name = node.name
    read, read_global = [walk.compiler.expression(node, each) for each in (scope, Scope())]

    def run(variables: Variables) -> Any:
        value = read(variables)
        holder = walk.holder(name, scope, variables)
        place = walk.place_of(holder, name)
        if id(holder) in walk.local:
            symbol = walk.symbol_at(place, value)
            return walk.builder.known(value) if symbol is None else symbol
        if name not in holder:  # of the language, or of torch
            walk.guard.values.setdefault(
                ("global", name), (lambda variables: read_global({}), value)
            )
            return value
        walk.met[place.key] = place
        known = walk.read_place(place, value)
        if walk.broken is not None:
            walk.broken.span = node.span  # a name that is read notes no place
        return known

    return run


def _attribute(walk: Capture, node: tree.Attribute, scope: Scope) -> Evaluate:
    evaluate = walk.expression(node.value, scope)
    read = Operation(walk, node, scope)

    def run(variables: Variables) -> Any:
        owner = evaluate(variables)
        if type(owner) is Symbol:
            walk.state.place = node.span
            owner = walk.exact(owner)
        return walk.read_attribute(owner, node.name, lambda: walk.moved(read, [owner]))

    return run


def _subscript(walk: Capture, node: tree.Subscript, scope: Scope) -> Evaluate:
    evaluate, index = walk.expression(node.value, scope), walk.expression(node.index, scope)
    read = Operation(walk, node, scope)

    def run(variables: Variables) -> Any:
        owner, at = evaluate(variables), index(variables)
        walk.state.place = node.span
        return _item(walk, read, owner, at)

    return run


def _item(walk: Capture, read: Operation, owner: Any, at: Any) -> Any:
    """`owner[at]`."""
    if type(owner) is Symbol:
        exact = walk.exact(at)
        return walk.computed(lambda of: get_item(of, exact), [owner], owner.now[exact])
    if type(owner) is Tensor:
        varies = walk.builder.varies(at) or holds_tensor(at)
        if not varies or _picks_positions(walk, at):
            return walk.recorded(read, [owner, at])
        if owner.requires_grad and _has_mask(at):
            walk.refuse(
                "an index by a mask that is computed picks as many elements as it finds",
                "keep the shape: `torch.where(mask, x, 0)`, `(x * mask).sum() / mask.sum()`",
            )
        record = walk.recorder.cut if type(at) is slice and at.step is None else None
        return heard_as_one(walk, read, [owner, at], get_item, record)
    of_outside = type(owner) in (list, tuple, range) and id(owner) not in walk.local
    if is_symbolic(at) and of_outside and not is_symbolic(owner):
        return _varying_item(walk, read, owner, at)
    at = walk.exact(at)
    if type(owner) is tuple and type(at) is int and is_symbolic(owner):
        walk.recorded(read, [owner, at])
        return owner[at]
    get = walk.recorded if id(owner) in walk.local else walk.moved
    return walk.read_item(owner, at, lambda: get(read, [owner, at]))


def _picks_positions(walk: Capture, index: Any) -> bool:
    """Whether what varies in an index is nothing but tensors of positions, and whether its masks
    are the same in every iteration: the op itself records it.
    """
    parts = index if type(index) is tuple else (index,)
    return all(
        part.array.ndim > 0 and (part.array.dtype.kind == "i" or walk.builder.is_mask(part))
        if type(part) is Tensor
        else not (walk.builder.varies(part) or holds_tensor(part))
        for part in parts
    )


def _has_mask(index: Any) -> bool:
    parts = index if type(index) is tuple else (index,)
    return any(type(part) is Tensor and part.array.dtype.kind == "b" for part in parts)


def _varying_item(walk: Capture, read: Operation, owner: Any, index: Any) -> Any:
    """An item of a list from outside at a place that varies."""
    walk.rely_on(owner)
    value = walk.recorded(read, [owner, index])
    if type(value) is Tensor and not value.requires_grad:
        walk.attempt(_item_tensor, walk, owner, index, value)
        return value
    if type(value) in (int, float):
        operands: list[Any] = []
        text = walk.builder.written(index, operands)
        get, values = placeholder(operands, get_item), placeholder(operands, owner)
        item = Inline(f"{get}({values}, {text})")
        return walk.either(value, walk.builder.compute, item, operands, value)
    walk.exact(index)
    return walk.constant(value)


def _item_tensor(walk: Capture, owner: Any, index: Symbol, value: Tensor) -> None:
    walk.builder.forget(value.array)
    walk.recorder.on_tensors(lambda at: owner[at], [index], {}, value)
    walk.recorder.borrowed.add(walk.builder.of(value))
    operands: list[Any] = []
    text = walk.builder.written(index, operands)
    item = Inline(f"{placeholder(operands, owner)}[{text}]", raises=False)
    walk.builder.objects[value] = item, operands


def heard_as_one(
    walk: Capture,
    operation: Operation,
    operands: list[Any],
    function: Any,
    record: Callable[..., None] | None = None,
) -> Any:
    """An operation on tensors and numbers that vary, recorded as one call with tensors, or by a
    function of the recorder's.
    """
    with walk.recorder.mute():
        value = walk.recorded(operation, operands)
    if type(value) is not Tensor or value.requires_grad:
        reason = "a number that varies takes part in an op of the graph"
        walk.refuse(reason, span=operation.node.span)
    elif record is not None:
        walk.attempt(record, *operands, value)
    else:
        walk.attempt(walk.recorder.on_tensors, function, operands, {}, value)
    return value


def _unary(walk: Capture, node: tree.Unary, scope: Scope) -> Evaluate:
    evaluate, apply = walk.expression(node.operand, scope), Operation(walk, node, scope)
    op = Inline(f"({node.operator} {{0}})", raises=False)

    def run(variables: Variables) -> Any:
        operand = evaluate(variables)
        if type(operand) is Symbol:
            now = walk.recorded(apply, [operand])
            return walk.either(now, walk.builder.compute, op, [operand.value], now, True)
        if node.operator != "not":
            return walk.evaluate(apply, [operand])
        holds = walk.truth(operand)
        walk.state.place = node.span
        return not holds

    return run


def _binary(walk: Capture, node: tree.Binary, scope: Scope) -> Evaluate:
    first, steps = walk.expression(node.first, scope), _steps(walk, node, scope)

    def run(variables: Variables) -> Any:
        left = first(variables)
        for _, operand, operation in steps:
            left = operate(walk, operation, left, operand(variables))
        return left

    return run


def _steps(
    walk: Capture, node: tree.Binary | tree.Comparison, scope: Scope
) -> list[tuple[str, Evaluate, Operation]]:
    """The operators in a row: each, what gives its right operand, and its operation."""
    left, steps = node.first, []
    for symbol, operand in node.rest:
        span = node.span
        if isinstance(node, tree.Binary) and len(node.rest) > 1:
            end = end_of_step(span.source.text, operand.span.end, span.end)
            span = Span(span.source, span.start, end)
        one = type(node)(span, left, [(symbol, operand)])
        operation = Operation(walk, one, scope, [left, operand])
        steps.append((symbol, walk.expression(operand, scope), operation))
        left = tree.Binary(span, node.first, []) if isinstance(node, tree.Binary) else operand
    return steps


def operate(walk: Capture, operation: Operation, left: Any, right: Any) -> Any:
    """One binary operator, or a comparison."""
    ((symbol, _),) = operation.node.rest
    if symbol == "%" and type(concrete(left)) is str:
        return _written_out(walk, operation, [left, right])
    if not (type(left) is Symbol or type(right) is Symbol):
        walk.state.place = operation.node.span
        moves = symbol in ("+", "*", "is", "is not")
        result = (walk.moved if moves else walk.evaluate)(operation, [left, right])
        if type(result) in (list, dict, set) and result is not left:
            walk.local[id(result)] = result
        return result
    tensor = left if type(left) is Tensor else right if type(right) is Tensor else None
    if tensor is not None:
        return _operate_on_tensor(walk, operation, left, right, tensor)
    if symbol in ("is", "is not") and (left is None or right is None):
        return symbol == "is not"  # the types of numbers are guarded
    other = right if type(left) is Symbol else left
    if symbol in ("is", "is not") or type(concrete(other)) not in _PLAIN:
        walk.state.place = operation.node.span
        return walk.evaluate(operation, [left, right])
    now = walk.recorded(operation, [left, right])
    return walk.either(now, _compute, walk, symbol, left, right, now)


def _compute(walk: Capture, symbol: str, left: Any, right: Any, now: Any) -> Symbol:
    """Record an operator of numbers or strings of which one varies."""
    operands: list[Any] = []
    first = walk.builder.written(left, operands)
    second = walk.builder.written(right, operands)
    if symbol in _PLAIN_OPERATORS and type(now) in NUMBERS:
        divides = symbol in ("/", "//", "%") and (type(right) is Symbol or not right)
        op = Inline(f"({first} {symbol} {second})", raises=divides)
        return walk.builder.compute(op, operands, now, True)
    function = HOST_OPERATORS.get(symbol)
    if symbol in ("in", "not in") and type(right) in _CONTAINERS and not holds_tensor(right):
        function = contains
    if function is None:
        raise GraphBreak(f"`{symbol}` of numbers that vary")
    call = f"{placeholder(operands, function)}({first}, {second})"
    op = Inline(f"not {call}" if symbol == "not in" else call)
    return walk.builder.compute(op, operands, now)


def _operate_on_tensor(
    walk: Capture, operation: Operation, left: Any, right: Any, tensor: Tensor
) -> Any:
    """An operator between a tensor and a number that varies."""
    ((symbol, _),) = operation.node.rest
    left, right = as_operand(walk, symbol, right, left), as_operand(walk, symbol, left, right)
    number = left if type(left) is Symbol else right
    floating = tensor.array.dtype.kind == "f"
    if floating and type(number.now) is float and symbol in _LINEAR_OPERATORS:
        return walk.heard(operation, [left, right])
    return heard_as_one(walk, operation, [left, right], tensor_operator(symbol))


def as_operand(walk: Capture, symbol: str, tensor: Any, number: Any) -> Any:
    """A number that varies as it stands beside a tensor of floating dtype: an integer takes that
    dtype either way.
    """
    if (
        type(number) is not Symbol
        or type(number.now) is not int
        or not -_INTEGERS <= number.now < _INTEGERS
        or symbol not in _LINEAR_OPERATORS
        or type(tensor) is not Tensor
        or tensor.array.dtype.kind != "f"
    ):
        return number
    fits, reason = f"-{_INTEGERS} <= {{0}} < {_INTEGERS}", "an integer does not fit 64 bits"
    walk.attempt(walk.builder.exit_unless, fits, [number.value], reason)
    compute, as_float = walk.builder.compute, Inline("float({0})", raises=False)
    return walk.either(number, compute, as_float, [number.value], float(number.now), True)


def _comparison(walk: Capture, node: tree.Comparison, scope: Scope) -> Evaluate:
    first, steps = walk.expression(node.first, scope), _steps(walk, node, scope)

    def run(variables: Variables) -> Any:
        left, result = first(variables), True
        for symbol, operand, operation in steps:
            if operation is not steps[0][-1] and not walk.truth(result):
                return result
            right = operand(variables)
            if symbol in ("in", "not in"):
                walk.rely_on(right)
            left, result = right, operate(walk, operation, left, right)
        return result

    return run


def _collected(walk: Capture, node: Expression, scope: Scope) -> Evaluate | None:
    """A display or a comprehension of which nothing is looked at."""
    if isinstance(node, tree.Dict) and any(key is None for key, _ in node.items):
        return None  # `**more`
    collect = HANDLERS[type(node)](walk, node, scope)

    def run(variables: Variables) -> Any:
        collection = collect(variables)
        if type(collection) is list:
            return walk.new_list(collection)
        if type(collection) in (dict, set):
            walk.local[id(collection)] = collection
        return collection

    return run


def _display(walk: Capture, node: tree.List | tree.Set | tree.Tuple, scope: Scope) -> Any:
    """The display of a tuple, a list or a set, perhaps with `*values`."""
    starred = [isinstance(each, tree.Starred) for each in node.elements]
    if not (isinstance(node, tree.Set) or any(starred)):
        return _collected(walk, node, scope)
    collect = Operation(walk, node, scope)
    reads = [walk.expression(each, scope) for each in collect.operands]
    make = walk.evaluate if isinstance(node, tree.Set) else walk.moved

    def run(variables: Variables) -> Any:
        operands = [read(variables) for read in reads]
        for value, is_starred in zip(operands, starred, strict=True):
            if is_starred:
                walk.rely_on(value)
        collection = make(collect, operands)
        for each in collection:
            if not is_symbolic(each):
                walk.constant(each)
        walk.local[id(collection)] = collection
        return collection

    return run


def _formatted(walk: Capture, node: tree.FormattedString, scope: Scope) -> Evaluate:
    write = Operation(walk, node, scope)
    reads = [walk.expression(each, scope) for each in write.operands]
    return lambda variables: _written_out(walk, write, [read(variables) for read in reads])


def _written_out(walk: Capture, write: Operation, operands: list[Any]) -> Any:
    """A text in which operands are written out."""
    if not any(walk.builder.varies(each) or holds_tensor(each) for each in operands):
        return walk.evaluate(write, operands)
    for each in operands:
        walk.rely_on(each, deep=True)
        walk.check_shown(each)
    now = walk.unheard(write, operands)
    raises = not isinstance(write.node, tree.FormattedString) or _shows_characters(write.node)
    return walk.computed(write, operands, now, raises)


def _shows_characters(node: tree.FormattedString) -> bool:
    """Whether a format may fail for other values of the same types: those of the character of a
    number, and those that are computed.
    """
    formats = [part.format for part in node.parts if isinstance(part, tree.Replacement)]
    return any(
        not isinstance(text, str) or text.endswith("c")
        for each in formats
        if each is not None
        for text in each.parts
    )


def check_defaults(walk: Capture, parameters: tree.Parameters, span: Span) -> None:
    """End recording where a function is made whose defaults are computed."""
    for each in parameters.parameters:
        if each.default is not None and not isinstance(each.default, tree.Constant):
            walk.refuse("a function with computed defaults is made", span=span)


def _lambda(walk: Capture, node: tree.Lambda, scope: Scope) -> Evaluate:
    make = walk.compiler.expression(node, scope)

    def run(variables: Variables) -> Any:
        check_defaults(walk, node.parameters, node.span)
        return walk.new_function(make(variables), make, variables)

    return run


_PLAIN = frozenset({int, float, bool, complex, str, list, tuple, dict, set, frozenset, range})
"""The types whose operators beside numbers run no code of the program's."""

_CONTAINERS = frozenset({list, tuple, set, frozenset, dict, range, str})
_INTEGERS = 1 << 63
_LINEAR_OPERATORS = frozenset({"+", "-", "*", "/"})
_PLAIN_OPERATORS = frozenset({"+", "-", "/", "//", "%", "==", "!=", "<", "<=", ">", ">="})

RECORDED |= {
    tree.Attribute: _attribute,
    tree.Binary: _binary,
    tree.Call: call,
    tree.Comparison: _comparison,
    tree.Comprehension: _collected,
    tree.Dict: _collected,
    tree.FormattedString: _formatted,
    tree.Lambda: _lambda,
    tree.List: _display,
    tree.Name: _name,
    tree.Set: _display,
    tree.Subscript: _subscript,
    tree.Tuple: _display,
    tree.Unary: _unary,
}
"""What records the expressions of each class, where that is more than what the interpreter does
with values that vary: see `Capture`.
"""
