"""The backward graph of a run, or of a recording, as a picture, printed or in a file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NoReturn

from gradcli.autograd import naming
from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.errors import GradcliError
from gradcli.language.hints.spelling import closest
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.recorded.ledger import ledger
from gradcli.recorded.result import Result
from gradcli.running.arguments.files import write_text
from gradcli.running.arguments.options import PICTURES, Options
from gradcli.running.arguments.words import UsageError, unknown
from gradcli.running.other_values import reasons_to_stay
from gradcli.running.process.terminal import Terminal
from gradcli.running.report import annotated_graph, module_titles
from gradcli.running.run import Run
from gradcli.show.graph.labels import dot, mermaid
from gradcli.show.page.page import Times, comparisons, page, page_document, times_of
from gradcli.show.pictures.picture import Path, Picture, module_name, part_counts, picture_of
from gradcli.show.pictures.svg import LaidOut, laid_out, svg

if TYPE_CHECKING:
    from gradcli.running.arguments.options import Options
    from gradcli.running.run import Run
    from gradcli.session import Session


_TEXTUAL: dict[str, Callable[[AnnotatedGraph], str]] = {
    "dot": lambda annotated: f"{dot(annotated)}\n",
    "mermaid": lambda annotated: f"{mermaid(annotated)}\n",
}

MOST_OPENED = 12
"""Folded modules of which it is tried whether they can be opened."""

_TOLD = 5
"""Modules that a message names, of those that could have been meant."""

MOST_BOXES = 3_000
"""A picture of more boxes takes long to lay out, and nobody sees anything in it."""


def picture_text(run: Run, result: Result, format: str) -> str:
    """The backward graph with values and gradients, in one of `PICTURES`; of a recording's graph
    alone with the shapes.

    Raises:
        GradcliError: E402 where the output has no graph, E602 where the picture is too large.
    """
    session, options = run.session, run.options
    if result.graph.root is None:
        raise no_graph(result)
    recorder = session.recorder
    with session.running():
        titles = module_titles()
    compared = comparisons(recorder.calls if isinstance(recorder, TraceRecorder) else ())
    annotated = annotated_graph(session, result, not options.graph_alone, titles, compared)
    if format in _TEXTUAL:
        return _TEXTUAL[format](annotated)
    if format == "svg":
        return svg(drawn(annotated, options))
    asked = _asked(annotated, options)
    picture = _unfolded(annotated, options)
    reasons = reasons_to_stay(run, result)
    with session.running():
        rows = ledger(result.graph, result.events)
        closed = [module_name(path) for path in asked]
        return page(
            page_document(
                result,
                rows,
                annotated,
                picture,
                reasons,
                _times(session, result),
                closed,
                bool(options.expand),
            )
        )


def _times(session: Session, result: Result) -> Times:
    """How long modules took; empty where that was not measured, and where the environment asks for
    pages that are the same whenever they are made.
    """
    watch = session.stopwatch
    if watch is None or "SOURCE_DATE_EPOCH" in os.environ:
        return Times()
    paths = {number: path for number, (path, _) in naming.module_paths().items()}
    return times_of(result.graph, watch, session.recorder.modules, paths)


def _unfolded(annotated: AnnotatedGraph, options: Options) -> Picture:
    """The picture of a page, whose modules open and close there; the innermost and largest ones are
    folded for good where there would be more than `MOST_BOXES` boxes.

    Raises:
        GradcliError: E602 where it is too large all the same.
    """
    folded: frozenset[Path] = frozenset()
    waiting = _modules(part_counts(annotated, folded, options.expand))
    while part_counts(annotated, folded, options.expand)[()] > MOST_BOXES:
        if not waiting:
            _refused(annotated, options, folded)
        folded |= {waiting.pop(0)}
    return picture_of(annotated, folded, options.expand, options.saved)


def no_graph(result: Result | None) -> GradcliError:
    """The error of a picture of nothing."""
    if result is None:
        return GradcliError("E402", "the program computes no tensor to draw the graph of")
    return GradcliError(
        "E402",
        f"{result.name or 'the output'} does not require grad, so there is no graph to draw",
        help="--of NAME draws the graph of another tensor",
    )


def format_of(path: str) -> str:
    """The format that a file of `DRAWN` holds; a PNG is made of SVG."""
    return "html" if path.endswith(".html") else "svg"


def drawn(annotated: AnnotatedGraph, options: Options) -> LaidOut:
    """The picture laid out, folded as the options ask.

    Raises:
        GradcliError: E602 where it is too large.
        UsageError: a module that is to be folded is not in the graph.

    Unless everything is to be expanded, equal modules side by side are one box, and modules are
    folded, the innermost and largest first, until the picture can be read as a whole; then those
    are opened again that need not be folded.
    """
    asked = _asked(annotated, options)
    if not options.expand:
        asked |= picture_of(annotated).modules.groups

    def drawn(folded: Iterable[Path]) -> LaidOut | None:
        """The picture where it has few enough boxes to be laid out."""
        if part_counts(annotated, asked | {*folded}, options.expand)[()] > MOST_BOXES:
            return None
        picture = picture_of(annotated, asked | {*folded}, options.expand, options.saved)
        return laid_out(picture, options.aspect) if len(picture.boxes) <= MOST_BOXES else None

    laid = drawn(())
    if options.expand or (laid is not None and laid.fits):
        return laid or _refused(annotated, options, asked)
    modules = _modules(part_counts(annotated, asked))
    # The fewest modules, in this order, that make it fit; all where even these do not.
    low, high = 0, len(modules)
    while low < high:
        middle = (low + high) // 2
        laid = drawn(modules[:middle])
        if laid is not None and laid.fits:
            high = middle
        else:
            low = middle + 1
    folded = dict.fromkeys(modules[:high])
    best = drawn(folded)
    if best is None:
        _refused(annotated, options, asked)
    for path in [*folded][:-1][:MOST_OPENED] if best.fits else []:
        others = [each for each in folded if each != path]
        opened = drawn(others)
        if opened is not None and opened.fits:
            best, folded = opened, dict.fromkeys(others)
    return best


def _asked(annotated: AnnotatedGraph, options: Options) -> frozenset[Path]:
    """The modules that are to be folded: by their paths, or by patterns such as `blocks.*`."""
    if not options.fold:
        return frozenset()
    known = {module_name(path): path for path in part_counts(annotated, frozenset(), True) if path}
    folded: set[Path] = set()
    for pattern in options.fold:
        matching = [path for name, path in known.items() if fnmatchcase(name, pattern)]
        if not matching and not known:
            raise UsageError(f"--fold {pattern}: the graph has no modules")
        if not matching:
            near = closest(pattern, known)
            there = "" if near else f"; there are {', '.join([*known][:_TOLD])}"
            raise unknown("module in the graph", pattern, [*known], there)
        folded.update(matching)
    return frozenset(folded)


def _modules(sizes: Counter[Path]) -> list[Path]:
    """The modules of a picture in the order in which they are folded: inner ones before those they
    stand in, and of one depth those with the most boxes, the last of them first. A list of modules
    comes behind those beside it: what it holds is what one wants to see.
    """
    order = {path: number for number, path in enumerate(sizes) if path}
    inside: Counter[Path] = Counter()
    for path in order:
        inside[path[:-1]] += sizes[path]
    lists = {path for path in order if len(path) > 1 and inside[path] == sizes[path]}

    def key(path: Path) -> tuple[int, bool, int, int]:
        return (
            (1 - len(path) if path in lists else -len(path)),
            path in lists,
            -sizes[path],
            -order[path],
        )

    return sorted(order, key=key)


def _refused(annotated: AnnotatedGraph, options: Options, folded: frozenset[Path]) -> NoReturn:
    """Raise the error of a picture with too many boxes, with what would make it smaller."""
    sizes = part_counts(annotated, folded, options.expand)
    modules = sorted(_modules(sizes), key=lambda path: (len(path), -sizes[path]))
    if options.expand:
        help = "leave out --expand: rounds of a loop and modules are folded then"
    elif modules:
        help = "fold modules: " + " ".join(f"--fold {'.'.join(path)}" for path in modules[:3])
    else:
        help = "draw a part of it: `--of NAME` of a value further up"
    raise GradcliError(
        "E602",
        f"the picture of {len(annotated.graph.nodes):,} nodes has more than {MOST_BOXES:,} boxes",
        help=help,
    )


# --- the graph of a recording ---------------------------------------------------------------------


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
