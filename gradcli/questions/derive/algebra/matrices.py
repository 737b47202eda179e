"""Formulas of matrices and vectors as a textbook has them: `A.t() @ x` for rows and columns that
were made for a product, `inv(X)` for a solution with the unit matrix.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.questions.derive.algebra.products import number_of, simplified
from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Item,
    Keyword,
    Name,
    Operation,
    Symbol,
    is_elementwise,
    lifted,
    rebuilt,
    text_of,
)

_INVERSE, _SOLVE = "torch.linalg.inv", "torch.linalg.solve"

_ROUNDS = 4
"""How often the rules are gone through: one may make room for another."""

_TOTALS = frozenset({"sum", "mean", "prod", "amax", "amin", "std", "var"})
"""Functions that make one number of all elements."""


class Matrices:
    """Rules for matrices, given how many dimensions names have."""

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self._ranks = ranks

    def __call__(self, symbol: Symbol) -> Symbol:
        """A formula simplified, with its products of matrices as a person would write them."""
        text = ""
        for _ in range(_ROUNDS):
            symbol = simplified(self._rewritten(symbol))
            if text_of(symbol) == text:
                break
            text = text_of(symbol)
        return self._factored(symbol)

    def _rewritten(self, symbol: Symbol) -> Symbol:
        parts = tuple(map(self._rewritten, symbol.parts))
        symbol = rebuilt(symbol, parts) if parts else symbol
        if isinstance(symbol, Call):
            return self._call(symbol)
        if isinstance(symbol, Item):
            return _without_dimension(symbol)
        return self._operation(symbol) if isinstance(symbol, Operation) else symbol

    # --- how many dimensions ---------------------------------------------------------------------

    def rank(self, symbol: Symbol) -> int | None:
        """How many dimensions a formula has, None where that is not known."""
        if isinstance(symbol, Name):
            return self._ranks.get(symbol.name)
        if isinstance(symbol, Constant):
            return 0
        inner = [self.rank(part) for part in symbol.parts]
        if isinstance(symbol, Operation) and symbol.operator == "@":
            one, other = inner
            return None if one is None or other is None else max(one + other - 2, 0)
        if isinstance(symbol, Operation):
            return _most(inner)
        if not isinstance(symbol, Call):
            return None
        name = symbol.function
        if name in ("outer", "eye", "diag", _INVERSE, "F.one_hot"):
            return 2
        if name in ("torch.linalg.det", "norm", "trace") or (name in _TOTALS and len(inner) == 1):
            return 0
        if name in ("sum", "mean", "logsumexp") and len(inner) == 2 and inner[0] is not None:
            dims = symbol.parts[1]
            return inner[0] - len(dims.value) if isinstance(dims, Constant) else None
        if name == "unsqueeze":
            return None if inner[0] is None else inner[0] + 1
        if name in ("softmax", "log_softmax", "t", "transpose", "expand_as"):
            return inner[0]
        if name in ("expand", "reshape", "ones", "zeros", "full"):
            shape = symbol.parts[name in ("expand", "reshape")]
            return len(shape.value) if isinstance(shape, Constant) else None
        return _most(inner) if is_elementwise(name) else None

    # --- rules -----------------------------------------------------------------------------------

    def _call(self, call: Call) -> Symbol:
        name = call.function
        if name == "t":
            return self._transposed(call)
        if name == _INVERSE:
            return self._inverse(call)
        if name == _SOLVE and len(call.parts) == 2:
            factor = self._times_unit(call.parts[1])
            if factor is not None:
                return Operation("*", factor, self._inverse(Call(_INVERSE, call.parts[:1])))
        if name == "outer":
            return self._outer(call)
        if name == "diag_embed":
            return self._diagonal(call)
        is_length = name == "norm" and len(call.parts) > 1 and number_of(call.parts[1]) == 2
        if is_length and (len(call.parts) == 2 or self.rank(call.parts[0]) == 1):
            return Call("norm", call.parts[:1], True)
        if name == "where":
            condition, *branches = call.parts
            call = Call("where", (condition, *map(_level, branches)))
            return _either_sign(_positive_part(_positive_determinant(call)))
        is_total = name in _TOTALS and len(call.parts) > 1 and self.rank(call.parts[0]) == 1
        if is_total and not any(isinstance(each, Keyword) for each in call.parts):
            return Call(name, call.parts[:1], True)  # broadcast as a vector of one element is
        if name == "logical_or" and _is_nan_too(call):
            return call.parts[0]
        unit = _filled_diagonal(call)
        if unit is not None:
            return unit
        shaped = argument(call, "reshape")
        if isinstance(shaped, Operation) and shaped.operator == "@":
            first = _row(shaped.operands[0])
            if first is not None:
                return Operation("@", first, shaped.operands[1])
        shape = call.parts[1] if shaped is not None else None
        vector = None if shaped is None else _column(shaped)
        is_line = isinstance(shape, Constant) and len(shape.value) == 1
        return vector if vector is not None and is_line else call

    def _outer(self, call: Call) -> Symbol:
        """An outer product with the numbers that its vectors are times or divided by before it."""
        for number, vector in enumerate(call.parts):
            if not isinstance(vector, Operation) or vector.operator not in ("*", "/"):
                continue
            *front, last = vector.parts
            scalar = next((p for p in (last, *front) if self.rank(p) == 0), None)
            if (
                scalar is None
                or len(vector.parts) != 2
                or (vector.operator == "/" and scalar is not last)
            ):
                continue
            rest = front[0] if scalar is last else last
            parts = [rest if n == number else part for n, part in enumerate(call.parts)]
            inner = self._outer(Call("outer", tuple(parts)))
            pair = (inner, scalar) if vector.operator == "/" else (scalar, inner)
            return Operation(vector.operator, *pair)
        return call

    def _transposed(self, call: Call) -> Symbol:
        """A transpose, brought to the factors of a product."""
        inner = call.parts[0]
        if isinstance(inner, Operation) and inner.operator == "@" and self._are_matrices(inner):
            left, right = inner.operands
            return Operation("@", self._turn(right), self._turn(left))
        if isinstance(inner, Operation) and inner.operator in ("*", "/"):
            scalar = [self.rank(part) == 0 for part in inner.parts]
            if any(scalar):
                turned = [
                    p if s else self._turn(p) for p, s in zip(inner.parts, scalar, strict=True)
                ]
                return Operation(inner.operator, *turned)
        return self._turn(inner)

    def _turn(self, symbol: Symbol) -> Symbol:
        """The transpose of a formula that is no product."""
        twice = argument(symbol, "t")
        if twice is not None:
            return twice
        if self.rank(symbol) in (0, 1) or _is_symmetric(symbol):
            return symbol
        if isinstance(symbol, Operation) and (symbol.operator in "+-" or len(symbol.parts) == 1):
            return rebuilt(symbol, tuple(map(self._turn, symbol.parts)))
        if isinstance(symbol, Call) and symbol.function == "outer":
            return Call("outer", symbol.parts[::-1])
        if isinstance(symbol, Operation) and symbol.operator == "@" and self._are_matrices(symbol):
            return self._transposed(Call("t", (symbol,), True))
        return Call("t", (symbol,), True)

    def _inverse(self, call: Call) -> Symbol:
        inner = call.parts[0]
        twice, turned = argument(inner, _INVERSE), argument(inner, "t")
        if twice is not None:
            return twice
        if turned is not None:
            return self._turn(self._inverse(Call(_INVERSE, (turned,))))
        return call

    def _times_unit(self, symbol: Symbol) -> Symbol | None:
        """The number in a number times the unit matrix."""
        if argument(symbol, "eye") is not None:
            return Constant(1)
        if isinstance(symbol, Operation) and symbol.operator in ("*", "/", "-"):
            *front, last = symbol.parts
            if symbol.operator == "/":
                inner = self._times_unit(front[0]) if self.rank(last) == 0 else None
                return None if inner is None else Operation("/", inner, last)
            inner = self._times_unit(last)
            if inner is not None and all(self.rank(part) == 0 for part in front):
                return Operation(symbol.operator, *front, inner)
        return None

    def _diagonal(self, call: Call) -> Symbol:
        """A number on the diagonal, as the number times the unit matrix."""
        wide = call.parts[0]
        number = argument(wide, "expand")
        inner = None if number is None else argument(number, "unsqueeze")
        if inner is None or self.rank(inner) != 0 or not isinstance(wide.parts[1], Constant):
            return call
        return Operation("*", inner, Call("eye", (Constant(wide.parts[1].value[0]),)))

    def _operation(self, operation: Operation) -> Symbol:
        if operation.operator == "@":
            return self._product(operation)
        if len(operation.parts) == 2:
            bare = self._times_ones(operation) if operation.operator == "*" else None
            if bare is not None:
                return bare
            diagonal = self._on_the_diagonal(operation)
            if diagonal is not None:
                return diagonal
            for number, one in enumerate(operation.parts):
                simpler = self._beside(operation, one, operation.parts[1 - number], number)
                if simpler is not None:
                    return simpler
        if operation.operator == "*":
            vector = _column(operation.operands[0])
            if vector is not None and self.rank(operation.operands[1]) == 1:
                return Call("outer", (vector, operation.operands[1]))
        return operation

    def _on_the_diagonal(self, operation: Operation) -> Symbol | None:
        """A diagonal with the number that it is times or divided by."""
        for number, one in enumerate(operation.parts):
            inner, other = argument(one, "diag"), operation.parts[1 - number]
            is_quotient = operation.operator == "/" and number == 0
            if inner is None or self.rank(other) != 0 or number_of(other) is not None:
                continue
            if operation.operator == "*" or is_quotient:
                pair = (inner, other) if number == 0 else (other, inner)
                return Call("diag", (Operation(operation.operator, *pair),))
        return None

    def _times_ones(self, operation: Operation) -> Symbol | None:
        """A product with the number that fills a factor of the other one's shape."""
        for one, other in (operation.parts, operation.parts[::-1]):
            number = _level(one)
            if number is not one and isinstance(number, Constant):
                inner = one if isinstance(one, Call) else one.parts[0]
                shape = inner.parts[0] if isinstance(inner, Call) else None
                if isinstance(shape, Constant) and len(shape.value) == self.rank(other):
                    return other if number.value == 1 else Operation("*", number, other)
        return None

    def _beside(
        self, operation: Operation, one: Symbol, other: Symbol, number: int
    ) -> Symbol | None:
        """An operation without what broadcasting does to a number by itself, or a power of 0."""
        scalar = argument(one, "unsqueeze")
        if scalar is not None and self.rank(scalar) == 0 and self.rank(other) not in (0, None):
            pair = (scalar, other) if number == 0 else (other, scalar)
            return self._operation(Operation(operation.operator, *pair))
        is_power = isinstance(one, Operation) and one.operator == "**"
        if operation.operator == "*" and is_power and number_of(one.parts[1]) == 0:
            rank = self.rank(one.parts[0])
            return other if rank is not None and rank == self.rank(other) else None
        return None

    def _product(self, operation: Operation) -> Symbol:
        left, right = operation.operands
        for one, other in ((left, right), (right, left)):
            if text_of(one).startswith("ones((1, 1)"):
                return other
            factor = self._times_unit(one)
            if factor is not None:
                return Operation("*", factor, other)
        if argument(left, "diag") is not None and argument(right, "diag") is not None:
            return Call("diag", (Operation("*", left.parts[0], right.parts[0]),))
        if (
            argument(right, "diag") is not None
            and isinstance(left, Operation)
            and left.operator == "@"
        ):
            before, last = left.operands
            if argument(last, "diag") is not None:
                return self._product(
                    Operation("@", before, self._product(Operation("@", last, right)))
                )
        if argument(left, "diag") is not None and self.rank(right) == 1:
            return Operation("*", left.parts[0], right)
        if argument(left, "outer") is not None and self.rank(right) == 1:
            return Operation("*", Operation("@", left.parts[1], right), left.parts[0])
        if argument(left, "outer") is not None and argument(right, "diag") is not None:
            return Call("outer", (left.parts[0], Operation("*", right.parts[0], left.parts[1])))
        if argument(right, "outer") is not None and argument(left, "diag") is not None:
            scaled = Operation("*", left.parts[0], right.parts[0])
            return Call("outer", (scaled, right.parts[1]))
        vectors = _column(left), _row(right)
        if vectors[0] is not None and vectors[1] is not None:
            return Call("outer", (vectors[0], vectors[1]))
        if self.rank(left) == 1 and self.rank(right) == 2:
            return self._product(Operation("@", self._turn(right), left))
        if (
            isinstance(right, Operation)
            and right.operator == "@"
            and self.rank(right.parts[0]) == 2
        ):
            joined = self._product(Operation("@", left, right.parts[0]))
            return self._product(Operation("@", joined, right.parts[1]))
        return self._cancelled(left, right)

    def _cancelled(self, left: Symbol, right: Symbol) -> Symbol:
        """A product whose last two factors may be inverse to each other."""
        before = None
        if isinstance(left, Operation) and left.operator == "@":
            before, left = left.operands
        inverse = text_of(self._rewritten(Call(_INVERSE, (left,))))
        if self.rank(left) == 2 and inverse == text_of(right):
            if before is not None:
                return before
            return Operation("@", left, right)
        product = Operation("@", left, right)
        return product if before is None else Operation("@", Operation("@", before, left), right)

    def _are_matrices(self, product: Operation) -> bool:
        ranks = [self.rank(part) for part in product.parts]
        return 1 not in ranks

    def _factored(self, symbol: Symbol) -> Symbol:
        """`(A + B) @ x` for `A @ x + B @ x`."""
        parts = tuple(map(self._factored, symbol.parts))
        product = rebuilt(symbol, parts) if parts else symbol
        if (
            not isinstance(product, Operation)
            or product.operator not in "+-"
            or len(product.parts) != 2
        ):
            return product
        one, other = product.parts
        front = None
        if isinstance(one, Operation) and one.operator == "+" and len(one.parts) == 2:
            front, one = one.parts
        joined = self._joined(product.operator, one, other)
        if joined is None:
            return product
        return joined if front is None else Operation("+", front, joined)

    def _joined(self, operator: str, one: Symbol, other: Symbol) -> Symbol | None:
        """A sum of two products with a common factor, or the same divisor."""
        outer = argument(one, "outer"), argument(other, "outer")
        if outer[0] is not None and outer[1] is not None and text_of(outer[0]) == text_of(outer[1]):
            total = self._factored(Operation(operator, one.parts[1], other.parts[1]))
            return Call("outer", (outer[0], total))
        diagonals = argument(one, "diag"), argument(other, "diag")
        if diagonals[0] is not None and diagonals[1] is not None:
            return Call("diag", (simplified(Operation(operator, *map(lifted, diagonals))),))
        if not isinstance(one, Operation) or not isinstance(other, Operation):
            return None
        if one.operator != other.operator or len(one.parts) < 2 or len(other.parts) < 2:
            return None
        (first, last), (front, end) = one.parts, other.parts
        is_first, is_last = text_of(first) == text_of(front), text_of(last) == text_of(end)
        if one.operator == "@" and is_last and self.rank(last) == 1:
            return Operation("@", Operation(operator, first, front), last)
        left, right = argument(last, "diag"), argument(end, "diag")
        if one.operator == "@" and is_first and left is not None and right is not None:
            inner = simplified(Operation(operator, left, right))
            return Operation("@", first, Call("diag", (inner,)))
        if one.operator == "*" and is_first and self.rank(first) == 0:
            return Operation("*", first, self._factored(Operation(operator, last, end)))
        if one.operator == "/" and is_last and isinstance(last, Constant):
            inner_sum = self._joined(operator, first, front)
            return None if inner_sum is None else Operation("/", inner_sum, last)
        return None


