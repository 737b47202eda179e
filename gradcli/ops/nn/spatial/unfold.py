"""`F.unfold` and `F.fold`, which show the windows of a tensor as columns."""

from __future__ import annotations

from math import prod
from typing import Any

from gradcli.arrays.kernels.windows import Sizes, Windows
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error
from gradcli.ops.binding.arguments import check_filled, plain_integer
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.dtype_support import dtype_names
from gradcli.ops.definition.op import Op, op, out_of_range
from gradcli.ops.nn.spatial.numpy_forms import FOLD, WINDOWS

# --- arguments ----------------------------------------------------------------------------------


def per_dimension(name: str, argument: str, value: Any, count: int, least: int = 1) -> Sizes:
    """An argument given once for all `count` dimensions or once for each, as a tuple.

    Raises E202 for what is no integer, E204 (a RuntimeError) where there are too many or one is
    smaller than `least`.
    """
    parts = value if isinstance(value, (tuple, list)) else (value,)
    sizes = tuple(plain_integer(name, argument, size) for size in parts)
    if len(sizes) not in (1, count) or any(size < least for size in sizes):
        raise runtime_error(
            f"{name}(): `{argument}` must be one integer or {count}, at least {least} each, and"
            f" {value} is not",
            text=_not_per_dimension(name, argument, sizes, count, least),
        )
    return sizes * count if len(sizes) == 1 else sizes


def _not_per_dimension(
    name: str, argument: str, sizes: Sizes, count: int, least: int
) -> str | None:
    """PyTorch's text for a setting of windows, None where it has another."""
    if len(sizes) not in (1, count):
        number = ("one", "two", "three")[count - 1]
        if "pool" in name:
            ints = "ints" if count > 1 else "int"
            return f"{name}: {argument} must either be a single int, or a tuple of {number} {ints}"
        return (
            f"expected {argument} to be a single integer value or a list of {count} values to match"
            f" the convolution dimensions, but got {argument}={list(sizes)}"
        )
    if name == "max_pool1d":
        bound = "non-negative" if least == 0 else "greater than zero"
        return f"max_pool1d() {argument} must be {bound}, but got {min(sizes)}"
    if "pool" in name and argument == "padding":
        return f"pad must be non-negative, but got pad: {min(sizes)}"
    if "pool" in name:
        return "stride should not be zero" if 0 in sizes and argument != "dilation" else None
    if argument == "dilation":
        one_more = [1] if count == 1 else []
        return f"dilation should be greater than zero, but got {[*one_more, *sizes * count][:2]}"
    return f"{'negative' if least == 0 else 'non-positive'} {argument} is not supported"


def windows_from(
    name: str, ndim: int, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Windows:
    """The windows over `ndim` dimensions that arguments describe."""
    return Windows(
        per_dimension(name, "kernel_size", kernel, ndim),
        per_dimension(name, "stride", stride, ndim),
        per_dimension(name, "padding", padding, ndim, 0),
        per_dimension(name, "dilation", dilation, ndim),
    )


def check_counts(name: str, sizes: Sizes, counts: Sizes, text: str | None = None) -> None:
    """Raise E301 where no window fits; `text` is what PyTorch says."""
    if any(count < 1 for count in counts):
        raise shape_error(
            f"{name}(): no window fits a tensor whose last sizes are {tuple(sizes)}", text=text
        )


# --- unfold and fold ----------------------------------------------------------------------------


def _im2col_array(self: Any, windows: Windows) -> Any:
    columns = windows.columns(self, windows.counts(self.shape[-2:]))
    return columns.reshape(*self.shape[:-3], self.shape[-3] * columns.shape[-2], columns.shape[-1])


def _col2im_array(self: Any, output_size: Sizes, windows: Windows) -> Any:
    elements = prod(windows.kernel)
    rows, positions = self.shape[-2:]
    columns = self.reshape(*self.shape[:-2], rows // elements, elements, positions)
    return windows.folded(columns, output_size, windows.counts(output_size))


im2col: Op = op(
    "im2col",
    _im2col_array,
    self=lambda grad, self_sizes, windows: col2im(grad, self_sizes[-2:], windows),
    unsupported=dtype_names("int"),
    raises=BY_KINDS,
)

col2im: Op = op(
    "col2im", _col2im_array, self=im2col, unsupported=dtype_names("int"), raises=BY_KINDS
)


@function("unfold", module="torch.nn.functional", numpy=WINDOWS)
def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The windows over the last two dimensions as columns: (N, C, H, W) gives (N, C times the
    elements of a window, windows). Raises E301 where no window fits.

    Example: F.unfold(arange(16.).reshape(1, 1, 4, 4), 2)
    """
    windows = windows_from("unfold", 2, kernel_size, stride, padding, dilation)
    if input.array.ndim not in (3, 4):
        raise shape_error(
            "unfold(): expected a tensor of 3 or 4 dimensions",
            text=out_of_range(input.array.ndim, input.array.ndim)
            if input.array.ndim in (1, 2)
            else None,
            raises="IndexError" if input.array.ndim < 3 else None,
        )
    check_filled("unfold", input, 4)
    sizes = input.array.shape[-2:]
    counts = windows.counts(sizes)
    shown = f"{_settings(windows)}, padding={windows.padding}"
    text = (
        f"Given input with spatial size {tuple(sizes)}, {shown}, calculated shape of the array of"
        f" sliding blocks as {tuple(counts)}, but its components must be at least one."
    )
    check_counts("unfold", sizes, counts, text)
    return im2col.apply(input, windows)


def _settings(windows: Windows) -> str:
    return f"kernel_size={windows.kernel}, dilation={windows.dilation}"


def _wrong_columns(shape: Sizes, sizes: Sizes, windows: Windows, counts: Sizes) -> str:
    """PyTorch's text for columns that are none of windows."""
    dim = len(shape) - 2
    if shape[-2] % prod(windows.kernel):
        return (
            f"Expected size of input's dimension {dim} to be divisible by the product of"
            f" kernel_size, but got input.size({dim})={shape[-2]} and kernel_size={windows.kernel}."
        )
    return (
        f"Given output_size={sizes}, {_settings(windows)}, padding={windows.padding},"
        f" stride={windows.stride}, expected size of input's dimension {dim + 1} to match the"
        f" calculated number of sliding blocks {' * '.join(map(str, counts))} = {prod(counts)}, but"
        f" got input.size({dim + 1})={shape[-1]}."
    )


@function("fold", module="torch.nn.functional", numpy=FOLD)
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
    windows = windows_from("fold", 2, kernel_size, stride, padding, dilation)
    sizes = per_dimension("fold", "output_size", output_size, 2)
    shape = input.array.shape
    if len(shape) not in (2, 3):
        raise shape_error("fold(): expected a tensor of 2 or 3 dimensions")
    check_filled("fold", input, 3)
    counts = windows.counts(sizes)
    check_counts("fold", sizes, counts)
    if shape[-2] % prod(windows.kernel) or shape[-1] != prod(counts):
        raise shape_error(
            f"fold(): windows over {sizes} make columns of a multiple of {prod(windows.kernel)}"
            f" elements, {prod(counts)} of them, and the tensor's last sizes are {shape[-2:]}",
            text=_wrong_columns(shape, sizes, windows, counts),
        )
    return col2im.apply(input, sizes, windows)
