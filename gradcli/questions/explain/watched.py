"""The flow of gradients over the steps of a run that was watched, as text, and as JSON, schema
`gradcli.watch/1`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.files.json import spelled
from gradcli.questions.explain.flow import share_text
from gradcli.record import Record
from gradcli.recorded.watched import Place, Table, Watched
from gradcli.show.answer import Answer
from gradcli.show.diagnostics.human import wrapped
from gradcli.show.style import counted, escaped

SCHEMA = "gradcli.watch/1"

_COLUMNS = 24
_BARS = "▁▂▃▄▅▆▇█"
_HEAD = ("parameter", "shape", "norm over the steps", "first", "last", "largest", "zeros",
         "update/weight")  # fmt: skip
_VANISHING, _EXPLODING = 1e-6, 1e3
_MOST_NAMED = 8


class Course(Record):
    """The figures of one parameter over the steps.

    Attributes:
        norms, zeros, updates: a figure for each step; -1 for none.
        none: the reasons of those that are none: reason, first step, last step.
    """

    name: str
    shape: tuple[int, ...]
    optimizer: str
    steps: Any
    norms: Any
    zeros: Any
    updates: Any
    none: list[tuple[str, int, int]]

    @property
    def present(self) -> Any:
        """The norms of the gradients that there were."""
        return self.norms[self.norms != -1]

    @property
    def finite(self) -> Any:
        """Those that are finite."""
        present = self.present
        return present[np.isfinite(present)]


def answer_of(watched: Watched) -> Answer:
    """The figures of each parameter over the steps."""
    return Answer(lambda _: _text(watched), lambda: _document(watched))


def courses(watched: Watched) -> list[Course]:
    """The figures by parameter."""
    return [each for table in watched.tables for each in _courses_of(watched, table)]


def _courses_of(watched: Watched, table: Table) -> list[Course]:
    rows = []
    for place, number in enumerate(table.parameters):
        parameter = watched.parameters[number]
        none = [
            (each.reason, each.first, each.last) for each in table.none if each.parameter == number
        ]
        figures = table.figures[:, place, :]
        rows.append(
            Course(
                parameter.name,
                parameter.shape,
                table.optimizer,
                table.steps,
                figures[:, 0],
                figures[:, 1],
                figures[:, 2],
                none,
            )
        )
    return rows


# --- text ---------------------------------------------------------------------------------------


def _text(watched: Watched) -> str:
    tables = [(table, _courses_of(watched, table)) for table in watched.tables]
    left_out = f"; the GradScaler left out {watched.skipped:,}" if watched.skipped else ""
    several = len(tables) > 1
    parts = [f"{counted(watched.steps, 'step')}{left_out}"] if several or not tables else []
    for table, rows in tables:
        parts.append(_headline(table, several) + ("" if several else left_out))
        if rows:
            parts.append(_lines([_HEAD, *map(_cells, rows)]))
    every = [row for _, rows in tables for row in rows]
    parts += [wrapped(each) for each in findings(watched, every)]
    parts += [wrapped(f"note: {escaped(each)}") for each in watched.notes]
    return "\n\n".join(parts) + "\n"


def _headline(table: Table, has_name: bool) -> str:
    """How many steps an optimizer made, or calls of its closure, and what became of the loss."""
    said = counted(len(table.steps), "closure call" if table.has_closures else "step")
    if table.optimizer:
        named = has_name and table.name
        said += f" of {escaped(f'{table.name}, {table.optimizer}' if named else table.optimizer)}"
    if len(table.losses):
        said += f", loss {table.losses[0]:.4g}"
    if len(table.losses) > 1:
        said += f" to {table.losses[-1]:.4g}"
    return said


def _cells(row: Course) -> tuple[str, ...]:
    shape = f"[{', '.join(map(str, row.shape))}]"
    present, finite = row.present, row.finite
    if not len(present):
        reason = row.none[0][0] if row.none else "no gradient reached it"
        return escaped(row.name), shape, f"None: {escaped(reason)}"
    zeros = row.zeros[(row.norms != -1) & (row.zeros >= 0)]
    updates = row.updates[row.updates != -1]
    updates = updates[np.isfinite(updates)]
    return (
        escaped(row.name),
        shape,
        bars(row.norms),
        f"{present[0]:.3g}",
        f"{present[-1]:.3g}",
        f"{finite.max():.3g}" if len(finite) else "",
        share_text(float(zeros.mean())) if len(zeros) else "",
        f"{np.median(updates):.2g}" if len(updates) else "",
    )


def _lines(table: list[tuple[str, ...]]) -> str:
    whole = [line for line in table if len(line) == len(_HEAD)]
    widths = [max(len(line[n]) for line in whole) for n in range(len(_HEAD))]
    widths[:2] = [max(len(line[n]) for line in table) for n in range(2)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=False)).rstrip()
        for line in table
    )


def bars(norms: Any) -> str:
    """Norms over the steps as a row of bars, by their logarithms: `·` for none, `!` for what is not
    finite.
    """
    finite = norms[np.isfinite(norms) & (norms > 0)]
    low, high = (np.log(finite.min()), np.log(finite.max())) if len(finite) else (0.0, 0.0)
    shown = ""
    for part in np.array_split(norms, min(_COLUMNS, len(norms))):
        present = part[part != -1]
        if not len(present):
            shown += "·"
        elif not np.isfinite(present).all():
            shown += "!"
        else:
            mean = float(np.exp(np.log(np.maximum(present, 1e-45)).mean()))
            share = (np.log(max(mean, 1e-45)) - low) / (high - low) if high > low else 0.5
            shown += _BARS[int(np.clip(share, 0, 0.999) * len(_BARS))]
    return shown


def findings(watched: Watched, rows: list[Course]) -> list[str]:
    """What the figures come to: what no step reached, where it is not finite, what grows."""
    said = []
    unreached = [each.name for each in watched.unreached()]
    if unreached:
        count = f"{len(unreached)} of {len(watched.parameters)} parameters"
        said.append(f"no step ever reached {count}: {_named(unreached)}")
    said += _unheld(watched)
    for row in rows:
        if row.none and len(row.present):
            reason, first, last = row.none[0]
            said.append(f"{escaped(row.name)} had none in some of the steps {first:,} to {last:,}:"
                        f" {escaped(reason)}")  # fmt: skip
    if len(said) > _MOST_NAMED:
        said[_MOST_NAMED:] = [f"and {len(said) - _MOST_NAMED} more that had none at times"]
    if watched.nonfinite is not None:
        said.append(f"step {watched.nonfinite.step:,} is not finite: `gradcli blame`")
    grown = [(row.finite.max(), row) for row in rows if len(row.finite)]
    if grown:
        most, row = max(grown, key=lambda pair: float(pair[0]))
        if most > _EXPLODING:
            step = int(row.steps[np.nonzero(row.norms == most)[0][0]])
            said.append(
                f"gradients explode: that of {escaped(row.name)} had the norm {most:.3g} at step"
                f" {step:,}; clip_grad_norm_() before step() bounds them"
            )
    weak = [r for r in rows if len(r.shape) > 1 and len(r.finite) and r.finite.max() < _VANISHING]
    if weak:
        said.append(
            f"gradients vanish: those of {_named([row.name for row in weak])} stayed below"
            f" {_VANISHING:g}"
        )
    return said


def _unheld(watched: Watched) -> list[str]:
    """The parameters that no optimizer holds, with why where that is known."""
    why: dict[str, list[str]] = {}
    reasons = {
        number: f"{_at(place)}, behind the {kind} of {_at(of_optimizer)}"
        for number, place, kind, of_optimizer in watched.late
        if place is not None and of_optimizer is not None
    }
    for number in watched.unheld:
        why.setdefault(reasons.get(number, ""), []).append(watched.parameters[number].name)
    return [
        f"no optimizer holds {_named(names)}"
        + (f": made at {escaped(reason)}, which took its parameters before" if reason else "")
        for reason, names in why.items()
    ]


def _at(place: Place) -> str:
    return f"{place.file}:{place.line}"


def _named(names: list[str]) -> str:
    shown = names[:_MOST_NAMED]
    more = len(names) - len(shown)
    return escaped(", ".join(shown)) + (f" and {more} more" if more else "")


# --- JSON ---------------------------------------------------------------------------------------


def _document(watched: Watched) -> dict[str, Any]:
    rows = courses(watched)
    nonfinite = watched.nonfinite
    return {
        "schema": SCHEMA,
        "steps": watched.steps,
        "left_out": watched.skipped,
        "nonfinite_step": None if nonfinite is None else nonfinite.step,
        "unreached": [each.name for each in watched.unreached()],
        "unheld": [watched.parameters[each].name for each in watched.unheld],
        "optimizers": [
            {
                "optimizer": table.optimizer or None,
                "name": table.name or None,
                "closure_calls": table.has_closures,
                "steps": table.steps.tolist(),
                "losses": [spelled(float(each)) for each in table.losses],
            }
            for table in watched.tables
        ],
        "parameters": [
            {
                "name": row.name,
                "shape": list(row.shape),
                "optimizer": row.optimizer or None,
                "norms": _figures(row.norms),
                "zeros": _figures(row.zeros),
                "updates": _figures(row.updates),
                "none": [
                    {"reason": reason, "first": first, "last": last}
                    for reason, first, last in row.none
                ],
            }
            for row in rows
        ],
        "findings": findings(watched, rows),
        "notes": watched.notes,
    }


def _figures(column: Any) -> list[Any]:
    return [None if each == -1 else spelled(float(each)) for each in column]
