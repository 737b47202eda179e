"""`python -m tests.host LACKS WORD…`: gradcli on a host that lacks something, given as JSON:
`names` of modules, functions that are there and `refused` by the system, `folders` of the
system, whole `packages`, packages that are `broken`, `threads`; `platform` is what `sys.platform`
says.
"""

from __future__ import annotations

import builtins
import errno
import json
import os
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from importlib import abc, import_module
from typing import Any, NoReturn


class Finder(abc.MetaPathFinder):
    """Finds no package of some, and others broken, as those built for another NumPy are."""

    def __init__(self, missing: Sequence[str], broken: Sequence[str] = ()) -> None:
        self.missing = missing
        self.broken = broken

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name in self.missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in self.broken:
            raise ValueError("numpy.dtype size changed")


def _no_thread(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("can't start new thread")


def _no_call(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def take_away(lacks: Mapping[str, Any]) -> None:
    """Let this process be a host that lacks something."""
    for path in lacks.get("names", ()):
        module, _, name = path.rpartition(".")
        vars(import_module(module)).pop(name, None)
    for path in lacks.get("refused", ()):
        module, _, name = path.rpartition(".")
        setattr(import_module(module), name, _no_call)
    folders, opened = tuple(lacks.get("folders", ())), open

    def found(path: Any, *more: Any, **named: Any) -> Any:
        if folders and str(path).startswith(folders):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return opened(path, *more, **named)

    vars(builtins)["open"] = found
    sysconfig.get_config_vars()  # that of the true platform
    sys.platform = lacks.get("platform", sys.platform)
    sys.meta_path.insert(0, Finder(lacks.get("packages", []), lacks.get("broken", [])))
    if "threads" in lacks:
        for name in ("_start_new_thread", "_start_joinable_thread"):  # before Python 3.13, since
            setattr(threading, name, _no_thread)


def main() -> None:
    """Take away what the host lacks, and run the command."""
    take_away(json.loads(sys.argv[1]))
    from gradcli.cli.main import main

    main(sys.argv[2:])


if __name__ == "__main__":
    main()
