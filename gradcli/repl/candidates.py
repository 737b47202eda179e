"""Candidates of completion: names, attributes, keyword arguments, commands, files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from prompt_toolkit.completion import Completion

from gradcli.autograd.tensor import Tensor
from gradcli.language.objects.attributes import Module, attribute_names
from gradcli.language.parser.lexer import KEYWORDS
from gradcli.library.namespace import plain_names, table_of
from gradcli.ops.binding import catalogue
from gradcli.repl.dot_commands.describe import kind_of
from gradcli.repl.dot_commands.line import Kind
from gradcli.repl.dot_commands.table import TABLE
from gradcli.running.lookup import UNKNOWN, parameters_of, signature_of, value_of
from gradcli.show.help.pages import topics

if TYPE_CHECKING:
    from gradcli.session import Session


def names(
    session: Session, word: str, function: Sequence[str] = (), used: Sequence[str] = ()
) -> Iterator[Completion]:
    """What can begin an expression: keyword arguments inside a call, the session's names, and,
    once a letter is typed, the language's.

    Args:
        function: the dotted name of the function whose argument it may be.
        used: the keywords that the call has already.
    """
    if function:
        yield from _keywords(value_of(session, function), used, word)
    values = session.values
    for name in _fitting(values, word):
        yield _completion(name, word, kind_of(values[name]))
    if not word:
        return
    for name in _fitting([*plain_names(), *KEYWORDS], word):
        if name in values:
            continue
        table = table_of(name)
        shown = "keyword" if table is None else partial(_shown, table[name])
        yield _completion(name, word, shown)


def attributes(session: Session, chain: Sequence[str], word: str) -> Iterator[Completion]:
    """The attributes of what a dotted name stands for.

    Of a value that would have to be computed those of tensors: few others are worked with.
    """
    value = value_of(session, chain)
    if value is UNKNOWN:
        candidates = [*catalogue.properties, *catalogue.methods]
    else:
        candidates = attribute_names(value)
    is_tensor = value is UNKNOWN or type(value) is Tensor
    if hasattr(type(value), "named_parameters"):
        own = dict([*value.named_children(), *value.named_parameters("", False)])
        for name, part in own.items():
            if name.startswith(word) and name.isidentifier():
                yield _completion(name, word, kind_of(part))
        candidates = [name for name in candidates if name not in own]
    for name in _fitting(candidates, word):
        if is_tensor:
            method = catalogue.methods.get(name)
            shown = "" if method is None else partial(_shown, method, True)
        elif type(value) is Module:
            shown = partial(_shown, value.get(name))
        else:
            shown = ""
        yield _completion(name, word, shown)


def _keywords(function: Any, used: Sequence[str], word: str) -> Iterator[Completion]:
    for parameter in parameters_of(function):
        if parameter.keyword and parameter.name.startswith(word) and parameter.name not in used:
            shown = "argument" if parameter.default is None else f"={parameter.default}"
            yield Completion(f"{parameter.name}=", -len(word), display_meta=shown)


def _shown(value: Any, is_method: bool = False) -> str:
    """What stands beside a name: the signature of a function, else what it is."""
    if callable(value):
        return signature_of(value, is_method) or ""
    return kind_of(value)


# --- commands -----------------------------------------------------------------------------------


def of_command(session: Session, text: str) -> Iterator[Completion]:
    """How a dot-command can go on."""
    name, blank, rest = text.partition(" ")
    if not blank:
        for command in TABLE.values():
            if command.name.startswith(name):
                yield Completion(command.name, -len(name), display_meta=command.summary)
        return
    known = TABLE.get(name)
    if known is None:
        return
    words = rest.split(" ")
    number = len([word for word in words[:-1] if word])
    if number < len(known.arguments):
        yield from _argument(session, known.arguments[number][1], words[-1])


def _argument(session: Session, kind: Kind, word: str) -> Iterator[Completion]:
    if kind == "file":
        yield from files(session, word)
    elif kind == "expression":
        yield from names(session, word)
    elif kind == "tensor":
        values = session.values
        for name in _fitting(values, word):
            if type(values[name]) is Tensor:
                yield _completion(name, word, kind_of(values[name]))
    elif kind == "topic":
        for name in _fitting([*TABLE, *topics()], word):
            yield _completion(name, word)
        yield from names(session, word)
    else:
        for name in _fitting(kind, word):
            yield _completion(name, word)


def files(session: Session, path: str) -> Iterator[Completion]:
    """The files that a path can go on with; folders end with a slash."""
    if not session.state.limits.files:
        return
    folder, _, start = path.rpartition("/")
    inside = os.path.expanduser(f"{folder}/" if "/" in path else ".")
    try:
        with os.scandir(inside) as entries:
            entries_by_name = sorted((entry.name, entry.is_dir()) for entry in entries)
    except OSError:
        return
    for name, is_folder in entries_by_name:
        if name.startswith(start) and (start or not name.startswith(".")):
            yield Completion(f"{name}/" if is_folder else name, -len(start))


# --- names --------------------------------------------------------------------------------------


# fmt: off
_USED_MOST = (
    "grad", "backward", "shape", "requires_grad", "item", "detach", "sum", "mean", "view",
    "reshape", "tensor", "randn", "zeros", "ones", "nn", "optim", "no_grad", "manual_seed",
    "parameters", "zero_grad", "step", "train", "eval", "state_dict", "size", "dtype", "T",
    "squeeze", "unsqueeze", "exp", "log", "sqrt", "abs", "max", "argmax", "softmax", "relu",
    "sigmoid", "tanh", "matmul", "stack", "cat", "arange", "linspace", "where", "clone", "numpy",
    "to", "float", "long", "requires_grad_", "retain_grad", "grad_fn", "is_leaf", "register_hook",
    "print", "range", "for", "def", "import",
)
# fmt: on
"""What is typed most, the most used first."""

_RANKS = {name: rank for rank, name in enumerate(_USED_MOST)}


def _fitting(names: Iterable[str], word: str) -> list[str]:
    """The names that begin with a word, the most used first, then by the alphabet, without those of
    one's own use unless it asks for them.
    """
    own = word.startswith("_")
    fitting = {n for n in names if n.startswith(word) and (own or not n.startswith("_"))}
    return sorted(fitting, key=lambda name: (_RANKS.get(name, len(_RANKS)), name.casefold(), name))


def _completion(name: str, word: str, shown: Any = "") -> Completion:
    return Completion(name, -len(word), display_meta=shown)
