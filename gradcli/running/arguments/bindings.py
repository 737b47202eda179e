"""Binds the arguments of a run to its names: they supply a name that the program reads, or replace
the first value that it assigns, or a later one. One that holds from a later line on is evaluated
there, and takes the place of another of its name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import Warned
from gradcli.language.hints.spelling import closest
from gradcli.library.namespace import table_of
from gradcli.record import Record
from gradcli.running.arguments.conversion import as_input, mapped, taking_kind, value_of
from gradcli.running.arguments.name_uses import ASSIGNED, BOUND, INSIDE, READ, name_uses
from gradcli.running.arguments.words import Argument

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement
    from gradcli.running.arguments.options import Options
    from gradcli.running.process.terminal import Terminal
    from gradcli.session import Session

_MOST_NAMES = 10


class Binding(Record):
    """An argument and its state in the run.

    Attributes:
        bound: what its name was bound to, None while it is not.
        settled: whether the program has used its name where it runs.
        useless: whether the program gives the name a value that cannot be replaced.
    """

    argument: Argument
    value: Any
    bound: Any = None
    settled: bool = False
    useless: bool = False

    def tensors(self) -> list[tuple[str, Tensor]]:
        """The tensors that its name was bound to, with their paths in a structure from Python."""
        if type(self.bound) is Tensor:
            return [(self.argument.name, self.bound)]
        tensors: list[tuple[str, Tensor]] = []
        if self.argument.held is not None and not self.argument.file:
            mapped(self.argument.name, self.bound, lambda *each: tensors.append(each))
        return tensors


class Bindings:
    """The arguments of one run.

    Raises:
        GradcliError: E501, E502 from a value.
    """

    def __init__(self, arguments: Sequence[Argument], session: Session, options: Options) -> None:
        self.session = session
        self.wrt = options.wrt
        self.dtype = options.dtype
        self.bindings: dict[str, Binding] = {}
        self.names: dict[str, None] = {}
        later = (argument for argument in arguments if argument.since > 1)
        self._later = sorted(later, key=lambda argument: argument.since)
        self._evaluate(argument for argument in arguments if argument.since == 1)

    def _evaluate(self, arguments: Iterable[Argument]) -> None:
        for argument in arguments:
            value = value_of(argument, self.session, self.dtype)
            self.bindings[argument.name] = Binding(argument, value)

    def meet(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        """The statements, each after the arguments were bound whose names it uses first."""
        if not self.bindings and not self._later:
            yield from statements
            return
        for statement in statements:
            while self._later and self._later[0].since <= statement.span.line:
                self._evaluate([self._later.pop(0)])
            for name, how in name_uses(statement).items():
                self.names.setdefault(name)
                binding = self.bindings.get(name)
                if binding is not None and not binding.settled:
                    # A function's body runs later: by then the program may have assigned the name.
                    binding.settled = how != INSIDE
                    binding.useless = how == BOUND and binding.bound is None
                    self._bind(name, binding, how)
            yield statement

    def _bind(self, name: str, binding: Binding, how: str) -> None:
        session = self.session
        differentiable = self.wrt is None or name in self.wrt
        argument = binding.argument
        left = argument.passes
        if how in (READ, INSIDE) and binding.bound is None and not left:
            with session.running(argument.span):
                binding.bound = as_input(argument, binding.value, differentiable)
            session.bind(name, binding.bound)
            for path, tensor in binding.tensors():
                tensor.set_name(path)

        def replace(old: Any) -> Any:
            nonlocal left
            if left:
                left -= 1
                session.override(name, replace)
                return old
            binding.bound = taking_kind(argument, binding.value, old, differentiable)
            return binding.bound

        replaces = how in (ASSIGNED, INSIDE) or left > 0
        session.override(name, replace if replaces else None)

    def inputs(self) -> list[tuple[str, Tensor]]:
        """The arguments that were bound to tensors."""
        return [each for binding in self.bindings.values() for each in binding.tensors()]

    def warn_unused(
        self, terminal: Terminal, statements: Iterable[Statement] = (), meant: str | None = None
    ) -> None:
        """Warn of arguments never used, in `statements` that did not run either.

        Args:
            meant: an argument that an error has spoken of already.
        """
        for statement in statements if self.bindings else ():
            self.names.update(dict.fromkeys(name_uses(statement)))
        for name, binding in self.bindings.items():
            if name != meant and (name not in self.names or binding.useless):
                warned = unused(binding.argument, self.names, self.bindings)
                if binding.useless:
                    warned.help = "it sets the name itself, and not by an assignment"
                terminal.warning(warned)


def unused(argument: Argument, names: Iterable[str], bound: Container[str]) -> Warned:
    """The warning of an argument that a program, with these names, does not use."""
    own = [name for name in names if table_of(name) is None]
    near = closest(argument.name, [name for name in own if name not in bound])
    help = f"did you mean `{near}`?" if near is not None else None
    if near is None and own:
        help = f"its names are {', '.join(own[:_MOST_NAMES])}"
    message = f"the program does not use `{argument.name}`"
    return Warned("W009", message, argument.span, help)
