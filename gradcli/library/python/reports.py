"""The module `warnings`: what a program warns of, and what it makes of the warnings of others."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError, Span, type_error, value_error
from gradcli.language.events import Reported
from gradcli.language.functions.calls import call
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.exceptions import handles
from gradcli.language.objects.repr import display, percent, text
from gradcli.language.objects.types import (
    EXCEPTIONS,
    LanguageType,
    by_name,
    called,
    names,
    type_name,
    type_of,
)
from gradcli.library.python.system.process import SYS, Stream
from gradcli.library.python.text import compile
from gradcli.library.python.time import checked_format
from gradcli.record import Record
from gradcli.state import active


class Warnings(Record):
    """What a session makes of warnings.

    Attributes:
        caught: the warnings that the innermost `catch_warnings(record=True)` keeps, None outside.
        filters: each with its action, a pattern of the text and the class, the last one first.
        seen: those that were shown.
    """

    filters: list[tuple[str, Any, Any]]
    seen: set[tuple[str, str]]
    caught: list[Any] | None = None

    def handle(self, error: GradcliError) -> bool:
        """Raise, keep or hide a warning as the filters say; whether that was all."""
        words = text(error)
        action = next(
            (
                action
                for action, pattern, classes in self.filters
                if handles(classes, error) and (pattern is None or pattern.match(words))
            ),
            "",
        )
        if action == "error":
            raise error
        if action == "ignore":
            return True
        if self.caught is not None:
            self.caught.append(WarningMessage(error, type_of(error)))
            return True
        return action != "always" and (type_name(error), words) in self.seen

    def takes(self, category: str, words: str) -> bool:
        """Whether a warning of ours went where the program wants it."""
        return self.handle(EXCEPTIONS[category](words))


class CatchWarnings:
    """`warnings.catch_warnings(record=True)`."""

    __slots__ = ("action", "before", "category", "record")

    language_name: ClassVar[str] = "warnings.catch_warnings"
    language_context: ClassVar[bool] = True

    def __init__(
        self, *, record: Any = False, action: Any = None, category: Any = None, **named: Any
    ) -> None:
        self.record = bool(record)
        self.action = action
        self.category = category
        self.before: Warnings | None = None

    def __enter__(self) -> list[Any] | None:
        self.before = outer = _warnings()
        active.state.library["warnings"] = inner = Warnings(list(outer.filters), set())
        inner.caught = [] if self.record else outer.caught
        if self.action is not None:
            simplefilter(self.action, self.category)
        return inner.caught if self.record else None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        active.state.library["warnings"] = self.before


class WarningMessage:
    """A warning that was caught."""

    __slots__ = ("category", "filename", "line", "lineno", "message")

    language_name: ClassVar[str] = "warnings.WarningMessage"
    language_str: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)

    def __init__(self, message: Any, category: Any) -> None:
        place = active.state.place
        self.message = message
        self.category = category
        self.filename = "" if place is None else place.source.name
        self.lineno = 0 if place is None else place.source.position(place.start)[0]
        self.line = None

    def __str__(self) -> str:
        return (
            f"{{message : {display(self.message)}, category : {self.category.name!r}, filename :"
            f" {self.filename!r}, lineno : {self.lineno}, line : None}}"
        )


def _warnings() -> Warnings:
    warnings: Warnings = active.state.library.setdefault("warnings", Warnings([], set()))
    return warnings


def warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None) -> None:
    """`warnings.warn(message)`: on standard error, once for each text."""
    if isinstance(message, GradcliError):
        error: Any = message
    else:
        kind = category if isinstance(category, LanguageType) else EXCEPTIONS["UserWarning"]
        error = kind(message)
    kept = _warnings()
    if not kept.handle(error):
        name, words = type_name(error), text(error)
        kept.seen.add((name, words))
        active.state.emit(Reported(f"{name}: {words}\n"))


def filterwarnings(
    action: str, message: str = "", category: Any = None, *rest: Any, **named: Any
) -> None:
    """`warnings.filterwarnings(action)`: ignore, error, always, default."""
    pattern = compile(message, re.IGNORECASE) if message else None
    kind = EXCEPTIONS["Warning"] if category is None else category
    _warnings().filters.insert(0, (action, pattern, kind))


def simplefilter(action: str, category: Any = None, *rest: Any, **named: Any) -> None:
    """`warnings.simplefilter(action)`."""
    filterwarnings(action, "", category)


def resetwarnings() -> None:
    """`warnings.resetwarnings()`."""
    _warnings().filters.clear()


WARNINGS: dict[str, Any] = {
    "catch_warnings": CatchWarnings,
    **by_name(filterwarnings, resetwarnings, simplefilter, warn),
}
"""What `warnings` holds."""


def _frames(error: GradcliError) -> list[tuple[str, Span | None]]:
    """The places that led to an error, from where it is handled, each with its function."""
    here = active.state.stack
    shared = 0
    for one, other in zip(error.stack, here, strict=False):
        if one is not other:
            break
        shared += 1
    names = ["<module>", *(name for name, _ in error.stack)]
    places = [*(place for _, place in error.stack), error.span]
    return list(zip(names, places, strict=True))[shared:]


def _only(error: GradcliError) -> list[str]:
    words = text(error)
    return [f"{type_name(error)}: {words}\n" if words else f"{type_name(error)}\n"]


_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def _lines(error: GradcliError, chain: bool) -> list[str]:
    lines: list[str] = []
    before = error.cause or (None if error.suppressed else error.context)
    if chain and before is not None:
        lines += [*_lines(before, chain), _DURING if error.cause is None else _CAUSED]
    lines.append("Traceback (most recent call last):\n")
    for name, place in _frames(error):
        if place is not None:
            lines.append(f'  File "{place.source.name}", line {place.line}, in {name}\n')
            lines.append(f"    {place.source.line(place.line).strip()}\n")
    return lines + _only(error)


def _error(exc: Any, value: Any) -> GradcliError:
    """What `format_exception` was given: an exception, or its class, itself and its traceback."""
    error = exc if value is None else value
    if not isinstance(error, GradcliError):
        raise type_error(f"Exception expected for value, {type_name(error)} found")
    return error


def format_exception(
    exc: Any, /, value: Any = None, tb: Any = None, limit: Any = None, chain: Any = True
) -> list[str]:
    """The lines of a traceback, and what the exception says."""
    return _lines(_error(exc, value), bool(chain))


def format_exception_only(exc: Any, /, value: Any = None) -> list[str]:
    """What the exception says."""
    return _only(_error(exc, value))


def format_exc(limit: Any = None, chain: Any = True) -> str:
    """The traceback of the exception that is handled, as a text."""
    handled = active.state.library["handled"]
    error = handled[-1] if handled else None
    return "NoneType: None\n" if error is None else "".join(_lines(error, bool(chain)))


def print_exc(limit: Any = None, file: Any = None, chain: Any = True) -> None:
    """Write the traceback of the exception that is handled, to standard error."""
    call(get_attribute(file or SYS["stderr"], "write"), (format_exc(limit, chain),), {})


def print_exception(
    exc: Any,
    /,
    value: Any = None,
    tb: Any = None,
    limit: Any = None,
    file: Any = None,
    chain: Any = True,
) -> None:
    """Write the traceback of an exception, to standard error."""
    written = "".join(format_exception(exc, value, tb, limit, chain))
    call(get_attribute(file or SYS["stderr"], "write"), (written,), {})


TRACEBACK: dict[str, Any] = by_name(
    format_exc, format_exception, format_exception_only, print_exc, print_exception
)
"""What `traceback` holds."""


_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
_NAMES = {number: name for name, number in _LEVELS.items()}


class Settings(Record):
    """What `basicConfig` set."""

    loggers: dict[str, Logger]
    configured: bool = False
    disabled: int = 0
    form: str = "%(levelname)s:%(name)s:%(message)s"
    date_format: str | None = None
    event: Callable[[str], Any] = Reported
    level: int = _LEVELS["WARNING"]
    style: str = "%"


def _settings() -> Settings:
    settings: Settings = active.state.library.setdefault("logging", Settings({}))
    return settings


class Logger:
    """`logging.getLogger(name)`."""

    __slots__ = ("handlers", "level", "name", "propagate")

    language_name: ClassVar[str] = "logging.Logger"
    language_attributes = names("""addHandler critical debug error exception getEffectiveLevel
        handlers hasHandlers info isEnabledFor level log name propagate setLevel removeHandler
        warning""")
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"propagate"})

    def __init__(self, name: str) -> None:
        self.name = name
        self.level = 0
        self.handlers: list[Any] = []
        self.propagate = True

    def getEffectiveLevel(self) -> int:
        """The level below which nothing is shown."""
        return self.level or _settings().level

    def isEnabledFor(self, level: int) -> bool:
        """Whether something of this level is shown."""
        return level >= self.getEffectiveLevel() and level > _settings().disabled

    def hasHandlers(self) -> bool:
        """Whether something shows what is logged."""
        return bool(self.handlers) or _settings().configured

    def removeHandler(self, hdlr: Any) -> None:
        """Take a handler away."""
        if hdlr in self.handlers:
            self.handlers.remove(hdlr)

    def setLevel(self, level: Any) -> None:
        """Show nothing below a level."""
        self.level = _level(level)

    def addHandler(self, hdlr: Any) -> None:
        """All lines go where the last handler's do: to standard error or output."""
        self.handlers.append(hdlr)
        if hdlr.arguments:
            _take_stream(hdlr.arguments[0])

    def log(self, level: Any, msg: Any, *args: Any, **named: Any) -> None:
        """Show a message."""
        if not self.isEnabledFor(_level(level)):
            return
        if not args:
            message = text(msg)
        else:
            single = len(args) == 1 and isinstance(args[0], dict) and args[0]
            message = percent(text(msg), args[0] if single else args)
        active.state.emit(_settings().event(_line(self.name, _level(level), message) + "\n"))

    def __repr__(self) -> str:
        level = _NAMES.get(self.getEffectiveLevel(), self.getEffectiveLevel())
        return f"<Logger {self.name} ({level})>"


