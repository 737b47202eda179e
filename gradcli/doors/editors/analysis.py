"""What an editor asks about a text, found by reading it: nothing of it runs."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from gradcli.doors.editors.names import Names, header_of
from gradcli.errors import GradcliError, Source
from gradcli.language.parser.lexer import KEYWORDS
from gradcli.language.tree import syntax as tree
from gradcli.questions.port.refusals import refusals
from gradcli.repl.completion import EntryCompleter
from gradcli.session import Session
from gradcli.show.help.op_page import op_help

_BEFORE = re.compile(r"[A-Za-z_][\w.]*$")
_BEHIND = re.compile(r"\w*")
_MEANT = re.compile(r"did you mean `([A-Za-z_][\w.]*)`\?")
_WRITTEN = re.compile(r"^help: (?:write|use) `([^`…]+)`", re.MULTILINE)
_LEAST_ALIKE = 0.5


class Unnamed(Exception):
    """A name that cannot be given another one; says why."""


def problems(name: str, text: str) -> list[GradcliError]:
    """What a run would refuse in a text, in its order; each error has a span."""
    return [error for error in refusals(Source(name, text)) if error.span is not None]


def fix_of(text: str, start: int, end: int, help: str | None) -> tuple[int, int, str] | None:
    """The change that a help proposes for what stands in a part of a text: from where to where, and
    the name that was meant, or what is to be written; None where it proposes neither.
    """
    written = _WRITTEN.search(help or "")
    if written is not None:
        return _rewritten(text, start, end, written[1])
    meant = _MEANT.search(help or "")
    if meant is None:
        return None
    word = meant[1].rpartition(".")[2]

    def likeness(match: re.Match[str]) -> float:
        return SequenceMatcher(None, match[0], word).ratio()

    match = max(re.finditer(r"[A-Za-z_]\w*", text[start:end]), key=likeness, default=None)
    if match is None or likeness(match) < _LEAST_ALIKE:
        return None
    return start + match.start(), start + match.end(), meant[1]


def _rewritten(text: str, start: int, end: int, new: str) -> tuple[int, int, str] | None:
    """The change that puts what a help writes in the place of a part, and of what stands before it
    where that begins the same; None where the text then has as many problems.
    """
    line = text.rfind("\n", 0, start) + 1
    alike = (begin for begin in range(line, start) if new.startswith(text[begin:start]))
    count = len(problems("", text))
    for begin in (next(alike, start), start):
        before, behind = text[:begin], text[end:]
        parted = " " if _parts_of_a_word(before[-1:], new[:1]) else ""
        word = parted + new + (" " if _parts_of_a_word(new[-1:], behind[:1]) else "")
        if len(problems("", before + word + behind)) < count:
            return begin, end, word
    return None


def _parts_of_a_word(one: str, other: str) -> bool:
    return f"_{one}{other}".isidentifier() and bool(one and other)


def name_at(text: str, offset: int) -> str:
    """The dotted name around a place, up to the end of its part there; "" for none."""
    behind = _BEHIND.match(text, offset)
    before = _BEFORE.search(text[: behind.end() if behind else offset])
    return before[0] if before else ""


def definition(text: str, offset: int) -> tuple[int, int] | None:
    """Where the name at a place got its value."""
    return Names(text).definition(offset)


def documentation(text: str, offset: int) -> str:
    """What is known of the name at a place: the user's function, or the page of an op."""
    name = name_at(text, offset)
    names = Names(text)
    own = names.function_at(offset)
    if own is not None:
        return header_of(own)
    if names.at(offset) is not None and "." not in name and names.definition(offset) is not None:
        return ""  # a name of the program's, whatever an op of that name does
    page = op_help(name) if name else None
    attribute = names.attribute_at(offset)
    if page is None and attribute is not None:
        page = op_help(f"Tensor.{attribute.name}")
    return page or ""


def renamed(text: str, offset: int, new: str) -> list[tuple[int, int]]:
    """Where the variable at a place stands, to be called otherwise.

    Raises:
        Unnamed: there is none, or the new name is no name or is taken.
    """
    names = Names(text)
    name = names.at(offset)
    places = [] if name is None else names.alike(name)
    if name is None or not any(each.binds for each in places):
        raise Unnamed("the program gives no value to a name here")
    if any(each.imported for each in places):
        raise Unnamed(f"`{name.name}` is the name of what is imported: `import … as {new}`")
    if not new.isidentifier() or new in KEYWORDS:
        raise Unnamed(f"{new!r} is no name")
    if any(each.name == new for each in names.occurrences):
        raise Unnamed(f"`{new}` is a name of the program already")
    return [(each.start, each.end) for each in places]


def completions(text: str, offset: int) -> tuple[int, list[tuple[str, str]]]:
    """What can go on at a place: where the word there begins, and words with what they are."""
    offers = _BEFORE.search(text[:offset])
    word = offers[0] if offers else ""
    receiver, _, begun = word.rpartition(".")
    names = Names(_without_line(text, offset))
    session = Session()
    with session.running():
        own = _members(names, receiver, offset, session) if receiver else {}
        completer = EntryCompleter(session)
        document = Document(text[:offset])
        others = list(completer.get_completions(document, CompleteEvent()))
    start = offset - len(begun)
    if not receiver and (others or begun):
        bound = {each.name for each in names.occurrences if each.binds}
        own = dict.fromkeys(sorted(bound), "a name of the program")
    elif others:
        start = offset + min(each.start_position for each in others)
    words = {name: what for name, what in own.items() if name.startswith(begun)}
    for each in others:
        words.setdefault(each.text, each.display_meta_text)
    return start, list(words.items())


def _without_line(text: str, offset: int) -> str:
    """The text without the line that is being typed, in whose place nothing happens."""
    first = text.rfind("\n", 0, offset) + 1
    last = text.find("\n", offset)
    line = text[first : len(text) if last < 0 else last]
    indent = line[: len(line) - len(line.lstrip())]
    return text[:first] + indent + "pass" + text[first + len(line) :]


def _members(names: Names, receiver: str, offset: int, session: Session) -> dict[str, str]:
    """The members that the user's class of a name has; the session gets a module of that name where
    it is one, for those of every module.
    """
    value = names.assigned(receiver)
    owner = names.class_around(receiver, offset) or names.class_of_name(receiver)
    function = value.function if isinstance(value, tree.Call) else None
    is_layer = function is not None and function.span.text.startswith(("nn.", "torch.nn."))
    if (owner is not None and owner.bases) or (owner is None and is_layer):
        session.bind(receiver, session.evaluate(Source("text", "torch.nn.Module()")))
    if owner is None:
        return {}
    return dict.fromkeys(names.members(owner), f"of {owner.name}")
