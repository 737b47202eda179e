"""`--cluster`: the records of a sweep on a cluster of Dask, with workers that die."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gradcli
from tests.command_line import ROOT, process, start
from tests.dying_workers import PROGRAM as SLOW
from tests.dying_workers import children
from tests.machine import PATIENCE

pytest.importorskip("distributed")

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]

PROGRAM = "y = (a * b * w).sum()"
WORDS = (PROGRAM, "w=2", "--inputs", "cases.jsonl")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(400)
    return tmp_path


def write(count: int, **more: object) -> None:
    """A file of records, of which the fourth is wrong."""
    records = [{"a": k, "b": k % 7, **more} for k in range(count)]
    del records[3]["a"]
    Path("cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))


def waited_for(parent: int, count: int, *parts: str) -> list[int]:
    """`children`, once there are so many."""
    end = time.monotonic() + PATIENCE
    while len(found := children(parent, *parts)) < count:
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def is_alive(number: int) -> bool:
    with contextlib.suppress(OSError):
        return Path("/proc", str(number), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(*numbers: int) -> bool:
    """Whether these processes end before long."""
    end = time.monotonic() + PATIENCE
    while any(map(is_alive, numbers)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(is_alive, numbers))


@contextlib.contextmanager
def dask(*words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler or worker of its own."""
    command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
    settings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    running = subprocess.Popen(
        command, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def scheduler() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    with dask(*words) as running:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"tcp://127.0.0.1:{port}", running


# --- the same results ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [(), ("--chunk", "7"), ("--manual-seed-per-record",), ("--reduce", "sum"), ("--shard", "1/3")],
)
def test_a_local_cluster_gives_the_same_bytes(words: tuple[str, ...]) -> None:
    alone = process(*WORDS, *words)
    shared = process(*WORDS, *words, "--cluster", "local:2")
    assert (shared.code, shared.out) == (alone.code, alone.out)
    assert shared.err == alone.err
    assert alone.code == 3  # the fourth record


def test_files_are_read_where_the_command_is_given(here: Path) -> None:
    (here / "w.json").write_text("[2, 3]")
    words = ("y = (a * w).sum()", "w=@w.json", "--inputs", "cases.jsonl")
    assert process(*words, "--cluster", "local:1").out == process(*words).out


def test_limits_hold_on_the_workers() -> None:
    write(8)
    endless = "while b == 5:\n    pass\ny = a * 2"
    shown = process(endless, "--inputs", "cases.jsonl", "--cluster", "local:2", "--timeout", "3")
    codes = [json.loads(line).get("error", {}).get("code") for line in shown.out.splitlines()]
    assert codes == [None, None, None, "E101", None, "E607", None, None]
    big = "y = a * 2\nif b == 5:\n    z = [zeros(10**6) for i in range(1000)]"
    words = ("--cluster", "local:2", "--max-memory", "100MB")
    shown = process(big, "--inputs", "cases.jsonl", *words)
    codes = [json.loads(line).get("error", {}).get("code") for line in shown.out.splitlines()]
    assert codes == [None, None, None, "E101", None, "E602", None, None]
    shut = ("y = a * load('x.npy')", "--inputs", "-", "--cluster", "local:1", "--sandbox")
    assert "E606" in process(*shut, stdin=b'{"a": 1}\n').out


# --- workers that die ---------------------------------------------------------------------------


def test_workers_that_are_killed_cost_only_time() -> None:
    write(800)
    words = (SLOW, "w=2", "--inputs", "cases.jsonl")
    alone = process(*words, "--jobs", "2")
    with start(*words, "--cluster", "local:2") as running:
        assert running.stdout is not None
        head = running.stdout.readline()
        for _ in range(3):
            time.sleep(0.5)
            worker = waited_for(running.pid, 1, "spawn_main")[0]
            os.kill(worker, signal.SIGKILL)
        for number in children(running.pid, "sweep.child")[:1]:
            os.kill(number, signal.SIGKILL)
        out = head + running.stdout.read()
        assert running.wait(PATIENCE) == alone.code
    assert out.decode() == alone.out


