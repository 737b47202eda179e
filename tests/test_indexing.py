"""Indexing, and assignment to an index: graphs, values and errors, recorded from PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recorded import graphs_and_shapes, lists, printed, raised, raises

GRAPHS: list[tuple[str, str, tuple[int, ...]]] = [
    ("m[0]", "SelectBackward0(leaf)", (2,)),
    ("m[-1]", "SelectBackward0(leaf)", (2,)),
    ("m[0, 1]", "SelectBackward0(SelectBackward0(leaf))", ()),
    ("m[0][1]", "SelectBackward0(SelectBackward0(leaf))", ()),
    ("m[(0, 1)]", "SelectBackward0(SelectBackward0(leaf))", ()),
    ("m[0:1]", "SliceBackward0(leaf)", (1, 2)),
    ("m[:]", "SliceBackward0(leaf)", (2, 2)),
    ("m[::1]", "SliceBackward0(leaf)", (2, 2)),
    ("m[...]", "AliasBackward0(leaf)", (2, 2)),
    ("m[()]", "AliasBackward0(leaf)", (2, 2)),
    ("m[:, :]", "AliasBackward0(leaf)", (2, 2)),
    ("m[:, 1]", "SelectBackward0(leaf)", (2,)),
    ("m[0:2, 0]", "SelectBackward0(leaf)", (2,)),
    ("m[1:, ::2]", "SliceBackward0(SliceBackward0(leaf))", (1, 1)),
    ("m[5:]", "SliceBackward0(leaf)", (0, 2)),
    ("m[None]", "UnsqueezeBackward0(leaf)", (1, 2, 2)),
    ("m[..., None]", "UnsqueezeBackward0(leaf)", (2, 2, 1)),
    ("m[None, 0]", "SelectBackward0(UnsqueezeBackward0(leaf))", (1, 2)),
    ("m[0:1, None]", "UnsqueezeBackward0(SliceBackward0(leaf))", (1, 1, 2)),
    ("m[..., 0]", "SelectBackward0(leaf)", (2,)),
    ("m[[0, 1]]", "IndexBackward0(leaf)", (2, 2)),
    ("m[[0, 1], [0, 1]]", "IndexBackward0(leaf)", (2,)),
    ("m[[[0, 1], [1, 0]]]", "IndexBackward0(leaf)", (2,)),
    ("m[[[[0]]]]", "IndexBackward0(leaf)", (1, 1, 2)),
    ("m[(0, 1),]", "IndexBackward0(leaf)", (2, 2)),
    ("m[range(2)]", "IndexBackward0(leaf)", (2, 2)),
    ("m[[]]", "IndexBackward0(leaf)", (0, 2)),
    ("m[:, [0]]", "IndexBackward0(leaf)", (2, 1)),
    ("m[1:, [0]]", "IndexBackward0(SliceBackward0(leaf))", (1, 1)),
    ("m[0, [0, 1]]", "IndexBackward0(SelectBackward0(leaf))", (2,)),
    ("m[0:2, [0]]", "IndexBackward0(leaf)", (2, 1)),
    ("m[-2:, [0]]", "IndexBackward0(SliceBackward0(leaf))", (2, 1)),
    ("m[torch.tensor(0)]", "SelectBackward0(leaf)", (2,)),
    ("m[torch.tensor(0), torch.tensor(1)]", "SelectBackward0(SelectBackward0(leaf))", ()),
    ("m[torch.tensor([0])]", "IndexBackward0(leaf)", (1, 2)),
    ("m[torch.tensor([0], dtype=torch.int32)]", "IndexBackward0(leaf)", (1, 2)),
    ("m[m > 2]", "IndexBackward0(leaf)", (2,)),
    ("m[torch.tensor([True, False])]", "IndexBackward0(leaf)", (1, 2)),
    ("m[[True, False]]", "IndexBackward0(leaf)", (1, 2)),
    ("m[:, [True, False]]", "IndexBackward0(leaf)", (2, 1)),
    ("m[True]", "IndexBackward0(UnsqueezeBackward0(leaf))", (1, 2, 2)),
    ("m[False]", "IndexBackward0(UnsqueezeBackward0(leaf))", (0, 2, 2)),
    ("m[0, True]", "IndexBackward0(UnsqueezeBackward0(SelectBackward0(leaf)))", (1, 2)),
    ("m[torch.tensor(True)]", "IndexBackward0(UnsqueezeBackward0(leaf))", (1, 2, 2)),
    ("m[None, [0]]", "IndexBackward0(UnsqueezeBackward0(leaf))", (1, 1, 2)),
    ("m[[0, None]]", "UnsqueezeBackward0(SelectBackward0(leaf))", (1, 2)),
    ("m[[0, slice(None)]]", "SelectBackward0(leaf)", (2,)),
    ("m[torch.tensor(0):torch.tensor(1)]", "SliceBackward0(leaf)", (1, 2)),
    ("s[...]", "AliasBackward0(leaf)", ()),
    ("s[None]", "UnsqueezeBackward0(leaf)", (1,)),
    ("s[True]", "IndexBackward0(UnsqueezeBackward0(leaf))", (1,)),
    ("m.take(torch.tensor([0, -1]))", "TakeBackward0(leaf)", (2,)),
    ("m.put(torch.tensor([0]), v[:1])", "PutBackward0(leaf, SliceBackward0(leaf))", (2, 2)),
    ("m.masked_fill(m > 2, 0.0)", "MaskedFillBackward0(leaf)", (2, 2)),
    ("m.masked_fill(m > 2, s)", "MaskedFillBackward1(leaf, leaf)", (2, 2)),
    ("m.masked_select(m > 2)", "MaskedSelectBackward0(leaf)", (2,)),
    ("m.masked_scatter(m > 2, v)", "MaskedScatterBackward0(leaf, leaf)", (2, 2)),
    ("m.gather(0, torch.tensor([[0]]))", "GatherBackward0(leaf)", (1, 1)),
    ("m.take_along_dim(torch.tensor([[0]]), 0)", "GatherBackward0(ExpandBackward0(leaf))", (1, 2)),
    ("m.take_along_dim(torch.tensor([0]))", "GatherBackward0(ViewBackward0(leaf))", (1,)),
    ("m.scatter(0, torch.tensor([[0, 1]]), m)", "ScatterBackward0(leaf, leaf)", (2, 2)),
    ("m.scatter(0, torch.tensor([[0, 1]]), 3.0)", "ScatterBackward1(leaf)", (2, 2)),
    ("m.scatter_add(0, torch.tensor([[0, 1]]), m)", "ScatterAddBackward0(leaf, leaf)", (2, 2)),
    (
        'm.scatter_reduce(0, torch.tensor([[0, 1]]), m, "amax")',
        "ScatterReduceBackward0(leaf, leaf)",
        (2, 2),
    ),
    ("m.index_select(0, torch.tensor([0]))", "IndexSelectBackward0(leaf)", (1, 2)),
    (
        "m.index_add(0, torch.tensor([0]), m[:1])",
        "IndexAddBackward0(leaf, SliceBackward0(leaf))",
        (2, 2),
    ),
    (
        "m.index_copy(0, torch.tensor([0]), m[:1])",
        "IndexCopyBackward0(leaf, SliceBackward0(leaf))",
        (2, 2),
    ),
    ("m.index_fill(0, torch.tensor([0]), 5.0)", "IndexFillBackward0(leaf)", (2, 2)),
    ("m.index_fill(0, torch.tensor([0]), s)", "IndexFillBackward1(leaf, leaf)", (2, 2)),
    (
        'm.index_reduce(0, torch.tensor([0]), m[:1], "mean")',
        "IndexReduceBackward0(leaf, SliceBackward0(leaf))",
        (2, 2),
    ),
    ("m.index_put((torch.tensor([0]),), v)", "IndexPutBackward0(leaf, leaf)", (2, 2)),
    ("m.select_scatter(v, 0, 0)", "SelectScatterBackward0(leaf, leaf)", (2, 2)),
    (
        "m.slice_scatter(m[:1], 0, 0, 1)",
        "SliceScatterBackward0(leaf, SliceBackward0(leaf))",
        (2, 2),
    ),
    ("m.diagonal_scatter(v)", "DiagonalScatterBackward0(leaf, leaf)", (2, 2)),
]

VALUES: list[tuple[str, Any]] = [
    ("torch.arange(24).reshape(2, 3, 4)[0, :, [1, 2]]", [[1, 2], [5, 6], [9, 10]]),
    ("torch.arange(24).reshape(2, 3, 4)[[0, 1], :, [1, 2]]", [[1, 5, 9], [14, 18, 22]]),
    ("torch.arange(24).reshape(2, 3, 4)[:, [0, 1], [1, 2]]", [[1, 6], [13, 18]]),
    ("torch.arange(24).reshape(2, 3, 4)[None, [0], :, [1]]", [[[1, 5, 9]]]),
    (
        "torch.arange(24).reshape(2, 3, 4)[torch.tensor([[True, False, True], [False, "
        "True, False]]), 0]",
        [0, 8, 16],
    ),
    ("torch.arange(24).reshape(2, 3, 4)[..., -1]", [[3, 7, 11], [15, 19, 23]]),
    ("torch.arange(5)[-3:]", [2, 3, 4]),
    ("torch.unravel_index(torch.tensor([7, -1]), (2, 3))[1]", [1, 2]),
    (
        "torch.tensor([1.0, 2.0, 3.0]).scatter(0, torch.tensor([0, 0, 2]), 2.0, reduce='add')",
        [5.0, 2.0, 5.0],
    ),
    (
        "torch.ones(2).scatter_(0, torch.tensor([1, 1]), torch.full((2,), 3.0), reduce='multiply')",
        [1.0, 9.0],
    ),
    ("torch.arange(5)[10:]", []),
    ("torch.arange(5)[3:1]", []),
    ("m[[0.5, 1.5]]", [[1.0, 2.0], [3.0, 4.0]]),
    ("m.nonzero()", [[0, 0], [0, 1], [1, 0], [1, 1]]),
    ("torch.nonzero(torch.tensor(3.0))", [[]]),
    ("torch.nonzero(m > 1, as_tuple=True)[1]", [1, 0, 1]),
    ("torch.where(m > 2)[0]", [1, 1]),
    ("torch.where(torch.tensor(3.0))[0]", [0]),
    ("m.take(torch.tensor([[0, -1]]))", [[1.0, 4.0]]),
    ("m.gather(1, torch.tensor([[1], [0]]))", [[2.0], [3.0]]),
    ("s.gather(0, torch.tensor(0))", 3.0),
    ("m.take_along_dim(torch.tensor([[-1, 0]]), 0)", [[3.0, 2.0]]),
    ("m.scatter(1, torch.tensor([[0, 0], [1, 1]]), m)", [[2.0, 2.0], [3.0, 4.0]]),
    ("m.scatter_add(1, torch.tensor([[0, 0], [1, 1]]), m)", [[4.0, 2.0], [3.0, 11.0]]),
    (
        'm.scatter_reduce(1, torch.tensor([[0, 0], [1, 1]]), m, "mean")',
        [[1.3333333730697632, 2.0], [3.0, 3.6666667461395264]],
    ),
    (
        'm.scatter_reduce(1, torch.tensor([[0], [1]]), m, "prod", include_self=False)',
        [[1.0, 2.0], [3.0, 3.0]],
    ),
    (
        "torch.tensor([5, 7]).scatter_reduce(0, torch.tensor([0, 0]), "
        'torch.tensor([2, 2]), "mean")',
        [3, 7],
    ),
    ("m.index_select(1, torch.tensor([1, 1, 0]))", [[2.0, 2.0, 1.0], [4.0, 4.0, 3.0]]),
    ("m.index_select(1, torch.tensor(1))", [[2.0], [4.0]]),
    ("m.index_add(0, torch.tensor([0, 0]), m, alpha=10)", [[41.0, 62.0], [3.0, 4.0]]),
    ("m.index_fill(1, torch.tensor([-1]), 0)", [[1.0, 0.0], [3.0, 0.0]]),
    ("m.put(torch.tensor([0, 0]), v, accumulate=True)", [[4.0, 2.0], [3.0, 4.0]]),
    ("m.index_put((torch.tensor([0, 0]),), v, accumulate=True)", [[3.0, 6.0], [3.0, 4.0]]),
    ("v.masked_select(m > 1)", [2.0, 1.0, 2.0]),
    ("v.masked_fill(m > 2, 0)", [[1.0, 2.0], [0.0, 0.0]]),
    ("torch.tensor([1, 2]).masked_fill(torch.tensor([True, False]), 2.5)", [2, 2]),
]

ERRORS: list[tuple[str, str]] = [
    ("m[5]", "IndexError"),
    ("torch.unravel_index(torch.tensor([1.0]), (2, 3))", "TypeError"),
    ("torch.unravel_index(torch.tensor([1]), (2, -3))", "ValueError"),
    ("m.scatter(0, torch.tensor([[0, 1]]), 1.0, reduce='mean')", "RuntimeError"),
    ("m.scatter(0, torch.tensor([[0, 1]]), 1.0, reduce='add').sum().backward()", "RuntimeError"),
    (
        "torch.autograd.grad(torch.cdist(m, m + 1).sum(), m, create_graph=True)[0].sum()"
        ".backward()",
        "NotImplementedError",
    ),
    ("m[-3]", "IndexError"),
    ("m[0, 0, 0]", "IndexError"),
    ("m[1.0]", "IndexError"),
    ('m["a"]', "TypeError"),
    ("m[::-1]", "ValueError"),
    ("m[::0]", "ValueError"),
    ("m[0.5:]", "TypeError"),
    ("m[[0, 5]]", "IndexError"),
    ("m[:, [0, 5]]", "IndexError"),
    ("m[[0, 1], [0, 1, 0]]", "IndexError"),
    ("m[torch.tensor([True, False, True])]", "IndexError"),
    ("m[torch.tensor([1.0])]", "IndexError"),
    ("m[torch.tensor([1], dtype=torch.int8)]", "IndexError"),
    ("s[0]", "IndexError"),
    ("s[:]", "IndexError"),
    ("s[[0]]", "IndexError"),
    ("m.take(torch.tensor([9]))", "IndexError"),
    ("m.take(torch.tensor([0], dtype=torch.int32))", "RuntimeError"),
    ("m.put(torch.tensor([0]), torch.tensor([1]))", "RuntimeError"),
    ("m.put(torch.tensor([0, 1]), torch.tensor([1.0]))", "IndexError"),
    ("m.gather(0, m)", "RuntimeError"),
    ("m.gather(0, torch.tensor([0]))", "RuntimeError"),
    ("m.gather(0, torch.tensor([[5]]))", "RuntimeError"),
    ("m.gather(0, torch.tensor([[-1]]))", "RuntimeError"),
    ("m.gather(0, torch.tensor([[0, 0, 0]]))", "RuntimeError"),
    ("m.scatter(0, torch.tensor([[0, 1]]), m[:, :1])", "RuntimeError"),
    ("m.scatter(0, torch.tensor([[0, 1]]), m.double())", "RuntimeError"),
    ('m.scatter_reduce(0, torch.tensor([[0]]), m, "median")', "RuntimeError"),
    ("m.take_along_dim(torch.tensor([0]), 0)", "RuntimeError"),
    ("m.index_select(0, torch.tensor([9]))", "IndexError"),
    ("m.index_select(0, torch.tensor([-1]))", "IndexError"),
    ("m.index_select(0, torch.tensor([[0]]))", "IndexError"),
    ("m.index_add(0, torch.tensor([5]), m[:1])", "RuntimeError"),
    ("m.index_add(0, torch.tensor([0]), m)", "RuntimeError"),
    ("m.index_add(0, torch.tensor([0]), m[:1].double())", "RuntimeError"),
    ("m.index_copy(0, torch.tensor([-1]), m[:1])", "IndexError"),
    ("m.index_fill(0, torch.tensor([5]), 1.0)", "IndexError"),
    ("m.index_fill(0, torch.tensor([0]), torch.ones(2))", "RuntimeError"),
    ("m.index_put((torch.tensor([0]),), torch.ones(3))", "RuntimeError"),
    ("m.index_put((torch.tensor([0]),), torch.tensor([1]))", "RuntimeError"),
    ("m.masked_fill(m, 1.0)", "RuntimeError"),
    ("m.masked_fill(m > 1, torch.ones(2))", "RuntimeError"),
    ("m.masked_select(m)", "RuntimeError"),
    ("m.masked_scatter(m > 1, torch.ones(1))", "RuntimeError"),
    ("m.select_scatter(m, 0, 0)", "RuntimeError"),
    ("torch.zeros(3)[5] = 1", "IndexError"),
    ("torch.zeros(3)[[5]] = 1", "IndexError"),
    ("torch.zeros(3)[::-1] = 1", "ValueError"),
    ("torch.zeros(3)[0] = v", "RuntimeError"),
    ("torch.zeros(3)[0:2] = torch.ones(2, 1)", "RuntimeError"),
    ("torch.zeros(3)[0] = [1]", "TypeError"),
    ('torch.zeros(3)[0] = "a"', "TypeError"),
    ("torch.zeros(3)[0] = 1 + 2j", "RuntimeError"),
    ("torch.zeros(3)[[0, 1]] = torch.tensor([1, 2])", "RuntimeError"),
    ("torch.zeros(3)[[0, 1]] = v.double()", "RuntimeError"),
    ("torch.zeros(3)[torch.tensor([True, False, True])] = torch.ones(3)", "RuntimeError"),
    ("m[0] = 1.0", "RuntimeError"),
    ("m[[0]] = 1.0", "RuntimeError"),
]

# The statement; then the values of y, its graph and its version.
ASSIGNMENTS: list[tuple[str, str]] = [
    ("y[0] = 5.0", "[[5.0, 5.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), None) 1"),
    ("y[0, 1] = s", "[[1.0, 3.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), leaf) 1"),
    ("y[:, 1] = v", "[[1.0, 1.0], [3.0, 2.0]] CopySlices(MulBackward0(leaf, None), leaf) 1"),
    (
        "y[...] = v",
        "[[1.0, 2.0], [1.0, 2.0]] CopyBackwards(MulBackward0(leaf, None), "
        "ExpandBackward0(ViewBackward0(leaf))) 1",
    ),
    ("y[:] = 2.0", "[[2.0, 2.0], [2.0, 2.0]] FillBackward3(MulBackward0(leaf, None), None) 1"),
    ("y[()] = 2.0", "[[2.0, 2.0], [2.0, 2.0]] FillBackward3(MulBackward0(leaf, None), None) 1"),
    ("y[None] = 2.0", "[[2.0, 2.0], [2.0, 2.0]] CopySlices(MulBackward0(leaf, None), None) 1"),
    (
        "y[0:1, 1] = v[:1]",
        "[[1.0, 1.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), SliceBackward0(leaf)) 1",
    ),
    (
        "y[0] = torch.ones(2)",
        "[[1.0, 1.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), None) 1",
    ),
    ("y[0][1] = 2.0", "[[1.0, 2.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), None) 1"),
    (
        "y[torch.tensor(0)] = v",
        "[[1.0, 2.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), leaf) 1",
    ),
    ("y[True] = 1.0", "[[1.0, 1.0], [1.0, 1.0]] CopySlices(MulBackward0(leaf, None), None) 1"),
    ("y[False] = 1.0", "[[1.0, 2.0], [3.0, 4.0]] MulBackward0(leaf, None) 0"),
    ("y[[0, 1], 1] = v", "[[1.0, 1.0], [3.0, 2.0]] CopySlices(MulBackward0(leaf, None), leaf) 1"),
    (
        "y[0, [1]] = v[:1]",
        "[[1.0, 1.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), "
        "ViewBackward0(SliceBackward0(leaf))) 1",
    ),
    (
        "y[y > 1] = s",
        "[[1.0, 3.0], [3.0, 3.0]] IndexPutBackward0(MulBackward0(leaf, None), leaf) 1",
    ),
    (
        "y[y > 1] = 0.0",
        "[[1.0, 0.0], [0.0, 0.0]] IndexPutBackward0(MulBackward0(leaf, None), None) 1",
    ),
    (
        "y[y > 100] = s",
        "[[1.0, 2.0], [3.0, 4.0]] IndexPutBackward0(MulBackward0(leaf, None), leaf) 1",
    ),
    (
        "y[[1, 1]] = m",
        "[[1.0, 2.0], [3.0, 4.0]] IndexPutBackward0(MulBackward0(leaf, None), leaf) 1",
    ),
    (
        "y[0] = y[1]",
        "[[3.0, 4.0], [3.0, 4.0]] CopySlices(MulBackward0(leaf, None), "
        "SelectBackward0(MulBackward0(leaf, None))) 1",
    ),
    (
        "y[0] += v",
        "[[2.0, 4.0], [3.0, 4.0]] CopySlices(CopySlices(MulBackward0(leaf, None), "
        "leaf), AsStridedBackward0(CopySlices(MulBackward0(leaf, None), leaf))) 2",
    ),
    (
        "y[y > 2] *= 2",
        "[[1.0, 2.0], [6.0, 8.0]] IndexPutBackward0(MulBackward0(leaf, None), "
        "MulBackward0(IndexBackward0(MulBackward0(leaf, None)), None)) 1",
    ),
    ("y[-1:, [0]] = 7.0", "[[1.0, 2.0], [7.0, 4.0]] CopySlices(MulBackward0(leaf, None), None) 1"),
]

PROGRAMS: list[tuple[str, str]] = [
    (
        """z = torch.zeros(2)
