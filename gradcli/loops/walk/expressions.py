"""Expressions of an iteration that is captured."""

from __future__ import annotations

from collections.abc import Callable, Generator
from collections.abc import Iterator as HostIterator
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.language.compiler.expressions.displays import put
from gradcli.language.compiler.expressions.operations import end_of_step
from gradcli.language.limits import enter_host_call, too_many_steps
from gradcli.language.objects.iteration import drawing
from gradcli.language.objects.operators import HOST_OPERATORS, contains, tensor_operator
from gradcli.language.objects.subscripts import get_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import PARENT, Scope, Variables, comprehension_scope
from gradcli.language.tree.syntax import Expression
from gradcli.loops.guards import is_same_value
from gradcli.loops.holes import HOLES, Drawn, Frame, hole, numbered
from gradcli.loops.symbols import NUMBERS, Symbol, concrete, holds_tensor, is_symbolic
from gradcli.loops.walk.calls import call
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.ir import Inline

if TYPE_CHECKING:
    from gradcli.loops.capture import Capture


def _constant(walk: Capture, node: tree.Constant, frame: Frame) -> Any:
    return node.value


def _name(walk: Capture, node: tree.Name, frame: Frame) -> Any:
    name = node.name
    value = walk.compiler.expression(node, frame.scope)(frame.variables)
    holder = walk.holder(name, frame)
    symbol = walk.symbols.get((id(holder), name))
    if symbol is not None and is_same_value(concrete(symbol), value):
        return symbol
    if id(holder) in walk.local:
        return walk.builder.known(value)
    if name not in holder:  # of the language, or of torch
        read = walk.compiler.expression(node, Scope())
        walk.guard.values.setdefault(("global", name), (lambda variables: read({}), value))
        return value
    broken = walk.broken
    read_value = walk.read_place(walk.place_of(holder, name), value)
    if walk.broken is not None and broken is None:
        walk.broken.span = node.span  # a name that is read notes no place
    return read_value


def _attribute(walk: Capture, node: tree.Attribute, frame: Frame) -> Any:
    owner = walk.value(node.value, frame)
    if type(owner) is Symbol:
        walk.state.place = node.span
        owner = walk.exact(owner)
    form = tree.Attribute(node.span, hole(node.value, 0), node.name, node.name_span)
    return walk.read_attribute(owner, node.name, lambda: walk.moved(form, [owner]))


def _subscript(walk: Capture, node: tree.Subscript, frame: Frame) -> Any:
    owner = walk.value(node.value, frame)
    index = walk.value(node.index, frame)
    form = tree.Subscript(node.span, hole(node.value, 0), hole(node.index, 1))
    walk.state.place = node.span
    if type(owner) is Symbol:
        at = walk.exact(index)
        return walk.computed(lambda of: get_item(of, at), [owner], owner.now[at])
    if type(owner) is Tensor:
        varies = walk.builder.varies(index) or holds_tensor(index)
        if not varies or _picks_positions(walk, index):
            return walk.recorded(form, [owner, index])
        record = walk.recorder.cut if type(index) is slice and index.step is None else None
        return heard_as_one(walk, form, [owner, index], get_item, record)
    of_outside = type(owner) in (list, tuple, range) and id(owner) not in walk.local
    if is_symbolic(index) and of_outside and not is_symbolic(owner):
        return _varying_item(walk, form, owner, index)
    at = walk.exact(index)
    if type(owner) is tuple and type(at) is int and is_symbolic(owner):
        walk.recorded(form, [owner, at])
        return owner[at]
    return walk.read_item(owner, at, lambda: walk.moved(form, [owner, at]))


def _picks_positions(walk: Capture, index: Any) -> bool:
    """Whether what varies in an index is nothing but tensors of positions, which the op itself
    records.
    """
    parts = index if type(index) is tuple else (index,)
    return all(
        part.array.ndim > 0 and part.array.dtype.kind == "i"
        if type(part) is Tensor
        else not (walk.builder.varies(part) or holds_tensor(part))
        for part in parts
    )


