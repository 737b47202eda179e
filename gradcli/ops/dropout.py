"""`dropout`: elements set to 0 at random."""

from __future__ import annotations

from typing import ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.activation import activation
from gradcli.ops.arguments import check_tensors
from gradcli.ops.arithmetic import mul
from gradcli.ops.catalogue import modules
from gradcli.ops.random import bernoulli_array


@activation("dropout", torch=True, inplace=True)
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element is set to 0 with probability p, and the others are divided by 1 - p; the tensor
    itself without `training`, or with p = 0. Raises E204 where p is no probability.
    """
    check_tensors("dropout", input=input)
    if not 0 <= p <= 1:
        raise GradcliError("E204", f"dropout(): p is a probability, and {p} is none")
    if not training or p == 0:
        return input
    kept = bernoulli_array(input.array.shape, 1 - p).astype(input.array.dtype)
    return mul.apply(input, Tensor(kept / (1 - p) if p < 1 else kept))


class Dropout:
    """`torch.nn.Dropout(p)`: dropout as an object, which does nothing in evaluation.

    Attributes:
        p: the probability with which an element is set to 0.
        training: whether it drops; `train()` and `eval()` set it.
    """

    __slots__ = ("p", "training")

    language_name: ClassVar[str] = "torch.nn.modules.dropout.Dropout"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"eval", "p", "train", "training"})
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"p", "training"})

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise GradcliError("E204", f"Dropout(): p is a probability, and {p} is none")
        if inplace:
            raise GradcliError("E205", "Dropout(): inplace=True is outside the catalogue")
        self.p = p
        self.training = True

    def train(self, mode: bool = True) -> Dropout:
        """Drop elements from now on, or stop with `mode` False."""
        self.training = mode
        return self

    def eval(self) -> Dropout:
        """Drop nothing from now on."""
        return self.train(False)

    def __call__(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training)

    def __repr__(self) -> str:
        return f"Dropout(p={self.p}, inplace=False)"


modules["torch.nn"]["Dropout"] = Dropout
