"""Answers of a bounded size: large arrays as their figures, long lists and texts with their middle
left out, and every text such that UTF-8 has it.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from gradcli.arrays.files.json import holds_numbers, numbered, spelled

MOST_BYTES = 20_000
"""Of an answer's text, and of its document as JSON."""

_SIZES = (1_000, 200, 50, 16, 6, 2)
"""How many numbers of an array, and entries of a list, are left; the first that is small enough is
taken.
"""

_MOST_OF_TEXT = 20
"""Characters of a text in a document for each of them."""

_SLICED = 200
"""The most numbers of a slice that was asked for."""

_ROOM = 1_000
"""Bytes of a document for what it says of what is left out."""

_INDEX = re.compile(r"\s*(-?\d*)\s*(?:(:)\s*(-?\d*)\s*(?::\s*(-?\d+)?)?)?\s*")


def bounded(answer: dict[str, Any], elements: str | None) -> dict[str, Any]:
    """An answer of at most `MOST_BYTES` of text and as many of data.

    Args:
        answer: `text`, and `data` where there is some.
        elements: the slice of large arrays that is kept beside their figures: `0:3, 5`.
    """
    shorter = {**answer, "text": cut(answer["text"], MOST_BYTES)}
    if answer.get("data") is not None:
        shorter["data"] = _document(answer["data"], elements)
    return shorter


def cut(text: str, most: int) -> str:
    """A text of at most so many bytes, with its middle left out, which it says."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= most:
        return data.decode()
    said = f"\n… {len(data) - most:,} bytes and more are left out here …\n"
    half = (most - len(said.encode())) // 2
    first, last = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return first + said + last


def slices_of(elements: str) -> tuple[int | slice, ...]:
    """The index that a text such as `0:3, 5` stands for; raises ValueError for another text."""
    slices: list[int | slice] = []
    for each in elements.strip("[] ").split(","):
        matched = _INDEX.fullmatch(each)
        if matched is None or not each.strip():
            raise ValueError(f"elements is a slice such as '0:3, 5', not {elements!r}")
        start, colon, stop, step = matched.groups()
        numbers = [int(part) if part else None for part in (start, stop, step)]
        slices.append(slice(*numbers) if colon else int(start))
    return tuple(slices)


def _document(data: dict[str, Any], elements: str | None) -> dict[str, Any]:
    index = None if elements is None else slices_of(elements)
    for most in _SIZES:
        shortened = Shortened(most, index)
        document: dict[str, Any] = shortened.value("", data)
        if shortened.left_out:
            document["left_out"] = shortened.told()
        if len(json.dumps(document, ensure_ascii=False).encode()) <= MOST_BYTES:
            return document
    kept = {name: each for name, each in document.items() if not isinstance(each, (list, dict))}
    return {**kept, "left_out": [f"all but {', '.join(kept)}"]}


class Shortened:
    """A document with arrays of at most `most` numbers and lists of at most as many entries."""

    def __init__(self, most: int, index: tuple[int | slice, ...] | None) -> None:
        self.most = most
        self.index = index
        self.left_out: list[str] = []

    def told(self) -> list[str]:
        """What is left out where, within some bytes."""
        lines: list[str] = []
        room = _ROOM
        for each in self.left_out:
            room -= len(each)
            if room < 0:
                return [*lines, f"and {len(self.left_out) - len(lines):,} more"]
            lines.append(each)
        return lines

    def value(self, path: str, value: Any) -> Any:
        """A part of the document as it is left."""
        if isinstance(value, str):
            return self._text(path, value)
        if isinstance(value, dict):
            return {
                _spelled(name): self.value(f"{path}.{name}" if path else name, each)
                for name, each in value.items()
            }
        if not isinstance(value, list):
            return value
        array = _array(value)
        if array is not None and array.size > self.most:
            self.left_out.append(f"{path}: {array.size:,} numbers")
            return self._figures(array)
        kept = value
        if array is None and len(value) > self.most:
            half = self.most // 2
            self.left_out.append(
                f"{path}: {len(value):,} entries, of which the first and the last {half} are here"
            )
            kept = [*value[:half], *value[-half:]]
        return [self.value(f"{path}[{number}]", each) for number, each in enumerate(kept)]

    def _text(self, path: str, value: str) -> str:
        shorter = cut(value, max(self.most * _MOST_OF_TEXT // 2, 100))
        if shorter != _spelled(value):
            self.left_out.append(f"{path}: the middle of a text")
        return shorter

    def _figures(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        numbers = np.abs(array) if array.dtype.kind == "c" else array
        finite = numbers[np.isfinite(numbers)]
        figures: dict[str, Any] = {"shape": list(array.shape)}
        if finite.size:
            figures |= {"min": finite.min().item(), "max": finite.max().item()}
            scale = np.abs(finite).max() or 1  # so that no square is infinite
            figures["norm"] = float(scale * np.sqrt(np.square(finite / scale).sum()))
        if finite.size < array.size:
            figures["not_finite"] = array.size - finite.size
        if self.index is not None:
            figures["elements"] = self._slice(array)
        return figures

    def _slice(self, array: np.ndarray[Any, Any]) -> Any:
        assert self.index is not None
        try:
            part = array[self.index]
        except IndexError as error:
            return str(error)
        if part.size > _SLICED:
            return f"{part.size:,} numbers: at most {_SLICED} are shown"
        return spelled(part.tolist())


def _array(value: list[Any]) -> np.ndarray[Any, Any] | None:
    """The array that nested lists of numbers are, None for other lists."""
    numbers = numbered(value)
    if not value or not holds_numbers(numbers):
        return None
    try:
        return np.array(numbers)
    except ValueError:  # rows of different lengths
        return None


def _spelled(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
