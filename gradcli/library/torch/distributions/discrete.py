"""Distributions of truth values, categories and counts: `Bernoulli Categorical OneHotCategorical
Geometric Poisson Binomial NegativeBinomial Multinomial OneHotCategoricalStraightThrough`; and of
several kinds: `MixtureSameFamily`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.distributions.continuous import Gamma
from gradcli.library.torch.distributions.distribution import (
    BOOLEAN,
    COUNT,
    NONNEGATIVE,
    ONE_HOT,
    REAL,
    REAL_VECTOR,
    SIMPLEX,
    UNIT,
    Constraint,
    Constraints,
    Distribution,
    Formulas,
    broadcast_all,
    formula,
    greater_than,
    greater_than_eq,
    half_open_interval,
    integer_interval,
    minus,
    multinomial,
    over,
    plus,
    read_from,
    size_of,
    times,
)
from gradcli.ops.binding.arguments import checked_values
from gradcli.ops.binding.functions import F, methods, operators, torch


def one_of(probs: Any, logits: Any) -> dict[str, Any]:
    """The one of `probs` and `logits` that was passed, by name; raises E204 for both or neither."""
    if (probs is None) == (logits is None):
        raise value_error("Either `probs` or `logits` must be specified, but not both.")
    return {"logits": logits} if probs is None else {"probs": probs}


def clamped(probs: Any) -> Any:
    """Probabilities that are neither 0 nor 1."""
    eps = torch.finfo(probs.dtype).eps
    return methods.clamp(probs, min=eps, max=1 - eps)


def _binary_logits(self: Any) -> Any:
    inner = clamped(self.probs)
    return torch.log(inner) - torch.log1p(-inner)


BINARY: Formulas = {
    "logits": _binary_logits,
    "probs": lambda self: torch.sigmoid(self.logits),
}
CATEGORICAL = read_from("categorical", "logits", "probs")


class _Binary(Distribution):
    """The base of those of an event of one probability."""

    constraints: ClassVar[Constraints] = {"probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = BINARY

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.set_up(validate_args, **one_of(probs, logits))


class Bernoulli(_Binary):
    """1 with the probability `probs`, else 0."""

    support = BOOLEAN
    has_enumerate_support = True

    mean = formula(lambda self: self.probs)

    @formula
    def mode(self) -> Any:
        likely = methods.to(torch.ge(self.probs, 0.5), self.probs.dtype)
        return torch.where(torch.eq(self.probs, 0.5), math.nan, likely)

    variance = formula(lambda self: self.probs * minus(1, self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            return torch.bernoulli(self.expanded("probs", self.shape_of(sample_shape)))

    def log_density(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        """Both values, for each of the batch."""
        values = torch.arange(2, dtype=next(iter(self.parameters.values())).dtype)
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

    mean = formula(lambda self: minus(over(1.0, self.probs), 1.0))
    mode = formula(lambda self: torch.zeros_like(self.probs))
    variance = formula(lambda self: (minus(over(1.0, self.probs), 1.0)) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            empty = torch.empty(self.shape_of(sample_shape), dtype=self.probs.dtype)
            u = methods.uniform_(empty, torch.finfo(self.probs.dtype).tiny, 1)
            return torch.floor(torch.log(u) / torch.log1p(-self.probs))

    def log_density(self, value: Any) -> Any:
        value, probs = broadcast_all(value, self.probs)
        sure = torch.logical_and(torch.eq(probs, 1), torch.eq(value, 0))
        probs = methods.masked_fill(probs, sure, 0)
        return value * torch.log1p(-probs) + torch.log(self.probs)

    def entropy(self) -> Any:
        both = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return both / self.probs


def _check_signs(probs: Any) -> None:
    """Raise E204 for a negative probability."""
    if (probs < 0).any():
        raise value_error("a probability is negative")


class Categorical(Distribution):
    """The number of a category, each of a probability of its own."""

    language_attributes = Distribution.language_attributes | {"enumerate_support", "param_shape"}
    constraints: ClassVar[Constraints] = {"probs": SIMPLEX, "logits": REAL_VECTOR}
    computed: ClassVar[Formulas] = {
        "logits": lambda self: torch.log(clamped(self.probs)),
        "probs": lambda self: F.softmax(self.logits, -1),
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        ((name, weights),) = one_of(probs, logits).items()
        if not isinstance(weights, Tensor) or weights.ndim < 1:
            raise value_error(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            each = weights / methods.sum(weights, -1, True)
        else:
            each = weights - methods.logsumexp(weights, dim=-1, keepdim=True)
        self.parameters = {name: each}
        if name == "probs":
            try:
                checked_values(_check_signs, weights.array)
            except GradcliError:
                self.parameters = {name: weights}  # what is wrong is shown as it was given
        super().__init__(each.array.shape[:-1], (), validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return next(iter(self.parameters.values())).shape

    mean = formula(lambda self: torch.full(self.batch_shape, math.nan, dtype=self.probs.dtype))
    variance = mean

    mode = formula(lambda self: torch.argmax(self.probs, -1))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            rows = methods.reshape(self.probs, (-1, self.param_shape[-1]))
            drawn = torch.multinomial(rows, size_of(sample_shape).numel(), True)
            return methods.reshape(torch.t(drawn), self.shape_of(sample_shape))

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """The numbers of the categories."""
        return integer_interval(0, self.param_shape[-1] - 1)

    def log_density(self, value: Any) -> Any:
        index = methods.unsqueeze(methods.long(value), -1)
        index, logits = torch.broadcast_tensors(index, self.logits)
        index = operators.getitem(index, (..., slice(None, 1)))
        return methods.squeeze(methods.gather(logits, -1, index), -1)

    def entropy(self) -> Any:
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -methods.sum(logits * self.probs, -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All categories, for each of the batch."""
        return self.values_for_each(torch.arange(self.param_shape[-1]), expand)


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

    mean = formula(lambda self: self.categorical.probs)
    variance = formula(lambda self: self.probs * minus(1, self.probs))

    @formula
    def mode(self) -> Any:
        count = self.event_shape[0]
        return methods.to(F.one_hot(self.categorical.mode, count), self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self.categorical.sample(sample_shape)
        return methods.to(F.one_hot(drawn, self.event_shape[0]), self.probs.dtype)

    def log_density(self, value: Any) -> Any:
        return self.categorical.log_prob(torch.argmax(value, -1))

    def entropy(self) -> Any:
        return self.categorical.entropy()


class Poisson(Distribution):
    """How many events come that come at a `rate`."""

    constraints: ClassVar[Constraints] = {"rate": NONNEGATIVE}
    support = COUNT

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, rate=rate)

    mean = formula(lambda self: self.rate)
    variance = mean

    mode = formula(lambda self: torch.floor(self.rate))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            return torch.poisson(self.expanded("rate", self.shape_of(sample_shape)))

    def log_density(self, value: Any) -> Any:
        rate, value = broadcast_all(self.rate, value)
        return methods.xlogy(value, rate) - rate - methods.lgamma(plus(value, 1))


