"""What an iteration reads without being told that it changes: each kind of state, changed between
two iterations or within one by something that the loop does not name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.late.loop import LATE, ROUNDS, Late
from tests.late.texts import groups, parts


class Read(NamedTuple):
    """A kind of state: what makes it, what an iteration does with it, and how it changes."""

    before: str
    body: str
    change: str


READS = {
    title: Read(found["before"], found["body"].rstrip("\n"), found["change"].rstrip("\n"))
    for title, lines in groups("reads.txt")
    for found in [parts(lines)]
}
"""The kinds of state."""

CHANGERS = {
    title: (found["before"], found["loop"])
    for title, lines in groups("changers.txt")
    for found in [parts(lines)]
}
"""What changes it: what stands before the loop, and the loop."""

_CHANGE = "def change():\n    global {globals}\n    {change}\n"

HEAD = """\
import functools, random
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0); random.seed(0)
w = torch.tensor([1.5, -2.])
x = torch.tensor([[1., 2.], [3., -1.]])
t = torch.zeros(())
class Rounding:
    @staticmethod
    def floor(v): return 7.
"""


def program(read: Read, changer: str) -> str:
    """The program of a kind of state and what changes it."""
    before, loop = CHANGERS[changer]
    assigned = [word.split(" = ")[0] for word in read.change.split("; ") if " = " in word]
    names = [name for name in assigned if name.isidentifier()]
    if read.change.startswith("del ") and read.change[4:].isidentifier():
        names.append(read.change[4:])
    twice = loop.startswith("for epoch in range(2):\n    for i")
    given = {
        "change": read.change, "earlier": str(1 + ROUNDS * twice),
        "globals": ", ".join(names) or "unused", "late": str(LATE), "rounds": str(ROUNDS),
    }  # fmt: skip
    text = _indented(read.before + _CHANGE + before + loop, read.body)
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", value)
    return HEAD + text + "print(t)\n"


def _indented(text: str, body: str) -> str:
    """The text with the body, as deep as it stands."""

    def deep(found: re.Match[str]) -> str:
        return "".join(f"{found[1]}{line}\n" for line in body.split("\n"))

    return re.sub(r"^( *)\{body\}\n", deep, text, flags=re.MULTILINE)


def lates() -> Iterator[Late]:
    """Each kind of state with each change of it."""
    for name, read in READS.items():
        for changer in CHANGERS:
            yield Late(f"{name}, {changer}", program(read, changer))
