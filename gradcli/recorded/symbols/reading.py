"""Reads the formula of an op: its functions are called with symbols instead of arrays.

A rule is called as it stands, but what its names mean is replaced: an entry of the catalogue, NumPy
and `math` write themselves down where they are given a symbol. The rule is not touched, so reading
it costs those nothing that compute with it. A branch on a symbol is taken both ways. What symbols
cannot follow, such as a loop over dimensions, is written as the call of the function it is in.

What stands in for NumPy, `math` and builtins does what those do where it is given no symbol.

The formulas of the catalogue's entries are read so. A formula is the rule itself, so it cannot
disagree with the number that the rule gives.
"""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from gradcli.arrays.fusion.tile_kernels import choose, positive_part
from gradcli.arrays.kernels import vector_math
from gradcli.errors import GradcliError
from gradcli.ops.arithmetic.arithmetic import zeros, zeros_like
from gradcli.ops.codegen.node_class import names_in
from gradcli.ops.definition.op import Function, Op, parameters_of
from gradcli.ops.definition.refs import Ref
from gradcli.ops.lookup import named_by_numpy
from gradcli.recorded.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Name,
    Opaque,
    Operation,
    Symbol,
    Unreadable,
    call_of,
    in_language,
    is_default,
    lifted,
    rounded_quotient,
    shown,
    text_of,
)

# --- functions that take symbols ------------------------------------------------------------------


def has_symbol(values: Sequence[Any]) -> bool:
    """Whether there is a symbol among values, or in a list among them."""
    return any(
        isinstance(value, Symbol) or (isinstance(value, (tuple, list)) and has_symbol(value))
        for value in values
    )


class Numpy:
    """Stands in for NumPy."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if isinstance(value, type) or not callable(value):
            return value
        if name == "result_type":
            return _result_type
        return written_by_name(name, value)


class Mathematics:
    """Stands in for `math`: a constant keeps the name of where it comes from."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name)
        if name == "prod":
            return count
        if not callable(value):
            return Attribute(Name("math", is_number=True), name) if name in ("pi", "e") else value

        def written(*args: Any) -> Any:
            return Call(f"math.{name}", tuple(lifted(each) for each in args))

        return written


class Largest:
    """Stands in for `max` and `min`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not has_symbol(args):
            return getattr(builtins, self._name)(*args, **kwargs)
        return Call(self._name, tuple(lifted(each) for each in args))


def written_by_name(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that is written down where it is given a symbol."""

    def written(*args: Any, **kwargs: Any) -> Any:
        if not has_symbol((*args, *kwargs.values())):
            return function(*args, **kwargs)
        if kwargs:
            raise Unreadable(name)
        symbol = shown(name, args)
        if symbol is not None:
            return symbol
        called = named_by_numpy(function)
        if called is None:
            raise Unreadable(name)
        return call_of(called, args)

    return written


def _result_type(*operands: Any) -> Any:
    return np.dtype(np.float32) if has_symbol(operands) else np.result_type(*operands)


def count(sizes: Any) -> Any:
    """The product of sizes: how many elements there are."""
    if isinstance(sizes, Attribute) and sizes.name == "shape":
        return Call("numel", (sizes.value,), method=True)
    return math.prod(sizes)


# --- reading --------------------------------------------------------------------------------------


_MOST_PATHS = 16
"""A function with more ways through it than this is written as a call."""

_MOST_PARTS = 120
"""So is a function whose formula has more parts than this."""


