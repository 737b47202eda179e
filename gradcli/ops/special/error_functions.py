"""Special functions: `erf lgamma digamma sinc logit xlogy` and their like; the normal
distribution's, `ndtr ndtri log_ndtr erfcx`; the entropy `entr`; and functions around gamma of two
arguments, `igamma igammac mvlgamma zeta`.

`gradcli/arrays/kernels/special/` computes them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.kernels import half_precision, vector_math
from gradcli.arrays.kernels.in_c import elementwise
from gradcli.arrays.kernels.special import error_function, gamma
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.arithmetic.arithmetic import conj, is_unrecorded_half, no_derivative, rounded_rule
from gradcli.ops.binding.arguments import (
    check_no_complex_number,
    check_real,
    check_tensors,
    in_single,
    plain_integer,
)
from gradcli.ops.binding.catalogue import expose, expose_written, function, in_place, method
from gradcli.ops.definition.doc import SCALAR, WIDE, Hazard, describe
from gradcli.ops.definition.dtype_support import COMPLEX, NOT_FLOATING, dtype_names
from gradcli.ops.definition.op import (
    Function,
    Op,
    by_kernel,
    node_name_of,
    numbers_rounded,
    pointwise,
    rounded_once,
)
from gradcli.ops.elementwise.comparison import logical_and, logical_or, where
from gradcli.ops.elementwise.unary import cos, exp, log, sin
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.views import unsqueeze


def of_real(function: Function) -> Function:
    """A function of elements as one that keeps the dtype and refuses complex numbers."""

    def forward(self: Any) -> Any:
        _refuse_complex(self)
        return in_single(function, self)

    return forward


def _refuse_complex(self: Any) -> None:
    if self.dtype.kind == "c":
        check_real("a special function", self)


# --- the error function -------------------------------------------------------------------------

_erf_of_real = of_real(error_function.erf)


def _erf_array(self: Any) -> Any:
    from_c = elementwise("erf", self)
    return _erf_of_real(self) if from_c is None else from_c


erf = pointwise(
    "erf",
    _erf_array,
    floating=True,
    half=rounded_once,
    self=lambda grad, self: exp(-(self**2)) * (2 / math.sqrt(math.pi)) * grad,
    doc="The error function.",
    numpy="""\
def erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)
""",
)

erfc = pointwise(
    "erfc",
    of_real(error_function.erfc),
    floating=True,
    half=rounded_once,
    self=lambda grad, self: exp(-(self**2)) * (-2 / math.sqrt(math.pi)) * grad,
    doc="1 minus the error function.",
)

erfinv: Op = pointwise(
    "erfinv",
    of_real(error_function.erfinv),
    floating=True,
    self=lambda grad, self: exp(erfinv(self) ** 2) * (math.sqrt(math.pi) / 2) * grad,
    doc="The inverse of the error function.",
    example="torch.erfinv(tensor([-0.5, 0., 0.5]))",
)

# --- the gamma function -------------------------------------------------------------------------


lgamma = pointwise(
    "lgamma",
    of_real(gamma.gammaln),
    floating=True,
    unsupported=COMPLEX,
    self=lambda grad, self: grad * digamma(self),
    doc="The logarithm of the gamma function's magnitude.",
    numpy="""\
def lgamma(x):
    return np.vectorize(math.lgamma, otypes=[x.dtype])(x)
