"""Activations and softmax at their kinks and limits: as recorded from PyTorch."""

from __future__ import annotations

from tests.recorded import gradients, prints, raises, saves

OPERANDS = """
x = tensor([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0], requires_grad=True)
"""

VALUES = [
    ("F.relu(tensor([-0.0, nan]))", "tensor([-0., nan])"),
    ("F.relu(tensor([-1, 2]))", "tensor([0, 2])"),
    ("F.relu6(tensor([7, -7]))", "tensor([6, 0])"),
    ("F.threshold(tensor([1, 2]), 1.0, 9.0)", "tensor([9, 2])"),
    ("F.logsigmoid(tensor([-200.0, 200.0]))", "tensor([-200.,    0.])"),
    ("F.softplus(tensor([-200.0, 200.0]))", "tensor([  0., 200.])"),
    ("F.mish(tensor([-200.0, 200.0]))", "tensor([ -0., 200.])"),
    ("F.elu(tensor([-1.0], dtype=torch.float16))", "tensor([-0.6323], dtype=torch.float16)"),
    (
        "F.prelu(-torch.ones(2, 3), tensor([0.1, 0.2, 0.3]))",
        "tensor([[-0.1000, -0.2000, -0.3000],\n        [-0.1000, -0.2000, -0.3000]])",
    ),
    ("F.prelu(tensor(-2.0), tensor(0.1))", "tensor(-0.2000)"),
    ("F.glu(torch.arange(8.0).reshape(2, 4), 0)", "tensor([[0.0000, 0.9933, 1.9951, 2.9973]])"),
    ("F.softmax(tensor([1000.0, 1001.0]), 0)", "tensor([0.2689, 0.7311])"),
    ("F.softmax(tensor([[1.0, 2.0]]))", "tensor([[0.2689, 0.7311]])"),
    ("F.softmax(tensor([1.0, inf]), 0)", "tensor([nan, nan])"),
    ("F.softmax(tensor([0.0, -inf]), 0)", "tensor([1., 0.])"),
    ("torch.softmax(tensor(3.0), -1)", "tensor(1.)"),
    ("torch.softmax(torch.ones(0, 3), 0)", "tensor([], size=(0, 3))"),
    ("torch.softmax(tensor([1, 1]), 0, torch.float32)", "tensor([0.5000, 0.5000])"),
    (
        "torch.softmax(tensor([1.0, 2.0]), 0, dtype=torch.float64)",
        "tensor([0.2689, 0.7311], dtype=torch.float64)",
    ),
    ("torch.log_softmax(tensor([-1000.0, 1000.0]), 0)", "tensor([-2000.,     0.])"),
    ("torch.log_softmax(tensor(3.0), 0)", "tensor(0.)"),
    ("F.softmin(tensor([1.0, 2.0]), 0)", "tensor([0.7311, 0.2689])"),
    ("F.dropout(tensor([1.0, 2.0]), 0.5, training=False)", "tensor([1., 2.])"),
    ("F.dropout(tensor([1.0, 2.0]), 0.0)", "tensor([1., 2.])"),
    ("F.dropout(tensor([1.0, 2.0]), 1.0)", "tensor([0., 0.])"),
    ("F.relu(tensor([-1.0]), inplace=True)", "tensor([0.])"),
    ("torch.relu_(tensor([-1.0]))", "tensor([0.])"),
    ("tensor([0.2]).hardshrink()", "tensor([0.])"),
]
"""What each expression prints."""

