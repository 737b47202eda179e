"""Lazy loading of families of ops: each is imported when one of its names is first looked up.

To import all of them would take a seventh of the time of a short command. The index maps each name
to its family. It is computed from the families: they are all imported once, and their names are
recorded as they fill the tables. An installation has the index beside this file. A checkout builds
it at its first run, keeps it in the user's cache, and rebuilds it when a file of a family has
changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from gradcli.files import cache

# To be incremented when the format of the index changes.
_FORMAT = 4

_PACKAGE = "gradcli.ops"
_FOLDER = os.path.abspath(sys.modules[_PACKAGE].__path__[0])
_INSTALLED = os.path.join(_FOLDER, "lazy_index.marshal")
_CACHED = cache.path_of("lazy-index", (_FORMAT, sys.version, _FOLDER))

Index = dict[str, dict[str, str]]
"""For each table the family's module by name; empty until it is built."""


def _key() -> tuple[Any, ...]:
    """What the index of a checkout is made from: each module, when it was written, and its size."""
    return (_FORMAT, sys.version, _FOLDER, *sorted(_modules("")))


def _modules(folder: str) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(os.path.join(_FOLDER, folder)):
        path = os.path.join(folder, entry.name)
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield path, status.st_mtime_ns, status.st_size
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _modules(path)


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


def bring_all() -> None:
    if not _index:
        _make()
    for family in sorted({each for names in _index.values() for each in names.values()}):
        import_module(family)


class Table(dict[str, Any]):
    """A table of names that behaves as if it were complete: looking up a name imports its family,
    iterating imports all families.

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
        return dict.__contains__(self, name) or self.get(str(name), self) is not self

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        bring_all()
        return dict.__iter__(self)

    def keys(self) -> Any:
        bring_all()
        return dict.keys(self)

    def values(self) -> Any:
        bring_all()
        return dict.values(self)

    def items(self) -> Any:
        bring_all()
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
    """The innermost module of the package whose import is running."""
    frame = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name == "<module>" and module.startswith(f"{_PACKAGE}."):
            return module
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _make() -> None:
    """Import all families, and store the index of their names."""
    key = _key()
    for path, *_ in key[3:]:
        if not path.endswith("__init__.py"):
            import_module(f"{_PACKAGE}.{path.removesuffix('.py').replace(os.sep, '.')}")
    _index.update(_recorded)
    cache.write(_CACHED, key, _index)


def installed_path() -> str:
    return _INSTALLED


def write_installed() -> None:
    """Write the index that a wheel contains; raises OSError where it cannot be written."""
    bring_all()
    with open(_INSTALLED, "wb") as file:
        file.write(cache.packed(_index))