def _without_dimension(item: Item) -> Symbol:
    """A formula for the only element of a dimension that was put into it."""
    inner = argument(item.value, "unsqueeze")
    dim = number_of(item.value.parts[1]) if inner is not None else None
    if inner is None or dim is None or dim < 0 or not isinstance(item.index, Constant):
        return item
    picks = (*[slice(None)] * int(dim), 0)
    index = item.index.value
    return inner if (index if isinstance(index, tuple) else (index,)) == picks else item


def _is_symmetric(symbol: Symbol) -> bool:
    """Whether a formula is its own transpose by its form."""
    if isinstance(symbol, Call) and symbol.function == "outer":
        return text_of(symbol.parts[0]) == text_of(symbol.parts[1])
    return isinstance(symbol, Call) and symbol.function in ("eye", "diag")


def _most(ranks: list[int | None]) -> int | None:
    known = [rank for rank in ranks if rank is not None]
    return max(known, default=0) if len(known) == len(ranks) else None


def _positive_determinant(call: Call) -> Symbol:
    """What holds where a determinant is positive, as its logarithm asks for."""
    condition, then, otherwise = call.parts
    if not isinstance(condition, Operation) or condition.operator != "==":
        return call
    sign, negative = condition.operands
    is_sign = isinstance(sign, Item) and argument(sign.value, "torch.linalg.slogdet") is not None
    is_zero = number_of(then) == 0 or text_of(then) == "tensor(0.0)"
    return otherwise if is_sign and number_of(negative) == -1 and is_zero else call


