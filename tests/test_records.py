"""`--inputs` and `--jobs`: one program over many records, and many programs at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.running.process.progress import Progress
from gradcli.running.process.workers import Work, results
from gradcli.running.run import Run
from tests.command_line import ROOT, CommandLine, Shown, process, start
from tests.machine import PATIENCE, takes_at_most

pytestmark = pytest.mark.usefixtures("here")

PROGRAM = "y = (a * b).sum()"

needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="/proc tells which processes there are"
)


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def cases(*records: Any) -> str:
    """A file of records, those that are texts as they stand."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in records]
    Path("cases.jsonl").write_text("\n".join(texts) + "\n")
    return "cases.jsonl"


def outcome(document: dict[str, Any]) -> Any:
    """The output's value, or the code of the error."""
    if "error" in document:
        return document["error"]["code"]
    return document["outputs"][0]["value"]


# --- records ------------------------------------------------------------------------------------

RECORDS: list[tuple[Any, Any]] = [
    ({"a": 2, "b": 3}, 6.0),
    ({"a": [1, 2], "b": [3, 4]}, 11.0),
    ({"a": [[1, 2], [3, 4]], "b": [10, 1]}, 46.0),
    ({"a": "[1, 2]", "b": "ones(2) * 3"}, 9.0),
    ({"a": "@x.npy", "b": 2}, 6.0),
    ({"a": "NaN", "b": 1}, "NaN"),
    ({"a": ["Infinity", 1], "b": 1}, "Infinity"),
    ({"a": {"real": 1, "imag": 2}, "b": 2}, {"real": 2.0, "imag": 4.0}),
    ({"a:const": 3, "b": 2}, 6.0),
    ({"a": 1, "b": 2, "id": "s 7", "not a name": "("}, 2.0),
    ({"a": [True, False], "b": 5}, 5.0),
    ('\t{"a": 1, "b": 1}\r', 1.0),
    ({"a": 1}, "E101"),
    ({"a": [1, 2], "b": [1, 2, 3]}, "E301"),
    ({"a": [[1], [2, 3]], "b": 1}, "E501"),
    ({"a": "1 +", "b": 1}, "E501"),
    ({"a": "", "b": 1}, "E501"),
    ({"a": "@none.npy", "b": 1}, "E502"),
    ('{"a": 1', "E504"),
    ('{"a": NaN}', "E504"),
    ('{"a": 1, "a": 2}', "E504"),
    ('{"a": "\udcff"}', "E501"),
    ("[" * 1000, "E504"),
    ([1, 2], "E507"),
    ({"a b": 1}, "E101"),
    ({"b:": 1}, "E507"),
    ({"a:grad": 1}, "E507"),
]


def test_records(gradcli: CommandLine) -> None:
    """Each record has its result or its error in its place, and a line of its own."""
    np.save("x.npy", np.array([1.0, 2.0]))
    text = "\n".join(r if isinstance(r, str) else json.dumps(r) for r, _ in RECORDS)
    Path("cases.jsonl").write_bytes(text.encode("utf-8", "surrogatepass"))
    expected = [each for _, each in RECORDS]
    expected[21] = "E504"  # a lone surrogate is not UTF-8
    shown = gradcli(PROGRAM, "--inputs", "cases.jsonl", "--seed=1")
    found = lines(shown.out)
    assert [outcome(each) for each in found] == expected
    assert [each["record"] for each in found] == [*range(1, len(RECORDS) + 1)]
    assert {each["schema"] for each in found} == {"gradcli.result/1"}
    assert shown.code == 3  # that of the first failure
    assert "15 of 27 records failed; the first is record 13 with E101" in shown.err


def test_errors_of_records_name_their_place(gradcli: CommandLine) -> None:
    cases({"a": 1, "b": 2}, "", {"a": [[1], [2, 3]], "b": 1}, "{")
    _, ragged, broken = lines(gradcli(PROGRAM, "--inputs", "cases.jsonl").out)
    (place,) = ragged["error"]["spans"]
    assert (place["file"], place["text"]) == ("record 2", "[2, 3]")
    assert broken["error"]["message"].startswith("record 3 (line 4): line 1, column 2: no JSON")


def test_a_record_is_a_run_of_its_own(gradcli: CommandLine) -> None:
    """No record sees what another one did, and each has the document that a run alone has."""
    cases({"a": 1, "b": 2}, {"a": 1, "b": 2})
    program = "print('on')\nk[0] += 1\ny = (a * b + randn(1) + k[0]).sum()"
    shown = gradcli("-e", program, "k:const=[0]", "--inputs", "cases.jsonl")
    first, second = lines(shown.out)
    assert {**first, "record": 2} == second
    alone = json.loads(gradcli("-e", program, "k:const=[0]", "a=1", "b=2", "--json").out)
    assert {"record": 1, **alone} == first
    assert first["printed"] == "on\n"


