"""L-BFGS: quasi-Newton steps, with a curvature estimate from the last gradients, and a line
search for their length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.modes import EnableGrad, NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, value_error
from gradcli.language.functions.calls import Function
from gradcli.library.torch.optim.optimizer import (
    Group,
    Optimizer,
    State,
    add_scaled,
    number,
)
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.linalg.products.matrix_products import product
from gradcli.ops.shape.joining import cat_function
from gradcli.record import Record
from gradcli.state import active

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


Closure = Callable[[], Any]


def _largest(tensor: Tensor) -> Any:
    return methods.max(methods.abs(tensor))


class LBFGS(Optimizer):
    """Steps along the gradient times an estimate of the inverse Hessian.

    A step takes `max_iter` iterations at most, and `closure` computes the loss and its gradients
    anew in each. The state is kept with the first parameter.

    Raises E204 for a setting out of range and for several groups of parameters.

    Example: torch.optim.LBFGS([tensor(1., requires_grad=True)], lr=0.1)
    """

    settings = (
        "lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,"
        " history_size=100, line_search_fn=None"
    )

    def begin(self, params: Any, settings: Group) -> None:
        if settings["max_eval"] is None:
            settings["max_eval"] = settings["max_iter"] * 5 // 4
        super().begin(params, settings)
        if len(self.param_groups) != 1:
            raise value_error("LBFGS doesn't support per-parameter options (parameter groups)")

    def _step(self, closure: Closure | None = None) -> Any:
        if closure is None:
            raise GradcliError(
                "E201",
                "LBFGS.step() needs a closure, which computes the loss and its gradients",
                text="LBFGS.step() missing 1 required positional argument: 'closure'",
            )
        calls = active.state.closure_calls
        if calls is not None and type(closure) is Function:
            closure = calls(closure)
        group, recorder = self.param_groups[0], active.state.recorder
        with NoGrad():
            if recorder is None:
                return _Step(group, self.state, closure).run()
            return _recorded(_Step(group, self.state, closure), recorder)


def _recorded(step: _Step, recorder: Any) -> Any:
    """Run a step, and tell what it did to each parameter."""
    before = [(each, np.array(to_host(forced(each.array)))) for each in step.parameters]
    loss = step.run()
    for parameter, array in before:
        if parameter.grad is not None:
            gradient = forced(parameter.grad.array)
            recorder.updating(parameter, gradient, step.group, array)
            recorder.updated(parameter)
    return loss


class _Step:
    """One step of the optimiser.

    Attributes:
        group: the parameters and settings.
        state: what is kept from step to step.
        closure: computes the loss and its gradients.
        evaluations: how often it was called in this step.
        loss, gradient: its last results, the gradients of all parameters as one vector.
        direction: where the parameters go.
        length: how far along the direction, a number or a tensor.
    """

    def __init__(self, group: Group, state: Any, closure: Closure) -> None:
        self.group = group
        self.parameters: list[Tensor] = group["params"]
        self.state: State = state[self.parameters[0]]
        self.closure = closure
        self.evaluations = 0
        self.loss = 0.0
        self.gradient: Any = None
        self.direction: Any = self.state.get("d")
        self.length: Any = self.state.get("t")

    def run(self) -> Any:
        """Iterate until convergence or a limit; returns the loss before the step."""
        state, group = self.state, self.group
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        loss = self._evaluate()
        state["func_evals"] += 1
        if self._at_minimum():
            return loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            before = self.loss
            self._turn()
            previous_gradient = methods.clone(self.gradient)
            slope = methods.dot(self.gradient, self.direction)
            if slope > -group["tolerance_change"]:
                state["prev_flat_grad"], state["prev_loss"] = previous_gradient, before
                break
            self._move(slope, last=iteration == group["max_iter"])
            state["prev_flat_grad"], state["prev_loss"] = previous_gradient, before
            if self._is_done(before):
                break
        self._remember()
        return loss

    def _is_done(self, before: float) -> bool:
        group = self.group
        return bool(
            self.evaluations >= group["max_eval"]
            or self._at_minimum()
            or _largest(self.direction * self.length) <= group["tolerance_change"]
            or abs(self.loss - before) < group["tolerance_change"]
        )

    def _at_minimum(self) -> bool:
        return bool(_largest(self.gradient) <= self.group["tolerance_grad"])

    def _remember(self) -> None:
        """Store the step's results in the state, in PyTorch's order."""
        state = self.state
        kept = {"d": self.direction, "t": self.length}
        for name in ("old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss"):
            kept[name] = state.pop(name)
        for name in ("d", "t"):
            state.pop(name, None)
        state.update(kept)

    # --- where to go --------------------------------------------------------------------------

    def _turn(self) -> None:
        """Compute the direction and the first step length."""
        state, lr = self.state, number(self.group["lr"])
        if state["n_iter"] == 1:
            self.direction = -self.gradient
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            total = methods.sum(methods.abs(self.gradient))
            self.length = min(1.0, 1.0 / total) * lr
            return
        self._learn()
        self.direction = self._times_inverse_hessian(-self.gradient)
        self.length = lr

    def _learn(self) -> None:
        """Store how the gradient changed along the last step, if the curvature is positive."""
        state = self.state
        change = self.gradient - state["prev_flat_grad"]
        step = self.direction * self.length
        curvature = methods.dot(change, step)
        if curvature > 1e-10:
            if len(state["old_dirs"]) == self.group["history_size"]:
                for name in ("old_dirs", "old_stps", "ro"):
                    state[name].pop(0)
            state["old_dirs"].append(change)
            state["old_stps"].append(step)
            state["ro"].append(1.0 / curvature)
            state["H_diag"] = curvature / methods.dot(change, change)

    def _times_inverse_hessian(self, vector: Tensor) -> Tensor:
        """The vector times the estimate from the stored changes and steps."""
        state = self.state
        changes, steps, ratios = (
            [forced(tensor.array) for tensor in state[name]]
            for name in ("old_dirs", "old_stps", "ro")
        )
        array = forced(vector.array)
        shares = state.setdefault("al", [None] * self.group["history_size"])
        for index in reversed(range(len(steps))):
            share = product(steps[index], array) * ratios[index]
            shares[index] = Tensor(share)
            add_scaled(array, changes[index], -float(share))
        array = forced((Tensor(array) * state["H_diag"]).array)
        for change, step, ratio, share in zip(changes, steps, ratios, shares, strict=False):
            add_scaled(array, step, float(share.array - product(change, array) * ratio))
        return Tensor(array)

    # --- going --------------------------------------------------------------------------------

    def _move(self, slope: Any, last: bool) -> None:
        """Update the parameters, and evaluate the loss again where it will be needed."""
        before = self.evaluations
        if self.group["line_search_fn"] is not None:
            self._search(slope)
        else:
            self._add(self.length)
            if not last:
                self._evaluate()
        self.state["func_evals"] += self.evaluations - before

    def _search(self, slope: Any) -> None:
        if self.group["line_search_fn"] != "strong_wolfe":
            raise runtime_error("line_search_fn is 'strong_wolfe' or None")
        origin = [methods.clone(parameter) for parameter in self.parameters]

        def evaluate(position: Any) -> Point:
            self._add(position)
            self._evaluate()
            for parameter, value in zip(self.parameters, origin, strict=True):
                methods.copy_(parameter, value)
            return Point(
                position, self.loss, self.gradient, methods.dot(self.gradient, self.direction)
            )

        search = LineSearch(
            evaluate,
            Point(0, self.loss, methods.clone(self.gradient), slope),
            _largest(self.direction),
            1e-9,
            self.group["max_eval"] - self.evaluations,
        )
        point = search.run(self.length)
        self.loss, self.gradient, self.length = point.value, point.gradient, point.position
        self._add(self.length)

    def _evaluate(self) -> Any:
        """Compute the loss and the gradient anew; returns what the closure did."""
        with EnableGrad():
            loss = self.closure()
        self.evaluations += 1
        self.loss = float(loss)
        self.gradient = cat_function(
            [
                methods.reshape(
                    _real(parameter * 0 if parameter.grad is None else parameter.grad), -1
                )
                for parameter in self.parameters
            ]
        )
        return loss

    def _add(self, length: Any) -> None:
        """Move the parameters along the direction."""
        start = 0
        for parameter in map(_real, self.parameters):
            count = parameter.array.size
            part = methods.narrow(self.direction, 0, start, count)
            part = methods.view_as(part, parameter)
            methods.add_(parameter, part, alpha=number(length))
            start += count


def _real(tensor: Tensor) -> Tensor:
    """The tensor, complex numbers as pairs of real ones."""
    return torch.view_as_real(tensor) if tensor.array.dtype.kind == "c" else tensor
