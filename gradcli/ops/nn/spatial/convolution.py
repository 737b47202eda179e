"""Convolutions: `conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d`.

A convolution is one product of matrices per sample and group: the weights times the columns that
the windows over the input make. The other ops are the same bilinear map transposed: the gradient of
the input adds columns up where they were read, the gradient of the weights multiplies the gradient
with the columns, and a transposed convolution is the first of the two.

Convolution of many channels: the bilinear map and its two adjoints, as products of matrices.

Every window of the input becomes a column of a matrix (im2col), and one product of matrices
computes a block of samples. Where windows are adjacent, columns are read from the padded input in
long runs: rows are contiguous, so the inputs of one kernel element are one run, from the first
window to the last. Between two rows such a run holds a few columns that belong to no window; the
output leaves them out.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import in_order, module_of, new_empty, new_zeros
from gradcli.arrays.dtypes import narrowed, widened
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.kernels.windows import Sizes, Windows
from gradcli.arrays.layout.strides import in_format_of, window
from gradcli.arrays.threads import cores, in_turns
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error, type_error
from gradcli.ops.binding.arguments import check_same_dtype, check_tensors
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_KINDS, SAMPLES, describe, in_numpy
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.op import Function, Op, TensorSpec, op, rounded_once
from gradcli.ops.elementwise.complex import view_as_real
from gradcli.ops.nn.spatial.numpy_forms import CONVOLUTION, TRANSPOSED_CONVOLUTION
from gradcli.ops.nn.spatial.padding import constant_pad
from gradcli.ops.nn.spatial.unfold import per_dimension, windows_from
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.slicing import select, slice_op
from gradcli.ops.shape.views import expand, reshape, squeeze_dim, transpose, unsqueeze
from gradcli.record import Record

# --- arrays of many channels ----------------------------------------------------------------------


_BLOCK = 1 << 19
"""Elements of columns that are made at a time: columns are larger than the input by the size of the
kernel.
"""


class Columns:
    """Columns of all windows over inputs of some size.

    Attributes:
        windows: the geometry of the windows.
        sizes: the sizes of the input.
        counts: how many windows there are along each dimension.
        reach: the sizes of the padded input.
        steps: the strides of the padded input, in elements.
        side_by_side: whether a window begins at every element, and between two rows some that are
            none; with `exact` there are no others.
        length: how many columns one sample makes.
    """

    __slots__ = ("counts", "length", "reach", "side_by_side", "sizes", "steps", "windows")

    def __init__(self, windows: Windows, sizes: Sizes, counts: Sizes, exact: bool = False) -> None:
        self.windows = windows
        self.sizes = sizes
        self.counts = counts
        self.reach = windows.reach(sizes, counts)
        self.steps = tuple(prod(self.reach[dim + 1 :]) for dim in range(len(sizes)))
        self.side_by_side = not exact and all(stride == 1 for stride in windows.stride)
        self.length = prod(counts)
        if self.side_by_side:
            self.length = 1 + sum(
                (count - 1) * step for count, step in zip(counts, self.steps, strict=True)
            )

    def blocks(self, samples: int, channels: int) -> list[slice]:
        """The samples in blocks, so that the columns of a block do not grow too large."""
        each = channels * prod(self.windows.kernel) * self.length
        step = max(1, _BLOCK // max(1, each))
        return [slice(start, min(samples, start + step)) for start in range(0, samples, step)]

    def of(self, input: Any) -> Any:
        """The columns (C, elements of a window, N * length) of an input (N, C, *sizes)."""
        samples, channels = input.shape[:2]
        padded = new_zeros(input, (channels, samples, *self.reach))
        padded[self.windows.inner(self.sizes)] = input.swapaxes(0, 1)
        strides = [step // padded.itemsize for step in padded.strides]
        windows = self.windows
        offsets = [s * d for s, d in zip(strides[2:], windows.dilation, strict=True)]
        if self.side_by_side:
            shape: Sizes = (channels, *windows.kernel, samples, self.length)
            along = [1]
        else:
            shape = (channels, *windows.kernel, samples, *self.counts)
            along = [s * d for s, d in zip(strides[2:], windows.stride, strict=True)]
        shown = window(padded, shape, (strides[0], *offsets, strides[1], *along), 0)
        return shown.reshape(channels, prod(windows.kernel), samples * self.length)

    def added(self, columns: Any) -> Any:
        """The adjoint of `of`: an array (N, C, *sizes) with every column element added where it
        was read.
        """
        channels, _, width = columns.shape
        samples = width // self.length
        padded = new_zeros(columns, (channels, samples, *self.reach))
        if self.side_by_side:
            rows = padded.reshape(channels, samples, prod(self.reach))
            pieces = columns.reshape(channels, -1, samples, self.length)
            for number, (place, _) in enumerate(self.windows.elements(self.counts)):
                start = sum(
                    i * d * step
                    for i, d, step in zip(place, self.windows.dilation, self.steps, strict=True)
                )
                rows[:, :, start : start + self.length] += pieces[:, number]
        else:
            pieces = columns.reshape(channels, -1, samples, *self.counts)
            for number, (_, where) in enumerate(self.windows.elements(self.counts)):
                padded[where] += pieces[:, number]
        inside = padded[self.windows.inner(self.sizes)]
        return in_order(inside.swapaxes(0, 1))

    def placed(self, output: Any) -> Any:
        """An output (N, O, *counts) as rows (O, N * length): zero where there is no window."""
        samples, channels = output.shape[:2]
        if not self.side_by_side:
            return output.swapaxes(0, 1).reshape(channels, samples * self.length)
        rows = new_zeros(output, (channels, samples * self.length))
        self.shown(rows)[...] = output
        return rows

    def shown(self, rows: Any) -> Any:
        """Rows (O, N * length) as an output (N, O, *counts), on the same memory."""
        channels, width = rows.shape
        samples = width // self.length
        if not self.side_by_side:
            return rows.reshape(channels, samples, *self.counts).swapaxes(0, 1)
        strides = (self.length, rows.strides[0] // rows.itemsize, *self.steps)
        return window(rows, (samples, channels, *self.counts), strides, 0)


def _stacked(matrix: Any, groups: int) -> Any:
    """A matrix as one per group of its rows."""
    return matrix.reshape(groups, matrix.shape[0] // groups, *matrix.shape[1:])


def _weights(weight: Any, groups: int) -> Any:
    """The weights (O, C / groups, *kernel) as a matrix per group."""
    return _stacked(weight.reshape(weight.shape[0], prod(weight.shape[1:])), groups)


def _grouped(columns: Any, groups: int) -> Any:
    """Columns (C, elements, width) as (groups, elements of all its channels, width)."""
    channels, elements, width = columns.shape
    return columns.reshape(groups, channels // groups * elements, width)


def _side_by_side(windows: Windows, groups: int) -> bool:
    """Whether windows over images move by one and read adjacent elements of all channels."""
    return groups == 1 and windows.stride == windows.dilation == (1, 1)


def convolve(
    input: Any, weight: Any, windows: Windows, groups: int, counts: Sizes, bias: Any = None
) -> Any:
    """Every window of the input (N, C, *sizes) times the weights (O, C / groups, *kernel), plus a
    bias per channel: an array (N, O, *counts).
    """
    samples, channels = input.shape[:2]
    outputs = weight.shape[0]
    if _side_by_side(windows, groups) and input.size >= _SMALL:
        in_core = in_c.convolution(input, weight, windows.padding, bias)
        if in_core is not None:
            return in_core
    columns = Columns(windows, input.shape[2:], counts)
    matrices = _weights(weight, groups)
    output = new_empty(input, (samples, outputs, *counts))

    def compute(block: slice) -> None:
        rows = np.matmul(matrices, _grouped(columns.of(input[block]), groups))
        output[block] = columns.shown(rows.reshape(outputs, -1))

    in_turns(columns.blocks(samples, channels), compute)
    if bias is not None:
        output += bias.reshape(-1, *(1,) * len(counts))
    return output


def input_gradient(grad: Any, weight: Any, windows: Windows, groups: int, sizes: Sizes) -> Any:
    """The adjoint of `convolve` in its input, whose last dimensions have the given sizes."""
    samples = len(grad)
    channels = weight.shape[1] * groups
    around = tuple(k - 1 - p for k, p in zip(windows.kernel, windows.padding, strict=True))
    # The zeros around a gradient and between its rows are no terms of any sum.
    exact = type(weight) is np.ndarray and not np.isfinite(weight).all()
    if _side_by_side(windows, groups) and min(around) >= 0 and grad.size >= _SMALL and not exact:
        turned = weight.swapaxes(0, 1)[:, :, ::-1, ::-1]
        in_core = in_c.convolution(grad, turned, around, None)
        if in_core is not None:
            return in_core
    columns = Columns(windows, sizes, grad.shape[2:], exact)
    matrices = _weights(weight, groups).swapaxes(1, 2)
    output = new_empty(grad, (samples, channels, *sizes))

    def compute(block: slice) -> None:
        product = np.matmul(matrices, _stacked(columns.placed(grad[block]), groups))
        output[block] = columns.added(product.reshape(channels, prod(windows.kernel), -1))

    in_turns(columns.blocks(samples, channels), compute)
    return output


def weight_gradient(input: Any, grad: Any, windows: Windows, groups: int) -> Any:
    """The adjoint of `convolve` in its weights."""
    samples, channels = input.shape[:2]
    outputs, counts = grad.shape[1], grad.shape[2:]
    shape = (outputs, channels // groups, *windows.kernel)
    if _side_by_side(windows, groups) and input.size + grad.size >= _SMALL:
        in_core = in_c.weight_gradient(input, grad, shape, windows.padding)
        if in_core is not None:
            return in_core
    # Elements that are not finite times the zeros of what is no window would be nan.
    columns = Columns(windows, input.shape[2:], counts, exact=True)
    dtype = input.dtype
    if dtype.char == "f" and input.size + grad.size < _SMALL:
        input, grad = input.astype(np.float64), grad.astype(np.float64)
    blocks = columns.blocks(samples, channels)
    parts = min(cores(), len(blocks))
    sums = new_zeros(input, (parts, groups, prod(shape[1:]), outputs // groups))

    def compute(part: int) -> None:
        for block in blocks[part :: len(sums)]:
            windows_of_part = _grouped(columns.of(input[block]), groups)
            rows = _stacked(columns.placed(grad[block]), groups)
            sums[part] += np.matmul(windows_of_part, rows.swapaxes(1, 2))

    in_turns(range(len(sums)), compute)
    return sums.sum(0).swapaxes(1, 2).astype(dtype, order="C").reshape(shape)


_SMALL = 1 << 12
"""Elements below which sums over all windows are computed in float64: that costs little, and in
short sums BLAS is less exact than PyTorch.
"""


# --- ops ------------------------------------------------------------------------------------------


class Geometry(Record):
    """How a convolution lays its windows.

    Attributes:
        windows: the windows over the input; over the output, for a transposed convolution.
        groups: how many groups the channels are in, each convolved by itself.
        transposed: whether the convolution is a transposed one.
        sizes: the last sizes of a transposed convolution's output; () for any other.
    """

    windows: Windows
    groups: int
    transposed: bool
    sizes: Sizes = ()


# --- on arrays ----------------------------------------------------------------------------------


def _wide(*arrays: Any) -> list[Any]:
    """Half precision is multiplied in float32, as in PyTorch."""
    if arrays[0].dtype.itemsize == 2 and arrays[0].dtype.kind not in "iu":
        return list(map(widened, arrays))
    return list(arrays)


def _convolve(input: Any, weight: Any, geometry: Geometry, counts: Sizes, bias: Any = None) -> Any:
    operands = _wide(input, weight) if bias is None else _wide(input, weight, bias)
    windows, groups = geometry.windows, geometry.groups
    output = convolve(operands[0], operands[1], windows, groups, counts, *operands[2:])
    return output if output.dtype is input.dtype else narrowed(output, input.dtype)


def _input_gradient(grad: Any, weight: Any, geometry: Geometry, sizes: Sizes) -> Any:
    wide_grad, wide_weight = _wide(grad, weight)
    output = input_gradient(wide_grad, wide_weight, geometry.windows, geometry.groups, sizes)
    return output.astype(grad.dtype, copy=False)


# --- convolution --------------------------------------------------------------------------------


def _convolution_array(input: Any, weight: Any, bias: Any = None, geometry: Any = None) -> Any:
    if not geometry.transposed:
        counts = geometry.windows.counts(input.shape[2:])
        output = _convolve(input, weight, geometry, counts, bias)
        return _in_format(output, input, weight)
    output = _input_gradient(input, weight, geometry, geometry.sizes)
    if bias is not None:
        output += bias.reshape(-1, *(1,) * (output.ndim - 2))
    return _in_format(output, input, weight)


def _in_format(output: Any, input: Any, weight: Any) -> Any:
    """An output, or a gradient, in the format of the operands: a line is laid by rows first."""
    return in_format_of(output, weight) if input.ndim == 3 else in_format_of(output, input, weight)


def _convolution_backward_array(
    grad_output: Any, input: Any, weight: Any, geometry: Geometry, output_mask: Any
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias; an empty array for one that is not needed."""
    unused = module_of(grad_output).empty(0, grad_output.dtype)
    grads = [unused, unused, unused]
    if output_mask[0] and geometry.transposed:
        grads[0] = _convolve(grad_output, weight, geometry, input.shape[2:])
    elif output_mask[0]:
        grads[0] = _input_gradient(grad_output, weight, geometry, input.shape[2:])
    if output_mask[1]:
        read, placed = (grad_output, input) if geometry.transposed else (input, grad_output)
        wide_input, wide_grad = _wide(read, placed)
        output = weight_gradient(wide_input, wide_grad, geometry.windows, geometry.groups)
        grads[1] = output.astype(placed.dtype, copy=False)
    if output_mask[2]:
        dims = (0, *range(2, grad_output.ndim))
        grads[2] = np.add.reduce(wide(grad_output), axis=dims).astype(grad_output.dtype, copy=False)
    of_input, of_weight = [_in_format(each, input, weight) for each in grads[:2]]
    return of_input, of_weight, grads[2]


