"""Flat programs: compiled iterations whose functions of arrays run as steps in one call, beside the
interpreter; and what the checker of steps refuses.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
import pytest

from gradcli.arrays.flat.planned import planned
from gradcli.arrays.flat.recorded import NotFlat, Tape, call
from gradcli.arrays.native import dispatch
from gradcli.loops import compiled as compiled_iterations
from gradcli.loops import hot_loop
from gradcli.ops.linalg.products.matrix_products import matrix_product
from gradcli.trace import flat
from gradcli.trace.codegen import Code
from gradcli.trace.ir import Kernel
from tests.late.loop import run
from tests.rows import sampled

CORE: Any = dispatch.core()

built = pytest.mark.skipif(CORE is None, reason="the kernels in C are not built")

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(3)
x = torch.randn(6, 4)
t = torch.randint(0, 3, (6,))
lstm = nn.LSTM(4, 8, batch_first=True)
"""

TRAINED = """\
net = nn.Sequential({layers})
opt = torch.optim.{optimizer}
kept = []
for step in range(150):
    {change}
    opt.zero_grad()
    loss = {loss}
    loss.backward()
    opt.step()
    if step % 10 == 0: kept.append(loss.item())
"""

ROWS = {
    "tanh": ("nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)", "SGD(net.parameters(), 0.1)", ""),
    "relu and momentum": (
        "nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)",
        "SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True)",
        "",
    ),
    "decay": ("nn.Linear(4, 3)", "SGD(net.parameters(), 0.1, weight_decay=0.01)", ""),
    "norm": (
        "nn.Linear(4, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 3)",
        "Adam(net.parameters(), 0.01)",
        "",
    ),
    "batch norm": (
        "nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Sigmoid(), nn.Linear(5, 3)",
        "AdamW(net.parameters(), 0.01)",
        "",
    ),
    "pictures": (
        "nn.Linear(4, 256), nn.Unflatten(1, (4, 8, 8)), nn.Conv2d(4, 16, 3, padding=1),"
        " nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),"
        " nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3)",
        "SGD(net.parameters(), 0.1, momentum=0.9)",
        "",
    ),
    "images": (
        "nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 3, 2, padding=1), nn.BatchNorm2d(3), nn.ReLU(),"
        " nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3, 3)",
        "SGD(net.parameters(), 0.1)",
        "",
    ),
    "windows that leave some out": (
        "nn.Unflatten(1, (2, 2)), nn.Conv1d(2, 4, 2, stride=2), nn.GroupNorm(2, 4), nn.Tanh(),"
        " nn.ConvTranspose1d(4, 2, 3), nn.AvgPool1d(3), nn.Flatten(), nn.Linear(2, 3)",
        "Adam(net.parameters(), 0.01)",
        "",
    ),
    "dropout": (
        "nn.Linear(4, 8), nn.Dropout(0.3), nn.ELU(), nn.Linear(8, 3)",
        "RMSprop(net.parameters(), 0.01)",
        "",
    ),
    "float64": (
        "nn.Linear(4, 5).double(), nn.Tanh(), nn.Linear(5, 3).double()",
        "SGD(net.parameters(), 0.1)",
        "x = torch.randn(6, 4).double()",
    ),
    "one column": ("nn.Linear(4, 1), nn.Tanh(), nn.Linear(1, 3)", "SGD(net.parameters(), 0.1)", ""),
    "a rate that changes": (
        "nn.Linear(4, 3)",
        "SGD(net.parameters(), 0.1)",
        "opt.param_groups[0]['lr'] *= 0.99",
    ),
    "a late rate": (
        "nn.Linear(4, 5), nn.SiLU(), nn.Linear(5, 3)",
        "Adam(net.parameters(), 0.01)",
        "if step == 120: opt.param_groups[0]['lr'] = 0.1",
    ),
    "late betas": (
        "nn.Linear(4, 3)",
        "AdamW(net.parameters(), 0.01)",
        "if step == 120: opt.param_groups[0]['betas'] = (0.5, 0.9)",
    ),
    "ignored classes": (
        "nn.Linear(4, 3)",
        "SGD(net.parameters(), 0.1)",
        "t = torch.where(torch.rand(6) < 0.2, -100, torch.randint(0, 3, (6,)))",
    ),
    "other data": ("nn.Linear(4, 3)", "SGD(net.parameters(), 0.1)", "x = torch.randn(6, 4)"),
    "transposed data": (
        "nn.Linear(4, 3)",
        "SGD(net.parameters(), 0.1)",
        "x = torch.randn(4, 6).t() if step > 120 else torch.randn(6, 4)",
    ),
    "fewer rows": (
        "nn.Linear(4, 3)",
        "SGD(net.parameters(), 0.1)",
        "n = 6 - step // 130; x = torch.randn(n, 4); t = torch.randint(0, 3, (n,))",
    ),
    "a parameter that is replaced": (
        "nn.Linear(4, 3)",
        "SGD(net.parameters(), 0.1)",
        "if step == 125: net[0].weight.data = torch.ones(3, 4)",
    ),
    "a class that does not exist": (
        "nn.Linear(4, 3)",
        "SGD(net.parameters(), 0.1)",
        "if step == 125: t = torch.full((6,), 3)",
    ),
}
"""Networks, optimizers, and what changes in every iteration."""

