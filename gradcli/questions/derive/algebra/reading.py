"""Reads a formula of numbers as a quotient of polynomials in what is no arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from gradcli.questions.derive.algebra.numbers import PI, constant, factors_of, number_of
from gradcli.questions.derive.algebra.polynomials import (
    Quotient,
    TooLarge,
    of_name,
    of_number,
    total_of,
)
from gradcli.recorded.symbols.text import text_of
from gradcli.recorded.symbols.tree import Call, Constant, Operation, Symbol

Identity = tuple[str, int, Quotient]
"""The name of an atom, a power of it, and what that power is equal to."""

_ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf"})
"""Functions with `f(-u) = -f(u)`."""

_EVEN = frozenset({"cos", "cosh", "abs"})
"""Functions with `f(-u) = f(u)`."""

_ONE_MINUS = frozenset({"sigmoid"})
"""Functions with `f(-u) = 1 - f(u)`."""


class Atoms:
    """What stands in the quotients of one formula, by its text.

    Args:
        shortest: what the arguments of functions are simplified by.
        whole: the text of a sum that is not multiplied out.

    Attributes:
        symbols: what an atom is.
        powers: of an atom that is a power, its base (None for that of `exp`) and its exponent.
    """

    def __init__(self, shortest: Callable[[Symbol], Symbol], whole: str | None = None) -> None:
        self._shortest = shortest
        self._whole = whole
        self.symbols: dict[str, Symbol] = {}
        self.powers: dict[str, tuple[Symbol | None, Symbol]] = {}
        self._identities: list[Identity] = []

    def identities(self) -> Iterator[Identity]:
        """What powers of the atoms are equal to."""
        # An identity may bring in an atom with identities of its own.
        number = 0
        while number < len(self._identities):
            yield self._identities[number]
            number += 1

    def atom(self, symbol: Symbol) -> Quotient:
        """A symbol that is no arithmetic."""
        name = text_of(symbol)
        if name not in self.symbols:
            self.symbols[name] = symbol
            self._relate(name, symbol)
        return of_name(name)

    def _relate(self, name: str, symbol: Symbol) -> None:
        """Note the identities of a function's values."""
        if not isinstance(symbol, Call) or len(symbol.arguments) != 1:
            return
        function, (inner,) = symbol.function, symbol.arguments

        def of(other: str) -> Quotient:
            return self.atom(Call(other, (inner,)))

        if function in ("sin", "cos"):
            other = of("cos" if function == "sin" else "sin")
            self._identities.append((name, 2, _sum(of_number(1), other, -1, 2)))
        elif function in ("sinh", "cosh"):
            other = of("cosh" if function == "sinh" else "sinh")
            sign = -1 if function == "sinh" else 1
            self._identities.append((name, 2, total_of([other.times(other), of_number(sign)])))
        elif function == "tan":
            self._identities.append((name, 1, of("sin").times(of("cos"), -1)))
        elif function == "acos":
            half = Quotient(Fraction(1, 2), {}).times(self.atom(PI))
            self._identities.append((name, 1, _sum(half, of("asin"), -1, 1)))
        elif function == "expm1":
            exponential = self._call(Call("exp", (inner,)))
            self._identities.append((name, 1, total_of([exponential, of_number(-1)])))
        elif function == "abs":
            self._identities.append((name, 2, self.read(inner).times(self.read(inner))))

    # --- reading ---------------------------------------------------------------------------------

    def read(self, symbol: Symbol) -> Quotient:
        """A formula as a quotient of polynomials in the atoms.

        Raises:
            TooLarge, ZeroDivisionError: where it has no such form.
        """
        number = number_of(symbol)
        if number is not None:
            front, factors = factors_of(number)
            quotient = of_number(front)
            for factor, exponent in factors:
                quotient = quotient.times(self.read(factor), exponent)
            return quotient
        if isinstance(symbol, Operation):
            return self.atom(symbol) if text_of(symbol) == self._whole else self._operation(symbol)
        if isinstance(symbol, Call):
            return self._call(symbol)
        return self.atom(symbol)

    def _operation(self, symbol: Operation) -> Quotient:
        operator, operands = symbol.operator, symbol.operands
        if operator == "-" and len(operands) == 1:
            return of_number(-1).times(self.read(operands[0]))
        if operator in ("+", "-"):
            return total_of([of_number(sign).times(self.read(t)) for sign, t in terms_of(symbol)])
        if operator in ("*", "/"):
            left, right = map(self.read, operands)
            return left.times(right, 1 if operator == "*" else -1)
        if operator == "**":
            return self._power(*operands)
        return self.atom(symbol)

    def _call(self, symbol: Call) -> Quotient:
        name, arguments = symbol.function, symbol.arguments
        if len(arguments) != 1 or symbol.method:
            return self.atom(symbol)
        inner = arguments[0]
        if name == "reciprocal":
            return of_number(1).times(self.read(inner), -1)
        if name == "square":
            return of_number(1).times(self.read(inner), 2)
        if name in ("sqrt", "rsqrt", "math.sqrt"):
            return of_number(1).times(self._root(inner, 2), -1 if name == "rsqrt" else 1)
        if name == "exp":
            return self._exponential(None, inner)
        inner = self._shortest(inner)
        is_negative = self._is_negative(inner)
        turned = self._shortest(Operation("-", inner)) if is_negative else inner
        if name in _ODD and is_negative:
            return of_number(-1).times(self.atom(Call(name, (turned,))))
        if name in _EVEN and is_negative:
            return self.atom(Call(name, (turned,)))
        if name in _ONE_MINUS and is_negative:
            return _sum(of_number(1), self.atom(Call(name, (turned,))), -1, 1)
        if name == "log":
            return self._logarithm(inner)
        return self.atom(Call(name, (inner,)))

    def _is_negative(self, symbol: Symbol) -> bool:
        """Whether a formula begins with a minus however it is written."""
        try:
            return self.read(symbol).number < 0
        except (TooLarge, ZeroDivisionError):
            return False

    def _logarithm(self, inner: Symbol) -> Quotient:
        if isinstance(inner, Call) and inner.function == "exp":
            return self.read(inner.arguments[0])
        if isinstance(inner, Call) and inner.function == "sqrt":
            return Quotient(Fraction(1, 2), {}).times(self._logarithm(inner.arguments[0]))
        if (
            isinstance(inner, Operation)
            and inner.operator == "/"
            and number_of(inner.parts[0]) == 1
        ):
            return of_number(-1).times(self._logarithm(inner.parts[1]))
        if number_of(inner) == 1:
            return of_number(0)
        is_number = number_of(inner) is not None
        return self.atom(Call("math.log" if is_number else "log", (inner,)))

    # --- powers ----------------------------------------------------------------------------------

    def _power(self, base: Symbol, exponent: Symbol) -> Quotient:
        number = number_of(exponent)
        if number is None:
            return self._exponential(base, exponent)
        return of_number(1).times(self._root(base, number.denominator), number.numerator)

    def _exponential(self, base: Symbol | None, exponent: Symbol) -> Quotient:
        """`base ** exponent`, a factor for each term of the exponent."""
        exponent = self._shortest(exponent)
        if base is None and isinstance(exponent, Call) and exponent.function == "log":
            return self.read(exponent.arguments[0])
        base = None if base is None else self._shortest(base)
        total = of_number(1)
        for sign, term in terms_of(exponent):
            number = number_of(term)
            if number is not None and base is not None:
                root = self._root(base, number.denominator)
                total = total.times(root, sign * number.numerator)
                continue
            quotient = self.read(term)
            count = sign * quotient.number.numerator
            unit = Quotient(Fraction(1, quotient.number.denominator), quotient.factors)
            total = total.times(self._generator(base, unit, term), count)
        return total

    def _generator(self, base: Symbol | None, unit: Quotient, term: Symbol) -> Quotient:
        """The power with an exponent that has no number but a divisor in front."""
        number = self.read(term).number.numerator
        exponent = self._shortest(Operation("/", term, Constant(number)))
        symbol = Call("exp", (exponent,)) if base is None else Operation("**", base, exponent)
        atom = self.atom(symbol)
        self.powers[text_of(symbol)] = base, exponent
        return atom

    def _root(self, base: Symbol, degree: int) -> Quotient:
        """`base ** (1 / degree)`."""
        if degree == 1:
            return self.read(base)
        base = self._shortest(base)
        inner = self.read(base)
        if not inner.number:
            return of_number(0)
        if isinstance(base, Call) and base.function == "exp":
            return self._exponential(None, Operation("/", base.arguments[0], Constant(degree)))
        front = _exact_root(inner.number, degree)
        if front != 1:
            base = self._shortest(Operation("/", base, constant(front**degree)))
            inner = self.read(base)
        exponents = list(inner.factors.values())
        if inner.number == 1 and len(exponents) < 2:
            exponent = exponents[0] if exponents else 0
            if not exponent:
                return of_number(front)
            if exponent > 1 and isinstance(base, Operation) and base.operator == "**":
                inside = base.parts[0]
                if exponent % 2 or degree % 2:
                    return of_number(front).times(self._root(inside, degree), exponent)
                if degree == 2:
                    size = self._call(Call("abs", (inside,)))
                    return of_number(front).times(size, exponent // 2)
        root = power_of(base, Fraction(1, degree))
        name = text_of(root)
        is_new = name not in self.symbols
        atom = self.atom(root)
        if is_new:
            self.powers[name] = base, Operation("/", Constant(1), Constant(degree))
            self._identities.append((name, degree, inner))
        return of_number(front).times(atom)


def _sum(one: Quotient, other: Quotient, sign: int, exponent: int) -> Quotient:
    """`one ± other ** exponent`."""
    return total_of([one, of_number(sign).times(other, exponent)])


def terms_of(symbol: Symbol, sign: int = 1) -> Iterator[tuple[int, Symbol]]:
    """The terms of a sum, each with its sign."""
    if isinstance(symbol, Operation) and symbol.operator in ("+", "-"):
        *front, last = symbol.operands
        for each in front:
            yield from terms_of(each, sign)
        yield from terms_of(last, -sign if symbol.operator == "-" else sign)
    else:
        yield sign, symbol


def power_of(base: Symbol, exponent: Fraction) -> Symbol:
    """A power as a person writes it."""
    if exponent == 1:
        return base
    if exponent == Fraction(1, 2):
        return Call("math.sqrt" if _is_number(base) else "sqrt", (base,))
    is_short = exponent.denominator in (2, 4)
    return Operation("**", base, Constant(float(exponent)) if is_short else constant(exponent))


def _is_number(symbol: Symbol) -> bool:
    """Whether a formula is the same number everywhere."""
    return symbol is PI or all(
        isinstance(part, Constant) or text_of(part) in ("math", "math.pi", "math.e")
        for part in symbol.walk()
        if not part.parts
    )


def _exact_root(number: Fraction, degree: int) -> Fraction:
    """The root of a number where that is a fraction, else 1."""
    if number <= 0:
        return Fraction(1)
    above, below = (round(n ** (1 / degree)) for n in (number.numerator, number.denominator))
    root = Fraction(above, below)
    return root if root**degree == number else Fraction(1)
