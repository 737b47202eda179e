"""Reading programs: the tree that is built, the places in it, streams, and what is incomplete.

The oracle is Python's own parser. To add a case, add a line to `syntax/expressions.txt` or a block
to `syntax/statements.txt`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradcli.errors import Source
from gradcli.language.parser import lexer
from gradcli.language.parser.parser import (
    is_incomplete,
    parse_expression,
    parse_program,
    statements_of,
)
from gradcli.language.tree import syntax
from tests.python_tree import convert, described, our_module, python_module
from tests.rows import each_row

HERE = Path(__file__).parent
EXPRESSIONS = (HERE / "syntax" / "expressions.txt").read_text(encoding="utf-8").splitlines()
STATEMENTS = (HERE / "syntax" / "statements.txt").read_text(encoding="utf-8").split("\n---\n")


def parse(text: str) -> list[syntax.Statement]:
    return parse_program(Source("test", text))


# ---- the tree ----


@each_row("text", [*EXPRESSIONS, *STATEMENTS])
def test_the_tree_is_pythons(text: str) -> None:
    assert our_module(parse(text)) == python_module(text)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_whole_table_is_one_program(end: str) -> None:
    text = "\n".join([*EXPRESSIONS, *STATEMENTS])
    assert our_module(parse(text.replace("\n", end))) == python_module(text)


def test_recorded_programs() -> None:
    for name in ("programs", "transcripts"):
        with (HERE / "conformance" / f"{name}.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                text = json.loads(line)["program"]
                assert our_module(parse(text)) == python_module(text)


@pytest.mark.parametrize(
    "text", ["a", " a", "a + b # why", "\n a\n+ b\n", "[1,\n\n2]", "a, b", "*a, b"]
)
def test_a_value_may_go_over_lines(text: str) -> None:
    value = parse_expression(Source("test", text))
    assert described(convert(value)) == described(ast.parse(f"(\n{text}\n)", mode="eval").body)


def test_a_byte_order_mark_is_no_token() -> None:
    assert our_module(parse("\ufeffx = 1\n")) == python_module("x = 1\n")


def test_chains_are_flat() -> None:
    statement = parse("x = a - (b - c) - d * e * f + g")[0]
    assert isinstance(statement, syntax.Assign)
    chain = statement.value
    assert isinstance(chain, syntax.Binary)
    assert [operator for operator, _ in chain.rest] == ["-", "-", "+"]
    assert [operand.span.text for _, operand in chain.rest] == ["b - c", "d * e * f", "g"]


# ---- places ----


def nodes(tree: Any) -> Iterator[syntax.Syntax]:
    """All nodes of a tree but formats of f-strings, whose text is no expression."""
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from nodes(part)
    elif isinstance(tree, syntax.Syntax):
        yield tree
        for name in tree.fields:
            if name != "format":
                yield from nodes(getattr(tree, name))


PARTS = (
    syntax.Argument,
    syntax.ComprehensionFor,
    syntax.Parameter,
    syntax.Parameters,
    syntax.Replacement,
    syntax.Slice,
    syntax.Starred,
)


@each_row("text", [*EXPRESSIONS, *STATEMENTS])
def test_the_text_of_a_place_reads_as_the_node(text: str) -> None:
    for node in nodes(parse(text)):
        if isinstance(node, syntax.Expression) and not isinstance(node, PARTS):
            if isinstance(node, syntax.Tuple) and any(
                isinstance(part, syntax.Slice) for part in node.elements
            ):
                continue
            comma = "," if node.span.text.startswith("*") and "," not in node.span.text else ""
            alone = parse_expression(Source("test", f"({node.span.text}{comma}\n)"))
            assert described(convert(alone)) == described(convert(node)), node.span.text


@pytest.mark.parametrize(
    ("text", "kind", "place", "line", "column"),
    [
        ("x = (a + b) * c\n", syntax.Binary, "(a + b) * c", 1, 5),
        ("x = ( a )\n", syntax.Assign, "x = ( a )", 1, 1),
        ("x = a.b . c(d)[e]\n", syntax.Attribute, "a.b . c", 1, 5),
        ("f(a, *b, c = d)", syntax.Argument, "a", 1, 3),
        ("y\nif x:\n  a\n  b # c\n\nz", syntax.If, "if x:\n  a\n  b", 2, 1),
        ("@d\ndef f(a, b=1):\n  pass", syntax.Def, "@d\ndef f(a, b=1):\n  pass", 1, 1),
        ("@d\nclass A(b):\n  x = 1\ny", syntax.Class, "@d\nclass A(b):\n  x = 1", 1, 1),
        ("def f(a, b=1): pass", syntax.Parameters, "a, b=1", 1, 7),
        ("x = f'a{ b!r:>{c}}d'", syntax.Replacement, "{ b!r:>{c}}", 1, 8),
        ("x = 'a' \\\n  'b'", syntax.Constant, "'a' \\\n  'b'", 1, 5),
        ("x[1 : 2]", syntax.Slice, "1 : 2", 1, 3),
        ("for i in a: pass\nelse: pass", syntax.For, "for i in a: pass\nelse: pass", 1, 1),
        ("[a for b in c if d]", syntax.ComprehensionFor, "for b in c if d", 1, 4),
    ],
)
def test_places(text: str, kind: type[syntax.Syntax], place: str, line: int, column: int) -> None:
    span = next(node.span for node in nodes(parse(text)) if type(node) is kind)
    assert (span.text, span.line, span.column) == (place, line, column)


# ---- streams ----


@pytest.mark.parametrize(
    "statements",
    [
        ["x = 1\n", "y = 2\n"],
        ["x = 1; y = 2\n", "z"],
        ["x = (1,\n2)\n", "y\n"],
        ['x = """a\nif b:\n"""\n', "y\n"],
        ["x = f'''{\na}\n'''\n", "y\n"],
        ["x = 1 + \\\n2\n", "y\n"],
        ["if x:\n  y\n\n# c\n  z\n", "y\n"],
        ["if x: y\nelif z: w\nelse: v\n", "y\n"],
        ["if x:\n  y = (\n1)\n  z\n", "y\n"],
        ["try:\n  x\nexcept A:\n  y\nfinally:\n  z\n", "y\n"],
        ["@d\n# c\n@e\ndef f():\n  x\n", "y\n"],
        ["class A(b):\n  x = 1\n\n  def f(self):\n    y\n", "z\n"],
        ["while x:\n  y\n", "for x in y:\n  z\n", "with x:\n  y\n"],
        ["x = ')'\n", "y = '('  # (\n", "z\n"],
        ["x = 1\r\n", "if x:\r\n  y\r\n", "z\r\n"],
        ["match x:\n  case y: z\n", "w\n"],
        ["x = )\n", "y = 2\n"],
        ["x = 'a\n", "y = 2\n"],
    ],
)
def test_a_stream_is_cut_into_statements(statements: list[str]) -> None:
    text = "".join(statements)
    found = list(statements_of(iter(text.splitlines(keepends=True)), "test"))
    assert [source.text for source in found] == statements
    line = 1
    for source in found:
        assert source.name == "test"
        assert source.first_line == line
        line += source.text.count("\n")


def test_comments_between_statements_belong_to_none() -> None:
    found = list(statements_of(iter(["\n", "# c\n", "x\n", "\n", "y\n"]), "test"))
    assert [(source.text, source.first_line) for source in found] == [("x\n", 3), ("y\n", 5)]


@pytest.mark.parametrize(
    ("lines", "cut"),
    [
        (["x = 1\n"], 1),
        (["x = (\n", "1)\n"], 2),
        (["if x:\n", "  y\n", "z\n"], 3),
        (["if x: y\n", "else: z\n", "z\n"], 3),
        (["if x:\n", "  y\n", "\n", "# c\n", "z\n"], 5),
    ],
)
def test_a_statement_comes_as_soon_as_it_is_complete(lines: list[str], cut: int) -> None:
    sent = 0

    def sender() -> Iterator[str]:
        nonlocal sent
        for line in [*lines, *["z\n"] * 3]:
            sent += 1
            yield line

    next(statements_of(sender(), "test"))
    assert sent == cut


# ---- what more lines could complete ----


@each_row(
    ("text", "incomplete"),
    [
        ("", False),
        ("x", False),
        ("x = 1\n", False),
        ("x = (1,", True),
        ("x = (1,\n\n", True),
        ("x = [", True),
        ("f(a", True),
        ("x = 1 +", False),
        ("x = 1 + \\", True),
        ("x = 1 + \\\n", True),
        ("# a comment with \\", False),
        ('x = """a', True),
        ('x = """a\n\n', True),
        ("x = 'a", False),
        ('x = f"""{a', True),
        ('x = f"""a', True),
        ("x = f'a", False),
        ("if x:", True),
        ("if x:\n", True),
        ("if x:\n    y", True),
        ("if x:\n    y\n", False),
        ("if x:\n    y\n    ", False),
        ("if x:\n    y\nelse:", True),
        ("if x: y", True),
        ("if x: y\n", False),
        ("if x", False),
        ("for x in y:\n    if z:\n        w", True),
        ("for x in y:\n    if z:\n", True),
        ("def f():\n    x = (1,\n\n", True),
        ("try:\n    x\n", True),
        ("try:\n    x\nfinally:\n    y\n", False),
        ("@d", True),
        ("@d\ndef f():", True),
        ("x = )", False),
        ("x = (1 2", False),
        ("x = (]", False),
        ("x = 1\nif x:", True),
        ("x = )\nif x:", False),
        ("if x:\n    y\nz", False),
        ("f() = 1", False),
    ],
)
def test_is_incomplete(text: str, incomplete: bool) -> None:
    assert is_incomplete(text) is incomplete


