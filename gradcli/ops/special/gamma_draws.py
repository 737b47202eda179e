"""Draws of gamma, beta and Dirichlet distributions, and how they move with the parameters.

The derivative of a draw x by a parameter is -(d cdf / d parameter) / density, where x stays at the
same quantile. It has no closed form: PyTorch takes, in regions of the plane, a Taylor series, a
saddle point expansion, and a rational function fitted to the rest. These are the same ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval

from gradcli.arrays.kernels.special.gamma import psi
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import no_derivative
from gradcli.ops.binding.catalogue import expose
from gradcli.ops.creation.distributions import check_each, standard_gamma
from gradcli.ops.definition.doc import BY_VALUES
from gradcli.ops.definition.op import Op, op, pointwise
from gradcli.ops.reduction.sum import sum_dims
from gradcli.state import computed

_Regions = list[tuple[Any, Any]]


def _by_region(regions: _Regions, *operands: Any) -> Any:
    """The values of the first function whose region an element lies in."""
    first = operands[0]
    values = np.zeros(first.shape)
    undecided = np.ones(first.shape, bool)
    for inside, compute in regions:
        chosen = undecided & inside
        if chosen.any():
            values[chosen] = compute(*(operand[chosen] for operand in operands))
            undecided &= ~chosen
    return values


def _in_double(function: Any, *operands: Any) -> Any:
    """A function of arrays of float64, in the dtype of the first operand."""
    dtype = operands[0].dtype
    wide = np.broadcast_arrays(*(np.asarray(operand, np.float64) for operand in operands))
    with np.errstate(all="ignore"):
        flat = function(*(np.atleast_1d(operand) for operand in wide))
    return flat.reshape(wide[0].shape).astype(dtype)[()]


# --- gamma ----------------------------------------------------------------------------------------


def _gamma_series(alpha: Any, x: Any) -> Any:
    """Six terms of the Taylor series at 0."""
    term, below = np.ones_like(x), alpha
    sums, squares = 1 / below, 1 / below**2
    for number in range(1, 6):
        term = term * (-x / number)
        below = below + 1
        sums, squares = sums + term / below, squares + term / below**2
    power = x**alpha
    by_alpha = (np.log(x) - psi(alpha)) * power * sums - power * squares
    return np.nan_to_num(-by_alpha / (x ** (alpha - 1) * np.exp(-x)), nan=0.0)


def _gamma_near_mean(alpha: Any, x: Any) -> Any:
    """The saddle point expansion where it is 0 / 0."""
    scale = 1 + 24 * alpha * (1 + 12 * alpha)
    inner = 1440 * alpha**2 + 6 * x * (53 - 120 * x) - 65 * x**2 / alpha
    return scale * (inner + alpha * (107 + 3600 * x)) / (1244160 * alpha**4)


def _gamma_large(alpha: Any, x: Any) -> Any:
    """Rice's saddle point expansion."""
    width = np.sqrt(8 * alpha)
    ratio = np.log(x / alpha)
    bend = (x - alpha - alpha * ratio) ** -1.5
    slope = width / (alpha - x) + np.where(x < alpha, -bend, bend)
    term = ratio * slope - np.sqrt(2 / alpha) * (alpha + x) / (alpha - x) ** 2
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    return -stirling * x * term / width


