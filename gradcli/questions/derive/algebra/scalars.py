"""The shortest formula of a number that a few identities lead to.

A formula is read as a quotient of polynomials in what is no arithmetic: names, `sin(x)`, `sqrt(u)`,
`exp(u)`. Adding and cancelling such quotients is exact; identities such as `sin² = 1 - cos²`
replace a power in them. Each is true for all real numbers for which both of its sides exist. Of all
forms that come of it the one with the fewest names, numbers and operators is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from gradcli.questions.derive.algebra.polynomials import Quotient, TooLarge, of_name, with_quotients
from gradcli.questions.derive.algebra.products import simplified
from gradcli.questions.derive.algebra.reading import Atoms
from gradcli.questions.derive.algebra.writing import Writer, cost
from gradcli.recorded.symbols.notation import is_elementwise
from gradcli.recorded.symbols.text import text_of
from gradcli.recorded.symbols.tree import Call, Constant, Name, Operation, Symbol, rebuilt

_MOST_FORMS = 24
"""How many quotients the identities may make of one."""


_MOST_PARTS = 64
"""Formulas of more parts are left as they are: to work with them takes long, and they stay long."""

_MOST_IN_ALL = 1_200
"""The parts of all formulas of a program that are worked with; a count, and no time, so that the
same formulas come on every machine.
"""

_MOST_QUOTIENTS = 300
"""Quotients that are written in all: a few milliseconds each where they have many factors."""

_GROWING = frozenset({"exp", "expm1", "sinh", "cosh"})
"""Functions that overflow."""

_ARITHMETIC = frozenset({"+", "-", "*", "/", "**"})


class Scalars:
    """Simplifies formulas of numbers, and those of tensors of one shape element by element.

    Args:
        shapes: of all names.
        rank: how many dimensions a formula has, None where that is not known.
    """

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        rank: Callable[[Symbol], int | None],
    ) -> None:
        self._shapes = shapes
        self._rank = rank
        self._known: dict[str, Symbol] = {}
        self._left = _MOST_IN_ALL
        self._quotients_left = _MOST_QUOTIENTS

    def __call__(self, symbol: Symbol) -> Symbol:
        """A formula with all that are numbers in it, or of one shape, as short as they can be."""
        if isinstance(symbol, (Name, Constant)) or not symbol.parts:
            return symbol
        shapes = self._shapes_in(symbol)
        inside = self._opened(symbol)
        return self.shortest(inside) if shapes is not None and len(shapes) < 2 else inside

    def _opened(self, symbol: Symbol) -> Symbol:
        """A formula with what is no arithmetic in it simplified."""
        if not symbol.parts:
            return symbol
        of_part = self._opened if _is_arithmetic(symbol) else self
        return rebuilt(symbol, tuple(map(of_part, symbol.parts)))

    def _shapes_in(self, symbol: Symbol) -> set[tuple[int, ...]] | None:
        """The shapes of what arithmetic there is with, None where one is not known."""
        if isinstance(symbol, Constant) or text_of(symbol).startswith("math."):
            return set()
        if isinstance(symbol, Name):
            return {self._shapes[symbol.name]} if symbol.name in self._shapes else None
        if not _is_arithmetic(symbol):
            return {()} if self._rank(symbol) == 0 else None
        shapes: set[tuple[int, ...]] = set()
        for part in symbol.parts:
            inner = self._shapes_in(part)
            if inner is None:
                return None
            shapes |= inner
        return shapes

    def shortest(self, symbol: Symbol) -> Symbol:
        """The shortest formula, the given one where none is shorter."""
        if isinstance(symbol, (Name, Constant)):
            return symbol
        text = text_of(symbol)
        if text not in self._known:
            self._known[text] = symbol
            self._known[text] = self._shortest(symbol)
        return self._known[text]

    def _shortest(self, symbol: Symbol) -> Symbol:
        known = simplified(symbol)
        forms = [symbol]
        for start in (known, symbol):
            count = sum(1 for _ in start.walk())
            if count > min(_MOST_PARTS, self._left):
                continue
            self._left -= count
            for whole in (None, _repeated_sum(start)):
                atoms = Atoms(self.shortest, whole)
                writer = Writer(atoms, self.shortest, symbol)
                try:
                    for quotient in equal_quotients(atoms.read(start), atoms):
                        if not self._quotients_left:
                            break
                        self._quotients_left -= 1
                        forms += writer.forms(quotient)
                except (TooLarge, ZeroDivisionError, OverflowError):
                    continue
        # `tanh` is finite where `sinh / cosh` is not.
        best = min((form for form in forms if _grows(symbol) or not _grows(form)), key=cost)
        return known if cost(known)[0] <= cost(best)[0] else best


def _repeated_sum(symbol: Symbol) -> str | None:
    """The text of the sum that stands most often in a formula, None where each is there once."""
    sums = [part for part in symbol.walk() if isinstance(part, Operation) and part.operator in "+-"]
    texts = Counter(text_of(part) for part in sums if len(part.operands) == 2)
    text, count = max(texts.items(), key=lambda pair: pair[1], default=("", 0))
    return text if count > 1 else None


def _grows(symbol: Symbol) -> bool:
    """Whether a formula has a function that overflows."""
    return any(isinstance(part, Call) and part.function in _GROWING for part in symbol.walk())


def _is_arithmetic(symbol: Symbol) -> bool:
    """Whether a formula is one of its parts' elements."""
    if isinstance(symbol, Operation):
        return symbol.operator in _ARITHMETIC
    is_call = isinstance(symbol, Call) and not symbol.method and len(symbol.arguments) == 1
    return is_call and (symbol.function == "math.sqrt" or is_elementwise(symbol.function))


def equal_quotients(quotient: Quotient, atoms: Atoms) -> Iterator[Quotient]:
    """A quotient, and what the identities make of it."""
    known = {quotient.key}
    waiting = [quotient]
    while waiting:
        quotient = waiting.pop(0)
        yield quotient
        names = quotient.names
        for name, power, value in atoms.identities():
            if name not in names or len(known) >= _MOST_FORMS:
                continue
            try:
                others = [with_quotients(quotient, name, power, value)]
                exponent = quotient.exponent(name)
                if power > 1 and value.number and exponent:
                    unit = value.times(of_name(name), -power)
                    others.append(quotient.times(unit, 1 if exponent > 0 else -1))
            except (TooLarge, ZeroDivisionError):
                continue
            for other in others:
                if other.key not in known:
                    known.add(other.key)
                    waiting.append(other)
