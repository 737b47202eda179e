"""Methods of tensors besides ops: `backward`, `requires_grad_`, `item`, and their attributes."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from gradcli.arrays.backend import address_of
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.layout.strides import is_channels_last, memory_of, strides_of
from gradcli.arrays.storage import InferenceStorage
from gradcli.autograd import anomaly, hooks, modes
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.engine import backward as engine_entry
from gradcli.autograd.inplace.writes import storage_offset
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import (
    Tensor,
    meta_of,
    refresh,
    refuse_batched,
    refuse_transformed,
    share_birth,
    storage_of,
)
from gradcli.errors import GradcliError, index_error, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import lazy_conjugation_of
from gradcli.ops.binding.arguments import normal_dim
from gradcli.ops.binding.catalogue import (
    function,
    method,
    modules,
    properties,
    setters,
    tensor_property,
)
from gradcli.ops.creation.copies import detach
from gradcli.ops.creation.settings import CHANNELS_LAST
from gradcli.ops.definition.doc import GRAD, READS, STATE, effects
from gradcli.ops.definition.lints import check_kept
from gradcli.state import active, look

# --- differentiation ----------------------------------------------------------------------------

modules["torch.autograd"].update(
    backward=engine_entry.backward,
    grad=engine_entry.grad,
)
_MODES: dict[str, Any] = {
    "no_grad": modes.NoGrad,
    "enable_grad": modes.EnableGrad,
    "set_grad_enabled": modes.SetGradEnabled,
    "inference_mode": modes.InferenceMode,
}
modules["torch"].update(
    _MODES,
    is_grad_enabled=modes.is_grad_enabled,
    is_inference_mode_enabled=modes.is_inference_mode_enabled,
)
modules["torch.autograd"].update(
    _MODES,
    detect_anomaly=anomaly.DetectAnomaly,
    set_detect_anomaly=anomaly.SetDetectAnomaly,
)
modules["torch"].update(
    is_anomaly_enabled=anomaly.is_anomaly_enabled,
    is_anomaly_check_nan_enabled=anomaly.is_anomaly_check_nan_enabled,
)


@function("Variable", module="torch.autograd")
def variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """A tensor on the same memory; the name is from before tensors could require grad.

    Example: torch.autograd.Variable(tensor([0.5, 1., 2.]))
    """
    result = detach(data)
    _change_requires_grad(result, requires_grad)
    return result


@method("backward", effects=(GRAD,))
def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the tensor's gradient into `.grad` of the leaves; see
    `torch.autograd.backward`.

    Example: tensor(1., requires_grad=True).backward()
    """
    engine_entry.backward(self, gradient, retain_graph, create_graph, inputs)


_REQUIRES_GRAD = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using"
    " torch.autograd.functional.* APIs) inside of a function being transformed by a functorch"
    " transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad,"
    " vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being"
    " transformed instead."
)


for _method in (
    engine_entry.retain_grad,
    hooks.register_hook,
    hooks.register_post_accumulate_grad_hook,
):
    method()(effects(STATE)(_method))


_ONLY_LEAVES = "you can only change requires_grad flags of leaf variables."


def _change_requires_grad(
    tensor: Tensor, value: Any, wanted: str = "floating point and complex"
) -> None:
    if type(value) is not bool:
        raise type_error(
            f"requires_grad must be True or False, not {type(value).__name__}",
            text="requires_grad must be a bool",
            raises="RuntimeError",
        )
    if not value and _grad_fn(tensor) is not None:
        raise GradcliError(
            "E408",
            "only a leaf's requires_grad can be switched off",
            text=_ONLY_LEAVES + " If you want to use a computed variable in a subgraph that doesn't"
            " require differentiation use var_no_grad = var.detach().",
            help="use detach() for a value outside the graph",
        )
    if value and type(tensor.storage) is InferenceStorage:
        tensor.storage.check("E408", "require grad")
    if value and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        raise GradcliError(
            "E408",
            f"only floating tensors can require grad, and this one is {tensor.dtype}",
            text=f"only Tensors of {wanted} dtype can require gradients",
            help="make it floating: `x.float()`, or write `2.` for `2`",
        )
    if _grad_fn(tensor) is None:
        tensor.requires_grad = value
        if tensor.meta is not None:
            tensor.meta.loose = False


def set_requires_grad(tensor: Tensor, value: Any) -> None:
    """`x.requires_grad = value`, which is an error for a tensor with a history, whatever the
    value.
    """
    _change_requires_grad(tensor, value)
    if _grad_fn(tensor) is not None:
        raise GradcliError(
            "E408",
            "only a leaf's requires_grad can be assigned, and this tensor has a history",
            text=_ONLY_LEAVES,
            help="it requires grad already; retain_grad() keeps its gradient",
        )


