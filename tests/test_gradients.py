"""The gradients of every op against central differences, at order 1 and 2.

The rows stand in `tests/op_table/`, the checker in `tests/op_table/check.py`. An op without a row
fails `test_every_op_has_a_row`; a checker that lets a wrong rule pass fails
`test_wrong_rules_are_caught`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest

import tests.op_table
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.engine.backward import backward
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.op import Op, op, pointwise, registry
from gradcli.ops.elementwise.unary import sqrt
from tests.declared import mismatches
from tests.op_table.check import (
    WrongGradient,
    check,
    differentiable,
    first_order,
    gradients,
    graph_of,
    leaf,
)
from tests.op_table.rows import Row
from tests.rows import each_row
from tests.running import Expression

bring_all()


def _collect() -> list[Row]:
    modules = [f"tests.op_table.{found.name}" for found in iter_modules(tests.op_table.__path__)]
    return [row for name in modules for row in getattr(import_module(name), "ROWS", ())]


ROWS = _collect()

every_row = each_row("row", ROWS, size=12)


class Point:
    """A row made ready: its function of the differentiable operands, and where it is checked."""

    def __init__(self, row: Row, dtype: Any = np.float64) -> None:
        expression = Expression(row.expression)
        values = row.values()
        self.names = [name for name, operand in row.operands.items() if operand.differentiable]
        self.arrays = [np.asarray(values[name], dtype) for name in self.names]
        fixed = {
            name: Tensor(_fixed(values[name], dtype)) for name in values if name not in self.names
        }
        self.generator = row.generator()

        def function(*tensors: Tensor) -> Any:
            return expression(**dict(zip(self.names, tensors, strict=True)), **fixed)

        self.function = function


def _fixed(array: Any, dtype: Any) -> Any:
    array = np.asarray(array)
    return (array.astype(dtype) if array.dtype.kind == "f" else array)[()]


@every_row
def test_gradients(row: Row) -> None:
    point = Point(row)
    if row.order == 0:
        (output,) = differentiable(point.function(*map(leaf, point.arrays)))
        with pytest.raises(GradcliError) as raised:
            backward(output, Tensor(output.array))
        assert raised.value.code == "E409"
        return
    before = [array.copy() for array in point.arrays]
    check(point.function, point.arrays, order=row.order, generator=point.generator)
    for array, kept in zip(point.arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept, "an operand was written to")


@each_row("row", [row for row in ROWS if row.float32], every=3)
def test_float32_gives_float32(row: Row) -> None:
    """Results and gradients keep the operands' dtype, and lie close to those in float64."""
    double, single = Point(row), Point(row, np.float32)
    wide = differentiable(double.function(*map(leaf, double.arrays)))
    narrow = differentiable(single.function(*map(leaf, single.arrays)))
    assert len(wide) == len(narrow)
    for left, right in zip(wide, narrow, strict=True):
        if left.array.dtype == np.float64:
            assert right.array.dtype == np.float32
        kinds = {type(forced(each.array)) for each in (left, right)}
        assert len(kinds) == 1 or isinstance(right.array, np.float32)
        _assert_close(right.array, left.array)
    seeds = [double.generator.normal(size=output.array.shape) for output in wide]
    narrow_seeds = [
        s.astype(o.array.dtype) for s, o in zip(map(np.asarray, seeds), narrow, strict=True)
    ]
    # `first_order` raises where a gradient's dtype or shape is not its operand's.
    expected = first_order(double.function, double.arrays, seeds)
    found = first_order(single.function, single.arrays, narrow_seeds)
    for gradient, close in zip(found, expected, strict=True):
        _assert_close(gradient, close)


def _assert_close(found: Any, expected: Any) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=2e-3 * scale)


@each_row(
    "row",
    [r for r in ROWS if r.order and any(o.shape == () for o in r.operands.values())],
    ids=repr,
)
def test_scalars_may_be_arrays(row: Row) -> None:
    """A 0-dim tensor's value is a NumPy scalar or a 0-dim array, with the same result."""
    point = Point(row)
    as_scalars = list(map(leaf, point.arrays))
    as_arrays = [Tensor(array.copy(), True) for array in point.arrays]
    left = differentiable(point.function(*as_scalars))
    right = differentiable(point.function(*as_arrays))
    seeds = [Tensor(np.array(point.generator.normal(size=o.array.shape))[()]) for o in left]
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a.array, b.array)
    found = gradients(point.function, as_arrays, seeds)
    expected = gradients(point.function, as_scalars, seeds)
    for gradient, same in zip(found, expected, strict=True):
        np.testing.assert_array_equal(gradient.array, same.array)


def test_no_row_stands_twice() -> None:
    texts = [repr(row) for row in ROWS]
    assert [text for text in texts if texts.count(text) > 1] == []


