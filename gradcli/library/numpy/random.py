"""`numpy.random`: NumPy's own generators, and so its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.random.generator import SOURCES, RandomSource, session_seed
from gradcli.errors import type_error, value_error
from gradcli.language.limits import charge
from gradcli.language.objects.types import by_name, called, define, names
from gradcli.library.numpy.array import (
    NDArray,
    before_write,
    compute,
    held,
    in_numpy,
    room,
    session_of,
    unwrap,
    wrap,
)
from gradcli.library.numpy.functions import host_arguments

_SIZE_AT = {
    **dict.fromkeys(("random", "standard_cauchy", "standard_exponential", "standard_normal"), 0),
    **dict.fromkeys(("chisquare", "choice", "dirichlet", "exponential", "geometric", "pareto"), 1),
    **dict.fromkeys(("poisson", "power", "rayleigh", "standard_gamma", "standard_t", "weibull"), 1),
    **dict.fromkeys(("beta", "binomial", "f", "gamma", "gumbel", "laplace", "logistic"), 2),
    **dict.fromkeys(("lognormal", "multinomial", "multivariate_normal", "normal", "uniform"), 2),
    **dict.fromkeys(("vonmises", "wald"), 2),
    **dict.fromkeys(("hypergeometric", "triangular"), 3),
}
"""What generators old and new draw, each with the position of its size."""

_OLD_SIZE_AT = {
    **_SIZE_AT,
    "random_sample": 0,
    "randint": 2,
}
_NEW_SIZE_AT = {**_SIZE_AT, "integers": 2}

_OF_ANY_FLOAT = names("""choice exponential gumbel laplace logistic lognormal multivariate_normal
    normal uniform""")
"""The draws that come to an end for a parameter that is not finite."""


def _elements(name: str, at: int, values: list[Any], named: dict[str, Any]) -> tuple[int, int]:
    """The elements that a draw makes at most, and its work; raises E204 for a parameter of a
    rejection method that is not finite.
    """
    size = named.get("size", values[at] if len(values) > at else None)
    parameters = [*values[:at], *[value for key, value in named.items() if key != "size"]]
    arrays = [value for value in parameters if isinstance(value, (np.ndarray, list, tuple))]
    if name not in _OF_ANY_FLOAT:
        for value in parameters:
            if not isinstance(value, (str, bool, type(None), np.dtype)) and not np.all(
                np.isfinite(np.asarray(value))
            ):
                raise value_error(f"{name}() takes parameters that are finite")
    inner = sum(map(held, arrays))
    drawn = 1 if size is None else room(size)
    if name in ("multivariate_normal", "dirichlet", "multinomial"):
        return drawn * max(1, inner), inner**2
    if name == "choice":
        replaces = named.get("replace", values[2] if len(values) > 2 else True)
        if not replaces and not arrays:
            inner = room(parameters[0])
        elif arrays and np.ndim(arrays[0]) > 1:
            drawn *= held(arrays[0])
    return max(drawn, inner), inner


def _draw(generator: Any, name: str, at: int) -> Callable[..., Any]:
    """A method of a generator that draws numbers of a size."""

    def draw(*args: Any, **kwargs: Any) -> Any:
        values, named = host_arguments(name, args, kwargs)
        cost = in_numpy(lambda: _elements(name, at, values, named))
        return compute(getattr(generator(), name), values, named, *cost)

    return called(name, draw)


def _draw_of_sizes(generator: Any, name: str) -> Callable[..., Any]:
    """`rand(2, 3)` and `randn(2, 3)`."""

    def draw(*sizes: Any) -> Any:
        values = tuple(map(unwrap, sizes))
        return compute(getattr(generator(), name), values, {}, in_numpy(lambda: room(values)))

    return called(name, draw)


def _permutation(generator: Any, name: str) -> Callable[..., Any]:
    def permutation(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        values, named = host_arguments(name, (x, *args), kwargs)
        whole = isinstance(values[0], (int, np.integer))
        return compute(getattr(generator(), name), values, named,
                       max(0, int(values[0])) if whole else held(values[0]))  # fmt: skip

    return called(name, permutation)


def _shuffle(generator: Any) -> Callable[..., Any]:
    def shuffle(x: Any, /, *axis: Any) -> None:
        """Shuffle a list or an array in place, along its first axis."""
        if type(x) is NDArray:
            before_write(x.data)
            compute(generator().shuffle, (x.data, *map(unwrap, axis)), {}, x.data.size)
        elif type(x) is list:
            charge(len(x))
            # An array of objects would be made of a list that holds arrays.
            order = np.arange(len(x))
            generator().shuffle(order)
            x[:] = [x[number] for number in order.tolist()]
        else:
            raise type_error("shuffle() takes an array or a list")

    return shuffle


class Generator:
    """`np.random.default_rng(seed)`: a generator of the new kind."""

    __slots__ = ("host", "number", "table")

    language_name: ClassVar[str] = "numpy.random.Generator"
    shown: ClassVar[str] = "Generator(PCG64)"

    def __init__(self, host: Any) -> None:
        self.host = host
        self.number = 0
        self.table = self._methods()

    def _methods(self) -> dict[str, Any]:
        def host() -> Any:
            return self.host

        return {
            **{name: _draw(host, name, at) for name, at in _NEW_SIZE_AT.items()},
            **{name: _permutation(host, name) for name in ("permutation", "permuted")},
            "shuffle": _shuffle(host),
        }

    def language_names(self) -> list[str]:
        """The names of its methods."""
        return sorted(self.table)

    def language_getattr(self, name: str) -> Any:
        """A method."""
        try:
            return self.table[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        return self.shown


class RandomState(Generator):
    """`np.random.RandomState(seed)`: a generator of the old kind, as `np.random` itself is."""

    __slots__ = ()

    language_name: ClassVar[str] = "numpy.random.RandomState"
    shown: ClassVar[str] = "RandomState(MT19937)"

    def _methods(self) -> dict[str, Any]:
        return methods_of(lambda: self.host)


def methods_of(generator: Callable[[], Any]) -> dict[str, Any]:
    """The methods of a generator of the old kind."""

    def seed(seed: Any = None) -> None:
        value = unwrap(seed)
        in_numpy(lambda: generator().seed(session_seed() if value is None else value))

    def get_state(legacy: bool = True) -> Any:
        state = generator().get_state(legacy=bool(legacy))
        if legacy:
            return wrap(state)
        inner = state["state"]
        return {**state, "state": {**inner, "key": wrap(inner["key"])}}

    def set_state(state: Any, /) -> None:
        parts = state
        if type(state) is dict and type(state.get("state")) is dict:
            inner = state["state"]
            parts = ("MT19937", inner.get("key"), inner.get("pos"), state.get("has_gauss", 0),
                     state.get("gauss", 0.0))  # fmt: skip
        host = tuple(map(unwrap, parts)) if isinstance(parts, (tuple, list)) else ()
        fits = len(host) in (3, 5) and isinstance(host[2], int) and 0 <= host[2] <= 624
        if not fits or np.shape(host[1]) != (624,):  # NumPy trusts the position
            raise value_error("set_state() takes what get_state() gave")
        in_numpy(lambda: generator().set_state(host))

    return {
        **{name: _draw(generator, name, at) for name, at in _OLD_SIZE_AT.items()},
        **{name: _draw_of_sizes(generator, name) for name in ("rand", "randn")},
        **by_name(get_state, seed, set_state),
        "permutation": _permutation(generator, "permutation"),
        "shuffle": _shuffle(generator),
    }


def _seed(value: Any) -> Any:
    """The seed of a new generator; those that were given none differ from each other and are the
    same in every run.
    """
    seed = unwrap(value)
    if seed is None:
        session = session_of()
        session.generators_seeded += 1
        return [session_seed(), session.generators_seeded]
    return seed


def default_rng(seed: Any = None) -> Generator:
    """`np.random.default_rng(seed)`."""
    if type(seed) is Generator:
        return seed
    value = _seed(seed)
    return Generator(in_numpy(lambda: np.random.default_rng(value)))


def random_state(seed: Any = None) -> RandomState:
    """`np.random.RandomState(seed)`."""
    value = _seed(seed)
    return RandomState(in_numpy(lambda: np.random.RandomState(value)))


def _of_session() -> Any:
    """The generator behind `np.random`."""
    session = session_of()
    if session.random is None:
        session.random = np.random.RandomState(session_seed())
    return session.random


def _seed_of_worker(seed: int, number: int) -> None:
    """Seed it as PyTorch does in a worker: by words that NumPy makes of both numbers."""
    words = np.random.SeedSequence([number, seed & 0xFFFFFFFF, seed >> 32, 0])
    _of_session().seed(words.generate_state(4))


SOURCES.append(
    RandomSource(
        _seed_of_worker,
        lambda: _of_session().get_state(),
        lambda standing: _of_session().set_state(standing),
    )
)


RANDOM: dict[str, Any] = {
    **methods_of(_of_session),
    "Generator": define("numpy.random._generator.Generator", Generator),
    "RandomState": define("numpy.random.mtrand.RandomState", RandomState, construct=random_state),
    "default_rng": default_rng,
    **{name: _draw(_of_session, "random_sample", 0) for name in ("ranf", "sample")},
}
"""What `numpy.random` holds."""
