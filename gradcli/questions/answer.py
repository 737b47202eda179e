"""Runs a program in order to answer a question about it: `explain`, `derive`, `why`, `blame`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError
from gradcli.language.rounds import NotRecorded, check_graph, check_recorded, record_rounds
from gradcli.questions.notes.error_notes import note_arguments, note_detachments
from gradcli.running.run import Run

if TYPE_CHECKING:
    from gradcli.language.long_loops import Rounds
    from gradcli.language.tree.syntax import Statement
    from gradcli.recorded.result import Result
    from gradcli.running.source import Asked
    from gradcli.show.answer import Answer


AnswerOf = Callable[[Run, "Sequence[Statement]", Any], int]
"""Given the run, the statements and the value of the last of them, writes the answer and gives the
exit code.
"""

AfterError = Callable[[Run, "Sequence[Statement]", GradcliError], None]
"""Answers from what ran before the error."""


def answer_from_run(
    asked: Asked,
    record: str,
    answer: AnswerOf,
    prepare: Callable[[Run], None] = lambda run: None,
    after_error: AfterError | None = None,
    *,
    of_last_rounds: bool = False,
) -> int:
    """Run a program and let a command answer from the run.

    Args:
        prepare: called with the run before the program.
        after_error: called where the program failed.
        of_last_rounds: whether the answer may do with the first and the last iterations of long
            loops; where it raises `NotRecorded`, the program runs again, in the time that is left.
    """
    wanted: frozenset[Rounds] | None = frozenset() if of_last_rounds else None
    limits = asked.options.limits
    until = perf_counter() + (limits.timeout or inf)
    try:
        while True:
            try:
                return _answered(asked, record, (answer, prepare, after_error), wanted)
            except NotRecorded as needed:
                wanted, limits.until = needed.wanted, until
    finally:
        limits.until = None


def _answered(
    asked: Asked,
    record: str,
    does: tuple[AnswerOf, Callable[[Run], None], AfterError | None],
    wanted: frozenset[Rounds] | None,
) -> int:
    """The exit code of the answer from one run."""
    answer, prepare, after_error = does
    run = Run(asked.terminal, asked.options, record)
    run.muted = True
    statements: Sequence[Statement] = ()
    has_run, meant = False, None
    try:
        with run.limited():
            statements = run.session.parse(asked.program.text(), asked.program.name)
            prepare(run)
            record_rounds(run.session.interpreter, wanted)
            try:
                value = run.execute(statements, asked.arguments)
            except GradcliError as error:
                if error.code != "E607":  # no time is left for another run
                    check_recorded(run.session.interpreter)
                raise
            check_recorded(run.session.interpreter)
            has_run = True
            run.tell_replay()
            with run.within_memory():
                code = answer(run, statements, value)
            run.tell_mistakes()
    except GradcliError as error:
        meant = note_arguments(error, statements, asked.arguments, f"gradcli {asked.command} …")
        if error.code in ("E402", "E403", "E404"):
            note_detachments(error, run, statements, asked.arguments)
        asked.terminal.error(error)
        code = error.exit_code
        if statements and not has_run and after_error is not None:
            try:
                after_error(run, statements, error)
            except NotRecorded:
                if error.code != "E607":
                    raise
    if run.bindings is not None:
        run.bindings.warn_unused(asked.terminal, statements if code else (), meant)
    return code


class NumbersNeeded(Exception):
    """Raised by what answers from the graph of a recording alone, where that is not enough."""


def answer_from_graph(
    asked: Asked, record: str, answer: Callable[[Run, Sequence[Statement], Any], int]
) -> int | None:
    """Let a command answer from the graph of a recording alone, which costs little memory.

    Args:
        answer: as in `answer_from_run`; may raise `NumbersNeeded`.

    Returns:
        The exit code; None where this is not a recording, or its numbers are needed, and there.
    """
    options = asked.options
    recording = options.recording
    if recording is None or (recording.has_data and (asked.arguments or options.dtype)):
        return None
    options.graph_alone = True
    run = Run(asked.terminal, options, record)
    run.muted = True
    try:
        with run.limited():
            statements = run.session.parse(asked.program.text(), asked.program.name)
            value = run.execute(statements, asked.arguments)
            with run.within_memory():
                return answer(run, statements, value)
    except NumbersNeeded:
        return None
    except GradcliError as error:
        if recording.has_data:
            return None
        asked.terminal.error(error)
        return error.exit_code
    finally:
        options.graph_alone = False


def show_explanation(
    asked: Asked,
    show: Callable[[Run, Result], Answer],
    prepare: Callable[[Run], None] = lambda run: None,
    record: str = "all",
    result: Callable[[Run, Any], Result | None] = lambda run, value: run.result(value, draws=True),
    *,
    of_last_rounds: bool = False,
) -> int:
    """Run a program, differentiate its output, and answer with what is computed from the result.

    Args:
        prepare: called with the run before the program.
        record: what the session records.
        result: the result of a run whose last statement has this value.
        of_last_rounds: as `answer_from_run` has it.

    Returns:
        The exit code: 3 with E402 where the output has no graph.
    """

    answer = _explaining(asked, show, result)
    return answer_from_run(asked, record, answer, prepare, of_last_rounds=of_last_rounds)


def show_graph(asked: Asked, show: Callable[[Run, Result], Answer]) -> int:
    """`show_explanation` of the graph of a recording alone."""
    explaining = _explaining(asked, show, lambda run, value: run.result(value, draws=True))

    def answer(run: Run, statements: Sequence[Statement], value: Any) -> int:
        run.tell_replay()
        return explaining(run, statements, value)

    code = answer_from_graph(asked, "all", answer)
    return show_explanation(asked, show) if code is None else code


def _explaining(
    asked: Asked,
    show: Callable[[Run, Result], Answer],
    result_of: Callable[[Run, Any], Result | None],
) -> Callable[[Run, Sequence[Statement], Any], int]:
    """What answers with what is computed from the result of a run; raises E402 where its output
    has no graph.
    """

    def answer(run: Run, statements: Sequence[Statement], value: Any) -> int:
        from gradcli.running.report import note_passes  # lazy: start-up: NumPy

        result = result_of(run, value)
        if result is None or result.graph.root is None:
            raise _no_graph(result, statements)
        check_graph(run.session.interpreter, result.graph)
        note_passes(asked.terminal, run.session, run.options, result)
        if run.session.recorder.revived:
            asked.terminal.note(
                f"the program freed the graph of {result.name or 'the output'}: the answer is about"
                " a pass through it all the same, which raises E403 in a program"
            )
        return _show(run, show(run, result))

    return answer


def show_run(
    asked: Asked,
    show: Callable[[Run], Answer],
) -> int:
    """`show_explanation` of a run, whose output may have no graph."""

    def answer(run: Run, value: Any) -> Answer:
        run.result(value)
        return show(run)

    return show_run_of(asked, answer)


def show_run_of(asked: Asked, show: Callable[[Run, Any], Answer]) -> int:
    """Run a program, and answer with what is computed from the run and its last value."""
    return answer_from_run(asked, "all", lambda run, _, value: _show(run, show(run, value)))


def _show(run: Run, answer: Answer) -> int:
    with run.session.running():
        run.terminal.answer(answer, run.options.format)
    return 0


def _no_graph(result: Result | None, statements: Sequence[Statement]) -> GradcliError:
    span = statements[-1].span if statements else None
    if result is None:
        return GradcliError("E402", "the program computes no tensor to explain", span=span)
    return GradcliError(
        "E402",
        f"{result.name or 'the output'} does not require grad, so there is no gradient to explain",
        span=span,
        help="give an input a value behind the program (`x=2`), or make it with requires_grad=True",
    )
