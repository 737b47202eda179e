"""`gradcheck` and `gradgradcheck`: gradients compared with finite differences.

The Jacobian that backward passes or forward mode give is compared with the one that central
differences give. A complex tensor counts as its real and imaginary parts, so the numbers compared
are real throughout. As in PyTorch the inputs themselves are moved and moved back, so that a
function may reach them on another way than through its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, to_host
from gradcli.arrays.fusion.executor import assign
from gradcli.arrays.printing import format_tensor
from gradcli.autograd.engine import backward
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, join_graph, refresh, storage_of, with_history
from gradcli.errors import GradcliError, assertion_error, attribute_error, runtime_error
from gradcli.library.torch.func.forward import DualLevel, make_dual, unpack_dual
from gradcli.library.torch.func.vmap import vmap
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.creation.copies import detach
from gradcli.ops.shape.joining import stack_function
from gradcli.record import Record

Function = Callable[..., Any]

_MODULE = "torch.autograd.gradcheck"


class UndefinedGrad(Node):
    """A node that passes no gradient on."""

    __slots__ = ()

    node_name = "UndefinedGrad"

    def run(self, grads: Any, keep: bool) -> tuple[Any, ...]:
        return (None,)

    run_recorded = run


class _Check(Record):
    """A function at one point.

    Attributes:
        function: from tensors to tensors.
        inputs: its arguments.
        numbers: which of them are checked.
        outputs: the tensors that it returns.
        differentiable: the numbers of those that require grad.
        eps, atol, rtol: the step of the differences, and how far they may be off.
        nondet_tol: how far two backward passes may differ.
    """

    function: Function
    inputs: list[Any]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    numbers: Sequence[int] = ()
    outputs: Sequence[Tensor] = ()
    differentiable: Sequence[int] = ()

    def begin(self) -> None:
        """Find what is checked; raises E402 for nothing, E204 for elements that share memory."""
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
        for number in self.numbers:
            array = self.inputs[number].array
            if any(not step and n > 1 for step, n in zip(array.strides, array.shape, strict=True)):
                raise runtime_error(
                    f"gradcheck() cannot move the elements of {self._named(number)} one by one:"
                    " several of them share one place in memory",
                    help="pass x.contiguous()",
                )
        self.outputs = self._outputs(self.inputs)
        self.differentiable = [n for n, out in enumerate(self.outputs) if out.requires_grad]

    # --- the Jacobian in three ways -----------------------------------------------------------

    def _outputs(self, inputs: Sequence[Any]) -> list[Tensor]:
        outputs = _several(self.function(*inputs))
        for output in outputs:
            if not isinstance(output, Tensor):
                raise attribute_error(
                    f"gradcheck(): the function has to return tensors, not {type(output).__name__}"
                )
        return outputs

    def differences(self, number: int) -> list[Any]:
        """For each output the change of its parts by those of an input: a row for each part of the
        input.

        Raises E204 where an output's shape or dtype changes on the way.
        """
        tensor = self.inputs[number]
        rows: list[list[Any]] = [[] for _ in self.outputs]
        for position in np.ndindex(tensor.array.shape):
            for step in _units(tensor, self.eps):
                moved = []
                for each in (step, -step):
                    with _moved(tensor, position, each):
                        moved.append([_clone(output) for output in self._outputs(self.inputs)])
                for row, ahead, behind in zip(rows, *moved, strict=True):
                    self._check_alike(number, position, ahead, behind)
                    row.append((_parts(ahead.array) - _parts(behind.array)) / (2 * self.eps))
        return [np.array(row) for row in rows]

    def _check_alike(self, number: int, position: Any, one: Tensor, other: Tensor) -> None:
        for what, first, second in (
            ("shape", tuple(one.array.shape), tuple(other.array.shape)),
            ("dtype", one.dtype, other.dtype),
        ):
            if first != second:
                raise assertion_error(
                    f"gradcheck(): the {what} of an output changes from {first} to {second} when"
                    f" element {position} of {self._named(number)} moves"
                )

    def _gradients(self, output: Tensor) -> dict[int, Any]:
        """For each checked input the change of an output's parts, from a backward pass for each of
        them.
        """
        inputs = [self.inputs[number] for number in self.numbers]
        columns: dict[int, list[Any]] = {number: [] for number in self.numbers}
        for seed in _basis(output):
            gradients = backward.grad(
                [output], inputs, [seed], retain_graph=True, allow_unused=True
            )
            for number, tensor, gradient in zip(self.numbers, inputs, gradients, strict=True):
                array = np.zeros_like(tensor.array) if gradient is None else gradient.array
                columns[number].append(_parts(array))
        return {number: np.array(column).T for number, column in columns.items()}

    def _tangents(self, number: int) -> list[Any]:
        """For each output its tangents, from a pass of forward mode for each part of an input."""
        rows: list[list[Any]] = [[] for _ in self.outputs]
        for unit in _basis(self.inputs[number]):
            with DualLevel():
                moved = self._outputs(self._duals({number: unit}))
                for row, output in zip(rows, moved, strict=True):
                    row.append(_parts(_tangent_of(output).array))
        return [np.array(row) for row in rows]

    def _duals(self, tangents: dict[int, Tensor | None]) -> list[Any]:
        """The inputs as dual tensors: with tangents of zeros, but for those given; None for an
        input without one.
        """
        duals = list(self.inputs)
        for number in self.numbers:
            value = detach(self.inputs[number])
            value.requires_grad = True  # gradgradcheck's function differentiates it
            tangent = tangents.get(number, zeros_like(self.inputs[number]))
            duals[number] = value if tangent is None else make_dual(value, tangent)
        return duals

    # --- the checks ---------------------------------------------------------------------------

    def compare(self, forward: bool, reverse: bool) -> None:
        """Raise E412 where a Jacobian and the differences do not agree."""
        numeric = {number: self.differences(number) for number in self.numbers}
        if not self.differentiable:
            for number in self.numbers:
                pairs = zip(numeric[number], self.outputs, strict=True)
                if any(block.any() for block, out in pairs if out.array.dtype.kind in "fcV"):
                    raise _failed(
                        "no output requires grad, and yet the values change with"
                        f" {self._named(number)}",
                        help="something between input and output leaves the graph:"
                        " detach(), item(), no_grad()",
                    )
            return
        for output_nr in self.differentiable if reverse else ():
            analytic = self._gradients(self.outputs[output_nr])
            again = self._gradients(self.outputs[output_nr])
            for number in self.numbers:
                if (np.abs(analytic[number] - again[number]) > self.nondet_tol).any():
                    raise _failed("two backward passes of the same seed gave different gradients")
                self._compare(output_nr, number, numeric[number][output_nr], analytic[number])
        for number in self.numbers if forward else ():
            tangents = self._tangents(number)
            for output_nr in self.differentiable:
                self._compare(
                    output_nr, number, numeric[number][output_nr], tangents[output_nr], " forward"
                )

    def _compare(
        self, output_nr: int, number: int, numeric: Any, analytic: Any, mode: str = ""
    ) -> None:
        if numeric.size and not np.allclose(analytic, numeric, rtol=self.rtol, atol=self.atol):
            with np.errstate(invalid="ignore"):
                worst = int(np.argmax(np.nan_to_num(np.abs(analytic - numeric), nan=np.inf)))
            row, column = divmod(worst, numeric.shape[1])
            raise _failed(
                f"the{mode} Jacobian of output {output_nr} with respect to {self._named(number)}"
                f" differs from central differences, most at element [{row}, {column}]",
                text=f"Jacobian {'computed with forward mode ' if mode else ''}mismatch for output"
                f" {output_nr} with respect to input {number},\n"
                f"numerical:{Tensor(numeric)!r}\nanalytical:{Tensor(analytic)!r}\n",
                notes=(
                    f"numerical:  {_shown(numeric)}",
                    f"analytical: {_shown(analytic)}",
                ),
            )

    def check_undefined_tangents(self) -> None:
        """Raise E412 where a tangent of None does not count as one of zeros."""
        drawn = {n: _normal(self.inputs[n]) for n in self.numbers}
        for number in self.numbers:
            tangents = []
            for missing in (zeros_like(self.inputs[number]), None):
                with DualLevel():
                    outputs = self._outputs(self._duals({**drawn, number: missing}))
                    tangents.append([_tangent_of(output).array for output in outputs])
            for one, other in zip(*tangents, strict=True):
                if not np.allclose(one, other):
                    raise _failed(f"without a tangent, {self._named(number)} moves an output")

    def check_undefined_gradients(self) -> None:
        """Raise E412 where backward fails without a gradient of an output, or makes one."""
        count = len(self.differentiable)
        for undefined in (set(range(count)), *({n} for n in range(count) if count > 1)):
            outputs = [out for out in self._outputs(self.inputs) if out.requires_grad]
            shown = [
                _undefined(output) if number in undefined else output
                for number, output in enumerate(outputs)
            ]
            try:
                self._check_zero(shown, "although no gradient of an output is defined")
            except GradcliError as error:
                if error.raises != "RuntimeError":
                    raise
                raise _failed("backward cannot do without a gradient of an output") from error

    def check_zeros(self) -> None:
        """Raise E412 where seeds of zeros give a gradient that is not zero."""
        outputs = [self.outputs[number] for number in self.differentiable]
        if outputs:
            self._check_zero(outputs, "although the outputs' are")

    def _check_zero(self, outputs: list[Tensor], though: str) -> None:
        inputs = [self.inputs[number] for number in self.numbers]
        seeds = [zeros_like(detach(output)) for output in outputs]
        gradients = backward.grad(outputs, inputs, seeds, retain_graph=True, allow_unused=True)
        for number, gradient in zip(self.numbers, gradients, strict=True):
            if gradient is not None and (gradient.array != 0).any():
                raise _failed(f"the gradient of {self._named(number)} is not zero, {though}")

    def check_batched(self) -> None:
        """Raise E412 where `vmap` over the gradients of an output gives others than one by one."""
        inputs = [self.inputs[number] for number in self.numbers]
        for output_nr in self.differentiable:
            output = self.outputs[output_nr]

            def vjp(seed: Tensor, output: Tensor = output) -> tuple[Tensor, ...]:
                gradients = backward.grad(
                    [output], inputs, [seed], retain_graph=True, allow_unused=True
                )
                pairs = zip(gradients, inputs, strict=True)
                return tuple(
                    zeros_like(x) if gradient is None else gradient for gradient, x in pairs
                )

            _check_batch(vjp, [_normal(output) for _ in range(2)], f"output {output_nr}")

    def check_batched_forward(self) -> None:
        """The same for the tangents that an input causes."""
        for number in self.numbers:

            def jvp(tangent: Tensor, number: int = number) -> tuple[Tensor, ...]:
                rest: dict[int, Tensor | None] = dict.fromkeys(self.numbers)
                with DualLevel():
                    moved = self._outputs(self._duals({**rest, number: tangent}))
                    return tuple(_tangent_of(output) for output in moved)

            drawn = [_normal(self.inputs[number]) for _ in range(2)]
            _check_batch(jvp, drawn, self._named(number))

    def _named(self, number: int) -> str:
        name = self.inputs[number].name
        return f"input {number}" + (f" (`{name}`)" if name else "")


def _failed(problem: str, **more: Any) -> GradcliError:
    return GradcliError("E412", problem, **more)


def _several(value: Any) -> list[Any]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    for each in values:
        if isinstance(each, Tensor):
            refresh(each)
    return values


def _units(tensor: Tensor, size: float) -> list[complex]:
    """The steps in which an element moves: a complex one in two directions."""
    return [size, 1j * size] if tensor.array.dtype.kind == "c" else [size]


@contextmanager
def _moved(tensor: Tensor, position: tuple[int, ...], step: complex) -> Iterator[None]:
    """One element of a tensor's memory moved by a step; the write is not counted."""
    storage_of(tensor)
    before = tensor.array.copy()
    after = before.copy()
    after[position] += step
    assign(tensor.array, after)
    try:
        yield
    finally:
        assign(tensor.array, before)


