"""Pickles of containers and numbers, written and read code by code.

`Global` names what a reader has to know, `Call` says what is made of it, `Persistent` what lies
outside the pickle. Nothing is imported or called but what the reader's table holds.

PyTorch's file format is a zip archive of a pickle and of the storages that its tensors lie in.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from gradcli.arrays.dtypes import DTYPES
from gradcli.arrays.files.data_file import DataFile
from gradcli.errors import GradcliError, type_error
from gradcli.record import Record
from gradcli.state import active


class Global(Record):
    """Something by its module and name."""

    module: str
    name: str


class Call(Record):
    """What a function gives for arguments; `items` are then put into it, as into a dict."""

    function: Global
    arguments: tuple[Any, ...]
    items: Mapping[Any, Any] | None = None


class Persistent(Record):
    """What lies outside the pickle, by what names it there."""

    parts: tuple[Any, ...]


_NAMED = (Global, Call, Persistent)


class BadPickleError(ValueError):
    """What stands in a pickle cannot be read here."""


# --- writing --------------------------------------------------------------------------------------


def pickled(value: Any, described: Callable[[Any], Any]) -> bytes:
    """A value as a pickle of protocol 2.

    Args:
        described: gives a `Global`, `Call` or `Persistent` for what is no container, number or
            text, and raises where there is none.
    """
    writer = _Writer(described)
    writer.write(value)
    return b"\x80\x02" + b"".join(writer.codes) + b"."


class _Writer:
    def __init__(self, described: Callable[[Any], Any]) -> None:
        self.codes: list[bytes] = []
        self._described = described
        self._memo: dict[int, tuple[int, Any]] = {}

    def write(self, value: Any) -> None:
        if id(value) in self._memo:
            self.codes.append(b"j" + struct.pack("<I", self._memo[id(value)][0]))
            return
        simple = _SIMPLE.get(type(value))
        if simple is not None:
            self.codes.append(simple(value))
        elif type(value) is tuple:
            self._marked(value, b"t")
            self._remember(value)
        elif type(value) is list:
            self.codes.append(b"]")
            self._remember(value)
            self._marked(value, b"e")
        elif type(value) is dict:
            self.codes.append(b"}")
            self._remember(value)
            self._items(value)
        else:
            description = value if type(value) in _NAMED else self._described(value)
            self._write_described(value, description)

    def _write_described(self, value: Any, description: Any) -> None:
        if type(description) is Global:
            self._global(description)
        elif type(description) is Persistent:
            self.write(description.parts)
            self.codes.append(b"Q")
        else:
            self._global(description.function)
            self._marked(description.arguments, b"t")
            self.codes.append(b"R")
        self._remember(value)
        if type(description) is Call and description.items is not None:
            self._items(description.items)

    def _global(self, named: Global) -> None:
        self.codes.append(f"c{named.module}\n{named.name}\n".encode())

    def _items(self, values: Mapping[Any, Any]) -> None:
        self._marked([each for item in values.items() for each in item], b"u")

    def _marked(self, values: Any, end: bytes) -> None:
        self.codes.append(b"(")
        for value in values:
            self.write(value)
        self.codes.append(end)

    def _remember(self, value: Any) -> None:
        number = len(self._memo)
        self._memo[id(value)] = number, value  # kept, so that the id stays its own
        self.codes.append(b"r" + struct.pack("<I", number))


def _text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def _whole(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    encoded = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if len(encoded) > 255:
        raise BadPickleError("an integer of more than 255 bytes")
    return b"\x8a" + bytes([len(encoded)]) + encoded


_SIMPLE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"N",
    bool: lambda value: b"\x88" if value else b"\x89",
    int: _whole,
    float: lambda value: b"G" + struct.pack(">d", value),
    str: _text,
}

# --- reading --------------------------------------------------------------------------------------

_MARK = object()


def unpickled(
    data: bytes, known: Mapping[tuple[str, str], Any], outside: Callable[[Any], Any]
) -> Any:
    """The value of a pickle.

    Args:
        known: what globals stand for, by module and name: values, and functions of their arguments.
        outside: gives what a persistent id names.

    Raises:
        BadPickleError: for what is no pickle, or holds what is not known.
    """
    reader = _Reader(data, known, outside)
    try:
        return reader.read()
    except (IndexError, struct.error, UnicodeDecodeError, TypeError, KeyError) as error:
        raise BadPickleError(f"byte {reader.at}: {error}") from error


class _Function(Record):
    """A function that a pickle may call; no value may hold it."""

    name: str
    call: Any


class _Parts(tuple[Any, ...]):
    """The arguments of a call, of which the first is a function; no value either."""

    __slots__ = ()


_NO_VALUES = (_Function, _Parts)


class _Reader:
    def __init__(
        self, data: bytes, known: Mapping[tuple[str, str], Any], outside: Callable[[Any], Any]
    ) -> None:
        self.at = 0
        self._data = data
        self._known = known
        self._outside = outside
        self._stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def read(self) -> Any:
        while True:
            code = self._data[self.at]
            self.at += 1
            if code == ord("."):
                return self.pop()
            action = _ACTIONS.get(code)
            if action is None:
                raise BadPickleError(f"byte {self.at}: the code {code:#04x} is not known")
            action(self)

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise IndexError("the pickle ends here")
        self.at += count
        return self._data[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK or type(value) in _NO_VALUES:
            raise BadPickleError(f"byte {self.at}: a value is missing")
        return value

    def marked(self, since: int = 0) -> list[Any]:
        """What there is since the last mark: values, those in front of `since` aside."""
        start = len(self._stack) - 1
        while self._stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise IndexError("there is no mark")
        values = self._stack[start + 1 :]
        del self._stack[start:]
        if any(type(value) in _NO_VALUES for value in values[since:]):
            raise BadPickleError(f"byte {self.at}: a function stands for a value")
        return values

    def make_tuple(self) -> None:
        values = self.marked(1)
        is_call = values and type(values[0]) is _Function
        if values and type(values[0]) is _Parts:
            raise BadPickleError(f"byte {self.at}: a function stands for a value")
        self.push(_Parts(values) if is_call else tuple(values))

    def top(self, kind: type) -> Any:
        top = self._stack[-1]
        if not isinstance(top, kind):
            raise BadPickleError(f"byte {self.at}: no {kind.__name__} to fill")
        return top

    def put(self, values: list[Any]) -> None:
        target = self.top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            parts = key if type(key) is tuple else (key,)
            if any(type(each) not in _KEYS for each in parts):
                raise BadPickleError(f"byte {self.at}: a key is a {type(key).__name__}")
            target[key] = value

    def find(self) -> None:
        end = self._data.index(b"\n", self.at)
        module = self.take(end - self.at).decode()
        self.at += 1
        name = self.take(self._data.index(b"\n", self.at) - self.at).decode()
        self.at += 1
        self.look_up(module, name)

    def look_up(self, module: str, name: str) -> None:
        if (module, name) not in self._known:
            raise BadPickleError(f"it holds {module}.{name}, which is no tensor or container")
        known = self._known[module, name]
        self.push(_Function(name, known) if callable(known) else known)

    def call(self) -> None:
        arguments = self._stack.pop()
        function = self._stack.pop()
        if type(function) is not _Function or type(arguments) not in (tuple, _Parts):
            raise BadPickleError(f"byte {self.at}: only functions are called")
        passed = [each.call if type(each) is _Function else each for each in arguments]
        self.push(function.call(*passed))

    def build(self) -> None:
        """A state dict's `_metadata` is not needed, and nothing else is built."""
        self.pop()
        self.top(dict)

    def load_persistent(self) -> None:
        self.push(self._outside(self.pop()))

    def remember(self, number: int) -> None:
        self.memo[number] = self._stack[-1]

    def add_to_set(self) -> None:
        values = self.marked()
        if any(type(each) not in _KEYS for each in values):
            raise BadPickleError(f"byte {self.at}: what a set cannot hold")
        self.top(set).update(values)


