"""Distributions of functions of what is drawn, `TransformedDistribution LogNormal`, and the
functions; and those that are functions of simpler ones: `HalfNormal HalfCauchy Gumbel Weibull
Pareto Kumaraswamy InverseGamma RelaxedBernoulli RelaxedOneHotCategorical`.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.layout.sizes import Size
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, attribute_error, value_error
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.classes.extensible import Extensible
from gradcli.language.objects.classes.user_classes import init_next, own_method
from gradcli.language.objects.types import check_kind, type_of
from gradcli.library.torch.distributions.distribution import (
    NONNEGATIVE,
    POSITIVE,
    REAL,
    REAL_VECTOR,
    SIMPLEX,
    UNIT,
    Constraint,
    Constraints,
    Distribution,
    Formulas,
    Independent,
    broadcast_all,
    formula,
    greater_than_eq,
    independent,
    interval,
    minus,
    over,
    plus,
    read_from,
    sum_rightmost,
    times,
)
from gradcli.library.torch.distributions.elementary import (
    BINARY,
    CATEGORICAL,
    Categorical,
    Cauchy,
    Exponential,
    Gamma,
    Normal,
    Uniform,
    clamped,
    one_of,
)
from gradcli.library.torch.nn.attributes import names
from gradcli.ops.binding.arguments import numbers_in
from gradcli.ops.binding.functions import F, methods, torch

# --- functions of what is drawn -------------------------------------------------------------------


class Transform(Extensible):
    """The base of functions with an inverse, which a program may derive its own from: it defines
    `domain`, `codomain`, `_call`, `_inverse` and `log_abs_det_jacobian`.

    Args:
        cache_size: 1 to keep the last argument with its value, so that the inverse of that very
            tensor is the argument itself; 0 to keep nothing.

    Attributes:
        kept: that argument and its value; None where nothing is kept.
    """

    fields: ClassVar[tuple[str, ...]] = ("_inv", "kept")

    language_attributes: ClassVar[frozenset[str]] = names(
        "_call _inverse bijective codomain domain event_dim forward_shape inv inverse_shape "
        "log_abs_det_jacobian sign with_cache"
    )
    home = "torch.distributions.transforms"
    tables = ("torch.distributions", "torch.distributions.transforms")
    bijective: ClassVar[bool] = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise value_error("cache_size must be 0 or 1")
        init_next(self, Transform)
        self.kept: tuple[Any, Any] | None = (None, None) if cache_size else None
        self._inv: Transform | None = None

    def __call__(self, x: Any) -> Any:
        if self.kept is None:
            return self._call(x)
        argument, value = self.kept
        if x is argument:
            return value
        value = self._call(x)
        self.kept = x, value
        return value

    def argument_of(self, y: Any) -> Any:
        """What the inverse makes of a value."""
        if self.kept is None:
            return self._inverse(y)
        argument, value = self.kept
        if y is value:
            return argument
        argument = self._inverse(y)
        self.kept = argument, y
        return argument

    @property
    def domain(self) -> Constraint:
        """What it takes; raises E207 where a class does not say."""
        raise attribute_error(f"'{type(self).__name__}' object has no attribute 'domain'")

    @property
    def codomain(self) -> Constraint:
        """What it gives; raises E207 where a class does not say."""
        raise attribute_error(f"'{type(self).__name__}' object has no attribute 'codomain'")

    @property
    def event_dim(self) -> int:
        """How many dimensions one argument and one value have."""
        taken, given = taken_by(self).event_dim, given_by(self).event_dim
        if taken == given:
            return taken
        raise value_error("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse."""
        if self._inv is None:
            self._inv = _Inverse(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where it rises, -1 where it falls."""
        raise GradcliError("E205", "a transform has to define sign", text="")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same function, with a memory of so many arguments; raises E205 where a class with
        settings of its own does not say how.
        """
        if (self.kept is not None) == bool(cache_size):
            return self
        cls = type_of(self)
        if own_method(self, "__init__") is not None:
            raise GradcliError("E205", f"{cls!r}.with_cache is not implemented")
        return cls(cache_size=cache_size)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the values of arguments of a shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the arguments of values of a shape."""
        return shape

    def _call(self, x: Any) -> Any:
        raise GradcliError("E205", "a transform has to define _call()", text="")

    def _inverse(self, y: Any) -> Any:
        raise GradcliError("E205", "a transform has to define _inverse()", text="")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative's absolute value."""
        raise GradcliError("E205", "a transform has to define log_abs_det_jacobian()", text="")

    def __eq__(self, other: object) -> bool:
        return are_alike(self, other) if isinstance(other, Transform) else NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def taken_by(transform: Transform) -> Constraint:
    """The domain of a transform, which may be one of the program's; raises as reading it does."""
    domain: Constraint = get_attribute(transform, "domain")
    return domain


def given_by(transform: Transform) -> Constraint:
    """The codomain of a transform, which may be one of the program's; raises as reading it does."""
    codomain: Constraint = get_attribute(transform, "codomain")
    return codomain


class _Inverse(Transform):
    language_name = "torch.distributions.transforms._InverseTransform"

    _inv: Transform

    def __init__(self, of: Transform) -> None:
        super().__init__()
        self._inv = of

    domain = formula(lambda self: given_by(self._inv))
    codomain = formula(lambda self: taken_by(self._inv))
    bijective = formula(lambda self: get_attribute(self._inv, "bijective"))
    sign = formula(lambda self: get_attribute(self._inv, "sign"))

    def __call__(self, x: Any) -> Any:
        return self._inv.argument_of(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ExpTransform(Transform):
    """y = exp(x)."""

    domain = REAL
    codomain = POSITIVE
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return torch.exp(x)

    def _inverse(self, y: Any) -> Any:
        return torch.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    domain = REAL
    codomain = UNIT
    bijective = True
    sign = 1

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

    domain = REAL
    codomain = interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return torch.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return times(2.0, minus(math.log(2.0), x) - F.softplus(times(-2.0, x)))


class AbsTransform(Transform):
    """y = |x|, which has no inverse: `inv` returns one of the two solutions."""

    domain = REAL
    codomain = POSITIVE

    def _call(self, x: Any) -> Any:
        return methods.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class PowerTransform(Transform):
    """y = x ** exponent."""

    fields: ClassVar[tuple[str, ...]] = ("exponent",)

    language_attributes = Transform.language_attributes | {"exponent"}
    domain = POSITIVE
    codomain = POSITIVE
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    sign = formula(lambda self: methods.sign(self.exponent))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return PowerTransform(self.exponent, cache_size)

    def forward_shape(self, shape: Any) -> Any:
        return torch.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape

    def _call(self, x: Any) -> Any:
        return methods.pow(x, self.exponent)

    def _inverse(self, y: Any) -> Any:
        return methods.pow(y, over(1, self.exponent))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return methods.log(methods.abs(self.exponent * y / x))


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    domain = REAL
    codomain = POSITIVE
    bijective = True
    sign = 1

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return methods.log(methods.neg(methods.expm1(-y))) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x)


class SoftmaxTransform(Transform):
    """y = exp(x) over its sum, which has no inverse: `inv` returns one of many."""

    domain = REAL_VECTOR
    codomain = SIMPLEX

    def _call(self, x: Any) -> Any:
        exponentials = torch.exp(x - methods.max(x, -1, True)[0])
        return exponentials / methods.sum(exponentials, -1, True)

    def _inverse(self, y: Any) -> Any:
        return methods.log(y)


class AffineTransform(Transform):
    """y = loc + scale * x."""

    fields: ClassVar[tuple[str, ...]] = ("dims", "loc", "scale")

    language_attributes = Transform.language_attributes | {"loc", "scale"}
    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc = loc
        self.scale = scale
        self.dims = event_dim

    domain = codomain = formula(lambda self: independent(REAL, self.dims) if self.dims else REAL)
    event_dim = formula(lambda self: self.dims)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return AffineTransform(self.loc, self.scale, self.dims, cache_size)

    def forward_shape(self, shape: Any) -> Any:
        settings = [value for value in (self.loc, self.scale) if isinstance(value, Tensor)]
        return torch.broadcast_shapes(shape, *(value.shape for value in settings))

    inverse_shape = forward_shape

    def _call(self, x: Any) -> Any:
        return plus(self.loc, times(self.scale, x))

    def _inverse(self, y: Any) -> Any:
        return over(minus(y, self.loc), self.scale)

    @property
    def sign(self) -> Any:
        """1 where it rises, -1 where it falls."""
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return methods.sign(self.scale)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, (int, float)):
            logarithms = torch.full_like(x, math.log(abs(self.scale)))
        else:
            logarithms = torch.log(torch.abs(self.scale))
        logarithms = sum_rightmost(logarithms, self.dims)
        return methods.expand(logarithms, x.array.shape[: x.ndim - self.dims])


