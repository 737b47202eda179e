"""Generates the class of an op's nodes from its derivative rules; `gradcli.ops.codegen.apply` does
the forward part.

The tensors and arguments that nodes save are checked when they are read, shown as
`grad_fn._saved_NAME`, and packed where saved-tensor hooks are set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from gradcli.arrays.files.cache import code_of
from gradcli.arrays.fusion.lazy import as_lazy
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.arrays.layout.strides import strides_of
from gradcli.autograd.hooks import Pack, Packed, SavedTensor, Unpack
from gradcli.autograd.node import FREED, Node, detached, freed, modified
from gradcli.autograd.tensor import AccumulateGrad, Tensor, gradient_edge, refresh, with_history
from gradcli.ops.codegen import promotion, runtime
from gradcli.ops.codegen.signature import Signature, local, signature_of, tuple_of, when
from gradcli.ops.definition.dtype_support import LEAVING_COMPLEX
from gradcli.ops.definition.op import Function, Op, parameters_of
from gradcli.ops.definition.refs import Ref
from gradcli.state import active

# --- what nodes save ------------------------------------------------------------------------------


def check_saved(node: Node, name: str, tensor: Tensor, expected: int) -> None:
    """Raise E404 if a saved input was written to since."""
    assert tensor.storage is not None
    if tensor.storage.version != expected:
        base = tensor.base
        shown = tensor.name or (None if base is None else base.name)
        shown = shown or ("input" if name == "self" else name)
        refresh(tensor)
        producer, storage = (tensor.grad_fn, tensor.output_nr), tensor.storage
        held = (tensor.array.shape, tensor.array.dtype)
        raise modified(node, shown, held, producer, storage.version, expected, storage.place)


def check_attached(node: Node, name: str, tensor: Tensor, edge: int) -> None:
    """Raise E404 if a saved input without grad_fn had one when it was saved."""
    source = node.next_nodes[edge]
    if source is not None and type(source) is not AccumulateGrad:
        raise detached(node, tensor.name or ("input" if name == "self" else name))


def check_result(node: Any, name: str, storage: Any, expected: int) -> None:
    """Raise E404 if a saved result was written to since."""
    if storage.version != expected:
        op = node.op
        number = 0 if op.outputs == ("*",) else op.outputs.index(name)
        if op.outputs == ("*",) or number in op.differentiable:
            name = node.assigned or name
        held, producer = node.metadata[number], (node, number)
        raise modified(node, name, held, producer, storage.version, expected, storage.place)


class Key(tuple[Any, ...]):
    """An index for NumPy: for each dimension an array of positions, none negative, or a full slice.

    Attributes:
        parts: the parts of the index, up to the last: for each dimension None, or the index tensor
            or list, for those of a mask the mask. Of a tensor the version that it had.
        sources: the tensors of positions and masks that it was made of.
    """

    parts: tuple[tuple[Any, int], ...] = ()
    sources: tuple[Tensor, ...] = ()

    def shown(self) -> tuple[Tensor | None, ...]:
        """What `grad_fn._saved_indices` gives: a tensor for each part, None for a full slice."""
        return tuple(
            [
                part if part is None or type(part) is Tensor else Tensor(part)
                for part, _ in self.parts
            ]
        )

    def check(self, node: Node) -> None:
        """Raise E404 if one of its tensors was written to since."""
        for tensor, version in self.parts:
            if type(tensor) is Tensor and tensor.version != version:
                check_saved(node, "indices", tensor, version)


def saved_tensor(node: Node, tensor: Tensor, edge: int | None) -> Tensor:
    """A saved input as a tensor with the history that it had when it was saved."""
    source = None if edge is None else node.next_nodes[edge]
    if source is None:
        return Tensor(tensor.array) if tensor.requires_grad else tensor
    if isinstance(source, AccumulateGrad):
        # What a hook unpacked has another value, and replaces the leaf.
        return tensor if gradient_edge(tensor)[0] is source else source.variable
    assert edge is not None
    producer = tensor.grad_fn
    if producer is source or (producer is not None and producer.next_nodes == (source,)):
        return tensor  # the latter is the copy of a value that was overwritten
    return with_history(tensor.array, source, node.input_nrs[edge])


def saved_array(node: Node, number: Any) -> Any:
    """A saved number as the 0-dim tensor that PyTorch wraps it in. Beside half precision, which
    would round it, it stays a number where nothing is recorded.
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