def _at(name: str, level: int) -> Callable[..., None]:
    """The method of a level."""
    return called(name, lambda self, msg, *args, **named: self.log(level, msg, *args, **named))


for _level_name, _number in {**_LEVELS, "EXCEPTION": _LEVELS["ERROR"]}.items():
    setattr(Logger, _level_name.lower(), _at(_level_name.lower(), _number))


def _line(name: str, level: int, message: str) -> str:
    settings = _settings()
    if not settings.configured and name != "root":
        return message  # what Python's handler of last resort writes
    moment = time.localtime()
    date = time.strftime(checked_format(settings.date_format or "%Y-%m-%d %H:%M:%S"), moment)
    values = {
        "asctime": date if settings.date_format else f"{date},000",
        "filename": "", "funcName": "", "lineno": 0, "module": "", "pathname": "",
        "levelname": _NAMES.get(level, f"Level {level}"),
        "levelno": level,
        "message": message,
        "name": name,
        "process": 1,
        "threadName": "MainThread",
    }  # fmt: skip
    if settings.style == "{":
        form = settings.form
        for key, value in values.items():
            form = form.replace("{" + key + "}", str(value))
        return form
    return percent(settings.form, values)


def _level(level: Any) -> int:
    if isinstance(level, str):
        if level not in _LEVELS:
            raise value_error(f"Unknown level: {level!r}")
        return _LEVELS[level]
    if not isinstance(level, int):
        raise type_error(f"Level not an integer or a valid string: {text(level)}")
    return level


