"""The REPL inside the test process: entries, history, completion, colours."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from gradcli.repl.completion import EntryCompleter
from gradcli.repl.dispatch import HANDLERS
from gradcli.repl.editor import EntryHistory, history_path
from gradcli.repl.highlighting import pieces
from gradcli.repl.plain import pasted, plain_reader
from gradcli.repl.repl import repl, run_entry
from gradcli.running.arguments.options import Options
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run
from tests.machine import takes_at_most


@pytest.fixture
def run() -> Run:
    made = Run(Terminal("never"), Options(), "graph", HANDLERS)
    made.shows_values = True
    return made


def entered(run: Run, capsys: pytest.CaptureFixture[str], text: str) -> str:
    """What an entry shows on both streams."""
    run_entry(run, text, "entry 1")
    captured = capsys.readouterr()
    return captured.out + captured.err


# --- entries ------------------------------------------------------------------------------------


def test_values_are_echoed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert entered(run, capsys, "x = tensor([1., 2.], requires_grad=True)") == ""
    assert entered(run, capsys, "x") == "tensor([1., 2.], requires_grad=True)\n"
    assert entered(run, capsys, "'text'") == "'text'\n"
    assert entered(run, capsys, "None") == ""
    assert entered(run, capsys, "print('p')") == "p\n"
    assert entered(run, capsys, "(x * x).sum()") == "tensor(5., grad_fn=<SumBackward0>)\n"
    assert entered(run, capsys, "_.backward()") == ""
    assert entered(run, capsys, "x.grad; 1 + 1") == "tensor([2., 4.])\n2\n"
    assert entered(run, capsys, "_ * 2") == "4\n"


def test_errors_leave_values_intact(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    entered(run, capsys, "x = 1\ny = [1]")
    shown = entered(run, capsys, "x = 2\nx = undefined\nx = 3\nx = 4")
    assert "error[E101]" in shown
    assert " --> entry 1:2:5" in shown
    assert shown.endswith("note: 2 statements behind it did not run\n")
    assert "error[E001]" in entered(run, capsys, "x = 9\nx = = 4")
    assert entered(run, capsys, "x, y") == "(2, [1])\n"
    entered(run, capsys, "with no_grad():\n    1 / 0")
    assert entered(run, capsys, "is_grad_enabled()") == "True\n"


def test_a_second_pass_in_a_session_is_told_of_retain_graph(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("x = tensor(2., requires_grad=True)", "y = x * x", "y.backward()"):
        run_entry(run, text, f"entry {text[0]}")
    capsys.readouterr()
    run_entry(run, "y.backward()", "entry 4")
    assert "pass retain_graph=True to the first backward()" in capsys.readouterr().err


def test_plain_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = "x = (1 +\n2)\n\ndef f():\n    return 1\n\nf()\n.vars"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    read = plain_reader()
    entries = ["x = (1 +\n2)", "", "def f():\n    return 1\n", "f()", ".vars"]
    assert [read() for _ in entries] == entries
    with pytest.raises(EOFError):
        read()


@pytest.mark.parametrize("leave", ["exit()", "quit", ".quit"])
def test_without_an_editor(
    leave: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"1 + 1\n\n{leave}\n2 + 2\n"))
    assert repl(Terminal("never"), Options()) == 0
    captured = capsys.readouterr()
    assert captured.out == "2\n"
    assert ">>> " in captured.err


def test_an_editor_that_fails_is_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(run: Run) -> None:
        raise OSError("no such terminal")

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("gradcli.repl.editor.editor", broken)
    monkeypatch.setattr("sys.stdin", io.StringIO("1 + 1\n2 + 2\n"))
    assert repl(Terminal("never"), Options()) == 0
    captured = capsys.readouterr()
    assert captured.out == "2\n4\n"
    assert captured.err.count("entries are read without an editor: no such terminal") == 1


def test_a_name_that_leaves_can_be_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdin", io.StringIO("quit = 3\nquit\n4\n"))
    assert repl(Terminal("never"), Options()) == 0
    assert capsys.readouterr().out == "3\n4\n"


# --- history ------------------------------------------------------------------------------------


def test_history_lies_in_the_folder_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADCLI_HISTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert history_path() == "/state/gradcli/history"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert history_path() == "/home/somebody/.local/state/gradcli/history"
    monkeypatch.setenv("GRADCLI_HISTORY", "~/mine")
    assert history_path() == "/home/somebody/mine"
    monkeypatch.setenv("GRADCLI_HISTORY", "")
    assert history_path() == ""


def test_sessions_share_a_history(tmp_path: Path) -> None:
    """Entries of several lines come back whole, in the order in which they were given."""
    path = tmp_path / "folder" / "history"
    said: list[str] = []
    first = EntryHistory(str(path), said.append)
    second = EntryHistory(str(path), said.append)
    first.append_string("def f(t):\n    return t\n")
    second.append_string("'ä\\n'")
    first.append_string("f(1)")
    first.append_string("f(1)")
    third = EntryHistory(str(path), said.append)
    loaded = ["f(1)", "'ä\\n'", "def f(t):\n    return t"]
    assert list(third.load_history_strings()) == loaded
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert said == []


def test_history_survives_damage(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'"cut\n\xff\xfe\n17\n"x = 1"\n')
    path.chmod(0o644)
    assert list(EntryHistory(str(path), print).load_history_strings()) == ["x = 1"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["file/history", "folder"])
def test_a_history_that_cannot_be_written_is_a_note(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    said: list[str] = []
    history = EntryHistory(str(tmp_path / name), said.append)
    history.append_string("x = 1")
    assert history.get_strings() == ["x = 1"]
    assert list(history.load_history_strings()) == []
    assert len(said) == 1
    assert said[0].startswith("the history lasts for this session only: ")


def test_no_history_is_written_without_a_path(tmp_path: Path) -> None:
    history = EntryHistory("", print)
    history.append_string("x = 1")
    assert history.get_strings() == ["x = 1"]


# --- completion ---------------------------------------------------------------------------------

PROGRAM = """\
xenon = ones(2, requires_grad=True)
def scale(value, *, factor=2):
    return value * factor