_READ_AS_UNSIGNED = frozenset(
    {"diagonal", "ignore_index", "offset", "pad", "padding_idx", "shifts"}
)
"""Arguments of which PyTorch shows a negative number as an unsigned one of 64 bits."""


def _shown(value: Any, unsigned: bool) -> Any:
    """A saved argument as a program sees it."""
    if unsigned and type(value) is int and value < 0:
        return value + (1 << 64)
    return value.shown() if hasattr(value, "shown") else value


def saved_attribute(node: Any, name: str) -> Any:
    """`grad_fn._saved_NAME`: what the node saved; raises E403 where it was freed, AttributeError
    where the node saves nothing of that name.
    """
    if name.startswith("_raw_saved_"):
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
            return _shown_result(node, what, value)
        if type(value) is not Tensor:
            return None if value is None else Tensor(np.asarray(value)[()])
        if value.grad_fn is None and not value.requires_grad:
            return value
        if value.storage is not None:
            check_saved(node, what, value, getattr(node, f"version_{what}"))
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


_LISTING_DIMS = frozenset({"flip", "permute", "roll", "rot90"})
"""Ops whose argument `dims` PyTorch saves under that name; it is `dim` of others."""


def saved_attribute_names(node: Any) -> list[str]:
    """The names of what a node saved, as `dir(grad_fn)` shows them."""
    names = list(Node.language_attributes)
    for slot in type(node).__slots__:
        if slot.startswith("saved_"):
            names += [f"_{slot}", f"_raw_{slot}"]
        elif slot.startswith("argument_"):
            is_dim = slot == "argument_dims" and node.op.name not in _LISTING_DIMS
            names.append(f"_saved_{'dim' if is_dim else slot.removeprefix('argument_')}")
        elif slot.endswith("_sizes") and not node.op.lists:
            names.append(f"_saved_{slot.removesuffix('_sizes')}_sym_sizes")
    return names


def _shown_result(node: Any, name: str, array: Any) -> Tensor:
    """A saved result as a program sees it, on the memory of the tensor; E404 where it was written
    to since.
    """
    number = node.op.outputs.index(name)
    recorded = node.op.outputs == ("result",) or number in node.op.differentiable
    shown = saved_result(node, array, number) if recorded else Tensor(array)
    storage = getattr(node, f"storage_{name}")
    if storage is not None:
        check_result(node, name, storage, getattr(node, f"version_{name}"))
        shown.storage = storage
    return shown


def _sizes_of_input(node: Node, number: int) -> tuple[int, ...]:
    """The shape of an input, read from the node that its gradient flows to."""
    source = node.next_nodes[number]
    return () if source is None else source.metadata[node.input_nrs[number]][0]


# --- saved-tensor hooks -------------------------------------------------------------------------


def pack_slot(node: Any, name: str, pack: Pack, unpack: Unpack) -> None:
    """Replace one tensor that a node saved by what the hook `pack` returns for it."""
    slot = f"saved_{name}"
    tensor = getattr(node, slot)
    if name in node.op.outputs:
        tensor = saved_result(node, tensor, node.op.outputs.index(name))
    packed = Packed(pack(tensor), unpack)
    if name in node.op.outputs:
        setattr(node, f"storage_{name}", None)
    setattr(node, slot, packed)
    if type(node) not in _packing_classes.values():
        node.__class__ = _packing_class(type(node))


_packing_classes: dict[type[Node], type[Node]] = {}
"""For each class of nodes the subclass whose saved tensors are packed."""


def saved_names(op: Op) -> list[str]:
    """The tensors that an op's nodes save, in the order in which its rules name them: inputs
    first, then results.
    """
    rules = [*op.rules.values(), *([op.joint] if op.joint else [])]
    needed = dict.fromkeys(name for rule in rules for name in parameters_of(rule))
    return [name for name in needed if name in op.tensors] + [
        name for name in needed if name in op.outputs
    ]


