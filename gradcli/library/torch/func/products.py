"""`torch.autograd.functional`: Jacobians, Hessians, and their products with a vector.

The functions work on a tensor or a tuple of tensors, and their results have the structure of
their arguments: a tensor where there was one tensor, a tuple where there was a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.engine import backward
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.tensor import Tensor, alias, refresh, refuse_transformed
from gradcli.errors import GradcliError, assertion_error, runtime_error, type_error
from gradcli.library.torch.func.forward import basis, pushforward
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.catalogue import function
from gradcli.ops.shape.joining import stack_function
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.slicing import select_function
from gradcli.ops.shape.views import reshape_function, view_as, view_function

_MODULE = "torch.autograd.functional"


class _Call:
    """A function with the inputs and outputs of one call, recorded in the graph.

    Attributes:
        inputs, outputs: the tensors.
        several_inputs, several_outputs: whether they came in a tuple.
        create_graph: whether the derivatives shall carry a graph.
        strict: whether an output that is independent of an input is an error.
    """

    __slots__ = (
        "create_graph",
        "inputs",
        "name",
        "outputs",
        "several_inputs",
        "several_outputs",
        "strict",
    )

    def __init__(
        self, name: str, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool
    ) -> None:
        self.name = name
        self.create_graph = create_graph
        self.strict = strict
        refuse_transformed(f"torch.autograd.functional.{name}()")
        tensors, self.several_inputs = _tensors(name, "inputs", inputs)
        with EnableGrad():
            self.inputs = [_fresh(tensor, create_graph, True) for tensor in tensors]
            result = func(*self.inputs)
        self.outputs, self.several_outputs = _tensors(name, "outputs of the function", result)
        if strict:
            for number, output in enumerate(self.outputs):
                if not output.requires_grad:
                    raise _constant_output(name, number)

    def vector(self, v: Any, like: list[Tensor], several: bool) -> list[Tensor] | None:
        """The vector of a product, checked against the tensors that it has to fit.

        Raises E406 where it does not, or where it is None and they are not one element.
        """
        if v is None:
            if len(like) != 1 or like[0].array.size != 1:
                raise GradcliError(
                    "E406",
                    f"{self.name}(): the vector v can only be left out where it has one element",
                    text="The vector v can only be None if the input to the user-provided function"
                    " is a single Tensor with a single element.",
                    help="pass v, of the same shapes",
                )
            return None
        parts, _ = _tensors(self.name, "v", v)
        if len(parts) != len(like):
            raise GradcliError(
                "E406",
                f"{self.name}(): v holds {len(parts)} tensors where {len(like)} are needed",
                text="The given v should contain a single Tensor."
                if not several
                else f"v is a tuple of invalid length: should be {len(like)} but got {len(parts)}.",
            )
        for number, (have, want) in enumerate(zip(parts, like, strict=True)):
            if have.array.shape != want.array.shape:
                entry = f"entry {number} of v" if several else "v"
                raise GradcliError(
                    "E406",
                    f"{self.name}(): {entry} has shape {tuple(have.array.shape)} where"
                    f" {tuple(want.array.shape)} is needed",
                    text=f"{f'Entry {number} in ' if several else ''}v has invalid size: should be"
                    f" torch.Size({list(want.array.shape)}) but got"
                    f" torch.Size({list(have.array.shape)}).",
                )
        return [_fresh(tensor, self.create_graph, False) for tensor in parts]

    def scalar(self) -> None:
        """Raise E204 unless the function returned one tensor of one element."""
        if self.several_outputs or self.outputs[0].array.size != 1:
            raise runtime_error(
                f"{self.name}(): the function has to return a single tensor with one element",
                text=f"The Tensor returned by the function given to {self.name} should contain a"
                " single element",
            )

    def filled(
        self,
        gradients: Sequence[Tensor | None],
        like: Sequence[Tensor],
        of: str = "The output",
    ) -> list[Tensor]:
        """Gradients with zeros for those that are None; E407 for them if `strict`.

        Args:
            of: what is differentiated, as PyTorch calls it.
        """
        filled = []
        for number, (gradient, tensor) in enumerate(zip(gradients, like, strict=True)):
            if self.strict and gradient is None:
                raise _independent(
                    self.name,
                    f"the derivative does not depend on the tensor at index {number}",
                    f"{of} of the user-provided function is independent of input {number}. This is"
                    " not allowed in strict mode.",
                )
            if self.strict and self.create_graph and not _varies(gradient):
                raise _constant_jacobian(self.name, number)
            filled.append(zeros_like(tensor) if gradient is None else gradient)
        return filled

    def result(self, tensors: Sequence[Tensor], several: bool) -> Any:
        """Tensors as they are returned: without history unless `create_graph`."""
        shown = tuple(tensors) if self.create_graph else tuple(alias(t) for t in tensors)
        return shown if several else shown[0]


def _varies(gradient: Tensor | None) -> bool:
    return gradient is None or gradient.requires_grad


def _independent(name: str, what: str, text: str) -> GradcliError:
    return GradcliError(
        "E407", f"{name}(): {what}", text=text, help="without strict=True its derivative is zero"
    )


def _constant_output(name: str, number: int) -> GradcliError:
    return _independent(
        name,
        f"output {number} does not depend on the inputs",
        f"Output {number} of the user-provided function does not require gradients. The outputs"
        " must be computed in a differentiable manner from the input when running in strict mode.",
    )


def _constant_jacobian(name: str, number: int) -> GradcliError:
    """The error of a derivative that is the same for all inputs, where it is differentiated."""
    text = (
        f"While computing the hessian, found that the jacobian of the user-provided function with"
        f" respect to input {number} is independent of the input. This is not allowed in strict"
        " mode. You should ensure that your function is twice differentiable and that the jacobian"
        " depends on the inputs (this would be violated by a linear function for example)."
        if name in ("hessian", "hvp", "vhp")
        else f"The jacobian of the user-provided function is independent of input {number}. This is"
        " not allowed in strict mode when create_graph=True."
    )
    return _independent(name, f"the derivative by the tensor at index {number} is constant", text)


def _not_tensors(name: str, what: str, value: Any, index: int | None) -> str:
    """PyTorch's text for an argument or a result that is no tensor."""
    kind = what.partition(" ")[0]
    whole = f"{kind} of the user-provided function" if kind == "outputs" else kind
    at = f"the given {whole} has" if index is None else f"the value at index {index} has"
    return (
        f"The {whole} given to {name} must be either a Tensor or a tuple of Tensors but {at} type"
        f" <class '{type(value).__name__}'>."
    )


