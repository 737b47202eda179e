"""Rules read with symbols: what they write, and that it computes what the rule computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli.autograd.tensor import Tensor
from gradcli.errors import Source
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.op import Op, parameters_of, registry
from gradcli.recorded.symbols.reading import derivative_formulas, forward_formula
from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Name,
    Opaque,
    Operation,
    Symbol,
    in_language,
    substituted,
    text_of,
)
from gradcli.session import Session
from tests.rows import each_row

bring_all()

# --- what is written ----------------------------------------------------------------------------

WRITTEN = {
    "mul": {"self": "grad * other", "other": "grad * self"},
    "add": {"self": "grad", "other": "grad if alpha == 1 else grad * alpha"},
    "neg": {"self": "-grad"},
    "div": {"self": "grad / other", "other": "-grad * (self / other / other)"},
    "exp": {"self": "grad * result"},
    "log": {"self": "grad / self"},
    "sqrt": {"self": "grad / (result * 2)"},
    "tanh": {"self": "grad * (1 - result * result)"},
    "sigmoid": {"self": "grad * (1 - result) * result"},
    "log2": {"self": "grad / (self * math.log(2))"},
    "relu": {"self": "where(result <= 0, 0, grad)"},
    "pow": {"self": "0 if exponent == 0 else grad * (exponent * self ** (exponent - 1))"},
    "sum": {"self": "grad.expand(self.shape)"},
    "mean": {"self": "grad.expand(self.shape) / self.numel()"},
    "mm": {"self": "grad @ t(mat2)", "mat2": "t(self) @ grad"},
    "softmax": {"self": "grad * result - result * (grad * result).sum((dim,), True)"},
    "select": {"self": "select_backward(grad, self.shape, dim, index)"},
    "max": {"self": "where(self == result, grad / (self == result).sum(), 0)"},
    "sign": {"self": "0"},
    "floor_divide": {"self": "None", "other": "None"},
    "cat": {"tensors": "CatBackward0 rule of (grad, tensors.shape, dim)"},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_rules_write_themselves_down(name: str) -> None:
    found = derivative_formulas(registry[name])
    assert {key: str(formula) for key, formula in found.items()} == WRITTEN[name]


def test_arguments_that_are_known_decide_branches() -> None:
    sum_dims = registry["sum.SumBackward1"]
    text = str(derivative_formulas(sum_dims, {"dims": (0,), "keepdim": False})["self"])
    assert text == "unsqueeze(grad, 0).expand(self.shape)"
    assert str(derivative_formulas(registry["pow"], {"exponent": 2})["self"]) == (
        "grad * (2 * self ** 1)"
    )


LOCAL: list[tuple[str, dict[str, str], dict[str, Any], dict[str, str]]] = [
    ("mul", {"self": "c", "other": "d"}, {}, {"self": "d", "other": "c"}),
    ("sub", {"self": "a", "other": "b"}, {"alpha": 1}, {"self": "1", "other": "-1"}),
    ("add", {"self": "a", "other": "b"}, {"alpha": 3}, {"self": "1", "other": "3"}),
    ("exp", {"result": "y"}, {}, {"self": "y"}),
    ("div", {"self": "a", "other": "b"}, {}, {"self": "1 / b", "other": "-(a / b / b)"}),
    ("cos", {"self": "t"}, {}, {"self": "-sin(t)"}),
    ("pow", {"self": "x"}, {"exponent": 3}, {"self": "3 * x ** 2"}),
]


@pytest.mark.parametrize(("name", "names", "arguments", "expected"), LOCAL)
def test_local_derivatives_have_the_programs_names(
    name: str, names: dict[str, str], arguments: dict[str, Any], expected: dict[str, str]
) -> None:
    symbols = {"grad": Constant(1), **{key: Name(value) for key, value in names.items()}}
    found = derivative_formulas(registry[name], arguments)
    assert expected == {
        key: str(substituted(formula, symbols))
        for key, formula in found.items()
        if formula is not None
    }


def test_parentheses_keep_the_meaning() -> None:
    """Every tree of two operators over three numbers has the value of its text."""
    a, b, c = Name("a"), Name("b"), Name("c")
    values = {"a": 5.0, "b": 3.0, "c": 2.0}
    session = Session()
    for name, value in values.items():
        session.bind(name, value)
    operators = ["+", "-", "*", "/", "**", "<", "=="]
    for outer in operators:
        for inner in operators:
            for tree in (
                Operation(outer, Operation(inner, a, b), c),
                Operation(outer, c, Operation(inner, a, b)),
                Operation(outer, Operation("-", c), Operation("-", a)),
                Operation("-", Operation(outer, c, a)),
                Operation(outer, Operation("-", a), c),
            ):
                try:
                    expected = eval(_explicit(tree), dict(values))
                except ZeroDivisionError:
                    continue
                assert session.evaluate(Source("tree", text_of(tree))) == expected, text_of(tree)


def _explicit(symbol: Symbol) -> str:
    """The expression with all parentheses, written by Python's own rules."""
    if isinstance(symbol, Name):
        return symbol.name
    assert isinstance(symbol, Operation)
    parts = [f"({_explicit(part)})" for part in symbol.operands]
    return symbol.operator + parts[0] if len(parts) == 1 else symbol.operator.join(parts)


