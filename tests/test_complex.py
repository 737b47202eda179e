"""Complex tensors: what PyTorch 2.13 printed for values, nodes and gradients, and its errors."""

# ruff: noqa: E501  (what PyTorch printed is not broken into pieces)

from __future__ import annotations

import pytest

from tests.rows import each_row
from tests.running import run

SETUP = """
z = torch.tensor([1 + 2j, -0.5j, 3.0], requires_grad=True)
r = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
"""

PRINTED = {
    "z": "tensor([1.+2.0000j, -0.-0.5000j, 3.+0.0000j], requires_grad=True)",
    "z.detach().conj()": "tensor([1.-2.0000j, -0.+0.5000j, 3.-0.0000j])",
    "z.conj().is_conj()": "True",
    "z.conj().resolve_conj().is_conj()": "False",
    "z.abs()": "tensor([2.2361, 0.5000, 3.0000], grad_fn=<AbsBackward0>)",
    "z.angle()": "tensor([ 1.1071, -1.5708,  0.0000], grad_fn=<AngleBackward0>)",
    "z.real": "tensor([1., -0., 3.], grad_fn=<SelectBackward0>)",
    "z.imag": "tensor([ 2.0000, -0.5000,  0.0000], grad_fn=<SelectBackward0>)",
    "z.conj().imag": "tensor([-2.0000,  0.5000, -0.0000], grad_fn=<SelectBackward0>)",
    "z * r": "tensor([0.5000+1.0000j, 0.0000+0.5000j, 6.0000+0.0000j],\n       grad_fn=<MulBackward0>)",
    "r * 1j": "tensor([0.+0.5000j, -0.-1.0000j, 0.+2.0000j], grad_fn=<MulBackward0>)",
    "r ** 2j": "tensor([0.1835-0.9830j, 0.0019+0.0000j, 0.1835+0.9830j],\n       grad_fn=<PowBackward0>)",
    "z / (1 - 1j)": "tensor([-0.5000+1.5000j,  0.2500-0.2500j,  1.5000+1.5000j],\n       grad_fn=<DivBackward0>)",
    "z @ z": "tensor(5.7500+4.j, grad_fn=<DotBackward0>)",
    "torch.vdot(z, z)": "tensor(14.2500+0.j, grad_fn=<VdotBackward0>)",
    "z.mean()": "tensor(1.3333+0.5000j, grad_fn=<MeanBackward0>)",
    "z.prod()": "tensor(3.-1.5000j, grad_fn=<ProdBackward0>)",
    "z.reshape(3, 1).mH": "tensor([[1.-2.0000j, -0.+0.5000j, 3.-0.0000j]], grad_fn=<ConjBackward0>)",
    "torch.complex(r, r).grad_fn.name()": "ComplexBackward0",
    "torch.polar(r, r)": "tensor([ 0.4388+0.2397j, -0.5403+0.8415j, -0.8323+1.8186j],\n       grad_fn=<PolarBackward0>)",
    "torch.view_as_real(z)": "tensor([[ 1.0000,  2.0000],\n        [-0.0000, -0.5000],\n        [ 3.0000,  0.0000]], grad_fn=<ViewAsRealBackward0>)",
    "z.sgn()": "tensor([0.4472+0.8944j, -0.0000-1.0000j, 1.0000+0.0000j],\n       grad_fn=<SgnBackward0>)",
    "z.dtype.to_real()": "torch.float32",
    "(r * torch.tensor(1j)).dtype": "torch.complex64",
    "(r.double() * 1j).dtype": "torch.complex128",
    "torch.tensor([1e10 + 2j, 3])": "tensor([1.0000e+10+2.j, 3.0000e+00+0.j])",
    "torch.tensor([complex(0.0, -1.5), 2e-7j])": "tensor([0.-1.5000e+00j, 0.+2.0000e-07j])",
    "torch.linalg.eigvals(torch.tensor([[0., -1.], [1., 0.]]))": "tensor([0.+1.j, 0.-1.j])",
    "torch.tensor(1 + 2j).item()": "(1+2j)",
    "z.isfinite()": "tensor([True, True, True])",
    "z == 3": "tensor([False, False,  True])",
    "r.conj() is r": "True",
    "z.to(torch.complex128)": "tensor([1.+2.0000j, -0.-0.5000j, 3.+0.0000j], dtype=torch.complex128,\n       grad_fn=<ToCopyBackward0>)",
    "z.sum()": "tensor(4.+1.5000j, grad_fn=<SumBackward0>)",
    "z.conj()[1:].storage_offset()": "1",
    "z.conj().as_strided((2,), (2,))": "tensor([1.-2.j, 3.-0.j], grad_fn=<AsStridedBackward0>)",
    "z ** 4": "tensor([-7.0000e+00-2.4000e+01j,  6.2500e-02-1.0928e-08j,\n         8.1000e+01+0.0000e+00j], grad_fn=<PowBackward0>)",
    "z ** -1": "tensor([0.2000-0.4000j, -0.0000+2.0000j, 0.3333+0.0000j],\n       grad_fn=<PowBackward0>)",
    "z ** -0.5": "tensor([0.5689-0.3516j, 1.0000+1.0000j, 0.5774+0.0000j],\n       grad_fn=<PowBackward0>)",
    "z ** torch.tensor([2, -3, 0])": "tensor([-3.0000e+00+4.0000j,  9.5399e-08-8.0000j,  1.0000e+00+0.0000j],\n       grad_fn=<PowBackward1>)",
    "2j ** z.detach().imag": "tensor([-4.0000-3.4969e-07j,  0.5000-5.0000e-01j,  1.0000+0.0000e+00j])",
    "torch.zeros(1) ** torch.tensor(1 + 0j)": "tensor([0.-0.j])",
    "z.detach().pow_(z.detach().real)": "tensor([ 1.0000+2.0000j,  1.0000+0.0000j, 27.0000+0.0000j])",
}

