"""The sum of losses as PyTorch's `nll_loss` adds them up."""

from __future__ import annotations

from typing import Any

import numpy as np

_GROUP = 32
"""Elements that are added one after another before the next level takes their sum."""


def level_sum(values: Any) -> Any:
    """The sum of a vector, rounded to its dtype at each step: the first element by itself, the
    others in groups, these in groups, and so on.
    """
    if not len(values):
        return values.dtype.type(0)
    others = values[1:]
    total = values.dtype.type(0)
    while len(others):
        whole = len(others) // _GROUP * _GROUP
        if whole < len(others):
            total = total + np.add.accumulate(others[whole:])[-1]
        grouped = others[:whole].reshape(-1, _GROUP)
        others = np.add.accumulate(grouped, axis=1)[:, -1] if whole else grouped[:, 0]
    return total + values[0]
