"""Runs the program of a recording again: its arrays, the calls of modules, and the comparison of
each result with what PyTorch computed.

The program may consist of what the recorder writes, a small part of the language, in which no file
is named: a recording comes from a stranger.

The operations of a recording that no other program has are those whose results PyTorch computed,
and its functions of recurrent layers.

Runs the program of a recording for its graph alone: tensors have a shape, strides and a dtype, and
large ones no memory of their own.

What is asked of a graph (why a parameter has no gradient, a picture) needs no numbers. Each op runs
on what stands for its operands, so the graph is the op's own, and its large results are let go at
once: all large arrays are windows of one piece of memory that holds zeros, or, where it is asked
which of them share memory, of pages that nobody has touched.
"""

from __future__ import annotations

import mmap
import re
import sys
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.dtypes import DTYPES, cast
from gradcli.arrays.files.recording import BLOCKS, SAMPLES
from gradcli.arrays.fusion.lazy import LAZY, forced
from gradcli.arrays.storage import return_freed_memory
from gradcli.autograd.custom_function import Function, once_differentiable
from gradcli.autograd.graph import ModuleCall
from gradcli.autograd.inplace.writes import overwrite
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import GradcliError, Span, Warned, runtime_error
from gradcli.language.tree import syntax as tree
from gradcli.library.torch.nn.layers.recurrent import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.ops.arithmetic.arithmetic import add, mul, sub
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.nn.attention import attention as attention_of
from gradcli.record import Record
from gradcli.running.recordings.focus import writes

if TYPE_CHECKING:
    from gradcli.arrays.files.recording import Check, Opaque, Recording
    from gradcli.autograd.recording.recorder import Recorder
    from gradcli.language.tree.syntax import Statement
    from gradcli.running.recordings.focus import Focus
    from gradcli.session import Session


# --- the graph alone ------------------------------------------------------------------------------


SMALL = 4096
"""An array of fewer bytes is kept: it costs less than what stands for it."""

_LEAST = 1 << 26
"""So large a block comes from the system, with pages that nobody has touched."""


class Shapes(Listener):
    """Lets large arrays go as soon as an op has made them.

    Args:
        distinct: whether what stands for arrays has memory of its own, by which it is known what
            shares it.
    """

    def __init__(self, distinct: bool = False) -> None:
        super().__init__()
        self.distinct = distinct
        # What stands for the memory of an array, by its `id`, while that is there.
        self._memories: dict[int, tuple[ref[Any], Any]] = {}
        # Integers are indices: what is written to numbers must not reach them.
        self._windows: dict[bool, Any] = {}
        # What stands for a gradient, for as long as there is one.
        self._standing: dict[int, tuple[ref[Any], Any]] = {}

    def array(self, shape: tuple[int, ...], dtype: Any, strides: Any = None) -> Any:
        """An array that stands for one of a shape and a layout."""
        dtype = np.dtype(dtype)
        ends = [(n - 1) * step for n, step in zip(shape, strides or (), strict=False)]
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if size < SMALL:
            return np.zeros(shape, dtype)
        if self.distinct:
            return np.ndarray(shape, dtype, _untouched(size))
        if strides is None or min(ends) < 0 or min(strides) < 0:
            strides = None
        else:
            size = sum(ends) + dtype.itemsize
        exact = dtype.kind in "biu"
        window = self._windows.get(exact)
        if window is None or window.nbytes < size:
            window = self._windows[exact] = np.zeros(max(size, _LEAST), np.uint8)
        return np.ndarray(shape, dtype, window, 0, strides)

    def _empty(self, array: Any) -> Any:
        """What stands for an array; a small one itself."""
        kind = type(array)
        if kind in LAZY:
            return self.array(array.shape, array.dtype)
        if kind is not np.ndarray or array.nbytes < SMALL:
            return array
        if self.distinct:
            return self._placed(array)
        return self.array(array.shape, array.dtype, array.strides)

    def _placed(self, array: Any) -> Any:
        """What stands for an array, at its place in what stands for its memory."""
        owner = array
        while type(owner.base) is np.ndarray:
            owner = owner.base
        if owner.base is not None:  # it stands for one, or shows what no array owns
            return array
        key = id(owner)
        known = self._memories.get(key)
        if known is None or known[0]() is not owner:
            forget = ref(owner, lambda _: self._memories.pop(key, None))
            known = self._memories[key] = forget, _untouched(owner.nbytes)
        lowest = np.lib.array_utils.byte_bounds(owner)[0]
        offset = array.__array_interface__["data"][0] - lowest
        return np.ndarray(array.shape, array.dtype, known[1], offset, array.strides)

    def _gradient(self, gradient: Any) -> Any:
        """The same of a gradient, one for each array, by which a recorder knows it."""
        if type(gradient) is not np.ndarray or gradient.nbytes < SMALL:
            return self._empty(gradient)
        key = id(gradient)
        known = self._standing.get(key)
        if known is not None and known[0]() is gradient:
            return known[1]
        standing = self._empty(gradient)
        self._standing[key] = ref(gradient, lambda _: self._standing.pop(key, None)), standing
        return standing

    def _gradients(self, gradients: Any) -> Any:
        if isinstance(gradients, (list, tuple)):
            return [self._gradient(each) for each in gradients]
        return self._gradient(gradients)

    # --- events -----------------------------------------------------------------------------------

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op: let its results go, and what its node saved."""
        outputs = output if type(output) is tuple else (output,)
        for each in outputs:
            if type(each) is Tensor:
                each.array = self._empty(each.array)
        node = outputs[0].grad_fn if outputs and type(outputs[0]) is Tensor else None
        for slot in type(node).__slots__ if node is not None else ():
            if slot.startswith("saved_"):
                saved = getattr(node, slot, None)
                if type(saved) is np.ndarray or type(saved) in LAZY:
                    setattr(node, slot, self._empty(saved))
        super().operation(op, operands, output)

    def write(self, tensor: Tensor, new: Any, counted: bool = True) -> None:
        """A write: the tensor may have got another array."""
        tensor.array = self._empty(tensor.array)
        super().write(tensor, new, counted)

    def step(self, node: Any, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran."""
        super().step(node, *map(self._gradients, (grads, gradients, fitted)))

    def accumulation(self, node: Any, old: Any, incoming: Any, total: Any) -> None:
        """Gradients that met."""
        super().accumulation(node, *map(self._gradient, (old, incoming, total)))

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        gradient = node.variable.grad
        if gradient is not None:
            gradient.array = self._empty(gradient.array)
        super().leaf(node, *map(self._gradient, (old, incoming, new)))


