"""The modules `decimal`, whose numbers stand in a context that each session has for itself, and
`fractions`: the host's exact numbers, whose size is bounded.
"""

from __future__ import annotations

import decimal as host
import fractions
import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import charge, check_integer
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.methods import CLASS_METHODS, METHODS, VALUES
from gradcli.language.objects.repr import HOST_FORMAT, HOST_TEXT
from gradcli.language.objects.types import EXCEPTIONS, called, check_kind, define, names, type_name
from gradcli.state import active

# --- decimal --------------------------------------------------------------------------------------


_MOST_DIGITS = 10_000
"""The largest precision, and no number is written with more zeros than the host's 999,999."""

_ROUNDINGS = [name for name in dir(host) if name.startswith("ROUND_")]


class Context:
    """`decimal.getcontext()`: the precision and the rounding of a session's decimals."""

    __slots__ = ("host",)

    language_name: ClassVar[str] = "decimal.Context"
    language_attributes = names("copy create_decimal prec rounding")
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"prec", "rounding"})

    def __init__(self, prec: int = 28, rounding: str = host.ROUND_HALF_EVEN) -> None:
        traps = [host.InvalidOperation, host.DivisionByZero, host.Overflow]
        self.host = host.Context(28, Emin=-999999, Emax=999999, traps=traps)
        self.prec = prec
        self.rounding = rounding

    @property
    def prec(self) -> int:
        """How many digits a result has."""
        return self.host.prec

    @prec.setter
    def prec(self, value: int) -> None:
        check_kind(value, int, "a precision is an integer")
        if value < 1:
            raise value_error("valid range for prec is [1, MAX_PREC]")
        if value > _MOST_DIGITS:
            raise GradcliError("E602", f"a precision of {value:,} digits is too large")
        self.host.prec = value

    @property
    def rounding(self) -> str:
        """The name of the rounding."""
        return self.host.rounding

    @rounding.setter
    def rounding(self, value: str) -> None:
        if value not in _ROUNDINGS:
            raise type_error(f"valid values for rounding are:\n  [{', '.join(_ROUNDINGS)}]")
        self.host.rounding = value

    def copy(self) -> Context:
        """One of its own with the same settings."""
        return Context(self.prec, self.rounding)

    def create_decimal(self, num: Any = "0", /) -> Decimal:
        """A number rounded to the precision."""
        return _own(_guarded(self.host.plus, Decimal(num)))

    def __repr__(self) -> str:
        return repr(self.host)


class LocalContext:
    """`decimal.localcontext()`."""

    __slots__ = ("before", "inner")

    language_name: ClassVar[str] = "decimal.ContextManager"
    language_context: ClassVar[bool] = True

    def __init__(self, ctx: Any = None, **settings: Any) -> None:
        outer = getcontext() if ctx is None else ctx
        if type(outer) is not Context:
            raise type_error(f"a context is needed, not {type_name(outer)}")
        self.inner = outer.copy()
        for name, value in settings.items():
            if name not in Context.settable_attributes:
                raise type_error(f"'{name}' is an invalid keyword argument for this function")
            setattr(self.inner, name, value)

    def __enter__(self) -> Context:
        self.before = getcontext()
        setcontext(self.inner)
        return self.inner

    def __exit__(self, *exception: object) -> None:
        setcontext(self.before)


def getcontext() -> Context:
    """The session's context."""
    context: Context = active.state.library.setdefault("decimal", Context())
    return context


def setcontext(context: Any) -> None:
    """Compute in another context from now on."""
    if type(context) is not Context:
        raise type_error(f"a context is needed, not {type_name(context)}")
    active.state.library["decimal"] = context


def _guarded(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a host's function, whose errors become the language's."""
    try:
        return function(*args)
    except host.DecimalException as error:
        kind = next(name for name in _ERRORS if isinstance(error, getattr(host, name)))
        raise Raised(kind, str(error), (str(error),), "E206") from error


_ERRORS = ("DivisionByZero", "Overflow", "InvalidOperation")


class Decimal(host.Decimal):
    """A decimal number; raises E602 where it stands for an integer of too many digits."""

    __slots__ = ()

    def __new__(cls, value: Any = "0", context: Any = None) -> Decimal:
        """As of the host's; raises InvalidOperation for a text that is no number."""
        number: Decimal = _guarded(super().__new__, cls, value)
        if abs(number.adjusted()) > getcontext().host.Emax:
            raise GradcliError("E602", "a decimal number beyond 1E+999999 is too large")
        return number

    def __int__(self) -> int:
        check_integer(4 * self.adjusted())
        return int(_guarded(super().__int__))

    __trunc__ = __int__

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is None:
            return int(_guarded(self.to_integral_value, host.ROUND_HALF_EVEN))
        return self._with("quantize", host.Decimal((0, (1,), -ndigits)))

    def __floor__(self) -> int:
        return int(Decimal(_guarded(self.to_integral_value, host.ROUND_FLOOR)))

    def __ceil__(self) -> int:
        return int(Decimal(_guarded(self.to_integral_value, host.ROUND_CEILING)))

    def _with(self, name: str, *operands: Any) -> Any:
        """The result of an operation of the session's context."""
        if name in _SERIES:
            charge(getcontext().prec ** 2)
        return _own(_guarded(getattr(getcontext().host, name), self, *operands))


_SERIES = frozenset({"exp", "ln", "log10", "power"})
"""The operations whose work grows with the square of the precision."""


def _own(value: Any) -> Any:
    return Decimal(value) if type(value) is host.Decimal else value


def _operator(name: str, method: str, reflected: bool) -> Callable[[Decimal, Any], Any]:
    def operate(self: Decimal, other: Any) -> Any:
        if not isinstance(other, (int, host.Decimal)):
            return NotImplemented
        left, right = (Decimal(other), self) if reflected else (self, other)
        result = left._with(method, right)
        return tuple(map(_own, result)) if type(result) is tuple else result

    operate.__name__ = name
    return operate


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "divide_int", "mod": "remainder", "divmod": "divmod", "pow": "power",
}  # fmt: skip
for _name, _method in _OPERATORS.items():
    for _side in ("", "r"):
        _full = f"__{_side}{_name}__"
        setattr(Decimal, _full, _operator(_full, _method, bool(_side)))
