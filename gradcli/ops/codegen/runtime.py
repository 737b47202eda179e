"""What the generated functions of ops call: the roads that are taken rarely, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import device_of, gpu_in_use, moved
from gradcli.arrays.fusion.lazy import deferred
from gradcli.arrays.storage import InferenceStorage
from gradcli.arrays.strides import cast_in_order
from gradcli.arrays.views import strides_of
from gradcli.autograd.engine import accumulate
from gradcli.autograd.node import FREED, AccumulateGrad, Node, detached, freed, modified
from gradcli.autograd.tensor import Tensor, gradient_edge, with_history
from gradcli.errors import GradcliError
from gradcli.ops.definition.dtype_support import check_dtype
from gradcli.state import active


def wrong_operand(op: Any, name: str, value: Any) -> GradcliError:
    """The error of an operand that is no tensor."""
    shown = "input" if name == "self" else name
    return GradcliError(
        "E202",
        f"{op.name}(): argument '{shown}' must be a tensor, not {type_name(value)}",
        help="wrap the number: `tensor(2.)`" if isinstance(value, (int, float)) else None,
    )


def type_name(value: Any) -> str:
    """A value's type as a program knows it."""
    return "Tensor" if type(value) is Tensor else type(value).__name__


def number_of(op: Any, value: Tensor) -> Any:
    """The number in a 0-dim tensor that stands for a number; raises E202 for other tensors, and for
    one that a gradient is wanted of.
    """
    if value.array.ndim:
        raise GradcliError("E202", f"{op.name}(): expected a number, not a tensor of several")
    if value.requires_grad:
        raise GradcliError(
            "E202",
            f"{op.name}(): expected a number, and no gradient reaches the tensor given for it",
            help="take its value: `x.item()`",
        )
    return value.item()


def listed(name: str, tensors: Any) -> list[Tensor]:
    """The tensors of a list argument; raises E202 for what is no list of tensors."""
    if not isinstance(tensors, (list, tuple)):
        raise GradcliError(
            "E202",
            f"{name}(): expected a list of tensors, not {type_name(tensors)}",
            help=f"put the tensors in brackets: `{name}([a, b])`",
        )
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise GradcliError(
                "E202", f"{name}(): element {number} must be a tensor, not {type_name(tensor)}"
            )
    return list(tensors)


_OF_UFUNCS = ("ufunc", "Cannot cast ufunc")
"""How the messages begin of NumPy's TypeErrors for dtypes that a ufunc does not have."""


def misfit(
    op: Any, operands: tuple[Any, ...], failure: ValueError | TypeError | GradcliError
) -> Exception:
    """The error of arrays whose shapes or dtypes NumPy refused; a TypeError of ours stays one. What
    the forward function refused itself stays too, unless it is a dtype of operands whose shapes do
    not fit either, which PyTorch finds first.
    """
    if isinstance(failure, GradcliError) and not (
        failure.raises == "NotImplementedError" and _apart(op, operands)
    ):
        return failure
    if isinstance(failure, TypeError) and not str(failure).startswith(_OF_UFUNCS):
        return failure
    if isinstance(failure, TypeError) and not _apart(op, operands):
        dtypes_given = dict.fromkeys(str(o.dtype) for o in operands if type(o) is Tensor)
        return GradcliError(
            "E203",
            f"{op.name}: not defined for tensors of {' and '.join(dtypes_given)}",
            raises="NotImplementedError",
        )
    shapes = [
        tuple(operand.array.shape) if type(operand) is Tensor else None for operand in operands
    ]
    shown = " and ".join(str(shape) for shape in shapes if shape is not None)
    if op.pointwise:
        return GradcliError("E301", f"{op.name}: the shapes {shown} cannot be broadcast")
    return GradcliError("E301", f"{op.name}: {failure}")


def check_operand(op: Any, array: Any, operands: tuple[Any, ...]) -> None:
    """Raise E203 where an entry refuses the dtype of an operand's array; E301 for operands whose
    shapes do not fit, which PyTorch finds before its kernels refuse a dtype.
    """
    try:
        check_dtype(op.name, dtypes.of_array(array), op.refused)
    except GradcliError as refusal:
        if refusal.raises == "NotImplementedError" and _apart(op, operands):
            raise misfit(op, operands, ValueError()) from None
        raise


