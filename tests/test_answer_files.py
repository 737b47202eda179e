"""The answers of `explain why blame check derive` in files: `-o FILE`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import invoke

ANSWERS = [
    # (words, suffix, the words that print the same, exit code)
    (["explain", "y = x.exp() * x", "x=2"], ".txt", [], 0),
    (["explain", "y = x.exp() * x", "x=2"], ".json", ["--json"], 0),
    (["explain", "y = x.exp() * x", "x=2"], ".svg", ["--format", "svg"], 0),
    (["explain", "y = x.exp() * x", "x=2"], ".html", ["--format", "html"], 0),
    (["explain", "y = (x @ x).sum()", "x=[[1,2],[3,4]]", "--ties"], ".txt", [], 0),
    (["explain", "y = x.exp() * x", "x=2", "--ir"], ".json", ["--json"], 0),
    (["explain", "y = x.exp() * x", "x=2", "--flow"], ".txt", [], 0),
    (["why", "x.grad", "y = x.exp() * x", "x=2"], ".txt", [], 0),
    (["why", "x.grad", "y = x.exp() * k", "x=2"], ".json", ["--json"], 3),
    (["blame", "y = x.log()", "x=0"], ".txt", [], 1),
    (["blame", "y = x.log()", "x=0"], ".json", ["--json"], 1),
    (["check", "y = x.log()", "x=2"], ".txt", [], 0),
    (["check", "y = x.log()", "x=2", "--equals", "x"], ".json", ["--json"], 1),
    (["derive", "y = x.log()", "x=2"], ".json", ["--json"], 0),
    (["derive", "y = x.log()", "x=2", "--to", "latex"], ".tex", [], 0),
    (["derive", "y = x.log()", "x=2", "--to", "numpy"], ".py", [], 0),
]


@pytest.mark.parametrize(("words", "suffix", "printing", "code"), ANSWERS)
def test_a_file_holds_what_would_be_printed(
    words: list[str], suffix: str, printing: list[str], code: int, tmp_path: Path
) -> None:
    file = tmp_path / f"answer{suffix}"
    written = invoke(*words, "-o", str(file), "--color", "always")
    printed = invoke(*words, *printing)
    assert (written.code, printed.code, written.stdout) == (code, code, "")
    if printed.stdout:
        assert file.read_text("utf-8") == printed.stdout
        assert f"wrote {file}: " in written.stderr
    else:
        assert not file.exists()


REFUSED = [
    # (words, code of the exit, part of the message)
    (["explain", "y = x * x", "x=2", "-o", "{}.svg", "--sandbox"], 5, "E606"),
    (["why", "x.grad", "y = x * x", "x=2", "-o", "{}.txt", "--sandbox"], 5, "E606"),
    (["check", "y = x * x", "x=2", "-o", "{}/no/c.json"], 5, "E603"),
    (["blame", "y = x * x", "x=2", "-o", "{}.svg"], 2, "the suffix of"),
    (["derive", "y = x * x", "x=2", "-o", "{}.npz"], 2, "the suffix of"),
    (["explain", "y = x * x", "x=2", "-o", "{}.json", "--format", "svg"], 2, "holds json"),
    (["check", "y = x * x", "x=2", "-o", "{}.txt", "--json"], 2, "holds text"),
]


@pytest.mark.parametrize(("words", "code", "part"), REFUSED)
def test_what_cannot_be_written_is_refused(
    words: list[str], code: int, part: str, tmp_path: Path
) -> None:
    found = invoke(*[word.replace("{}", str(tmp_path / "answer")) for word in words])
    assert found.code == code
    assert part in found.stderr
    assert not [*tmp_path.iterdir()]


def test_a_question_of_a_program_answers_on_the_terminal(tmp_path: Path) -> None:
    """The file of a one-shot holds its result, not what the program asked."""
    file = tmp_path / "y.json"
    found = invoke("y = x * x; blame()", "x=2", "-o", str(file))
    assert "finite" in found.stdout
    assert '"gradcli.result/1"' in file.read_text("utf-8")