def _convolution_backward_decomposed(
    grad_output: Tensor, input: Tensor, weight: Tensor, geometry: Geometry, output_mask: Any
) -> list[Tensor | None]:
    """The gradients as convolutions: that of the input is a transposed one."""
    grads: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        sizes = () if geometry.transposed else tuple(input.shape[2:])
        turned = Geometry(geometry.windows, geometry.groups, not geometry.transposed, sizes)
        whole = convolution.apply(grad_output, weight, None, turned)
        grads[0] = _cut(whole, tuple(input.shape[2:]))
    if output_mask[1]:
        read, placed = (grad_output, input) if geometry.transposed else (input, grad_output)
        grads[1] = _weight_gradient_decomposed(read, placed, geometry)
    if output_mask[2]:
        dims = (0, *range(2, len(grad_output.shape)))
        grads[2] = sum_dims.apply(grad_output, dims, False)
    return grads


def _weight_gradient_decomposed(read: Tensor, placed: Tensor, geometry: Geometry) -> Tensor:
    """The gradient of the weights: the samples are the channels of a convolution whose windows are
    as large as the gradient, with stride and dilation exchanged.
    """
    windows, parts = geometry.windows, []
    across = Windows(tuple(placed.shape[2:]), windows.dilation, windows.padding, windows.stride)
    for group in range(geometry.groups):
        pair = [
            transpose.apply(_group_of(each, group, geometry.groups), 0, 1)
            for each in (read, placed)
        ]
        whole = convolution.apply(*pair, None, Geometry(across, 1, False))
        parts.append(transpose.apply(whole, 0, 1))
    gradient = parts[0] if len(parts) == 1 else cat.apply(parts, 0)
    return _cut(gradient, windows.kernel)


