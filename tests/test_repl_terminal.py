"""The REPL in a real terminal: keys, pasting, interrupting, and what is kept for the next time."""

from __future__ import annotations

import os
import pty
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.machine import PATIENCE

UP = "\x1b[A"
CTRL_C = "\x03"
CTRL_D = "\x04"
CTRL_R = "\x12"
TAB = "\t"
ENTER = "\r"


class Screen:
    """A REPL in a pseudo-terminal."""

    def __init__(self, process: int, descriptor: int) -> None:
        self.process = process
        self.descriptor = descriptor
        self.seen = ""

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.descriptor, keys.encode())

    def paste(self, text: str) -> None:
        """Paste a text as a terminal does, and run it."""
        self.type(f"\x1b[200~{text}\x1b[201~{ENTER}")

    def wait_for(self, text: str, seconds: float = PATIENCE) -> str:
        """What the terminal got until a text appeared; both are forgotten."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"no {text!r} in {self.seen!r}"
            assert self._read(), f"the session ended before {text!r}: {self.seen!r}"
        seen, _, self.seen = self.seen.partition(text)
        return seen

    def leave(self) -> int:
        """Press Ctrl-D at the next prompt; gives the exit code."""
        self.wait_for(">>>")
        self.type(CTRL_D)
        end = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < end, f"the session goes on: {self.seen!r}"
        self.process, status = 0, os.waitpid(self.process, 0)[1]
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        """Take what the terminal got, for a moment; False at its end."""
        if not select.select([self.descriptor], [], [], 0.5)[0]:
            return True
        try:
            new = os.read(self.descriptor, 65536).decode("utf-8", "replace")
        except OSError:  # the other side was closed
            return False
        self.seen += new
        return bool(new)


Start = Callable[..., Screen]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a REPL that has come to its first prompt."""
    screens = []

    def starting(**environment: str) -> Screen:
        process, descriptor = pty.fork()
        if process == 0:
            os.environ.pop("GRADCLI_HISTORY", None)
            os.environ.update(
                PYTHONPATH=str(ROOT), XDG_STATE_HOME=str(tmp_path), TERM="xterm", NO_COLOR="1"
            )
            os.environ.update(environment)
            os.chdir(tmp_path)
            os.execv(sys.executable, [sys.executable, "-m", "gradcli"])
        screens.append(Screen(process, descriptor))
        screens[-1].wait_for(">>>")
        return screens[-1]

    yield starting
    for screen in screens:
        os.close(screen.descriptor)
        if screen.process:
            os.kill(screen.process, signal.SIGKILL)
            os.waitpid(screen.process, 0)


@pytest.fixture
def screen(start: Start) -> Screen:
    return start()


def test_entries_of_several_lines(screen: Screen, tmp_path: Path) -> None:
    """A function is typed, brought back whole with Up, changed, and run from its first line."""
    screen.type(f"def f(t):{ENTER}")
    screen.wait_for("...")
    screen.type(f"return t * 21{ENTER}{ENTER}f(2){ENTER}")
    screen.wait_for("42")
    screen.type(f"def{UP}")
    screen.wait_for("21")
    # To the last line, behind `21`: it becomes 210. Then up, and Enter in the first line.
    screen.type(f"0{UP}{ENTER}f(2){ENTER}")
    screen.wait_for("420")
    assert screen.leave() == 0
    history = tmp_path / "gradcli" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert len(history.read_text().splitlines()) == 4


def test_an_entry_that_goes_on(screen: Screen) -> None:
    """Enter inside a bracket goes on, and so does Escape Enter behind a whole statement."""
    screen.type(f"x = (1 +{ENTER}")
    screen.wait_for("...")
    screen.type(f"20){ENTER}x * 2{ENTER}")
    screen.wait_for("42")
    screen.type(f"y = 5\x1b{ENTER}z = 6{ENTER}(y, z){ENTER}")
    screen.wait_for("(5, 6)")


