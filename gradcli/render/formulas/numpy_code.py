"""Formulas as NumPy expressions: the language's functions by what NumPy has for them.

What NumPy has no word for is a small function of its own, which the emitted file defines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from gradcli.explain.symbols.text import ATOM, PRECEDENCE, UNARY, number_text
from gradcli.explain.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Item,
    Keyword,
    Name,
    Operation,
    Symbol,
)
from gradcli.ops.lookup import numpy_of


class Unspoken(Exception):
    """A function that NumPy has nothing for."""


_DEFINITIONS = {
    "scattered": """\
def scattered(x, axis, index, values, add=False):
    x = np.array(x)
    places = list(np.indices(index.shape))
    places[axis] = index
    values = np.broadcast_to(values, index.shape) if np.ndim(values) == 0 else values
    values = values[tuple(slice(size) for size in index.shape)] if np.ndim(values) else values
    if add:
        np.add.at(x, tuple(places), values)
    else:
        x[tuple(places)] = values
    return x
""",
    "gathered": """\
def gathered(x, axis, index):
    places = list(np.indices(index.shape))
    places[axis] = index
    return x[tuple(places)]
""",
    "replaced": """\
def replaced(x, place, values, add=False):
    x = np.array(x)
    if add:
        np.add.at(x, place, values)
    else:
        x[place] = values
    return x
""",
    "diagonal_replaced": """\
def diagonal_replaced(x, values, offset=0, axis1=0, axis2=1):
    x = np.array(x)
    rows = np.moveaxis(x, (axis1, axis2), (-2, -1))
    i = np.arange(values.shape[-1])
    rows[..., i + max(-offset, 0), i + max(offset, 0)] = values
    return x
""",
}
"""What several calls are written with, and an emitted file defines where it needs them."""


_JAX_DEFINITIONS = {
    "scattered": """\
def scattered(x, axis, index, values, add=False):
    places = list(np.indices(index.shape))
    places[axis] = index
    values = np.broadcast_to(values, index.shape) if np.ndim(values) == 0 else values
    values = values[tuple(slice(size) for size in index.shape)] if np.ndim(values) else values
    return x.at[tuple(places)].add(values) if add else x.at[tuple(places)].set(values)
""",
    "gathered": _DEFINITIONS["gathered"],
    "replaced": """\
def replaced(x, place, values, add=False):
    return x.at[place].add(values) if add else x.at[place].set(values)
""",
    "diagonal_replaced": """\
def diagonal_replaced(x, values, offset=0, axis1=0, axis2=1):
    rows = np.moveaxis(x, (axis1, axis2), (-2, -1))
    i = np.arange(values.shape[-1])
    rows = rows.at[..., i + max(-offset, 0), i + max(offset, 0)].set(values)
    return np.moveaxis(rows, (-2, -1), (axis1, axis2))
""",
}
"""The same for JAX."""


class NumpyWriter:
    """Writes formulas, and the definitions of the functions that they need."""

    own_definitions: ClassVar[Mapping[str, str]] = _DEFINITIONS
    stable: ClassVar[str] = 'kind="stable"'

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
            if isinstance(symbol.value, Call) and symbol.value.function == "sort":
                return self._sorted(symbol.value, symbol.index), ATOM
            return f"{self._inside(symbol.value, ATOM)}[{self.index(symbol.index)}]", ATOM
        if isinstance(symbol, Choice):
            raise Unspoken("a conditional expression")
        if isinstance(symbol, Keyword):
            return f"{symbol.name}={self.text(symbol.value)}", 0
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

    def _sorted(self, call: Call, output: Symbol) -> str:
        """The elements in order, or their places."""
        value, dim, descending = (self.text(each) for each in call.arguments)
        if descending != "False":
            raise Unspoken("a descending sort")
        name = "argsort" if self.text(output) == "1" else "sort"
        return f"np.{name}({value}, axis={dim}, {self.stable})"

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
        texts = [self.text(each) for each in arguments]
        head = self._inside(arguments[0], ATOM) if arguments else ""
        form = _FORMS.get(name.removeprefix("torch."))
        if form is not None:
            return form(self, head, texts)
        return self._by_entry(name, head, texts)

    def _by_entry(self, name: str, head: str, texts: list[str]) -> str:
        """A call as the function's entry says that NumPy has it: see `Op.numpy`."""
        spelled = numpy_of(name)
        if not spelled:
            raise Unspoken(name)
        if spelled.startswith("def "):
            own = spelled[4 : spelled.index("(")]
            self.definitions[own] = spelled
            return f"{own}({', '.join(texts)})"
        if "{" in spelled:
            return spelled.format(*texts, head=head)
        if spelled.startswith("."):
            method, _, names = spelled.rstrip(")").partition("(")
            keywords = names.split(", ") if names else []
            given = [f"{key}={text}" for key, text in zip(keywords, texts[1:], strict=False)]
            return f"{head}{method}({', '.join(given if keywords else texts[1:])})"
        return f"np.{spelled}({', '.join(texts)})"

    def own(self, name: str, *texts: str) -> str:
        """A call of one of `_DEFINITIONS`."""
        self.definitions[name] = self.own_definitions[name]
        return f"{name}({', '.join(texts)})"


