"""Batch: `gradcli run FILE… [NAME=VALUE]…`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gradcli.cli.documents.batch import batch, files_and_arguments, run_file, watch
from gradcli.running.arguments.click_options import options_of, terminal_of, values, with_options
from gradcli.running.arguments.files import STDIN
from gradcli.running.arguments.words import SCRIPT, UsageError, check_stdin
from gradcli.running.process.terminal import Terminal


@click.command("run")
@with_options
@click.option("--keep-going", is_flag=True, help="Run further files after one failed.")
@click.option(
    "--explain-loops",
    is_flag=True,
    help="Say which loops were compiled, and where and why the others were not.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Run the file anew when it changes, and show what changed in its output; until Ctrl-C.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Compare the outputs in notebooks and Markdown with what their programs print.",
)
@click.option(
    "--update", is_flag=True, help="With --check: write the outputs that differ into the document."
)
@click.argument("words", nargs=-1, metavar="FILE… [NAME=VALUE]…", shell_complete=values)
def command(words: Sequence[str], **settings: Any) -> int:
    """Run program files, notebooks, Markdown; `-` is standard input."""
    behind = [word.removeprefix(SCRIPT) for word in words if word.startswith(SCRIPT)]
    words = [word for word in words if not word.startswith(SCRIPT)]
    paths, arguments = files_and_arguments(words)
    if settings["output"] is not None and len(paths) > 1:
        raise UsageError("-o holds the result of one file, and there are several")
    watched, checked, update = settings.pop("watch"), settings.pop("check"), settings.pop("update")
    if update and not checked:
        raise UsageError("--update goes with --check")
    if checked and (arguments or behind or watched):
        raise UsageError("--check takes documents alone")
    if watched and (len(paths) > 1 or STDIN in paths or settings["inputs"] is not None):
        raise UsageError("--watch takes one file, and no --inputs")
    terminal = terminal_of(settings)
    options = options_of(settings)
    options.script = behind
    if checked:
        from gradcli.cli.commands.check_doc import check  # lazy: command: few ask for it

        return check(terminal, paths, options, update)
    if options.explain_loops and options.no_compiled_loops:
        raise UsageError("--explain-loops and --no-compiled-loops exclude each other")
    if options.inputs is not None and len(paths) > 1:
        raise UsageError("--inputs runs one file, and there are several")
    if watched:
        check_stdin(arguments, ())

        def run(seen: Terminal) -> None:
            try:
                run_file(seen, paths[0], arguments, options)
            except UsageError as error:
                terminal.usage_error(str(error), error.help)

        watch(terminal, paths[0], run)
    return terminal.checked(batch(terminal, paths, arguments, options))