@method("requires_grad_", effects=(STATE,))
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether a leaf requires grad; returns the tensor. Raises E202 for anything but a bool,
    E408 for a non-leaf or an integer dtype.
    """
    if not isinstance(requires_grad, bool):
        raise type_error(
            f"requires_grad_() takes True or False, not {type(requires_grad).__name__}",
            text="requires_grad_(): argument 'requires_grad' (position 1) must be bool, not"
            f" {type(requires_grad).__name__}",
        )
    refuse_transformed("requires_grad_()", _REQUIRES_GRAD)
    _change_requires_grad(self, requires_grad, "floating point")
    return self


# --- attributes ---------------------------------------------------------------------------------


@tensor_property("grad_fn")
def _grad_fn(tensor: Tensor) -> Node | None:
    if tensor.storage is not None:
        refresh(tensor)
    node = tensor.grad_fn
    return None if _hides_history(tensor) or (node and node.stands_for_leaf) else node


def _hides_history(tensor: Tensor) -> bool:
    """Whether the tensor's history exists only for forward mode."""
    duals = active.state.duals
    return duals is not None and bool(duals.hides_history(tensor))


@tensor_property("requires_grad")
def _requires_grad(tensor: Tensor) -> bool:
    if _hides_history(tensor):
        return False
    # A view need not be brought up to date for this: it requires grad where its base does.
    meta = tensor.meta
    if meta is not None and meta.base is not None:
        if meta.base.requires_grad:
            return True
        if meta.loose and tensor.grad_fn is None:
            return False
    return tensor.requires_grad


@tensor_property("grad")
def _grad(tensor: Tensor) -> Tensor | None:
    if tensor.grad_fn is not None:
        check_kept(tensor)
    return tensor.grad


@tensor_property("data")
def _data(tensor: Tensor) -> Tensor:
    # The same memory with a version of its own: the checks of the graph do not see writes through
    # it.
    refuse_batched("data", tensor)
    outside = detach(tensor)
    data = Tensor(outside.array)
    share_birth(data, tensor)
    data.storage = outside.storage if isinstance(outside.storage, InferenceStorage) else None
    if tensor.dtype.is_complex:
        storage_of(data).lazy_conjugation = lazy_conjugation_of(tensor)
    return data


def _unlike(gradient: Tensor, tensor: Tensor) -> str:
    """PyTorch's text for a gradient of another shape or dtype than its tensor."""
    shape, wanted = list(gradient.array.shape), list(tensor.array.shape)
    if shape != wanted:
        return (
            f"attempting to assign a gradient of size '{shape}' to a tensor of size '{wanted}'."
            " Please ensure that the gradient and the tensor are the same size"
        )
    return (
        f"attempting to assign a gradient with dtype '{gradient.dtype.c_name}' to a tensor with"
        f" grad_dtype '{tensor.dtype.scalar_type}'. The gradient must match the tensor's grad_dtype"
        " (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a"
        " specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the"
        " dtypes of a tensor and its gradient may break downstream systems that assume they match."
    )


def _set_grad(tensor: Tensor, value: Any) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise type_error(
                f"grad must be a tensor or None, not {type(value).__name__}",
                text="assigned grad expected to be a Tensor or None but got grad of type"
                f" {type(value).__name__}",
            )
        if value.array.shape != tensor.array.shape or value.dtype is not tensor.dtype:
            raise shape_error(
                f"a gradient of shape {tuple(value.array.shape)} and {value.dtype} does not fit a"
                f" tensor of shape {tuple(tensor.array.shape)} and {tensor.dtype}",
                text=_unlike(value, tensor),
            )
        if value is tensor:
            raise runtime_error("a tensor cannot be its own gradient")
    meta_of(tensor).grad = value


def set_data(tensor: Tensor, value: Any) -> None:
    refuse_transformed("setting .data")
    if not isinstance(value, Tensor):
        raise type_error(
            f"data must be a tensor, not {type(value).__name__}",
            text=f"Variable data has to be a tensor, but got {type(value).__name__}",
        )
    if tensor.requires_grad and not (value.dtype.is_floating_point or value.dtype.is_complex):
        raise GradcliError(
            "E408",
            f"a tensor that requires grad must stay floating, and the data is {value.dtype}",
            text="data set to a tensor that requires gradients must be floating point or complex"
            " dtype",
        )
    if tensor.meta is not None and value.array.dtype is not tensor.array.dtype:
        tensor.meta.accumulator = None
    state = active.state
    if state.data_replaced is not None and value.array.shape != tensor.array.shape:
        state.data_replaced(tensor)
    tensor.array = detach(value).array
    if state.recorder is not None:
        state.recorder.replaced(tensor, value)


def _version(tensor: Tensor) -> int:
    if isinstance(tensor.storage, InferenceStorage):
        raise GradcliError(
            "E408",
            "a tensor made under torch.inference_mode() has no version: its writes are not counted",
        )
    return tensor.version


