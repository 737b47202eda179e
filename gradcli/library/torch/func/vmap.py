"""`vmap`: a function of one example, run once for a whole batch.

Its tensors are batched values (`gradcli.autograd.batched`), and each op computes all examples at
once (`gradcli.library.torch.func.batching`). Reading the value of a single example is an error:
branching on it, `item()`. A function of the language's own that has to do so runs for one
example after the other, and a custom function may say how it computes all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar

from gradcli.autograd.batched import BatchedArray, NeedsExamples, batched_tensor
from gradcli.autograd.custom_function import DETAILS
from gradcli.autograd.inplace.writes import check_inplace, write
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, gradient_edge, join_graph
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.library.torch.func.batching.entries import (
    as_tensor,
    picked_by_examples,
    put_by_examples,
)
from gradcli.library.torch.func.batching.rules import At, Frame, behind, key_of, rule_of, warn_of
from gradcli.library.torch.func.derivatives import vjp
from gradcli.library.torch.func.levels import described
from gradcli.library.torch.func.structure import leaves, mapped, rebuilt, same_form, spec_of
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import copy_
from gradcli.ops.creation.random import generator_of
from gradcli.ops.definition.doc import RANDOM
from gradcli.ops.definition.op import Op
from gradcli.ops.shape.joining import cat_function, stack_function
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.slicing import narrow, select
from gradcli.ops.shape.views import expand, unsqueeze
from gradcli.state import active

# --- a running vmap -------------------------------------------------------------------------------


class Interpreter(Frame):
    """Computes what a function does on batched values, while it runs."""

    def picked(self, shown: Tensor, picked: dict[int, Any]) -> Tensor:
        """The elements of a tensor at positions that differ from example to example."""
        return picked_by_examples(shown, picked)

    def put(self, shown: Tensor, picked: dict[int, Any], value: Tensor) -> None:
        """Write values to such positions."""
        level = level_of([shown, value, *[as_tensor(each) for each in picked.values()]])
        frame = self.at(level)
        frame.run(put_by_examples, frame, shown, picked, value)

    def assign(self, tensor: Tensor, result: Tensor) -> bool:
        """Write a result to a batched tensor, for all examples; whether one of them is batched.

        Raises E405 where the examples' results would be written to what all of them share.
        """
        level = level_of([tensor, result])
        if not level:
            return False
        frame = self.at(level)
        if not frame.is_batched(tensor) and frame.is_batched(result):
            raise GradcliError("E405", _SHARED_WRITE)
        target = frame.plain(tensor)

        def write_all() -> None:
            if not frame.is_batched(tensor):
                copy_(target, frame.plain(result))
                return
            dim = tensor.array.bdim
            values = behind(frame.first(result), target.array.ndim)
            if dim or values.array.shape != target.array.shape or values.dtype != target.dtype:
                copy_(target if not dim else movedim(target, dim, 0), values)
                return
            check_inplace("copy_", target, values)
            node = values.grad_fn
            if node is not None and node.next_nodes[:1] == (gradient_edge(target)[0],):
                write(target, values)
            else:
                copy_(target, values)

        frame.run(write_all)
        return True

    def refuse(self, what: str, values: Any) -> None:
        """Raise E204 where one of the values differs from example to example."""
        if any(_differs(value) for value in values):
            raise runtime_error(
                _REFUSALS[what],
                help="choose between values with torch.where()" if what == "bool" else None,
            )

    def described(self, tensor: Tensor) -> str:
        """How a tensor is printed inside."""
        return described(tensor)

    def compute(self, op: Op, args: tuple[Any, ...]) -> Any:
        """The result's array, or arrays, of an op on batched values, and its arguments with all
        tensors as ones of the level that computed it; None where none of them is batched.
        """
        level = 0
        for arg in args:
            if type(arg) is Tensor:
                if type(arg.array) is BatchedArray and arg.array.level > level:
                    level = arg.array.level
            elif type(arg) is list or type(arg) is tuple:
                for each in arg:
                    if type(each) is Tensor and type(each.array) is BatchedArray:
                        level = max(level, each.array.level)
        return self.at(level)._computed(op, args) if level else None

    def looped(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """The result of a function that reads the values of one example."""
        level = level_of(leaves((tuple(args), kwargs))) or self.level
        return looped(self.at(level), function, args, kwargs)

    def level_of(self, values: Any) -> int:
        """The innermost level among the batched ones of some values; 0 for none."""
        return level_of(leaves(values))

    def records_below(self, args: Any) -> bool:
        """Whether ops on the values of all examples are recorded, and those on examples are not."""
        state = active.state
        batched = [arg for arg in leaves(args) if self.is_batched(arg)]
        mode = state.grad_enabled if self.below is None else self.below
        return (
            mode
            and any(arg.array.value.requires_grad for arg in batched)
            and not any(arg.requires_grad for arg in batched)
        )

    def forward_of(self, function: Any) -> Callable[..., Any]:
        """The forward of a custom function that says how it computes all examples."""
        mode = active.state.grad_enabled

        def forward(*args: Any) -> Any:
            frame = self.at(level_of(leaves(args)))
            return by_own_rule(frame, function, args, mode)

        return forward

    def _computed(self, op: Op, args: tuple[Any, ...]) -> Any:
        args = tuple(
            [
                [self.wrapped(each) for each in arg]
                if type(arg) in (list, tuple) and any(type(each) is Tensor for each in arg)
                else self.wrapped(arg)
                for arg in args
            ]
        )
        values = [each for arg in args for each in (arg if type(arg) is list else (arg,))]
        if self.is_batched(*values):
            warn_of(key_of(op))
            result = self.run(rule_of(op), self, op, args)
        else:
            shared = [
                [self.plain(each) for each in arg] if type(arg) is list else self.plain(arg)
                for arg in args
            ]
            result = self.run(_shared, op, shared)
        if isinstance(result, (tuple, list)) and type(result) is not At:
            return tuple([self._array(each) for each in result]), args
        return self._array(result), args

    def _array(self, result: Any) -> BatchedArray:
        value, bdim = result if type(result) is At else (result, 0)
        return BatchedArray(value, bdim, self.level)

    def moved(self, leaf: Tensor, dim: int) -> Tensor:
        """A result outside this level, the examples in a dimension. Raises E302 where there is no
        such dimension.
        """
        ndim = leaf.array.ndim + 1
        if not self.is_batched(leaf):
            whole = unsqueeze.apply(self.plain(leaf), normal_dim("vmap", dim, ndim))
            sizes = list(whole.array.shape)
            sizes[dim] = self.size
            return expand.apply(whole, tuple(sizes))
        array: BatchedArray = leaf.array
        assert array.bdim is not None
        at = normal_dim("vmap", dim, ndim)
        return array.value if array.bdim == at else movedim(array.value, array.bdim, at)


def _differs(value: Any) -> bool:
    """Whether a value is a tensor that differs from example to example, at any level."""
    while type(value) is Tensor and type(value.array) is BatchedArray:
        if value.array.bdim is not None:
            return True
        value = value.array.value
    return False


_SHARED_WRITE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor"
    " `other` in extra_args that has more elements than `self`. This happened due to `other` being"
    " vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place"
    " operators instead of inplace arithmetic. If said operator is being called inside the PyTorch"
    " framework, please file a bug report instead."
)
"""PyTorch's text."""

_DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap"
    " over aten::{}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need"
    " this feature."
)

_REFUSALS = {
    "item": "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over"
    " calling .item() on a Tensor, please try to rewrite what you're doing with other operations."
    " If error is occurring somewhere inside PyTorch internals, please file a bug report.",
    "bool": "vmap: It looks like you're attempting to use a Tensor in some data-dependent control"
    " flow. We don't support that yet, please file an issue at"
    " https://github.com/pytorch/pytorch/issues .",
    "data": "accessing `data` under vmap transform is not allowed",
    "tolist": "Cannot access data pointer of Tensor that doesn't have storage",
    "storage": "Cannot access storage of BatchedTensorImpl",
    "nonzero": _DYNAMIC.format("nonzero"),
    "unique": _DYNAMIC.format("_unique2"),
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We"
    " cannot support this because for each batch this would return a differently shaped Tensor."
    " Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.",
    "indexing by a mask": "vmap: We do not support batching operators that can support dynamic"
    " shape. Attempting to batch over indexing with a boolean mask.",
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "allclose": "vmap over torch.allclose isn't supported yet. Please file an issue at"
    " https://github.com/pytorch/pytorch/issues if you need this feature.",
}
"""PyTorch's texts, by what needs the values of one example."""


def _shared(op: Op, args: Sequence[Any]) -> Any:
    result = op.apply(*args)
    return [At(each, None) for each in result] if type(result) is tuple else At(result, None)


