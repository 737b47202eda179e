"""Calls of the catalogue's entries, as the rows of the gradient table and programs make them, and
the same calls on other values: what a replay of an op in compiled code comes to.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

import tests.op_table
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.definition.op import Op
from gradcli.session import Session
from tests.op_table.rows import Row
from tests.running import Expression


class Call:
    """A call of an entry.

    Attributes:
        operands: by parameter, arrays where they are tensors.
        leaves: the operands that required grad.
    """

    __slots__ = ("leaves", "op", "operands")

    def __init__(self, op: Op, operands: dict[str, Any], leaves: frozenset[str]) -> None:
        self.op = op
        self.operands = operands
        self.leaves = leaves

    def with_arrays(self, make: Any) -> Call:
        """The call with another array in place of each: of an array and its number."""
        named = {*self.op.tensors, *self.op.lists}
        operands = {
            name: _mapped(make, value, at) if name in named else value
            for at, (name, value) in enumerate(self.operands.items())
        }
        return Call(self.op, operands, self.leaves)

    def outcome(self) -> Any:
        """The kinds of the result and of the gradients, or the error."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._run()
            except Exception as failure:
                return failure

    def _run(self) -> Any:
        given = {name: self._tensors(name) for name in self.op.parameters}
        lists = [each for name in self.op.lists for each in given[name]]
        leaves = [
            each
            for each in (*given.values(), *lists)
            if type(each) is Tensor and each.requires_grad
        ]
        made = self.op.apply(*given.values())
        outputs = differentiable(made)
        if not outputs:
            return _kinds(made)
        seeds = [Tensor(hostile(forced(each.array), 0)) for each in outputs]
        try:
            return _kinds(made), _kinds(grad(outputs, leaves, seeds, allow_unused=True))
        except GradcliError as failure:
            if failure.code != "E409":  # there is no derivative, whatever the values are
                raise
            return _kinds(made)

    def _tensors(self, name: str) -> Any:
        value = self.operands[name]
        if name in self.op.lists:
            return [Tensor(each.copy(), name in self.leaves) for each in value]
        if name in self.op.tensors and isinstance(value, (np.ndarray, np.generic)):
            return Tensor(value.copy(), name in self.leaves and value.dtype.kind in "fcV")
        return value


def _mapped(make: Any, value: Any, at: int) -> Any:
    if isinstance(value, list):
        return [_mapped(make, each, at + place) for place, each in enumerate(value)]
    return make(value, at) if isinstance(value, (np.ndarray, np.generic)) else value


def differentiable(outputs: Any) -> list[Tensor]:
    """The tensors that require grad in a function's result."""
    if isinstance(outputs, Tensor):
        return [outputs] if outputs.requires_grad else []
    return [each for part in outputs for each in differentiable(part)]


def _kinds(found: Any) -> Any:
    if isinstance(found, (list, tuple)):
        return [_kinds(each) for each in found]
    if found is None:
        return None
    array = forced(found.array)
    return type(array).__name__, array.dtype, array.shape, array.strides


# --- hearing them ---------------------------------------------------------------------------------


class _Calls(Listener):
    """Hears the calls of entries, and keeps the first few of each."""

    __slots__ = ("found", "most")

    in_ops = True

    def __init__(self, found: dict[Op, list[Call]], most: int) -> None:
        super().__init__()
        self.found = found
        self.most = most

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        if isinstance(op, Op):
            calls = self.found.setdefault(op, [])
            if len(calls) < self.most:
                leaves = [name for name, value in operands.items() if _requires_grad(value)]
                given = {name: _array_of(value) for name, value in operands.items()}
                calls.append(Call(op, given, frozenset(leaves)))


def _requires_grad(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(map(_requires_grad, value))
    return type(value) is Tensor and value.requires_grad


def _array_of(value: Any) -> Any:
    if type(value) is Tensor:
        return np.copy(forced(value.array))[()]
    if type(value) in (list, tuple) and any(type(each) is Tensor for each in value):
        return [_array_of(each) for each in value]
    return value


def rows() -> Iterator[Row]:
    """The rows of the gradient table."""
    for found in iter_modules(tests.op_table.__path__):
        yield from getattr(import_module(f"tests.op_table.{found.name}"), "ROWS", ())


def hear_rows(found: dict[Op, list[Call]], most: int) -> None:
    """Keep the calls that the rows make, forwards and in a recorded backward pass."""
    listener = _Calls(found, most)
    listener.install()
    try:
        for row in rows():
            _run_row(row)
    finally:
        listener.remove()


def _run_row(row: Row) -> None:
    values = row.values()
    operands = {
        name: Tensor(np.asarray(values[name])[()], operand.differentiable)
        for name, operand in row.operands.items()
    }
    leaves = [each for each in operands.values() if each.requires_grad]
    outputs = differentiable(Expression(row.expression)(**operands))
    if row.order and outputs:
        seeds = [Tensor(np.ones_like(forced(each.array))[()], True) for each in outputs]
        grad(outputs, leaves, seeds, create_graph=row.order > 1, allow_unused=True)


def hear_program(found: dict[Op, list[Call]], program: str, most: int) -> None:
    """Keep the calls that a program makes; those of one that needs a GPU as far as it runs."""
    session = Session()
    with session.running():
        _Calls(found, most).install()
    try:
        for _ in session.run(program, "example"):
            pass
    except GradcliError as failure:
        if failure.code != "E604":
            raise


# --- other values ---------------------------------------------------------------------------------

_FLOATS = (0.0, np.nan, np.inf, -np.inf, -1.5, 1.7e308, 5e-324, -0.0, 1e9, 0.5)
_INTEGERS = (0, -1, 2**63 - 1, -(2**63), 1, -7, 1 << 31, 3)

VARIANTS = 5
"""How many arrays of hostile values there are for one."""


def hostile(array: Any, variant: int, at: int = 0) -> Any:
    """An array of the same kind with values that a function may choke on: many of them, or one
    everywhere; `at` tells the operands of a call apart.
    """
    made: Any = np.empty_like(array)
    flat = np.arange(made.size) + 3 * at
    kind = made.dtype.kind
    if kind == "b":
        chosen = flat % 2 == variant if variant < 2 else np.full(made.size, variant == 2)
    else:
        numbers = np.array(_INTEGERS if kind in "iu" else _FLOATS)
        chosen = numbers[flat % len(numbers) if not variant else np.full(made.size, variant - 1)]
    with np.errstate(all="ignore"):
        made[...] = chosen.astype(made.dtype).reshape(made.shape)
    return made[()]


def in_dtype(array: Any, dtype: Any) -> Any:
    """Ones of an array's kind, but of another dtype."""
    return np.ones_like(array, dtype)[()]
