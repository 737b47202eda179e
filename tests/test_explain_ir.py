"""`gradcli explain --ir`: the trace of a run and of its backward pass."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.session import Session
from gradcli.trace.ir import ALIAS, Effect, lines_of
from tests.command_line import CommandLine
from tests.rows import sampled

ROOT = Path(__file__).parent / "programs"

SHOWN = {
    "a scalar program": (
        ["e = (a + b) * d", "a=2", "b=3", "d=4"],
        """
inputs: %0: f32[] a, %1: f32[] b, %3: f32[] d
%2: f32[] = add(%0, %1, alpha=1)           # a + b  program:1
%4: f32[] = mul(%2, %3)                    # e = (a + b) * d  program:1
%5: f32[] = backward(%4)
%6: f32[], %7: f32[] = MulBackward0(%5, self=%2, other=%3)   # (a + b) * d  program:1
%8: f32[] = accumulate_grad(%3, %7)        # (a + b) * d  program:1   grad(%3)
%9: f32[], %10: f32[] = AddBackward0(%6)   # a + b  program:1
%11: f32[] = accumulate_grad(%0, %9)       # a + b  program:1   grad(%0)
%12: f32[] = accumulate_grad(%1, %10)      # a + b  program:1   grad(%1)
effects: grad(%3, %0, %1)
""",
    ),
    "a write": (
        ["y = x * 2\ny.add_(1)\nz = (y * y).sum()", "x=[1,2]"],
        """
inputs: %0: f32[2] x
%1: f32[2] = mul(%0, 2)                  # y = x * 2  program:1
%2: f32[2] = add(%1, 1, alpha=1)         # y.add_(1)  program:2
%3: f32[2] = write(%1, %2)               # y.add_(1)  program:2   writes(%1)
%4: f32[2] = mul(%3, %3)                 # y * y  program:3
%5: f32[] = sum(%4)                      # z = (y * y).sum()  program:3
%6: f32[] = backward(%5)
%7: f32[2] = SumBackward0(%6)            # (y * y).sum()  program:3
%8: f32[2], %9: f32[2] = MulBackward0(%7, self=%3, other=%3)   # y * y  program:3
%10: f32[2] = add(%8, %9)                # y * y  program:3
%11: f32[2], _ = AddBackward0(%10)       # y.add_(1)  program:2
%12: f32[2], _ = MulBackward0(%11)       # x * 2  program:1
%13: f32[2] = accumulate_grad(%0, %12)   # x * 2  program:1   grad(%0)
effects: writes(%1)  grad(%0)
""",
    ),
    "a write through data": (
        ["w = torch.tensor([1., 2.])\nv = w * 2\nw.data.mul_(3)\nz = w + v"],
        """
constants: %0: f32[2] w
%1: f32[2] = mul(%0, 2)             # v = w * 2  program:2
%2: f32[2] = alias(%0)              # w.data.mul_(3)  program:3
%3: f32[2] = mul(%2, 3)             # w.data.mul_(3)  program:3
%4: f32[2] = write(%2, %3)          # w.data.mul_(3)  program:3   writes(%2)
%5: f32[2] = alias(%4)              # w + v  program:4
%6: f32[2] = add(%5, %1, alpha=1)   # z = w + v  program:4
effects: writes(%2)
""",
    ),
    "a random draw": (
        ["torch.manual_seed(0)\nn = torch.rand(2)\ny = F.dropout(n * 2, 0.5)"],
        """
constants: %0: f32[2] n
draw('cpu')                # torch.rand(2)  program:2   random
%1: f32[2] = mul(%0, 2)    # n * 2  program:3
%2: f32[2] = _scaled(%1, 0.5, float32, 'cpu')   # F.dropout(n * 2, 0.5)  program:3   random
%3: f32[2] = alias(%2)     # F.dropout(n * 2, 0.5)  program:3
%4: f32[2] = mul(%1, %3)   # y = F.dropout(n * 2, 0.5)  program:3
effects: random
""",
    ),
    "a view": (
        ["v = x.view(2, 2)\nl = v.T[0].sum()", "x=[1,2,3,4]"],
        """
