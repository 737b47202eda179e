"""The answer of `check` as text, and as JSON, schema `gradcli.check/1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.arrays.files.json import spelled
from gradcli.questions.check.check import (
    FINE,
    JUMP,
    KINK,
    NOT_FINITE,
    OUTSIDE,
    ROUNDING,
    SYMMETRIC,
    TOLERANCE,
    WRONG,
    Checked,
    Comparison,
    Element,
    fails,
    worst,
)
from gradcli.questions.why.suspects import Suspect
from gradcli.show.diagnostics.human import finding, span_object, wrapped
from gradcli.show.style import PLAIN, Style, one_line

SCHEMA = "gradcli.check/1"

_MOST_ROWS = 5

_WORDS = {
    FINE: "fine",
    ROUNDING: "rounding: the differences are no steadier than that",
    SYMMETRIC: "symmetric: one triangle is read, and both share its gradient",
    KINK: "kink: the slope is between those of both sides",
    JUMP: "jump: the function is not continuous here",
    NOT_FINITE: "not finite",
    OUTSIDE: "outside the domain: moved a little, the program has no finite value",
    TOLERANCE: "tolerance: what an iteration leaves that stops by one",
    WRONG: "wrong",
}


def check_text(
    results: Sequence[Checked],
    output: str | None,
    order: int,
    places: Sequence[Suspect] = (),
    style: Style = PLAIN,
) -> str:
    """Each input with its verdict and its worst elements, and what may have made them wrong."""
    of = "" if output is None else f" of {output}"
    along = "" if order == 1 else ", along a random direction,"
    kind = "gradient" if order == 1 else "second derivative"
    by_transform = [each.by_transform for each in results]
    if all(by_transform):
        kind = "derivatives of torch.func"
    elif any(by_transform):
        of = f"{of} and derivatives of torch.func"
    lines = [f"{kind}{of}{along} against central differences in float64", ""]
    for checked in results:
        count = len(checked.elements)
        some = _elements(count)
        if count < checked.size:
            some = f"{count} of {checked.size} elements checked"
        if checked.along:
            some = f"{_elements(checked.size)} along {count} random direction{'s' * (count > 1)}"
        name = style.paint(checked.label, "variable")
        top = checked.elements[0] if checked.elements else None
        apart = top is not None and top.verdict != FINE and top.error == top.error
        ending = f", apart by {top.error:.2g}" if top is not None and apart else ""
        role = "error" if fails(checked.verdict) else "strong"
        verdict = checked.verdict if checked.elements else "not checked"
        lines.append(f"{name}  {style.paint(verdict, role)}  {some}{ending}")
        rows = [each for each in checked.elements if each.verdict != FINE][:_MOST_ROWS]
        infinite = [each for each in rows if each.verdict == NOT_FINITE][1:]
        rows = [each for each in rows if each not in infinite]
        if rows:
            lines += _rows(rows, checked.along)
        if checked.slip:
            lines.append(f"  {checked.slip}")
    if any(each.verdict == NOT_FINITE for each in results):
        lines += ["", "what is not finite: see `gradcli blame`"]
    for each in places:
        lines += ["", finding(each.text, each.place, each.help, (), style)]
    return "\n".join(lines) + "\n"


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


def _rows(rows: Sequence[Element], along: bool) -> list[str]:
    table = [["direction" if along else "element", "gradient", "differences", "verdict"]]
    for row in rows:
        index = f"[{', '.join(map(str, row.index))}]"
        table.append([index, _digits(row.analytic), _digits(row.numeric), _words(row)])
    widths = [max(len(line[column]) for line in table) for column in range(3)]
    return [
        "  " + "  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[3]])
        for line in table
    ]


def _words(row: Element) -> str:
    if row.verdict == KINK and row.sides is not None:
        left, right = row.sides
        return f"kink: {left:.4g} to the left, {right:.4g} to the right"
    if row.verdict == OUTSIDE and row.reason:
        return f"outside the domain: moved a little, the program fails: {one_line(row.reason)}"
    return _WORDS[row.verdict]


def _digits(number: float) -> str:
    return f"{number:.7g}"


def comparison_text(comparisons: Sequence[Comparison], style: Style = PLAIN) -> str:
    """Each gradient made by hand with what is likely wrong."""
    lines = ["the gradient made by hand, against the backward pass", ""]
    for each in comparisons:
        name = style.paint(f"{each.name}.grad", "variable")
        role = "error" if fails(each.verdict) else "strong"
        lines.append(f"{name}  {style.paint(each.verdict, role)}")
        if each.diagnosis:
            lines.append("  " + wrapped(each.diagnosis, 2).replace("\n", "\n  "))
            if each.element is not None and each.given is not None:
                at, given, right = each.element, each.given, each.right
                index = f"[{', '.join(map(str, at))}]: " if at else ""
                lines.append(f"  {index}{_digits(given[at])} given, {_digits(right[at])} right")
    return "\n".join(lines) + "\n"


def check_document(
    checked: Sequence[Checked], output: str | None, order: int, places: Sequence[Suspect] = ()
) -> dict[str, Any]:
    """The comparison with differences as a JSON object."""
    return {
        "schema": SCHEMA,
        "output": output,
        "order": order,
        "verdict": worst(checked),
        "suspects": [
            {"text": each.text, **span_object(each.place), "help": each.help} for each in places
        ],
        "inputs": [
            {
                "name": each.name,
                "verdict": each.verdict,
                "checked": 0 if each.along else len(each.elements),
                "directions": len(each.elements) if each.along else 0,
                "size": each.size,
                "slip": each.slip or None,
                "elements": [
                    {
                        "index": list(element.index),
                        "gradient": spelled(element.analytic),
                        "differences": spelled(float(element.numeric)),
                        "step": element.step,
                        "verdict": element.verdict,
                        "sides": None if element.sides is None else list(element.sides),
                    }
                    for element in each.elements
                ],
            }
            for each in checked
        ],
    }


def comparison_document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The comparison with given gradients as a JSON object."""
    return {
        "schema": SCHEMA,
        "verdict": WRONG if any(each.diagnosis for each in comparisons) else FINE,
        "inputs": [
            {
                "name": each.name,
                "verdict": each.verdict,
                "slip": each.diagnosis or None,
                "element": None if each.element is None else list(each.element),
                "given": None if each.given is None else spelled(each.given.tolist()),
                "right": spelled(each.right.tolist()),
            }
            for each in comparisons
        ],
    }
