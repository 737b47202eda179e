"""Derived formulas as a textbook prints them: `3 * x ** 2 - 2` for `x ** 2 * 3 + -2`.

A formula becomes a sum of products of powers, with its number in front. That is real arithmetic and
may change a last digit, so a rewritten derivation is kept only where it was run beside the former
one at several points and gave the same numbers.

A number is read as a quotient of polynomials in what is no arithmetic: names, `sin(x)`, `sqrt(u)`,
`exp(u)`. Adding and cancelling such quotients is exact; identities such as `sin² = 1 - cos²`
replace a power in them. Each is true for all real numbers for which both of its sides exist. Of all
forms that come of it the one with the fewest names, numbers and operators is taken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np

from gradcli.arrays.files.recording import MOST_DRAWN
from gradcli.errors import GradcliError
from gradcli.questions.derive.algebra.matrices import Matrices
from gradcli.questions.derive.algebra.products import number_of, simplified
from gradcli.questions.derive.algebra.quotients import (
    Atoms,
    Quotient,
    TooLarge,
    Writer,
    cost,
    of_name,
    with_quotients,
)
from gradcli.questions.derive.program import (
    MANY,
    Derivation,
    Line,
    Program,
    agrees,
    is_sum,
    run_formulas,
)
from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Name,
    Operation,
    Symbol,
    is_elementwise,
    rebuilt,
    substituted,
    text_of,
)

# --- one number -----------------------------------------------------------------------------------


_MOST_FORMS = 24
"""How many quotients the identities may make of one."""


_MOST_PARTS_OF_A_NUMBER = 64
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
            if count > min(_MOST_PARTS_OF_A_NUMBER, self._left):
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


# --- textbook -------------------------------------------------------------------------------------


_AUTOMATIC = re.compile(r"t\d*")
"""The names of lines that the program has no name for."""

_LONGEST = 68
"""A gradient that is no longer is written in one line, of the inputs alone."""

_LONGER = 1.5
"""How much longer all gradients may be, written of the inputs alone, than with names between; both
are more where all are numbers.
"""

_MOST_PARTS = 120
"""A formula of more parts is not written of the inputs alone."""

_MOST_PARTS_OF_MANY = 24
"""The same among many formulas, which what a loop adds up makes no shorter."""

_POINTS = 2
"""At how many inputs, beside those that were given, formulas are compared; those of millions of
elements at one.
"""

_TRIES = 8
"""How many inputs are drawn to find these."""


def textbook(
    derived: Derivation, run: Program, in_domain: Callable[[dict[str, Any]], bool] = lambda _: True
) -> Derivation:
    """The derivation with its formulas simplified, as far as running confirms it.

    Args:
        in_domain: whether the program has a finite result at inputs.
    """
    elements = sum(array.size for array in derived.inputs.values())
    others = 1 if elements > MOST_DRAWN else _POINTS
    points = [derived.inputs, *islice(filter(in_domain, other_inputs(derived)), others)]
    if not in_domain(derived.inputs):
        del points[0]
    exact = _simplest(derived, derived.lines, points, run)
    bare, conventions = _without_guards(exact)
    shown = _simplest(derived, bare, points, run) if conventions else exact
    return Derivation(
        derived.inputs,
        exact,
        derived.gradients,
        derived.values,
        derived.paths,
        shown,
        conventions,
        derived.fixed,
        derived.described,
        standing=derived.standing,
    )


def _simplest(
    derived: Derivation, lines: list[Line], points: list[dict[str, Any]], run: Program
) -> list[Line]:
    """Lines rewritten by the first rules that running confirms."""
    ranks = {name: array.ndim for name, array in derived.inputs.items()}
    ranks |= {line.name: line.array.ndim for line in lines}
    shapes = {name: tuple(array.shape) for name, array in derived.inputs.items()}
    shapes |= {line.name: tuple(line.array.shape) for line in lines}
    matrices = Matrices(ranks)
    scalars = Scalars(shapes, matrices.rank)
    for rules in (lambda formula: scalars(matrices(formula)), matrices, simplified):
        simpler = _rewritten(lines, set(derived.gradients.values()), rules)
        if simpler is not None and _agree(derived, simpler, points, run):
            _measure(simpler, derived, run)
            is_free = not any(_AUTOMATIC.fullmatch(name) for name in derived.inputs)
            return _numbered(simpler) if is_free else simpler
    return lines


def _measure(lines: list[Line], derived: Derivation, run: Program) -> None:
    """Note what the lines come to: a vector of one element may have become a number."""
    former = {line.name: line.array for line in derived.lines}
    measured: list[Any] = []

    def note(array: Any) -> None:
        before = former.get(lines[len(measured)].name)
        same = before is not None and (before.shape, before.dtype) == (array.shape, array.dtype)
        measured.append(before if same else array)

    try:
        run(_text(lines), derived.inputs, set(derived.gradients.values()), note)
    except GradcliError:
        return
    for line, array in zip(lines, measured, strict=True):
        line.array = array


def _without_guards(lines: list[Line]) -> tuple[list[Line], list[str]]:
    """Lines without the cases in which a factor is 0 by convention, and these cases in terms of the
    inputs. Cases that are long in these terms stay.
    """
    whole: dict[str, Symbol] = {}
    guards: dict[str, None] = {}
    bare = []
    for line in lines:
        whole[line.name] = substituted(line.formula, whole)
        guarded = [part.parts[0] for part in line.formula.walk() if _guarded(part) is not None]
        conditions = [substituted(each, whole) for each in guarded]
        if not all(map(_is_short, conditions)):
            bare.append(line)
            continue
        for condition in conditions:
            both = isinstance(condition, Call) and condition.function == "logical_and"
            parts = condition.parts if both else (condition,)
            guards.setdefault(" and ".join(map(text_of, parts)))
        bare.append(Line(line.name, _unguarded(line.formula), line.array))
    return bare, list(guards)


def _is_short(formula: Symbol, most: int = _MOST_PARTS) -> bool:
    """Whether a formula has few parts; one that repeats formulas may have very many."""
    return next(islice(formula.walk(), most, None), None) is None


def _guarded(symbol: Symbol) -> Symbol | None:
    """What counts where a condition like `n == 0` does not hold, where what counts there is 0."""
    if (
        not isinstance(symbol, Call)
        or symbol.function != "where"
        or number_of(symbol.parts[1]) != 0
    ):
        return None
    condition, _, otherwise = symbol.parts
    if isinstance(condition, Call) and condition.function == "logical_and":
        condition = condition.parts[0]
    is_zero = isinstance(condition, Operation) and condition.operator == "=="
    return otherwise if is_zero and number_of(condition.parts[1]) == 0 else None


def _unguarded(symbol: Symbol) -> Symbol:
    otherwise = _guarded(symbol)
    if otherwise is not None:
        return _unguarded(otherwise)
    parts = tuple(map(_unguarded, symbol.parts))
    return rebuilt(symbol, parts) if parts else symbol


# --- whole derivations ----------------------------------------------------------------------------


def _rewritten(
    before: list[Line], gradients: set[str], rules: Callable[[Symbol], Symbol]
) -> list[Line] | None:
    """The lines rewritten: each gradient of the inputs alone where that is short."""
    whole: dict[str, Symbol] = {}
    closed: list[Line] = []
    lines: list[Line] = []
    uses = Counter(name for line in before for name in _names(line.formula))
    once: dict[str, Symbol] = {}
    most = _MOST_PARTS if len(before) <= MANY else _MOST_PARTS_OF_MANY
    try:
        for line in before:
            formula = substituted(line.formula, whole)
            is_short = _is_short(formula, most)
            is_number = line.name in gradients and not line.array.ndim
            if is_short and (is_number or _AUTOMATIC.fullmatch(line.name)):
                whole[line.name] = formula
            # Simplifying takes long where there are many parts, and no short formula comes of it.
            simple = rules(formula) if is_short else formula
            closed.append(Line(line.name, _tensor(simple, line.array), line.array))
            own = _tensor(rules(line.formula), line.array)
            inner = _names(line.formula) & once.keys()
            joined = own
            if inner:
                joined = _tensor(rules(substituted(line.formula, once)), line.array)
            saved = sum(len(text_of(once[name])) for name in inner)
            better = len(text_of(joined)) <= min(len(text_of(own)) + saved, _LONGEST)
            lines.append(Line(line.name, joined if better else own, line.array))
            regular = len(before) > MANY // 2 and is_sum(line.formula)
            if uses[line.name] == 1 and _AUTOMATIC.fullmatch(line.name) and not regular:
                once[line.name] = lines[-1].formula
    except (ZeroDivisionError, OverflowError):
        return None
    lines, closed = _used(lines, gradients), _used(closed, gradients)
    texts = [text_of(line.formula) for line in closed]
    are_numbers = not any(line.array.ndim for line in before)
    longer, longest = (3.0, 96) if are_numbers else (_LONGER, _LONGEST)
    room = max(longer * sum(len(text_of(line.formula)) for line in lines), longest)
    fits = max(map(len, texts), default=0) <= longest and sum(map(len, texts)) <= room
    return closed if fits else lines


def _tensor(formula: Symbol, array: Any) -> Symbol:
    """A formula that came to a number as a tensor of an array's shape."""
    number = number_of(formula)
    if number is None or array.dtype.name != "float32":
        return formula
    if array.ndim:
        return Call("full", (Constant(tuple(array.shape)), Constant(float(number))))
    return Call("tensor", (Constant(float(number)),))


