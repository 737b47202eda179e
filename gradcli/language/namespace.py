"""From names to what they mean: builtins, modules and the catalogue's ops."""

from __future__ import annotations

from typing import Any

import gradcli.ops.families  # noqa: F401  (fills the catalogue)
from gradcli.arrays.dtypes import DType
from gradcli.arrays.sizes import Device, Size
from gradcli.errors import GradcliError, Span
from gradcli.language.attributes import Module
from gradcli.language.builtins import BUILTINS
from gradcli.language.classes import EXCEPTIONS, TENSOR, define
from gradcli.language.mathematics import MATH, NUMPY
from gradcli.language.suggestions import closest
from gradcli.ops import catalogue


def _torch_modules() -> dict[str, Module]:
    """The catalogue's modules by their dotted names, each inside its parent."""
    found: dict[str, Module] = {}
    for full_name in catalogue.modules:
        parts = full_name.split(".")
        for length in range(1, len(parts) + 1):
            dotted = ".".join(parts[:length])
            if dotted not in found:
                found[dotted] = Module(dotted, catalogue.modules.get(dotted, {}))
            if length > 1:
                found[".".join(parts[: length - 1])].modules[parts[length - 1]] = found[dotted]
    return found


def _install_classes() -> None:
    """Put the classes of torch that programs name into its module; what the catalogue has there
    makes their instances.
    """
    table = catalogue.modules["torch"]
    for made in (
        TENSOR,
        define("torch.Size", Size),
        define("torch.dtype", DType),
        define("torch.device", Device),
    ):
        made.construct = table.get(made.name)
        table[made.name] = made
    catalogue.modules["torch.linalg"]["LinAlgError"] = EXCEPTIONS["_LinAlgError"]


_install_classes()
_TORCH = _torch_modules()

MODULES: dict[str, Module] = {
    **_TORCH,
    "math": Module("math", MATH),
    "numpy": Module("numpy", NUMPY),
}
"""The modules that can be imported."""

PREDEFINED: dict[str, Any] = {
    "F": MODULES["torch.nn.functional"],
    "math": MODULES["math"],
    "nn": MODULES["torch.nn"],
    "np": MODULES["numpy"],
    "torch": MODULES["torch"],
}
"""Modules that need no import."""

_TABLES = (
    BUILTINS,
    PREDEFINED,
    catalogue.modules["torch"],
    catalogue.modules["torch.nn.functional"],
)

# `e` is a variable's name in every other program, so the constant is torch.e and math.e only.
_NOT_PLAIN = frozenset({"e"})

REFUSED = {
    "__import__": "modules are imported with `import`: torch, numpy and math",
    "breakpoint": "the language has no debugger of the host's",
    "compile": "a program cannot run text as code",
    "dir": "the host's objects cannot be looked into",
    "eval": "a program cannot run text as code",
    "exec": "a program cannot run text as code",
    "exit": "a program ends with its last statement",
    "globals": "the host's objects cannot be looked into",
    "id": "`a is b` tells whether two values are the same",
    "input": "values come in as `NAME=VALUE`",
    "locals": "the host's objects cannot be looked into",
    "object": "the host's objects cannot be looked into",
    "open": "files come in as `NAME=@FILE`",
    "quit": "a program ends with its last statement",
    "vars": "the host's objects cannot be looked into",
}
"""Well-known names that are no part of the language, and why."""


def table_of(name: str) -> dict[str, Any] | None:
    """The table that gives a name its meaning where the program gives it none, None for an
    unknown name.
    """
    if name in _NOT_PLAIN:
        return None
    for table in _TABLES:
        if name in table:
            return table
    return None


def unknown_name(name: str, values: dict[str, Any], span: Span) -> GradcliError:
    """The error of a name that nothing gives a value, with the one that was likely meant."""
    refusal = REFUSED.get(name)
    if refusal is not None:
        return GradcliError(
            "E101", f"`{name}` is not part of the language", span=span, help=refusal
        )
    words = ("True", "False", "None")
    near = closest(name, [*values, *words, *(known for table in _TABLES for known in table)])
    help = None if near is None else f"did you mean `{near}`?"
    return GradcliError("E101", f"`{name}` has no value", span=span, help=help)


def module(name: str) -> Module:
    """A module by its dotted name; raises E103 for one that the language does not have."""
    found = MODULES.get(name)
    if found is None:
        help = "torch, numpy and math can be imported"
        if name.startswith("torch."):
            inner = ", ".join(sorted(n for n in MODULES if n.startswith("torch.")))
            help = f"of torch there are {inner}"
        raise GradcliError("E103", f"there is no module `{name}` in the language", help=help)
    return found


def imported(module_name: str, name: str) -> Any:
    """What `from module_name import name` binds; raises E103 for what there is not."""
    found = module(module_name)
    try:
        return found.get(name)
    except KeyError:
        near = closest(name, found.public_names())
        raise GradcliError(
            "E103",
            f"the module `{module_name}` has no `{name}` in the language",
            raises="ImportError",
            help=None if near is None else f"did you mean `{near}`?",
        ) from None
