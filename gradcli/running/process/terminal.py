"""Standard output and error: the only place of gradcli that prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from gradcli.errors import GradcliError, Warned
from gradcli.show.style import Style, escaped

if TYPE_CHECKING:
    from gradcli.loops.hot_loop import HotLoop
    from gradcli.running.process.progress import Progress
    from gradcli.running.process.screen import ProgramScreen
    from gradcli.show.answer import Answer

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
            from gradcli.running.process.screen import (  # lazy: start-up: terminals alone
                ProgramScreen,
            )

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
        count = "a warning" if self.warnings == 1 else f"{self.warnings} warnings"
        self.usage_error(f"there was {count}, and --strict is given", None)
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

    def explain_loops(self, loops: Sequence[HotLoop]) -> None:
        """Say what became of the loops that ran often."""
        from gradcli.show.hot_loops import explained  # lazy: start-up: few ask for it

        self._report(explained(loops, self.error_style))

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
