"""What a program writes to a terminal: its bars work there, and nothing else commands it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from gradcli.running.process.terminal import ProgramScreen
from tests import terminal
from tests.rows import sampled

PASSED = {
    "plain text": (["a", "b\n"], "ab\n"),
    "a carriage return": (["10%\r20%"], "10%\r20%"),
    "a backspace": (["a\bb"], "a\bb"),
    "an erased line": (["\r\x1b[K50%", "\x1b[2K"], "\r\x1b[K50%\x1b[2K"),
    "erased to the end": (["\x1b[J"], "\x1b[J"),
    "colours": (["\x1b[1;31mred\x1b[0m"], "\x1b[1;31mred\x1b[0m"),
    "colours of 256": (["\x1b[38;5;200mred\x1b[m"], "\x1b[38;5;200mred\x1b[m"),
    "a column": (["\x1b[10G."], "\x1b[10G."),
    "up within its own lines": (["a\nb\n\x1b[1A"], "a\nb\n\x1b[1A"),
    "up beyond its own lines": (["a\nb\x1b[99A"], "a\nb\x1b[1A"),
    "up where there is none": (["a\x1b[A"], "a"),
    "down to its lowest line": (["a\nb\n\x1b[2A\x1b[9B"], "a\nb\n\x1b[2A\x1b[2B"),
    "the line before": (["a\n\x1b[F"], "a\n\x1b[1F"),
    "a sequence in two prints": (["\x1b[3", "1mred"], "\x1b[31mred"),
    "a sequence in four prints": (["\x1b", "[", "3", "1mred"], "\x1b[31mred"),
    "half of a sequence, then text": (["\x1b", "Zx"], r"\x1bZx"),
    "the whole screen erased": (["\x1b[2J"], r"\x1b[2J"),
    "home": (["\x1b[H"], r"\x1b[H"),
    "a place on the screen": (["\x1b[1;1H"], r"\x1b[1;1H"),
    "a title": (["\x1b]0;title\x07"], r"\x1b]0;title\x07"),
    "a title in two prints": (["\x1b", "]0;title\x07"], r"\x1b]0;title\x07"),
    "the clipboard": (["\x1b]52;c;aGk=\x07"], r"\x1b]52;c;aGk=\x07"),
    "a device control": (["\x1bP1$r\x1b\\"], r"\x1bP1$r\x1b" "\\"),
    "a query": (["\x1b[6n"], r"\x1b[6n"),
    "a mode": (["\x1b[?1049h"], r"\x1b[?1049h"),
    "a scroll region": (["\x1b[1;5r"], r"\x1b[1;5r"),
    "a reset": (["\x1bc"], r"\x1bc"),
    "C1": (["\x9b31m"], r"\x9b31m"),
    "bidi": (["\u202eabc"], r"\u202eabc"),
    "a bell": (["\x07"], r"\x07"),
    "a lone surrogate": (["\udc80"], r"\udc80"),
    "a very long sequence": (["\x1b[" + "1;" * 60 + "1m"], r"\x1b[" + "1;" * 60 + "1m"),
}


@pytest.mark.parametrize("name", PASSED)
def test_what_a_terminal_gets(name: str) -> None:
    texts, wanted = PASSED[name]
    screen = ProgramScreen()
    assert "".join(screen.passed(text, "out") for text in texts) == wanted


LEFT = {
    "an ended line": (["a\n"], ""),
    "an open line": (["a"], "\n"),
    "a colour": (["\x1b[31ma\n"], "\x1b[0m"),
    "a colour taken back": (["\x1b[31ma\x1b[0m\n"], ""),
    "a begun sequence": (["\x1b[3"], "\\x1b[3\n"),
    "lines below the cursor": (["a\nb\nc\x1b[2A"], "\x1b[2B\n"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_comes_before_text_of_our_own(name: str) -> None:
    texts, wanted = LEFT[name]
    screen = ProgramScreen()
    for text in texts:
        screen.passed(text, "out")
    assert screen.left() == wanted
    assert screen.left() == ""


def test_lines_of_both_streams_count() -> None:
    screen = ProgramScreen()
    screen.passed("a\nb\n", "out")
    assert screen.passed("\x1b[2A", "err") == "\x1b[2A"
    assert screen.passed("\x1b[1A", "out") == ""


# --- on a terminal with a size ------------------------------------------------------------------


def on_terminal(words: list[str], typed: bytes = b"", columns: int = 80) -> tuple[str, int]:
    """What a terminal of so many columns gets from a command line, and the exit code."""
    pieces, code = terminal.on_terminal(
        [sys.executable, "-m", "gradcli", *words], typed, columns=columns
    )
    return "".join(text for _, text in pieces), code


@pytest.mark.parametrize("columns", terminal.SIZES)
def test_bars_are_those_that_tqdm_draws(columns: int) -> None:
    """Every state of the screen is one of the recording, and the other way round."""
    program = terminal.RECORDINGS / "bars.py"
    known, width = terminal.recorded(program.with_name(f"bars-{columns}.cast"))
    assert width == columns
    shown, code = on_terminal(["run", "-q", str(program)], columns=columns)
    assert code == 0
    wanted, found = (terminal.states_of(text, columns) for text in (known, shown))
    assert found[-1] == wanted[-1]
    assert {*found} == {*wanted}
    assert len(found) > 20


BAR = """\
from tqdm import tqdm
import time
for i in tqdm(range(4), desc="train"):
    time.sleep(0.15)
