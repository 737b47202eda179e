"""Line search: a step length along a direction that satisfies the strong Wolfe conditions.

Positions and slopes are numbers or tensors of no dimension, whichever arithmetic made them, and
values are numbers: single precision decides as it does in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.binding.functions import methods
from gradcli.record import Record

_DECREASE = 1e-4
"""The least required decrease, as a fraction of that which the first slope predicts."""

_FLATTENING = 0.9
"""The largest accepted slope, as a fraction of the first slope."""


class Point(Record):
    """A point on the line.

    Attributes:
        position: how far along the direction.
        value: the loss there.
        gradient: the loss's gradient, as one vector.
        slope: the gradient along the direction.
    """

    position: Any
    value: float
    gradient: Any
    slope: Any


class LineSearch(Record):
    """A search from one point.

    Attributes:
        evaluate: the point at a position.
        start: where the line begins.
        length: the largest change of a parameter by a step of 1.
        tolerance: the least change of a parameter that counts.
        left: how many points may be evaluated beside the first.
    """

    evaluate: Callable[[Any], Point]
    start: Point
    length: Any
    tolerance: float
    left: int

    def run(self, step: Any) -> Point:
        """A point that satisfies the conditions, or the best of those evaluated.

        Args:
            step: the position to evaluate first.
        """
        previous = self.start
        current = self.evaluate(step)
        rounds = 0
        while True:
            if rounds >= self.left:
                return self._narrowed(self.start, current, 0)
            if self._rises(current) or (rounds > 1 and current.value >= previous.value):
                return self._narrowed(previous, current, self.left - rounds)
            if self._is_flat(current):
                return current
            if current.slope >= 0:
                return self._narrowed(previous, current, self.left - rounds)
            nearest = current.position + 0.01 * (current.position - previous.position)
            step = _cubic_minimum(previous, current, nearest, current.position * 10)
            previous, current = current, self.evaluate(step)
            rounds += 1

    def _rises(self, point: Point) -> bool:
        """Whether the loss violates the condition of sufficient decrease."""
        promised = _DECREASE * point.position * self.start.slope
        return bool(point.value > self.start.value + promised)

    def _is_flat(self, point: Point) -> bool:
        return bool(_size(point.slope) <= -_FLATTENING * self.start.slope)

    def _narrowed(self, first: Point, second: Point, rounds: int) -> Point:
        """The best point between two, after so many iterations at most."""
        ends = [first, second]
        low = _lower(ends)
        stalled = False
        for _ in range(rounds):
            if _size(ends[1].position - ends[0].position) * self.length < self.tolerance:
                break
            near = min(ends[0].position, ends[1].position)
            far = max(ends[0].position, ends[1].position)
            position = _cubic_minimum(ends[0], ends[1], near, far)
            margin = 0.1 * (far - near)
            close = bool(min(far - position, position - near) < margin)
            # The second time in a row that it is close to an end, it is moved away from it.
            if close and (stalled or position >= far or position <= near):
                nearer_far = _size(position - far) < _size(position - near)
                position = far - margin if nearer_far else near + margin
                close = False
            stalled = close
            new = self.evaluate(position)
            if self._rises(new) or new.value >= ends[low].value:
                ends[1 - low] = new
                low = _lower(ends)
                continue
            done = self._is_flat(new)
            if not done and new.slope * (ends[1 - low].position - ends[low].position) >= 0:
                ends[1 - low] = ends[low]
            ends[low] = new
            if done:
                break
        return ends[low]


def _size(number: Any) -> Any:
    return methods.abs(number) if isinstance(number, Tensor) else abs(number)


def _lower(ends: list[Point]) -> int:
    return 0 if ends[0].value <= ends[1].value else 1


def _cubic_minimum(first: Point, second: Point, least: Any, most: Any) -> Any:
    """Where the cubic through two points with their slopes is lowest, within bounds; between the
    bounds if it has no minimum.

    Raises E204 for two points at one position, which a learning rate of 0 gives.
    """
    if first.position > second.position:
        first, second = second, first
    # The formula is for the point on the right; turned around it gives the same in exact numbers.
    width = first.position - second.position
    if width == 0:
        raise GradcliError(
            "E204", "the line search cannot move: the step is 0", raises="ZeroDivisionError"
        )
    bend = first.slope + second.slope - 3 * (first.value - second.value) / width
    square = bend**2 - first.slope * second.slope
    if square >= 0:
        root = methods.sqrt(square)
        part = (second.slope + root - bend) / (second.slope - first.slope + 2 * root)
        position = second.position - (second.position - first.position) * part
        return min(max(position, least), most)
    return (least + most) / 2.0