GRADIENTS = [
    ("F.relu(x)", "tensor([0., 0., 0., 0., 1., 1., 1.])"),
    ("F.relu6(x)", "tensor([0., 0., 0., 0., 1., 1., 1.])"),
    ("F.leaky_relu(x, 0.1)", "tensor([0.1000, 0.1000, 0.1000, 0.1000, 1.0000, 1.0000, 1.0000])"),
    ("F.elu(x)", "tensor([0.0498, 0.3679, 0.6065, 1.0000, 1.0000, 1.0000, 1.0000])"),
    ("F.selu(x)", "tensor([0.0875, 0.6468, 1.0663, 1.7581, 1.0507, 1.0507, 1.0507])"),
    ("F.celu(x, 2.0)", "tensor([0.2231, 0.6065, 0.7788, 1.0000, 1.0000, 1.0000, 1.0000])"),
    ("F.hardtanh(x)", "tensor([0., 0., 1., 1., 1., 0., 0.])"),
    ("F.hardtanh(x, 0.0, 2.0)", "tensor([0., 0., 0., 0., 1., 1., 0.])"),
    ("F.hardsigmoid(x)", "tensor([0.0000, 0.1667, 0.1667, 0.1667, 0.1667, 0.1667, 0.0000])"),
    ("F.hardswish(x)", "tensor([0.0000, 0.1667, 0.3333, 0.5000, 0.6667, 0.8333, 1.0000])"),
    ("F.hardshrink(x)", "tensor([1., 1., 0., 0., 0., 1., 1.])"),
    ("F.softshrink(x)", "tensor([1., 1., 0., 0., 0., 1., 1.])"),
    ("F.softshrink(x, 0.0)", "tensor([1., 1., 1., 0., 1., 1., 1.])"),
    ("F.threshold(x, 1.0, 9.0)", "tensor([0., 0., 0., 0., 0., 0., 1.])"),
    ("F.rrelu(x)", "tensor([0.2292, 0.2292, 0.2292, 0.2292, 1.0000, 1.0000, 1.0000])"),
    ("F.softsign(x)", "tensor([0.0625, 0.2500, 0.4444, 1.0000, 0.4444, 0.2500, 0.0625])"),
    ("F.tanhshrink(x)", "tensor([0.9901, 0.5800, 0.2136, 0.0000, 0.2136, 0.5800, 0.9901])"),
    ("F.logsigmoid(x)", "tensor([0.9526, 0.7311, 0.6225, 0.5000, 0.3775, 0.2689, 0.0474])"),
    ("F.softplus(x, 2.0, 3.0)", "tensor([0.0025, 0.1192, 0.2689, 0.5000, 0.7311, 0.8808, 1.0000])"),
    ("F.silu(x)", "tensor([-0.0881,  0.0723,  0.2600,  0.5000,  0.7400,  0.9277,  1.0881])"),
    ("F.mish(x)", "tensor([-0.0934,  0.0592,  0.2895,  0.6000,  0.8864,  1.0490,  1.0211])"),
    ("F.gelu(x)", "tensor([-0.0119, -0.0833,  0.1325,  0.5000,  0.8675,  1.0833,  1.0119])"),
    (
        "F.gelu(x, approximate='tanh')",
        "tensor([-0.0116, -0.0830,  0.1326,  0.5000,  0.8674,  1.0830,  1.0116])",
    ),
    ("torch.sigmoid(x)", "tensor([0.0452, 0.1966, 0.2350, 0.2500, 0.2350, 0.1966, 0.0452])"),
    ("torch.tanh(x)", "tensor([0.0099, 0.4200, 0.7864, 1.0000, 0.7864, 0.4200, 0.0099])"),
]
"""The gradient of each expression in x, from a seed of ones."""

ERRORS = [
    ("F.relu(1.0)", "TypeError"),
    ("F.relu(tensor([True]))", "RuntimeError"),
    ("F.relu6(tensor([True]))", "RuntimeError"),
    ("F.elu(tensor([1]))", "NotImplementedError"),
    ("F.gelu(tensor([1]))", "NotImplementedError"),
    ("F.gelu(tensor([1.0]), approximate='exact')", "RuntimeError"),
    ("F.hardtanh(tensor([1.0]), 2.0, 1.0)", "ValueError"),
    ("F.softshrink(tensor([1.0]), -1.0)", "RuntimeError"),
    ("F.celu(tensor([1.0]), 0.0)", "RuntimeError"),
    ("F.glu(tensor([1.0]))", "RuntimeError"),
    ("F.glu(tensor(1.0))", "RuntimeError"),
    ("F.prelu(torch.ones(2, 3), torch.ones(2))", "RuntimeError"),
    ("F.prelu(torch.ones(2, 3), torch.ones(3, 1))", "RuntimeError"),
    ("F.prelu(torch.ones(2), torch.ones(1).double())", "RuntimeError"),
    ("F.rrelu(tensor([1.0]), 0.5, 0.2)", "RuntimeError"),
    ("F.dropout(tensor([1.0]), 2.0)", "ValueError"),
    ("torch.softmax(tensor([1, 2]), 0)", "NotImplementedError"),
    ("torch.softmax(tensor([1.0]), 1)", "IndexError"),
    ("torch.softmax(tensor([1.0]))", "TypeError"),
]
"""The class of the error that each expression raises."""


test_values = prints(VALUES, OPERANDS)
test_gradients = gradients(GRADIENTS, OPERANDS)
test_errors = raises(ERRORS, OPERANDS)


SAVED = [
    ("F.relu(y)", False, True),
    ("F.leaky_relu(y)", True, False),
    ("F.elu(y)", True, False),
    ("F.gelu(y)", True, False),
    ("F.silu(y)", True, False),
    ("F.softplus(y)", True, False),
    ("F.hardtanh(y)", True, False),
    ("F.threshold(y, 0.5, 0.0)", True, False),
    ("F.softsign(y)", True, False),
    ("torch.softmax(y, 0)", False, True),
    ("torch.log_softmax(y, 0)", False, True),
]
"""Whether a write to the operand y, and one to the result, spoils the gradient of each expression:
whether it saved them.
"""


test_saved = saves(SAVED, OPERANDS)
