"""Reads a formula of numbers as a quotient of polynomials in what is no arithmetic, and writes one
as formulas: factored, multiplied out, term by term.

Polynomials have any number of names, with fractions in front: sums, products, common divisors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import reduce

from gradcli.questions.derive.algebra.products import (
    PI,
    constant,
    factors_of,
    number_of,
    put_size,
)
from gradcli.recorded.symbols.tree import Call, Constant, Name, Operation, Symbol, text_of

# --- polynomials ----------------------------------------------------------------------------------


Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]

_MOST_TERMS = 60
"""Polynomials of more terms are not computed with."""

_MOST_FACTORS = 24
"""The largest number of factors in a monomial."""


class TooLarge(Exception):
    """A polynomial would have more terms, or more factors in a term, than are worth the time."""


def of_constant(number: Fraction | int) -> Polynomial:
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
    total = of_constant(1)
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
        return of_constant(1)
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
    divisor = of_constant(1) if other else one
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
    total = of_constant(1)
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


# --- quotients ------------------------------------------------------------------------------------


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
            total = total.times(self._generator(base, term), count)
        return total

    def _generator(self, base: Symbol | None, term: Symbol) -> Quotient:
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


# --- writing --------------------------------------------------------------------------------------


Powers = list[tuple[Symbol, Fraction]]

_MOST_GROUPS = 12
"""Sums of more terms are not written term by term."""


def cost(symbol: Symbol) -> tuple[int, int]:
    """How many names, numbers, functions and operators a formula has, and characters; a number of
    many digits counts as several.
    """
    size = 0
    for part in symbol.walk():
        size += 1 + (len(repr(part.value)) // 4 if isinstance(part, Constant) else 0)
    return size, len(text_of(symbol))


class Writer:
    """Writes quotients in the atoms of one formula.

    Args:
        shortest: what a new argument of a function is simplified by.
        before: the formula as it was, whose sums keep their signs.
    """

    def __init__(self, atoms: Atoms, shortest: Callable[[Symbol], Symbol], before: Symbol) -> None:
        self._atoms = atoms
        self._shortest = shortest
        self._before = {text_of(part) for part in before.walk() if isinstance(part, Operation)}

    def forms(self, quotient: Quotient) -> Iterator[Symbol]:
        """The ways to write a quotient."""
        if not quotient.number:
            yield Constant(0)
            return
        yield self._best(quotient)
        above = [(f, e) for f, e in quotient.factors.items() if e > 0]
        below = Quotient(Fraction(1), {f: e for f, e in quotient.factors.items() if e < 0})
        total = multiplied_out(above)
        if 1 < len(total) <= _MOST_GROUPS:
            scaled = times(total, of_constant(quotient.number))
            for groups in (self._by_atoms(scaled, below), [{m: n} for m, n in scaled.items()]):
                if len(groups) > 1:
                    yield self._sum_of(of_polynomial(each).times(below) for each in groups)

    def _by_atoms(self, above: Polynomial, below: Quotient) -> list[Polynomial]:
        """The terms of a sum, those together that have the same functions in them beside those
        below the line.
        """
        groups: dict[frozenset[str], Polynomial] = {}
        plain = {n for n in self._atoms.symbols if isinstance(self._atoms.symbols[n], Name)}
        for monomial, number in above.items():
            own = frozenset(name for name, _ in monomial) - below.names - plain
            groups.setdefault(own, {})[monomial] = number
        return list(groups.values())

    def _sum_of(self, terms: Iterable[Quotient]) -> Symbol:
        written = [(*_unsigned(self._best(term)), _order(term)) for term in terms]
        written.sort(key=lambda each: (each[0], each[2]))
        is_negative, total, _ = written[0]
        total = _negated(total) if is_negative else total
        for is_negative, term, _ in written[1:]:
            total = Operation("-" if is_negative else "+", total, term)
        return total

    # --- products --------------------------------------------------------------------------------

    def _best(self, quotient: Quotient) -> Symbol:
        """The shortest way to write the factors of a quotient."""
        forms = [self._product(each) for each in self._named(quotient)]
        return min(forms, key=cost)

    def _named(self, quotient: Quotient) -> Iterator[Quotient]:
        """A quotient, and the same with products of functions by the names that these have."""
        yield quotient
        for rule in (self._double_angle, self._tangent, self._complement, self._hyperbolic):
            other = rule(quotient)
            if other is not None:
                yield from self._named(other)

    def _tangent(self, quotient: Quotient) -> Quotient | None:
        """`tan(u)` for `sin(u) / cos(u)`, and so for the hyperbolic functions."""
        for name, exponent in self._single(quotient):
            symbol = self._atoms.symbols[name]
            if isinstance(symbol, Call) and symbol.function in ("sin", "sinh"):
                (inner,) = symbol.arguments
                rest = symbol.function.removeprefix("sin")
                other = of_name(text_of(Call(f"cos{rest}", (inner,))))
                (factor,) = other.factors
                count = quotient.factors.get(factor, 0)
                if exponent * count < 0:
                    least = min(abs(exponent), abs(count)) * (1 if exponent > 0 else -1)
                    quotient = quotient.times(of_name(name), -least).times(other, least)
                    return quotient.times(self._atoms.atom(Call(f"tan{rest}", (inner,))), least)
        return None

    def _double_angle(self, quotient: Quotient) -> Quotient | None:
        """`sin(2 * u) / 2` for `sin(u) * cos(u)`, `cos(2 * u)` for a difference of squares."""
        for name, exponent in self._single(quotient):
            symbol = self._atoms.symbols[name]
            if not isinstance(symbol, Call) or symbol.function != "sin":
                continue
            (inner,) = symbol.arguments
            cosine = text_of(Call("cos", (inner,)))
            (factor,) = of_name(cosine).factors
            count = quotient.factors.get(factor, 0)
            if exponent * count > 0:
                least = min(abs(exponent), abs(count)) * (1 if exponent > 0 else -1)
                twice = self._of_twice("sin", inner).times(of_number(2), -1)
                rest = quotient.times(of_name(name), -least).times(of_name(cosine), -least)
                return rest.times(twice, least)
        for terms, exponent in quotient.factors.items():
            for name in sorted(names_of(dict(terms))):
                symbol = self._atoms.symbols[name]
                if isinstance(symbol, Call) and symbol.function in ("sin", "cos"):
                    sign = self._is_double_cosine(dict(terms), symbol.arguments[0])
                    if sign:
                        rest = Quotient(quotient.number, {**quotient.factors, terms: 0})
                        double = self._of_twice("cos", symbol.arguments[0])
                        return rest.times(of_number(sign).times(double), exponent)
        return None

    def _is_double_cosine(self, total: Polynomial, inner: Symbol) -> int:
        """1 where a sum is the cosine of twice an angle, -1 where it is its negative, else 0."""
        sine, cosine = (text_of(Call(name, (inner,))) for name in ("sin", "cos"))
        squares = {((cosine, 2),): Fraction(1), ((sine, 2),): Fraction(-1)}
        by_cosine = {((cosine, 2),): Fraction(2), (): Fraction(-1)}
        by_sine = {((sine, 2),): Fraction(-2), (): Fraction(1)}
        for each in (squares, by_cosine, by_sine):
            for sign in (1, -1):
                if total == {monomial: number * sign for monomial, number in each.items()}:
                    return sign
        return 0

    def _of_twice(self, function: str, inner: Symbol) -> Quotient:
        twice = self._shortest(Operation("*", Constant(2), inner))
        return self._atoms.read(Call(function, (twice,)))

    def _complement(self, quotient: Quotient) -> Quotient | None:
        """`sigmoid(-u)` for `1 - sigmoid(u)`."""
        for total, exponent in quotient.factors.items():
            for name in sorted(names_of(dict(total))) if len(total) == 2 else ():
                symbol = self._atoms.symbols[name]
                if not isinstance(symbol, Call) or symbol.function != "sigmoid":
                    continue
                if dict(total) == {((name, 1),): Fraction(1), (): Fraction(-1)}:
                    turned = self._shortest(Operation("-", symbol.arguments[0]))
                    rest = Quotient(quotient.number, {**quotient.factors, total: 0})
                    complement = self._atoms.atom(Call("sigmoid", (turned,)))
                    return rest.times(of_number(-1).times(complement), exponent)
        return None

    def _hyperbolic(self, quotient: Quotient) -> Quotient | None:
        """`2 * cosh(u)` for `exp(u) + exp(-u)`, and `sinh` for the difference."""
        for total, exponent in quotient.factors.items():
            for name in sorted(names_of(dict(total))) if len(total) == 2 else ():
                symbol = self._atoms.symbols[name]
                (factor,) = of_name(name).factors
                if not isinstance(symbol, Call) or symbol.function != "exp":
                    continue
                if quotient.factors.get(factor, 0) * exponent >= 0:
                    continue
                for function, sign in (("cosh", 1), ("sinh", -1)):
                    if dict(total) == {((name, 2),): Fraction(1), (): Fraction(sign)}:
                        rest = Quotient(quotient.number, {**quotient.factors, total: 0})
                        read = self._atoms.read(Call(function, symbol.arguments))
                        both = of_number(2).times(read).times(of_name(name))
                        return rest.times(both, exponent)
        return None

    def _single(self, quotient: Quotient) -> Iterator[tuple[str, int]]:
        """The factors that are one name, with their exponents."""
        single = {_name_of(factor): exponent for factor, exponent in quotient.factors.items()}
        for name in sorted(filter(None, single)):
            yield name, single[name]

    def _product(self, quotient: Quotient) -> Symbol:
        """The factors of a quotient, written in order."""
        number, powers = self._powers(quotient)
        above = [power_of(base, e) for base, e in powers if e > 0]
        below = [power_of(base, -e) for base, e in powers if e < 0]
        put_size(abs(number), above, below)
        product = reduce(
            lambda one, other: Operation("*", one, other),
            [_negated(above[0]), *above[1:]] if number < 0 else above,
        )
        if below:
            divisor = reduce(lambda one, other: Operation("*", one, other), below)
            product = Operation("/", product, divisor)
        return product

    def _powers(self, quotient: Quotient) -> tuple[Fraction, Powers]:
        """The number in front and the powers, those of one base together."""
        number = quotient.number
        bases: dict[str, tuple[Symbol, Fraction]] = {}
        exponents: dict[str, tuple[Symbol | None, Symbol]] = {}
        sums: list[tuple[Factor, int]] = []
        for factor, count in sorted(quotient.factors.items(), key=_text_of_factor):
            name = _name_of(factor)
            if name is None:
                sums.append((factor, count))
                continue
            base, exponent = self._atoms.powers.get(name, (self._atoms.symbols[name], Constant(1)))
            ratio = _ratio(exponent)
            if base is None or ratio is None:
                key = "" if base is None else text_of(base)
                term: Symbol = Operation("*", Constant(count), exponent)
                known = exponents.get(key)
                total = term if known is None else Operation("+", known[1], term)
                exponents[key] = base, total
            else:
                before = bases.get(text_of(base), (base, Fraction(0)))[1]
                bases[text_of(base)] = base, before + ratio * count
        signed = [(factor, count, *self._sum_for(factor, bases)) for factor, count in sums]
        for _, count, sign, _ in signed:
            number *= sign if count % 2 else 1
        signed.sort(key=lambda each: (text_of(each[3]) in self._before, text_of(each[3])))
        for factor, count, sign, symbol in signed:
            if number < 0 and count % 2 and text_of(symbol) not in bases:
                turned = self._sum(dict(factor), -sign)
                if cost(turned) <= cost(symbol):
                    number, symbol = -number, turned
            before = bases.get(text_of(symbol), (symbol, Fraction(0)))[1]
            bases[text_of(symbol)] = symbol, before + count
        powers = [pair for pair in bases.values() if pair[1]]
        for key, (base, total) in exponents.items():
            if base is not None and key in bases:
                total = Operation("+", total, constant(bases[key][1]))
                powers = [pair for pair in powers if text_of(pair[0]) != key]
            whole = self._shortest(total)
            powers += _exponential(base, whole)
        powers.sort(key=lambda pair: (not isinstance(pair[0], Name), _ordered(pair[0])))
        return number, powers

    def _sum_for(
        self, factor: Factor, bases: dict[str, tuple[Symbol, Fraction]]
    ) -> tuple[int, Symbol]:
        """A sum written with a sign: as it stands below a root beside it, or in the formula."""
        one, other = (self._sum(dict(factor), sign) for sign in (1, -1))
        for known in (bases, self._before):
            if text_of(other) in known and text_of(one) not in known:
                return -1, other
        return 1, one

    def _sum(self, total: Polynomial, sign: int) -> Symbol:
        """The terms of a sum in order, with common factors of some before brackets if shorter."""
        scaled = {monomial: number * sign for monomial, number in total.items()}
        plain = self._sum_of(_term(monomial, number) for monomial, number in scaled.items())
        best = plain
        names = names_of(scaled) if 2 < len(scaled) <= _MOST_GROUPS else set()
        for name in sorted(names):
            inside = {m: n for m, n in scaled.items() if any(each == name for each, _ in m)}
            rest = {m: n for m, n in scaled.items() if m not in inside}
            is_linear = len({dict(monomial)[name] for monomial in inside}) == 1
            if is_linear and 1 < len(inside) < len(scaled):
                parts = [of_polynomial(inside), of_polynomial(rest)]
                best = min(best, self._sum_of(parts), key=cost)
        return best


def _term(monomial: Monomial, number: Fraction) -> Quotient:
    term = of_number(number)
    for name, exponent in monomial:
        term = term.times(of_name(name), exponent)
    return term


def _unsigned(symbol: Symbol) -> tuple[bool, Symbol]:
    """Whether a product begins with a minus, and the product without it."""
    if isinstance(symbol, Constant) and isinstance(symbol.value, (int, float)) and symbol.value < 0:
        return True, Constant(-symbol.value)
    if isinstance(symbol, Operation) and symbol.operator == "-" and len(symbol.operands) == 1:
        return True, symbol.operands[0]
    if isinstance(symbol, Operation) and symbol.operator in ("*", "/"):
        first, *rest = symbol.operands
        is_negative, first = _unsigned(first)
        return is_negative, Operation(symbol.operator, first, *rest)
    return False, symbol


def _order(quotient: Quotient) -> tuple[int, list[str]]:
    """Where a term stands in a sum: high powers first, numbers last."""
    degree = sum(abs(exponent) for exponent in quotient.factors.values())
    return -degree, sorted(quotient.names)


def _name_of(factor: Factor) -> str | None:
    """The name that a factor is."""
    if len(factor) > 1:
        return None
    (((monomial, _),),) = (factor,)
    return monomial[0][0]


def _ordered(symbol: Symbol) -> str:
    """What factors are written in order by: `sigmoid(-x)` after `sigmoid(x)`."""
    return text_of(symbol).replace("-", "~")


def _text_of_factor(pair: tuple[Factor, int]) -> str:
    """What factors are put in order by."""
    return repr(sorted(pair[0]))


def _ratio(exponent: Symbol) -> Fraction | None:
    """The number that an exponent is."""
    number = number_of(exponent)
    if number is not None or not isinstance(exponent, Operation) or exponent.operator != "/":
        return number
    above, below = map(number_of, exponent.parts)
    return above / below if above is not None and below else None


def _exponential(base: Symbol | None, exponent: Symbol) -> Powers:
    """A power whose exponent is a formula; below the line where that is a plain negative one."""
    number = _ratio(exponent)
    if number == 0:
        return []
    if base is None:
        return [(Call("exp", (exponent,)), Fraction(1))]
    return [(Operation("**", base, exponent) if number is None else base, number or Fraction(1))]


def _negated(symbol: Symbol) -> Symbol:
    """A product with its sign turned, a number in front as a number."""
    if isinstance(symbol, Constant):
        return Constant(-symbol.value)
    if isinstance(symbol, Operation) and symbol.operator in ("*", "/"):
        first, *rest = symbol.operands
        return Operation(symbol.operator, _negated(first), *rest)
    return Operation("-", symbol)
