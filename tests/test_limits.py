"""Limits: what ends a program that asks for too much, and what `--sandbox` refuses.

Each row is run with the default limits or the options beside it; it ends with exit code 5 and a
coded error that has a place and says how to raise the limit.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gradcli.errors import GradcliError
from gradcli.language.objects import repr as written
from gradcli.limits import ELEMENTS, MEMORY, Limits, in_bytes
from gradcli.running.arguments.options import read_size
from gradcli.running.process.interruption import default_memory, limited_time
from gradcli.state import State
from tests.command_line import ROOT, process
from tests.machine import KERNELS, PATIENCE, processor_flags, takes_at_most
from tests.running import Finished, invoke, run, time_limit

HAS_CEILING = os.path.exists("/proc/self/statm")

NOTE = "note: y does not require grad, so there is no gradient\n"


def _run(program: str, *options: str) -> Finished:
    with time_limit(30):
        return invoke("run", "-", *options, stdin=program.encode())


def _assert_ended(finished: Finished, code: str, help: str | None) -> None:
    assert f"error[{code}]" in finished.stderr, finished.stderr
    assert finished.code == 5
    assert " --> stdin:" in finished.stderr
    assert "Traceback" not in finished.stderr
    if help is not None:
        assert f"= help: `{help}" in finished.stderr


# --- runaways under the default limits ------------------------------------------------------------

RUNAWAYS = [
    ("'a' * 10**9", "E602", "--max-elements 1000000000"),
    ("10**10**10", "E602", None),
    ("list(range(10**12))", "E602", "--max-elements 1000000000000"),
    ("zeros(10**6, 10**6)", "E602", "--max-elements 1000000000000"),
    ("def f(x): return f(x)\nf(1)", "E601", None),
    ("[0] * 10**9", "E602", "--max-elements"),
    ("torch.randn(10**9)", "E602", "--max-elements"),
    ("torch.arange(0, 1e12)", "E602", "--max-elements"),
    ("torch.linspace(0, 1, 10**10)", "E602", "--max-elements"),
    ("ones(1).expand(10**12).sum()", "E602", "--max-elements"),
    ("x = ones(10**5)\ny = x[:, None] * x", "E602", None),
    ("torch.outer(ones(10**5), ones(10**5))", "E602", None),
    ("torch.kron(ones(10**5), ones(10**5))", "E602", None),
    ("torch.einsum('i,j->ij', ones(10**5), ones(10**5))", "E602", None),
    ("torch.meshgrid(ones(10**5), ones(10**5), indexing='ij')", "E602", None),
    ("torch.cdist(ones(10**5, 1), ones(10**5, 1))", "E602", None),
    ("torch.eye(10**5)", "E602", None),
    ("torch.diag(ones(10**5))", "E602", None),
    ("F.pad(ones(1), (0, 10**10))", "E602", None),
    ("F.one_hot(tensor([0]), 10**10)", "E602", None),
    ("torch.bincount(tensor([10**10]))", "E602", None),
    ("torch.repeat_interleave(ones(1), 10**10)", "E602", None),
    ("F.interpolate(ones(1, 1, 1), size=10**10)", "E602", None),
    ("s = 'ab'\nwhile True: s += s", "E602", "--max-elements"),
    ("s = [1]\nwhile True: s += s", "E602", "--max-elements"),
    ("f'{1:>{10**9}}'", "E602", None),
    ("x = []\nx.append(x)\nprint(x == [x])", "E601", None),
    ("f = lambda x: sorted([x], key=f)\nf(1)", "E601", None),
    ("x = tensor(1., requires_grad=True)\n"
     "def f(g): (x * x).sum().backward()\n"
     "def h(g):\n    with torch.enable_grad(): f(g)\n"
     "x.register_hook(h)\n(x * 2).backward()", "E601", None),
]  # fmt: skip


@pytest.mark.parametrize(("program", "code", "help"), RUNAWAYS, ids=[row[0] for row in RUNAWAYS])
def test_runaways(program: str, code: str, help: str | None) -> None:
    with takes_at_most(10):
        finished = _run(program)
    if HAS_CEILING or help is not None:
        _assert_ended(finished, code, help)


@pytest.mark.sweep  # the suite has the same loop in the manual, on the page of E605
def test_an_endless_loop() -> None:
    test_runaways("while True: pass", "E605", "--max-steps 100000000")


@pytest.mark.parametrize("name", ["torch.bincount", "F.one_hot"])
def test_as_many_counts_as_no_integer_tells_are_an_error(name: str) -> None:
    finished = _run(f"{name}(tensor([0, 2**63 - 1]))")
    assert "E204" in finished.stderr


def test_ordinary_work_is_left_alone() -> None:
    program = """
        x = torch.randn(1000, 1000, requires_grad=True)
        for i in range(300):
            loss = (x[i] * x[i]).sum()
            loss.backward()
        print(len([i for i in range(100_000)]), x.grad.shape, 2**1000 % 7, torch.eye(1000).sum())
    """
    finished = _run(program.replace("\n        ", "\n"))
    assert finished.code == 0, finished.stderr


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.json", "x.safetensors"])
def test_a_file_of_a_gigabyte(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with open(path, "wb") as file:
        np.save(file, np.zeros(3, np.float32))
        file.truncate(10**9)
    finished = invoke("y = x.sum()", f"x=@{path}")
    assert finished.code == 5
    assert "error[E602]" in finished.stderr
    assert "1 GB is too large: the limit is 800 MB" in finished.stderr
    assert "--max-elements 1000000000" in finished.stderr


def test_a_program_without_end() -> None:
    finished = invoke("run", "/dev/zero")
    assert finished.code == 5
    assert "error[E602]" in finished.stderr


# --- limits that are set --------------------------------------------------------------------------

SET = [
    ("for i in range(1001): pass", "--max-steps=1000", "E605", "more than 1,000 loop iterations"),
    ("f = lambda: 1\n[f() for i in range(600)]", "--max-steps=1000", "E605", "--max-steps 10000"),
    ("list(iter(int, 1))", "--max-steps=1000", "E605", "more than 1,000"),
    ("ones(11)", "--max-elements=10", "E602", "11 elements of ones() are too many"),
    ("x = ones(10)\ntorch.cat([x, x])", "--max-elements=10", "E602", "20 elements are too many"),
    ("x = ones(4)\nx * x[:, None]", "--max-elements=10", "E602", "the limit is 10"),
    ("list(range(11))", "--max-elements=10", "E602", "--max-elements 100"),
    ("'a' * 11", "--max-elements=10", "E602", "11 characters"),
    ("while True: x = ones(2)", "--timeout=0.2", "E607", "for more than 0.2 s"),
    ("while True:\n    try: ones(2)\n    except: pass", "--timeout=0.2", "E607", "--timeout 2"),
    ("def f():\n    while True:\n        try: pass\n        finally: continue\nf()",
     "--timeout=0.2", "E607", "in f(), called at stdin:5:1"),
]  # fmt: skip


def test_a_value_of_a_slice_is_one_step_and_one_of_a_list_made_of_it() -> None:
    program = "from itertools import islice\nlen(list(islice([0] * 90, 90)))"
    finished = _run(program, "--max-steps=200")
    assert finished.code == 0, finished.stderr


@pytest.mark.parametrize(("program", "option", "code", "says"), SET)
def test_set_limits(program: str, option: str, code: str, says: str) -> None:
    finished = _run(program, option)
    _assert_ended(finished, code, None)
    assert says in finished.stderr


@pytest.mark.skipif(not HAS_CEILING, reason="the host has no ceiling on memory")
@pytest.mark.parametrize(
    ("program", "says"),
    [
        (
            "y = [torch.full((10**7,), float(i)) for i in range(100)]",
            "of shape (10000000,) and dtype float",
        ),
        ("x = []\nfor i in range(10**6): x = [x, [0] * 100]", "the limit is 150 MB"),
        ("torch.ones(1).repeat(10**8)", "shape (100000000,"),
    ],
)
def test_memory(program: str, says: str) -> None:
    # A process of its own: one that ran other tests holds free memory, which is not beyond its own.
    shown = process("run", "-", "--max-memory=150MB", stdin=program.encode())
    assert (shown.code, shown.out) == (5, "")
    assert "error[E602]" in shown.err
    assert says in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.skipif(not HAS_CEILING, reason="the host has no ceiling on memory")
def test_a_program_can_go_on_after_a_failed_allocation() -> None:
    program = (
        "try: x = ones(10**8)\nexcept RuntimeError as e: print('no')\nprint(ones(2) @ ones(2))"
    )
    finished = _run(program, "--max-memory=100MB")
    assert (finished.code, finished.stdout) == (0, "no\ntensor(2.)\n")
    assert _run("torch.ones(4 * 10**7).sum()").code == 0  # the ceiling is gone


def test_limits_can_be_raised() -> None:
    program = "x = 'a' * (10**8 + 1)\nprint(len(x))"
    assert _run(program).code == 5
    assert _run(program, "--max-elements=200000000").stdout == "100000001\n"


def test_a_timely_program_is_not_stopped() -> None:
    finished = invoke("e = a * 2", "a=2", "--timeout=60")
    assert finished.code == 0
    assert "e = tensor(4., " in finished.stdout


def test_the_end_of_time_waits_for_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that a run loads is whole afterwards, and no exception is lost on the way."""
    module = "import time\nend = time.monotonic() + 0.2\nwhile time.monotonic() < end: pass\n"
    (tmp_path / "slow_to_load.py").write_text(f"{module}is_whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    state = State(limits=Limits(timeout=0.05))

    def work() -> None:
        with limited_time(state, print):
            import_module("slow_to_load")
            time.sleep(PATIENCE)

    with pytest.raises(GradcliError) as raised:
        work()
    assert raised.value.code == "E607"
    assert sys.modules.pop("slow_to_load").is_whole


def test_time_runs_anew_for_each_file(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("while True: ones(2)")
    finished = invoke(
        "run", str(tmp_path / "a"), str(tmp_path / "b"), "--keep-going", "--timeout=0.1"
    )
    assert finished.code == 5
    assert finished.stderr.count("error[E607]") == 2


def test_runs_that_answer_one_question_share_the_time() -> None:
    """Iterations that were not recorded are recorded by another run, if there is time for one."""
    program = "x = 1.0\nwhile x > 0: x = x / 2 + 1\n"
    with takes_at_most(2):
        finished = invoke("why", "x", "-e", program, "--timeout=0.3")
    assert finished.code == 5
    assert finished.stderr.count("ran for more than 0.3 s") == 1
    once = "w = tensor(1., requires_grad=True)\nfor i in range(3000):\n    x = i * i\n"
    again = f"{once}    if i == 1500: w = (w * 0).log()\ny = w * x"
    finished = invoke("blame", "-e", again, "--timeout=60")
    assert "in round 1501 of the loop" in finished.stdout


def test_sessions_inside_a_program_have_limits_too() -> None:
    error = run("zeros(10**9)").error
    assert error is not None
    assert (error.code, f"{ELEMENTS:,}" in error.message) == ("E602", True)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1), ("500MB", 500_000_000), ("500 mb", 500_000_000), ("1.5G", 1_500_000_000),
        ("2GiB", 2 << 30), ("1kb", 1000), ("3TB", 3 * 10**12), ("", None), ("GB", None),
        ("1XB", None), ("-1GB", None), ("0", None), ("nan", None), ("1e400", None), ("1 G B", None),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int | None) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize(
    "option",
    ["--timeout=0", "--timeout=x", "--max-memory=x", "--max-elements=0", "--max-steps=-1"],
)
def test_unusable_limits(option: str) -> None:
    finished = invoke("e = 1", option)
    assert finished.code == 2
    assert finished.stderr.startswith("error: ")


