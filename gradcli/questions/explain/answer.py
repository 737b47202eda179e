"""The ledger of a result as text or as JSON, with what else `gradcli explain` can show of it;
tables of derivatives, the Jacobian of an output, the gradients of its rows, the Hessian, as text,
and as JSON, schema `gradcli.derivatives/1`; the trace of a run, as text and as JSON, schema
`gradcli.trace/1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.graph import Graph
from gradcli.autograd.recording.recorder import apart
from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import Tensor, is_usable_leaf
from gradcli.errors import GradcliError, value_error
from gradcli.language.rounds import arrivals_of
from gradcli.questions.explain import tell_ledger as rendering
from gradcli.questions.explain.flow import (
    finding,
    flow_document,
    flow_text,
    flows,
    free_leaves,
    in_use,
    passes_of,
    which_pass,
)
from gradcli.questions.explain.kinks import kinks as kinks_of
from gradcli.questions.explain.kinks import unexamined
from gradcli.questions.explain.tell_ledger import ledger_table, ledger_text
from gradcli.record import Record
from gradcli.recorded.annotated_graph import saved_values
from gradcli.recorded.ledger import Operands, last_pass, ledger, paths_to
from gradcli.recorded.result import Result
from gradcli.running.arguments.files import write_text
from gradcli.running.arguments.options import DRAWN
from gradcli.running.arguments.words import UsageError
from gradcli.running.picture import format_of, picture_text
from gradcli.running.report import find_output, output_text, parameters_of, trace_text
from gradcli.running.rerun import Executed, explained, with_values
from gradcli.running.run import Run
from gradcli.show.answer import Answer
from gradcli.show.json import LEDGER_SCHEMA, ledger_document, number
from gradcli.show.style import escaped
from gradcli.trace.ir import (
    Effects,
    Instruction,
    Trace,
    Value,
    call_text,
    op_name,
    operand_text,
    text_of,
    type_text,
)

if TYPE_CHECKING:
    from gradcli.autograd.recording.recorder import Event
    from gradcli.running.run import Run
    from gradcli.show.style import Style

# --- tables of derivatives ------------------------------------------------------------------------


JACOBIAN, ROWS, HESSIAN = "jacobian", "rows", "hessian"

KINDS = (JACOBIAN, ROWS, HESSIAN)


class Table(Record):
    """The derivatives of what rows name by what columns name.

    Attributes:
        of, by: what is differentiated, and the input that it is differentiated by.
        values: of shape (rows, columns).
        after: the input that it was differentiated by before, for second derivatives.
    """

    of: str
    by: str
    rows: list[str]
    columns: list[str]
    values: Any
    after: str = ""

    def turned(self) -> Table:
        """The table with a row for each element of the input: denominator layout."""
        return Table(self.of, self.by, self.columns, self.rows, self.values.T, self.after)


def tables(kind: str, output: Tensor, name: str, leaves: Mapping[str, Tensor]) -> list[Table]:
    """The tables of one of `KINDS`, one for each input, for a Hessian one for each pair of them.

    Args:
        name: what the output is called.

    Raises:
        GradcliError: E204 for a Hessian of an output of several elements, and for rows of one
            without dimensions.
    """
    if kind == HESSIAN:
        return _hessian(output, name, leaves)
    shape = tuple(output.array.shape)
    if kind == ROWS and not shape:
        raise value_error(
            f"{name} is one number, and has no rows",
            help="ask for what its sum or mean is taken of: `--of NAME`",
        )
    if kind == ROWS:
        seeds = [_row(output.array, row) for row in range(shape[0])]
        rows = [f"{name}[{row}]" for row in range(shape[0])]
    else:
        seeds, rows = _unit_seeds(output.array), labels(name, shape)
    gradients = _gradients(output, list(leaves.values()), seeds)
    return [
        Table(name, by, rows, labels(by, tuple(leaf.array.shape)), values)
        for (by, leaf), values in zip(leaves.items(), gradients, strict=True)
    ]


def _hessian(output: Tensor, name: str, leaves: Mapping[str, Tensor]) -> list[Table]:
    if output.array.size != 1:
        raise value_error(
            f"a Hessian is that of one number, and {name} has the shape"
            f" {tuple(output.array.shape)}",
            help="take the sum of it, or one element: `y[0]`",
        )
    inputs = list(leaves.values())
    seed = Tensor(np.ones_like(to_host(output.array)))
    firsts = grad(output, inputs, seed, create_graph=True, allow_unused=True)
    computed = []
    for (of, leaf), first in zip(leaves.items(), firsts, strict=True):
        size = leaf.array.size
        seconds = [np.zeros((size, other.array.size), leaf.array.dtype) for other in inputs]
        if first is not None and first.requires_grad:
            seconds = _gradients(first, inputs, _unit_seeds(first.array))
        rows = labels(of, tuple(leaf.array.shape))
        for (by, other), values in zip(leaves.items(), seconds, strict=True):
            columns = labels(by, tuple(other.array.shape))
            computed.append(Table(name, by, rows, columns, values, of))
    return computed


def labels(name: str, shape: tuple[int, ...]) -> list[str]:
    """The elements of a tensor by name and index: `w[1,2]`; the name alone of one number."""
    if not shape:
        return [name]
    return [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(shape)]


def _unit_seeds(array: Any) -> list[Any]:
    seeds = np.eye(array.size, dtype=array.dtype)
    return [seed.reshape(array.shape)[()] for seed in seeds]


def _row(array: Any, row: int) -> Any:
    seed = np.zeros_like(to_host(array))
    seed[row] = 1
    return seed


def _gradients(output: Tensor, inputs: list[Tensor], seeds: list[Any]) -> list[Any]:
    """For each input the gradients from all seeds, each as a row; zeros where none arrives."""
    rows = [np.zeros((len(seeds), leaf.array.size), leaf.array.dtype) for leaf in inputs]
    for place, seed in enumerate(seeds):
        gradients = grad(output, inputs, Tensor(seed), retain_graph=True, allow_unused=True)
        for values, gradient in zip(rows, gradients, strict=True):
            if gradient is not None:
                values[place] = np.asarray(to_host(gradient.array)).reshape(-1)
    return rows


# --- told -----------------------------------------------------------------------------------------


DERIVATIVES_SCHEMA = "gradcli.derivatives/1"


def tables_text(tables: Sequence[Table]) -> str:
    """The tables, one below the other, with the elements that they are of in their margins."""
    return "\n".join(map(_derivatives_text, tables))


def _derivatives_text(table: Table) -> str:
    corner = f"∂{table.of}/∂{table.by}"
    if table.after:
        corner = f"∂²{table.of}/∂{table.after}∂{table.by}"
    cells = [[f"{value:.6g}" for value in row] for row in table.values.tolist()]
    grid = [
        [corner, *table.columns],
        *([label, *row] for label, row in zip(table.rows, cells, strict=True)),
    ]
    widths = [max(len(line[place]) for line in grid) for place in range(len(grid[0]))]
    lines = []
    for head, *rest in grid:
        shown = (text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))
        lines.append("  ".join([head.ljust(widths[0]), *shown]).rstrip())
    return "\n".join(lines) + "\n"


def tables_document(kind: str, layout: str, tables: Sequence[Table]) -> dict[str, Any]:
    """The tables as a JSON object."""
    return {
        "schema": DERIVATIVES_SCHEMA,
        "kind": kind,
        "layout": layout,
        "tables": [
            {
                "of": table.of,
                "by": [table.after, table.by] if table.after else table.by,
                "rows": table.rows,
                "columns": table.columns,
                "values": number(table.values),
            }
            for table in tables
        ],
    }


# --- answers --------------------------------------------------------------------------------------


class Extras(Record):
    """What is shown beside the ledger.

    Attributes:
        element: the element of large gradients that is worked out, None for the first.
    """

    element: tuple[int, ...] | None = None
    ties: bool = False
    paths: str | None = None
    saved: bool = False


def explanation(run: Run, result: Result, extras: Extras) -> Answer:
    """The ledger of a result and its extras.

    Raises a usage error where `--paths` names no leaf.
    """
    leaf = _leaf(run, result, extras.paths)
    return Answer(
        partial(_text, run, result, extras, leaf), partial(_document, run, result, extras, leaf)
    )


def explanation_of_tensor(run: Run, tensor: Tensor) -> str:
    """The ledger of the backward pass that `tensor.backward()` runs."""

    def text(run: Run, tensor: Tensor, events: Sequence[Event]) -> str:
        with run.session.running():
            result = _result(run, tensor, events)
            return _text(run, result, Extras(), None, run.terminal.style)

    return explained(run, tensor, text)


def trace_of_tensor(run: Run, tensor: Tensor, style: str) -> str:
    """The backward graph of a tensor in a style, with a line end."""

    def shown(run: Run, tensor: Tensor, events: Sequence[Event]) -> str:
        result = _result(run, tensor, events)
        return f"{trace_text(run.terminal, run.session, run.options, style, result)}\n"

    if style == "values":
        return with_values(run, tensor, shown)
    return explained(run, tensor, shown) if style == "steps" else shown(run, tensor, ())


def write_picture(run: Run, tensor: Tensor, path: str) -> None:
    """Draw the graph of a tensor in a file, with the gradients that `tensor.backward()` would give.

    Raises:
        GradcliError: E204 where the suffix names no picture, E603 where the file cannot be written,
            E606 where files are out of bounds.
    """
    if not path.endswith(DRAWN):
        raise value_error(f"the suffix of {path!r} is none of {', '.join(DRAWN)}")
    run.options.limits.check_file(path)

    def drawing(run: Run, tensor: Tensor, events: Sequence[Event]) -> str:
        return picture_text(run, _result(run, tensor, events), format_of(path))

    write_text(path, with_values(run, tensor, drawing))


def _result(run: Run, tensor: Tensor, events: Sequence[Event]) -> Result:
    return Result(tensor.name, tensor, None, (), run.session.graph(tensor), events)


def flow_of(run: Run, result: Result) -> Answer:
    """The flow of gradients through the modules of a run."""
    names = run.session.state.names()
    with run.session.running():
        modules = dict(Graph.module_paths().values())
        every = run.session.recorder.events or ()
        parameters = parameters_of(run.session)
        events, gradients = last_pass(result.graph, every), result.gradients
        began = [each for each in run.session.recorder.outputs.values() if each.ended]
        own = any(each.tensor is result.output for each in began)
        name = result.name or "the output"
        if run.options.of is None and every and (not events or events[-1] is not every[-1]):
            # What the program shows or assigned last may not be what it went backward from last.
            events, gradients = [e for e in every if e.during == every[-1].during], ()
            own, name = True, (began[-1].tensor.name or name) if began else name
        begun = (
            each for each in _leaves_in(names) if not parameters or each[1] is not result.output
        )
        free = free_leaves(begun, parameters, events, every)
        parameters = in_use([*parameters, *free], events, names)
        owners = {name: modules.get(name.rpartition(".")[0]) for name, _ in parameters}
        calls = run.session.recorder.modules
        rows = flows(parameters, gradients, events, calls, owners)
        passes = passes_of(events, every, arrivals_of(run.session.interpreter))
        reaches_all = all(each.norm is not None for each in rows)
        which = which_pass(events, every, passes, name, own=own, reaches_all=reaches_all)
        places = [each.place for each in began if each.place is not None]
        clips = any("clip_grad_" in each.source.text for each in places)
        said = finding(rows, events, which, clips=clips)
    return Answer(lambda _: flow_text(rows, said), partial(flow_document, rows, said))


def _leaves_in(values: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The leaves among values and in lists and tables of them, each once: `W[0]`."""
    seen: set[int] = set()
    waiting = list(values.items())
    # A list has the names of what is in it, which a loop's variable may have too.
    waiting.sort(key=lambda pair: type(pair[1]) is Tensor)
    while waiting:
        name, value = waiting.pop(0)
        if type(value) is Tensor and is_usable_leaf(value) and value.requires_grad:
            if id(value) not in seen:
                yield name, value
            seen.add(id(value))
        elif type(value) in (list, tuple) and id(value) not in seen:
            seen.add(id(value))
            waiting[:0] = [(f"{name}[{number}]", each) for number, each in enumerate(value)]
        elif type(value) is dict and id(value) not in seen:
            seen.add(id(value))
            waiting[:0] = [(f"{name}[{key!r}]", each) for key, each in value.items()]


