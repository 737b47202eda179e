"""One-shot and batch as a person types them."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from gradcli import __version__
from gradcli.autograd.graph import Graph
from gradcli.autograd.tensor import Tensor
from gradcli.recorded.result import Result
from gradcli.running.arguments.name_uses import name_uses
from gradcli.running.arguments.words import joined
from gradcli.session import Session
from gradcli.show.style import Style
from gradcli.show.values import table
from tests.command_line import CommandLine, process, start
from tests.machine import PATIENCE

TOY = """\
e = tensor(20., grad_fn=<MulBackward0>)

a.grad = tensor(4.)
b.grad = tensor(4.)
d.grad = tensor(5.)

e  MulBackward0                 e = (a + b) * d
├─[0] AddBackward0              a + b
│     ├─[0] AccumulateGrad      a  tensor(2., requires_grad=True)
│     └─[1] AccumulateGrad      b  tensor(3., requires_grad=True)
└─[1] AccumulateGrad            d  tensor(4., requires_grad=True)
"""

TOY_WORDS = ("e = (a + b) * d", "a=2", "b=3", "d=4")

# --- one-shot -----------------------------------------------------------------------------------


def test_toy(gradcli: CommandLine) -> None:
    shown = gradcli(*TOY_WORDS)
    assert (shown.code, shown.out, shown.err) == (0, TOY, "")


@pytest.mark.parametrize("words", [("-q",), ("--no-trace",)])
def test_without_a_trace(gradcli: CommandLine, words: tuple[str, ...]) -> None:
    assert gradcli(*TOY_WORDS, *words).out == TOY.partition("\n\ne  Mul")[0] + "\n"


def test_seed(gradcli: CommandLine) -> None:
    shown = gradcli("z = x * y", "x=[0,2,8]", "y=[5,1,7]", "--seed", "[0.1, 1, 10]")
    assert shown.code == 0
    assert "seed = tensor([ 0.1000,  1.0000, 10.0000])\n" in shown.out
    assert "x.grad = tensor([ 0.5000,  1.0000, 70.0000])\n" in shown.out
    assert "y.grad = tensor([ 0.,  2., 80.])\n" in shown.out


DRAWS = "import random, numpy as np\nprint(torch.rand(2), random.random(), np.random.rand(2))"
SEEDED = "torch.manual_seed(7); random.seed(7); np.random.seed(7)"


@pytest.mark.parametrize("words", [("-e",), ("run", "-")])
def test_manual_seed(gradcli: CommandLine, words: tuple[str, ...]) -> None:
    def drawn(program: str, *options: str) -> str:
        if words == ("-e",):
            return gradcli(*options, "-e", program).out
        return gradcli(*words, *options, stdin=program).out

    seeded = drawn(DRAWS.replace("\n", f"\n{SEEDED}\n"))
    assert drawn(DRAWS, "--manual-seed", "7") == seeded
    assert drawn(DRAWS, "--manual-seed", "8") != seeded


@pytest.mark.parametrize("command", ["explain", "blame"])
def test_manual_seed_of_questions(gradcli: CommandLine, command: str) -> None:
    words = [command, "y = (x * torch.rand(2) / 0).sum()", "x=[1, 2]"]
    drawn = [gradcli(*words, "--manual-seed", seed) for seed in ("1", "1", "2")]
    assert drawn[0].out == drawn[1].out != drawn[2].out, drawn[0].err


def test_missing_seed(gradcli: CommandLine) -> None:
    shown = gradcli("z = x * y", "x=[0,2,8]", "y=[5,1,7]")
    assert (shown.code, shown.out[:10]) == (3, "z = tensor")
    assert "grad can be implicitly created only for scalar outputs" in shown.err
    assert "--seed 'ones(3)'" in shown.err


def test_seeds_of_one_element(gradcli: CommandLine) -> None:
    assert "x.grad = tensor(6.)" in gradcli("y = x * 2", "x=1", "--seed", "3").out
    assert "x.grad = tensor([6.])" in gradcli("y = x * 2", "x=[1]", "--seed=3").out
    assert "x.grad = tensor(-2.)" in gradcli("y = x * 2", "x=1", "--seed", "-1").out


def test_expressions_need_no_name(gradcli: CommandLine) -> None:
    shown = gradcli("(a + b) * d", "a=2", "b=3", "d=4")
    assert shown.out.startswith("tensor(20., grad_fn=<MulBackward0>)\n\na.grad")
    assert "x.grad = tensor([2., 4.])" in gradcli("y = x * x; y.sum()", "x=[1,2]").out


def test_output_by_name(gradcli: CommandLine) -> None:
    shown = gradcli("y = x * x\nz = y + 1", "x=3", "--of", "y", "-q")
    assert shown.out == "y = tensor(9., grad_fn=<MulBackward0>)\n\nx.grad = tensor(6.)\n"


def test_wrt(gradcli: CommandLine) -> None:
    shown = gradcli("t = x * y\nz = t * 2", "x=3", "y=4", "--wrt", "y,t", "-q")
    assert shown.out.endswith("\n\ny.grad = tensor(6.)\nt.grad = tensor(2.)\n")
    assert "x  tensor(3.)" in gradcli("z = x * y", "x=3", "y=4", "--wrt", "y").out


def test_programs_that_run_backward_themselves(gradcli: CommandLine) -> None:
    shown = gradcli("y = x * x\ny.backward()\nprint(x.grad)", "x=3", "-q")
    assert shown.out == (
        "tensor(6.)\ny = tensor(9., grad_fn=<MulBackward0>)\n\nx.grad = tensor(6.)\n"
    )


def test_leaves_and_retained_gradients_of_the_program(gradcli: CommandLine) -> None:
    program = "w = tensor(5., requires_grad=True)\nt = x * w\nt.retain_grad()\ny = t * t"
    shown = gradcli(program, "x=2", "-q")
    assert shown.out.endswith(
        "\nx.grad = tensor(100.)\nw.grad = tensor(40.)\nt.grad = tensor(20.)\n"
    )
    unnamed = gradcli("y = x * tensor(5., requires_grad=True)", "x=2").out
    assert "#3.grad = tensor(2.)\n" in unnamed
    assert "AccumulateGrad #3" in unnamed


def test_outputs_without_gradient(gradcli: CommandLine) -> None:
    shown = gradcli("y = x.detach() * 2", "x=3")
    assert (shown.code, shown.out) == (0, "y = tensor(6.)\n")
    assert "y does not require grad" in shown.err
    assert gradcli("1 + 1").out == "2\n"
    shown = gradcli("n = 2 * 3")
    assert (shown.code, shown.out) == (0, "n = 6\n")
    assert "no tensor" in shown.err
    assert gradcli("").out == ""


def test_reasons_for_no_gradient(gradcli: CommandLine) -> None:
    shown = gradcli("y = x.floor() + i.sum() + z.detach()", "x=1.5", "i=tensor([1])", "z=1", "-q")
    assert "x.grad = tensor(0.)  (every way to it from y crosses an op without slope)" in shown.out
    assert "i.grad = None  (torch.int64 carries no gradient)" in shown.out
    assert "z.grad = None  (no recorded operation leads from it to y)" in shown.out


def test_names_without_a_value(gradcli: CommandLine) -> None:
    shown = gradcli("e = (a + b) * d", "a=1")
    assert shown.code == 3
    assert "help: give it a value: gradcli 'e = (a + b) * d' a=1 b=2 d=3" in shown.err
    assert "sigmoid" in gradcli("y = sigmod(x)", "x=1").err
    refused = gradcli("exec('x')").err
    assert "not part of the language" in refused
    assert "give it a value" not in refused


SLIPS = [
    (["e = (a+b)*dd", "a=2", "b=3", "d=4"], "did you mean `d`?", "W009"),
    (["F.cross_entropy(x, t)", "x=[[1.,2.]]", "t=[0]"], "from 0: 't=tensor([0])'", "t.long"),
    (["explain", "y = trace(A @ B)", "A=[[1.]]", "B=[[1.]]"], "`torch.trace(A @ B)`", "E901"),
    (["explain", "y = trace(A) * 2", "A=[[1.]]"], "`torch.trace(A)`", "E901"),
    (["check", "y = trace(A).sum()", "A=[[1.]]"], "`torch.trace(A)`", "a .grad is"),
    (["y = trace(A)", "A=[[1.]]"], "the sum of a diagonal is `torch.trace(A)`", "E901"),
    (["run", "train.py", "--epochs", "1"], "behind `--`: gradcli run FILE -- --option", "-e "),
    (["x=1", "y=x*2"], "the program comes first", "give it"),
    (["x = 3"], "behind a program, x=3 is the value of an input", "error"),
    (["x", "3"], "gradcli 'PROGRAM' x=3", "-e"),
    (["y = x", "x = 3"], "did you mean `x=3`?", "usage"),
    (["y = x", "x", "3"], "did you mean `x=3`?", "usage"),
    (["y = math.sin(x)", "x=2"], "`torch.sin` a tensor", "error"),
    (["y = x.sigmoid", "x=2"], "`x.sigmoid()` calls the method", "error"),
    (["y = x * x", "x=[1,2]"], "or differentiate a number: y.sum()", "E901"),
]


@pytest.mark.parametrize(("words", "message", "absent"), SLIPS)
def test_a_slip_has_one_diagnosis(
    gradcli: CommandLine, words: list[str], message: str, absent: str
) -> None:
    shown = gradcli(*words)
    assert message in shown.err
    assert absent not in shown.err


def test_derive_writes_what_the_suffix_says(gradcli: CommandLine, here: Path) -> None:
    for suffix, begin in (("tex", "\\begin"), ("py", "import numpy"), ("json", "{")):
        assert gradcli("derive", "y = x * 2", "x=3", "-o", f"x.{suffix}").code == 0
        assert Path(f"x.{suffix}").read_text().startswith(begin)


def test_tables_have_a_header(gradcli: CommandLine, here: Path) -> None:
    words = ["y = (x * 2).sum()", "x=[[1,2]]", "-o", "g.csv", "-q"]
    assert gradcli(*words).out == ""
    assert Path("g.csv").read_text() == "x.grad[0],x.grad[1]\n2.0,2.0\n"
    gradcli(*words, "--no-header")
    assert Path("g.csv").read_text() == "2.0,2.0\n"


def test_unused_arguments(gradcli: CommandLine) -> None:
    shown = gradcli("y = alpha * 2", "alpha=1", "beta=2", "ahpla=3")
    assert shown.code == 0
    assert shown.err.count("warning[W009]: the program does not use") == 2
    assert "its names are alpha, y" in shown.err
    shown = gradcli("y = alpha * 2", "alhpa=1")
    assert shown.code == 3
    assert "did you mean `alpha`?" in shown.err


def test_large_graphs_are_drawn_when_asked(gradcli: CommandLine) -> None:
    program = "\n".join(["y = x", *["y = y * 2"] * 200])
    shown = gradcli(program, "x=1", "--dtype=float64")
    assert "201 nodes" in shown.err
    assert "Mul" not in shown.out.partition("x.grad")[2]
    assert gradcli(program, "x=1", "--trace").out.count("MulBackward0") > 200
    loop = "y = x\nfor i in range(200):\n    y = y * 2"
    assert "… × 198" in gradcli(loop, "x=1", "--dtype=float64").out
    assert "6,001 nodes" in gradcli(loop.replace("200", "6000"), "x=1").err


def test_json_has_the_values_of_a_trace_whole(gradcli: CommandLine) -> None:
    nodes = json.loads(
        gradcli("y = (x * 3).exp().sum()", "x=" + str([0.1] * 9), "--trace=values", "--json").out
    )["nodes"]
    found = {node["name"]: (np.shape(node["value"]), node["gradient"]) for node in nodes}
    assert found["ExpBackward0"] == ((9,), [1.0] * 9)
    assert found["SumBackward0"] == ((), 1.0)
    assert found["AccumulateGrad"][0] == (9,)


NETWORK = """
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
loss = net(torch.ones(5, 3)).pow(2).mean()
"""


def test_gradients_come_in_the_order_of_the_parameters(gradcli: CommandLine) -> None:
    shown = gradcli(NETWORK, "--no-trace").out
    named = re.findall(r"^(net\S+)\.grad", shown, re.MULTILINE)
    assert named == ["net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"]


def test_steps_tell_shape_and_norm_of_what_is_large(gradcli: CommandLine) -> None:
    brief = gradcli(NETWORK, "--trace=steps").out.partition("\n 1. ")[2]
    assert "tensor of shape (5, 4), norm" in brief
    assert len(gradcli(NETWORK, "--trace=steps", "--full").out) > len(brief)
    loop = NETWORK + "for i in range(40): loss = loss * 1.01 + 1"
    steps = gradcli(loop, "--trace=steps").out.partition("\n 1. ")[2].split("\n")
    assert len(steps) < 20
    assert "these 2 lines 39 times more" in steps[2]
    long = gradcli(loop, "--trace=steps", "--full").out.partition("\n 1. ")[2].split("\n")
    assert len(long) > 300


BLOCKS = """
layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
net = nn.TransformerEncoder(layer, 6)
loss = net(torch.randn(2, 5, 16)).pow(2).mean()
"""


def test_steps_of_equal_blocks_are_told_once(gradcli: CommandLine) -> None:
    shown = gradcli(BLOCKS, "--trace=steps").out
    told = "⋮ TransformerEncoderLayer × 6: as in net.layers.5, so in net.layers.4 … net.layers.0"
    assert f"{told}, whose input gets nothing\n" in shown
    assert shown.count("TransposeBackward0") < 12
    # Where a gradient of the input is wanted, all blocks are alike.
    whole = BLOCKS.replace(
        "torch.randn(2, 5, 16)", "nn.Embedding(9, 16)(torch.tensor([[1, 2, 3]]))"
    )
    assert f"{told}\n" in gradcli(whole, "--trace=steps").out
    assert "net.layers.5.norm1.bias.grad " in shown
    assert "net.layers.3.norm1.bias.grad  " not in shown
    weight = "net.layers.3.linear1.weight.grad = tensor of shape (32, 16), norm "
    assert weight in shown
    assert shown.count("\n") < 190
    assert max(map(len, shown.split("\n"))) <= 120
    assert gradcli(BLOCKS, "--trace=steps", "--full").out.count("\n") > 3_000


ASKING = [
    # (lines, whether `gradcli run` of a file, which records nothing, knows values without names)
    (["y = x * x + 1", "trace(y, 'values')"], False),
    (["y = x * x + 1", ".trace y values"], True),
    (["y = x * x + 1", ".trace values"], True),
    (["y = x * x + 1", "y.backward()", ".trace y values"], True),
]


@pytest.mark.parametrize(("lines", "known"), ASKING)
def test_values_asked_for_in_programs_and_sessions(
    gradcli: CommandLine, lines: list[str], known: bool, tmp_path: Path
) -> None:
    words = [word for line in lines for word in ("-e", line)]
    shown = gradcli(*words, "x=3", "-q").out
    assert "├0 MulBackward0   = 9.      grad 1.   x * x\n" in shown
    assert "└1 None           = 1\n" in shown
    file = tmp_path / "p.grad"
    file.write_text("x = tensor(3., requires_grad=True)\n" + "\n".join(lines))
    shown = gradcli("run", str(file)).out
    assert "= 10." in shown
    assert ("= 9." in shown) == known


def test_trace_styles(gradcli: CommandLine) -> None:
    assert ".next_functions = " in gradcli(*TOY_WORDS, "--trace=next").out
    assert " 5. b.grad = tensor(4.)" in gradcli(*TOY_WORDS, "--trace", "steps").out
    assert joined(["--trace", "p"]) == ["--trace=tree", "p"]
    assert joined(["p", "--trace"]) == ["p", "--trace=tree"]
    assert joined(["p", "--trace", "next", "a=1"]) == ["p", "--trace=next", "a=1"]
    assert joined(["--", "--trace"]) == ["--", "--trace"]


def test_traces_of_programs(gradcli: CommandLine) -> None:
    shown = gradcli("y = x * 2\ntrace(y)\ntrace(y, 'steps')\ny.backward()", "x=3", "-q")
    assert "└─[1] None                2\n 1. y  MulBackward0" in shown.out
    assert shown.out.endswith("x.grad = tensor(2.)\n")


def test_several_pieces_of_program(gradcli: CommandLine) -> None:
    shown = gradcli("-e", "def f(x):", "-e", "    return -x", "-e", "y = f(x)", "x=2", "-q")
    assert shown.out.startswith("y = tensor(-2., ")
    assert gradcli("-e", "-x * 2", "x=1", "-q").out.endswith("x.grad = tensor(-2.)\n")


def test_json(gradcli: CommandLine) -> None:
    shown = gradcli("print('hello')\ny = x * k", "x=[1,2]", "k=3", "--seed=ones(2)", "--json")
    found = json.loads(shown.out)
    assert found["schema"] == "gradcli.result/1"
    assert found["printed"] == "hello\n"
    assert found["seed"] == [1.0, 1.0]
    assert [each["name"] for each in found["gradients"]] == ["x", "k"]
    assert "steps" not in found
    assert "steps" in json.loads(gradcli(*TOY_WORDS, "--json", "--trace=steps").out)
    assert json.loads(gradcli("1 + 1", "--json").out)["outputs"] == []


TABLE = """\
name  shape   dtype    value             gradient
y     ()      float32  21.42
a     (2)     float32  [1., 2.]          [7.14, 7.14]
b     (2, 1)  float32  [[3.14], [4.00]]  [[3.], [3.]]
"""


def test_table(gradcli: CommandLine) -> None:
    words = ("y = (a * b).sum()", "a=[1,2]", "b=[[3.14159],[4]]", "--format", "table", "-q")
    assert gradcli(*words, "--precision", "2").out == TABLE
    shown = gradcli(
        "y = (x * k).sum()", "x=arange(3.)", "k=tensor(2)", "--format=table", "--seed=5"
    )
    rows = [line.split("  ") for line in shown.out.splitlines()]
    assert [row[0] for row in rows] == ["name", "y", "seed", "x", "k"]
    assert "torch.int64 carries no gradient" in shown.out
    large = gradcli("y = x * 1", "x=rand(2000)", "--seed=ones(2000)", "--format=table")
    assert "..., " in large.out
    full = gradcli("y = x * 1", "x=rand(2000)", "--seed=ones(2000)", "--format=table", "--full")
    assert len(full.out.splitlines()[1].split()) > 2000
    assert gradcli("1 + 1", "--format=table").out == "2\n"


def test_tables_fit_the_terminal() -> None:
    x = Tensor(np.linspace(0, 1, 100, dtype=np.float32), True)
    result = Result("x", x, None, [], Graph(x))
    line = table(result, Style(width=60)).splitlines()[1]
    assert line.endswith("…")
    assert len(line) == 60 - len("  gradient")
    assert len(table(result, Style(width=60), full=True).splitlines()[1]) > 700
    assert table(result, Style()) == table(result, Style(), full=True)


def test_digits_and_large_tensors(gradcli: CommandLine) -> None:
    assert gradcli("print(tensor(1 / 3))", "--precision", "8").out == "tensor(0.33333334)\n"
    assert "..." in gradcli("print(zeros(2000))").out
    assert gradcli("print(zeros(2000))", "--full").out.count("0.") == 2000
    found = json.loads(gradcli("y = x * 1", "x=1/3", "--precision=1", "--json").out)
    assert found["outputs"][0]["value"] == float(np.float32(1 / 3))


def test_json_on_one_line(gradcli: CommandLine) -> None:
    line = gradcli(*TOY_WORDS, "--format", "jsonl").out
    assert line.count("\n") == 1
    assert json.loads(line) == json.loads(gradcli(*TOY_WORDS, "--format", "json").out)
    escaped = gradcli("print('a\x9b1mb')", "--json").out
    assert "\x9b" not in escaped
    assert json.loads(escaped)["printed"] == "a\x9b1mb\n"


# --- values -------------------------------------------------------------------------------------

VALUES = {
    "x=2": "tensor(2., requires_grad=True)",
    "x=[[1,2],[3,4]]": "tensor([[1., 2.],\n        [3., 4.]], requires_grad=True)",
    "x=(1, 2)": "tensor([1., 2.], requires_grad=True)",
    "x=[]": "tensor([], requires_grad=True)",
    "x=tensor([1, 2])": "tensor([1, 2])",
    "x=ones(2) * 2": "tensor([2., 2.], requires_grad=True)",
    "x=ones(4).view(2, 2)[0]": "tensor([1., 1.], requires_grad=True)",
    "x=[True, False]": "tensor([ True, False])",
    "x=True": "True",
    "x='a=b'": "a=b",
    "x=None": "None",
    "x:const=3": "3",
    "x:const=[1, 2]": "[1, 2]",
    "x= 1 + 1": "tensor(2., requires_grad=True)",
}


@pytest.mark.parametrize("word", VALUES)
def test_values(gradcli: CommandLine, word: str) -> None:
    shown = gradcli("print(x)", word, "-q")
    assert (shown.code, shown.out) == (0, VALUES[word] + "\n")


def test_dtype(gradcli: CommandLine, here: Path) -> None:
    np.save("x.npy", np.arange(3, dtype=np.float32))
    program = "print(x.dtype, f.dtype, tensor(1.).dtype)"
    words = (program, "x=1", "f=@x.npy")
    assert gradcli(*words).out == "torch.float32 torch.float32 torch.float32\n"
    assert gradcli(*words, "--dtype", "double").out == "torch.float64 torch.float64 torch.float64\n"


def test_arrays_from_files(gradcli: CommandLine, here: Path) -> None:
    np.save("x.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    np.save("big_endian.npy", np.arange(3, dtype=">i4"))
    np.savez("m.npz", w=np.ones(3), b=np.float32(2))
    np.savez("one.npz", only=np.array([True]))
    shown = gradcli("print(x, w, b, i, o)", "x=@x.npy", "w=@m.npz:w", "b=@m.npz:b",
                    "i=@big_endian.npy", "o=@one.npz")  # fmt: skip
    assert shown.out == (
        "tensor([[0., 1., 2.],\n        [3., 4., 5.]], dtype=torch.float64, requires_grad=True)"
        " tensor([1., 1., 1.], dtype=torch.float64, requires_grad=True)"
        " tensor(2., requires_grad=True) tensor([0, 1, 2], dtype=torch.int32) tensor([True])\n"
    )


def test_results_in_files(gradcli: CommandLine, here: Path) -> None:
    shown = gradcli(*TOY_WORDS, "-o", "out.npz")
    assert (shown.out, shown.err) == ("", "wrote out.npz: e, 3 gradients\n")
    with np.load("out.npz") as found:
        assert {name: found[name].item() for name in found} == {
            "e": 20, "a.grad": 4, "b.grad": 4, "d.grad": 5,
        }  # fmt: skip
    assert gradcli(*TOY_WORDS, "-o", "out.json", "--json").out == Path("out.json").read_text()
    # The written gradients can be read back.
    shown = gradcli("print(g)", "g=@out.npz:a.grad")
    assert shown.out == "tensor(4., requires_grad=True)\n"
    assert sorted(os.listdir()) == ["out.json", "out.npz"]


def test_output_files_are_replaced_whole(gradcli: CommandLine, here: Path) -> None:
    Path("real.json").write_text("old")
    Path("link.json").symlink_to("real.json")
    assert gradcli(*TOY_WORDS, "-o", "link.json").code == 0
    assert Path("link.json").is_symlink()
    assert json.loads(Path("real.json").read_text())["outputs"][0]["name"] == "e"
    shown = gradcli(*TOY_WORDS, "-o", "missing/out.npz")
    assert (shown.code, shown.out) == (5, "")  # said before the run
    assert "error[E603]: missing/out.npz: there is no folder missing" in shown.err
    recording = gradcli("record", "--python", sys.executable, "-o", "no/x.gradrun", "real.json")
    assert recording.code == 5
    assert "there is no folder no" in recording.err
    Path("folder.npz").mkdir()
    assert gradcli(*TOY_WORDS, "-o", "folder.npz").code == 5
    assert sorted(os.listdir()) == ["folder.npz", "link.json", "real.json"]


# --- batch --------------------------------------------------------------------------------------

SCRIPT = """\
steps = 2
lr = 0.5
flag = False
w = torch.tensor([1., 2.], requires_grad=True)
index = torch.tensor([0, 1])
for i in range(steps):
    (w * scale).sum().backward()
