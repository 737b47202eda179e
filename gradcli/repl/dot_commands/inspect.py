"""Dot-commands that look at the session: `.help .vars .grads .trace .explain .derive .show .why
.blame .flow .check .plot`, and `x?`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradcli.arrays.backend import to_host
from gradcli.arrays.printing import format_tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.events import Asked, Explained, Shown, Traced
from gradcli.library.namespace import unknown_name
from gradcli.repl.dot_commands.describe import answer, kind_of, preview
from gradcli.repl.dot_commands.line import DotCommand, Line
from gradcli.running.arguments.options import TRACES
from gradcli.running.process.programs import opens
from gradcli.running.report import parameters_of
from gradcli.show.help.manual import rendered
from gradcli.show.help.pages import page, topics
from gradcli.show.style import block

if TYPE_CHECKING:
    from gradcli.running.run import Run


def help(run: Run, line: Line) -> None:
    """Show the commands, or help on a topic: a command, an op, a code, a name of the session."""
    wanted = line.argument(1)
    if wanted is None:
        run.show(_overview(line.commands))
        return
    command = line.commands.get(wanted)
    if command is not None:
        run.show(f"{command.usage}\n  {command.summary}\n")
        return
    text = None if wanted in run.session.values else page(wanted, run.terminal.style)
    if text is None:
        explain(run, line, wanted)
    else:
        run.show(text)


_USAGE = 24
"""Columns for the usage of a command; behind a longer one the summary begins a line."""


def _overview(commands: Mapping[str, DotCommand]) -> str:
    known = {command.usage: command.summary for command in commands.values()}
    rows = []
    for usage, summary in (known | {"NAME?": "what a value, an op or a module is"}).items():
        if len(usage) > _USAGE:
            rows.append(f"  {usage}")
            usage = ""
        rows.append(f"  {usage.ljust(_USAGE)}  {summary}")
    more = f"topics: {', '.join(topics())}, any op, any code such as E301"
    return "\n".join([*rows, "", rendered(more)])


def explain(run: Run, line: Line, name: str, *, source: bool = False) -> None:
    """Show what a name stands for, with `source` the statement that gave it its value too; raises
    E101 for one without a value.
    """
    text = answer(run, name)
    if text is not None and source and (span := run.transcript.assignment(name)) is not None:
        text = f"{text}\n{span.text}\n"
    if text is None:
        start = line.source.text.rindex(name)
        span = line.span(start, start + len(name))
        error = unknown_name(name, run.session.values, span)
        error.help = error.help or "`.help` lists the topics"
        raise error
    run.show(text)


def variables(run: Run, _line: Line) -> None:
    """Show the names of the session, each with what it holds."""
    rows = [(name, kind_of(value), preview(value)) for name, value in run.session.values.items()]
    if not rows:
        run.terminal.note("no name has a value yet")
        return
    names, kinds = (max(len(row[column]) for row in rows) + 2 for column in (0, 1))
    width = (run.terminal.style.width or 100) - names - kinds
    for name, kind, text in rows:
        shown = text if len(text) <= width else f"{text[: max(width - 1, 8)]}…"
        run.show(f"{name.ljust(names)}{kind.ljust(kinds)}{shown}".rstrip() + "\n")


def grads(run: Run, _line: Line) -> None:
    """Show the gradient of every leaf that requires one, of every parameter by its path, and of
    what retains its own; parameters without one come first, with the reason. A table compares them.
    """
    session = run.session
    parameters = parameters_of(session)
    known = {parameter for _, parameter in parameters}
    tensors = [
        (name, value)
        for name, value in session.values.items()
        if type(value) is Tensor
        and value not in known
        and value.requires_grad
        and (value.is_leaf or value.retains_grad)
    ]
    missing = [each for each in parameters if each[1].grad is None]
    for name, parameter in missing:
        run.show(f"{name}.grad = None{_why_none(parameter)}\n")
    for name, tensor in [*tensors, *(each for each in parameters if each not in missing)]:
        gradient = tensor.grad
        text = "None" if gradient is None else format_tensor(gradient.array)
        run.show(block(f"{name}.grad = ", text) + "\n")
    _compare(run, [(name, each.grad) for name, each in [*tensors, *parameters]])
    if not tensors and not parameters:
        run.terminal.note("no name holds a leaf that requires grad")


def _compare(run: Run, gradients: list[tuple[str, Tensor | None]]) -> None:
    """Show a table of gradients where one of them has several elements."""
    held = [(name, to_host(each.array)) for name, each in gradients if each is not None]
    if any(array.size > 1 for _, array in held):
        from gradcli.questions.explain.flow import (  # lazy: command: likewise
            gradients_table,
        )
        from gradcli.running.plots import terminal_kind  # lazy: command: after the gradients

        run.show(f"\n{gradients_table(held, terminal_kind() == 'ascii')}")


def _why_none(parameter: Tensor) -> str:
    if not parameter.requires_grad:
        return "  (it is frozen: requires_grad is False)"
    return "  (no backward pass has reached it: `.why` says why)"


def trace(run: Run, line: Line) -> None:
    """Show the backward graph of a tensor: of the one assigned last if none is named."""
    first = line.argument(1)
    only_style = len(line.words) == 2 and first in TRACES and first not in run.session.values
    style = (first if only_style else line.choice(2)) or TRACES[0]
    name, tensor = _with_graph(run, line, last=only_style)
    if style == "steps" and tensor.array.size != 1:
        raise GradcliError(
            "E401",
            f"the steps of `{name}` need a gradient to start from, since it is no scalar",
            span=line.words[-1],
            help=f"sum it first: s = {name}.sum()",
        )
    run.session.emit(Traced(tensor, style))


def _with_graph(run: Run, line: Line, *, last: bool) -> tuple[str, Tensor]:
    """The tensor that the first argument names, or the one assigned last; raises E402 for one that
    has no graph.
    """
    if len(line.words) > 1 and not last:
        name, tensor = line.tensor(run, 1)
    else:
        assigned = run.session.last_tensor()
        if assigned is None:
            raise line.wrong("no tensor has been assigned yet", line.words[0])
        name, tensor = assigned
    if not tensor.requires_grad:
        raise GradcliError(
            "E402", f"`{name}` does not require grad, so it has no graph", span=line.words[-1]
        )
    return name, tensor


def ledger(run: Run, line: Line) -> None:
    """Show the chain rule at work: of the tensor assigned last if none is named."""
    _, tensor = _with_graph(run, line, last=False)
    run.session.emit(Explained(tensor, derived=False))


def formulas(run: Run, line: Line) -> None:
    """Show the gradients of a tensor as formulas."""
    _, tensor = _with_graph(run, line, last=False)
    run.session.emit(Explained(tensor, derived=True))


def show(run: Run, line: Line) -> None:
    """Draw the graph of a tensor in a file; at a terminal, in a session, open it on the desktop.

    Without the name of a file it is a page that steps, in the folder of temporary files.
    """
    _, tensor = _with_graph(run, line, last=False)
    chosen_path = line.argument(2)
    path = chosen_path or _temporary_page(run)
    try:
        with line.placing_errors(0 if chosen_path is None else 2):
            run.session.emit(Shown(tensor, path))
    except BaseException:
        if chosen_path is None:
            os.unlink(path)
        raise
    at_terminal = run.shows_values and run.terminal.style.width is not None and not run.reading
    opened = at_terminal and opens(os.path.realpath(path))
    run.terminal.note(f"{path} {'opens in the browser' if opened else 'is written'}")


def _temporary_page(run: Run) -> str:
    """A new file that only its owner reads."""
    folder = tempfile.gettempdir()
    run.session.state.limits.check_file(folder)
    try:
        descriptor, path = tempfile.mkstemp(".html", "gradcli-", folder)
    except OSError as error:
        raise GradcliError("E603", f"{folder}: {(error.strerror or '').lower()}") from error
    os.close(descriptor)
    return path


def plot(run: Run, line: Line) -> None:
    """Draw the numbers of tensors and lists, each as a curve of its own."""
    from gradcli.library.drawing import quick  # lazy: start-up: few sessions draw

    drawn = dict(line.value(run, place) for place in range(1, len(line.words)))
    with run.session.running(), line.placing_errors(1):
        quick.plot((), drawn, "", "line", None)


# --- questions: the events that `why("x.grad")`, `blame()` and `check()` emit in a program --------


def why(run: Run, line: Line) -> None:
    """Say why a tensor has a gradient, requires one or is a leaf."""
    with line.placing_errors(1):
        run.session.emit(Asked("why", line.argument(1) or ""))


def blame(run: Run, _line: Line) -> None:
    """Find the first NaN or infinity."""
    run.session.emit(Asked("blame"))


def flow(run: Run, _line: Line) -> None:
    """Show how gradients fare in each layer."""
    run.session.emit(Asked("flow"))


def check(run: Run, _line: Line) -> None:
    """Check the gradients of the tensor assigned last."""
    run.session.emit(Asked("check"))
