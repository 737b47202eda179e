"""Standard output and error: the only place of gradcli that prints."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from gradcli.errors import GradcliError, Span
from gradcli.render.style import Style

if TYPE_CHECKING:
    from gradcli.language.events import Warned


class Terminal:
    """Where a run shows things: data on standard output, everything else on standard error.

    Args:
        color: "always", "never" or "auto": where the stream is a terminal, unless `NO_COLOR` or
            `FORCE_COLOR` say otherwise.
        quiet: whether warnings and notes are kept back.
    """

    __slots__ = ("error_style", "quiet", "style")

    def __init__(self, color: str = "auto", quiet: bool = False) -> None:
        for stream in (sys.stdout, sys.stderr):
            # A program may print what the locale's encoding cannot hold.
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        self.style = style_of(sys.stdout, color)
        self.error_style = style_of(sys.stderr, color)
        self.quiet = quiet

    def write(self, text: str) -> None:
        """Put text on standard output; raises E603 where that cannot take it."""
        try:
            sys.stdout.write(text)
        except BrokenPipeError:
            raise  # whoever listened has gone: the run ends quietly
        except OSError as error:
            raise output_lost(error) from error

    def flush(self) -> None:
        """See to it that what was written is on its way."""
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_lost(error) from error

    def error(self, error: GradcliError) -> None:
        """Report an error, after all that came before it."""
        from gradcli.render.diagnostics import diagnostic

        self._report(diagnostic(error, self.error_style))
        if error.code == "E901" and os.environ.get("GRADCLI_DEBUG"):
            import traceback

            self._report("".join(traceback.format_exception(error)))

    def usage_error(self, message: str, help: str | None = None) -> None:
        """Report a mistake in the words of the command line."""
        from gradcli.render.diagnostics import usage_error

        self._report(usage_error(message, help, self.error_style))

    def warning(self, message: str, span: Span | None = None, help: str | None = None) -> None:
        """Report what is likely a slip."""
        from gradcli.render.diagnostics import warning

        if not self.quiet:
            self._report(warning(message, span, help, self.error_style))

    def warned(self, event: Warned) -> None:
        """Report what a program's run noticed."""
        self.warning(event.message, event.span, event.help)

    def note(self, text: str) -> None:
        """Say something beside the data."""
        if not self.quiet:
            self._report(f"{self.error_style.paint('note', 'note')}: {text}")

    def _report(self, text: str) -> None:
        self.flush()
        try:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        except OSError:
            return  # nobody listens


def style_of(stream: TextIO, color: str) -> Style:
    """How text for a stream is dressed."""
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