class Reading:
    """One reading of a function with symbols."""

    def __init__(self) -> None:
        self._paths: list[_Path] = []
        self._rebound: dict[types.FunctionType, Callable[..., Any]] = {}
        self._builtins = {**vars(builtins), **{name: Largest(name) for name in ("max", "min")}}
        self._builtins["__import__"] = self._import

    def name(self, name: str, is_number: bool = False) -> Name:
        """A symbol of this reading."""
        return Name(name, self._decide, is_number)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What the function gives for symbols; raises Unreadable, and what it always raises."""
        if isinstance(function, Op):
            return self._explored(self._meaning(function), args, {})
        assert isinstance(function, types.FunctionType)
        return self._explored(self._with_meanings(function), args, {})

    # --- both ways of a branch -------------------------------------------------------------------

    def _decide(self, condition: Symbol) -> bool:
        """The way that the path now explored takes."""
        if isinstance(condition, Attribute) and condition.name in ("ndim", "shape"):
            return True  # formulas are those of tensors that have dimensions
        text = text_of(condition)
        for path in reversed(self._paths):
            for known, way in zip(path.conditions, path.ways, strict=False):
                if text_of(known) == text:
                    return way
        if not self._paths:
            raise Unreadable("a branch after the reading")
        path = self._paths[-1]
        path.conditions.append(condition)
        if len(path.conditions) > len(path.ways):
            path.ways.append(True)
        return path.ways[len(path.conditions) - 1]

    def _explored(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """The value of a function on every way through it."""
        outcomes: list[_Path] = []
        refusal: GradcliError | None = None
        pending: list[list[bool]] = [[]]
        while pending:
            path = _Path(pending.pop())
            fixed = len(path.ways)
            self._paths.append(path)
            try:
                path.value = function(*args, **kwargs)
                outcomes.append(path)
            except GradcliError as error:
                refusal = error  # arguments that the function refuses have no formula
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise Unreadable(str(error)) from error
            finally:
                self._paths.pop()
            pending += [[*path.ways[:i], False] for i in range(fixed, len(path.ways))]
            if len(outcomes) + len(pending) > _MOST_PATHS:
                raise Unreadable("too many ways")
        if not outcomes:
            assert refusal is not None
            raise refusal
        return _merged(outcomes, 0)

    # --- what names mean -------------------------------------------------------------------------

    def _with_meanings(self, function: types.FunctionType) -> Callable[..., Any]:
        """The function with the meanings of its names replaced."""
        if function not in self._rebound:
            scope: dict[str, Any] = {"__builtins__": self._builtins}
            for name in names_in(function.__code__):
                if name in function.__globals__:
                    scope[name] = self._meaning(function.__globals__[name])
            cells = [
                types.CellType(self._meaning(c.cell_contents)) for c in function.__closure__ or ()
            ]
            rebound = types.FunctionType(
                function.__code__, scope, function.__name__, function.__defaults__, tuple(cells)
            )
            rebound.__kwdefaults__ = function.__kwdefaults__
            self._rebound[function] = rebound
        return self._rebound[function]

    def _meaning(self, value: Any) -> Any:
        if isinstance(value, Ref):
            value = value.resolved()
        if isinstance(value, Op):
            return _WrittenOp(self, value)
        if value is choose:
            return Numpy().where
        if value is positive_part:
            return lambda array: Numpy().maximum(0, array)
        if isinstance(value, types.FunctionType):
            if value.__module__ == vector_math.__name__ and hasattr(np, value.__name__):
                return written_by_name(value.__name__, getattr(np, value.__name__))
            ours = (value.__module__ or "").startswith("gradcli.ops")
            return _WrittenFunction(self, value) if ours else value
        if value is np:
            return Numpy()
        if value is math:
            return Mathematics()
        if value is math.prod:
            return count
        if isinstance(value, np.ufunc):
            return written_by_name(value.__name__, value)
        if isinstance(value, types.ModuleType) and value.__name__.startswith("gradcli."):
            return _Module(self, value)
        return value

    def _import(self, name: str, *args: Any) -> Any:
        module = builtins.__import__(name, *args)
        return _Module(self, module) if name.startswith("gradcli.") else module

    def written_op(self, op: Op, args: tuple[Any, ...]) -> Any:
        """The call of an entry."""
        if op.name == "div" and len(args) == 3:
            return rounded_quotient(*args)
        if op.name == "polygamma":
            return Call("polygamma", (lifted(args[1]), lifted(args[0])))
        if all(is_default(each) for each in args[2:]):
            written = shown(op.name, args)
            if written is not None:
                return written
        if op.name.endswith(("_backward", "_backward_data")):
            # The gradient of an op, for which PyTorch prints a node of its own: opened up.
            try:
                opened = self.call(op.forward, *args)
            except Unreadable:
                pass
            else:
                if isinstance(opened, Symbol) and in_language(opened):
                    return opened
        return call_of(op.name, args)

    def written_function(self, function: types.FunctionType, args: Any, kwargs: Any) -> Any:
        """The value of a function that a rule calls, its call where symbols cannot follow it."""
        if function is zeros_like:
            return Constant(0)
        if function is zeros:
            return Call("zeros", (lifted(args[1]),))
        try:
            value = self._explored(self._with_meanings(function), args, kwargs)
            if not isinstance(value, Symbol) or len(list(value.walk())) <= _MOST_PARTS:
                return value
        except Unreadable:
            pass
        return call_of(function.__name__.strip("_"), (*args, *kwargs.values()))


class _Path:
    """One way through a function: the conditions met, which way was taken, and what came of it."""

    def __init__(self, ways: list[bool]) -> None:
        self.conditions: list[Symbol] = []
        self.ways = ways
        self.value: Any = None


def _merged(paths: Sequence[_Path], depth: int) -> Any:
    """The values of several paths as one conditional expression."""
    if len(paths) == 1:
        return paths[0].value
    condition = paths[0].conditions[depth]
    then = [path for path in paths if path.ways[depth]]
    otherwise = [path for path in paths if not path.ways[depth]]
    if not then or not otherwise:
        return _merged(paths, depth + 1)
    return _chosen(condition, _merged(then, depth + 1), _merged(otherwise, depth + 1))


def _chosen(condition: Symbol, then: Any, otherwise: Any) -> Any:
    if isinstance(then, (tuple, list)) and isinstance(otherwise, (tuple, list)):
        if len(then) != len(otherwise):
            raise Unreadable("as many values as the branch has")
        pairs = zip(then, otherwise, strict=True)
        return type(then)(_chosen(condition, one, other) for one, other in pairs)
    if then is None and otherwise is None:
        return None
    one, other = lifted(then), lifted(otherwise)
    return then if text_of(one) == text_of(other) else Choice(condition, one, other)


class _WrittenOp:
    """Stands in for an entry of the catalogue."""

    def __init__(self, reading: Reading, op: Op) -> None:
        self._reading = reading
        self._op = op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        everything = (*args, *kwargs.values())
        if not has_symbol(everything):
            return self._op(*args, **kwargs)
        return self._reading.written_op(self._op, everything)

    apply = __call__


class _WrittenFunction:
    """Stands in for a function of the catalogue's modules."""

    def __init__(self, reading: Reading, function: types.FunctionType) -> None:
        self._reading = reading
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not has_symbol((*args, *kwargs.values())):
            return self._function(*args, **kwargs)
        return self._reading.written_function(self._function, args, kwargs)


