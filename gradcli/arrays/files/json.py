"""JSON: numbers, nested lists of them, and objects that hold these by name.

Numbers that JSON has none for are the strings "NaN", "Infinity" and "-Infinity", and a complex
number is an object of `real` and `imag`, as gradcli writes them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from gradcli.arrays.files.data_file import DataFile
from gradcli.errors import GradcliError
from gradcli.state import active

DEEPEST = 200
"""Lists and objects inside each other."""

NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def decode(file: DataFile, data: bytes) -> Any:
    """The value of a JSON text, or the part of it under the file's key, `name.name.0`.

    Lists of numbers are arrays of int64, float64, complex128 or bool; everything else is what
    Python's json makes of it.

    Raises:
        GradcliError: E504 with the line and column of what is no JSON, stands twice or is too deep,
            E505 with those of a ragged list, E506 for a key that there is not.
    """
    text = file.decoded(data)
    value = parse(file, text)
    for step in file.key.split(".") if file.key else ():
        value = _step(file, value, step)
    return _arrays(file, value, text)


def parse(file: DataFile, text: str) -> Any:
    """The value of a JSON text as Python's json makes it; raises E504 with the place."""
    _check_depth(file, text)
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=_refused)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise file.damaged(_place(text, error.pos), f"no JSON: {message}") from error
    except WrongError as error:
        at, message, help = _slip(text)
        raise file.damaged(_place(text, at), message, help) from error
    except ValueError as error:  # an integer of thousands of digits
        raise file.damaged("", f"no JSON: {error}") from error


class WrongError(ValueError):
    """Python's json would let it pass."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; raises WrongError where a name stands in it twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise WrongError("a name stands in it twice")
    return members


def _refused(_word: str) -> Any:
    raise WrongError


def _place(text: str, at: int) -> str:
    """The line and column of an offset."""
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def _check_depth(file: DataFile, text: str) -> None:
    """Raise E504 where a text nests too deeply for a recursive reader."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    bare = _STRING.sub(lambda string: " " * len(string[0]), text)
    codes = np.frombuffer(bare.encode("utf-32-le", "surrogatepass"), np.uint32)
    opened = (codes == ord("[")) | (codes == ord("{"))
    closed = (codes == ord("]")) | (codes == ord("}"))
    depth = np.cumsum(opened.astype(np.int32) - closed)
    if depth.max() > DEEPEST:
        at = int(np.argmax(depth > DEEPEST))
        raise file.damaged(
            _place(text, at), f"lists and objects are nested more than {DEEPEST} deep"
        )


def _slip(text: str) -> tuple[int, str, str | None]:
    """Where a name stands twice or a word is no JSON, what is wrong, and the fix."""
    names: list[set[str]] = []
    before = ""
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in ("NaN", "Infinity", "-Infinity"):
            return token.start(), f"JSON has no {word}", f'write "{word}", in quotes'
        if word in "{[":
            names.append(set())
        elif word in "}]" and names:
            names.pop()
        elif word[0] == '"' and before in ("{", ",") and text[token.end() :].lstrip()[:1] == ":":
            name = json.loads(word, strict=False)
            if name in names[-1]:
                return token.start(), f"the name {name!r} stands twice in its object", None
            names[-1].add(name)
        before = word
    return 0, "no JSON", None


def _step(file: DataFile, value: Any, step: str) -> Any:
    """The part of a value under one step of a key."""
    if isinstance(value, dict):
        if step not in value:
            raise file.missing("key", step, value)
        return value[step]
    if isinstance(value, list):
        if not re.fullmatch(r"-?\d{1,9}", step) or not -len(value) <= int(step) < len(value):
            raise GradcliError(
                "E506",
                f"{file.name}: there is no {step!r} in a list of {len(value):,}",
                help="the elements of a list are numbered from 0",
            )
        return value[int(step)]
    raise GradcliError("E506", f"{file.name}: there is no {step!r} in what is no object or list")


def _arrays(file: DataFile, value: Any, text: str) -> Any:
    """A value whose lists of numbers have become arrays."""
    value = numbered(value)
    if isinstance(value, dict):
        return {name: _arrays(file, each, text) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    if not holds_numbers(value):
        return [_arrays(file, each, text) for each in value]
    try:
        array = np.array(value, dtype=None if value else np.float64)
    except (ValueError, OverflowError) as error:
        ragged = _ragged(text)
        if ragged is None:
            raise file.unfit("", "the numbers make no array: an integer is too large") from error
        raise file.unfit(_place(text, ragged[0]), ragged[1]) from error
    if array.dtype.kind not in "bifc":
        raise file.unfit("", "the numbers make no array: an integer is too large")
    active.state.limits.check_elements(array.size)
    return array


def numbered(value: Any) -> Any:
    """A value of JSON with the numbers that JSON spells as strings or objects as numbers."""
    if isinstance(value, str):
        return NOT_FINITE.get(value, value)
    if isinstance(value, list):
        plain = (int, float)
        if all(type(each) in plain for each in value):
            return value
        return [numbered(each) for each in value]
    if isinstance(value, dict) and value.keys() == {"real", "imag"}:
        parts = [numbered(value["real"]), numbered(value["imag"])]
        if all(type(part) in (int, float) for part in parts):
            return complex(*parts)
    return value


def holds_numbers(value: list[Any]) -> bool:
    """Whether a list, and each list in it, holds nothing else."""
    return all(
        holds_numbers(each) if type(each) is list else type(each) in (int, float, bool, complex)
        for each in value
    )


def _ragged(text: str) -> tuple[int, str] | None:
    """The first element of another shape than those before it, and what is wrong."""
    # Each open list: where it began and the shape of its elements so far; None for an object.
    opened: list[tuple[int, list[tuple[int, ...]] | None]] = []
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in ",:":
            continue
        if word in "[{":
            opened.append((token.start(), [] if word == "[" else None))
            continue
        shape: tuple[int, ...] = ()
        start = token.start()
        if word in "]}":
            start, inner = opened.pop()
            if inner is not None:
                shape = (len(inner), *(inner[0] if inner else ()))
        outer = opened[-1][1] if opened else None
        if outer is not None:
            if outer and outer[0] != shape:
                words = [f"a list of shape {e}" if e else "a number" for e in (shape, outer[0])]
                return start, f"{words[0]} stands here, and its list begins with {words[1]}"
            outer.append(shape)
    return None


def encode(stream: IO[bytes], value: Any) -> None:
    """Write an array, or arrays by name, as JSON."""
    stream.write((json.dumps(_plain(value), allow_nan=False) + "\n").encode())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return spelled(np.asarray(value).tolist())


def spelled(value: Any) -> Any:
    """Nested lists of numbers with those that JSON has none for as strings or objects."""
    if isinstance(value, list):
        return [spelled(each) for each in value]
    if isinstance(value, int):
        return value
    if isinstance(value, complex):
        return {"real": spelled(value.real), "imag": spelled(value.imag)}
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
