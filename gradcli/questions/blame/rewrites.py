"""Proposes changes of a program that keep a number finite, the best first; and verifies each by
running the changed program and comparing its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.errors import Span
from gradcli.language.tree import syntax as tree
from gradcli.questions.blame.find import Blamed, Fix, Rewrite, name_of
from gradcli.questions.blame.nonfinite import DATA, FirstNonFinite, is_finite
from gradcli.recorded.patterns import (
    Expression,
    applied,
    around,
    binary,
    call_of,
    inner,
    is_number,
    negated,
    operand,
    same,
)
from gradcli.running.rerun import Outcome

# --- verification by running ----------------------------------------------------------------------


Rerun = Callable[..., Outcome | None]
"""Runs the program again: `rerun(text=None, values={}, dtype=None, as_written=False)` takes another
text, arrays for its names, and a dtype, which dtypes in the text become too unless it is to run as
it is written; None where that is an error.
"""

Arrays = Mapping[str, Any]

_NOTHING: Arrays = {}

_CLOSE = {"float16": 1e-2, "bfloat16": 5e-2, "float64": 1e-7}
"""How close numbers of a dtype are that are the same; of others 1e-4."""


class OutOfTime(Exception):
    """Rewrites have been run for as long as they may."""


def within(seconds: float, rerun: Rerun) -> Rerun:
    """A rerun that raises `OutOfTime` after so many seconds of processor time."""
    ends = process_time() + seconds

    def run(*args: Any, **kwargs: Any) -> Outcome | None:
        if process_time() > ends:
            raise OutOfTime
        return rerun(*args, **kwargs)

    return run


_SHRINKS = (0.9, 0.7, 0.5, 0.3, 0.1, 0.03)
"""What inputs whose results are too large are multiplied by: where float64 holds the results."""

_RANGES = ((0.3, 0.9), (-0.9, -0.3), (-3.0, 3.0), (2.0, 9.0))
"""Where inputs are drawn from: most functions are finite in one of them."""


def all_finite(outcome: Outcome) -> bool:
    """Whether every number of a run's results is."""
    return all(is_finite(array) for array in outcome.arrays().values())


class _Point:
    """Values of the inputs at which the program is finite, and what it comes to there.

    Attributes:
        where: the values in words.
        beside: whether all inputs are positive, and these are not: where what stands for the
            program may be undefined, as the logarithm of a probability is.
    """

    def __init__(self, where: str, values: Arrays, outcome: Outcome, beside: bool = False) -> None:
        self.where = where
        self.values = values
        self.outcome = outcome
        self.beside = beside


def find_fix(
    rewrites: Sequence[Rewrite],
    former: Outcome,
    exact: Outcome | None,
    rerun: Rerun,
    data: Arrays,
    text: str,
    elsewhere: bool = True,
) -> Fix | None:
    """The first rewrite whose numbers are finite, and that computes the same function: wherever
    both programs are finite, values and gradients agree, and there is such a point.

    Args:
        exact: what it comes to in double precision.
        text: the program.
        data: arrays that the program has under names, and does not differentiate by.
        elsewhere: whether the two are compared at other inputs too, where they are finite at some
            of these: that takes many runs.
    """
    points: list[_Point] | None = None
    reference: Rerun = rerun
    for rewrite in rewrites:
        if rewrite.dtype is not None and all_finite(former):
            continue  # what came of it is gone in the end: that would be so in any dtype
        outcome = rerun(rewrite.program(), dtype=rewrite.dtype, as_written=True)
        if outcome is None or outcome.output is None or not all_finite(outcome):
            continue
        compared = _compared(outcome, former, exact, rewrite.guards)
        if compared is None:
            continue
        if not rewrite.chooses and any(not name for name, _ in compared[2]):
            continue
        if points is None:
            reference = partial(rerun, text, dtype="float64")
            points = _points(former, data, exact, reference, elsewhere)
        counts = [_agreeing(rewrite, point, rerun, reference) for point in points]
        if any(counts) and None not in counts:
            agree, count, chosen = compared
            where = [point.where for point, n in zip(points, counts, strict=True) if n]
            return Fix(rewrite, agree, count, where, _choices(outcome, count, chosen))
    return None


