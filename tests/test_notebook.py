"""Notebooks: the magic in IPython, and the kernel driven by Jupyter's own client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT, process
from tests.machine import PATIENCE

pytest.importorskip("jupyter_client")

pytestmark = [pytest.mark.jupyter, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the kernel is installed."""
    folder = tmp_path_factory.mktemp("jupyter")
    shown = process("kernel", "install", "--prefix", str(folder), "--max-steps", "1000000")
    assert (shown.code, shown.err) == (0, "")
    assert Path(shown.out.strip(), "kernel.json").is_file()
    return folder


@pytest.fixture(scope="module")
def client(jupyter: Path) -> Iterator[Any]:
    with talking_to("gradcli", jupyter) as found:
        yield found


@contextmanager
def talking_to(kernel: str, jupyter: Path) -> Iterator[Any]:
    """A client of a kernel of its own."""
    from jupyter_client.manager import KernelManager

    before = dict(os.environ)
    os.environ |= {"JUPYTER_PATH": str(jupyter / "share" / "jupyter"), "PYTHONPATH": str(ROOT)}
    manager = KernelManager(kernel_name=kernel)
    manager.start_kernel()
    found = manager.client()
    found.start_channels()
    found.wait_for_ready(PATIENCE)
    found.manager = manager
    try:
        yield found
    finally:
        found.stop_channels()
        manager.shutdown_kernel(now=True)
        os.environ.clear()
        os.environ.update(before)


def ran(client: Any, code: str, wait: Any = None) -> tuple[dict[str, Any], list[Any]]:
    """The reply to a cell, and what was sent while it ran."""
    sent: list[Any] = []

    def hear(message: dict[str, Any]) -> None:
        sent.append((message["msg_type"], message["content"]))
        if wait is not None and message["msg_type"] == "stream":
            wait()

    reply = client.execute_interactive(code, output_hook=hear, timeout=PATIENCE)
    return reply["content"], [each for each in sent if each[0] not in ("status", "execute_input")]


def asked(client: Any, request: str, *given: Any) -> dict[str, Any]:
    found: dict[str, Any] = getattr(client, request)(*given, reply=True, timeout=PATIENCE)
    return found["content"]


def test_a_cell_shows_its_last_value(client: Any) -> None:
    code = "x = tensor([1., 2.], requires_grad=True)\nprint('hi')\n3\ny = (x * x).sum()\ny"
    reply, sent = ran(client, code)
    assert reply["status"] == "ok"
    assert sent[0] == ("stream", {"name": "stdout", "text": "hi\n"})
    kind, content = sent[1]
    assert (kind, len(sent)) == ("execute_result", 2)
    assert content["execution_count"] == reply["execution_count"]
    assert content["data"]["text/plain"] == "tensor(5., grad_fn=<SumBackward0>)"
    assert "<svg" in content["data"]["text/html"]
    # What is no expression shows nothing, and values stay.
    assert ran(client, "5\ny.backward()")[1] == []
    assert ran(client, "x.grad")[1][0][1]["data"] == {"text/plain": "tensor([2., 4.])"}


def test_figures_are_pictures(client: Any) -> None:
    head = "import matplotlib.pyplot as plt\n"
    reply, sent = ran(client, f"{head}plt.plot([1, 2], label='up')\nplt.legend()\nplt.show()\n1")
    assert reply["status"] == "ok"
    assert [kind for kind, _ in sent] == ["display_data", "execute_result"]
    assert ">up</text>" in sent[0][1]["data"]["image/svg+xml"]
    assert [kind for kind, _ in ran(client, "plt.plot([3])\nx = 1")[1]] == ["display_data"]
    assert [kind for kind, _ in ran(client, "plot([1, 2])")[1]] == ["display_data"]
    assert ran(client, "2 + 2")[1][0][0] == "execute_result"


def test_dot_commands_and_help(client: Any) -> None:
    ran(client, "q = tensor(2., requires_grad=True)\np = q * 3")
    _, sent = ran(client, ".why q.requires_grad")
    assert "q.requires_grad = True" in sent[0][1]["text"]
    _, sent = ran(client, "exp?")
    assert "torch.exp" in sent[0][1]["text"]


def test_errors_have_their_place(client: Any) -> None:
    reply, sent = ran(client, "a = 1\nb = a +")
    assert (reply["status"], reply["ename"]) == ("error", "SyntaxError")
    assert sent[-1][0] == "error"
    reply, sent = ran(client, "zeros(2) @ zeros(3)\nprint('not run')")
    assert reply["status"] == "error"
    text = "\n".join(sent[-1][1]["traceback"])
    assert "E301" in text
    assert "Traceback" not in text
    assert "1 statement behind it did not run" in sent[0][1]["text"]
    assert len(sent) == 2


def test_limits_hold(client: Any) -> None:
    reply, _ = ran(client, "while True:\n    pass")
    assert (reply["status"], reply["ename"]) == ("error", "TimeoutError")  # --max-steps


