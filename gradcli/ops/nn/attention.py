"""`scaled_dot_product_attention`: the softmax of query times key, times value; and attention with
several heads as a function, which `nn.MultiheadAttention` calls.

The arrays of queries are (B, H, L, E) and those of keys (B, H, S, E), and some heads are computed
at a time: their weights fit the cache; for the gradient they are made again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, new_empty
from gradcli.arrays.dtypes import float32
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.threads import in_turns
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import add, mul_number, no_derivative
from gradcli.ops.binding.arguments import check_same_dtype, check_tensors, normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.copies import cast_to_floating
from gradcli.ops.definition.doc import BY_KINDS, RANDOM
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, dtype_names
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.products.matrix_products import baddbmm, bmm, linear, matmul
from gradcli.ops.nn.dropout import dropout
from gradcli.ops.nn.softmax import softmax_backward, softmax_op
from gradcli.ops.nn.spatial.padding import constant_pad
from gradcli.ops.shape.joining import cat_function
from gradcli.ops.shape.views import transpose
from gradcli.state import active

# --- arrays, some heads at a time -----------------------------------------------------------------


_TILE = 1 << 18
"""Weights that are computed at a time."""

Heads = tuple[slice, slice]


def attended(query: Any, key: Any, value: Any, mask: Any, scale: float) -> Any:
    """`softmax(query @ key.mT * scale + mask) @ value`; zeros where nothing is attended to."""
    fused = in_c.attention(query, key, value, mask, scale)
    if fused is not None:
        return fused
    out = new_empty(query, (*query.shape[:3], value.shape[3]))
    blocks = _blocks(key, value, mask)

    def attend(heads: Heads) -> None:
        for rows, keys, part in blocks:
            seen = _of_heads(mask, heads) if part is None else part
            weights = _weights_of_heads(query[(*heads, rows)], key[(*heads, keys)], seen, scale)
            np.matmul(weights, value[(*heads, keys)], out=out[(*heads, rows)])

    _over_heads(query, key, attend)
    return out


def attention_gradients(
    grad: Any, query: Any, key: Any, value: Any, out: Any, mask: Any, scale: float
) -> tuple[Any, Any, Any]:
    """The gradients of `attended` in query, key and value, from that of its result `out`. The heads
    of a position are adjacent in memory.
    """
    fused = in_c.attention_backward(grad, query, key, value, mask, scale)
    if fused is not None:
        return fused
    of_query, of_key, of_value = gradients = [
        new_empty(query, (each.shape[0], each.shape[2], each.shape[1], each.shape[3])).swapaxes(
            1, 2
        )
        for each in (query, key, value)
    ]

    blocks = _blocks(key, value, mask)

    def differentiate(heads: Heads) -> None:
        if len(blocks) > 1:
            of_key[heads] = of_value[heads] = 0
        for rows, keys, part in blocks:
            here, there = (*heads, rows), (*heads, keys)
            seen = _of_heads(mask, heads) if part is None else part
            weights = _weights_of_heads(query[here], key[there], seen, scale)
            by_weight = np.matmul(grad[here], value[there].swapaxes(-1, -2))
            scores = in_c.softmax_backward(by_weight, weights, scale)
            if scores is None:
                by_weight -= np.sum(grad[here] * out[here], axis=-1, keepdims=True)
                scores = by_weight * (weights * scale)
            of_query[here] = np.matmul(scores, key[there])
            for gradient, factor, other in (
                (of_value, weights, grad[here]),
                (of_key, scores, query[here]),
            ):
                product = np.matmul(factor.swapaxes(-1, -2), other)
                if len(blocks) > 1:
                    gradient[there] += product
                else:
                    gradient[there] = product

    _over_heads(query, key, differentiate)
    return tuple(gradients)


def _blocks(key: Any, value: Any, mask: Any) -> list[tuple[slice, slice, Any]]:
    """Blocks of queries, the keys that a mask shows to some of them, and that part of the mask,
    None for one block of everything. The weights of the keys behind those are 0, which leaves what
    is finite out of the result.
    """
    length = 0 if mask is None or mask.ndim != 2 else len(mask)
    if length < 2 * _ROWS or type(mask) is not np.ndarray:
        return [(slice(None), slice(None), None)]
    shown = mask > -np.inf
    if shown[:_ROWS, -1].any() or not np.isfinite(np.sum(key) + np.sum(value)):
        return [(slice(None), slice(None), None)]
    blocks = []
    for start in range(0, length, _ROWS):
        rows = slice(start, start + _ROWS)
        count = int(np.max(np.flatnonzero(shown[rows].any(axis=0)), initial=0)) + 1
        keys = slice(0, count)
        blocks.append((rows, keys, np.ascontiguousarray(mask[rows, keys])))
    return blocks


_ROWS = 64
"""Queries of a block."""


def _weights_of_heads(query: Any, key: Any, mask: Any, scale: float) -> Any:
    weights = np.matmul(query, key.swapaxes(-1, -2))
    softmax = in_c.softmax(weights, mask, scale, True)
    if softmax is not None:
        return softmax
    weights *= scale
    if mask is not None:
        weights += mask
    highest = np.max(weights, axis=-1, keepdims=True)
    highest[highest == -np.inf] = 0
    weights -= highest
    np.exp(weights, out=weights)
    total = np.sum(weights, axis=-1, keepdims=True)
    total[total == 0] = 1
    weights /= total
    return weights


def _of_heads(mask: Any, heads: Heads) -> Any:
    """A mask for some heads, of two dimensions where it is the same for all."""
    if mask is None or mask.ndim < 3:
        return mask
    sizes = mask.shape[:-2]
    parts = heads[-len(sizes) :]
    return mask[
        tuple(part if size > 1 else slice(1) for part, size in zip(parts, sizes, strict=True))
    ]


def _over_heads(query: Any, key: Any, work: Callable[[Heads], None]) -> None:
    """Call `work` with the heads of a tile, on a thread per core."""
    batch, heads, length, _ = query.shape
    beside, samples = heads, batch
    if module_of(query) is np:
        each = length * key.shape[2]
        beside, samples = (max(1, _TILE // size) for size in (each, each * heads))
    in_turns(
        [
            (slice(sample, sample + samples), slice(head, head + beside))
            for sample in range(0, batch, samples)
            for head in range(0, heads, beside)
        ],
        work,
    )


# --- the op ---------------------------------------------------------------------------------------


# --- step by step -------------------------------------------------------------------------------


def _safe_softmax_array(self: Any, dim: int) -> Any:
    """The softmax; a row of minus infinities, where nothing is attended to, gives zeros."""
    masked = np.all(self == -np.inf, axis=dim, keepdims=True)
    if not masked.any():
        return softmax_op(self, dim)
    with np.errstate(invalid="ignore"):
        return np.where(masked, self.dtype.type(0), softmax_op(self, dim))


safe_softmax: Op = op(
    "_safe_softmax",
    _safe_softmax_array,
    decomposition=lambda self, dim: softmax_op.apply(self, dim),
    self=lambda grad, result, dim: softmax_backward(grad, result, dim),
    raises=BY_KINDS,
)


def _attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    drop: Callable[[Tensor], Tensor] | None,
    scale: float,
) -> Tensor:
    """Attention composed of its ops. Query and key each take the root of the scale. Half precision
    is computed in float32.

    Args:
        drop: what leaves out some of the weights.
    """
    own = query.dtype
    if own.itemsize == 2:
        query, key, value = [cast_to_floating.apply(each, float32) for each in (query, key, value)]
    root = sqrt(scale)
    last = key.array.ndim - 1
    turned = mul_number.apply(transpose.apply(key, last - 1, last), root)
    scores = matmul(mul_number.apply(query, root), turned)
    if mask is not None:
        scores = add.apply(scores, mask)
    weights = safe_softmax.apply(scores, scores.array.ndim - 1)
    if drop is not None:
        weights = drop(weights)
    product = matmul(weights, value)
    return cast_to_floating.apply(product, own) if own.itemsize == 2 else product


# --- in one step --------------------------------------------------------------------------------


def _for_all_heads(query: Any, *shared: Any) -> list[Any]:
    """Arrays of keys and values, of which several heads of the query may share one, for each."""
    heads = query.shape[1]
    return [
        each if each.shape[1] == heads else each.repeat(heads // each.shape[1], 1)
        for each in shared
    ]


def _of_shared(grad: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of what heads share, from those of what each of them has."""
    if grad.shape == shape:
        return grad
    batch, heads, *rest = shape
    return grad.reshape(batch, heads, -1, *rest).sum(2)


