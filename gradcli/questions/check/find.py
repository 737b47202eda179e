"""The gradients of a program against central differences, or against ones given by hand. Its output
is a function of its leaves: the recorded calls that lead from these to it are made again with other
values, and nothing else of the program runs.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.files.data_file import DataFile
from gradcli.arrays.files.formats import read
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.storage import return_freed_memory
from gradcli.autograd.recording.recorder import Arrival, Event, Step
from gradcli.autograd.recording.trace_recorder import Call, TraceRecorder, is_same, source_of
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import GradcliError, Source
from gradcli.language.parser.parser import parse_expression
from gradcli.ops.definition.op import Op
from gradcli.questions.check.check import (
    NOT_FINITE,
    SWEEP,
    WRONG,
    Checked,
    Clues,
    Comparison,
    Edit,
    Time,
    check_along,
    edits,
    fails,
    is_close,
    worst,
)
from gradcli.questions.check.check import check as compare
from gradcli.questions.check.functions import judged
from gradcli.questions.check.tell import (
    check_document,
    check_text,
    comparison_document,
    comparison_text,
)
from gradcli.questions.check.tolerance import by_tolerance
from gradcli.questions.check.transforms import Transforms, transforms_checked
from gradcli.questions.notes.graph_notes import label_detachments
from gradcli.questions.why.detachments import places_beside
from gradcli.questions.why.suspects import Suspect, suspects, without_second
from gradcli.record import Record
from gradcli.recorded.ledger import arguments_of
from gradcli.running.arguments.name_uses import ASSIGNED, name_uses
from gradcli.running.arguments.words import UsageError, not_in_program
from gradcli.running.recordings.replay import OtherInputsError
from gradcli.running.report import asked_seed, bare_leaf, called
from gradcli.running.rerun import Executed, evaluate, leaves, moments_of, unused
from gradcli.session import Session
from gradcli.show.answer import Answer
from gradcli.show.style import one_line
from gradcli.state import active
from gradcli.trace.ir import Effect, Instruction, Operand, Value

if TYPE_CHECKING:
    from gradcli.autograd.graph import GraphNode
    from gradcli.running.arguments.options import Options
    from gradcli.running.process.terminal import Terminal
    from gradcli.running.rerun import Rerun


# --- the output as a function of the leaves -------------------------------------------------------


_DECIDES = (Effect.READS, Effect.CHECKS)
"""What an instruction does by which the program may take another path for other values."""


class _Step(Record):
    """A call that is made again, or a decision by the values that an instruction reads.

    Attributes:
        sources: the leaves that it depends on, by name.
        ends: the numbers of values that no later step reads.
    """

    made: Instruction
    sources: frozenset[str]
    ends: Sequence[int] = ()


class Recomputed:
    """The output of a recorded run for other values of its leaves.

    Args:
        steps: the calls that lead from the leaves to the output, in order, and what decided that
            the program came to them.
        leaves: the names of the leaves, by the numbers of their values.
        output: the value of the output.
    """

    def __init__(
        self, session: Session, steps: Sequence[_Step], leaves: Mapping[int, str], output: Value
    ) -> None:
        self._session = session
        self._steps = steps
        self._leaves = leaves
        self._output = output
        self._constants: dict[int, Tensor] = {}
        self._chosen: dict[frozenset[str], list[_Step]] = {}

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The array of the output, with other arrays for some of the leaves; None where the program
        takes another path.
        """
        names = frozenset(values)
        steps = self._chosen.get(names)
        if steps is None:
            chosen = [each for each in self._steps if not names.isdisjoint(each.sources)]
            steps = self._chosen[names] = _with_ends(chosen, self._leaves, self._output)
        known: dict[int, Tensor] = {}
        for number, name in self._leaves.items():
            if name in values:
                known[number] = Tensor(np.asarray(values[name])[()])
        with self._session.running():
            state = active.state
            before = state.recorder, state.grad_enabled
            state.recorder, state.grad_enabled = None, False
            try:
                for step in steps:
                    if isinstance(step.made, Call):
                        self._make(step.made, known)
                    elif not all(self._is_as_it_was(each, known) for each in step.made.reads):
                        return None
                    for number in step.ends:
                        known.pop(number, None)
                return np.asarray(to_host(forced(self._read(self._output, known).array)))
            finally:
                state.recorder, state.grad_enabled = before

    def _make(self, call: Call, known: dict[int, Tensor]) -> None:
        """Make a call again."""
        operands = [self._read(each, known) for each in call.operands.values()]
        made = call.op.apply(*operands)
        outputs = made if type(made) is tuple else (made,)
        for value, output in zip(call.outputs, outputs, strict=True):
            if value is not None:
                known[value.number] = output

    def _is_as_it_was(self, value: Value, known: Mapping[int, Tensor]) -> bool:
        again = known.get(source_of(value, self._leaves).number)
        return again is None or is_same(np.asarray(to_host(forced(again.array))), value.array)

    def _read(self, operand: Operand, known: Mapping[int, Tensor]) -> Any:
        """An operand with its tensors: those that were computed again, or of the recorded run."""
        if isinstance(operand, Value):
            value = source_of(operand, self._leaves)
            again = known.get(value.number)
            if again is not None:
                return again
            constant = self._constants.get(value.number)
            if constant is None:
                constant = self._constants[value.number] = Tensor(np.asarray(value.array)[()])
            return constant
        if type(operand) is list:
            return [self._read(each, known) for each in operand]
        return tuple(self._read(e, known) for e in operand) if type(operand) is tuple else operand