def _cut(value: Tensor, sizes: Sizes) -> Tensor:
    """A value whose last dimensions have no more than the sizes."""
    for dim, size in enumerate(sizes, 2):
        if value.shape[dim] > size:
            value = slice_op.apply(value, dim, 0, size, 1)
    return value


def _group_of(value: Tensor, group: int, groups: int) -> Tensor:
    """The channels of a group."""
    size = value.shape[1] // groups
    if groups == 1:
        return value
    return slice_op.apply(value, 1, group * size, (group + 1) * size, 1)


def _convolution_double_backward(
    grads: Any, grad_output: Any, input: Any, weight: Any, geometry: Geometry, needs: Any
) -> Any:
    # Each of the three maps is linear in each of its operands, so its gradients are the other two.
    # What was not asked for is an empty vector, to which forward mode sends a gradient too.
    for_input, for_weight, for_bias = [
        None if each is None or tuple(each.shape) == (0,) else each for each in grads
    ]
    to_output, to_input, to_weight = [], None, None
    if for_input is not None:
        if needs[0]:
            to_output.append(convolution(for_input, weight, None, geometry))
        if needs[2]:
            to_weight = convolution_backward(
                grad_output, for_input, weight, geometry, (False, True, False)
            )[1]
    if for_weight is not None:
        if needs[0]:
            to_output.append(convolution(input, for_weight, None, geometry))
        if needs[1]:
            to_input = convolution_backward(
                grad_output, input, for_weight, geometry, (True, False, False)
            )[0]
    if for_bias is not None and needs[0]:
        spatial = (1,) * (len(grad_output.shape) - 2)
        column = reshape(for_bias, (1, for_bias.shape[0], *spatial))
        to_output.append(expand(column, grad_output.shape))
    total = None
    for term in to_output:
        total = term if total is None else total + term
    return total, to_input, to_weight