text = "abc"
"""


@pytest.fixture
def completer(run: Run) -> EntryCompleter:
    run_entry(run, PROGRAM, "entry 1")
    return EntryCompleter(run.session)


def completed(completer: EntryCompleter, typed: str) -> dict[str, str]:
    """What completion offers at the end of a text, with what stands beside it."""
    found = completer.get_completions(Document(typed), CompleteEvent())
    return {each.text: each.display_meta_text for each in found}


@pytest.mark.parametrize(
    ("typed", "offered", "beside"),
    [
        ("xe", "xenon", "float32[2] requires_grad"),
        ("y = xe", "xenon", "float32[2] requires_grad"),
        ("y = (1 +\nxe", "xenon", "float32[2] requires_grad"),
        ("if xenon:\n    xe", "xenon", "float32[2] requires_grad"),
        ("xenon\nsig", "sigmoid", "(input)"),
        ("whi", "while", "keyword"),
        ("torch.log_so", "log_softmax", "(input, dim, dtype=None)"),
        ("torch.nn.functional.softs", "softsign", "(input)"),
        ("xenon.requires_grad", "requires_grad_", "(requires_grad=True)"),
        ("xenon.grad", "grad_fn", ""),
        ("xenon.exp().", "sum", "(dim=None, keepdim=False, *, dtype=None)"),
        ("text.up", "upper", ""),
        ("'abc'.up", "upper", ""),
        ("scale(", "factor=", "=…"),
        ("scale(fa", "factor=", "=…"),
        ("scale(xenon, ", "factor=", "=…"),
        ("scale(sum([1, 2]), fa", "factor=", "=…"),
        ("xenon.sum(keep", "keepdim=", "=False"),
        ("f'{xe", "xenon", "float32[2] requires_grad"),
        (".ti", ".timer", "show how long statements take"),
        (".timer o", "off", ""),
        (".trace xe", "xenon", "float32[2] requires_grad"),
        (".trace xenon st", "steps", ""),
        (".help lang", "language", ""),
        (".help sigm", "sigmoid", "(input)"),
    ],
)
def test_completion(completer: EntryCompleter, typed: str, offered: str, beside: str) -> None:
    assert completed(completer, typed).get(offered) == beside


@pytest.mark.parametrize(
    "typed",
    ["12", "x = 1.", "'xe", '"""xe', "# xe", "1 # xe", "def xe", "xenon.sum() xe", ".vars xe"],
)
def test_no_completion(completer: EntryCompleter, typed: str) -> None:
    assert completed(completer, typed) == {}


