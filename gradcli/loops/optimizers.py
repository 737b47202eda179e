"""Optimizers in a compiled iteration: their steps, parameter by parameter, without tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.flat.recorded import NotFlat
from gradcli.autograd.tensor import Tensor
from gradcli.loops.kinds import module_class, optimizer_class
from gradcli.trace.ir import GraphBreak, Inline

if TYPE_CHECKING:
    from gradcli.arrays.flat.recorded import Tape
    from gradcli.arrays.storage import Storage
    from gradcli.library.torch.optim.optimizer import Optimizer
    from gradcli.loops.gradients import Gradients


def check_optimizer(optimizer: Any) -> None:
    """Raise GraphBreak unless it is one of torch.optim's and its `step` is the one of them all."""
    kind = type(optimizer)
    if not _zeroes_as_all(optimizer) or kind.step is not optimizer_class().step:
        raise GraphBreak("this optimizer does not step as they all do")
    if kind._step is not optimizer_class()._step:
        raise GraphBreak(
            f"`step` of {kind.__name__} evaluates its closure as often as it finds fit",
            "the calls of the closure are compiled by themselves",
        )
    if any(optimizer._step_hooks):
        raise GraphBreak("an optimizer with hooks")


def _zeroes_as_all(optimizer: Any) -> bool:
    """Whether an optimizer is one of torch.optim's, and its `zero_grad` the one of them all."""
    kind = type(optimizer)
    return (
        kind.__module__.startswith("gradcli.library.torch.optim.")
        and isinstance(optimizer, optimizer_class())
        and kind.zero_grad is optimizer_class().zero_grad
    )


def parameter_lists(optimizer: Optimizer) -> list[Any]:
    """What `zero_grad()` of an optimizer takes for constant."""
    parts: list[Any] = [optimizer.param_groups]
    for group in optimizer.param_groups:
        parts += [group, group["params"], *group["params"]]
    return parts


def parts_of(optimizer: Optimizer) -> list[Any]:
    """The parts of an optimizer that a compiled iteration takes for constant. Settings are read in
    each step; it is enough that they, and the state, keep their kinds: a step cannot fail then.
    """
    before, after = optimizer._step_hooks
    parts: list[Any] = [optimizer.param_groups, *before, *after]
    for group in optimizer.param_groups:
        parts += [group, group["params"], *group["params"], group.get("maximize")]
        memories = [dict.get(optimizer.state, parameter) for parameter in group["params"]]
        parts += [*memories, _kinds(group), *map(_kinds, memories)]
    return parts


def _kinds(values: dict[str, Any] | None) -> tuple[Any, ...]:
    return tuple((name, _kind(value)) for name, value in values.items()) if values else ()


def _kind(value: Any) -> Any:
    """What must stay the same of a setting. A number may change; a rate of a pair must stay below
    1, as a step divides by the difference.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if type(value) is Tensor:
        return value.dtype.name, value.array.shape, type(value.array)
    if type(value) is tuple:
        return tuple(
            (type(each).__name__, isinstance(each, (int, float)) and 0 <= each < 1)
            for each in value
        )
    return type(value).__name__


def gradients_of(target: Any) -> list[Tensor]:
    """The tensors whose gradients `zero_grad()` of an optimizer or a module forgets."""
    if isinstance(target, optimizer_class()):
        if not _zeroes_as_all(target):
            raise GraphBreak("this optimizer does not forget gradients as they all do")
        return [parameter for _, parameter in parameters_of(target)]
    if (
        isinstance(target, module_class())
        and type(target).zero_grad is module_class().zero_grad
        and not target.names_its_own
    ):
        return list(target.parameters())
    raise GraphBreak("`zero_grad` of something that is no optimizer and no module")


def parameters_of(optimizer: Optimizer) -> Iterator[tuple[dict[str, Any], Tensor]]:
    """The parameters, each with its group."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield group, parameter


