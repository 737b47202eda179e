"""Tensors on a GPU: the rows of the op table, the language, and the kernels of plans.

Everything runs twice: on a stand-in for CuPy in the host's memory, and on a GPU where there is one.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from gradcli.arrays import backend, dtypes
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.gpu import runtime
from gradcli.arrays.layout.sizes import Device
from gradcli.arrays.random.generator import philox
from gradcli.autograd.engine.backward import backward
from gradcli.autograd.tensor import Tensor
from gradcli.state import active
from tests import stand_in_cupy
from tests.op_table.check import differentiable, gradients
from tests.op_table.rows import Row
from tests.rows import sampled
from tests.running import Expression, run
from tests.stand_in_cupy import kernels
from tests.test_gradients import ROWS


def _has_gpu() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")  # CuPy stays untouched without a driver: see driverless_cupy
        import cupy
    except (ImportError, OSError):
        return False
    return bool(cupy.is_available())


real = pytest.param(
    "gpu", marks=pytest.mark.skipif(not _has_gpu(), reason="CuPy or a GPU is missing here")
)


@pytest.fixture(params=["stand-in", real])
def cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """A GPU, or what stands in for one."""
    monkeypatch.setattr(backend, "_gpus", [])
    if request.param == "stand-in":
        stand_in_cupy.install(monkeypatch)
    else:
        monkeypatch.setattr(runtime, "_loaded", {})
    return backend.located("test", "cuda")


needs_compiler = pytest.mark.skipif(
    kernels.COMPILER is None, reason="no C++ compiler for the stand-in's kernels"
)

# --- the op table ---------------------------------------------------------------------------------

FAMILIES = sorted({row.expression.split("(")[0].split(".")[-1][:1].lower() for row in ROWS})


def _results(row: Row, device: Device) -> list[Any]:
    """The outputs of a row and its gradients, as tensors."""
    active.state.default_device = str(device)  # for what the row's text makes
    expression, values = Expression(row.expression), row.values()

    def placed(array: Any) -> Any:
        return backend.moved(np.asarray(array)[()], device)

    names = [name for name, operand in row.operands.items() if operand.differentiable]
    fixed = {name: Tensor(placed(values[name])) for name in values if name not in names}
    leaves = [Tensor(placed(values[name]), True) for name in names]

    def function(*tensors: Tensor) -> Any:
        return expression(**dict(zip(names, tensors, strict=True)), **fixed)

    generator = row.generator()
    outputs = differentiable(function(*leaves))
    if not row.order:
        return outputs
    seeds = [Tensor(placed(generator.normal(size=output.array.shape))) for output in outputs]
    return [*outputs, *gradients(function, leaves, seeds)]


def _same(found: Any, expected: Any, device: Device) -> None:
    assert found.device == device
    left, right = backend.to_host(forced(found.array)), np.asarray(expected.array)
    assert left.dtype == right.dtype
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("letter", sampled(FAMILIES, 2))
def test_rows_on_a_gpu(letter: str, cuda: Device) -> None:
    """Forward and gradient are those of the CPU, and stay on the GPU."""
    rows = [
        row
        for row in ROWS
        if row.expression.split("(")[0].split(".")[-1][:1].lower() == letter
        and "manual_seed" not in row.expression  # each device draws numbers of its own
    ]
    failed = []
    for row in rows:
        try:
            expected = _results(row, Device("cpu"))
            for found, right in zip(_results(row, cuda), expected, strict=True):
                _same(found, right, cuda)
        except Exception as error:
            failed.append(f"{row}: {error!r}")
    assert not failed, "\n".join(failed)


# --- the language -------------------------------------------------------------------------------

PROGRAMS = {
    "what is printed": (
        "x = torch.tensor([1., 2.], device='cuda', requires_grad=True)\n"
        "print(x, x.sum(), x.detach().double())",
        "tensor([1., 2.], device='cuda:0', requires_grad=True)"
        " tensor(3., device='cuda:0', grad_fn=<SumBackward0>)"
        " tensor([1., 2.], device='cuda:0', dtype=torch.float64)\n",
    ),
    "moving": (
        "x = torch.ones(2, requires_grad=True)\ny = x.cuda()\n"
        "print(y.grad_fn, y.cuda() is y, x.cpu() is x, x.to(y).device, y.to('cpu').device)\n"
        "(y * 3).sum().backward()\nprint(x.grad)",
        "<ToCopyBackward0 object at 0x> True True cuda:0 cpu\ntensor([3., 3.])\n",
    ),
    "attributes": (
        "x = torch.zeros(2, device='cuda:0')\ny = torch.zeros(2)\n"
        "print(x.device, x.is_cuda, x.get_device(), y.is_cuda, y.get_device())\n"
        "print(x.device == torch.device('cuda:0'), x.device.type, x.device.index)",
        "cuda:0 True 0 False -1\nTrue cuda 0\n",
    ),
    "creation": (
        "x = torch.arange(3, device='cuda')\nmade = (torch.ones_like(x), x.new_zeros(1),\n"
        "    torch.full((1,), 2., device='cuda'), torch.eye(2, device='cuda'),\n"
        "    torch.linspace(0, 1, 3, device='cuda'), torch.randn(2, device='cuda'),\n"
        "    torch.rand_like(x, dtype=torch.float32), torch.tensor(x), x.new_tensor([2]))\n"
        "print({str(each.device) for each in made})\n"
        "torch.set_default_device('cuda')\nprint(torch.ones(1), torch.get_default_device())",
        "{'cuda:0'}\ntensor([1.], device='cuda:0') cuda:0\n",
    ),
    "values on the host": (
        "x = torch.tensor([1.5, 2.5], device='cuda')\n"
        "print(x.tolist(), x[1].item(), float(x[0]), bool(x[0] > 1), len(x), f'{x.sum():.1f}')\n"
        "print([p.item() for p in x], x.cpu())",
        "[1.5, 2.5] 2.5 1.5 True 2 4.0\n[1.5, 2.5] tensor([1.5000, 2.5000])\n",
    ),
    "numbers of the CPU go with any device": (
        "s = torch.tensor(2., requires_grad=True)\nx = torch.ones(3, device='cuda')\n"
        "y = (s * x).sum()\ny.backward()\nprint(y, s.grad)",
        "tensor(6., device='cuda:0', grad_fn=<SumBackward0>) tensor(3.)\n",
    ),
    "in place, views and masks": (
        "x = torch.arange(6., device='cuda').reshape(2, 3)\nx[0] += 10\nx[:, 1] = 0\n"
        "x[x > 11] = -1\nx.t()[2].mul_(2)\nprint(x)",
        "tensor([[10.,  0., -2.],\n        [ 3.,  0., 10.]], device='cuda:0')\n",
    ),
    "a module and its optimiser": (
        "import torch.nn as nn\nlosses = []\n"
        "for place in ('cpu', 'cuda'):\n"
        "    torch.manual_seed(1)\n    m = nn.Linear(2, 1).to(place)\n"
        "    o = torch.optim.Adam(m.parameters(), lr=0.1)\n    x = torch.ones(4, 2).to(place)\n"
        "    for i in range(5):\n        o.zero_grad()\n        loss = m(x).pow(2).mean()\n"
        "        loss.backward()\n        o.step()\n"
        "    losses.append(round(loss.item(), 4))\n"
        "print(m.weight.device, m.weight.grad.device, losses[0] == losses[1])\n"
        "print(m.cpu().weight.device)",
        "cuda:0 cuda:0 True\ncpu\n",
    ),
    "functions of functions": (
        "class Two(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2, x * 3\n"
        "    @staticmethod\n    def backward(ctx, g, h):\n        return g * 2 + h * 3\n"
        "x = torch.ones(2, device='cuda', requires_grad=True)\n"
        "Two.apply(x)[0].sum().backward()\nprint(x.grad)\nx = x.detach()\n"
        "print(torch.func.jvp(torch.sin, (x,), (x,))[1])\n"
        "print(torch.func.hessian(lambda t: (t ** 3).sum())(x)[0])",
        "tensor([2., 2.], device='cuda:0')\ntensor([0.5403, 0.5403], device='cuda:0')\n"
        "tensor([6., 0.], device='cuda:0')\n",
    ),
    "extremes that meet at one place": (
        "x = torch.zeros(3, dtype=torch.float64, device='cuda', requires_grad=True)\n"
        "i = torch.tensor([0, 0, 1, 1], device='cuda')\n"
        "v = torch.tensor([1 / 3, -2, math.nan, 1], dtype=torch.float64, device='cuda')\n"
        "y = x.scatter_reduce(0, i, v, 'amax')\nprint(y[0].item(), y[1:].tolist())\n"
        "print(torch.zeros_like(x).index_reduce(0, i, v, 'amin').tolist())\n"
        "y[2].backward()\nprint(x.grad.tolist())\n"
        "for t in (torch.int8, torch.int16, torch.uint8, torch.int64, torch.float16):\n"
        "    print(torch.ones(2, dtype=t, device='cuda').scatter_reduce(0, i,\n"
        "        torch.tensor([7, 5, 0, 0], device='cuda').to(t), 'amax').tolist())",
        "0.3333333333333333 [nan, 0.0]\n[-2.0, nan, 0.0]\n[0.0, nan, 1.0]\n"
        "[7, 1]\n[7, 1]\n[7, 1]\n[7, 1]\n[7.0, 1.0]\n",
    ),
    "sums that meet at one place": (
        "x = torch.tensor([3 + 4j, 1j], device='cuda', requires_grad=True)\n"
        "i = torch.tensor([0, 0, 1], device='cuda')\nx[i].abs().sum().backward()\nprint(x.grad)\n"
        "for t in (torch.int8, torch.int16, torch.uint8, torch.int64, torch.float16):\n"
        "    s = torch.tensor([100, 100, 1], device='cuda').to(t)\n"
        "    print(torch.zeros(2, dtype=t, device='cuda').scatter_add(0, i, s).tolist())",
        "tensor([1.2000+1.6000j, 0.0000+1.0000j], device='cuda:0')\n"
        "[-56, 1]\n[200, 1]\n[200, 1]\n[200, 1]\n[200.0, 1.0]\n",
    ),
    "ranks and distances": (
        "x = torch.tensor([[1., 2.], [2., 4.], [0., 1.]], device='cuda', requires_grad=True)\n"
        "print(torch.linalg.matrix_rank(x).item(), torch.linalg.pinv(x).shape)\n"
        "print(torch.linalg.lstsq(x, x).solution.shape)\n"
        "torch.pdist(x).sum().backward()\nprint(x.grad)",
        "2 torch.Size([2, 3])\ntorch.Size([2, 2])\n"
        "tensor([[ 0.2599, -0.1873],\n        [ 1.0019,  1.7265],\n"
        "        [-1.2618, -1.5392]], device='cuda:0')\n",
    ),
    "what draws and what makes windows": (
        "x = torch.tensor([0.5, 1., 2.5], device='cuda', requires_grad=True)\n"
        "y = F.gumbel_softmax(x)\ny[0].backward()\nprint(y.device, x.grad.device)\n"
        "s = torch.arange(8., device='cuda')\n"
        "print(torch.istft(torch.stft(s, 4, return_complex=True), 4).round())\n"
        "q = torch.eye(2, device='cuda').half()\n"
        "print(F.scaled_dot_product_attention(q, q, q).dtype)\n"
        "z = torch.tensor([0, 1j], device='cuda')\nprint(z.logical_not(), z.logical_and(z))",
        "cuda:0 cuda:0\ntensor([0., 1., 2., 3., 4., 5., 6., 7.], device='cuda:0')\ntorch.float16\n"
        "tensor([ True, False], device='cuda:0') tensor([False,  True], device='cuda:0')\n",
    ),
    "half precision": (
        "for t in (torch.float16, torch.bfloat16):\n"
        "    x = torch.tensor([0.5, 0.25], dtype=t, device='cuda', requires_grad=True)\n"
        "    y = x.asin() + (x + 3).mvlgamma(2) + x.as_strided((2,), (0,)) + x.clamp(0.3)\n"
        "    y.sum().backward()\n"
        "    print(y.detach(), x.grad, x.argsort(), torch.isin(x, x),\n"
        "        x.rsqrt().sort()[0][0].item())\n"
        "i = torch.tensor([0, 0], device='cuda')\n"
        "print(torch.zeros_like(x).scatter_reduce(0, i, x, 'amax').tolist())",
        "tensor([3.9902, 3.0371], device='cuda:0', dtype=torch.float16)"
        " tensor([6.1797, 2.8691], device='cuda:0', dtype=torch.float16)"
        " tensor([1, 0], device='cuda:0') tensor([True, True], device='cuda:0') 1.4140625\n"
        "tensor([4.0000, 3.0312], device='cuda:0', dtype=torch.bfloat16)"
        " tensor([6.1875, 2.8750], device='cuda:0', dtype=torch.bfloat16)"
        " tensor([1, 0], device='cuda:0') tensor([True, True], device='cuda:0') 1.4140625\n"
        "[0.5, 0.0]\n",
    ),
    "gradcheck": (
        "x = torch.tensor([0.5, 1.], dtype=torch.float64, device='cuda', requires_grad=True)\n"
        "print(torch.autograd.gradcheck(torch.sin, x), torch.autograd.gradgradcheck(torch.exp, x))",
        "True True\n",
    ),
    "torch.cuda": (
        "torch.cuda.synchronize()\ntorch.cuda.empty_cache()\n"
        "print(torch.cuda.memory_allocated() <= torch.cuda.memory_reserved())\n"
        "print(torch.cuda.is_available(), torch.cuda.device_count() > 0,\n"
        "    torch.cuda.current_device(), type(torch.cuda.get_device_name()))",
        "True\nTrue True 0 <class 'str'>\n",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, cuda: Device) -> None:
    program, printed = PROGRAMS[name]
    outcome = run(program)
    assert outcome.error is None, outcome.error
    assert outcome.masked == printed


ERRORS = [
    ("torch.ones(2) + torch.ones(2, device='cuda')", "E208", "RuntimeError"),
    ("torch.ones(2, 2).cuda() @ torch.ones(2, 2)", "E208", "RuntimeError"),
    ("torch.cat([torch.ones(2), torch.ones(2).cuda()])", "E208", "RuntimeError"),
    ("torch.where(torch.ones(2).cuda() > 0, torch.ones(2).cuda(), torch.ones(2))", "E208", None),
    ("torch.ones(2).cuda().numpy()", "E202", "TypeError"),
    ("torch.ones(2, device='cuda:7')", "E604", "RuntimeError"),
    ("torch.rand(2, device='cuda', generator=torch.Generator())", "E204", "RuntimeError"),
]


@pytest.mark.parametrize(("program", "code", "raises"), ERRORS)
def test_errors(program: str, code: str, raises: str | None, cuda: Device) -> None:
    if "cuda:7" in program and runtime.cupy().cuda.runtime.getDeviceCount() > 7:
        pytest.skip("there are eight GPUs")
    error = run(program).error
    assert error is not None
    assert error.code == code
    assert raises is None or error.raises == raises


def test_pytorchs_numbers(cuda: Device) -> None:
    """What PyTorch draws on a GPU for seed 0."""
    outcome = run(
        "torch.manual_seed(0)\nprint(torch.rand(3, device='cuda'))\n"
        "torch.cuda.manual_seed(0)\nprint(torch.randn(3, device='cuda'))"
    )
    assert outcome.stdout == (
        "tensor([0.3990, 0.5167, 0.0249], device='cuda:0')\n"
        "tensor([-0.9247, -0.4253, -2.6438], device='cuda:0')\n"
    )


def test_the_published_draws_of_philox() -> None:
    """The known answers of Philox4x32-10 for zeros, and for all bits set."""
    ones, full = np.uint64(0xFFFFFFFF), 2**64 - 1
    zeros = [np.zeros(1, np.uint64)] * 4
    assert [hex(int(word[0])) for word in philox(zeros, 0)] == [
        "0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8",
    ]  # fmt: skip
    assert [hex(int(word[0])) for word in philox([np.full(1, ones)] * 4, full)] == [
        "0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd",
    ]  # fmt: skip


# --- what CuPy refuses ----------------------------------------------------------------------------

REFUSED: dict[str, Any] = {
    "initial": lambda cupy, x: x.max(axis=0, initial=0),
    "where": lambda cupy, x: cupy.sum(x, where=True),
    "ndarrays": lambda cupy, x: cupy.add(x, np.ones(3)),
    "complex numbers at one place": lambda cupy, x: cupy.add.at(x * 1j, [0], x[:1] * 1j),
    "small integers at one place": lambda cupy, x: cupy.add.at(x.astype("int8"), [0], x[:1]),
    "half precision at one place": lambda cupy, x: cupy.maximum.at(x.astype("float16"), [0], x[:1]),
    "logic of complex numbers": lambda cupy, x: cupy.logical_not(x * 1j),
    "order of bfloat16": lambda cupy, x: cupy.sort(x.astype(dtypes.bfloat16.numpy_dtype)),
    "views to write to": lambda cupy, x: cupy.lib.stride_tricks.sliding_window_view(
        x, 2, 0, writeable=True
    ),
    "a wider format than double": lambda cupy, x: x.astype(np.longdouble),
}
"""Calls that NumPy takes and CuPy does not; tests/test_cupy.py asks CuPy itself."""


@pytest.mark.parametrize("name", REFUSED)
def test_the_stand_in_refuses_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_cupy.install(monkeypatch)
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        REFUSED[name](stand_in_cupy, stand_in_cupy.asarray(np.ones(3)))


# --- plans --------------------------------------------------------------------------------------

CHAINS: dict[str, dict[str, tuple[int, ...]]] = {
    "(tanh(x * w + b) ** 2).sum()": {"x": (300,), "w": (300,), "b": (300,)},
    "sigmoid(x * b).sum()": {"x": (20, 15), "b": (15,)},
    "relu((x > 0.25) * x).sum()": {"x": (70,)},
}
"""Programs whose gradients run as plans: over one dimension, with sums over rows, with truth
values.
"""


@needs_compiler
@pytest.mark.parametrize("program", CHAINS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plans(program: str, dtype: Any, cuda: Device) -> None:
    """A chain, forward and backward, gives what it gives on the CPU without plans."""
    generator = np.random.default_rng(7)
    arrays = {
        name: generator.normal(size=shape).astype(dtype) for name, shape in CHAINS[program].items()
    }
    found = {}
    for place in (Device("cpu"), cuda):
        active.state.lazy_from = 1 << 60 if place.type == "cpu" else 1
        leaves = {name: Tensor(backend.moved(each, place), True) for name, each in arrays.items()}
        result = Expression(program)(**leaves)
        backward(result)
        tensors = [result, *[leaf.grad for leaf in leaves.values() if leaf.grad is not None]]
        found[place.type] = [backend.to_host(forced(each.array)) for each in tensors]
    close = 1e-12 if dtype is np.float64 else 2e-6
    for left, right in zip(found["cuda"], found["cpu"], strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=close, atol=close)


@needs_compiler
def test_a_loss_of_lazy_logits(cuda: Device) -> None:
    """What waits for host arrays alone does not wait here."""
    x = np.random.default_rng(3).normal(size=(5, 4))
    classes = np.array([2, 0, 3, 1, 1])
    program = Expression("F.cross_entropy(x * 2, t) + F.nll_loss(F.log_softmax(x, 1) * 1, t)")
    found = []
    for place in (Device("cpu"), cuda):
        active.state.lazy_from = 1 << 60 if place.type == "cpu" else 1
        leaf = Tensor(backend.moved(x, place), True)
        result = program(x=leaf, t=Tensor(backend.moved(classes, place)))
        backward(result)
        assert leaf.grad is not None
        found.append([backend.to_host(forced(each.array)) for each in (result, leaf.grad)])
    for left, right in zip(*found, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)


@needs_compiler
def test_what_no_kernel_is_written_for(cuda: Device) -> None:
    """Such a plan runs as CuPy's own functions, one after another."""
    active.state.lazy_from = 1
    x = np.array([0.5, -1.5, 2.0])
    leaf = Tensor(backend.moved(x, cuda), True)
    result = Expression("(erf(x) * x.double().int() + logaddexp(x, x)).sum()")(x=leaf)
    active.state.lazy_from = 1 << 60
    expected = Expression("(erf(x) * x.double().int() + logaddexp(x, x)).sum()")(x=Tensor(x, True))
    np.testing.assert_allclose(backend.to_host(forced(result.array)), expected.array)


@needs_compiler
def test_a_chain_is_one_kernel_and_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_cupy.install(monkeypatch)
    start = (
        "x = torch.ones(50, device='cuda', requires_grad=True)\n"
        "w = torch.full((50,), 2., device='cuda', requires_grad=True)\n"
    )
    session = run(start).session
    session.state.lazy_from = 1
    counts = stand_in_cupy.counts
    started, waited = counts.launched, counts.synchronised
    for _ in session.run("y = ((x * w + 1).tanh() ** 2).sum()\ny.backward()", "program"):
        pass
    assert counts.synchronised == waited
    # The seed, the kernel, the sum of its blocks, its dtype.
    assert counts.launched - started <= 5
