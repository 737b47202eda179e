"""Convolutions, pools, images in other sizes and tables of rows: graphs, prints and error
classes that PyTorch gave."""

from __future__ import annotations

from tests.recorded import graphs, printed, prints, raises

_OPERANDS = """
x = torch.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
k = torch.ones(1, 1, 2, 2)
"""

# Without the `Backward0` that most names end in.
GRAPHS: list[tuple[str, str]] = [
    ("F.conv2d(x, k)", "Convolution(leaf, None, None)"),
    ("F.conv2d(x[0], k)", "SqueezeBackward1(Convolution(Unsqueeze(Select(leaf)), None, None))"),
    (
        "F.conv1d(m, torch.ones(1, 2, 1))",
        "SqueezeBackward1(Convolution(Unsqueeze(leaf), None, None))",
    ),
    ("F.conv2d(x, k, padding='same')", "Convolution(ConstantPadNd(leaf), None, None)"),
    ("F.conv2d(x, torch.ones(1, 1, 3, 3), padding='same')", "Convolution(leaf, None, None)"),
    ("F.conv_transpose2d(x, k)", "Convolution(leaf, None, None)"),
    (
        "F.conv_transpose1d(m, torch.ones(2, 1, 1))",
        "SqueezeBackward1(Convolution(Unsqueeze(leaf), None, None))",
    ),
    ("F.max_pool2d(x, 2)", "MaxPool2DWithIndices(leaf)"),
    ("F.max_pool1d(m, 2)", "SqueezeBackward1(MaxPool2DWithIndices(Unsqueeze(leaf)))"),
    ("F.avg_pool2d(x, 2)", "AvgPool2D(leaf)"),
    ("F.avg_pool1d(m, 2)", "SqueezeBackward1(AvgPool2D(Unsqueeze(leaf)))"),
    ("F.adaptive_avg_pool2d(x, 2)", "AdaptiveAvgPool2D(leaf)"),
    ("F.adaptive_avg_pool2d(x, 1)", "MeanBackward1(leaf)"),
    ("F.adaptive_max_pool1d(m, 1)", "SqueezeBackward1(AdaptiveMaxPool2D(Unsqueeze(leaf)))"),
    (
        "F.lp_pool2d(x, 2, 2)",
        "Pow(Mul(Mul(Sign(AvgPool2D(Pow(leaf))), Relu(Abs(AvgPool2D(Pow(leaf))))), None))",
    ),
    ("F.unfold(x, 2)", "Im2Col(leaf)"),
    ("F.fold(torch.ones(1, 4, 4, requires_grad=True), 3, 2)", "Col2Im(leaf)"),
    ("F.interpolate(x, scale_factor=2)", "UpsampleNearest2D(leaf)"),
    ("F.interpolate(x, 2, mode='bilinear')", "UpsampleBilinear2D(leaf)"),
    ("F.interpolate(x, 2, mode='area')", "AdaptiveAvgPool2D(leaf)"),
    ("F.pixel_unshuffle(x, 2)", "PixelUnshuffle(leaf)"),
]

