"""The module `hashlib`: digests of bytes."""

from __future__ import annotations

import hashlib as host
from collections.abc import Callable
from typing import Any

from gradcli.errors import type_error, value_error
from gradcli.language.limits import charge_copy
from gradcli.language.objects.types import Hosted, called, check_kind, names

_ALGORITHMS = names(
    "blake2b blake2s md5 sha1 sha224 sha256 sha384 sha512 sha3_224 sha3_256 sha3_384 sha3_512"
)


class Hash(Hosted):
    """A digest of the bytes so far."""

    __slots__ = ()

    language_name = "_hashlib.HASH"
    language_attributes = names("block_size copy digest digest_size hexdigest name update")

    def update(self, data: Any, /) -> None:
        """Go on with more bytes; raises E202 for anything else."""
        self.host.update(_bytes(data))

    def copy(self) -> Hash:
        """Another one of the bytes so far."""
        return Hash(self.host.copy())

    def __repr__(self) -> str:
        return f"<{self.host.name} _hashlib.HASH object>"


def _bytes(data: Any) -> bytes:
    if isinstance(data, str):
        raise type_error("Strings must be encoded before hashing")
    if not isinstance(data, bytes):
        raise type_error("object supporting the buffer API required")
    charge_copy(len(data))
    return data


def new(name: str, data: Any = b"", **named: Any) -> Hash:
    """`hashlib.new(name, data)`; raises E204 for an algorithm that Python need not have."""
    check_kind(name, str, "new() takes the name of an algorithm")
    if name.lower() not in _ALGORITHMS:
        raise value_error(f"unsupported hash type {name}")
    return Hash(host.new(name.lower(), _bytes(data), usedforsecurity=False))


def _algorithm(name: str) -> Callable[..., Hash]:
    return called(name, lambda string=b"", *, usedforsecurity=True: new(name, string))


HASHLIB: dict[str, Any] = {
    "new": new,
    **{name: _algorithm(name) for name in _ALGORITHMS},
}
"""What `hashlib` holds."""
