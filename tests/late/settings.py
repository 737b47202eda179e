"""Whatever else takes arguments or has settings: builtins, `math`, NumPy's functions of numbers, the
methods of texts and containers, layers, optimizers and schedules. Each argument, attribute or entry
in turn becomes another one from an iteration on.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.library.builtins import vars_
from gradcli.nn.module import Module
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.lookup import find
from gradcli.render.help.op_page import example_of
from gradcli.session import Session
from tests.late.loop import LATE, ROUNDS, Late
from tests.late.ops import WAYS, others

ARGUMENTS: dict[str, tuple[str, str, list[str]]] = {
    "abs, round": ("-2.5", "3.5", ["abs(p)", "round(p)", "round(p, 1)", "bool(p)", "int(p)", "str(p)",
        "repr(p)", "divmod(p, 2)", "pow(p, 2)", "max(p, 1)", "min(p, 1)", "sum([p, 1])", "float(p)",
        "complex(p)", "isinstance(p, float)", "[p] * 2", "p > 0", "-p", "not p", "p // 2", "p % 2",
        "p ** 2", "p is None", "p == 3.5", "p != 3.5", "type(p) is float", "hash(p)", "f'{p:.1f}'",
        "'%g' % p", "p.is_integer()", "p.hex()", "p.as_integer_ratio()", "(p, i)", "{p: 1}", "{p}",
        "p or 1", "p and 1", "1 if p > 0 else 2", "p < i", "0 < p < 9", "lambda: p", "(lambda: p)()",
        "[p for _ in range(2)]", "sum(p for _ in range(2))", "{k: p for k in 'ab'}", "any([p > 0])",
        "all([p > 0])", "sorted([p, 0])", "list(map(abs, [p]))", "torch.tensor(p)", "w * p", "w + p",
        "w ** p", "torch.full((2,), p)", "w.clamp(p)", "w > p", "torch.tensor([p, 1.])", "w.pow(p)"]),
    "integers": ("3", "2", ["p & 1", "p | 4", "p ^ 1", "~p", "p << 1", "p >> 1", "p.bit_length()", "bin(p)",
        "hex(p)", "oct(p)", "chr(p + 65)", "range(p)", "len(range(p))", "list(range(p))", "[1, 2, 3, 4][p]",
        "'abcd'[p]", "(5, 6, 7, 8)[p]", "{2: 'a', 3: 'b'}[p]", "[1, 2, 3, 4][:p]", "'abcd'[p:]", "p / 2",
        "list(enumerate('ab', p))", "list(zip(range(p), 'abc'))", "list(reversed(range(p)))", "int(str(p))",
        "'a' * p", "[0] * p", "'a'.rjust(p)", "'a'.zfill(p)", "str(p).zfill(4)", "sum(range(p))", "p in [3]",
        "p in {2, 5}", "p in {3: 1}", "p in range(3)", "w[p - 2]", "w[:p - 1]", "w.view(-1)[p - 2]", "i % p",
        "torch.arange(p)", "torch.zeros(p)", "w.repeat(p)", "torch.ones(2, p)", "w.sum() * p", "w.expand(p, 2)",
        "w.unsqueeze(p - 2)", "torch.eye(p)", "torch.full((p,), 1.)", "w.view(1, -1).expand(p, 2)", "int('11', p)",
        "next(k for k in range(9) if k >= p)", "[k for k in range(5) if k < p]", "p.to_bytes(2, 'big')"]),
    "texts": ("'Late b'", "'early a'", ["p.upper()", "p.lower()", "p.split()", "p.title()", "p.swapcase()",
        "p.capitalize()", "p.count('a')", "p.find('a')", "p.replace('a', 'o')", "p.startswith('L')",
        "p.endswith('a')", "p.strip('L')", "p.lstrip('L')", "p.rstrip('a')", "p.isalpha()", "p.isupper()",
        "p.index('a')", "p.partition(' ')", "p.rpartition(' ')", "p.join('xy')", "p.center(12)", "p.ljust(9)",
        "p.encode()", "p.casefold()", "p.splitlines()", "p.rsplit()", "p.removeprefix('L')", "p.zfill(9)",
        "p.removesuffix('a')", "p.rfind('a')", "p.rindex('a')", "p.isspace()", "p.istitle()", "p.isdigit()",
        "p.isnumeric()", "p.isidentifier()", "p.islower()", "p.isalnum()", "p.isascii()", "p.isdecimal()",
        "p.isprintable()", "p.expandtabs()", "p.translate({97: 'o'})", "p.format()", "len(p)", "p + 'c'", "p * 2",
        "p[0]", "p[::-1]", "list(p)", "set(p)", "sorted(p)", "max(p)", "ord(p[0])", "'a' in p", "p == 'early a'",
        "p < 'a'", "'{}'.format(p)", "f'{p!r:>9}'", "'%s' % p", "' '.join([p])", "'b'.join(p)", "{p: 1}[p]",
        "{'Late b': 1}.get(p)", "getattr(box, p, 0)", "hasattr(box, p)", "p.maketrans('a', 'b')", "print(p)",
        "'x'.split(p)", "'Late b!'.replace(p, '')", "'Late b'.startswith(p)", "'Late b'.count(p)", "bool(p)"]),
    "lists": ("[3, 1, 2]", "[2, 5]", ["p.copy()", "p.count(2)", "p.index(2)", "sorted(p)", "sum(p)", "max(p)",
        "len(p)", "p + [1]", "p * 2", "p[0]", "p[-1]", "p[1:]", "list(reversed(p))", "tuple(p)", "set(p)", "str(p)",
        "list(zip(p, p))", "list(enumerate(p))", "dict(zip(p, p))", "any(p)", "all(p)", "min(p)", "2 in p",
        "p == [2, 5]", "p < [3]", "torch.tensor(p)", "w[p[0] % 2]", "[k + 1 for k in p]", "list(map(str, p))",
        "list(filter(None, p))", "[*p, 1]", "max(*p)", "bool(p)", "torch.zeros(p)", "sorted(p, reverse=True)",
        "sorted(p, key=lambda k: -k)", "p.append(1)", "p.extend([1])", "p.insert(0, 1)", "p.remove(2)", "p.pop()",
        "p.reverse()", "p.sort()", "p.clear()", "p.pop(0)", "p.__len__()", "sum(k * 2 for k in p)", "x.sum(p[0] - 2)"]),
    "tuples": ("(0, 1)", "(1,)", ["p.count(1)", "p.index(1)", "p + (2,)", "p * 2", "p[0]", "p[-1]", "len(p)", "list(p)",
        "p == (1,)", "1 in p", "sum(p)", "x.sum(p)", "x.mean(p)", "x.amax(p)", "torch.zeros(p)", "x.flip(p)", "max(p)",
        "x.permute(*p)", "torch.ones(2).reshape(p + (2,))", "(*p, 3)", "x[p]", "torch.linalg.norm(x, dim=p)", "hash(p)"]),
    "dicts": ("{'a': 1, 'b': 2}", "{'a': 5, 'c': 1}", ["p['a']", "p.get('b')", "p.get('b', 7)", "list(p)", "p.keys()",
        "list(p.values())", "list(p.items())", "len(p)", "'b' in p", "p | {'d': 1}", "p.copy()", "dict(p)", "str(p)",
        "p == {'a': 1}", "sorted(p)", "max(p.values())", "sum(p.values())", "{**p, 'z': 0}", "list(reversed(p))",
        "p.setdefault('b', 9)", "p.pop('b', 9)", "p.popitem()", "p.update(z=1)", "p.clear()", "min(p, key=p.get)",
        "{k: v for k, v in p.items()}", "torch.tensor(p['a'])", "w * p['a']", "x.sum(**{'dim': p['a'] % 2})", "bool(p)"]),
    "sets": ("{1, 2}", "{2, 5, 7}", ["p | {1}", "p & {1}", "p - {1}", "p ^ {1}", "1 in p", "len(p)", "sorted(p)", "max(p)",
        "p.union([9])", "p.intersection([2])", "p.difference([2])", "p.symmetric_difference([2])", "p.issubset({1, 2})",
        "p.issuperset({1})", "p.isdisjoint({1})", "p.copy()", "p == {1, 2}", "p <= {1, 2, 3}", "sum(p)", "frozenset(p)",
        "p.add(9)", "p.discard(2)", "p.remove(2)", "p.clear()", "p.update([8])", "bool(p)", "list(map(float, sorted(p)))"]),
    "functions": ("abs", "float", ["p(-2)", "list(map(p, [-1]))", "[p(k) for k in (-1, 2)]", "p is abs", "callable(p)"]),
    "functions of tensors": ("torch.relu", "torch.tanh", ["p(w)", "p(w - 1).sum()", "list(map(p, [w]))[0]", "p(p(w))",
        "(lambda f: f(w))(p)", "functools.partial(p, w)()", "p is torch.relu", "p(x).sum(0)"]),
    "functions of the program": ("double", "triple", ["p(w)", "p(2)", "p(x).sum()", "p(w) * p(i)", "p is double", "p.__name__"]),
    "dtypes": ("torch.float32", "torch.float64", ["w.to(p)", "x.sum(dtype=p)", "torch.zeros(2, dtype=p)", "w.dtype == p",
        "torch.tensor(1.5, dtype=p)", "torch.finfo(p).eps", "w.type(p)", "torch.softmax(x, 1, dtype=p)", "str(p)",
        "p.is_floating_point", "p.itemsize", "torch.arange(3, dtype=p)", "torch.ones_like(w, dtype=p)", "torch.rand(2, dtype=p)"]),
    "None": ("None", "0", ["x.sum(p)", "p is None", "p or 3", "x.softmax(p or 0)", "x.mean(p)", "x.amax(p or 0)", "w if p is None else x",
        "x.std(p)", "torch.norm(x, dim=p)", "x.squeeze(p or 0)", "F.normalize(x, dim=p or 1)", "x.argmax(p)", "[p]", "(p, w)"]),
    "truths": ("True", "False", ["x.sum(0, keepdim=p)", "p + 1", "not p", "w * p", "F.dropout(w, 0.5, p)", "1 if p else 2", "p and w",
        "x.std(0, unbiased=p)", "int(p)", "str(p)", "torch.tensor(p)", "p | False", "x.sort(descending=p)[0]", "w if p else x",
        "F.dropout(w, 0.5, training=p)", "torch.ones(2, requires_grad=p)", "(w * 1).detach() if p else w * 1", "p ^ True"]),
    "tensors": ("w", "x", ["p * 2", "p.sum()", "p.shape", "p.dim()", "p.numel()", "len(p)", "p.requires_grad", "p.is_leaf", "p @ w",
        "p.t()", "p.mean(0)", "p is w", "p.size(0)", "torch.cat([p, p])", "p.tolist()", "p.dtype", "p.stride()", "p.reshape(-1)",
        "p.grad", "p.clone()", "p.detach()", "p.max()", "torch.equal(p, w)", "p.expand_as(x)", "p + w", "p.new_zeros(2)", "p.data"]),
    "tensors that differ": ("w.detach()", "torch.ones(3)", ["p * 2", "p.sum()", "p.shape[0]", "p.flip(0)", "p.argmax()", "p.cumsum(0)",
        "torch.outer(p, p)", "p.softmax(0)", "torch.diag(p)", "p.view(-1, 1)", "p[None]", "p[-1]", "p.std()", "p.norm()", "p.sort()[0]",
        "p.float()", "p.double()", "p.max(0)", "F.relu(p)", "p.pow(2).sum().backward if p.requires_grad else p", "p.nonzero()"]),
}  # fmt: skip
"""What `p` is at first, what it becomes, and the expressions in it."""

MATH = sorted(name for name in vars(math) if callable(getattr(math, name)) and name[0] != "_")

NUMPY = ["sqrt", "exp", "log", "sin", "cos", "tan", "abs", "floor", "ceil", "round", "sign", "tanh", "log2", "log10", "log1p",
         "expm1", "square", "isnan", "isinf", "isfinite", "arctan", "float32", "float64", "int64", "mean", "sum", "max", "min",
         "array", "asarray", "clip", "power", "maximum", "minimum", "mod", "prod", "std", "var", "median", "linspace", "arange",
         "zeros", "ones", "full", "argmax", "cumsum", "dot", "isclose", "allclose", "hypot", "arctan2", "fmod", "deg2rad"]  # fmt: skip

HEAD = """\
import functools
import math
import numpy as np
import torch
from torch import nn, tensor, ones, zeros, arange
import torch.nn.functional as F
torch.manual_seed(0)
w = torch.tensor([1.5, -2.])
x = torch.tensor([[1., 2.], [3., -1.]])
t, n, kept = torch.zeros(2), 0.0, []
class Box: early = 1
box = Box()
def double(v): return v * 2
def triple(v): return v * 3
"""

USES = {
    "kept": ["    q = {call}", "    t = t * 0.5 + w", "    kept.append(q)"],
    "overwritten": ["    q = {call}", "    t = t * 0.5 + w"],
    "number": ["    q = {call}", "    t = t * 0.5 + w * float(q)"],
    "printed": ["    t = t * 0.5 + w", "    if i % 20 == 0 or i == 101: print({call})"],
    "called": ["    t = t * 0.5 + w", "    q = call(p, i)", "    n = len(str(q))"],
}
"""What becomes of the value."""


def _calls() -> Iterator[tuple[str, str, str]]:
    for first, then, expressions in ARGUMENTS.values():
        for expression in expressions:
            yield expression, first, then
    for name in MATH:
        for first, then in (("0.5", "0.25"), ("3", "5")):
            yield f"math.{name}(p)", first, then
            yield f"math.{name}(p, 2)", first, then
            yield f"math.{name}(4, p)", first, then
    for name in NUMPY:
        yield f"np.{name}(p)", "0.5", "0.25"
        yield f"np.{name}([p, 1.])", "0.5", "0.25"
        yield f"np.{name}(p, 2)", "3", "4"


def lates_of_arguments() -> Iterator[Late]:
    """Each call with each use, the ways in turn."""
    turn = 0
    session = Session()
    for _ in session.run(HEAD + "i = 0\n", "settings"):
        pass
    for call, first, then in _calls():
        kind = _kind(session, call, first)
        if kind is None:
            continue
        for use, lines in USES.items():
            if use == "number" and kind not in ("int", "float", "bool"):
                continue
            turn += 1
            way = list(WAYS)[turn % len(WAYS)]
            head = HEAD + (f"def call(p, i):\n    return {call}\n" if use == "called" else "")
            yield Late(
                f"{call}, {first} to {then}, {use}, {way}",
                head + _looped([*WAYS[way], *lines], call, first, then),
            )


def _kind(session: Session, call: str, first: str) -> str | None:
    """The type of a call's value, None where it fails from the first."""
    try:
        for _ in session.run(f"p = {first}\nfound = {call}\n", "settings"):
            pass
    except GradcliError:
        return None
    return type(session.values["found"]).__name__


