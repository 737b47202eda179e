"""Python's exceptions as values of the language.

An exception is a `GradcliError`, whoever raised it: an operation (then `raises` names the class
that PyTorch raises) or the program itself (`Raised`). What the host raises on a program's values
becomes one. What an import binds that the language does not have raises one at every use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NoReturn

from gradcli.arrays.layout.sizes import no_such_shape
from gradcli.errors import CODES, GradcliError, Label, Span, type_error
from gradcli.language.objects.types import called, is_exception, type_name
from gradcli.record import Record
from gradcli.state import active


class Raised(GradcliError):
    """An exception with arguments of its own, such as `ValueError("no")`, or a missing key."""

    def __init__(
        self,
        raises: str,
        message: str,
        arguments: tuple[Any, ...],
        code: str = "E702",
        text: str | None = None,
    ) -> None:
        # As the base does it: a program may raise many, and each call takes time.
        self.args = (message,)
        self.code = code
        self.message = message
        self.text = message if text is None else text
        self.raises = raises
        self.arguments = arguments

    def attribute(self, name: str) -> Any:
        """What its class adds to the attributes of exceptions; raises AttributeError."""
        raise AttributeError(name)

    @property
    def exit_code(self) -> int:
        """The exit code of a run that this error ends: SystemExit brings its own."""
        if self.raises != "SystemExit":
            return super().exit_code
        status = self.arguments[0] if self.arguments else None
        if status is None:
            return 0
        return status & 0xFF if isinstance(status, int) else 1


class Refused(GradcliError):
    """A ValueError of the host's over a text that is no number: many programs try whether one is.

    Nodes in C make it with the host's for its `__cause__`, whose words are read where somebody asks
    for them.
    """

    code = "E204"
    raises = "ValueError"

    __init__ = Exception.__init__  # that of other errors would run in Python, for each text

    def __getattr__(self, name: str) -> Any:
        error = self.__cause__
        if name not in ("message", "text") or not isinstance(error, ValueError):
            raise AttributeError(name)
        self.text, self.message = _unwrapped(str(error)), _message(error)
        return vars(self)[name]

    def __str__(self) -> str:
        return self.message


class Traceback:
    """`error.__traceback__`: where an exception was raised, from the call on in which it is asked
    for.
    """

    __slots__ = ("depth", "error")

    language_name: ClassVar[str] = "traceback"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"tb_lineno"})

    def __init__(self, error: GradcliError) -> None:
        self.error = error
        self.depth = len(active.state.stack)

    @property
    def tb_lineno(self) -> int:
        """The line of the statement of that call that led there."""
        places = [place for _, place in self.error.stack[self.depth :] if place is not None]
        place = next(iter(places), self.error.span)
        return 0 if place is None else place.line


def handles(classes: Any, error: GradcliError) -> bool:
    """Whether `except classes` catches an error; raises E202 for no exception class."""
    if is_exception(classes):
        return classes.has_instance(error)
    if type(classes) is tuple and all(is_exception(each) for each in classes):
        return any(each.has_instance(error) for each in classes)
    raise type_error("`except` needs an exception class or a tuple of them")


def arguments_of(error: GradcliError) -> tuple[Any, ...]:
    """`error.args`."""
    return error.arguments if isinstance(error, Raised) else (error.text,)


def exception_attribute(error: GradcliError, name: str) -> Any:
    """An attribute that exceptions of the host's have; raises AttributeError."""
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name](error)
    wanted = {"StopIteration": "value", "SystemExit": "code", "ImportError": "msg"}
    arguments = arguments_of(error) if isinstance(error, Raised) else ()
    if wanted.get(error.raises) == name:
        return arguments[0] if arguments else None
    if name == "__notes__" and error.remarks:
        return error.remarks
    if name == "name" and error.raises in _NAMING and "'" in error.text:
        return error.text.split("'")[-2]
    if name == "add_note":

        def add_note(note: Any) -> None:
            if not isinstance(note, str):
                text = f"note must be a str, not '{type_name(note)}'"
                raise type_error("a note is text", text=text)
            error.remarks = error.remarks or []
            error.remarks.append(note)

        return add_note
    if isinstance(error, Raised):
        return error.attribute(name)
    raise AttributeError(name)


_ATTRIBUTES: dict[str, Callable[[GradcliError], Any]] = {
    "__cause__": lambda error: error.cause,
    "__context__": lambda error: error.context,
    "__suppress_context__": lambda error: error.suppressed or error.cause is not None,
    "__traceback__": lambda error: None if error.span is None else Traceback(error),
    "args": arguments_of,
    "with_traceback": lambda error: called("with_traceback", lambda tb: error),
}
"""The attributes that every exception has."""

