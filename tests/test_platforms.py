"""Hosts without what Linux has, and installations without every package: each is played by taking
the names away (`tests/host.py`) in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import running
from tests.command_line import ROOT
from tests.machine import PATIENCE

Lacks = Mapping[str, Any]

MACOS = ["os.sched_getaffinity", "os.posix_fadvise"]

WINDOWS = [
    *MACOS,
    *(f"os.{name}" for name in ("fork", "register_at_fork", "getuid", "geteuid", "fchmod")),
    *(f"os.{name}" for name in ("set_blocking", "mkfifo", "O_NOFOLLOW", "O_NONBLOCK", "sysconf")),
    *(f"signal.{name}" for name in ("setitimer", "SIGALRM", "ITIMER_REAL", "SIGKILL", "SIGPIPE")),
]

_UNIX_MODULES = ["resource", "fcntl", "termios", "pwd"]

PYODIDE = {
    "platform": "emscripten",
    "names": ["os.sched_getaffinity", "os.mkfifo", "signal.setitimer", "signal.ITIMER_REAL"],
    "refused": ["os.fork", "_posixsubprocess.fork_exec"],
    "folders": ["/proc/", "/sys/"],
    "packages": ["resource", "pwd"],
    "threads": 0,
}
"""As Pyodide 314 has it (`tests/pyodide.mjs` runs in it): processes are refused when they start."""

HOSTS: dict[str, Lacks] = {
    "macOS": {"names": MACOS},
    "Windows": {"names": WINDOWS, "packages": _UNIX_MODULES},
    "Pyodide": PYODIDE,
    "no threads": {"names": ["os.fork"], "threads": 0},
    "processes without threads": {"threads": 0},
}


def run(
    lacks: Lacks, *words: str, cwd: Path = ROOT, home: Path | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command on a host that lacks something; its cache is in `home`."""
    cache = {} if home is None else {"XDG_CACHE_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-m", "tests.host", json.dumps(lacks), *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT), **cache},
    )


# --- hosts ----------------------------------------------------------------------------------------

RUNS = {
    "one-shot": (["y = a * 2", "a=3", "--no-trace"], "a.grad = tensor(2.)"),
    "threads": (
        ["-e", "print((torch.arange(10**6) / 1e6).tanh().mean())"],
        "tensor(0.4338)",
    ),
    "memory": (["-e", "print(2)", "--max-memory", "500MB"], "2"),
    "time": (["-e", "print(3)", "--timeout", "60"], "3"),
    "processes": (["-e", "print(x + 1)", "--inputs", "-", "--jobs", "2"], "tensor(2., grad_fn"),
    "files": (["-e", "save(ones(2), 'x.npy')", "-e", "print(load('x.npy'))"], "tensor([1., 1.])"),
}


RUN_ALL = """
import contextlib, io, json, sys
from gradcli.cli.main import run
found = []
for words, stdin in json.loads(sys.argv[1]):
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
        out.flush(), err.flush()
    found.append([code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()])
print(json.dumps(found))
"""
"""Runs commands, each with what it reads, one after the other in one process."""


def run_python(lacks: Lacks, text: str, *words: str, cwd: Path = ROOT) -> str:
    """What a Python program prints on a host; it must put nothing on standard error."""
    first = (
        "import json, gradcli\nfrom tests.host import take_away\n"
        f"take_away(json.loads({json.dumps(lacks)!r}))\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", first + text, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
    )
    assert finished.stderr == ""
    return finished.stdout


@pytest.mark.parametrize("host", HOSTS)
def test_programs_run_there(host: str, tmp_path: Path) -> None:
    commands = json.dumps([(words, '{"x": 1}\n') for words, _ in RUNS.values()])
    found = json.loads(run_python(HOSTS[host], RUN_ALL, commands, cwd=tmp_path))
    for (name, (_, expected)), (code, out, err) in zip(RUNS.items(), found, strict=True):
        if (host, name) == ("Pyodide", "time"):  # what cannot be kept is not dropped silently
            assert code == 5
            assert "error[E607]: TimeoutError: the limit of time cannot be kept" in err
        else:
            assert (name, code, err) == (name, 0, "")
            assert expected in out, name


BUSY = {
    "gradcli at work": ["-e", "while True: pass", "--max-steps", "1000000000000"],
    "LAPACK at work": ["-e", "torch.linalg.svd(ones(3000, 3000))"],
    "a program that catches all": [
        *("-e", "while True:\n  try:\n    while True: sin(ones(9))\n  except BaseException: pass"),
        *("--max-steps", "1000000000000"),
    ],
}