def _take_stream(stream: Any) -> None:
    """Write to `sys.stdout` or `sys.stderr` where a program names one."""
    if isinstance(stream, Stream):
        _settings().event = stream.event


def basicConfig(**settings: Any) -> None:
    """`logging.basicConfig(level=…, format=…)`: once, as in Python."""
    kept = _settings()
    if kept.configured and not settings.get("force"):
        return
    kept.configured = True
    if settings.get("filename") is not None:
        raise GradcliError("E205", "a log goes to standard error, and to no file")
    if "level" in settings and settings["level"] is not None:
        kept.level = _level(settings["level"])
    for handler in settings.get("handlers") or ():
        getLogger().addHandler(handler)
    _take_stream(settings.get("stream"))
    kept.form = str(settings.get("format", kept.form))
    kept.date_format = settings.get("datefmt")
    kept.style = str(settings.get("style", "%"))


def getLevelName(level: Any) -> Any:
    """`logging.getLevelName(20)` is "INFO", and that of "INFO" is 20."""
    if isinstance(level, str):
        return _LEVELS.get(level, f"Level {level}")
    return _NAMES.get(level, f"Level {level}")


def disable(level: Any = _LEVELS["CRITICAL"]) -> None:
    """`logging.disable(level)`: nothing up to a level is shown."""
    _settings().disabled = _level(level)


def getLogger(name: Any = None) -> Logger:
    """`logging.getLogger(name)`."""
    key = "root" if name is None else text(name)
    return _settings().loggers.setdefault(key, Logger(key))


def _of_root(name: str) -> Callable[..., None]:
    def log(*values: Any, **named: Any) -> None:
        _settings().configured = True  # as Python does when its functions are used
        getattr(getLogger(), name)(*values, **named)

    return called(name, log)


class Handler:
    """`StreamHandler()`, `Formatter(…)`: they are made, and change nothing."""

    __slots__ = ("arguments",)

    language_name: ClassVar[str] = "logging.StreamHandler"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"setFormatter", "setLevel"})

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.arguments = arguments

    def setFormatter(self, fmt: Any) -> None:
        """Take the form of a formatter for all lines."""
        settings = _settings()
        settings.configured = True
        if fmt.arguments and fmt.arguments[0] is not None:
            settings.form = text(fmt.arguments[0])

    def setLevel(self, level: Any) -> None:
        """The loggers have levels."""


LOGGING: dict[str, Any] = {
    **_LEVELS,
    "Formatter": Handler,
    **by_name(Logger, basicConfig, disable, getLevelName, getLogger),
    "NOTSET": 0,
    "StreamHandler": Handler,
    "WARN": 30,
    **{
        name: _of_root(name)
        for name in ("critical", "debug", "error", "exception", "info", "log", "warning")
    },
}
"""What `logging` holds."""