def _varying_item(walk: Capture, form: tree.Subscript, owner: Any, index: Any) -> Any:
    """An item of a list from outside at a place that varies."""
    walk.rely_on(owner)
    value = walk.recorded(form, [owner, index])
    if type(value) is Tensor and not value.requires_grad:
        walk.attempt(_item_tensor, walk, owner, index, value)
        return value
    if type(value) in (int, float):
        operands: list[Any] = []
        text = walk.builder.written(index, operands)
        read = Inline(f"{{{len(operands)}}}({{{len(operands) + 1}}}, {text})")
        return walk.either(value, walk.builder.compute, read, [*operands, get_item, owner], value)
    walk.exact(index)
    return walk.constant(value)


def _item_tensor(walk: Capture, owner: Any, index: Symbol, value: Tensor) -> None:
    walk.builder.forget(value.array)
    walk.recorder.on_tensors(lambda at: owner[at], [index], {}, value)
    walk.recorder.borrowed.add(walk.builder.of(value))
    operands: list[Any] = []
    text = walk.builder.written(index, operands)
    item = Inline(f"{{{len(operands)}}}[{text}]", raises=False)
    walk.builder.objects[value] = item, [*operands, owner]


def heard_as_one(
    walk: Capture,
    form: Expression,
    operands: list[Any],
    function: Any,
    record: Callable[..., None] | None = None,
) -> Any:
    """An expression of tensors and numbers that vary, recorded as one call with tensors, or by a
    function of the recorder's.
    """
    muted, walk.recorder.muted = walk.recorder.muted, True
    try:
        value = walk.recorded(form, operands)
    finally:
        walk.recorder.muted = muted
    if type(value) is not Tensor or value.requires_grad:
        walk.refuse("a number that varies takes part in an op of the graph", span=form.span)
        return value
    if record is not None:
        walk.attempt(record, *operands, value)
    else:
        walk.attempt(walk.recorder.on_tensors, function, operands, {}, value)
    return value


def _unary(walk: Capture, node: tree.Unary, frame: Frame) -> Any:
    operand = walk.value(node.operand, frame)
    form = tree.Unary(node.span, node.operator, hole(node.operand, 0))
    if type(node.operand) is tree.Constant:
        form = node
    if node.operator == "not":
        holds = walk.truth(operand) if type(operand) is not Symbol else None
        if holds is not None:
            walk.state.place = node.span
            return not holds
    if type(operand) is not Symbol:
        return walk.evaluate(form, [operand])
    now = walk.recorded(form, [operand])
    op = Inline(f"({node.operator} {{0}})", raises=False)
    return walk.either(now, walk.builder.compute, op, [operand.value], now, True)


def _binary(walk: Capture, node: tree.Binary, frame: Frame) -> Any:
    left = walk.value(node.first, frame)
    left_node = node.first
    start, source = node.span.start, node.span.source
    for symbol, operand in node.rest:
        right = walk.value(operand, frame)
        span = node.span
        if len(node.rest) > 1:
            end = end_of_step(source.text, operand.span.end, node.span.end)
            span = Span(source, start, end)
        left = operate(walk, symbol, left, right, left_node, operand, span)
        left_node = tree.Binary(span, node.first, [])
    return left


