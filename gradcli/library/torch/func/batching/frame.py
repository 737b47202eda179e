"""A level of a running `vmap`: how many examples it has, and which values differ from example to
example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from gradcli.autograd.batched import BatchedArray, NeedsExamples, batched_tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.creation.copies import clone
from gradcli.ops.creation.random import drawn
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.views import expand, unsqueeze
from gradcli.record import Record
from gradcli.state import active


class Frame(Record):
    """One level of batching, while its function runs.

    Attributes:
        level: its number among the transforms that run, from 1.
        size: how many examples there are.
        randomness: "error", "different" or "same".
        outer: the `vmap` around it.
        below: whether ops on the values of all examples are recorded, once a transform inside the
            function differentiates; None before, while the session's mode says it.
        born: what that transform found in the session's place for tensors that were made.
    """

    level: int
    size: int
    randomness: str
    outer: Self | None
    below: bool | None = None
    born: Any = None

    def wrapped(self, value: Any) -> Any:
        """A tensor as one of this level; what is no tensor stays as it is."""
        if type(value) is not Tensor or self.holds(value):
            return value
        return batched_tensor(value, None, self.level)

    def holds(self, value: Any) -> bool:
        """Whether a value is a tensor of this level."""
        return (
            type(value) is Tensor
            and type(value.array) is BatchedArray
            and value.array.level == self.level
        )

    def is_batched(self, *values: Any) -> bool:
        """Whether one of the values differs from example to example."""
        return any(self.holds(value) and value.array.bdim is not None for value in values)

    def plain(self, value: Any) -> Any:
        """The value that all examples share."""
        return value.array.value if self.holds(value) else value

    def first(self, value: Tensor) -> Tensor:
        """The values of all examples, one example after the other in the first dimension."""
        if not self.is_batched(value):
            whole = self.plain(value)
            return expand.apply(unsqueeze.apply(whole, 0), (self.size, *whole.array.shape))
        array: BatchedArray = value.array
        return array.value if array.bdim == 0 else movedim(array.value, array.bdim, 0)

    def at(self, level: int) -> Self:
        """The running `vmap` of a level."""
        frame = self
        while frame.level != level:
            assert frame.outer is not None
            frame = frame.outer
        return frame

    def for_examples(self, pattern: Tensor, new: Tensor) -> Tensor:
        """A new tensor, with memory for each example where each has a pattern of its own."""
        array = pattern.array
        if type(array) is not BatchedArray:
            return new
        inner = self.for_examples(array.value, new)
        if array.bdim is None:
            return inner
        frame = self.at(array.level)
        return batched_tensor(frame.run(lambda: clone.apply(frame.first(inner))), 0, array.level)

    def drawn(
        self, sizes: tuple[int, ...], draw: Callable[[tuple[int, ...]], Any], like: Any = None
    ) -> Any:
        """Random numbers: drawn for all examples at once, or once, as the mode says. Those that are
        like an array have the examples where it has them.
        """
        if self.randomness == "error":
            self.check_drawing()
        apart = self.randomness == "different"
        at = 0
        if apart:
            if type(like) is BatchedArray and like.level == self.level:
                at = like.bdim or 0
            sizes = (*sizes[:at], self.size, *sizes[at:])
        array = self.run(lambda: drawn(sizes, draw))
        return BatchedArray(Tensor(array), at, self.level) if apart else array

    def check_drawing_by_examples(self) -> None:
        """Raise E204 unless each example may draw for itself."""
        if self.randomness != "different":
            text = _DRAWN if self.randomness == "error" else _DRAWN_ONCE
            raise runtime_error(text)

    def refuse_same_draws(self, value: Tensor) -> None:
        """Raise E204 for one draw that depends on the examples."""
        if self.randomness == "same" and self.is_batched(value):
            raise runtime_error(_DRAWN_ONCE)

    def check_drawing(self) -> None:
        """Raise E204 for random numbers where the mode is "error"; have examples draw one after
        the other where each draws for itself.
        """
        if self.randomness == "error":
            raise runtime_error(_DRAWN)
        if self.randomness == "different":
            raise NeedsExamples

    def own(self, value: Tensor) -> Tensor:
        """A copy of a value that each example has for itself."""
        whole = self.wrapped(value)
        return batched_tensor(self.run(lambda: clone.apply(self.first(whole))), 0, self.level)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function outside this level, with the values of all examples."""
        state = active.state
        before = state.batch, state.grad_enabled, state.born
        state.batch = self.outer
        if self.below is not None:
            state.grad_enabled, state.born = self.below, self.born
        try:
            return function(*args)
        finally:
            state.batch, state.grad_enabled, state.born = before


_DRAWN = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or"
    " 'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
"""PyTorch's text."""

_DRAWN_ONCE = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an"
    " issue with functorch"
)
"""PyTorch's text."""
