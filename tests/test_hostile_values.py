"""Values that nobody writes on purpose: each ends in an error with a place, none in E901."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradcli.limits import Limits
from gradcli.repl.editor import EntryHistory
from tests.command_line import CommandLine
from tests.rows import each_row
from tests.running import run as run_program

HUGE = "10**400"

COMMANDS = {
    "a binding": (["y = x*2", f"x={HUGE}"], 4, "E501"),
    "a seed": (["y = x*2", "x=2", "--seed", HUGE], 4, "E501"),
    "no time": (["y = x*2", "x=2", "--timeout", "nan"], 2, "nan is no number of seconds"),
    "all memory": (["y = x*2", "x=2", "--max-memory", "99999999999TB"], 0, ""),
    "a text for a gradient": (["check", "y = x*2", "x=2", "--equals", '"a"'], 3, "E202"),
    "a huge gradient": (["check", "y = x*2", "x=2", "--equals", HUGE], 3, "E202"),
    "a text in a file": (["check", "y = x*2", "x=2", "--against", "text.json"], 4, "E505"),
    "uneven lists in a file": (["check", "y = x*2", "x=2", "--against", "uneven.json"], 4, "E505"),
    "half a file": (["check", "y = x*2", "x=2", "--against", "half.npz"], 4, "E504"),
    "a file in the sandbox": (
        ["check", "y = x*2", "x=2", "--against", "text.json", "--sandbox"], 5, "E606",
    ),
    "a record": (["y = x*2", "--inputs", "records.jsonl"], 4, "E501"),
    "infinity for an integer": (["run", "count.grad", "n=inf"], 4, "E501"),
    "nan for an integer": (["run", "count.grad", "n=nan"], 4, "E501"),
    "an integer for a float": (["run", "rate.grad", f"rate={HUGE}"], 4, "E501"),
}  # fmt: skip

FILES = {
    "text.json": '"abc"',
    "uneven.json": '{"x": [[1, 2], [3]]}',
    "half.npz": "PK\x03\x04 and no more",
    "records.jsonl": '{"x": 1' + "0" * 400 + "}\n",
    "count.grad": "n = 3\nprint(n)\n",
    "rate.grad": "rate = 0.5\nprint(rate)\n",
}


@pytest.mark.parametrize("case", COMMANDS)
def test_command_line(
    case: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words, code, text = COMMANDS[case]
    finished = CommandLine(capsys)(*words)
    assert finished.code == code, finished.err
    assert text in finished.err + finished.out


PROGRAMS = {
    "nn.Linear(1, 1).get_submodule(1)": "AttributeError",
    "A().p": "TypeError",
    "O().step()": "AttributeError",
    "O().state_dict()": "AttributeError",
    "ones(1)[(None,) * 100]": "RuntimeError",
    "ones((1,) * 70)": "RuntimeError",
    "ones(3)[10**30]": "ValueError",
    "nn.Linear(1, 1).get_parameter(1)": "AttributeError",
    "torch.utils.data.default_collate(ones(3))": "TypeError",
    "nn.utils.rnn.unpad_sequence(ones(2), [1])": "TypeError",
    "nn.BatchNorm1d(3, eps='a')(torch.arange(6.).view(2, 3))": "TypeError",
    "sgd.param_groups.append(1)\n    sgd.step()": "TypeError",
    "sgd.param_groups[0]['params'].append(1)\n    sgd.zero_grad()": "AttributeError",
    "sgd.param_groups = 3\n    sgd.step()": "TypeError",
    "torch.optim.lr_scheduler.StepLR(sgd, 1).load_state_dict(3)": "TypeError",
    "torch.special.chebyshev_polynomial_t(ones(1), 1j)": "NotImplementedError",
    "torch.special.chebyshev_polynomial_t(tensor([1j]), 1)": "NotImplementedError",
    "torch.dropout_(input=3)": "TypeError",
    "torch.exp_()": "TypeError",
    "zeros(0, 2**62)": "RuntimeError",
    "ones(1).expand(2**62)": "RuntimeError",
    "F.one_hot(tensor([2**62]))": "RuntimeError",
    "torch.sum(ones(3)[10**5000])": "ValueError",
    "torch.autograd.graph.saved_tensors_hooks(1, 1)": "TypeError",
    "torch.vmap(V.apply)(ones(3))": "RuntimeError",
    "tensor([True])._neg_view()": "NotImplementedError",
    "A().s": "AttributeError",
    "A().p = 1": "TypeError",
    "del A().p": "TypeError",
    "o = O()\n    o.zero_grad()": "AttributeError",
    "str(O())": "AttributeError",
    "O().add_param_group({'params': []})": "AttributeError",
    "torch.optim.lr_scheduler.StepLR(O(), 1)": "AttributeError",
    "S(3)(1)": "TypeError",
    "adam.state[w]['exp_avg'] = 3\n    adam.step()": "AttributeError",
    "adam.state[w]['step'] = 'a'\n    adam.step()": "AttributeError",
    "step = torch.optim.lr_scheduler.StepLR(sgd, 1)\n    step.optimizer = 3\n    step.step()": (
        "AttributeError"
    ),
    "torch.vmap(W.apply)(ones(3))": "ValueError",
    "torch.distributions.Independent(ones(1), 0)": "AttributeError",
    "torch.distributions.MultivariateNormal(torch.float64)": "AttributeError",
    "for x in torch.utils.data.DataLoader(nn.ReLU()): print(x)": "TypeError",
    "list(torch.utils.data.SubsetRandomSampler(3))": "TypeError",
    "np.float64(2)[0]": "IndexError",
    "enum.IntFlag(3)": "TypeError",
    "print(typing.TypeVar(3))": "TypeError",
    "abc.ABCMeta(3)": "TypeError",
    "torch.vmap(torch.vmap(lambda i: torch.nan_to_num_(i, 1, 't')))(ones(2, 3))": "TypeError",
    "ones(2).abs_(1)": "TypeError",
    "torch.distributions.Beta(ones(2) * 1j, 1.)": "NotImplementedError",
    "torch.distributions.Poisson(ones(2) * 1j)": "NotImplementedError",
    "torch.poisson(ones(2) * 1j)": "NotImplementedError",
}
"""What a program asks for that no check refuses, and the class that it can catch."""

BEFORE = """
import abc, enum, typing

