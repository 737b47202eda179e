"""Operations and calls of the program over operands that have been evaluated, and what functions of
ours do in an iteration that is captured: they are heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from gradcli.autograd.modes import GradMode, is_grad_enabled
from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler.over_operands import Operation
from gradcli.language.functions.calls import Function
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.iteration import Iterator
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Variables
from gradcli.loops.capture import Capture
from gradcli.loops.kinds import distribution_class, goes_by_fields, module_class, walk_class
from gradcli.loops.lower_backward import is_setting
from gradcli.loops.symbols import SETTINGS
from gradcli.loops.walk.reading import described, functions_in
from gradcli.ops.definition.doc import RANDOM, WRITES

_DERIVATIVES = "gradcli.library.torch.func.derivatives"
"""Where functions that go through a graph of their own are made, as `vjp` gives one."""


class Callee(NamedTuple):
    """A call with its operands.

    Attributes:
        operation: the same, over the operands.
        name: its name, where it is a method or of a module.
        receiver: what it is a method of, None for nothing.
    """

    node: tree.Call
    operation: Operation
    function: Any
    name: str
    receiver: Any
    positional: list[Any]
    keywords: dict[str, Any]
    operands: list[Any]

    @property
    def arguments(self) -> list[Any]:
        """The arguments, the receiver of a method first."""
        return self.positional if self.receiver is None else [self.receiver, *self.positional]

    @property
    def passed(self) -> list[Any]:
        """Everything that is passed to the function."""
        return [*self.arguments, *self.keywords.values()]


Handlers = Sequence[tuple[Callable[[Callee], bool], Callable[[Capture, Callee], Any]]]
"""What records a call, by a condition on it: the first that holds is taken."""


_SIZES = frozenset(
    {"dim", "element_size", "is_contiguous", "is_floating_point", "ndimension", "nelement"}
    | {"numel", "size", "stride", "__len__"}
)
"""The methods of a tensor that go by what is guarded of it."""


def host_call(walk: Capture, callee: Callee) -> Any:
    """A call of a function of the library: the recorder hears what it does, and the results have to
    be among the values that were recorded.
    """
    for each in callee.passed:
        walk.rely_on(each, deep=True)
        if isinstance(each, module_class()):
            walk.rely_on_module(each)
        elif goes_by_fields(each):
            walk.rely_on_fields(each)
        for function in functions_in(each):
            walk.constant(function)
    for owner in (callee.function, getattr(callee.function, "__self__", None)):
        if goes_by_fields(owner):
            walk.rely_on_fields(owner)
    if _is_replayed(walk, callee):
        return _replayed(walk, callee)
    recorder = walk.recorder
    writes, draws = recorder.write_count, recorder.draw_count
    versions = [(each, each.version) for each in callee.passed if type(each) is Tensor]
    run = walk.heard if _draws_in_place(callee) else walk.evaluate
    value = run(callee.operation, callee.operands)
    if walk.broken is not None:
        return value
    if any(each.version - before > recorder.write_count - writes for each, before in versions):
        walk.refuse(f"`{_shown(callee)}` counts writes that are not recorded")
    if type(value) is Tensor:
        walk.builder.remember(value)
        if not walk.builder.has(value):
            has_done = recorder.write_count > writes or recorder.draw_count > draws
            if value.grad_fn is not None or has_done or not _is_ours(callee):
                walk.refuse(f"`{_shown(callee)}` gives a tensor that was not recorded")
            else:
                _record_whole(walk, callee, value)
    elif isinstance(value, (tuple, list)):
        _check_parts(walk, callee, value, recorder.draw_count > draws)
    elif isinstance(value, (int, float, str)) and not (
        (type(callee.receiver) is Tensor and callee.name in _SIZES)
        or callee.function is is_grad_enabled  # a mode, which is guarded
    ):
        walk.refuse(f"`{_shown(callee)}` gives a value that may be another one in every iteration")
    elif value is None and recorder.write_count == writes:
        walk.refuse(f"what `{_shown(callee)}` does is not recorded")
    elif isinstance(value, distribution_class()):
        walk.local[id(value)] = value
    elif (
        type(value) is FunctionType  # of those that it is called with, such as their vmap
        and any(type(each) in (Function, FunctionType) for each in callee.passed)
        and all(map(is_setting, callee.passed))
    ):
        walk.local[id(value)] = value
        if all(_is_made(walk, each) for each in callee.passed):
            walk.made[id(value)] = value, partial(_made_again, walk.made, callee)
    elif not isinstance(value, (GradMode, walk_class(), Iterator, int, type(None))):
        is_context = getattr(type(value), "language_context", False)
        what = "a context other than a grad mode" if is_context else described(value)
        walk.refuse(f"`{_shown(callee)}` makes {what}")
    if walk.broken is None and recorder.drew():
        walk.refuse(f"`{_shown(callee)}` draws random numbers")
    return value


def _draws_in_place(callee: Callee) -> bool:
    """Whether a call writes numbers that are drawn, of a distribution that other numbers describe:
    those that the draw itself is given are heard with it.
    """
    effects = getattr(callee.function, "effects", ())
    is_first = any(type(each) is Tensor for each in callee.arguments[:1])
    return is_first and RANDOM in effects and WRITES in effects


def _is_made(walk: Capture, value: Any) -> bool:
    """Whether a value is a setting, a function from outside, or one that can be made again."""
    is_function = type(value) in (Function, FunctionType)
    return id(value) in walk.made or (
        id(value) not in walk.local if is_function else isinstance(value, SETTINGS)
    )


def _made_again(made: Mapping[int, Any], callee: Callee, variables: Variables) -> Any:
    """What a function of ours makes of functions, made of those that these variables give."""

    def again(value: Any) -> Any:
        return made[id(value)][1](variables) if id(value) in made else value

    keywords = {name: again(value) for name, value in callee.keywords.items()}
    return callee.function(*map(again, callee.arguments), **keywords)


def is_of_pull(walk: Capture, callee: Callee) -> bool:
    """Whether a function of ours is called that goes through a graph of the iteration, or is given
    one that does.
    """
    if type(callee.function) is Function or isinstance(callee.function, UserClass):
        return False
    return any(id(each) in walk.pulls for each in (callee.function, *callee.passed))


def pull_call(walk: Capture, callee: Callee) -> Any:
    """A call of what `vjp` gave, or with it, whose ops are heard: it is not called in the compiled
    iteration, where it would go through the graph of this one.
    """
    value = walk.evaluate(callee.operation, callee.operands)
    if type(value) is FunctionType:
        walk.hold_pull(value, callee.node.span)
    elif walk.broken is None and not _is_heard(walk, value):
        walk.refuse(f"`{_shown(callee)}` is given what goes back through the iteration's graph")
    return value


def _is_heard(walk: Capture, value: Any) -> bool:
    """Whether a value is a tensor that was recorded, or a tuple or list of such."""
    if type(value) is Tensor:
        return walk.builder.has(value)
    if type(value) is list:
        walk.local[id(value)] = value
    return type(value) in (tuple, list) and all(_is_heard(walk, each) for each in value)


def _record_whole(walk: Capture, callee: Callee, value: Any) -> None:
    """Record a call as one of a function of tensors."""
    arguments, keywords = callee.arguments, callee.keywords
    walk.attempt(walk.recorder.on_tensors, callee.function, arguments, keywords, value)


def _check_parts(walk: Capture, callee: Callee, values: Any, drew: bool) -> None:
    """Check that the tensors in a returned tuple or list were recorded: all of them where random
    numbers were, which the whole call would draw once more.
    """
    unknown = [each for each in values if type(each) is Tensor and not walk.builder.has(each)]
    others = [each for each in values if type(each) is not Tensor]
    if isinstance(values, tuple) and type(callee.receiver) is Tensor and callee.name in _SIZES:
        return
    for each in others:
        if isinstance(each, (tuple, list)):
            _check_parts(walk, callee, each, drew)
        elif type(each) is FunctionType and each.__module__ == _DERIVATIVES:
            walk.hold_pull(each, callee.node.span)
        elif each is not None:
            walk.refuse(f"`{_shown(callee)}` gives more than tensors")
    if unknown and (drew or len(unknown) < len(values) or any(e.requires_grad for e in unknown)):
        walk.refuse(f"`{_shown(callee)}` gives a tensor that was not recorded")
    elif unknown:
        _record_whole(walk, callee, values)
    if type(values) is list:
        walk.local[id(values)] = values


def _is_replayed(walk: Capture, callee: Callee) -> bool:
    """Whether a function of the library is called again in every iteration, with numbers that vary:
    one without effects, on tensors outside of graphs. For all others the numbers are guarded.
    """
    arguments = callee.passed
    return (
        any(walk.attempt(walk.builder.symbols_in, each, walk.local) for each in arguments)
        and _is_ours(callee)
        and not any(type(each) is Tensor and each.requires_grad for each in arguments)
        and not callee.name.endswith("_")
    )


def _replayed(walk: Capture, callee: Callee) -> Any:
    recorder = walk.recorder
    writes = recorder.write_count
    with recorder.mute():
        value = walk.recorded(callee.operation, callee.operands)
    if type(value) is not Tensor or value.requires_grad or recorder.write_count > writes:
        walk.refuse(f"`{_shown(callee)}` is given a number that varies")
    elif walk.broken is None and walk.builder.has(value):  # it gives what it is given
        for each in callee.passed:
            walk.exact(each)
    else:
        _record_whole(walk, callee, value)
    return value


def _is_ours(callee: Callee) -> bool:
    home = getattr(callee.function, "__module__", None) or ""
    return callable(callee.function) and not home.startswith("gradcli.library.builtins")


def _shown(callee: Callee) -> str:
    return " ".join(callee.node.function.span.text.split())
