"""Formulas of matrices and vectors as a textbook has them: `A.t() @ x` for rows and columns that
were made for a product, `inv(X)` for a solution with the unit matrix.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.explain.derive.algebra import number_of, simplified
from gradcli.explain.symbols.notation import is_elementwise
from gradcli.explain.symbols.substitution import rebuilt
from gradcli.explain.symbols.text import text_of
from gradcli.explain.symbols.tree import Call, Constant, Item, Name, Operation, Symbol

_INVERSE, _SOLVE = "torch.linalg.inv", "torch.linalg.solve"

_ROUNDS = 4
"""How often the rules are gone through: one may make room for another."""


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
        made = rebuilt(symbol, parts) if parts else symbol
        if isinstance(made, Call):
            return self._call(made)
        return self._operation(made) if isinstance(made, Operation) else made

    # --- how many dimensions ---------------------------------------------------------------------

    def rank(self, symbol: Symbol) -> int | None:
        """How many dimensions a formula has, None where that is not told."""
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
        if name in ("outer", "eye", _INVERSE, "F.one_hot"):
            return 2
        if name in ("torch.linalg.det", "norm") or (name == "sum" and len(inner) == 1):
            return 0
        if name in ("softmax", "log_softmax", "t", "transpose", "expand_as"):
            return inner[0]
        if name in ("expand", "reshape", "ones", "zeros", "full"):
            shape = symbol.parts[name in ("expand", "reshape")]
            return len(shape.value) if isinstance(shape, Constant) else None
        return _most(inner) if is_elementwise(name) else None

    # --- rules -----------------------------------------------------------------------------------

    def _call(self, made: Call) -> Symbol:
        name = made.function
        if name == "t":
            return self._transposed(made)
        if name == _INVERSE:
            return self._inverse(made)
        if name == _SOLVE and len(made.parts) == 2:
            factor = self._times_unit(made.parts[1])
            if factor is not None:
                return Operation("*", factor, self._inverse(Call(_INVERSE, made.parts[:1])))
        if name == "diag_embed":
            return self._diagonal(made)
        if name == "norm" and len(made.parts) == 2 and number_of(made.parts[1]) == 2:
            return Call("norm", made.parts[:1], True)
        if name == "where":
            return _positive_part(_positive_determinant(made))
        if name == "sum" and len(made.parts) == 3 and self.rank(made.parts[0]) == 1:
            return Call("sum", made.parts[:1], True)  # broadcast as a vector of one element is
        shaped = argument(made, "reshape")
        if isinstance(shaped, Operation) and shaped.operator == "@":
            first = _row(shaped.operands[0])
            if first is not None:
                return Operation("@", first, shaped.operands[1])
        shape = made.parts[1] if shaped is not None else None
        vector = None if shaped is None else _column(shaped)
        is_line = isinstance(shape, Constant) and len(shape.value) == 1
        return vector if vector is not None and is_line else made

    def _transposed(self, made: Call) -> Symbol:
        """A transpose, brought to the factors of a product."""
        inner = made.parts[0]
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
        if self.rank(symbol) in (0, 1) or argument(symbol, "eye") is not None:
            return symbol
        if isinstance(symbol, Call) and symbol.function == "outer":
            return Call("outer", symbol.parts[::-1])
        if isinstance(symbol, Operation) and symbol.operator == "@" and self._are_matrices(symbol):
            return self._transposed(Call("t", (symbol,), True))
        return Call("t", (symbol,), True)

    def _inverse(self, made: Call) -> Symbol:
        inner = made.parts[0]
        twice, turned = argument(inner, _INVERSE), argument(inner, "t")
        if twice is not None:
            return twice
        if turned is not None:
            return self._turn(self._inverse(Call(_INVERSE, (turned,))))
        return made

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

    def _diagonal(self, made: Call) -> Symbol:
        """A number on the diagonal, as the number times the unit matrix."""
        wide = made.parts[0]
        number = argument(wide, "expand")
        inner = None if number is None else argument(number, "unsqueeze")
        if inner is None or self.rank(inner) != 0 or not isinstance(wide.parts[1], Constant):
            return made
        return Operation("*", inner, Call("eye", (Constant(wide.parts[1].value[0]),)))

    def _operation(self, made: Operation) -> Symbol:
        if made.operator == "@":
            return self._product(made)
        if made.operator == "*":
            vector = _column(made.operands[0])
            if vector is not None and self.rank(made.operands[1]) == 1:
                return Call("outer", (vector, made.operands[1]))
        return made

    def _product(self, made: Operation) -> Symbol:
        left, right = made.operands
        for one, other in ((left, right), (right, left)):
            if text_of(one).startswith("ones((1, 1)"):
                return other
            factor = self._times_unit(one)
            if factor is not None:
                return Operation("*", factor, other)
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
        made = rebuilt(symbol, parts) if parts else symbol
        if not isinstance(made, Operation) or made.operator not in "+-" or len(made.parts) != 2:
            return made
        one, other = made.parts
        front = None
        if isinstance(one, Operation) and one.operator == "+" and len(one.parts) == 2:
            front, one = one.parts
        joined = self._joined(made.operator, one, other)
        if joined is None:
            return made
        return joined if front is None else Operation("+", front, joined)

    def _joined(self, operator: str, one: Symbol, other: Symbol) -> Symbol | None:
        """A sum of two products with the same vector, and the same divisor."""
        pair = [each for each in (one, other) if isinstance(each, Operation)]
        if len(pair) < 2 or pair[0].operator != pair[1].operator or len(pair[0].parts) < 2:
            return None
        last = pair[0].parts[1]
        if text_of(last) != text_of(pair[1].parts[1]):
            return None
        if pair[0].operator == "@" and self.rank(last) == 1:
            return Operation("@", Operation(operator, one.parts[0], other.parts[0]), last)
        if pair[0].operator == "/" and isinstance(last, Constant):
            inner = self._joined(operator, one.parts[0], other.parts[0])
            return None if inner is None else Operation("/", inner, last)
        return None


def _most(ranks: list[int | None]) -> int | None:
    known = [rank for rank in ranks if rank is not None]
    return max(known, default=0) if len(known) == len(ranks) else None


def _positive_determinant(made: Call) -> Symbol:
    """What holds where a determinant is positive, as its logarithm asks for."""
    condition, then, otherwise = made.parts
    if not isinstance(condition, Operation) or condition.operator != "==":
        return made
    sign, negative = condition.operands
    is_sign = isinstance(sign, Item) and argument(sign.value, "torch.linalg.slogdet") is not None
    is_zero = number_of(then) == 0 or text_of(then) == "tensor(0.0)"
    return otherwise if is_sign and number_of(negative) == -1 and is_zero else made


def _positive_part(made: Symbol) -> Symbol:
    """`where(x > 0, e, 0)` for what relu's rule says by its result."""
    if not isinstance(made, Call) or made.function != "where" or number_of(made.parts[1]) != 0:
        return made
    condition, then, otherwise = made.parts
    if not isinstance(condition, Operation) or condition.operator != "<=":
        return made
    inner = argument(condition.operands[0], "relu")
    if inner is None or number_of(condition.operands[1]) != 0:
        return made
    return Call("where", (Operation(">", inner, Constant(0)), otherwise, then))


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
