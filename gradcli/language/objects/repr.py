"""`str` and `repr` of values: Python's text for Python's values, PyTorch's for tensors, and
never a host address.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from gradcli.arrays.layout.sizes import Device
from gradcli.errors import GradcliError
from gradcli.language.limits import DEEPEST_NESTING, check_text, too_deep
from gradcli.language.objects.borders import SCALARS
from gradcli.language.objects.exceptions import arguments_of, converted
from gradcli.language.objects.types import EXCEPTIONS, Hosted, LanguageType, host_name, type_name
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
            self.sequence(value, "[", "]")
        elif kind is tuple:
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
