"""Which kinds of loops are compiled, where the others break, and what an iteration takes.

python -m tests.loops.measure [NAME…]
"""

from __future__ import annotations

import sys
from time import perf_counter
from unittest import mock

from gradcli.language.compiler import loops
from tests.loops.kinds import KINDS, STEPS
from tests.running import run


def seconds(program: str, compiled: bool) -> float:
    """The shortest time of three runs, with or without compilation."""
    least = float("inf")
    for _ in range(3):
        with mock.patch.object(loops, "_MANY", loops._MANY if compiled else 1 << 60):
            began = perf_counter()
            outcome = run(program)
            assert outcome.error is None, outcome.error
            least = min(least, perf_counter() - began)
    return least


def main() -> None:
    """Print the table."""
    for name, program in KINDS.items():
        if len(sys.argv) > 1 and not any(each in name for each in sys.argv[1:]):
            continue
        longer = program.replace(str(STEPS), str(3 * STEPS)).replace("range(100)", "range(300)")
        times = []
        for compiled in (True, False):
            both = seconds(longer, compiled) - seconds(program, compiled)
            times.append(both / (2 * STEPS) * 1e6)
        ratio = times[1] / times[0]
        print(f"{name:48} {times[0]:8.0f} µs  {times[1]:8.0f} µs  {ratio:5.2f}", flush=True)


if __name__ == "__main__":
    main()
