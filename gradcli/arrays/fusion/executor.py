"""The executor of lazy arrays: which of them share a pass over memory, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import address_of, device_of
from gradcli.arrays.fusion import lazy
from gradcli.arrays.fusion.lazy import Pointwise, Sum, forced, hold, write_barrier
from gradcli.arrays.fusion.plan import FusedPlan
from gradcli.state import active


def evaluate(wanted: Sequence[Any]) -> None:
    """Compute the lazy arrays among some arrays, those of one domain in one pass.

    Sums that are lazy over the same values are computed with them.

    Raises MemoryError where there is no room for the results.
    """
    pending = [each for each in wanted if type(each) in _COMPUTED and each.value is None]
    while pending:
        domain = _domain(pending[0])
        group = [each for each in pending if _domain(each) == domain]
        order, foreign = _order(group, domain)
        if foreign:
            evaluate(foreign)
            continue
        sums = _sums_alongside(order, domain)
        if sums:
            group += sums
            order, _ = _order(group, domain)
        _plan_for(group[0])(order, group, domain).run()
        pending = [each for each in pending if each.value is None]


def assign(array: Any, values: Any) -> None:
    """Write values, which may be lazy, to an array's memory. A plan writes there directly where it
    reads no element that it has written. Other plans that read the memory keep its old values.

    Raises ValueError for a shape that does not broadcast to the array's, MemoryError where there is
    no room for what is computed.
    """
    plan = _plan_over(array, values) if type(values) is Pointwise else None
    if plan is None:
        values = forced(values)
        write_barrier(array)
        array[...] = values
        return
    values.operands = ()  # so that the write barrier keeps only what others read
    write_barrier(array)
    plan.memory[id(values)] = array
    plan.run()
    hold(values)


def _plan_over(array: Any, values: Any) -> FusedPlan | None:
    """The plan that computes a lazy array directly into an ndarray of its shape and dtype; None
    where it could read an element that it has written.
    """
    if values.value is not None or type(array) is not np.ndarray or not array.flags.c_contiguous:
        return None
    if array.shape != values.shape or array.dtype is not values.dtype:
        return None
    order, foreign = _order([values], values.shape)
    while foreign:
        evaluate(foreign)
        order, foreign = _order([values], values.shape)
    plan = FusedPlan(order, [values], values.shape)
    written = array.reshape(plan.domain)
    place = address_of(written), written.shape, written.strides
    read = [each for each in plan.inputs if np.may_share_memory(each, written)]
    in_step = isinstance(values.kernel, np.ufunc) and all(
        (address_of(each), each.shape, each.strides) == place for each in read
    )
    return plan if in_step or not read else None


def _plan_for(array: Any) -> type[FusedPlan]:
    """The class of plans for an array's device."""
    if device_of(array).type == "cpu":
        return FusedPlan
    from gradcli.arrays.fusion.gpu_plan import GPUPlan  # lazy: start-up: only arrays on a GPU

    return GPUPlan


def _sums_alongside(order: Sequence[Any], domain: tuple[int, ...]) -> list[Any]:
    """The lazy sums that share operations with a pass and need nothing from outside it."""
    members = set(map(id, order))
    sums = []
    for each in active.state.lazy_sums:
        if each.value is None and id(each) not in members and _domain(each) == domain:
            needed, foreign = _order([each], domain)
            if not foreign and not members.isdisjoint(map(id, needed)):
                sums.append(each)
    return sums


def _domain(array: Any) -> tuple[int, ...]:
    """The shape over which an array's own op runs."""
    return array.operands[0].shape if type(array) is Sum else array.shape


def _order(group: Sequence[Any], domain: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """The arrays to compute in one pass, operands first, and what must be computed before it:
    arrays of another domain, such as a sum that a later op reads.
    """
    order: list[Any] = []
    foreign: list[Any] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(each, False) for each in reversed(group)]
    while stack:
        array, operands_done = stack.pop()
        if operands_done:
            order.append(array)
            continue
        if id(array) in seen:
            continue
        seen.add(id(array))
        stack.append((array, True))
        for operand in reversed(array.operands):
            if type(operand) not in _COMPUTED or operand.value is not None:
                continue
            if type(operand) is Sum or operand.shape != domain:
                foreign.append(operand)
            elif id(operand) not in seen:
                stack.append((operand, False))
    return order, foreign


_COMPUTED = frozenset({Pointwise, Sum})


lazy.evaluate = evaluate
