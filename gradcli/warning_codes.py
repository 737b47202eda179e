"""The codes of warnings: what is likely a slip, though PyTorch runs it; `gradcli help CODE` shows
the text.
"""

from __future__ import annotations

from gradcli.code import Code


def _warning(title: str, explanation: str, example: str, stage: str = "evaluating") -> Code:
    return Code(title, "UserWarning", stage, explanation, example, 0)


WARNINGS: dict[str, Code] = {
    "W001": _warning(
        "a column and a vector make a matrix",
        "An operation met the shapes (N, 1) and (N,). Broadcasting pairs every element of the one"
        " with every element of the other: N*N results where N were likely meant. In a loss this is"
        " the bug that trains and never fits. Write `pred.squeeze(1)`, or `y[:, None]`; an"
        " operation that says `[:, None]` or `unsqueeze` itself is not warned of.",
        "pred = ones(3, 1, requires_grad=True)\ny = ones(3)\nloss = ((pred - y) ** 2).mean()",
    ),
    "W002": _warning(
        "a leaf is replaced in a loop",
        "`w = w - lr * w.grad` makes a new tensor and leaves the old one. The new `w` is no leaf"
        " that requires grad, so the next round finds no gradient in it. Change the leaf itself:"
        " `with torch.no_grad(): w -= lr * w.grad`.",
        "w = ones(1, requires_grad=True)\nfor i in range(1):\n    (w * 2).sum().backward()\n"
        "    w = w - 0.1 * w.grad",
    ),
    "W003": _warning(
        "the gradient of a non-leaf is not kept",
        "A backward pass leaves gradients in leaves alone. A tensor that an operation made has"
        " `.grad` None, unless `y.retain_grad()` was called before the backward pass.",
        "x = ones(2, requires_grad=True)\ny = x * 2\ny.sum().backward()\nprint(y.grad)",
    ),
    "W004": _warning(
        "target and input differ in shape",
        "A loss compares input and target element by element. Where their shapes differ it"
        " broadcasts them first, and compares pairs that do not belong together.",
        "F.mse_loss(ones(3, 1), ones(3))",
    ),
    "W005": _warning(
        "a tensor is copied by torch.tensor",
        "`torch.tensor(x)` copies the numbers of a tensor and cuts it from its graph. Where that is"
        " meant, `x.detach().clone()` says it; where it is not, use `x` itself or `torch.stack`.",
        "x = ones(2, requires_grad=True)\ntorch.tensor(x)",
    ),
    "W006": _warning(
        "the dimension is guessed",
        "Without `dim`, `F.softmax` and its relatives take dimension 0 for tensors of 0, 1 or 3"
        " dimensions and dimension 1 for others. Say which: `F.softmax(x, dim=-1)`.",
        "F.softmax(ones(2, 3))",
    ),
    "W007": _warning(
        "a number leaves the graph",
        "`float(x)` and `int(x)` give a plain number, which carries no gradient: what is computed"
        " from it does not depend on x. Where that is meant, `x.item()` says it.",
        "x = tensor(2., requires_grad=True)\nprint(float(x))",
    ),
    "W008": _warning(
        "too few elements for a variance",
        "A variance divides by the number of elements less 1: for one element that is 0, and the"
        " result is nan. `correction=0` divides by the number of elements.",
        "ones(1).std()",
    ),
    "W009": _warning(
        "an argument is not used",
        "The program never mentions the name of a `NAME=VALUE`, or gives it a value that cannot be"
        " replaced.",
        "",
        "reading",
    ),
}
