"""`torch.func`: `grad`, `vjp`, `jvp`, Jacobians and Hessians as function transforms, which can be
nested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from gradcli.autograd.engine import backward
from gradcli.autograd.inplace.writes import check_memory
from gradcli.autograd.modes import name_of
from gradcli.autograd.tensor import Tensor, with_history
from gradcli.errors import GradcliError, dtype_error, runtime_error, type_error
from gradcli.library.torch.func.forward import pushforward
from gradcli.library.torch.func.levels import Level, called, sizes_of_tangent, tensors_of
from gradcli.library.torch.func.structure import leaves, rebuilt, same_form, spec_of, starred
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.catalogue import function
from gradcli.record import Record
from gradcli.state import active

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]

_MODULE = "torch.func"


def positions_of(name: str, argnums: Any, count: int) -> list[int]:
    """The numbers of the arguments to differentiate, counted from the front; raises E201."""
    if not isinstance(argnums, (int, tuple)):
        raise runtime_error(
            f"argnums must be int or Tuple[int, ...], got: <class '{type(argnums).__name__}'>"
        )
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    positions = []
    for argnum in numbers:
        if not isinstance(argnum, int):
            raise runtime_error(f"argnum must be int, got: <class '{type(argnum).__name__}'>")
        if not -count <= argnum < count:
            raise GradcliError(
                "E201",
                f"{name}(): argnums names the argument {argnum!r}, and there are {count}",
                text=f"Got argnum={argnum}, but only {count} positional inputs",
                raises="RuntimeError",
            )
        positions.append(argnum % count)
    if not numbers:
        raise runtime_error("argnums must be non-empty")
    if len(set(positions)) != len(positions):
        raise runtime_error(f"argnums elements must be unique, got {argnums}")
    return positions


def replaced(args: tuple[Any, ...], positions: list[int], new: Sequence[Any]) -> list[Any]:
    """The arguments, with others in some positions."""
    result = list(args)
    for position, value in zip(positions, new, strict=True):
        result[position] = value
    return result


def split_aux(name: str, value: Any, has_aux: bool) -> tuple[Any, Any]:
    """What a function returned: its output, and what it returned besides if `has_aux`."""
    if not has_aux:
        return value, None
    if not isinstance(value, tuple) or len(value) != 2:
        raise runtime_error(
            f"{name}(): with has_aux the function has to return a tuple (output, aux)",
            text="grad_and_value(f)(*args): output of function f should be a tuple: (output, aux)"
            " if has_aux is True"
            if name == "grad"
            else f"{called(name)}: output of function f should be a tuple: (output, aux) if"
            " has_aux is True",
        )
    for leaf in leaves(value[1]):
        if not isinstance(leaf, Tensor):
            raise runtime_error(
                f"Expected tensors, got unsupported type <class '{type(leaf).__name__}'>"
            )
    return value


class Application(Record):
    """A call of the function that a transform differentiates.

    Attributes:
        name: that of the transform.
        positions: the numbers of the arguments that it is differentiated by.
        is_forward: whether that is in forward mode.
    """

    name: str
    func: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positions: list[int]
    has_aux: bool = False
    is_forward: bool = False

    @property
    def shown(self) -> str:
        """The transform of the function as it is written, `jacfwd(jacrev(f))`."""
        return _shown(self.name, self.func)

    def __call__(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """The output for other values of these arguments, and what else the function returns."""
        returned = self.func(*replaced(self.args, self.positions, inputs), **self.kwargs)
        return split_aux(self.name, returned, self.has_aux)

    def at(self, level: Level, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """The same for the inputs of a level, which is closed behind it and tells the recorder."""
        output, aux = self(inputs)
        level.close()
        recorder = active.state.recorder
        if recorder is not None:
            recorder.applied(level, self, inputs, output)
        return output, aux


def named(transformed: Function, name: str, func: Function) -> Function:
    """The function that a transform makes of another, which has the name of that."""
    transformed.__name__ = name_of(func)
    transformed.__dict__["shown_transform"] = _shown(name, func)
    return transformed


def _shown(name: str, func: Function) -> str:
    shown = func.__dict__.get("shown_transform") if isinstance(func, FunctionType) else None
    return f"{name}({shown or name_of(func)})"


def check_moved(what: str, tensors: list[Any]) -> None:
    """Raise E202 for what cannot be a primal or a tangent: no tensor, or one of integers or
    bools.
    """
    if not tensors:
        raise runtime_error(
            f"jvp(f, primals, tangents): Expected {what}s to contain at least one Tensor."
        )
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise GradcliError(
                "E202",
                f"jvp(f, primals, tangents): Expected {what}s to only contain Tensors, got <class"
                f" '{type(tensor).__name__}'>",
                raises="RuntimeError",
            )
        if tensor.dtype.category in ("int", "bool"):
            raise GradcliError(
                "E202",
                f"Expected {what} to be floating point or complex, but got: {tensor.dtype}",
                raises="ValueError",
                help="make it floating: `x.float()`",
            )


def check_real(name: str, what: str, tensors: list[Any]) -> None:
    """Raise E203 for a complex tensor: a Jacobian is one of real inputs and outputs."""
    for number, tensor in enumerate(tensors):
        if isinstance(tensor, Tensor) and tensor.dtype.is_complex:
            raise dtype_error(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened"
                f" input idx: {number}"
            )


def pull(
    level: Level, outputs: list[Tensor], inputs: list[Tensor], seeds: list[Tensor] | None
) -> list[Tensor]:
    """The gradients of outputs with respect to a closed level's inputs, zeros where there is no
    path; connected to the outside where it is reached.
    """
    create_graph = level.connects([*outputs, *(seeds or [])])
    level.open()
    try:
        wanted = [number for number, output in enumerate(outputs) if output.requires_grad]
        arrived: Sequence[Tensor | None] = [None] * len(inputs)
        if wanted:
            arrived = backward.grad(
                [outputs[number] for number in wanted],
                inputs,
                None if seeds is None else [seeds[number] for number in wanted],
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
            )
    finally:
        level.close()
    gradients = [
        zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(inputs, arrived, strict=True)
    ]
    return level.derived(outputs, gradients)


# --- reverse mode -------------------------------------------------------------------------------


@function(module=_MODULE)
def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of a scalar function, and its value.

    Args:
        func: returns a tensor of one element without dimensions; with `has_aux` a tuple of it and
            anything else.
        argnums: the argument, or the tuple of them, to differentiate.
        has_aux: whether the function returns something besides its value, passed on as
            `(gradient, (value, aux))`.
    """

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("grad", argnums, len(args))
        with Level(reverse=True) as level:
            inputs = [level.enter(args[position]) for position in positions]
            call = Application("grad", func, args, kwargs, positions, has_aux)
            value, aux = call.at(level, inputs)
            if not isinstance(value, Tensor) or value.array.ndim:
                shown = "a tensor" if isinstance(value, Tensor) else type(value).__name__
                raise GradcliError(
                    "E401",
                    f"grad(): the function has to return a scalar tensor, not {shown}"
                    + (f" of shape {tuple(value.array.shape)}" if shown == "a tensor" else ""),
                    text="grad_and_value(f)(*args): Expected f(*args) to return a "
                    + (
                        f"scalar Tensor, got tensor with {value.array.ndim} dims. Maybe you wanted"
                        " to use the vjp or jacrev APIs instead?"
                        if shown == "a tensor"
                        else f"Tensor, got <class '{type(value).__name__}'>"
                    ),
                    help="reduce it first, with `.sum()` or `.mean()`",
                )
            flat = leaves(inputs)
            gradients = rebuilt(inputs, pull(level, [value], flat, None))
            result = tuple(gradients) if isinstance(argnums, tuple) else gradients[0]
            value, aux = level.released((value, aux))
        return result, ((value, aux) if has_aux else value)

    return named(differentiated, "grad_and_value", func)


