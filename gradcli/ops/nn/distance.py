"""Angles and distances between vectors: `cosine_similarity pairwise_distance cdist normalize`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.batched import change_values
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import div, no_derivative, zeros_like
from gradcli.ops.binding.arguments import Dims, check_not_integral, check_same_dtype, normal_dims
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import clone, contiguous, to
from gradcli.ops.definition.doc import BY_KINDS, Hazard
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.op import ANY, TensorSpec, op
from gradcli.ops.elementwise.clamp import clamp_min
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.elementwise.power import pow_number
from gradcli.ops.elementwise.unary import abs_op, sign
from gradcli.ops.indexing.along import index_add, index_select
from gradcli.ops.linalg.norms import norm_gradient, vector_norm
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.reshaping import broadcast_tensors
from gradcli.ops.shape.views import expand, expand_as, transpose, unsqueeze

# --- angles -------------------------------------------------------------------------------------


def _length(vectors: Tensor, dim: tuple[int, ...], eps: float) -> Tensor:
    """The length of the vectors, at least `eps`; the gradient passes as if it were not clamped."""
    length = clone.apply(vector_norm.apply(vectors, 2.0, dim, True))
    change_values(length, lambda array: np.maximum(array, eps).astype(array.dtype))
    return length


@function("cosine_similarity", also="torch.nn.functional")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors that lie along a dimension. A vector counts as at
    least `eps` long. Raises E203 for integers, E301 where the shapes cannot be broadcast.

    Example: torch.cosine_similarity(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    dtype = dtypes.result_dtype((x1.array, x2.array))
    check_dtype(
        "cosine_similarity", dtype, dtype_names("bool", "int", "complex", raises="RuntimeError")
    )
    if not eps >= 0:
        raise runtime_error(f"eps must be non-negative, got: {eps:g}")
    # Integers have no length; a narrower floating operand is widened by the product only.
    x1, x2 = (x if x.dtype.category == "float" else to(x, dtype) for x in (x1, x2))
    if x1.array.shape != x2.array.shape:
        common = broadcast_tensors(x1, x2)[0].array.shape
        x1, x2 = expand.apply(x1, common), expand.apply(x2, common)
    dims = normal_dims("cosine_similarity", x1, dim)
    directions = (x1 / _length(x1, dims, eps)) * (x2 / _length(x2, dims, eps))
    return sum_dims.apply(directions, dims, False)


@function("normalize", module="torch.nn.functional")
def normalize(input: Tensor, p: float = 2.0, dim: Dims = 1, eps: float = 1e-12) -> Tensor:
    """The vectors along a dimension divided by their p-norm, which counts as at least `eps`.

    Example: F.normalize(tensor([[2., 1.], [1., 3.]]))
    """
    check_not_integral("normalize", input, "RuntimeError")
    length = vector_norm.apply(input, float(p), normal_dims("normalize", input, dim), True)
    return div.apply(input, expand_as(clamp_min(length, eps), input))


# --- distances ----------------------------------------------------------------------------------

# The norm under the name by which PyTorch calls it here.
norm_along = op(
    "norm",
    lambda self, p, dim, keepdim: vector_norm(self, p, dim, keepdim),
    node="NormBackward1",
    self=lambda grad, self, result, p, dim, keepdim: norm_gradient(
        grad, self, result, p, dim, keepdim
    ),
    hazard=Hazard(zeros="norm has no slope where all is 0"),
    raises=BY_KINDS,
)


@function("pairwise_distance", also="torch.nn.functional")
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of the difference, to which `eps` is added, along the last dimension.

    Example: torch.pairwise_distance(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    difference = x1 - x2 + eps
    last = max(x1.array.ndim, x2.array.ndim) - 1
    return norm_along.apply(difference, float(p), (last,) if last >= 0 else (), keepdim)


def _differences(x1: Any, x2: Any) -> Any:
    return np.expand_dims(x1, -2) - np.expand_dims(x2, -3)


def _cdist_array(x1: Any, x2: Any, p: float) -> Any:
    differences = _differences(x1, x2)
    if p == np.inf:  # a nan is passed over, here and in no other norm
        return np.fmax.reduce(np.abs(differences), axis=-1, initial=0)
    return _distances(differences, p)


def _distances(differences: Any, p: float) -> Any:
    """The norms along the last dimension; a nan counts as nan in a count too."""
    distances = vector_norm(differences, p, (differences.ndim - 1,), False)
    if p == 0:
        distances = np.where(np.isnan(differences).any(-1), np.nan, distances)
    return distances.astype(differences.dtype, copy=False)


def _slopes(grad: Any, differences: Any, distances: Any, p: float) -> Any:
    """The gradient of distances in the differences along the last dimension. Where a distance is 0
    it is 0, whatever its own gradient is, but for orders whose formula has no such case.
    """
    if p == 1:
        return np.expand_dims(grad, -1) * np.sign(differences)
    if p == np.inf:
        apart = np.abs(np.abs(differences) - np.expand_dims(distances, -1))
        reached = 1 - np.minimum(1, np.ceil(apart))
        return (np.expand_dims(grad, -1) * np.sign(differences) * reached).astype(grad.dtype)
    last = (differences.ndim - 1,)
    slopes = norm_gradient(grad, differences, distances, p, last, False)
    if slopes is None:
        return np.zeros_like(differences)
    flat = np.expand_dims(distances == 0, -1)
    return np.where(flat | (differences == 0) if p < 1 else flat, 0, slopes).astype(grad.dtype)


def _decomposed_slopes(grad: Tensor, differences: Tensor, distances: Tensor, p: float) -> Tensor:
    """`_slopes`, step by step."""
    last = differences.array.ndim - 1
    share = unsqueeze.apply(grad, last)
    if p == 0:
        return differences * 0.0
    if p == 1:
        return share * sign(differences)
    length = unsqueeze.apply(distances, last)
    if p == np.inf:
        reached = abs_op(differences) == length
        return where(reached, share * sign(differences), 0.0)
    slopes = differences if p == 2 else differences * pow_number(abs_op(differences), p - 2)
    flat = where(length == 0, 1.0, length) if p == 2 else pow_number(length, p - 1)
    quotient = share * slopes / flat
    return quotient if p == 2 else where(length == 0, 0.0, quotient)


def _cdist_decomposed(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    rows, columns = x1.array.ndim - 1, x2.array.ndim - 2
    differences = unsqueeze.apply(x1, rows) - unsqueeze.apply(x2, columns)
    slopes = _decomposed_slopes(grad, differences, cdist, p)
    return sum_dims.apply(slopes, (differences.array.ndim - 2,), False)


_no_second = no_derivative(
    "cdist_backward",
    "use (x.unsqueeze(-2) - y.unsqueeze(-3)).norm(dim=-1)",
    "NotImplementedError",
    pytorch="_cdist_backward",
)

cdist_backward = op(
    "_cdist_backward",
    lambda grad, x1, x2, p, cdist: np.add.reduce(
        _slopes(grad, _differences(x1, x2), cdist, p), axis=-2
    ),
    decomposition=_cdist_decomposed,
    grad=_no_second,
    x1=_no_second,
    x2=_no_second,
    cdist=_no_second,
    raises=BY_KINDS,
)


def _swapped(value: Any) -> Any:
    turned = transpose(value, value.ndim - 2, value.ndim - 1)
    return contiguous(turned) if type(turned) is Tensor else turned


_cdist = op(
    "cdist",
    _cdist_array,
    x1=lambda grad, x1, x2, p, result: cdist_backward(grad, x1, x2, p, result),
    x2=lambda grad, x1, x2, p, result: cdist_backward(_swapped(grad), x2, x1, p, _swapped(result)),
    hazard=Hazard(zeros="cdist has no slope where all is 0"),
    numpy="""\
