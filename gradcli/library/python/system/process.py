"""The modules `sys`, `os`, `os.path`, `gc` and `platform`, as far as a program that may not
leave its process uses them.
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import GradcliError
from gradcli.language.events import Printed, Reported
from gradcli.language.limits import check_text
from gradcli.language.objects.attributes import PerSession
from gradcli.language.objects.exceptions import Raised, Traceback
from gradcli.language.objects.types import EXCEPTIONS, called, check_kind, names, type_of
from gradcli.library.files import file_name
from gradcli.library.python.collections import named_tuple
from gradcli.library.python.system.folders import listdir, makedirs, mkdir
from gradcli.ops.binding.functions import torch
from gradcli.record import Record
from gradcli.state import active


class Stream(Record):
    """`sys.stdout` and `sys.stderr`: what is written there is shown."""

    name: str
    event: Callable[[str], Any]

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes = names("encoding flush isatty name write writelines")
    encoding: ClassVar[str] = "utf-8"

    def write(self, s: str, /) -> int:
        """Show a text; the number of its characters."""
        check_kind(s, str, "write() argument must be str")
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


def _info(name: str, fields: str, values: Any) -> Any:
    names = fields.split()
    return named_tuple(name, names, {})(*[getattr(values, each) for each in names])


def getsizeof(object: Any, default: int = 0, /) -> int:
    """`sys.getsizeof(value)`: the bytes of the value itself."""
    return sys.getsizeof(object)


def _nothing(*values: Any) -> None:
    """A setting of the host's, which a program here does not change."""


def exc_info() -> tuple[Any, Any, Any]:
    """The class, the exception and the traceback of what is handled; three None outside."""
    handled = active.state.library["handled"]
    if not handled:
        return None, None, None
    error = handled[-1]
    return type_of(error), error, Traceback(error)


_FLOATS = "max max_exp max_10_exp min min_exp min_10_exp dig mant_dig epsilon radix rounds"

SYS: dict[str, Any] = {
    "argv": _kept("argv", lambda: [""]),
    "byteorder": sys.byteorder,
    "exc_info": exc_info,
    "executable": "",
    "exit": _exit,
    "float_info": _info("float_info", _FLOATS, sys.float_info),
    "getdefaultencoding": lambda: "utf-8",
    "getrecursionlimit": lambda: 1000,
    "getsizeof": getsizeof,
    "intern": called("intern", lambda string, /: string),
    "maxsize": sys.maxsize,
    "path": _kept("path", lambda: [""]),
    "platform": sys.platform,
    "setrecursionlimit": _nothing,
    "stderr": Stream("<stderr>", Reported),
    "stdout": Stream("<stdout>", Printed),
    "version": sys.version,
    "version_info": _info(
        "version_info", "major minor micro releaselevel serial", sys.version_info
    ),
}
"""What `sys` holds."""


def _looks(test: Callable[[str], Any], name: str) -> Callable[[Any], Any]:
    """A function that looks at a path; raises E606 where files are out of bounds."""

    def look(path: Any, /) -> Any:
        try:
            text = file_name("os.path", path, "a path")
            active.state.limits.check_file(text)
            return test(text)
        except (OSError, ValueError) as error:
            raise GradcliError("E204", f"{path!r} cannot be looked at", raises="OSError") from error

    return called(name, look)


def _join(a: Any, /, *paths: Any) -> str:
    texts = [file_name("join()", each) for each in (a, *paths)]
    check_text(sum(map(len, texts)))
    return posixpath.join(*texts)


called("join", _join)


def _of_text(name: str) -> Callable[..., Any]:
    function = getattr(posixpath, name)
    return called(name, lambda path, /: function(file_name(f"{name}()", path)))


def getcwd() -> str:
    """`os.getcwd()`: the folder of the run; raises E606 where files are out of bounds."""
    active.state.limits.check_file(".")
    return os.getcwd()


def abspath(path: Any, /) -> str:
    """`os.path.abspath(path)`: the path from the root, without `..`."""
    return posixpath.normpath(posixpath.join(getcwd(), file_name("abspath()", path)))


exists = _looks(os.path.exists, "exists")
isdir = _looks(os.path.isdir, "isdir")
isfile = _looks(os.path.isfile, "isfile")

OS_PATH: dict[str, Any] = {
    "abspath": abspath,
    "exists": exists,
    "expanduser": called("expanduser", lambda path: file_name("os.path", path, "a path")),
    "getsize": _looks(os.path.getsize, "getsize"),
    "isdir": isdir,
    "isfile": isfile,
    "join": _join,
    "realpath": abspath,
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
    "getcwd": getcwd,
    "getenv": lambda key, default=None, /: default,
    "getpid": lambda: 1,
    "linesep": "\n",
    "listdir": listdir,
    "makedirs": makedirs,
    "mkdir": mkdir,
    "name": "posix",
    "sep": "/",
}
"""What `os` holds: no process, and an environment that is empty."""


def collect(generation: int = 2) -> int:
    """`gc.collect()`: nothing is left to collect."""
    return 0


GC: dict[str, Any] = {"collect": collect, "disable": _nothing, "enable": _nothing}
"""What `gc` holds."""

PLATFORM: dict[str, Any] = {
    "node": lambda: "localhost",
    "processor": lambda: "",
    "python_implementation": lambda: "CPython",
    "release": lambda: "",
    "machine": lambda: os.uname().machine if hasattr(os, "uname") else "",
    "platform": lambda: sys.platform,
    "python_version": lambda: sys.version.partition(" ")[0],
    "system": lambda: {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(
        sys.platform, ""
    ),
}
"""What `platform` holds."""


def version(distribution_name: str) -> str:
    """`importlib.metadata.version(name)`: of PyTorch, as which gradcli runs programs, and of NumPy;
    raises E205 for all else, which is not there.
    """
    check_kind(distribution_name, str, "version() takes the name of a package")
    name = distribution_name.lower()
    if name not in _VERSIONS:
        text = f"No package metadata was found for {distribution_name}"
        raise Raised("PackageNotFoundError", text, (distribution_name,), "E205")
    return _VERSIONS[name]


_VERSIONS = {"numpy": np.__version__, "torch": torch.__version__.partition("+")[0]}

METADATA: dict[str, Any] = {
    "PackageNotFoundError": EXCEPTIONS["PackageNotFoundError"],
    "version": version,
}
"""What `importlib.metadata` holds."""


IMPORTLIB: dict[str, Any] = {}
"""What `importlib` holds beside `metadata`: modules are imported with `import`."""