def _basis(tensor: Tensor) -> Iterator[Tensor]:
    """The unit vectors of a tensor's parts."""
    for position in np.ndindex(tensor.array.shape):
        for unit in _units(tensor, 1.0):
            array = module_of(tensor.array).zeros(tensor.array.shape, tensor.array.dtype)
            array[position] = unit
            yield Tensor(array[()])


def _clone(tensor: Tensor) -> Tensor:
    return Tensor(module_of(tensor.array).array(tensor.array)[()])


def _normal(tensor: Tensor) -> Tensor:
    return torch.randn_like(detach(tensor))


def _tangent_of(output: Tensor) -> Tensor:
    tangent = unpack_dual(output)[1]
    return zeros_like(detach(output)) if tangent is None else tangent


def _undefined(output: Tensor) -> Tensor:
    node = UndefinedGrad()
    join_graph(node, [output], [output])
    return with_history(output.array, node)


def _check_batch(function: Function, drawn: list[Tensor], what: str) -> None:
    columns = zip(*(function(each) for each in drawn), strict=True)
    expected = [stack_function(list(column)) for column in columns]
    try:
        batched = vmap(function)(stack_function(drawn))
    except GradcliError as error:
        if error.raises != "RuntimeError":
            raise
        raise _failed(f"vmap() over the derivatives of {what} fails: {error.message}") from error
    for one, other in zip(batched, expected, strict=True):
        if not np.allclose(one.array, other.array):
            raise _failed(f"vmap() over the derivatives of {what} gives others than one by one")


