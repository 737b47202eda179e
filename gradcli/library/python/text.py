"""The modules `string`, `re`, `textwrap`, `pprint` and `unicodedata`: texts.

A pattern of `re` that may take time exponential in the text is refused. The host tries a pattern by
going back and trying again. Where a repeat stands inside a repeat, or a choice inside one, the same
text may be read in ever so many ways. Such a pattern is let through only if what is inside cannot
be read in two ways: a repeat inside must be followed by a character that it does not take itself,
and the choices must begin with different characters.
"""

from __future__ import annotations

import pprint as host_pprint
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import string
import textwrap
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from gradcli.errors import GradcliError
from gradcli.language.events import Printed
from gradcli.language.functions.calls import call
from gradcli.language.limits import charge, check_nesting, check_text
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.iteration import Iterator, drawing
from gradcli.language.objects.repr import display
from gradcli.language.objects.repr import text as written
from gradcli.language.objects.types import EXCEPTIONS, Hosted, by_name, called, check_kind, names
from gradcli.state import active

# --- patterns that end ----------------------------------------------------------------------------


_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_MANY = 8
"""From so many times on a repeat counts as one without end."""

_LONGEST = 2000
_TRIED = [chr(code) for code in range(128)] + ["é", "中"]


def checked_pattern(pattern: str, flags: int) -> int:
    """How many repeats without end the pattern has; raises E602 for one that may take for ever."""
    if len(pattern) > _LONGEST:
        raise GradcliError("E602", f"a pattern of more than {_LONGEST:,} characters is too long")
    tree = parser.parse(pattern, flags)
    _check(tree, False)
    return sum(1 for op, argument in _items(tree) if op in _REPEATS and argument[1] >= _MANY)


def _items(tree: Any) -> Iterable[tuple[Any, Any]]:
    """Every part of a pattern."""
    for op, argument in tree:
        yield op, argument
        for inner in _inside(op, argument):
            yield from _items(inner)


_INSIDE: dict[Any, Callable[[Any], list[Any]]] = {
    **dict.fromkeys((*_REPEATS, sre.POSSESSIVE_REPEAT), lambda argument: [argument[2]]),
    **dict.fromkeys((sre.ASSERT, sre.ASSERT_NOT), lambda argument: [argument[1]]),
    sre.ATOMIC_GROUP: lambda argument: [argument],
    sre.BRANCH: lambda argument: list(argument[1]),
    sre.GROUPREF_EXISTS: lambda argument: [part for part in argument[1:] if part is not None],
    sre.SUBPATTERN: lambda argument: [argument[3]],
}
"""The patterns inside a part, by its kind."""


def _inside(op: Any, argument: Any) -> list[Any]:
    return _INSIDE[op](argument) if op in _INSIDE else []


def _check(tree: Any, repeated: bool) -> None:
    parts = list(tree)
    for number, (op, argument) in enumerate(parts):
        many = op in _REPEATS and argument[1] >= _MANY
        if repeated and many and not _is_ended(argument[2], parts[number + 1 :]):
            raise _endless("a repeat inside a repeat")
        if repeated and op is sre.BRANCH and not _are_different(argument[1]):
            raise _endless("choices that begin alike inside a repeat")
        if repeated and op is sre.GROUPREF:
            raise _endless("a group is repeated inside a repeat")
        for inner in _inside(op, argument):
            _check(inner, repeated or many)


def _endless(what: str) -> GradcliError:
    return GradcliError(
        "E602",
        f"the pattern may take for ever: {what}",
        help="end what is repeated with a character that it does not hold: `(?:\\d+,)*`",
    )


def _is_ended(body: Any, following: list[Any]) -> bool:
    """Whether a repeat is followed by what it does not take."""
    taken = _first(list(body))
    for op, argument in following:
        ending = _first([(op, argument)])
        if taken is None or ending is None or taken & ending:
            return False
        return not (op in _REPEATS and argument[0] == 0)
    return False


def _are_different(choices: list[Any]) -> bool:
    seen: set[str] = set()
    for choice in choices:
        first = _first(list(choice))
        if not first or seen & first:
            return False
        seen |= first
    return True


def _first(parts: list[Any]) -> set[str] | None:
    """The characters that a part may begin with; None where that is not known."""
    if not parts:
        return None
    op, argument = parts[0]
    if op is sre.SUBPATTERN:
        return _first(list(argument[3]))
    if op in _REPEATS:
        return _first(list(argument[2])) if argument[0] > 0 else None
    if op is sre.BRANCH:
        signs: set[str] = set()
        for choice in argument[1]:
            first = _first(list(choice))
            if first is None:
                return None
            signs |= first
        return signs
    if op in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
        return {sign for sign in _TRIED if _takes(op, argument, sign)} | (
            {chr(argument)} if op is sre.LITERAL else set()
        )
    return None


