"""The backward engine.

It works as PyTorch's does, so traces and last bits agree: every node waits until all gradients that
flow into it have arrived; of the nodes that are ready, the one made last runs first; an
AccumulateGrad runs as soon as it is ready, several in the order in which they became so. A node's
gradients are checked, summed to the shape of the input that they belong to and cast to its dtype
here, once, so that the rules need not.

Gradients travel as arrays. Only where a graph of the gradients is wanted (`create_graph`) do they
travel as tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradcli.arrays.storage import own
from gradcli.autograd import hooks
from gradcli.autograd.node import AccumulateGrad, Node
from gradcli.autograd.tensor import Tensor, meta_of, not_installed
from gradcli.errors import GradcliError
from gradcli.state import State, active

# The engine sums, casts and copies gradients; `gradcli.ops` installs its ops for that.
add: Callable[[Any, Any], Any] = not_installed
sum_to: Callable[[Any, tuple[int, ...]], Any] = not_installed
cast: Callable[[Any, Any], Any] = not_installed
copy: Callable[[Tensor], Tensor] = not_installed

Root = tuple[Node, int, Any]
Target = tuple[Node, int]


def run_backward(
    roots: Sequence[Root],
    *,
    keep_graph: bool,
    create_graph: bool,
    targets: Sequence[Target] | None = None,
    accumulate: bool = True,
) -> list[Any]:
    """Run the graph backward from its roots.

    Args:
        roots: where it starts: node, output number and the gradient of that output, as an array, or
            as a tensor under `create_graph`.
        keep_graph: keep the saved values for another pass.
        create_graph: record a graph of the gradients.
        targets: run only what leads to these `(node, output number)`, and collect their gradients.
        accumulate: add to `.grad` of the leaves that are reached; with `targets`, of the targets.

    Returns:
        The gradient of each target, None where none arrived; an empty list without targets.

    Raises:
        GradcliError: E403 and E404 from the nodes, E410 where a rule's gradient does not fit its
            input.
    """
    state = active.state
    before = state.grad_enabled
    place = state.place
    state.grad_enabled = create_graph
    try:
        return _Pass(state, keep_graph, create_graph, targets, accumulate).run(roots)
    finally:
        state.grad_enabled = before
        state.place = place


class _Pass:
    """One run of the engine."""

    def __init__(
        self,
        state: State,
        keep_graph: bool,
        create_graph: bool,
        targets: Sequence[Target] | None,
        accumulate: bool,
    ) -> None:
        self.state = state
        self.recorder = state.recorder
        self.keep = keep_graph
        self.create_graph = create_graph
        self.accumulate = accumulate
        self.targets = targets
        self.captured: dict[Target, Any] = {}
        self.waiting: dict[Node, int] = {}
        self.needed: set[Node] | None = None
        self.buffers: dict[Node, Any] = {}
        self.ready: list[tuple[int, Node]] = []

    def run(self, roots: Sequence[Root]) -> list[Any]:
        self._count_dependencies([node for node, _, _ in roots])
        if self.targets is not None:
            self._find_needed([node for node, _, _ in roots])
        arrived: list[Node] = []
        for node, output_nr, gradient in roots:
            self._receive(node, output_nr, gradient)
            if node not in arrived:
                arrived.append(node)
        for node in arrived:
            # A root that is also reached from another root waits for it.
            if self.waiting.get(node, 0) == 0:
                self._make_ready(node)
        while self.ready:
            node = heappop(self.ready)[1]
            if type(node) is AccumulateGrad:
                self._arrive(node)
            else:
                self._run_node(node)
        return [self.captured.get(target) for target in self.targets or ()]

    # --- before ---------------------------------------------------------------------------------

    def _count_dependencies(self, roots: list[Node]) -> None:
        """Count for each node how many edges lead to it."""
        waiting = self.waiting
        seen = set(roots)
        stack = list(seen)
        while stack:
            for following in stack.pop().next_nodes:
                if following is not None:
                    if following in waiting:
                        waiting[following] += 1
                    else:
                        waiting[following] = 1
                    if following not in seen:
                        seen.add(following)
                        stack.append(following)

    def _find_needed(self, roots: list[Node]) -> None:
        """Find the nodes that lead to a target; only they are run."""
        assert self.targets is not None
        targets = {node for node, _ in self.targets}
        needed: set[Node] = set()
        done: set[Node] = set()
        stack: list[tuple[Node, bool]] = [(root, False) for root in roots]
        while stack:
            node, children_done = stack.pop()
            if children_done:
                if any(n is not None and (n in needed or n in targets) for n in node.next_nodes):
                    needed.add(node)
            elif node not in done:
                done.add(node)
                stack.append((node, True))
                stack += [(n, False) for n in node.next_nodes if n is not None and n not in done]
        self.needed = needed

    # --- during ---------------------------------------------------------------------------------

    def _receive(self, node: Node, output_nr: int, gradient: Any) -> None:
        """Put a gradient into the buffer of the node that it flows to, adding to what is there."""
        if not node.multiple:
            old = self.buffers.get(node)
            self.buffers[node] = gradient if old is None else self._sum(node, old, gradient)
            return
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node.metadata)
        old = buffer[output_nr]
        buffer[output_nr] = gradient if old is None else self._sum(node, old, gradient)

    def _sum(self, node: Node, old: Any, incoming: Any) -> Any:
        total = add(old, incoming) if self.create_graph else old + incoming
        if self.recorder is not None:
            self.recorder.accumulation(node, old, incoming, total)
        return total

    def _make_ready(self, node: Node) -> None:
        heappush(self.ready, (-node.sequence_nr, node))

    def _run_node(self, node: Node) -> None:
        grads = self.buffers.pop(node)
        if node.extra is not None:
            grads = self._serve_extra(node, grads)
        if self.targets is not None:
            self._capture(node, grads)
            assert self.needed is not None
            if node not in self.needed:
                return
        self.state.place = node.place
        run = node.run_recorded if self.create_graph else node.run
        gradients = run(grads, self.keep)
        if node.extra is not None and node.extra.hooks:
            gradients = hooks.call_node_hooks(node.extra.hooks, gradients, grads)
        if len(gradients) != len(node.next_nodes):
            raise GradcliError(
                "E410",
                f"{node.node_name} returned {len(gradients)} gradients for"
                f" {len(node.next_nodes)} inputs",
            )
        self._pass_on(node, grads, gradients)

    def _pass_on(self, node: Node, grads: Any, gradients: tuple[Any, ...]) -> None:
        """Check a node's gradients and hand them to the next nodes."""
        waiting = self.waiting
        leaves: list[AccumulateGrad] = []
        fitted: list[Any] = []
        next_nodes = node.next_nodes
        for i, following in enumerate(next_nodes):
            gradient = gradients[i]
            if following is not None and gradient is not None:
                shape, dtype = following.metadata[node.input_nrs[i]]
                array = gradient.array if self.create_graph else gradient
                if array.shape != shape or array.dtype is not dtype:
                    gradient = _fit(node, i, gradient, array, shape, dtype)
            fitted.append(gradient)
        if self.recorder is not None:
            self.recorder.step(node, grads, gradients, fitted)
        for i, following in enumerate(next_nodes):
            if following is None:
                continue
            gradient = fitted[i]
            if gradient is not None:
                self._receive(following, node.input_nrs[i], gradient)
            left = waiting[following] - 1
            waiting[following] = left
            if left == 0 and following in self.buffers:
                if type(following) is AccumulateGrad:
                    leaves.append(following)
                else:
                    heappush(self.ready, (-following.sequence_nr, following))
            elif left == 0:
                self._skip(following)
        for leaf in leaves:
            self._arrive(leaf)

    def _skip(self, node: Node) -> None:
        """A node that no gradient reached does not run, and neither do those behind it, unless
        others reach them.
        """
        stack = [node]
        while stack:
            for following in stack.pop().next_nodes:
                if following is None:
                    continue
                self.waiting[following] -= 1
                if self.waiting[following] == 0:
                    if following not in self.buffers:
                        stack.append(following)
                    elif type(following) is AccumulateGrad:
                        self._arrive(following)
                    else:
                        self._make_ready(following)

    def _arrive(self, leaf: AccumulateGrad) -> None:
        gradient = self.buffers.pop(leaf)
        meta = meta_of(leaf.variable)
        if meta.hooks:
            gradient = hooks.call_tensor_hooks(meta.hooks, gradient)
        if leaf.extra is not None:
            gradient = self._serve_extra(leaf, gradient)
        if self.targets is not None:
            wanted = any(node is leaf for node, _ in self.targets)
            if not wanted:
                return
            self.captured[leaf, 0] = gradient
            if not self.accumulate:
                return
        accumulate_grad(leaf, gradient, self.create_graph, self.recorder)
        if leaf.extra is not None and leaf.extra.hooks:
            hooks.call_node_hooks(leaf.extra.hooks, (), gradient)
        for hook in list(meta.accumulated_hooks.values()):
            hook(leaf.variable)

    # --- what few nodes have --------------------------------------------------------------------

    def _serve_extra(self, node: Node, grads: Any) -> Any:
        """Call the hooks before a node runs, and keep the gradients of tensors that retain them."""
        extra = node.extra
        assert extra is not None
        for output_nr, of_tensor in extra.tensor_hooks.items():
            if isinstance(grads, list):
                if grads[output_nr] is not None:
                    grads[output_nr] = hooks.call_tensor_hooks(of_tensor, grads[output_nr])
            else:
                grads = hooks.call_tensor_hooks(of_tensor, grads)
        for output_nr, reference in extra.retained.items():
            tensor = reference()
            gradient = grads[output_nr] if isinstance(grads, list) else grads
            if tensor is not None and gradient is not None:
                kept = gradient if self.create_graph else Tensor(own(gradient))
                old = tensor.grad
                meta_of(tensor).grad = kept if old is None else add(old, kept)
        return hooks.call_prehooks(extra.prehooks, grads) if extra.prehooks else grads

    def _capture(self, node: Node, grads: Any) -> None:
        assert self.targets is not None
        for target, output_nr in self.targets:
            if target is node:
                gradient = grads[output_nr] if isinstance(grads, list) else grads
                self.captured[target, output_nr] = gradient