def _packing_class(kind: type[Node]) -> type[Node]:
    """The subclass for nodes whose saved tensors are packed: it unpacks them while a method
    runs.
    """
    if (packing := _packing_classes.get(kind)) is not None:
        return packing

    def run(node: Any, grads: Any, keep: bool) -> tuple[Any, ...]:
        return _unpacked(node, lambda: kind.run(node, grads, keep))

    def run_recorded(node: Any, grads: Any, keep: bool) -> tuple[Any, ...]:
        return _unpacked(node, lambda: kind.run_recorded(node, grads, keep))

    def language_getattr(node: Any, name: str) -> Any:
        if name.startswith("_raw_saved_"):
            return saved_attribute(node, name)
        return _unpacked(node, lambda: saved_attribute(node, name))

    def save_result_storage(node: Any, output_nr: int, storage: Any, array: Any) -> None:
        """Nothing: a packed value does not follow writes to the tensor."""

    packing = type(
        kind.__name__,
        (kind,),
        {
            "__slots__": (),
            "run": run,
            "run_recorded": run_recorded,
            "language_getattr": language_getattr,
            "save_result_storage": save_result_storage,
        },
    )
    packing.__slots__ = kind.__slots__
    _packing_classes[kind] = packing
    return packing


def _unpacked(node: Any, work: Callable[[], Any]) -> Any:
    """Call `work` while a node's saved tensors are unpacked; those that it does not free are packed
    again.
    """
    packed: dict[str, Packed] = {}
    for name in saved_names(node.op):
        slot = f"saved_{name}"
        value = getattr(node, slot, None)
        if isinstance(value, Packed):
            packed[slot] = value
    for slot, value in packed.items():
        name = slot.removeprefix("saved_")
        if name in node.op.outputs:
            setattr(node, slot, value.tensor(None, 0).array)
        else:
            edge = node.op.inputs.index(name) if name in node.op.inputs else None
            source = (None, 0) if edge is None else node.next_functions[edge]
            tensor = value.tensor(*source)
            setattr(node, slot, tensor)
            version = 0 if tensor.storage is None else tensor.storage.version
            setattr(node, f"version_{name}", version)
    try:
        return work()
    finally:
        for slot, value in packed.items():
            if getattr(node, slot) is not FREED:
                setattr(node, slot, value)


def raw_saved(node: Any, name: str) -> SavedTensor:
    """`grad_fn._raw_saved_NAME`; raises AttributeError where the node saves no such tensor."""
    what = name.removeprefix("_raw_saved_")
    if f"saved_{what}" not in type(node).__slots__:
        raise AttributeError(name)

    def kept() -> Any:
        value = getattr(node, f"saved_{what}", None)
        tensor = value is FREED or isinstance(value, (Tensor, Packed)) or what in node.op.outputs
        return value if tensor else None

    return SavedTensor(
        kept,
        lambda value: isinstance(value, Packed),
        lambda pack, unpack: pack_slot(node, what, pack, unpack),
    )


# --- the class of an op's nodes -------------------------------------------------------------------


_FIXED: dict[str, Any] = {
    "ARRAYS": ARRAYS,
    "FREED": FREED,
    "NATIVE_SCALARS": promotion.NATIVE_SCALARS,
    "Tensor": Tensor,
    "active": active,
    "brought_home": runtime.brought_home,
    "check_attached": check_attached,
    "check_result": check_result,
    "check_saved": check_saved,
    "as_lazy": as_lazy,
    "freed": freed,
    "promoted": promotion.promoted,
    "run_on_tensors": runtime.run_on_tensors,
    "saved_array": saved_array,
    "saved_result": saved_result,
    "saved_tensor": saved_tensor,
}


def node_class(op: Op) -> type[Node]:
    """The class of an op's nodes: its slots hold what the rules need, its `run` calls the rules."""
    signature = signature_of(op)
    body: dict[str, Any] = {
        "__slots__": tuple(signature.slots()),
        "node_name": op.node_name,
        "multiple": not signature.single,
        "outputs": None if len(op.differentiable) == len(op.outputs) else op.differentiable,
        "op": op,
        "reads_lazy": op.reads_lazy,
        "fresh": True,
        "leaves_complex": op.node_name in LEAVING_COMPLEX,
        "refuses": op.node_name == "NotImplemented",
        "language_getattr": saved_attribute,
        "language_names": saved_attribute_names,
    }
    if storing := _RunWriter(signature).result_storage():
        namespace = dict(_FIXED)
        exec(code_of("\n".join(storing), f"<results of {op.name}>"), namespace)
        body["save_result_storage"] = namespace["save_result_storage"]
    kind: type[Node] = type(op.node_name, (Node,), body)
    for recorded in (False, True):
        _write_when_called(kind, signature, recorded)
    return kind


