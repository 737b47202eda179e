"""`python -m tests.benchmarks [NAME…]`: the table of gradcli against torch; `--profile` and
`--scaling` print tables of what an op, a node and a line cost.

Each program runs as a whole process under `gradcli run FILE` and under `python FILE` with torch, in
turn. Net figures have each side's own cold start taken off, which runs in the same turns: a second
of torch's importing, taken off two, must not come from other minutes. Without torch only gradcli's
figures are shown.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import Series, alternate
from tests.benchmarks.per_op import profile
from tests.benchmarks.scaling import scaling
from tests.benchmarks.work import COLD_START, NUMPY_COLD_START, ONE_SHOT, WORKS, Work

HEADINGS = (
    f"{'work':<24}{'gradcli':>9}{'min–max':>13}{'torch':>9}{'min–max':>13}"
    f"{'ratio':>8}{'must':>7}{'aim':>6}"
)


def main() -> int:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all when none is named")
    parser.add_argument("--profile", action="store_true", help="microseconds an op and a node")
    parser.add_argument("--scaling", action="store_true", help="does the cost of one grow?")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once: does it all run?")
    parser.add_argument("--times", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--torch", metavar="PYTHON", default=sys.executable, help="with torch")
    parser.add_argument("--gradcli", metavar="COMMAND", help="the gradcli to measure")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {work.name for work in WORKS} - {COLD_START.name}
    if unknown:
        parser.error(f"no program {', '.join(sorted(unknown))}")
    torch = arguments.torch if has_torch(arguments.torch) else None
    if torch is None:
        print(f"{arguments.torch} has no torch: gradcli's own figures only")
    times = 1 if arguments.quick else arguments.times
    if arguments.profile or arguments.scaling:
        if arguments.profile:
            profile(torch, arguments.quick, times)
        if arguments.scaling:
            scaling(arguments.quick, times)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), gradcli(arguments.gradcli), torch, arguments.quick, times)
        bench.cold_start()
        for work in WORKS:
            if not arguments.names or work.name in arguments.names:
                bench.run(work)
    return 0


def has_torch(python: str) -> bool:
    """Whether a Python can import torch."""
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def gradcli(command: str | None) -> list[str]:
    """The command that runs gradcli: as asked, else the one installed beside this Python."""
    found = command or shutil.which("gradcli", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-m", "gradcli"]


class Bench:
    """One table: what was asked for."""

    def __init__(
        self, folder: Path, gradcli: list[str], torch: str | None, quick: bool, times: int
    ) -> None:
        self.folder = folder
        self.gradcli = gradcli
        self.torch = torch
        self.quick = quick
        self.times = times

    def commands(self, work: Work) -> dict[str, list[str]]:
        """The same program under both."""
        path = self.folder / f"{work.name}.grad"
        path.write_text(work.text(self.quick), encoding="utf-8")
        commands = {"gradcli": [*self.gradcli, "run", str(path)]}
        if self.torch is not None:
            commands["torch"] = [self.torch, str(path)]
        return commands

    def cold_start(self) -> None:
        """Measure what each side takes for next to no work, and show it."""
        commands = self.commands(COLD_START)
        commands["one-shot"] = [*self.gradcli, *ONE_SHOT]
        commands["numpy"] = [sys.executable, "-c", "import numpy"]
        # The first run of all fills caches that every later one finds.
        alternate(commands, 1)
        series = alternate(commands, self.times)
        print(HEADINGS)
        for name, side in (("cold start", "gradcli"), ("one-shot", "one-shot")):
            timed = {"gradcli": series[side]}
            numpy = timed | {"torch": series["numpy"]}
            if self.torch is not None:
                timed["torch"] = series["torch"]
            self.row(name, timed, COLD_START.time, "wall")
            self.row(f"{name}, import numpy", numpy, NUMPY_COLD_START, "wall")

    def run(self, work: Work) -> None:
        """Measure one program and show its lines."""
        commands = self.commands(work)
        sides = list(commands)
        if not work.whole:
            commands |= {f"{side}, idle": c for side, c in self.commands(COLD_START).items()}
        series = alternate(commands, self.times)
        idle = {} if work.whole else {side: series[f"{side}, idle"] for side in sides}
        self.row(work.name, series, work.time, "wall", idle)
        if work.memory is not None:
            self.row(f"{work.name}, memory", series, work.memory, "peak", idle)
        outputs = {side: series[side].runs[0].output for side in sides}
        if len(set(outputs.values())) > 1:
            print(f"  they print different things: {outputs}")

    def row(
        self,
        name: str,
        series: dict[str, Series],
        bars: tuple[float, float],
        what: str,
        idle: dict[str, Series] | None = None,
    ) -> None:
        """Print a line of the table: medians, spreads, the ratio and its bars; net of `idle`."""
        figures = {}
        line = f"{name:<24}"
        for side in ("gradcli", "torch"):
            if side not in series:
                line += f"{'–':>9}{'':>13}"
                continue
            figure = series[side].wall() if what == "wall" else series[side].peak()
            if idle:
                figure -= idle[side].wall() if what == "wall" else idle[side].peak()
            figures[side] = figure
            shown = f"{figure:.3f}" if what == "wall" else f"{figure / 1e6:.0f} MB"
            line += f"{shown:>9}{series[side].spread() if what == 'wall' else '':>13}"
        if "torch" in figures and not self.quick:
            ratio = figures["gradcli"] / figures["torch"]
            verdict = "" if ratio <= bars[0] else "  missed"
            line += f"{ratio:>8.2f}{bars[0]:>7}{bars[1]:>6}{verdict}"
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
