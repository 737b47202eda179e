"""`gradcli derive`: the gradients as formulas of the inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gradcli.errors import GradcliError
from gradcli.questions.answer import show_explanation
from gradcli.running.arguments.click_options import with_answer_file, with_program
from gradcli.running.arguments.values import Argument
from gradcli.running.source import AnswerFile, Asked, Program, asked_of

if TYPE_CHECKING:
    from gradcli.recorded.result import Result
    from gradcli.running.run import Run
    from gradcli.show.answer import Answer


@click.command("derive")
@click.option("--shape", is_flag=True, help="Values are shapes: x=3,4 is random, 3 by 4.")
@click.option(
    "--to",
    "target",
    type=click.Choice(["gradcli", "latex", "numpy", "jax", "torch"]),
    help="Formulas in the language or in LaTeX, or a file for NumPy, JAX or PyTorch; of -o x.tex"
    " and x.py LaTeX and NumPy, unless this says otherwise.",
)
@click.option("--jacobian", is_flag=True, help="The derivatives of a vector, as matrices.")
@click.option("--hessian", is_flag=True, help="The second derivatives of a number, by each pair.")
@click.option("--json", is_flag=True, help="Print the formulas as JSON.")
@with_answer_file(".txt", ".json", ".tex", ".py")
@with_program
def command(
    words: Sequence[str],
    file: str | None,
    shape: bool,
    target: str | None,
    jacobian: bool,
    hessian: bool,
    **given: Any,
) -> int:
    """Write the gradients down as formulas of the inputs."""
    suffix = os.path.splitext(given["output"] or "")[1]
    target = target or {".tex": "latex", ".py": "numpy"}.get(suffix, "gradcli")
    asked = asked_of("derive", words, file, given)
    if shape:
        asked.arguments = with_shapes(asked.arguments)
    if jacobian and hessian:
        raise click.UsageError("--jacobian and --hessian exclude each other")
    matrices = "jacobian" if jacobian else "hessian" if hessian else ""
    return asked.terminal.checked(derive(asked, target, matrices))


def derive(asked: Asked, target: str, matrices: str = "") -> int:
    """Show the gradients of a program as formulas, written for a target; or the matrices that they
    are products with.
    """
    recording = asked.options.recording
    if recording is not None:
        # What stands behind the last backward pass, as an optimizer's step, is no part of it.
        asked.program = Program(recording.ahead_of_step(asked.program.text()), asked.program.name)
    if matrices == "hessian":
        return _hessian(asked, target)
    return _derived(asked, target, matrices)


def _hessian(asked: Asked, target: str) -> int:
    """Show the second derivatives of a number: by each pair of names where there are several."""
    from gradcli.questions.derive.answer import with_gradients  # lazy: command: its body

    programs = with_gradients(asked)
    is_whole = target not in ("gradcli", "latex") or asked.options.format == "json"
    if len(programs) > 1 and (is_whole or isinstance(asked.terminal, AnswerFile)):
        names = ", ".join(programs)
        raise GradcliError(
            "E413", f"a file or JSON has the Hessian by one name, and these are {names}",
            help="choose the name with --wrt",
        )  # fmt: skip
    code = 0
    arguments, seed = list(asked.arguments), asked.options.seed
    for name, text in programs.items():
        asked.program = Program(text, asked.program.name)
        asked.arguments, asked.options.seed = list(arguments), seed
        only = "hessian" if len(programs) == 1 else f"hessian_{name}"
        code = code or _derived(asked, target, only)
    return code


def _derived(asked: Asked, target: str, matrices: str) -> int:
    asked.arguments = arguments = list(asked.arguments)

    def prepare(run: Run) -> None:
        from gradcli.questions.derive.answer import (  # lazy: command: after the text
            record_values,
            seed_for,
            symbols,
        )

        statements = run.session.parse(asked.program.text(), asked.program.name)
        arguments.extend(symbols(statements, arguments))
        if run.options.seed is None:
            run.options.seed = seed_for(asked, not matrices)
        record_values(run)

    def show(run: Run, result: Result) -> Answer:
        from gradcli.questions.derive.answer import formulas  # lazy: command: after the text

        return formulas(run, result, asked.program.text(), target, matrices)

    return show_explanation(asked, show, prepare)


def with_shapes(arguments: Sequence[Argument]) -> list[Argument]:
    """Arguments, those whose values are shapes, `x=3,4`, as random tensors."""
    found = []
    for argument in arguments:
        sizes = argument.text.strip("() ").removesuffix(",")
        words = [each.strip() for each in sizes.split(",")] if sizes else []
        if not argument.file and all(each.isdecimal() for each in words):
            kind = ":const" if argument.constant else ""
            word = f"{argument.name}{kind}=randn({', '.join(words) or '()'})"
            argument = Argument(argument.name, argument.constant, word, word.index("=") + 1)
        found.append(argument)
    return found
