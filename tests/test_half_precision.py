"""float16 and bfloat16: results keep the dtype, and are rounded as PyTorch 2.13 rounds them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.exactness import Printed
from tests.running import run

SETUP = """
x = torch.tensor([0.3, -2.1, 1.345], dtype=torch.DTYPE)
y = torch.tensor([-0.7, 0.45, 1.9], dtype=torch.DTYPE)
"""

BACKWARD = """
x.requires_grad_()
o = EXPRESSION
s = torch.tensor([0.37, -1.7, 0.9], dtype=torch.DTYPE)
(o * s[:1] if o.dim() == 0 else o * s).sum().backward()
print(x.grad.tolist())
"""

BFLOAT16 = {
    "x * 2.5": "[ 0.7500, -5.2500, 3.3594]",
    "x + 0.1": "[ 0.4004, -1.9922, 1.4453]",
    "x.clamp(-1.01, 1.3)": "[ 0.3008, -1.0078, 1.2969]",
    "torch.lerp(x, x * 2, 0.3)": "[ 0.3906, -2.7188, 1.7500]",
    "torch.addcmul(x, x, x, value=0.3)": "[ 0.3281, -0.7773, 1.8828]",
    "F.huber_loss(x, torch.ones_like(x), reduction='none')": "[0.2441, 2.5938, 0.0591]",
    "torch.erf(x)": "[ 0.3301, -0.9961, 0.9414]",
    "x.var()": "3.1094",
    "x.sigmoid()": "[0.5742, 0.1099, 0.7930]",
    "x.exp()": "[1.3516, 0.1230, 3.8281]",
    "torch.sub(x, x, alpha=0.3)": "[ 0.2109, -1.4688, 0.9375]",
    "torch.trapezoid(x, dx=0.1)": "-0.1270",
}


@pytest.mark.parametrize("expression", BFLOAT16)
def test_bfloat16(expression: str) -> None:
    outcome = run(f"x = torch.tensor([0.3, -2.1, 1.345]).bfloat16(); print({expression})")
    assert outcome.error is None
    assert BFLOAT16[expression] in " ".join(outcome.stdout.split())
    assert "dtype=torch.bfloat16" in outcome.stdout


def test_gradients_keep_the_dtype() -> None:
    for name in ("bfloat16", "half"):
        outcome = run(
            f"x = torch.tensor([0.3, -2.1]).{name}().requires_grad_()\n"
            "y = (F.silu(x) * x.exp()).var()\ny.backward()\n"
            "print(y.dtype == x.grad.dtype == x.dtype)"
        )
        assert outcome.stdout == "True\n"


def test_products_refuse_half_beside_wider() -> None:
    outcome = run("h = torch.ones(2, 2).half(); torch.addmm(h, h.float(), h.float())")
    assert outcome.error is not None
    assert outcome.error.raises == "RuntimeError"


# What PyTorch 2.13 gives: in bfloat16, in float16.
VALUES: dict[str, Any] = {
    "x * 0.3": [
        [0.09033203125, -0.62890625, 0.40234375],
        [0.09002685546875, -0.6298828125, 0.4033203125],
    ],
    "x / 0.3": [[1.0, -6.96875, 4.46875], [1.0, -7.0, 4.484375]],
    "0.3 / x": [
        [1.0, -0.1435546875, 0.2236328125],
        [0.99951171875, -0.1429443359375, 0.22314453125],
    ],
    "x + 0.3": [[0.6015625, -1.796875, 1.640625], [0.60009765625, -1.7998046875, 1.64453125]],
    "x * torch.tensor(0.3)": [
        [0.09033203125, -0.62890625, 0.40234375],
        [0.09002685546875, -0.6298828125, 0.4033203125],
    ],
    "torch.tensor(0.3) * x": [
        [0.09033203125, -0.62890625, 0.404296875],
        [0.09002685546875, -0.6298828125, 0.403564453125],
    ],
    "x - y * 0.7": [[0.7890625, -2.40625, 0.015625], [0.7900390625, -2.4140625, 0.0146484375]],
    "x ** 3": [[0.0272216796875, -9.1875, 2.421875], [0.027008056640625, -9.2578125, 2.431640625]],
    "x.abs() ** -2": [
        [11.0625, 0.228515625, 0.5546875],
        [11.109375, 0.226806640625, 0.55322265625],
    ],
    "x.abs().rsqrt()": [
        [1.828125, 0.69140625, 0.86328125],
        [1.8251953125, 0.68994140625, 0.86279296875],
    ],
    "x.sigmoid()": [
        [0.57421875, 0.10986328125, 0.79296875],
        [0.57421875, 0.109130859375, 0.79345703125],
    ],
    "torch.softmax(x, 0)": [
        [0.25390625, 0.023193359375, 0.72265625],
        [0.254150390625, 0.0230712890625, 0.72265625],
    ],
    "torch.softmax(x.view(3, 1), 0).view(3)": [
        [0.25390625, 0.0233154296875, 0.72265625],
        [0.254150390625, 0.0230712890625, 0.72265625],
    ],
    "x.log_softmax(0)": [
        [-1.3671875, -3.765625, -0.32421875],
        [-1.369140625, -3.76953125, -0.32470703125],
    ],
    "x.logsumexp(0)": [1.671875, 1.669921875],
    "x.prod()": [-0.84375, -0.84716796875],
    "x.cumsum(0)": [
        [0.30078125, -1.796875, -0.44921875],
        [0.300048828125, -1.7998046875, -0.454833984375],
    ],
    "x.norm()": [2.5, 2.51171875],
    "x.std()": [1.765625, 1.765625],
    "F.mse_loss(x, y, reduction='none')": [
        [1.0, 6.5, 0.30859375],
        [1.0, 6.49609375, 0.308837890625],
    ],
    "F.mse_loss(x, y)": [2.609375, 2.6015625],
    "F.huber_loss(x, y, reduction='none')": [
        [0.5, 2.046875, 0.154296875],
        [0.5, 2.048828125, 0.1544189453125],
    ],
    "F.smooth_l1_loss(x, y, reduction='none')": [
        [0.5, 2.046875, 0.154296875],
        [0.5, 2.048828125, 0.1544189453125],
    ],
    "F.huber_loss(x, y)": [0.8984375, 0.90087890625],
    "F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction='none')": [
        [0.7578125, 1.390625, 0.404296875],
        [0.7548828125, 1.3984375, 0.40625],
    ],
    "F.cross_entropy(x, y.softmax(0))": [1.0, 1.0009765625],
    "F.nll_loss(x.view(3, 1), torch.tensor([0, 0, 0]))": [0.1494140625, 0.151611328125],
    "torch.xlogy(x.abs(), 0.3)": [
        [-0.361328125, -2.515625, -1.6171875],
        [-0.361328125, -2.52734375, -1.619140625],
    ],
    "torch.special.entr(x.abs())": [
        [0.361328125, -1.546875, -0.396484375],
        [0.361328125, -1.5576171875, -0.398193359375],
    ],
    "torch.addr(torch.outer(x, y), x, y, beta=0.3, alpha=0.7)[0]": [
        [-0.208984375, 0.134765625, 0.5703125],
        [-0.210205078125, 0.135009765625, 0.5703125],
    ],
    "torch.lerp(x, y, 0.3)": [
        [0.000782012939453125, -1.328125, 1.5078125],
        [-2.4437904357910156e-05, -1.3349609375, 1.51171875],
    ],
    "torch.addcmul(x, y, y, value=0.3)": [
        [0.447265625, -2.03125, 2.421875],
        [0.447021484375, -2.0390625, 2.427734375],
    ],
    "F.batch_norm(x.view(3, 1), None, None, training=True).view(3)": [
        [0.3125, -1.3515625, 1.0390625],
        [0.313232421875, -1.3505859375, 1.037109375],
    ],
    "torch.mvlgamma(x.abs() + 1, 2)": [
        [0.62109375, 1.703125, 0.6953125],
        [0.6162109375, 1.716796875, 0.6953125],
    ],
    "torch.copysign(x, -2.5)": [
        [-0.30078125, -2.09375, -1.34375],
        [-0.300048828125, -2.099609375, -1.3447265625],
    ],
    "torch.round(x, decimals=1)": [
        [0.30078125, -2.09375, 1.296875],
        [0.300048828125, -2.099609375, 1.2998046875],
    ],
}

GRADIENTS: dict[str, Any] = {
    "x.sigmoid()": [
        [0.09033203125, -0.1669921875, 0.1474609375],
        [0.09051513671875, -0.165283203125, 0.1474609375],
    ],
    "F.silu(x)": [
        [0.2392578125, 0.1611328125, 0.91015625],
        [0.23974609375, 0.1614990234375, 0.912109375],
    ],
    "F.mish(x)": [
        [0.2890625, 0.1884765625, 0.9765625],
        [0.289794921875, 0.1888427734375, 0.97705078125],
    ],
    "F.logsigmoid(x)": [
        [0.1572265625, -1.515625, 0.1865234375],
        [0.157470703125, -1.5146484375, 0.18603515625],
    ],
    "F.glu(x.repeat(2))": [
        [0.2392578125, 0.162109375, 0.91015625],
        [0.2396240234375, 0.16162109375, 0.912109375],
    ],
    "F.leaky_relu(x, 0.3)": [
        [0.369140625, -0.51171875, 0.8984375],
        [0.3701171875, -0.51025390625, 0.89990234375],
    ],
    "F.elu(x)": [
        [0.369140625, -0.2099609375, 0.8984375],
        [0.3701171875, -0.208251953125, 0.89990234375],
    ],
    "F.mse_loss(x, y)": [
        [0.24609375, -0.62890625, -0.13671875],
        [0.2467041015625, -0.62890625, -0.1370849609375],
    ],
    "F.huber_loss(x, y)": [
        [0.123046875, -0.123046875, -0.068359375],
        [0.12335205078125, -0.12335205078125, -0.06854248046875],
    ],
    "F.smooth_l1_loss(x, y)": [
        [0.123046875, -0.123046875, -0.068359375],
        [0.12335205078125, -0.12335205078125, -0.06854248046875],
    ],
    "x * 0.3": [
        [0.11083984375, -0.51171875, 0.26953125],
        [0.11102294921875, -0.51025390625, 0.27001953125],
    ],
    "x / 0.3": [[1.234375, -5.6875, 3.0], [1.2333984375, -5.66796875, 3.0]],
    "x.tanh()": [
        [0.337890625, -0.10498046875, 0.216796875],
        [0.338623046875, -0.09979248046875, 0.2139892578125],
    ],
    "x.softmax(0)": [
        [-0.0849609375, -0.055908203125, 0.140625],
        [-0.08514404296875, -0.05548095703125, 0.1407470703125],
    ],
    "x.log_softmax(0)": [
        [0.48046875, -1.6953125, 1.2109375],
        [0.4794921875, -1.6904296875, 1.2109375],
    ],
    "torch.xlogy(2.5, x.abs())": [
        [3.0625, 2.03125, 1.671875],
        [3.083984375, 2.0234375, 1.6728515625],
    ],
    "F.nll_loss(x.view(3, 1), torch.tensor([0, 0, 0]), y[:1].abs())": [
        [-0.12353515625, -0.12353515625, -0.12353515625],
        [-0.12335205078125, -0.12335205078125, -0.12335205078125],
    ],
}


def check(program: str, recorded: object) -> None:
    """Run a program, which prints numbers, and compare them with those that were recorded."""
    outcome = run(program)
    assert outcome.error is None
    assert Printed(outcome.stdout, program) == f"{recorded}\n"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("expression", VALUES)
def test_values(expression: str, dtype: str) -> None:
    program = SETUP.replace("DTYPE", dtype) + f"print(({expression}).tolist())"
    check(program, VALUES[expression][dtype == "float16"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("expression", GRADIENTS)
def test_gradients(expression: str, dtype: str) -> None:
    program = (SETUP + BACKWARD).replace("DTYPE", dtype).replace("EXPRESSION", expression)
    check(program, GRADIENTS[expression][dtype == "float16"])


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_every_number_through_relu_float_and_max(kind: str) -> None:
    """What goes by bits or by a table gives what float32 gives, a negative zero among it."""
    shown = run(f"""
