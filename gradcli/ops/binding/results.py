"""Named results: `torch.return_types.max(values=…, indices=…)`, tuples whose fields have names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar


class ReturnType(tuple[Any, ...]):
    """The result of an op with several named outputs: a tuple that prints as PyTorch's does."""

    __slots__ = ()

    name: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]

    def __new__(cls, values: Iterable[Any]) -> ReturnType:
        return super().__new__(cls, values)

    def __getattr__(self, name: str) -> Any:
        if name in self.fields:
            return self[self.fields.index(name)]
        raise AttributeError(name)

    def __repr__(self) -> str:
        shown = ",\n".join(
            f"{field}={value!r}" for field, value in zip(self.fields, self, strict=True)
        )
        return f"torch.return_types.{self.name}(\n{shown})"

    __str__ = __repr__


def named(name: str, fields: str, values: Iterable[Any]) -> ReturnType:
    """The result of an op with several outputs.

    Args:
        name: what stands after `torch.return_types.` in print.
        fields: the outputs' names, in order, with spaces between them.
    """
    return _return_type(name, tuple(fields.split()))(values)


@cache
def _return_type(name: str, fields: tuple[str, ...]) -> type[ReturnType]:
    body = {
        "__slots__": (),
        "name": name,
        "language_name": f"torch.return_types.{name}",
        "fields": fields,
        "language_attributes": frozenset(fields),
    }
    return type(name, (ReturnType,), body)
