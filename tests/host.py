"""`python -m tests.host LACKS WORD…`: gradcli on a host that lacks something, given as JSON:
`names` of modules, whole `packages`, packages that are `broken`, `threads`.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
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


def main() -> None:
    """Take away what the host lacks, and run the command."""
    lacks = json.loads(sys.argv[1])
    for path in lacks.get("names", ()):
        module, _, name = path.rpartition(".")
        vars(import_module(module)).pop(name, None)
    sys.meta_path.insert(0, Finder(lacks.get("packages", []), lacks.get("broken", [])))
    if "threads" in lacks:
        for name in ("_start_new_thread", "_start_joinable_thread"):  # before Python 3.13, since
            setattr(threading, name, _no_thread)
    from gradcli.cli.main import main

    main(sys.argv[2:])


if __name__ == "__main__":
    main()
