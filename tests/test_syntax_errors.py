r"""What is said about text that is no program: code, place, words and mend.

To add a case, add a row: the text, then for each error its code, `line:column`, the text that it
points at, a part of the message, and a part of the help or "".
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradcli.arrays.native.dispatch import core
from gradcli.errors import GradcliError, Source, Span, SyntaxErrors
from gradcli.language.parser import parser, tables
from gradcli.language.parser.lexer import Lexer
from gradcli.language.parser.parser import (
    Parser,
    is_incomplete,
    parse_expression,
    parse_program,
    read_statements,
    statements_of,
)
from gradcli.language.tree import syntax
from tests.machine import takes_at_most
from tests.rows import each_row, sampled
from tests.test_parser import EXPRESSIONS, STATEMENTS


def errors_of(text: str) -> list[GradcliError]:
    with pytest.raises(SyntaxErrors) as caught:
        parse_program(Source("test", text))
    return caught.value.errors


def error_of(read: Callable[[Source], object], text: str) -> GradcliError | None:
    try:
        read(Source("test", text))
    except GradcliError as error:
        return error
    return None


# fmt: off
ONE: list[tuple[str, str, str, str, str, str]] = [
    # Something is missing.
    ("x = 1 +", "E001", "1:7", "+", "expected an expression after `+`", ""),
    ("x =", "E001", "1:3", "=", "expected an expression after `=`", ""),
    ("x = * / 2", "E001", "1:7", "/", "expected an expression after `*`, found `/`", ""),
    ("f(a, , b)", "E001", "1:6", ",", "expected an expression after `,`, found `,`", ""),
    ("x[]", "E001", "1:3", "]", "expected an expression after `[`, found `]`", ""),
    ("x = not", "E001", "1:5", "not", "expected an expression after `not`", ""),
    ("import", "E001", "1:1", "import", "expected a name after `import`", ""),
    ("x.", "E001", "1:2", ".", "expected a name after `.`", ""),
    ("from x", "E001", "1:7", "", "expected `import` after `x`", ""),
    ("def f: pass", "E001", "1:6", ":", "expected `(` after `f`", ""),
    ("a not b", "E001", "1:7", "b", "expected `in` after `not`", ""),
    ("x = a if b", "E001", "1:11", "", "expected `else` after `b`", "`a if test else b`"),
    ("if x\n    y", "E001", "1:5", "", "expected `:` to end the `if` line", "`if x:`"),
    ("for i in a\n    y", "E001", "1:11", "", "expected `:` to end the `for` line", "in a:`"),
    ("if x then y", "E001", "1:5", "", "expected `:` to end the `if` line", ""),
    ("if (x) {\n}", "E001", "1:8", "{", "expected `:` to end the `if` line", "without braces"),
    ("try:\n    x\ny", "E001", "1:1", "try", "expected `except` or `finally`", ""),
    ("@d\nx = 1", "E001", "1:1", "@", "expected `def` or `class` after a decorator", ""),
    ("x y", "E001", "1:3", "y", "unexpected `y` after `x`", "operator or a comma"),
    ("f(a b)", "E001", "1:5", "b", "unexpected `b` after `a`", "operator or a comma"),
    ("x = 1 \\", "E001", "1:7", "\\", "the text ends after a `\\`", ""),
    # Brackets.
    ("x = )", "E001", "1:5", ")", "`)` closes nothing", ""),
    ("f(a))", "E001", "1:5", ")", "`)` closes nothing", ""),
    ("x = (1]", "E001", "1:7", "]", "`]` does not close `(`", ""),
    ("x = [1, 2", "E003", "1:5", "[", "`[` is never closed", ""),
    ("x = (1 +", "E003", "1:5", "(", "`(` is never closed", ""),
    ("f(a, {b", "E003", "1:6", "{", "`{` is never closed", ""),
    # Strings.
    ("x = 'abc", "E003", "1:5", "'", "the string is never closed", ""),
    ('x = """abc\ny', "E003", "1:5", '"""', "the string is never closed", ""),
    ("x = f'abc", "E003", "1:5", "f'", "the f-string is never closed", ""),
    ("x = f'{a'", "E003", "1:7", "{", "`{` in the f-string is never closed", "write `{{`"),
    ("x = f'a}'", "E001", "1:8", "}", "`}` closes nothing", "write `}}`"),
    ("x = f'{}'", "E001", "1:8", "}", "expected an expression after `{`", ""),
    ("x = f'{a!x}'", "E001", "1:7", "{a!x}", "`!x` is no conversion", "`!r`, `!s` and `!a`"),
    (r"x = 'a\x4'", "E001", "1:7", r"\x4", r"`\x4` is no character", "backslash twice"),
    (r"x = '\N{no}'", "E001", "1:6", r"\N{no}", "is no character", "backslash twice"),
    # Numbers.
    ("x = 2x", "E001", "1:5", "2x", "neither a number nor a name", "write `2 * x`"),
    ("x = 1.2.3", "E001", "1:5", "1.2.3", "neither a number nor a name", ""),
    ("x = 1__0", "E001", "1:5", "1__0", "neither a number nor a name", ""),
    ("x = 0xg", "E001", "1:5", "0xg", "neither a number nor a name", ""),
    ("x = 012", "E001", "1:5", "012", "cannot start with 0", "`0o12`"),
    ("x.1", "E001", "1:2", ".1", "expected a name after `.`", "`[1]`"),
    # Characters.
    ("x = 1 $ 2", "E002", "1:7", "$", "unexpected character `$`", ""),
    ("x = “a”", "E002", "1:5", "“", "unexpected character `“`", "write `\"`"),
    ("x = a − b", "E002", "1:7", "−", "unexpected character `−`", "write `-`"),
    ("x = a²", "E002", "1:6", "²", "unexpected character `²`", "write `**2`"),
    ("x = !a", "E002", "1:5", "!", "unexpected character `!`", "use `not`"),
    ("x = \0", "E002", "1:5", "\0", "unexpected character U+0000", ""),
    ("x = \\ y", "E002", "1:5", "\\", "at the very end", ""),
    # Habits from other languages.
    ("x = a && b", "E001", "1:7", "&&", "`&&` is no operator", "use `and`"),
    ("x = a || b", "E001", "1:7", "||", "`||` is no operator", "use `or`"),
    ("a === b", "E001", "1:3", "===", "`===` is no operator", "use `==`"),
    ("a <> b", "E001", "1:3", "<>", "`<>` is no operator", "use `!=`"),
    ("x++", "E001", "1:2", "++", "`++` is no operator", "write `x += 1`"),
    ("x[0]--", "E001", "1:5", "--", "`--` is no operator", "write `x[0] -= 1`"),
    ("if a:\n  b\nelse if c:\n  d", "E001", "3:1", "else if", "no statement", "write `elif`"),
    ("elsif c: d", "E001", "1:1", "elsif", "no statement", "write `elif`"),
    ("if a: b else: c", "E001", "1:9", "else", "unexpected `else`", "a line of its own"),
    ("print x", "E001", "1:1", "print x", "`print` is a function", "write `print(x)`"),
    ("if x = 1: y", "E001", "1:6", "=", "`=` does not stand in an expression", "use `==`"),
    ("f(a.b=1)", "E001", "1:6", "=", "`name=value`", "use `==`"),
    ("x := 1", "E001", "1:3", ":=", "only inside an expression", "use `=`"),
    ("lambda = 1", "E001", "1:1", "lambda", "cannot be a name", ""),
    ("x.in", "E001", "1:3", "in", "cannot be a name", ""),
    # Indentation and clauses.
    ("if x:\ny", "E004", "1:1", "if x:", "expected an indented block after `if`", ""),
    ("def f():", "E004", "1:1", "def f():", "expected an indented block after `def`", ""),
    ("if x:\n  for y in z:\nw", "E004", "2:3", "for y in z:", "block after `for`", ""),
    ("x = 1\n  y = 2", "E004", "2:1", "  ", "unexpected indentation", ""),
    ("if x:\n    y\n  z", "E004", "3:1", "  ", "indented as no open block is", ""),
    ("if x:\n        y\n\tz", "E004", "3:1", "\t", "tabs and blanks are mixed", "blanks only"),
    ("else: x", "E001", "1:1", "else", "`else` belongs to no `if`", ""),
    ("except A: x", "E001", "1:1", "except", "`except` belongs to no `try`", ""),
    # Out of place.
    ("return 1", "E006", "1:1", "return 1", "`return` outside a function", ""),
    ("if x: break", "E006", "1:7", "break", "`break` outside a loop", ""),
    ("for x in y:\n  def f(): continue", "E006", "2:12", "continue", "outside a loop", ""),
    ("while x: pass\nelse: break", "E006", "2:7", "break", "`break` outside a loop", ""),
    ("nonlocal x", "E006", "1:1", "nonlocal x", "outside a function", ""),
    ("def f(): from a import *", "E006", "1:10", "from a import *", "inside a function", ""),
    ("f() = 1", "E006", "1:1", "f()", "a call cannot be assigned to", "use `==`"),
    ("await x = 1", "E006", "1:1", "await x", "`await` cannot be assigned to", ""),
    ("def f():\n    (yield x) = 1", "E006", "2:6", "yield x", "`yield` cannot be assigned to", ""),
    ("1 = x", "E006", "1:1", "1", "a number cannot be assigned to", "use `==`"),
    ("(a, None) = x", "E006", "1:5", "None", "`None` cannot be assigned to", ""),
    ("a = b + c = d", "E006", "1:5", "b + c", "an operation cannot be assigned to", ""),
    ("for f() in x: y", "E006", "1:5", "f()", "a call cannot be assigned to", ""),
    ("a, b += 1", "E006", "1:1", "a, b", "a tuple cannot be changed by `+=`", ""),
    ("a, b: int = 1", "E006", "1:1", "a, b", "a tuple cannot be annotated", ""),
    ("del f(x)", "E006", "1:5", "f(x)", "a call cannot be deleted", ""),
    ("*a, *b = c", "E006", "1:5", "*b", "two targets are starred", ""),
    ("x = *a", "E001", "1:5", "*a", "a starred value stands only", ""),
    ("f(a=1, a=2)", "E006", "1:8", "a=2", "`a` is given twice", ""),
    ("f(a=1, b)", "E006", "1:8", "b", "without a name", "its name"),
    ("f(a for a in b, 1)", "E006", "1:3", "a for a in b", "needs parentheses", ""),
    ("def f(a, a): pass", "E006", "1:10", "a", "the parameter `a` is named twice", ""),
    ("lambda a=1, b: a", "E006", "1:13", "b", "`b` has no default", ""),
    ("def f(*): pass", "E006", "1:7", "*", "a bare `*` needs a parameter", ""),
    ("def f(**a, b): pass", "E006", "1:12", "b", "after `**`", ""),
    ("try: a\nexcept: b\nexcept C: d", "E006", "2:1", "except: b", "must come last", ""),
    # Outside the language.
    ("class A: return 1", "E006", "1:10", "return 1", "`return` outside a function", ""),
    ("class A: from math import *", "E006", "1:10", "from math import *", "inside a class", ""),
    ("type A = int", "E007", "1:1", "type", "the `type` statement is outside", ""),
    ("def f(a, *, b, /): pass", "E006", "1:16", "/", "`/` stands once, before `*`", ""),
    ("def f(/, a): pass", "E006", "1:7", "/", "`/` stands once, before `*`", ""),
    ("x = b'é'", "E001", "1:5", "b'é'", "bytes hold ASCII", ""),
    ("def f(): return (yield", "E003", "1:17", "(", "never closed", ""),
    ("try: a\nexcept* B: c\nexcept C: d", "E006", "3:1", "except C: d", "both `except`", ""),
    # Nested too deeply.
    ("(" * 201 + ")" * 201, "E005", "1:201", "(", "more than 200 brackets", ""),
    ("x" + ".a" * 500, "E005", "1:1", "x" + ".a" * 101, "more than 400 levels", "a name"),
    ("x = " + "not " * 500 + "y", "E005", "1:1601", "not " * 101 + "y", "400 levels", ""),
    ("x = " + "9" * 5000, "E005", "1:5", "9" * 5000, "more than 4300 digits", ""),
]

# Several errors, each as `CODE line:column`: one for each bad statement.
SEVERAL: list[tuple[str, list[str]]] = [
    ("x = 1 +\ny = 2 2\nz = 3\nw = )", ["E001 1:7", "E001 2:7", "E001 4:5"]),
    ("x = (1,\ny = 2\nz = )", ["E003 1:5", "E001 3:5"]),
    ("x = [\n1, 2\nprint(x)\nz = )", ["E003 1:5", "E001 4:5"]),
    ("def f():\n    x = (1\n    return x\ny = 2 2", ["E003 2:9", "E001 4:7"]),
    ("def f(:\n    pass\nx = )", ["E003 1:6", "E001 3:5"]),
    ("if x:\n    a b\n    c d\ne f", ["E001 2:7", "E001 4:3"]),
    ("x = 'a\ny = \"b\nz = 1", ["E003 1:5", "E003 2:5"]),
    ("fro i in a:\n    b\n    c\nx y", ["E001 1:5", "E001 4:3"]),
    ("return\nbreak\nx = 1\nf() = 2", ["E006 1:1", "E006 2:1", "E006 4:1"]),
    ("x = (1]\ny = (2)\nz = }", ["E001 1:7", "E001 3:5"]),
    ("x $ y\nz ? w", ["E002 1:3", "E002 2:3"]),
]
# fmt: on


@each_row("row", ONE, ids=lambda row: row[0][:40])
def test_one_error(row: tuple[str, str, str, str, str, str]) -> None:
    text, code, place, pointed, message, help = row
    (error,) = errors_of(text)
    assert error.span is not None
    assert error.code == code
    assert f"{error.span.line}:{error.span.column}" == place
    assert error.span.text == pointed
    assert message in error.message
    assert help in (error.help or "")


@pytest.mark.parametrize(("text", "expected"), SEVERAL)
def test_each_bad_statement_has_one_error(text: str, expected: list[str]) -> None:
    found = errors_of(text)
    assert [f"{e.code} {e.span.line}:{e.span.column}" for e in found if e.span] == expected


def test_the_error_is_itself_the_first() -> None:
    with pytest.raises(SyntaxErrors) as caught:
        parse_program(Source("test", "x = 1\nif y:\nz\n1 = 2"))
    assert (caught.value.code, caught.value.raises) == ("E004", "IndentationError")
    assert [error.raises for error in caught.value.errors] == ["IndentationError", "SyntaxError"]


def test_lines_go_on_counting_in_a_stream() -> None:
    *_, last = statements_of(iter(["x = 1\n", "\n", "if x:\n", "  y y\n"]), "test")
    with pytest.raises(SyntaxErrors) as caught:
        parse_program(last)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (4, 5)


@pytest.mark.parametrize("text", ["", "a b", "a = 1", "a)", "(a", "a\nb", "x = 1; y", "'a", "a; b"])
def test_a_value_is_one_expression(text: str) -> None:
    with pytest.raises(GradcliError) as caught:
        parse_expression(Source("test", text))
    assert caught.value.code in ("E001", "E003")


# ---- size ----

LONG: dict[str, tuple[str, str]] = {
    "10,000 terms": (" + ".join(["a"] * 10_000), ""),
    "10,000 comparisons": (" < ".join(["a"] * 10_000), ""),
    "10,000 targets": ("a = " * 10_000 + "1", ""),
    "10,000 elements": ("[" + "1, " * 10_000 + "]", ""),
    "10,000 parentheses": ("(" * 10_000 + ")" * 10_000, "E005"),
    "open brackets": ("[" * 200_000, "E005"),
    "signs": ("+" * 200_000, "E005"),
    "lambdas": ("lambda: " * 100_000, "E005"),
    "conditionals": ("a if b else " * 50_000 + "c", "E005"),
    "powers": ("a ** " * 100_000 + "b", "E005"),
    "attributes": ("x" + ".a" * 100_000, "E005"),
    "calls": ("x" + "()" * 100_000, "E005"),
    "f-strings": ('f"{' * 50_000, "E005"),
    "blocks": ("".join(" " * depth + "if x:\n" for depth in range(500)), "E005"),
    "digits": ("9" * 200_000, "E005"),
    "hexadecimal digits": ("0x" + "f" * 200_000, ""),
    "fraction": ("0." + "9" * 200_000, ""),
    "a long string": ("'" + "a" * 200_000 + "'", ""),
    "a string without an end": ("'" + "\\a" * 100_000, "E003"),
    "quotes": ('"' * 200_001, "E003"),
    "blanks": ("x" + " " * 200_000, ""),
    "backslashes": ("\\" * 200_000, "E002"),
    "carriage returns": ("\r" * 200_000, "E002"),
    "binary junk": ("".join(map(chr, range(256))) * 2_000, "E002"),
    "brackets that swallow the rest": ("x = (\n" * 20_000, "E003"),
    "errors on each line": ("x y\n" * 5_000, "E001"),
    "decorators": ("@x\n" * 20_000, "E001"),
}


@pytest.mark.parametrize("name", sampled(LONG, 2))
def test_long_texts_end_soon_and_cleanly(name: str) -> None:
    text, code = LONG[name]
    # Far more than it takes; time that grew with the square of the length would not fit in.
    with takes_at_most(10):
        error = error_of(parse_program, text)
    assert (error.code if error else "") == code


def test_reading_does_not_recurse() -> None:
    text = "x = " + "(a * (b + " * 90 + "c" + "))" * 90 + " + d" * 10_000
    limit = sys.getrecursionlimit()
    depth = len(list(_frames()))
    sys.setrecursionlimit(depth + 60)
    try:
        parse_program(Source("test", text))
    finally:
        sys.setrecursionlimit(limit)


def _frames() -> list[object]:
    frames: list[object] = []
    frame = sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames


# ---- anything at all ----


def random_texts(count: int) -> Iterator[str]:
    """Texts of pieces of the language in a row, and of the tables with a piece put in."""
    chance = random.Random(20)
    pool = [*" \n\t()[]{}:;,.=+-*/%@<>&|^~!\\'\"#$0123x", "\n    ", "if ", "else:", "def f(", "f'{"]
    pool += ["lambda ", " in ", " not ", "for ", "try:", "except", '"""', "return ", "as ", "**"]
    tables = [*EXPRESSIONS, *STATEMENTS]
    for _ in range(count):
        text = "".join(chance.choices(pool, k=chance.randrange(1, 40)))
        if chance.random() < 0.5:
            text = chance.choice(tables)
            cut = chance.randrange(len(text) + 1)
            text = text[:cut] + chance.choice(pool) + text[cut + chance.randrange(3) :]
        yield text


