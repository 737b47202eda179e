"""Changes of a program's text: what a remedy does to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gradcli.errors import Span
from gradcli.language.tree import syntax as tree
from gradcli.recorded.patterns import applied, around, call_of, holds, operand

Program = Sequence[tree.Statement]

_SIMPLE = (tree.Assign, tree.AugmentedAssign, tree.ExpressionStatement)

Edit = tuple[int, int, str]
"""A range of a program's text, and what stands there instead."""


def edited(place: Span, edits: Iterable[Edit]) -> tuple[str, ...]:
    """The text of a place's source after some edits, as the one program to try; nothing where they
    overlap.
    """
    text = place.source.text
    before = len(text) + 1
    for start, end, new in sorted(edits, reverse=True):
        if end > before:
            return ()
        text, before = text[:start] + new + text[end:], start
    return (text,)


def instead(place: Span | None, new: str | None) -> tuple[str, ...]:
    """The program with another text at a place."""
    if place is None or new is None:
        return ()
    return edited(place, [(place.start, place.end, new)])


def statement_at(program: Program, place: Span | None) -> tree.Statement | None:
    """The innermost statement on a line of its own that a place stands in."""
    if place is None:
        return None
    around = [
        each
        for each in tree.nodes_of(list(program))
        if isinstance(each, _SIMPLE) and holds(each.span, place)
    ]
    return min(around, key=lambda each: each.span.end - each.span.start, default=None)


def before(program: Program, place: Span | None, new: str) -> list[Edit]:
    """A statement in front of that of a place."""
    statement = statement_at(program, place)
    return [] if statement is None else [(statement.span.start, statement.span.start, f"{new}; ")]


def behind(program: Program, place: Span | None, new: str) -> list[Edit]:
    """A statement behind that of a place."""
    statement = statement_at(program, place)
    return [] if statement is None else [(statement.span.end, statement.span.end, f"; {new}")]


def added(
    program: Program, place: Span | None, new: str, *, first: bool = False
) -> tuple[str, ...]:
    """The program with a statement behind that of a place, or in front of it."""
    edits = (before if first else behind)(program, place, new)
    return edited(place, edits) if place is not None and edits else ()


def appended(program: Program, new: str) -> tuple[str, ...]:
    """The program with a statement at its end."""
    if not program:
        return ()
    text = program[-1].span.source.text
    return (f"{text.rstrip()}\n{new}\n",)


def calls_of(program: Program, *endings: str) -> list[tree.Call]:
    """The calls of functions whose text ends so."""
    return [
        each
        for each in tree.nodes_of(list(program))
        if isinstance(each, tree.Call) and each.function.span.text.endswith(endings)
    ]


def with_argument(place: Span, argument: str) -> tuple[str, ...]:
    """The program with a further argument of the call at a place, in place of one of its name."""
    name = argument.partition("=")[0]
    text, count = re.subn(rf"\b{name}\s*=\s*[\w.]+", argument, place.text)
    if not count and place.text.endswith(")"):
        comma = "" if place.text[:-1].rstrip().endswith(("(", ",")) else ", "
        text = f"{place.text[:-1]}{comma}{argument})"
    return instead(place, text)


def in_place(statement: tree.Statement | None, name: str) -> tuple[str, ...]:
    """The program with `w -= …` under `no_grad()` for `w = w - …`."""
    value = statement.value if isinstance(statement, tree.Assign) else None
    if statement is None or not isinstance(value, tree.Binary) or value.first.span.text != name:
        return ()
    operator, second = value.rest[0]
    if len(value.rest) > 1 or operator not in ("+", "-", "*", "/"):
        return ()
    text = f"with torch.no_grad(): {name} {operator}= {second.span.text}"
    return instead(statement.span, text)


def renamed(statement: tree.Statement | None, name: str) -> tuple[str, ...]:
    """The program whose assignment binds another name."""
    if not isinstance(statement, tree.Assign):
        return ()
    for target in statement.targets:
        if target.span.text == name:
            return instead(target.span, f"{name}_new")
    return ()


def under_another_name(
    program: Program, statement: tree.Statement | None, name: str
) -> tuple[str, ...]:
    """The program whose assignment binds another name, which stands in all that follows."""
    if not isinstance(statement, tree.Assign):
        return ()
    edits = [
        (each.span.start, each.span.end, f"{name}_new")
        for each in tree.nodes_of(list(program))
        if isinstance(each, tree.Name)
        and each.name == name
        and each.span.start >= statement.span.start
        and not (statement.value.span.start <= each.span.start < statement.value.span.end)
    ]
    return edited(statement.span, edits)


