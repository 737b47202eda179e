"""Dtype support: which dtypes an op does not support, stated in its entry, and the errors for them,
which call a function by the names of PyTorch's kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.arrays.dtypes import DType
from gradcli.errors import GradcliError, dtype_error

# --- the names of kernels -------------------------------------------------------------------------


_NAMES = """
_segment_reduce_cpu: segment_reduce
check_uniform_bounds: fractional_max_pool2d fractional_max_pool3d
GeluKernelImpl: gelu
GroupNormKernelImpl: group_norm
LayerNormKernelImpl: layer_norm
abs_cpu: abs
adaptive_avg_pool2d: adaptive_avg_pool1d adaptive_avg_pool2d
adaptive_avg_pool3d_cpu: adaptive_avg_pool3d
adaptive_max_pool2d: adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d_cpu: adaptive_max_pool3d
addcmul_cpu_out: addcmul
addmm_impl_cpu_: addmm mm
addmv_impl_cpu: mv
aminmax_cpu: aminmax
atan2_cpu: atan2
avg_pool2d: avg_pool1d avg_pool2d lp_pool1d lp_pool2d
avg_pool3d_out_frame: avg_pool3d
batch_norm: batch_norm instance_norm
bincount_cpu: bincount
bernoulli_scalar_cpu_: bernoulli_
bernoulli_tensor_cpu_p_: bernoulli
binary_cross_entropy: binary_cross_entropy
baddbmm: baddbmm
bmm: bmm
cdist: cdist
ceil_vml_cpu: ceil
chebyshev_polynomial_t_cpu: special_chebyshev_polynomial_t
chebyshev_polynomial_u_cpu: special_chebyshev_polynomial_u
hermite_polynomial_h_cpu: special_hermite_polynomial_h
hermite_polynomial_he_cpu: special_hermite_polynomial_he
laguerre_polynomial_l_cpu: special_laguerre_polynomial_l
legendre_polynomial_p_cpu: special_legendre_polynomial_p
shifted_chebyshev_polynomial_t_cpu: special_shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u_cpu: special_shifted_chebyshev_polynomial_u
cholesky_cpu: cholesky cholesky_ex
cholesky_inverse_out_cpu: cholesky_inverse
cholesky_solve_cpu: cholesky_solve
clamp_cpu: clamp
col2im_out_cpu: col2im
compute_columns3d: conv3d
cross: cross
ctc_loss_cpu: ctc_loss
cummax_cpu: cummax
cummin_cpu: cummin
div_floor_cpu: floor_divide floor_divide_number floor_divide_of_number
dot: dot
elu_cpu: celu celu_ elu elu_ selu
entr_cpu: special_entr
erfcx_cpu: special_erfcx
floor_vml_cpu: floor
fmod_cpu: fmod
ge_cpu: ge
geqrf_cpu: qr
glu_cpu: glu
grid_sampler_2d_cpu_kernel_impl: grid_sample
gt_cpu: gt
hardshrink_cpu: hardshrink
hardsigmoid_cpu: hardsigmoid
hardswish_cpu: hardswish
huber_cpu: huber_loss
hypot_cpu: hypot
igamma_cpu: igamma
igammac_cpu: igammac
im2col_out_cpu: im2col
index_func_: reduce_elements
index_reduce_func_exclude_input_init: reduce_without_self
kthvalue_cpu: kthvalue
le_cpu: le
rrelu_with_noise_out_cpu: rrelu_with_noise
histogram_cpu: histc
histogramdd: histogram
leaky_relu_cpu: leaky_relu leaky_relu_ rrelu rrelu_
lerp_kernel_scalar: lerp
lshift_cpu: bitwise_left_shift
lgamma_vml_cpu: lgamma
linalg_eig_out_cpu: eig eigvals
linalg_eigh_cpu: eigh eigvalsh
linalg_svd_cpu: cond linalg_svd svd svdvals
log_ndtr_cpu: special_log_ndtr
log_sigmoid_cpu: binary_cross_entropy_with_logits logsigmoid multilabel_soft_margin_loss
log_softmax_kernel_impl: inner_log_softmax
log_softmax_lastdim_kernel_impl: log_softmax
logaddexp2_cpu: logaddexp2
logaddexp_cpu: logaddexp
logcumsumexp_out_cpu: logcumsumexp
lt_cpu: lt
lu_cpu: det lu lu_factor solve tensorsolve
max_all: max
max_pool1d_impl: max_pool1d
max_pool2d: max_pool2d
max_pool3d: max_pool3d
max_unpool2d: max_unpool1d max_unpool2d
max_unpool3d: max_unpool3d
max_values_cpu: amax
maximum_cpu: clamp_min
median_cpu: median nanmedian
min_all: min
min_values_cpu: amin
minimum_cpu: clamp_max
mish_cpu: mish
mode_cpu: mode
mse_cpu: mse_loss
multi_margin_loss_cpu_kernel: multi_margin_loss
multilabel_margin_loss_forward_out_frame: multilabel_margin_loss
ndtri_cpu: special_ndtri
nansum_cpu: nansum
nextafter_cpu: nextafter
nll_loss_out_frame: nll_loss
orgqr_cpu: linalg_householder_product
ormqr_cpu: ormqr
pdist: pdist
pow: pow
prelu_cpu: prelu
random_kernel_cpu: random_
reflection_pad1d: reflection_pad1d
reflection_pad2d: reflection_pad2d
reflection_pad3d: reflection_pad3d
remainder_cpu: remainder
replication_pad1d: replication_pad1d
replication_pad2d: replication_pad2d
replication_pad3d: replication_pad3d
round_cpu: round
rshift_cpu: bitwise_right_shift
scatter_gather_tensor_cpu_reduce_amax: reduce_amax
scatter_gather_tensor_cpu_reduce_amin: reduce_amin
scatter_gather_tensor_cpu_reduce_mean: reduce_mean
silu_cpu: silu
slow_conv2d_cpu: conv1d conv2d
slow_conv_transpose2d_out_cpu: conv_transpose1d conv_transpose2d
slow_conv_transpose3d_out_cpu: conv_transpose3d
smooth_l1_cpu: smooth_l1_loss
softmax_kernel_impl: inner_softmax
softmax_lastdim_kernel_impl: scaled_dot_product_attention softmax
softplus_cpu: softplus
softshrink_check: softshrink
threshold_cpu: threshold threshold_
trace: trace
triangular_solve_cpu: solve_triangular triangular_solve
trigamma: polygamma polygamma_
trunc_vml_cpu: trunc
unique: unique unique_consecutive
tril_indices: tril_indices
triu_indices: triu_indices
weight_norm_kernel: _weight_norm
zeta_cpu: special_zeta
"""
"""Each kernel and the functions of which PyTorch says that it is not implemented for a dtype."""

_KERNELS = {
    name: kernel
    for kernel, _, names in (line.partition(":") for line in _NAMES.strip().splitlines())
    for name in names.split()
}


def not_implemented(name: str, scalar_type: str) -> str | None:
    """PyTorch's text for a dtype that its kernel lacks; None where it has another one."""
    kernel = _KERNELS.get(name)
    return kernel and f"\"{kernel}\" not implemented for '{scalar_type}'"


