"""A Python function as a program: its source, and a call of it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from textwrap import dedent
from types import CodeType, FunctionType, ModuleType
from typing import Any

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