@pytest.mark.parametrize("name", BUSY)
def test_a_timeout_is_kept_without_timers(name: str) -> None:
    finished = run(HOSTS["Windows"], *BUSY[name], "--timeout", "0.5")
    assert "error[E607]: TimeoutError: the program ran for more than 0.5 s" in finished.stderr
    assert (finished.returncode, finished.stdout) == (5, "")


def test_each_file_has_the_whole_time_without_timers(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.grad").write_text("print(1)\n")
    words = [str(path) for path in sorted(tmp_path.iterdir())]
    finished = run(HOSTS["Windows"], "run", *words, "--timeout", "60")
    assert finished.returncode == 0
    assert finished.stdout.split("\n").count("1") == 3


def test_the_cache_is_used_where_mode_bits_say_nothing(tmp_path: Path) -> None:
    """Where every file looks writable by all, a cached grammar is used all the same."""
    windows = HOSTS["Windows"]
    assert run(windows, "-e", "print(1)", home=tmp_path).stdout == "1\n"
    for file in (tmp_path / "gradcli").iterdir():
        file.chmod(0o666)
    without_lark = {**windows, "packages": [*_UNIX_MODULES, "lark"]}
    assert run(without_lark, "-e", "print(1)", home=tmp_path).stdout == "1\n"


# --- Pyodide with NumPy and click alone -----------------------------------------------------------

BARE = {
    **PYODIDE,
    "packages": [
        *("resource", "pwd", "scipy", "ml_dtypes", "prompt_toolkit", "cupy", "distributed"),
        *("mcp", "pygls", "pygments", "ipykernel", "IPython", "pyarrow", "pytest", "setuptools"),
    ],
}

NEEDS_MORE = (
    "gradcli.build_backend",
    "gradcli.repl.",
    "gradcli.doors.agents.server",
    "gradcli.doors.editors.",
    "gradcli.doors.notebook.",
    "gradcli.cli.pytest_plugin",
)
"""Modules that are imported only where a package of their own is."""

IMPORTS = """
import pkgutil
for name in sorted(each.name for each in pkgutil.walk_packages(gradcli.__path__, "gradcli.")):
    if name.rpartition(".")[2] not in ("__main__", "_core", "child"):
        try:
            __import__(name)
        except ImportError as error:
            print(name, error)
"""

LIBRARY = """
result = gradcli.run("e = (a + b) * d", a=2, b=3, d=4)
print(result.value, {name: float(each) for name, each in result.grads.items()})
print(result._repr_html_()[:4], gradcli.derive("y = x * x", x=2).passed)
session = gradcli.Session()
session.run("x = tensor(3., requires_grad=True); y = x * x")
print(session.grad("y"))
try:
    gradcli.run("y = x", x=1, timeout=1)
except gradcli.GradcliError as error:
    print(error.code)
"""

COMMANDS = {
    "train.grad steps=3 --": (["run", "train.grad", "steps=3"], 0, "w.grad tensor([1.6", ""),
    "files": (["run", "train.grad", "train.grad", "--jobs", "2", "-q"], 0, "w.grad", ""),
    "explain": (["explain", "e = (a + b) * d", "a=2", "b=3", "d=4"], 0, "d.grad", ""),
    "derive": (["derive", "y = x * tanh(x)", "x=2"], 0, "grad_x = tanh(x)", ""),
    "check": (["check", "y = x * x", "x=2"], 0, "x.grad  fine", ""),
    "blame": (["blame", "y = log(x)", "x=0"], 1, "log", ""),
    "picture": (["y = x * x", "x=2", "-o", "y.svg", "-q"], 0, "", ""),
    "help": (["help", "platforms"], 0, "Pyodide", ""),
    "info": (["info"], 0, "kernels in C", ""),
    "wrong": (["y = a * ", "a=2"], 3, "", "error[E001]"),
    "session": (["repl"], 0, "x.grad = tensor(6.)", ""),
    "time": (["-e", "1", "--timeout", "9"], 5, "", "error[E607]: TimeoutError: the limit of time"),
    "cluster": (
        ["y = x", "--inputs", "-", "--cluster", "local:2"],
        *(5, "", "error[E609]: ImportError: --cluster needs Dask"),
    ),
    "mcp": (["mcp"], 5, "", "error[E609]: ImportError: `gradcli mcp` needs the SDK of MCP"),
    "lsp": (["lsp"], 5, "", "error[E609]: ImportError: `gradcli lsp` needs pygls"),
    "kernel": (["kernel", "install"], 5, "", "error[E609]: ImportError: `gradcli kernel` needs"),
    "scipy": (
        ["-e", "torch.special.bessel_j0(ones(4))"],
        5,
        "",
        "error[E609]: ImportError: this needs sc",
    ),
    "bfloat16": (["-e", "ones(2).bfloat16()"], 5, "", "error[E609]: ImportError: this needs ml_"),
}
"""Words, exit code, what standard output holds, and how standard error begins."""


def test_all_but_what_needs_packages_of_its_own_is_imported_there() -> None:
    found = run_python(BARE, IMPORTS).splitlines()
    assert [line for line in found if not line.startswith(NEEDS_MORE)] == []
    assert all("No module named" in line for line in found)


def test_the_library_works_there() -> None:
    assert run_python(BARE, LIBRARY).splitlines() == [
        "20.0 {'a': 4.0, 'b': 4.0, 'd': 5.0}",
        "<svg True",
        "{'x': array(6., dtype=float32)}",
        "E607",
    ]


def test_commands_run_there_or_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.grad").write_text(
        "steps = 5\nw = torch.ones(2, requires_grad=True)\n"
        "opt = torch.optim.Adam([w], lr=0.1)\n"
        "for i in range(steps):\n  opt.zero_grad()\n  (w * w).sum().backward()\n  opt.step()\n"
        "print('w.grad', w.grad)\n"
    )
    lines = "x = tensor(3., requires_grad=True)\ny = x * x\n.backward y\n"
    commands = json.dumps([(words, lines) for words, *_ in COMMANDS.values()])
    found = json.loads(run_python(BARE, RUN_ALL, commands, cwd=tmp_path))
    for name, (_, code, out, err), (had, printed, told) in zip(
        COMMANDS, COMMANDS.values(), found, strict=True
    ):
        assert (name, had) == (name, code), told
        assert out in printed, (name, printed)
        assert told.startswith(err), (name, told)
        assert bool(told) == bool(err), (name, told)