def test_common_values_and_those_of_a_record(gradcli: CommandLine) -> None:
    cases({"a": 1}, {"a": 2, "b": 100})
    np.save("b.npy", np.array([3.0]))
    shown = gradcli(PROGRAM, "b=@b.npy", "unused=1", "--inputs", "cases.jsonl")
    assert [outcome(each) for each in lines(shown.out)] == [3.0, 200.0]
    assert "the program does not use `unused`" in shown.err
    shown = gradcli(PROGRAM, "b=@none.npy", "--inputs", "cases.jsonl")
    assert [outcome(each) for each in lines(shown.out)] == ["E502", 200.0]


def test_program_files_and_standard_input(gradcli: CommandLine) -> None:
    cases({"a": 1, "b": 2}, {"a": 3, "b": 4})
    Path("p.grad").write_text(PROGRAM + "\n")
    shown = gradcli("run", "p.grad", "--inputs", "cases.jsonl")
    assert [outcome(each) for each in lines(shown.out)] == [2.0, 12.0]
    by_stdin = process("run", "-", "--inputs", "cases.jsonl", stdin=PROGRAM.encode())
    assert [outcome(each) for each in lines(by_stdin.out)] == [2.0, 12.0]
    records = Path("cases.jsonl").read_bytes()
    assert process("run", "p.grad", "--inputs", "-", stdin=records).out == shown.out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_values_on_standard_input_serve_all_runs(jobs: str) -> None:
    cases(*({"a": number} for number in range(1, 41)))
    words = (PROGRAM, "b=@-", "--inputs", "cases.jsonl", "--jobs", jobs)
    found = lines(process(*words, stdin=b"[1, 2]").out)
    assert [outcome(each) for each in found] == [3.0 * number for number in range(1, 41)]
    shown = process(*words, stdin=b"[1, 2")
    assert (shown.code, shown.out) == (4, "")
    for name in ("p.grad", "q.grad"):
        Path(name).write_text("print(b.sum())\n")
    shown = process("run", "p.grad", "q.grad", "b:const=@-", "--jobs", jobs, stdin=b"[1, 2]")
    assert shown.out == "tensor(3)\ntensor(3)\n"


def test_records_in_csv(gradcli: CommandLine) -> None:
    Path("cases.csv").write_text('\ufeffa,"b"\n1,2\n\n3,\n4\n"[1,2]",5\n')
    shown = gradcli(PROGRAM, "--inputs", "cases.csv")
    assert [outcome(each) for each in lines(shown.out)] == [2.0, "E501", "E504", 15.0]
    assert "line 5: the row has 1 cell, and the header has 2" in shown.out
    assert shown.code == 4


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((PROGRAM, "--inputs", "none.jsonl"), 4, "no such file"),
        ((PROGRAM, "--inputs", "."), 4, "is a folder"),
        (("y = (", "--inputs", "cases.jsonl"), 3, "E00"),
        (("run", "none.grad", "--inputs", "cases.jsonl"), 2, "E503"),
        (("run", "a.grad", "b.grad", "--inputs", "cases.jsonl"), 2, "--inputs runs one file"),
        (
            (PROGRAM, "--inputs", "cases.jsonl", "-o", "x.json"),
            2,
            "writes .npz, .safetensors, .parquet",
        ),
        ((PROGRAM, "--inputs", "cases.jsonl", "--format", "table"), 2, "not --format table"),
        ((PROGRAM, "--inputs", "cases.jsonl", "--of", "z"), 2, "the program has no `z`"),
        ((PROGRAM, "--inputs", "cases.jsonl", "--sandbox"), 5, "E606"),
        ((PROGRAM, "--json", "--format", "table"), 2, "exclude each other"),
    ],
)
def test_what_ends_before_the_first_record(
    gradcli: CommandLine, words: tuple[str, ...], code: int, message: str
) -> None:
    cases({"a": 1, "b": 2})
    shown = gradcli(*words)
    assert (shown.code, shown.out) == (code, "")
    assert message in shown.err


# --- many ---------------------------------------------------------------------------------------


