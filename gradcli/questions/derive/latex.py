"""Formulas in LaTeX: a fragment for a document that loads amsmath and amssymb.

Lines that repeat by steps of one, as unrolled loops leave them, are written as one rule.

The shapes of formulas follow from those of their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gradcli.errors import GradcliError
from gradcli.questions.derive.algebra.matrices import Matrices, argument
from gradcli.questions.derive.program import Derivation, Line
from gradcli.recorded.symbols.tree import (
    ATOM,
    CHOICE,
    PRECEDENCE,
    UNARY,
    Attribute,
    Call,
    Choice,
    Constant,
    Fragment,
    Item,
    Keyword,
    Listed,
    Name,
    Operation,
    Symbol,
    is_elementwise,
    text_of,
)

# --- shapes ---------------------------------------------------------------------------------------


Shape = tuple[int, ...]

_SAME = frozenset({"softmax", "log_softmax", "expand_as", "flip", "roll", "cumsum", "where"})
"""Functions whose result is as large as all tensors among their arguments together."""

_REDUCTIONS = frozenset({"sum", "mean", "amax", "amin", "logsumexp", "prod", "std", "var", "norm"})


class Shapes:
    """Finds shapes of formulas, given those of the names in them."""

    def __init__(self, names: Mapping[str, Shape]) -> None:
        self._names = names

    def of(self, symbol: Symbol) -> Shape | None:
        """The shape of a formula, None where it is not known."""
        if isinstance(symbol, Name):
            return self._names.get(symbol.name)
        if isinstance(symbol, Constant):
            return ()
        if isinstance(symbol, Operation):
            shapes = [self.of(part) for part in symbol.operands]
            return _product(*shapes) if symbol.operator == "@" else _together(shapes)
        if isinstance(symbol, Call) and symbol.arguments:
            return self._call(symbol)
        return self._item(symbol) if isinstance(symbol, Item) else None

    def _item(self, symbol: Item) -> Shape | None:
        """One element of the first dimension."""
        shape = self.of(symbol.value)
        is_number = isinstance(symbol.index, Constant) and type(symbol.index.value) is int
        return shape[1:] if shape and is_number else None

    def _call(self, symbol: Call) -> Shape | None:
        name, head = symbol.function, symbol.arguments[0]
        if is_elementwise(name) or name in _SAME or name.startswith("math."):
            return _together([self.of(part) for part in symbol.arguments])
        if name in ("zeros", "ones", "full"):
            return _sizes(head)
        shape = self.of(head)
        if name == "eye" and isinstance(head, Constant):
            return (head.value, head.value)
        if shape is None:
            return None
        if name in ("reshape", "expand"):
            return _sizes(symbol.arguments[1])
        if name == "unsqueeze" and isinstance(symbol.arguments[1], Constant):
            dim = symbol.arguments[1].value % (len(shape) + 1)
            return (*shape[:dim], 1, *shape[dim:])
        if name == "outer":
            other = self.of(symbol.arguments[1])
            return None if other is None else (*shape, *other)
        if name in ("t", "torch.linalg.inv"):
            return shape[::-1]
        if name == "torch.linalg.solve":
            return self.of(symbol.arguments[1])
        if name == "diag" and len(shape) == 1:
            return shape * 2
        return self._reduced(symbol, shape) if name in _REDUCTIONS else None

    def _reduced(self, symbol: Call, shape: Shape) -> Shape | None:
        dims, keeps = reduced_dims(symbol, len(shape))
        if dims is None:
            return None
        kept = [(1 if dim in dims else size) for dim, size in enumerate(shape)]
        return tuple(size for dim, size in enumerate(kept) if keeps or dim not in dims)


def reduced_dims(symbol: Call, rank: int) -> tuple[set[int] | None, bool]:
    """The dimensions that a sum or such goes over, and whether they are kept with a size of 1."""
    arguments = [each for each in symbol.arguments[1:] if not isinstance(each, Keyword)]
    values = [each.value for each in arguments if isinstance(each, Constant)]
    if len(values) < len(arguments) or symbol.function == "norm":
        return (None, False) if len(symbol.arguments) > 1 else (set(range(rank)), False)
    reduced = values[0] if values else tuple(range(rank))
    dims = (reduced,) if type(reduced) is int else reduced
    if not isinstance(dims, (tuple, list)):
        return None, False
    # A number has the dimensions 0 and -1 to a reduction, and none of its shape goes.
    return {dim % rank for dim in dims if rank}, bool(values[1:] and values[1] is True)


def _sizes(symbol: Symbol) -> Shape | None:
    """A shape that is written out."""
    value = symbol.value if isinstance(symbol, Constant) else None
    return tuple(value) if isinstance(value, (tuple, list)) else None


def _together(shapes: list[Shape | None]) -> Shape | None:
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    try:
        return tuple(np.broadcast_shapes(*known))
    except ValueError:
        return None


def _product(one: Shape | None, other: Shape | None) -> Shape | None:
    if one is None or other is None:
        return None
    try:
        return tuple(np.matmul(np.empty(one), np.empty(other)).shape)
    except ValueError:
        return None


# --- LaTeX ----------------------------------------------------------------------------------------


# --- lines that repeat ----------------------------------------------------------------------------


_NUMBERED = re.compile(r"(\b[A-Za-z_]\w*?|(?<=\[))(\d*)\b(?!\()")
"""A name and the number at its end, or a position in brackets."""

_LEAST = 5
"""Fewer blocks than these are shown in full."""

_LONGEST = 4
"""The most lines that a block has."""


_BETWEEN = "# … and so on {} times, the numbers in names going on by the same steps, up to"


def elided(lines: Sequence[str]) -> list[str]:
    """The lines, but of blocks that repeat with other numbers in their names the first two and the
    last.
    """
    return [_BETWEEN.format(-each) if each < 0 else lines[each] for each in left_of(lines)]


def left_of(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines that are left, and minus the number of blocks between them."""
    place = 0
    while place < len(lines):
        period, count = _longest_run(lines, place)
        if count < _LEAST:
            yield place
            place += 1
            continue
        end = place + period * count
        yield from range(place, place + 2 * period)
        yield 3 - count
        yield from range(end - period, end)
        place = end