# --- packages -------------------------------------------------------------------------------------

SCIPY = [
    "torch.special.bessel_j0(ones(2))",
    "torch.special.airy_ai(ones(2))",
    "torch.special.spherical_bessel_j0(ones(2))",
    "torch.special.hermite_polynomial_h(ones(2), 2)",
]
"""Programs that need SciPy: one for each place that imports it."""

MISSING = {
    "packages": "error[E609]: ImportError: this needs {}, which is not installed",
    "broken": "error[E609]: ImportError: this needs {}, which cannot be loaded: numpy.dtype size",
}


@pytest.mark.parametrize("text", SCIPY)
def test_scipy_is_named_where_it_is_missing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    running.hide("scipy", monkeypatch)
    error = running.run(text).error
    assert error is not None
    assert (error.code, error.exit_code) == ("E609", 5)
    assert error.message == "this needs scipy, which is not installed"
    assert error.help == "`pip install 'gradcli[scipy]'`"


@pytest.mark.parametrize("how", MISSING)
@pytest.mark.parametrize(
    ("package", "text"), [("scipy", SCIPY[0]), ("ml_dtypes", "ones(2, dtype=torch.bfloat16)")]
)
def test_the_command_names_the_package(how: str, package: str, text: str) -> None:
    finished = run({how: [package]}, "-e", text, "-e", "print('not reached')")
    assert finished.stderr.startswith(MISSING[how].format(package))
    assert " --> program:1:1\n" in finished.stderr
    assert (finished.returncode, finished.stdout) == (5, "")


def test_a_program_can_catch_it() -> None:
    text = (
        "try:\n    torch.special.airy_ai(rand(1))\nexcept ImportError as error:\n    print(error)"
    )
    finished = run({"packages": ["scipy"]}, "-e", text)
    assert finished.stdout == "this needs scipy, which is not installed\n"


def test_most_of_gradcli_needs_neither() -> None:
    words = ["y = (torch.tanh(x @ w) ** 2).mean()", "x=[[1,2]]", "w=[[3],[4]]", "--trace=steps"]
    finished = run({"packages": ["scipy", "ml_dtypes", "prompt_toolkit"]}, *words)
    assert (finished.returncode, finished.stderr) == (0, "")
