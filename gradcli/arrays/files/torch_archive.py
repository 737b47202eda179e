"""PyTorch's file format: a zip archive of a pickle and of the storages that its tensors lie in."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from gradcli.arrays.dtypes import DTYPES
from gradcli.arrays.files.data_file import DataFile
from gradcli.arrays.files.pickled import BadPickleError, Global, unpickled
from gradcli.errors import GradcliError, type_error
from gradcli.state import active

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
