"""NumPy's functions that touch files: `np.loadtxt` and `np.genfromtxt` read tables of numbers, from
texts too; `np.load`, `np.save` and `np.savez` read and write arrays through the gate of files.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import check_text
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import EnteredAsItself, by_name, called
from gradcli.library.files import StringIO, file_name, read_file
from gradcli.library.numpy.array import compute, unwrap, wrap
from gradcli.library.numpy.functions import host_arguments
from gradcli.state import active

_REFUSED = {
    "converters": "change the numbers after they are read",
    "like": "the result is an array of NumPy",
    "names": "`skip_header=1` leaves the names out, and columns have numbers",
    "replace_space": "columns have numbers",
    "usemask": "`np.isnan` finds what is missing",
}
"""Arguments that programs do not have, with what to do instead."""


def _lines(fname: Any, encoding: Any) -> io.StringIO:
    """The text of a file, of an open one, or of a list of lines."""
    if isinstance(fname, StringIO):
        text = fname.host.read()
    elif isinstance(fname, str) or hasattr(fname, "language_path"):
        text = read_file(fname, encoding=encoding).host.read()
    else:
        lines = list(bounded(fname))
        if not all(isinstance(line, str) for line in lines):
            raise type_error("fname must be a string, filehandle, list of strings,\nor generator")
        text = "\n".join(line.removesuffix("\n") for line in lines)
    check_text(len(text))
    return io.StringIO(text)


def _reader(host: Callable[..., Any]) -> Callable[..., Any]:
    name = host.__name__

    def read(fname: Any, *args: Any, encoding: Any = None, **kwargs: Any) -> Any:
        for keyword, instead in _REFUSED.items():
            if kwargs.pop(keyword, None) is not None:
                raise GradcliError(
                    "E201", f"{name}() has no argument {keyword!r} in the language", help=instead
                )
        values, named = host_arguments("choice", args, kwargs)  # a delimiter is no dtype
        lines = _lines(fname, encoding if encoding != "bytes" else None)
        cells = len(lines.getvalue()) // 2 + 1
        return compute(host, [lines, *values], named, cells, 16 * cells)

    return called(name, read)


class Archive(EnteredAsItself):
    """What `np.load` gives for an .npz file: its arrays by name, read when they are asked for."""

    __slots__ = ("_arrays",)

    language_name: ClassVar[str] = "numpy.lib.npyio.NpzFile"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"close", "files", "keys"})

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays

    @property
    def files(self) -> list[str]:
        """The names."""
        return list(self._arrays)

    def keys(self) -> list[str]:
        """The names."""
        return self.files

    def close(self) -> None:
        """Nothing is open."""

    def __getitem__(self, name: Any) -> Any:
        if name not in self._arrays:
            text = f"{name} is not a file in the archive"
            raise Raised("KeyError", display(text), (text,), "E207")
        return wrap(self._arrays[name])

    def __contains__(self, name: Any) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self._arrays)


def load(file: Any, mmap_mode: Any = None, allow_pickle: Any = False, **named: Any) -> Any:
    """`np.load("x.npy")`: an array; the arrays by name of an .npz file. No pickle is read."""
    from gradcli.arrays.files.data_file import DataFile  # lazy: start-up
    from gradcli.arrays.files.formats import read  # lazy: start-up

    path = file_name("np.load()", file)
    active.state.limits.check_file(path)
    kind = "npz" if path.endswith(".npz") else "npy"
    content = read(DataFile(f"./{path}" if path == "-" else path, "", kind))
    return Archive(content) if isinstance(content, Mapping) else wrap(content)


def save(file: Any, arr: Any, allow_pickle: Any = True, **named: Any) -> None:
    """`np.save("x.npy", array)`, whose suffix may be left out."""
    _write(file, ".npy", np.asarray(unwrap(arr)))


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """`np.savez("x.npz", array, name=array)`: those without a name are `arr_0`, `arr_1`, …"""
    named = {f"arr_{number}": each for number, each in enumerate(args)}
    for name in named:
        if name in kwds:
            raise value_error(f"Cannot use un-named variables and keyword {name}")
    _write(file, ".npz", {n: np.asarray(unwrap(v)) for n, v in {**named, **kwds}.items()})


def _write(file: Any, suffix: str, value: Any) -> None:
    from gradcli.arrays.files.formats import write_arrays  # lazy: start-up

    path = file_name("np.save()", file)
    write_arrays(path if path.endswith(suffix) else path + suffix, value)


TABLES = {
    **by_name(load, save, savez),
    "savez_compressed": called("savez_compressed", lambda file, *a, **k: savez(file, *a, **k)),
    "genfromtxt": _reader(np.genfromtxt),
    "loadtxt": _reader(np.loadtxt),
}
"""The functions of `numpy` that touch files."""