_MOST = 3
"""Numbers that a rewrite chooses, and that are shown."""


def _choices(
    outcome: Outcome, count: int, chosen: Sequence[tuple[str, tuple[int, ...]]]
) -> list[str]:
    """The first of so many numbers that a rewrite chooses, in words."""
    arrays = outcome.arrays()
    choices = []
    for name, element in chosen:
        value = float(np.real(np.asarray(to_host(arrays[name]))[element])) + 0.0
        index = f"[{', '.join(map(str, element))}]" if element else ""
        choices.append(f"{name or 'the output'}{index} = {value:.4g}")
    return choices + ["…"] * (count > len(chosen))


def _points(
    former: Outcome, data: Arrays, exact: Outcome | None, reference: Rerun, elsewhere: bool
) -> list[_Point]:
    """Where the program is compared with what is to stand for it: at its own inputs in float64, as
    far as it is finite there, at smaller ones where they are too large, and at others. Where the
    output is an input, as the weights that a loop makes anew are, it has any values that it is
    given, whatever the program computes: no other point tells the two apart.
    """
    points = []
    inputs = former.inputs
    if exact is not None and exact.output is not None:
        values = exact.arrays().values()
        if any(np.isfinite(np.asarray(to_host(each))).any() for each in values):
            points.append(_Point("these inputs in float64", {}, exact))
            if not elsewhere:
                return points
    if any(each is former.output for each in inputs.values()):
        return points
    if exact is not None and exact.output is not None and not is_finite(exact.output):
        points += _shrunk(inputs, reference)
    everything = {**data, **inputs}
    drawn = list(_drawn(inputs, reference)) or list(_drawn(everything, reference))
    for masks in [] if drawn else _masks(data):
        drawn = drawn or list(_drawn(inputs, reference, masks))
    # Where a value always has an element without slope, such as the distance of a point to itself,
    # the gradient is compared with differences of the value.
    return points + (drawn or list(_drawn(everything, reference, whole=False)))


def _masks(data: Arrays) -> Iterator[Arrays]:
    """The masks of a program without rows that are masked whole, whichever value masks."""
    masks = {n: np.asarray(a) for n, a in data.items() if np.asarray(a).dtype.kind == "b"}
    masks = {n: a for n, a in masks.items() if a.ndim}
    if masks:
        yield {n: a | ~a.any(-1, keepdims=True) for n, a in masks.items()}
        yield {n: a & ~a.all(-1, keepdims=True) for n, a in masks.items()}


def _shrunk(inputs: Arrays, reference: Rerun) -> Iterator[_Point]:
    """The inputs times the largest factor that makes all results finite in float64."""
    named = _floating(inputs)
    for factor in _SHRINKS if any(array.any() for array in named.values()) else ():
        values = {name: array.astype(float) * factor for name, array in named.items()}
        outcome = reference(values=values)
        if outcome is not None and all_finite(outcome):
            yield _Point(f"these inputs times {factor} in float64", values, outcome)
            return


def _floating(inputs: Arrays) -> dict[str, Any]:
    return {
        name: np.asarray(array)
        for name, array in inputs.items()
        if "#" not in name and np.asarray(array).dtype.kind in "fV"
    }


def _drawn(
    inputs: Arrays, reference: Rerun, masks: Arrays = _NOTHING, whole: bool = True
) -> Iterator[_Point]:
    """Points at which the program is finite in float64, or, unless `whole`, its value is.

    Args:
        masks: arrays of booleans in place of the program's.
    """
    named = _floating(inputs)
    positive = all((array > 0).all() for array in named.values())
    for low, high in _RANGES if named else ():
        generator = np.random.default_rng(0)
        values = {name: generator.uniform(low, high, array.shape) for name, array in named.items()}
        outcome = reference(values={**values, **masks})
        if outcome is None or outcome.output is None or not is_finite(outcome.output):
            continue
        where = f"inputs from {low:g} to {high:g}"
        if masks:
            where += f" where no row of {' and '.join(masks)} is masked whole"
        if all_finite(outcome):
            yield _Point(where, {**values, **masks}, outcome, positive and low < 0)
        elif not whole:
            yield _Point(f"differences of the value at {where}", values, outcome)


