"""Cache files: results that take long to compute are kept between runs.

A file holds the key that it was made from, so that outdated content is never used. Where anything
is wrong with it, its content is computed again.
"""

from __future__ import annotations

import marshal
import os
import sys
from types import CodeType
from typing import Any
from zlib import crc32

# Every Python that gradcli runs on reads this version of `marshal`, whichever wrote it.
_PORTABLE = 4


def packed(*content: Any) -> bytes:
    """The bytes of a file that holds some values: a checksum, then they."""
    data = marshal.dumps(content, _PORTABLE)
    return crc32(data).to_bytes(4, "big") + data


def unpacked(content: bytes) -> Any:
    """The values that `packed` was given; raises ValueError for a damaged file."""
    if crc32(content[4:]) != int.from_bytes(content[:4], "big"):
        raise ValueError("the checksum does not fit")
    return marshal.loads(content[4:])


def path_of(kind: str, key: tuple[Any, ...]) -> str:
    """The cache file of a key, in `$XDG_CACHE_HOME/gradcli` or `~/.cache/gradcli`."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(folder, "gradcli", f"{kind}-{crc32(repr(key).encode()):08x}.marshal")


def read(path: str, key: tuple[Any, ...]) -> list[Any] | None:
    """The content of a cache file; None unless it is whole, made from this key and ours alone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(descriptor, "rb") as file:
            # `marshal` can be made to crash: it gets only what nobody but this user can write.
            # Where there are no user numbers, mode bits say nothing either.
            status = os.fstat(descriptor)
            if hasattr(os, "getuid") and (status.st_mode & 0o022 or status.st_uid != os.getuid()):
                return None
            stored_key, *content = unpacked(file.read())
        return content if stored_key == key else None
    except (OSError, ValueError, EOFError, TypeError):
        return None


def write(path: str, key: tuple[Any, ...], *content: Any) -> None:
    """Writes a cache file under another name and moves it into place; gives up silently."""
    temporary = f"{path}.{os.getpid()}"
    data = packed(key, *content)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError:
        return


def code_of(text: str, where: str) -> CodeType:
    """The code of a text of Python that gradcli has written for itself: Python's compiler takes ten
    times as long as the code of a former run to be read, and 5 KB a line until it ends.

    Args:
        text: statements. What else they are made from is no matter: a text has its code.
        where: names it in tracebacks, and its file, which another text of that name replaces.
    """
    path = path_of("code", (sys.implementation.cache_tag, sys.flags.optimize, where))
    key = (sys.hexversion, text)
    for code in read(path, key) or ():
        if type(code) is CodeType:
            return code
    code = compile(text, where, "exec")
    write(path, key, code)
    return code
