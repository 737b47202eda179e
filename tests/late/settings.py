"""Whatever else takes arguments or has settings: builtins, `math`, NumPy's functions of numbers,
methods of texts and containers, layers, optimizers and schedules. Each argument, attribute or entry
in turn becomes another one from an iteration on.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any

from gradcli.errors import GradcliError
from gradcli.library.builtins import builtin_vars
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.lookup import find
from gradcli.session import Session
from gradcli.show.help.ops import example_of
from tests.late.loop import LATE, ROUNDS, Late
from tests.late.ops import WAYS, others
from tests.late.texts import groups

MATH = sorted(name for name in vars(math) if callable(getattr(math, name)) and name[0] != "_")

NUMPY = """\
sqrt exp log sin cos tan abs floor ceil round sign tanh log2 log10 log1p expm1 square isnan isinf
isfinite arctan float32 float64 int64 mean sum max min array asarray clip power maximum minimum
mod prod std var median linspace arange zeros ones full argmax cumsum dot isclose allclose hypot
arctan2 fmod deg2rad
"""
"""Functions of NumPy that take numbers."""

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
    for title, expressions in groups("arguments.txt"):
        _, first, then = title.split(" :: ")
        for expression in filter(None, expressions):
            yield expression, first, then
    for name in MATH:
        for first, then in (("0.5", "0.25"), ("3", "5")):
            yield f"math.{name}(p)", first, then
            yield f"math.{name}(p, 2)", first, then
            yield f"math.{name}(4, p)", first, then
    for name in NUMPY.split():
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
    "once": [
        "for i in range({rounds}):",
        "    if i == {late}: {change}",
        "    if i == {late} + 3: {back}",
    ],
    "called": [
        "def change(i):",
        "    if i == {late}: {change}",
        "for i in range({rounds}):",
        "    change(i)",
    ],
}
"""How an attribute changes: for good, for three iterations, in a function."""

_STEPS = {
    "used": ["    q = layer({operands})", "    t = t + q.sum().item()"],
    "overwritten": ["    q = layer({operands})"],
    "differentiated": ["    q = layer({operands})", "    (q * 0.01).sum().backward()"],
}


def lates_of_layers() -> Iterator[Late]:
    """Each setting of each layer that gives one tensor."""
    bring_all()
    for name in catalogue.modules["torch.nn"]:
        for made, operands in _layer(name):
            session = Session()
            text = f"{HEAD}layer = {made}\nfound = layer({operands}).sum()\n"
            try:
                for _ in session.run(text, "layer"):
                    pass
            except GradcliError:
                continue
            yield from _of_layer(session.values["layer"], made, operands)


def _of_layer(layer: Module, made: str, operands: str) -> Iterator[Late]:
    turn = 0
    trains = any(True for _ in layer.parameters())
    for attribute, value, other in _attributes(layer):
        for use, lines in _STEPS.items():
            if use == "differentiated" and not trains:
                continue
            turn += 1
            way = list(CHANGES)[turn % len(CHANGES)]
            body = "\n".join([*CHANGES[way], *lines]).replace("{operands}", operands)
            text = _filled(body, f"layer.{attribute} = ", value, other)
            yield Late(
                f"{made} {attribute}: {value} to {other}, {use}, {way}",
                f"{HEAD}t = 0.\nlayer = {made}\n{text}",
            )


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
    for name, value in builtin_vars(layer).items():
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
    "CosineAnnealingLR": "20", "LinearLR": "0.5, total_iters=110",
    "ConstantLR": "0.5, total_iters=110",
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
    for name, given, optimizer in _scheduled():
        made = f"optimizer = torch.optim.{optimizer}\n"
        made += f"schedule = torch.optim.lr_scheduler.{name}(optimizer, {given})"
        schedule = _made(made)["schedule"]
        names = [
            key for key in dir(schedule) if key[0] != "_" or key in ("_step_count", "_last_lr")
        ]
        found = {f"schedule.{key}": getattr(schedule, key, None) for key in names}
        steps = [*_TRAINING, "    schedule.step()"]
        yield from _changed(made, {"optimizer.param_groups[0]['lr']": 0.05, **found}, steps)
        if "momentum" in optimizer:
            yield from _changed(made, {"optimizer.param_groups[0]['momentum']": 0.9}, steps)


def _scheduled() -> Iterator[tuple[str, str, str]]:
    """The schedules, with their arguments and optimizers: those of momentum have several."""
    for name, given in SCHEDULES.items():
        yield name, given, "SGD([v], lr=0.05, momentum=0.9)"
    for optimizer in ("SGD([v], lr=0.05, momentum=0.9, nesterov=True)", "Adam([v], lr=0.01)"):
        for name in ("CyclicLR", "OneCycleLR"):
            yield name, SCHEDULES[name], optimizer
    for least in ("0.0", "0.3"):
        turned = f"0.01, 0.1, 9, base_momentum={least}, max_momentum=0.9"
        yield "CyclicLR", turned, "SGD([v], lr=0.05, momentum=0.9, dampening=0.1)"


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
