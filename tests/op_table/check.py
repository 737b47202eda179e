"""The checker of gradients: what a function's derivatives are held against.

A function is checked at one point and from one random seed, never from ones, which would hide a
wrong permutation. For inputs `x` and seed vectors `s`:

- order 1 compares the gradient of `<s, f(x)>` with central differences, element by element;
- order 2 contracts that gradient with random vectors `w` and compares the gradient of the result
  with central differences of the first gradient in `x`, and with its differences in `s`, in which
  it is linear;
- the gradient computed with arrays must equal the one recorded with tensors.

Everything runs in float64. A check that fails raises `WrongGradient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.autograd.engine.backward import grad
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor

Function = Callable[..., Any]
Arrays = Sequence[Any]

STEP = 1e-3
"""Of the differences; their error is of the fourth order in it, about 1e-12."""

TOLERANCE = 1e-6
"""Relative to the largest element of the gradient, or to 1 where that is smaller."""


class WrongGradient(AssertionError):
    """A gradient that differs from what it was compared with."""


def leaf(array: Any) -> Tensor:
    """A tensor of an array that requires grad; 0-dim values are NumPy scalars, as in a run."""
    return Tensor(np.array(array)[()], True)


def check(
    function: Function, arrays: Arrays, *, order: int, generator: np.random.Generator
) -> None:
    """Check the gradients of a function of tensors at a point.

    Args:
        function: from one tensor for each array to a tensor, or a tuple or list with tensors in it.
        arrays: the point, float64 arrays.
        order: 1 or 2.
        generator: draws the seed vectors.

    Raises:
        WrongGradient: a gradient is wrong, has the wrong shape or dtype, or there is none.
    """
    outputs = differentiable(function(*map(leaf, arrays)))
    if not outputs:
        raise WrongGradient("no output requires grad")
    seeds = [generator.normal(size=output.array.shape) for output in outputs]

    def product(*point: Any) -> float:
        results = differentiable(function(*map(leaf, point)))
        return sum(float(np.sum(s * r.array)) for s, r in zip(seeds, results, strict=True))

    found = first_order(function, arrays, seeds)
    compare("order 1", found, [differences(product, arrays, i) for i in range(len(arrays))])
    recorded = [Tensor(np.array(seed)[()]) for seed in seeds]
    graph = gradients(function, list(map(leaf, arrays)), recorded, create_graph=True)
    compare("the recorded gradient", [g.array for g in graph], found, tolerance=1e-12)
    if order == 2:
        _check_second_order(function, arrays, seeds, generator)


def _check_second_order(
    function: Function, arrays: Arrays, seeds: list[Any], generator: np.random.Generator
) -> None:
    weights = [generator.normal(size=np.shape(array)) for array in arrays]
    count = len(arrays)

    def product(*point: Any) -> float:
        firsts = first_order(function, point[:count], list(point[count:]))
        return sum(float(np.sum(w * g)) for w, g in zip(weights, firsts, strict=True))

    point = [*arrays, *seeds]
    leaves = list(map(leaf, point))
    firsts = gradients(function, leaves[:count], leaves[count:], create_graph=True)
    pairs = [(g, w) for g, w in zip(firsts, weights, strict=True) if g.requires_grad]
    found = [np.zeros(np.shape(array)) for array in point]
    if pairs:
        outputs = [g for g, _ in pairs]
        vectors = [Tensor(np.array(w)[()]) for _, w in pairs]
        seconds = grad(outputs, leaves, vectors, allow_unused=True)
        found = [
            zero if second is None else second.array
            for zero, second in zip(found, seconds, strict=True)
        ]
    expected = [differences(product, point, number) for number in range(count)]
    expected += [steps(product, point, number) for number in range(count, len(point))]
    compare("order 2", found, expected)


def first_order(function: Function, arrays: Arrays, seeds: Sequence[Any]) -> list[Any]:
    """The gradients of `<seeds, function(arrays)>`, computed with arrays; zeros where none is."""
    vectors = [Tensor(np.array(seed)[()]) for seed in seeds]
    return [g.array for g in gradients(function, list(map(leaf, arrays)), vectors)]


def gradients(
    function: Function, leaves: list[Tensor], seeds: list[Tensor], create_graph: bool = False
) -> list[Tensor]:
    """The gradient of the seeded outputs for each leaf, of the leaf's shape and dtype."""
    outputs = differentiable(function(*leaves))
    found = grad(outputs, leaves, seeds, create_graph=create_graph, allow_unused=True)
    result = []
    for x, gradient in zip(leaves, found, strict=True):
        gradient = Tensor(np.zeros_like(x.array)) if gradient is None else gradient
        if gradient.array.shape != x.array.shape or gradient.array.dtype != x.array.dtype:
            raise WrongGradient(
                f"a gradient of shape {gradient.array.shape} and {gradient.array.dtype}"
                f" for an input of shape {x.array.shape} and {x.array.dtype}"
            )
        result.append(gradient)
    return result


def differentiable(outputs: Any) -> list[Tensor]:
    """The tensors that require grad in a function's result."""
    if isinstance(outputs, Tensor):
        return [outputs] if outputs.requires_grad else []
    return [output for part in outputs for output in differentiable(part)]


def differences(product: Callable[..., float], arrays: Arrays, number: int) -> Any:
    """Central differences of a scalar function in each element of one of its arrays."""
    result = np.zeros(np.shape(arrays[number]))
    for position in np.ndindex(result.shape):
        slope = 0.0
        for offset, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            moved = [np.array(array) for array in arrays]
            moved[number][position] += offset * STEP
            slope += weight * product(*moved)
        result[position] = slope / (12 * STEP)
    return result


def steps(product: Callable[..., float], arrays: Arrays, number: int) -> Any:
    """What a scalar function that is linear in one of its arrays, as a gradient is in its seeds,
    gains where an element of that grows by 1.
    """
    result = np.zeros(np.shape(arrays[number]))
    base = product(*arrays)
    for position in np.ndindex(result.shape):
        moved = [np.array(array) for array in arrays]
        moved[number][position] += 1.0
        result[position] = product(*moved) - base
    return result


def compare(what: str, found: Arrays, expected: Arrays, tolerance: float = TOLERANCE) -> None:
    """Raise `WrongGradient` unless the arrays agree."""
    for number, (left, right) in enumerate(zip(found, expected, strict=True)):
        scale = max(1.0, float(np.max(np.abs(right), initial=0.0)))
        if not np.allclose(left, right, rtol=0.0, atol=tolerance * scale):
            raise WrongGradient(f"{what}, input {number}: found\n{left}\nexpected\n{right}")


def graph_of(tensors: Sequence[Tensor]) -> Iterator[Node]:
    """Every node of the graphs that the tensors came from."""
    seen: set[Node] = set()
    stack = [tensor.grad_fn for tensor in tensors]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            stack += node.next_nodes
