"""`python -m tests.dying_workers [COUNT]`: a sweep on two workers of Dask of which one is killed
three times and one is stopped, beside `--jobs 1`.

Prints seconds, the peak memory of the command at each signal and at the end, and whether the
outputs agree byte for byte; the exit code says the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.command_line import start

PROGRAM = "k = 0\nfor i in range(2000):\n    k = (k * 7 + i) % 1000\ny = a * w + k"
"""A millisecond or two for each record."""

KILLED = (0.1, 0.2, 0.3)
STOPPED = 0.5
"""How much of the output is there when a worker is killed, and when one is stopped."""


def children(parent: int, *parts: str) -> list[int]:
    """The processes below one whose command lines hold these parts, oldest first."""
    found, below = [], {parent}
    for name in sorted((each for each in os.listdir("/proc") if each.isdecimal()), key=int):
        with contextlib.suppress(OSError):
            words = Path("/proc", name, "cmdline").read_text()
            above = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
            if above in below:
                below.add(int(name))
                if all(part in words for part in parts):
                    found.append(int(name))
    return found


def peak(process: int) -> int:
    """The most memory that a process has had, in megabytes."""
    status = Path("/proc", str(process), "status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1000


def interrupted(words: list[str], count: int) -> tuple[bytes, list[int]]:
    """What the command prints while its workers are killed and stopped, and the peaks of its memory
    at each signal and at the end.
    """
    signals = [(at, signal.SIGKILL) for at in KILLED] + [(STOPPED, signal.SIGSTOP)]
    peaks, last = [], 0
    with tempfile.NamedTemporaryFile() as out:
        command = start(*words, "--cluster", "local:2", stdout=out, stderr=subprocess.DEVNULL)
        with command as running:
            while running.poll() is None:
                time.sleep(0.05)
                with contextlib.suppress(OSError, IndexError):  # it may end meanwhile
                    last = peak(running.pid)
                if signals and Path(out.name).read_bytes().count(b"\n") >= signals[0][0] * count:
                    workers = children(running.pid, "spawn_main")
                    if len(workers) == 2:  # the one that was killed before is there again
                        os.kill(workers[0], signals.pop(0)[1])
                        peaks.append(last)
        assert not signals, "the run was over before all signals were sent"
        return Path(out.name).read_bytes(), [*peaks, last]


def main(count: int) -> int:
    """Run both and compare."""
    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder) / "cases.jsonl"
        cases.write_text("".join(json.dumps({"a": k}) + "\n" for k in range(count)))
        words = [PROGRAM, "w=2", "--inputs", str(cases)]
        began = time.monotonic()
        with start(*words, stderr=subprocess.DEVNULL) as running:
            alone, _ = running.communicate()
        middle = time.monotonic()
        shared, peaks = interrupted(words, count)
        print(f"{count:,} records: one process {middle - began:.0f} s,", end=" ")
        print(f"two workers with four signals {time.monotonic() - middle:.0f} s,", end=" ")
        print(f"memory {' '.join(map(str, peaks))} MB,", end=" ")
        print("equal byte for byte" if shared == alone else "DIFFERENT")
        return int(shared != alone)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
