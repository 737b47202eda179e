"""`gradcli derive`: the gradients as formulas of the inputs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from gradcli.errors import GradcliError
from gradcli.language.rounds import hear_passes
from gradcli.questions.answer import show_explanation
from gradcli.running.arguments.click_options import with_answer_file, with_program
from gradcli.running.arguments.words import Argument
from gradcli.running.run import Run
from gradcli.running.source import AnswerFile, Asked, Program, asked_of

if TYPE_CHECKING:
    from gradcli.recorded.result import Result
    from gradcli.show.answer import Answer


@click.command("derive")
@click.option("--shape", is_flag=True, help="Values are shapes: x=3,4, or x=n,4 for any n.")
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
    **settings: Any,
) -> int:
    """Write the gradients down as formulas of the inputs."""
    suffix = os.path.splitext(settings["output"] or "")[1]
    target = target or {".tex": "latex", ".py": "numpy"}.get(suffix, "gradcli")
    asked = asked_of("derive", words, file, settings)
    if jacobian and hessian:
        raise click.UsageError("--jacobian and --hessian exclude each other")
    matrices = "jacobian" if jacobian else "hessian" if hessian else ""
    sizes: list[dict[str, int]] = []
    others: list[Asked] = []
    if shape:
        asked, *others = at_sizes(asked, sizes)
    return asked.terminal.checked(derive(asked, target, matrices, others, sizes))


def derive(
    asked: Asked,
    target: str,
    matrices: str = "",
    others: Sequence[Asked] = (),
    sizes: Sequence[dict[str, int]] = (),
) -> int:
    """Show the gradients of a program as formulas, written for a target; or the matrices that they
    are products with.

    Args:
        others: the program at other sizes of its inputs, where these have names.
        sizes: the sizes of each of these, those of the first before them.
    """
    from gradcli.questions.derive.answer import (  # lazy: command: its body
        with_functions_of_matrices,
    )

    recording = asked.options.recording
    if recording is not None:
        # What stands behind the last backward pass, as an optimizer's step, is no part of it.
        asked.program = Program(recording.ahead_of_step(asked.program.text()), asked.program.name)
    for each in (asked, *others):
        with_functions_of_matrices(each)
    if matrices == "hessian":
        return _hessian(asked, target, others, sizes)
    return _derived(asked, target, matrices, others, sizes)


def at_sizes(asked: Asked, sizes_of_runs: list[dict[str, int]]) -> list[Asked]:
    """A program whose arguments are shapes, with random tensors; where sizes have names, once for
    each of the sizes that these stand for, which are added to a list.
    """
    from gradcli.questions.derive.sizes import (  # lazy: command: its body
        RUNS,
        sizes_of_run,
        with_shapes,
    )

    runs = []
    for number in range(RUNS):
        sizes = sizes_of_run(asked.arguments, number)
        sizes_of_runs.append(sizes)
        # A size that the program reads is a number of Python in it.
        words = set(re.findall(r"\w+", asked.program.text()))
        values = [(f"{name}:const={sizes[name]}", name) for name in sizes if name in words]
        read = [Argument(name, True, word, word.index("=") + 1) for word, name in values]
        arguments = [*with_shapes(asked.arguments, sizes), *read]
        options = copy(asked.options)
        runs.append(Asked(asked.terminal, asked.command, copy(asked.program), arguments, options))
        if not sizes:
            break
    return runs


def _hessian(
    asked: Asked, target: str, others: Sequence[Asked], sizes: Sequence[dict[str, int]]
) -> int:
    """Show the second derivatives of a number: by each pair of names where there are several."""
    from gradcli.questions.derive.answer import with_gradients  # lazy: command: its body

    runs = [asked, *others]
    programs = [with_gradients(each) for each in runs]
    is_whole = target not in ("gradcli", "latex") or asked.options.format == "json"
    if len(programs[0]) > 1 and (is_whole or isinstance(asked.terminal, AnswerFile)):
        names = ", ".join(programs[0])
        raise GradcliError(
            "E413", f"a file or JSON has the Hessian by one name, and these are {names}",
            help="choose the name with --wrt",
        )  # fmt: skip
    code = 0
    before = [(list(each.arguments), each.options.seed) for each in runs]
    for name in programs[0]:
        for each, texts, (arguments, seed) in zip(runs, programs, before, strict=True):
            each.program = Program(texts[name], each.program.name)
            each.arguments, each.options.seed = list(arguments), seed
        only = "hessian" if len(programs[0]) == 1 else f"hessian_{name}"
        code = code or _derived(asked, target, only, others, sizes)
    return code


def _derived(
    asked: Asked,
    target: str,
    matrices: str,
    others: Sequence[Asked],
    sizes: Sequence[dict[str, int]],
) -> int:
    asked.arguments = arguments = list(asked.arguments)

    def prepare(run: Run) -> None:
        from gradcli.questions.derive.answer import (  # lazy: command: after the text
            note_last_rounds,
            record_values,
            seed_for,
            symbols,
        )

        statements = run.session.parse(asked.program.text(), asked.program.name)
        arguments.extend(symbols(statements, arguments))
        if run.options.seed is None:
            run.options.seed = seed_for(asked, not matrices)
        record_values(run)
        hear_passes(run.session.interpreter)
        note_last_rounds(run)

    def show(run: Run, result: Result) -> Answer:
        from gradcli.questions.derive.answer import (  # lazy: command: after the text
            answer_of,
            check_inputs_recorded,
            formulas_at,
            formulas_of,
        )
        from gradcli.questions.derive.sizes import of_any_size  # lazy: command: after the text

        check_inputs_recorded(run, result)
        text = asked.program.text()
        derived = formulas_of(run, result, text, target, matrices)
        if others:
            at_others = [formulas_at(each, target, matrices) for each in others]
            derived = of_any_size([derived, *at_others], sizes)
        return answer_of(derived, run, result, text, target)

    return show_explanation(asked, show, prepare, result=Run.computed, of_last_rounds=True)
