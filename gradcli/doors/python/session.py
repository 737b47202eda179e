"""A session for Python: one program after another, on values that stay."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from gradcli.autograd.engine import backward as engine
from gradcli.autograd.tensor import Tensor
from gradcli.doors.python.host import Host, pass_on, raising
from gradcli.doors.python.inputs import (
    SETTINGS,
    Settings,
    arguments_of,
    check_used,
    names_in,
    options_of,
    split,
)
from gradcli.doors.python.questions import Answer, answered
from gradcli.doors.python.result import Result, array_of, gradients_in, python_value
from gradcli.errors import GradcliError
from gradcli.questions.blame import command as blaming
from gradcli.questions.check import command as checking
from gradcli.questions.derive import command as deriving
from gradcli.questions.explain import command as explaining
from gradcli.questions.notes.error_notes import note_detachments
from gradcli.questions.why import command as reasoning
from gradcli.recorded import result as found
from gradcli.repl.dot_commands.describe import kind_of, preview
from gradcli.running.arguments.words import Argument
from gradcli.running.report import parameters_of
from gradcli.running.run import Run
from gradcli.running.source import Asked, Program


class Session:
    """Values that stay from one program to the next, as in `gradcli repl`.

    Nothing runs backward on its own: `grad` does, or the program. A question (`why`, `explain`, …)
    runs what succeeded so far once more, recorded.

    Args:
        settings: those of `run`; each limit but memory holds for one `run`.
    """

    def __init__(self, **settings: Unpack[Settings]) -> None:
        unknown = [name for name in settings if name not in SETTINGS]
        if unknown:
            raise TypeError(f"`{unknown[0]}` is none of {', '.join(SETTINGS)}")
        self._settings = settings
        self._file: str | None = None
        self._host = Host()
        self._begin()

    def _begin(self) -> None:
        self._run = Run(self._host, options_of(self._settings), "graph")
        self._run.shows_values = True
        self._inputs: list[Argument] = []
        self._kept = self._entries = 0

    def stand_at(self, path: str) -> None:
        """Let errors call what runs by a file's name, and `import` find the files beside it."""
        self._file = os.path.basename(path)
        self._run.session.state.library["folder"] = os.path.dirname(path)

    def reset(self) -> None:
        """Forget all values, with the same settings."""
        self._begin()

    def run(self, text: str, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
        """Run statements; the result's gradients are those that the session's leaves have now.

        Args:
            text: statements in the names that there are; `_` is the value of the last expression.
            inputs, named: as for `gradcli.run`, without its settings.
        """
        values, settings = split(inputs, named)
        if settings:
            raise TypeError(f"`{next(iter(settings))}` is a setting of the whole session")
        arguments = arguments_of(values)
        run, session = self._run, self._run.session
        since = run.transcript.lines + 1
        self._entries += 1
        with raising(self._host):
            statements = session.parse(text, self._file or f"entry {self._entries}")
            check_used(names_in(statements), [each for each in arguments if each.name in named])
            run.bindings = None
            before, session.interpreter.last_assigned = session.interpreter.last_assigned, None
            try:
                with run.limited():
                    value = run.execute(statements, arguments)
            except GradcliError as error:
                note_detachments(error, run, self._former(statements), ())
                raise
            finally:
                self._keep(arguments, since)
                assigned = session.interpreter.last_assigned
                session.interpreter.last_assigned = assigned or before
        printed, warned = self._host.taken()
        pass_on(warned, 2)
        result = Result(run, self._outcome(value, assigned), value, printed, warned)
        result.grads = self._grads()
        return result

    def _grads(self) -> dict[str, Any]:
        session = self._run.session
        named = {**session.values, **dict(parameters_of(session))}
        tensors = {name: each for name, each in named.items() if type(each) is Tensor}
        with session.running():
            gradients: dict[str, Any] = {
                name: array_of(each.grad)
                for name, each in tensors.items()
                if each.is_leaf and each.grad is not None
            }
            for each in self._inputs:
                if each.name in session.values:
                    gradients |= gradients_in(each.name, session.values[each.name])
            return gradients

    def _former(self, statements: Sequence[Any]) -> list[Any]:
        session = self._run.session
        return [*session.parse(self._run.transcript.program(), "session"), *statements]

    def _keep(self, arguments: Sequence[Argument], since: int) -> None:
        """Remember the values that names got, for a run that answers a question; none of them once
        they are more than a run may have.
        """
        bindings = {} if self._run.bindings is None else self._run.bindings.bindings
        for each in arguments:
            binding = bindings.get(each.name)
            if binding is not None and (binding.settled or binding.bound is not None):
                each.since = since
                self._inputs.append(each)
                self._kept += _elements(each.held)
        if self._kept > self._run.options.limits.elements:
            self._inputs.clear()

    def _outcome(self, value: Any, assigned: str | None) -> found.Result | None:
        """The tensor that statements came to."""
        session = self._run.session
        name, output = (
            (None, value) if assigned is None else (assigned, session.values.get(assigned))
        )
        if type(value) is Tensor:
            name, output = value.name, value
        if type(output) is not Tensor:
            return None
        return found.Result(name, output, None, (), session.graph(output))

    # --- values ---------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """The value of a name, a tensor as a NumPy array; raises KeyError."""
        value = self._run.session.values[name]
        with self._run.session.running():
            return python_value(value)

    def __contains__(self, name: object) -> bool:
        return name in self._run.session.values

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._run.session.values))

    def described(self) -> Iterator[tuple[str, str, str]]:
        """Each name, what it holds (`float32[2, 3] MulBackward0`), and its value on one line."""
        with self._run.session.running():
            for name, value in list(self._run.session.values.items()):
                yield name, kind_of(value), preview(value)

    def grad(
        self, output: str, wrt: Sequence[str] | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """The gradients of a name's tensor, as `torch.autograd.grad` gives them: no `.grad`
        changes, and the graph stays.

        Args:
            wrt: the names by which it is differentiated, None for the named leaves of its graph.

        Raises:
            KeyError: there is no such name.
            GradcliError: E401 for several elements, E402 without a graph, E407 for a name that is
                not in it.
        """
        session = self._run.session
        values = session.values
        with raising(self._host), session.running():
            names = wrt
            if names is None:
                nodes = session.graph(values[output]).nodes
                leaves = {n.variable: n.leaf for n in nodes if n.leaf is not None and n.variable}
            else:
                leaves = {name: values[name] for name in names}
            grads = engine.grad(values[output], leaves, retain_graph=True)
            return {name: array_of(each) for name, each in grads.items()}

    # --- questions ------------------------------------------------------------------------------

    def explain(self, name: str | None = None) -> Answer:
        """The chain rule at work behind a name, or behind the tensor assigned last."""
        return self._ask("explain", explaining.explain, name)

    def derive(self, name: str | None = None, *, target: str = "gradcli") -> Answer:
        """The gradients of a name as formulas, for a target as `gradcli.derive` takes it."""
        return self._ask("derive", lambda asked: deriving.derive(asked, target), name)

    def why(self, question: str) -> Answer:
        """Why a tensor has a gradient, or has none: `session.why("x.grad")`."""
        wanted = reasoning.read_question
        return self._ask("why", lambda asked: reasoning.why(asked, wanted(question)))

    def blame(self, name: str | None = None) -> Answer:
        """The first NaN or infinity so far."""
        return self._ask("blame", lambda asked: blaming.blame(asked, all=False), name)

    def check(self, name: str | None = None) -> Answer:
        """The gradients of a name against central differences."""
        wanted = checking.Check(1, None, None, ())
        return self._ask("check", lambda asked: checking.check(asked, wanted), name)

    def _ask(self, command: str, ask: Callable[[Asked], int], of: str | None = None) -> Answer:
        names = [each.name for each in self._inputs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None and command == "check":
            raise ValueError(
                f"`{twice}` was given two values, and differences move one: ask"
                " gradcli.check() about a program with a name for each"
            )
        options = options_of(self._settings)
        options.limits.check_elements(self._kept, "elements of the session's inputs")
        options.of = of or options.of
        program = Program(self._run.transcript.program(), "session")
        return answered(Asked(Host(), command, program, list(self._inputs), options), ask)


def _elements(value: Any) -> int:
    """How many numbers a value of an input holds."""
    if type(value) is Tensor:
        return int(np.size(value.array))
    return sum(map(_elements, value)) if isinstance(value, (list, tuple)) else 1
