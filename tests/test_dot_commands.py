"""Dot-commands and `name?` in scripts: what they show, change, write and refuse."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from gradcli.cli.documents import batch
from gradcli.repl.dot_commands.table import TABLE
from tests.command_line import CommandLine


class Script:
    """Runs a program file."""

    def __init__(self, command_line: CommandLine, folder: Path) -> None:
        self.command_line = command_line
        self.path = folder / "script.grad"

    def __call__(self, text: str, *options: str) -> tuple[str, str, int]:
        self.path.write_text(text)
        shown = self.command_line("run", "script.grad", *options)
        return shown.out, shown.err, shown.code


@pytest.fixture
def script(gradcli: CommandLine, here: Path) -> Script:
    return Script(gradcli, here)


LEAF = "x = tensor([1., 2.], requires_grad=True)\n"


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        (
            f"{LEAF}y = (x * 3).sum()\nn = 'a\\nb'\ndef f(t, u=1): return t\n.vars\n",
            "x  float32[2] requires_grad  tensor([1., 2.])\n"
            "y  float32[] SumBackward0    tensor(9.)\n"
            "n  str                       'a\\nb'\n"
            "f  function                  (t, u=…)\n",
        ),
        (f"{LEAF}.grads\n", "x.grad = None\n"),
        (f"{LEAF}y = (x * 3).sum()\n.backward y\n", "x.grad = tensor([3., 3.])\n"),
        (f"{LEAF}y = x * 3\n.backward y [1, 10]\n", "x.grad = tensor([ 3., 30.])\n"),
        (
            f"{LEAF}y = x * x\ny.backward(x)\n.grads\n",
            "x.grad = tensor([2., 8.])\n\n"
            "gradient  norm   min  max  zeros  NaN, inf\n"
            "x         8.246  2    8                     ████████████████████\n",
        ),
        (
            f"{LEAF}(w := ones(4, requires_grad=True))\n"
            "((w * tensor([0., 1, 0, inf])).sum() + 3 * x.sum()).backward()\n.grads\n",
            "x.grad = tensor([3., 3.])\nw.grad = tensor([0., 1., 0., inf])\n\n"
            "gradient  norm   min  max  zeros  NaN, inf\n"
            "x         4.243  3    3                     ████████████████████\n"
            "w         inf    0    inf  50%    25%\n",
        ),
        (
            f"{LEAF}y = x * 3\n.trace\n",
            "y  MulBackward0           y = x * 3\n"
            "├─[0] AccumulateGrad      x  tensor([1., 2.], requires_grad=True)\n"
            "└─[1] None\n",
        ),
        (
            f"{LEAF}y = x.sum()\nz = 1\n.trace y next\n",
            "y.grad_fn = <SumBackward0 object at 0x1>\n"
            "<SumBackward0 object at 0x1>.next_functions = "
            "((<AccumulateGrad object at 0x2>, 0),)\n"
            "<AccumulateGrad object at 0x2>.variable = x = tensor([1., 2.], requires_grad=True)\n",
        ),
        ("x = 1\n.reset\n.vars\nx = 2\nprint(x)", "2\n"),
        (".timer\n.timer on\n.timer\n.timer off\n", "off\non\n"),
        (".mode\n.mode json\n.mode\n", "text\njson\n"),
        ("print(1)\n.quit\nprint(2)\n", "1\n"),
        (
            ".help .trace\n",
            ".trace [NAME [tree|values|next|steps]]\n"
            "  the graph of a tensor, or of the one assigned last\n",
        ),
        (
            "x = ones(2, requires_grad=True)\ny = x * 2\ny?\n",
            "y\n"
            "  type           tensor\n"
            "  shape          [2]\n"
            "  dtype          torch.float32\n"
            "  requires_grad  True\n"
            "  grad_fn        MulBackward0  x * 2\n"
            "  assigned       script.grad:2:1  y = x * 2\n"
            "  value          tensor([2., 2.], grad_fn=<MulBackward0>)\n",
        ),
        (
            "for i in range(2):\n    k = [i]\nk ?\n",
            "k\n"
            "  type      list\n"
            "  length    1\n"
            "  assigned  script.grad:1:1  for i in range(2): k = [i]\n"
            "  value     [1]\n",
        ),
        (
            "def f(t, *rest, u=1):\n    return t\nf?\n",
            "f\n"
            "  type       function\n"
            "  signature  f(t, *rest, u=…)\n"
            "  assigned   script.grad:1:1  def f(t, *rest, u=1): return t\n",
        ),
        ("x = 1\n# a comment\n\n.mode   \nif x:\n    x = 2\n.mode\n", "text\ntext\n"),
    ],
)
def test_what_commands_show(script: Script, program: str, shown: str) -> None:
    out, err, code = script(program)
    assert (out, code) == (shown, 0), err


@pytest.mark.parametrize(
    ("name", "owner"),
    [("exp", ""), ("torch.exp", ""), ("F.relu", ""), ("x.sum", LEAF), ("torch.linalg.norm", "")],
)
def test_ops_are_explained(script: Script, name: str, owner: str) -> None:
    asked, err, code = script(f"{owner}{name}?\n")
    assert code == 0, err
    assert name.rpartition(".")[2] in asked.splitlines()[0]
    if not owner:
        assert script(f".help {name}\n")[0] == asked


@pytest.mark.parametrize(
    ("program", "error", "exit_code"),
    [
        (
            "x = 1\n.varz\n",
            "error[E104]: there is no command `.varz`\n"
            " --> script.grad:2:1\n"
            "  |\n"
            "2 | .varz\n"
            "  | ^^^^^\n"
            "  |\n"
            "  = help: did you mean `.vars`?\n",
            2,
        ),
        (
            "x = 1\nx\n.real()\n",
            "error[E104]: there is no command `.real()`\n"
            " --> script.grad:3:1\n"
            "  |\n"
            "3 | .real()\n"
            "  | ^^^^^^^\n"
            "  |\n"
            "  = help: an expression that goes on in the next line needs brackets around it\n",
            2,
        ),
        (
            ".timer onn\n",
            "error[E105]: `.timer` does not take `onn`\n"
            " --> script.grad:1:8\n"
            "  |\n"
            "1 | .timer onn\n"
            "  |        ^^^\n"
            "  |\n"
            "  = help: did you mean `on`?\n",
            2,
        ),
        (
            ".backward\n",
            "error[E105]: `.backward` needs a NAME\n"
            " --> script.grad:1:1\n"
            "  |\n"
            "1 | .backward\n"
            "  | ^^^^^^^^^\n"
            "  |\n"
            "  = help: the usage is `.backward NAME [SEED]`\n",
            2,
        ),
        (
            f"{LEAF}.backward x [1, missing]\n",
            "error[E501]: `missing` has no value\n"
            " --> script.grad:2:17\n"
            "  |\n"
            "2 | .backward x [1, missing]\n"
            "  |                 ^^^^^^^\n",
            4,
        ),
    ],
)
def test_errors_point_into_the_line(
    script: Script, program: str, error: str, exit_code: int
) -> None:
    assert script(program) == ("", error, exit_code)


def test_tensors_are_drawn_with_their_names(script: Script) -> None:
    out, err, code = script("x = linspace(0, 6, 30)\nwave = x.sin()\n.plot x wave\n")
    assert (err, code) == ("", 0)
    assert "x" in out.splitlines()[-1]
    assert "wave" in out.splitlines()[-1]


@pytest.mark.parametrize("value", ["torch.tensor(2.)", "2", "[2.0]", "0.0", "[0, 0, 0]"])
def test_equal_numbers_are_drawn_on_axes_that_can_be_read(script: Script, value: str) -> None:
    out, err, code = script(f"x = {value}\n.plot x\n")
    assert (err, code) == ("", 0)
    assert "e-" not in out


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (".vars all\n", "`.vars` takes no argument"),
        (".save a b\n", "`.save` takes one argument"),
        (".read nothing.grad\n", "nothing.grad: no such file or directory"),
        (".save nowhere/a.grad\n", "nowhere/a.grad: no such file or directory"),
        ("x = 3\n.trace x\n", "`x` is no tensor but a value of type int"),
        (".trace\n", "no tensor has been assigned yet"),
        ("x = ones(2)\n.trace x\n", "`x` does not require grad, so it has no graph"),
        (f"{LEAF}y = x * 2\n.trace y steps\n", "the steps of `y` need a gradient to start from"),
        (f"{LEAF}y = x * 2\n.backward y\n", "give the gradient to start from: .backward y ones(2)"),
        (f"{LEAF}weight = x * 2\n.backward wieght\n", "did you mean `weight`?"),
        (".plot\n", "`.plot` needs a NAME"),
        ("x = [1, 'a']\n.plot x\n", "2 | .plot x\n  |       ^"),
        (".help nothing\n", "`nothing` has no value"),
        ("nothing?\n", "`nothing` has no value"),
        (f"{LEAF}x.T.nothing?\n", "`x.T.nothing` has no value"),
        (".read script.grad\n", "the files read each other"),
    ],
)
def test_what_commands_refuse(script: Script, program: str, message: str) -> None:
    out, err, code = script(program)
    assert message in err
    assert "E901" not in err
    assert code not in (0, 70)
    assert out == ""


# --- files --------------------------------------------------------------------------------------


def test_a_stream_is_kept_only_so_far(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setattr(batch, "MOST_OF_A_STREAM", 3)
    shown = gradcli("run", "-", stdin="x = 1\n" * 3 + ".save s\n")
    assert shown.code == 0
    assert (here / "s").read_text() == "x = 1\n" * 3
    shown = gradcli("run", "-", stdin="x = 1\n" * 4 + ".save s\n")
    assert shown.code == 5
    assert "only the last 3 are kept" in shown.err


def test_saved_statements_make_the_same_values(script: Script, here: Path) -> None:
    """What changes values is kept: a backward pass too; what only looks is not."""
    program = (
        "w = torch.randn(3, requires_grad=True)\n"
        "if True:\n    # why\n    y = (w * 2).sum(); z = 1\n"
        "a = 1; b = 2\n"
        ".backward y\n"
        ".vars\n"
        "@no_grad()\ndef f(t):\n    return '''\n  kept'''\n"
        "print(w, w.grad, a + b, f(1))\n"
        ".save 'my work.grad'\n"
    )
    out, err, code = script(program)
    assert code == 0, err
    assert err == "note: 7 statements saved to my work.grad\n"
    saved = (here / "my work.grad").read_text()
    assert ".backward y\n" in saved
    assert "# why\n" in saved
    assert ".vars" not in saved
    assert script(".read 'my work.grad'\n")[0] == out.replace(_vars(out), "")


def _vars(out: str) -> str:
    """The lines of `.vars` in an output."""
    return "".join(line for line in out.splitlines(keepends=True) if line[:3] in _VARS)


_VARS = ("w  ", "y  ", "z  ", "a  ", "b  ")


def test_a_file_is_written_whole_or_not_at_all(script: Script, here: Path) -> None:
    (here / "old.grad").write_text("old")
    (here / "old.grad").chmod(0o640)
    assert script("x = 1\n.save old.grad\n")[2] == 0
    assert (here / "old.grad").read_text() == "x = 1\n"
    assert stat.S_IMODE((here / "old.grad").stat().st_mode) == 0o640
    assert sorted(path.name for path in here.iterdir()) == ["old.grad", "script.grad"]


def test_errors_of_a_read_file_point_into_it(script: Script, here: Path) -> None:
    """Statements before the error have run; the reader is told where the file was read."""
    (here / "inner.grad").write_text("print('inner')\nx = missing\n")
    out, err, code = script("y = 1\n.read inner.grad\nprint('never')\n")
    assert (out, code) == ("inner\n", 3)
    assert " --> inner.grad:2:5\n" in err
    assert "`.read` runs this file at script.grad:2:1" in err
    (here / "inner.grad").write_text("print('inner')\nx = = 1\n")
    out, err, code = script(".read inner.grad\n")
    assert (out, code) == ("", 3)
    assert " --> inner.grad:2:5\n" in err
    assert "`.read` runs this file at script.grad:1:1" in err


def test_a_read_file_can_end_the_session(script: Script, here: Path) -> None:
    (here / "inner.grad").write_text("print('inner')\n.quit\n")
    assert script(".read inner.grad\nprint('never')\n") == ("inner\n", "", 0)


@pytest.mark.parametrize("line", [".read other.grad", ".save other.grad"])
def test_the_sandbox_has_no_files(script: Script, here: Path, line: str) -> None:
    (here / "other.grad").write_text("print('read')\n")
    out, err, code = script(f"x = 1\n{line}\n", "--sandbox")
    assert (out, code) == ("", 5)
    assert "error[E606]" in err
    assert " --> script.grad:2:7\n" in err
    assert (here / "other.grad").read_text() == "print('read')\n"


# --- the session --------------------------------------------------------------------------------


def test_times_are_notes(script: Script) -> None:
    out, err, code = script(
        ".timer on\nx = ones(3)\nfor i in range(3):\n    x = x + 1\n.timer off\nx"
    )
    assert (out, code) == ("", 0)
    notes = err.splitlines()
    assert len(notes) == 2
    assert notes[0].endswith(": x = ones(3)")
    assert notes[1].endswith(": for i in range(3): …")


def test_commands_in_a_one_shot(gradcli: CommandLine) -> None:
    """They see what the arguments bound, and what they show is part of a JSON result."""
    shown = gradcli("-e", "e = a * b", "-e", ".vars", "a=2", "b=3", "--json")
    assert shown.code == 0, shown.err
    assert "MulBackward0" in json.loads(shown.out)["printed"]


@pytest.mark.parametrize("line", ["x?", "x.grad?", ".backward x", ".trace x", ".vars\nx"])
def test_arguments_are_bound_where_a_command_names_them(gradcli: CommandLine, line: str) -> None:
    shown = gradcli("-e", line, "x=2")
    assert shown.code == 0, shown.err
    assert "does not use" not in shown.err


def test_a_session_without_a_face_has_no_commands() -> None:
    from gradcli.errors import GradcliError
    from gradcli.session import Session

    with pytest.raises(GradcliError) as caught:
        list(Session().run("x = 1\n.vars\n", "program"))
    assert caught.value.code == "E104"
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_every_command_has_help(script: Script) -> None:
    overview = script(".help\n")[0]
    for command in TABLE.values():
        assert f"  {command.usage} " in overview or f"  {command.usage}\n" in overview
        assert f"  {command.summary}\n" in overview
        assert script(f".help {command.name}\n")[0].startswith(f"{command.usage}\n")
    assert max(map(len, overview.splitlines())) <= 80


# --- commands that look and take back -----------------------------------------------------------


def test_undo_takes_the_last_statement_back(script: Script) -> None:
    text = "x = tensor(2., requires_grad=True)\ny = x ** 3\ny.backward()\nz = 1\n.undo\n.undo\n"
    out, err, code = script(f"{text}.vars\nprint(x.grad)\ny.backward()\nprint(x.grad)\n")
    assert code == 0, err
    assert "taken back: z = 1" in err
    assert "taken back: y.backward()" in err
    assert "z " not in out
    assert out.endswith("None\ntensor(12.)\n")


def test_undo_of_a_write_and_of_a_draw(script: Script) -> None:
    text = "x = ones(2)\na = torch.rand(2)\nx += 1\n.undo\nprint(x)\nb = torch.rand(2)\n"
    out, err, code = script(f"{text}torch.manual_seed(0)\nprint((torch.rand(4)[2:] == b).all())\n")
    assert code == 0, err
    assert out == "tensor([1., 1.])\ntensor(True)\n"


def test_undo_of_nothing(script: Script) -> None:
    _, err, code = script(".undo\n")
    assert code == 2
    assert "there is no statement to take back" in err


def test_explain_and_derive_of_the_last_tensor(script: Script) -> None:
    out, err, code = script("x = tensor(3., requires_grad=True)\ny = x * x\n.explain\n.derive y\n")
    assert code == 0, err
    assert "MulBackward0" in out
    assert "grad_x = 2 * x" in out


@pytest.mark.parametrize("asked", ["x?", "?x", "x??", "??x", "? x"])
def test_question_marks(asked: str, script: Script) -> None:
    out, err, code = script(f"x = tensor(3.)\n{asked}\n")
    assert code == 0, err
    assert out.startswith("x\n  type")
    assert ("\nx = tensor(3.)\n" in out) is ("??" in asked)
