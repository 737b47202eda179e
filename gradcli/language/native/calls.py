"""What makes the nodes in C that call, and what these know of functions and classes."""

from __future__ import annotations

import builtins as host
from collections.abc import Callable, Iterator
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from gradcli.errors import GradcliError
from gradcli.language.functions.calls import Function, locate, too_many_calls
from gradcli.language.functions.generators import ended_by, generator_exit, may_close, within
from gradcli.language.functions.hot_bodies import FEWEST, HotBody
from gradcli.language.limits import (
    DEEPEST_CALL,
    DEEPEST_HOST_CALL,
    enter_host_call,
    too_many_steps,
)
from gradcli.language.objects.borders import FOREIGN
from gradcli.language.objects.classes.special_methods import checked_length
from gradcli.language.objects.classes.user_classes import (
    CHANGES,
    UserClass,
    init_returned,
    reads_plainly,
    writes_plainly,
)
from gradcli.language.objects.exceptions import Raised, Refused, caught
from gradcli.language.objects.iteration import IN_C, side_by_side, unlike_host
from gradcli.language.objects.methods import METHODS
from gradcli.language.objects.operators import (
    OPERATOR_ERRORS,
    binary,
    from_the_right,
    operator_failed,
    reflected_operator,
    unsupported,
)
from gradcli.language.objects.types import EXCEPTIONS, class_of_host
from gradcli.state import State, active

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.language.tree import syntax as tree
    from gradcli.language.tree.scopes import Variables

Node = Callable[["Variables"], Any]
"""A node, or the closure of an expression."""

Finished = Callable[["tree.Call", Any, tuple[Any, ...]], Any]
"""What calls any value with its arguments, as the call of a node of the tree."""

Find = Callable[[type], Any] | str
"""What finds the function of the program's that a class has for a special method, None for none; or
its name.
"""

Failed = Callable[[Exception, "tree.Call", Any, tuple[Any, ...]], Any]
"""What raises that a program sees of the failure of such a call."""


class Calls(Protocol):
    """The makers of these nodes, a method for each line of `nodes.def`."""

    def call(
        self,
        number: int,
        state: State,
        place: Span,
        function: Node,
        node: tree.Call,
        otherwise: Finished,
        failed: Failed,
        find: Find,
        kind: None,
        mark: None,
        method: None,
        /,
        *arguments: Node,
    ) -> Node:
        """`function(arguments)`, of which there are few; `find` gives a `__call__`, and the next
        three are what it learns of one.
        """
        raise NotImplementedError

    def function(self, keeps: int, like: Function, /, *defaults: Any) -> Node:
        """A function that is like one, with the variables around it if it keeps them; behind that
        one the names of parameters with the expressions of their defaults.
        """
        raise NotImplementedError

    def method(
        self,
        number: int,
        state: State,
        place: Span,
        receiver: Node,
        name: str,
        node: tree.Call,
        otherwise: Finished,
        failed: Failed,
        find: Find,
        kind: None,
        mark: None,
        method: None,
        attribute: tree.Attribute,
        find_method: Callable[[State, tree.Attribute, Any], tuple[Any, Any]],
        no_receiver: Any,
        of_tensors: dict[str, Any] | None,
        of_classes: dict[type, dict[str, Any]],
        of_receiver: None,
        receiver_mark: None,
        receiver_method: None,
        /,
        *arguments: Node,
    ) -> Node:
        """`receiver.name(arguments)`: `find_method` gives that of any value, with its receiver or
        what stands for none; the last three are what it learns.
        """
        raise NotImplementedError

    def super_method(
        self,
        distance: int,
        state: State,
        place: Span,
        above: Node,
        name: str,
        node: tree.Call,
        otherwise: Finished,
        failed: Failed,
        find: Find,
        kind: None,
        mark: None,
        method: None,
        attribute: tree.Attribute,
        find_method: Callable[[State, tree.Attribute, Any], tuple[Any, Any]],
        no_receiver: Any,
        receiver: str,
        of_class: None,
        of_receiver: None,
        learnt_at: None,
        learnt: None,
        /,
        *arguments: Node,
    ) -> Node:
        """`super().name(arguments)`, in a method so many functions outward, whose first parameter
        is `receiver`; `above` makes the object of `super()`.
        """
        raise NotImplementedError

    def call_with(
        self,
        number: int,
        state: State,
        place: Span,
        function: Node,
        name: str | None,
        node: tree.Call,
        otherwise: Callable[[tree.Call, Any, list[Any], dict[str, Any]], Any],
        failed: Callable[[Exception, tree.Call, Any, list[Any], dict[str, Any]], Any],
        name_place: Span | None,
        get: Callable[[Any, str], Any],
        kind: None,
        mark: None,
        method: None,
        spread: Callable[[list[Any], Any], None],
        merge: Callable[[dict[str, Any], str, Any], None],
        /,
        *arguments: Any,
    ) -> Node:
        """A call with keywords or stars: three parts for each argument, its name, None or stars,
        its node and its place. With a name `function` is the receiver of a method.
        """
        raise NotImplementedError


