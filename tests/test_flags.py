"""Flags that are no bools: the class that PyTorch raises, None where it takes any value's truth."""

from __future__ import annotations

import pytest

from tests.recorded import raised

CALLS = {
    "v.sum(0, keepdim=1)": "TypeError",
    "v.sum(0, keepdim=None)": "TypeError",
    "v.max(0, keepdim=torch.tensor(True))": "TypeError",
    "torch.sort(v, descending=1)": "TypeError",
    "torch.sort(v, stable=None)": None,
    "torch.argsort(v, descending=0)": "TypeError",
    "torch.topk(v, 1, largest=0)": "TypeError",
    "torch.topk(v, 1, sorted='a')": "TypeError",
    "torch.unique(v, return_counts=1)": "TypeError",
    "torch.var(v, unbiased=1)": "TypeError",
    "torch.std(v, unbiased=0)": "TypeError",
    "torch.allclose(v, v, equal_nan=1)": "TypeError",
    "torch.linalg.svd(m, full_matrices=1)": "TypeError",
    "torch.linalg.cholesky(m, upper=1.0)": "TypeError",
    "torch.triangular_solve(m, m, upper=0)": "TypeError",
    "torch.ones(2, requires_grad=1)": "TypeError",
    "torch.tensor([1.0], requires_grad=None)": "TypeError",
    "v.to(torch.float64, copy=1)": "TypeError",
    "v.detach().copy_(v, non_blocking=0)": "TypeError",
    "torch.hann_window(3, periodic=1)": "TypeError",
    "torch.index_put(v, (torch.tensor([0]),), s, accumulate=1)": "TypeError",
    "F.avg_pool1d(b, 1, ceil_mode=1)": "TypeError",
    "F.avg_pool1d(b, 1, count_include_pad=None)": "TypeError",
    "F.max_pool1d(b, 1, return_indices=1)": None,
    "F.batch_norm(m, None, None, training=1)": "TypeError",
    "F.dropout(v, training=0)": "TypeError",
    "F.dropout(v, inplace=0)": None,
    "F.kl_div(v, v, log_target=[True])": "TypeError",
    "F.gaussian_nll_loss(v, v, v, full=1)": None,
    "F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 2), align_corners=None)": None,
    "torch.set_grad_enabled(1)": "TypeError",
    "torch.nn.Linear(1, 1, bias=1)": None,
    "v.sum().backward(retain_graph=1)": None,
}


@pytest.mark.parametrize("call", CALLS)
def test_flag(call: str) -> None:
    assert raised(call) == CALLS[call]
