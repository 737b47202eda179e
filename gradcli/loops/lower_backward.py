"""A backward pass as straight-line Python: the rules of its nodes, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from gradcli.autograd.engine import accumulate
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.node import FREED, Node, reachable
from gradcli.autograd.tensor import AccumulateGrad, Tensor
from gradcli.loops.kinds import context_class
from gradcli.loops.symbols import IterationBuilder
from gradcli.ops.codegen.node_class import on_arrays
from gradcli.ops.codegen.promotion import EVERYDAY
from gradcli.ops.codegen.signature import signature_of
from gradcli.ops.definition.doc import BY_VALUES
from gradcli.ops.definition.op import Op, parameters_of
from gradcli.trace.ir import GraphBreak, Kernel, Stack, Value

_LARGEST = 5_000
"""Nodes of the largest graph that is written."""


ADD = Kernel("add", accumulate.add_arrays, raises=False)
CASTING = frozenset({"add", "div", "mul", "sub"})
"""The ops that cast operands of several dtypes, and then compute."""

CAST = Kernel("cast", accumulate.cast, raises=False)
SUM_TO = Kernel("sum_to", accumulate.sum_to, raises=False)


def write_backward(
    text: IterationBuilder, root: Node, seed: Any, since: int
) -> dict[AccumulateGrad, Value]:
    """Write the pass that begins with a gradient of the root's only output, and calls no hooks. The
    `backward` of a custom function is run and recorded; the pass reads the gradients it returned.

    Args:
        since: the sequence number that the iteration began with: nodes made before are not its own.
    """
    nodes = nodes_of(root, since)
    # Of the nodes that are ready the one made last runs first, and it waits only for later ones.
    nodes.sort(key=lambda node: -node.sequence_nr)
    arrived: dict[tuple[Node, int], Value] = {(root, 0): text.constant(seed)}
    stacks: dict[Any, Stack] = {}
    for node in nodes:
        outputs = [arrived.pop((node, number), None) for number in range(len(node.metadata))]
        if all(gradient is None for gradient in outputs):
            continue
        place = node.node_name, node.place
        text.span, text.stack = node.place, stacks.setdefault(place, (place,))
        run = _run_custom if isinstance(node, context_class()) else write_rules
        gradients = run(text, node, outputs)
        # Each is fitted before the next is computed, while it lies in the cache.
        for gradient, to, output_nr in zip(gradients, node.next_nodes, node.input_nrs, strict=True):
            if gradient is None or to is None:
                continue
            gradient = fitted(text, gradient, *to.metadata[output_nr])
            earlier = arrived.get((to, output_nr))
            if earlier is not None:
                gradient = text.call(ADD, (earlier, gradient))
            arrived[to, output_nr] = gradient
    return {
        node: gradient
        for (node, _), gradient in arrived.items()
        if isinstance(node, AccumulateGrad)
    }


def fitted(text: IterationBuilder, gradient: Value, shape: tuple[int, ...], dtype: Any) -> Value:
    """A gradient with the shape of what it is the gradient of, and in its dtype, as where a loss is
    of float64.
    """
    if gradient.array.shape != shape:
        gradient = text.call(SUM_TO, (gradient, shape))
    if gradient.array.dtype is dtype:
        return gradient
    if gradient.array.dtype.kind != dtype.kind:
        raise GraphBreak("a complex gradient of something real, or a real one of something complex")
    cast: Value = text.call(CAST, (gradient, dtype))
    return cast


def hooks_below(root: Node) -> list[Any]:
    """The hooks that a pass from a root calls; where gradients of tensors are retained, None among
    them.
    """
    hooks: list[Any] = []
    for node in reachable([root]):
        extra = node.extra
        if type(node) is AccumulateGrad:
            if extra is not None and (extra.hooks or extra.prehooks or extra.tensor_hooks):
                raise GraphBreak("the node that accumulates a leaf's gradient has hooks")
            meta = node.variable.meta
            if meta is not None:
                hooks += (*meta.hooks.values(), *meta.accumulated_hooks.values())
        elif extra is not None:
            hooks += (
                *extra.prehooks.values(),
                *extra.hooks.values(),
                *[None for _ in extra.retained],
            )
            hooks += [each for table in extra.tensor_hooks.values() for each in table.values()]
    return hooks


def nodes_of(root: Node, since: int) -> list[Node]:
    """The nodes of ops and of custom functions below a root; GraphBreak for others."""
    nodes: list[Node] = []
    for node in reachable([root]):
        if type(node) is AccumulateGrad:
            continue
        if not isinstance(node, context_class()) and (
            not hasattr(type(node), "op") or node.refuses
        ):
            raise GraphBreak(f"the backward pass runs {node.node_name}, which is no op's")
        if node.sequence_nr <= since:
            raise GraphBreak(
                "the graph reaches back into an earlier iteration",
                "detach() what one iteration hands to the next",
            )
        nodes.append(node)
    if len(nodes) > _LARGEST:
        raise GraphBreak("the graph has too many nodes", code="B03")
    return nodes


def write_rules(
    text: IterationBuilder, node: Node, outputs: list[Value | None]
) -> Iterator[Value | None]:
    """Write what a node's `run` does: the gradients of its inputs, one after the other."""
    op: Op = node.op
    mixed = getattr(node, "mixed", False)
    if mixed and not _casts_first(node):
        raise GraphBreak(f"the operands of `{op.name}` are promoted to another dtype")
    values: dict[str, Any] = {"grads": outputs, "needs": [n is not None for n in node.next_nodes]}
    if len(outputs) == 1:
        values["grad"] = outputs[0]
    layout = signature_of(op)
    for name in (*layout.saved_tensors, *layout.saved_results):
        if hasattr(node, f"saved_{name}"):
            values[name] = _saved(text, getattr(node, f"saved_{name}"))
            if mixed and values[name].array.dtype is not node.metadata[0][1]:
                values[name] = text.call(CAST, (values[name], node.metadata[0][1]))
    for name in op.unread:
        values[name] = text.zeros_like(values[name])
    for name in layout.arguments:
        argument = getattr(node, f"argument_{name}")
        unknown = name in op.keeps and text.known(argument) is argument
        if not is_setting(argument) or (unknown and id(argument) not in text.fixed_keys):
            raise GraphBreak("a rule is given more than settings and arrays")
        values[name] = _setting(text, argument)
    lengths = [f"{name}_sizes" for name in layout.sizes]
    for name in (*lengths, *[f"{name}_strides" for name in layout.strides]):
        values[name] = getattr(node, name)
    if op.joint is not None or op.lists:
        rule = op.joint or op.rules[op.lists[0]]
        called = Kernel(f"{op.name}.grads", on_arrays(rule), raises=op.raises == BY_VALUES)
        gradients = text.call(called, [values[name] for name in parameters_of(rule)])
        if type(gradients) is not tuple or len(gradients) != len(node.next_nodes):
            raise GraphBreak("a rule gave another number of gradients than there are inputs")
        yield from gradients
        return
    for name, to in zip(op.inputs, node.next_nodes, strict=True):
        if to is None:
            yield None
            continue
        operands = [values[each] for each in parameters_of(op.rules[name])]
        kernel = _rule_on_arrays(op, name)
        yield text.call(kernel, operands, op.reads_lazy and not kernel.raises)


