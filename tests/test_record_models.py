"""Recordings of programs in the shapes that training takes: models of other libraries, their
trainers, checkpointing, mixed precision, custom functions, several optimizers.

Those that need more than PyTorch run where the Python of GRADCLI_TORCH_PYTHON has it.
"""

from __future__ import annotations

import re
import socket
import subprocess
from functools import cache
from pathlib import Path

import pytest

from gradcli.arrays.files.recording import Recording
from tests.command_line import CommandLine, process

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parent / "recordings" / "models"

NEEDS = {
    "bert": "transformers",
    "gpt2": "transformers",
    "lightning_trainer": "lightning",
    "resnet18": "torchvision",
    "transformers_trainer": "transformers",
}

OPAQUE = {"custom": ["Split", "Swish"], "dropouts": ["F.rrelu"]}
"""The operations of a program that are not computed again; none of all others."""

STEPLESS = {"custom", "dropouts", "functional", "lbfgs", "packed"}


@cache
def has(python: str, package: str) -> bool:
    """Whether a Python has a package; torchvision's kernels need not belong to its PyTorch."""
    words = [python, "-c", f"import importlib.util as u; assert u.find_spec({package!r})"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def recorded(python: str, name: str, folder: Path) -> str:
    """What `gradcli record` makes of a program."""
    path = str(folder / f"{name}.gradrun")
    made = process("record", "--python", python, "-o", path, str(FOLDER / f"{name}.py"))
    assert made.code == 0, made.err
    return path


@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.py")} - {"ranks"}))
def test_a_model_is_computed_again(
    gradcli: CommandLine, python: str, tmp_path: Path, name: str
) -> None:
    package = NEEDS.get(name)
    if package is not None and not has(python, package):
        pytest.skip(f"{package} is not in the environment of {python}")
    path = recorded(python, name, tmp_path)
    assert sorted(set(Recording(path).unwritten)) == OPAQUE.get(name, [])
    shown = gradcli("run", "--strict", path)
    assert shown.code == 0, shown.err
    assert re.search(r"\d+ operations, equal to .*, gradients to ", shown.err)
    assert ("the optimizer's step to " in shown.err) == (name not in STEPLESS)
    shown = gradcli("explain", "--flow", path)
    assert shown.code == 0, shown.err


@pytest.mark.parametrize(("step", "output", "trains"), [(1, "lossD", True), (2, "lossG", False)])
def test_two_optimizers_make_two_windows(
    gradcli: CommandLine, python: str, tmp_path: Path, step: int, output: str, trains: bool
) -> None:
    path = str(tmp_path / "gan.gradrun")
    words = ["--python", python, "-o", path, "--at", f"step:{step}"]
    assert process("record", *words, str(FOLDER / "gan.py")).code == 0
    assert Recording(path).output == output
    shown = gradcli("run", "--strict", path)
    assert shown.code == 0, shown.err
    assert "the optimizer's step to " in shown.err
    assert f"D.0.weight.trains = {trains}" in gradcli("why", "D[0].weight", path).out


_RECURRENT = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.LSTM(4, 4), nn.GRU(4, 4), nn.LSTM(4, 4)

    def forward(self, x):
        hidden, _ = self.a(x)
        gated, last = self.b(hidden)
        out, (h, c) = self.c(gated)
        kept, state = self.a(out)
        return kept.sum() + last.sum() + h.sum() + c.mean() + state[0].sum()

Net()(torch.randn(2, 3, 4)).backward()
"""


def test_results_of_recurrent_layers_have_the_programs_names(python: str, tmp_path: Path) -> None:
    script, path = tmp_path / "recurrent.py", str(tmp_path / "recurrent.gradrun")
    script.write_text(_RECURRENT)
    assert process("record", "--python", python, "-o", path, str(script)).code == 0
    called = re.findall(r"^(.*) = (?:lstm|gru)\(", Recording(path).program, re.M)
    assert called == [
        "hidden, lstm_1, lstm_2",
        "gated, last",
        "out, h, c",
        "kept, state_1, state_2",
    ]


SMALL = {
    "hooks of modules": (
        """net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
net[0].register_forward_hook(lambda module, args, out: out * 2)
net[1].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
net[1].register_full_backward_hook(lambda module, gin, gout: (gin[0] * 3,))
net[2].register_full_backward_hook(lambda module, gin, gout: print(gout[0].shape))
net(torch.randn(5, 4)).square().mean().backward()""",
        "1 read from the recording: BackwardHookFunction",
        "BackwardHookFunction was computed by PyTorch",
    ),
    "an optimizer of its own": (
        """class Sign(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p -= 0.1 * p.grad.sign()

net = nn.Linear(4, 3)
optimizer = Sign(net.parameters(), {})
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(5, 4)).square().mean().backward()
    optimizer.step()""",
        "the step of optimizer, a Sign, is not computed again",
        "net.weight.grad  fine",
    ),
    "a closure that runs no pass": (
        """net = nn.Linear(4, 3)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    net(torch.randn(5, 4)).square().mean().backward()
    optimizer.step(lambda: None)
    optimizer.zero_grad()""",
        "the optimizer's step to ",
        "net.weight.grad  fine",
    ),
    "a loss that is added to": (
        """net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
loss = net(torch.randn(5, 4)).square().mean()
loss += 0.1 * net[0].weight.square().sum()
loss.backward()""",
        "gradients to ",
        "net.0.weight.grad  fine",
    ),
    "functions of lists": (
        """net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
decay = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=decay)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    x, means = torch.randn(5, 3), list(average.module.parameters())
    with torch.no_grad():
        target, parts = average(x), torch._foreach_mul(means, 2)
        torch._foreach_addcmul_(parts, means, means, 0.5)
        torch._foreach_add_(parts, [1.0, 2.0, 3.0, 4.0])
    distance = sum((p - q).square().sum() for p, q in zip(net.parameters(), parts))
    optimizer.zero_grad()
    ((net(x) - target).square().mean() + 1e-3 * distance).backward()
    optimizer.step()
    average.update_parameters(net)""",
        "gradients to ",
        "net.0.weight.grad  fine",
    ),
    "an optimizer of a number": (
        """scale = nn.Parameter(torch.tensor(2.0))
