"""The documentation of an op: summary, example, conventions of its derivative, effects, and where
its result or its slope is not finite.

An entry of the catalogue has these facts in its registration. A composed function, a class or a
layer has them in its docstring:

    \"\"\"The products of each element of one vector and each of another.

    Conventions: One line on a choice that the derivative makes.

    Example: torch.outer(tensor([1., 2.]), tensor([3., 4.]))
    \"\"\"

An example of several lines stands below `Example:`, indented; a line that ends inside brackets
continues in the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradcli.record import Record

Body = TypeVar("Body", bound=Callable[..., Any])

READS = "READS"
"""A number leaves a tensor, or a shape or a branch depends on one: `item`, `nonzero`."""

WRITES = "WRITES"
"""Memory of an operand is written: the in-place forms, `batch_norm`'s running statistics."""

GRAD = "GRAD"
"""The `.grad` of a leaf changes: `backward`."""

RANDOM = "RANDOM"
"""Random numbers are drawn."""

STATE = "STATE"
"""A setting, a mode, a seed or a list of hooks changes or is read."""

CHECKS = "CHECKS"
"""An error depends on values: an index out of range, a singular matrix. A function says so of what
it checks itself; of an entry `raises` says it.
"""

EFFECTS = (READS, WRITES, GRAD, RANDOM, STATE, CHECKS)

NEVER = "never"
"""Nothing is raised, whatever the operands are."""

BY_KINDS = "kinds"
"""The shapes, dtypes, layouts and settings of the operands decide whether an error is raised."""

BY_VALUES = "values"
"""The values in the operands decide, too; or they decide the result's shape, and so whether what
reads it raises an error.
"""

RAISES = (NEVER, BY_KINDS, BY_VALUES)

VECTOR = "vector"
"""A loop that reads a vector of 32 bytes before it writes it."""

WIDE = "wide"
"""A loop of vectors of 64 bytes; integers one after the other."""

SCALAR = "scalar"
"""A loop that reads and writes one element after the other."""

STEPS = "steps"
"""Several loops, of which the first reads the operands."""

LOOPS = (VECTOR, WIDE, SCALAR, STEPS)


class OpDoc(Record):
    """The text of an op's page of help.

    Attributes:
        summary: one sentence on what it does.
        example: a program whose last expression calls it.
        conventions: what its derivative is where there is a choice, "" where there is none.
    """

    summary: str = ""
    example: str = ""
    conventions: str = ""


NO_DOC = OpDoc()

SAMPLES = {
    1: "arange(6.).reshape(1, 1, 6)",
    2: "arange(16.).reshape(1, 1, 4, 4)",
    3: "arange(8.).reshape(1, 1, 2, 2, 2)",
}
"""Operands in the examples of ops of (N, C, *sizes), by the number of sizes."""

BATCH = "arange(8.).reshape(2, 2, 2)"
"""Operands in the examples of ops of batches of matrices."""

LAST = {1: "dimension", 2: "two dimensions", 3: "three dimensions"}
"""The sizes of (N, C, *sizes) in words."""

Test = Callable[..., Any]
"""A condition on operands; its parameters are parameters of the op's forward
function.
"""


class Hazard(Record):
    """Where the result of an op, or its slope, is not finite, and why.

    Attributes:
        values: for operands without a finite result: a test, a keyword for machine-readable output,
            a sentence.
        slopes: for operands without a finite slope: a test and a clause, which may show the
            operands in braces.
        infinities: the keyword and the sentence for an operand that is infinite.
        nothing: the sentence for a NaN that finite operands gave: a division of 0 by 0.
        singular: the sentence for an infinity that finite operands gave, where that is no overflow.
        zeros: the clause for a slope that is not finite where all elements are 0.
        steep: whether a slope may be beyond the largest number where the operands are finite.
        undefined: whether the formula of the slope divides 0 by 0 where a test of `slopes` holds.
    """

    values: tuple[tuple[Test, str, str], ...] = ()
    slopes: tuple[tuple[Test, str], ...] = ()
    infinities: tuple[str, str] | None = None
    nothing: str = ""
    singular: str = ""
    zeros: str = ""
    steep: bool = False
    undefined: bool = False

    def of_value(self, operands: dict[str, Any]) -> tuple[str, str] | None:
        """Why operands have no finite result: a keyword and a sentence; None where they have
        one.
        """
        for test, kind, text in self.values:
            if _holds(test, operands):
                return kind, text
        return None

    def of_slope(self, operands: dict[str, Any]) -> str:
        """Why the slope is not finite at operands, "" where it is."""
        for test, text in self.slopes:
            if _holds(test, operands):
                return text.format(**operands)
        return ""


NO_HAZARD = Hazard()


def _holds(test: Test, operands: dict[str, Any]) -> bool:
    """A test of the operands; false where an operand that it needs has no number."""
    code = test.__code__
    needed = [operands.get(name) for name in code.co_varnames[: code.co_argcount]]
    return not any(each is None for each in needed) and bool(test(*needed))


def effects(*names: str) -> Callable[[Body], Body]:
    """Declare the side effects of a composed function."""

    def decorate(body: Body) -> Body:
        vars(body)["effects"] = frozenset(names)
        return body

    return decorate


def of_shapes(body: Body) -> Body:
    """Declare that what a function of arrays gives depends on their shapes alone, as noise does."""
    vars(body)["of_shapes"] = True
    return body


def in_numpy(text: str) -> Callable[[Body], Body]:
    """Declare NumPy's equivalent of a composed function, as `Op.numpy` does for an entry."""

    def decorate(body: Body) -> Body:
        vars(body)["numpy"] = text
        return body

    return decorate


def describe(body: Any, summary: str, example: str = "", conventions: str = "") -> None:
    """Set the docstring of a function that is defined in a loop."""
    parts = [summary]
    if conventions:
        parts.append(f"Conventions: {conventions}")
    if example:
        parts.append(f"Example: {example}")
    body.__doc__ = "\n\n".join(parts)