def derivatives_of(run: Run, value: Any, kind: str, layout: str) -> Answer:
    """The Jacobian, the gradients of the rows or the Hessian of a run's output.

    Args:
        layout: "numerator", a row for each element of what is differentiated, or "denominator".
    """
    executed = Executed(run, value)
    if executed.output is None or not executed.output.requires_grad or not executed.leaves:
        raise GradcliError("E402", "the program has no output that depends on an input")
    named = find_output(run.session, run.options, value)
    name = named[0] if named is not None and named[0] else "y"
    with run.session.running(), apart():
        try:
            computed = tables(kind, executed.output, name, executed.leaves)
        except GradcliError as error:
            if error.code == "E404":  # as after the last step of a training
                error.help = (
                    "compute the output once more behind the change, as by `y = net(x)` in a last"
                    " line, and ask for that: `--of y`"
                )
            raise
    if layout == "denominator":
        computed = [table.turned() for table in computed]
    return Answer(lambda _: tables_text(computed), partial(tables_document, kind, layout, computed))


def _leaf(run: Run, result: Result, name: str | None) -> Tensor | None:
    """The leaf of a name; raises a usage error where it holds none."""
    if name is None:
        return None
    for node in result.graph.nodes:
        if node.leaf is not None and node.variable == name:
            return node.leaf
    names = run.session.state.names()
    value = names.get(name, dict(parameters_of(run.session)).get(name))
    if type(value) is not Tensor or not value.is_leaf:
        raise UsageError(f"--paths: `{name}` is no leaf of the program")
    if not value.requires_grad:
        raise UsageError(f"--paths: `{name}` does not require grad, and no path leads to it")
    return value