def operate(
    walk: Capture,
    symbol: str,
    left: Any,
    right: Any,
    left_node: Expression,
    right_node: Expression,
    span: Span,
) -> Any:
    """One binary operator, or a comparison."""
    kind = tree.Comparison if symbol in _COMPARISONS else tree.Binary
    form = kind(span, hole(left_node, 0), [(symbol, hole(right_node, 1))])
    if symbol == "%" and type(concrete(left)) is str:
        return _written_out(walk, form, [left, right])
    if not (type(left) is Symbol or type(right) is Symbol):
        walk.state.place = span
        moves = symbol in ("+", "*", "is", "is not")
        made = (walk.moved if moves else walk.evaluate)(form, [left, right])
        if type(made) in (list, dict, set) and made is not left:
            walk.local[id(made)] = made
        return made
    tensor = left if type(left) is Tensor else right if type(right) is Tensor else None
    if tensor is not None:
        return _operate_on_tensor(walk, symbol, left, right, tensor, form)
    if symbol in ("is", "is not") and (left is None or right is None):
        return symbol == "is not"  # the types of numbers are guarded
    other = right if type(left) is Symbol else left
    if symbol in ("is", "is not") or not _is_plain(other):
        walk.state.place = span
        return walk.evaluate(form, [left, right])
    now = walk.recorded(form, [left, right])
    return walk.either(now, _compute, walk, symbol, left, right, now)


def _is_plain(value: Any) -> bool:
    """Whether operators between a number and a value run no code of the program's."""
    return type(concrete(value)) in _PLAIN


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
        raise GraphBreak("B06", f"`{symbol}` of numbers that vary")
    op = Inline(f"{'not ' * (symbol == 'not in')}{{{len(operands)}}}({first}, {second})")
    return walk.builder.compute(op, [*operands, function], now)


def _operate_on_tensor(
    walk: Capture, symbol: str, left: Any, right: Any, tensor: Tensor, form: Expression
) -> Any:
    """An operator between a tensor and a number that varies."""
    left, right = as_operand(walk, symbol, right, left), as_operand(walk, symbol, left, right)
    number = left if type(left) is Symbol else right
    floating = tensor.array.dtype.kind == "f"
    if floating and type(number.now) is float and symbol in _LINEAR_OPERATORS:
        return walk.heard(form, [left, right])
    function = tensor_operator(symbol)
    return heard_as_one(walk, form, [left, right], function)


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


def _comparison(walk: Capture, node: tree.Comparison, frame: Frame) -> Any:
    left = walk.value(node.first, frame)
    left_node = node.first
    result: Any = None
    for number, (symbol, operand) in enumerate(node.rest):
        if number and not walk.truth(result):
            return result
        right = walk.value(operand, frame)
        if symbol in ("in", "not in"):
            walk.rely_on(right)
        result = operate(walk, symbol, left, right, left_node, operand, node.span)
        left, left_node = right, operand
    return result


def _logical(walk: Capture, node: tree.Logical, frame: Frame) -> Any:
    stops_at = node.operator == "or"
    for operand in node.operands[:-1]:
        value = walk.value(operand, frame)
        walk.state.place = operand.span
        if walk.truth(value) is stops_at:
            return value
    return walk.value(node.operands[-1], frame)


def _conditional(walk: Capture, node: tree.Conditional, frame: Frame) -> Any:
    value = walk.value(node.test, frame)
    walk.state.place = node.test.span
    return walk.value(node.body if walk.truth(value) else node.orelse, frame)


def _tuple(walk: Capture, node: tree.Tuple, frame: Frame) -> Any:
    if any(isinstance(each, tree.Starred) for each in node.elements):
        return _starred(walk, node, frame)
    return tuple([walk.value(each, frame) for each in node.elements])


def _list(walk: Capture, node: tree.List, frame: Frame) -> Any:
    if any(isinstance(each, tree.Starred) for each in node.elements):
        return _starred(walk, node, frame)
    return walk.made_list([walk.value(each, frame) for each in node.elements])


def _starred(walk: Capture, node: tree.Tuple | tree.List, frame: Frame) -> Any:
    """A display with `*values`."""
    operands = []
    holes: list[Expression] = []
    for number, each in enumerate(node.elements):
        if isinstance(each, tree.Starred):
            value = walk.value(each.value, frame)
            walk.rely_on(value)
            holes.append(tree.Starred(each.span, hole(each.value, number)))
        else:
            value = walk.value(each, frame)
            holes.append(hole(each, number))
        operands.append(value)
    value = walk.moved(type(node)(node.span, holes), operands)
    for each in value:
        walk.constant(each) if not is_symbolic(each) else None
    walk.local[id(value)] = value
    return value


