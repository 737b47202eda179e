"""What users of PyTorch's autograd ask about most, one record each, by kind in `*.txt`.

A record begins with `# TITLE`; its fields are

    thread: a public thread in which it is asked
    ask: the command, without the program
    answer: what it says, in short; what stands in backticks it says so
    program: the lines of `pain.py`, which is at fault
    says: what the answer contains: variable, place, cure
    cure: `OLD => NEW`, changes of the program's text that the answer names; `\\n` is a line's end
    right: what holds when the cured program has run, and not when the faulty one has
    elsewhere: `OLD => NEW`, a change after which the faulty program is right too
    same: expressions that are the same in both programs, changed so

A field of several lines has them below it, four blanks in.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def fields_of(text: str) -> tuple[str, dict[str, list[str]]]:
    """The title of a record, and the lines of its fields."""
    title, _, body = text.partition("\n")
    fields: dict[str, list[str]] = {}
    name = ""
    for line in body.split("\n"):
        if line.startswith("    "):
            fields[name].append(line[4:])
        elif line:
            name, _, rest = line.partition(":")
            fields[name] = [rest.strip()] if rest.strip() else []
    return title, fields


class Pain:
    """A record."""

    def __init__(self, text: str) -> None:
        self.title, fields = fields_of(text)
        self.thread = " ".join(fields.get("thread", ()))
        self.ask = fields["ask"][0].split()
        self.answer = " ".join(fields["answer"])
        self.program = "\n".join(fields["program"]) + "\n"
        self.says = fields["says"]
        self.cure = fields["cure"]
        self.right = fields["right"]
        self.elsewhere = fields.get("elsewhere", [])
        self.same = fields.get("same", [])

    @property
    def words(self) -> list[str]:
        """The command with the program's file."""
        return [*self.ask, *(["pain.py"] if self.ask[0] == "run" else ["--file", "pain.py"])]

    @property
    def cured(self) -> str:
        """The program with the cure."""
        return changed(self.program, self.cure)


def changed(program: str, changes: list[str]) -> str:
    """A program with parts of its text replaced; each must stand in it."""
    for change in changes:
        old, _, new = (
            part.replace("\\n", "\n") for part in re.split("( ?=> ?)", change, maxsplit=1)
        )
        assert old in program, f"`{old}` is not in the program"
        program = program.replace(old, new)
    return program


KINDS = {
    "not_finite": "NaN and infinity",
    "missing": "No gradient",
    "passes": "Passes and steps",
    "writes": "Writes in place",
    "shapes": "Shapes, dtypes and losses",
    "models": "Models, functions and hooks",
}
"""The files, in the order of the page, with their headings there."""


def pains_of(kind: str) -> list[Pain]:
    """The records of a file."""
    text = (FOLDER / f"{kind}.txt").read_text(encoding="utf-8")
    return [Pain(part) for part in re.split("(?m)^# ", text)[1:]]


def pains() -> list[Pain]:
    """Every record."""
    return [pain for kind in KINDS for pain in pains_of(kind)]


def table_of(kind: str) -> str:
    """The records of a file as a section of the manual's page."""
    rows = [f"| {each.title} | `{' '.join(each.ask)}` | {each.answer} |" for each in pains_of(kind)]
    head = f"## {KINDS[kind]}\n\n| what happens | command | answer |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n"
