"""The safetensors format: eight bytes of length, a JSON header of names, dtypes, shapes and
offsets, and the tensors' bytes one behind the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np

from gradcli.arrays.dtypes import DTYPES
from gradcli.arrays.files.data_file import DataFile, is_shape
from gradcli.arrays.files.json import unique
from gradcli.errors import GradcliError
from gradcli.state import active

_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
_DTYPES = {theirs: ours for ours, theirs in _NAMES.items()}

_LARGEST_HEADER = 100_000_000
_METADATA = "__metadata__"


class Archive(Mapping[str, Any]):
    """The arrays of a file by name; raises E504 for a bad header, E505 for a foreign dtype."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._data = data = file.content()
        if len(data) < 8:
            raise file.damaged(f"byte {len(data)}", "the file ends in the length of its header")
        length = int.from_bytes(data[:8], "little")
        self._start = 8 + length
        if length > min(_LARGEST_HEADER, len(data) - 8):
            raise file.damaged(
                "byte 0",
                f"the header is said to be {length:,} bytes long, and the file has {len(data):,}",
            )
        self._entries = self._header(data[8 : self._start])
        self._check_offsets()

    def _header(self, text: bytes) -> dict[str, tuple[str, list[int], int, int]]:
        try:
            header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
        except (ValueError, RecursionError) as error:
            raise self._file.damaged("byte 8", f"the header is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise self._file.damaged("byte 8", "the header is no JSON object")
        header.pop(_METADATA, None)
        return {name: self._entry(name, entry) for name, entry in header.items()}

    def _entry(self, name: str, entry: Any) -> tuple[str, list[int], int, int]:
        try:
            dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            ordered = type(begin) is int and type(end) is int and 0 <= begin <= end
            if not isinstance(dtype, str) or not is_shape(shape) or not ordered:
                raise ValueError
        except (TypeError, KeyError, ValueError) as error:
            raise self._file.damaged(
                repr(name), "its entry in the header is no dtype, shape and pair of data_offsets"
            ) from error
        if dtype not in _DTYPES:
            raise self._file.unfit(repr(name), f"gradcli has no dtype for {dtype}")
        itemsize = DTYPES[_DTYPES[dtype]].itemsize
        if end - begin != math.prod(shape) * itemsize:
            raise self._file.damaged(
                repr(name),
                f"shape {tuple(shape)} of {dtype} takes {math.prod(shape) * itemsize:,} bytes, and"
                f" the offsets {begin:,} to {end:,} are {end - begin:,} apart",
            )
        return dtype, shape, begin, end

    def _check_offsets(self) -> None:
        """The tensors lie one behind the other and fill the file, as the format demands."""
        reached = 0
        for name, (_, _, begin, end) in sorted(
            self._entries.items(), key=lambda item: (item[1][2], item[1][3])
        ):
            if begin != reached:
                raise self._file.damaged(
                    repr(name),
                    f"its data begins at {begin:,}, and what comes before it ends at {reached:,}",
                )
            reached = end
        held = len(self._data) - self._start
        if reached != held:
            raise self._file.damaged(
                f"byte {self._start}",
                f"the header describes {reached:,} bytes of data, and there are {held:,}",
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> Any:
        kind, shape, begin, _ = self._entries[name]
        count = math.prod(shape)
        active.state.limits.check_elements(count)
        dtype = DTYPES[_DTYPES[kind]].numpy_dtype
        stored = np.dtype(np.uint8) if kind == "BOOL" else dtype.newbyteorder("<")
        flat = np.frombuffer(self._data, stored, count, self._start + begin)
        array = np.reshape(flat, shape)
        # Bytes other than 0 and 1 are no bools; all else is copied to be writable.
        return array != 0 if kind == "BOOL" else np.array(array, dtype, order="C")


def encode(stream: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write arrays as safetensors; raises E603 for a dtype that the format has not."""
    header: dict[str, Any] = {}
    contents: list[Any] = []
    reached = 0
    for name, array in arrays.items():
        host = np.asarray(array, order="C")
        if host.dtype.name not in _NAMES:
            raise GradcliError(
                "E603",
                f"safetensors has no dtype for {name}, which is {host.dtype.name}",
                help="write to a .npz file",
            )
        if name == _METADATA:
            raise GradcliError("E603", f"safetensors keeps the name {_METADATA} for itself")
        little = host.astype(host.dtype.newbyteorder("<"), copy=False)
        header[name] = {
            "dtype": _NAMES[host.dtype.name],
            "shape": list(host.shape),
            "data_offsets": [reached, reached + host.nbytes],
        }
        reached += host.nbytes
        contents.append(little)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begins at a multiple of eight bytes
    stream.write(len(text).to_bytes(8, "little") + text)
    for array in contents:
        stream.write(array.tobytes())
