"""Attention with several heads, `MultiheadAttention`, and transformers:
`TransformerEncoderLayer TransformerEncoder TransformerDecoderLayer TransformerDecoder Transformer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import assertion_error, runtime_error, shape_error, value_error
from gradcli.library.copy import clone
from gradcli.library.torch.nn.init import xavier_normal_, xavier_uniform_, zeros_
from gradcli.library.torch.nn.layer import FUNCTIONS, new_parameter, register
from gradcli.library.torch.nn.layers.activations import Dropout
from gradcli.library.torch.nn.layers.containers import ModuleList
from gradcli.library.torch.nn.layers.linear import Linear
from gradcli.library.torch.nn.layers.normalisation import LayerNorm
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import F, methods, torch

# --- attention ------------------------------------------------------------------------------------


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
        self._reset_parameters()

    def _register(self, shapes: dict[str, Any], device: Any, dtype: Any) -> None:
        for name, shape in shapes.items():
            parameter = None if shape is None else new_parameter(shape, device, dtype)
            self.register_parameter(name, parameter)

    def _reset_parameters(self) -> None:
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


# --- transformers ---------------------------------------------------------------------------------


def _activation(chosen: Any) -> Callable[[Any], Any]:
    """The function between the two linear layers; raises E204 for an unknown name."""
    if not isinstance(chosen, str):
        return chosen
    if chosen not in ("gelu", "relu"):
        raise runtime_error(f"activation should be relu/gelu, not {chosen}")
    return lambda input: FUNCTIONS[chosen](input)


def _clones(module: Module, N: int) -> ModuleList:
    """So many copies of a module, in a list."""
    return ModuleList([clone(module) for _ in range(N)])


modules["torch.nn"].update(_get_activation_fn=_activation, _get_clones=_clones)
"""What transformers that people write after PyTorch's import from it."""


class _Layer(Module):
    """The base of both kinds of layer: attention, two linear layers, and what is around each."""

    _attentions: ClassVar[tuple[str, ...]] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **place
            )
            self.register_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **place)
        self.norm_first = norm_first
        count = len(self._attentions) + 1
        for number in range(1, count + 1):
            self.register_module(f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, **place))
        for number in range(1, count + 1):
            self.register_module(f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation)

    def _around(self, x: Tensor, number: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        """A block with its normalisation, before it or behind the sum."""
        norm = self._modules[f"norm{number}"]
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Tensor:
        """Self-attention and its dropout: as the other blocks, what a class of the program's calls
        or replaces.
        """
        return self._attend("self_attn", 1, x, x, attn_mask, key_padding_mask, is_causal)

    def _attend(
        self,
        name: str,
        number: int,
        x: Tensor,
        source: Tensor,
        mask: Any,
        padding: Any,
        causal: bool,
    ) -> Tensor:
        """What the attention of a name makes of queries x, and keys and values from a source,
        behind the dropout of a number.
        """
        attended, _ = self._modules[name](
            x,
            source,
            source,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=causal,
        )
        return self._modules[f"dropout{number}"](attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        """The two linear layers and their dropout, the last of the layer's."""
        last = self._modules[f"dropout{len(self._attentions) + 1}"]
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers, each added to its input and normalised.

    Raises E204 for an unknown activation.

    Example: nn.TransformerEncoderLayer(2, 1, 4, dropout=0.)(ones(3, 1, 2)).shape
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal)

        return self._around(self._around(src, 1, attend), 2, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and two linear layers.

    Raises E204 for an unknown activation.

    Example: nn.TransformerDecoderLayer(2, 1, 4)(ones(3, 1, 2), ones(3, 1, 2)).shape
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def attend_to_memory(x: Tensor) -> Tensor:
            padding = memory_key_padding_mask
            return self._mha_block(x, memory, memory_mask, padding, memory_is_causal)

        x = self._around(self._around(tgt, 1, attend), 2, attend_to_memory)
        return self._around(x, 3, self._ff_block)

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Tensor:
        """Attention to an encoder's output, and its dropout."""
        return self._attend("multihead_attn", 2, x, mem, attn_mask, key_padding_mask, is_causal)


class _Stack(Module):
    """The base of both stacks: copies of a layer, one on the other."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def _normalised(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """`num_layers` copies of an encoder's layer.

    Example: nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 4), 2)(ones(3, 1, 2)).shape
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return self._normalised(x)


class TransformerDecoder(_Stack):
    """`num_layers` copies of a decoder's layer.

    Example:
        layer = nn.TransformerDecoderLayer(2, 1, 4)
        nn.TransformerDecoder(layer, 1)(ones(3, 1, 2), ones(3, 1, 2)).shape
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )
        return self._normalised(x)


class Transformer(Module):
    """An encoder and a decoder.

    Example: nn.Transformer(2, 1, 1, 1, 4)(ones(3, 1, 2), ones(2, 1, 2)).shape
    """

    language_class_attributes: ClassVar[frozenset[str]] = frozenset(
        {"generate_square_subsequent_mask"}
    )
    language_attributes = Module.language_attributes | language_class_attributes

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        looks = (activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        layer = (d_model, nhead, dim_feedforward, dropout, *looks)
        end = {"eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            inner: Module = TransformerEncoderLayer(*layer)
            custom_encoder = TransformerEncoder(
                inner, num_encoder_layers, LayerNorm(d_model, **end)
            )
        self.encoder = custom_encoder
        if custom_decoder is None:
            inner = TransformerDecoderLayer(*layer)
            custom_decoder = TransformerDecoder(
                inner, num_decoder_layers, LayerNorm(d_model, **end)
            )
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Draw all weights of matrices."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                xavier_uniform_(parameter)

    def _check_sizes(self, src: Tensor, tgt: Tensor) -> None:
        """Raise E301 where the two do not fit each other, or the model."""
        if (
            src.ndim == 3
            and src.array.shape[not self.batch_first] != (tgt.array.shape[not self.batch_first])
        ):
            raise shape_error("the batch number of src and tgt must be equal")
        if not src.array.shape[-1] == tgt.array.shape[-1] == self.d_model:
            raise shape_error("the feature number of src and tgt must be equal to d_model")

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        self._check_sizes(src, tgt)
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask that hides what comes later: minus infinity above the diagonal."""
        full = torch.full((sz, sz), -math.inf, dtype=dtype, device=device)
        return torch.triu(full, diagonal=1)


for _kind in (
    TransformerEncoderLayer,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerDecoder,
    Transformer,
):
    register("transformer", _kind)
