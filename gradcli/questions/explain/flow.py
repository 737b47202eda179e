"""How gradients flow through the layers of a model: norms, gains, zeros, and what gets none; as
text, and as JSON, schema `gradcli.flow/1`; and over the steps of a run that was watched, schema
`gradcli.watch/1`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.files.json import spelled
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.graph import ModuleCall
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Arrival, Event, Step
from gradcli.autograd.tensor import AccumulateGrad, Tensor
from gradcli.record import Record
from gradcli.recorded.result import Gradient
from gradcli.recorded.watched import Place, Table, Watched
from gradcli.show.answer import Answer
from gradcli.show.diagnostics.human import wrapped
from gradcli.show.style import counted, escaped

_VANISHING, _EXPLODING = 1e-3, 1e3
"""Not healthy: an element of a weight's gradient beside the largest weight's, and a norm."""

_SQUASHING = {"SigmoidBackward0": "Tanh or ReLU for Sigmoid, ", "TanhBackward0": "ReLU for Tanh, "}
"""What to write for functions whose slope shrinks gradients, by the node."""


class Measured(Record):
    """What is known of a gradient that was let go.

    Attributes:
        squares: the sum of the squares of its elements.
        zeros, nonfinite: how many elements are 0, and how many NaN or infinite.
    """

    size: int
    squares: float
    zeros: int
    nonfinite: int


def measured(array: Any) -> Measured:
    """What the events of a pass keep of a gradient."""
    flat = np.asarray(to_host(forced(array))).reshape(-1)
    if flat.dtype.kind == "c":
        size = flat.size
        parts = flat.astype(complex).view(float).reshape(size, 2)
        zeros, bad = (parts == 0).all(axis=1), ~np.isfinite(parts).all(axis=1)
        flat = parts.reshape(-1)
        return Measured(size, float(flat @ flat), int(zeros.sum()), int(bad.sum()))
    squares, zeros, nonfinite = 0.0, 0, 0
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(float)
        squares += float(block @ block)
        zeros += block.size - int(np.count_nonzero(block))
        nonfinite += block.size - int(np.count_nonzero(np.isfinite(block)))
    return Measured(flat.size, squares, zeros, nonfinite)


_BLOCK = 1 << 16
"""Elements that are measured at a time, as numbers of twice the size."""


class Flow(Record):
    """The gradient of one parameter in the last backward pass.

    Attributes:
        norm: its length, None where there is none.
        gain: what its layer made of the gradient's length on the way back, None where the layer
            passes none on.
        zeros, nonfinite: the shares of elements that are 0, and that are NaN or infinite.
        reason: why there is none, "" where there is one.
    """

    name: str
    shape: tuple[int, ...]
    norm: float | None
    gain: float | None
    zeros: float
    nonfinite: float
    reason: str


def flows(
    parameters: Iterable[tuple[str, Tensor]],
    gradients: Sequence[Gradient],
    events: Sequence[Event],
    calls: Mapping[Node, ModuleCall],
    owners: Mapping[str, Any],
) -> list[Flow]:
    """A row for each parameter, in the order of the modules.

    Args:
        gradients: the result's, which have the reasons of those that are none.
        events: those of the backward pass, which keep what `measured` gives of each gradient.
        calls: the call of a module in which each node was made.
        owners: the module that each parameter belongs to, by the parameter's path.
    """
    arrived = _arrived(events)
    reasons = {gradient.tensor: gradient.reason for gradient in gradients}
    gains = _gains(events, calls)
    rows = []
    for name, parameter in parameters:
        shape = tuple(parameter.array.shape)
        gradient = arrived.get(parameter)
        if gradient is None:
            none = "no gradient reached it" if parameter.grad is None else "none in this pass"
            reason = reasons.get(parameter) or none
            rows.append(Flow(name, shape, None, None, 0.0, 0.0, reason))
            continue
        size = max(gradient.size, 1)
        gain = gains.get(id(owners.get(name)))
        zeros, nonfinite = gradient.zeros / size, gradient.nonfinite / size
        rows.append(Flow(name, shape, _norm([gradient]), gain, zeros, nonfinite, ""))
    return rows


def _arrived(events: Sequence[Event]) -> dict[Tensor, Measured]:
    """What reached each leaf: `torch.autograd.grad` returns it, and stores nothing in the leaf."""
    arrived: dict[Tensor, Measured] = {}
    for event in events:
        if isinstance(event, Step):
            for node, gradient in zip(event.node.next_nodes, event.fitted, strict=True):
                if isinstance(node, AccumulateGrad) and gradient is not None:
                    arrived[node.variable] = gradient
        elif isinstance(event.node, AccumulateGrad):
            arrived[event.node.variable] = (
                event.incoming if isinstance(event, Arrival) else event.new
            )
    return arrived


def in_use(
    parameters: Sequence[tuple[str, Tensor]], events: Sequence[Event], names: Collection[str]
) -> list[tuple[str, Tensor]]:
    """The parameters without those of a model that the program made before another one: nothing
    names it, and no gradient reached it.
    """
    reached = _arrived(events)
    kept = [
        (path, tensor)
        for path, tensor in parameters
        if tensor in reached or path.partition(".")[0].partition("[")[0] in names
    ]
    return kept or list(parameters)


def free_leaves(
    leaves: Iterable[tuple[str, Tensor]],
    parameters: Sequence[tuple[str, Tensor]],
    shown: Sequence[Event],
    every: Sequence[Event],
) -> list[tuple[str, Tensor]]:
    """The leaves that are no parameters of modules; none that another pass than the one shown only
    returns a gradient of, as of the point that an implicit gradient is taken at.
    """
    known = {id(parameter) for _, parameter in parameters}
    returned = _arrived(every).keys() - _arrived(shown).keys()
    returned -= {event.node.variable for event in every if isinstance(event, Arrival)}
    return [each for each in leaves if id(each[1]) not in known and each[1] not in returned]


def passes_of(
    shown: Sequence[Event], events: Sequence[Event], unrecorded: Mapping[Tensor, int]
) -> int:
    """How many backward passes reached a leaf that the pass `shown` reaches; of passes that are not
    recorded, it is given how many reached each.

    A leaf that passes from several outputs share tells of too many: the one with the fewest counts.
    """
    times = Counter(unrecorded)
    times.update(event.node.variable for event in events if isinstance(event, Arrival))
    reached = _arrived(shown)
    return min((times[leaf] for leaf in reached if leaf in times), default=1)


def _gains(events: Sequence[Event], calls: Mapping[Node, ModuleCall]) -> dict[int, float]:
    """For each module the length of the gradient that left it over that of the one that came."""
    came: dict[int, list[Measured]] = {}
    left: dict[int, list[Measured]] = {}
    for event in events:
        call = calls.get(event.node) if isinstance(event, Step) else None
        if call is None or not isinstance(event, Step):
            continue
        key = id(call.module)
        if call.result is not None and call.result() is event.node:
            came.setdefault(key, []).extend(g for g in event.grads if g is not None)
        for node, gradient in zip(event.node.next_nodes, event.fitted, strict=True):
            if node is None or gradient is None or isinstance(node, AccumulateGrad):
                continue
            if calls.get(node) is not call:
                left.setdefault(key, []).append(gradient)
    gains = {}
    for key, arrays in left.items():
        before = _norm(came.get(key, []))
        if before:
            gains[key] = _norm(arrays) / before
    return gains


def _norm(gradients: Sequence[Measured]) -> float:
    return float(np.sqrt(sum(each.squares for each in gradients)))


def which_pass(
    shown: Sequence[Event],
    every: Sequence[Event],
    passes: int,
    name: str,
    *,
    own: bool,
    reaches_all: bool,
) -> str:
    """Which of the backward passes of a run is shown; "" where there is only that one.

    Args:
        shown, every: the events of the pass that is shown, and of all passes.
        passes: how many there were that reach what it reaches, that one counted.
        name: what it began with.
        own: whether the program itself goes backward from that.
        reaches_all: whether no parameter is without a gradient.
    """
    several = passes > 1 or bool(shown and every[0].during != shown[0].during)
    if several and not own:
        return (
            f"shown is a backward pass from {name} that the program does not run;"
            " `--of` chooses what its own began with"
        )
    if own and shown and every[-1].during != shown[0].during:
        return f"shown is the last backward pass from {name}, behind which others ran, {_ADDED}"
    if passes > 1:
        return f"shown is the last of {passes} backward passes, {_ADDED}"
    return f"shown is the backward pass from {name}" if several and not reaches_all else ""


_ADDED = "without what `.grad` held"


def finding(
    rows: Sequence[Flow], events: Sequence[Event], which: str = "", *, clips: bool = False
) -> str:
    """What the rows come to in a sentence: vanishing, exploding, lost; "" for a healthy flow.

    Args:
        which: which of several backward passes is shown.
        clips: whether the program clips gradients behind its passes.
    """
    norms = [row.norm for row in rows if row.norm is not None]
    said = []
    if which:
        said.append(which)
    elif held := _held_before(events):
        said.append(
            f"{held} parameters had a gradient before the pass, which is added to it and is not"
            " shown: `zero_grad()` before `backward()` clears it"
        )
    missing = sum(row.norm is None for row in rows)
    if missing:
        there = " in it" if which else ""
        said.append(f"{missing} of {len(rows)} parameters get no gradient{there}")
    bad = [row.name for row in rows if row.nonfinite]
    if bad:
        said.append(f"NaN or infinity reaches {len(bad)}, {bad[0]} among them: `gradcli blame`")
    sound = [norm for norm in norms if np.isfinite(norm)]
    dead = sum(norm == 0 for norm in sound)
    if dead:
        said.append(f"{dead} are 0 everywhere")
    positive = [row for row in rows if row.norm and np.isfinite(row.norm)]
    most = max(positive, key=lambda row: row.norm or 0.0, default=None)
    if most is not None and most.norm is not None and most.norm > _EXPLODING:
        bounded = "clip_grad_norm_() before step() bounds them"
        if clips:
            bounded = "what the program's clipping leaves of them is not shown"
        bounded = "" if bad else f"; {bounded}"
        said.append(f"gradients explode: that of {most.name} has the norm {most.norm:.3g}{bounded}")
    elif not bad:
        said += _vanishing(positive, events)
    return "; ".join(said)


def _vanishing(rows: Sequence[Flow], events: Sequence[Event]) -> list[str]:
    """That the gradient of one parameter is much smaller than that of another, if it is.

    Weights of different sizes compare by element; biases are another kind.
    """
    weights = _of_blocks([row for row in rows if len(row.shape) > 1] or rows)
    if not weights or _element(weights[0]) >= _VANISHING * _element(weights[-1]):
        return []
    nodes = {e.node.node_name for e in events if isinstance(e, Step)}
    instead = next((text for name, text in _SQUASHING.items() if name in nodes), "")
    return [
        f"gradients vanish: that of {weights[0].name} is, by element,"
        f" {_element(weights[-1]) / _element(weights[0]):.2g} times below that of"
        f" {weights[-1].name}; {instead}residual connections, normalisation between the layers"
        " keep them"
    ]


_NUMBERED = re.compile(r"(.*(?:\.\d+|\[\d+\]))\.")


def _of_blocks(rows: Sequence[Flow]) -> list[Flow]:
    """The row of each numbered block of a model with the largest elements, from the smallest of
    them: an attention's queries and keys have small gradients where others of it have not.
    """
    largest: dict[str, Flow] = {}
    for row in rows:
        numbered = _NUMBERED.match(row.name)
        block = row.name if numbered is None else numbered[1]
        if block not in largest or _element(largest[block]) < _element(row):
            largest[block] = row
    return sorted(largest.values(), key=_element)


def _held_before(events: Sequence[Event]) -> int:
    """How many leaves had a gradient that is not 0 before a pass brought one."""
    olds = [each.old for each in events if isinstance(each, Arrival)]
    return sum(each is not None and bool(np.asarray(forced(each)).any()) for each in olds)


def _element(row: Flow) -> float:
    """The root of the mean square of a gradient's elements."""
    return (row.norm or 0.0) / math.sqrt(max(math.prod(row.shape), 1))