def _untouched(size: int) -> Any:
    """Memory of pages that take none until somebody writes to them; it reads as zeros."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


# --- replay ---------------------------------------------------------------------------------------


# --- operations of a recording --------------------------------------------------------------------


_CLOSE = 1e-1
"""How far a gradient may be from the recorded one, as a share of its largest element."""


class OtherInputsError(GradcliError):
    """Other values than those of the run reach an operation that is not computed anew."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "E204",
            f"{name} was computed by PyTorch, and its results are known for the values of the run"
            " alone",
            help="other inputs and differences cannot pass through it",
        )


def opaque_operation(
    recording: Recording,
    number: Any,
    inputs: Sequence[Any],
    read: Callable[[str], Any],
    has_numbers: bool,
) -> Any:
    """The results of an operation that is not computed anew, joined to the graph by the gradients
    that PyTorch computed. Raises as `opaque_name`.

    Args:
        read: gives an array of the recording by its name, in the dtype of the replay.
        has_numbers: whether these arrays hold numbers, and not shapes alone.
    """
    opaque_name(recording, number)
    opaque = recording.opaque[number]
    results = tuple(_tensor(read(name)) for name, _ in opaque.results)
    function = _function(read, opaque, results, len(inputs), has_numbers)
    outputs = function.apply(*inputs)
    return outputs if len(results) > 1 else outputs[0]


def opaque_name(recording: Recording, number: Any) -> str:
    """What PyTorch calls an operation; raises E504 where the recording has none of the number."""
    if type(number) is not int or not 0 <= number < len(recording.opaque):
        raise GradcliError("E504", f"{recording.path}: there is no opaque operation {number!r}")
    return recording.opaque[number].name


def _tensor(array: Any) -> Tensor:
    return Tensor(array if array.ndim else array[()])


def _function(
    read: Callable[[str], Any],
    opaque: Opaque,
    results: tuple[Tensor, ...],
    count: int,
    has_numbers: bool,
) -> type[Function]:
    """The custom function of one opaque operation."""
    passes = iter(opaque.passes)
    former: list[Any] = []

    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.mark_non_differentiable(
            *(each for each, (_, grad) in zip(results, opaque.results, strict=True) if not grad)
        )
        return results

    def backward(ctx: Any, *grads: Any) -> Any:
        # A pass that a question adds is the last one again, if what arrives is the same.
        former[:] = [next(passes, None)] if not former else [next(passes, former[0])]
        if former[0] is None:
            raise runtime_error(
                f"the derivative of {opaque.name} is not known: no backward pass of the run came"
                " through it"
            )
        arrived, left = former[0]
        for name, grad in zip(arrived, grads, strict=False):
            if name is not None and has_numbers:
                check_arrived(opaque.name, read(name), grad)
        left_grads = [None if name is None else _tensor(read(name)) for name in left]
        return tuple(left_grads[:count])

    name = opaque.node.removesuffix("Backward0").removesuffix("Backward") or "Opaque"
    body = {
        "__slots__": (),
        "forward": staticmethod(forward),
        "backward": staticmethod(once_differentiable(backward)),
    }
    return type(name, (Function,), body)


