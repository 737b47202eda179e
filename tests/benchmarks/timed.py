"""Times programs inside one process, under gradcli or under torch; run as a program of its own.

    python -c "$(cat timed.py)" gradcli|torch TIMES < PROGRAMS > SECONDS

`PROGRAMS` is a JSON list of texts, `SECONDS` the median of what each takes of the processor's time:
what else the machine does counts little then. Nothing of the package or of the tests is imported at
the top: a Python with torch may have neither.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

Runner = Callable[[str], Any]


def under_gradcli() -> Runner:
    """What runs a program in a session of its own, the collector set as on the command line."""
    from gradcli.session import Session

    gc.set_threshold(100_000, 20, 100)

    def run(text: str) -> None:
        for _ in Session(lambda event: None).run(text, "program"):
            pass

    return run


def under_torch() -> Runner:
    """What runs a program as a file of its own."""
    import torch  # noqa: F401  (the first import is no part of a program's time)

    def run(text: str) -> None:
        exec(compile(text, "program", "exec"), {})

    return run


def seconds(run: Runner, text: str) -> float:
    """What one run takes, with no garbage of others in the way."""
    gc.collect()
    start = time.process_time()
    run(text)
    return time.process_time() - start


def main() -> None:
    """Time what stands in the standard input."""
    run = {"gradcli": under_gradcli, "torch": under_torch}[sys.argv[1]]()
    texts = json.load(sys.stdin)
    results = os.dup(1)
    os.dup2(2, 1)  # what the programs print is nobody's concern
    for text in texts:  # the first run of each finds cold caches
        run(text)
    rounds = [[seconds(run, text) for text in texts] for _ in range(int(sys.argv[2]))]
    found = [median(times) for times in zip(*rounds, strict=True)]
    os.write(results, json.dumps(found).encode())


if __name__ == "__main__":
    main()
