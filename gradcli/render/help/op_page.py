"""The page of one op: signature, formulas, node, conventions, and an example with what it gives.

The formulas are the op's own rules, read with symbols; the example is run when it is shown.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.errors import GradcliError
from gradcli.explain.derive.formulas import derivative_formulas, forward_formula
from gradcli.explain.symbols.substitution import substituted
from gradcli.explain.symbols.text import text_of
from gradcli.explain.symbols.tree import Name, Symbol
from gradcli.language.library.namespace import MODULES
from gradcli.language.objects.repr import display
from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import Op, parameters_of
from gradcli.ops.lookup import PLACES, TENSOR, Found, find, is_bound, names_in
from gradcli.ops.summaries import NOTES, SUMMARIES
from gradcli.render.help.examples import example
from gradcli.session import Session

_OPERATORS = {
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "floor_divide": "x // y",
    "remainder": "x % y", "pow": "x ** y", "matmul": "x @ y", "neg": "-x", "eq": "x == y",
    "ne": "x != y", "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y",
    "bitwise_and": "x & y", "bitwise_or": "x | y", "bitwise_xor": "x ^ y", "bitwise_not": "~x",
    "bitwise_left_shift": "x << y", "bitwise_right_shift": "x >> y",
}  # fmt: skip

_HEAD = 10
"""The columns of a row's heading."""

_MOST_FORMS = 12


def op_help(name: str, width: int = 80) -> str | None:
    """The page of a function, method or class; None for a name that is none.

    Args:
        name: `exp`, `torch.exp`, `F.relu`, `Tensor.add_`, `nn.Linear`, …
        width: the columns to fill.
    """
    found = find(name, load)
    if found is None:
        return None
    lines = _wrapped(signature(found), width, "    ")
    lines += _wrapped(f"    {summary_of(found)}", width, "    ")
    rows = list(_rows(found))
    if rows:
        lines.append("")
        for head, text in rows:
            lines += _row(head, text, width)
    lines += _example(found, width)
    return "\n".join(lines) + "\n"


def load(place: str) -> Mapping[str, Any]:
    """The names of a module, loaded where they are not yet."""
    return MODULES[place].names


def op_names() -> Iterator[Found]:
    """Every op that has a page, once for each name."""
    for place in PLACES:
        for name in names_in(place, load):
            found = find(f"{place}.{name}", load)
            if found is not None:
                yield found


# --- what the page says -------------------------------------------------------------------------


def signature(found: Found) -> str:
    """How the function is called."""
    parameters = _parameters(found)
    if found.place == TENSOR and parameters:
        del parameters[0]
        if parameters[:1] == ["/"]:
            del parameters[0]
    return f"{found.full_name}({', '.join(parameters)})"


def _parameters(found: Found) -> list[str]:
    if _is_generated(found):
        op = found.entries[0]
        defaults = op.forward.__defaults__ or ()
        required = len(op.parameters) - len(defaults)
        named = ["input", *op.parameters[1:]]
        return named[:required] + [
            f"{name}={value!r}" for name, value in zip(named[required:], defaults, strict=True)
        ]
    function = getattr(found.function, "construct", found.function)
    try:
        described = inspect.signature(function)
    except (TypeError, ValueError):
        return ["…"]
    plain = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in described.parameters.values()
        if each.name not in ("out", "device", "memory_format", "layout", "pin_memory")
    ]
    text = str(inspect.Signature(plain))[1:-1]
    own = inspect.signature(function, follow_wrapped=False).parameters
    added = ["inplace=False"] if "inplace" in own and "inplace" not in described.parameters else []
    return (_split(text) if text else []) + added


def _split(text: str) -> list[str]:
    """Parameters at their commas, those inside brackets aside."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _is_generated(found: Found) -> bool:
    """Whether the function is an entry's own, not composed."""
    return any(is_bound(op, found.function) for op in found.entries)


def summary_of(found: Found) -> str:
    """One sentence on what the function does; on its in-place form too."""
    name = found.name.removesuffix("_") if found.inplace else found.name
    text = _documented(found.function)
    entry = found.entries[0].name if found.entries else name
    summary = SUMMARIES.get(name) or text or SUMMARIES.get(entry) or ""
    return f"{summary} The result is written to the tensor." if found.inplace else summary


def _documented(function: Any) -> str:
    """The first sentence of a docstring."""
    function = getattr(function, "construct", None) or function
    text = function.__doc__ or getattr(getattr(function, "__wrapped__", None), "__doc__", None)
    if not text:
        return ""
    words = " ".join(text.partition("\n\n")[0].split())
    sentence, dot, _ = words.partition(". ")
    return sentence + "." if dot else words


