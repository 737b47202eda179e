"""What hooks changed in a backward pass: the gradient that was passed on is not what arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Accumulation, Arrival, Event


def before_hooks(events: Sequence[Event]) -> list[dict[int, Any]]:
    """For each event the gradients that a hook replaced before it, by output number."""
    passed: dict[tuple[Node, int], Any] = {}
    found: list[dict[int, Any]] = []
    for event in events:
        if isinstance(event, Accumulation):
            # With several outputs, which of them it was is not recorded.
            for number in range(len(event.node.metadata)):
                passed.pop((event.node, number), None)
            if len(event.node.metadata) == 1:
                passed[event.node, 0] = event.total
            found.append({})
            continue
        arrived = [event.incoming] if isinstance(event, Arrival) else event.grads
        found.append(
            {
                number: passed[event.node, number]
                for number, gradient in enumerate(arrived)
                if (event.node, number) in passed
                and not _alike(passed[event.node, number], gradient)
            }
        )
        if not isinstance(event, Arrival):
            edges = zip(event.node.next_nodes, event.node.input_nrs, event.fitted, strict=True)
            for node, number, gradient in edges:
                if node is not None and gradient is not None:
                    passed[node, number] = gradient
    return found


def _alike(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    a, b = np.asarray(forced(a)), np.asarray(forced(b))
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
