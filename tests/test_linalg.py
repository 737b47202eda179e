"""Linear algebra: what PyTorch printed, the graphs that it built, and the classes it raised."""

from __future__ import annotations

from tests.recorded import graphs, printed, prints, raises

VALUES: list[tuple[str, str]] = [
    ("torch.linalg.inv(m.detach())", "tensor([[-2.0000,  1.0000],\n        [ 1.5000, -0.5000]])"),
    ("torch.linalg.inv(torch.zeros(0, 3, 3)).shape", "torch.Size([0, 3, 3])"),
    ("torch.linalg.inv(m).stride()", "(1, 2)"),
    ("torch.linalg.inv_ex(torch.zeros(2, 2))[1]", "tensor(1, dtype=torch.int32)"),
    ("torch.linalg.solve(m.detach(), v.detach())", "tensor([0.0000, 0.5000])"),
    ("torch.linalg.solve(tensor([[3., 1], [1, 2]]), tensor([9., 8]))", "tensor([2., 3.])"),
    ("torch.det(tensor([[6., 1, 1], [4, -2, 5], [2, 8, 7]]))", "tensor(-306.)"),
    ("torch.det(torch.zeros(0, 0))", "tensor(1.)"),
    ("torch.logdet(-torch.eye(3))", "tensor(nan)"),
    ("torch.logdet(torch.zeros(2, 2))", "tensor(-inf)"),
    (
        "torch.linalg.slogdet(torch.zeros(2, 2))",
        "torch.return_types.linalg_slogdet(\nsign=tensor(0.),\nlogabsdet=tensor(-inf))",
    ),
    (
        "torch.slogdet(m)",
        "torch.return_types.slogdet(\nsign=tensor(-1., grad_fn=<LinalgSlogdetBackward0>),\n"
        "logabsdet=tensor(0.6931, grad_fn=<LinalgSlogdetBackward0>))",
    ),
    (
        "torch.linalg.solve_triangular(torch.zeros(2, 2), torch.ones(2, 1), upper=True)",
        "tensor([[nan],\n        [inf]])",
    ),
    (
        "torch.linalg.lu_factor(m.detach())",
        "torch.return_types.linalg_lu_factor(\nLU=tensor([[3.0000, 4.0000],\n"
        "        [0.3333, 0.6667]]),\npivots=tensor([2, 2], dtype=torch.int32))",
    ),
    ("torch.linalg.matrix_rank(tensor([[1., 2], [2, 4]]))", "tensor(1)"),
    (
        "torch.linalg.pinv(torch.eye(2) * 2)",
        "tensor([[0.5000, 0.0000],\n        [0.0000, 0.5000]])",
    ),
    ("torch.linalg.matrix_exp(torch.zeros(2, 2))", "tensor([[1., 0.],\n        [0., 1.]])"),
    ("torch.linalg.cond(torch.zeros(2, 2), 1)", "tensor(inf)"),
    ("torch.quantile(tensor([1., nan, 3]), 0.5)", "tensor(nan)"),
    ("torch.nanquantile(tensor([1., nan, 3]), 0.5)", "tensor(2.)"),
    (
        "torch.linalg.svd(m.detach()[:1])[2]",
        "tensor([[-0.4472, -0.8944],\n        [-0.8944,  0.4472]])",
    ),
    (
        "torch.linalg.eigh(tensor([[2.0, 0.5, 0.3], [0.5, -1.0, 0.2], [0.3, 0.2, 1.0]]))[1]",
        "tensor([[-0.1524, -0.2789, -0.9481],\n"
        "        [ 0.9857,  0.0274, -0.1665],\n"
        "        [-0.0724,  0.9599, -0.2708]])",
    ),
    # As far as there is a factor; the rest stays as it was.
    (
        "torch.linalg.cholesky_ex(tensor([[1.0, 2.0], [2.0, 1.0]]))[0]",
        "tensor([[ 1.,  0.],\n        [ 2., -3.]])",
    ),
    (
        "torch.linalg.cholesky_ex(tensor([[inf, 1.0], [1.0, 2.0]]))[0]",
        "tensor([[inf, 0.],\n        [nan, nan]])",
    ),
    ("torch.linalg.LinAlgError.__name__", "_LinAlgError"),
    # A matrix of one element has a gradient where it is singular too.
    (
        "torch.autograd.grad(torch.det(m[:1, :1] * 0), m)[0]",
        "tensor([[0., 0.],\n        [0., 0.]])",
    ),
    (
        "torch.func.grad(torch.det)(torch.zeros(1, 1))",
        "tensor([[1.]])",
    ),
    ("torch.linalg.solve(torch.eye(2).expand(3, 2, 2), torch.ones(3, 2)).stride()", "(1, 3)"),
    ("torch.linalg.cond(torch.ones(0, 0))", "tensor(0.)"),
    ("torch.linalg.cond(torch.ones(2, 0, 0), 'nuc')", "tensor([0., 0.])"),
    ("torch.linalg.cond(torch.ones(2, 3, 0, dtype=torch.complex64), 1)", "tensor([0., 0.])"),
    ("torch.linalg.cond(torch.ones(0, 3, 3), -2)", "tensor([])"),
    (
        (
            "torch.linalg.lu_solve(torch.ones(2, 2), torch.tensor([5, 0], dtype=torch.int32), "
            "torch.ones(2, 0))"
        ),
        "tensor([], size=(2, 0))",
    ),
    (
        (
            "torch.lu_unpack(torch.ones(2, 2), torch.tensor([5, 0], dtype=torch.int32), "
            "unpack_pivots=False)[0]"
        ),
        "tensor([])",
    ),
    ("torch.linalg.matrix_norm(torch.ones(2, 0, 0), 1)", "tensor([0., 0.])"),
    ("torch.linalg.matrix_norm(torch.ones(2, 0, 3), inf)", "tensor([0., 0.])"),
    (
        "torch.linalg.matrix_norm(torch.ones(2, 3, 0), 2, keepdim=True)",
        """tensor([[[0.]],

        [[0.]]])""",
    ),
    ("torch.linalg.norm(torch.ones(0, 0), 2)", "tensor(0.)"),
]


