"""`torch.autograd.functional` and forward mode: Jacobians and Hessians against central differences,
products against both, and what is refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.autograd.engine.backward import grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.library.torch.func.forward import pushforward
from tests.op_table.check import differentiable, leaf
from tests.op_table.rows import Row
from tests.recorded import printed, raised
from tests.rows import each_row
from tests.running import run
from tests.test_gradients import ROWS, Point

VECTOR_FUNCTIONS = [
    "x ** 3",
    "x.sin() * x.flip(0)",
    "A @ x",
    "torch.outer(x, x)",
    "F.softmax(x, 0)",
    "x.cumsum(0) * x[0]",
    "torch.cat([x[1:], x.exp()])",
    "torch.stack([x, x.tanh()])",
    "F.layer_norm(x, (3,))",
    "torch.sort(x).values ** 2",
    "x.clone().mul_(x).add_(x.sum())",
    "torch.where(x > 0, x ** 2, x.exp())",
    "x.prod() / (1 + x ** 2)",
    "x.expand(2, 3).clone()",
    "x[[0, 2, 0]] * 2",
    "torch.maximum(x, A[0] / 3)",
]

SCALAR_FUNCTIONS = [
    "(x ** 3).sum()",
    "x.prod()",
    "(x @ x) ** 2",
    "torch.logsumexp(x, 0)",
    "x.norm()",
    "(A @ x).tanh().sum()",
    "F.softmax(x, 0)[1]",
    "(x.cumsum(0) ** 2).mean()",
    "x.var()",
    "(x[0] * x[1:]).sum().exp()",
]

SETUP = """import torch
import torch.nn.functional as F
from torch.func import hessian as func_hessian
from torch.func import jacfwd, jacrev, jvp
from torch.autograd.functional import hessian, hvp, jacobian, vhp
from torch.autograd.functional import jvp as double_vjp

torch.set_default_dtype(torch.float64)
x = torch.tensor([0.7, -1.3, 1.9])
v = torch.tensor([0.3, -1.1, 0.6])
A = torch.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.5]])


def f(x):
    return {function}