def _longest_run(lines: Sequence[str], place: int) -> tuple[int, int]:
    """The length of the block that repeats from a line on, and how often it stands there."""
    repeats = [(period, _repeats(lines, place, period)) for period in range(1, _LONGEST + 1)]
    return max(repeats, key=lambda pair: (pair[1] >= _LEAST) * pair[0] * pair[1])


def _repeats(lines: Sequence[str], place: int, period: int) -> int:
    """How many blocks from a line on differ from each other by the same steps."""
    count, steps = 1, None
    before = _parts(lines[place : place + period])
    while place + (count + 1) * period <= len(lines):
        start = place + count * period
        after = _parts(lines[start : start + period])
        if before[0] != after[0]:
            break
        differences = [b - a for a, b in zip(before[1], after[1], strict=True)]
        if (steps is not None and differences != steps) or any(
            abs(step) > period for step in differences
        ):
            break
        before, steps, count = after, differences, count + 1
    return count


def _parts(block: Sequence[str]) -> tuple[str, list[int]]:
    """A block without the numbers in its names, and these numbers."""
    text = "\n".join(line.split("  #")[0].rstrip() for line in block)
    numbers = [int(match[2] or 0) for match in _NUMBERED.finditer(text)]
    return _NUMBERED.sub(lambda match: match[1], text), numbers


# --- LaTeX ----------------------------------------------------------------------------------------


_RELATIONS = {"==": "=", "!=": r"\neq", "<=": r"\leq", ">=": r"\geq", "<": "<", ">": ">"}

_OPERATORS = {**_RELATIONS, "+": "+", "-": "-", "&": r"\wedge", "|": r"\vee", "%": r"\bmod"}

_PRODUCT = PRECEDENCE["*"]

_POWER = PRECEDENCE["**"]

_KNOWN = frozenset({"log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "min", "max", "det", "exp"})
"""Functions that LaTeX has a command for."""

_NAMED = {
    "sgn": r"\operatorname{sign}", "sigmoid": r"\sigma", "F.one_hot": r"\operatorname{onehot}",
    "atan": r"\arctan", "asin": r"\arcsin", "acos": r"\arccos", "relu": r"\operatorname{ReLU}",
    "torch.linalg.det": r"\det", "lgamma": r"\ln\Gamma", "digamma": r"\psi",
}  # fmt: skip
"""Functions that a paper has under another name."""

_GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu",
    "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
})  # fmt: skip

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}

_RESHAPES = ("reshape", "expand", "unsqueeze", "squeeze")

_ARRANGING = ("reshape", "unsqueeze", "squeeze", "permute")
"""Functions after which the rows and columns of a matrix, and so a product with it, are others."""

_INDICES = "ijklmn"

_AT = frozenset({"outer", "t", "full", "ones", "zeros", "sum", "mean", "std", "var", *_RESHAPES})
"""Functions of which an element is an element of the argument, a product of such, or a sum."""

