"""Seconds of whole processes over the rounds of their loops: start, compilation, and all.

Each program runs for 100 rounds, ten times as many, and so on, under each side, as long as that is
expected to take no longer than a limit; beyond it seconds are extrapolated from the last two cells
and marked with `~`, unless they fell. What the whole table's time does not suffice for is left out.
Each side is started once before, so that files and what compilers keep are in their caches, and the
shorter of two runs counts where it would be extrapolated.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measure import measure
from tests.benchmarks.opponents import Opposed, Sides
from tests.blocks import MANUAL, ROOT

PAGE = MANUAL / "benchmarks.md"
CHART = ROOT / "examples" / "benchmarks.svg"

WHOLE = [
    Opposed("MLP 30-200-27", "mlp_sgd", (30, 200, 27, 32)),
    Opposed("char-RNN", "char_rnn"),
    Opposed("PINN", "pinn", compiles=False),
    Opposed("small CNN", "small_cnn"),
    Opposed("attention", "small_attention"),
]

SIDES = ("gradcli", "torch", "torch.compile", "jax.jit")

ROUNDS = (100, 1_000, 10_000, 100_000)

CELL = 8.0
"""Seconds that a process may be expected to take."""


class Cell(NamedTuple):
    """Seconds of a process, measured or extrapolated."""

    seconds: float
    measured: bool

    def __str__(self) -> str:
        digits = 2 if self.seconds < 10 else 1 if self.seconds < 100 else 0
        return f"{'' if self.measured else '~'}{self.seconds:,.{digits}f}"


Line = dict[int, Cell]
"""What one side takes, by the rounds."""


class Table:
    """The whole-process times of all programs.

    Args:
        quick: whether to run few rounds only, to see that it works.
        seconds: what the table may take.
    """

    def __init__(self, sides: Sides, quick: bool, seconds: float) -> None:
        self.sides = sides
        self.rounds = (2, 4) if quick else ROUNDS
        self.until = time.monotonic() + seconds
        known = {*sides.commands, *(("torch.compile",) if "torch" in sides.commands else ())}
        self.names = [side for side in SIDES if side in known]
        self.lines: dict[tuple[str, str], Line] = {}

    def measure(self) -> None:
        """Fill the table, the sides in turn, so that each program has some of all."""
        for work in WHOLE:
            for side in self.names:
                takes_it = work.compiles or side != "torch.compile"
                self.lines[work.name, side] = self._line(work, side) if takes_it else {}
                told = ", ".join(f"{n:,}: {cell}" for n, cell in self._shown(work.name, side))
                print(f"{work.name:<15}{side:<15}{told or 'left out'}", flush=True)

    def _shown(self, program: str, side: str) -> list[tuple[int, Cell]]:
        return list(self.lines[program, side].items())

    def _line(self, work: Opposed, side: str) -> Line:
        line: Line = {}
        for rounds in self.rounds:
            expected = extrapolated(line, rounds)
            left = self.until - time.monotonic()
            # The first rounds compile: 100 of a loop and 1,000 of it are the least to tell by.
            if left <= 0 and len(line) < 2:
                return {}
            command = self.sides.command(work, side, rounds)
            if not line:
                measure(command)  # fills the caches of files and of compilers
            if len(line) < 2:  # whose noise would be extrapolated
                line[rounds] = Cell(min(measure(command).wall for _ in range(2)), True)
            elif expected <= min(CELL, left):
                line[rounds] = Cell(measure(command).wall, True)
            elif expected > [*line.values()][-1].seconds:
                line[rounds] = Cell(expected, False)
            else:
                break  # nothing grew, by which to tell more
        return line

    def crossings(self, program: str) -> list[tuple[str, float, float]]:
        """Where gradcli's line crosses another's: the side, the rounds, the seconds."""
        own = self.lines[program, "gradcli"]
        found = []
        for side in self.names[1:]:
            other = self.lines[program, side]
            found += [(side, *point) for point in crossings(own, other)] if other else []
        return found


def extrapolated(line: Line, rounds: int) -> float:
    """The seconds that more rounds would take, by the last two cells."""
    measured = [(n, cell.seconds) for n, cell in line.items() if cell.measured]
    if len(measured) < 2:
        return 0.0
    (few, shorter), (many, longer) = measured[-2:]
    return longer + max(longer - shorter, 0.0) / (many - few) * (rounds - many)


def crossings(own: Line, other: Line) -> list[tuple[float, float]]:
    """Where two lines cross on logarithmic axes: rounds and seconds."""
    found = []
    shared = [n for n in own if n in other]
    for few, many in pairwise(shared):
        before = math.log(own[few].seconds / other[few].seconds)
        after = math.log(own[many].seconds / other[many].seconds)
        if before * after < 0:
            share = before / (before - after)
            rounds = few * (many / few) ** share
            seconds = own[few].seconds * (own[many].seconds / own[few].seconds) ** share
            found.append((rounds, seconds))
    return found


# --- what is made of it --------------------------------------------------------------------------


def markdown(table: Table) -> str:
    """The table as Markdown, with a line for each crossing."""
    heads = " | ".join(f"{n:,}" for n in table.rounds)
    rows = [f"| seconds, by rounds | side | {heads} |", "|---" * (2 + len(table.rounds)) + "|"]
    crossed = []
    for work in WHOLE:
        for side in table.names:
            line = table.lines[work.name, side]
            cells = " | ".join(str(line[n]) if n in line else "" for n in table.rounds)
            rows.append(f"| {work.name} | {side} | {cells} |")
        crossed += [
            f"- {work.name}: gradcli and {side} take the same {seconds:.1f} s at"
            f" {float(f'{rounds:.1g}'):,.0f} rounds."
            for side, rounds, seconds in table.crossings(work.name)
        ]
    return "\n".join([_PICTURE, "", *rows, "", *(crossed or ["No lines cross."])])


_PICTURE = (
    "![Seconds over rounds on logarithmic axes; crosses mark where lines cross]"
    "(../../examples/benchmarks.svg)"
)

_TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)


def write_page(table: Table, page: Path) -> None:
    """Put the table into the page of the manual."""
    text = page.read_text(encoding="utf-8")
    page.write_text(_TABLE.sub(lambda _: f"\n{markdown(table)}\n\n", text), encoding="utf-8")


_LOOKS = {"gradcli": "-", "torch": "--", "torch.compile": "-.", "jax.jit": ":"}


def program_of_chart(table: Table, path: Path) -> str:
    """The program that draws the chart, a panel for each of the programs."""
    lines = ["import matplotlib.pyplot as plt", "fig, panels = plt.subplots(2, 3, figsize=(13, 8))"]
    for number, work in enumerate(WHOLE):
        axes = f"panels[{number // 3}][{number % 3}]"
        for side in table.names:
            line = table.lines[work.name, side]
            if line:
                seconds = [round(cell.seconds, 4) for cell in line.values()]
                looks = f"label={side!r}, linestyle={_LOOKS[side]!r}, marker='.'"
                lines.append(f"{axes}.loglog({list(line)}, {seconds}, {looks})")
        points = table.crossings(work.name)
        if points:
            rounds = [round(each[1], 1) for each in points]
            seconds = [round(each[2], 4) for each in points]
            lines.append(f"{axes}.scatter({rounds}, {seconds}, marker='x', color='black')")
        lines += [
            f"{axes}.set_title({work.name!r})",
            f"{axes}.set_xlabel('rounds')",
            f"{axes}.set_ylabel('seconds')",
        ]
    lines += ["panels[0][0].legend()", "panels[1][2].axis('off')", "fig.tight_layout()"]
    return "\n".join([*lines, f"plt.savefig({str(path)!r})", ""])


def write_chart(table: Table, path: Path) -> None:
    """Draw the chart by gradcli's own plots."""
    program = table.sides.folder / "chart.grad"
    program.write_text(program_of_chart(table, path), encoding="utf-8")
    subprocess.run([*table.sides.commands["gradcli"], str(program)], check=True)


def whole(sides: Sides, quick: bool, minutes: float) -> None:
    """Measure the table; write page and chart, in a hurry copies that are thrown away."""
    table = Table(sides, quick, 60 * minutes)
    table.measure()
    with tempfile.TemporaryDirectory() as folder:
        page, chart = PAGE, CHART
        if quick:
            page, chart = Path(folder) / PAGE.name, Path(folder) / CHART.name
            shutil.copy(PAGE, page)
        write_page(table, page)
        write_chart(table, chart)
        print(f"wrote {page.name} and {chart.name}")
