"""Plots of a program: shown on the terminal, or written to a file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from gradcli.cli.arguments.files import write_text
from gradcli.cli.process.converter import has_converter
from gradcli.errors import GradcliError
from gradcli.render.plots.svg import svg
from gradcli.render.plots.text import kind_of, plot_text, sparkline
from gradcli.render.style import Style

if TYPE_CHECKING:
    from gradcli.cli.program.run import Run
    from gradcli.language.events import Plotted
    from gradcli.language.library.drawing.document import Plot

WIDTH = 80
"""Columns of a plot where there is no terminal."""

WIDEST = 120

_SUFFIXES = (".svg", ".png")


def show_plot(run: Run, event: Plotted) -> None:
    """Print a plot, or write it to a file; raises E204 for a file of another kind, E603, E606.

    A window that a program opens has no place in a pipe: a note says so once.
    """
    terminal = run.terminal
    if event.file is not None:
        path = event.file
        if path.endswith(".png") and not has_converter():
            path = f"{path.removesuffix('.png')}.svg"
            terminal.note(f"nothing is here that makes a PNG, so {path} is written")
        write_plot(event.plot, path)
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
        from gradcli.language.library.drawing.pyplot import show  # lazy: command: few cells draw

        with run.session.running():
            show()


def write_plot(plot: Plot, path: str) -> None:
    """Write a plot as SVG, or as PNG where a converter is at hand."""
    if not path.endswith(_SUFFIXES):
        raise GradcliError(
            "E204",
            f"the suffix of {path!r} is none of {', '.join(_SUFFIXES)}",
            help="an .svg is shown by browsers and word processors",
        )
    write_text(path, svg(plot))


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