def _takes(op: Any, argument: Any, sign: str) -> bool:
    """Whether a part that is one character is this one, in either case."""
    codes = {ord(sign.lower()), ord(sign.upper()[0])}
    if op is sre.ANY:
        return True
    if op is sre.LITERAL:
        return argument in codes
    if op is sre.NOT_LITERAL:
        return argument not in codes
    if op is sre.RANGE:
        return any(argument[0] <= code <= argument[1] for code in codes)
    if op is sre.CATEGORY:
        negated = "NOT" in str(argument)
        kind = str(argument).rpartition("_")[2]
        member = {
            "DIGIT": sign.isdigit(),
            "SPACE": sign.isspace(),
            "WORD": sign.isalnum() or sign == "_",
        }.get(kind, True)
        return member != negated
    negated = bool(argument) and argument[0][0] is sre.NEGATE
    listed = argument[1:] if negated else argument
    return any(_takes(inner, value, sign) for inner, value in listed) != negated


# --- the modules ----------------------------------------------------------------------------------


class Template:
    """`string.Template(text)`."""

    __slots__ = ("template",)

    language_name: ClassVar[str] = "string.Template"
    language_attributes = names("safe_substitute substitute template")

    def __init__(self, template: str) -> None:
        self.template = _string(template)

    def substitute(self, mapping: Any = None, /, **kws: Any) -> str:
        """The text with the values of its `$names`."""
        return string.Template(self.template).substitute(self._values(mapping, kws))

    def safe_substitute(self, mapping: Any = None, /, **kws: Any) -> str:
        """The same, with names as they are where there is no value."""
        return string.Template(self.template).safe_substitute(self._values(mapping, kws))

    def _values(self, mapping: Any, named: dict[str, Any]) -> dict[str, str]:
        values = {key: written(value) for key, value in {**(mapping or {}), **named}.items()}
        check_text(sum(map(len, values.values())) * (1 + self.template.count("$")))
        return values


def capwords(s: str, sep: str | None = None) -> str:
    """`string.capwords(text)`."""
    return string.capwords(_string(s), sep)


STRING: dict[str, Any] = {
    name: getattr(string, name)
    for name in (
        "ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "octdigits",
        "printable", "punctuation", "whitespace",
    )
} | {"Template": Template, "capwords": capwords}  # fmt: skip
"""What `string` holds."""


def _string(value: Any) -> str:
    check_kind(value, str, "expected a string")
    return value


# --- re -------------------------------------------------------------------------------------------


class Match(Hosted):
    """What a pattern found."""

    __slots__ = ()

    language_name: ClassVar[str] = "re.Match"
    language_attributes = names("""end expand group groupdict groups lastgroup lastindex pos span
        start string""")

    def expand(self, template: str) -> str:
        """The template with the groups in it."""
        check_text(len(_string(template)) * (1 + len(self.host.string)))
        return self.host.expand(template)

    def __getitem__(self, group: Any) -> Any:
        return self.host[group]


class Pattern(Hosted):
    """`re.compile(pattern, flags)`."""

    __slots__ = ("power",)

    language_name: ClassVar[str] = "re.Pattern"
    language_attributes = names("""findall finditer flags fullmatch groups match pattern search
        split sub subn""")

    def __init__(self, pattern: str, flags: int) -> None:
        try:
            self.power = checked_pattern(_string(pattern), flags)
            self.host = re.compile(pattern, flags)
        except re.error as error:
            raise GradcliError("E204", str(error), raises="error") from error

    def _checked(self, text: Any) -> str:
        """A text that the pattern can be tried on within the limits; raises E602."""
        length = len(_string(text))
        charge(length)
        if self.power > 1 and length**self.power > _MOST_TRIES:
            raise GradcliError(
                "E602",
                f"a pattern with {self.power} repeats may take too long on {length:,} characters",
                help="split the text, or make the repeats of the pattern fewer",
            )
        return str(text)

    def _one(self, name: str, text: Any, limits: tuple[int, ...]) -> Match | None:
        match = getattr(self.host, name)(self._checked(text), *limits)
        return None if match is None else Match(match)

    def match(self, string: str, *limits: int) -> Match | None:
        """A match at the start of the text."""
        return self._one("match", string, limits)

    def fullmatch(self, string: str, *limits: int) -> Match | None:
        """A match of the whole text."""
        return self._one("fullmatch", string, limits)

    def search(self, string: str, *limits: int) -> Match | None:
        """The first match anywhere."""
        return self._one("search", string, limits)

    def findall(self, string: str, *limits: int) -> list[Any]:
        """All matches, or their groups."""
        return self.host.findall(self._checked(string), *limits)

    def finditer(self, string: str, *limits: int) -> Iterator:
        """All matches."""
        matches = self.host.finditer(self._checked(string), *limits)
        return drawing("callable_iterator", map(Match, matches))

    def split(self, string: str, maxsplit: int = 0) -> list[Any]:
        """The text between the matches."""
        return self.host.split(self._checked(string), maxsplit)

    def sub(self, repl: Any, string: str, count: int = 0) -> str:
        """The text with its matches replaced."""
        return self.subn(repl, string, count)[0]

    def subn(self, repl: Any, string: str, count: int = 0) -> tuple[str, int]:
        """The same, and how many there were."""
        text = self._checked(string)
        if isinstance(repl, str):
            many = sum(1 for _ in self.host.finditer(text))
            check_text(len(text) + many * (len(repl) + repl.count("\\") * len(text)))
            return self.host.subn(repl, text, count)
        return self.host.subn(lambda match: _string(call(repl, (Match(match),), {})), text, count)


