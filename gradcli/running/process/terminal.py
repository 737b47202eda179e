"""Standard output and error: the only place of gradcli that prints.

What a program writes to a terminal may work there as bars and colours; nothing else commands it. A
program may return to the beginning of a line, erase, colour, and move within the lines that it has
written itself. Everything else that a terminal obeys (titles, the clipboard, queries, modes, other
character sets, marks of direction) is spelled out, whatever it is split into.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from gradcli.errors import GradcliError, Warned
from gradcli.show.style import Style, escaped

if TYPE_CHECKING:
    from gradcli.language.compiler.statements.short_loops import TimedLoop
    from gradcli.loops.hot_loop import HotLoop
    from gradcli.running.process.progress import Progress
    from gradcli.show.answer import Answer


# --- what programs write --------------------------------------------------------------------------


_SEQUENCE = r"\x1b\[([0-9;:]*)([A-Za-z])"
"""A control sequence as ECMA-48 has them, with its parameters and its final letter."""

_BEGUN = r"\x1b(\[[0-9;:]*)?$"
"""A sequence whose end may come with the next write."""

_LONGEST = 64
"""Characters of a sequence; a longer one is no sequence that is let through."""

_COLOURS_BACK = "\x1b[0m"

_COLUMNS = "CDG"
"""The final letters that move within a line."""

_ERASES = {"K": ("", "0", "1", "2"), "J": ("", "0")}
"""The final letters that erase, with the parameters that reach none but the program's own lines."""


class ProgramScreen:
    """The part of a terminal that a program has written to; shared by both of its streams.

    Attributes:
        row: the line that the cursor is on, counted from the program's first one.
        lowest: the lowest line that it has written to.
        is_open: whether the cursor stands behind text on its line.
        is_coloured: whether the program changed colours and did not change them back.
    """

    def __init__(self) -> None:
        self._begun: dict[str, str] = {}
        self._begin()

    def _begin(self) -> None:
        self.row = self.lowest = 0
        self.is_open = self.is_coloured = False
        self._begun.clear()

    def passed(self, text: str, stream: str) -> str:
        """What of a text goes to the terminal as it is, the rest spelled out.

        Args:
            stream: which stream it is written to; a sequence is split over writes to one.
        """
        if text.isascii() and text.isprintable() and not self._begun:
            self.is_open = self.is_open or bool(text)
            return text
        text = self._begun.pop(stream, "") + text
        parts = []
        at = 0
        while at < len(text):
            escape = text.find("\x1b", at)
            if escape < 0:
                parts.append(self._plain(text[at:]))
                break
            parts.append(self._plain(text[at:escape]))
            sequence = re.compile(_SEQUENCE).match(text, escape)
            if sequence is not None and sequence.end() - escape <= _LONGEST:
                allowed = self._obeyed(sequence[1], sequence[2])
                parts.append(escaped(sequence[0]) if allowed is None else allowed)
                at = sequence.end()
            elif len(text) - escape < _LONGEST and re.compile(_BEGUN).match(text, escape):
                self._begun[stream] = text[escape:]
                break
            else:
                parts.append(escaped("\x1b"))
                at = escape + 1
        return "".join(parts)

    def left(self) -> str:
        """What must come before text of gradcli's own: the rest of begun sequences, the colours put
        back, and a new line where the program has not ended its own. The program's lines begin anew
        behind it.
        """
        begun = "".join(map(escaped, self._begun.values()))
        lower = f"\x1b[{self.lowest - self.row}B" if self.lowest > self.row else ""
        ended = "\n" if self.is_open or lower or begun else ""
        text = f"{begun}{_COLOURS_BACK if self.is_coloured else ''}{lower}{ended}"
        self._begin()
        return text

    def _plain(self, text: str) -> str:
        """A text without sequences, its lines counted; carriage returns and backspaces move."""
        if not text:
            return ""
        count = text.count("\n")
        self.row += count
        self.lowest = max(self.lowest, self.row)
        behind = text.rpartition("\n")[2]
        self.is_open = bool(behind) or (self.is_open and not count)
        parts = re.split(r"([\r\b])", text)
        return "".join(part if part in ("\r", "\b") else escaped(part) for part in parts)

    def _obeyed(self, parameters: str, final: str) -> str | None:
        """A sequence that is let through, its movement kept to the program's lines; None for one
        that is not.
        """
        if final == "m":
            self.is_coloured = parameters.strip("0;") != ""
            return f"\x1b[{parameters}m"
        if final in _ERASES:
            return f"\x1b[{parameters}{final}" if parameters in _ERASES[final] else None
        if not re.fullmatch(r"[0-9]{0,4}", parameters):
            return None
        if final in _COLUMNS:
            return f"\x1b[{parameters}{final}"
        wanted = max(int(parameters or 1), 1)
        if final in "AF":
            count = min(wanted, self.row)
            self.row -= count
        elif final in "BE":
            count = min(wanted, self.lowest - self.row)
            self.row += count
        else:
            return None
        return f"\x1b[{count}{final}" if count else ""


