"""What users of PyTorch's autograd ask about most, one record each, by kind in `*.txt`.

A record begins with `# TITLE`; its fields are

    thread: a public thread in which it is asked
    ask: the command, without the program
    program: the lines of `pain.py`, which is at fault
    says: what the answer contains: variable, place, cure
    cure: `OLD => NEW`, changes of the program's text that the answer names; `\\n` is a line's end
    right: what holds when the cured program has run, and not when the faulty one has
    elsewhere: `OLD => NEW`, a change after which the faulty program is right too
    same: expressions that are the same in both programs, changed so
    left: why the answer does not do all this, where it does not

A field of several lines has them below it, four blanks in.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent


class Pain:
    """A record."""

    def __init__(self, text: str) -> None:
        self.title, _, body = text.partition("\n")
        fields: dict[str, list[str]] = {}
        name = ""
        for line in body.split("\n"):
            if line.startswith("    "):
                fields[name].append(line[4:])
            elif line:
                name, _, rest = line.partition(":")
                fields[name] = [rest.strip()] if rest.strip() else []
        self.thread = " ".join(fields.get("thread", ()))
        self.ask = fields["ask"][0].split()
        self.program = "\n".join(fields["program"]) + "\n"
        self.says = fields["says"]
        self.cure = fields["cure"]
        self.right = fields["right"]
        self.elsewhere = fields.get("elsewhere", [])
        self.same = fields.get("same", [])
        self.left = " ".join(fields.get("left", ()))

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


def pains() -> list[Pain]:
    """Every record, by file."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))]
    return [Pain(part) for text in texts for part in re.split("(?m)^# ", text)[1:]]
