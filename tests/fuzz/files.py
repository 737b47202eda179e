"""Data files: whole ones of each format, then damaged."""

from __future__ import annotations

import io
import json
import struct
from functools import cache
from random import Random

import numpy as np


def _npy(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def _npz(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=True, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _safetensors(header: dict[str, object], data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@cache
def whole() -> list[tuple[str, bytes]]:
    """Files of each format by name; not all of them hold what can be read."""
    numbers = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    entry = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    return [
        ("f.npy", _npy(numbers)),
        ("f.npy", _npy(numbers.T.astype(">f8"))),
        ("f.npy", _npy(np.array([{}, None], dtype=object))),
        ("f.npy", _npy(np.array(["a", "b"]))),
        ("f.npz", _npz(a=numbers, b=np.arange(3))),
        ("f.npz", _npz(a=numbers)),
        ("f.csv", b"a,b\n1,2\n3,4\n"),
        ("f.csv", b"1.5,2\n3e4,-inf\nnan,0\n"),
        ("f.csv", b'"a b";c\r\n1;2\r\n'),
        ("f.json", json.dumps(numbers.tolist()).encode()),
        ("f.json", b'{"a": [1, 2.5], "b": {"c": true}, "d": null}'),
        ("f.json", b"[" * 2000 + b"]" * 2000),
        ("f.jsonl", b'{"x": [1, 2], "a": 1}\n{"x": [3, 4], "a": 2}\n'),
        ("f.safetensors", _safetensors({"a": entry}, numbers.tobytes())),
        ("f.safetensors", _safetensors({"a": {**entry, "shape": [2**40, 3]}}, b"")),
        ("f.safetensors", struct.pack("<Q", 2**62) + b"{}"),
    ]


def mutated(random: Random) -> tuple[str, bytes]:
    """A file's name and its content, damaged more often than not."""
    name, content = random.choice(whole())
    if random.random() < 0.1:
        name = random.choice(whole())[0]
    return name, damaged(random, content)


_RECORDS = [
    b'{"x": [1, 2], "a": 1}',
    b'{"x": [1.5, -2e3]}',
    b'{"x": [[1], [2]], "a": null}',
    b"{}",
    b"[1, 2]",
    b'{"x": "a"}',
    b'{"zz": 1}',
    b'{"x": [1, [2]]}',
    b"",
]


def mutated_cases(random: Random) -> tuple[str, bytes]:
    """A file of records, one per line."""
    lines = [random.choice(_RECORDS) for _ in range(random.randrange(1, 6))]
    return "cases.jsonl", damaged(random, b"\n".join(lines))


def damaged(random: Random, content: bytes) -> bytes:
    """The content with bytes changed, cut, doubled or put in."""
    data = bytearray(content)
    for _ in range(random.randrange(4)):
        at = random.randrange(len(data) + 1)
        change = random.randrange(6)
        if change == 0:
            del data[at:]
        elif change == 1:
            del data[at : at + random.randrange(1, 9)]
        elif change == 2:
            data[at:at] = random.randbytes(random.randrange(1, 9))
        elif change == 3:
            data[at : at + 1] = random.choice([b"\0", b"\xff", b"9", b"-", b"\n", b",", b'"', b"["])
        elif change == 4:
            data[at:at] = data[: random.randrange(1, 40)]
        else:
            data[at : at + 1] = bytes([random.randrange(256)])
    return bytes(data)
