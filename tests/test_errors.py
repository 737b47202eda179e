"""Errors as the command line shows them: codes, exit codes, and places inside arguments."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gradcli.codes import CODES
from gradcli.errors import GradcliError
from gradcli.session import Session
from tests.command_line import CommandLine

EXAMPLES = {code: found for code, found in CODES.items() if found.example}


@pytest.fixture
def gradcli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_of_codes(gradcli: CommandLine, code: str) -> None:
    """The example in `gradcli help CODE` ends with that code and its exit code."""
    found = CODES[code]
    shown = gradcli("-e", found.example)
    assert shown.code == found.exit_code
    assert shown.err.startswith(f"error[{code}]: ")
    assert " --> program:" in shown.err
    if found.raises != "Exception":
        assert shown.err.startswith(f"error[{code}]: {found.raises}")


@pytest.mark.parametrize("code", CODES)
def test_help_of_codes(gradcli: CommandLine, code: str) -> None:
    found = CODES[code]
    shown = gradcli("help", code)
    assert shown.code == 0
    assert shown.out.startswith(f"{code}: {found.title}\n")
    assert f"exit code {found.exit_code}" in shown.out


def underlined(text: str) -> str:
    """The part of the source line that the carets of a diagnostic stand under."""
    lines = text.split("\n")
    carets = next(number for number, line in enumerate(lines) if "^" in line)
    start, end = lines[carets].index("^"), lines[carets].rindex("^") + 1
    return lines[carets - 1][start:end]


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("x=", "x="),
        ("x=[1,2", "["),
        ("x=1 +", "+"),
        ("x=1 $ 2", "$"),
        ("x=[[1,2],[3]]", "[3]"),
        ("x=[[1,2],[3,4],[5,6,7]]", "[5,6,7]"),
        ("x=[1,[2]]", "[2]"),
        ("x=ones(2) + ones(3)", "ones(2) + ones(3)"),
        ("x=undefined_name", "undefined_name"),
        ("x=1/0", "1/0"),
        ("x=@missing.npy", "@missing.npy"),
    ],
)
def test_places_in_arguments(gradcli: CommandLine, here: Path, word: str, place: str) -> None:
    shown = gradcli("y = x * 2", word)
    assert (shown.code, shown.out) == (4, "")
    assert shown.err.startswith("error[E50")
    assert " --> argument x=…\n" in shown.err
    assert underlined(shown.err) == place


@pytest.mark.parametrize(
    ("seed", "code", "place"),
    [("[1,2", 4, "["), ("foo", 4, "foo"), ("'a'", 4, "'a'"), ("[1, 2]", 3, "x * 2")],
)
def test_places_in_seeds(gradcli: CommandLine, seed: str, code: int, place: str) -> None:
    shown = gradcli("y = x * 2", "x=[1,2,3]", "--seed", seed)
    assert shown.code == code
    assert underlined(shown.err) == place


@pytest.fixture
def data(here: Path) -> Path:
    np.save("good.npy", np.ones(3))
    np.savez("two.npz", a=np.ones(2), b=np.ones(3))
    np.savez("empty.npz")
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save("unsigned.npy", np.ones(2, np.uint64))
    np.save("texts.npy", np.array(["a"]))
    np.save("records.npy", np.zeros(2, [("a", "f4")]))
    (here / "cut.npy").write_bytes((here / "good.npy").read_bytes()[:-5])
    (here / "cut.npz").write_bytes((here / "two.npz").read_bytes()[:100])
    (here / "junk.npy").write_bytes(b"\x93NUMPY\x01\x00junk")
    (here / "text.npy").write_bytes(b"1, 2, 3\n")
    (here / "nothing.npz").write_bytes(b"")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }"
    header = header.ljust(117) + b"\n"
    (here / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header)
    (here / "table.csv").write_text("1,2\n")
    (here / "folder.npy").mkdir()
    os.mkfifo(here / "pipe.npy")
    return here


@pytest.mark.parametrize(
    "name",
    [
        "objects.npy", "unsigned.npy", "texts.npy", "records.npy", "cut.npy", "cut.npz",
        "junk.npy", "text.npy", "nothing.npz", "huge.npy", "table.csv", "folder.npy", "pipe.npy",
        "two.npz", "two.npz:c", "empty.npz", "good.npy:key", "", "missing.npy", "\x1b[2J.npy",
    ],
)  # fmt: skip
def test_files_that_hold_no_tensor(gradcli: CommandLine, data: Path, name: str) -> None:
    shown = gradcli("y = x * 2", f"x=@{name}")
    assert (shown.code, shown.out) == (4, "")
    assert shown.err.startswith("error[E502]: ")
    assert underlined(shown.err).startswith("@")
    assert "\x1b" not in shown.err


def test_archives_name_their_arrays(gradcli: CommandLine, data: Path) -> None:
    assert "x=@two.npz:a" in gradcli("y = x * 2", "x=@two.npz").err
    assert "the file holds a, b" in gradcli("y = x * 2", "x=@two.npz:c").err


def test_several_syntax_errors(gradcli: CommandLine, here: Path) -> None:
    (here / "p.grad").write_text("x = = 1\nprint('not reached')\ny = 2 $ 3\n")
    shown = gradcli("run", "p.grad")
    assert (shown.code, shown.out) == (3, "")
    assert "p.grad:1:5" in shown.err
    assert "p.grad:3:7" in shown.err


def test_output_comes_before_the_error(gradcli: CommandLine) -> None:
    shown = gradcli("print('before')\n1 / 0")
    assert (shown.code, shown.out) == (3, "before\n")


def test_host_exceptions_are_bugs_with_a_place() -> None:
    session = Session()
    result = next(session.run("x = 1\ny = 2", "p"))
    with pytest.raises(GradcliError) as raised, session.running(result.span):
        raise OSError("lost")
    assert raised.value.code == "E901"
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.span is not None
    assert raised.value.span.text == "x = 1"


def test_sessions_share_nothing() -> None:
    first, second = Session(default_dtype="float64"), Session()
    shown = []
    for session in (first, second):
        for result in session.run("set_grad_enabled(False)\ntensor(1.).dtype", "p"):
            shown.append(result.value)
    assert [str(each) for each in shown[1::2]] == ["torch.float64", "torch.float32"]
    assert first.state is not second.state
    assert "x" not in second.values