optimizer = torch.optim.Adam([scale])
for _ in range(2):
    optimizer.zero_grad()
    (scale * torch.randn(5)).square().mean().backward()
    optimizer.step()""",
        "the optimizer's step to ",
        "scale.grad  fine",
    ),
    "half precision with a hook": (
        """net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).bfloat16()
h = net[0](torch.randn(5, 4).bfloat16())
h.register_hook(lambda grad: grad * 2)
net[2](net[1](h)).square().mean().backward()""",
        "what the hook of h returned is read from the recording",
        "a hook of `h` changes the gradient that passes on",
    ),
    "recurrent layers": (
        """first, second = nn.LSTM(3, 4, batch_first=True), nn.GRU(4, 2)
out, _ = second(first(torch.randn(2, 5, 3))[0])
out.square().mean().backward()""",
        " operations, equal to ",
        "second.weight_ih_l0.grad  fine",
    ),
    "a sum that cancels": (
        """w = nn.Parameter(torch.ones(5000))
x = 1e3 * torch.randn(5000)
m = (w * (x - x.mean())).mean()
loss = (m * 3).square() + w.square().mean()
loss.backward()""",
        " operations, equal to ",
        "w.grad  fine",
    ),
    "statistics of a batch": (
        """net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
net(torch.randn(5, 4)).square().mean().backward()""",
        " operations, equal to ",
        "net.1.weight.grad  fine",
    ),
}
"""Programs, what their replay says, and what `check` does."""


@pytest.mark.parametrize("case", SMALL)
def test_a_small_program(gradcli: CommandLine, python: str, here: Path, case: str) -> None:
    text, said, checked = SMALL[case]
    Path("small.py").write_text(
        f"import torch\nfrom torch import nn\ntorch.manual_seed(0)\n{text}\n"
    )
    plain = subprocess.run([python, "small.py"], capture_output=True, text=True, check=False)
    made = process("record", "--python", python, "small.py")
    assert (made.code, made.out) == (0, plain.stdout), made.err
    shown = gradcli("run", "--strict", "small.gradrun")
    assert shown.code == 0, shown.err
    assert said in shown.err
    assert "read from the recording" in said or "read from the recording: " not in shown.err
    shown = gradcli("check", "small.gradrun")
    assert checked in shown.out + shown.err


def test_what_is_compiled_runs_uncompiled(
    gradcli: CommandLine, python: str, tmp_path: Path
) -> None:
    path = recorded(python, "compiled", tmp_path)
    assert "torch.compile was left out" in gradcli("run", path).err
    shown = gradcli("why", "net.a.weight", path)
    assert "the gradient flows from loss to net.a.weight" in shown.out


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@pytest.mark.parametrize("launched", [False, True])
def test_ranks(gradcli: CommandLine, python: str, here: Path, launched: bool) -> None:
    port = str(free_port())
    words = [str(FOLDER / "ranks.py")]
    if launched:
        launcher = "torch.distributed.run"
        words = ["-m", launcher, "--nproc-per-node", "2", "--master-port", port, *words]
    made = process("record", "--python", python, *words, env={"MASTER_PORT": port})
    assert made.code == 0, made.err
    assert sorted(made.out.split("\n")) == ["", "0 0.7058", "1 0.6871"]
    assert sorted(path.name for path in here.glob("*.gradrun")) == [
        "ranks.rank0.gradrun",
        "ranks.rank1.gradrun",
    ]
    for rank in range(2):
        shown = gradcli("run", "--strict", f"ranks.rank{rank}.gradrun")
        assert shown.code == 0, shown.err
        assert "4 gradients were averaged with those of other processes" in shown.err
        assert "net[0].weight.grad" in Recording(f"ranks.rank{rank}.gradrun").program


def test_each_optimizer_that_is_watched_has_a_table(
    gradcli: CommandLine, python: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "gan.gradrun")
    made = process("record", "--watch", "--python", python, "-o", path, str(FOLDER / "gan.py"))
    assert made.code == 0, made.err
    shown = gradcli("explain", "--flow", path).out
    assert shown.startswith("6 steps\n\n3 steps of optD, Adam, loss 1.39")
    assert "\n3 steps of optG, Adam, loss " in shown


def test_ranks_are_watched(gradcli: CommandLine, python: str, here: Path) -> None:
    """The NaN is in the data of one process: the other one's own gradients are finite."""
    Path("ranked.py").write_text(RANKED)
    port = str(free_port())
    words = ["--watch", "-o", "x.gradrun", "ranked.py"]
    made = process("record", "--python", python, *words, env={"MASTER_PORT": port})
    assert made.code == 0, made.err
    assert sorted(path.name for path in here.glob("*.gradrun")) == [
        "x.rank0.gradrun",
        "x.rank1.gradrun",
    ]
    assert "the step is finite in this process" in gradcli("blame", "x.rank0.gradrun").out
    shown = gradcli("blame", "x.rank1.gradrun").out
    assert "x holds nan" in shown
    assert "at element [3, 2]" in shown