VALUES: list[tuple[str, str]] = [
    (
        "F.conv2d(x, k, stride=2)",
        "tensor([[[[10., 18.],\n          [42., 50.]]]], grad_fn=<ConvolutionBackward0>)",
    ),
    (
        "F.conv2d(x, k, tensor([0.5]), padding=(0, 1), dilation=3)",
        "tensor([[[[16.5000, 30.5000, 14.5000]]]], grad_fn=<ConvolutionBackward0>)",
    ),
    (
        (
            "F.conv2d(torch.arange(8).reshape(1, 2, 2, 2), torch.ones(2, 1, 2, 2, "
            "dtype=torch.int64), groups=2)"
        ),
        "tensor([[[[ 6]],\n\n         [[22]]]])",
    ),
    ("F.conv2d(torch.zeros(0, 1, 2, 2), k)", "tensor([], size=(0, 1, 1, 1))"),
    (
        (
            "F.conv_transpose1d(tensor([[1.0, 2.0]]), torch.ones(1, 1, 2), stride=2, "
            "output_padding=1)"
        ),
        "tensor([[1., 1., 2., 2., 0.]])",
    ),
    (
        "F.max_pool2d(x, 2, return_indices=True)",
        (
            "(tensor([[[[ 5.,  7.],\n          [13., 15.]]]], "
            "grad_fn=<MaxPool2DWithIndicesBackward0>), tensor([[[[ 5,  7],\n          [13, "
            "15]]]]))"
        ),
    ),
    (
        "F.max_pool2d(torch.ones(1, 2, 2), 2, return_indices=True)",
        "(tensor([[[1.]]]), tensor([[[0]]]))",
    ),
    (
        "F.max_pool2d(tensor([[[1.0, nan], [nan, 5.0]]]), 2, return_indices=True)",
        "(tensor([[[nan]]]), tensor([[[2]]]))",
    ),
    ("F.max_pool1d(tensor([[1.0, 3.0, 2.0]]), 2, ceil_mode=True)", "tensor([[3., 2.]])"),
    (
        "F.avg_pool2d(x, 3, 2, 1)",
        (
            "tensor([[[[ 1.1111,  2.6667],\n          [ 5.6667, 10.0000]]]], "
            "grad_fn=<AvgPool2DBackward0>)"
        ),
    ),
    (
        "F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)",
        (
            "tensor([[[[ 2.5000,  4.0000],\n          [ 8.5000, 10.0000]]]], "
            "grad_fn=<AvgPool2DBackward0>)"
        ),
    ),
    (
        "F.avg_pool2d(x, 3, 2, ceil_mode=True)",
        (
            "tensor([[[[ 5.0000,  6.5000],\n          [11.0000, 12.5000]]]], "
            "grad_fn=<AvgPool2DBackward0>)"
        ),
    ),
    ("F.avg_pool1d(tensor([[1, 4, -2]]), 2, 1)", "tensor([[2, 1]])"),
    (
        "F.adaptive_avg_pool2d(x, (None, 3))",
        (
            "tensor([[[[ 0.5000,  1.5000,  2.5000],\n          [ 4.5000,  5.5000,  6.5000],\n    "
            "      [ 8.5000,  9.5000, 10.5000],\n          [12.5000, 13.5000, 14.5000]]]], "
            "grad_fn=<AdaptiveAvgPool2DBackward0>)"
        ),
    ),
    ("F.adaptive_max_pool2d(tensor([[[1.0, nan], [2.0, 5.0]]]), 1)", "tensor([[[nan]]])"),
    (
        "F.interpolate(x, scale_factor=1.5)[0, 0, :, 0]",
        "tensor([ 0.,  0.,  4.,  8.,  8., 12.], grad_fn=<SelectBackward0>)",
    ),
    (
        "F.interpolate(x, 3, mode='bilinear', align_corners=True)",
        (
            "tensor([[[[ 0.0000,  1.5000,  3.0000],\n          [ 6.0000,  7.5000,  9.0000],\n    "
            "      [12.0000, 13.5000, 15.0000]]]],\n       grad_fn=<UpsampleBilinear2DBackward0>)"
        ),
    ),
    (
        "F.interpolate(tensor([[[1.0, 2.0, 4.0]]]), 5, mode='linear')",
        "tensor([[[1.0000, 1.4000, 2.0000, 3.2000, 4.0000]]])",
    ),
    ("F.one_hot(tensor([0, 2]))", "tensor([[1, 0, 0],\n        [0, 0, 1]])"),
    ("F.one_hot(tensor(1), 3)", "tensor([0, 1, 0])"),
    (
        "F.embedding(tensor([[1, 0]]), m)",
        "tensor([[[3., 4.],\n         [1., 2.]]], grad_fn=<EmbeddingBackward0>)",
    ),
]

