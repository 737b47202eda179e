"""README and the manual: every block is run, every page fits a terminal, every topic is found."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path, PurePath

import click
import pytest

from gradcli.arrays.files.data_file import FORMATS as FILES
from gradcli.cli.group import gradcli as group
from gradcli.errors import CODES, WARNINGS
from gradcli.repl.dot_commands.table import TABLE
from gradcli.running.arguments.options import DRAWN, FORMATS, PICTURES
from gradcli.show.help import pages as help_pages
from gradcli.show.help.manual import rendered, sections, source
from gradcli.show.help.members import member_pages
from gradcli.show.help.ops import op_help
from gradcli.show.help.pages import MORE, overview, topics
from gradcli.show.style import Style
from tests.block_runs import Shell, recorded, same_output, shown
from tests.blocks import LANGUAGES, MANUAL, README, ROOT, Block, all_blocks, blocks, pages
from tests.command_line import CommandLine
from tests.exactness import work_of
from tests.rows import each_row
from tests.running import run

PAGES = [path.stem for path in sorted(MANUAL.glob("*.md"))]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture(scope="module", params=["inside", pytest.param("outside", marks=pytest.mark.shell)])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("manual"), inside=request.param == "inside")


# --- blocks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_console(page: Path, shell: Shell) -> None:
    # A block may read what an earlier one of its page has written.
    for block in [each for each in blocks(page) if each.language == "console"]:
        for command, expected, found in shown(block, shell):
            assert same_output(expected, found), f"{block}: {command}\n{found}"


@pytest.mark.parametrize("block", all_blocks("gradcli"), ids=repr)
def test_program(block: Block, shell: Shell) -> None:
    if block.code:
        found = shell.failing(block)
        assert re.findall(r"^(?:error|warning)\[(\w+)\]", found, re.MULTILINE) == [block.code]
    else:
        outcome = run(block.text)
        assert outcome.error is None
        found = outcome.stdout
    if block.output is not None:
        assert same_output(block.output.text, found, lambda: work_of(block.text)), found


@pytest.mark.parametrize("block", all_blocks("python"), ids=repr)
def test_python(block: Block) -> None:
    compile(block.text, repr(block), "exec")


def test_blocks_are_of_known_languages() -> None:
    found = [block for path in pages() for block in blocks(path)]
    assert [block for block in found if block.language not in LANGUAGES] == []
    # Nothing that looks like a fence is left unread.
    fences = sum(path.read_text(encoding="utf-8").count("\n```") for path in pages())
    starting = sum(path.read_text(encoding="utf-8").startswith("```") for path in pages())
    assert 2 * len(found) == fences + starting


def test_a_wrong_output_is_found_and_mended(shell: Shell) -> None:
    page = shell.folder / "page.md"
    right = "```console\n$ gradcli -e 'print(1 +\n> 1)'\n2\n```\n\n```gradcli\nprint(3)\n```\n\n"
    right += "```text\n3\n```\n"
    page.write_text(right.replace("\n2\n", "\n4\n").replace("\n3\n", "\n5\n"), encoding="utf-8")
    runs = [each for block in blocks(page) for each in shown(block, shell)]
    assert [same_output(expected, found) for _, expected, found in runs] == [False, False]
    assert recorded(page, shell) == right


def test_set_up_commands() -> None:
    """The first installs and prints the toy example, the second installs and runs the tests."""
    first, second = (block.text for block in blocks(README) if block.language == "sh")
    assert "gradcli 'e = (a + b) * d' a=2 b=3 d=4" in first
    assert "pytest" in second
    asked = [sys.executable, "-m", "tests.readme"]
    for number, text in (("1", first), ("2", second)):
        found = subprocess.run([*asked, number], cwd=ROOT, capture_output=True, text=True)
        assert found.stdout == text


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200


# --- topics -------------------------------------------------------------------------------------


def test_front_page_lists_every_topic_once() -> None:
    text = source_of("index")
    listed = re.findall(r"^\| \[?`?([a-z-]+)[`\]]", text, re.MULTILINE)
    assert len(listed) == 20
    more = re.findall(
        r"[\[`]([a-z-]+)[\]`]", text[text.index("\nMore: ") : text.index("`gradcli help OP`")]
    )
    listed += more
    assert sorted(listed) == sorted({*topics(), "exit-codes"})
    assert [name for name in listed if name in PAGES] == topics()[: len(PAGES) - 1]


def test_readme_links_to_every_page() -> None:
    linked = re.findall(r"\]\(gradcli/manual/([a-z-]+)\.md\)", README.read_text(encoding="utf-8"))
    assert set(linked) >= set(PAGES)


def test_every_command_has_a_topic() -> None:
    known = {*topics(), *sections()}
    assert set(group.list_commands(click.Context(group))) - {"program"} - known == set()


def test_links_lead_somewhere() -> None:
    for path in pages():
        text = prose(path.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)]+)\)", text):
            file, _, anchor = target.partition("#")
            linked = (path.parent / file).resolve() if file else path
            assert linked.is_file(), f"{path.stem}: {target}"
            if anchor:
                assert anchor in sections(), f"{path.stem}: {target}"


_ROOMS = ("gradcli", "tests", "grammar", "examples")


def test_paths_that_pages_name_are_there() -> None:
    """A path from the top, or a file by its name alone; `NAME` and its like stand for any."""
    there = {file.relative_to(ROOT) for room in _ROOMS for file in (ROOT / room).rglob("*")}
    names = {path.name for path in there}
    for page in pages():
        for named in re.findall(r"`([\w./-]+)`", prose(page.read_text(encoding="utf-8"))):
            path = PurePath(named)
            if re.search(r"\b[A-Z]+\b", named.removesuffix(path.suffix)):
                continue
            if named.partition("/")[0] in _ROOMS and len(path.parts) > 1:
                assert Path(named) in there, f"{page.stem}: {named}"
            elif path.suffix in (".py", ".lark"):
                assert path.name in names, f"{page.stem}: {named}"


def test_names_stand_in_the_files_that_pages_name() -> None:
    """`NAME` in `path`, and `NAME` of `path`."""
    for page in pages():
        text = prose(page.read_text(encoding="utf-8"))
        in_file = r"`(\w+)`\s+(?:in|of)\s+`((?:gradcli|tests)/[\w/]+\.py)`"
        for name, path in re.findall(in_file, text):
            there = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"\b{name}\b", there), f"{page.stem}: {name} in {path}"


def test_python_of_gradcli_stands_in_the_file_that_is_named() -> None:
    """The file that a page names last ahead of a block, with what the block shows."""
    for block in all_blocks("python"):
        page = block.path.read_text(encoding="utf-8")
        named = re.findall(r"`((?:gradcli|tests)/[\w/]+\.py)`", page[: block.start])[-1]
        assert block.text.rstrip() in (ROOT / named).read_text(encoding="utf-8"), (
            f"{block}: {named}"
        )


def test_pages_ask_for_topics_that_there_are() -> None:
    known = {*topics(), *sections(), *CODES, *WARNINGS, "TOPIC", "OP", "CODE", "NAME"}
    for path in pages():
        for topic in re.findall(r"gradcli help ([\w.-]+\w)", path.read_text(encoding="utf-8")):
            assert topic in known or help_pages.page(topic) is not None, f"{path.stem}: {topic}"


def test_topics_that_mean_more() -> None:
    words = {*topics(), *sections()}
    assert {name for name in words if op_help(name) is not None or member_pages(name)} == MORE


def test_a_topic_and_an_op_are_both_shown(command: CommandLine) -> None:
    shown = command("help", "trace").out
    assert shown.startswith("The trace\n")
    assert "\n\ntorch.trace(input)\n" in shown


@each_row("name", sorted({*topics(), *sections()}))
def test_every_topic_is_shown(command: CommandLine, name: str) -> None:
    shown = command("help", name)
    assert (shown.code, shown.err) == (0, "")
    assert len(shown.out) > 100


UNKNOWN = [
    ("exit-cods", "did you mean `exit-codes`"),
    ("traces", "did you mean `trace`"),
    ("langauge", "did you mean `language`"),
    ("../../README", "there is no topic or op"),
    ("codes/E401", "there is no topic or op"),
    ("index-page", "there is no topic or op"),
    ("", "there is no topic or op"),
]


@pytest.mark.parametrize(("name", "part"), UNKNOWN)
def test_unknown_topics(command: CommandLine, name: str, part: str) -> None:
    shown = command("help", name)
    assert (shown.code, shown.out) == (2, "")
    assert part in shown.err


@each_row("code", [*CODES, *WARNINGS])
def test_every_code_has_a_page(code: str) -> None:
    path = MANUAL / "codes" / f"{code}.md"
    assert path.is_file()
    assert len(path.read_text(encoding="utf-8").split()) >= 8


def test_pages_of_codes_have_a_code() -> None:
    assert {path.stem for path in MANUAL.glob("codes/*")} == {*CODES, *WARNINGS}


# --- the wheel and start-up ---------------------------------------------------------------------


def test_pages_are_packed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["gradcli"]
    packed = {
        path.relative_to(ROOT) for pattern in patterns for path in (ROOT / "gradcli").glob(pattern)
    }
    assert {path.relative_to(ROOT) for path in MANUAL.rglob("*.md")} <= packed


def _loaded_by(*words: str) -> set[str]:
    """The modules that are loaded at the end of a command line."""
    asked = f"from gradcli.cli.main import run\nrun({words})\nimport sys\nprint(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(finished.stdout.splitlines()[-1].split())


def test_a_page_needs_no_numpy() -> None:
    loaded = _loaded_by("help", "limits")
    assert loaded & {"numpy", "lark", "gradcli.ops.binding.catalogue", "difflib"} == set()


def test_a_one_shot_reads_no_page() -> None:
    loaded = _loaded_by("y = x * 2", "x=2")
    assert "gradcli.show.style" in loaded
    assert loaded & {overview.__module__, rendered.__module__} == set()


def test_a_closed_pipe_ends_quietly(shell: Shell) -> None:
    assert shell.printed("gradcli help language | head -n 1") == "The language\n"
    assert shell.printed("gradcli help language | true; echo ${PIPESTATUS[0]}") in ("0\n", "141\n")


# --- layout -------------------------------------------------------------------------------------


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def source_of(page: str) -> str:
    return (MANUAL / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", PAGES)
def test_prose_and_tables_fit_the_terminal(name: str, width: int) -> None:
    text = rendered(source_of(name), Style(False, width))
    prose = [line for line in text.split("\n") if not line.startswith("  ")]
    assert [line for line in prose if len(line) > min(width, 100)] == []


@pytest.mark.parametrize("name", PAGES)
def test_blocks_are_never_wrapped(name: str) -> None:
    for style in (Style(False, 40), Style(), Style(True, 200)):
        lines = re.sub(r"\x1b\[[\d;]*m", "", rendered(source_of(name), style)).split("\n")
        for block in blocks(MANUAL / f"{name}.md"):
            wanted = [f"  {line}".rstrip() for line in block.text.split("\n")[:-1]]
            at = [n for n in range(len(lines)) if lines[n : n + len(wanted)] == wanted]
            assert at, repr(block)


@pytest.mark.parametrize("name", PAGES)
def test_no_mark_of_markdown_is_left(name: str) -> None:
    text = rendered(source_of(name), Style(True, 80))
    words = re.sub(r"\x1b\[[\d;]*m", "", text)
    outside = [line for line in words.split("\n") if not line.startswith("  ")]
    assert [line for line in outside if re.search(r"`|(?<!\w)\*\*(?=\S)|\]\(|^#|^\|", line)] == []


def test_colour_only_where_allowed() -> None:
    assert "\x1b[1m" in overview(Style(True, 80))
    assert "\x1b" not in overview(Style(False, 80))


MARKDOWN = """\
# A page

