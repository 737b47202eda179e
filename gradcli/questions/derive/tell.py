"""A derived gradient as text: a program in the language, or a file for NumPy or PyTorch.

What NumPy has no word for is a small function of its own, which the emitted file defines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.errors import GradcliError
from gradcli.ops.lookup import numpy_of
from gradcli.questions.derive.latex import elided
from gradcli.questions.derive.program import Derivation, Line, shortest, without_expression
from gradcli.recorded.symbols.tree import (
    ATOM,
    PRECEDENCE,
    UNARY,
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
    number_text,
    rebuilt,
    text_of,
)
from gradcli.show.json import number

# --- NumPy ----------------------------------------------------------------------------------------


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
            texts = [self.text(each) for each in arguments]
            is_float = len(texts) == 1 and "." in texts[0]
            return f"np.array({', '.join([*texts, 'dtype=np.float32'] if is_float else texts)})"
        return self._by_entry(name, arguments)

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
        for place, each in enumerate(arguments):
            name = named[place] if place < len(named) else ""
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


# --- told -----------------------------------------------------------------------------------------


_CLOSE = {"float16": "1e-2", "bfloat16": "1e-1", "float64": "1e-9", "complex128": "1e-9"}
"""How close numbers of a dtype must come; 1e-4 for the others."""

_PLURALS = {"gradient": "gradients", "jacobian": "jacobians", "hessian": "hessians"}

_TITLES = {"gradient": "gradients", "jacobian": "Jacobians", "hessian": "Hessians"}

_FITTED = {"standard_gamma_grad", "dirichlet_grad"}
"""Functions for which PyTorch has a fit; a file's own series is closer to the truth than 1e-2."""

_COMMENT_COLUMN = 48

_NUMPY = re.compile(r"\bnp\.")

_INFINITE = re.compile(r"(?<![\w.])(inf|nan)\b")


def program_text(derived: Derivation, full: bool = False) -> str:
    """The formulas in the language, each with its shape, and where a factor is 0 by convention;
    unless `full` what an unrolled loop repeats is shown by its first and last lines.
    """
    lines = [_noted(f"{line.name} = {_shown(line.formula)}", line) for line in derived.shown]
    lines = lines if full else elided(lines)
    notes = [f"# {name} is {text}" for name, text in derived.described.items()]
    holds = [f"# {each}" for each in derived.conditions]
    return "\n".join(
        [*notes, *holds, *lines, *(f"# 0 where {each}" for each in derived.conventions)]
    )


def _shown(formula: Symbol) -> str:
    """The text of a formula; a number is shown as that."""
    if isinstance(formula, Call) and formula.function in ("tensor", "torch.tensor"):
        value = formula.arguments[0].value if isinstance(formula.arguments[0], Constant) else None
        if isinstance(value, float) and len(formula.arguments) == 1:
            return text_of(Constant(int(value) if value.is_integer() else value))
    return text_of(formula)


def numpy_text(derived: Derivation, program: str) -> str:
    """A Python file that needs NumPy alone: a function of the inputs that returns their gradients,
    and an assert on the numbers that the run found.

    Raises:
        GradcliError: E413 for a function that NumPy has nothing for.
    """
    head, parts, room = _in_numpy(derived, program, NumpyWriter(), "NumPy")
    parts = ["\n".join([*head, "import numpy as np"]), *parts]
    parts.append(_check(derived, _numpy_array, "np.testing.assert_allclose", least=room))
    return "\n\n\n".join(parts) + "\n"


def jax_text(derived: Derivation, program: str) -> str:
    """The same for JAX, whose arrays cannot be written to.

    Raises:
        GradcliError: E413 for a function that NumPy, and so `jax.numpy`, has nothing for.
    """
    head, parts, room = _in_numpy(derived, program, JaxWriter(), "JAX")
    imports = ["import jax.numpy as jnp", "import numpy as np"]
    if any(array.dtype.itemsize > 4 for array in derived.inputs.values()):
        imports = ["import jax", *imports, "", 'jax.config.update("jax_enable_x64", True)']
    parts = ["\n".join([*head, *imports]), *(_NUMPY.sub("jnp.", text) for text in parts)]
    parts.append(_check(derived, _jax_array, "np.testing.assert_allclose", least=room))
    return "\n\n\n".join(parts) + "\n"


def _in_numpy(
    derived: Derivation, program: str, writer: NumpyWriter, target: str
) -> tuple[list[str], list[str], str]:
    """What a file imports beside NumPy, its functions, and how close its numbers come."""
    try:
        body = [
            _noted(f"{line.name} = {writer.text(line.formula)}", line) for line in derived.lines
        ]
    except Unspoken as unspoken:
        raise without_expression(f"{unspoken} in {target}") from None
    definitions = [text.rstrip() for text in writer.definitions.values()]
    uses_math = any("math." in text for text in (*body, *definitions))
    parts = [*definitions, _function(derived, program, body)]
    room = "1e-2" if _FITTED & writer.definitions.keys() else ""
    return ["import math", ""] if uses_math else [], parts, room


def _is_spoken(formula: Symbol) -> bool:
    """Whether NumPy has a word for every function in a formula."""
    try:
        NumpyWriter().text(formula)
    except Unspoken:
        return False
    return True


WORDS = {"numpy": _is_spoken, "jax": _is_spoken}
"""By target, whether a formula can be written for it; for others each can."""


