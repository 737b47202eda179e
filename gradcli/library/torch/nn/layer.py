"""Layers defined by a function of `torch.nn.functional` and its settings: most of `torch.nn`.

Such a layer is a row of a table: its name, the function, the names of its settings, whose defaults
are the function's, and the text that shows them. Layers with parameters of their own are classes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.creation.data import parameter
from gradcli.ops.creation.fill import checked_dtype, checked_sizes, tensor_of
from gradcli.ops.definition.op import Function, parameters_of

FUNCTIONS = modules["torch.nn.functional"]


class _Required:
    """The default of a setting that has none."""


REQUIRED = _Required()

Settings = dict[str, Any]
Kind = TypeVar("Kind", bound=Module)


def register(home: str, kind: type[Kind]) -> type[Kind]:
    """Make a class reachable as `torch.nn.NAME`; `home` is the module that PyTorch prints."""
    kind.language_name = f"torch.nn.modules.{home}.{kind.__name__}"
    modules["torch.nn"][kind.__name__] = kind
    return kind


def register_base(home: str, name: str, kind: type[Module]) -> None:
    """Make the class behind several layers known by PyTorch's name, for `isinstance`."""
    kind.language_name = f"torch.nn.modules.{home}.{name}"
    modules["torch.nn"][name] = kind


def bound(name: str, settings: Settings, args: tuple[Any, ...], kwargs: Settings) -> Settings:
    """The settings of a layer from the arguments of its constructor.

    Raises E201 for too many arguments, one that is given twice or missing, and an unknown name.
    """
    if len(args) > len(settings):
        least = 1 + sum(default is REQUIRED for default in settings.values())
        takes = f"from {least} to {len(settings) + 1}" if least <= len(settings) else f"{least}"
        raise GradcliError(
            "E201",
            f"{name}() takes at most {len(settings)} arguments, not {len(args)}",
            text=f"{name}.__init__() takes {takes} positional argument{'s' * bool(settings)} but"
            f" {len(args) + 1} were given",
        )
    passed = dict(zip(settings, args, strict=False))
    for keyword, value in kwargs.items():
        if keyword not in settings:
            known = ", ".join(settings) or "none"
            raise GradcliError(
                "E201",
                f"{name}() has no argument {keyword!r}",
                text=f"{name}.__init__() got an unexpected keyword argument {keyword!r}",
                notes=(f"it has: {known}",),
            )
        if keyword in passed:
            raise GradcliError(
                "E201",
                f"{name}() got the argument {keyword!r} twice",
                text=f"{name}.__init__() got multiple values for argument {keyword!r}",
            )
        passed[keyword] = value
    complete = {key: passed.get(key, default) for key, default in settings.items()}
    absent = [key for key, value in complete.items() if value is REQUIRED]
    if absent:
        *others, last = map(repr, absent)
        shown = f"{', '.join(others)}{',' * (len(others) > 1)} and {last}" if others else last
        raise GradcliError(
            "E201",
            f"{name}() needs a value for {absent[0]!r}",
            text=f"{name}.__init__() missing {len(absent)} required positional"
            f" argument{'s' * bool(others)}: {shown}",
        )
    return complete


class Layer(Module):
    """A layer without parameters: a function and its settings.

    Attributes:
        function: the name in `torch.nn.functional` of the function that is called with the inputs,
            and with the settings by keyword.
        settings: their names, in order.
        defaults: the defaults of those that are none of the function's parameters.
        template: what is printed, with settings in braces.
    """

    function: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    defaults: ClassVar[Settings] = {"inplace": False}
    template: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        known = {**_defaults_of(FUNCTIONS[self.function]), **self.defaults}
        settings = {name: known[name] for name in self.settings}
        self._values.update(bound(type(self).__name__, settings, args, kwargs))
        self.check()

    def check(self) -> None:
        """Check the settings, and normalise them. Raises where they do not fit."""

    def forward(self, *inputs: Any, **more: Any) -> Any:
        values = {name: self._values[name] for name in self.settings}
        # Looked up at each call: an op's table entry becomes faster when it is first used.
        return FUNCTIONS[self.function](*inputs, **values, **more)

    def extra_repr(self) -> str:
        text = self.template.format_map(self._values)
        if self._values.get("inplace") is True and "{inplace}" not in self.template:
            text += f"{', ' if text else ''}inplace=True"
        return text


@cache
def _defaults_of(function: Function) -> Settings:
    """The defaults of a function's parameters by name."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    names, optional = parameters_of(function), function.__defaults__ or ()
    defaults = dict(zip(reversed(names), reversed(optional), strict=False))
    return {**dict.fromkeys(names, REQUIRED), **defaults, **(function.__kwdefaults__ or {})}


def layer(
    home: str,
    name: str,
    function: str,
    settings: str = "",
    template: str | None = None,
    base: type[Layer] = Layer,
    example: str = "",
) -> type[Layer]:
    """Define a layer from a row of a table; see `Layer`. `settings` are separated by spaces, and
    all but `inplace` are printed where there is no template. The example follows from that of the
    function where none is given.
    """
    names = tuple(settings.split())
    if template is None:
        template = ", ".join([f"{each}={{{each}}}" for each in names if each != "inplace"])
    body = {
        "__doc__": f"`torch.nn.{name}`: `{function}` as a layer."
        + (f"\n\nExample: {example}" if example else ""),
        "function": function,
        "settings": names,
        "template": template,
    }
    kind: type[Layer] = type(name, (base,), body)
    return register(home, kind)


def new_tensor(sizes: tuple[int, ...], device: Any = None, dtype: Any = None) -> Tensor:
    """A tensor of zeros in a floating dtype, by default the session's."""
    target = checked_dtype("empty", dtype, dtypes.default_dtype())
    plain = checked_sizes("empty", (sizes,))
    return tensor_of("Parameter", np.zeros(plain, target.numpy_dtype), device, False)


def new_parameter(sizes: tuple[int, ...], device: Any = None, dtype: Any = None) -> Tensor:
    """A parameter whose values are set by the caller."""
    return parameter(new_tensor(sizes, device, dtype))
