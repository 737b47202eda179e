"""The fenced blocks of README and of the manual. What a block holds, its first line says:

- `sh`: a set-up command, run by `.ci/run` in a fresh clone, in their order;
- `console`: lines that begin with `$ ` are shell commands, lines that begin with `> ` continue the
  command above, and all others are what the commands print, on either stream. They run in a folder
  that holds a copy of `examples/`, a block in one shell;
- `gradcli`: a program; a `text` block right after it is what it prints;
- `gradcli CODE`: a program that ends with this error, or runs into this warning; a `text` block
  right after it is what `gradcli run program.grad` prints, on either stream;
- `python`: Python text, which must compile;
- `text`: shown, not run.

Reading them needs nothing but Python.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

README = ROOT / "README.md"

MANUAL = ROOT / "gradcli" / "manual"

LANGUAGES = ("sh", "console", "gradcli", "python", "text")

_FENCED = re.compile(r"^```(\w*) ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block:
    """A fenced block.

    Attributes:
        path: the page that it stands in.
        line: the line of the page where the text starts.
        language: the first word behind the fence.
        code: the second word, "" where there is none.
        text: what stands between the fences.
        start: where the text starts in the page.
        output: the `text` block right after a program, None where there is none.
    """

    def __init__(self, path: Path, page: str, fence: re.Match[str]) -> None:
        self.path = path
        self.line = page.count("\n", 0, fence.start(3)) + 1
        self.language = fence[1]
        self.code = fence[2]
        self.text = fence[3]
        self.start = fence.start(3)
        self.output: Block | None = None

    def __repr__(self) -> str:
        return f"{self.path.stem}:{self.line}"


def pages() -> list[Path]:
    """README and every page of the manual."""
    return [README, *sorted(MANUAL.rglob("*.md"))]


def blocks(path: Path) -> list[Block]:
    """The blocks of a page in order, the output of a program among them."""
    page = path.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for fence in _FENCED.finditer(page):
        block = Block(path, page, fence)
        follows = found and not page[end : fence.start()].strip()
        if follows and block.language == "text" and found[-1].language == "gradcli":
            found[-1].output = block
        found.append(block)
        end = fence.end()
    return found


def all_blocks(language: str) -> list[Block]:
    """The blocks of one language in all pages."""
    return [block for path in pages() for block in blocks(path) if block.language == language]


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
            raise ValueError(f"{block}: output before the first command")
    return result


def example_of(code: str) -> str:
    """The program that the page of an error's or a warning's code shows, "" where it has none."""
    programs = [block for block in blocks(MANUAL / "codes" / f"{code}.md") if block.code == code]
    return programs[0].text.removesuffix("\n") if programs else ""
