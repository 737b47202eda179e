"""`vmap`: a function of one example, run for each example of a batch.

The function runs once for each, and the results are stacked. PyTorch computes all examples at once,
so reading the value of a single example is an error: branching on it, `item()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.autograd.custom.function import Function as CustomFunction
from gradcli.autograd.recording.listeners import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.functional.structure import leaves, rebuilt
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.random import generator_of
from gradcli.ops.shape.joining import stack_
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.slicing import narrow, select_
from gradcli.state import active

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
    """A function mapped over a dimension of its inputs. It runs `func` for each example and stacks
    the results.

    Args:
        func: takes and returns tensors, in structures.
        in_dims: which dimension of the inputs counts the examples, None for an input that all
            share; one for all, or a structure like the arguments.
        out_dims: where that dimension goes in the outputs; one for all, or a structure like them.
        randomness: "error" raises for random numbers, "different" draws for each example, "same"
            gives all of them the same ones.
        chunk_size: how many examples PyTorch takes at a time; it changes no value.

    Example: torch.vmap(sum, in_dims=1)(tensor([[2., 1.], [1., 3.]]))
    """
    if randomness not in ("error", "different", "same"):
        raise GradcliError(
            "E204",
            "vmap(): randomness is 'error', 'different' or 'same'",
            raises="RuntimeError",
        )
    _check_chunk_size(chunk_size)
    _check_dims("in_dims", in_dims, int, tuple)
    _check_dims("out_dims", out_dims, int, tuple, list, dict, type(None))

    def batched(*args: Any, **kwargs: Any) -> Any:
        flat = leaves(args)
        dims = _dims_for(args, in_dims)
        sizes = {
            leaf.array.shape[dim] for leaf, dim in zip(flat, dims, strict=True) if dim is not None
        }
        if len(sizes) != 1:
            what = f"of different sizes {sorted(sizes)}" if sizes else "none: all in_dims are None"
            raise _wrong(f"the inputs must have one batch dimension; they have {what}")
        (size,) = sizes
        rule = _own_rule(func)
        plain = [id(leaf) for leaf in flat] == [id(value) for value in args]
        if rule is not None and plain and not kwargs:
            return _moved(*rule(VmapInfo(size, randomness), tuple(dims), *args), out_dims)
        results = []
        drawing, batch = _Drawing(randomness), Batch(empty=not size)
        for number in range(size or 1):
            example = [
                leaf if dim is None else _example(leaf, dim, number)
                for leaf, dim in zip(flat, dims, strict=True)
            ]
            with drawing, batch:
                batch.add(each for each, dim in zip(example, dims, strict=True) if dim is not None)
                results.append(func(*rebuilt(args, example), **kwargs))
        return _stacked(results, out_dims, batch, empty=not size)

    return batched


def _own_rule(func: Any) -> Callable[..., tuple[Any, Any]] | None:
    """The `vmap` that a custom function defines, where `func` is its `apply`; its answer is
    checked.
    """
    function = getattr(func, "__self__", None)
    if not (isinstance(function, type) and issubclass(function, CustomFunction)):
        return None
    rule = function.vmap
    if rule is CustomFunction.vmap:
        return None

    def checked(*args: Any) -> tuple[Any, Any]:
        answer = rule(*args)
        if type(answer) is not tuple or len(answer) != 2:
            raise GradcliError(
                "E204",
                "vmap(): the vmap staticmethod has to return an output and its out_dims",
                raises="RuntimeError",
            )
        return answer

    return checked


class VmapInfo:
    """What a custom function's `vmap` receives about the batch.

    Attributes:
        batch_size: how many examples there are.
        randomness: what random numbers they may draw.
    """

    __slots__ = ("batch_size", "randomness")

    language_name: ClassVar[str] = "torch._functorch.autograd_function.VmapInfo"
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)
    settable_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.batch_size = batch_size
        self.randomness = randomness


def _example(tensor: Tensor, dim: int, number: int) -> Tensor:
    """One example; zeros where there is none, to find the form of the function's results."""
    if tensor.array.shape[dim]:
        return select_(tensor, dim, number)
    shape = [size for at, size in enumerate(tensor.array.shape) if at != dim]
    return Tensor(module_of(tensor.array).zeros(shape, tensor.array.dtype)[()])


