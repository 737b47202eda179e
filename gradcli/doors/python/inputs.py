"""A call from Python as a run: the program, which may be a function, its inputs as arguments, its
settings as options.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from textwrap import dedent
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from gradcli.arrays.dtypes import DTYPES
from gradcli.autograd.tensor import Tensor
from gradcli.language.hints.spelling import closest
from gradcli.language.tree.syntax import Statement
from gradcli.running.arguments.name_uses import name_uses
from gradcli.running.arguments.options import DTYPES as CHOICES
from gradcli.running.arguments.options import Options, is_device, limits_of, read_size
from gradcli.running.arguments.words import Argument, read_argument

# --- functions as programs ------------------------------------------------------------------------


Text = str | Callable[..., Any]
"""A program: a text, or a function whose source is one."""


def text_of(program: Text) -> str:
    """The text of a program.

    That of a function imports the modules that it reads, and calls it with inputs of its
    parameters' names; one with a default keeps its kind.

    Raises:
        TypeError: it is neither, or a function that does not stand on its own: a lambda, a
            generator, one that is decorated, or that reads names from around it.
    """
    if isinstance(program, str):
        return program
    if not isinstance(program, FunctionType):
        kind = type(program).__name__
        raise TypeError(f"a program is a text or a Python function, and this is of type {kind}")
    name = program.__name__
    source = _source(program)
    try:
        definition = ast.parse(source).body[0]
    except SyntaxError:  # a lambda in the middle of a line
        definition = None
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        raise TypeError(f"`{name}` is no plain `def`: give its program as a text")
    parameters = definition.args
    if parameters.posonlyargs or parameters.vararg or parameters.kwarg:
        raise TypeError(f"the parameters of `{name}` have to be names that inputs can have")
    names = [each.arg for each in (*parameters.args, *parameters.kwonlyargs)]
    passed = [each.arg for each in parameters.args]
    passed += [f"{each.arg}={each.arg}" for each in parameters.kwonlyargs]
    defaults = [*parameters.defaults, *parameters.kw_defaults]
    first = len(parameters.args) - len(parameters.defaults)
    lines = [
        f"{each} = {ast.unparse(default)}"
        for each, default in zip(names[first:], defaults, strict=True)
        if default is not None
    ]
    return "\n".join([*_imports(program), source.rstrip(), *lines, f"{name}({', '.join(passed)})"])


def _source(function: FunctionType) -> str:
    try:
        return dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise TypeError(
            f"the source of `{function.__name__}` is in no file: give its program as a text"
        ) from None


def _imports(function: FunctionType) -> Iterator[str]:
    """The imports of the modules that a function reads; raises TypeError for other names."""
    outer = dict(inspect.getclosurevars(function).nonlocals)
    read = {name for code in _codes(function.__code__) for name in code.co_names}
    outer |= {name: each for name, each in function.__globals__.items() if name in read}
    for name, each in outer.items():
        if isinstance(each, ModuleType):
            yield f"import {each.__name__} as {name}"
        elif each is not function:
            raise TypeError(
                f"`{function.__name__}` reads `{name}` from around it: make it a parameter"
            )


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


# --- inputs ---------------------------------------------------------------------------------------


class Limits(TypedDict, total=False):
    """How much a run may use."""

    timeout: float | None
    max_memory: int | str | None
    max_elements: int | None
    max_steps: int | None
    sandbox: bool


class Settings(Limits, total=False):
    """The keywords that are no inputs; `gradcli/__init__.pyi` has them where inputs stand too."""

    of: str | None
    wrt: str | Sequence[str] | None
    seed: ArrayLike | None
    dtype: Literal["float16", "bfloat16", "float32", "float64", "half", "float", "double"] | None
    device: str | None
    manual_seed: int | None
    no_compiled_loops: bool


SETTINGS = tuple(Settings.__annotations__)

_LONGEST_SHOWN = 200


def split(
    inputs: Mapping[str, Any] | None, named: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs by name, and the settings; raises TypeError for a name that is given twice."""
    settings = {name: each for name, each in named.items() if name in SETTINGS}
    own = {name: each for name, each in named.items() if name not in SETTINGS}
    twice = [name for name in own if inputs is not None and name in inputs]
    if twice:
        raise TypeError(f"`{twice[0]}` is given two values")
    return {**(inputs or {}), **own}, settings


