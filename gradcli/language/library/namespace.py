"""Resolves names to builtins, modules and ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradcli.ops.load  # noqa: F401  (fills the catalogue)
from gradcli.arrays.dtypes import DType
from gradcli.arrays.sizes import Device, Size
from gradcli.autograd.engine import backward
from gradcli.errors import GradcliError, Span
from gradcli.language.hints.spelling import closest, suggestion
from gradcli.language.library.builtins import BUILTINS
from gradcli.language.library.math import MATH, NUMPY
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.methods import dict_of
from gradcli.language.objects.types import EXCEPTIONS, PARAMETER, TENSOR, define, host_name
from gradcli.ops.binding import catalogue


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
    PARAMETER.construct = catalogue.modules["torch.nn"]["Parameter"]
    catalogue.modules["torch.nn"]["Parameter"] = PARAMETER
    catalogue.modules["torch.linalg"]["LinAlgError"] = EXCEPTIONS["_LinAlgError"]
    catalogue.modules["torch.autograd.gradcheck"]["GradcheckError"] = EXCEPTIONS["GradcheckError"]


def _name_classes(table: dict[str, Any]) -> None:
    """Put classes of the language in place of a table's host classes."""
    for name, value in table.items():
        if isinstance(value, type):
            table[name] = define(host_name(value), value, construct=value)


def _load_collections() -> None:
    """Fill the table of `collections`, which has the dictionary of states only."""
    from gradcli.nn.state_dict import OrderedDict  # lazy: family

    def ordered(*values: Any, **named: Any) -> OrderedDict:
        return OrderedDict(dict_of(*values, **named))

    made = define(host_name(OrderedDict), OrderedDict, construct=ordered)
    MODULES["collections"].names["OrderedDict"] = made


def _load_functools() -> None:
    """Fill the tables of `functools` and `time`."""
    from gradcli.language.library import functools_time  # lazy: family

    MODULES["functools"].names.update(partial=functools_time.Partial, reduce=functools_time.reduce)
    _name_classes(MODULES["functools"].names)
    MODULES["time"].names.update(functools_time.TIME)


def _load_type_forms() -> None:
    """Fill the tables of the modules that programs import names for annotations from."""
    from gradcli.language.library import typing  # lazy: family

    MODULES["typing"].names.update(typing.TYPING)
    MODULES["collections.abc"].names.update(typing.ABSTRACT)
    MODULES["__future__"].names.update(typing.FUTURE)


def _load_copy() -> None:
    """Fill the table of `copy`."""
    from gradcli.language.library import copy  # lazy: family

    MODULES["copy"].names.update(copy=copy.copy, deepcopy=copy.deepcopy)


def _load_data() -> None:
    """Fill the table of `torch.utils.data`."""
    import gradcli.data.load  # noqa: F401  # lazy: family

    _name_classes(catalogue.modules["torch.utils.data"])


def _load_nn() -> None:
    """Fill the table of `torch.nn` and those inside it."""
    import gradcli.nn.load  # noqa: F401  # lazy: family

    _name_classes(catalogue.modules["torch.nn"])


def _load_optim() -> None:
    """Fill the table of `torch.optim` and the one inside it."""
    import gradcli.optim.load  # noqa: F401  # lazy: family

    _name_classes(catalogue.modules["torch.optim"])
    _name_classes(catalogue.modules["torch.optim.lr_scheduler"])


def _load_functions() -> None:
    """Complete the tables of custom functions, which few programs need."""
    from gradcli.autograd.custom import context, function  # lazy: family

    base = define(host_name(function.Function), function.Function)
    catalogue.modules["torch.autograd"]["Function"] = base
    catalogue.modules["torch.autograd.function"].update(
        Function=base,
        FunctionCtx=define("torch.autograd.function.FunctionCtx", context.FunctionNode),
        once_differentiable=function.once_differentiable,
    )


def _load_transforms() -> None:
    """Fill the tables of functions of functions, which few programs need."""
    import gradcli.functional.load  # noqa: F401  # lazy: family

    for name in _TRANSFORMS:
        _name_classes(catalogue.modules[name])


def _in_one_batch(function: Callable[..., Any], seeds: list[Any]) -> Any:
    """What a function returns for all rows of seeds at once."""
    from gradcli.functional.vmap import of_rows  # lazy: family

    return of_rows(function, seeds)


backward.in_one_batch = _in_one_batch