def check_arrived(name: str, theirs: Any, grad: Any) -> None:
    """Raise E204 where the gradient that arrives is not the one that PyTorch computed with: up to
    the rounding of half precision, in which a run may have computed what a replay does in float64.
    """
    ours = np.zeros_like(theirs) if grad is None else np.asarray(to_host(grad.array))
    largest = float(np.abs(theirs.astype(np.float64)).max()) if theirs.size else 0.0
    if ours.shape != theirs.shape or not np.allclose(
        ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=_CLOSE * largest,
        equal_nan=True,
    ):  # fmt: skip
        raise runtime_error(
            f"the derivative of {name} is known from the recording alone, for the gradient that"
            " arrived in the run, and another one arrived",
            help="another seed, other inputs, and differences cannot pass through it",
        )


def cell(
    name: str, input: Any, state: Any, input_weight: Any, weight: Any, input_bias: Any, bias: Any
) -> Any:
    """`torch.lstm_cell` and its like: what the cell of these weights gives."""
    kind = name.removesuffix("_cell")
    settings: dict[str, Any] = {
        "input_size": input_weight.array.shape[1],
        "hidden_size": weight.array.shape[1],
        "bias": bias is not None,
    }
    if kind.startswith("rnn"):
        settings["nonlinearity"] = kind.removeprefix("rnn_")
    cell = modules["torch.nn"][f"{_LAYERS[kind]}Cell"](**settings, device="meta")
    cell._parameters.update(
        weight_ih=input_weight, weight_hh=weight, bias_ih=input_bias, bias_hh=bias
    )
    return cell.forward(input, tuple(state) if kind == "lstm" else state)


_LAYERS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


def recurrent(
    name: str,
    input: Any,
    state: Any,
    weights: Any,
    has_biases: Any,
    layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    batch_first: Any,
    masks: Sequence[Tensor] = (),
) -> Any:
    """`torch.lstm` and its like: what the layer of these weights gives. Its module is the one that
    the recording has, and no other is called.

    Args:
        masks: what dropout multiplied the outputs of all layers but the last with.
    """
    if isinstance(has_biases, list):  # packed sequences: their counts stand behind the input
        counts, state, weights, has_biases, layers = state, weights, has_biases, layers, dropout
        layer = _layer(name, state, weights, has_biases, layers, batch_first, False)
        output, last = layer.forward(PackedSequence(input, counts), state)
        return (output.data, *last) if name == "lstm" else (output.data, last)
    if not masks:
        layer = _layer(name, state, weights, has_biases, layers, bidirectional, batch_first)
        output, last = layer.forward(input, state)
        return (output, *last) if name == "lstm" else (output, last)
    if batch_first:
        input = methods.transpose(input, 0, 1)
    directions, each = 2 if bidirectional else 1, len(weights) // layers
    states, lasts = state if name == "lstm" else (state,), []
    for number in range(layers):
        held = weights[number * each : (number + 1) * each]
        own = tuple(methods.narrow(s, 0, number * directions, directions) for s in states)
        first = own if name == "lstm" else own[0]
        layer = _layer(name, first, held, has_biases, 1, bidirectional, False)
        input, last = layer.forward(input, first)
        lasts.append(last if name == "lstm" else (last,))
        if number < layers - 1:
            input = mul.apply(input, masks[number])
    if batch_first:
        input = methods.transpose(input, 0, 1)
    return (input, *(torch.cat(list(parts), 0) for parts in zip(*lasts, strict=True)))


def _layer(
    name: str,
    state: Any,
    weights: Any,
    has_biases: Any,
    layers: Any,
    bidirectional: Any,
    batch_first: Any,
) -> Any:
    """The recurrent layer that has these weights."""
    sizes = {"input_size": weights[0].array.shape[1], "hidden_size": weights[1].array.shape[1]}
    if name == "lstm" and state[0].array.shape[-1] != state[1].array.shape[-1]:
        sizes = {
            "input_size": weights[0].array.shape[1],
            "hidden_size": state[1].array.shape[-1],
            "proj_size": state[0].array.shape[-1],
        }
    settings: dict[str, Any] = {
        **sizes,
        "num_layers": layers,
        "bias": has_biases,
        "batch_first": batch_first,
        "bidirectional": bidirectional,
    }
    if name.startswith("rnn"):
        settings["nonlinearity"] = name.removeprefix("rnn_")
    layer = modules["torch.nn"][_LAYERS[name]](**settings, device="meta")
    for key, weight in zip(layer._flat_weights_names, weights, strict=True):
        layer._parameters[key] = weight
    return layer


