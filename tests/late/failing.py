"""Operations that can fail, by the values they are given or by their shapes and dtypes: one bad
operand among good ones, after every kind of effect that an iteration may have had by then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.late.loop import LATE, ROUNDS, Late


class Failing(NamedTuple):
    """An expression in `v`, which fails, or gives something unusual, where `v` is bad.

    Attributes:
        kind: what it gives: a "tensor", a "pair" of tensors, a "number", or "other".
        before: what stands ahead of the loop.
    """

    expression: str
    good: str
    bad: str
    kind: str = "tensor"
    before: str = ""


def _rows(kind: str, before: str, *rows: tuple[str, str, str]) -> list[Failing]:
    return [Failing(*row, kind, before) for row in rows]


_DIVISION = [
    Failing(expression.replace("{}", divisor), good, bad)
    for expression in ("a // {}", "a % {}", "torch.remainder(a, {})", "torch.fmod(a, {})",
                       "torch.div(a, {}, rounding_mode='floor')", "torch.floor_divide(a, {})",
                       "torch.div(a, {}, rounding_mode='trunc')", "torch.gcd(a, {})",
                       "a.remainder({})", "100 // {}", "7 % {}")
    for divisor, good, bad in (("v", "torch.tensor([2, 3])", "torch.tensor([2, 0])"),
                               ("v", "torch.tensor(3)", "torch.tensor(0)"), ("v", "3", "0"))
    if not (good == "3" and ("gcd" in expression or expression[0].isdigit()))
]  # fmt: skip

_PYTHON = _rows(
    "number", "import math\nitems = [1., 2., 3.]\ntable = {1: 10., 2: 20.}\nword = 'abc'\n",
    ("10 // v", "3", "0"), ("10 % v", "3", "0"), ("10 / v", "3.0", "0.0"), ("10. % v", "3.", "0."),
    ("divmod(7, v)[0]", "2", "0"), ("2 ** v", "3", "-1"), ("0. ** v", "2", "-1"),
    ("math.sqrt(v)", "4.0", "-1.0"), ("math.log(v)", "2.0", "0.0"), ("math.log(v)", "2.0", "-1."),
    ("math.exp(v)", "2.0", "1000.0"), ("math.acos(v)", "0.5", "1.5"), ("math.pow(v, 0.5)", "2.", "-2."),
    ("math.factorial(v)", "3", "-1"), ("math.comb(5, v)", "2", "-2"), ("math.gamma(v)", "2.", "0."),
    ("math.fmod(3., v)", "2.", "0."), ("math.floor(v)", "2.5", "math.inf"), ("math.ceil(v)", "2.5", "math.nan"),
    ("int(v)", "2.5", "float('nan')"), ("int(v)", "2.5", "float('inf')"), ("round(v)", "2.5", "float('inf')"),
    ("int(v)", "'12'", "'x'"), ("float(v)", "'1.5'", "'one'"), ("items[v]", "1", "3"), ("items[v]", "-1", "-4"),
    ("table[v]", "1", "3"), ("word.index(v)", "'b'", "'z'"), ("items.index(v)", "2.", "5."), ("ord(v)", "'a'", "'ab'"),
    ("len(chr(v))", "65", "-1"), ("max(v)", "[1, 2]", "[]"), ("min(v)", "(2, 1)", "()"), ("sum(v)", "[1, 2]", "[1, 'a']"),
    ("1 << v", "3", "-1"), ("next(iter(v))", "[4]", "[]"), ("len(v)", "[1]", "5"), ("v + 1", "2", "'a'"),
    ("abs(v)", "-2", "'a'"), ("len('%d' % v)", "3", "'a'"), ("len(f'{v:.2f}')", "1.5", "'a'"), ("v.pop()", "[1][:]", "[]"),
    ("(v > 1) + 0", "2", "'a'"), ("v.real", "2", "None"), ("int.from_bytes(v)", "b'a'", "3"), ("[1, 2].pop(v)", "0", "5"),
    ("{1: 2}.pop(v)", "1", "2"), ("[3].index(v)", "3", "4"), ("len(range(0, 9, v))", "2", "0"), ("len(items[::v])", "1", "0"),
    ("items[v]", "1", "1.0"), ("math.isqrt(v)", "4", "-1"), ("math.log2(v)", "4", "0"), ("math.gcd(v, 4)", "2", "2.5"),
    ("(lambda a: a)(*v)", "(1,)", "(1, 2)"), ("dict(v)[1]", "[(1, 2)]", "[(1, 2, 3)]"), ("sorted(v)[0]", "[2, 1]", "[1, 'a']"),
)  # fmt: skip

_MATRICES = [
    Failing(expression, good, bad, kind)
    for expression, kind, singular in (
        ("torch.linalg.inv(v)", "tensor", True), ("torch.inverse(v)", "tensor", True),
        ("torch.linalg.solve(v, torch.ones(2))", "tensor", True),
        ("torch.linalg.solve(v, torch.ones(2, 3))", "tensor", True),
        ("torch.linalg.cholesky(v)", "tensor", False), ("torch.cholesky_inverse(v)", "tensor", True),
        ("torch.linalg.lu_factor(v)", "pair", True), ("torch.linalg.lu(v)", "pair", True),
        ("torch.linalg.inv_ex(v)", "pair", True), ("torch.linalg.cholesky_ex(v)", "pair", False),
        ("torch.linalg.det(v)", "tensor", True), ("torch.linalg.slogdet(v)", "pair", True),
        ("torch.logdet(v)", "tensor", False), ("torch.linalg.eigh(v)", "pair", False),
        ("torch.linalg.svd(v)", "pair", True), ("torch.linalg.qr(v)", "pair", True),
        ("torch.linalg.pinv(v)", "tensor", True), ("torch.linalg.matrix_power(v, -1)", "tensor", True),
        ("torch.linalg.lstsq(v, torch.ones(2, 1))", "pair", True), ("torch.linalg.tensorinv(v, ind=1)", "tensor", True),
        ("torch.linalg.matrix_rank(v)", "tensor", True), ("torch.linalg.cond(v)", "tensor", True),
        ("torch.linalg.solve_triangular(v, torch.ones(2, 1), upper=True)", "tensor", True),
    )
    for good, bad in (
        ("torch.tensor([[2., 1.], [1., 3.]])",
         "torch.tensor([[1., 2.], [2., 4.]])" if singular else "torch.tensor([[1., 2.], [2., -3.]])"),
        ("torch.tensor([[2., 1.], [1., 3.]])", "torch.full((2, 2), float('nan'))"),
    )
]  # fmt: skip

_INDICES = _rows(
    "tensor", "table = torch.tensor([[1., 2.], [3., 4.], [5., 6.]])\nrow = torch.tensor([1., 2., 3.])\n",
    ("row[v]", "1", "3"), ("row[v]", "torch.tensor(1)", "torch.tensor(5)"), ("row[v]", "torch.tensor([0, 2])", "torch.tensor([0, 3])"),
    ("row[v]", "-1", "-4"), ("table[v]", "(1, 0)", "(1, 2)"), ("table[:, v]", "1", "2"), ("row[v:]", "1", "9"), ("row[:v]", "2", "0"),
    ("row[v]", "torch.tensor([True, False, True])", "torch.tensor([True, False])"), ("row[::v]", "1", "0"),
    ("row[v]", "[0, 1]", "[0, 7]"), ("table[v, v]", "1", "2"), ("table[v]", "torch.tensor([1])", "torch.tensor([1.5])"),
    ("torch.take(table, v)", "torch.tensor([0, 5])", "torch.tensor([0, 6])"), ("table.select(0, v)", "1", "3"),
    ("table.select(v, 0)", "1", "2"), ("row.narrow(0, v, 2)", "1", "2"), ("row.narrow(0, 0, v)", "2", "4"),
    ("table.index_select(0, v)", "torch.tensor([0, 2])", "torch.tensor([0, 3])"),
    ("table.gather(1, v)", "torch.tensor([[0], [1]])", "torch.tensor([[0], [2]])"),
    ("table.scatter(1, v, 7.)", "torch.tensor([[0], [1]])", "torch.tensor([[0], [2]])"),
    ("table.scatter_add(1, v, torch.ones(2, 1))", "torch.tensor([[0], [1]])", "torch.tensor([[0], [-1]])"),
    ("table.clone().put_(v, torch.ones(1))", "torch.tensor([4])", "torch.tensor([6])"),
    ("table.index_add(0, v, torch.ones(1, 2))", "torch.tensor([1])", "torch.tensor([3])"),
    ("table.index_fill(0, v, 1.)", "torch.tensor([1])", "torch.tensor([3])"),
    ("table.index_copy(0, v, torch.ones(1, 2))", "torch.tensor([1])", "torch.tensor([3])"),
    ("torch.take_along_dim(table, v, 1)", "torch.tensor([[0]])", "torch.tensor([[4]])"),
    ("F.embedding(v, table)", "torch.tensor([0, 2])", "torch.tensor([0, 3])"), ("F.one_hot(v, 3)", "torch.tensor([2])", "torch.tensor([3])"),
    ("F.one_hot(v)", "torch.tensor([2])", "torch.tensor([-1])"), ("F.one_hot(v)", "torch.tensor([2])", "torch.tensor([4])"),
    ("F.cross_entropy(table, v)", "torch.tensor([0, 1, 1])", "torch.tensor([0, 2, 1])"),
    ("F.cross_entropy(table, v)", "torch.tensor([0, 1, 1])", "torch.tensor([0, -1, 1])"),
    ("F.cross_entropy(table, v)", "torch.tensor([0, 1, 1])", "torch.tensor([0, -100, 1])"),
    ("F.nll_loss(table, v)", "torch.tensor([0, 1, 1])", "torch.tensor([0, 2, 1])"),
    ("F.nll_loss(table, v, reduction='none')", "torch.tensor([0, 1, 1])", "torch.tensor([-1, 0, 1])"),
    ("F.multi_margin_loss(table, v)", "torch.tensor([0, 1, 1])", "torch.tensor([0, 2, 1])"),
    ("F.embedding_bag(v, table, torch.tensor([0]))", "torch.tensor([0, 2])", "torch.tensor([0, 3])"),
    ("F.binary_cross_entropy(v, torch.ones(2))", "torch.tensor([0.5, 0.2])", "torch.tensor([0.5, 1.2])"),
    ("torch.bincount(v)", "torch.tensor([1, 2])", "torch.tensor([1, -2])"), ("torch.bincount(v)", "torch.tensor([1, 2])", "torch.tensor([1, 5])"),
    ("table.roll(1, v)", "1", "2"), ("table.transpose(0, v)", "1", "2"), ("table.unbind(v)[0]", "1", "2"),
    ("table.put(v, torch.ones(1))", "torch.tensor([4])", "torch.tensor([-7])"),
    ("row.masked_scatter(row > 1, v)", "torch.ones(2)", "torch.ones(1)"), ("table.diagonal(v)", "0", "9"),
)  # fmt: skip

_DRAWS = _rows(
    "tensor", "half = torch.full((3,), 0.5)\n",
    ("torch.bernoulli(half * v)", "1.0", "4.0"), ("torch.bernoulli(half, v)", "0.5", "1.5"), ("half.clone().bernoulli_(v)", "0.5", "-0.5"),
    ("torch.multinomial(half * v, 2)", "1.0", "-1.0"), ("torch.multinomial(half * v, 2)", "1.0", "0.0"), ("torch.multinomial(half, v)", "2", "4"),
    ("torch.binomial(half * 4, half * v)", "1.0", "3.0"), ("F.dropout(half, v)", "0.5", "1.5"), ("F.dropout(half, v)", "0.0", "0.5"),
    ("F.dropout(half, v)", "0.5", "1.0"), ("F.dropout(half, v)", "0.5", "0.0"), ("F.alpha_dropout(half, v)", "0.5", "-0.5"),
    ("F.dropout(half, 0.5, v)", "True", "False"), ("torch.randint(0, v, (2,))", "4", "0"), ("torch.randint(v, 4, (2,))", "0", "4"),
    ("torch.randint(0, 4, (v,))", "2", "-1"), ("torch.randint(0, v, (2,))", "4", "2 ** 40"), ("torch.randperm(v)", "3", "-1"),
    ("torch.randperm(v)", "3", "5"), ("torch.rand(v)", "2", "-1"), ("torch.randn(v)", "2", "5"), ("torch.normal(half, half * v)", "1.0", "-1.0"),
    ("torch.normal(0., v, (2,))", "1.0", "-1.0"), ("half.clone().uniform_(0., v)", "1.0", "-1.0"), ("half.clone().normal_(0., v)", "1.0", "-1.0"),
    ("half.clone().exponential_(v)", "1.0", "-1.0"), ("half.clone().geometric_(v)", "0.5", "1.5"), ("torch.poisson(half * v)", "1.0", "-1.0"),
    ("half.clone().random_(v)", "4", "0"), ("half.clone().cauchy_(0., v)", "1.0", "-1.0"), ("half.clone().log_normal_(0., v)", "1.", "-1."),
    ("torch.distributions.Normal(half, half * v).sample()", "1.0", "-1.0"), ("F.gumbel_softmax(half, v)", "1.0", "0.0"),
    ("torch.distributions.Bernoulli(half * v).sample()", "1.0", "3.0"), ("F.rrelu(half, v, 0.5, True)", "0.1", "0.7"),
    ("torch.distributions.Categorical(half * v).sample()", "1.0", "-1.0"), ("nn.init.trunc_normal_(half.clone(), 0., v)", "1.0", "0.0"),
)  # fmt: skip

_SIZES = _rows(
    "tensor", "six = torch.arange(6.)\n",
    ("six.view(v, 2)", "3", "4"), ("six.view(v)", "(2, 3)", "(2, 4)"), ("six.reshape(v, -1)", "2", "4"), ("six.reshape(v)", "-1", "-2"),
    ("six.view(-1, v)", "2", "0"), ("six.unflatten(0, v)", "(2, 3)", "(2, 2)"), ("six.clamp(v, 3)", "1", "5"), ("six.clamp(v)", "1", "None"),
    ("torch.histc(six, v)", "3", "0"), ("torch.histc(six, 3, v, 4)", "0", "5"), ("six.repeat_interleave(v)", "2", "-1"),
    ("six.repeat_interleave(v)", "torch.tensor([1, 0, 2, 1, 1, 1])", "torch.tensor([1, -1, 2, 1, 1, 1])"),
    ("six.repeat_interleave(v)", "torch.tensor([1, 0, 2, 1, 1, 1])", "torch.tensor([1, 3, 2, 1, 1, 1])"), ("six.repeat(v)", "2", "-1"),
    ("torch.arange(v)", "3", "-1"), ("torch.arange(0, 3, v)", "1", "0"), ("torch.arange(v)", "3", "5"), ("torch.arange(v)", "3", "3.5"),
    ("torch.linspace(0, 1, v)", "3", "-1"), ("torch.linspace(0, 1, v)", "3", "4"), ("torch.linspace(0, v, 3)", "1", "2.5"), ("torch.eye(v)", "2", "-1"),
    ("torch.full((2,), v)", "1.5", "3"), ("torch.full((v,), 1.)", "2", "-2"), ("torch.zeros(v)", "2", "-1"), ("torch.ones(v, 2)", "2", "3"),
    ("torch.unique(v)", "torch.tensor([1, 2])", "torch.tensor([2, 2])"), ("torch.nonzero(v)", "torch.tensor([1, 0])", "torch.tensor([1, 1])"),
    ("six[six > v]", "3", "1"), ("torch.masked_select(six, six > v)", "3", "9"), ("torch.combinations(torch.arange(3), v)", "2", "-1"),
    ("six.expand(v, 6)", "2", "-3"), ("six.unsqueeze(v)", "0", "3"), ("six.squeeze(v)", "0", "3"), ("six.sum(v)", "0", "1"), ("six.split(v)[0]", "2", "0"),
    ("six.chunk(v)[0]", "2", "0"), ("six.unfold(0, v, 1)", "2", "9"), ("six.topk(v).values", "2", "7"), ("six.kthvalue(v).values", "2", "7"),
    ("six.quantile(v)", "0.5", "1.5"), ("six.softmax(v)", "0", "1"), ("six.cumsum(v)", "0", "1"), ("six.sort(v).values", "0", "1"),
    ("F.pad(six, (v, 1))", "1", "-8"), ("F.interpolate(six[None, None], v)", "3", "0"), ("six.roll(v)", "1", "2"), ("F.max_pool1d(six[None], v)", "2", "7"),
    ("F.avg_pool1d(six[None], v)", "2", "0"), ("F.conv1d(six[None, None], torch.ones(1, 1, 2), stride=v)", "1", "0"),
    ("F.conv1d(six[None, None], torch.ones(1, 1, 2), padding=v)", "0", "-1"), ("torch.tril(six.view(2, 3), v)", "0", "1"), ("six.diff(v)", "1", "-1"),
    ("F.leaky_relu(six, v)", "0.1", "-0.5"), ("F.threshold(six, v, 0.)", "1.0", "2.0"), ("six.logspace if v else six", "0", "0"),
    ("torch.logspace(0, 1, v)", "3", "-1"), ("torch.tensor(v)", "[1., 2.]", "[[1.], [2., 3.]]"), ("torch.tensor(v)", "1.5", "'a'"),
    ("torch.as_strided(six, (2,), (v,))", "1", "9"), ("six.unbind(0)[v]", "1", "9"), ("six.tile(v)", "2", "-2"), ("torch.hann_window(v)", "3", "-1"),
    ("torch.tensor([1]) + v", "1", "2 ** 63"), ("torch.tensor([1]) + v", "1", "2 ** 62"), ("torch.tensor([1]) + 2 ** v", "3", "-1"),
    ("torch.tensor([1]) ** v", "2", "-1"), ("torch.tensor([1], dtype=torch.int32) + v", "1", "2 ** 31"), ("six * v", "2", "2j"), ("six * v", "2.0", "1e300"),
    ("torch.tensor([1], dtype=torch.uint8) + v", "1", "300"), ("six + v", "True", "2 ** 100"), ("torch.where(six > 1, six, v)", "1", "2.5"),
    ("torch.einsum('i,j->ij' if v else 'i,j->k', six, six)", "1", "0"), ("F.gelu(six, approximate=v)", "'none'", "'other'"), ("six.norm(v)", "2", "'no'"),
    ("F.mse_loss(six, six * 2, reduction=v)", "'mean'", "'all'"), ("F.glu(six, v)", "0", "1"), ("six.prod(v)", "0", "2"), ("six.to(v)", "torch.float64", "'gone'"),
    ("six.std(correction=v)", "1", "6"), ("torch.tensor([2, 3]) << v", "1", "-1"), ("torch.tensor([2, 3]) // v", "2", "0"), ("six / v", "2", "0"),
    ("F.normalize(six, p=v, dim=0)", "2", "0"), ("F.huber_loss(six, six * 2, delta=v)", "1.0", "-1.0"), ("F.smooth_l1_loss(six, six * 2, beta=v)", "1.", "-1."),
    ("F.group_norm(six.view(1, 6, 1), v)", "2", "4"), ("F.layer_norm(six, v)", "(6,)", "(5,)"), ("F.softplus(six, v)", "1.0", "0.0"), ("six.renorm(1, 0, v)", "1.", "-1."),
    ("F.batch_norm(six.view(3, 2), None, None, training=v)", "True", "False"), ("F.pixel_shuffle(six.view(1, 6, 1, 1)[:, :4], v)", "2", "3"),
)  # fmt: skip

_NUMBERS = _rows(
    "number", "",
    ("v.item()", "torch.tensor(1.5)", "torch.tensor([1., 2.])"), ("float(v)", "torch.tensor([1.5])", "torch.tensor([1., 2.])"),
    ("int(v)", "torch.tensor(2.5)", "torch.tensor(float('nan'))"), ("int(v)", "torch.tensor(2.5)", "torch.tensor(float('inf'))"),
    ("bool(v)", "torch.tensor(1.)", "torch.tensor([1., 2.])"), ("1 if v else 2", "torch.tensor(1.)", "torch.tensor([])"),
    ("1 if v > 0 else 2", "torch.tensor(1.)", "torch.tensor([1., 2.])"), ("v.max().item()", "torch.tensor([1.])", "torch.tensor([])"),
    ("v.argmax().item()", "torch.tensor([1.])", "torch.tensor([])"), ("len(v)", "torch.tensor([1.])", "torch.tensor(1.)"),
    ("v.tolist()[1]", "torch.tensor([1., 2.])", "torch.tensor([1.])"), ("round(v.item())", "torch.tensor(1.5)", "torch.tensor(float('nan'))"),
    ("[5, 6, 7][v]", "torch.tensor(1)", "torch.tensor(3)"), ("v.sum().item()", "torch.tensor([1, 2])", "torch.tensor([2 ** 62, 2 ** 62])"),
    ("sum(range(v))", "torch.tensor(3)", "torch.tensor(1.5)"), ("{0: 1., 1: 2.}[v.item()]", "torch.tensor(1)", "torch.tensor(2)"),
    ("v.median().item()", "torch.tensor([1., 2.])", "torch.tensor([])"), ("10 // int(v)", "torch.tensor(2)", "torch.tensor(0)"),
)  # fmt: skip

_SHAPES = [
    Failing(expression, "torch.tensor([[1., 2.], [3., 4.]])", bad, kind, before)
    for before in ("b = torch.tensor([[1., -1.], [2., 0.5]])\nlinear = nn.Linear(2, 2)\n",)
    for expression, kind in (
        ("b + v", "tensor"), ("b @ v", "tensor"), ("torch.cat([b, v])", "tensor"), ("torch.stack([b, v])", "tensor"),
        ("F.linear(v, b)", "tensor"), ("linear(v)", "tensor"), ("v.view(4)", "tensor"), ("torch.where(b > 0, b, v)", "tensor"),
        ("F.mse_loss(v, b)", "tensor"), ("torch.mm(b, v)", "tensor"), ("torch.addmm(b, b, v)", "tensor"), ("torch.einsum('ij,jk->ik', b, v)", "tensor"),
        ("F.cross_entropy(v, torch.tensor([0, 1]))", "tensor"), ("torch.maximum(b, v)", "tensor"), ("b.mul(v).sum(0)", "tensor"),
        ("torch.softmax(v, 1)", "tensor"), ("v[1]", "tensor"), ("v.t()", "tensor"), ("v.sum(1)", "tensor"), ("torch.dot(b[0], v[0])", "tensor"),
        ("b.copy_(v)", "tensor"), ("torch.lerp(b, v, 0.5)", "tensor"), ("v.mean()", "tensor"), ("v.sqrt()", "tensor"), ("v.max(1)", "pair"), ("v.shape[0] * 1", "number"),
    )
    for bad in ("torch.ones(3, 3)", "torch.ones(2, 1)", "torch.ones(2)", "torch.tensor([[1, 2], [3, 4]])",
                "torch.ones(2, 2, dtype=torch.float64)", "torch.ones(0, 2)", "torch.tensor(2.)", "3.0", "None")
]  # fmt: skip

_RAISING = _rows(
    "number",
    "def check(v):\n    assert v > 0, f'low {v}'\n    return v\n"
    "def refuse(v):\n    if v < 0: raise ValueError('below', v)\n    return v\n"
    "def unpacked(v):\n    first, second = v\n    return second\n"
    "def deep(v):\n    return 1 if v == 0 else deep(v - 1) + 1\n"
    "def left(v):\n    for k in range(3):\n        if k == v: return k\n    raise KeyError(v)\n"
    "def undefined(v):\n    if v: there = 1\n    return there\n"
    "def closed(v):\n    with torch.no_grad():\n        return math.sqrt(v)\n"
    "def wrapped(v):\n    try:\n        return 1 / v\n    except ZeroDivisionError as e:\n"
    "        raise RuntimeError('wrapped') from e\n"
    "def caught(v):\n    try:\n        return 1 / v\n    except ZeroDivisionError:\n        return -1.\n"
    "def exits(v):\n    if v < 0: raise StopIteration\n    return v\n"
    "import math\n",
    ("check(v)", "1", "0"), ("refuse(v)", "1", "-1"), ("unpacked(v)", "(1, 2)", "(1, 2, 3)"),
    ("deep(v)", "2", "3"), ("left(v)", "1", "5"), ("undefined(v)", "1", "0"), ("closed(v)", "4.", "-4."),
    ("wrapped(v)", "2.", "0."), ("caught(v)", "2.", "0."), ("exits(v)", "1", "-1"), ("refuse(v=v)", "1", "-1"),
    ("refuse(torch.tensor(1.) * v).item()", "1.", "-1."), ("check((a * v)[0])", "1", "-1"),
)  # fmt: skip

ROWS = [
    *_DIVISION, *_PYTHON, *_RAISING, *_MATRICES, *_INDICES, *_DRAWS, *_SIZES, *_NUMBERS, *_SHAPES,
]  # fmt: skip

EFFECTS = {
    "nothing": "",
    "backward": "(w * 1.5).sum().backward()",
    "append": "kept.append(i)",
    "append of a number": "kept.append((w * i).sum().item())",
    "append of a tensor": "kept.append(w.detach() * i)",
    "dict entry": "seen['last'] = i",
    "dict entry of a tensor": "seen['sum'] = seen['sum'] + w.detach()",
    "attribute": "box.n = box.n + 1",
    "attribute of a module": "norm.calls += 1",
    "batch norm": "norm(x)",
    "optimizer": "optimizer.zero_grad(); (w * i).sum().backward(); optimizer.step()",
    "schedule": "optimizer.step(); schedule.step()",
    "write of data": "w.data.mul_(0.99)",
    "write without grad": "with torch.no_grad(): w -= 0.01",
    "write to a buffer": "buffer.add_(1)",
    "write to an element": "buffer[i % 4] = i",
    "write to a view": "view = buffer[1:3]; view += i",
    "write to a tensor in a list": "held[0].mul_(0.9)",
    "draw": "r = torch.rand(2)",
    "draw of a layer": "r = drop(x)",
    "draw of Python's": "r = random.random()",
    "print": "if i % 25 == 0: print(i, w)",
    "print of each": "print(i)",
    "global": "tick()",
    "nonlocal": "count()",
    "name": "z = w * i",
    "number": "n = n * 0.5 + i",
    "string": "s = f'{i} {n}'",
    "gradient set": "w.grad = None; (w * i).sum().backward()",
    "gradient kept": "y = (w * w).sum(); y.backward()",
}
"""What an iteration has done before the operation that fails."""

BEFORE = {
    "random": "import random; random.seed(0)",
    "w": "w = torch.tensor([1., 2.], requires_grad=True)",
    "x": "x = torch.tensor([[1., 2.], [3., 5.], [2., -1.]])",
    "a": "a = torch.tensor([7, -8])",
    "norm": "norm = nn.BatchNorm1d(2); norm.calls = 0",
    "drop": "drop = nn.Dropout(0.5)",
    "optimizer": "optimizer = torch.optim.SGD([w], lr=0.01, momentum=0.9)",
    "schedule": "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, gamma=0.9)",
    "seen": "seen = {'last': 0, 'sum': torch.zeros(2)}",
    "buffer": "buffer = torch.zeros(4)",
    "held": "held = [torch.ones(2)]",
    "box": "class Box: n = 0\nbox = Box()",
    "tick()": "total = 0\ndef tick():\n    global total\n    total += 1",
    "count()": "def counter():\n    number = 0\n    def count():\n        nonlocal number\n"
    "        number += 1\n        return number\n    return count\ncount = counter()",
    "kept": "kept = []",
    "s": "s = ''",
    "n": "n = 0.0",
}
"""What stands before the loop where its text has a name."""

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
done = 0
"""

