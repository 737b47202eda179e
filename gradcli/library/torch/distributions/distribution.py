"""`Distribution`: parameters, shapes, checks of values; a distribution of several dimensions made
of independent ones; and `torch.distributions.constraints`, which values a parameter, or what is
drawn, may have.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import module_of, to_host
from gradcli.arrays.dtypes import DType
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.layout.sizes import Size
from gradcli.autograd.modes import EnableGrad, NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, assertion_error, type_error, value_error
from gradcli.language.objects.classes.extensible import Extensible, stored_value
from gradcli.language.objects.classes.user_classes import Property, init_next
from gradcli.language.objects.types import called, type_of
from gradcli.library.torch.nn.attributes import names, shown
from gradcli.ops.binding.arguments import numbers_in
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.state import active, created, look

# --- constraints ----------------------------------------------------------------------------------


_CONSTRAINTS = modules["torch.distributions.constraints"]


class Constraint(Extensible):
    """Which values a parameter, or what is drawn, may have. A program's own defines `check`.

    Attributes:
        text: as PyTorch prints it.
        holds: the truth values of an array.
        event_dim: how many dimensions one value has.
        is_discrete: whether the values are apart from each other.
        kernel: the first kernel of PyTorch's that it needs and complex numbers have not, if any.
        bounds: `lower_bound` and `upper_bound`, where it has them.
        read: the bounds that are tensors, whose numbers `holds` knows.
    """

    fields: ClassVar[tuple[str, ...]] = (
        *("bounds", "event_dim", "holds", "is_discrete", "kernel", "read", "text"),
    )

    home = "torch.distributions.constraints"
    tables = ("torch.distributions.constraints",)
    language_attributes: ClassVar[frozenset[str]] = frozenset({"check", "event_dim", "is_discrete"})

    def __init__(
        self,
        text: str | None = None,
        holds: Callable[[Any], Any] | None = None,
        event_dim: int = 0,
        is_discrete: bool = False,
        kernel: str | None = None,
        **bounds: Any,
    ) -> None:
        self.text = f"{type(self).__name__[1:]}()" if text is None else text
        self.holds = self._holds_by_check if holds is None else holds
        self.event_dim = event_dim
        self.is_discrete = is_discrete
        self.kernel = kernel
        self.bounds = bounds
        self.read = [bound for bound in bounds.values() if isinstance(bound, Tensor)]

    @property
    def class_name(self) -> str:
        """The name of the class that it is of in PyTorch."""
        name = self.text.partition("(")[0]
        return name if name.endswith("FamilyConstraint") else f"_{name}"

    def _holds_by_check(self, array: Any) -> Any:
        if type(self).check is Constraint.check:
            raise GradcliError("E205", "a constraint has to define check()")
        return np.asarray(self.check(Tensor(array)).array)

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
        return self.bounds[name] if name in self.bounds else stored_value(self, name)

    def language_setattr(self, name: str, value: Any) -> None:
        """Store a value in one of a program's class; raises E102 for ours, which all share."""
        if not hasattr(type(self), "language_class"):
            raise not_shared(self, name)
        super().language_setattr(name, value)

    def __repr__(self) -> str:
        return self.text


def not_shared(value: Any, name: str) -> GradcliError:
    """The error of setting an attribute of an object that all programs have in common."""
    return GradcliError("E102", f"`{name}` of {value!r}, which all programs share, cannot be set")


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
        base_constraint=base_constraint,
        reinterpreted_batch_ndims=dims,
    )
    constraint.read = base_constraint.read
    return constraint


def concatenated(cseq: Any, dim: int = 0, lengths: Any = None) -> Constraint:
    """What holds for stretches of a dimension, as `cat` puts them together."""
    parts = list(cseq)
    counts = [1] * len(parts) if lengths is None else list(lengths)
    if len(counts) != len(parts):
        raise assertion_error(f"cseq length {len(parts)} must equal lengths length {len(counts)}")
    ends = np.cumsum(counts)[:-1]

    def holds(x: Any) -> Any:
        pairs = zip(parts, np.split(x, ends, axis=dim), strict=True)
        return np.concatenate([each.holds(part) for each, part in pairs], axis=dim)

    return _of_parts("Cat()", parts, holds, lengths=counts, dim=dim)