def _with_ends(steps: Sequence[_Step], leaves: Container[int], output: Value) -> list[_Step]:
    """Steps that say which values no later one reads."""
    last = {
        source_of(value, leaves).number: number
        for number, step in enumerate(steps)
        for value in step.made.reads
    }
    last.pop(output.number, None)
    ends: dict[int, list[int]] = {}
    for value, number in last.items():
        ends.setdefault(number, []).append(value)
    return [_Step(step.made, step.sources, ends.get(n, ())) for n, step in enumerate(steps)]


def recomputed(executed: Executed) -> Recomputed | None:
    """The output of a run that was recorded with its values; None where other values may lead the
    program along another path that is not told from this one, or a call cannot be made again by
    itself.
    """
    recorder = executed.run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    assert executed.output is not None
    known = recorder.known(executed.output)
    if known is None:
        return None
    names = {id(leaf): name for name, leaf in executed.leaves.items()}
    tensors = zip(recorder.values, recorder.tensors, strict=True)
    all_leaves = {v.number: names[id(t)] for v, t in tensors if t is not None and id(t) in names}
    output = source_of(known, all_leaves)
    calls, leaves = _leading_to(output, all_leaves)
    if output.number in leaves or len(set(leaves.values())) < len(leaves):
        return None  # a leaf itself; or one that was written to between two of its uses
    depends: dict[int, frozenset[str]] = {n: frozenset((name,)) for n, name in leaves.items()}
    steps = []
    instructions = recorder.trace.instructions
    end = max((n for n, each in enumerate(instructions) if id(each) in calls), default=-1)
    for instruction in instructions[: end + 1]:
        read = (depends.get(source_of(each, leaves).number, _NONE) for each in instruction.reads)
        sources = _NONE.union(*read)
        if not sources:
            continue
        if any(each in instruction.effects for each in _DECIDES) and not _tells_path(instruction):
            return None
        for value in instruction.results:
            if value.number not in leaves:
                depends[value.number] = sources
        if isinstance(instruction, Call) or _tells_path(instruction):
            steps.append(_Step(instruction, sources))
    steps = _needed(steps, leaves, output)
    if not all(_is_whole(each.made) for each in steps if isinstance(each.made, Call)):
        return None
    return Recomputed(executed.run.session, steps, leaves, output)


_NONE: frozenset[str] = frozenset()


def _needed(steps: Sequence[_Step], leaves: Container[int], output: Value) -> list[_Step]:
    """Those of some steps that the output or a decision is computed from."""
    needed, kept = {output.number}, []
    for step in reversed(steps):
        results = [each.number for each in step.made.results]
        if not isinstance(step.made, Call) or not needed.isdisjoint(results):
            needed.update(source_of(each, leaves).number for each in step.made.reads)
            kept.append(step)
    return kept[::-1]


def _tells_path(instruction: Instruction) -> bool:
    """Whether an instruction reads booleans alone, as an `if` does: while these are what they were,
    the program goes the same way.
    """
    return (
        Effect.READS in instruction.effects
        and Effect.CHECKS not in instruction.effects
        and not isinstance(instruction, Call)
        and all(
            each.array is not None and each.array.dtype.kind == "b" for each in instruction.reads
        )
    )


def _leading_to(output: Value, leaves: Mapping[int, str]) -> tuple[dict[int, Call], dict[int, str]]:
    """The calls that lead to a value, by their `id`, and the values of leaves that they read."""
    calls: dict[int, Call] = {}
    used: dict[int, str] = {}
    stack, seen = [output], {output.number}
    while stack:
        value = stack.pop()
        if value.number in leaves:
            used[value.number] = leaves[value.number]
        elif isinstance(value.maker, Call):
            calls[id(value.maker)] = value.maker
            for each in (source_of(read, leaves) for read in value.maker.reads):
                if each.number not in seen:
                    seen.add(each.number)
                    stack.append(each)
    return calls, used


def _is_whole(call: Call) -> bool:
    """Whether a call can be made again from its operands: of an entry that draws nothing, and whose
    operands are known whole.
    """
    op = call.op
    if not isinstance(op, Op) or Effect.RANDOM in call.effects:
        return False
    is_in_order = tuple(call.arguments) == op.parameters[: len(call.arguments)]
    return is_in_order and all(
        each.array is not None or each.maker is not None for each in call.reads
    )


# --- gradients and differences --------------------------------------------------------------------


_MOST = 100
"""The elements of an input that are checked unless another number is given."""

_SECONDS = 30.0
"""What takes longer than this is checked along random directions, unless a number is given."""

_TOLD = 5.0
"""What takes longer than this is said before."""


