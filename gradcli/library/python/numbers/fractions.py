"""The module `fractions`: the host's exact numbers, whose size is bounded."""

from __future__ import annotations

import fractions as host
import re
from operator import attrgetter
from typing import Any

from gradcli.language.limits import check_integer
from gradcli.language.objects.methods import CLASS_METHODS, METHODS, VALUES
from gradcli.language.objects.repr import HOST_TEXT
from gradcli.language.objects.types import define

_EXPONENT = re.compile(r"[eE][-+]?(\d[\d_]*)\s*$")
_BITS_A_DIGIT = 4


class Fraction(host.Fraction):
    """A quotient of integers; raises E602 where one of these gets too large."""

    __slots__ = ()

    def __new__(cls, numerator: Any = 0, denominator: Any = None) -> Fraction:
        """As of the host's; raises E204 for a text that is no number."""
        exponent = _EXPONENT.search(numerator) if isinstance(numerator, str) else None
        if exponent is not None:
            check_integer(_BITS_A_DIGIT * int(exponent[1][:20].replace("_", "")))
        fraction: Fraction = super().__new__(cls, numerator, denominator)
        return fraction

    def limit_denominator(self, max_denominator: int = 1000000) -> Fraction:
        """The closest fraction whose denominator is no larger."""
        return Fraction(super().limit_denominator(max_denominator))

    def __round__(self, ndigits: int | None = None) -> Any:
        if isinstance(ndigits, int):
            check_integer(_BITS_A_DIGIT * abs(ndigits))
        return _own(super().__round__(ndigits))


def _own(value: Any) -> Any:
    return Fraction(value) if type(value) is host.Fraction else value


def _bits(value: Any) -> int:
    if not isinstance(value, (int, host.Fraction)):
        return 0
    return value.numerator.bit_length() + value.denominator.bit_length()


def _operator(name: str) -> Any:
    function = getattr(host.Fraction, name)

    def operate(self: Fraction, other: Any) -> Any:
        if name in ("__pow__", "__rpow__"):
            base, exponent = (self, other) if name == "__pow__" else (other, self)
            if isinstance(exponent, (int, host.Fraction)) and exponent.denominator == 1:
                check_integer(_bits(base) * abs(exponent.numerator))
        else:
            check_integer(_bits(self) + _bits(other))
        # The host's `__rpow__` would ask this one again for a class of its own.
        result = function(host.Fraction(self) if name == "__rpow__" else self, other)
        return tuple(map(_own, result)) if type(result) is tuple else _own(result)

    operate.__name__ = name
    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow"):
    for _side in ("", "r"):
        setattr(Fraction, f"__{_side}{_name}__", _operator(f"__{_side}{_name}__"))
for _name in ("neg", "pos", "abs"):
    _unary = getattr(host.Fraction, f"__{_name}__")
    setattr(Fraction, f"__{_name}__", lambda self, unary=_unary: Fraction(unary(self)))

METHODS[Fraction] = {
    name: getattr(Fraction, name) for name in ("as_integer_ratio", "limit_denominator")
}
VALUES[Fraction] = {name: attrgetter(name) for name in ("numerator", "denominator", "real", "imag")}
CLASS_METHODS[Fraction] = {name: getattr(Fraction, name) for name in ("from_decimal", "from_float")}
HOST_TEXT.add(Fraction)


def _construct(numerator: Any = 0, denominator: Any = None) -> Fraction:
    return Fraction(numerator, denominator)


FRACTIONS: dict[str, Any] = {
    "Fraction": define("fractions.Fraction", Fraction, construct=_construct)
}
"""What `fractions` holds."""
