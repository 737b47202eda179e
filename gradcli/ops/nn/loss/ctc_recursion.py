"""The CTC loss step by step: the forward and backward variables of Graves et al. (2006).

alpha and beta are the log-probabilities of the labels before and behind a position at a step, both
with the step's own; the matrix of moves says which positions lead to which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.ops.elementwise.comparison import isinf, where
from gradcli.ops.elementwise.unary import exp
from gradcli.ops.indexing.select import index_select
from gradcli.ops.linalg.products.matrix_products import mm
from gradcli.ops.reduction.sum import logsumexp
from gradcli.ops.shape.joining import cat, stack
from gradcli.ops.shape.slicing import select, slice_
from gradcli.ops.shape.views import unsqueeze

Lengths = tuple[int, ...]


def with_blanks(labels: Any, blank: int) -> Any:
    """A blank before, between and after the labels."""
    extended = np.full(2 * len(labels) + 1, blank, np.int64)
    extended[1::2] = labels
    return extended


def skips(extended: Any) -> Any:
    """Where a position may be reached from the one two before it: at a label that differs from the
    label before it.
    """
    allowed = np.zeros(len(extended), bool)
    allowed[2:] = extended[2:] != extended[:-2]
    allowed[::2] = False
    return allowed


def labels_of(targets: Any, sizes: Lengths, blank: int) -> list[Any]:
    """The labels of each sample, with blanks."""
    ends = np.cumsum(sizes)
    return [
        with_blanks(targets[n, :size] if targets.ndim == 2 else targets[end - size : end], blank)
        for n, (size, end) in enumerate(zip(sizes, ends, strict=True))
    ]


class _Sample:
    """A sequence of at least one step.

    Attributes:
        steps: the log-probabilities of the positions' labels, (time, positions).
        moves: 0 where a position (row) is reached from another (column), -inf elsewhere.
    """

    def __init__(self, log_probs: Tensor, number: int, length: int, extended: Any) -> None:
        own = select(log_probs, 1, number)
        whole = length == log_probs.array.shape[0]
        self.own = own if whole else slice_(own, 0, 0, length, 1)
        self.length = length
        self.steps = index_select(self.own, 1, Tensor(extended))
        self.dtype = log_probs.array.dtype
        count = len(extended)
        reached = np.eye(count, dtype=bool) | np.eye(count, k=-1, dtype=bool)
        reached |= np.eye(count, k=-2, dtype=bool) & skips(extended)[:, None]
        self.moves = np.where(reached, 0, -np.inf).astype(self.dtype)

    def variables(self, name: str, times: Any, moves: Any, ends: Any) -> list[Tensor]:
        """The variables of all steps, from one end of time: the first may be at `ends` alone."""
        closed = np.where(np.isin(np.arange(len(moves)), ends), 0, -np.inf).astype(self.dtype)
        row, allowed = Tensor(closed) + select(self.steps, 0, times[0]), Tensor(moves)
        alphas: list[Tensor] = []
        for time in times:
            if alphas:
                row = logsumexp(allowed + row, (1,), False) + select(self.steps, 0, time)
            row.set_name(name)
            alphas.append(row)
        return alphas

    def alphas(self) -> list[Tensor]:
        return self.variables("alpha", range(self.length), self.moves, (0, 1))

    def betas(self) -> list[Tensor]:
        last = len(self.moves) - 1
        times = range(self.length - 1, -1, -1)
        return self.variables("beta", times, self.moves.T.copy(), (last - 1, last))[::-1]


def losses_decomposed(
    log_probs: Tensor,
    targets: Tensor,
    lengths: Lengths,
    sizes: Lengths,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """Minus the log-probability of ending at the last label, or the blank behind it."""
    losses = []
    for n, extended in enumerate(labels_of(targets.array, sizes, blank)):
        if lengths[n]:
            alpha = _Sample(log_probs, n, lengths[n], extended).alphas()[-1]
            start = max(len(extended) - 2, 0)
            losses.append(-logsumexp(slice_(alpha, 0, start, len(extended), 1), (0,), False))
        else:
            least = 0.0 if len(extended) == 1 else np.inf
            losses.append(Tensor(np.array(least, log_probs.array.dtype)))
    return stack(losses, 0)


def gradient_decomposed(
    grad: Tensor,
    log_probs: Tensor,
    losses: Tensor,
    targets: Tensor,
    lengths: Lengths,
    sizes: Lengths,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """Each label's probability less its share of the alignments, exp(alpha + beta) of the whole."""
    time, _, classes = log_probs.array.shape
    gradients = []
    for n, extended in enumerate(labels_of(targets.array, sizes, blank)):
        parts: list[Tensor] = []
        if lengths[n]:
            sample = _Sample(log_probs, n, lengths[n], extended)
            loss = select(losses, 0, n)
            both = stack(sample.alphas(), 0) + stack(sample.betas(), 0)
            shares = exp(both - sample.steps + loss)
            spread = Tensor(np.eye(classes, dtype=sample.dtype)[extended])
            gradient = (exp(sample.own) - mm(shares, spread)) * select(grad, 0, n)
            parts.append(where(isinf(loss), 0.0, gradient) if zero_infinity else gradient)
        if lengths[n] < time:
            rest = (time - lengths[n], classes)
            parts.append(Tensor(np.zeros(rest, log_probs.array.dtype)))
        gradients.append(unsqueeze(cat(parts, 0) if len(parts) > 1 else parts[0], 1))
    return cat(gradients, 1) if len(gradients) > 1 else gradients[0]
