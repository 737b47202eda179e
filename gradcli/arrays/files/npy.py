"""NumPy's own formats: npy holds one array, npz is a zip archive of them.

An array of objects is a pickle, which can run any code: it is rejected.
"""

from __future__ import annotations

import ast
import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from gradcli.arrays.dtypes import DTYPES
from gradcli.arrays.files.data_file import DataFile, is_shape
from gradcli.errors import GradcliError
from gradcli.state import active

MAGIC = b"\x93NUMPY"

_LARGEST_HEADER = 1 << 16


def decode(file: DataFile, data: bytes, member: str = "") -> Any:
    """The array in the bytes of an npy file.

    Args:
        member: the name of the archive's member that they are, "" outside of one.

    Raises:
        GradcliError: E504 where they are no npy file or end too early, E505 where PyTorch has no
            such array, E602 where it is too large.
    """
    inside = f"{member}: " if member else ""
    if not data.startswith(MAGIC):
        raise file.damaged(
            f"{inside}byte 0", "an npy file begins with \\x93NUMPY, and this does not"
        )
    if len(data) < 8:
        raise file.damaged(f"{inside}byte {len(data)}", "the file ends in its version")
    width = {1: 2, 2: 4, 3: 4}.get(data[6])
    if width is None:
        raise file.damaged(f"{inside}byte 6", f"there is no version {data[6]} of the npy format")
    if len(data) < 8 + width:
        raise file.damaged(f"{inside}byte {len(data)}", "the file ends in the length of its header")
    length = int.from_bytes(data[8 : 8 + width], "little")
    start = 8 + width + length
    if length > _LARGEST_HEADER:
        raise file.damaged(f"{inside}byte 8", f"a header of {length:,} bytes is too long")
    if len(data) < start:
        raise file.damaged(
            f"{inside}byte {len(data)}",
            f"the file ends in its header, which reaches to byte {start}",
        )
    try:
        header = ast.literal_eval(data[8 + width : start].decode("latin1").strip())
        descr, shape = header["descr"], header["shape"]
        fortran_order = header["fortran_order"]
        if len(header) != 3 or not is_shape(shape):
            raise ValueError
        dtype = np.dtype(descr)
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise file.damaged(f"{inside}byte {8 + width}", "the header cannot be read") from error
    native = _dtype(file, dtype, inside)
    count = math.prod(shape)
    available, needed = len(data) - start, count * dtype.itemsize
    if available < needed:
        raise file.damaged(
            f"{inside}byte {len(data)}",
            f"the file ends in its data: shape {tuple(shape)} of {native.name} takes {needed:,}"
            f" bytes, and there are {available:,}",
        )
    active.state.limits.check_elements(count)
    flat = np.frombuffer(data, dtype, count, start)
    array = np.reshape(flat, shape, order="F" if fortran_order else "C")
    # The ops compare dtypes by identity, and a program may write to the array.
    return np.array(array, DTYPES[native.name].numpy_dtype, order="C")


def _dtype(file: DataFile, dtype: Any, inside: str) -> Any:
    """A file's dtype in the machine's byte order; raises E505 for one that PyTorch has not."""
    if dtype.hasobject:
        raise file.unfit(
            inside.removesuffix(": "),
            "the array holds Python objects, which are stored as a pickle: that could run any code",
            help="save it from Python with a dtype of numbers",
        )
    native = dtype.newbyteorder("=")
    if native.name not in DTYPES:
        help = None
        if dtype.kind == "V" and dtype.itemsize == 2:
            help = "NumPy's formats have no bfloat16, safetensors has"
        raise file.unfit(
            inside.removesuffix(": "), f"PyTorch has no dtype for an array of {dtype}", help
        )
    return native


class Archive(Mapping[str, Any]):
    """The arrays of an npz file by name, read on demand; raises E504 for damage."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._others: list[str] = []
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(file.content()))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise file.damaged("", f"no whole npz archive: {error}") from error
        for info in self._zip.infolist():
            if info.filename.endswith(".npy"):
                self._members[info.filename.removesuffix(".npy")] = info
            else:
                self._others.append(info.filename)
        if not self._members and any(name.endswith("data.pkl") for name in self._others):
            raise file.unfit(
                "",
                "the file is a pickle of PyTorch's, which could run any code",
                help="save it from Python as .safetensors or .npz",
            )

    def __iter__(self) -> Any:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> Any:
        info = self._members[name]
        active.state.limits.check_file_size(f"{self._file.name}:{name}", info.file_size)
        try:
            with self._zip.open(info) as member:
                data = member.read()
        except (
            zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError,
        ) as error:  # fmt: skip
            raise self._file.damaged(repr(info.filename), f"not readable: {error}") from error
        return decode(self._file, data, repr(info.filename))


def encode(stream: IO[bytes], array: Any) -> None:
    """Write an array as npy; raises E603 for bfloat16, which the format has not."""
    host = np.asarray(array)
    if host.dtype.name == "bfloat16":
        raise GradcliError(
            "E603",
            "NumPy's formats have no bfloat16",
            help="write to a .safetensors file, or convert to float32 first",
        )
    np.lib.format.write_array(stream, host, allow_pickle=False)


def encode_archive(stream: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write arrays as npz under their names."""
    # np.savez takes names as keywords, which `file` would clash with.
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                encode(member, array)