def test_pasting(screen: Screen) -> None:
    """Pasted statements run in order up to the first error; a paste of a session has no prompts."""
    screen.paste("a = 1\n\nif a:\n    a += 1\n\n    a += 40\n'sum %s' % a\n")
    screen.wait_for("'sum 42'")
    screen.paste("b = 1\nb = 2\nb = missing\nb = 3\n")
    screen.wait_for("error[E101]")
    screen.wait_for("entry 2:3:5")
    screen.wait_for("1 statement behind it did not run")
    screen.type(f"'b%s' % b{ENTER}")
    screen.wait_for("'b2'")
    screen.paste(">>> c = 10\n>>> for i in range(3):\n...     c += i\n...\n>>> 'c%s' % c")
    screen.wait_for("'c13'")


def test_a_large_paste(screen: Screen) -> None:
    lines = [f"x{number} = {number} + {number}" for number in range(2000)]
    screen.paste("\n".join(lines))
    screen.type(f"'last %s' % x1999{ENTER}")
    screen.wait_for("'last 3998'")


def test_completion(screen: Screen) -> None:
    """Tab fills in what there is only one of, and shows the rest."""
    screen.type(f"xenon = ones(2, requires_gr{TAB}True){ENTER}")
    screen.type(f"xen{TAB}.requires_grad_{TAB}(){ENTER}")
    screen.wait_for("tensor([1., 1.], requires_grad=True)")
    screen.type(f"xenon.sub{TAB}")
    screen.wait_for("(other, alpha=1)")
    screen.type(CTRL_C)
    screen.type(f".tim{TAB} of{TAB}{ENTER}.timer{ENTER}")
    screen.wait_for("off")
    # Tab in the margin of a line indents.
    screen.type(f"if True:{ENTER}{TAB}1{TAB}{CTRL_C}'don' + 'e'{ENTER}")
    screen.wait_for("'done'")


def test_history_search(start: Start) -> None:
    """Ctrl-R finds an entry of an earlier session, Up the last one that begins as typed."""
    first = start()
    first.type(f"alpha = 40{ENTER}beta = 2{ENTER}(alpha, beta){ENTER}")
    first.wait_for("(40, 2)")
    assert first.leave() == 0
    second = start()
    second.type(f"{CTRL_R}alp")
    second.wait_for("beta)")
    second.type(f"{CTRL_R}")
    second.wait_for("40")
    second.type(f"{ENTER}{ENTER}")
    second.wait_for(">>>")
    second.type(f"bet{UP}{ENTER}'sum %s' % (alpha + beta){ENTER}")
    second.wait_for("'sum 42'")


def test_interrupting(screen: Screen) -> None:
    """Ctrl-C drops what is typed and ends a loop, whose values stay."""
    screen.type(f"def f(x):{ENTER}    return 1 +{CTRL_C}")
    screen.type(f"i = 0{ENTER}")
    screen.type(f"while True: i += 1; i == 1 and print('spin' + 'ning'){ENTER}{ENTER}")
    screen.wait_for("spinning")
    screen.type(CTRL_C)
    screen.wait_for("interrupted at entry 2:1  ")
    screen.wait_for(" rounds and calls")
    screen.type(f"'i %s' % (i > 0){ENTER}")
    screen.wait_for("'i True'")
    screen.type(
        f"def slow(n):{ENTER}  for k in range(10**7):{ENTER}    k == 9 and print('ru','ns')"
    )
    screen.type(f"{ENTER}{ENTER}slow(2){ENTER}")
    screen.wait_for("ru ns")
    screen.type(CTRL_C)
    screen.wait_for("interrupted at entry 4:")
    screen.wait_for("% of 10,000,000 rounds")


def test_questions(screen: Screen) -> None:
    screen.type(f"x = ones(2, 3, requires_grad=True) * 2{ENTER}x?{ENTER}")
    screen.wait_for("MulBackward0  ones(2, 3, requires_grad=True) * 2")
    screen.wait_for("entry 1:1:1")
    screen.type(f"exp?{ENTER}")
    screen.wait_for("ExpBackward0")