def without_inputs(place: Span | None) -> tuple[str, ...]:
    """The program whose pass writes to all leaves."""
    if place is None:
        return ()
    text = re.sub(
        r",?\s*inputs\s*=\s*(\[[^\]]*\]|list\([^()]*(\([^()]*\))?[^()]*\)|\w+)", "", place.text
    )
    return instead(place, text) if text != place.text else ()


# --- what stands at a place -----------------------------------------------------------------------


def without_attribute(node: tree.Expression) -> tuple[str, ...]:
    """The program with `x` for `x.detach()`, `x.data` or `x.item()`."""
    owner = node.function if isinstance(node, tree.Call) else node
    return instead(node.span, _operand(owner.value)) if isinstance(owner, tree.Attribute) else ()


def _operand(node: tree.Expression) -> str:
    text = node.span.text
    start, end = node.span.start, node.span.end
    whole = node.span.source.text
    if whole[max(start - 1, 0) : start] == "(" and whole[end : end + 1] == ")":
        return f"({text})"  # the brackets around it belong to no node
    return text


def without_call(node: tree.Expression) -> tuple[str, ...]:
    """The program with `x` for `float(x)` or `torch.tensor(x)`, and a stack for a list."""
    if not isinstance(node, tree.Call) or not node.arguments:
        return ()
    value = node.arguments[0].value
    if isinstance(value, (tree.List, tree.Tuple)):
        return instead(node.span, f"torch.stack({value.span.text})")
    return instead(node.span, f"({value.span.text})")


def in_torch(node: tree.Expression) -> tuple[str, ...]:
    """The program with a function of torch for one of `math` or NumPy."""
    if not isinstance(node, tree.Call):
        return ()
    name = node.function.span.text.rpartition(".")[2]
    return instead(node.function.span, f"torch.{name}")


_NUMPY = re.compile(r"\bnp\.(\w+)|\bnumpy\.(\w+)")


def without_numpy(place: Span) -> tuple[str, ...]:
    """The program without the way through NumPy."""
    text = re.sub(r"(\.detach\(\))?(\.cpu\(\))?\.numpy\(\)", "", place.source.text)
    text = re.sub(r"torch\.(from_numpy|as_tensor|tensor)\((?!\[)", "(", text)
    text = _NUMPY.sub(lambda match: f"torch.{match[1] or match[2]}", text)
    return (re.sub(r"import (numpy|torch\.\w+)( as \w+)?", "import torch", text),)


def smooth(program: Program, place: Span | None, dims: int) -> tuple[str, ...]:
    """The program with a sigmoid for a comparison, or a softmax for an argmax.

    Args:
        dims: how many dimensions the scores have, of which the argmax is taken.
    """
    chain = [] if place is None else around(program, place)
    if not chain:
        return ()
    node = chain[0]
    if isinstance(node, tree.Comparison) and len(node.rest) == 1:
        operator = node.rest[0][0]
        return _graded(node, chain[1:]) if operator in _ORDERS else _of_largest(node)
    if not isinstance(node, tree.Call) or not isinstance(node.function, tree.Attribute):
        return ()
    scores = node.function.value.span.text
    if scores == "torch" and node.arguments:
        scores = node.arguments[0].value.span.text
    dim = _dim_of(node, scores)
    dim = "-1" if dim == str(dims - 1) else dim
    chosen = scores if _are_shares(program, scores) else f"torch.softmax({scores}, {dim})"
    chosen += f".movedim({dim}, -1)" if dim != "-1" else ""
    for number, each in enumerate(chain[1:]):
        coded = call_of(each, "one_hot")
        if coded is not None and coded.operands and coded.operands[0] is node:
            return instead(each.span, chosen)
        if isinstance(each, tree.Comparison) and each.rest[0][0] == "==":
            wanted = each.rest[0][1].span.text
            outer = next((e for e in chain[number + 1 :] if e.span.text.endswith(".float()")), each)
            return instead(outer.span, f"{chosen}[..., {wanted}]")
    index = next((each for each in chain[1:] if isinstance(each, tree.Subscript)), None)
    if index is not None:
        return instead(index.span, f"({chosen} * {index.value.span.text}).sum()")
    count = f"torch.arange(float({scores}.shape[{dim}]))"
    tries = instead(node.span, f"({chosen} * {count}).sum(-1)")
    statement = statement_at(program, place)
    names = [e.span.text for e in statement.targets] if isinstance(statement, tree.Assign) else []
    edits = [
        (each.span.start, each.span.end, f"({chosen} * {each.value.span.text}).sum()")
        for each in tree.nodes_of(list(program))
        if isinstance(each, tree.Subscript) and each.index.span.text in names
    ]
    for part in tree.nodes_of(list(program)):
        code = call_of(part, "one_hot") if isinstance(part, tree.Expression) else None
        if code is not None and code.operands and code.operands[0].span.text in names:
            edits.append((part.span.start, part.span.end, chosen))
    return (*tries, *(edited(node.span, edits) if edits else ()))


