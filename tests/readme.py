"""README's fenced blocks. What a block holds, its language says:

- `sh`: a set-up command, run by `.ci/run` in a fresh clone, in their order;
- `console`: lines that begin with `$ ` are shell commands, lines that begin with `> ` continue the
  command above, and all others are what the commands print, on either stream. They run in a folder
  that holds a copy of `examples/`, a block in one shell;
- `gradcli`: a program; a `text` block right after it is what it prints;
- `python`: Python text, which must compile;
- `text`: shown, not run.

`python3 -m tests.readme N` prints the N-th `sh` block; it needs nothing but Python.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"

LANGUAGES = ("sh", "console", "gradcli", "python", "text")

_FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block:
    """A fenced block: its language, its text, and the line of README where the text starts."""

    def __init__(self, language: str, text: str, line: int) -> None:
        self.language = language
        self.text = text
        self.line = line
        self.output: str | None = None

    def __repr__(self) -> str:
        return f"line {self.line}"


def blocks() -> list[Block]:
    """All blocks, in order; a program's has the `text` block that follows it as `output`."""
    readme = README.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for fence in _FENCED.finditer(readme):
        block = Block(fence[1], fence[2], readme.count("\n", 0, fence.start(2)) + 1)
        follows = found and not readme[end : fence.start()].strip()
        if follows and block.language == "text" and found[-1].language == "gradcli":
            found[-1].output = block.text
        found.append(block)
        end = fence.end()
    return found


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a `console` block, each with what it prints."""
    result: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            result.append((line[2:], ""))
        elif line.startswith("> ") and result and not result[-1][1]:
            result[-1] = (result[-1][0] + line[2:], "")
        elif result:
            command, printed = result[-1]
            result[-1] = (command, printed + line)
        else:
            raise ValueError(f"README line {block.line}: output before the first command")
    return result


if __name__ == "__main__":
    print(
        [block.text for block in blocks() if block.language == "sh"][int(sys.argv[1]) - 1], end=""
    )
