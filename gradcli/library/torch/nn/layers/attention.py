"""Attention with several heads: `MultiheadAttention`."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import assertion_error, value_error
from gradcli.library.torch.nn.init import xavier_normal_, xavier_uniform_, zeros_
from gradcli.library.torch.nn.layer import new_parameter, register
from gradcli.library.torch.nn.layers.linear import Linear
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.functions import F, methods


class NonDynamicallyQuantizableLinear(Linear):
    """The layer that the heads' results go through; PyTorch prints it by this name."""


class MultiheadAttention(Module):
    """Queries (time, batch, embed_dim) look at keys and values, each head at a part of them.

    Args:
        add_bias_kv: whether keys and values get one more, which is learned.
        add_zero_attn: whether they get one more of zeros.
        kdim, vdim: the sizes of keys and values, `embed_dim` when not given.

    Raises E204 for sizes that are not positive, or no multiple of `num_heads`.

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
            raise value_error(
                "embed_dim and num_heads must be greater than 0, got"
                f" embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            text = "embed_dim must be divisible by num_heads"
            raise assertion_error(text)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.add_zero_attn = add_zero_attn
        same = self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        shapes = {
            "q_proj_weight": None if same else (embed_dim, embed_dim),
            "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if same else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        if same:  # PyTorch registers what there is first
            shapes = {"in_proj_weight": shapes.pop("in_proj_weight"), **shapes}
        self._register(shapes, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        more = (1, 1, embed_dim) if add_bias_kv else None
        self._register({"bias_k": more, "bias_v": more}, device, dtype)
        self.reset_parameters()

    def _register(self, shapes: dict[str, Any], device: Any, dtype: Any) -> None:
        for name, shape in shapes.items():
            parameter = None if shape is None else new_parameter(shape, device, dtype)
            self.register_parameter(name, parameter)

    def reset_parameters(self) -> None:
        """Draw the weights that project, and set biases to zero."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if self.lookup(name) is not None:
                xavier_uniform_(self.lookup(name))
        if self.in_proj_bias is not None:
            zeros_(self.in_proj_bias)
            zeros_(self.out_proj.bias)
        for name in ("bias_k", "bias_v"):
            if self.lookup(name) is not None:
                xavier_normal_(self.lookup(name))

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
        swap = self.batch_first and query.ndim == 3
        inputs = (query, key, value)
        if swap:
            swapped = {id(each): methods.transpose(each, 1, 0) for each in inputs}
            inputs = tuple(swapped[id(each)] for each in inputs)
        weights = {
            name: self.lookup(name)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight")
            if not self._qkv_same_embed_dim
        }
        output, shown = F.multi_head_attention_forward(
            *inputs,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **weights,
        )
        return (methods.transpose(output, 1, 0) if swap else output), shown


register("activation", MultiheadAttention)