def _looped(lines: list[str], call: str, first: str, then: str) -> str:
    text = "\n".join(lines)
    if text.startswith("for p in"):
        text = "i = 0\n" + text + "\n    i += 1"
    given = {
        "call": call, "first": first, "then": then, "late": str(LATE), "rounds": str(ROUNDS),
        "more": str(ROUNDS - LATE),
    }  # fmt: skip
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", value)
    return text + "\n"


# --- layers ---------------------------------------------------------------------------------------

CHANGES = {
    "if": ["for i in range({rounds}):", "    if i == {late}: {change}"],
    "once": ["for i in range({rounds}):", "    if i == {late}: {change}", "    if i == {late} + 3: {back}"],
    "called": ["def change(i):", "    if i == {late}: {change}", "for i in range({rounds}):", "    change(i)"],
}  # fmt: skip
"""How an attribute changes: for good, for three iterations, in a function."""

_STEPS = {
    "used": ["    q = layer({operands})", "    t = t + q.sum().item()"],
    "overwritten": ["    q = layer({operands})"],
    "differentiated": ["    q = layer({operands})", "    (q * 0.01).sum().backward()"],
}


def lates_of_layers() -> Iterator[Late]:
    """Each setting of each layer that gives one tensor."""
    bring_all()
    turn = 0
    for name in catalogue.modules["torch.nn"]:
        for made, operands in _layer(name):
            session = Session()
            try:
                for _ in session.run(
                    f"{HEAD}layer = {made}\nfound = layer({operands}).sum()\n", "layer"
                ):
                    pass
            except GradcliError:
                continue
            layer = session.values["layer"]
            for attribute, value, other in _attributes(layer):
                for use, lines in _STEPS.items():
                    turn += 1
                    way = list(CHANGES)[turn % len(CHANGES)]
                    text = f"{HEAD}t = 0.\nlayer = {made}\n"
                    if use == "differentiated":
                        text += "".join(f"x{k}.requires_grad_()\n" for k in range(0))
                        if not any(True for _ in layer.parameters()):
                            continue
                    body = "\n".join([*CHANGES[way], *lines]).replace("{operands}", operands)
                    text += _filled(body, f"layer.{attribute} = ", value, other)
                    yield Late(f"{made} {attribute}: {value} to {other}, {use}, {way}", text)


