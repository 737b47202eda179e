"""A run as straight-line steps: which op computed which value from which.

The rules of the catalogue are called with tensors when a graph of the gradients is recorded, so a
tape of that pass is the gradient written down, whatever the rules look like.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.autograd.recording.recorder import Recorder
from gradcli.autograd.tensor import Tensor, gradient_edge
from gradcli.ops.definition.op import Op


class Value:
    """A tensor on the tape.

    Attributes:
        number: its number, in the order in which values came up.
        array: its elements, as they were when it came up.
        call: the step that computed it, None for one that came from outside.
        output_nr: which output of that step it is.
        tensor: the tensor that held it first.
    """

    __slots__ = ("array", "call", "number", "output_nr", "tensor")

    def __init__(self, number: int, tensor: Tensor, call: Step | None, output_nr: int) -> None:
        self.number = number
        self.tensor = tensor
        self.array = np.array(tensor.array)[()]
        self.call = call
        self.output_nr = output_nr


class Step:
    """One call of an op on values.

    Attributes:
        op: the entry of the catalogue.
        given: its operands and arguments by parameter; tensors as values, also those in lists.
        outputs: what came out.
    """

    __slots__ = ("given", "op", "outputs")

    def __init__(self, op: Op, given: dict[str, Any]) -> None:
        self.op = op
        self.given = given
        self.outputs: tuple[Value, ...] = ()

    @property
    def operands(self) -> Iterator[Value]:
        """The values that it is computed from."""
        for given in self.given.values():
            yield from values_in(given)


def values_in(given: Any) -> Iterator[Value]:
    """The values in an operand or argument."""
    if isinstance(given, Value):
        yield given
    elif isinstance(given, (tuple, list)):
        for each in given:
            yield from values_in(each)


class Tape(Recorder):
    """Records the steps of a run.

    Attributes:
        values: every value, by its number.
    """

    __slots__ = ("_alive", "_by_array", "_by_edge", "_by_tensor", "values")

    def __init__(self) -> None:
        super().__init__(operations=False, events=True, keeps=True)
        self.values: list[Value] = []
        # The tables go by identity, which is that of another once an object is gone.
        self._alive: list[Any] = []
        # What a tensor held: its value and the version of its memory, from which on it is another.
        self._by_tensor: dict[int, tuple[Value, int]] = {}
        self._by_array: dict[int, tuple[Value, int]] = {}
        self._by_edge: dict[tuple[Any, int], Value] = {}

    def operation(self, op: Any, given: dict[str, Any], out: Any) -> None:
        """A call of an op becomes a step."""
        super().operation(op, given, out)
        if op.name == "_index_put_impl":
            # Rules hand it zeros of their own to write into, which are overwritten by now.
            given = {**given, "self": None}
        step = Step(op, {name: self._read(value) for name, value in given.items()})
        outputs = out if type(out) is tuple else (out,)
        step.outputs = tuple(self._add(each, step, number) for number, each in enumerate(outputs))

    def write(self, tensor: Tensor, result: Tensor) -> None:
        """A tensor that was written to holds the value of the result."""
        super().write(tensor, result)
        value = self.find(result)
        self._alive.append(tensor)
        self._by_tensor[id(tensor)] = value, _version(tensor)
        self._remember_edge(tensor, value)

    def find(self, tensor: Tensor) -> Value:
        """The value that a tensor holds; a new one from outside where no step computed it."""
        version = _version(tensor)
        for table, key in ((self._by_tensor, id(tensor)), (self._by_array, id(tensor.array))):
            found = table.get(key)
            if found is not None and found[1] == version:
                return found[0]
        edge = gradient_edge(tensor)
        if edge[0] is not None and edge in self._by_edge:
            return self._by_edge[edge]
        return self._add(tensor, None, 0)

    def _add(self, tensor: Tensor, step: Step | None, output_nr: int) -> Value:
        value = Value(len(self.values), tensor, step, output_nr)
        self.values.append(value)
        self._alive += [tensor, tensor.array]
        version = _version(tensor)
        self._by_tensor[id(tensor)] = self._by_array[id(tensor.array)] = value, version
        self._remember_edge(tensor, value)
        return value

    def _remember_edge(self, tensor: Tensor, value: Value) -> None:
        node, output_nr = gradient_edge(tensor)
        if node is not None:
            self._by_edge[node, output_nr] = value

    def _read(self, given: Any) -> Any:
        if type(given) is Tensor:
            return self.find(given)
        if type(given) is list:
            return [self._read(each) for each in given]
        return tuple(map(self._read, given)) if type(given) is tuple else given


def _version(tensor: Tensor) -> int:
    return 0 if tensor.storage is None else tensor.storage.version