RANKED = """\
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

def work(rank):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    net = torch.nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(5, 4)
        if (step, rank) == (1, 1):
            x[3, 2] = float("nan")
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""


def test_workers_that_load_data_write_nothing(python: str, here: Path) -> None:
    Path("loading.py").write_text(LOADING)
    made = process("record", "--python", python, "loading.py")
    assert made.err.count("gradcli record: ") == 1
    assert [path.name for path in here.glob("*.gradrun")] == ["loading.gradrun"]
    assert "x = recorded('x')" in Recording("loading.gradrun").program


LOADING = """\
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        w = torch.full((3,), float(i), requires_grad=True)
        (w * w).sum().backward()
        return w.grad

w = torch.ones(3, requires_grad=True)
for x in DataLoader(Rows(), batch_size=4, num_workers=2):
    loss = (x * w).sum()
    loss.backward()
"""


ENDINGS = {
    "an interruption": """import signal  # which a job in the background ignores
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.raise_signal(signal.SIGINT)""",
    "a breakpoint": "breakpoint()\nprint('behind it', w)",
    "a word": "import sys; sys.exit('a word')",
    "an exit of its own": "import os; os._exit(4)",
    "an error inside PyTorch": "torch.ones(2) @ torch.ones(3)",
    "errors in a chain": "try: w.backward()\nexcept RuntimeError as e: raise ValueError from e",
    "a hook of errors": "import sys\nsys.excepthook = lambda *e: print('hooked', e[0])\n1 / 0",
    "standard input": "import sys; print(sys.stdin.read())",
    "pickles": "import pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__module__)",
}


@pytest.mark.parametrize("case", ENDINGS)
def test_ends_as_under_python(python: str, here: Path, case: str) -> None:
    Path("ending.py").write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\n"
        f"print('begun', flush=True)\n{ENDINGS[case]}\n"
    )
    typed = b"p 1 + 1\nc\n"
    plain = subprocess.run([python, "ending.py"], input=typed, capture_output=True, check=False)
    shown = process("record", "--python", python, "ending.py", stdin=typed)
    assert (shown.code, shown.out) == (plain.returncode, plain.stdout.decode())
    own = [line for line in shown.err.splitlines() if "gradrun" not in line]
    assert own == plain.stderr.decode().splitlines()
    assert Path("ending.gradrun").exists() == (case != "an exit of its own")


def test_a_module_and_its_arguments(gradcli: CommandLine, python: str, here: Path) -> None:
    Path("package").mkdir()
    Path("package/__init__.py").write_text("")
    Path("package/step.py").write_text("import torch\nw = torch.ones(2, requires_grad=True)\n")
    Path("package/__main__.py").write_text(
        "import sys\nfrom package.step import w\nprint(__package__, sys.argv[1:])\n"
        "loss = (w * 2).sum()\nloss.backward()\n"
    )
    words = ["-m", "package", "--at", "x", "-o"]
    shown = process("record", "--python", python, *words)
    assert (shown.code, shown.out) == (0, "package ['--at', 'x', '-o']\n")
    shown = gradcli("why", "w.grad", "package.gradrun")
    assert "__main__.py:4" in shown.out


def test_a_module_that_cannot_be_hashed_while_it_is_made(python: str, here: Path) -> None:
    Path("hashed.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Linear):\n    def __hash__(self):\n"
        "        return hash(self.late)\n\n\nnet = Net(2, 1)\nnet.late = 3\n"
        "net(torch.ones(1, 2)).sum().backward()\n"
    )
    shown = process("record", "--python", python, "hashed.py")
    assert shown.code == 0, shown.err
    assert "wrote " in shown.err
