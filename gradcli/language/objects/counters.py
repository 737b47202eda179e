"""`collections.Counter`, which `collections` has and states of learning rate schedules hold."""

from __future__ import annotations

import collections as host
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.language.limits import check_collection
from gradcli.language.objects.iteration import bounded, check_key, drawing
from gradcli.language.objects.types import names, type_name


class Counter(host.Counter[Any]):
    """`collections.Counter(values)`."""

    language_name: ClassVar[str] = "collections.Counter"
    language_attributes = names("copy elements most_common subtract total update")

    def copy(self) -> Counter:
        """Another counter of the same values."""
        return Counter(self)

    def elements(self) -> Any:
        """Each value as often as it was counted."""
        check_collection(sum(n for n in self.values() if isinstance(n, int) and n > 0))
        return drawing("chain", super().elements())

    def update(self, *values: Any, **named: Any) -> None:
        """Count more."""
        super().update(*[_counted(each) for each in values if each is not None], **named)

    def subtract(self, *values: Any, **named: Any) -> None:
        """Count down."""
        super().subtract(*map(_counted, values), **named)

    def language_write(self, writer: Any) -> None:
        """Write its text: the most frequent first."""
        writer.put(f"{type_name(self)}(")
        if self:
            writer.mapping(dict(self.most_common()))
        writer.put(")")


def _of_counters(name: str) -> Callable[..., Counter]:
    """An operator of counters, whose result is one of the language's."""
    compute = getattr(host.Counter, name)
    return lambda self, *other: Counter(compute(self, *other))


for _name in ("__add__", "__sub__", "__and__", "__or__", "__pos__", "__neg__"):
    setattr(Counter, _name, _of_counters(_name))


def _counted(values: Any) -> Any:
    """What a counter is filled from."""
    if isinstance(values, dict):
        return values
    items = list(bounded(values))
    for item in items:
        check_key(item)
    return items
