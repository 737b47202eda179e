"""Rehearsal: a backward pass run for its events alone, which changes nothing that a program can
see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.arrays.storage import own
from gradcli.autograd.engine.backward import backward
from gradcli.autograd.graph import Graph
from gradcli.autograd.recording.recorder import Event, Recorder
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.state import active


@contextmanager
def apart() -> Iterator[Recorder]:
    """Let what runs inside be told to a recorder of its own, which knows of no earlier pass."""
    state = active.state
    recorder, own_recorder = state.recorder, Recorder()
    state.recorder = own_recorder
    try:
        yield own_recorder
    finally:
        state.recorder = recorder


def rehearse(output: Tensor, seed: Tensor | None = None) -> list[Event]:
    """The events of a backward pass from an output: its steps, accumulations and arrivals.

    The graph is kept, and every `.grad` that the pass writes is put back, also when it fails.

    Args:
        output: where the pass starts; a scalar, unless there is a seed.
        seed: the gradient of the output, of its shape and dtype.
    """
    written: list[Any] = []
    for node in Graph(output).nodes:
        written.append(node.leaf)
        if node.node.extra is not None:
            written += [retained() for retained in node.node.extra.retained.values()]
    before = [(meta_of(each), each.grad) for each in written if each is not None]
    try:
        with apart() as recorder:
            for meta, gradient in before:
                meta.grad = None if gradient is None else Tensor(own(gradient.array))
            backward(output, seed, retain_graph=True)
        return recorder.events or []
    finally:
        for meta, gradient in before:
            meta.grad = gradient