_FIXED = {"LITERAL", "NOT_LITERAL", "IN", "ANY", "ANY_ALL"}
_ENDLESS = {"POSSESSIVE_REPEAT", "MAX_REPEAT"}


def _fails_at_its_start(items: Any) -> bool:
    """Whether a part of a pattern that does not match has not gone on from where it began."""
    items, moved = list(items), False
    for name, value in ((str(item[0]), item[1]) for item in items):
        if name == "BRANCH":
            ways = [[(str(each[0]), each[1]) for each in way] for way in value[1]]
            # One that takes any character fails at the end of the text alone.
            if moved and [("ANY", None)] not in ways:
                return False
            if not all(_fails_at_its_start(way) for way in value[1]):
                return False
        elif name == "SUBPATTERN":
            if moved or not _fails_at_its_start(value[-1]):
                return False
        elif name in _ENDLESS and value[0] == 0:
            pass
        elif name not in _FIXED or any(str(item[0]) in _ENDLESS for item in items[:-1]):
            return False
        moved = True
    return True


def _repeated(items: Any) -> Iterator[Any]:
    """The groups of a parsed pattern that are repeated without a second try."""
    for name, value in items:
        if str(name) == "POSSESSIVE_REPEAT" and not (
            len(value[2]) == 1 and str(value[2][0][0]) in _FIXED
        ):
            yield value[2]
        for part in value if isinstance(value, tuple) else ():
            parts = part if isinstance(part, list) else [part]
            for each in parts:
                if hasattr(each, "data"):
                    yield from _repeated(each)


PATTERNS = [
    *(value for value in vars(lexer).values() if isinstance(value, re.Pattern)),
    *(
        re.compile(lexer.text_pattern(quotes, format))
        for quotes in lexer.QUOTES
        for format in (False, True)
    ),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=range(len(PATTERNS)))
def test_repeated_groups_fail_at_their_start(pattern: re.Pattern[str]) -> None:
    """Python before 3.11.5 goes on from where the last repetition of `(?:…)*+` failed."""
    for group in _repeated(re._parser.parse(pattern.pattern, pattern.flags)):
        assert _fails_at_its_start(group), group


@pytest.mark.parametrize(
    "text", [r"(?:a?b)*+", r"(?:[ ]*+\n)*+", r"(?:'(?!''))*+", r"(?:_[0-9]++)*+"]
)
def test_what_fails_later_is_seen(text: str) -> None:
    assert not all(map(_fails_at_its_start, _repeated(re._parser.parse(text))))
