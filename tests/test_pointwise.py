"""Pointwise functions and choices at the points where they are decided by convention: as recorded
from PyTorch.
"""

from __future__ import annotations

from tests.recorded import gradients, prints, raises, saves

OPERANDS = """
x = tensor([-1.0, 0.0, 1.0, nan], requires_grad=True)
"""

VALUES = [
    ("torch.add(tensor([1., 2.]), 3, alpha=2)", "tensor([7., 8.])"),
    ("tensor([1, 2]).sub(1, alpha=2)", "tensor([-1,  0])"),
    ("torch.rsub(tensor([1., 2.]), 2, alpha=0.5)", "tensor([1.5000, 1.0000])"),
    ("torch.sign(tensor([nan, -0.0, -3.0]))", "tensor([ 0.,  0., -1.])"),
    ("torch.round(tensor([0.5, 1.5, 2.5, -0.5]))", "tensor([0., 2., 2., -0.])"),
    ("torch.round(tensor([1.25, -0.349]), decimals=1)", "tensor([ 1.2000, -0.3000])"),
    ("torch.round(tensor([149.0, 151.0]), decimals=-2)", "tensor([100., 200.])"),
    ("torch.frac(tensor([-1.5, 2.25]))", "tensor([-0.5000,  0.2500])"),
    (
        "torch.nan_to_num(tensor([nan, inf, -inf]))",
        "tensor([ 0.0000e+00,  3.4028e+38, -3.4028e+38])",
    ),
    ("torch.nan_to_num(tensor([nan, inf, -inf]), 1.0, 2.0, 3.0)", "tensor([1., 2., 3.])"),
    ("torch.sinc(tensor([0.0, 0.5, 1.5]))", "tensor([ 1.0000,  0.6366, -0.2122])"),
    ("torch.xlogy(tensor([0.0, 0.0, 2.0]), tensor([0.0, nan, 0.0]))", "tensor([0., nan, -inf])"),
    ("torch.logit(tensor([-0.1, 0.0, 1.0]))", "tensor([nan, -inf, inf])"),
    ("torch.logit(tensor([-0.1, 0.9]), eps=0.2)", "tensor([-1.3863,  1.3863])"),
    ("torch.digamma(tensor([0.0, -0.0, 1.0]))", "tensor([   -inf,     inf, -0.5772])"),
    ("torch.sqrt(tensor([4, 9]))", "tensor([2., 3.])"),
    ("torch.sigmoid(tensor([-200.0, 200.0]))", "tensor([0., 1.])"),
    ("torch.logaddexp(tensor(1000.0), tensor(1000.0))", "tensor(1000.6932)"),
    ("torch.special.expit(tensor(0.0))", "tensor(0.5000)"),
    (
        "torch.exp(tensor([0.0, 1.0], dtype=torch.float16))",
        "tensor([1.0000, 2.7188], dtype=torch.float16)",
    ),
    (
        "torch.sigmoid(tensor([0.5, -1.0], dtype=torch.float16))",
        "tensor([0.6226, 0.2690], dtype=torch.float16)",
    ),
    ("torch.deg2rad(tensor([90], dtype=torch.int32))", "tensor([1.5708])"),
    ("torch.float_power(tensor([2, 3]), 0.5)", "tensor([1.4142, 1.7321], dtype=torch.float64)"),
    ("torch.copysign(tensor([1, 2]), -1)", "tensor([-1., -2.])"),
    ("torch.abs(tensor([-128], dtype=torch.int8))", "tensor([-128], dtype=torch.int8)"),
    ("torch.abs(tensor([3 + 4j]))", "tensor([5.])"),
    ("torch.sgn(tensor([3 + 4j, 0j]))", "tensor([0.6000+0.8000j, 0.0000+0.0000j])"),
    ("torch.maximum(tensor([1.0, nan]), tensor([nan, 0.0]))", "tensor([nan, nan])"),
    ("torch.fmax(tensor([1.0, nan]), tensor([nan, nan]))", "tensor([1., nan])"),
    ("torch.clamp(tensor([-1.0, 0.5, nan]), 0, 1)", "tensor([0.0000, 0.5000,    nan])"),
    ("torch.clamp(tensor([1.0, 5.0]), 3, 2)", "tensor([2., 2.])"),
    ("torch.clamp(tensor([1, 5]), 2.5, 3)", "tensor([2.5000, 3.0000])"),
    ("torch.clamp(tensor([1.0, 5.0]), tensor(2.0), 3)", "tensor([2., 3.])"),
    ("torch.heaviside(tensor([-1.0, 0.0, nan]), tensor(0.5))", "tensor([0.0000, 0.5000, 0.0000])"),
    (
        "torch.isclose(tensor([1.0, nan, inf]), tensor([1.000001, nan, inf]))",
        "tensor([ True, False,  True])",
    ),
    ("torch.isclose(tensor([nan]), tensor([nan]), equal_nan=True)", "tensor([True])"),
    ("torch.allclose(tensor([1.0, 2.0]), tensor([1.0]))", "False"),
    ("torch.equal(tensor([1.0]), tensor([1]))", "True"),
    ("torch.equal(tensor([1.0]), tensor(1.0))", "False"),
    ("torch.where(tensor([True, False]), 1, 2.5)", "tensor([1.0000, 2.5000])"),
    (
        "torch.where(tensor([True, False]), tensor([1, 2]), tensor([0.5, 0.5]))",
        "tensor([1.0000, 0.5000])",
    ),
    ("torch.where(tensor([[0, 1], [2, 0]]))", "(tensor([0, 1]), tensor([1, 0]))"),
    ("tensor([1.0, 2.0]).where(tensor([True, False]), 0.0)", "tensor([1., 0.])"),
    ("tensor([1.0]) == 'a'", "False"),
    ("tensor([1.0]) != None", "True"),
    ("3 > tensor([1, 5])", "tensor([ True, False])"),
    (
        "tensor([6]) & 3, tensor([6]) | 1, tensor([6]) ^ 2, tensor([6]) << 1, ~tensor([True])",
        "tensor([2]) tensor([7]) tensor([4]) tensor([12]) tensor([False])",
    ),
    ("torch.logical_and(tensor([1.0, 0.0]), tensor([True, True]))", "tensor([ True, False])"),
    ("torch.signbit(tensor([-0.0, 0.0, -2.0]))", "tensor([ True, False,  True])"),
    ("torch.isposinf(tensor([inf, -inf, nan]))", "tensor([ True, False, False])"),
    ("torch.positive(tensor([1.0]))", "tensor([1.])"),
    ("torch.fix(tensor([-1.5]))", "tensor([-1.])"),
    ("torch.square(tensor([3]))", "tensor([9])"),
    ("tensor([-0.0, 0.0, nan, -1.0]).clamp(min=0.0).tolist()", "[-0.0, 0.0, nan, 0.0]"),
    ("tensor([-0.0, 0.0, nan, 1.0]).clamp(max=0.0).tolist()", "[-0.0, 0.0, nan, 0.0]"),
    ("tensor([-0.0, 0.0, -1.0]).clamp(min=-0.0).tolist()", "[-0.0, 0.0, -0.0]"),
    ("tensor([-0.0, 0.0, -1.0], dtype=torch.float16).clamp(min=0.0).tolist()", "[-0.0, 0.0, 0.0]"),
    ("tensor([-0.0, 0.0]).clamp_min(0.0).tolist()", "[-0.0, 0.0]"),
    ("tensor([-0.0, 0.0]).clamp(0.0, 1.0).tolist()", "[-0.0, 0.0]"),
    ("torch.clamp_(tensor([-0.0, 0.0]), max=0.0).tolist()", "[-0.0, 0.0]"),
    (
        "torch.fmax(tensor([-0.0, 0.0, nan] * 9), tensor([0.0, -0.0, -0.0] * 9))[:4].tolist()",
        "[-0.0, 0.0, -0.0, -0.0]",
    ),
    (
        "torch.fmin(tensor([-0.0, 0.0, nan] * 9), tensor([0.0, -0.0, -0.0] * 9))[-4:].tolist()",
        "[-0.0, -0.0, 0.0, -0.0]",
    ),
    (
        ("torch.isclose(tensor([complex(inf, 0), complex(inf, 1), 1j]), tensor(1 + 1j), inf, 0.0)"),
        "tensor([False, False,  True])",
    ),
    (
        (
            "torch.isclose(tensor([complex(inf, 0), complex(nan, inf)]), tensor(complex(inf, "
            "0)), 0.0, inf)"
        ),
        "tensor([ True, False])",
    ),
    (
        "torch.isclose(tensor([inf, -inf, 1.0]), tensor(2.0), 0.0, inf)",
        "tensor([False, False,  True])",
    ),
    ("tensor([True, False]).add(tensor([True, False]), alpha=True)", "tensor([ True, False])"),
    ("tensor([1, 2]).to(torch.int64, False, True)", "tensor([1, 2])"),
]
"""What each expression prints."""