class _Module:
    """Stands in for a module of ours."""

    def __init__(self, reading: Reading, module: types.ModuleType) -> None:
        self._reading = reading
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return self._reading._meaning(getattr(self._module, name))


Arguments = Mapping[str, Any]
_NONE: Arguments = MappingProxyType({})


def forward_formula(op: Op, arguments: Arguments = _NONE) -> Symbol | None:
    """What an entry computes, None where symbols cannot read its forward function.

    Args:
        arguments: values of arguments, `keepdim` or `dims`; the others appear by name.
    """
    reading = Reading()
    operands = [_operand(reading, op, name, arguments) for name in op.parameters]
    try:
        value = reading.call(op.forward, *operands)
    except (Unreadable, GradcliError):
        return None
    return value if isinstance(value, Symbol) and in_language(value) else None


def derivative_formulas(op: Op, arguments: Arguments = _NONE) -> dict[str, Symbol | None]:
    """The gradient of each differentiable input, None where there is none.

    A rule that symbols cannot read is `Opaque`: what it is a function of.

    Args:
        arguments: values of arguments, `keepdim` or `dims`; the others appear by name.
    """
    if op.joint is not None:
        gradient = _rule(op, op.joint, arguments)
        if isinstance(gradient, (tuple, list)) and len(gradient) == len(op.inputs):
            return {
                name: None if each is None else lifted(each)
                for name, each in zip(op.inputs, gradient, strict=True)
            }
        opaque = _opaque(op, op.joint, arguments)
        return dict.fromkeys(op.inputs, opaque)
    formulas: dict[str, Symbol | None] = {}
    for name, rule in op.rules.items():
        gradient = _rule(op, rule, arguments)
        if isinstance(gradient, (tuple, list)):
            gradient = _opaque(op, rule, arguments)
        formulas[name] = None if gradient is None else as_read(lifted(gradient))
    return formulas


