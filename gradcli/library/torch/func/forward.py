"""Forward mode: how outputs change when the inputs move along tangents.

A recorded graph is walked forward, from the inputs to the outputs. The derivative of a pointwise
op of real numbers is a number for each element, so the rule that turns a gradient of the output
into one of the input turns a tangent of the input into one of the output. For any other op the rule
is a linear function of the gradient, and the tangent is carried by that function's transpose: the
derivative of the rule's result with respect to the gradient that it was given.

`torch.autograd.forward_ad` has dual tensors, which carry a tangent through the operations. A dual
tensor begins at a node of its own in the recorded graph. What is computed from it is recorded as
usual, and a tangent is computed when it is read, by `pushforward`. So the operations have to be
recorded: inside `no_grad()` a tangent is lost, where PyTorch carries it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from weakref import WeakSet

from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import strides_of
from gradcli.autograd.batched import fresh_leaf
from gradcli.autograd.custom_function import Function, FunctionNode
from gradcli.autograd.engine import accumulate
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.inplace.writes import check_places
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.node import Node, reachable
from gradcli.autograd.tensor import Tensor, alias, gradient_edge, with_history
from gradcli.errors import GradcliError, attribute_error, runtime_error, type_error, value_error
from gradcli.library.torch.func.levels import Entry, reaches_leaf, sizes_of_tangent
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods
from gradcli.ops.binding.results import ReturnType
from gradcli.ops.creation.copies import detach
from gradcli.state import active, computed

Edge = tuple[Node, int]

_WITHOUT_FORWARD_MODE = {
    "AcoshBackward1": "acosh_",
    "AsinhBackward1": "asinh_",
    "AtanhBackward1": "atanh_",
    "CdistBackward0": "_cdist_forward",
    "CholeskyBackward0": "cholesky",
    "CtcLossBackward0": "_ctc_loss",
    "EmbeddingBagBackward0": "_embedding_bag",
    "GeqrfBackward0": "geqrf",
    "GridSampler2DBackward0": "grid_sampler_2d",
    "GridSampler2DBackwardBackward0": "grid_sampler_2d_backward",
    "GridSampler3DBackward0": "grid_sampler_3d",
    "GridSampler3DBackwardBackward0": "grid_sampler_3d_backward",
    "IgammaBackward0": "igamma",
    "IgammacBackward0": "igammac",
    "IndexReduceBackward0": "index_reduce",
    "MultiMarginLossBackward0": "multi_margin_loss",
    "MultilabelMarginLossBackward0": "multilabel_margin_loss_forward",
    "OrmqrBackward0": "ormqr",
    "PdistBackward0": "_pdist_forward",
    "RreluWithNoiseBackward1": "rrelu_with_noise_",
    "ScaledDotProductFlashAttentionForCpuBackward0": "_scaled_dot_product_flash_attention_for_cpu",
    "SegmentReduceBackward0": "segment_reduce",
    "SpecialZetaBackward0": "special_zeta",
    "SpecialZetaBackward1": "special_zeta",
    "SpecialZetaBackward2": "special_zeta",
    "Unique2Backward0": "_unique2",
    "UniqueConsecutiveBackward0": "unique_consecutive",
    "UniqueDimBackward0": "unique_dim",
    "WeightNormInterfaceBackward0": "_weight_norm_interface",
}
"""PyTorch's functions without a derivative in forward mode, by their nodes."""


