"""Tables that are texts: groups of lines, each under a line with `##`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_FOLDER = Path(__file__).parent


def groups(name: str) -> Iterator[tuple[str, list[str]]]:
    """The title and the lines of each group of a file; `@NAME` is the lines of the group so called,
    which is none of its own.
    """
    shared: dict[str, list[str]] = {}
    title = ""
    lines: list[str] = []
    for line in [*(_FOLDER / name).read_text().splitlines(), "## "]:
        if not line.startswith("## "):
            lines += shared.get(line, [line])
            continue
        while lines and not lines[-1]:
            lines.pop()
        if title.startswith("@"):
            shared[title] = lines
        elif title:
            yield title, lines
        title, lines = line.removeprefix("## "), []


def parts(lines: list[str]) -> dict[str, str]:
    """The parts of a group by name: each begins with a line `-- NAME`, the first is `before`."""
    found = {"before": ""}
    name = "before"
    for line in lines:
        if line.startswith("-- "):
            name = line.removeprefix("-- ")
            found[name] = ""
        else:
            found[name] += f"{line}\n"
    return found
