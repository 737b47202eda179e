"""`Op`, an entry of the op catalogue, and `op`, which registers one.

An entry holds an op's name, its node's name, its forward function and one derivative rule per
differentiable input. The parameters of a rule say what it needs, and so what is saved:

    grad         the gradient of the output; `grads`, a list, where there are several outputs (None
                 where undefined)
    result       the output; an output by its own name where there are several
    NAME         a tensor input of that name, or an argument
    NAME_sizes   the shape of a tensor input; saves no value
    NAME_strides the strides of a tensor input, in bytes; saves no value
    needs        which inputs require a gradient, for a joint rule

A rule is called with arrays to compute and with tensors to record, so it is written with operators
and with entries of the catalogue. It may be an entry itself, whose first operand is `grad`. It may
return None: no gradient. The engine sums a gradient to its input's shape and casts it to its
input's dtype, so rules do neither.

How an op computes float16 and bfloat16 it names as `half`: PyTorch's kernels compute several steps
in float32 and round once, or round what they store between them. An op of one step names no way:
NumPy rounds it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.dtypes import narrowed, widened
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, not_installed
from gradcli.errors import GradcliError, index_error, shape_error
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, NO_DOC, NO_HAZARD, VECTOR, Hazard, OpDoc
from gradcli.ops.definition.dtype_support import NOTHING, Unsupported
from gradcli.record import Record
from gradcli.state import active

# --- half precision -------------------------------------------------------------------------------


Way = Callable[[Callable[..., Any], tuple[Any, ...]], Any]
"""From a forward function and its arguments, of which the first is an array of two bytes an
element, to the result."""

_ARRAYS = (np.ndarray, np.generic)


def is_half(value: Any) -> bool:
    """Whether a value is an array of float16 or bfloat16."""
    return isinstance(value, _ARRAYS) and value.dtype.itemsize == 2 and value.dtype.kind not in "iu"


def computed_by(
    way: Way, forward: Callable[..., Any], parameters: tuple[str, ...]
) -> Callable[..., Any]:
    """A forward function that computes arrays of half precision in a way of its own.

    Its parameters are the function's, so it is written from them; wider arrays pay one comparison.
    """
    arguments = ", ".join(parameters)
    text = (
        f"def rounded({arguments}):\n"
        f"    if isinstance({parameters[0]}, ARRAYS) and {parameters[0]}.dtype.itemsize == 2:\n"
        f"        return way(forward, ({arguments},))\n"
        f"    return forward({arguments})\n"
    )
    namespace: dict[str, Any] = {"forward": forward, "way": way, "ARRAYS": _ARRAYS}
    exec(compile(text, f"<half precision of {forward.__name__}>", "exec"), namespace)
    rounded: Any = namespace["rounded"]
    rounded.__wrapped__ = forward
    rounded.__defaults__ = forward.__defaults__
    rounded.__module__ = forward.__module__
    return rounded


def rounded_once(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The result of a forward function for operands of which the first is of half precision."""
    dtype = operands[0].dtype
    if not is_half(operands[0]):
        return forward(*operands)
    result = forward(*[widened(value) if is_half(value) else value for value in operands])
    if isinstance(result, tuple):
        return tuple(_narrow(part, dtype) for part in result)
    return _narrow(result, dtype)


