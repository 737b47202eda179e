"""All modules of `torch.utils.data`, imported once: importing a family registers its classes."""

from __future__ import annotations

from gradcli.data import datasets, loading, samplers  # noqa: F401