def attention(
    drop: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """`F.scaled_dot_product_attention`, whose weights dropout multiplied with `drop`."""
    return attention_of(
        query,
        key,
        value,
        attn_mask,
        lambda weights: mul.apply(weights, drop),
        is_causal,
        scale,
        enable_gqa,
    )


def packed(input: Any, lengths: Any, batch_first: Any) -> Any:
    """`torch._pack_padded_sequence`: the elements of sequences, and how many have each place."""
    return pack_padded_sequence(input, lengths, batch_first)[:2]


def padded(data: Any, counts: Any, batch_first: Any, padding: Any, length: Any) -> Any:
    """`torch._pad_packed_sequence`: the sequences side by side, and their lengths."""
    total = length if length > 0 else None
    return pad_packed_sequence(PackedSequence(data, counts), batch_first, padding, total)


def unscale(grads: Any, infinite: Any, inverse: Any) -> None:
    """What `GradScaler.unscale_` does: gradients by the scale, and whether one is not finite."""
    for grad in grads:
        if not bool(methods.all(methods.isfinite(grad))):
            methods.fill_(infinite, 1.0)
        methods.mul_(grad, methods.to(inverse, grad.dtype))


def update_scale(
    scale: Any, tracker: Any, infinite: Any, growth: Any, backoff: Any, interval: Any
) -> Any:
    """What `GradScaler.update` does."""
    if methods.item(infinite):
        methods.mul_(scale, backoff)
        methods.fill_(tracker, 0)
    elif methods.item(tracker) + 1 == interval:
        methods.mul_(scale, growth)
        methods.fill_(tracker, 0)
    else:
        methods.add_(tracker, 1)
    return scale


def recorded_number(number: float, *sources: Any) -> Any:
    """A number of the run that is one of those which the program read out of tensors, or was
    computed of them. Where a remedy leaves the reading out, it has the tensor's gradient.
    """
    result: Any = number * 1.0  # an object of its own, which is followed
    for each in sources:
        if type(each) is Tensor:
            result = add.apply(sub.apply(each, methods.detach(each)), result)
    return result


def skipped_step(optimizer: Any) -> None:
    """Where a GradScaler left out the step of an optimizer."""


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: partial(recurrent, name) for name in _LAYERS},
    **{f"{name}_cell": partial(cell, f"{name}_cell") for name in _LAYERS},
    "attention": attention,
    "pack_padded_sequence": packed,
    "pad_packed_sequence": padded,
    "recorded_number": recorded_number,
    "skipped_step": skipped_step,
    "unscale": unscale,
    "update_scale": update_scale,
}
"""The functions that the programs of recordings have, by the names that they have there."""


# --- replay ---------------------------------------------------------------------------------------


# --- statements of a recording ------------------------------------------------------------------


_NODES = (
    tree.Argument,
    tree.Assign,
    tree.Attribute,
    tree.AugmentedAssign,
    tree.Binary,
    tree.Call,
    tree.Class,
    tree.Comparison,
    tree.Constant,
    tree.Dict,
    tree.ExpressionStatement,
    tree.List,
    tree.Name,
    tree.Pass,
    tree.Slice,
    tree.Subscript,
    tree.Tuple,
    tree.Unary,
    tree.With,
)

_NAMES = frozenset(
    {"F", "checkpoint", "math", "nn", "opaque", "recorded", "recorded_hook", "recorded_step"}
    | {"torch", *OPERATIONS}
)

_FILES = frozenset({"hub", "load", "save", "serialization"})
"""Attributes of torch that lead to files."""


def check_statement(statement: tree.Statement, known: set[str]) -> None:
    """Raise E504 for a statement that no recorder writes.

    Args:
        known: the names that the program has assigned so far; those of the statement are added.
    """
    for node in tree.nodes_of(statement):
        named = node.name if isinstance(node, (tree.Attribute, tree.Name)) else ""
        if (
            not isinstance(node, _NODES)
            or (isinstance(node, tree.Attribute) and named in _FILES)
            or named.startswith("__")
        ):
            raise _foreign(statement)
    read, assigned = _names(statement)
    if not read <= known | _NAMES or assigned & _NAMES:
        raise _foreign(statement)
    known |= assigned


def _names(statement: tree.Statement) -> tuple[set[str], set[str]]:
    """The names that a statement reads, and those that it assigns."""
    if isinstance(statement, tree.Class):
        read = {each.name for each in tree.nodes_of(statement.bases) if isinstance(each, tree.Name)}
        return read, {statement.name}
    inner = statement.body if isinstance(statement, tree.With) else [statement]
    assigned: set[str] = set()
    for each in inner:
        for target in each.targets if isinstance(each, tree.Assign) else ():
            parts = target.elements if isinstance(target, tree.Tuple) else [target]
            assigned |= {part.name for part in parts if isinstance(part, tree.Name)}
    read = {each.name for each in tree.nodes_of(statement) if isinstance(each, tree.Name)}
    return read - assigned, assigned


def _foreign(statement: tree.Statement) -> GradcliError:
    return GradcliError(
        "E504",
        "no recorder writes such a statement",
        span=statement.span,
        help="the recording is damaged, or made by something else than `gradcli record`",
    )


# --- running it again ---------------------------------------------------------------------------


