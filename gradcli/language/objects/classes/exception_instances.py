"""Instances of the exception classes that a program writes; `ExceptionGroup`, several exceptions
raised as one, which `except*` takes apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.objects.classes.extensible import store_value, stored_value
from gradcli.language.objects.exceptions import Raised, handles
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import (
    ExceptionType,
    LanguageType,
    called,
    is_exception,
    type_name,
)


class ExceptionInstance(Raised):
    """An exception whose class is the program's.

    Attributes:
        language_raised: whether its message is its only argument as a text: nodes in C may make it.
    """

    language_raised: ClassVar[bool] = True
    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    ancestors: ClassVar[frozenset[str]] = frozenset()
    language_class: ClassVar[LanguageType]

    values: dict[str, Any]

    def __init_subclass__(cls) -> None:
        own: frozenset[str] = vars(cls).get("ancestors", frozenset())
        cls.ancestors = own.union(*[getattr(base, "ancestors", ()) for base in cls.__bases__])
        cls.language_raised = "KeyError" not in cls.ancestors

    def __new__(cls, *args: Any, **kwargs: Any) -> ExceptionInstance:
        # As in Python, the arguments are there even if the program's __init__ passes none on.
        instance: ExceptionInstance = Exception.__new__(cls)
        instance.values = {}
        instance._take(args)
        return instance

    def __init__(self, *args: Any) -> None:
        self._take(args)

    language_init = __init__  # `__new__` does the same

    def _take(self, args: tuple[Any, ...]) -> None:
        if len(args) == 1:  # a KeyError shows its key as it was written
            message = text(args[0]) if self.language_raised else display(args[0])
        else:
            message = display(args) if args else ""
        Raised.__init__(self, self.language_class.name, message, args)

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        shown = display(self.arguments)
        return self.raises + (f"({shown[1:-2]})" if len(self.arguments) == 1 else shown)

    def language_names(self) -> list[str]:
        """The names under which the program stored something."""
        return ["args", *self.values]

    language_getattr = stored_value

    def language_setattr(self, name: str, value: Any) -> None:
        """Store a value; other arguments are what its text is made of."""
        if name == "args":
            self._take(tuple(bounded(value)))
        else:
            store_value(self, name, value)


@cache
def exception_base(kind: ExceptionType) -> type[ExceptionInstance]:
    """The host class that a program's class derives from in place of one of ours."""
    return type(kind.name, (ExceptionInstance,), {"ancestors": kind.ancestors})


# --- groups ---------------------------------------------------------------------------------------

Fits = Callable[[GradcliError], bool]


class Group(Raised):
    """An exception that holds others; what it holds does not change, so no group holds itself."""

    def __init__(self, kind: str, message: str, exceptions: Sequence[GradcliError]) -> None:
        many = "s" if len(exceptions) != 1 else ""
        words = f"{message} ({len(exceptions)} sub-exception{many})"
        super().__init__(kind, words, (message, exceptions[:]))
        self.title = message
        self.exceptions = tuple(exceptions)

    def derived(self, exceptions: Sequence[GradcliError]) -> Group | None:
        """The same group of some of its exceptions, None of none."""
        kind = type(self.arguments[1])
        return Group(self.raises, self.title, kind(exceptions)) if exceptions else None

    def split(self, fits: Fits) -> tuple[Group | None, Group | None]:
        """What fits and what does not, each in groups as it is here."""
        if fits(self):
            return self, None
        taken: list[GradcliError] = []
        left: list[GradcliError] = []
        for each in self.exceptions:
            if isinstance(each, Group):
                inner, rest = each.split(fits)
                taken += [inner] if inner else []
                left += [rest] if rest else []
            else:
                (taken if fits(each) else left).append(each)
        return self.derived(taken), self.derived(left)

    def attribute(self, name: str) -> Any:
        """What a program reads of a group; raises AttributeError."""
        if name in ("exceptions", "message"):
            return self.title if name == "message" else self.exceptions
        methods: dict[str, Callable[..., Any]] = {
            "derive": lambda excs: new_group(self.raises, self.title, excs),
            "split": lambda condition: self.split(_condition(condition)),
            "subgroup": lambda condition: self.split(_condition(condition))[0],
        }
        return called(name, methods[name]) if name in methods else super().attribute(name)


def _condition(condition: Any) -> Fits:
    """What a class, a tuple of classes or a function says of an exception."""
    if is_exception(condition) or type(condition) is tuple:
        return lambda error: handles(condition, error)
    if not callable(condition):
        raise type_error(
            f"a condition is a function, a class or a tuple of classes, not {type_name(condition)}",
            text="expected a function, exception type or tuple of exception types",
        )
    return lambda error: bool(condition(error))


def new_group(kind: str, message: Any, exceptions: Any) -> Group:
    """`ExceptionGroup(message, exceptions)`; raises E202, E204 for other arguments."""
    if not isinstance(message, str):
        text = f"BaseExceptionGroup.__new__() argument 1 must be str, not {type_name(message)}"
        raise type_error(f"the message of a group is a string, not {type_name(message)}", text=text)
    if not hasattr(type(exceptions), "__len__"):
        raise type_error("second argument (exceptions) must be a sequence")
    held = list(bounded(exceptions))
    if not held:
        raise value_error("second argument (exceptions) must be a non-empty sequence")
    for number, each in enumerate(held):
        if not isinstance(each, GradcliError):
            text = f"Item {number} of second argument (exceptions) is not an exception"
            raise value_error(text)
    return Group(kind, message, held)


def as_group(error: GradcliError) -> Group:
    """A group as it is, any other exception as the only one of a group without a message."""
    return error if isinstance(error, Group) else Group("ExceptionGroup", "", (error,))


def raised_again(
    error: GradcliError, rest: Group | None, anew: Sequence[GradcliError]
) -> GradcliError | None:
    """What leaves a `try` with `except*`: what nothing took, and what the bodies raised."""
    if not anew:
        return error if rest is not None and not isinstance(error, Group) else rest
    return Group("ExceptionGroup", "", [*anew, *([rest] if rest is not None else [])])
