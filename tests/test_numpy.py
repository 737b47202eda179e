"""Arrays: what programs get is what NumPy itself gives, row by row."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

from gradcli.library.namespace import MODULES
from tests.rows import each_row
from tests.running import invoke

ROWS = [
    line
    for line in (Path(__file__).with_name("numpy_rows.txt")).read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]

SETTING = """import numpy as np
a = np.array([1., 2., 3.])
m = np.arange(6.).reshape(2, 3)
s = np.array([[2., 1.], [1., 3.]])
k = np.array([1, 2, 3])
"""

_MARK = "=" * 20


def _program() -> str:
    """Every row, its result or its error printed behind a line of its own."""
    parts = [SETTING]
    for row in ROWS:
        parts.append(f"print({_MARK!r})\ntry:\n    print(repr(({row})))\n")
        parts.append("except Exception as error:\n    print(type(error).__name__, error)\n")
    return "".join(parts)


def _of_numpy(program: str) -> list[str]:
    written = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(written):
        warnings.simplefilter("ignore")
        exec(compile(program, "rows", "exec"), {})
    return written.getvalue().split(f"{_MARK}\n")[1:]


def _own_words(text: str) -> str:
    """A text without what no program relies on and hosts word in other ways."""
    text = re.sub(r"^(UFuncTypeError|_UFunc\w+Error|UFuncNoLoopError)", "TypeError", text)
    text = re.sub(r"cannot use '.*' as a .* \((.*)\)", r"\1", text)  # since Python 3.14
    text = re.sub(r"(cannot resize an array that).*", r"\1", text, flags=re.DOTALL)
    return re.sub(r"\(.*SingularMatrix.*\)", "", text)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """For each row what the language prints, and what NumPy does."""
    program = _program()
    file = tmp_path_factory.mktemp("rows") / "rows.grad"
    file.write_text(program, encoding="utf-8")
    with contextlib.chdir(file.parent):  # some rows write files
        finished = invoke("run", str(file))
        assert finished.code == 0, finished.stderr
        ours = finished.stdout.split(f"{_MARK}\n")[1:]
        theirs = _of_numpy(program)
    assert len(ours) == len(theirs) == len(ROWS)
    return dict(zip(ROWS, zip(ours, theirs, strict=True), strict=True))


@each_row("row", ROWS)
def test_row(row: str, answers: dict[str, tuple[str, str]]) -> None:
    ours, theirs = answers[row]
    assert _own_words(ours) == _own_words(theirs)


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("numpy")])
def test_every_name_has_a_row(module: str) -> None:
    text = "\n".join(ROWS)
    spelled = module.replace("numpy", "np", 1)
    missing = [
        name
        for name in MODULES[module].names
        if not re.search(rf"\b{re.escape(spelled)}\.{re.escape(name)}\b", text)
    ]
    assert missing == []
