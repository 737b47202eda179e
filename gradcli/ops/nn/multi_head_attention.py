"""Attention with several heads as a function, which `nn.MultiheadAttention` calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, shape_error
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, operators
from gradcli.ops.definition.doc import RANDOM
from gradcli.ops.linalg.products.matrix_products import baddbmm, bmm, linear
from gradcli.ops.nn.attention import scaled_dot_product_attention
from gradcli.ops.nn.dropout import dropout
from gradcli.ops.nn.softmax import softmax_op
from gradcli.ops.nn.spatial.padding import constant_pad
from gradcli.ops.shape.joining import cat_function


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


def _attended(
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
    output, shown = _attended(heads, num_heads, p, is_causal, need_weights)
    output = linear(output, out_proj_weight, out_proj_bias)
    output = methods.view(output, *inputs[0].array.shape[:2], -1)
    if shown is not None and average_attn_weights:
        shown = methods.mean(shown, dim=1)
    if not batched:
        output = methods.squeeze(output, 1)
        shown = None if shown is None else methods.squeeze(shown, 0)
    return output, shown