convolution_backward: Op = op(
    "convolution_backward",
    _convolution_backward_array,
    half=rounded_once,
    decomposition=_convolution_backward_decomposed,
    keeps_layout=True,
    outputs=("result0", "result1", "result2"),
    inputs=("grad_output", "input", "weight"),
    joint=_convolution_double_backward,
    raises=BY_KINDS,
)


def _convolution_rule(grad: Any, input: Any, weight: Any, geometry: Any, needs: Any) -> Any:
    gradients = convolution_backward(grad, input, weight, geometry, tuple(needs))
    return [gradient if need else None for gradient, need in zip(gradients, needs, strict=True)]


convolution: Op = op(
    "convolution",
    _convolution_array,
    half=rounded_once,
    keeps_layout=True,
    inputs=("input", "weight", "bias"),
    joint=_convolution_rule,
    raises=BY_KINDS,
)

# --- what programs write ------------------------------------------------------------------------


def _too_large(sizes: Sizes, paddings: Sizes, kernel: Sizes, dilations: Sizes) -> str:
    """PyTorch's text for a kernel that is larger than its input."""
    padded = [size + 2 * padding for size, padding in zip(sizes, paddings, strict=True)]
    spread = [d * (size - 1) + 1 for d, size in zip(dilations, kernel, strict=True)]
    return (
        f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size:"
        f" ({' x '.join(map(str, spread))}). Kernel size can't be greater than actual input size"
    )


