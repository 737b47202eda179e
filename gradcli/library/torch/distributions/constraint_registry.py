"""`torch.distributions.biject_to` and `transform_to`: which transform leads from all numbers to
those that a constraint allows; and what `torch.distributions.utils` has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import LanguageType, called, type_name
from gradcli.library.torch.distributions.distribution import (
    CONSTRUCTORS,
    CORRELATION_FACTOR,
    COVARIANCE,
    FACTOR,
    NONNEGATIVE,
    POSITIVE,
    REAL,
    SEMIDEFINITE,
    SIMPLEX,
    UNIT,
    Constraint,
    broadcast_all,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from gradcli.library.torch.distributions.elementary import clamped
from gradcli.library.torch.distributions.shaped import (
    CatTransform,
    CorrCholeskyTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    StackTransform,
    StickBreakingTransform,
    identity_transform,
)
from gradcli.library.torch.distributions.transformed import (
    EULER,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    SoftmaxTransform,
    Transform,
)
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import F, operators, torch
from gradcli.state import active

Factory = Callable[[Any], Transform]
Factories = dict[Any, Factory]


class ConstraintRegistry:
    """Transforms by the kind of the constraint that they lead to.

    Attributes:
        known: what makes the transform, by kind, in every session.
        place: where a session keeps what a program registers.
    """

    __slots__ = ("known", "place")

    language_name: ClassVar[str] = "torch.distributions.constraint_registry.ConstraintRegistry"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"register"})

    def __init__(self) -> None:
        self.known: Factories = {}
        self.place = f"distributions.registry {id(self)}"

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Have a function make the transform of a constraint; raises E202 for what is none."""
        if factory is None:
            return called("register", lambda factory: self.register(constraint, factory))
        kind = _kind(constraint)
        if kind is None:
            raise type_error(
                "Expected constraint to be either a Constraint subclass or instance, but got"
                f" {display(constraint)}"
            )
        active.state.library.setdefault(self.place, {})[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform; raises E205 for a constraint that none is known of."""
        kind = _kind(constraint)
        own: Factories = active.state.library.get(self.place, {})
        factory = own.get(kind) or self.known.get(kind)
        if factory is None:
            name = constraint.class_name if isinstance(constraint, Constraint) else None
            raise GradcliError(
                "E205", f"Cannot transform {name or type_name(constraint)} constraints"
            )
        return factory(constraint)


def _kind(constraint: Any) -> Any:
    """What constraints are told apart by: the class of a program's, the name of one of ours."""
    if isinstance(constraint, UserClass):
        return constraint if issubclass(constraint.host, Constraint) else None
    if isinstance(constraint, Constraint):
        return getattr(type(constraint), "language_class", constraint.class_name)
    if isinstance(constraint, LanguageType):
        return None
    return CONSTRUCTORS.get(constraint) if callable(constraint) else None


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _to_bounded(constraint: Constraint) -> Transform:
    """Between two bounds."""
    low, high = constraint.bounds["lower_bound"], constraint.bounds["upper_bound"]
    if not isinstance(low, Tensor) and not isinstance(high, Tensor) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, operators.sub(high, low))])


def _to_one_side(bound: str, scale: int) -> Factory:
    return lambda constraint: ComposeTransform(
        [ExpTransform(), AffineTransform(constraint.bounds[bound], scale)]
    )


def _fill(registry: ConstraintRegistry) -> None:
    """What both know."""
    above, below = _to_one_side("lower_bound", 1), _to_one_side("upper_bound", -1)
    registry.known.update(
        {
            _kind(REAL): lambda constraint: identity_transform,
            "_IndependentConstraint": lambda constraint: IndependentTransform(
                registry(constraint.bounds["base_constraint"]),
                constraint.bounds["reinterpreted_batch_ndims"],
            ),
            _kind(POSITIVE): above,
            _kind(NONNEGATIVE): above,
            "_LessThan": below,
            _kind(UNIT): _to_bounded,
            "_HalfOpenInterval": _to_bounded,
            _kind(CORRELATION_FACTOR): lambda constraint: CorrCholeskyTransform(),
            "_Cat": lambda constraint: CatTransform(
                list(map(registry, constraint.bounds["cseq"])),
                constraint.bounds["dim"],
                constraint.bounds["lengths"],
            ),
            "_Stack": lambda constraint: StackTransform(
                list(map(registry, constraint.bounds["cseq"])), constraint.bounds["dim"]
            ),
        }
    )


_fill(biject_to)
_fill(transform_to)
biject_to.known[_kind(SIMPLEX)] = lambda constraint: StickBreakingTransform()
transform_to.known.update(
    {
        _kind(SIMPLEX): lambda constraint: SoftmaxTransform(),
        _kind(FACTOR): lambda constraint: LowerCholeskyTransform(),
        _kind(COVARIANCE): lambda constraint: PositiveDefiniteTransform(),
        _kind(SEMIDEFINITE): lambda constraint: PositiveDefiniteTransform(),
    }
)
for _table in ("torch.distributions", "torch.distributions.constraint_registry"):
    modules[_table].update(biject_to=biject_to, transform_to=transform_to)
modules["torch.distributions.constraint_registry"]["ConstraintRegistry"] = ConstraintRegistry


# --- utils ----------------------------------------------------------------------------------------


class LazyProperty:
    """`lazy_property`: an attribute that is computed when it is first read, with a graph."""

    __slots__ = ("wrapped",)

    language_name: ClassVar[str] = "torch.distributions.utils.lazy_property"

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The value, which the instance keeps from now on."""
        if instance is None:
            return self
        with EnableGrad():
            value = self.wrapped(instance)
        instance.language_setattr(self.wrapped.__name__, value)
        return value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities that logits stand for: of one event each, or of the last dimension's."""
    return torch.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logits that stand for probabilities, which are kept off 0 and 1."""
    inner = clamped(probs)
    return torch.log(inner) - torch.log1p(-inner) if is_binary else torch.log(inner)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities as far from 0 and 1 as their dtype tells numbers apart."""
    return clamped(probs)


modules["torch.distributions.utils"].update(
    broadcast_all=broadcast_all,
    clamp_probs=clamp_probs,
    euler_constant=EULER,
    lazy_property=LazyProperty,
    logits_to_probs=logits_to_probs,
    probs_to_logits=probs_to_logits,
    tril_matrix_to_vec=tril_matrix_to_vec,
    vec_to_tril_matrix=vec_to_tril_matrix,
)