def _invoked(function: Function, /, *args: Any, **named: Any) -> Any:
    return function.invoke(args, named)


def _ended(error: Exception, function: Function) -> Exception:
    """What a function raises that an error ends."""
    if isinstance(error, GradcliError):
        return locate(error, function.state)
    failure = locate(too_many_calls(function.name, len(function.state.stack)), function.state)
    failure.__cause__ = error
    return failure


def _caught(error: Exception, state: State) -> GradcliError:
    """An exception as the language's own, with the place where it was raised."""
    return locate(caught(error), state)


def _too_many_elements(state: State) -> GradcliError:
    return state.limits.too_many_elements(None)


def sums(nodes: Any) -> Callable[[Iterator[Any], Any], Any]:
    """What adds up values, by the node of a `+` of its session."""
    methods: tuple[Any, ...] = ("__add__", _declined, _add_failed, _find_reflected_add, {}, "+")
    learnt = (None,) * 6

    def added_up(values: Iterator[Any], start: Any) -> Any:
        state = active.state
        if state.addition is None:
            parts = (None, None, None, None, None, _add, methods, *learnt)
            state.addition = nodes.binary(nodes.ADDITION, state, *parts)
        return nodes.sum(state.addition, host.sum, values, start)

    return added_up


def _add(left: Any, right: Any, *_: object) -> Any:
    return binary("+", left, right)


_find_reflected_add = partial(reflected_operator, "+")


def _declined(left: Any, right: Any, _: object, __: object, reflected: bool) -> Any:
    """What the object on the right does where the one on the left declines."""
    try:
        if reflected:
            raise unsupported("+", left, right)
        return from_the_right("+", left, right)
    except OPERATOR_ERRORS as error:
        raise operator_failed("+", left, right, error) from error


def _add_failed(error: Exception, left: Any, right: Any, *_: object) -> NoReturn:
    """Raise what a program sees of a method that failed."""
    if isinstance(error, OPERATOR_ERRORS):
        raise operator_failed("+", left, right, error) from error
    raise error


HELPERS = (
    *(_invoked, _ended, HotBody.called, Function.enter_by),
    *("__len__", checked_length),
    *(too_many_steps, too_many_calls, init_returned, ended_by, generator_exit, may_close),
    *(within, enter_host_call),
    *(_caught, Refused),
    *(GradcliError, CHANGES, FOREIGN, DEEPEST_CALL, DEEPEST_HOST_CALL, FEWEST),
    *(_too_many_elements, class_of_host, UserClass.entering_init, Raised, MethodType),
    *(reads_plainly, writes_plainly),
)
"""What Python has to say to nodes, in the order of `node.h`; the table of built-ins is last."""


DOES = (
    *("length", "is instance", "absolute", "least", "largest", "sum", "to text", "to integer"),
    *(
        "to float",
        "to bool",
        "to list",
        "to tuple",
        "to set",
        "numbers",
        "append",
        "join",
        "of text",
    ),
    *("of list", "get", "by key", "add", "beside", "exception"),
)
"""What a call does, at the number that `quick.c` has for it."""

_BUILTINS = {
    "len": "length",
    "isinstance": "is instance",
    "abs": "absolute",
    "min": "least",
    "max": "largest",
    "sum": "sum",
    "str": "to text",
    "int": "to integer",
    "float": "to float",
    "bool": "to bool",
    "list": "to list",
    "tuple": "to tuple",
    "set": "to set",
    "range": "numbers",
}

_METHODS: dict[type, dict[str, str]] = {
    str: {
        "join": "join",
        "of text": """capitalize count endswith find index isalnum isalpha isascii isdecimal isdigit
            isidentifier islower isnumeric isspace istitle isupper lower lstrip partition
            removeprefix removesuffix rfind rindex rpartition rsplit rstrip split splitlines
            startswith strip swapcase title upper""",
    },
    list: {"append": "append", "of list": "copy insert pop reverse"},
    dict: {"get": "get", "by key": "pop setdefault"},
    set: {"add": "add", "by key": "discard remove"},
}
"""The methods of each class, by what a call of them does."""


def quick_calls(builtins: dict[str, Any]) -> Iterator[tuple[int, Any, Any]]:
    """What a call does, the function of the library's, and the host's."""
    for name, does in _BUILTINS.items():
        by_host = getattr(host, name)
        if name == "sum":
            by_host = by_host, IN_C.added_up, unlike_host
        elif name in ("list", "tuple"):
            by_host = unlike_host
        yield DOES.index(does), builtins[name], by_host
    for kind, table in _METHODS.items():
        for does, names in table.items():
            for name in names.split():
                yield DOES.index(does), METHODS[kind][name], getattr(kind, name)
    for name, kind_of in EXCEPTIONS.items():
        if name != "SystemExit" and not name.endswith("Group"):
            yield DOES.index("exception"), kind_of, name
    for name in ("zip", "enumerate"):
        by = getattr(host, name), side_by_side(name, iter(()))
        yield DOES.index("beside"), builtins[name], by