_DECOMPOSITIONS = {
    "torch.linalg.svd": (
        ("U", r"\sigma", r"V^{\top}"), r"U \, \operatorname{diag}\left(\sigma\right) \, V^{\top}"
    ),
    "torch.linalg.eigh": (
        (r"\lambda", "Q"), r"Q \, \operatorname{diag}\left(\lambda\right) \, Q^{\top}"
    ),
}  # fmt: skip
"""The letters of the factors that a function gives, and their product."""


def latex(derived: Derivation, output: str) -> str:
    r"""The formulas, aligned at their equals signs; `\odot` stands between tensors that are
    multiplied element by element, and the gradient of `x` is the derivative of the output by it.
    """
    gradients = {value: name for name, value in derived.gradients.items()}
    writer = _Writer(derived, gradients, output)
    shown = derived.shown
    left = left_of([f"{line.name} = {text_of(line.formula)}" for line in shown])
    rows = ["  " + (writer.row(shown[each]) if each >= 0 else r"&\;\;\vdots") for each in left]
    rows += [rf"  &\text{{with }} {each}" for each in writer.decompositions]
    rows += [rf"  &\text{{{_in_text(each)}}}" for each in derived.conditions]
    notes = [f"% 0 where {each}" for each in derived.conventions]
    return "\n".join(["\\begin{aligned}", " \\\\\n".join(rows), "\\end{aligned}", *notes])


def _unspoken(what: str) -> GradcliError:
    return GradcliError(
        "E413",
        f"there is no word in LaTeX for {what}, which the gradient needs",
        help="leave `--to latex` out: the formulas in the language have it",
    )


def _head_of(symbol: Symbol) -> str:
    """What a formula is called in a message."""
    return f"{symbol.function}()" if isinstance(symbol, Call) else f"`{text_of(symbol)}`"


def _bracketed(text: str) -> str:
    """A name that an index may stand at: TeX takes one subscript."""
    return rf"\left({text}\right)" if "_" in text or "frac" in text else text


def _is_rearranged(symbol: Symbol) -> bool:
    """Whether a formula has dimensions put in, taken out or exchanged, and not only broadcast."""
    return any(
        isinstance(part, Call) and part.function in (*_RESHAPES, "transpose", "permute")
        for part in symbol.walk()
    )


def _check_arranged(*operands: Symbol) -> None:
    """Raise E413 for the operand of a matrix product, or of a sum over some of its indices, whose
    elements are arranged anew: no letter of LaTeX says how.
    """
    for part in (part for operand in operands for part in operand.walk()):
        if isinstance(part, Call) and part.function in _ARRANGING:
            raise _unspoken(f"{part.function}()")


def _in_text(words: str) -> str:
    """Words of the program inside text of LaTeX."""
    words = words.replace("\\", r"\textbackslash ").replace("`", "").replace("≠", r"$\neq$")
    words = re.sub(r"([_%#&{}])", r"\\\1", words)
    return re.sub(r"([<>])", r"$\1$", words)