def _either_sign(symbol: Symbol) -> Symbol:
    """`sigmoid(-x)` for what logsigmoid's rule says by the sign."""
    if not isinstance(symbol, Call) or symbol.function != "where":
        return symbol
    condition, then, otherwise = symbol.parts
    if not isinstance(condition, Operation) or condition.operator != "<":
        return symbol
    inner = condition.operands[0]
    size = Call("abs", (inner,))
    pair = [text_of(Call("sigmoid", (each,))) for each in (size, Operation("-", size))]
    if number_of(condition.operands[1]) == 0 and [text_of(then), text_of(otherwise)] == pair:
        return Call("sigmoid", (Operation("-", inner),))
    return symbol


def _level(branch: Symbol) -> Symbol:
    """A branch of one number everywhere as the number."""
    if isinstance(branch, Operation) and branch.operator == "-" and len(branch.parts) == 1:
        inner = _level(branch.parts[0])
        is_level = inner is not branch.parts[0] and isinstance(inner, Constant)
        return Constant(-inner.value) if is_level else branch
    if isinstance(branch, Operation) and branch.operator == "/":
        number = number_of(branch.parts[1])
        above = _level(branch.parts[0])
        if number and above is not branch.parts[0] and isinstance(above, Constant):
            return Constant(above.value / float(number))
    if isinstance(branch, Call) and branch.function == "ones" and len(branch.parts) == 1:
        return Constant(1.0)
    if isinstance(branch, Call) and branch.function == "full" and len(branch.parts) == 2:
        value = branch.parts[1]
        return Constant(float(value.value)) if number_of(value) is not None else branch
    return branch


