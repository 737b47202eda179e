"""`dropout`: elements set to 0 at random."""

from __future__ import annotations

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.activation import activation
from gradcli.ops.arguments import check_tensors
from gradcli.ops.arithmetic import mul
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