def write_step(gradients: Gradients, optimizer: Optimizer) -> list[Tensor]:
    """Write what `step()` does; the parameters that it changes."""
    builder = gradients.builder
    changed = []
    for group, parameter in parameters_of(optimizer):
        gradient = gradients.now.get(parameter)
        if gradient is None:
            if parameter.grad is not None:
                raise GraphBreak("a gradient came from elsewhere")
            continue
        if group.get("maximize"):
            raise GraphBreak("an optimizer that maximizes")
        if parameter.array.dtype.kind == "c":
            raise GraphBreak("an optimizer of complex parameters")
        target = builder.tensor(parameter)
        storage = builder.storage(parameter)
        memory = dict.get(optimizer.state, parameter)
        builder.announce_write(target)
        remembered = "{{}}" if memory is None else "{5}"
        text = f"{{0}}.version += {{1}}({{2}}, {{3}}, {remembered}, {{4}})"
        step = Inline(text, "update", flat=_write_flat)
        operands = [storage, optimizer.update, target, gradient, group, memory]
        builder.effect(step, operands, writes=[target], state=())
        changed.append(parameter)
    return changed


def _write_flat(
    tape: Tape,
    storage: Storage,
    update: Callable[..., int],
    target: Any,
    gradient: Any,
    group: dict[str, Any],
    memory: dict[str, Any] | None,
) -> tuple[Callable[..., int], list[Any]]:
    """Write down the step of one parameter; the step as a function of arrays, and those. Raises
    NotFlat where it computes with what it remembers as a number, or begins to remember.
    """
    memory = memory or {}
    if any(type(each) is not Tensor for each in memory.values()):
        raise NotFlat("an optimizer that remembers numbers")
    optimizer: Optimizer = update.__self__  # type: ignore[attr-defined]
    held = {name: each for name, each in memory.items() if name != "step"}
    for name, tensor in held.items():
        tape.relies_on("equal", memory, name, tensor)
        tape.relies_on("is", tensor, "array", tensor.array)
    if any(type(value) is Tensor for value in group.values()):
        raise NotFlat("a setting that is a tensor")
    tape.changes()
    start = len(tape.steps)
    parts = _numbers_on(tape, optimizer, memory, group)

    def step(array: Any, gradient: Any, *remembered: Any) -> int:
        state = {
            name: SimpleNamespace(array=each) for name, each in zip(held, remembered, strict=False)
        }
        if parts:
            count = optimizer.apply(array, gradient, state, group, remembered[len(held) :])
        else:
            count = update(array, gradient, state, group)
        if len(state) != len(held if parts else memory) or not all(
            state[name].array is each for name, each in zip(held, remembered, strict=False)
        ):
            raise NotFlat("an optimizer that begins to remember")
        return count

    arrays = [target, gradient, *[tape.record(each.array) for each in held.values()]]
    count = step(*arrays, *parts)
    if parts and not count:  # no kernel takes these arrays: the rate is one of the settings
        del tape.steps[start:]
        parts = []
        count = step(*arrays)
    scheduled = optimizer.scheduled(group) if parts else ()
    for name, value in group.items():
        if name != "params" and name not in scheduled:
            tape.relies_on("equal", group, name, value)
    tape.steps.append(("count", storage, "version", count))
    tape.numbers = group, parts, tape.steps[-1]
    return step, [*arrays, *parts]


def _numbers_on(
    tape: Tape, optimizer: Optimizer, memory: dict[str, Any], group: dict[str, Any]
) -> list[Any]:
    """The numbers of a step, read anew in each run; none where it follows from settings alone.
    Parameters of a group that are stepped one behind the other share them, unless each counts.
    """
    whose, parts, last = tape.numbers
    if whose is group and "step" not in memory and tape.steps and tape.steps[-1] is last:
        return parts
    known = {name: SimpleNamespace(array=each.array) for name, each in memory.items()}
    numbers = optimizer.numbers(known, group)
    if not numbers:
        return []
    box = np.array(numbers)
    pack = Struct(f"{len(box)}d").pack_into
    put = partial(_put_numbers, partial(pack, box.data, 0), optimizer, memory, group)
    tape.steps.append(("advance", put, ()))
    if "momentum" in optimizer.scheduled(group):
        tape.relies_on("call", _check_momentum, (group,))
    return [tape.record(box[number, ...]) for number in range(len(box))]


def _check_momentum(group: dict[str, Any]) -> None:
    """End a run where a schedule has come to no momentum, with which a step does something else."""
    if not group["momentum"]:
        raise NotFlat("a step without momentum")


def _put_numbers(
    put: Callable[..., None], optimizer: Optimizer, memory: dict[str, Any], group: dict[str, Any]
) -> None:
    put(*optimizer.numbers(memory, group) or ())
