"""The end of a capture: its trace becomes a compiled iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.flat.recorded import call
from gradcli.autograd.node import RemovableHandle
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Variables
from gradcli.loops.capture import Capture
from gradcli.loops.compiled import CompiledIteration, Named, Remade, has_more, overlap
from gradcli.loops.guards import hooks_of, is_new_leaf
from gradcli.loops.kinds import distribution_class, module_class
from gradcli.loops.locations import Attribute, Location, Name, Part, store_op
from gradcli.loops.lower_backward import holds_values, hooks_below
from gradcli.loops.symbols import Symbol, is_symbolic
from gradcli.loops.walk.reading import described, functions_in
from gradcli.state import State, active
from gradcli.trace.ir import (
    Effect,
    GraphBreak,
    Inline,
    Instruction,
    Kernel,
    Operand,
    Trace,
    placeholder,
    values_in,
)
from gradcli.trace.passes import commits, may_raise, optimized, raising_behind_effects

if TYPE_CHECKING:
    from gradcli.library.torch.distributions.distribution import Distribution

_BEGIN_EFFECTS = Inline(
    "{0}.is_in_effects = True",
    "begin_effects",
    flat=lambda tape, state: tape.sets(state, "is_in_effects", True),
)
_END_EFFECTS = Inline(
    "{0}.is_in_effects = False",
    "end_effects",
    flat=lambda tape, state: tape.sets(state, "is_in_effects", False),
)

# Functions of ours that run in a compiled iteration count by themselves.
_READ_NODES = Inline(
    "{0}.sequence_nr", raises=False, flat=lambda tape, state: tape.reads(state, "sequence_nr")
)
_READ_STEPS = Inline("{0}.left", raises=False, flat=lambda tape, steps: tape.reads(steps, "left"))
_COUNT_NODES = Inline(
    "{0}.sequence_nr = {1} + {2}",
    "count_nodes",
    flat=lambda tape, state, read, count: tape.counts(read, count),
)
_COUNT_STEPS = Inline(
    "{0}.left = {1} - {2}",
    "count_steps",
    flat=lambda tape, steps, read, count: tape.counts(read, -count),
)

_COUNT_HOOKS = Inline("{0}.hook_count += {1}", "count_hooks")
"""Hooks get numbers, of which no two are the same."""

_SWITCH = Inline(
    "{0}({1}, {2}, {3})",
    "switch",
    flat=lambda tape, *parts: tape.steps.append(call(*parts)),
)
"""A module is switched to training, or to evaluation."""

_PLAIN = (int, float, bool, str, type(None))


_MOST_UNDONE = 1 << 20
"""Bytes that are copied in every iteration, to be put back where one ends behind its writes."""


class NotSettled(Exception):
    """An iteration does not end as it began: the next one may."""


def finish(
    walk: Capture, steps: int, passes: Sequence[Callable[[Trace], Trace]] | None
) -> CompiledIteration:
    """The compiled form of an iteration that was captured, after some passes; `steps` is what it
    counted.
    """
    builder = walk.builder
    builder.span, builder.stack = None, ()
    if any(hooks_of(each) != before for each, before in walk.hooked.items()):
        raise GraphBreak(
            "the iteration leaves a hook on a tensor that it has not made",
            "register it once, ahead of the loop",
        )
    _find_carried(walk)
    if not walk.guard.has_modes():
        raise GraphBreak("the iteration leaves gradients switched on or off")
    walk.gradients.finish()
    _store_modes(walk)
    named, counted, remade = _store(walk)
    number = builder.input(_READ_NODES, [walk.state], walk.since).value
    left = builder.input(_READ_STEPS, [walk.steps], walk.steps.left).value
    count = walk.state.sequence_nr - walk.since
    builder.effect(_COUNT_NODES, [walk.state, number, count], state=())
    builder.effect(_COUNT_STEPS, [walk.steps, left, steps], state=())
    if walk.state.hook_count > walk.hook_count:
        numbers = walk.state.hook_count - walk.hook_count
        builder.effect(_COUNT_HOOKS, [walk.state, numbers], state=())
    updated = list(dict.fromkeys([*walk.builder.updated, *walk.guard.lasting.values()]))
    if overlap(updated, [each for check in walk.guard.checks for each in check.inputs]):
        raise GraphBreak("a check reads what the iteration writes to", code="B05")
    trace = builder.trace
    formers = [each.former for each in named]
    bases = _bases_of(walk, formers)
    # A tensor that the iteration is given, or that has escaped, is shown itself.
    trace.outputs = [
        builder.input_for(each) or builder.escapes.get(each) or builder.of(each)
        for each in (*formers, *bases)
    ]
    trace.outputs += walk.gradients.unseen.values()
    listener = walk.recorder.former
    if listener is not None and listener.check is not None:
        trace = _watched(trace, listener.check)
    trace = optimized(trace, passes)
    late = raising_behind_effects(trace)
    if late is None:
        _mark_effects(trace, walk.state)
    else:
        _check_undone(trace.instructions, late, updated)
    builder.close()
    return CompiledIteration(
        walk,
        trace,
        named,
        bases,
        counted,
        remade,
        updated,
        steps,
        count,
        late is None and _may_exit_after_drawing(trace.instructions),
        late is not None,
    )


def _watched(trace: Trace, check: Callable[..., None]) -> Trace:
    """A trace that has all arrays checked which it computes, before any may be written over."""
    watched: list[Instruction] = []
    unchecked: list[Operand] = []
    for each in trace.instructions:
        if commits(each):
            _check_all(watched, unchecked, check)
        watched.append(each)
        unchecked += [value for value in each.results if _may_overflow(value.array)]
    _check_all(watched, unchecked, check)
    return trace.copy(instructions=watched)


def _check_all(
    instructions: list[Instruction], values: list[Operand], check: Callable[..., None]
) -> None:
    if values:
        effects = {Effect.CHECKS: tuple(values_in(values))}
        instructions.append(Instruction(Kernel("check", check), [*values], effects=effects))
        values.clear()


def _may_overflow(array: Any) -> bool:
    """Whether an array, or a number, has finite numbers which may be none in another iteration."""
    return isinstance(array, (np.ndarray, np.floating)) and bool(
        array.dtype.kind in "fc" and np.isfinite(array).all()
    )


def _mark_effects(trace: Trace, state: State) -> None:
    """Tell where the effects of an iteration begin and end: it is not interrupted in between."""
    instructions = trace.instructions
    first = next((n for n, each in enumerate(instructions) if commits(each)), len(instructions))
    instructions.insert(first, Instruction(_BEGIN_EFFECTS, [state], effects={Effect.STATE: ()}))
    instructions.append(Instruction(_END_EFFECTS, [state], effects={Effect.STATE: ()}))


def _check_undone(
    instructions: Sequence[Instruction], late: Instruction, updated: Sequence[Tensor]
) -> None:
    """Raise GraphBreak where the effects ahead of what may raise cannot be undone."""
    for each in instructions:
        if Effect.SHOWS in each.effects:
            raise GraphBreak(
                "something is printed before what may fail", span=late.span, code="B05"
            )
        if each is late:
            break
    if sum(each.array.nbytes for each in updated) > _MOST_UNDONE:
        raise GraphBreak(
            "large tensors are written to before what may fail", span=late.span, code="B05"
        )


def _may_exit_after_drawing(instructions: Sequence[Instruction]) -> bool:
    """Whether a side exit may happen while random numbers are drawn, or after."""
    drawn = False
    for each in instructions:
        drawn = drawn or Effect.RANDOM in each.effects
        if drawn and may_raise(each):
            return True
    return False


def _find_carried(walk: Capture) -> None:
    """Raise NotSettled where a place that was taken for constant has another value now."""
    for place, _ in walk.stored.values():
        if isinstance(place, Attribute) and isinstance(place.owner, module_class()):
            walk.guard.ignore(place.owner._values, place.name)
    others = {
        key
        for key, (_, value) in walk.stored.items()
        if key in walk.constants and (is_symbolic(value) or value is not walk.constants[key])
    }
    others |= walk.guard.replaced()
    walk.carried |= others
    if others or any(each.training is not mode for each, mode in walk.guard.training.items()):
        raise NotSettled


def _store(walk: Capture) -> tuple[list[Named], list[Location], list[Remade]]:
    """Record what outlives the iteration: tensors and functions shown only on demand, and places of
    all else.
    """
    named: list[Named] = []
    counted: list[Location] = []
    remade: list[Remade] = []
    for key, (place, value) in walk.stored.items():
        if isinstance(place, Name) and place.name in walk.plan.targets:
            raise GraphBreak(f"the iteration binds `{place.name}`, which the loop binds too")
        if key not in walk.carried and isinstance(place, Name) and id(value) in walk.made:
            if place.holder is None and place.name in walk.plan.tested:
                raise GraphBreak(f"`{place.name}`, by which the loop goes on, is a function")
            remade.append(Remade(place, walk.made[id(value)][1]))
            continue
        if key not in walk.carried and isinstance(place, Name) and type(value) is RemovableHandle:
            behind = walk.state.hook_count - value.id
            remade.append(Remade(place, partial(_handle_again, behind)))
            continue
        if isinstance(place, Name) and place.holder is None and id(value) in walk.pulls:
            if key in walk.carried or walk.plan.in_try or not _is_unread(walk, place):
                raise GraphBreak(
                    f"`{place.name}` goes back through the graph of an iteration, and may be called"
                    " in another one, or behind the loop",
                    "call it where it is made, in a loop over a range or a list",
                    walk.pulls[id(value)][1],
                )
            remade.append(Remade(place, lambda variables: _let_go))
            continue
        if (
            type(value) is Tensor
            and walk.builder.is_of_iteration(value)
            and key not in walk.carried
        ):
            _check_named(walk, place, value)
            named.append(Named(place, value))
            continue
        if key not in walk.carried and _are_recorded(walk, value):
            named += _parts(walk, place, type(value), [*value])
            continue
        is_distribution = isinstance(value, distribution_class()) and id(value) in walk.local
        if key not in walk.carried and is_distribution:
            tensors = _tensors_of(walk, place, value)
            # The program may go on to ask the recorded one for what it keeps when it is asked.
            like = value.copied(_itself)
            named += _parts(walk, place, partial(_made_of, like, tensors), tensors)
            if not tensors:
                remade.append(Remade(place, partial(_copy_of, like)))
            continue
        operands: list[Operand] = []
        text = _text(walk, place, value, operands)
        # What was there before has got its name when it was recorded, if a parameter gets one.
        is_named = type(value) is Tensor and walk.builder.is_of_iteration(value)
        op = store_op(place, text, operands, is_named)
        walk.builder.effect(op, operands, state=())
        counted.append(place)
    return named, counted, remade


def _store_modes(walk: Capture) -> None:
    """Record whether the modules are in training that the iteration switches before it asks; where
    none has left them otherwise so far, it relies on finding them so.
    """
    for module, before in walk.switched.items():
        key = "training", id(module)
        if module.training is before and key not in walk.carried:
            walk.guard.training.setdefault(module, before)
            continue
        walk.carried.add(key)
        walk.modes[module] = module.training
        operands = [object.__setattr__, module, "training", module.training]
        walk.builder.effect(_SWITCH, operands, state=())


def _bases_of(walk: Capture, named: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, new in every iteration, whose memory named tensors share."""
    known, candidates = set(named), dict.fromkeys([each.base for each in named])
    objects = walk.builder.objects
    inputs = {each.storage: each for each in objects if each.storage is not None}
    bases = {each.base for each in objects}
    storages = [each.storage for each in named if each.storage is not None]
    candidates.update(dict.fromkeys([inputs.get(each) for each in storages]))
    return [
        each
        for each in candidates
        if each is not None
        and each not in known
        and (each in bases or walk.builder.is_of_iteration(each))
    ]