Some `code with blanks`, **strong** words,
and a [link](errors.md).

## A section
- one item of a list that is longer than a line
  and goes on
- another
1. a number

| name | what it is |
|---|---|
| `a \\| b` | short |
| long `name` | a text that does not fit into the room that there is |

```console
$ a command that is longer than the line of the terminal
what it prints
```
### Last
"""

PLAIN_TEXT = """\
A page
======

Some `code with blanks`, strong words,
and a link.

A section
---------

- one item of a list that is longer than
  a line and goes on
- another
1. a number

name         what it is
-----------  ---------------------------
a | b        short
long `name`  a text that does not fit
             into the room that there is

  $ a command that is longer than the line of the terminal
  what it prints

Last
"""


def test_layout() -> None:
    assert rendered(MARKDOWN, Style(False, 40)) == PLAIN_TEXT


def test_layout_in_colour() -> None:
    lines = rendered(MARKDOWN, Style(True, 40)).split("\n")
    assert lines[0] == "\x1b[1mA page\x1b[0m"
    assert lines[2].startswith("Some \x1b[36mcode with blanks\x1b[0m, ")
    assert "\x1b[1mstrong\x1b[0m words," in lines[2]
    assert "  \x1b[1m$ a command that is longer than the line of the terminal\x1b[0m" in lines
    assert "  what it prints" in lines


def test_sections_are_topics() -> None:
    text = source("exit-codes")
    assert text is not None
    assert text.startswith("# Exit codes\n")
    assert "\n## " not in text


def test_every_page_has_one_title() -> None:
    for name in PAGES:
        titles = re.findall(r"^# .*", prose(source_of(name)), re.MULTILINE)
        assert len(titles) == 1, name
        assert source_of(name).startswith("# ")


# --- what a new thing needs ---------------------------------------------------------------------


def test_every_dot_command_has_a_row() -> None:
    rows = re.findall(r"^\| `(\.\w+)", source_of("repl"), re.MULTILINE)
    assert sorted(rows) == sorted(TABLE)


def test_every_format_has_a_row() -> None:
    page = source_of("formats")
    for format in (*FORMATS, *PICTURES):
        assert f"\n| `{format}` |" in page, format
    assert {".parquet", ".txt", *DRAWN, *(f".{name}" for name in FILES)} == set(
        re.findall(r"^\| `(\.\w+)` \| \w", page, re.M)
    )