def _check_chunk_size(chunk_size: Any) -> None:
    if chunk_size is None:
        return
    if type(chunk_size) not in (bool, int, float):
        raise GradcliError(
            "E202", f"vmap(): chunk_size must be a number, not {type(chunk_size).__name__}"
        )
    if chunk_size <= 0:
        raise _wrong(f"chunk_size must be greater than 0, not {chunk_size}")


def _check_dims(name: str, dims: Any, *kinds: type) -> None:
    if not isinstance(dims, kinds):
        raise _wrong(f"{name} is a number, or has a place for each one, not {dims!r}")


def _moved(returned: Any, dims: Any, out_dims: Any) -> Any:
    """What a function's own `vmap` returned, with the batch dimension where it is wanted."""
    wanted = _broadcast(returned, out_dims)
    columns = zip(leaves(returned), _broadcast(returned, dims), wanted, strict=True)
    return rebuilt(returned, [movedim(leaf, dim, to) for leaf, dim, to in columns])


def _wrong(message: str) -> GradcliError:
    return GradcliError("E204", f"vmap(): {message}")


def _dims_for(args: tuple[Any, ...], in_dims: Any) -> list[int | None]:
    """The batch dimension of each leaf of the arguments, None for those that all examples share."""
    if not args:
        raise _wrong("the function needs an argument to take examples from")
    if isinstance(in_dims, tuple) and len(in_dims) != len(args):
        raise _wrong(f"in_dims has {len(in_dims)} entries for {len(args)} arguments")
    dims: list[int | None] = []
    for leaf, dim in zip(leaves(args), _broadcast(args, in_dims), strict=True):
        if dim is None:
            dims.append(None)
            continue
        if not isinstance(dim, int):
            raise _wrong(f"an entry of in_dims is a number or None, not {type(dim).__name__}")
        if not isinstance(leaf, Tensor):
            raise _wrong(f"in_dims must be None for what is no tensor ({type(leaf).__name__})")
        count = leaf.array.ndim
        if not -count <= dim < count:
            raise _wrong(f"in_dims asks for dimension {dim} of a tensor of {count} dimensions")
        dims.append(dim % count)
    return dims


def _broadcast(structure: Any, dims: Any) -> list[Any]:
    """An entry of `dims` for each leaf of a structure: a number stands for all below it."""
    if isinstance(dims, (tuple, list)):
        if not isinstance(structure, (tuple, list)) or len(structure) != len(dims):
            raise _wrong("the structure of in_dims or out_dims does not fit")
        return [
            dim
            for part, below in zip(structure, dims, strict=True)
            for dim in _broadcast(part, below)
        ]
    if isinstance(dims, dict):
        if not isinstance(structure, dict) or structure.keys() != dims.keys():
            raise _wrong("the structure of in_dims or out_dims does not fit")
        return [dim for key in structure for dim in _broadcast(structure[key], dims[key])]
    return [dims] * len(leaves(structure))


def _stacked(results: list[Any], out_dims: Any, batch: Batch, empty: bool) -> Any:
    """The results of all examples as one structure, each tensor with the batch dimension."""
    first = results[0]
    for leaf in leaves(first):
        if not isinstance(leaf, Tensor):
            raise _wrong(f"the function has to return tensors, not {type(leaf).__name__}")
    columns = zip(*(leaves(result) for result in results), strict=True)
    stacked = []
    for column, dim in zip(columns, _broadcast(first, out_dims), strict=True):
        if dim is None:
            if batch.holds(column):
                raise _wrong("a result without a batch dimension depends on the examples")
            stacked.append(column[0])
            continue
        if not isinstance(dim, int):
            raise _wrong(f"an entry of out_dims is a number or None, not {type(dim).__name__}")
        whole = stack_(list(column), dim)
        stacked.append(narrow(whole, dim, 0, 0) if empty else whole)
    return rebuilt(first, stacked)