def rounded_once_alike(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`rounded_once` for an op that must see the dtypes itself, to refuse several."""
    kinds = {value.dtype for value in operands if isinstance(value, _ARRAYS)}
    return rounded_once(forward, operands) if len(kinds) == 1 else forward(*operands)


def numbers_rounded(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The result where numbers are rounded to the dtype of the first array, as each step is."""
    dtype = operands[0].dtype
    return forward(*[dtype.type(each) if type(each) is float else each for each in operands])


def bfloat16_rounded_once(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`rounded_once` for an op that rounds float16 at each step."""
    bfloat16 = operands[0].dtype.kind == "V"
    return rounded_once(forward, operands) if bfloat16 else forward(*operands)


def float16_rounded_once(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`rounded_once` for an op that rounds bfloat16 at each step."""
    float16 = operands[0].dtype.kind == "f"
    return rounded_once(forward, operands) if float16 else forward(*operands)


def by_kernel(kernel: Callable[..., Any]) -> Way:
    """Compute half precision by a kernel of its own."""

    def computed(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        dtypes = {value.dtype for value in operands if isinstance(value, _ARRAYS)}
        # The op itself raises for operands of several dtypes.
        return (kernel if len(dtypes) == 1 and is_half(operands[0]) else forward)(*operands)

    return computed


def _narrow(value: Any, dtype: Any) -> Any:
    return narrowed(value, dtype) if getattr(value, "dtype", None) == np.float32 else value


# --- what an operand may be -----------------------------------------------------------------------


ANY = 64
"""The dimensions that a tensor has at most."""


def out_of_range(dim: int, ndim: int) -> str:
    """PyTorch's text for a dimension that a tensor does not have."""
    extent = max(ndim, 1)
    return (
        f"Dimension out of range (expected to be in range of [{-extent}, {extent - 1}], but got"
        f" {dim})"
    )


def unread_dimension(name: str, shape: tuple[int, ...], dim: int) -> GradcliError:
    """The error where PyTorch reads a dimension that a tensor does not have, before it checks how
    many it has.
    """
    text = f"Dimension specified as {dim} but tensor has no dimensions"
    if shape:
        text = out_of_range(dim, len(shape))
    return index_error(f"{name}: too few dimensions in {tuple(shape)}", text=text)


class TensorSpec(Record):
    """Which tensors an operand may be: stated in an entry or with a function, as `takes=`, checked
    before its body, and shown by `gradcli help OP`.

    A text has in braces `{name}`, the function's; `{least}`; `{argument}`, `{ndim}` and `{shape}`
    of the operand; the operands by their names, `{input.ndim}`, and their sizes in lists,
    `{sizes[input]}`.

    Attributes:
        least: its fewest dimensions.
        most: its most dimensions, `ANY` where there is no limit.
        text: PyTorch's text for a tensor of another rank.
        plain: what gradcli says, where that is something else.
        misfit: the error for another rank, where it is more than texts: from the function's name
            and the operand's array and all operands' by their names.
        read: the dimensions that PyTorch reads before it checks their number: fewer are an error of
            an index.
        check: asked of a tensor of such a rank: from the function's name and the tensor. It raises
            where the sizes or the dtype are not what the function takes.
        sizes: what it asks of the sizes, in words.
    """

    least: int
    most: int
    text: str | None = None
    plain: str = ""
    misfit: Callable[[str, Any, dict[str, Any]], GradcliError] | None = None
    read: int = 0
    check: Callable[[str, Any], None] | None = None
    sizes: str = ""

    def fits(self, ndim: int) -> bool:
        """Whether a tensor may have so many dimensions."""
        return self.least <= ndim <= self.most

    def words(self) -> str:
        """Which tensors it takes: "tensor of rank 2 or 3"."""
        ranks = f"{self.least} or more"
        if self.most < ANY:
            ranks = ", ".join(map(str, range(self.least, self.most + 1)))
            ranks = " or ".join(ranks.rsplit(", ", 1))
        return f"tensor of rank {ranks}{self.sizes and f', {self.sizes}'}"

    def error(self, name: str, argument: str, operands: dict[str, Any]) -> GradcliError:
        """The error for a function's operand of another rank, an array like the other operands."""
        array = operands[argument]
        if array.ndim < self.read:
            return unread_dimension(name, array.shape, array.ndim)
        if self.misfit is not None:
            return self.misfit(name, array, operands)
        facts = {
            **operands,
            "name": name,
            "least": self.least,
            "argument": argument,
            "ndim": array.ndim,
            "shape": tuple(array.shape),
            "sizes": {each: list(operand.shape) for each, operand in operands.items()},
        }
        text = self.text and self.text.format(**facts)
        plain = self.plain and self.plain.format(**facts)
        return shape_error(plain or str(text), text=text)


def check_ranks(name: str, takes: Mapping[str, TensorSpec], *arrays: Any) -> None:
    """Raise E301, or E302, where an operand is of another rank than `takes` says, in whose order
    the arrays are.
    """
    operands = dict(zip(takes, arrays, strict=True))
    for argument, spec in takes.items():
        if not spec.fits(operands[argument].ndim):
            raise spec.error(name, argument, operands)


# --- entries --------------------------------------------------------------------------------------


Function = Callable[..., Any]

_ANYTHING: dict[str, TensorSpec] = {}


def parameters_of(function: Function) -> tuple[str, ...]:
    """The names of a function's positional parameters; an entry's as those of a rule."""
    if isinstance(function, Op):
        return ("grad", *function.parameters[1:])
    declared: tuple[str, ...] | None = vars(function).get("parameters")
    if declared is not None:  # a function that passes on what it is given
        return declared
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


class Op:
    """An entry of the catalogue.

    Called with arrays it computes its forward function; called with a tensor among its operands it
    is recorded.

    Attributes:
        name: PyTorch's name of the op.
        node_name: what `grad_fn` prints; "" for an op without derivative.
        forward: from arrays and arguments to the result's array (a tuple of arrays for several
            outputs).
        parameters: the forward function's parameters, in order.
        tensors: the parameters that are tensors.
        lists: the parameters that are lists of tensors (cat); at most one, and it is the only
            tensor parameter.
        rules: the derivative rule of each differentiable input; that of the first operand is the op
            itself where it is said to be `linear`.
        joint: one rule for several inputs, which returns their gradients in the order of `inputs`.
        inputs: the differentiable inputs, in the order of `next_functions`.
        outputs: the names of the outputs, `("result",)` for one, `("*",)` for as many as there are.
        differentiable: the numbers of the outputs that carry a gradient.
        pointwise: operands may be numbers, are promoted to one dtype and broadcast.
        floating: integer operands become the default floating dtype first.
        view: the result aliases the first input.
        keeps_layout: the result has the memory order of the operand; else, unless the op is
            pointwise or a view, row order.
        leading: further dimensions in front of its operands are a batch, although no parameter
            names a dimension: see `gradcli.library.torch.func.batching.rules`.
        keeps: arguments that hold tensors and are freed with the saved values; their `check(node)`
            raises E404 where one was written to.
        exact_numbers: a second operand that is a number keeps its value in float32 beside half
            precision, as does a 0-dim one of a wider dtype.
        ufunc: NumPy's function of the two operands, where half precision goes by
            `gradcli.arrays.native.half`.
        reads_lazy: the forward function and the rules read lazy arrays without forcing their
            values: see `gradcli.arrays.fusion.lazy`.
        unsupported: the dtypes that the differentiable operands may not have, and the classes
            raised: see `gradcli.ops.definition.dtype_support`.
        takes: how many dimensions operands have, checked before the forward function computes
            tensors: see `TensorSpec`.
        unread: operands of which the rules, on arrays, read only shape and dtype, and which are
            saved because PyTorch saves them.
        scratch: the first operand is memory to write into, whose old values nobody reads: formulas
            take zeros for it.
        autocast: inside `torch.autocast` it takes its operands in the short dtype.
        doc: its summary, example and conventions; empty where a function of its name has them.
        numpy: NumPy's equivalent: a name; a method, `.sum(axis, keepdims)`, with the names of
            its further arguments where they are given by name; `zeros(dtype=np.float32)`, with
            what NumPy is passed unless the call gives it; a template of the call, with the
            arguments by number, `{0}`, and `{head}` for the first one in front of a dot; or the
            source of a function, where NumPy has none, which writes into an array `x` only. ""
            for a pointwise op of the same name in NumPy, and for an op without an equivalent.
        loop: how PyTorch's loop reads operands that share memory with what it writes, one of
            `gradcli.ops.definition.doc.LOOPS`.
        hazard: where the result or the slope is not finite, and why.
        decomposition: the same in terms of other entries, for ops that no function of the language
            computes and for gradients: from tensors and arguments to the outputs, None for one
            that is not asked for. Formulas are made from it.
        effects: its side effects, of `gradcli.ops.definition.doc.EFFECTS` without `CHECKS`.
        raises: what decides whether the forward function or a rule raises an error, one of
            `gradcli.ops.definition.doc.RAISES`. Compiled loops drop, delay and move only what no
            value makes raise, so it is `BY_VALUES` unless the entry says better.
        lint: warns of a slip that a node of it shows when it is made; None for most.
        written: the op of its form in place, where PyTorch's has a node of its own.
        apply: records the op on tensors; generated when it is first called.
        compile: generates `apply`; installed by `gradcli.ops.codegen.apply`.
    """

    compile: ClassVar[Callable[[Op], None]] = not_installed

    __slots__ = (
        "apply",
        "autocast",
        "bindings",
        "decomposition",
        "differentiable",
        "doc",
        "effects",
        "exact_numbers",
        "floating",
        "forward",
        "hazard",
        "inputs",
        "joint",
        "keeps",
        "keeps_layout",
        "leading",
        "lint",
        "lists",
        "loop",
        "name",
        "node_class",
        "node_name",
        "numpy",
        "outputs",
        "parameters",
        "pointwise",
        "raises",
        "reads_lazy",
        "rules",
        "scratch",
        "takes",
        "tensors",
        "ufunc",
        "unread",
        "unsupported",
        "view",
        "written",
    )

    written: Op

    def __init__(
        self,
        name: str,
        forward: Function,
        /,
        *,
        node: str = "",
        constant: tuple[str, ...] = (),
        lists: tuple[str, ...] = (),
        joint: Function | None = None,
        linear: bool = False,
        inputs: tuple[str, ...] = (),
        outputs: tuple[str, ...] = ("result",),
        differentiable: tuple[int, ...] | None = None,
        pointwise: bool = False,
        floating: bool = False,
        view: bool = False,
        keeps_layout: bool = False,
        leading: bool = False,
        keeps: tuple[str, ...] = (),
        reads_lazy: bool = False,
        exact_numbers: bool = False,
        ufunc: Any = None,
        unsupported: Unsupported = NOTHING,
        takes: Mapping[str, TensorSpec] = _ANYTHING,
        unread: tuple[str, ...] = (),
        half: Way | None = None,
        scratch: bool = False,
        autocast: bool = False,
        doc: str = "",
        example: str = "",
        conventions: str = "",
        numpy: str = "",
        loop: str = VECTOR,
        hazard: Hazard = NO_HAZARD,
        decomposition: Function | None = None,
        effects: tuple[str, ...] = (),
        raises: str = BY_VALUES,
        lint: Callable[[Node], None] | None = None,
        **rules: Function,
    ) -> None:
        self.name = name
        self.parameters = parameters_of(forward)
        if linear:
            rules = {self.parameters[0]: self, **rules}
        self.node_name = node or (node_name_of(name) if rules or joint else "")
        self.forward = forward if half is None else computed_by(half, forward, self.parameters)
        self.rules = rules
        self.joint = joint
        self.inputs = inputs or tuple(rules)
        if pointwise and not self.inputs:  # the operands are the parameters without a default
            count = int(forward.__code__.co_argcount) - len(forward.__defaults__ or ())
            self.tensors = self.parameters[:count]
        else:
            operands = {*self.inputs, *constant}.difference(lists)
            self.tensors = tuple(p for p in self.parameters if p in operands)
        self.lists = lists
        self.outputs = outputs
        everything = tuple(range(len(outputs)))
        self.differentiable = everything if differentiable is None else differentiable
        self.pointwise = pointwise
        self.floating = floating
        self.view = view
        self.keeps_layout = keeps_layout or pointwise or view
        self.leading = leading
        self.keeps = keeps
        self.reads_lazy = reads_lazy or pointwise
        self.exact_numbers = exact_numbers
        self.ufunc = ufunc
        self.unsupported = unsupported
        self.takes = takes
        self.unread = unread
        self.scratch = scratch
        self.autocast = autocast
        self.doc = OpDoc(doc, example, conventions) if doc or example or conventions else NO_DOC
        self.numpy = numpy
        self.loop = loop
        self.hazard = hazard
        self.decomposition = decomposition
        self.effects = frozenset(effects)
        self.raises = raises
        self.lint = lint
        self.node_class: type[Node] | None = None
        self.bindings: list[tuple[dict[str, Any], str]] = []

        def generate_and_call(*args: Any, **kwargs: Any) -> Any:
            if self.apply is generate_and_call:  # a program may hold this function for long
                began = perf_counter()
                self.compile()
                if active.state.recorder is not None:
                    active.state.recorder.prepared(perf_counter() - began)
                # Error reports on a failed call show the signature of the generated function.
                vars(generate_and_call)["__wrapped__"] = self.apply
            return self.apply(*args, **kwargs)

        generate_and_call.__name__ = name
        generate_and_call.__qualname__ = name
        self.apply: Function = generate_and_call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for operand in args:
            if type(operand) is Tensor or (
                self.lists
                and type(operand) in (list, tuple)
                and any(type(value) is Tensor for value in operand)
            ):
                return self.apply(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def bind(self, table: dict[str, Any], name: str) -> None:
        """Bind the op to a name of a table, which holds the generated function once there is
        one.
        """
        table[name] = self.apply
        self.bindings.append((table, name))


registry: dict[str, Op] = {}
"""Every entry by `name`, or `name.node` where several entries share PyTorch's name."""


def takes_tensors(function: Function) -> Function:
    """Mark a function that takes tensors even where a rule is called with arrays: the entries that
    it names are not replaced by their forward functions. See
    `gradcli.ops.codegen.node_class.on_arrays`.
    """
    vars(function)["takes_tensors"] = True
    return function


def node_name_of(name: str) -> str:
    """The name of the node of an op's first derivative: `avg_pool2d` has `AvgPool2DBackward0`."""
    return f"{name.title().replace('_', '')}Backward0"


def op(name: str, forward: Function, **facts: Any) -> Op:
    """Add an entry to the catalogue; raises TypeError where its name and node are taken.
    `tests/test_entries.py` checks that its facts fit each other.

    Args:
        name: PyTorch's name.
        forward: computes the result from arrays; its parameters name the operands and arguments.
        facts: the rest, by name: see `Op`. Others are the derivative rules of the differentiable
            inputs, in the order of `next_functions`; beside them
            `node`: the node's name, where it is not that of `node_name_of`;
            `constant`: tensor parameters without derivative (an index, a mask);
            `written`: the rules of its form in place, where PyTorch's has a node of its own: they
            take the result, for the operand is overwritten; empty where they are the entry's own;
            `half`: how float16 and bfloat16 are computed, one of the ways of
            `gradcli.ops.definition.op`; each step rounds where it is not said;
            `doc, example, conventions`: the text of its page of help, see `OpDoc`.
    """
    written = facts.pop("written", None)
    entry = Op(name, forward, **facts)
    key = name if name not in registry else f"{name}.{entry.node_name}"
    if key in registry:
        raise TypeError(f"{name}: there is an entry of this name and node already")
    registry[key] = entry
    if written is not None:
        entry.written = op(
            f"{name}_",
            entry.forward,
            node=f"{entry.node_name[:-1]}1",
            constant=tuple(each for each in entry.tensors if each not in entry.inputs),
            pointwise=entry.pointwise,
            floating=entry.floating,
            keeps_layout=entry.keeps_layout,
            unsupported=entry.unsupported,
            raises=entry.raises,
            **(written or entry.rules),
        )
    return entry


def pointwise(name: str, forward: Function, **facts: Any) -> Op:
    """Register an elementwise op: operands are promoted to one dtype and broadcast, and
    may be numbers. Where no entry says otherwise, no value makes it raise.
    """
    return op(name, forward, pointwise=True, **{"raises": BY_KINDS, **facts})
