"""All modules of `torch.nn`, imported once: importing a family registers its classes."""

from __future__ import annotations

from gradcli.nn import init  # noqa: F401
from gradcli.nn.layers import (  # noqa: F401
    activations,
    attention,
    containers,
    convolutions,
    dropout,
    embeddings,
    lazy,
    linear,
    losses,
    normalisation,
    packed_sequences,
    pooling,
    recurrent,
    recurrent_cells,
    shaping,
    transformer,
)
from gradcli.nn.module import Module
from gradcli.nn.utils import clipping, orthogonal, prune, weight_norm  # noqa: F401
from gradcli.ops.binding.catalogue import modules

modules["torch.nn"]["Module"] = Module
