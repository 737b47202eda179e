"""A layer and the batch normalisation after it as one layer, for evaluation."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import assertion_error
from gradcli.library.copy import deepcopy
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.data import parameter

Weights = tuple[Tensor, Tensor]


def _fused(layer: Module, bn: Module, weights: Any, *settings: bool) -> Any:
    """A copy of a layer, with the weights that a function makes of both layers' own."""
    held = bn._buffers
    if layer.training or bn.training:
        raise assertion_error("Fusion only for eval!")
    if held.get("running_mean") is None or held.get("running_var") is None:
        raise assertion_error("bn.running_mean and bn.running_var must not be None")
    copy = deepcopy(layer)
    own, after = layer._parameters, bn._parameters
    copy.weight, copy.bias = weights(
        *(own["weight"], own["bias"], held["running_mean"], held["running_var"]),
        *(bn._values["eps"], after.get("weight"), after.get("bias"), *settings),
    )
    return copy


def _new_bias(weight: Tensor, bias: Any, mean: Tensor, factors: list[Any], shift: Any) -> Tensor:
    """The bias that does what both layers' do, in the dtype of the old one."""
    dtype = weight.dtype if bias is None else bias.dtype
    bias = torch.zeros_like(mean) if bias is None else bias
    moved = bias - mean
    for factor in factors:
        moved = moved * factor
    moved = moved + (torch.zeros_like(mean) if shift is None else shift)
    return parameter(methods.to(moved, dtype=dtype), bias.requires_grad)


@function("fuse_conv_bn_weights", module="torch.nn.utils")
def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> Weights:
    """The weight and bias of a convolution that does what a normalisation does after it.

    Example: nn.utils.fuse_conv_bn_weights(ones(2, 1, 1), None, zeros(2), ones(2), 0., None, None)
    """
    scale = torch.ones_like(bn_rm) if bn_w is None else bn_w
    root = methods.rsqrt(operators.add(bn_rv, bn_eps))
    bias = _new_bias(conv_w, conv_b, bn_rm, [root, scale], bn_b)
    ones = [1] * (conv_w.ndim - 2)
    factor = methods.reshape(scale * root, [1, -1, *ones] if transpose else [-1, 1, *ones])
    weight = methods.to(conv_w * factor, dtype=conv_w.dtype)
    return parameter(weight, conv_w.requires_grad), bias


@function("fuse_conv_bn_eval", module="torch.nn.utils")
def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Any:
    """A convolution that does what the one given and a normalisation after it do in evaluation.

    Raises E204 for layers in training, and without running statistics.

    Example: nn.utils.fuse_conv_bn_eval(nn.Conv1d(1, 2, 1).eval(), nn.BatchNorm1d(2).eval())
    """
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


@function("fuse_linear_bn_weights", module="torch.nn.utils")
def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> Weights:
    """The weight and bias of a linear layer that does what a normalisation does after it.

    Example: nn.utils.fuse_linear_bn_weights(
        ones(2, 1), None, zeros(2), ones(2), 0., ones(2), zeros(2))
    """
    factor = bn_w * methods.rsqrt(operators.add(bn_rv, bn_eps))
    bias = _new_bias(linear_w, linear_b, bn_rm, [factor], bn_b)
    weight = methods.to(linear_w * methods.unsqueeze(factor, -1), dtype=linear_w.dtype)
    return parameter(weight, linear_w.requires_grad), bias


@function("fuse_linear_bn_eval", module="torch.nn.utils")
def fuse_linear_bn_eval(linear: Module, bn: Module) -> Any:
    """A linear layer that does what the one given and a normalisation after it do in evaluation.

    Raises E204 for layers in training, and for other sizes than fit.

    Example: nn.utils.fuse_linear_bn_eval(nn.Linear(1, 2).eval(), nn.BatchNorm1d(2).eval())
    """
    features, count = linear._values["out_features"], bn._values["num_features"]
    if features != count != 1:
        raise assertion_error(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got"
            f" linear.out_features={features} and bn.num_features={count}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)