""",
)


_digamma_of_real = of_real(gamma.psi)


def _digamma_array(self: Any) -> Any:
    digamma_of = _digamma_of_real(self)
    # At 0 it goes to the infinity on the side of the zero's sign.
    pole = np.where(np.signbit(self), np.inf, -np.inf).astype(self.dtype)
    return np.where(self == 0, pole, digamma_of)[()]


digamma: Op = pointwise(
    "digamma",
    _digamma_array,
    floating=True,
    self=lambda grad, self: grad * _polygamma(self, 1),
    doc="The derivative of `lgamma`.",
)


def _trigamma_array(self: Any) -> Any:
    """Left of 1/2 by reflection, which gives a large number at the poles, as PyTorch's does; right
    of it the asymptotic series, six steps further out.
    """
    reflected = self < 0.5
    x = np.where(reflected, 1 - self, self)
    total = np.zeros_like(x)
    for _ in range(6):
        total = total + 1 / (x * x)
        x = x + 1
    inverse = 1 / (x * x)
    series = 1 + 1 / (2 * x) + inverse * (1 / 6 - inverse * (1 / 30 - inverse / 42))
    total = total + series / x
    sine = np.sin(math.pi * self)
    return np.where(reflected, (math.pi * math.pi) / (sine * sine) - total, total)[()]


def _polygamma_array(self: Any, n: int) -> Any:
    if n == 0:
        return _digamma_array(self)
    if n == 1:
        return in_single(_trigamma_array, self)
    factorial = math.gamma(n + 1) if n < 171 else math.inf
    signed = factorial if n % 2 else -factorial
    return in_single(lambda x: gamma.zeta(float(n + 1), x) * signed, self)


_polygamma: Op = pointwise(
    "polygamma",
    _polygamma_array,
    floating=True,
    unsupported=COMPLEX,
    self=lambda grad, self, n: grad * _polygamma(self, n + 1),
    written={},
)


@function("polygamma", also="torch.special")
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of `digamma`. Raises E204 for a negative n.

    Example: torch.polygamma(1, tensor([0.5, 1., 2.]))
    """
    n = plain_integer("polygamma", "n", n)
    if n < 0:
        raise runtime_error("polygamma(): the order must not be negative")
    return _polygamma.apply(input, n)