GRADIENTS = [
    ("x.abs()", "tensor([-1.,  0.,  1.,  0.])"),
    ("x.sgn()", "tensor([0., 0., 0., 0.])"),
    ("x.sqrt()", "tensor([   nan,    inf, 0.5000,    nan])"),
    ("x.rsqrt()", "tensor([    nan,    -inf, -0.5000,     nan])"),
    ("x.log()", "tensor([-1., inf,  1., nan])"),
    ("x.square()", "tensor([-2.,  0.,  2., nan])"),
    ("torch.sinc(x)", "tensor([ 1.,  0., -1., nan])"),
    ("torch.xlogy(x, x)", "tensor([nan, nan, 1., nan])"),
    ("torch.atan2(x, x)", "tensor([0., 0., 0., nan])"),
    ("torch.hypot(x, x)", "tensor([-1.4142,     nan,  1.4142,     nan])"),
    ("torch.copysign(x, -1.0)", "tensor([ 1.,  0., -1., nan])"),
    ("torch.logit(x)", "tensor([nan, inf, inf, nan])"),
    ("torch.nan_to_num(x)", "tensor([1., 1., 1., 0.])"),
    ("x.frac()", "tensor([1., 1., 1., 1.])"),
    ("x.floor()", "tensor([0., 0., 0., 0.])"),
    ("x.round(decimals=1)", "tensor([0., 0., 0., 0.])"),
    ("x.clamp(0, 1)", "tensor([0., 1., 1., 0.])"),
    ("x.clamp(min=0)", "tensor([0., 1., 1., 0.])"),
    ("x.clamp(1, 0)", "tensor([0., 0., 0., 0.])"),
    ("torch.clamp(x, tensor(0.0), tensor(1.0))", "tensor([0., 1., 1., 0.])"),
    ("torch.clamp(x, max=tensor(0.0))", "tensor([1., 1., 0., 0.])"),
    ("x.clamp_min(0)", "tensor([0., 1., 1., 0.])"),
    ("x.clamp_max(tensor(0.0))", "tensor([1., 1., 0., 0.])"),
    ("torch.maximum(x, tensor(0.0))", "tensor([0.0000, 0.5000, 1.0000, 1.0000])"),
    ("torch.minimum(x, x * 2)", "tensor([2.0000, 1.5000, 1.0000, 3.0000])"),
    ("torch.fmax(x, tensor(0.0))", "tensor([0., 1., 1., 0.])"),
    ("torch.fmin(x, tensor(0.0))", "tensor([1., 1., 0., 0.])"),
    ("torch.where(x > 0, x.sqrt(), 0.0)", "tensor([   nan,    nan, 0.5000,    nan])"),
    ("torch.lerp(x, x * 2, 0.25)", "tensor([1.2500, 1.2500, 1.2500, 1.2500])"),
    ("torch.addcdiv(x, x, x + 1)", "tensor([   inf, 2.0000, 1.2500,    nan])"),
]
"""The gradient of each expression in x, from a seed of ones."""

