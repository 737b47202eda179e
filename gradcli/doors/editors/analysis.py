"""What an editor asks about a text, found by reading it: nothing of it runs. The names
have their scopes, functions and classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from gradcli.errors import GradcliError, Source, Span
from gradcli.language.parser.lexer import KEYWORDS
from gradcli.language.parser.parser import read_statements
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import (
    Scope,
    captured_names,
    class_scope,
    comprehension_scope,
    function_scope,
)
from gradcli.questions.port.refusals import refusals
from gradcli.record import Record
from gradcli.repl.completion import EntryCompleter
from gradcli.session import Session
from gradcli.show.help.ops import op_help

# --- names ----------------------------------------------------------------------------------------


_NEVER = -1

_Part = tuple[Any, Scope, int]
"""A part of the tree, the scope that it is in, and where it has its value from as a target."""


class Occurrence(Record):
    """A name where it stands.

    Attributes:
        scope: that of the function, class or program whose name it is.
        since: the offset from which on it has the value that it gets here, `_NEVER` for a use.
        imported: whether it does so by an import without `as`, whose text the name is.
    """

    start: int
    name: str
    scope: Scope
    since: int = _NEVER
    imported: bool = False

    @property
    def binds(self) -> bool:
        """Whether it gets a value here."""
        return self.since != _NEVER

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.start + len(self.name)


class Names:
    """The names of a text.

    Attributes:
        text: the text; statements that cannot be read are passed by.
        occurrences: every name of a variable, by where it stands.
        functions, classes: the definitions, in order.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        statements, _ = read_statements(Source("text", text))
        self.statements = list(statements)
        self.functions: list[tree.Def] = []
        self.classes: list[tree.Class] = []
        self.occurrences: list[Occurrence] = []
        self._calls: list[tree.Call] = []
        self._parameters: dict[int, Scope] = {}
        self._attributes: list[tree.Attribute] = []
        self._read()
        for call in self._calls:
            self._keyword_arguments(call)
        places: dict[int, Occurrence] = {}
        for each in sorted(self.occurrences, key=lambda each: not each.binds):
            places.setdefault(each.start, each)  # what a pattern binds it has for a name, too
        self.occurrences = sorted(places.values(), key=lambda each: each.start)

    # --- questions ------------------------------------------------------------------------------

    def at(self, offset: int) -> Occurrence | None:
        """The variable at a place."""
        for each in self.occurrences:
            if each.start <= offset <= each.end:
                return each
        return None

    def attribute_at(self, offset: int) -> tree.Attribute | None:
        """The attribute whose name stands at a place."""
        for each in self._attributes:
            if each.name_span.start <= offset <= each.name_span.end:
                return each
        return None

    def alike(self, name: Occurrence) -> list[Occurrence]:
        """Where the same variable stands."""
        return [e for e in self.occurrences if e.name == name.name and e.scope is name.scope]

    def definition(self, offset: int) -> tuple[int, int] | None:
        """Where the name at a place got its value: the last time before it, or else the first; of
        an attribute where its class defines it.
        """
        attribute = self.attribute_at(offset)
        if attribute is not None:
            return self._definition_of_attribute(attribute)
        name = self.at(offset)
        bound = [each for each in self.alike(name) if each.binds] if name else []
        if not bound:
            return None
        before = [e for e in bound if e.since <= offset or e.start <= offset <= e.end]
        one = before[-1] if before else bound[0]
        return one.start, one.end

    def _definition_of_attribute(self, attribute: tree.Attribute) -> tuple[int, int] | None:
        owner = self.class_of(attribute.value)
        member = None if owner is None else self.members(owner).get(attribute.name)
        if isinstance(member, tree.Def):
            start = self._place(member.span, member.name, r"def\s+")
            return start, start + len(member.name)
        return None if member is None else (member.start, member.end)

    def function_at(self, offset: int) -> tree.Def | tree.Class | None:
        """The user's function, method or class that the name at a place is."""
        attribute = self.attribute_at(offset)
        if attribute is not None:
            owner = self.class_of(attribute.value)
            member = None if owner is None else self.members(owner).get(attribute.name)
            return member if isinstance(member, tree.Def) else None
        place = self.definition(offset)
        defined: list[tree.Def | tree.Class] = [*self.functions, *self.classes]
        return next((e for e in defined if place and place[0] == self._defined_at(e)), None)

    def class_named(self, name: str) -> tree.Class | None:
        """The class of a name, the last one."""
        return next((each for each in reversed(self.classes) if each.name == name), None)

    def class_of(self, value: tree.Expression) -> tree.Class | None:
        """The user's class that a value is of, where it can be read: `self`, a call of a class, or
        a name that was assigned one.
        """
        if isinstance(value, tree.Call) and isinstance(value.function, tree.Name):
            return self.class_named(value.function.name)
        if not isinstance(value, tree.Name):
            return None
        return self.class_around(value.name, value.span.start) or self.class_of_name(value.name)

    def class_around(self, receiver: str, offset: int) -> tree.Class | None:
        """The class around a place in a method that calls its receiver so."""
        for each in self.classes:
            for method in _methods(each):
                parameters = method.parameters.parameters
                is_own = bool(parameters) and parameters[0].name == receiver
                if is_own and method.span.start <= offset <= method.span.end:
                    return each
        return None

    def class_of_name(self, name: str) -> tree.Class | None:
        """The class whose instance a name was assigned last."""
        call = self.assigned(name)
        return self.class_of(call) if isinstance(call, tree.Call) else None

    def assigned(self, name: str) -> tree.Expression | None:
        """What a name was assigned last."""
        value: tree.Expression | None = None
        for node in tree.nodes_of(self.statements):
            if isinstance(node, tree.Assign):
                names = [each.name for each in node.targets if isinstance(each, tree.Name)]
                value = node.value if name in names else value
        return value

    def members(self, owner: tree.Class) -> dict[str, Any]:
        """What an instance of a class has: methods, and the places of other attributes; those of
        its bases in the text too.
        """
        members: dict[str, Any] = {}
        waiting, seen = [owner], set()
        while waiting:
            each = waiting.pop(0)
            if each.name in seen:
                continue
            seen.add(each.name)
            for name, member in self._own_members(each):
                members.setdefault(name, member)
            bases = [self.class_named(b.name) for b in each.bases if isinstance(b, tree.Name)]
            waiting += [base for base in bases if base is not None]
        return members

    def _own_members(self, owner: tree.Class) -> Iterator[tuple[str, Any]]:
        for method in _methods(owner):
            parameters = method.parameters.parameters
            receiver = parameters[0].name if parameters else None
            for node in tree.nodes_of(method.body):
                targets = node.targets if isinstance(node, tree.Assign) else []
                for target in targets:
                    if (
                        isinstance(target, tree.Attribute)
                        and isinstance(target.value, tree.Name)
                        and target.value.name == receiver
                    ):
                        yield target.name, target.name_span
        for statement in owner.body:
            if isinstance(statement, tree.Def):
                yield statement.name, statement
            elif isinstance(statement, tree.Assign):
                for target in statement.targets:
                    if isinstance(target, tree.Name):
                        yield target.name, target.span

    # --- reading --------------------------------------------------------------------------------

    def _read(self) -> None:
        program = Scope()
        waiting: list[_Part] = [(each, program, False) for each in self.statements]
        while waiting:
            part, scope, since = waiting.pop()
            if isinstance(part, (list, tuple)):
                waiting += [(each, scope, since) for each in part]
            elif isinstance(part, tree.Name):
                self._occurs(part.span.start, part.name, scope, since)
            elif isinstance(part, tree.Syntax):
                waiting += self._parts(part, scope, since)

    def _parts(self, node: Any, scope: Scope, since: int) -> list[_Part]:
        """The parts of a node with their scopes, and whether they are targets."""
        if isinstance(node, (tree.Def, tree.Lambda)):
            return self._function(node, scope)
        if isinstance(node, tree.Class):
            self.classes.append(node)
            self._occurs(place := self._defined_at(node), node.name, scope, place)
            inner = _within(class_scope, scope, node.name, node.body)
            outer = [node.bases, node.keywords, node.decorators]
            return [*((each, scope, _NEVER) for each in outer), (node.body, inner, _NEVER)]
        if isinstance(node, tree.Comprehension):
            inner = comprehension_scope(scope, node.clauses)
            first, *others = node.clauses
            parts = [
                (first.iterable, scope, _NEVER),
                (first.target, inner, first.target.span.start),
            ]
            own = [node.element, node.value, first.conditions, others]
            return [*parts, *((each, inner, _NEVER) for each in own)]
        self._names_of_words(node, scope)
        targets = _targets(node)
        assigns = isinstance(node, (tree.Assign, tree.AugmentedAssign))
        parts = [(e, scope, node.span.end if assigns else e.span.start) for e in targets]
        names = [name for name in node.fields if name != "span"]
        rest = [getattr(node, name) for name in names]
        if isinstance(node, (tree.Tuple, tree.List, tree.Starred)):
            return [(each, scope, since) for each in rest]
        held = {id(each) for each in targets}
        return [*parts, *((each, scope, _NEVER) for each in _without(rest, held))]

    def _function(self, node: tree.Def | tree.Lambda, scope: Scope) -> list[_Part]:
        parameters = node.parameters.parameters
        body: Any = node.body if isinstance(node, tree.Def) else [node.body]
        name = node.name if isinstance(node, tree.Def) else "<lambda>"
        inner = _within(function_scope, scope, name, node.parameters, body)
        outer: list[Any] = [each.default for each in parameters]
        if isinstance(node, tree.Def):
            self.functions.append(node)
            self._parameters[id(node)] = inner
            self._occurs(place := self._defined_at(node), node.name, scope, place)
            outer += node.decorators
        for each in parameters:
            if each.name:
                place = self._place(each.span, each.name)
                self._occurs(place, each.name, inner, place)
        return [*((each, scope, _NEVER) for each in outer), (body, inner, _NEVER)]

    def _names_of_words(self, node: Any, scope: Scope) -> None:
        """Note the names of a node that are no nodes of their own."""
        if isinstance(node, tree.Attribute):
            self._attributes.append(node)
        elif isinstance(node, tree.Call):
            self._calls.append(node)
        elif isinstance(node, tree.Global):
            for name in node.names:
                self._occurs(self._place(node.span, name), name, scope, _NEVER)
        elif isinstance(node, (tree.Handler, tree.Case)) and node.name:
            place = self._place(node.span, node.name, r"as\s+")
            self._occurs(place, node.name, scope, place)
        elif isinstance(node, (tree.Import, tree.FromImport)):
            for word, alias in node.names:
                name = alias or word.partition(".")[0]
                if name != "*":
                    before = r"\bas\s+" if alias else r"\bimport\b.*?"
                    place = self._place(node.span, name, before)
                    self._occurs(place, name, scope, place, imported=alias is None)

    def _keyword_arguments(self, call: tree.Call) -> None:
        """Note the keywords of a call of a function of the text: they are its parameters."""
        names = {each.name for each in call.arguments if each.name}
        if not names:
            return
        if isinstance(call.function, tree.Attribute):
            function: Any = self.function_at(call.function.name_span.start)
        else:
            function = self.function_at(call.function.span.start)
        if isinstance(function, tree.Class):
            function = self.members(function).get("__init__")
        inner = self._parameters.get(id(function))
        known = {} if inner is None else {e.name for e in function.parameters.parameters}
        for each in call.arguments:
            if inner is not None and each.name and each.name in known:
                self.occurrences.append(Occurrence(each.span.start, each.name, inner))

    def _occurs(
        self, start: int, name: str, scope: Scope, since: int, *, imported: bool = False
    ) -> None:
        self.occurrences.append(Occurrence(start, name, _owner(scope, name), since, imported))

    def _defined_at(self, node: tree.Def | tree.Class) -> int:
        word = "def" if isinstance(node, tree.Def) else "class"
        return self._place(node.span, node.name, rf"\b{word}\s+")

    def _place(self, span: Span, name: str, before: str = "") -> int:
        match = re.search(rf"{before}(?<!\w)({re.escape(name)})(?!\w)", span.text, re.DOTALL)
        return span.start + (match.start(1) if match else 0)


