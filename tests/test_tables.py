"""The grammar, the lexer and the cached tables: that they agree, and that the cache is safe."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.arrays.files import cache as files
from gradcli.errors import Source
from gradcli.language.parser import tables
from gradcli.language.parser.lexer import BAD_KINDS, KEYWORDS, Lexer
from gradcli.language.parser.parser import Parser, parse_program
from tests.machine import takes_at_most
from tests.test_parser import EXPRESSIONS, STATEMENTS

GRAMMAR = Path(tables.grammar_path()).read_text(encoding="utf-8")

# Words of Python that have no rule here.
SOFT = {"case", "match"}
"""The words that are keywords where their statement stands, and names elsewhere."""

READ = (
    "from gradcli.errors import Source; from gradcli.language.parser.parser import parse_program; "
    + ("parse_program(Source('test', 'x = (a + b) * d')); import sys; print('lark' in sys.modules)")
)


@pytest.fixture(scope="module")
def built() -> tables.Tables:
    """The grammar's tables, made by lark."""
    return tables.build(GRAMMAR)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: tables.Tables) -> Path:
    """The folder of an empty cache; building takes no time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tables, "build", lambda grammar: built)
    return tmp_path / "gradcli"


def imports_lark() -> bool:
    """Whether a fresh process that reads a program imports lark."""
    result = subprocess.run(
        [sys.executable, "-c", READ], capture_output=True, text=True, check=True
    )
    return result.stdout == "True\n"


# ---- agreement ----


def test_the_lexer_knows_every_token_of_the_grammar() -> None:
    kinds = {kind for row in tables.load().rows for kind in row} - {"$END", "_DEDENT", "_INDENT"}
    met = set()
    for text in [*EXPRESSIONS, *STATEMENTS, ".vars"]:
        lexer = Lexer(text)
        while lexer.statement():
            met.update(lexer.kinds)
    assert kinds <= met
    assert not kinds & BAD_KINDS
    assert {kind for kind in kinds if kind.isidentifier() and kind.islower()} <= KEYWORDS | SOFT
    assert kinds >= KEYWORDS


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    # Lark reports two rules that fit alike as an error, and a token that fits in two ways in its
    # log, when asked to.
    import logging

    from lark import logger

    level, logger.propagate = logger.level, True
    logger.setLevel(logging.DEBUG)
    try:
        tables.build(GRAMMAR)
    finally:
        logger.setLevel(level)
    assert "conflict" not in caplog.text


def test_every_rule_is_used_and_has_its_builder() -> None:
    loaded = tables.load()
    Parser(loaded)
    reduced = {-action for row in loaded.rows for action in row.values() if action < 0}
    assert reduced == set(range(1, len(loaded.rules) + 1))


def test_every_builder_is_named_by_the_grammar() -> None:
    from gradcli.language.parser.actions import expressions, statements

    named = {name for _, _, _, name, _ in tables.load().rules if name}
    others = {
        *("annotation_text", "checked_parameters", "unescape"),
        *("check_deletable", "check_depth", "check_placement", "check_single_target"),
        *("check_target", "describe"),
    }
    assert expressions.NODES.keys() | statements.NODES.keys() <= named
    for room in (expressions, expressions, statements):
        own = {
            name
            for name, value in vars(room).items()
            if callable(value) and getattr(value, "__module__", "") == room.__name__
        }
        functions = {name for name in own if name.islower() and not name.startswith("_")}
        assert functions - others <= named


# ---- the cache ----


def test_lark_is_imported_only_once(cache: Path) -> None:
    assert imports_lark()
    assert not imports_lark()
    assert oct(cache.stat().st_mode & 0o777) == "0o700"
    (file,) = cache.iterdir()
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def test_loaded_tables_are_the_built_ones(cache: Path, built: tables.Tables) -> None:
    tables.load()
    loaded = tables.load()
    assert loaded is not built
    for name in tables.Tables.fields:
        assert getattr(loaded, name) == getattr(built, name)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty", "folder", "writable", "link"])
def test_a_bad_cache_file_is_not_used(
    cache: Path, tmp_path: Path, built: tables.Tables, damage: str
) -> None:
    tables.load()
    (file,) = cache.iterdir()
    content = file.read_bytes()
    if damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "foreign":
        file.write_bytes(marshal.dumps([1, 2, 3]))
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "writable":
        file.chmod(0o622)
    else:
        file.unlink()
        if damage == "folder":
            file.mkdir()
        else:
            elsewhere = tmp_path / "elsewhere"
            elsewhere.write_bytes(content)
            file.symlink_to(elsewhere)
    key = (tables.FORMAT, sys.version, tables.lark_stamp(), GRAMMAR)
    assert files.read(str(file), key) is None
    assert tables.load() is built


def test_tables_of_another_grammar_are_not_used(cache: Path) -> None:
    tables.load()
    (file,) = cache.iterdir()
    key = (tables.FORMAT, sys.version, tables.lark_stamp(), GRAMMAR + "// changed")
    assert files.path_of("tables", key) != str(file)
    assert files.read(str(file), key) is None


def test_without_a_cache_the_tables_are_built(cache: Path, built: tables.Tables) -> None:
    cache.write_text("a file where the folder should be")
    assert tables.load() is built
    assert tables.load() is built
    assert imports_lark()


# ---- code that is written ----


def _none_is_compiled(*_: object) -> None:
    raise AssertionError("a text is compiled again")


def test_the_code_of_a_text_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        with monkeypatch.context() as again:
            for _ in range(2):
                namespace: dict[str, int] = {}
                exec(files.code_of(f"x = {number}\n", "<a text>"), namespace)
                assert namespace["x"] == number
                again.setattr(files, "compile", _none_is_compiled, raising=False)
        (file,) = cache.iterdir()  # a text replaces the one before
    file.chmod(0o666)
    monkeypatch.setattr(files, "compile", _none_is_compiled, raising=False)
    with pytest.raises(AssertionError, match="compiled again"):
        files.code_of("x = 2\n", "<a text>")


def test_code_that_cannot_be_kept_is_compiled(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    for _ in range(2):
        namespace: dict[str, int] = {}
        exec(files.code_of("x = 1\n", "<a text>"), namespace)
        assert namespace["x"] == 1


COMPILED = """
import builtins
compiled, names = builtins.compile, []
def compile(text, name, *rest, **named):
    names.append(name)
    return compiled(text, name, *rest, **named)