_WIDER = {"gradient": 50, "step": 2500}
"""How much further gradients may be apart: an element on the edge of a ReLU falls to one side here
and to the other there, and an optimizer that divides by a gradient's size makes as much of a
rounding error as of a gradient.
"""

SHARE_OF_LARGEST = 5e-3
"""A gradient is compared by this share of the largest one of its pass, where it is smaller, and a
sum by this share of its largest operand.
"""

_CARRIED = 4
"""How much larger an error may be than that of an operand which cancellation left it in."""

MOST_NAMED = 10

_NAME = re.compile(r"[A-Za-z_]\w*")
_PASS = re.compile(r"\.backward\(|\bautograd\.grad\(")
"""A backward pass in the text of a recording."""

_STEP = re.compile(r"[A-Za-z_]\w*\.step\(\)|recorded_step\(.*\)")

TOLERANCES = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4,
              "float16": 1e-2, "bfloat16": 6e-2}  # fmt: skip
"""How far a result may be from PyTorch's, as a share of its largest element."""


class Difference(Record):
    """The first result that differs from PyTorch's.

    Attributes:
        what: which of the operations it is, the backward pass, or the optimizer's step.
        ours, theirs: the elements that differ most, or the shapes.
    """

    what: str
    text: str
    place: Span
    ours: str
    theirs: str