def test_a_record_that_ends_its_process_each_time_is_told(tmp_path: Path) -> None:
    """No program can end its process, so a module beside gradcli's does it for one."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'gradcli.cli.sweep.child' in ' '.join(sys.orig_argv):\n"
        "    import os\n"
        "    from gradcli.cli.sweep.sweep import Runner\n"
        "    run = Runner._run\n"
        "    def ending(self, terminal, number, *more):\n"
        "        if number == 6:\n"
        "            os._exit(9)\n"
        "        return run(self, terminal, number, *more)\n"
        "    Runner._run = ending\n"
    )
    write(12)
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    alone = process(*WORDS).out.splitlines()
    for words, attempts in ((("--retries", "1"), 2), (("--retries", "0", "--chunk", "4"), 1)):
        with start(*WORDS, "--cluster", "local:1", *words, env=environment) as running:
            out, _ = running.communicate(timeout=PATIENCE)
        found = out.decode().splitlines()
        assert found[:5] + found[6:] == alone[:5] + alone[6:]
        error = json.loads(found[5])["error"]
        assert error["code"] == "E608"
        assert (f"at each of {attempts} attempts" in error["message"]) == (attempts > 1)


@pytest.mark.parametrize("stopped", ["before", "while it has the only setup"])
def test_a_stopped_worker_costs_only_time(
    stopped: str, scheduler: tuple[str, subprocess.Popen[bytes]]
) -> None:
    address, _ = scheduler
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", ".")
    words = (SLOW, "w=2", "--inputs", "cases.jsonl", "--chunk", "20")
    with dask(*worker, "--no-nanny") as first:
        waited_for_workers(address, 1)
        if stopped == "before":
            first.send_signal(signal.SIGSTOP)
        with start(*words, "--cluster", address) as running:
            if stopped != "before":
                waited_for(first.pid, 1, "sweep.child")
                first.send_signal(signal.SIGSTOP)
            with dask(*worker, "--no-nanny"):
                out, err = running.communicate(timeout=PATIENCE)
    assert out.decode() == process(*words).out
    assert b"gave no sign of life for 30 seconds: others get its work" in err
    assert running.returncode == 3


def test_a_scheduler_that_dies_leaves_what_is_whole(
    scheduler: tuple[str, subprocess.Popen[bytes]], here: Path
) -> None:
    address, serving = scheduler
    write(800)
    words = (SLOW, "w=2", "--inputs", "cases.jsonl", "--resume", "out.jsonl")
    with dask("worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", "."):
        with start(*words, "--cluster", address) as running:
            end = time.monotonic() + PATIENCE
            out = here / "out.jsonl"
            while not (out.exists() and out.stat().st_size) and time.monotonic() < end:
                time.sleep(0.05)
            serving.kill()
            _, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == 5
        assert b"error[E608]" in err
        assert b"--resume FILE" in err
        assert b"Traceback" not in err
    held = out.read_bytes()
    assert held.endswith(b"\n")
    assert 0 < held.count(b"\n") < 800
    process(*words, "--jobs", "2")
    assert out.read_text() == process(*words[:-2], "--jobs", "2").out


# --- the cluster is left as it was --------------------------------------------------------------


def test_ctrl_c_leaves_the_cluster_as_it_was(
    scheduler: tuple[str, subprocess.Popen[bytes]],
) -> None:
    from distributed import Client

    address, _ = scheduler
    endless = "while True:\n    pass"
    worker = ("worker", address, "--nthreads", "2", "--no-dashboard", "--local-directory", ".")
    with dask(*worker) as serving:
        words = (endless, "--inputs", "cases.jsonl", "--max-steps", str(10**12))
        with start(*words, "--cluster", address) as running:
            busy = waited_for(serving.pid, 2, "sweep.child")
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=PATIENCE)
        assert (running.returncode, out, err) == (130, b"", b"")
        assert gone(*busy)
        with Client(address, set_as_default=False) as client:
            end = time.monotonic() + PATIENCE
            while any(client.processing().values()) and time.monotonic() < end:
                time.sleep(0.1)
            assert not any(client.processing().values())
            assert client.submit(lambda: 7).result(PATIENCE) == 7
        assert process(*WORDS, "--cluster", address).out == process(*WORDS).out
        assert gone(*children(serving.pid, "sweep.child"))


def test_a_local_cluster_is_gone_after_the_run() -> None:
    write(800)
    with start(SLOW, "w=2", "--inputs", "cases.jsonl", "--cluster", "local:2") as running:
        all = waited_for(running.pid, 1, "sweep.child") + children(running.pid)
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=PATIENCE)
    assert running.returncode == 143
    assert gone(*all)


def test_a_worker_of_another_version_is_refused(
    scheduler: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    address, _ = scheduler
    (tmp_path / "sitecustomize.py").write_text("import gradcli\ngradcli.__version__ = '0.0.9'\n")
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", ".")
    with dask(*worker, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"):
        shown = process(*WORDS, "--cluster", address)
    assert (shown.code, shown.out) == (5, "")
    assert "error[E610]" in shown.err
    assert f"gradcli 0.0.9, and this is gradcli {gradcli.__version__}" in shown.err


def test_a_late_worker_of_another_version_is_left_out(
    scheduler: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    address, _ = scheduler
    (tmp_path / "sitecustomize.py").write_text("import gradcli\ngradcli.__version__ = '0.0.9'\n")
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", ".")
    write(200)
    slower = SLOW.replace("2000", "20000")  # a worker hands on what takes longer than to send
    words = (slower, "w=2", "--inputs", "-")
    records = Path("cases.jsonl").read_bytes()
    half = records.index(b"\n", len(records) // 2) + 1  # the rest comes after the worker
    with dask(*worker) as first:
        waited_for_workers(address, 1)
        with start(*words, "--cluster", address, "--chunk", "10") as running:
            assert running.stdin is not None
            running.stdin.write(records[:half])
            running.stdin.flush()
            waited_for(first.pid, 1, "sweep.child")
            with dask(*worker, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"):
                waited_for_workers(address, 2)
                out, err = running.communicate(records[half:], timeout=PATIENCE)
    assert out.decode() == process(*words, "--jobs", "2", stdin=records).out
    assert b"has gradcli 0.0.9, and is left out" in err
    assert running.returncode == 3


def test_a_cluster_without_workers_says_so(
    scheduler: tuple[str, subprocess.Popen[bytes]],
) -> None:
    address, _ = scheduler
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", ".")
    with start(*WORDS, "--cluster", address) as running:
        assert running.stderr is not None
        assert b"has no workers: waiting" in running.stderr.readline()
        with dask(*worker):
            out, err = running.communicate(timeout=PATIENCE)
    assert out.decode() == process(*WORDS).out
    assert b"no workers" not in err


def test_the_processes_of_a_killed_client_end(
    scheduler: tuple[str, subprocess.Popen[bytes]],
) -> None:
    address, _ = scheduler
    worker = ("worker", address, "--nthreads", "2", "--no-dashboard", "--local-directory", ".")
    words = ("while True:\n    pass", "--inputs", "cases.jsonl", "--max-steps", str(10**12))
    with dask(*worker) as serving:
        for _ in range(2):
            with start(*words, "--cluster", address) as running:
                busy = waited_for(serving.pid, 2, "sweep.child")
                running.kill()
                running.communicate(timeout=PATIENCE)
            assert gone(*busy)
        assert process(*WORDS, "--cluster", address).out == process(*WORDS).out


def test_a_mixture_of_processors_gets_one_note(
    scheduler: tuple[str, subprocess.Popen[bytes]],
) -> None:
    umath = np._core._multiarray_umath  # type: ignore[attr-defined]
    there = [each for each in umath.__cpu_dispatch__ if umath.__cpu_features__[each]]
    if not there:
        pytest.skip("NumPy has nothing beyond its baseline here")
    address, _ = scheduler
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", ".")
    with (
        dask(*worker),
        dask(*worker, NPY_DISABLE_CPU_FEATURES=" ".join(there)),
    ):
        waited_for_workers(address, 2)
        shown = process(*WORDS, "--cluster", address)
    assert shown.out == process(*WORDS).out
    assert (
        shown.err.count("the workers, or this machine, differ in processor: last digits may too")
        == 1
    )


def waited_for_workers(address: str, count: int) -> None:
    """Wait until a scheduler has so many workers."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, PATIENCE)


def test_nobody_answers() -> None:
    shown = process(*WORDS, "--cluster", "tcp://127.0.0.1:9")
    assert (shown.code, shown.out) == (5, "")
    assert "no scheduler answers at tcp://127.0.0.1:9" in shown.err
