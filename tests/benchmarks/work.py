"""What is measured: each program with the ratios to torch that it must reach, and aims at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "programs"

_ROUNDS = re.compile(r"^ROUNDS = (\d+)  # quick: (\d+)$", re.MULTILINE)

_STATEMENTS = (10_000, 30)


class Work(NamedTuple):
    """A program and its bars.

    Attributes:
        name: of the file in `programs/`, which prints what its loop took by its own clock.
        time: the ratios of gradcli to torch that a round must reach and aims at.
        real: whether it is one of the real programs, of which the geometric mean is taken.
        on_gpu: whether it runs on a GPU, at the sizes of `ON_GPU`.
    """

    name: str
    time: tuple[float, float] = (1.0, 0.8)
    real: bool = True
    on_gpu: bool = False

    @property
    def whole(self) -> bool:
        """Whether it has no loop: of the whole run the cold start is taken off."""
        return self.name == "straight_line"

    def rounds(self, quick: bool) -> int:
        """How many rounds the program makes; a statement is a round of what has no loop."""
        if self.whole:
            return _STATEMENTS[quick]
        found = _ROUNDS.search(self._file())
        assert found is not None, f"{self.name} says no number of rounds"
        return int(found[1 + quick])

    def text(self, rounds: int) -> str:
        """The program, for as many rounds."""
        if self.whole:
            return straight_line(rounds)
        text = _ROUNDS.sub(f"ROUNDS = {rounds}", self._file())
        if not self.on_gpu:
            return text
        for small, large in ON_GPU[self.name].items():
            assert small in text, f"{self.name} has no {small}"
            text = text.replace(small, large)
        return text.replace("import torch\n", f"import torch\n{_DEVICE}\n", 1)

    def _file(self) -> str:
        return (PROGRAMS / f"{self.name}.grad").read_text(encoding="utf-8")


COLD_START = (0.15, 0.10)
"""The bars of a cold start against torch's."""

NUMPY_COLD_START = (1.3, 1.2)
"""Those against a bare `import numpy`."""

ONE_SHOT = ["e = (a + b) * d", "a=2", "b=3", "d=4"]
"""The same as a command of its own, which shows the graph besides."""

WORKS = [
    *(Work(name) for name in (
        "sorting", "per_sample", "lstm", "gaussian_process", "option", "gpt", "embedding_mlp",
        "lbfgs", "four_convolutions", "cnn", "derivatives", "layer_norm", "attention",
        "rnn_by_hand", "loader", "mlp", "neural_ode", "pinn", "resnet_block", "vae",
        "gru_classifier", "dqn_step", "gan_step", "graph_network",
    )),
    Work("scalar_loop", (0.3, 0.1), real=False),
    Work("training", (0.7, 0.45), real=False),
    Work("pointwise", (0.75, 0.45), real=False),
    Work("cross_entropy", real=False),
    Work("convolution", real=False),
    Work("chain", (0.5, 0.3), real=False),
    Work("hessian", (0.9, 0.6), real=False),
    Work("straight_line", (0.6, 0.4), real=False),
]  # fmt: skip

ON_GPU = {
    "sorting": {"400, 2000": "4000, 8000", "2000, (400, 50)": "8000, (4000, 50)"},
    "gaussian_process": {"n = 150": "n = 3000"},
    "option": {"50, 20000": "50, 1000000"},
    "gpt": {
        "Embedding(65, 32)": "Embedding(65, 512)",
        "Embedding(16, 32)": "Embedding(256, 512)",
        "Block(32, 4)": "Block(512, 8)",
        "LayerNorm(32)": "LayerNorm(512)",
        "Linear(32, 65)": "Linear(512, 65)",
        "(16, 17)": "(64, 257)",
    },
    "four_convolutions": {"16, 16, 32, 32": "256, 16, 64, 64"},
    "cnn": {"(32, 1, 28, 28)": "(2048, 1, 28, 28)", "10, (32,)": "10, (2048,)"},
    "layer_norm": {"randn(128, 512)": "randn(16384, 512)"},
    "attention": {"4, 8, 256, 64": "8, 16, 512, 64"},
}
"""The programs whose rounds fill a GPU at larger sizes, and what they have for what."""

GPU_TIME = (1.0, 0.7)
"""Their bars."""

_DEVICE = 'torch.set_default_device("cuda")'

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