LOOPS = {
    "used": "{head}\n    {effect}\n    q = {call}\n    {use}\n    done += 1\n",
    "overwritten": "{head}\n    {effect}\n    q = {call}\n    done += 1\n",
    "caught": "{head}\n    {effect}\n    try:\n        q = {call}\n    except Exception as e:\n"
    "        print(i, type(e).__name__, str(e))\n    done += 1\n",
    "undone": "{head}\n    try:\n        {effect}\n        q = {call}\n    except Exception as e:\n"
    "        print(i, type(e).__name__, e)\n        {effect}\n    finally:\n        done += 1\n",
    "around": "try:\n    {head_in}\n        {effect}\n        q = {call}\n        done += 1\n"
    "except Exception as e:\n    print(i, type(e).__name__, str(e))\n",
    "called": "def step(v, i):\n    {effect}\n    return {call}\n{head}\n    q = step(v, i)\n    done += 1\n",
}  # fmt: skip
"""What becomes of the result, and who handles the error."""

_HEADS = {
    "listed": ("values = [{good}] * {late} + [{bad}] + [{good}] * {more}\n",
               "for i, v in enumerate(values):"),
    "chosen": ("good, bad = {good}, {bad}\n",
               "for i in range({rounds}):{newline}    v = bad if i == {late} else good"),
}  # fmt: skip
"""How the bad operand comes to the operation."""

