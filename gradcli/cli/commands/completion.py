"""`gradcli completion`: scripts for completion in a shell, and the answers that they ask for."""

from __future__ import annotations

import click

from gradcli.running.process.terminal import Terminal

VARIABLE = "_GRADCLI_COMPLETE"
"""The environment variable by which a shell asks for completions."""

_NAME = "gradcli"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print a script for completion in a shell.

    It completes commands, options, topics, ops and files.

    \b
    bash: eval "$(gradcli completion bash)"      in ~/.bashrc
    zsh:  eval "$(gradcli completion zsh)"       in ~/.zshrc
    fish: gradcli completion fish | source       in ~/.config/fish/config.fish
    """
    Terminal().write(script(click.get_current_context().find_root().command, shell))
    return 0


def script(group: click.Command, shell: str) -> str:
    """The script that makes a shell ask for completions."""
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    # Not the method of bash's class, which starts a bash to look at its version.
    return ShellComplete.source(kind(group, {}, _NAME, VARIABLE)) + "\n"


def answer(group: click.Command, asked: str) -> int:
    """Print what a shell asks for; the exit code."""
    from click.shell_completion import shell_complete

    return shell_complete(group, {}, _NAME, VARIABLE, asked)
