"""Builtin functions and lists in an iteration that is captured."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from gradcli.arrays.layout.strides import copied_as_it_lies
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import set_attribute
from gradcli.language.objects.iteration import Iterator
from gradcli.language.objects.methods import METHODS
from gradcli.library.builtins import BUILTINS
from gradcli.library.python.numbers.math import MATH
from gradcli.loops.capture import Capture
from gradcli.loops.kinds import bar_class, module_class, state_dict_class
from gradcli.loops.symbols import ALL_VIEWS, concrete, holds_tensor, is_symbolic
from gradcli.loops.walk.operation import Callee, Handlers, host_call
from gradcli.loops.walk.reading import Drawn, described
from gradcli.ops.creation import tensor_methods
from gradcli.trace.ir import Effect, GraphBreak, Inline, Kernel, Operand, placeholder

OF_NUMBERS = frozenset(
    {"abs", "bool", "divmod", "float", "format", "int", "len", "max", "min", "pow", "repr"}
    | {"round", "str", "sum"}
)
"""The builtin functions that compute numbers and text of what they are given, and do no more."""


_TOTAL = frozenset({"abs", "bool", "float", "format", "max", "min", "repr", "str", "sum"})
"""Those that fail for no numbers, having not failed for others."""

_OF_COLLECTIONS = frozenset(
    {"all", "any", "callable", "dict", "enumerate", "filter", "isinstance", "issubclass", "list"}
    | {"map", "range", "reversed", "set", "slice", "sorted", "tuple", "type", "zip"}
)
"""The builtin functions that go through what they are given, and do no more."""

_COPY = Kernel("copy", copied_as_it_lies, raises=False)

_MOVING = frozenset({"dict", "enumerate", "list", "reversed", "tuple", "zip"})
"""Those that hand on what they go through, and look at none of it."""

_MOVE = frozenset(
    {"append", "clear", "copy", "extend", "insert", "items", "keys", "pop", "reverse", "update"}
    | {"values"}
)
"""The methods of lists and dicts that look at none of the values in them."""

_WORDS = frozenset(
    {"set_description", "set_description_str", "set_postfix", "set_postfix_str", "write"}
)
"""The methods of a bar that print, or set its words: twice, to the same."""

_READS = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
"""Those that change nothing."""

_MADE = ALL_VIEWS | {list, dict, set}
"""What a call makes anew, so that a program that keeps it sees another one in every iteration."""


def _print_call(walk: Capture, callee: Callee) -> Any:
    """`print(…)`, `bar.set_postfix(…)`."""
    for each in callee.passed:
        walk.rely_on(each, deep=True)
        walk.check_shown(each)
    walk.recorded(callee.operation, callee.operands)
    operands: list[Any] = []

    def record() -> None:
        text = walk.builder.written_call(
            operands, callee.function, callee.positional, callee.keywords
        )
        walk.builder.effect(Inline(text, "print"), operands, shows=())

    walk.attempt(record)


def _is_of_bar(callee: Callee) -> bool:
    return isinstance(getattr(callee.function, "__self__", None), bar_class())


def _read_clock(walk: Capture, callee: Callee) -> Any:
    """`time.perf_counter()`: what lies between two readings stays there."""
    now = walk.clock.read(callee.function)
    read, operands = Inline("{0}({1})", "clock", raises=False), [walk.clock.read, callee.function]
    return walk.either(now, walk.builder.compute, read, operands, now, True, {Effect.CLOCK: ()})


def _append(walk: Capture, callee: Callee) -> Any:
    """`values.append(value)`."""
    values = callee.receiver
    if id(values) in walk.local or len(callee.positional) != 1:
        return _change_list(walk, callee)
    walk.recorded(callee.operation, callee.operands)
    operands: list[Any] = []

    def record() -> None:
        if id(values) in walk.guard.contents:
            raise GraphBreak("a list is gone through that the iteration appends to")
        text = _escaping_text(walk, callee.positional[0], operands)
        append, to = placeholder(operands, callee.function), placeholder(operands, values)
        op = Inline(f"{append}({to}, {text})", "append")
        walk.builder.effect(op, operands, state=())
        walk.grown.append(values)

    return walk.attempt(record)


def _escaping_text(walk: Capture, value: Any, operands: list[Operand]) -> str:
    """The text of a value that outlives the iteration."""
    value = walk.builder.known(value)
    if type(value) is tuple or (type(value) in (list, dict) and id(value) in walk.local):
        return walk.kept_text(value, operands, partial(_escaping_text, walk))
    return walk.builder.written(_escaping(walk, value), operands)


def _escaping(walk: Capture, value: Any) -> Any:
    """A value that outlives the iteration, in its own memory; GraphBreak for a graph."""
    if type(value) is not Tensor:
        if id(value) in walk.local or (
            isinstance(value, tuple) and holds_tensor([*value], Iterator)
        ):
            raise GraphBreak("an object that the iteration makes is kept")
        return value
    if value in walk.builder.objects or not walk.builder.has(value) or value in walk.guard.tensors:
        return value
    if value.requires_grad:
        raise GraphBreak(
            "a tensor is kept with its graph, which grows from iteration to iteration",
            "keep `loss.item()` or `loss.detach()`",
        )
    walk.recorder.escaped.append(value)
    outer = [each.array for each in (*walk.guard.tensors, *walk.builder.objects)]
    shares = any(np.may_share_memory(value.array, each) for each in outer)
    if not isinstance(value.array, np.ndarray) or value.base is not None or shares:
        return value
    copied = Tensor(copied_as_it_lies(value.array))
    if value.name is not None:
        copied.set_name(value.name)
    if value.version:
        storage_of(copied).version = value.version
    walk.builder.call(_COPY, [walk.builder.of(value)], result=copied.array)
    return copied


def _change_list(walk: Capture, callee: Callee) -> Any:
    """A method of a list, dict or set that the iteration made, or that only reads."""
    owner = callee.receiver
    if callee.name not in _READS:
        walk.check_unkept(owner)
    if id(owner) in walk.local and callee.name in _MOVE:
        return _drawn(walk, walk.moved(callee.operation, callee.operands))
    if id(owner) in walk.local or callee.name in _READS:
        walk.rely_on(owner)
        return _drawn(walk, walk.evaluate(callee.operation, callee.operands))
    walk.refuse(f"`{callee.name}` changes a {type(owner).__name__} from outside the iteration")
    return walk.evaluate(callee.operation, callee.operands)


def _read_state(walk: Capture, callee: Callee) -> Any:
    """A method of what `model.state_dict()` gave."""
    if id(callee.function.__self__) not in walk.local:
        walk.refuse(
            "a state from before the iteration is used",
            "take it where it is used: `for name, value in model.state_dict().items()`",
        )
    elif callee.name not in ("items", "keys", "values"):
        walk.refuse(f"`{callee.name}` of a state")
    return _drawn(walk, walk.evaluate(callee.operation, callee.operands))


def _drawn(walk: Capture, value: Any) -> Any:
    if type(value) in _MADE:
        walk.local[id(value)] = value
    return walk.handed_out(value)


def _of_numbers(walk: Capture, callee: Callee) -> Any:
    """`abs`, `max`, `round`, functions of `math`, methods of strings."""
    for each in callee.passed:
        walk.rely_on(each, deep=True)
    generated = walk.generated_in(callee.passed)
    if generated:
        return _of_generated(walk, callee, generated)
    if len(callee.passed) == 1 and type(callee.passed[0]) in ALL_VIEWS:
        values = walk.handed_out(tuple(callee.passed[0]))
        if is_symbolic(values):
            now, function = walk.recorded(callee.operation, callee.operands), callee.function
            total = callee.name in _TOTAL
            return walk.computed(lambda *numbers: function(numbers), values, now, not total)
    functions = [each for each in callee.passed if type(each) is Function]
    if functions:  # which the host calls, and whose results it compares
        for each in functions:
            walk.walked(each)
        return _drawn(walk, walk.evaluate(callee.operation, callee.operands))
    tensors = holds_tensor(callee.passed, Iterator)
    in_words = callee.name in ("str", "repr", "format")
    varies = any(map(walk.builder.varies, callee.passed))
    if not (varies or (tensors and in_words)) or (callee.name == "len" and tensors):
        return _drawn(walk, walk.recorded(callee.operation, callee.operands))
    if not tensors or in_words:
        for each in callee.passed:
            walk.check_shown(each)
        now = walk.unheard(callee.operation, callee.operands)
        return walk.computed(callee.operation, callee.operands, now, callee.name not in _TOTAL)
    if callee.name in ("float", "int", "bool") and len(callee.passed) == 1:
        return _taken_number(walk, callee)
    return host_call(walk, callee)


def _of_generated(walk: Capture, callee: Callee, generated: list[Drawn]) -> Any:
    """`sum(p.norm().item() for p in parameters)`, and `sum` of tensors."""
    for each in generated:
        each.is_recorded = True
    now = walk.recorded(callee.operation, callee.operands)
    values = generated[0].values
    if not any(map(is_symbolic, values)):
        if holds_tensor(values, Iterator) and type(now) is not Tensor:
            walk.refuse(f"`{callee.name}` compares tensors")
        return now
    if len(callee.passed) > 1 or holds_tensor(values, Iterator):
        walk.refuse(f"`{callee.name}` of numbers that vary beside other things")
        return now
    function, count = callee.function, len(values)
    return walk.computed(
        lambda *numbers: function(numbers[:count]), values, now, callee.name not in _TOTAL
    )


def _taken_number(walk: Capture, callee: Callee) -> Any:
    """A number that is taken out of a tensor: `loss.item()`, `float(loss)`."""
    with walk.recorder.taking() as tensors:
        number = walk.recorded(callee.operation, callee.operands)
    if walk.broken is not None:
        return number
    if len(tensors) != 1 or type(number) not in (int, float, bool):
        walk.refuse(f"`{callee.name}` of a tensor", span=callee.node.span)
        return number
    text = "{0}.item()"
    if type(number) is not type(tensors[0].item()):
        text = f"{type(number).__name__}({text})"

    def record() -> Any:
        array = walk.builder.value_of(tensors[0])
        op = Inline(text, "item", raises=text.startswith("int"))  # of NaN
        return walk.builder.compute(op, [array], number, True)

    return walk.either(number, record)


def _of_collections(walk: Capture, callee: Callee) -> Any:
    """`enumerate`, `zip`, `list`, `range`, `isinstance`."""
    for each in callee.passed:
        walk.rely_on(each)
        if type(each) is Function:
            walk.walked(each)
        if isinstance(each, module_class()):
            walk.rely_on_module(each)
        elif callee.name in ("enumerate", "zip") and type(each) not in (int, tuple, list, dict):
            walk.check_drawn(each)
    if callee.name == "type" and len(callee.passed) > 1:
        walk.refuse("a class is defined")
    if callee.name in ("isinstance", "type", "callable"):
        return walk.recorded(callee.operation, callee.operands)
    function = callee.positional[0] if callee.name in ("map", "filter") else None
    moves = callee.name in _MOVING or type(function) is Function
    for drawn in walk.generated_in(callee.passed):
        drawn.looks = not moves
    return _drawn(walk, (walk.moved if moves else walk.evaluate)(callee.operation, callee.operands))


def _getattr_call(walk: Capture, callee: Callee) -> Any:
    """`getattr(value, name)`."""
    if len(callee.positional) != 2:
        walk.refuse("`getattr` with a default")
        return walk.evaluate(callee.operation, callee.operands)
    owner, name = callee.positional
    owner, name = walk.exact(owner, looks=False), walk.exact(name)
    operands = [callee.operands[0], owner, name]
    return walk.read_attribute(owner, name, lambda: walk.moved(callee.operation, operands))


def _next_call(walk: Capture, callee: Callee) -> Any:
    """`next(values)`."""
    values = callee.positional[0] if callee.positional else None
    if any(values is each for each in walk.constants.values()):
        walk.refuse(
            f"`next` draws from {described(values)}, which goes on from iteration to iteration",
            "draw in the head of the loop: `for batch in loader`",
        )
    return host_call(walk, callee)


def _setattr_call(walk: Capture, callee: Callee) -> Any:
    """`setattr(value, name, new)`."""
    owner, name, new = callee.positional
    walk.put(owner, walk.exact(name), new, set_attribute)


_CLOCKS = {
    id(each)
    for each in (
        time.perf_counter,
        time.perf_counter_ns,
        time.process_time,
        time.time,
        time.time_ns,
    )
}
_NUMBERS_OF = {id(each) for each in MATH.values() if callable(each)} | {
    id(BUILTINS[name]) for name in OF_NUMBERS
}
_COLLECTIONS_OF = {id(BUILTINS[name]) for name in _OF_COLLECTIONS}

READING = frozenset(
    {_append, _change_list, _getattr_call, _of_collections, _of_numbers, _setattr_call}
)
"""Those of them after which nothing has changed but what was recorded."""

BUILTIN_CALLS: Handlers = [
    (lambda c: c.function is tensor_methods.item, _taken_number),
    (lambda c: c.function is BUILTINS["print"], _print_call),
    (lambda c: id(c.function) in _CLOCKS and not c.passed, _read_clock),
    (lambda c: _is_of_bar(c) and c.name in _WORDS, _print_call),
    (lambda c: c.function is BUILTINS["getattr"], _getattr_call),
    (lambda c: c.function is BUILTINS["next"], _next_call),
    (lambda c: c.function is BUILTINS["setattr"], _setattr_call),
    (lambda c: c.function is METHODS[list]["append"], _append),
    (lambda c: type(c.receiver) in (list, dict, set), _change_list),
    (lambda c: type(getattr(c.function, "__self__", None)) is state_dict_class(), _read_state),
    (lambda c: id(c.function) in _NUMBERS_OF, _of_numbers),
    (lambda c: type(concrete(c.receiver)) in (str, int, float, bool), _of_numbers),
    (lambda c: id(c.function) in _COLLECTIONS_OF, _of_collections),
]
