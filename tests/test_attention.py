"""Attention under a mask that hides keys from early queries, which are left out block by block."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.ops.nn import attention


@pytest.mark.parametrize("hidden", ["behind", "behind and itself", "some", "nan among them"])
def test_blocks_give_what_the_whole_gives(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    length = 150
    random = np.random.default_rng(0)
    query, key, value, grad = random.standard_normal((4, 2, 3, length, 8)).astype(np.float32)
    mask = np.where(np.tril(np.ones((length, length)), -("itself" in hidden)) > 0, 0, -np.inf)
    mask = mask.astype(np.float32)
    if hidden == "some":
        mask[100:, 20:140] = -np.inf
    if hidden == "nan among them":
        value[0, 0, 140, 3] = np.nan
    found = []
    for rows in (length, 64):
        monkeypatch.setattr(attention, "_ROWS", rows)
        out = attention.attended(query, key, value, mask, 0.3)
        operands = (grad, query, key, value, out, mask, 0.3)
        found.append([out, *attention.attention_gradients(*operands)])
    assert np.isnan(found[0][0]).any() == (hidden == "nan among them")
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-6)
