"""New tensors: what PyTorch printed, and the classes it raised."""

from __future__ import annotations

import re

import pytest

from gradcli.errors import GradcliError
from tests.recorded import printed, prints, raises

VALUES: list[tuple[str, str]] = [
    ("torch.tensor(2.)", "tensor(2.)"),
    ("torch.tensor([1, 2])", "tensor([1, 2])"),
    ("torch.tensor([1, 2.])", "tensor([1., 2.])"),
    ("torch.tensor([True, 2])", "tensor([1, 2])"),
    ("torch.tensor([True, False])", "tensor([ True, False])"),
    ("torch.tensor([1j, 2])", "tensor([0.+1.j, 2.+0.j])"),
    ("torch.tensor([])", "tensor([])"),
    ("torch.tensor([[], []])", "tensor([], size=(2, 0))"),
    ("torch.tensor(range(3))", "tensor([0, 1, 2])"),
    ("torch.tensor([range(2), (3, 4)])", ("tensor([[0, 1],\n        [3, 4]])")),
    ("torch.tensor([torch.tensor(1.), 2])", "tensor([1., 2.])"),
    (
        "torch.tensor([torch.tensor(1.0, dtype=torch.float64), 2])",
        "tensor([1., 2.], dtype=torch.float64)",
    ),
    ("torch.tensor([torch.tensor([1.0]), 2])", "tensor([1., 2.])"),
    ("torch.tensor(m)", ("tensor([[1., 2.],\n        [3., 4.]])")),
    ("torch.tensor([1, 2], dtype=torch.float64)", "tensor([1., 2.], dtype=torch.float64)"),
    ("torch.tensor([1.5, -2.7], dtype=torch.int32)", "tensor([ 1, -2], dtype=torch.int32)"),
    ("torch.tensor([0.0, 2.0], dtype=torch.bool)", "tensor([False,  True])"),
    ("torch.tensor(-1, dtype=torch.uint8)", "tensor(255, dtype=torch.uint8)"),
    ("torch.tensor(2**63, dtype=torch.float32)", "tensor(9.2234e+18)"),
    ("torch.tensor(-2**63)", "tensor(-9223372036854775808)"),
    ("torch.tensor(1e40)", "tensor(inf)"),
    ("torch.tensor([1.0, 1e-8], dtype=torch.float16)", "tensor([1., 0.], dtype=torch.float16)"),
    ("torch.tensor([1.0], requires_grad=True)", "tensor([1.], requires_grad=True)"),
    ("torch.as_tensor(m) is m", "True"),
    (
        "torch.as_tensor(m, dtype=torch.float64)",
        ("tensor([[1., 2.],\n        [3., 4.]], dtype=torch.float64, grad_fn=<ToCopyBackward0>)"),
    ),
    ("torch.asarray([1.0])", "tensor([1.])"),
    ("torch.zeros(2, 3)", ("tensor([[0., 0., 0.],\n        [0., 0., 0.]])")),
    ("torch.zeros((2, 1))", ("tensor([[0.],\n        [0.]])")),
    ("torch.zeros(size=(2,))", "tensor([0., 0.])"),
    ("torch.zeros(())", "tensor(0.)"),
    ("torch.zeros(torch.tensor(2))", "tensor([0., 0.])"),
    ("torch.zeros(m.shape, dtype=torch.int64)", ("tensor([[0, 0],\n        [0, 0]])")),
    ("torch.ones(2, requires_grad=True)", "tensor([1., 1.], requires_grad=True)"),
    ("torch.empty(0, 3)", "tensor([], size=(0, 3))"),
    ("torch.full((2,), 1)", "tensor([1, 1])"),
    ("torch.full((2,), 1.5)", "tensor([1.5000, 1.5000])"),
    ("torch.full((2,), True)", "tensor([True, True])"),
    ("torch.full((), 7.)", "tensor(7.)"),
    ("torch.full((2,), torch.tensor(2.5))", "tensor([2.5000, 2.5000])"),
    ("torch.full([2], 1.5, dtype=torch.int64)", "tensor([1, 1])"),
    ("torch.eye(2)", ("tensor([[1., 0.],\n        [0., 1.]])")),
    ("torch.eye(2, 3, dtype=torch.int64)", ("tensor([[1, 0, 0],\n        [0, 1, 0]])")),
    ("torch.arange(5)", "tensor([0, 1, 2, 3, 4])"),
    ("torch.arange(1, 5, 2)", "tensor([1, 3])"),
    ("torch.arange(1.0, 3)", "tensor([1., 2.])"),
    ("torch.arange(0, 1, 0.25)", "tensor([0.0000, 0.2500, 0.5000, 0.7500])"),
    ("torch.arange(5, 1, -1)", "tensor([5, 4, 3, 2])"),
    ("torch.arange(end=3)", "tensor([0, 1, 2])"),
    ("torch.arange(3, dtype=torch.float16)", "tensor([0., 1., 2.], dtype=torch.float16)"),
    ("torch.arange(torch.tensor(3))", "tensor([0, 1, 2])"),
    (
        "torch.arange(0, 1, 0.1)",
        (
            "tensor([0.0000, 0.1000, 0.2000, 0.3000, 0.4000, 0.5000, 0.6000, 0.7000, 0.8000,\n"
            "        0.9000])"
        ),
    ),
    ("torch.arange(0.0)", "tensor([])"),
    ("torch.linspace(0, 1, 5)", "tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])"),
    ("torch.linspace(0, 1, 1)", "tensor([0.])"),
    ("torch.linspace(0, 1, 0)", "tensor([])"),
    ("torch.linspace(0, 10, 5, dtype=torch.int64)", "tensor([ 0,  2,  5,  7, 10])"),
    (
        "torch.linspace(-1, 1, 7).tolist()",
        (
            "[-1.0, -0.6666666269302368, -0.3333333134651184, -2.9802322387695312e-08, "
            "0.3333333134651184, 0.6666666269302368, 1.0]"
        ),
    ),
    ("torch.logspace(0, 2, 3)", "tensor([  1.,  10., 100.])"),
    ("torch.logspace(0, 3, 4, base=2)", "tensor([1., 2., 4., 8.])"),
    ("torch.zeros_like(m)", ("tensor([[0., 0.],\n        [0., 0.]])")),
    (
        "torch.ones_like(m, dtype=torch.int64, requires_grad=False)",
        ("tensor([[1, 1],\n        [1, 1]])"),
    ),
    ("torch.full_like(torch.tensor([1, 2]), 3.7)", "tensor([3, 3])"),
    ("torch.empty_like(m).shape", "torch.Size([2, 2])"),
    ("m.new_zeros(2)", "tensor([0., 0.])"),
    ("m.new_ones((2, 1), dtype=torch.int64)", ("tensor([[1],\n        [1]])")),
    ("torch.tensor([1]).new_full((2,), 2.7)", "tensor([2, 2])"),
    ("m.new_tensor([1, 2])", "tensor([1., 2.])"),
    ("torch.tensor([1]).new_tensor([1.5])", "tensor([1])"),
    ("torch.scalar_tensor(2)", "tensor(2.)"),
    ("torch.tril_indices(3, 3)", ("tensor([[0, 1, 1, 2, 2, 2],\n        [0, 0, 1, 0, 1, 2]])")),
    ("torch.triu_indices(2, 3, 1)", ("tensor([[0, 0, 1],\n        [1, 2, 2]])")),
    ("torch.tril_indices(3, 2, -1)", ("tensor([[1, 2, 2],\n        [0, 0, 1]])")),
    ("torch.Tensor([1, 2])", "tensor([1., 2.])"),
    ("torch.Tensor(2, 3).shape", "torch.Size([2, 3])"),
    ("torch.LongTensor([1, 2])", "tensor([1, 2])"),
]

