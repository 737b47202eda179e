"""Proposes changes of a program that keep a number finite, the best first.

`verification` runs each of them before `blame` offers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.errors import Span
from gradcli.language.tree import syntax as tree
from gradcli.questions.blame.finding import Blamed, Rewrite, name_of
from gradcli.questions.blame.nonfinite import DATA, FirstNonFinite
from gradcli.questions.blame.stable_forms import RULES, Definitions, shifted, stable
from gradcli.recorded.patterns import (
    Expression,
    applied,
    around,
    binary,
    call_of,
    inner,
    operand,
)


def rewrites(
    blamed: Blamed, others: Sequence[Blamed], program: Sequence[tree.Statement]
) -> list[Rewrite]:
    """What may fix a first NaN or infinity, the best first; `others` may need fixing too."""
    place = blamed.nonfinite.place
    if place is None or blamed.diverges or blamed.grows:
        return []
    chain = around(program, place)
    if not chain:
        return []
    if blamed.nonfinite.phase == DATA:
        value = blamed.nonfinite.value
        if value != value:
            return list(_without_nan(blamed, chain))
        return list(_masked_data(blamed, program))
    definitions = Definitions(program)
    # The widest formula first: what stands for a part of it may not stand for the whole.
    candidates = [
        Rewrite(node.span, text, reason)
        for node in chain[::-1]
        for text, reason in stable(node, definitions)
    ]
    candidates += list(_everywhere(chain, program, definitions))
    candidates += [
        Rewrite(chain[0].span, text, reason)
        for text, reason in shifted(chain[0], definitions, program)
    ]
    if blamed.mask is not None:
        candidates += _masked(blamed, program, chain[0])
    name = name_of(blamed.nonfinite)
    char = blamed.nonfinite.dtype.char
    overflowed = name in ("exp", "mul") or (name == "pow" and not _is_root(chain[0], name))
    if blamed.cause == "overflow" or (blamed.cause == "0*inf" and overflowed):
        candidates += _wider(chain[0], char)
    else:
        candidates += _open_rows(chain[0], definitions)
        for guard in _guarded(blamed, chain[0]):
            guard.guards = True
            guard.chooses = blamed.cause != "division by zero"
            candidates.append(guard)
        if candidates:
            candidates += _together(candidates[-1], blamed, others, program)
    candidates += [
        Rewrite(node.span, text, reason)
        for node in tree.nodes_of(chain[0])
        if isinstance(node, tree.Expression) and node is not chain[0]
        for text, reason in stable(node, definitions)
    ]
    if char != "d":
        candidates += _in_wider(chain[0], program, "float32" if char in "eV" else "float64")
    return candidates


def _is_root(node: Expression, name: str) -> bool:
    exponent = _exponent(node, name)
    return exponent is not None and 0 < exponent < 1


def _everywhere(
    chain: Sequence[Expression], program: Sequence[tree.Statement], definitions: Definitions
) -> Iterator[Rewrite]:
    """One rule wherever the program has its formula: the other logarithm of a cross-entropy."""
    for rule in RULES:
        if not any(True for node in chain for _ in rule(node, definitions)):
            continue
        places: list[Rewrite] = []
        for node in tree.nodes_of(list(program)):
            if isinstance(node, tree.Expression) and all(
                not _overlap(node.span, each.span) for each in places
            ):
                places += [Rewrite(node.span, *text) for text in rule(node, definitions)][:1]
        if len(places) > 1:
            places[0].also = places[1:]
            yield places[0]


_HALVES = ("float16", "half", "bfloat16")


def _in_wider(node: Expression, program: Sequence[tree.Statement], wider: str) -> Iterator[Rewrite]:
    """The program in another dtype: the option, or the places that ask for half precision."""
    places = _in_float32(program) if wider == "float32" else []
    if places:
        first, *others = places
        first.also = others
        yield first
        return
    reason = f"{wider} has room for the results: --dtype {wider}"
    yield Rewrite(node.span, node.span.text, reason, wider)


def _in_float32(program: Sequence[tree.Statement]) -> list[Rewrite]:
    """The places that ask for half precision, as they ask for float32."""
    candidates = []
    for each in tree.nodes_of(list(program)):
        if isinstance(each, tree.Attribute) and each.name in _HALVES:
            owner = each.value.span.text
            name = "float32" if owner == "torch" else "float"
            reason = "float32 has room for the results"
            candidates.append(Rewrite(each.span, f"{owner}.{name}", reason))
    return candidates


def _open_rows(node: Expression, definitions: Definitions) -> Iterator[Rewrite]:
    """The mask of a softmax without the rows that are masked whole."""
    call = call_of(node, "softmax", "log_softmax")
    if call is None:
        return
    named = [call.operands[0], definitions.opened(call.operands[0])]
    for each in [inside for whole in named for inside in tree.nodes_of(whole)]:
        filled = call_of(each, "masked_fill") if isinstance(each, tree.Expression) else None
        if filled is not None and len(filled.operands) == 3:
            mask = filled.operands[1]
            yield Rewrite(
                mask.span,
                f"{operand(mask)} & ~{operand(mask)}.all(-1, keepdim=True)",
                "a row that is masked whole has no softmax: open it, and leave out what comes of"
                " it",
            )
            return


def _together(
    guard: Rewrite, blamed: Blamed, others: Sequence[Blamed], program: Sequence[tree.Statement]
) -> Iterator[Rewrite]:
    """A guard, together with those for the other operations with the same cause."""
    also = []
    for other in others:
        place = other.nonfinite.place
        if other.cause == blamed.cause and place is not None:
            chain = around(program, place)
            also += list(_guarded(other, chain[0]))[:1] if chain else []
    if also and guard.guards:
        together = Rewrite(guard.span, guard.text, guard.reason)
        together.guards, together.chooses = True, guard.chooses
        together.also = [each for each in also if not _overlap(each.span, guard.span)]
        yield together


def _overlap(a: Span, b: Span) -> bool:
    return a.source is not b.source or (a.start < b.end and b.start < a.end)


# --- masks --------------------------------------------------------------------------------------


def _masked(
    blamed: Blamed, program: Sequence[tree.Statement], node: Expression
) -> Iterator[Rewrite]:
    """The double `where`: what goes into the op is masked too."""
    assert blamed.mask is not None
    where = next(iter(around(program, blamed.mask.place)), None)
    condition = None if where is None else _condition(where, node)
    if condition is None:
        return
    target = _risky(node)
    if target is None:
        return
    yield Rewrite(
        target.span,
        f"torch.where({condition[0]}, {inner(target)}, 1)"
        if condition[1]
        else f"torch.where({condition[0]}, 1, {inner(target)})",
        "mask what goes into the op as well: the branch that is not taken then has a finite"
        " slope, and 0 times that is 0",
    )


def _masked_data(blamed: Blamed, program: Sequence[tree.Statement]) -> Iterator[Rewrite]:
    """What is infinite, masked where it goes into the branch that is not taken."""
    chain = [] if blamed.mask is None else around(program, blamed.mask.place)
    call = call_of(chain[0], "where") if chain else None
    if call is None or len(call.operands) != 3:
        return
    for branch in call.operands:
        for each in tree.nodes_of(branch):
            if isinstance(each, tree.Name) and each.name == blamed.nonfinite.called:
                condition = _condition(chain[0], each)
                if condition is None or each is branch or condition[0] == inner(branch):
                    continue
                parts = f"{each.name}, 1" if condition[1] else f"1, {each.name}"
                yield Rewrite(
                    each.span,
                    f"torch.where({condition[0]}, {parts})",
                    "mask what goes into the branch that is not taken: its slope is finite then",
                )


def _condition(where: Expression, node: Expression) -> tuple[str, bool] | None:
    """The text of the condition, and whether the op stands in the branch where it is true."""
    call = call_of(where, "where")
    if call is not None and len(call.operands) == 3:
        if call.operands[0].span.start > call.operands[1].span.start:  # x.where(condition, y)
            first, condition, second = call.operands
        else:
            condition, first, second = call.operands
        inside = second.span.start <= node.span.start < second.span.end
        if not inside and node.span.start >= where.span.start:
            return inner(condition), True
        if inside:
            return inner(condition), False
        # Computed on a line of its own: in the branch that is no number.
        return inner(condition), not isinstance(first, tree.Constant)
    call = call_of(where, "masked_fill")
    if call is not None and len(call.operands) == 3:
        return inner(call.operands[1]), False
    return None


def _risky(node: Expression) -> Expression | None:
    """The operand whose value makes an op singular."""
    ratio = binary(node, "/")
    if ratio is not None:
        return ratio[1]
    power = binary(node, "**")
    if power is not None:
        return power[0]
    call = applied(node)
    if call is None or not call.operands:
        return None
    if call.name in ("div", "true_divide", "atan2", "xlogy") and len(call.operands) > 1:
        return call.operands[1]
    return call.operands[0]


# --- guards -------------------------------------------------------------------------------------

_TINY = {"e": "1e-7"}


_BOUNDS = {
    "acosh": ("min=1 + 1e-6", "keep it above 1"),
    "log1p": ("min=-1 + 1e-6", "keep it above -1"),
    "logit": ("1e-6, 1 - 1e-6", "keep it within 0 and 1"),
}
"""The arguments of the `clamp` that keeps an op's operand where the op is defined, and why."""

