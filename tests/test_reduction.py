"""Reductions, running results, order and norms: what PyTorch printed, and the classes it raised."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.arrays.kernels import sums
from tests.recorded import graphs, printed, prints, raises

# Without the `Backward0` that most names end in.
GRAPHS: list[tuple[str, str]] = [
    ("m.sum()", "Sum(leaf)"),
    ("m.sum(0)", "SumBackward1(leaf)"),
    ("m.sum((0, 1))", "SumBackward1(leaf)"),
    ("m.sum(dim=[0], keepdim=True)", "SumBackward1(leaf)"),
    ("m.mean()", "Mean(leaf)"),
    ("m.mean(1)", "MeanBackward1(leaf)"),
    ("m.nansum()", "Nansum(leaf)"),
    ("m.nanmean()", "Div(Nansum(leaf), None)"),
    ("m.prod()", "Prod(leaf)"),
    ("m.prod(1)", "ProdBackward1(leaf)"),
    ("m.max()", "MaxBackward1(leaf)"),
    ("m.min()", "MinBackward1(leaf)"),
    ("m.max(1)[0]", "Max(leaf)"),
    ("m.min(1).values", "Min(leaf)"),
    ("torch.max(m, v)", "Maximum(leaf, leaf)"),
    ("m.amax()", "Amax(leaf)"),
    ("m.amin(1)", "Amin(leaf)"),
    ("m.aminmax().max", "Aminmax(leaf)"),
    ("m.var()", "Var(leaf)"),
    ("m.var(1)", "Var(leaf)"),
    ("m.std()", "Std(leaf)"),
    ("torch.var_mean(m)[1]", "VarMean(leaf)"),
    ("torch.std_mean(m, 1)[0]", "StdMean(leaf)"),
    ("m.median()", "Median(leaf)"),
    ("m.median(1)[0]", "MedianBackward1(leaf)"),
    ("m.nanmedian()", "Nanmedian(leaf)"),
    ("m.nanmedian(0).values", "NanmedianBackward1(leaf)"),
    ("m.mode()[0]", "Mode(leaf)"),
    ("m.logsumexp(1)", "Logsumexp(leaf)"),
    ("m.norm()", "LinalgVectorNorm(leaf)"),
    ("m.norm(p=1)", "LinalgVectorNorm(leaf)"),
    ("m.norm(dim=1)", "LinalgVectorNorm(leaf)"),
    ("torch.linalg.norm(m)", "LinalgVectorNorm(leaf)"),
    ("torch.linalg.norm(m, 1)", "Amax(LinalgVectorNorm(leaf))"),
    ("torch.linalg.vector_norm(m, 3)", "LinalgVectorNorm(leaf)"),
    ("torch.linalg.matrix_norm(m)", "LinalgVectorNorm(leaf)"),
    ('torch.linalg.matrix_norm(m, float("inf"))', "Amax(LinalgVectorNorm(leaf))"),
    ("torch.dist(m, v)", "Dist(leaf, leaf)"),
    ("m.cumsum(0)", "Cumsum(leaf)"),
    ("m.cumprod(0)", "Cumprod(leaf)"),
    ("m.cummax(0)[0]", "Cummax(leaf)"),
    ("m.cummin(0).values", "Cummin(leaf)"),
    ("m.logcumsumexp(0)", "Logcumsumexp(leaf)"),
    ("m.diff()", "Sub(Slice(leaf), Slice(leaf))"),
    ("m.sort().values", "Sort(leaf)"),
    ("m.msort()", "Sort(leaf)"),
    ("m.topk(1)[0]", "Topk(leaf)"),
    ("m.kthvalue(1)[0]", "Kthvalue(leaf)"),
    ("m.sum_to_size(1, 2)", "SumBackward1(leaf)"),
    ("m.sum(dtype=torch.float64)", "Sum(leaf)"),
]

VALUES: list[tuple[str, str]] = [
    (
        "m.max(dim=1)",
        (
            "torch.return_types.max(\n"
            "values=tensor([2., 4.], grad_fn=<MaxBackward0>),\n"
            "indices=tensor([1, 1]))"
        ),
    ),
    (
        "m.sort(1, descending=True)",
        (
            "torch.return_types.sort(\n"
            "values=tensor([[2., 1.],\n"
            "        [4., 3.]], grad_fn=<SortBackward0>),\n"
            "indices=tensor([[1, 0],\n"
            "        [1, 0]]))"
        ),
    ),
    (
        "torch.aminmax(m)",
        (
            "torch.return_types.aminmax(\n"
            "min=tensor(1., grad_fn=<AminmaxBackward0>),\n"
            "max=tensor(4., grad_fn=<AminmaxBackward0>))"
        ),
    ),
    (
        "torch.var_mean(m)",
        (
            "(tensor(1.6667, grad_fn=<VarMeanBackward0>), tensor(2.5000, "
            "grad_fn=<VarMeanBackward0>))"
        ),
    ),
    (
        "m.kthvalue(2)",
        (
            "torch.return_types.kthvalue(\n"
            "values=tensor([2., 4.], grad_fn=<KthvalueBackward0>),\n"
            "indices=tensor([1, 1]))"
        ),
    ),
    (
        "m.mode(0)",
        (
            "torch.return_types.mode(\n"
            "values=tensor([1., 2.], grad_fn=<ModeBackward0>),\n"
            "indices=tensor([0, 0]))"
        ),
    ),
    (
        "m.cummin(1)",
        (
            "torch.return_types.cummin(\n"
            "values=tensor([[1., 1.],\n"
            "        [3., 3.]], grad_fn=<CumminBackward0>),\n"
            "indices=tensor([[0, 0],\n"
            "        [0, 0]]))"
        ),
    ),
    (
        "m.nanmedian(0)",
        (
            "torch.return_types.nanmedian(\n"
            "values=tensor([1., 2.], grad_fn=<NanmedianBackward1>),\n"
            "indices=tensor([0, 0]))"
        ),
    ),
    (
        "m.topk(1)",
        (
            "torch.return_types.topk(\n"
            "values=tensor([[2.],\n"
            "        [4.]], grad_fn=<TopkBackward0>),\n"
            "indices=tensor([[1],\n"
            "        [1]]))"
        ),
    ),
    ("torch.tensor([1.0, 3.0, 3.0]).argmax()", "tensor(1)"),
    ("torch.tensor([3.0, 3.0]).max(0).indices", "tensor(0)"),
    ("torch.tensor([]).sum()", "tensor(0.)"),
    ("torch.tensor([]).prod()", "tensor(1.)"),
    ("torch.tensor([]).mean()", "tensor(nan)"),
    (
        "torch.zeros(0, 3).max(1)",
        ("torch.return_types.max(\nvalues=tensor([]),\nindices=tensor([], dtype=torch.int64))"),
    ),
    ("torch.zeros(0, 3).sum(0)", "tensor([0., 0., 0.])"),
    ("torch.zeros(0, 3).prod(0)", "tensor([1., 1., 1.])"),
    ("torch.zeros(0, 3).logsumexp(0)", "tensor([-inf, -inf, -inf])"),
    ("torch.zeros(0, 3).any()", "tensor(False)"),
    ("torch.zeros(0, 3).all()", "tensor(True)"),
    ("torch.zeros(0, 3).norm()", "tensor(0.)"),
    ("torch.tensor([1, 2], dtype=torch.int32).sum()", "tensor(3)"),
    ("torch.tensor([True, True]).sum()", "tensor(2)"),
    ("torch.tensor([1, 2], dtype=torch.uint8).cumsum(0)", "tensor([1, 3])"),
    ("torch.tensor([2, 3], dtype=torch.int8).prod()", "tensor(6)"),
    ('torch.tensor([1.0, float("nan")]).max()', "tensor(nan)"),
    (
        'torch.tensor([1.0, float("nan"), 3.0]).min(0)',
        ("torch.return_types.min(\nvalues=tensor(nan),\nindices=tensor(1))"),
    ),
    ('torch.tensor([1.0, float("nan"), 3.0]).argmin()', "tensor(1)"),
    ('torch.tensor([1.0, float("nan"), 3.0]).nansum()', "tensor(4.)"),
    ('torch.tensor([1.0, float("nan"), 3.0]).nanmean()', "tensor(2.)"),
    ('torch.tensor([1.0, float("nan"), 3.0]).median()', "tensor(nan)"),
    ('torch.tensor([1.0, float("nan"), 3.0]).nanmedian()', "tensor(1.)"),
    (
        'torch.tensor([1.0, float("nan"), 3.0]).cummax(0)',
        ("torch.return_types.cummax(\nvalues=tensor([1., nan, nan]),\nindices=tensor([0, 1, 1]))"),
    ),
    (
        'torch.tensor([float("nan"), 1.0, 3.0]).sort()',
        ("torch.return_types.sort(\nvalues=tensor([1., 3., nan]),\nindices=tensor([1, 2, 0]))"),
    ),
    ("torch.tensor([1.0, 4.0, 2.0, 3.0]).median()", "tensor(2.)"),
    (
        "torch.tensor([3.0, 1.0, 1.0, 3.0]).mode()",
        ("torch.return_types.mode(\nvalues=tensor(1.),\nindices=tensor(2))"),
    ),
    ("torch.tensor([1.0]).var()", "tensor(nan)"),
    ("torch.tensor([1.0]).std(correction=0)", "tensor(0.)"),
    ("torch.tensor([1.0, 2.0, 4.0]).var()", "tensor(2.3333)"),
    ("torch.tensor([1.0, 2.0, 4.0]).var(unbiased=False)", "tensor(1.5556)"),
    ("torch.tensor([1.0, 2.0, 4.0]).std(0, False)", "tensor(1.2472)"),
    ("torch.tensor([1.0, 2.0]).std(correction=5)", "tensor(inf)"),
    ('torch.tensor([float("inf"), float("inf")]).logsumexp(0)', "tensor(inf)"),
    ('torch.tensor([-float("inf"), -float("inf")]).logsumexp(0)', "tensor(-inf)"),
    ("torch.tensor([1000.0, 1000.0]).logsumexp(0)", "tensor(1000.6932)"),
    ("torch.tensor([1, 2]).logsumexp(0)", "tensor(2.3133)"),
    ("torch.tensor([0.0, 3.0, -4.0]).norm(p=0)", "tensor(2.)"),
    ('torch.tensor([0.0, 3.0, -4.0]).norm(p=float("inf"))', "tensor(4.)"),
    ('torch.tensor([0.0, 3.0, -4.0]).norm(p=-float("inf"))', "tensor(0.)"),
    ("torch.tensor([0.0, 3.0, -4.0]).norm(p=1)", "tensor(7.)"),
    (
        "s.max(0)",
        ("torch.return_types.max(\nvalues=tensor(3., grad_fn=<MaxBackward0>),\nindices=tensor(0))"),
    ),
    (
        "s.sort()",
        (
            "torch.return_types.sort(\n"
            "values=tensor(3., grad_fn=<SortBackward0>),\n"
            "indices=tensor(0))"
        ),
    ),
    ("s.sum(0)", "tensor(3., grad_fn=<SumBackward1>)"),
    ("s.argmax(0)", "tensor(0)"),
    ("s.cumsum(-1)", "tensor(3., grad_fn=<CumsumBackward0>)"),
    ("m.argmax(1, keepdim=True)", ("tensor([[1],\n        [1]])")),
    ("m.argmin()", "tensor(0)"),
    ("m.count_nonzero(0)", "tensor([2, 2])"),
    ("torch.tensor([2, 0], dtype=torch.uint8).any()", "tensor(1, dtype=torch.uint8)"),
    ("m.any(dim=1)", "tensor([True, True])"),
    ("m.all()", "tensor(True)"),
    ("m.sum(axis=0)", "tensor([4., 6.], grad_fn=<SumBackward1>)"),
    ("m.mean(axis=(0, 1), keepdims=True)", "tensor([[2.5000]], grad_fn=<MeanBackward1>)"),
    ("m.sum(())", "tensor(10., grad_fn=<SumBackward1>)"),
    ("m.half().mean()", "tensor(2.5000, dtype=torch.float16, grad_fn=<MeanBackward0>)"),
    (
        "torch.full((60000,), 0.1, dtype=torch.float16).mean()",
        "tensor(0.1000, dtype=torch.float16)",
    ),
    ("(torch.full((100000, 2), 0.1).sum(0) - 10000).abs() < 0.01", "tensor([True, True])"),
    (
        "torch.tensor([3, 1, 2, 3]).sort(stable=True)",
        ("torch.return_types.sort(\nvalues=tensor([1, 2, 3, 3]),\nindices=tensor([1, 2, 0, 3]))"),
    ),
    ("torch.tensor([1.0, 2.0, 2.0, 3.0]).sort(descending=True).indices", "tensor([3, 1, 2, 0])"),
    (
        "torch.tensor([2, 1, 2]).unique(return_inverse=True, return_counts=True)",
        "(tensor([1, 2]), tensor([1, 0, 1]), tensor([1, 2]))",
    ),
    (
        "torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 2.5]))",
        "tensor([1, 2])",
    ),
    ("torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), 2.0, right=True)", "tensor(2)"),
    (
        "torch.bucketize(torch.tensor([[0, 1], [2, 9]]), torch.tensor([1, 2]))",
        ("tensor([[0, 0],\n        [1, 2]])"),
    ),
    ("m.argsort(descending=True)", ("tensor([[1, 0],\n        [1, 0]])")),
    (
        (
            "torch.tensor([True, True, False, False]).scatter_reduce(0, torch.tensor([0, 0, 1]), "
            "torch.tensor([False, False, True]), 'amax', include_self=False)"
        ),
        "tensor([False,  True, False, False])",
    ),
    (
        (
            "torch.tensor([True, True, False, False]).scatter_reduce(0, torch.tensor([0, 0, 1]), "
            "torch.tensor([False, False, True]), 'amin', include_self=False)"
        ),
        "tensor([False,  True, False, False])",
    ),
    (
        (
            "torch.tensor([True, True, False, False]).scatter_reduce(0, torch.tensor([0, 0, 1]), "
            "torch.tensor([False, False, True]), 'sum', include_self=False)"
        ),
        "tensor([False,  True, False, False])",
    ),
    (
        (
            "torch.tensor([True, True, False, False]).scatter_reduce(0, torch.tensor([0, 0, 1]), "
            "torch.tensor([False, False, True]), 'prod', include_self=False)"
        ),
        "tensor([False,  True, False, False])",
    ),
    (
        (
            "torch.tensor([[True], [False]]).index_reduce(0, torch.tensor([0, 0]), "
            "torch.tensor([[True], [False]]), 'amin')"
        ),
        """tensor([[False],
        [False]])""",
    ),
]

# Conventions: where the gradient of x = [1, 3, 3] goes.
GRADIENTS: list[tuple[str, str]] = [
    ("x.max()", "tensor([0.0000, 0.5000, 0.5000])"),
    ("x.amax()", "tensor([0.0000, 0.5000, 0.5000])"),
    ("x.min()", "tensor([1., 0., 0.])"),
    ("x.median()", "tensor([0.0000, 0.5000, 0.5000])"),
    ("x.max(0).values", "tensor([0., 1., 0.])"),
    ("x.topk(1).values", "tensor([0., 1., 0.])"),
    ("x.sort(descending=True).values[0]", "tensor([0., 1., 0.])"),
    ("x.cummax(0).values", "tensor([1., 1., 1.])"),
    ("x.aminmax().max", "tensor([0.0000, 0.5000, 0.5000])"),
    ("x.mode().values", "tensor([0., 0., 1.])"),
    ('x.norm(float("inf"))', "tensor([0.0000, 0.5000, 0.5000])"),
    ("(x * 0).norm()", "tensor([0., 0., 0.])"),
    ("(x * 0).norm(1)", "tensor([0., 0., 0.])"),
    ("(x * 0).norm(3)", "tensor([0., 0., 0.])"),
    ("(x * 0).norm(0.5)", "tensor([0., 0., 0.])"),
    ("(x * 0).prod()", "tensor([0., 0., 0.])"),
    ("(x - 1).prod()", "tensor([4., 0., 0.])"),
    ("(x - 1)[:2].prod()", "tensor([2., 0., 0.])"),
    ("(x - 1).cumprod(0)", "tensor([7., 0., 0.])"),
    ("(x * 0).std()", "tensor([0., 0., 0.])"),
    ("(x * 0).var()", "tensor([0., 0., 0.])"),
    ("torch.dist(x, x * 1)", "tensor([0., 0., 0.])"),
    ("x.logsumexp(0)", "tensor([0.0634, 0.4683, 0.4683])"),
    ("x[:1].var()", "tensor([nan, 0., 0.])"),
    ("x.nansum()", "tensor([1., 1., 1.])"),
    ('(x * float("nan")).max()', "tensor([nan, nan, nan])"),
]

ERRORS: list[tuple[str, str]] = [
    ("torch.tensor([1, 2]).mean()", "RuntimeError"),
    ("torch.tensor([1, 2]).var()", "RuntimeError"),
    ("torch.tensor([1, 2]).norm()", "RuntimeError"),
    ("torch.tensor([1, 2]).nanmean()", "RuntimeError"),
    ("torch.tensor([1, 2]).logcumsumexp(0)", "NotImplementedError"),
    ("torch.tensor([True]).argmax()", "RuntimeError"),
    ("torch.tensor([]).max()", "RuntimeError"),
    ("torch.tensor([]).amax()", "RuntimeError"),
    ("torch.tensor([]).argmax()", "IndexError"),
    ("torch.tensor([]).aminmax()", "RuntimeError"),
    ("torch.zeros(0, 3).max(0)", "IndexError"),
    ('torch.zeros(0, 3).norm(p=float("inf"))', "RuntimeError"),
    ("m.sum(2)", "IndexError"),
    ("m.sum((0, 0))", "RuntimeError"),
    ("m.sum(0.5)", "TypeError"),
    ('m.sum("a")', "TypeError"),
    ("m.sum(True)", "TypeError"),
    ("m.sum(0, 1)", "TypeError"),
    ("m.max(keepdim=True)", "TypeError"),
    ("torch.sum(3)", "TypeError"),
    ("torch.max(3, 4)", "TypeError"),
    ("m.logsumexp(None)", "TypeError"),
    ("m.cumsum()", "TypeError"),
    ("m.topk(5)", "RuntimeError"),
    ("m.kthvalue(0)", "RuntimeError"),
    ("s.diff()", "RuntimeError"),
    ('m.norm("max")', "RuntimeError"),
    ("torch.linalg.matrix_norm(v)", "RuntimeError"),
    ('torch.linalg.matrix_norm(m, "x")', "RuntimeError"),
    ("torch.linalg.norm(b, 1)", "RuntimeError"),
    ('torch.linalg.vector_norm(m, "a")', "TypeError"),
    ("m.var(0, unbiased=True, correction=1)", "TypeError"),
    ("m.sum_to_size(3)", "RuntimeError"),
    ('torch.searchsorted(v, v, side="up")', "RuntimeError"),
]


test_graph = graphs(GRAPHS)
test_value = prints(VALUES)


@pytest.mark.parametrize(("expression", "recorded"), GRADIENTS)
def test_gradient(expression: str, recorded: str) -> None:
    program = (
        f"x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)\n({expression}).sum().backward()"
    )
    assert printed(f"{program}\nprint(x.grad)") == recorded


test_error = raises(ERRORS)


def test_a_product_keeps_every_order_exact_at_zeros() -> None:
    """The second derivative of a product with a zero: no rule divides by an element."""
    program = """
x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
(g,) = torch.autograd.grad(x.prod(), x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x)
print(g, h)
"""
    assert printed(program).endswith("tensor([3., 5., 2.])")


def test_variances_of_many_rows_are_those_of_each_alone() -> None:
    x = np.random.default_rng(0).standard_normal((90, 700)).astype(np.float32) + 3
    mean, squares = sums.mean_and_squares(x, (1,))
    alone = [sums.mean_and_squares(row, (0,)) for row in x]
    np.testing.assert_array_equal(mean, np.stack([each[0] for each in alone]))
    np.testing.assert_array_equal(squares, np.stack([each[1] for each in alone]))
