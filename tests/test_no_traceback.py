"""Whatever is typed, gradcli answers: a result or a coded error, never a traceback.

Three kinds of input: programs made from the language's own forms, programs of this repository with
pieces cut, doubled and exchanged, and text or bytes of any kind. What still runs after a while is
left alone: an endless loop is no traceback.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import strategies as st

from gradcli.errors import CODES
from tests.cases import many
from tests.conformance import records
from tests.running import Finished, OutOfTime, invoke, time_limit

SECONDS = 3

ROOT = Path(__file__).parent.parent

CORPUS = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("examples/*.grad"))] + [
    record["program"] for record in records("programs")[::7]
]

EXIT_CODES = {0, 2} | {code.exit_code for code in CODES.values()} - {70}


def answer(*arguments: str, stdin: bytes = b"") -> Finished | None:
    """How a run ended, None where it went on for too long; fails where it ended badly."""
    try:
        with time_limit(SECONDS):
            finished = invoke(*arguments, stdin=stdin)
    except OutOfTime:
        return None
    assert "Traceback" not in finished.stderr
    assert finished.code in EXIT_CODES, finished.stderr
    if finished.code >= 3:
        assert re.search(r"\bE\d{3}\b", finished.stderr), finished.stderr
    return finished


# --- programs of the language's own forms ---------------------------------------------------------


def _one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


_names = _one_of("a b x y x y i f torch T shape grad grad_fn dtype data __class__")
_functions = _one_of(
    "exp sum relu print len zip max tensor ones zeros cat stack where reshape softmax matmul clamp"
    " pow arange full linspace sorted range str int float list dict isinstance type norm std prod"
    " x.sum x.view x.backward x.expand x.permute x.max x.item x.add_ x.index_select x.to x.split"
    " x.requires_grad_ x.unsqueeze x.transpose x.__class__ 'a'.join b.append torch.autograd.grad"
    " torch.norm torch.where torch.cat torch.tensor torch.gather torch.nn.functional.cross_entropy"
)
_keywords = _one_of("dim=0 dim=-1 dim=9 keepdim=True dtype=torch.int64 dtype=float32 out=x")
_numbers = _one_of("0 1 -1 2 3. 0.5 1e30 1e-3 10**20 True None 1j 0x1f 007 1_0")
_texts = _one_of("'' 'a' \"{}\" f'{a}' f'{x:>9.2f}' '%s' r'\\\\' b'x'")
_operators = _one_of("+ - * / // % ** @ == != < >= & | ^ << in is and or not-in if-else := , :")


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several_inner = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(inner, _operators, inner).map(_infix),
        st.tuples(st.sampled_from(["-", "+", "~", "not ", "*", "await "]), inner).map("".join),
        st.tuples(_functions, several_inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(_functions, inner, _keywords).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        st.tuples(inner, several_inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(inner, several_inner).map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        st.tuples(inner, inner, inner).map(lambda parts: f"{parts[0]}[{parts[1]}:{parts[2]}]"),
        st.tuples(inner, _names).map(".".join),
        several_inner.map(lambda items: f"[{items}]"),
        several_inner.map(lambda items: f"({items})"),
        st.tuples(inner, inner).map(lambda parts: f"{{{parts[0]}: {parts[1]}}}"),
        st.tuples(inner, inner).map(lambda parts: f"[{parts[0]} for i in {parts[1]}]"),
        inner.map(lambda body: f"lambda x, y=1: {body}"),
        several_inner.map(lambda items: f"tensor([{items}], requires_grad=True)"),
    )


def _infix(parts: tuple[str, str, str]) -> str:
    left, operator, right = parts
    if operator == "if-else":
        return f"{left} if {right} else {left}"
    return f"{left} {operator.replace('-', ' ')} {right}"


_expressions = st.recursive(st.one_of(_names, _numbers, _texts), _grow, max_leaves=8)


def _indent(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def _nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map("".join).map(_indent)
    return st.one_of(
        st.tuples(_expressions, body).map(lambda p: f"if {p[0]}:\n{p[1]}else:\n    pass\n"),
        st.tuples(_names, _expressions, body).map(lambda p: f"for {p[0]} in {p[1]}:\n{p[2]}"),
        body.map(lambda block: f"while a:\n{block}    break\n"),
        body.map(lambda block: f"def f(a, b=1):\n{block}    return a\n"),
        body.map(lambda block: f"with torch.no_grad():\n{block}"),
        body.map(lambda block: f"try:\n{block}except Exception as e:\n    print(e)\n"),
        body.map(lambda block: f"class A(nn.Module):\n{block}"),
    )


_simple = st.one_of(
    _expressions.map(lambda value: f"{value}\n"),
    st.tuples(_expressions, st.sampled_from(["=", "+=", "@=", ":="]), _expressions).map(
        lambda parts: " ".join(parts) + "\n"
    ),
    _expressions.map(lambda value: f"({value}).sum().backward()\n"),
    _expressions.map(lambda value: f"print({value})\n"),
    st.sampled_from(["break\n", "return 1\n", "del a\n", "raise\n", "global a\n", "import os\n"]),
)

_statements = st.recursive(_simple, _nest, max_leaves=6)

_programs = st.lists(_statements, min_size=1, max_size=4).map("".join)

SETTING = "a = 2\nb = [1, 2]\nx = tensor([1., 2., 3.], requires_grad=True)\ny = x * 2\n"


SOON = "--max-steps", "300000"
"""What lets an endless loop end with its error, before this file's patience ends."""