class Replay:
    """One run of a recording's program in a session.

    Attributes:
        compared: how many operations were compared so far.
        worst: the largest difference as a share of the result's largest element, by the kind of
            the result.
        first: the first result that differs.
        shapes: what runs the program for its graph alone, None where numbers are computed.
        took: the names whose other values the program has read.
        recent: the lines that ran last, with the tensors that each reads, by name; None for none.
    """

    def __init__(
        self,
        recording: Recording,
        session: Session,
        dtype: str | None,
        bound_names: Callable[[], list[str]],
        shapes: Shapes | None = None,
    ) -> None:
        self.recording = recording
        self.shapes = shapes
        self._bound_names = bound_names
        self.session = session
        self.dtype = dtype
        self.compares = recording.has_data and dtype is None and shapes is None
        self.compared = 0
        self.tolerance = 0.0
        self.worst: dict[str, float] = {}
        self.first: Difference | None = None
        self._replaced: dict[str, Any] = {}
        self.took: set[str] = set()
        self.recent: deque[tuple[int, dict[str, Tensor]]] | None = None
        self._cancelled: dict[str, float] = {}
        self._names: set[str] = set()
        self._ends: dict[int, list[str]] = {}
        self._left_out: set[int] = set()
        self._calls: list[tuple[int, ModuleCall]] = []
        session.values["recorded"] = lambda name, *sources, **maker: self._recorded(name)
        session.values["opaque"] = lambda number, *inputs: self._opaque(number, inputs)
        session.values["recorded_hook"] = self._hook
        session.values["recorded_step"] = self._step
        session.values["checkpoint"] = lambda use_reentrant: NoGrad()
        session.values.update(OPERATIONS)
        if shapes is not None:
            with session.running():
                shapes.install()
            if session.recorder is not None:
                session.recorder.copied = lambda array: array

    def replace(self, values: Mapping[str, Any]) -> None:
        """Let what came from outside have other values, by name; then nothing is compared."""
        self._replaced.update(values)
        self.compares = self.compares and not values

    def _recorded(self, name: Any) -> Tensor:
        """A tensor that came from outside."""
        if self.shapes is not None:
            return Tensor(self._array(str(name)))
        path = str(name).replace("[", ".").replace("]", "")
        array = self._replaced.get(path)
        if array is not None:
            self.took.add(path)
        if array is None:
            array = self.recording.array(str(name))
        elif self.dtype is None and str(name) in self.recording.entries:
            array = np.array(array, DTYPES[self.recording.entries[str(name)].dtype].numpy_dtype)
        else:
            array = np.array(array)
        array = self._cast(array)
        return Tensor(array if array.ndim else array[()])

    def _array(self, name: str) -> Any:
        """An array of the recording, or what stands for it."""
        if self.shapes is None:
            return self._cast(self.recording.array(name))
        entry = self.recording.entry(name)
        return self.shapes.array(entry.shape, DTYPES[entry.dtype].numpy_dtype)

    def _cast(self, array: Any) -> Any:
        """An array of the recording in the dtype that the replay runs in."""
        floating = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
        return cast(array, DTYPES[self.dtype]) if self.dtype is not None and floating else array

    def _opaque(self, number: Any, inputs: tuple[Any, ...]) -> Any:
        """The results of an operation that is not computed anew, joined to the graph.

        Raises E204 where other values than those of the run may reach it.
        """
        if self.shapes is not None:
            return opaque_operation(self.recording, number, inputs, self._array, False)
        name = opaque_name(self.recording, number)
        if self._bound_names():
            raise OtherInputsError(name)
        if self._replaced or self.dtype is not None:
            read = b"".join(_hash(each) for each in inputs)
            known = self.recording.opaque_inputs.get((number, self.dtype))
            if known is None and not self._replaced:
                self.recording.opaque_inputs[number, self.dtype] = read
            elif known != read:
                raise OtherInputsError(name)

        return opaque_operation(self.recording, number, inputs, self._array, True)

    def let_go(self) -> None:
        """Keep no result longer than the program reads it, but for the output."""
        lines = self.recording.program.split("\n")
        last = {name: n for n, line in enumerate(lines, 1) for name in _NAME.findall(line)}
        last.pop(self.recording.output.partition(".")[0], None)
        for name, number in last.items():
            self._ends.setdefault(number, []).append(name)

    def share_memory(self, recorder: Recorder) -> None:
        """Let what is recorded of the program alone keep arrays, and no copies: no line of it
        writes to a gradient on its way, `.grad` has memory of its own.
        """
        recorder.copied = lambda array: array
        recorder.shares = not writes(self.recording.program)

    def leave_out_steps(self) -> None:
        """Leave out the optimizers' steps behind the last pass."""
        lines = self.recording.program.split("\n")
        for number in range(len(lines), 0, -1):
            if _STEP.fullmatch(lines[number - 1]):
                self._left_out.add(number)
            elif lines[number - 1]:
                break

    def end_at_output(self) -> None:
        """Leave out the pass that begins with the output, and what stands behind it. Ahead of it
        the output may be written to: `loss += penalty`.
        """
        lines = self.recording.program.split("\n")
        assigned = re.compile(rf"(?:with [^:]*: )?{re.escape(self.recording.output)} = ")
        last = max((n for n, line in enumerate(lines, 1) if assigned.match(line)), default=None)
        if last is not None:
            passes = (n for n in range(last + 1, len(lines) + 1) if _PASS.search(lines[n - 1]))
            self._left_out.update(range(next(passes, len(lines) + 1), len(lines) + 1))

    def focus(self, focus: Focus) -> None:
        """Run the lines alone that an operation needs."""
        lines = self.recording.program.count("\n") + 1
        self._left_out.update(n for n in range(1, lines + 1) if n not in focus.lines)
        for name, (array, requires_grad) in focus.operands.items():
            held = self._cast(np.array(array))
            tensor = Tensor(held if held.ndim else held[()])
            if requires_grad:
                methods.requires_grad_(tensor)
            meta_of(tensor).name = name  # by which its gradients in two runs are compared
            self.session.values[name] = tensor
            self._names.add(name)

    def leaves_out(self, statement: Statement) -> bool:
        """Whether a statement does not run."""
        return statement.span.line in self._left_out

    def _hook(self, calls: Any) -> Callable[[Tensor], Tensor]:
        """A hook that returns what PyTorch's run of it did, for the gradients that it took there.

        Args:
            calls: the names of the two arrays, for each time that it ran.
        """
        pairs = [(str(taken), str(returned)) for taken, returned in calls]
        waiting = iter(pairs)
        former: list[tuple[str, str]] = []

        def hook(grad: Tensor) -> Tensor:
            former[:] = [next(waiting, former[0] if former else pairs[0])]
            taken, returned = map(self._array, former[0])
            if self.shapes is None:
                check_arrived("a hook", taken, grad)
            return Tensor(returned if returned.ndim else returned[()])

        return hook

    def _step(self, optimizer: Any, name: Any) -> None:
        """Let the parameters of an optimizer be what PyTorch's step made of them."""
        if not isinstance(optimizer, Optimizer):
            raise GradcliError("E504", f"{self.recording.path}: {name!r} is no optimizer")
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        for number, parameter in enumerate(parameters):
            after = f"{name} after {number}"
            if after in self.recording.entries:
                overwrite(parameter, self._array(after))

    # --- around each statement --------------------------------------------------------------------

    def before(self, statement: Statement) -> None:
        """Enter the modules that a line ran in; raises E506 where its numbers were left out."""
        if self.shapes is None and not self.recording.has_data:
            raise GradcliError(
                "E506",
                f"{self.recording.path}: its numbers were left out when it was recorded",
                help="`gradcli why`, `explain --saved`, `info` and pictures in SVG answer without",
            )
        source = statement.span.source
        if source.name != self.recording.path or not self._is_own(statement):
            return
        if source.origins is None:
            source.origins = self.recording.origins
        check_statement(statement, self._names)
        if self.recent is not None and not self.leaves_out(statement):
            self.recent.append((statement.span.line, self._tensors_in(statement)))
        state = self.session.state
        if state.recorder is None:
            return
        wanted = self._chain(self.recording.call_of[statement.span.line])
        have = self._calls
        same = 0
        while same < min(len(have), len(wanted)) and have[same][0] == wanted[same]:
            same += 1
        del have[same:]
        for number in wanted[same:]:
            module = self._at(self.recording.calls[number][0])
            have.append((number, ModuleCall(module)))
        state.calls[:] = [call for _, call in have if call.module is not None]

    def _is_own(self, statement: Statement) -> bool:
        """Whether a statement is the recording's; behind it a session may have its own."""
        return statement.span.line < len(self.recording.origins)

    def after(self, statement: Statement) -> None:
        """Compare the results of a line with PyTorch's."""
        if statement.span.source.name != self.recording.path:
            return
        checks = self.recording.checks.get(statement.span.line, ())
        for check in checks:
            value = self._at(check.text)
            if type(value) is not Tensor:
                continue
            if self._calls and value.grad_fn is not None:
                self._calls[-1][1].result = weakref.ref(value.grad_fn)
            if self.shapes is not None and tuple(value.array.shape) != check.shape:
                raise GradcliError(
                    "E506",
                    f"the shape of {check.text} depends on numbers, and none are read",
                    span=statement.span,
                )
        if self.compares and self.first is None:
            self._compare_all(statement, checks)
        if self._ends and any(check.kind == "gradient" for check in checks):
            return_freed_memory()  # of the values that the pass needed
        for name in self._ends.get(statement.span.line, ()):
            value = self.session.values.get(name)
            if type(value) is Tensor and value.array.nbytes > SMALL and not value.is_leaf:
                del self.session.values[name]
        self.compared += _is_operation(checks)

    def _chain(self, number: int) -> list[int]:
        """The calls around a line, outermost first."""
        chain: list[int] = []
        while number >= 0:
            chain.insert(0, number)
            number = self.recording.calls[number][1]
        return chain

    def _at(self, text: str) -> Any:
        """The value of a path in the program, None for none."""
        first, *parts = text.replace("[", ".").replace("]", "").split(".")
        value = self.session.values.get(first)
        for part in parts:
            if type(value) is Tensor:
                value = value.grad if part == "grad" else None
                continue
            if isinstance(value, (list, tuple, dict)):
                value = _element(value, part)
                continue
            for table in ("_modules", "_parameters", "_buffers", "_values"):
                part_of = getattr(value, table, {}).get(part)
                if part_of is not None:
                    break
            value = part_of
        return value

    # --- comparison -------------------------------------------------------------------------------

    def _compare_all(self, statement: Statement, checks: Sequence[Check]) -> None:
        """Compare the results of a statement. Gradients of one pass have rounding errors in
        proportion to the largest of them.
        """
        theirs = [self.recording.digest_of(check) for check in checks]
        largest = max((_largest(each[:SAMPLES]) for each in theirs), default=0.0)
        for check, numbers in zip(checks, theirs, strict=True):
            self.tolerance = max(self.tolerance, TOLERANCES.get(check.dtype, 0.0))
            self._compare(statement, check, numbers, largest * SHARE_OF_LARGEST)
            if self.first is not None:
                return

    def _named(self, line: int) -> str:
        """What stands in a line of the program, in words."""
        checks = self.recording.checks
        if _is_operation(checks[line]):
            count = sum(map(_is_operation, checks.values()))
            return f"operation {self.compared + 1} of {count}"
        kinds = {check.kind for check in checks[line]}
        return "the optimizer's step" if "step" in kinds else "the backward pass"

    def _compare(self, statement: Statement, check: Check, theirs: Any, least: float) -> None:
        value, place = self._at(check.text), statement.span
        if type(value) is not Tensor or tuple(value.array.shape) != check.shape:
            what = "none" if value is None else f"shape {list(getattr(value, 'shape', []))}"
            self.first = Difference(
                self._named(check.line), check.text, place, what, f"shape {list(check.shape)}"
            )
            return
        ours = digest(to_host(forced(value.array)))
        if ours.shape != theirs.shape:
            raise GradcliError("E504", f"{self.recording.path}: a check has another size")
        error, at = difference(ours, theirs, value.array.size, least)
        exact = not (value.dtype.is_floating_point or value.dtype.is_complex)
        allowed = 0.0 if exact else _WIDER.get(check.kind, 1) * self.tolerance
        if error > allowed and check.kind == "value" and not exact:
            error = self._less_cancellation(statement, check, value, (ours, theirs), error)
        if error > allowed:
            numbers = f"{ours[at]:.9g}", f"{theirs[at]:.9g}"
            self.first = Difference(self._named(check.line), check.text, place, *numbers)
        else:
            self.worst[check.kind] = max(self.worst.get(check.kind, 0.0), error)

    def _less_cancellation(
        self, statement: Statement, check: Check, value: Tensor, both: tuple[Any, Any], error: float
    ) -> float:
        """The error of a result without what cancellation made of rounding: a sum near 0 of large
        elements is compared with these, and what is computed from it has the same error.
        """
        operands = self._tensors_in(statement)
        operands.pop(check.text, None)
        inherited = max((self._cancelled.get(name, 0.0) for name in operands), default=0.0)
        summed = [each for each in operands.values() if each.array.size > value.array.size]
        least = max(
            (_largest(digest(to_host(forced(e.array)))[:SAMPLES]) for e in summed), default=0
        )
        less, _ = difference(*both, value.array.size, least * SHARE_OF_LARGEST)
        if error <= _CARRIED * inherited:
            less = 0.0
        if less < error:
            self._cancelled[check.text] = error
        return less

    def _tensors_in(self, statement: Statement) -> dict[str, Tensor]:
        """The tensors that the names in a statement hold."""
        names = {each.name for each in tree.nodes_of(statement) if isinstance(each, tree.Name)}
        held = {name: self.session.values.get(name) for name in names}
        return {name: each for name, each in held.items() if type(each) is Tensor}

    def difference_told(self) -> Warned | None:
        """The warning that the replay differs from the run; None where it does not."""
        difference = self.first
        if difference is None:
            return None
        return Warned(
            "W027",
            f"{difference.what} differs from the run: {difference.text} has {difference.theirs} in"
            f" PyTorch and {difference.ours} here",
            difference.place,
            "; ".join(
                [
                    *self.recording.notes[:MOST_NAMED],
                    "what follows from it differs too, and no answer below it is the run's",
                ]
            ),
        )

    def told_of_replaced(self, names: Sequence[str]) -> str:
        """What is to be known of a run with other inputs."""
        said = f"{', '.join(names)} replaced: nothing is compared with the run"
        kept = [f"the number {each}" for each in self.recording.numbers]
        kept += [f"what {each} gave" for each in sorted(set(self.recording.unwritten))]
        if kept:
            said += f"\n  as in the run stay {'; '.join(kept[:MOST_NAMED])}"
        return said

    def told(self) -> str:
        """How the replay compares, in a sentence."""
        recording = self.recording
        said = f"{self.compared} {'operation' if self.compared == 1 else 'operations'}"
        if self.shapes is not None:
            return f"{said}, of which the graph alone was made again"
        if not self.compares or not self.worst:
            return f"{said}, not compared with the run"
        if "value" in self.worst:
            said += f", equal to {self.worst['value']:.0e}"
        for kind, named in (("gradient", "gradients"), ("step", "the optimizer's step")):
            if kind in self.worst:
                said += f", {named} to {self.worst[kind]:.0e}"
        if recording.unwritten:
            names = sorted(set(recording.unwritten))
            said += f"; {len(recording.unwritten)} read from the recording: {', '.join(names)}"
        for each in recording.notes[:MOST_NAMED]:
            said += f"\n  {each}"
        return said


