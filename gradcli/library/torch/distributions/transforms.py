"""Distributions of functions of what is drawn: `TransformedDistribution LogNormal`, and the
functions.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.autograd.modes import NoGrad
from gradcli.errors import GradcliError
from gradcli.language.objects.classes.extensible import Extensible
from gradcli.language.objects.types import check_kind
from gradcli.library.torch.distributions.constraints import (
    POSITIVE,
)
from gradcli.library.torch.distributions.continuous import Normal
from gradcli.library.torch.distributions.distribution import (
    Distribution,
    Formulas,
    broadcast_all,
    formula,
    minus,
    over,
    plus,
    read_from,
    sum_rightmost,
    times,
)
from gradcli.ops.binding.functions import F, methods, operators, torch


class Transform(Extensible):
    """The base of functions with an inverse, which a program may derive its own from: it defines
    `_call`, `_inverse` and `log_abs_det_jacobian`.
    """

    __slots__ = ()

    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"_call", "_inverse", "bijective", "inv", "log_abs_det_jacobian", "sign"}
    )
    home = "torch.distributions.transforms"
    tables = ("torch.distributions", "torch.distributions.transforms")
    bijective: ClassVar[bool] = True
    sign: ClassVar[int] = 1

    def __init__(self, cache_size: int = 0) -> None:
        """Nothing to set up."""

    def __call__(self, x: Any) -> Any:
        return self._call(x)

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _Inverse(self)

    def _call(self, x: Any) -> Any:
        raise GradcliError("E205", "a transform has to define _call()")

    def _inverse(self, y: Any) -> Any:
        raise GradcliError("E205", "a transform has to define _inverse()")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative's absolute value."""
        raise GradcliError("E205", "a transform has to define log_abs_det_jacobian()")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    __slots__ = ("of",)

    language_name = "torch.distributions.transforms._InverseTransform"

    def __init__(self, of: Transform) -> None:
        self.of = of

    @property
    def inv(self) -> Transform:
        return self.of

    def _call(self, x: Any) -> Any:
        return self.of._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self.of._call(y)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """That of the function."""
        return self.of.sign

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.of.log_abs_det_jacobian(y, x)


class ExpTransform(Transform):
    """y = exp(x)."""

    def _call(self, x: Any) -> Any:
        return torch.exp(x)

    def _inverse(self, y: Any) -> Any:
        return torch.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    def _call(self, x: Any) -> Any:
        info = torch.finfo(x.dtype)
        return torch.clamp(torch.sigmoid(x), min=info.tiny, max=1.0 - info.eps)

    def _inverse(self, y: Any) -> Any:
        info = torch.finfo(y.dtype)
        y = methods.clamp(y, min=info.tiny, max=1.0 - info.eps)
        return torch.log(y) - torch.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    def _call(self, x: Any) -> Any:
        return torch.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return times(2.0, minus(math.log(2.0), x) - F.softplus(times(-2.0, x)))


class AbsTransform(Transform):
    """y = |x|, which has no inverse: `inv` returns one of the two solutions."""

    bijective = False

    def _call(self, x: Any) -> Any:
        return methods.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class PowerTransform(Transform):
    """y = x ** exponent."""

    __slots__ = ("exponent",)

    language_attributes = Transform.language_attributes | {"exponent"}

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """1 where it rises, -1 where it falls."""
        return methods.sign(self.exponent)

    def _call(self, x: Any) -> Any:
        return methods.pow(x, self.exponent)

    def _inverse(self, y: Any) -> Any:
        return methods.pow(y, over(1, self.exponent))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return methods.log(methods.abs(self.exponent * y / x))


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return methods.log(methods.neg(methods.expm1(-y))) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x)


class SoftmaxTransform(Transform):
    """y = exp(x) over its sum, which has no inverse: `inv` returns one of many."""

    bijective = False
    event_dim: ClassVar[int] = 1

    def _call(self, x: Any) -> Any:
        exponentials = torch.exp(x - operators.getitem(methods.max(x, -1, True), 0))
        return exponentials / methods.sum(exponentials, -1, True)

    def _inverse(self, y: Any) -> Any:
        return methods.log(y)


class AffineTransform(Transform):
    """y = loc + scale * x."""

    __slots__ = ("event_dim", "loc", "scale")

    language_attributes = Transform.language_attributes | {"event_dim", "loc", "scale"}

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        self.loc = loc
        self.scale = scale
        self.event_dim = event_dim

    def _call(self, x: Any) -> Any:
        return plus(self.loc, times(self.scale, x))

    def _inverse(self, y: Any) -> Any:
        return over(minus(y, self.loc), self.scale)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        """1 where it rises, -1 where it falls."""
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return methods.sign(self.scale)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, (int, float)):
            logarithms = torch.full_like(x, math.log(abs(self.scale)))
        else:
            logarithms = torch.log(torch.abs(self.scale))
        logarithms = sum_rightmost(logarithms, self.event_dim)
        return methods.expand(logarithms, x.array.shape[: x.ndim - self.event_dim])


class ComposeTransform(Transform):
    """Several, one after the other."""

    __slots__ = ("parts",)

    language_attributes = Transform.language_attributes | {"parts"}

    def __init__(self, parts: Any, cache_size: int = 0) -> None:
        self.parts = list(parts)
        for part in self.parts:
            check_kind(part, Transform, "a part of a ComposeTransform is a transform")

    def __repr__(self) -> str:
        inner = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {inner}\n)"

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        total: Any = 0
        for part in self.parts:
            after = part(x)
            total = plus(total, part.log_abs_det_jacobian(x, after))
            x = after
        return total


class TransformedDistribution(Distribution):
    """What transforms make of a distribution's draws.

    A class derived from it says in `computed` which of its parameters are those of what it
    transforms.
    """

    __slots__ = ("base_dist", "transforms")

    language_attributes = Distribution.language_attributes | {"base_dist", "transforms"}
    has_rsample = True

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        self.base_dist = base_distribution
        single = isinstance(transforms, Transform)
        self.transforms = [transforms] if single else list(transforms)
        super().__init__(
            base_distribution.batch_shape, base_distribution.event_shape, validate_args
        )

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_density(self, value: Any) -> Any:
        dims = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            kept = getattr(transform, "event_dim", 0)
            change = sum_rightmost(transform.log_abs_det_jacobian(x, value), dims - kept)
            total = minus(total, change)
            value = x
        base = self.base_dist.log_prob(value)
        return plus(total, sum_rightmost(base, dims - len(self.base_dist.event_shape)))

    def _rising(self, value: Any) -> Any:
        """A probability, or that of the rest where the transforms turn the order around."""
        sign: Any = 1
        for transform in self.transforms:
            sign = times(sign, transform.sign)
        if isinstance(sign, int) and sign == 1:
            return value
        return plus(times(sign, minus(value, 0.5)), 0.5)

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._rising(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._transformed(self.base_dist.icdf(self._rising(value)))


class LogNormal(TransformedDistribution):
    """The exponentials of normal numbers."""

    support = POSITIVE
    computed: ClassVar[Formulas] = read_from("base_dist", "loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    mean = formula(lambda self: torch.exp(self.loc + over(methods.pow(self.scale, 2), 2)))
    mode = formula(lambda self: torch.exp(self.loc - methods.square(self.scale)))

    @formula
    def variance(self) -> Any:
        square = methods.pow(self.scale, 2)
        return torch.expm1(square) * torch.exp(times(2, self.loc) + square)

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
