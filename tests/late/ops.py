"""Every function of tensors, with each of its settings in turn another one from an iteration on.

The calls are the examples of the manual's pages and the rows of the gradient table. A setting is a
literal of the call, or a parameter that the call leaves out; what it becomes follows from its value
and its name.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.lookup import PublicName
from gradcli.running.lookup import parameters_of
from gradcli.session import Session
from gradcli.show.help.ops import example_of, op_names
from tests import op_table
from tests.late.loop import LATE, ROUNDS, Late, sample
from tests.op_table.rows import Row

SKIPPED = {
    "torch.set_printoptions": "it is about what is printed",
    "Tensor.backward": "nothing of it is a value",
    "torch.save": "it writes files",
    "torch.load": "it reads files",
}
"""Functions that the table leaves out, and why."""

_MODULES = {
    "torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.masked",
    "torch.signal.windows", "torch.nn.init", "torch.nn.utils", "Tensor",
}  # fmt: skip

_WORDS = {
    "reduction": ["'none'", "'mean'", "'sum'"],
    "approximate": ["'none'", "'tanh'"],
    "rounding_mode": ["None", "'floor'", "'trunc'"],
    "mode": ["'nearest'", "'bilinear'", "'linear'", "'constant'", "'reflect'", "'mean'", "'sum'",
             "'fan_in'", "'fan_out'", "'reduced'", "'complete'"],
    "padding_mode": ["'zeros'", "'border'", "'reflection'"],
    "interpolation": ["'linear'", "'lower'", "'nearest'"],
    "norm": ["None", "'ortho'", "'forward'"],
    "reduce": ["'sum'", "'amax'", "'mean'"],
    "indexing": ["'ij'", "'xy'"],
    "side": ["'left'", "'right'"],
    "UPLO": ["'L'", "'U'"],
    "driver": ["None", "'gels'"],
    "nonlinearity": ["'leaky_relu'", "'relu'"],
}  # fmt: skip
"""The words that a setting may be, by its name."""

_OF_NONE = {
    "dim": "0", "dtype": "torch.float64", "n": "2", "s": "(2,)", "max": "0.6", "min": "0.6",
    "eps": "0.01", "correction": "0", "decimals": "1", "norm": "'ortho'", "axis": "0",
    "stride": "1", "p": "3.0", "tol": "0.5", "rtol": "0.5", "atol": "0.5", "size": "3",
    "minlength": "9", "scale": "0.3", "diagonal": "1", "output_size": "4", "other": "2.0",
    "divisor_override": "3", "max_norm": "1.0", "padding_idx": "0", "std": "2.0",
}  # fmt: skip
"""What a setting that is None becomes, by its name."""


class Setting(NamedTuple):
    """A call whose setting is the name `p`, what `p` is at first, and what it becomes."""

    name: str
    before: list[str]
    call: str
    first: str
    then: str


def others(name: str, value: str) -> list[str]:
    """What a setting may become that has a value, as source."""
    if name in _WORDS and (value.startswith("'") or value == "None"):
        return [word for word in _WORDS[name] if word != value][:2]
    if value in ("True", "False"):
        return [str(value == "False")]
    if value == "None":
        return [_OF_NONE[name]] if name in _OF_NONE else []
    try:
        known = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return ["torch.float64"] if value.startswith("torch.float") else []
    if type(known) is int:
        return [str(known + 1), str(-1 if known == 0 else 0)]
    if type(known) is float:
        return ["0.25" if known == 0.5 else repr(known / 2 + 0.125)]
    if isinstance(known, (tuple, list)) and known and all(type(each) is int for each in known):
        return [repr(type(known)([*known[:-1], known[-1] + 1])), repr(known[0])]
    if isinstance(known, str) and "->" in known:
        return [repr(known.split("->")[0] + "->")]
    return []


def settings() -> Iterator[Setting]:
    """Every setting of every function."""
    bring_all()
    seen = set()
    for public in op_names():
        if public.namespace in _MODULES and public.full_name not in SKIPPED:
            for setting in settings_of(public):
                key = setting._replace(name="")
                if repr(key) not in seen:
                    seen.add(repr(key))
                    yield setting


def settings_of(public: PublicName) -> Iterator[Setting]:
    """The settings of a function, in the call that its page shows."""
    *before, last = example_of(public).split("\n")
    try:
        tree = ast.parse(last, mode="eval").body
    except SyntaxError:
        return
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    named = [call for call in calls if _called(call) == public.name.rstrip("_")]
    named = [call for call in calls if _called(call) == public.name] or named
    if not named:
        return
    call = named[0]
    if _called(call) != public.name:  # the example is that of the form that does not write
        if not call.args or not isinstance(call.func, ast.Attribute):
            return
        target = ast.Call(ast.Attribute(call.args[0], "clone"), [], [])
        call.func = ast.Attribute(target, public.name)
        del call.args[0]
    lines = [*before, *_hoisted(call)]
    names = [each.name for each in parameters_of(public.value) if each.stars != "*"]
    is_method = isinstance(call.func, ast.Attribute) and not _is_module(call.func.value)
    names = names[1:] if is_method else names
    for name, changed, value in _literals(tree, call, names):
        for other in others(name, value):
            yield Setting(
                f"{public.full_name} {name}: {value} to {other}", lines, changed, value, other
            )
    passed = {*names[: len(call.args)], *(each.arg for each in call.keywords)}
    for each in parameters_of(public.value):
        default = each.default
        if (
            default is None
            or each.stars
            or each.name in passed
            or each.name not in [*names, each.name]
        ):
            continue
        for other in others(each.name, str(default).replace('"', "'")):
            copy = deepcopy(call)
            copy.keywords.append(ast.keyword(each.name, ast.Name("p")))
            changed = ast.unparse(_replaced(tree, call, copy))
            name = f"{public.full_name} {each.name}: {default} to {other}"
            yield Setting(name, lines, changed, str(default), other)


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node).split(".")[0] in (
        "torch", "F", "nn",
    )  # fmt: skip


def _hoisted(call: ast.Call) -> list[str]:
    """Assignments, before the loop, of the tensors that a call makes for its operands."""
    lines: list[str] = []

    def hoist(node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call):
            name = f"x{len(lines)}"
            lines.append(f"{name} = {ast.unparse(node)}")
            return ast.Name(name)
        if isinstance(node, (ast.List, ast.Tuple)):
            node.elts = [hoist(each) for each in node.elts]
        return node

    if isinstance(call.func, ast.Attribute) and not _is_module(call.func.value):
        target = call.func.value
        if isinstance(target, ast.Call) and _called(target) == "clone":
            assert isinstance(target.func, ast.Attribute)
            target.func.value = hoist(target.func.value)
        else:
            call.func.value = hoist(target)
    call.args = [hoist(each) for each in call.args]
    for keyword in call.keywords:
        keyword.value = hoist(keyword.value)
    return lines


def _literals(tree: ast.expr, call: ast.Call, names: list[str]) -> Iterator[tuple[str, str, str]]:
    """The name of each literal argument of a call, the program with `p` for it, and its source."""
    count = len(call.args)
    for number in range(count + len(call.keywords)):
        copy = deepcopy(call)
        if number < count:
            name = names[number] if number < len(names) else ""
            value, copy.args[number] = call.args[number], ast.Name("p")
        else:
            keyword = call.keywords[number - count]
            name, value = keyword.arg or "", keyword.value
            copy.keywords[number - count].value = ast.Name("p")
        source = ast.unparse(value)
        if isinstance(value, (ast.Constant, ast.UnaryOp, ast.Tuple, ast.List)) or (
            source.startswith("torch.") and not isinstance(value, ast.Call)
        ):
            yield name, ast.unparse(_replaced(tree, call, copy)), source


def _replaced(tree: ast.expr, call: ast.Call, other: ast.Call) -> ast.expr:
    """The tree with another call for one of its calls."""
    if tree is call:
        return other

    class Replace(ast.NodeTransformer):
        def visit(self, node: Any) -> Any:
            return other if node is call else self.generic_visit(node)

    before = dict(vars(call))
    found: ast.expr = deepcopy(Replace().visit(tree))
    assert vars(call) == before
    return found


# --- programs -------------------------------------------------------------------------------------

WAYS = {
    "if": ["p = {first}", "for i in range({rounds}):", "    if i == {late}: p = {then}"],
    "drawn": ["for p in [{first}] * {late} + [{then}] * {more}:"],
    "chosen": ["for i in range({rounds}):", "    p = {then} if i == {late} else {first}"],
}
"""How a setting changes: for good, in what the loop goes through, in one iteration."""

USES = {
    "used": ["    q = {call}", "    t = t + number(q)"],
    "overwritten": ["    q = {call}"],
    "differentiated": ["    q = {call}", "    number(q).backward()"],
}
"""What becomes of the result."""

HEAD = """\
import torch
from torch import nn, tensor, ones, zeros, arange
import torch.nn.functional as F
torch.manual_seed(0)
"""

NUMBERS = {
    "Tensor": "(({q}) * 0.01).sum()",
    "pair": "(({q})[0] * 0.01).sum()",
    "number": "torch.tensor(float({q}))",
    "other": "",
}
"""A number of a result, by the kind of that."""


def program(setting: Setting, way: str, use: str, kind: str, leaves: list[str]) -> str:
    """The program of a setting, whose result is of a kind."""
    head = HEAD + "\n".join([*setting.before, *(f"{each}.requires_grad_()" for each in leaves)])
    number = NUMBERS[kind].format(q="q")
    lines = [line.replace("number(q)", number) for line in USES[use]]
    if use == "used" and not number:
        lines = ["    q = {call}", "    t.append(q)"]
    given = {
        "call": setting.call, "first": setting.first, "then": setting.then,
        "late": str(LATE), "rounds": str(ROUNDS), "more": str(ROUNDS - LATE),
    }  # fmt: skip
    start = "t = torch.zeros(())" if number else "t = []"
    text = "\n".join([start, *WAYS[way], *lines])
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", value)
    return f"{head}\n{text}\n"


class Kind(NamedTuple):
    """What a call gives: which of `NUMBERS`, and the operands that it has gradients for."""

    number: str
    leaves: list[str]


def kind_of(setting: Setting) -> Kind | None:
    """What a setting's call gives, None where it fails from the first."""
    session = Session()
    names = [line.split(" = ")[0] for line in setting.before]
    floats = f"[x for x in [{', '.join(names)}] if torch.is_tensor(x) and x.is_floating_point()]"
    text = f"{HEAD}{_lines(setting)}\np = {setting.first}\nfound = {setting.call}\n"
    try:
        for _ in session.run(text, "kind"):
            pass
        found = session.values["found"]
        leaves = [name for name in names if _floats(session.values[name])]
        if leaves:
            again = f"for x in {floats}: x.requires_grad_()\nfound = {setting.call}\n"
            for _ in session.run(again, "kind"):
                pass
    except GradcliError:
        return None if "found" not in session.values else Kind(_number(found), [])
    again = session.values["found"]
    first = again[0] if isinstance(again, tuple) and again else again
    requires = isinstance(first, Tensor) and first.requires_grad
    return Kind(_number(found), leaves if requires else [])


