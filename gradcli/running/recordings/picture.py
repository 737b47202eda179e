"""The picture of a recording's graph, made of its graph alone."""

from __future__ import annotations

from gradcli.running.arguments.files import write_text
from gradcli.running.arguments.options import PICTURES, Options
from gradcli.running.picture import format_of, picture_text
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run


def graph_picture(terminal: Terminal, options: Options, path: str, format: str) -> str:
    """The graph of a recording's program in one of the formats of pictures.

    Raises what the program raises without numbers: E506 where a shape depends on them.
    """
    assert options.recording is not None
    options.graph_alone = True
    try:
        run = Run(terminal, options, "all")
        run.muted = True
        with run.limited():
            statements = run.session.parse(options.recording.program, path)
            value = run.execute(statements, ())
            run.tell_replay()
            result = run.result(value, draws=True)
            with run.within_memory():
                return "" if result is None else picture_text(run, result, format)
    finally:
        options.graph_alone = False


def draw_graph(terminal: Terminal, options: Options, path: str) -> None:
    """Print the picture of a recording's graph, or write it to a file, as the options ask."""
    if options.format in PICTURES:
        terminal.write(graph_picture(terminal, options, path, options.format))
    if options.draws:
        assert options.output is not None
        format = format_of(options.output)
        write_text(options.output, graph_picture(terminal, options, path, format))
        terminal.wrote(options.output, "a picture")
