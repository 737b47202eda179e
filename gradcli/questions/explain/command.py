"""`gradcli explain`: the chain rule at work, edge by edge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gradcli.language.rounds import hear_passes
from gradcli.questions.answer import show_explanation, show_graph, show_run, show_run_of
from gradcli.running.arguments.click_options import with_answer_file, with_picture, with_program
from gradcli.running.arguments.options import DRAWN, PICTURES, TABLES
from gradcli.running.arguments.words import UsageError
from gradcli.running.source import Asked, asked_of

if TYPE_CHECKING:
    from gradcli.recorded.result import Result
    from gradcli.running.run import Run
    from gradcli.show.answer import Answer


@click.command("explain")
@click.option("--element", metavar="I,J", help="The element of large gradients to work out.")
@click.option("--ties", is_flag=True, help="List the elements on a kink or a tie.")
@click.option("--paths", metavar="NAME", help="List the paths to a leaf, each with its share.")
@click.option(
    "--saved",
    is_flag=True,
    help="List what the nodes saved, and when it is freed; in a picture, at each node.",
)
@click.option(
    "--flow",
    "as_flow",
    is_flag=True,
    help="Print a table instead: the norm of each parameter's gradient, the gain of its layer,"
    " zeros and NaN.",
)
@click.option(
    "--derivatives",
    type=click.Choice(["jacobian", "rows", "hessian"]),
    help="Print tables instead: of each element of the output by each of the inputs, of each row"
    " (sample) of the output, or second derivatives.",
)
@click.option(
    "--layout",
    type=click.Choice(["numerator", "denominator"]),
    default="numerator",
    help="What the rows of these tables are: elements of the output, or of the input.",
)
@click.option(
    "--ir",
    "as_ir",
    is_flag=True,
    help="Print the trace instead: what ran, forward and backward, one instruction a line.",
)
@click.option(
    "--format",
    type=click.Choice(["text", "json", *TABLES, *PICTURES]),
    help="Print the ledger as text, as JSON, as a table for Markdown or LaTeX, the graph for"
    " Mermaid or Graphviz or as a picture in SVG, or a page that steps through both passes.",
)
@click.option("--json", is_flag=True, help="Short for --format json.")
@with_answer_file(".txt", ".json", ".md", ".tex", *DRAWN)
@with_picture
@with_program
def command(
    words: Sequence[str],
    file: str | None,
    element: str | None,
    ties: bool,
    paths: str | None,
    saved: bool,
    as_flow: bool,
    derivatives: str | None,
    layout: str,
    as_ir: bool,
    **settings: Any,
) -> int:
    """Show the chain rule at work, edge by edge.

    With --ir, show the trace: each op of the run and each step of its backward pass as
    `%4: f32[2,3] = mul(%1, %3)`, with its source, its place, and its effects: what it reads out of
    tensors, writes, draws, checks, and which leaves get a gradient.
    """
    asked = asked_of("explain", words, file, settings)
    index = read_element(element)
    options = asked.options
    others = ties or paths or saved or element or options.format in (*PICTURES, *TABLES)
    tables = partial(derivative_tables, kind=derivatives or "", layout=layout)
    for prints, is_asked, answer in (
        ("--ir prints the trace", as_ir, trace),
        ("--flow prints a table", as_flow, flow),
        ("--derivatives prints tables", derivatives is not None, tables),
    ):
        if is_asked and others:
            raise UsageError(f"{prints}, and takes no other part of explain")
        if is_asked:
            return asked.terminal.checked(answer(asked))
    if (options.fold or options.expand) and options.format not in PICTURES:
        raise UsageError("--fold and --expand are for pictures: --format svg, -o graph.svg")
    options.saved = saved
    return asked.terminal.checked(explain(asked, index, ties, paths, saved))


def explain(
    asked: Asked,
    element: tuple[int, ...] | None = None,
    ties: bool = False,
    paths: str | None = None,
    saved: bool = False,
) -> int:
    """Show the ledger of a program and what else of it is asked for, or its graph as a picture."""
    format = asked.options.format

    def show(run: Run, result: Result) -> Answer:
        from gradcli.questions.explain.answer import (  # lazy: command: after the run
            Extras,
            explanation,
        )

        answer = explanation(run, result, Extras(element, ties, paths, saved))
        if format in TABLES:
            from gradcli.questions.explain.answer import table_of  # lazy: command: after the run

            answer.text = lambda _: table_of(run, result, format)
        if format in PICTURES:
            from gradcli.running.picture import picture_text  # lazy: command: after the run

            drawn = picture_text(run, result, format)
            answer.text = lambda _: drawn
        return answer

    recording = asked.options.recording
    if recording is not None:
        has_numbers = recording.has_data and recording.is_small
        if asked.options.draws_shapes or (saved and not has_numbers):
            return show_graph(asked, show)
    return show_explanation(asked, show, _without_step)


def _without_step(run: Run) -> None:
    """Leave out the step of a recording's optimizer, which writes over what the graph saved."""
    if run.replay is not None:
        run.replay.leave_out_steps()
        run.replay.share_memory(run.session.recorder)


def flow(asked: Asked) -> int:
    """Show the flow of gradients through the modules of a program."""
    if asked.options.watched is not None:
        from gradcli.questions.explain.flow import answer_of  # lazy: command: its body

        asked.terminal.answer(answer_of(asked.options.watched), asked.options.format)
        return 0
    from gradcli.questions.explain.answer import flow_of  # lazy: command: its body
    from gradcli.questions.explain.flow import measured  # lazy: command: its body

    def prepare(run: Run) -> None:
        with run.session.running():
            run.session.recorder.copied = measured
        hear_passes(run.session.interpreter)
        if run.replay is not None:
            run.replay.let_go()
            run.replay.leave_out_steps()

    return show_explanation(asked, flow_of, prepare, "steps", of_last_rounds=True)


def derivative_tables(asked: Asked, kind: str, layout: str) -> int:
    """Show the derivatives of all elements of a program's output as labelled tables."""
    from gradcli.questions.explain.answer import derivatives_of  # lazy: command: its body

    return show_run_of(asked, lambda run, value: derivatives_of(run, value, kind, layout))


def trace(asked: Asked) -> int:
    """Show the trace of a program and of its backward pass."""
    from gradcli.questions.explain.answer import trace_of  # lazy: command: its body

    return show_run(asked, trace_of)


def read_element(text: str | None) -> tuple[int, ...] | None:
    """The index that `--element 0,1` names; raises a usage error for another text."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.replace("[", "").replace("]", "").split(","))
    except ValueError:
        raise UsageError(f"--element takes an index such as 0,1, not {text!r}") from None
