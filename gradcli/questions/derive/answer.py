"""The gradients of a result as formulas, in the form that `gradcli derive` is asked for; and what
they hold for: the branches that the run took, the iterations of its loops, the elements that it
picked by values, the masks that it drew, the values that stand as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.autograd.recording.trace_recorder import TraceRecorder, source_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Source, Span
from gradcli.language.parser.parser import parse_program
from gradcli.language.provenance import Evaluation, Provenance, record_provenance
from gradcli.language.rounds import NotRecorded
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.syntax import Name
from gradcli.questions.derive import tell as derivation
from gradcli.questions.derive.jacobians import jacobians, reach
from gradcli.questions.derive.latex import latex
from gradcli.questions.derive.program import (
    Derivation,
    agrees,
    derive,
    is_pattern,
    is_written,
    run_formulas,
)
from gradcli.questions.derive.tell import derivation_document
from gradcli.questions.derive.textbook import textbook
from gradcli.questions.why.detachments import places_beside
from gradcli.questions.why.suspects import suspects
from gradcli.recorded.recorded_run import Dataflow, ignores_values
from gradcli.recorded.symbols.tree import Name as SymbolName
from gradcli.recorded.symbols.tree import Operation, text_of
from gradcli.running.arguments.name_uses import calls_in, free_names
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import Argument
from gradcli.running.lookup import missing_inputs
from gradcli.running.rerun import Rerun, moments_of, rerun_of
from gradcli.running.run import Run
from gradcli.running.source import Program, run_program
from gradcli.show.answer import Answer
from gradcli.show.style import PLAIN, Style, one_line
from gradcli.trace.ir import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.autograd.tensor import Tensor
    from gradcli.language.tree.syntax import Statement
    from gradcli.questions.derive.program import Derivation, HasWordFor, IsValue
    from gradcli.recorded.result import Result
    from gradcli.running.source import Asked


# --- conditions -----------------------------------------------------------------------------------


_TEST, _LOOP, _PICK, _COUNT, _CHOICE = "test", "loop", "pick", "count", "choice"

_CHOOSING = ("max", "min", "sorted")
"""Functions of Python that choose among their arguments."""

_DEEPEST = 100
"""How many values lie between one and what it is computed from, at most."""


def conditions_of(
    derived: Derivation,
    program: str,
    recorder: TraceRecorder,
    provenance: Provenance,
    inputs: Sequence[Tensor],
    output: Tensor,
    divides: bool,
) -> list[str]:
    """What the formulas hold for, in the words of the program; what they divide by too if they do
    so where they are shown, as the gradient that a Hessian is of is not.
    """
    flow, given = Dataflow(recorder, provenance), {id(each) for each in inputs}
    varying = _varying(flow, provenance, given, _outdated(flow, recorder, inputs))
    before = _before(output, provenance)
    conditions = [*_decisions(parse_program(Source("program", program)), before, varying)]
    needed = flow.ingredients([id(output)]) - given
    conditions += _draws(derived, program, recorder, provenance, varying, needed)
    conditions += _standing(derived, provenance, varying)
    if divides:
        conditions += _nonzero(derived, recorder, varying)
    return list(dict.fromkeys(conditions))


def _outdated(flow: Dataflow, recorder: TraceRecorder, inputs: Sequence[Tensor]) -> set[int]:
    """The tensors made before the inputs that the program changed got their last values."""
    held = [source_of(value) for value in map(recorder.known, inputs) if value is not None]
    updates = [value.number for value in held if value.maker is not None]
    if not updates:
        return set()
    made = {id(each): recorder.known(each) for each in flow.tensors()}
    given = {id(each) for each in inputs}
    last = min(updates)
    return {
        key
        for key, value in made.items()
        if value is not None and value.number < last and key not in given
    }


def _varying(
    flow: Dataflow, provenance: Provenance, given: set[int], outdated: set[int]
) -> set[int]:
    """What is computed from the inputs, by the gradients of earlier passes too."""
    gradients = {
        id(each.value): id(each.parts[0].value)
        for each in provenance.evaluations
        if isinstance(each.node, tree.Attribute)
        and each.node.name == "grad"
        and type(each.value) is Tensor
        and each.parts
    }
    varying: set[int] = set()
    begins = given
    while begins - varying:
        varying |= flow.computed_from(begins, without=outdated)
        begins = {key for key, owner in gradients.items() if owner in varying} - outdated
    return varying


def _before(output: Tensor, provenance: Provenance) -> Sequence[Evaluation]:
    """What was evaluated before an output was there; all where it was written to afterwards."""
    if output.version:
        return provenance.evaluations
    ends = (n for n, each in enumerate(provenance.evaluations) if each.value is output)
    return provenance.evaluations[: next(ends, None)]


def _decisions(
    statements: Sequence[tree.Statement], evaluations: Sequence[Evaluation], varying: set[int]
) -> Iterator[str]:
    """What the program decided by values that the inputs change."""
    deciding = {_place(node): kind for node, kind in _deciding(statements)}
    seen: dict[_Place, list[Any]] = {}
    for each in evaluations:
        place = _place(each.node)
        if place in deciding and _varies(each, varying, 0):
            chosen = _chosen(each) if deciding[place] == _CHOICE else _plain(each.value)
            seen.setdefault(place, []).append(chosen)
    for place, values in seen.items():
        text = one_line(place[0][place[1] : place[2]])
        kind = deciding[place]
        if kind == _LOOP:
            rounds = sum(map(bool, values))
            yield f"with {rounds} round{'s' * (rounds != 1)} of the loop `while {text}`"
        elif kind == _TEST:
            truths = {bool(value) for value in values}
            if len(truths) == 1:
                yield f"for {text}" if truths == {True} else f"where {text} is false"
            else:
                yield f"where {text} is {', '.join(str(bool(value)) for value in values)} in turn"
        elif kind == _CHOICE:
            yield f"where {text} is {', '.join(dict.fromkeys(values))}"
        elif all(type(value) is int for value in values):
            yield f"for {text} = {', '.join(map(str, dict.fromkeys(values)))}"


def _chosen(evaluation: Evaluation) -> str:
    """What a function of Python chose, in the words of the program."""
    value, source = evaluation.value, evaluation.node.span.source
    if isinstance(value, list):
        return "in the order that it has at these inputs"
    if type(value) in (int, float):
        return str(value)
    arguments = [each for each in evaluation.parts if each.node.span.source is source]
    texts = [one_line(each.node.span.text) for each in arguments if each.value is value]
    return texts[0] if texts else "the element that it is at these inputs"


_Place = tuple[str, int, int]
"""Where an expression stands: the text, and its part; the same in each parse of it."""


def _place(node: tree.Expression) -> _Place:
    return node.span.source.text, node.span.start, node.span.end


def _deciding(statements: Sequence[tree.Statement]) -> Iterator[tuple[tree.Expression, str]]:
    """The expressions that decide what a program computes."""
    for node in tree.nodes_of(list(statements)):
        if isinstance(node, tree.If):
            yield from ((test, _TEST) for test, _ in node.branches)
        elif isinstance(node, tree.While):
            yield node.test, _LOOP
        elif isinstance(node, tree.Conditional):
            yield node.test, _TEST
        elif isinstance(node, tree.ComprehensionFor):
            yield from ((test, _TEST) for test in node.conditions)
        elif isinstance(node, tree.Subscript):
            yield node.index, _PICK
        elif isinstance(node, tree.Call) and node.function.span.text == "range":
            yield from ((each.value, _COUNT) for each in node.arguments)
        elif isinstance(node, tree.Call) and node.function.span.text in _CHOOSING:
            yield node, _CHOICE


def _varies(evaluation: Evaluation, varying: set[int], depth: int) -> bool:
    """Whether a value is computed from what the inputs change."""
    if type(evaluation.value) is Tensor:
        return id(evaluation.value) in varying
    if type(evaluation.value) is float and id(evaluation.value) in varying:
        return True
    if depth > _DEEPEST or ignores_values(evaluation.node):
        return False
    return any(_varies(part, varying, depth + 1) for part in evaluation.parts)


def _plain(value: Any) -> Any:
    """A tensor of one element as the number in it."""
    return value.array.item() if type(value) is Tensor and value.array.size == 1 else value


def _draws(
    derived: Derivation,
    program: str,
    recorder: TraceRecorder,
    provenance: Provenance,
    varying: set[int],
    needed: set[int],
) -> Iterator[str]:
    """The expressions that drew numbers which stand in the formulas, or made masks of them."""
    draws = [each.span for each in recorder.trace.instructions if Effect.RANDOM in each.effects]
    spans = {(span.source.text, span.start, span.end) for span in draws if span is not None}
    inputs = [derived.inputs[name] for name in derived.described]
    for each in provenance.evaluations:
        value = each.value
        is_own = each.node.span.source.text == program  # and no value of an argument
        if type(value) is not Tensor or id(value) not in needed or not is_own:
            continue
        is_input = value.name or any(np.array_equal(value.array, each) for each in inputs)
        if _place(each.node) in spans and (id(value) in varying or not is_input):
            yield f"with what `{one_line(each.node.span.text)}` drew"


def _standing(derived: Derivation, provenance: Provenance, varying: set[int]) -> Iterator[str]:
    """The expressions whose values follow from the inputs by what is no operation of the graph, as
    the sign of an earlier gradient does, and stand in the formulas as they are.
    """
    tensors = {id(tensor) for tensor, _ in derived.standing if tensor is not None}
    indices = [array for tensor, array in derived.standing if tensor is None]
    for each in provenance.evaluations:
        value = each.value
        if type(value) is not Tensor or id(value) not in varying:
            continue
        picked = _positions(value.array)
        met = [array for array in indices if any(np.array_equal(array, one) for one in picked)]
        if id(value) in tensors or met:
            tensors.discard(id(value))
            indices = [array for array in indices if all(array is not one for one in met)]
            span = each.node.span
            yield f"where `{one_line(span.text)}` (line {span.line}) is what it is at these inputs"


def _positions(index: Any) -> Sequence[Any]:
    """The arrays of positions that an index takes: those of a mask are where it is true."""
    if index.dtype.kind == "b":
        return np.nonzero(index) if index.ndim else ()
    return (index,) if index.dtype.kind == "i" else ()


_PRODUCTS = ("prod", "cumprod")


def _nonzero(derived: Derivation, recorder: TraceRecorder, varying: set[int]) -> Iterator[str]:
    """The operands of products that the formulas divide by."""
    arrays = {**derived.inputs, **{line.name: line.array for line in derived.shown}}
    parts = (part for line in derived.shown for part in line.formula.walk())
    quotients = [each for each in parts if isinstance(each, Operation) and each.operator == "/"]
    divisors = [part for each in quotients for part in each.parts[-1].walk()]
    names = {part.name for part in divisors if isinstance(part, SymbolName)}
    for call in recorder.calls:
        operand = call.arguments.get("self")
        if call.op.name.partition(".")[0] in _PRODUCTS and id(operand) in varying:
            numbers = np.asarray(None if operand is None else operand.array)
            held: list[str] = [each for each in names if each in arrays]
            alike = [each for each in held if np.array_equal(arrays[each], numbers)]
            name = alike[0] if alike else None
            if quotients and numbers.all():
                text = one_line(call.span.text) if call.span is not None else call.op.name
                yield f"where {name} ≠ 0" if name else f"where no factor of `{text}` is 0"


# --- answers --------------------------------------------------------------------------------------


_GRADIENT_OF = "gradient_of_"

_OF_MATRICES = {
    "tr": "torch.trace",
    "trace": "torch.trace",
    "inv": "torch.linalg.inv",
    "pinv": "torch.linalg.pinv",
}
"""Functions of matrices that have a longer name in programs, or another meaning."""

_SEED = 3
"""Of the numbers that symbols stand for."""


def record_values(run: Run) -> None:
    """Let a run, before its program begins, be recorded with the elements of all its values."""
    state = run.session.interpreter.state
    state.recorder = recorder = TraceRecorder(keeps=True, arrays=True)
    if run.replay is not None:
        run.replay.share_memory(recorder)
    # A lazy array has no value to note down yet.
    state.lazy_from = 1 << 62
    record_provenance(run.session.interpreter)


def note_last_rounds(run: Run) -> None:
    """Let a run note where the last iterations begin that it records."""
    loops, recorder = run.session.interpreter.long_loops, run.session.recorder
    assert loops is not None

    def note() -> None:
        recorder.resumed_at = len(recorder.values)

    loops.resumed = note


def check_inputs_recorded(run: Run, result: Result) -> None:
    """Raise `NotRecorded` where iterations that were not recorded may have decided by the values of
    the inputs, or kept some: unless the program has given all of them other values since.
    """
    loops, recorder = run.session.interpreter.long_loops, run.session.recorder
    if loops is None or not loops.unheard:
        return
    known = [recorder.known(each.tensor) for each in result.gradients]
    sources = [None if value is None else source_of(value) for value in known]
    if not all(
        value is not None and value.maker is not None and value.number >= recorder.resumed_at
        for value in sources
    ):
        raise NotRecorded


def symbols(statements: Sequence[Statement], arguments: Sequence[Argument]) -> list[Argument]:
    """Values for the names that nothing gives one: each stands for any positive number."""
    names = missing_inputs(statements, [argument.name for argument in arguments])
    # No name is near 1, where `log(x)` and `x - 1` are near 0 and sums cancel.
    random = np.random.default_rng(_SEED)
    words = {name: f"{name}={random.uniform(0.3, 1.4):.4f}" for name in names}
    values = [Argument(name, False, word, len(name) + 1) for name, word in words.items()]
    for each in values:
        each.assumed = True
    return values


def with_functions_of_matrices(asked: Asked) -> None:
    """Let `tr(A)`, `trace(A)` and `inv(A)` in a program that has no such names be what they are in
    a formula of matrices.
    """
    text = asked.program.text()
    if not any(f"{name}(" in text for name in _OF_MATRICES):
        return
    statements = parse_program(Source(asked.program.name, text))
    bound = [argument.name for argument in asked.arguments]
    free = free_names(statements, bound, lambda name: name not in _OF_MATRICES)
    calls = [call.function for call in calls_in(statements) if isinstance(call.function, Name)]
    for name in sorted(calls, key=lambda each: -each.span.start):
        if name.name in free:
            before, after = text[: name.span.start], text[name.span.end :]
            text = f"{before}{_OF_MATRICES[name.name]}{after}"
    asked.program = Program(text, asked.program.name)


def seed_for(asked: Asked, named: bool) -> str | None:
    """A seed for an output of several elements, which `seed` stands for in the formulas: that of
    the program's own backward pass if it has one. None where it is 1, and where the program cannot
    be run.

    Args:
        named: whether the formulas that are shown have it.
    """
    try:
        executed = rerun_of(asked).execute(record="ends")
        own = None if executed.output is None else executed.seed()
    except GradcliError:
        return None
    output = executed.output
    if output is None or output.grad_fn is None:
        return None
    if output.array.size == 1 and (own is None or own == 1):
        return None
    if named:
        told = "`seed` stands for the gradient that arrives at the output, of its shape"
        asked.terminal.note(
            f"{told}; --jacobian gives matrices" if output.array.ndim == 1 else told
        )
    if own is None:
        own = np.random.default_rng(0).uniform(0.5, 1.5, output.array.shape).round(4)
    return str(own.tolist())


def with_gradients(asked: Asked) -> dict[str, str]:
    """For each name of --wrt, or each input, the text of a program whose output is the gradient of
    a program's by it: the formulas of that, or the call that computes it where they have inputs
    that are no arguments. Those are left out whose gradient depends on none of them.

    Raises:
        GradcliError: E413 where the output is no number, or its gradient is constant.
    """
    text = asked.program.text()
    statements = parse_program(Source(asked.program.name, text))
    asked.arguments = [*asked.arguments, *symbols(statements, asked.arguments)]
    options = Options(
        of=asked.options.of, wrt=",".join(asked.options.wrt) if asked.options.wrt else None,
        dtype=asked.options.dtype, limits=asked.options.limits,
    )  # fmt: skip
    run = Run(asked.terminal, options, "all")
    run.muted = True
    record_values(run)
    with run.limited():
        try:
            result = run.computed(run.execute(statements, asked.arguments))
        except GradcliError as error:
            raise _no_hessian() if error.code == "E401" else error from None
        used = [each.name for each in result.gradients if each.node] if result else []
        names = [name for name in used if name is not None]
        if result is None:
            raise _no_hessian()
        with run.session.running():
            again = _rerun(run, result, text)
            derivation = _derived(run, result, again, None, _values_in(run, is_pattern))
            conditions = _conditions(run, result, again, derivation, False)
    asked.options.of = None
    output = result.name
    if (
        conditions
        or derivation.described
        or derivation.inputs.keys() - {each.name for each in asked.arguments}
    ):
        if output is None:
            output, last = "y", statements[-1].span
            text = (
                f"{text[: last.start]}{output} = ({text[last.start : last.end]}){text[last.end :]}"
            )
        call = f"{_GRADIENT_OF}{output} = torch.autograd.grad({output}, {{}}, create_graph=True)[0]"
        return {name: f"{text}\n{call.format(derivation.paths.get(name, name))}" for name in names}
    formulas = {line.name: line.formula for line in derivation.lines}
    programs = {}
    for name in names:
        gradient = derivation.gradients[name]
        if reach(formulas[gradient], formulas).isdisjoint(names):
            continue
        lines = [f"{line.name} = {text_of(line.formula)}" for line in derivation.lines]
        programs[name] = "\n".join([*lines, f"{_GRADIENT_OF}{output or 'y'} = {gradient} * 1"])
    if not programs:
        shown = ", ".join(names)
        raise GradcliError("E413", f"the Hessian is 0: the gradient does not depend on {shown}")
    return programs


def _no_hessian() -> GradcliError:
    return GradcliError("E413", "a Hessian is of one number", help="sum up the output")


_PROVED = 10
"""How many times as long as the program the proof of its formulas takes at least."""

_TOLD = 5.0
"""Seconds beyond which a recording says beforehand how long they take."""


def formulas_of(
    run: Run, result: Result, program: str, target: str, matrices: str = ""
) -> Derivation:
    """The formulas of a result, not yet written.

    Args:
        target: "gradcli", "latex", "numpy", "jax" or "torch".
        matrices: "jacobian" or "hessian" for the matrices that gradients are products with; the
            name that the gradient is by may follow, `hessian_x`.
    """
    cost = _PROVED * run.seconds
    if run.replay is not None and cost > _TOLD:
        run.terminal.note(
            f"the formulas are run on these numbers too, to prove them: at least {cost:.0f} s"
        )
    with run.session.running():
        # The lines of a gradient that is differentiated again are none of the program's own.
        is_value = _values_in(run, is_written if matrices.startswith("hessian") else is_pattern)
        again = _rerun(run, result, program)
        derived = _derived(run, result, again, derivation.WORDS.get(target), is_value)
        conditions = _conditions(run, result, again, derived, True)
        if matrices:
            derived = jacobians(derived, run_program, matrices, result.output.array.size)
        derived.conditions = conditions
    return derived


def formulas_at(asked: Asked, target: str, matrices: str = "") -> Derivation:
    """The formulas of a program, which is run for them without an answer.

    Raises:
        GradcliError: as `formulas_of`; E413 where the program has no result with a graph.
    """
    statements = parse_program(Source(asked.program.name, asked.program.text()))
    arguments = [*asked.arguments, *symbols(statements, asked.arguments)]
    seed = asked.options.seed
    asked.options.seed = seed_for(asked, False) if seed is None else seed
    run = Run(asked.terminal, asked.options, "all")
    run.muted = True
    record_values(run)
    with run.limited():
        result = run.computed(run.execute(statements, arguments))
        if result is None:
            raise GradcliError("E413", "the program has no gradient at other sizes")
        return formulas_of(run, result, asked.program.text(), target, matrices)


def answer_of(derived: Derivation, run: Run, result: Result, program: str, target: str) -> Answer:
    """The formulas of a result, written for a target."""
    output = (result.name or "L").removeprefix(_GRADIENT_OF)

    def text(_: Style) -> str:
        if target == "latex":
            return f"{latex(derived, output)}\n"
        if target == "numpy":
            return derivation.numpy_text(derived, program)
        if target == "jax":
            return derivation.jax_text(derived, program)
        if target == "torch":
            return derivation.torch_text(derived, program)
        return f"{derivation.program_text(derived, run.options.full)}\n"

    return Answer(text, partial(derivation_document, derived, result.name and output))


def formulas_of_tensor(run: Run, tensor: Tensor) -> str:
    """The formulas of a tensor in a program or a session.

    They need every step of the program, so what ran so far is run again.

    Raises:
        GradcliError: E413 where no name holds the tensor.
    """
    name = next((n for n, value in run.session.values.items() if value is tensor), None)
    if name is None:
        raise GradcliError(
            "E413",
            "derive() needs a tensor that a name of the program holds",
            help="give it a name on a line of its own first: `y = …`",
        )
    options = Options(of=name, dtype=run.options.dtype, limits=run.options.limits)
    again = Run(run.terminal, options, "all")
    again.muted = True
    record_values(again)
    program = run.transcript.program()
    statements = again.session.parse(program, "program")
    with again.limited():
        result = again.result(again.execute(statements, run.arguments()))
        assert result is not None  # a name holds the tensor
        derived = formulas_of(again, result, program, "gradcli")
        with again.session.running():
            return answer_of(derived, again, result, program, "gradcli").text(PLAIN)


def _values_in(run: Run, is_short: Callable[[Any], bool]) -> IsValue:
    """Whether a constant is the program's own, and its value short, so that it is no input."""
    bound = set(run.bound_names())
    return lambda name, array: name not in bound and is_short(array)