def _text(run: Run, result: Result, extras: Extras, leaf: Tensor | None, style: Style) -> str:
    operands = Operands(result.graph)
    extras_shown = [shown(operands) for _, shown, _ in _extras(run, result, extras, leaf)]
    if not run.has_numbers:
        return "\n\n".join(extras_shown) + "\n"
    head = output_text(style, result.name, result.output)
    if result.seed is not None:
        head += output_text(style, "seed", result.seed)
    rows = ledger(result.graph, result.events)
    parts = [f"{head}\n{ledger_text(rows, style, extras.element)}"]
    return "\n\n".join([*parts, *extras_shown]) + "\n"


def table_of(run: Run, result: Result, format: str) -> str:
    """The ledger of a result as a table in one of `TABLES`."""
    with run.session.running():
        return ledger_table(ledger(result.graph, result.events), format)


def _document(run: Run, result: Result, extras: Extras, leaf: Tensor | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"schema": LEDGER_SCHEMA, "name": result.name}
    if run.has_numbers:
        fields = ledger_document(result, ledger(result.graph, result.events), extras.element)
    more = {name: document() for name, _, document in _extras(run, result, extras, leaf)}
    return fields | more


def _extras(
    run: Run, result: Result, extras: Extras, leaf: Tensor | None
) -> Iterator[tuple[str, Callable[[Operands], str], Callable[[], Any]]]:
    """The kinks, the paths and the saved values that are asked for: name, text and document."""
    graph, events = result.graph, result.events
    if extras.ties:
        recorder = run.session.recorder
        assert recorder is not None
        ties = kinks_of(graph, events, recorder.call_of)
        left_out = unexamined(graph, recorder.call_of)
        shown = partial(rendering.ties_text, ties, left_out)
        yield "ties", shown, partial(rendering.ties_document, ties)
    if leaf is not None:
        paths, name = paths_to(graph, events, leaf), extras.paths or ""
        yield (
            "paths",
            lambda operands: rendering.paths_text(paths, name, operands),
            partial(rendering.paths_document, paths),
        )
    if extras.saved:
        named = run.session.state.names().items()
        names = {name: each for name, each in named if type(each) is Tensor}
        if run.replay is not None:
            # The run had no name for most of what the lines of a recording assign.
            names = {name: each for name, each in names.items() if each.grad_fn is None}
        saved = saved_values(graph, events, names)
        yield (
            "saved",
            partial(rendering.saved_text, saved),
            partial(rendering.saved_document, saved),
        )