def options_of(settings: Mapping[str, Any]) -> Options:
    """The options of a run.

    Raises:
        ValueError: a setting has a value that it cannot have; TypeError: or one of a wrong type.
    """
    known = dict(settings)
    limits = {name: known.pop(name) for name in Limits.__annotations__ if name in known}
    if isinstance(limits.get("max_memory"), str):
        limits["max_memory"] = read_size(limits["max_memory"]) or limits["max_memory"]
    for name in ("max_memory", "max_elements", "max_steps"):
        count = limits.get(name)
        if count is not None and (type(count) is not int or count < 1):
            or_size = " or a size such as 500MB" if name == "max_memory" else ""
            raise ValueError(f"{name} is a whole number from 1{or_size}, not {count!r}")
    timeout = limits.get("timeout")
    if timeout is not None and not 0 < timeout <= 10**6:
        raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
    if known.get("dtype") not in (None, *CHOICES):
        raise ValueError(f"dtype is one of {', '.join(CHOICES)}, not {known['dtype']!r}")
    if not is_device(known.get("device") or "cpu"):
        raise ValueError(f"device is cpu, cuda or cuda:N, not {known['device']!r}")
    wrt = known.get("wrt")
    if wrt is not None and not isinstance(wrt, str):
        try:
            known["wrt"] = ",".join(wrt)
        except TypeError:
            raise TypeError(f"wrt is one name or several, not {wrt!r}") from None
    seed = known.get("seed")
    if seed is not None and not isinstance(seed, str):
        known["seed"] = np.asarray(seed)
    memory = limits.get("max_memory")
    options = Options(limits=limits_of(limits), **known)
    options.limits.memory = memory  # None: the host's memory is left alone unless that is asked
    return options


def arguments_of(inputs: Mapping[str, Any]) -> list[Argument]:
    """Inputs as arguments: numbers, lists and arrays as they stand, a text as behind `NAME=`.

    Raises:
        TypeError: an input is nothing that a program can have.
        ValueError: a name is none, or its array has a dtype that PyTorch has not.
    """
    return [_argument(name, value) for name, value in inputs.items()]


def _argument(name: str, value: Any) -> Argument:
    if value is None or isinstance(value, str):
        argument = read_argument(f"{name}={value}")
    else:
        shown = repr(value) if type(value) in (bool, int, float, complex) else type(value).__name__
        argument = read_argument(f"{name}={shown[:_LONGEST_SHOWN]}")
        if argument is not None:
            argument.held = held(name, value)
    if argument is None:
        raise ValueError(f"{name!r} is no NAME or NAME:const")
    return argument


def held(name: str, value: Any) -> Any:
    """A value of Python's as one of the language's, arrays as tensors of a copy."""
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    if isinstance(value, (list, tuple)):
        held_values = [held(name, each) for each in value]
        return held_values if isinstance(value, list) else tuple(held_values)
    if isinstance(value, dict):
        return {held(name, key): held(name, each) for key, each in value.items()}
    if not hasattr(value, "__array__"):
        kind = type(value).__name__
        raise TypeError(
            f"`{name}` is of type {kind}, and a program takes numbers, lists and arrays"
        )
    array = np.array(value)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if native.dtype.name not in DTYPES:
        raise ValueError(f"`{name}` is an array of {array.dtype}, which PyTorch has not")
    return Tensor(native if native.ndim else native[()])


def check_used(names: Collection[str], arguments: Sequence[Argument]) -> None:
    """Raise TypeError for an input that a program, which uses `names`, has no name for, as Python
    does for a keyword.
    """
    for argument in arguments:
        if argument.name not in names:
            near = closest(argument.name, [*names, *SETTINGS])
            hint = "" if near is None else f"; did you mean `{near}`?"
            raise TypeError(f"the program does not use `{argument.name}`{hint}")


def names_in(statements: Iterable[Statement]) -> set[str]:
    """The names that a program uses."""
    return {name for statement in statements for name in name_uses(statement)}
