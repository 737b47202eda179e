"""What is measured: each program with the ratios to torch that it must reach, and aims at."""

from __future__ import annotations

import re
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"

_SIZE = re.compile(r"^SIZE = (\d+)  # quick: (\d+)$", re.MULTILINE)


class Work:
    """A program and its bars.

    `time` and `memory` are `(must, aim)` ratios of gradcli to torch. They are taken net of each
    side's cold start unless `whole`.
    """

    __slots__ = ("memory", "name", "time", "whole")

    def __init__(
        self,
        name: str,
        time: tuple[float, float],
        memory: tuple[float, float] | None = None,
        whole: bool = False,
    ) -> None:
        self.name = name
        self.time = time
        self.memory = memory
        self.whole = whole

    def text(self, quick: bool) -> str:
        """The program's text, small in quick mode."""
        if self.name == "straight_line":
            return straight_line(30 if quick else 3000)
        text = (PROGRAMS / f"{self.name}.grad").read_text(encoding="utf-8")
        return _SIZE.sub(lambda size: f"SIZE = {size[2]}", text) if quick else text


COLD_START = Work("cold_start", (0.15, 0.10), whole=True)

ONE_SHOT = ["e = (a + b) * d", "a=2", "b=3", "d=4"]
"""The same as a command of its own, which shows the graph besides."""

NUMPY_COLD_START = (2.0, 1.5)
"""The cold start's bars against a bare `import numpy`."""

WORKS = [
    Work("scalar_loop", (0.6, 0.4)),
    Work("training", (0.7, 0.45)),
    Work("pointwise", (0.75, 0.45), memory=(0.7, 0.45)),
    Work("cross_entropy", (1.3, 0.9)),
    Work("mlp", (1.0, 0.85)),
    Work("convolution", (4.0, 2.0)),
    Work("chain", (0.5, 0.3), memory=(0.5, 0.35)),
    Work("hessian", (0.9, 0.6)),
    Work("straight_line", (0.6, 0.4), whole=True),
]

_PATTERNS = (
    "v{n} = v{a} * {c} + torch.tanh(v{b}) - v{a} / {d}",
    "v{n} = (v{a} + {c}) * (v{b} - {d}) * 0.5 + v{a}",
    "v{n} = torch.sin(v{a} * {c}) + torch.cos(v{b} + {d}) * 0.25",
    "v{n} = torch.exp(-v{a} * v{a}) * {c} + v{b} * 0.125 - {d}",
    "v{n} = torch.sigmoid(v{a}) * ({c} - torch.sigmoid(v{b})) + v{a} * {d}",
)


def straight_line(statements: int) -> str:
    """A program as a generator writes them: one assignment a line, few patterns, new numbers."""
    lines = ["import torch", "v0 = torch.tensor(0.5, requires_grad=True)"]
    for n in range(1, statements + 1):
        pattern = _PATTERNS[n * 7 % 11 % len(_PATTERNS)]
        a, b = n - 1, max(0, n - 1 - n * 7 % 13)
        c, d = 0.1 + n * 37 % 89 / 100, 1 + n * 53 % 97 / 100
        lines.append(pattern.format(n=n, a=a, b=b, c=f"{c:.2f}", d=f"{d:.2f}"))
    return "\n".join(
        [*lines, f"v{statements}.backward()", f'print(f"{{v{statements}.item():.3f}}")', ""]
    )
