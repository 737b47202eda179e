"""In-place changes, views and versions: programs whose output was recorded from PyTorch."""

from __future__ import annotations

import pytest

from tests.recorded import printed

PROGRAMS: list[tuple[str, str]] = [
    (
        """# a view is written: the base gets CopySlices, the view AsStrided
y = m * 2
z = y[0]
print(graph(z))
z.mul_(3)
print(graph(y))
print(graph(z))
print(y._version, z._version, z._base is y)
y.sum().backward()
print(m.grad)""",
        """SelectBackward0(MulBackward0(leaf, None))
CopySlices(MulBackward0(leaf, None), None)
AsStridedBackward0(CopySlices(MulBackward0(leaf, None), None))
1 1 True
tensor([[6., 6.],
        [2., 2.]])""",
    ),
    (
        """# the base is written: the view follows
y = m * 1
z = y[0]
y.mul_(2)
print(graph(z))
print(z)
z.sum().backward()
print(m.grad)""",
        """AsStridedBackward0(MulBackward0(MulBackward0(leaf, None), None))
tensor([2., 4.], grad_fn=<AsStridedBackward0>)
tensor([[2., 2.],
        [0., 0.]])""",
    ),
    (
        """# a view of a view shows the same base
y = m * 1
z = y.t()[0]
w = z[1:]
w.mul_(v[1:])
print(z._base is y, w._base is y)
print(graph(y), graph(z) == graph(w))
(y * y).sum().backward()
print(m.grad, v.grad)""",
        """True True
CopySlices(MulBackward0(leaf, None), SliceBackward0(leaf)) True
tensor([[ 2.,  4.],
        [24.,  8.]]) tensor([ 0., 36.])""",
    ),
    (
        """# what was computed from a view before keeps its history
y = m * 1
z = y[0]
before = z * 2
z.mul_(3)
print(graph(before))
(before.sum() + y.sum()).backward()
print(m.grad)""",
        """MulBackward0(SelectBackward0(MulBackward0(leaf, None)), None)
tensor([[5., 5.],
        [1., 1.]])""",
    ),
    (
        """# both slots of y.mul_(y) lead to the old history
y = v * 2
k = y
y += 1
y.mul_(y)
print(k is y, y._version, graph(y))""",
        "True 2 MulBackward0(AddBackward0(MulBackward0(leaf, None), None), "
        "AddBackward0(MulBackward0(leaf, None), None))",
    ),
    (
        """# a view written with itself
y = m * 1
z = y.view(4)
z.mul_(z)
print(graph(y))
try:
    y.sum().backward()
except RuntimeError:
    print("saved and changed")""",
        """CopySlices(MulBackward0(leaf, None), ViewBackward0(MulBackward0(leaf, None)))
saved and changed""",
    ),
    (
        """# zeros become part of the graph through a view
z = torch.zeros(2, 2)
a = z[0]
b = z[1]
a.add_(v)
print(z.requires_grad, a.is_leaf, graph(z), graph(b))
(z * z).sum().backward()
print(v.grad)""",
        """True False CopySlices(None, leaf) AsStridedBackward0(CopySlices(None, leaf))
tensor([2., 4.])""",
    ),
    (
        """# what is saved is checked
y = m * 1
e = y[0].exp()
y[0] = 1.0
e.sum().backward()
print(m.grad)
y = m * 1
p = y[0] * y[1]
y[0] = 1.0
try:
    p.sum().backward()
except RuntimeError:
    print("changed")
y = m.exp()
y[0] = 1.0
try:
    y.sum().backward()
except RuntimeError:
    print("changed")""",
        """tensor([[2.7183, 7.3891],
        [0.0000, 0.0000]])
changed
changed""",
    ),
    (
        """# leaves
for change in (lambda: m.add_(1), lambda: m[0].add_(1), lambda: m.view(4).add_(1)):
    try:
        change()
    except RuntimeError:
        print("refused")
with torch.no_grad():
    m.add_(1)
    m[0] = 0.0
print(m, m.is_leaf, m._version)""",
        """refused
refused
refused
tensor([[0., 0.],
        [4., 5.]], requires_grad=True) True 2""",
    ),
    (
        """# detach shares memory and version, data only memory
y = v * 1
p = y * y
d = y.detach()
d[0] = 9.0
print(y, d.requires_grad, y._version)
try:
    p.sum().backward()
except RuntimeError:
    print("changed")
y = v * 1
p = y * y
y.data[0] = 9.0
p.sum().backward()
print(y._version, v.grad)""",
        """tensor([9., 2.], grad_fn=<MulBackward0>) False 1
changed
0 tensor([18.,  4.])""",
    ),
    (
        """# several views at once cannot be written
y = m * 1
for change in (
    lambda: y.unbind()[0].mul_(2),
    lambda: y.chunk(2)[0].mul_(2),
    lambda: y.split([1, 1])[0].mul_(2),
    lambda: list(y)[0].mul_(2),
    lambda: y.unbind()[0][0:1].mul_(2),
):
    try:
        change()
    except RuntimeError:
        print("refused")
print(y.tensor_split(2)[0].mul_(2))
z = torch.zeros(2, 2)
a, b = z.unbind()
a.add_(1)
print(z)
try:
    a.add_(v)
except RuntimeError:
    print("refused")""",
        """refused
refused
refused
refused
refused
tensor([[2., 4.]], grad_fn=<AsStridedBackward0>)
tensor([[1., 1.],
        [0., 0.]])
refused""",
    ),
    (
        """# nor followed when their base is written
y = m * 1
a, b = y.split(1)
y.mul_(2)
print(a)
try:
    a * 2
except RuntimeError:
    print("refused")""",
        """tensor([[2., 4.]], grad_fn=<Invalid>)
refused""",
    ),
    (
        """# views made under no_grad
y = m * 1
with torch.no_grad():
    z = y[0]
print(z.requires_grad, z.is_leaf, z._base is y)
try:
    z.mul_(2)
except RuntimeError:
    print("refused")
with torch.no_grad():
    z.mul_(2)
print(y, z)
try:
    z * 1
except RuntimeError:
    print("refused")""",
        """True True True
refused
tensor([[2., 4.],
        [3., 4.]], grad_fn=<MulBackward0>) tensor([2., 4.], grad_fn=<Invalid>)
refused""",
    ),
    (
        """# a view of a leaf after the leaf was changed under no_grad
z = m[0]
with torch.no_grad():
    m.mul_(2)
print(z, graph(z))""",
        "tensor([2., 4.], grad_fn=<AsStridedBackward0>) AsStridedBackward0(leaf)",
    ),
    (
        """# an expanded tensor shares its memory
y = v * 1
for change in (lambda: y.expand(2, 2).add_(1), lambda: y.unfold(0, 1, 1).add_(1)):
    try:
        print(change().tolist())
    except RuntimeError:
        print("refused")
print(y.expand(1, 2).add_(1), y)""",
        """refused
[[2.0], [3.0]]
tensor([[3., 4.]], grad_fn=<AsStridedBackward0>) tensor([3., 4.], grad_fn=<CopySlices>)""",
    ),
    (
        """# in-place forms that change the layout
y = m * 1
z = y.view(4)
y.t_()
print(y, graph(y))
print(z)
print(graph(z))
y.unsqueeze_(0)
y.squeeze_()
y.transpose_(0, 1)
print(graph(y))
y.sum().backward()
print(m.grad, y._version)""",
        """tensor([[1., 3.],
        [2., 4.]], grad_fn=<TBackward1>) TBackward1(MulBackward0(leaf, None))
tensor([1., 2., 3., 4.], grad_fn=<AsStridedBackward0>)
AsStridedBackward0(TBackward1(MulBackward0(leaf, None)))
TransposeBackward1(SqueezeBackward3(UnsqueezeBackward1(TBackward1(MulBackward0(leaf, None)))))
tensor([[1., 1.],
        [1., 1.]]) 4""",
    ),
    (
        """# the other writers through a view
w = torch.tensor([5.0, 6.0], requires_grad=True)
y = m * 1
y[0].copy_(w)
y[1].fill_(w[0])
y.t()[0].index_add_(0, torch.tensor([1, 1]), w)
y[0].masked_fill_(y[0] > 5, s)
y.diagonal().zero_()
print(y)
(y * y).sum().backward()
print(m.grad, w.grad, s.grad)""",
        """tensor([[ 0.,  3.],
        [16.,  0.]], grad_fn=<CopySlices>)
tensor([[0., 0.],
        [0., 0.]]) tensor([64., 32.]) tensor(6.)""",
    ),
    (
        """# whole rows in a loop
rows = torch.zeros(3, 2)
for i in range(3):
    rows[i] = v * i
print(rows)
(rows * rows).sum().backward()
print(v.grad)""",
        """tensor([[0., 0.],
        [1., 2.],
        [2., 4.]], grad_fn=<CopySlices>)
tensor([10., 20.])""",
    ),
    (
        """# a retained gradient follows the tensor, not the node
y = m * 1
y.retain_grad()
y[0] *= 2
y.sum().backward()
print(y.grad, m.grad)""",
        """tensor([[1., 1.],
        [1., 1.]]) tensor([[2., 2.],
        [1., 1.]])""",
    ),
    (
        """# a second derivative through a write to a view
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 1
y[:2].exp_()
(g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x)
print(g, h)""",
        "tensor([ 14.7781, 109.1963,   6.0000], grad_fn=<MulBackward0>) tensor([ "
        "29.5562, 218.3926,   2.0000])",
    ),
    (
        """# reshape and contiguous share memory where they can
y = m * 1
y.reshape(4)[0] = 7.0
y.t().reshape(4)[0] = 8.0
y.contiguous()[0, 1] = 9.0
y.flatten()[3] = 6.0
print(y)""",
        """tensor([[7., 9.],
        [3., 6.]], grad_fn=<CopySlices>)""",
    ),
    (
        """x = torch.ones(3) * v.sum()
F.alpha_dropout(x, 0.5, True, True)
print(graph(x))
x.sum().backward()
print(v.grad)""",
        """AddBackward0(MulBackward0(MulBackward0(None, SumBackward0(leaf)), None), None)
tensor([0.8864, 0.8864])""",
    ),
    (
        """x = torch.ones(2, 3) * v.sum()
part = x[0]
F.alpha_dropout(part, 0.5, True, True)
print(graph(x))
x.sum().backward()
print(v.grad)""",
        """CopySlices(CopySlices(MulBackward0(None, SumBackward0(leaf)), None), None)
tensor([3.8864, 3.8864])""",
    ),
    (
        """w = torch.ones(3, requires_grad=True)
try:
    F.dropout(w, 0.5, True, True)
except RuntimeError as error:
    print(error, torch.rand(1))""",
        (
            "a leaf Variable that requires grad is being used in an in-place operation."
            " tensor([0.4901])"
        ),
    ),
    (
        """x = torch.ones(3, dtype=torch.int64)
try:
    F.dropout(x, 0.5)
except RuntimeError as error:
    print(error, torch.rand(1))""",
        "result type Float can't be cast to the desired output type Long tensor([0.4901])",
    ),
]


@pytest.mark.parametrize(
    ("program", "expected"), PROGRAMS, ids=[program[2:].split("\n")[0] for program, _ in PROGRAMS]
)
def test_program(program: str, expected: str) -> None:
    assert printed(program) == expected


def test_backward_twice_through_a_written_view_needs_the_graph_kept() -> None:
    program = """y = m * 1
y[0] = v
total = y.sum()
total.backward(retain_graph=True)
total.backward()
try:
    total.backward()
except RuntimeError:
    print(m.grad.tolist(), v.grad.tolist())"""
    assert printed(program) == "[[0.0, 0.0], [2.0, 2.0]] [2.0, 2.0]"
