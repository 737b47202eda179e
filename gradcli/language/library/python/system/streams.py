"""The module `io`: texts and bytes like files, and files that were read."""

from __future__ import annotations

import io
from typing import Any, ClassVar

from gradcli.errors import GradcliError
from gradcli.language.limits import check_text
from gradcli.language.objects.types import type_name


class StringIO:
    """`io.StringIO(text)`: a text that is written like a file."""

    __slots__ = ("buffer",)

    language_name: ClassVar[str] = "_io.StringIO"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "flush", "getvalue", "read", "readline", "readlines", "seek", "tell", "truncate"}
        | {"write", "writelines"}
    )
    settable_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, initial_value: str = "", newline: str | None = "\n") -> None:
        if not isinstance(initial_value, str):
            raise GradcliError(
                "E202", f"initial_value must be str or None, not {type_name(initial_value)}"
            )
        self.buffer = io.StringIO(initial_value, newline)

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        method = getattr(self.buffer, name)

        def told(*values: Any) -> Any:
            return method(*values)

        told.__name__ = told.__qualname__ = name
        return told

    def write(self, s: str, /) -> int:
        """Write a text; the number of its characters."""
        if not isinstance(s, str):
            raise GradcliError("E202", f"string argument expected, got '{type_name(s)}'")
        check_text(self.buffer.tell() + len(s))
        return self.buffer.write(s)

    def writelines(self, lines: Any, /) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to a place in the text."""
        if isinstance(cookie, int):
            check_text(cookie)
        return self.buffer.seek(cookie, whence)

    def __iter__(self) -> Any:
        return iter(self.buffer)

    def __enter__(self) -> StringIO:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.buffer.close()


class ReadText(StringIO):
    """A file that `open(name)` read: its text, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.TextIOWrapper"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "closed", "mode", "name", "read", "readline", "readlines", "seek", "tell"}
    )

    def __init__(self, text: str, name: str, mode: str, newline: str | None) -> None:
        check_text(len(text))
        self.buffer = io.StringIO(text, newline)
        self.name = name
        self.mode = mode

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.buffer.closed


class BytesIO:
    """`io.BytesIO(content)`: bytes that are written like a file."""

    __slots__ = ("buffer",)

    language_name: ClassVar[str] = "_io.BytesIO"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "flush", "getvalue", "read", "seek", "tell", "write"}
    )
    settable_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, initial_bytes: bytes = b"") -> None:
        if not isinstance(initial_bytes, bytes):
            raise GradcliError(
                "E202", f"a bytes-like object is required, not '{type_name(initial_bytes)}'"
            )
        self.buffer = io.BytesIO(initial_bytes)

    def write(self, b: bytes, /) -> int:
        """Write bytes; their number."""
        if not isinstance(b, bytes):
            raise GradcliError("E202", f"a bytes-like object is required, not '{type_name(b)}'")
        check_text(self.buffer.tell() + len(b))
        return self.buffer.write(b)

    def read(self, size: int | None = -1, /) -> bytes:
        """The bytes from here on, `size` of them at most."""
        return self.buffer.read(size)

    def getvalue(self) -> bytes:
        """All of them."""
        return self.buffer.getvalue()

    def seek(self, cookie: int, whence: int = 0, /) -> int:
        """Go to a place in them."""
        if isinstance(cookie, int):
            check_text(cookie)
        return self.buffer.seek(cookie, whence)

    def tell(self) -> int:
        """Where it stands."""
        return self.buffer.tell()

    def flush(self) -> None:
        """What is written is there at once."""

    def close(self) -> None:
        """Give the bytes back."""
        self.buffer.close()

    def __enter__(self) -> BytesIO:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.buffer.close()


class ReadBytes(BytesIO):
    """A file that `open(name, "rb")` read: its bytes, which cannot be written."""

    __slots__ = ("mode", "name")

    language_name: ClassVar[str] = "_io.BufferedReader"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"close", "closed", "mode", "name", "read", "seek", "tell"}
    )

    def __init__(self, content: bytes, name: str, mode: str) -> None:
        check_text(len(content))
        self.buffer = io.BytesIO(content)
        self.name = name
        self.mode = mode

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.buffer.closed


IO: dict[str, Any] = {"BytesIO": BytesIO, "StringIO": StringIO}
"""What `io` holds."""
