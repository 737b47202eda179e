"""What a program writes to a terminal: bars and colours work there, and nothing else commands it.

A program may return to the beginning of a line, erase, colour, and move within the lines that it
has written itself. Everything else that a terminal obeys (titles, the clipboard, queries, modes,
other character sets, marks of direction) is spelled out, whatever it is split into.
"""

from __future__ import annotations

import re

from gradcli.show.style import escaped

_SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)([A-Za-z])")
"""A control sequence as ECMA-48 has them, with its parameters and its final letter."""

_BEGUN = re.compile(r"\x1b(\[[0-9;:]*)?$")
"""A sequence whose end may come with the next write."""

_LONGEST = 64
"""Characters of a sequence; a longer one is no sequence that is let through."""

_COLOURS_BACK = "\x1b[0m"

_COLUMNS = "CDG"
"""The final letters that move within a line."""

_ERASES = {"K": ("", "0", "1", "2"), "J": ("", "0")}
"""The final letters that erase, with the parameters that reach none but the program's own lines."""


class ProgramScreen:
    """The part of a terminal that a program has written to; shared by both of its streams.

    Attributes:
        row: the line that the cursor is on, counted from the program's first one.
        lowest: the lowest line that it has written to.
        is_open: whether the cursor stands behind text on its line.
        is_coloured: whether the program changed colours and did not change them back.
    """

    def __init__(self) -> None:
        self._begun: dict[str, str] = {}
        self._begin()

    def _begin(self) -> None:
        self.row = self.lowest = 0
        self.is_open = self.is_coloured = False
        self._begun.clear()

    def passed(self, text: str, stream: str) -> str:
        """What of a text goes to the terminal as it is, the rest spelled out.

        Args:
            stream: which stream it is written to; a sequence is split over writes to one.
        """
        if text.isascii() and text.isprintable() and not self._begun:
            self.is_open = self.is_open or bool(text)
            return text
        text = self._begun.pop(stream, "") + text
        parts = []
        at = 0
        while at < len(text):
            escape = text.find("\x1b", at)
            if escape < 0:
                parts.append(self._plain(text[at:]))
                break
            parts.append(self._plain(text[at:escape]))
            sequence = _SEQUENCE.match(text, escape)
            if sequence is not None and sequence.end() - escape <= _LONGEST:
                allowed = self._obeyed(sequence[1], sequence[2])
                parts.append(escaped(sequence[0]) if allowed is None else allowed)
                at = sequence.end()
            elif len(text) - escape < _LONGEST and _BEGUN.match(text, escape):
                self._begun[stream] = text[escape:]
                break
            else:
                parts.append(escaped("\x1b"))
                at = escape + 1
        return "".join(parts)

    def left(self) -> str:
        """What must come before text of gradcli's own: the rest of begun sequences, the colours put
        back, and a new line where the program has not ended its own. The program's lines begin anew
        behind it.
        """
        begun = "".join(map(escaped, self._begun.values()))
        lower = f"\x1b[{self.lowest - self.row}B" if self.lowest > self.row else ""
        ended = "\n" if self.is_open or lower or begun else ""
        text = f"{begun}{_COLOURS_BACK if self.is_coloured else ''}{lower}{ended}"
        self._begin()
        return text

    def _plain(self, text: str) -> str:
        """A text without sequences, its lines counted; carriage returns and backspaces move."""
        if not text:
            return ""
        count = text.count("\n")
        self.row += count
        self.lowest = max(self.lowest, self.row)
        behind = text.rpartition("\n")[2]
        self.is_open = bool(behind) or (self.is_open and not count)
        parts = re.split(r"([\r\b])", text)
        return "".join(part if part in ("\r", "\b") else escaped(part) for part in parts)

    def _obeyed(self, parameters: str, final: str) -> str | None:
        """A sequence that is let through, its movement kept to the program's lines; None for one
        that is not.
        """
        if final == "m":
            self.is_coloured = parameters.strip("0;") != ""
            return f"\x1b[{parameters}m"
        if final in _ERASES:
            return f"\x1b[{parameters}{final}" if parameters in _ERASES[final] else None
        if not re.fullmatch(r"[0-9]{0,4}", parameters):
            return None
        if final in _COLUMNS:
            return f"\x1b[{parameters}{final}"
        wanted = max(int(parameters or 1), 1)
        if final in "AF":
            count = min(wanted, self.row)
            self.row -= count
        elif final in "BE":
            count = min(wanted, self.lowest - self.row)
            self.row += count
        else:
            return None
        return f"\x1b[{count}{final}" if count else ""
