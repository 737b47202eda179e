"""Attention with several heads: `MultiheadAttention`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error
from gradcli.nn.init import xavier_uniform_, zeros_
from gradcli.nn.layer import FUNCTIONS, new_parameter, register
from gradcli.nn.layers.linear import Linear
from gradcli.nn.module import Module
from gradcli.ops.binding.catalogue import methods, modules


class NonDynamicallyQuantizableLinear(Linear):
    """The layer that the heads' results go through; PyTorch prints it by this name."""


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add: minus infinity where a mask of truth values is True."""
    if mask.array.dtype != np.bool_:
        return mask
    kind = like.array.dtype.type
    return Tensor(np.where(mask.array, kind(-math.inf), kind(0)))


class MultiheadAttention(Module):
    """Queries (time, batch, embed_dim) look at keys and values, each head at a part of them.

    Raises E205 for the options that the language does not have: `add_bias_kv`, `add_zero_attn`,
    `kdim` and `vdim` other than `embed_dim`.

    Example: nn.MultiheadAttention(2, 1)(ones(3, 2), ones(3, 2), ones(3, 2))[0].shape
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise GradcliError("E204", "embed_dim and num_heads have to be positive")
        if embed_dim % num_heads:
            raise GradcliError(
                "E204",
                f"embed_dim is {embed_dim}, no multiple of {num_heads} heads",
                raises="AssertionError",
            )
        if add_bias_kv or add_zero_attn or kdim not in (None, embed_dim):
            raise GradcliError(
                "E205", "add_bias_kv, add_zero_attn and kdim are outside the language"
            )
        if vdim not in (None, embed_dim):
            raise GradcliError("E205", "vdim is outside the language")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.in_proj_weight = new_parameter((3 * embed_dim, embed_dim), device, dtype)
        self.register_parameter(
            "in_proj_bias", new_parameter((3 * embed_dim,), device, dtype) if bias else None
        )
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        xavier_uniform_(self.in_proj_weight)
        if bias:
            zeros_(self.in_proj_bias)
            zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if is_causal and attn_mask is None:
            raise runtime_error("is_causal needs attn_mask")
        self._check_inputs(query, key, value)
        batched = query.ndim == 3
        swap = batched and self.batch_first
        inputs = self._in_order(query, key, value, swap, batched)
        length, batch, width = inputs[0].array.shape
        source = inputs[1].array.shape[0]
        heads = batch * self.num_heads
        view, transpose = methods["view"], methods["transpose"]
        q, k, v = (
            transpose(view(part, -1, heads, self.head_dim), 0, 1)
            for part in self._projected(*inputs)
        )
        mask = self._mask(q, attn_mask, key_padding_mask, (batch, length, source))
        scores = q * math.sqrt(1.0 / self.head_dim)
        keys = transpose(k, -2, -1)
        if mask is None:
            scores = modules["torch"]["bmm"](scores, keys)
        else:
            scores = modules["torch"]["baddbmm"](mask, scores, keys)
        weights = FUNCTIONS["softmax"](scores, -1)
        if self.dropout > 0:
            weights = FUNCTIONS["dropout"](weights, self.dropout, self.training)
        mixed = transpose(modules["torch"]["bmm"](weights, v), 0, 1)
        mixed = view(methods["contiguous"](mixed), length * batch, width)
        output = view(self.out_proj(mixed), length, batch, width)
        shown = self._shown(weights, need_weights, average_attn_weights, (batch, length, source))
        if swap:
            output = transpose(output, 1, 0)
        elif not batched:
            output = methods["squeeze"](output, 1)
            shown = None if shown is None else methods["squeeze"](shown, 0)
        return output, shown

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        """Raise E204 or E301 unless queries, keys and values go together and with the layer."""
        if query.ndim not in (2, 3):
            raise GradcliError(
                "E204",
                f"queries have 2 or 3 dimensions, not {query.ndim}",
                raises="AssertionError",
            )
        if key.ndim != query.ndim or key.array.shape != value.array.shape:
            raise GradcliError(
                "E301",
                f"queries, keys and values of shapes {tuple(query.array.shape)},"
                f" {tuple(key.array.shape)} and {tuple(value.array.shape)} do not go together",
                raises="AssertionError",
            )
        if query.array.shape[-1] != self.embed_dim:
            raise GradcliError(
                "E301",
                f"the embedding is {self.embed_dim} wide, and the queries are"
                f" {query.array.shape[-1]}",
                raises="AssertionError",
            )

    def _in_order(
        self, query: Tensor, key: Tensor, value: Tensor, swap: bool, batched: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values as (time, batch, embed_dim); one that is another stays so."""
        changed: dict[int, Tensor] = {}
        for tensor in (query, key, value):
            if id(tensor) not in changed:
                if swap:
                    changed[id(tensor)] = methods["transpose"](tensor, 1, 0)
                elif batched:
                    changed[id(tensor)] = tensor
                else:
                    changed[id(tensor)] = methods["unsqueeze"](tensor, 1)
        return changed[id(query)], changed[id(key)], changed[id(value)]

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """The three projections: in one product where queries, keys and values are one tensor."""
        weight, bias = self.in_proj_weight, self.in_proj_bias
        linear = FUNCTIONS["linear"]
        if query is key and key is value:
            return self._cut(linear(query, weight, bias), 3)
        width = self.embed_dim
        if key is value:
            sizes = [width, 2 * width]
            first, both = methods["split"](weight, sizes)
            biases = [None, None] if bias is None else methods["split"](bias, sizes)
            rest = self._cut(linear(key, both, biases[1]), 2)
            return [linear(query, first, biases[0]), *rest]
        parts = methods["chunk"](weight, 3)
        biases = [None] * 3 if bias is None else methods["chunk"](bias, 3)
        return [
            linear(input, part, each)
            for input, part, each in zip((query, key, value), parts, biases, strict=True)
        ]

    def _cut(self, projected: Tensor, count: int) -> list[Tensor]:
        """The parts of a joint projection, cut by the ops that PyTorch records."""
        parts = methods["unflatten"](projected, -1, (count, self.embed_dim))
        parts = methods["transpose"](methods["unsqueeze"](parts, 0), 0, -2)
        parts = methods["contiguous"](methods["squeeze"](parts, -2))
        return [methods["select"](parts, 0, index) for index in range(count)]

    def _mask(
        self,
        query: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        sizes: tuple[int, int, int],
    ) -> Tensor | None:
        """Both masks as one to add, (1 or batch · heads, 1 or length, source); None for none."""
        batch, length, source = sizes
        mask = None
        if attn_mask is not None:
            mask = _additive(attn_mask, query)
            if mask.ndim == 2:
                mask = methods["unsqueeze"](mask, 0)
            if mask.array.shape not in ((1, length, source), query.array.shape[:1] + sizes[1:]):
                raise GradcliError(
                    "E301", f"attn_mask of shape {tuple(attn_mask.array.shape)} does not fit"
                )
        if key_padding_mask is not None:
            padding = methods["view"](_additive(key_padding_mask, query), batch, 1, 1, source)
            padding = methods["expand"](padding, -1, self.num_heads, -1, -1)
            padding = methods["reshape"](padding, batch * self.num_heads, 1, source)
            mask = padding if mask is None else mask + padding
        return mask

    def _shown(
        self, weights: Tensor, wanted: bool, averaged: bool, sizes: tuple[int, int, int]
    ) -> Tensor | None:
        """The weights that are returned: of each head, or their mean."""
        if not wanted:
            return None
        batch, length, source = sizes
        by_head = methods["view"](weights, batch, self.num_heads, length, source)
        return methods["mean"](by_head, dim=1) if averaged else by_head


register("activation", MultiheadAttention)