_MOST_TRIES = 10**10
"""Steps that a pattern may take on a text, as far as can be said before."""


def compile(pattern: Any, flags: Any = 0) -> Pattern:
    """`re.compile(pattern, flags)`; raises E204 for none, E602 for one that may take for ever."""
    return pattern if type(pattern) is Pattern else Pattern(pattern, int(flags))


def _on_pattern(name: str) -> Callable[..., Any]:
    def apply(pattern: Any, *values: Any, flags: Any = 0, **named: Any) -> Any:
        return getattr(compile(pattern, flags), name)(*values, **named)

    return called(name, apply)


def escape(pattern: str) -> str:
    """`re.escape(text)`."""
    return re.escape(_string(pattern))


_FLAGS = "A ASCII DOTALL I IGNORECASE M MULTILINE S U UNICODE VERBOSE X"

RE: dict[str, Any] = {
    **by_name(Match, Pattern, compile, escape),
    "error": EXCEPTIONS["error"],
    **{name: int(getattr(re, name)) for name in _FLAGS.split()},
    **{
        name: _on_pattern(name)
        for name in ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")
    },
}
"""What `re` holds."""


# --- textwrap, pprint, unicodedata ---------------------------------------------------------------


def _wrapping(name: str) -> Callable[..., Any]:
    function = getattr(textwrap, name)

    def wrap(text: str, *values: Any, **named: Any) -> Any:
        for value in (*values, *named.values()):
            if isinstance(value, int):
                check_text(value)
            elif isinstance(value, str):
                check_text(len(value) * (1 + len(_string(text))))
        return function(_string(text), *values, **named)

    return called(name, wrap)


TEXTWRAP: dict[str, Any] = {
    name: _wrapping(name) for name in ("dedent", "fill", "indent", "shorten", "wrap")
}
"""What `textwrap` holds."""


def pformat(
    object: Any,
    indent: int = 1,
    width: int = 80,
    depth: int | None = None,
    *,
    compact: bool = False,
    sort_dicts: bool = True,
    underscore_numbers: bool = False,
) -> str:
    """`pprint.pformat(value)`: the value as text, over several lines where it is long."""
    check_nesting(object)
    check_text(int(indent) * 100)
    printer = _Printer(
        indent, width, depth, compact=compact, sort_dicts=sort_dicts,
        underscore_numbers=underscore_numbers,
    )  # fmt: skip
    return printer.pformat(object)


class _Printer(host_pprint.PrettyPrinter):
    """The host's printer, with the language's own text for values that are no collections."""

    def format(self, object: Any, context: Any, maxlevels: int, level: int) -> Any:
        if type(object) in (dict, list, tuple, str, int, float, bool):
            return super().format(object, context, maxlevels, level)
        return display(object), True, False


def pprint(object: Any, stream: Any = None, *values: Any, **named: Any) -> None:
    """`pprint.pprint(value)`."""
    shown = pformat(object, *values, **named) + "\n"
    if stream is None:
        active.state.emit(Printed(shown))
    else:
        call(get_attribute(stream, "write"), (shown,), {})


class PrettyPrinter:
    """`pprint.PrettyPrinter(indent=…, width=…)`."""

    __slots__ = ("settings", "stream")

    language_name: ClassVar[str] = "pprint.PrettyPrinter"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"pformat", "pprint"})

    def __init__(
        self,
        indent: int = 1,
        width: int = 80,
        depth: int | None = None,
        stream: Any = None,
        **settings: Any,
    ) -> None:
        self.settings = {"indent": indent, "width": width, "depth": depth, **settings}
        self.stream = stream

    def pformat(self, object: Any) -> str:
        """A value as text."""
        return pformat(object, **self.settings)

    def pprint(self, object: Any) -> None:
        """Print a value."""
        pprint(object, self.stream, **self.settings)


PPRINT: dict[str, Any] = {
    **by_name(PrettyPrinter, pformat, pprint),
    "pp": pprint,
}
"""What `pprint` holds."""


def normalize(form: Any, unistr: str, /) -> str:
    """`unicodedata.normalize(form, text)`."""
    check_text(18 * len(_string(unistr)))
    return unicodedata.normalize(form, unistr)


UNICODEDATA: dict[str, Any] = {
    name: getattr(unicodedata, name)
    for name in (
        "bidirectional", "category", "combining", "decimal", "digit", "lookup", "name", "numeric",
    )
} | {"normalize": normalize}  # fmt: skip
"""What `unicodedata` holds."""