def _names(formula: Symbol) -> set[str]:
    return {part.name for part in formula.walk() if isinstance(part, Name)}


def _numbered(lines: list[Line]) -> list[Line]:
    """The lines with the names `t1`, `t2` … in order."""
    own = [line.name for line in lines if _AUTOMATIC.fullmatch(line.name)]
    names: dict[str, Symbol] = {name: Name(f"t{n}") for n, name in enumerate(own, 1)}
    return [
        Line(text_of(_renamed(Name(line.name), names)), _renamed(line.formula, names), line.array)
        for line in lines
    ]


def _renamed(formula: Symbol, names: Mapping[str, Symbol]) -> Symbol:
    """A formula with other names in it, and not otherwise changed."""
    if isinstance(formula, Name):
        return names.get(formula.name, formula)
    parts = tuple(_renamed(part, names) for part in formula.parts)
    return rebuilt(formula, parts) if parts else formula


def _used(lines: list[Line], wanted: set[str]) -> list[Line]:
    """The lines that lead to the gradients."""
    needed = set(wanted)
    kept: list[Line] = []
    for line in reversed(lines):
        if line.name in needed:
            kept.append(line)
            needed |= _names(line.formula)
    return kept[::-1]


def other_inputs(derived: Derivation) -> Iterable[dict[str, Any]]:
    """Other inputs of the same shapes."""
    random = np.random.default_rng(0)
    for _ in range(_TRIES):
        yield {
            name: random.uniform(0.3, 1.4, array.shape).astype(array.dtype)[()]
            if array.dtype.kind == "f"
            else array
            for name, array in derived.inputs.items()
        }


