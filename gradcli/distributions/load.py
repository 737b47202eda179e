"""All modules of `torch.distributions`, imported once: importing a family registers its classes."""

from __future__ import annotations

from gradcli.distributions import counts, divergence, tails, transformed  # noqa: F401