test_values = prints(VALUES)


# Without the `Backward0` that most names end in.
GRAPHS: list[tuple[str, str]] = [
    ("torch.inverse(m)", "LinalgInvEx(leaf)"),
    ("torch.linalg.solve(m, v)", "LinalgSolveEx(leaf, leaf)"),
    ("torch.logdet(m)", "Where(None, LinalgSlogdet(leaf))"),
    ("torch.linalg.tensorinv(m, ind=1)", "ReshapeAlias(LinalgInvEx(View(leaf)))"),
    ("torch.linalg.cholesky(m @ m.T)", "LinalgCholeskyEx(Mm(leaf, Permute(leaf)))"),
    ("torch.svd(m)[2]", "Transpose(LinalgSvd(leaf))"),
    ("torch.linalg.eigvalsh(m)", "LinalgEigh(leaf)"),
    ("torch.linalg.matrix_norm(m, 2)", "Amax(LinalgSvd(Permute(leaf)))"),
    (
        "torch.linalg.matrix_norm(m, 'nuc', keepdim=True)",
        "Permute(Unsqueeze(SumBackward1(LinalgSvd(Permute(leaf)))))",
    ),
    (
        "torch.linalg.cond(m)",
        "SqueezeBackward1(Div(Slice(LinalgSvd(leaf)), Slice(LinalgSvd(leaf))))",
    ),
    ("torch.linalg.matrix_power(m, -1)", "LinalgInvEx(leaf)"),
    ("torch.linalg.matrix_power(m, -2)", "Mm(LinalgInvEx(leaf), LinalgInvEx(leaf))"),
    ("torch.linalg.vander(v)", "Cat(None, Cumprod(Expand(Unsqueeze(leaf))))"),
    (
        "torch.trapezoid(v)",
        "MulBackward1(Sub(SumBackward1(leaf), MulBackward1(Add(Select(leaf), Select(leaf)))))",
    ),
    ("torch.cumulative_trapezoid(v)", "Cumsum(MulBackward1(Add(Slice(leaf), Slice(leaf))))"),
    (
        "m.quantile(0.4, dim=1)",
        "SqueezeBackward4(LerpBackward1(Gather(View(Sort(leaf))), Gather(View(Sort(leaf))), None))",
    ),
    (
        "torch.autograd.grad(torch.linalg.inv(m).sum(), m, create_graph=True)[0]",
        "Neg(Mm(Transpose(LinalgInvEx(leaf)), Mm(None, Transpose(LinalgInvEx(leaf)))))",
    ),
    (
        "torch.autograd.grad(torch.det(m), m, create_graph=True)[0]",
        "LinalgSolveEx(Transpose(leaf),"
        " Transpose(DiagEmbed(Expand(Unsqueeze(Mul(None, LinalgDet(leaf)))))))",
    ),
]