inputs: %0: f32[4] x
%1: f32[2,2] = view(%0, size=(2, 2))      # v = x.view(2, 2)  program:1
%2: f32[2,2] = permute(%1, dims=(1, 0))   # v.T  program:2
%3: f32[2] = select(%2, dim=0, index=0)   # v.T[0]  program:2
%4: f32[] = sum(%3)                       # l = v.T[0].sum()  program:2
%5: f32[] = backward(%4)
%6: f32[2] = SumBackward0(%5)             # v.T[0].sum()  program:2
%7: f32[2,2] = SelectBackward0(%6)        # v.T[0]  program:2
%8: f32[2,2] = PermuteBackward0(%7)       # v.T  program:2
%9: f32[4] = ViewBackward0(%8)            # x.view(2, 2)  program:1
%10: f32[4] = accumulate_grad(%0, %9)     # x.view(2, 2)  program:1   grad(%0)
effects: grad(%0)
""",
    ),
    "a custom function": (
        [
            """\
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * grad
y = Cube.apply(x * 2)""",
            "x=2",
        ],
        """
inputs: %0: f32[] x
%1: f32[] = mul(%0, 2)                 # x * 2  program:10
%2: f32[] = pow(%1, exponent=3)        # y = x ** 3  program:5  in forward
%3: f32[] = Cube(%1)                   # y = Cube.apply(x * 2)  program:10
%4: f32[] = backward(%3)
%5: f32[] = pow(%1, exponent=2)        # x ** 2  program:9  in CubeBackward
%6: f32[] = mul(%5, 3)                 # 3 * x ** 2  program:9  in CubeBackward
%7: f32[] = alias(%4)                  # 3 * x ** 2 * grad  program:9  in CubeBackward
%8: f32[] = mul(%6, %7)                # 3 * x ** 2 * grad  program:9  in CubeBackward
%9: f32[], _ = MulBackward0(%8)        # x * 2  program:10
%10: f32[] = accumulate_grad(%0, %9)   # x * 2  program:10   grad(%0)
effects: grad(%0)
""",
    ),
    "a double backward": (
        ["y = x ** 3\ng, = torch.autograd.grad(y, x, create_graph=True)\ng.backward()", "x=2"],
        """
inputs: %0: f32[] x
%1: f32[] = pow(%0, exponent=3)            # y = x ** 3  program:1
%2: f32[] = backward(%1)                   # torch.autograd.grad(y, x, create_graph=True)  program:2
%3: f32[] = pow(%0, exponent=2)            # x ** 3  program:1  in PowBackward0
%4: f32[] = mul(%3, other=3)               # x ** 3  program:1  in PowBackward0
%5: f32[] = mul(%2, %4)                    # g = x ** 3  program:1  in PowBackward0
%6: f32[] = backward(%5)                   # g.backward()  program:3
_, %7: f32[] = MulBackward0(%6, self=%2)   # x ** 3  program:1
%8: f32[] = MulBackward1(%7)               # x ** 3  program:1
%9: f32[] = PowBackward0(%8, self=%0)      # x ** 3  program:1
%10: f32[] = accumulate_grad(%0, %9)       # x ** 3  program:1   grad(%0)
effects: grad(%0)
""",
    ),
    "numbers that are looked at": (
        [
            "l = (x * w).sum()\nif l > 0:\n    l = l * l.item()\nprint('loss', l)",
            "x=[1,2]",
            "w=[3,4]",
        ],
        """
inputs: %0: f32[2] x, %1: f32[2] w
%2: f32[2] = mul(%0, %1)                 # x * w  program:1
%3: f32[] = sum(%2)                      # l = (x * w).sum()  program:1
%4: bool[] = gt(%3, 0)                   # l > 0  program:2
item(%4)                                 # l > 0  program:2   reads(%4)
item(%3)                                 # l.item()  program:3   reads(%3)
%5: f32[] = mul(%3, 11.0)                # l * l.item()  program:3
print('loss', %5)                        # print('loss', l)  program:4   shows(%5)
%6: f32[] = backward(%5)
%7: f32[], _ = MulBackward0(%6)          # l * l.item()  program:3
%8: f32[2] = SumBackward0(%7)            # (x * w).sum()  program:1
%9: f32[2], %10: f32[2] = MulBackward0(%8, self=%0, other=%1)   # x * w  program:1
%11: f32[2] = accumulate_grad(%0, %9)    # x * w  program:1   grad(%0)
%12: f32[2] = accumulate_grad(%1, %10)   # x * w  program:1   grad(%1)
effects: reads(%4, %3)  shows(%5)  grad(%0, %1)
""",
    ),
    "a gradient that is used": (
        ["g, = torch.autograd.grad((x * x).sum(), x)\nz = (g * x).sum()", "x=[1,2]"],
        """
