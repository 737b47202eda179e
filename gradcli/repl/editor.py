"""Entries read with an editor: several lines, history, completion, highlighting.

The history is a file of the user's, one entry on each line as a JSON string. Several sessions
append to it at once; each entry is written in one go, so that none breaks another.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from select import select
from threading import Thread
from typing import TYPE_CHECKING
from weakref import WeakSet

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.filters import (
    Condition,
    has_completions,
    has_focus,
    has_selection,
    is_searching,
)
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.search import accept_search

from gradcli.language.parser.parser import is_incomplete
from gradcli.repl.completion import EntryCompleter
from gradcli.repl.highlighting import COLORS, EntryLexer
from gradcli.repl.plain import CONTINUATION, PROMPT, pasted

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

    from gradcli.running.run import Run


_MOST_BYTES = 4_000_000
"""How much of the end of a long history is read."""


def history_path() -> str:
    """The history's file: in the user's folder of states, or where `GRADCLI_HISTORY` says; "" for
    none.
    """
    chosen = os.environ.get("GRADCLI_HISTORY")
    if chosen is not None:
        return os.path.expanduser(chosen)
    folder = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, "gradcli", "history")


class EntryHistory(History):
    """The entries of earlier sessions and of this one.

    Args:
        path: the file, "" to remember this session only.
        note: says that the file cannot be used; called once at most.
    """

    def __init__(self, path: str, note: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._note = note
        self._last = ""
        if path:
            try:
                self._prepare()
            except OSError as error:
                self._give_up(error)

    def load_history_strings(self) -> Iterable[str]:
        """The entries, the newest first."""
        if not self._path:
            return []
        try:
            with open(self._path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _MOST_BYTES, 0))
                lines = file.read().split(b"\n")
        except OSError as error:
            self._give_up(error)
            return []
        return [entry for line in reversed(lines) if (entry := _entry(line))]

    def append_string(self, string: str) -> None:
        """Remember an entry, unless it is the one before over again."""
        entry = string.rstrip()
        if entry and entry != self._last:
            self._last = entry
            super().append_string(entry)

    def store_string(self, string: str) -> None:
        """Add an entry to the file."""
        if not self._path:
            return
        line = json.dumps(string).encode() + b"\n"
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:
            self._give_up(error)

    def _prepare(self) -> None:
        """Make the file, which only its owner can read."""
        os.makedirs(os.path.dirname(self._path) or ".", mode=0o700, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            regular = stat.S_ISREG(os.fstat(file).st_mode)  # a device keeps the mode that it has
            if regular and hasattr(os, "fchmod"):
                os.fchmod(file, 0o600)
        finally:
            os.close(file)

    def _give_up(self, error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        self._note(f"the history lasts for this session only: {self._path}: {reason}")
        self._path = ""


def _entry(line: bytes) -> str:
    """The entry on a line, "" where it holds none: the first line that was read may be cut."""
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    return entry if isinstance(entry, str) else ""


_INDENT = "    "
_ENDS_BLOCK = re.compile(r"\s*(?:return|raise|break|continue|pass)\b")


def editor(run: Run) -> Callable[[], str]:
    """Reads an entry; raises EOFError on Ctrl-D, KeyboardInterrupt on Ctrl-C."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        # Not every terminal answers when it is asked where the cursor is.
        output.enable_cpr = False
    session: PromptSession[str] = PromptSession(
        message=[("class:prompt", PROMPT)],
        multiline=True,
        prompt_continuation=[("class:prompt", CONTINUATION)],
        history=EntryHistory(history_path(), run.terminal.note),
        enable_history_search=True,
        completer=EntryCompleter(run.session),
        complete_while_typing=False,
        lexer=EntryLexer(),
        style=COLORS,
        color_depth=None if run.terminal.style.color else ColorDepth.DEPTH_1_BIT,
        key_bindings=_BINDINGS,
        enable_suspend=True,
        enable_open_in_editor=True,
        tempfile_suffix=".grad",
        output=output,
    )
    # The catalogue takes longer to import than a person takes to notice; it is ready by the time
    # that the first entry is.
    warming = Thread(target=_warm, daemon=True)

    def read() -> str:
        text: str = session.prompt(pre_run=None if warming.ident else warming.start)
        warming.join()
        return text

    return read


def _warm() -> None:
    # Whatever fails here fails again, and is reported, where it is needed.
    with suppress(Exception):
        import gradcli.language.interpreter  # lazy: start-up: while a person types
        import gradcli.library.namespace  # noqa: F401  # lazy: start-up: likewise


# --- keys ---------------------------------------------------------------------------------------

_BINDINGS = KeyBindings()
_TYPING = has_focus("DEFAULT_BUFFER")


@Condition
def _in_margin() -> bool:
    line = get_app().current_buffer.document.current_line_before_cursor
    return not line.strip() and bool(get_app().current_buffer.text)