def _check(
    name: str, input: Tensor, weight: Tensor, bias: Any, ndim: int, groups: Any, transposed: bool
) -> None:
    """Raise E202, E203, E204 or E301 where operands of a convolution do not go together."""
    if type(groups) is not int:
        raise type_error(f"{name}(): `groups` must be an integer")
    if groups < 1:
        raise runtime_error("non-positive groups is not supported")
    shape, kernels = input.array.shape, weight.array.shape
    check_dtype(name, input.dtype, dtype_names("bool"))
    kinds = [each.dtype.scalar_type for each in (input, weight)]
    check_same_dtype(
        name,
        input,
        weight if bias is None else bias,
        f"Input type ({input.dtype.c_name}) and bias type ({bias.dtype.c_name}) should be the same"
        if isinstance(bias, Tensor)
        else f"expected scalar type {kinds[0]} but found {kinds[1]}",
    )
    check_same_dtype(name, input, weight)
    channels = shape[-ndim - 1]
    taken = kernels[0] if transposed else kernels[1] * groups
    if channels != taken or kernels[0] % groups:
        raise shape_error(
            f"{name}(): a weight of shape {tuple(kernels)} in {groups} group"
            f"{'s' if groups > 1 else ''} does not fit an input of {channels} channels",
            text=f"Given groups={groups}, expected weight to be at least {groups} at dimension 0,"
            f" but got weight of size {list(kernels)} instead"
            if kernels[0] < groups and not transposed
            else f"Given groups={groups}, expected weight to be divisible by {groups} at dimension"
            f" 0, but got weight of size [{list(kernels)}] instead"
            if kernels[0] % groups and not transposed
            else f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size"
            f" {list(kernels)}, expected input{list(shape)} to have {taken} channels, but got"
            f" {channels} channels instead",
        )
    if bias is not None:
        check_tensors(name, bias=bias)
        features = kernels[1] * groups if transposed else kernels[0]
        if bias.array.shape != (features,):
            raise shape_error(
                f"Given {'transposed=1, ' * transposed}weight of size {list(kernels)}, expected"
                f" bias to be 1-dimensional with {features} elements, but got bias of size"
                f" {list(bias.array.shape)} instead"
            )


