"""The backward graph of a run as a picture, printed or in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import Tensor
from gradcli.cli.arguments.files import write_text
from gradcli.cli.arguments.options import DRAWN
from gradcli.cli.program.replay import explained
from gradcli.errors import GradcliError
from gradcli.explain.ledger.annotated_graph import AnnotatedGraph
from gradcli.explain.result import Result
from gradcli.render.graph.dot import dot
from gradcli.render.graph.mermaid import mermaid
from gradcli.render.pictures.picture import Picture, picture_of
from gradcli.render.pictures.svg import svg

if TYPE_CHECKING:
    from gradcli.autograd.recording.recorder import Event
    from gradcli.cli.arguments.options import Options
    from gradcli.cli.program.run import Run
    from gradcli.session import Session

_TEXTUAL: dict[str, Callable[[AnnotatedGraph], str]] = {
    "dot": lambda annotated: f"{dot(annotated)}\n",
    "mermaid": lambda annotated: f"{mermaid(annotated)}\n",
}

MOST_BOXES = 3_000
"""A picture of more boxes takes long to lay out, and nobody sees anything in it."""


def picture_text(session: Session, options: Options, result: Result, format: str) -> str:
    """The backward graph with values and gradients, in one of `PICTURES`.

    Raises E602 where the picture is too large.
    """
    annotated = annotated_graph(session, result)
    if format in _TEXTUAL:
        return _TEXTUAL[format](annotated)
    return svg(drawn(annotated, options))


def annotated_graph(session: Session, result: Result) -> AnnotatedGraph:
    """The graph of a result with all numbers that the run recorded."""
    recorder = session.recorder
    calls = recorder.made if isinstance(recorder, TraceRecorder) else None
    named = [value for value in session.values.values() if type(value) is Tensor]
    return AnnotatedGraph(result.graph, result.events, calls, named)


def drawn(annotated: AnnotatedGraph, options: Options) -> Picture:
    """The picture, folded as the options ask; raises E602 where it is too large."""
    folded = frozenset(tuple(path.split(".")) for path in options.fold)
    picture = picture_of(annotated, {}, folded, options.expand)
    if len(picture.boxes) > MOST_BOXES:
        raise GradcliError(
            "E602",
            f"the picture has {len(picture.boxes):,} boxes, and {MOST_BOXES:,} is the most",
            help="leave out --expand" if options.expand else "fold modules: --fold NAME",
        )
    return picture


def write_picture(run: Run, tensor: Tensor, path: str) -> None:
    """Draw the graph of a tensor in a file, with the gradients that `tensor.backward()` would give.

    Raises:
        GradcliError: E204 where the suffix names no picture, E603 where the file cannot be written,
            E606 where files are out of bounds.
    """
    if not path.endswith(DRAWN):
        raise GradcliError("E204", f"the suffix of {path!r} is none of {', '.join(DRAWN)}")
    run.options.limits.check_file(path)

    def drawing(run: Run, tensor: Tensor, events: Sequence[Event]) -> str:
        result = Result(tensor.name, tensor, None, (), run.session.graph(tensor), events)
        return picture_text(run.session, run.options, result, "svg")

    scalar = tensor.array.size == 1
    write_text(path, explained(run, tensor, drawing) if scalar else drawing(run, tensor, ()))
