"""`torch.func`: Jacobians and Hessians, all rows or columns of one in one batch."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor, with_history
from gradcli.errors import type_error, value_error
from gradcli.library.torch.func.derivatives import (
    Application,
    check_moved,
    check_real,
    named,
    positions_of,
    pull,
    push,
)
from gradcli.library.torch.func.levels import Level, tensors_of
from gradcli.library.torch.func.structure import leaves, rebuilt
from gradcli.library.torch.func.vmap import vmap
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.catalogue import function
from gradcli.ops.shape.joining import stack_function
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.slicing import narrow
from gradcli.ops.shape.views import view
from gradcli.state import active, computed

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]

_MODULE = "torch.func"


def unit_rows(tensors: list[Tensor]) -> list[Tensor]:
    """The unit vectors of the space of several tensors, one after another: for each tensor its
    part of all of them, of shape `(count, *its shape)`.
    """
    sizes = [tensor.array.size for tensor in tensors]
    count = sum(sizes)
    active.state.limits.check_elements(count * max(sizes, default=0))
    blocks = []
    for tensor, end in zip(tensors, accumulate(sizes), strict=True):
        array, start = tensor.array, end - tensor.array.size
        rows = computed(_rows, module_of(array), count, start, array.shape, array.dtype)
        blocks.append(Tensor(rows))
    return blocks


def _rows(xp: Any, count: int, start: int, shape: tuple[int, ...], dtype: Any) -> Any:
    size = prod(shape)
    rows = xp.zeros((count, size), dtype)
    rows[range(start, start + size), range(size)] = 1
    return rows.reshape(count, *shape)


def blocks_of(parts: list[Tensor], sizes: list[int], dim: int) -> list[list[Tensor]]:
    """The rows of a Jacobian that belong to each of several tensors, for each of `parts`."""
    ends = list(accumulate(sizes))
    return [
        [narrow(part, dim, end - size, size) for part in parts]
        for size, end in zip(sizes, ends, strict=True)
    ]


@function(module=_MODULE)
def jacrev(
    func: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """A function that returns the Jacobian by rows: for each tensor of the output, and inside that
    for each of `argnums`, a tensor of shape `(*output.shape, *input.shape)`. `chunk_size` rows are
    computed at a time, all of them if None.
    """

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("jacrev", argnums, len(args))
        if chunk_size is not None and not chunk_size > 0:
            raise value_error("jacrev: `chunk_size` should be greater than 0.")
        if chunk_size is not None and not isinstance(chunk_size, int):
            raise type_error(f"jacrev(): chunk_size must be an integer: {chunk_size!r}")
        check_real("jacrev", "inputs", leaves([args[position] for position in positions]))
        with Level(reverse=True) as level:
            inputs = [level.enter(args[position]) for position in positions]
            call = Application("jacrev", func, args, kwargs, positions, has_aux)
            output, aux = call.at(level, inputs)
            outputs = tensors_of("jacrev", output)
            check_real("jacrev", "outputs", outputs)
            flat = leaves(inputs)
            sizes = [output.array.size for output in outputs]

            def rows(*seeds: Tensor) -> tuple[Tensor, ...]:
                return tuple(pull(level, outputs, flat, list(seeds)))

            gradients: list[Tensor] = []
            if sum(sizes):
                seeds = unit_rows(outputs)
                gradients = list(level.released(_each(rows, chunk_size)(*seeds)))
            else:
                gradients = [zeros(like, (0, *like.array.shape)) for like in flat]
            by_output = blocks_of(gradients, sizes, 0)
            result = rebuilt(output, _arranged(by_output, outputs, inputs, flat, argnums))
            return (result, level.released(aux)) if has_aux else result

    return named(jacobian, "jacrev", func)


def _each(rows: Function, chunk_size: int | None) -> Function:
    """A function of rows, mapped; one at a time it is called as it is, as PyTorch does."""
    if chunk_size != 1:
        return vmap(rows, chunk_size=chunk_size)

    def one_by_one(*seeds: Tensor) -> tuple[Tensor, ...]:
        columns = zip(*(rows(*row) for row in zip(*seeds, strict=True)), strict=True)
        return tuple([stack_function(list(column)) for column in columns])

    return one_by_one


def _arranged(
    by_output: list[list[Tensor]],
    outputs: list[Tensor],
    inputs: list[Any],
    flat: list[Tensor],
    argnums: Argnums,
) -> list[Any]:
    """The blocks of a Jacobian in their shapes, for each output arranged as `argnums` says."""
    arranged = []
    for output, blocks in zip(outputs, by_output, strict=True):
        shapes = [(*output.array.shape, *like.array.shape) for like in flat]
        parts = rebuilt(inputs, list(map(view.apply, blocks, shapes)))
        arranged.append(tuple(parts) if isinstance(argnums, tuple) else parts[0])
    return arranged


@function(module=_MODULE)
def jacfwd(
    func: Function,
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Function:
    """A function that returns the Jacobian by columns; what it returns is that of `jacrev`."""

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("jacfwd", argnums, len(args))
        primals = leaves([args[position] for position in positions])
        check_real("jacfwd", "inputs", primals)
        check_moved("primal", primals)
        with Level() as level:
            inputs = [level.enter(args[position], as_leaves=False) for position in positions]
            flat = [with_history(tensor.array, tensor.grad_fn) for tensor in leaves(inputs)]
            call = Application("jacfwd", func, args, kwargs, positions, has_aux, is_forward=True)
            output, aux = call.at(level, inputs)
            outputs = tensors_of("jacfwd", output)
            check_real("jacfwd", "outputs", outputs)
            sizes = [tensor.array.size for tensor in flat]

            def columns(*directions: Tensor) -> tuple[Tensor, ...]:
                return tuple(push(level, outputs, outputs, flat, list(directions)))

            if sum(sizes):
                moved = vmap(columns, randomness=randomness)(*unit_rows(flat))
                tangents = list(level.released(moved))
            else:
                tangents = [zeros(like, (0, *like.array.shape)) for like in outputs]
            by_input = blocks_of([movedim(each, 0, -1) for each in tangents], sizes, -1)
            by_output = [list(blocks) for blocks in zip(*by_input, strict=True)]
            result = rebuilt(output, _arranged(by_output, outputs, inputs, flat, argnums))
            return (result, level.released(aux)) if has_aux else result

    return named(jacobian, "jacfwd", func)


@function(module=_MODULE)
def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that returns the Hessian: `jacfwd(jacrev(func))`."""
    return jacfwd(jacrev(func, argnums), argnums)