def _lines(setting: Setting) -> str:
    return "\n".join(setting.before)


def _floats(value: Any) -> bool:
    return isinstance(value, Tensor) and value.array.dtype.kind == "f"


def _number(found: Any) -> str:
    if isinstance(found, Tensor):
        return "Tensor" if found.array.dtype.kind != "b" else "other"
    if isinstance(found, (tuple, list)) and found and isinstance(found[0], Tensor):
        return "pair" if found[0].array.dtype.kind != "b" else "other"
    return "number" if isinstance(found, (bool, int, float)) else "other"


def lates(seed: int = 0, count: int | None = None) -> Iterator[Late]:
    """The table's programs: each setting used, overwritten and differentiated, the ways in turn;
    where only so many are wanted, one for each of so many settings.
    """
    every = [*settings(), *settings_of_rows()]
    turn = 0
    for number, setting in enumerate(every if count is None else sample(every, count, seed)):
        kind = kind_of(setting)
        if kind is None:
            continue
        uses = [use for use in USES if use != "differentiated" or kind.leaves]
        if count is not None:
            uses = [uses[number % len(uses)]]
        for use in uses:
            turn += 1
            way = list(WAYS)[turn % len(WAYS)]
            leaves = kind.leaves if use == "differentiated" else []
            text = program(setting, way, use, kind.number, leaves)
            yield Late(f"{setting.name}, {use}, {way}", text)


def settings_of_rows() -> Iterator[Setting]:
    """The literals of the rows of the gradient table."""
    for info in pkgutil.iter_modules(op_table.__path__):
        for row in getattr(importlib.import_module(f"tests.op_table.{info.name}"), "ROWS", ()):
            yield from _of_row(row)


def _of_row(row: Row) -> Iterator[Setting]:
    tree = ast.parse(row.expression)
    *statements, last = tree.body
    if statements or not isinstance(last, ast.Expr):
        return
    before = [f"{name} = torch.tensor({_listed(each)})" for name, each in row.values().items()]
    for call in ast.walk(last.value):
        if not isinstance(call, ast.Call):
            continue
        for name, changed, value in _literals(last.value, call, []):
            for other in others(name, value)[:1]:
                said = f"{row.expression} {name}: {value} to {other}"
                yield Setting(said, before, changed, value, other)


def _listed(array: Any) -> Any:
    return array.round(3).tolist() if array.dtype.kind == "f" else array.tolist()
