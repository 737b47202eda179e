"""Compares the graphs of gradients with PyTorch's, from the shell."""

from __future__ import annotations

import argparse
import sys

from tests.differential.comparing import Torch, outcome_here
from tests.gradient_graphs import RECORDED, programs, write_recorded


def main() -> int:
    """List the rows whose graphs differ, or do what an option asks."""
    parser = argparse.ArgumentParser(prog="python -m tests.gradient_graphs")
    parser.add_argument(
        "--oracle", metavar="PYTHON", required=True, help="an interpreter that has torch"
    )
    parser.add_argument("--show", type=int, metavar="ROW", help="one row's program and graphs")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} anew")
    arguments = parser.parse_args()
    torch = Torch(arguments.oracle)
    try:
        if arguments.show is not None:
            _, text = programs()[arguments.show]
            here, there = outcome_here(text), torch.outcome(text)
            print(f"{text}\n--- gradcli\n{here.text()}\n--- PyTorch\n{there.text()}", end="")
            return 0
        found = [(row, text, torch.outcome(text)) for row, text in programs()]
    finally:
        torch.close()
    if arguments.record:
        write_recorded([(row, there) for row, _, there in found])
    differing = [
        (number, row)
        for number, (row, text, there) in enumerate(found)
        if outcome_here(text) != there
    ]
    for number, row in differing:
        print(number, row)
    print(f"{len(differing)} of {len(found)} rows differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
