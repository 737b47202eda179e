"""Polynomials in any number of names, with fractions in front: sums, products, common divisors.

A polynomial is a dict from monomials to numbers, a monomial the names of its factors in order, each
with its exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]

_MOST_TERMS = 60
"""Polynomials of more terms are not computed with."""

_MOST_FACTORS = 24
"""The largest number of factors in a monomial."""


class TooLarge(Exception):
    """A polynomial would have more terms, or more factors in a term, than are worth the time."""


def constant(number: Fraction | int) -> Polynomial:
    """A number as a polynomial."""
    return {(): Fraction(number)} if number else {}


def variable(name: str) -> Polynomial:
    """A name as a polynomial."""
    return {((name, 1),): Fraction(1)}


def names_of(f: Polynomial) -> set[str]:
    """The names in a polynomial."""
    return {name for monomial in f for name, _ in monomial}


def plus(f: Polynomial, g: Polynomial, factor: Fraction | int = 1) -> Polynomial:
    """`f + factor * g`."""
    total = dict(f)
    for monomial, number in g.items():
        total[monomial] = total.get(monomial, Fraction(0)) + number * factor
    if len(total) > _MOST_TERMS:
        raise TooLarge
    return {monomial: number for monomial, number in total.items() if number}


def times(f: Polynomial, g: Polynomial) -> Polynomial:
    """`f * g`."""
    total: Polynomial = {}
    for one, number in f.items():
        for other, factor in g.items():
            monomial = _joined(one, other)
            total[monomial] = total.get(monomial, Fraction(0)) + number * factor
    if len(total) > _MOST_TERMS:
        raise TooLarge
    return {monomial: number for monomial, number in total.items() if number}


def _joined(one: Monomial, other: Monomial) -> Monomial:
    exponents = dict(one)
    for name, exponent in other:
        exponents[name] = exponents.get(name, 0) + exponent
    if sum(exponents.values()) > _MOST_FACTORS:
        raise TooLarge
    return tuple(sorted(exponents.items()))


def power(f: Polynomial, exponent: int) -> Polynomial:
    """`f ** exponent`."""
    total = constant(1)
    for _ in range(exponent):
        total = times(total, f)
    return total


def coefficients(f: Polynomial, name: str) -> dict[int, Polynomial]:
    """What stands before each power of a name."""
    by_power: dict[int, Polynomial] = {}
    for monomial, number in f.items():
        exponent = dict(monomial).get(name, 0)
        rest = tuple(pair for pair in monomial if pair[0] != name)
        by_power.setdefault(exponent, {})[rest] = number
    return by_power


def _raised(f: Polynomial, name: str, exponent: int) -> Polynomial:
    """`f * name ** exponent`."""
    return times(f, {((name, exponent),): Fraction(1)}) if exponent else f


def primitive(f: Polynomial) -> tuple[Fraction, Polynomial]:
    """A number and a polynomial of whole numbers without a common divisor, whose product is f; the
    first term of the latter, by its names, is positive.
    """
    if not f:
        return Fraction(1), {}
    above = math.gcd(*(number.numerator for number in f.values()))
    below = math.lcm(*(number.denominator for number in f.values()))
    leading = f[max(f, key=lambda each: (sum(e for _, e in each), each))]
    number = Fraction(above, below) * (-1 if leading < 0 else 1)
    return number, {monomial: each / number for monomial, each in f.items()}


def divided(f: Polynomial, g: Polynomial) -> Polynomial | None:
    """`f / g` where that is a polynomial."""
    names = names_of(g)
    if not names:
        number = g[()]
        return {monomial: each / number for monomial, each in f.items()}
    name = max(names)
    above, below = coefficients(f, name), coefficients(g, name)
    size = max(below)
    quotient: Polynomial = {}
    while above and max(above) >= size:
        top = max(above)
        part = divided(above[top], below[size])
        if part is None:
            return None
        step = _raised(part, name, top - size)
        quotient = plus(quotient, step)
        f = plus(f, times(step, g), -1)
        above = coefficients(f, name)
    return None if f else quotient


def common(f: Polynomial, g: Polynomial) -> Polynomial:
    """The greatest common divisor, of whole numbers."""
    if not f or not g:
        return primitive(f or g)[1]
    shared = names_of(f) & names_of(g)
    for one, other in ((f, g), (g, f)):
        extra = names_of(one) - shared
        if extra:
            return common(_content(one, min(extra)), other)
    if not shared:
        return constant(1)
    name = min(shared)
    contents = _content(f, name), _content(g, name)
    parts = [divided(each, by) for each, by in zip((f, g), contents, strict=True)]
    one, other = (primitive(each or {})[1] for each in parts)
    if max(coefficients(one, name)) < max(coefficients(other, name)):
        one, other = other, one
    while other and name in names_of(other):
        rest = primitive(_remainder(one, other, name))[1]
        if rest:
            rest = divided(rest, _content(rest, name)) or {}
        one, other = other, rest
    divisor = constant(1) if other else one
    return primitive(times(divisor, common(*contents)))[1]


def _content(f: Polynomial, name: str) -> Polynomial:
    """The common divisor of what stands before the powers of a name."""
    return common_of(coefficients(f, name).values())


def common_of(polynomials: Iterable[Polynomial]) -> Polynomial:
    """The greatest common divisor of several."""
    total: Polynomial = {}
    for each in polynomials:
        total = common(total, each)
    return total


def _remainder(f: Polynomial, g: Polynomial, name: str) -> Polynomial:
    """What is left of f, times a power of g's first coefficient, after it was divided by g."""
    below = coefficients(g, name)
    size = max(below)
    above = coefficients(f, name)
    while above and max(above) >= size:
        top = max(above)
        step = _raised(above[top], name, top - size)
        f = plus(times(f, below[size]), times(step, g), -1)
        above = coefficients(f, name)
    return f


def square_free(f: Polynomial) -> list[tuple[Polynomial, int]]:
    """Polynomials and exponents, whose product is f but for a number in front."""
    factors: list[tuple[Polynomial, int]] = []
    for name in sorted(names_of(f)):
        if name not in names_of(f):
            continue
        content = _content(f, name)
        f = divided(f, content) or {}
        repeated = common(f, _derivative(f, name))
        once = divided(f, repeated) or {}
        exponent = 1
        while names_of(once):
            again = common(once, repeated)
            factor = primitive(divided(once, again) or {})[1]
            if names_of(factor):
                factors.append((factor, exponent))
            once, repeated = again, divided(repeated, again) or {}
            exponent += 1
        f = content
    return factors


def _derivative(f: Polynomial, name: str) -> Polynomial:
    derivative: Polynomial = {}
    for exponent, factor in coefficients(f, name).items():
        if exponent:
            derivative = plus(derivative, _raised(factor, name, exponent - 1), exponent)
    return derivative
