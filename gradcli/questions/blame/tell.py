"""What `blame` found as text, and as JSON, schema `gradcli.blame/1`; and what it says of a run that
was watched: the first step that is not finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gradcli.ops.load  # noqa: F401  (fills the catalogue)
from gradcli.arrays.dtypes import DTYPES
from gradcli.arrays.files.json import spelled
from gradcli.errors import Label, Source, Span
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.op import Op, registry
from gradcli.questions.blame.find import Blame, Blamed, Fix, held_text, name_of, number_text
from gradcli.questions.blame.nonfinite import (
    BACKWARD,
    DATA,
    FORWARD,
    MET,
    SEED,
    FirstNonFinite,
    Operand,
)
from gradcli.recorded.watched import NonFinite, Place, Watched
from gradcli.show.answer import Answer
from gradcli.show.diagnostics.human import finding, location, span_object, wrapped
from gradcli.show.style import PLAIN, Style, block, counted, escaped, one_line

SCHEMA = "gradcli.blame/1"

_HINTS = {
    "division by zero": "no cure: the value is infinite; mask the divisor before you divide",
    "overflow": "no cure: no wider dtype that was tried helps; scale what goes in",
    "overflow, float64": "no cure: the result is too large for float64 too; scale what goes in",
    "log of zero": "no cure: the value is -inf; mask the argument, or keep it above 0",
    "log1p of zero": "no cure: the value is -inf; keep what goes in above -1, by a bound that the"
    " dtype holds",
    "equal eigenvalues": "no cure: what depends on the choice of eigenvectors has no gradient here;"
    " what does not has one, such as the sum of the eigenvalues",
    "equal singular values": "no cure: what depends on the choice of singular vectors has no"
    " gradient here; what does not has one, such as the sum of the singular values",
    "0/0, std": "no cure: one number has no deviation with correction=1; with `correction=0` it is"
    " 0, which is another function",
    "0/0, var": "no cure: one number has no variance with correction=1; with `correction=0` it is"
    " 0, which is another function",
    "0/0, nll_loss": "no cure: a mean over no targets has no value; leave such a batch out, or"
    " divide the sum of the losses, `reduction='sum'`, by the number of targets, and by at least 1",
    "nothing but -inf": "no cure: the sum of nothing has no slope; leave such rows out,"
    " or write a large negative number, such as -1e9, for -inf",
    "log of a negative, logdet": "no cure: `torch.linalg.slogdet` gives the sign, and the logarithm"
    " of the absolute value",
    "log of zero, logdet": "no cure: the value is -inf; a matrix that is regular has one, `A + eps"
    " * torch.eye(n)`",
    "log of a negative": "no cure: what goes into the logarithm must not be negative",
    "sqrt of a negative": "no cure: what goes into the root must not be negative",
    "inf - inf, softmax": "no cure: a row that is masked whole has no softmax; open such rows,"
    " `mask & ~mask.all(-1, keepdim=True)`, and leave out what comes of them",
    "overflow, the sum of gradients": "no cure of a formula: make the loss smaller by a factor, and"
    " the gradients larger by it in float32 before the step, as `torch.amp.GradScaler` does",
    "singular": "no cure: a singular matrix has no inverse; `A + eps * torch.eye(n)` has one, and"
    " `torch.linalg.pinv` is another function",
    "from a constant": "no cure: the program says so itself; leave it out, or mask what it makes",
    "from the data": "no cure: what is not finite comes from outside; leave it out of the data",
    "from a parameter": "no cure: what is not finite was there before; begin with finite"
    " parameters",
    "overflow in a step": "no cure of a formula: this step is too large; take a smaller learning"
    " rate, or bound the gradient with clip_grad_norm_()",
    "undefined in a step": "no cure of a formula: the optimizer's own numbers divide 0 by 0 or"
    " overflow; `eps=0` does so where a gradient has been 0",
    "scale too large": "this is what GradScaler expects: scaler.step() leaves the step out, and"
    " scaler.update() halves the scale until it fits; a smaller `init_scale` begins lower",
    "root of a negative": "no cure: a root needs what goes in not to be negative",
}
"""What is said of kinds for which a finite number would be wrong."""


_EARLIER = (
    "no cure in this step: the parameter was so before it; `gradcli record --at first-nonfinite`"
    " records the step that made it so, and `--watch` finds it in a run of any length"
)
"""The same of a parameter in a recording."""

_COMPUTED = {
    "division by zero": "no cure: the divisor is computed, and 0 by itself or by rounding; mask it"
    " before you divide, or rewrite what rounds",
    "log of zero": "no cure: what goes into the logarithm is computed, and 0 by itself or by"
    " rounding; mask it, or rewrite what rounds",
}
"""The same where a value that is 0 was computed."""

_NO_REWRITE = {
    "0/0, div": "no cure: both sides are 0 there, and the quotient has no value; leave such rows"
    " out before the division",
    "infinite slope, pow": "no cure: the slope is infinite there; keep what goes in above 0",
    "infinite slope, sqrt": "no cure: the slope is infinite there; keep what goes in above 0",
    "0*inf, mul": "no cure: a product is NaN where one factor is infinite and the other 0; put the"
    " infinity in by `masked_fill()` or `torch.where()`, and by no factor; one that is there"
    " already is to be masked ahead of the product",
    "0*inf, reciprocal": "no cure: the slope of a division by 0 is infinite; keep the divisor away"
    " from 0, or leave such elements out",
}
"""The same where no rewrite that was tried keeps the program finite and right."""

_GREW = (
    "the training diverges: this grew over the steps of {} up to the overflow: take a smaller"
    " learning rate, or bound the gradient with clip_grad_norm_()"
)

_MOST_NAMES = 4
"""Outputs and gradients that are named as not finite."""


def blame_text(blame: Blame, style: Style = PLAIN, *, all: bool = False) -> str:
    """The first nonfinite value with its place, operands, fix and verification; `all` of them."""
    if blame.first is None:
        parts = ["nothing to blame: the output and all gradients are finite"]
        if blame.failed:
            parts = ["not finite before the program failed:"]
            all = True
        elif blame.others and not all:
            count = len(blame.others)
            some = "1 operation gives" if count == 1 else f"{count} operations give"
            parts.append(f"{some} numbers that are not finite and spoil nothing: --all shows them")
    else:
        parts = _blamed(blame.first, style)
    if all:
        for other in blame.others:
            parts.append(f"{_headline(other)}\n" + _place(other, style))
    return "\n\n".join(parts) + "\n"


def _blamed(blamed: Blamed, style: Style) -> list[str]:
    verb = "is" if len(blamed.spoilt) == 1 else "are"
    spoilt = list(blamed.spoilt)
    if len(spoilt) > _MOST_NAMES:
        spoilt[_MOST_NAMES - 1 :] = [f"{len(spoilt) - _MOST_NAMES + 1} more"]
    parts = [f"{' and '.join(spoilt)} {verb} not finite: {_headline(blamed)}"]
    parts += facts(blamed, style)
    if blamed.fix is not None:
        parts.append(_cure(blamed.fix, blamed.in_part, style))
    elif blamed.diverges:
        named = sorted({f"`{leaf.name}`" for leaf in blamed.diverges if leaf.name})
        grown = " and ".join(named[:_MOST_NAMES]) or "what is trained"
        parts.append(wrapped(f"no cure of the formula: {_GREW.format(grown)}"))
    elif blamed.grows:
        parts.append(wrapped(growth_text(blamed)))
    elif blamed.nonfinite.phase == SEED:
        parts.append("cure: start from a finite --seed")
    else:
        parts.append(hint(blamed))
    return [part for part in parts if part]


def facts(blamed: Blamed, style: Style) -> list[str]:
    """The cause at its place, where that ran, and the numbers there."""
    parts = [_place(blamed, style), _context(blamed), _numbers(blamed)]
    return [part for part in parts if part]


def hint(blamed: Blamed) -> str:
    """What is said where no cure was found."""
    of_op = f"{blamed.cause}, {name_of(blamed.nonfinite).removeprefix('log_')}"
    said = _HINTS.get(of_op) or (_COMPUTED.get(blamed.cause) if blamed.computed else None)
    said = said or (_HINTS.get(f"{blamed.cause}, float64") if blamed.too_large else None)
    place = blamed.nonfinite.place
    if blamed.cause == "from a parameter" and place is not None and place.origin:
        said = _EARLIER
    said = said or _HINTS.get(blamed.cause)
    if said is None and blamed.untried:
        said = f"no rewrite was tried: {blamed.untried}"
    if said is None:
        default = "no rewrite that was tried keeps it finite and right"
        said = _NO_REWRITE.get(of_op, default)
    return wrapped(said)


def growth_text(blamed: Blamed) -> str:
    """What helps where what is handed on, round by round or layer by layer, grows."""
    smaller = "begin with smaller weights, `nn.init.orthogonal_` keeps lengths"
    if blamed.nonfinite.phase == BACKWARD:
        return (
            f"no cure of the formula: {blamed.grows} with each step back: {smaller}; fewer steps,"
            " `detach()` between them; clip_grad_norm_() bounds a gradient that is still finite"
        )
    return (
        f"no cure of the formula: what is handed on grows {blamed.grows} each time: {smaller}; or"
        " normalise it"
    )


def _headline(blamed: Blamed) -> str:
    return f"{blamed.cause}, {_phase(blamed)}"


def _phase(blamed: Blamed) -> str:
    birth = blamed.nonfinite
    if birth.phase == DATA:
        if birth.at_step:
            return f"where {birth.called} is changed"
        return f"where {birth.called} is read first" if birth.output is not None else "a number"
    if birth.phase == SEED:
        return "before any node has run"
    if birth.called == MET:
        return "where the backward pass adds gradients up"
    if birth.of_rule:
        return f"in {name_of(birth)}, which the backward pass computes"
    return f"in the {birth.phase} pass of {name_of(birth)}"


def _place(blamed: Blamed, style: Style) -> str:
    labels: tuple[Label, ...] = ()
    if blamed.mask is not None:
        labels = (Label(blamed.mask.place, "this hides it from the value, not the gradient"),)
        if blamed.nonfinite.phase == DATA:
            labels = ()
        elif blamed.nonfinite.phase != BACKWARD:
            labels = (Label(blamed.mask.place, "it goes in here"),)
    if blamed.made is not None:
        labels = (*labels, Label(blamed.made, "it is made here"))
    use, place = blamed.nonfinite.use, blamed.nonfinite.place
    if use is not None and use.place is not None and use.place is not place:
        labels = (*labels, Label(use.place, f"it is computed with here first, in {use.called}"))
    labels = (*labels, *blamed.returned)
    return finding(blamed.text, blamed.nonfinite.place, None, labels, style)


def _context(blamed: Blamed) -> str:
    """The module, the calls and the iterations in which it happened."""
    birth = blamed.nonfinite.use or blamed.nonfinite
    lines = [] if birth.module is None else [escaped(f"in {', '.join(birth.module)}")]
    for name, place in reversed(birth.stack):
        at = "" if place is None else f", called at {location(place)}: {one_line(place.text)}"
        lines.append(f"in {name}(){at}")
    for loop, number, through in reversed(birth.rounds):
        shown = f" ({through})" if through else ""
        lines.append(f"in round {number} of the loop at {location(loop)}{shown}")
    return "\n".join(lines)


def _numbers(blamed: Blamed) -> str:
    """The operands at the element, the gradient that arrived, and what came out."""
    birth = blamed.nonfinite
    element = f"[{', '.join(map(str, birth.element))}]" if birth.element else ""
    rows = []
    for operand in birth.operands:
        if operand.value is not None:
            rows.append((operand.name, number_text(operand.value)))
        elif operand.low is not None:
            low, high = number_text(operand.low), number_text(operand.high)
            rows.append((operand.name, low if low == high else f"{low} to {high}"))
    if birth.incoming is not None:
        rows.append(("gradient in", number_text(birth.incoming)))
    noun = {BACKWARD: "gradient out", SEED: "seed"}.get(birth.phase, "result")
    noun = "sum" if birth.called == MET else noun
    rows.append((birth.called if birth.phase == DATA else noun, number_text(birth.value)))
    use = birth.use
    if use is not None and use.element and use.output is not birth.output:
        rows.append((f"{use.called}[{', '.join(map(str, use.element))}]", number_text(use.value)))
    rows = [(escaped(name), text) for name, text in rows]
    width = max(len(name) for name, _ in rows) + 2
    head = f"at element {element}\n" if element else ""
    return head + "\n".join(f"  {name.ljust(width)}{text}" for name, text in rows)


def _cure(cure: Fix, in_part: bool, style: Style) -> str:
    rewrite, proof = cure.rewrite, proof_text(cure, in_part)
    if rewrite.dtype is not None:
        head = wrapped(f"{style.paint('cure', 'strong')}: {rewrite.reason}")
        return f"{head}\n{block(' = proof: ', wrapped(proof, 10))}"
    changed = rewrite.lines()
    gutter = len(str(changed[-1][0]))
    margin = " " * gutter
    lines = [
        wrapped(f"{style.paint('cure', 'strong')}: {rewrite.reason}"),
        f"{margin} |",
        *(f"{number:>{gutter}} | {text}" for number, text in changed),
        f"{margin} |",
    ]
    lead = f"{margin} = proof: "
    return "\n".join([*lines, block(lead, wrapped(proof, len(lead)))])


def proof_text(cure: Fix, in_part: bool) -> str:
    """What the run of the rewrite showed, or of the part that leads to it."""
    total = cure.agree + cure.chosen
    what = "what leads to it was run with this" if in_part else "this was run"
    text = f"{what}, and all its numbers are finite"
    if cure.agree:
        text += f"; {cure.agree} of {total} are those of the former run, or of one in float64"
    if cure.choices:
        chosen = (
            "where there is no value it chooses"
            if cure.chooses
            else "where float64 has none either it gives"
        )
        text += f"; {chosen}: {', '.join(cure.choices)}"
    return f"{text}; values and gradients of both programs agree with {', '.join(cure.points)}"


# --- JSON ---------------------------------------------------------------------------------------


def blame_document(blame: Blame) -> dict[str, Any]:
    """What was found as a JSON object."""
    return {
        "schema": SCHEMA,
        "blamed": None if blame.first is None else blamed_object(blame.first),
        "others": [blamed_object(each) for each in blame.others],
    }


def blamed_object(blamed: Blamed) -> dict[str, Any]:
    """What was found of one number as a JSON object."""
    birth, cure = blamed.nonfinite, blamed.fix
    found: dict[str, Any] = {
        "kind": blamed.cause,
        "text": blamed.text,
        "phase": birth.phase,
        "op": name_of(birth),
        **span_object(birth.place),
        "element": list(birth.element),
        "value": spelled(_number(birth.value)),
        "operands": [
            {"name": each.name, "value": None if each.value is None else _spelled(each.value)}
            for each in birth.operands
        ],
        "gradient_in": None if birth.incoming is None else _spelled(birth.incoming),
        "module": None if birth.module is None else birth.module[0],
        "diverges": [leaf.name for leaf in blamed.diverges if leaf.name],
        "rounds": [
            {"loop": span_object(loop), "number": number, "values": through}
            for loop, number, through in (birth.use or birth).rounds
        ],
        "spoilt": list(blamed.spoilt),
        "computed_with": None
        if birth.use is None
        else {
            "name": birth.use.called,
            "element": list(birth.use.element),
            **span_object(birth.use.place),
        },
        "masked_by": None if blamed.mask is None else span_object(blamed.mask.place),
    }
    if cure is not None:
        found["cure"] = {
            "changes": [
                {
                    "at": location(change.span),
                    "replaces": one_line(change.span.text),
                    "text": change.text,
                }
                for change in (cure.rewrite, *cure.rewrite.also)
            ],
            "program": cure.rewrite.program(),
            "dtype": cure.rewrite.dtype,
            "reason": cure.rewrite.reason,
            "agree": cure.agree,
            "chosen": cure.chosen,
            "compared_at": list(cure.points),
        }
    else:
        found["cure"] = None
    return found


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _spelled(value: Any) -> Any:
    return spelled(_number(value))


# --- runs that were watched -----------------------------------------------------------------------


_MOST_PARAMETERS = 4

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


def blamed_of(report: NonFinite) -> Blamed:
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
    count = nonfinite.count if nonfinite.phase == "data" else 1
    text = held_text(nonfinite.called, value, count, nonfinite.rows)
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
    hidden = len(spoilt) - _MOST_PARAMETERS + nonfinite.more
    if hidden > 1:
        spoilt = [*spoilt[:_MOST_PARAMETERS], f"{hidden} more"]
    verb = "is" if len(spoilt) == 1 else "are"
    listed = " and ".join([", ".join(spoilt[:-1]), spoilt[-1]] if spoilt[1:] else spoilt)
    head = f"step {nonfinite.step:,} of {watched.steps:,}: "
    named = f"{escaped(listed)} {verb} not finite"
    if not nonfinite.again:
        return "\n\n".join([wrapped(f"{head}{named}"), *_unrepeated(nonfinite)]) + "\n"
    blamed = blamed_of(nonfinite)
    parts = [wrapped(f"{head}{named}: {blamed.cause}, {_where(nonfinite)}")]
    parts += facts(blamed, style)
    parts += [_source(nonfinite, style), _chain(nonfinite), _watched_cure(nonfinite, blamed, style)]
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


def _watched_cure(nonfinite: NonFinite, blamed: Blamed, style: Style) -> str:
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
        blamed = blamed_object(blamed_of(nonfinite))
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