_NARROW = dtype_names("uint8", "int8", "int16", "int32")
"""The dtypes that a transposed or dilated convolution does not support."""


def _convolved(
    input: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, pad: Sizes = ()
) -> Tensor:
    """A convolution of one sample or a batch of them, padded by pairs of sizes first."""
    single = input.array.ndim == weight.array.ndim - 1
    if single:
        input = unsqueeze.apply(input, 0)
    if pad:
        input = constant_pad(input, pad, 0)
    if geometry.transposed or max(geometry.windows.dilation) > 1:
        check_dtype("convolution", input.dtype, _NARROW)
    apply = _of_complex if input.dtype.is_complex else convolution.apply
    output = apply(input, weight, bias, geometry)
    return squeeze_dim.apply(output, 0) if single else output


def _of_complex(input: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry) -> Tensor:
    """A complex convolution by three of real numbers, as PyTorch makes it."""
    real, imaginary = _parts(input)
    weight_real, weight_imaginary = _parts(weight)
    bias_real = bias_imaginary = bias_sum = None
    if bias is not None:
        bias_real, bias_imaginary = _parts(bias)
        bias_sum = bias_real + bias_imaginary
    first = convolution.apply(real, weight_real, bias_real, geometry)
    second = convolution.apply(imaginary, weight_imaginary, None, geometry)
    third = convolution.apply(real + imaginary, weight_real + weight_imaginary, bias_sum, geometry)
    return first - second + (third - first - second) * 1j


