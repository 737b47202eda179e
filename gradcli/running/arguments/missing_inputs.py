"""The inputs of a program that nothing gives a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradcli.language.objects.types import LanguageType
from gradcli.language.tree.syntax import Statement
from gradcli.library.namespace import table_of
from gradcli.running.arguments.name_uses import called_names, free_names, operand_names

_CLASSES = (type, LanguageType)


def missing_inputs(statements: Sequence[Statement], bound: Iterable[str]) -> dict[str, None]:
    """The names that statements read and neither they nor `bound` give a value, in order; among
    them a function's name that is not called but an operand: `t` in `k * t` is a time.
    """
    called = called_names(statements)
    operands = operand_names(statements)

    def is_builtin(name: str) -> bool:
        table = table_of(name)
        # A class is an operand: `suppress(RuntimeError)`.
        meaning = None if table is None else table[name]
        is_operand = name in operands and callable(meaning) and not isinstance(meaning, _CLASSES)
        return name in called or (table is not None and not is_operand)

    return free_names(statements, bound, is_builtin)
