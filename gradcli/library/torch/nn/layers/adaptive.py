"""`AdaptiveLogSoftmaxWithLoss`: a softmax over many classes, of which rare ones share clusters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, value_error
from gradcli.library.torch.nn.layer import register
from gradcli.library.torch.nn.layers.containers import ModuleList, Sequential
from gradcli.library.torch.nn.layers.linear import Linear
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.functions import methods, operators, torch


class _Output(tuple[Tensor, Tensor]):
    """The logarithms of the targets' probabilities, and the loss."""

    __slots__ = ()

    language_name: ClassVar[str] = "torch.nn.modules.adaptive._ASMoutput"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"loss", "output"})

    output = property(lambda self: self[0])
    loss = property(lambda self: self[1])

    def __repr__(self) -> str:
        return f"_ASMoutput(output={self[0]!r}, loss={self[1]!r})"


class AdaptiveLogSoftmaxWithLoss(Module):
    """Logarithms of probabilities: of the first classes by one layer, of others by the cluster that
    they are in, which is the smaller the rarer they are.

    Example: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])
    """

    language_attributes = Module.language_attributes | {"log_prob", "predict"}

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        steps = list(cutoffs)
        if not steps:
            raise value_error("cutoffs should be a sequence of length larger than 0")
        in_order = steps == sorted(set(steps)) and all(int(each) == each for each in steps)
        if not in_order or steps[0] <= 0 or steps[-1] > n_classes - 1:
            raise value_error(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing"
                " order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*steps, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = steps[0]
        self.n_clusters = len(steps)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for number, (start, stop) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (number + 1))
            first = Linear(in_features, width, False, device, dtype)
            self.tail.append(Sequential(first, Linear(width, stop - start, False, device, dtype)))

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        self.head.reset_parameters()
        for cluster in self.tail._modules.values():
            for layer in cluster._modules.values():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _Output:
        _check(input_, target_)
        is_batched = target_.ndim > 0
        input = input_ if is_batched else methods.unsqueeze(input_, 0)
        target = target_ if is_batched else methods.unsqueeze(target_, 0)
        count = target.shape[0]
        output = methods.new_zeros(input, (count,))
        places = torch.empty_like(target)
        used = 0
        for number, (low, high) in enumerate(pairwise([0, *self.cutoffs])):
            mask = torch.logical_and(torch.ge(target, low), torch.lt(target, high))
            rows = methods.squeeze(methods.nonzero(mask))
            if not rows.array.size:
                continue
            here = operators.getitem(target, mask)
            if number == 0:
                methods.index_copy_(places, 0, rows, here)
            else:
                part = methods.index_select(input, 0, rows)
                logs = torch.log_softmax(self.tail[number - 1](part), dim=1)
                methods.index_fill_(places, 0, rows, self.shortlist_size + number - 1)
                column = methods.unsqueeze(operators.sub(here, low), 1)
                own = methods.squeeze(methods.gather(logs, 1, column), 1)
                methods.index_copy_(output, 0, rows, own)
            used += rows.array.size
        if used != count:
            least, most = methods.min(target).item(), methods.max(target).item()
            raise runtime_error(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range"
                f" [{least}, {most}] were found. "
            )
        logs = torch.log_softmax(self.head(input), dim=1)
        chosen = methods.squeeze(methods.gather(logs, 1, methods.unsqueeze(places, 1)))
        methods.add_(output, chosen)
        loss = methods.mean(-output)
        return _Output((output if is_batched else methods.squeeze(output, 0), loss))

    def _all(self, input: Tensor, scores: Tensor) -> Tensor:
        """The logarithms of all probabilities, by the scores that the head gives."""
        logs = torch.log_softmax(scores, dim=1)
        short = self.shortlist_size
        whole = methods.new_empty(input, (scores.shape[0], self.n_classes))
        rows = slice(None)
        first = operators.getitem(logs, (rows, slice(None, short)))
        operators.setitem(whole, (rows, slice(None, short)), first)
        for number, (start, stop) in enumerate(pairwise(self.cutoffs)):
            inner = torch.log_softmax(self.tail[number](input), dim=1)
            cluster = methods.unsqueeze(operators.getitem(logs, (rows, short + number)), 1)
            operators.setitem(whole, (rows, slice(start, stop)), inner + cluster)
        return whole

    def log_prob(self, input: Tensor) -> Tensor:
        """The logarithms of the probabilities of all classes, of shape (N, classes)."""
        return self._all(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each example, of shape (N,)."""
        scores = self.head(input)
        output = torch.argmax(scores, dim=1)
        rare = torch.ge(output, self.shortlist_size)
        if not rare.array.any():
            return output
        if rare.array.all():
            return torch.argmax(self._all(input, scores), dim=1)
        part = self._all(operators.getitem(input, rare), operators.getitem(scores, rare))
        operators.setitem(output, rare, torch.argmax(part, dim=1))
        return output


def _check(input_: Tensor, target_: Tensor) -> None:
    """Raise E204 for shapes that do not go together."""
    if target_.ndim > 1:
        raise runtime_error("0D or 1D target tensor expected, multi-target not supported")
    if target_.ndim == 1 and input_.shape[0] != target_.shape[0]:
        raise runtime_error("Input and target should have the same size in the batch dimension.")
    if input_.ndim != target_.ndim + 1:
        raise runtime_error(
            f"{target_.ndim}D target tensor expects {target_.ndim + 1}D input tensors, but found"
            f" inputs with size {input_.shape}"
        )


register("adaptive", AdaptiveLogSoftmaxWithLoss)
