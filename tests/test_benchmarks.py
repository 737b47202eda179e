"""The benchmarks refuse a figure that does not grow with the rounds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.benchmarks import work
from tests.benchmarks.__main__ import Bench, wanted_rounds
from tests.benchmarks.measure import alternate, measure
from tests.benchmarks.records import line_of, pays_from
from tests.benchmarks.where import where
from tests.command_line import ROOT


@pytest.mark.parametrize(
    ("seconds", "is_refused"),
    [("0.25", True), ("0.25 * ROUNDS", False), ("0.25 * ROUNDS ** 2", True)],
)
def test_figures_have_to_grow(
    seconds: str, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "PROGRAMS", tmp_path)
    monkeypatch.chdir(ROOT)
    text = f'ROUNDS = 10  # quick: 1\nprint(f"loop {{{seconds}:.6f}}")\n'
    (tmp_path / "planted.grad").write_text(text, encoding="utf-8")
    # Python runs what is planted as gradcli would, and starts at once.
    (tmp_path / "planted.py").write_text("import sys\nexec(open(sys.argv[-1]).read())\n")
    stand_in = [sys.executable, "-S", str(tmp_path / "planted.py")]
    bench = Bench(tmp_path, stand_in, None, quick=False, times=1)
    bench.idle = alternate(bench.commands("idle", "1\n"), 1)
    bench.run(work.Work("planted"))
    assert bench.refused == (["planted"] if is_refused else [])
    assert bench.close() == is_refused


@pytest.mark.parametrize(
    ("once", "thrice", "wanted"),
    [(1.0, 3.0, 3), (1.25, 1.75, 120), (100.0, 300.0, 1), (1.0, 1.0, 160), (9.0, 9.3, 160)],
)
def test_rounds_last_long_beside_the_first_ones(once: float, thrice: float, wanted: int) -> None:
    assert wanted_rounds(10, once, thrice) == wanted


def test_where_the_time_goes(capsys: pytest.CaptureFixture[str]) -> None:
    where(work.Work("training"), 150)
    shown = capsys.readouterr().out
    shares = {part: int(share) for part, share in re.findall(r"(\w+) (\d+)%", shown)}
    assert {"interpreter", "engine", "kernels", "loop"} <= shares.keys()
    assert 95 <= sum(shares.values()) <= 105


@pytest.mark.parametrize(
    "program", sorted(work.PROGRAMS.glob("*.grad")), ids=lambda path: path.stem
)
def test_each_program_tells_its_rounds_and_time(program: Path) -> None:
    if program.stem != "cold_start":
        assert work.Work(program.stem).rounds(quick=True) < work.Work(program.stem).rounds(False)
        assert "loop {" in program.read_text(encoding="utf-8")


def test_sharing_pays_from_the_records_that_make_up_for_its_start() -> None:
    seconds = {
        ("one process", 1): 1.5,
        ("one process", 3): 3.5,
        ("other", 1): 3.5,
        ("other", 3): 4.5,
    }
    alone, other = line_of(seconds, "one process", 100), line_of(seconds, "other", 100)
    assert (alone, other) == ((0.01, 0.5), (0.005, 3.0))
    assert pays_from(alone, other) == "500 records, 5.0 s"
    assert pays_from(other, alone) == "never"


def test_the_peak_of_a_run_is_its_own() -> None:
    held = bytearray(b"1") * 100_000_000
    assert measure([sys.executable, "-S", "-c", ""]).peak < len(held) / 2


@pytest.mark.parametrize("name", work.ON_GPU)
def test_programs_at_sizes_for_a_gpu(name: str) -> None:
    text = work.Work(name, on_gpu=True).text(3)
    assert all(large in text for large in work.ON_GPU[name].values())
    assert text.count('import torch\ntorch.set_default_device("cuda")\n') == 1