LOOPS = {
    "sums": "y = (x.sum(0) * w).sum() + x.mean(1).max() + x.t().sum(1)[0]",
    "views": "y = (x.view(2, 12).t()[::2] * w.view(2, 2).reshape(-1)[:2]).sum()",
    "products": "y = (x @ w.view(4, 1) @ w.view(1, 4)).pow(2).mean() + (w @ w)",
    "batches": "y = torch.bmm(x.view(2, 3, 4), w.view(1, 4, 1).expand(2, 4, 1)).exp().sum()",
    "softmax": "y = (torch.softmax(x * w, 1) * torch.log_softmax(x + w, 0)).sum()",
    "choices": "y = torch.where(x > w, x * w, w.abs()).clamp(-1, 1).sum()",
    "places": "y = x[t % 4, t] @ x[:, 1] * w[t[:2]].sum()",
    "picked": "y = (x[torch.arange(6), t] * w[t]).sum() + x[t, t].prod() * w.prod()",
    "picked, and from the end late": (
        "i = t - step // 130 * 3; y = (x[torch.arange(6), i] * w.sum()).sum() + w[i].prod()"
    ),
    "placed": (
        "y = F.cross_entropy(x * w, t, weight=w.detach() ** 2) + F.nll_loss(x * w, t - step // 130)"
    ),
    "norms": "y = F.normalize(x * w, dim=1).sum() + torch.linalg.norm(w) + w.std()",
    "joined": "y = torch.cat([x, w[None]], 0).cumsum(0).prod(1).sum()",
    "in place": "v = x * 2; v.mul_(3); v += 1; y = (v * w).sum()",
    "attended": (
        "q, k, v = (x[:, :3, None] * w[:1]).view(1, 2, 3, 3).repeat(3, 1, 1, 1).unbind(0)\n"
        "    y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True).sum()"
    ),
    "a recurrent layer": "y = (lstm(x.view(2, 3, 4) * w)[0] ** 2).sum()",
    "solved": (
        "m = x.t() @ x + w.diag_embed() ** 2 + torch.eye(4)\n"
        "    y = torch.cholesky_solve(w[:, None], torch.linalg.cholesky(m)).sum()"
        " + torch.linalg.solve(m, w).sum()"
    ),
    "decomposed": (
        "c = torch.linalg.cholesky(x.t() @ x + w.diag_embed() ** 2 + torch.eye(4))\n"
        "    z = torch.linalg.solve_triangular(c, x.t() * w[:, None], upper=False)\n"
        "    y = torch.cholesky_solve(z, c).sum() + c.diagonal().log().sum() + z.tril().exp().sum()"
    ),
    "drawn": "y = (torch.randn_like(x) * w).sum() + x[torch.randint(0, 6, (3,))].mean() * w.sum()",
    "drawn, and another way late": (
        "i = torch.randint(-step // 130, 6, (3,)); y = (x[i] * w * torch.rand(4)).sum()"
    ),
    "drawn ahead of a test": (
        "y = (torch.rand(4) * w).sum()\n    if torch.rand(()) < 0.05: y = y * 2\n    y = y + 1"
    ),
    "cast": (
        "y = ((x.double() * 2).float() * w * (x > 0)).sum() + (t * w[0]).sum().double()"
        " + torch.clamp(w, -1., 1.).sum() + F.relu(x[:, ::2].reshape(3, 4) * w).sum()"
    ),
    "looked up": "y = (F.embedding(t, w.view(2, 2).repeat(2, 1)) * x[:, :2]).sum()",
    "rows that are drawn": (
        "y = (w.view(4, 1).expand(4, 2)[torch.randint(0, 4, (6,))] * x[:, :2]).sum()"
    ),
    "rows from a place that is drawn": ("i = torch.randint(0, 4, ()); y = (x[i:i + 2] * w).sum()"),
    "a batch of windows": (
        "y = (torch.stack([x.view(-1)[i:i + 4] for i in torch.randint(20, (3,))]) * w).sum()"
    ),
    "gathered": (
        "y = (x * w).gather(1, t[:, None]).sum() + (w * w).expand(6, 4).gather(1, t[:, None]).max()"
    ),
    "added": "y = (torch.zeros(3, 4).index_add(0, t, x * w) ** 2).sum()",
    "scattered": (
        "y = (torch.zeros(6, 4).scatter_add(1, t[:, None] + x.long() % 2, x * w) ** 2).sum()"
    ),
    "expanded": "y = (w[:, None].expand(4, 4).t() @ w.expand(2, 4).t()).sum() + w.new_ones(3)[0]",
    "a number": "y = (w * torch.zeros(()) + torch.full((4,), 0.5)).sum() + (step % 7) * w.sum()",
    "losses": "y = F.mse_loss(x * w, x) + F.smooth_l1_loss(w, x[0]) + F.l1_loss(w.abs(), x[1])",
}
"""What an iteration computes of x, t and a leaf w."""

