"""What the fenced blocks of README and of the manual print when they are run.

`python -m tests.block_runs [PAGE…]` writes what they print today into the pages, all of them unless
some are named; the difference is for a person to judge.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.blocks import ROOT, Block, blocks, commands, pages
from tests.exactness import UNMEASURED, Work, difference
from tests.machine import PATIENCE
from tests.running import invoke, run

_MARK = "@@@ end of command @@@"

_PLAIN = re.compile(r"""gradcli( ([\w@:=.,/[\]+-]|'[^']*'|"[^"$`\\]*")+)+\n""")
"""A command whose words need nothing of a shell."""


def same_output(expected: str, found: str, work: Callable[[], Work] = lambda: UNMEASURED) -> bool:
    """Whether a block prints what its page shows, by the contract of exactness."""
    return difference(found.rstrip(), expected.rstrip(), work) is None


class Shell:
    """A folder with a copy of `examples/`, in which `gradcli` and `python3` are commands.

    Args:
        folder: the folder, which is empty so far.
        inside: whether plain commands run inside this process, which spares them a start.
    """

    def __init__(self, folder: Path, inside: bool = False) -> None:
        self.folder = folder
        self.inside = inside
        shutil.copytree(ROOT / "examples", folder / "examples")
        programs = folder / "bin"
        programs.mkdir()
        for name, words in {"gradcli": "-m gradcli", "python3": ""}.items():
            command = programs / name
            command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            command.chmod(0o755)
        self.environment = {
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            # The plugin of pytest, as an installation has it; this tree may not be installed.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "gradcli.cli.pytest_plugin",
            "PYTHONPATH": str(ROOT),
            "TERM": "dumb",
        }

    def printed(self, script: str) -> str:
        """What a script prints on both streams."""
        if self.inside and _PLAIN.fullmatch(script):
            return self._invoked(shlex.split(script)[1:])
        return subprocess.run(
            ["bash", "-c", f"exec 2>&1\n{script}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        ).stdout

    def _invoked(self, words: list[str]) -> str:
        """What a command prints that runs inside this process."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            return invoke(*words, together=True).stdout

    def console(self, block: Block) -> list[str]:
        """What each command of a `console` block prints."""
        if self.inside and all(_PLAIN.fullmatch(command) for command, _ in commands(block)):
            return [self.printed(command) for command, _ in commands(block)]
        # The mark keeps `$?`, so that the next command can show it.
        script = f"mark() {{ code=$?; printf '%s\\n' '{_MARK}'; return $code; }}\n"
        script += "".join(f"{command}mark\n" for command, _ in commands(block))
        *found, _ = self.printed(script).split(f"{_MARK}\n")
        return found

    def failing(self, block: Block) -> str:
        """What a program with a code prints."""
        (self.folder / "program.grad").write_text(block.text, encoding="utf-8")
        return self.printed("gradcli run program.grad\n")


def shown(block: Block, shell: Shell) -> Iterator[tuple[str, str, str]]:
    """What is run of a block: the text that runs, what the page shows of its output, and what it
    prints.
    """
    if block.language == "console":
        found = shell.console(block)
        for (command, expected), printed in zip(commands(block), found, strict=True):
            yield command, expected, printed
    elif block.output is not None:
        printed = shell.failing(block) if block.code else run(block.text).stdout
        yield block.text, block.output.text, printed


def recorded(path: Path, shell: Shell) -> str:
    """A page with what its blocks print today."""
    page = path.read_text(encoding="utf-8")
    for block in reversed(blocks(path)):
        runs = list(shown(block, shell))
        if block.language == "console":
            lines = "".join(
                f"$ {command.replace(chr(10), chr(10) + '> ', command.count(chr(10)) - 1)}{printed}"
                for command, _, printed in runs
            )
            page = page[: block.start] + lines + page[block.start + len(block.text) :]
        elif runs and block.output is not None:
            end = block.output.start + len(block.output.text)
            page = page[: block.output.start] + runs[0][2] + page[end:]
    return page


def _record(paths: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder))
        for path in paths:
            path.write_text(recorded(path, shell), encoding="utf-8")


if __name__ == "__main__":
    _record([Path(each).resolve() for each in sys.argv[1:]] or pages())
