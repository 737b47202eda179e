"""The modules `time`, `timeit` and `datetime`, whose values are the host's own."""

from __future__ import annotations

import datetime as host
import time
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar

from gradcli.errors import GradcliError, value_error
from gradcli.language.functions.calls import call
from gradcli.language.limits import check_text, too_many_steps
from gradcli.language.objects.methods import CLASS_METHODS, METHODS, VALUES
from gradcli.language.objects.repr import HOST_FORMAT, HOST_TEXT
from gradcli.language.objects.types import by_name, called, check_kind, define
from gradcli.state import active


def sleep(seconds: float, /) -> None:
    """`time.sleep(seconds)`: wait for no longer than a minute."""
    if not isinstance(seconds, (int, float)) or not 0 <= seconds <= 60:
        raise value_error("sleep() takes a number of seconds between 0 and 60")
    time.sleep(seconds)


_FIELDS = "tm_year tm_mon tm_mday tm_hour tm_min tm_sec tm_wday tm_yday tm_isdst"


@cache
def _struct() -> Any:
    """The class of a moment's parts."""
    from gradcli.library.python.collections import named_tuple  # lazy: start-up

    return named_tuple("struct_time", _FIELDS.split(), {})


def _moment(convert: Callable[[Any], Any]) -> Callable[..., Any]:
    return called("moment", lambda seconds=None, /: _struct()(*convert(seconds)))


localtime, gmtime = _moment(time.localtime), _moment(time.gmtime)


def strftime(format: str, t: Any = None, /) -> str:
    """`time.strftime(format)`: the moment as text."""
    return time.strftime(checked_format(format), time.localtime() if t is None else tuple(t))


def checked_format(format: Any) -> str:
    """The format of a date; raises E202, E602 where it is none or too long."""
    check_kind(format, str, "a format is a string")
    check_text(1000 * len(format))
    if any(sign.isdigit() for sign in format.replace("%%", "").split("%")[1:] for sign in sign[:2]):
        raise value_error("a width in the format of a date is outside the language")
    return format


TIME: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(time, name)
        for name in ("ctime", "perf_counter", "perf_counter_ns", "process_time", "time", "time_ns")
    },
    "asctime": called("asctime", lambda: time.asctime()),
    "gmtime": gmtime,
    "localtime": localtime,
    "monotonic": time.perf_counter,
    "sleep": sleep,
    "strftime": strftime,
}
"""What `time` holds."""


def timeit(
    stmt: Any = None,
    setup: Any = None,
    timer: Any = None,
    number: int = 1_000_000,
    globals: Any = None,
) -> float:
    """`timeit.timeit(function, number=…)`: the seconds that so many calls take."""
    for each in (stmt, setup):
        if isinstance(each, str):
            raise GradcliError(
                "E205",
                "timeit() of a string would run text as code",
                help="give it a function: `timeit(lambda: …, number=100)`",
            )
    if setup is not None:
        call(setup, (), {})
    steps = active.state.steps
    before = time.perf_counter()
    for _ in range(number):
        steps.left -= 1
        if steps.left < 0:
            raise too_many_steps()
        call(stmt, (), {})
    return time.perf_counter() - before


def repeat(
    stmt: Any = None, setup: Any = None, timer: Any = None, repeat: int = 5, number: int = 1_000_000
) -> list[float]:
    """`timeit.repeat(function)`: `timeit` several times."""
    return [timeit(stmt, setup, timer, number) for _ in range(repeat)]


class Timer:
    """`timeit.Timer(function)`."""

    __slots__ = ("settings",)

    language_name: ClassVar[str] = "timeit.Timer"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"repeat", "timeit"})

    def __init__(
        self, stmt: Any = None, setup: Any = None, timer: Any = None, globals: Any = None
    ) -> None:
        self.settings = stmt, setup, timer

    def timeit(self, number: int = 1_000_000) -> float:
        """The seconds that so many calls take."""
        return timeit(*self.settings, number)

    def repeat(self, repeat: int = 5, number: int = 1_000_000) -> list[float]:
        """The same several times."""
        return [self.timeit(number) for _ in range(repeat)]


TIMEIT: dict[str, Callable[..., Any]] = {
    **by_name(Timer, repeat, timeit),
    "default_timer": time.perf_counter,
}
"""What `timeit` holds."""


_DATE = "day month year"
_TIME = "hour microsecond minute second tzinfo"
_METHODS = {
    host.date: "ctime isocalendar isoformat isoweekday replace timetuple toordinal weekday",
    host.datetime: (
        "astimezone ctime date isoformat isoweekday replace time timestamp toordinal utcoffset"
        " weekday"
    ),
    host.time: "isoformat replace",
    host.timedelta: "total_seconds",
    host.timezone: "utcoffset",
}
_VALUES = {
    host.date: _DATE,
    host.datetime: f"{_DATE} {_TIME}",
    host.time: _TIME,
    host.timedelta: "days microseconds seconds",
    host.timezone: "",
}
_CONSTRUCTORS = {
    host.date: "fromisoformat fromordinal fromtimestamp today",
    host.datetime: "combine fromisoformat fromtimestamp now strptime today utcnow",
    host.time: "fromisoformat",
    host.timedelta: "",
    host.timezone: "",
}


def _strftime(self: Any, format: str, /) -> str:
    return str(self.strftime(checked_format(format)))


def _class(kind: type) -> Any:
    names = [name for name in _METHODS[kind].split() if name not in ("isocalendar", "timetuple")]
    METHODS[kind] = {name: getattr(kind, name) for name in names}
    if kind in (host.date, host.datetime, host.time):
        METHODS[kind]["strftime"] = _strftime
        HOST_FORMAT.add(kind)
    VALUES[kind] = {name: attrgetter(name) for name in _VALUES[kind].split()}
    CLASS_METHODS[kind] = {name: getattr(kind, name) for name in _CONSTRUCTORS[kind].split()}
    HOST_TEXT.add(kind)

    def construct(*values: Any, **named: Any) -> Any:
        return kind(*values, **named)

    return define(f"datetime.{kind.__name__}", kind, construct=construct)


DATETIME: dict[str, Any] = {
    **{kind.__name__: _class(kind) for kind in _METHODS},
    "MAXYEAR": host.MAXYEAR,
    "MINYEAR": host.MINYEAR,
}
CLASS_METHODS[host.timezone] = {"utc": host.UTC}  # type: ignore[dict-item]
"""What `datetime` holds."""