class ComposeTransform(Transform):
    """Several, one after the other, each with a memory of its own."""

    fields: ClassVar[tuple[str, ...]] = ("parts",)

    language_attributes = Transform.language_attributes | {"parts"}

    def __init__(self, parts: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        for part in self.parts:
            check_kind(part, Transform, "a part of a ComposeTransform is a transform")
        if cache_size:
            self.parts = [part.with_cache(cache_size) for part in self.parts]

    def __repr__(self) -> str:
        inner = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {inner}\n)"

    @property
    def domain(self) -> Constraint:
        """That of the first, of as many dimensions as any of them needs."""
        return _widened([(taken_by(part), given_by(part)) for part in self.parts])

    @property
    def codomain(self) -> Constraint:
        """That of the last, of as many dimensions as any of them needs."""
        return _widened([(given_by(part), taken_by(part)) for part in reversed(self.parts)])

    bijective = formula(lambda self: all(get_attribute(part, "bijective") for part in self.parts))

    @property
    def sign(self) -> Any:
        """1 where it rises, -1 where it falls."""
        sign: Any = 1
        for part in self.parts:
            sign = times(sign, get_attribute(part, "sign"))
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        if (self.kept is not None) == bool(cache_size):
            return self
        return ComposeTransform(self.parts, cache_size)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return torch.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms = []
        dims = self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            change = part.log_abs_det_jacobian(before, after)
            taken = taken_by(part).event_dim
            terms.append(sum_rightmost(change, dims - taken))
            dims += given_by(part).event_dim - taken
        return reduce(plus, terms)