class _Writer:
    def __init__(self, derived: Derivation, gradients: dict[str, str], output: str) -> None:
        self.gradients = gradients
        self.output = output
        self.is_second = derived.kind == "hessian"
        ranks = {name: array.ndim for name, array in derived.inputs.items()}
        ranks |= {line.name: line.array.ndim for line in derived.shown}
        self.rank = Matrices(ranks).rank
        shapes = {name: tuple(array.shape) for name, array in derived.inputs.items()}
        shapes |= {line.name: tuple(line.array.shape) for line in derived.shown}
        self.shapes = Shapes(shapes)
        self.decompositions: dict[str, None] = {}
        self.paths = derived.paths
        self.indices: tuple[str, ...] = ()
        self.elements: dict[str, tuple[str, int]] = {}

    def text(self, symbol: Symbol) -> str:
        return self._written(symbol)[0]

    def row(self, line: Line) -> str:
        """A line of the display."""
        if self._is_by_elements(line):
            try:
                return self._row_of_elements(line)
            except GradcliError:
                if _is_rearranged(line.formula):
                    raise
        is_case = isinstance(line.formula, Operation) and line.formula.operator in _RELATIONS
        text = self.text(line.formula)
        return f"{self.left(line)} &= " + (rf"\left[{text}\right]" if is_case else text)

    def left(self, line: Line) -> str:
        """What stands before the equals sign: with the index that a sum leaves."""
        name, formula = self.name(line.name), line.formula
        if isinstance(formula, Call) and formula.function == "sum" and len(formula.arguments) == 2:
            rank, dims = self.rank(formula.arguments[0]), formula.arguments[1]
            if rank is not None and isinstance(dims, Constant) and rank <= len(_INDICES):
                left = [each for dim, each in enumerate(_INDICES[:rank]) if dim not in dims.value]
                return rf"\left({name}\right)_{{{' '.join(left)}}}" if left else name
        return name

    def name(self, name: str) -> str:
        """A name: one letter as it is, a Greek letter by name, a longer one upright."""
        if name in self.gradients:
            of = self.name(self.gradients[name])
            if self.is_second:
                first = name.removeprefix("hessian_").removesuffix(f"_{self.gradients[name]}")
                one = of if first in (name, self.gradients[name]) else self.name(first)
                turned = "" if self.rank(Name(name)) == 0 else r"^{\top}"
                by = rf"\partial {one} \, \partial {of}{turned}"
                if one == of and not turned:
                    by = rf"\partial {of}^{{2}}"
                return rf"\frac{{\partial^{{2}} {self.name(self.output)}}}{{{by}}}"
            return rf"\frac{{\partial {self.name(self.output)}}}{{\partial {of}}}"
        if name in self.paths:
            return rf"\mathrm{{{_plain(self.paths[name])}}}"
        stem = name.rstrip("0123456789")
        index = name[len(stem) :]
        stem = stem.rstrip("_") or "x"
        if stem in _GREEK:
            shown = f"\\{stem}"
        elif len(stem) == 1:
            shown = stem
        else:
            shown = rf"\mathrm{{{_plain(stem)}}}"
        return f"{shown}_{{{index}}}" if index else shown

    def _written(self, symbol: Symbol) -> tuple[str, int]:
        if isinstance(symbol, Fragment) and symbol.text in self.elements:
            return self.elements[symbol.text]
        if self.indices and not self._is_of_elements(symbol):
            return self._element(symbol)
        if isinstance(symbol, Name):
            return self.name(symbol.name), ATOM
        if isinstance(symbol, Constant):
            text = _number(symbol)
            return text, UNARY if text.startswith("-") else ATOM
        if isinstance(symbol, Operation):
            return self._operation(symbol)
        letter = self._factor(symbol)
        if letter:
            return letter, ATOM
        if isinstance(symbol, Item):
            index = _plain(text_of(symbol.index))
            of = self._inside(symbol.value, ATOM)
            # TeX takes one subscript.
            of = rf"\left({of}\right)" if "_" in of else of
            return f"{of}_{{[{index}]}}", ATOM
        if isinstance(symbol, Call):
            return self._call(symbol)
        if isinstance(symbol, Choice):
            then, otherwise = self.text(symbol.then), self.text(symbol.otherwise)
            return self._cases(then, symbol.condition, otherwise), CHOICE
        if isinstance(symbol, Keyword):
            return rf"\mathrm{{{_plain(symbol.name)}}}={self.text(symbol.value)}", ATOM
        if isinstance(symbol, Attribute):
            is_pi = text_of(symbol) == "math.pi"
            return r"\pi" if is_pi else text_of(symbol), ATOM
        if isinstance(symbol, Listed):
            rows = rf"{self.name(symbol.variable)} = e_{{1}}, e_{{2}}, \ldots"
            return rf"\left[{self.text(symbol.formula)}\right]_{{{rows}}}", ATOM
        assert isinstance(symbol, Fragment)
        return rf"\text{{{_plain(symbol.text)}}}", ATOM

    def _factor(self, symbol: Symbol) -> str:
        """The letter of a factor of a decomposition, which a row below explains; "" for others."""
        if not isinstance(symbol, Item) or not isinstance(symbol.index, Constant):
            return ""
        if not isinstance(symbol.value, Call) or symbol.value.function not in _DECOMPOSITIONS:
            return ""
        known = _DECOMPOSITIONS[symbol.value.function]
        if not 0 <= symbol.index.value < len(known[0]):
            return ""
        letters, product = known
        of = self.text(symbol.value.parts[0])
        self.decompositions.setdefault(f"{of} = {product}")
        if len(self.decompositions) > 1:
            raise _unspoken("several decompositions")
        return letters[symbol.index.value]

    # --- rows by elements ------------------------------------------------------------------------

    def _is_by_elements(self, line: Line) -> bool:
        """Whether only indices say what a formula is: dimensions are put in, taken out or widened,
        or tensors of different ones meet.
        """
        for part in line.formula.walk():
            if isinstance(part, Call) and part.function in (*_RESHAPES, "transpose", "permute"):
                is_plain = self._is_transpose(part) or self._is_widened_number(part)
                if not is_plain:
                    return True
            if isinstance(part, (Operation, Call)) and self._is_of_elements(part):
                shapes = {self.shapes.of(each) for each in part.parts} - {(), None}
                if len(shapes) > 1:
                    return True
        return False

    def _is_transpose(self, symbol: Call) -> bool:
        """Whether a rearrangement turns matrices, one or each of a batch."""
        rank = self.rank(symbol.arguments[0])
        if symbol.function not in ("transpose", "permute"):
            return False
        dims = [each.value for each in symbol.arguments[1:] if isinstance(each, Constant)]
        if rank is None or symbol.function == "permute":
            return rank == 2
        return rank > 1 and {dim % rank for dim in dims} == {rank - 2, rank - 1}

    def _is_widened_number(self, symbol: Call) -> bool:
        """Whether a number is made a tensor of equal elements, which goes without saying."""
        return symbol.function == "expand" and self.shapes.of(symbol.arguments[0]) == ()

    def _row_of_elements(self, line: Line) -> str:
        """A line as that of one element of its value, by indices."""
        shape = tuple(line.array.shape)
        letters = iter(_INDICES)
        indices = tuple(next(letters) if size != 1 else "1" for size in shape[: len(_INDICES)])
        if len(shape) + 1 >= len(_INDICES):
            raise _unspoken("tensors of so many dimensions")
        text, _ = self._at(line.formula, indices, letters)
        name = self.name(line.name)
        left = rf"\left({name}\right)_{{{' '.join(indices)}}}" if indices else name
        return f"{left} &= {text}"

    def _at(self, symbol: Symbol, indices: tuple[str, ...], free: Iterator[str]) -> tuple[str, int]:
        """The element of a formula at indices, of which those of dimensions of one element are 1.

        Args:
            free: the letters that no index has, for sums.
        """
        shape = self.shapes.of(symbol)
        if shape is None:
            raise _unspoken(_head_of(symbol))
        # Broadcasting: the last indices count, and 1 where there is one element.
        own = indices[len(indices) - len(shape) :]
        own = tuple("1" if size == 1 else each for each, size in zip(own, shape, strict=True))
        if not shape and not isinstance(symbol, (Operation, Call)):
            return self._written(symbol)
        if isinstance(symbol, Name):
            return rf"{_bracketed(self.name(symbol.name))}_{{{' '.join(own)}}}", ATOM
        if isinstance(symbol, Operation) and symbol.operator == "@":
            return self._product_at(symbol, own, free)
        if isinstance(symbol, Call) and symbol.function in _AT:
            return self._call_at(symbol, own, free)
        if isinstance(symbol, (Operation, Call)) and self._is_of_elements(symbol):
            named: dict[str, tuple[str, int]] = {}
            parts: list[Symbol] = []
            for number, part in enumerate(symbol.parts):
                if isinstance(part, Constant):
                    parts.append(part)
                    continue
                text, level = self._at(part, own, free)
                parts.append(Fragment(f"{number}"))
                named[f"{number}"] = text, level
            factors = list(named.values())
            is_product = isinstance(symbol, Operation) and symbol.operator == "*"
            if is_product and len(factors) == 2 and ("1", ATOM) in factors:
                return factors[factors[0] == ("1", ATOM)]  # ones that widen the other factor
            before, self.elements = self.elements, named
            written = self._written(symbol.of_parts(tuple(parts)))
            self.elements = before
            return written
        if any(isinstance(p, Call) and p.function in _ARRANGING for p in symbol.walk()):
            raise _unspoken(_head_of(symbol))
        before, self.elements = self.elements, {}
        text = self.text(symbol)
        self.elements = before
        return rf"\left({text}\right)_{{{' '.join(own)}}}", ATOM

    def _call_at(
        self, symbol: Call, indices: tuple[str, ...], free: Iterator[str]
    ) -> tuple[str, int]:
        name, head = symbol.function, symbol.arguments[0]
        inner = self.shapes.of(head) or ()
        if name == "outer":
            rank = len(inner)
            one, _ = self._at(head, indices[:rank], free)
            other, _ = self._at(symbol.arguments[1], indices[rank:], free)
            return rf"{one} \, {other}", _PRODUCT
        if name == "expand":
            return self._at(head, indices, free)
        if name in ("reshape", "unsqueeze", "squeeze"):
            # Only dimensions of one element may come and go.
            kept = [each for each in indices if each != "1"]
            if len(kept) != sum(size != 1 for size in inner):
                raise _unspoken("reshape()")
            letters = iter(kept)
            return self._at(head, tuple("1" if s == 1 else next(letters) for s in inner), free)
        if name == "t":
            return self._at(head, indices[::-1], free)
        if name == "full":
            return self._written(symbol.arguments[1])
        if name in ("ones", "zeros"):
            return ("1" if name == "ones" else "0"), ATOM
        return self._sum_at(symbol, inner, indices, free)

    def _sum_at(
        self, symbol: Call, inner: tuple[int, ...], indices: tuple[str, ...], free: Iterator[str]
    ) -> tuple[str, int]:
        """A sum or mean over letters of its own."""
        dims, keeps = reduced_dims(symbol, len(inner))
        if dims is None:
            raise _unspoken(f"{symbol.function}()")
        rest = iter(indices)
        letters, over = [], []
        for dim, size in enumerate(inner):
            if dim in dims:
                letter = next(free, "") if size != 1 else "1"
                over += [letter] if size != 1 else []
                if keeps:
                    next(rest, "")
            else:
                letter = next(rest)
            letters.append(letter)
        if "" in letters:
            raise _unspoken("tensors of so many dimensions")
        text, level = self._at(symbol.arguments[0], tuple(letters), free)
        text = text if level >= _PRODUCT else rf"\left({text}\right)"
        name = symbol.function
        sign = r"\sum" if name == "sum" else rf"\operatorname*{{{name}}}"
        return rf"{sign}_{{{','.join(over)}}} {text}" if over else text, _PRODUCT

    def _product_at(
        self, symbol: Operation, indices: tuple[str, ...], free: Iterator[str]
    ) -> tuple[str, int]:
        """An element of a product of matrices or vectors."""
        one, other = (self.shapes.of(part) or () for part in symbol.operands)
        if len(one) > 2 or len(other) > 2 or not one or not other:
            raise _unspoken("a product of batches")
        letter = "1" if one[-1] == 1 else next(free, "")
        if not letter:
            raise _unspoken("tensors of so many dimensions")
        left, rest = indices[: len(one) - 1], indices[len(one) - 1 :]
        before, low = self._at(symbol.operands[0], (*left, letter), free)
        after, high = self._at(symbol.operands[1], (letter, *rest), free)
        texts = [
            text if level >= _PRODUCT else rf"\left({text}\right)"
            for text, level in ((before, low), (after, high))
        ]
        total = r" \, ".join(texts)
        return total if letter == "1" else rf"\sum_{{{letter}}} {total}", _PRODUCT

    # --- elements --------------------------------------------------------------------------------

    def _is_of_elements(self, symbol: Symbol) -> bool:
        """Whether the elements of a formula are the formula of its parts' elements."""
        if isinstance(symbol, Operation):
            return symbol.operator != "@"
        if isinstance(symbol, Call):
            return is_elementwise(symbol.function)
        return isinstance(symbol, Constant)

    def _element(self, symbol: Symbol) -> tuple[str, int]:
        """An element of a formula, by the indices that stand."""
        indices, self.indices = self.indices, ()
        rank = self.rank(symbol)
        text, level = self._written(symbol)
        self.indices = indices
        if rank == 0:
            return text, level
        inner = text if level >= ATOM and not text.endswith("}") else rf"\left({text}\right)"
        return f"{inner}_{{{' '.join(indices[-rank:] if rank else indices)}}}", ATOM

    def _sum(self, symbol: Call) -> tuple[str, int]:
        """A sum or mean over named indices; without them where the dimensions are not known."""
        name = symbol.function
        sign = r"\sum" if name == "sum" else rf"\operatorname*{{{name}}}"
        value = symbol.arguments[0]
        if name == "logsumexp":
            sign, value = r"\log \sum", Call("exp", (value,))
        rank = self.rank(value)
        argument = symbol.arguments[1] if len(symbol.arguments) > 1 else None
        dims = argument.value if isinstance(argument, Constant) else None
        dims = (dims,) if isinstance(dims, int) else dims
        if rank is None or self.indices or not 0 < rank <= len(_INDICES):
            below = "" if dims is None else f"_{{{','.join(map(str, dims))}}}"
            return rf"{sign}{below} {self._inside(value, _PRODUCT)}", _PRODUCT
        letters = tuple(_INDICES[:rank])
        over = letters if dims is None else tuple(letters[dim] for dim in dims)
        self.indices = letters
        inside = self._inside(value, _PRODUCT)
        self.indices = ()
        return rf"{sign}_{{{','.join(over)}}} {inside}", _PRODUCT

    # --- operators -------------------------------------------------------------------------------

    def _operation(self, symbol: Operation) -> tuple[str, int]:
        if len(symbol.operands) == 1:
            sign = {"-": "-", "~": r"\neg "}[symbol.operator]
            return sign + self._inside(symbol.operands[0], _PRODUCT), _PRODUCT
        left, right = symbol.operands
        level = PRECEDENCE[symbol.operator]
        if symbol.operator in ("/", "//"):
            sign = "-" if isinstance(left, Operation) and len(left.operands) == 1 else ""
            above = left.parts[0] if sign == "-" else left
            quotient = rf"{sign}\frac{{{self.text(above)}}}{{{self.text(right)}}}"
            if symbol.operator == "//":
                return rf"\left\lfloor {quotient} \right\rfloor", ATOM
            return quotient, _PRODUCT if sign else ATOM
        if symbol.operator == "**":
            return self._power(left, right), _POWER
        if symbol.operator == "@":
            _check_arranged(left, right)
            return self._product(left, right), level
        if symbol.operator == "*":
            times = self._times(left, right)
            after = self._inside(right, level if times == r"\," else level + 1)
            return f"{self._inside(left, level)} {times} {after}", level
        before, after = self._inside(left, level), self._inside(right, level + 1)
        return f"{before} {_OPERATORS[symbol.operator]} {after}", level

    def _times(self, left: Symbol, right: Symbol) -> str:
        """What stands between factors: nothing to see where one is a number."""
        if self.indices or self.elements:
            return r"\,"
        if self.rank(left) != 0 and self.rank(right) != 0:
            return r"\odot"
        last = right.parts[0] if isinstance(right, Operation) else right
        return r"\cdot" if isinstance(last, Constant) else r"\,"

    def _product(self, left: Symbol, right: Symbol) -> str:
        """A product of matrices; a vector in front is a row."""
        level = PRECEDENCE["@"]
        chained = argument(right, "outer") is not None
        chained = chained or (isinstance(right, Operation) and right.operator == "@")
        before, after = self._inside(left, level), self._inside(right, level + (not chained))
        if self.rank(left) == 1:
            before = rf"{self._inside(left, ATOM)}^{{\top}}"
        return f"{before} \\, {after}"

    def _power(self, base: Symbol, exponent: Symbol) -> str:
        raised = self.text(exponent)
        if isinstance(base, Call) and len(base.arguments) == 1 and not self.indices:
            name = base.function.removeprefix("math.")
            if name in _KNOWN - {"exp"}:
                return rf"\{name}^{{{raised}}}\left({self.text(base.arguments[0])}\right)"
        return f"{self._inside(base, ATOM)}^{{{self._by_element(base)}{raised}}}"

    def _by_element(self, operand: Symbol) -> str:
        """The sign in front of an exponent that says that it is one of each element, where a matrix
        might be multiplied by itself.
        """
        rank = None if self.indices or self.elements else self.rank(operand)
        return "" if rank is None or rank < 2 else r"\odot "

    # --- functions -------------------------------------------------------------------------------

    def _call(self, symbol: Call) -> tuple[str, int]:
        name, arguments = symbol.function.removeprefix("math."), symbol.arguments
        if name == "t" or (name == "transpose" and len(arguments) == 3):
            return self._transposed(arguments[0]), ATOM
        if name in _RESHAPES:
            return self._written(arguments[0])  # how elements are arranged goes without saying
        if name in ("sum", "mean", "std", "var", "logsumexp"):
            return self._sum(symbol)
        if name == "floor":
            return rf"\left\lfloor {self.text(arguments[0])} \right\rfloor", ATOM
        if name == "full":
            return self._written(arguments[1])
        if name == "arange" and isinstance(arguments[0], Constant):
            return rf"\left(0, \dots, {arguments[0].value - 1:g}\right)", ATOM
        if name == "_standard_gamma_grad":
            by, at = map(self.text, arguments)
            law = rf"\left({at}; {by}\right)"
            return rf"\left(-\frac{{\partial F{law} / \partial {by}}}{{p{law}}}\right)", ATOM
        if name == "tensor" and isinstance(arguments[0], Constant):
            return _number(arguments[0]), ATOM
        if name == "sqrt":
            return rf"\sqrt{{{self.text(arguments[0])}}}", ATOM
        if name == "abs":
            return rf"\left|{self.text(arguments[0])}\right|", ATOM
        if name == "exp":
            sign = self._by_element(arguments[0])
            raised = self._inside(arguments[0], ATOM) if sign else self.text(arguments[0])
            return f"e^{{{sign}{raised}}}", _POWER
        if name == "torch.linalg.inv":
            return rf"{self._inside(arguments[0], ATOM)}^{{-1}}", ATOM
        if name == "torch.linalg.solve" and len(arguments) == 2:
            inverse = Call("torch.linalg.inv", arguments[:1])
            return f"{self.text(inverse)} \\, {self._inside(arguments[1], ATOM)}", _PRODUCT
        if name == "outer":
            one, other = (self._inside(each, ATOM) for each in arguments)
            return rf"{one} \, {other}^{{\top}}", _PRODUCT
        if name == "norm":
            order = rf"_{{{self.text(arguments[1])}}}" if len(arguments) > 1 else ""
            return rf"\left\lVert {self.text(arguments[0])} \right\rVert{order}", ATOM
        if name in ("eye", "ones", "zeros"):
            return {"eye": "I", "ones": r"\mathbf{1}", "zeros": r"\mathbf{0}"}[name], ATOM
        if name in ("softmax", "log_softmax", "F.one_hot"):
            arguments = arguments[:1]
        if name == "where":
            return self._choice(*arguments)
        return self._named(name, arguments)

    def _named(self, name: str, arguments: tuple[Symbol, ...]) -> tuple[str, int]:
        texts = ", ".join(map(self.text, arguments))
        if name in ("", "[]"):
            return rf"\left({texts}\right)", ATOM
        called = _plain(name.rpartition(".")[2])
        plain = f"\\{name}" if name in _KNOWN else rf"\operatorname{{{called}}}"
        return rf"{_NAMED.get(name, plain)}\left({texts}\right)", ATOM

    def _transposed(self, symbol: Symbol) -> str:
        inner = argument(symbol, "torch.linalg.inv")
        if inner is not None:
            return rf"{self._inside(inner, ATOM)}^{{-\top}}"
        return rf"{self._inside(symbol, ATOM)}^{{\top}}"

    def _choice(self, condition: Symbol, then: Symbol, otherwise: Symbol) -> tuple[str, int]:
        """Cases, or what counts times the indicator of where it does."""
        if isinstance(condition, Operation) and condition.operator in _OPPOSITE:
            opposite = Operation(_OPPOSITE[condition.operator], *condition.operands)
            for value, holds, other in ((then, condition, otherwise), (otherwise, opposite, then)):
                if isinstance(other, Constant) and other.value == 0:
                    indicator = rf"\mathbf{{1}}_{{{self.text(holds)}}}"
                    is_one = isinstance(value, Constant) and value.value == 1
                    if is_one or argument(value, "ones") is not None:
                        return indicator, ATOM
                    return rf"{self._inside(value, _PRODUCT)} \odot {indicator}", _PRODUCT
        return self._cases(self.text(then), condition, self.text(otherwise)), ATOM

    def _cases(self, then: str, condition: Symbol, otherwise: str) -> str:
        when = self.text(condition)
        return rf"\begin{{cases}} {then} & {when} \\ {otherwise} & \text{{otherwise}} \end{{cases}}"

    def _inside(self, symbol: Symbol, level: int) -> str:
        text, own = self._written(symbol)
        return text if own >= level else rf"\left({text}\right)"


def _number(symbol: Constant) -> str:
    value = symbol.value
    if isinstance(value, float):
        mantissa, _, exponent = f"{value:.6g}".partition("e")
        if mantissa in ("inf", "-inf"):
            return mantissa.replace("inf", r"\infty")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    if isinstance(value, list):
        return _matrix(value)
    return _plain(repr(value))


def _matrix(values: list[object]) -> str:
    """Rows of numbers in brackets."""
    if not any(isinstance(each, list) for each in values):
        return rf"\left({', '.join(map(_entry, values))}\right)"
    rows = [each if isinstance(each, list) else [each] for each in values]
    if any(isinstance(each, list) for row in rows for each in row):
        return rf"\text{{{_plain(repr(values))}}}"
    lines = r" \\ ".join(" & ".join(map(_entry, row)) for row in rows)
    return rf"\begin{{bmatrix}} {lines} \end{{bmatrix}}"


def _entry(number: object) -> str:
    return _number(Constant(float(f"{number:g}")))


def _plain(text: str) -> str:
    """A text with what LaTeX reads as commands escaped."""
    for character in "_%&#$":
        text = text.replace(character, f"\\{character}")
    return text
