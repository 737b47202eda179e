"""Programs in notebooks and in Markdown: run, and the outputs beside them checked and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.running import Finished, invoke

EXAMPLES = Path(__file__).parent.parent / "examples"

COMMENTS = {  # a line of a program, with what check-doc says of its comment
    "print(x)  # tensor(6.)": "agree",
    "print(x)  # tensor(7.)": "tensor(7.)",
    "print(x)  # 6.0": "agree",
    "x  # 7": "7",
    "x  # => 6.": "agree",
    "print(x, x.requires_grad)  # False": "agree",
    "print(x, x.requires_grad)  # True": "True",
    "x  # prints: six": "six",
    "print(x, 'of all')  # tensor(7.) of all": "tensor(7.) of all",
    "print(x)  # six of them": "no output",
    "print(x)  # 2. the backward pass": "no output",
    "print(x)  # [batch, 10]": "no output",
    "y = x * 2  # 13": "no output",
    "if True: print(x)  # tensor(7.)": "tensor(7.)",
    "print(x)\n# tensor(7.)": "tensor(7.)",
    "print(x)\n# tensor(6.)\n# and so on, 3 times": "agree",
    "print(m)\n# tensor([[1., 2.],\n#         [3., 5.]])": "tensor([[1., 2.],\n        [3., 5.]])",
    "print(m)  # tensor([[1., 2.],\n          #         [3., 4.]])": "agree",
    "x / 7  # tensor(0.8572)": "agree",  # the last digit
    "x / 7  # tensor(0.8575)": "tensor(0.8575)",
    "print((m.requires_grad_() * 2).grad_fn)  # <MulBackward0 object at 0x7f01>": "agree",
    "print((m.requires_grad_() * 2).grad_fn)  # <AddBackward0 object at 0x7f01>": (
        "<AddBackward0 object at 0x7f01>"
    ),
    "print(m)\n# tensor([[1., ...])": "agree",
}

HEAD = "import torch\nx = torch.tensor(6.)\nm = torch.tensor([[1., 2.], [3., 4.]])\n"


def checked(folder: Path, text: str, *words: str, name: str = "post.md") -> Finished:
    """A document beside what its programs print."""
    (folder / name).write_text(text, encoding="utf-8")
    return invoke("check-doc", str(folder / name), *words)


def markdown(*blocks: str) -> str:
    """A text with blocks, each with its language in the first line."""
    return "\n\nText.\n\n".join(f"```{block}\n```" for block in blocks) + "\n"


def notebook(*cells: str, outputs: tuple[str, ...] = ()) -> str:
    """A notebook of code cells; a text stands before them, which is cell 0 of the file."""
    found: list[dict[str, object]] = [{"cell_type": "markdown", "source": ["Text"]}]
    for number, source in enumerate(cells):
        shown = [
            {"output_type": "stream", "name": "stdout", "text": each}
            for each in outputs[number : number + 1]
        ]
        lines = source.splitlines(keepends=True)
        found.append({"cell_type": "code", "source": lines, "outputs": shown})
    return json.dumps({"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.parametrize(("line", "said"), COMMENTS.items(), ids=range(len(COMMENTS)))
def test_a_comment_is_an_output_or_a_remark(line: str, said: str, tmp_path: Path) -> None:
    finished = checked(tmp_path, markdown(f"python\n{HEAD}{line}"), "--json")
    outputs = json.loads(finished.stdout)["outputs"]
    if said == "no output":
        assert (outputs, finished.code) == ([], 0)
    elif said == "agree":
        assert [each["same"] for each in outputs] == [True]
    else:
        assert [(each["expected"], each["same"]) for each in outputs] == [(said, False)]
        assert finished.code == 1


def test_what_differs_is_said_with_its_line(tmp_path: Path) -> None:
    text = markdown("python\nprint(1)\nprint(2)") + "\n```text\n1\n3\n```\n"
    finished = checked(tmp_path, text)
    assert finished.stdout.replace(str(tmp_path), "") == (
        "/post.md:7: the output differs\n      1\n    - 3\n    + 2\n"
        "/post.md: 1 of 1 outputs differs\n"
    )
    assert finished.code == 1


DOCUMENTS = {
    "blocks that set in": (
        "- a list\n\n  ```python\n  print(1)\n  print(2)\n  ```\n\n  ```\n  1\n  ```\n",
        "- a list\n\n  ```python\n  print(1)\n  print(2)\n  ```\n\n  ```\n  1\n  2\n  ```\n",
    ),
    "a session": (
        markdown("pycon\n>>> for i in range(2):\n...     print(i)\n0\n>>> 7\n8\n>>> 'a'\n"),
        markdown("pycon\n>>> for i in range(2):\n...     print(i)\n0\n1\n>>> 7\n7\n>>> 'a'\n'a'\n"),
    ),
    "comments": (
        markdown("python\nx = 3\nx + 1  # 5\nprint('a\\nb')  # output: a\n# c\n# d"),
        markdown(
            "python\nx = 3\nx + 1  # 4\nprint('a\\nb')  # output: a\n               #         b"
        ),
    ),
    "left out, and other languages": (
        markdown("grad\nx = 1", "python skip\n1 / 0", "bash\nrm -rf x", "sh\n$ ls"),
        markdown("grad\nx = 1", "python skip\n1 / 0", "bash\nrm -rf x", "sh\n$ ls"),
    ),
    "text behind a program that prints nothing": (
        markdown("grad\nx = 1") + "```\na -> b\n```\n",
        markdown("grad\nx = 1") + "```\na -> b\n```\n",
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_update_writes_what_is_printed(name: str, tmp_path: Path) -> None:
    before, after = DOCUMENTS[name]
    finished = checked(tmp_path, before, "--update")
    assert (finished.code, finished.stderr) == (0, "")
    assert invoke("check-doc", str(tmp_path / "post.md")).code == 0
    assert (tmp_path / "post.md").read_text("utf-8") == after
    assert [path.name for path in tmp_path.iterdir()] == ["post.md"]


def test_a_document_that_fails_is_not_written(tmp_path: Path) -> None:
    text = markdown("python\n1  # 2\n1 / 0  # 3")
    finished = checked(tmp_path, text, "--update")
    assert finished.code == 3
    assert "post.md:3:1" in finished.stderr
    assert (tmp_path / "post.md").read_text("utf-8") == text


def test_a_failure_that_the_text_shows_is_no_failure(tmp_path: Path) -> None:
    shown = ">>> 1 / 0\nTraceback (most recent call last):\n  ...\nZeroDivisionError: {}\n>>> 1\n1"
    good, bad = (
        checked(tmp_path, markdown("python\n" + shown.format(words)))
        for words in ("division by zero", "by nought")
    )
    assert (good.code, bad.code) == (0, 1)
    assert "+ ZeroDivisionError: division by zero" in bad.stdout


def test_a_notebook_runs_cell_by_cell(tmp_path: Path) -> None:
    path = tmp_path / "lesson.ipynb"
    path.write_text(
        notebook(
            "%matplotlib inline\nx = 3\nfor i in range(1):\n    !ls\nx",
            "torch.*Tensor?\nx + 1;",
            "s = '''\n%not magic\n'''\nprint(s, end='')\n(x\n % 2)",
            "x.nothing",
        )
    )
    finished = invoke("run", str(path))
    assert finished.stdout == "3\n\n%not magic\n1\n"
    assert finished.code == 3
    notes = [line for line in finished.stderr.splitlines() if line.startswith("note")]
    assert [note.partition("ipynb:")[2] for note in notes] == [
        "cell 1:1:1: `%matplotlib inline` is skipped",
        "cell 1:4:5: `!ls` is skipped",
        "cell 2:1:1: `torch.*Tensor?` is skipped",
    ]
    assert "lesson.ipynb:cell 4:1:1" in finished.stderr


def test_several_documents_have_a_session_each(tmp_path: Path) -> None:
    texts = {"a.md": "python\nx = 1\nx  # 2", "b.md": "python\nx", "c.md": "python\n1  # 1"}
    for name, text in texts.items():
        (tmp_path / name).write_text(markdown(text))
    finished = invoke("check-doc", *(str(tmp_path / name) for name in texts))
    assert finished.code == 1
    assert "b.md:2:1" in finished.stderr
    assert [line.rpartition(": ")[2] for line in finished.stdout.splitlines()[-2:]] == [
        "1 of 1 outputs differs",
        "the output agrees",
    ]


REFUSED = {
    "null": "is no notebook of format 4",
    "{": "it is not JSON",
    "[" * 200_000: "is no notebook: it is nested too deep\n",
    '{"worksheets": []}': "nbconvert",
    '{"cells": [], "metadata": {"kernelspec": {"language": "R"}}}': "a notebook of R",
    notebook("x = 1", "%%bash\nls"): "cell 2:1:1",
    notebook("x = (", "y = 1 +"): "cell 2:1:7",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("command", ["run", "check-doc"])
def test_what_is_no_notebook_is_said(command: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "lesson.ipynb"
    path.write_text(text)
    finished = invoke(command, str(path))
    assert finished.code in (2, 3)
    assert REFUSED[text] in finished.stderr
    assert finished.stdout == ""


def test_outputs_of_a_notebook_are_checked_and_written(tmp_path: Path) -> None:
    path = tmp_path / "lesson.ipynb"
    path.write_text(notebook("print(1)", "2", outputs=("1\n", "3")))
    finished = invoke("check-doc", str(path))
    assert "lesson.ipynb:cell 2: the output differs" in finished.stdout
    assert finished.code == 1
    assert invoke("check-doc", str(path), "--update").code == 0
    assert invoke("check-doc", str(path)).code == 0
    cells = json.loads(path.read_text())["cells"]
    assert cells[0] == {"cell_type": "markdown", "source": ["Text"]}
    assert cells[2]["outputs"][0]["text"] == ["2"]


@pytest.mark.parametrize("name", ["lesson.ipynb", "post.md"])
def test_the_examples_show_what_they_print(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    finished = invoke("check-doc", name, "-q")
    assert (finished.code, finished.stderr) == (0, "")
    assert "agree" in finished.stdout
    assert invoke("run", name, "-q").code == (3 if name == "post.md" else 0)  # it shows a failure


def test_markdown_without_a_program_says_so(tmp_path: Path) -> None:
    path = tmp_path / "post.md"
    path.write_text("# Title\n")
    finished = invoke("run", str(path))
    assert (finished.code, finished.stdout) == (0, "")
    assert "holds no program" in finished.stderr