test_graphs = graphs(GRAPHS)


def test_gradient_of_a_singular_determinant() -> None:
    """0 where it is computed, the adjugate where it is recorded."""
    program = """x = tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
for recorded in (False, True):
    (g,) = torch.autograd.grad(torch.det(x), x, create_graph=recorded)
    print(torch.allclose(g, tensor([[4.0, -2.0], [-2.0, 1.0]]), atol=1e-5), (g == 0).all().item())
"""
    assert printed(program) == "False True\nTrue False"


RAISED: list[tuple[str, str | None]] = [
    ("torch.linalg.inv(torch.zeros(2, 2))", "_LinAlgError"),
    ("torch.linalg.inv(torch.zeros(3, 2, 2))", "_LinAlgError"),
    ("torch.linalg.inv(b)", "RuntimeError"),
    ("torch.linalg.inv(v)", "RuntimeError"),
    ("torch.linalg.inv(torch.eye(2).long())", "RuntimeError"),
    ("torch.linalg.inv(torch.eye(2).half())", "RuntimeError"),
    ("torch.linalg.solve(torch.zeros(2, 2), v)", "_LinAlgError"),
    ("torch.linalg.solve(m, torch.ones(3))", "RuntimeError"),
    ("torch.linalg.solve(m, v.double())", "RuntimeError"),
    ("torch.linalg.cholesky(-torch.eye(2))", "_LinAlgError"),
    ("torch.linalg.lu_factor(torch.zeros(2, 2))", "RuntimeError"),
    ("torch.linalg.lu(m, pivot=False)", "RuntimeError"),
    ("torch.linalg.qr(m, mode='x')", "RuntimeError"),
    ("torch.linalg.qr(m, mode='r')[1].sum().backward()", "RuntimeError"),
    ("torch.linalg.eigh(m, UPLO='X')", "RuntimeError"),
    ("torch.linalg.svdvals(tensor([[nan, 1.0], [1.0, 1.0]]))", "_LinAlgError"),
    ("torch.linalg.det(5.0)", "TypeError"),
    ("torch.linalg.matrix_power(torch.zeros(2, 2), -1)", "_LinAlgError"),
    ("torch.linalg.solve_triangular(m, v, upper=True)", "RuntimeError"),
    ("torch.linalg.cross(m, m)", "RuntimeError"),
    ("torch.linalg.vander(v, N=1)", "RuntimeError"),
    ("torch.trapezoid(v, v, dx=1)", "TypeError"),
    ("torch.cov(b)", "RuntimeError"),
    # PyTorch overwrites what their derivatives need.
    ("torch.linalg.cond(m, 'fro').backward()", "RuntimeError"),
    ("torch.vander(v).sum().backward()", "RuntimeError"),
    ("torch.vander(v, -1)", "RuntimeError"),
    ("torch.linalg.eig(torch.full((2, 2), nan))", "RuntimeError"),
    ("torch.quantile(v, 1.5)", "RuntimeError"),
    ("torch.quantile(v.long(), 0.5)", "RuntimeError"),
    ("torch.quantile(v, tensor(0.5).double())", "RuntimeError"),
]


test_classes_of_errors = raises(RAISED)


def test_a_singular_matrix_is_caught_by_its_class() -> None:
    program = """try:
    torch.inverse(torch.zeros(2, 2))
except torch.linalg.LinAlgError as error:
    print(type(error).__name__, isinstance(error, RuntimeError))
"""
    assert printed(program) == "_LinAlgError True"
