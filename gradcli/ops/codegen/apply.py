"""Generates the source of each op's `apply`, which computes the result and records the node.

Each op's `apply` and its node's `run` are generated once, at the op's first call, from the
signature and the derivative rules of its entry. The code is straight-line: it has no loop over
inputs and no dictionary. It is generated from the catalogue only, never from a program's input. For
`mul` it reads, shortened:

    def apply(input, other):
        if type(input) is Tensor and type(other) is Tensor:
            a_self = input.array
            a_other = other.array
            mixed = a_self.dtype is not a_other.dtype
        else:
            mixed = None
        if mixed is not False:
            (a_self, a_other), mixed = promoted(op, (input, other))
        result = forward(a_self, a_other)
        ...
        node = new(MulBackward0)
        node.saved_other = other

    def run(node, grad, keep):
        nodes = node.next_nodes
        if nodes[0] is not None:
            other = node.saved_other
        g_self = rule_self(grad, other) if nodes[0] is not None else None
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.files.cache import code_of
from gradcli.arrays.fusion.lazy import LAZY, as_lazy, forced
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.arrays.layout.strides import laid_out_like, laid_out_like_operands
from gradcli.arrays.storage import InferenceStorage, Storage
from gradcli.autograd.node import SCALAR_METADATA
from gradcli.autograd.tensor import (
    Tensor,
    TensorMeta,
    accumulator,
    gradient_edge,
    note_creation,
    refresh,
    storage_of,
)
from gradcli.errors import GradcliError
from gradcli.ops.codegen import promotion, runtime
from gradcli.ops.codegen.node_class import node_class
from gradcli.ops.codegen.signature import Signature, local, signature_of, tuple_of, when
from gradcli.ops.definition.dtype_support import WITHOUT_COMPLEX_GRADIENT, no_complex_gradient
from gradcli.ops.definition.lints import metadata_of_pair
from gradcli.ops.definition.op import Op, check_ranks
from gradcli.state import active

_FIXED: dict[str, Any] = {
    "ARRAYS": ARRAYS,
    "laid_out_like": laid_out_like,
    "laid_out_like_operands": laid_out_like_operands,
    "SCALAR_METADATA": SCALAR_METADATA,
    "InferenceStorage": InferenceStorage,
    "Storage": Storage,
    "LAZY": LAZY,
    "EVERYDAY": promotion.EVERYDAY,
    "GradcliError": GradcliError,
    "NUMBERS": promotion.NUMBERS,
    "Tensor": Tensor,
    "TensorMeta": TensorMeta,
    "accumulator": accumulator,
    "active": active,
    "base_of": runtime.base_of,
    "check_devices": runtime.check_devices,
    "check_operand": runtime.check_operand,
    "check_ranks": check_ranks,
    "creation_of": runtime.creation_of,
    "as_lazy": as_lazy,
    "devices_differ": runtime.devices_differ,
    "floating": promotion.floating,
    "forced": forced,
    "gradient_edge": gradient_edge,
    "metadata_of_pair": metadata_of_pair,
    "note_creation": note_creation,
    "misfit": runtime.misfit,
    "ndarray": np.ndarray,
    "new": object.__new__,
    "no_complex_gradient": no_complex_gradient,
    "factor_first": runtime.factor_first,
    "number_of": runtime.number_of,
    "number_and_array": promotion.number_and_array,
    "of_halves": promotion.of_halves,
    "promoted": promotion.promoted,
    "refresh": refresh,
    "storage_of": storage_of,
    "wrong_operand": runtime.wrong_operand,
}


def generate(op: Op) -> None:
    """Generate the op's `apply` and node class, and store `apply` in each table that binds the
    op.
    """
    namespace = dict(_FIXED, op=op, forward=op.forward, ufunc=op.ufunc)
    lines = _ApplyWriter(signature_of(op)).apply()
    if op.inputs:
        op.node_class = node_class(op)
        namespace["node_class"] = op.node_class
    exec(code_of("\n".join(lines), f"<apply of {op.name}>"), namespace)
    apply = namespace["apply"]
    apply.__name__ = apply.__qualname__ = op.name
    apply.__defaults__ = op.forward.__defaults__
    op.apply = apply
    for table, name in op.bindings:
        table[name] = apply


Op.compile = generate


class _ApplyWriter:
    """Writes the source of one op's `apply`."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.op = signature.op
        self.single = signature.single
        self.promoted = signature.promoted

    def apply(self) -> list[str]:
        op = self.op
        parameters = ", ".join(local(p) for p in op.parameters)
        lines = [f"def apply({parameters}):"]
        if op.autocast:
            lines.append("    if active.state.autocast is not None:")
            lines.append(f"        return active.state.autocast.short(op.apply, {parameters})")
        lines += self._numbers()
        operand = {p: f"a_{p}" for p in (*op.tensors, *op.lists)}
        values = ", ".join(operand.get(p, local(p)) for p in op.parameters)
        everything = tuple_of([local(p) for p in (*op.tensors, *op.lists)])
        results = "result" if self.single else "results"
        arguments = tuple_of([local(p) for p in op.parameters])
        computed = [
            *self._arrays(),
            "    try:",
            f"        {results} = {self._computed(values)}",
            "    except (ValueError, TypeError, GradcliError) as failure:",
            f"        raise misfit(op, {everything}, failure)",
        ]
        lines += [
            "    state = active.state",
            f"    batched = None if state.batch is None else state.batch.compute(op, {arguments})",
            "    if batched is None:",
            *["    " + line for line in computed],
            "    else:",
            f"        {results}, {arguments} = batched",
            *["    " + line for line in self._batched_arrays()],
        ]
        if self.single:
            lines += self.signature.laid_out()
            lines += self._checked_size()
            lines += self._output()
        else:
            lines.append("    outs = []")
            lines.append("    for number, result in enumerate(results):")
            lines += ["    " + line for line in self.signature.laid_out() + self._checked_size()]
            lines += ["    " + line for line in self._output()]
            lines += ["        out.output_nr = number", "        outs.append(out)"]
            lines.append("    out = tuple(outs)")
        if op.inputs:
            lines += self._record()
        lines += ["    if state.notes_creation:", f"        {self._marked()}"]
        operands = "{" + ", ".join(f"{p!r}: {local(p)}" for p in op.parameters) + "}"
        lines += [
            "    if state.recorder is not None and batched is None:",
            f"        state.recorder.operation(op, {operands}, out)",
            "    return out",
        ]
        return lines

    def _computed(self, values: str) -> str:
        """The call of the forward function."""
        if self.op.ufunc is not None:
            return f"forward({values}) if mixed is False else of_halves(ufunc, forward, {values})"
        return f"forward({values})"

    def _arrays(self) -> list[str]:
        """Lines that check the operands and read their arrays, promoted where the op promotes."""
        op = self.op
        lines: list[str] = []
        for t in op.tensors:
            if t not in self.promoted:
                name = local(t)
                lines += [f"    if type({name}) is Tensor:", f"        a_{t} = {name}.array"]
                lines += [f"        {line}" for line in self._plan(t)]
                if self.signature.optional(t):
                    lines += [f"    elif {name} is None:", f"        a_{t} = None"]
                lines += ["    else:", f"        raise wrong_operand(op, {t!r}, {name})"]
        for name in op.lists:
            lines.append(f"    a_{name} = [forced(tensor.array) for tensor in {name}]")
            lines.append(f"    check_devices(op, a_{name})")
        if op.view:
            lines.append("    storage = storage_of(input)")
            lines.append("    a_self = input.array")
        count = len(self.promoted)
        if count == 1:
            (t,) = self.promoted
            name = local(t)
            lines += [
                f"    if type({name}) is not Tensor:",
                f"        raise wrong_operand(op, {t!r}, {name})",
                f"    a_{t} = {name}.array",
                *[f"    {line}" for line in self._plan(t)],
            ]
            if op.ufunc is not None:
                many = (
                    f"type(a_{t}) is ndarray and a_{t}.size >= {max(promotion.many_for(op.ufunc))}"
                )
                lines.append(f"    mixed = None if {many} and a_{t}.itemsize == 2 else False")
        elif count:
            lines += self._promotion()
        if len(op.tensors) > max(count, 1):
            alike = " is ".join(f"type(a_{t})" for t in op.tensors)
            arrays = tuple_of([f"a_{t}" for t in op.tensors])
            lines += [f"    if not ({alike}):", f"        check_devices(op, {arrays})"]
        lines += self.signature.dtype_checks()
        if op.takes:
            fit = " and ".join(
                f"a_{t}.ndim == {spec.least}"
                if spec.least == spec.most
                else f"{spec.least} <= a_{t}.ndim <= {spec.most}"
                for t, spec in op.takes.items()
            )
            arrays = ", ".join(f"a_{t}" for t in op.takes)
            lines += [f"    if not ({fit}):", f"        check_ranks(op.name, op.takes, {arrays})"]
        if op.floating:
            for t in self.promoted:
                lines += [
                    f"    if a_{t}.dtype.kind != 'f':"
                    if count == 1
                    else f"    if type(a_{t}) is not float:",
                    f"        a_{t} = floating(a_{t})",
                ]
        return lines

    def _batched_arrays(self) -> list[str]:
        """Lines that read the arrays of the operands where the running `vmap` computed the op."""
        op = self.op
        lines = [f"    a_{t} = getattr({local(t)}, 'array', {local(t)})" for t in op.tensors]
        lines += [f"    a_{name} = [tensor.array for tensor in {name}]" for name in op.lists]
        if op.view:
            lines.append("    storage = storage_of(input)")
        return [*lines, "    mixed = False"]

    def _promotion(self) -> list[str]:
        """Lines that read the arrays of operands that are promoted to one dtype."""
        names = [local(t) for t in self.promoted]
        first = self.promoted[0]
        same = " or ".join(f"dtype is not a_{t}.dtype" for t in self.promoted[1:])
        alike = " is ".join(f"type(a_{t})" for t in self.promoted)
        everything = ", ".join(f"a_{t}" for t in self.promoted)
        large = " or ".join(f"a_{t}.size >= least" for t in self.promoted)
        lines = ["    if " + " and ".join(f"type({n}) is Tensor" for n in names) + ":"]
        lines += [f"        a_{t} = {local(t)}.array" for t in self.promoted]
        lines += [
            f"        if {alike} not in ARRAYS:",  # NumPy scalars of one type
            "            mixed = False",
            "        else:",
            f"            dtype = a_{first}.dtype",
            f"            mixed = {same} or not ({alike}) and devices_differ({everything})",
            *self._halves(),
            "            least = state.lazy_from",
            f"            if not mixed and ({large}):",
            f"                a_{first} = as_lazy(a_{first})",
        ]
        arrays = tuple_of([f"a_{t}" for t in self.promoted])
        if len(self.promoted) == 2:
            a, b = self.promoted
            lines += [
                f"    elif type({names[0]}) is Tensor:",
                f"        a_{a} = {names[0]}.array",
                f"        mixed, a_{a}, a_{b} = number_and_array(a_{a}, {names[1]})",
                f"    elif type({names[1]}) is Tensor:",
                f"        a_{b} = {names[1]}.array",
                f"        mixed, a_{b}, a_{a} = number_and_array(a_{b}, {names[0]})",
            ]
        lines += [
            "    else:",
            "        mixed = True",
            "    if mixed:",
            f"        {arrays}, mixed = promoted(op, {tuple(self.promoted)!r}, {tuple_of(names)})",
        ]
        return lines

    def _halves(self) -> list[str]:
        """Lines that tell many elements of half precision from all else."""
        if self.op.ufunc is None:
            return []
        float16, bfloat16 = promotion.many_for(self.op.ufunc)
        some, many = [
            " or ".join(f"a_{t}.size >= {count}" for t in self.promoted)
            for count in (float16, bfloat16)
        ]
        return [
            f"            if dtype.itemsize == 2 and ({some}) and not mixed:",
            f"                mixed = None if dtype.kind == 'f' or {many} else False",
        ]

    def _numbers(self) -> list[str]:
        """Lines that read the number of a 0-dim tensor that is passed for a numeric argument."""
        op = self.op
        numbers = [local(p) for p in op.parameters if p not in op.tensors] if op.pointwise else []
        return [
            line
            for name in numbers
            for line in (
                f"    if type({name}) is Tensor:",
                *(self._factor_first() if name == "alpha" and len(self.promoted) == 2 else ()),
                f"        {name} = number_of(op, {name})",
            )
        ]

    def _factor_first(self) -> list[str]:
        """Lines for the deprecated overload in which the factor precedes what it multiplies:
        `add(input, alpha, other)`. A 0-dim tensor without a graph is the same as a factor.
        """
        first, second = [local(t) for t in self.promoted]
        return [
            f"        if type({second}) is not Tensor"
            " and (alpha.array.ndim or alpha.requires_grad):",
            f"            factor_first(op.name, 'alpha', {second})",
            f"            return op.apply({first}, alpha, {second})",
        ]

    def _checked_size(self) -> list[str]:
        """Lines that raise for a result with more elements than the limit allows."""
        if self.op.pointwise and len(self.promoted) == 1:
            return []  # as large as its operand
        test = "result.size > state.limits.elements"
        if self.single:
            test = f"type(result) not in SCALAR_METADATA and {test}"
        return [
            f"    if {test}:",
            "        raise state.limits.too_many_elements(result.size, raises='RuntimeError')",
        ]

    def _plan(self, tensor: str) -> list[str]:
        """Lines that make a large operand a lazy array, or compute the values of a lazy operand
        for an op that does not read lazy arrays.
        """
        array = f"a_{tensor}"
        if self.op.reads_lazy:
            return [
                f"if type({array}) in ARRAYS and {array}.size >= state.lazy_from:",
                f"    {array} = as_lazy({array})",
            ]
        return [
            f"if type({array}) in LAZY:",
            f"    {array} = {local(tensor)}.array = {array}.force()",
        ]

    def _output(self) -> list[str]:
        lines = [
            "    out = new(Tensor)",
            "    out.array = result",
            "    out.output_nr = 0",
            "    out.requires_grad = False",
            "    out.grad_fn = None",
        ]
        if self.op.view:
            lines += [
                "    out.storage = storage",
                "    if type(storage) is InferenceStorage:",  # nothing is known of its views
                "        out.meta = None",
                "    else:",
                "        out.meta = meta = TensorMeta()",
                "        meta.base = base_of(input)",
                "        meta.attr_version = storage.version if type(storage) is Storage else 0",
                "        meta.loose = not state.grad_enabled",
                "        meta.creation = "
                + ("creation_of(input)" if self.single else "'multi_output'")
                + " if state.grad_enabled else 'inference' if state.inference else 'no_grad'",
                "        out.requires_grad = input.requires_grad",
            ]
        else:
            lines += ["    out.storage = None", "    out.meta = None"]
        return lines

    def _record(self) -> list[str]:
        """Lines that make the node, if gradients are enabled and an input requires one."""
        op = self.op
        body, inner, test = self._edges()
        body.append(f"if {test}:")
        if op.name in WITHOUT_COMPLEX_GRADIENT:
            body.append("    if result.dtype.kind == 'c':")
            body.append("        raise no_complex_gradient(op.name)")
        if op.node_name == "NotImplemented":  # it has no edges for constants
            inner += [
                "edges = [edge for edge in zip(nodes, nrs) if edge[0] is not None]",
                "nodes = tuple([edge[0] for edge in edges])",
                "nrs = tuple([edge[1] for edge in edges])",
            ]
        inner += self._node()
        inner += self._save()
        if op.lint is not None:
            inner.append("op.lint(node)")
        body += ["    " + line for line in inner]
        tracked = " and type(storage) is not InferenceStorage" if op.view else ""
        return [f"    if state.grad_enabled{tracked}:", *["        " + line for line in body]]

    def _edges(self) -> tuple[list[str], list[str], str]:
        """Three parts: lines that find the nodes of the inputs, lines that combine them into the
        new node's edges, and the condition under which a node is made.
        """
        op = self.op
        if op.lists:
            (name,) = op.lists
            lines = [
                f"edges = [gradient_edge(tensor) for tensor in {name}]",
                "nodes = tuple([edge[0] for edge in edges])",
                f"wanted = any([tensor.requires_grad for tensor in {name}])",
                "nrs = tuple([edge[1] for edge in edges])",
            ]
            return lines, [], "wanted"
        lines = ["loose = False"]
        for i, t in enumerate(op.inputs):
            lines += self._edge(i, local(t))
        nodes, nrs = [[f"{c}{i}" for i in range(len(op.inputs))] for c in "nr"]
        # Most are first outputs: a constant costs a long chain no memory.
        first = tuple_of(["0"] * len(nrs))
        together = [
            "nodes = " + tuple_of(nodes),
            f"nrs = {tuple_of(nrs)} if {' or '.join(nrs)} else {first}",
        ]
        return lines, together, " or ".join([*(f"{node} is not None" for node in nodes), "loose"])

    def _node(self) -> list[str]:
        """Lines that make the node and set it as the outputs' `grad_fn`."""
        op = self.op
        lines = [
            "node = new(node_class)",
            "node.next_nodes = nodes",
            "node.input_nrs = nrs",
            "state.sequence_nr = node.sequence_nr = state.sequence_nr + 1",
            "node.place = state.place",
            "node.assigned = None",
            "node.extra = None",
        ]
        if self.single:
            return [
                *lines,
                f"node.metadata = SCALAR_METADATA.get(type(result)) or {self._metadata()}",
                "out.grad_fn = node",
                "out.requires_grad = True",
            ]
        every = op.outputs == ("*",)
        outs = "outs" if every else tuple_of([f"outs[{n}]" for n in op.differentiable])
        return [
            *lines,
            "node.metadata = tuple([(r.shape, r.dtype) for r in results])",
            f"for piece in {outs}:",
            "    piece.grad_fn = node",
            "    piece.requires_grad = True",
        ]

    def _marked(self) -> str:
        """The line that marks the outputs; views are no tensors of inference mode of their own."""
        marked = f"note_creation({{}}, {self.op.view})"
        if self.single:
            return marked.format("out")
        return f"[{marked.format('each')} for each in out]"

    def _metadata(self) -> str:
        """The expression for the metadata of a result that is not a scalar."""
        if self.op.pointwise and len(self.promoted) == 2:
            pair = ", ".join(f"a_{t}" for t in self.promoted)
            return f"metadata_of_pair({self.op.name!r}, result, {pair})"
        return "((result.shape, result.dtype),)"

    def _edge(self, i: int, name: str) -> list[str]:
        """Lines that find the node and output number of one input."""
        tensor = self.op.inputs[i]
        maybe_number = len(self.promoted) > 1 and tensor in self.promoted
        test = f"type({name}) is Tensor and " if maybe_number else ""
        if self.signature.optional(tensor):
            test = f"{name} is not None and "
        return [
            f"if {test}{name}.meta is not None and {name}.meta.base is not None:",
            f"    refresh({name})",
            f"if {test}{name}.requires_grad:",
            f"    n{i} = {name}.grad_fn",
            f"    if n{i} is None:",
            f"        n{i} = accumulator({name})",
            f"        r{i} = 0",
            f"        loose = n{i} is None",
            "    else:",
            f"        r{i} = {name}.output_nr",
            "else:",
            f"    n{i} = None",
            f"    r{i} = 0",
        ]

    def _save(self) -> list[str]:
        lines: list[str] = []
        for t in self.signature.saved_tensors:
            name = local(t)
            condition = self.signature.condition(t, "n{}")
            optional = len(self.promoted) > 1 or self.signature.optional(t)
            test = f"type({name}) is Tensor and " if optional else ""
            save = [
                f"node.saved_{t} = {name}",
                f"node.version_{t} = {name}.storage.version"
                f" if {test}{name}.storage is not None else 0",
            ]
            lines += when(condition, save)
        for number, r in enumerate(self.op.outputs):
            if r in self.signature.served:
                if self.op.outputs != ("*",) and number not in self.op.differentiable:
                    # An output without history: it cannot report its storage to the node later.
                    lines += [
                        f"node.storage_{r} = storage_of(outs[{number}])",
                        f"node.saved_{r} = outs[{number}].array",
                        f"node.version_{r} = 0",
                    ]
                    continue
                array = "result" if self.single else f"results[{number}]"
                # Unlike an input, a result is saved and checked whichever gradients are needed.
                lines += [
                    f"node.saved_{r} = {array}",
                    f"node.storage_{r} = None",
                    f"node.version_{r} = 0",
                ]
        for t in self.signature.sizes:
            if t in self.op.lists:
                lines.append(f"node.{t}_sizes = [array.shape for array in a_{t}]")
            elif t in self.promoted or self.signature.optional(t):
                # Neither a number nor None has a shape.
                lines.append(f"node.{t}_sizes = getattr(a_{t}, 'shape', ())")
            else:
                lines.append(f"node.{t}_sizes = a_{t}.shape")
        lines += [f"node.{t}_strides = a_{t}.strides" for t in self.signature.strides]
        lines += [f"node.argument_{a} = {local(a)}" for a in self.signature.arguments]
        if len(self.promoted) > 1:
            lines.append("node.mixed = mixed")
        return lines