LOOP = """\
w = torch.tensor([0.5, -1., 2., 0.25], requires_grad=True)
kept = []
for step in range(150):
    {body}
    (y * 0.01).backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
    if step % 10 == 0: kept.append(y.item())
"""

PROGRAMS = {
    name: TRAINED.format(
        layers=layers,
        optimizer=optimizer,
        change=change or "pass",
        loss="F.cross_entropy(net(x), t)",
    )
    for name, (layers, optimizer, change) in ROWS.items()
} | {name: LOOP.format(body=body) for name, body in LOOPS.items()}


WHOLE = [
    *("tanh", "norm", "batch norm", "images", "windows that leave some out", "looked up"),
    *("attended", "a recurrent layer", "solved", "decomposed", "rows that are drawn"),
    *("pictures", "cast"),
]
"""Those whose iterations leave no function of arrays to Python."""

IN_C = ["tanh", "relu and momentum", "pictures", "cast", "decomposed", "a recurrent layer"]
"""Those whose programs call nothing."""


@built
@pytest.mark.parametrize("name", sampled(PROGRAMS, 2))
def test_flat_programs_do_what_the_interpreter_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_loop, "FLAT_AFTER", 3)
    made: list[int] = []
    closed = flat._Segment.close

    called: list[Any] = []

    def close(segment: Any, *rest: Any) -> Any:
        instructions = closed(segment, *rest)
        called.extend(step for step in segment.tape.steps if step[0] == "call")
        made.extend(len(segment.instructions) for each in instructions if _is_program(each))
        return instructions

    monkeypatch.setattr(flat._Segment, "close", close)
    left: list[str] = []
    added = flat._Segment.add

    def add(segment: Any, instruction: Any) -> bool:
        taken = added(segment, instruction)
        if not taken and not segment.instructions and isinstance(instruction.op, Kernel):
            left.append(instruction.op.name)
        return taken

    monkeypatch.setattr(flat._Segment, "add", add)
    compiled, interpreted = run(HEAD + PROGRAMS[name]), run(HEAD + PROGRAMS[name], compiles=False)
    assert [*compiled.differences(interpreted)] == []
    assert compiled.compiled > 20
    assert sum(made) > 3
    assert name not in WHOLE or not left
    assert name not in IN_C or not called


