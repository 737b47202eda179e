"""The ledger as a table for Markdown and for LaTeX: the numbers are those of its JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.running import invoke

PROGRAMS = {
    "e = (a + b) * d": ["a=2", "b=3", "d=4"],
    "y = tanh(x) * w_1\ne = (y * y).sum() + y.sum()": ["x=[1,2,3]", "w_1=2"],
    "e = (x @ w).exp().mean()": ["x=[[1,2],[3,4]]", "w=[[0.1],[0.2]]"],
    "z = {'a|b': x}['a|b'] * x\ne = z.sum()": ["x=[1,2]"],
    "e = x.expand(40, 2).sum()": ["x=[1,2]"],
}


def _table(program: str, format: str) -> list[list[str]]:
    """The rows of a table, the head among them, as what the cells say."""
    finished = invoke("explain", program, *PROGRAMS[program], "--format", format)
    assert (finished.code, finished.stderr) == (0, "")
    found = []
    for line in finished.stdout.splitlines():
        if format == "markdown":
            assert line.startswith("| ") or set(line) <= set("|-")
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            cells = [re.sub(r"\\(.)", r"\1", cell).replace("&lt;", "<") for cell in cells]
        else:
            if line.strip() in (r"\hline", r"\end{tabular}") or line.startswith(r"\begin"):
                continue
            assert line.endswith(r" \\")
            cells = re.split(r"(?<!\\)&", line[:-3])
            cells = [re.sub(r"\\([_%&#{}$])", r"\1", cell) for cell in cells]
            for tex, plain in (
                (r"$\partial$", "∂"),
                (r"$\times$", "×"),
                ("$<$", "<"),
                ("$>$", ">"),
            ):
                cells = [cell.replace(tex, plain) for cell in cells]
        found.append([cell.strip() for cell in cells])
    return [row for row in found if set("".join(row)) != {"-"}]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_table_is_the_ledger(program: str) -> None:
    markdown, latex = _table(program, "markdown"), _table(program, "latex")
    assert markdown == latex
    assert {len(row) for row in markdown} == {6}
    document = json.loads(invoke("explain", program, *PROGRAMS[program], "--json").stdout)
    rows = [row for row in document["rows"] if row["kind"] in ("edge", "leaf", "meet")]
    assert len(markdown) == len(rows) + 1
    for said, row in zip(markdown[1:], rows, strict=True):
        if row["kind"] == "edge":
            assert said[2] == " ".join(row["operand"].split())
            assert said[3].startswith(row["derivative"] or row["formula"] or "")
        elif isinstance(row["new"], float):
            assert float(said[5]) == pytest.approx(row["new"], abs=1e-4)
    names = [row["name"] for row in document["rows"] if row["kind"] == "node"]
    assert [row[1].rpartition(": ")[2] for row in markdown[1:] if row[0]] == names
    numbers = [row[0] for row in markdown[1:] if row[0]]
    assert numbers == [str(n + 1) for n in range(len(numbers))]


@pytest.mark.parametrize(("suffix", "begins"), [(".md", "| step"), (".tex", r"\begin{tabular}")])
def test_a_file_of_the_suffix_holds_it(suffix: str, begins: str, tmp_path: Path) -> None:
    target = tmp_path / f"ledger{suffix}"
    assert invoke("explain", "y = x * x", "x=3", "-o", str(target)).stdout == ""
    assert target.read_text("utf-8").startswith(begins)


def test_other_parts_have_no_table() -> None:
    for part in ("--flow", "--ir"):
        finished = invoke("explain", "y = x * x", "x=3", part, "--format", "latex")
        assert finished.code == 2