builtins.compile = compile
from gradcli.cli.main import run
run(["y = (a * a).sum()", "a=2"])
print(*names, sep=";")
"""


def test_the_code_of_ops_is_kept(tmp_path: Path) -> None:
    kept = []
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-c", COMPILED],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        )
        names = result.stdout.splitlines()[-1].split(";")
        kept.append({name for name in names if name in ("<apply of mul>", "<backward of mul>")})
    assert kept == [{"<apply of mul>", "<backward of mul>"}, set()]


def test_a_relative_cache_folder_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", "/home/someone")
    key = (tables.FORMAT, "", "", "")
    assert files.path_of("tables", key).startswith("/home/someone/.cache/gradcli/tables-")


def test_reading_is_fast_enough() -> None:
    """A guard against an accident, no benchmark: a token takes about two microseconds."""
    text = "loss = ((model(x) - y) ** 2).mean() + weight * penalty[0, 1:]\n" * 1_000
    with takes_at_most(1_000 * 31 * 20e-6):
        parse_program(Source("test", text))


def test_a_damaged_file_is_made_again(cache: Path, built: tables.Tables) -> None:
    tables.load()
    (file,) = cache.iterdir()
    content = file.read_bytes()
    damages = [content[:100], b"", content + b"x"]
    for place in range(0, len(content), len(content) // 50):
        damages.append(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    for damage in damages:
        file.write_bytes(damage)
        assert tables.load() is built  # and written anew
        assert tables.load() is not built


def test_a_failed_write_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str, target: str) -> None:
        raise OSError

    monkeypatch.setattr("os.replace", fail)
    tables.load()
    assert not [*cache.iterdir()]
