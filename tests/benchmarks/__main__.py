"""`python -m tests.benchmarks [NAME…]`: the table of gradcli against torch; `--profile` and
`--scaling` print tables of what an op, a node and a line cost, `--where` where a round's time goes,
`--records` what a record of a sweep takes in one process, in two and on a cluster, `--recording`
what recording a step of PyTorch costs, and what questions about it do. `--jax PYTHON` has steps
beside `jax.jit`, `--whole` whole processes over their rounds, for the manual; `--interpreted` has
statements that no loop repeats beside CPython.

Each program runs under `gradcli run FILE` and under `python FILE` with torch, in turn, and says by
its own clock how long its loop took; the table has medians. Each side runs N and 3 N rounds, so
many that they last long beside what its first ones cost: a figure that does not grow with the
rounds is refused, with the reason, and the exit code is 1. A line has less than the runs that were
asked for where its time is over. Memory is the peak above that of a side's own cold start. `no C`
is the ratio without the kernels in C, where they are built, by one run. Without torch only
gradcli's figures are shown.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean

from gradcli.arrays.native.dispatch import core
from tests.benchmarks.interpreted import STATEMENTS, interpreted
from tests.benchmarks.measure import RUN, Series, alternate
from tests.benchmarks.opponents import Sides, share_cores, steps
from tests.benchmarks.per_op import profile
from tests.benchmarks.recording import recording
from tests.benchmarks.records import records
from tests.benchmarks.rounds import refusal, settled_rounds
from tests.benchmarks.scaling import scaling
from tests.benchmarks.where import where
from tests.benchmarks.whole import whole
from tests.benchmarks.work import COLD_START, NUMPY_COLD_START, ONE_SHOT, PROGRAMS, WORKS, Work

HEADINGS = (
    f"{'ms a round':<20}{'gradcli':>11}{'grown':>6}{'MB':>8}{'torch':>11}{'grown':>6}{'MB':>8}"
    f"{'ratio':>8}{'must':>7}{'aim':>6}{'':>8}{'memory':>9}{'':>7}{'no C':>7}"
)

LINE, FEWEST = 14.0, 3
"""Seconds that a line of the table takes, as long as each side has run so many times."""

MEAN = (0.6, 0.4)
"""What the geometric mean of the real programs' ratios must be and aims at."""

_MEGABYTE = 1e6
"""What a peak counts as at least: below that it is what pages and allocators happen to do."""

MEMORY = 1.0
"""What a program's peak beside torch's must not exceed."""