def test_completion_and_inspection(client: Any) -> None:
    ran(client, "weight = ones(2, 3)")
    found = asked(client, "complete", "print(weig", 10)
    assert (found["matches"], found["cursor_start"], found["cursor_end"]) == (["weight"], 6, 10)
    assert "sum" in asked(client, "complete", "weight.su", 9)["matches"]
    shown = asked(client, "inspect", "weight + 1", 3)
    assert shown["found"]
    assert "(2, 3)" in shown["data"]["text/plain"]
    assert not asked(client, "inspect", "nothing_here", 3)["found"]
    whole = {"x = 1": "complete", "for i in range(3):": "incomplete", "x = )": "invalid"}
    assert {text: _status(client, text) for text in whole} == whole


def _status(client: Any, text: str) -> str:
    reply: dict[str, Any] = {}
    request = client.is_complete(text)
    while reply.get("parent_header", {}).get("msg_id") != request:
        reply = client.get_shell_msg(timeout=PATIENCE)
    return str(reply["content"]["status"])


def test_a_cell_is_interrupted_and_the_session_goes_on(client: Any) -> None:
    ran(client, "kept = 7")
    code = "print('begun')\nA = torch.rand(60, 60)\nfor i in range(900000):\n    A = A @ A * 0.01"
    reply, sent = ran(client, code, client.manager.interrupt_kernel)
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt"), sent
    assert ran(client, "kept")[1][0][1]["data"]["text/plain"] == "7"


def test_a_magic_is_interrupted_and_the_notebook_goes_on(jupyter: Path) -> None:
    with talking_to("python3", jupyter) as client:
        ran(client, "%load_ext gradcli\nx = 3.0")
        endless = "while True:\n    x * x"
        code = f"print('begun')\nget_ipython().run_cell_magic('gradcli', '', {endless!r})"
        reply, _ = ran(client, code, client.manager.interrupt_kernel)
        assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
        _, sent = ran(client, "%gradcli y = x * x")
        assert sent[0][1]["data"]["text/plain"].endswith("x.grad = tensor(6.)")
        assert sent[0][1]["data"]["text/html"].startswith("<svg")


NOTEBOOKS = {
    "gradcli": (
        [
            "w = tensor([3., 4.], requires_grad=True)\nloss = (w * w).sum()",
            "loss.backward()",
            "w.grad",
        ],
        "tensor([6., 8.])",
    ),
    "python3": (
        [
            "%load_ext gradcli\nimport numpy as np\nx = np.array([0.5, 1.0])",
            "%%gradcli w=[3,4] --out r\nloss = (x * w).sum()",
            "r.grads['x'] * x",
        ],
        "array([1.5, 4. ])",
    ),
}


@pytest.mark.parametrize("kernel", NOTEBOOKS)
def test_a_notebook_is_executed(kernel: str, jupyter: Path, tmp_path: Path) -> None:
    """By nbconvert, as on the command line of Jupyter: our kernel, and the magic in IPython's."""
    cells, shown = NOTEBOOKS[kernel]
    notebook = {
        "nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": kernel,
        "display_name": kernel, "language": kernel}},
        "cells": [{"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": source,
                   "outputs": [], "execution_count": None} for n, source in enumerate(cells)],
    }  # fmt: skip
    path = tmp_path / "lesson.ipynb"
    path.write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace"]
    environment = {
        **os.environ,
        "JUPYTER_PATH": str(jupyter / "share" / "jupyter"),
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run([*command, str(path)], env=environment, check=True, timeout=PATIENCE)
    outputs = json.loads(path.read_text())["cells"][2]["outputs"]
    assert "".join(outputs[0]["data"]["text/plain"]) == shown


# --- the magic ----------------------------------------------------------------------------------


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    from IPython.testing.globalipapp import start_ipython

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    found = start_ipython() or get_ipython()  # type: ignore[name-defined]  # noqa: F821
    found.run_line_magic("load_ext", "gradcli")
    yield found
    found.run_line_magic("reset", "-f")


def test_variables_go_in_and_results_come_out(shell: Any) -> None:
    shell.run_cell("import numpy as np, math\nx = np.array([1., 2.])\nk = 3\nsum = None")
    shell.run_cell_magic("gradcli", "--out r w=[3,4] --wrt x", "loss = (x * w * k).sum()")
    result = shell.user_ns["r"]
    assert (float(result.value), result.grads["x"].tolist()) == (33.0, [9.0, 12.0])
    assert result._repr_html_().startswith("<svg")
    assert list(result.grads) == ["x"]
    line = shell.run_line_magic("gradcli", "(x * x).sum()")
    assert line.grads["x"].tolist() == [2.0, 4.0]


def test_what_is_printed_and_what_fails(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell_magic("gradcli", "x=2", "print('inside')\nx * x")
    assert capsys.readouterr().out == "inside\n"
    ended = shell.run_cell("%%gradcli --sandbox\ny = load('secret.npy')")
    assert ended.error_in_exec.code == "E606"
    shown = capsys.readouterr().out
    assert "--> program:1:5" in shown
    assert "doors" not in shown
    for line in ("--sandbx", "1+1", "--timeout soon", "--out 1x"):
        assert not shell.run_cell(f"%%gradcli {line}\n1").success
    assert "Traceback" not in capsys.readouterr().err
