"""Numbers in formulas as a person writes them: `1 / 3` for 0.3333, `math.sqrt(8)` for 2.828…"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from functools import lru_cache

from gradcli.recorded.symbols.tree import Attribute, Call, Constant, Name, Operation, Symbol

_LARGEST = 1024
"""The largest denominator of a number that is written as a fraction."""

_PLAIN = 100
"""The largest denominator of a number that may have been computed in single precision."""

_SIMPLE = 16
"""The largest numerator and denominator before a number that has a name."""

_SHORT = 4
"""The same before one that may have been computed in single precision."""

_SINGLE, _DOUBLE = 1e-7, 1e-12
"""How close a number in either precision comes to what it is written as."""

PI = Attribute(Name("math"), "pi")

NAMED: tuple[tuple[float, Symbol], ...] = (
    (math.pi, PI),
    (math.sqrt(math.pi), Call("math.sqrt", (PI,))),
    (math.sqrt(2 * math.pi), Call("math.sqrt", (Operation("*", Constant(2), PI),))),
    (math.e, Attribute(Name("math"), "e")),
    (math.log(2), Call("math.log", (Constant(2),))),
    (math.log(10), Call("math.log", (Constant(10),))),
)
"""Numbers with a name, and how they are written."""


def number_of(symbol: Symbol) -> Fraction | None:
    """The number that a constant is, as the fraction that a person writes."""
    if not isinstance(symbol, Constant) or type(symbol.value) not in (int, float):
        return None
    value = symbol.value
    if value != value or abs(value) == float("inf"):
        return None
    near = Fraction(value).limit_denominator(_LARGEST)
    room = _SINGLE if near.denominator <= _PLAIN else _room(value)
    close = abs(float(near) - value) <= room * abs(value)
    return near if close and (near == value or _named(value) is None) else Fraction(value)


def _room(value: float) -> float:
    """How far a number may be from what it is written as: it may have been rounded to single
    precision.
    """
    (single,) = struct.unpack("f", struct.pack("f", value)) if abs(value) < 1e38 else (0.0,)
    return _SINGLE if value in (single, float(f"{single:.9g}")) else _DOUBLE


@lru_cache(1024)
def _named(value: float) -> tuple[Fraction, Symbol, int] | None:
    """A number as a fraction times a power of one that has a name."""
    for known, symbol in NAMED:
        for power in (1, -1, 2, -2):
            rest = Fraction(value / known**power).limit_denominator(_SIMPLE)
            is_short = max(abs(rest.numerator), rest.denominator) <= _SHORT
            room = _SINGLE if is_short else _room(value)
            if rest and abs(rest) <= _SIMPLE and _is_close(float(rest) * known**power, value, room):
                return rest, symbol, power
    return None


def factors_of(number: Fraction) -> tuple[Fraction, list[tuple[Symbol, int]]]:
    """A number as a fraction times powers of numbers that have a name or are roots."""
    if is_fraction(number):
        return number, []
    value = float(number)
    named = _named(value)
    if named is not None:
        return named[0], [named[1:]]
    square = Fraction(value * value).limit_denominator(_LARGEST)
    room = 2 * _SINGLE if 1 in (square.numerator, square.denominator) else _room(value)
    if square.numerator > _LARGEST or not _is_close(float(square), value * value, room):
        return number, []
    sign = -1 if value < 0 else 1
    above, below = square.numerator, square.denominator
    if math.isqrt(above) ** 2 == above:
        return Fraction(sign * math.isqrt(above)), [(_root_of(below), -1)]
    if math.isqrt(below) ** 2 == below:
        return Fraction(sign, math.isqrt(below)), [(_root_of(above), 1)]
    return Fraction(sign), [(_root_of(above), 1), (_root_of(below), -1)]


def _root_of(number: int) -> Symbol:
    return Call("math.sqrt", (Constant(number),))


def _is_close(approximation: float, value: float, room: float) -> bool:
    return abs(approximation - value) <= room * abs(value)


def is_fraction(number: Fraction) -> bool:
    """Whether a number is written as a fraction, not with a point."""
    return number.denominator <= _LARGEST


def constant(number: Fraction) -> Symbol:
    """A fraction as a formula."""
    if number.denominator == 1:
        return Constant(int(number))
    if is_fraction(number):
        return Operation("/", Constant(number.numerator), Constant(number.denominator))
    return Constant(float(number))
