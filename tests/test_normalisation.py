"""Normalisation and attention: graphs, prints and error classes that PyTorch gave."""

from __future__ import annotations

from tests.recorded import graphs, printed, prints, raises

# Without the `Backward0` that most names end in.
GRAPHS: list[tuple[str, str]] = [
    ("F.layer_norm(m, (2,))", "NativeLayerNorm(leaf, None, None)"),
    ("F.layer_norm(m, (2,), v, v)", "NativeLayerNorm(leaf, leaf, leaf)"),
    ("F.layer_norm(m, (2,), bias=v)", "NativeLayerNorm(leaf, None, leaf)"),
    ("F.batch_norm(m, None, None, v, v, training=True)", "NativeBatchNorm(leaf, leaf, leaf)"),
    (
        "F.batch_norm(m, torch.zeros(2), torch.ones(2), weight=v)",
        "NativeBatchNorm(leaf, leaf, None)",
    ),
    ("F.group_norm(m, 1)", "NativeGroupNorm(leaf, None, None)"),
    ("F.instance_norm(b.reshape(1, 2, 3))", "View(NativeBatchNorm(View(View(leaf)), None, None))"),
    (
        "F.instance_norm(b.reshape(1, 2, 3), weight=v)",
        "View(NativeBatchNorm(View(View(leaf)), Repeat(leaf), None))",
    ),
    ("F.rms_norm(m, (2,))", "Mul(leaf, Rsqrt(AddBackward1(MeanBackward1(Pow(leaf)))))"),
    (
        "F.rms_norm(m, (2,), v)",
        "Mul(Mul(leaf, Rsqrt(AddBackward1(MeanBackward1(Pow(leaf))))), leaf)",
    ),
    (
        "F.rms_norm(m.half(), (2,))",
        (
            "ToCopy(Mul(ToCopy(ToCopy(leaf)), Rsqrt(AddBackward1(MeanBackward1(Pow(ToCopy(ToCopy("
            "leaf))))))))"
        ),
    ),
    (
        "F.local_response_norm(b, 2)",
        (
            "Div(leaf, Pow(Add(Mul(SqueezeBackward1(AvgPool2D(ConstantPadNd(Unsqueeze(Mul(leaf, "
            "leaf))))), None), None)))"
        ),
    ),
    (
        "F.scaled_dot_product_attention(m, m, m)",
        "Mm(SafeSoftmax(Mm(MulBackward1(leaf), MulBackward1(Transpose(leaf)))), leaf)",
    ),
    (
        "F.scaled_dot_product_attention(b, b, b)",
        (
            "UnsafeView(Bmm(View(Expand(SafeSoftmax(UnsafeView(Bmm(View(Expand(MulBackward1("
            "leaf))), View(Expand(MulBackward1(Transpose(leaf))))))))), View(Expand(leaf))))"
        ),
    ),
    (
        "F.scaled_dot_product_attention(b, b, b, is_causal=True)",
        (
            "UnsafeView(Bmm(View(Expand(SafeSoftmax(Add(UnsafeView(Bmm(View(Expand(MulBackward1("
            "leaf))), View(Expand(MulBackward1(Transpose(leaf)))))), None)))), View(Expand("
            "leaf))))"
        ),
    ),
    (
        "F.scaled_dot_product_attention(b[None], b[None], b[None])",
        "ScaledDotProductFlashAttentionForCpu(Unsqueeze(leaf), Unsqueeze(leaf), Unsqueeze(leaf))",
    ),
]

_ROW = "F.layer_norm(torch.tensor([0.3, -1.25, 0.7, 2.0]), (4,))"

