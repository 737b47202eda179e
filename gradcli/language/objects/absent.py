"""What an import binds that the language does not have: it is refused when it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from gradcli.errors import GradcliError, Label, Span
from gradcli.record import Record


class Absent(Record):
    """The value of `import there_is_none`, or of a name that was imported from a module.

    Nothing can be done with it but to pass it on: all else raises E103, with what to write instead.

    Attributes:
        name: the name with its module.
        raised: what the import would have raised.
        span: the import.
    """

    name: str
    raised: GradcliError
    span: Span | None

    language_name: ClassVar[str] = "module"

    def refuse(self) -> NoReturn:
        """Raise E103."""
        first, span = self.raised, self.span
        raise GradcliError(
            first.code,
            first.message,
            raises=first.raises,
            help=first.help,
            labels=() if span is None else (Label(span, "imported here"),),
        )

    def language_getattr(self, name: str) -> NoReturn:
        """Any attribute: E103."""
        self.refuse()

    def language_setattr(self, name: str, new: Any) -> NoReturn:
        """Any attribute: E103."""
        self.refuse()

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse()

    def __getitem__(self, index: Any) -> NoReturn:
        self.refuse()

    def __iter__(self) -> NoReturn:
        self.refuse()

    def __len__(self) -> NoReturn:
        self.refuse()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<'{self.name}', which the language does not have>"


def when_used(name: str, find: Callable[[], Any], span: Span) -> Any:
    """What `find` gives; where it raises E103, a value that raises that when it is used."""
    try:
        return find()
    except GradcliError as error:
        if error.code not in ("E103", "E606"):
            raise
        return Absent(name, error, span)
