"""The codes of warnings: what is likely a slip, though PyTorch runs it. The text that `gradcli help
CODE` shows of one stands in `gradcli/manual/codes/CODE.md`.
"""

from __future__ import annotations

from gradcli.code import Code


def _warning(title: str, stage: str = "evaluating") -> Code:
    return Code(title, "UserWarning", stage, 0)


WARNINGS: dict[str, Code] = {
    "W001": _warning("a column and a vector make a matrix"),
    "W002": _warning("a leaf is replaced in a loop"),
    "W003": _warning("the gradient of a non-leaf is not kept"),
    "W004": _warning("target and input differ in shape"),
    "W005": _warning("a tensor is copied by torch.tensor"),
    "W006": _warning("the dimension is guessed"),
    "W007": _warning("a number leaves the graph"),
    "W008": _warning("too few elements for a variance"),
    "W009": _warning("an argument is not used", "reading"),
}
