"""`python -m tests.benchmarks --scaling`: what a node and a line cost in ever larger programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from tests.benchmarks.per_op import timed
from tests.benchmarks.work import straight_line

_CHAIN = """\
import torch

x = torch.tensor(1.0, requires_grad=True)
y = x
for step in range({count}):
    y = y * 0.999
    y = y + x
y.backward()
"""

# Peak memory in a process that ran a small program before: what a program needs beyond the first.
_PEAK = """\
import sys, tracemalloc
from gradcli.session import Session

def run(text):
    for _ in Session(lambda event: None).run(text, "program"):
        pass

small, text = sys.stdin.read().split("\\0")
run(small)
tracemalloc.start()
run(text)
print(tracemalloc.get_traced_memory()[1])
"""


def scaling(quick: bool, times: int) -> None:
    """Print the tables."""
    _nodes((100, 1000) if quick else (1000, 10_000, 100_000, 1_000_000), times)
    for name, written in _SCRIPTS.items():
        _lines(name, written, (10, 100) if quick else (100, 1000, 10_000), times)


def _nodes(counts: tuple[int, ...], times: int) -> None:
    print(f"{'nodes of a chain':<28}{'seconds':>10}{'µs an op':>10}{'bytes a node':>14}")
    for count in counts:
        text = _CHAIN.format(count=count // 2)
        # Short programs are run more often: each is a moment, and moments differ.
        rounds = max(1, min(20 * times, 300_000 // count))
        (seconds,) = timed("gradcli", sys.executable, [text], rounds)
        memory = _peak(text)
        print(f"{count:<28,}{seconds:>10.4f}{seconds / count * 1e6:>10.2f}{memory / count:>14.0f}")


def _peak(text: str) -> int:
    """The bytes that a program holds at most, beyond what any program leaves behind."""
    ended = subprocess.run(
        [sys.executable, "-c", _PEAK],
        input=f"{_CHAIN.format(count=1)}\0{text}",
        capture_output=True,
        text=True,
        check=True,
    )
    return int(ended.stdout)


def _lines(name: str, written: Callable[[int], str], counts: tuple[int, ...], times: int) -> None:
    print(f"{name:<28}{'seconds':>10}{'µs a line':>10}")
    for count in counts:
        rounds = max(1, min(4 * times, 10_000 // count))
        (seconds,) = timed("gradcli", sys.executable, [written(count)], rounds)
        print(f"{f'{count:,} lines':<28}{seconds:>10.4f}{seconds / count * 1e6:>10.1f}")


def _unrolled(lines: int) -> str:
    """A loop that a generator wrote out: the same names over and over, numbers that differ."""
    body = [f"x[{n % 10}] = x[{(n + 3) % 10}] * {n}.5 - {n % 7}" for n in range(lines)]
    return "\n".join(["import torch", "x = [torch.tensor(1.0)] * 10", *body, ""])


def _nested_calls(lines: int) -> str:
    """Calls in calls, with keywords and attributes."""
    body = [
        f"y = torch.clamp(torch.add(x, {n}, alpha=2), min=-{n}.0, max=float({n} + 1)).mean()"
        for n in range(lines)
    ]
    return "\n".join(["import torch", "x = torch.ones(4)", *body, ""])


def _long_list(lines: int) -> str:
    """One literal that goes on for as many lines, ten numbers each."""
    rows = [f"    [{', '.join(f'{n}.{k}' for k in range(10))}]," for n in range(lines)]
    return "\n".join(["import torch", "x = torch.tensor([", *rows, "])", ""])


def _functions(lines: int) -> str:
    """Functions of four lines, each with a body of its own."""
    body = []
    for n in range(lines // 4):
        body += [
            f"def f{n}(a, b=1):",
            f"    if a > {n}:",
            f"        return a * b + {n}",
            "    return b",
        ]
    return "\n".join([*body, ""])


_SCRIPTS: dict[str, Callable[[int], str]] = {
    "straight line": straight_line,
    "unrolled loop": _unrolled,
    "nested calls": _nested_calls,
    "one long list": _long_list,
    "functions": _functions,
}
"""Scripts of as many lines as asked for, of the kinds that generators write."""