_POSITIVE = ("sqrt", "rsqrt", "pow", "log", "log2", "log10", "reciprocal")


def _guarded(blamed: Blamed, node: Expression) -> Iterator[Rewrite]:
    """Arguments kept where the op is defined and has a slope."""
    nonfinite = blamed.nonfinite
    name = name_of(nonfinite)
    tiny = _TINY.get(nonfinite.dtype.char, "1e-12")
    if blamed.cause.endswith(("of a negative", "out of range")) and not _just_outside(nonfinite):
        return  # what goes in is wrong, and a bound would only hide that
    ratio = _ratio(node)
    if ratio is not None:
        yield from _nonzero(ratio[1], tiny)
        return
    target = _risky(node)
    if target is None:
        return
    divergence = call_of(node, "kl_div")
    if name == "xlogy" and divergence is not None and len(divergence.operands) > 1:
        reason = f"the slope of p · log p at 0 is infinite: keep the target above {tiny}"
        yield _clamped(divergence.operands[1], f"min={tiny}", reason)
        return
    if blamed.cause in ("infinite slope", "0*inf") and _is_root(node, name):
        yield _rooted(node, target)
    elif binary(node, "**") is not None or name in _POSITIVE:
        yield _clamped(target, f"min={tiny}", f"keep what goes in above {tiny}")
    elif name == "xlogy":
        yield _clamped(target, f"min={tiny}", f"keep it above {tiny}")
    elif name in _BOUNDS:
        yield _clamped(target, *_BOUNDS[name])
    elif name in ("acos", "asin", "atanh"):
        yield _within_one(node, target, name)
    elif name == "atan2":
        yield from _off_origin(node)
    elif name in ("softmax", "log_softmax"):
        place, module = nonfinite.place, nonfinite.module
        if place is not None and place.origin and module and module[1] == "MultiheadAttention":
            return  # whose lines are PyTorch's: the mask is what a program can change
        low = "-1e4" if nonfinite.dtype.char == "e" else "-1e9"
        yield Rewrite(
            target.span,
            f"torch.nan_to_num({inner(target)}, neginf={low})",
            "a row of nothing but -inf has no softmax; one of equal large negatives has equal"
            " numbers",
        )


