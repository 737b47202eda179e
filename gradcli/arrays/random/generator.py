"""Random numbers: the Mersenne Twister, and PyTorch's methods of making numbers from its bits.

Every method takes as many draws in the same order as PyTorch's on the CPU, so that a seeded program
gets the same numbers from both. For tensors on `meta` nothing is drawn. The twister is that of the
kernels in C, or NumPy's, whose import takes longer than most programs draw.

Normally distributed numbers come from uniform ones, in blocks of 16: eight give radii and eight
give angles. In float32 PyTorch's vectorised code takes logarithm, sine and cosine from the
polynomials of the Cephes library, evaluated with fused multiply-adds; so does this, to the last
bit.

On a GPU they come of Philox4x32-10, a function of a key, the seed, and a counter; element `i` of a
tensor is computed from the counter of the GPU thread that writes it in PyTorch. So the numbers of
`rand`, `randn` and `randint` are those of PyTorch on a GPU with as many processors, except for the
last digit of normal ones: PyTorch computes logarithm and sine less exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import located
from gradcli.arrays.gpu import creation as on_gpu
from gradcli.arrays.gpu.runtime import cupy
from gradcli.arrays.layout.meta import creation
from gradcli.arrays.layout.sizes import Device
from gradcli.arrays.native.dispatch import kernel
from gradcli.arrays.threads import over_tiles
from gradcli.record import Record
from gradcli.state import active

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
        return self._drawn("mersenne_words", np.empty(count, np.int64)).view(np.uint64)

    def singles(self, count: int) -> Any:
        """The next numbers in [0, 1), float32 of 24 bits."""
        return self._drawn("mersenne_uniform", np.empty(count, np.float32))

    @property
    def standing(self) -> Standing:
        """Where it stands; may be set."""
        return self._state[:-1].tobytes(), int(self._state[-1])

    @standing.setter
    def standing(self, standing: Standing) -> None:
        words, self._state[-1] = standing
        self._state[:-1] = np.frombuffer(words, np.uint32)

    def _drawn(self, name: str, memory: Any) -> Any:
        """Memory with the numbers of a kernel; on a tape, what is recorded of it."""
        recorded = self._call(name, memory)
        return memory if recorded is None else recorded

    def _call(self, name: str, operand: Any) -> Any:
        compute = kernel(name)
        assert compute is not None
        return compute(self._state, operand)


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


DEFAULT_SEED = 67280421310721
"""The seed of a `torch.Generator()` that was given none."""


def session_seed() -> int:
    """The seed that a session starts from: the one asked for, or 0. PyTorch draws one; here two
    runs of a program agree.
    """
    return active.state.manual_seed or 0


def takes_two_words(span: int, bits: int) -> bool:
    """Whether PyTorch draws 64 bits for an integer out of `span`; `bits` is 0 where the dtype
    leaves that to the span.
    """
    return bits == 64 or (not bits and span >= 2**28)


def bounded(draws: Any, low: int, span: int) -> Any:
    """Integers in [low, low + span), from draws of whole words."""
    if span < 2**64:
        draws = draws % np.uint64(span)
    return draws.view(np.int64) + low


class RandomSource(Record):
    """What draws random numbers for a session, by what a worker of a data loader needs of it.

    Attributes:
        seed: begins anew, as PyTorch seeds it in a worker: of a seed of all workers, and a number.
        standing: where it stands.
        stand: goes back to there.
    """

    seed: Callable[[int, int], object]
    standing: Callable[[], Any]
    stand: Callable[[Any], object]


SOURCES: list[RandomSource] = []
"""The sources of torch, `random` and NumPy, those of them that are loaded."""


class Generator:
    """A source of random numbers.

    Attributes:
        seed_value: what it was seeded with.

    Example: torch.Generator()
    """

    __slots__ = ("_bits", "_number", "_spare", "device", "seed_value")

    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"device", "initial_seed", "manual_seed", "seed"}
    )

    def __new__(cls, device: Any = "cpu") -> Generator:
        """A generator for a GPU is of a kind of its own; raises E604 where there is no GPU."""
        if cls is Generator:
            cls = _KINDS[located("Generator", device).type]
        return object.__new__(cls)

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device(device)
        self._bits: Any = None
        self._number = 0
        self.manual_seed(DEFAULT_SEED)

    def __repr__(self) -> str:
        if not self._number:
            active.state.object_ids += 1
            self._number = active.state.object_ids
        return f"<torch._C.Generator object at {self._number:#x}>"

    def manual_seed(self, seed: int) -> Generator:
        """Start again from a seed; returns the generator."""
        self.seed_value = seed % 2**64
        if self._bits is None:
            self._bits = twister()
        # So much of the seed is read.
        self._bits.seed(self.seed_value & 0xFFFFFFFF)
        self._spare: float | None = None
        return self

    def initial_seed(self) -> int:
        """The seed that it started from."""
        return self.seed_value

    def seed(self) -> int:
        """Start again from a seed that the system draws; returns the seed."""
        from secrets import randbits

        self.manual_seed(randbits(64))
        return self.seed_value

    def snapshot(self) -> Any:
        """Where it stands, for `restore`; two that are equal draw the same numbers."""
        return self.seed_value, self._bits.standing, self._spare

    def restore(self, snapshot: Any) -> None:
        """Go back to where it stood at a `snapshot`."""
        self.seed_value, self._bits.standing, self._spare = snapshot

    def state_bytes(self) -> bytes:
        """Where it stands, as PyTorch writes it down: 632 words of 64 bits."""
        (words, position), spare = self._bits.standing, self._spare
        written = np.zeros(632, np.uint64)
        written[0] = self.seed_value
        written[1] = (WORDS + 1 - position) | 1 << 32
        written[2] = position % WORDS
        written[3 : 3 + WORDS] = np.frombuffer(words, np.uint32)
        if spare is not None:
            written[628:629] = np.array([spare]).view(np.uint64)
            written[630] = 1
        return written.tobytes()

    def restore_bytes(self, data: bytes) -> None:
        """Go back to where it stood; raises ValueError for bytes that `state_bytes` cannot give."""
        if len(data) != 632 * 8:
            raise ValueError(f"RNG state is {632 * 8} bytes, not {len(data)}")
        written = np.frombuffer(data, np.uint64)
        position = WORDS + 1 - int(written[1] & np.uint64(0xFFFFFFFF))
        if not 0 < position <= WORDS or written[3 : 3 + WORDS].max() >= 2**32:
            raise ValueError("Invalid mt19937 state")
        spare = float(written[628:629].view(np.float64)[0]) if written[630] else None
        words = written[3 : 3 + WORDS].astype(np.uint32).tobytes()
        self.restore((int(written[0]), (words, position), spare))

    def language_getattr(self, name: str) -> Any:
        """The methods that take and give tensors; raises AttributeError."""
        if name not in OF_TENSORS:
            raise AttributeError(name)
        return partial(OF_TENSORS[name], self)

    # --- bits ---------------------------------------------------------------------------------

    def words(self, count: int) -> Any:
        """The next draws of 32 bits, as uint64."""
        self._check_drawing()
        return self._bits.words(count)

    def double_words(self, count: int) -> Any:
        """The next draws of 64 bits, of two words each, as uint64."""
        pairs = self.words(2 * count).reshape(count, 2)
        return (pairs[:, 0] << np.uint64(32)) | pairs[:, 1]

    def _check_drawing(self) -> None:
        """Raise the error of a draw that `vmap` does not allow; report one to the recorder."""
        if active.state.batch is not None:
            active.state.batch.check_drawing()
        recorder = active.state.recorder
        if recorder is not None:
            recorder.drawn(self)

    # --- numbers ------------------------------------------------------------------------------

    def uniform(self, count: int, dtype: Any) -> Any:
        """Numbers in [0, 1): float64 of 53 random bits, or float32 of 24."""
        if dtype == np.float64:
            return (self.double_words(count) & np.uint64(2**53 - 1)) * 2.0**-53
        self._check_drawing()
        return self._bits.singles(count)

    def integers(self, low: int, span: int, count: int, bits: int = 0) -> Any:
        """Integers from `low` on, `span` different ones, from draws of 32 or 64 bits."""
        double = takes_two_words(span, bits)
        return bounded(self.double_words(count) if double else self.words(count), low, span)

    def normal(
        self,
        count: int,
        dtype: Any,
        mean: float = 0.0,
        deviation: float = 1.0,
        in_blocks: bool = True,
    ) -> Any:
        """Normally distributed numbers, float64 or float32. PyTorch draws in blocks those of memory
        without gaps in row order, the others one by one.
        """
        if count < 16 or not in_blocks:
            drawn = np.array([self._one_normal() for _ in range(count)])
            return drawn * deviation + mean

        whole = count - count % 16
        if dtype.itemsize == 2 and whole != count:  # draws for whole blocks only
            values = np.resize(self.uniform(whole, dtype), count)
        else:
            values = self.uniform(count, dtype)
        rows = values[:whole].reshape(-1, 16)
        over_tiles(rows.shape, lambda block: fill_blocks(rows[block], mean, deviation))
        if count % 16:
            # The last 16 are drawn again.
            values[-16:] = self.uniform(16, dtype)
            fill_blocks(values[-16:].reshape(1, 16), mean, deviation)
        return values

    def _one_normal(self) -> float:
        """One number by the Box–Muller transform, which makes two: the other one is kept."""
        if self._spare is not None:
            self._check_drawing()
            value, self._spare = self._spare, None
            return value
        first, second = self.uniform(2, np.dtype(np.float64)).tolist()
        radius = math.sqrt(-2.0 * math.log1p(-second))
        angle = 2.0 * math.pi * first
        self._spare = radius * math.sin(angle)
        return radius * math.cos(angle)

    def exponential(self, count: int) -> Any:
        """Exponentially distributed numbers of rate 1."""
        return -np.log1p(-self.uniform(count, np.dtype(np.float64)))

    def permutation(self, count: int) -> Any:
        """The integers below `count` in random order: position i is swapped with one from i on, for
        each i in turn.
        """
        here = np.arange(count)
        there = here.copy()
        draws = self.words(max(count - 1, 0))
        there[:-1] += (draws % np.arange(count, 1, -1, dtype=np.uint64)).astype(np.int64)
        # What stands where a swap looks came there by the last swap before it that looked there.
        order = np.argsort((there << 32) | here)
        again = np.flatnonzero(there[order[1:]] == there[order[:-1]])
        earlier = np.full(count, -1)
        earlier[order[again + 1]] = order[again]
        latest = np.full(count, -1)
        latest[there[order]] = order
        came = np.where(there == here, earlier, latest)
        origin = np.where(came < 0, here, came)
        while ((further := origin[origin]) != origin).any():
            origin = further
        return np.where(earlier < 0, there, origin[earlier])


OF_TENSORS: dict[str, Callable[..., Any]] = {}
"""The methods of generators that take and give tensors, by name."""


# --- on meta --------------------------------------------------------------------------------------


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


_SINGLE = np.float32


def fill_blocks(blocks: Any, mean: float, deviation: float) -> None:
    """Turn rows of 16 uniform numbers, float32 or float64, into normal ones in place."""
    kind = blocks.dtype.type
    in_c = kernel("box_muller") if kind is _SINGLE and blocks.flags.c_contiguous else None
    if in_c is not None:
        in_c(blocks, mean, deviation)
        return
    first, second = kind(1) - blocks[:, :8], blocks[:, 8:]
    if kind is _SINGLE:
        radius = np.sqrt(_SINGLE(-2) * _logarithm(first))
        sine, cosine = _sine_and_cosine(_SINGLE(2 * math.pi) * second)
    else:
        radius = np.sqrt(-2 * np.log(first))
        angle = 2 * math.pi * second
        sine, cosine = np.sin(angle), np.cos(angle)
    blocks[:, :8] = _fused(radius * cosine, deviation, mean)
    blocks[:, 8:] = _fused(radius * sine, deviation, mean)


def _fused(factor: Any, other: Any, addend: Any) -> Any:
    """factor * other + addend, rounded once; float64 holds the product of two float32 exactly."""
    if factor.dtype.type is not _SINGLE:
        return factor * other + addend
    exact = factor.astype(np.float64) * _as_single(other) + _as_single(addend)
    return exact.astype(_SINGLE)


def _as_single(value: Any) -> Any:
    """A value of float32 precision, as float64."""
    return np.asarray(value, _SINGLE).astype(np.float64)


def _polynomial(x: Any, first: float, *coefficients: float) -> Any:
    value = np.full_like(x, first)
    for coefficient in coefficients:
        value = _fused(value, x, coefficient)
    return value


def _logarithm(x: Any) -> Any:
    """log(x) of positive normal float32 numbers: x is 2**exponent times a number near 1."""
    bits = x.view(np.uint32)
    exponent = ((bits >> 23).astype(np.int32) - 126).astype(_SINGLE)
    near = ((bits & 0x007FFFFF) | 0x3F000000).view(_SINGLE)
    small = near < _SINGLE(math.sqrt(0.5))
    exponent -= small
    x = near - _SINGLE(1) + np.where(small, near, _SINGLE(0))
    square = x * x
    series = _polynomial(
        x,
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
    # log(2) in two parts, so that the larger one times the exponent is exact.
    rest = _fused(series * x, square, exponent * _SINGLE(-2.12194440e-4))
    return _fused(exponent, 0.693359375, x + _fused(square, -0.5, rest))


def _sine_and_cosine(x: Any) -> tuple[Any, Any]:
    """sin(x) and cos(x) of float32 numbers that are not negative."""
    octant = ((x * _SINGLE(4 / math.pi)).astype(np.int32) + 1) & ~1
    turns = octant.astype(_SINGLE)
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):  # of pi / 4
        x = _fused(turns, part, x)
    square = x * x
    series = _polynomial(square, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
    cosine = _fused(series * square, square, -(square * _SINGLE(0.5))) + _SINGLE(1)
    series = _polynomial(square, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
    sine = _fused(series * square, x, x)
    quarter = (octant >> 1) & 3
    odd = (quarter & 1).astype(np.bool_)
    return (
        np.where(odd, cosine, sine) * np.where(quarter & 2, _SINGLE(-1), _SINGLE(1)),
        np.where(odd, sine, cosine)
        * np.where((quarter == 1) | (quarter == 2), _SINGLE(-1), _SINGLE(1)),
    )


# --- on a GPU -------------------------------------------------------------------------------------


_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW_WORD = np.uint64(0xFFFFFFFF)
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
            second & _LOW_WORD,
            (first >> _32) ^ c3 ^ np.uint64(keys[1]),
            first & _LOW_WORD,
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
        place = on_gpu.arange(count, dtype=np.uint64)
        thread, turn = place % np.uint64(threads), place // np.uint64(threads)
        call = turn // np.uint64(per_call) + np.uint64(self.offset // 4)
        calls = -(-count // (threads * per_call))
        self.offset += 4 * calls
        counter = [call & _LOW_WORD, call >> _32, thread, np.zeros_like(thread)]
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


_KINDS = {"cpu": Generator, "cuda": PhiloxGenerator, "meta": ValuelessGenerator}
"""The class of generators by type of device."""