ERRORS = [
    ("torch.exp(1.0)", "TypeError"),
    ("torch.exp()", "TypeError"),
    ("torch.exp(tensor([1.0]), 2)", "TypeError"),
    ("torch.exp('a')", "TypeError"),
    ("torch.maximum(tensor([1.0]), 2.0)", "TypeError"),
    ("torch.atan2(1.0, tensor([1.0]))", "TypeError"),
    ("torch.hypot(tensor([3]), tensor([4]))", "NotImplementedError"),
    ("torch.frac(tensor([1]))", "NotImplementedError"),
    ("torch.floor(tensor([True]))", "NotImplementedError"),
    ("torch.abs(tensor([True]))", "NotImplementedError"),
    ("torch.sign(tensor([1j]))", "NotImplementedError"),
    ("torch.round(tensor([15]), decimals=-1)", "NotImplementedError"),
    ("torch.clamp(tensor([1.0]))", "RuntimeError"),
    ("torch.clamp(tensor([1.0]), 'a')", "TypeError"),
    ("torch.clamp(tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]))", "RuntimeError"),
    ("torch.where(tensor([1.0]), 1, 2)", "RuntimeError"),
    ("torch.where(True, 1, 2)", "TypeError"),
    ("torch.where(tensor([True, False]), tensor([1.0, 2.0, 3.0]), 1.0)", "RuntimeError"),
    ("torch.lerp(tensor([1.0]), tensor([2.0], dtype=torch.float64), 0.5)", "RuntimeError"),
    ("torch.lerp(tensor([1]), tensor([2]), 0.5)", "NotImplementedError"),
    ("torch.addcdiv(tensor([1]), tensor([2]), tensor([3]))", "RuntimeError"),
    ("torch.isclose(tensor([1.0]), tensor([1]))", "RuntimeError"),
    ("torch.isclose(tensor([1.0]), tensor([1.0]), rtol=-1.0)", "RuntimeError"),
    ("torch.heaviside(tensor([1.0]), tensor([1]))", "RuntimeError"),
    ("torch.polygamma(-1, tensor([1.0]))", "RuntimeError"),
    ("torch.xlogy(2, 3)", "TypeError"),
    ("torch.float_power(2, 3)", "TypeError"),
    ("torch.positive(tensor([True]))", "RuntimeError"),
    ("tensor([1.0]) & tensor([1.0])", "NotImplementedError"),
    ("~tensor([1.0])", "TypeError"),
    ("tensor([1.0]) < 'a'", "TypeError"),
    ("torch.logical_and(tensor([1.0]), 1.0)", "TypeError"),
    ("torch.eq(1.0, tensor([1.0]))", "TypeError"),
    ("torch.exp(tensor([1.0]) + tensor([1.0, 2.0])) + tensor([1.0, 2.0, 3.0])", "RuntimeError"),
    ("tensor([1, 2]).exp_()", "RuntimeError"),
]
"""The class of the error that each expression raises."""