def _casts_first(node: Node) -> bool:
    """Whether rules give for operands of several dtypes what they give for those in the dtype of
    the result: where they multiply a gradient by one operand, or divide it.
    """
    if type(node.mixed) is tuple or node.metadata[0][1] not in EVERYDAY:  # type: ignore[attr-defined]
        return False
    return node.op.name in CASTING and (node.op.name != "div" or node.next_nodes[1] is None)


def _run_custom(text: IterationBuilder, node: Any, outputs: list[Value | None]) -> list[Any]:
    """Run what a program wrote for the gradients of a custom function."""
    seeds = [None if output is None else Tensor(output.array) for output in outputs]
    with NoGrad():
        gradients = node.run_recorded(seeds, True)
    node.function = _Ran(node, gradients)
    return [None if gradient is None else text.of(gradient) for gradient in gradients]


class _Ran:
    """Stands for the custom function of a node in the one pass that its `backward` ran for."""

    def __init__(self, node: Any, gradients: Sequence[Tensor | None]) -> None:
        self.node = node
        self.function = node.function
        self.gradients = iter([None if g is None else Tensor(g.array.copy()) for g in gradients])

    def backward(self, *_: Any) -> tuple[Tensor | None, ...]:
        self.node.function = self.function
        return tuple([next(self.gradients) if each else None for each in self.node.is_tensor])


@cache
def _rule_on_arrays(op: Op, name: str) -> Kernel:
    """The rule of an op for one of its inputs."""
    rule = on_arrays(op.rules[name])
    return Kernel(f"{op.name}.{name}", rule, raises=op.raises == BY_VALUES)


def _saved(text: IterationBuilder, value: Any) -> Any:
    if value is FREED:
        raise GraphBreak("a node has lost what it saved", code="B01")
    if type(value) is Tensor:
        return text.of(value)
    return _setting(text, value) if is_setting(value) else text.value_of(value)


def free(node: Node) -> None:
    """Free what a node saved, as the pass does that runs it."""
    if isinstance(node, context_class()):
        node.saved = FREED
        return
    kept = [f"argument_{name}" for name in node.op.keeps]
    for slot in type(node).__slots__:
        if (slot.startswith("saved_") or slot in kept) and hasattr(node, slot):
            setattr(node, slot, FREED)


def _setting(text: IterationBuilder, value: Any) -> Any:
    """A setting, or the value of a number that varies."""
    operand = text.operand(value)
    if text.varies(operand):
        raise GraphBreak("a rule is given numbers that vary, in a list")
    return operand


def holds_values(root: Node, since: int) -> bool:
    """Whether nodes made after a sequence number have values that no pass has freed."""
    return any(True for _ in _values_of(root, since))


def forget_values(root: Node, since: int) -> None:
    """Free such values."""
    for node, slot in _values_of(root, since):
        setattr(node, slot, FREED)


def _values_of(root: Node, since: int) -> Iterator[tuple[Node, str]]:
    for node in reachable([root]):
        if node.sequence_nr <= since:
            continue
        if isinstance(node, context_class()):
            set_on_it = [*node.attributes.values()]  # which no pass frees
            if (node.saved and node.saved is not FREED) or not is_setting(set_on_it):
                yield node, "saved"
        elif type(node) is not AccumulateGrad:
            for slot in type(node).__slots__:
                if slot.startswith("saved_") and getattr(node, slot, FREED) is not FREED:
                    yield node, slot


def is_setting(value: Any) -> bool:
    """Whether an argument is no array, so that it is the same in every iteration."""
    if type(value) in (tuple, list):
        return all(map(is_setting, value))
    return not isinstance(value, (Tensor, np.ndarray, np.generic))
