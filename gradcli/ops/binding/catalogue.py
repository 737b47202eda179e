"""The tables of names that programs can reach: functions of the modules, methods and properties of
tensors, operators.

The families fill these tables as they are imported, some of them when one of their names is first
looked up (see `lazy`). An entry is exposed under all its names at once, as a function and as a
method, and with an in-place form where PyTorch has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, Literal, TypeVar

import numpy as np

from gradcli.arrays.dtypes import can_cast, float32, result_dtype
from gradcli.autograd.inplace.writes import check_inplace, misshapen, unfit, write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.binding.lazy import table
from gradcli.ops.codegen.runtime import misfit, not_a_tensor
from gradcli.ops.definition.doc import WRITES, in_numpy
from gradcli.ops.definition.doc import effects as having_effects
from gradcli.ops.definition.op import Function, Op, TensorSpec, check_ranks, parameters_of, registry
from gradcli.state import active

Body = TypeVar("Body", bound=Function)

CastTo = Literal["float32", "short"]
"""What a function takes its tensors in, inside `torch.autocast`."""

modules: dict[str, dict[str, Any]] = {
    name: table(name)
    for name in (
        "torch",
        "torch.autograd",
        "torch.autograd.function",
        "torch.autograd.graph",
        "torch.autograd.gradcheck",
        "torch.autograd.forward_ad",
        "torch.autograd.functional",
        "torch.cuda",
        "torch.distributions",
        "torch.distributions.constraint_registry",
        "torch.distributions.constraints",
        "torch.distributions.kl",
        "torch.distributions.transforms",
        "torch.distributions.utils",
        "torch.fft",
        "torch.func",
        "torch.linalg",
        "torch.masked",
        "torch.nn",
        "torch.nn.functional",
        "torch.nn.init",
        "torch.nn.utils",
        "torch.nn.utils.parametrizations",
        "torch.nn.utils.parametrize",
        "torch.nn.utils.prune",
        "torch.nn.utils.rnn",
        "torch.nn.utils.stateless",
        "torch.optim",
        "torch.optim.lr_scheduler",
        "torch.optim.swa_utils",
        "torch.signal.windows",
        "torch.special",
        "torch.utils.checkpoint",
        "torch.utils.data",
    )
}
"""The functions and host classes of each module."""

class_of: Callable[[type], Any]
"""Gives the class that programs know for a host class; the language sets it."""

methods: dict[str, Function] = table("Tensor")
"""Methods of tensors; the tensor is their first argument."""

properties: dict[str, Callable[[Tensor], Any]] = {}
"""Attributes of tensors."""

setters: dict[str, Callable[[Tensor, Any], None]] = {}
"""Attributes of tensors that can be assigned to."""

operators: dict[str, Function] = table("operators")
"""Binary operators with a tensor on at least one side, `[]` and `[]=`."""

inplace_operators: dict[str, Callable[[Tensor, Any], Tensor]] = table("inplace_operators")
"""The in-place operators, `x += y` and the others; each writes to the tensor x and returns it."""

unary_operators: dict[str, Function] = table("unary_operators")
"""`-x`, `+x`, `~x`."""


def expose(
    entry: Op,
    *names: str,
    module: str = "torch",
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    inplace_function: bool = False,
) -> None:
    """Make an entry reachable under its name and the further ones.

    Args:
        entry: the op, whose forward function's parameters are the function's own.
        names: the names, the entry's own when none is given.
        module: where the function lives.
        function, method: which of the two there are.
        inplace: whether there is a method `NAME_` that writes the result to its tensor.
        inplace_function: whether that is a function of `torch` too.
    """
    for name in names or (entry.name,):
        if function:
            entry.bind(modules[module], name)
        if method:
            entry.bind(methods, name)
        if inplace or inplace_function:
            form = in_place(entry.name, entry.apply, written_as=f"{name}_")
            expose_written(name, form, inplace_function)


def expose_written(name: str, form: Function, is_function: bool) -> None:
    """Make the in-place form of a function reachable as a method, and as a function of `torch`."""
    methods[f"{name}_"] = form
    if is_function:
        modules["torch"][f"{name}_"] = form


def function(
    *names: str,
    module: str = "torch",
    also: str = "",
    method: bool = False,
    inplace: bool = False,
    inplace_function: bool = False,
    check: Callable[..., Any] = check_inplace,
    autocast: CastTo | None = None,
    effects: tuple[str, ...] = (),
    numpy: str = "",
    takes: Mapping[str, TensorSpec] | None = None,
) -> Callable[[Body], Body]:
    """Make a composed function reachable: decorates it, under the names given or its own.

    Args:
        module, method, inplace, inplace_function: see `expose`.
        also: a second module.
        check: what its in-place form calls first: see `in_place`.
        autocast: in which dtype it takes its tensors inside `torch.autocast`; None for their own.
        effects, numpy, takes: as of an entry, see `Op`.
    """

    def decorate(body: Body) -> Body:
        if numpy:
            body = in_numpy(numpy)(body)
        if takes is not None:
            body = _taking(names[0] if names else body.__name__.rstrip("_"), body, takes)
        if autocast is not None:
            body = autocasting(body, autocast)
        if effects:
            body = having_effects(*effects)(body)
        for name in _named(body, names):
            modules[module][name] = body
            if also:
                modules[also][name] = body
            if method:
                methods[name] = body
            if inplace or inplace_function:
                expose_written(name, in_place(name, body, check=check), inplace_function)
        return body

    return decorate


def _taking(name: str, body: Body, takes: Mapping[str, TensorSpec]) -> Body:
    """A function that raises what `check_operands` does, before its body runs. What is wrong with
    the call itself, too many arguments, comes first.
    """
    parameters = parameters_of(body)
    places = [
        (parameters.index(argument), argument, spec.least, spec.most, spec.check)
        for argument, spec in takes.items()
    ]

    def checked(*args: Any, **kwargs: Any) -> Any:
        given = len(args)
        for place, argument, least, most, check in places:
            value = args[place] if place < given else kwargs.get(argument)
            try:
                if type(value) is not Tensor or not least <= value.array.ndim <= most:
                    operands = [args[p] if p < given else kwargs.get(a) for p, a, *_ in places]
                    check_operands(name, takes, operands, parameters)
                elif check is not None:
                    check(name, value)
            except GradcliError:
                if _binds(body, args, kwargs):
                    raise
                break
        return body(*args, **kwargs)

    update_wrapper(checked, body)
    vars(checked)["takes"] = takes
    return checked  # type: ignore[return-value]


def _binds(body: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function can be called with these arguments."""
    from inspect import signature  # lazy: start-up: rarely needed

    try:
        signature(body).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def check_operands(
    name: str, takes: Mapping[str, TensorSpec], operands: Sequence[Any], parameters: Sequence[str]
) -> None:
    """Raise E202 for an operand that is no tensor, E301 for one of a rank that the function `name`
    does not take, and what the checks of its operands raise; `parameters` are all of its own.
    """
    for argument, value in zip(takes, operands, strict=True):
        if type(value) is not Tensor:
            raise not_a_tensor(name, argument, parameters.index(argument) + 1, value)
    check_ranks(name, takes, *[value.array for value in operands])
    for spec, value in zip(takes.values(), operands, strict=True):
        if spec.check is not None:
            spec.check(name, value)


