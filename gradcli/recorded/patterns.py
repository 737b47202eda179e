"""Reads expressions of a program as operations on operands, however they are spelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.errors import Label, Span
from gradcli.language.tree import syntax as tree
from gradcli.record import Record

Expression = tree.Expression


def holds(outer: Span, inner: Span) -> bool:
    """Whether a span of source text contains another one."""
    return outer.source is inner.source and outer.start <= inner.start and inner.end <= outer.end


class Applied(Record):
    """A call of a named function, `f(x, …)`, `torch.f(x, …)` or `x.f(…)` alike."""

    name: str
    operands: list[Expression]
    others: list[str]

    def more(self, first: int = 1) -> str:
        """The text of the arguments from one on."""
        texts = [each.span.text for each in self.operands[first:]]
        return ", ".join([*texts, *self.others])


_MODULES = ("torch", "F", "torch.nn.functional", "torch.linalg", "torch.special", "math")


def applied(node: Expression) -> Applied | None:
    """An expression as a call, None if it is none."""
    if not isinstance(node, tree.Call):
        return None
    values = [each.value for each in node.arguments if not each.name and not each.kind]
    others = [each.span.text for each in node.arguments if each.name]
    if isinstance(node.function, tree.Name):
        return Applied(node.function.name, values, others)
    if not isinstance(node.function, tree.Attribute):
        return None
    owner = node.function.value
    if owner.span.text not in _MODULES:
        values.insert(0, owner)
    return Applied(node.function.name, values, others)


def call_of(node: Expression, *names: str) -> Applied | None:
    """An expression as a call of one of some functions with an operand at least."""
    call = applied(node)
    return call if call is not None and call.name in names and call.operands else None


def binary(node: Expression, operator: str) -> tuple[Expression, Expression] | None:
    """The two sides of an operator, None for another expression."""
    if isinstance(node, tree.Binary) and len(node.rest) == 1 and node.rest[0][0] == operator:
        return node.first, node.rest[0][1]
    return None


def negated(node: Expression) -> Expression | None:
    """What stands behind a minus sign."""
    is_minus = isinstance(node, tree.Unary) and node.operator == "-"
    return node.operand if is_minus else None  # type: ignore[attr-defined]


def is_number(node: Expression, value: float) -> bool:
    """Whether an expression is a number of some value."""
    return isinstance(node, tree.Constant) and node.value == value and node.value is not True


def same(a: Expression, b: Expression) -> bool:
    """Whether two expressions have the same text, blanks aside."""
    return plain(a) == plain(b)


def plain(node: Expression) -> str:
    """The text of an expression without blanks and outer parentheses."""
    return "".join(node.span.text.split())


def inner(node: Expression) -> str:
    """The text of an expression as an argument."""
    return " ".join(node.span.text.split())


def operand(node: Expression) -> str:
    """The text of an expression as an operand or receiver, parenthesised where needed."""
    kinds = (tree.Name, tree.Attribute, tree.Call, tree.Subscript)
    return inner(node) if isinstance(node, kinds) else f"({inner(node)})"


def around(program: Sequence[tree.Statement], place: Span) -> list[Expression]:
    """The expressions that contain a span, the innermost first: the first has just that span."""
    matches: list[Expression] = []
    for node in tree.nodes_of(list(program)):
        if isinstance(node, _NO_VALUES) or not holds(node.span, place):
            continue
        if isinstance(node, tree.Binary) and len(node.rest) > 1:
            matches += [each for each in _prefixes(node) if holds(each.span, place)]
        if isinstance(node, tree.Expression):
            matches.append(node)
    return sorted(matches, key=lambda node: node.span.end - node.span.start)


def _prefixes(chain: tree.Binary) -> Iterator[tree.Binary]:
    """The operators of a chain but the last, each with all that stands to its left."""
    text, start = chain.span.source.text, chain.span.start
    for count in range(1, len(chain.rest)):
        end = chain.rest[count - 1][1].span.end
        operator = text.index(chain.rest[count][0], end)
        # Brackets around the operand close before the next operator.
        end += len(text[end:operator].rstrip())
        left: Expression = chain.first
        if count > 1:
            span = Span(chain.span.source, start, chain.rest[count - 2][1].span.end)
            left = tree.Binary(span, chain.first, chain.rest[: count - 1])
        span = Span(chain.span.source, start, end)
        yield tree.Binary(span, left, chain.rest[count - 1 : count])


_NO_VALUES = (
    tree.Argument,
    tree.Comprehension,
    tree.ComprehensionFor,
    tree.Parameter,
    tree.Parameters,
    tree.Starred,
)
"""Parts of expressions that have no value which could be replaced."""


def returns_of(program: Sequence[tree.Statement], node_name: str) -> tuple[Label, ...]:
    """What the `backward()` of a custom function returns, by the name of its node."""
    for each in tree.nodes_of(list(program)):
        if isinstance(each, tree.Class) and f"{each.name}Backward" == node_name:
            for inside in tree.nodes_of(each):
                if isinstance(inside, tree.Def) and inside.name == "backward":
                    spans = [n.span for n in tree.nodes_of(inside) if isinstance(n, tree.Return)]
                    return tuple([Label(span, "this returns it") for span in spans])
    return ()
