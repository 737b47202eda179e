"""`python -m tests.programs_oracle PYTHON [FEATURE/CASE…]`: the programs of `tests/programs` under
gradcli and under PyTorch.

What each prints, the class of the error that ends it and the error's line are compared by the
contract of exactness; torch's names are in reach without `torch.`, as in gradcli. A program that
PyTorch cannot run, or answers in other words, stands in `OURS` with the reason.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.differential.__main__ import first_difference
from tests.differential.comparing import Torch, category, outcome_here
from tests.test_programs import CASES

_FILES = "`load` reads NumPy's files and tables, where torch's reads pickles"
_LIMITS = "a limit of gradcli's: PyTorch goes on"

OURS = {
    "around/progress_and_pictures": "matplotlib and tqdm are not beside torch",
    "around/summary_writer": "tensorboard is not beside torch",
    **{
        f"plots/{name}": "matplotlib is not beside torch"
        for name in ("activations", "boundary", "descent", "regression", "weights")
    },
    "errors/E004": "Python names the line behind the header, gradcli the header",
    "errors/E007": "text that Python reads and gradcli refuses",
    "errors/E103": "a module that is outside the language",
    "errors/E104": "a name of gradcli's own",
    "errors/E105": "a command of gradcli's",
    "errors/E205": "a part of PyTorch that is outside the language",
    "errors/E413": "a command of gradcli's",
    "errors/E504": _FILES,
    "errors/E505": _FILES,
    "errors/E506": _FILES,
    "errors/E601": _LIMITS,
    "errors/E602": _LIMITS,
    "errors/E605": _LIMITS,
    "errors/E606": _LIMITS,
    "errors/E607": _LIMITS,
}
"""Programs that PyTorch cannot run as they are, and why."""


def main() -> int:
    """Compare the programs, and print each difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs_oracle")
    parser.add_argument("python", metavar="PYTHON", help="an interpreter that has torch")
    parser.add_argument("cases", nargs="*", metavar="FEATURE/CASE", help="all when none is named")
    arguments = parser.parse_args()
    torch = Torch(arguments.python, "plain")
    found: dict[str, int] = {}
    for case in CASES:
        name = f"{case.parent.name}/{case.stem}"
        if name in arguments.cases or (not arguments.cases and name not in OURS):
            os.chdir(case.parent)
            text = case.read_text(encoding="utf-8", errors="replace")
            here, there = outcome_here(text), torch.outcome(text)
            kind = category(text, here, there)
            found[kind] = found.get(kind, 0) + 1
            if kind not in ("same", "rounding"):
                print(f"==== {name}: {kind}\n{first_difference(here, there)}", flush=True)
    torch.close()
    print(", ".join(f"{count} {kind}" for kind, count in found.items()))
    return 0 if set(found) <= {"same", "rounding"} else 1


if __name__ == "__main__":
    sys.exit(main())