def test_default_memory() -> None:
    assert 10**8 < default_memory() <= MEMORY
    assert [in_bytes(n) for n in (1, 1500, 4 * 10**9)] == ["1 B", "1.5 KB", "4 GB"]


# --- files out of bounds --------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones(2, np.float32))
    Path("p.grad").write_text("print(1)\n")
    Path("cases.jsonl").write_text('{"x": 1}\n')
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["e = x * 2", "x=@x.npy"],
        ["e = x * 2", "x=2", "-o", "out.npz"],
        ["e = x * 2", "--inputs", "cases.jsonl"],
        ["-e", "x = load('x.npy')"],
        ["-e", "try:\n    load('x.npy')\nexcept ValueError:\n    pass"],
        ["-e", "save(ones(2), 'out.npy')"],
        ["-e", ".read p.grad"],
        ["-e", "x = 1\n.save out.grad"],
    ],
)
def test_sandbox(words: list[str], folder: Path) -> None:
    before = sorted(os.listdir(folder))
    finished = invoke(*words, "--sandbox")
    assert finished.code == 5
    assert "E606" in finished.stderr
    assert sorted(os.listdir(folder)) == before
    assert "E606" not in invoke(*words).stderr


def test_the_sandbox_admits_standard_input_and_the_program(folder: Path) -> None:
    assert invoke("run", "p.grad", "--sandbox").stdout == "1\n"
    finished = invoke("e = x * 2", "x=@-", "--sandbox", "--no-trace", stdin=b"[1.5]\n")
    assert "e = tensor([3.]" in finished.stdout


