"""Matrix products: the graphs that PyTorch builds, what it printed, and the classes it raised."""

from __future__ import annotations

from threading import Event, Semaphore, Thread

import numpy as np
import pytest

from gradcli.arrays import threads
from gradcli.ops.linalg.products import matrix_products
from tests.recorded import graphs, printed, prints, raises

# Without the `Backward0` that most names end in.
GRAPHS: list[tuple[str, str]] = [
    ("v @ v", "Dot(leaf, leaf)"),
    ("m @ v", "Mv(leaf, leaf)"),
    ("v @ m", "SqueezeBackward4(Mm(Unsqueeze(leaf), leaf))"),
    ("m @ m", "Mm(leaf, leaf)"),
    (
        "torch.ones(3, 2, 2, requires_grad=True) @ torch.ones(3, 2, 2, requires_grad=True)",
        "UnsafeView(Bmm(View(Expand(leaf)), View(Expand(leaf))))",
    ),
    ("torch.ones(3, 2, 2, requires_grad=True) @ m", "UnsafeView(Mm(View(leaf), leaf))"),
    (
        "m @ torch.ones(3, 2, 2, requires_grad=True)",
        "Clone(Transpose(UnsafeView(Mm(UnsafeView(Clone(Transpose(leaf))), T(leaf)))))",
    ),
    ("torch.ones(3, 2, 2, requires_grad=True) @ v", "UnsafeView(Mv(View(leaf), leaf))"),
    (
        "v @ torch.ones(3, 2, 2, requires_grad=True)",
        "UnsafeView(Mv(UnsafeView(Clone(Transpose(leaf))), leaf))",
    ),
    ("torch.ones(2, 3, 2, 2, requires_grad=True) @ m", "UnsafeView(Mm(View(leaf), leaf))"),
    (
        "torch.ones(2, 3, 2, 2, requires_grad=True) @ torch.ones(3, 2, 2, requires_grad=True)",
        "UnsafeView(Bmm(View(Expand(leaf)), UnsafeView(Clone(Expand(leaf)))))",
    ),
    (
        ("torch.ones(2, 3, 2, 2, requires_grad=True) @ torch.ones(2, 3, 2, 2, requires_grad=True)"),
        "UnsafeView(Bmm(View(Expand(leaf)), View(Expand(leaf))))",
    ),
    (
        "torch.ones(1, 2, 2, requires_grad=True) @ torch.ones(3, 2, 2, requires_grad=True)",
        (
            "Clone(Transpose(UnsafeView(Mm(UnsafeView(Clone(Transpose(leaf))), "
            "T(SqueezeBackward1(leaf))))))"
        ),
    ),
    (
        "torch.ones(3, 2, 2, requires_grad=True) @ torch.ones(1, 2, 2, requires_grad=True)",
        "UnsafeView(Mm(View(leaf), SqueezeBackward1(leaf)))",
    ),
    (
        "torch.ones(1, 2, 2) @ torch.ones(3, 2, 2, requires_grad=True)",
        "UnsafeView(Bmm(None, View(Expand(leaf))))",
    ),
    ("torch.ones(3, 2, 2) @ m", "UnsafeView(Mm(None, leaf))"),
    (
        "torch.ones(3, 2, 2, requires_grad=True) @ torch.ones(2, 2)",
        "UnsafeView(Mm(View(leaf), None))",
    ),
    (
        "torch.ones(3, 2, 2, requires_grad=True).transpose(0, 1) @ torch.ones(2, 2)",
        "UnsafeView(Bmm(ReshapeAlias(Expand(Transpose(leaf))), None))",
    ),
    (
        "torch.ones(2, 2) @ torch.ones(3, 2, 2, requires_grad=True)",
        "UnsafeView(Bmm(None, View(Expand(leaf))))",
    ),
    (
        "torch.ones(2) @ torch.ones(3, 2, 2, requires_grad=True)",
        "UnsafeView(Bmm(None, View(Expand(leaf))))",
    ),
    ("m.t() @ m", "Mm(T(leaf), leaf)"),
    ("torch.mm(m, m.T)", "Mm(leaf, Permute(leaf))"),
    ("m.matmul(m)", "Mm(leaf, leaf)"),
    ("torch.bmm(torch.ones(3, 2, 2, requires_grad=True), torch.ones(3, 2, 2))", "Bmm(leaf, None)"),
    ("torch.addmm(v, m, m)", "Addmm(leaf, leaf, leaf)"),
    ("torch.addmm(m, m, m, beta=2, alpha=3)", "Addmm(leaf, leaf, leaf)"),
    ("torch.addmv(v, m, v)", "Addmv(leaf, leaf, leaf)"),
    ("torch.addr(m, v, v)", "Addr(leaf, leaf, leaf)"),
    (
        "torch.baddbmm(m, torch.ones(3, 2, 2), torch.ones(3, 2, 2, requires_grad=True))",
        "Baddbmm(leaf, None, leaf)",
    ),
    (
        "torch.addbmm(m, torch.ones(3, 2, 2), torch.ones(3, 2, 2, requires_grad=True))",
        "Addbmm(leaf, None, leaf)",
    ),
    ("F.linear(torch.ones(4, 2), m, v)", "Addmm(leaf, None, T(leaf))"),
    ("F.linear(torch.ones(4, 2), m)", "Mm(None, T(leaf))"),
    ("F.linear(v, m, v)", "View(Addmm(leaf, View(leaf), T(leaf)))"),
    ("F.linear(v, m)", "SqueezeBackward4(Mm(Unsqueeze(leaf), T(leaf)))"),
    (
        "F.linear(torch.ones(5, 4, 2, requires_grad=True), m, v)",
        "View(Addmm(leaf, View(leaf), T(leaf)))",
    ),
    ("F.linear(torch.ones(5, 4, 2), m)", "UnsafeView(Mm(None, T(leaf)))"),
    (
        "F.linear(torch.ones(4, 5, 2, requires_grad=True).transpose(0, 1), m, v)",
        "Add(UnsafeView(Mm(UnsafeView(Clone(Transpose(leaf))), T(leaf))), leaf)",
    ),
    ("F.linear(m, v)", "Mv(leaf, T(leaf))"),
    (
        "F.bilinear(m, m, torch.ones(3, 2, 2, requires_grad=True))",
        "View(Trilinear(View(leaf), leaf, View(leaf)))",
    ),
    ("torch.outer(v, v)", "Mul(View(leaf), leaf)"),
    ("torch.ger(v, v)", "Mul(View(leaf), leaf)"),
    ("torch.inner(v, v)", "View(Dot(Permute(leaf), Permute(leaf)))"),
    ("torch.inner(m, m)", "View(Mm(View(Permute(leaf)), ReshapeAlias(Permute(leaf))))"),
    ("torch.inner(s, v)", "Mul(leaf, leaf)"),
    ("torch.tensordot(m, m, 1)", "View(Mm(View(Permute(leaf)), View(Permute(leaf))))"),
    ("torch.tensordot(m, m, 2)", "View(Dot(View(Permute(leaf)), View(Permute(leaf))))"),
    ("torch.kron(v, v)", "UnsafeView(Mul(UnsafeView(leaf), UnsafeView(leaf)))"),
    ("torch.linalg.multi_dot([m, m, m])", "View(Mm(Mm(leaf, leaf), leaf))"),
    (
        "torch.linalg.multi_dot([v, m, m, v])",
        "View(Mm(Unsqueeze(leaf), Mm(leaf, Mm(leaf, Unsqueeze(leaf)))))",
    ),
    ("torch.chain_matmul(m, m, m, m)", "View(Mm(leaf, Mm(leaf, Mm(leaf, leaf))))"),
    ("torch.linalg.matrix_power(m, 3)", "Mm(Mm(leaf, leaf), leaf)"),
    ("torch.matrix_power(m, 5)", "Mm(leaf, Mm(Mm(leaf, leaf), Mm(leaf, leaf)))"),
    ("torch.matrix_power(m, 0)", "CopyBackwards(Clone(leaf), None)"),
    ("torch.vdot(v, v)", "Vdot(leaf, leaf)"),
    ("torch.linalg.vecdot(m, m)", "SumBackward1(Mul(leaf, leaf))"),
    ("m.trace()", "Trace(leaf)"),
]

