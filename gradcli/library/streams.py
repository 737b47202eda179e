"""The module `io`: texts and bytes like files, and files that were read."""

from __future__ import annotations

import io
from typing import Any, ClassVar

from gradcli.errors import type_error
from gradcli.language.limits import check_text
from gradcli.language.objects.types import EnteredAsItself, Hosted, check_kind, names, type_name


class Buffer(EnteredAsItself, Hosted):
    """A text or bytes in memory, which are read and written like a file.

    Attributes:
        content: what is written.
    """

    __slots__ = ()

    content: ClassVar[Any]

    def write(self, s: Any, /) -> int:
        """Write something; its length."""
        if not isinstance(s, self.content):
            wanted = "string argument expected, got" if self.content is str else _BYTES
            raise type_error(f"{wanted} '{type_name(s)}'")
        check_text(self.host.tell() + len(s))
        return int(self.host.write(s))

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to a place."""
        if isinstance(cookie, int):
            check_text(cookie)
        return int(self.host.seek(cookie, whence))

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.host.close()


_BYTES = "a bytes-like object is required, not"


class StringIO(Buffer):
    """`io.StringIO(text)`."""

    __slots__ = ()

    content: ClassVar[Any] = str
    language_name: ClassVar[str] = "_io.StringIO"
    language_attributes = names("""close flush getvalue read readline readlines seek tell truncate
        write writelines""")

    def __init__(self, initial_value: str = "", newline: str | None = "\n") -> None:
        check_kind(initial_value, str, "initial_value must be str or None")
        super().__init__(io.StringIO(initial_value, newline))

    def writelines(self, lines: Any, /) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self.host)


class ReadText(StringIO):
    """A file that `open(name)` read: its text, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes = names("close closed mode name read readline readlines seek tell")

    def __init__(self, text: str, name: str, mode: str, newline: str | None) -> None:
        check_text(len(text))
        super().__init__(text, newline)
        self.name = name
        self.mode = mode


class BytesIO(Buffer):
    """`io.BytesIO(content)`."""

    __slots__ = ()

    content: ClassVar[Any] = bytes
    language_name: ClassVar[str] = "_io.BytesIO"
    language_attributes = names("close flush getvalue read seek tell write")

    def __init__(self, initial_bytes: bytes = b"") -> None:
        if not isinstance(initial_bytes, bytes):
            raise type_error(f"{_BYTES} '{type_name(initial_bytes)}'")
        super().__init__(io.BytesIO(initial_bytes))


class ReadBytes(BytesIO):
    """A file that `open(name, "rb")` read: its bytes, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.BufferedReader"
    language_attributes = names("close closed mode name read seek tell")

    def __init__(self, content: bytes, name: str, mode: str) -> None:
        check_text(len(content))
        super().__init__(content)
        self.name = name
        self.mode = mode


IO: dict[str, Any] = {"BytesIO": BytesIO, "StringIO": StringIO}
"""What `io` holds."""
