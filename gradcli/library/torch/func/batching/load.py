"""All files of rules, imported once: importing one registers its rules."""

from __future__ import annotations

from gradcli.library.torch.func.batching import (  # noqa: F401
    convolution,
    indexing,
    linalg,
    losses,
    products,
    shapes,
)