def _is_nan_too(call: Call) -> bool:
    """Whether a case is `a == b`, or both no numbers."""
    same, none = call.parts
    if not isinstance(none, Call) or none.function != "logical_and" or len(same.parts) != 2:
        return False
    texts = [f"{text_of(part)} != {text_of(part)}" for part in same.parts]
    return [text_of(part) for part in none.parts] == texts


def _positive_part(symbol: Symbol) -> Symbol:
    """`where(x > 0, e, 0)` for what relu's rule says by its result."""
    if (
        not isinstance(symbol, Call)
        or symbol.function != "where"
        or number_of(symbol.parts[1]) != 0
    ):
        return symbol
    condition, then, otherwise = symbol.parts
    if not isinstance(condition, Operation) or condition.operator != "<=":
        return symbol
    inner = argument(condition.operands[0], "relu")
    if inner is None or number_of(condition.operands[1]) != 0:
        return symbol
    return Call("where", (Operation(">", inner, Constant(0)), otherwise, then))


def _filled_diagonal(call: Call) -> Symbol | None:
    """A number times the unit matrix for a matrix whose diagonal was filled with the number."""
    filled = argument(call, "reshape")
    if not isinstance(filled, Call) or filled.function != "index_fill":
        return None
    empty, dim, places, number = filled.parts
    shape, positions = call.parts[1], argument(places, "tensor")
    if argument(empty, "zeros") is None or number_of(dim) != 0:
        return None
    if not isinstance(shape, Constant) or not isinstance(positions, Constant):
        return None
    size = shape.value[0]
    is_square = list(shape.value) == [size, size]
    if not is_square or positions.value != [each * (size + 1) for each in range(size)]:
        return None
    return Operation("*", number, Call("eye", (Constant(size),)))