_STEP = 1e-5


def _slopes_agree(there: Outcome, point: _Point, reference: Rerun) -> bool:
    """Whether the gradients of a rewrite are what differences of the program's value say."""
    generator = np.random.default_rng(1)
    gradients = {name: each for name, each in there.gradients.items() if each is not None}
    # What the program does not differentiate by stays where it is.
    moves = {name: each for name, each in point.values.items() if name in gradients}
    directions = {name: generator.normal(size=each.shape) for name, each in moves.items()}
    sums = []
    for sign in (1, -1):
        moved = {n: each + sign * _STEP * directions[n] for n, each in moves.items()}
        outcome = reference(values={**point.values, **moved})
        if outcome is None or not is_finite(outcome.output):
            return False
        sums.append(float(np.sum(to_host(outcome.output))))
    slope = sum(
        float(np.sum(np.asarray(to_host(gradients[name])) * direction))
        for name, direction in directions.items()
    )
    difference = (sums[0] - sums[1]) / (2 * _STEP)
    return abs(slope - difference) <= 1e-5 * max(1.0, abs(difference))


def _agreeing(rewrite: Rewrite, point: _Point, rerun: Rerun, reference: Rerun) -> int | None:
    """How many numbers a rewrite has in common with the program at a point; None where its value or
    a gradient is another one.
    """
    there = rerun(rewrite.program(), point.values, "float64")
    if there is None or there.arrays().keys() != point.outcome.arrays().keys():
        return None
    if point.beside and not all_finite(there):
        return 0
    compared = _compared(there, point.outcome, None)
    if compared is None and point.values:
        compared = _compared(there, point.outcome, None, noise=_noise(point, reference))
    if compared is None:
        return None
    compares = all_finite(point.outcome) or not point.values
    return compared[0] if compares or _slopes_agree(there, point, reference) else None


_SAMPLES, _APART = 9, 1e-4
"""Runs that tell how rough a program is, and how far apart their inputs are."""

_ROUGH = 10.0
"""Numbers agree that are so many times as far apart as the program is rough there."""


def _noise(point: _Point, reference: Rerun) -> Arrays:
    """How rough each result of the program is around a point: its own rounding, which is large
    where it takes nearly equal numbers from each other, as `1 - sigmoid(30)` does.

    A smooth function has next to no fourth differences, and those of noise are √70 times as large
    as it is (Moré and Wild, "Estimating computational noise", 2011).
    """
    sampled: dict[str, list[Any]] = {}
    for number in range(_SAMPLES):
        moved = {n: a * (1 + number * _APART) for n, a in _floating(point.values).items()}
        outcome = reference(values={**point.values, **moved})
        for name, array in ({} if outcome is None else outcome.arrays()).items():
            sampled.setdefault(name, []).append(np.asarray(to_host(array), float))
    noise = {}
    for name, arrays in sampled.items():
        if len(arrays) == _SAMPLES and np.isfinite(arrays).all() and arrays[0].size:
            fourth = np.diff(np.stack(arrays), 4, axis=0)
            noise[name] = float(np.sqrt((fourth**2).mean(0).max() / 70))
    return noise