def test_used_keywords_are_not_offered(completer: EntryCompleter) -> None:
    assert "value=" in completed(completer, "scale(")
    assert "factor=" not in completed(completer, "scale(factor=xenon, ")
    assert "factor=" not in completed(completer, "scale(factor=")


@pytest.mark.parametrize("typed", ["load('", "x = load('", ".read ", ".save "])
def test_files_are_completed(
    completer: EntryCompleter, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "data.npy").touch()
    (tmp_path / ".hidden").touch()
    monkeypatch.chdir(tmp_path)
    assert completed(completer, typed).keys() == {"inner/"}
    assert completed(completer, f"{typed}inner/da").keys() == {"data.npy"}
    assert completed(completer, f"{typed}.h").keys() == {".hidden"}


def test_completion_has_no_effect_and_is_fast(run: Run, completer: EntryCompleter) -> None:
    numbers = run.session.state.sequence_nr, run.session.state.object_ids
    for typed in ("xenon.T.", "xenon.sum().", "text.", "torch.", "x"):
        with takes_at_most(1):
            assert completed(completer, typed)
    assert (run.session.state.sequence_nr, run.session.state.object_ids) == numbers
    with takes_at_most(0.1):
        list(completer.get_completions(Document("torch."), CompleteEvent()))


# --- colours ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "colored"),
    [
        ("x = 1.5", {"1.5": "number"}),
        ("if x: f(x)", {"if": "keyword", "f": "call"}),
        ("y = 'a#b'  # c 'd", {"'a#b'": "string", "# c 'd": "comment"}),
        ("'open", {"'open": "string"}),
        ("f'{x}b'", {"f'": "string", "b": "string", "'": "string"}),
        (".vars", {".vars": "command"}),
        ("x $ y", {"$": "wrong"}),
    ],
)
def test_colours(text: str, colored: dict[str, str]) -> None:
    found = list(pieces(text))
    assert "".join(piece for _, piece in found) == text
    assert {piece: style.removeprefix("class:") for style, piece in found if style} == colored


@pytest.mark.parametrize("path", ["train.grad", "broken"])
def test_pieces_are_the_text(path: str) -> None:
    text = {
        "train.grad": PROGRAM,
        "broken": "def (:\n\tx = '''a\n\n  $ f'{a!r:>{b}}' \\\n (]\n",
    }[path]
    assert "".join(piece for _, piece in pieces(text)) == text


def test_prompts_and_margins_are_not_pasted() -> None:
    assert pasted(">>> x = 1\n>>> for i in y:\n...     x\n...\n1\n") == (
        "x = 1\nfor i in y:\n    x\n"
    )
    assert pasted("    x = 1\n    if x:\n        y\n") == "x = 1\nif x:\n    y\n"
    assert pasted("x = '>>> 1'\n  y") == "x = '>>> 1'\n  y"


def test_prompts_of_ipython_are_not_pasted() -> None:
    text = "In [1]: x = 1\n\nIn [2]: for i in y:\n   ...:     x\n   ...: \nOut[2]: 1\n"
    assert pasted(text) == "x = 1\nfor i in y:\n    x\n"


def test_what_is_typed_most_comes_first(completer: EntryCompleter) -> None:
    assert list(completed(completer, "xenon."))[:3] == ["grad", "backward", "shape"]
    offered = list(completed(completer, "xenon."))
    assert offered.index("abs") < offered.index("H")
    assert next(iter(completed(completer, "torch.ra"))) == "randn"