class A:
    p = property(1, 1, 1)
    s = property()

class O(torch.optim.Optimizer):
    def __init__(self):
        pass

class V(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def vmap(info, in_dims, x):
        return 3

class W(V):
    @staticmethod
    def vmap(info, in_dims, x):
        return 3, 0

class S(torch.optim.SGD):
    def __init__(self, rate):
        pass

sgd = torch.optim.SGD([ones(1, requires_grad=True)], lr=0.1)
w = ones(1, requires_grad=True)
adam = torch.optim.Adam([w])
w.sum().backward()
adam.step()
"""


@each_row("expression", PROGRAMS)
def test_what_escapes_can_be_caught(expression: str) -> None:
    outcome = run_program(
        f"{BEFORE}try:\n    {expression}\nexcept {PROGRAMS[expression]} as error:\n"
        "    print('caught', len(str(error)) > 0)\n"
    )
    assert outcome.error is None
    assert outcome.stdout == "caught True\n"
    failed = run_program(BEFORE + expression.replace("\n    ", "\n")).error
    assert failed is not None
    assert failed.code not in ("E209", "E901")
    assert failed.span is not None


ENDLESS = [
    "for i in zeros(10**9, 0):\n    pass",
    "zeros(10**9, 0).unbind()",
    "zeros(10**9, 0).split(1)",
    "zeros(10**9, 0).chunk(10**9)",
    "zeros(0, 0).chunk(10**9)",
    "zeros(10**9, 0).tensor_split(10**9)",
    "nn.RNN(1, 1, 10**9)",
    "nn.GRU(1, 1, 10**6)",
    "list(ones(10**7))",
    "cat([ones(1)] * 10**7)",
    "nn.ModuleList([nn.Linear(1, 1)] * 10**7)",
    "x = 'a' * 10**6\nfor i in range(10**6): x = x + 'a'",
    "x = list(range(10**6))\nfor i in range(10**6): x = x + [1]",
    "x = list(range(10**6))\nfor i in range(10**6): 0.5 in x",
    "x = list(range(10**6))\nfor i in range(10**6): x.insert(0, 1)",
]


@pytest.mark.parametrize("program", ENDLESS)
def test_work_is_counted_before_it_is_done(program: str) -> None:
    error = run_program(program, limits=Limits(steps=100_000)).error
    assert error is not None
    assert error.code == "E605"


@pytest.mark.parametrize("twice", ["[x, x]", "N(x)"])
def test_what_stands_in_many_places_is_not_written_for_ever(twice: str) -> None:
    program = (
        "class N(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n"
        "        self.a = self.b = inner\n"
        f"x = nn.Linear(1, 1)\nfor i in range(30): x = {twice}\nprint(x)"
    )
    error = run_program(program, limits=Limits(steps=10_000)).error
    assert error is not None
    assert error.code == "E605"


def test_what_a_program_sets_is_read() -> None:
    outcome = run_program(
        "x = ones(1, requires_grad=True)\nsgd = torch.optim.SGD([x], lr=0.1)\n"
        "schedule = torch.optim.lr_scheduler.StepLR(sgd, 1)\n"
        "print(schedule.gamma, schedule.step_size)\nschedule.gamma = 0.5\nschedule.step()\n"
        "print(sgd.param_groups[0]['lr'])\nsgd.param_groups = []\nx.sum().backward()\n"
        "sgd.step()\nprint(x)\n"
    )
    assert outcome.stdout == "0.1 1\n0.05\ntensor([1.], requires_grad=True)\n"


WRITTEN = ["abs_", "celu_", "exp_", "neg_", "relu_", "rrelu_", "selu_", "zero_", "detach_"]


@pytest.mark.parametrize("name", WRITTEN)
def test_in_place_functions_take_their_tensor_by_keyword(name: str) -> None:
    outcome = run_program(f"x = tensor([0.5])\nprint(torch.{name}(input=x) is x)")
    assert outcome.stdout == "True\n"


NAMES = {
    "class D(torch.utils.data.Dataset): pass\nd = D()\nprint(d, [d], f'{d}')": (
        "<__main__.D object at 0x1> [<__main__.D object at 0x1>] <__main__.D object at 0x1>"
    ),
    "import io\nprint(io.StringIO('a'))": "<_io.StringIO object at 0x1>",
    "import time\nprint(time.time.__name__, time.perf_counter)": (
        "time <built-in function perf_counter>"
    ),
}


@pytest.mark.parametrize("program", NAMES)
def test_no_text_shows_the_host(program: str) -> None:
    assert run_program(program).stdout == f"{NAMES[program]}\n"


def test_what_pytorch_takes() -> None:
    outcome = run_program(
        "norm = nn.BatchNorm1d(3, momentum=tensor(0.1))\n"
        "norm(torch.arange(6.).view(2, 3))\n"
        "print(norm.running_mean, norm.running_var)\n"
        "print(nn.utils.rnn.unpad_sequence(ones(3, 2), tensor([[1], [2]])))\n"
    )
    assert outcome.error is None
    assert outcome.stdout == (
        "tensor([0.1500, 0.2500, 0.3500]) tensor([1.3500, 1.3500, 1.3500])\n"
        "[tensor([1.]), tensor([1., 1.])]\n"
    )


def test_what_another_process_left_stays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process ids come again, in containers above all."""
    monkeypatch.chdir(tmp_path)
    left = tmp_path / f"g.npz.{os.getpid()}.0.part"
    left.write_text("another's", encoding="utf-8")
    finished = CommandLine(capsys)("y = x*2", "x=2", "-o", "g.npz")
    assert finished.code == 0, finished.err
    assert left.read_text(encoding="utf-8") == "another's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.npz", left.name]


def test_a_history_on_a_device_leaves_its_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[int] = []
    monkeypatch.setattr("os.fchmod", lambda file, mode: changed.append(mode))
    EntryHistory("/dev/null", lambda note: None)
    assert not changed