VALUES: list[tuple[str, str]] = [
    ("torch.arange(4).reshape(2, 2) @ torch.tensor([1, 2])", "tensor([2, 8])"),
    ("torch.ones(0, 2) @ torch.ones(2, 3)", "tensor([], size=(0, 3))"),
    ("torch.ones(2, 0) @ torch.ones(0, 3)", ("tensor([[0., 0., 0.],\n        [0., 0., 0.]])")),
    ("torch.ones(0, 2, 3) @ torch.ones(3, 1)", "tensor([], size=(0, 2, 1))"),
    ("torch.ones(0).dot(torch.ones(0))", "tensor(0.)"),
    (
        (
            "torch.full((1, 3000), 0.1, dtype=torch.float16) @ torch.full((3000, 1), 0.1, "
            "dtype=torch.float16)"
        ),
        "tensor([[29.9844]], dtype=torch.float16)",
    ),
    (
        'torch.addmm(torch.full((2, 2), float("nan")), m, m, beta=0)',
        ("tensor([[ 7., 10.],\n        [15., 22.]], grad_fn=<AddmmBackward0>)"),
    ),
    (
        "torch.addmm(torch.tensor(1.0), m, m, alpha=2)",
        ("tensor([[15., 21.],\n        [31., 45.]], grad_fn=<AddmmBackward0>)"),
    ),
    ("torch.arange(6).reshape(2, 3).trace()", "tensor(4)"),
    (
        "torch.kron(torch.tensor([[1, 2]]), torch.tensor([[1], [10]]))",
        ("tensor([[ 1,  2],\n        [10, 20]])"),
    ),
    (
        (
            "torch.tensordot(torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(3, 2), "
            "([0], [1]))"
        ),
        ("tensor([[ 3.,  9., 15.],\n        [ 4., 14., 24.],\n        [ 5., 19., 33.]])"),
    ),
    (
        "torch.linalg.matrix_power(m, 0)",
        ("tensor([[1., 0.],\n        [0., 1.]], grad_fn=<CopyBackwards>)"),
    ),
    ("torch.inner(torch.tensor([1, 2]), torch.tensor([3, 4]))", "tensor(11)"),
    ("b @ torch.ones(3)", ("tensor([[ 3.],\n        [12.]], grad_fn=<UnsafeViewBackward0>)")),
    (
        "torch.addmm(k, k, k, beta=1.5, alpha=-2.7)",
        """tensor([[-30, -39],
        [-52, -69]])""",
    ),
    (
        "torch.addmv(k[0], k, k[1], beta=0.5, alpha=2.7)",
        "tensor([46, 82])",
    ),
    (
        "torch.baddbmm(k[None], k[None], k[None], beta=0.5, alpha=0.7)",
        """tensor([[[0, 0],
         [0, 0]]])""",
    ),
    (
        "torch.addmm(m, m, m, beta=2 + 0j)",
        """tensor([[ 9., 14.],
        [21., 30.]], grad_fn=<AddmmBackward0>)""",
    ),
]

