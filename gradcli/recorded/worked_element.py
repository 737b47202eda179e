"""Works out one element of a gradient as a sum of products of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.engine.backward import grad as gradient_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.recorded.ledger import Share, Visit
from gradcli.state import active

_MOST_TERMS = 3


class Worked(Record):
    """An element of what a node passed on: the sum over the terms of `gradient in * factor`.

    Attributes:
        terms: the largest terms: an element of the gradient that came in, and its factor.
        left_out: how many more terms there are.
    """

    index: tuple[int, ...]
    terms: list[tuple[Any, Any]]
    left_out: int
    value: Any


def worked_element(visit: Visit, share: Share, element: tuple[int, ...] | None) -> Worked | None:
    """An element of a share worked out.

    A rule is linear in the gradient that it is given, so the derivative of one element of its
    answer with respect to that gradient is the row of factors. None for a node whose rule does not
    read tensors, that has several outputs, or whose gradients are complex: a rule conjugates those.

    Args:
        element: which element; the first where None, or where the gradient has no such element.
    """
    product = share.product
    if len(visit.grads) != 1 or visit.grads[0] is None or not product.size:
        return None
    if product.dtype.kind == "c" or visit.grads[0].dtype.kind == "c":
        return None
    index = (
        element if element is not None and _fits(element, product.shape) else (0,) * product.ndim
    )
    incoming = Tensor(visit.grads[0], True)
    state = active.state
    before = state.grad_enabled, state.recorder
    state.grad_enabled, state.recorder = True, None
    try:
        answer = visit.node.node.run_recorded(incoming, True)[share.number]
        one = np.zeros_like(forced(answer.array))
        one[index] = 1
        (factors,) = gradient_of(answer, incoming, Tensor(one if one.ndim else one[()]), True)
    except GradcliError:
        return None
    finally:
        state.grad_enabled, state.recorder = before
    if factors is None:
        return None
    row, grad = forced(factors.array).reshape(-1), visit.grads[0].reshape(-1)
    wanted = np.flatnonzero(row)
    order = wanted[np.argsort(-np.abs(row[wanted] * grad[wanted]), kind="stable")]
    shown = np.sort(order[:_MOST_TERMS])
    terms = [(grad[i], row[i]) for i in shown]
    return Worked(index, terms, len(wanted) - len(shown), product[index])


def _fits(index: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(index) == len(shape) and all(
        -size <= i < size for i, size in zip(index, shape, strict=True)
    )
