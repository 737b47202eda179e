"""The answer of `why` as text, and as JSON, schema `gradcli.why/1`."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.questions.why.detachments import Why
from gradcli.show.diagnostics.human import finding, location, span_object, wrapped
from gradcli.show.graph.nodes import leaf_text, source_of, title, value_text
from gradcli.show.json import number
from gradcli.show.style import PLAIN, Style, block

SCHEMA = "gradcli.why/1"

_LONGEST_PATH = 20
"""Nodes of a path that are shown."""

_LONGEST_VALUE = 12
"""Lines of a value that is shown; of a longer one its shape."""


def why_text(why: Why, style: Style = PLAIN) -> str:
    """The value asked about, why it is so, and the spans or the path that show it."""
    lead = f"{style.paint(why.question, 'variable')} = "
    value = block(f"{why.question} = ", repr(why.value))[len(why.question) + 3 :]
    if value.count("\n") >= _LONGEST_VALUE:
        value = value_text(why.value, PLAIN, 0)
    parts = [f"{lead}{value}\n{wrapped(f'because {why.reason}')}"]
    parts += [finding(cut.text, cut.place, cut.help, cut.labels, style) for cut in why.detachments]
    if why.path:
        parts.append(_path(why, style))
    return "\n\n".join(parts) + "\n"


def _path(why: Why, style: Style) -> str:
    """The nodes of the path, one below the other, with their source; of a long one its ends."""
    half, left_out = _LONGEST_PATH // 2, len(why.path) - _LONGEST_PATH
    path = why.path if left_out <= 1 else [*why.path[:half], *why.path[half + left_out :]]
    heads = [(title(node, PLAIN), title(node, style)) for node in path]
    column = max(len(plain) for plain, _ in heads) + 4
    sources = [style.shortened(source_of(node), column) for node in path]
    width = max((len(text) for text in sources), default=0) + 2
    lines = []
    for node, (plain, painted), source in zip(path, heads, sources, strict=True):
        if node.leaf is not None:
            right = leaf_text(node.leaf, node.variable, style, column)
        else:
            where = "" if node.place is None else location(node.place)
            right = source.ljust(width) + style.paint(where, "quiet")
        lines.append(f"{painted}{' ' * (column - len(plain))}{right}".rstrip())
    if left_out > 1:
        lines.insert(half, f"… {left_out:,} more nodes")
    return "\n".join(lines)


def why_document(why: Why) -> dict[str, Any]:
    """The answer as a JSON object."""
    value = why.value
    return {
        "schema": SCHEMA,
        "question": why.question,
        "answer": number(value.array) if isinstance(value, Tensor) else value,
        "kind": why.kind,
        "reason": why.reason,
        "cuts": [
            {
                "text": cut.text,
                **span_object(cut.place),
                "help": cut.help,
                "labels": [{"text": label.text, **span_object(label.span)} for label in cut.labels],
            }
            for cut in why.detachments
        ],
        "path": [
            {
                "name": node.name,
                "variable": node.variable,
                "module": node.module,
                **span_object(node.place),
            }
            for node in why.path
        ],
    }
