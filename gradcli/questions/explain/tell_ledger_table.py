"""The ledger of the chain rule as a table: Markdown, and LaTeX that needs no package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.arrays.printing import format_elements
from gradcli.recorded.ledger import Row, Share, Sum, Visit
from gradcli.recorded.names import factor_text
from gradcli.show.style import one_line

_HEAD = ("step", "node", "to", "local derivative or rule", "gradient in × local", "passed on")

_LARGEST = 12
"""A tensor of more elements is shown as its dtype and shape."""

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "∂": r"$\partial$", "×": r"$\times$", "·": r"$\cdot$", "…": r"\dots{}", "<": "$<$", ">": "$>$",
}  # fmt: skip


def ledger_table(rows: Sequence[Row], format: str) -> str:
    """The ledger with a row for each edge and each sum, in the order in which they ran.

    Args:
        format: `markdown` or `latex`.
    """
    table: list[Sequence[str]] = []
    number = 0
    for row in rows:
        if isinstance(row, Visit):
            number += 1
            table += _edges(number, row)
        else:
            table.append(_sum(row))
    return (_markdown if format == "markdown" else _latex)(table)


def _edges(number: int, visit: Visit) -> list[Sequence[str]]:
    name = visit.node.name
    if visit.node.variable is not None:
        name = f"{visit.node.variable}: {name}"
    grad = visit.grads[0] if visit.grads else None
    edges: list[Sequence[str]] = []
    for share in visit.shares:
        lead = ("", "") if edges else (str(number), name)
        edges.append((*lead, one_line(share.operand), *_worked(share, grad)))
    return edges


def _worked(share: Share, grad: Any) -> tuple[str, str, str]:
    """The local derivative, the product, and what went on."""
    if share.product is None:
        return "", "", "no gradient"
    local, product = "" if share.formula is None else repr(share.formula), ""
    if share.local is not None and share.named is not None:
        named, value = factor_text(share.named), _value(share.local)
        same = named.rstrip(".") == value.rstrip(".")
        local = f"{share.left} = {named}" if same else f"{share.left} = {named} = {value}"
        product = f"{_value(grad)} × {value}"
    return one_line(local), product, _value(share.passed)


def _sum(row: Sum) -> Sequence[str]:
    """A gradient that reached a leaf, or met another."""
    name = row.node.variable or row.node.name
    name = f"{name}.grad" if row.arrived else f"sum at {name}"
    added = "" if row.old is None else f"{_value(row.old)} + {_value(row.incoming)}"
    return "", "", name, "", added, _value(row.new)


def _value(array: Any) -> str:
    """A value on one line; a large one as its dtype and shape."""
    if array is None:
        return "none"
    text = format_elements(array) if array.size <= _LARGEST else ""
    if not text:
        return f"{array.dtype.name}[{', '.join(map(str, array.shape))}]"
    return one_line(text)


def _markdown(table: Sequence[Sequence[str]]) -> str:
    def cell(text: str) -> str:
        text = (
            text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
        )
        return text.replace("<", "&lt;").replace("`", "\\`")

    lines = [_HEAD, *table]
    cells = _padded(lines, cell)
    rule = f"|{'|'.join('-' * (len(each) + 2) for each in cells[0])}|"
    shown = [f"| {' | '.join(line)} |" for line in cells]
    return "\n".join([shown[0], rule, *shown[1:]]) + "\n"


def _latex(table: Sequence[Sequence[str]]) -> str:
    def cell(text: str) -> str:
        return "".join(_LATEX.get(character, character) for character in text)

    cells = _padded([_HEAD, *table], cell)
    shown = [f"  {' & '.join(line)} \\\\" for line in cells]
    ruled = [shown[0], "  \\hline"]
    for line, raw in zip(shown[1:], table, strict=True):
        ruled += ["  \\hline", line] if raw[0] and len(ruled) > 2 else [line]
    columns = "r" + "l" * (len(_HEAD) - 1)
    return "\n".join([f"\\begin{{tabular}}{{{columns}}}", *ruled, "\\end{tabular}"]) + "\n"


def _padded(lines: Sequence[Sequence[str]], cell: Callable[[str], str]) -> list[list[str]]:
    """The cells as a format writes them, each column as wide as its widest."""
    cells = [[cell(text) for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [[text.ljust(w) for text, w in zip(line, widths, strict=True)] for line in cells]
