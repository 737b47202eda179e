"""Formulas as NumPy expressions: the language's functions by what NumPy has for them.

What NumPy has no word for is a small function of its own, which the emitted file defines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradcli.ops.lookup import numpy_of
from gradcli.recorded.symbols.text import ATOM, PRECEDENCE, UNARY, number_text
from gradcli.recorded.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Item,
    Keyword,
    Listed,
    Name,
    Operation,
    Symbol,
)


class Unspoken(Exception):
    """A function that NumPy has nothing for."""


_KEYWORDS = {"correction": "ddof", "dim": "axis", "keepdim": "keepdims"}
"""NumPy's names of arguments that PyTorch calls otherwise."""


class NumpyWriter:
    """Writes formulas, and the definitions of the functions that they need."""

    def __init__(self) -> None:
        self.definitions: dict[str, str] = {}

    def text(self, symbol: Symbol) -> str:
        """A formula; raises `Unspoken` where NumPy has no word for a function."""
        return self._written(symbol)[0]

    def _written(self, symbol: Symbol) -> tuple[str, int]:
        if isinstance(symbol, Name):
            if "torch." in symbol.name:
                return symbol.name.replace("torch.bool", "np.bool_").replace("torch.", "np."), ATOM
            return symbol.name, ATOM
        if isinstance(symbol, Constant):
            text = number_text(symbol.value).replace("inf", "np.inf").replace("nan", "np.nan")
            return text, UNARY if text.startswith("-") else ATOM
        if isinstance(symbol, Operation):
            return self._operation(symbol)
        if isinstance(symbol, Item):
            return f"{self._inside(symbol.value, ATOM)}[{self.index(symbol.index)}]", ATOM
        if isinstance(symbol, Choice):
            raise Unspoken("a conditional expression")
        if isinstance(symbol, Keyword):
            return f"{symbol.name}={self.text(symbol.value)}", 0
        if isinstance(symbol, Listed):
            each = f"for {symbol.variable} in {self.text(symbol.rows)}"
            return f"[{self.text(symbol.formula)} {each}]", ATOM
        if isinstance(symbol, Attribute):
            return f"{self._inside(symbol.value, ATOM)}.{symbol.name}", ATOM
        if isinstance(symbol, Call):
            return self._call(symbol.function, symbol.arguments), ATOM
        raise Unspoken(repr(symbol))

    def _operation(self, symbol: Operation) -> tuple[str, int]:
        if len(symbol.operands) == 1:
            return symbol.operator + self._inside(symbol.operands[0], UNARY), UNARY
        left, right = symbol.operands
        level = PRECEDENCE[symbol.operator]
        if symbol.operator == "**":
            return f"{self._inside(left, level + 1)} ** {self._inside(right, UNARY)}", level
        # NumPy's & and | stand between arrays of truth values, which are comparisons here.
        chained = level == PRECEDENCE["=="]
        before, after = self._inside(left, level + chained), self._inside(right, level + 1)
        return f"{before} {symbol.operator} {after}", level

    def index(self, symbol: Symbol) -> str:
        """What stands in brackets."""
        return self.text(symbol)

    def _inside(self, symbol: Symbol, level: int) -> str:
        text, own = self._written(symbol)
        return text if own >= level else f"({text})"

    def _call(self, name: str, arguments: Sequence[Symbol]) -> str:
        if name == "":
            inner = ", ".join(map(self.text, arguments))
            return f"({inner},)" if len(arguments) == 1 else f"({inner})"
        if name == "[]":
            return f"[{', '.join(map(self.text, arguments))}]"
        if name.startswith("math."):
            return f"{name}({', '.join(map(self.text, arguments))})"
        if name == "tensor":
            return self._literal(arguments)
        return self._by_entry(name, arguments)

    def _literal(self, arguments: Sequence[Symbol]) -> str:
        texts = [self.text(each) for each in arguments]
        is_float = len(texts) == 1 and "." in texts[0]
        return f"np.array({', '.join([*texts, 'dtype=np.float32'] if is_float else texts)})"

    def _by_entry(self, name: str, arguments: Sequence[Symbol]) -> str:
        """A call as the function's entry says that NumPy has it: see `Op.numpy`."""
        spelled = numpy_of(name)
        if not spelled:
            raise Unspoken(name)
        texts = [self.text(each) for each in arguments]
        head = self._inside(arguments[0], ATOM) if arguments else ""
        if spelled.startswith("def "):
            own = spelled[4 : spelled.index("(")]
            self.definitions[own] = self.definition(spelled)
            return f"{own}({', '.join(texts)})"
        if "{" in spelled:
            return spelled.format(*texts, head=head)
        called, _, names = spelled.rstrip(")").partition("(")
        written = self._arguments(arguments, names.split(", ") if names else [])
        if called.startswith("."):
            return f"{head}{called}({', '.join(written[1:])})"
        return f"np.{called}({', '.join(written)})"

    def _arguments(self, arguments: Sequence[Symbol], names: Sequence[str]) -> list[str]:
        """Arguments by NumPy's names, and the defaults that NumPy is passed: `dtype=np.float32`."""
        named = ["", *(name for name in names if "=" not in name)]
        keys = {each.name for each in arguments if isinstance(each, Keyword)}
        texts = []
        for number, each in enumerate(arguments):
            name = named[number] if number < len(named) else ""
            if isinstance(each, Keyword):
                name, each = _KEYWORDS.get(each.name, each.name), each.value
            texts.append(f"{name}={self.text(each)}" if name else self.text(each))
        return texts + [each for each in names if "=" in each and each.split("=")[0] not in keys]

    def definition(self, text: str) -> str:
        """The source of a function that a file defines."""
        return text


class JaxWriter(NumpyWriter):
    """The same for `jax.numpy`, under NumPy's name."""

    def definition(self, text: str) -> str:
        """A function whose writes to `x` make a new array: JAX's arrays cannot be written to."""
        text = re.sub(r"np\.add\.at\(x, (.*), (\w+)\)", r"x = x.at[\1].add(\2)", text)
        return re.sub(r"^( *)x(\[.*\]) = (.*)$", r"\1x = x.at\2.set(\3)", text, flags=re.MULTILINE)

    def index(self, symbol: Symbol) -> str:
        if not isinstance(symbol, Constant):
            return self.text(symbol)
        parts = symbol.value if isinstance(symbol.value, tuple) else (symbol.value,)
        texts = [self.text(Constant(part)) for part in parts]
        return ", ".join(f"np.array({text})" if text[0] == "[" else text for text in texts)