# --- support --------------------------------------------------------------------------------------


Unsupported = Mapping[str, str]
"""The error class that is raised, by the name of the dtype."""

_HALVES = ("float16", "bfloat16")


def dtype_names(*names: str, raises: str = "NotImplementedError") -> dict[str, str]:
    """The value of an entry's `unsupported=` for the dtypes of these names; `raises` is the class
    of PyTorch's error.
    """
    return dict.fromkeys(names, raises)


NOTHING: dict[str, str] = dtype_names()
INTEGRAL = dtype_names("bool", "int")
COMPLEX = dtype_names("complex")
NOT_FLOATING = INTEGRAL | COMPLEX
NOT_SINGLE_OR_DOUBLE = NOT_FLOATING | dtype_names("half")


WITHOUT_COMPLEX_GRADIENT = frozenset(
    {
        "_trilinear",
        "embedding",
        "index_reduce",
        "nan_to_num",
        "normal",
        "scatter_reduce",
        "select_scatter",
        "silu",
        "slice_scatter",
    }
)
"""Ops that compute complex results, which PyTorch does not differentiate."""

LEAVING_COMPLEX = frozenset(
    {
        "AddrBackward0",
        "DiagonalScatterBackward0",
        "DistBackward0",
        "FillBackward3",
        "IndexFillBackward1",
        "LdexpBackward0",
        "Logaddexp2Backward0",
        "LogaddexpBackward0",
        "MaskedFillBackward1",
        "WhereBackward0",
    }
)
"""Nodes for which PyTorch does not take the real part of a real input's gradient."""