def _exponent(node: Expression, name: str) -> float | None:
    """The exponent of a power, None where it is no number in the text."""
    if name == "sqrt":
        return 0.5
    power = binary(node, "**")
    call = call_of(node, "pow")
    if call is not None and len(call.operands) == 2:
        power = call.operands[0], call.operands[1]
    if power is None or not isinstance(power[1], tree.Constant):
        return None
    value = power[1].value
    return float(value) if isinstance(value, (int, float)) else None


def _rooted(node: Expression, target: Expression) -> Rewrite:
    """A root whose value at 0 stays, and whose slope there is 0."""
    u = inner(target)
    before, _, after = node.span.text.partition(target.span.text)
    safe = f"torch.where({u} == 0, 1, {u})"
    root = " ".join(f"{before}{safe}{after}".split())
    return Rewrite(
        node.span,
        f"torch.where({u} == 0, 0, {root})",
        "at 0 the value stays 0, and the slope is taken as 0",
    )


def _clamped(target: Expression, bounds: str, reason: str) -> Rewrite:
    return Rewrite(target.span, f"{operand(target)}.clamp({bounds})", reason)


def _nonzero(divisor: Expression, tiny: str) -> Iterator[Rewrite]:
    yield Rewrite(
        divisor.span,
        f"torch.where({inner(divisor)} == 0, 1, {inner(divisor)})",
        "divide by 1 where the divisor is 0",
    )
    yield _clamped(divisor, f"min={tiny}", "keep the divisor above 0")