def _set(walk: Capture, node: tree.Set, frame: Frame) -> Any:
    if any(isinstance(each, tree.Starred) for each in node.elements):
        walk.refuse("`*` in a set", span=node.span)
        return walk.compiler.expression(node, frame.scope)(frame.variables)
    values = [walk.value(each, frame) for each in node.elements]
    holes: list[Expression] = [hole(each, at) for at, each in enumerate(node.elements)]
    made = walk.evaluate(tree.Set(node.span, holes), values)
    walk.local[id(made)] = made
    return made


def _dict(walk: Capture, node: tree.Dict, frame: Frame) -> Any:
    found: dict[Any, Any] = {}
    for key, value_node in node.items:
        if key is None:
            walk.refuse("`**` in a display", span=node.span)
            return walk.compiler.expression(node, frame.scope)(frame.variables)
        at = walk.value(key, frame)
        value = walk.value(value_node, frame)
        walk.state.place = value_node.span
        put(found, walk.exact(at), walk.exact(value, looks=False))
    walk.local[id(found)] = found
    return found


def _slice(walk: Capture, node: tree.Slice, frame: Frame) -> Any:
    parts = [
        None if part is None else walk.value(part, frame)
        for part in (node.lower, node.upper, node.step)
    ]
    return slice(*parts)


def _formatted(walk: Capture, node: tree.FormattedString, frame: Frame) -> Any:
    operands: list[Any] = []
    return _written_out(walk, _formatted_parts(walk, node, operands, frame), operands)


def _written_out(walk: Capture, form: Expression, operands: list[Any]) -> Any:
    """A text in which operands are written out."""
    if not any(walk.builder.varies(each) or holds_tensor(each) for each in operands):
        return walk.evaluate(form, operands)
    for each in operands:
        walk.rely_on(each, deep=True)
        walk.check_shown(each)
    now = walk.unheard(form, operands)
    write = walk.compiler.expression(form, HOLES)
    raises = not isinstance(form, tree.FormattedString) or _shows_characters(form)
    return walk.computed(lambda *given: write(numbered(given)), operands, now, raises)


def _shows_characters(form: tree.FormattedString) -> bool:
    """Whether a format may fail for other values of the same types: those of the character of a
    number, and those that are computed.
    """
    formats = [part.format for part in form.parts if isinstance(part, tree.Replacement)]
    return any(
        not isinstance(text, str) or text.endswith("c")
        for each in formats
        if each is not None
        for text in each.parts
    )


def _formatted_parts(
    walk: Capture, node: tree.FormattedString, operands: list[Any], frame: Frame
) -> tree.FormattedString:
    parts: list[Any] = []
    for part in node.parts:
        if isinstance(part, str):
            parts.append(part)
            continue
        shown = hole(part.value, len(operands))
        operands.append(walk.value(part.value, frame))
        form = part.format
        if form is not None:
            form = _formatted_parts(walk, form, operands, frame)
        parts.append(tree.Replacement(part.span, shown, part.conversion, form, part.debug))
    return tree.FormattedString(node.span, parts)


def check_defaults(walk: Capture, parameters: tree.Parameters, span: Span) -> None:
    """End recording where a function is made whose defaults are computed."""
    for each in parameters.parameters:
        if each.default is not None and not isinstance(each.default, tree.Constant):
            walk.refuse("a function with computed defaults is made", span=span)


def _lambda(walk: Capture, node: tree.Lambda, frame: Frame) -> Any:
    check_defaults(walk, node.parameters, node.span)
    made = walk.compiler.expression(node, frame.scope)(frame.variables)
    walk.walked(made)
    return made