@built
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("settings", ["0.1", "0.1, weight_decay=0.01"])
def test_a_rate_that_changes_is_a_number_of_the_steps(
    optimizer: str, settings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions that stand for a flat program never run."""
    monkeypatch.setattr(hot_loop, "FLAT_AFTER", 3)
    ran: list[str] = []

    def later(self: Any, head: str, body: Any, where: str) -> Any:
        def function(*given: Any) -> Any:
            ran.append(head)
            return self.function(head, body, where)(*given)

        return function

    monkeypatch.setattr(Code, "function_later", later)
    program = TRAINED.format(
        layers="nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)",
        optimizer=f"{optimizer}(net.parameters(), {settings})",
        change="opt.param_groups[0]['lr'] *= 0.99",
        loss="F.cross_entropy(net(x), t)",
    )
    found, interpreted = run(HEAD + program), run(HEAD + program, compiles=False)
    assert found.compiled > 100
    assert [*found.differences(interpreted)] == []
    assert not ran


LARGE = """\
wide = torch.randn(400, 400)
w = (torch.randn(400, 400) * 0.1).requires_grad_()
v = torch.ones(6, 4, requires_grad=True)
for step in range(150):
    loss = (torch.tanh(wide * w) ** 2).mean() + (torch.tanh(x * v + 1) * v).sum()
    loss.backward()
    with torch.no_grad():
        for p in (w, v):
            p -= 0.01 * p.grad
            p.grad = None
"""


@built
def test_arrays_of_a_recorded_iteration_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The large ones when its code is made, the others as they are written down on a tape."""
    monkeypatch.setattr(hot_loop, "FLAT_AFTER", 3)
    held: list[Any] = []
    left: list[Any] = []
    programs: list[Any] = []

    def let_go(trace: Any) -> None:
        arrays = [v.array for each in trace.instructions for v in each.results]
        held.extend(ref(each) for each in arrays if getattr(each, "nbytes", 0) > flat.LARGEST)
        flat.let_large_go(trace)

    def flattened(trace: Any, *rest: Any) -> Any:
        left.extend(each() for each in held)
        arrays = [v.array for each in trace.instructions for v in each.results]
        small = [ref(each) for each in arrays if getattr(each, "shape", ()) == (6, 4)]
        del arrays
        made = flat.flattened(trace, *rest)
        assert len(small) > 3
        left.extend(each() for each in small)
        programs.extend(each for each in made.instructions if _is_program(each))
        return made

    monkeypatch.setattr(compiled_iterations, "let_large_go", let_go)
    monkeypatch.setattr(compiled_iterations, "flattened", flattened)
    found, interpreted = run(HEAD + LARGE), run(HEAD + LARGE, compiles=False)
    assert found.compiled > 100
    assert [*found.differences(interpreted)] == []
    assert len(held) > 3
    assert programs
    assert not any(each is not None for each in left)


def _is_program(instruction: Any) -> bool:
    return CORE is not None and type(getattr(instruction.op, "function", None)) is CORE.Program


# --- what the checker refuses ---------------------------------------------------------------------

one, two = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
wide, fixed = np.ones((2, 3)), np.broadcast_to(np.float32(1), (2, 3))
some, where = np.zeros(2, np.float32), np.zeros(2, np.int64)
floats = np.add.types.index("ff->f")
line = one.reshape(6)
added = ("loop", np.add, floats, line, line, line)

REFUSED: dict[str, Any] = {
    "no tuple": 3,
    "nothing": (),
    "no such step": ("jump", one),
    "too few words": ("loop", np.add),
    "no ufunc": ("loop", max, 0, one, one, one),
    "no such loop": ("loop", np.add, 1000, one, one, one),
    "a negative loop": ("loop", np.add, -1, one, one, one),
    "too few operands": ("loop", np.add, floats, one, one),
    "another dtype": ("loop", np.add, floats, one, one, wide),
    "another shape": ("loop", np.add, floats, one, two, one),
    "another rank": ("loop", np.add, floats, one, one[0], one),
    "no dimension": ("loop", np.add, floats, *[np.ones((), np.float32)] * 3),
    "a result that cannot be written": ("loop", np.add, floats, one, one, fixed),
    "no array": ("loop", np.add, floats, one, "one", one),
    "unaligned": (
        *("loop", np.add, floats, one, one),
        np.frombuffer(bytearray(25), np.uint8)[1:].view(np.float32).reshape(2, 3),
    ),
    "matrices that do not fit": (
        "product",
        np.matmul,
        np.matmul.types.index("ff->f"),
        one,
        one,
        one,
    ),
    "no matrices": ("product", np.matmul, np.matmul.types.index("ff->f"), *[one[0]] * 3),
    "no such kernel": ("kernel", "sofmax", one),
    "too few arguments": ("kernel", "softmax", one),
    "a kernel of another dtype": ("kernel", "erf", wide, wide),
    "a copy of another shape": ("copy", one, two),
    "a copy of another dtype": ("copy", one, one.astype(np.int64)),
    "other bytes": ("same", one, b"1"),
    "no bytes": ("same", one, "1"),
    "no arguments": ("call", print, 3),
    "a count of floats": ("nonzero", one, 6),
    "a count that is no number": ("nonzero", one > 0, "6"),
    "no list": ("read", np, "pi", None),
    "a list of two": ("put", np, "pi", [1, 2], 3),
    "no number to add": ("put", np, "pi", [1]),
    "no value": ("set", np, "pi"),
    "positions of 32 bits": ("take", one, np.zeros(2, np.int32), one),
    "positions that are floats": ("take", one, np.zeros(2), one),
    "rows of no array": ("take", np.float32(1), np.zeros(2, np.int64), one),
    "rows of an empty array": ("take", one[:0], np.zeros(2, np.int64), one),
    "rows that do not lie in a row": ("take", one.T, np.zeros(2, np.int64), one),
    "more positions than rows": ("take", one, np.zeros(3, np.int64), one),
    "positions of another width": ("pick", one, some, *[np.zeros(2, np.int32)] * 2),
    "too few positions": ("pick", one, some, where),
    "positions of another shape": ("pick", one, some, where, where[:1]),
    "elements of another dtype": ("place", one, np.zeros(2), where, where),
    "integers that are added": ("add", np.zeros(2, int), np.zeros(2, int), where),
    "places that cannot be written": ("place", fixed, some, where, where),
    "elements that cannot be written": ("pick", one, fixed[0, :2], where, where),
    "a choice by what is no bool": ("where", one, one, one, one.copy()),
    "a choice of two dtypes": ("where", one > 0, one, wide, one.copy()),
    "a choice of other shapes": ("where", one > 0, one, two, one.copy()),
    "a choice that cannot be written": ("where", one > 0, one, one, fixed),
    "a choice of three": ("where", one > 0, one, one),
    "a chain of nothing": ("chain", 6, 2),
    "a chain of no block": ("chain", 6, 0, added),
    "a chain of a length that is none": ("chain", "6", 2, added),
    "a chain of other lengths": ("chain", 5, 2, added),
    "a chain of a copy": ("chain", 6, 2, ("copy", line, line)),
    "a chain of what is no step": ("chain", 6, 2, 3),
    "a chain of loops over rows": ("chain", 3, 2, ("loop", np.add, floats, one, one, one)),
    "a chain of another dtype": ("chain", 6, 2, (*added[:5], wide.reshape(6))),
    "a chain of too few operands": ("chain", 6, 2, added[:5]),
    "a chain that writes what is fixed": ("chain", 3, 2, (*added[:3], *[fixed[0]] * 3)),
    "rows of another dtype": ("take", one, np.zeros(2, np.int64), one.astype(np.int32)),
}
"""Steps that are none."""


@built
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_step_is_refused(name: str) -> None:
    with pytest.raises((AttributeError, BufferError, TypeError, ValueError)):
        CORE.Program((REFUSED[name],), (), (), print)


@pytest.mark.parametrize("make", [np.array, np.asarray, np.ascontiguousarray, np.float32])
def test_numpy_makes_no_array_of_objects_from_what_is_written_down(make: Any) -> None:
    """As it would, with a step for each element of each product."""
    with pytest.raises(NotFlat):
        make(Tape().record(np.ones((2, 2), np.float32)))


# --- steps by chance ------------------------------------------------------------------------------

_CASES = 5_000

_POOL, _INSIDE = 4096, slice(1536, 2560)
_DTYPES = [np.float32, np.float64, np.int64, np.int32, np.bool_]
_FORMS: list[tuple[Any, ...]] = [
    ("loop", np.add, floats, "f", "f", "f"),
    ("loop", np.maximum, np.maximum.types.index("dd->d"), "d", "d", "d"),
    ("loop", np.greater, np.greater.types.index("ff->?"), "f", "f", "?"),
    ("product", np.matmul, np.matmul.types.index("ff->f"), "f", "f", "f"),
    ("copy", "f", "f"),
    ("copy", "f", "d"),
    ("copy", "q", "f"),
    ("where", "?", "f", "f", "f"),
    ("take", "f", "q", "f"),
    ("pick", "f", "f", "q", "q"),
    ("place", "f", "f", "q"),
    ("add", "d", "d", "q", "q"),
    ("chain", 4, 2, ("loop", np.add, floats, "f", "f", "f")),
    ("same", "f", bytes(16)),
    ("nonzero", "?", 3),
    ("kernel", "erf", "f", "f"),
    ("kernel", "add_scaled", "f", "f", 0.5, "f", 1),
]
"""Steps, with the letters of dtypes in place of arrays."""


def _array_by_chance(rng: Any, pool: bytearray, letter: str, shape: tuple[int, ...]) -> Any:
    """An array anywhere inside of the pool: in a row, with gaps, backwards, or repeated."""
    dtype = np.dtype(letter if rng.random() < 0.93 else rng.choice(_DTYPES))
    if rng.random() < 0.25:
        shape = tuple(int(each) for each in rng.integers(0, 5, rng.integers(0, 4)))
    strides, apart = [], dtype.itemsize
    for size in reversed(shape):
        strides.append(apart * int(rng.choice([1, 1, 1, 1, 1, -1, 0, 2])))
        apart = max(apart * max(size, 1), abs(strides[-1]) * max(size, 1))
    strides.reverse()
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size]
    low, high = sum(min(each, 0) for each in ends), sum(max(each, 0) for each in ends)
    room = _INSIDE.stop - _INSIDE.start - (high - low) - dtype.itemsize
    if room < 0:
        return np.zeros(shape, dtype)
    offset = _INSIDE.start - low + int(rng.integers(0, room + 1))
    if rng.random() < 0.95:
        offset -= (offset + low - _INSIDE.start) % dtype.itemsize
    return np.ndarray(shape, dtype, pool, offset, strides)