class JaxWriter(NumpyWriter):
    """The same for `jax.numpy`, under NumPy's name."""

    own_definitions = _JAX_DEFINITIONS
    stable = "stable=True"

    def index(self, symbol: Symbol) -> str:
        if not isinstance(symbol, Constant):
            return self.text(symbol)
        parts = symbol.value if isinstance(symbol.value, tuple) else (symbol.value,)
        texts = [self.text(Constant(part)) for part in parts]
        return ", ".join(f"np.array({text})" if text[0] == "[" else text for text in texts)


Form = Callable[[NumpyWriter, str, list[str]], str]
"""From the writer, the first argument as an operand, and the texts of all arguments to a call."""


def _filled(name: str) -> Form:
    def write(_writer: NumpyWriter, _head: str, texts: list[str]) -> str:
        given = texts if "dtype=" in texts[-1] else [*texts, "dtype=np.float32"]
        return f"np.{name}({', '.join(given)})"

    return write


def _array(_writer: NumpyWriter, _head: str, texts: list[str]) -> str:
    is_float = len(texts) == 1 and "." in texts[0]
    return f"np.array({', '.join([*texts, 'dtype=np.float32'] if is_float else texts)})"


def _deviation(name: str) -> Form:
    def write(_writer: NumpyWriter, head: str, texts: list[str]) -> str:
        given = [
            each.replace("correction", "ddof").replace("keepdim", "keepdims") for each in texts
        ]
        given = [each if "=" in each else f"axis={each}" for each in given[1:]]
        return f"{head}.{name}({', '.join(given)})"

    return write


def _along(writer: NumpyWriter, texts: list[str], axis: str, index: str) -> str:
    """The place of `index` in a dimension."""
    dim = int(axis)
    return f"np.s_[{':, ' * dim}{index}]" if dim >= 0 else f"np.s_[..., {index}]"


def _select_scatter(writer: NumpyWriter, _head: str, texts: list[str]) -> str:
    return writer.own("replaced", texts[0], _along(writer, texts, texts[2], texts[3]), texts[1])


def _slice_scatter(writer: NumpyWriter, _head: str, texts: list[str]) -> str:
    ends = f"{texts[3]}:{texts[4]}" + ("" if texts[5] == "1" else f":{texts[5]}")
    return writer.own("replaced", texts[0], _along(writer, texts, texts[2], ends), texts[1])


def _index_put(writer: NumpyWriter, _head: str, texts: list[str]) -> str:
    return writer.own("replaced", *texts)


def _norm(_writer: NumpyWriter, head: str, texts: list[str]) -> str:
    order = texts[1] if len(texts) > 1 else "2"
    axis = f"axis={texts[2]}, " if len(texts) > 2 else ""
    keep = f"keepdims={texts[3]}" if len(texts) > 3 else ""
    inner = ", ".join(each for each in (axis.rstrip(", "), keep) if each)
    if order in ("2", "2.0"):
        return f"np.sqrt((np.abs({texts[0]}) ** 2).sum({inner}))"
    if order in ("inf", "np.inf"):
        return f"np.abs({texts[0]}).max({inner})"
    return f"(np.abs({texts[0]}) ** {order}).sum({inner}) ** (1 / {order})"


_FORMS: dict[str, Form] = {
    "F.one_hot": lambda _writer, head, texts: f"np.eye({texts[1]}, dtype=int)[{texts[0]}]",
    "zeros": _filled("zeros"),
    "eye": _filled("eye"),
    "ones": _filled("ones"),
    "full": _filled("full"),
    "arange": _filled("arange"),
    "tensor": _array,
    "std": _deviation("std"),
    "var": _deviation("var"),
    "gather": lambda w, head, t: w.own("gathered", *t),
    "scatter": lambda w, head, t: w.own("scattered", *t),
    "scatter_add": lambda w, head, t: w.own("scattered", *t, "True"),
    "index_add": lambda w, head, t: w.own(
        "replaced", t[0], _along(w, t, t[1], t[2]), t[3], "True"
    ),
    "index_put": _index_put,
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
    "diagonal_scatter": lambda w, head, t: w.own("diagonal_replaced", *t),
    "norm": _norm,
    "linalg.eigh": lambda _w, head, t: f"np.linalg.eigh({t[0]})",
    "linalg.qr": lambda _w, head, t: f"np.linalg.qr({t[0]})",
    "linalg.slogdet": lambda _w, head, t: f"np.linalg.slogdet({t[0]})",
    "linalg.svd": lambda _w, head, t: f"np.linalg.svd({', '.join(t)})",
    "linalg.solve_triangular": lambda _w, head, t: (
        f"np.linalg.solve({head}.swapaxes(-2, -1), ({t[1]}).swapaxes(-2, -1)).swapaxes(-2, -1)"
        if "left=False" in t
        else f"np.linalg.solve({t[0]}, {t[1]})"
    ),
    "cdist": lambda _w, head, t: (
        f"np.linalg.norm({head}[..., :, None, :] - {t[1]}[..., None, :, :], axis=-1)"
    ),
}  # fmt: skip
"""Functions that take more than one expression of NumPy, or several forms of it."""
