"""How CPython words a call of one of its own functions that does not fit: it is asked itself."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from gradcli.language.objects.methods import METHODS
from gradcli.language.objects.types import LanguageType
from gradcli.ops.binding.lazy import is_of_family

_ASKED = """abs all any bool bytes callable chr complex dict divmod enumerate filter float
    frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max min next oct
    ord pow print range repr reversed round set slice sorted str sum tuple type zip"""
"""The functions that do nothing beside what they return, but for `print`, which is asked about
keywords alone."""


def host_text(
    name: str, function: Any, args: Sequence[Any], kwargs: dict[str, Any], is_keyword: bool
) -> str | None:
    """CPython's text for arguments that a function of its has no parameters for; None for other
    functions, and where CPython sees no misfit. Its function gets empty lists in place of the
    arguments: nothing of the program's is touched.

    Args:
        is_keyword: whether the misfit is a keyword's.
    """
    home = getattr(function, "__module__", None) or ""
    stand_ins: list[Any] = [[] for _ in args]
    target: Any = None
    of_library = home.startswith("gradcli.library.") and not is_of_family(home)
    if isinstance(function, LanguageType) or of_library:
        if name in _ASKED.split() and (is_keyword or name != "print"):
            target = getattr(builtins, name)
    elif args and METHODS.get(type(args[0]), {}).get(name) is function:
        target = getattr(type(args[0]), name, None)
        stand_ins[0] = type(args[0])()
    if target is None:
        return None
    try:
        target(*stand_ins, **{key: [] for key in kwargs})
    except TypeError as error:
        return str(error)
    except Exception:
        return None
    return None
