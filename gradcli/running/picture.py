"""The backward graph of a run, or of a recording, as a picture, printed or in a file; and which
leaves of a page can take other values there, in two steps: whether a graph's output is all that
other values would change, read in the trace, with what stands in the way; and by running the
program at other values.

The page computes what the graph's operations make of them, and keeps all else. What it keeps must
be the same where the program runs again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.recording.trace_recorder import UPDATE, Call, TraceRecorder, Write
from gradcli.autograd.tensor import Tensor, gradient_edge
from gradcli.errors import GradcliError, Span
from gradcli.language.hints.spelling import closest
from gradcli.ops.codegen.node_class import Key
from gradcli.ops.definition.doc import READS
from gradcli.record import Record
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.recorded.ledger import ledger
from gradcli.recorded.result import Result
from gradcli.running.arguments.files import write_text
from gradcli.running.arguments.options import PICTURES, Options
from gradcli.running.arguments.words import UsageError, unknown
from gradcli.running.process.terminal import Terminal
from gradcli.running.report import annotated_graph, module_titles
from gradcli.running.rerun import Executed, Rerun, leaves, moments_of
from gradcli.running.run import Run
from gradcli.show.graph.labels import dot, mermaid
from gradcli.show.page.page import (
    CHOOSING,
    COMPARING,
    LARGEST,
    Times,
    comparisons,
    page,
    page_document,
    recipe,
    times_of,
    too_much,
)
from gradcli.show.pictures.picture import Path, Picture, module_name, part_counts, picture_of
from gradcli.show.pictures.svg import LaidOut, laid_out, svg
from gradcli.trace.ir import ALIAS, Effect, Instruction, Value, values_in

if TYPE_CHECKING:
    from gradcli.recorded.result import Result
    from gradcli.running.arguments.options import Options
    from gradcli.running.run import Run
    from gradcli.session import Session


# --- other values ---------------------------------------------------------------------------------


class Obstacle(Record):
    """Why other values of leaves could make more than the graph's operations make of them.

    Attributes:
        reason: a clause, for a person.
        place: where the program does it, None where nothing of the program's text is at fault.
    """

    reason: str
    place: Span | None = None


def obstacle(graph: Graph, recorder: TraceRecorder, leaves: Sequence[Tensor]) -> Obstacle | None:
    """The first thing that happens to the values of some leaves outside of the graph and before its
    end: a number leaves a tensor, which may decide anything, or something is computed of them that
    gradients do not know, and then enters the graph. None where there is no such thing.

    What does not come from the leaves, such as data and labels, is no obstacle: it stays as it is.
    """
    instructions = recorder.trace.instructions
    last = max((at for at, each in enumerate(instructions) if _is_within(each, graph)), default=-1)
    arrays = [leaf.array for leaf in leaves]
    ids = {id(leaf) for leaf in leaves}
    inside = {
        value
        for each in instructions[: last + 1]
        if _is_within(each, graph)
        for value in each.reads
        if id(recorder.tensors[value.number]) in ids
    }
    # What shows a leaf's memory and was there before the leaf was read, such as `x.detach()`.
    shown = Obstacle("the output depends on a value that has no gradient")
    outside = {
        value: shown
        for value in (*recorder.trace.inputs, *recorder.trace.constants)
        if _shows(recorder.tensors[value.number], leaves)
    }
    conditions: dict[Value, Obstacle] = {}
    for each in instructions[: last + 1]:
        if getattr(each.op, "of_shapes", False):
            continue
        within = _is_within(each, graph)
        reads = [*each.reads, *_positions(each, recorder)]
        source = next((outside[value] for value in reads if value in outside), None)
        compares = _compares(each, recorder)
        if source is None and not compares:
            values = _chosen_from(each) if within and _chooses(each) else reads
            source = next((conditions[value] for value in values if value in conditions), None)
        touched = source is not None or any(
            value in inside or value in conditions for value in reads
        )
        if not touched and not _reads_memory(each, arrays):
            continue
        if Effect.READS in each.effects or _sized_by_values(each):
            return Obstacle("a number is taken out of a tensor", each.span)
        if within and source is not None:
            return Obstacle(shown.reason, each.span) if source is shown else source
        # A leaf that shows what was met before it is itself all the same.
        shows = each.op is ALIAS or (isinstance(each, Write) and each.replaces)
        own = inside.intersection(each.results) if shows else ()
        carried = {*_carried_on(each, inside, recorder), *own}
        inside.update(carried)
        cut = Obstacle(shown.reason, each.span) if source in (None, shown) else source
        into = conditions if source is None and compares else outside
        into.update((value, cut) for value in each.results if value not in carried)
    return None


def _chooses(instruction: Instruction) -> TypeGuard[Call]:
    """Whether a condition chooses between operands, which the page can do anew."""
    return isinstance(instruction, Call) and instruction.op.name.partition(".")[0] in CHOOSING


def _chosen_from(instruction: Call) -> list[Value]:
    """What a choosing operation reads beside its condition."""
    operands = instruction.operands.items()
    return [*values_in([each for name, each in operands if name not in ("condition", "mask")])]


def _compares(instruction: Instruction, recorder: TraceRecorder) -> bool:
    """Whether an instruction makes a condition of what tensors hold still."""
    return (
        isinstance(instruction, Call)
        and instruction.op.name.partition(".")[0] in COMPARING
        and all(
            recorder.find(tensor) is instruction.operands[name]
            for name, tensor in instruction.arguments.items()
            if type(tensor) is Tensor
        )
    )


def _sized_by_values(instruction: Instruction) -> bool:
    """Whether values say how many elements an operation gives, as those of `unique` do; of those
    that are picked by positions, the positions say it.
    """
    keys = instruction.arguments.values() if isinstance(instruction, Call) else ()
    declared = getattr(instruction.op, "effects", ())
    return READS in declared and not any(type(key) is Key for key in keys)


def _positions(instruction: Instruction, recorder: TraceRecorder) -> list[Value]:
    """The values of the tensors that an instruction takes as positions of elements."""
    keys = instruction.arguments.values() if isinstance(instruction, Call) else ()
    return [recorder.find(each) for key in keys if type(key) is Key for each in key.sources]


def is_hooked(node: GraphNode) -> bool:
    """Whether a hook may change the gradients at a node."""
    leaf, extra = node.leaf, node.node.extra
    if leaf is not None and leaf.meta is not None and leaf.meta.hooks:
        return True
    return extra is not None and bool(extra.tensor_hooks or extra.prehooks or extra.hooks)


def _reads_memory(instruction: Instruction, arrays: Sequence[Any]) -> bool:
    """Whether one of these arrays is read before the trace knows it as a value."""
    memories = [each for each in instruction.inputs if isinstance(each, (np.ndarray, np.generic))]
    return any(one is other or _share(one, other) for one in memories for other in arrays)


def _shows(tensor: Tensor | None, leaves: Sequence[Tensor]) -> bool:
    """Whether a tensor has the memory of one of these leaves, or a part of it, and is another."""
    return tensor is not None and any(
        tensor is not leaf and _share(tensor.array, leaf.array) for leaf in leaves
    )


def _share(one: Any, other: Any) -> bool:
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return both and np.may_share_memory(one, other)


def _is_within(instruction: Instruction, graph: Graph) -> bool:
    """Whether an instruction is an operation of the graph."""
    node = instruction.node if isinstance(instruction, Call) else None
    return node is not None and graph.find(node) is not None


def _carried_on(
    instruction: Instruction, inside: set[Value], recorder: TraceRecorder
) -> set[Value]:
    """The results of an instruction that the graph knows how to compute: those of an operation that
    have gradients, and a value with a history given to another tensor with it.

    A write that counts and has no instruction of its own, such as one into a part of a tensor, has
    a node that the page looks at.
    """
    if isinstance(instruction, Call):
        results = instruction.results if instruction.node is not None else ()
        return {value for value in results if _requires_grad(value, recorder)}
    source = instruction.inputs[-1] if instruction.inputs else None
    if not isinstance(source, Value) or source not in inside:
        return set()
    if isinstance(instruction, Write):
        carries = instruction.tensor.requires_grad
    else:
        carries = instruction.op in (ALIAS, UPDATE) and all(
            _requires_grad(value, recorder) for value in instruction.results
        )
    return {*instruction.results} if carries else set()


def _requires_grad(value: Value, recorder: TraceRecorder) -> bool:
    tensor = recorder.tensors[value.number]
    return tensor is not None and tensor.requires_grad


_LONGEST = 3.0
"""Seconds: what runs longer is not run again, a page would be long in coming."""

_MOST_ALONE = 12
"""Leaves that are looked at one by one, where they cannot be moved all together."""

_SHORT, _MANY, _FEW = 1_000, 16, 4
"""How many other values are tried of a program that records at most so many instructions, and of
others.
"""

Reasons = dict[int, str]
"""Why leaves cannot be moved, by the ids of their nodes; of 0, why none can."""


def reasons_to_stay(run: Run, result: Result) -> Reasons:
    """Why leaves of a result cannot take other values on a page that computes its graph anew.

    A leaf can be moved where nothing leads past the graph from it to the output, as far as the
    record shows, and where the program, run again with other values of it, makes a graph of the
    same operations with the same constants.
    """
    graph, recorder = result.graph, run.session.recorder
    if not isinstance(recorder, TraceRecorder):
        return {0: "what ran was not recorded"}
    why = too_much(graph.nodes)
    if why or any(map(is_hooked, graph.nodes)):
        return {0: why or "a hook may change gradients"}
    # A larger one has no slider: it stays.
    moved = {id: leaf for id, leaf in _leaves(graph).items() if leaf.array.size <= LARGEST}
    reasons = _alone(moved, lambda some: _led_past(graph, recorder, [*some.values()]))
    left = {id: leaf for id, leaf in moved.items() if id not in reasons}
    if 0 in reasons or not left or not run.has_numbers:
        return reasons
    if run.seconds > _LONGEST:
        return {0: f"the program ran for {run.seconds:.0f} s, too long to be run again for them"}
    try:
        others = _Others(run, result)
    except GradcliError:
        return {0: "the program does not end when it is run again"}
    if not others.is_alike:
        return {0: "the program does not compute the same when it is run again"}
    return reasons | _alone(left, others.difference)


def _alone(leaves: Mapping[int, Tensor], reason: Any) -> Reasons:
    """Why some of these leaves stay: `reason` is asked of all of them together, of each, and of
    those together that it has nothing against.
    """
    together = reason(leaves)
    if not together:
        return {}
    if len(leaves) > _MOST_ALONE:
        return {0: together}
    reasons = {id: reason({id: leaf}) for id, leaf in leaves.items()}
    reasons = {id: each for id, each in reasons.items() if each}
    rest = {id: leaf for id, leaf in leaves.items() if id not in reasons}
    return reasons if reasons and not (rest and reason(rest)) else {0: together}


def _led_past(graph: Graph, recorder: TraceRecorder, leaves: Sequence[Tensor]) -> str:
    """What leads past the graph from leaves to the output, "" where the record shows nothing."""
    past = obstacle(graph, recorder, leaves)
    return "" if past is None else _at(past.reason, past.place)


def _at(reason: str, place: Span | None) -> str:
    """A reason with the line of the program that is at fault."""
    if place is None:
        return reason
    return f"{reason}, {place.origin or f'line {place.line}'}: {place.text.splitlines()[0]}"


class _Kept(Record):
    """What a page keeps of a graph.

    Attributes:
        nodes: of each node, by its id, its name, what its operands come from, and the constants.
        leaves: the values of the leaves by the ids of their nodes.
        seed: what the program's own backward pass began with.
    """

    nodes: dict[int, dict[str, Any]]
    leaves: dict[int, Any]
    seed: Any


class _Others:
    """A program that runs again at other values of the leaves of a result."""

    def __init__(self, run: Run, result: Result) -> None:
        self._graph = result.graph
        self._root = _root_of(result.output)
        name = "program" if run.statement is None else run.statement.span.source.name
        program = run.transcript.program()
        if run.statement is not None and run.transcript.last() is not run.statement.span:
            program += f"{run.statement.span.text}\n"
        self._rerun = Rerun(run.terminal, program, name, run.arguments(), run.options)
        self._was = _kept(run, result.output)
        short = len(run.session.recorder.trace.instructions) <= _SHORT
        self._count = _MANY if short else _FEW
        here = self._rerun.execute(record="all")
        self._here = self._kept_of(here)
        if any(leaf.version for leaf in here.leaves.values()):
            self._rerun.moments, _ = moments_of(self._rerun, here)
        self._names = _names(run, result.graph)
        self._values = _values(result.graph)
        self._written = {id for id, leaf in _leaves(result.graph).items() if leaf.version}

    @property
    def is_alike(self) -> bool:
        """Whether the program computes the same when it is run again as it was."""
        here = self._here
        return here is not None and not self._changed(self._was, self._values)

    def difference(self, leaves: Mapping[int, Tensor]) -> str:
        """What is not the same at other values of some leaves, "" where nothing is."""
        unnamed = next((id for id in leaves if id not in self._names), None)
        if unnamed is not None:
            return "the program makes it in the middle of an expression"
        refused = ""
        tried = 0
        for values in _other_values({id: self._values[id] for id in leaves}, self._count):
            named = {self._names[id]: array for id, array in values.items()}
            try:
                there = self._kept_of(self._rerun.execute(values=named, record="all"))
            except GradcliError as error:
                refused = refused or f"at other values the program ends: {_told(error)}"
                continue
            tried += 1
            if there is None:
                return "at other values the program computes something else"
            reason = self._changed(there, {**self._values, **values})
            if reason:
                return reason
        return "" if tried else refused

    def _kept_of(self, executed: Executed) -> _Kept | None:
        """What a page of the same output keeps of another run, None where it has no such output."""
        output = executed.output
        if output is not None and _root_of(output) == self._root:
            return _kept(executed.run, output, executed.seed())
        output = _made_at(executed.run.session.recorder, *self._root)
        return None if output is None else _kept(executed.run, output)

    def _changed(self, there: _Kept, values: Mapping[int, Any]) -> str:
        """What a page would keep that is not the same there, with the leaves at some values."""
        assert self._here is not None
        if there.nodes.keys() != self._here.nodes.keys():
            return "at other values the program computes with other operations"
        for node in sorted(self._graph.nodes, key=lambda each: each.node.sequence_nr):
            now, was = there.nodes[node.id], self._here.nodes[node.id]
            part = next(
                (name for name in was if json.dumps(was[name]) != json.dumps(now[name])), None
            )
            if part is not None:
                what = f"a constant of {node.name}" if part == "constants" else "an operation"
                return _at(f"at other values {what} is another", node.node.place)
        for id, array in values.items():
            if not np.array_equal(there.leaves[id], array, equal_nan=True):
                name = self._names.get(id)
                own = f"`{name}`" if name else "a leaf"
                how = ", as a step of an optimizer does" if id in self._written else ""
                return f"the program sets the value of {own} itself{how}"
        if there is not self._was and not np.array_equal(there.seed, self._here.seed):
            return "the gradient that the backward pass begins with is another at other values"
        return ""


def _kept(run: Run, output: Tensor, seed: Any = None) -> _Kept:
    """What a page of an output of a run keeps."""
    recorder, graph = run.session.recorder, run.session.graph(output)
    calls = comparisons(recorder.calls)
    annotated = AnnotatedGraph(graph, (), recorder.call_of, comparisons=calls)
    with run.session.running():
        nodes = {each.id: _description(each, annotated) for each in graph.nodes}
        return _Kept(nodes, _values(graph), seed)


def _leaves(graph: Graph) -> dict[int, Tensor]:
    """The leaves of a graph by the ids of their nodes."""
    return {each.id: each.leaf for each in graph.nodes if each.leaf is not None}


def _values(graph: Graph) -> dict[int, Any]:
    """What these leaves hold."""
    return {id: np.array(to_host(leaf.array)) for id, leaf in _leaves(graph).items()}


def _root_of(output: Tensor) -> tuple[int, int]:
    """The number of the node that made an output, the same in every run, and of the output."""
    node, output_nr = gradient_edge(output)
    return -1 if node is None else node.sequence_nr, output_nr


def _made_at(recorder: TraceRecorder, number: int, output_nr: int) -> Tensor | None:
    """The tensor that a node of this number made, None where there is none."""
    node = next((each for each in recorder.call_of if each.sequence_nr == number), None)
    output = None if node is None else recorder.call_of[node].output
    output = output[output_nr] if type(output) is tuple else output
    return output if type(output) is Tensor else None


def _description(node: GraphNode, annotated: AnnotatedGraph) -> dict[str, Any]:
    """What a page keeps of a node."""
    return {
        "name": node.name,
        "shapes": [[*shape] for shape, _ in node.outputs],
        "edges": [each.node and (each.node.id, each.output_nr) for each in node.edges],
        "constants": {} if node.leaf is not None else recipe(node, annotated),
    }


def _names(run: Run, graph: Graph) -> dict[int, str]:
    """What a program is told the leaves of a graph by: the names of inputs, of variables and of
    parameters, by the ids of their nodes.
    """
    inputs = [] if run.bindings is None else run.bindings.inputs()
    names = {id(leaf): name for name, leaf in [*leaves(run), *inputs]}
    names_of_leaves = {
        each.id: names.get(id(each.leaf)) or each.variable
        for each in graph.nodes
        if each.leaf is not None
    }
    # A module without a name is called by its class, by which nobody finds it.
    known = run.session.values
    return {
        id: name for id, name in names_of_leaves.items() if name and name.partition(".")[0] in known
    }


def _other_values(values: Mapping[int, Any], count: int) -> Iterator[dict[int, Any]]:
    """Other values of leaves: close by, far on both sides, as far as a slider goes, and others in
    between, so many in all.
    """
    random = np.random.default_rng(0)

    def moved(array: Any, low: float, high: float) -> Any:
        span = np.maximum(3, 2 * np.abs(array))
        return (array + span * random.uniform(low, high, array.shape)).astype(array.dtype)

    ranges = [(-0.01, 0.01), (0.3, 1.0), (-1.0, -0.3), *[(-1.0, 1.0)] * (count - 3)]
    for low, high in ranges:
        yield {id: moved(each, low, high) for id, each in values.items()}


def _told(error: GradcliError) -> str:
    return f"{error.raises}: {error.message}".rstrip(": ").splitlines()[0]


# --- pictures -------------------------------------------------------------------------------------


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
    paths = {number: path for number, (path, _) in Graph.module_paths().items()}
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