for _name, _method in {"neg": "minus", "pos": "plus", "abs": "abs"}.items():
    setattr(Decimal, f"__{_name}__", lambda self, method=_method: self._with(method))


def _in_context(name: str) -> Callable[..., Any]:
    return called(name, lambda self, *operands: self._with(name, *operands))


def _quantize(self: Decimal, exp: Any, rounding: Any = None) -> Decimal:
    context = getcontext()
    if rounding is not None:
        context = Context(context.prec, rounding)
    return Decimal(_guarded(context.host.quantize, self, exp))


def _to_integral(self: Decimal, rounding: Any = None) -> Decimal:
    mode = getcontext().rounding if rounding is None else rounding
    return Decimal(_guarded(self.to_integral_value, mode))


_IN_CONTEXT = """compare exp fma ln log10 max min normalize remainder_near same_quantum scaleb
    sqrt"""
_WITHOUT_CONTEXT = """adjusted as_integer_ratio copy_abs copy_negate copy_sign is_finite is_infinite
    is_nan is_signed is_zero to_eng_string"""


def _plain(name: str) -> Callable[..., Any]:
    method = getattr(host.Decimal, name)
    return called(name, lambda self, *operands: _own(_guarded(method, self, *operands)))


METHODS[Decimal] = {
    **{name: _in_context(name) for name in _IN_CONTEXT.split()},
    **{name: _plain(name) for name in _WITHOUT_CONTEXT.split()},
    "quantize": _quantize,
    "to_integral": _to_integral,
    "to_integral_value": _to_integral,
}
VALUES[Decimal] = {name: attrgetter(name) for name in ("real", "imag")}
CLASS_METHODS[Decimal] = {"from_float": lambda f, /: Decimal(f)}
HOST_TEXT.add(Decimal)
HOST_FORMAT.add(Decimal)


def _construct(value: Any = "0", context: Any = None) -> Decimal:
    if not isinstance(value, (int, float, str, tuple, list, host.Decimal)):
        raise type_error(f"conversion from {type_name(value)} to Decimal is not supported")
    return Decimal(value)


DECIMAL: dict[str, Any] = {
    "Context": define("decimal.Context", Context, construct=Context),
    "Decimal": define("decimal.Decimal", Decimal, construct=_construct),
    **{name: EXCEPTIONS[name] for name in (*_ERRORS, "DecimalException")},
    "getcontext": getcontext,
    "localcontext": LocalContext,
    "setcontext": setcontext,
    **{name: name for name in _ROUNDINGS},
}
"""What `decimal` holds."""


# --- fractions ------------------------------------------------------------------------------------


_EXPONENT = re.compile(r"[eE][-+]?(\d[\d_]*)\s*$")
_BITS_A_DIGIT = 4


class Fraction(fractions.Fraction):
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
        return _own_fraction(super().__round__(ndigits))


def _own_fraction(value: Any) -> Any:
    return Fraction(value) if type(value) is fractions.Fraction else value


def _bits(value: Any) -> int:
    if not isinstance(value, (int, fractions.Fraction)):
        return 0
    return value.numerator.bit_length() + value.denominator.bit_length()


def _fraction_operator(name: str) -> Any:
    function = getattr(fractions.Fraction, name)

    def operate(self: Fraction, other: Any) -> Any:
        if name in ("__pow__", "__rpow__"):
            base, exponent = (self, other) if name == "__pow__" else (other, self)
            if isinstance(exponent, (int, fractions.Fraction)) and exponent.denominator == 1:
                check_integer(_bits(base) * abs(exponent.numerator))
        else:
            check_integer(_bits(self) + _bits(other))
        # The host's `__rpow__` would ask this one again for a class of its own.
        result = function(fractions.Fraction(self) if name == "__rpow__" else self, other)
        return tuple(map(_own_fraction, result)) if type(result) is tuple else _own_fraction(result)

    operate.__name__ = name
    return operate


for _fraction_name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow"):
    for _fraction_side in ("", "r"):
        setattr(
            Fraction,
            f"__{_fraction_side}{_fraction_name}__",
            _fraction_operator(f"__{_fraction_side}{_fraction_name}__"),
        )
for _fraction_name in ("neg", "pos", "abs"):
    _unary = getattr(fractions.Fraction, f"__{_fraction_name}__")
    setattr(Fraction, f"__{_fraction_name}__", lambda self, unary=_unary: Fraction(unary(self)))

METHODS[Fraction] = {
    name: getattr(Fraction, name) for name in ("as_integer_ratio", "limit_denominator")
}
VALUES[Fraction] = {name: attrgetter(name) for name in ("numerator", "denominator", "real", "imag")}
CLASS_METHODS[Fraction] = {name: getattr(Fraction, name) for name in ("from_decimal", "from_float")}
HOST_TEXT.add(Fraction)


def _fraction(numerator: Any = 0, denominator: Any = None) -> Fraction:
    return Fraction(numerator, denominator)


FRACTIONS: dict[str, Any] = {
    "Fraction": define("fractions.Fraction", Fraction, construct=_fraction)
}
"""What `fractions` holds."""