def by_differences(
    terminal: Terminal, rerun: Rerun, options: Options, order: int, most: int | None
) -> int:
    """Compare gradients with central differences; the exit code is 1 for a wrong one."""
    try:
        return _of_output(terminal, rerun, options, order, most)
    except GradcliError as error:
        if error.code != "E402" or order == 2 or options.recording or options.wrt is not None:
            raise
        heard = _of_transforms(terminal, rerun, most)
        if not heard.checked:
            raise
    _tell(terminal, options, heard.checked, None, order, heard.places(rerun))
    return int(fails(worst(heard.checked)))


def _of_transforms(terminal: Terminal, rerun: Rerun, most: int | None) -> Transforms:
    """The derivatives that the program gets from `torch.func`, compared."""
    heard = transforms_checked(rerun, most, min(rerun.left(), _SECONDS))
    for name in sorted(heard.drawing):
        terminal.note(f"`{name}` is not checked: its function draws random numbers")
    return heard


def _tell(
    terminal: Terminal,
    options: Options,
    checked: Sequence[Checked],
    output: str | None,
    order: int,
    places: Sequence[Suspect],
) -> None:
    told = checked, output, order, places
    terminal.answer(
        Answer(partial(check_text, *told), partial(check_document, *told)), options.format
    )


def _of_output(
    terminal: Terminal, rerun: Rerun, options: Options, order: int, most: int | None
) -> int:
    here = _first(terminal, rerun)
    assert here.output is not None
    generator = np.random.default_rng(0)
    seed = _own_seed(here, options)
    if seed is None:
        seed = _seed(here, options, generator)
    # What is moved are numbers of the forward pass, and a large model's backward pass is dear.
    rerun.forward_only = order == 1
    inputs, a_run = _inputs(terminal, rerun, here, options)
    if order == 1:
        gradients = _gradients(here, seed)
        if rerun.is_large:
            _let_go(here)
        function, a_run = _quickest(rerun, here, inputs, seed, a_run)
    else:
        directions = {
            name: generator.uniform(0.5, 1.5, leaf.array.shape)
            for name, leaf in here.leaves.items()
        }

        def function(values: Mapping[str, Any]) -> float:
            there = rerun.execute(values=values, dtype="float64")
            slopes = there.slopes(seed, directions, second=False)
            return float(sum((slopes[name] * directions[name]).sum() for name in directions))

        gradients = here.slopes(seed, directions, second=True)
    checked = _compared(terminal, rerun, here, (function, gradients, inputs, most), a_run)
    checked = _of_those_moved(terminal, rerun, checked, inputs)
    if not checked:
        raise _nothing_to_move(options)
    rerun.forward_only = False
    places: list[Suspect] = []
    if worst(checked) == WRONG and order == 1 and options.recording is None:
        checked, places = by_tolerance(rerun, checked, seed)
    failed = fails(worst(checked))
    wrong = [each.name for each in checked if each.verdict == WRONG]
    places = _suspects(rerun, wrong) if failed and order == 1 else places
    if failed and order == 2:
        nodes = here.run.session.graph(here.output).nodes
        places = without_second(rerun.statements, nodes)
    if order == 1 and here.run.session.recorder.transformed:
        heard = _of_transforms(terminal, rerun, most)
        checked, failed = [*checked, *heard.checked], failed or fails(worst(heard.checked))
        places = [*places, *heard.places(rerun)]
    _tell(terminal, options, checked, here.name, order, places)
    _note_others(terminal, here, options)
    _note_unnamed(terminal, here)
    _note_unreached(terminal, here, options)
    if order == 1:
        _note_own_dtype(terminal, rerun, checked)
    here.run.tell_mistakes()
    return int(failed)


def _note_others(terminal: Terminal, here: Executed, options: Options) -> None:
    """Tell of the tensors that the program went backward from and that are not checked."""
    outputs = here.run.session.recorder.outputs.values()
    others = [each for each in outputs if each.ended and each.tensor is not here.output]
    if here.name is None or options.of is not None or not others:
        return
    names = dict.fromkeys(
        f"`{called(each)}`" if called(each) != here.name else f"another `{here.name}`"
        for each in others
    )
    chosen = next(
        (n for each in reversed(others) if (n := each.tensor.name) and n != here.name), ""
    )
    chosen = chosen if chosen in here.run.session.state.names() else ""
    terminal.note(
        f"backward() was called on {', '.join(names)} too, of which nothing is checked"
        + (f": `--of {chosen}` chooses" if chosen else "")
    )


def _note_unreached(terminal: Terminal, here: Executed, options: Options) -> None:
    """Tell of the program's leaves that no gradient reaches, and that are not checked."""
    if options.wrt is not None or options.of is not None or options.recording is not None:
        return
    assert here.output is not None
    graph = here.run.session.graph(here.output)
    reached = {id(node.leaf) for node in graph.nodes if node.leaf is not None}
    for each in here.run.session.recorder.events or ():
        if isinstance(each, Arrival):
            reached.add(id(each.node.variable))
    with here.run.session.running():
        unreached = [name for name, leaf in leaves(here.run) if id(leaf) not in reached]
    own = here.run.session.values
    names = [each for each in unreached if re.split(r"[.\[]", each)[0] in own]
    if names:
        first = names[0]
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        terminal.note(
            f"no gradient of {here.name or 'the output'} reaches `{first}`{others}, which"
            f" {'require' if others else 'requires'} grad: `gradcli why {first}.grad`"
        )