_NAMING = frozenset({"AttributeError", "ModuleNotFoundError", "NameError"})
"""The classes of errors that say the name which was not found, in quotes, last."""


# What the host may raise on a program's values, derived classes before their bases: the code and
# the class to raise.
_CONVERSIONS: tuple[tuple[type[Exception], str, str | None], ...] = (
    (TypeError, "E202", None),
    (UnicodeError, "E204", "UnicodeError"),
    (ValueError, "E204", None),
    (ZeroDivisionError, "E206", None),
    (OverflowError, "E204", "OverflowError"),
    (ArithmeticError, "E204", "ArithmeticError"),
    (IndexError, "E302", None),
    (KeyError, "E207", None),
    (MemoryError, "E602", None),  # see `_out_of_memory`
    (RecursionError, "E601", None),
    (NotImplementedError, "E205", None),
    (StopIteration, "E703", None),
    (RuntimeError, "E204", "RuntimeError"),
)

HOST_ERRORS = tuple(kind for kind, _, _ in _CONVERSIONS)
"""The host exceptions that an operation on a program's values may raise; any other is a bug of
ours.
"""


@cache
def _conversion(kind: Any) -> tuple[type[Exception], str, str | None] | None:
    """What a class of the host's becomes; None for one that is not converted."""
    return next((each for each in _CONVERSIONS if issubclass(kind, each[0])), None)


def converted(error: Exception) -> GradcliError:
    """A host exception as the language's own; the host's stays reachable as its cause."""
    if isinstance(error, MemoryError):
        return _out_of_memory(error)
    shape = no_such_shape(error)
    if shape is not None:
        return shape
    kind_of_host: Any = type(error)
    conversion = _conversion(kind_of_host)
    if conversion is None:
        raise error
    kind, code, raises = conversion
    text = _unwrapped(str(error))
    if kind is KeyError and not isinstance(error.args[0] if error.args else "", str):
        text = _message(error)  # what stands there may be an object of the host's
    failure = GradcliError(code, _message(error) or CODES[code].title, text=text, raises=raises)
    failure.__cause__ = error
    return failure


def caught(error: Exception) -> GradcliError:
    """Any exception that leaves a statement, as the language's own: `except` can catch it, and it
    has a place.

    One that no operation was expected to raise is E209: its class is the host's, and either the
    program gave a value that no check refused, or gradcli has a bug.

    Raises:
        OSError: as it is; whoever reads the output has gone, or the host has failed.
    """
    if isinstance(error, GradcliError):
        return error
    if isinstance(error, OSError):
        raise error
    if isinstance(error, (MemoryError, RecursionError)):
        return converted(error)
    if type(error) is SystemError and str(error) == "error return without exception set":
        return _out_of_memory(MemoryError())  # what CPython says where it had no memory to say more
    shape = no_such_shape(error)
    if shape is not None:
        return shape
    failure = _without_init(error) if isinstance(error, AttributeError) else None
    if failure is None:
        failure = unexpected(error)
    failure.__cause__ = error
    return failure


def _without_init(error: AttributeError) -> GradcliError | None:
    """The error of an instance of a program's class that lacks what the `__init__` of a base of
    ours would have given it; None for any other.
    """
    cls = getattr(type(error.obj), "language_class", None)
    if cls is None or str(error.name).startswith("__"):
        return None
    failure = GradcliError("E102", f"'{cls.name}' object has no attribute '{error.name}'")
    failure.help = "its `__init__` has to call that of its base: `super().__init__(…)`"
    return failure


def unexpected(error: Exception) -> GradcliError:
    """E209 for an exception of the host's that nothing was expected to raise."""
    kind = next(each for each in type(error).__mro__ if each.__module__ == "builtins")
    failure = GradcliError("E209", _message(error) or kind.__name__, raises=kind.__name__)
    failure.help = "if the program is right here, this is a bug of gradcli: please report it"
    return failure


def _out_of_memory(error: MemoryError) -> GradcliError:
    """The error of an allocation that failed; NumPy says what it was for."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    wanted = "" if shape is None else f"an array of shape {shape} and dtype {dtype}"
    failure = active.state.limits.out_of_memory(wanted)
    failure.__cause__ = error
    return failure


def _message(error: Exception) -> str:
    """The host's words, without its error numbers and its advice for the host's own language."""
    words = _unwrapped(str(error.args[-1])) if error.args else ""
    return (
        "an integer of more than 4300 digits is not turned into text" if "sys." in words else words
    )


def _unwrapped(text: str) -> str:
    """A text without what Python 3.14 puts around it: the host's own name of the type."""
    return text.partition("(")[2][:-1] if text.startswith("cannot use '") else text


# --- what an import did not find ------------------------------------------------------------------


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