ERRORS: list[tuple[str, str]] = [
    ("F.conv2d(x, torch.ones(1, 2, 2, 2))", "RuntimeError"),
    ("F.conv2d(x, torch.ones(1, 1, 5, 5))", "RuntimeError"),
    ("F.conv2d(x, k.double())", "RuntimeError"),
    ("F.conv2d(x, k, torch.ones(2))", "RuntimeError"),
    ("F.conv2d(x, k, groups=2)", "RuntimeError"),
    ("F.conv2d(x, k, groups=0)", "RuntimeError"),
    ("F.conv2d(x, k, stride=0)", "RuntimeError"),
    ("F.conv2d(x, k, padding=-1)", "RuntimeError"),
    ("F.conv2d(x, k, padding='full')", "RuntimeError"),
    ("F.conv2d(x, k, padding='same', stride=2)", "RuntimeError"),
    ("F.conv2d(x, k, stride=(1, 1, 1))", "RuntimeError"),
    ("F.conv2d(x, k, stride=1.5)", "TypeError"),
    ("F.conv2d(m, k)", "RuntimeError"),
    ("F.conv2d(x, 2.0)", "TypeError"),
    ("F.conv_transpose2d(x, k, output_padding=1)", "RuntimeError"),
    ("F.max_pool2d(x, 5)", "RuntimeError"),
    ("F.max_pool1d(torch.ones(1, 2, dtype=torch.int64), 2)", "NotImplementedError"),
    ("F.max_pool2d(x, 2, padding=2)", "RuntimeError"),
    ("F.max_pool2d(x, 0)", "RuntimeError"),
    ("F.max_pool2d(x, 2.0)", "TypeError"),
    ("F.max_pool2d(m, 2)", "RuntimeError"),
    ("F.avg_pool2d(x, 2, divisor_override=0)", "RuntimeError"),
    ("F.adaptive_avg_pool2d(x, (1, 2, 3))", "RuntimeError"),
    ("F.unfold(x, 5)", "RuntimeError"),
    ("F.fold(torch.ones(1, 4, 5), 3, 2)", "RuntimeError"),
    ("F.interpolate(x)", "ValueError"),
    ("F.interpolate(x, 2, 2)", "ValueError"),
    ("F.interpolate(x, 2, mode='linear')", "NotImplementedError"),
    ("F.interpolate(x, 2, align_corners=True)", "ValueError"),
    ("F.pixel_shuffle(x, 2)", "RuntimeError"),
    ("F.embedding(tensor([2]), m)", "IndexError"),
    ("F.embedding(tensor([0.5]), m)", "RuntimeError"),
    ("F.one_hot(tensor([3]), 2)", "RuntimeError"),
    ("F.one_hot(tensor([-1]))", "RuntimeError"),
    ("F.embedding_bag(tensor([0, 1]), m)", "ValueError"),
]


test_graph = graphs(GRAPHS, _OPERANDS)
test_value = prints(VALUES, _OPERANDS)
test_error = raises(ERRORS, _OPERANDS)


def test_repeated_rows_add_their_gradients() -> None:
    program = """
F.embedding(tensor([1, 1, 0]), m, padding_idx=0).sum().backward()
print(m.grad)
"""
    assert printed(program) == "tensor([[0., 0.],\n        [2., 2.]])"


def test_a_padding_row_gets_nothing_of_a_gradient_that_is_nan() -> None:
    program = """
(F.embedding(tensor([1, 0]), m, padding_idx=0) * math.nan).sum().backward()
print(m.grad)
"""
    assert printed(program) == "tensor([[0., 0.],\n        [nan, nan]])"


def test_the_gradient_of_a_convolution_is_differentiable() -> None:
    program = """
x = torch.arange(9.0).reshape(1, 1, 3, 3).requires_grad_()
w = torch.ones(1, 1, 2, 2, requires_grad=True)
(g, h) = torch.autograd.grad(F.conv2d(x, w).sum(), [x, w], create_graph=True)
print(g.grad_fn, h.grad_fn)
(g * g).sum().backward()
print(w.grad)
"""
    node = "<ConvolutionBackwardBackward0 object at 0x"
    shown = printed(program)
    assert shown.count(node) == 2
    assert shown.endswith("tensor([[[[18., 18.],\n          [18., 18.]]]])")


def test_overlapping_windows_add_their_gradients() -> None:
    program = """
x = tensor([[[0.0, 1.0, 0.0]]], requires_grad=True)
F.max_pool1d(x, 2, 1).sum().backward()
print(x.grad)
"""
    assert printed(program) == "tensor([[[0., 2., 0.]]])"