@many(_programs, sample=4, all=150)
def test_programs(program: str) -> None:
    answer("run", "-", *SOON, stdin=(SETTING + program).encode())


@many(_expressions, _expressions, sample=40, all=150)
def test_one_shots(program: str, value: str) -> None:
    answer("-e", f"e = {program}", f"a={value}", "x=[1., 2.]", *SOON)


# --- programs that exist, changed -----------------------------------------------------------------


@st.composite
def _changed(draw: st.DrawFn) -> str:
    """A program of the corpus with a few of its tokens cut, doubled, exchanged or replaced."""
    pieces = re.findall(r"\w+|\s+|\S", draw(st.sampled_from(CORPUS)))
    for _ in range(draw(st.integers(1, 4))):
        at, other = (draw(st.integers(0, len(pieces) - 1)) for _ in range(2))
        change = draw(st.sampled_from(["cut", "double", "exchange", "replace", "truncate"]))
        if change == "cut":
            pieces[at] = ""
        elif change == "double":
            pieces[at] *= 2
        elif change == "exchange":
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif change == "replace":
            pieces[at] = draw(st.one_of(_names, _numbers, _operators, st.text(max_size=2)))
        else:
            pieces = pieces[: at + 1]
    return "".join(pieces)


@many(_changed(), sample=6, all=150)
def test_changed_programs(program: str) -> None:
    answer("run", "-", *SOON, stdin=program.encode("utf-8", "surrogatepass"))


# --- anything -------------------------------------------------------------------------------------


@many(st.binary(max_size=200), sample=40, all=150)
def test_bytes(junk: bytes) -> None:
    answer("run", "-", stdin=junk)


@many(st.lists(st.text(max_size=30), max_size=4), sample=40, all=150)
def test_command_lines(words: list[str]) -> None:
    answer(*words)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("__import__('os')", "E101"),
        ("().__class__.__base__", "E102"),
        ("type(1).mro()", "E102"),
        ("'{0.__class__}'.format(1)", "E102"),
        ("open('x')", "E502"),
        ("exec('1')", "E101"),
        ("\0\x1b]0;\x7f", "E002"),
        ("\u0300", "E002"),
        ("(" * 10_000 + ")" * 10_000, "E005"),
        ("+" * 1_000_000, "E005"),
        ("[" * 100_000, "E005"),
        ("-" * 100_000 + "1", "E005"),
        ("x" + ".a" * 100_000, "E005"),
        ("1 if 1 else " * 100_000 + "1", "E005"),
        ("f(" * 50_000, "E005"),
        ("1" + "+1" * 100_000, None),
        ("'a' * 10**12", "E602"),
        ("zeros(10**6, 10**6)", "E602"),
        ("def f(n): return f(n)\nf(1)", "E601"),
        ("exp()", "E201"),
        ("x = tensor(1.)\n[x] - x", "E202"),
    ],
    ids=lambda value: repr(value[:30]) if value else "",
)
def test_hostile(program: str, code: str | None) -> None:
    """Each is answered at once, with this code if it is an error."""
    with time_limit(20):
        finished = invoke("run", "-", stdin=program.encode())
    assert "Traceback" not in finished.stderr
    if code is None:
        assert finished.code == 0, finished.stderr[:500]
    else:
        assert f"error[{code}]" in finished.stderr, finished.stderr[:500]
        assert finished.code == CODES[code].exit_code