# --- streams --------------------------------------------------------------------------------------


ERROR_FORMATS = ("full", "short", "json")
"""The forms of errors, warnings and notes."""


class Terminal:
    """Where a run shows things: data on standard output, everything else on standard error.

    Args:
        color: "always", "never" or "auto": where the stream is a terminal, unless `NO_COLOR` or
            `FORCE_COLOR` say otherwise.
        error_format: how errors, warnings and notes are written: "full", "short" or "json".

    Attributes:
        warnings: how many warnings there were, shown or not.
        progress: the line that says how far a run has come, None where there is none.
    """

    progress: Progress | None = None
    _screen: ProgramScreen | None = None
    _is_screen: Mapping[str, bool] = {"out": False, "err": False}

    def __init__(
        self,
        color: str = "auto",
        quiet: bool = False,
        error_format: str = "full",
        strict: bool = False,
    ) -> None:
        for stream in (sys.stdout, sys.stderr):
            # A program may print what the locale's encoding cannot hold.
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None and stream.errors != "backslashreplace":
                with suppress(OSError):  # it writes what the stream holds, onto a full disk perhaps
                    reconfigure(errors="backslashreplace")
        self.style = style_of(sys.stdout, color)
        self.error_style = style_of(sys.stderr, color)
        self.quiet = quiet
        self.strict = strict
        self.warnings = 0
        self._form = error_format
        self._is_screen = {"out": sys.stdout.isatty(), "err": sys.stderr.isatty()}

    def write(self, text: str) -> None:
        """Put text of gradcli's own on standard output; raises E603 where that cannot take it."""
        self._write(self._behind_program("out") + text)

    def print(self, text: str, obeys: bool) -> None:
        """Put what a program printed on standard output; raises E603 where that cannot take it.

        Args:
            obeys: whether a terminal obeys the sequences in it that move within the program's own
                lines, and its colours.
        """
        self._write(self._of_program(text, "out", obeys))

    def _of_program(self, text: str, stream: str, obeys: bool) -> str:
        """A program's text as it goes to a stream: to a terminal without what would command it."""
        if not self._is_screen[stream]:
            return text
        if not obeys:
            return escaped(text)
        if self._screen is None:
            self._screen = ProgramScreen()
        return self._screen.passed(text, stream)

    def _behind_program(self, stream: str) -> str:
        """What comes between a program's text and gradcli's own on a terminal."""
        return self._screen.left() if self._screen is not None and self._is_screen[stream] else ""

    def _write(self, text: str) -> None:
        """Put text on standard output as it is."""
        if self.progress is not None:
            self.progress.make_room(text)
        try:
            sys.stdout.write(text)
        except BrokenPipeError:
            raise  # whoever listened has gone: the run ends quietly
        except OSError as error:
            raise output_lost(error) from error

    def page(self, text: str) -> None:
        """Show a text that people read from its beginning: in a pager where it is long."""
        if sys.stdout.isatty():
            from gradcli.running.process.programs import paged  # lazy: start-up: terminals alone

            self.flush()
            if self.progress is not None:
                self.progress.make_room(" ")  # as behind a line without an end: it stays away
            shown = paged(text)
            if self.progress is not None:
                self.progress.make_room("\n")
            if shown:
                return
        self.write(text)

    def answer(self, answer: Answer, format: str) -> None:
        """Show the answer to a question in a format."""
        self.write(answer.shown(format, self.style))

    def flush(self) -> None:
        """Flush standard output; raises E603 where that cannot take what was written."""
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_lost(error) from error

    def error(self, error: GradcliError) -> None:
        """Report an error, after all that came before it; the end of a program that asked for it is
        none, but for the words that it leaves with.
        """
        if error.raises == "SystemExit":
            if error.message:
                self._report(error.message)
            return
        self._report(self._forms().diagnostic(error, self.error_style))
        if error.code == "E901" and os.environ.get("GRADCLI_DEBUG"):
            import traceback

            self._report("".join(traceback.format_exception(error)))

    def usage_error(self, message: str, help: str | None = None) -> None:
        """Report a mistake in the words of the command line."""
        self._report(self._forms().usage_error(message, help, self.error_style))

    def warning(self, warned: Warned) -> None:
        """Report what is likely a mistake in the program."""
        self.warnings += 1
        if not self.quiet:
            self._report(self._forms().warning(warned, self.error_style))

    def checked(self, code: int) -> int:
        """The exit code of a run: under `--strict` 1 where all went well but for warnings."""
        if code or not self.warnings or not self.strict:
            return code
        were = "was a warning" if self.warnings == 1 else f"were {self.warnings} warnings"
        self.usage_error(f"there {were}, and --strict is given", None)
        return 1

    def note(self, text: str) -> None:
        """Say something beside the data."""
        if not self.quiet:
            self._report(self._forms().note(text, self.error_style))

    def wrote(self, path: str, contents: str) -> None:
        """Say of a file that the result is in it, and how much it holds."""
        if self.quiet:
            return
        if self._form == "json":
            self.note(f"wrote {path}: {contents}")
        else:
            self._report(self.error_style.paint(escaped(f"wrote {path}: {contents}"), "quiet"))

    def explain_loops(self, loops: Sequence[HotLoop | TimedLoop]) -> None:
        """Say what became of the loops that ran often."""
        from gradcli.show.diagnostics.human import loops_explained  # lazy: start-up: few ask for it

        self._report(loops_explained(loops, self.error_style))

    def pass_on(self, text: str) -> None:
        """Put on standard error what another process would have put there."""
        if text:
            self._report(text.removesuffix("\n"))

    def report(self, text: str, obeys: bool) -> None:
        """Put on standard error what a program put there, after all that it printed; `obeys` as
        for `print`.
        """
        self._put(self._of_program(text, "err", obeys))

    def _forms(self) -> Any:
        """The module that writes diagnostics in the form asked for."""
        if self._form == "short":
            from gradcli.show.diagnostics import short  # lazy: start-up: for messages

            return short
        if self._form == "json":
            from gradcli.show.diagnostics import json  # lazy: start-up: for messages

            return json
        from gradcli.show.diagnostics import human  # lazy: start-up: for messages

        return human

    def _report(self, text: str) -> None:
        self._put(f"{self._behind_program('err')}{text}\n")

    def _put(self, text: str) -> None:
        """Put text on standard error as it is, after all that was printed."""
        self.flush()
        if self.progress is not None:
            self.progress.make_room(text)
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            return  # nobody listens


def error_format_of(words: list[str]) -> str:
    """The form that a command line asks for, also one that could not be read."""
    chosen = "full"
    for word, behind in zip(words, [*words[1:], ""], strict=False):
        if word == "--":
            break
        name, _, value = word.partition("=")
        if name == "--error-format":
            chosen = value or behind
    return chosen if chosen in ERROR_FORMATS else "full"


def style_of(stream: TextIO, color: str) -> Style:
    """The style of text for a stream: colours, and the width of a terminal."""
    try:
        is_terminal = stream.isatty()
        width = os.get_terminal_size(stream.fileno()).columns if is_terminal else None
    except (OSError, ValueError):
        is_terminal, width = False, None
    if color == "auto":
        if os.environ.get("NO_COLOR"):
            colored = False
        elif os.environ.get("FORCE_COLOR"):
            colored = True
        else:
            colored = is_terminal and os.environ.get("TERM") != "dumb"
    else:
        colored = color == "always"
    return Style(colored, width or None)


def output_lost(error: OSError) -> GradcliError:
    """The error of a standard output that cannot take what is written: a full disk, say."""
    return GradcliError("E603", f"standard output cannot be written: {error.strerror}")
