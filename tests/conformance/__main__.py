"""The score of the recorded facts, from the shell: see `README.md` beside this file."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from tests.conformance import (
    COMPARISONS,
    EXPECTED_FAILURES,
    FOLDER,
    difference,
    program_of,
    records,
)

SHELVES = {"transcripts": "tier", "programs": "kind", "traces": "", "facts": "section"}
"""By which field the score of a file is broken down."""


def main() -> int:
    """Run the records and print the score, or do what an option asks."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--update", action="store_true", help="write expected_failures.txt anew")
    parser.add_argument("--show", metavar="ID", help="the program and difference of one record")
    parser.add_argument("--oracle", metavar="PYTHON", help="run the records under its torch")
    parser.add_argument("--list", action="store_true", help="one line for each failing record")
    arguments = parser.parse_args()
    if arguments.show:
        return show(arguments.show)
    if arguments.oracle:
        return ask_torch(arguments.oracle)
    failures = {}
    for kind in COMPARISONS:
        score: dict[str, list[int]] = {}
        for record in records(kind):
            found = difference(kind, record)
            shelf = score.setdefault(f"{record.get(SHELVES[kind], '')}", [0, 0])
            shelf[0] += found is None
            shelf[1] += 1
            if found is not None:
                failures[f"{kind}/{record['id']}"] = found
        for shelf_name, (good, count) in sorted(score.items()):
            label = f"{kind} {shelf_name}"[:50]
            print(f"{label:50} {good:4} of {count:4}  {good / count:5.0%}")
    if arguments.list:
        for name, found in failures.items():
            print(f"{name}: {' '.join(found.split())[:150]}")
    if arguments.update:
        EXPECTED_FAILURES.write_text("".join(f"{name}\n" for name in failures), encoding="utf-8")
    return 0


def show(name: str) -> int:
    """Print a record's program and how gradcli differs."""
    kind, identity = name.split("/", 1)
    for record in records(kind):
        if record["id"] == identity:
            print(program_of(kind, record))
            found = difference(kind, record)
            print("conforms" if found is None else found)
            return 0
    print(f"no record {name}", file=sys.stderr)
    return 2


def ask_torch(python: str) -> int:
    """Run what the records print under the torch of another Python, and name what differs."""
    asked = [(kind, r) for kind in ("transcripts", "programs", "facts") for r in records(kind)]
    programs = "".join(f"{json.dumps(program_of(kind, record))}\n" for kind, record in asked)
    oracle = str(FOLDER / "oracle.py")
    answered = subprocess.run(
        [python, oracle], input=programs, stdout=subprocess.PIPE, text=True, check=True
    )
    failing = 0
    for (kind, record), line in zip(asked, answered.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        if (answer["stdout"], answer["error"]) != (record["stdout"], record.get("error")):
            failing += 1
            print(f"{kind}/{record['id']}")
    print(f"{len(asked)} records, {failing} differ")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
