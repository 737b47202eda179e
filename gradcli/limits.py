"""How much a session may use: elements, steps, memory, time, and whether it may touch files.

The defaults stop a runaway within a few seconds and leave ordinary work alone:

- a tensor, list or string of more than 100 million elements is nearly always a mistake (`10**9` for
  `10**6`); a file of a gigabyte holds more than that of 8-byte numbers;
- a loop without tensors runs 10 million iterations in one to seven seconds; a training loop takes a
  quarter of an hour for them, since an iteration with a backward pass takes 100 microseconds;
- memory is capped at half of what the machine has and at 4 GB, so that a growing graph or list
  ends before the machine swaps;
- time is not limited: only the person who waits knows how long is too long.
"""

from __future__ import annotations

import sys
from collections.abc import Sized
from time import perf_counter

from gradcli.errors import GradcliError

ELEMENTS = 100_000_000
STEPS = 10_000_000
MEMORY = 4_000_000_000

TIGHT_MEMORY = 256_000_000
"""Bytes of a limit within which modules of ours, or a second thread's buffers, may not fit."""

BLAS_BUFFER = 34_000_000
"""Bytes that OpenBLAS takes for each thread that is within it."""

_AT_ONCE = 1e-3
"""Seconds that a run takes which has none: a timer of 0 would never ring."""


def length_of(values: Sized) -> int:
    """The length of a collection; of a range that is longer than the host can say, the largest."""
    try:
        return len(values)
    except OverflowError:
        return sys.maxsize


class Limits:
    """What a session may use at most.

    Attributes:
        elements: of one tensor, list, tuple, set or dict; characters of one string.
        steps: loop iterations and calls; of one program, in the REPL of one entry.
        memory: bytes that the process may take for data; None for no ceiling. The command line
            sets it up, a session inside another program leaves that program's memory alone.
        timeout: seconds that a program may run, in the REPL one entry; None for no end.
        until: when they are over, by `perf_counter`, where several runs share them.
        files: whether files may be read and written.
        reserve: memory that is given back when there is none left, so that the error can be
            reported.
    """

    __slots__ = ("elements", "files", "memory", "reserve", "steps", "timeout", "until")

    def __init__(
        self,
        *,
        elements: int = ELEMENTS,
        steps: int = STEPS,
        memory: int | None = None,
        timeout: float | None = None,
        files: bool = True,
    ) -> None:
        self.elements = elements
        self.steps = steps
        self.memory = memory
        self.timeout = timeout
        self.until: float | None = None
        self.files = files
        self.reserve: object = None

    @property
    def seconds(self) -> float | None:
        """The seconds that a run that begins now may take; None for no end."""
        if self.timeout is None or self.until is None:
            return self.timeout
        return max(self.until - perf_counter(), _AT_ONCE)

    @property
    def is_tight(self) -> bool:
        """Whether little memory is left beside what every program needs."""
        return self.memory is not None and self.memory < TIGHT_MEMORY

    @property
    def threads(self) -> int:
        """How many threads may work at once, for all that they need to take no more than half."""
        if self.memory is None:
            return sys.maxsize
        return 1 if self.is_tight else self.memory // (2 * BLAS_BUFFER)

    def check_elements(
        self, count: float, what: str = "elements", raises: str | None = None
    ) -> None:
        """Raise E602 where one value would have more elements than the limit."""
        if count > self.elements:
            raise self.too_many_elements(count, what, raises)

    def too_many_elements(
        self, count: float | None, what: str = "elements", raises: str | None = None
    ) -> GradcliError:
        """The error of a value with too many elements.

        Args:
            count: how many; None, or what no length can be, where that is unknown.
            what: what they are.
            raises: the class to raise: RuntimeError for a tensor, as PyTorch's allocator does.
        """
        if count is None or count == sys.maxsize:
            many = f"more than {self.elements:,}"
        else:
            many = _number(count)
        return GradcliError(
            "E602",
            f"{many} {what} are too many: the limit is {self.elements:,}",
            raises=raises,
            help=f"`--max-elements {_roomy(count or 10 * self.elements)}` raises it",
        )

    def check_file(self, path: str) -> None:
        """Raise E606 where files are out of bounds.

        Args:
            path: the file that was about to be read or written.
        """
        if not self.files:
            raise GradcliError(
                "E606",
                f"{path}: files may not be read or written here",
                help="the run was started with --sandbox; values can come through `@-`",
            )

    def check_file_size(self, path: str, size: int) -> None:
        """Raise E602 where a file is larger than a tensor of 8-byte elements may be."""
        if size > 8 * self.elements:
            raise GradcliError(
                "E602",
                f"{path}: a file of {in_bytes(size)} is too large: the limit is"
                f" {in_bytes(8 * self.elements)}, 8 bytes for each of {self.elements:,} elements",
                help=f"`--max-elements {_roomy(size / 8)}` raises it",
            )

    def too_many_steps(self) -> GradcliError:
        """The error of a program whose steps are used up."""
        return GradcliError(
            "E605",
            f"the program made more than {self.steps:,} loop iterations and calls",
            help=f"`--max-steps {10 * self.steps}` raises the limit",
        )

    def out_of_memory(self, wanted: str = "") -> GradcliError:
        """The error of an allocation that found no room; frees the reserve.

        Args:
            wanted: what was asked for, such as `an array of shape (2, 3)`; for an array the error
                is a RuntimeError, as in PyTorch.
        """
        self.reserve = None
        words = f"there is no memory for {wanted}" if wanted else "the memory is used up"
        raises = "RuntimeError" if wanted else None
        if self.memory is None:
            return GradcliError("E602", words, raises=raises)
        return GradcliError(
            "E602",
            f"{words}: the limit is {in_bytes(self.memory)}",
            raises=raises,
            help=f"`--max-memory {in_bytes(2 * self.memory).replace(' ', '')}` raises it",
        )

    def out_of_time(self) -> GradcliError:
        """The error of a program that ran for too long."""
        timeout = self.timeout or 0.0
        return GradcliError(
            "E607",
            f"the program ran for more than {timeout:g} s",
            help=f"`--timeout {10 * timeout:g}` gives it more time",
        )


class Steps:
    """What a session counts as it runs.

    Attributes:
        left: the loop iterations and calls that it may still make.
        charged: the steps that were counted for work of the host, not for code of the program.
        nested: the calls that reached the program's code through the host and are not over.
    """

    __slots__ = ("charged", "left", "nested")

    def __init__(self, left: int) -> None:
        self.left = left
        self.charged = 0
        self.nested = 0


def in_bytes(count: float) -> str:
    """A number of bytes as text, with its unit: `4 GB`."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"


def _number(count: float) -> str:
    """A count as text, also one too large to be read."""
    return f"{count:,.0f}" if count < 10**18 else f"about {float(count):.0e}"


def _roomy(count: float) -> int:
    """A round number that is at least the count."""
    power = 10
    while power < count:
        power *= 10
    return power