def _rerun(run: Run, result: Result, program: str) -> Rerun:
    """What runs the program of a run again."""
    called = "program" if run.statement is None else run.statement.span.source.name
    again = Rerun(run.terminal, program, called, run.arguments(), run.options)
    with suppress(GradcliError):
        if any(each.tensor.version for each in result.gradients):
            again.moments, _ = moments_of(again, again.execute(), None)
    return again


def _derived(
    run: Run,
    result: Result,
    again: Rerun,
    has_word_for: HasWordFor | None,
    is_value: IsValue,
) -> Derivation:
    recorder = run.session.recorder
    assert isinstance(recorder, TraceRecorder)
    derived = derive(result, recorder, run_program, has_word_for, is_value)
    _confirm_nearby(again, derived)

    def in_domain(inputs: dict[str, Any]) -> bool:
        outcome = again(values=_by_path(derived, inputs))
        return outcome is not None and bool(np.isfinite(outcome.output).all())

    return textbook(derived, run_program, in_domain)


def _conditions(
    run: Run, result: Result, again: Rerun, derived: Derivation, divides: bool
) -> list[str]:
    """What the formulas of a run hold for."""
    recorder, provenance = run.session.recorder, run.session.interpreter.provenance
    assert isinstance(recorder, TraceRecorder)
    assert provenance is not None
    inputs = [each.tensor for each in result.gradients]
    said = conditions_of(derived, again.text, recorder, provenance, inputs, result.output, divides)
    if said or run.seconds > _FAR or run.replay is not None:
        return said
    flow = Dataflow(recorder, provenance)
    varying = _varying(flow, provenance, {id(each) for each in inputs}, set())
    numbers = _numbers_of(_before(result.output, provenance), varying)
    return _unsaid(again, derived, numbers)


