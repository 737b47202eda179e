"""Tensor: a value that may carry a gradient.

The arithmetic of tensors and their methods are installed by `gradcli.ops`. This module has a
tensor's parts, how it aliases other tensors, and Python's own protocols.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import device_of
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.layout.sizes import Device, Size
from gradcli.arrays.printing import format_tensor
from gradcli.arrays.storage import InferenceStorage, Storage
from gradcli.autograd.node import SCALAR_METADATA, Hooks, Node
from gradcli.errors import GradcliError, dtype_error, runtime_error, type_error, value_error
from gradcli.state import active, look


def not_installed(*args: Any) -> Any:
    """Stands for a function of `gradcli.ops` until that is imported."""
    raise RuntimeError("gradcli.ops.load has to be imported before tensors are used")


iterate: Callable[[Tensor], Any] = not_installed
"""Splits a tensor along its first dimension; installed by gradcli.ops."""

regenerate: Callable[[Tensor], None] = not_installed
"""Replays the history of a view whose base was written to; installed by autograd.inplace."""


def _nothing() -> None:
    """Nothing has a path where no program runs."""


name_parameters: Callable[[], None] = _nothing
"""Names the parameters of every module by their path; installed by gradcli.library."""


class Replay(Protocol):
    """How a view is made again; `gradcli.autograd.inplace.writes` has it."""

    def replay(self, base: Tensor) -> Tensor:
        """The same view of another value of its base."""


class TensorMeta:
    """The attributes that few tensors have: a gradient, a name, hooks, the base that they are a
    view of.

    Attributes:
        name: the variable that a tensor without grad_fn was assigned to first.
        accumulator: the leaf's AccumulateGrad, held weakly: graphs own it.
        base: the tensor that this one is a view of.
        creation: how a view was made, where that restricts writing to it: "" (no restriction),
            "no_grad", "inference", "multi_output" or "custom_function".
        attr_version: the storage's version when the view's grad_fn was last made.
        loose: whether a view without grad_fn requires grad only because its base does: operations
            on it are recorded, and no gradient flows to it.
        retains_grad: whether the gradient of a non-leaf is kept.
        replay: how a view is made again, where that is not as its layout says; see `keep_replay`.
        persistent: for an `nn.Buffer`, whether a module's state_dict has it; None for other
            tensors.
        attributes: what the program set on the tensor by names of its own, None for nothing.
    """

    __slots__ = (
        "accumulated_hooks",
        "accumulator",
        "attr_version",
        "attributes",
        "base",
        "creation",
        "grad",
        "hooks",
        "is_parameter",
        "loose",
        "name",
        "persistent",
        "replay",
        "retains_grad",
    )

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.name: str | None = None
        self.accumulator: weakref.ref[AccumulateGrad] | None = None
        self.base: Tensor | None = None
        self.creation = ""
        self.attr_version = 0
        self.loose = False
        self.retains_grad = False
        self.replay: Replay | None = None
        self.is_parameter = False
        self.persistent: bool | None = None
        self.attributes: dict[str, Any] | None = None
        self.hooks: Hooks = {}
        self.accumulated_hooks: Hooks = {}


class Tensor:
    """A value and its place in the graph.

    Attributes:
        array: an ndarray, or a NumPy scalar for a 0-dim tensor without aliases.
        requires_grad: whether gradients are wanted: a leaf's flag, True for all that has a grad_fn.
        grad_fn: the node that made it, None for a leaf.
        storage: shared by all aliases, None while there are none.
        meta: further attributes, None while it has none of them.

    Code that reads `grad_fn` or `requires_grad` of a tensor with a storage calls `refresh` first: a
    write to its base may have changed them.
    """

    __slots__ = (
        "__weakref__",
        "array",
        "grad_fn",
        "meta",
        "output_nr",
        "requires_grad",
        "storage",
    )

    # ndarray * Tensor must call Tensor.__rmul__, not loop over the tensor.
    __array_ufunc__ = None

    def __init__(self, array: Any, requires_grad: bool = False) -> None:
        self.array = array
        self.requires_grad = requires_grad
        self.grad_fn: Node | None = None
        self.output_nr = 0
        self.storage: Storage | None = None
        self.meta: TensorMeta | None = None
        if active.state.notes_creation:
            note_creation(self)

    # --- what it is ---------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return Size(self.array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.array.ndim)

    @property
    def dtype(self) -> dtypes.DType:
        """The element type."""
        return dtypes.of_array(self.array)

    @property
    def device(self) -> Device:
        """Where the elements live."""
        return device_of(self.array)

    @property
    def is_leaf(self) -> bool:
        """Whether it was not made by a recorded operation."""
        if self.storage is not None:
            refresh(self)
        return self.grad_fn is None

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, or None."""
        return None if self.meta is None else self.meta.grad

    @property
    def version(self) -> int:
        """How often its memory was written to."""
        return 0 if self.storage is None else self.storage.version

    @property
    def base(self) -> Tensor | None:
        """The tensor that this one is a view of, or None."""
        return None if self.meta is None else self.meta.base

    @property
    def retains_grad(self) -> bool:
        """Whether it is a non-leaf whose gradient is kept."""
        return self.meta is not None and self.meta.retains_grad

    @property
    def name(self) -> str | None:
        """The variable that it was assigned to first, or None; of a parameter its path."""
        if self.grad_fn is not None:
            return self.grad_fn.assigned
        meta = self.meta
        if meta is None:
            return None
        if meta.is_parameter and (meta.name is None or "." not in meta.name):
            name_parameters()
        return meta.name

    def set_name(self, name: str) -> None:
        """Give it the name of the variable that it is assigned to, if it has none yet."""
        node = self.grad_fn
        if node is None:
            meta = self.meta or meta_of(self)
            if meta.name is None:
                meta.name = name
        elif node.assigned is None:
            node.assigned = name
        elif node.multiple and name not in node.assigned.split(", "):
            node.assigned += f", {name}"

    def item(self) -> Any:
        """The one element as a Python number; raises E202 where there is not exactly one."""
        refuse_batched("item", self)
        if self.array.size != 1:
            raise dtype_error(
                f"a tensor with {self.array.size} elements cannot be turned into one number",
                text=f"a Tensor with {self.array.size} elements cannot be converted to Scalar",
                help="reduce it first, `x.mean().item()`; `x.tolist()` gives all its numbers",
            )
        return self._taken()

    def _taken(self) -> Any:
        """The one element; the read is reported to the recorder, as what runs may depend on it."""
        look(None, self.array)
        return self.array.item()

    # --- Python's protocols -------------------------------------------------------------------

    def __repr__(self) -> str:
        transforms = active.state.transforms
        return transforms[-1].described(self) if transforms else self.text()

    def text(self) -> str:
        """How it is printed outside of transforms."""
        if hasattr(self.array, "named"):  # it has no elements yet
            return repr(self.array)
        text = format_tensor(forced(self.array), self._suffixes())
        return f"Parameter containing:\n{text}" if self.meta and self.meta.is_parameter else text

    def _suffixes(self) -> tuple[str, ...]:
        if self.storage is not None:
            try:
                refresh(self)
            except GradcliError:  # a write's history cannot be replayed; its value is there
                return ("grad_fn=<Invalid>",)
        if self.grad_fn is not None:
            shown: tuple[str, ...] = (f"grad_fn=<{self.grad_fn.node_name}>",)
        else:
            shown = ("requires_grad=True",) if self.requires_grad else ()
        duals = active.state.duals
        return shown if duals is None else duals.suffixes(self, shown)

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if self.array.ndim == 0:
            raise type_error("a 0-dim tensor has no len()", text="len() of a 0-d tensor")
        return int(self.array.shape[0])

    def __bool__(self) -> bool:
        refuse_batched("bool", self)
        if self.array.size != 1:
            raise dtype_error(
                f"the truth of a tensor with {self.array.size} elements is ambiguous",
                text=f"Boolean value of Tensor with {'more than one' if self.array.size else 'no'}"
                f" value{'' if self.array.size else 's'} is ambiguous",
                help="reduce it first: `.any()` or `.all()`",
            )
        return bool(self._taken())

    def _number(self) -> Any:
        refuse_batched("item", self)
        if self.array.size != 1:
            raise value_error(
                f"only a one-element tensor can be turned into a number, not one of shape"
                f" {tuple(self.array.shape)}",
                text="only one element tensors can be converted to Python scalars",
            )
        return self._taken()

    def _real_number(self) -> Any:
        number = self._number()
        if type(number) is not complex:
            return number
        if number.imag:
            raise dtype_error(
                "a complex number has no real value", help="take its .real, or its abs()"
            )
        return number.real

    def __float__(self) -> float:
        return float(self._real_number())

    def __int__(self) -> int:
        return int(self._real_number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        refuse_batched("item", self)
        if not is_index(self):
            raise type_error(
                "only integer tensors of a single element can be used as an index",
                text="only integer tensors of a single element can be converted to an index",
            )
        return int(self._taken())

    def __iter__(self) -> Iterator[Tensor]:
        if self.array.ndim == 0:
            raise type_error(
                "a 0-dim tensor cannot be iterated over", text="iteration over a 0-d tensor"
            )
        return iter(iterate(self))

    if TYPE_CHECKING:  # installed by gradcli.ops

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...


class AccumulateGrad(Node):
    """The node of a leaf: the engine adds the gradient that arrives to `variable.grad`."""

    __slots__ = ("variable",)

    node_name = "AccumulateGrad"
    reads_lazy = True
    language_attributes = Node.language_attributes | {"variable"}

    def __init__(self, variable: Tensor) -> None:
        self.next_nodes = ()
        self.input_nrs = ()
        shape, dtype = variable.array.shape, variable.array.dtype
        self.metadata = (not shape and SCALAR_METADATA.get(dtype.type)) or ((shape, dtype),)
        self.sequence_nr = 1 << 62  # its gradient is never waited for
        self.place = None
        self.assigned = None
        self.extra = None
        self.variable = variable


def refuse_batched(what: str, *tensors: Any) -> None:
    """Raise E204 where a function needs one example's values inside `vmap`."""
    batch = active.state.batch
    if batch is not None:
        batch.refuse(what, tensors)


def meta_of(tensor: Tensor) -> TensorMeta:
    """The tensor's meta, made if there is none."""
    if tensor.meta is None:
        tensor.meta = TensorMeta()
    return tensor.meta


def is_index(tensor: Tensor) -> bool:
    """Whether a tensor can stand for an index: it is one integer, or one bool."""
    return bool(tensor.array.size == 1 and tensor.array.dtype.kind in "iub")


def storage_of(tensor: Tensor) -> Storage:
    """The tensor's storage, made if there is none; its array can be aliased and written to then."""
    if tensor.storage is None:
        tensor.storage = Storage()
        array = forced(tensor.array)
        tensor.array = np.asarray(array) if isinstance(array, np.generic) else array
        if tensor.grad_fn is not None:
            tensor.grad_fn.save_result_storage(tensor.output_nr, tensor.storage, tensor.array)
    return tensor.storage


def note_creation(tensor: Tensor, view: bool = False) -> None:
    """Note that a tensor was made: inside a differentiated function it is none that was captured,
    and in inference mode, unless it is a view, it is one that no graph can save.
    """
    state = active.state
    if state.born is not None and not (view and is_captured(tensor.base)):
        state.born[id(tensor)] = tensor
    if state.inference and not view:
        array = forced(tensor.array)
        tensor.array = np.asarray(array) if isinstance(array, np.generic) else array
        tensor.storage = InferenceStorage()


def is_captured(tensor: Tensor | None) -> bool:
    """Whether a tensor was made outside the innermost differentiated function that runs."""
    born = active.state.born
    return born is not None and tensor is not None and born.get(id(tensor)) is not tensor


def share_birth(result: Tensor, source: Tensor) -> None:
    """Let a tensor on the memory of a captured one be captured too."""
    if is_captured(source):
        active.state.born.pop(id(result), None)  # type: ignore[union-attr]


def refuse_transformed(what: str, text: str | None = None) -> None:
    """Raise E204 for what cannot be done inside a function that `torch.func` transforms; `text` is
    what PyTorch says of it.
    """
    if active.state.transforms:
        raise runtime_error(f"{what} inside a function that torch.func transforms", text=text)


def is_usable_leaf(tensor: Tensor) -> bool:
    """Whether a tensor is a leaf; not a view which a write to its memory made unusable, and which
    raises E405.
    """
    try:
        return tensor.is_leaf
    except GradcliError:
        return False


def refresh(tensor: Tensor) -> None:
    """Bring `grad_fn` and `requires_grad` of a view up to date with the writes to its base."""
    meta = tensor.meta
    if meta is None or meta.base is None:
        return
    assert tensor.storage is not None
    if (
        meta.attr_version != tensor.storage.version
        or meta.base.requires_grad is not tensor.requires_grad
    ):
        regenerate(tensor)


def accumulator(tensor: Tensor) -> AccumulateGrad | None:
    """The leaf's AccumulateGrad, the same while a graph holds it; None for a loose view."""
    meta = tensor.meta
    if meta is None:
        meta = tensor.meta = TensorMeta()
    elif meta.loose:
        return None
    elif meta.accumulator is not None:
        node = meta.accumulator()
        if node is not None:
            return node
    node = AccumulateGrad(tensor)
    meta.accumulator = weakref.ref(node)
    return node


def gradient_edge(tensor: Tensor) -> tuple[Node | None, int]:
    """The node and output number that a gradient flows to; (None, 0) for none."""
    if tensor.storage is not None:
        refresh(tensor)
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    return (accumulator(tensor), 0) if tensor.requires_grad else (None, 0)


def join_graph(node: Node, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> None:
    """Fill in the edges, to the inputs' nodes, and other attributes of a node that no op made."""
    state = active.state
    edges = [gradient_edge(tensor) for tensor in inputs]
    state.sequence_nr += 1
    node.next_nodes = tuple([to for to, _ in edges])
    node.input_nrs = tuple([output_nr for _, output_nr in edges])
    node.metadata = tuple([(tensor.array.shape, tensor.array.dtype) for tensor in outputs])
    node.sequence_nr = state.sequence_nr
    node.place = state.place
    node.assigned = None
    node.extra = None


def with_history(array: Any, node: Node | None, output_nr: int = 0) -> Tensor:
    """A tensor of an array that a node's operation made."""
    tensor = Tensor(array, node is not None)
    if node is not None:
        if isinstance(node, AccumulateGrad):
            return node.variable
        tensor.grad_fn = node
        tensor.output_nr = output_nr
    return tensor


def in_place_of(array: Any, node: Node | None, output_nr: int) -> Tensor:
    """A tensor with its own value and another's position in the graph, also a leaf's."""
    if not isinstance(node, AccumulateGrad):
        return with_history(array, node, output_nr)
    tensor = Tensor(array, True)
    meta_of(tensor).accumulator = weakref.ref(node)
    return tensor


def alias(tensor: Tensor) -> Tensor:
    """A tensor on the same memory and version, outside the graph, as `detach` returns it."""
    storage = storage_of(tensor)
    result = Tensor(tensor.array)
    result.storage = InferenceStorage(True) if type(storage) is InferenceStorage else storage
    if active.state.born is not None:
        share_birth(result, tensor)
    return result
