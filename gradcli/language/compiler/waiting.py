"""Blocks that wait in their middle, as instructions: of those nodes in C are made, and generators
of the host's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from gradcli.language.compiler.base import Compiler
from gradcli.language.objects.iteration import unlike_host
from gradcli.language.tree.control_flow import BREAK, CONTINUE

RUN, WAIT, YIELD, TEST, WAITING_TEST, STEP, BEGIN, WAITING_BEGIN, NEXT, LEAVE, JUMP = range(11)
DELEGATE, STAND = 11, 12
"""What an instruction does: run a statement, or one that waits; yield a value; go on behind a block
unless a test holds; count an iteration; begin a `for` loop, bind its next value, leave it; go on
elsewhere; yield the values of an iterable; note the place and go on elsewhere, in nodes alone.
"""


class Code:
    """The instructions of a block: each has a kind, the closure, the place, and where it may go on,
    of which there are two.
    """

    def __init__(self) -> None:
        self.instructions: list[list[Any]] = []

    def add(
        self, kind: int, part: Any = None, where: Any = None, to: int = 0, otherwise: int = 0
    ) -> list[Any]:
        """One more instruction, to be told later where it goes on."""
        self.instructions.append([kind, part, where, to, otherwise])
        return self.instructions[-1]

    def here(self) -> int:
        """The number of the next instruction."""
        return len(self.instructions)

    def flat(self) -> Iterator[Any]:
        """The parts of a node that runs them."""
        return chain.from_iterable(self.instructions)


def in_loops(c: Compiler) -> tuple[Any, ...]:
    """The parts of a node that its loops need."""
    return c.steps, c.iterate, unlike_host, BREAK, CONTINUE
