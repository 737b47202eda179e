"""What makes the nodes of generators, and what these know of the host."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as HostIterator
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from gradcli.language.native.calls import Node

if TYPE_CHECKING:
    from gradcli.errors import GradcliError, Span
    from gradcli.language.objects.iteration import Iterator
    from gradcli.language.tree.control_flow import Run
    from gradcli.limits import Steps
    from gradcli.state import State


class Generators(Protocol):
    """The makers of these nodes, a method for each line of `nodes.def`."""

    def frame(
        self,
        loops: int,
        state: State,
        place: None,
        steps: Steps,
        iterate: Callable[[Any], Any],
        converted: Callable[[Exception], NoReturn],
        broke: object,
        goes_on: object,
        iterable: None,
        like: None,
        drawing: None,
        /,
        *instructions: Any,
    ) -> Callable[..., Any]:
        """Statements that can wait, with so many loops: five parts for each instruction."""
        raise NotImplementedError

    def drawn(
        self,
        loops: int,
        state: State,
        place: Span,
        steps: Steps,
        iterate: Callable[[Any], Any],
        converted: Callable[[Exception], NoReturn],
        broke: object,
        goes_on: object,
        iterable: Node,
        like: Iterator,
        drawing: Callable[[HostIterator[Any], Any], Iterator],
        /,
        *instructions: Any,
    ) -> Node:
        """A generator expression, with what gives the values of its first loop, an iterator that
        draws from one value, and what makes that of any.
        """
        raise NotImplementedError

    def generator(
        self,
        number: int,
        state: State,
        place: None,
        steps: Steps,
        handled: list[GradcliError],
        name: str,
        body: Callable[..., Any],
        like: Iterator,
        /,
    ) -> Run:
        """The body of a generator function: a call returns an iterator like this one."""
        raise NotImplementedError