@pytest.fixture
def thousand() -> dict[int, str]:
    """A file of a thousand records, of which three are bad: their numbers and codes."""
    records: list[Any] = [{"a": number, "b": [1, number]} for number in range(1, 1001)]
    records[299] = {"a": 1, "b": [[1, 2], [3]]}
    records[499] = {"a": 1}
    records[699] = "not JSON"
    cases(*records)
    return {300: "E501", 500: "E101", 700: "E504"}


def test_a_thousand_records(gradcli: CommandLine, thousand: dict[int, str]) -> None:
    with takes_at_most(20):  # one process each would take minutes
        shown = gradcli(PROGRAM, "--inputs", "cases.jsonl")
    found = lines(shown.out)
    assert [each["record"] for each in found] == [*range(1, 1001)]
    assert shown.code == 4
    for number, each in enumerate(found, 1):
        assert outcome(each) == thousand.get(number, number + number * number)
    assert "3 of 1,000 records failed; the first is record 300 with E501" in shown.err


def test_jobs_give_the_same_bytes(gradcli: CommandLine, thousand: dict[int, str]) -> None:
    alone = gradcli(PROGRAM, "--inputs", "cases.jsonl")
    shared = process(PROGRAM, "--inputs", "cases.jsonl", "--jobs", "2")
    assert (shared.code, shared.out, shared.err) == (alone.code, alone.out, alone.err)


def test_jobs_share_files() -> None:
    for number in range(4):
        Path(f"{number}.grad").write_text(f"print('file', {number})\nx = {number} / {number}\n")
    names = [f"{number}.grad" for number in (1, 2, 0, 3)]

    def both(*options: str) -> Shown:
        alone = process("run", *names, *options)
        shared = process("run", *names, *options, "--jobs", "2")
        assert (shared.code, shared.out, shared.err) == (alone.code, alone.out, alone.err)
        return shared

    assert both().out == "file 1\nfile 2\nfile 0\n"
    shown = both("--keep-going", "--json")
    assert shown.code == 3
    assert shown.out.count("\n") == 3
    assert "3 of 4 files ran to their end" in shown.err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_records_run_as_they_arrive(jobs: str) -> None:
    with start(PROGRAM, "--inputs", "-", "--jobs", jobs) as running:
        assert running.stdin
        assert running.stdout
        for number in (1, 2, 3):
            running.stdin.write(b'{"a": %d, "b": 2}\n' % number)
            running.stdin.flush()
            assert outcome(json.loads(running.stdout.readline())) == 2.0 * number
        running.stdin.close()
        assert running.wait(PATIENCE) == 0


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_closed_pipe_ends_quietly(jobs: str, thousand: dict[int, str]) -> None:
    with start(PROGRAM, "--inputs", "cases.jsonl", "--jobs", jobs) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(PATIENCE) == 141
        assert running.stderr.read() == b""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
@needs_proc
def test_signals_leave_no_process(number: signal.Signals, code: int) -> None:
    """However the run ends, its processes end with it."""
    endless = "print(a)\nwhile True: pass"
    words = ("-e", endless, "--inputs", "-", "--jobs", "2", "--max-steps", str(10**12))
    with start(*words, start_new_session=True) as running:
        assert running.stdin
        running.stdin.write(b'{"a": 1}\n{"a": 2}\n')
        running.stdin.flush()
        _wait_for(lambda: len(_group(running.pid)) == 3)
        running.send_signal(number)
        assert running.wait(PATIENCE) == code
        _wait_for(lambda: not _group(running.pid))


ORPHANS = """
import os, signal, sys, time
from gradcli.running.process.workers import Work, results

def do(task):
    if task == b"stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif task == b"in C":
        10**10**9  # holds the interpreter for minutes
    return task

if "thread" in sys.argv:
    import fcntl
    del fcntl.F_SETSIG
work = Work(do, lambda task: [], lambda task, attempts: b"", retries=0)
answers = results(iter([b"quick", sys.argv[1].encode(), b"quick", sys.argv[1].encode()]), work, 2)
next(answers)
if os.fork() == 0:  # another process that lives on has no hold on them
    print(flush=True)
    os.setpgid(0, 0)
    signal.alarm(120)
    time.sleep(120)
next(answers)
"""


