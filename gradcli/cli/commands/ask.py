"""The commands that ask a question of a run: `why`, `blame` and `check`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from gradcli.cli.arguments.options import Options
from gradcli.cli.arguments.values import Argument
from gradcli.cli.process.terminal import Terminal
from gradcli.cli.program.run import Run, explain_missing
from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.cli.commands.explain import Program
    from gradcli.explain.recorded_run import Recorded
    from gradcli.explain.result import Result
    from gradcli.language.tree import Statement


def asked(
    terminal: Terminal,
    command: str,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
    record: str,
    answer: Callable[[Run, Sequence[Statement], Any], int],
    prepare: Callable[[Run], None] = lambda run: None,
    after_error: Callable[[Run, Sequence[Statement]], None] | None = None,
) -> int:
    """Run a program and let a command answer from the run.

    Args:
        terminal: where the answer goes.
        command: the command's name.
        program: the program.
        arguments: the values of its names.
        options: what the command line asks for.
        record: what the session records.
        answer: given the run, the statements and the value of the last of them, writes the answer
            and gives the exit code.
        prepare: called with the run before the program.
        after_error: called where the program failed, to answer from what ran before.

    Returns:
        The exit code.
    """
    run = Run(terminal, options, record)
    run.muted = True
    statements: Sequence[Statement] = ()
    has_run = False
    try:
        with run.limited():
            statements = run.session.parse(program.text(), program.name)
            prepare(run)
            value = run.execute(statements, arguments)
            has_run = True
            with run.within_memory():
                code = answer(run, statements, value)
    except GradcliError as error:
        explain_missing(error, statements, arguments, f"gradcli {command} …")
        terminal.error(error)
        code = error.exit_code
        if statements and not has_run and after_error is not None:
            after_error(run, statements)
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, statements if code else ())
    return code


# --- why ----------------------------------------------------------------------------------------


class Question:
    """What `why` is asked: a variable and one of its attributes."""

    __slots__ = ("attribute", "name")

    def __init__(self, name: str, attribute: str) -> None:
        self.name = name
        self.attribute = attribute


def read_question(text: str) -> Question:
    """A question such as `x.grad`; raises a usage error for another text."""
    from gradcli.explain.why.why import ATTRIBUTES
    from gradcli.language.hints.spelling import closest

    name, dot, attribute = text.partition(".")
    known = ", ".join(f"{name or 'x'}.{each}" for each in ATTRIBUTES)
    if not name.isidentifier() or not dot:
        raise click.UsageError(f"`{text}` is no question: it is one of {known}")
    if attribute not in ATTRIBUTES:
        near = closest(attribute, ATTRIBUTES)
        hint = f"; did you mean `{name}.{near}`?" if near else ""
        raise click.UsageError(f"`why` answers {known}, not `{text}`{hint}")
    return Question(name, attribute)


def why(
    terminal: Terminal,
    question: Question,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
) -> int:
    """`gradcli why`: the proof of a gradient, or of its absence."""

    def answer(run: Run, statements: Sequence[Statement], value: Any) -> int:
        differentiates = program.name == "program" or options.of or options.seed
        write_why(run, question, recorded(run, statements, value, bool(differentiates)))
        return 0

    def after_error(run: Run, statements: Sequence[Statement]) -> None:
        # That there is no gradient is often what the program failed of.
        if question.name in run.session.values:
            write_why(run, question, recorded(run, statements, None, False))

    return asked(
        terminal, "why", program, arguments, options, "values", answer, after_error=after_error
    )


def recorded(
    run: Run, statements: Sequence[Statement], value: Any, differentiates: bool
) -> Recorded:
    """What a run with all its values came to; `differentiates` if it is to end with a backward
    pass, as a one-shot's does, unless the program has run one.
    """
    from gradcli.explain.recorded_run import Recorded

    session = run.session
    recorder, followed = session.recorder, session.interpreter.followed
    assert followed is not None
    name, output = None, None
    if differentiates and not recorder.passes:
        result = run.result(value)
        if result is not None:
            name, output = result.name, result.output
    else:
        found = session.last_tensor()
        if found is not None:
            name, output = found
    with session.running():
        return Recorded(statements, session.values, recorder, followed, output, name)


def write_why(run: Run, question: Question, found: Recorded) -> None:
    """Write the answer to a question."""
    from gradcli.autograd.tensor import Tensor
    from gradcli.explain.why.why import why as proof
    from gradcli.language.hints.spelling import closest

    if question.name not in found.values:
        near = closest(question.name, [n for n, v in found.values.items() if type(v) is Tensor])
        raise click.UsageError(
            f"the program has no `{question.name}`" + (f"; did you mean `{near}`?" if near else "")
        )
    tensor = found.values[question.name]
    if type(tensor) is not Tensor:
        from gradcli.language.objects.types import type_name

        raise GradcliError(
            "E202",
            f"`{question.name}` is no tensor but a value of type {type_name(tensor)}",
            help="gradients and graphs belong to tensors",
        )
    with run.session.running():
        why = proof(found, question.name, tensor, question.attribute)
        if run.options.json:
            from gradcli.render.answers.why import why_document
            from gradcli.render.result_json import text

            shown = text(why_document(why), compact=run.options.format == "jsonl")
        else:
            from gradcli.render.answers.why import why_text

            shown = why_text(why, run.terminal.style)
    run.terminal.write(shown)


# --- blame --------------------------------------------------------------------------------------


def blame(
    terminal: Terminal,
    program: Program,
    arguments: Sequence[Argument],
    options: Options,
    *,
    all: bool,
) -> int:
    """`gradcli blame`: the first number that is not finite, and its cure; exits with 1 where there
    is one.
    """
    from gradcli.explain.blame.nonfinite import Watch

    watch = Watch()

    def prepare(run: Run) -> None:
        with run.session.running():
            watch.install()

    def tell(run: Run, statements: Sequence[Statement], result: Result | None) -> int:
        from gradcli.explain.blame.blame import blame as find

        gradients = () if result is None else [(g.name, g.tensor) for g in result.gradients]
        with run.session.running():
            watch.remove()
        found = find(recorded(run, statements, None, False), watch, gradients)
        first = found.first
        if first is not None and result is not None:
            from gradcli.cli.program.rerun import Rerun, outcome_of
            from gradcli.explain.blame.rewrites import rewrites
            from gradcli.explain.blame.verification import find_cure

            rerun = Rerun(terminal, program.text(), program.name, arguments, options)
            exact = rerun(dtype="float64")
            changes = rewrites(first, found.others, statements)
            first.cure = find_cure(changes, outcome_of(result), exact, rerun)
        with run.session.running():
            if options.json:
                from gradcli.render.answers.blame import blame_document
                from gradcli.render.result_json import text

                shown = text(blame_document(found), compact=options.format == "jsonl")
            else:
                from gradcli.render.answers.blame import blame_text

                shown = blame_text(found, terminal.style, all=all)
        terminal.write(shown)
        return 0 if first is None else 1

    def answer(run: Run, statements: Sequence[Statement], value: Any) -> int:
        return tell(run, statements, _differentiated(run, value))

    def after_error(run: Run, statements: Sequence[Statement]) -> None:
        # A program that checks its numbers fails of what is to be found.
        if watch.births:
            tell(run, statements, None)

    return asked(
        terminal, "blame", program, arguments, options, "values", answer, prepare, after_error
    )


def _differentiated(run: Run, value: Any) -> Result | None:
    """The result of a run; where several numbers came out and no seed is given, that of their
    sum.
    """
    from gradcli.cli.program.report import find_output

    try:
        return run.result(value)
    except GradcliError as error:
        found = find_output(run.session, run.options, value)
        if error.code != "E401" or found is None:
            raise
        run.options.seed = f"torch.ones({', '.join(map(str, found[1].array.shape))})"
        return run.result(value)