GRADIENTS = {
    "z.abs().sum()": "tensor([0.4472+0.8944j, 0.0000-1.0000j, 1.0000+0.0000j]) None",
    "(z * z.conj()).real.sum()": "tensor([2.+4.j, 0.-1.j, 6.+0.j]) None",
    "z.imag.sum()": "tensor([0.+1.j, 0.+1.j, 0.+1.j]) None",
    "(z * r).abs().sum()": "tensor([0.2236+0.4472j, -0.0000-1.0000j, 2.0000+0.0000j]) tensor([ 2.2361, -0.5000,  3.0000])",
    "(z.exp() * r).real.sum()": "tensor([-0.5656-1.2359j, -0.8776-0.4794j, 40.1711+0.0000j]) tensor([-1.1312,  0.8776, 20.0855])",
    "(r ** 1.5j).real.nansum() + z.real.sum()": "tensor([1.+0.j, 1.+0.j, 1.+0.j]) tensor([ 2.5868e+00, -1.1780e-09, -6.4670e-01])",
    "(z @ z).abs() + r.sum()": "tensor([ 3.9261-2.1415j, -0.5711+0.8209j,  4.9254+3.4264j]) tensor([1., 1., 1.])",
    "z.angle()[:1].sum() + r.sum()": "tensor([-0.4000+0.2000j,  0.0000+0.0000j,  0.0000+0.0000j]) tensor([1., 1., 1.])",
    "torch.view_as_real(z * z).sum()": "tensor([ 6.-2.j, -1.+1.j,  6.+6.j]) None",
}

RAISED = {
    "z.sum().backward()": "RuntimeError",
    "z < 2": "NotImplementedError",
    "z.detach().max()": "NotImplementedError",
    "z.detach().sort()": "RuntimeError",
    "z.floor()": "NotImplementedError",
    "z.clamp(1)": "NotImplementedError",
    "torch.relu(z)": "NotImplementedError",
    "z // 2": "NotImplementedError",
    "z % 2": "NotImplementedError",
    "torch.imag(r)": "RuntimeError",
    "torch.view_as_complex(r)": "RuntimeError",
    "torch.view_as_real(z.conj())": "RuntimeError",
    "torch.complex(r, r.double())": "RuntimeError",
    "torch.polar(r.long(), r)": "RuntimeError",
    "r.detach().mul_(1j)": "RuntimeError",
    "z @ r": "RuntimeError",
    "z.erf()": "NotImplementedError",
    "F.mse_loss(z, z)": "NotImplementedError",
    "torch.nan_to_num(z)": "RuntimeError",
    "z.select_scatter(z[0], 0, 1)": "RuntimeError",
    "(z * z).sum().backward(torch.tensor(2.))": "RuntimeError",
}

