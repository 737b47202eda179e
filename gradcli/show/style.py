"""How text is dressed: colours and width of where it goes, and characters that must not reach a
terminal raw.
"""

from __future__ import annotations

import re

from gradcli.record import Record

_SGR = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "strong": "1",
    "gutter": "1;34",
    "primary": "1;31",
    "secondary": "1;34",
    "node": "36",
    "variable": "1",
    "gradient": "33",
    "quiet": "2",
    **{f"series{number}": str(code) for number, code in enumerate((34, 33, 32, 31, 35, 36))},
}

WIDEST = 400
"""Source text longer than this is shortened everywhere: ten thousand terms on one line are ten
thousand nodes whose texts grow by a term each.
"""


class Style(Record):
    """Where a text goes.

    Attributes:
        width: the columns of the terminal, None where it is no terminal.
    """

    color: bool = False
    width: int | None = None

    def paint(self, text: str, role: str) -> str:
        """The text in the colour of its role."""
        return f"\x1b[{_SGR[role]}m{text}\x1b[0m" if self.color and text else text

    def shortened(self, text: str, column: int) -> str:
        """A text that starts at a column, cut with `…` where it would leave the terminal."""
        return clipped(text, WIDEST if self.width is None else max(self.width - column, 16))

    def filled(self, text: str, column: int) -> str:
        """A text that starts at a column, as do its further lines: broken at blanks where it would
        leave the terminal, but never within quotes or a command, which people copy.
        """
        if self.width is None:
            return text
        room = max(self.width - column, 16)
        lines = []
        for line in text.split("\n"):
            indent = shown = line[: len(line) - len(line.lstrip(" "))]
            for word in re.findall(_UNBROKEN, line[len(indent) :]):
                if shown.strip() and columns(shown + word) > room:
                    lines.append(shown)
                    shown = indent + word.lstrip(" ")
                else:
                    shown += word
            lines.append(shown)
        return "\n".join(lines)


_UNBROKEN = r" *(?:`[^`]*`|(?<!\w)'[^']*'|(?<=: )gradcli .*|[^ ])+| +"
"""A word with the blanks before it: what is quoted, and a command behind a colon, are one."""


PLAIN = Style()


def clipped(text: str, most: int) -> str:
    """A text of no more characters than that, with `…` where some are left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def counted(number: int, what: str) -> str:
    """`1 node`, `1,000 nodes`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def columns(text: str) -> int:
    """The columns of a monospaced text; East Asian characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width  # lazy: start-up: most texts are ASCII

    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def cut(text: str, room: int) -> str:
    """A text that takes no more columns than there is room for."""
    if columns(text) <= room:
        return text
    while text and columns(text) > room - 1:
        text = text[:-1]
    return f"{text}…" if room > 0 else ""


def padded(text: str, width: int) -> str:
    """A text with blanks behind it up to a width."""
    return text + " " * (width - columns(text))


# Control characters, lone surrogates, and the marks that turn the direction of text around.
_UNSAFE = [
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _UNSAFE}
_ESCAPES_BUT_LINES = {code: text for code, text in _ESCAPES.items() if code not in (9, 10)}


def escaped(text: str) -> str:
    """A foreign text with its control characters spelled out, but for lines and tabs."""
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_ESCAPES_BUT_LINES)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(text: str) -> str:
    """Source text on one line: line ends and indentation become single blanks."""
    return escaped(" ".join(text.split()))


def block(prefix: str, text: str) -> str:
    """A prefix and a text whose further lines are aligned below its first."""
    return prefix + text.replace("\n", "\n" + " " * len(prefix))
