"""`gradcheck` and `gradgradcheck`: gradients compared with finite differences.

The Jacobian that backward passes give is compared with the one that central differences give. A
complex tensor counts as its real and imaginary parts, so the numbers compared are real throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.printing import format_tensor
from gradcli.arrays.random.generator import Generator
from gradcli.autograd.engine import backward
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.tensor import Tensor, alias
from gradcli.errors import GradcliError
from gradcli.ops.binding.catalogue import function

Function = Callable[..., Any]

_MODULE = "torch.autograd.gradcheck"


class _Check:
    """A function at one point.

    Attributes:
        function: from tensors to tensors.
        inputs: its arguments.
        numbers: which of them are checked.
        eps, atol, rtol: the step of the differences, and how far they may be off.
    """

    __slots__ = ("atol", "eps", "function", "inputs", "numbers", "rtol")

    def __init__(
        self, function: Function, inputs: Any, eps: float, atol: float, rtol: float
    ) -> None:
        self.function = function
        self.inputs = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.numbers = [
            number
            for number, value in enumerate(self.inputs)
            if isinstance(value, Tensor) and value.requires_grad
        ]
        if not self.numbers:
            raise GradcliError(
                "E402",
                "gradcheck() needs an input that requires grad",
                text="gradcheck expects at least one input tensor to require gradient, but none of"
                " them have requires_grad=True.",
                raises="ValueError",
            )

    def run(self) -> None:
        """Raise E412 where the gradients and the differences do not agree."""
        with EnableGrad():
            outputs = self._outputs(self.inputs)
        numeric = {number: self._differences(number, len(outputs)) for number in self.numbers}
        if not any(output.requires_grad for output in outputs):
            for number in self.numbers:
                if any(block.any() for block in numeric[number]):
                    raise GradcliError(
                        "E412",
                        "no output requires grad, and yet the values change with"
                        f" {self._named(number)}",
                        help="something between input and output leaves the graph:"
                        " detach(), item(), no_grad()",
                    )
            return
        for output_nr, output in enumerate(outputs):
            if output.requires_grad:
                analytic = self._gradients(output)
                for number in self.numbers:
                    self._compare(output_nr, number, numeric[number][output_nr], analytic[number])

    def _outputs(self, inputs: Sequence[Any]) -> list[Tensor]:
        """The differentiable outputs."""
        result = self.function(*inputs)
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        return [
            output
            for output in found
            if isinstance(output, Tensor) and output.array.dtype.kind in "fcV"
        ]

    def _differences(self, number: int, count: int) -> list[Any]:
        """For each output the change of its parts by those of an input: a row for each part of the
        input.
        """
        tensor = self.inputs[number]
        steps: list[complex] = [self.eps]
        if tensor.array.dtype.kind == "c":
            steps.append(1j * self.eps)
        rows: list[list[Any]] = [[] for _ in range(count)]
        for position in range(tensor.array.size):
            for step in steps:
                ahead = self._moved(number, position, step)
                behind = self._moved(number, position, -step)
                for row, plus, minus in zip(rows, ahead, behind, strict=True):
                    row.append((plus - minus) / (2 * self.eps))
        return [np.array(row) for row in rows]

    def _moved(self, number: int, position: int, step: complex) -> list[Any]:
        """The outputs' parts, with one element of one input moved by a step."""
        tensor = self.inputs[number]
        array = np.array(tensor.array, order="C")
        array.reshape(-1)[position] += step
        moved = Tensor(array[()] if not array.ndim else array)
        moved.requires_grad = True
        fresh = {id(tensor): moved}  # a tensor that is given twice stays one tensor
        inputs = []
        for each in self.inputs:
            if isinstance(each, Tensor) and id(each) not in fresh:
                fresh[id(each)] = new = alias(each)
                new.requires_grad = each.requires_grad
            inputs.append(fresh.get(id(each), each))
        return [_parts(output.array) for output in self._outputs(inputs)]

    def _gradients(self, output: Tensor) -> dict[int, Any]:
        """For each checked input the change of an output's parts, from a backward pass for each of
        them.
        """
        inputs = [self.inputs[number] for number in self.numbers]
        units: list[complex] = [1.0, 1j] if output.array.dtype.kind == "c" else [1.0]
        columns: dict[int, list[Any]] = {number: [] for number in self.numbers}
        for position in range(output.array.size):
            for unit in units:
                seed = np.zeros(output.array.shape, output.array.dtype)
                seed.reshape(-1)[position] = unit
                found = backward.grad(
                    [output], inputs, [Tensor(seed[()])], retain_graph=True, allow_unused=True
                )
                for number, tensor, gradient in zip(self.numbers, inputs, found, strict=True):
                    array = np.zeros_like(tensor.array) if gradient is None else gradient.array
                    columns[number].append(_parts(array))
        return {number: np.array(column).T for number, column in columns.items()}

    def _compare(self, output_nr: int, number: int, numeric: Any, analytic: Any) -> None:
        if numeric.size and not np.allclose(analytic, numeric, rtol=self.rtol, atol=self.atol):
            with np.errstate(invalid="ignore"):
                worst = int(np.argmax(np.nan_to_num(np.abs(analytic - numeric), nan=np.inf)))
            row, column = divmod(worst, numeric.shape[1])
            raise GradcliError(
                "E412",
                f"the Jacobian of output {output_nr} with respect to {self._named(number)} differs"
                f" from central differences, most at element [{row}, {column}]",
                notes=(
                    f"numerical:  {_shown(numeric)}",
                    f"analytical: {_shown(analytic)}",
                ),
            )

    def _named(self, number: int) -> str:
        name = self.inputs[number].name
        return f"input {number}" + (f" (`{name}`)" if name else "")


