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

from gradcli.errors import GradcliError
from gradcli.language.events import Printed, Reported
from gradcli.language.library.python.named_tuples import named_tuple
from gradcli.language.limits import check_text
from gradcli.language.objects.attributes import PerSession
from gradcli.language.objects.types import EXCEPTIONS, type_name
from gradcli.state import active


class Stream:
    """`sys.stdout` and `sys.stderr`: what is written there is shown."""

    __slots__ = ("event", "name")

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"encoding", "flush", "isatty", "name", "write", "writelines"}
    )
    encoding: ClassVar[str] = "utf-8"

    def __init__(self, name: str, event: Callable[[str], Any]) -> None:
        self.name = name
        self.event = event

    def write(self, s: str, /) -> int:
        """Show a text; the number of its characters."""
        if not isinstance(s, str):
            raise GradcliError("E202", f"write() argument must be str, not {type_name(s)}")
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


_exit.__name__ = _exit.__qualname__ = "exit"


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
        raise GradcliError("E202", f"a path is a string, not {type_name(path)}")
    active.state.limits.check_file(path)
    return path


def _looks(test: Callable[[str], Any], name: str) -> Callable[[Any], Any]:
    def look(path: Any, /) -> Any:
        try:
            return test(_checked(path))
        except (OSError, ValueError) as error:
            raise GradcliError("E204", f"{path!r} cannot be looked at", raises="OSError") from error

    look.__name__ = look.__qualname__ = name
    return look


def _join(a: str, /, *paths: str) -> str:
    check_text(sum(len(each) for each in (a, *paths) if isinstance(each, str)))
    return posixpath.join(a, *paths)


_join.__name__ = _join.__qualname__ = "join"


def _of_text(name: str) -> Callable[..., Any]:
    function = getattr(posixpath, name)

    def of(path: str, /) -> Any:
        if not isinstance(path, str):
            raise GradcliError("E202", f"a path is a string, not {type_name(path)}")
        return function(path)

    of.__name__ = of.__qualname__ = name
    return of


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


class StringIO:
    """`io.StringIO(text)`: a text that is written like a file."""

    __slots__ = ("buffer",)

    language_name: ClassVar[str] = "_io.StringIO"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "flush", "getvalue", "read", "readline", "readlines", "seek", "tell", "truncate"}
        | {"write", "writelines"}
    )

    def __init__(self, initial_value: str = "", newline: str | None = "\n") -> None:
        if not isinstance(initial_value, str):
            raise GradcliError(
                "E202", f"initial_value must be str or None, not {type_name(initial_value)}"
            )
        self.buffer = io.StringIO(initial_value, newline)

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        method = getattr(self.buffer, name)

        def told(*values: Any) -> Any:
            return method(*values)

        told.__name__ = told.__qualname__ = name
        return told

    def write(self, s: str, /) -> int:
        """Write a text; the number of its characters."""
        if not isinstance(s, str):
            raise GradcliError("E202", f"string argument expected, got '{type_name(s)}'")
        check_text(self.buffer.tell() + len(s))
        return self.buffer.write(s)

    def writelines(self, lines: Any, /) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to a place in the text."""
        if isinstance(cookie, int):
            check_text(cookie)
        return self.buffer.seek(cookie, whence)

    def __iter__(self) -> Any:
        return iter(self.buffer)

    def __enter__(self) -> StringIO:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.buffer.close()


class ReadText(StringIO):
    """A file that `open(name)` read: its text, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "closed", "mode", "name", "read", "readline", "readlines", "seek", "tell"}
    )

    def __init__(self, text: str, name: str, mode: str, newline: str | None) -> None:
        check_text(len(text))
        self.buffer = io.StringIO(text, newline)
        self.name = name
        self.mode = mode

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.buffer.closed


class BytesIO:
    """`io.BytesIO(content)`: bytes that are written like a file."""

    __slots__ = ("buffer",)

    language_name: ClassVar[str] = "_io.BytesIO"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "flush", "getvalue", "read", "seek", "tell", "write"}
    )

    def __init__(self, initial_bytes: bytes = b"") -> None:
        if not isinstance(initial_bytes, bytes):
            raise GradcliError(
                "E202", f"a bytes-like object is required, not '{type_name(initial_bytes)}'"
            )
        self.buffer = io.BytesIO(initial_bytes)

    def write(self, b: bytes, /) -> int:
        """Write bytes; their number."""
        if not isinstance(b, bytes):
            raise GradcliError("E202", f"a bytes-like object is required, not '{type_name(b)}'")
        check_text(self.buffer.tell() + len(b))
        return self.buffer.write(b)

    def read(self, size: int | None = -1, /) -> bytes:
        """The bytes from here on, `size` of them at most."""
        return self.buffer.read(size)

    def getvalue(self) -> bytes:
        """All of them."""
        return self.buffer.getvalue()

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to a place in them."""
        if isinstance(cookie, int):
            check_text(cookie)
        return self.buffer.seek(cookie, whence)

    def tell(self) -> int:
        """Where it stands."""
        return self.buffer.tell()

    def flush(self) -> None:
        """What is written is there at once."""

    def close(self) -> None:
        """Give the bytes back."""
        self.buffer.close()

    def __enter__(self) -> BytesIO:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.buffer.close()


class ReadBytes(BytesIO):
    """A file that `open(name, "rb")` read: its bytes, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.BufferedReader"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "closed", "mode", "name", "read", "seek", "tell"}
    )

    def __init__(self, content: bytes, name: str, mode: str) -> None:
        check_text(len(content))
        self.buffer = io.BytesIO(content)
        self.name = name
        self.mode = mode

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.buffer.closed


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
