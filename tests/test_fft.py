"""Fourier transforms: what PyTorch 2.13 printed, its nodes and its errors."""

# ruff: noqa: E501  (what PyTorch printed is not broken into pieces)

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from tests.running import run

SETUP = """
x = torch.tensor([[1., 2., 0., -1.], [0.5, 1., -2., 3.]], dtype=torch.float64, requires_grad=True)
z = torch.complex(x, x.flip(0))
def nodes(f, depth=0):
    if f is None or depth > 5:
        return '_'
    return f.name().split('::')[-1] + '(' + ', '.join([nodes(g, depth + 1) for g, _ in f.next_functions]) + ')'
"""

PRINTED = {
    "torch.fft.fft(x)": "tensor([[ 2.0000+0.j,  1.0000-3.j,  0.0000+0.j,  1.0000+3.j],\n        [ 2.5000+0.j,  2.5000+2.j, -5.5000+0.j,  2.5000-2.j]],\n       dtype=torch.complex128)",
    "torch.fft.ifft(z, n=3)": "tensor([[ 1.0000-0.1667j, -0.8660+0.9107j,  0.8660-0.2440j],\n        [-0.1667+1.0000j, -0.2440+0.8660j,  0.9107-0.8660j]],\n       dtype=torch.complex128)",
    "torch.fft.rfft(x, norm='ortho')": "tensor([[ 1.0000+0.0000j,  0.5000-1.5000j,  0.0000+0.0000j],\n        [ 1.2500+0.0000j,  1.2500+1.0000j, -2.7500+0.0000j]],\n       dtype=torch.complex128)",
    "torch.fft.irfft(z, n=5)": "tensor([[ 1.0000e+00,  5.3702e-01, -1.4432e+00,  5.4875e-01,  3.5741e-01],\n        [-3.0000e-01,  1.0998e-01, -9.4105e-01, -5.9219e-04,  1.6317e+00]],\n       dtype=torch.float64)",
    "torch.fft.hfft(z)": "tensor([[ 4.0000,  2.2679,  3.1962, -2.0000, -7.1962,  5.7321],\n        [ 1.5000,  3.9641,  7.9641, -8.5000,  1.0359, -2.9641]],\n       dtype=torch.float64)",
    "torch.fft.ihfft(x, norm='forward')": "tensor([[ 2.0000-0.j,  1.0000+3.j,  0.0000-0.j],\n        [ 2.5000-0.j,  2.5000-2.j, -5.5000-0.j]], dtype=torch.complex128)",
    "torch.fft.fft2(z, s=(2, 3))": "tensor([[ 2.5000+2.5000j,  5.3301-3.3301j, -3.3301+5.3301j],\n        [ 3.5000-3.5000j, -0.1340+1.8660j, -1.8660+0.1340j]],\n       dtype=torch.complex128)",
    "torch.fft.rfftn(x, dim=0)": "tensor([[ 1.5000+0.j,  3.0000+0.j, -2.0000+0.j,  2.0000+0.j],\n        [ 0.5000+0.j,  1.0000+0.j,  2.0000+0.j, -4.0000+0.j]],\n       dtype=torch.complex128)",
    "torch.fft.hfftn(z, s=(2, 4))": "tensor([[ 5.5000,  9.5000, -6.5000, -2.5000],\n        [ 4.5000, -3.5000,  0.5000,  0.5000]], dtype=torch.float64)",
    "torch.fft.fftshift(x)": "tensor([[-2.0000,  3.0000,  0.5000,  1.0000],\n        [ 0.0000, -1.0000,  1.0000,  2.0000]], dtype=torch.float64)",
    "torch.fft.ifftshift(x, dim=1)": "tensor([[ 0.0000, -1.0000,  1.0000,  2.0000],\n        [-2.0000,  3.0000,  0.5000,  1.0000]], dtype=torch.float64)",
    "torch.fft.fftfreq(5, 0.5)": "tensor([ 0.0000,  0.4000,  0.8000, -0.8000, -0.4000])",
    "torch.fft.rfftfreq(4)": "tensor([0.0000, 0.2500, 0.5000])",
    "torch.fft.fft(torch.arange(4))": "tensor([ 6.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])",
    "torch.stft(x[0], 4, return_complex=True)": "tensor([[ 5.+0.j,  5.+0.j,  2.+0.j,  1.+0.j,  1.+0.j],\n        [-1.+0.j,  0.-1.j,  1.-3.j,  3.+0.j,  0.+3.j],\n        [-3.+0.j,  3.+0.j,  0.+0.j,  1.+0.j, -1.+0.j]], dtype=torch.complex128)",
}