def as_read(symbol: Symbol) -> Symbol:
    """A formula with what a reader has shorter words for: `where` for zeros that are filled in
    places, and equality without the case that both are NaN.
    """
    parts = tuple(map(as_read, symbol.parts))
    read = symbol.of_parts(parts) if parts else symbol
    if isinstance(read, Call) and read.function == "masked_fill" and len(parts) == 3:
        zeros, mask, value = parts
        if isinstance(zeros, Call) and zeros.function == "zeros":
            return Call("where", (mask, value, Constant(0)))
    if isinstance(read, Operation) and read.operator == "|" and _are_nan(*parts):
        return parts[0]
    return read


def _are_nan(equal: Symbol, both: Symbol) -> bool:
    """Whether two conditions are that two values are equal, and that neither is a number."""
    if not isinstance(equal, Operation) or equal.operator != "==":
        return False
    one, other = map(str, equal.operands)
    return str(both) == f"({one} != {one}) & ({other} != {other})"


def _rule(op: Op, rule: Function, arguments: Arguments) -> Any:
    reading = Reading()
    operands = [_operand(reading, op, name, arguments) for name in parameters_of(rule)]
    try:
        return reading.call(rule, *operands)
    except Unreadable:
        return _opaque(op, rule, arguments)
    except GradcliError:
        return None  # PyTorch defines no derivative


def _opaque(op: Op, rule: Function, arguments: Arguments) -> Opaque:
    reading = Reading()
    names = [name for name in parameters_of(rule) if name != "needs"]
    operands = [_operand(reading, op, name, arguments) for name in names]
    flat = [
        part
        for operand in operands
        for part in (operand if isinstance(operand, list) else [operand])
    ]
    return Opaque(op.node_name, tuple(lifted(part) for part in flat))


def _operand(reading: Reading, op: Op, name: str, arguments: Arguments) -> Any:
    """What a rule's or a forward function's parameter is given."""
    if name in arguments:
        return arguments[name]
    if name == "needs":
        return (True,) * len(op.inputs)
    if name == "grads":
        if op.outputs == ("*",):
            return reading.name("grads")
        return [
            reading.name(f"grad_{output}") if number in op.differentiable else None
            for number, output in enumerate(op.outputs)
        ]
    if name.endswith("_strides") and name.removesuffix("_strides") in op.tensors:
        return ()  # formulas say nothing of memory
    if name.endswith("_sizes") and name.removesuffix("_sizes") in (*op.tensors, *op.lists):
        return Attribute(reading.name(name.removesuffix("_sizes")), "shape")
    # Formulas leave casts out.
    if name == "dtype":
        return None
    is_argument = name in op.parameters and name not in (*op.tensors, *op.lists)
    return reading.name(name, is_number=is_argument)
