"""Jacobians and Hessians as matrices: what the formula of a gradient does to the gradient that
arrives, written down without it.

A gradient is linear in `seed`, the gradient that arrives: `A.t() @ seed` is the product with a
transposed Jacobian, so the Jacobian is `A`. It is read off step by step, from the outside in.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from gradcli.errors import GradcliError
from gradcli.questions.derive.algebra.matrices import Matrices, argument
from gradcli.questions.derive.algebra.products import number_of
from gradcli.questions.derive.program import Derivation, Line, Program, agrees, largest_of
from gradcli.questions.derive.textbook import other_inputs
from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Item,
    Keyword,
    Listed,
    Name,
    Operation,
    Symbol,
    rebuilt,
    substituted,
    text_of,
)

SEED = "seed"

_SHORT = 160
"""A matrix of the inputs alone may have as many characters."""

_LONG = 1_000
"""And one that is written row by row; the formula that either is read from `_LONGEST`."""

_LONGEST = 20_000

_POINTS = 2
"""At how many inputs, beside those that were given, a matrix is compared with its rows."""

_UNIT = Call("eye", ())
"""The unit matrix of the output's size: a factor that is left out."""


class NotLinear(Exception):
    """A formula of which no matrix can be read."""


def jacobians(derived: Derivation, run: Program, prefix: str, size: int) -> Derivation:
    """The derivation of an output of `size` elements with a Jacobian for each gradient.

    Args:
        prefix: what the lines are called, with the name behind: `jacobian_x`.

    Raises:
        GradcliError: E413 where a gradient's formula is too long.
    """
    if SEED not in derived.inputs:
        return _of_number(derived, prefix)
    lines = list(derived.shown)
    points = [derived.inputs, *islice(other_inputs(derived), _POINTS)]
    written: dict[str, Symbol] = {}
    for name in derived.gradients:
        jacobian = next(_candidates(derived, name, points, run, size), None)
        if jacobian is None:
            raise _without_matrix(name, "it is too long to be written down")
        written[name] = jacobian
    names = {f"{prefix}_{name}": formula for name, formula in written.items()}
    kept = _needed([line for line in lines if SEED not in _names(line.formula)], names)
    values: dict[str, Any] = {}
    for name in written:
        values[name] = _rows(derived, name, derived.inputs, run, size)
    derivation = Derivation(
        {n: array for n, array in derived.inputs.items() if n != SEED},
        [*kept, *(Line(n, f, values[n.removeprefix(f"{prefix}_")]) for n, f in names.items())],
        {name: f"{prefix}_{name}" for name in written},
        values, derived.paths, [], derived.conventions, derived.fixed, derived.described,
        prefix.partition("_")[0],
    )  # fmt: skip
    derivation.shown = derivation.lines
    return derivation


def _candidates(
    derived: Derivation, name: str, points: list[dict[str, Any]], run: Program, size: int
) -> Iterator[Symbol]:
    """The formulas of a Jacobian that have the right rows, the one of matrices first."""
    called = derived.gradients[name]
    is_matrix = derived.inputs[SEED].ndim == 1 and derived.values[name].ndim < 2
    for write in (_of_gradient, _row_by_row) if is_matrix else (_row_by_row,):
        try:
            formula = write(derived, called, size, run)
        except NotLinear:
            continue
        if _holds(derived, formula, name, points, run, size):
            yield formula


def _of_number(derived: Derivation, prefix: str) -> Derivation:
    """The derivation of a number: the gradients are the Jacobians."""
    names = {called: f"{prefix}_{name}" for name, called in derived.gradients.items()}
    symbols = {called: Name(new) for called, new in names.items()}
    parts = [
        [Line(names.get(e.name, e.name), substituted(e.formula, symbols), e.array) for e in lines]
        for lines in (derived.lines, derived.shown)
    ]
    gradients = {name: names[called] for name, called in derived.gradients.items()}
    return Derivation(
        derived.inputs, parts[0], gradients, derived.values, derived.paths, parts[1],
        derived.conventions, derived.fixed, derived.described, prefix.partition("_")[0],
    )  # fmt: skip


def _row_by_row(derived: Derivation, called: str, size: int, run: Program) -> Symbol:
    """The Jacobian as what the gradient is for each unit seed, where no matrix can be read: of
    the output's dimensions, and then the input's.
    """
    formula = _inlined(derived, called, whole=False)
    if len(text_of(formula)) > _LONG:
        raise NotLinear
    shape = derived.inputs[SEED].shape
    units: Symbol = Call("eye", (Constant(size),))
    if len(shape) == 1:
        return Call("stack", (Listed(formula, SEED, units),))
    units = Call("reshape", (units, Constant((size, *shape))), True)
    inner = next(line.array for line in derived.shown if line.name == called).shape
    rows = Call("stack", (Listed(formula, SEED, units),))
    return Call("reshape", (rows, Constant((*shape, *inner))), True)


