"""Completion in a shell: click's own, with the names that gradcli knows."""

from __future__ import annotations

import os
from collections.abc import Iterable
from glob import escape, glob

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    get_completion_class,
    shell_complete,
)

VARIABLE = "_GRADCLI_COMPLETE"
"""The environment variable by which a shell asks for completions."""

_NAME = "gradcli"


def script(command: click.Command, shell: str) -> str:
    """The script that makes a shell ask for completions."""
    kind = get_completion_class(shell)
    assert kind is not None
    # Not the method of bash's class, which starts a bash to look at its version.
    return ShellComplete.source(kind(command, {}, _NAME, VARIABLE)) + "\n"


def answer(command: click.Command, asked: str) -> int:
    """Print what a shell asks for; the exit code."""
    return shell_complete(command, {}, _NAME, VARIABLE, asked)


def topics(incomplete: str) -> list[CompletionItem[str]]:
    """What `gradcli help` can be asked for."""
    from gradcli.render.help.pages import names

    return _starting(incomplete, [*names(), *_qualified(incomplete)])


def ops(incomplete: str) -> list[CompletionItem[str]]:
    """Names of ops."""
    from gradcli.render.help.op_page import load

    return _starting(incomplete, [*load("torch"), *load("torch.nn.functional")])


def values(incomplete: str) -> list[CompletionItem[str]]:
    """Files, also behind `NAME=@`."""
    head, at, path = incomplete.partition("=@")
    if not at:
        return [CompletionItem(incomplete, type="file")]
    found = sorted(glob(f"{escape(path)}*"))
    return [
        CompletionItem(f"{head}=@{each}{os.sep if os.path.isdir(each) else ''}") for each in found
    ]


def _qualified(incomplete: str) -> Iterable[str]:
    """Full names below the place that was begun: `F.`, `Tensor.`, `nn.`."""
    from gradcli.ops.lookup import place_of, table_of
    from gradcli.render.help.op_page import load

    prefix = incomplete.rpartition(".")[0]
    place = place_of(prefix) if prefix else None
    return [] if place is None else [f"{prefix}.{name}" for name in table_of(place, load)]


def _starting(incomplete: str, names: Iterable[str]) -> list[CompletionItem[str]]:
    return [
        CompletionItem(name)
        for name in dict.fromkeys(names)
        if name.startswith(incomplete) and not name.startswith("_")
    ]