every = torch.arange(-32768, 32768).to(torch.int16).view(torch.{kind})
x = every[torch.isfinite(every)]
one_by_one = torch.stack([each.float() for each in x[:40]])
wanted = torch.relu(x.float()).to(x.dtype)
same = torch.equal(torch.relu(x).view(torch.int16), wanted.view(torch.int16))
print(same, torch.equal(one_by_one, x.float()[:40]), torch.relu(x.reshape(2, -1).t()).stride())
print(torch.relu(x[0]), torch.relu(torch.tensor(-3, dtype=torch.int16)))
print(x.max() == x.float().max(), x.amin() == x.float().amin())
""")
    assert shown.error is None
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("True True (1, ")
    assert lines[1] == f"tensor(-0., dtype=torch.{kind}) tensor(0, dtype=torch.int16)"
    assert lines[2] == "tensor(True) tensor(True)"


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sin", "tan", "sinh", "tanh", "atanh"])
def test_many_bfloat16_are_those_of_a_few(name: str) -> None:
    """Many are looked up by their bits; every number, in an order of its own."""
    x = f"{BITS}.view(torch.bfloat16)"
    parts = "".join([f", torch.{name}(x[{i}:{i} + 8192])" for i in range(0, 65536, 8192)])
    program = f"x = {x}\na, b = torch.{name}(x), torch.cat([{parts[2:]}])\n"
    outcome = run(f"{program}print(torch.equal(a.view(torch.int16), b.view(torch.int16)))")
    assert outcome.stdout == "True\n"


BITS = "(torch.arange(65536) * 40503 % 65536 - 32768).to(torch.int16)"