def _are_recorded(walk: Capture, value: Any) -> bool:
    """Whether a value is a tuple or list of tensors that the iteration made, some with graphs."""
    return (
        type(value) in (tuple, list)
        and all(type(each) is Tensor and walk.builder.is_of_iteration(each) for each in value)
        and any(each.requires_grad for each in value)
    )


def _parts(
    walk: Capture, place: Location, kind: Callable[[list[Any]], Any], tensors: list[Tensor]
) -> list[Named]:
    """The tensors that a place is left with, in a value of some kind."""
    items: list[Any] = [*tensors]
    for each in tensors:
        _check_named(walk, place, each)
    return [Named(Part(place, kind, items, n), each) for n, each in enumerate(tensors)]


def _tensors_of(walk: Capture, place: Location, distribution: Distribution) -> list[Tensor]:
    """The tensors that the iteration made of which it has made a distribution."""
    held: list[Tensor] = []

    def hold(tensor: Tensor) -> Tensor:
        held.append(tensor)
        return tensor

    try:
        distribution.copied(hold)
    except TypeError:
        raise _kept(place, distribution) from None
    values = [value for _, value in walk.stored.values()]
    if sum(each is distribution for each in values) > 1:
        raise _kept(place, distribution)
    return [*filter(walk.builder.is_of_iteration, dict.fromkeys(held))]