def _element(container: Any, part: str) -> Any:
    """An element of a list or dict that a module holds, by the text of its subscript."""
    if isinstance(container, dict):
        return next((each for key, each in container.items() if repr(key) == part), None)
    number = int(part) if part.isdecimal() else len(container)
    return container[number] if number < len(container) else None


def _is_operation(checks: Sequence[Check]) -> bool:
    """Whether a line with these checks computes something, and is no backward pass or step."""
    return any(check.kind == "value" for check in checks)


def _hash(tensor: Tensor) -> bytes:
    """What tells whether a tensor is another one."""
    return blake2b(np.ascontiguousarray(to_host(forced(tensor.array))).tobytes()).digest()


def digest(array: Any) -> Any:
    """What a result is known by, as the recorder computes it: its elements, or samples, sums of
    blocks and sums of absolutes.
    """
    flat = np.asarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    count = flat.size
    if count <= SAMPLES + 2 * BLOCKS:
        return flat.astype(np.float64)
    samples = flat[[i * (count - 1) // (SAMPLES - 1) for i in range(SAMPLES)]].astype(np.float64)
    sums, sizes = np.empty(BLOCKS), np.empty(BLOCKS)
    for i in range(BLOCKS):
        block = flat[i * count // BLOCKS : (i + 1) * count // BLOCKS].astype(np.float64)
        sums[i], sizes[i] = block.sum(), np.abs(block).sum()
    return np.concatenate([samples, sums, sizes])


def difference(ours: Any, theirs: Any, count: int, least: float = 0.0) -> tuple[float, int]:
    """The largest difference of two digests of so many elements, as a share of the largest element,
    or of `least` where that is larger, and where it is.
    """
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if same.all():
        return 0.0, 0
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(ours - theirs))
    gap[np.isnan(gap)] = np.inf
    scale = np.full(len(gap), _largest(theirs[:SAMPLES]))
    if count > SAMPLES + 2 * BLOCKS:
        sizes = theirs[SAMPLES + BLOCKS :]
        largest = _largest(sizes)
        scale[:] = max(scale[0], largest * BLOCKS / count)
        scale[SAMPLES:] = largest
    else:
        scale[:] = _largest(theirs)
    scale = np.maximum(scale, least)
    share = np.divide(gap, scale, out=np.full(len(gap), np.inf), where=scale > 0)
    share[gap == 0] = 0.0
    at = int(np.argmax(share))
    return float(share[at]), at


def _largest(values: Any) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0