WRITES = {
    "y.real.mul_(3)": "tensor([3.-2.j, 9.+1.j, 0.-2.j])",
    "y.imag.zero_()": "tensor([1.+0.j, 3.+0.j, 0.+0.j])",
    "torch.view_as_real(y)[:, 1].mul_(2)": "tensor([1.-4.j, 3.+2.j, 0.-4.j])",
    "y[1:].imag.mul_(2)": "tensor([1.-2.j, 3.+2.j, 0.-4.j])",
    "y.real = torch.tensor([1., 2., 3.])": "tensor([0.-2.j, 0.+1.j, 0.-2.j])",
    "y.real.mul_(3); y.imag.mul_(5)": "tensor([3.-10.j, 9.+5.j, 0.-10.j])",
}
"""Gradients of `z` after a write to a part of `y`, which is `z * 1`."""


@each_row("expression", PRINTED)
def test_printed(expression: str) -> None:
    outcome = run(f"{SETUP}print({expression})")
    assert outcome.error is None
    assert outcome.stdout == f"{PRINTED[expression]}\n"


@pytest.mark.parametrize("loss", GRADIENTS)
def test_gradients_follow_the_convention(loss: str) -> None:
    """Of a real loss: the direction of its steepest growth; a real operand gets the real part."""
    outcome = run(f"{SETUP}({loss}).backward(); print(z.grad, r.grad)")
    assert outcome.error is None
    assert outcome.stdout == f"{GRADIENTS[loss]}\n"


@pytest.mark.parametrize("statement", RAISED)
def test_errors(statement: str) -> None:
    outcome = run(f"{SETUP}{statement}")
    assert outcome.error is not None
    assert outcome.error.raises == RAISED[statement]


def test_parts_share_the_memory() -> None:
    outcome = run(
        "w = torch.zeros(2, dtype=torch.complex64)\n"
        "w.real = torch.tensor([1., 2.])\nw.imag[1] = 5\ntorch.view_as_real(w)[0, 1] = 7\nprint(w)"
    )
    assert outcome.stdout == "tensor([1.+7.j, 2.+5.j])\n"


@pytest.mark.parametrize("write", WRITES)
def test_gradients_through_writes_to_parts(write: str) -> None:
    outcome = run(
        f"{SETUP}y = z * 1\n{write}\n"
        "(y * torch.tensor([1 + 2j, 3 - 1j, 2j])).real.sum().backward()\nprint(z.grad)"
    )
    assert outcome.error is None
    assert outcome.stdout == f"{WRITES[write]}\n"


def test_gradients_through_a_write_to_pairs() -> None:
    outcome = run(
        "w = torch.tensor([[1., 2.], [3., -1.], [0.5, 4.]], requires_grad=True)\ny = w * 1\n"
        "torch.view_as_complex(y)[1:].mul_(2j)\ny.pow(2).sum().backward()\nprint(w.grad)"
    )
    assert outcome.stdout == "tensor([[ 2.,  4.],\n        [24., -8.],\n        [ 4., 32.]])\n"


def test_where_a_part_lies() -> None:
    outcome = run(f"{SETUP}print(z.imag.storage_offset(), z[1:].real.storage_offset())")
    assert outcome.stdout == "1 2\n"


def test_a_convolution_is_three_of_real_numbers() -> None:
    outcome = run(
        "x = torch.tensor([[[1 + 2j, -1j, 3, 0.5 - 1j]]], requires_grad=True)\n"
        "k = torch.tensor([[[2 - 1j, 1j]]], requires_grad=True)\n"
        "o = F.conv1d(x, k, torch.tensor([1 + 1j]))\no.abs().sum().backward()\n"
        "print(o)\nprint(x.grad)\nprint(k.grad)"
    )
    assert outcome.stdout == (
        "tensor([[[6.+4.0000j, 0.+2.0000j, 8.-1.5000j]]], grad_fn=<AddBackward0>)\n"
        "tensor([[[ 1.1094+1.9415j, -0.4453+1.1679j,  3.1500+0.6143j, -0.1843-0.9829j]]])\n"
        "tensor([[[3.8901-1.6623j, 0.1210+4.7228j]]])\n"
    )


def test_a_vectorised_jacobian_takes_complex_outputs() -> None:
    outcome = run(
        "f = lambda z: z * z * (1 + 2j)\n"
        "print(torch.autograd.functional.jacobian(f, torch.tensor([1 + 2j]), vectorize=True))"
    )
    assert outcome.stdout == "tensor([[-6.-8.j]])\n"


def test_random_parts_have_half_of_the_variance() -> None:
    outcome = run("torch.manual_seed(0); print(torch.randn(2, dtype=torch.complex64))")
    assert outcome.stdout == "tensor([ 1.0896-0.2075j, -1.5406+0.4019j])\n"