z[0] = s
print(z, graph(z), z.requires_grad, z.is_leaf)
z.sum().backward()
print(s.grad)""",
        """tensor([3., 0.], grad_fn=<CopySlices>) CopySlices(None, leaf) True False
tensor(1.)""",
    ),
    (
        """z = torch.tensor([1, 2, 3])
z[0] = 2.7
z[1] = torch.tensor(3.7)
z[z == 3] = torch.tensor(9.5)
z[1:] = torch.tensor([4.9, 5.9])
print(z)
z[0] = s
print(z)""",
        """tensor([2, 4, 5])
tensor([3, 4, 5])""",
    ),
    (
        """y = torch.zeros(3)
w = torch.tensor([5.0, 7.0], requires_grad=True)
y[torch.tensor([1, 1])] = w
print(y)
y.sum().backward()
print(w.grad)
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
x[torch.tensor([0, 0, 2])].sum().backward()
print(x.grad)""",
        """tensor([0., 7., 0.], grad_fn=<IndexPutBackward0>)
tensor([1., 1.])
tensor([2., 0., 1.])""",
    ),
    (
        """x = torch.ones(1).expand(3)
x.index_fill_(0, torch.tensor([0]), 2.0)
print(x)
x.index_put_((torch.tensor([1]),), torch.tensor(0.5), accumulate=True)
print(x)
x.masked_fill_(torch.tensor([False, True, False]), 7.0)
print(x)""",
        """tensor([2., 2., 2.])
