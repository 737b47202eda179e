"""The modules `sys`, `os`, `os.path`, `io`, `gc` and `platform`, as far as a program that may not
leave its process uses them.
"""

from __future__ import annotations

import io
import os
import posixpath
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.events import Printed, Reported
from gradcli.language.library.python.named_tuples import named_tuple
from gradcli.language.limits import check_text
from gradcli.language.objects.attributes import PerSession
from gradcli.language.objects.types import EXCEPTIONS, Hosted, called, type_name
from gradcli.record import Record
from gradcli.state import active


class Stream(Record):
    """`sys.stdout` and `sys.stderr`: what is written there is shown."""

    name: str
    event: Callable[[str], Any]

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"encoding", "flush", "isatty", "name", "write", "writelines"}
    )
    encoding: ClassVar[str] = "utf-8"

    def write(self, s: str, /) -> int:
        """Show a text; the number of its characters."""
        if not isinstance(s, str):
            raise type_error(f"write() argument must be str, not {type_name(s)}")
        active.state.emit(self.event(s))
        return len(s)

    def writelines(self, lines: Any, /) -> None:
        """Show several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """What is written is shown at once."""

    def isatty(self) -> bool:
        """Whether a person watches, which a program need not know."""
        return False

    def __repr__(self) -> str:
        return f"<_io.TextIOWrapper name='{self.name}' mode='w' encoding='utf-8'>"


def _exit(status: Any = None, /) -> None:
    raise EXCEPTIONS["SystemExit"](*(() if status is None else (status,)))


called("exit", _exit)


def _kept(name: str, start: Callable[[], Any]) -> PerSession:
    """A value that each session has for itself, and may change."""
    return PerSession(lambda: active.state.library.setdefault(name, start()))


def _given(name: str, fields: str, values: Any) -> Any:
    names = fields.split()
    return named_tuple(name, names, {})(*[getattr(values, each) for each in names])


def getsizeof(object: Any, default: int = 0, /) -> int:
    """`sys.getsizeof(value)`: the bytes of the value itself."""
    return sys.getsizeof(object)


def _nothing(*values: Any) -> None:
    """A setting of the host's, which a program here does not change."""


_FLOATS = "max max_exp max_10_exp min min_exp min_10_exp dig mant_dig epsilon radix rounds"

SYS: dict[str, Any] = {
    "argv": _kept("argv", lambda: [""]),
    "byteorder": sys.byteorder,
    "executable": "",
    "exit": _exit,
    "float_info": _given("float_info", _FLOATS, sys.float_info),
    "getrecursionlimit": lambda: 1000,
    "getsizeof": getsizeof,
    "maxsize": sys.maxsize,
    "path": _kept("path", lambda: [""]),
    "platform": sys.platform,
    "setrecursionlimit": _nothing,
    "stderr": Stream("<stderr>", Reported),
    "stdout": Stream("<stdout>", Printed),
    "version": sys.version,
    "version_info": _given(
        "version_info", "major minor micro releaselevel serial", sys.version_info
    ),
}
"""What `sys` holds."""


def _checked(path: Any) -> str:
    """A path that may be looked at; raises E606 where files are out of bounds."""
    if not isinstance(path, str):
        raise type_error(f"a path is a string, not {type_name(path)}")
    active.state.limits.check_file(path)
    return path


def _looks(test: Callable[[str], Any], name: str) -> Callable[[Any], Any]:
    def look(path: Any, /) -> Any:
        try:
            return test(_checked(path))
        except (OSError, ValueError) as error:
            raise GradcliError("E204", f"{path!r} cannot be looked at", raises="OSError") from error

    return called(name, look)


def _join(a: str, /, *paths: str) -> str:
    check_text(sum(len(each) for each in (a, *paths) if isinstance(each, str)))
    return posixpath.join(a, *paths)


called("join", _join)


def _of_text(name: str) -> Callable[..., Any]:
    function = getattr(posixpath, name)

    def of(path: str, /) -> Any:
        if not isinstance(path, str):
            raise type_error(f"a path is a string, not {type_name(path)}")
        return function(path)

    return called(name, of)


