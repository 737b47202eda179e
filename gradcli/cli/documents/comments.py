"""Comments that say what a statement prints: `print(x)  # tensor(4.)`, or in the lines below it.

A comment is an output where it is marked as one (`# => 4`, `# prints: 4`), and where it has a
number or a word like `True` in it and nothing but what tensors and the real output are made of:
`# 2. Backward pass` is a remark.
"""

from __future__ import annotations

import re

from gradcli.cli.documents.cells import Cell, Output
from gradcli.language.tree.syntax import Statement

_MARK = re.compile(r"(?:=>|->|→|⇒|(?:output|out|prints?|result)\s*:)\s*", re.IGNORECASE)

_STRINGS = re.compile(r"'[^']*'|\"[^\"]*\"")
_WORD = re.compile(r"(?<!\w)[^\W\d]\w*")
_VALUES = frozenset({"True", "False", "None", "nan", "inf"})
_OF_TENSORS = _VALUES | {
    *("tensor", "array", "Parameter", "containing", "torch", "Size", "requires_grad", "grad_fn"),
    *("dtype", "size", "device", "cpu", "float16", "float32", "float64", "bfloat16", "int32"),
    *("int64", "bool", "object", "at", "e", "j"),
}
_NODE = re.compile(r"\w+Backward\w*|AccumulateGrad")


def comment_of(cell: Cell, statement: Statement, printed: str) -> Output | None:
    """The comment that says what a statement of a Markdown block prints, None where none does."""
    source = cell.source
    row, column = source.position(statement.span.end)
    line = source.line(row)
    behind = re.match(r"\s*;?\s*#\s?", line[column - 1 :])
    if behind is not None:
        margin = line[: column - 1 + behind.end()]
        first, rest = row, line[len(margin) :]
    else:
        lead = re.match(r"\s*#\s?", source.line(row + 1)) if _has(cell, row + 1) else None
        if lead is None or line[column - 1 :].strip():
            return None
        margin = lead[0]
        first, rest = row + 1, source.line(row + 1)[len(margin) :]
    mark = _MARK.match(rest)
    if mark is not None:
        margin, rest = margin + mark[0], rest[mark.end() :]
    elif not _is_output(rest, printed):
        return None
    at = margin.rindex("#", 0, len(margin) - (mark.end() if mark else 0))
    further = " " * at + "#" + " " * (len(margin) - at - 1)
    lines = [rest]
    while _has(cell, first + len(lines)):
        below = re.fullmatch(rf" {{0,{at}}}#(.*)", source.line(first + len(lines)))
        if below is None or not (mark or _goes_on(lines) or _is_output(below[1], printed)):
            break
        lines.append(below[1].removeprefix(further[at + 1 :]))
    place = cell.place + first - source.first_line
    text = "\n".join(lines).strip()
    return Output(text, row, place, place + len(lines), margin, further)


def _has(cell: Cell, line: int) -> bool:
    """Whether a cell has a line of this number."""
    return line - cell.source.first_line < cell.source.text.count("\n")


def _goes_on(lines: list[str]) -> bool:
    """Whether a bracket is still open."""
    text = "".join(lines)
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))


def _is_output(comment: str, printed: str) -> bool:
    """Whether a comment without a mark can be read as an output."""
    if comment.strip() and comment.strip() == printed.strip():
        return True
    bare = _STRINGS.sub(" 0 ", comment)
    words = set(_WORD.findall(bare))
    known = _OF_TENSORS | set(_WORD.findall(printed))
    has_value = re.search(r"\d", bare) is not None or not words.isdisjoint(_VALUES)
    return has_value and all(word in known or _NODE.fullmatch(word) for word in words)