def _apart(op: Any, operands: tuple[Any, ...]) -> bool:
    """Whether the shapes of the operands of a pointwise op cannot be broadcast."""
    try:
        np.broadcast_shapes(*[o.array.shape for o in operands if type(o) is Tensor])
    except ValueError:
        return bool(op.pointwise)
    return False


def number_and_array(array: Any, number: Any) -> tuple[bool, Any, Any]:
    """Whether an array and a number need promotion, the array, and the number as NumPy must see it.

    NumPy lets a Python number take a floating array's dtype, as PyTorch does; all else is promoted
    by our own rules. A large array is the beginning of a plan.
    """
    kind = type(number)
    if kind is int:
        if not _LEAST <= number <= _MOST:
            check_width(number)
    elif kind is not float:
        return True, array, number
    if type(array) in NATIVE_SCALARS:
        return False, array, number
    if array.dtype not in EVERYDAY:
        return True, array, number
    if array.size >= active.state.defer_from:
        return False, deferred(array), number
    if not number or type(array) is not np.ndarray:  # 0.0 and -0.0 are one key
        return False, array, number
    known = _numbers[array.itemsize]
    made = known.get(number)
    if made is None:
        if len(known) == _MANY:
            known.clear()
        made = known[number] = np.array(number, array.dtype)
    return False, array, made


_numbers: dict[int, dict[float, Any]] = {4: {}, 8: {}}
"""Numbers as arrays with so many bytes, which NumPy computes with sooner than with Python's."""

_MANY = 4096
"""How many numbers are remembered."""

NATIVE_SCALARS = frozenset({np.float32, np.float64})
_HALF = (dtypes.float16, dtypes.bfloat16)
EVERYDAY = (np.dtype(np.float32), np.dtype(np.float64))


def promoted(
    op: Any, names: tuple[str, ...], operands: tuple[Any, ...]
) -> tuple[tuple[Any, ...], bool | tuple[Any, ...]]:
    """The operands' arrays in their common dtype, and whether that changed any of the tensors: the
    operands' devices where there were several.

    Raises E202 for an operand that is neither a tensor nor a number, and E208 as `check_devices`.
    """
    arrays = []
    for name, operand in zip(names, operands, strict=True):
        if type(operand) is Tensor:
            arrays.append(operand.array)
        elif type(operand) in NUMBERS or isinstance(operand, np.generic):
            arrays.append(operand)
        else:
            raise wrong_operand(op, name, operand)
    without = len(names) == len(op.tensors) and Tensor not in map(type, operands)
    if without and op.name not in _OF_NUMBERS:
        raise wrong_operand(op, names[0], operands[0])
    if op.name == "sub":
        check_subtraction(*arrays)
    dtype = dtypes.result_dtype(arrays)
    mixed = any(
        type(operand) is Tensor and operand.array.dtype is not dtype.numpy_dtype
        for operand in operands
    )
    homes = tuple([None if type(each) in NUMBERS else device_of(each) for each in arrays])
    if len({home for home in homes if home is not None}) > 1:
        check_devices(op, arrays)
        device = next(home for home in homes if home is not None and home.type != "cpu")
        cast = [dtypes.cast(array, dtype) for array in arrays]
        return tuple([each if home is None else moved(each, device)
                      for each, home in zip(cast, homes, strict=True)]), homes  # fmt: skip
    if op.exact_numbers and dtype in _HALF:
        first, second = arrays
        if type(second) in NUMBERS or not second.ndim:
            return (dtypes.cast(first, dtype), float(second)), True
    return tuple(cast_in_order(array, dtype) for array in arrays), mixed


_OF_NUMBERS = frozenset({"add", "div", "floor_divide", "mul", "sub"})
"""Ops that PyTorch's functions take two numbers for, and no tensor."""


def devices_differ(*arrays: Any) -> bool:
    """Whether arrays lie on several devices."""
    return gpu_in_use() and len({device_of(array) for array in arrays}) > 1


def check_devices(op: Any, arrays: Sequence[Any]) -> None:
    """Raise E208 where arrays lie on several devices; a 0-dim one on the CPU goes with any."""
    if not gpu_in_use():
        return
    homes = {device_of(array) for array in arrays if getattr(array, "ndim", 0)}
    if len(homes) > 1:
        shown = " and ".join(sorted(map(str, homes)))
        raise GradcliError(
            "E208",
            f"{op.name}: expected all tensors to be on the same device, found {shown}",
            help="move them with `.to(device)`; only 0-dim tensors on the CPU go with any device",
        )


