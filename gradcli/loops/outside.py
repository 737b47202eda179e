"""The tensors that an iteration finds when it begins."""

from __future__ import annotations

from gradcli.arrays.fusion.write_barrier import write_barrier
from gradcli.arrays.storage import Storage
from gradcli.autograd.tensor import Tensor
from gradcli.loops.guards import Guard
from gradcli.loops.symbols import IterationBuilder, of_older_graph
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.ir import Inline, Value

COUNT_WRITES = Inline("{0}.version += {1}", "count_writes")
"""The version of a storage goes up."""

_ANNOUNCE = Inline("if {0}.pending_readers: {1}({2})", "write_barrier")
"""Lets plans keep the values that are about to be overwritten."""


class Outside:
    """Records what an iteration reads of tensors that it did not make, and writes to them."""

    def __init__(self, builder: IterationBuilder, guard: Guard) -> None:
        self.builder = builder
        self.guard = guard
        self.updated: list[Tensor] = []

    def tensor(self, tensor: Tensor) -> Value:
        """The value of a tensor that was there before, or of one that the iteration made."""
        if self.is_made(tensor):
            return self.builder.of(tensor)
        if tensor.grad_fn is not None:
            raise of_older_graph()
        self.guard.watch(tensor)
        self.builder.lasting.add(tensor)
        return self.builder.constant(tensor.array)

    def is_made(self, tensor: Tensor) -> bool:
        """Whether the iteration made a tensor."""
        builder = self.builder
        if not builder.has(tensor):
            return False
        return not builder.is_constant(builder.of(tensor))

    def storage(self, tensor: Tensor) -> Storage:
        """The storage of a tensor that is written to."""
        storage = tensor.storage
        if type(storage) is not Storage or storage.lazy_conjugation is not None:
            raise GraphBreak("B06", "a write to a view of conjugates")
        self.guard.storages[tensor] = storage
        return storage

    def announce_write(self, target: Value) -> None:
        """Record what goes before a write."""
        self.builder.effect(_ANNOUNCE, [self.guard.state, write_barrier, target], state=())

    def count_writes(self, storage: Storage, count: int) -> None:
        """Record that the version of a storage goes up."""
        if count:
            self.builder.effect(COUNT_WRITES, [storage, count], state=())