_USES = {
    "tensor": "t = t + q.sum()",
    "pair": "t = t + q[0].sum()",
    "number": "n = n + q",
    "other": "kept.append(q)",
}

TIMES = {"used": 2, "overwritten": 2, "around": 1, "called": 2, "caught": 1, "undone": 1}
"""With how many effects a row runs in each kind of loop."""


def program(row: Failing, loop: str, effect: str, head: str) -> str:
    """A program of a row."""
    made, opening = _HEADS[head]
    given = {
        "{head_in}": opening.replace("{newline}", "\n    "), "{head}": opening.replace("{newline}", "\n"),
        "{good}": row.good, "{bad}": row.bad, "{late}": str(LATE), "{rounds}": str(ROUNDS),
        "{more}": str(ROUNDS - LATE - 1), "{effect}": EFFECTS[effect] or "pass",
        "{call}": row.expression, "{use}": _USES[row.kind],
    }  # fmt: skip
    text = made + LOOPS[loop]
    for name, value in given.items():
        text = text.replace(name, value)
    bound = re.findall(r"^([a-z]) = ", EFFECTS[effect])
    if loop == "called" and bound:
        text = text.replace("def step(v, i):\n", f"def step(v, i):\n    global {bound[0]}\n")
    text += "print(count())\n" if "count()" in text else ""
    needs = [line for name, line in BEFORE.items() if _occurs(name, text + row.before)]
    if any("[w]" in line for line in needs) and BEFORE["w"] not in needs:
        needs.insert(0, BEFORE["w"])
    if BEFORE["schedule"] in needs and BEFORE["optimizer"] not in needs:
        needs.insert(-1, BEFORE["optimizer"])
    start = "t = torch.zeros(())\n" if loop == "used" and row.kind in ("tensor", "pair") else ""
    return HEAD + start + "".join(f"{line}\n" for line in needs) + row.before + text


def _occurs(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w'.]){re.escape(name)}(?!\w)", text) is not None


def lates() -> Iterator[Late]:
    """The table's programs: each row in each kind of loop, the effects in turn."""
    turn = 0
    effects, heads = list(EFFECTS), list(_HEADS)
    for row in ROWS:
        for loop, times in TIMES.items():
            for _ in range(times):
                turn += 1
                effect, head = effects[turn % len(effects)], heads[turn // 2 % len(heads)]
                name = f"{row.expression}, {row.good} to {row.bad}, {loop}, {effect}, {head}"
                yield Late(name, program(row, loop, effect, head))
