"""Windows that slide over the last dimensions of a tensor: what convolutions and pools read, and
`F.unfold` and `F.fold`, which show them as columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.binding.arguments import check_filled, check_tensors, plain_integer
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.dtype_support import refusing
from gradcli.ops.definition.op import Op, op

Sizes = tuple[int, ...]


class Windows:
    """How windows lie over the last dimensions of an array, one entry of each per dimension.

    Attributes:
        kernel: the size of a window.
        stride: how far apart windows are.
        padding: how many elements stand before the first one, and after the last.
        dilation: how far apart the elements of a window are.
    """

    __slots__ = ("dilation", "kernel", "padding", "stride")

    def __init__(self, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
        self.kernel = kernel
        self.stride = stride
        self.padding = padding
        self.dilation = dilation

    def counts(self, sizes: Sizes, ceil_mode: bool = False) -> Sizes:
        """How many windows fit each dimension. With `ceil_mode` the last one may stick out, if it
        starts inside the tensor or before it.
        """
        counts = []
        for size, k, s, p, d in zip(
            sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            room = size + 2 * p - d * (k - 1) - 1
            count = (room + (s - 1 if ceil_mode else 0)) // s + 1
            if ceil_mode and (count - 1) * s >= size + p:
                count -= 1
            counts.append(count)
        return tuple(counts)

    def pad(self, array: Any, counts: Sizes, value: Any = 0) -> Any:
        """The array with a number around it, as far as the windows reach; itself where they do not
        reach over its edge.
        """
        sizes = array.shape[-len(self.kernel) :]
        reach = self.reach(sizes, counts)
        if reach == sizes and not any(self.padding):
            return array
        padded = module_of(array).full((*array.shape[: -len(sizes)], *reach), value, array.dtype)
        padded[self.inner(sizes)] = array
        return padded

    def reach(self, sizes: Sizes, counts: Sizes) -> Sizes:
        """The sizes of the padded array."""
        return tuple(
            max(size + 2 * p, (count - 1) * s + d * (k - 1) + 1)
            for size, count, k, s, p, d in zip(
                sizes, counts, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )

    def inner(self, sizes: Sizes) -> tuple[Any, ...]:
        """Where the array lies in the padded one."""
        return (
            ...,
            *(slice(p, p + size) for p, size in zip(self.padding, sizes, strict=True)),
        )

    def elements(self, counts: Sizes) -> Iterator[tuple[Sizes, tuple[Any, ...]]]:
        """For each place in a window, the place and where all windows have it in a padded array."""
        for place in product(*map(range, self.kernel)):
            yield (
                place,
                (
                    ...,
                    *(
                        slice(i * d, i * d + (count - 1) * s + 1, s)
                        for i, count, s, d in zip(
                            place, counts, self.stride, self.dilation, strict=True
                        )
                    ),
                ),
            )

    def apart(self) -> bool:
        """Whether no two windows share an element."""
        return all(
            s > d * (k - 1) for k, s, d in zip(self.kernel, self.stride, self.dilation, strict=True)
        )

    def columns(self, array: Any, counts: Sizes) -> Any:
        """The windows of an array (N, C, *sizes), as (N, C, elements of a window, windows)."""
        xp = module_of(array)
        padded = xp.ascontiguousarray(self.pad(array, counts))
        outer = padded.ndim - len(counts)
        steps = padded.strides[outer:]
        shown: Any = xp.ndarray(
            (*padded.shape[:outer], *self.kernel, *counts),
            padded.dtype,
            padded,
            0,
            (
                *padded.strides[:outer],
                *(step * d for step, d in zip(steps, self.dilation, strict=True)),
                *(step * s for step, s in zip(steps, self.stride, strict=True)),
            ),
        )
        return shown.reshape(*padded.shape[:outer], prod(self.kernel), prod(counts))

    def folded(self, columns: Any, sizes: Sizes, counts: Sizes, reverse: bool = False) -> Any:
        """The reverse of `columns`: every element of the windows added where it was read, in the
        order of the elements in a window, or in the reverse order.
        """
        leading = columns.shape[:-2]
        columns = columns.reshape(*leading, *self.kernel, *counts)
        xp = module_of(columns)
        padded = xp.zeros((*leading, *self.reach(sizes, counts)), columns.dtype)
        skip = (slice(None),) * len(leading)
        elements = list(self.elements(counts))
        for place, where in reversed(elements) if reverse else elements:
            padded[where] += columns[(*skip, *place)]
        return xp.ascontiguousarray(padded[self.inner(sizes)])


# --- arguments ----------------------------------------------------------------------------------


def per_dimension(name: str, argument: str, value: Any, count: int, least: int = 1) -> Sizes:
    """An argument given once for all `count` dimensions or once for each, as a tuple.

    Raises E202 for what is no integer, E204 (a RuntimeError) where there are too many or one is
    smaller than `least`.
    """
    parts = value if isinstance(value, (tuple, list)) else (value,)
    given = tuple(plain_integer(name, argument, size) for size in parts)
    if len(given) not in (1, count) or any(size < least for size in given):
        raise GradcliError(
            "E204",
            f"{name}(): `{argument}` must be one integer or {count}, at least {least} each, and"
            f" {value} is not",
            raises="RuntimeError",
        )
    return given * count if len(given) == 1 else given


def check_counts(name: str, sizes: Sizes, counts: Sizes) -> None:
    """Raise E301 where no window fits."""
    if any(count < 1 for count in counts):
        raise GradcliError(
            "E301", f"{name}(): no window fits a tensor whose last sizes are {tuple(sizes)}"
        )


# --- unfold and fold ----------------------------------------------------------------------------


def _im2col_array(self: Any, windows: Windows) -> Any:
    columns = windows.columns(self, windows.counts(self.shape[-2:]))
    return columns.reshape(*self.shape[:-3], self.shape[-3] * columns.shape[-2], columns.shape[-1])


def _col2im_array(self: Any, output_size: Sizes, windows: Windows) -> Any:
    elements = prod(windows.kernel)
    rows, places = self.shape[-2:]
    columns = self.reshape(*self.shape[:-2], rows // elements, elements, places)
    return windows.folded(columns, output_size, windows.counts(output_size))


im2col: Op = op(
    "im2col",
    "Im2ColBackward0",
    _im2col_array,
    self=lambda grad, self_sizes, windows: col2im(grad, self_sizes[-2:], windows),
    refused=refusing("int"),
)

col2im: Op = op(
    "col2im",
    "Col2ImBackward0",
    _col2im_array,
    self=lambda grad, windows: im2col(grad, windows),
    refused=refusing("int"),
)


def _windows_of(name: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Windows:
    return Windows(
        per_dimension(name, "kernel_size", kernel, 2),
        per_dimension(name, "stride", stride, 2),
        per_dimension(name, "padding", padding, 2, 0),
        per_dimension(name, "dilation", dilation, 2),
    )


@function("unfold", module="torch.nn.functional")
def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows over the last two dimensions as columns: (N, C, H, W) gives (N, C times the
    elements of a window, windows). Raises E301 where no window fits.

    Example: F.unfold(arange(16.).reshape(1, 1, 4, 4), 2)
    """
    check_tensors("unfold", input=input)
    windows = _windows_of("unfold", kernel_size, dilation, padding, stride)
    if input.array.ndim not in (3, 4):
        raise GradcliError(
            "E301",
            "unfold(): expected a tensor of 3 or 4 dimensions",
            raises="IndexError" if input.array.ndim < 3 else None,
        )
    check_filled("unfold", input, 4)
    sizes = input.array.shape[-2:]
    check_counts("unfold", sizes, windows.counts(sizes))
    return im2col.apply(input, windows)


@function("fold", module="torch.nn.functional")
def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Columns added up where `unfold` reads them, in a tensor whose last sizes are `output_size`.
    Raises E301 where the columns do not fit.

    Example: F.fold(ones(1, 4, 4), (3, 3), 2)
    """
    check_tensors("fold", input=input)
    windows = _windows_of("fold", kernel_size, dilation, padding, stride)
    sizes = per_dimension("fold", "output_size", output_size, 2)
    shape = input.array.shape
    if len(shape) not in (2, 3):
        raise GradcliError("E301", "fold(): expected a tensor of 2 or 3 dimensions")
    check_filled("fold", input, 3)
    counts = windows.counts(sizes)
    check_counts("fold", sizes, counts)
    if shape[-2] % prod(windows.kernel) or shape[-1] != prod(counts):
        raise GradcliError(
            "E301",
            f"fold(): windows over {sizes} make columns of a multiple of {prod(windows.kernel)}"
            f" elements, {prod(counts)} of them, and the tensor's last sizes are {shape[-2:]}",
        )
    return col2im.apply(input, sizes, windows)