VALUES: list[tuple[str, str]] = [
    # To the last bit, on which depends what is left where terms cancel.
    (
        f"{_ROW}.tolist()",
        "[-0.11859491467475891, -1.4554831981658936, 0.2264084815979004, 1.3476696014404297]",
    ),
    (
        f"torch.func.grad(lambda x: {_ROW.replace('torch.tensor([0.3, -1.25, 0.7, 2.0])', 'x')}"
        ".square().sum())(torch.tensor([0.3, -1.25, 0.7, 2.0])).tolist()",
        "[-1.4901161193847656e-06, -1.8537044525146484e-05, 2.86102294921875e-06,"
        " 1.710653305053711e-05]",
    ),
    (
        "F.layer_norm(m, (2,))",
        (
            "tensor([[-1.0000,  1.0000],\n        [-1.0000,  1.0000]], "
            "grad_fn=<NativeLayerNormBackward0>)"
        ),
    ),
    (
        "F.layer_norm(m, (2, 2))",
        (
            "tensor([[-1.3416, -0.4472],\n        [ 0.4472,  1.3416]], "
            "grad_fn=<NativeLayerNormBackward0>)"
        ),
    ),
    ("F.layer_norm(torch.ones(2, 3), (3,))", "tensor([[0., 0., 0.],\n        [0., 0., 0.]])"),
    ("F.layer_norm(tensor([1.0, 2.0]).half(), (2,))", "tensor([-1.,  1.], dtype=torch.float16)"),
    (
        "F.layer_norm(m, (2,), tensor([2.0, 3.0]), tensor([0.5, 0.0]), eps=1.0)",
        (
            "tensor([[-0.3944,  1.3416],\n        [-0.3944,  1.3416]], "
            "grad_fn=<NativeLayerNormBackward0>)"
        ),
    ),
    (
        "F.batch_norm(m, None, None, training=True)",
        (
            "tensor([[-1.0000, -1.0000],\n        [ 1.0000,  1.0000]], "
            "grad_fn=<NativeBatchNormBackward0>)"
        ),
    ),
    (
        "F.batch_norm(m, tensor([1.0, 2.0]), tensor([4.0, 1.0]))",
        (
            "tensor([[0.0000, 0.0000],\n        [1.0000, 2.0000]], "
            "grad_fn=<NativeBatchNormBackward0>)"
        ),
    ),
    (
        "F.group_norm(b.reshape(1, 2, 3), 1)",
        (
            "tensor([[[-1.4638, -0.8783, -0.2928],\n         [ 0.2928,  0.8783,  1.4638]]], "
            "grad_fn=<NativeGroupNormBackward0>)"
        ),
    ),
    (
        "F.instance_norm(b.reshape(1, 2, 3))",
        (
            "tensor([[[-1.2247,  0.0000,  1.2247],\n         [-1.2247,  0.0000,  1.2247]]], "
            "grad_fn=<ViewBackward0>)"
        ),
    ),
    (
        "F.rms_norm(m, (2,))",
        "tensor([[0.6325, 1.2649],\n        [0.8485, 1.1314]], grad_fn=<MulBackward0>)",
    ),
    (
        "F.local_response_norm(b, 2, alpha=3.0)",
        (
            "tensor([[[0.0000, 0.5030, 0.4647]],\n\n        [[0.4037, 0.3578, 0.3235]]], "
            "grad_fn=<DivBackward0>)"
        ),
    ),
    (
        "F.scaled_dot_product_attention(m, m, m, torch.ones(2, 2, dtype=torch.bool).tril())",
        "tensor([[1.0000, 2.0000],\n        [2.9999, 3.9999]], grad_fn=<MmBackward0>)",
    ),
    (
        "F.scaled_dot_product_attention(m, m, m, torch.zeros(2, 2, dtype=torch.bool))",
        "tensor([[0., 0.],\n        [0., 0.]], grad_fn=<MmBackward0>)",
    ),
    (
        "F.instance_norm(torch.ones(1, 2, 2, 2).to(memory_format=torch.channels_last)).stride()",
        "(8, 4, 2, 1)",
    ),
    (
        "F.instance_norm(torch.ones(1, 2, 2, 2).mT.contiguous().mT).stride()",
        "(8, 4, 2, 1)",
    ),
]

ERRORS: list[tuple[str, str]] = [
    ("F.layer_norm(m, (3,))", "RuntimeError"),
    ("F.layer_norm(m, ())", "RuntimeError"),
    ("F.layer_norm(m, 2)", "TypeError"),
    ("F.layer_norm(m, (2,), torch.ones(3))", "RuntimeError"),
    ("F.layer_norm(m, (2,), v.double())", "RuntimeError"),
    ("F.layer_norm(torch.ones(2, 2, dtype=torch.int64), (2,))", "NotImplementedError"),
    ("F.layer_norm(2.0, (2,))", "TypeError"),
    ("F.batch_norm(m[:1], None, None, training=True)", "ValueError"),
    ("F.batch_norm(m, None, None)", "RuntimeError"),
    ("F.batch_norm(m, torch.zeros(3), torch.ones(3))", "RuntimeError"),
    ("F.batch_norm(v, None, None, training=True)", "IndexError"),
    ("F.batch_norm(m, None, None, torch.ones(3), training=True)", "RuntimeError"),
    ("F.group_norm(m, 3)", "ValueError"),
    ("F.group_norm(v, 1)", "RuntimeError"),
    ("F.instance_norm(m)", "ValueError"),
    ("F.instance_norm(torch.ones(2, 2, 1))", "ValueError"),
    ("F.rms_norm(m, (3,))", "RuntimeError"),
    ("F.local_response_norm(m, 2)", "ValueError"),
    ("F.scaled_dot_product_attention(m, m, m.double())", "RuntimeError"),
    ("F.scaled_dot_product_attention(v, v, v)", "RuntimeError"),
    ("F.scaled_dot_product_attention(m, m, m, m, is_causal=True)", "RuntimeError"),
]


test_graph = graphs(GRAPHS)
test_value = prints(VALUES)
test_error = raises(ERRORS)


def test_training_moves_the_running_statistics() -> None:
    program = """
mean, var = torch.zeros(2), torch.ones(2)
out = F.batch_norm(m, mean, var, training=True, momentum=0.5)
print(mean, var)
print(F.batch_norm(m, mean, var).detach())
"""
    assert printed(program) == (
        "tensor([1.0000, 1.5000]) tensor([1.5000, 1.5000])\n"
        "tensor([[0.0000, 0.4082],\n        [1.6330, 2.0412]])"
    )


def test_instances_average_their_statistics() -> None:
    program = """
mean, var = torch.zeros(2), torch.ones(2)
x = torch.arange(12.0).reshape(2, 2, 3)
F.instance_norm(x, mean, var, momentum=1.0)
print(mean, var)
"""
    assert printed(program) == "tensor([4., 7.]) tensor([1., 1.])"


def test_the_gradients_of_a_norm_are_nodes_of_its_own() -> None:
    program = """
(g,) = torch.autograd.grad((F.layer_norm(m, (2,), v) * m).sum(), m, create_graph=True)
print(graph(g))
"""
    node = (
        "NativeLayerNormBackwardBackward0(MulBackward0(None, leaf), leaf, None, None, leaf, None)"
    )
    assert node in printed(program)