def _repeated(query: Tensor, shared: Tensor) -> Tensor:
    """What heads of the query share, for each of them."""
    times = query.array.shape[-3] // shared.array.shape[-3]
    return shared if times == 1 else torch.repeat_interleave(shared, times, -3)


def _summed(grad: Tensor, shared: Tensor) -> Tensor:
    """`_of_shared` of tensors."""
    shape = shared.array.shape
    if grad.array.shape == shape:
        return grad
    batch, heads, *rest = shape
    return methods.sum(methods.reshape(grad, (batch, heads, -1, *rest)), 2)


def _fused_array(query: Any, key: Any, value: Any, mask: Any = None, scale: float = 1.0) -> Any:
    key, value = _for_all_heads(query, key, value)
    outcome = attended(
        wide(query), wide(key), wide(value), None if mask is None else wide(mask), scale
    )
    return outcome.astype(query.dtype, copy=False)


def _fused_backward_array(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    attended: Any,
    mask: Any = None,
    scale: float = 1.0,
) -> tuple[Any, ...]:
    grad, q, out = map(wide, (grad_out, query, attended))
    k, v = map(wide, _for_all_heads(query, key, value))
    of_query, of_key, of_value = attention_gradients(
        grad, q, k, v, out, None if mask is None else wide(mask), scale
    )
    gradients = of_query, _of_shared(of_key, key.shape), _of_shared(of_value, value.shape)
    return tuple([each.astype(query.dtype, copy=False) for each in gradients])


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """How much each query attends to each key."""
    last = key.array.ndim - 1
    scores = matmul(query, transpose.apply(key, last - 1, last)) * scale
    return softmax_op.apply(scores if mask is None else scores + mask, scores.array.ndim - 1)