def _of_gradient(derived: Derivation, called: str, size: int, run: Program) -> Symbol:
    """The Jacobian in a gradient's formula: of the inputs alone where that is short."""
    jacobian = _read(derived, called, size, run, whole=True)
    if len(text_of(jacobian)) <= _SHORT:
        return jacobian
    return _read(derived, called, size, run, whole=False)


def _read(derived: Derivation, called: str, size: int, run: Program, *, whole: bool) -> Symbol:
    arrays = {**derived.inputs, **{line.name: line.array for line in derived.shown}}
    formula = _inlined(derived, called, whole=whole)
    reading = _Reading(arrays, run)
    formula = reading.rules(formula)
    jacobian = reading.matrix(formula) if arrays[called].ndim else reading.covector(formula)
    if jacobian is _UNIT:
        jacobian = Call("eye", (Constant(size),))
    return reading.rules(reading.rules(jacobian))


def _inlined(derived: Derivation, called: str, *, whole: bool) -> Symbol:
    """The formula of a gradient with the lines that the seed reaches, or all, put into it."""
    put: dict[str, Symbol] = {}
    lengths: dict[str, int] = {}
    for line in derived.shown:
        inner = [each.name for each in line.formula.walk() if isinstance(each, Name)]
        # Lines that the seed reaches are put into the formula; the others keep their names.
        if whole or line.name == called or not (put.keys() | {SEED}).isdisjoint(inner):
            lengths[line.name] = len(text_of(line.formula)) + sum(lengths.get(n, 0) for n in inner)
            put[line.name] = substituted(line.formula, put)
    if lengths[called] > _LONGEST:
        raise NotLinear
    return put[called]


def reach(formula: Symbol, formulas: dict[str, Symbol]) -> set[str]:
    """The names in a formula, and in the lines that they stand for."""
    reached: set[str] = set()
    stack = [formula]
    while stack:
        for name in _names(stack.pop()) - reached:
            reached.add(name)
            if name in formulas:
                stack.append(formulas[name])
    return reached


def _names(symbol: Symbol) -> set[str]:
    return {part.name for part in symbol.walk() if isinstance(part, Name)}


def _needed(lines: list[Line], wanted: dict[str, Symbol]) -> list[Line]:
    """The lines that formulas need, themselves or by other lines."""
    formulas = {line.name: line.formula for line in lines}
    reached: set[str] = set()
    for formula in wanted.values():
        reached |= reach(formula, formulas)
    return [line for line in lines if line.name in reached]


def _without_matrix(name: str, why: str) -> GradcliError:
    return GradcliError(
        "E413",
        f"there is no matrix for the derivative by {name}: {why}",
        help="let `seed` stand for the gradient that arrives: leave --jacobian out;"
        " `gradcli explain --derivatives jacobian` shows the numbers",
    )


