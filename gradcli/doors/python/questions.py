"""Questions about a program: each runs it, and answers from what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from gradcli.doors.python.host import Host, pass_on, raising
from gradcli.doors.python.inputs import (
    Text,
    arguments_of,
    check_used,
    names_in,
    options_of,
    split,
    text_of,
)
from gradcli.errors import Warned
from gradcli.questions.blame import command as blaming
from gradcli.questions.check import command as checking
from gradcli.questions.derive import command as deriving
from gradcli.questions.explain import command as explaining
from gradcli.questions.why import command as reasoning
from gradcli.running.arguments.files import program_in
from gradcli.running.arguments.options import Options
from gradcli.running.source import Asked, Program

TARGETS = ("gradcli", "latex", "numpy", "torch")

_Inputs = Mapping[str, Any] | None


def explain(
    text: Text | Path,
    inputs: _Inputs = None,
    /,
    *,
    element: Sequence[int] | None = None,
    ties: bool = False,
    paths: str | None = None,
    saved: bool = False,
    **named: Any,
) -> Answer:
    """The chain rule at work in a program, edge by edge.

    Args:
        element: the element of large gradients that is worked out, None for the first.
        ties: whether the elements on a kink or a tie are listed.
        paths: a leaf, all paths to which are listed, each with its share.
        saved: whether it is listed what the nodes saved.
        named: inputs and settings, as for `run`.
    """
    index = None if element is None else tuple(element)
    return answered(
        asked_of("explain", text, inputs, named),
        lambda asked: explaining.explain(asked, index, ties, paths, saved),
    )


def flow(text: Text | Path, inputs: _Inputs = None, /, **named: Any) -> Answer:
    """How gradients fare in each layer of a program: the norm of each parameter's gradient, the
    gain of its layer, zeros and NaN.
    """
    return answered(asked_of("explain", text, inputs, named), explaining.flow)


def derive(
    text: Text | Path, inputs: _Inputs = None, /, *, target: str = "gradcli", **named: Any
) -> Answer:
    """The gradients of a program as formulas of its inputs.

    Args:
        target: what they are written for: "gradcli", "latex", "numpy" or "torch".
        named: inputs and settings, as for `run`.
    """
    if target not in TARGETS:
        raise ValueError(f"target is one of {', '.join(TARGETS)}, not {target!r}")
    return answered(
        asked_of("derive", text, inputs, named), lambda asked: deriving.derive(asked, target)
    )


def why(question: str, text: Text | Path, inputs: _Inputs = None, /, **named: Any) -> Answer:
    """Why a tensor of a program has a gradient, or has none.

    Args:
        question: `x.grad`, `x.requires_grad`, `x.is_leaf` or `net.0.weight.trains`.
        named: inputs and settings, as for `run`.
    """
    return answered(
        asked_of("why", text, inputs, named),
        lambda asked: reasoning.why(asked, reasoning.read_question(question)),
    )


def blame(
    text: Text | Path, inputs: _Inputs = None, /, *, all: bool = False, **named: Any
) -> Answer:
    """The first NaN or infinity of a program, and a fix that was run.

    Args:
        all: whether every number that is not finite is listed, in order.
        named: inputs and settings, as for `run`.
    """
    return answered(
        asked_of("blame", text, inputs, named), lambda asked: blaming.blame(asked, all=all)
    )


def check(
    text: Text | Path,
    inputs: _Inputs = None,
    /,
    *,
    order: int = 1,
    elements: int | None = None,
    equals: Mapping[str, str] | None = None,
    against: Mapping[str, Any] | str | None = None,
    **named: Any,
) -> Answer:
    """A program's gradients against central differences in float64, or ones made by hand against
    them; true where all are right.

    Args:
        order: 1 for the gradient, 2 for the second derivative along a random direction.
        elements: how many elements of an input are checked, chosen at random where it has more; by
            default 100, or random directions where these would take more than 30 seconds.
        equals: gradients made by hand as expressions of the program's names, by input.
        against: gradients made by hand as arrays, by input, or the path of a file of them.
        named: inputs and settings, as for `run`.
    """
    if order not in (1, 2):
        raise ValueError(f"order is 1 or 2, not {order!r}")
    if equals is not None and not isinstance(equals, Mapping):
        raise TypeError("equals has an expression for each input: {'x': '2 * x'}")
    right = dict(against) if isinstance(against, Mapping) else against
    wanted = checking.Check(order, elements, right, list((equals or {}).items()))
    return answered(
        asked_of("check", text, inputs, named), lambda asked: checking.check(asked, wanted)
    )


# --- asking -------------------------------------------------------------------------------------


def asked_of(command: str, text: Text | Path, inputs: _Inputs, named: Mapping[str, Any]) -> Asked:
    """What a call asks; raises TypeError and ValueError for inputs that are none."""
    values, settings = split(inputs, named)
    arguments = arguments_of(values)
    options = options_of(settings)
    host = Host()
    with raising(host):
        program = _program(text, options)
        asked = Asked(host, command, program, arguments, options)
        names = names_in(asked.program.statements())
        check_used(names, [each for each in arguments if each.name in named])
    return asked


def _program(text: Text | Path, options: Options) -> Program:
    if isinstance(text, Path):
        return Program(program_in(str(text), options), str(text))
    return Program(text_of(text))


def answered(asked: Asked, ask: Callable[[Asked], int]) -> Answer:
    """The answer that a question gives; raises the error that ends the run."""
    host = host_of(asked)
    with raising(host):
        code = ask(asked)
    _, warned = host.taken()
    pass_on(warned, 3)
    answer, document = host.answers[-1]
    return Answer(answer, document, code == 0, warned)


def host_of(asked: Asked) -> Host:
    """What keeps the answers of a call."""
    assert isinstance(asked.terminal, Host)
    return asked.terminal


@dataclass(frozen=True)
class Answer:
    """What a question found.

    Attributes:
        text: as the command line prints it.
        data: as `--json` prints it, with its schema.
        passed: False where `check` found a wrong gradient, or `blame` a number that is not finite.
        warnings: what is likely a mistake in the program.
    """

    text: str
    data: dict[str, Any]
    passed: bool
    warnings: tuple[Warned, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return self.passed

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"
