"""Paths of modules and parameters: `net.layers.2.weight`, from the names of the program down.

A path is worked out when a report names a module, from the tree of modules as it is then, so
that naming costs a running program nothing. An error names by it the layer that it left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.objects.classes.instance_attributes import attributes_of
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.library.torch.nn.attributes import Attributes, is_initialised
from gradcli.state import active

_DEEPEST = 3
"""So many lists, dicts and objects of the program's are looked into, one inside the other."""

_MOST = 1000
"""So many elements of each."""


def module_paths() -> dict[int, tuple[str, Any]]:
    """Every module that is alive, by its `id`, with its path.

    A path begins with the name of the program that leads to the module, or else with a function's
    variable, where such are kept, or else with the module's class.
    """
    state = active.state
    paths: dict[int, tuple[str, Any]] = {}
    own = state.values
    # A model's own name comes before a list that holds its layers too.
    for name, value in sorted(
        state.names().items(),
        key=lambda each: (
            each[0] not in own,
            each[0] == "self",
            not isinstance(each[1], Attributes),
        ),
    ):
        for path, module in _modules_in(name, value, _DEEPEST):
            _enter(paths, path, module)
    living = [] if state.modules is None else list(state.modules.values())
    rest = [module for module in living if id(module) not in paths]
    inner = {id(child) for module in rest for child in _children(module)}
    taken = {path for path, _ in paths.values()}
    for module in rest:
        if id(module) not in inner and id(module) not in paths:
            path = name = type(module).__name__
            number = 1
            while path in taken:
                number += 1
                path = f"{name}#{number}"
            taken.add(path)
            _enter(paths, path, module)
    return paths


def _enter(paths: dict[int, tuple[str, Any]], path: str, module: Any) -> None:
    """Enter a module and all below it, each under the first path that leads to it."""
    waiting = [(path, module)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in paths:
            continue
        paths[id(module)] = path, module
        if not is_initialised(module):
            continue
        below = [(f"{path}.{name}", each) for name, each in module._modules.items()]
        for name, value in module._values.items():
            below += _modules_in(f"{path}.{name}", value, 1)
        waiting += [each for each in reversed(below) if each[1] is not None]


def _children(module: Any) -> list[Any]:
    if not is_initialised(module):
        return []
    held = [each for _, value in module._values.items() for _, each in _modules_in("", value, 1)]
    return [*(each for each in module._modules.values() if each is not None), *held]


def _modules_in(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The modules that a value is or holds, with their paths."""
    if isinstance(value, Attributes):
        yield path, value
        return
    if not depth:
        return
    parts: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, (list, tuple)):
        parts = ((f"{path}[{n}]", each) for n, each in enumerate(value[:_MOST]))
    elif isinstance(value, dict):
        parts = ((f"{path}[{key!r}]", each) for key, each in list(value.items())[:_MOST])
    elif isinstance(value, Instance):
        parts = ((f"{path}.{name}", each) for name, each in list(attributes_of(value).items()))
    for inner, part in parts:
        yield from _modules_in(inner, part, depth - 1)


def named_parameters() -> Iterator[tuple[str, Tensor]]:
    """Every parameter of a living module, once, with its path."""
    seen = set()
    for path, module in list(module_paths().values()):
        if is_initialised(module):
            for name, parameter in module._parameters.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{path}.{name}", parameter


def name_parameters() -> None:
    """Name the parameters that have no name yet by their path; a variable's name stays."""
    values: Mapping[str, Any] = active.state.values
    for path, parameter in named_parameters():
        meta = parameter.meta
        if meta is None or (meta.name and "." in meta.name):
            continue
        if not meta.name or values.get(meta.name) is not parameter:
            meta.name = path


_SIZES = (
    ("in_features", -1),
    ("input_size", -1),
    ("embed_dim", -1),
    ("in_channels", 1),
    ("num_features", 1),
    ("num_channels", 1),
)
"""What a layer asks of a dimension of its input."""


def note_layer(error: GradcliError) -> None:
    """Let an error say in which built-in layer it arose."""
    module, args = error.modules[0]
    outer = error.modules[1][0] if len(error.modules) > 1 else None
    error.modules = ()
    if not type(module).__module__.startswith("gradcli.library.torch.nn"):
        return
    paths = module_paths()
    path = paths.get(id(module), (type(module).__name__, None))[0]
    error.notes += (f"in {path}, {_described(module)}",)
    input = args[0] if args and type(args[0]) is Tensor else None
    if input is None or error.code != "E301":
        return
    misfit = _misfit(module, tuple(input.array.shape))
    if misfit:
        error.notes += (f"{misfit}{_giver(outer, module, paths)}",)


def _described(module: Any) -> str:
    """`Linear(in_features=4, out_features=1), whose weight is (1, 4)`."""
    text = repr(module)
    text = type(module).__name__ if "\n" in text else text
    weight = module._parameters.get("weight")
    return text if weight is None else f"{text}, whose weight is {tuple(weight.array.shape)}"


def _misfit(module: Any, shape: tuple[int, ...]) -> str:
    for name, dim in _SIZES:
        wanted = module._values.get(name)
        if type(wanted) is not int or not -len(shape) <= dim < len(shape):
            continue
        if shape[dim] != wanted:
            where = "the last dimension" if dim == -1 else f"dimension {dim}"
            return f"its input is {shape}: {where} is {shape[dim]}, and {name} is {wanted}"
    normalized = module._values.get("normalized_shape")
    if isinstance(normalized, tuple) and shape[-len(normalized) :] != normalized:
        return f"its input is {shape}, which does not end in normalized_shape, {normalized}"
    return ""


def _giver(outer: Any, module: Any, paths: dict[int, tuple[str, Any]]) -> str:
    """The layer before it in a Sequential, whose output is its input."""
    if type(outer).__name__ != "Sequential":
        return ""
    layers = list(outer._modules.values())
    number = next((n for n, each in enumerate(layers) if each is module), 0)
    if not number:
        return ""
    before = layers[number - 1]
    path = paths.get(id(before), (type(before).__name__, None))[0]
    return f"; {path}, {type(before).__name__}, gives that"
