"""Listeners: further receivers of the events that are reported to the recorder.

A listener stands in front of the session's recorder, if there is one, and passes every event on to
it. So features of few programs (anomaly detection, hooks for saved tensors) cost the others
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.state import active


def _passed_on(event: str) -> Any:
    """A method that hands an event to the listener or recorder behind, if there is one."""

    def method(self: Listener, *details: Any) -> None:
        if self.former is not None:
            getattr(self.former, event)(*details)

    return method


class Listener:
    """Receives every op and every backward step while it is installed.

    Attributes:
        former: the recorder, or the other listener, that it stands in front of.
        in_ops: whether it is to hear the ops of a pass that returns gradients, which then runs on
            tensors.
        check: what compiled iterations, of which it hears nothing, are to call with the arrays that
            they compute; raises `SideExit` to have one interpreted.
    """

    __slots__ = ("former",)

    in_ops: ClassVar[bool] = False
    check: Callable[..., None] | None = None

    def __init__(self) -> None:
        self.former: Any = None

    @property
    def recorder(self) -> Any:
        """The recorder behind all listeners, None where there is none."""
        return None if self.former is None else self.former.recorder

    def install(self) -> None:
        """Put it in front of the recorder."""
        state = active.state
        self.former, state.recorder = state.recorder, self

    def remove(self) -> None:
        """Take it out of the chain of listeners, if it is there."""
        state = active.state
        if state.recorder is self:
            state.recorder = self.former
            return
        current = state.recorder
        while isinstance(current, Listener):
            if current.former is self:
                current.former = self.former
                return
            current = current.former

    # --- events, each passed on ---------------------------------------------------------------

    differentiated: Any = _passed_on("differentiated")
    """`backward()` is called on tensors, and whether it has come to its end."""

    operation: Any = _passed_on("operation")
    """A call of an op: the op, its operands by parameter, its output or the tuple of them."""

    write: Any = _passed_on("write")
    """A tensor, and what was written over its value: the result of an op, an array or a number."""

    computed: Any = _passed_on("computed")
    """A function other than an op, its operands, and the array that it returned."""

    read_value: Any = _passed_on("read_value")
    """A read of values outside the ops: a check that passed, or None for a number that was taken
    out of an array; and the operands.
    """

    drawn: Any = _passed_on("drawn")
    """The generator that random numbers are about to be drawn from."""

    shown: Any = _passed_on("shown")
    """The values that the program prints."""

    backward: Any = _passed_on("backward")
    """A backward pass begins: its roots (node, output number, gradient), whether it accumulates."""

    step: Any = _passed_on("step")
    """A node that ran: its incoming gradient(s), its rules' results, the gradients passed on."""

    accumulation: Any = _passed_on("accumulation")
    """A node where gradients met: the one that waited, the incoming one, their sum."""

    leaf: Any = _passed_on("leaf")
    """The node of a leaf whose `.grad` was added to: the old gradient, the incoming, the new."""

    returned: Any = _passed_on("returned")
    """A gradient that a backward pass returns, an array, and the tensor that has a copy."""

    entered: Any = _passed_on("entered")
    """The call of a module that begins."""

    left: Any = _passed_on("left")
    """The call of a module that ended, also by an error."""

    prepared: Any = _passed_on("prepared")
    """The seconds that it took to make what the first call of an op needs."""

    wrapped: Any = _passed_on("wrapped")
    """A number that a node saved, as the tensor that a recorded pass computes with."""

    def begin_backward(self, keep_graph: bool) -> bool:
        """A backward pass begins; returns whether it is to keep what the nodes saved."""
        return keep_graph if self.former is None else bool(self.former.begin_backward(keep_graph))
