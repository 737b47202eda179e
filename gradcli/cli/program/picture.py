"""The backward graph of a run as a picture, printed or in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.explain.ledger.annotated_graph import AnnotatedGraph
from gradcli.explain.ledger.ledger import ledger
from gradcli.explain.result import Result
from gradcli.render.graph.dot import dot
from gradcli.render.graph.mermaid import mermaid
from gradcli.render.page.document import page_document
from gradcli.render.page.page import page
from gradcli.render.pictures.picture import picture_of
from gradcli.render.pictures.svg import LaidOut, laid_out, svg

if TYPE_CHECKING:
    from gradcli.cli.arguments.options import Options
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
    picture = drawn(annotated, options)
    if format == "svg":
        return svg(picture)
    with session.running():
        rows = ledger(result.graph, result.events)
        return page(page_document(result, rows, annotated, picture.picture), svg(picture))


def format_of(path: str) -> str:
    """The format that a file of `DRAWN` holds; a PNG is made of SVG."""
    return "html" if path.endswith(".html") else "svg"


def annotated_graph(session: Session, result: Result) -> AnnotatedGraph:
    """The graph of a result with all numbers that the run recorded."""
    recorder = session.recorder
    calls = recorder.made if isinstance(recorder, TraceRecorder) else None
    named = [value for value in session.values.values() if type(value) is Tensor]
    return AnnotatedGraph(result.graph, result.events, calls, named)


def drawn(annotated: AnnotatedGraph, options: Options) -> LaidOut:
    """The picture laid out, folded as the options ask; raises E602 where it is too large.

    Unless everything is to be expanded, modules are folded from the innermost outwards until the
    picture can be read as a whole.
    """
    folded = frozenset(tuple(path.split(".")) for path in options.fold)
    picture = picture_of(annotated, folded, options.expand)
    while True:
        small = len(picture.boxes) <= MOST_BOXES
        depth = max(len(box.module) for box in picture.boxes)
        found = laid_out(picture) if small else None
        if found is not None and (found.fits or options.expand or not depth):
            return found
        if options.expand or not depth:
            raise GradcliError(
                "E602",
                f"the picture has {len(picture.boxes):,} boxes, and {MOST_BOXES:,} is the most",
                help="leave out --expand" if options.expand else "fold modules: --fold NAME",
            )
        folded |= {box.module for box in picture.boxes if len(box.module) == depth}
        picture = picture_of(annotated, folded)
