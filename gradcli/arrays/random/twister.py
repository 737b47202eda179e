"""The Mersenne Twister: by the kernels in C, or NumPy's, whose import takes longer than most
programs draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.native.dispatch import kernel

WORDS = 624

_LOW = np.uint64(2**24 - 1)

Standing = tuple[bytes, int]
"""The words, and how many of them were drawn."""


def twister() -> Twister:
    """One that has not been seeded."""
    return Twister() if kernel("mersenne_words") is not None else _OfNumpy()


class Twister:
    """Draws words of 32 bits."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = np.zeros(WORDS + 1, np.uint32)

    def seed(self, seed: int) -> None:
        """Start again from a seed of 32 bits."""
        self._call("mersenne_seed", seed)

    def words(self, count: int) -> Any:
        """The next words, as uint64."""
        drawn = np.empty(count, np.int64)
        self._call("mersenne_words", drawn)
        return drawn.view(np.uint64)

    def singles(self, count: int) -> Any:
        """The next numbers in [0, 1), float32 of 24 bits."""
        drawn = np.empty(count, np.float32)
        self._call("mersenne_uniform", drawn)
        return drawn

    @property
    def standing(self) -> Standing:
        """Where it stands; may be set."""
        return self._state[:-1].tobytes(), int(self._state[-1])

    @standing.setter
    def standing(self, standing: Standing) -> None:
        words, self._state[-1] = standing
        self._state[:-1] = np.frombuffer(words, np.uint32)

    def _call(self, name: str, operand: Any) -> None:
        compute = kernel(name)
        assert compute is not None
        compute(self._state, operand)


class _OfNumpy(Twister):
    __slots__ = ("_bits",)

    def __init__(self) -> None:
        from numpy.random import MT19937  # lazy: start-up: random numbers

        self._bits: Any = MT19937(0)

    def seed(self, seed: int) -> None:
        from numpy.random import RandomState  # lazy: start-up: random numbers

        RandomState(self._bits).seed(seed)  # in the old way, which is PyTorch's

    def words(self, count: int) -> Any:
        return self._bits.random_raw(count)

    def singles(self, count: int) -> Any:
        values = (self.words(count) & _LOW).astype(np.float32)
        values *= np.float32(2.0**-24)
        return values

    @property
    def standing(self) -> Standing:
        state: Any = self._bits.state["state"]
        return state["key"].tobytes(), state["pos"]

    @standing.setter
    def standing(self, standing: Standing) -> None:
        words, position = standing
        state = {"key": np.frombuffer(words, np.uint32), "pos": position}
        self._bits.state = {"bit_generator": "MT19937", "state": state}
