"""Questions that people asked in public, each as a small program of our own, with the verdict.

A record of `*.txt` begins with `# TITLE`; its fields are

    thread: where it was asked
    ask: the command, without the program
    program: the lines of `asked.py`, behind `import torch`
    says: what the answer says; a line's end counts as a blank
    holds: what is true when the program has run: the verdict, seen in PyTorch too
    fails: instead, what the error says that the program ends with, there and here
    cure: `OLD => NEW`, changes of the program's text that the answer offers or makes plain
    right: what is true when the cured program has run, and not when the other has

A field of several lines has them below it, four blanks in. A record without a cure has an answer
that says there is none, or that nothing is wrong.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.pains import changed, fields_of

FOLDER = Path(__file__).parent


class Asked:
    """A record.

    Attributes:
        claim: the program, with its error caught where it ends with one.
    """

    def __init__(self, text: str) -> None:
        self.title, fields = fields_of(text)
        self.thread = " ".join(fields["thread"])
        self.ask = fields["ask"][0].split()
        self.program = "\n".join(["import torch", *fields["program"]]) + "\n"
        self.says = fields["says"]
        self.claim, self.holds = self.program, " ".join(fields.get("holds", []))
        if "fails" in fields:
            body = "\n".join(f"    {line}" for line in self.program.splitlines())
            self.claim = f"try:\n{body}\nexcept RuntimeError as error:\n    said = str(error)\n"
            self.holds = f"{' '.join(fields['fails'])!r} in said"
        self.cure = fields.get("cure", [])
        self.right = " ".join(fields.get("right", []))

    @property
    def cured(self) -> str:
        """The program with the cure."""
        return changed(self.program, self.cure)


def questions() -> list[Asked]:
    """Every record."""
    return [
        Asked(part)
        for path in sorted(FOLDER.glob("*.txt"))
        for part in re.split("(?m)^# ", path.read_text(encoding="utf-8"))[1:]
    ]