def _compared(
    outcome: Outcome,
    former: Outcome,
    exact: Outcome | None,
    guards: bool = False,
    noise: Arrays = _NOTHING,
) -> tuple[int, int, list[tuple[str, tuple[int, ...]]]] | None:
    """How many numbers agree with a known one, how many are unknown, and the first few of these;
    None for a mismatch.

    Args:
        noise: how far each known number may be from the true one, by name.
    """
    agree, count = 0, 0
    chosen: list[tuple[str, tuple[int, ...]]] = []
    references = [
        # The gradients of an infinite output are 0 or NaN, and mean nothing.
        each.arrays() if is_finite(each.output) else {"": each.output}
        for each in (exact, former)
        if each is not None and each.output is not None
    ]
    for name, array in outcome.arrays().items():
        array = np.asarray(to_host(array))
        known = np.zeros(array.shape, bool)
        data = (exact or former).inputs.get(name.removesuffix(".grad"))
        # Where the data is no number, its gradient means nothing.
        counts = np.ones(array.shape, bool) if data is None else np.isfinite(to_host(data))
        for reference in references:
            right = reference.get(name)
            if right is None or right.shape != array.shape:
                continue
            right = np.asarray(to_host(right))
            if guards and not name and np.isinf(right).any():
                return None
            here = np.isfinite(right) & ~known & counts
            close = max(_CLOSE.get(each.dtype.name, 1e-4) for each in (array, right))
            kind = complex if array.dtype.kind == "c" else float
            a, b = array[here].astype(kind), right[here].astype(kind)
            scale = float(np.abs(b).max()) if b.size and array.dtype.char == "d" else 1.0
            apart = close * min(scale, 1.0) + 1e-12 + _ROUGH * noise.get(name, 0.0)
            if not np.allclose(a, b, rtol=close, atol=apart):
                return None
            known |= here
        found = int(known.sum())
        agree, count = agree + found, count + known.size - found
        unknown = np.flatnonzero(~known)[: _MOST - len(chosen)]
        for flat in map(int, unknown):
            chosen.append((name, tuple(map(int, np.unravel_index(flat, known.shape)))))
    return agree, count, chosen


# --- changes --------------------------------------------------------------------------------------


# --- stable forms ---------------------------------------------------------------------------------


Stable = Iterator[tuple[str, str]]
"""Texts that stand for an expression, each with the reason why it is better."""


class Definitions:
    """The expressions of the names that a program assigns once."""

    def __init__(self, program: Sequence[tree.Statement]) -> None:
        definitions: dict[str, list[Expression]] = {}
        for each in tree.nodes_of(list(program)):
            if isinstance(each, tree.Assign):
                for target in each.targets:
                    if isinstance(target, tree.Name):
                        definitions.setdefault(target.name, []).append(each.value)
        self._found = {name: values[0] for name, values in definitions.items() if len(values) == 1}

    def opened(self, node: Expression) -> Expression:
        """What a name stands for; another expression as it is."""
        if isinstance(node, tree.Name):
            return self._found.get(node.name, node)
        return node

    def name_of(self, node: Expression) -> str | None:
        """The name that has an expression's value."""
        return next((name for name, value in self._found.items() if value is node), None)


Rule = Callable[[Expression, Definitions], Stable]


def stable(node: Expression, definitions: Definitions) -> Stable:
    """What may stand for an expression, the best first."""
    for rule in RULES:
        yield from rule(node, definitions)


_LOGARITHMS_OF_CALLS = (
    (
        "prod",
        "torch.log({u}).sum({more})",
        "the sum of the logarithms does not round to 0 as the product does",
    ),
    (
        "sigmoid",
        "torch.nn.functional.logsigmoid({u})",
        "logsigmoid does not round to 0 before the logarithm",
    ),
    (
        "softmax",
        "torch.log_softmax({u}, {more})",
        "log_softmax does not round to 0 before the logarithm",
    ),
)
"""The logarithm of a call: its name, the stable form, and why."""


def _logarithms(node: Expression, definitions: Definitions) -> Stable:
    """`log` of a sum of `exp`, of 1 + `exp`, of `sigmoid` or `softmax`."""
    call = call_of(node, "log")
    if call is None:
        return
    inside = definitions.opened(call.operands[0])
    summed = call_of(inside, "sum")
    power = None
    if summed is not None:
        power = call_of(definitions.opened(summed.operands[0]), "exp")
    if summed is not None and power is not None:
        u = power.operands[0]
        reason = "logsumexp takes the largest exponent out before exp can overflow"
        if summed.more():
            yield f"torch.logsumexp({inner(u)}, {summed.more()})", reason
        else:
            yield f"torch.logsumexp({operand(u)}.reshape(-1), 0)", reason
    whole, picks = _picked(inside, definitions)
    for name, form, reason in _LOGARITHMS_OF_CALLS:
        called = call_of(whole, name)
        if called is not None and not (picks and name == "prod"):
            form = form.format(u=inner(called.operands[0]), more=called.more())
            yield f"{form}{picks}", reason
    u_or_none = _exponent_of_one_plus_exp(inside)
    if u_or_none is not None:
        yield (
            f"torch.nn.functional.softplus({inner(u_or_none)})",
            "softplus is log(1 + exp(x)) without the overflow",
        )
    difference = binary(inside, "-")
    if difference is not None and is_number(difference[0], 1):
        sigmoid = call_of(definitions.opened(difference[1]), "sigmoid")
        if sigmoid is not None:
            yield (
                f"torch.nn.functional.logsigmoid(-{operand(sigmoid.operands[0])})",
                "1 - sigmoid(x) is sigmoid(-x)",
            )