def torch_text(derived: Derivation, program: str) -> str:
    """The same for PyTorch."""
    body = [_noted(f"{line.name} = {torch_formula(line.formula)}", line) for line in derived.lines]
    body = [_INFINITE.sub(r"math.\1", line) for line in body]
    uses_math = any("math." in text for text in body)
    head = "import math\n\nimport torch" if uses_math else "import torch"
    return (
        "\n\n\n".join(
            [
                head,
                _function(derived, program, body),
                _check(derived, _torch_tensor, "torch.testing.assert_close", ", equal_nan=True"),
            ]
        )
        + "\n"
    )


def _noted(text: str, line: Line) -> str:
    """A formula with its shape in a comment."""
    shape = str(tuple(line.array.shape))
    if line.dims:
        shape = f"({', '.join(line.dims)}{',' * (len(line.dims) == 1)})"
    return f"{text.ljust(_COMMENT_COLUMN)}  # {shape}" if line.array.ndim else text


def _function(derived: Derivation, program: str, body: list[str]) -> str:
    parameters = ", ".join(derived.inputs)
    returned = ", ".join(f'"{name}": {value}' for name, value in derived.gradients.items())
    return "\n".join(
        [
            f"def {_PLURALS[derived.kind]}({parameters}):",
            f'    """The {_TITLES[derived.kind]} of `{_in_docstring(program)}`{_held(derived)}."""',
            *(f"    {name} = {of}.shape[{dim}]" for name, (of, dim) in derived.sizes.items()),
            *(f"    {line}" for line in body),
            f"    return {{{returned}}}",
        ]
    )


def _held(derived: Derivation) -> str:
    """What the formulas hold for, behind a comma."""
    held = "; ".join(derived.conditions).replace("\\", "\\\\").replace('"', "'")
    return f", {held}" if held else ""


def _in_docstring(program: str) -> str:
    text = "; ".join(line.strip() for line in program.strip().splitlines())
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    return text if len(text) <= 60 else f"{text[:59]}…"


# --- the asserts ----------------------------------------------------------------------------------


def _check(
    derived: Derivation, write: Callable[[Any], str], compare: str, more: str = "", least: str = ""
) -> str:
    """What a file does as a program: it compares the gradients with those that were recorded."""
    arguments = [f"    {name}={write(array)}," for name, array in derived.inputs.items()]
    lines = [f"found = {_PLURALS[derived.kind]}(", *arguments, ")"]
    for name, value in derived.values.items():
        close = least or _CLOSE.get(value.dtype.name, "1e-4")
        lines.append(f"expected = {write(value)}")
        lines.append(f'{compare}(found["{name}"], expected, rtol={close}, atol={close}{more})')
        if write is _numpy_array:
            lines.append(f'assert np.shape(found["{name}"]) == {tuple(value.shape)}')
    said = f"the {_TITLES[derived.kind]} of {', '.join(derived.values)} agree{_held(derived)}"
    lines.append(f"print({said!r})" if '"' in said else f'print("{said}")')
    return "\n".join(['if __name__ == "__main__":', *(f"    {line}" for line in lines)])


def _numpy_array(array: Any) -> str:
    name = array.dtype.name
    return f"np.array({_elements(array)}, dtype=np.{'bool_' if name == 'bool' else name})"


def _jax_array(array: Any) -> str:
    return _NUMPY.sub("jnp.", _numpy_array(array))


def _torch_tensor(array: Any) -> str:
    return f"torch.tensor({_elements(array)}, dtype=torch.{array.dtype.name})"


def _elements(array: Any) -> str:
    """The numbers of an array, all their digits, in a literal of Python."""
    array = np.asarray(array)
    if array.size > 10_000:
        raise GradcliError(
            "E413",
            f"an array of {array.size:,} elements is too long to be written into a file",
            help="derive the gradient for smaller inputs; the formulas are the same",
        )
    text = repr(shortest(array))
    return text.replace("inf", 'float("inf")').replace("nan", 'float("nan")')


# --- the language for PyTorch ---------------------------------------------------------------------


def torch_formula(symbol: Symbol) -> str:
    """A formula with PyTorch's functions under their full names."""
    return text_of(_qualified(symbol))


def _qualified(symbol: Symbol) -> Symbol:
    parts = tuple(_qualified(part) for part in symbol.parts)
    if isinstance(symbol, Call) and not symbol.method:
        name = symbol.function
        if name.startswith("F."):
            name = f"torch.nn.functional.{name.removeprefix('F.')}"
        elif name and name != "[]" and "." not in name:
            name = f"torch.special.{name}" if name in _SPECIAL else f"torch.{name}"
        return Call(name, parts)
    if isinstance(symbol, (Name, Constant)):
        return symbol
    return rebuilt(symbol, parts)


_SPECIAL = frozenset({"erfcx", "log_ndtr", "i0e", "i1", "i1e", "ndtri", "zeta", "entr"})


SCHEMA = "gradcli.derivation/1"


def derivation_document(derived: Derivation, output: str | None) -> dict[str, Any]:
    """The formulas as a JSON object: inputs, lines in order, each input's gradient."""
    return {
        "schema": SCHEMA,
        "output": output,
        "kind": derived.kind,
        "conditions": derived.conditions,
        "sizes": {name: {"of": of, "dim": dim} for name, (of, dim) in derived.sizes.items()},
        "inputs": [
            {"name": name, **_array_object(array)} for name, array in derived.inputs.items()
        ],
        "lines": [
            {
                "name": line.name,
                "formula": text_of(line.formula),
                "shape": list(line.array.shape),
                "dtype": line.array.dtype.name,
            }
            for line in derived.lines
        ],
        "gradients": [
            {
                "of": derived.paths.get(name, name),
                "name": called,
                **_array_object(derived.values[name]),
            }
            for name, called in derived.gradients.items()
        ],
    }


def _array_object(array: Any) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": array.dtype.name, "value": number(array)}