def _gradients(here: Executed, seed: Any) -> dict[str, Any]:
    """The gradients of the output; raises E404 where what it is computed of was changed since, as
    by the step of an optimizer that evaluates a closure more than once.
    """
    try:
        return here.gradients(seed)
    except GradcliError as error:
        if error.code == "E404":
            name = f"`{here.name}`" if here.name else "the output"
            error.notes += (f"the program does not go backward from {name} there, and check does",)
            error.help = f"compute {name} anew behind what changes the values that it is made of"
        raise


def _note_own_dtype(terminal: Terminal, rerun: Rerun, checked: Sequence[Checked]) -> None:
    """Tell of gradients that are not finite in the program's own dtype, which float64 does not
    show.
    """
    if rerun.is_large or any(each.verdict == NOT_FINITE for each in checked):
        return
    try:
        own = _executed(rerun, None)
        assert own.output is not None
        gradients = own.gradients(np.ones(own.output.array.shape))
    except GradcliError:
        return
    names = [each.name for each in checked if not np.isfinite(gradients.get(each.name, 0)).all()]
    if names:
        are = f"and {len(names) - 1} more are" if len(names) > 1 else "is"
        terminal.note(
            f"this holds in float64: in the program's own dtype {names[0]}.grad {are} not finite,"
            " and `gradcli blame` finds where that begins"
        )


def _note_unnamed(terminal: Terminal, here: Executed) -> None:
    """Tell of the leaves that are not checked, as nothing leads to them in the end."""
    if here.unnamed:
        leaves = "1 leaf" if here.unnamed == 1 else f"{here.unnamed} leaves"
        terminal.note(
            f"{leaves} of {here.name or 'the output'} cannot be reached by a name of"
            f" {'its' if here.unnamed == 1 else 'their'} own when the program ends, and"
            f" {'is' if here.unnamed == 1 else 'are'} not checked"
        )


def _let_go(executed: Executed) -> None:
    """Give back what a large run keeps beside its graph, and what runs before it left."""
    for leaf in executed.leaves.values():
        meta_of(leaf).grad = None
    executed.run.session.recorder.events = None
    gc.collect()
    return_freed_memory()


def _inputs(
    terminal: Terminal, rerun: Rerun, here: Executed, options: Options
) -> tuple[dict[str, Any], float]:
    """The inputs that can be moved, with their values, and the seconds that a run takes."""
    inputs = {name: np.array(leaf.array, float) for name, leaf in here.leaves.items()}
    inputs.update(rerun.beginnings(here))
    if not rerun.is_large:
        rerun.execute(values=inputs, dtype="float64")
    began = perf_counter()
    ran = rerun.execute(values=inputs, dtype="float64")
    a_run, missed = perf_counter() - began, ran.missed
    rerun.settled |= unused(ran, inputs.keys())
    rerun.moments, current = moments_of(rerun, here)
    inputs.update(current)
    for name in sorted(missed - rerun.moments.keys()):
        terminal.note(_UNMOVED.format(name))
        del inputs[name]
    if options.wrt is not None:
        inputs = {name: array for name, array in inputs.items() if name in options.wrt}
    if not inputs:
        raise _nothing_to_move(options)
    _leave_out_draws(terminal, here, inputs)
    return _ahead_of_none(terminal, rerun, inputs), a_run


_UNMOVED = "`{}` cannot be moved from outside, and is not checked"


def _of_those_moved(
    terminal: Terminal, rerun: Rerun, checked: Sequence[Checked], inputs: Mapping[str, Any]
) -> list[Checked]:
    """What was checked, without the inputs whose values the program writes over before it uses
    them, as a lazy layer does at its first call: no difference is seen of them.
    """
    still = [e for e in checked if e.verdict == WRONG and not any(n.numeric for n in e.elements)]
    if not still or not all(each.name in inputs for each in still):
        return list(checked)
    names = {each.name for each in still}
    there = rerun.execute(values=inputs, dtype="float64")
    assert there.output is not None
    graph = there.run.session.graph(there.output)
    used = {id(node.leaf) for node in graph.nodes if node.leaf is not None}
    unmoved = {name for name in names if id(there.leaves.get(name)) not in used}
    for name in sorted(unmoved):
        terminal.note(_UNMOVED.format(name))
    return [each for each in checked if each.name not in unmoved]


def _quickest(
    rerun: Rerun, here: Executed, inputs: Mapping[str, Any], seed: Any, a_run: float
) -> tuple[Callable[[Mapping[str, Any]], float], float]:
    """What gives the output's number for values of the inputs, and the seconds that it takes: the
    calls alone that lead from these to it, where they give what running the program does with all
    inputs moved; else the program.
    """

    def run(values: Mapping[str, Any]) -> float:
        output = rerun.execute(values=values, dtype="float64").output
        return np.nan if output is None else float((np.asarray(output.array) * seed).sum())

    kept = rerun.execute(values=inputs, dtype="float64", record="kept")
    quick = _as_run(run, recomputed(kept), inputs, seed)
    loops = kept.run.session.interpreter.long_loops
    if quick is None and loops is not None and loops.unheard and 2 * a_run * len(inputs) > _SOON:
        quick = _as_run(run, recomputed(_recorded_whole(rerun, here, inputs)), inputs, seed)
    return quick or (run, a_run)