def _made_of(distribution: Distribution, formers: list[Tensor], tensors: list[Tensor]) -> Any:
    """A distribution like that of the recorded iteration, of other tensors."""
    others = dict(zip(formers, tensors, strict=True))
    return distribution.copied(lambda tensor: others.get(tensor, tensor))


def _copy_of(distribution: Distribution, variables: Variables) -> Any:
    return distribution.copied(_itself)


def _itself(tensor: Tensor) -> Tensor:
    return tensor


def _kept(place: Location, value: Any) -> GraphBreak:
    holder = _name(place) if isinstance(place, Name) else "an attribute or an item"
    return GraphBreak(f"{holder} holds {described(value)} of the iteration")


def _handle_again(behind: int, variables: Variables) -> RemovableHandle:
    """The handle of a hook that is gone, so many hooks ago."""
    state = active.state
    state.hook_count -= behind
    handle = RemovableHandle({}, _let_go)
    handle.remove()
    state.hook_count += behind - 1
    return handle


def _let_go(*_: Any, **__: Any) -> Any:
    """Stands for a function such as `vjp` gives, of an iteration that was compiled."""
    raise GradcliError(
        "E403",
        "this function goes back through a graph that is gone: a compiled iteration made it, and an"
        " error ended the loop before the last one",
        help="run the program with --no-compiled-loops",
    )


