"""`gradcli kernel install`: tells Jupyter of the kernel of gradcli's language."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from gradcli.errors import GradcliError
from gradcli.packages import left_out
from gradcli.running.arguments.click_options import with_limits
from gradcli.running.process.terminal import Terminal


@click.group("kernel")
def command() -> None:
    """Install the kernel for notebooks in the language."""


@command.command("install")
@click.option("--user", is_flag=True, help="Install it for this user; the default.")
@click.option("--sys-prefix", is_flag=True, help="Install it in this environment of Python.")
@click.option("--prefix", metavar="FOLDER", help="Install it in another environment.")
@click.option("--name", default="gradcli", metavar="NAME", help="What Jupyter calls it.")
@with_limits
def install(user: bool, sys_prefix: bool, prefix: str | None, name: str, **limits: Any) -> int:
    """Tell Jupyter of a kernel that runs cells in the language, within these limits."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError as error:
        raise left_out("`gradcli kernel`", "Jupyter", "notebook") from error
    chosen_limits = {option: value for option, value in limits.items() if value}
    where = sys.prefix if sys_prefix else prefix
    spec = {
        "argv": [sys.executable, "-m", "gradcli.doors.notebook.kernel", "-f", "{connection_file}"],
        "display_name": "gradcli" if name == "gradcli" else f"gradcli ({name})",
        "language": "gradcli",
        "interrupt_mode": "signal",
        "env": {"GRADCLI_KERNEL": json.dumps(chosen_limits)} if chosen_limits else {},
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")
        try:
            path = KernelSpecManager().install_kernel_spec(
                folder, name, user=user or where is None, prefix=where
            )
        except (OSError, ValueError) as problem:
            raise GradcliError("E603", f"the kernel cannot be installed: {problem}") from problem
    Terminal().write(f"{path}\n")
    return 0