def _step_by_chance(rng: Any, pool: bytearray, form: Any) -> tuple[Any, ...]:
    shape = tuple(int(each) for each in rng.integers(1, 5, rng.integers(1, 4)))
    if form[0] in ("take", "pick", "place", "add", "product"):
        shape = (int(rng.integers(1, 4)),) * (2 if form[0] == "product" else 1)
    if form[0] == "chain":
        shape = (4,)
    step: list[Any] = []
    for number, each in enumerate(form):
        if type(each) is tuple:
            step.append(_step_by_chance(rng, pool, each))
        elif number and isinstance(each, str) and len(each) == 1:
            step.append(_array_by_chance(rng, pool, each, shape))
        else:
            step.append(each)
    chance = rng.random()
    if chance < 0.06 and len(step) > 1:
        del step[int(rng.integers(1, len(step)))]
    elif chance < 0.12:
        step.append(step[int(rng.integers(1, len(step)))])
    elif chance < 0.2:
        step[int(rng.integers(1, len(step)))] = int(rng.choice([-1, 0, 1, 7, 1 << 40]))
    return tuple(step)


@built
def test_steps_by_chance_are_refused_or_stay_within_their_arrays() -> None:
    """Nothing is written beside the memory of a step's arrays, whatever the checker lets pass."""
    rng, outcomes = np.random.default_rng(0), {"refused": 0, "ran": 0}
    for _ in range(_CASES):
        pool = bytearray(b"\xab" * _POOL)
        places = rng.integers(-2, 5, (_INSIDE.stop - _INSIDE.start) // 8)
        pool[_INSIDE] = places.astype(np.int64).tobytes()
        form = _FORMS[rng.integers(len(_FORMS))]
        step = _step_by_chance(rng, pool, form)
        try:
            program = CORE.Program((step,), (), (), _nothing)
        except (AttributeError, BufferError, OverflowError, TypeError, ValueError):
            outcomes["refused"] += 1
            continue
        program()
        outcomes["ran"] += 1
        beside = pool[: _INSIDE.start] + pool[_INSIDE.stop :]
        assert beside == b"\xab" * len(beside), step
    assert min(outcomes.values()) > _CASES // 5, outcomes


def _nothing(*given: Any) -> tuple[Any, ...]:
    return ()


# --- memory that is used again --------------------------------------------------------------------


@built
@pytest.mark.parametrize("shape", [(3, 5), (40, 60), (7, 300), (1, 5000), (5000, 1)])
def test_steps_on_memory_that_is_used_again_leave_the_same(shape: tuple[int, int]) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tape, given = Tape(), [rng.standard_normal(size) for size in (shape, shape[1:], (1, 1))]
        given += [rng.standard_normal((shape[0], 1))]
        made = [tape.record(each.astype(np.float32)) for each in given]
        for _ in range(25):
            _compute_one_more(made, shape, rng)
        kept = [each.array for each in made[-3:]] + [each.array for each in made[: len(given)]]
        results = []
        written = [*tape.steps]
        for steps in (written, planned(tape.steps, tape.own, kept)[0]):
            for each, values in zip(made, given, strict=False):
                each.array[...] = values
            for each in made[-3:]:
                each.array[...] = 7
            assert CORE.Program(tuple(steps), (), (), print)() == ()
            results.append([each.tobytes() for each in kept])
        assert results[0] == results[1], seed


def _compute_one_more(made: list[Any], shape: tuple[int, int], rng: Any) -> None:
    """What one more function of arrays makes of some of those that were made."""
    one, other = [made[rng.integers(len(made))] for _ in range(2)]
    match rng.integers(8):
        case 0:
            made.append(np.tanh(one + other) * one)
        case 1:
            made.append((one - other) * 0.5)
        case 2:
            made.append((one * other).sum(0, keepdims=True))
        case 3:
            made.append(-(one + other).max(-1, keepdims=True))
        case 4:
            made.append(np.multiply(made[0], one) - made[1])
        case 5 if one.shape == shape:
            made.append(one.T.copy().T + other)
        case 6 if one.shape == shape and one is not made[0]:
            one += other
        case _:
            made.append(one.astype(np.float64).astype(np.float32) - made[3])


@built
def test_memory_is_used_again() -> None:
    tape = Tape()
    x = tape.record(np.ones((50, 100), np.float32))
    y: Any = x
    for _ in range(10):
        y = np.tanh(y) * x
    planned_steps, are_anew = planned(tape.steps, tape.own, [x.array, y.array])
    steps = [*planned_steps]
    assert are_anew == [False, True]
    assert [each[0] for each in steps] == ["chain"]
    arrays = [each for link in steps[0][3:] for each in link[3:]]
    assert len({each.__array_interface__["data"][0] for each in arrays}) == 4


class _Holder:
    def __init__(self, array: Any) -> None:
        self.arrays = {"one": [array]}

    def fill(self, other: Any) -> None:
        self.arrays["one"][0][...] = other


def _filling(array: Any) -> Any:
    return lambda other: np.copyto(array, other)


def _filling_its_default(array: Any) -> Any:
    return lambda other, own=array: np.copyto(own, other)


HOLDERS: dict[str, Any] = {
    "an argument": lambda array: partial(np.copyto, array),
    "a method of an array's in C": lambda array: partial(array.__setitem__, ...),
    "a method of an object that holds it": lambda array: _Holder(array).fill,
    "a function around it": _filling,
    "a function's default": _filling_its_default,
    "a keyword": lambda array: partial(np.positive, out=array),
    "a list in a list": lambda array: partial(
        lambda arrays, other: np.copyto(arrays[0][0], other), [[array]]
    ),
}
"""What writes to an array that it holds."""


@built
@pytest.mark.parametrize("holder", HOLDERS)
def test_what_a_call_reads_stays_where_it_is(holder: str) -> None:
    tape = Tape()
    x = tape.record(np.ones((50, 100), np.float32))
    y, last = x * 2, x * 3
    z = y * 5
    tape.steps.append(call(HOLDERS[holder](last.array), z.array))
    steps, _ = planned(tape.steps, tape.own, [x.array])
    assert CORE.Program(steps, (), (), print)() == ()
    assert (last.array == 10).all()


@built
@pytest.mark.parametrize(
    "turns",
    [
        *[(one,), (one, one, two), (one, one, one.astype(int)), (one, one, fixed), (one, two)],
        *[(one, fixed), (one, one.astype(int)), (np.ones((2, 3)), np.ones((3, 2)).T)],
        (np.ones(8)[::2], np.ones(8)[::2]),
    ],
)
def test_turns_that_do_not_fit_are_refused(turns: tuple[Any, ...]) -> None:
    with pytest.raises((BufferError, ValueError)):
        CORE.Program((), (), (turns,), print)


@built
def test_what_a_run_leaves_stands_until_the_run_after_the_next_one() -> None:
    target = np.zeros(3, np.float32)
    program = CORE.Program((), (target,), ((target, target.copy(), target.copy()),), print)
    first, second = [program(np.full(3, k, np.float32))[0] for k in (1, 2)]
    assert (first.tolist(), second.tolist()) == ([1, 1, 1], [2, 2, 2])
    assert program(np.full(3, 3, np.float32))[0] is first


@built
def test_what_steps_make_anew_is_made_in_two_arrays_by_turns() -> None:
    """By loops, chains and kernels; what ended early leaves what the last run made."""
    tape = Tape()
    x = tape.record(np.ones((40, 150), np.float32))
    y: Any = np.tanh(x) * x + x
    z = y * 2
    y, z = y.array, z.array
    flag, sums = np.ones(1, bool), np.empty((40, 150), np.float32)
    steps, are_anew = planned(tape.steps, tape.own, [y, z])
    assert are_anew == [True, True]
    sum_of_rows = ("kernel", "running_sum", z, sums, 150, 1, 0, 1, 0)
    outputs = tuple([(each, np.empty_like(each)) for each in (y, z, sums)])
    program = CORE.Program(
        (*steps, sum_of_rows, ("nonzero", flag, 1)), (x.array,), outputs, lambda _: "ended"
    )
    left: list[Any] = []
    for k in range(1, 6):
        given = np.full((40, 150), k, np.float32) + np.arange(150, dtype=np.float32)
        left.append(program(given))
        flag[0] = False
        assert program(-given) == "ended"
        flag[0] = True
        product = np.tanh(given) * given + given
        for found, wanted in zip(
            left[-1], (product, product * 2, np.cumsum(product * 2, 1)), strict=True
        ):
            np.testing.assert_allclose(found, wanted, 1e-5)
    assert all(one is other for one, other in zip(left[0], left[2], strict=True))


@built
def test_what_a_kernel_makes_anew_is_made_by_turns_and_lies_where_others_did() -> None:
    def gradient(tape: Tape, x: Any) -> Any:
        """Two products by the kernel: the memory of the first one is free behind the second."""
        with dispatch.replaced(partial(flat._kernel_on_tape, tape)):
            return matrix_product(matrix_product(x, x), x) * 2

    tape = Tape()
    x = tape.record(np.ones((128, 128), np.float32))
    y = gradient(tape, x)
    planned_steps, are_anew = planned(tape.steps, tape.own, [x.array, y.array])
    steps = [*planned_steps]
    assert are_anew == [False, True]
    kinds = [each[0] for each in steps]
    if CORE.serves("matrix_product"):
        assert kinds[:2] == ["kernel", "kernel"]
    outputs = ((y.array, np.empty_like(y.array)),)
    program = CORE.Program(steps, (x.array,), outputs, print)
    for k in range(1, 4):
        (found,) = program(np.full((128, 128), k, np.float32))
        np.testing.assert_array_equal(found, np.float32(2 * 128**2 * k**3))


@built
def test_a_run_that_ends_early_is_undone_if_it_has_begun() -> None:
    undone: list[None] = []
    target, positions = np.zeros(2, np.float32), np.array([0, 2])
    take = ("take", target, positions, target.copy())
    program = CORE.Program(
        (take,), (target,), (), lambda each: each.sum(), lambda: undone.append(None)
    )
    assert program(np.ones(2, np.float32)) == 2
    assert undone == [None]
    assert program(np.ones(3, np.float32)) == 3
    assert undone == [None]
    positions[1] = 1
    assert program(np.ones(2, np.float32)) == ()


@built
def test_a_program_that_cannot_go_on_is_left_to_the_function() -> None:
    target = np.zeros(3, np.float32)
    steps = (("call", _failing, ()),)
    program = CORE.Program(steps, (target,), (target.copy,), lambda each: each.sum())
    assert program(np.ones(3, np.float32)) == 3
    other = CORE.Program((), (target,), (target.copy,), lambda each: "another kind")
    assert other(np.ones(4, np.float32)) == "another kind"
    assert other(np.ones(3)) == "another kind"
    assert other(np.ones(6, np.float32)[::2]) == "another kind"
    assert other("text") == "another kind"
    assert other(np.ones(3, np.float32))[0].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="arguments"):
        other()


