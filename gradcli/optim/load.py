"""All modules of `torch.optim`, imported once: importing a family registers its classes."""

from __future__ import annotations

from gradcli.optim import (  # noqa: F401
    adam,
    adaptive,
    averaging,
    combined,
    cycles,
    lbfgs,
    matrices,
    plateau,
    schedules,
    sgd,
)