PRODUCT = "y = (randn(300, 300) @ randn(300, 300)).sum()"


@pytest.mark.parametrize("size", ["1KB", "1MB", "16MB", "40MB"])
@pytest.mark.parametrize("program", [PRODUCT, "y = torch.special.i0(tensor(2.))"])
def test_little_memory_is_a_result_or_a_clear_end(program: str, size: str) -> None:
    """Also where OpenBLAS, or SciPy as it is loaded, would find none."""
    finished = process(program, "--max-memory", size)
    assert finished.code in (0, 5), finished.err
    assert (finished.code == 5) == ("E602" in finished.err)
    assert (finished.code == 0) == (finished.err == NOTE)
    assert finished.code == 0 or finished.err.startswith("error[E602]")


@pytest.mark.skipif(not HAS_CEILING, reason="the host has no ceiling on memory")
def test_recursion_without_memory_is_out_of_memory() -> None:
    """CPython has none left there to say what failed."""
    finished = process("def f(n): return f(n + 1)\nf(0)", "--max-memory", "1KB")
    assert finished.code == 5, finished.err
    assert finished.err.startswith("error[E60")


@pytest.mark.skipif(not HAS_CEILING, reason="the host has no ceiling on memory")
@pytest.mark.parametrize("core", ["Nehalem", "Haswell", "Zen", "SkylakeX"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_buffers_of_openblas_are_not_the_programs(core: str, threads: str) -> None:
    """Whether a product of small matrices takes one depends on the kernels; they are 33 MB large,
    and old versions of OpenBLAS wait forever for one that they do not get.
    """
    if KERNELS[core] not in processor_flags():
        pytest.skip(f"this processor has no {KERNELS[core]}")
    chosen = {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": threads}
    finished = process(PRODUCT, "--max-memory=16MB", env=chosen)
    assert (finished.code, finished.err) == (0, NOTE)


@pytest.mark.skipif(not HAS_CEILING, reason="the host has no ceiling on memory")
@pytest.mark.parametrize("unbuffered", [[], ["-u"]])
def test_a_library_that_ends_the_process_is_out_of_memory(unbuffered: list[str]) -> None:
    """As OpenBLAS does, with a line of its own and a code that means something else here."""
    script = (
        "import ctypes, os, sys\n"
        "from gradcli.cli import main\n"
        "from gradcli.running.run import Run\n"
        "def follow(run, statements):\n"
        "    print('shown')\n"
        "    for number in (1, 2):\n"
        "        os.write(number, b'a library speaks')\n"
        "    library = ctypes.CDLL(None)\n"
        "    library.puts(b'in C')\n"
        "    library.perror(b'in C too')\n"
        "    library.exit(1)\n"
        "Run.follow = follow\n"
        "print('before')\n"
        "sys.argv = ['gradcli', 'y = 1']\n"
        "main.main()\n"
    )
    command = [sys.executable, *unbuffered, "-c", script]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (5, "before\nshown\n")
    assert ended.stderr.startswith("error[E602]")
    assert "in C" not in ended.stderr


@pytest.mark.skipif(os.name != "posix", reason="descriptors are inherited otherwise there")
@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1, 2)])
def test_streams_that_the_caller_has_closed(closed: tuple[int, ...]) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    command = [sys.executable, "-m", "gradcli", "y = tensor(2.)"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=close)
    assert ended.returncode == 0
    assert ended.stderr == ("" if 2 in closed else NOTE)
    assert ended.stdout == ("" if 1 in closed else "y = tensor(2.)\n")


