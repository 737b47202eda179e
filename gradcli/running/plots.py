"""Plots of a program: shown on the terminal, or written to a file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from gradcli.errors import value_error
from gradcli.running.arguments.files import write_text
from gradcli.show.plots.svg import svg
from gradcli.show.plots.text import kind_of, plot_text, sparkline
from gradcli.show.style import Style

if TYPE_CHECKING:
    from gradcli.language.drawing import Plot
    from gradcli.language.events import Plotted
    from gradcli.running.process.terminal import Terminal
    from gradcli.running.run import Run

WIDTH = 80
"""Columns of a plot where there is no terminal."""

WIDEST = 120

_OTHERS = (".pdf", ".jpg", ".jpeg", ".eps", ".ps", ".tif", ".tiff", ".webp")
"""Suffixes of pictures that are not made here."""


def show_plot(run: Run, event: Plotted) -> None:
    """Print a plot, or write it to a file; raises E204 for a file of another kind, E603, E606.

    A window that a program opens has no place in a pipe: a note says so once.
    """
    terminal = run.terminal
    if event.file is not None:
        _save(terminal, event.plot, event.file)
        return
    if event.asked or terminal.style.width is not None:
        run.show(text_of(event.plot, terminal.style))
    elif not run.session.state.library.get("shown"):
        run.session.state.library["shown"] = True
        terminal.note("show() draws on a terminal only; plt.savefig('plot.svg') keeps the picture")


def show_open_figures(run: Run) -> None:
    """Show the figures that a cell drew and left open, as a notebook does behind the cell."""
    figures = run.session.state.library.get("figures")
    if figures is not None and figures.open:
        from gradcli.library.drawing.pyplot import show  # lazy: command: few cells draw

        with run.session.running():
            show()


def _save(terminal: Terminal, plot: Plot, path: str) -> None:
    """Write a plot to the file that a program names, as PNG where there is no suffix; where no such
    file can be made here, an SVG of that name, so that the program leaves its picture.
    """
    stem, suffix = os.path.splitext(path)
    suffix = suffix or ".png"
    if suffix not in (".svg", ".png", *_OTHERS):
        raise value_error(
            f"there is no format of pictures for the suffix of {path!r}",
            text=f"Format {suffix[1:]!r} is not supported",
            help=".svg is shown by browsers and word processors, .png is made of it",
        )
    if suffix in _OTHERS:
        suffix = ".svg"
        terminal.note(f"nothing is here that makes {path}, so {stem}.svg is written")
    write_text(f"{stem}{suffix}", svg(plot))


def text_of(plot: Plot, style: Style) -> str:
    """A plot as what the terminal can show."""
    width = min(style.width or WIDTH, WIDEST)
    return plot_text(plot, terminal_kind(), style, width)


def terminal_kind() -> str:
    """What standard output can show: braille, blocks or plain characters."""
    return kind_of(sys.stdout.encoding, os.environ.get("TERM", ""))


def sparkline_text(values: Any, style: Style) -> str:
    """Numbers as a line of bars, with the first and the last of them."""
    ends = f"  {values[0]:.4g} … {values[-1]:.4g}" if values.size else ""
    width = (style.width or WIDTH) - len(ends)
    return f"{sparkline(values, terminal_kind(), max(width, 8))}{ends}\n"
