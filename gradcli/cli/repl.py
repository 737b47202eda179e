"""The REPL: one statement after another, in a session that lasts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradcli import __version__
from gradcli.cli.options import Options
from gradcli.cli.running import Run
from gradcli.cli.terminal import Terminal
from gradcli.errors import GradcliError
from gradcli.language.parser import is_incomplete

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PROMPT = ">>> "
CONTINUATION = "... "
_LEAVE = frozenset({"exit", "quit", "exit()", "quit()"})


def repl(terminal: Terminal) -> int:
    """Read entries and run them until the end of input.

    An entry that fails or is interrupted leaves every earlier value as it was; `_` is the value of
    the last expression. Returns the exit code.
    """
    plain = os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    read = plain_reader() if plain else editor()
    run = Run(terminal, Options(), "graph")
    terminal.note(f"gradcli {__version__}; an expression shows its value, Ctrl-D leaves")
    entries = 0
    interrupted = False
    while True:
        # Ctrl-C may come at any moment, so all that takes time is inside.
        try:
            if interrupted:
                terminal.note("interrupted")
            interrupted = False
            text = read()
            if text.strip() in _LEAVE:
                return 0
            entries += 1
            interrupted = True
            run_entry(run, text, f"entry {entries}")
            interrupted = False
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0


def run_entry(run: Run, text: str, name: str) -> None:
    """Run the statements of one entry, the values of expressions shown, up to the first error."""
    from gradcli.language.text import display

    terminal = run.terminal
    try:
        for result in run.session.run(text, name):
            if result.value is not None:
                run.session.values["_"] = result.value
                with run.session.running(result.span):
                    terminal.write(f"{display(result.value)}\n")
    except GradcliError as error:
        terminal.error(error)
    terminal.flush()


# --- reading entries ----------------------------------------------------------------------------


def plain_reader() -> Callable[[], str]:
    """Reads entries from a terminal that can do nothing but lines; raises EOFError at the end."""

    def read() -> str:
        lines: list[str] = []
        while True:
            sys.stderr.write(CONTINUATION if lines else PROMPT)
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line and not lines:
                sys.stderr.write("\n")
                raise EOFError
            lines.append(line.rstrip("\n"))
            text = "\n".join(lines)
            if not line or not is_incomplete(text):
                return text

    return read


def editor() -> Callable[[], str]:
    """Reads entries with an editor of several lines and a history; raises EOFError on Ctrl-D."""
    from prompt_toolkit import PromptSession

    session: PromptSession[str] = PromptSession(
        message=PROMPT,
        multiline=True,
        prompt_continuation=CONTINUATION,
        history=_history(),
        key_bindings=_bindings(),
    )
    return session.prompt


def _bindings() -> KeyBindings:
    from prompt_toolkit.filters import has_focus
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus("DEFAULT_BUFFER"))
    def enter(event: KeyPressEvent) -> None:
        """Run a complete entry, wherever the cursor stands; go on with an incomplete one."""
        buffer = event.current_buffer
        if not is_incomplete(buffer.text):
            buffer.validate_and_handle()
            return
        opens_block = buffer.document.current_line_before_cursor.rstrip().endswith(":")
        buffer.newline(copy_margin=True)
        if opens_block:
            buffer.insert_text("    ")

    return bindings


def _history() -> History:
    """The entries of earlier sessions, in a file that only its owner can read; of this session
    alone where there can be no such file.
    """
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    path = history_path()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def history_path() -> str:
    """The history's file in the user's folder of states."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, "gradcli", "history")