def _within_one(node: Expression, target: Expression, name: str) -> Rewrite:
    inside = f"{operand(target)}.abs() < 1"
    safe = f"torch.{name}(torch.where({inside}, {inner(target)}, 0))"
    return Rewrite(
        node.span,
        f"torch.where({inside}, {safe}, torch.{name}({operand(target)}.detach().clamp(-1, 1)))",
        "at the edge keep the value and take the slope 0",
    )


def _off_origin(node: Expression) -> Iterator[Rewrite]:
    call = applied(node)
    if call is not None and len(call.operands) == 2:
        y, x = call.operands
        yield Rewrite(
            x.span,
            f"torch.where(({inner(x)} == 0) & ({inner(y)} == 0), 1, {inner(x)})",
            "at the origin take the angle of (1, 0)",
        )


def _just_outside(nonfinite: FirstNonFinite) -> bool:
    """Whether an argument left the domain by a rounding error."""
    x = nonfinite.operands[0].value if nonfinite.operands else None
    edge = 1.0 if name_of(nonfinite) in ("acos", "asin", "atanh") else 0.0
    return x is not None and abs(abs(float(x)) - edge) < 1e-5


def _ratio(node: Expression) -> tuple[Expression, Expression] | None:
    """The two sides of a division."""
    call = call_of(node, "div", "true_divide")
    if call is not None and len(call.operands) == 2:
        return call.operands[0], call.operands[1]
    return binary(node, "/")


def _wider(node: Expression, char: str) -> Iterator[Rewrite]:
    """Computed in a wider dtype."""
    cast = "float" if char in "eV" else "double"
    target = _first_operand(node)
    if target is not None:
        yield Rewrite(
            target.span,
            f"{operand(target)}.{cast}()",
            f"{'float32' if cast == 'float' else 'float64'} has room for the result",
        )


def _first_operand(node: Expression) -> Expression | None:
    if isinstance(node, tree.Binary):
        return node.first
    call = applied(node)
    return call.operands[0] if call is not None and call.operands else None


# --- data ---------------------------------------------------------------------------------------


def _without_nan(blamed: Blamed, chain: list[Expression]) -> Iterator[Rewrite]:
    """What is read without its NaN."""
    name = blamed.nonfinite.called
    for each in tree.nodes_of(chain[0]):
        if isinstance(each, tree.Name) and each.name == name:
            yield Rewrite(each.span, f"torch.nan_to_num({name})", "NaN is read as 0")
            return
