"""The benchmarks refuse a figure that does not grow with the rounds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.benchmarks import work
from tests.benchmarks.__main__ import Bench
from tests.benchmarks.interpreted import STATEMENTS, interpreted
from tests.benchmarks.measure import alternate, measure
from tests.benchmarks.opponents import JAX, STEPS, Opposed, Sides
from tests.benchmarks.records import line_of, pays_from
from tests.benchmarks.rounds import refusal, settled_rounds, wanted_rounds
from tests.benchmarks.where import where
from tests.benchmarks.whole import (
    PAGE,
    WHOLE,
    Cell,
    Table,
    crossings,
    extrapolated,
    markdown,
    whole,
    write_chart,
)
from tests.command_line import ROOT
from tests.rows import sampled


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
    [(1.0, 3.0, 3), (1.25, 1.75, 160), (100.0, 300.0, 1), (1.0, 1.0, 160), (9.0, 9.3, 160)],
)
def test_rounds_last_long_beside_the_first_ones(once: float, thrice: float, wanted: int) -> None:
    assert wanted_rounds(10, once, thrice) == wanted


@pytest.mark.parametrize(
    ("first", "each", "growing", "least", "reason"),
    [
        (0.2, 1e-5, 0.0, 2.6, None),  # quick rounds behind a long start
        (0.0, 0.5, 0.0, 3.0, None),  # slow ones
        (0.2, 1e-12, 0.0, 1.0, "take 1.0 times as long as .*: of .* cost 0.20 s besides"),
        (0.0, 1e-6, 1e-6, 4.5, "so that a round costs more and more"),
    ],
)
def test_a_side_is_measured_where_its_rounds_count(
    first: float, each: float, growing: float, least: float, reason: str | None
) -> None:
    """A side that takes so long before its first round, and for each, finds its own N."""

    def seconds(rounds: int) -> float:
        return first + each * rounds + growing * rounds**2

    rounds = settled_rounds(seconds, 100)
    once, thrice = seconds(rounds), seconds(3 * rounds)
    assert thrice / once >= least
    assert once < 5
    told = refusal("side", rounds, once, thrice)
    assert told is None if reason is None else re.search(reason, told or "")


def test_a_try_that_was_disturbed_settles_nothing() -> None:
    """Where something else slowed the first try, fewer rounds than last long are not settled on."""
    delays = iter((0, 20))

    def seconds(rounds: int) -> float:
        return 0.02 + 1e-3 * rounds + next(delays, 0)

    rounds = settled_rounds(seconds, 100)
    assert refusal("side", rounds, seconds(rounds), seconds(3 * rounds)) is None


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


@pytest.mark.parametrize("work", [*STEPS, *WHOLE], ids=lambda work: work.name)
@pytest.mark.parametrize("side", ["gradcli", "torch", "torch.compile", "jax.jit"])
def test_opponents_run_the_same_program(work: Opposed, side: str) -> None:
    text = work.text(side, 7)
    compile(text, work.name, "exec")
    assert text.count("ROUNDS = 7\n") == 1
    assert not work.sizes or f"SIZES = {work.sizes}\n" in text
    if side == "torch.compile" and work.compiles:
        function = text[text.index("@torch.compile") : text.index("    return loss")]
        assert "loss = " in function
        assert "backward" not in function
        assert text.count("loss.backward()") == 1
    assert (JAX / f"{work.program}.jax").is_file()


def test_whole_processes_are_extrapolated_and_cross(tmp_path: Path) -> None:
    own = {100: Cell(0.2, True), 1_000: Cell(0.4, True), 10_000: Cell(2.4, True)}
    other = {100: Cell(2.0, True), 1_000: Cell(2.1, True), 10_000: Cell(2.2, True)}
    assert extrapolated({100: Cell(0.2, True)}, 1_000) == 0.0
    assert extrapolated(own, 100_000) == pytest.approx(22.4)
    ((rounds, seconds),) = crossings(own, other)
    assert 8_000 < rounds < 10_000
    assert 2.0 < seconds < 2.4
    table = Table(Sides(tmp_path, [sys.executable, "-m", "gradcli"], None, "jax"), False, 0.0)
    table.lines = {(work.name, side): {} for work in WHOLE for side in table.names}
    table.lines["PINN", "gradcli"] = own | {100_000: Cell(extrapolated(own, 100_000), False)}
    table.lines["PINN", "jax.jit"] = other
    shown = markdown(table)
    assert "| PINN | gradcli | 0.20 | 0.40 | 2.40 | ~22.4 |" in shown
    assert "| PINN | jax.jit | 2.00 | 2.10 | 2.20 |  |" in shown
    assert "- PINN: gradcli and jax.jit take the same 2.2 s at 9,000 rounds." in shown
    write_chart(table, tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").count("<path") > 2


def test_what_there_is_no_time_for_is_left_out(tmp_path: Path) -> None:
    table = Table(Sides(tmp_path, [sys.executable], None, None), True, 0.0)
    table.measure()
    assert set(map(len, table.lines.values())) == {0}


@pytest.mark.sweep
def test_the_whole_table_is_made_in_a_hurry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    before = PAGE.read_text(encoding="utf-8")
    whole(Sides(tmp_path, [sys.executable, "-m", "gradcli"], None, None), quick=True, minutes=5)
    shown = capsys.readouterr().out
    assert len(re.findall(r"gradcli +2: [\d.]+, 4: [\d.]+", shown)) == len(WHOLE)
    assert "wrote benchmarks.md and benchmarks.svg" in shown
    assert PAGE.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("name", sampled(STATEMENTS, 3))
def test_statements_print_what_cpython_prints(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert interpreted([name], quick=True, times=1) == 0
    shown = capsys.readouterr().out
    assert re.search(rf"^{name} .*\d\.\d +3$", shown, re.MULTILINE)
    assert "different" not in shown
