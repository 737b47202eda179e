"""Quotients of polynomials, as a number and powers of polynomials without a common divisor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from gradcli.questions.derive.algebra import polynomials
from gradcli.questions.derive.algebra.polynomials import Monomial, Polynomial, TooLarge

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
        return {name for factor in self.factors for name in polynomials.names_of(dict(factor))}

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
    return Quotient(Fraction(1), {frozenset(polynomials.variable(name).items()): 1})


def of_polynomial(f: Polynomial) -> Quotient:
    """A polynomial in its factors: each name that all terms share, and each repeated one."""
    if not f:
        return of_number(0)
    number, f = polynomials.primitive(f)
    factors: dict[Factor, int] = {}
    shared = polynomials.common_of([{monomial: Fraction(1)} for monomial in f])
    for name, exponent in next(iter(shared)):
        factors[frozenset(polynomials.variable(name).items())] = exponent
    f = polynomials.divided(f, shared) or {}
    rest = f
    for factor, exponent in polynomials.square_free(f):
        factors[frozenset(factor.items())] = exponent
        rest = polynomials.divided(rest, polynomials.power(factor, exponent)) or {}
    return Quotient(number * rest[()], factors)


def multiplied_out(factors: Iterable[tuple[Factor, int]]) -> Polynomial:
    """A product of powers as one polynomial."""
    total = polynomials.constant(1)
    for factor, exponent in factors:
        if exponent > _MOST_EXPONENT:
            raise TooLarge
        total = polynomials.times(total, polynomials.power(dict(factor), exponent))
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
        rest = polynomials.plus(rest, multiplied_out((f, e) for f, e in above if e), term.number)
    return of_polynomial(rest).times(Quotient(Fraction(1), shared))


def cancelled(quotient: Quotient) -> Quotient:
    """A quotient without what factors above and below the line have in common."""
    for above, exponent in quotient.factors.items():
        for below, other in quotient.factors.items():
            if exponent < 0 or other > 0:
                continue
            divisor = polynomials.common(dict(above), dict(below))
            if not polynomials.names_of(divisor):
                continue
            factors = {f: e for f, e in quotient.factors.items() if f not in (above, below)}
            number = quotient.number
            for whole, power in ((above, exponent), (below, other)):
                part = of_polynomial(polynomials.divided(dict(whole), divisor) or {})
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
