"""Listeners: further receivers of the events that are reported to the recorder.

A listener stands in front of the session's recorder, if there is one, and passes every event on to
it. So features of few programs (anomaly detection, hooks for saved tensors) cost the others
nothing.
"""

from __future__ import annotations

from typing import Any

from gradcli.state import active


class Listener:
    """Receives every op and every backward step while it is installed.

    Attributes:
        former: the recorder, or the other listener, that it stands in front of.
    """

    __slots__ = ("former",)

    def __init__(self) -> None:
        self.former: Any = None

    @property
    def recorder(self) -> Any:
        """The recorder behind all listeners, None where there is none."""
        former = self.former
        return former.recorder if isinstance(former, Listener) else former

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

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op."""
        if self.former is not None:
            self.former.operation(op, operands, output)

    def step(self, node: Any, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran."""
        if self.former is not None:
            self.former.step(node, grads, gradients, fitted)

    def accumulation(self, node: Any, old: Any, incoming: Any, total: Any) -> None:
        """A gradient that was added to another one waiting at its node."""
        if self.former is not None:
            self.former.accumulation(node, old, incoming, total)

    def write(self, tensor: Any, result: Any) -> None:
        """A result that was written over a tensor's value."""
        if self.former is not None:
            self.former.write(tensor, result)

    def overwritten(self, tensor: Any, array: Any) -> None:
        """An array, or a number, that was written over a tensor's value."""
        if self.former is not None:
            self.former.overwritten(tensor, array)

    def computed(self, function: Any, operands: tuple[Any, ...], result: Any) -> None:
        """An array that a function other than an op returned."""
        if self.former is not None:
            self.former.computed(function, operands, result)

    def looked(self, check: Any, operands: tuple[Any, ...]) -> None:
        """A read of values outside the ops: a check that passed, or, where that is None, the number
        that was taken out of an array.
        """
        if self.former is not None:
            self.former.looked(check, operands)

    def drawn(self, generator: Any) -> None:
        """Random numbers are about to be drawn."""
        if self.former is not None:
            self.former.drawn(generator)

    def shown(self, values: tuple[Any, ...]) -> None:
        """Values that the program prints."""
        if self.former is not None:
            self.former.shown(values)

    def returned(self, gradient: Any, tensor: Any) -> None:
        """A gradient that a backward pass returns, an array, and the tensor that has a copy."""
        if self.former is not None:
            self.former.returned(gradient, tensor)

    def wrapped(self, tensor: Any) -> None:
        """A number that a node saved, as the tensor that a recorded pass computes with."""
        if self.former is not None:
            self.former.wrapped(tensor)

    def begin_backward(self, keep_graph: bool) -> bool:
        """A backward pass begins; returns whether it is to keep what the nodes saved."""
        return keep_graph if self.former is None else bool(self.former.begin_backward(keep_graph))

    def backward(self, roots: Any, accumulate: bool) -> None:
        """A backward pass begins."""
        if self.former is not None:
            self.former.backward(roots, accumulate)

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that was added to a leaf's `.grad`."""
        if self.former is not None:
            self.former.leaf(node, old, incoming, new)
