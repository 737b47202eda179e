"""Writes the body of a function of a program as a function of the host's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.compiler.assignment import unpacked, with_star
from gradcli.language.compiler.base import Compiler
from gradcli.language.compiler.expressions.calling import NO_RECEIVER, failed, finished_call
from gradcli.language.compiler.expressions.displays import joined
from gradcli.language.compiler.written import (  # noqa: F401  each writer registers itself
    calling,
    expressions,
    statements,
)
from gradcli.language.compiler.written.writer import UNBOUND, CannotWrite, Writer, attempted
from gradcli.language.functions.calls import Function, Signature, locate, too_many_calls
from gradcli.language.limits import DEEPEST_CALL, PLAIN, too_many_steps
from gradcli.language.objects.classes.user_classes import UserClass, init_returned
from gradcli.language.objects.iteration import bounded, enter, iterate
from gradcli.language.objects.operators import HASHING, get_item, set_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import PARENT, Scope

_LARGEST = 2000
"""Nodes of a body that is written."""

_NAMES: dict[str, Any] = {
    "DEEPEST_CALL": DEEPEST_CALL,
    "Function": Function,
    "GradcliError": GradcliError,
    "HASHING": HASHING,
    "NO_RECEIVER": NO_RECEIVER,
    "PARENT": PARENT,
    "PLAIN": PLAIN,
    "Tensor": Tensor,
    "UNBOUND": UNBOUND,
    "bounded": bounded,
    "UserClass": UserClass,
    "enter": enter,
    "failed": failed,
    "finished_call": finished_call,
    "get_item": get_item,
    "init_returned": init_returned,
    "iterate": iterate,
    "joined": joined,
    "locate": locate,
    "new_instance": object.__new__,
    "set_item": set_item,
    "too_many_calls": too_many_calls,
    "too_many_steps": too_many_steps,
    "unpacked": unpacked,
    "with_star": with_star,
    **expressions.NAMES,
}
"""What every text may refer to."""

_HEAD = """\
def run({parameters}):
 steps.left -= 1
 if steps.left < 0: raise too_many_steps()
 place = state.place
 if len(stack) >= DEEPEST_CALL: raise too_many_calls(f.name)
 stack.append((f.name, place))
 try:
"""

_FOOT = """
 except GradcliError as error:
  locate(error, state)
  raise
 except RecursionError as error:
  raise locate(too_many_calls(f.name, len(stack)), state) from error
 finally:
  stack.pop()
  state.place = place
"""


def written(
    compiler: Compiler,
    signature: Signature,
    defaults: Sequence[str],
    body: Sequence[tree.Statement],
    scope: Scope,
) -> Callable[..., Any] | None:
    """The body as a function of the `Function` that is called and of its arguments; None where that
    cannot be.
    """
    if not _may_write(body):
        return None
    kept: frozenset[str] = frozenset()
    while True:
        writer = Writer(compiler, scope, kept)
        try:
            text = _text(writer, signature, defaults, body)
        except CannotWrite:
            return None
        if writer.wanted <= kept:
            break
        kept |= writer.wanted
    return _made(writer, text)


def written_block(compiler: Compiler, body: Sequence[tree.Statement], scope: Scope) -> Run | None:
    """The body of a loop as a function of the variables, which are where closures have them, and
    which ends as a closure does; None where that cannot be.
    """
    if scope.is_class or not _may_write(body):
        return None
    writer = Writer(compiler, scope, scope.bound, is_function=False)
    writer.has_variables = True
    try:
        writer.block_of(body, scope)
    except CannotWrite:
        return None
    return _over_variables(writer, "variables", "None")


def written_list(
    compiler: Compiler, node: tree.Comprehension, scope: Scope
) -> Callable[..., list[Any]] | None:
    """A list comprehension of one clause as a function of the variables around it and of the
    iterator that it draws from; None where that cannot be.
    """
    if scope.is_class or not _may_write([node]):
        return None
    writer = Writer(compiler, scope, scope.bound)
    writer.has_variables = True
    try:
        result = attempted(
            writer, lambda: expressions.listed(writer, node, scope, "drawn"), lambda: None
        )
    except CannotWrite:
        return None
    if result is None:
        return None
    return _over_variables(writer, "variables, drawn", result)


def _over_variables(writer: Writer, parameters: str, result: str) -> Callable[..., Any]:
    """What was written as a function of the variables of closures."""
    lines = [f"def run({parameters}):"]
    if writer.has_parent:
        lines.append(" parent = variables[PARENT]")
    if writer.unsure:
        lines.append(f" {' = '.join(sorted(writer.unsure))} = UNBOUND")
    return _made(writer, "\n".join([*lines, *writer.lines, f" return {result}"]))


def _may_write(body: Sequence[tree.Syntax]) -> bool:
    """Whether a body is of a size to be written, and has no `:=`: operands of an expression would
    change behind it.
    """
    for number, each in enumerate(tree.nodes_of(list(body))):
        if number > _LARGEST or isinstance(each, tree.NamedExpression):
            return False
    return True


def _made(writer: Writer, text: str) -> Callable[..., Any]:
    """The function that a text defines."""
    state = writer.compiler.state
    namespace = writer.names  # whose cells change
    namespace.update(_NAMES, state=state, steps=writer.compiler.steps, stack=state.stack)
    exec(_code(text), namespace)
    run: Callable[..., Any] = namespace["run"]
    return run


@lru_cache(maxsize=1000)
def _code(text: str) -> CodeType:
    """The code of a text, which functions share that differ in names and constants alone."""
    return compile(text, "<a function of the program>", "exec")


def _text(
    w: Writer, signature: Signature, defaults: Sequence[str], body: Sequence[tree.Statement]
) -> str:
    own = [w.variable(each, w.scope) for each in signature.positional]
    parameters = ["f"]
    first: list[str] = []
    for name, variable in zip(signature.positional, own, strict=True):
        parameters.append(f"{variable}=UNBOUND" if name in defaults else variable)
        if name in defaults:
            default = f"f.defaults[{w.constant('n', name)}]"
            first.append(f"if {variable} is UNBOUND: {variable} = {default}")
    w.sure.update(own)
    w.indent("  ")
    w.block_of(body, w.scope)
    pairs = zip(signature.positional, own, strict=True)
    held = [f"{w.constant('n', name)}: {own}" for name, own in pairs if name in w.kept]
    if w.has_parent or w.has_variables:
        first.append("parent = f.parent")
    if w.has_variables:
        first.append(f"variables = {{{', '.join([*held, 'PARENT: parent'])}}}")
    if w.unsure:
        first.append(f"{' = '.join(sorted(w.unsure))} = UNBOUND")
    lines = [*[f"  {each}" for each in first], *w.lines] or ["  pass"]
    return _HEAD.format(parameters=", ".join(parameters)) + "\n".join(lines) + _FOOT
