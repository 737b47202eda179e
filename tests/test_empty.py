"""Tensors without elements, and dimensions that do not fit: shapes, strides and errors as PyTorch
has them.
"""

from __future__ import annotations

import pytest

from tests.recorded import printed, raised

PRINTED = {
    "F.max_pool1d(torch.zeros(0, 2, 5), 2).shape": "torch.Size([0, 2, 2])",
    "F.adaptive_avg_pool1d(torch.zeros(0, 5), 3).shape": "torch.Size([0, 3])",
    "F.adaptive_avg_pool2d(torch.zeros(0, 0, 0, 0), 1).shape": "torch.Size([0, 0, 1, 1])",
    "F.adaptive_max_pool1d(torch.zeros(0, 5), 2).shape": "torch.Size([0, 2])",
    "F.grid_sample(torch.zeros(0, 2, 3, 4), torch.zeros(0, 2, 2, 2)).shape": (
        "torch.Size([0, 2, 2, 2])"
    ),
    "F.scaled_dot_product_attention(torch.zeros(2, 0), torch.zeros(2, 0), torch.zeros(2, 1))": (
        "tensor([[0.],\n        [0.]])"
    ),
    "torch.unique_consecutive(torch.zeros(0))": "tensor([])",
    "torch.zeros(2, 0).aminmax(dim=0).min": "tensor([])",
    "torch.linalg.cholesky(torch.zeros(0, 0)).shape": "torch.Size([0, 0])",
    "torch.linalg.cholesky(torch.zeros(0, 2, 2), upper=True).stride()": "(4, 1, 2)",
    "torch.linalg.solve(torch.zeros(0, 0), torch.zeros(0, 2)).stride()": "(1, 1)",
    "torch.linalg.qr(torch.zeros(0, 3))[1].stride()": "(1, 1)",
    "torch.linalg.svd(torch.zeros(3, 0), full_matrices=False)[0].stride()": "(1, 3)",
    "torch.view_as_real(torch.zeros(0, dtype=torch.complex64)).stride()": "(2, 1)",
    "torch.zeros(0, 3, dtype=torch.complex64).real.stride()": "(6, 2)",
    "torch.zeros(3).index_copy(0, torch.tensor([0]), torch.tensor(2.0))": "tensor([2., 0., 0.])",
}

ERRORS = {
    "torch.inner(torch.ones(2, 1), torch.ones(2, 3))": "RuntimeError",
    "torch.zeros(3).index_add(0, torch.tensor([0, 0]), torch.ones(1))": "RuntimeError",
    "torch.zeros(3).index_add(0, torch.tensor([0, 0]), torch.ones(()))": "IndexError",
    "torch.zeros(3).index_add(0, torch.tensor([0]), torch.ones(()))": "RuntimeError",
    "torch.zeros(2, 3).index_copy(0, torch.tensor([0]), torch.ones(1, 1))": "RuntimeError",
    "torch.zeros(2, 3).index_copy(0, torch.tensor([0]), torch.ones(1))": "IndexError",
    "torch.zeros(3).index_copy(0, torch.tensor([0, 0]), torch.ones(1))": "IndexError",
    "torch.zeros(3).index_reduce(0, torch.tensor([0, 0]), torch.ones(1), 'amax')": "RuntimeError",
    "F.linear(torch.ones(2, 2, 3).transpose(0, 1), torch.ones(1, 3), torch.ones(2))": (
        "RuntimeError"
    ),
    "F.soft_margin_loss(torch.ones(1), torch.ones(3))": "RuntimeError",
    "F.interpolate(torch.zeros(1, 0, 3), scale_factor=2)": "RuntimeError",
    "F.interpolate(torch.zeros(1, 1, 0), size=3)": "RuntimeError",
    "F.pad(torch.zeros(0, 3), (1, 2), mode='reflect')": "RuntimeError",
    "F.unfold(torch.zeros(1, 0, 3, 3), 2)": "RuntimeError",
    "F.fold(torch.zeros(1, 0, 4), 3, 2)": "RuntimeError",
    "F.max_unpool1d(torch.zeros(1, 1, 0), torch.zeros(1, 1, 0).long(), 2)": "RuntimeError",
    "F.affine_grid(torch.zeros(2, 2, 2), (2, 1, 2, 3))": "ValueError",
    "F.affine_grid(torch.zeros(1, 2, 3), (2, 1, 2, 3))": "RuntimeError",
    "F.adaptive_avg_pool3d(torch.zeros(0, 0, 3, 2, 4), 2)": "RuntimeError",
    "torch.zeros(0).aminmax()": "RuntimeError",
    "torch.zeros(0).aminmax(dim=0)": "IndexError",
}


@pytest.mark.parametrize("expression", PRINTED)
def test_printed(expression: str) -> None:
    assert printed(f"print({expression})") == PRINTED[expression]


@pytest.mark.parametrize("expression", ERRORS)
def test_error(expression: str) -> None:
    assert raised(expression) == ERRORS[expression]
