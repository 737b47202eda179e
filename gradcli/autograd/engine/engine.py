"""The backward engine: runs the nodes of a graph and passes their gradients on.

It works as PyTorch's does, so the order of steps and the last bits agree. A node is ready when all
gradients that flow into it have arrived; of the ready nodes the one made last runs first. An
AccumulateGrad runs as soon as it is ready, several in the order in which they became ready. A
node's gradients are checked, summed to the sizes of their inputs and cast to their dtypes here,
once, so that the rules need not do it.

Gradients travel as arrays. Only where a graph of the gradients is wanted (`create_graph`) do they
travel as tensors.

The identity map has the program's tensors whose arrays travel, so that hooks and rules meet them.

A pass that runs again and again is straight-line Python (compiled backward): a statement in a loop
mostly differentiates the same graph in every iteration, nodes of the same classes with the same
edges, made in the same order. Once it has done so often enough, a function is generated from the
trace of the pass: it does what the engine does for that graph, without heap, counts and buffers.
Its guards check that a graph has this form, and that no hook and no recorder is attached to it.
Where a guard fails, nothing has been changed yet and the engine, which handles every graph, runs
the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heappushpop
from operator import attrgetter
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY, forced
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.arrays.storage import own
from gradcli.autograd import hooks
from gradcli.autograd.engine import accumulate as accumulation
from gradcli.autograd.engine.accumulate import (
    WORTH_STEALING,
    accumulate_array,
    accumulate_grad,
    computed,
    is_fresh,
    sum_to_size,
)
from gradcli.autograd.node import SCALAR_METADATA, Node, miscounted
from gradcli.autograd.tensor import AccumulateGrad, Tensor, alias, meta_of, storage_of
from gradcli.errors import GradcliError, Label, Span, runtime_error
from gradcli.state import State, active

# --- compiled backward passes ---------------------------------------------------------------------


Targets = Sequence[tuple[Node, int]] | None
"""The nodes whose gradients are asked for, and the numbers of their outputs."""

Pass = Callable[[Node, Any, bool, bool, Targets, State, list[Tensor]], list[Any] | None]
"""Takes the root, its gradient, whether to keep saved values, whether to record, the targets, the
state, and a list for the leaves whose gradients are left lazy. Returns the targets' gradients,
None if the graph was not the one that the pass is for.
"""

_AFTER = 64
"""Passes of a statement after which its pass is compiled: compiling costs about what that many
compiled passes save.
"""

_SITES = 256
"""Statements whose passes are counted."""


class _Site:
    """A statement that runs backward passes."""

    __slots__ = ("compiled", "due", "place", "wait")

    def __init__(self, place: Span) -> None:
        self.place = place
        self.due = self.wait = _AFTER
        self.compiled: Pass | None = None


_sites: dict[int, _Site] = {}
"""The sites, by the identity of their spans."""


def run_compiled(
    root: Node, gradient: Any, keep: bool, recorded: bool, targets: Targets, state: State
) -> list[Any] | None:
    """Run the compiled pass from one root; None, with nothing changed, where there is none."""
    if not state.compiles:
        return None
    place = state.place
    site = _sites.get(id(place))
    if site is None:
        if place is None:
            return None
        if len(_sites) == _SITES:
            _sites.clear()
        site = _sites[id(place)] = _Site(place)
    if site.compiled is None:
        site.due -= 1
        if site.due:
            return None
        site.compiled = _compiled(root, recorded, targets)
        if site.compiled is None:
            return None
    left_lazy: list[Tensor] = []
    gradients = site.compiled(root, gradient, keep, recorded, targets, state, left_lazy)
    if gradients is not None:
        return computed(left_lazy, gradients)
    site.compiled = None  # another graph; it is compiled once it has come up often enough
    site.wait = site.due = 2 * site.wait
    return None


def _compiled(root: Node, recorded: bool, targets: Targets) -> Pass | None:
    """The pass over the graph of a root; None where a trace cannot express it."""
    from gradcli.autograd.engine.pass_trace import trace_of  # lazy: start-up: few get here

    trace = trace_of(root, recorded, None if targets is None else [node for node, _ in targets])
    return None if trace is None else trace.compiled()


# --- the engine -----------------------------------------------------------------------------------


# --- the identity map -----------------------------------------------------------------------------


class IdentityMap:
    """The tensors of a pass that records nothing, by their arrays: its seeds, and the tensors that
    require grad among those that hooks and custom functions return.

    Gradients travel as arrays. Where a hook receives an array of one of these tensors, it receives
    that very tensor, with its history; for a view of the array, a view of the tensor.
    """

    __slots__ = ("_by_array", "_by_memory")

    def __init__(self) -> None:
        # The arrays are kept alive, so that no other object gets the `id` of one.
        self._by_array: dict[int, tuple[Any, Tensor]] = {}
        self._by_memory: dict[int, Tensor] = {}

    def add(self, tensor: Tensor) -> None:
        array = tensor.array
        self._by_array[id(array)] = array, tensor
        if type(array) is np.ndarray:
            self._by_memory.setdefault(id(_memory(array)), tensor)

    def find(self, array: Any) -> Tensor | None:
        """The tensor of an array, or a view of the tensor whose memory it shows; None for none."""
        if not self._by_array:
            return None
        known = self._by_array.get(id(array))
        if known is not None:
            return known[1]
        if type(array) is not np.ndarray:
            return None
        tensor = self._by_memory.get(id(_memory(array)))
        return None if tensor is None else _view(tensor, array)

    def shown(self, array: Any) -> Tensor:
        """A gradient as a tensor for the program, which may write to it."""
        known = self.find(array)
        return handed(array) if known is None else known


def handed(array: Any) -> Tensor:
    """A tensor with a copy of a gradient, for the program; reported to the recorder."""
    tensor = Tensor(own(array))
    recorder = active.state.recorder
    if recorder is not None:
        recorder.handed(array, tensor)
    return tensor


def _memory(array: Any) -> Any:
    """The array that owns the memory which another one shows."""
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def _view(tensor: Tensor, array: Any) -> Tensor:
    """A view of a tensor, as views are made under `no_grad`."""
    view = alias(tensor)
    view.array = array
    view.requires_grad = tensor.requires_grad
    meta = meta_of(view)
    meta.base = tensor if tensor.base is None else tensor.base
    meta.attr_version = storage_of(tensor).version
    meta.creation = "no_grad"
    meta.loose = True
    return view


# --- the engine -----------------------------------------------------------------------------------


_SEQUENCE = attrgetter("sequence_nr")

_SOONEST = 1 << 62
"""More than any sequence number: nodes that raise when they run come first, in the order in which
they became ready.
"""

Root = tuple[Node, int, Any]
Target = tuple[Node, int]


def run_backward(
    roots: Sequence[Root],
    *,
    keep_graph: bool,
    create_graph: bool,
    recorded: bool = True,
    targets: Sequence[Target] | None = None,
    accumulate: bool = True,
    identity_map: IdentityMap,
) -> list[Any]:
    """Run the graph backward from its roots.

    Args:
        roots: where it starts: node, output number and the gradient of that output, as an array, or
            as a tensor under `create_graph`.
        keep_graph: keep the saved values for another pass.
        create_graph: record a graph of the gradients.
        recorded: whether that graph is wanted; inside `vmap` gradients travel as tensors anyway.
        targets: run only what leads to these `(node, output number)`, and collect their gradients.
        accumulate: add to `.grad` of the leaves that are reached; with `targets`, of the targets.
        identity_map: knows the tensors whose arrays travel as gradients: those of the seeds, and
            those that hooks and custom functions return.

    Returns:
        The gradient of each target, None where none arrived; an empty list without targets.

    Raises:
        GradcliError: E403 and E404 from the nodes, E410 where a rule's gradient does not fit its
            input.
    """
    state = active.state
    before = state.grad_enabled
    place = state.place
    outer = state.backward_pass
    state.grad_enabled = create_graph and recorded
    try:
        if (
            len(roots) == 1
            and state.recorder is None
            and (not accumulate if targets is not None else not create_graph)
        ):
            root, _, gradient = roots[0]
            gradients = run_compiled(root, gradient, keep_graph, create_graph, targets, state)
            if gradients is not None:
                return gradients
        this = _Pass(state, keep_graph, create_graph, targets, accumulate, identity_map)
        state.backward_pass = this
        return this.run(roots)
    except GradcliError as error:
        if error.code in ("E403", "E404") and place is not None:
            error.labels += (Label(place, "needed here"),)
        raise
    finally:
        state.grad_enabled = before
        state.place = place
        state.backward_pass = outer


class _Pass:
    """One run of the engine.

    Attributes:
        plain: whether a leaf without hooks can take an arriving array as it is: nothing is
            recorded.
        needed: with targets, the nodes that run: those that lead to a target, and the targets' own
            nodes where their gradients are accumulated.
        reached: with targets, the nodes that gradients flow to: those needed and those wanted.
        place: that of the statement that runs it.
        ready: a heap of `(-sequence number, node, its gradient or gradients)`.
    """

    def __init__(
        self,
        state: State,
        keep_graph: bool,
        create_graph: bool,
        targets: Sequence[Target] | None,
        accumulate: bool,
        identity_map: IdentityMap,
    ) -> None:
        self.state = state
        self.place = state.place
        self.recorder = state.recorder
        self.keep = (
            keep_graph if self.recorder is None else self.recorder.begin_backward(keep_graph)
        )
        if state.batch is not None:  # the ops on the values of all examples are recorded
            self.recorder = None
        self.create_graph = create_graph
        self.accumulate = accumulate
        self.identity_map = identity_map
        self.targets = targets
        self.plain = targets is None and not create_graph and state.recorder is None
        self.unseen = self.plain
        self.captured: dict[Target, Any] = {}
        self.lazy: list[Tensor] = []
        self.waiting: dict[Node, int] = {}
        self.wanted: set[Node] = set()
        self.needed: set[Node] | None = None
        self.reached: set[Node] | None = None
        self.buffers: dict[Node, Any] = {}
        self.ready: list[tuple[int, Node, Any]] = []

    def run(self, roots: Sequence[Root]) -> list[Any]:
        if self.recorder is not None:
            self.recorder.backward(roots, self.accumulate)
        elif self.state.recorder is not None:
            for _, _, seed in roots:
                if type(seed) is Tensor:
                    self.state.recorder.wrapped(seed)
        nodes = list(dict.fromkeys([node for node, _, _ in roots]))
        self._count_dependencies(nodes)
        if self.targets is not None:
            reached = self.reached = self._find_needed()
            if len(roots) == 1 and nodes[0] not in reached:
                self._pass_by(*roots[0])
            nodes = [node for node in nodes if node in reached]
            roots = [root for root in roots if root[0] in reached]
        for node, output_nr, gradient in roots:
            self._receive(node, output_nr, gradient)
        for node in nodes:
            # A root that is also reached from another root waits for it.
            if self.waiting[node] == 0:
                self._make_ready(node, self.buffers.pop(node))
        self._run_ready()
        return computed(self.lazy, [self.captured.get(target) for target in self.targets or ()])

    # --- before ---------------------------------------------------------------------------------

    def _count_dependencies(self, roots: list[Node]) -> None:
        """Count for each node how many edges lead to it."""
        waiting = self.waiting = dict.fromkeys(roots, 0)
        stack = roots.copy()
        while stack:
            for following in stack.pop().next_nodes:
                if following is not None:
                    if following in waiting:
                        waiting[following] += 1
                    else:
                        waiting[following] = 1
                        stack.append(following)

    def _find_needed(self) -> set[Node]:
        """Find the nodes that run; returns those that gradients flow to."""
        assert self.targets is not None
        self.wanted = {node for node, _ in self.targets}
        leading: set[Node | None] = set(self.wanted)
        needed: set[Node] = set()
        if self.accumulate:
            needed.update([node for node in self.wanted if type(node) is not AccumulateGrad])
        # What a node leads to was made before it.
        for node in sorted(self.waiting, key=_SEQUENCE):
            if not leading.isdisjoint(node.next_nodes):
                leading.add(node)
                needed.add(node)
        self.needed = needed
        return needed | self.wanted

    def _pass_by(self, root: Node, output_nr: int, gradient: Any) -> None:
        """Call the hooks of a sole root that leads to no target, as PyTorch does."""
        if isinstance(root, AccumulateGrad):
            hooks.call_tensor_hooks(meta_of(root.variable).hooks, gradient)
        elif root.extra is not None:
            self._receive(root, output_nr, gradient)
            self._serve_extra(root, self.buffers.pop(root))

    def will_run(self, node: Node) -> bool:
        """Whether this pass runs the node.

        Raises E204 for a leaf whose gradient is collected and not accumulated, as PyTorch does.
        """
        if self.needed is None:
            return node in self.waiting
        if node not in self.wanted:
            return node in self.needed
        if not self.accumulate and type(node) is AccumulateGrad:
            raise runtime_error(
                "register_multi_grad_hook(): grad() was asked for the gradient of a leaf among the"
                " tensors"
            )
        return True

    # --- during ---------------------------------------------------------------------------------

    def _run_ready(self) -> None:
        """Run the nodes that are ready until there are none.

        One loop over local names, as it runs once for every node of every backward pass. A gradient
        whose node waits for no other goes onto the heap with its node and needs no buffer; where
        that node is the only one that is ready, it runs next without the heap.
        """
        state, recorder, keep, recorded = self.state, self.recorder, self.keep, self.create_graph
        waiting, buffers, ready = self.waiting, self.buffers, self.ready
        wanted, reached = self.wanted, self.reached
        place = state.place
        scalar_metadata = SCALAR_METADATA.get
        alone: tuple[int, Node, Any] | None = None
        while ready or alone is not None:
            if alone is None:
                _, node, grads = heappop(ready)
            else:
                _, node, grads = heappushpop(ready, alone) if ready else alone
                alone = None
            if node.extra is not None or node in wanted:
                grads = self._before(node, grads)
                if grads is None:
                    continue
            state.place = at = node.place
            if recorded and at is not None:
                state.place = at.of_rule
            if type(grads) is list and not any(each is not None for each in grads):
                gradients = node.pass_over(grads, recorded, keep)
            else:
                gradients = (node.run_recorded if recorded else node.run)(grads, keep)
            node.ran_at = place
            if node.extra is not None or recorder is not None:
                gradients = self._after(node, grads, gradients)
            next_nodes = node.next_nodes
            if len(gradients) != len(next_nodes):
                raise miscounted(node, len(gradients))
            leaves = None
            input_nrs = node.input_nrs
            for number, following in enumerate(next_nodes):
                if following is None or (reached is not None and following not in reached):
                    continue
                output_nr, gradient = input_nrs[number], gradients[number]
                metadata = following.metadata
                if metadata is not scalar_metadata(type(gradient)) and gradient is not None:
                    array = gradient.array if recorded else gradient
                    shape, dtype = metadata[output_nr]
                    if array.shape != shape or array.dtype is not dtype:
                        gradient = sum_to_size(node, gradient, array, shape, dtype, number)
                    if type(gradient) in LAZY and not following.reads_lazy:
                        gradient = gradient.force()
                left = waiting[following] - 1
                if left:
                    waiting[following] = left
                    if gradient is not None:
                        self._receive(following, output_nr, gradient)
                    continue
                if following.multiple:
                    if gradient is not None:
                        self._receive(following, output_nr, gradient)
                    gradient = buffers.pop(following, None)
                elif buffers and following in buffers:
                    held = buffers.pop(following)
                    gradient = held if gradient is None else self._sum(following, held, gradient)
                if type(following) is not AccumulateGrad:
                    if gradient is None:
                        gradient = [None] * len(following.metadata)
                    rank = len(ready) - _SOONEST if following.refuses else -following.sequence_nr
                    if ready or alone is not None:
                        heappush(ready, (rank, following, gradient))
                    else:
                        alone = rank, following, gradient
                elif leaves is None:
                    leaves = [(following, gradient)]
                else:
                    leaves.append((following, gradient))
            if leaves is not None:
                if len(leaves) > 3 and _are_followed(leaves):
                    others = len(ready) + (alone is not None)
                    leaves = [leaves[n] for n in order_of_leaves(len(leaves), others)]
                for leaf, gradient in leaves:
                    fresh = (
                        type(gradient) in ARRAYS
                        and gradient.nbytes >= WORTH_STEALING
                        and node.fresh
                        and is_fresh(gradient, grads, gradients, leaf, self.unseen)
                    )
                    self._arrive(leaf, gradient, fresh)

    def _receive(self, node: Node, output_nr: int, gradient: Any) -> None:
        """Add a gradient to the buffer of the node that it flows to."""
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
        if self.create_graph:
            self.state.place = self.place  # a sum is of several rules
        total = (accumulation.add if self.create_graph else accumulation.add_arrays)(old, incoming)
        if self.recorder is not None:
            self.recorder.accumulation(node, old, incoming, total)
        return total

    def _fitted(self, node: Node, gradients: Sequence[Any]) -> list[Any]:
        """A node's gradients, summed to the sizes of its inputs and cast if passed on."""
        fitted, reached = [], self.reached
        for following, output_nr, gradient in zip(
            node.next_nodes, node.input_nrs, gradients, strict=True
        ):
            if (
                following is not None
                and gradient is not None
                and (reached is None or following in reached)
            ):
                array = gradient.array if self.create_graph else gradient
                passed = sum_to_size(node, gradient, array, *following.metadata[output_nr])
                if passed is not gradient and self.recorder is not None:
                    self.recorder.fit(gradient, passed)
                gradient = passed
            fitted.append(gradient)
        return fitted

    def _make_ready(self, node: Node, gradient: Any) -> None:
        """Accumulate at once where the node is a leaf's; put any other node on the heap."""
        if isinstance(node, AccumulateGrad):
            self._arrive(node, gradient)
        else:
            heappush(self.ready, (-node.sequence_nr, node, gradient))

    def _arrive(self, leaf: AccumulateGrad, gradient: Any, fresh: bool = False) -> None:
        """Accumulate a leaf's gradient, None for none; `fresh` memory is not copied."""
        variable = leaf.variable
        meta = variable.meta or meta_of(variable)
        if self.plain and leaf.extra is None and not meta.hooks and not meta.accumulated_hooks:
            if gradient is not None:
                accumulate_array(leaf, gradient, fresh, self.lazy)
            return
        if meta.hooks:
            gradient = hooks.call_tensor_hooks(meta.hooks, forced(gradient))
        if leaf.extra is not None:
            gradient = self._serve_extra(leaf, gradient)
        if self.targets is not None:
            self.captured[leaf, 0] = gradient
            if not self.accumulate:
                return
        if leaf.extra is not None and leaf.extra.prehooks:
            gradient = hooks.call_prehooks(leaf.extra.prehooks, gradient, None)
        # `requires_grad_(False)` after the graph was made.
        if variable.requires_grad and gradient is not None:
            accumulate_grad(leaf, gradient, self.create_graph, self.recorder)
            left = meta.grad
            assert left is not None
            if type(left.array) in LAZY:
                self.lazy.append(left)
        if meta.accumulated_hooks:
            for hook in list(meta.accumulated_hooks.values()):
                hooks.check_result(variable, hook(variable), hook)
        if leaf.extra is not None and leaf.extra.hooks:
            hooks.call_node_hooks(leaf.extra.hooks, (), gradient)

    # --- what few nodes have --------------------------------------------------------------------

    def _before(self, node: Node, grads: Any) -> Any:
        """The gradients that a node runs with, after hooks, `retain_grad` and targets; None where
        it does not run.
        """
        asked, runs = node in self.wanted, self.needed is None or node in self.needed
        if asked and runs:  # PyTorch returns what arrived and passes on what the hooks made of it
            self._capture(node, grads)
        extra = node.extra
        if extra is not None:
            self.unseen = False
            grads = self._serve_extra(node, grads)
        if not runs:
            self._capture(node, grads)
            return None
        if extra is not None and extra.prehooks:
            grads = hooks.call_prehooks(extra.prehooks, forced(grads), node.outputs)
            if grads is None:  # a prehook removed it
                grads = [None]
        return grads

    def _after(self, node: Node, grads: Any, gradients: Any) -> Any:
        """A node's gradients after its hooks; reported to the recorder."""
        if self.recorder is not None:
            self.recorder.evaluated(node, grads, gradients)
        if node.extra is not None and node.extra.hooks:
            gradients = tuple(self._fitted(node, gradients))
            reached = self.reached
            if reached is not None:  # the hooks see what the pass asks for
                pairs = zip(node.next_nodes, gradients, strict=True)
                gradients = tuple([g if n is None or n in reached else None for n, g in pairs])
            gradients = hooks.call_node_hooks(node.extra.hooks, gradients, grads, node.outputs)
        if self.recorder is not None and len(gradients) == len(node.next_nodes):
            fitted = self._fitted(node, gradients)
            self.recorder.step(node, grads, gradients, fitted)
            gradients = tuple(fitted)
        return gradients

    def _serve_extra(self, node: Node, grads: Any) -> Any:
        """Call the hooks before a node runs, and keep the gradients of tensors that retain them."""
        extra = node.extra
        assert extra is not None
        grads = forced(grads)
        for output_nr, of_tensor in extra.tensor_hooks.items():
            if isinstance(grads, list):
                grads[output_nr] = hooks.call_tensor_hooks(of_tensor, grads[output_nr])
            else:
                grads = hooks.call_tensor_hooks(of_tensor, grads)
        for output_nr, reference in extra.retained.items():
            tensor = reference()
            gradient = grads[output_nr] if isinstance(grads, list) else grads
            if isinstance(tensor, Tensor) and gradient is not None:
                old = tensor.grad
                if old is not None:
                    new = gradient if self.create_graph else Tensor(gradient)
                    new = accumulation.add(old, new)
                else:
                    new = accumulation.clone(gradient) if self.create_graph else handed(gradient)
                meta_of(tensor).grad = new
        return grads

    def _capture(self, node: Node, grads: Any) -> None:
        assert self.targets is not None
        for target, output_nr in self.targets:
            if target is node:
                gradient = grads[output_nr] if isinstance(grads, list) else grads
                self.captured[target, output_nr] = gradient


