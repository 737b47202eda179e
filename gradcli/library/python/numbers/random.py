"""The module `random`: CPython's own numbers, from a generator that each session has."""

from __future__ import annotations

import random as host
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.arrays.random.generator import SOURCES, RandomSource
from gradcli.errors import type_error
from gradcli.language.limits import LARGEST_INTEGER, check_collection, check_integer
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.types import called, type_name
from gradcli.state import active

_HOSTS = (
    "betavariate", "choice", "expovariate", "gammavariate", "gauss", "getstate", "lognormvariate",
    "normalvariate", "paretovariate", "randint", "random", "randrange", "setstate", "triangular",
    "uniform", "vonmisesvariate", "weibullvariate",
)  # fmt: skip

_OWN = ("choices", "getrandbits", "randbytes", "sample", "seed", "shuffle")


class Random:
    """`random.Random(seed)`: a generator of its own."""

    __slots__ = ("generator",)

    language_name: ClassVar[str] = "random.Random"
    language_attributes: ClassVar[frozenset[str]] = frozenset({*_HOSTS, *_OWN})

    generator: host.Random

    def __init__(self, x: Any = None) -> None:
        self.generator = host.Random()
        self.seed(x)

    def __getattr__(self, name: str) -> Any:
        if name not in _HOSTS:
            raise AttributeError(name)
        return _method(self.generator, name)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Begin anew from a seed; without one, from the clock."""
        if a is not None and not isinstance(a, (int, float, str, bytes)):
            raise type_error(
                "The only supported seed types are: None,\nint, float, str, bytes, and bytearray."
            )
        self.generator.seed(a, version)

    def getrandbits(self, k: Any, /) -> int:
        """An integer of k random bits."""
        if isinstance(k, int):
            check_integer(k)
        return self.generator.getrandbits(k)

    def randbytes(self, n: Any, /) -> bytes:
        """n random bytes."""
        if isinstance(n, int):
            check_integer(8 * n)
        return self.generator.randbytes(n)

    def choices(
        self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        """k values, of which any may come again."""
        if isinstance(k, int):
            check_collection(k)
        lists = [None if each is None else list(bounded(each)) for each in (weights, cum_weights)]
        return self.generator.choices(_sequence(population), *lists[:1], cum_weights=lists[1], k=k)

    def sample(self, population: Any, k: Any, *, counts: Any = None) -> list[Any]:
        """k different values."""
        if isinstance(population, (set, frozenset, dict)):
            raise type_error("Population must be a sequence.  For dicts or sets, use sorted(d).")
        if isinstance(k, int):
            check_collection(k)
        many = None if counts is None else list(bounded(counts))
        return self.generator.sample(_sequence(population), k, counts=many)

    def shuffle(self, x: Any, /) -> None:
        """Put the items of a list in a random order."""
        if not hasattr(type(x), "__setitem__"):
            raise type_error(f"'{type_name(x)}' object does not support item assignment")
        check_collection(len(x))
        self.generator.shuffle(x)


def _sequence(population: Any) -> Any:
    """A population whose items have places."""
    if isinstance(population, (list, tuple, range, str)):
        return population
    return list(bounded(population))


def _method(generator: host.Random, name: str) -> Callable[..., Any]:
    """A method of the host's generator, whose integers are no larger than others."""
    method = getattr(generator, name)

    def draw(*values: Any, **named: Any) -> Any:
        for value in values:
            if isinstance(value, int) and value.bit_length() > LARGEST_INTEGER:
                check_integer(value.bit_length())
        return method(*values, **named)

    return called(name, draw)


def _session() -> Random:
    """The session's own generator."""
    kept: dict[str, Random] = active.state.library
    if "random" not in kept:
        kept["random"] = Random(active.state.manual_seed)
    return kept["random"]


SOURCES.append(
    RandomSource(
        lambda seed, number: _session().seed(seed + number),
        lambda: _session().generator.getstate(),
        lambda standing: _session().generator.setstate(standing),
    )
)


def _of_session(name: str) -> Callable[..., Any]:
    """A method of the session's own generator as a function."""

    def draw(*values: Any, **named: Any) -> Any:
        return getattr(_session(), name)(*values, **named)

    return called(name, draw)


RANDOM: dict[str, Any] = {name: _of_session(name) for name in (*_HOSTS, *_OWN)} | {"Random": Random}
"""What `random` holds."""
