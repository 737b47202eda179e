"""`F.unfold` and `F.fold`, which show the windows of a tensor as columns."""

from __future__ import annotations

from math import prod
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error
from gradcli.kernels.windows.windows import Sizes, Windows
from gradcli.ops.binding.arguments import check_filled, check_tensors, plain_integer
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.dtype_support import dtype_names
from gradcli.ops.definition.op import Op, op

# --- arguments ----------------------------------------------------------------------------------


def per_dimension(name: str, argument: str, value: Any, count: int, least: int = 1) -> Sizes:
    """An argument given once for all `count` dimensions or once for each, as a tuple.

    Raises E202 for what is no integer, E204 (a RuntimeError) where there are too many or one is
    smaller than `least`.
    """
    parts = value if isinstance(value, (tuple, list)) else (value,)
    given = tuple(plain_integer(name, argument, size) for size in parts)
    if len(given) not in (1, count) or any(size < least for size in given):
        raise runtime_error(
            f"{name}(): `{argument}` must be one integer or {count}, at least {least} each, and"
            f" {value} is not"
        )
    return given * count if len(given) == 1 else given


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
        raise GradcliError(
            "E301",
            f"{name}(): no window fits a tensor whose last sizes are {tuple(sizes)}",
            text=text,
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
)

col2im: Op = op(
    "col2im",
    _col2im_array,
    self=im2col,
    unsupported=dtype_names("int"),
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
    windows = windows_from("unfold", 2, kernel_size, stride, padding, dilation)
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
    windows = windows_from("fold", 2, kernel_size, stride, padding, dilation)
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