OS_PATH: dict[str, Any] = {
    "exists": _looks(os.path.exists, "exists"),
    "getsize": _looks(os.path.getsize, "getsize"),
    "isdir": _looks(os.path.isdir, "isdir"),
    "isfile": _looks(os.path.isfile, "isfile"),
    "join": _join,
    "sep": "/",
    **{
        name: _of_text(name)
        for name in ("basename", "dirname", "isabs", "normpath", "split", "splitext")
    },
}
"""What `os.path` holds: it takes paths apart, and looks whether there is a file."""

OS: dict[str, Any] = {
    "cpu_count": lambda: 1,
    "environ": _kept("environ", dict),
    "getenv": lambda key, default=None, /: default,
    "getpid": lambda: 1,
    "linesep": "\n",
    "name": "posix",
    "sep": "/",
}
"""What `os` holds: no process, and an environment that is empty."""


class _Buffer(Hosted):
    """A text or bytes in memory, which are read and written like a file.

    Attributes:
        content: what is written.
    """

    __slots__ = ()

    content: ClassVar[Any]
    language_context: ClassVar[bool] = True

    def write(self, s: Any, /) -> int:
        """Write something; its length."""
        if not isinstance(s, self.content):
            wanted = "string argument expected, got" if self.content is str else _BYTES
            raise type_error(f"{wanted} '{type_name(s)}'")
        check_text(self.host.tell() + len(s))
        return int(self.host.write(s))

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to a place."""
        if isinstance(cookie, int):
            check_text(cookie)
        return int(self.host.seek(cookie, whence))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.host.close()


_BYTES = "a bytes-like object is required, not"


class StringIO(_Buffer):
    """`io.StringIO(text)`."""

    __slots__ = ()

    content: ClassVar[Any] = str
    language_name: ClassVar[str] = "_io.StringIO"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "flush", "getvalue", "read", "readline", "readlines", "seek", "tell", "truncate"}
        | {"write", "writelines"}
    )

    def __init__(self, initial_value: str = "", newline: str | None = "\n") -> None:
        if not isinstance(initial_value, str):
            raise type_error(f"initial_value must be str or None, not {type_name(initial_value)}")
        super().__init__(io.StringIO(initial_value, newline))

    def writelines(self, lines: Any, /) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self.host)


class ReadText(StringIO):
    """A file that `open(name)` read: its text, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "closed", "mode", "name", "read", "readline", "readlines", "seek", "tell"}
    )

    def __init__(self, text: str, name: str, mode: str, newline: str | None) -> None:
        check_text(len(text))
        super().__init__(text, newline)
        self.name = name
        self.mode = mode


class BytesIO(_Buffer):
    """`io.BytesIO(content)`."""

    __slots__ = ()

    content: ClassVar[Any] = bytes
    language_name: ClassVar[str] = "_io.BytesIO"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "flush", "getvalue", "read", "seek", "tell", "write"}
    )

    def __init__(self, initial_bytes: bytes = b"") -> None:
        if not isinstance(initial_bytes, bytes):
            raise type_error(f"{_BYTES} '{type_name(initial_bytes)}'")
        super().__init__(io.BytesIO(initial_bytes))


class ReadBytes(BytesIO):
    """A file that `open(name, "rb")` read: its bytes, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.BufferedReader"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "closed", "mode", "name", "read", "seek", "tell"}
    )

    def __init__(self, content: bytes, name: str, mode: str) -> None:
        check_text(len(content))
        super().__init__(content)
        self.name = name
        self.mode = mode


IO: dict[str, Any] = {"BytesIO": BytesIO, "StringIO": StringIO}
"""What `io` holds."""


def collect(generation: int = 2) -> int:
    """`gc.collect()`: nothing is left to collect."""
    return 0


GC: dict[str, Any] = {"collect": collect, "disable": _nothing, "enable": _nothing}
"""What `gc` holds."""

PLATFORM: dict[str, Any] = {
    "machine": lambda: os.uname().machine if hasattr(os, "uname") else "",
    "platform": lambda: sys.platform,
    "python_version": lambda: sys.version.partition(" ")[0],
    "system": lambda: {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(
        sys.platform, ""
    ),
}
"""What `platform` holds."""