@built
@pytest.mark.parametrize("at", [(-1, 0), (0, 3), (2, 0)])
@pytest.mark.parametrize(("step", "left"), [("pick", (5, 5)), ("place", (9, 9)), ("add", (9, 14))])
def test_positions_that_are_not_there_end_a_run(
    step: str, left: tuple[int, int], at: tuple[int, int]
) -> None:
    whole, values = np.arange(6, dtype=np.float32).reshape(2, 3), np.full(1, 9, np.float32)
    rows, columns = np.array([1]), np.array([2])
    program = CORE.Program(
        ((step, whole, values, rows, columns),), (), (values.copy, whole.copy), lambda: "ended"
    )
    number, _ = program()
    assert (number[0], whole[1, 2]) == left
    rows[0], columns[0] = at
    assert program() == "ended"


@built
def test_a_run_within_a_run_is_left_to_the_function() -> None:
    """Their memory is one: the inner run would write over what the outer one has computed."""
    seen: list[float] = []
    target = np.zeros(1, np.float32)
    given = np.ones(1, np.float32)
    again: list[Any] = []
    steps = (("call", lambda: seen.append(again[0](given + 1)), ()),)
    program = CORE.Program(steps, (target,), (target.copy,), lambda each: each.sum() * 10)
    again.append(program)
    assert program(given)[0].tolist() == [1]
    assert seen == [20]


