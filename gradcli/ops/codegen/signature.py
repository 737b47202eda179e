"""An op's signature as code generation needs it: which operands are promoted, what its nodes save,
and for which gradients.
"""

from __future__ import annotations

from functools import cache

from gradcli.ops.definition.op import Op, parameters_of


class Signature:
    """An op's signature, derived from its entry.

    Attributes:
        op: the entry.
        single: whether it has one output.
        served: for each parameter of a rule, the numbers of the inputs whose gradient needs it.
        saved_tensors, saved_results, sizes, strides, arguments: what a node saves for its rules.
        promoted: the operands that are promoted to one dtype.
    """

    def __init__(self, op: Op) -> None:
        self.op = op
        self.single = op.outputs == ("result",)
        self.served = self._served()
        self.saved_tensors = [t for t in op.tensors if t in self.served]
        self.saved_results = [r for r in op.outputs if r in self.served]
        self.sizes = [t for t in (*op.tensors, *op.lists) if f"{t}_sizes" in self.served]
        self.strides = [t for t in op.tensors if f"{t}_strides" in self.served]
        operand_names = {*op.tensors, *op.lists}
        self.arguments = [p for p in op.parameters if p in self.served and p not in operand_names]
        self.promoted = (
            [t for t in op.tensors if t in op.inputs or not op.inputs] if op.pointwise else []
        )

    def _served(self) -> dict[str, list[int]]:
        served: dict[str, list[int]] = {}
        if self.op.joint is not None:
            for parameter in parameters_of(self.op.joint):
                served[parameter] = list(range(len(self.op.inputs)))
        for number, rule in enumerate(self.op.rules.values()):
            for parameter in parameters_of(rule):
                served.setdefault(parameter, []).append(number)
        return served

    def slots(self) -> list[str]:
        names = [f"saved_{t}" for t in self.saved_tensors]
        names += [f"version_{t}" for t in self.saved_tensors]
        for r in self.saved_results:
            names += [f"saved_{r}", f"storage_{r}", f"version_{r}"]
        names += [f"{t}_sizes" for t in self.sizes] + [f"{t}_strides" for t in self.strides]
        names += [f"argument_{a}" for a in self.arguments]
        if len(self.promoted) > 1:
            names.append("mixed")
        return names

    def dtype_checks(self) -> list[str]:
        """Lines that raise for operands of dtypes that the op does not support."""
        op = self.op
        lines = []
        for t in (
            [t for t in op.tensors if t in op.inputs or not op.inputs] if op.unsupported else []
        ):
            guard = f"a_{t} is not None and " if self.optional(t) else ""
            if len(self.promoted) > 1:
                guard = f"type(a_{t}) not in NUMBERS and "
            lines += [
                f"    if {guard}a_{t}.dtype not in EVERYDAY:",
                f"        check_operand(op, a_{t}, {tuple_of([local(o) for o in op.tensors])})",
            ]
        return lines

    def laid_out(self) -> list[str]:
        """Lines that lay a result out as PyTorch does where NumPy does otherwise."""
        if not self.op.keeps_layout:
            return [
                "    if type(result) in ARRAYS and not result.flags.c_contiguous:",
                "        result = result.copy()",
            ]
        if not self.op.pointwise or not self.op.tensors:
            return []
        if len(self.op.tensors) == 1:
            # NumPy and PyTorch order the dimensions differently where elements share their memory.
            return [
                "    if type(result) in ARRAYS and not result.flags.c_contiguous:",
                f"        result = laid_out_like(a_{self.op.tensors[0]}, result)",
            ]
        # Where the operands' strides differ NumPy takes row order, PyTorch the first operand's
        # order. Both agree where all operands of two or more dimensions have the strides of
        # NumPy's result, and where all are contiguous without a dimension of one element.
        operands = [f"a_{t}" for t in self.op.tensors]
        alike = " and ".join(
            f"(type({o}) not in ARRAYS or {o}.strides == lie or {o}.ndim < 2)" for o in operands
        )
        plain = " and ".join(
            f"(type({o}) not in ARRAYS or {o}.flags.c_contiguous)" for o in operands
        )
        return [
            "    if type(result) in ARRAYS:",
            "        lie = result.strides",
            f"        if len(lie) > 1 and not ({alike}) and not (",
            f"            {plain} and result.flags.c_contiguous and 1 not in result.shape",
            "        ):",
            f"            result = laid_out_like_operands(result, {', '.join(operands)})",
        ]

    def optional(self, tensor: str) -> bool:
        """Whether a tensor operand may be None."""
        defaults = self.op.forward.__defaults__ or ()
        position = self.op.parameters.index(tensor) - (len(self.op.parameters) - len(defaults))
        return position >= 0 and defaults[position] is None

    def condition(self, name: str, node: str) -> str:
        """The condition under which `name` is needed, "" for always."""
        served = self.served[name]
        if self.op.lists or len(set(served)) == len(self.op.inputs):
            return ""
        return " or ".join(f"{node.format(i)} is not None" for i in dict.fromkeys(served))


signature_of = cache(Signature)
"""The signature of an op, computed once."""


def local(parameter: str) -> str:
    """A parameter's name in the generated source: PyTorch's functions call `self` input."""
    return "input" if parameter == "self" else parameter


def tuple_of(names: list[str]) -> str:
    return "(" + ", ".join(names) + ("," if len(names) == 1 else "") + ")"


def when(condition: str, lines: list[str], indent: str = "") -> list[str]:
    """Lines that run under a condition, "" for always."""
    if not condition:
        return [indent + line for line in lines]
    return [f"{indent}if {condition}:", *[f"{indent}    {line}" for line in lines]]
