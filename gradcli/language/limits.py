"""Limits the work that one operation of a program may ask for.

Whatever the host would do in one go, without a chance to stop it, is measured before it starts:
the length of a sequence, the bits of an integer, the nesting of a container. Everything beyond is
E602, or E601 for nesting. What a person may set is in `gradcli.limits`; the rest is here.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError
from gradcli.state import active, charge_steps

if TYPE_CHECKING:
    from gradcli.limits import Steps

LARGEST_INTEGER = 1 << 20
"""Bits of an integer."""

LARGEST_FORMAT = 1 << 16
"""Width or precision of a format."""

DEEPEST_CALL = 1000
"""Calls of the program's functions that are open at once, as in Python."""

DEEPEST_NESTING = 500
"""Containers inside containers that are compared, hashed or printed."""

MOST_CONTAINERS = 2 * 10**6
"""Containers inside a container that is compared or hashed, each as often as it occurs."""

DEEPEST_ITERATOR = 10
"""Iterators that draw from iterators (`map` of `zip` of …)."""

DEEPEST_HOST_CALL = 400
"""Calls that reach the program's code through the host, one inside the other.

Each `sorted(key=…)`, `map` or generator expression takes its share of the C stack.
"""

HOST_ITERATIONS = 16
"""Values that the host goes through in the time of one iteration of a loop of a program."""

_HOST_COPIES = 256
"""Values that the host copies or looks at in that time."""


def enter_host_call(steps: Steps) -> None:
    """Count a call through the host; raises E601 for too many, one inside the other."""
    if steps.nested >= DEEPEST_HOST_CALL:
        raise too_deep("calls through built-in functions")
    steps.nested += 1


def too_many_steps() -> GradcliError:
    """The error of a program whose steps are used up."""
    return active.state.limits.too_many_steps()


def charge(values: int) -> None:
    """Count what the host goes through in one go as steps; raises E605 where they are used up."""
    charge_steps(values // HOST_ITERATIONS)


def charge_copy(values: int) -> None:
    """Count what the host copies or looks at in one go as steps, as `charge` does."""
    if values >= _HOST_COPIES:
        charge_steps(values // _HOST_COPIES)


def too_deep(what: str) -> GradcliError:
    """The error of something nested beyond its limit."""
    return GradcliError("E601", f"{what} are nested too deeply")


def check_collection(length: int) -> None:
    """Raise E602 if a collection would have too many elements."""
    limits = active.state.limits
    if length > limits.elements:
        raise limits.too_many_elements(length)


def check_text(length: int) -> None:
    """Raise E602 if a string would be too long."""
    active.state.limits.check_elements(length, "characters")


def check_integer(bits: int) -> None:
    """Raise E602 if an integer would have too many bits."""
    if bits > LARGEST_INTEGER:
        raise GradcliError(
            "E602",
            f"an integer of about {bits:,} bits is too large: the limit is {LARGEST_INTEGER:,}",
        )


PLAIN = frozenset({bool, complex, float, int, str, type(None)})
"""The types of values in which nothing lies."""

_CONTAINERS = frozenset({list, tuple, dict, set})
_BASES = (list, tuple, dict, deque)


def _is_container(kind: type) -> bool:
    return kind in _CONTAINERS or issubclass(kind, _BASES)


def check_nesting(value: Any) -> None:
    """Raise E601 or E602 if walking through a container would go too deep or visit too many values.

    A list that holds itself is infinitely deep; `x = [x, x]` forty times over is a small object
    and an endless walk.
    """
    kind = type(value)
    if kind in PLAIN:
        return
    is_row = kind is tuple or kind is list
    if is_row and len(value) < HOST_ITERATIONS and PLAIN.issuperset(map(type, value)):
        return  # a key of a dict, most often: nothing lies in it, and it is too short to count
    if not _is_container(kind):
        return
    charge(len(value))
    level = _inner([value])
    depth = 1
    visited = 0
    while level:
        depth += 1
        if depth > DEEPEST_NESTING:
            raise too_deep("containers")
        visited += len(level)
        if visited > MOST_CONTAINERS:
            raise GradcliError("E602", f"more than {MOST_CONTAINERS:,} containers are too many")
        level = _inner(level)


def _inner(containers: list[Any]) -> list[Any]:
    """The containers that lie directly in some."""
    lying = [each.values() if isinstance(each, dict) else each for each in containers]
    kinds = {kind for kind in set(map(type, chain.from_iterable(lying))) if _is_container(kind)}
    if not kinds:
        return []
    return [value for value in chain.from_iterable(lying) if type(value) in kinds]