class _Reading:
    """Reads Jacobians (rows: outputs) off formulas that are linear in the seed."""

    def __init__(self, arrays: dict[str, Any], run: Program) -> None:
        self.arrays = arrays
        self.run = run
        self.rules = Matrices({name: array.ndim for name, array in arrays.items()})

    def shape(self, symbol: Symbol) -> tuple[int, ...]:
        """The shape of a formula, found by running it."""
        if number_of(symbol) is not None:
            return ()
        try:
            values = self.run(f"_shape_of = {text_of(symbol)}", self.arrays)
        except GradcliError:
            raise NotLinear(f"`{text_of(symbol)}`") from None
        return tuple(np.shape(values["_shape_of"])) if "_shape_of" in values else ()

    def rank(self, symbol: Symbol) -> int:
        rank = self.rules.rank(symbol)
        return len(self.shape(symbol)) if rank is None else rank

    def matrix(self, symbol: Symbol) -> Symbol:
        """The Jacobian of a vector."""
        if isinstance(symbol, Name) and symbol.name == SEED:
            return _UNIT
        if isinstance(symbol, Operation):
            if len(symbol.operands) == 1:
                return Operation("-", self._whole(symbol.operands[0]))
            return self._operation(symbol)
        if isinstance(symbol, Call) and symbol.function == "where":
            condition, *branches = symbol.parts
            terms = [
                _times(self.matrix(branch), _diagonal(Call("where", (condition, *counts))))
                for branch, counts in zip(branches, _COUNTS, strict=True)
                if SEED in _names(branch)
            ]
            return terms[0] if len(terms) == 1 else Operation("+", *terms)
        if (
            isinstance(symbol, Call)
            and symbol.function == "expand"
            and not self.rank(symbol.parts[0])
        ):
            ones = Call("ones", (Constant(self.shape(symbol)),))
            return Call("outer", (self.covector(symbol.parts[0]), ones))
        if isinstance(symbol, Call) and symbol.function in _PLACING:
            placed = self._placed(symbol)
            if placed is not None:
                return placed
        if isinstance(symbol, Call) and symbol.function == "torch.linalg.cross":
            return self._cross(symbol)
        if isinstance(symbol, Call) and symbol.function == "torch.linalg.solve":
            by, linear = symbol.parts[:2]
            if SEED not in _names(by):
                return _times(self.matrix(linear), _turned(Call("torch.linalg.inv", (by,))))
        if isinstance(symbol, (Call, Item)) and symbol.parts:
            first, *rest = symbol.parts
            if SEED in _names(first) and not any(SEED in _names(each) for each in rest):
                # Acts on the rows of a matrix as on the elements of a vector.
                turned = _turned(self._whole(first))
                return _turned(rebuilt(symbol, (turned, *rest)))
        raise NotLinear(f"`{text_of(symbol)}`")

    def _placed(self, symbol: Call) -> Symbol | None:
        """The Jacobian of what is put at places of a vector of zeros; None for another base."""
        base, *rest = symbol.parts
        if not isinstance(base, Call) or base.function != "zeros" or SEED in _names(base):
            return None
        unit = Call("eye", (Constant(self.shape(base)[0]),))
        if symbol.function == "select_scatter":
            source, _, index = rest
            return Call("outer", (self.covector(source), Item(unit, index)))
        if symbol.function == "slice_scatter":
            source, _, *ends = rest
            ends = [each.value for each in ends if isinstance(each, Constant)]
            return _times(self.matrix(source), Item(unit, Constant(slice(*ends))))
        _, index, source = rest
        if SEED in _names(index):
            return None
        return _times(self.matrix(source), Item(unit, index))

    def _cross(self, symbol: Call) -> Symbol:
        """The Jacobian of a cross product: of the other factor with each row of the matrix."""
        sides = symbol.parts[:2]
        shape = Constant((self.shape(symbol)[0],) * 2)
        if all(SEED in _names(side) for side in sides):
            raise NotLinear(f"`{text_of(symbol)}`")
        rows = [
            self._whole(side) if SEED in _names(side) else Call("expand", (side, shape), True)
            for side in sides
        ]
        return Call("torch.linalg.cross", (*rows, Keyword("dim", Constant(1))))

    def _operation(self, symbol: Operation) -> Symbol:
        left, right = symbol.operands
        if symbol.operator in "+-":
            return self._sum(symbol.operator, left, right)
        is_left = SEED in _names(left)
        if is_left and SEED in _names(right):
            raise NotLinear(f"`{text_of(symbol)}`")
        if symbol.operator == "@":
            if is_left:  # a row times a matrix
                return _times(self.matrix(left), right)
            return _times(self.matrix(right), _turned(left))
        linear, factor = (left, right) if is_left else (right, left)
        if symbol.operator == "/" and is_left:
            factor = Operation("/", Constant(1), factor)
        elif symbol.operator != "*":
            raise NotLinear(f"`{text_of(symbol)}`")
        if self.rank(linear) == 0:
            return Call("outer", (self.covector(linear), factor))
        if self.rank(factor) == 0:
            whole = self._whole(linear)
            is_quotient = symbol.operator == "/"
            return Operation("/", whole, right) if is_quotient else Operation("*", factor, whole)
        return _times(self.matrix(linear), _diagonal(factor))

    def _sum(self, operator: str, left: Symbol, right: Symbol) -> Symbol:
        """The Jacobian of a sum; a number in it is added to each element."""
        size = max(self.shape(left), self.shape(right), key=len)
        terms = [
            self._whole(each)
            if self.rank(each)
            else Call("outer", (self.covector(each), Call("ones", (Constant(size),))))
            for each in (left, right)
        ]
        return Operation(operator, *terms)

    def _whole(self, symbol: Symbol) -> Symbol:
        """The Jacobian of a vector that is a term of a sum, the unit matrix written out."""
        matrix = self.matrix(symbol)
        return Call("eye", (Constant(self.shape(symbol)[0]),)) if matrix is _UNIT else matrix

    def covector(self, symbol: Symbol) -> Symbol:
        """The Jacobian of a number, a vector."""
        if isinstance(symbol, Operation) and len(symbol.operands) == 1:
            return Operation("-", self.covector(symbol.operands[0]))
        if isinstance(symbol, Operation):
            left, right = symbol.operands
            if symbol.operator in "+-":
                return Operation(symbol.operator, self.covector(left), self.covector(right))
            linear, factor = (left, right) if SEED in _names(left) else (right, left)
            if SEED not in _names(factor):
                if symbol.operator == "@":
                    return _applied(self.matrix(linear), factor)
                if symbol.operator == "*" or linear is left:
                    return Operation(symbol.operator, self.covector(linear), factor)
        if isinstance(symbol, Call) and symbol.function == "where":
            condition, *branches = symbol.parts
            if SEED not in _names(condition) and self.rank(condition) == 0:
                slopes = (
                    self.covector(each) if SEED in _names(each) else Constant(0.0)
                    for each in branches
                )
                return Call("where", (condition, *slopes))
        if isinstance(symbol, Item) and SEED in _names(symbol.value):
            index = symbol.index.value if isinstance(symbol.index, Constant) else None
            if type(index) is int:
                return Item(_turned(self._whole(symbol.value)), Constant(index))
        inner = argument(symbol, "sum")
        if inner is not None and self.rank(inner) == 1:
            return self._total(inner)
        inner = argument(symbol, "mean")
        if inner is not None and self.rank(inner) == 1:
            return Operation("/", self._total(inner), Constant(self.shape(inner)[0]))
        raise NotLinear(f"`{text_of(symbol)}`")

    def _total(self, vector: Symbol) -> Symbol:
        """The Jacobian of the sum of a vector's elements."""
        if isinstance(vector, Operation) and vector.operator == "*":
            left, right = vector.operands
            linear, factor = (left, right) if SEED in _names(left) else (right, left)
            if SEED not in _names(factor) and self.rank(linear) == 1:
                if self.rank(factor) == 0:
                    return Operation("*", factor, self._total(linear))
                return _applied(self.matrix(linear), factor)
        if isinstance(vector, Operation) and vector.operator == "/" and len(vector.parts) == 2:
            linear, divisor = vector.operands
            if SEED not in _names(divisor):
                if self.rank(divisor) == 0:
                    return Operation("/", self._total(linear), divisor)
                return _applied(self.matrix(linear), Operation("/", Constant(1), divisor))
        if isinstance(vector, Operation) and vector.operator in "+-":
            return Operation(vector.operator, *map(self._total, vector.operands))
        return _applied(self.matrix(vector), Call("ones", (Constant(self.shape(vector)),)))


