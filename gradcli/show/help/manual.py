"""The manual: its Markdown pages, found by topic and laid out for a terminal.

A topic is a page of `gradcli/manual`, or a section of one: `exit-codes` is the section "Exit codes"
of `errors.md`. Of Markdown the pages use headings, paragraphs, lists, tables, fenced blocks,
`code`, **strong** and [links](errors.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import gradcli
from gradcli.show.style import PLAIN, Style

FOLDER = os.path.join(os.path.dirname(gradcli.__file__), "manual")

FRONT = "index"
"""The page that `gradcli help` shows: every topic in a few words."""

_WIDTH = 80
"""The columns of text that goes to no terminal."""

_WIDEST = 100
"""Longer lines of prose are hard to read."""

_INDENT = "  "
"""What stands before a line of a fenced block."""

_BETWEEN = "  "
"""What stands between two columns of a table."""

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[((?:`[^`]*`|[^\]`])+)\]\(([^)\s]+)\)")
_ALL_CODE = re.compile(r"`[^`]+`(, `[^`]+`)*")
_ITEM = re.compile(r"( *)(-|\d+\.) +(.*)")
_HEADING = re.compile(r"(#{1,3}) +(.*)")

_GLUE = "\0"
"""Stands for a blank at which no line ends."""

_GLUED = 28
"""Code of up to so many characters stays on one line."""

Word = list[tuple[str, str]]
"""What stands between two blanks: texts, each with its role in `Style.paint` or ""."""


# --- pages --------------------------------------------------------------------------------------


def topics() -> list[str]:
    """The names of the pages, in the order of the front page; of those it leaves out, the last."""
    pages = [name.removesuffix(".md") for name in os.listdir(FOLDER) if name.endswith(".md")]
    front = _read(FRONT)
    return sorted(
        (page for page in pages if page != FRONT),
        key=lambda page: (front.find(f"({page}.md)") % (len(front) + 1), page),
    )


def source(topic: str) -> str | None:
    """The Markdown of a page or a section; None for a topic that there is not."""
    if topic == FRONT or not re.fullmatch(r"[a-z0-9_-]+", topic):
        return None
    if os.path.isfile(_path(topic)):
        return _read(topic)
    for page in topics():
        text = _section(_read(page), topic)
        if text is not None:
            return text
    return None


def sections() -> list[str]:
    """The topics that are sections of pages."""
    return [slug for page in topics() for slug, _ in headings(page)]


def headings(page: str) -> list[tuple[str, str]]:
    """The topics that are sections of a page, each with its heading."""
    lines = (line for _, line in _lines_outside_code(_read(page)))
    heads = [line[3:] for line in lines if line.startswith("## ")]
    return [(slug, head) for head in heads for slug in _slugs(head)]


def front_source() -> str:
    """The Markdown of the front page."""
    return _read(FRONT)


def code_source(code: str) -> str:
    """The Markdown of an error's or a warning's code, which has no title."""
    return _read(os.path.join("codes", code))


def _path(page: str) -> str:
    return os.path.join(FOLDER, f"{page}.md")


def _read(page: str) -> str:
    with open(_path(page), encoding="utf-8") as file:
        return file.read()


def _slug(heading: str) -> str:
    """The topic of a section, which is also its anchor on a web page."""
    return re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))


def _slugs(heading: str) -> list[str]:
    """The topics of a section: several where its heading lists words."""
    words = heading.split(", ")
    listed = all(re.fullmatch(r"[a-z][\w-]*", word) for word in words)
    return [_slug(word) for word in words] if listed else [_slug(heading)]


def _section(text: str, topic: str) -> str | None:
    """The section of a page whose heading makes a topic."""
    lines = text.split("\n")
    heads = [(at, line) for at, line in _lines_outside_code(text) if line.startswith("## ")]
    for number, (at, line) in enumerate(heads):
        if topic in _slugs(line[3:]):
            end = heads[number + 1][0] if number + 1 < len(heads) else len(lines)
            return "\n".join([line[1:], *lines[at + 1 : end]])
    return None


def _lines_outside_code(text: str) -> Iterator[tuple[int, str]]:
    inside = False
    for at, line in enumerate(text.split("\n")):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield at, line


# --- layout -------------------------------------------------------------------------------------


def rendered(markdown: str, style: Style = PLAIN) -> str:
    """A page as text.

    Prose and tables are as wide as the terminal, up to 100 columns, and 80 where there is none.
    Fenced blocks stay as they are, however wide.
    """
    width = min(style.width or _WIDTH, _WIDEST)
    parts = [_block(lines, style, width) for lines in _blocks(markdown)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _blocks(markdown: str) -> Iterator[list[str]]:
    """The lines of each heading, paragraph, list, table and fenced block."""
    block: list[str] = []
    fenced = False
    for line in markdown.split("\n"):
        if fenced:
            block.append(line)
            if line.startswith("```"):
                yield block
                block, fenced = [], False
            continue
        fenced = line.startswith("```")
        apart = fenced or not line.strip() or _HEADING.match(line)
        if block and (
            apart or (line[:1] != " " and _ITEM.match(line) and not _ITEM.match(block[0]))
        ):
            yield block
            block = []
        if line.strip():
            block.append(line)
        if _HEADING.match(line):
            yield block
            block = []
    if block:
        yield block


def _block(lines: list[str], style: Style, width: int) -> list[str]:
    first = lines[0]
    heading = _HEADING.match(first)
    if heading:
        return _heading(len(heading[1]), heading[2], style)
    if first.startswith("```"):
        return _code(first[3:], lines[1:-1], style)
    if first.startswith("|"):
        return _table(lines, style, width)
    if _ITEM.match(first):
        return _list(lines, style, width)
    return _filled(_words(" ".join(lines), style), style, width)


def _heading(level: int, text: str, style: Style) -> list[str]:
    """A heading, underlined where it cannot be bright."""
    plain = " ".join(_plain(word) for word in _words(text, style)).replace(_GLUE, " ")
    if style.color or level == 3:
        return [style.paint(plain, "strong")]
    return [plain, ("=" if level == 1 else "-") * len(plain)]


def _code(language: str, lines: list[str], style: Style) -> list[str]:
    """A fenced block; what is typed into a shell stands out."""
    shell = language == "console"
    shown = []
    for line in lines:
        typed = shell and line.startswith(("$ ", "> "))
        shown.append(f"{_INDENT}{style.paint(line, 'strong') if typed else line}".rstrip())
    return shown


def _list(lines: list[str], style: Style, width: int) -> list[str]:
    """The items of a list, lines that continue one aligned below its text."""
    items: list[tuple[str, str]] = []
    for line in lines:
        item = _ITEM.match(line)
        if item:
            items.append((f"{item[1]}{item[2]} ", item[3]))
        else:
            items[-1] = (items[-1][0], f"{items[-1][1]} {line.strip()}")
    shown = []
    for mark, text in items:
        body = _filled(_words(text, style), style, width - len(mark))
        shown += [f"{mark}{body[0]}", *(f"{' ' * len(mark)}{line}" for line in body[1:])]
    return shown


def _table(lines: list[str], style: Style, width: int) -> list[str]:
    """The rows of a table in columns; where they are too wide the text of the widest is wrapped."""
    rows = [_cells(line, style) for number, line in enumerate(lines) if number != 1]
    columns = list(zip(*rows, strict=True))
    widths = [max(map(_length, column)) for column in columns]
    longest = [max(len(_plain(word)) for cell in column for word in cell or [[("", "")]])
               for column in columns]  # fmt: skip
    room = width - len(_BETWEEN) * (len(widths) - 1)
    while sum(widths) > room:
        free = [at for at in range(len(widths)) if widths[at] > longest[at]]
        if not free:
            break
        widths[max(free, key=lambda at: widths[at])] -= 1
    shown = []
    for number, row in enumerate(rows):
        if number == 0:
            if any(row):
                row = [[[(text, "strong") for text, _ in word] for word in cell] for cell in row]
                shown += _row(row, widths, style)
                shown.append(_BETWEEN.join("-" * each for each in widths))
        else:
            shown += _row(row, widths, style)
    return shown


def _cells(line: str, style: Style) -> list[list[Word]]:
    """The words of a row's cells; a cell of nothing but code goes without its marks."""
    texts = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    cells = []
    for text in texts:
        text = text.strip().replace("\\|", "|")
        if _ALL_CODE.fullmatch(text) and not style.color:
            text = text.replace("`", "")
        cells.append(_words(text, style))
    return cells


