"""Forward mode: how outputs change when the inputs move along tangents.

A recorded graph is walked forward, from the inputs to the outputs. The derivative of a pointwise
op of real numbers is a number for each element, so the rule that turns a gradient of the output
into one of the input turns a tangent of the input into one of the output. For any other op the rule
is a linear function of the gradient, and the tangent is carried by that function's transpose: the
derivative of the rule's result with respect to the gradient that it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.autograd.batched import fresh_leaf
from gradcli.autograd.custom.context import FunctionNode
from gradcli.autograd.custom.function import Function
from gradcli.autograd.engine import accumulate
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, gradient_edge
from gradcli.errors import GradcliError
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.functions import methods
from gradcli.ops.creation.copies import detach
from gradcli.state import computed

Edge = tuple[Node, int]

_WITHOUT_FORWARD_MODE = frozenset(
    {
        "CholeskyBackward0", "CtcLossBackward0", "EmbeddingBagBackward0", "GridSampler2DBackward0",
        "GridSampler2DBackwardBackward0", "GridSampler3DBackward0",
        "GridSampler3DBackwardBackward0", "IgammaBackward0", "IgammacBackward0",
        "IndexReduceBackward0", "MultiMarginLossBackward0", "MultilabelMarginLossBackward0",
        "NotImplemented", "OrmqrBackward0", "RreluWithNoiseBackward1",
        "ScaledDotProductFlashAttentionForCpuBackward0", "SpecialZetaBackward0",
        "SpecialZetaBackward1", "SpecialZetaBackward2", "WeightNormInterfaceBackward0",
    }
)  # fmt: skip
"""The nodes of ops for which PyTorch has a derivative, but none in forward mode."""


def pushforward(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
    *,
    create_graph: bool,
) -> list[Tensor]:
    """The tangents of the outputs, computed from the inputs while the tape ran.

    Args:
        outputs: what was computed.
        inputs: tensors that require grad.
        tangents: for each input the direction in which it moves, in its shape; None for one that
            rests.
        create_graph: record how the results depend on the tangents and the inputs.

    Returns:
        For each output a tangent of its shape and dtype, zeros where nothing moves it.
    """
    moving: dict[Edge, Tensor] = {}
    for tensor, tangent in zip(inputs, tangents, strict=True):
        node, output_nr = gradient_edge(tensor)
        if node is not None and tangent is not None:
            moving[node, output_nr] = tangent
    with EnableGrad():
        for node in _between([gradient_edge(output)[0] for output in outputs], moving):
            _carry(node, moving, create_graph)
    results = []
    for output in outputs:
        node, output_nr = gradient_edge(output)
        tangent = None if node is None else moving.get((node, output_nr))
        if tangent is None:
            tangent = zeros_like(output)
        results.append(tangent if create_graph else detach(tangent))
    return results


def basis(tensor: Tensor) -> list[Tensor]:
    """The unit vectors of a tensor's space, in its shape and dtype."""
    vectors = []
    for number in range(tensor.array.size):
        array = module_of(tensor.array).zeros(tensor.array.shape, tensor.array.dtype)
        array.reshape(-1)[number] = 1
        vectors.append(Tensor(array[()]))
    return vectors


def _between(ends: Sequence[Node | None], moving: dict[Edge, Tensor]) -> list[Node]:
    """The nodes that lead from the ends to a moving edge, in the order of the forward pass."""
    starts = {node for node, _ in moving}
    seen: set[Node] = set()
    stack = [node for node in ends if node is not None]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node not in starts:
                stack += [following for following in node.next_nodes if following is not None]
    return sorted(seen - starts, key=lambda node: node.sequence_nr)


def _carry(node: Node, moving: dict[Edge, Tensor], create_graph: bool) -> None:
    """Give the outputs of a node the tangents that those of its inputs cause."""
    tangents = [
        (number, moving[following, node.input_nrs[number]])
        for number, following in enumerate(node.next_nodes)
        if following is not None and (following, node.input_nrs[number]) in moving
    ]
    if not tangents:
        return
    if node.node_name in _WITHOUT_FORWARD_MODE:
        raise GradcliError(
            "E409",
            f"PyTorch defines no forward mode for {node.node_name}",
            raises="NotImplementedError",
            help="torch.autograd.functional.jvp() uses reverse mode alone",
        )
    op = getattr(node, "op", None)
    if isinstance(node, FunctionNode):
        if node.function.jvp is Function.jvp:
            raise GradcliError(
                "E409",
                f"{node.node_name} has no jvp(), which forward mode needs",
                raises="NotImplementedError",
                help="write `@staticmethod def jvp(ctx, *tangents)` in the class of the function",
            )
        results = node.jvp(dict(tangents))
    elif op is not None and op.pointwise and not _complex(node, tangents):
        results = [_along_elements(node, tangents)]
    else:
        results = _transposed(node, tangents)
    for output_nr, result in enumerate(results):
        if result is not None:
            moving[node, output_nr] = result if create_graph else detach(result)


def _complex(node: Node, tangents: list[tuple[int, Tensor]]) -> bool:
    """Whether numbers on either side are complex: the derivative of one by the other, such as that
    of an angle, is then no number for each element, but a matrix of 2 x 2.
    """
    return node.metadata[0][1].kind == "c" or any(
        tangent.array.dtype.kind == "c" for _, tangent in tangents
    )


def _along_elements(node: Node, tangents: list[tuple[int, Tensor]]) -> Tensor | None:
    """The tangent of a pointwise op: each rule at its own input's tangent, summed."""
    shape, dtype = node.metadata[0]
    total: Tensor | None = None
    for number, tangent in tangents:
        if tangent.array.dtype is not dtype:
            tangent = accumulate.cast(tangent, dtype)
        if tangent.array.shape != shape:
            tangent = methods.expand(tangent, shape)
        part = node.run_recorded(tangent, True)[number]
        if part is not None:
            total = part if total is None else total + part
    return total


def _transposed(node: Node, tangents: list[tuple[int, Tensor]]) -> list[Tensor | None]:
    """The tangents of any op's outputs, by the transpose of its rules."""
    beside = tangents[0][1].array
    seeds = [_seed(shape, dtype, beside) for shape, dtype in node.metadata]
    gradients: Any = node.run_recorded(list(seeds) if node.multiple else seeds[0], True)
    pairs = []
    for number, tangent in tangents:
        gradient = gradients[number]
        if gradient is not None and gradient.requires_grad:
            following = node.next_nodes[number]
            assert following is not None
            shape, dtype = following.metadata[node.input_nrs[number]]
            fitted = accumulate.sum_to_size(node, gradient, gradient.array, shape, dtype)
            pairs.append((fitted, tangent))
    if not pairs:
        return [None] * len(seeds)
    wanted = [number for number, seed in enumerate(seeds) if seed is not None]
    moved = grad(
        [gradient for gradient, _ in pairs],
        [seed for seed in seeds if seed is not None],
        [tangent for _, tangent in pairs],
        create_graph=True,
        allow_unused=True,
    )
    results: list[Tensor | None] = [None] * len(seeds)
    for number, result in zip(wanted, moved, strict=True):
        results[number] = result
    return results


def _seed(shape: tuple[int, ...], dtype: Any, beside: Any) -> Tensor | None:
    """A gradient whose value does not matter, as rules are linear in it, on the device of another
    array; None for an output that has none. It is not 0, where a rule that takes its logarithm has
    no derivative.
    """
    if dtype.kind not in "fcV":
        return None
    return fresh_leaf(computed(module_of(beside).ones, shape, dtype))