def _filled(body: str, place: str, value: str, other: str) -> str:
    body = body.replace("{change}", place + other).replace("{back}", place + value)
    return body.replace("{rounds}", str(ROUNDS)).replace("{late}", str(LATE)) + "\n"


def _layer(name: str) -> Iterator[tuple[str, str]]:
    """The source of a layer and of its operands, where its page's example calls it."""
    found = find(f"nn.{name}", lambda module: catalogue.modules[module])
    if found is None or not isinstance(found.value, type) or not issubclass(found.value, Module):
        return
    *_, last = example_of(found).split("\n")
    try:
        tree = ast.parse(last, mode="eval").body
    except SyntaxError:
        return
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Call):
        yield ast.unparse(tree.func), ", ".join(map(ast.unparse, tree.args))
    elif name in _OPERANDS and isinstance(tree, ast.Call):
        yield ast.unparse(tree), _OPERANDS[name]


_OPERANDS = {
    "Linear": "x", "BatchNorm1d": "x", "LayerNorm": "x", "Dropout": "x", "Embedding": "arange(2)",
}  # fmt: skip
"""What layers are called with whose examples do not."""


def _attributes(layer: Module) -> Iterator[tuple[str, str, str]]:
    """The settings of a layer: name, value, another value."""
    yield "training", "True", "False"
    for name, value in vars_(layer).items():
        if isinstance(value, (bool, int, float, str, tuple)) or value is None:
            for other in others(name, repr(value))[:1]:
                yield name, repr(value), other
        elif hasattr(value, "array"):
            yield name, f"nn.Parameter(layer.{name}.data)", f"nn.Parameter(layer.{name}.data * 2)"


