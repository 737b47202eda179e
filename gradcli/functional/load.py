"""All modules of this package, imported once: importing a family registers its functions."""

from __future__ import annotations

from gradcli.functional import (  # noqa: F401
    checkpoint,
    derivatives,
    forward_ad,
    gradcheck,
    graph,
    jacobians,
    products,
    saved_tensors,
    stateless,
    vmap,
)
