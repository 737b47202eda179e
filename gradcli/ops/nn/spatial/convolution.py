"""Convolutions: `conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d`.

A convolution is one product of matrices per sample and group: the weights times the columns that
the windows over the input make. The other ops are the same bilinear map transposed:
the gradient of the input adds columns up where they were read, the gradient of the weights
multiplies the gradient with the columns, and a transposed convolution is the first of the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import narrowed, widened
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.kernels.windows.convolution import convolve, input_gradient, weight_gradient
from gradcli.arrays.kernels.windows.windows import Sizes, Windows
from gradcli.arrays.layout.strides import in_format_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error, type_error
from gradcli.ops.binding.arguments import check_same_dtype, check_tensors
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_KINDS, SAMPLES, describe, in_numpy
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.op import Function, Op, op, rounded_once
from gradcli.ops.elementwise.complex import view_as_real
from gradcli.ops.nn.spatial.numpy_forms import CONVOLUTION, TRANSPOSED_CONVOLUTION
from gradcli.ops.nn.spatial.padding import constant_pad
from gradcli.ops.nn.spatial.unfold import per_dimension, windows_from
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.slicing import select, slice_op
from gradcli.ops.shape.views import expand, reshape, squeeze_dim, transpose, unsqueeze
from gradcli.record import Record


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
    check_tensors(name, input=input, weight=weight)
    if type(groups) is not int:
        raise type_error(f"{name}(): `groups` must be an integer")
    if groups < 1:
        raise runtime_error("non-positive groups is not supported")
    shape, kernels = input.array.shape, weight.array.shape
    if len(kernels) != ndim + 2 or len(shape) not in (ndim + 1, ndim + 2):
        raise shape_error(
            f"{name}(): expected {ndim + 1} or {ndim + 2} dimensions of the input and {ndim + 2} of"
            f" the weight, not {len(shape)} and {len(kernels)}",
            text=f"Expected {ndim + 1}D (unbatched) or {ndim + 2}D (batched) input to {name}, but"
            f" got input of size: {list(shape)}",
        )
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
            text=f"Given groups={groups}, expected weight to be divisible by {groups} at dimension"
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


def _expose(name: str, body: Function, words: str, ndim: int) -> None:
    raised = "Raises E203, E204 or E301 where they do not go together."
    describe(body, f"{words} {raised}", f"torch.{name}({SAMPLES[ndim]}, ones(1, 1{', 2' * ndim}))")
    function(name, also="torch.nn.functional", autocast="short")(body)


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