tensor([2.5000, 2.5000, 2.5000])
tensor([7., 7., 7.])""",
    ),
    (
        """# the windows of a vector share their elements
x = torch.arange(6.0).as_strided((3, 3), (1, 1))
x.index_fill_(1, torch.tensor([1]), 9.0)
print(x.tolist())
x.index_put_((torch.tensor([1, 1]),), torch.tensor(2.0), accumulate=True)
print(x.tolist())""",
        """[[0.0, 9.0, 9.0], [9.0, 9.0, 9.0], [9.0, 9.0, 4.0]]
[[0.0, 13.0, 13.0], [13.0, 13.0, 13.0], [13.0, 13.0, 4.0]]""",
    ),
    (
        """x = torch.arange(6) > 2
x[x] = False
x.masked_fill_(x, True)
print(x)""",
        "tensor([False, False, False, False, False, False])",
    ),
]


test_graph = graphs_and_shapes(GRAPHS)
test_values = lists(VALUES)
test_errors = raises(ERRORS)


@pytest.mark.parametrize(("statement", "expected"), ASSIGNMENTS)
def test_assignment(statement: str, expected: str) -> None:
    program = f"y = m * 1\n{statement}\nprint(y.tolist(), graph(y), y._version)"
    assert printed(program) == expected


@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_program(program: str, expected: str) -> None:
    assert printed(program) == expected


def test_an_index_may_change_after_it_was_used_unless_it_is_a_tensor() -> None:
    program = """i = {index}
y = v[i] * v[i]
i[0] = 1
y.sum().backward()
print(v.grad)"""
    assert printed(program.format(index="[0, 1]")) == "tensor([2., 4.])"
    assert raised(program.format(index="torch.tensor([0, 1])")) == "RuntimeError"