def _picked(node: Expression, definitions: Definitions) -> tuple[Expression, str]:
    """What an expression picks elements of, and the text that does: `[0]`, `.gather(1, t)`; the
    expression itself and "" where it picks none.
    """
    whole: Expression | None = None
    if isinstance(node, tree.Subscript):
        whole = node.value
    elif isinstance(node, tree.Call) and isinstance(node.function, tree.Attribute):
        is_pick = node.function.name in ("gather", "index_select", "squeeze")
        whole = node.function.value if is_pick else None
    if whole is None:
        return node, ""
    text = " ".join(node.span.source.text[whole.span.end : node.span.end].split())
    inside, picks = _picked(definitions.opened(whole), definitions)
    return inside, f"{picks}{text}"


def _exponent_of_one_plus_exp(node: Expression) -> Expression | None:
    """`u` of `1 + exp(u)`."""
    total = binary(node, "+")
    if total is None:
        return None
    for one, other in (total, total[::-1]):
        power = call_of(other, "exp")
        if is_number(one, 1) and power is not None:
            return power.operands[0]
    return None


def _log1p(node: Expression, definitions: Definitions) -> Stable:
    call = call_of(node, "log1p")
    power = None if call is None else call_of(call.operands[0], "exp")
    if power is not None:
        u = inner(power.operands[0])
        yield f"torch.nn.functional.softplus({u})", "softplus is log1p(exp(x)) without the overflow"


def _ratios(node: Expression, definitions: Definitions) -> Stable:
    """`exp(x) / exp(x).sum()`, the logistic function, `tanh`."""
    ratio = binary(node, "/")
    if ratio is None:
        return
    above, below = ratio
    summed, power = call_of(below, "sum"), call_of(above, "exp")
    if summed is not None and power is not None and same(summed.operands[0], above):
        u = power.operands[0]
        reason = "softmax takes the largest exponent out before exp can overflow"
        dims = [each for each in summed.others if each.startswith("dim")]
        if len(summed.operands) > 1:
            dims.insert(0, inner(summed.operands[1]))
        if dims:
            yield f"torch.softmax({inner(u)}, {dims[0]})", reason
        else:
            flat = operand(u)
            yield f"torch.softmax({flat}.reshape(-1), 0).reshape({flat}.shape)", reason
    u_or_none = _exponent_of_one_plus_exp(below)
    if u_or_none is not None:
        negative = negated(u_or_none)
        reason = "sigmoid never forms the exp that overflows"
        if is_number(above, 1) and negative is not None:
            yield f"torch.sigmoid({inner(negative)})", reason
        elif is_number(above, 1):
            yield f"torch.sigmoid(-{operand(u_or_none)})", reason
        elif power is not None and same(power.operands[0], u_or_none):
            yield f"torch.sigmoid({inner(u_or_none)})", reason
    difference, total = binary(above, "-"), binary(below, "+")
    if difference is not None and total is not None:
        first = call_of(difference[0], "exp")
        if first is not None and same(difference[0], total[0]) and same(difference[1], total[1]):
            yield f"torch.tanh({inner(first.operands[0])})", "tanh never forms the exp"


