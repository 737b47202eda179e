"""What the page on contributing says of additions, followed on a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.command_line import ROOT

PAGE = ROOT / "gradcli" / "manual" / "contributing.md"

FOLLOWED = "\n# --- followed by the test"
"""Where an addition goes that no line of the file has to stand ahead of: the end."""


class Addition(NamedTuple):
    """What one section of the page asks for.

    Attributes:
        files: for each file of the package the line ahead of which a text goes, and that text; a
            file that is not there is made of the text.
        name: what the addition is called, NAME on the page.
        tries: commands, each with a part of what it prints.
    """

    files: dict[str, tuple[str, str]]
    name: str
    tries: dict[tuple[str, ...], str]


_COMMAND = '''"""`gradcli count`: how many nodes the graph has."""

import click

from gradcli.questions.answer import show_explanation
from gradcli.running.arguments.click_options import with_json, with_program
from gradcli.running.source import asked_of


@click.command("count")
@with_json
@with_program
def command(words, file, **given):
    """Count the nodes of the graph."""
    from gradcli.questions.count.find import count
    from gradcli.questions.count.tell import count_text
    from gradcli.show.answer import Answer

    asked = asked_of("count", words, file, given)

    def answer(run, result):
        found = count(result)
        return Answer(lambda style: count_text(found), lambda: {"count": found})

    return asked.terminal.checked(show_explanation(asked, answer))
'''

_DOOR = '''"""`gradcli total`: answers for programs that other software hands over, a line each."""

import click

from gradcli.doors.python.session import Session


@click.command("total")
def command():
    """Answer lines of standard input until it ends."""
    session = Session()
    for line in click.get_text_stream("stdin"):
        click.echo(f"{session.run(line).value:g}")
    return 0
'''

ADDITIONS = {
    "An op": Addition(
        {
            "gradcli/ops/elementwise/unary.py": (
                FOLLOWED,
                '\ntwo = pointwise("two", lambda self: 2 * self, self=lambda grad: 2 * grad)'
                "\nexpose(two)\n",
            )
        },
        "unary",
        {("y = two(x)", "x=2", "--no-trace"): "x.grad = tensor(2.)"},
    ),
    "A built-in function": Addition(
        {
            "gradcli/library/builtins.py": (
                FOLLOWED,
                "\n@_builtin\ndef builtin_twice(value: Any, /) -> Any:\n    return value * 2\n",
            )
        },
        "twice",
        {("twice(21)",): "42"},
    ),
    "A format of results": Addition(
        {
            "gradcli/show/brief.py": (
                FOLLOWED,
                "def brief(result):\n    return f'{result.name} briefly\\n'\n",
            ),
            "gradcli/running/arguments/options.py": (
                "PICTURES = ",
                'FORMATS = (*FORMATS, "brief")\n',
            ),
            "gradcli/running/report.py": (
                '        if options.format == "table":',
                '        if options.format == "brief":\n'
                "            from gradcli.show.brief import brief\n\n"
                "            terminal.write(brief(result))\n            return\n",
            ),
        },
        "brief",
        {
            ("y = x * x", "x=2", "--format", "brief"): "y briefly\n",
            ("y = x * x", "--inputs", "x.jsonl", "--format", "brief"): "not --format brief",
        },
    ),
    "A question": Addition(
        {
            "gradcli/questions/count/__init__.py": (FOLLOWED, '"""`count`."""\n'),
            "gradcli/questions/count/find.py": (
                FOLLOWED,
                "def count(result):\n    return len(result.graph.nodes)\n",
            ),
            "gradcli/questions/count/tell.py": (
                FOLLOWED,
                "def count_text(found):\n    return f'{found} nodes\\n'\n",
            ),
            "gradcli/questions/count/command.py": (FOLLOWED, _COMMAND),
            "gradcli/running/arguments/words.py": (
                '    "derive": ',
                '    "count": "Count the nodes of the graph.",\n',
            ),
        },
        "count",
        {
            ("count", "y = x * x", "x=2"): "2 nodes\n",
            ("count", "y = x * x", "x=2", "--json"): '"count": 2',
            ("--help",): "Count the nodes of the graph.",
        },
    ),
    "A door": Addition(
        {
            "gradcli/doors/total/__init__.py": (FOLLOWED, '"""Lines of other software."""\n'),
            "gradcli/doors/total/command.py": (FOLLOWED, _DOOR),
            "gradcli/running/arguments/words.py": (
                '    "derive": ',
                '    "total": "Answer lines of standard input.",\n',
            ),
            "gradcli/cli/group.py": (
                '    "lsp": ',
                '    "total": "gradcli.doors.total.command",\n',
            ),
        },
        "total",
        {
            ("total",): "6\n",
            ("--help",): "Answer lines of standard input.",
        },
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with all additions."""
    folder = tmp_path_factory.mktemp("copy")
    for room in ("gradcli", "grammar"):
        skipped = shutil.ignore_patterns("__pycache__", "manual", "*.marshal")
        shutil.copytree(ROOT / room, folder / room, ignore=skipped)
    for addition in ADDITIONS.values():
        for name, (before, text) in addition.files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            old = path.read_text("utf-8") if path.exists() else ""
            at = len(old) if before is FOLLOWED else old.index(before)
            path.write_text(old[:at] + text + old[at:], "utf-8")
    return folder


@pytest.mark.parametrize("title", ADDITIONS)
def test_an_addition_takes_the_places_that_the_page_names(title: str, copy: Path) -> None:
    """It works once these files are changed, each of which the page names."""
    addition = ADDITIONS[title]
    for words, shown in addition.tries.items():
        done = subprocess.run(
            [sys.executable, "-m", "gradcli", *words],
            cwd=copy,
            env={**os.environ, "XDG_CACHE_HOME": str(copy / "cache")},
            input="2 * 3\n",
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert shown in done.stdout + done.stderr, (words, done.stdout, done.stderr)
    section = PAGE.read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    section = section.replace("FAMILY/FILE", "elementwise/unary").replace("NAME", addition.name)
    named = {Path(each) for each in re.findall(r"`(gradcli/[\w./]+)`", section)}
    for name in addition.files:
        path = Path(name)
        assert path in named or path.parent in named, name
