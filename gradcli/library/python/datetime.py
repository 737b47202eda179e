"""The module `datetime`: the host's own values, which are plain and never change."""

from __future__ import annotations

import datetime as host
from operator import attrgetter
from typing import Any

from gradcli.language.objects.formatting import HOST_FORMAT
from gradcli.language.objects.methods import CLASS_METHODS, METHODS, VALUES
from gradcli.language.objects.repr import HOST_TEXT
from gradcli.language.objects.types import define
from gradcli.library.python.time import checked_format

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