# --- vmap -----------------------------------------------------------------------------------------


Function = Callable[..., Any]


@function(module="torch.func")
def vmap(
    func: Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Function:
    """A function mapped over a dimension of its inputs: it computes all examples at once.

    Args:
        func: takes and returns tensors, in structures.
        in_dims: which dimension of the inputs counts the examples, None for an input that all
            share; one for all, or a structure like the arguments.
        out_dims: where that dimension goes in the outputs; one for all, or a structure like them.
        randomness: "error" raises for random numbers, "different" draws for each example, "same"
            gives all of them the same ones.
        chunk_size: how many examples to compute at a time; None for all of them.

    Example: torch.vmap(sum, in_dims=1)(tensor([[2., 1.], [1., 3.]]))
    """
    if randomness not in ("error", "different", "same"):
        raise runtime_error(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got"
            f" {randomness}"
        )
    _check_chunk_size(chunk_size)
    name = name_of(func)

    def batched(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(name, out_dims)
        flat = leaves(args)
        dims = _dims_for(name, args, flat, in_dims)
        size = _batch_size(flat, dims)

        def run(part: list[Any], count: int) -> tuple[Any, list[Any], list[int | None]]:
            return _run(name, func, args, kwargs, part, dims, count, out_dims, randomness)

        if chunk_size is None or chunk_size >= size:
            structure, values, _ = run(flat, size)
            return rebuilt(structure, values)
        parts = []
        generator = generator_of(None)
        drawn = generator.snapshot() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if drawn is not None:  # the examples of every part see the same numbers
                generator.restore(drawn)
            count = min(chunk_size, size - start)
            part = [
                leaf if dim is None else narrow(leaf, dim, start, count)
                for leaf, dim in zip(flat, dims, strict=True)
            ]
            parts.append(run(part, count))
        structure, _, to = parts[0]
        columns = zip(*(values for _, values, _ in parts), strict=True)
        joined = [
            column[0] if dim is None else cat_function(list(column), dim)
            for column, dim in zip(columns, to, strict=True)
        ]
        return rebuilt(structure, joined)

    batched.__name__ = name
    return batched


def name_of(func: Any) -> str:
    """How errors name a function: by its name, or as it is printed."""
    name = getattr(func, "__name__", None)
    return name if type(name) is str else repr(func)


def _run(
    name: str,
    func: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    flat: list[Any],
    dims: list[int | None],
    size: int,
    out_dims: Any,
    randomness: str,
) -> tuple[Any, list[Any], list[int | None]]:
    """What the function returned, its tensors for all examples, and where the examples are."""
    state = active.state
    frame = state.batch = Interpreter(len(state.transforms) + 1, size, randomness, state.batch)
    state.transforms.append(frame)
    try:
        inputs = [
            leaf if dim is None else batched_tensor(leaf, dim, frame.level)
            for leaf, dim in zip(flat, dims, strict=True)
        ]
        given = rebuilt(args, inputs)
        try:
            returned = func(*given, **kwargs)
        except NeedsExamples:  # a function of ours, which nothing in the program calls
            returned = frame.looped(func, given, kwargs)
    finally:
        state.transforms.pop()
        state.batch = frame.outer
    wanted = leaves(returned)
    to = _broadcast(returned, out_dims)
    if to is None:
        raise _misfit(name, f"..., out_dims={out_dims}", "out", out_dims, "outputs", returned)
    values = []
    for leaf, dim in zip(wanted, to, strict=True):
        if not isinstance(leaf, Tensor):
            raise no_tensor(name, leaf)
        if dim is None and frame.is_batched(leaf):
            raise value_error(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        values.append(frame.plain(leaf) if dim is None else frame.moved(leaf, dim))
    return returned, values, to


# --- arguments ----------------------------------------------------------------------------------


def _check_chunk_size(chunk_size: Any) -> None:
    if chunk_size is None:
        return
    if type(chunk_size) not in (bool, int, float):
        raise type_error(
            f"'>' not supported between instances of '{type(chunk_size).__name__}' and 'int'"
        )
    if chunk_size <= 0:
        raise value_error(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")


def _check_out_dims(name: str, out_dims: Any) -> None:
    if all(dim is None or type(dim) is int for dim in leaves(out_dims)):
        return
    raise value_error(
        f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python"
        " collection of ints representing where in the outputs the vmapped dimension should"
        " appear."
    )


def _dims_for(name: str, args: tuple[Any, ...], flat: list[Any], in_dims: Any) -> list[int | None]:
    """The batch dimension of each leaf of the arguments, None for those that all examples share."""
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise value_error(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the"
            f" structure of inputs, got: {shown_class(in_dims)}."
        )
    if not args:
        raise value_error(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are"
            " trying to vmap over a function with no inputs. The latter is unsupported."
        )
    each_dim = _broadcast(args, in_dims)
    if each_dim is None:
        raise _misfit(name, f"in_dims={in_dims}, ...", "in", in_dims, "inputs", args)
    dims: list[int | None] = []
    for leaf, dim in zip(flat, each_dim, strict=True):
        if dim is not None and not isinstance(dim, int):
            raise value_error(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer"
                " dimension or None."
            )
        if dim is not None and not isinstance(leaf, Tensor):
            raise value_error(
                f"{call}: Got in_dim={dim} for an input but the input is of type"
                f" {shown_class(leaf)}."
                " We cannot vmap over non-Tensor arguments, please use None as the respective"
                " in_dim"
            )
        count = leaf.array.ndim if dim is not None else 0
        if dim is not None and not -count <= dim < count:
            raise value_error(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of"
                f" dimensionality {count} so expected in_dim to satisfy -{count} <= in_dim <"
                f" {count}."
            )
        dims.append(None if dim is None else dim % count)
    return dims


def _batch_size(flat: list[Any], dims: list[int | None]) -> int:
    pairs = zip(flat, dims, strict=True)
    sizes = [leaf.array.shape[dim] for leaf, dim in pairs if dim is not None]
    if not sizes:
        raise value_error("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise value_error(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes"
            f" {sizes} for the mapped dimension"
        )
    return int(sizes[0])


def _broadcast(structure: Any, dims: Any) -> list[Any] | None:
    """An entry of `dims` for each leaf of a structure: what is no container stands for all below
    it. None where the two do not fit.
    """
    if isinstance(dims, (tuple, list)):
        if type(structure) is not type(dims) or len(structure) != len(dims):
            return None
        parts = zip(structure, dims, strict=True)
    elif isinstance(dims, dict):
        if not isinstance(structure, dict) or structure.keys() != dims.keys():
            return None
        parts = zip(structure.values(), [dims[key] for key in structure], strict=True)
    else:
        return [dims] * len(leaves(structure))
    dims_of_leaves: list[Any] = []
    for part, below in parts:
        entries = _broadcast(part, below)
        if entries is None:
            return None
        dims_of_leaves += entries
    return dims_of_leaves


def _misfit(
    name: str, settings: str, which: str, dims: Any, what: str, structure: Any
) -> GradcliError:
    """The error of dimensions whose structure is not that of what they are for."""
    wrapped = (dims,) if isinstance(dims, int) else dims
    return value_error(
        f"vmap({name}, {settings})(<inputs>): {which}_dims is not compatible with the structure of"
        f" `{what}`. {which}_dims has structure {_spec(wrapped)} but {what} has structure"
        f" {_spec(structure)}."
    )


def _spec(structure: Any, indent: int = 0) -> str:
    """A structure as PyTorch describes it."""
    if not isinstance(structure, (tuple, list, dict)):
        return "*"
    if isinstance(structure, dict):
        head, parts = f"dict, {list(structure)}", list(structure.values())
    else:
        kind = "list" if isinstance(structure, list) else "tuple"
        head, parts = f"{kind}, None", list(structure)
    inner = indent + 2
    texts = [_spec(part, inner) for part in parts]
    return f"TreeSpec({head}, [" + (",\n" + " " * inner).join(texts) + "])"


def of_rows(function: Function, seeds: list[Any]) -> tuple[Any, ...]:
    """The gradients that a function returns for all rows of seeds at once; None where there is
    none, or no seed.
    """
    present = [seed for seed in seeds if seed is not None]
    without: list[int] = []

    def rows(*parts: Any) -> list[Any]:
        each = iter(parts)
        gradients = function(*[None if seed is None else next(each) for seed in seeds])
        without.extend(n for n, gradient in enumerate(gradients) if gradient is None)
        return [gradient for gradient in gradients if gradient is not None]

    result: list[Any] = list(vmap(rows)(*present))
    for n in without:
        result.insert(n, None)
    return tuple(result)


# --- one example after the other ------------------------------------------------------------------


class Looped(Node):
    """The node of a function that ran for one example after the other; so does its gradient.

    Attributes:
        frame: the `vmap` in which it ran.
        function: from the leaves of its arguments to the tensors of its result.
        flat: the leaves.
        inputs: the positions of those that its edges lead to.
    """

    __slots__ = ("flat", "frame", "function", "inputs", "multiple")

    node_name = "LoopedBackward"
    frame: Frame
    flat: list[Any]
    inputs: list[int]
    function: Function

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        count = len(self.flat)

        def pulled(*values: Any) -> Any:
            examples, seeds = list(values[:count]), values[count:]

            def of_inputs(*inputs: Tensor) -> Any:
                for position, value in zip(self.inputs, inputs, strict=True):
                    examples[position] = value
                return tuple(self.function(*examples))

            _, pull = vjp(of_inputs, *[examples[position] for position in self.inputs])
            return pull(tuple(seeds))

        seeds = grads if isinstance(grads, list) else [grads]
        whole = [
            zeros(self.frame.wrapped(Tensor(0.0)), shape) if seed is None else seed
            for seed, (shape, _) in zip(seeds, self.metadata, strict=True)
        ]
        args = (*self.flat, *whole)
        level = level_of(leaves(args)) or self.frame.level
        return tuple(looped(self.frame.at(level), pulled, args, {}))

    run_recorded = run


def looped(frame: Frame, function: Function, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function on values of a level, computed example by example.

    Raises E205 for a function that writes to its tensor.
    """
    name = getattr(function, "__name__", "the function")
    if name.endswith("_") and not name.startswith("__"):
        raise GradcliError(
            "E205", f"vmap: {name}() cannot write the examples of a batch one by one"
        )
    if isinstance(function, FunctionType) and RANDOM in vars(function).get("effects", ()):
        frame.check_drawing_by_examples()
    structure = (tuple(args), kwargs)
    flat = leaves(structure)

    def of_leaves(*values: Any) -> Any:
        arguments, named = rebuilt(structure, list(values))
        try:
            return function(*arguments, **named)
        except NeedsExamples:  # an example is a batch of the `vmap` around this one
            return active.state.batch.looped(function, arguments, named)

    results = frame.run(
        lambda: [of_leaves(*[_example(frame, leaf, n) for leaf in flat]) for n in range(frame.size)]
    )
    columns = [list(column) for column in zip(*map(leaves, results), strict=True)]
    results_batched = [
        batched_tensor(frame.run(stack_function, column), 0, frame.level)
        if type(column[0]) is Tensor
        else column[0]
        for column in columns
    ]
    _record(frame, of_leaves, flat, results_batched)
    return rebuilt(results[0], results_batched)


def _record(frame: Frame, of_leaves: Function, flat: list[Any], results: list[Any]) -> None:
    """Make the node of results, if gradients are enabled and an argument requires one."""
    inputs = [n for n, leaf in enumerate(flat) if type(leaf) is Tensor and leaf.requires_grad]
    inputs = [n for n in inputs if frame.holds(flat[n])]
    at = [
        n
        for n, leaf in enumerate(results)
        if type(leaf) is Tensor and leaf.array.dtype.kind in "fcV"
    ]
    if not (active.state.grad_enabled and inputs and at):
        return
    node = Looped()
    node.frame, node.flat, node.inputs = frame, flat, inputs
    node.multiple = len(at) > 1

    def function(*values: Any) -> Any:
        returned = leaves(of_leaves(*values))
        return [returned[n] for n in at]

    node.function = function
    join_graph(node, [flat[n] for n in inputs], [results[n] for n in at])
    for output_nr, n in enumerate(at):
        results[n].grad_fn, results[n].output_nr, results[n].requires_grad = node, output_nr, True


def _example(frame: Frame, leaf: Any, number: int) -> Any:
    if not frame.is_batched(leaf):
        return frame.plain(leaf)
    array: BatchedArray = leaf.array
    return select.apply(array.value, array.bdim, number)


def level_of(values: list[Any]) -> int:
    """The innermost level among the batched ones of some values; 0 for none."""
    return max(
        [v.array.level for v in values if type(v) is Tensor and type(v.array) is BatchedArray],
        default=0,
    )


def no_tensor(name: str, value: Any) -> GradcliError:
    """The error of what a mapped function returned where a tensor was wanted."""
    return value_error(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {shown_class(value)}. Did"
        " you mean to set out_dims= to None for output?"
    )


def shown_class(value: Any) -> str:
    """The class of a value as PyTorch's errors have it."""
    if isinstance(value, Tensor):
        return "<class 'torch.Tensor'>"
    return f"<class '{getattr(type(value), 'language_name', None) or type(value).__name__}'>"


class VmapInfo:
    """What a custom function's `vmap` receives about the batch.

    Attributes:
        batch_size: how many examples there are.
        randomness: what random numbers they may draw.
    """

    __slots__ = ("batch_size", "randomness")

    language_name: ClassVar[str] = "torch._functorch.autograd_function.VmapInfo"
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.batch_size = batch_size
        self.randomness = randomness


def by_own_rule(frame: Frame, function: Any, args: tuple[Any, ...], mode: bool) -> Any:
    """What a custom function's `vmap` makes of batched arguments, batched again. `mode` says
    whether its ops are recorded.

    Raises E204 for an answer that is no output with its dimensions, E202 and E302 for a dimension
    that is none of the output's.
    """

    def dim_of(value: Any) -> int | None:
        return value.array.bdim if frame.is_batched(value) else None

    def computed() -> Any:
        state = active.state
        if frame.below is None:
            state.grad_enabled = mode
        values = mapped(frame.plain, args)
        return function.vmap(VmapInfo(frame.size, frame.randomness), mapped(dim_of, args), *values)

    answer = frame.run(computed)
    if type(answer) is not tuple or len(answer) != 2:
        got = f"{len(answer)} returns" if type(answer) is tuple else f"a {shown_class(answer)}"
        raise runtime_error(
            "vmap(): the vmap staticmethod has to return an output and its out_dims",
            text="Expected the vmap staticmethod to have two returns, an output and out_dims with"
            f" pytree structure compatible with the output. Got {got} instead",
        )
    output, dims = answer
    parts = leaves(output)
    for value in parts:
        if not isinstance(value, Tensor):
            raise no_tensor("apply", value)
        if not value.array.ndim:
            raise value_error("vmap(): an output of the vmap staticmethod has no dimension")
    single = dims is None or isinstance(dims, int)
    if not single and not same_form(output, dims):
        raise runtime_error(
            "vmap(): the out_dims of the vmap staticmethod do not fit its output",
            text="The autograd.Function's vmap staticmethod returned an incompatible (output,"
            f" out_dims) tuple. Expected out_dims={dims!r} to be compatible with the structure of"
            f" `output`. out_dims has structure {spec_of(dims)} but output has structure"
            f" {spec_of(output)}. {DETAILS}",
        )
    every = [dims] * len(parts) if single else leaves(dims)
    return rebuilt(
        output,
        [
            value
            if dim is None
            else batched_tensor(value, normal_dim("vmap", dim, value.array.ndim), frame.level)
            for value, dim in zip(parts, every, strict=True)
        ],
    )
