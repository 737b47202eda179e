"""Completion by position: what can stand at the cursor.

Nothing is run for it: values that are there already are looked at, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from gradcli.language.parser.lexer import KEYWORDS, Lexer

if TYPE_CHECKING:
    from gradcli.session import Session


class EntryCompleter(Completer):
    """Completes entries, with the values of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """What can go on behind the cursor."""
        from gradcli.repl import candidates  # lazy: start-up: NumPy

        context = CursorContext(document.text_before_cursor)
        kinds, word = context.kinds, context.word
        last = kinds[-1] if kinds else ""
        completions: Iterable[Completion]
        if last == "COMMAND":
            completions = candidates.of_command(self._session, context.texts[-1] + context.gap)
        elif last == "UNCLOSED":
            path = context.texts[-1][1:]
            completions = candidates.files(self._session, path) if context.in_file_call() else ()
        elif "#" in context.gap or last in _NO_NAME_BEHIND:
            completions = ()
        elif last == ".":
            completions = candidates.attributes(self._session, context.chain(len(kinds) - 1), word)
        else:
            function, used = context.call()
            completions = candidates.names(self._session, word, function, used)
        yield from completions


_MARKS = frozenset({"_NEWLINE", "_INDENT", "_DEDENT", "$END"})
_NO_NAME_BEHIND = frozenset(
    {"NUMBER", "NAME", "STRING", "FSTRING_END", "def", "class", "as", ")", "]", "}"}
)


class CursorContext:
    """The tokens before the cursor in an entry.

    Attributes:
        kinds, texts: the tokens of the line before the word, of several lines inside brackets.
        word: the beginning of a name right before the cursor.
        gap: what stands between the tokens and the word.
    """

    def __init__(self, text: str) -> None:
        tokens = Lexer(text)
        kinds: list[str] = []
        texts: list[str] = []
        ends: list[int] = []
        while tokens.statement():
            kinds, texts, ends = tokens.kinds, tokens.texts, tokens.ends
        while kinds and kinds[-1] in _MARKS:
            kinds.pop()
        end = ends[len(kinds) - 1] if kinds else 0
        if "\n" in text[end:] and not tokens.brackets:
            kinds.clear()
            end = len(text)
        first = len(kinds)
        while first and kinds[first - 1] not in _MARKS:
            first -= 1
        self.kinds = kinds[first:]
        self.texts = texts[first : len(kinds)]
        self.word = ""
        touched = self.kinds[-1] if self.kinds and end == len(text) else ""
        if touched == "NAME" or touched in KEYWORDS:
            self.word = self.texts.pop()
            self.kinds.pop()
        self.gap = "" if self.word else text[end:]

    def in_file_call(self) -> bool:
        """Whether the string at the end is the name of a file: the first argument of `load`."""
        return self.kinds[-2:-1] == ["("] and self.texts[-3:-2] in (["load"], ["save"])

    def chain(self, end: int) -> list[str]:
        """The dotted names before a token, `["torch", "nn"]`; what they belong to stands before
        them as `""` where it would have to be run, and as a literal where it is one.
        """
        chain: list[str] = []
        while end > 0:
            kind = self.kinds[end - 1]
            if kind != "NAME":
                return ["" if kind in (")", "]") else self.texts[end - 1][:1], *chain]
            chain.insert(0, self.texts[end - 1])
            if end < 2 or self.kinds[end - 2] != ".":
                return chain
            end -= 2
        return [""]

    def call(self) -> tuple[list[str], list[str]]:
        """The dotted name of the function whose arguments the cursor is among, empty for none, and
        the keywords that are given already.
        """
        depth = 0
        used: list[str] = []
        for at in range(len(self.kinds) - 1, 0, -1):
            kind = self.kinds[at]
            if kind in (")", "]", "}"):
                depth += 1
            elif kind in ("[", "{") and not depth:
                break
            elif kind in ("(", "[", "{"):
                if not depth:
                    follows_name = self.kinds[at - 1] == "NAME" and self.kinds[-1] in ("(", ",")
                    return (self.chain(at) if follows_name else []), used
                depth -= 1
            elif kind == "=" and not depth:
                used.append(self.texts[at - 1])
        return [], []