_PLACING = ("scatter", "select_scatter", "slice_scatter")
"""Functions that put something at places of their first argument."""

_COUNTS = ((Constant(1.0), Constant(0.0)), (Constant(0.0), Constant(1.0)))
"""What stands in the branches of `where` for its slope in the first, and in the second."""


def _times(left: Symbol, right: Symbol) -> Symbol:
    """A product of matrices; without the unit matrix."""
    if isinstance(left, Call) and left.function == "outer":
        return Call("outer", (left.parts[0], Operation("@", _turned(right), left.parts[1])))
    return right if left is _UNIT else Operation("@", left, right)


def _applied(matrix: Symbol, vector: Symbol) -> Symbol:
    """A product of a matrix and a vector; without the unit matrix."""
    if isinstance(matrix, Call) and matrix.function == "outer":
        return Operation("*", matrix.parts[0], Operation("@", matrix.parts[1], vector))
    return vector if matrix is _UNIT else Operation("@", matrix, vector)


def _turned(matrix: Symbol) -> Symbol:
    return matrix if matrix is _UNIT else Call("t", (matrix,), True)


def _diagonal(vector: Symbol) -> Symbol:
    return Call("diag", (vector,))


# --- by running -----------------------------------------------------------------------------------


def _rows(derived: Derivation, name: str, inputs: dict[str, Any], run: Program, size: int) -> Any:
    """The Jacobian by a name: what its gradient is for each unit vector as the seed."""
    program = "\n".join(f"{line.name} = {text_of(line.formula)}" for line in derived.lines)
    shape = inputs[SEED].shape
    rows = [
        run(program, {**inputs, SEED: unit.reshape(shape)})[derived.gradients[name]]
        for unit in np.eye(size, dtype=inputs[SEED].dtype)
    ]
    stacked = np.stack(rows) if rows else np.zeros((0, *inputs[name].shape), inputs[SEED].dtype)
    return stacked.reshape((*shape, *stacked.shape[1:]))


def _holds(
    derived: Derivation,
    formula: Symbol,
    name: str,
    points: list[dict[str, Any]],
    run: Program,
    size: int,
) -> bool:
    """Whether a matrix has the gradients for unit vectors as its rows."""
    lines = [line for line in derived.shown if SEED not in _names(line.formula)]
    needed = [f"{line.name} = {text_of(line.formula)}" for line in _needed(lines, {"": formula})]
    program = "\n".join([*needed, f"{_FOUND} = {text_of(formula)}"])
    for point in points:
        try:
            expected = _rows(derived, name, point, run, size)
            values = run(program, {key: array for key, array in point.items() if key != SEED})
        except GradcliError:
            return False
        if not agrees(values[_FOUND], expected, 1e-3, largest_of(values.values())):
            return False
    return True


_FOUND = "jacobian_"
