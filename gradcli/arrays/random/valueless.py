"""Random numbers without values, for tensors on `meta`: nothing is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.layout.meta import creation
from gradcli.arrays.random.generator import Generator


class ValuelessGenerator(Generator):
    """A source of arrays without values, in the dtypes of the numbers of other generators."""

    __slots__ = ()

    def words(self, count: int) -> Any:
        """Draws of 32 bits, as uint64."""
        return creation.empty(count, np.uint64)

    def uniform(self, count: int, dtype: Any) -> Any:
        """Numbers in [0, 1), float64 or float32."""
        return creation.empty(count, np.float64 if dtype == np.float64 else np.float32)

    def normal(self, count: int, dtype: Any, *more: Any, **settings: Any) -> Any:
        """Normally distributed numbers, float64 or float32."""
        return self.uniform(count, dtype)

    def permutation(self, count: int) -> Any:
        """The integers below `count`."""
        return creation.empty(count, np.int64)