def _widened(ends: list[tuple[Constraint, Constraint]]) -> Constraint:
    """What the first of several transforms takes, of as many dimensions as all of them need.

    Args:
        ends: what each takes and gives, in their order.
    """
    if not ends:
        return REAL
    first = ends[0][0]
    dims = ends[-1][1].event_dim
    for before, after in reversed(ends):
        dims = max(dims + before.event_dim - after.event_dim, before.event_dim)
    return independent(first, dims - first.event_dim) if dims > first.event_dim else first


def _number(value: Any) -> Any:
    return numbers_in(value) if isinstance(value, Tensor) else value


def are_alike(one: Any, other: Any) -> bool:
    """Whether two transforms, or lists of them, are the same functions with equal numbers; one that
    a program defined is like itself alone, and so is one of another file that does not say that it
    `compares`.
    """
    if isinstance(one, list):
        return len(one) == len(other) and all(map(are_alike, one, other))
    if not isinstance(one, Transform):
        return bool(np.all(_number(one) == _number(other)))
    if one is other or type(one) is not type(other):
        return one is other
    if type(one).__module__ != __name__ and "compares" not in vars(type(one)):
        return False
    own: tuple[str, ...] = vars(type(one)).get("fields", ())
    if isinstance(one, _Inverse):
        own = ("_inv",)
    return all(are_alike(getattr(one, name), getattr(other, name)) for name in own)


