"""`out=`: the tensors that a function writes its results to, in place of new ones.

One mechanism serves all functions that have `out=` in PyTorch. The result is computed as without
it; then it is written, and the tensor gets the result's shape. Methods have no `out=`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.layout.strides import laid_out_like
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.inplace.writes import check_memory, write
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import GradcliError, dtype_error, runtime_error, type_error
from gradcli.ops.binding.results import ReturnType, named
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.definition.lints import check_resized
from gradcli.ops.definition.op import Function
from gradcli.state import active

_OF_VIEWS = frozenset({
    "alias_copy", "as_strided_copy", "diagonal_copy", "expand_copy", "narrow_copy",
    "permute_copy", "select_copy", "slice_copy", "squeeze_copy", "t_copy", "transpose_copy",
    "unfold_copy", "unsqueeze_copy", "view_as_complex_copy", "view_as_real_copy", "view_copy",
})  # fmt: skip
"""Copies of one view; of copies of several PyTorch returns None beside `out=`."""

WITH_OUT = frozenset({
    "abs", "absolute", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv",
    "addr", "airy_ai", "all", "amax", "amin", "aminmax", "angle", "any", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "asin",
    "asinh", "atan", "atan2", "atanh", "avg_pool2d", "avg_pool3d", "baddbmm", "bernoulli",
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm", "bucketize",
    "cat", "ceil", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "clamp", "clamp_max",
    "clamp_min", "clip", "column_stack", "complex", "concat", "concatenate", "cond",
    "conj_physical", "copysign", "cos", "cosh", "cross", "cummax", "cummin", "cumprod",
    "cumsum", "deg2rad", "det", "diag", "diff", "digamma", "div", "divide", "dot", "dstack",
    "eig", "eigh", "eigvals", "eigvalsh", "empty", "entr", "eq", "erf", "erfc", "erfcx",
    "erfinv", "exp", "exp2", "expit", "expm1", "eye", "fft", "fft2", "fftfreq", "fftn", "fix",
    "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "frexp", "full",
    "gammainc", "gammaincc", "gammaln", "gather", "gcd", "ge", "gelu", "ger", "greater",
    "greater_equal", "gt", "hardshrink", "heaviside", "hermite_polynomial_h",
    "hermite_polynomial_he", "hfft", "hfft2", "hfftn", "histc", "householder_product", "hstack",
    "hypot", "i0", "i0e", "i1", "i1e", "ifft", "ifft2", "ifftn", "igamma", "igammac", "ihfft",
    "ihfft2", "index_add", "index_copy", "index_reduce", "index_select", "inner",
    "inv", "inv_ex", "inverse", "irfft", "irfft2", "irfftn", "isin", "isneginf", "isposinf",
    "kron", "kthvalue", "laguerre_polynomial_l", "lcm", "ldexp", "le", "legendre_polynomial_p",
    "lerp", "less", "less_equal", "lgamma", "linear", "linspace", "log", "log10", "log1p",
    "log2", "log_ndtr", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logit", "logsigmoid", "logspace", "logsumexp",
    "lstsq", "lt", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "lu_unpack", "masked_select",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "max", "maximum", "mean", "median",
    "min", "minimum", "mm", "mode", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "msort", "mul", "multi_dot", "multigammaln",
    "multinomial", "multiply", "mv", "mvlgamma", "nan_to_num", "nanmean", "nanmedian",
    "nanquantile", "nansum", "ndtr", "ndtri", "ne", "neg", "negative", "nextafter", "nonzero",
    "norm", "normal", "normalize", "not_equal", "ones", "orgqr", "ormqr", "outer", "pinv",
    "polar", "polygamma", "pow", "prod", "psi", "qr", "quantile", "rad2deg", "rand", "randint",
    "randn", "randperm", "reciprocal", "remainder", "renorm", "rfft", "rfft2", "rfftfreq",
    "rfftn", "round", "row_stack", "rsqrt", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "scatter", "scatter_add", "scatter_reduce", "searchsorted",
    "sgn", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "sigmoid",
    "sign", "signbit", "sin", "sinc", "sinh", "slice_scatter", "slogdet", "softmax", "softplus",
    "softshrink", "solve", "solve_ex", "solve_triangular", "sort", "spherical_bessel_j0",
    "sqrt", "square", "stack", "std", "sub", "subtract", "sum", "svd", "svdvals", "take",
    "take_along_dim", "tan", "tanh", "tensordot", "tensorinv", "tensorsolve", "threshold",
    "topk", "triangular_solve", "tril", "triu", "true_divide", "trunc", "var", "vdot", "vecdot",
    "vector_norm", "vstack", "where", "xlog1py", "xlogy", "zeros", "zeta", *_OF_VIEWS,
})  # fmt: skip
"""The functions that take `out=`."""

_OF_NEW_TENSORS = frozenset({
    "arange", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "randint",
    "randn", "randperm", "zeros",
})  # fmt: skip
"""Those that fill a new tensor: its dtype is that of `out`, and a resize is no mistake."""

_IN_DTYPE_OF_OUT = _OF_NEW_TENSORS | {"sum", "mean", "prod", "cumsum", "cumprod"}
"""Those that compute in the dtype of `out`."""

_SILENT = _OF_NEW_TENSORS | {"bernoulli", "multinomial", "addbmm", "logsigmoid"}
"""Those that resize `out` without a warning."""

_NEED_DIM = frozenset({"sum", "prod", "median", "nanmedian"})
"""Those that take `out=` only beside a `dim`."""

_FOUND = frozenset({
    "abs", "absolute", "bitwise_not", "ceil", "clamp", "clamp_max", "clamp_min", "clip",
    "conj_physical", "fix", "floor", "frac", "gelu", "hardshrink", "neg", "negative", "round",
    "sgn", "sign", "softplus", "softshrink", "trunc",
})  # fmt: skip
"""Those whose kernels ask for the very dtype of the result."""

_SAME_DTYPE = frozenset({
    "addbmm", "addmm", "addmv", "all", "amax", "amin", "any", "argmax", "argmin", "avg_pool2d",
    "avg_pool3d", "baddbmm", "bmm", "bucketize", "cholesky", "complex", "cross", "det", "diag",
    "dot", "eigvalsh", "float_power", "gather", "heaviside", "histc", "index_add", "index_copy",
    "index_reduce", "index_select", "inner", "inv", "inverse", "isin", "isneginf", "isposinf",
    "linear", "log_softmax", "logcumsumexp", "logsigmoid", "lu_solve", "masked_select",
    "matmul", "matrix_norm", "matrix_power", "mm", "msort", "multi_dot", "multinomial", "mv",
    "nan_to_num", "nanquantile", "nonzero", "norm", "ormqr", "polar", "quantile", "renorm",
    "scatter", "scatter_add", "scatter_reduce", "searchsorted", "signbit", "slice_scatter",
    "softmax", "solve", "solve_triangular", "svdvals", "take", "take_along_dim", "tensordot",
    "tril", "triu", "vdot", "vecdot", "vector_norm", "where", *_OF_VIEWS,
})  # fmt: skip
"""Others that take no `out` of another dtype than the result's."""