def _fit(
    node: Node, number: int, gradient: Any, array: Any, shape: tuple[int, ...], dtype: Any
) -> Any:
    """A gradient summed to its input's shape and cast to its dtype; raises E410 where it cannot
    be."""
    if array.shape != shape:
        if not _expands(shape, array.shape):
            raise GradcliError(
                "E410",
                f"{node.node_name} returned a gradient of shape {tuple(array.shape)} for input"
                f" {number} of shape {shape}",
            )
        gradient = sum_to(gradient, shape)
    if array.dtype is not dtype:
        gradient = cast(gradient, dtype)
    return gradient


def _expands(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to a larger one."""
    if len(shape) > len(larger):
        return False
    tail = larger[len(larger) - len(shape) :]
    return all(have in (1, want) for have, want in zip(shape, tail, strict=True))


def accumulate_grad(leaf: AccumulateGrad, gradient: Any, create_graph: bool, recorder: Any) -> None:
    """Add a gradient to the leaf's `.grad`: in place, unless a graph of the gradient is
    recorded."""
    variable = leaf.variable
    meta = meta_of(variable)
    old = meta.grad
    before = None if recorder is None or old is None else own(old.array)
    if old is None:
        if create_graph:
            meta.grad = copy(gradient) if gradient.requires_grad else Tensor(own(gradient.array))
        else:
            meta.grad = Tensor(own(gradient))
        new = meta.grad.array
    elif create_graph:
        meta.grad = add(old, gradient)
        new = meta.grad.array
    else:
        new = old.array + gradient
        if isinstance(old.array, np.ndarray):
            old.array[...] = new
            new = old.array
        else:
            old.array = new
        if old.storage is not None:
            old.storage.version += 1
    if recorder is not None:
        recorder.leaf(leaf, before, gradient.array if create_graph else gradient, new)
