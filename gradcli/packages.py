"""Packages that only some programs need: an installation can leave them out."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.errors import GradcliError


def imported(module: str) -> Any:
    """A module of such a package; raises E609, which names the package, where it cannot be used."""
    try:
        return import_module(module)
    except Exception as error:  # one that does not fit NumPy's version fails in any way
        package = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        reason = "is not installed" if missing else f"cannot be loaded: {error}"
        raise GradcliError(
            "E609",
            f"this needs {package}, which {reason}",
            help=f"`pip install {'' if missing else '--force-reinstall '}{package}`",
            raises="ImportError",
        ) from error