NODES = {
    "torch.fft.fft(x)": "FftR2CBackward0(AccumulateGrad()) SelectBackward0(ViewAsRealBackward0(FftC2CBackward0(AccumulateGrad())))",
    "torch.fft.ifft(x)": "ConjBackward0(FftR2CBackward0(AccumulateGrad())) SelectBackward0(ViewAsRealBackward0(FftC2CBackward0(ConjBackward0(AccumulateGrad()))))",
    "torch.fft.rfft(x)": "FftR2CBackward0(AccumulateGrad()) SelectBackward0(ViewAsRealBackward0(FftC2CBackward0(CopySlices(_, AccumulateGrad()))))",
    "torch.fft.irfft(x)": "FftC2RBackward0(ToCopyBackward0(AccumulateGrad())) SelectBackward0(ViewAsRealBackward0(CopySlices(FftR2CBackward0(AccumulateGrad()))))",
    "torch.fft.ihfft2(x)": "FftC2CBackward0(ConjPhysicalBackward0(FftR2CBackward0(AccumulateGrad()))) SelectBackward0(ViewAsRealBackward0(FftC2CBackward0(CopySlices(_, ConjPhysicalBackward0(FftC2CBackward0(_))))))",
    "torch.fft.hfftn(x)": "FftC2RBackward0(ConjBackward0(FftC2CBackward0(ToCopyBackward0(AccumulateGrad())))) SelectBackward0(ViewAsRealBackward0(FftC2CBackward0(ConjBackward0(CopySlices(FftR2CBackward0(_))))))",
    "torch.fft.fftn(x, s=(3, 3))": "FftC2CBackward0(ConstantPadNdBackward0(SliceBackward0(ToCopyBackward0(AccumulateGrad())))) SelectBackward0(ViewAsRealBackward0(SliceBackwardBackward0(ConstantPadNdBackward0(FftC2CBackward0(AccumulateGrad())))))",
}

RAISED = {
    "torch.fft.fft(x.half())": "RuntimeError",
    "torch.fft.fft(x, n=0)": "RuntimeError",
    "torch.fft.fft(x, norm='x')": "RuntimeError",
    "torch.fft.fft(x, dim=3)": "IndexError",
    "torch.fft.rfft(z)": "RuntimeError",
    "torch.fft.fftn(x, dim=(0, 0))": "RuntimeError",
    "torch.fft.fftn(x, s=(1, 2, 3))": "RuntimeError",
    "torch.fft.fftn(x, s=(2,), dim=(0, 1))": "RuntimeError",
    "torch.fft.fft(torch.tensor(1.))": "IndexError",
    "torch.fft.fft(3)": "TypeError",
    "torch.fft.fft(x, n=2.0)": "TypeError",
    "torch.stft(x, 4)": "RuntimeError",
    "torch.stft(x[0], 2, return_complex=True)": "RuntimeError",
}


@pytest.mark.parametrize("expression", PRINTED)
def test_printed(expression: str) -> None:
    outcome = run(f"{SETUP}with torch.no_grad(): print({expression})")
    assert outcome.error is None
    assert outcome.stdout == f"{PRINTED[expression]}\n"


@pytest.mark.parametrize("expression", NODES)
def test_nodes(expression: str) -> None:
    """Of the result, and of its gradient under create_graph."""
    outcome = run(
        f"{SETUP}x = x.detach().requires_grad_()\ny = {expression}\n"
        "g, = torch.autograd.grad(y, x, torch.ones_like(y).requires_grad_(), create_graph=True)\n"
        "print(nodes(y.grad_fn), nodes(g.grad_fn))"
    )
    assert outcome.error is None
    assert outcome.stdout == f"{NODES[expression]}\n"


@pytest.mark.parametrize("statement", RAISED)
def test_errors(statement: str) -> None:
    outcome = run(f"{SETUP}{statement}")
    assert outcome.error is not None
    assert outcome.error.raises == RAISED[statement]


def test_the_inverse_of_stft_is_the_signal() -> None:
    outcome = run(
        "s = torch.linspace(-1, 1, 24) ** 2\n"
        "f = torch.stft(s, 8, 2, return_complex=True)\n"
        "print(f.shape, (torch.istft(f, 8, 2, length=24) - s).abs().max().item() < 1e-6)"
    )
    assert outcome.stdout == "torch.Size([5, 13]) True\n"


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft"])
def test_single_precision_is_double_rounded(name: str) -> None:
    """NumPy's transforms in single precision are further from the truth than PyTorch's."""
    rng = np.random.default_rng(0)
    for length in (6, 7, 13, 127):
        values = rng.standard_normal((3, length)).astype(np.float32)
        if name != "rfft":
            values = values + np.complex64(1j) * values[::-1]
        found = gradcli.run(f"torch.fft.{name}(x)", {"x:const": values}).value
        truth = getattr(np.fft, name)(values.astype(np.complex128 if name != "rfft" else float))
        assert (found == truth.astype(found.dtype)).all()
