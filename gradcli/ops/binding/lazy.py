"""Lazy loading of families of ops: each is imported when one of its names is first looked up.

To import all of them would take a seventh of the time of a short command. The index maps each name
to its family. It is computed from the families: they are all imported once, and their names are
recorded as they fill the tables. An installation has the index beside this file. A checkout builds
it at its first run, keeps it in the user's cache, and rebuilds it when a file of a family has
changed: added and removed files are checked when a name is not found, and every file when all names
are listed, as for the error of an unknown name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from gradcli.files import cache

# To be incremented when the format of the index changes.
_FORMAT = 3

_PACKAGE = "gradcli.ops"
_FOLDER = os.path.abspath(sys.modules[_PACKAGE].__path__[0])
_INSTALLED = os.path.join(_FOLDER, "lazy_index.marshal")

Stamps = dict[str, tuple[int, int]]
"""When each module of the package was last written, and its size; of a folder, when files were
added or removed, and 0.
"""


class Index:
    """The family of each name.

    Attributes:
        families: for each table the family's module by name; None until the index is built.
        stamps: the files that it was built from; None in an installation, where it is never out of
            date.
    """

    __slots__ = ("families", "is_checked", "stamps")

    def __init__(
        self, families: dict[str, dict[str, str]] | None = None, stamps: Stamps | None = None
    ) -> None:
        self.families = families
        self.stamps = stamps
        self.is_checked = False


def _key() -> tuple[Any, ...]:
    return (_FORMAT, sys.version, _FOLDER)


def _load() -> Index:
    """The index of an installation, or that of the cache; else an empty one, not built yet."""
    try:
        with open(_INSTALLED, "rb") as file:
            return Index(*cache.unpacked(file.read()))
    except (OSError, ValueError, EOFError, TypeError):
        content = cache.read(cache.path_of("lazy-index", _key()), _key())
    return Index() if content is None else Index(*content)


_index = _load()

# --- importing families -------------------------------------------------------------------------


def bring(table_name: str, name: str) -> None:
    """Import the family of a name in a table; all families while the index is not built."""
    if _index.families is None:
        _make()
        return
    family = _index.families.get(table_name, {}).get(name)
    if family is not None:
        try:
            import_module(family)
        except ModuleNotFoundError as error:
            if error.name != family:
                raise
            _check()  # which finds that the family is gone


def bring_all() -> None:
    """Import all families."""
    _check(each_file=True)
    if _index.families is None:
        _make()
        return
    for family in families():
        import_module(family)


def families() -> list[str]:
    """The modules that names come from; some of them are imported with the catalogue."""
    if _index.families is None:
        _make()
    return sorted({each for names in (_index.families or {}).values() for each in names.values()})


def _check(each_file: bool = False) -> None:
    """Where a family has changed since the index was built, import all, and delete the index: a
    name may be new, or in another family.
    """
    stamps = _index.stamps
    if stamps is None or (_index.is_checked and not each_file):
        return
    _index.is_checked = True
    folders = [name for name, (_, size) in stamps.items() if not size]
    if not each_file and all(_when_changed(name) == stamps[name] for name in folders):
        return
    if _modules_of(stamps) == _modules_of(_stamps()):
        return
    _import_all()
    _index.families, _index.stamps = {}, None  # all families are imported now
    try:
        os.unlink(cache.path_of("lazy-index", _key()))
    except OSError:
        return


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
        if not dict.__contains__(self, name):
            _check()
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

_recorded: dict[str, dict[str, str]] = {}


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
    return Table(name) if _index.families is not None else RecordingTable(name)


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
    _import_all()
    _index.families, _index.stamps, _index.is_checked = _recorded, _stamps(), True
    cache.write(cache.path_of("lazy-index", _key()), _key(), _index.families, _index.stamps)


def _import_all() -> None:
    for module in sorted(_modules_of(_stamps())):
        import_module(f"{_PACKAGE}.{module}")


def _stamps(folder: str = "") -> Stamps:
    """The stamps of a folder of the package and of the modules in it, without the `__init__`
    modules.
    """
    found: Stamps = {folder: _when_changed(folder)}
    for entry in os.scandir(os.path.join(_FOLDER, folder)):
        path = os.path.join(folder, entry.name)
        if entry.name.endswith(".py"):
            if entry.name != "__init__.py":
                status = entry.stat()
                found[path] = (status.st_mtime_ns, status.st_size)
        elif entry.name != "__pycache__" and entry.is_dir():
            found |= _stamps(path)
    return found


def _when_changed(folder: str) -> tuple[int, int]:
    """The stamp of a folder; that of time 0 where it does not exist."""
    try:
        return os.stat(os.path.join(_FOLDER, folder)).st_mtime_ns, 0
    except OSError:
        return 0, 0


def _modules_of(stamps: Stamps) -> Stamps:
    """The stamps of modules, by their names in the package."""
    return {
        path.removesuffix(".py").replace(os.sep, "."): stamp
        for path, stamp in stamps.items()
        if path.endswith(".py")
    }


def installed_path() -> str:
    """The path of an installation's index."""
    return _INSTALLED


def write_installed() -> None:
    """Write the index that a wheel contains; raises OSError where it cannot be written."""
    names = families()
    assert names
    with open(_INSTALLED, "wb") as file:
        file.write(cache.packed(_index.families))
