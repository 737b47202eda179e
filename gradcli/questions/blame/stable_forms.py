"""Rewrites formulas that overflow or lose their slope as the functions that do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gradcli.language.tree import syntax as tree
from gradcli.recorded.patterns import (
    Expression,
    binary,
    call_of,
    inner,
    is_number,
    negated,
    operand,
    same,
)

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
    for name, form, reason in _LOGARITHMS_OF_CALLS:
        called = call_of(inside, name)
        if called is not None:
            yield form.format(u=inner(called.operands[0]), more=called.more()), reason
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