TRACE_SCHEMA = "gradcli.trace/1"


def trace_document(trace: Trace) -> dict[str, Any]:
    """A trace as a JSON object: the same facts as its text."""
    return {
        "schema": TRACE_SCHEMA,
        "inputs": [_value_document(value) for value in trace.inputs],
        "constants": [_value_document(value) for value in trace.constants],
        "instructions": [_instruction_document(each) for each in trace.instructions],
        "outputs": [value.number for value in trace.outputs],
        "effects": _effects_document(trace.effects),
        "breaks": [
            {"code": each.code, "reason": each.reason, "hint": each.hint} for each in trace.breaks
        ],
    }


def _value_document(value: Value | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {
        "number": value.number,
        "type": type_text(value),
        "shape": None if value.shape is None else list(value.shape),
        "name": value.name,
    }


def _instruction_document(instruction: Instruction) -> dict[str, Any]:
    span = instruction.span
    return {
        "text": call_text(instruction),
        "op": op_name(instruction.op),
        "inputs": [operand_text(each) for each in instruction.inputs],
        "params": {name: operand_text(each) for name, each in instruction.params.items()},
        "outputs": [_value_document(each) for each in instruction.outputs],
        "source": None if span is None else span.text,
        "line": None if span is None else span.line,
        "column": None if span is None else span.column,
        "stack": [name for name, _ in instruction.stack],
        "effects": _effects_document(instruction.effects),
    }


def _effects_document(effects: Effects) -> dict[str, list[int]]:
    return {effect.value: [value.number for value in values] for effect, values in effects.items()}


def trace_of(run: Run) -> Answer:
    """What a run recorded, one instruction a line."""
    recorder = run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    trace = recorder.named()
    return Answer(lambda _: f"{escaped(text_of(trace))}\n", partial(trace_document, trace))
