"""`.step`: a walk through a backward pass, driven by lines from the keyboard or a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gradcli.errors import GradcliError, Source
from gradcli.language.hints.spelling import closest
from gradcli.language.objects.repr import display
from gradcli.recorded.walk import Walk
from gradcli.repl.dot_commands.line import Line
from gradcli.running.replay import explained
from gradcli.running.report import advising_seed, differentiated
from gradcli.show.graph.steps import KEYS, gradients_text, list_text, stop_text

if TYPE_CHECKING:
    from gradcli.running.run import Run

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