def _rows(found: Found) -> Iterator[tuple[str, str]]:
    forms = _forms(found)
    if forms:
        yield "forms", forms
    same = [op for op in found.entries if _stands_for(op, found)]
    for op in same:
        yield from _entry_rows(op)
    if found.entries and not same:
        nodes = ", ".join(dict.fromkeys(op.node_name for op in found.entries if op.node_name))
        if nodes:
            several = len(found.entries) > 1
            yield "nodes", f"those of other ops: {nodes}{', …' if several else ''}"
    for name in dict.fromkeys((found.name.removesuffix("_"), *(op.name for op in same))):
        if name in NOTES:
            yield "note", NOTES[name]
            break


def _stands_for(op: Op, found: Found) -> bool:
    """Whether an entry is the function itself, by one of its names, so that its formulas are."""
    names = {found.name.removesuffix("_"), *(name for _, name in _same(found))}
    return is_bound(op, found.function) or op.name.removeprefix("linalg_") in names


def _entry_rows(op: Op) -> Iterator[tuple[str, str]]:
    forward = forward_formula(op) if op.pointwise else None
    if forward is not None:
        yield "forward", _text(forward)
    if not op.node_name or op.node_name == "NotImplemented":
        yield (
            "gradient",
            "none: the result leaves the graph" if not op.node_name else ("none is implemented"),
        )
        return
    saved = _saved(op)
    yield "node", f"{op.node_name}, saves {', '.join(map(_operand, saved)) or 'no tensor'}"
    formulas = derivative_formulas(op)
    heads = {name: f"{_operand(name)}: " if len(formulas) > 1 else "" for name in formulas}
    texts = {
        name: "none" if formula is None else _text(formula) for name, formula in formulas.items()
    }
    if len(set(texts.values())) == 1 and " rule of " in next(iter(texts.values())):
        yield "gradient", f"{', '.join(map(_operand, formulas))}: {next(iter(texts.values()))}"
        return
    for number, (name, text) in enumerate(texts.items()):
        yield "gradient" if number == 0 else "", heads[name] + text


def _text(formula: Symbol) -> str:
    """A formula with the operand `self` called as in the signature."""
    return text_of(substituted(formula, {"self": Name("input")}))


def _operand(name: str) -> str:
    return "input" if name == "self" else name


def _saved(op: Op) -> list[str]:
    """The tensors that a node keeps for its derivatives."""
    rules = [*op.rules.values(), *([op.joint] if op.joint else [])]
    asked = [name for rule in rules for name in parameters_of(rule)]
    return [name for name in (*op.tensors, *op.lists, *op.outputs) if name in asked]


def _forms(found: Found) -> str:
    """The other names of the function, aliases and the in-place form among them."""
    name = found.name.removesuffix("_") if found.inplace else found.name
    others = [(TENSOR, f"{name}_")] if f"{name}_" in catalogue.methods else []
    forms = [
        f"{PLACES[place]}.{each}"
        for place, each in dict.fromkeys([*_same(found), *others])
        if (place, each) != (found.place, found.name)
    ]
    if name in _OPERATORS and not found.inplace:
        forms.append(_OPERATORS[name])
    shown = forms[:_MOST_FORMS]
    return ", ".join(shown)


def _same(found: Found) -> Iterator[tuple[str, str]]:
    """The places and names under which a function can be reached, that found among them."""
    own = (found.value, found.function)
    for place in PLACES:
        table = catalogue.methods if place == TENSOR else catalogue.modules.get(place, {})
        for name, value in list(table.items()):
            if any(value is each for each in own):
                yield place, name


def _example(found: Found, width: int) -> list[str]:
    """The example and what it gives."""
    program = example(found.full_name)
    if program is None:
        return []
    lines = [""]
    for number, line in enumerate(program.split("\n")):
        lines += _row("example" if number == 0 else "", line, width)
    shown = result_of(program)
    if shown is not None:
        lines += [
            " " * _HEAD + piece for line in shown.split("\n") for piece in _folded(line, width)
        ]
    return lines


def _folded(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width - _HEAD, drop_whitespace=False) or [""]


def result_of(program: str) -> str | None:
    """What the last expression of a program gives; None where it gives nothing or fails."""
    session = Session()
    try:
        value = None
        for result in session.run(program, "example"):
            value = result.value
        with session.running():
            return None if value is None else display(value)
    except GradcliError:
        return None


# --- layout -------------------------------------------------------------------------------------


def _row(head: str, text: str, width: int) -> list[str]:
    return _wrapped(f"{head:<{_HEAD}}{text}", width, " " * _HEAD)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """A text on lines; words that are longer than a line are cut."""
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
    )