class TransformedDistribution(Distribution):
    """What transforms make of a distribution's draws.

    A class derived from it says in `computed` which of its parameters are those of what it
    transforms.
    """

    fields: ClassVar[tuple[str, ...]] = ("base_dist", "transforms")

    language_attributes = Distribution.language_attributes | {"base_dist", "transforms"}

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        single = isinstance(transforms, Transform)
        self.transforms: list[Any] = [transforms] if single else transforms
        if not isinstance(self.transforms, list):
            raise value_error(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(transform, Transform) for transform in self.transforms):
            raise value_error("transforms must be a Transform or a list of Transforms")
        whole = ComposeTransform(self.transforms)
        taken, given = whole.domain.event_dim, whole.codomain.event_dim
        base, dims = base_distribution, len(base_distribution.event_shape)
        shape = Size((*base.batch_shape, *base.event_shape))
        if len(shape) < taken:
            raise value_error(
                f"base_distribution needs to have shape with size at least {taken}, but got"
                f" {shape}."
            )
        drawn = tuple(whole.forward_shape(shape))
        wanted = tuple(whole.inverse_shape(Size(drawn)))
        if wanted != tuple(shape):
            base = base.expand(wanted[: len(wanted) - dims])
        self.base_dist = Independent(base, taken - dims) if taken > dims else base
        cut = len(drawn) - max(given, dims + given - taken)
        super().__init__(drawn[:cut], drawn[cut:], validate_args)

    has_rsample = formula(lambda self: self.base_dist.has_rsample)

    @property
    def support(self) -> Constraint | None:  # type: ignore[override]
        """What the last transform gives, for each part of an event."""
        if not self.transforms:
            return self.base_dist.support
        support: Constraint = given_by(self.transforms[-1])
        dims = len(self.event_shape) - support.event_dim
        return independent(support, dims) if dims > 0 else support

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
            taken = taken_by(transform).event_dim
            dims += taken - given_by(transform).event_dim
            change = sum_rightmost(transform.log_abs_det_jacobian(x, value), dims - taken)
            total = minus(total, change)
            value = x
        base = self.base_dist.log_prob(value)
        return plus(total, sum_rightmost(base, dims - len(self.base_dist.event_shape)))

    def _rising(self, value: Any) -> Any:
        """A probability, or that of the rest where the transforms turn the order around."""
        sign: Any = 1
        for transform in self.transforms:
            sign = times(sign, get_attribute(transform, "sign"))
        if isinstance(sign, int) and sign == 1:
            return value
        return plus(times(sign, minus(value, 0.5)), 0.5)

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self.is_checked:
            self.base_dist.check_value(value)
        return self._rising(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._transformed(self.base_dist.icdf(self._rising(value)))


class LogNormal(TransformedDistribution):
    """The exponentials of normal numbers."""

    support = POSITIVE
    computed: ClassVar[Formulas] = read_from("base_dist", "loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    arg_constraints = formula(lambda self: self.base_dist.arg_constraints)
    mean = formula(lambda self: torch.exp(self.loc + over(methods.pow(self.scale, 2), 2)))
    mode = formula(lambda self: torch.exp(self.loc - methods.square(self.scale)))

    @formula
    def variance(self) -> Any:
        square = methods.pow(self.scale, 2)
        return torch.expm1(square) * torch.exp(times(2, self.loc) + square)

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


# --- distributions --------------------------------------------------------------------------------


EULER = 0.57721566490153286060


class _Half(TransformedDistribution):
    """The base of those of absolute values."""

    constraints: ClassVar[Constraints] = {"scale": POSITIVE}
    computed: ClassVar[Formulas] = read_from("base_dist", "scale")
    support = NONNEGATIVE
    whole: ClassVar[type[Distribution]]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base: Any = self.whole
        super().__init__(base(0, scale, validate_args=False), AbsTransform(), validate_args)
        if self.is_checked:
            self.check_parameter("scale", self.base_dist.scale)

    mode = formula(lambda self: torch.zeros_like(self.scale))

    def log_density(self, value: Any) -> Any:
        density = plus(self.base_dist.log_prob(value), math.log(2))
        return torch.where(torch.ge(value, 0), density, -math.inf)

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return minus(times(2, self.base_dist.cdf(value)), 1)

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf(over(plus(value, 1), 2))

    def entropy(self) -> Any:
        return minus(self.base_dist.entropy(), math.log(2))


class HalfNormal(_Half):
    """Absolute values of normally distributed numbers around 0."""

    whole = Normal

    mean = formula(lambda self: times(self.scale, math.sqrt(2 / math.pi)))
    variance = formula(lambda self: times(methods.pow(self.scale, 2), 1 - 2 / math.pi))


class HalfCauchy(_Half):
    """Absolute values of a Cauchy distribution's numbers around 0."""

    whole = Cauchy

    mean = formula(lambda self: torch.full(self.batch_shape, math.inf, dtype=self.scale.dtype))
    variance = formula(lambda self: self.base_dist.variance)


class Gumbel(TransformedDistribution):
    """The largest of many numbers."""

    constraints: ClassVar[Constraints] = {"loc": REAL, "scale": POSITIVE}
    support = REAL

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        first, second = broadcast_all(loc, scale)
        self.arguments = {"loc": first, "scale": second}
        info = torch.finfo(first.dtype)
        bounds = [torch.full_like(first, bound) for bound in (info.tiny, 1 - info.eps)]
        steps = [
            ExpTransform().inv,
            AffineTransform(0, -torch.ones_like(second)),
            ExpTransform().inv,
            AffineTransform(loc, -second),
        ]
        super().__init__(Uniform(bounds[0], bounds[1], validate_args), steps, validate_args)

    def log_density(self, value: Any) -> Any:
        y = (self.loc - value) / self.scale
        return y - methods.exp(y) - methods.log(self.scale)

    mean = formula(lambda self: self.loc + times(self.scale, EULER))
    mode = formula(lambda self: self.loc)
    stddev = formula(lambda self: times(math.pi / math.sqrt(6), self.scale))
    variance = formula(lambda self: methods.pow(self.stddev, 2))

    def entropy(self) -> Any:
        return plus(methods.log(self.scale), 1 + EULER)


class Weibull(TransformedDistribution):
    """Times until something breaks that ages, or does not, as `concentration` says."""

    constraints: ClassVar[Constraints] = {"scale": POSITIVE, "concentration": POSITIVE}
    computed: ClassVar[Formulas] = {
        "concentration_reciprocal": lambda self: methods.reciprocal(self.concentration)
    }
    support = POSITIVE

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        first, second = broadcast_all(scale, concentration)
        self.arguments = {"scale": first, "concentration": second}
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, first)]
        super().__init__(
            Exponential(torch.ones_like(first), validate_args=validate_args), steps, validate_args
        )

    def _moment(self, power: int) -> Any:
        powered = self.concentration_reciprocal
        powered = powered if power == 1 else times(power, powered)
        return torch.lgamma(plus(1, powered))

    mean = formula(lambda self: self.scale * torch.exp(self._moment(1)))

    @formula
    def mode(self) -> Any:
        share = minus(self.concentration, 1) / self.concentration
        return self.scale * methods.pow(share, methods.reciprocal(self.concentration))

    @formula
    def variance(self) -> Any:
        spread = torch.exp(self._moment(2)) - torch.exp(times(2, self._moment(1)))
        return methods.pow(self.scale, 2) * spread

    def entropy(self) -> Any:
        reciprocal = self.concentration_reciprocal
        return plus(times(EULER, minus(1, reciprocal)) + torch.log(self.scale * reciprocal), 1)