# --- told -----------------------------------------------------------------------------------------


SCHEMA = "gradcli.flow/1"

_HEAD = ("parameter", "shape", "norm", "gain", "zeros", "NaN, inf")


_MOST_LOST = 4
"""So many parameters of a model that all get no gradient have a line each."""


def flow_text(rows: Sequence[Flow], said: str) -> str:
    """A table with a line for each parameter, or one for a model of which none gets a gradient, and
    what is wrong with the flow.
    """
    if not rows:
        return "the program has no module with parameters\n"
    table: list[tuple[str, ...]] = [_HEAD]
    for model, group in itertools.groupby(rows, lambda row: row.name.partition(".")[0]):
        parameters = list(group)
        reasons = {row.reason for row in parameters}
        if len(parameters) > _MOST_LOST and len(reasons) == 1 and parameters[0].norm is None:
            none = f"None: {parameters[0].reason}"
            table.append((model, f"all {len(parameters)}", none))
        else:
            table += [_cells(row) for row in parameters]
    widths = [max(len(line[n]) for line in table if len(line) == len(_HEAD)) for n in range(6)]
    widths[:2] = [max(len(line[n]) for line in table) for n in range(2)]
    lines = []
    for line in table:
        shown = "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=False))
        lines.append(shown.rstrip())
    return "\n".join([*lines, *(["", wrapped(said)] if said else [])]) + "\n"


