"""Families that few programs need: they are imported when one of their names is first asked for.

All of them together would take a seventh of the time of a short command. The index tells which
family has a name. It follows from the families: they are all imported once, and their names are
noted as they fill the tables. An installation carries the index beside this file; a checkout makes
it at its first run, keeps it in the user's cache, and makes it anew when a file of a family has
changed: it looks for files that came or went when a name is not found, and at each file when all
names are asked for, as the error of an unknown name does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from gradcli.files import cache

# Raise it when what the index holds changes.
_FORMAT = 1

_PACKAGE = "gradcli.ops"
_FOLDER = os.path.abspath(sys.modules[_PACKAGE].__path__[0])
_INSTALLED = os.path.join(_FOLDER, "lazy_index.marshal")

Stamps = dict[str, tuple[int, int]]
"""When each module of the package was last written, and its size; of a folder, when files came to
it or went, and 0.
"""


class Index:
    """Which family has a name.

    Attributes:
        families: for each table the family's module by name; None until it is known.
        stamps: the files that it was made from; None for that of an installation, which is never
            out of date.
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
    """The index of an installation, or that in the cache; one that is not known yet."""
    try:
        with open(_INSTALLED, "rb") as file:
            return Index(*cache.unpacked(file.read()))
    except (OSError, ValueError, EOFError, TypeError):
        content = cache.read(cache.path_of("lazy-index", _key()), _key())
    return Index() if content is None else Index(*content)


_index = _load()

# --- bringing families in -----------------------------------------------------------------------


def bring(place: str, name: str) -> None:
    """Import the family that has a name in a table; all families while none is known to have it."""
    if _index.families is None:
        _make()
        return
    family = _index.families.get(place, {}).get(name)
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
    """The modules that names come from; some of them are imported with the catalogue itself."""
    if _index.families is None:
        _make()
    return sorted({each for names in (_index.families or {}).values() for each in names.values()})


def _check(each_file: bool = False) -> None:
    """Where a family has changed since the index was made, import all, and forget the index: a name
    may be new, or in another family.
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
    _index.families, _index.stamps = {}, None  # there is nothing left to bring in
    try:
        os.unlink(cache.path_of("lazy-index", _key()))
    except OSError:
        return


class Table(dict[str, Any]):
    """What names stand for. It seems to be full from the beginning: to ask for a name brings its
    family in, and to go through all names brings in all.

    Attributes:
        place: what it is called in the index.
    """

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def __missing__(self, name: str) -> Any:
        bring(self.place, name)
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


# --- making the index ---------------------------------------------------------------------------

_noted: dict[str, dict[str, str]] = {}


class NotingTable(Table):
    """A table that notes which family each of its names comes from."""

    __slots__ = ()

    def __setitem__(self, name: str, value: Any) -> None:
        if not dict.__contains__(self, name):
            family = _family_that_runs()
            if family is not None:
                _noted.setdefault(self.place, {})[name] = family
        dict.__setitem__(self, name, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value


def table(place: str) -> Table:
    """A table of names, empty until families fill it."""
    return Table(place) if _index.families is not None else NotingTable(place)


def _family_that_runs() -> str | None:
    """The innermost module of the package that is being imported."""
    frame = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name == "<module>" and module.startswith(f"{_PACKAGE}."):
            return module
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _make() -> None:
    """Import all families, and keep which names each of them has."""
    _import_all()
    _index.families, _index.stamps, _index.is_checked = _noted, _stamps(), True
    cache.write(cache.path_of("lazy-index", _key()), _key(), _index.families, _index.stamps)


def _import_all() -> None:
    for module in sorted(_modules_of(_stamps())):
        import_module(f"{_PACKAGE}.{module}")


def _stamps(folder: str = "") -> Stamps:
    """The stamps of a folder of the package and of the modules in it, those apart that only name a
    package.
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
    """The stamp of a folder; one of no time where it is gone."""
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
    """Where an installation has its index."""
    return _INSTALLED


def write_installed() -> None:
    """Make the index that a wheel carries; raises OSError where it cannot be written."""
    names = families()
    assert names
    with open(_INSTALLED, "wb") as file:
        file.write(cache.packed(_index.families))
