"""Which kernels PyTorch uses for a convolution on a CPU: each adds in an order of its own."""

from __future__ import annotations

from math import prod

from gradcli.kernels.windows.windows import Windows

_WIDEST, _NARROW = 16, 8
"""Channels that fill a register of 64 bytes, and one of 32."""

_IMAGE = 3
"""Channels that an image has at most."""


class Kernels:
    """The kernels for a convolution, its gradients, and their like for a transposed one.

    PyTorch hands one sample in one group to its library for matrices, and anything else to a
    library for convolutions. That one reads windows where they lie if it can, and otherwise makes
    columns.

    Attributes:
        one_product: whether the library for matrices is used.
        points: whether windows are single elements, read one after the other.
        columns: whether columns are made to correlate.
        spread_columns: whether they are made for the transpose in the input.
        paired_columns: whether they are made for the transpose in the weights.
        begins_with_bias: whether a sum begins with the bias, and does not end with it.
        block: so many channels are added up at a time.
        register: so many channels fill a register when the gradient of the weights is made; threads
            share channels, and not samples, if there are more.
    """

    __slots__ = (
        "begins_with_bias",
        "block",
        "columns",
        "one_product",
        "paired_columns",
        "points",
        "register",
        "spread_columns",
    )

    def __init__(
        self, windows: Windows, samples: int, outputs: int, channels: int, groups: int
    ) -> None:
        """`channels` in and `outputs` out of a group: of what is correlated, not of a transposed
        convolution.
        """
        kernel = windows.kernel
        large = len(kernel) > 1 and kernel[-1] > 3 and kernel[-2] > 3
        self.one_product = samples == groups == 1 and not large
        depthwise = groups > 1 and outputs == channels == 1
        grouped = groups > 1 and not depthwise
        apart = any(stride > 1 for stride in windows.stride)
        sparse = any(dilation > 1 for dilation in windows.dilation)
        # No window may lie in the padding as a whole.
        reach = zip(kernel, windows.padding, windows.dilation, strict=True)
        padded = any(p > d * (k - 1) for k, p, d in reach)
        self.points = prod(kernel) == groups == 1 and not padded and not apart
        # A group is read where it lies if its channels fill a register.
        self.block = _WIDEST
        while grouped and self.block > 2 and (outputs % self.block or channels % self.block):
            self.block //= 2
        unfilled = grouped and self.block == 2
        image = outputs % _NARROW == 0 and channels <= _IMAGE
        self.columns = padded or (unfilled and not image)
        self.begins_with_bias = not self.columns and (
            self.points or depthwise or (unfilled and image)
        )
        self.spread_columns = sparse if apart and groups == 1 else padded or unfilled
        # Shorter registers are for more channels than an image has that do not fill one.
        narrow = channels > _IMAGE and channels % _WIDEST > 0
        unread = sparse and not self.points and (narrow or apart or len(kernel) > 2)
        self.paired_columns = padded or grouped or unread
        self.register = _NARROW if narrow and not self.points else _WIDEST
