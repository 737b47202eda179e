"""Entries read line by line, from a terminal that can do nothing but lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from textwrap import dedent

from gradcli.language.parser.parser import is_incomplete

PROMPT = ">>> "
CONTINUATION = "... "


def plain_reader() -> Callable[[], str]:
    """Reads an entry of one line or several; raises EOFError at the end of input."""

    def read() -> str:
        lines: list[str] = []
        while True:
            sys.stderr.write(CONTINUATION if lines else PROMPT)
            sys.stderr.flush()
            try:
                line = sys.stdin.readline()
            except KeyboardInterrupt:
                sys.stderr.write("\n")
                raise
            if not line and not lines:
                sys.stderr.write("\n")
                raise EOFError
            lines.append(line.rstrip("\n"))
            text = "\n".join(lines)
            if not line or not is_incomplete(text):
                return text

    return read


_PROMPTED = re.compile(r"(?:>>>|\.\.\.)(?: |$)|In \[\d+\]:(?: |$)| +\.\.\.:(?: |$)")
"""The prompts of a session, of Python and of IPython."""


def pasted(text: str) -> str:
    """A text without the prompts of a session, what stands between them, and the margin that all
    its lines have.
    """
    lines = text.split("\n")
    if _PROMPTED.match(text):
        prompts = [(line, _PROMPTED.match(line)) for line in lines]
        lines = [line[match.end() :] for line, match in prompts if match]
    return dedent("\n".join(lines))
