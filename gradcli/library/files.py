"""`load` and `save`: read tensors from data files, and write them. `open` reads texts. And the
module `io`: texts and bytes like files, and files that were read.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import on_default_device, to_host
from gradcli.arrays.dtypes import cast, default_dtype
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import check_text
from gradcli.language.objects.types import (
    EnteredAsItself,
    Hosted,
    called,
    check_kind,
    names,
    type_name,
)
from gradcli.ops.binding.functions import torch
from gradcli.state import active

# --- streams --------------------------------------------------------------------------------------


class Buffer(EnteredAsItself, Hosted):
    """A text or bytes in memory, which are read and written like a file.

    Attributes:
        content: what is written.
    """

    __slots__ = ()

    content: ClassVar[Any]

    def write(self, s: Any, /) -> int:
        """Write something; its length."""
        if not isinstance(s, self.content):
            wanted = "string argument expected, got" if self.content is str else _BYTES
            raise type_error(f"{wanted} '{type_name(s)}'")
        check_text(self.host.tell() + len(s))
        return int(self.host.write(s))

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to a place."""
        if isinstance(cookie, int):
            check_text(cookie)
        return int(self.host.seek(cookie, whence))

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.host.close()


_BYTES = "a bytes-like object is required, not"


class StringIO(Buffer):
    """`io.StringIO(text)`."""

    __slots__ = ()

    content: ClassVar[Any] = str
    language_name: ClassVar[str] = "_io.StringIO"
    language_attributes = names("""close flush getvalue read readline readlines seek tell truncate
        write writelines""")

    def __init__(self, initial_value: str = "", newline: str | None = "\n") -> None:
        check_kind(initial_value, str, "initial_value must be str or None")
        super().__init__(io.StringIO(initial_value, newline))

    def writelines(self, lines: Any, /) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self.host)


class ReadText(StringIO):
    """A file that `open(name)` read: its text, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes = names("close closed mode name read readline readlines seek tell")

    def __init__(self, text: str, name: str, mode: str, newline: str | None) -> None:
        check_text(len(text))
        super().__init__(text, newline)
        self.name = name
        self.mode = mode


class BytesIO(Buffer):
    """`io.BytesIO(content)`."""

    __slots__ = ()

    content: ClassVar[Any] = bytes
    language_name: ClassVar[str] = "_io.BytesIO"
    language_attributes = names("close flush getvalue read seek tell write")

    def __init__(self, initial_bytes: bytes = b"") -> None:
        if not isinstance(initial_bytes, bytes):
            raise type_error(f"{_BYTES} '{type_name(initial_bytes)}'")
        super().__init__(io.BytesIO(initial_bytes))


class ReadBytes(BytesIO):
    """A file that `open(name, "rb")` read: its bytes, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.BufferedReader"
    language_attributes = names("close closed mode name read seek tell")

    def __init__(self, content: bytes, name: str, mode: str) -> None:
        check_text(len(content))
        super().__init__(content)
        self.name = name
        self.mode = mode


IO: dict[str, Any] = {"BytesIO": BytesIO, "StringIO": StringIO}
"""What `io` holds."""


# --- files ----------------------------------------------------------------------------------------


def file_name(taker: str, value: Any, kind: str = "the name of a file") -> str:
    """The name that a text or a `pathlib.Path` gives; raises E202 for anything else."""
    name = getattr(value, "language_path", value)
    if not isinstance(name, str):
        raise type_error(f"{taker} takes {kind}, not {type_name(value)}")
    return name


def load(f: Any, /) -> Any:
    """What a file of data holds: `load("x.npy")`.

    Args:
        f: the file, `[FORMAT:]FILE[:KEY]` as behind `NAME=@`: npy, npz, csv, json or safetensors.

    Returns:
        A tensor for npy and csv, and where the key names one array; a dict of tensors for npz and
        safetensors; the value of a JSON text, its lists of numbers as tensors. Numbers of csv and
        JSON take the dtype that `torch.tensor` gives them.

    Raises:
        GradcliError: E502 where the file cannot be read, E504 to E506 for what is wrong in it, E606
            where files are out of bounds.
    """
    f = file_name("load()", f)
    from gradcli.arrays.files.data_file import STDIN, DataFile  # lazy: start-up
    from gradcli.arrays.files.formats import is_text, read  # lazy: start-up

    file = DataFile.named(f)
    if file.path == STDIN:
        raise GradcliError(
            "E502", "load() reads files, not standard input", help="values come in as NAME=@-"
        )
    return tensors(read(file), is_text(file))


