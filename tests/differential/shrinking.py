"""Makes a program that gradcli and PyTorch disagree on shorter, while they go on to disagree."""

from __future__ import annotations

import ast
from collections.abc import Callable


def shrunk(program: str, differs: Callable[[str], bool]) -> str:
    """The program with every statement left out that the difference does not need; imports stay.

    gradcli knows some names without an import, so a program without its imports differs anyway.
    """
    pieces = _statements(program)
    changed = True
    while changed:
        changed = False
        for position in range(len(pieces) - 1, -1, -1):
            if pieces[position].startswith(("import ", "from ")):
                continue
            shorter = pieces[:position] + pieces[position + 1 :]
            if differs("".join(shorter)):
                pieces, changed = shorter, True
    return "".join(pieces)


def _statements(program: str) -> list[str]:
    """The texts of the top-level statements, decorators included."""
    lines = program.splitlines(keepends=True)
    starts = [
        min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        for node in ast.parse(program).body
    ]
    ends = [*(start - 1 for start in starts[1:]), len(lines)]
    return ["".join(lines[start - 1 : end]) for start, end in zip(starts, ends, strict=True)]
