"""The modules `json` and `csv`: documents and rows as texts; a file of numbers comes in as
`NAME=@FILE`, too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator as HostIterator
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.functions.calls import call, for_host
from gradcli.language.limits import check_nesting, check_text
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.iteration import bounded, iterate
from gradcli.language.objects.repr import text
from gradcli.language.objects.types import EXCEPTIONS, by_name, check_kind, names, type_name

# --- json -----------------------------------------------------------------------------------------


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

    encoder = json.JSONEncoder(
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
        return json.loads(
            s, object_hook=for_host(object_hook), parse_float=for_host(parse_float),
            parse_int=for_host(parse_int), object_pairs_hook=for_host(object_pairs_hook),
        )  # fmt: skip
    except json.JSONDecodeError as error:
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


# --- csv ------------------------------------------------------------------------------------------


_SETTINGS = names("""delimiter doublequote escapechar lineterminator quotechar quoting
    skipinitialspace strict""")
_DIALECTS = ("excel", "excel-tab", "unix")


def _checked(dialect: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a reader or writer; raises E202 for ones that Python's has not."""
    if dialect not in _DIALECTS:
        raise _failed("unknown dialect")
    for name in settings:
        if name not in _SETTINGS:
            raise type_error(f"{name!r} is an invalid keyword argument for this function")
    return {"dialect": dialect, **settings}


def _failed(message: str) -> Raised:
    return Raised("Error", message, (message,), "E204")


def _lines(values: HostIterator[Any]) -> HostIterator[str]:
    for line in values:
        if not isinstance(line, str):
            raise _failed(
                f"iterator should return strings, not {type_name(line)} (the file should be opened"
                " in text mode)"
            )
        yield line


class reader:
    """`csv.reader(lines)`: each line as a list of texts.

    Attributes:
        line_num: how many lines were read.
    """

    language_name: ClassVar[str] = "_csv.reader"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"__next__", "line_num"})

    def __init__(self, csvfile: Any, /, dialect: Any = "excel", **fmtparams: Any) -> None:
        try:
            self._host = csv.reader(_lines(iterate(csvfile)), **_checked(dialect, fmtparams))
        except (TypeError, ValueError) as error:
            raise type_error(str(error)) from None

    @property
    def line_num(self) -> int:
        """How many lines were read."""
        return self._host.line_num

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> list[Any]:
        try:
            return next(self._host)
        except csv.Error as error:
            raise _failed(str(error)) from None
        except ValueError as error:  # QUOTE_NONNUMERIC
            raise Raised("ValueError", str(error), error.args, "E204") from None


class DictReader:
    """`csv.DictReader(lines)`: each line as a dict by the names of the first one.

    Attributes:
        fieldnames: the names; None for a file without a line.
    """

    language_name: ClassVar[str] = "csv.DictReader"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"__next__", "fieldnames", "line_num"}
    )

    def __init__(
        self,
        f: Any,
        fieldnames: Any = None,
        restkey: Any = None,
        restval: Any = None,
        dialect: Any = "excel",
        **fmtparams: Any,
    ) -> None:
        self._reader = reader(f, dialect, **fmtparams)
        self._fieldnames = None if fieldnames is None else list(bounded(fieldnames))
        self._rest = restkey, restval

    @property
    def fieldnames(self) -> list[str] | None:
        """The names of the fields: those of the first line, unless others were named."""
        if self._fieldnames is None:
            self._fieldnames = next(self._reader, None)
        return self._fieldnames

    @property
    def line_num(self) -> int:
        """How many lines were read."""
        return self._reader.line_num

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> dict[Any, Any]:
        fields = self.fieldnames or []
        row = next(self._reader)
        while not row:
            row = next(self._reader)
        key, value = self._rest
        named = dict(zip(fields, row, strict=False))
        if len(row) > len(fields):
            named[key] = row[len(fields) :]
        named.update(dict.fromkeys(fields[len(row) :], value))
        return named


class writer:
    """`csv.writer(file)`: rows as lines, which go to the file's `write`."""

    language_name: ClassVar[str] = "_csv.writer"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"writerow", "writerows"})

    def __init__(self, csvfile: Any, /, dialect: Any = "excel", **fmtparams: Any) -> None:
        try:
            self._write = get_attribute(csvfile, "write")
        except GradcliError:
            raise type_error('argument 1 must have a "write" method') from None
        try:
            self._host = csv.writer(self, **_checked(dialect, fmtparams))
        except (TypeError, ValueError) as error:
            raise type_error(str(error)) from None

    def write(self, line: str) -> Any:
        """Write a line, for the host."""
        check_text(len(line))
        return call(self._write, (line,), {})

    def writerow(self, row: Any, /) -> Any:
        """Write a row; raises E204 where a field cannot be written without quotes."""
        fields = [_field(each) for each in bounded(row)]
        check_text(sum(len(each) for each in fields if isinstance(each, str)))
        try:
            return self._host.writerow(fields)
        except csv.Error as error:
            raise _failed(str(error)) from None

    def writerows(self, rows: Any, /) -> None:
        """Write several rows."""
        for row in iterate(rows):
            self.writerow(row)


def _field(value: Any) -> Any:
    """A value as the host writes it: numbers and None are told from texts."""
    plain = value is None or type(value) in (str, int, float)
    return value if plain else text(value)


class DictWriter:
    """`csv.DictWriter(file, names)`: dicts as lines."""

    language_name: ClassVar[str] = "csv.DictWriter"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"fieldnames", "writeheader", "writerow", "writerows"}
    )

    def __init__(
        self,
        f: Any,
        fieldnames: Any,
        restval: Any = "",
        extrasaction: str = "raise",
        dialect: Any = "excel",
        **fmtparams: Any,
    ) -> None:
        self.fieldnames = list(bounded(fieldnames))
        self._restval = restval
        self._raises = extrasaction == "raise"
        self._writer = writer(f, dialect, **fmtparams)

    def writeheader(self) -> Any:
        """Write the names."""
        return self._writer.writerow(self.fieldnames)

    def writerow(self, rowdict: dict[Any, Any], /) -> Any:
        """Write a dict; raises E204 where it has keys that are no names."""
        check_kind(rowdict, dict, "writerow() takes a dict")
        others = [key for key in rowdict if key not in self.fieldnames]
        if self._raises and others:
            shown = f"dict contains fields not in fieldnames: {', '.join(map(repr, others))}"
            raise Raised("ValueError", shown, (shown,), "E204")
        return self._writer.writerow([rowdict.get(k, self._restval) for k in self.fieldnames])

    def writerows(self, rowdicts: Any, /) -> None:
        """Write several dicts."""
        for each in iterate(rowdicts):
            self.writerow(each)


CSV: dict[str, Any] = {
    "Error": EXCEPTIONS["Error"],
    **{name: getattr(csv, name) for name in dir(csv) if name.startswith("QUOTE_")},
    **by_name(DictReader, DictWriter, reader, writer),
}
"""What `csv` holds."""
