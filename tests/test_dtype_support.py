"""Which dtypes and arguments an op refuses, and with which class: recorded from PyTorch 2.13."""

from __future__ import annotations

import pytest

from tests.rows import each_row, sampled
from tests.running import run

DTYPES = (
    "bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64",
)  # fmt: skip

CLASSES = {
    ".": None,
    "I": "IndexError",
    "N": "NotImplementedError",
    "O": "OverflowError",
    "R": "RuntimeError",
    "T": "TypeError",
    "V": "ValueError",
}

OPERANDS = """import torch
import torch.nn.functional as F
d = torch.{dtype}
x = torch.tensor([[2, 1], [1, 3]]).to(d)
y = torch.tensor([[1, 2], [2, 1]]).to(d)
c = torch.tensor([1, 2, 3]).to(d)
t = torch.tensor([0, 1])
def slopes(f, *xs):
    xs = [x.clone().requires_grad_() for x in xs]
    r = f(*xs)
    (r.abs() if r.is_complex() else r).sum().backward()
    return [x.grad for x in xs]
"""

# A row: for each of DTYPES the letter of the class that is raised, and the expression.
MATRIX = """
R.........  x - y
N........N  x // y
N........N  x % y
N.........  x ** y
.....NNNNN  x & y
N....NNNNN  x << y
.....TTTTT  ~x
R.........  -x
.........N  x < y
N........N  torch.fmod(x, y)
.........N  torch.floor_divide(x, 2)
.........N  torch.remainder(x, 2)
RRRRR.....  torch.add(x, y, alpha=2.5)
RRRRR.....  torch.sub(x, y, alpha=0.5)
N.........  torch.addcmul(x, y, y)
RRRRR.....  torch.addcdiv(x, y, y)
NNNNN.....  torch.lerp(x, y, 0.5)
.RR.......  torch.where(x == x, x, 300)
RRRRR..R.R  torch.where(x == x, 1e300, x)
.........R  torch.maximum(x, y)
.........R  torch.fmin(x, y)
.........N  torch.clamp(x, 0, 1)
N........N  torch.clamp(x, y, y)
.........N  torch.clamp_min(x, 1)
.........N  torch.clamp_max(x, y)
.........N  torch.atan2(x, y)
NNNNN....N  torch.hypot(x, y)
NNNNN.....  torch.logaddexp(x, y)
NNNNN....N  torch.logaddexp2(x, y)
NNNNN....N  torch.nextafter(x, y)
N....NNNNN  torch.gcd(x, y)
N....NNNNN  torch.lcm(x, y)
.........R  torch.heaviside(x, y)
.........R  torch.isposinf(x)
R........R  torch.isin(x, y)
N.........  torch.abs(x)
.........N  torch.sign(x)
N........N  torch.floor(x)
N........N  torch.round(x)
NNNNN....N  torch.round(x, decimals=1)
NNNNN....N  torch.frac(x)
.........R  torch.deg2rad(x)
.........R  torch.rad2deg(x)
.........N  torch.erf(x)
.........N  torch.digamma(x)
.........N  torch.polygamma(1, x)
.........N  torch.i0(x)
.....NN..N  torch.special.erfcx(x)
.....NN..N  torch.special.ndtri(x)
.........N  torch.special.entr(x)
.....NN..N  torch.special.zeta(x, y)
.....NN..N  torch.special.bessel_j0(x)
NNNNN....N  torch.special.gammainc(x, y)
RRRRR.....  x.mean()
RRRRR.....  x.std()
.........N  x.max()
.........R  x.max(1)
.........N  x.amax(1)
.........N  x.aminmax()
R........R  x.argmax()
N........N  x.median()
N........N  x.median(0)
.........N  x.mode(0)
.........R  x.sort()
R........R  x.topk(1)
N........N  x.kthvalue(1)
.........N  x.unique()
.........N  x.cummax(0)
NNNNN.....  x.logcumsumexp(0)
NNNNN....N  x.softmax(0)
NNNNN....N  x.log_softmax(1)
RRRRR.....  x.norm()
N.........  x.trace()
RRRRR.....  x.renorm(2, 0, 1)
RRRRRNN...  torch.linalg.det(x)
RRRRRRR...  torch.linalg.inv(x)
RRRRRNN...  torch.linalg.solve(x, y)
RRRRRNN...  torch.linalg.cholesky(x)
NNNNNNN...  torch.linalg.eigh(x)
RRRRRNN...  torch.linalg.eigvals(x)
RRRRRNN...  torch.linalg.qr(x)
RRRRRNN...  torch.linalg.svd(x)
RRRRRRR...  torch.linalg.pinv(x)
NNNNNNN...  torch.linalg.solve_triangular(x, y, upper=True)
RRRRR.....  torch.linalg.vecdot(x, y)
RRRRR.....  torch.linalg.vector_norm(x)
N.........  torch.linalg.cross(c, c)
RRRRRNN..R  torch.cdist(x, y)
RRRRRNN..R  torch.pdist(x)
R.........  torch.trapezoid(x)
N........N  torch.searchsorted(c, x)
N....NNNNN  torch.bincount(c)
NNNNN....N  torch.histc(x)
R........N  F.relu(x)
R........N  F.relu6(x)
RR.......N  F.hardtanh(x)
NNNNN....N  F.leaky_relu(x)
NNNNN....N  F.elu(x)
NNNNN....N  F.selu(x)
NNNNN....N  F.celu(x)
NNNNN....N  F.gelu(x)
NNNNN....N  F.mish(x)
NNNNN....N  F.hardswish(x)
NNNNN....N  F.hardsigmoid(x)
NNNNN....N  F.hardshrink(x)
NNNNN....N  F.softshrink(x)
NNNNN....N  F.softplus(x)
NNNNN....N  F.logsigmoid(x)
RNNNN....N  F.softmin(x, 0)
NNNNN....N  F.glu(x)
NNNNN....N  F.prelu(x, c[0])
RRRRR....N  F.dropout(x, 0.5)
RRRRR.....  F.normalize(x)
NNNNN....N  F.layer_norm(x, (2,))
NNNNN.....  F.rms_norm(x, (2,))
NNNNN....N  F.group_norm(x, 1)
NNNNN....N  F.batch_norm(x, None, None, training=True)
NNNNN....N  F.mse_loss(x, y)
RRRRR.....  F.l1_loss(x, y)
R.........  F.l1_loss(x, y, reduction='sum')
NNNNN....N  F.smooth_l1_loss(x, y)
NNNNN....N  F.huber_loss(x, y)
RRRRR....R  F.kl_div(x, y)
NNNNN....N  F.nll_loss(x, t)
NNNNN....N  F.cross_entropy(x, t)
RRRRR....R  F.cross_entropy(x, y)
RRRRR....R  F.cosine_similarity(x, y)
.NNNN.....  F.unfold(x[None, None], 2)
.NNNN.....  F.fold(x.reshape(1, 4, 1), 2, 2)
N.........  F.pad(x, (1, 1), mode='reflect')
NNNN.....N  F.avg_pool1d(x[None], 2)
NNNN.....N  F.avg_pool2d(x[None], 2)
N........N  F.max_pool2d(x[None], 2)
N.........  F.conv1d(x[None], y[:, :, None])
N.........  F.conv2d(x[None, None], y[None, None])
NNNN......  F.conv2d(x[None, None], y[None, None], padding=1, dilation=2)
NNNN......  F.conv_transpose1d(x[None], y[:, :, None])
N.NNN....N  F.interpolate(x[None], scale_factor=2)
N........N  torch.arange(3, dtype=x.dtype)
N.........  torch.linspace(0, 1, 3, dtype=x.dtype)
N........N  torch.randperm(3, dtype=x.dtype)
RRRRR....N  torch.hann_window(4, dtype=x.dtype)
VVVVV....R  torch.func.jacfwd(lambda q: q * q)(x)
RRRRR....R  torch.func.jacrev(lambda q: q * q)(x)
VVVVV.....  torch.func.jvp(lambda q: q * q, (x,), (x,))
.RRRRRRRR.  x.masked_fill(x == x, 1j)
.RR.......  x.index_fill(0, t, 300)
.RR.......  x.fill_(300)
OOOOOOOOOO  x + 2**70
RRRRR....R  x.exponential_()
NNNNN....N  torch.bernoulli(x * 0)
N.........  torch.logspace(0, 1, 3, dtype=x.dtype)
"""


