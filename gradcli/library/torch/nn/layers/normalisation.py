"""Normalisation: `BatchNorm InstanceNorm LayerNorm GroupNorm RMSNorm LocalResponseNorm`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.inplace.writes import check_graph, overwrite
from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.language.objects.classes.extensible import arguments_of
from gradcli.library.torch.nn.init import ones_, zeros_
from gradcli.library.torch.nn.layer import (
    layer,
    new_parameter,
    new_tensor,
    register,
    register_base,
)
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.ops.binding.functions import F, methods
from gradcli.ops.creation.fill import zeros
from gradcli.state import computed


class _Affine(Module):
    """A layer with a weight and a bias, or with their names alone."""

    def _make(self, sizes: Any, device: Any, dtype: Any, **wanted: bool) -> None:
        """Register each of the parameters, without a value where it is not wanted."""
        for name, is_wanted in wanted.items():
            parameter = new_parameter(tuple(sizes), device, dtype) if is_wanted else None
            self.register_parameter(name, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                (ones_ if name == "weight" else zeros_)(parameter)


class _Running(_Affine):
    """Batch and instance normalisation, which may keep running statistics.

    Attributes:
        ndims: the numbers of dimensions that the input may have.
    """

    ndims: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        tracked = track_running_stats
        for name in ("running_mean", "running_var"):
            kept = new_tensor((num_features,), device, dtype) if tracked else None
            self.register_buffer(name, kept)
        count = zeros((), dtype=dtypes.int64) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self._make((num_features,), device, dtype, weight=affine, bias=affine and bias)

    def reset_running_stats(self) -> None:
        """Reset the running statistics."""
        if self.track_running_stats:
            zeros_(self.running_mean)
            ones_(self.running_var)
            overwrite(self.num_batches_tracked, 0)

    def reset_parameters(self) -> None:
        """Set weights to 1, biases to 0, and reset the statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise E204 for an input of other dimensions than the layer takes."""
        if input.ndim not in self.ndims:
            wanted = " or ".join(f"{ndim}D" for ndim in self.ndims)
            raise value_error(f"expected {wanted} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine},"
            f" bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm(_Running):
    """Normalises each channel by the batch's mean and variance, or by running ones in
    evaluation.

    Example: nn.BatchNorm2d(3)
    """

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        counter = self.num_batches_tracked
        if self.training and self.track_running_stats and counter is not None:
            check_graph("add_", counter)
            overwrite(counter, computed(np.add, counter.array, 1))
            if self.momentum is None:  # a plain average over all batches
                factor = 1.0 / counter.item()
        by_batch = self.training or self.running_mean is None
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class SyncBatchNorm(BatchNorm):
    """Batch normalisation over the batches of all processes, of which there is one.

    Example: nn.SyncBatchNorm(3)
    """

    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"convert_sync_batchnorm"})
    language_attributes = Module.language_attributes | language_class_attributes

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise value_error(f"expected at least 2D input (got {input.ndim}D input)")
        if input.array.shape[1] == 0:
            raise value_error("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with such layers, of the same parameters, in the place of others that
        normalise batches.
        """
        check_module("convert_sync_batchnorm", module)
        made: Any = module
        if isinstance(module, BatchNorm):
            settings = (module.num_features, module.eps, module.momentum, module.affine)
            with_bias = module.bias is not None
            tracks = module.track_running_stats
            made = SyncBatchNorm(*settings, tracks, process_group, bias=with_bias)
            tables = [module._buffers, *([module._parameters] if module.affine else [])]
            for name, tensor in [pair for table in tables for pair in table.items()]:
                setattr(made, name, tensor)
            object.__setattr__(made, "training", module.training)
        for name, child in list(module._modules.items()):
            if child is not None:
                made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


register("batchnorm", SyncBatchNorm)


class _InstanceNorm(_Running):
    """Normalises each channel of each example by its own mean and variance.

    Example: nn.InstanceNorm2d(3)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(**arguments_of(locals()))

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == min(self.ndims)
        at = 0 if single else 1
        if self.weight is not None and input.array.shape[at] != self.num_features:
            raise value_error(
                f"expected input's size at dim={at} to match num_features ({self.num_features}),"
                f" but got: {input.array.shape[at]}."
            )
        result = F.instance_norm(
            methods.unsqueeze(input, 0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum,
            self.eps,
        )
        return methods.squeeze(result, 0) if single else result


for _count, _batch, _instance in ((1, (2, 3), (2, 3)), (2, (4,), (3, 4)), (3, (5,), (4, 5))):
    for _name, _home, _base, _ndims in (
        ("BatchNorm", "batchnorm", BatchNorm, _batch),
        ("InstanceNorm", "instancenorm", _InstanceNorm, _instance),
    ):
        _body = {"__doc__": _base.__doc__, "ndims": _ndims}
        register(_home, type(f"{_name}{_count}d", (_base,), _body))


def _sizes(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_Affine):
    """Normalises over the last dimensions, of the sizes `normalized_shape`.

    Example: nn.LayerNorm(3)
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        wanted = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._make(self.normalized_shape, device, dtype, **wanted)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps},"
            f" elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Divides by the root of the mean square over the last dimensions.

    Example: nn.RMSNorm(3)
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, device, dtype, weight=elementwise_affine)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Normalises groups of channels of each example.

    Example: nn.GroupNorm(2, 4)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise value_error(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make((num_channels,), device, dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine},"
            f" bias={self.bias is not None}"
        )


for _kind in (LayerNorm, RMSNorm, GroupNorm):
    register("normalization", _kind)

_SETTINGS = "size alpha beta k"
_SHOWN = "{size}, alpha={alpha}, beta={beta}, k={k}"
layer("normalization", "LocalResponseNorm", "local_response_norm", _SETTINGS, _SHOWN)

register_base("batchnorm", "_NormBase", _Running)
register_base("batchnorm", "_BatchNorm", BatchNorm)
register_base("instancenorm", "_InstanceNorm", _InstanceNorm)
