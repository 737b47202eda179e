"""The messages of an editor as they come: those that are none are answered, and not passed on."""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO

LARGEST_MESSAGE = 64_000_000
"""Bytes of the longest message that is read."""

_LENGTH = re.compile(rb"content-length:\s*(\S+)\s*", re.IGNORECASE)

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602


class Frames:
    """A stream in the place of standard input, with whole messages alone.

    Args:
        stream: the editor's bytes.
        answers: where it hears of what is no message.
    """

    def __init__(self, stream: BinaryIO, answers: BinaryIO) -> None:
        self._stream = stream
        self._answers = answers
        self._headers: list[bytes] = []
        self._body = b""
        self._id: Any = None

    def readline(self) -> bytes:
        """The next line of a message's head; b"" at the end."""
        if not self._headers:
            self._next()
        return self._headers.pop(0)

    def read(self, _count: int) -> bytes:
        """The body of the message whose head was read."""
        return self._body

    def refuse(self, reason: str) -> None:
        """Answer the message that was read last, if it is a request, that it cannot be served."""
        if self._id is not None:
            self._answer(_INVALID_PARAMS, reason)

    def _next(self) -> None:
        """Read up to the end of the next whole message."""
        while True:
            length = self._head()
            if length is None:
                self._headers = [b""]
                return
            body = self._stream.read(length)
            if len(body) < length:
                self._headers = [b""]
                return
            self._id = None
            if self._is_message(body):
                self._headers = [f"Content-Length: {length}\r\n".encode(), b"\r\n"]
                self._body = body
                return

    def _head(self) -> int | None:
        """The length of the next message, None at the end; lines that are no head are passed by."""
        length: int | None = None
        while line := self._stream.readline(LARGEST_MESSAGE):
            match = _LENGTH.fullmatch(line)
            if match is not None:
                length = self._length(match[1])
            elif not line.strip() and length is not None:
                return length
        return None

    def _length(self, word: bytes) -> int | None:
        if word.isdigit() and len(word) < 20 and 0 < int(word) <= LARGEST_MESSAGE:
            return int(word)
        self._id = None
        shown = word[:40].decode("ascii", "replace")
        self._answer(
            _INVALID_REQUEST,
            f"Content-Length {shown}: a message has 1 to {LARGEST_MESSAGE:,} bytes",
        )
        return None

    def _is_message(self, body: bytes) -> bool:
        """Whether a body is a JSON object; it is answered if it is not."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._answer(_PARSE_ERROR, f"the message is no JSON: {error}")
            return False
        if not isinstance(message, dict):
            self._answer(_INVALID_REQUEST, "a message is a JSON object")
            return False
        self._id = message.get("id") if "method" in message else None
        return True

    def _answer(self, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        body = json.dumps({"jsonrpc": "2.0", "id": self._id, "error": error}).encode()
        self._answers.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._answers.flush()