def argument(symbol: Symbol, name: str) -> Symbol | None:
    """The first argument of a call of that name."""
    is_call = isinstance(symbol, Call) and symbol.function == name
    return symbol.parts[0] if is_call else None


def _row(symbol: Symbol) -> Symbol | None:
    """The vector in `v.unsqueeze(0)`."""
    inner = argument(symbol, "unsqueeze")
    return inner if inner is not None and number_of(symbol.parts[1]) == 0 else None


def _column(symbol: Symbol) -> Symbol | None:
    """The vector in `v.unsqueeze(1)`, `v.unsqueeze(0).t()` or `v.reshape((n, 1))`, and that which
    solves for one.
    """
    if argument(symbol, _SOLVE) is not None:
        right = _column(symbol.parts[1])
        return None if right is None else Call(_SOLVE, (symbol.parts[0], right))
    turned = argument(symbol, "t")
    if turned is not None:
        return _row(turned)
    inner = argument(symbol, "unsqueeze")
    if inner is not None:
        return inner if number_of(symbol.parts[1]) == 1 else None
    inner = argument(symbol, "reshape")
    shape = symbol.parts[1] if inner is not None else None
    is_column = isinstance(shape, Constant) and len(shape.value) == 2 and shape.value[1] == 1
    return inner if is_column else None
