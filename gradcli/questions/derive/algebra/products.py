"""The algebra of formulas: sums of products of powers, with numbers in front, written as a person
writes them: `1 / 3` for 0.3333, `math.sqrt(8)` for 2.828…

It is real arithmetic and may change a last digit: what it rewrites is run beside what it was.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

from gradcli.recorded.symbols.tree import (
    Attribute,
    Call,
    Constant,
    Item,
    Name,
    Operation,
    Symbol,
    rebuilt,
    text_of,
)

# --- numbers --------------------------------------------------------------------------------------


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


def put_size(size: Fraction, above: list[Symbol], below: list[Symbol]) -> None:
    """Put a positive number before the factors of a numerator and of a denominator. It is divided
    between them where there is a line already, or where 1 above it would not be seen.
    """
    is_divisor = size.denominator > 1 and is_fraction(size)
    if is_divisor and (below or (above and size.numerator == 1)):
        below.insert(0, Constant(size.denominator))
        size = Fraction(size.numerator)
    if size != 1 or not above:
        above.insert(0, constant(size))


def constant(number: Fraction) -> Symbol:
    """A fraction as a formula."""
    if number.denominator == 1:
        return Constant(int(number))
    if is_fraction(number):
        return Operation("/", Constant(number.numerator), Constant(number.denominator))
    return Constant(float(number))


# --- sums and products ----------------------------------------------------------------------------


_LINEAR = frozenset(
    {
        "t",
        "sum",
        "reshape",
        "expand",
        "unsqueeze",
        "squeeze",
        "transpose",
        "outer",
        "diag",
    }
)
"""Functions that a number goes through."""


_MOST_BITS = 1100
"""How long the numbers of a fraction may become: as floats, longer ones are infinite or 0."""

_TINY = Fraction(1, 10**30)
"""A bound that is lower is there for the sake of a logarithm alone."""


class Product:
    """A number times powers of formulas.

    Attributes:
        powers: the exponent of each formula, by its text.
    """

    def __init__(self, number: Fraction, powers: Mapping[str, Fraction]) -> None:
        self.number = number
        self.powers = {key: power for key, power in powers.items() if power}

    def times(self, other: Product, power: int = 1) -> Product:
        """The product with a power of another one.

        Raises:
            OverflowError: where the number becomes one that no float holds.
        """
        powers = dict(self.powers)
        for key, exponent in other.powers.items():
            powers[key] = powers.get(key, Fraction(0)) + exponent * power
        if _bits(self.number) + abs(power) * _bits(other.number) > _MOST_BITS:
            raise OverflowError
        return Product(self.number * other.number**power, powers)

    @property
    def key(self) -> frozenset[tuple[str, Fraction]]:
        """What tells products apart that differ in more than their number."""
        return frozenset(self.powers.items())


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())


def simplified(symbol: Symbol, numbers: Collection[str] = ()) -> Symbol:
    """A formula as a textbook prints it.

    Args:
        numbers: names of numbers, which go through matrix products and sums as constants do.

    Raises:
        OverflowError: where a number in it becomes one that no float holds.
    """
    algebra = _Algebra(numbers)
    simpler = algebra.written(algebra.product(symbol))
    complement = _complement(simpler)
    return simpler if complement is None else complement


def _part(symbol: Symbol) -> Symbol:
    """A part of a formula that is no arithmetic; a number in it stays as the program has it."""
    return symbol if isinstance(symbol, Constant) else simplified(symbol)


class _Algebra:
    """The formulas that stand in products, by their text."""

    def __init__(self, numbers: Collection[str] = ()) -> None:
        self.atoms: dict[str, Symbol] = {}
        self._numbers = numbers

    def _atom(self, symbol: Symbol) -> Product:
        key = text_of(symbol)
        self.atoms.setdefault(key, symbol)
        return Product(Fraction(1), {key: Fraction(1)})

    # --- reading ---------------------------------------------------------------------------------

    def product(self, symbol: Symbol) -> Product:
        """A formula as a number and powers of formulas."""
        number = number_of(symbol)
        if number is not None:
            front, factors = factors_of(number)
            powers = Product(front, {})
            for factor, power in factors:
                powers = powers.times(self._atom(factor), power)
            return powers
        if isinstance(symbol, Operation):
            return self._operation(symbol)
        if isinstance(symbol, Call):
            return self._call(symbol)
        if isinstance(symbol, Item):
            inside = self.product(symbol.value)
            head = self.written(Product(Fraction(1), inside.powers))
            return Product(inside.number, self._atom(Item(head, symbol.index)).powers)
        parts = tuple(map(_part, symbol.parts))
        return self._atom(rebuilt(symbol, parts) if parts else symbol)

    def _operation(self, symbol: Operation) -> Product:
        operator, operands = symbol.operator, symbol.operands
        if len(operands) == 1:
            inner = self.product(operands[0])
            if operator == "-":
                return Product(-inner.number, inner.powers)
            return self._atom(Operation(operator, simplified(operands[0])))
        if operator in ("+", "-"):
            return self._sum(symbol)
        exponent = number_of(operands[1]) if operator == "**" else None
        is_power = exponent is not None and exponent and exponent.denominator == 1
        if not (is_power or operator in ("*", "/", "@")):
            return self._atom(Operation(operator, *map(_part, operands)))
        left = self.product(operands[0])
        if exponent is not None:
            if exponent < 0 and not left.number:
                return self._atom(Operation(operator, *map(_part, operands)))
            return Product(Fraction(1), {}).times(left, int(exponent))
        right = self.product(operands[1])
        if operator == "@":
            fronts, sides = zip(*map(self._parted, (left, right)), strict=True)
            atom = self._atom(Operation("@", *map(self.written, sides)))
            return atom.times(fronts[0]).times(fronts[1])
        if operator == "/" and not right.number:
            return self._atom(symbol)
        return self._merged(left.times(right, 1 if operator == "*" else -1))

    def _call(self, symbol: Call) -> Product:
        name, arguments = symbol.function, symbol.arguments
        if name == "reciprocal":
            return Product(Fraction(1), {}).times(self.product(arguments[0]), -1)
        if name == "square":
            return Product(Fraction(1), {}).times(self.product(arguments[0]), 2)
        if name in ("clamp", "clamp_min") and len(arguments) == 2:
            least = number_of(arguments[1])
            if least is not None and 0 < least < _TINY:
                return self.product(arguments[0])
        total = _total_of_numbers(symbol)
        if total is not None:
            return Product(total, {})
        one_hot = _one_hot(symbol)
        if one_hot is not None:
            return Product(one_hot[0], self._atom(one_hot[1]).powers)
        summed = _one_hot(arguments[0]) if name == "sum" and len(arguments) == 3 else None
        if summed is not None:
            return Product(summed[0], {})
        if name == "exp" and isinstance(arguments[0], Call):
            inner = arguments[0]
            if inner.function == "log_softmax":
                return self._atom(Call("softmax", inner.arguments, inner.method))
        if name == "exp":
            softmax = _softmax(arguments[0])
            if softmax is not None:
                return self._atom(softmax)
        if name in _LINEAR and arguments:
            inside = self.product(arguments[0])
            head = self.written(Product(Fraction(1), inside.powers))
            is_one_hot = isinstance(head, Call) and head.function == "F.one_hot"
            if name == "sum" and is_one_hot and list(map(text_of, arguments[1:2])) == ["(1,)"]:
                return Product(inside.number, {})
            atom = self._atom(Call(name, (head, *arguments[1:]), symbol.method))
            return Product(inside.number, atom.powers)
        return self._atom(Call(name, tuple(map(_part, arguments)), symbol.method))

    def _parted(self, product: Product) -> tuple[Product, Product]:
        """The numbers in a product, and the rest of it."""
        inside = {key: power for key, power in product.powers.items() if key in self._numbers}
        rest = {key: power for key, power in product.powers.items() if key not in inside}
        return Product(product.number, inside), Product(Fraction(1), rest)

    def _spread(self, product: Product) -> Product | None:
        """A product multiplied out where that cancels every denominator of a sum in it, and leaves
        no more terms: `p * ((1 - t) / (1 - p) - t / p) * (1 - p)` is `p - t`.
        """
        for key, power in product.powers.items():
            symbol = self.atoms[key]
            if power != 1 or not isinstance(symbol, Operation) or symbol.operator not in "+-":
                continue
            terms = list(self._terms(symbol, 1))
            rest = {k: v for k, v in product.powers.items() if k != key}
            below = [{k for k, v in term.powers.items() if v < 0} for term in terms]
            if len(terms) < 2 or not all(each and each <= rest.keys() for each in below):
                continue
            outer = Product(product.number, rest)
            by_base: dict[frozenset[tuple[str, Fraction]], Product] = {}
            for term in terms:
                for each in self._multiplied_out(outer.times(term)):
                    number = each.number + (by_base[each.key].number if each.key in by_base else 0)
                    by_base[each.key] = Product(number, each.powers)
            left = [each for each in by_base.values() if each.number]
            if 0 < len(left) <= len(terms):
                total = self.written(left[0])
                for each in left[1:]:
                    total = Operation("+", total, self.written(each))
                return self.product(total)
        return None

    def _multiplied_out(self, product: Product) -> list[Product]:
        for key, power in product.powers.items():
            symbol = self.atoms[key]
            if power == 1 and isinstance(symbol, Operation) and symbol.operator in "+-":
                rest = Product(
                    product.number, {k: v for k, v in product.powers.items() if k != key}
                )
                return [
                    each
                    for term in self._terms(symbol, 1)
                    for each in self._multiplied_out(rest.times(term))
                ]
        return [product]

    def _merged(self, product: Product) -> Product:
        """The product with quotients of exponentials as the functions that they are."""
        spread = self._spread(product)
        if spread is not None:
            return spread
        for key in list(product.powers):
            symbol, power = self.atoms[key], product.powers[key]
            if power >= 1 and isinstance(symbol, Call) and symbol.function == "sigmoid":
                turned = simplified(Operation("-", symbol.arguments[0]))
                exponent = text_of(Call("exp", (turned,)))
                if product.powers.get(exponent) == 1:
                    powers = {**product.powers, key: power - 1, exponent: Fraction(0)}
                    sigmoid = self._atom(Call("sigmoid", (turned,)))
                    return Product(product.number, powers).times(sigmoid)
            grown = _one_plus_exp(symbol)
            if grown is not None and power >= 1:
                inverse = text_of(Call("sigmoid", (simplified(Operation("-", grown)),)))
                if product.powers.get(inverse, 0) >= 1:
                    powers = {**product.powers, key: power - 1}
                    powers[inverse] -= 1
                    return self._merged(Product(product.number, powers))
            if power > -1 or power.denominator > 1:
                continue
            if grown is not None:
                exponent = text_of(Call("exp", (grown,)))
                powers = {**product.powers, key: power + 1}
                if powers.get(exponent) == 1:
                    del powers[exponent]
                    sigmoid = self._atom(Call("sigmoid", (grown,)))
                else:
                    sigmoid = self._atom(Call("sigmoid", (simplified(Operation("-", grown)),)))
                return self._merged(Product(product.number, powers).times(sigmoid))
            if power < -1:
                continue
            if isinstance(symbol, Call) and symbol.function == "sum" and len(symbol.arguments) == 1:
                inner = symbol.arguments[0]
                is_exp = isinstance(inner, Call) and inner.function == "exp"
                if is_exp and product.powers.get(text_of(inner)) == 1:
                    gone = (key, text_of(inner))
                    powers = {k: v for k, v in product.powers.items() if k not in gone}
                    softmax = Call("softmax", (inner.parts[0], Constant(0)), True)
                    return Product(product.number, powers).times(self._atom(softmax))
        return product

    def _sum(self, symbol: Operation) -> Product:
        """A sum: like terms together, and a number that all have in front of it."""
        terms: dict[frozenset[tuple[str, Fraction]], Product] = {}
        for term in self._terms(symbol, 1):
            known = terms.get(term.key)
            number = term.number + (known.number if known is not None else 0)
            terms[term.key] = Product(number, term.powers)
        left = self._shorter([term for term in terms.values() if term.number])
        if not left:
            return Product(Fraction(0), {})
        if len(left) == 1:
            return left[0]
        sizes = {abs(term.number) for term in left}
        common = sizes.pop() if len(sizes) == 1 else Fraction(1)
        if all(term.number < 0 for term in left):
            common = -common
        scaled = [Product(term.number / common, term.powers) for term in left]
        scaled.sort(key=lambda term: term.number < 0)
        first, *rest = scaled
        unsigned = [(t.number, self.written(Product(abs(t.number), t.powers))) for t in rest]
        joined = _joined([(first.number, self.written(first)), *unsigned])
        return Product(common, self._atom(joined).powers)

    def _shorter(self, terms: list[Product]) -> list[Product]:
        """Terms multiplied out where that leaves no more of them, and simpler ones: `s - y` for
        `(1 - y) * s - y * (1 - s)`.
        """
        by_base: dict[frozenset[tuple[str, Fraction]], Product] = {}
        for term in terms:
            for each in self._multiplied_out(term):
                number = each.number + (by_base[each.key].number if each.key in by_base else 0)
                by_base[each.key] = Product(number, each.powers)
        left = [each for each in by_base.values() if each.number]
        whole = self._over_one_line(terms)
        if whole is not None:
            return [whole]
        lengths = [sum(len(key) for each in part for key in each.powers) for part in (left, terms)]
        return left if len(left) <= len(terms) and lengths[0] < lengths[1] else terms

    def _over_one_line(self, terms: list[Product]) -> Product | None:
        """Fractions with powers of sums below the line as one, where one term is left above it:
        `2 / (x + 1) ** 2` for `1 / (x + 1) - (x - 1) / (x + 1) ** 2`.
        """
        below: dict[str, Fraction] = {}
        has_sum = False
        for term in terms:
            for key, power in term.powers.items():
                symbol = self.atoms[key]
                if power < 0:
                    below[key] = min(power, below.get(key, Fraction(0)))
                    has_sum |= isinstance(symbol, Operation) and symbol.operator in "+-"
        if not has_sum or len(terms) < 2:
            return None
        line = Product(Fraction(1), below)
        by_base: dict[frozenset[tuple[str, Fraction]], Product] = {}
        for term in terms:
            for each in self._multiplied_out(term.times(line, -1)):
                number = each.number + (by_base[each.key].number if each.key in by_base else 0)
                by_base[each.key] = Product(number, each.powers)
        left = [each for each in by_base.values() if each.number]
        if len(left) == 1:
            return left[0].times(line)
        for order in permutations(left) if len(left) == 2 else ():
            first, second = map(self.written, order)
            total = text_of(Operation("+", first, second))
            if total in below:
                return Product(Fraction(1), {total: Fraction(1)}).times(line)
        return None

    def _terms(self, symbol: Symbol, sign: int) -> Iterable[Product]:
        if isinstance(symbol, Operation) and symbol.operator in ("+", "-"):
            if len(symbol.operands) == 1 and symbol.operator == "-":
                yield from self._terms(symbol.operands[0], -sign)
                return
            if len(symbol.operands) == 2:
                first, second = symbol.operands
                yield from self._terms(first, sign)
                yield from self._terms(second, sign if symbol.operator == "+" else -sign)
                return
        product = self.product(symbol)
        yield Product(product.number * sign, product.powers)

    # --- writing ---------------------------------------------------------------------------------

    def written(self, product: Product) -> Symbol:
        """A product as a formula: number, numerator, denominator."""
        order = sorted(product.powers, key=lambda key: not isinstance(self.atoms[key], Name))
        above = [self._power(k, product.powers[k]) for k in order if product.powers[k] > 0]
        below = [self._power(k, -product.powers[k]) for k in order if product.powers[k] < 0]
        put_size(abs(product.number), above, below)
        numerator = _negated(above[0]) if product.number < 0 else above[0]
        for factor in above[1:]:
            # A number in front of a matrix product needs no brackets around it.
            is_number = all(isinstance(each, (Operation, Constant)) for each in numerator.walk())
            if is_number and isinstance(factor, Operation) and factor.operator == "@":
                left, right = factor.operands
                numerator = Operation("@", Operation("*", numerator, left), right)
            else:
                numerator = Operation("*", numerator, factor)
        if below:
            divisor = below[0]
            for factor in below[1:]:
                divisor = Operation("*", divisor, factor)
            numerator = Operation("/", numerator, divisor)
        return numerator

    def _power(self, key: str, power: Fraction) -> Symbol:
        symbol = self.atoms[key]
        return symbol if power == 1 else Operation("**", symbol, Constant(int(power)))


def _negated(symbol: Symbol) -> Symbol:
    """A factor with its sign turned, a number as a number."""
    if isinstance(symbol, Constant):
        return Constant(-symbol.value)
    if isinstance(symbol, Operation) and symbol.operator == "/" and number_of(symbol.operands[0]):
        return Operation("/", _negated(symbol.operands[0]), symbol.operands[1])
    return Operation("-", symbol)


def _joined(terms: list[tuple[Fraction, Symbol]]) -> Symbol:
    """A sum of terms, given each with its number; the number's sign is that of the term."""
    total = terms[0][1]
    for number, term in terms[1:]:
        total = Operation("-" if number < 0 else "+", total, term)
    return total