@pytest.mark.parametrize("row", sampled(MATRIX.strip().splitlines(), 2))
def test_dtypes(row: str) -> None:
    letters, expression = row.split(maxsplit=1)
    found = {}
    for dtype in DTYPES:
        error = run(OPERANDS.format(dtype=dtype) + expression).error
        found[dtype] = None if error is None else error.raises
    assert found == dict(zip(DTYPES, [CLASSES[letter] for letter in letters], strict=True))


ARGUMENTS = """
OverflowError x + 2**70
OverflowError x * -2**70
OverflowError 2**64 / x
OverflowError x == 2**65
OverflowError x.fill_(2**70)
- x + 2**63
OverflowError torch.remainder(x, 2**70)
TypeError F.celu(x, torch.ones(2, 2))
TypeError F.gelu(x, approximate=3)
TypeError F.hardshrink(x, 'a')
TypeError x.clamp(0, 'a')
AttributeError F.softsign(3)
AttributeError F.mse_loss(3, x)
AttributeError F.mse_loss(x, 3)
TypeError F.relu(3)
AttributeError F.softmax(3, 0)
TypeError torch.softmax(3, 0)
AttributeError F.normalize([1, 2])
AttributeError torch.norm(3)
ValueError F.mse_loss(x, y, reduction='all')
ValueError F.mse_loss(x, y, reduction=3)
ValueError x.type(float)
ValueError x.type('float')
TypeError x.type(2)
TypeError x.sum(dtype='float')
- x.view(torch.float16).shape
RuntimeError c.view(torch.float64)
RuntimeError x.t().view(torch.int16)
IndexError x.index_select(5, t * 1.0)
IndexError x.index_select(0, t + 5)
RuntimeError x.index_select(1, t + 5)
RuntimeError x.index_select(0, t * 1.0)
RuntimeError x.index_add(0, t + 5, x)
IndexError c.index_add(0, t + 5, c[:2])
RuntimeError x.index_add(0, t + 5, x.double())
RuntimeError x.index_copy(0, t.int(), x)
IndexError x.index_fill(0, t.int(), 1)
IndexError x.index_fill(0, t * 1.0, 1)
RuntimeError x.index_put((t,), torch.ones(7))
RuntimeError x.index_put((t,), x.double())
IndexError x.gather(3, t * 1.0)
IndexError x.scatter(5, t * 1.0, 1)
RuntimeError x.take_along_dim(t.int()[None], 1)
RuntimeError x.masked_fill(x > 1, torch.tensor(1j))
RuntimeError torch.cross(c, c.double())
RuntimeError torch.meshgrid(c, c.double())
RuntimeError torch.linalg.vecdot(c, c.double())
RuntimeError torch.trapezoid(c, c > 1)
ValueError torch.func.jvp(lambda q: q * 2, (t,), (t,))
ValueError torch.func.jacfwd(lambda q: q * 2)(t)
RuntimeError torch.func.hessian(lambda q: q.sum())(c * 1j)
RuntimeError torch.func.jacrev(lambda q: q * 1j)(c)
RuntimeError F.conv1d(x[None], (y > 0)[:, :, None])
RuntimeError F.hardtanh(c.byte())
RuntimeError c.byte() ** -1
RuntimeError torch.hypot(c > 1, t > 1)
RuntimeError c.bitwise_or(t * 1.0)
RuntimeError torch.gcd(c, t)
RuntimeError (c > 1).hypot_(x[:, :1] > 1)
RuntimeError c.lcm_(x[:, :1])
RuntimeError F.huber_loss(c.long(), c)
RuntimeError slopes(lambda p: F.huber_loss(p, c.double()), c)
RuntimeError F.soft_margin_loss(c.long(), c)
NotImplementedError F.multilabel_soft_margin_loss(x.long(), x)
RuntimeError F.binary_cross_entropy((c > 1).long(), c)
IndexError torch.mv(c.sum(), c.sum())
RuntimeError x.put_(t, t.int())
IndexError F.glu((c * 1j), 2)
NotImplementedError torch.polar(c.half(), c.half())
IndexError torch.baddbmm(c, c, c)
RuntimeError torch.bmm(x[None] > 0, x[None, :1] > 0)
RuntimeError torch.float32 in c
RuntimeError c.requires_grad_().swapaxes_(2, -1)
RuntimeError (c * 1j).abs_()
RuntimeError c.requires_grad_()[torch.tensor([0, 7])] = 1
RuntimeError x[torch.tensor([True])] = x
RuntimeError float(c[0] + 2j)
- float(c[0] + 0j)
IndexError c[:0].kthvalue(1)
IndexError torch.trapezoid(c[0])
RuntimeError torch.cdist(c[0].half(), c[0].half())
RuntimeError (c > 1).random_(3)
RuntimeError c.byte().random_(300)
RuntimeError (c * 1j).random_(3)
NotImplementedError (c * 1j).bernoulli_()
TypeError '%s' % x.shape
RuntimeError F.silu((c * 1j).requires_grad_())
IndexError x.index_add_(5, t, x)
IndexError x.scatter_(5, t[None], x)
IndexError x.index_copy_(0, t, c[0])
RuntimeError x.index_add(1, t, c[0])
RuntimeError c[:0].index_copy(0, t, c[:2])
RuntimeError torch.ones(0, 2).roll((1, 2), 0)
IndexError torch.cross(c[0], c[0], dim=0)
ValueError nn.RNN(3, 2)(c[None].double())
AssertionError nn.MultiheadAttention(4, 2)(x, x, x)
- torch.addr(x.long(), c[:2], c[:2])
RuntimeError x.long().addr_(c[:2], c[:2])
ValueError F.rms_norm(c[0], (3,))
IndexError torch.cross(x, x.double(), dim=2)
RuntimeError t.bitwise_and_(c[:2])
AttributeError nn.MultiheadAttention(4, 2)(1, 2, 3)
TypeError (c.requires_grad_() * 2).backward([1.0])
RuntimeError torch.autograd.backward([c.sum(), c.sum()], [c[0]])
- torch.autograd.backward([c.requires_grad_().sum()], [c[0].detach(), c])
NotImplementedError t.cumsum_(0).bool().cumsum_(0)
IndexError c[:0].index_select(0, t)
IndexError c.index_select(0, t - 5)
RuntimeError torch.tensor(1.0).unflatten(0, (1, 1))
IndexError c[0].roll(1, 0)
RuntimeError c[:0].index_fill(0, t, 1)
AttributeError nn.BatchNorm1d(2)(True)
AttributeError nn.LSTM(2, 2)([1.0])
RuntimeError F.linear(x[None], x[None])
"""


