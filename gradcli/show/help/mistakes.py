"""The twenty commonest mistakes with what gradcli says of each: `gradcli help mistakes`.

The page is made by running the programs, so it shows what is said today.
"""

from __future__ import annotations

from typing import Any

from gradcli.errors import GradcliError, Warned
from gradcli.language.events import Printed
from gradcli.record import Record
from gradcli.session import Session
from gradcli.show.diagnostics.human import diagnostic, warning
from gradcli.show.style import PLAIN, Style


class Mistake(Record):
    """A mistake and a program that makes it.

    Attributes:
        code: the code of what is said of it, "" where nothing can be said.
        remark: what there is to know beyond what is said, or "".
    """

    title: str
    code: str
    program: str
    remark: str = ""


MISTAKES = (
    Mistake(
        "matrices whose shapes do not fit",
        "E301",
        "x = randn(8, 3)\nw = randn(4, 3)\ny = x @ w",
    ),
    Mistake(
        "a name without a value",
        "E101",
        "weights = ones(3)\nprint(wieghts.sum())",
    ),
    Mistake(
        "backward from more than one element",
        "E401",
        "x = tensor([1., 2., 3.], requires_grad=True)\ny = x ** 2\ny.backward()",
        "A loss is one number: `y.sum().backward()` is the usual way.",
    ),
    Mistake(
        "gradients of integers",
        "E408",
        "x = tensor([1, 2, 3], requires_grad=True)",
    ),
    Mistake(
        "backward twice through one graph",
        "E403",
        "x = tensor(2., requires_grad=True)\ny = x ** 3\ny.backward()\ny.backward()",
    ),
    Mistake(
        "a leaf changed in place",
        "E405",
        "w = tensor([1., 2.], requires_grad=True)\nw -= 0.1",
    ),
    Mistake(
        "a value changed that the gradient needs",
        "E404",
        "x = tensor([1., 2.], requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()",
    ),
    Mistake(
        "the gradient of a tensor in the middle",
        "W003",
        "x = tensor(2., requires_grad=True)\ny = x * 3\n(y * y).backward()\nprint(y.grad)",
    ),
    Mistake(
        "a step that replaces the leaf",
        "W002",
        "w = tensor(1., requires_grad=True)\nfor step in range(1):\n    ((w - 3) ** 2).backward()\n"
        "    w = w - 0.1 * w.grad",
    ),
    Mistake(
        "gradients that are never set back",
        "",
        "w = tensor(1., requires_grad=True)\nfor step in range(2):\n    (w * 3).backward()\n"
        "    print(w.grad)",
        "Every backward pass adds to .grad. Set it back in each round: `w.grad = None`, or"
        " `optimizer.zero_grad()`.",
    ),
    Mistake(
        "a graph that detach(), item() or no_grad() cut",
        "E402",
        "x = tensor(2., requires_grad=True)\ny = x.detach() * 3\ny.backward()",
    ),
    Mistake(
        "a column compared with a vector",
        "W001",
        "x, y = randn(4, 1), randn(4)\nw = ones(1, 1, requires_grad=True)\npred = x @ w\n"
        "loss = ((pred - y) ** 2).mean()",
    ),
    Mistake(
        "NumPy's names",
        "E202",
        "x = ones(2, 3)\ny = np.sum(x)",
    ),
    Mistake(
        "a power written ^",
        "E203",
        "x = tensor(3.)\ny = x ^ 2",
    ),
    Mistake(
        "an index that is not an integer",
        "E302",
        "x = randn(5)\ni = tensor([0., 2.])\nprint(x[i])",
    ),
    Mistake(
        "a dimension that there is not",
        "E302",
        "x = randn(2, 3)\nprint(x.sum(dim=2))",
    ),
    Mistake(
        "joining shapes that do not fit",
        "E301",
        "a = randn(2, 3)\nb = randn(2, 4)\nc = torch.cat([a, b])",
    ),
    Mistake(
        "asking a whole tensor for yes or no",
        "E203",
        "x = tensor([1., -2.])\nif x > 0:\n    print('positive')",
    ),
    Mistake(
        "a class number beyond the last",
        "E302",
        "logits = randn(2, 3)\nlabels = tensor([1, 3])\nloss = F.cross_entropy(logits, labels)",
    ),
    Mistake(
        "a value called like a function",
        "E202",
        "x = randn(2, 3)\nn = x.shape()",
    ),
)
"""The mistakes, in the order of the page."""


def mistakes_page(style: Style = PLAIN) -> str:
    """The page: each mistake's program with what gradcli says of it."""
    title = f"The {len(MISTAKES)} commonest mistakes, and what gradcli says of them"
    parts = [style.paint(title, "strong")]
    for number, mistake in enumerate(MISTAKES, 1):
        program = mistake.program.replace("\n", "\n    ")
        parts += [
            "",
            style.paint(f"{number}. {mistake.title}", "strong"),
            "",
            f"    {program}",
            "",
            said(mistake, style),
        ]
        if mistake.remark:
            parts += ["", mistake.remark]
    return "\n".join(parts) + "\n"


def said(mistake: Mistake, style: Style = PLAIN) -> str:
    """What gradcli prints and says of a mistake's program."""
    shown: list[str] = []

    def receive(event: Any) -> None:
        if isinstance(event, Warned):
            shown.append(warning(event, style))
        elif isinstance(event, Printed):
            shown.append(event.text.removesuffix("\n"))

    try:
        for _ in Session(receive).run(mistake.program, "program"):
            pass
    except GradcliError as error:
        shown.append(diagnostic(error, style))
    return "\n".join(shown)
