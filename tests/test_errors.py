"""Errors as the command line shows them: codes, exit codes, and places inside arguments."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import combining, east_asian_width

import pytest

from gradcli.errors import CODES, GradcliError
from gradcli.session import Session
from gradcli.show.diagnostics.human import WITHOUT_CLASS, usage_error
from gradcli.show.style import Style, block
from tests.blocks import example_of
from tests.command_line import CommandLine
from tests.rows import each_row

EXAMPLES = {code: example_of(code) for code in CODES if example_of(code)}


@each_row("code", EXAMPLES)
def test_examples_of_codes(gradcli: CommandLine, code: str) -> None:
    """The example in `gradcli help CODE` ends with that code and its exit code."""
    found = CODES[code]
    # Ten million rounds of a loop are the manual's to run.
    fewer = ["--max-steps=1000"] if code == "E605" else []
    shown = gradcli("-e", EXAMPLES[code], *fewer)
    assert shown.code == found.exit_code
    assert shown.err.startswith(f"error[{code}]: ")
    assert " --> program:" in shown.err
    if found.raises != "Exception" and not code.startswith(WITHOUT_CLASS):
        assert shown.err.startswith(f"error[{code}]: {found.raises}")


@each_row("code", CODES)
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
    ("word", "help"),
    [
        ("x=data.npy", "a file is read by `@`: x=@data.npy"),
        ("x=./data.csv:k", "a file is read by `@`: x=@./data.csv:k"),
        ("x=hello", "a text stands in quotes: x='\"hello\"'"),
        ("x=os", "a text stands in quotes: x='\"os\"'"),  # which no import before it can mend
        ("x=Ture", "did you mean `True`?"),
    ],
)
def test_what_to_write_for_an_argument(gradcli: CommandLine, word: str, help: str) -> None:
    shown = gradcli("y = x * 2", word)
    assert shown.code == 4
    assert shown.err.endswith(f"  = help: {help}\n")


@pytest.mark.parametrize(
    ("seed", "code", "place"),
    [("[1,2", 4, "["), ("foo", 4, "foo"), ("'a'", 4, "'a'"), ("[1, 2]", 3, "x * 2")],
)
def test_places_in_seeds(gradcli: CommandLine, seed: str, code: int, place: str) -> None:
    shown = gradcli("y = x * 2", "x=[1,2,3]", "--seed", seed)
    assert shown.code == code
    assert underlined(shown.err) == place


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


# --- the forms of diagnostics -------------------------------------------------------------------

TWICE_WRONG = "x = = 1\ny = 2 $ 3\n"


def test_short_form(gradcli: CommandLine, here: Path) -> None:
    (here / "p.grad").write_text(TWICE_WRONG)
    shown = gradcli("run", "p.grad", "--error-format", "short")
    lines = shown.err.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["p.grad:1:5:", "p.grad:2:7:"]
    assert lines[1].endswith("error[E002]: SyntaxError: unexpected character `$`")
    shown = gradcli("y = x * 2", "x=[1,", "--error-format=short")
    assert shown.err == "argument x=…: error[E501]: `[` is never closed\n"
    shown = gradcli("y = x", "x=1", "--bad", "--error-format=short")
    assert (shown.code, shown.err) == (2, "error: no such option '--bad'\n")


def test_json_form(gradcli: CommandLine, here: Path) -> None:
    (here / "p.grad").write_text("def f(a):\n    return a @ ones(4)\nprint('out')\nf(ones(2, 3))\n")
    shown = gradcli("run", "p.grad", "--error-format", "json")
    (line,) = shown.err.splitlines()
    found = json.loads(line)
    assert shown.out == "out\n"
    assert found["schema"] == "gradcli.diagnostic/1"
    assert (found["level"], found["code"], found["class"]) == ("error", "E301", "RuntimeError")
    assert found["exit_code"] == shown.code == 3
    first, *labelled = found["spans"]
    assert first == {
        "file": "p.grad", "line": 2, "column": 12, "end_line": 2, "end_column": 23,
        "text": "a @ ones(4)", "primary": True, "label": None,
    }  # fmt: skip
    assert [each["label"] for each in labelled] == [
        "`a` is (2, 3) float32",
        "`ones(4)` is (4,) float32",
    ]
    (call,) = found["stack"]
    assert (call["function"], call["call"]["line"]) == ("f", 4)


def test_json_form_of_everything_else(gradcli: CommandLine, here: Path) -> None:
    (here / "p.grad").write_text(TWICE_WRONG)
    shown = gradcli("run", "p.grad", "--error-format", "json")
    assert [json.loads(line)["code"] for line in shown.err.splitlines()] == ["E001", "E002"]
    shown = gradcli("x = 3", "--error-format", "json")
    assert [json.loads(line)["level"] for line in shown.err.splitlines()] == ["note"]
    shown = gradcli("x = 3", "--bad", "--error-format", "json")
    assert json.loads(shown.err)["exit_code"] == 2


# --- what must not reach a terminal -------------------------------------------------------------

HOSTILE = "\x1b[2J\x07\x9b\u202e\udc80"


@pytest.mark.parametrize(
    "program",
    [
        f"raise ValueError({HOSTILE[:5]!r})",
        f"int('{HOSTILE}')",
        f"x = '{HOSTILE}' + 1",
        f"{{}}['{HOSTILE}']",
        f"x = {HOSTILE}",
        f"# {HOSTILE}\nx = 1 / 0  # {HOSTILE}",
        f"ones(2).to('{HOSTILE}')",
        f"einsum('{HOSTILE}', ones(2))",
        f"load('{HOSTILE}.npy')",
        f"assert False, '{HOSTILE}'",
        f"def f(): 1 / 0\nf()  # {HOSTILE}",
    ],
)
@pytest.mark.parametrize("form", ["full", "short", "json"])
def test_control_characters_are_spelled_out(gradcli: CommandLine, program: str, form: str) -> None:
    shown = gradcli("--error-format", form, "-e", program)
    assert shown.code not in (0, 70)
    assert not set(shown.err) & set(HOSTILE.replace("[2J", ""))


def test_control_characters_in_words(gradcli: CommandLine, here: Path) -> None:
    for words in (
        ["run", f"{HOSTILE[:5]}.grad"],
        [f"--{HOSTILE[:5]}"],
        ["help", HOSTILE[:5]],
        ["y = x", f"x=@{HOSTILE[:5]}"],
        ["y = x", f"x='{HOSTILE[:5]}"],
        ["y = x * 2", "x=1", "--seed", f"'{HOSTILE[:5]}'"],
        ["y = x * 2", "x=1", "--wrt", HOSTILE[:5]],
        ["y = x * 2", "x=1", "--of", HOSTILE[:5]],
    ):
        shown = gradcli(*words)
        assert shown.code not in (0, 70)
        assert not {"\x1b", "\x07"} & set(shown.err)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("s = '日本語' + 1", "'日本語' + 1"),
        ("s = 'e\u0301a\u0308' + 1", "'e\u0301a\u0308' + 1"),
        ("if 1:\n\ts = 'a\tb' + 1", "'a\tb' + 1"),
        ("größe = größer", "größer"),
    ],
)
def test_carets_stand_under_wide_characters(gradcli: CommandLine, line: str, place: str) -> None:
    """Measured in columns of a terminal: two for a wide character, none for a combining one."""
    lines = gradcli("-e", line).err.split("\n")
    carets = next(number for number, line in enumerate(lines) if "^" in line)
    text = lines[carets - 1].expandtabs()
    before = text[: text.index(place.expandtabs()[0], text.index("=") + 1)]
    assert columns(before) == lines[carets].index("^")
    assert lines[carets].count("^") >= columns(place.replace("\t", " "))


ADVICE = [
    # (the text of a help, its lines of 60 columns)
    ("an operator or a comma may be missing between those two, or a line's end",
     ["an operator or a comma may be missing between those", "two, or a line's end"]),
    ("the script's own words go behind `--`: gradcli run FILE -- --option",
     ["the script's own words go behind `--`:", "gradcli run FILE -- --option"]),
    ("`gradcli derive` writes formulas, and `gradcli explain --flow 'y = x * x' x=3` where it went",
     ["`gradcli derive` writes formulas, and",
      "`gradcli explain --flow 'y = x * x' x=3` where it",
      "went"]),
    ("`gradcli record --python .venv/bin/python train.py --epochs 3` records it",
     ["`gradcli record --python .venv/bin/python train.py --epochs 3`", "records it"]),
    ("two spaces  stay,\n  as an indent does where a line is one that has to be broken",
     ["two spaces  stay,",
      "  as an indent does where a line is one that has to",
      "  be broken"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), ADVICE)
def test_lines_break_at_blanks_and_never_in_a_command(text: str, lines: list[str]) -> None:
    shown = usage_error("it is wrong", text, Style(False, 60)).split("\n")
    lead = " = help: "
    assert shown == [
        "error: it is wrong",
        f"{lead}{lines[0]}",
        *(f"{' ' * len(lead)}{line}" for line in lines[1:]),
    ]
    # What is no terminal has lines of any length.
    whole = usage_error("it is wrong", text)
    assert whole == "\n".join(["error: it is wrong", block(lead, text)])


def test_a_long_message_breaks_at_blanks() -> None:
    message = "the shapes (2,) and (3,) of the operands `x @ w` cannot be multiplied"
    assert usage_error(message, None, Style(False, 60)).split("\n") == [
        "error: the shapes (2,) and (3,) of the operands `x @ w`",
        "  cannot be multiplied",
    ]


def columns(text: str) -> int:
    wide = sum(east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(combining(character)) for character in text)


def test_the_sign_of_a_transform_by_what_is_no_tensor(gradcli: CommandLine) -> None:
    transform = "torch.distributions.AffineTransform"
    found = gradcli(f"print({transform}(0, -2.).sign, {transform}(0, torch.float32).sign)")
    assert "error[E202]: TypeError: sign(): argument 'input' must be a tensor" in found.err