print(steps, lr, flag, w.grad, index)
"""


@pytest.fixture
def script(here: Path) -> str:
    Path("s.grad").write_text(SCRIPT)
    return "s.grad"


def test_batch(gradcli: CommandLine, script: str) -> None:
    shown = gradcli("run", script, "scale=3")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == "2 0.5 False tensor([6., 6.]) tensor([0, 1])\n"


def test_overrides_take_the_kind_of_what_they_replace(gradcli: CommandLine, script: str) -> None:
    words = ("steps=1", "lr=1", "flag=1", "w=[5,6,7]", "index=[3]", "scale:const=1")
    shown = gradcli("run", script, *words)
    assert shown.out == "1 1.0 True tensor([1., 1., 1.]) tensor([3])\n"
    for wrong in ("steps=1.5", "flag=2", "index=[1.5]", "w='a'"):
        shown = gradcli("run", script, "scale=1", wrong)
        assert (shown.code, shown.out) == (4, "")
        assert f"argument {wrong.partition('=')[0]}=…" in shown.err


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("a = a + 1\nprint(a)", "tensor(6., grad_fn=<AddBackward0>)\n"),
        ("a = 1.\nprint(a)\na = 2.\nprint(a)", "5.0\n2.0\n"),
        ("def f(): return a\na = 1\nprint(f())", "5\n"),
        ("def f(): return a\nprint(f() * 1)", "tensor(5., grad_fn=<MulBackward0>)\n"),
        ("def f(): return a\nb = a\na = 1\nprint(f())", "1\n"),
        ("print([a for a in range(2)])\na = 1\nprint(a)", "[0, 1]\n5\n"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_an_argument_replaces(
    gradcli: CommandLine,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    printed: str,
    streamed: bool,
) -> None:
    """An argument supplies a name that is read first, and replaces a first assignment."""
    Path("p.grad").write_text(program + "\n")
    with open("p.grad") as file:
        monkeypatch.setattr("sys.stdin", file)
        shown = gradcli("run", "-" if streamed else "p.grad", "a=5")
    assert (shown.code, shown.out, shown.err) == (0, printed, "")


def test_what_an_argument_cannot_replace(gradcli: CommandLine) -> None:
    shown = gradcli("for a in range(2): print(a)\na = 7\nprint(a)", "a=5")
    assert (shown.code, shown.out) == (0, "0\n1\n7\n")
    assert "it sets the name itself" in shown.err


def test_name_uses() -> None:
    (statement,) = Session.parse(
        "with c as d:\n    x[i] = (n := u) + sum(k for k in g)\n    h = lambda q=r: q + s\n"
        "    import a.b, a.c as o\n    try: pass\n    except E as f: f",
        "p",
    )
    assert name_uses(statement) == {
        "c": "read", "d": "bound", "u": "read", "n": "assigned", "sum": "read", "g": "read",
        "x": "read", "i": "read", "r": "read", "s": "inside", "h": "assigned",
        "a": "bound", "o": "bound", "E": "read", "f": "bound",
    }  # fmt: skip


def test_reports_of_scripts(gradcli: CommandLine, here: Path) -> None:
    Path("s.grad").write_text("x = tensor(2., requires_grad=True)\ny = x * x\nprint('ran')\n")
    assert gradcli("run", "s.grad").out == "ran\n"
    assert "x.grad = tensor(4.)" in gradcli("run", "s.grad", "--seed=1").out
    assert "y  MulBackward0" in gradcli("run", "s.grad", "--trace").out
    found = json.loads(gradcli("run", "s.grad", "--json").out)
    assert found["outputs"][0]["value"] == 4.0


def test_several_files(gradcli: CommandLine, here: Path) -> None:
    Path("good.grad").write_text("print('good')\n")
    Path("check.grad").write_text("assert 1 == 2\n")
    Path("bad.grad").write_text("1 / 0\n")
    shown = gradcli("run", "good.grad", "check.grad", "bad.grad")
    assert (shown.code, shown.out) == (1, "good\n")
    assert "1 of 3 files ran to their end" in shown.err
    assert "bad.grad: not run" in shown.err
    shown = gradcli("run", "bad.grad", "good.grad", "check.grad", "--keep-going")
    assert (shown.code, shown.out) == (3, "good\n")
    assert "check.grad: E701" in shown.err


def test_programs_that_cannot_be_read(gradcli: CommandLine, here: Path) -> None:
    Path("junk.grad").write_bytes(b"x = 1\ny = \xff\n")
    shown = gradcli("run", "junk.grad")
    assert shown.code == 2
    assert "E503" in shown.err
    assert "line 2" in shown.err
    assert gradcli("run", "missing.grad").code == 2
    assert "missing.py: no such file" in gradcli("blame", "missing.py").err
    assert "missing.gradrun: no such file" in gradcli("why", "w.grad", "missing.gradrun").err
    assert gradcli("run", ".").code == 2
    Path("bom.grad").write_bytes(b"\xef\xbb\xbfprint(1)\r\nprint(2)\r\n")
    assert gradcli("run", "bom.grad").out == "1\n2\n"


# --- the words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "did you mean `run`?"),
        (["e"], "there is no command `e`"),
        (["--timeout", "3", "run", "x.grad"], "the command comes first"),
        (["a.grad"], "use `gradcli run a.grad`"),
        (["-"], "use `gradcli run -`"),
        (["b.py"], "there is no file b.py"),
        (["y = x", "x"], "`x` is no NAME=VALUE"),
        (["derive", "y = x ** 2", "x"], "help: such as x=2, x=[1,2] or x=@x.npy"),
        (["y = x", "x=1", "x=2"], "`x` is given two values"),
        (["y = x", "2x=1"], "no NAME=VALUE"),
        (["y = x", "x:grad=1"], "no NAME=VALUE"),
        (["y = x", "--sede", "1"], "--sede"),
        (["-x * 2"], "goes behind -e"),
        (["y = x * 1", "x=1", "--of", "z"], "the program has no `z`; there is `x`, `y`"),
        (["why", "w.grad", "y = x * 1", "x=1"], "the program has no `w`; there is `x`, `y`"),
        (["check", "y = x * 1", "x=1", "--equals", "q=1"], "no input `q`; there is `x`"),
        (["n = 1", "--of", "n"], "`n` is no tensor"),
        (["y = x * 1", "x=1", "--wrt", "xs"], "the program has no `xs`"),
        (["y = x", "x=1", "-o", "out.txt"], ".npy, .npz, .csv, .json"),
        (["y = x", "x=1", "--trace=picture"], "picture"),
        (["y = x", "x=1", "--trace=stesp"], "did you mean `steps`?"),
        (["y = x", "x=1", "--timeout", "long"], "'long' is not a valid number"),
        (["y = x", "x=1", "-o", "-"], "standard output is where --json and --format write"),
        (["wyh", "x.grad", "y = x", "x=1"], "did you mean `why`?"),
        (["xs", "[1,2]"], "a value has no blank in it: gradcli 'PROGRAM' xs=[1,2]"),
        (["why", "x.grad"], "`gradcli why --help` shows the usage"),
        (["blame", "c.grad"], "there is no file c.grad, and no value for `c`"),
        (["blame", "./c.grad"], "./c.grad: no such file"),
        (["./c.grad"], "there is no file ./c.grad"),
        (["record", "c.py"], "c.py: no such file"),
        (["help", "nosuchpage"], "`gradcli help` lists the topics"),
        (["run"], "needs a file"),
        (["run", "a.grad", "b.grad", "-o", "x.npz"], "-o holds the result of one file"),
        (["help", "exit-cods"], "did you mean `exit-codes`?"),
    ],
)
def test_usage_errors(gradcli: CommandLine, here: Path, words: list[str], message: str) -> None:
    Path("a.grad").write_text("print(1)\n")
    shown = gradcli(*words)
    assert (shown.code, shown.out) == (2, "")
    assert message in shown.err
    assert shown.err.startswith(("error: ", "error[E503]: "))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["-q", "run", "a.grad"], ["run", "-q", "a.grad"]),
        (["--json", "--sandbox", "check", "y = x * 2", "x=1"],
         ["check", "--json", "--sandbox", "y = x * 2", "x=1"]),
        (["--json", "run", "run=2"], ["-e", "run", "--json", "run=2"]),
    ],
)  # fmt: skip
def test_options_may_stand_before_the_command(
    gradcli: CommandLine, here: Path, before: list[str], after: list[str]
) -> None:
    Path("a.grad").write_text("print(1)\n")
    shown, wanted = gradcli(*before), gradcli(*after)
    assert (shown.code, shown.out, shown.err) == (0, wanted.out, wanted.err)


@pytest.mark.parametrize("command", ["explain", "derive", "blame", "check", "why x.grad"])
def test_questions_take_a_file_by_its_name(gradcli: CommandLine, here: Path, command: str) -> None:
    Path("a.grad").write_text("y = (x * x).sum()\n")
    asked = command.split()
    shown = gradcli(*asked, "a.grad", "x=[1,2]")
    wanted = gradcli(*asked, "--file", "a.grad", "x=[1,2]")
    assert (shown.code, shown.out, shown.err) == (0, wanted.out, wanted.err)


def test_help(gradcli: CommandLine) -> None:
    shown = gradcli("--help")
    assert shown.code == 0
    assert shown.out.index("Examples:") < shown.out.index("Everyday:")
    assert "--seed VALUE" in shown.out
    assert gradcli("-q", "--help").out == shown.out
    assert "141" in gradcli("help", "exit-codes").out
    assert "E301  shapes do not fit" in gradcli("help", "codes").out
    assert "ones(2) + ones(3)" in gradcli("help", "e301").out
    for topic in ("values", "limits", "language"):
        assert topic in gradcli("help").out


def test_version_and_info(gradcli: CommandLine) -> None:
    assert gradcli("--version").out == f"gradcli {__version__}\n"
    information = gradcli("info").out
    for what in ("gradcli", "python", "numpy", "lark", "click", "cupy", "cpu"):
        assert f"\n{what}" in f"\n{information}"


def test_color(gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in gradcli(*TOY_WORDS, "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in gradcli("y = (", "--color", "auto").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in gradcli("y = (").err


# --- processes ----------------------------------------------------------------------------------


def test_standard_input_is_a_script() -> None:
    shown = process(stdin=b"a = tensor(2., requires_grad=True)\n(a*a).backward()\nprint(a.grad)\n")
    assert (shown.code, shown.out, shown.err) == (0, "tensor(4.)\n", "")
    assert process().code == 0


def test_standard_input_runs_as_it_arrives() -> None:
    with start() as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write(b"x = 1\nprint('first', x)\nprint(")
        running.stdin.flush()
        assert running.stdout.readline() == b"first 1\n"
        running.stdin.write(b"'second')\nx = (\n")
        out, err = running.communicate(timeout=PATIENCE)
    assert out == b"second\n"
    assert b"stdin:4:5" in err
    assert running.returncode == 3


def test_a_closed_pipe_ends_quietly(here: Path) -> None:
    Path("p.grad").write_text("for i in range(100000):\n    print(i)\n")
    with start("run", "p.grad") as running:
        assert running.stdout
        assert running.stderr
        assert running.stdout.readline() == b"0\n"
        running.stdout.close()
        assert running.wait(PATIENCE) == 141
        assert running.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk() -> None:
    with open("/dev/full", "wb") as full, start(*TOY_WORDS, stdout=full) as running:
        _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 5
    assert b"E603" in err


def test_failures_of_ours_show_no_traceback(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr("gradcli.questions.one_shot.one_shot", fail)
    shown = gradcli(*TOY_WORDS)
    assert shown.code == 70
    assert "error[E901]: KeyError: 'broken'" in shown.err
    assert "gradcli info" in shown.err
    assert "--no-compiled-loops" in shown.err
    assert "Traceback" not in shown.err
    monkeypatch.setenv("GRADCLI_DEBUG", "1")
    assert "Traceback" in gradcli(*TOY_WORDS).err
