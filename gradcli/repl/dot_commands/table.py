"""Dot-commands: lines such as `.vars`, in the REPL and in scripts alike.

`TABLE` is all there is of them: a new command is a function and an entry there.

First those that change the session, then those that look at it. `.step` is a walk through a
backward pass, driven by lines from the keyboard or a pipe.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradcli.arrays.backend import to_host
from gradcli.arrays.files.formats import replace
from gradcli.arrays.printing import format_tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Source, SyntaxErrors
from gradcli.language.events import Asked, Explained, Shown, Traced
from gradcli.language.hints.spelling import closest
from gradcli.language.objects.repr import display
from gradcli.library.namespace import unknown_name
from gradcli.recorded.result import Gradient
from gradcli.recorded.walk import Walk
from gradcli.repl.dot_commands.describe import answer, kind_of, preview
from gradcli.repl.dot_commands.line import DotCommand, Line
from gradcli.running.arguments.files import RECORDING, program_in, read_program
from gradcli.running.arguments.options import FORMATS, TRACES
from gradcli.running.process.programs import opens
from gradcli.running.report import (
    advising_seed,
    differentiated,
    gradient_text,
    parameters_of,
    warn_of_nonfinite,
)
from gradcli.running.rerun import explained
from gradcli.show.diagnostics.human import location
from gradcli.show.graph.steps import KEYS, gradients_text, list_text, stop_text
from gradcli.show.help.manual import rendered
from gradcli.show.help.pages import page, topics
from gradcli.show.style import block, counted

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Command
    from gradcli.running.run import Run


_MOST_FILES = 20
"""Files that read each other, one inside the other."""


def backward(run: Run, line: Line) -> None:
    """Run backward from a tensor and show what it left in the leaves."""
    session = run.session
    name, output = line.tensor(run, 1)
    seed = line.seed(run, 2, output)
    graph = session.graph(output)
    with advising_seed(output, f".backward {name} {{}}"):
        session.backward(output, seed)
    gradients = [
        Gradient(node.variable, node.leaf, graph, name)
        for node in graph.nodes
        if node.leaf is not None
    ]
    for gradient in gradients:
        run.show(gradient_text(run.terminal.style, gradient))
    warn_of_nonfinite(run.terminal, gradients)


def read(run: Run, line: Line) -> None:
    """Run a file in this session; its errors point into it."""
    path = _path(run, line)
    inside = os.path.realpath(path)
    if inside in run.reading or len(run.reading) == _MOST_FILES:
        raise GradcliError(
            "E601", f"{path} is being read already: the files read each other", span=line.words[1]
        )
    is_recording = path.endswith(RECORDING)
    if is_recording and run.options.recording is not None:
        held = run.options.recording.path
        raise line.wrong(
            f"the session holds the recording {held} already",
            line.words[1],
            "`.reset` forgets it, with all values",
        )
    with line.placing_errors(1):
        text = program_in(path, run.options) if is_recording else read_program(path)
    if is_recording:
        run.begin_replay()
    run.reading.append(inside)
    try:
        for _ in run.follow(run.session.parse(text, path)):
            pass
        if is_recording:
            run.tell_replay()
    except GradcliError as error:
        last = error.errors[-1] if isinstance(error, SyntaxErrors) else error
        last.notes = (*last.notes, f"`.read` runs this file at {location(line.words[0])}")
        raise
    finally:
        run.reading.pop()


def save(run: Run, line: Line) -> None:
    """Write the statements that succeeded, as a program that makes the same values."""
    path = _path(run, line)
    program = run.transcript.program().encode("utf-8", "backslashreplace")
    with line.placing_errors(1):
        replace(path, lambda stream: stream.write(program))
    statements = counted(len(run.transcript), "statement")
    failed = run.transcript.failed
    left_out = f", without {failed:,} that failed or were interrupted" if failed else ""
    run.terminal.note(f"{statements} saved to {path}{left_out}")


def undo(run: Run, line: Line) -> None:
    """Take the last statement back: the others run again from the start, and nothing that they show
    is shown again.
    """
    last = run.transcript.last()
    if last is None:
        raise line.wrong("there is no statement to take back", line.words[0])
    *kept, _ = run.session.parse(run.transcript.program(), run.name_so_far())
    arguments = [(name, run.session.values[name]) for name in run.bound_names()]
    failed = run.transcript.failed
    run.reset()
    for name, value in arguments:
        run.session.bind(name, value)
    before, run.muted = run.muted, True
    try:
        for _ in run.follow(kept):
            pass
    finally:
        run.muted = before
        run.transcript.failed = failed
    run.terminal.note(f"taken back: {last.text.splitlines()[0]}")


def reset(run: Run, _line: Line) -> None:
    """Forget all values and what `.save` would write, and a recording."""
    run.options.recording = run.replay = None
    run.reset()


def timer(run: Run, line: Line) -> None:
    """Turn the times of statements on or off, or say which it is."""
    wanted = line.choice(1)
    if wanted is None:
        run.show(f"{'on' if run.timed else 'off'}\n")
    else:
        run.timed = wanted == "on"


def mode(run: Run, line: Line) -> None:
    """Choose how values are shown, or say how they are."""
    wanted = line.choice(1)
    if wanted is None:
        run.show(f"{run.mode}\n")
    else:
        run.mode = wanted


def quit(run: Run, _line: Line) -> None:
    """End the session."""
    run.session.ended = True


def _path(run: Run, line: Line) -> str:
    """The file that a line names; raises E606 where files are out of bounds."""
    path = line.argument(1)
    assert path is not None
    with line.placing_errors(1):
        run.session.state.limits.check_file(path)
    return os.path.expanduser(path)


# --- a backward pass, step by step --------------------------------------------------------------


_PROMPT = "step> "


def step(run: Run, line: Line) -> None:
    """Walk through the backward pass of a tensor: of what `backward()` was last called on if none
    is named, or of the one assigned last. No `.grad` changes, and the graph is kept.

    Raises E402 for a tensor without a graph, and what a backward pass raises.
    """
    if len(line.words) > 1:
        name, output = line.tensor(run, 1)
    else:
        recorder = run.session.state.recorder
        last = None if recorder is None else differentiated(run.session)
        last = last or run.session.last_tensor()
        if last is None:
            raise line.wrong("no tensor has been assigned yet", line.words[0])
        name, output = last[0] or "the output", last[1]
    if not output.requires_grad:
        raise GradcliError(
            "E402",
            f"`{name}` does not require grad: there is no backward pass to walk through",
            span=line.words[-1],
        )
    seed = line.seed(run, 2, output)
    with advising_seed(output, f".step {name} {{}}"):
        walk = explained(
            run, output, lambda run, out, events: Walk(run.session.graph(out), events), seed
        )
    with run.session.running():
        run.show(stop_text(walk, run.terminal.style))
        while (text := _read(run)) is not None:
            if not _obey(run, walk, text):
                return


def _read(run: Run) -> str | None:
    """The next line, None at the end of input."""
    run.terminal.flush()
    stream = sys.stdin
    if stream.isatty():
        sys.stderr.write(_PROMPT)
        sys.stderr.flush()
        text = stream.readline()
    else:  # where a script comes from too, line by line
        text = stream.buffer.readline().decode("utf-8", "replace")
    return text.strip() if text else None


def _obey(run: Run, walk: Walk, text: str) -> bool:
    """Do what a line says; whether the walk goes on."""
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    style = run.terminal.style
    if word in ("q", "quit"):
        return False
    if word in ("g", "grads"):
        run.show(gradients_text(walk, style))
    elif word in ("l", "list"):
        run.show(list_text(walk))
    elif word == "break" and rest:
        _break(run, walk, rest)
    elif word in ("", "n", "next", "b", "back", "c", "continue") or word.isdecimal():
        if not _move(walk, word, rest):
            ends = "the first step" if walk.at == 0 else "the last step"
            run.terminal.note(f"this is {ends}")
        run.show(stop_text(walk, style))
    elif word in ("?", "h", "help"):
        run.show(KEYS)
    elif text.isidentifier() and text not in run.session.values:
        run.terminal.note(f"there is no `{text}` here")
        run.show(KEYS)
    else:
        _evaluate(run, text)
    return True


def _evaluate(run: Run, text: str) -> None:
    """Show the value of an expression; the walk goes on where it has none."""
    try:
        value = run.session.evaluate(Source("step", text))
        with run.session.running():
            run.show(f"{display(value)}\n")
    except GradcliError as error:
        run.terminal.error(error)


def _move(walk: Walk, word: str, rest: str) -> bool:
    """Go where a line says; whether there is such a step."""
    count = int(rest) if rest.isdecimal() else 1
    if word.isdecimal():
        return walk.go(int(word) - 1)
    if word in ("b", "back"):
        return walk.go(walk.at - count)
    if word in ("c", "continue"):
        return walk.on()
    return walk.go(walk.at + count)


def _break(run: Run, walk: Walk, name: str) -> None:
    """Set a break point, or take it back."""
    if name in walk.breaks:
        walk.breaks.remove(name)
        run.show(f"no break point at {name} any more\n")
        return
    if name not in walk.known():
        near = closest(name, sorted(walk.known()))
        hint = f"; did you mean `{near}`?" if near else ""
        run.terminal.note(f"no step has the name `{name}`{hint}")
        return
    walk.breaks.add(name)
    run.show(f"break point at {name}\n")


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
    from gradcli.library.drawing import axes  # lazy: start-up: few sessions draw

    drawn = dict(line.value(run, place) for place in range(1, len(line.words)))
    with run.session.running(), line.placing_errors(1):
        axes.plot((), drawn, "", "line", None)


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


TABLE = {
    command.name: command
    for command in (
        DotCommand(".help", help, "explain a topic, an op, a code, a name", [("TOPIC", "topic")]),
        DotCommand(".vars", variables, "the names and what they hold"),
        DotCommand(".grads", grads, "the gradients that are there"),
        DotCommand(
            ".trace",
            trace,
            "the graph of a tensor, or of the one assigned last",
            [("NAME", "tensor"), ("STYLE", TRACES)],
        ),
        DotCommand(
            ".explain",
            ledger,
            "the chain rule at work, edge by edge",
            [("NAME", "tensor")],
        ),
        DotCommand(
            ".derive",
            formulas,
            "the gradients of a tensor as formulas",
            [("NAME", "tensor")],
        ),
        DotCommand(
            ".show",
            show,
            "draw the graph of a tensor as a page, and open it",
            [("NAME", "tensor"), ("FILE", "file")],
        ),
        DotCommand(
            ".backward",
            backward,
            "run backward from a tensor and show the gradients",
            [("NAME", "tensor"), ("SEED", "expression")],
            needed=1,
            kept=True,
        ),
        DotCommand(
            ".step",
            step,
            "walk through a backward pass, step by step",
            [("NAME", "tensor"), ("SEED", "expression")],
        ),
        DotCommand(
            ".plot",
            plot,
            "draw the numbers of tensors and lists as curves",
            [("NAME", "tensor"), ("NAME", "tensor"), ("NAME", "tensor")],
            needed=1,
        ),
        DotCommand(
            ".why",
            why,
            "why a tensor has a gradient, or none",
            [("NAME.grad", "tensor")],
            needed=1,
        ),
        DotCommand(".blame", blame, "where the first NaN or infinity comes from"),
        DotCommand(".flow", flow, "how gradients fare in each layer"),
        DotCommand(".check", check, "check the gradients against differences"),
        DotCommand(
            ".read",
            read,
            "run a file, or a recording, in this session",
            [("FILE", "file")],
            needed=1,
        ),
        DotCommand(
            ".save",
            save,
            "write the statements that succeeded",
            [("FILE", "file")],
            needed=1,
        ),
        DotCommand(".undo", undo, "take the last statement back"),
        DotCommand(".reset", reset, "forget all values"),
        DotCommand(".timer", timer, "show how long statements take", [("SWITCH", ("on", "off"))]),
        DotCommand(".mode", mode, "how values are shown", [("FORMAT", FORMATS)]),
        DotCommand(".quit", quit, "end the session"),
    )
}
"""The commands by name."""


def carry_out(run: Run, command: Command) -> None:
    """Do what a line says; raises E104 for an unknown command, E105 for wrong words."""
    line = Line(command.span, TABLE)
    text = line.words[0].text
    if not text.startswith("."):
        explain(run, line, text.strip("? \t"), source="??" in text)
        return
    known = TABLE.get(line.words[0].text)
    if known is None:
        raise _unknown(line)
    known.check(line)
    known.run(run, line)
    if known.kept:
        run.transcript.add(command.span)


def _unknown(line: Line) -> GradcliError:
    word = line.words[0].text
    if not word[1:].isidentifier():
        help = "an expression that goes on in the next line needs brackets around it"
    else:
        near = closest(word[1:], [name[1:] for name in TABLE])
        help = f"did you mean `.{near}`?" if near else "`.help` lists the commands"
    return line.wrong(f"there is no command `{word}`", line.words[0], help, code="E104")
