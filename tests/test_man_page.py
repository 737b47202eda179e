"""The man page and the shells' completions that a wheel carries; what the change log promises."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gradcli import __version__ as gradcli_version
from gradcli.cli import man_page
from gradcli.cli.group import gradcli
from gradcli.running.arguments.words import COMMANDS, PROGRAM
from tests.command_line import ROOT
from tests.machine import PATIENCE


def _plain(page: str) -> str:
    """The text of a page, as `man` shows it."""
    for code, character in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^")):
        page = page.replace(code, character)
    return re.sub(r"\\f[BR]|\\&", "", page)


def test_the_page_has_every_command_and_every_option() -> None:
    page = man_page.man_page()
    options, commands = _plain(page).split("\n.SH COMMANDS\n")
    context = click.Context(gradcli, info_name="gradcli")
    for word in COMMANDS:
        command = gradcli.get_command(context, word)
        assert command is not None
        if word != PROGRAM:
            section = commands.split(f"\n.SS gradcli {word}\n")
            assert len(section) == 2 or commands.startswith(f".SS gradcli {word}\n"), word
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert all(flag in options + commands for flag in parameter.opts), word
    assert re.search(r"^\.TP\n141\nthe reader of the output went away$", commands, re.M)


def test_the_page_is_right_for_man() -> None:
    page = man_page.man_page()
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi"}
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    shown = subprocess.run(
        ["groff", "-ww", "-man", "-K", "utf8", "-T", "utf8"],
        input=page, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert shown.stderr == ""
    assert "The gradient that backward starts from." in shown.stdout


COMPLETED = {
    "der": ["derive"],
    "run --tra": ["--trace", "--trace-depth"],
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_by_the_file(tmp_path: Path) -> None:
    """One start of bash asks for all of them, with the file of a wheel."""
    man_page.write(tmp_path)
    (tmp_path / "gradcli").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradcli "$@"\n')
    (tmp_path / "gradcli").chmod(0o755)
    asked = "".join(
        f"COMP_WORDS=(gradcli {words}) COMP_CWORD={len(words.split())}\n"
        "COMPREPLY=(); _gradcli_completion gradcli; echo ${COMPREPLY[@]}\n"
        for words in COMPLETED
    )
    finished = subprocess.run(
        ["bash", "--norc", "-c", f". {tmp_path}/{man_page.COMPLETIONS['bash']}\n{asked}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert finished.stderr == ""
    assert [line.split() for line in finished.stdout.splitlines()] == list(COMPLETED.values())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_the_file(shell: str, tmp_path: Path) -> None:
    text = man_page.files()[man_page.COMPLETIONS[shell]]
    assert text.startswith(
        {"zsh": "#compdef gradcli\n", "fish": "function _gradcli_completion"}[shell]
    )
    if shutil.which(shell) is not None:
        (tmp_path / "file").write_text(text)
        subprocess.run([shell, "-n", tmp_path / "file"], check=True, timeout=PATIENCE)


def test_the_change_log_names_every_schema() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "gradcli").rglob("*.py"))
    page = (ROOT / "gradcli" / "manual" / "changes.md").read_text("utf-8")
    schema = r"gradcli\.[a-z-]+/[0-9]+"
    assert set(re.findall(schema, page)) == set(re.findall(f'"({schema})"', sources))
    assert f"## {gradcli_version}\n" in page
