"""Instances of the exception classes that a program writes."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import ExceptionType, type_of
from gradcli.nn.extensible import store_value, stored_value


class ExceptionInstance(Raised):
    """An exception whose class is the program's."""

    language_base: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    ancestors: ClassVar[frozenset[str]] = frozenset()

    values: dict[str, Any]

    def __init_subclass__(cls) -> None:
        own: frozenset[str] = vars(cls).get("ancestors", frozenset())
        cls.ancestors = own.union(*[getattr(base, "ancestors", ()) for base in cls.__bases__])

    def __new__(cls, *args: Any, **kwargs: Any) -> ExceptionInstance:
        # As in Python, the arguments are there even if the program's __init__ passes none on.
        made: ExceptionInstance = Raised.__new__(cls)
        made.values = {}
        ExceptionInstance.__init__(made, *args)
        return made

    def __init__(self, *args: Any) -> None:
        message = text(args[0]) if len(args) == 1 else display(args) if args else ""
        super().__init__(type_of(self).name, message, args)

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        shown = display(self.arguments)
        return self.raises + (f"({shown[1:-2]})" if len(self.arguments) == 1 else shown)

    def language_names(self) -> list[str]:
        """The names under which the program stored something."""
        return ["args", *self.values]

    language_getattr = stored_value
    language_setattr = store_value


@cache
def exception_base(kind: ExceptionType) -> type[ExceptionInstance]:
    """The host class that a program's class derives from in place of one of ours."""
    return type(kind.name, (ExceptionInstance,), {"ancestors": kind.ancestors})