inputs: %0: f32[2] x
%1: f32[2] = mul(%0, %0)                      # x * x  program:1
%2: f32[] = sum(%1)                           # (x * x).sum()  program:1
%3: f32[] = backward(%2)                      # torch.autograd.grad((x * x).sum(), x)  program:1
%4: f32[2] = SumBackward0(%3)                 # (x * x).sum()  program:1
%5: f32[2], %6: f32[2] = MulBackward0(%4, self=%0, other=%0)   # x * x  program:1
%7: f32[2] = add(%5, %6)                      # x * x  program:1
%8: f32[2] = grad(%7)                         # g = torch.autograd.grad((x * x).sum(), x)  program:1
%9: f32[2] = mul(%8, %0)                      # g * x  program:2
%10: f32[] = sum(%9)                          # z = (g * x).sum()  program:2
%11: f32[] = backward(%10)
%12: f32[2] = SumBackward0(%11)               # (g * x).sum()  program:2
_, %13: f32[2] = MulBackward0(%12, self=%8)   # g * x  program:2
%14: f32[2] = accumulate_grad(%0, %13)        # g * x  program:2   grad(%0)
effects: grad(%0)
""",
    ),
    "gradients that add up": (
        ["for i in range(2):\n    (x * x).sum().backward()", "x=[2,3]"],
        """
inputs: %0: f32[2] x
%1: f32[2] = mul(%0, %0)                     # x * x  program:2
%2: f32[] = sum(%1)                          # (x * x).sum()  program:2
%3: f32[] = backward(%2)                     # (x * x).sum().backward()  program:2
%4: f32[2] = SumBackward0(%3)                # (x * x).sum()  program:2
%5: f32[2], %6: f32[2] = MulBackward0(%4, self=%0, other=%0)   # x * x  program:2
%7: f32[2] = add(%5, %6)                     # x * x  program:2
%8: f32[2] = accumulate_grad(%0, %7)         # x * x  program:2   grad(%0)
%9: f32[2] = mul(%0, %0)                     # x * x  program:2
%10: f32[] = sum(%9)                         # (x * x).sum()  program:2
%11: f32[] = backward(%10)                   # (x * x).sum().backward()  program:2
%12: f32[2] = SumBackward0(%11)              # (x * x).sum()  program:2
%13: f32[2], %14: f32[2] = MulBackward0(%12, self=%0, other=%0)   # x * x  program:2
%15: f32[2] = add(%13, %14)                  # x * x  program:2
%16: f32[2] = accumulate_grad(%0, %15, %8)   # x * x  program:2   grad(%0)
effects: grad(%0)
""",
    ),
    "an optimizer": (
        [
            """\
opt = torch.optim.SGD([w], lr=0.1)
for i in range(2):
    opt.zero_grad()
    loss = w * w
    loss.backward()
    opt.step()""",
            "w=2",
        ],
        """
inputs: %0: f32[] w
%1: f32[] = mul(%0, %0)                 # loss = w * w  program:4
%2: f32[] = backward(%1)                # loss.backward()  program:5
%3: f32[], %4: f32[] = MulBackward0(%2, self=%0, other=%0)   # w * w  program:4
%5: f32[] = add(%3, %4)                 # w * w  program:4
%6: f32[] = accumulate_grad(%0, %5)     # w * w  program:4   grad(%0)
%7: f32[] = update(%0)                  # writes(%0)
%8: f32[] = mul(%7, %7)                 # loss = w * w  program:4
%9: f32[] = backward(%8)                # loss.backward()  program:5
%10: f32[], %11: f32[] = MulBackward0(%9, self=%7, other=%7)   # w * w  program:4
%12: f32[] = add(%10, %11)              # w * w  program:4
%13: f32[] = accumulate_grad(%7, %12)   # w * w  program:4   grad(%7)
effects: grad(%0, %7)  writes(%0)
""",
    ),
    "a hook": (
        ["y = x * 3\nx.register_hook(lambda g: g * 2)\ny.backward()", "x=2"],
        """
