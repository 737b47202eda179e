"""`gradcheck` passes right gradients and fails wrong ones; anomaly detection costs nothing when it
is off.
"""

from __future__ import annotations

import pytest

from gradcli.state import active
from tests.recorded import printed, raised

CHECK = """from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

x = torch.tensor([0.7, -1.3, 1.9], dtype=torch.float64, requires_grad=True)
y = torch.tensor([0.4, 2.1, -0.8], dtype=torch.float64, requires_grad=True)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        return input * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * {factor}


"""

RIGHT = [
    "gradcheck(torch.sin, x)",
    "gradcheck(lambda a, b: (a * b, a.sum()), (x, y))",
    "gradcheck(lambda a, b: a / b, (x, x))",
    "gradcheck(lambda a, k: a * k, (x, 3))",
    "gradcheck(lambda a: (a * 2, a.argmax()), x)",
    "gradcheck(Scaled.apply, x)",
    "gradgradcheck(lambda a, b: (a**2 * b).sum(), (x, y))",
    "gradgradcheck(lambda a, b: (a * b, a.sin()), (x, x))",
    "gradgradcheck(lambda a: F.softmax(a, 0), x, y)",
]

WRONG = [
    "gradcheck(lambda a: a.detach() * a, x)",
    "gradcheck(lambda a: a.detach() * 2, x)",
    "gradcheck(lambda a, b: (a * b, a * b.detach()), (x, y))",
    "gradgradcheck(lambda a: a**2 * a.detach(), x)",
]


@pytest.mark.parametrize("expression", RIGHT)
def test_right_gradients_pass(expression: str) -> None:
    assert printed(f"{CHECK.format(factor=2)}print({expression})") == "True"


@pytest.mark.parametrize("expression", WRONG)
def test_wrong_gradients_fail(expression: str) -> None:
    program = CHECK.format(factor=2)
    assert raised(program + expression) == "GradcheckError"
    quiet = expression[:-1] + ", raise_exception=False)"
    assert printed(f"{program}print({quiet})") == "False"


@pytest.mark.parametrize("factor", ["1.99", "-2", "2.01"])
def test_a_slightly_wrong_rule_fails(factor: str) -> None:
    assert raised(CHECK.format(factor=factor) + "gradcheck(Scaled.apply, x)") == "GradcheckError"


def test_nothing_to_check() -> None:
    assert raised(CHECK.format(factor=2) + "gradcheck(torch.sin, x.detach())") == "ValueError"


def test_anomaly_detection_leaves_no_listener_behind() -> None:
    before = active.state.recorder
    program = """
with torch.autograd.detect_anomaly():
    with torch.autograd.graph.saved_tensors_hooks(lambda a: a, lambda a: a):
        v.exp().sum().backward()
print(torch.is_anomaly_enabled(), v.grad)
"""
    assert printed(program) == "False tensor([2.7183, 7.3891])"
    assert active.state.recorder is before


def test_anomaly_names_the_operation() -> None:
    program = """
torch.autograd.set_detect_anomaly(True)
y = (v - v).sqrt()
(y * 0).sum().backward()
"""
    assert raised(program) == "RuntimeError"
    assert raised(program.replace("True", "True, check_nan=False")) is None