def _write_when_called(kind: type[Node], signature: Signature, recorded: bool) -> None:
    """Give a class its `run`, or its `run_recorded`, which is written at the first call: the text
    takes a while to compile, and a program needs one of the two at most of its ops.
    """
    op = signature.op
    name = "run_recorded" if recorded else "run"

    def write(node: Any, grads: Any, keep: bool) -> Any:
        rules: dict[str, Any] = {f"rule_{each}": rule for each, rule in op.rules.items()}
        if op.joint is not None:
            rules["joint"] = op.joint
        if not recorded:
            rules = {each: on_arrays(rule) for each, rule in rules.items()}
        namespace = dict(_FIXED, op=op, **rules)
        file = f"<{'recorded ' if recorded else ''}backward of {op.name}>"
        exec(code_of("\n".join(_RunWriter(signature).run(recorded)), file), namespace)
        setattr(kind, name, namespace[name])
        return namespace[name](node, grads, keep)

    setattr(kind, name, write)


_on_arrays: dict[Function, Function] = {}
"""For each function its specialisation for arrays."""


def on_arrays(function: Function) -> Function:
    """A rule specialised for arrays: the entries that it names are replaced by their forward
    functions, and so are those named by the functions of gradcli that it calls. Looking for a
    tensor among the operands of each would cost more than many of the entries do. `sqrt(x)` and
    `sqrt.apply(x)` are the same in a rule, as they are on tensors.
    """
    if type(function) is Ref:
        function = function.resolved()
    if type(function) is Op:  # arrays of half precision are never passed here
        forward = on_arrays(getattr(function.forward, "__wrapped__", function.forward))
        vars(forward)["apply"] = vars(forward)["written"] = (
            forward  # its form in place has the same
        )
        return forward
    if not isinstance(function, FunctionType):
        return function
    known = function.__globals__
    if not known.get("__name__", "").startswith(_OURS) or hasattr(function, "takes_tensors"):
        return function
    specialised = _on_arrays.get(function)
    if specialised is None:
        names = {name: known[name] for name in ("__builtins__", "__name__")}
        specialised = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        specialised.__kwdefaults__ = function.__kwdefaults__
        _on_arrays[function] = specialised  # before its names are resolved: it may be recursive
        for name in names_in(function.__code__):
            if name in known:
                names[name] = on_arrays(known[name])
    return specialised


_OURS = "gradcli.ops."