_SOON = 0.5
"""What takes longer with one element of each input is worth a recording of all iterations."""


def _recorded_whole(rerun: Rerun, here: Executed, inputs: Mapping[str, Any]) -> Executed:
    """A run of which all iterations are recorded: those that nodes of the graph are not made in may
    lead to the output too.
    """
    former = rerun.rounds, rerun.moments
    try:
        rerun.rounds = None
        rerun.moments, _ = moments_of(rerun, here)
        return rerun.execute(values=inputs, dtype="float64", record="kept")
    finally:
        rerun.rounds, rerun.moments = former


def _as_run(
    run: Callable[[Mapping[str, Any]], float],
    again: Recomputed | None,
    inputs: Mapping[str, Any],
    seed: Any,
) -> tuple[Callable[[Mapping[str, Any]], float], float] | None:
    """What makes calls of a run again, and runs the program where that takes another path, with the
    seconds that it takes; None where it does not give what the program gives.
    """
    if again is None:
        return None

    def made_again(values: Mapping[str, Any]) -> float | None:
        moved = {name: each for name, each in values.items() if each is not inputs[name]}
        output = again(moved)
        return None if output is None else float((output * seed).sum())

    def function(values: Mapping[str, Any]) -> float:
        number = made_again(values)
        return run(values) if number is None else number

    for nudge in _NUDGES:
        generator = np.random.default_rng(2)
        moved = {
            name: array + nudge * generator.uniform(-1, 1, array.shape) * (1 + np.abs(array))
            for name, array in inputs.items()
        }
        try:
            began = perf_counter()
            number = made_again(moved)
            seconds = perf_counter() - began
            if number is not None:
                is_alike = np.isclose(number, run(moved), rtol=_SAME, atol=_SAME, equal_nan=True)
                return (function, seconds) if is_alike else None
        except GradcliError as error:
            if error.exit_code == _OF_LIMITS:
                raise
            return None
    return None


_SAME = 1e-12
"""How close two numbers in double precision are that differ by rounding."""


def _first(terminal: Terminal, rerun: Rerun) -> Executed:
    """The first run, which says what all will take at least where that is long."""
    began = perf_counter()
    here = _executed(rerun)
    fewest = _FEWEST * (perf_counter() - began)
    if fewest > _TOLD and rerun.is_large:
        terminal.note(f"the program runs {_RUNS} times or more: at least {fewest:.0f} s")
    return here