def _loaded_when_called(module_name: str, name: str) -> Callable[..., Any]:
    """A function of a module that is filled late, reachable where the module is not named."""

    def load_and_call(*args: Any, **kwargs: Any) -> Any:
        return MODULES[module_name].names[name](*args, **kwargs)

    load_and_call.__name__ = load_and_call.__qualname__ = name
    # Whoever asks what it does is shown what the function does.
    vars(load_and_call)["loaded"] = lambda: MODULES[module_name].names[name]
    return load_and_call


_install_classes()
_TORCH = _torch_modules()
for _name in (
    "torch.nn",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.rnn",
):
    _TORCH[_name].load = _load_nn  # few programs need it, and it takes long
for _name in ("torch.optim", "torch.optim.lr_scheduler"):
    _TORCH[_name].load = _load_optim
_TORCH["torch.utils.data"].load = _load_data
for _name in ("torch.autograd", "torch.autograd.function"):
    _TORCH[_name].load = _load_functions
_TRANSFORMS = (
    "torch.autograd.forward_ad",
    "torch.autograd.functional",
    "torch.autograd.gradcheck",
    "torch.autograd.graph",
    "torch.func",
    "torch.utils.checkpoint",
)
for _name in _TRANSFORMS:
    _TORCH[_name].load = _load_transforms
catalogue.modules["torch"]["vmap"] = _loaded_when_called("torch.func", "vmap")
# As an attribute of torch.autograd it is the function, which has the name of its module.
_TORCH["torch.autograd"].modules.pop("gradcheck")
for _name in ("gradcheck", "gradgradcheck"):
    catalogue.modules["torch.autograd"][_name] = _loaded_when_called(
        "torch.autograd.gradcheck", _name
    )

MODULES: dict[str, Module] = {
    **_TORCH,
    "__future__": Module("__future__", {}),
    "collections": Module("collections", {}),
    "collections.abc": Module("collections.abc", {}),
    "copy": Module("copy", {}),
    "functools": Module("functools", {}),
    "math": Module("math", MATH),
    "numpy": Module("numpy", NUMPY),
    "time": Module("time", {}),
    "typing": Module("typing", {}),
}
"""The modules that can be imported."""

MODULES["collections"].load = _load_collections
MODULES["copy"].load = _load_copy
for _name in ("functools", "time"):
    MODULES[_name].load = _load_functools
for _name in ("__future__", "collections.abc", "typing"):
    MODULES[_name].load = _load_type_forms
MODULES["collections"].modules["abc"] = MODULES["collections.abc"]

PREDEFINED: dict[str, Any] = {
    "__name__": "__main__",
    "F": MODULES["torch.nn.functional"],
    "math": MODULES["math"],
    "nn": MODULES["torch.nn"],
    "np": MODULES["numpy"],
    "torch": MODULES["torch"],
}
"""Names that need no import: modules, and `__name__`."""

_TABLES = (
    BUILTINS,
    PREDEFINED,
    catalogue.modules["torch"],
    catalogue.modules["torch.nn.functional"],
)

# `e` is a variable's name in every other program, so the constant is torch.e and math.e only.
_NOT_PLAIN = frozenset({"e"})

UNSUPPORTED = {
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
    "open": "files come in as `NAME=@FILE`",
    "quit": "a program ends with its last statement",
    "vars": "the host's objects cannot be looked into",
}
"""Names of Python that are not supported, and why."""


def plain_names() -> set[str]:
    """The names that are defined before a program assigns any."""
    return {name for table in _TABLES for name in table} - _NOT_PLAIN


def table_of(name: str) -> dict[str, Any] | None:
    """The table that defines a name which the program does not assign, None for an unknown name."""
    if name in _NOT_PLAIN:
        return None
    for table in _TABLES:
        if name in table:
            return table
    return None


def unknown_name(name: str, values: dict[str, Any], span: Span) -> GradcliError:
    """The error of an undefined name, with the one that was likely meant."""
    reason = UNSUPPORTED.get(name)
    if reason is not None:
        return GradcliError("E101", f"`{name}` is not part of the language", span=span, help=reason)
    words = ("True", "False", "None")
    help = suggestion(name, [*values, *words, *(known for table in _TABLES for known in table)])
    return GradcliError("E101", f"`{name}` has no value", span=span, help=help)


def module(name: str) -> Module:
    """A module by its dotted name; raises E103 for one that the language does not have."""
    found = MODULES.get(name)
    if found is None:
        near = closest(name, MODULES)
        help = "torch, numpy and math can be imported"
        if near is not None:
            help = f"did you mean `{near}`?"
        elif name.startswith("torch."):
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
