"""Whether an output in a text is what a program prints: whatever the blanks, `...` standing for
anything, and a number of four digits or more to a unit of its last one.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?<![\w.])([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?!\w)")
_ROUNDED = 4
"""Digits of a number whose last one may differ."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def same(expected: str, printed: str, alone: bool = False) -> bool:
    """Whether an output is as expected.

    Args:
        alone: whether a part may stand for all: a number for the only one of the output, `# 4.0`
            for `tensor(4.)`, and the last words of a line for the line, `# True` for `y True`.
    """
    left, right = _lines(expected), _lines(printed)
    if left == right:
        return True
    if len(left) == len(right) and all(map(_same_line, left, right)):
        return True
    if alone and len(left) == len(right) == 1 and right[0].endswith(f" {left[0]}"):
        return True
    if alone and _NUMBER.fullmatch(expected.strip()):
        numbers = _NUMBER.findall(printed)
        return len(numbers) == 1 and _same_number(expected.strip(), numbers[0])
    if "..." in expected:
        parts = map(re.escape, "\n".join(left).split("..."))
        return re.fullmatch(".*?".join(parts), "\n".join(right), re.DOTALL) is not None
    return False


def _lines(text: str) -> list[str]:
    lines = [" ".join(line.split()) for line in _ADDRESS.sub("0x", text).strip("\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_line(expected: str, printed: str) -> bool:
    left, right = _NUMBER.split(expected), _NUMBER.split(printed)
    return len(left) == len(right) and all(
        _same_number(one, other) if number % 2 else one.replace(" ", "") == other.replace(" ", "")
        for number, (one, other) in enumerate(zip(left, right, strict=True))
    )


def _same_number(expected: str, printed: str) -> bool:
    digits, _, exponent = expected.lower().partition("e")
    if "." not in digits or len(re.sub(r"\D", "", digits).lstrip("0")) < _ROUNDED:
        return float(expected) == float(printed)
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(float(expected) - float(printed)) <= unit * 1.001
