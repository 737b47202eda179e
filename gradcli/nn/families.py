"""Everything of `torch.nn`, imported once: importing a family registers its classes."""

from __future__ import annotations

from gradcli.nn import (  # noqa: F401
    activations,
    attention,
    containers,
    convolutions,
    dropout,
    embeddings,
    gradients,
    initialisation,
    linear,
    losses,
    normalisation,
    pooling,
    recurrent,
    recurrent_cells,
    sequences,
    shaping,
    weight_normalisation,
)
from gradcli.nn.module import Module
from gradcli.ops.catalogue import modules

modules["torch.nn"]["Module"] = Module