_KEYS = frozenset({str, int, float, bool, type(None)})


def _extend(reader: _Reader) -> None:
    values = reader.marked()
    reader.top(list).extend(values)


def _append(reader: _Reader) -> None:
    value = reader.pop()
    reader.top(list).append(value)


_ACTIONS: dict[int, Callable[[_Reader], object]] = {
    0x80: lambda r: r.take(1),
    0x95: lambda r: r.take(8),
    ord("("): lambda r: r.push(_MARK),
    ord("0"): _Reader.pop,
    ord("N"): lambda r: r.push(None),
    0x88: lambda r: r.push(True),
    0x89: lambda r: r.push(False),
    ord("J"): lambda r: r.push(r.number("<i")),
    ord("K"): lambda r: r.push(r.number("<B")),
    ord("M"): lambda r: r.push(r.number("<H")),
    0x8A: lambda r: r.push(int.from_bytes(r.take(r.number("<B")), "little", signed=True)),
    ord("G"): lambda r: r.push(r.number(">d")),
    ord("X"): lambda r: r.push(r.take(r.number("<I")).decode("utf-8", "surrogatepass")),
    0x8C: lambda r: r.push(r.take(r.number("<B")).decode("utf-8", "surrogatepass")),
    ord(")"): lambda r: r.push(()),
    ord("t"): _Reader.make_tuple,
    0x85: lambda r: r.push((r.pop(),)),
    0x86: lambda r: r.push((r.pop(), r.pop())[::-1]),
    0x87: lambda r: r.push((r.pop(), r.pop(), r.pop())[::-1]),
    ord("]"): lambda r: r.push([]),
    ord("a"): _append,
    ord("e"): _extend,
    ord("}"): lambda r: r.push({}),
    ord("s"): lambda r: r.put([r.pop(), r.pop()][::-1]),
    ord("u"): lambda r: r.put(r.marked()),
    0x8F: lambda r: r.push(set()),
    0x90: _Reader.add_to_set,
    ord("c"): _Reader.find,
    0x93: lambda r: r.look_up(*[r.pop(), r.pop()][::-1]),
    ord("R"): _Reader.call,
    ord("b"): _Reader.build,
    ord("Q"): _Reader.load_persistent,
    ord("q"): lambda r: r.remember(r.number("<B")),
    ord("r"): lambda r: r.remember(r.number("<I")),
    0x94: lambda r: r.remember(len(r.memo)),
    ord("h"): lambda r: r.push(r.memo[r.number("<B")]),
    ord("j"): lambda r: r.push(r.memo[r.number("<I")]),
}