_GAMMA_FIT = np.array(
    [
        [0.16009398, -0.094634809, 0.025146376, -0.0030648343],
        [0.53487893, 0.1298071, 0.065735949, -0.0015649758],
        [0.040121004, -0.0065914022, -0.0026286047, -0.0013441777],
        [1, 0.32668115, 0.10406089, 0.0014179084],
        [0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
        [0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07],
    ]
)
"""Numerator and denominator: powers of log(x / alpha) down, powers of log(alpha) to the right."""


def _gamma_fit(alpha: Any, x: Any) -> Any:
    u, v = np.log(x / alpha), np.log(alpha)
    rows = [polyval(v, row) for row in _GAMMA_FIT]
    return np.exp(polyval(u, rows[:3], tensor=False) / polyval(u, rows[3:], tensor=False))


def _gamma_slope(alpha: Any, x: Any) -> Any:
    near = (0.9 * alpha <= x) & (x <= 1.1 * alpha)
    regions: _Regions = [
        (x < 0.8, _gamma_series),
        ((alpha > 8) & near, _gamma_near_mean),
        (alpha > 8, _gamma_large),
        (np.full(x.shape, True), _gamma_fit),
    ]
    return _by_region(regions, alpha, x)


_of_gamma = no_derivative(
    "_standard_gamma_grad", "differentiate a draw once", "NotImplementedError"
)

standard_gamma_grad: Op = pointwise(
    "_standard_gamma_grad",
    lambda self, output: _in_double(_gamma_slope, self, output),
    self=_of_gamma,
    output=_of_gamma,
    doc="How a draw of the gamma distribution moves with its parameter: `-(dF/da) / p`.",
    example="torch._standard_gamma_grad(tensor(2.), tensor(1.5))",
    numpy="""\
def standard_gamma_grad(a, x):
    # -(dF/da) / p, where F(x) is the sum of x**(a + n) * exp(-x) / gamma(a + n + 1).
    a, x = np.asarray(a, float), np.asarray(x, float)
    b = a + 16
    psi = np.log(b) - 1 / (2 * b) - 1 / (12 * b**2) + 1 / (120 * b**4)
    psi = psi - sum(1 / (a + k) for k in range(16))
    term, total, n = 1.0, 0.0, 0
    while n < 8 or np.max(np.abs(term * n)) > 1e-12:
        psi, term = psi + 1 / (a + n), term * x / (a + n)
        total, n = total + (psi - np.log(x)) * term, n + 1
    return total
""",
)
expose(standard_gamma_grad, method=False)

_standard_gamma = op(
    "_standard_gamma",
    lambda self, drawn: drawn,
    decomposition=lambda self, drawn: drawn,
    constant=("drawn",),
    self=lambda grad, self, result: grad * standard_gamma_grad(self, result),
    raises=BY_VALUES,
)


def gamma_draws(concentration: Tensor) -> Tensor:
    """Draws of the gamma distributions of rate 1."""
    check_each("gamma", concentration)
    array = concentration.array
    drawn: Tensor = _standard_gamma.apply(
        concentration, Tensor(computed(standard_gamma, array, array.dtype))
    )
    return drawn


# --- beta and Dirichlet ---------------------------------------------------------------------------


def _beta_small(x: Any, alpha: Any, beta: Any) -> Any:
    """By alpha for x close to 0: a Taylor series."""
    factor = psi(alpha) - psi(alpha + beta) - np.log(x)
    term: Any = 1.0
    series = term / alpha * (factor + 1 / alpha)
    for number in range(1, 11):
        term = term * (number - beta) * x / number
        series = series + term / (alpha + number) * (factor + 1 / (alpha + number))
    return np.nan_to_num(x * (1 - x) ** -beta * series, nan=0.0)


def _beta_small_other(x: Any, alpha: Any, beta: Any) -> Any:
    """By alpha for x close to 1: the series by the other parameter, from the other side."""
    x, alpha, beta = 1 - x, beta, alpha
    factor = psi(alpha + beta) - psi(beta)
    term: Any = 1.0
    product, change = np.ones_like(beta), np.zeros_like(beta)
    series = factor / alpha
    for number in range(1, 9):
        term = term * -x / number
        change = change * (beta - number) + product
        product = product * (beta - number)
        series = series + term / (alpha + number) * (change + factor * product)
    return np.nan_to_num((1 - x) ** (1 - beta) * series, nan=0.0)


def _beta_near_mean(x: Any, alpha: Any, beta: Any) -> Any:
    """The saddle point expansion where it is 0 / 0."""
    total = alpha + beta
    inner = polyval(
        alpha,
        [
            47 * x * beta**4,
            (43 + 20 * (16 + 27 * beta) * x) * beta**3,
            3 * (59 + 180 * beta - 90 * x) * beta**2,
            (453 + 1620 * beta * (1 - x) - 455 * x) * beta,
            8 * (1 - x) * (135 * beta - 11),
        ],
        tensor=False,
    )
    above = (1 + 12 * alpha) * (1 + 12 * beta) / total**2
    return above / (1 - x) * inner / (12960 * alpha**3 * beta**2 * (1 + 12 * total))


def _stirling(x: Any) -> Any:
    return 1 + 1 / (12 * x) + 1 / (288 * x * x)


def _beta_large(x: Any, alpha: Any, beta: Any) -> Any:
    """Rice's saddle point expansion."""
    total = alpha + beta
    apart = alpha * (x - 1) + beta * x
    curve = 2 * alpha**2 * (x - 1) + alpha * beta * (x - 1) - x * beta**2
    first = curve / (np.sqrt(2 * alpha / beta) * total**1.5 * apart**2)
    of_alpha = np.log(alpha / (total * x))
    bend = (beta * np.log(beta / (total * (1 - x))) + alpha * of_alpha) ** -1.5
    slope = np.sqrt(8 * alpha * beta / total) / apart
    term = first + 0.5 * of_alpha * (slope + np.where(x < alpha / total, bend, -bend))
    correction = _stirling(alpha) * _stirling(beta) / _stirling(total)
    return correction * -x / np.sqrt(2 * alpha * beta / total) * term


_BETA_FIT = np.array(
    [
        [
            [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
            [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
            [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013],
        ],
        [
            [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
            [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
            [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05],
        ],
        [
            [-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
            [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
            [0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05],
        ],
        [
            [1, -0.02924021934, -0.04438342661, 0.007285809825],
            [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
            [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149],
        ],
        [
            [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
            [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
            [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05],
        ],
        [
            [0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05],
            [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05],
            [-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06],
        ],
    ]
)
"""Numerator and denominator, three planes each: powers of log(x), of a, and of b."""


def _beta_fit(x: Any, alpha: Any, beta: Any) -> Any:
    """A first approximation times a rational function that corrects it."""
    total = alpha + beta
    u = np.log(x)
    a = np.log(alpha) - u
    b = np.log(total) - a
    planes = [polyval(a, [polyval(b, row) for row in plane], tensor=False) for plane in _BETA_FIT]
    ratio = polyval(u, planes[:3], tensor=False) / polyval(u, planes[3:], tensor=False)
    return ratio * x * (psi(total) - psi(alpha)) / beta


def _beta_slope(x: Any, alpha: Any, total: Any) -> Any:
    beta = total - alpha
    edge = total * x * (1 - x)
    mean = alpha / total
    near = 0.1 * np.sqrt(alpha * beta / (total + 1)) / total
    large = (alpha > 6) & (beta > 6)
    regions: _Regions = [
        ((x <= 0.5) & (edge < 2.5), _beta_small),
        ((x >= 0.5) & (edge < 0.75), _beta_small_other),
        (large & (mean - near <= x) & (x <= mean + near), _beta_near_mean),
        (large, _beta_large),
        (np.full(x.shape, True), _beta_fit),
    ]
    return _by_region(regions, x, alpha, beta)


_of_dirichlet = no_derivative("_dirichlet_grad", "differentiate a draw once")

dirichlet_grad: Op = pointwise(
    "_dirichlet_grad",
    lambda x, alpha, total: _in_double(_beta_slope, x, alpha, total),
    x=_of_dirichlet,
    alpha=_of_dirichlet,
    total=_of_dirichlet,
    doc="How a share of a Dirichlet draw moves with its parameter: `-(dF/da) / p / (1 - x)`.",
    example="torch._dirichlet_grad(tensor(0.5), tensor(2.), tensor(5.))",
    numpy="""\
def dirichlet_grad(x, a, c):
    # -(dF/da) / p / (1 - x), where F is the beta distribution's power series of x**a * (1 - x)**b.
    x, a, c = (np.asarray(each, float) for each in (x, a, c))
    psi = [np.log(z) - 1 / (2 * z) - 1 / (12 * z**2) + 1 / (120 * z**4) for z in (a + 16, c + 16)]
    gap = psi[0] - psi[1] - sum(1 / (a + k) - 1 / (c + k) for k in range(16)) + 1 / a
    term = x / a
    total, n = (gap - np.log(x)) * term, 0
    while n < 8 or np.max(np.abs(term * n)) > 1e-12:
        n += 1
        gap, term = gap + 1 / (a + n) - 1 / (c + n - 1), term * x * (c + n - 1) / (a + n)
        total = total + (gap - np.log(x)) * term
    return total
""",
)
expose(dirichlet_grad, method=False)


def _dirichlet_rule(grad: Any, concentration: Any, result: Any) -> Any:
    last = (result.ndim - 1,)
    total = sum_dims(concentration, last, True)
    slopes = dirichlet_grad(result, concentration, total)
    return slopes * (grad - sum_dims(result * grad, last, True))


_dirichlet = op(
    "_sample_dirichlet",
    lambda concentration, drawn: drawn,
    decomposition=lambda concentration, drawn: drawn,
    node="_DirichletBackward",
    constant=("drawn",),
    concentration=_dirichlet_rule,
    raises=BY_VALUES,
)


def _shares(concentration: Any) -> Any:
    drawn = np.asarray(standard_gamma(concentration, np.float64))
    shares = (drawn / drawn.sum(-1, keepdims=True)).astype(concentration.dtype)
    return np.maximum(shares, np.finfo(shares.dtype).tiny)


def dirichlet_draws(concentration: Tensor) -> Tensor:
    """Draws of the Dirichlet distributions along the last dimension."""
    check_each("gamma", concentration)
    drawn: Tensor = _dirichlet.apply(concentration, Tensor(computed(_shares, concentration.array)))
    return drawn