def test_a_library_in_anothers_process_leaves_its_streams_alone() -> None:
    script = (
        "import os, sys, gradcli\n"
        "before = [os.fstat(number) for number in (1, 2)]\n"
        "gradcli.run('y = x @ x', x=[[2.0]], max_memory='100MB')\n"
        "assert before == [os.fstat(number) for number in (1, 2)]\n"
        "assert sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    "values",
    ["[]", "()", "[1]", "(1,)", "[1, -2.5, nan, True, None, 2j]", "[[1, 2], (3.0,), [0] * 300]"],
)
def test_numbers_that_are_written_at_once_count_as_one_by_one(
    values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"from math import nan\nvalues = {values}\nprint(values)\nprint(repr([values]))"

    def outcomes() -> list[tuple[str, str]]:
        found = []
        for elements in (*range(1, 200, 3), 20_000):
            outcome = run(program, limits=Limits(elements=elements))
            found.append((outcome.stdout, str(outcome.error and outcome.error.message)))
        return found

    at_once = outcomes()
    monkeypatch.setattr(written, "_AT_ONCE", -1)
    assert at_once == outcomes()
    assert [at_once[k][1] == "None" for k in (0, -1)] == [False, True]


def test_a_generator_that_is_left_open_runs_within_its_session_alone() -> None:
    """It is collected later, with the session; no limit would hold for it then."""
    waits = "def g():\n  try:\n    yield\n  finally:\n    seen.append(1)\n"
    program = f"{waits}seen = []\nleft = g()\nnext(left)"
    outcome = run(program)
    seen = outcome.session.interpreter.values["seen"]
    del outcome
    gc.collect()
    assert seen == []
    assert run(f"{program}\nleft = None\nprint(seen)").stdout == "[1]\n"


RESERVED = """
from gradcli.running.arguments.options import limits_of
from gradcli.running.process.interruption import memory_ceiling

pages, limits = [], limits_of({})
for _ in range(4):
    with memory_ceiling(limits, print), open("/proc/self/statm") as held:
        pages.append(int(held.read().split()[1]))
assert pages[-1] - pages[0] < 1000, pages
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
def test_the_reserve_of_memory_is_never_written_to() -> None:
    """Nor where it is another block's that came before."""
    again = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 26)}
    command = [sys.executable, "-c", RESERVED]
    subprocess.run(command, check=True, env={**os.environ, **again})
