"""What makes the nodes of `try`, `raise`, `assert` and `with`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from gradcli.language.native.calls import Find, Node

if TYPE_CHECKING:
    from gradcli.errors import GradcliError, Span
    from gradcli.language.native.statements import Store
    from gradcli.language.tree.control_flow import Run
    from gradcli.language.tree.scopes import Variables
    from gradcli.state import State


class Handling(Protocol):
    """The makers of these nodes, a method for each line of `nodes.def`."""

    def tried(
        self,
        number: int,
        state: State,
        place: None,
        body: Run,
        orelse: Run | None,
        handled: list[GradcliError],
        takes: Callable[[Any, GradcliError], bool],
        in_groups: Callable[[GradcliError, Variables], Any] | None,
        /,
        *clauses: Any,
    ) -> Run:
        """`try` with nine parts for each `except`, the last four of which it learns."""
        raise NotImplementedError

    def finished(self, number: int, state: State, place: None, body: Run, final: Run, /) -> Run:
        """`try` with its `finally`."""
        raise NotImplementedError

    def raised(
        self,
        number: int,
        state: State,
        place: Span,
        exception: Node,
        cause: Node,
        make: Callable[[Any], GradcliError],
        /,
    ) -> Run:
        """`raise exception from cause`; `make` makes an exception of any other value."""
        raise NotImplementedError

    def asserted(
        self,
        number: int,
        state: State,
        place: Span,
        test: Node,
        message: Node | None,
        fail: Callable[..., None],
        /,
    ) -> Run:
        """`assert test, message`; `fail` takes the message, if there is one."""
        raise NotImplementedError

    def within(
        self,
        number: int,
        state: State,
        place: Span,
        context: Node,
        target: Store | None,
        body: Run,
        enter: Callable[[Any], tuple[Any, Any]],
        leave: Callable[[Any], None],
        leave_after: Callable[[Any, GradcliError], bool],
        kind_of: Callable[[GradcliError], Any],
        failed: Callable[[Exception, Any, Any, Any], Any],
        find_enter: Find,
        find_exit: Find,
        /,
        *learnt: None,
    ) -> Run:
        """`with context as target`; six parts are what it learns of both methods."""
        raise NotImplementedError
