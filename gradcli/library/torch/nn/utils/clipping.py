"""`torch.nn.utils`: gradients clipped, parameters as one vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, type_error
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.library.torch.nn.init import deprecated
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import linalg, methods
from gradcli.ops.creation.copies import detach
from gradcli.ops.creation.tensor_methods import set_data
from gradcli.ops.shape.joining import cat_function, stack_function


def _tensors(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters: Any) -> list[Tensor]:
    return [tensor.grad for tensor in _tensors(parameters) if tensor.grad is not None]


def _norm(tensors: list[Tensor], norm_type: float) -> Tensor:
    """The norm of all elements of some tensors."""
    vector_norm = linalg.vector_norm
    if not tensors:
        return Tensor(np.float32(0.0))
    norms = [vector_norm(tensor, norm_type) for tensor in tensors]
    return vector_norm(stack_function(norms), norm_type)


@function("get_total_norm", module="torch.nn.utils")
def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of some tensors; raises E204 for an infinite one if asked to.

    Example: nn.utils.get_total_norm(tensor([0.5, 1., 2.]))
    """
    total = _norm(_tensors(tensors), float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise runtime_error(
            f"the total norm of the gradients is {total.item()}",
            text=f"The total norm of order {float(norm_type)} for gradients from `parameters` is"
            " non-finite, so it cannot be clipped. To disable this error and scale the gradients by"
            " the non-finite norm anyway, set `error_if_nonfinite=False`",
        )
    return total


@function("clip_grad_norm_", module="torch.nn.utils")
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Shrink the gradients together if their norm is larger than `max_norm`; returns the norm.

    Example: nn.utils.clip_grad_norm_(tensor(1., requires_grad=True), 1.)
    """
    gradients = _gradients(parameters)
    with NoGrad():
        total = get_total_norm(gradients, norm_type, error_if_nonfinite)
        factor = methods.clamp(float(max_norm) / (total + 1e-6), max=1.0)
        for gradient in gradients:
            methods.mul_(gradient, factor)
    return total


deprecated(clip_grad_norm_, "torch.nn.utils", "torch.nn.utils")


@function("clip_grad_value_", module="torch.nn.utils")
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Cut the elements of the gradients off at plus and minus `clip_value`.

    Example: nn.utils.clip_grad_value_(tensor(1., requires_grad=True), 1.)
    """
    bound = float(clip_value)
    with NoGrad():
        for gradient in _gradients(parameters):
            methods.clamp_(gradient, -bound, bound)


@function("parameters_to_vector", module="torch.nn.utils")
def parameters_to_vector(parameters: Any) -> Tensor:
    """The elements of all parameters in one vector, in the graph.

    Example: nn.utils.parameters_to_vector(tensor([0.5, 1., 2.]))
    """
    return cat_function([methods.view(tensor, -1) for tensor in _tensors(parameters)])


@function("vector_to_parameters", module="torch.nn.utils")
def vector_to_parameters(vec: Tensor, parameters: Any) -> None:
    """Make the parameters show the elements of a vector; raises E202 for what is no tensor.

    Example: nn.utils.vector_to_parameters(tensor([0.5, 1., 2.]), [tensor([0., 0., 0.])])
    """
    if not isinstance(vec, Tensor):
        raise type_error(f"the vector is a tensor, not {kind_of(vec)}")
    start = 0
    for tensor in _tensors(parameters):
        count = tensor.array.size
        part = methods.narrow(vec, 0, start, count)
        set_data(tensor, detach(methods.view_as(part, tensor)))
        start += count
