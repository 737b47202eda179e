"""`format`, f-strings, `'…'.format(…)` and `'…' % …`.

The host formats numbers and strings, one value at a time, with a width and a precision that were
checked. Everything that reaches into values is done here, because the host's own would follow any
attribute: `'{0.__class__}'.format(1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import LARGEST_FORMAT, check_text
from gradcli.language.objects.borders import SCALARS, is_array
from gradcli.language.objects.exceptions import HOST_ERRORS, Raised, converted
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import type_name
from gradcli.record import Record

HOST_FORMAT: set[type] = set()
"""Further types that the host formats: dates and times."""

_FORMATTED = frozenset({int, float, complex, bool, str})

_CONVERTED: dict[str, type] = {**dict.fromkeys("diu", int), **dict.fromkeys("eEfFgG", float)}
"""The `%` fields that take the number of a tensor, an array or an instance, and which they take."""


def format_value(value: Any, spec: str) -> str:
    """`format(value, spec)`; a tensor of no dimension is formatted as its number.

    Raises E202 for a value that takes no spec, E204 for a spec that does not fit, E602 for too
    wide a result.
    """
    if type(value) is Tensor and value.array.ndim == 0:
        value = value.item()
    if type(value) in _FORMATTED or type(value) in SCALARS:
        if not spec and type(value) in _FORMATTED:
            return text(value)
        if spec not in _CHECKED:
            _check_numbers(spec)
        try:
            return format(value, spec)
        except HOST_ERRORS as error:
            raise converted(error) from error
    written: Any = type(value).__format__
    if hasattr(type(value), "language_class") and written is not object.__format__:
        return str(written(value, spec))
    if spec and type(value) in HOST_FORMAT:
        _check_numbers(spec)
        return format(value, spec)
    if spec and is_array(value):
        raise type_error("unsupported format string passed to numpy.ndarray.__format__")
    if spec:
        raise type_error(
            f"a value of type {type_name(value)} takes no format spec",
            help="a number does, and so does a tensor of no dimension: `x.mean()`, `x[0]`",
        )
    return text(value)


_CHECKED: set[str] = set()
"""Formats whose widths are within the limit, which most programs use again and again."""

_MOST_CHECKED = 1000
"""How many of them are kept."""


def _check_numbers(spec: str) -> None:
    """Raise E602 if a width or precision in a format is beyond the limit."""
    digits = ""
    for character in f"{spec} ":
        if character.isdigit():
            digits += character
            # Leading zeros count too: the host reads them all.
            if len(digits) > 20 or int(digits) > LARGEST_FORMAT:
                raise GradcliError(
                    "E602", f"a format wider than {LARGEST_FORMAT:,} characters is too large"
                )
        else:
            digits = ""
    if len(_CHECKED) < _MOST_CHECKED and len(spec) < _MOST_CHECKED:
        _CHECKED.add(spec)


def is_checked(spec: str) -> bool:
    """Whether the widths in a format are within the limit."""
    try:
        _check_numbers(spec)
    except GradcliError:
        return False
    return True


def convert(value: Any, conversion: str) -> Any:
    """A value after `!r`, `!s` or `!a`; itself without one."""
    if conversion == "r":
        return display(value)
    if conversion == "s":
        return text(value)
    if conversion == "a":
        return ascii_of(display(value))
    return value


def ascii_of(shown: str) -> str:
    """A text with everything beyond ASCII escaped."""
    return shown.encode("ascii", "backslashreplace").decode("ascii")


class Fields(Record):
    """The arguments of one `format` call, handed out by number, by name or in turn.

    Attributes:
        attribute, item: read what a field such as `{0.shape[1]}` names, as far as programs may.
        next_number: -1 once fields were numbered by hand.
    """

    arguments: Sequence[Any]
    keywords: Mapping[str, Any]
    attribute: Callable[[Any, str], Any]
    item: Callable[[Any, Any], Any]
    next_number: int = 0

    def value(self, field: str) -> Any:
        """The value of a field such as `0`, `name`, `0.shape[1]` or the empty one."""
        end = min((at for at in (field.find("."), field.find("[")) if at >= 0), default=len(field))
        value = self._first(field[:end])
        rest = field[end:]
        while rest:
            if rest[0] == ".":
                stops = [at for at in (rest.find(".", 1), rest.find("[", 1)) if at >= 0]
                end = min(stops, default=len(rest))
                value = self.attribute(value, rest[1:end])
            else:
                end = rest.find("]") + 1
                if not end:
                    raise value_error("a `[` in the format string is never closed")
                key = rest[1 : end - 1]
                value = self.item(value, int(key) if key.isdecimal() and len(key) < 20 else key)
                if rest[end : end + 1] not in ("", ".", "["):
                    raise value_error("after `]` in a format field comes `.` or `[`")
            rest = rest[end:]
        return value

    def _first(self, name: str) -> Any:
        if name and not name.isdecimal():
            if name not in self.keywords:
                raise Raised("KeyError", display(name), (name,), "E207")
            return self.keywords[name]
        if name:
            if self.next_number > 0:
                raise value_error("a format string numbers all its fields or none")
            self.next_number = -1
            number = int(name) if len(name) < 20 else len(self.arguments)
        else:
            if self.next_number < 0:
                raise value_error("a format string numbers all its fields or none")
            number = self.next_number
            self.next_number += 1
        if number >= len(self.arguments):
            raise GradcliError(
                "E302",
                f"the format string has a field {number}, and no argument belongs to it",
                text=f"Replacement index {number} out of range for positional args tuple",
            )
        return self.arguments[number]

    def fill(self, template: str, depth: int = 2) -> str:
        """The template with its fields replaced; a spec may hold fields of its own."""
        from string import Formatter

        if depth == 0:
            raise value_error("a format spec inside a format spec holds no fields")
        pieces = []
        length = 0
        try:
            parts = list(Formatter().parse(template))
        except ValueError as error:
            raise converted(error) from error
        for literal, field, spec, conversion in parts:
            piece = literal
            if field is not None:
                if conversion not in (None, "r", "s", "a"):
                    raise value_error(f"there is no conversion !{conversion}")
                value = convert(self.value(field), conversion or "")
                filled = self.fill(spec, depth - 1) if spec else ""
                piece += format_value(value, filled)
            pieces.append(piece)
            length += len(piece)
            check_text(length)
        return "".join(pieces)


def percent(template: str, values: Any) -> str:
    """`template % values`.

    Raises E202 for values that are too few, too many or of a wrong type, E204 for a malformed
    template.
    """
    mapping = values if isinstance(values, dict) else None
    arguments = tuple(values) if isinstance(values, tuple) else (values,)
    used = 0
    pieces = []
    length = 0
    at = 0
    while at < len(template):
        start = template.find("%", at)
        if start < 0:
            start = len(template)
        piece = template[at:start]
        at = start
        if start < len(template):
            key, spec, stars, at = _directive(template, start + 1)
            if spec == "%":
                piece += "%"
            else:
                numbers = []
                for _ in range(stars):
                    numbers.append(_argument(arguments, used))
                    used += 1
                if key is None:
                    value = _argument(arguments, used)
                    used += 1
                elif mapping is None:
                    raise type_error(f"`%({key})` needs a dict on the right of `%`")
                elif key not in mapping:
                    raise Raised("KeyError", display(key), (key,), "E207")
                else:
                    value = mapping[key]
                piece += _percent_value(spec, numbers, value)
        pieces.append(piece)
        length += len(piece)
        check_text(length)
    if used < len(arguments) and mapping is None:
        raise type_error(
            "the template has fewer `%` fields than there are values",
            text="not all arguments converted during string formatting",
        )
    return "".join(pieces)


def _argument(arguments: tuple[Any, ...], number: int) -> Any:
    if number >= len(arguments):
        raise type_error(
            "the template has more `%` fields than there are values",
            text="not enough arguments for format string",
        )
    return arguments[number]


def _directive(template: str, at: int) -> tuple[str | None, str, int, int]:
    """The field after a `%`: key, flags, width, precision, letter, count of `*`, and end."""
    key = None
    if template[at : at + 1] == "(":
        end = template.find(")", at)
        if end < 0:
            raise value_error("a `%(` in the template is never closed")
        key = template[at + 1 : end]
        at = end + 1
    start = at
    while at < len(template) and template[at] in "-+ #0123456789.*":
        at += 1
    flags = template[start:at]
    while at < len(template) and template[at] in "hlL":
        at += 1
    if at == len(template):
        raise value_error("the template ends in the middle of a `%` field")
    _check_numbers(flags)
    return key, flags + template[at], flags.count("*"), at + 1


def _percent_value(spec: str, numbers: list[Any], value: Any) -> str:
    """One value as a `%` field with its flags writes it."""
    letter = spec[-1]
    for number in numbers:
        if not isinstance(number, int):
            raise type_error("`*` in a `%` field takes an integer")
        if abs(number) > LARGEST_FORMAT:
            _check_numbers(str(abs(number)))
    if letter in "sra":
        value = convert(value, letter)
        spec = f"{spec[:-1]}s"
    elif letter not in "diouxXeEfFgGc":
        raise value_error(f"there is no `%{letter}` field")
    try:
        if letter in _CONVERTED and type(value) not in _FORMATTED and hasattr(value, "__float__"):
            value = _CONVERTED[letter](value)
        if type(value) not in _FORMATTED and type(value) not in SCALARS:
            raise type_error(f"`%{letter}` takes a number, not {type_name(value)}")
        return f"%{spec}" % (*numbers, value)
    except HOST_ERRORS as error:
        raise converted(error) from error
