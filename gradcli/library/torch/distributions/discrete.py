"""Distributions of truth values, categories and counts: `Bernoulli Categorical OneHotCategorical
Geometric Poisson Binomial`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.distributions.constraints import (
    BOOLEAN,
    COUNT,
    NONNEGATIVE,
    ONE_HOT,
    REAL,
    REAL_VECTOR,
    SIMPLEX,
    UNIT,
    Constraint,
    greater_than,
    integer_interval,
)
from gradcli.library.torch.distributions.distribution import (
    Distribution,
    Formulas,
    T,
    broadcast_all,
    call,
    minus,
    over,
    plus,
    read_from,
    size_of,
)
from gradcli.ops.binding.arguments import checked_values
from gradcli.ops.binding.catalogue import modules, operators

F = modules["torch.nn.functional"]


def one_of(probs: Any, logits: Any) -> str:
    """The name of the one that is given; raises E204 for both or none."""
    if (probs is None) == (logits is None):
        raise value_error("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


def clamped(probs: Any) -> Any:
    """Probabilities that are neither 0 nor 1."""
    eps = T.finfo(probs.dtype).eps
    return call(probs, "clamp", min=eps, max=1 - eps)


def _binary_logits(self: Any) -> Any:
    inner = clamped(self.probs)
    return T.log(inner) - T.log1p(-inner)


BINARY: Formulas = {
    "logits": _binary_logits,
    "probs": lambda self: T.sigmoid(self.logits),
}
CATEGORICAL = read_from("categorical", "logits", "probs")


class _Binary(Distribution):
    """The base of those of an event of one probability."""

    constraints: ClassVar[dict[str, Constraint]] = {"probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = BINARY

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name = one_of(probs, logits)
        self.set_up(validate_args, **{name: logits if probs is None else probs})


class Bernoulli(_Binary):
    """1 with the probability `probs`, else 0."""

    support = BOOLEAN
    has_enumerate_support = True

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        likely = call(T.ge(self.probs, 0.5), "to", self.probs.dtype)
        return T.where(T.eq(self.probs, 0.5), math.nan, likely)

    @property
    def variance(self) -> Any:
        return self.probs * minus(1, self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            return T.bernoulli(self.expanded("probs", self.shape_of(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -F["binary_cross_entropy_with_logits"](logits, value, reduction="none")

    def entropy(self) -> Any:
        return F["binary_cross_entropy_with_logits"](self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        """Both values, for each of the batch."""
        values = T.arange(2, dtype=next(iter(self.given.values())).dtype)
        return self.values_for_each(values, expand)

    language_attributes = Distribution.language_attributes | {"enumerate_support"}


class Geometric(_Binary):
    """How often an event of the probability `probs` fails before it happens."""

    support = COUNT

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self.is_checked and probs is not None:
            zero = ~greater_than(0).truth_of(self.probs)
            if zero.any():
                raise value_error(
                    "Expected parameter probs (Tensor of shape"
                    f" {tuple(self.probs.array.shape)}) of distribution {self!r} to be positive but"
                    f" found invalid values:\n{Tensor(np.asarray(self.probs.array)[zero])}"
                )

    @property
    def mean(self) -> Any:
        return minus(over(1.0, self.probs), 1.0)

    @property
    def mode(self) -> Any:
        return T.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (minus(over(1.0, self.probs), 1.0)) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            empty = T.empty(self.shape_of(sample_shape), dtype=self.probs.dtype)
            u = call(empty, "uniform_", T.finfo(self.probs.dtype).tiny, 1)
            return T.floor(T.log(u) / T.log1p(-self.probs))

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        value, probs = broadcast_all(value, self.probs)
        sure = T.logical_and(T.eq(probs, 1), T.eq(value, 0))
        probs = call(probs, "masked_fill", sure, 0)
        return value * T.log1p(-probs) + T.log(self.probs)

    def entropy(self) -> Any:
        both = F["binary_cross_entropy_with_logits"](self.logits, self.probs, reduction="none")
        return both / self.probs


def _check_signs(probs: Any) -> None:
    """Raise E204 for a negative probability."""
    if (probs < 0).any():
        raise value_error("a probability is negative")


class Categorical(Distribution):
    """The number of a category, each of a probability of its own."""

    language_attributes = Distribution.language_attributes | {"enumerate_support", "param_shape"}
    constraints: ClassVar[dict[str, Constraint]] = {"probs": SIMPLEX, "logits": REAL_VECTOR}
    computed: ClassVar[Formulas] = {
        "logits": lambda self: T.log(clamped(self.probs)),
        "probs": lambda self: F["softmax"](self.logits, -1),
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        name = one_of(probs, logits)
        given = logits if probs is None else probs
        if not isinstance(given, Tensor) or given.ndim < 1:
            raise value_error(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            each = given / call(given, "sum", -1, True)
        else:
            each = given - call(given, "logsumexp", dim=-1, keepdim=True)
        self.given = {name: each}
        if name == "probs":
            try:
                checked_values(_check_signs, given.array)
            except GradcliError:
                self.given = {name: given}  # what is wrong is shown as it was given
        super().__init__(each.array.shape[:-1], (), validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return next(iter(self.given.values())).shape

    @property
    def mean(self) -> Any:
        return T.full(self.batch_shape, math.nan, dtype=self.probs.dtype)

    variance = mean

    @property
    def mode(self) -> Any:
        return T.argmax(self.probs, -1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            rows = call(self.probs, "reshape", (-1, self.param_shape[-1]))
            drawn = T.multinomial(rows, size_of(sample_shape).numel(), True)
            return call(T.t(drawn), "reshape", self.shape_of(sample_shape))

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """The numbers of the categories."""
        return integer_interval(0, self.param_shape[-1] - 1)

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        index = call(call(value, "long"), "unsqueeze", -1)
        index, logits = T.broadcast_tensors(index, self.logits)
        index = operators["[]"](index, (..., slice(None, 1)))
        return call(call(logits, "gather", -1, index), "squeeze", -1)

    def entropy(self) -> Any:
        logits = T.clamp(self.logits, min=T.finfo(self.logits.dtype).min)
        return -call(logits * self.probs, "sum", -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All categories, for each of the batch."""
        return self.values_for_each(T.arange(self.param_shape[-1]), expand)


