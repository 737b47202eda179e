"""`python -m tests.benchmarks --profile`: microseconds an op takes forward, and a node backward."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_TIMED = (Path(__file__).parent / "timed.py").read_text(encoding="utf-8")

# A shape, a step from `y` to the next `y` that makes one node, and a dtype, float32 where there is
# none.
_STEPS = (
    ("()", "y * w"),
    ("()", "y + w"),
    ("()", "y / 1.5"),
    ("()", "torch.tanh(y)"),
    ("(32, 16)", "y * w"),
    ("(32, 16)", "y + b"),
    ("(32, 16)", "torch.tanh(y)"),
    ("(32, 16)", "torch.relu(y)"),
    ("(32, 16)", "y @ m"),
    ("(32, 32)", "y.t()"),
    ("(64, 256)", "y * w", "float16"),
    ("(64, 256)", "y + w", "bfloat16"),
)

_SETUP = """\
import torch

w = torch.full({shape}, 0.9, dtype=torch.{dtype}, requires_grad=True)
b = torch.full((16,), 0.1, requires_grad=True)
m = torch.eye(16)
y = w * 1.0
for step in range({count}):
    y = {step}
"""


def timed(side: str, python: str, texts: list[str], times: int) -> list[float]:
    """The seconds that programs take in one process of a side."""
    ended = subprocess.run(
        [python, "-c", _TIMED, side, str(times)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    found: list[float] = json.loads(ended.stdout)
    return found


def _programs(count: int, shape: str, step: str, dtype: str = "float32") -> list[str]:
    """Nothing, the steps, and the steps differentiated."""
    nothing, steps = [
        _SETUP.format(shape=shape, step=step, dtype=dtype, count=number) for number in (0, count)
    ]
    last = "y.backward(torch.ones_like(y))\n"
    return [nothing + last, steps, steps + last]


def profile(torch: str | None, quick: bool, times: int) -> None:
    """Print the table; without torch, gradcli's columns alone."""
    count = 20 if quick else 1000
    programs = [text for row in _STEPS for text in _programs(count, *row)]
    sides = {"gradcli": sys.executable} | ({"torch": torch} if torch else {})
    found = {side: timed(side, python, programs, times) for side, python in sides.items()}
    print(
        f"{'microseconds':<34}"
        + "".join(f"{f'{side} forward':>17}{'backward':>10}" for side in sides)
    )
    for row, (shape, *rest) in enumerate(_STEPS):
        line = f"{shape:<10}{' '.join(rest):<24}"
        for seconds in found.values():
            nothing, forward, both = seconds[3 * row : 3 * row + 3]
            scale = 1e6 / count
            line += f"{(forward - nothing) * scale:>17.2f}{(both - forward) * scale:>10.2f}"
        print(line)