def tensors(value: Any, plain: bool) -> Any:
    """A value with the arrays in it as tensors.

    Args:
        value: an array, a mapping or list of values, or any other value.
        plain: whether floating arrays are plain numbers, which take the default dtype.
    """
    if isinstance(value, Mapping):
        return {name: tensors(each, plain) for name, each in value.items()}
    if isinstance(value, list):
        return [tensors(each, plain) for each in value]
    if not isinstance(value, np.ndarray):
        return value
    if plain and value.dtype.kind in "fc":
        default = default_dtype()
        value = cast(value, default.to_complex() if value.dtype.kind == "c" else default)
    return Tensor(on_default_device(value if value.ndim else value[()]))


def save(obj: Any, f: Any, /) -> None:
    """Write a tensor, or a dict of tensors by name, to a file of data: `save({"w": w}, "w.npz")`.

    The suffix names the format: .npy, .npz, .csv, .json or .safetensors. The file is written whole
    or not at all.

    Raises:
        GradcliError: E202 for anything but tensors and numbers, E603 where the file cannot be
            written or the format does not hold them, E606 where files are out of bounds.
    """
    f = file_name("save()", f)
    from gradcli.arrays.files.formats import write_arrays  # lazy: start-up

    if isinstance(obj, dict):
        for name in obj:
            check_kind(name, str, "save() takes a dict with names as keys")
        write_arrays(f, {name: _array(value) for name, value in obj.items()})
    else:
        write_arrays(f, _array(obj))


def _array(value: Any) -> Any:
    """The array of a tensor, or of what `torch.tensor` makes one of."""
    if not isinstance(value, (Tensor, bool, int, float, complex, list, tuple)):
        raise type_error(
            f"save() writes tensors, not {type_name(value)}",
            help="several go into a dict by name: save({'w': w, 'b': b}, 'm.npz')",
        )
    tensor = value if isinstance(value, Tensor) else torch.tensor(value)
    return to_host(tensor.array)


def read_file(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> Any:
    """What a file holds, to be read as Python's `open(file)` does: a text, or bytes for "rb".

    Raises:
        GradcliError: E202 and E204 for arguments of no use, E205 for a mode that writes, E502 where
            the file cannot be read, E504 where it is no text, E602 where it is too large, E606
            where files are out of bounds.
    """
    file = file_name("open()", file)
    if mode not in ("r", "rt", "tr", "rb", "br"):
        active.state.limits.check_file(file)
        raise GradcliError(
            "E205",
            f"open() reads files here: there is no mode {mode!r}",
            help="`print` what is to be kept, or write tensors with `save(x, 'x.npy')`",
        )
    from gradcli.arrays.files.data_file import DataFile  # lazy: start-up

    data = DataFile(f"./{file}" if file == "-" else file)
    content = data.content()
    if "b" in mode:
        return ReadBytes(content, file, mode)
    if (encoding or "utf-8").lower() not in _ENCODINGS or errors not in _DECODING_ERRORS:
        raise value_error(f"open() knows no encoding {encoding!r} with errors={errors!r}")
    try:
        text = content.decode(encoding or "utf-8", errors or "strict")
    except UnicodeDecodeError as error:
        failure = data.damaged(f"byte {error.start}", f"it is not {encoding or 'UTF-8'}")
        failure.raises = "UnicodeDecodeError"
        raise failure from error
    return ReadText(text, file, mode, newline)


called("open", read_file)

_ENCODINGS = names("utf-8 utf8 utf-8-sig ascii latin-1 latin1 iso-8859-1 cp1252 utf-16")
_DECODING_ERRORS = frozenset({None, "strict", "ignore", "replace"})

FILES = {"load": load, "open": read_file, "save": save}
"""The functions of the language that touch files."""
