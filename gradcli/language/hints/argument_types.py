"""Finds the argument of a failed call that has a wrong type, by the annotations of the function.

The functions do not ask for the type of every number and flag, which would cost every call. A
value of a wrong type makes them fail further in, over a shape or a dtype; then the value is the
mistake, and PyTorch, which asks first, raises TypeError.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error
from gradcli.ops.binding.arguments import not_a_tensor
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.codegen.runtime import type_name

_ACCEPTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("True or False", (bool,)),
    "int": ("an integer", (bool, int)),
    "float": ("a number", (bool, int, float, complex)),
    "str": ("a string", (str,)),
}
"""For an annotation what it asks for, in words and as classes. A tensor without dimensions counts
as its number.
"""


_INPUT = ("input",)
_PAIR = ("input", "target")
_READ_FIRST: dict[str, dict[str, tuple[str, ...]]] = {
    "torch": {"norm": _INPUT, "split": ("tensor",), "stft": _INPUT, "tensordot": ("a", "b")},
    "torch.nn.functional": {
        **dict.fromkeys(
            ("adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d",
             "adaptive_max_pool3d", "dropout1d", "dropout2d", "dropout3d", "embedding_bag",
             "gaussian_nll_loss", "glu", "group_norm", "instance_norm",
             "interpolate", "local_response_norm", "log_softmax", "lp_pool1d", "lp_pool2d",
             "lp_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "normalize", "softmax",
             "softsign", "tanhshrink"),
            _INPUT,
        ),
        **dict.fromkeys(
            ("binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "l1_loss",
             "mse_loss", "smooth_l1_loss"),
            _PAIR,
        ),
        "affine_grid": ("theta",),
        "margin_ranking_loss": ("input1", "input2", "target"),
    },
}  # fmt: skip
"""The arguments of which PyTorch's function reads an attribute before it asks for their type."""


def lacks_attribute(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether PyTorch misses an attribute of an argument that should have been a tensor."""
    for module, functions in _READ_FIRST.items():
        for name, arguments in functions.items():
            known: Any = modules[module].get(name)
            if known is not function:
                continue
            try:
                bound = inspect.signature(function).bind_partial(*args, **kwargs).arguments
            except TypeError:
                return False
            return any(type(bound.get(argument)) is not Tensor for argument in arguments)
    return False


def wrong_flag(op: str, function: Any, name: str, value: Any) -> GradcliError | None:
    """The error of a flag that is no bool; None where the function takes any value."""
    function = inspect.unwrap(function)
    annotation = getattr(function, "__annotations__", {}).get(name)
    kinds = annotation.split(" | ") if type(annotation) is str else ()
    if "bool" not in kinds or (value is None and "None" in kinds):
        return None
    if (op, name) in _READ_BY_PYTHON or not function.__module__.startswith("gradcli.ops."):
        return None
    return type_error(f"{op}(): argument '{name}' must be True or False, not {type_name(value)}")


_READ_BY_PYTHON = frozenset({("gaussian_nll_loss", "full"), ("interpolate", "align_corners")})
"""Flags that PyTorch's function looks at in Python, where any value has a truth."""


def wrong_operand(
    name: str, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> GradcliError | None:
    """The error of the first argument that is to be a tensor and is none, None where all are."""
    try:
        bound = inspect.signature(function).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    for number, parameter in enumerate(bound.signature.parameters.values(), 1):
        value = bound.arguments.get(parameter.name)
        is_operand = parameter.annotation == "Tensor" and parameter.kind is not _EVERY
        if is_operand and parameter.name in bound.arguments and type(value) is not Tensor:
            return not_a_tensor(name, parameter.name, number, value)
    return None


_EVERY = inspect.Parameter.VAR_POSITIONAL


def wrong_argument(
    name: str, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> GradcliError | None:
    """The error of the first argument that is not of its parameter's type, None where all are."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    for argument, value in bound.arguments.items():
        annotation = bound.signature.parameters[argument].annotation
        if type(annotation) is not str:
            continue
        kinds = annotation.split(" | ")
        if any(kind not in _ACCEPTED and kind != "None" for kind in kinds):
            continue
        if value is None and "None" in kinds:
            continue
        accepted = [_ACCEPTED[kind] for kind in kinds if kind != "None"]
        if type(value) is Tensor and not value.array.ndim and {"int", "float"} & {*kinds}:
            continue
        if accepted and not any(type(value) in classes for _, classes in accepted):
            wanted = " or ".join(words for words, _ in accepted)
            return type_error(
                f"{name}(): argument '{argument}' must be {wanted}, not {type_name(value)}"
            )
    return None