class Pareto(TransformedDistribution):
    """Numbers above `scale` that fall off as a power."""

    constraints: ClassVar[Constraints] = {"alpha": POSITIVE, "scale": POSITIVE}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        first, second = broadcast_all(scale, alpha)
        self.arguments = {"alpha": second, "scale": first}
        base = Exponential(second, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, first)], validate_args)

    @formula
    def mean(self) -> Any:
        alpha = methods.clamp(self.alpha, min=1)
        return alpha * self.scale / minus(alpha, 1)

    mode = formula(lambda self: self.scale)

    @formula
    def variance(self) -> Any:
        alpha = methods.clamp(self.alpha, min=2)
        below = methods.pow(minus(alpha, 1), 2) * minus(alpha, 2)
        return methods.pow(self.scale, 2) * alpha / below

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """From `scale` on."""
        return greater_than_eq(self.scale)

    def entropy(self) -> Any:
        return methods.log(self.scale / self.alpha) + plus(1, methods.reciprocal(self.alpha))


class Kumaraswamy(TransformedDistribution):
    """Shares between 0 and 1, much as `Beta` has them."""

    constraints: ClassVar[Constraints] = {"concentration1": POSITIVE, "concentration0": POSITIVE}
    support = UNIT

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        one, zero = broadcast_all(concentration1, concentration0)
        self.arguments = {"concentration1": one, "concentration0": zero}
        bounds = [torch.full_like(zero, bound) for bound in (0, 1)]
        steps = [
            PowerTransform(methods.reciprocal(zero)),
            AffineTransform(1.0, -1.0),
            PowerTransform(methods.reciprocal(one)),
        ]
        super().__init__(Uniform(bounds[0], bounds[1], validate_args), steps, validate_args)

    def _moment(self, power: int) -> Any:
        a, b = self.concentration1, self.concentration0
        first = plus(1, over(power, a))
        return b * torch.exp(torch.lgamma(first) + torch.lgamma(b) - torch.lgamma(first + b))

    mean = formula(lambda self: self._moment(1))

    @formula
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        log_mode = methods.reciprocal(b) * methods.log1p(-b) - methods.log1p(-b * a)
        none = torch.logical_or(torch.lt(b, 1), torch.lt(a, 1))
        return methods.exp(torch.where(none, math.nan, log_mode))

    variance = formula(lambda self: self._moment(2) - torch.pow(self.mean, 2))

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = plus(torch.digamma(plus(b, 1)), EULER)
        rest = minus(1, methods.reciprocal(b)) + minus(1, methods.reciprocal(a)) * harmonic
        return rest - torch.log(a) - torch.log(b)


