"""What `blame` says of a run that was watched: the first step that is not finite, which the watcher
ran again under PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gradcli.ops.load  # noqa: F401  (fills the catalogue)
from gradcli.arrays.dtypes import DTYPES
from gradcli.errors import Source, Span
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.op import Op, registry
from gradcli.questions.blame.find import Blamed, number_text
from gradcli.questions.blame.nonfinite import BACKWARD, DATA, FORWARD, FirstNonFinite, Operand
from gradcli.questions.blame.tell import SCHEMA, blamed_object, facts, growth_text, hint
from gradcli.recorded.watched import NonFinite, Place, Watched
from gradcli.show.answer import Answer
from gradcli.show.diagnostics.human import finding, wrapped
from gradcli.show.style import Style, block, counted, escaped

_MOST_NAMES = 4

_ALIASES = {
    "native_layer_norm": "layer_norm",
    "native_batch_norm": "batch_norm",
    "nll_loss_forward": "nll_loss",
    "linalg_vector_norm": "norm",
    "native_group_norm": "group_norm",
}
"""Operations that the catalogue has under another name."""


def answer_of(watched: Watched) -> Answer:
    """What was found of the first step that is not finite."""
    return Answer(lambda style: _text(watched, style), lambda: _document(watched))


def blamed_of(watched: Watched, report: NonFinite) -> Blamed:
    """An operation of PyTorch's, or what entered, as `blame` has those of its own runs."""
    dtype = DTYPES[report.dtype].numpy_dtype
    with np.errstate(all="ignore"):
        array = np.asarray(np.nan if report.value is None else report.value).astype(dtype)
    operands = [
        Operand(each.parameter, each.parameter, each.value, each.low, each.high)
        for each in report.operands
    ]
    computed = report.phase in (FORWARD, BACKWARD)
    entry = _entry_of(report.op) if computed else None
    phase = report.phase if computed else DATA
    nonfinite = FirstNonFinite(
        phase,
        entry,
        report.called or _short(report.op),
        _span(report.place),
        array,
        operands,
        incoming=report.incoming,
        element=(),
    )
    nonfinite.element = report.element
    nonfinite.module = report.module
    blamed = Blamed(nonfinite, None, report.spoilt)
    if report.growth is not None and blamed.cause == "overflow":
        ratio = number_text(round(report.growth[1], 2))
        is_backward = report.phase == BACKWARD
        blamed.grows = f"the gradient grows {ratio}-fold" if is_backward else f"{ratio}-fold"
        if report.growing is not None:
            blamed.grows += f" ({report.growing.file}:{report.growing.line})"
    if not computed:
        blamed.cause, blamed.text = _entered(report)
    return blamed


def _entered(nonfinite: NonFinite) -> tuple[str, str]:
    value = "what is not finite" if nonfinite.value is None else number_text(nonfinite.value)
    text = f"{nonfinite.called} holds {value}"
    if nonfinite.phase == "data" and nonfinite.count > 1:
        text += f", and {nonfinite.count:,} numbers that are not finite"
        text += f", in {nonfinite.rows:,} rows" if nonfinite.rows else ""
    kinds = {"parameter": "from a parameter", "constant": "from a constant"}
    return kinds.get(nonfinite.phase, "from the data"), text


def _short(op: str) -> str:
    """The name of an operation without its namespace and overload: `softmax`."""
    name = op.removeprefix("aten.").partition(".")[0].strip("_")
    return _ALIASES.get(name, name)


def _entry_of(op: str) -> Op | None:
    """The catalogue's entry of an operation of PyTorch's, which knows where it is not finite."""
    bring_all()
    return registry.get(_short(op))


def _span(place: Place | None) -> Span | None:
    if place is None:
        return None
    text = place.text or "?"
    return Span(Source(place.file, text, max(place.line, 1)), 0, len(text))


# --- text ---------------------------------------------------------------------------------------


