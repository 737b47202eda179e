"""What `blame` found as text, and as JSON, schema `gradcli.blame/1`."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.files.json import spelled
from gradcli.errors import Label
from gradcli.questions.blame.find import Blame, Blamed, Fix, name_of, number_text
from gradcli.questions.blame.nonfinite import BACKWARD, DATA, MET, SEED
from gradcli.show.diagnostics.human import finding, location, span_object, wrapped
from gradcli.show.style import PLAIN, Style, block, escaped, one_line

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
    "from the data": "no cure: what is infinite comes from outside; leave it out of the data",
    "from a parameter": "no cure: what is infinite was there before; begin with finite parameters",
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
    "0*inf, reciprocal": "no cure: the slope of a division by 0 is infinite; keep the divisor away"
    " from 0, or leave such elements out",
}
"""The same where no rewrite that was tried keeps the program finite and right."""

_GREW = (
    "grew with every step up to the overflow: take a smaller learning rate, or bound the gradient"
    " with clip_grad_norm_()"
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
        parts.append(wrapped(f"no cure of the formula: {grown} {_GREW}"))
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
    """What helps where what goes round a loop grows."""
    smaller = "begin with smaller weights, `nn.init.orthogonal_` keeps lengths"
    if blamed.nonfinite.phase == BACKWARD:
        return (
            f"no cure of the formula: {blamed.grows} with each step back: {smaller}; fewer steps,"
            " `detach()` between them; clip_grad_norm_() bounds a gradient that is still finite"
        )
    return (
        f"no cure of the formula: what goes round grows {blamed.grows} each time: {smaller}; or"
        " normalise what goes round"
    )


def _headline(blamed: Blamed) -> str:
    return f"{blamed.cause}, {_phase(blamed)}"


def _phase(blamed: Blamed) -> str:
    birth = blamed.nonfinite
    if birth.phase == DATA:
        return f"where {birth.called} is read first" if birth.output is not None else "a number"
    if birth.phase == SEED:
        return "before any node has run"
    if birth.called == MET:
        return "where the backward pass adds gradients up"
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
    labels = (*labels, *blamed.returned)
    return finding(blamed.text, blamed.nonfinite.place, None, labels, style)


def _context(blamed: Blamed) -> str:
    """The module, the calls and the iterations in which it happened."""
    birth = blamed.nonfinite
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
            for loop, number, through in birth.rounds
        ],
        "spoilt": list(blamed.spoilt),
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
