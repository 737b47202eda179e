"""Dot-commands that change the session: `.backward .read .save .undo .reset .timer .mode .quit`.

`.step` is a walk through a backward pass, driven by lines from the keyboard or a pipe.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gradcli.arrays.files.writing import replace
from gradcli.errors import GradcliError, Source, SyntaxErrors
from gradcli.language.hints.spelling import closest
from gradcli.language.objects.repr import display
from gradcli.recorded.result import Gradient
from gradcli.recorded.walk import Walk
from gradcli.repl.dot_commands.line import Line
from gradcli.running.arguments.files import RECORDING, program_in, read_program
from gradcli.running.replay import explained
from gradcli.running.report import advising_seed, differentiated, gradient_text, warn_of_nonfinite
from gradcli.show.diagnostics.human import location
from gradcli.show.graph.steps import KEYS, gradients_text, list_text, stop_text
from gradcli.show.style import counted

if TYPE_CHECKING:
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
