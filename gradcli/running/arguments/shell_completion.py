"""Completion of words in a shell: files, topics, ops.

click asks for these; they are computed only when a shell completes a word.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def topics(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """What `gradcli help` can be asked for."""
    from gradcli.ops.lookup import namespace_of, table_of  # lazy: start-up: all ops
    from gradcli.show.help.op_page import load  # lazy: start-up: all ops
    from gradcli.show.help.pages import names  # lazy: start-up: all ops

    matches = names()
    prefix = incomplete.rpartition(".")[0]
    namespace = namespace_of(prefix) if prefix else None
    if namespace is not None:  # full names in the namespace that was begun: `F.`, `Tensor.`, `nn.`
        matches = [*matches, *(f"{prefix}.{name}" for name in table_of(namespace, load))]
    return _starting(incomplete, matches)


def ops(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Names of ops."""
    from gradcli.show.help.op_page import load  # lazy: start-up: all ops

    return _starting(incomplete, [*load("torch"), *load("torch.nn.functional")])


def values(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Files, also behind `NAME=@`."""
    from glob import escape, glob  # lazy: start-up: click's completion

    from click.shell_completion import CompletionItem  # lazy: start-up: click's completion

    head, at, path = incomplete.partition("=@")
    if not at:
        return [CompletionItem(incomplete, type="file")]
    matches = sorted(glob(f"{escape(path)}*"))
    return [
        CompletionItem(f"{head}=@{each}{os.sep if os.path.isdir(each) else ''}") for each in matches
    ]


def _starting(incomplete: str, names: Iterable[str]) -> list[CompletionItem[str]]:
    from click.shell_completion import CompletionItem  # lazy: start-up: click's completion

    return [
        CompletionItem(name)
        for name in dict.fromkeys(names)
        if name.startswith(incomplete) and not name.startswith("_")
    ]
