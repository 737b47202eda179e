"""Formulas as NumPy expressions: the language's functions by what NumPy has for them.

What NumPy has no word for is a small function of its own, which the emitted file defines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradcli.explain.symbols.text import ATOM, PRECEDENCE, UNARY, number_text
from gradcli.explain.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Item,
    Name,
    Operation,
    Symbol,
)


class Unspoken(Exception):
    """A function that NumPy has nothing for."""


DEFINITIONS = {
    "sigmoid": """\
def sigmoid(x):
    return 1 / (1 + np.exp(-x))
""",
    "softmax": """\
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
    "log_softmax": """\
def log_softmax(x, axis):
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
""",
    "logsumexp": """\
def logsumexp(x, axis, keepdims=False):
    top = x.max(axis=axis, keepdims=True)
    result = top + np.log(np.exp(x - top).sum(axis=axis, keepdims=True))
    return result if keepdims else np.squeeze(result, axis)
""",
    "erf": """\
def erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)
""",
    "lgamma": """\
def lgamma(x):
    return np.vectorize(math.lgamma, otypes=[x.dtype])(x)
""",
    "xlogy": """\
def xlogy(x, y):
    return np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y)))
""",
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
"""Functions that an emitted file defines where it needs them."""

_SAME = frozenset({
    "abs", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "floor", "fmod", "heaviside",
    "hypot", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "sign", "sin",
    "sinh", "sqrt", "square", "tan", "tanh", "trunc", "where", "sinc", "reciprocal", "outer",
})  # fmt: skip

_OTHER = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "round": "rint", "sgn": "sign",
    "inverse": "linalg.inv", "linalg_solve": "linalg.solve", "det": "linalg.det",
}  # fmt: skip
"""What NumPy calls otherwise."""


class NumpyWriter:
    """Writes formulas, and takes note of which definitions they need."""

    def __init__(self) -> None:
        self.needed: dict[str, None] = {}

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
            return f"{self._inside(symbol.value, ATOM)}[{self.text(symbol.index)}]", ATOM
        if isinstance(symbol, Choice):
            raise Unspoken("a conditional expression")
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
        return f'np.{name}({value}, axis={dim}, kind="stable")'

    def _inside(self, symbol: Symbol, level: int) -> str:
        text, own = self._written(symbol)
        return text if own >= level else f"({text})"

    def _call(self, name: str, arguments: Sequence[Symbol]) -> str:
        if name == "":
            inner = ", ".join(map(self.text, arguments))
            return f"({inner},)" if len(arguments) == 1 else f"({inner})"
        if name == "[]":
            return f"[{', '.join(map(self.text, arguments))}]"
        if name.removeprefix("torch.") in (*_FORMS, *_SAME, *_OTHER, *DEFINITIONS):
            name = name.removeprefix("torch.")
        if name.startswith("math."):
            return f"{name}({', '.join(map(self.text, arguments))})"
        if name in _FORMS:
            texts = [self.text(each) for each in arguments]
            head = self._inside(arguments[0], ATOM) if arguments else ""
            return _FORMS[name](self, head, texts)
        if name in _SAME or name in _OTHER:
            texts = [self.text(each) for each in arguments]
            return f"np.{_OTHER.get(name, name)}({', '.join(texts)})"
        if name in DEFINITIONS:
            return self.own(name, *(self.text(each) for each in arguments))
        raise Unspoken(name)

    def own(self, name: str, *texts: str) -> str:
        """A call of one of the definitions."""
        self.needed[name] = None
        return f"{name}({', '.join(texts)})"


Form = Callable[[NumpyWriter, str, list[str]], str]
"""From the writer, the first argument as an operand, and the texts of all arguments to a call."""


def _reduction(name: str) -> Form:
    def write(_writer: NumpyWriter, head: str, texts: list[str]) -> str:
        given = [f"axis={texts[1]}"] if len(texts) > 1 else []
        given += [f"keepdims={texts[2]}"] if len(texts) > 2 else []
        return f"{head}.{name}({', '.join(given)})"

    return write


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


