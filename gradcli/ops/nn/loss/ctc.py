"""`ctc_loss`: the negative log-likelihood of a label sequence, over all its alignments in time.

It goes step by step, by the forward and backward variables of Graves et al. (2006): alpha and beta
are the log-probabilities of the labels before and behind a position at a step, both with the step's
own; the matrix of moves says which positions lead to which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, on_the_host
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, index_error, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import div, no_derivative
from gradcli.ops.binding.arguments import numbers_in
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_VALUES, CHECKS
from gradcli.ops.definition.dtype_support import NOT_SINGLE_OR_DOUBLE, check_dtype
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.comparison import choose, isinf, where
from gradcli.ops.elementwise.unary import exp
from gradcli.ops.indexing.along import index_select
from gradcli.ops.linalg.products.matrix_products import mm
from gradcli.ops.nn.loss.elementwise import MEAN, reduction_number
from gradcli.ops.reduction.sum import logsumexp, mean_all, sum_all
from gradcli.ops.shape.joining import cat, stack
from gradcli.ops.shape.slicing import select, slice_op
from gradcli.ops.shape.views import squeeze_dim, unsqueeze

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
        self.own = own if whole else slice_op(own, 0, 0, length, 1)
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
            losses.append(-logsumexp(slice_op(alpha, 0, start, len(extended), 1), (0,), False))
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


_no_second = no_derivative(
    "ctc_loss's gradient", "differentiate once", pytorch="_ctc_loss_backward"
)


def _shifted(row: Any, count: int) -> Any:
    """A row of log-probabilities moved to later positions."""
    moved = np.full_like(row, -np.inf)
    if count < len(row):
        moved[count:] = row[: len(row) - count]
    return moved


def _alphas(steps: Any, extended: Any) -> Any:
    """The log-probability of being at each position after each step; `steps` are the
    log-probabilities of the positions' labels, shape (time, positions).
    """
    alpha = np.full(steps.shape, -np.inf, steps.dtype)
    if not len(steps):
        return alpha
    alpha[0, :2] = steps[0, :2]
    allowed = skips(extended)
    for t in range(1, len(steps)):
        before = alpha[t - 1]
        two = np.where(allowed, _shifted(before, 2), -np.inf)
        alpha[t] = np.logaddexp(np.logaddexp(before, _shifted(before, 1)), two) + steps[t]
    return alpha


def _each(log_probs: Any, targets: Any, lengths: Lengths, sizes: Lengths, blank: int) -> Any:
    """The extended labels of each sample and the log-probabilities of its positions."""
    for n, extended in enumerate(labels_of(targets, sizes, blank)):
        yield extended, log_probs[: lengths[n], n][:, extended]


@on_the_host
def _ctc_array(log_probs: Any, targets: Any, lengths: Lengths, sizes: Lengths, blank: int) -> Any:
    losses = []
    for extended, steps in _each(log_probs, targets, lengths, sizes, blank):
        if len(steps):
            total = np.logaddexp.reduce(_alphas(steps, extended)[-1, -2:])
        else:
            total = 0.0 if len(extended) == 1 else -np.inf
        losses.append(-total)
    return np.array(losses, log_probs.dtype)


@on_the_host
def _ctc_gradient(
    grad: Any,
    log_probs: Any,
    losses: Any,
    targets: Any,
    lengths: Lengths,
    sizes: Lengths,
    blank: int,
    zero_infinity: bool,
) -> Any:
    """The gradient for log-probabilities that come from log_softmax, as PyTorch computes it."""
    result = np.zeros_like(log_probs)
    samples = _each(log_probs, targets, lengths, sizes, blank)
    for n, (extended, steps) in enumerate(samples):
        if not len(steps):
            continue
        alpha = _alphas(steps, extended)
        beta = _alphas(steps[::-1, ::-1], extended[::-1])[::-1, ::-1]
        loss = losses[n]
        if np.isinf(loss) and zero_infinity:
            continue
        shares = np.full((len(steps), log_probs.shape[2]), -np.inf, log_probs.dtype)
        for position, label in enumerate(extended):
            shares[:, label] = np.logaddexp(shares[:, label], (alpha + beta)[:, position])
        own = log_probs[: len(steps), n]
        result[: len(steps), n] = (np.exp(own) - np.exp(shares + loss - own)) * grad[n]
    return result


ctc_loss_backward = op(
    "_ctc_loss_backward",
    lambda grad, log_probs, losses, targets, lengths, sizes, blank, zero_infinity: _ctc_gradient(
        grad, log_probs, losses, targets, lengths, sizes, blank, zero_infinity
    ),
    node="NotImplemented",
    constant=("targets",),
    grad=_no_second,
    log_probs=_no_second,
    losses=_no_second,
    decomposition=gradient_decomposed,
    raises=BY_VALUES,
)

_ctc_loss: Op = op(
    "_ctc_loss",
    # Only the gradient depends on `zero_infinity` here: ctc_loss() replaces infinite losses.
    lambda log_probs, targets, lengths, sizes, blank, zero_infinity: _ctc_array(
        log_probs, targets, lengths, sizes, blank
    ),
    constant=("targets",),
    log_probs=lambda grad, log_probs, result, targets, lengths, sizes, blank, zero_infinity: (
        ctc_loss_backward(grad, log_probs, result, targets, lengths, sizes, blank, zero_infinity)
    ),
    raises=BY_VALUES,
    decomposition=losses_decomposed,
)


def _lengths(argument: str, values: Any, count: int) -> Lengths:
    """Lengths given as a tensor or a tuple; raises E204 unless there is one for each sample."""
    if isinstance(values, Tensor):
        if values.array.dtype.kind not in "iu":
            raise dtype_error(f"{argument} must be integral")
        values = np.atleast_1d(numbers_in(values)).tolist()
    elif isinstance(values, int):
        values = [values]
    for value in values:
        if type(value) is not int:
            raise type_error(f"ctc_loss(): {argument} must be integers, not {type(value).__name__}")
    if len(values) != count:
        raise runtime_error(
            f"ctc_loss(): {argument} has {len(values)} numbers for {count} sequences",
            text=f"{argument} must be of size batch_size",
        )
    return tuple(int(value) for value in values)


def _check_lengths(log_probs: Tensor, targets: Tensor, lengths: Lengths, sizes: Lengths) -> None:
    steps = log_probs.array.shape[0]
    shape = targets.array.shape
    if targets.array.ndim == 1 and sum(sizes) != shape[0]:
        raise shape_error(
            f"ctc_loss(): {shape[0]} labels for target lengths that add up to {sum(sizes)}"
        )
    wide = targets.array.ndim == 2 and any(size > shape[1] for size in sizes)
    if wide or any(not 0 <= length <= steps for length in lengths) or any(n < 0 for n in sizes):
        text = None
        checking = "(while checking arguments for ctc_loss_allocate_outputs)"
        if max(lengths) > steps:
            text = f"Expected input_lengths to have value at most {steps}, but got value"
            text += f" {max(lengths)} {checking}"
        elif wide:
            text = (
                f"Expected tensor to have size at least {max(sizes)} at dimension 1, but got size"
            )
            text += f" {shape[1]} for argument #2 'targets' {checking}"
        raise runtime_error("ctc_loss(): a length is not within its sequence", text=text)


@function("ctc_loss", also="torch.nn.functional", autocast="float32", effects=(CHECKS,))
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Any = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-probability of label sequences under log-probabilities (time, N, classes).

    Args:
        targets: (N, labels), or all labels in one vector.
        input_lengths, target_lengths: how long each sequence is.
        blank: the class that stands for no label.
        reduction: "mean", of losses divided by the target lengths, "sum" or "none".
        zero_infinity: count sequences that cannot be spread as 0.

    Raises E204 for lengths that do not fit, E302 for a blank that is no class.

    Example: torch.ctc_loss(zeros(4, 1, 3).log_softmax(2), tensor([[1, 2]]), (4,), (2,))
    """
    number = reduction if type(reduction) is int else reduction_number(reduction)
    check_dtype("ctc_loss", log_probs.dtype, NOT_SINGLE_OR_DOUBLE)
    single = log_probs.array.ndim == 2
    if single:
        log_probs = unsqueeze.apply(log_probs, 1)
    if log_probs.array.ndim != 3:
        raise shape_error(f"ctc_loss(): log_probs of shape {log_probs.array.shape}")
    _, count, classes = log_probs.array.shape
    if not 0 <= blank < classes:
        raise index_error("blank must be in label range", raises="RuntimeError")
    if isinstance(input_lengths, Tensor) is not isinstance(target_lengths, Tensor):
        raise type_error("ctc_loss(): give both lengths as tensors, or none")
    if not count:
        raise shape_error("ctc_loss(): there are no sequences")
    lengths = _lengths("input_lengths", input_lengths, count)
    sizes = _lengths("target_lengths", target_lengths, count)
    _check_lengths(log_probs, targets, lengths, sizes)
    losses = _ctc_loss.apply(log_probs, targets, lengths, sizes, blank, zero_infinity)
    if zero_infinity:
        losses = choose.apply(Tensor(np.isinf(losses.array)), 0.0, losses)
    if number == MEAN:
        counts = np.maximum(sizes, 1).astype(losses.array.dtype)
        divisor = Tensor(module_of(losses.array).asarray(counts))
        return mean_all.apply(div.apply(losses, divisor))
    if number:
        return sum_all.apply(losses)
    return squeeze_dim.apply(losses, 0) if single else losses
