"""Which of equal elements `sort`, `topk`, `kthvalue` and `mode` name follows the steps of PyTorch's
algorithms; these are taken only where there are equal elements that the answer depends on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli.arrays.kernels import selection
from gradcli.ops.reduction import sorting, statistics
from tests.rows import each_row


def rows() -> list[Any]:
    generator = np.random.default_rng(11)
    lengths = generator.integers(1, 60, 60)
    return [generator.integers(0, generator.choice([3, 30]), (1, length)) for length in lengths]


@each_row("row", rows(), ids=lambda row: str(row.size))
def test_order_of_ties(row: Any) -> None:
    values, keys = row[0].tolist(), row[0]
    count = (len(values) + 1) // 2

    _, found = sorting._sort_array(row, 1, False, False)
    assert found[0].tolist() == selection.order(keys).tolist()
    _, found = sorting._sort_array(row, 1, True, False)
    assert found[0].tolist() == selection.order(-keys).tolist()
    _, found = sorting._topk_array(row, count, 1, False, True)
    assert found[0].tolist() == selection.select(keys, count).tolist()
    _, found = sorting._kthvalue_array(row, count, 1, False)
    assert found[0] == selection.first(keys, count)[-1]
    order = selection.order(keys).tolist()
    most = min(values, key=lambda value: (-values.count(value), value))
    last = [place for place in order if values[place] == most][-1]
    assert statistics._most_frequent(row)[0] == last


def test_no_steps_without_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for different elements, for ties elsewhere, or for few, which keep their order."""

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("there is no tie to decide")

    for name in ("order", "select", "first"):
        monkeypatch.setattr(selection, name, refuse)
    different = np.random.default_rng(1).permutation(40)[None]
    sorting._sort_array(different, 1, False, False)
    sorting._topk_array(different, 7, 1, True, True)
    statistics._most_frequent(different)
    elsewhere = np.minimum(different, 30)
    sorting._kthvalue_array(elsewhere, 20, 1, False)
    sorting._topk_array(elsewhere, 20, 1, False, True)
    few = np.array([[1, 0, 1, 0] * 4])
    assert sorting._sort_array(few, 1, False, False)[1][0].tolist()[:3] == [1, 3, 5]
    assert statistics._most_frequent(few).tolist() == [[15]]
