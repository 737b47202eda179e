"""Families that few programs need: they are imported when one of their names is first asked for.

All of them together would take a seventh of the time of a short command.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

LATER = {
    "creation.distributions": ("bernoulli exponential_ multinomial normal random_ uniform_"),
    "creation.sequences": "arange eye linspace logspace tril_indices triu_indices",
    "elementwise.binary": (
        "addcdiv addcmul arctan2 atan2 copysign float_power hypot lerp logaddexp logaddexp2"
    ),
    "elementwise.clamp": "clamp clamp_max clamp_min clip fmax fmin maximum minimum",
    "elementwise.float_parts": "frexp ldexp nextafter",
    "elementwise.predicates": (
        "broadcast_shapes gcd is_nonzero is_same_size is_signed isin isreal lcm"
    ),
    "elementwise.rounding": "ceil fix floor frac nan_to_num positive round trunc",
    "indexing.masks": (
        "argwhere combinations masked_fill masked_scatter masked_select nonzero put take "
        "unravel_index"
    ),
    "linalg.covariance": "corrcoef cov",
    "linalg.decompositions": "eigh eigvalsh qr svd svdvals",
    "linalg.eigenvalues": "eig eigvals",
    "linalg.einsum": "einsum",
    "linalg.householder": "householder_product orgqr ormqr",
    "linalg.lu": "lu lu_factor lu_factor_ex lu_solve lu_unpack",
    "linalg.matrix_functions": "cond matrix_exp matrix_power",
    "linalg.norms": "dist matrix_norm norm renorm vector_norm",
    "linalg.pseudoinverse": "lstsq matrix_rank pinv pinverse",
    "linalg.solve": "det inv inv_ex inverse logdet slogdet solve solve_ex tensorinv tensorsolve",
    "linalg.tensor_products": (
        "addbmm bilinear chain_matmul inner kron multi_dot tensordot trace vecdot"
    ),
    "linalg.triangular": (
        "cholesky cholesky_ex cholesky_inverse cholesky_solve solve_triangular triangular_solve"
    ),
    "linalg.vectors": "cross cumulative_trapezoid trapezoid trapz vander",
    "loss.binary_cross_entropy": "binary_cross_entropy binary_cross_entropy_with_logits",
    "loss.class_margin": "multi_margin_loss multilabel_margin_loss",
    "loss.cross_entropy": "cross_entropy nll_loss",
    "loss.ctc": "ctc_loss",
    "loss.elementwise": "huber_loss l1_loss mse_loss smooth_l1_loss",
    "loss.likelihood": "gaussian_nll_loss kl_div poisson_nll_loss",
    "loss.pair_margin": (
        "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss "
        "multilabel_soft_margin_loss soft_margin_loss triplet_margin_loss"
    ),
    "nn.activations": "gelu glu logsigmoid mish silu softplus softsign tanhshrink",
    "nn.attention": "scaled_dot_product_attention",
    "nn.distance": "cdist cosine_similarity normalize pairwise_distance pdist",
    "nn.dropout": (
        "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout feature_dropout"
    ),
    "nn.embedding": "embedding embedding_bag one_hot",
    "nn.exponential_units": "celu elu selu",
    "nn.piecewise_activations": (
        "hardshrink hardsigmoid hardswish hardtanh leaky_relu prelu relu relu6 rrelu softshrink "
        "threshold"
    ),
    "nn.softmax": "gumbel_softmax log_softmax softmax softmin",
    "normalisation.batch": "batch_norm instance_norm local_response_norm",
    "normalisation.group": "group_norm",
    "normalisation.layer": "layer_norm rms_norm",
    "normalisation.weight": "_weight_norm",
    "reduction.any_all": "all any count_nonzero",
    "reduction.cumulative": "cummax cummin cumprod cumsum diff logcumsumexp prod",
    "reduction.extrema": "amax amin aminmax argmax argmin max min",
    "reduction.finite_differences": "gradient",
    "reduction.histogram": "bincount histc",
    "reduction.quantile": "nanquantile quantile",
    "reduction.scatter_reduce": "index_reduce scatter_reduce",
    "reduction.sorting": "argsort bucketize kthvalue msort searchsorted sort topk",
    "reduction.statistics": "median mode nanmedian std std_mean var var_mean",
    "reduction.unique": "unique unique_consecutive",
    "shape.rearranging": (
        "diag diag_embed diagflat flip fliplr flipud repeat roll rot90 tile tril triu"
    ),
    "signal.fft": (
        "fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft "
        "ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn"
    ),
    "signal.stft": "istft stft",
    "signal.window_functions": (
        "bartlett_window blackman_window hamming_window hann_window kaiser_window"
    ),
    "spatial.adaptive_pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d"
    ),
    "spatial.convolution": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    "spatial.grid_sample": "affine_grid grid_sample",
    "spatial.padding": "pad",
    "spatial.pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
    "spatial.power_pooling": "lp_pool1d lp_pool2d lp_pool3d",
    "spatial.resampling": "channel_shuffle interpolate pixel_shuffle pixel_unshuffle upsample",
    "spatial.unfold": "fold unfold",
    "spatial.unpooling": (
        "fractional_max_pool2d fractional_max_pool3d max_unpool1d max_unpool2d max_unpool3d"
    ),
    "special.bessel": (
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t "
        "chebyshev_polynomial_u hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e "
        "laguerre_polynomial_l legendre_polynomial_p modified_bessel_i0 modified_bessel_i1 "
        "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 "
        "scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u spherical_bessel_j0"
    ),
    "special.error_functions": (
        "digamma erf erfc erfinv gammaln lgamma logit polygamma psi sinc xlog1py xlogy"
    ),
    "special.gamma": "gammainc gammaincc igamma igammac multigammaln mvlgamma zeta",
    "special.inplace": (
        "abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ "
        "asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ "
        "detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_diagonal_ fix_ float_power_ floor_ frac_ "
        "index_put_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ polygamma_ "
        "rad2deg_ reciprocal_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ "
        "trunc_ xlogy_"
    ),
    "special.normal": "entr erfcx log_ndtr ndtr ndtri",
}
"""The names that each adds to the tables, of functions and of methods; without those of in-place
forms, which end in `_`.
"""

_FAMILIES = {name: family for family, names in LATER.items() for name in names.split()}

_waiting = dict.fromkeys(LATER)


def bring(name: str) -> None:
    """Import the family that has a name."""
    family = _FAMILIES.get(name) or _FAMILIES.get(name.removesuffix("_"))
    if family is not None:
        _import(family)


def bring_all() -> None:
    """Import all families."""
    for family in [*_waiting]:
        _import(family)


def _import(family: str) -> None:
    import_module(f"gradcli.ops.{family}")
    _waiting.pop(family, None)


class Table(dict[str, Any]):
    """What names stand for. It seems to be full from the beginning: to ask for a name brings its
    family in, and to go through all names brings in all.
    """

    __slots__ = ()

    def __missing__(self, name: str) -> Any:
        bring(name)
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        if not dict.__contains__(self, name):
            bring(str(name))
        return dict.__contains__(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        bring_all()
        return dict.__iter__(self)

    def keys(self) -> Any:
        bring_all()
        return dict.keys(self)

    def values(self) -> Any:
        bring_all()
        return dict.values(self)

    def items(self) -> Any:
        bring_all()
        return dict.items(self)