def _fused_decomposed(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, scale: float = 1.0
) -> Tensor:
    key, value = _repeated(query, key), _repeated(query, value)
    return matmul(_weights(query, key, mask, scale), value)


def _fused_backward_decomposed(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attended: Tensor,
    mask: Tensor | None = None,
    scale: float = 1.0,
) -> tuple[Tensor, ...]:
    """The gradients with the weights made anew, as the fused kernel makes them."""
    whole = _repeated(query, key), _repeated(query, value)
    weights = _weights(query, whole[0], mask, scale)
    last = weights.array.ndim - 1
    of_weights = matmul(grad_out, transpose.apply(whole[1], last - 1, last))
    of_scores = softmax_backward.apply(of_weights, weights, last)
    of_key = matmul(transpose.apply(of_scores, last - 1, last), query) * scale
    of_value = matmul(transpose.apply(weights, last - 1, last), grad_out)
    return (
        matmul(of_scores, whole[0]) * scale,
        _summed(of_key, key),
        _summed(of_value, value),
    )


_no_second = no_derivative(
    "the gradient of a fused attention",
    "write the attention out: softmax(q @ k.mT) @ v",
    pytorch="_scaled_dot_product_flash_attention_for_cpu_backward",
)

fused_attention_backward: Op = op(
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    _fused_backward_array,
    decomposition=_fused_backward_decomposed,
    node="NotImplemented",
    constant=("mask",),
    outputs=("grad_query", "grad_key", "grad_value"),
    keeps_layout=True,
    inputs=("grad_out", "query", "key", "value", "attended"),
    joint=lambda grads: _no_second(grads),
    raises=BY_KINDS,
)

