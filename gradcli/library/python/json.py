"""The module `json`; files of numbers come in as `NAME=@FILE`, too."""

from __future__ import annotations

import json as host
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.functions.calls import call, for_host
from gradcli.language.limits import check_nesting, check_text
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.types import EXCEPTIONS, by_name, check_kind, type_name

_DEEPEST = 1000


def dumps(
    obj: Any,
    *,
    skipkeys: Any = False,
    ensure_ascii: Any = True,
    check_circular: Any = True,
    allow_nan: Any = True,
    cls: Any = None,
    indent: Any = None,
    separators: Any = None,
    default: Any = None,
    sort_keys: Any = False,
) -> str:
    """`json.dumps(value)`; raises E202 for a value that is no JSON."""
    if cls is not None and default is None:
        default = get_attribute(call(cls, (), {}), "default")
    check_nesting(obj)
    if isinstance(indent, int) and indent > _DEEPEST:
        raise GradcliError("E602", f"an indent of more than {_DEEPEST:,} is too large")

    def other(value: Any) -> Any:
        if default is not None:
            return call(default, (value,), {})
        raise type_error(f"Object of type {type_name(value)} is not JSON serializable")

    encoder = host.JSONEncoder(
        skipkeys=bool(skipkeys), ensure_ascii=bool(ensure_ascii), check_circular=True,
        allow_nan=bool(allow_nan), indent=indent, separators=separators, default=other,
        sort_keys=bool(sort_keys),
    )  # fmt: skip
    length = 0
    pieces = []
    for piece in encoder.iterencode(obj):
        length += len(piece)
        check_text(length)
        pieces.append(piece)
    return "".join(pieces)


class JSONEncoder(Instance):
    """`json.JSONEncoder`: a class derived from it says in `default` what becomes of a value that is
    no JSON.
    """

    language_name: ClassVar[str] = "json.encoder.JSONEncoder"
    language_shared: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset({"default", "encode"})

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def default(self, o: Any) -> Any:
        """What a value is written as; raises E202."""
        raise type_error(f"Object of type {type_name(o)} is not JSON serializable")

    def encode(self, o: Any) -> str:
        """The text of a value."""
        settings = self.settings if hasattr(self, "settings") else {}
        return dumps(o, **{"default": self.default, **settings})


def loads(
    s: Any,
    *,
    object_hook: Any = None,
    parse_float: Any = None,
    parse_int: Any = None,
    object_pairs_hook: Any = None,
) -> Any:
    """`json.loads(text)`; raises E204 for a text that is no JSON."""
    check_kind(s, (str, bytes), "the JSON object must be str, bytes or bytearray")
    try:
        return host.loads(
            s, object_hook=for_host(object_hook), parse_float=for_host(parse_float),
            parse_int=for_host(parse_int), object_pairs_hook=for_host(object_pairs_hook),
        )  # fmt: skip
    except host.JSONDecodeError as error:
        raise Raised("JSONDecodeError", str(error), (str(error),), "E204") from error


def load(fp: Any, **named: Any) -> Any:
    """`json.load(file)`: the value of what is read from a file."""
    return loads(call(get_attribute(fp, "read"), (), {}), **named)


def dump(obj: Any, fp: Any, **named: Any) -> None:
    """`json.dump(value, file)`: the text goes to the file's `write`."""
    call(get_attribute(fp, "write"), (dumps(obj, **named),), {})


JSON: dict[str, Any] = {
    "JSONDecodeError": EXCEPTIONS["JSONDecodeError"],
    **by_name(JSONEncoder, dump, dumps, load, loads),
}
"""What `json` holds."""