def _cells(row: Flow) -> tuple[str, ...]:
    shape = f"[{', '.join(map(str, row.shape))}]"
    if row.norm is None:
        return row.name, shape, f"None: {row.reason}"
    gain = "" if row.gain is None else f"× {row.gain:.3g}"
    return (
        row.name,
        shape,
        f"{row.norm:.4g}",
        gain,
        share_text(row.zeros),
        share_text(row.nonfinite),
    )


def share_text(share: float) -> str:
    """A share in per cent, "" for none."""
    return "" if not share else f"{100 * share:.3g}%"


def flow_document(rows: Sequence[Flow], said: str) -> dict[str, Any]:
    """The rows as a JSON object."""
    return {
        "schema": SCHEMA,
        "finding": said or None,
        "parameters": [
            {
                "name": row.name,
                "shape": list(row.shape),
                "norm": None if row.norm is None else spelled(row.norm),
                "gain": None if row.gain is None else spelled(row.gain),
                "zeros": row.zeros,
                "nonfinite": row.nonfinite,
                "reason": row.reason or None,
            }
            for row in rows
        ],
    }


_WIDTH = 20

_COLUMNS = ("gradient", "norm", "min", "max", "zeros", "NaN, inf")


def gradients_table(gradients: Sequence[tuple[str, Any]], ascii: bool = False) -> str:
    """A line for each named array, the bar as long as its norm beside the largest."""
    rows = [(name, *_numbers(np.asarray(array))) for name, array in gradients]
    largest = max((row[1] for row in rows if np.isfinite(row[1])), default=0.0)
    table = [_COLUMNS, *((row[0], *(f"{n:.4g}" for n in row[1:4]), *row[4:]) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_COLUMNS))]
    bars = ["", *(_bar(row[1] / largest if largest else 0.0, ascii) for row in rows)]
    lines = []
    for line, bar in zip(table, bars, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        lines.append("  ".join([*cells, bar]).rstrip())
    return "\n".join(lines) + "\n"


def _numbers(array: Any) -> tuple[float, float, float, str, str]:
    """Norm, smallest and largest element, the shares of zeros and of what is not finite."""
    values = np.abs(array) if array.dtype.kind == "c" else array
    values = values.astype(np.float64).ravel()
    if not values.size:
        return 0.0, float("nan"), float("nan"), "", ""
    zeros, rest = (values == 0).mean(), (~np.isfinite(values)).mean()
    norm = float(np.linalg.norm(values))
    least, most = float(values.min()), float(values.max())
    return norm, least, most, share_text(float(zeros)), share_text(float(rest))


def _bar(share: float, ascii: bool) -> str:
    if not np.isfinite(share):
        return ""
    eighths = round(share * _WIDTH * 8)
    if ascii:
        return "#" * max(eighths // 8, share > 0)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


# --- runs that were watched -----------------------------------------------------------------------


WATCH_SCHEMA = "gradcli.watch/1"

_WATCHED_COLUMNS = 24
_BARS = "▁▂▃▄▅▆▇█"
_WATCHED_HEAD = ("parameter", "shape", "norm over the steps", "first", "last", "largest", "zeros",
         "update/weight")  # fmt: skip
_STEP_VANISHING, _STEP_EXPLODING = 1e-6, 1e3
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
            parts.append(_lines([_WATCHED_HEAD, *map(_watched_cells, rows)]))
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


def _watched_cells(row: Course) -> tuple[str, ...]:
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
    whole = [line for line in table if len(line) == len(_WATCHED_HEAD)]
    widths = [max(len(line[n]) for line in whole) for n in range(len(_WATCHED_HEAD))]
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
    for part in np.array_split(norms, min(_WATCHED_COLUMNS, len(norms))):
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
        if most > _STEP_EXPLODING:
            step = int(row.steps[np.nonzero(row.norms == most)[0][0]])
            said.append(
                f"gradients explode: that of {escaped(row.name)} had the norm {most:.3g} at step"
                f" {step:,}; clip_grad_norm_() before step() bounds them"
            )
    weak = [
        r for r in rows if len(r.shape) > 1 and len(r.finite) and r.finite.max() < _STEP_VANISHING
    ]
    if weak:
        said.append(
            f"gradients vanish: those of {_named([row.name for row in weak])} stayed below"
            f" {_STEP_VANISHING:g}"
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
        "schema": WATCH_SCHEMA,
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