@method("polygamma")
def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`.

    Example: torch.polygamma(1, tensor([0.5, 1., 2.]))
    """
    return polygamma(n, self)


expose_written("polygamma", in_place("polygamma", _polygamma.written.apply), False)


# --- quotients with a hole ----------------------------------------------------------------------


def _sinc_array(self: Any) -> Any:
    angle = self * math.pi
    return np.where(self == 0, 1, np.sin(angle) / angle)[()]


def _sinc_rule(grad: Any, self: Any) -> Any:
    angle = self * math.pi
    square = self * self * math.pi
    slope = (angle * cos(angle) - sin(angle)) / square
    # At 0 it is 0, the limit, and so near it that the square is 0.
    return where(square == 0, 0.0, grad * conj(slope))


sinc = pointwise(
    "sinc",
    lambda self: in_single(_sinc_array, self),
    floating=True,
    half=rounded_once,
    self=_sinc_rule,
    doc="`sin(pi * input) / (pi * input)`, 1 at 0.",
    conventions="At 0 the gradient is 0.",
    numpy="sinc",
)


def _logit_array(self: Any, eps: float | None = None) -> Any:
    _refuse_complex(self)
    if eps is not None and eps >= 0:
        # In half precision eps and 1 - eps are rounded; NumPy widens bfloat16 here. Where eps is
        # more than a half, the lower bound counts first.
        high = type(eps)(1 - eps)
        clamped = np.where(self < eps, eps, np.where(self > high, high, self))
        self = clamped.astype(self.dtype)[()]
    return np.log(self / (1 - self))


def _logit_rule(grad: Any, self: Any, eps: float | None) -> Any:
    if type(grad) is Tensor and is_unrecorded_half(grad):
        return rounded_rule(lambda grad, self: _logit_rule(grad, self, eps), grad, self)
    slope = grad / (self * (1 - self))
    # What eps clamps is constant; without eps, there is nothing outside 0 to 1.
    low, high, outside = (0.0, 1.0, math.nan) if eps is None else (eps, 1 - eps, 0.0)
    computed: bool = isinstance(self, (*HOST_ARRAYS, np.generic))
    if computed:
        # PyTorch's kernel, unlike the steps that it records: -0 has the slope of 0, and nan is
        # neither inside nor outside.
        if low < 0:
            low, high, outside = 0.0, 1.0, math.nan
        slope = where(self == 0, grad * math.inf, slope)
        return where(logical_or(self < low, self > high), outside, slope)
    return where(logical_and(self >= low, self <= high), slope, outside)


logit = pointwise(
    "logit",
    _logit_array,  # half precision is rounded at each step
    floating=True,
    half=numbers_rounded,
    self=_logit_rule,
    doc="The logarithm of the odds: `log(input / (1 - input))`.",
    hazard=Hazard(
        values=(
            (
                lambda self: self <= 0 or self >= 1,
                "logit out of range",
                "logit is finite between 0 and 1",
            ),
        ),
        slopes=((lambda self: self in (0, 1), "the slope of logit at {self:g} is infinite"),),
    ),
    numpy="np.log({head} / (1 - {0}))",
)

# --- x log y ------------------------------------------------------------------------------------


def _times_logarithm(
    name: str, logarithm: Function, least: int, argument: Function, **facts: Any
) -> tuple[Op, Function]:
    """The product of one operand and the logarithm of another, 0 where the first is 0.

    Args:
        name: the entries' name.
        logarithm: of arrays.
        least: what the second operand is greater than.
        argument: what the logarithm of the second operand is of.
        facts: of the entries.

    Returns:
        The entry of two tensors, and the function of tensors and numbers.
    """

    def forward(self: Any, other: Any) -> Any:
        for operand in (self, other):
            if type(operand) is not float:
                _refuse_complex(operand)
        # NumPy's logarithm of a Python number would widen the product.
        logarithms = logarithm(other)
        logarithms = float(logarithms) if type(other) is float else logarithms
        zero = np.logical_and(np.equal(self, 0), np.logical_not(np.isnan(other)))
        product = self * logarithms
        return np.where(zero, product.dtype.type(0), product)[()]

    of_tensors: Op = pointwise(
        name,
        forward,
        floating=True,
        self=lambda grad, self, other: masked_fill_number(
            of_tensors(grad, other), logical_and(self == 0, other <= least), 0
        ),
        other=lambda grad, self, other: grad * self / argument(other),
        **facts,
    )
    facts.pop("numpy", None)
    of_number = pointwise(
        name,
        lambda other, self: forward(self, other),
        node=node_name_of(name).replace("0", "1"),
        floating=True,
        half=numbers_rounded,
        other=lambda grad, other, self: grad * self / argument(other),
        **facts,
    )
    by_number: Op = pointwise(
        name,
        forward,
        node=node_name_of(name).replace("0", "2"),
        floating=True,
        half=numbers_rounded,
        self=lambda grad, self, other: (
            by_number(grad, other)
            if other > least
            else masked_fill_number(by_number(grad, other), self == 0, 0)
        ),
        **facts,
    )

    def product(input: Any, other: Any) -> Tensor:
        written = name.removeprefix("special_")
        check_no_complex_number(written, input, other)
        if type(input) is Tensor and type(other) in (bool, int, float):
            return by_number.apply(input, float(other))
        if type(other) is Tensor and type(input) in (bool, int, float):
            return of_number.apply(other, float(input))
        check_tensors(written, input=input, other=other)
        return of_tensors.apply(input, other)

    return of_tensors, product


xlogy, _xlogy = _times_logarithm(
    "xlogy",
    lambda other: np.log(other) if type(other) is float else vector_math.log(other),
    0,
    lambda other: other,
    hazard=Hazard(
        values=(
            (lambda self, other: other == 0, "log of zero", "its logarithm is not finite"),
            (lambda self, other: other < 0, "log of a negative", "its logarithm is not finite"),
        ),
        slopes=((lambda self, other: other == 0, "the slope of a logarithm at 0 is infinite"),),
    ),
    loop=SCALAR,
    numpy="""\
def xlogy(x, y):
    return np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y)))
""",
)
describe(
    _xlogy,
    "`input * log(other)`, 0 where the input is 0; one of the two may be a number.",
    conventions="Where the input is 0, so is the result, unless `other` is nan.",
)
function("xlogy", module="torch.special")(_xlogy)
function("xlogy", method=True, inplace_function=True)(_xlogy)

_, _xlog1py = _times_logarithm(
    "special_xlog1py",
    lambda other: np.log1p(other) if type(other) is float else vector_math.log1p(other),
    -1,
    lambda other: other + 1,
    numpy="""\
def xlog1py(x, y):
    return np.where(x == 0, 0, x * np.log1p(np.where(x == 0, 0, y)))
""",
)
describe(
    _xlog1py, "`input * log1p(other)`, 0 where the input is 0; one of the two may be a number."
)
function("xlog1py", module="torch.special")(_xlog1py)


for _entry in (erf, erfc, sinc, logit):
    expose(_entry, inplace_function=True)
for _entry in (erfinv, digamma):
    expose(_entry, inplace=True)
for _entry in (erf, erfc, erfinv, digamma, sinc, logit):
    expose(_entry, module="torch.special", method=False)
expose(lgamma, inplace=True)
expose(lgamma, "gammaln", module="torch.special", method=False)
expose(digamma, "psi", module="torch.special", method=False)


# --- the normal distribution ----------------------------------------------------------------------


@function("ndtr", module="torch.special")
def ndtr(input: Tensor) -> Tensor:
    """The share of a standard normal distribution below the input."""
    return (erf.apply(input * math.sqrt(0.5)) + 1) * 0.5


ndtri = pointwise(
    "special_ndtri",
    of_real(error_function.ndtri),
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=lambda grad, result: grad * math.sqrt(2 * math.pi) * exp(result**2 / 2),
    doc="The point below which a share of a normal distribution lies.",
    example="torch.special.ndtri(tensor([0.2, 0.5, 0.9]))",
)

log_ndtr = pointwise(
    "special_log_ndtr",
    of_real(error_function.log_ndtr),
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=lambda grad, self, result: grad / math.sqrt(2 * math.pi) * exp(-(result + self**2 / 2)),
    doc="The logarithm of `ndtr`, also far below 0.",
)

erfcx: Op = pointwise(
    "special_erfcx",
    of_real(error_function.erfcx),
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=lambda grad, self, result: (self * 2 * result - 2 / math.sqrt(math.pi)) * grad,
    doc="`erfc` times `exp(input ** 2)`.",
)


def _entropy(self: Any) -> Any:
    entropy = np.where(self > 0, -self * np.log(self), np.where(self == 0, 0.0, -np.inf))
    # What is nan is neither above, at nor below 0.
    return np.where(np.isnan(self), self, entropy).astype(self.dtype)[()]


entr = pointwise(
    "special_entr",
    lambda self: in_single(_entropy, self),
    floating=True,
    half=by_kernel(half_precision.entr),
    unsupported=COMPLEX,
    self=lambda grad, self: grad * -(log(self) + 1),
    doc="`-input * log(input)`; 0 at 0, -inf below.",
    hazard=Hazard(
        values=((lambda self: self < 0, "entr of a negative", "entr is -inf below 0"),),
        slopes=((lambda self: self == 0, "the slope of entr at 0 is infinite"),),
    ),
)

for _name, _entry in (("ndtri", ndtri), ("log_ndtr", log_ndtr), ("erfcx", erfcx), ("entr", entr)):
    expose(_entry, _name, module="torch.special", method=False)


# --- gamma functions of two arguments -------------------------------------------------------------


# --- the incomplete gamma functions -------------------------------------------------------------


def _in_the_first_dtype(function: Any) -> Any:
    def forward(self: Any, other: Any) -> Any:
        return function(self, other).astype(self.dtype)[()]

    return forward


def _density(self: Any, other: Any) -> Any:
    return exp((self - 1) * log(other) - other - lgamma(self))


def _no_shape(name: str) -> Any:
    return no_derivative(
        f"{name} by the first argument",
        "detach it",
        "NotImplementedError",
        pytorch=f"{name}: input",
    )


igamma: Op = pointwise(
    "igamma",
    _in_the_first_dtype(gamma.gammainc),
    floating=True,
    unsupported=NOT_FLOATING,
    self=_no_shape("igamma"),
    other=lambda grad, self, other: grad * _density(self, other),
    loop=WIDE,
)

igammac: Op = pointwise(
    "igammac",
    _in_the_first_dtype(gamma.gammaincc),
    floating=True,
    unsupported=NOT_FLOATING,
    self=_no_shape("igammac"),
    other=lambda grad, self, other: -grad * _density(self, other),
    loop=WIDE,
)


def _of_two_tensors(entry: Op, special_name: str, share: str) -> None:
    def of_two(input: Tensor, other: Tensor) -> Tensor:
        check_tensors(entry.name, input=input, other=other)
        return entry.apply(input, other)

    describe(
        of_two,
        f"The share of the gamma function of `input` {share} `other`.",
        f"torch.{entry.name}(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))",
    )
    function(special_name, module="torch.special")(of_two)
    function(entry.name, method=True, inplace=True)(of_two)


_of_two_tensors(igamma, "gammainc", "below")
_of_two_tensors(igammac, "gammaincc", "above")

# --- the multivariate gamma function ------------------------------------------------------------


def _steps(p: int) -> Any:
    """What is added to the argument in each of the p dimensions, downwards from 0."""
    return -0.5 * np.arange(p)[::-1]


def _mvlgamma_array(self: Any, p: int) -> Any:
    wide = self.astype(np.float32) if self.dtype.itemsize == 2 else self
    steps = _steps(p).astype(wide.dtype)
    total = lgamma(wide[..., None] + steps).sum(-1)
    return (total + p * (p - 1) / 4 * math.log(math.pi)).astype(self.dtype)[()]


def _mvlgamma_rule(grad: Any, self: Any, p: int) -> Any:
    array = self.array if type(self) is Tensor else self
    steps = module_of(array).asarray(_steps(p).astype(array.dtype))
    if type(self) is Tensor:
        return grad * sum_dims(digamma(Tensor(steps) + unsqueeze(self, -1)), (array.ndim,), False)
    return grad * digamma(self[..., None] + steps).sum(-1)


mvlgamma_entry = pointwise(
    "mvlgamma",
    _mvlgamma_array,
    floating=True,
    half=by_kernel(lambda self, p: half_precision.mvlgamma(self, p, gamma.gammaln)),
    unsupported=COMPLEX,
    self=_mvlgamma_rule,
)


@function("multigammaln", module="torch.special")
@function("mvlgamma", method=True, inplace=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function in p dimensions. Raises E202 for a p that is no integer,
    E204 for one below 1.

    Example: torch.mvlgamma(tensor([2., 3.]), 2)
    """
    p = plain_integer("mvlgamma", "p", p)
    if p < 1:
        raise runtime_error(f"mvlgamma(): p is 1 or more, not {p}")
    return mvlgamma_entry.apply(input, p)


# --- the zeta function --------------------------------------------------------------------------


def _zeta_array(self: Any, other: Any) -> Any:
    dtype = (other if type(self) is float else self).dtype
    return gamma.zeta(self, other).astype(dtype)[()]


_no_exponent = no_derivative(
    "zeta by its exponent", "detach it", "NotImplementedError", pytorch="zeta"
)

_zeta: Op = pointwise(
    "special_zeta",
    _zeta_array,
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=_no_exponent,
    other=lambda grad, self, other: grad * -self * _zeta(self + 1, other),
)

zeta_of_number: Op = pointwise(
    "special_zeta",
    lambda other, self: _zeta_array(self, other),
    node="SpecialZetaBackward1",
    floating=True,
    unsupported=dtype_names("half", "complex"),
    other=lambda grad, other, self: grad * -self * zeta_of_number(other, self + 1),
)

zeta_by_number: Op = pointwise(
    "special_zeta",
    _zeta_array,
    node="SpecialZetaBackward2",
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=_no_exponent,
)


@function("zeta", module="torch.special")
def zeta(input: Any, other: Any) -> Tensor:
    """The Hurwitz zeta function: the sum of `(k + other) ** -input` over k from 0 up."""
    check_no_complex_number("zeta", input, other)
    if type(input) is Tensor and type(other) in (bool, int, float):
        return zeta_by_number.apply(input, float(other))
    if type(other) is Tensor and type(input) in (bool, int, float):
        return zeta_of_number.apply(other, float(input))
    check_tensors("zeta", input=input, other=other)
    return _zeta.apply(input, other)