def _one_plus_exp(symbol: Symbol) -> Symbol | None:
    """The exponent in `exp(u) + 1`."""
    if not isinstance(symbol, Operation) or symbol.operator != "+" or len(symbol.operands) != 2:
        return None
    for one, other in (symbol.operands, symbol.operands[::-1]):
        if number_of(one) == 1 and isinstance(other, Call) and other.function == "exp":
            return other.arguments[0]
    return None


def _complement(symbol: Symbol) -> Symbol | None:
    """`sigmoid(-u)` for `1 - sigmoid(u)`."""
    if isinstance(symbol, Operation) and symbol.operator == "-" and len(symbol.operands) == 2:
        one, other = symbol.operands
        if number_of(one) == 1 and isinstance(other, Call) and other.function == "sigmoid":
            return Call("sigmoid", (simplified(Operation("-", other.arguments[0])),))
    return None


def _total_of_numbers(symbol: Call) -> Fraction | None:
    """The sum of a vector of whole numbers that is written out."""
    inner = symbol.arguments[0] if symbol.function == "sum" and symbol.arguments else None
    if not isinstance(inner, Call) or inner.function != "tensor":
        return None
    numbers = inner.arguments[0].value if isinstance(inner.arguments[0], Constant) else None
    if not isinstance(numbers, list) or not all(
        isinstance(each, (int, float)) and float(each).is_integer() for each in numbers
    ):
        return None
    return Fraction(int(sum(numbers)))