"""

STEP = 1e-5


def _values(function: str, *expressions: str) -> list[np.ndarray]:
    """The values of tensor expressions in a program that defines f."""
    lines = [f"value{n} = {expression}" for n, expression in enumerate(expressions)]
    outcome = run(SETUP.replace("{function}", function) + "\n".join(lines) + "\n")
    assert outcome.error is None, outcome.error
    found = []
    for number in range(len(expressions)):
        value = outcome.session.values[f"value{number}"]
        assert isinstance(value, Tensor)
        found.append(np.asarray(value.array))
    return found


def _differences(function: str, of: str) -> np.ndarray:
    """Central differences of an expression in f and x, with the direction as the last dimension."""
    moves = [f"x + {STEP} * torch.eye(3)[{i}]" for i in range(3)]
    moves += [f"x - {STEP} * torch.eye(3)[{i}]" for i in range(3)]
    values = _values(function, *(of.replace("(x)", f"({move})") for move in moves))
    pairs = zip(values[:3], values[3:], strict=True)
    return np.stack([(plus - minus) / (2 * STEP) for plus, minus in pairs], axis=-1)


@pytest.mark.parametrize("function", VECTOR_FUNCTIONS)
def test_jacobians(function: str) -> None:
    expected = _differences(function, "f(x)")
    ways = [
        "jacobian(f, x)",
        "jacobian(f, x, vectorize=True, strategy='forward-mode')",
        "jacrev(f)(x)",
        "jacfwd(f)(x)",
    ]
    for found in _values(function, *ways):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    direction = np.array([0.3, -1.1, 0.6])
    for found in _values(function, "jvp(f, (x,), (v,))[1]", "double_vjp(f, x, v)[1]"):
        np.testing.assert_allclose(found, expected @ direction, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", SCALAR_FUNCTIONS)
def test_hessians(function: str) -> None:
    expected = _differences(function, "jacobian(f, (x))")
    ways = [
        "hessian(f, x)",
        "func_hessian(f)(x)",
        "hessian(f, x, vectorize=True, outer_jacobian_strategy='forward-mode')",
        "jacrev(jacrev(f))(x)",
        "jacrev(jacfwd(f))(x)",
        "jacfwd(jacfwd(f))(x)",
    ]
    for found in _values(function, *ways):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    direction = np.array([0.3, -1.1, 0.6])
    for found in _values(function, "hvp(f, x, v)[1]", "vhp(f, x, v)[1]"):
        np.testing.assert_allclose(found, expected @ direction, rtol=1e-5, atol=1e-7)


@each_row("row", [row for row in ROWS if row.order], every=3)
def test_forward_mode_is_the_transpose_of_backward(row: Row) -> None:
    """`u · (J v)` is `(u J) · v` for every op of the catalogue."""
    point = Point(row)
    inputs = [leaf(array) for array in point.arrays]
    outputs = differentiable(point.function(*inputs))
    draw = point.generator.normal
    u = [draw(size=output.array.shape).astype(output.array.dtype) for output in outputs]
    v = [draw(size=tensor.array.shape).astype(tensor.array.dtype) for tensor in inputs]
    seeds, tangents = ([Tensor(array[()]) for array in arrays] for arrays in (u, v))
    pulled = grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True)
    try:
        pushed = pushforward(outputs, inputs, tangents, create_graph=False)
    except GradcliError as error:
        # PyTorch has no forward mode for some ops whose rule could be transposed.
        if error.code != "E409" or (row.order == 2 and error.raises != "NotImplementedError"):
            raise
        return
    left = sum(np.vdot(seed, moved.array).real for seed, moved in zip(u, pushed, strict=True))
    right = sum(
        np.vdot(tangent, gradient.array).real
        for tangent, gradient in zip(v, pulled, strict=True)
        if gradient is not None
    )
    np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-9)


def test_forward_mode_of_a_rule_with_a_logarithm() -> None:
    """The rule of logcumsumexp has no derivative at a gradient of 0, though it is linear."""
    function = "torch.logcumsumexp(x, 0)"
    (found,) = _values(function, "jacfwd(f)(x)")
    np.testing.assert_allclose(found, _differences(function, "f(x)"), rtol=1e-6, atol=1e-8)


def test_forward_mode_crosses_dtypes() -> None:
    program = """
from torch.func import jvp
x = torch.tensor([1.0, 2.0])
y, t = jvp(lambda a: a.double() * a + a.half(), (x,), (torch.tensor([0.5, -1.0]),))
print(t)
"""
    assert printed(program) == "tensor([ 1.5000, -5.0000], dtype=torch.float64)"


AF = "from torch.autograd.functional import *\nimport torch.autograd.forward_ad as fwAD\n"

# What PyTorch raises.
ERRORS = {
    "vjp(lambda a: a, v)": "RuntimeError",
    "vjp(lambda a: a, v, m)": "RuntimeError",
    "vjp(lambda a: 3, v)": "TypeError",
    "vjp(lambda a: a, 3)": "TypeError",
    "jvp(lambda a: a, v)": "RuntimeError",
    "hvp(lambda a: a, v, v)": "RuntimeError",
    "hessian(lambda a: a, v)": "RuntimeError",
    "hessian(lambda a: (a, a), s)": "RuntimeError",
    "hessian(lambda a: a.sum(), v, strict=True)": "RuntimeError",
    "jacobian(lambda a: a.detach(), v, strict=True)": "RuntimeError",
    "jacobian(lambda a: a, v, strategy='both')": "AssertionError",
    "jacobian(lambda a: a, v, strategy='forward-mode')": "NotImplementedError",
    "jacobian(lambda a: a, v, strict=True, vectorize=True)": "RuntimeError",
    "fwAD.make_dual(v, v)": "RuntimeError",
    "fwAD.exit_dual_level()": "RuntimeError",
    "with fwAD.dual_level():\n    fwAD.make_dual(v, m)": "RuntimeError",
    "with fwAD.dual_level():\n    fwAD.enter_dual_level()": "RuntimeError",
    "with fwAD.dual_level():\n    fwAD.make_dual(torch.tensor(1), torch.tensor(1))": "ValueError",
}


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program: str) -> None:
    assert raised(AF + program) == ERRORS[program]
