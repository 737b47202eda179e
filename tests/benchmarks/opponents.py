"""Programs that PyTorch, `torch.compile` and `jax.jit` run too: `--jax` has microseconds a step of
the loops by their own clocks, `--whole` seconds of whole processes over the rounds.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measure import RUN, alternate, measure
from tests.benchmarks.rounds import refusal, settled_rounds
from tests.benchmarks.work import Work

JAX = Path(__file__).parent / "jax"

_SIZES = re.compile(r"^SIZES = .*$", re.MULTILINE)

_ROUNDS = re.compile(r"^ROUNDS = .*$", re.MULTILINE)


class Opposed(NamedTuple):
    """A program with a twin for JAX, `jax/PROGRAM.jax`.

    Attributes:
        name: what the tables call it.
        program: the file in `programs/`.
        sizes: those of the network, where the program takes several.
        compiles: whether `torch.compile` takes it: it takes no second derivatives.
    """

    name: str
    program: str
    sizes: tuple[int, ...] = ()
    compiles: bool = True

    def rounds(self, quick: bool) -> int:
        """How many rounds the program makes."""
        return Work(self.program).rounds(quick)

    def text(self, side: str, rounds: int) -> str:
        """The program as a side runs it, for as many rounds."""
        if side == "jax.jit":
            text = (JAX / f"{self.program}.jax").read_text(encoding="utf-8")
            text = _ROUNDS.sub(f"ROUNDS = {rounds}", text)
        else:
            text = Work(self.program).text(rounds)
        if self.sizes:
            text, count = _SIZES.subn(f"SIZES = {self.sizes}", text)
            assert count == 1, f"{self.program} has no sizes"
        return compiled(text) if side == "torch.compile" else text


_LOOP = re.compile(r"^for step in range\(ROUNDS\):\n((?:    .*\n)+)", re.MULTILINE)


def compiled(text: str) -> str:
    """A program of PyTorch whose forward pass and loss are compiled: what stands in its loop before
    the gradients are cleared or `backward()` is called is a function.
    """
    found = _LOOP.search(text)
    assert found is not None, "there is no loop"
    lines = found[1].splitlines()
    forward: list[str] = []
    others: list[str] = []
    is_forward = True
    for line in lines:
        called = line.strip()
        is_forward = is_forward and not called.startswith("loss.backward")
        (others if not is_forward or "zero_grad" in called else forward).append(line)
    function = "\n".join(["def forward():", *forward, "    return loss", ""])
    clearing = [line for line in others if "zero_grad" in line]
    behind = [line for line in others if line not in clearing]
    step = "\n".join([*clearing, "    loss = forward()", *behind, ""])
    began = text.rindex("began = ", 0, found.start())
    return (
        f"{text[:began]}@torch.compile\n{function}\n{text[began : found.start()]}"
        f"for step in range(ROUNDS):\n{step}{text[found.end() :]}"
    )


STEPS = [
    Opposed("mlp 2-8-2", "mlp_sgd", (2, 8, 2, 16)),
    Opposed("mlp 30-200-27", "mlp_sgd", (30, 200, 27, 32)),
    Opposed("mlp 784-128-10", "mlp_sgd", (784, 128, 10, 64)),
    Opposed("char_rnn", "char_rnn"),
    Opposed("pinn", "pinn"),
    Opposed("embedding_mlp", "embedding_mlp"),
]
"""Those whose steps are measured beside `jax.jit`."""

STEP = (1.0, 0.7)
"""The ratios to it that they must reach and aim at."""


def share_cores(cores: int) -> None:
    """Let this process and all that it starts have as many cores, so that no side has more threads
    at work than another.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(cores)
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


class Sides:
    """The commands of gradcli and its opponents, each for a file."""

    def __init__(self, folder: Path, gradcli: list[str], torch: str | None, jax: str | None):
        self.folder = folder
        self.commands = {"gradcli": [*gradcli, *RUN]}
        if torch is not None:
            self.commands["torch"] = [torch]
        if jax is not None:
            self.commands["jax.jit"] = [jax]

    def command(self, work: Opposed, side: str, rounds: int) -> list[str]:
        """What runs a program for as many rounds."""
        name = re.sub(r"\W", "_", f"{work.name}_{side}_{rounds}")
        path = self.folder / f"{name}.py"
        path.write_text(work.text(side, rounds), encoding="utf-8")
        command = self.commands["torch" if side == "torch.compile" else side]
        return [*command, str(path)]


def _rounds(sides: Sides, work: Opposed, side: str, quick: bool) -> int:
    rounds = work.rounds(quick)
    if quick:
        return rounds
    return settled_rounds(lambda n: measure(sides.command(work, side, n)).loop, rounds)


def steps(sides: Sides, quick: bool, times: int) -> None:
    """Print the table of steps: at N and 3 N rounds, by each program's own clock."""
    names = list(sides.commands)
    heads = "".join(f"{name:>11}{'grown':>7}" for name in names)
    print(f"{'µs a step':<18}{heads}{'beside jax':>12}{'must':>7}{'aim':>6}")
    for work in STEPS:
        rounds = {side: _rounds(sides, work, side, quick) for side in names}
        commands = {
            (side, factor): sides.command(work, side, factor * rounds[side])
            for side in names
            for factor in (1, 3)
        }
        line, per_step, refused = f"{work.name:<18}", {}, []
        series = alternate(commands, times)
        for side in names:
            once, thrice = series[side, 1].loop(), series[side, 3].loop()
            # The first rounds are interpreted: what is between is all steps.
            per_step[side] = (thrice - once) / (2 * rounds[side])
            refused.append(refusal(side, rounds[side], once, thrice))
            line += f"{per_step[side] * 1e6:>11.1f}{thrice / once:>7.1f}"
        if not quick and any(refused):
            line += f"  refused: {'; '.join(filter(None, refused))}"
        elif not quick and "jax.jit" in per_step:
            ratio = per_step["gradcli"] / per_step["jax.jit"]
            missed = "  missed" if ratio > STEP[0] else ""
            line += f"{ratio:>12.2f}{STEP[0]:>7}{STEP[1]:>6}{missed}"
        print(line, flush=True)
