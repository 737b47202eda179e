"""The value of an expression, in the form that `.mode` chose; a result as a table for people, with
a row for the output and one for each input.
"""

from __future__ import annotations

from typing import Any

from gradcli.arrays.printing import format_tensor
from gradcli.autograd.graph import Graph
from gradcli.autograd.tensor import Tensor
from gradcli.language.objects.repr import display
from gradcli.recorded.result import Result
from gradcli.show.json import number, text
from gradcli.show.style import PLAIN, Style, clipped, escaped

_HEAD = ("name", "shape", "dtype", "value", "gradient")
_BETWEEN = "  "


def table(result: Result, style: Style = PLAIN, *, full: bool = False) -> str:
    """The names, shapes, dtypes, values and gradients of a result in columns.

    Args:
        style: where the table goes; a terminal's width shortens long values with `…`.
    """
    rows = [_HEAD, _row(result.name or "output", result.output, None)]
    if result.seed is not None:
        rows.append(_row("seed", result.seed, None))
    for gradient in result.gradients:
        none = gradient.reason or "none"
        grad = none if gradient.tensor.grad is None else numbers(gradient.tensor.grad.array)
        rows.append(_row(gradient.name or f"#{gradient.node}", gradient.tensor, grad))
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    if style.width is not None and not full:
        taken = sum(widths[:3]) + len(_BETWEEN) * (len(_HEAD) - 1)
        widths[3:] = _shared(widths[3:], max(style.width - taken, 16))
    lines = []
    for position, row in enumerate(rows):
        cells = [clipped(cell, most).ljust(most) for cell, most in zip(row, widths, strict=True)]
        line = _BETWEEN.join(cells).rstrip()
        lines.append(style.paint(line, "strong") if position == 0 else line)
    return "\n".join(lines) + "\n"


def numbers(array: Any) -> str:
    """The elements of an array as its tensor prints them, on one line."""
    text = format_tensor(array)
    if array.ndim == 0:
        text = text.removeprefix("tensor(").removesuffix(")").partition(", dtype=")[0]
        return text.partition(", device=")[0]
    return " ".join(text[text.index("[") : text.rindex("]") + 1].replace("[ ", "[").split())


def _row(name: str, tensor: Tensor, gradient: str | None) -> tuple[str, ...]:
    shape = f"({', '.join(map(str, tensor.array.shape))})"
    value = numbers(tensor.array)
    return escaped(name), shape, tensor.dtype.name, value, gradient or ""


def _shared(wanted: list[int], room: int) -> list[int]:
    """The widths of two columns in the room that there is."""
    first, second = wanted
    if first + second <= room:
        return wanted
    half = room // 2
    if first <= half:
        return [first, room - first]
    return [room - second, second] if second <= half else [half, room - half]


def shown(value: Any, mode: str, style: Style = PLAIN, *, full: bool = False) -> str:
    """A value as text with its line end.

    Args:
        mode: `text` as Python shows it, `json`, `jsonl` on one line, `table` for tensors.
        full: whether a table shortens nothing.
    """
    if mode in ("json", "jsonl"):
        return text(_document(value), compact=mode == "jsonl")
    if mode == "table" and type(value) is Tensor:
        return table(Result(value.name, value, None, (), Graph(value)), style, full=full)
    return f"{display(value)}\n"


def _document(value: Any) -> dict[str, Any]:
    """A value as JSON: a tensor's elements, the text of what JSON has nothing like."""
    if type(value) is Tensor:
        return {
            "value": number(value.array),
            "shape": list(value.array.shape),
            "dtype": value.dtype.name,
            "requires_grad": value.requires_grad,
        }
    plain, converted = _plain(value)
    return {"value": converted} if plain else {"text": display(value)}


def _plain(value: Any) -> tuple[bool, Any]:
    """Whether JSON has something like a value, and what that is."""
    if value is None or type(value) in (bool, int, str):
        return True, value
    if type(value) is float:
        import numpy as np

        return True, number(np.asarray(value))
    if type(value) is Tensor:
        return True, number(value.array)
    if type(value) in (list, tuple):
        items = [_plain(each) for each in value]
        return all(plain for plain, _ in items), [converted for _, converted in items]
    if type(value) is dict and all(type(key) is str for key in value):
        entries = {key: _plain(each) for key, each in value.items()}
        plain = all(plain for plain, _ in entries.values())
        return plain, {key: converted for key, (_, converted) in entries.items()}
    return False, None
