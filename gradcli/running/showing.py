"""Shows the result of a run, and writes it to the file that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError
from gradcli.running.arguments.files import write_result
from gradcli.running.arguments.options import PICTURES
from gradcli.running.run import Run

if TYPE_CHECKING:
    from gradcli.recorded.result import Result


def report(run: Run, value: Any = None, *, compact: bool = False) -> bool:
    """Show the result of a run and write it to the file that was asked for.

    Args:
        value: the value of the last statement, which is the output if it is a tensor.

    Returns:
        Whether there was a tensor to report on.
    """
    from gradcli.running.report import (  # lazy: start-up: NumPy
        contents,
        note_passes,
        show,
        warn_of_nonfinite,
    )

    options, terminal = run.options, run.terminal
    with run.within_memory():
        result = _result(run, value)
        if result is not None:
            note_passes(terminal, run.session, options, result)
            output = result.name or "the output", result.output.array
            warn_of_nonfinite(terminal, result.gradients, output)
        if options.json and options.prints:
            terminal.write(_json(run, result, compact or options.format == "jsonl"))
        elif result is not None and options.format in PICTURES:
            terminal.write(_picture(run, result, options.format))
        elif result is not None and options.prints:
            show(terminal, run.session, options, result)
        if options.output is not None and not options.draws_shapes:
            write_result(
                options.output, result, lambda: _written(run, result), not options.no_header
            )
            terminal.wrote(options.output, contents(result, options.draws))
        return result is not None


def document(run: Run, value: Any = None) -> dict[str, Any]:
    """The result of a run as a JSON object."""
    with run.within_memory():
        return _document(run, run.result(value))


def _result(run: Run, value: Any) -> Result | None:
    """The result of a run; where a gradient has no beginning, the output is shown all the same."""
    from gradcli.running.report import find_output, show_output  # lazy: start-up: NumPy

    try:
        return run.result(value, run.options.draws or run.options.format in PICTURES)
    except GradcliError as error:
        if error.code == "E401" and run.options.format == "text":
            named = find_output(run.session, run.options, value)
            assert named is not None  # there is one whose gradient is not given
            with run.session.running():
                show_output(run.terminal, *named)
        raise


def _written(run: Run, result: Result | None) -> str:
    """What a file of text holds of the result: its graph as a picture, or its document."""
    if not run.options.draws:
        return _json(run, result, False)
    from gradcli.running.picture import format_of, no_graph  # lazy: start-up: few pictures

    if result is None:
        raise no_graph(None)
    return _picture(run, result, format_of(run.options.output or ""))


def _picture(run: Run, result: Result, format: str) -> str:
    from gradcli.running.picture import picture_text  # lazy: start-up: few pictures

    return picture_text(run, result, format)


def _json(run: Run, result: Result | None, compact: bool) -> str:
    from gradcli.show.json import text  # lazy: start-up: JSON

    return text(_document(run, result), compact=compact)


def _document(run: Run, result: Result | None) -> dict[str, Any]:
    from gradcli.show.json import document  # lazy: start-up: JSON

    options = run.options
    with run.session.running():
        values = None
        if result is not None and options.trace == "values":
            from gradcli.running.report import annotated_graph  # lazy: start-up: NumPy

            values = annotated_graph(run.session, result)
        steps = options.trace == "steps"
        return document(result, "".join(run.collected), steps=steps, values=values)
