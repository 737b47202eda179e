"""Einsum: the graphs that PyTorch builds, what it printed, and the classes it raised."""

from __future__ import annotations

from tests.recorded import graphs, prints, raises

# Without the `Backward0` that most names end in.
GRAPHS: list[tuple[str, str]] = [
    (
        "torch.einsum('ij,jk->ik', m, m)",
        (
            "View(Permute(View(Bmm(View(Permute(Permute(Unsqueeze(leaf)))), View(Permute(Permute("
            "Unsqueeze(leaf))))))))"
        ),
    ),
    (
        "torch.einsum('ij,jk', m, m)",
        (
            "View(Permute(View(Bmm(View(Permute(Permute(Unsqueeze(leaf)))), View(Permute(Permute("
            "Unsqueeze(leaf))))))))"
        ),
    ),
    (
        "torch.einsum('ij,kj->ki', m, m)",
        (
            "View(Permute(View(Bmm(View(Permute(Permute(Unsqueeze(leaf)))), ReshapeAlias(Permute("
            "Permute(Unsqueeze(leaf))))))))"
        ),
    ),
    ("torch.einsum('ii->', m)", "SumBackward1(Permute(Permute(Diagonal(leaf))))"),
    ("torch.einsum('ii->i', m)", "Permute(Permute(Diagonal(leaf)))"),
    ("torch.einsum('ij->ji', m)", "Permute(leaf)"),
    ("torch.einsum('i,j->ij', v, v)", "Mul(Permute(Unsqueeze(leaf)), Permute(Unsqueeze(leaf)))"),
    (
        "torch.einsum('i,i', v, v)",
        "View(Permute(View(Bmm(View(Permute(Permute(leaf))), View(Permute(Permute(leaf)))))))",
    ),
    (
        "torch.einsum('i,ij,j', v, m, v)",
        (
            "View(Permute(View(Bmm(View(Permute(Permute(View(Bmm(View(Permute(Permute(Unsqueeze("
            "leaf)))), View(Permute(Permute(leaf)))))))), View(Permute(Permute(Unsqueeze("
            "leaf))))))))"
        ),
    ),
    (
        "torch.einsum('...j,jk->...k', torch.ones(3, 2, 2, requires_grad=True), m)",
        (
            "View(Permute(View(Bmm(View(Permute(Permute(Unsqueeze(leaf)))), View(Permute(Permute("
            "Unsqueeze(Unsqueeze(leaf)))))))))"
        ),
    ),
    ("torch.einsum('ij,ij->ij', m, m)", "Mul(Permute(leaf), Permute(leaf))"),
    (
        "torch.einsum('ij,k->k', m, v)",
        "View(Mul(SumBackward1(Permute(Unsqueeze(leaf))), Permute(Unsqueeze(Unsqueeze(leaf)))))",
    ),
    (
        "torch.einsum('ij,jk->ik', torch.ones(2, 1, requires_grad=True), m)",
        "View(Mul(Permute(Unsqueeze(leaf)), SumBackward1(Permute(Unsqueeze(leaf)))))",
    ),
    (
        "torch.einsum(m, [0, 1], m, [1, 2], [0, 2])",
        (
            "View(Permute(View(Bmm(View(Permute(Permute(Unsqueeze(leaf)))), View(Permute(Permute("
            "Unsqueeze(leaf))))))))"
        ),
    ),
    ("torch.einsum('ij->', m)", "SumBackward1(Permute(leaf))"),
    ("torch.einsum('...,...', m, v)", "Mul(Permute(leaf), Permute(Unsqueeze(leaf)))"),
]

VALUES: list[tuple[str, str]] = [
    (
        "torch.einsum('ij,jk', torch.arange(4).reshape(2, 2), torch.arange(4).reshape(2, 2))",
        "tensor([[ 2,  3],\n        [ 6, 11]])",
    ),
    ("torch.einsum('ii', torch.arange(9).reshape(3, 3))", "tensor(12)"),
    ("torch.einsum('ba', torch.arange(4).reshape(2, 2))", "tensor([[0, 2],\n        [1, 3]])"),
    ("torch.einsum('Ba', torch.arange(4).reshape(2, 2))", "tensor([[0, 1],\n        [2, 3]])"),
    ("torch.einsum(' i j , j -> i ', torch.ones(2, 2), torch.ones(2))", "tensor([2., 2.])"),
    (
        "torch.einsum('ij,jk->ik', torch.ones(2, 0), torch.ones(0, 2))",
        "tensor([[0., 0.],\n        [0., 0.]])",
    ),
    ("torch.einsum(',->', tensor(2.0), tensor(3.0))", "tensor(6.)"),
    (
        "torch.einsum('...ij->...ji', torch.arange(4).reshape(1, 2, 2))",
        "tensor([[[0, 2],\n         [1, 3]]])",
    ),
    ("torch.einsum('ij,ij->i', torch.ones(1, 3), torch.ones(2, 3))", "tensor([3., 3.])"),
    (
        "torch.einsum('ij,jk', [torch.ones(2, 2), torch.ones(2, 2)])",
        "tensor([[2., 2.],\n        [2., 2.]])",
    ),
    ("torch.einsum(m.detach(), [..., 0], [0, ...])", "tensor([[1., 3.],\n        [2., 4.]])"),
]

ERRORS: list[tuple[str, str]] = [
    ("torch.einsum('ij', v)", "RuntimeError"),
    ("torch.einsum('i', m)", "RuntimeError"),
    ("torch.einsum('i,j', v)", "RuntimeError"),
    ("torch.einsum('ij,jk', m, torch.ones(3, 2))", "RuntimeError"),
    ("torch.einsum('ii', torch.ones(2, 3))", "RuntimeError"),
    ("torch.einsum('i1', m)", "RuntimeError"),
    ("torch.einsum('i.j', m)", "RuntimeError"),
    ("torch.einsum('......', m)", "RuntimeError"),
    ("torch.einsum('ij->k', m)", "RuntimeError"),
    ("torch.einsum('ij->ii', m)", "RuntimeError"),
    ("torch.einsum('ij')", "ValueError"),
    ("torch.einsum('i', 3.0)", "TypeError"),
    ("torch.einsum(m, [0, 60])", "ValueError"),
    ("torch.einsum('ij,jk', m, m.double())", "RuntimeError"),
]


test_graph = graphs(GRAPHS)
test_value = prints(VALUES)
test_error = raises(ERRORS)
