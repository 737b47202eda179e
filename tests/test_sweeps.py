"""Sweeps: shares of the records, runs that go on, results that are collected and added up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.running.process.progress import Rate
from tests.command_line import CommandLine
from tests.host import Finder

PROGRAM = "y = (a * b * w).sum()"
WORDS = (PROGRAM, "w=2", "--inputs", "cases.jsonl")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with eleven records, of which the fifth is wrong."""
    monkeypatch.chdir(tmp_path)
    records: list[Any] = [{"a": k, "b": [1, k]} for k in range(11)]
    records[4] = {"a": 1}
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    right = [each for each in records if "b" in each]
    (tmp_path / "right.jsonl").write_text("".join(json.dumps(each) + "\n" for each in right))
    return tmp_path


# --- shares -------------------------------------------------------------------------------------


@pytest.mark.parametrize("all", [1, 2, 3, 12])
def test_shares_make_up_the_whole(gradcli: CommandLine, all: int) -> None:
    whole = gradcli(*WORDS).out.splitlines()
    shares = [
        gradcli(*WORDS, "--shard", f"{one}/{all}", "--jobs", "2").out.splitlines()
        for one in range(1, all + 1)
    ]
    for number, line in enumerate(whole):
        assert shares[number % all][number // all] == line
    assert sum(map(len, shares)) == len(whole)


@pytest.mark.parametrize("chunk", ["1", "3", "100"])
def test_chunks_change_nothing(gradcli: CommandLine, chunk: str) -> None:
    assert gradcli(*WORDS, "--jobs", "2", "--chunk", chunk).out == gradcli(*WORDS).out


# --- going on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("cut", [0, 1, 200, 1000, -1, None])
def test_a_run_goes_on_where_it_was_cut_off(
    gradcli: CommandLine, here: Path, cut: int | None, jobs: str
) -> None:
    whole = gradcli(*WORDS)
    path = here / "out.jsonl"
    path.write_bytes(whole.out.encode()[:cut])
    shown = gradcli(*WORDS, "--resume", "out.jsonl", "--jobs", jobs)
    assert path.read_bytes() == whole.out.encode()
    # The failure counts, be it from before or from now.
    assert (shown.code, shown.out, shown.err) == (whole.code, "", whole.err)
    assert "1 of 11 records failed; the first is record 5 with E101" in whole.err


def test_a_file_that_is_not_there_is_made(gradcli: CommandLine, here: Path) -> None:
    for share in ("1/2", "2/2"):
        name = f"out{share[0]}.jsonl"
        gradcli(*WORDS, "--shard", share, "--resume", name)
        assert (here / name).read_text() == gradcli(*WORDS, "--shard", share).out


REFUSED = [
    ('{"record": 1}\n', [], 2, "line 1 is no result of record 1"),
    ("a letter\n", [], 2, "line 1 is no result of record 1"),
    ('{"schema": "gradcli.result/1", "record": 2}\n', [], 2, "line 1 is no result of record 1"),
    ('{"schema": "gradcli.result/1", "record": 1}\n', ["--shard", "2/2"], 2, "of record 2"),
    ("", ["--sandbox"], 5, "E606"),
    ("", ["-o", "x.npz"], 2, "--resume goes on with lines of JSON, and -o writes none"),
    ("", ["--reduce", "sum"], 2, "and --reduce writes none"),
]


@pytest.mark.parametrize(("held", "words", "code", "part"), REFUSED)
def test_another_file_is_left_alone(
    gradcli: CommandLine, here: Path, held: str, words: list[str], code: int, part: str
) -> None:
    (here / "out.jsonl").write_text(held)
    shown = gradcli(*WORDS, "--resume", "out.jsonl", *words)
    assert (shown.code, shown.out) == (code, "")
    assert part in shown.err
    assert (here / "out.jsonl").read_text() == held


def test_a_folder_is_no_file(gradcli: CommandLine) -> None:
    shown = gradcli(*WORDS, "--resume", ".")
    assert (shown.code, "E603" in shown.err) == (5, True)


# --- random numbers -----------------------------------------------------------------------------


def test_each_record_has_random_numbers_of_its_own(gradcli: CommandLine) -> None:
    program = "y = torch.rand(2).sum() * a + random()\n"
    words = (f"from random import random\n{program}", "--inputs", "cases.jsonl")
    own = gradcli(*words, "--manual-seed-per-record", "--jobs", "2").out
    values = [json.loads(line)["outputs"][0]["value"] for line in own.splitlines()]
    assert len(set(values)) == len(values)
    assert gradcli(*words, "--manual-seed-per-record", "--chunk", "4").out == own
    assert gradcli(*words, "--manual-seed-per-record", "--manual-seed", "1").out != own
    # Record 3 alone, by the seed that the manual names.
    alone = gradcli(words[0], "a=2", "--manual-seed", "3", "--json", "-q").out
    assert json.loads(alone)["outputs"][0]["value"] == values[2]


# --- collected ----------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_stacked(gradcli: CommandLine, here: Path, jobs: str, dtype: str) -> None:
    shown = gradcli(*WORDS, "--dtype", dtype, "-o", "out.npz", "--jobs", jobs)
    assert (shown.code, shown.out) == (3, "")
    assert "1 of 11 records failed; the first is record 5 with E101" in shown.err
    results = [json.loads(line) for line in gradcli(*WORDS, "--dtype", dtype).out.splitlines()]
    right = [each for each in results if "error" not in each]
    found = np.load(here / "out.npz")
    assert found["record"].tolist() == [each["record"] for each in right]
    assert found["y"].tolist() == [each["outputs"][0]["value"] for each in right]
    assert found["b.grad"].tolist() == [each["gradients"][2]["value"] for each in right]
    assert set(found) == {"record", "y", "w.grad", "a.grad", "b.grad"}
    assert found["b.grad"].dtype == dtype


UNLIKE = [
    (
        '{"a": [1, 2]}\n{"a": [1, 2, 3]}\n',
        "y = a * 1\ny.backward(ones_like(y))\ny",
        "record 2 gives y of shape (3,) and float32, where record 1 gave y of shape (2,)",
    ),
    (
        '{"a": 1}\n{"a": 2}\n',
        "y = a * 1\nz = a * 2\nz if a > 1 else y",
        "record 2 gives z, a.grad, where record 1 gave y, a.grad",
    ),
    ('{"a": 1}\n', "print(a.item())", "1 of 1 records failed; the first is record 1 with E507"),
]


@pytest.mark.parametrize(("records", "program", "part"), UNLIKE)
def test_records_that_differ_are_not_stacked(
    gradcli: CommandLine, here: Path, records: str, program: str, part: str
) -> None:
    (here / "few.jsonl").write_text(records)
    shown = gradcli(program, "--inputs", "few.jsonl", "-o", "out.npz")
    assert (shown.code, shown.out) == (4, "")
    assert part in shown.err


def test_rows_of_parquet_are_those_of_npz(gradcli: CommandLine, here: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (here / "few.jsonl").write_text('{"a": [[1, 2, 3]]}\n{"b": 1}\n{"a": [[4, 5, 6]]}\n')
    words = ("y = a.double() * 2\ny.sum().backward()\ny > 2", "--inputs", "few.jsonl")
    for name in ("out.npz", "out.parquet"):
        shown = gradcli(*words, "-o", name, "--jobs", "2")
        assert "1 of 3 records failed; the first is record 2 with E101" in shown.err
    held = np.load(here / "out.npz")
    table = parquet.read_table(here / "out.parquet")
    assert table.column_names == list(held) == ["record", "output", "a.grad"]
    assert table.to_pydict() == {name: held[name].tolist() for name in held}
    assert str(table.schema.field("a.grad").type).count("fixed_size_list") == 2
    assert str(table.schema.field("record").type) == "int64"


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_parquet_has_not_every_dtype(gradcli: CommandLine, here: Path, dtype: str) -> None:
    pytest.importorskip("pyarrow.parquet")
    (here / "one.jsonl").write_text('{"a": 1}\n')
    words = (f"y = a.to(torch.{dtype}) * 2\ny.abs().backward()\ny", "--inputs", "one.jsonl")
    shown = gradcli(*words, "-o", "out.parquet")
    assert (shown.code, f"Parquet has no dtype for y, which is {dtype}" in shown.err) == (5, True)
    assert not (here / "out.parquet").exists()


def test_parquet_needs_its_package_before_the_first_record(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Finder(["pyarrow"]), *sys.meta_path])
    shown = gradcli("while True: pass", "--inputs", "right.jsonl", "-o", "out.parquet")
    assert (shown.code, shown.out) == (5, "")
    assert "this needs pyarrow, which is not installed" in shown.err
    assert "`pip install pyarrow`" in shown.err


def test_a_sum_has_no_rows(gradcli: CommandLine) -> None:
    shown = gradcli(*WORDS, "--reduce", "sum", "-o", "sum.parquet")
    assert (shown.code, shown.out) == (2, "")
    assert "--reduce gives one result and no rows" in shown.err


def test_too_many_rows_end_the_run(gradcli: CommandLine) -> None:
    shown = gradcli(PROGRAM, "w=2", "--inputs", "right.jsonl", "-o", "x.npz", "--max-elements", "9")
    assert (shown.code, "E602" in shown.err) == (5, True)


# --- added up -----------------------------------------------------------------------------------

REDUCED = ("y = ((x @ w - t) ** 2).sum()", "w=@w.npy", "--inputs", "parts.jsonl")


@pytest.fixture
def parts(here: Path) -> tuple[Any, Any, Any]:
    """Seven parts of a data set in files of their own, one large and the others small in number,
    so that the order of addition shows in the last digits.
    """
    random = np.random.default_rng(0)
    w, rows = random.normal(size=3).astype(np.float32), []
    lines = []
    for part in range(7):
        x = random.normal(size=(4, 3)) * 10.0 ** (part % 4)
        rows.append((x.astype(np.float32), random.normal(size=4).astype(np.float32)))
        np.savez(here / f"part{part}.npz", x=rows[-1][0], t=rows[-1][1])
        lines.append(json.dumps({n: f"@part{part}.npz:{n}" for n in ("x", "t")}) + "\n")
    np.save(here / "w.npy", w)
    (here / "parts.jsonl").write_text("".join(lines))
    return w, np.concatenate([x for x, _ in rows]), np.concatenate([t for _, t in rows])


def test_gradients_of_parts_are_added(gradcli: CommandLine, parts: tuple[Any, Any, Any]) -> None:
    w, x, t = (each.astype(float) for each in parts)
    shown = gradcli(*REDUCED, "--reduce", "sum")
    found = json.loads(shown.out)
    assert (shown.code, found["schema"], found["records"]) == (0, "gradcli.reduced/1", 7)
    # What a record gives itself, the data, has no gradient in common with the others.
    assert [each["name"] for each in found["gradients"]] == ["w"]
    rest = x @ w - t
    np.testing.assert_allclose(found["outputs"][0]["value"], (rest**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(found["gradients"][0]["value"], 2 * rest @ x, rtol=1e-5)
    mean = json.loads(gradcli(*REDUCED, "--reduce", "mean").out)
    np.testing.assert_allclose(
        np.array(mean["gradients"][0]["value"]) * 7, found["gradients"][0]["value"], rtol=1e-6
    )


@pytest.mark.usefixtures("parts")
def test_the_sum_does_not_depend_on_who_works(gradcli: CommandLine, here: Path) -> None:
    alone = gradcli(*REDUCED, "--reduce", "sum").out
    for words in (("--jobs", "3", "--chunk", "1"), ("--jobs", "2", "--chunk", "4")):
        assert gradcli(*REDUCED, "--reduce", "sum", *words).out == alone
    gradcli(*REDUCED, "--reduce", "sum", "-o", "sum.npz", "--jobs", "2")
    held = np.load(here / "sum.npz")
    assert held["w.grad"].tolist() == json.loads(alone)["gradients"][0]["value"]


def test_a_sum_without_one_of_its_records_is_an_error(gradcli: CommandLine) -> None:
    shown = gradcli(*WORDS, "--reduce", "sum")
    assert (shown.code, shown.out) == (3, "")
    assert "error[E101]: NameError: record 5: `b` has no value" in shown.err


def test_what_cannot_be_added(gradcli: CommandLine, here: Path) -> None:
    (here / "few.jsonl").write_text('{"k:const": 1}\n{"k:const": 2}\n')
    program = "w = ones(k, requires_grad=True)\n(w * w).sum()"
    shown = gradcli(program, "--inputs", "few.jsonl", "--reduce", "sum")
    assert (shown.code, shown.out) == (4, "")
    assert "record 2 gives w.grad of shape (2,)" in shown.err


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("--shard", "1/2"),
        ("--resume", "x"),
        ("--chunk", "3"),
        ("--manual-seed-per-record",),
        ("--reduce", "sum"),
    ],
)
def test_what_goes_with_records_only(gradcli: CommandLine, words: tuple[str, ...]) -> None:
    shown = gradcli("y = 1", *words)
    assert (shown.code, f"{words[0]} goes with --inputs" in shown.err) == (2, True)


@pytest.mark.parametrize("share", ["0/2", "3/2", "1", "1/", "/2", "a/b", "-1/2", "1/0"])
def test_wrong_shares(gradcli: CommandLine, share: str) -> None:
    shown = gradcli(*WORDS, f"--shard={share}")
    assert (shown.code, "no share such as 2/8" in shown.err) == (2, True)


def test_the_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 101.0, 110.0, 110.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    rate = Rate()
    assert rate.text(5, 0.5) == ", 5 a second"  # half of it was there before
    assert rate.text(20_000, 0.55) == ", 2,000 a second, 1:30 left"
    assert rate.text(20_000, None) == ", 2,000 a second"