def _without_forward_mode(node: Node) -> str | None:
    """PyTorch's text for a node without forward mode; None for one that has it."""
    if node.node_name != "NotImplemented":
        name = _WITHOUT_FORWARD_MODE.get(node.node_name)
        return name and (
            f"Trying to use forward AD with {name} that does not support it because it has not been"
            " implemented yet.\nPlease file an issue to PyTorch at https://github.com/pytorch/"
            "pytorch/issues/new?template=feature-request.yml so that we can prioritize its"
            " implementation or submit a PR adding the implementation to derivatives.yaml"
        )
    name = node.op.name.partition(".")[0]
    name = name.removesuffix("_number").removesuffix("_of")
    return f"Trying to use forward AD with aten::{name} that does not support it."


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
    if (text := _without_forward_mode(node)) is not None:
        raise GradcliError(
            "E409",
            f"PyTorch defines no forward mode for {node.node_name}",
            text=text,
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


# --- dual tensors ---------------------------------------------------------------------------------


_MODULE = "torch.autograd.forward_ad"


class DualEntry(Entry):
    """Where a dual tensor begins: it holds the tangent, and the tensor that begins at it."""

    __slots__ = ("level", "tangent")

    node_name = "ViewBackward0"

    def __init__(self, tensor: Tensor, tangent: Tensor, level: int) -> None:
        super().__init__(tensor)
        self.tangent = tangent
        self.level = level


class Identity(Entry):
    """What makes the primal of a dual tensor a tensor without tangent."""

    __slots__ = ()

    node_name = "Identity"


class Duals:
    """The dual levels of a session.

    Attributes:
        level: the number of the open one, 0 while there is none.
        count: how many have been opened.
    """

    __slots__ = ("_ends", "count", "level")

    def __init__(self) -> None:
        self.level = 0
        self.count = 0
        self._ends: WeakSet[Node] = WeakSet()  # where tangents come from, which have none

    def tangent(self, tensor: Tensor) -> Tensor | None:
        """The tensor's tangent at the open level, None if it has none."""
        entries = self._entries(tensor)
        if not entries:
            return None
        if tensor.grad_fn is entries[0]:
            return entries[0].tangent
        starts = [with_history(tensor.array, entry) for entry in entries]
        tangents: list[Tensor | None] = [entry.tangent for entry in entries]
        connected = reaches_leaf([tensor, *[entry.tangent for entry in entries]])
        state = active.state
        state.duals = None  # the ops of pushforward work on the graph without tangents
        try:
            (result,) = pushforward([tensor], starts, tangents, create_graph=connected)
        finally:
            state.duals = self
        if not reaches_leaf([result]):
            return detach(result)
        node = gradient_edge(result)[0]
        if node is not None:
            self._ends.add(node)
        return result

    def hides_history(self, tensor: Tensor) -> bool:
        """Whether a tensor's graph leads only to dual tensors, and so is hidden from the
        program.
        """
        # The history of a view is not regenerated here: that may raise.
        return tensor.grad_fn is not None and not _begins_elsewhere(tensor.grad_fn)

    def _entries(self, tensor: Tensor) -> list[DualEntry]:
        """The dual tensors of the open level that a tensor was computed from."""
        entries: list[DualEntry] = []
        if not self.level or not tensor.requires_grad:
            return entries
        stack = [gradient_edge(tensor)[0]]
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node is None or node in seen or isinstance(node, Identity) or node in self._ends:
                continue
            seen.add(node)
            if isinstance(node, DualEntry) and node.level == self.level:
                entries.append(node)
            else:
                stack += node.next_nodes
        return entries

    def suffixes(self, tensor: Tensor, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        """What is printed behind a tensor's elements: its history, unless it has none but the
        dual tensors that it was computed from, and its tangent.
        """
        if not tensor.requires_grad:
            return suffixes
        shown = () if self.hides_history(tensor) else suffixes
        tangent = self.tangent(tensor)
        if tangent is None:
            return shown
        text = tangent.item() if not tangent.array.ndim else tangent
        return (*shown, f"tangent={text!r}")


def _begins_elsewhere(end: Node) -> bool:
    """Whether the graph behind a node has an end that is no dual tensor."""
    return any(
        not any(node.next_nodes) and not isinstance(node, DualEntry) for node in reachable([end])
    )


def _duals() -> Duals:
    state = active.state
    if state.duals is None:
        state.duals = Duals()
    return state.duals


@function(module=_MODULE)
def enter_dual_level() -> int:
    """Open a dual level; raises E205 inside another one, as PyTorch has no nested ones."""
    duals = _duals()
    if duals.level:
        raise GradcliError(
            "E205",
            "dual levels cannot be nested",
            text="Nested forward mode AD is not supported at the moment",
            raises="RuntimeError",
            help="torch.func.jvp can be nested",
        )
    duals.count += 1
    duals.level = duals.count
    return 0


@function(module=_MODULE)
def exit_dual_level(*, level: int | None = None) -> None:
    """Close the dual level: its tensors have no tangent any more."""
    duals = _duals()
    if not duals.level:
        raise runtime_error(
            "there is no dual level to leave", text="Dual level must be a positive number."
        )
    duals.level = 0


class DualLevel:
    """`torch.autograd.forward_ad.dual_level()`: the context in which tangents live."""

    __slots__ = ()

    language_name: ClassVar[str] = "torch.autograd.forward_ad.dual_level"
    language_context: ClassVar[bool] = True

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


function("dual_level", module=_MODULE)(DualLevel)


class UnpackedDualTensor(ReturnType):
    """A tensor and its tangent."""

    __slots__ = ()

    name = "UnpackedDualTensor"
    fields = ("primal", "tangent")
    language_name = "torch.autograd.forward_ad.UnpackedDualTensor"
    language_attributes = frozenset(fields)

    def __repr__(self) -> str:
        return f"UnpackedDualTensor(primal={self[0]!r}, tangent={self[1]!r})"

    __str__ = __repr__


@function(module=_MODULE)
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """A dual tensor: the tensor's values, and the tangent that it carries.

    Raises E204 outside a dual level and for dtypes that have no derivative, E301 for a tangent of
    another shape.
    """
    duals = _duals()
    if not duals.level:
        raise runtime_error(
            "make_dual() needs a dual level",
            text="Trying to create a dual Tensor for forward AD but no level exists, make sure to"
            " enter_dual_level() first.",
            help="write `with torch.autograd.forward_ad.dual_level():`",
        )
    for what, part in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(part, Tensor):
            kind = type(part).__name__
            raise attribute_error(
                f"make_dual() takes tensors, not {kind}",
                text=f"'{kind}' object has no attribute 'is_floating_point'",
            )
        if part.array.dtype.kind not in "fcV":
            raise value_error(
                f"Expected {what} to be floating point or complex, but got: {part.dtype}"
            )
    if tensor.array.shape != tangent.array.shape:
        raise sizes_of_tangent(tensor, tangent)
    if duals.tangent(tensor) is not None:
        raise runtime_error(
            "make_dual(): the tensor has a tangent already",
            text="Making a dual Tensor based on a Tensor that already has a forward gradient at the"
            " same level 0 is not supported.",
        )
    if duals.tangent(tangent) is not None:
        raise runtime_error(
            "make_dual(): the tangent has a tangent itself",
            text="Setting a forward grad that itself has a forward gradient at the same level0 is"
            " not supported.",
        )
    if strides_of(tensor.array) != strides_of(tangent.array):
        check_places(tensor.array)  # PyTorch copies the tangent to memory of the same strides
    entry = DualEntry(tensor, tangent, duals.level)
    return with_history(alias(tensor).array, entry)


@function(module=_MODULE)
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent, None if it has none."""
    if not isinstance(tensor, Tensor):
        kind = type(tensor).__name__
        raise type_error(
            f"unpack_dual() takes a tensor, not {kind}",
            text=f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {kind}",
        )
    duals = _duals()
    tangent = duals.tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor((tensor, None))
    if reaches_leaf([tensor]):
        primal = with_history(tensor.array, Identity(tensor))
    else:
        primal = detach(tensor)
    return UnpackedDualTensor((primal, tangent))