@pytest.mark.parametrize("words", [["stopped"], ["in C"], ["stopped", "thread"]])
@needs_proc
def test_no_process_outlives_the_one_that_made_it(words: list[str]) -> None:
    """Not one that is stopped or keeps the interpreter, nor for a fork that is about."""
    command = [sys.executable, "-c", ORPHANS, *words]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    ) as running:
        assert running.stdout
        assert running.stdout.readline() == b"\n"
        _wait_for(lambda: len(_group(running.pid)) == 3)
        others = [each for each in _group(running.pid, 3) if each not in _group(running.pid)]
        running.kill()
        try:
            if "thread" in words:  # it takes its turn once it goes on
                os.killpg(running.pid, signal.SIGCONT)
            _wait_for(lambda: not _group(running.pid))
        finally:
            for each in others:
                os.kill(each, signal.SIGKILL)


def _group(leader: int, field: int = 2) -> list[int]:
    """The processes that run in a group, or in a session (field 3)."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[field]) == leader and fields[0] != "Z":
                found.append(int(name))
    return found


def _wait_for(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@needs_proc
def test_a_lost_process_costs_only_time(gradcli: CommandLine) -> None:
    slow = "for i in range(20000): pass\ny = x * 2"
    cases(*[{"x": number} for number in range(100)])
    whole = gradcli("-e", slow.replace("20000", "2"), "--inputs", "cases.jsonl")
    words = ("-e", slow, "--inputs", "cases.jsonl", "--jobs", "2")
    with start(*words, start_new_session=True) as running:
        for _ in range(3):
            _wait_for(lambda: len(_group(running.pid)) == 3)
            os.kill(max(_group(running.pid)), signal.SIGKILL)
            time.sleep(0.1)
        out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    assert out.decode() == whole.out


def test_what_ends_its_process_is_found() -> None:
    """Pieces go alone once the process of their task ended; the others have their results."""

    def do(task: bytes) -> bytes:
        if b"deadly" in task:
            os.kill(os.getpid(), signal.SIGKILL)
        return b"did " + task

    def lost(piece: bytes, attempts: int) -> bytes:
        return b"lost %s at %d" % (piece, attempts)

    tasks = [b"a b", b"c deadly d", b"e", b"deadly", b"f g"]
    work = Work(do, bytes.split, lost, retries=2)
    assert list(results(iter(tasks), work, jobs=2)) == [
        b"did a b", b"did c", b"lost deadly at 3", b"did d", b"did e", b"lost deadly at 3",
        b"did f g",
    ]  # fmt: skip


def test_what_cannot_be_done_again_is_lost() -> None:
    def do(task: bytes) -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return task

    work = Work(do, lambda task: [], lambda task, attempts: b"%d" % attempts, retries=2)
    assert list(results(iter([b"-"]), work, jobs=2)) == [b"1"]


def test_a_lost_record_has_its_error_in_its_place(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Run.execute

    def deadly(self: Run, *given: Any) -> Any:
        if any(argument.text == "7" for argument in given[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, *given)

    monkeypatch.setattr(Run, "execute", deadly)
    cases(*[{"x": number} for number in range(20)])
    finished = gradcli("y = x * 2", "--inputs", "cases.jsonl", "--jobs", "2", "--retries", "1")
    records = lines(finished.out)
    assert finished.code == 5
    assert [record["record"] for record in records if "error" in record] == [8]
    assert records[7]["error"]["code"] == "E608"
    assert "at each of 2 attempts" in records[7]["error"]["message"]
    assert len(records) == 20


# --- progress -----------------------------------------------------------------------------------


class _Screen:
    """A standard error that says whether it is a terminal, and keeps what it got."""

    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal
        self.text = ""

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


@pytest.mark.parametrize(
    ("err", "out", "seconds", "shown"),
    [
        (True, False, 2.5, "\r\x1b[K7 records\r\x1b[K"),
        (True, False, 1.5, ""),
        (False, False, 2.5, ""),
        (True, True, 2.5, ""),
    ],
)
def test_progress(
    monkeypatch: pytest.MonkeyPatch, err: bool, out: bool, seconds: float, shown: str
) -> None:
    """It is shown on a terminal, after two seconds, where the results go elsewhere."""
    screen = _Screen(err)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("sys.stdout", _Screen(out))
    clock = iter([100.0, 100.0 + seconds, 100.0 + seconds])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = Progress()
    progress.show("7 records")
    progress.end()
    assert screen.text == shown


def test_a_file_to_go_on_with_of_deep_brackets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "done.jsonl").write_text(f"{'[' * 200_000}\n")
    (tmp_path / "cases.jsonl").write_text('{"a": 1}\n')
    words = ("--inputs", f"{tmp_path}/cases.jsonl", "--resume", f"{tmp_path}/done.jsonl")
    finished = process("y = a * 2", *words)
    assert finished.code == 2, finished.err
    assert "line 1 is no result" in finished.err
