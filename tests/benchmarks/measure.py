"""Runs a command to its end and says what it took."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median
from typing import TypeVar

# `ru_maxrss` counts kilobytes on Linux and bytes on macOS.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


# The first run of a program compiles the modules that later ones find.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


RUN = ("run", "--max-steps", str(10**12))
"""The command that runs a file under gradcli, with a limit that no number of rounds reaches."""


class Run:
    """One run of a command: wall time and, with its processes, processor time in seconds, peak
    memory in bytes, and what it printed.
    """

    __slots__ = ("output", "peak", "processor", "wall")

    def __init__(self, wall: float, processor: float, peak: int, output: str) -> None:
        self.wall = wall
        self.processor = processor
        self.peak = peak
        self.output = output

    @property
    def loop(self) -> float:
        """The seconds that the program itself says its loop took."""
        return float(self.output.rpartition("loop ")[2])


_LAUNCHER = """
import os, sys, time
out, *command = sys.argv[1:]
write = os.O_WRONLY | os.O_TRUNC
actions = [(os.POSIX_SPAWN_OPEN, 1, out, write, 0), (os.POSIX_SPAWN_DUP2, 1, 2)]
start = time.perf_counter()
process = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - start
print(os.waitstatus_to_exitcode(status), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""
"""Linux counts the memory of the process that starts another among the peak of the started one: a
bare Python of 9 MB starts it, and not this one, which has more than gradcli at its start.
"""


def measure(command: list[str]) -> Run:
    """Run a command as a process of its own.

    Raises:
        RuntimeError: it did not end well.
    """
    with tempfile.NamedTemporaryFile() as output:
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, output.name, *command]
        launched = subprocess.run(
            launcher, env=_ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True
        )
        text = output.read().decode(errors="replace")
    status, wall, processor, peak = launched.stdout.split()
    if status != "0":
        raise RuntimeError(f"{' '.join(command)}: {status}\n{text}")
    return Run(float(wall), float(processor), int(peak) * _RSS_UNIT, text)


Key = TypeVar("Key")


class Series:
    """Several runs of one command."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def wall(self) -> float:
        """The median of the wall times."""
        return median(run.wall for run in self.runs)

    def processor(self) -> float:
        """The median of the processor times."""
        return median(run.processor for run in self.runs)

    def loop(self) -> float:
        """The median of what the programs say that their loops took."""
        return median(run.loop for run in self.runs)

    def peak(self) -> float:
        """The median of the peaks."""
        return median(run.peak for run in self.runs)

    def spread(self) -> str:
        """The shortest and longest wall time."""
        walls = [run.wall for run in self.runs]
        return f"{min(walls):.2f}–{max(walls):.2f}"


def alternate(commands: dict[Key, list[str]], times: int) -> dict[Key, Series]:
    """Run commands in turn, so that a change in the machine's pace meets all of them alike."""
    series = {name: Series() for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            series[name].runs.append(measure(command))
    return series