@built
def test_large_loops_let_other_threads_run() -> None:
    """Of two threads in one program, one takes the function."""
    much = np.ones((1000, 1000), np.float32)
    number = next(k for k, each in enumerate(np.matmul.types) if each == "ff->f")
    step = ("product", np.matmul, number, much, much, np.empty_like(much))
    target = np.zeros(1, np.float32)
    program = CORE.Program((step,) * 20, (target,), (target.copy,), lambda each: "the function")
    started, ended, counted = threading.Event(), threading.Event(), 0
    left: list[Any] = []

    def work() -> None:
        started.set()
        left.append(program(target + 1))
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    while not ended.is_set() and counted < 3:
        counted += program(target) == "the function"
    thread.join()
    assert counted == 3
    assert left[0][0].tolist() == [1]


@built
def test_what_fails_behind_a_change_is_an_error() -> None:
    """The function must not change it a second time."""
    steps = (("changes",), ("same", np.ones(1, np.bool_), b"\0"))
    with pytest.raises(RuntimeError, match="behind a change"):
        CORE.Program(steps, (), (), print)()
    with pytest.raises(ZeroDivisionError):
        CORE.Program((("changes",), ("call", divmod, (1, 0))), (), (), print)()


def _failing() -> None:
    raise RuntimeError