def _are_shares(program: Program, scores: str) -> bool:
    """Whether the scores of an argmax are a softmax already, which is not to be taken again."""
    values = [
        each.value.span.text
        for each in tree.nodes_of(list(program))
        if isinstance(each, tree.Assign) and any(t.span.text == scores for t in each.targets)
    ]
    return any(re.match(r"(?:[^()]+\.)?softmax\(", text) for text in (scores, *values))


def _dim_of(node: tree.Call, scores: str) -> str:
    """The dimension of an `argmax()` as the program writes it; the last where it has none."""
    for each in node.arguments:
        text = each.value.span.text
        if each.name in ("dim", "axis") or (not each.name and text != scores):
            return text
    return "-1"


_ORDERS = ("<", "<=", ">", ">=")


def _of_largest(node: tree.Comparison) -> tuple[str, ...]:
    """The program with a softmax for `x == x.max(…)`, which marks what is largest."""
    scores, (_, other) = node.first.span.text, node.rest[0]
    match = re.search(r"\ba?max\((?P<of>[^()]*)\)", other.span.text)
    dim = None if match is None else re.search(r"-?\d+", match["of"])
    if dim is None or not re.search(rf"(?<!\w){re.escape(scores)}(?!\w)", other.span.text):
        return ()
    return instead(node.span, f"torch.softmax({scores}, {dim[0]})")


def _graded(node: tree.Comparison, outer: Sequence[tree.Expression]) -> tuple[str, ...]:
    """The program with a sigmoid for a comparison: as a number, or as the weight of a `where`."""
    first, (operator, second) = node.first.span.text, node.rest[0]
    a, b = (first, second.span.text) if ">" in operator else (second.span.text, first)
    weight = f"torch.sigmoid(({a}) - ({b}))"
    for each in outer:
        if each.span.text.endswith((".float()", ".int()", ".double()")):
            return instead(each.span, weight)
        call = call_of(each, "where")
        if call is not None and len(call.operands) == 3 and call.operands[0] is node:
            yes, no = (branch.span.text for branch in call.operands[1:])
            return instead(each.span, f"({weight} * ({yes}) + (1 - {weight}) * ({no}))")
    return instead(node.span, weight)


def straight_through(program: Program, place: Span | None) -> tuple[str, ...]:
    """The program with `x + (x.round() - x).detach()` for `x.round()`."""
    node = next(iter(around(program, place)), None) if place is not None else None
    call = None if node is None else applied(node)
    if node is None or call is None or not call.operands:
        return ()
    x = operand(call.operands[0])
    return instead(node.span, f"({x} + ({node.span.text} - {x}).detach())")


def drawn(program: Program, place: Span | None) -> tuple[str, ...]:
    """The program with `mu + sigma * noise` for `torch.normal(mu, sigma)`."""
    node = next(iter(around(program, place)), None) if place is not None else None
    call = None if node is None else applied(node)
    if node is None or call is None or len(call.operands) < 2:
        return ()
    mu, sigma = (operand(each) for each in call.operands[:2])
    noise = f"torch.randn_like(torch.as_tensor({mu} + {sigma}))"
    return instead(node.span, f"({mu} + {sigma} * {noise})")


def leaky(place: Span | None, call: Any) -> tuple[str, ...]:
    """The program with a `leaky_relu` for a `relu`, of a function or of a module."""
    if place is None:
        return ()
    text = re.sub(r"\b(torch|F|nn\.functional|torch\.nn\.functional)\.relu\b", _LEAKY, place.text)
    if text != place.text:
        return instead(place, text)
    text = re.sub(r"([\w.]+)\.relu\(\)", rf"{_LEAKY}(\1)", place.text)
    if text != place.text:
        return instead(place, text)
    whole = place.source.text
    return (whole.replace("nn.ReLU(", "nn.LeakyReLU("),) if call is not None else ()


_LEAKY = "torch.nn.functional.leaky_relu"