def _are_followed(leaves: Sequence[tuple[AccumulateGrad, Any]]) -> bool:
    """Whether hooks of the program tell in which order leaves are served."""
    metas = [leaf.variable.meta for leaf, _ in leaves]
    return any(meta is not None and (meta.hooks or meta.accumulated_hooks) for meta in metas)


def order_of_leaves(count: int, others: int) -> list[int]:
    """The order in which PyTorch serves leaves that one node made ready, of which all rank alike:
    that in which the binary heap of the C++ library gives them back, of two children the right one.

    Args:
        others: how many other nodes wait, which rank below all leaves.
    """
    heap: list[int] = []  # the numbers of leaves, and -1 for each other node

    def rise(place: int, value: int) -> None:
        while place and heap[(place - 1) // 2] < 0 <= value:
            heap[place] = heap[(place - 1) // 2]
            place = (place - 1) // 2
        heap[place] = value

    for value in (*[-1] * others, *range(count)):
        heap.append(value)
        rise(len(heap) - 1, value)
    order: list[int] = []
    while len(order) < count:
        order.append(heap[0])
        value = heap.pop()
        place, child = 0, 2
        while child <= len(heap):
            if child == len(heap) or heap[child] < 0 <= heap[child - 1]:
                child -= 1
            heap[place] = heap[child]
            place, child = child, 2 * child + 2
        if heap:
            rise(place, value)
    return order