def main() -> int:
    """Measure what was asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all when none is named")
    parser.add_argument("--profile", action="store_true", help="microseconds an op and a node")
    parser.add_argument("--scaling", action="store_true", help="does the cost of one grow?")
    parser.add_argument("--where", action="store_true", help="where a round spends its time")
    parser.add_argument("--records", action="store_true", help="one process, --jobs, --cluster")
    parser.add_argument("--recording", action="store_true", help="PyTorch's steps, recorded")
    parser.add_argument("--interpreted", action="store_true", help="statements, beside CPython")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once: does it all run?")
    parser.add_argument("--times", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--torch", metavar="PYTHON", default=sys.executable, help="with torch")
    parser.add_argument("--jax", metavar="PYTHON", help="with jax: steps beside jax.jit")
    parser.add_argument("--whole", action="store_true", help="processes: the manual's table, chart")
    parser.add_argument("--minutes", type=float, default=9.0, help="that --whole may take (9)")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="of each side")
    parser.add_argument("--gradcli", metavar="COMMAND", help="the gradcli to measure")
    arguments = parser.parse_args()
    known = list(STATEMENTS) if arguments.interpreted else [work.name for work in WORKS]
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"no program {', '.join(sorted(unknown))}")
    if arguments.interpreted:
        return interpreted(arguments.names, arguments.quick, arguments.times)
    works = [work for work in WORKS if not arguments.names or work.name in arguments.names]
    if arguments.where:
        for work in works:
            where(work, work.rounds(arguments.quick))
        return 0
    if arguments.records:
        with tempfile.TemporaryDirectory() as folder:
            command = gradcli(arguments.gradcli)
            records(
                Path(folder), command, arguments.quick, 1 if arguments.quick else arguments.times
            )
        return 0
    torch = arguments.torch if has_torch(arguments.torch) else None
    if torch is None:
        print(f"{arguments.torch} has no torch: gradcli's own figures only")
    times = 1 if arguments.quick else arguments.times
    if arguments.jax or arguments.whole:
        share_cores(arguments.cores)
        with tempfile.TemporaryDirectory() as folder:
            sides = Sides(Path(folder), gradcli(arguments.gradcli), torch, arguments.jax)
            if arguments.whole:
                whole(sides, arguments.quick, arguments.minutes)
            else:
                steps(sides, arguments.quick, times)
        return 0
    if arguments.recording:
        return 0 if torch is None else recorded(torch, arguments)
    if arguments.profile or arguments.scaling:
        if arguments.profile:
            profile(torch, arguments.quick, times)
        if arguments.scaling:
            scaling(arguments.quick, times)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), gradcli(arguments.gradcli), torch, arguments.quick, times)
        bench.cold_start()
        for work in works:
            bench.run(work)
        return bench.close()


def recorded(torch: str, arguments: argparse.Namespace) -> int:
    """Print the table of recordings; 1 where something is over its bound, and not in a hurry."""
    times = 1 if arguments.quick else min(arguments.times, 3)
    with tempfile.TemporaryDirectory() as folder:
        command = gradcli(arguments.gradcli)
        good = recording(Path(folder), command, torch, arguments.quick, times)
    return 0 if good or arguments.quick else 1


def has_torch(python: str) -> bool:
    """Whether a Python can import torch."""
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def gradcli(command: str | None) -> list[str]:
    """The command that runs gradcli: as asked, else the one installed beside this Python."""
    found = command or shutil.which("gradcli", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-m", "gradcli"]


class Bench:
    """One table: what was asked for.

    Attributes:
        idle: what each side takes for next to no work, by the command that runs the programs.
        ratios: those of the real programs, as far as they were measured.
        refused: the programs whose figures say nothing.
    """

    def __init__(
        self,
        folder: Path,
        gradcli: list[str],
        torch: str | None,
        quick: bool,
        times: int,
        on_gpu: bool = False,
    ) -> None:
        self.folder = folder
        self.sides = {"gradcli": [*gradcli, *RUN]} | ({"torch": [torch]} if torch else {})
        if core() is not None and not on_gpu:
            self.sides["no C"] = ["env", "GRADCLI_NATIVE=0", *gradcli, *RUN]
        self.gradcli = gradcli
        self.quick = quick
        self.times = times
        self.idle: dict[str, Series] = {}
        self.ratios: list[float] = []
        self.refused: list[str] = []
        self._printed: dict[str, str] = {}

    def commands(self, name: str, text: str) -> dict[str, list[str]]:
        """The same program under both."""
        path = self.folder / f"{name}.grad"
        path.write_text(text, encoding="utf-8")
        return {side: [*command, str(path)] for side, command in self.sides.items()}

    def cold_start(self) -> None:
        """Measure what each side takes for next to no work, and show it."""
        text = (PROGRAMS / "cold_start.grad").read_text(encoding="utf-8")
        commands = self.commands("cold_start", text)
        commands.pop("no C", None)
        # As people start it: the limit of steps of the other rows is an option, which click reads.
        commands["run"] = [*self.gradcli, "run", commands["gradcli"][-1]]
        commands["one-shot"] = [*self.gradcli, *ONE_SHOT]
        commands["numpy"] = [sys.executable, "-c", "import numpy"]
        # The first run of all fills caches that every later one finds.
        alternate(commands, 1)
        self.idle = alternate(commands, self.times)
        self.idle["no C"] = self.idle["gradcli"]
        print(f"{'start-up':<28}{'seconds':>9}{'ratio':>8}{'must':>7}{'aim':>6}")
        for side in ("run", "one-shot", "gradcli", "torch", "numpy"):
            if side in self.idle:
                name = "run --max-steps" if side == "gradcli" else side
                print(f"{name:<28}{self.idle[side].wall():>9.3f}", end="")
                own = side in ("run", "one-shot")
                self._verdict(self.idle[side].wall() / self.idle["numpy"].wall(), own)
        if "torch" in self.idle and not self.quick:
            ratio = self.idle["run"].wall() / self.idle["torch"].wall()
            print(f"{'run beside torch':<37}{against(ratio, COLD_START)}")
        print(f"\n{HEADINGS}")

    def _verdict(self, ratio: float, own: bool) -> None:
        print(against(ratio, NUMPY_COLD_START) if own and not self.quick else "", flush=True)

    def run(self, work: Work) -> None:
        """Measure one program at N and 3 N rounds and show its line."""
        rounds = {side: self._rounds(work, side) for side in self.sides}
        series = self._measured(work, rounds)
        line = f"{work.name:<20}"
        per_round, refused, peaks = {}, [], {}
        for side in self.sides:
            once, thrice = (self._seconds(work, side, series[side, factor]) for factor in (1, 3))
            per_round[side] = thrice / (3 * rounds[side])
            refused.append(refusal(side, rounds[side], once, thrice))
            peaks[side] = max(_MEGABYTE, series[side, 3].peak() - self.idle[side].peak())
            if side != "no C":
                line += f"{per_round[side] * 1e3:>11.3f}{thrice / once:>6.1f}"
                line += f"{peaks[side] / 1e6:>8.0f}"
        if self.quick:
            print(line, flush=True)
        elif any(refused):
            self.refused.append(work.name)
            print(f"{line}  refused: {'; '.join(filter(None, refused))}", flush=True)
        elif "torch" in self.sides:
            ratios = {side: each / per_round["torch"] for side, each in per_round.items()}
            self.ratios += [ratios["gradcli"]] if work.real else []
            memory = peaks["gradcli"] / peaks["torch"]
            plain = f"{ratios['no C']:>7.2f}" if "no C" in ratios else ""
            shown = against(ratios["gradcli"], work.time)
            over = "missed" if memory > MEMORY else ""
            print(f"{line}{shown}{memory:>9.2f}{over:>7}{plain}", flush=True)
        else:
            print(line, flush=True)
        printed = set(self._printed.values())
        if len(printed) > 1:
            print(f"  they print different things: {printed}")

    def _command(self, work: Work, side: str, rounds: int) -> list[str]:
        return self.commands(f"{work.name}_{rounds}", work.text(rounds))[side]

    def _measured(self, work: Work, rounds: dict[str, int]) -> dict[tuple[str, int], Series]:
        """The runs at N and 3 N: as many as were asked for, or, once some are done, as last for the
        time of a line. What the kernels in C gain is a figure beside others, of one run.
        """
        series: dict[tuple[str, int], Series] = {}
        until = time.monotonic() + LINE
        for number in range(self.times):
            if number >= FEWEST and time.monotonic() > until:
                break
            sides = [side for side in self.sides if side != "no C" or number == 0]
            commands = {
                (side, factor): self._command(work, side, factor * rounds[side])
                for side in sides
                for factor in (1, 3)
            }
            for key, more in alternate(commands, 1).items():
                series.setdefault(key, Series()).runs += more.runs
        return series

    def _rounds(self, work: Work, side: str) -> int:
        """How many rounds to measure a side at: what the program says, or as many as it takes.

        At what the program says all sides print the same.
        """
        rounds = work.rounds(self.quick)

        def seconds(count: int) -> float:
            series = alternate({side: self._command(work, side, count)}, 1)[side]
            if count == rounds:
                self._printed[side] = series.runs[0].output.split("loop ")[0]
            return self._seconds(work, side, series)

        if self.quick or work.whole:
            seconds(rounds)
            return rounds
        return settled_rounds(seconds, rounds)

    def _seconds(self, work: Work, side: str, series: Series) -> float:
        return series.wall() - self.idle[side].wall() if work.whole else series.loop()

    def close(self) -> int:
        """Show the mean; gives the exit code."""
        if self.ratios:
            mean = geometric_mean(self.ratios)
            print(f"{'geometric mean of the real programs':<70}{against(mean, MEAN)}")
        if self.refused:
            print(f"refused: {', '.join(self.refused)}")
        return 1 if self.refused else 0


def against(ratio: float, bars: tuple[float, float]) -> str:
    """A ratio beside what it must and should be."""
    missed = "missed" if ratio > bars[0] else ""
    return f"{ratio:>8.2f}{bars[0]:>7}{bars[1]:>6}{missed:>8}"


if __name__ == "__main__":
    sys.exit(main())