class OneHotCategorical(Distribution):
    """A category as a vector of zeros with one 1."""

    __slots__ = ("categorical",)

    support = ONE_HOT
    computed: ClassVar[Formulas] = CATEGORICAL

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.categorical = Categorical(probs, logits, validate_args)
        shape = self.categorical.param_shape
        super().__init__(self.categorical.batch_shape, shape[-1:], validate_args)

    @property
    def mean(self) -> Any:
        return self.categorical.probs

    @property
    def variance(self) -> Any:
        return self.probs * minus(1, self.probs)

    @property
    def mode(self) -> Any:
        count = self.event_shape[0]
        return call(F["one_hot"](self.categorical.mode, count), "to", self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self.categorical.sample(sample_shape)
        return call(F["one_hot"](drawn, self.event_shape[0]), "to", self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        return self.categorical.log_prob(T.argmax(value, -1))

    def entropy(self) -> Any:
        return self.categorical.entropy()


class Poisson(Distribution):
    """How many events come that come at a `rate`."""

    constraints: ClassVar[dict[str, Constraint]] = {"rate": NONNEGATIVE}
    support = COUNT

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, rate=rate)

    @property
    def mean(self) -> Any:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Any:
        return T.floor(self.rate)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            return T.poisson(self.expanded("rate", self.shape_of(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        rate, value = broadcast_all(self.rate, value)
        return call(value, "xlogy", rate) - rate - call(plus(value, 1), "lgamma")


def set_up_trials(
    self: Distribution, total_count: Any, probs: Any, logits: Any, validate_args: bool | None
) -> None:
    """Set up a distribution of a number of trials, each of one probability."""
    name = one_of(probs, logits)
    total, each = broadcast_all(total_count, logits if probs is None else probs)
    self.given = {"total_count": call(total, "type_as", each), name: each}
    Distribution.__init__(self, each.array.shape, (), validate_args)


class Binomial(Distribution):
    """How many of `total_count` trials succeed, each with the probability `probs`."""

    constraints: ClassVar[dict[str, Constraint]] = {
        "total_count": COUNT,
        "probs": UNIT,
        "logits": REAL,
    }
    computed: ClassVar[Formulas] = BINARY

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        set_up_trials(self, total_count, probs, logits, validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return T.minimum(T.floor(plus(self.total_count, 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * minus(1, self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        with NoGrad():
            return T.binomial(self.expanded("total_count", shape), self.expanded("probs", shape))

    has_enumerate_support = True
    language_attributes = Distribution.language_attributes | {"enumerate_support"}

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """The counts up to the number of trials."""
        return integer_interval(0, self.total_count)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All counts, for each of the batch; raises E205 where the numbers of trials differ."""
        total = int(call(self.total_count, "max").item())
        if call(self.total_count, "min").item() != total:
            raise GradcliError(
                "E205",
                "Inhomogeneous total count not supported by `enumerate_support`.",
                raises="NotImplementedError",
            )
        values = T.arange(1 + total, dtype=next(iter(self.given.values())).dtype)
        return self.values_for_each(values, expand)

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        total, logits = self.total_count, self.logits
        all_ways = T.lgamma(plus(total, 1))
        ways = T.lgamma(plus(value, 1))
        other_ways = T.lgamma(plus(total - value, 1))
        above, below = call(logits, "clamp", min=0), call(logits, "clamp", max=0)
        positive = over(above + logits - below, 2)
        rest = T.log1p(T.exp(-T.abs(logits)))
        normalised = total * positive + total * rest - all_ways
        return value * logits - ways - other_ways - normalised

    def entropy(self) -> Any:
        total = int(call(self.total_count, "max").item())
        if call(self.total_count, "min").item() != total:
            raise self.missing("entropy of different total counts")
        log_probs = self.log_prob(self.enumerate_support(False))
        return -call(T.exp(log_probs) * log_probs, "sum", 0)
