"""`np.loadtxt` and `np.genfromtxt`: tables of numbers from files and from texts."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.errors import GradcliError, type_error
from gradcli.language.library.load_save import read_file
from gradcli.language.library.numpy.array import compute
from gradcli.language.library.numpy.functions import given
from gradcli.language.library.python.system.streams import StringIO
from gradcli.language.limits import check_text
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.types import called

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
        values, named = given("choice", args, kwargs)  # a delimiter is no dtype
        lines = _lines(fname, encoding if encoding != "bytes" else None)
        cells = len(lines.getvalue()) // 2 + 1
        return compute(host, [lines, *values], named, cells, 16 * cells)

    return called(name, read)


TABLES = {"genfromtxt": _reader(np.genfromtxt), "loadtxt": _reader(np.loadtxt)}
"""The functions of `numpy` that read tables."""
