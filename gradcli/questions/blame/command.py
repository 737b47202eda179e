"""`gradcli blame`: the first NaN or infinity, and how to fix it."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gradcli.errors import GradcliError
from gradcli.language.rounds import NotRecorded
from gradcli.questions.answer import answer_from_run
from gradcli.running.arguments.click_options import with_answer_file, with_json, with_program
from gradcli.running.run import Run
from gradcli.running.source import Asked, asked_of

if TYPE_CHECKING:
    from gradcli.language.provenance import Provenance
    from gradcli.language.tree.syntax import Statement
    from gradcli.questions.blame.find import Blame, Blamed
    from gradcli.questions.blame.nonfinite import Watch
    from gradcli.recorded.result import Result
    from gradcli.recorded.watched import Watched
    from gradcli.running.recordings.focus import Focus


@click.command("blame")
@click.option("--all", is_flag=True, help="Show every number that is not finite, in order.")
@with_answer_file(".txt", ".json")
@with_json
@with_program
def command(words: Sequence[str], file: str | None, all: bool, **settings: Any) -> int:
    """Find the first NaN or infinity, and its cure.

    Exits with 1 where the output or a gradient is not finite.
    """
    asked = asked_of("blame", words, file, settings)
    return asked.terminal.checked(blame(asked, all=all))


_WITHOUT_VALUE = ("0/0", "inf - inf", "inf/inf", "infinite slope", "from the data")
"""Causes where mathematics has no value: a cure chooses one."""


def blame(asked: Asked, *, all: bool) -> int:
    """Find the first number of a program that is not finite, and a fix; the exit code is 1 where
    there is such a number.
    """
    if asked.options.watched is not None:
        return _blame_watched(asked, asked.options.watched)
    options = asked.options
    seed = options.seed
    spoilt = _looked(asked, all)
    if spoilt is not None and not spoilt:
        return 0
    try:
        return _first(asked, all, spoilt or ())
    except _Unfocused:
        options.focus, options.seed = None, seed
        return _first(asked, all, ())
    finally:
        options.focus, options.seed = None, seed


class _Unfocused(Exception):
    """The operation where the first number was heard that is not finite has none by itself."""


def _first(asked: Asked, all: bool, spoilt: Sequence[str]) -> int:
    """Run a program with a record of its values, and answer.

    Args:
        spoilt: of a part of a program, what is not finite in the whole of it.
    """
    from gradcli.questions.blame.find import blame as find  # lazy: command: its body
    from gradcli.questions.blame.nonfinite import Sentinel, Watch  # lazy: command: its body

    watch, attempts = Watch(), 0

    def prepare(run: Run) -> None:
        nonlocal watch, attempts
        watch = Watch()
        with run.session.running():
            provenance = run.session.interpreter.provenance
            assert provenance is not None
            provenance.listener = None if attempts else Sentinel(provenance.miss)
            attempts += 1
            watch.rounds = provenance.rounds
            watch.install()
        if run.replay is not None:
            run.replay.leave_out_steps()
            if asked.options.focus is not None:
                run.replay.focus(asked.options.focus)
            # In a straight-line program no gradient goes round, and each would be copied.
            run.session.recorder.events = None

    def report(
        run: Run, statements: Sequence[Statement], result: Result | None, failed: bool = False
    ) -> int:
        gradients = () if result is None else [(g.name, g.tensor) for g in result.gradients]
        with run.session.running():
            watch.remove()
        recorded = run.recorded(statements, None, False)
        blamed = find(recorded, watch, gradients)
        if asked.options.focus is not None:
            if blamed.first is None or not _is_whole(blamed.first, asked.options.focus):
                raise _Unfocused
            blamed.first.spoilt, blamed.first.in_part = spoilt, True
        blamed.failed = failed
        if failed and blamed.first is not None:
            blamed.first.untried = "the program ended in an error"
        _check_first(recorded.provenance, watch, blamed)
        if blamed.first is not None and result is not None:
            _find_cure(asked, run, blamed, statements, result)
        _show(asked, run, blamed, all)
        return 0 if blamed.first is None else 1

    def answer(run: Run, statements: Sequence[Statement], value: Any) -> int:
        try:
            result = _differentiated(run, value)
        except GradcliError as error:
            if error.code not in ("E403", "E404") or not run.session.recorder.passes:
                raise
            result = None  # what the output is of is freed or changed: the program's passes count
        return report(run, statements, result)

    def after_error(run: Run, statements: Sequence[Statement], error: GradcliError) -> None:
        # A program that checks its numbers fails of what is to be found.
        if watch.nonfinites:
            report(run, statements, None, failed=True)

    return answer_from_run(asked, "values", answer, prepare, after_error, of_last_rounds=not all)


def _check_first(provenance: Provenance, watch: Watch, blamed: Blame) -> None:
    """Raise `NotRecorded` where iterations that were not recorded may have made the first number
    that is not finite.
    """
    if not provenance.unheard:
        return
    events = [each for each in watch.nonfinites if each.phase in ("forward", "backward")]
    if not events and (provenance.wanted or blamed.first is not None):
        raise NotRecorded  # what was flagged was none, or what is there came unseen
    chosen = [] if blamed.first is None else [blamed.first.nonfinite]
    chosen += [each.use for each in chosen if each.use is not None]
    for each in (*events[:1], *chosen):
        if not provenance.heard(tuple((span.start, number) for span, number, _ in each.rounds)):
            raise NotRecorded


def _is_whole(first: Blamed, focus: Focus) -> bool:
    """Whether a part of a program shows all that led to its first number: not of what grew on its
    way back through the rest of it.
    """
    place = first.nonfinite.place
    is_there = place is not None and place.line in focus.lines
    return is_there and not (first.nonfinite.phase == "backward" and first.cause == "overflow")


_SECONDS, _LONG, _SECONDS_OF_LONG = 8.0, 0.5, 2.5
"""So many seconds the program runs again and again for a cure; fewer where it takes long itself."""


def _looked(asked: Asked, all: bool) -> Sequence[str] | None:
    """What of a recording's program is not finite, the output and gradients by name; None where
    that is not known.

    It is run without a record of its values, which may take many times the memory. Where all is
    finite, that is said; of a large one the first operation that is not is what to look at.
    """
    from gradcli.questions.blame.find import Blame  # lazy: command: its body

    recording = asked.options.recording
    if recording is None or not recording.has_data:
        return None
    run = Run(asked.terminal, asked.options, "graph")
    run.muted = True
    try:
        with run.limited():
            heard = _heard(asked, run, in_part=not recording.is_small and not all)
            if heard is not None:
                run.tell_replay()
            if heard == ([], None):
                _show(asked, run, Blame(None, []), all)
    except GradcliError:
        return None
    finally:
        run = None  # type: ignore[assignment]  # a large run goes before the next one
        _collect()
    if heard is None:
        return None
    spoilt, behind = heard
    if behind is not None:
        asked.options.focus = _part_behind(asked, *behind)
    return spoilt if not spoilt or asked.options.focus is not None else None


def _heard(
    asked: Asked, run: Run, *, in_part: bool
) -> tuple[list[str], tuple[int, dict[int, Any]] | None] | None:
    """What of a run is not finite, by name, and what the backward pass made so of finite numbers;
    the part to look at is set where the forward pass did. None where more is to be run.
    """
    from gradcli.questions.blame.find import spoilt_of  # lazy: command: its body
    from gradcli.questions.blame.nonfinite import (  # lazy: command: its body
        FirstNonFinite,
        Sentry,
        is_finite,
    )
    from gradcli.running.recordings.focus import (  # lazy: command: its body
        BIG,
        NEAR,
        choosing_lines,
        focus_on,
        near,
    )

    recording, replay = asked.options.recording, run.replay
    assert recording is not None
    assert replay is not None
    parts: list[tuple[FirstNonFinite, Focus]] = []
    big = recording.arrays_from(BIG)
    recent = replay.recent = deque(maxlen=NEAR)

    def found(first: FirstNonFinite, line: int) -> None:
        if in_part and len(parts) < _MOST_PARTS:
            focus = focus_on(recording.program, line, recording.output)
            if focus is not None:
                parts.append((first, near(recording.program, focus, recent, big)))

    sentry = Sentry(found, choosing_lines(recording.program) if in_part else (), NEAR)
    statements = run.session.parse(asked.program.text(), asked.program.name)
    with run.session.running():
        sentry.install()
    replay.let_go()
    replay.leave_out_steps()
    result = _differentiated(run, run.execute(statements, asked.arguments))
    if not sentry.is_suspicious:
        return [], None
    if not in_part or result is None:
        return None
    origin = sentry.origin_of(result.output)
    asked.options.focus = next((each for first, each in parts if first is origin), None)
    is_behind = is_finite(result.output.array) and asked.options.seed is None
    behind = sentry.behind if is_behind else None
    if asked.options.focus is None and behind is None:
        return None
    return spoilt_of(result), behind


_MOST_PARTS = 4
"""So many numbers of the forward pass are looked at closely: the first may spoil nothing."""


def _part_behind(asked: Asked, line: int, reached: Mapping[int, Any]) -> Focus | None:
    """What is to run for a number that the backward pass of a line made of finite ones, from the
    gradient of its result, or of what chose among such results, which is set as the seed; None
    where more is needed.

    Args:
        reached: the gradients of the results of lines.
    """
    from gradcli.questions.blame.nonfinite import is_finite  # lazy: command: its body
    from gradcli.running.recordings.focus import (  # lazy: command: its body
        BIG,
        NEAR,
        focus_on,
        last_choice,
        near,
    )

    recording = asked.options.recording
    assert recording is not None
    end = last_choice(recording.program, line)
    focus = focus_on(recording.program, end, recording.output) if end in reached else None
    if focus is None:
        return None
    run = Run(asked.terminal, asked.options, "graph")
    run.muted = True
    try:
        with run.limited():
            assert run.replay is not None
            run.replay.let_go()
            run.replay.focus(focus)
            recent = run.replay.recent = deque(maxlen=NEAR)
            statements = run.session.parse(asked.program.text(), asked.program.name)
            run.execute(statements, asked.arguments)
            named = run.session.last_tensor()
            operands = [each for number, read in recent if number == line for each in read.values()]
            is_bare = named is None or named[1].array.shape != reached[end].shape
            if is_bare or not all(is_finite(each.array) for each in operands):
                return None
            asked.options.seed = reached[end]
            big = recording.arrays_from(BIG)
            return near(recording.program, focus, recent, big, line)
    except GradcliError:
        return None
    finally:
        run = named = statements = operands = None  # type: ignore[assignment]
        _collect()


def _collect() -> None:
    """Give the memory back of what is not referred to any more."""
    from gradcli.arrays.storage import return_freed_memory  # lazy: command: its body

    gc.collect()
    return_freed_memory()


def _show(asked: Asked, run: Run, blamed: Blame, all: bool) -> None:
    from gradcli.questions.blame.tell import (  # lazy: command: its body
        blame_document,
        blame_text,
    )
    from gradcli.show.answer import Answer  # lazy: command: its body

    with run.session.running():
        shown = Answer(partial(blame_text, blamed, all=all), partial(blame_document, blamed))
        asked.terminal.answer(shown, asked.options.format)


def _blame_watched(asked: Asked, watched: Watched) -> int:
    """Answer from what `record --watch` wrote."""
    from gradcli.questions.blame.tell import answer_of  # lazy: command: its body

    asked.terminal.answer(answer_of(watched), asked.options.format)
    return 0 if watched.nonfinite is None else 1


def _find_cure(
    asked: Asked, run: Run, blamed: Blame, statements: Sequence[Statement], result: Result
) -> None:
    """Look for a rewrite that is finite and right."""
    from gradcli.questions.blame.rewrites import (  # lazy: command: its body
        OutOfTime,
        all_finite,
        find_fix,
        rewrites,  # lazy: command: its body
        within,
    )
    from gradcli.running.rerun import leaves_of, outcome_of, rerun_of  # lazy: command: its body

    first = blamed.first
    assert first is not None
    seconds = _SECONDS if run.work <= _LONG else _SECONDS_OF_LONG
    again, loops = rerun_of(asked), run.session.interpreter.long_loops
    again.rounds = again.rounds if loops is None else loops.wanted or again.rounds
    rerun = within(seconds, again)
    again.widens, text = True, asked.program.text()
    try:
        exact = rerun(text, dtype="float64")
        if exact is not None and getattr(exact.output, "dtype", None) == "float64":
            first.too_large = not all_finite(exact)
        changes = rewrites(first, blamed.others, statements)
        data = leaves_of(run)
        former = outcome_of(result)
        first.fix = find_fix(changes, former, exact, rerun, data, text, not first.in_part)
    except OutOfTime:
        first.untried = "the program runs too long"
    if first.fix is not None:
        first.fix.chooses = first.cause in _WITHOUT_VALUE


def _differentiated(run: Run, value: Any) -> Result | None:
    """The result of a run; of several numbers without a seed, that of their sum."""
    from gradcli.running.report import find_output  # lazy: command: its body

    try:
        return run.result(value)
    except GradcliError as error:
        named = find_output(run.session, run.options, value)
        if error.code != "E401" or named is None:
            raise
        run.options.seed = f"torch.ones({', '.join(map(str, named[1].array.shape))})"
        return run.result(value)