def brought_home(node: Node, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients, tensors, of a node whose operands lay on several devices: each on its
    operand's own.
    """
    from gradcli.ops.creation.copies import to

    homes: Any = getattr(node, "mixed", ())
    result = []
    for following, output_nr, gradient, home in zip(
        node.next_nodes, node.input_nrs, gradients, homes, strict=True
    ):
        if gradient is not None and following is not None and gradient.device != home:
            fitted = accumulate.fit(node, gradient, gradient.array, *following.metadata[output_nr])
            gradient = to(fitted, home)
        result.append(gradient)
    return tuple(result)


_LEAST, _MOST = -(2**63), 2**64 - 1


def check_width(number: int) -> None:
    """Raise E204 for a Python integer of more than 64 bits."""
    if not _LEAST <= number <= _MOST:
        raise GradcliError("E204", "the integer does not fit 64 bits", raises="OverflowError")


def check_alpha(self: Any, other: Any, alpha: Any) -> None:
    """Raise E202 for a factor that is no number, E203 where arrays of integers, or bools, are added
    with one that is a float.
    """
    if type(alpha) not in NUMBERS and not isinstance(alpha, np.generic):
        raise GradcliError("E202", f"alpha must be a number, not {type_name(alpha)}")
    kind = np.result_type(self, other).kind
    if isinstance(alpha, (complex, np.complexfloating)) and kind != "c":
        raise GradcliError("E204", "alpha must be real for tensors that are", raises="RuntimeError")
    if type(alpha) is float and kind in "iub":
        raise GradcliError("E203", "alpha must be an integer for tensors of integers")


def check_subtraction(*operands: Any) -> None:
    """Raise E203 where a bool is subtracted, or subtracted from: a number, or an array's dtype."""
    for operand in operands:
        if type(operand) is bool or getattr(operand, "dtype", None) == np.bool_:
            raise GradcliError(
                "E203",
                "`-` is not defined for bools",
                help="make it a number first, `mask.float()`, or use `^` or `~`",
            )


NUMBERS = frozenset({bool, int, float, complex})


def floating(array: Any) -> Any:
    """The array of an integer operand in the default floating dtype; any other as it is."""
    if type(array) in NUMBERS:
        return float(array) if type(array) is not complex else array
    if array.dtype.kind in "iub":
        return dtypes.cast(array, dtypes.default_dtype())
    return array


def base_of(tensor: Tensor) -> Tensor | None:
    """The tensor whose memory a view of `tensor` shows, None where no graph follows writes to it:
    for tensors of inference mode.
    """
    if type(tensor.storage) is InferenceStorage:
        return None
    meta = tensor.meta
    return tensor if meta is None or meta.base is None else meta.base


def creation_of(tensor: Tensor) -> str:
    """How the tensor was made, where that restricts writing to it and its views: see
    `TensorMeta`.
    """
    return "" if tensor.meta is None else tensor.meta.creation


def check_saved(node: Node, name: str, tensor: Tensor, expected: int) -> None:
    """Raise E404 if a saved input was written to since."""
    assert tensor.storage is not None
    if tensor.storage.version != expected:
        shown = tensor.name or ("input" if name == "self" else name)
        raise modified(node, shown, tensor.storage.version, expected, tensor.storage.place)


def check_attached(node: Node, name: str, tensor: Tensor, edge: int) -> None:
    """Raise E404 if a saved input without grad_fn had one when it was saved."""
    source = node.next_nodes[edge]
    if source is not None and type(source) is not AccumulateGrad:
        raise detached(node, tensor.name or ("input" if name == "self" else name))


def check_result(node: Any, name: str, storage: Any, expected: int) -> None:
    """Raise E404 if a saved result was written to since."""
    if storage.version != expected:
        op = node.op
        if op.outputs == ("*",) or op.outputs.index(name) in op.differentiable:
            name = node.assigned or name
        raise modified(node, name, storage.version, expected, storage.place)


def saved_tensor(node: Node, tensor: Tensor, edge: int | None) -> Tensor:
    """A saved input as a tensor with the history that it had when it was saved."""
    source = None if edge is None else node.next_nodes[edge]
    if source is None:
        return Tensor(tensor.array) if tensor.requires_grad else tensor
    if isinstance(source, AccumulateGrad):
        # What a hook unpacked has another value, and stands in the leaf's place.
        return tensor if gradient_edge(tensor)[0] is source else source.variable
    assert edge is not None
    made_by = tensor.grad_fn
    if made_by is source or (made_by is not None and made_by.next_nodes == (source,)):
        return tensor  # the latter is the copy of a value that was overwritten
    return with_history(tensor.array, source, node.input_nrs[edge])


def saved_array(node: Node, number: Any) -> Any:
    """A saved number as the 0-dim tensor that PyTorch wraps it in; beside half precision, which
    would take digits from it, as it is where nothing is recorded.
    """
    shape, dtype = node.metadata[0]
    if dtype.itemsize == 2 and not active.state.grad_enabled:
        return number
    array = np.asarray(number)
    wrapped = Tensor((array if dtype.itemsize == 2 and shape else array.astype(dtype))[()])
    if active.state.recorder is not None:
        active.state.recorder.wrapped(wrapped)
    return wrapped


def saved_result(node: Node, array: Any, output_nr: int) -> Tensor:
    """A saved result as a tensor whose history is the node itself; where it was written to a view,
    the view's history, as long as there is a view.
    """
    extra = node.extra
    renewed = None if extra is None or extra.renewed is None else extra.renewed()
    return with_history(array, node, output_nr) if renewed is None else with_history(array, renewed)


def run_on_tensors(node: Node, grads: Any, keep: bool) -> tuple[Any, ...]:
    """Run a node's rules with tensors that are not recorded, so that PyTorch's promotion applies
    and each op rounds as it does in a program.
    """
    state = active.state
    before = state.grad_enabled
    state.grad_enabled = False
    try:
        wrapped = (
            [None if grad is None else Tensor(grad) for grad in grads]
            if isinstance(grads, list)
            else Tensor(grads)
        )
        gradients = node.run_recorded(wrapped, keep)
    finally:
        state.grad_enabled = before
    return tuple(None if gradient is None else gradient.array for gradient in gradients)


_READ_AS_UNSIGNED = frozenset(
    {"diagonal", "ignore_index", "offset", "pad", "padding_idx", "shifts"}
)
"""Arguments of which PyTorch shows a negative number as an unsigned one of 64 bits."""


def _shown(value: Any, unsigned: bool) -> Any:
    """What an op kept of an argument, as a program sees it."""
    if unsigned and type(value) is int and value < 0:
        return value + (1 << 64)
    return value.shown() if hasattr(value, "shown") else value


def saved_attribute(node: Any, name: str) -> Any:
    """`grad_fn._saved_NAME`: what the node saved; raises E403 where it was freed, AttributeError
    where it is nothing.
    """
    if name.startswith("_raw_saved_"):
        from gradcli.ops.codegen.saved import raw_saved

        return raw_saved(node, name)
    if not name.startswith("_saved_"):
        return Node.language_getattr(node, name)
    what = name.removeprefix("_saved_")
    slots = type(node).__slots__
    if f"saved_{what}" in slots:
        value = getattr(node, f"saved_{what}", None)
        if value is FREED:
            raise freed(node)
        if what in node.op.outputs:
            number = node.op.outputs.index(what)
            recorded = node.op.outputs == ("result",) or number in node.op.differentiable
            return saved_result(node, value, number) if recorded else Tensor(value)
        if type(value) is not Tensor:
            return None if value is None else Tensor(np.asarray(value)[()])
        if value.grad_fn is None and not value.requires_grad:
            return value
        inputs = node.op.inputs
        return saved_tensor(node, value, inputs.index(what) if what in inputs else None)
    for slot in (what, f"argument_{what}", f"argument_{what}s"):
        if slot in slots:
            value = getattr(node, slot)
            unsigned = what in _READ_AS_UNSIGNED
            if type(value) is tuple:
                return tuple([_shown(each, unsigned) for each in value])
            return _shown(value, unsigned)
    for ending, measure in (("_sym_sizes", tuple), ("_sym_numel", prod)):
        source = what.removesuffix(ending)
        if source != what and source in node.op.inputs:
            return measure(_sizes_of_input(node, node.op.inputs.index(source)))
    source = what.removesuffix("_sym_strides")
    if source != what and f"saved_{source}" in slots:
        value = getattr(node, f"saved_{source}", None)
        if type(value) is Tensor:
            return tuple(strides_of(value.array))
    raise AttributeError(name)


def _sizes_of_input(node: Node, number: int) -> tuple[int, ...]:
    """The shape of an input, which the node that its gradient flows to knows."""
    source = node.next_nodes[number]
    return () if source is None else source.metadata[node.input_nrs[number]][0]