def names_in(code: CodeType) -> Iterator[str]:
    """The global names that a function looks up, with those of the functions nested in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


class _RunWriter:
    """Writes the source of a node's `run`, for arrays and for tensors."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.op = signature.op
        self.single = signature.single

    def run(self, recorded: bool) -> list[str]:
        op = self.op
        grad = "grad" if self.single else "grads"
        lines = [f"def {'run_recorded' if recorded else 'run'}(node, {grad}, keep):"]
        if not recorded:
            lines += self._arriving(grad)
        lines.append("    nodes = node.next_nodes")
        for t in self.signature.saved_tensors:
            lines += when(
                self.signature.condition(t, "nodes[{}]"), self._unpack(t, recorded), "    "
            )
        for r in self.signature.saved_results:
            number = op.outputs.index(r)
            check = [
                f"{r} = node.saved_{r}",
                f"if {r} is FREED:",
                "    raise freed(node)",
                f"if node.storage_{r} is not None:",
                f"    check_result(node, {r!r}, node.storage_{r}, node.version_{r})",
            ]
            if recorded:
                carries = number in op.differentiable or op.outputs == ("*",)
                value = f"saved_result(node, {r}, {number})" if carries else f"Tensor({r})"
                check.append(f"{r} = {value}")
            lines += ["    " + line for line in check]
        for a in self.signature.arguments:
            lines.append(f"    {local(a)} = node.argument_{a}")
            if a in op.keeps:
                lines += [
                    f"    if {local(a)} is FREED:",
                    "        raise freed(node)",
                    f"    {local(a)}.check(node)",
                ]
        for name in self.signature.sizes:
            lines.append(f"    {name}_sizes = node.{name}_sizes")
        lines += [f"    {t}_strides = node.{t}_strides" for t in self.signature.strides]
        if "needs" in self.signature.served:
            lines.append("    needs = [n is not None for n in nodes]")
        values = self._gradients(lines)
        release = [
            f"node.saved_{n} = FREED"
            for n in (*self.signature.saved_tensors, *self.signature.saved_results)
        ]
        release += [f"node.argument_{a} = FREED" for a in self.signature.arguments if a in op.keeps]
        if release:
            lines.append("    if not keep:")
            lines += ["        " + line for line in release]
        if len(self.signature.promoted) > 1 and recorded:
            lines += [
                "    if type(node.mixed) is tuple:",
                f"        return brought_home(node, {values})",
            ]
        lines.append(f"    return {values}")
        return lines

    def _arriving(self, grad: str) -> list[str]:
        """Lines that make a large gradient a lazy array, and that run the rules on tensors where
        arrays would give other values: for operands of several dtypes, and for half precision,
        where PyTorch rounds after each op of a rule.
        """
        on_tensors = f"return run_on_tensors(node, {grad}, keep)"
        if self.single:
            lines = [
                "    if type(grad) not in NATIVE_SCALARS:",
                "        if grad.dtype.itemsize == 2:",
                f"            {on_tensors}",
            ]
            if self.op.reads_lazy:
                lines += [
                    "        if type(grad) in ARRAYS and grad.size >= active.state.lazy_from:",
                    "            grad = as_lazy(grad)",
                ]
        else:
            lines = ["    if node.metadata[0][1].itemsize == 2:", f"        {on_tensors}"]
        if len(self.signature.promoted) > 1:
            lines += ["    if node.mixed:", f"        {on_tensors}"]
        return lines

    def _gradients(self, lines: list[str]) -> str:
        """Add the lines that call the rules; the expression for the tuple of gradients."""
        op = self.op
        if op.joint is not None:
            operands = ", ".join(local(p) for p in parameters_of(op.joint))
            lines.append(f"    gradients = joint({operands})")
            return "tuple(gradients)"
        if op.lists:
            (name,) = op.lists
            operands = ", ".join(local(p) for p in parameters_of(op.rules[name]))
            lines.append(f"    gradients = rule_{name}({operands})")
            return "tuple(gradients)"
        for i, name in enumerate(op.inputs):
            operands = ", ".join(local(p) for p in parameters_of(op.rules[name]))
            call = f"rule_{name}({operands})"
            if len(op.inputs) > 1:
                call += f" if nodes[{i}] is not None else None"
            lines.append(f"    g_{name} = {call}")
        return tuple_of([f"g_{name}" for name in op.inputs])

    def _unpack(self, t: str, recorded: bool) -> list[str]:
        """Lines that read one saved input, checked."""
        name = local(t)
        lines = [
            f"{name} = node.saved_{t}",
            f"if type({name}) is Tensor:",
            f"    if {name}.storage is not None:",
            f"        if {name}.storage.version != node.version_{t}:",
            f"            check_saved(node, {t!r}, {name}, node.version_{t})",
        ]
        edge = self.op.inputs.index(t) if t in self.op.inputs else None
        if edge is not None:
            lines += [
                f"        if {name}.grad_fn is None:",
                f"            check_attached(node, {t!r}, {name}, {edge})",
            ]
        if recorded:
            lines.append(f"    {name} = saved_tensor(node, {name}, {edge})")
        else:
            lines.append(f"    {name} = {name}.array")
        lines += [f"elif {name} is FREED:", "    raise freed(node)"]
        if recorded:
            lines += [f"elif {name} is not None:", f"    {name} = saved_array(node, {name})"]
        return lines

    def result_storage(self) -> list[str]:
        """The method that reports to a saved result a storage that its tensor got later."""
        if not self.signature.saved_results:
            return []
        lines = ["def save_result_storage(node, output_nr, storage, array):"]
        for r in self.signature.saved_results:
            lines += [
                f"    if output_nr == {self.op.outputs.index(r)} and node.saved_{r} is not FREED:",
                f"        node.saved_{r} = array",
                f"        node.storage_{r} = storage",
                f"        node.version_{r} = storage.version",
            ]
        return lines