def _row(row: Sequence[list[Word]], widths: list[int], style: Style) -> list[str]:
    """The lines of a row, as many as its longest cell takes."""
    wrapped = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    shown = []
    for at in range(max(map(len, wrapped))):
        line = ""
        for cell, width in zip(wrapped, widths, strict=True):
            words = cell[at] if at < len(cell) else []
            line += _painted(words, style) + " " * (width - _length(words)) + _BETWEEN
        shown.append(line.rstrip())
    return shown


# --- words --------------------------------------------------------------------------------------


def _words(text: str, style: Style) -> list[Word]:
    """The words of a text; where there is colour, it stands for the marks of code."""
    pieces: list[tuple[str, str]] = []
    at = 0
    for match in _INLINE.finditer(text):
        pieces.append((text[at : match.start()], ""))
        at = match.end()
        if match[1] is not None:
            pieces.append(_code_piece(match[1], style))
        elif match[2] is not None:
            pieces.append((match[2], "strong"))
        else:
            shown = match[3]
            code = shown.startswith("`")
            pieces.append(_code_piece(shown.strip("`"), style) if code else (shown, ""))
    pieces.append((text[at:], ""))
    words: list[Word] = [[]]
    for piece, role in pieces:
        for number, part in enumerate(re.split(r"\s+", piece)):
            if number:
                words.append([])
            if part:
                words[-1].append((part, role))
    return [word for word in words if word]


def _code_piece(code: str, style: Style) -> tuple[str, str]:
    if len(code) <= _GLUED:
        code = code.replace(" ", _GLUE)
    return (code, "node") if style.color else (f"`{code}`", "")


def plain(text: str) -> str:
    """A line of Markdown without its marks."""
    return _INLINE.sub(lambda mark: plain(mark[1] or mark[2] or mark[3]), text).strip("`")


def _plain(word: Word) -> str:
    return "".join(text for text, _ in word)


def _length(words: Sequence[Word]) -> int:
    """The columns that words take on a line."""
    return sum(len(_plain(word)) + 1 for word in words) - 1 if words else 0


def _wrapped(words: list[Word], width: int) -> list[list[Word]]:
    """Words on lines of a width."""
    lines: list[list[Word]] = [[]]
    length = 0
    for word in words:
        more = len(_plain(word))
        if lines[-1] and length + 1 + more > width:
            lines.append([])
        length = more if not lines[-1] else length + 1 + more
        lines[-1].append(word)
    return lines


def _painted(words: Sequence[Word], style: Style) -> str:
    texts = (
        "".join(style.paint(text, role) if role else text for text, role in word) for word in words
    )
    return " ".join(texts).replace(_GLUE, " ")


def _filled(words: list[Word], style: Style, width: int) -> list[str]:
    return [_painted(line, style) for line in _wrapped(words, width)]
