"""Which kinds of loops are compiled, where the others break, and what an iteration takes.

python -m tests.loops.measure [--no-times] [NAME…]
"""

from __future__ import annotations

import re
import sys
from time import process_time

from tests.loops.kinds import KINDS, STEPS
from tests.running import Outcome, run


def outcome_of(program: str, compiled: bool) -> Outcome:
    """What a program does, with or without compilation."""
    outcome = run(program, compiles=compiled)
    assert outcome.error is None, outcome.error
    return outcome


def longer(program: str) -> str:
    """The program with three times as many iterations."""
    program = program.replace(str(STEPS), str(3 * STEPS))
    return re.sub(r"range\((100|250)\)", lambda found: f"range({3 * int(found[1])})", program)


def seconds(program: str, compiled: bool) -> float:
    """The shortest time of three runs, with or without compilation."""
    least = float("inf")
    for _ in range(3):
        began = process_time()
        outcome_of(program, compiled)
        least = min(least, process_time() - began)
    return least


def verdict(outcome: Outcome) -> str:
    """What became of the loops of a program."""
    found = []
    for loop in outcome.session.interpreter.hot_loops.values():
        if loop.compiled_count:
            found.append(f"compiled {loop.compiled_count}/{loop.interpreted_count}")
        elif loop.broken is not None:
            span = loop.broken.span
            place = "" if span is None else f" at `{span.text.splitlines()[0][:40]}`"
            found.append(f"{loop.broken.code}{place}: {loop.broken.reason}")
        else:
            found.append("not compiled")
    return "; ".join(found) or "no hot loop"


def main() -> None:
    """Print the table."""
    names = [each for each in sys.argv[1:] if not each.startswith("--")]
    for name, program in KINDS.items():
        if names and not any(each in name for each in names):
            continue
        try:
            outcome = outcome_of(program, compiled=True)
        except Exception as error:
            print(f"{name:48} {error!r}")
            if names:
                raise
            continue
        same = outcome.stdout == outcome_of(program, compiled=False).stdout
        shown = verdict(outcome) if same else f"DIFFERS {verdict(outcome)}"
        if "--no-times" in sys.argv:
            print(f"{name:48} {shown}", flush=True)
            continue
        times = []
        for compiled in (True, False):
            both = seconds(longer(program), compiled) - seconds(program, compiled)
            times.append(both / (2 * STEPS) * 1e6)
        ratio = times[1] / times[0]
        print(f"{name:48} {times[0]:7.0f} µs {times[1]:7.0f} µs {ratio:6.2f}  {shown}", flush=True)


if __name__ == "__main__":
    main()
