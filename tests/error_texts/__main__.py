"""Compares the texts of errors with PyTorch's, from the shell."""

from __future__ import annotations

import argparse
import sys

from tests.differential.comparing import Torch, outcome_here
from tests.error_texts import RECORDED, read_programs, whole, write_recorded


def main() -> int:
    """Show the programs whose texts differ, or record PyTorch's."""
    parser = argparse.ArgumentParser(prog="python -m tests.error_texts")
    parser.add_argument(
        "--oracle", metavar="PYTHON", required=True, help="an interpreter that has torch"
    )
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} anew")
    arguments = parser.parse_args()
    torch = Torch(arguments.oracle, "plain")
    found = [(program, torch.outcome(whole(program))) for program in read_programs()]
    torch.close()
    if arguments.record:
        write_recorded(found)
    differing = 0
    for program, there in found:
        here = outcome_here(whole(program))
        if here.text() != there.text():
            differing += 1
            print(f"{program}\n--- gradcli\n{here.text()}--- PyTorch\n{there.text()}", flush=True)
    print(f"{differing} of {len(found)} programs differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
