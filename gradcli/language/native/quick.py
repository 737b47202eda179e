"""The functions of the library's that nodes in C call by themselves, for small and plain values."""

from __future__ import annotations

import builtins as host
from collections.abc import Iterator
from typing import Any

from gradcli.language.objects.methods import METHODS

DOES = (
    *("length", "is instance", "absolute", "least", "largest", "sum", "to text", "to integer"),
    *(
        "to float",
        "to bool",
        "to list",
        "to tuple",
        "to set",
        "numbers",
        "append",
        "join",
        "of text",
    ),
    *("of list", "get", "by key", "add"),
)
"""What a call does, at the number that `quick.c` has for it."""

_BUILTINS = {
    "len": "length",
    "isinstance": "is instance",
    "abs": "absolute",
    "min": "least",
    "max": "largest",
    "sum": "sum",
    "str": "to text",
    "int": "to integer",
    "float": "to float",
    "bool": "to bool",
    "list": "to list",
    "tuple": "to tuple",
    "set": "to set",
    "range": "numbers",
}

_METHODS: dict[type, dict[str, str]] = {
    str: {
        "join": "join",
        "of text": """capitalize count endswith find index isalnum isalpha isascii isdecimal isdigit
            isidentifier islower isnumeric isspace istitle isupper lower lstrip partition
            removeprefix removesuffix rfind rindex rpartition rsplit rstrip split splitlines
            startswith strip swapcase title upper""",
    },
    list: {"append": "append", "of list": "copy insert pop reverse"},
    dict: {"get": "get", "by key": "pop setdefault"},
    set: {"add": "add", "by key": "discard remove"},
}
"""The methods of each class, by what a call of them does."""


def calls(builtins: dict[str, Any]) -> Iterator[tuple[int, Any, Any]]:
    """What a call does, the function of the library's, and the host's."""
    for name, does in _BUILTINS.items():
        yield DOES.index(does), builtins[name], getattr(host, name)
    for kind, table in _METHODS.items():
        for does, names in table.items():
            for name in names.split():
                yield DOES.index(does), METHODS[kind][name], getattr(kind, name)