# --- the whole catalogue ------------------------------------------------------------------------

# Rules with loops over dimensions or outputs, which formulas of a line cannot hold, and those that
# say that there is no derivative.
_MOST_OPAQUE = 39


def test_every_rule_is_read() -> None:
    formulas = [
        (op, name, formula)
        for op in registry.values()
        for name, formula in derivative_formulas(op).items()
    ]
    # Entries and inputs that share a rule, such as the kinds of split, count once.
    opaque = {
        getattr(op.rules.get(name, op.joint), "__code__", op): op.name
        for op, name, formula in formulas
        if isinstance(formula, Opaque)
    }
    assert len(formulas) > 500
    assert len(opaque) <= _MOST_OPAQUE, " ".join(sorted(opaque.values()))
    assert all(text_of(formula) for _, _, formula in formulas if formula is not None)


# The kernel of prelu has one rule for both inputs, which calls another entry of two outputs; that
# of mvlgamma sums over a dimension of its own.
_OPAQUE_POINTWISE = {"_prelu_kernel", "mvlgamma"}


def test_every_pointwise_rule_is_a_formula() -> None:
    for op in registry.values():
        for formula in derivative_formulas(op).values():
            if op.pointwise and op.name not in _OPAQUE_POINTWISE:
                assert not isinstance(formula, Opaque), op.name


# --- the text computes what the rule computes ---------------------------------------------------

_OPERANDS = {
    "acosh": (1.5, 3.0), "polygamma": (0.5, 3.0), "log_sigmoid": (-2.0, 2.0),
    "clamp": (-2.0, 2.0), "sgn": (-2.0, 2.0), "abs": (-2.0, 2.0), "relu": (-2.0, 2.0),
}  # fmt: skip
_ARGUMENTS: dict[str, Any] = {
    "alpha": 1.5, "beta": 1.2, "threshold": 0.5, "scale": 1.1, "input_scale": 0.9, "value": 2.5,
    "approximate": "tanh", "n": 1, "lambd": 0.4, "negative_slope": 0.1, "lower": 0.1, "upper": 0.3,
    "min_val": 0.3, "max_val": 0.7, "rounding_mode": "floor", "decimals": 1, "nan": 0.0,
    "posinf": 1.0, "neginf": -1.0, "eps": None, "dtype": None,
}  # fmt: skip

POINTWISE = [name for name, op in registry.items() if op.pointwise and op.inputs]


@each_row("name", POINTWISE)
def test_text_computes_the_rules_number(name: str) -> None:
    op = registry[name]
    values = _values(op)
    for key, formula in derivative_formulas(op, _given(op)).items():
        if formula is None or isinstance(formula, Opaque) or not in_language(formula):
            continue
        rule = op.rules.get(key)
        if rule is None:
            continue
        number = rule(*(values[parameter] for parameter in parameters_of(rule)))
        found = _evaluated(text_of(formula), values)
        number, found = np.broadcast_arrays(number, found)
        np.testing.assert_allclose(found, number, rtol=1e-9)
    forward = forward_formula(op, _given(op))
    # The functions, unlike `%`, take no number in front of a tensor.
    if forward is not None and op.node_name != "NotImplemented":
        found = _evaluated(text_of(forward), values)
        np.testing.assert_allclose(found, values["result"], rtol=1e-9)


def test_few_pointwise_formulas_are_outside_the_language() -> None:
    """Those that call what has no name in a program are not compared above."""
    outside = {
        name
        for name in POINTWISE
        for formula in derivative_formulas(registry[name], _given(registry[name])).values()
        if formula is not None and not isinstance(formula, Opaque) and not in_language(formula)
    }
    assert len(outside) <= 10, outside


def _given(op: Op) -> dict[str, Any]:
    return {name: value for name, value in _ARGUMENTS.items() if name in _plain(op)}


def _plain(op: Op) -> list[str]:
    """The parameters that are arguments, not operands."""
    return [name for name in op.parameters if name not in op.tensors]


def _values(op: Op) -> dict[str, Any]:
    """Random operands, the arguments, the result and a gradient."""
    random = np.random.default_rng(7)
    low, high = _OPERANDS.get(op.name, (0.1, 0.9))
    values: dict[str, Any] = {}
    for name in op.parameters:
        if name == "condition":
            values[name] = np.array([True, False, True, False])
        elif name in op.tensors:
            values[name] = random.uniform(low, high, 4)
        else:
            values[name] = _ARGUMENTS.get(name, float(random.uniform(low, high)))
    values["result"] = op.forward(*(values[name] for name in op.parameters))
    values["grad"] = random.normal(size=4)
    return values


def _evaluated(text: str, values: dict[str, Any]) -> Any:
    session = Session()
    for name, value in values.items():
        session.bind(name, Tensor(value) if isinstance(value, np.ndarray) else value)
    found = session.evaluate(Source("formula", text))
    return np.asarray(found.array if isinstance(found, Tensor) else found)


def test_calls_of_the_trees_are_known_functions() -> None:
    assert in_language(Call("exp", (Name("x"),)))
    assert not in_language(Call("nothing_of_this_name", (Name("x"),)))