def header_of(node: tree.Def | tree.Class) -> str:
    """A function's or class's first line, and the text that documents it."""
    word = "def" if isinstance(node, tree.Def) else "class"
    source = node.span.source.text
    start = re.compile(rf"\b{word}\s+{re.escape(node.name)}\b").search(source, node.span.start)
    begin = start.start() if start else node.span.start
    end = node.body[0].span.start if node.body else node.span.end
    header = source[begin:end].rstrip().removesuffix(":")
    first = node.body[0] if node.body else None
    text = first.value if isinstance(first, tree.ExpressionStatement) else None
    said = text.value if isinstance(text, tree.Constant) and isinstance(text.value, str) else ""
    return " ".join(header.split()) + (f"\n\n{said.strip()}" if said else "")


def _methods(owner: tree.Class) -> list[tree.Def]:
    return [each for each in owner.body if isinstance(each, tree.Def)]


def _within(make: Any, scope: Scope, *parts: Any) -> Scope:
    """A scope inside another; as if it had no names where its `nonlocal` is an error."""
    try:
        inner: Scope = make(scope, *parts)
    except GradcliError:
        inner = Scope(scope)
    return inner


def _owner(scope: Scope, name: str) -> Scope:
    """The scope whose name this is."""
    distance = scope.distance(name)
    while scope.parent is not None and (distance is None or distance):
        scope = scope.parent
        distance = None if distance is None else distance - 1
    return scope


def _targets(node: Any) -> list[Any]:
    """The parts of a node that get values."""
    if isinstance(node, (tree.Assign, tree.Del)):
        return list(node.targets)
    if isinstance(node, (tree.AugmentedAssign, tree.For, tree.ComprehensionFor)):
        return [node.target]
    if isinstance(node, tree.With):
        return [target for _, target in node.items if target is not None]
    if isinstance(node, tree.NamedExpression):
        return [node.name]
    if isinstance(node, tree.Case):
        captured = set(captured_names(node.pattern))
        parts = tree.nodes_of(node.pattern)
        return [each for each in parts if isinstance(each, tree.Name) and each.name in captured]
    return []


def _without(parts: Iterable[Any], held: set[int]) -> Iterator[Any]:
    """All parts but those held, lists of them taken apart."""
    for each in parts:
        if isinstance(each, (list, tuple)):
            yield from _without(each, held)
        elif id(each) not in held:
            yield each


# --- analysis -------------------------------------------------------------------------------------


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