@function(module=_MODULE)
def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of a scalar function; with `has_aux` the gradient and
    what the function returns besides. See `grad_and_value`.
    """
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return named(gradient, "grad", func)


@function(module=_MODULE)
def vjp(func: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The function's output and the function that takes a gradient of it back to the inputs.

    Returns:
        `(output, vjp_fn)`, with `has_aux` `(output, vjp_fn, aux)`. `vjp_fn` takes a structure like
        the output and returns a tuple with an entry for each of `primals`.
    """
    level = Level(reverse=True)
    connected = level.connected
    with level:
        level.connected = True  # vjp_fn may be called where operations are recorded
        inputs = level.enter(primals)
        level.connected = connected
        call = Application("vjp", func, primals, {}, [*range(len(primals))], has_aux)
        output, aux = call.at(level, inputs)
        outputs = tensors_of("vjp", output)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        for flag in (retain_graph, create_graph):
            if flag is not None and not isinstance(flag, bool):
                raise type_error(
                    "vjp_fn() takes one structure of cotangents, like the output",
                    help="put several in a tuple",
                )
        if not same_form(output, cotangents):
            raise GradcliError(
                "E406",
                "Expected pytree structure of cotangents to be the same as pytree structure of"
                f" outputs to the function. cotangents: {starred(cotangents)}, primal output:"
                f" {starred(output)}",
            )
        level.connected = active.state.grad_enabled
        with level:
            return rebuilt(primals, pull(level, outputs, leaves(inputs), leaves(cotangents)))

    shown = level.released(output)
    return (shown, vjp_fn, level.released(aux)) if has_aux else (shown, vjp_fn)