ERRORS: list[tuple[str, str]] = [
    ("torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.float64)", "RuntimeError"),
    ("torch.ones(2, dtype=torch.int64) @ torch.ones(2)", "RuntimeError"),
    ("torch.ones(3) @ torch.ones(4)", "RuntimeError"),
    ("torch.ones(2, 3) @ torch.ones(2)", "RuntimeError"),
    ("torch.ones(2, 3) @ torch.ones(4, 5)", "RuntimeError"),
    ("torch.ones(2, 2, 3) @ torch.ones(2, 4, 5)", "RuntimeError"),
    ("torch.ones(2, 2, 3) @ torch.ones(3, 3, 5)", "RuntimeError"),
    ("m @ s", "RuntimeError"),
    ("m @ 2", "TypeError"),
    ("2 @ m", "TypeError"),
    ("torch.mm(v, m)", "RuntimeError"),
    ("torch.mm(m, v)", "RuntimeError"),
    ("torch.bmm(m, m)", "RuntimeError"),
    ("torch.mv(m, m)", "RuntimeError"),
    ("torch.dot(m, m)", "RuntimeError"),
    ("torch.dot(v, torch.ones(3))", "RuntimeError"),
    ("torch.dot(v, v.double())", "RuntimeError"),
    ("torch.matmul(m, [1, 2])", "TypeError"),
    ("torch.addmm(torch.ones(3), m, m)", "RuntimeError"),
    ("torch.addmm(v.double(), m, m)", "RuntimeError"),
    ("F.linear(m, torch.ones(2, 3))", "RuntimeError"),
    ("F.linear(m, m, torch.ones(3))", "RuntimeError"),
    ("torch.outer(m, v)", "RuntimeError"),
    ("torch.inner(m, torch.ones(3))", "RuntimeError"),
    ("torch.tensordot(m, torch.ones(3, 3), 1)", "RuntimeError"),
    ("torch.tensordot(m, m, 3)", "RuntimeError"),
    ("torch.linalg.multi_dot([m])", "RuntimeError"),
    ("torch.linalg.multi_dot([m, torch.ones(3, 3)])", "RuntimeError"),
    ("torch.matrix_power(torch.ones(2, 3), 2)", "RuntimeError"),
    ("torch.trace(v)", "RuntimeError"),
    (
        "torch.ones(2, 2, dtype=torch.bool) @ torch.ones(2, 2, dtype=torch.bool)",
        "NotImplementedError",
    ),
]