test_values = prints(VALUES, OPERANDS)
test_gradients = gradients(GRADIENTS, OPERANDS)
test_errors = raises(ERRORS, OPERANDS)


SAVED = [
    ("torch.exp(y)", False, True),
    ("torch.expm1(y)", False, True),
    ("torch.log(y)", True, False),
    ("torch.log1p(y)", True, False),
    ("torch.sqrt(y)", False, True),
    ("torch.rsqrt(y)", False, True),
    ("torch.square(y)", True, False),
    ("torch.sin(y)", True, False),
    ("torch.cos(y)", True, False),
    ("torch.tan(y)", False, True),
    ("torch.asin(y)", True, False),
    ("torch.atan(y)", True, False),
    ("torch.tanh(y)", False, True),
    ("torch.sigmoid(y)", False, True),
    ("torch.abs(y)", True, False),
    ("torch.sign(y)", False, False),
    ("torch.floor(y)", False, False),
    ("torch.frac(y)", False, False),
    ("torch.erf(y)", True, False),
    ("torch.maximum(y, y * 2)", True, False),
    ("torch.where(y > 0.5, y, 0.0)", False, False),
    ("y.clamp(0, 1)", True, False),
    ("torch.lerp(y, x, 0.5)", False, False),
]
"""Whether a write to the operand y, and one to the result, spoils the gradient of each expression:
whether it saved them.
"""


test_saved = saves(SAVED, OPERANDS)