def _check_named(walk: Capture, place: Location, value: Tensor) -> None:
    own = place.name if isinstance(place, Name) and place.holder is None else None
    if own in walk.plan.tested:
        raise GraphBreak(f"`{own}`, by which the loop goes on, is a tensor", "use its item()")
    keeps_graph = value.grad_fn is not None and holds_values(value.grad_fn, walk.since)
    has_more = _has_more(walk, value)
    if not (keeps_graph or has_more) or _is_unread(walk, place):
        return
    if has_more:
        what = "a new leaf" if value.grad_fn is None else "a tensor"
        raise GraphBreak(f"{_name(place)} is {what} with a gradient or hooks in every iteration")
    raise GraphBreak(
        f"the graph of {_name(place)} outlives the iteration: no backward pass has freed it",
        "compute what needs no gradient under `torch.no_grad()`",
    )


def _has_more(walk: Capture, tensor: Tensor) -> bool:
    """Whether a tensor of the iteration has a gradient, or hooks of its own, which what stands for
    it would not have.
    """
    root = tensor.grad_fn
    return has_more(tensor) or (
        root is not None and any(id(each) in walk.local for each in hooks_below(root))
    )


def _is_unread(walk: Capture, place: Location) -> bool:
    """Whether the program reads of a place only what the iteration itself has put there, or what
    the last one has, which is interpreted.
    """
    own = place.name if isinstance(place, Name) and place.holder is None else None
    if walk.plan.leaves and own not in walk.plan.anew:
        return False
    return own is None or not (own in walk.plan.early or _is_read_elsewhere(walk, own))


def _is_read_elsewhere(walk: Capture, name: str) -> bool:
    """Whether functions of the program, which an iteration may call, read a name of the code with
    the loop.
    """
    values = {id(each): each for each in (*walk.variables.values(), *walk.values.values())}
    classes = [each for each in values.values() if isinstance(each, UserClass)]
    inside = [each for cls in classes for each in cls.names.values()]
    functions = [f for each in (*values.values(), *inside) for f in functions_in(each)]
    return any(
        isinstance(node, tree.Name) and node.name == name and each.scope.distance(name) != 0
        for each in functions
        for node in tree.nodes_of(each.statements)
    )


def _name(place: Location) -> str:
    return f"`{place.name}`" if isinstance(place, Name) else "a tensor"


def _text(walk: Capture, place: Location, value: Any, operands: list[Operand]) -> str:
    """The text of a value that is stored in every iteration."""
    builder = walk.builder
    kind = type(value)
    if kind is Tensor and walk.builder.is_of_iteration(value):
        freed = value.grad_fn is not None and not holds_values(value.grad_fn, walk.since)
        if _has_more(walk, value):
            raise GraphBreak(f"{_name(place)} is kept with its gradient, or with hooks")
        if value.requires_grad and not is_new_leaf(value) and not (freed and not value.version):
            raise GraphBreak(
                f"{_name(place)} is handed from one iteration to the next with its graph",
                "detach() what one iteration hands to the next",
            )
        return builder.written(value, operands)
    if id(value) in walk.lasting and id(value) not in walk.local:
        return placeholder(operands, value)  # the very object, whatever it holds
    if kind in (tuple, list) or (kind is dict and id(value) in walk.local):
        return walk.kept_text(value, operands, lambda part, own: _text(walk, place, part, own))
    if kind is Symbol or kind is Tensor or kind in _PLAIN:
        return builder.written(value, operands)
    if id(value) in walk.local or kind.__name__ in ("Iterator", "Walk"):
        raise _kept(place, value)
    return builder.written(value, operands)