_REAL = frozenset({
    "bernoulli", "fftfreq", "hfft", "hfft2", "hfftn", "irfft", "irfft2", "irfftn",
    "nanmean", "nansum", "rfftfreq", "std", "var",
})  # fmt: skip
"""Those that take no complex `out`."""

_WITHOUT_DERIVATIVE = frozenset({
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "hermite_polynomial_h", "hermite_polynomial_he", "histc",
    "laguerre_polynomial_l", "legendre_polynomial_p", "modified_bessel_i0",
    "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "spherical_bessel_j0",
})  # fmt: skip
"""Those that take an `out` that requires grad."""

_JOINS = frozenset(
    {
        "cat",
        "concat",
        "concatenate",
        "stack",
        *["hstack", "vstack", "dstack", "row_stack", "column_stack"],
    }
)
"""Those that raise TypeError for a dtype that the result cannot be cast to."""


def written(name: str, function: Function, out: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function and write its results to the tensors given as `out`; returns these.

    Raises E201 or E202 where `out` is not as many tensors as there are results, E203 for a dtype
    that a result cannot be written to, E405 where something requires grad or memory overlaps.
    """
    if out is None:
        return function(*args, **kwargs)
    targets = _targets(name, out)
    if name in _NEED_DIM and len(args) < 2 and "dim" not in kwargs:
        raise GradcliError("E201", f"{name}() takes `out` only beside a `dim`")
    if name in _IN_DTYPE_OF_OUT:
        dtype = targets[0].dtype
        if kwargs.setdefault("dtype", dtype) not in (dtype, None):
            raise dtype_error(
                f"dtype {scalar_type(kwargs['dtype'])} does not match dtype of out parameter"
                f" ({scalar_type(dtype)})"
            )
    result = function(*args, **kwargs)
    results = (result,) if type(result) is Tensor else tuple(result)
    if any(type(each.array) is BatchedArray for each in (*results, *targets)):
        raise runtime_error(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on"
            " out= or view ops.",
            help="assign the result instead: `y = ...`",
        )
    if len(results) != len(targets) or isinstance(out, Tensor) is not isinstance(result, Tensor):
        wanted = "a tensor" if type(result) is Tensor else f"a tuple of {len(results)} tensors"
        raise type_error(f"{name}(): argument 'out' must be {wanted}")
    if name == "bernoulli":  # 0 and 1 are of any dtype
        results = (Tensor(dtypes.cast(result.array, targets[0].dtype)),)
    same = name in _SAME_DTYPE or (len(results) > 1 and name != "lstsq")
    for target, each in zip(targets, results, strict=True):
        _check(name, target, each, same)
        if target.array.shape == each.array.shape:
            check_memory(target, *args)
    for target, each in zip(targets, results, strict=True):
        _write(name, target, each)
    if isinstance(result, ReturnType):
        return named(f"{result.name}_out", " ".join(result.fields), targets)
    return out


def _targets(name: str, out: Any) -> tuple[Tensor, ...]:
    targets = (out,) if type(out) is Tensor else out
    if type(targets) not in (tuple, list) or not all(type(each) is Tensor for each in targets):
        raise type_error(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")
    return tuple(targets)


def _check(name: str, target: Tensor, result: Tensor, same: bool) -> None:
    """Raise E405 where something requires grad, E203 where the result cannot be written in the
    tensor's dtype, or has another one though it has to be the same.
    """
    recorded = result.requires_grad or (target.requires_grad and name not in _WITHOUT_DERIVATIVE)
    if recorded and active.state.grad_enabled:
        raise GradcliError(
            "E405",
            f"{name}(): functions with out=... arguments don't support automatic differentiation,"
            " but one of the arguments requires grad.",
            help="assign the result instead: `y = ...`, or write under `with torch.no_grad():`",
        )
    computed, wanted = result.dtype, target.dtype
    if name in _FOUND and computed is not wanted:
        raise dtype_error(f"Found dtype {scalar_type(wanted)} but expected {scalar_type(computed)}")
    if same and computed is not wanted:
        raise dtype_error(
            f"Expected out tensor to have dtype {_C_NAMES.get(computed.name, computed.name)}, but"
            f" got {_C_NAMES.get(wanted.name, wanted.name)} instead"
        )
    if not dtypes.can_cast(computed, wanted) or (name in _REAL and wanted.is_complex):
        joins = name in _JOINS
        what = "torch.cat(): input types" if joins else f"result type {scalar_type(computed)}"
        raise dtype_error(
            f"{what} can't be cast to the desired output type {scalar_type(wanted)}",
            raises="TypeError" if joins else None,
        )


def _write(name: str, target: Tensor, result: Tensor) -> None:
    shape = result.array.shape
    if target.array.shape != shape:
        if target.base is not None:
            raise GradcliError(
                "E405",
                f"{name}(): `out` is a view of shape {tuple(target.array.shape)}, and the result of"
                f" shape {tuple(shape)} needs other memory",
                help="give a tensor of the result's shape",
            )
        if target.array.size and name not in _SILENT:
            check_resized(name, target.array.shape, shape)
        storage_of(target)
        empty = np.empty_like(result.array, target.array.dtype, shape=shape)
        target.array = laid_out_like(result.array, empty)
    write(target, result)


_C_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
}
"""How PyTorch names dtypes as C++ does."""


def scalar_type(dtype: dtypes.DType) -> str:
    """How PyTorch names a dtype as its `ScalarType`: Float, Long, ComplexDouble."""
    names = {"float": "float32", "double": "float64", "half": "float16", "int": "int32"}
    names |= {"long": "int64", "short": "int16", "char": "int8", "byte": "uint8"}
    names |= {"ComplexFloat": "complex64", "ComplexDouble": "complex128", "BFloat16": "bfloat16"}
    short = next((name for name, each in names.items() if each == dtype.name), dtype.name)
    return short if short[0].isupper() else short.capitalize()