class InverseGamma(TransformedDistribution):
    """Reciprocals of a gamma distribution's numbers."""

    constraints: ClassVar[Constraints] = {"concentration": POSITIVE, "rate": POSITIVE}
    computed: ClassVar[Formulas] = read_from("base_dist", "concentration", "rate")
    support = POSITIVE

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        minus_one = -methods.new_ones(base.rate, ())
        super().__init__(base, PowerTransform(minus_one), validate_args)

    @formula
    def mean(self) -> Any:
        mean = self.rate / minus(self.concentration, 1)
        return torch.where(torch.gt(self.concentration, 1), mean, math.inf)

    mode = formula(lambda self: self.rate / plus(self.concentration, 1))

    @formula
    def variance(self) -> Any:
        below = methods.square(minus(self.concentration, 1)) * minus(self.concentration, 2)
        variance = methods.square(self.rate) / below
        return torch.where(torch.gt(self.concentration, 2), variance, math.inf)

    def entropy(self) -> Any:
        concentration = self.concentration
        known = concentration + methods.log(self.rate) + methods.lgamma(concentration)
        return known - plus(1, concentration) * methods.digamma(concentration)


class LogitRelaxedBernoulli(Distribution):
    """Logits of numbers between 0 and 1 that are close to a Bernoulli distribution's."""

    home = "torch.distributions.relaxed_bernoulli"
    language_attributes = Distribution.language_attributes | {"temperature"}
    constraints: ClassVar[Constraints] = {"probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = BINARY
    support = REAL
    fields: ClassVar[tuple[str, ...]] = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self.set_up(validate_args, **one_of(probs, logits))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        probs = clamped(self.expanded("probs", shape))
        uniform = clamped(torch.rand(shape, dtype=probs.dtype))
        drawn = methods.log(uniform) - methods.log1p(-uniform)
        return over(drawn + methods.log(probs) - methods.log1p(-probs), self.temperature)

    def log_density(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, value)
        apart = logits - methods.mul(value, self.temperature)
        scaled = methods.log(self.temperature) + apart
        return scaled - times(2, methods.log1p(methods.exp(apart)))


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that are the closer to one of them the lower the temperature."""

    constraints: ClassVar[Constraints] = {"probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = read_from("base_dist", "temperature", "probs", "logits")
    has_rsample = True
    support = UNIT

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(Distribution):
    """Logarithms of what `RelaxedOneHotCategorical` draws."""

    fields: ClassVar[tuple[str, ...]] = ("categorical", "temperature")

    home = "torch.distributions.relaxed_categorical"
    language_attributes = Distribution.language_attributes | {"temperature"}
    constraints: ClassVar[Constraints] = {"probs": SIMPLEX, "logits": REAL_VECTOR}
    computed: ClassVar[Formulas] = CATEGORICAL
    support = REAL_VECTOR
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self.categorical.param_shape
        super().__init__(self.categorical.batch_shape, shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        uniform = clamped(torch.rand(shape, dtype=self.logits.dtype))
        gumbels = -methods.log(-methods.log(uniform))
        scores = over(self.logits + gumbels, self.temperature)
        return scores - methods.logsumexp(scores, dim=-1, keepdim=True)

    def log_density(self, value: Any) -> Any:
        count = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        temperature = self.temperature
        norm = methods.lgamma(torch.full_like(temperature, float(count)))
        norm = norm - methods.mul(methods.log(temperature), -(count - 1))
        score = logits - methods.mul(value, temperature)
        score = methods.sum(score - methods.logsumexp(score, dim=-1, keepdim=True), -1)
        return score + norm


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares of categories that are the closer to a single one the lower the temperature."""

    home = "torch.distributions.relaxed_categorical"
    constraints: ClassVar[Constraints] = {"probs": SIMPLEX, "logits": REAL_VECTOR}
    computed: ClassVar[Formulas] = read_from("base_dist", "temperature", "probs", "logits")
    support = SIMPLEX

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