def _text(watched: Watched, style: Style) -> str:
    nonfinite = watched.nonfinite
    if nonfinite is None:
        left = f", but {watched.skipped:,} that the GradScaler left out" if watched.skipped else ""
        said = f"the losses and gradients of {counted(watched.steps, 'step')} are finite{left}"
        notes = [wrapped(f"note: {escaped(each)}") for each in watched.notes]
        return "\n".join([f"nothing to blame: {said}", *notes]) + "\n"
    spoilt = list(nonfinite.spoilt) or ["the loss"]
    hidden = len(spoilt) - _MOST_NAMES + nonfinite.more
    if hidden > 1:
        spoilt = [*spoilt[:_MOST_NAMES], f"{hidden} more"]
    verb = "is" if len(spoilt) == 1 else "are"
    listed = " and ".join([", ".join(spoilt[:-1]), spoilt[-1]] if spoilt[1:] else spoilt)
    head = f"step {nonfinite.step:,} of {watched.steps:,}: "
    named = f"{escaped(listed)} {verb} not finite"
    if not nonfinite.again:
        return "\n\n".join([wrapped(f"{head}{named}"), *_unrepeated(nonfinite)]) + "\n"
    blamed = blamed_of(watched, nonfinite)
    parts = [wrapped(f"{head}{named}: {blamed.cause}, {_where(nonfinite)}")]
    parts += facts(blamed, style)
    parts += [_source(nonfinite, style), _chain(nonfinite), _cure(nonfinite, blamed, style)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _where(nonfinite: NonFinite) -> str:
    if nonfinite.phase in (FORWARD, BACKWARD):
        return f"in the {nonfinite.phase} pass of {escaped(_short(nonfinite.op))}"
    return f"where {escaped(nonfinite.called)} is read first"


def _unrepeated(nonfinite: NonFinite) -> list[str]:
    """What the hooks saw of a step that was not run again."""
    ran = nonfinite.reason.startswith("run again, ")
    before = "" if ran else "the step could not be run again: "
    parts = [wrapped(f"{before}{escaped(nonfinite.reason)}")]
    if nonfinite.seen:
        path, kind = nonfinite.seen[0]
        text = f"the first module whose result was not finite: {path or 'a module'}, {kind}"
        parts.append(wrapped(escaped(text)))
    elif ran:
        pass  # where it began is not known
    elif "the loss" not in nonfinite.spoilt:
        parts.append("all modules' results were finite: it began in the backward pass")
    else:
        parts.append("all modules' results were finite: it began behind them, in the loss")
    return parts


def _source(nonfinite: NonFinite, style: Style) -> str:
    source = nonfinite.source
    if source is None:
        return ""
    called = "a constant" if source.kind == "constant" else f"{source.kind}, {source.name}"
    text = f"the infinity that went in is {called}"
    return finding(text, _span(source.place), None, (), style)


def _chain(nonfinite: NonFinite) -> str:
    """The way from there to the loss, or to a gradient."""
    if not nonfinite.chain:
        return ""
    rows = []
    for op, module, place in nonfinite.chain:
        at = "" if place is None else f"{place.file}:{place.line}"
        rows.append((op.removeprefix("aten."), "" if module is None else module[0], at))
    widths = [max(len(row[n]) for row in rows) for n in range(2)]
    lines = [f"  {op.ljust(widths[0])}  {m.ljust(widths[1])}  {at}".rstrip() for op, m, at in rows]
    return "\n".join(["it went on through", *map(escaped, lines)])


def _cure(nonfinite: NonFinite, blamed: Blamed, style: Style) -> str:
    cure = nonfinite.cure
    if cure is None:
        return wrapped(growth_text(blamed)) if blamed.grows else hint(blamed)
    lines = [
        wrapped(f"{style.paint('cure', 'strong')}: {escaped(cure.reason)}"),
        "  |",
        f"  | {escaped(cure.text)}",
        "  |",
    ]
    lead = "  = proof: "
    return "\n".join([*lines, block(lead, wrapped(escaped(cure.proof), len(lead)))])


# --- JSON ---------------------------------------------------------------------------------------


def _document(watched: Watched) -> dict[str, Any]:
    nonfinite = watched.nonfinite
    if nonfinite is None:
        return {"schema": SCHEMA, "blamed": None, "others": [], "steps": watched.steps}
    blamed: dict[str, Any] = {"spoilt": list(nonfinite.spoilt)}
    if nonfinite.again:
        blamed = blamed_object(blamed_of(watched, nonfinite))
        blamed["op"] = nonfinite.op
        cure = nonfinite.cure
        blamed["cure"] = None if cure is None else {
            "text": cure.text, "reason": cure.reason, "proof": cure.proof
        }  # fmt: skip
    blamed["chain"] = [
        {
            "op": op,
            "module": None if module is None else module[0],
            "file": None if place is None else place.file,
            "line": None if place is None else place.line,
        }
        for op, module, place in nonfinite.chain
    ]
    source = nonfinite.source
    blamed["infinity_from"] = None if source is None else {
        "kind": source.kind,
        "name": source.name,
        "op": source.op,
        "file": None if source.place is None else source.place.file,
        "line": None if source.place is None else source.place.line,
    }  # fmt: skip
    return {
        "schema": SCHEMA,
        "blamed": blamed,
        "others": [],
        "step": nonfinite.step,
        "steps": watched.steps,
        "run_again": nonfinite.again,
        "reason": nonfinite.reason or None,
        "seen": [{"module": path, "class": kind} for path, kind in nonfinite.seen],
    }