def _named_expression(walk: Capture, node: tree.NamedExpression, frame: Frame) -> Any:
    value = walk.value(node.value, frame)
    walk.store(node.name, value, frame, assigned=True)
    return value


def _comprehension(walk: Capture, node: tree.Comprehension, frame: Frame) -> Any:
    inner = comprehension_scope(frame.scope, node.clauses)
    first = walk.value(node.clauses[0].iterable, frame)
    walk.state.place = node.clauses[0].iterable.span
    inside: Variables = {PARENT: frame.variables}
    walk.local[id(inside)] = inside
    rounds = _inner(walk, node.clauses, 0, Frame(inner, inside), walk.items(first))
    if node.kind == "generator":
        drawn = Drawn()
        source = _drawn(walk, rounds, node.element, drawn)
        iterator = drawing("generator", source, concrete(first))
        walk.generated[iterator] = drawn
        return iterator
    if node.kind == "list":
        found = [walk.value(node.element, each) for each in rounds]
        return walk.made_list(found)
    collected: dict[Any, Any] = {}
    for each in rounds:
        at = walk.value(node.element, each)
        value = None if node.value is None else walk.value(node.value, each)
        walk.state.place = node.span
        put(collected, walk.exact(at), walk.exact(value, looks=False))
    made = set(collected) if node.kind == "set" else collected
    walk.local[id(made)] = made
    return made


def _inner(
    walk: Capture,
    clauses: list[tree.ComprehensionFor],
    number: int,
    frame: Frame,
    values: HostIterator[Any],
) -> Generator[Frame, None, None]:
    clause = clauses[number]
    for value in values:
        walk.steps.left -= 1
        if walk.steps.left < 0:
            raise too_many_steps()
        walk.store(clause.target, value, frame)
        if all(walk.truth(walk.value(each, frame)) for each in clause.conditions):
            if number + 1 == len(clauses):
                yield frame
            else:
                following = clauses[number + 1]
                more = walk.value(following.iterable, frame)
                walk.state.place = following.iterable.span
                yield from _inner(walk, clauses, number + 1, frame, walk.items(more))
        walk.state.place = clause.iterable.span


def _drawn(
    walk: Capture, rounds: HostIterator[Frame], element: Expression, drawn: Drawn
) -> Generator[Any, None, None]:
    while True:
        enter_host_call(walk.steps)
        try:
            value = walk.value(element, next(rounds))
        except StopIteration:
            return
        finally:
            walk.steps.nested -= 1
        drawn.values.append(value)
        yield concrete(value) if drawn.is_recorded else walk.exact(value, drawn.looks)


_PLAIN = frozenset({int, float, bool, complex, str, list, tuple, dict, set, frozenset, range})
_CONTAINERS = frozenset({list, tuple, set, frozenset, dict, range, str})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"})
_INTEGERS = 1 << 63
_LINEAR_OPERATORS = frozenset({"+", "-", "*", "/"})
_PLAIN_OPERATORS = frozenset({"+", "-", "/", "//", "%", "==", "!=", "<", "<=", ">", ">="})

EXPRESSIONS: dict[type, Callable[[Capture, Any, Frame], Any]] = {
    tree.Attribute: _attribute,
    tree.Binary: _binary,
    tree.Call: call,
    tree.Comparison: _comparison,
    tree.Comprehension: _comprehension,
    tree.Conditional: _conditional,
    tree.Constant: _constant,
    tree.Dict: _dict,
    tree.FormattedString: _formatted,
    tree.Lambda: _lambda,
    tree.List: _list,
    tree.Logical: _logical,
    tree.Name: _name,
    tree.NamedExpression: _named_expression,
    tree.Set: _set,
    tree.Slice: _slice,
    tree.Subscript: _subscript,
    tree.Tuple: _tuple,
    tree.Unary: _unary,
}