def _ahead_of_none(terminal: Terminal, rerun: Rerun, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that can be moved: not those that reach the output through an operation whose
    results are known from a recording alone; raises E204 where there is no other.
    """
    recording = rerun.options.recording
    if recording is None or not recording.opaque:
        return dict(inputs)
    kept: dict[str, Any] = {}
    behind: dict[str, OtherInputsError] = {}
    for name, array in inputs.items():
        try:
            rerun.execute(values={name: array + _NUDGE * (1 + np.abs(array))}, dtype="float64")
            kept[name] = array
        except OtherInputsError as error:
            behind[name] = error
    for name, reason in behind.items() if kept else ():
        terminal.note(f"`{name}` is not checked: {reason.message}")
    if not kept:
        raise next(iter(behind.values()))
    return kept


_NUDGE = 1e-3

_NUDGES = (_NUDGE, 1e-5, 1e-7)
"""How far inputs are moved to compare two functions: where the path is another one, less."""

_RUNS, _FEWEST = 4, 2.5
"""So often a program runs at least, and how many times as long as the first all runs take: the
others leave out the backward pass.
"""


def _compared(
    terminal: Terminal,
    rerun: Rerun,
    here: Executed,
    asked: tuple[Callable[[Mapping[str, Any]], float], Any, Mapping[str, Any], int | None],
    a_run: float,
) -> list[Checked]:
    """Compare as many elements as there is time for, or directions where they take too long."""
    function, gradients, inputs, most = asked
    timeout = rerun.left()
    elements = sum(min(array.size, most or _MOST) for array in inputs.values())
    cost = 2 * elements * a_run
    seconds = min(timeout, _SECONDS if most is None else timeout)
    time = Time(seconds, timeout, perf_counter())
    precision = _precision(here)
    if cost > seconds and most is None:
        each = 2 * a_run * len(inputs)
        moved = "all of an input are moved at once"
        if rerun.options.recording is not None and each > seconds and len(inputs) > 1:
            moved, each = f"all {len(inputs)} inputs are moved at once", 2 * a_run
            function, gradients, inputs = _together(function, gradients, inputs)
        count = max(1, min(_DIRECTIONS, int(seconds / each)))
        terminal.note(
            f"{elements} elements would take about {cost:.0f} s: {moved}, along {count} random"
            f" direction{'s' * (count > 1)}, in about {count * each:.0f} s, or up to {SWEEP} times"
            " as long where slopes depend on the step; --elements N checks N of each"
        )
        checked = check_along(function, gradients, inputs, count, precision, time)
    else:
        if cost > _TOLD:
            terminal.note(f"{elements} elements take about {cost:.0f} s")
        checked = compare(
            function, gradients, inputs, most or _MOST, precision,
            one_triangle=_reads_a_triangle(here), time=time,
        )  # fmt: skip
        count = _MOST if most is None else most
    if any(
        len(each.elements) < (count if each.along else min(each.size, count)) for each in checked
    ):
        terminal.note("there was no time for the others; --timeout and --elements choose")
    return checked


def _together(
    function: Callable[[Mapping[str, Any]], float], gradients: Any, inputs: Mapping[str, Any]
) -> tuple[Callable[[Mapping[str, Any]], float], dict[str, Any], dict[str, Any]]:
    """A function of all inputs one behind the other, with its gradient and their values."""
    ends = np.cumsum([array.size for array in inputs.values()])[:-1]
    called = f"all {len(inputs)} inputs"

    def whole(values: Mapping[str, Any]) -> float:
        parts = zip(inputs.items(), np.split(values[called], ends), strict=True)
        return function({name: part.reshape(array.shape) for (name, array), part in parts})

    def joined(arrays: Any) -> dict[str, Any]:
        return {called: np.concatenate([np.ravel(arrays[name]) for name in inputs])}

    return whole, joined(gradients), joined(inputs)


_DIRECTIONS = 5
"""So many random directions, if there is time."""

_TRIANGULAR = ("LinalgCholesky", "LinalgEigh", "LinalgLdl", "CholeskyInverse")
"""Nodes of ops that take a matrix for symmetric begin with these."""


def _reads_a_triangle(executed: Executed) -> bool:
    """Whether an op of the program reads one triangle of a matrix."""
    assert executed.output is not None
    nodes = executed.run.session.graph(executed.output).nodes
    return any(node.name.startswith(_TRIANGULAR) for node in nodes)


def _suspects(rerun: Rerun, wrong: Sequence[str]) -> list[Suspect]:
    """What in the program may make its gradients wrong, given the names of those that are."""
    fresh = rerun.execute(dtype="float64", record="values")
    assert fresh.output is not None
    session, root = fresh.run.session, fresh.output.grad_fn
    nodes = session.graph(fresh.output).nodes
    seed = Tensor(np.ones(fresh.output.array.shape))
    events: Sequence[Event] = []
    if root is not None and root in session.recorder.ran:
        events = session.recorder.events or []
    elif root is not None:
        events = session.rehearse(fresh.output, seed)
    named = suspects(rerun.statements, nodes, events, session.recorder)
    if any(each.function is not None for each in named):
        named = judged(rerun.execute(dtype="float64", record="kept"), named)
    if not named and root is not None:
        named = [
            Suspect(place, f"{text}: differences see this way, gradients do not")
            for place, text in places_beside(rerun, fresh, wrong)
        ]
    return list({(each.place.start, each.text): each for each in named}.values())


def _precision(executed: Executed) -> float:
    """The relative rounding error of the coarsest dtype in the graph."""
    assert executed.output is not None
    nodes = executed.run.session.graph(executed.output).nodes
    kinds = {dtype for node in nodes for _, dtype in node.node.metadata if dtype.kind in "fV"}
    errors = [_BFLOAT16 if each.kind == "V" else float(np.finfo(each).eps) for each in kinds]
    return max(errors, default=0.0)


_BFLOAT16 = 2.0**-7
"""The rounding error of bfloat16, of which NumPy knows nothing."""

_IMPLICIT = ("DirichletBackward", "StandardGammaBackward")
"""Nodes of draws by rejection, whose gradients are implicit ones."""


def _leave_out_draws(terminal: Terminal, here: Executed, inputs: dict[str, Any]) -> None:
    """Leave out the inputs of draws by rejection; raises E413 where no other is there."""
    for name in sorted(_drawn_by_rejection(here) & inputs.keys()):
        terminal.note(
            f"`{name}` is not checked: numbers are drawn by rejection with it, and their gradient"
            " is an implicit one, which differences of the draws do not show"
        )
        del inputs[name]
    if not inputs:
        raise GradcliError("E413", "no input is left whose gradient differences show")


def _drawn_by_rejection(executed: Executed) -> set[str]:
    """The inputs that reach the output through a draw whose gradient differences do not show."""
    assert executed.output is not None
    graph = executed.run.session.graph(executed.output)
    waiting = [node for node in graph.nodes if node.name.lstrip("_").startswith(_IMPLICIT)]
    below = {node.id: node for node in waiting}
    for node in waiting:
        for edge in node.edges:
            if edge.node is not None and edge.node.id not in below:
                below[edge.node.id] = edge.node
                waiting.append(edge.node)
    reached = {id(node.leaf) for node in below.values() if node.leaf is not None}
    return {name for name, leaf in executed.leaves.items() if id(leaf) in reached}


class _NoFloat64(GradcliError):
    """E413 of a program that runs, and not in float64."""


def _executed(rerun: Rerun, dtype: str | None = "float64") -> Executed:
    """The program in float64 or another dtype, with inputs that can be moved."""
    try:
        executed = rerun.execute(dtype=dtype, record="ends")
    except GradcliError as error:
        if dtype is None or error.exit_code == _OF_LIMITS:
            raise
        rerun.execute()  # raises what is wrong with the program itself
        raise _NoFloat64(
            "E413",
            "differences need float64, and the program does not run in it:"
            f" {error.raises}: {error.message}",
            span=error.span,
            help="--equals and --against compare gradients made by hand in its own dtype",
        ) from error
    if executed.output is not None and not executed.output.requires_grad:
        raise _without_grad(rerun, executed)
    if executed.output is None or not executed.leaves:
        raise _nothing_to_move(rerun.options)
    bound = [] if executed.run.bindings is None else executed.run.bindings.inputs()
    if executed.output.grad_fn is None and all(leaf is not executed.output for _, leaf in bound):
        leaf_error = bare_leaf()
        with executed.run.session.running():
            others = [n for n, leaf in leaves(executed.run) if leaf is not executed.output]
        if others:
            why = f"`gradcli why {others[0]}.grad` says where its way to the output ends"
            leaf_error.help = f"{why}; {leaf_error.help}"
        raise leaf_error
    graph, recorder = executed.run.session.graph(executed.output), executed.run.session.recorder
    if executed.seed() is None and any(node.node in recorder.ran for node in graph.nodes):
        # A pass of the program freed part of the graph: what it saved is kept in another run.
        executed = rerun.execute(dtype=dtype, record="all")
        assert executed.output is not None
        graph, recorder = executed.run.session.graph(executed.output), executed.run.session.recorder
        recorder.revive(node.node for node in graph.nodes)
    return executed


_OF_LIMITS = 5
"""The exit code of what is a limit or missing on this machine, and says nothing of a dtype."""


def _without_grad(rerun: Rerun, executed: Executed) -> GradcliError:
    """The error of an output that does not require grad, which says why it does not."""
    statements = rerun.statements
    name = executed.name or "the output"
    made = [each for each in statements if name_uses(each).get(name) == ASSIGNED]
    span = (made or [*statements])[-1].span
    error = GradcliError(
        "E402",
        f"{name} does not require grad, so it has no gradient to check",
        span=span,
        help="give an input a value behind the program (`x=2`), or make it with requires_grad=True",
    )
    label_detachments(error, executed.run, statements, rerun.arguments)
    return error


def _nothing_to_move(options: Options) -> GradcliError:
    """The error of no input to check; with `--wrt` of the names given."""
    if options.wrt is not None:
        return GradcliError(
            "E402",
            f"`--wrt {','.join(options.wrt)}` names no input that the program computes with",
            help="leave it out to check every input",
        )
    return GradcliError(
        "E402",
        "the program computes nothing from an input that has a name and requires grad",
        help="give an input a value behind the program: `x=2`",
    )


def _own_seed(executed: Executed, options: Options) -> Any:
    """The seed of the program's own backward pass, None where it has none; raises E402 where that
    pass began at several tensors.
    """
    if options.seed is not None:
        return None
    assert executed.output is not None
    started = executed.run.session.recorder.outputs.values()
    for each in started:
        if each.tensor is executed.output and each.count > 1:
            raise GradcliError(
                "E402",
                f"backward() was called on {each.count} tensors at once, and one can be checked",
                span=each.place,
                help="call it on their sum, each times its gradient",
            )
    return executed.seed()


def _seed(executed: Executed, options: Options, generator: Any) -> Any:
    """The seed that was asked for; 1 for a number, else random: ones hide exchanges."""
    assert executed.output is not None
    shape = executed.output.array.shape
    if options.seed is not None:
        seed = asked_seed(executed.run.session, options.seed, executed.output)
        return np.asarray(seed.array, float)
    size = executed.output.array.size
    return np.ones(shape) if size == 1 else generator.uniform(0.5, 1.5, shape)


# --- gradients made by hand ---------------------------------------------------------------------


def by_hand(
    terminal: Terminal,
    rerun: Rerun,
    options: Options,
    against: str | dict[str, Any] | None,
    equals: Sequence[tuple[str | None, str]],
) -> int:
    """Compare gradients with ones made by hand; the exit code is 1 for a wrong one."""
    try:
        here, dtype = _executed(rerun), "float64"
    except _NoFloat64:
        here, dtype = _executed(rerun, None), None
    assert here.output is not None
    seed = np.ones(here.output.array.shape)
    if options.seed is not None:
        seed = _seed(here, options, None)
    right = here.gradients(seed)
    by_name: dict[str, Any] = {}
    texts: dict[str, str] = {}
    if against is not None:
        by_name = _given(here.run.session, against, right)
    failures: dict[str, GradcliError] = {}
    for name, expression in equals:
        if name is None and len(right) > 1:
            names = ", ".join(f"{each}=…" for each in right)
            raise UsageError(f"--equals: say of which input: {names}")
        called = next(iter(right)) if name is None else name
        if called not in right:
            raise UsageError(f"--equals: {not_in_program(called, [*right], 'input ')}")
        texts[called] = expression
        try:
            array = evaluate(here, expression)
        except GradcliError as error:
            failures[called], by_name[called] = error, None
            continue
        # A number stands for itself in every element.
        by_name[called] = np.broadcast_to(array, right[called].shape) if not array.ndim else array
    clues = _Clues(here, rerun.execute(dtype=dtype))
    comparisons: list[Comparison] = []
    for name, array in by_name.items():
        made = Comparison(name, array, right[name], clues.of(texts.get(name)))
        if array is None and made.diagnosis.startswith("it cannot"):
            raise failures[name]
        comparisons.append(made)
    shown = Answer(partial(comparison_text, comparisons), partial(comparison_document, comparisons))
    terminal.answer(shown, options.format)
    return int(any(each.diagnosis for each in comparisons))


class _Clues:
    """What a wrong gradient of a program may come from.

    Args:
        here: the program, differentiated; `fresh`: the program before its backward pass.
    """

    def __init__(self, here: Executed, fresh: Executed) -> None:
        self._here = here
        self._factors = _factors(fresh)
        assert fresh.output is not None
        nodes = fresh.run.session.graph(fresh.output).nodes
        self._means = [each for node in nodes for each in _mean_of(node)]

    def of(self, expression: str | None) -> Clues:
        """The clues for a gradient, and the expression that it is the value of."""
        if expression is None:
            return Clues(self._factors, self._means)
        divides = any(word in expression for word in ("/", "mean", "numel", "len("))
        return Clues(
            self._factors, self._means, divides, lambda right: self._mend(expression, right)
        )

    def _mend(self, expression: str, right: Any) -> Edit | None:
        try:
            node = parse_expression(Source("option --equals", expression))
        except GradcliError:
            return None
        values = self._here.run.session.state.names().items()
        shapes = {name: tuple(v.array.shape) for name, v in values if type(v) is Tensor}
        for edit in islice(edits(node, shapes), _MOST_EDITS):
            try:
                mended = evaluate(self._here, edit.text)
            except GradcliError:
                continue
            if mended.shape == right.shape and is_close(mended, right):
                return edit
        return None


_MOST_EDITS = 100


def _mean_of(node: GraphNode) -> list[tuple[int, str]]:
    """How many numbers a node averages, with its source text."""
    op = getattr(node.node, "op", None)
    if op is None or node.place is None or not node.edges:
        return []
    operand = node.edges[0].node
    shape = () if operand is None else operand.outputs[node.edges[0].output_nr][0]
    text = one_line(node.place.text)
    count = int(np.prod(shape, dtype=int))
    if op.name.startswith("mean"):
        return [(count // max(1, int(np.prod(node.outputs[0][0], dtype=int))), text)]
    if arguments_of(node.node).get("reduction") == 1:
        return [(count, text), *([(shape[0], text)] if shape else [])]
    return []


def _factors(executed: Executed) -> dict[str, Any]:
    """What may be a forgotten factor: names' values, and slopes by source text."""
    assert executed.output is not None
    factors: dict[str, Any] = {}
    for name, value in executed.run.session.state.names().items():
        if type(value) is Tensor and value.dtype.is_floating_point:
            factors[f"`{name}`"] = np.asarray(value.array)
    if executed.output.array.size != 1:
        return factors
    for event in executed.run.session.rehearse(executed.output):
        if not isinstance(event, Step) or len(event.grads) != 1 or event.grads[0] is None:
            continue
        for passed in event.gradients:
            if passed is None or passed.shape != event.grads[0].shape:
                continue
            with np.errstate(all="ignore"):
                slope = np.asarray(passed / event.grads[0])
            text = event.node.node_name if event.node.place is None else event.node.place.text
            factors.setdefault(f"the slope of `{one_line(text)}`", slope)
    return factors


def _given(
    session: Session, against: str | dict[str, Any], right: Mapping[str, Any]
) -> dict[str, Any]:
    """The gradients by name or in a file: under `x.grad` or `x`, or the only one."""
    if isinstance(against, dict):
        for name in against:
            if name.removesuffix(".grad") not in right:
                raise UsageError(f"--against: {not_in_program(name, [*right], 'input ')}")
        return {name.removesuffix(".grad"): _numbers(name, each) for name, each in against.items()}
    path = against
    with session.running():  # whose limits say whether and how much may be read
        arrays = read(DataFile.named(path))
        if isinstance(arrays, Mapping):
            keys = list(arrays)
            chosen = {name: f"{name}.grad" if f"{name}.grad" in keys else name for name in right}
            arrays_by_name = {
                name: _numbers(f"{path}:{key}", arrays[key])
                for name, key in chosen.items()
                if key in keys
            }
        else:
            keys, arrays_by_name = [], {next(iter(right)): _numbers(path, arrays)}
    if not keys and len(right) > 1:
        raise UsageError(f"--against: {path} holds one array, and there are several")
    if not arrays_by_name:
        raise UsageError(f"--against: {path} holds {', '.join(keys)}, and none of the inputs")
    return arrays_by_name


def _numbers(place: str, value: Any) -> Any:
    """What a file holds as an array of numbers; raises E505 where it is none."""
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):  # lists of unequal length; an integer beyond all dtypes
        array = np.empty(0, object)
    if array.dtype.kind not in "biufc":
        raise GradcliError("E505", f"{place}: it holds no array of numbers")
    return array