def _function(name: str, order: Sequence[int] | None = None) -> Form:
    def write(_writer: NumpyWriter, _head: str, texts: list[str]) -> str:
        chosen = texts if order is None else [texts[i] for i in order]
        return f"np.{name}({', '.join(chosen)})"

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
    order, axis = texts[1], f"axis={texts[2]}, " if len(texts) > 2 else ""
    keep = f"keepdims={texts[3]}" if len(texts) > 3 else ""
    inner = ", ".join(each for each in (axis.rstrip(", "), keep) if each)
    if order in ("2", "2.0"):
        return f"np.sqrt((np.abs({texts[0]}) ** 2).sum({inner}))"
    if order in ("inf", "np.inf"):
        return f"np.abs({texts[0]}).max({inner})"
    return f"(np.abs({texts[0]}) ** {order}).sum({inner}) ** (1 / {order})"


_FORMS: dict[str, Form] = {
    "sum": _reduction("sum"),
    "mean": _reduction("mean"),
    "prod": _reduction("prod"),
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "cumsum": lambda w, head, t: f"{head}.cumsum(axis={t[1]})",
    "cumprod": lambda w, head, t: f"{head}.cumprod(axis={t[1]})",
    "argmax": _reduction("argmax"),
    "argmin": _reduction("argmin"),
    "reshape": lambda w, head, t: f"{head}.reshape({t[1]})",
    "expand": _function("broadcast_to"),
    "transpose": lambda w, head, t: f"{head}.swapaxes({t[1]}, {t[2]})",
    "permute": lambda w, head, t: f"{head}.transpose({t[1]})",
    "t": lambda w, head, t: f"{head}.T",
    "unsqueeze": _function("expand_dims"),
    "flip": _function("flip"),
    "roll": _function("roll"),
    "tril": _function("tril"),
    "triu": _function("triu"),
    "cat": _function("concatenate"),
    "stack": _function("stack"),
    "zeros": _filled("zeros"),
    "ones": _filled("ones"),
    "full": _filled("full"),
    "tensor": _array,
    "std": _deviation("std"),
    "var": _deviation("var"),
    "xlogy": lambda w, head, t: w.own("xlogy", *t),
    "logit": lambda w, head, t: f"np.log({head} / (1 - {t[0]}))",
    "torch.linalg.inv": _function("linalg.inv"),
    "torch.linalg.solve": _function("linalg.solve"),
    "torch.linalg.det": _function("linalg.det"),
    "torch.linalg.cholesky": _function("linalg.cholesky"),
    "to": lambda w, head, t: f"{head}.astype({t[1]})",
    "clamp": _function("clip"),
    "clamp_min": _function("maximum"),
    "clamp_max": _function("minimum"),
    "relu": lambda w, head, t: f"np.maximum({t[0]}, 0)",
    "rsqrt": lambda w, head, t: f"(1 / np.sqrt({t[0]}))",
    "mv": lambda w, head, t: f"({t[0]} @ {t[1]})",
    "dot": lambda w, head, t: f"({t[0]} @ {t[1]})",
    "gather": lambda w, head, t: w.own("gathered", *t),
    "scatter": lambda w, head, t: w.own("scattered", *t),
    "scatter_add": lambda w, head, t: w.own("scattered", *t, "True"),
    "index_select": lambda w, head, t: f"np.take({t[0]}, {t[2]}, axis={t[1]})",
    "index_add": lambda w, head, t: w.own(
        "replaced", t[0], _along(w, t, t[1], t[2]), t[3], "True"
    ),
    "index_put": _index_put,
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
    "diagonal_scatter": lambda w, head, t: w.own("diagonal_replaced", *t),
    "diagonal": lambda w, head, t: f"np.diagonal({', '.join(t)})",
    "norm": _norm,
}  # fmt: skip
"""Functions that NumPy has under another name, or with arguments in another order."""
