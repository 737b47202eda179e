"""Error notes: how to give a name a value, and where a graph was cut.

Most errors have no such notes, and a program that cannot be read is answered without NumPy: what
computes them is imported when there is something to compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.errors import RECORDED, GradcliError
from gradcli.language.hints.spelling import ADVICE, SPELLINGS
from gradcli.language.tree.syntax import Call, ExpressionStatement, Name, nodes_of
from gradcli.running.arguments.name_uses import ASSIGNED, BOUND, free_names, name_uses

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement
    from gradcli.running.arguments.words import Argument
    from gradcli.running.run import Run


def note_arguments(
    error: GradcliError,
    statements: Sequence[Statement],
    arguments: Sequence[Argument],
    command: str,
) -> str | None:
    """Let the error of a name without a value show how to give it one, that of class labels in
    floating point how to give them, and that of shapes how to give sizes to what stands for a
    number.

    Args:
        command: the command line up to the arguments.

    Returns:
        The argument whose name was likely meant, if any.
    """
    if error.code == "E203":
        note_classes(error, arguments)
    if error.code in ("E102", "E202", "E402"):
        error.help = diagonal_meant(statements) or error.help
    assumed = [each.name for each in arguments if each.assumed]
    if error.code in ("E301", "E302") and assumed:
        sizes = f"--shape {assumed[0]}=2,3{' …' if assumed[1:] else ''}"
        error.help = f"names without a value stand for numbers; sizes are given by {sizes}"
    if error.span is None:
        return None
    if error.code == "E501" and error.help is None:
        assigned = (
            n for each in statements for n, how in name_uses(each).items() if how == ASSIGNED
        )
        if error.span.text in assigned:
            error.help = "the program comes first, and the values behind it cannot read its names"
    if error.code != "E101":
        return None
    from gradcli.library.namespace import (  # lazy: start-up: NumPy, for E101 alone
        UNSUPPORTED,
        table_of,
    )

    uses = [(name, how) for each in statements for name, how in name_uses(each).items()]
    used = {name for name, _ in uses}
    known = {each.name for each in arguments}
    missing = free_names(statements, known, lambda name: table_of(name) is not None)
    known |= {name for name, how in uses if how in (ASSIGNED, BOUND)}
    if error.span.text not in missing or error.span.text in {*UNSUPPORTED, *ADVICE, *SPELLINGS}:
        return None
    if error.help == RECORDED:  # a function of Python's
        return None
    if error.help is not None and any(f"`{name}`" in error.help for name in known):
        return None  # likely a misspelling of one of the program's own names
    unused = [name for name in (each.name for each in arguments) if name not in used]
    for name in unused:
        slipped = error.span.text.startswith(name) or name.startswith(error.span.text)
        if slipped and set(name) == set(error.span.text) and len(missing) == 1:  # `dd` for `d`
            error.help = f"did you mean `{name}`?"
            return name
    if error.span.source.text[error.span.end :].lstrip(" ").startswith("("):
        return None  # a function, which no argument can be
    from shlex import join  # lazy: start-up

    texts = [each.source.text for each in arguments if each.name in used]
    wanted = [f"{name}={number}" for number, name in enumerate(missing, 2)]
    example = f"give it a value: {command} {join([*texts, *wanted])}"
    if error.help is None:
        error.help = example
    else:  # what the name was likely meant to be
        error.notes = (*error.notes, f"or {example}")
    return None


def diagonal_meant(statements: Sequence[Statement]) -> str | None:
    """What is said of a `trace(…)` whose value is used, None where there is none: it prints a
    graph, and the sum of a diagonal is meant.
    """
    if any(name_uses(each).get("trace") in (ASSIGNED, BOUND) for each in statements):
        return None  # a function of the program's own
    alone = {id(each.value) for each in statements if isinstance(each, ExpressionStatement)}
    for node in nodes_of(list(statements)):
        called = node.function if isinstance(node, Call) and id(node) not in alone else None
        if isinstance(called, Name) and called.name == "trace":
            text = node.span.text
            return f"`{text}` prints a graph; the sum of a diagonal is `torch.{text}`"
    return None


def note_classes(error: GradcliError, arguments: Sequence[Argument]) -> None:
    """Let the error of class labels in floating point show the argument that gives whole numbers.

    A value such as `t=[0, 2]` is floating, since most values are differentiated.
    """
    for each in arguments:
        if error.help is not None and each.text and not each.file:
            whole = f"'{each.name}=tensor({each.text})'"
            error.help = error.help.replace(f"`{each.name}.long()`", whole)


def note_detachments(
    error: GradcliError,
    run: Run,
    statements: Sequence[Statement],
    arguments: Sequence[Argument],
) -> None:
    """Let the error of a missing graph or gradient show where the graph was cut, and that of a
    freed one what to do about its cause.
    """
    if error.code in ("E403", "E404"):
        note_second_pass(error, statements, run.session.values)
    if error.code == "E402" or (error.code == "E202" and error.labels):
        from gradcli.questions.notes.graph_notes import (  # lazy: start-up: it runs again
            label_detachments,
        )

        label_detachments(error, run, statements, arguments)


def note_second_pass(
    error: GradcliError, statements: Sequence[Statement], values: Mapping[str, Any]
) -> None:
    """Let the error of a freed or a changed graph advise what its cause asks for."""
    from gradcli.questions.notes.graph_notes import (  # lazy: start-up: for these errors alone
        advise_on_second_pass,
        advise_on_step,
    )

    if error.code == "E404":
        advise_on_step(error, statements)
    else:
        advise_on_second_pass(error, statements, values)


def note_missing_gradients(
    run: Run, statements: Sequence[Statement], arguments: Sequence[Argument]
) -> None:
    """Say where the graph was cut on the path from the arguments that got no gradient."""
    inputs = [] if run.bindings is None else run.bindings.inputs()
    if any(tensor.requires_grad and tensor.grad is None for _, tensor in inputs):
        from gradcli.questions.notes.graph_notes import (  # lazy: start-up: it runs again
            report_missing_gradients,
        )

        report_missing_gradients(run, statements, arguments)
