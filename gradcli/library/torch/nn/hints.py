"""Says which layer an error left, by its path, and which of its sizes does not fit its input."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.library.torch.nn.paths import module_paths

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
    """The layer before it in a Sequential, whose output it is given."""
    if type(outer).__name__ != "Sequential":
        return ""
    layers = list(outer._modules.values())
    number = next((n for n, each in enumerate(layers) if each is module), 0)
    if not number:
        return ""
    before = layers[number - 1]
    path = paths.get(id(before), (type(before).__name__, None))[0]
    return f"; {path}, {type(before).__name__}, gives that"