@each_row("row", ARGUMENTS.strip().splitlines())
def test_arguments(row: str) -> None:
    raised, expression = row.split(maxsplit=1)
    error = run(OPERANDS.format(dtype="float32") + expression).error
    assert ("-" if error is None else error.raises) == raised


# Expressions, and what is printed for them.
VALUES = """
x.sum(dtype=float)
    tensor(7., dtype=torch.float64)
x.sum(1, dtype=int)
    tensor([3, 4])
c.cumsum(0, dtype=int)
    tensor([1, 3, 6])
c.prod(dtype=int)
    tensor(6)
c.mean(dtype=float)
    tensor(2., dtype=torch.float64)
c.softmax(0, dtype=float)
    tensor([0.0900, 0.2447, 0.6652], dtype=torch.float64)
torch.norm(c, dtype=float)
    tensor(3.7417, dtype=torch.float64)
torch.linalg.norm(c, dtype=float)
    tensor(3.7417, dtype=torch.float64)
c.type(torch.IntTensor)
    tensor([1, 2, 3], dtype=torch.int32)
c.type('torch.DoubleTensor')
    tensor([1., 2., 3.], dtype=torch.float64)
c.view(torch.int32)
    tensor([1065353216, 1073741824, 1077936128], dtype=torch.int32)
torch.tensor([1 + 2j]).view(torch.float32)
    tensor([1., 2.])
torch.tensor([1065353216], dtype=torch.int32).view(torch.float32)
    tensor([1.])
c[:2].requires_grad_().view(torch.int32)
    tensor([1065353216, 1073741824], dtype=torch.int32)
torch.diff(torch.tensor([True, False, False]))
    tensor([ True, False])
torch.logaddexp(torch.tensor([1 + 2j]), torch.tensor([0.5 - 1j]))
    tensor([0.1050+1.7890j])
torch.tensor([1 + 2j, -3 + 0.5j]).logcumsumexp(0)
    tensor([1.0000+2.0000j, 1.0015+1.9818j])
c - 2**63
    tensor([-9.2234e+18, -9.2234e+18, -9.2234e+18])
torch.where(c > 1, c, 300)
    tensor([300.,   2.,   3.])
torch.trapezoid(t)
    tensor(0.5000)
torch.special.ndtr(t)
    tensor([0.5000, 0.8413])
F.pairwise_distance(t[None], t[None] + 1)
    tensor([1.4142])
torch.gradient(t)
    (tensor([1., 1.]),)
F.poisson_nll_loss(t, t, full=True)
    tensor(1.3591)
F.triplet_margin_loss(t[None], t[None], t[None] + 1)
    tensor(0.)
torch.logit(c.bfloat16() / 4, 0.3)
    tensor([-0.8438,  0.0000,  0.8438], dtype=torch.bfloat16)
torch.take_along_dim(c, torch.tensor([7, -1, -5]), 0)
    tensor([2., 3., 2.])
torch.remainder(2, c.clone().requires_grad_())
    tensor([0., 0., 2.], grad_fn=<NotImplemented>)
torch.remainder(2.5, t + 1)
    tensor([0.5000, 0.5000])
c.byte().clip(-1, 2)
    tensor([2, 2, 2], dtype=torch.uint8)
c.byte().clamp(min=-1)
    tensor([255, 255, 255], dtype=torch.uint8)
torch.add(t > 0, t > 0, alpha=2)
    tensor([False,  True])
torch.clamp(t > 0, torch.tensor(0.5), c[:2] / 4)
    tensor([0.2500, 0.5000])
torch.clamp(t > 0, min=t > 0)
    tensor([False,  True])
torch.searchsorted(c, t > 0)
    tensor([0, 0])
F.hardtanh(c.byte(), -0.5, 2.0)
    tensor([1, 2, 2], dtype=torch.uint8)
slopes(lambda p: torch.ldexp(p, t - 1), c[:2])
    [tensor([0., 1.])]
torch.func.jacfwd(torch.sin)(torch.tensor(0.5))
    tensor(0.8776)
torch.linspace(0, 1j, 3)
    tensor([0.+0.0000j, 0.+0.5000j, 0.+1.0000j])
torch.logspace(0, 1j, 3)
    tensor([ 1.0000+0.0000j,  0.4073+0.9133j, -0.6682+0.7440j])
torch.func.hessian(torch.sin)(torch.tensor(0.5))
    tensor(-0.4794)
(torch.manual_seed(1), torch.zeros(6).bernoulli_(torch.tensor(0.5)))[1]
    tensor([0., 1., 1., 0., 1., 0.])
slopes(F.normalize, c[None].bfloat16())
    [tensor([[ 0.1523,  0.0361, -0.0801]], dtype=torch.bfloat16)]
slopes(torch.lerp, c[:1] * 1j, c[:1] + 2j, c[:1] - 0.5j)
    [tensor([0.3536-0.3536j]), tensor([0.3536+1.0607j]), tensor([1.4142+0.j])]
slopes(lambda p, q: torch.lerp(p, q, 0.3 + 0.2j), c[:1] * 1j, c[:1] + 2j)
    [tensor([-0.1530+0.7118j]), tensor([0.2195+0.2860j])]
slopes(lambda p: p.logcumsumexp(0), c[:2] * (1 + 0.5j))
    [tensor([1.0999+0.6310j, 0.7296+0.1707j])]
slopes(torch.logaddexp, c[:1] * 1j, c[:1] + 2j)
    [tensor([-0.0415+0.2942j]), tensor([0.6120+0.5271j])]
slopes(lambda p: (p ** 1j).real, c.bfloat16())
    [tensor([ 0.0000, -0.3203, -0.2969], dtype=torch.bfloat16)]
slopes(lambda p: (1j ** p).real, c[:1].bfloat16())
    [tensor([-1.5703], dtype=torch.bfloat16)]
slopes(lambda p, q: p ** q, -c[:1] / 2, c[:1] * (1 + 1j))
    [tensor([-0.0432]), tensor([-0.0150-0.0679j])]
F.cross_entropy(x[:, :0].requires_grad_(), x[:, :0])
    tensor(nan, grad_fn=<NegBackward0>)
'%s %s' % c.max(0)
    tensor(3.) tensor(2)
F.silu(c[:1] * 1j)
    tensor([-0.2732+0.5000j])
c[:0].roll(1, 3).shape
    torch.Size([0])
torch.optim.SGD([c.requires_grad_()], lr=0.1).state
    defaultdict(<class 'dict'>, {})
torch.polar(x.mT[None], x[None]).stride()
    (2, 1, 2)
c.sum().requires_grad_().clone().squeeze_().sub_(1)
    tensor(5., grad_fn=<SubBackward0>)
torch.bucketize(torch.tensor([0.5, 1.5, float('nan')]), torch.tensor([1.0, float('nan'), 2.0]))
    tensor([2, 2, 3])
torch.searchsorted(c, float('nan'))
    tensor(3)
torch.searchsorted(x[:, :0], x)[1]
    tensor([0, 0])
c.sort() in [c]
    False
1 / (x * -0.0).trace()
    tensor(inf)
torch.lgamma(c[0] - float('inf'))
    tensor(inf)
torch.xlogy(c[:2], True)
    tensor([0., 0.])
c.double().expand(2, 3).t().clone().requires_grad_().sum().grad_fn.metadata
    {}
F.softmax(c[:0].long(), 0)
    tensor([], dtype=torch.int64)
F.log_softmax(x[:0].bool(), -1)
    tensor([], size=(0, 2), dtype=torch.bool)
F.layer_norm(x[:, :0], (0,))
    tensor([], size=(2, 0))
torch.view_as_complex(x[1:1]).stride()
    (1,)
"""


@each_row("row", VALUES.replace("\n    ", " -> ").strip().splitlines())
def test_values(row: str) -> None:
    expression, expected = row.split(" -> ")
    outcome = run(OPERANDS.format(dtype="float32") + f"print({expression})")
    assert outcome.error is None
    assert outcome.stdout == f"{expected}\n"


def test_a_view_in_another_dtype_shares_memory() -> None:
    outcome = run(
        "import torch\nz = torch.zeros(2)\nw = z.view(torch.int32)\nw[0] = 1065353216\n"
        "print(z, z._version)"
    )
    assert outcome.stdout == "tensor([1., 0.]) 1\n"
