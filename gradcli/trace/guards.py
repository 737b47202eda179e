"""Guards: the conditions under which a trace may run, and how they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.trace.ir import Inline, Operand, Value, values_in

if TYPE_CHECKING:
    from gradcli.errors import Span


class SideExit(BaseException):
    """A run takes another path than the recorded one, or finds values of another kind; it leaves
    nothing of itself. No `except` of a program's, or of the host's, is for it.

    Attributes:
        reason: what the run found, for a person.
        span: where the program asked for it.
    """

    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


OTHER_KIND = "an array of another dtype, shape or layout comes out"
"""Why a run is left whose arrays are not those that its instructions are for."""


class Kind(Enum):
    """The kinds of guards."""

    IDENTITY = "identity"
    """The same object, or the same objects one by one where a tuple is expected."""
    MODE = "mode"
    """A setting of the session: grad mode, default dtype, whether a recorder is installed."""
    VALUE = "value"
    """A value: a number, the length of a list, a check of elements that passed."""


class Guard(Record):
    """A condition that must hold as it did when the trace was recorded.

    Attributes:
        read: what reads it: a function, or a piece of Python for generated code.
        inputs: the arguments of the function, or the operands of the piece.
    """

    kind: Kind
    read: Callable[..., Any] | Inline
    expected: Operand
    inputs: Sequence[Operand] = ()
    span: Span | None = None

    @property
    def values(self) -> Iterator[Value]:
        """The values that it reads."""
        yield from values_in((*self.inputs, self.expected))

    def holds(self) -> bool:
        """Whether it holds now. A read that fails with an error of the language does not."""
        assert not isinstance(self.read, Inline)
        try:
            found = self.read(*self.inputs)
        except (GradcliError, LookupError):
            return False
        if self.kind is not Kind.IDENTITY:
            return bool(found == self.expected)
        if type(self.expected) is tuple:
            return len(found) == len(self.expected) and all(map(is_, found, self.expected))
        return found is self.expected


def kind_of(array: Any) -> tuple[Any, ...]:
    """How an array lies in memory: its type, dtype, shape and strides."""
    return type(array), array.dtype, array.shape, array.strides


def same(left: Any, right: Any) -> bool:
    """Whether two arrays are the same in kind, shape, layout and every bit."""
    return (
        type(left) is type(right)
        and left.dtype is right.dtype
        and left.shape == right.shape
        and left.strides == right.strides
        and same_bits(left, right)
    )


def same_bits(left: Any, right: Any) -> bool:
    """Whether two arrays of one shape and dtype hold the same bits."""
    bits = _BITS.get(left.itemsize)
    if bits is None:
        return left.tobytes() == right.tobytes()
    return bool((left.view(bits) == right.view(bits)).all())


_BITS = {1: np.uint8, 4: np.uint32, 8: np.uint64}
"""Integer dtypes by their size in bytes."""
