"""Lazy loading of families of ops, layers, optimizers and the like: each family, a module, is
imported when one of its names is first looked up.

To import all of them would take longer than a short command. The index maps each name to its
family. It is computed from the families: they are all imported once, and their names are recorded
as they fill the tables. An installation has the index beside this file. A checkout builds
it at its first run, keeps it in the user's cache, and rebuilds it when a file of a family has
changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from gradcli.arrays.files import cache

# To be incremented when the format of the index changes.
_FORMAT = 5

_PACKAGES = tuple(
    f"gradcli.{name}."
    for name in (
        "library.torch.data",
        "library.torch.distributions",
        "library.torch.func",
        "library.torch.nn",
        "library.torch.optim",
        "ops",
    )
)
"""The packages of the families."""


def is_of_family(module: str) -> bool:
    """Whether a module is one of those."""
    return module.startswith(_PACKAGES)


_FOLDER = os.path.abspath(sys.modules["gradcli"].__path__[0])
_INSTALLED = os.path.join(_FOLDER, "ops", "lazy_index.marshal")
_CACHED = cache.path_of("lazy-index", (_FORMAT, sys.version, _FOLDER))

Index = dict[str, dict[str, str]]
"""For each table the family's module by name; empty until it is built."""


def _key() -> tuple[Any, ...]:
    """What the index of a checkout is made from: when each module was written, and its size."""
    return (_FORMAT, sys.version, _FOLDER, *_modules())


def _modules() -> list[tuple[str, int, int]]:
    """The modules of all packages: path, time of writing and size."""
    modules = []
    folders = [os.path.join(_FOLDER, *package.split(".")[1:-1]) for package in _PACKAGES]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.name.endswith(".py"):
                status = entry.stat()
                modules.append((entry.path, status.st_mtime_ns, status.st_size))
            elif entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)
    return sorted(modules)


def _load() -> Index:
    """The index of an installation, or that of the cache; else an empty one."""
    try:
        with open(_INSTALLED, "rb") as file:
            content = cache.unpacked(file.read())
    except (OSError, ValueError, EOFError, TypeError):
        content = cache.read(_CACHED, _key())
    return content[0] if content else {}


_index = _load()

# --- importing families -------------------------------------------------------------------------


def bring(table_name: str, name: str) -> None:
    """Import the family of a name in a table; all families while the index is not built."""
    if not _index:
        _make()
    family = _index.get(table_name, {}).get(name)
    if family is not None:
        import_module(family)


def bring_all(*table_names: str) -> None:
    """Import the families of all names in some tables, or of all tables."""
    if not _index:
        _make()
    tables = [_index.get(name, {}) for name in table_names or _index]
    for family in sorted({each for names in tables for each in names.values()}):
        import_module(family)


_NO_NAMES: dict[str, str] = {}


class Table(dict[str, Any]):
    """A table of names that behaves as if it were complete: looking up a name imports its family,
    iterating imports the families of all its names. To ask whether it has a name imports nothing.

    Attributes:
        name: its name in the index.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, name: str) -> Any:
        bring(self.name, name)
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        if dict.__contains__(self, name):
            return True
        if _index:  # which has every name: whether there is one needs no family
            return name in _index.get(self.name, _NO_NAMES)
        return self.get(str(name), self) is not self

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        bring_all(self.name)
        return dict.__iter__(self)

    def keys(self) -> Any:
        bring_all(self.name)
        return dict.keys(self)

    def values(self) -> Any:
        bring_all(self.name)
        return dict.values(self)

    def items(self) -> Any:
        bring_all(self.name)
        return dict.items(self)


# --- building the index ---------------------------------------------------------------------------

_recorded: Index = {}


class RecordingTable(Table):
    """A table that records which family each of its names comes from."""

    __slots__ = ()

    def __setitem__(self, name: str, value: Any) -> None:
        if not dict.__contains__(self, name):
            family = _family_that_runs()
            if family is not None:
                _recorded.setdefault(self.name, {})[name] = family
        dict.__setitem__(self, name, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value


def table(name: str) -> Table:
    """A table of names, empty until families fill it."""
    return Table(name) if _index else RecordingTable(name)


def _family_that_runs() -> str | None:
    """The innermost module of the packages whose import is running."""
    frame = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name == "<module>" and module.startswith(_PACKAGES):
            return module
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _make() -> None:
    """Import all families, and store the index of their names."""
    key = _key()
    for path, *_ in key[3:]:
        name = path[len(_FOLDER) : -len(".py")].replace(os.sep, ".")
        if not name.endswith("__init__"):
            import_module("gradcli" + name)
    _index.update(_recorded)
    cache.write(_CACHED, key, _index)


def installed_path() -> str:
    return _INSTALLED


def write_installed() -> None:
    """Write the index that a wheel contains; raises OSError where it cannot be written."""
    bring_all()
    with open(_INSTALLED, "wb") as file:
        file.write(cache.packed(_index))
