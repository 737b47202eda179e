"""The text of values: `str` and `repr`, Python's for Python's values, PyTorch's for tensors, and
never a host address; `format`, f-strings, `'…'.format(…)` and `'…' % …`.

The host formats numbers and strings, one value at a time, with a width and a precision that were
checked. Everything that reaches into values is done here, because the host's own would follow any
attribute: `'{0.__class__}'.format(1)`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.arrays.layout.sizes import Device
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.limits import DEEPEST_NESTING, LARGEST_FORMAT, check_text, too_deep
from gradcli.language.objects.borders import SCALARS, is_array
from gradcli.language.objects.exceptions import HOST_ERRORS, Raised, arguments_of, converted
from gradcli.language.objects.types import EXCEPTIONS, Hosted, LanguageType, host_name, type_name
from gradcli.record import Record
from gradcli.state import active, charge_tensors

HOST_TEXT: set[type] = {bytes, type(NotImplemented)}
"""Types whose text the host writes, as it is: all that they hold is plain."""

_PLAIN = frozenset({int, float, complex, bool, str, type(None), type(...), range, slice})


def text(value: Any) -> str:
    """`str(value)`, which `print` writes."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind in _PLAIN:
        return display(value)
    if kind in HOST_TEXT:
        return str(value)
    if isinstance(value, GradcliError) and not hasattr(kind, "language_class"):
        return value.text
    if kind in SCALARS or hasattr(kind, "language_str"):
        return str(value)
    if kind is Device or hasattr(kind, "language_class"):  # objects whose str may not be their repr
        written: Any = kind.__str__, kind.__repr__
        if written != (object.__str__, object.__repr__):
            return str(value)
    return display(value)


def display(value: Any) -> str:
    """`repr(value)`; raises E601 for deep nesting, E602 for too much text."""
    if type(value) in _PLAIN:
        try:
            return repr(value)
        except ValueError as error:  # an integer of more digits than Python converts
            raise converted(error) from error
    writer = _Writer()
    writer.write(value)
    return "".join(writer.pieces)


def numbered(kind: str, value: Any) -> str:
    """`<kind object at 0x1>` for a value that carries its printed number in `number`."""
    if not value.number:
        state = active.state
        state.object_ids += 1
        value.number = state.object_ids
    return f"<{kind} at {hex(value.number)}>"


_PIECE = 16
"""What a piece of text counts for beside its characters: many small ones take long."""


_AT_ONCE = 256
"""The most numbers that the host writes in one go."""

_NUMBERS = frozenset({int, float, complex, bool, type(None)})


class _Writer:
    """Collects the text of one value, with the containers that it is inside of."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.inside: set[int] = set()

    def put(self, piece: str) -> None:
        self.pieces.append(piece)
        self.length += len(piece) + _PIECE
        check_text(self.length)

    def write(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self.put(display(value))
        elif kind is list:
            if not self.numbers(value):
                self.sequence(value, "[", "]")
        elif kind is tuple:
            if not self.numbers(value):
                self.sequence(value, "(", ",)" if len(value) == 1 else ")")
        elif kind is set:
            self.sequence(value, "{", "}") if value else self.put("set()")
        elif kind is dict:
            self.mapping(value)
        elif kind is frozenset:
            self.put("frozenset(")
            if value:
                self.sequence(value, "{", "}")
            self.put(")")
        elif hasattr(kind, "language_write") and not _writes_itself(kind):
            value.language_write(self)
        elif kind in HOST_TEXT:
            self.put(repr(value))
        elif kind in _VIEWS:
            self.put(f"{_VIEWS[kind]}(")
            self.write(list(value))
            self.put(")")
        else:
            charge_tensors(4)
            self.put(_display_object(value))

    def enter(self, value: Any, recursive: str) -> bool:
        """Whether a container is to be written; one that holds itself is marked instead."""
        if id(value) in self.inside:
            self.put(recursive)
            return False
        if len(self.inside) == DEEPEST_NESTING:
            raise too_deep("containers")
        self.inside.add(id(value))
        return True

    def leave(self, value: Any) -> None:
        """A container is written, or was only asked about."""
        self.inside.remove(id(value))

    def numbers(self, values: list[Any] | tuple[Any, ...]) -> bool:
        """Write a list or tuple of numbers in one piece, which counts for as much as their pieces
        do; False, and nothing written, for any other, and one near a limit.
        """
        count = len(values)
        if (
            count > _AT_ONCE
            or len(self.inside) == DEEPEST_NESTING
            or not _NUMBERS.issuperset(map(type, values))
        ):
            return False
        try:
            written = repr(values)
        except ValueError:  # an integer of more digits than Python converts
            return False
        length = self.length + len(written) + _PIECE * (2 * count + 1 if count else 2)
        if length > active.state.limits.elements:
            return False
        self.pieces.append(written)
        self.length = length
        return True

    def sequence(self, values: Any, opening: str, closing: str) -> None:
        if not self.enter(values, f"{opening}...{closing[-1]}"):
            return
        self.put(opening)
        separator = ""
        for value in values:
            if separator:
                self.put(separator)
            self.write(value)
            separator = ", "
        self.put(closing)
        self.leave(values)

    def mapping(self, values: dict[Any, Any]) -> None:
        if not self.enter(values, "{...}"):
            return
        separator = "{"
        for key, value in values.items():
            self.put(separator)
            self.write(key)
            self.put(": ")
            self.write(value)
            separator = ", "
        self.put("}" if values else "{}")
        self.leave(values)


_VIEWS: dict[type, str] = {
    type(view): f"{prefix}_{name}"
    for kind, prefix in ((dict, "dict"), (OrderedDict, "odict"))
    for name in ("keys", "values", "items")
    for view in (getattr(kind(), name)(),)
}


def _writes_itself(kind: type) -> bool:
    """Whether the program's class has a text of its own."""
    cls = getattr(kind, "language_class", None)
    return cls is not None and "__repr__" in cls.names


def _display_object(value: Any) -> str:
    if isinstance(value, GradcliError) and not hasattr(type(value), "language_class"):
        arguments = arguments_of(value)
        shown = display(arguments)
        name = value.raises if value.raises in EXCEPTIONS else "Exception"
        return name + (f"({shown[1:-2]})" if len(arguments) == 1 else shown)
    kind = type(value)
    if kind in SCALARS:
        return repr(value)
    if isinstance(value, type):  # a class of the catalogue, such as torch.no_grad
        return f"<class '{host_name(value)}'>"
    written: Any = (type(value.host) if isinstance(value, Hosted) else kind).__repr__
    if written is object.__repr__ and kind.__module__.startswith("gradcli."):
        cls = getattr(kind, "language_class", None)
        state = active.state
        if id(value) not in state.printed:  # it has no place for its number: the session keeps it
            state.object_ids += 1
            state.printed[id(value)] = value, state.object_ids
        number = hex(state.printed[id(value)][1])
        return f"<{cls.full_name if cls else host_name(kind)} object at {number}>"
    if isinstance(value, LanguageType) or kind.__module__.startswith("gradcli."):
        return repr(value)
    function_name = getattr(value, "__name__", None)
    if function_name:
        return f"<built-in function {function_name}>"
    return f"<{type_name(value)} object>"


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
            text=f"unsupported format string passed to {type_name(value)}.__format__",
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