def _numbers_of(evaluations: Sequence[Evaluation], varying: set[int]) -> list[Span]:
    """Where a number of Python's was made of a tensor that the inputs change."""
    return [
        each.node.span
        for each in evaluations
        if isinstance(each.node, tree.Call)
        and type(each.value) in (bool, int, float)
        and any(type(e.value) is Tensor and id(e.value) in varying for e in _inside(each))
    ]


def _inside(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The parts of an evaluation, and theirs: a method stands between a call and its tensor."""
    for part in evaluation.parts:
        yield part
        yield from part.parts


_FAR = 1.0
"""Seconds of a run beyond which the program is not run at inputs far away."""


def _unsaid(again: Rerun, derived: Derivation, numbers: Sequence[Span]) -> list[str]:
    """What formulas hold for that hold nearby, where they give other gradients than the program at
    inputs far away: a number in them follows from the inputs, as what `round()` gives does.
    """
    random = np.random.default_rng(1)
    free = derived.gradients.keys() - derived.fixed
    for sign in (1, -1, 1, -1):
        far = dict(derived.inputs)
        for name in sorted(free & far.keys()):
            factors = sign * 10 ** random.uniform(-1, 1, far[name].shape)
            if far[name].dtype.char in "fd":
                far[name] = (far[name] * factors).astype(far[name].dtype)[()]
        if (
            (other := _other_gradient(again, derived, _exact(far), "float64"))
            and _takes(again, _by_path(derived, _exact(far)), "float64")
            and not _other_gradient(again, derived, _exact(derived.inputs), "float64")
        ):
            place, _ = _numbers_in(again, derived.paths.get(other, other))
            place = place or (numbers[0] if len(numbers) == 1 else None)
            if place is None:
                return ["near these inputs: numbers that follow from them stand as they are"]
            text = f"`{one_line(place.text)}` (line {place.line})"
            return [f"near these inputs: what follows from {text} stands as numbers"]
    return []


def _exact(inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs in float64, where rounding that grows near a pole is no other gradient."""
    return {
        n: array.astype(float) if array.dtype.kind == "f" else array for n, array in inputs.items()
    }


def _by_path(derived: Derivation, inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs of formulas as a program's, parameters by their paths."""
    return {derived.paths.get(n, n): array for n, array in inputs.items() if n != "seed"}


def _confirm_nearby(again: Rerun, derived: Derivation) -> None:
    """Raise E413 where the formulas hold at the given inputs only, since a number that depends on
    them stands there as a constant: at inputs nearby the program has other gradients.
    """
    random = np.random.default_rng(0)
    nearby = {
        name: (array * random.uniform(0.99, 1.01, array.shape)).astype(array.dtype)[()]
        if name not in ("seed", *derived.fixed) and array.dtype.char in "fd"
        else array
        for name, array in derived.inputs.items()
    }
    name = _other_gradient(again, derived, nearby)
    if name is None:
        return
    if not _takes(again, _by_path(derived, nearby)) or _other_gradient(
        again, derived, derived.inputs
    ):
        reason = f"the program cannot be given other inputs where `{name}` gets its value"
        if any("tensor(" in text_of(line.formula) for line in derived.lines):
            raise GradcliError(
                "E413",
                f"the formulas of {name} have numbers that may follow from the inputs: {reason}",
                help="`gradcli explain` shows the numbers",
            )
        again.terminal.note(f"the formulas were run at these inputs alone: {reason}")
        return
    place, reason = _numbers_in(again, derived.paths.get(name, name))
    raise GradcliError(
        "E413",
        f"the formulas of {name} hold at these inputs only: a number in them follows from the"
        " inputs, and stands there as it is",
        span=place,
        notes=(reason,) if reason else (),
        help="`gradcli explain` shows the numbers",
    )


def _other_gradient(
    again: Rerun, derived: Derivation, inputs: dict[str, Any], dtype: str | None = None
) -> str | None:
    """A name whose gradient by the formulas is not the program's at some inputs, None where there
    is none or one of the two cannot be run, the program in this dtype.
    """
    lines = "\n".join(f"{line.name} = {text_of(line.formula)}" for line in derived.lines)
    try:
        there = again.execute(values=_by_path(derived, inputs), dtype=dtype, record="ends")
        if there.output is None or not np.isfinite(to_host(there.output.array)).all():
            return None
        seed = inputs.get("seed", np.ones((), there.output.array.dtype))
        seed = np.broadcast_to(seed, there.output.array.shape).copy()
        own = there.seed()
        if own is None or np.allclose(own, seed):
            gradients = there.gradients(seed)
        else:
            gradients = there.slopes(seed, {}, second=False)
        wanted = derived.gradients.values()
        values, largest = run_formulas(run_program, lines, inputs, wanted)
    except GradcliError:
        return None
    for name, called in derived.gradients.items():
        right, of_formulas = gradients.get(derived.paths.get(name, name)), values[called]
        if right is None or not np.isfinite(right).all():
            continue
        if not agrees(of_formulas, right, 1e-3, largest):
            return name
    return None


def _takes(again: Rerun, values: dict[str, Any], dtype: str | None = None) -> bool:
    """Whether the leaves of the program hold such values where its output is computed from them,
    which they hold in the end.
    """
    there = again.execute(values=values, dtype=dtype)
    return not there.missed & values.keys() and all(
        np.array_equal(np.asarray(leaf.array), values[name], equal_nan=True)
        for name, leaf in there.leaves.items()
        if name in values
    )


def _numbers_in(again: Rerun, path: str) -> tuple[Span | None, str]:
    """Where a number that follows from a leaf gets into its gradient as a constant, and how."""
    with suppress(GradcliError):
        fresh = again.execute(record="values")
        nodes = [] if fresh.output is None else fresh.run.session.graph(fresh.output).nodes
        events = fresh.run.session.recorder.events or ()
        for place, text in places_beside(again, fresh, [path]):
            return place, text
        for each in suspects(again.statements, nodes, events):
            return each.place, each.text
    return None, ""