def test_every_op_has_a_row() -> None:
    """Each op with a node is in the graph of some row, or in the graph of its gradient."""
    met: set[Op] = set()
    for row in ROWS:
        try:
            met |= _ops_of(row)
        except Exception:  # the row's own test says what is wrong with it
            continue
    elsewhere = {
        "_to_copy.device",  # it takes two devices: tests/test_gpu.py
        "_pack_padded_sequence",  # gives no tensor: tests/programs/training/packed_sequences
        # What is drawn jumps where another draw is accepted: tests/programs/around/moving_draws.
        "_standard_gamma",
        "_standard_gamma_grad",
        "_sample_dirichlet",
        "_dirichlet_grad",
        # Slopes are drawn for each element: tests/programs/around/state_hooks.
        "rrelu_with_noise_backward.RreluWithNoiseBackwardBackward0",
        "rrelu_with_noise.RreluWithNoiseBackward0",
        "rrelu_with_noise_.RreluWithNoiseBackward1",
        "mkldnn_rnn_layer",  # of single precision only: tests/programs/training/lstm_gradients
    }
    missing = [
        key
        for key, entry in registry.items()
        if entry.node_name and entry not in met and key not in elsewhere
    ]
    assert missing == []


def _ops_of(row: Row) -> set[Op]:
    point = Point(row)
    leaves = list(map(leaf, point.arrays))
    tensors = differentiable(point.function(*leaves))
    if row.order:
        seeds = [leaf(point.generator.normal(size=output.array.shape)) for output in tensors]
        tensors += gradients(point.function, leaves, seeds, create_graph=True)
    return {node.op for node in graph_of(tensors) if hasattr(node, "op")}


# --- the checker itself ---------------------------------------------------------------------------

Rule = Callable[..., Any]


def _mul(**slips: Rule) -> Op:
    rules: dict[str, Any] = {
        "self": lambda grad, other: grad * other,
        "other": lambda grad, self: grad * self,
    }
    return pointwise("mul", lambda self, other: self * other, **(rules | slips))


def _exp(rule: Rule) -> Op:
    return pointwise("exp", lambda self: np.exp(self), self=rule)


def _square() -> Op:
    """Its first derivative is right; the second is lost, since the rule reads a raw array."""
    return pointwise(
        "square",
        lambda self: self * self,
        self=lambda grad, self: grad * (2 * (self.array if type(self) is Tensor else self)),
    )


def _turn(rule: Rule) -> Op:
    return op("turn", lambda self: self.T.copy(), self=rule)


def _scale(factor: float) -> Rule:
    return lambda grad, other: grad * other * factor


def _product() -> list[Any]:
    return [np.array([0.5, -1.5, 2.0]), np.array([[1.25, 0.75, -0.5], [0.3, 2.0, 1.0]])]


PLANTED: dict[str, tuple[Callable[[], Op], int, Callable[[], list[Any]]]] = {
    "sign": (lambda: _mul(self=lambda grad, other: -grad * other), 1, _product),
    "factor": (lambda: _mul(self=_scale(1.001)), 1, _product),
    "other operand": (lambda: _mul(other=lambda grad, other: grad * other), 1, _product),
    "no gradient": (lambda: _mul(self=lambda grad: zeros_like(grad)), 1, _product),
    "missing transpose": (
        lambda: _turn(lambda grad: grad),
        1,
        lambda: [np.arange(4.0).reshape(2, 2)],
    ),
    "lost second derivative": (_square, 2, lambda: [np.array([0.5, -1.5])]),
    "input for result": (
        lambda: _exp(lambda grad, self: grad * self),
        1,
        lambda: [np.array([0.5])],
    ),
}


@pytest.mark.parametrize("slip", PLANTED)
def test_wrong_rules_are_caught(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.ops.definition.op.registry", {})
    make, order, arrays = PLANTED[slip]
    entry = make()
    with pytest.raises(WrongGradient):
        check(entry, arrays(), order=order, generator=np.random.default_rng(7))


def test_right_rules_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ops without the slip: what is caught above is the slip."""
    monkeypatch.setattr("gradcli.ops.definition.op.registry", {})
    generator = np.random.default_rng(7)
    check(_mul(), _product(), order=2, generator=generator)
    check(_exp(lambda grad, result: grad * result), [np.array([0.5])], order=2, generator=generator)
    check(_square(), [np.array([0.5, -1.5])], order=1, generator=generator)


@pytest.mark.parametrize("call", ["sqrt(self)", "sqrt.apply(self)"])
def test_a_rule_may_call_an_op_in_either_way(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On arrays the op that a rule names is its forward function, which stands for both."""
    monkeypatch.setattr("gradcli.ops.definition.op.registry", {})
    rule = eval(f"lambda grad, self: grad * {call} * 1.5", dict(_NAMES))
    entry = pointwise("root_cubed", lambda self: self**1.5, self=rule)
    check(entry, [np.array([0.5, 2.0])], order=2, generator=np.random.default_rng(7))


_NAMES = {"__name__": "gradcli.ops.example", "sqrt": sqrt}
"""The names that a rule of the package sees."""


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: pointwise("f", lambda self: self, node="FBackward0"), "rules"),
        (lambda: pointwise("f", lambda self: self, other=lambda grad: grad), "other"),
        (lambda: pointwise("f", lambda self: self, self=lambda grad, y: grad), "'y'"),
    ],
    ids=["no rules", "rule without input", "unknown parameter"],
)
def test_a_slip_of_an_entry_is_found(
    declare: Callable[[], Op], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradcli.ops.definition.op.registry", {})
    assert any(words in each for each in mismatches(declare()))


def test_names_are_not_taken_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.ops.definition.op.registry", {})
    _mul()
    _mul(self=lambda grad: grad)
    with pytest.raises(TypeError, match="already"):
        _mul()