def _tensors(name: str, what: str, value: Any) -> tuple[list[Tensor], bool]:
    """The tensors of an argument, and whether they came in a tuple; raises E202."""
    several = isinstance(value, tuple)
    tensors = list(value) if several else [value]
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise type_error(
                f"{name}(): the {what} must be a tensor or a tuple of tensors, not"
                f" {type(tensor).__name__}",
                text=_not_tensors(name, what, tensor, tensors.index(tensor) if several else None),
            )
        refresh(tensor)
    return tensors, several


def _fresh(tensor: Tensor, create_graph: bool, requires_grad: bool) -> Tensor:
    """A new tensor of the same values: the function may also use the given tensor itself."""
    if create_graph and tensor.requires_grad:
        return view_as(tensor, tensor)
    result = alias(tensor)
    if requires_grad and result.array.dtype.kind not in "fcV":
        raise GradcliError(
            "E402", f"only floating and complex tensors have derivatives, not {tensor.dtype}"
        )
    result.requires_grad = requires_grad
    return result


def _gradients(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    seeds: Sequence[Tensor] | None,
    create_graph: bool,
    retain_graph: bool = False,
) -> list[Tensor | None]:
    """The gradients of those outputs that require grad, None where there is no path."""
    pairs = [
        (output, None if seeds is None else seeds[number])
        for number, output in enumerate(outputs)
        if output is not None and output.requires_grad
    ]
    if not pairs:
        return [None] * len(inputs)
    return list(
        backward.grad(
            [output for output, _ in pairs],
            list(inputs),
            None if seeds is None else [seed for _, seed in pairs],
            retain_graph=retain_graph or create_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    )


def _zero_seeds(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Seeds that gradients are linear in: their own derivative does not depend on their values."""
    seeds = [zeros_like(tensor) for tensor in tensors]
    for seed in seeds:
        seed.requires_grad = True
    return seeds


# --- products with a vector ---------------------------------------------------------------------


def _product(of_scalar: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a product with a vector reachable: a function that computes it, None where there is no
    path, and says which tensors it is like and whether they came in a tuple.
    """

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        def product(
            func: Callable[..., Any],
            inputs: Any,
            v: Any = None,
            create_graph: bool = False,
            strict: bool = False,
        ) -> tuple[Any, Any]:
            call = _Call(body.__name__, func, inputs, create_graph, strict)
            if of_scalar:
                call.scalar()
            computed, like, several = body(call, v)
            return (
                call.result(call.outputs, call.several_outputs),
                call.result(call.filled(computed, like), several),
            )

        product.__doc__ = body.__doc__
        return function(body.__name__, module=_MODULE)(product)

    return decorate


@_product(of_scalar=False)
def vjp(call: _Call, v: Any) -> Any:
    """The function's outputs, and `v` times its Jacobian, in the shape of the inputs.

    Raises E406 where v does not fit the outputs, E407 if `strict` and something is independent.
    """
    seeds = call.vector(v, call.outputs, call.several_outputs)
    gradients = _gradients(call.outputs, call.inputs, seeds, call.create_graph)
    return gradients, call.inputs, call.several_inputs


@_product(of_scalar=False)
def jvp(call: _Call, v: Any) -> Any:
    """The function's outputs, and its Jacobian times `v`, in the shape of the outputs.

    Raises E406 where v does not fit the inputs, E407 if `strict` and something is independent.
    """
    tangents = call.vector(v, call.inputs, call.several_inputs)
    seeds = _zero_seeds(call.outputs)
    with EnableGrad():
        transposed = _gradients(call.outputs, call.inputs, seeds, True)
        if call.strict:
            call.filled(transposed, call.inputs)
    product = _gradients(transposed, seeds, tangents, call.create_graph)
    return product, call.outputs, call.several_outputs


def _slopes(call: _Call) -> list[Tensor | None]:
    """The gradient of a scalar function, recorded; raises E407 if `strict` and it is constant."""
    first = _gradients(call.outputs, call.inputs, None, True)
    if call.strict:
        call.filled(first, call.inputs)
        for number, gradient in enumerate(first):
            if not _varies(gradient):
                raise _constant_jacobian(call.name, number)
    return first


@_product(of_scalar=True)
def vhp(call: _Call, v: Any) -> Any:
    """The scalar function's value, and `v` times its Hessian, in the shape of the inputs.

    Raises E204 where the function returns anything but one element, E406 and E407 as `vjp`.
    """
    seeds = call.vector(v, call.inputs, call.several_inputs)
    product = _gradients(_slopes(call), call.inputs, seeds, call.create_graph)
    return product, call.inputs, call.several_inputs


@_product(of_scalar=True)
def hvp(call: _Call, v: Any) -> Any:
    """The scalar function's value, and its Hessian times `v`, in the shape of the inputs.

    Raises E204 where the function returns anything but one element, E406 and E407 as `vjp`.
    """
    tangents = call.vector(v, call.inputs, call.several_inputs)
    seeds = _zero_seeds(call.inputs)
    transposed = _gradients(_slopes(call), call.inputs, seeds, True)
    product = _gradients(transposed, seeds, tangents, call.create_graph)
    return product, call.inputs, call.several_inputs


# --- matrices -----------------------------------------------------------------------------------


@function(module=_MODULE)
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The function's Jacobian, of shape `(*output.shape, *input.shape)`: for tuples of outputs a
    tuple by output, for tuples of inputs (inside that) a tuple by input.

    `vectorize` says how PyTorch computes, and changes no value; only with it are complex outputs
    taken. Raises E407 if `strict` and something is independent.
    """
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    if strategy != "reverse-mode":
        raise assertion_error("jacobian(): strategy is 'reverse-mode' or 'forward-mode'")
    if strict and vectorize:
        raise runtime_error(
            "jacobian(): strict and vectorize exclude each other",
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not"
            " supported together. Please either set `strict=False` or `vectorize=False`.",
        )
    call = _Call("jacobian", func, inputs, create_graph, strict)
    with EnableGrad():
        blocks = [
            call.result(_rows(call, number, vectorize), call.several_inputs)
            for number in range(len(call.outputs))
        ]
    return tuple(blocks) if call.several_outputs else blocks[0]


def _rows(call: _Call, number: int, vectorize: bool) -> list[Tensor]:
    """The Jacobian of one output for each input, by rows: one backward pass for each element."""
    output = call.outputs[number]
    flat = reshape_function(output, -1)
    # Vectorised, PyTorch seeds each row, and so takes complex outputs as well.
    seeds = [Tensor(output.array.dtype.type(1))] if vectorize else None
    rows = [
        call.filled(
            _gradients(
                [select_function(flat, 0, i)],
                call.inputs,
                seeds,
                call.create_graph,
                retain_graph=True,
            ),
            call.inputs,
            f"Output {number}",
        )
        for i in range(output.array.size)
    ]
    return [
        view_function(
            stack_function([row[at] for row in rows]), (*output.array.shape, *tensor.array.shape)
        )
        for at, tensor in enumerate(call.inputs)
    ]


def _forward_jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian by columns: one pass of forward mode for each element of the inputs."""
    if create_graph or not vectorize:
        raise GradcliError(
            "E205",
            "jacobian(): the strategy 'forward-mode' needs vectorize=True and no create_graph",
        )
    if strict:
        raise runtime_error("jacobian(): strict and 'forward-mode' exclude each other")
    call = _Call("jacobian", func, inputs, False, False)
    blocks: list[list[Tensor]] = [[] for _ in call.outputs]
    for number, tensor in enumerate(call.inputs):
        columns = []
        for direction in basis(tensor):
            tangents: list[Tensor | None] = [None] * len(call.inputs)
            tangents[number] = direction
            columns.append(pushforward(call.outputs, call.inputs, tangents, create_graph=False))
        for at, block in enumerate(blocks):
            column = stack_function([moved[at] for moved in columns])
            shape = (*call.outputs[at].array.shape, *tensor.array.shape)
            block.append(reshape_function(movedim(column, 0, -1), shape))
    shown = [call.result(block, call.several_inputs) for block in blocks]
    return tuple(shown) if call.several_outputs else shown[0]


@function(module=_MODULE)
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function, of shape `(*input.shape, *input.shape)`; for a tuple of
    inputs a tuple of tuples.

    Raises E204 where the function returns anything but one element, E407 if `strict` and something
    is independent.
    """
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise assertion_error(
            "hessian(): outer_jacobian_strategy is 'reverse-mode' or 'forward-mode'"
        )
    _, several = _tensors("hessian", "inputs", inputs)

    def scalar(*tensors: Tensor) -> Tensor:
        value = func(*tensors)
        _tensors("hessian", "outputs of the function", value)
        if not isinstance(value, Tensor) or value.array.size != 1:
            raise runtime_error(
                "hessian(): the function has to return a single tensor with one element",
                text="The function given to hessian should return a single Tensor"
                if not isinstance(value, Tensor)
                else "The Tensor returned by the function given to hessian should contain a single"
                " element",
            )
        if strict and not value.requires_grad:
            raise _constant_output("hessian", 0)
        return reshape_function(value, ())

    def gradient(*tensors: Tensor) -> Any:
        slopes = jacobian(scalar, tensors, create_graph=True)
        for number, tensor in enumerate(slopes):
            if strict and not tensor.requires_grad:
                raise _constant_jacobian("hessian", number)
        return slopes if several else slopes[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
