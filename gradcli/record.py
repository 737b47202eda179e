"""Records: classes that are nothing but their attributes."""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(eq_default=False)
class Record:
    """A thing with the attributes that its class annotates, those of its base first.

    They are given in this order or by name; a value in the class is a default. It does what
    `dataclasses` does at none of its cost: nothing is generated, and start-up imports nothing.
    """

    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.fields = (*cls.fields, *cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        for name, value in zip(self.fields, values, strict=False):
            setattr(self, name, value)
        for name, value in named.items():
            setattr(self, name, value)
