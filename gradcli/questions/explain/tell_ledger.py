"""The ledger of the chain rule as text, `gradcli explain`, and as a table: Markdown, and LaTeX
that needs no package; and what `explain` adds when asked: kinks, paths, and saved values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.arrays.printing import format_elements
from gradcli.autograd.graph import GraphNode
from gradcli.questions.explain.kinks import Kink
from gradcli.record import Record
from gradcli.recorded.annotated_graph import Saved, SavedValues
from gradcli.recorded.ledger import (
    Operands,
    Paths,
    Row,
    Share,
    Sum,
    Visit,
    Worked,
    factor_text,
    worked_element,
)
from gradcli.recorded.symbols.tree import Constant
from gradcli.show.graph.nodes import source_of, title
from gradcli.show.json import number
from gradcli.show.style import PLAIN, Style, block, one_line

# --- as a table -----------------------------------------------------------------------------------


_HEAD = ("step", "node", "to", "local derivative or rule", "gradient in × local", "passed on")

_LARGEST_IN_A_ROW = 12
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
    text = format_elements(array) if array.size <= _LARGEST_IN_A_ROW else ""
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


# --- as text --------------------------------------------------------------------------------------


WIDTH = 80
"""The columns that a line of the ledger keeps to where a tensor does not need more, on a terminal
that has so many.
"""

_NARROWEST = 48

_LARGEST = 24
"""A tensor of more elements is shown as its shape and one worked element."""

_INDENT = "    "
_GAP = "   "


def ledger_text(
    rows: Sequence[Row], style: Style = PLAIN, element: tuple[int, ...] | None = None
) -> str:
    """The ledger, a paragraph for each node that ran.

    Args:
        element: the element of large gradients that is worked out; the first of each by default.
    """
    writer = _Writer(style, element)
    paragraphs: list[list[str]] = []
    number = 0
    for row in rows:
        if isinstance(row, Visit):
            number += 1
            paragraphs.append(writer.visit(number, row))
        else:
            if not paragraphs:
                paragraphs.append([])
            paragraphs[-1] += writer.sum(row)
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


class _Writer(Record):
    style: Style
    element: tuple[int, ...] | None
    last: Visit | None = None

    @property
    def width(self) -> int:
        """The columns that a line keeps to."""
        return max(min(self.style.width or WIDTH, WIDTH), _NARROWEST)

    # --- a node ----------------------------------------------------------------------------------

    def visit(self, number: int, visit: Visit) -> list[str]:
        self.last = visit
        head = f"{number}. ".ljust(len(_INDENT))
        plain = head + title(visit.node, PLAIN)
        source = source_of(visit.node)
        room = max(self.width - len(plain) - len(_GAP), 2 * len(_INDENT))
        source = source if len(source) <= room else f"{source[: room - 1]}…"
        blanks = " " * max(len(_GAP), self.width - len(plain) - len(source))
        lines = [f"{head}{title(visit.node, self.style)}{blanks}{source}".rstrip()]
        several = len(visit.grads) > 1
        for output, grad in enumerate(visit.grads):
            what = f"gradient in, output {output}" if several else "gradient in"
            extra = visit.node.node.extra
            hooked = extra is not None and extra.tensor_hooks.get(output)
            what += ", after its hook: " if hooked else ": "
            lines += self._value(_INDENT + what, grad)
        lines += self._shares(visit)
        return lines

    def _shares(self, visit: Visit) -> list[str]:
        cells = [self._cells(visit, share) for share in visit.shares]
        short = [each for each in cells if all("\n" not in cell for cell in each)]
        widths = [max((len(each[i]) for each in short), default=0) for i in range(4)]
        lines: list[str] = []
        for share, each in zip(visit.shares, cells, strict=True):
            row = _GAP.join(cell.ljust(width) for cell, width in zip(each, widths, strict=True))
            row = f"{_INDENT}{row}".rstrip()
            if each in short and len(row) <= self.width and not self._is_large(share.product):
                lines.append(row)
            else:
                lines += self._stacked(visit, share)
            lines += self._fitting(share)
        return lines

    def _cells(self, visit: Visit, share: Share) -> list[str]:
        """A share on one line: where to, the rule, the local derivative, the product."""
        head = f"[{share.number}] → {share.operand}"
        rule = "" if share.formula is None else repr(share.formula)
        if share.product is None:
            return [head, rule, "", "no gradient"]
        product = format_elements(share.product)
        if share.local is None:
            named = "" if share.named is None else f"= {share.named!r}"
            return [head, rule, named if named != f"= {rule}" else "", f"= {product}"]
        local = format_elements(share.local)
        grad = format_elements(visit.grads[0])
        times = f"{_factor(grad)} * {_factor(local)} = {product}"
        return [head, rule, self._derivative(share, local), times]

    @staticmethod
    def _derivative(share: Share, local: str) -> str:
        """`∂e/∂d = a + b = 5.`"""
        assert share.named is not None
        named = factor_text(share.named)
        if isinstance(share.named, Constant):
            return f"{share.left} = {named}"
        return f"{share.left} = {named} = {local}"

    def _stacked(self, visit: Visit, share: Share) -> list[str]:
        """A share on several lines."""
        margin = f"{_INDENT}    "
        rule = "" if share.formula is None else f"{_GAP}{share.formula!r}"
        lines = [f"{_INDENT}[{share.number}] → {share.operand}{rule}"]
        if len(lines[0]) > self.width:
            lines = [lines[0][: -len(rule)], *_folded(margin, self.width, rule.strip())]
        if share.product is None:
            return [f"{lines[0]}{_GAP}no gradient"]
        if share.local is not None:
            assert share.named is not None
            named = factor_text(share.named)
            if isinstance(share.named, Constant):
                lines.append(f"{margin}{share.left} = {named}")
            else:
                lines += self._equal(margin, share.left, named, share.local)
        elif share.named is not None and repr(share.named) != repr(share.formula):
            lines += _folded(margin, self.width, f"= {share.named!r}")
        grad = visit.grads[0]
        if grad is not None and grad.shape == share.product.shape and (grad == share.product).all():
            lines.append(f"{margin}= the gradient in")
        elif share.local is not None:
            lines += self._value(f"{margin}gradient in * that = ", share.product)
        else:
            lines += self._value(f"{margin}= ", share.product)
        if self.element is not None or self._is_large(share.product):
            lines += self._worked(margin, visit, share)
        return lines

    def _equal(self, margin: str, left: str, formula: str, value: Any) -> list[str]:
        """`left = formula = value`, on several lines where it is long."""
        lead = f"{margin}{left} = {formula} = "
        if len(lead) <= self.width:
            return self._value(lead, value)
        formulas = _folded(margin, self.width, f"= {formula}")
        return [f"{margin}{left}", *formulas, *self._value(f"{margin}= ", value)]

    def _fitting(self, share: Share) -> list[str]:
        """What the engine did so that the gradient fits its operand."""
        margin = f"{_INDENT}    "
        lines: list[str] = []
        if share.is_summed:
            shapes = f"{_shape(share.product)} to {_shape(share.passed)}"
            lead = f"{margin}summed from {shapes}, as {share.operand} was broadcast: "
            if len(lead) > self.width // 2 + 14:
                lines += _folded(margin, self.width, lead.strip())
                lead = f"{margin}= "
            lines += self._value(lead, share.passed)
        if share.is_cast:
            kinds = f"{share.product.dtype.name} to {share.passed.dtype.name}"
            lines += self._value(f"{margin}cast from {kinds}: ", share.passed)
        return lines

    def _worked(self, margin: str, visit: Visit, share: Share) -> list[str]:
        worked = worked_element(visit, share, self.element)
        return [] if worked is None else _folded(margin, self.width, _worked_text(worked))

    # --- sums ------------------------------------------------------------------------------------

    def sum(self, row: Sum) -> list[str]:
        """`a.grad = old + incoming = new`."""
        leaf = row.arrived
        name = f"{row.name}.grad" if leaf else f"gradients meet at {row.name}: "
        lead = f"{_INDENT}{name}{' = ' if leaf else ''}"
        if row.old is None:
            source = self._source(row)
            if source is not None and row.new.ndim > 1:
                return [f"{lead}what [{source}] passed on"]
            return self._value(lead, row.new)
        texts = [format_elements(each) for each in (row.old, row.incoming, row.new)]
        line = f"{lead}{texts[0]} + {texts[1]} = {texts[2]}"
        if not self._is_large(row.new) and "\n" not in line and len(line) <= self.width:
            return [line]
        blanks = " " * (len(lead) - 2)
        return [
            *self._value(lead, row.old),
            *self._value(f"{blanks}+ ", row.incoming),
            *self._value(f"{blanks}= ", row.new),
        ]

    def _source(self, row: Sum) -> int | None:
        """The edge of the last node that passed on just what arrived at a leaf."""
        for share in () if self.last is None else self.last.shares:
            if share.edge.node is row.node and share.passed is not None:
                return share.number if (share.passed == row.new).all() else None
        return None

    # --- numbers ---------------------------------------------------------------------------------

    def _is_large(self, array: Any) -> bool:
        if array is None or array.size > _LARGEST:
            return array is not None
        room = self.width - 2 * len(_INDENT) - 2
        return (
            self.style.width is not None
            and max(map(len, format_elements(array).split("\n"))) > room
        )

    def _value(self, lead: str, array: Any) -> list[str]:
        """A lead and a value, whole if it is small; below the lead where the line is too short."""
        if array is None:
            return [f"{lead}none"]
        is_large = self._is_large(array)
        text = f"a tensor of shape {_shape(array)}" if is_large else format_elements(array)
        width = max(map(len, text.split("\n")))
        if len(lead) + width <= self.width or len(lead) <= 2 * len(_INDENT):
            return block(lead, text).split("\n")
        margin = " " * (2 * len(_INDENT) + 2)
        return [lead.rstrip(), *block(margin, text).split("\n")]


def _folded(margin: str, width: int, text: str) -> list[str]:
    """A formula on lines that keep to the width where it has blanks to break at."""
    first, *words = text.split(" ")
    lines = [margin + first]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append(f"{margin}  {word}")
        else:
            lines[-1] += f" {word}"
    return lines


def _worked_text(worked: Worked) -> str:
    """`[0, 1]: 0.5 * 2 + 0.1 * 3 = 1.3`."""
    place = ", ".join(map(str, worked.index))
    if not worked.terms:
        return f"[{place}]: every factor is 0"
    terms = " + ".join(f"{_number(g)} * {_factor(_number(f))}" for g, f in worked.terms)
    if worked.left_out:
        terms += f" + … ({worked.left_out:,} more terms)"
    return f"[{place}]: {terms} = {_number(worked.value)}"


def _number(value: Any) -> str:
    return format_elements(value)


def _factor(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _shape(array: Any) -> str:
    return str(tuple(array.shape))


# --- kinks ----------------------------------------------------------------------------------------


def ties_text(kinks: Sequence[Kink], left_out: Sequence[GraphNode], operands: Operands) -> str:
    """Every element on a kink or a tie, under the words of the convention, and the nodes that are
    not examined.
    """
    lines: list[str] = []
    if not kinks:
        lines.append(f"no element{' of the other nodes' * bool(left_out)} is on a kink or a tie")
    heading = ""
    for tie in kinks:
        title = f"{operands.text(tie.node)}  {tie.node.name}: {tie.convention}"
        if title != heading:
            lines.append(title)
            heading = title
        others = " or ".join(map(_short, tie.others))
        choice = f"; another choice gives {others}" if others else ""
        place = _operand(tie, operands) + (
            f"[{', '.join(map(str, tie.index))}]" if tie.index else ""
        )
        lines.append(f"    {place} = {_short(tie.value)} gets {_short(tie.used)}{choice}")
    lines += [f"{operands.text(node)}  {node.name}: not examined" for node in left_out]
    return "\n".join(lines)


def _operand(tie: Kink, operands: Operands) -> str:
    inputs = tie.node.node.op.inputs
    edge = tie.node.edges[inputs.index(tie.parameter)]
    if edge.node is None:
        return tie.parameter
    text = operands.text(edge.node, edge.output_nr)
    return text if all(c.isalnum() or c in "_#" for c in text) else f"({text})"


def ties_document(kinks: Sequence[Kink]) -> list[dict[str, Any]]:
    """The kinks as JSON."""
    return [
        {
            "node": tie.node.id,
            "operand": tie.parameter,
            "index": list(tie.index),
            "value": tie.value,
            "convention": tie.convention,
            "used": tie.used,
            "others": list(tie.others),
        }
        for tie in kinks
    ]


# --- paths ----------------------------------------------------------------------------------------


def paths_text(paths: Paths, name: str, operands: Operands) -> str:
    """Each path with its share, and their sum."""
    count = len(paths.paths)
    if not count:
        return f"no path leads to {name}"
    lines = [f"{count} path{'s lead' if count > 1 else ' leads'} to {name}:"]
    for position, path in enumerate(paths.paths, 1):
        names = " → ".join(
            f"{operands.text(node)} [{edge}]"
            for node, edge in zip(path.nodes, path.edges, strict=False)
        )
        lines += _wrapped(f"{position}. ".rjust(5), [*names.split(" → "), name])
        lines.append(block("     share ", _share(path.share)))
    grad = paths.leaf.grad
    agrees = grad is not None and _close(paths.total, grad.array)
    same = f", which is {name}.grad" if agrees else ""
    lines.append(block("     sum   ", _share(paths.total)) + same)
    for index in paths.cancelled[:5]:
        place = f"[{', '.join(map(str, index))}]" if index else "the value"
        shares = " + ".join(_short(float(path.share[index])) for path in paths.paths[:4])
        more = " + …" if count > 4 else ""
        left = _short(float(paths.total[index]))
        lines.append(f"     cancellation at {place}: {shares}{more} leaves {left}")
    return "\n".join(lines)


def _wrapped(lead: str, words: Sequence[str]) -> list[str]:
    """A path on lines of 80 columns, if no word is longer."""
    lines = [lead + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines.append(" " * len(lead) + f"→ {word}")
        else:
            lines[-1] += f" → {word}"
    return lines


def paths_document(paths: Paths) -> dict[str, Any]:
    """The paths as JSON."""
    return {
        "paths": [
            {
                "nodes": [node.id for node in path.nodes],
                "edges": list(path.edges),
                "share": number(path.share),
            }
            for path in paths.paths
        ],
        "sum": number(paths.total),
        "cancelled": [list(index) for index in paths.cancelled],
    }


def _close(left: Any, right: Any) -> bool:
    import numpy as np

    return bool(np.allclose(left, right, rtol=1e-4, atol=1e-6, equal_nan=True))


# --- saved values ---------------------------------------------------------------------------------


def saved_text(saved: SavedValues, operands: Operands) -> str:
    """What each node saved, in the order in which backward frees it."""
    if not saved.values:
        return "no node saved anything"
    rows = [_saved_row(value, operands) for value in saved.values]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["saved for the backward pass, in the order in which it is freed:"]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(("    " + "  ".join(cells)).rstrip())
    if any(path for path, _ in saved.by_module):
        lines += ["", "by the module that saved it, what only the graph keeps:"]
        width = max(len(path or _OUTSIDE) for path, _ in saved.by_module)
        lines += [
            f"    {(path or _OUTSIDE).ljust(width)}  {_bytes(size).rjust(8)}"
            f"  {size / max(saved.peak, 1):4.0%}"
            for path, size in saved.by_module
        ]
    lines.append(f"peak: {_bytes(saved.peak)} that only the graph keeps, when backward begins")
    return "\n".join(lines)


_OUTSIDE = "outside of all"
"""Stands for a module where none saved a value."""


def _saved_row(value: Saved, operands: Operands) -> list[str]:
    shape = ", ".join(map(str, value.array.shape))
    if value.held_by:
        note = f"is {value.held_by}, which keeps it"
    elif value.shared:
        note = "saved above already"
    else:
        note = f"freed after step {value.step}" if value.step else "kept"
    return [
        operands.text(value.node),
        value.node.name,
        value.name,
        f"({shape}) {value.array.dtype.name}",
        _bytes(int(value.array.nbytes)),
        note,
    ]


def saved_document(saved: SavedValues) -> dict[str, Any]:
    """The saved values as JSON."""
    return {
        "values": [
            {
                "node": value.node.id,
                "name": value.name,
                "shape": list(value.array.shape),
                "dtype": value.array.dtype.name,
                "bytes": int(value.array.nbytes),
                "held_by": value.held_by,
                "shared": value.shared,
                "freed_after_step": value.step or None,
            }
            for value in saved.values
        ],
        "by_module": [{"module": path, "bytes": size} for path, size in saved.by_module],
        "peak_bytes": saved.peak,
    }


# --- numbers --------------------------------------------------------------------------------------


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB"):
        count_in_unit = count / 1000
        if count_in_unit < 1000 or unit == "GB":
            return f"{count_in_unit:.1f} {unit}"
        count = int(count_in_unit)
    raise AssertionError


def _short(value: float) -> str:
    return f"{value:.6g}"


def _share(array: Any) -> str:
    return format_elements(array) if array.size <= 24 else f"of shape {tuple(array.shape)}"