def set_up_trials(
    self: Distribution, total_count: Any, probs: Any, logits: Any, validate_args: bool | None
) -> None:
    """Set up a distribution of a number of trials, each of one probability."""
    ((name, chosen),) = one_of(probs, logits).items()
    total, each = broadcast_all(total_count, chosen)
    self.parameters = {"total_count": methods.type_as(total, each), name: each}
    Distribution.__init__(self, each.array.shape, (), validate_args)


class Binomial(Distribution):
    """How many of `total_count` trials succeed, each with the probability `probs`."""

    constraints: ClassVar[Constraints] = {"total_count": COUNT, "probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = BINARY

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        set_up_trials(self, total_count, probs, logits, validate_args)

    mean = formula(lambda self: self.total_count * self.probs)

    @formula
    def mode(self) -> Any:
        return torch.minimum(torch.floor(plus(self.total_count, 1) * self.probs), self.total_count)

    variance = formula(lambda self: self.total_count * self.probs * minus(1, self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        with NoGrad():
            return torch.binomial(
                self.expanded("total_count", shape), self.expanded("probs", shape)
            )

    has_enumerate_support = True
    language_attributes = Distribution.language_attributes | {"enumerate_support"}

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """The counts up to the number of trials."""
        return integer_interval(0, self.total_count)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All counts, for each of the batch; raises E205 where the numbers of trials differ."""
        total = int(methods.max(self.total_count).item())
        if methods.min(self.total_count).item() != total:
            raise GradcliError(
                "E205",
                "Inhomogeneous total count not supported by `enumerate_support`.",
                raises="NotImplementedError",
            )
        values = torch.arange(1 + total, dtype=next(iter(self.parameters.values())).dtype)
        return self.values_for_each(values, expand)

    def log_density(self, value: Any) -> Any:
        total, logits = self.total_count, self.logits
        all_ways = torch.lgamma(plus(total, 1))
        ways = torch.lgamma(plus(value, 1))
        other_ways = torch.lgamma(plus(total - value, 1))
        above, below = methods.clamp(logits, min=0), methods.clamp(logits, max=0)
        positive = over(above + logits - below, 2)
        rest = torch.log1p(torch.exp(-torch.abs(logits)))
        normalised = total * positive + total * rest - all_ways
        return value * logits - ways - other_ways - normalised

    def entropy(self) -> Any:
        total = int(methods.max(self.total_count).item())
        if methods.min(self.total_count).item() != total:
            raise self.missing("entropy of different total counts")
        log_probs = self.log_prob(self.enumerate_support(False))
        return -methods.sum(torch.exp(log_probs) * log_probs, 0)


# --- counts ---------------------------------------------------------------------------------------


class NegativeBinomial(Distribution):
    """How many trials of the probability `probs` succeed until `total_count` have failed."""

    constraints: ClassVar[Constraints] = {
        "total_count": greater_than_eq(0),
        "probs": half_open_interval(0.0, 1.0),
        "logits": REAL,
    }
    computed: ClassVar[Formulas] = BINARY
    support = COUNT

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        set_up_trials(self, total_count, probs, logits, validate_args)

    mean = formula(lambda self: self.total_count * torch.exp(self.logits))

    @formula
    def mode(self) -> Any:
        likely = minus(self.total_count, 1) * methods.exp(self.logits)
        return methods.clamp(methods.floor(likely), min=0.0)

    variance = formula(lambda self: self.mean / torch.sigmoid(-self.logits))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            rates = Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)
            return torch.poisson(rates.sample(sample_shape))

    def log_density(self, value: Any) -> Any:
        total = self.total_count
        hits = total * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        norm = -torch.lgamma(total + value) + torch.lgamma(plus(1.0, value)) + torch.lgamma(total)
        return hits - methods.masked_fill(norm, torch.eq(total + value, 0.0), 0.0)


class Multinomial(Distribution):
    """How often each category comes in `total_count` draws."""

    __slots__ = ("categorical", "total_count")

    language_attributes = Distribution.language_attributes | {"param_shape", "total_count"}
    constraints: ClassVar[Constraints] = {"probs": SIMPLEX, "logits": REAL_VECTOR}
    computed: ClassVar[Formulas] = CATEGORICAL

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise GradcliError(
                "E205",
                "inhomogeneous total_count is not supported",
                raises="NotImplementedError",
            )
        self.total_count = total_count
        self.categorical = Categorical(probs, logits)
        shape = self.categorical.param_shape
        super().__init__(self.categorical.batch_shape, shape[-1:], validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self.categorical.param_shape

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """Counts of so many draws."""
        return multinomial(self.total_count)

    mean = formula(lambda self: times(self.probs, self.total_count))
    variance = formula(lambda self: times(self.total_count, self.probs) * minus(1, self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = size_of(sample_shape)
        drawn = self.categorical.sample((self.total_count, *shape))
        drawn = methods.permute(drawn, *range(1, drawn.ndim), 0)
        counts = torch.zeros(self.shape_of(shape), dtype=drawn.dtype)
        methods.scatter_add_(counts, -1, drawn, torch.ones_like(drawn))
        return methods.type_as(counts, self.probs)

    def entropy(self) -> Any:
        count = torch.tensor(self.total_count)
        first = count * self.categorical.entropy() - torch.lgamma(plus(count, 1))
        trials = Binomial(self.total_count, self.probs)
        support = operators.getitem(trials.enumerate_support(False), slice(1, None))
        weights = torch.lgamma(plus(support, 1))
        return first + methods.sum(torch.exp(trials.log_prob(support)) * weights, [0, -1])

    def log_density(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, value)
        never = torch.logical_and(torch.eq(value, 0), torch.eq(logits, -math.inf))
        logits = torch.where(never, 0, logits)
        ways = torch.lgamma(plus(methods.sum(value, -1), 1))
        same = methods.sum(torch.lgamma(plus(value, 1)), -1)
        return ways - same + methods.sum(logits * value, -1)


class MixtureSameFamily(Distribution):
    """One of several distributions of a kind, chosen by a categorical one.

    Args:
        mixture_distribution: chooses.
        component_distribution: the distributions, side by side in the last batch dimension.
    """

    __slots__ = ("component_distribution", "mixture_distribution")

    language_attributes = Distribution.language_attributes | {
        "component_distribution",
        "mixture_distribution",
    }

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise value_error(
                " The Mixture distribution needs to be an  instance of"
                " torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise value_error(
                "The Component distribution needs to be an instance of"
                " torch.distributions.Distribution"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        count = mixture_distribution.logits.array.shape[-1]
        if component_distribution.batch_shape[-1] != count:
            raise value_error(
                f"`mixture_distribution component` ({count}) does not equal"
                f" `component_distribution.batch_shape[-1]`"
                f" ({component_distribution.batch_shape[-1]})"
            )
        batch = component_distribution.batch_shape[:-1]
        super().__init__(batch, component_distribution.event_shape, validate_args)

    def _pad(self, value: Any) -> Any:
        return methods.unsqueeze(value, -1 - len(self.event_shape))

    def _weights(self) -> Any:
        """The probabilities, with dimensions for those of the components."""
        probs = self.mixture_distribution.probs
        shape = probs.array.shape
        outer = len(self.mixture_distribution.batch_shape)
        more = 0 if outer == 1 else len(self.batch_shape) - outer
        ones = (1,) * len(self.event_shape)
        return methods.reshape(probs, (*shape[:-1], *(1,) * more, *shape[-1:], *ones))

    def _mixed(self, values: Any) -> Any:
        return torch.sum(self._weights() * values, dim=-1 - len(self.event_shape))

    mean = formula(lambda self: self._mixed(self.component_distribution.mean))

    @formula
    def variance(self) -> Any:
        within = self._mixed(self.component_distribution.variance)
        apart = self.component_distribution.mean - self._pad(self.mean)
        return within + self._mixed(methods.pow(apart, 2.0))

    def cdf(self, value: Any) -> Any:
        below = self.component_distribution.cdf(self._pad(value))
        return torch.sum(below * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, value: Any) -> Any:
        each = self.component_distribution.log_prob(self._pad(value))
        weights = torch.log_softmax(self.mixture_distribution.logits, dim=-1)
        return torch.logsumexp(each + weights, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            dim = len(size_of(sample_shape)) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            shape, event = chosen.array.shape, self.event_shape
            index = methods.reshape(chosen, (*shape, *(1,) * (len(event) + 1)))
            index = methods.repeat(index, (*(1,) * len(shape), 1, *event))
            return methods.squeeze(torch.gather(drawn, dim, index), dim)

    def __repr__(self) -> str:
        parts = f"{self.mixture_distribution!r},\n  {self.component_distribution!r}"
        return f"MixtureSameFamily(\n  {parts})"


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws let gradients through as if they were the probabilities."""

    home = "torch.distributions.one_hot_categorical"
    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        probs = self.probs
        return self.sample(sample_shape) + (probs - methods.detach(probs))
