"""`torch.distributions.constraints`: which values a parameter, or what is drawn, may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.library.torch.nn.attributes import shown
from gradcli.ops.binding.arguments import numbers_in
from gradcli.ops.binding.catalogue import modules
from gradcli.state import look

TABLE = modules["torch.distributions.constraints"]


class Constraint:
    """Which values a parameter, or what is drawn, may have.

    Attributes:
        text: as PyTorch prints it.
        holds: the truth values of an array.
        event_dim: how many dimensions one value has.
        is_discrete: whether the values are apart from each other.
        kernel: the first kernel of PyTorch's that it needs and complex numbers have not, if any.
        bounds: `lower_bound` and `upper_bound`, where it has them.
        read: the bounds that are tensors, whose numbers `holds` knows.
    """

    __slots__ = ("bounds", "event_dim", "holds", "is_discrete", "kernel", "read", "text")

    language_name: ClassVar[str] = "torch.distributions.constraints.Constraint"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"check", "event_dim", "is_discrete"})

    def __init__(
        self,
        text: str,
        holds: Callable[[Any], Any],
        event_dim: int = 0,
        is_discrete: bool = False,
        kernel: str | None = None,
        **bounds: Any,
    ) -> None:
        self.text = text
        self.holds = holds
        self.event_dim = event_dim
        self.is_discrete = is_discrete
        self.kernel = kernel
        self.bounds = bounds
        self.read = [bound for bound in bounds.values() if isinstance(bound, Tensor)]

    def check(self, value: Tensor) -> Tensor:
        """The truth values of a tensor."""
        if not isinstance(value, Tensor):
            raise type_error("a constraint checks tensors")
        return Tensor(self.truth_of(value))

    def truth_of(self, value: Tensor) -> Any:
        """The truth values of a tensor as an array on the host.

        Raises E203 for complex numbers where the constraint orders them.
        """
        array = _array(value)
        if array.dtype.kind == "c" and self.kernel is not None:
            kind = f"Complex{'Float' if array.dtype.itemsize == 8 else 'Double'}"
            raise GradcliError(
                "E203",
                f"\"{self.kernel}_cpu\" not implemented for '{kind}'",
                raises="NotImplementedError",
            )
        return np.asarray(self.holds(array))

    def look_at(self, value: Tensor) -> None:
        """Report to the recorder that a tensor's values were found to be as they must."""

        def check(array: Any) -> None:
            if not np.all(self.holds(np.asarray(to_host(forced(array))))):
                raise value_error(f"a value is not {self.text}")

        look(check, value.array)
        for bound in self.read:
            numbers_in(bound)

    def language_getattr(self, name: str) -> Any:
        """A bound; raises AttributeError where there is none."""
        try:
            return self.bounds[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        return self.text


Constraints = dict[str, Constraint]
"""What each parameter has to be, by its name."""


def _array(bound: Any) -> Any:
    return np.asarray(to_host(forced(bound.array))) if isinstance(bound, Tensor) else bound


def _bounded(
    name: str, kernel: str, holds: Callable[..., Any], discrete: bool = False, **bounds: Any
) -> Constraint:
    text = ", ".join(f"{key}={shown(bound)}" for key, bound in bounds.items())
    arrays = [_array(bound) for bound in bounds.values()]
    return Constraint(f"{name}({text})", lambda x: holds(x, *arrays), 0, discrete, kernel, **bounds)


def greater_than(lower_bound: Any) -> Constraint:
    """Above a bound."""
    return _bounded("GreaterThan", "gt", lambda x, low: x > low, lower_bound=lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """At a bound or above."""
    return _bounded("GreaterThanEq", "ge", lambda x, low: x >= low, lower_bound=lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Below a bound."""
    return _bounded("LessThan", "lt", lambda x, high: x < high, upper_bound=upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Between two bounds, or at one."""
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return _bounded("Interval", "ge", lambda x, low, high: (x >= low) & (x <= high), **bounds)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """From the first bound on, below the second."""
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return _bounded(
        "HalfOpenInterval", "ge", lambda x, low, high: (x >= low) & (x < high), **bounds
    )


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """An integer between two bounds, or one of them."""
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return _bounded(
        "IntegerInterval",
        "remainder",
        lambda x, low, high: (x % 1 == 0) & (x >= low) & (x <= high),
        True,
        **bounds,
    )


def _integer_from(lower_bound: int) -> Constraint:
    return _bounded(
        "IntegerGreaterThan",
        "remainder",
        lambda x, low: (x % 1 == 0) & (x >= low),
        True,
        lower_bound=lower_bound,
    )


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """What holds for each part of an event."""
    dims = reinterpreted_batch_ndims

    def holds(x: Any) -> Any:
        held = base_constraint.holds(x)
        return held.reshape(*held.shape[: held.ndim - dims], -1).all(-1)

    constraint = Constraint(
        f"IndependentConstraint({base_constraint!r}, {dims})",
        holds,
        base_constraint.event_dim + dims,
        base_constraint.is_discrete,
        base_constraint.kernel,
    )
    constraint.read = base_constraint.read
    return constraint


def multinomial(upper_bound: Any) -> Constraint:
    """Counts of so many trials at most."""
    return Constraint(
        "Multinomial()",
        lambda x: np.all(x >= 0, axis=-1) & (x.sum(-1) <= upper_bound),
        1,
        True,
        "ge",
        upper_bound=upper_bound,
    )


def _is_lower(x: Any) -> Any:
    return np.all(np.tril(x) == x, axis=(-2, -1))


def _is_factor(x: Any) -> Any:
    return _is_lower(x) & np.all(np.diagonal(x, axis1=-2, axis2=-1) > 0, axis=-1)


def _is_correlation_factor(x: Any) -> Any:
    near = np.finfo(x.dtype).eps * x.shape[-1] * 10
    return _is_factor(x) & np.all(abs(np.linalg.norm(x, axis=-1) - 1) <= near, axis=-1)


def _is_square(x: Any) -> Any:
    return np.full(x.shape[:-2], x.shape[-2] == x.shape[-1])


def _is_symmetric(x: Any) -> Any:
    square = _is_square(x)
    if not square.all():
        return square
    return np.all(np.isclose(x, np.swapaxes(x, -1, -2), atol=1e-6), axis=(-2, -1))


def _is_covariance(x: Any) -> Any:
    symmetric = _is_symmetric(x)
    return symmetric & np.all(np.linalg.eigvalsh(x) > 0, axis=-1) if symmetric.all() else symmetric


def _is_semidefinite(x: Any) -> Any:
    symmetric = _is_symmetric(x)
    return symmetric & np.all(np.linalg.eigvalsh(x) >= 0, axis=-1) if symmetric.all() else symmetric


BOOLEAN = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), 0, True)
CORRELATION_FACTOR = Constraint("CorrCholesky()", _is_correlation_factor, 2, kernel="gt")
COUNT = _integer_from(0)
COVARIANCE = Constraint("PositiveDefinite()", _is_covariance, 2)
FACTOR = Constraint("LowerCholesky()", _is_factor, 2, kernel="gt")
NONNEGATIVE = greater_than_eq(0.0)
ONE_HOT = Constraint(
    "OneHot()", lambda x: np.all((x == 0) | (x == 1), axis=-1) & (x.sum(-1) == 1), 1, True
)
POSITIVE = greater_than(0.0)
POSITIVE_VECTOR = independent(POSITIVE, 1)
REAL = Constraint("Real()", lambda x: x == x)
REAL_VECTOR = independent(REAL, 1)
SIMPLEX = Constraint(
    "Simplex()", lambda x: np.all(x >= 0, axis=-1) & (abs(x.sum(-1) - 1) < 1e-6), 1, kernel="ge"
)
UNIT = interval(0.0, 1.0)

TABLE.update(
    Constraint=Constraint,
    boolean=BOOLEAN,
    corr_cholesky=CORRELATION_FACTOR,
    greater_than=greater_than,
    greater_than_eq=greater_than_eq,
    half_open_interval=half_open_interval,
    independent=independent,
    integer_interval=integer_interval,
    interval=interval,
    less_than=less_than,
    lower_cholesky=FACTOR,
    lower_triangular=Constraint("LowerTriangular()", _is_lower, 2),
    multinomial=multinomial,
    nonnegative=NONNEGATIVE,
    nonnegative_integer=COUNT,
    one_hot=ONE_HOT,
    positive=POSITIVE,
    positive_definite=COVARIANCE,
    positive_integer=_integer_from(1),
    positive_semidefinite=Constraint("PositiveSemidefinite()", _is_semidefinite, 2),
    real=REAL,
    real_vector=REAL_VECTOR,
    simplex=SIMPLEX,
    square=Constraint("Square()", _is_square, 2),
    symmetric=Constraint("Symmetric()", _is_symmetric, 2),
    unit_interval=UNIT,
)
