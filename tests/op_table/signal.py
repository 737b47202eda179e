"""Fourier transforms."""

from __future__ import annotations

from tests.op_table.rows import Row, normal


def of_real(result: str, *shape: int) -> Row:
    """A row of a transform of the real operand `x`."""
    return Row(f"e = {result}; torch.view_as_real(e.resolve_conj())", x=normal(*shape))


def of_complex(result: str, *shape: int, real: bool = False) -> Row:
    """A row of a transform of the complex operand `z`."""
    shown = "e" if real else "torch.view_as_real(e.resolve_conj())"
    return Row(
        f"z = torch.complex(x, y); e = {result}; {shown}", x=normal(*shape), y=normal(*shape)
    )


ROWS = [
    of_real("torch.fft.fft(x)", 5),
    of_real("torch.fft.ifft(x, n=3)", 4),
    of_real("torch.fft.rfft(x)", 2, 5),
    of_real("torch.fft.rfft(x, n=6, dim=0, norm='ortho')", 4, 2),
    of_real("torch.fft.ihfft(x)", 4),
    of_real("torch.fft.rfft2(x)", 3, 4),
    of_real("torch.fft.ihfft2(x)", 2, 3),
    of_complex("torch.fft.fft(z, norm='forward')", 4),
    of_complex("torch.fft.ifft(z, n=5)", 4),
    of_complex("torch.fft.irfft(z)", 3, real=True),
    of_complex("torch.fft.irfft(z, n=5)", 3, real=True),
    of_complex("torch.fft.hfft(z)", 3, real=True),
    of_complex("torch.fft.fft2(z, s=(2, 4))", 3, 3),
    of_complex("torch.fft.irfftn(z)", 2, 3, real=True),
    of_complex("torch.fft.hfftn(z, s=(2, 4))", 2, 3, real=True),
    of_complex("torch.fft.fftshift(z)", 3),
]