def stacked(cseq: Any, dim: int = 0) -> Constraint:
    """What holds for the slices of a dimension, as `stack` puts them together."""
    parts = list(cseq)

    def holds(x: Any) -> Any:
        slices = [np.take(x, at, axis=dim) for at in range(x.shape[dim])]
        return np.stack([each.holds(s) for each, s in zip(parts, slices, strict=False)], axis=dim)

    return _of_parts("Stack()", parts, holds, dim=dim)


def _of_parts(
    text: str, parts: list[Constraint], holds: Callable[[Any], Any], **bounds: Any
) -> Constraint:
    if not all(isinstance(each, Constraint) for each in parts):
        raise assertion_error("All elements of cseq must be Constraint instances")
    dims = max([each.event_dim for each in parts]) + (text == "Stack()" and bounds["dim"] < 0)
    discrete = any(each.is_discrete for each in parts)
    kernel = next((each.kernel for each in parts if each.kernel), None)
    constraint = Constraint(text, holds, dims, discrete, kernel, cseq=parts, **bounds)
    constraint.read = [bound for each in parts for bound in each.read]
    return constraint


def of_mixture(base_constraint: Constraint) -> Constraint:
    """What holds for a value under each component of a mixture."""
    event = base_constraint.event_dim

    def holds(x: Any) -> Any:
        held = np.asarray(base_constraint.holds(np.expand_dims(x, -1 - event)))
        return held.reshape(*held.shape[: x.ndim - event], -1).all(-1)

    constraint = Constraint(
        f"MixtureSameFamilyConstraint({base_constraint!r})",
        holds,
        event,
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
SEMIDEFINITE = Constraint("PositiveSemidefinite()", _is_semidefinite, 2)
SIMPLEX = Constraint(
    "Simplex()", lambda x: np.all(x >= 0, axis=-1) & (abs(x.sum(-1) - 1) < 1e-6), 1, kernel="ge"
)
UNIT = interval(0.0, 1.0)

CONSTRUCTORS: dict[Any, str] = {
    concatenated: "_Cat",
    greater_than: "_GreaterThan",
    greater_than_eq: "_GreaterThanEq",
    half_open_interval: "_HalfOpenInterval",
    independent: "_IndependentConstraint",
    integer_interval: "_IntegerInterval",
    interval: "_Interval",
    less_than: "_LessThan",
    multinomial: "_Multinomial",
    stacked: "_Stack",
}
"""The names of the classes that PyTorch has for what these make."""


def _undetermined(x: Any) -> Any:
    raise value_error("Cannot determine validity of dependent constraint")


DEPENDENT = Constraint("Dependent()", _undetermined)


def dependent_property(fn: Any = None, *, is_discrete: Any = None, event_dim: Any = None) -> Any:
    """A property that gives the constraint of an object."""
    return Property(fn) if fn is not None else called("dependent_property", Property)


_CONSTRAINTS.update(
    boolean=BOOLEAN,
    cat=concatenated,
    corr_cholesky=CORRELATION_FACTOR,
    dependent=DEPENDENT,
    dependent_property=dependent_property,
    greater_than=greater_than,
    greater_than_eq=greater_than_eq,
    half_open_interval=half_open_interval,
    independent=independent,
    integer_interval=integer_interval,
    interval=interval,
    is_dependent=lambda constraint: constraint is DEPENDENT,
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
    positive_semidefinite=SEMIDEFINITE,
    real=REAL,
    real_vector=REAL_VECTOR,
    simplex=SIMPLEX,
    square=Constraint("Square()", _is_square, 2),
    stack=stacked,
    symmetric=Constraint("Symmetric()", _is_symmetric, 2),
    unit_interval=UNIT,
)


# --- distributions --------------------------------------------------------------------------------


TABLE = modules["torch.distributions"]


plus, minus, times, over = operators.add, operators.sub, operators.mul, operators.truediv
"""The operators as programs have them: with a number on one side the node is another than that of
tensors' own operators, which are for the derivatives' formulas.
"""


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape."""
    first = next((value for value in values if isinstance(value, Tensor)), None)
    for value in values:
        if not isinstance(value, (Tensor, bool, int, float)):
            raise value_error(
                "Input arguments must all be instances of Number, torch.Tensor or objects"
                " implementing __torch_function__."
            )
    dtype = torch.get_default_dtype() if first is None else first.dtype
    tensors = [v if isinstance(v, Tensor) else Tensor(created(_number, v, dtype)) for v in values]
    return tuple(torch.broadcast_tensors(*tensors))


def _number(value: Any, dtype: DType) -> Any:
    array = torch.tensor(value, dtype=dtype).array
    return module_of(array).asarray(array)  # which a view shares


def _lower_places(size: int, diag: int) -> Any:
    steps = torch.arange(size)
    return torch.lt(steps, plus(methods.view(steps, (-1, 1)), diag + 1))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of matrices in one row, row after row; raises E204 for a diagonal that
    they do not have.
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise value_error(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    return operators.getitem(mat, (..., _lower_places(size, diag)))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrices whose lower triangles rows are, with zeros above; raises E204 for a row that
    fills none.
    """
    count = vec.shape[-1]
    root = ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5
    size = (-(1 + 2 * diag) + root) / 2
    if round(size) - size > torch.finfo(vec.dtype).eps:
        raise value_error(
            f"The size of last dimension is {count} which cannot be expressed as the lower"
            " triangular part of a square D x D matrix."
        )
    size = round(size)
    matrix = methods.new_zeros(vec, (*vec.shape[:-1], size, size))
    operators.setitem(matrix, (..., _lower_places(size, diag)), vec)
    return matrix


def size_of(shape: Any) -> Size:
    """A shape that a program gives."""
    return Size.of(() if shape is None else shape)


def sum_rightmost(value: Any, dims: int) -> Any:
    """The sums over the last dimensions."""
    if dims == 0 or not isinstance(value, Tensor):
        return value
    return methods.sum(methods.reshape(value, (*value.array.shape[:-dims], -1)), -1)


Formulas = dict[str, Callable[[Any], Any]]
"""How parameters follow from a distribution, by name."""


def read_from(part: str, *names: str) -> Formulas:
    """The parameters that are those of a distribution which another one is made of.

    Args:
        part: the attribute that holds it.
        names: the parameters.
    """
    return {name: attrgetter(f"{part}.{name}") for name in names}


def formula(compute: Callable[[Any], Any]) -> Any:
    """An attribute that is computed of a distribution whenever it is read."""
    return property(compute)


def _copied(held: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """What a copy of a distribution holds in place of what that holds."""
    if isinstance(held, Tensor):
        return change(held)
    if isinstance(held, Distribution):
        return held.copied(change)
    if type(held) is dict:
        return {name: _copied(each, change) for name, each in held.items()}
    if type(held) in (list, tuple):
        return type(held)([_copied(each, change) for each in held])
    if held is None or isinstance(held, (bool, int, float, str, Size)):
        return held
    raise TypeError(f"a distribution holds {type(held).__name__}")


_VALIDATES = "distributions.validate_args"


class Distribution(Extensible):
    """The base of all, and of a program's own.

    Attributes:
        arguments: the parameters, and what was computed of them, by name.
        batch_shape: how many distributions there are, side by side.
        event_shape: the shape of what one draws.
    """

    fields: ClassVar[tuple[str, ...]] = ("arguments", "batch_shape", "event_shape", "is_checked")

    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"set_default_validate_args"})
    language_attributes: ClassVar[frozenset[str]] = language_class_attributes | names(
        "_batch_shape _event_shape arg_constraints batch_shape cdf entropy enumerate_support "
        "event_shape expand "
        "has_enumerate_support has_rsample icdf log_prob mean mode perplexity rsample sample "
        "sample_n stddev support variance"
    )
    home = "torch.distributions.{snake}"
    tables = ("torch.distributions",)

    constraints: ClassVar[Constraints] = {}
    support: ClassVar[Constraint | None] = None
    computed: ClassVar[Formulas] = {}
    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False

    arguments: dict[str, Any]

    def language_prepare(self) -> None:
        self.arguments = {}

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self.batch_shape = size_of(batch_shape)
        self.event_shape = size_of(event_shape)
        if validate_args is None:
            validate_args = active.state.library.get(_VALIDATES, True)
        self.is_checked = validate_args is not False
        if self.is_checked:
            for name in self.constraints:
                if name in self.arguments:
                    self.check_parameter(name, self.arguments[name])
        init_next(self, Distribution)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where `validate_args` does not say."""
        if not isinstance(value, int) or value not in (True, False):
            raise value_error("")
        active.state.library[_VALIDATES] = bool(value)

    def set_up(self, validate_args: bool | None, **parameters: Any) -> None:
        """Set up a distribution of parameters of one number each."""
        values = broadcast_all(*parameters.values())
        self.arguments = dict(zip(parameters, values, strict=True))
        Distribution.__init__(self, values[0].array.shape, (), validate_args)

    def values_for_each(self, values: Any, expand: bool = True) -> Any:
        """A vector of values in front of the batch, for each of it where they are expanded."""
        values = methods.view(values, (-1, *(1 for _ in self.batch_shape)))
        return methods.expand(values, (-1, *self.batch_shape)) if expand else values

    def __getattr__(self, name: str) -> Any:
        arguments = vars(self).get("arguments", {})  # a copy has none yet
        if name in arguments:
            return arguments[name]
        compute = type(self).computed.get(name)
        if compute is None:
            above = getattr(super(), "__getattr__", None)
            if above is None:
                raise AttributeError(name)
            return above(name)
        if type(compute) is attrgetter:
            return compute(self)  # the part keeps it, and shows it
        with EnableGrad():  # it may first be asked for while numbers are drawn
            parameter = self.arguments[name] = compute(self)
        return parameter

    def language_getattr(self, name: str) -> Any:
        """What a program stored, a parameter; raises AttributeError."""
        if name in self.values:
            return self.values[name]
        if name in self.arguments or name in self.computed:
            return Distribution.__getattr__(self, name)
        return super().language_getattr(name)

    def language_setattr(self, name: str, value: Any) -> None:
        """Store what a program assigns: in the place of a parameter it is the parameter."""
        if name in self.arguments:
            self.arguments[name] = value
        else:
            super().language_setattr(name, value)

    def check_parameter(self, name: str, value: Tensor) -> None:
        """Raise E204 where a parameter has values that its constraint forbids."""
        self._check(f"parameter {name}", value, self.constraints[name])

    def _check(self, what: str, value: Tensor, constraint: Constraint) -> None:
        if np.all(constraint.truth_of(value)):
            constraint.look_at(value)
            return
        reason = "the constraint" if what.startswith("parameter") else ""
        where = (
            f"of distribution {self!r} to satisfy {reason} {constraint.text}"
            if reason
            else f"to be within the support ({constraint.text}) of the distribution {self!r}"
        )
        shown = value.array if value.ndim == 0 else value
        raise value_error(
            f"Expected {what} (Tensor of shape {tuple(value.array.shape)}) {where}, but found"
            f" invalid values:\n{shown}"
        )

    def check_value(self, value: Any) -> None:
        """Raise E204 for what cannot have been drawn."""
        if not isinstance(value, Tensor):
            raise value_error("The value argument to log_prob must be a Tensor")
        if self.is_checked:
            self._check_shape(value.shape)
            if self.support is not None:
                self._check("value argument", value, self.support)

    def _check_shape(self, shape: Size) -> None:
        """Raise E204 for the shape of what cannot have been drawn."""
        event, wanted = self.event_shape, Size((*self.batch_shape, *self.event_shape))
        if tuple(shape[max(len(shape) - len(event), 0) :]) != tuple(event):
            raise value_error(
                f"The right-most size of value must match event_shape: {shape} vs {event}."
            )
        for one, other in zip(reversed(shape), reversed(wanted), strict=False):
            if one != other and 1 not in (one, other):
                raise value_error(
                    f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {wanted}."
                )

    def shape_of(self, sample_shape: Any) -> Size:
        """The shape of so many draws."""
        return Size((*size_of(sample_shape), *self.batch_shape, *self.event_shape))

    def expanded(self, name: str, shape: Size) -> Tensor:
        """A parameter, in a shape of draws."""
        return methods.expand(getattr(self, name), shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws, outside the graph."""
        with NoGrad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws that gradients flow through to the parameters."""
        raise self.missing("rsample")

    def sample_n(self, n: int) -> Tensor:
        """`n` draws."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability."""
        if type(self).log_density is Distribution.log_density:
            raise self.missing("log_prob")
        self.check_value(value)
        return self.log_density(value)

    def log_density(self, value: Any) -> Any:
        """The same of a value that may have been drawn: what a class defines."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that there are, for each of the batch."""
        raise self.missing("enumerate_support")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of what is no larger."""
        raise self.missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """What a share of all is no larger than."""
        raise self.missing("icdf")

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise self.missing("entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return torch.exp(self.entropy())

    @formula
    def mean(self) -> Tensor:
        """The mean."""
        raise self.missing("mean")

    @formula
    def mode(self) -> Tensor:
        """What is most likely."""
        raise self.missing("mode")

    @formula
    def variance(self) -> Tensor:
        """The variance."""
        raise self.missing("variance")

    @formula
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return methods.sqrt(self.variance)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """What the parameters have to be."""
        return self.constraints

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions, in a larger batch."""
        expanded = object.__new__(type(self))
        expanded.values = dict(self.values)
        batch = size_of(batch_shape)
        expanded.arguments = {
            name: methods.expand(self.arguments[name], (*batch, *self._event_of(name)))
            for name in self.constraints
            if name in self.arguments
        }
        expanded.batch_shape, expanded.event_shape = batch, self.event_shape
        expanded.is_checked = self.is_checked
        for name in self._own_fields():
            held = getattr(self, name)
            if isinstance(held, (tuple, list)):
                setattr(expanded, name, type(held)([self._part(part, batch) for part in held]))
            else:
                setattr(expanded, name, self._part(held, batch))
        return expanded

    def _part(self, held: Any, batch: Size) -> Any:
        """What a distribution of a larger batch holds in place of what this one holds."""
        if not isinstance(held, Distribution):
            return held
        return held.expand((*batch, *held.batch_shape[len(self.batch_shape) :]))

    def copied(self, change: Callable[[Tensor], Tensor]) -> Any:
        """A copy made of what a function gives for each tensor that this one is made of, always in
        the same order; raises TypeError where it is made of other things than are gone through.
        """
        copy = object.__new__(type(self))
        for name, held in vars(self).items():  # what compares the two goes through them in order
            setattr(copy, name, _copied(held, change))
        return copy

    def _own_fields(self) -> list[str]:
        """What the class keeps besides parameters and shapes: the distributions that it is made
        of, and settings.
        """
        return [name for name in vars(self) if name not in Distribution.all_fields]

    _batch_shape = formula(lambda self: self.batch_shape)
    _event_shape = formula(lambda self: self.event_shape)

    def _event_of(self, name: str) -> tuple[int, ...]:
        dims = self.constraints[name].event_dim
        shape = self.arguments[name].array.shape
        return tuple(shape[len(shape) - dims :])

    def missing(self, name: str) -> GradcliError:
        """The error of what a distribution does not have."""
        text = f"{type_of(self)!r} does not implement mode" if name == "mode" else ""
        return GradcliError("E205", f"{type(self).__name__} has no {name}", text=text)

    def __repr__(self) -> str:
        parts = []
        for name in self.constraints:
            if name in self.arguments:
                value = self.arguments[name]
                one = value.array.size == 1
                shown = value.array.item() if one and value.ndim == 0 else value
                parts.append(f"{name}: {shown if one else value.shape}")
        return f"{type(self).__name__}({', '.join(parts)})"


class Independent(Distribution):
    """A distribution whose last batch dimensions are those of one event.

    Args:
        base_distribution: what draws the parts.
        reinterpreted_batch_ndims: how many of its batch dimensions become the event's.
    """

    fields: ClassVar[tuple[str, ...]] = ("base_dist", "reinterpreted_batch_ndims")

    language_attributes = Distribution.language_attributes | names(
        "base_dist reinterpreted_batch_ndims"
    )

    def __init__(
        self,
        base_distribution: Any,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise value_error(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual"
                f" {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        kept = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        event = (*batch[kept:], *base_distribution.event_shape)
        super().__init__(batch[:kept], event, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the parts have."""
        return self.base_dist.has_rsample

    @formula
    def support(self) -> Constraint | None:
        """That of each part."""
        base, dims = self.base_dist.support, self.reinterpreted_batch_ndims
        return independent(base, dims) if base is not None and dims else base

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    mean = formula(lambda self: self.base_dist.mean)
    mode = formula(lambda self: self.base_dist.mode)
    variance = formula(lambda self: self.base_dist.variance)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