def shifted(
    node: Expression, definitions: Definitions, program: Sequence[tree.Statement]
) -> Stable:
    """`exp(x)` that is divided by its own sum somewhere else: right for a ratio alone."""
    call = call_of(node, "exp")
    if call is None:
        return
    u = call.operands[0]
    name = definitions.name_of(node)
    reason = "a ratio of exps does not change when the largest exponent is taken out"
    for each in tree.nodes_of(list(program)):
        summed = call_of(each, "sum") if isinstance(each, tree.Expression) else None
        if summed is None or summed.operands[0].span.text not in (name, node.span.text):
            continue
        dims = [inner(d) for d in summed.operands[1:2]]
        dims += [d.partition("=")[2].strip() for d in summed.others if re.match("dim|axis", d)]
        if dims:
            yield f"torch.exp({inner(u)} - {operand(u)}.amax({dims[0]}, keepdim=True))", reason
    yield f"torch.exp({inner(u)} - {operand(u)}.max())", reason


def _lengths(node: Expression, definitions: Definitions) -> Stable:
    """The root of a sum of squares, and the root of a square."""
    inside = _root_of(node)
    if inside is None:
        return
    summed = call_of(inside, "sum")
    if summed is not None:
        u = _square_of(summed.operands[0])
        if u is not None:
            more = summed.more()
            arguments = f"{inner(u)}, dim={more}" if more and "=" not in more else inner(u)
            if "=" in more:
                arguments = f"{inner(u)}, {more}"
            yield (
                f"torch.linalg.vector_norm({arguments})",
                "vector_norm takes the gradient 0 where all is 0",
            )
    averaged = call_of(inside, "mean")
    u = None if averaged is None else _square_of(averaged.operands[0])
    if averaged is not None and u is not None and not averaged.more():
        centred = binary(u, "-")
        mean = None if centred is None else call_of(definitions.opened(centred[1]), "mean")
        if centred is not None and mean is not None and same(centred[0], mean.operands[0]):
            yield (
                f"{operand(centred[0])}.std(correction=0)",
                "std takes the gradient 0 where all numbers are equal",
            )
        yield (
            f"torch.linalg.vector_norm({inner(u)}) / {operand(u)}.numel() ** 0.5",
            "vector_norm takes the gradient 0 where all is 0",
        )
    u = _square_of(inside)
    if u is not None:
        yield f"{operand(u)}.abs()", "the root of a square is the absolute value"


def _root_of(node: Expression) -> Expression | None:
    call = call_of(node, "sqrt")
    if call is not None:
        return call.operands[0]
    power = binary(node, "**")
    if power is not None and is_number(power[1], 0.5):
        return power[0]
    call = call_of(node, "pow")
    if call is not None and len(call.operands) == 2 and is_number(call.operands[1], 0.5):
        return call.operands[0]
    return None


def _square_of(node: Expression) -> Expression | None:
    power = binary(node, "**")
    if power is not None and is_number(power[1], 2):
        return power[0]
    product = binary(node, "*")
    if product is not None and same(*product):
        return product[0]
    call = call_of(node, "square")
    if call is not None:
        return call.operands[0]
    call = call_of(node, "pow")
    if call is not None and len(call.operands) == 2 and is_number(call.operands[1], 2):
        return call.operands[0]
    return None


def _entropies(node: Expression, definitions: Definitions) -> Stable:
    """`p * log(p)`."""
    product = binary(node, "*")
    if product is None:
        return
    for p, other in (product, product[::-1]):
        log = call_of(other, "log")
        if log is not None and same(log.operands[0], p):
            u = inner(p)
            yield (
                f"torch.xlogy({u}, torch.where({u} > 0, {u}, 1))",
                "0 · log 0 is 0 by the limit, and xlogy says so",
            )
        elif log is not None:
            yield (
                f"torch.xlogy({inner(p)}, {inner(log.operands[0])})",
                "xlogy is 0 where its first argument is",
            )


RULES: tuple[Rule, ...] = (
    _logarithms,
    _log1p,
    _ratios,
    _lengths,
    _entropies,
)


# --- changes --------------------------------------------------------------------------------------


def rewrites(
    blamed: Blamed, others: Sequence[Blamed], program: Sequence[tree.Statement]
) -> list[Rewrite]:
    """What may fix a first NaN or infinity, the best first; `others` may need fixing too."""
    place = blamed.nonfinite.place
    if place is None or blamed.diverges or blamed.grows or blamed.nonfinite.stepped:
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