setters.update(requires_grad=set_requires_grad, grad=_set_grad, data=set_data)
properties.update(
    shape=lambda tensor: tensor.shape,
    dtype=lambda tensor: tensor.dtype,
    device=lambda tensor: tensor.device,
    ndim=lambda tensor: tensor.ndim,
    is_leaf=lambda tensor: _grad_fn(tensor) is None,
    retains_grad=lambda tensor: tensor.retains_grad,
    output_nr=lambda tensor: tensor.output_nr,
    itemsize=lambda tensor: int(tensor.array.itemsize),
    nbytes=lambda tensor: int(tensor.array.nbytes),
    is_cpu=lambda tensor: tensor.device.type == "cpu",
    is_cuda=lambda tensor: tensor.device.type == "cuda",
    is_meta=lambda tensor: tensor.device.type == "meta",
    name=lambda tensor: None,
    _version=_version,
    _base=lambda tensor: tensor.base,
)

# The ways to be that no tensor here has.
_ABSENT = "ipu maia mkldnn mps mtia nested quantized sparse sparse_csr vulkan xla xpu"
properties.update({f"is_{kind}": lambda tensor: False for kind in _ABSENT.split()})

# --- queries ------------------------------------------------------------------------------------


@method("item", effects=(READS,))
def item(self: Tensor) -> Any:
    """The one element as a Python number.

    Example: tensor(2.5).item()
    """
    return self.item()


@method("tolist", effects=(READS,))
def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers; a number for a 0-dim tensor."""
    refuse_batched("tolist", self)
    look(None, self.array)
    return self.array.tolist()


@method("size")
def size(self: Tensor, dim: int | None = None) -> Any:
    """The sizes, or the size of one dimension."""
    if dim is None:
        return self.shape
    if not self.array.ndim:
        raise index_error("size(): a 0-dim tensor has no dimensions")
    return int(self.array.shape[normal_dim("size", dim, self.array.ndim)])


@method("dim", "ndimension")
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return self.ndim


@function("numel", method=True)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(input.array.size)


method("nelement")(numel)


@method("element_size")
def element_size(self: Tensor) -> int:
    """The size of an element in bytes."""
    return int(self.array.itemsize)


method("storage_offset")(storage_offset)


@method("data_ptr")
def data_ptr(self: Tensor) -> int:
    """Where the first element lies in memory: a number that is the same in every run, and as far
    from those of other tensors on the same memory as they are apart. 0 for an empty tensor, and for
    one without values. Raises E204 inside `vmap`.
    """
    if type(self.array) is BatchedArray:
        raise runtime_error(
            "data_ptr() of a tensor that vmap carries: there is no memory of one example",
            text="Cannot access data pointer of Tensor that doesn't have storage",
        )
    storage = storage_of(self)
    if not self.array.size or self.device.type == "meta":
        return 0
    array = self.array = forced(self.array)
    if not hasattr(storage, "address"):
        memory = memory_of(array)
        storage.address = _number(memory) << 32, address_of(memory)
    number, first = storage.address
    return number + address_of(array) - first


def _number(memory: Any) -> int:
    """The number of an array that has memory, which tensors share that have no storage in common
    too: `x.data` and what NumPy sees.
    """
    state = active.state
    known, number = state.addresses.get(id(memory), (None, 0))
    if known is None or known() is not memory:
        state.object_ids += 1
        number = state.object_ids
        if type(memory) is np.ndarray:
            state.addresses[id(memory)] = ref(memory), number
    return number


@method("stride")
def stride(self: Tensor, dim: int | None = None) -> Any:
    """How many elements apart neighbours along each dimension lie in memory."""
    steps = strides_of(self.array)
    return tuple(steps) if dim is None else steps[normal_dim("stride", dim, len(steps))]


@method("is_contiguous")
def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in memory in row order, or with channels innermost."""
    if memory_format in CHANNELS_LAST.values():
        return self.array.ndim in CHANNELS_LAST and is_channels_last(self.array)
    return bool(self.array.flags.c_contiguous)


@method("_is_view")
def is_view(self: Tensor) -> bool:
    """Whether it shows another tensor's memory, in the graph."""
    return self.base is not None


@function("is_inference", method=True)
def is_inference(input: Tensor) -> bool:
    """Whether it was made under `torch.inference_mode()`, or is a view of such a tensor."""
    return type(input.storage) is InferenceStorage


@function("is_tensor")
def is_tensor(obj: Any) -> bool:
    """Whether a value is a tensor.

    Example: torch.is_tensor(tensor([0.5, 1., 2.]))
    """
    return isinstance(obj, Tensor)


@function("is_floating_point", method=True)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating."""
    return input.dtype.is_floating_point


@function("is_complex", method=True)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return input.dtype.is_complex
