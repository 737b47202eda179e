"""What makes the nodes in C that stand in for closures.

A handler of the compiler asks its compiler for `nodes`: None where there are none, and where a
compiler is to see each value. A maker takes a number and the node's parts, in the order in which
the C source of the kind names them; an operation's last part is the function in Python that does
it for all operands, to which the node hands what it does not do itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from gradcli.arrays.native.dispatch import core
from gradcli.autograd.tensor import Tensor
from gradcli.language.functions.calls import Function, Signature
from gradcli.language.functions.generators import KINDS
from gradcli.language.functions.hot_bodies import HotBody
from gradcli.language.native.calls import HELPERS, Calls, Find, Node, quick_calls, sums
from gradcli.language.native.statements import Generators, Handling, Statements
from gradcli.language.objects.attributes import Method, Module, PerSession
from gradcli.language.objects.classes.user_classes import BoundMethod, Changes, Instance, UserClass
from gradcli.language.objects.iteration import IN_C, Iterator
from gradcli.language.objects.types import ExceptionType, LanguageType
from gradcli.language.tree.scopes import Scope
from gradcli.limits import Limits, Steps
from gradcli.state import State

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.language.tree.scopes import Variables


class Nodes(Calls, Generators, Handling, Statements, Protocol):
    """The makers of nodes, a method for each line of `nodes.def`.

    Attributes:
        MOST_ARGUMENTS: those of a call that a node makes.
    """

    MOST_ARGUMENTS: int

    def make(self, compiler: Any, node: Any, scope: Scope, /) -> Any:
        """The node of a tree by the recipes that are known, or what its handler makes."""
        raise NotImplementedError

    def make_statements(self, compiler: Any, body: Any, scope: Scope, /) -> Any:
        """The same of statements in a row."""
        raise NotImplementedError

    def make_target(
        self, compiler: Any, target: Any, scope: Scope, assigned: bool, /
    ) -> Callable[[Variables, Any], None]:
        """The same of a target, in an assignment or not."""
        raise NotImplementedError

    def know_recipes(
        self, handlers: Any, recipes: Any, binders: Any, of_targets: Any, /, *told: Any
    ) -> None:
        """The handlers and recipes by which trees are made into nodes, and those of names."""
        raise NotImplementedError

    def constant(self, number: int, value: Any, /) -> Node:
        """A value."""
        raise NotImplementedError

    def own(
        self, distance: int, name: str, span: Span, otherwise: Callable[[str, bool, Span], Any], /
    ) -> Node:
        """A variable of the function so far outward; `otherwise` raises for one without a value."""
        raise NotImplementedError

    def program(
        self,
        number: int,
        name: str,
        values: Variables,
        table: None,
        span: Span,
        predefined: Any,
        otherwise: Callable[[Any, str, Variables, Span], dict[str, Any]],
        /,
    ) -> Node:
        """A name of the program, or else of the table that predefines it, which `otherwise` finds
        once, or raises.
        """
        raise NotImplementedError

    def binary(
        self,
        operator: int,
        state: State,
        place: Span,
        left: Node,
        right: Node,
        left_node: Any,
        right_node: Any,
        otherwise: Callable[[Any, Any, Any, Any], Any],
        methods: tuple[Any, ...],
        kind: None,
        mark: None,
        method: None,
        reflected_kind: None,
        reflected_mark: None,
        reflected_method: None,
        /,
    ) -> Node:
        """`left operator right`; `otherwise` takes both values, then both nodes of the tree.
        `methods` find the method of a class, go on where it declines, and say what its failure is;
        the others are what is learnt of one on the left, and on the right.
        """
        raise NotImplementedError

    def contained(
        self,
        negated: int,
        state: State,
        place: Span,
        left: Node,
        right: Node,
        otherwise: Callable[[Any, Any], Any],
        find: Find,
        kind: None,
        mark: None,
        method: None,
        /,
    ) -> Node:
        """`left in right`; the last three are what is learnt of a method."""
        raise NotImplementedError

    def same(self, negated: int, left: Node, right: Node, /) -> Node:
        """`left is right`."""
        raise NotImplementedError

    def negation(self, number: int, state: State, place: Span, value: Node, /) -> Node:
        """`not value`."""
        raise NotImplementedError

    def signed_number(
        self,
        sign: int,
        state: State,
        place: Span,
        value: Node,
        otherwise: Callable[[Any], Any],
        /,
    ) -> Node:
        """`-value`."""
        raise NotImplementedError

    def deciding(self, stops_at: int, state: State, /, *operands: Any) -> Node:
        """`a and b`, or `or`: operands, each but the last with its place behind it."""
        raise NotImplementedError

    def conditional(
        self,
        number: int,
        state: State,
        place: Span,
        test: Node,
        body: Node,
        orelse: Node,
        /,
    ) -> Node:
        """`body if test else orelse`."""
        raise NotImplementedError

    def attribute(
        self,
        number: int,
        state: State,
        place: Span,
        value: Node,
        name: str,
        of_tensor: Callable[[Any], Any] | None,
        otherwise: Callable[[Any, str], Any],
        find: Find,
        kind: None,
        mark: None,
        property_kind: None,
        property_mark: None,
        method: None,
        /,
    ) -> Node:
        """`value.name`; `find` gives what reads a property, and the others are what it learns."""
        raise NotImplementedError

    def item(
        self,
        number: int,
        state: State,
        place: Span,
        value: Node,
        index: Node,
        value_node: Any,
        index_node: Any,
        otherwise: Callable[[Any, Any, Any, Any], Any],
        failed: Callable[[Exception, Any, Any, Any, Any], Any],
        find: Find,
        kind: None,
        mark: None,
        method: None,
        /,
    ) -> Node:
        """`value[index]`; `otherwise` takes both values, then both nodes of the tree, and `failed`
        the error of a method before; the last three are what is learnt of one.
        """
        raise NotImplementedError

    def slice(
        self, number: int, lower: Node | None, upper: Node | None, step: Node | None, /
    ) -> Node:
        """`lower:upper:step`."""
        raise NotImplementedError

    def list(self, number: int, /, *elements: Node) -> Node:
        """`[a, b]`."""
        raise NotImplementedError

    def tuple(self, number: int, /, *elements: Node) -> Node:
        """`a, b`."""
        raise NotImplementedError

    def dict(
        self,
        number: int,
        state: State,
        enter: Callable[[Any, Any, Any], None],
        /,
        *items: Any,
    ) -> Node:
        """`{key: value}`: a key, a value and its place for each item."""
        raise NotImplementedError

    def field(
        self,
        is_checked: int,
        state: State,
        place: Span,
        value: Node,
        spec: str,
        otherwise: Callable[[Any, str], str],
        /,
    ) -> Node:
        """`{value:spec}`; checked are the numbers of the spec."""
        raise NotImplementedError

    def formatted(
        self,
        number: int,
        state: State,
        place: Span,
        join: Callable[[State, Any], str],
        /,
        *pieces: str | Node,
    ) -> Node:
        """An f-string."""
        raise NotImplementedError

    def comprehension(
        self,
        iterations: int,
        state: State,
        place: Span,
        iterable: Node,
        name: str | None,
        store: Callable[[Variables, Any], None],
        steps: Steps,
        iterate: Callable[[Any], Any],
        whole: Callable[[Variables, Any], Any],
        element: Node,
        /,
        *conditions: Node,
    ) -> Node:
        """`[element for name in iterable if condition]`; `whole` makes it once there are so many
        `iterations`, with those before.
        """
        raise NotImplementedError

    def items(
        self,
        number: int,
        state: State,
        place: Span,
        iterable: Node,
        name: str | None,
        store: Callable[[Variables, Any], None],
        steps: Steps,
        iterate: Callable[[Any], Any],
        enter: Callable[[Any, Any, Any], None],
        key: Node,
        value: Node,
        item_place: Span,
        /,
        *conditions: Node,
    ) -> Node:
        """`{key: value for name in iterable if condition}`."""
        raise NotImplementedError


def load(builtins: dict[str, Any]) -> Nodes | None:
    """The makers, which know the built-in functions; None where the closures serve."""
    module = core()
    return None if module is None else _informed(module, builtins)


_CLASSES = (
    *(Tensor, Instance, Iterator, LanguageType, UserClass, ExceptionType, Function),
    *(Signature, HotBody, State, Limits, Steps, Changes, BoundMethod, Method, Module, PerSession),
    Scope,
)
"""The classes that nodes tell apart, in the order of `node.h`."""

_known: list[Nodes] = []
"""The makers that know all that they are to."""


def _informed(module: Any, builtins: dict[str, Any]) -> Nodes:
    if _known:
        return _known[0]
    nodes: Any = module.nodes
    nodes.know(*_CLASSES, *HELPERS, builtins)
    KINDS.add(nodes.Generator)
    IN_C.drawing, IN_C.added_up, IN_C.keys = nodes.drawing, sums(nodes), nodes.keys
    for call in quick_calls(builtins):
        nodes.know_quick(*call)
    _known.append(nodes)
    return _known[0]
