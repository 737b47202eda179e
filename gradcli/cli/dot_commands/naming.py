"""What the arguments of dot-commands name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.cli.dot_commands.line import Line
from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.cli.program.run import Run


def tensor_named(run: Run, line: Line, number: int) -> tuple[str, Tensor]:
    """The tensor that an argument names, and the name.

    Raises E101 for a name without a value, E105 for one of another value.
    """
    from gradcli.autograd.tensor import Tensor
    from gradcli.language.hints.spelling import closest
    from gradcli.language.objects.types import type_name

    name = line.argument(number) or ""
    values = run.session.values
    tensors = [each for each, value in values.items() if type(value) is Tensor]
    value = values.get(name)
    if type(value) is Tensor:
        return name, value
    place = line.words[number]
    if name in values:
        raise line.wrong(f"`{name}` is no tensor but a value of type {type_name(value)}", place)
    near = closest(name, tensors)
    help = f"did you mean `{near}`?" if near else None
    if help is None and not name.isidentifier():
        help = f"assign the expression to a name first: y = {line.rest(number).text}"
    raise GradcliError("E101", f"`{name}` has no value", span=place, help=help)