def _softmax(symbol: Symbol) -> Symbol | None:
    """`z.softmax(d)` for the exponent `z - z.logsumexp((d,)).unsqueeze(d)`."""
    if not isinstance(symbol, Operation) or symbol.operator != "-" or len(symbol.operands) != 2:
        return None
    logits, total = symbol.operands
    if isinstance(total, Call) and total.function == "logsumexp":
        # The first dimension needs no unsqueeze.
        is_whole = [text_of(part) for part in total.parts] == [text_of(logits), "(0,)"]
        return Call("softmax", (logits, Constant(0)), True) if is_whole else None
    if isinstance(total, Call) and total.function == "unsqueeze":
        inner, dim = total.arguments
        is_total = isinstance(inner, Call) and inner.function == "logsumexp"
        if is_total and [text_of(p) for p in inner.parts] == [
            text_of(logits),
            f"({text_of(dim)},)",
        ]:
            return Call("softmax", (logits, dim), True)
    return None


def _one_hot(symbol: Symbol) -> tuple[Fraction, Symbol] | None:
    """`zeros((n, k)).scatter(1, t.unsqueeze(1), c)` as a number and `F.one_hot(t, k)`."""
    if not isinstance(symbol, Call) or symbol.function != "scatter" or len(symbol.arguments) != 4:
        return None
    empty, dim, index, value = symbol.arguments
    is_full = isinstance(value, Call) and value.function == "full"
    number = number_of(value.parts[1] if is_full else value)
    if number is None or number_of(dim) != 1 or not isinstance(empty, Call):
        return None
    if empty.function != "zeros" or not isinstance(empty.arguments[0], Constant):
        return None
    shape = empty.arguments[0].value
    if len(shape) != 2 or not isinstance(index, Call) or index.function != "unsqueeze":
        return None
    return number, Call("F.one_hot", (index.arguments[0], Constant(shape[1])))
