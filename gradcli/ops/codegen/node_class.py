"""Generates the class of an op's nodes from its derivative rules; `gradcli.ops.codegen.apply` does
the forward part."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from gradcli.arrays.fusion.lazy import as_lazy
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.autograd.node import FREED, Node, freed
from gradcli.autograd.tensor import Tensor
from gradcli.ops.codegen import promotion, runtime, saved
from gradcli.ops.codegen.signature import Signature, local, signature_of, tuple_of, when
from gradcli.ops.definition.dtype_support import LEAVING_COMPLEX
from gradcli.ops.definition.op import Function, Op, parameters_of
from gradcli.ops.definition.refs import Ref
from gradcli.state import active

_FIXED: dict[str, Any] = {
    "ARRAYS": ARRAYS,
    "FREED": FREED,
    "NATIVE_SCALARS": promotion.NATIVE_SCALARS,
    "Tensor": Tensor,
    "active": active,
    "brought_home": runtime.brought_home,
    "check_attached": saved.check_attached,
    "check_result": saved.check_result,
    "check_saved": saved.check_saved,
    "as_lazy": as_lazy,
    "freed": freed,
    "promoted": promotion.promoted,
    "run_on_tensors": runtime.run_on_tensors,
    "saved_array": saved.saved_array,
    "saved_result": saved.saved_result,
    "saved_tensor": saved.saved_tensor,
}


def node_class(op: Op) -> type[Node]:
    """The class of an op's nodes: its slots hold what the rules need, its `run` calls the rules."""
    signature = signature_of(op)
    writer = _RunWriter(signature)
    namespace = dict(_FIXED, op=op)
    rules = {f"rule_{name}": rule for name, rule in op.rules.items()}
    if op.joint is not None:
        rules["joint"] = op.joint
    namespace.update(rules)
    lines = [*writer.run(recorded=True), *writer.result_storage()]
    exec(compile("\n".join(lines), f"<recorded backward of {op.name}>", "exec"), namespace)
    with_arrays = namespace | {name: on_arrays(rule) for name, rule in rules.items()}
    lines = writer.run(recorded=False)
    exec(compile("\n".join(lines), f"<backward of {op.name}>", "exec"), with_arrays)
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
        "run": with_arrays["run"],
        "run_recorded": namespace["run_recorded"],
        "language_getattr": saved.saved_attribute,
    }
    if "save_result_storage" in namespace:
        body["save_result_storage"] = namespace["save_result_storage"]
    return type(op.node_name, (Node,), body)


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