class _Drawing:
    """What random numbers an example may draw."""

    __slots__ = ("_generator", "_outer", "_randomness", "_start")

    def __init__(self, randomness: str) -> None:
        self._randomness = randomness
        self._generator = generator_of(None)
        self._start = self._generator.snapshot()

    def __enter__(self) -> None:
        self._outer = self._generator.refusal
        if self._randomness == "error":
            self._generator.refusal = _disallowed_draw
        elif self._randomness == "same":
            self._generator.restore(self._start)

    def __exit__(self, *exception: object) -> None:
        self._generator.refusal = self._outer


class Batch(Listener):
    """The examples of a running `vmap`: records what is computed from them.

    Attributes:
        empty: whether there are none, and one of zeros stands for them.
        shared: tensors that are known to be the same for all examples.
    """

    __slots__ = ("_outer", "_tensors", "empty", "shared")

    def __init__(self, empty: bool) -> None:
        super().__init__()
        self.empty = empty
        self._outer: Batch | None = None
        self._tensors: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        self.shared: WeakValueDictionary[int, Tensor] = WeakValueDictionary()

    def __enter__(self) -> None:
        state = active.state
        state.transforms += 1
        self._outer, state.batch = state.batch, self
        self.install()

    def __exit__(self, *exception: object) -> None:
        state = active.state
        state.transforms -= 1
        state.batch = self._outer
        self.remove()

    def add(self, tensors: Iterable[Any]) -> None:
        """Take tensors for parts of the examples."""
        for tensor in tensors:
            self._tensors[id(tensor)] = tensor

    def holds(self, values: Any) -> bool:
        """Whether a value, or one in a list of values, was computed from the examples."""
        if isinstance(values, (tuple, list)):
            return any(self.holds(value) for value in values)
        if self._tensors.get(id(values)) is values is not None:
            return True
        return self._outer is not None and self._outer.holds(values)

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """An op: what it computes from the examples is part of them."""
        if self.holds(list(operands.values())):
            if self.empty:
                self._check_promotion(op, operands, output)
            self.add(output if isinstance(output, tuple) else (output,))
        super().operation(op, operands, output)

    def _check_promotion(self, op: Any, given: dict[str, Any], out: Any) -> None:
        """Raise E302 where one number of each example meets what is no such number: PyTorch looks
        at that of the first example to promote the two.
        """
        names = op.tensors if op.pointwise else ()
        pair = [given[name] for name in names]
        if len(pair) == 1 and op.name in _WITH_NUMBERS:
            pair.append(None)
        unpromoted = op.name == "lerp" or op.name.endswith("loss")
        if len(pair) != 2 or out.dtype is dtypes.bool_ or unpromoted:
            return
        scalars = [type(each) is Tensor and not each.array.ndim for each in pair]
        examples = [scalar and self.holds(each) for scalar, each in zip(scalars, pair, strict=True)]
        if examples in ([True, False], [False, True]):
            raise GradcliError("E302", f"vmap(): {op.name}() of one number of no examples")

    def write(self, tensor: Any, new: Any) -> None:
        """Raise for a write of one example's values to a tensor that all examples share."""
        whole = tensor if tensor.base is None else tensor.base
        if id(whole) in self.shared and self.holds(new):
            raise GradcliError(
                "E405",
                "vmap(): a tensor that all examples share cannot hold the values of one",
                help="make a tensor for each: `torch.zeros_like(example)`",
            )
        super().write(tensor, new)


_WITH_NUMBERS = frozenset({"add", "sub", "mul", "div", "floor_divide"})
"""The ops that make a tensor of a number beside one."""


def _disallowed_draw() -> GradcliError:
    return GradcliError(
        "E204",
        "vmap(): the function drew random numbers",
        raises="RuntimeError",
        help="say randomness='different' or randomness='same'",
    )