def autocasting(body: Body, to: CastTo) -> Body:
    """A function that takes its tensors in float32, or in the short dtype that is set, inside
    `torch.autocast`.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        casting = active.state.autocast
        if casting is None:
            return body(*args, **kwargs)
        return casting.run(body, float32 if to == "float32" else casting.dtype, args, kwargs)

    update_wrapper(call, body)
    return call  # type: ignore[return-value]


def method(*names: str, effects: tuple[str, ...] = ()) -> Callable[[Body], Body]:
    """Make a function reachable as a method of tensors only; `effects` as of an entry."""

    def decorate(body: Body) -> Body:
        if effects:
            body = having_effects(*effects)(body)
        for name in _named(body, names):
            methods[name] = body
        return body

    return decorate


def _named(body: Function, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a function, its own by default; errors call it by the first of them."""
    names = names or (body.__name__.rstrip("_"),)
    body.__name__ = body.__qualname__ = names[0]
    if names[0].endswith("_") and "effects" not in vars(body):
        having_effects(WRITES)(body)
    return names


def tensor_property(*names: str) -> Callable[[Body], Body]:
    """Make a function of a tensor readable as an attribute."""

    def decorate(body: Body) -> Body:
        for name in names or (body.__name__,):
            properties[name] = body
        return body

    return decorate


