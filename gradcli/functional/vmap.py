"""`vmap`: a function of one example, run for each example of a batch.

The function runs once for each, and the results are stacked. So anything that it may do with one
example it may do here, also what PyTorch's `vmap` refuses: branch on values, call `item()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.functional.structure import leaves, rebuilt
from gradcli.ops.catalogue import function
from gradcli.ops.joining import stack_
from gradcli.ops.random import generator_of
from gradcli.ops.slicing import select_
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
    """A function that runs `func` for each example and stacks the results.

    Args:
        func: takes and returns tensors, in structures.
        in_dims: which dimension of the inputs counts the examples, None for an input that all
            share; one for all, or a structure like the arguments.
        out_dims: where that dimension goes in the outputs; one for all, or a structure like them.
        randomness: "error" refuses random numbers, "different" draws for each example, "same"
            gives all of them the same ones.
        chunk_size: how many examples PyTorch takes at a time; it changes no value.
    """
    if randomness not in ("error", "different", "same"):
        raise GradcliError(
            "E204",
            "vmap(): randomness is 'error', 'different' or 'same'",
            raises="RuntimeError",
        )

    def batched(*args: Any, **kwargs: Any) -> Any:
        flat = leaves(args)
        dims = _dims_for(args, in_dims)
        sizes = {
            leaf.array.shape[dim] for leaf, dim in zip(flat, dims, strict=True) if dim is not None
        }
        if len(sizes) != 1:
            what = f"of different sizes {sorted(sizes)}" if sizes else "none: all in_dims are None"
            raise _wrong(f"the inputs must have one batch dimension; they have {what}")
        results = []
        drawing, running = _Drawing(randomness), _Running()
        for number in range(sizes.pop()):
            example = [
                leaf if dim is None else select_(leaf, dim, number)
                for leaf, dim in zip(flat, dims, strict=True)
            ]
            with drawing, running:
                results.append(func(*rebuilt(args, example), **kwargs))
        return _stacked(results, out_dims)

    return batched


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


def _stacked(results: list[Any], out_dims: Any) -> Any:
    """The results of all examples as one structure, each tensor with the batch dimension."""
    first = results[0]
    for leaf in leaves(first):
        if not isinstance(leaf, Tensor):
            raise _wrong(f"the function has to return tensors, not {type(leaf).__name__}")
    columns = zip(*(leaves(result) for result in results), strict=True)
    stacked = []
    for column, dim in zip(columns, _broadcast(first, out_dims), strict=True):
        if dim is None:
            stacked.append(column[0])
        else:
            stacked.append(stack_(list(column), dim))
    return rebuilt(first, stacked)


class _Drawing:
    """What random numbers an example may draw."""

    __slots__ = ("_generator", "_randomness", "_start")

    def __init__(self, randomness: str) -> None:
        self._randomness = randomness
        self._generator = generator_of(None)
        self._start = self._generator.snapshot()

    def __enter__(self) -> None:
        if self._randomness == "same":
            self._generator.restore(self._start)

    def __exit__(self, *exception: object) -> None:
        if self._randomness == "error" and self._generator.snapshot() != self._start:
            raise _refused_draw()


class _Running:
    """An example that is being computed."""

    __slots__ = ()

    def __enter__(self) -> None:
        active.state.transforms += 1

    def __exit__(self, *exception: object) -> None:
        active.state.transforms -= 1


def _refused_draw() -> GradcliError:
    return GradcliError(
        "E204",
        "vmap(): the function drew random numbers",
        raises="RuntimeError",
        help="say randomness='different' or randomness='same'",
    )
