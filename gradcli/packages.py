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
        raise unusable(module.partition(".")[0], error) from error


def left_out(who: str, package: str, extra: str) -> GradcliError:
    """E609, the error of what needs a package that an extra of gradcli brings in."""
    return GradcliError(
        "E609",
        f"{who} needs {package}, which is not installed",
        help=f"pip install 'gradcli[{extra}]'",
    )


def unusable(package: str, error: Exception) -> GradcliError:
    """E609, the error of a package whose import failed."""
    missing = isinstance(error, ModuleNotFoundError) and error.name == package
    reason = "is not installed" if missing else f"cannot be loaded: {error}"
    wanted = f"'gradcli[{package}]'" if missing and package in _EXTRAS else package
    return GradcliError(
        "E609",
        f"this needs {package}, which {reason}",
        help=f"`pip install {'' if missing else '--force-reinstall '}{wanted}`",
        raises="ImportError",
    )


_EXTRAS = frozenset({"scipy"})
"""Packages that an extra of their name brings in."""
