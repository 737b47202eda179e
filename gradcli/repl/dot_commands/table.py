"""Dot-commands: lines such as `.vars`, in the REPL and in scripts alike.

`TABLE` is all there is of them: a new command is a function and an entry there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.language.hints.spelling import closest
from gradcli.repl.dot_commands import inspect, session
from gradcli.repl.dot_commands.line import DotCommand, Line
from gradcli.repl.dot_commands.session import step
from gradcli.running.arguments.options import FORMATS, TRACES

if TYPE_CHECKING:
    from gradcli.errors import GradcliError
    from gradcli.language.tree.syntax import Command
    from gradcli.running.run import Run

TABLE = {
    command.name: command
    for command in (
        DotCommand(
            ".help", inspect.help, "explain a topic, an op, a code, a name", [("TOPIC", "topic")]
        ),
        DotCommand(".vars", inspect.variables, "the names and what they hold"),
        DotCommand(".grads", inspect.grads, "the gradients that are there"),
        DotCommand(
            ".trace",
            inspect.trace,
            "the graph of a tensor, or of the one assigned last",
            [("NAME", "tensor"), ("STYLE", TRACES)],
        ),
        DotCommand(
            ".explain",
            inspect.ledger,
            "the chain rule at work, edge by edge",
            [("NAME", "tensor")],
        ),
        DotCommand(
            ".derive",
            inspect.formulas,
            "the gradients of a tensor as formulas",
            [("NAME", "tensor")],
        ),
        DotCommand(
            ".show",
            inspect.show,
            "draw the graph of a tensor as a page, and open it",
            [("NAME", "tensor"), ("FILE", "file")],
        ),
        DotCommand(
            ".backward",
            session.backward,
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
            inspect.plot,
            "draw the numbers of tensors and lists as curves",
            [("NAME", "tensor"), ("NAME", "tensor"), ("NAME", "tensor")],
            needed=1,
        ),
        DotCommand(
            ".why",
            inspect.why,
            "why a tensor has a gradient, or none",
            [("NAME.grad", "tensor")],
            needed=1,
        ),
        DotCommand(".blame", inspect.blame, "where the first NaN or infinity comes from"),
        DotCommand(".flow", inspect.flow, "how gradients fare in each layer"),
        DotCommand(".check", inspect.check, "check the gradients against differences"),
        DotCommand(
            ".read",
            session.read,
            "run a file, or a recording, in this session",
            [("FILE", "file")],
            needed=1,
        ),
        DotCommand(
            ".save",
            session.save,
            "write the statements that succeeded",
            [("FILE", "file")],
            needed=1,
        ),
        DotCommand(".undo", session.undo, "take the last statement back"),
        DotCommand(".reset", session.reset, "forget all values"),
        DotCommand(
            ".timer", session.timer, "show how long statements take", [("SWITCH", ("on", "off"))]
        ),
        DotCommand(".mode", session.mode, "how values are shown", [("FORMAT", FORMATS)]),
        DotCommand(".quit", session.quit, "end the session"),
    )
}
"""The commands by name."""


def carry_out(run: Run, command: Command) -> None:
    """Do what a line says; raises E104 for an unknown command, E105 for wrong words."""
    line = Line(command.span, TABLE)
    text = line.words[0].text
    if not text.startswith("."):
        inspect.explain(run, line, text.strip("? \t"), source="??" in text)
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
