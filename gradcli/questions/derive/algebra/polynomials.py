"""Polynomials in any number of names, with fractions in front: sums, products, common divisors;
and their quotients, as a number and powers of polynomials without a common divisor.

A polynomial is a dict from monomials to numbers, a monomial the names of its factors in order, each
with its exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
        step = number if factor == 1 else number * factor
        total[monomial] = total[monomial] + step if monomial in total else step
    if len(total) > _MOST_TERMS:
        raise TooLarge
    return {monomial: number for monomial, number in total.items() if number}


def times(f: Polynomial, g: Polynomial) -> Polynomial:
    """`f * g`."""
    total: Polynomial = {}
    for one, number in f.items():
        for other, factor in g.items():
            monomial = _joined(one, other)
            step = number * factor
            total[monomial] = total[monomial] + step if monomial in total else step
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
    number = Fraction(-above if leading < 0 else above, below)
    return number, f if number == 1 else {monomial: each / number for monomial, each in f.items()}


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


# --- quotients ------------------------------------------------------------------------------------


Factor = frozenset[tuple[Monomial, Fraction]]
"""A polynomial that can be a key."""

_MOST_EXPONENT = 12
"""Powers of sums up to this one are multiplied out where they are added."""


class Quotient:
    """A number times powers of polynomials.

    Attributes:
        factors: the exponent of each polynomial, whose numbers are whole and have no common
            divisor.
    """

    def __init__(self, number: Fraction, factors: Mapping[Factor, int]) -> None:
        self.number = number
        self.factors = {f: e for f, e in factors.items() if e} if number else {}

    @property
    def key(self) -> tuple[Fraction, frozenset[tuple[Factor, int]]]:
        """What two equal quotients share."""
        return self.number, frozenset(self.factors.items())

    @property
    def names(self) -> set[str]:
        """The names in it."""
        return {name for factor in self.factors for name in names_of(dict(factor))}

    def exponent(self, name: str) -> int:
        """The exponent of a name that is a factor, else 0."""
        (factor,) = of_name(name).factors
        return self.factors.get(factor, 0)

    def times(self, other: Quotient, exponent: int = 1) -> Quotient:
        """The product with a power of another one, whose number is not 0 where that is negative."""
        factors = dict(self.factors)
        for factor, each in other.factors.items():
            factors[factor] = factors.get(factor, 0) + each * exponent
        return cancelled(Quotient(self.number * other.number**exponent, factors))


def of_number(number: Fraction | int) -> Quotient:
    """A number."""
    return Quotient(Fraction(number), {})


def of_name(name: str) -> Quotient:
    """A name."""
    return Quotient(Fraction(1), {frozenset(variable(name).items()): 1})


def of_polynomial(f: Polynomial) -> Quotient:
    """A polynomial in its factors: each name that all terms share, and each repeated one."""
    if not f:
        return of_number(0)
    number, f = primitive(f)
    factors: dict[Factor, int] = {}
    shared = common_of([{monomial: Fraction(1)} for monomial in f])
    for name, exponent in next(iter(shared)):
        factors[frozenset(variable(name).items())] = exponent
    f = divided(f, shared) or {}
    rest = f
    for factor, exponent in square_free(f):
        factors[frozenset(factor.items())] = exponent
        rest = divided(rest, power(factor, exponent)) or {}
    return Quotient(number * rest[()], factors)


def multiplied_out(factors: Iterable[tuple[Factor, int]]) -> Polynomial:
    """A product of powers as one polynomial."""
    total = constant(1)
    for factor, exponent in factors:
        if exponent > _MOST_EXPONENT:
            raise TooLarge
        total = times(total, power(dict(factor), exponent))
    return total


def total_of(terms: list[Quotient]) -> Quotient:
    """The sum over the least common denominator, without what above and below it share."""
    terms = [term for term in terms if term.number]
    if not terms:
        return of_number(0)
    every = dict.fromkeys(factor for term in terms for factor in term.factors)
    shared = {f: min(term.factors.get(f, 0) for term in terms) for f in every}
    rest: Polynomial = {}
    for term in terms:
        above = [(f, term.factors.get(f, 0) - shared[f]) for f in every]
        rest = plus(rest, multiplied_out((f, e) for f, e in above if e), term.number)
    return of_polynomial(rest).times(Quotient(Fraction(1), shared))


def cancelled(quotient: Quotient) -> Quotient:
    """A quotient without what factors above and below the line have in common."""
    for above, exponent in quotient.factors.items():
        for below, other in quotient.factors.items():
            if exponent < 0 or other > 0:
                continue
            divisor = common(dict(above), dict(below))
            if not names_of(divisor):
                continue
            factors = {f: e for f, e in quotient.factors.items() if f not in (above, below)}
            number = quotient.number
            for whole, power in ((above, exponent), (below, other)):
                part = of_polynomial(divided(dict(whole), divisor) or {})
                number *= part.number**power
                for factor, each in (*part.factors.items(), (frozenset(divisor.items()), 1)):
                    factors[factor] = factors.get(factor, 0) + each * power
            return cancelled(Quotient(number, factors))
    return quotient


def with_quotients(f: Quotient, name: str, power: int, value: Quotient) -> Quotient:
    """A quotient in which a power of a name is replaced, as often as it is in each term.

    Raises:
        ZeroDivisionError: if that makes a denominator 0.
    """
    total = of_number(f.number)
    for factor, exponent in f.factors.items():
        terms = []
        for monomial, number in factor:
            count, left = divmod(dict(monomial).get(name, 0), power)
            rest = of_number(number)
            for each, times in monomial:
                rest = rest.times(of_name(each), left if each == name else times)
            terms.append(rest.times(value, count) if count else rest)
        replaced = total_of(terms)
        if not replaced.number and exponent < 0:
            raise ZeroDivisionError
        total = total.times(replaced, exponent)
    return total
