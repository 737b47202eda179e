"""float16 and bfloat16: results keep the dtype, and are rounded as PyTorch 2.13 rounds them."""

from __future__ import annotations

import pytest

from tests.running import run

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