def _parts(array: Any) -> Any:
    """The elements of an array as real numbers, a complex one as two."""
    flat = np.asarray(to_host(array)).reshape(-1)
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


def _needs(name: str, wanted: bool, *needed: tuple[str, bool], text: str | None = None) -> None:
    if wanted and not any(value for _, value in needed):
        raise assertion_error(f"{name} needs {' or '.join(each for each, _ in needed)}", text=text)


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
        nondet_tol: how far two backward passes may differ.
        check_undefined_grad: check that a missing gradient or tangent counts as zeros.
        check_backward_ad, check_forward_ad: which modes are checked.
        check_batched_grad, check_batched_forward_grad: check them under `vmap` too.

    `fast_mode`, `masked` and `check_grad_dtypes` change no verdict: the whole Jacobian is compared,
    and a gradient always has its input's dtype. Raises E412 for gradients that do not agree, E402
    where no input requires grad.

    Example:
        torch.autograd.gradcheck(
            lambda x: x * x, tensor(1., dtype=torch.float64, requires_grad=True)
        )
    """
    modes = (("check_forward_ad", check_forward_ad), ("check_backward_ad", check_backward_ad))
    either = "Expected at least one of check_forward_ad or check_backward_ad to be True"
    forward = "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
    backward = "Setting check_batched_grad=True requires check_backward_ad to be True"
    _needs("gradcheck()", True, *modes, text=either)
    _needs("check_batched_grad", check_batched_grad, modes[1], text=backward)
    _needs("check_batched_forward_grad", check_batched_forward_grad, modes[0], text=forward)

    def check() -> None:
        this = _Check(func, _several(inputs), eps, atol, rtol, nondet_tol)
        this.begin()
        this.compare(check_forward_ad, check_backward_ad)
        if check_forward_ad and check_undefined_grad:
            this.check_undefined_tangents()
        if check_batched_forward_grad:
            this.check_batched_forward()
        if not check_backward_ad:
            return
        if check_batched_grad:
            this.check_batched()
        this.check_zeros()
        if check_undefined_grad and this.differentiable:
            this.check_undefined_gradients()

    return _verdict(check, raise_exception)


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
        check_rev_over_rev, check_fwd_over_rev: which modes differentiate the gradients.

    The other arguments, and the errors, are those of `gradcheck`.

    Example:
        torch.autograd.gradgradcheck(
            lambda x: x * x, tensor(1., dtype=torch.float64, requires_grad=True)
        )
    """
    _needs(
        "gradgradcheck()",
        True,
        ("check_fwd_over_rev", check_fwd_over_rev),
        ("check_rev_over_rev", check_rev_over_rev),
    )
    for name, wanted in (("undefined", check_undefined_grad), ("batched", check_batched_grad)):
        _needs(f"check_{name}_grad", wanted, ("check_rev_over_rev", check_rev_over_rev))
    arguments = _several(inputs)
    if grad_outputs is None:
        seeds = [_seed(output) for output in _several(func(*arguments)) if output.requires_grad]
    else:
        seeds = _several(grad_outputs)
    return gradcheck(
        _gradients_of(func, arguments, seeds),
        (*arguments, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )


def _gradients_of(func: Function, points: list[Any], seeds: list[Tensor]) -> Function:
    """The function from inputs and seeds to the gradients of those inputs that require grad."""
    wanted = [n for n, x in enumerate(points) if isinstance(x, Tensor) and x.requires_grad]
    seeded = [number for number, seed in enumerate(seeds) if seed.requires_grad]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        tensors, directions = args[: len(points)], args[len(points) :]
        for of, numbers in ((tensors, wanted), (directions, seeded)):
            for number in numbers:
                methods.requires_grad_(of[number])
        outputs = [output for output in _several(func(*tensors)) if output.requires_grad]
        inputs = [tensors[number] for number in wanted]
        arrived = backward.grad(
            outputs, inputs, list(directions), create_graph=True, allow_unused=True
        )
        return tuple(gradient for gradient in arrived if gradient is not None)

    return gradients


def _seed(output: Tensor) -> Tensor:
    """A seed that requires grad, drawn between -1 and 1."""
    seed = zeros_like(detach(output))
    parts = torch.view_as_real(seed) if seed.dtype.is_complex else seed
    methods.uniform_(parts, -1, 1)
    seed.requires_grad = True
    return seed