# --- PyTorch's files ------------------------------------------------------------------------------


STORAGES = {
    "bfloat16": "BFloat16Storage",
    "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
    "float16": "HalfStorage",
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "uint8": "ByteStorage",
}
"""What PyTorch calls the storage of a dtype."""

_DTYPES = {name: DTYPES[dtype] for dtype, name in STORAGES.items()}


def write_archive(stream: IO[bytes], name: str, pickle: bytes, storages: list[Any]) -> None:
    """Write a pickle and its storages, which it calls "0", "1" and so on."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:

        def put(inner: str, content: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(f"{name}/{inner}"), content)

        put("data.pkl", pickle)
        put("byteorder", b"little")
        for number, array in enumerate(storages):
            put(f"data/{number}", array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        put("version", b"3\n")


def read_archive(
    file: DataFile,
    known: Mapping[tuple[str, str], Any],
    build_storage: Callable[[str, Any], Any],
) -> Any:
    """What the archive of a file holds.

    Args:
        known: what the names in the pickle stand for.
        build_storage: makes of a storage's key and array what the functions in the pickle take.

    Raises:
        GradcliError: E502 where the file cannot be read, E504 where it is damaged, E505 where it
            holds what is no tensor, number or container.
    """
    data = file.content()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _Archive(file, archive, build_storage).value(known)
    except (
        zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError,
    ) as error:  # fmt: skip
        raise file.damaged(
            "",
            f"no file that torch.save wrote: {error}",
            help="`load('w.safetensors')` reads npy, npz, csv, json and safetensors",
        ) from error
    except BadPickleError as error:
        raise file.unfit(
            "",
            str(error),
            help="save state dicts: `torch.save(model.state_dict(), …)`; pickled code is not run",
        ) from error


class _Archive:
    def __init__(
        self, file: DataFile, archive: zipfile.ZipFile, build_storage: Callable[[str, Any], Any]
    ) -> None:
        self._file = file
        self._archive = archive
        self._build_storage = build_storage
        self._storages: dict[str, Any] = {}
        pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise zipfile.BadZipFile("there is no data.pkl in it")
        self._root = pickles[0].removesuffix("data.pkl")

    def value(self, known: Mapping[tuple[str, str], Any]) -> Any:
        """What the pickle holds."""
        ordered = f"{self._root}byteorder" in self._archive.namelist()
        if ordered and self._member("byteorder") != b"little":
            raise self._file.unfit("", "its bytes are in another order than little-endian")
        kinds = {("torch", name): Global("torch", name) for name in STORAGES.values()}
        return unpickled(self._member("data.pkl"), {**kinds, **known}, self._storage)

    def _member(self, name: str) -> bytes:
        try:
            info = self._archive.getinfo(self._root + name)
        except KeyError as error:
            raise zipfile.BadZipFile(f"there is no {name} in it") from error
        active.state.limits.check_file_size(f"{self._file.name}:{name}", info.file_size)
        return self._archive.read(info)

    def _storage(self, parts: Any) -> Any:
        """The storage that `("storage", kind, key, device, count)` names."""
        if type(parts) is not tuple or len(parts) != 5 or parts[0] != "storage":
            raise BadPickleError("what lies outside the pickle is no storage")
        _, kind, key, _, count = parts
        if type(kind) is not Global or type(key) is not str:
            raise BadPickleError("what lies outside the pickle is no storage")
        if key not in self._storages:
            dtype = _DTYPES[kind.name].numpy_dtype
            data = self._member(f"data/{key}")
            if type(count) is not int or len(data) != count * dtype.itemsize:
                raise BadPickleError(f"the storage {key!r} is not as long as it is said to be")
            active.state.limits.check_elements(count)
            if dtype == np.bool_:
                array = np.frombuffer(data, np.uint8) != 0
            else:
                array = np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)
            self._storages[key] = self._build_storage(key, array)
        return self._storages[key]


def unwritable(kind: str) -> GradcliError:
    """The error of a value that a file of PyTorch's does not hold here."""
    return type_error(
        f"torch.save() writes tensors, numbers, text and containers of them, not {kind}",
        help="of a module, save its state: `torch.save(model.state_dict(), path)`",
    )
