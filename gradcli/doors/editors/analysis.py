"""What an editor asks about a text, found by reading it: nothing of it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from gradcli.errors import GradcliError, Source
from gradcli.language.parser.parser import read_statements
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import bound_by
from gradcli.questions.port.refusals import refusals
from gradcli.repl.completion import EntryCompleter
from gradcli.session import Session

_BEFORE = re.compile(r"[A-Za-z_][\w.]*$")
_BEHIND = re.compile(r"\w*")


def problems(name: str, text: str) -> list[GradcliError]:
    """What a run would refuse in a text, in its order; each error has a span."""
    return [error for error in refusals(Source(name, text)) if error.span is not None]


def name_at(text: str, offset: int) -> str:
    """The dotted name around a place, up to the end of its part there; "" for none."""
    behind = _BEHIND.match(text, offset)
    found = _BEFORE.search(text[: behind.end() if behind else offset])
    return found[0] if found else ""


def bindings(text: str) -> Iterator[tuple[str, int]]:
    """The names that a text gives values, with the places where it does."""
    statements, _ = read_statements(Source("text", text))
    for node in tree.nodes_of(list(statements)):
        names = [node.name] if isinstance(node, tree.Parameter) else list(bound_by(node))
        for name in names:
            found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", node.span.text)
            if found:
                yield name, node.span.start + found.start()


def definition(text: str, offset: int) -> tuple[int, int] | None:
    """Where the name at a place got its value: the last time before it, or else the first."""
    name = name_at(text, offset).partition(".")[0]
    places = sorted(place for each, place in bindings(text) if each == name)
    if not name or not places:
        return None
    before = [place for place in places if place <= offset]
    start = before[-1] if before else places[0]
    return start, start + len(name)


def completions(text: str, offset: int) -> tuple[int, list[tuple[str, str]]]:
    """What can go on at a place: where the word there begins, and words with what they are."""
    session = Session()
    with session.running():
        completer = EntryCompleter(session)
        document = Document(text[:offset])
        found = list(completer.get_completions(document, CompleteEvent()))
    start = offset + min((each.start_position for each in found), default=0)
    word = _BEFORE.search(text[:offset])
    own = []
    if word is None or "." not in word[0]:
        begun = word[0] if word else ""
        start = offset - len(begun)
        own = sorted({name for name, place in bindings(text) if place != start})
        own = [name for name in own if name.startswith(begun)]
    words = dict.fromkeys(own, "a name of the program")
    for each in found:
        words.setdefault(each.text, each.display_meta_text)
    return start, list(words.items())
