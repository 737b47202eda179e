"""Explains a backward pass whose graph is gone: from a second run of the session, recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.errors import GradcliError
from gradcli.language.events import Explained, Shown, Traced
from gradcli.language.tree.syntax import Command
from gradcli.recorded.ledger import last_pass
from gradcli.running.run import Run

if TYPE_CHECKING:
    from gradcli.autograd.recording.recorder import Event
    from gradcli.autograd.tensor import Tensor

Answer = TypeVar("Answer")

Explain = Callable[[Run, "Tensor", Sequence["Event"]], Answer]
"""What is made of a run, the tensor in it and the events of the backward pass from it."""


def explained(
    run: Run, tensor: Tensor, explain: Explain[Answer], seed: Tensor | None = None
) -> Answer:
    """What `explain` makes of the backward pass from a tensor of a run, which leaves no trace.

    A graph that an earlier pass freed, or whose saved values were written over since, cannot run
    again: then the statements so far are run once more and recorded, and the pass is read there.

    Raises what a backward pass raises.
    """
    try:
        return explain(run, tensor, run.session.rehearse(tensor, seed))
    except GradcliError as error:
        if error.code not in ("E403", "E404"):
            raise
        replay = _Replay(run, tensor, explain, seed)
        replay.play()
        if not replay.answers:
            raise
        return replay.answers[0]


def with_values(run: Run, tensor: Tensor, explain: Explain[Answer]) -> Answer:
    """What `explain` makes of a graph with all its values, and of the backward pass from a tensor
    that is one number; of others there are no events.

    A session keeps the values that have names; those of all nodes come from a second run of it. A
    program that is run from a file is not run again for what it asks itself, maybe in a loop.
    """
    recorder = run.session.recorder
    again = recorder is not None or isinstance(run.statement, Command)
    if again and not isinstance(recorder, TraceRecorder):
        replay = _Replay(run, tensor, explain, None)
        with suppress(GradcliError):  # statements that were forgotten
            replay.play()
        if replay.answers:
            answer: Answer = replay.answers[0]
            return answer
    if tensor.array.size != 1:
        return explain(run, tensor, ())
    return explained(run, tensor, explain)


class _Replay(Run):
    """A second run of a session, which stops to answer where the session stands."""

    def __init__(
        self, run: Run, tensor: Tensor, explain: Explain[Any], seed: Tensor | None
    ) -> None:
        super().__init__(run.terminal, run.options, "all")
        self.muted = True
        self.answers: list[Any] = []
        self._former = run
        self._explain = explain
        self._seed = seed
        self._name = next((n for n, each in run.session.values.items() if each is tensor), None)

    def play(self) -> None:
        """Run the statements so far, with the one that asks if it is no dot-command."""
        asking = self._former.statement
        program = self._former.transcript.program()
        inside = asking is not None and not isinstance(asking, Command)
        if asking is not None and inside:
            program += f"{asking.span.text}\n"
        name = self._former.name_so_far()
        try:
            with self.limited():
                self.execute(self.session.parse(program, name), self._former.arguments())
        except GradcliError:
            pass  # what failed in the session fails here too
        value = self.session.values.get(self._name or "")
        if not inside and value is not None:
            self._answer(value)

    def _emit(self, event: Any) -> None:
        if isinstance(event, (Explained, Shown, Traced)):
            self.asked += 1
            if self.asked == self._former.asked:
                self._answer(event.tensor)

    def _answer(self, tensor: Tensor) -> None:
        session = self.session
        events: Sequence[Event] = ()
        if self._seed is None:
            events = last_pass(session.graph(tensor), session.recorder.events)
        if not events and (self._seed is not None or tensor.array.size == 1):
            events = session.rehearse(tensor, self._seed)
        self.answers.append(self._explain(self, tensor, events))