inputs: %0: f32[] x
%1: f32[] = mul(%0, 3)                # y = x * 3  program:1
%2: f32[] = backward(%1)              # y.backward()  program:3
%3: f32[], _ = MulBackward0(%2)       # x * 3  program:1
%4: f32[] = alias(%3)                 # g * 2  program:2  in <lambda>
%5: f32[] = mul(%4, 2)                # g * 2  program:2  in <lambda>
%6: f32[] = accumulate_grad(%0, %5)   # x * 3  program:1   grad(%0)
effects: grad(%0)
""",
    ),
}


@pytest.fixture
def command_line(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.mark.parametrize("name", SHOWN)
def test_trace_of(name: str, command_line: CommandLine) -> None:
    words, expected = SHOWN[name]
    shown = command_line("explain", "--ir", *words)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.strip() == expected.strip()


def test_json(command_line: CommandLine) -> None:
    shown = command_line("explain", "--ir", "--json", "y = x * 2\ny.add_(x)", "x=2")
    data = json.loads(shown.out)
    assert data["schema"] == "gradcli.trace/1"
    assert [each["op"] for each in data["instructions"]] == [
        "mul", "add", "write", "backward", "AddBackward0", "MulBackward0", "add",
        "accumulate_grad",
    ]  # fmt: skip
    write = data["instructions"][2]
    assert write["effects"] == {"writes": [1]}
    assert (write["source"], write["line"], write["column"]) == ("y.add_(x)", 2, 1)
    assert data["inputs"] == [{"number": 0, "type": "f32[]", "shape": [], "name": "x"}]


def test_no_other_part_beside(command_line: CommandLine) -> None:
    shown = command_line("explain", "--ir", "--ties", "y = x * 2", "x=2")
    assert shown.code == 2
    assert "--ir" in shown.err


def test_help_says_what_it_prints(command_line: CommandLine) -> None:
    shown = command_line("explain", "--help")
    assert "--ir" in shown.out
    assert "mul(%1, %3)" in shown.out


# --- what the recorder keeps ----------------------------------------------------------------------


def recorded(program: str) -> tuple[Session, TraceRecorder]:
    session = Session(record="all")
    for _ in session.run(program, "program"):
        pass
    recorder = session.state.recorder
    assert isinstance(recorder, TraceRecorder)
    return session, recorder


PROGRAM = """\
x = torch.tensor([1., 2.], requires_grad=True)
k = torch.randint(0, 2, (3,))
y = (x * x)[k]
if y.sum() > 0:
    y = y.detach() * x[0]
y.mul_(2)
z = torch.stack([y, y.data]).mean()
z.backward()
x.grad.add_(1)
"""


FOLDERS = ("custom_functions", "functional", "gradients", "graph", "inplace")

PROGRAMS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("*.grad"))
} | {"the program above": PROGRAM}


@pytest.mark.parametrize("name", sampled(PROGRAMS, 3))
def test_each_value_is_made_once(name: str) -> None:
    """As in static single assignment: before it is read, and by one instruction."""
    session = Session(record="all")
    with suppress(GradcliError):
        for _ in session.run(PROGRAMS[name], "program"):
            pass
    recorder = session.recorder
    assert isinstance(recorder, TraceRecorder)
    trace = recorder.named()
    made = {*trace.inputs, *trace.constants}
    for instruction in trace.instructions:
        assert made.issuperset(instruction.reads), instruction.op
        assert made.isdisjoint(instruction.results)
        made.update(instruction.results)
        assert all(value.maker is instruction for value in instruction.results)
    assert trace.count == len(recorder.values)
    assert len(lines_of(trace)) >= len(trace.instructions)


def test_values_follow_writes() -> None:
    session, recorder = recorded(PROGRAM)
    (mul, add) = recorder.writes
    y, x = session.values["y"], session.values["x"]
    assert mul.tensor is y
    assert recorder.find(y) is mul.outputs[0]
    assert add.tensor is x.grad
    assert set(recorder.trace.effects) == {
        Effect.RANDOM, Effect.READS, Effect.WRITES, Effect.GRAD,
    }  # fmt: skip


def test_alias_of_what_no_op_made() -> None:
    session, recorder = recorded("x = torch.ones(2)\ny = x * 2\nd = x.data\ny = d * 2")
    d, x = session.values["d"], session.values["x"]
    assert type(d) is Tensor
    alias = recorder.find(d).maker
    assert alias is not None
    assert alias.op is ALIAS
    assert alias.inputs == [recorder.find(x)]


@pytest.mark.parametrize("command", [["derive"], ["explain", "--ir"], ["explain", "--ties"]])
def test_listeners_in_front_of_the_recorder(command: list[str], command_line: CommandLine) -> None:
    """Anomaly detection that a program leaves on listens too."""
    shown = command_line(*command, "torch.autograd.set_detect_anomaly(True)\ny = abs(x) * x", "x=2")
    assert shown.code == 0
    assert shown.out
