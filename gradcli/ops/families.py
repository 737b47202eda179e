"""The families that every program needs; importing a family registers its ops."""

from __future__ import annotations

from gradcli.ops import (  # noqa: F401
    arithmetic_operators,
    comparison,
    complex,
    creation,
    cutting,
    data,
    devices,
    half_precision,
    index_assignment,
    indexing,
    matmul,
    power,
    tensors,
)