# --- forward mode -------------------------------------------------------------------------------


@function(module=_MODULE)
def jvp(
    func: Function,
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The function's output, and how it changes when the inputs move along the tangents.

    Args:
        primals, tangents: tuples of the same structure.
        strict: whether an output that no input moves is an error.
        has_aux: whether the function returns something besides its output.

    Raises E202 where primals are no tuple, E406 where the tangents do not fit them, E407 if
    `strict`.
    """
    if not isinstance(primals, tuple):
        raise GradcliError(
            "E202",
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to"
            " call f(*primals).",
            raises="RuntimeError",
        )
    _check_layouts(primals, tangents)
    output, move, aux, outputs = _linearized("jvp", func, primals, has_aux)
    if strict and not all(tensor.requires_grad for tensor in outputs):
        raise GradcliError(
            "E407",
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs."
            " This is not allowed with strict=True.",
        )
    moved = move(tangents)
    return (output, moved, aux) if has_aux else (output, moved)


def _check_layouts(primals: Any, tangents: Any) -> None:
    """Raise E405 where an input's elements overlap in memory and its tangent's do not: the tangent
    gets the strides of the input, so its elements would overlap too.
    """
    if not same_form(primals, tangents):
        raise GradcliError(
            "E406",
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python"
            " structure. For example, if primals is a tuple of 3 tensors, tangents also must be."
            f" Got primals with structure {spec_of(primals)} and tangents with structure"
            f" {spec_of(tangents)}",
        )
    check_moved("primal", leaves(primals))
    check_moved("tangent", leaves(tangents))
    for tensor, direction in zip(leaves(primals), leaves(tangents), strict=True):
        if tensor.array.strides != direction.array.strides:
            check_memory(tensor)


@function(module=_MODULE)
def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The function's output, and the function that takes tangents of the inputs to one of it."""
    output, move, _, _ = _linearized("linearize", func, primals, False)
    return output, lambda *tangents: move(tangents)


def _linearized(
    name: str, func: Function, primals: tuple[Any, ...], has_aux: bool
) -> tuple[Any, Function, Any, list[Tensor]]:
    """The output of a function, the function of its tangents, what it returned besides, and the
    recorded tensors of the output.
    """
    if not primals and name == "linearize":
        raise type_error("linearize() needs a primal")
    check_moved("primal", leaves(primals))
    level = Level()
    with level:
        inputs = level.enter(primals, as_leaves=False)
        starts = [with_history(tensor.array, tensor.grad_fn) for tensor in leaves(inputs)]
        positions = [*range(len(primals))]
        call = Application(name, func, primals, {}, positions, has_aux, is_forward=True)
        output, aux = call.at(level, inputs)
        outputs = tensors_of(name, output)

    def move(tangents: Any) -> Any:
        if not same_form(primals, tangents):
            raise GradcliError(
                "E406",
                f"Expected the tangents {spec_of(tangents)} to have the same argspec as the"
                f" primals {spec_of(primals)}",
            )
        directions = leaves(tangents)
        check_moved("tangent", directions)
        for number, (tensor, direction) in enumerate(zip(leaves(primals), directions, strict=True)):
            if name == "linearize":
                _check_like(number, tensor, direction)
            elif tensor.array.shape != direction.array.shape:
                raise sizes_of_tangent(tensor, direction)
        with level:
            return push(level, output, outputs, starts, directions)

    return level.separated(output), move, level.released(aux), outputs


def _check_like(number: int, tensor: Tensor, direction: Tensor) -> None:
    """Raise E406 for a tangent of another shape or dtype than its input's."""
    for what, own, wanted in (
        ("shape", direction.shape, tensor.shape),
        ("dtype", direction.dtype, tensor.dtype),
    ):
        if own != wanted:
            raise GradcliError(
                "E406",
                f"tangent:{number} with {what} {own} in flattened pytree doesn't match the"
                f" {what} {wanted} of the corresponding primal.",
            )


def push(
    level: Level,
    output: Any,
    outputs: list[Tensor],
    inputs: list[Tensor],
    directions: list[Tensor | None],
) -> Any:
    """The tangents of a closed level's outputs, in their structure."""
    tangents = [direction for direction in directions if direction is not None]
    create_graph = level.connects([*outputs, *tangents])
    level.open()
    try:
        moved = pushforward(outputs, inputs, directions, create_graph=create_graph)
    finally:
        level.close()
    return rebuilt(output, level.derived(outputs, moved))
