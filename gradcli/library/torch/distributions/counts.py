"""Distributions of counts and of several kinds: `NegativeBinomial Multinomial MixtureSameFamily
OneHotCategoricalStraightThrough`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.autograd.modes import NoGrad
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.distributions.constraints import (
    COUNT,
    REAL,
    REAL_VECTOR,
    SIMPLEX,
    Constraint,
    Constraints,
    greater_than_eq,
    half_open_interval,
    multinomial,
)
from gradcli.library.torch.distributions.continuous import Gamma
from gradcli.library.torch.distributions.discrete import (
    BINARY,
    CATEGORICAL,
    Binomial,
    Categorical,
    OneHotCategorical,
    set_up_trials,
)
from gradcli.library.torch.distributions.distribution import (
    Distribution,
    Formulas,
    broadcast_all,
    formula,
    minus,
    plus,
    size_of,
    times,
)
from gradcli.ops.binding.functions import F, methods, operators, torch


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
