"""Sizes with names, `--shape x=n,k`: a program is derived at several sizes, and a number that
differs among the formulas is the same formula of the sizes in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

from gradcli.errors import GradcliError
from gradcli.questions.derive.algebra.products import constant, number_of, simplified
from gradcli.questions.derive.program import Derivation, Line
from gradcli.recorded.symbols.tree import Call, Constant, Name, Operation, Symbol, rebuilt, text_of
from gradcli.running.arguments.words import Argument

_PRIMES = (23, 47, 59, 83, 107, 167, 179)
"""Sizes: neither a size, nor one less by 1 and halved, has a divisor that formulas bring in."""

RUNS = 3
"""At how many sizes a program is derived: a formula that two lead to is tested by the third."""

_MOST_NAMES = 4
"""How many names shapes may have."""

_OFFSETS = (0, -1, 1, -2, 2)
"""What may be added to a product of sizes."""

_COEFFICIENT = 64
"""The largest number before one, above and below the line."""

_MOST_FACTORS = 3
"""How many sizes a product may have."""

_ROUNDING = Fraction(2, 10**7)
"""What of a number may be lost in single precision."""


def size_names(arguments: Sequence[Argument]) -> list[str]:
    """The names among the sizes of shapes, in order.

    Raises:
        GradcliError: E413 where there are too many.
    """
    words = [word for argument in arguments for word in _words(argument) or ()]
    names = list(dict.fromkeys(word for word in words if word.isidentifier()))
    if len(names) > _MOST_NAMES:
        raise GradcliError(
            "E413",
            f"shapes with {len(names)} different names",
            help="write numbers for some of the sizes",
        )
    return names


def sizes_of_run(arguments: Sequence[Argument], run: int) -> dict[str, int]:
    """The sizes that names stand for in one of the runs: no number that a shape has."""
    words = {word for argument in arguments for word in _words(argument) or ()}
    primes = [prime for prime in _PRIMES if str(prime) not in words]
    return {name: primes[number + run] for number, name in enumerate(size_names(arguments))}


def with_shapes(arguments: Sequence[Argument], sizes: Mapping[str, int]) -> list[Argument]:
    """Arguments, those whose values are shapes, `x=3,n`, as random tensors."""
    shaped = []
    for argument in arguments:
        words = _words(argument)
        if words is not None:
            kind = ":const" if argument.constant else ""
            shape = ", ".join(str(sizes.get(word, word)) for word in words)
            word = f"{argument.name}{kind}=randn({shape or '()'})"
            argument = Argument(argument.name, argument.constant, word, word.index("=") + 1)
        shaped.append(argument)
    return shaped


def _words(argument: Argument) -> list[str] | None:
    """The sizes in a value that is a shape."""
    text = argument.text.strip("() ").removesuffix(",")
    words = [each.strip() for each in text.split(",")] if text else []
    is_shape = all(each.isdecimal() or each.isidentifier() for each in words)
    return words if is_shape and not argument.file else None


# --- one derivation of several ----------------------------------------------------------------


def of_any_size(
    derivations: Sequence[Derivation], sizes: Sequence[Mapping[str, int]]
) -> Derivation:
    """The derivation whose formulas are those of all sizes.

    Raises:
        GradcliError: E413 where formulas differ by more than numbers that sizes lead to.
    """
    first = derivations[0]
    lines = _of_any_size([each.lines for each in derivations], sizes)
    shown = _of_any_size([each.shown for each in derivations], sizes)
    for line in (*lines, *shown):
        known = [number for run in derivations for number in _shapes_of(line.name, run)]
        line.dims = tuple(
            text_of(_of_sizes(numbers, sizes)) for numbers in zip(*known, strict=True)
        )
    first.lines, first.shown = lines, shown
    first.sizes = {
        name: place
        for name, size in sizes[0].items()
        if (place := _place_of(size, first.inputs)) is not None
    }
    return first


def _shapes_of(name: str, run: Derivation) -> Iterator[tuple[int, ...]]:
    """The shape of a line."""
    line = next(line for line in (*run.lines, *run.shown) if line.name == name)
    yield tuple(line.array.shape)


def _place_of(size: int, inputs: Mapping[str, Any]) -> tuple[str, int] | None:
    """An input and the dimension of it that has a size; None where the formulas read none."""
    places = (
        (name, dim)
        for name, array in inputs.items()
        for dim, each in enumerate(array.shape)
        if each == size
    )
    return next(places, None)


def _of_any_size(runs: Sequence[Sequence[Line]], sizes: Sequence[Mapping[str, int]]) -> list[Line]:
    if len({len(lines) for lines in runs}) > 1:
        raise _differ("they have other lines at other sizes")
    lines = []
    for several in zip(*runs, strict=True):
        if len({line.name for line in several}) > 1:
            raise _differ("they have other lines at other sizes")
        formula = _joined([line.formula for line in several], sizes)
        if formula is not several[0].formula:
            formula = simplified(formula, sizes[0])
        lines.append(Line(several[0].name, formula, several[0].array))
    return lines


def _joined(formulas: Sequence[Symbol], sizes: Sequence[Mapping[str, int]]) -> Symbol:
    """One formula of the same formula at several sizes."""
    first = formulas[0]
    if len({text_of(each) for each in formulas}) == 1:
        return first
    if all(isinstance(each, Constant) for each in formulas):
        return _of_sizes([each.value for each in formulas if isinstance(each, Constant)], sizes)
    if len({(type(each), _head(each), len(each.parts)) for each in formulas}) > 1:
        raise _differ("they have another form at other sizes")
    parts = zip(*(each.parts for each in formulas), strict=True)
    return rebuilt(first, tuple(_joined(each, sizes) for each in parts))


def _head(symbol: Symbol) -> str:
    """What two symbols of one kind share beside their parts."""
    if isinstance(symbol, Call):
        return symbol.function
    return symbol.operator if isinstance(symbol, Operation) else text_of(symbol)[:0]


def _of_sizes(values: Sequence[Any], sizes: Sequence[Mapping[str, int]]) -> Symbol:
    """A constant of each run as a formula of the sizes; a shape as that of each of its sizes."""
    if all(isinstance(value, tuple) and len(value) == len(values[0]) for value in values):
        return Call("", tuple(_of_sizes(each, sizes) for each in zip(*values, strict=True)))
    if len(set(map(repr, values))) == 1:
        return Constant(values[0])
    numbers = [number_of(Constant(value)) for value in values]
    if any(number is None for number in numbers):
        raise _differ(f"{values[0]!r} is another constant at other sizes")
    exact = [number for number in numbers if number is not None]
    formula = _formula_of(exact, sizes)
    if formula is None and all(exact):
        below = _formula_of([1 / number for number in exact], sizes)
        formula = None if below is None else Operation("/", Constant(1), below)
    if formula is None:
        raise _differ(f"{values[0]!r} follows from the sizes in a way that was not recognised")
    return formula


def _formula_of(numbers: Sequence[Fraction], sizes: Sequence[Mapping[str, int]]) -> Symbol | None:
    """A number of each run as a number times sizes, and times one plus a small number."""
    names = list(sizes[0])
    for offset in _OFFSETS:
        for exponents in sorted(product(range(3), repeat=len(names)), key=sum):
            if not 0 < sum(exponents) <= _MOST_FACTORS:
                continue
            units = [_power(run, exponents) for run in sizes]
            for inside, outside in {(offset, 0), (0, offset)}:
                pairs = zip(numbers, units, strict=True)
                factor = _shared([(n - outside) / (unit + inside) for n, unit in pairs])
                if factor is not None:
                    factored = _plus(_written(names, exponents), inside)
                    return _plus(_times(factor, factored), outside)
    for one, other in product(names, names):
        runs = zip(numbers, sizes, strict=True)
        rest = {round(number - run[one] - run[other]) for number, run in runs}
        sums = [Fraction(run[one] + run[other] + max(rest)) for run in sizes]
        pairs = zip(numbers, sums, strict=True)
        if all(abs(number - total) <= _ROUNDING * abs(total) for number, total in pairs):
            return _plus(Operation("+", Name(one), Name(other)), rest.pop())
    return None


def _shared(factors: Sequence[Fraction]) -> Fraction | None:
    """The plain number that all are, but for the rounding of single precision."""
    near = factors[0].limit_denominator(_COEFFICIENT)
    if not near or abs(near.numerator) > _COEFFICIENT:
        return None
    return near if all(abs(each - near) <= _ROUNDING * abs(near) for each in factors) else None


def _power(sizes: Mapping[str, int], exponents: Sequence[int]) -> Fraction:
    unit = Fraction(1)
    for size, exponent in zip(sizes.values(), exponents, strict=True):
        unit *= size**exponent
    return unit


def _written(names: Sequence[str], exponents: Sequence[int]) -> Symbol:
    powers: list[Symbol] = [
        Name(name) if exponent == 1 else Operation("**", Name(name), Constant(exponent))
        for name, exponent in zip(names, exponents, strict=True)
        if exponent
    ]
    return reduce(lambda one, other: Operation("*", one, other), powers)


def _times(factor: Fraction, symbol: Symbol) -> Symbol:
    if abs(factor.numerator) != 1:
        symbol = Operation("*", Constant(abs(factor.numerator)), symbol)
    if factor.denominator != 1:
        symbol = Operation("/", symbol, Constant(factor.denominator))
    return Operation("-", symbol) if factor < 0 else symbol


def _plus(symbol: Symbol, offset: int) -> Symbol:
    if not offset:
        return symbol
    return Operation("+" if offset > 0 else "-", symbol, constant(Fraction(abs(offset))))


def _differ(reason: str) -> GradcliError:
    return GradcliError(
        "E413",
        f"there are no formulas for all sizes: {reason}",
        help="write numbers for the sizes in --shape",
    )
