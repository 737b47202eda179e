"""Builtin functions and lists in an iteration that is captured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.language.functions.calls import Function
from gradcli.language.library.builtins import BUILTINS
from gradcli.language.loops.holes import HOLES, Drawn, numbered
from gradcli.language.loops.kinds import module_class
from gradcli.language.loops.symbols import Symbol, concrete, is_symbolic
from gradcli.language.loops.walk.callee import Callee
from gradcli.language.loops.walk.host_calls import host_call
from gradcli.language.objects.attributes import set_attribute
from gradcli.language.objects.iteration import Iterator
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.ir import Inline, Kernel

if TYPE_CHECKING:
    from gradcli.language.loops.capture import Capture


OF_NUMBERS = frozenset(
    {"abs", "bool", "divmod", "float", "format", "int", "len", "max", "min", "pow", "repr"}
    | {"round", "str", "sum"}
)
"""The builtin functions that compute numbers and text of what they are given, and do no more."""


_TOTAL = frozenset({"abs", "bool", "float", "format", "max", "min", "repr", "str", "sum"})
"""Those that fail for no numbers, having not failed for others."""

OF_COLLECTIONS = frozenset(
    {"all", "any", "callable", "dict", "enumerate", "filter", "isinstance", "issubclass", "list"}
    | {"map", "range", "reversed", "set", "slice", "sorted", "tuple", "type", "zip"}
)
"""The builtin functions that go through what they are given, and do no more."""


def print_call(walk: Capture, callee: Callee) -> Any:
    """`print(…)`."""
    for each in callee.given:
        walk.rely_on(each)
        walk.check_shown(each)
    walk.evaluate(callee.hole, callee.operands)
    operands: list[Any] = []

    def record() -> None:
        given = [walk.builder.written(each, operands) for each in callee.positional]
        for name, each in callee.keywords.items():
            given.append(f"{name}={walk.builder.written(each, operands)}")
        op = Inline(f"{{{len(operands)}}}({', '.join(given)})", "print")
        walk.builder.effect(op, [*operands, callee.function], shows=())

    walk.attempt(record)


def append_to(walk: Capture, callee: Callee) -> Any:
    """`values.append(value)`."""
    if id(callee.receiver) in walk.local or len(callee.positional) != 1:
        return change_list(walk, callee)
    return _append(walk, callee)


def _append(walk: Capture, callee: Callee) -> None:
    """The same for a list from outside."""
    values, (value,) = callee.receiver, callee.positional
    walk.evaluate(callee.hole, callee.operands)
    operands: list[Any] = []

    def record() -> None:
        if id(values) in walk.guard.contents:
            raise GraphBreak("B06", "a list is gone through that the iteration appends to")
        escaping = _escaping(walk, value)
        text = walk.builder.written(escaping, operands)
        op = Inline(f"{{{len(operands)}}}({{{len(operands) + 1}}}, {text})", "append")
        walk.builder.effect(op, [*operands, callee.function, values], state=())
        walk.grown.append(values)

    walk.attempt(record)


def _escaping(walk: Capture, value: Any) -> Any:
    """A value that outlives the iteration, in its own memory; GraphBreak for a graph."""
    if type(value) is tuple:
        return tuple([_escaping(walk, each) for each in value])
    if type(value) is not Tensor or not walk.builder.varies(value):
        if id(value) in walk.local and type(value) is not Tensor:
            raise GraphBreak("B06", "a list or object that the iteration makes is kept")
        return value
    if value.requires_grad:
        raise GraphBreak(
            "B06",
            "a tensor is kept with its graph, which grows from iteration to iteration",
            "keep `loss.item()` or `loss.detach()`",
        )
    walk.recorder.escaped.append(value)
    if not isinstance(value.array, np.ndarray):
        return value
    copied = Tensor(value.array.copy())
    walk.builder.call(Kernel("copy", np.copy), [walk.builder.of(value)], result=copied.array)
    return copied


def change_list(walk: Capture, callee: Callee) -> Any:
    """A method of a list, dict or set that the iteration made, or that only reads."""
    owner = callee.receiver
    if id(owner) in walk.local:
        if any(map(walk.is_lost, callee.given)):
            walk.refuse("integers or strings that vary are put into a list or dict")
        return _drawn(walk, walk.evaluate(callee.hole, callee.operands))
    if callee.name in ("items", "keys", "values", "get", "copy", "index", "count"):
        walk.rely_on(owner)
        if any(map(is_symbolic, callee.given)):
            walk.refuse("an item at a place that varies")
        return _drawn(walk, walk.evaluate(callee.hole, callee.operands))
    walk.refuse(f"`{callee.name}` changes a {type(owner).__name__} from outside the iteration")
    return walk.evaluate(callee.hole, callee.operands)


def _drawn(walk: Capture, value: Any) -> Any:
    known = walk.builder.known(value)
    if known is value and type(value) in (list, dict, set):
        walk.local[id(value)] = value
    return known if type(known) is Symbol else walk.constant(value)


def is_one_of(function: Any, names: frozenset[str]) -> bool:
    return any(function is BUILTINS.get(name) for name in names)


def of_numbers(walk: Capture, callee: Callee) -> Any:
    """`abs`, `max`, `round`, functions of `math`, methods of strings."""
    for each in callee.given:
        walk.rely_on(each)
    generated = [
        walk.generated[e] for e in callee.given if type(e) is Iterator and e in walk.generated
    ]
    if generated:
        return _of_generated(walk, callee, generated)
    tensors = any(map(_holds_tensor, callee.given))
    in_words = callee.name in ("str", "repr", "format")
    varies = any(map(walk.builder.varies, callee.given))
    if not (varies or (tensors and in_words)) or (callee.name == "len" and tensors):
        return walk.evaluate(callee.hole, callee.operands)
    if not tensors or in_words:
        for each in callee.given:
            walk.check_shown(each)
        now = walk.unheard(callee.hole, callee.operands)
        whole = walk.compiler.expression(callee.hole, HOLES)
        return walk.computed(
            lambda *given: whole(numbered(given)),
            callee.operands,
            now,
            fails=callee.name not in _TOTAL,
        )
    if any(map(is_symbolic, callee.given)) and callee.name != "sum":
        walk.refuse("tensors and numbers that vary, together in a builtin function")
    if callee.name in ("float", "int", "bool") and len(callee.given) == 1:
        return taken_number(walk, callee)
    return host_call(walk, callee)


def _of_generated(walk: Capture, callee: Callee, generated: list[Drawn]) -> Any:
    """`sum(p.norm().item() for p in parameters)`, and `sum` of tensors."""
    for each in generated:
        each.wanted = True
    now = walk.evaluate(callee.hole, callee.operands)
    values = generated[0].values
    if not any(map(is_symbolic, values)):
        if any(map(_holds_tensor, values)) and type(now) is not Tensor:
            walk.refuse(f"`{callee.name}` compares tensors")
        return now
    if len(callee.given) > 1 or any(map(_holds_tensor, values)):
        walk.refuse(f"`{callee.name}` of numbers that vary beside other things")
        return now
    function, count = callee.function, len(values)
    return walk.computed(
        lambda *given: function(given[:count]), values, now, fails=callee.name not in _TOTAL
    )


def _holds_tensor(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds_tensor, value))
    return type(value) is Tensor or type(value) is Iterator


def taken_number(walk: Capture, callee: Callee) -> Any:
    """A number that is taken out of a tensor: `loss.item()`, `float(loss)`."""
    recorder = walk.recorder
    before, recorder.taken = recorder.taken, []
    try:
        number = walk.evaluate(callee.hole, callee.operands)
        found = recorder.taken
    finally:
        recorder.taken = before
    if walk.broken is not None:
        return number
    if len(found) != 1 or type(number) not in (int, float, bool):
        walk.refuse(f"`{callee.name}` of a tensor", span=callee.node.span)
        return number
    text = "{0}.item()"
    if type(number) is not type(found[0].item()):
        text = f"{type(number).__name__}({text})"

    def record() -> Any:
        array = walk.builder.value_of(found[0])
        return walk.builder.compute(Inline(text, "item"), [array], number)

    return walk.either(number, record)


def of_collections(walk: Capture, callee: Callee) -> Any:
    """`enumerate`, `zip`, `list`, `range`, `isinstance`."""
    for each in callee.given:
        walk.rely_on(each)
        if type(each) is Function:
            walk.walked(each)
        if isinstance(each, module_class()):
            walk.rely_on_module(each)
        elif callee.name in ("enumerate", "zip") and type(each) not in (int, tuple, list, dict):
            walk.check_drawn(each)
    if any(map(is_symbolic, callee.given)):
        if callee.name in ("isinstance", "type", "callable"):
            return walk.evaluate(callee.hole, callee.operands)
        walk.refuse(f"`{callee.name}` of numbers that vary")
    made = walk.evaluate(callee.hole, callee.operands)
    drawn = walk.generated_in(callee.given)
    decides = callee.name not in ("list", "tuple", "enumerate", "zip")
    if decides and any(is_symbolic(value) for each in drawn for value in each.values):
        walk.refuse(f"`{callee.name}` of numbers that vary")
    return _drawn(walk, made)


def getattr_call(walk: Capture, callee: Callee) -> Any:
    """`getattr(value, name)`."""
    given = callee.positional
    if len(given) != 2 or any(map(is_symbolic, given)):
        walk.refuse("`getattr` with a default")
        return walk.evaluate(callee.hole, callee.operands)
    return walk.read_attribute(
        given[0], given[1], lambda: walk.evaluate(callee.hole, callee.operands)
    )


def setattr_call(walk: Capture, callee: Callee) -> Any:
    """`setattr(value, name, new)`."""
    owner, name, new = callee.positional
    walk.put(owner, concrete(name), new, set_attribute)