@_BINDINGS.add("enter", filter=_TYPING)
def _enter(event: KeyPressEvent) -> None:
    """Run a complete entry, wherever the cursor stands; go on with an incomplete one."""
    buffer = event.current_buffer
    if buffer.complete_state is not None and buffer.complete_state.current_completion:
        buffer.complete_state = None
    elif _is_complete(buffer) and not _goes_on(event):
        buffer.validate_and_handle()
    elif _has_own_margins(event):
        buffer.insert_text("\n")
    else:
        _new_line(buffer)


def _goes_on(event: KeyPressEvent) -> bool:
    """Whether an empty line parts a block that is being pasted without marks, rather than ending
    it: the lines that wait go on in it.
    """
    is_block = is_incomplete(event.current_buffer.text.rstrip())
    return is_block and _waiting(event) in (*_BLANKS, "\r", "\n")


_BLANKS = (" ", "\t")


def _waiting(event: KeyPressEvent) -> str:
    """The next character that has come already, as no person types them; "" for none."""
    queue, terminal = event.key_processor.input_queue, event.app.input
    # The editor reads a long paste in pieces.
    if not queue and os.name == "posix" and select([terminal.fileno()], [], [], 0)[0]:
        event.key_processor.feed_multiple(terminal.read_keys())
    return queue[0].data[:1] if queue else ""


_pasted: WeakSet[Buffer] = WeakSet()
"""The entries that are being pasted by a terminal that does not mark begin and end."""


def _has_own_margins(event: KeyPressEvent) -> bool:
    """Whether the lines of an entry come with their margins: keys wait, and one of the lines so far
    began with a blank.
    """
    waiting = _waiting(event)
    if waiting in _BLANKS:
        _pasted.add(event.current_buffer)
    elif not waiting or "\n" not in event.current_buffer.text:
        _pasted.discard(event.current_buffer)
    return event.current_buffer in _pasted


@_BINDINGS.add("enter", filter=is_searching)
def _run_search_result(event: KeyPressEvent) -> None:
    """Run the entry that the search has found."""
    accept_search()
    event.app.current_buffer.validate_and_handle()


@_BINDINGS.add("escape", "enter", filter=_TYPING)
def _continue(event: KeyPressEvent) -> None:
    """Go on in a new line, whatever the entry is."""
    _new_line(event.current_buffer)


@_BINDINGS.add("tab", filter=_TYPING & _in_margin & ~has_selection)
def _indent(event: KeyPressEvent) -> None:
    """Indent by a level; elsewhere Tab completes."""
    buffer = event.current_buffer
    width = len(buffer.document.current_line_before_cursor) % len(_INDENT)
    buffer.insert_text(_INDENT[width:])


@_BINDINGS.add("tab", filter=_TYPING & ~_in_margin & ~has_completions)
def _complete(event: KeyPressEvent) -> None:
    """Fill in what all candidates begin with, and show them where there are several.

    Right here rather than in a task of the editor's, since more keys may be waiting.
    """
    buffer = event.current_buffer
    document = buffer.document
    completions = list(
        buffer.completer.get_completions(document, CompleteEvent(completion_requested=True))
    )
    if len(completions) == 1:
        buffer.delete_before_cursor(-completions[0].start_position)
        buffer.insert_text(completions[0].text)
    elif completions:
        buffer.insert_text(get_common_complete_suffix(document, completions))
        buffer.start_completion()


@_BINDINGS.add("backspace", filter=_TYPING & _in_margin & ~has_selection)
def _dedent(event: KeyPressEvent) -> None:
    """Take back a level of indentation, or the character before the cursor."""
    buffer = event.current_buffer
    margin = buffer.document.current_line_before_cursor
    count = (len(margin) - 1) % len(_INDENT) + 1 if margin.isspace() else 1
    buffer.delete_before_cursor(count)


@_BINDINGS.add(Keys.BracketedPaste, filter=_TYPING)
def _paste(event: KeyPressEvent) -> None:
    """Insert a text as it is, without the prompts and the margin that it was copied with."""
    buffer = event.current_buffer
    text = event.data.replace("\r\n", "\n").replace("\r", "\n")
    buffer.insert_text(text if buffer.text.strip() else pasted(text))


def _is_complete(buffer: Buffer) -> bool:
    """Whether Enter runs the entry.

    A block that is being typed ends with an empty line. One that is there already - from the
    history, or with the cursor in the middle of it - needs none.
    """
    text = buffer.text
    if not is_incomplete(text):
        return True
    if is_incomplete(f"{text}\n"):
        return False
    return not buffer.document.is_cursor_at_the_end or text in buffer.history.get_strings()


def _new_line(buffer: Buffer) -> None:
    """Begin a line, indented as far as the one before asks for."""
    line = buffer.document.current_line_before_cursor
    margin = line[: len(line) - len(line.lstrip())]
    if line.rstrip().endswith(":"):
        margin += _INDENT
    elif _ENDS_BLOCK.match(line):
        margin = margin[: -len(_INDENT)]
    buffer.insert_text(f"\n{margin}")
