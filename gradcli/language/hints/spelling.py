"""Suggests the name that was likely meant by one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

_OTHERS = {
    "tensor": "array matrix",
    "mean": "average",
    "dim": "axis axes dimension dims",
    "ceil": "ceiling",
    "clone": "copy",
    "unsqueeze": "expand_dims",
    "False": "false",
    "logit": "inverse_sigmoid",
    "keepdim": "keep_dim keep_dims keepdims",
    "len": "length",
    "log": "ln logarithm",
    "log_softmax": "logsoftmax",
    "mse_loss": "mse",
    "None": "nil none null undefined",
    "ndim": "ndims",
    "pow": "power",
    "prod": "product",
    "repeat_interleave": "repeat_elements",
    "sigmoid": "sigm",
    "sqrt": "squareroot",
    "swapaxes": "swap_axes",
    "True": "true",
    "zeros_like": "zeros_as",
}
SPELLINGS = {other: ours for ours, others in _OTHERS.items() for other in others.split()}
"""Spellings of other tools, with ours. A suggestion is made where ours exists on the spot."""

ADVICE = {
    "Variable": "a tensor needs no Variable around it: `tensor(…, requires_grad=True)`",
    "astype": "`x.to(dtype)` casts, and so do `x.float()`, `x.double()`, `x.long()`",
    "append": "tensors do not grow: collect them in a list, and `torch.cat` or `torch.stack` it",
    "asnumpy": "`x.tolist()` gives Python's numbers",
    "cuda": "`x.to('cuda')` moves a tensor, where there is a GPU",
    "gradient": "after `y.backward()` the gradient of a leaf `x` is `x.grad`",
    "gradients": "after `y.backward()` the gradient of a leaf `x` is `x.grad`",
    "linalg": "linear algebra is in `torch.linalg`",
    "placeholder": "values come in as `NAME=VALUE`",
    "push": "a list grows with `append`",
    "random": "`torch.randn(2, 3)` draws from the normal distribution, `torch.rand` from [0, 1)",
    "println": "`print(x)` shows a value",
    "printf": "`print(f'…')` shows text with values in it",
    "reduce_mean": "`x.mean()`, or `x.mean(dim)` along a dimension",
    "reduce_sum": "`x.sum()`, or `x.sum(dim)` along a dimension",
    "toarray": "`x.tolist()` gives Python's numbers",
    "zero_gradients": "`x.grad = None`, or `x.grad.zero_()`, forgets a gradient",
}
"""What to write for names of other tools that have no single counterpart here."""

_SHORT = 5
_NEAR = 0.75
_VERY_NEAR = 0.8


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a misspelt name was likely meant to be, None if none is near."""
    names = [candidate for candidate in candidates if not candidate.startswith("_")]
    foreign = SPELLINGS.get(name.lower())
    if foreign in names:
        return foreign
    folded: dict[str, str] = {}
    for candidate in names:
        folded.setdefault(candidate.lower(), candidate)
    if name.lower() in folded:
        return folded[name.lower()]
    if len(name) < 3:
        return None
    # Swapped letters are the commonest typing error, and weigh much in a short name.
    letters = sorted(name.lower())
    for candidate in folded:
        if len(candidate) == len(name) and sorted(candidate) == letters:
            return folded[candidate]
    from difflib import SequenceMatcher, get_close_matches

    for near in get_close_matches(name.lower(), folded, n=3, cutoff=_NEAR):
        # Among short names many are alike: `foo` was hardly meant as `floor`.
        alike = SequenceMatcher(None, near, name.lower()).ratio()
        if len(name) >= _SHORT or len(near) == len(name) or alike >= _VERY_NEAR:
            return folded[near]
    return None


def suggestion(name: str, candidates: Iterable[str]) -> str | None:
    """The help for a name that does not exist, None where no name is near."""
    if name in ADVICE:
        return ADVICE[name]
    near = closest(name, candidates)
    return None if near is None else f"did you mean `{near}`?"