def _parts(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part."""
    numbers = view_as_real(tensor)
    last = numbers.array.ndim - 1
    return select.apply(numbers, last, 0), select.apply(numbers, last, 1)


def _wrong_weight(name: str, weight: Any, operands: dict[str, Any]) -> GradcliError:
    """The error for a weight of another rank: PyTorch reads from it in how many dimensions to
    convolve, and then finds strides for others.
    """
    ndim, kernels, shape = int(name[-2]), list(weight.shape), list(operands["input"].shape)
    text = "weight should have at least three dimensions"
    if weight.ndim > 2 and ndim > 1:
        text = (
            "expected stride to be a single integer value or a list of"
            f" {weight.ndim - 2} values to match the convolution dimensions, but got stride="
            f"{[1] * ndim}"
        )
    elif weight.ndim > 2:
        batch = [1, *shape] if len(shape) == ndim + 1 else shape
        text = (
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight"
            f" {kernels}, but got {len(batch)}-dimensional input of size {batch} instead"
        )
    return shape_error(
        f"{name}(): expected {ndim + 2} dimensions of the weight, not {weight.ndim}", text=text
    )


def _expose(name: str, body: Function, words: str, ndim: int) -> None:
    raised = "Raises E203, E204 or E301 where they do not go together."
    describe(body, f"{words} {raised}", f"torch.{name}({SAMPLES[ndim]}, ones(1, 1{', 2' * ndim}))")
    least, most = ndim + 1, ndim + 2
    text = f"Expected {least}D (unbatched) or {most}D (batched) input to {name}, but got input"
    text += " of size: {sizes[input]}"
    plain = f"{name}(): expected {least} or {most} dimensions of the input, not {{input.ndim}}"
    takes = {
        "input": TensorSpec(least, most, text, plain),
        "weight": TensorSpec(most, most, misfit=_wrong_weight),
    }
    function(name, also="torch.nn.functional", autocast="short", takes=takes)(body)


def _expose_convolution(ndim: int) -> None:
    name = f"conv{ndim}d"

    @in_numpy(CONVOLUTION)
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        _check(name, input, weight, bias, ndim, groups, False)
        kernel = weight.array.shape[2:]
        strides = per_dimension(name, "stride", stride, ndim)
        dilations = per_dimension(name, "dilation", dilation, ndim)
        pad: Sizes = ()
        if padding == "same":
            if any(s != 1 for s in strides):
                raise runtime_error(
                    f"{name}(): padding='same' keeps the sizes, so there can be no stride"
                )
            # An odd element more goes after the others.
            totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
            paddings = tuple(total // 2 for total in totals)
            if any(total % 2 for total in totals):
                pad = tuple(size for total in reversed(totals) for size in (0, total % 2))
        elif type(padding) is str and padding != "valid":
            raise runtime_error(f"{name}(): padding is 'same', 'valid' or sizes, not {padding!r}")
        else:
            sizes = 0 if padding == "valid" else padding
            paddings = per_dimension(name, "padding", sizes, ndim, 0)
        windows = Windows(kernel, strides, paddings, dilations)
        counts = windows.counts(input.array.shape[-ndim:])
        if not pad and any(count < 1 for count in counts):
            raise shape_error(
                f"{name}(): a kernel of {tuple(kernel)} is larger than the padded input, of"
                f" {tuple(input.array.shape[-ndim:])}",
                text=_too_large(input.array.shape[-ndim:], paddings, kernel, dilations),
            )
        return _convolved(input, weight, bias, Geometry(windows, groups, False), pad)

    _expose(
        name,
        conv,
        f"The convolution of (N, C, *sizes) or (C, *sizes), over the last {ndim}, with weights"
        " (O, C / groups, *kernel).",
        ndim,
    )


def _too_much_output_padding(extra: Sizes, windows: Windows) -> str:
    """PyTorch's text for it; in one dimension it counts a height as well."""
    dims = ("depth", "height", "width")[-max(len(extra), 2) :]
    wide = len(dims) - len(extra)
    settings = (
        ("output_padding", (0,) * wide + extra),
        ("stride", (1,) * wide + windows.stride),
        ("dilation", (1,) * wide + windows.dilation),
    )
    shown = " ".join(
        f"{name}_{dim}: {value}"
        for name, values in settings
        for dim, value in zip(dims, values, strict=True)
    )
    return f"output padding must be smaller than either stride or dilation, but got {shown}"


def _expose_transposed(ndim: int) -> None:
    name = f"conv_transpose{ndim}d"

    @in_numpy(TRANSPOSED_CONVOLUTION)
    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        _check(name, input, weight, bias, ndim, groups, True)
        kernel = weight.array.shape[2:]
        windows = windows_from(name, ndim, kernel, stride, padding, dilation)
        extra = per_dimension(name, "output_padding", output_padding, ndim, 0)
        if any(
            e >= max(s, d) for e, s, d in zip(extra, windows.stride, windows.dilation, strict=True)
        ):
            raise runtime_error(_too_much_output_padding(extra, windows))
        sizes = tuple(
            (size - 1) * s - 2 * p + d * (k - 1) + e + 1
            for size, k, s, p, d, e in zip(
                input.array.shape[-ndim:],
                windows.kernel,
                windows.stride,
                windows.padding,
                windows.dilation,
                extra,
                strict=True,
            )
        )
        if any(size < 1 for size in sizes):
            raise shape_error(f"{name}(): the output would have the sizes {sizes}")
        return _convolved(input, weight, bias, Geometry(windows, groups, True, sizes))

    _expose(
        name,
        conv_transpose,
        f"The transpose of a convolution over the last {ndim} dimensions, with weights"
        " (C, O / groups, *kernel).",
        ndim,
    )


for _ndim in (1, 2, 3):
    _expose_convolution(_ndim)
    _expose_transposed(_ndim)