def _parts(array: Any) -> Any:
    """The elements of an array as real numbers, a complex one as two."""
    flat = np.asarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        return np.stack([flat.real, flat.imag], axis=1).reshape(-1)
    return flat.astype(np.float64) if flat.dtype.kind != "f" else flat.copy()


def _shown(matrix: Any) -> str:
    return format_tensor(matrix).replace("\n", "\n            ")


def _verdict(check: Callable[[], None], raise_exception: bool) -> bool:
    """True where a check passes; False where it fails, unless that is to be raised."""
    try:
        check()
    except GradcliError as error:
        if raise_exception or error.code != "E412":
            raise
        return False
    return True


@function(module=_MODULE)
def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether a function's gradients agree with differences of its values.

    Args:
        func: from tensors to a tensor or a tuple of them.
        inputs: a tensor or a tuple; those that require grad are checked, and should be float64 or
            complex128.
        eps: the step of the differences.
        atol, rtol: how far a gradient may be off, absolutely and relatively.
        raise_exception: whether a failed check is an error; False is returned otherwise.

    The other arguments choose among PyTorch's methods to run a check, and change no verdict here:
    the whole Jacobian is compared. Raises E412 for gradients that do not agree, E402 where no input
    requires grad.

    Example:
        torch.autograd.gradcheck(
            lambda x: x * x, tensor(1., dtype=torch.float64, requires_grad=True)
        )
    """
    return _verdict(_Check(func, inputs, eps, atol, rtol).run, raise_exception)


@function(module=_MODULE)
def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of gradients agree with differences of gradients.

    Args:
        grad_outputs: the seeds of the first gradients; random ones when None.

    The other arguments, and the errors, are those of `gradcheck`.

    Example:
        torch.autograd.gradgradcheck(
            lambda x: x * x, tensor(1., dtype=torch.float64, requires_grad=True)
        )
    """
    given = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    with EnableGrad():
        result = func(*given)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    kept = [n for n, out in enumerate(outputs) if isinstance(out, Tensor) and out.requires_grad]
    if grad_outputs is None:
        seeds = _random_seeds([outputs[number] for number in kept])
    else:
        seeds = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        tensors, directions = args[: len(given)], args[len(given) :]
        returned = func(*tensors)
        several = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        wanted = [t for t in tensors if isinstance(t, Tensor) and t.requires_grad]
        found = backward.grad(
            [several[number] for number in kept],
            wanted,
            list(directions),
            create_graph=True,
            allow_unused=True,
        )
        return tuple(gradient for gradient in found if gradient is not None)

    check = _Check(gradients, [*given, *seeds], eps, atol, rtol)
    return _verdict(check.run, raise_exception)


def _random_seeds(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Seeds that require grad, drawn by a generator of their own: the global one does not
    advance.
    """
    generator = Generator()
    seeds = []
    for output in outputs:
        array = output.array
        drawn = generator.normal(array.size, np.dtype(np.float64)).reshape(array.shape)
        seeds.append(Tensor(drawn.astype(array.dtype)[()], requires_grad=True))
    return seeds