def no_complex_gradient(name: str) -> GradcliError:
    """The error for a complex result that would be recorded."""
    return dtype_error(
        f"{name}() has no derivative where the result is complex",
        help="detach() the operands where no gradient is needed",
    )


def check_dtype(name: str, dtype: DType, unsupported: Unsupported, kernel: str = "") -> None:
    """Raise E203 where the function `name` does not support a dtype; `unsupported` has the
    class, `kernel` is what PyTorch calls it, where that is not its usual kernel's name.
    """
    raises = unsupported.get(dtype.name) or unsupported.get(dtype.category)
    if raises is None and dtype.name in _HALVES:
        raises = unsupported.get("half")
    if raises is not None:
        raise not_defined(name, dtype, raises, kernel, _help(dtype, unsupported))


_ALGEBRA = {
    **dict.fromkeys(("cholesky", "cholesky_ex"), "linalg.cholesky"),
    **dict.fromkeys(("cond", "svd", "svdvals"), "linalg.svd"),
    **dict.fromkeys(("inv", "inv_ex", "tensorinv"), "linalg.inv"),
    "logdet": "logdet",
    **{name: f"linalg.{name}" for name in ("det", "qr", "slogdet", "solve", "vecdot")},
}
"""What the errors of functions of matrices call them."""

_WORDS = {
    **dict.fromkeys(("eig", "eigvals"), "Unknown Complex ScalarType for {}"),
    **dict.fromkeys(
        ("lstsq", "matrix_rank"), "This function doesn't handle types other than float and double"
    ),
    "multinomial": "multinomial only supports floating-point dtypes for input, got: {}",
}
"""The texts that have other words, by function."""


def not_defined(
    name: str, dtype: DType, raises: str, kernel: str = "", help: str | None = None
) -> GradcliError:
    """The error of a function that does not support a dtype."""
    plain = f"{name}() is not defined for {dtype}"
    text = None
    if raises == "NotImplementedError":
        text = not_implemented(kernel or name, dtype.scalar_type)
    elif name in _ALGEBRA:
        said = "Expected a floating point or complex tensor as input."
        if dtype.name in _HALVES:
            said = "Low precision dtypes not supported."
        text = f"{_ALGEBRA[name]}: {said} Got {dtype.scalar_type}"
    elif name in _WORDS:
        text = _WORDS[name].format(dtype.scalar_type)
    return dtype_error(plain, raises=raises, text=text, help=help)


def check_floating_dtype(
    name: str, dtype: DType, text: str | None = None, whose: str = "Input"
) -> None:
    """Raise E203, as RuntimeError, for an integer or bool dtype; `text` is PyTorch's, where that is
    not the usual one, `whose` the dtype is there.
    """
    try:
        check_dtype(name, dtype, _NO_MEAN)
    except GradcliError as error:
        error.text = text or (
            f"{name}(): could not infer output dtype. {whose} dtype must be either a floating"
            f" point or complex dtype. Got: {dtype.scalar_type}"
        )
        raise


_NO_MEAN = dtype_names("bool", "int", raises="RuntimeError")


def _help(dtype: DType, unsupported: Unsupported) -> str | None:
    """The help for such an error where the function takes floating tensors."""
    if dtype.category in ("bool", "int") and {"bool", "int"} <= unsupported.keys():
        return "make it floating: `x.float()`"
    if dtype.name in _HALVES:
        return "widen it: `x.float()`"
    return None
