"""The value of an expression, in the form that `.mode` chose."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.graph import Graph
from gradcli.autograd.tensor import Tensor
from gradcli.language.objects.repr import display
from gradcli.recorded.result import Result
from gradcli.show.result_json import number, text
from gradcli.show.result_table import table
from gradcli.show.style import PLAIN, Style


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