print("\\x1b[3", end="")
print("1mred", end="")
x = 1 / 0
"""


def test_bars_and_colours_work_as_under_python(tmp_path: Path) -> None:
    (tmp_path / "bar.py").write_text(BAR)
    shown, code = on_terminal(["run", str(tmp_path / "bar.py")])
    assert code == 3
    assert "\r\x1b[Ktrain:   0%|" in shown
    assert "\r\x1b[Ktrain: 100%|██" in shown
    bars = [line for line in shown.split("\r\x1b[K") if line.startswith("train:")]
    assert all(len(bar.rstrip("\r\n").split("\r\n")[0]) <= 80 for bar in bars)
    # The error stands on a line of its own, in its own colours.
    assert "\x1b[31mred\x1b[0m\r\n\x1b[1;31merror[E206]" in shown


def test_a_bar_of_a_loop_that_ends_early_is_closed(tmp_path: Path) -> None:
    program = "from tqdm import tqdm\nfor i in tqdm(range(3), desc='a'): break\n"
    (tmp_path / "early.py").write_text(f"{program}for i in tqdm(range(3), desc='b'): pass\n")
    shown, code = on_terminal(["run", str(tmp_path / "early.py")])
    assert code == 0
    assert "b: 100%|" in shown
    assert "\x1b[1A" not in shown


def test_nothing_commands_the_terminal_from_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "bar.py").write_text("print('\\x1b[31mred\\r')\n" + BAR)
    shown, _ = on_terminal(["run", "--sandbox", str(tmp_path / "bar.py")])
    assert "\\x1b[31mred\\x0d" in shown
    assert "train:" not in shown


LAYERS = """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
loss = net(torch.ones(5, 4)).pow(2).mean()
"""


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize(
    "words", [["explain", LAYERS], [LAYERS, "--trace=values", "--wrt", "loss"]]
)
def test_a_network_fits_the_terminal(words: list[str], columns: int) -> None:
    shown, code = on_terminal(words, columns=columns)
    assert code == 0
    # On a busy machine the line that says how far it is stands there before.
    every = re.sub(r"\x1b\[[\d;?]*\w", "", shown).split("\r\n")
    lines = [line.rpartition("\r")[2] for line in every]
    assert [line for line in lines if len(line) > columns] == []


def test_bars_work_in_the_session() -> None:
    typed = b"from tqdm import tqdm\nfor i in tqdm(range(2), desc='t'): pass\n\n.quit\n"
    shown, code = on_terminal(["repl"], typed)
    assert code == 0
    assert "t: 100%|" in shown
    assert "\\x0d" not in shown


def test_a_method_that_is_named_alone_is_told_how_to_be_called() -> None:
    typed = b"import torch\nx = torch.ones(2)\ny = x.sum\ny\nx.sum\nx.T.mean\ntorch.sin\n.quit\n"
    shown, code = on_terminal(["repl"], typed)
    assert code == 0
    assert re.findall(r"`([\w.]+)\(\)` calls the method", shown) == ["x.sum", "x.T.mean"]


def test_a_paste_that_the_terminal_does_not_mark_keeps_its_margins() -> None:
    typed = b"for i in range(2):\n    if i:\n        print('b', i)\n\nprint('after')\n.quit\n"
    shown, code = on_terminal(["repl"], typed)
    assert code == 0
    assert "b 1" in shown
    assert "after" in shown
    assert "error" not in shown


NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(2, 3)

        self.l2 = nn.Linear(3, 1)


    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        else:
            x = x * 3
        return self.l2(self.l1(x))


for number in range(2):

    print("shape", Net()(torch.ones(4, 2)).shape)

"""


@pytest.mark.parametrize("comments", [0, 30], ids=["short", "longer than what is read at once"])
@pytest.mark.parametrize("end", sampled(["\n", "\r"], 2))
def test_empty_lines_in_a_block_that_is_pasted_do_not_end_it(comments: int, end: str) -> None:
    text = NET.replace("    def forward", "    # on the way\n\n" * comments + "    def forward")
    shown, code = on_terminal(["repl"], f"{text}.quit\n".replace("\n", end).encode())
    assert code == 0
    assert shown.count("shape torch.Size([4, 1])") == 2
    assert "error" not in shown