ERRORS: list[tuple[str, str]] = [
    ("torch.tensor([[1, 2], [3]])", "ValueError"),
    ("torch.tensor([[1], []])", "ValueError"),
    ("torch.tensor([1, [2]])", "TypeError"),
    ("torch.tensor([[1], 2])", "TypeError"),
    ("torch.tensor([m])", "ValueError"),
    ('torch.tensor("a")', "TypeError"),
    ('torch.tensor(["a"])', "ValueError"),
    ("torch.tensor(None)", "RuntimeError"),
    ("torch.tensor([None])", "RuntimeError"),
    ("torch.tensor({1: 2})", "RuntimeError"),
    ("torch.tensor(2**63)", "ValueError"),
    ("torch.tensor([300], dtype=torch.int8)", "RuntimeError"),
    ('torch.tensor(float("nan"), dtype=torch.int64)', "RuntimeError"),
    ("torch.tensor(1j, dtype=torch.float32)", "TypeError"),
    ("torch.tensor([1, 2], requires_grad=True)", "RuntimeError"),
    ('torch.tensor([1, 2], dtype="float32")', "TypeError"),
    ("torch.tensor(1, 2)", "TypeError"),
    ('torch.tensor([1.0], device="foo")', "RuntimeError"),
    ("torch.zeros()", "TypeError"),
    ("torch.zeros(2.0)", "TypeError"),
    ("torch.zeros(2, 3.0)", "TypeError"),
    ("torch.zeros(-1)", "RuntimeError"),
    ('torch.zeros("a")', "TypeError"),
    ("torch.zeros(True)", "TypeError"),
    ("torch.zeros(2, foo=1)", "TypeError"),
    ("torch.zeros(10**12)", "RuntimeError"),
    ("torch.full(2, 1)", "TypeError"),
    ("torch.full([2], m)", "TypeError"),
    ("torch.full((2,), 1, requires_grad=True)", "RuntimeError"),
    ("torch.eye(-1)", "RuntimeError"),
    ("torch.arange(5, 1)", "RuntimeError"),
    ("torch.arange(1, 5, 0)", "RuntimeError"),
    ("torch.linspace(0, 1)", "TypeError"),
    ("torch.linspace(0, 1, -1)", "RuntimeError"),
    ("torch.zeros_like([1])", "TypeError"),
    ("torch.tril_indices(-1, 2)", "RuntimeError"),
    ("torch.arange(10**13)", "RuntimeError"),
]


test_value = prints(VALUES)
test_error = raises(ERRORS)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("[[1, 2], [3]]", "the data[1] has 1 element, the lists beside it have 2"),
        ("[[[1], [2]], [[3], 4]]", "the data[1][1] is a int, where a list should be"),
    ],
)
def test_ragged_lists_name_the_place(data: str, place: str) -> None:
    with pytest.raises(GradcliError, match=re.escape(place)):
        printed(f"torch.tensor({data})")


@pytest.mark.parametrize(
    "statement", ["torch.zeros(10**10)", "torch.ones(2**20, 2**20)", "torch.arange(10**13)"]
)
def test_huge_tensors_are_refused_before_they_are_made(statement: str) -> None:
    with pytest.raises(GradcliError) as refused:
        printed(statement)
    assert refused.value.code == "E602"


def test_new_tensors_share_nothing() -> None:
    program = """
x = torch.zeros(2)
y = torch.tensor(x)
y += 1
print(x, torch.as_tensor(x) is x)
"""
    assert printed(program) == "tensor([0., 0.]) True"