def test_no_text_raises_anything_else() -> None:
    for text in random_texts(2_000):
        for read in (parse_program, parse_expression):
            error = error_of(read, text)
            if error is not None:
                assert error.span is not None
                assert 0 <= error.span.start <= error.span.end <= len(text)
        is_incomplete(text)
        lexer, end = Lexer(text), 0
        while lexer.statement():
            for begin, stop in zip(lexer.starts, lexer.ends, strict=True):
                assert end <= begin <= stop <= len(text)
                end = stop
        cut_up = list(statements_of(iter(text.splitlines(keepends=True)), "test"))
        assert len("".join(source.text for source in cut_up)) <= len(text)


# ---- in C ----


_IN_LINES = """if a:
    b = [1.5, .5, 2e-3, 0x1f, 1_0, 1j, 1..real,
  'c', "", r'd']  # e
f(b)[c] **= ~d
"""


def _written(part: Any) -> Any:
    """A tree with all its places, or an error of reading one."""
    if isinstance(part, syntax.Syntax):
        return type(part), [_written(getattr(part, name)) for name in part.fields]
    if isinstance(part, Span):
        return part.start, part.end
    if isinstance(part, GradcliError):
        return part.code, str(part), _written(part.span), part.help
    return [_written(each) for each in part] if isinstance(part, (list, tuple)) else repr(part)


@pytest.mark.skipif(core() is None, reason="the core in C is not built")
def test_the_core_reads_as_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    by_python, in_c = Parser(tables.load()), Parser(tables.load())
    in_c.use_core()
    assert in_c.scan is not None
    deep = ["(" * 300, "x = " + "-" * 5_000 + "1", "x = " + "(" * 90 + "1" + ")" * 90]
    for text in [_IN_LINES, *deep, *EXPRESSIONS, *STATEMENTS, *random_texts(2_000)]:
        read = []
        for each in (by_python, in_c):
            monkeypatch.setattr(parser, "parser", lambda each=each: each)
            read.append(_written(read_statements(Source("test", text))))
        assert read[0] == read[1], text