test_graph = graphs(GRAPHS)
test_value = prints(VALUES, "k = torch.tensor([[2, 3], [4, 5]])\n")
test_error = raises(ERRORS)


def test_the_gradient_of_a_product_is_made_of_products() -> None:
    program = """
(g, h) = torch.autograd.grad((m @ v).sum(), [m, v], create_graph=True)
print(graph(g), graph(h))
n = torch.ones(2, 2, requires_grad=True)
(g, h) = torch.autograd.grad((m @ n).sum(), [m, n], create_graph=True)
print(graph(g), graph(h))
"""
    assert printed(program) == (
        "MulBackward0(None, leaf) MvBackward0(TBackward0(leaf), None)\n"
        "MmBackward0(None, TBackward0(leaf)) MmBackward0(TBackward0(leaf), None)"
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((9, 4), (4, 5)),
        ((4, 5), (5, 9)),
        ((1, 8, 4), (1, 4, 5)),
        ((5, 3, 4), (5, 4, 2)),
        ((2, 3, 4, 5), (2, 1, 5, 6)),
        ((3, 4), (2, 4, 5)),
        ((0, 4), (4, 5)),
    ],
)
def test_a_product_in_parts_is_the_whole(
    left: tuple[int, ...], right: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_products, "_WORTH", 0)
    monkeypatch.setattr(threads, "SMALLEST_TILE", 1)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    one, other = (np.arange(np.prod(shape)).reshape(shape) % 7.0 for shape in (left, right))
    columns = other.swapaxes(-2, -1).copy().swapaxes(-2, -1)
    for second in (other, columns):
        np.testing.assert_array_equal(matrix_products.matrix_product(one, second), one @ second)


def test_a_busy_thread_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    release, waiting = Event(), Semaphore(0)

    def wait() -> None:
        waiting.release()
        release.wait()

    occupied = Thread(target=threads.in_threads, args=(wait, 2))
    occupied.start()
    for _ in range(2):
        waiting.acquire()
    done: list[int] = []
    threads.in_threads(lambda: done.append(1), 2)
    assert done == [1]
    release.set()
    occupied.join()
