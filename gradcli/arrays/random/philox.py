"""Random numbers on a GPU: Philox4x32-10, and PyTorch's methods of making numbers from its bits.

The generator is a function of a key, the seed, and a counter; element `i` of a tensor is computed
from the counter of the GPU thread that writes it in PyTorch. So the numbers of `rand`, `randn` and
`randint` are those of PyTorch on a GPU with as many processors, except for the last digit of normal
ones: PyTorch computes logarithm and sine less exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.gpu import creation
from gradcli.arrays.gpu.runtime import cupy
from gradcli.arrays.random.generator import Generator, bounded, takes_two_words

_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

_BLOCK = 256
"""Threads of a block of PyTorch's kernels."""


def philox(counter: list[Any], seed: int) -> list[Any]:
    """The four draws of 32 bits of a counter of four, all uint64 arrays of any kind."""
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    c0, c1, c2, c3 = counter
    for _ in range(_ROUNDS):
        first, second = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (second >> _32) ^ c1 ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> _32) ^ c3 ^ np.uint64(keys[1]),
            first & _LOW,
        )
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _KEY_STEPS, strict=True)]
    return [c0, c1, c2, c3]


class PhiloxGenerator(Generator):
    """A source of random numbers on the GPU in use; its arrays are there.

    Attributes:
        offset: how far the counters have advanced.
    """

    __slots__ = ("offset",)

    def manual_seed(self, seed: int) -> PhiloxGenerator:
        """Start again from a seed; returns the generator."""
        self.seed_value = seed % 2**64
        self.offset = 0
        return self

    def snapshot(self) -> Any:
        """Where it stands, for `restore`; two that are equal draw the same numbers."""
        return self.seed_value, self.offset

    def restore(self, snapshot: Any) -> None:
        """Go back to where it stood at a `snapshot`."""
        self.seed_value, self.offset = snapshot

    def state_bytes(self) -> bytes:
        """Where it stands, as PyTorch writes it down: the seed and the offset."""
        return np.array([self.seed_value, self.offset], np.uint64).tobytes()

    def restore_bytes(self, data: bytes) -> None:
        """Go back to where it stood; raises ValueError for bytes that `state_bytes` cannot give."""
        if len(data) != 16:
            raise ValueError(f"RNG state is 16 bytes, not {len(data)}")
        self.restore(tuple(np.frombuffer(data, np.uint64).tolist()))

    # --- bits -----------------------------------------------------------------------------------

    def _threads(self, count: int) -> int:
        attributes = cupy().cuda.Device().attributes
        most = attributes["MultiProcessorCount"] * (
            attributes["MaxThreadsPerMultiProcessor"] // _BLOCK
        )
        return int(_BLOCK * min(most, -(-count // _BLOCK)))

    def _draws(self, count: int, per_call: int) -> tuple[list[Any], Any]:
        """The four draws of each element's counter, and which of the numbers that a thread makes
        of them is the element's: each makes `per_call`.
        """
        threads = self._threads(count)
        place = creation.arange(count, dtype=np.uint64)
        thread, turn = place % np.uint64(threads), place // np.uint64(threads)
        call = turn // np.uint64(per_call) + np.uint64(self.offset // 4)
        calls = -(-count // (threads * per_call))
        self.offset += 4 * calls
        counter = [call & _LOW, call >> _32, thread, np.zeros_like(thread)]
        return philox(counter, self.seed_value), turn % np.uint64(per_call)

    def _words(self, count: int) -> Any:
        draws, which = self._draws(count, 4)
        return _chosen(draws, which)

    def _double_words(self, count: int) -> tuple[Any, Any]:
        """Two draws of 32 bits for every element."""
        draws, which = self._draws(count, 2)
        return _chosen(draws[::2], which), _chosen(draws[1::2], which)

    # --- numbers --------------------------------------------------------------------------------

    def uniform(self, count: int, dtype: Any) -> Any:
        """Numbers in [0, 1), float64 or float32."""
        if dtype == np.float64:
            first, second = self._double_words(count)
            values = _fraction53(first, second)
        else:
            values = _fraction32(self._words(count))
        return np.where(values == 1, 0, values).astype(values.dtype)

    def integers(self, low: int, span: int, count: int, bits: int = 0) -> Any:
        """Integers from `low` on, `span` different ones, from draws of 32 or 64 bits."""
        if takes_two_words(span, bits):
            first, second = self._double_words(count)
            return bounded((first << _32) | second, low, span)
        return bounded(self._words(count), low, span)

    def normal(
        self,
        count: int,
        dtype: Any,
        mean: float = 0.0,
        deviation: float = 1.0,
        in_blocks: bool = True,
    ) -> Any:
        """Normally distributed numbers, float64 or float32, by the Box–Muller transform."""
        if dtype == np.float64:
            draws, which = self._draws(count, 2)
            radius = np.sqrt(-2.0 * np.log(_fraction53(draws[0], draws[1])))
            angle = _fraction53(draws[2], draws[3]) * (2.0 * math.pi)
            drawn = _chosen([radius * np.sin(angle), radius * np.cos(angle)], which)
        else:
            draws, which = self._draws(count, 4)
            second_pair = which >= np.uint64(2)
            radius = np.where(second_pair, _fraction32(draws[2]), _fraction32(draws[0]))
            turn = np.where(second_pair, _fraction32(draws[3]), _fraction32(draws[1]))
            radius = np.sqrt(np.float32(-2) * np.log(radius))
            angle = turn * np.float32(2.0 * math.pi)
            odd = which % np.uint64(2) == np.uint64(1)
            drawn = np.where(odd, radius * np.cos(angle), radius * np.sin(angle))
        return drawn * drawn.dtype.type(deviation) + drawn.dtype.type(mean)

    def permutation(self, count: int) -> Any:
        """The integers below `count` in random order."""
        return np.argsort(self.integers(0, 2**63, count, 64), kind="stable")


def _chosen(values: list[Any], which: Any) -> Any:
    """For each element, the value that its number selects."""
    result = values[0]
    for number, value in enumerate(values[1:], 1):
        result = np.where(which == np.uint64(number), value, result)
    return result


def _fraction32(draws: Any) -> Any:
    """Draws as float32 in (0, 1]."""
    return draws.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


def _fraction53(first: Any, second: Any) -> Any:
    """Pairs of draws as float64 in (0, 1]."""
    return (first ^ (second << np.uint64(21))).astype(np.float64) * 2.0**-53 + 2.0**-54
