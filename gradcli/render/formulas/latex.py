"""Formulas in LaTeX: a fragment for a document that loads amsmath."""

from __future__ import annotations

from gradcli.explain.derive.program import Derivation
from gradcli.explain.symbols.text import ATOM, CHOICE, PRECEDENCE, UNARY, text_of
from gradcli.explain.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Fragment,
    Item,
    Keyword,
    Name,
    Operation,
    Symbol,
)

_RELATIONS = {"==": "=", "!=": r"\neq", "<=": r"\leq", ">=": r"\geq", "<": "<", ">": ">"}

_OPERATORS = {
    **_RELATIONS, "+": "+", "-": "-", "&": r"\wedge", "|": r"\vee", "^": r"\oplus", "<<": r"\ll",
    ">>": r"\gg", "%": r"\bmod",
}  # fmt: skip

_KNOWN = frozenset({
    "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "min", "max", "det",
})  # fmt: skip
"""Functions that LaTeX has a command for."""

_GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu",
    "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
})  # fmt: skip


def latex(found: Derivation, output: str) -> str:
    """The formulas, aligned at their equals signs; `∘` stands between tensors that are multiplied
    element by element, and the gradient of `x` is the derivative of the output with respect to it.
    """
    gradients = {value: name for name, value in found.gradients.items()}
    writer = _Writer(found, gradients, output)
    rows = [f"  {writer.name(line.name)} &= {writer.text(line.formula)}" for line in found.lines]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


class _Writer:
    def __init__(self, found: Derivation, gradients: dict[str, str], output: str) -> None:
        self.gradients = gradients
        self.output = output
        self.dimensions = {name: array.ndim for name, array in found.inputs.items()}
        self.dimensions |= {line.name: line.array.ndim for line in found.lines}

    def text(self, symbol: Symbol) -> str:
        return self._written(symbol)[0]

    def name(self, name: str) -> str:
        """A name: one letter as it is, a Greek letter by name, a longer one upright."""
        if name in self.gradients:
            of = self.name(self.gradients[name])
            return rf"\frac{{\partial {self.name(self.output)}}}{{\partial {of}}}"
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
        if isinstance(symbol, Name):
            return self.name(symbol.name), ATOM
        if isinstance(symbol, Constant):
            text = _number(symbol)
            return text, UNARY if text.startswith("-") else ATOM
        if isinstance(symbol, Operation):
            return self._operation(symbol)
        if isinstance(symbol, Item):
            index = _plain(text_of(symbol.index))
            return f"{self._inside(symbol.value, ATOM)}_{{[{index}]}}", ATOM
        if isinstance(symbol, Call):
            return self._call(symbol)
        if isinstance(symbol, Choice):
            then, otherwise = self.text(symbol.then), self.text(symbol.otherwise)
            return self._cases(then, symbol.condition, otherwise), CHOICE
        if isinstance(symbol, Keyword):
            return rf"\mathrm{{{_plain(symbol.name)}}}={self.text(symbol.value)}", ATOM
        if isinstance(symbol, Attribute):
            return rf"\mathrm{{{_plain(symbol.name)}}}({self.text(symbol.value)})", ATOM
        assert isinstance(symbol, Fragment)
        return rf"\text{{{_plain(symbol.text)}}}", ATOM

    def _operation(self, symbol: Operation) -> tuple[str, int]:
        if len(symbol.operands) == 1:
            sign = {"-": "-", "~": r"\neg "}[symbol.operator]
            return sign + self._inside(symbol.operands[0], UNARY), UNARY
        left, right = symbol.operands
        level = PRECEDENCE[symbol.operator]
        if symbol.operator == "/":
            return rf"\frac{{{self.text(left)}}}{{{self.text(right)}}}", ATOM
        if symbol.operator == "//":
            return (
                rf"\left\lfloor\frac{{{self.text(left)}}}{{{self.text(right)}}}\right\rfloor",
                ATOM,
            )
        if symbol.operator == "**":
            return f"{self._inside(left, ATOM)}^{{{self.text(right)}}}", level
        before, after = self._inside(left, level), self._inside(right, level + 1)
        if symbol.operator == "@":
            return f"{before} \\, {after}", level
        if symbol.operator == "*":
            elementwise = self._is_tensor(left) and self._is_tensor(right)
            sign = r"\circ" if elementwise else r"\cdot"
            return f"{before} {sign} {after}", level
        return f"{before} {_OPERATORS[symbol.operator]} {after}", level

    def _is_tensor(self, symbol: Symbol) -> bool:
        """Whether an expression may have more than one element."""
        return any(
            self.dimensions.get(part.name, 0) > 0
            for part in symbol.walk()
            if isinstance(part, Name)
        )

    def _call(self, symbol: Call) -> tuple[str, int]:
        name, arguments = symbol.function, symbol.arguments
        if name == "t" or (name == "transpose" and len(arguments) == 3):
            return f"{self._inside(arguments[0], ATOM)}^{{\\top}}", ATOM
        if name in ("reshape", "expand", "unsqueeze"):
            return self._written(arguments[0])  # how elements are arranged goes without saying
        if name == "sum":
            below = "" if len(arguments) == 1 else f"_{{{self._dims(arguments[1])}}}"
            return rf"\sum{below} {self._inside(arguments[0], PRECEDENCE['*'])}", PRECEDENCE["*"]
        if name == "sqrt":
            return rf"\sqrt{{{self.text(arguments[0])}}}", ATOM
        if name == "abs":
            return rf"\left|{self.text(arguments[0])}\right|", ATOM
        if name == "where":
            then, otherwise = self.text(arguments[1]), self.text(arguments[2])
            return self._cases(then, arguments[0], otherwise), CHOICE
        texts = ", ".join(map(self.text, arguments))
        if name in ("", "[]"):
            return rf"\left({texts}\right)", ATOM
        plain = name.removeprefix("math.")
        shown = f"\\{plain}" if plain in _KNOWN else rf"\operatorname{{{_plain(plain)}}}"
        return rf"{shown}\left({texts}\right)", ATOM

    @staticmethod
    def _dims(symbol: Symbol) -> str:
        dims = symbol.value if isinstance(symbol, Constant) else ()
        return ",".join(map(str, dims)) if isinstance(dims, tuple) else str(dims)

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
    return _plain(repr(value))


def _plain(text: str) -> str:
    """A text with what LaTeX reads as commands escaped."""
    for character in "_%&#$":
        text = text.replace(character, f"\\{character}")
    return text