def _agree(
    derived: Derivation, lines: list[Line], points: list[dict[str, Any]], run: Program
) -> bool:
    """Whether both give the same gradients wherever the former ones can be run, and finite ones far
    away from there too.
    """
    before, after = _text(derived.lines), _text(lines)
    far = (_far(derived.inputs, factor) for factor in (100.0, -100.0))
    for number, point in enumerate(chain(points, far)):
        wanted = derived.gradients.values()
        try:
            former, largest = run_formulas(run, before, point, wanted)
        except GradcliError:
            continue
        try:
            values, _ = run_formulas(run, after, point, wanted)
        except GradcliError:
            return False
        for name in wanted:
            a, b = values.get(name), former[name]
            if a is None or a.dtype != b.dtype or a.shape != b.shape:
                return False
            # In single precision a sum that cancels may have no digit in common with its value.
            if number < len(points) and not (
                agrees(a, b, 1e-4, largest)
                or (number > 0 and _agree_in_double(name, before, after, point, run))
            ):
                return False
            if np.any(np.isfinite(b) & ~np.isfinite(a)):
                return False
    return True


def _agree_in_double(
    name: str, before: str, after: str, point: dict[str, Any], run: Program
) -> bool:
    """Whether two programs have the same value of a name, computed in double precision."""
    wide = {
        each: array.astype(np.float64) if array.dtype.kind == "f" else array
        for each, array in point.items()
    }
    try:
        former, largest = run_formulas(run, before, wide, [name])
        latter, _ = run_formulas(run, after, wide, [name])
    except GradcliError:
        return False
    return bool(agrees(latter[name], former[name], 1e-6, largest))


def _far(inputs: dict[str, Any], factor: float) -> dict[str, Any]:
    """Inputs at which functions that grow quickly overflow in single precision."""
    return {
        name: (np.ones_like(array) * factor)[()] if array.dtype.kind == "f" else array
        for name, array in inputs.items()
    }


def _text(lines: list[Line]) -> str:
    return "\n".join(f"{line.name} = {text_of(line.formula)}" for line in lines)