def test_saving_and_reading(start: Start, tmp_path: Path) -> None:
    """What is saved makes the same values in a new session, failures left out."""
    first = start()
    first.type(f"x = torch.randn(3){ENTER}x * 2{ENTER}y = _ + nothing{ENTER}y = _ + 1{ENTER}")
    first.type(f"'y %.6f' % y.sum(){ENTER}")
    first.wait_for("'y ")
    shown = first.wait_for("'")
    first.type(f".save work.grad{ENTER}")
    first.wait_for("4 statements saved to work.grad, without 1 that failed")
    assert (tmp_path / "work.grad").read_text() == (
        "x = torch.randn(3)\n_ = x * 2\ny = _ + 1\n'y %.6f' % y.sum()\n"
    )
    second = start()
    second.type(f".read work.grad{ENTER}'y %.6f' % y.sum(){ENTER}")
    second.wait_for(f"'y {shown}'")


def test_a_dumb_terminal(start: Start) -> None:
    screen = start(TERM="dumb")
    screen.type("def f(t):\n")
    screen.wait_for("...")
    screen.type("  return t * 21\n\n")
    screen.wait_for(">>>")
    screen.type("f(2)\n")
    assert "\x1b" not in screen.wait_for("\r\n42")
    screen.type("while True: print('spin' + 'ning')\n\n")
    screen.wait_for("spinning")
    screen.type(CTRL_C)
    screen.wait_for("interrupted")
    assert screen.leave() == 0


def test_enter_runs_what_the_search_has_found(start: Start) -> None:
    first = start()
    first.type(f"'found %d' % (6 * 7){ENTER}")
    first.wait_for("'found 42'")
    assert first.leave() == 0
    second = start()
    second.type(f"{CTRL_R}found")
    second.wait_for("I-search backward: ")
    second.type(ENTER)
    second.wait_for("'found 42'")


def test_pastes_of_ipython(screen: Screen) -> None:
    screen.paste("In [1]: a = 6\n\nIn [2]: for i in range(2):\n   ...:     a = a * 2\n   ...: \n")
    screen.paste("In [3]: 'it is %s' % a\nOut[3]: 'it is nothing'\n")
    screen.wait_for("'it is 24'")


def test_words_as_people_type_them(screen: Screen) -> None:
    screen.type(f"x = tensor(2., requires_grad=True){ENTER}?x{ENTER}")
    screen.wait_for("requires_grad  True")
    screen.type(f"def twice(t):{ENTER}return t * 2{ENTER}{ENTER}twice??{ENTER}")
    screen.wait_for("signature")
    screen.wait_for("return t * 2")
    screen.type(f"help(exp){ENTER}")
    screen.wait_for("ExpBackward0")
    screen.type(f"help relu{ENTER}")
    screen.wait_for("ReluBackward0")


def test_expressions_at_a_step(screen: Screen) -> None:
    screen.type(f"x = tensor(3., requires_grad=True){ENTER}y = x * x{ENTER}.step y{ENTER}")
    screen.wait_for("step>")
    screen.type(f"x + 39{ENTER}")
    screen.wait_for("tensor(42.")
    screen.type(f"nothing.grad{ENTER}")
    screen.wait_for("E101")
    screen.type(f"n{ENTER}")
    screen.wait_for("x.grad = tensor(6.)")


def test_long_help_goes_to_a_pager(start: Start) -> None:
    screen = start(GRADCLI_PAGER="sed s/^/PAGED:/", LINES="24", COLUMNS="80")
    screen.type(f".help language{ENTER}")
    screen.wait_for("PAGED:The language")
    screen.wait_for(">>>")
    screen.type(f".help seed{ENTER}")
    assert "PAGED" not in screen.wait_for("The gradient that a pass starts from")
    screen.type(f".mode{ENTER}")
    screen.wait_for("text")