def in_place(
    name: str,
    body: Function,
    *,
    check: Callable[..., Any] = check_inplace,
    written_as: str = "",
) -> Function:
    """The in-place form of a function: it writes the result to the first operand, and returns
    that.

    Args:
        name: the function's name.
        body: the function.
        check: raises E405 where the first operand may not be written, and is true where the write
            changes what is read later on. It takes the name of the writing op, and the operands.
        written_as: the name of PyTorch's op, where it is not the function's with a `_`.
    """
    written_as = written_as or f"{name}_"

    def write_result(self: Any = None, *args: Any, **kwargs: Any) -> Any:
        if self is None and "input" not in kwargs:
            return body(*args, **kwargs)  # it says what is missing
        if self is None:
            self = kwargs.pop("input")
        try:
            overlapping = check(written_as, self, *args, **kwargs)
        except GradcliError:
            _check_arguments(body, self, args, kwargs)
            raise
        try:
            result = body(self, *args, **kwargs)
        except GradcliError as error:
            if error.raises == "NotImplementedError" and name in registry:
                # PyTorch checks the result before its kernels check dtypes.
                _check_result(registry[name], self, args)
            raise
        if result is not self:
            if overlapping and name in registry:
                from gradcli.ops.codegen import aliased_writes  # lazy: start-up: rarely needed

                aliased_writes.written_in_order(registry[name], body, self, args, kwargs, result)
            write(self, result)
        return self

    write_result.__name__ = write_result.__qualname__ = f"{name}_"
    # Error reports on a failed call show the signature of the function.
    vars(write_result)["__wrapped__"] = body
    having_effects(WRITES)(write_result)
    return write_result


def check_write(
    name: str, check: Callable[..., Any], body: Function, self: Tensor, *args: Any
) -> None:
    """Raise what `_check_arguments` finds, then what `check` finds wrong with writing a function's
    result to a tensor by the op of that name.
    """
    try:
        check(name, self, *args)
    except GradcliError:
        _check_arguments(body, self, args, {})
        raise


def _check_arguments(
    body: Function, self: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise what a function finds wrong with the types of its arguments: PyTorch checks them before
    it checks whether the tensor may be written.
    """
    state = active.state
    before = state.grad_enabled, state.recorder
    state.grad_enabled, state.recorder = False, None
    try:
        body(self, *args, **kwargs)
    except TypeError:
        raise
    except GradcliError as error:
        if error.raises == "TypeError":
            raise
    finally:
        state.grad_enabled, state.recorder = before


def _check_result(entry: Op, self: Tensor, args: tuple[Any, ...]) -> None:
    """Raise E301 or E203 where the elementwise result of a tensor and other operands does not have
    the tensor's shape, or has a dtype that cannot be cast to the tensor's.
    """
    if not entry.pointwise:
        return
    try:
        shape = np.broadcast_shapes(*[o.array.shape for o in (self, *args) if type(o) is Tensor])
    except ValueError as failure:
        raise misfit(entry, (self, *args), failure) from None
    if shape != self.array.shape:
        raise misshapen(self, shape) from None
    if entry.name in _ORDERINGS:  # every dtype takes a bool
        return
    operands = zip(entry.parameters, (self, *args), strict=False)
    # An entry whose second operand is a number does not count it among its tensors.
    promoted = (*entry.tensors, "other")
    read = [operand for parameter, operand in operands if parameter in promoted]
    dtype = result_dtype([o.array if type(o) is Tensor else o for o in read])
    if not can_cast(dtype, self.dtype):
        raise unfit(dtype, self) from None


_ORDERINGS = frozenset({"lt", "le", "gt", "ge"})