fused_attention: Op = op(
    "_scaled_dot_product_flash_attention_for_cpu",
    _fused_array,
    decomposition=_fused_decomposed,
    constant=("mask",),
    inputs=("query", "key", "value"),
    # The result is kept as PyTorch keeps it: a write to it is an error.
    joint=lambda grad, query, key, value, mask, result, scale: fused_attention_backward(
        grad, query, key, value, result, mask, scale
    ),
    raises=BY_KINDS,
)

# --- what programs write ------------------------------------------------------------------------


def _check_heads(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise where the heads of the query cannot share those of key and value evenly."""
    heads, *others = [
        tensor.array.shape[normal_dim("size", -3, tensor.array.ndim)]
        for tensor in (query, key, value)
    ]
    if others != [heads, heads] and any(not each or heads % each for each in others):
        raise runtime_error(
            f"scaled_dot_product_attention(): the {heads} heads of the query are no multiple of the"
            f" {others[0]} of the key and the {others[1]} of the value",
            "Number of heads in key and value must divide the number of heads in ",
        )


def _mask_of(mask: Tensor | None, is_causal: bool, query: Tensor, key: Tensor) -> Tensor | None:
    """What is added to the scores: minus infinity where nothing is attended to."""
    dtype = query.array.dtype
    if is_causal:
        if mask is not None:
            raise runtime_error(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when"
                " is_causal=True"
            )
        shape = (query.array.shape[-2], key.array.shape[-2])
        allowed = np.tril(module_of(query.array).ones(shape, np.bool_))
    elif mask is None:
        return None
    else:
        check_tensors("scaled_dot_product_attention", attn_mask=mask)
        if mask.dtype.category != "bool":
            check_same_dtype("scaled_dot_product_attention", query, mask)
            return mask
        allowed = mask.array
    added = Tensor(np.where(allowed, dtype.type(0), dtype.type(-np.inf)))
    if is_causal and active.state.recorder is not None:
        active.state.recorder.wrapped(added)  # it follows from the shapes
    return added


@function(
    "scaled_dot_product_attention",
    module="torch.nn.functional",
    autocast="short",
    effects=(RANDOM,),
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.mT * scale + mask) @ value`, over the last two dimensions.

    Args:
        attn_mask: what is added to the scores, or, as bools, where there are any.
        is_causal: whether each place sees only the places up to its own.
        scale: one over the root of the last size when not given.
        enable_gqa: whether heads of the query share those of key and value, each as many.

    Raises E203, E204 or E301 where the operands do not go together.

    Example:
        F.scaled_dot_product_attention(tensor([[2., 1.], [1., 3.]]), tensor([[2., 1.], [1., 3.]]),
            tensor([[1., 0.], [2., 1.]]))
    """
    drop = (lambda weights: dropout(weights, dropout_p)) if dropout_p > 0 else None
    return attention(query, key, value, attn_mask, drop, is_causal, scale, enable_gqa)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    drop: Callable[[Tensor], Tensor] | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """`scaled_dot_product_attention`, with what leaves out some of the weights. Raises as it."""
    name = "scaled_dot_product_attention"
    kinds = [tensor.dtype.c_name for tensor in (query, key, value)]
    text = (
        "Expected query, key, and value to have the same dtype, but got"
        f" query.dtype: {kinds[0]} key.dtype: {kinds[1]} and value.dtype: {kinds[2]} instead."
    )
    check_same_dtype(name, query, key, text)
    check_same_dtype(name, query, value, text)
    check_dtype(name, query.dtype, dtype_names("bool", "int", raises="RuntimeError") | COMPLEX)
    ranks = [tensor.array.ndim for tensor in (query, key, value)]
    if min(ranks) < 2:
        raise shape_error(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim:"
            f" {ranks[0]} key.dim: {ranks[1]} and value.dim: {ranks[2]} instead."
        )
    if enable_gqa:
        _check_heads(query, key, value)
    mask = _mask_of(attn_mask, is_causal, query, key)
    if scale is None:
        features = query.array.shape[-1]
        scale = 1 / sqrt(features) if features else inf
    fused = (
        ranks == [4, 4, 4]
        and drop is None
        and (mask is None or not mask.requires_grad)
        and key.array.shape[:2] == value.array.shape[:2]
        and query.array.shape[: 1 if enable_gqa else 2] == key.array.shape[: 1 if enable_gqa else 2]
        and query.array.shape[-1] == key.array.shape[-1] == value.array.shape[-1]
        and all(tensor.array.size for tensor in (query, key, value))
    )
    if fused:
        return fused_attention.apply(query, key, value, mask, scale)
    if enable_gqa:
        key, value = _repeated(query, key), _repeated(query, value)
    return _attended(query, key, value, mask, drop, scale)


# --- several heads --------------------------------------------------------------------------------


def _require(holds: bool, text: str) -> None:
    """Raise E301, an AssertionError of a text, unless something holds."""
    if not holds:
        raise shape_error(text, raises="AssertionError")


def _shape(tensor: Tensor) -> str:
    return f"torch.Size({list(tensor.array.shape)})"


def _is_batch(
    query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any, heads: int
) -> bool:
    """Whether there is a batch; raises E301 for numbers of dimensions that do not go together."""
    rank = query.ndim
    _require(
        rank in (2, 3),
        f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor",
    )
    kind = f"For {'' if rank == 3 else 'un'}batched ({rank}-D) `query`, expected"
    _require(
        key.ndim == rank and value.ndim == rank,
        f"{kind} `key` and `value` to be {rank}-D but found {key.ndim}-D and {value.ndim}-D tensors"
        " respectively",
    )
    if padding is not None:
        _require(
            padding.ndim == rank - 1,
            f"{kind} `key_padding_mask` to be `None` or {rank - 1}-D but found {padding.ndim}-D"
            " tensor instead",
        )
    if mask is not None:
        _require(
            mask.ndim in (2, 3),
            f"{kind} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead",
        )
        wanted = (heads, query.array.shape[0], key.array.shape[0])
        if rank == 2 and mask.ndim == 3:
            _require(
                mask.array.shape == wanted,
                f"Expected `attn_mask` shape to be {wanted} but got {_shape(mask)}",
            )
    return rank == 3


def _additive(name: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask as numbers to add: minus infinity where one of truth values is True.

    Raises E203 for one of integers.
    """
    if mask is None or mask.dtype.category == "float":
        return mask
    if mask.dtype.category != "bool":
        text = f"only bool and floating types of {name} are supported"
        raise dtype_error(text, raises="AssertionError")
    kind = like.array.dtype.type
    return Tensor(np.where(mask.array, kind(-math.inf), kind(0)))


def _cut(projected: Tensor, count: int, width: int) -> list[Tensor]:
    """The parts of a joint projection, cut by the ops that PyTorch records."""
    parts = methods.unflatten(projected, -1, (count, width))
    parts = methods.transpose(methods.unsqueeze(parts, 0), 0, -2)
    parts = methods.contiguous(methods.squeeze(parts, -2))
    return [methods.select(parts, 0, index) for index in range(count)]


def _projected(inputs: tuple[Tensor, Tensor, Tensor], weight: Any, bias: Any) -> list[Tensor]:
    """The three projections by one weight: one product where all three inputs are one tensor."""
    query, key, value = inputs
    width = query.array.shape[-1]
    if query is key and key is value:
        return _cut(linear(query, weight, bias), 3, width)
    if key is value:
        sizes = [width, 2 * width]
        first, both = methods.split(weight, sizes)
        biases = [None, None] if bias is None else methods.split(bias, sizes)
        rest = _cut(linear(key, both, biases[1]), 2, width)
        return [linear(query, first, biases[0]), *rest]
    return _apart(inputs, methods.chunk(weight, 3), bias)


def _apart(inputs: tuple[Tensor, ...], weights: Any, bias: Tensor | None) -> list[Tensor]:
    """The three projections, each by a weight of its own."""
    biases = [None] * 3 if bias is None else methods.chunk(bias, 3)
    return [linear(*each) for each in zip(inputs, weights, biases, strict=True)]


def _checked_mask(mask: Tensor, sizes: tuple[int, int, int]) -> Tensor:
    """`attn_mask` with three dimensions; raises E301 for another shape."""
    rank = mask.ndim
    if rank not in (2, 3):
        raise runtime_error(f"attn_mask's dimension {rank} is not supported")
    wanted = sizes[1:] if rank == 2 else sizes
    if mask.array.shape != wanted:
        raise runtime_error(
            f"The shape of the {rank}D attn_mask is {_shape(mask)}, but should be {wanted}."
        )
    return methods.unsqueeze(mask, 0) if rank == 2 else mask


def _merged(masks: list[Any], batch: int, heads: int, source: int) -> Tensor | None:
    """Both masks as one to add, (1 or batch · heads, 1 or length, source); None for none. Raises
    E301 where that of the padding is not (batch, source).
    """
    mask, padding = masks
    if padding is None:
        return mask
    for dim, (extent, wanted) in enumerate(zip(padding.array.shape, (batch, source), strict=True)):
        text = f"Expected key_padded_mask.shape[{dim}] to be {wanted}, but got {extent}"
        _require(extent == wanted, text)
    padding = methods.view(padding, batch, 1, 1, source)
    padding = methods.expand(padding, -1, heads, -1, -1)
    padding = methods.reshape(padding, batch * heads, 1, source)
    return padding if mask is None else mask + padding


def _weighed(q: Tensor, k: Tensor, v: Tensor, mask: Any, p: float) -> tuple[Tensor, Tensor]:
    """The output of each head, (batch · heads, length, head_dim), and its attention weights."""
    scores = operators.mul(q, math.sqrt(1.0 / q.array.shape[-1]))
    keys = methods.transpose(k, -2, -1)
    scores = bmm.apply(scores, keys) if mask is None else baddbmm.apply(mask, scores, keys)
    weights = softmax_op.apply(scores, 2)
    if p > 0:
        weights = dropout(weights, p)
    return bmm.apply(weights, v), weights


def _with_one_more(k: Tensor, v: Tensor, masks: list[Any], more: Any, dim: int) -> Any:
    """Keys, values and masks with one key more, which no mask hides."""
    padded = [None if mask is None else constant_pad(mask, (0, 1), 0) for mask in masks]
    return cat_function([k, more[0]], dim), cat_function([v, more[1]], dim), padded


def _in_one_step(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, is_causal: bool, batch: int
) -> Tensor:
    """The outputs of the heads, (length, batch, heads, head_dim), without the attention weights."""
    view = methods.view
    by_head = (batch, q.array.shape[0] // batch, -1)
    if mask is not None:
        one = mask.array.shape[0] == 1
        last = mask.array.shape[-1]
        mask = methods.unsqueeze(mask, 0) if one else view(mask, *by_head, last)
    q, k, v = (view(each, *by_head, each.array.shape[-1]) for each in (q, k, v))
    mixed = scaled_dot_product_attention(q, k, v, mask, p, is_causal)
    return methods.permute(mixed, 2, 0, 1, 3)


def _check_sizes(inputs: tuple[Tensor, ...], width: int, heads: int, separate: bool) -> None:
    """Raise E301 for sizes that do not fit each other or the weights."""
    query, key, value = inputs
    own = query.array.shape[-1]
    _require(own == width, f"was expecting embedding dimension of {width}, but got {own}")
    _require(own % heads == 0, f"embed_dim {own} not divisible by num_heads {heads}")
    if separate:
        begins = [f"torch.Size({list(each.array.shape[:2])})" for each in (key, value)]
        text = f"key's sequence and batch dims {begins[0]} do not match value's {begins[1]}"
        _require(begins[0] == begins[1], text)
    else:
        _require(
            key.array.shape == value.array.shape,
            f"key shape {_shape(key)} does not match value shape {_shape(value)}",
        )


def _heads(
    projected: list[Tensor], masks: list[Any], count: int, more: Any, static: Any, with_zeros: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Queries, keys and values of each head, (batch · heads, time, head_dim), and one mask.

    Args:
        more: a key and a value that each sample gets, or None.
        static: keys and values in place of the projected ones, or None.
        with_zeros: whether each gets one more of zeros.
    """
    q, k, v = projected
    length, batch, width = q.array.shape
    heads, head_dim = batch * count, width // count
    if masks[0] is not None:
        masks[0] = _checked_mask(masks[0], (heads, length, k.array.shape[0]))
    if None not in more:
        repeated = [methods.repeat(each, 1, batch, 1) for each in more]
        k, v, masks = _with_one_more(k, v, masks, repeated, 0)
    q, k, v = (
        methods.transpose(methods.view(each, each.array.shape[0], heads, head_dim), 0, 1)
        if own is None
        else own
        for each, own in zip((q, k, v), (None, *static), strict=True)
    )
    if with_zeros:
        zeros = Tensor(module_of(k.array).zeros((heads, 1, head_dim), k.array.dtype))
        k, v, masks = _with_one_more(k, v, masks, (zeros, zeros), 1)
    return q, k, v, _merged(masks, batch, count, k.array.shape[1])


def _mixed(
    heads: tuple[Tensor, Tensor, Tensor, Tensor | None],
    count: int,
    p: float,
    is_causal: bool,
    wanted: bool,
) -> tuple[Tensor, Tensor | None]:
    """What all heads make, (length · batch, embed_dim), and, where wanted, the weights of each."""
    q, k, v, mask = heads
    view = methods.view
    rows, length, head_dim = q.array.shape
    batch = rows // count
    shown = None
    if wanted:
        mixed, shown = _weighed(q, k, v, mask, p)
        mixed = methods.transpose(mixed, 0, 1)
        shown = view(shown, batch, count, length, -1)
    else:
        mixed = _in_one_step(q, k, v, mask, p, is_causal, batch)
    return view(methods.contiguous(mixed), length * batch, count * head_dim), shown


@function("multi_head_attention_forward", module="torch.nn.functional", effects=(RANDOM,))
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Queries (time, batch, embed_dim) look at keys and values, each head at a part of them.

    Raises E301 or E203 for shapes and masks that do not go together.

    Example:
        x = tensor([[2., 1.], [1., 3.]])
        F.multi_head_attention_forward(x, x, x, 2, 1, ones(6, 2), None, None, None, False, 0.,
            eye(2), None)
    """
    batched = _is_batch(query, key, value, key_padding_mask, attn_mask, num_heads)
    inputs = (query, key, value)
    padding = _additive("key_padding_mask", key_padding_mask, query)
    if not batched:
        raised = methods.unsqueeze
        inputs = (raised(query, 1), raised(key, 1), raised(value, 1))
        padding = None if padding is None else methods.unsqueeze(padding, 0)
    if is_causal and attn_mask is None:
        raise runtime_error(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module"
            " method `generate_square_subsequent_mask` to create this mask."
        )
    is_causal = is_causal and padding is None and not need_weights
    mask = None if is_causal else _additive("attn_mask", attn_mask, query)
    _check_sizes(inputs, embed_dim_to_check, num_heads, use_separate_proj_weight)
    apart = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    projected = (_apart if apart else _projected)(inputs, apart or in_proj_weight, in_proj_bias)
    more, static = (bias_k, bias_v), (static_k, static_v)
    heads = _heads(projected, [mask, padding], num_heads, more, static, add_zero_attn)
    p = dropout_p if training else 0.0
    output, shown = _mixed(heads, num_heads, p, is_causal, need_weights)
    output = linear(output, out_proj_weight, out_proj_bias)
    output = methods.view(output, *inputs[0].array.shape[:2], -1)
    if shown is not None and average_attn_weights:
        shown = methods.mean(shown, dim=1)
    if not batched:
        output = methods.squeeze(output, 1)
        shown = None if shown is None else methods.squeeze(shown, 0)
    return output, shown