def cdist(x, y, p=2):
    return np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, axis=-1)
""",
    raises=BY_KINDS,
)


def _pairs(count: int) -> tuple[Any, Any]:
    """The numbers of the first and the second row of every pair."""
    first, second = np.triu_indices(count, 1)
    return first, second


def _pdist_array(self: Any, p: float) -> Any:
    first, second = _pairs(len(self))
    return _distances(self[first] - self[second], p)


def _pdist_backward_array(grad: Any, self: Any, p: float, pdist: Any) -> Any:
    first, second = _pairs(len(self))
    slopes = _slopes(grad, self[first] - self[second], pdist, p)
    result = np.zeros_like(self)
    np.add.at(result, first, slopes)
    np.add.at(result, second, -slopes)
    return result


def _pdist_decomposed(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    first, second = (Tensor(each) for each in _pairs(len(self.array)))
    differences = index_select(self, 0, first) - index_select(self, 0, second)
    slopes = _decomposed_slopes(grad, differences, pdist, p)
    empty = zeros_like(self)
    return index_add(empty, 0, first, slopes) - index_add(empty, 0, second, slopes)


_no_second_pdist = no_derivative(
    "pdist_backward",
    "use norm() of the differences",
    "NotImplementedError",
    pytorch="_pdist_backward",
)

pdist_backward = op(
    "_pdist_backward",
    _pdist_backward_array,
    decomposition=_pdist_decomposed,
    grad=_no_second_pdist,
    self=_no_second_pdist,
    pdist=_no_second_pdist,
    raises=BY_KINDS,
)

_pdist = op(
    "_pdist_forward",
    _pdist_array,
    node="PdistBackward0",
    self=lambda grad, self, p, result: pdist_backward(grad, self, p, result),
    raises=BY_KINDS,
)


_SINGLE_ONLY = dtype_names("bool", "int", "complex", raises="RuntimeError") | dtype_names("half")


@function(
    "pdist",
    also="torch.nn.functional",
    takes={"input": TensorSpec(2, 2, text="pdist only supports 2D tensors, got: {ndim}D")},
)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distance of every two rows of a matrix, each pair once. At distance 0 the gradient
    is 0. Raises E301 for what is no matrix, E204 for a negative p.

    Example: torch.pdist(tensor([[2., 1.], [1., 3.]]))
    """
    check_dtype("pdist", input.dtype, _SINGLE_ONLY)
    if p < 0:
        raise runtime_error("pdist only supports non-negative p values")
    return _pdist.apply(input, float(p))


@function(
    "cdist",
    autocast="float32",
    takes={
        "x1": TensorSpec(2, ANY, "cdist only supports at least 2D tensors, X1 got: {ndim}D"),
        "x2": TensorSpec(2, ANY, "cdist only supports at least 2D tensors, X2 got: {ndim}D"),
    },
)
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norm distance between every row of `x1` and every row of `x2`; leading dimensions are
    broadcast. At distance 0 the gradient is 0.

    Raises E301 where the operands are no matrices, or their rows differ in length; E204 for a
    negative p.

    Example: torch.cdist(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    if x1.array.shape[-1] != x2.array.shape[-1]:
        raise shape_error(
            f"X1 and X2 must have the same number of columns. X1: {x1.array.shape[-1]} X2:"
            f" {x2.array.shape[-1]}"
        )
    for x in (x1, x2):
        check_not_integral("cdist", x, "RuntimeError")
        check_dtype("cdist", x.dtype, dtype_names("complex", raises="RuntimeError"))
    if p < 0:
        raise runtime_error("cdist only supports non-negative p values")
    check_dtype("cdist", x1.dtype, _SINGLE_ONLY)
    check_same_dtype("cdist", x1, x2)
    return _cdist.apply(x1, x2, float(p))
