"""Power-average pooling: `lp_pool1d lp_pool2d lp_pool3d`, the norm of every window."""

from __future__ import annotations

from math import prod
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import type_error
from gradcli.ops.arithmetic.arithmetic import mul
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import LAST, SAMPLES, describe
from gradcli.ops.elementwise.power import power
from gradcli.ops.elementwise.unary import abs_, sign
from gradcli.ops.nn.piecewise_activations import relu_
from gradcli.ops.nn.spatial.pooling import Averaging, averaged, windows_of


def _expose_lp_pool(ndim: int) -> None:
    name = f"lp_pool{ndim}d"

    def lp_pool(
        input: Tensor,
        norm_type: Any,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        if ndim == 1 and type(kernel_size) is not int:
            raise type_error(f"{name}(): kernel_size must be an integer")
        windows = windows_of(name, ndim, kernel_size, stride, 0)
        count = prod(windows.kernel)
        averaging = Averaging(windows, ceil_mode, True, None)
        pooled = averaged(name, power(input, norm_type), ndim, averaging)
        positive = mul.apply(sign.apply(pooled), relu_.apply(abs_.apply(pooled)))
        return power(mul.apply(positive, count), 1.0 / norm_type)

    describe(
        lp_pool,
        f"The p-norm of each window of the last {LAST[ndim]}.",
        f"F.{name}({SAMPLES[ndim]}, 2, 2)",
    )
    function(name, module="torch.nn.functional")(lp_pool)


for _ndim in (1, 2, 3):
    _expose_lp_pool(_ndim)