# --- optimizers -----------------------------------------------------------------------------------

OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam",
              "ASGD", "Rprop"]  # fmt: skip

SCHEDULES = {
    "StepLR": "7, gamma=0.9", "ExponentialLR": "0.97", "MultiStepLR": "[50, 110]",
    "CosineAnnealingLR": "20", "LinearLR": "0.5, total_iters=110", "ConstantLR": "0.5, total_iters=110",
    "PolynomialLR": "150", "CyclicLR": "0.01, 0.1, 9", "OneCycleLR": "0.1, total_steps=130",
    "CosineAnnealingWarmRestarts": "9", "LambdaLR": "lambda e: 1 / (1 + e)",
    "MultiplicativeLR": "lambda e: 0.98",
}  # fmt: skip

_TRAINING = [
    "    optimizer.zero_grad()",
    "    ((v * v).sum() + (v * 0.1 * i).sum()).backward()",
    "    optimizer.step()",
]


def lates_of_optimizers() -> Iterator[Late]:
    """Each setting of each optimizer and schedule."""
    for name in OPTIMIZERS:
        for extra in ("", ", momentum=0.9") if name in ("SGD", "RMSprop") else ("",):
            made = f"optimizer = torch.optim.{name}([v], lr=0.01{extra})"
            group = _made(made)["optimizer"].param_groups[0]
            places = {
                f"optimizer.param_groups[0]['{key}']": value
                for key, value in group.items()
                if key != "params"
            }
            yield from _changed(made, places, _TRAINING)
    for name, given in SCHEDULES.items():
        made = "optimizer = torch.optim.SGD([v], lr=0.05, momentum=0.9)\n"
        made += f"schedule = torch.optim.lr_scheduler.{name}(optimizer, {given})"
        schedule = _made(made)["schedule"]
        names = [
            key for key in dir(schedule) if key[0] != "_" or key in ("_step_count", "_last_lr")
        ]
        found = {f"schedule.{key}": getattr(schedule, key, None) for key in names}
        steps = [*_TRAINING, "    schedule.step()"]
        yield from _changed(made, {"optimizer.param_groups[0]['lr']": 0.05, **found}, steps)


_LEAF = "v = torch.tensor([1., -2.], requires_grad=True)\n"


def _made(made: str) -> dict[str, Any]:
    session = Session()
    for _ in session.run(f"{HEAD}{_LEAF}{made}\n", "optimizer"):
        pass
    return session.values


def _changed(made: str, places: dict[str, Any], steps: list[str]) -> Iterator[Late]:
    for place, value in places.items():
        if not isinstance(value, (bool, int, float, tuple, list, str)):
            continue
        known = others("", repr(value))
        if isinstance(value, (tuple, list)) and value and isinstance(value[0], float):
            known = [repr(type(value)(each * 0.5 for each in value))]
        for other in known[:1]:
            for way, lines in CHANGES.items():
                text = _filled("\n".join([*lines, *steps]), f"{place} = ", repr(value), other)
                said = f"{made.splitlines()[-1]} {place}: {value!r} to {other}, {way}"
                yield Late(said, f"{HEAD}{_LEAF}{made}\n{text}")


def lates() -> Iterator[Late]:
    """All of them."""
    yield from lates_of_arguments()
    yield from lates_of_layers()
    yield from lates_of_optimizers()
