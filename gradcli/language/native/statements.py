"""What makes the nodes of statements and targets."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as HostIterator
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from gradcli.language.native.calls import Find, Node

if TYPE_CHECKING:
    from gradcli.errors import GradcliError, Span
    from gradcli.language.objects.iteration import Iterator
    from gradcli.language.tree.control_flow import Run
    from gradcli.language.tree.scopes import Variables
    from gradcli.limits import Steps
    from gradcli.state import State

Store = Callable[["Variables", Any], None]
"""A target, or the closure of one."""


class Statements(Protocol):
    """The makers of nodes of statements and targets, a method for each line of `nodes.def`."""

    def block(self, ends: int, /, *statements: Run) -> Run:
        """Statements in a row; `ends` says that one of them may end the block."""
        raise NotImplementedError

    def effect(self, number: int, value: Node, /) -> Run:
        """An expression whose value nobody wants."""
        raise NotImplementedError

    def returned(self, number: int, value: Node, /) -> Run:
        """`return value`."""
        raise NotImplementedError

    def branches(self, number: int, state: State, /, *parts: Any) -> Run:
        """`if`: tests, each with its place and its block, and the block of `else`, or None."""
        raise NotImplementedError

    def assigned(self, number: int, value: Node, /, *targets: Store) -> Run:
        """`target = target = value`."""
        raise NotImplementedError

    def augmented_name(
        self,
        operator: int,
        state: State,
        place: Span,
        read: Node,
        value: Node,
        target: Store,
        target_node: Any,
        value_node: Any,
        otherwise: Callable[[Any, Any, Any, Any], Any],
        /,
    ) -> Run:
        """`name op= value`; `otherwise` takes both values, then both nodes of the tree."""
        raise NotImplementedError

    def augmented_part(
        self,
        operator: int,
        state: State,
        place: Span,
        target_place: Span,
        owner: Node,
        key: Node,
        value: Node,
        get: Callable[[Any, Any], Any],
        put: Callable[[Any, Any, Any], None],
        change: Callable[[Any, Any], Any],
        kind: None,
        mark: None,
        kind_written: None,
        mark_written: None,
        /,
    ) -> Run:
        """`owner[key] op= value`; of an attribute, the complement of the operator's number. What it
        learns comes last.
        """
        raise NotImplementedError

    def to_name(
        self,
        distance: int,
        name: str,
        values: Variables | None,
        overrides: Variables | None,
        otherwise: Store,
        /,
    ) -> Store:
        """A name of the program where there are its values, else of the function so far outward."""
        raise NotImplementedError

    def to_attribute(
        self,
        number: int,
        state: State,
        place: Span,
        owner: Node,
        name: str,
        of_tensor: Callable[[Any, Any], None] | None,
        otherwise: Callable[[Any, str, Any], None],
        kind: None,
        mark: None,
        /,
    ) -> Store:
        """`owner.name`, which is bound; the last two are what it learns."""
        raise NotImplementedError

    def to_item(
        self,
        number: int,
        state: State,
        place: Span,
        container: Node,
        index: Node,
        container_node: Any,
        index_node: Any,
        otherwise: Callable[[Any, Any, Any, Any, Any], None],
        failed: Callable[[Exception, Any, Any, Any, Any, Any], None],
        find: Find,
        kind: None,
        mark: None,
        method: None,
        /,
    ) -> Store:
        """`container[index]`, which is bound; `failed` takes the error of a method before what
        `otherwise` takes, and the last three are what is learnt of one.
        """
        raise NotImplementedError

    def to_elements(
        self,
        number: int,
        state: State,
        place: Span,
        target_node: Any,
        otherwise: Callable[[State, Any, Any], list[Any]],
        /,
        *targets: Store,
    ) -> Store:
        """`a, b`; `otherwise` makes a list of a value's parts."""
        raise NotImplementedError

    def for_loop(
        self,
        left: int,
        state: State,
        place: Span,
        steps: Steps,
        iterable: Node,
        target: Store,
        body: Run,
        orelse: Run | None,
        iterate: Callable[[Any], Any],
        converted: Callable[[Exception], NoReturn],
        broke: object,
        goes_on: object,
        make_watch: Callable[[Any, Any], Callable[[Variables], None]],
        interpreter: Any,
        compiler: Any,
        node: Any,
        scope: Any,
        loop: Any,
        in_try: bool,
        make_begin: Callable[..., Callable[[Variables, Any, int], Any]],
        begin: None,
        told: None,
        watch: None,
        twin: None,
        /,
    ) -> Run:
        """`for target in iterable`; what `make_begin` makes is called once so many iterations ran,
        and where any may be compiled for more than a few. The last are made, or learnt, of a loop
        that begins so, that is interpreted, that is watched where there are modules, and that has
        variables without a dict.
        """
        raise NotImplementedError

    def while_loop(
        self,
        left: int,
        state: State,
        place: Span,
        steps: Steps,
        test: Node,
        body: Run,
        orelse: Run | None,
        begin: Callable[[Variables, Run], Any],
        broke: object,
        goes_on: object,
        twin: None,
        /,
    ) -> Run:
        """`while test`; `begin` is called with the body once so many iterations ran, and the last
        is learnt of one that has variables without a dict.
        """
        raise NotImplementedError

    def hot_block(
        self, left: int, body: Run, period: int, look: Callable[[], Run | None], /
    ) -> Run:
        """A loop's body; `look` gives what is to run in its place, after so many runs."""
        raise NotImplementedError


class Handling(Protocol):
    """The makers of these nodes, a method for each line of `nodes.def`."""

    def unnamed(self, distance: int, name: str, values: Variables | None, /) -> Run:
        """Takes the value of a name away: of the program where there are its values, else of the
        function so far outward.
        """
        raise NotImplementedError

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
        failure: str,
        /,
    ) -> Run:
        """`assert test, message`; `fail` takes the message, if there is one, and raises a
        `failure`.
        """
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
        traceback_of: Callable[[GradcliError], Any],
        failed: Callable[[Exception, Any, Any, Any], Any],
        find_enter: Find,
        find_exit: Find,
        /,
        *learnt: None,
    ) -> Run:
        """`with context as target`; six parts are what it learns of both methods."""
        raise NotImplementedError


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
