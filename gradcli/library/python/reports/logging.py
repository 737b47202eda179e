"""The module `logging`: messages on standard error, or where a program sends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.events import Reported
from gradcli.language.objects.formatting import percent
from gradcli.language.objects.repr import text
from gradcli.language.objects.types import by_name, called, names
from gradcli.library.python.system.process import Stream
from gradcli.library.python.time import checked_format
from gradcli.record import Record
from gradcli.state import active

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
