"""Programs whose expressions are nodes in C, beside the same as closures in Python, and CPython.

A row is a program with what it prints, or the error that ends it: of nodes the same is asked as of
closures, to the place and the label of an error. Random expressions are compared likewise, and
with what CPython prints where it has a value.
"""

from __future__ import annotations

import io
import re
import sys
import threading
from contextlib import redirect_stdout, suppress
from random import Random
from typing import Any, NamedTuple

import pytest

from gradcli.arrays.native.dispatch import core
from gradcli.errors import GradcliError
from gradcli.language import interpreter
from gradcli.language.events import Printed
from gradcli.language.native import nodes
from gradcli.limits import Limits
from gradcli.session import Session
from tests.rows import sampled

pytestmark = pytest.mark.skipif(core() is None, reason="the core in C is not built")


class Outcome(NamedTuple):
    """What a program printed, and what is known of the error that ended it."""

    printed: str
    error: tuple[Any, ...] | None


def _outcome(text: str, in_c: bool, **limits: Any) -> Outcome:
    """Run a program whose first statement already makes nodes, or with closures alone."""
    printed: list[str] = []

    def emit(event: Any) -> None:
        if isinstance(event, Printed):
            printed.append(event.text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "_SEVERAL", 1)
        if not in_c:
            patch.setattr(nodes, "load", lambda builtins: None)
        compiles = limits.pop("compiles", True)
        session = Session(emit, limits=Limits(**limits), compiles=compiles)
        try:
            for _ in session.run(text, "program"):
                pass
        except GradcliError as error:
            return Outcome("".join(printed), _known(error))
    return Outcome("".join(printed), None)


def _known(error: GradcliError) -> tuple[Any, ...]:
    span = error.span
    return (
        error.code,
        error.raises,
        error.message,
        str(error.text),
        error.help,
        error.notes,
        span and (span.start, span.end),
        [(label.span.start, label.span.end, label.text) for label in error.labels],
        [(name, place and place.start) for name, place in error.stack],
    )


def _by_cpython(text: str) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, "program", "exec"), {})
    return printed.getvalue()


# --- rows -----------------------------------------------------------------------------------------

VALUES = """
class Length:
    def __init__(self, n): self.n = n
    def __add__(self, other): return ("add", self.n, other)
    def __radd__(self, other): return ("radd", other, self.n)
    def __lt__(self, other): return self.n < other.n
    def __eq__(self, other): return isinstance(other, Length) and self.n == other.n
    def __hash__(self): return 1
    def __bool__(self): return self.n > 1
    def __neg__(self): return "negative"
    def __contains__(self, value): return value == self.n
    kind = "length"
    def size(self): return self.n + 1
    @property
    def double(self): return 2 * self.n
class Slow:
    def __init__(self, n): self.n = n
    def __getattr__(self, name): return name + "?"
class Longer(Length):
    def __init__(self, n):
        self.n = n
        self.own = [n, n + 1]
class Odd:
    def __init__(self, n): self.n = n
    def __repr__(self): return "odd" + str(self.n)
    def __add__(self, other): return NotImplemented if other == 1 else ("plus", self.n, other)
    def __radd__(self, other): return ("rplus", self.n, other)
    def __sub__(self, other): return NotImplemented
    def __rsub__(self, other): return ("rminus", self.n, other)
    def __mul__(self, other): return Odd(self.n * other) if other else fails()
    __rmul__ = __mul__
    def __truediv__(self, other): return NotImplemented
    def __rpow__(self, other): return NotImplemented
    def __lt__(self, other): return NotImplemented if other == 5 else True
    def __eq__(self, other): return type(other) is Odd and self.n == other.n
    def __hash__(self): return self.n
class Bad(Odd):
    def __add__(self): return 1
    def __radd__(self, other, more): return 1
    def __eq__(self, other): return other + "a"
    def __hash__(self): return [][1]
class Odder(Odd):
    def __radd__(self, other): return ("odder", self.n, other)
class Sized:
    def __len__(self): return 7
class Letters:
    def __getitem__(self, index): return ("item", index)
    def __iter__(self): return iter("abc")
    def __format__(self, spec): return "<" + spec + ">"
    def __str__(self): return "letters"
def fails(): raise KeyError("mine")
items = [1, 2, [3, 4], "five", (6, 7)]
table = {"a": 1, 2: "two", (1, 2): "pair", None: 0, 2.5: "half"}
def outer():
    x = 3
    def inner():
        def innermost(): return x + n
        n = 4
        return innermost() * x
    return inner()
"""

SAME_AS_CPYTHON = [
    "1 + 2, 1.5 - 2, 3 * True, 7 / 2, 7 // 2, -7 % 3, 7.5 // 2, 2 ** 10, 2 ** -1, 2.0 ** 3",
    "6 & 3, 6 | 3, 6 ^ 3, 1 << 10, 1024 >> 3, ~5, -True, +2.5, -(3)",
    "10**20 * 10**20, 2**63 + 2**63, -2**63 - 1, 2**64 // 3, (2**70) % 7, 2**200 == 2.0**200",
    "1 < 2, 1.0 == 1, True == 1, 'a' < 'b', 'a' == 1, None == None, 3 != 3.0, 1j == 1, 'b' >= 'a'",
    "float('nan') == float('nan'), float('inf') - float('inf'), 1e308 * 10, -0.0 + 0.0, 0.0 * -1",
    "'ab' + 'cd', [1] + [2, 3], (1,) + (2,), 'ab' * 3, 2 * [0], 'x%d' % 3, '%s-%s' % (1, 'b')",
    "3 in {3: 1}, (1, 2) in {(1, 2): 3}, 'a' in 'banana', 'x' not in {'x'}, 2 in [1, 2]",
    "Length(1) + 2, 2 + Length(1), Length(1) < Length(2),",
    "4 in range(9), Length(1) == Length(1), Length(2) in {Length(2)}, 3 in Length(3)",
    "not Length(1), Length(2) and 5, Length(1) or 7, 1 if Length(0) else 2, -Length(3)",
    "0 or '' or [] or None, 1 and 'a' and [2], not 0 and 1, (1 and 0) or (2 and 3)",
    "None is None, [] is [], 1 is not None, True is (1 < 2), 1 < 2 < 3, 3 > 2 < 1, 1 < 2 == True",
    "max(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), max(*[1, 2]), len(vars(Length(1))), - -3, -2 ** 2, -(2)",
    "outer(), (lambda n: n + n * n)(3), [n + 1 for n in range(3) if n % 2 == 0]",
    "1 + 2 - 3 * 4 / 5 + 6 - 7 + 8, 1 - 2 - 3 - 4, 2 * 3 // 4 % 5, 'a' + 'b' + 'c' + 'd'",
    "Length(4).n, Length(4).kind, Length(4).double, Length(4).size(), Slow(1).n, Slow(1).other",
    "[a.n for a in (Length(1), Longer(2), Slow(3))], Longer(5).own[1], Longer(5).kind, (3).real",
    "items[0], items[-1][1], items[2][0], items[3][1], items[3][-1], 'text'[2], (1, 2)[True]",
    "items[1:3], items[:2], items[-2:], items[::2], items[:], 'text'[1:-1], (1, 2, 3)[::-1]",
    "table['a'], table[2], table[1, 2], table[None], table[2.0], table[2.5], Letters()[1:2, 3]",
    "items[1:2 + 1][0], [items, table][1]['a'], (lambda: items)()[0], range(10)[2:5][1]",
    "[], [1], [1, [2, 3]], (), (1,), (1, 2), (1, 2, 3), {}, {'a': 1, (1, 2): 2, None: 3}",
    "[*items[:2], 5], (*items[:1], *'ab')",
    "{**table, 'b': 2}, {1, 2} | {3}, {1: 1, 1.0: 2, True: 3}",
    "f'', f'{1}', f'a{2}b', f'{1.5}{None}{True}{items[0]}', f'{items}', f'{\"x\"}', f'{2 ** 70}'",
    "f'{1.23456:.2f}', f'{5:>5}|', f'{255:x}'",
    "f'{\"ab\":>4}', f'{1e10:,}', f'{True:d}', f'{3:{5}}'",
    "f'{Letters()}', f'{Letters():abc}', f'{Letters()!s}'",
    "f'{\"a\"!r:>5}', f'{1 + 1 = }', f'{1j:.1f}'",
    "[x * x for x in range(5)], [x for x in items if x != 2]",
    "[c for c in 'abc'], [x for x in table]",
    "[(k, v) for k, v in table.items() if k]",
    "[a for a, *b in ('ab', 'cd')], [x for x in Letters()]",
    "[[x * y for x in range(y)] for y in range(4)]",
    "[x for x in [] if fails()], [n for n in map(abs, [-1])]",
    "[x for x in range(3) if x if x > 1]",
    "[f'{x}' for x in range(1000)][999], [x for x in range(700)][-1]",
    "Odd(3) + 2, 1 + Odd(3), 2 - Odd(1), Odd(2) < 3, Odd(3) == Odd(3), 3 == Odd(3)",
    "Odd(3) + Odder(1), Odder(1) + Odd(3), Odd(2) * 3, 3 * Odd(2), Odd(2) != 2, Odd(1) + 5",
    "Odd(1) in {Odd(1)}, Odd(2) in {Odd(1): 1}",
    "{Odd(1): 5}[Odd(1)], {Odd(1), Odd(1)}, 1.5 * Odd(2)",
    "[a + b for a in (1, Odd(2), Odder(3), 1.5) for b in (2, Odd(1), Odder(5))]",
    "(lambda a, b=2, *c: (a, b, c))(1)",
    "(lambda: 5)(), [f() for f in [lambda k=k: k for k in (1, 2)]]",
    "[f() for f in [lambda: k for k in (1, 2)]], (lambda a: lambda b: a + b)(1)(2), outer()",
    "len('abc'), len([1]), len(()), len({1: 2}), len({1}), len(range(9)), len(Sized()), abs(-3)",
    "isinstance(1, int), isinstance(True, int), isinstance('a', (int, str)), isinstance([], list)",
    "isinstance(Length(1), Length), isinstance(Longer(1), Length), isinstance(Length(1), Longer)",
    "isinstance(1, Length), isinstance(Length, type), isinstance(1.5, (int, (str, float)))",
    "min(3, 1.5), max(1, 2, 3), min([2, 1])",
    "max((1.0, 1)), max(1, 1.0), min('b', 'a'), max([Length(1)]).n",
    "sum([1, 2]), sum((1.5, 2)), sum([]), sum([True, 2]), sum([0.1] * 10), sum([[1], [2]], [])",
    "str(1), str('a'), str(1.5), str(None)",
    "str(Letters()), int(1.9), int('12'), int(True), int(-0.5)",
    "float(1), float('1e3'), float('nan') != 1, bool(''), bool(0.0), bool([1]), bool(Length(1))",
    "list('ab'), list((1, 2)), list({1: 2})",
    "list(range(3)), tuple([1]), tuple((1, 2)), list(Letters())",
    "sorted(set([1, 2, 1])), set('aa'), set()",
    "set({1}), len(set((1, (1, 2)))), len({Odd(1), Odd(2)})",
    "list(range(5)), list(range(1, 5)), list(range(5, 1, -2)), range(True), range(3)[1]",
    "[].append(1), (lambda a: (a.append(1), a.append([2]), a))([])",
    "'a-b'.split('-'), ' a '.strip()",
    "'abc'.upper(), 'abc'.find('c'), 'abc'.startswith('a'), 'a'.join(['b', 'c']), ''.join(())",
    "' '.join(['a'] * 300)[-1], 'ab'.replace('a', 'c'), 'x'.ljust(3), ('a' * 300).upper()[299]",
    "(lambda a: (a.pop(), a.pop(0), a.insert(1, 5), a.reverse(), a.copy(), a))([1, 2, 3, 4])",
    "table.get('a'), table.get('z'), table.get('z', 5)",
    "table.get((1, 2)), {1: 2}.pop(1), {}.pop(1, 2)",
    "{}.setdefault(1, [])",
    "(lambda s: (s.add(1), s.add((1, 2)), s.discard(5), s.remove(1), s))(set())",
    "sorted([2, 1]), ''.join(sorted('cab')), [*zip('ab', [1, 2])], [*enumerate('ab')], hash(1)",
    "(y := 3) + y, (y := y + 1) * (y := y + 1) + y",
    "True + True, True & False, True | 2, -False, 1 + 1j, 1j * 1j, 2 ** 0.5, (-8) ** 2",
]  # fmt: skip

FAILING = [
    "lambda a=fails(): a", "(lambda a: a)()", "(lambda a, b=1: a)(b=2)", "(lambda: None)(1)",
    "1 + 'a'", "'a' + 1", "None + 1", "[1] + (2,)", "1 < 'a'", "None < None", "1 / 0", "1.0 / 0",
    "5 % 0", "5.0 // 0", "0 ** -1", "0.0 ** -2", "1e200 ** 5", "2.0 ** 5000", "10**400 * 1.0",
    "10**400 / 3.0", "1j < 2", "1j // 2", "1 << -1", "1.5 & 2", "~1.5", "-'a'", "+[]", "1 @ 2",
    "undefined", "1 + undefined", "undefined + 1 / 0", "1 / 0 + undefined", "fails() + 1 / 0",
    "1 + fails()", "not fails()", "[] in {1: 2}", "[1] in {2}", "1 in 5", "1 in 'abc'",
    "fails() in fails()", "1 is fails()", "fails() and 1", "0 or fails()", "1 if fails() else 2",
    "fails() if 1 else 2", "Length(1) + Length(2) + 1 / 0", "torch.ones(2) + torch.ones(3)",
    "torch.ones(2) + 'a'", "1 + torch.ones(2) @ torch.ones(3)", "not torch.ones(2)",
    "torch.ones(2) and 1", "1 if torch.ones(2) else 2", "-torch.ones(2) + torch.ones(3) * 2 - 1",
    "1 + 2 - 3 + 'a' + 5", "1 + 2 + torch.ones(2) + torch.ones(3) + 4", "2 ** 10 ** 10",
    "1 << 10 ** 8", "(2 ** 600000) * (2 ** 600000)", "Length(1) < 3", "Length(1) - 1", "'a' % 1",
    "{} + {}", "(lambda: inside)()", "(lambda q: r)(1)",
]  # fmt: skip

_FREE = """
def f():
    def g(): return 1 + late
    print(g() if 0 else 1)
    g()
    late = 1
f()
"""
_REBOUND = """
def g():
    global x
    x = 'new'
    return 1
x = 5
print(x + g(), x)
print(x + g())
"""
_DELETED = """
def g():
    global x
    del x
    return 1
x = 5
print(x + g())
print(g() + x)
"""
_OF_A_CLASS = """
x = 1
class A:
    y = x + 1
    x = y * 2
    z = x + y
print(A.z, A.x)
"""
_CHANGING = """
class A:
    x = 1
    def __init__(self): self.own = 5
class B(A): pass
def read(a): return (a.x, a.own)
a, b = A(), B()
print(read(a), read(b), read(a))
A.x = 2
b.x = 3
print(read(a), read(b))
A.own = property(lambda self: "property")
print(read(a), read(b))
del A.own
a.x = 7
print(read(a), read(b))
A.__getattr__ = lambda self, name: name
del a.own
print(read(a), read(b))
del A.x
del a.x
print(read(a), read(b))
"""
_SHRINKING = """
xs = [[1, 2, 3], [4, 5, 6]]
def empty(k):
    xs.clear()
    return k
print(xs[0][empty(1)])
xs = [1, 2, 3]
print([empty(x) for x in xs], xs)
d = {"a": [1, 2]}
print(d["a"][d.clear() or 1], d)
d = {1: 2}
print([d.pop(1) for key in list(d)], d)
print([d.update({key: key}) for key in {1: 1}], d)
e = {1: 2, 2: 3}
print([e.pop(key) for key in e])
"""
_MADE_AGAIN = """
def make(n, step=1):
    def add(x, by=step): return x + n + by
    return add
print([make(n)(1) for n in range(2000)][-1], [make(n, 5)(1) for n in range(1700)][1699])
make.tag = 1
print(make.tag, make.__name__, make(1).__name__, make(3).__defaults__, hasattr(make(1), "tag"))
"""
_ENDLESS = """
def numbers():
    n = 0
    while True:
        yield n
        n = n + 1
print(len([n for n in numbers()]))
"""
_PREDEFINED = """
print(len('ab') + 1)
len = 3
print(len + 1)
del len
print(len('abc') + 1)
"""

LIMITED = {
    "texts": ("a = 'abc'\nprint(a + 'de')\nprint(a + 'def')", {"elements": 5}),
    "lists": ("a = [1, 2]\nprint(a + [3])\nprint(a + (a + a))", {"elements": 5}),
    "steps": ("def f(n): return n if n < 1 else f(n - 1) + 1\nprint(f(50))", {"steps": 20}),
    "long texts": ("a = 'a' * 5000\nb = a + a\nprint(len(b))\nc = b + b + b", {"steps": 100}),
    "depth": ("def f(n): return 1 + f(n + 1)\nprint(f(0))", {}),
    "deep": ("def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(990))", {}),
    "lists in lists": ("a = []\nfor _ in range(600): a = [a]\nb = [a]\nprint(a == b[0])", {}),
    "free": (_FREE, {}),
    "own": ("def f():\n    print(1 + x)\n    x = 1\nx = 5\nf()", {}),
    "of a class": (_OF_A_CLASS, {}),
    "rebound": (_REBOUND, {}),
    "deleted": (_DELETED, {}),
    "predefined": (_PREDEFINED, {}),
    "changing classes": (_CHANGING, {}),
    "shrinking": (_SHRINKING, {}),
    "endless": (_ENDLESS, {"steps": 2000}),
    "comprehension": ("print(len([n for n in range(50)]))\n" * 3, {"steps": 120}),
    "items": (
        "print(len({n: n for n in range(50)}), len({n for n in range(9)}))\n" * 3,
        {"steps": 130},
    ),
    "items of pairs": (
        "d = {a: b for a, b in zip('abc', range(9)) if b if a != 'b'}\nprint(d)\n"
        "def f(n): return {k: v + n for k, v in d.items()}, {(k, 1) for k in d}\nprint(f(1))\n"
        "class K:\n    __hash__ = None\nprint({k: 1 for k in [1.0, (2,), None, print]})\n"
        "try: print({[k]: 1 for k in d})\nexcept TypeError as error: print(error)\n"
        "try: {k: d.update({k + '1': 1}) for k in d}\nexcept RuntimeError as error: print(error)\n"
        "print({n: 1 / n for n in (2, 1, 0)})",
        {},
    ),
    "long range": ("print(len([n for n in range(10 ** 30)]))", {"steps": 5000}),
    "formatted": ("a = 'abc'\nprint(f'{a}de')\nprint(f'{a}{a}')", {"elements": 5}),
    "appended": ("a = []\nfor k in range(9): a.append(k)", {"elements": 5}),
    "joined": ("print('-'.join(['a', 'b', 'c']))\nprint('-'.join(['a'] * 4))", {"elements": 5}),
    "listed": ("print(list('abc'), tuple([1] * 5))\nprint(list(range(6)))", {"elements": 5}),
    "summed": ("a = [1] * 320\nfor _ in range(9): print(sum(a), len(list(a)))", {"steps": 200}),
    "split": ("a = 'b ' * 2000\nfor _ in range(99): b = len(a.split())\nprint(b)", {"steps": 900}),
    "made again": (_MADE_AGAIN, {}),
    "own text": ("print([len(str(x)) for x in (1, 10 ** 5000)])\nprint(f'{10 ** 5000}')", {}),
}
"""Programs with their limits, for which closures and nodes do the same."""


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("text", SAME_AS_CPYTHON)
def test_values(text: str) -> None:
    line = f"print(repr(({text})))"
    program = f"{VALUES}\n{line}\ndef f():\n    {line}\nf()\n"
    found = _outcome(program, True)
    assert found == _outcome(program, False)
    assert found == Outcome(_by_cpython(program), None)


@pytest.mark.parametrize("text", sampled(FAILING, 2))
def test_failures(text: str) -> None:
    for program in (f"print({text})", f"def f(x):\n    return [{text}]\nf(3)"):
        whole = f"import torch\n{VALUES}\n{program}\n"
        found = _outcome(whole, True)
        assert found.error is not None
        assert found == _outcome(whole, False)


@pytest.mark.parametrize("name", LIMITED)
def test_limits(name: str) -> None:
    text, limits = LIMITED[name]
    assert _outcome(text, True, **limits) == _outcome(text, False, **limits)


@pytest.mark.parametrize("depth", [7, 40, 190])
def test_nested_expressions_in_deep_calls(depth: int) -> None:
    nested = "(1 + " * depth + "f(n - 1)" + ")" * depth
    text = f"def f(n): return 0 if n == 0 else {nested}\nprint(f(9))\nprint(f(2000))"
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(_outcome(text, True)))
    thread.start()
    thread.join()
    outcomes.append(_outcome(text, True))
    for found in outcomes:
        assert found.printed == f"{9 * depth}\n"
        assert found.error is not None
        assert found.error[:2] == ("E601", "RecursionError")
        assert re.fullmatch(r"f\(\) was called \d+ calls deep", found.error[2])


def test_nodes_are_made() -> None:
    session = Session()
    for _ in session.run("def f(x): return -x + 1\nf(1)", "program"):
        pass
    assert session.interpreter.nodes is not None
    assert type(session.interpreter.values["f"].body).__name__ in ("Node", "function")


# --- calls ----------------------------------------------------------------------------------------

CALLED = """
def plus(a, b=10): return a + b
def rest(a, *more, k=1, **named): return a, more, k, named
class P:
    bias = 1
    def __init__(self, x, y=2):
        self.x = x
        self.y = y
    def add(self, n): return self.x + n + self.bias
    def twice(self): return self.add(self.x)
    def chosen(self, f): return f(self.y)
    def fails(self): return 1 / 0
    @classmethod
    def make(cls, x): return cls(x, 0)
    @staticmethod
    def of(x): return P(x, x)
    @property
    def both(self): return plus(self.x, self.y)
class Q(P):
    def __init__(self, x):
        super().__init__(x, 7)
        self.own = lambda n: n * self.x
    def add(self, n): return super().add(n) * 10
class R:
    def __init__(self): return 1
class S:
    def __call__(self, n): return n + 1
class T(list):
    def __init__(self, *values): self.extend(values)
class U: pass
class V(Q):
    def __init__(self, x): super().__init__(x)
    def add(self, n): return [super().add(n), (lambda: super(V, self).add(n))()]
    def twice(self):
        def inner(): return super().twice()
        try: return inner()
        except Exception as error: return type(error).__name__
    @classmethod
    def make(cls, x): return super().make(x + 1) if x < 2 else cls(x)
class VV(V):
    def add(self, n): return n, super().add(n)
    @classmethod
    def make(cls, x): return super().make(x)
class M:
    def __init__(self, n): self.n = n
    def __add__(self, o): return M(self.n + o.n) if isinstance(o, M) else NotImplemented
    def __radd__(self, o): return "r", o
    def __lt__(self, o): return self.n < o.n
    def __eq__(self, o): return isinstance(o, M) and self.n == o.n
    def __mul__(self, o): return self.n / o
    def __getitem__(self, k): return self.n * k
    def __call__(self, k, j=1): return self.n - k - j
class K:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __contains__(self, k): return k and self.n / k
    def __setitem__(self, k, v): self.n = v / k
    def __delitem__(self, k): self.n = k
    @property
    def half(self): return self.n / 2
    @half.setter
    def half(self, n): self.n = 2 * n
    none = property()
class KK(K):
    def __len__(self): return len(super()) if self.n is None else super().__len__() + 1
    half = 7
class KL(list):
    def __len__(self): return 3
    def __contains__(self, k): return k == 5
    def __setitem__(self, k, v): self.append((k, v))
    size = property(lambda self: len(self))
def put(c, k, v): c[k] = v
class MM(M):
    def __radd__(self, o): return "mm"
    def __getitem__(self, k): return k
def counter():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count
count = counter()
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def even(n): return True if n == 0 else odd(n - 1)
def odd(n): return False if n == 0 else even(n - 1)
"""

CALLS = [
    "plus(1), plus(1, 2), plus(*[1]), plus(b=3, a=1), plus(1, b=2), (lambda: 4)(), fib(12)",
    "rest(1), rest(1, 2, 3), rest(1, 2, k=3, z=4), rest(*[1, 2], **{'k': 5}), even(30), odd(31)",
    "P(1).x, P(1, 3).y, P(3).add(4), P(3).twice(), P.make(3).x, P.of(4).y, P(y=1, x=2).x",
    "[each.add(1) for each in (P(1), Q(2), P(3), Q(4), Q(5))], P(4).chosen(lambda n: n * n)",
    "S()(4), (lambda f: f(3))(S()), [P(n).add(n) for n in range(3)], T(3, 4).index(4), len(T())",
    "Q(5).y, Q(2).own(4), P.add(P(1), 2), P.add(Q(1), 2), Q(3).twice(), type(U()).__name__",
    "'a,b'.split(','), [3, 1].index(1), {1: 2}.get(1), (1, 2).count(2), {3}.union({4})",
    "count(), count(), counter()(), (lambda a, b=2, *c: (a, b, c))(1, 3, 4, 5), plus('a', 'b')",
    "(lambda m: m(2) + m(3))(P(1).add), (lambda c: c(4).add(1))(P), plus(plus(1), plus(2, 3))",
    "(M(1) + M(2)).n, 3 + M(1), M(1) < M(2), M(1) > M(2), M(3)[4], [M(1)[k] for k in range(3)]",
    "M(1) + MM(2), (MM(1) + MM(2)).n, M(1) == 1, M(1) == M(1), M(1) != M(2), M(4) * 2, MM(3)[1]",
    "M(3)(1), M(3)(1, 2), [m(1) for m in (M(2), MM(3), S(), M(4))], [m[1] for m in (M(2), MM(3))]",
    "(lambda m: m(1) + m(2))(M(5)), M(1) + M(2) + M(3) == M(6), [m + M(1) == 3 for m in (M(2), 4)]",
    "rest(1, *[2, 3], k=4, **{'z': 5}), rest(*(1, 2), *(3,)), rest(*range(12)), rest(**{'a': 1})",
    "P(x=4).add(n=1), P(1, y=5).y, Q(x=3).y, P(1).chosen(f=lambda v: v), P.make(x=3).x, T(*[1], 2)",
    "(lambda a, /, b, *, c=3: (a, b, c))(1, b=2), (lambda *a, **k: (a, k))(1, 2, z=3), M(3)(k=1)",
    "dict(a=1, **{'b': 2}), sorted([3, 1], reverse=True), M(3)(1, j=2)",
    "[f(x=1) for f in [lambda x, k=k: x + k for k in range(3)]], (lambda n=count: n)() is count",
    "[each.add(n=1) for each in (P(1), Q(2), P(3))], Q(2).own(n=3), (lambda a, /, **k: k)(1, a=2)",
    "[each.add(2) for each in (V(1), VV(2), V(3), VV(4))], V(3).own(2), VV.make(3).y, V.make(2).x",
    "[len(c) for c in (K(3), KK(3), [1], K(True), KL(), 'ab', K(False))], len(K(0)), len(KK(1))",
    "[1 in c for c in (K(3), [1], KK(0), KL([1]), {1: 2}, K(0))], 0 in K(1), None not in K(1)",
    "[c.half for c in (K(3), KK(3), K(4), K(5.0))], K(1).half, KL().size, [] in K(1), 5 in KL()",
    "(lambda c: (put(c, 2, 3), c.n, put(c, 4, 2.0), c.n))(K(1))",
    "(lambda c: (put(c, 1, 2), c.n))(KK(0)), [put(c, 1, 2) for c in ([0, 0], {}, K(1))]",
    "(lambda c: (put(c, 0, 3), put(c, 0, 4), c[0], c[1]))(KL())",
    "rest(*(1, 2), 4, *(5, 6, 7, 8), **{}, z=1), rest(1, *(2,) * 9), rest(*(), **{}, **{'a': 1})",
    "plus(*(1,), **{}), plus(1, *(), b=2), T(*(1, 2), *[3]), Q(*(3,)).add(*(4,), **{})",
    "list(k * k for k in range(9)), tuple(K(k).n for k in (1, 2)), list(map(count, ()))",
    "max(3, 4), len([1]), sorted([3, 1], key=lambda n: -n), list(map(P(1).add, [1, 2])), int('3')",
]  # fmt: skip

FAILING_CALLS = [
    "plus(1, **{'b': 1}, b=2)", "plus(a=1, *[2])", "plus(*5)", "plus(**5)", "plus(**{1: 2})",
    "plus(1, z=2)", "P(1, z=2)", "P(1).add(z=2)", "rest(k=1)", "undefined(a=1)", "5(a=1)",
    "plus(a=undefined)", "P(1).none(a=1)", "M(1)(z=1)", "R(a=1)", "plus(1, b='a')", "R(*[])",
    "(lambda a, /: a)(a=1)", "(lambda *, c: c)()", "sorted([1], bad=1)", "rest(*[1, undefined])",
    "P(x='a').add(n=1)", "P(y=1)", "torch.ones(2).sum(dim=5)", "rest(*[1], a=2)",
    "undefined.f(a=1)", "(lambda a=undefined: a)()", "plus(**undefined)", "U(a=1)",
    "plus()", "plus(1, 2, 3)", "plus(c=1)", "M(1) + 2", "M(1) < 2", "M(1) * 0",
    "M(1)()", "M(1)(1, 2, 3)", "M(1)('a')", "S()(1, 2)", "M(None)[1]", "M(1) * 'a'",
    "M(1) + torch.ones(2) + 1 / 0", "torch.ones(2) + M(1) + 1 / 0", "U()[1]", "U()(1)",
    "plus(1, a=2)", "P()", "P(1, 2, 3)", "P(1).add()",
    "P(1).add(1, 2)", "P(1).none()", "P(1).x()", "R()", "5(1)", "None.f()", "'a'.f()", "S()()",
    "len(K('a'))", "len(K(-1))", "len(K(2**70))", "len(K(None))", "len(KK('a'))", "len(U())",
    "len(K(1), 2)", "len(KK(None))", "[len(K(n)) for n in (1, 'b')]",
    "'a' in K(1)", "1 in K('a')", "1 in U()", "put(K(1), 0, 1)", "put(K(1), 'a', 1)", "K('a').half",
    "put(U(), 1, 2)", "K(1).none", "put(K(1), [1], undefined)",
    "plus(undefined)", "undefined(1)", "P(undefined)", "P(1).add(undefined)", "undefined.f(1)",
    "plus(1 / 0)", "P(1).fails()", "plus(1, 'a')", "P('a').add(1)", "U(1)", "U().f()", "P.add(1)",
    "(lambda: 0)(1)", "torch.ones(2).nothing()", "torch.ones(2).view(3)", "torch.ones(2)(1)",
    "torch.add(torch.ones(2), torch.ones(3))", "plus(torch.ones(2), torch.ones(3))", "[].pop()",
    "{}.pop(1)", "P(1).chosen(3)", "rest()", "rest(1, a=2)", "Q(1, 2)", "plus(fails())", "int('x')",
]  # fmt: skip

_CHANGED = """
class A:
    def f(self): return 1
class B(A): pass
a, b = A(), B()
def g(): return a.f(), b.f()
print(g(), g())
A.f = lambda self: 2
print(g(), g())
B.f = lambda self: 3
print(g())
a.f = lambda: 4
print(g())
del a.f
del B.f
print(g())
A.f = 5
print(g())
def h(x, y): return x + y, x(y), x[y], x == y
for kind in range(4):
    class C:
        def __add__(self, n): return kind
        def __call__(self, n): return kind + 1
        def __getitem__(self, n): return kind + 2
        def __eq__(self, n): return kind
    print(h(C(), 2), h(C(), None))
    C.__add__ = lambda self, n: "new"
    C.__call__ = lambda self, n: "called"
    C.__getitem__ = lambda self, n: "got"
    C.__eq__ = lambda self, n: "equal"
    print(h(C(), 2), h(C(), C()))
"""
_OBJECTS_CHANGED = """
class C:
    def __len__(self): return 1
    def __contains__(self, k): return True
    def __setitem__(self, k, v): self.kept = k, v
    x = property(lambda self: 1)
class D(C): pass
def all_of(c):
    c[1] = 2
    return len(c), 1 in c, c.x, c.kept
c, d = C(), D()
print(all_of(c), all_of(d), all_of(c))
C.__len__ = lambda self: 2
D.x = property(lambda self: 3)
print(all_of(c), all_of(d))
D.x = 4
C.__contains__ = lambda self, k: k == 3
D.__setitem__ = lambda self, k, v: setattr(self, "kept", v)
print(all_of(c), all_of(d))
del D.x
print(all_of(c), all_of(d))
C.__getattr__ = lambda self, name: name
print(all_of(c), all_of(d), d.y)
C.__getattribute__ = lambda self, name: 5 if name == "x" else object.__getattribute__(self, name)
print(all_of(c), all_of(d), d.y)
class E:
    @property
    def deep(self): return self.deeper + 1
    @property
    def deeper(self): return self.deepest
def last():
    try: return E().deep
    except AttributeError as error: return str(error)
print(last(), last())
class F:
    def __init__(self, n): self.n = n
    def __setitem__(self, k, v):
        global held
        held = F(k)
        del F.__setitem__
        self.n = v
held = F(0)
held[2] = 5
print(held.n)
try: held[1] = 1
except TypeError as error: print("no")
"""
_SHADOWED = """
def f(): return len([1]), abs(-2)
print(f(), f())
len = lambda values: "mine"
print(f())
del len
print(f(), len([1, 2]))
def twice(g): return lambda n: g(g(n))
@twice
def more(n): return n + 1
def made():
    kept = []
    def own(n, to=kept, *, by=2):
        to.append(n * by)
        return to
    def other(): return own
    return other() is own, own(3), own(4, by=1), (lambda: kept)() is own(5), other.__name__
print(more(1), made(), made())
"""
_DELETED_TWICE = """
def local():
    del x
def free():
    x = 1
    def inner():
        nonlocal x
        del x
        del x
    inner()
def of_program():
    global y
    del y
def of_class():
    class A:
        del x
def unbound():
    for x in []: pass
    del x
for each in (local, free, of_program, of_class, unbound):
    try: each()
    except NameError as error: print(type(error).__name__, error)
try: del z
except NameError as error: print(type(error).__name__, error)
"""
_INITIALISED = """
class A:
    def __init__(self): self.x = 1
def make(): return A().x
print(make(), make())
class One:
    def f(self): return 1
class Two(One):
    def f(self): return super().f() + 10
class Three(Two, One): pass
def all_of(): return [each().f() for each in (Two, Three, Two, Three)]
print(all_of(), all_of())
One.f = lambda self: 2
print(all_of())
class Four:
    def f(self): return 5
class Five(Two, Four): pass
print(all_of(), Five().f(), [each().f() for each in (Five, Two, Five)])
def other(self): self.x = 2
A.__init__ = other
print(make())
class B(A):
    def __init__(self):
        super().__init__()
        self.x += 10
print(B().x, B().x)
del A.__init__
print(make())
"""
_REPLACED = """
def f(n):
    global f
    kept = f
    f = lambda n: 'new'
    return kept, g(n)
def g(n):
    global g
    g = 1
    return n
print(f(3)[1], f(4), g)
class N:
    def m(self):
        del N.m
        self.m = 2
        return self
print(N().m().m)
"""

_ERRORS = """
class E(ValueError):
    pass
class Own(E):
    def __init__(self, n):
        self.n = n
def tried(f, *values):
    try:
        return f(*values)
    except ValueError as error:
        error.add_note('noted')
        return str(error), repr(error), error.args, error.__notes__, type(error), error.__context__
for text in ('x', '', ' 7_0 ', 'maximum supported dimension', '9' * 5000):
    print(tried(int, text), tried(float, text), tried(lambda: int(text)))
    print(tried(lambda: float(text)))
    try:
        int(text)
    except ValueError as error:
        print(error.__traceback__.tb_lineno, error.__cause__, getattr(error, 'x', 3))
def made(n):
    return [E(), E(1), E('a', n), Own(n), ValueError(n), KeyError('k'), Own(2).args, E(n).args]
print(made(1), made(2), [str(each) for each in made(3)[:6]])
E.__init__ = lambda self, *values: setattr(self, 'n', values)
print([each.n for each in made(4)[:4]], made(4)[-1])
del E.__init__
print([hasattr(each, 'n') for each in made(5)[:4]])
def f():
    def g(): return int('1.5')
    try:
        g()
    except ValueError as error:
        raise E('again') from error
f()
"""

_MISSING_KEYS = """
def missing(d, k):
    try:
        return d[k]
    except LookupError as error:
        return type(error), str(error), repr(error), error.args, error.__cause__, error.__context__
def added(d, k):
    try:
        d[k] += 1
    except KeyError as error:
        return str(error), f'{error}', error.args, error.args[0] is k
for k in ('k', '', "it's", 3, -1.5, 2j, None, True, (1, 'a'), frozenset({1}), (1, (2, 3))):
    print(missing({}, k), missing({'other': 1}, k), added({}, k))
print(missing({}, 7 ** 20), missing([], 3), missing('', 0))
try:
    try:
        {}['inner']
    finally:
        {1: 2}[3]
except KeyError as error:
    print(error.args, error.__context__.args)
def f(): return {'a': 1}['b']
f()
"""

_CLASS_NAMES = """
import collections, torch
class A:
    pass
class E(KeyError):
    pass
values = [int, ValueError, type(3), type(None), type(print), torch.Tensor, A, E, len]
values += [torch.nn.Linear, type(torch.tensor(1)), collections.Counter, type(A), type(lambda: 1)]
for k in range(2):
    print([each.__name__ for each in values], E.__qualname__, ValueError.__module__)
print(A().__name__)
"""

_BARE = """
class A: pass
class B(A):
    def __len__(self): return self.n
def make(cls, *values):
    try:
        made = [cls(*values), cls(*values)]
        made[0].n = 3
        return len(vars(made[0])), len(vars(made[1])), len(made[0]) if cls is B else None
    except TypeError as error:
        return str(error)
for _ in range(2):
    print(make(A), make(B), make(A, 1))
print(B().__class__.__name__, [type(A()) is A, type(B()) is A])
A.__init__ = lambda self, n=1: setattr(self, 'n', n)
print(make(A), make(B), make(B, 5))
del A.__init__
print(make(B), make(B, 5))
for n in (True, 2**70, -1, 'x', 2.0):
    b = B()
    b.n = n
    try: print(len(b))
    except Exception as error: print(type(error).__name__, error)
"""

_SUMS = """
class N:
    def __init__(self, n): self.n = n
    def __add__(self, other):
        if isinstance(other, str): return NotImplemented
        if isinstance(other, list): raise KeyError('list')
        return N(self.n + (other.n if isinstance(other, N) else other))
    def __radd__(self, other):
        return NotImplemented if isinstance(other, float) else N(other + self.n)
class M(N):
    def __radd__(self, other): return N(100)
print(sum([N(1), N(2), M(3)]).n, sum([1, 2, N(3), 4, 5.5, 1e16, -1e16]).n)
print(sum((N(k) for k in range(10)), N(5)).n, sum([]), sum([], 3.5), sum([0.1] * 10))
print(sum([[1], [2]], []), sum(x for x in [0.1] * 10), sum([(1,)], ()), sum({1: 2, 3: 4}))
def own():
    yield 1
    raise ValueError('mid')
def tried(values, start=0):
    try: return sum(values, start)
    except Exception as error: return type(error).__name__, str(error)
for values in ([N(1), 'a'], [N(1), [1]], ['a'], [1, 'a'], [1.5, N(2)], [None], [N(1), None], own()):
    print(tried(values), tried(value for value in values), tried((v for v in values), N(1)))
for start in ('', [], 2.5, None, N(0)): print(tried((each for each in [[1]]), start))
print(sum([N(1), [1]]))
"""

_LOCALS = """
import torch
def told(f, *values, **named):
    try: return f(*values, **named)
    except Exception as error: return type(error).__name__, str(error)
def unbound(n):
    if n: x = n
    return x
def added(a, b=2, c=3):
    a += b
    d = e = a * c
    d, e = e, d
    return [a, b, {"c": c, a: d}, (e,), f"{a}{d:>4}", a if b else c, a < b or not c, -a, [a, b][0]]
def raised(n):
    try:
        if n > 2: raise ValueError(n)
        elif n: return 1 // (n - 1)
    except ValueError: n = 'caught'
    finally: n = n, 'last'
    assert n[0] != 2, 'two'
    return n
for n in (0, 1, 2, 3): print(told(unbound, n), told(raised, n), told(added, n))
print(told(added, 1, c=5), told(added, b=1, a=2), told(added), told(added, 1, 2, 3, 4))
print(told(added, d=1))
def counted(start):
    count = start
    def step(by=1):
        nonlocal count
        before = count
        count += by
        return before, count
    return step
step = counted(5)
print(step(), step(2), told(step, 'a'), counted(torch.ones(2))(by=1))
def free():
    def inner(): return later
    if inner.__name__ == 'none': later = 1
    return told(inner)
print(free())
def many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p=0, q=1): return a + q
print(many(*range(15)), many(*range(16)), sorted([3, 1, 2], key=lambda n: -n))
def named(w):
    x = y = w * 2
    total = x + y
    return total
w = torch.ones(2, requires_grad=True)
print(named(w), named(w).grad_fn)
class Node:
    def __init__(self, value, rest=None):
        self.value, self.rest = value, rest
        self.make = lambda: Node(value)
        self.empty = lambda n=value: n
    def __enter__(self): return self
    def __exit__(self, kind, error, trace): return kind is KeyError
    def last(self):
        if self.rest is None: return self.value
        deeper = self.rest.last()
        return deeper
    def within(self, key):
        global seen
        with self as mine: seen = {1: 2}[key]
        seen = seen, mine is self
        return seen
chain = Node(1)
for k in range(300): chain = Node(k, chain)
print(chain.last(), chain.make().value, chain.empty(), chain.within(1), chain.within(3))
def shown(a, b=2):
    c = a
    return sorted(locals())
def deleted(a):
    b = a
    del a
    return a
def listed(a, n):
    b = [k + a for k in range(n)]
    return b, sum(k * a for k in b), (m := a + 1), m
print(shown(1), told(deleted, 1), told(listed, 1, 3))
def annotated(a: int, b: int = 2) -> int:
    c = a + b
    return c
print(annotated(1), annotated(b=5, a=1))
x = torch.zeros(2)
def doubled(v, k):
    scaled = v * 2 + k
    return scaled
for k in range(200): x = doubled(x * 0.4, k)
print(x, sum(added(k, c=2)[0] for k in range(2000)))
def deep(n):
    m = n + 1
    return deep(m)
print(told(deep, 0))
unbound(0)
"""

_WAITING_LOCALS = """
import torch
def told(f, *values):
    try: return f(*values)
    except Exception as error: return type(error).__name__, str(error)
def walked(n, more=2):
    total = 0
    while total < n:
        got = yield total
        total += more if got is None else got
    return total
def all_of(n):
    kept = yield from walked(n)
    yield kept, n
def nested(values):
    for each in values:
        if isinstance(each, list):
            yield from nested(each)
        elif each is None: continue
        elif each == 'end': break
        else: yield each
def unbound(n):
    for k in range(n): yield k
    yield k
def caught(n):
    try: yield 1 // n
    except ZeroDivisionError: yield 'zero'
def many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p=0, q=1):
    yield a
    a = q
    yield a
def named(w):
    x = w * 2
    yield x
    x = x + 1
    yield x
def outer(n):
    count = 0
    def inner():
        nonlocal count
        for k in range(n):
            count += k
            yield count
    return list(inner()), count
w = walked(9)
print(next(w), w.send(5), next(w), told(next, w), told(w.send, 1))
print(list(walked(5)), list(all_of(n=3)))
print(list(nested([1, [2, None, [3, [4]], 'end', 7], 5])), told(list, unbound(0)), list(unbound(2)))
print(list(caught(0)), list(caught(1)), list(many(*range(15))), outer(4))
print([x for x in named(torch.ones(2, requires_grad=True))])
n, rows = 3, [[1, 2], [3, 4]]
def drawn(rows, k):
    n = 10
    a = list(x + n for row in rows for x in row if x > k)
    b = sum(a * x for a, x in zip([1, 2], rows[0]))
    c = list(list(y for y in range(x)) for x in rows[0])
    return a, b, c, list((lambda: x)() for x in rows[0]), told(next, (m for m in []))
print(drawn(rows, 1), list(x * n for x in range(4) if x != n))
print(list((x, y) for x in 'ab' for y in x))
print([x * n for row in rows for x in row], [[x * y for x in row] for y, row in enumerate(rows)])
print([(lambda: x)() for x in 'ab'], [k for k, *_ in rows])
print({x: [y for y in 'ab' if y != x] for x in 'ab'})
print([t for t in torch.ones(2, 2)], [[n := n + x for x in row] for row in rows], n)
for _ in range(2):
    print(told(lambda: [later for _ in 'a']), told(lambda: [x / y for x, y in [(1, 2), (1, 0)]]))
    print(told(lambda: {[]: x for x in 'a'}), told(lambda: {x: later for x in 'a'}))
steps = [(x for x in range(3)) for _ in range(2)]
print(next(steps[0]), next(steps[1]), next(steps[0]), list(steps[0]), list(steps[1]))
for _ in range(3):
    print(told(list, (later for _ in 'a')), told(list, (x / y for x in [1] for y in [1, 0])))
def free():
    found = (value for _ in 'a')
    first = told(list, found)
    value = 5
    return first, list(value for _ in 'a')
print(free(), free())
class C:
    k = 2
    twice = list(x * 2 for x in [k])
    def m(self): return sum(self.k * x for x in range(4))
print(C.twice, C().m())
print(sum(x * x for x in range(3000)), sum(walked(9000)))
g = walked(3)
print(next(g), g.close(), list(g))
list(unbound(0))
def without_own(a):
    def inner():
        yield a
        while True:
            if a: break
        yield a + 1
    return inner
class Holder: pass
def in_attribute(holder): return (holder.value for holder.value in range(3))
print(list(without_own(3)()), list(in_attribute(Holder())))
"""

_LOOPED = """
def drawn(n):
    for k in range(n): yield k
def looped(values, n):
    total = 0
    for each in values:
        for k in drawn(n):
            if k == 5: continue
            if k == 9: break
            total += k * each
        else: total += 1000
    return total
print([looped(range(n), 12) for n in (0, 3, 9, 10, 70)], looped([1.5] * 3000, 4))
kept = [0]
for k in range(6000): kept[0] += k
for k in drawn(5000): kept.append(k)
for k, j in zip(range(5000), kept): kept[0] -= j
print(kept[0], len(kept), k, j)
for k in range(3000): kept[k] / (2900 - k)
"""

_KEYS = """
def told(f, *values, **named):
    try: return f(*values, **named)
    except Exception as error: return type(error).__name__, str(error)
counts = {'a': 3, 'b': 5, (1, 2): 4}
print(max(counts, key=counts.get), min(counts, key=counts.get), sorted(counts, key=counts.get))
words = ['Bc', 'ab', 'Ca', 'abc']
print(sorted(words, key='abcabc'.find), sorted(words, key='xBcCaabc'.index), sorted(words, key=len))
words.sort(key=lambda word: (-len(word), word))
print(words, max(words, key=str.lower), min(words, key=lambda word: word[-1]))
print(max(1, 3, 2, key=[].count))
print(told(sorted, words, key='ab'.index), told(max, [[1]], key=counts.get))
print(told(min, words, key=5))
print(told(sorted, [1, 'a'], key={1: 'x', 'a': 3}.get), told(max, [1, 2], key={}.pop), counts)
class Box:
    def __init__(self, n): self.n = n
    def near(self, n): return abs(self.n - n)
print(sorted(range(6), key=Box(3).near), told(sorted, ['a'], key=Box(3).near))
sorted(words, key='ab'.index)
"""

LIMITED_CALLS = {
    "keys": (_KEYS, {}),
    "waiting locals": (_WAITING_LOCALS, {}),
    "locals": (_LOCALS, {}),
    "bare": (_BARE, {}),
    "sums": (_SUMS, {}),
    "looped": (_LOOPED, {}),
    "steps of lists": ("print(list(k for k in [1]))\nlist(k for k in range(50))", {"steps": 50}),
    "long tuples": ("tuple(k for k in range(50))", {"elements": 20}),
    "lists that fail": ("print(list(1 / k for k in (1, 2)))\nlist(1 / k for k in (1, 0))", {}),
    "steps of loops": (_LOOPED, {"steps": 20_000}),
    "steps of sums": ("print(sum(k for k in range(10)))\nsum(k for k in range(50))", {"steps": 60}),
    "long sums": ("sum((k for k in range(50)), 1.0)", {"elements": 20}),
    "errors": (_ERRORS, {}),
    "missing keys": (_MISSING_KEYS, {}),
    "class names": (_CLASS_NAMES, {}),
    "changed": (_CHANGED, {}),
    "objects changed": (_OBJECTS_CHANGED, {}),
    "steps of special methods": (
        f"{CALLED}\nc = K(3)\nfor k in range(1, 30):\n    c[k] = c.half\n    1 in c, len(KK(k))",
        {"steps": 70},
    ),
    "initialised": (_INITIALISED, {}),
    "replaced": (_REPLACED, {}),
    "steps": ("def f(): return 1\nfor k in range(30): f()\nprint(k)", {"steps": 50}),
    "steps of methods": (f"{CALLED}\nfor k in range(30): P(k).add(1)", {"steps": 70}),
    "deep methods": ("class A:\n    def f(self, n): return self.f(n + 1)\nA().f(0)", {}),
    "deep instances": ("class A:\n    def __init__(self, n): self.a = A(n + 1)\nA(0)", {}),
    "caught": (
        "def f(n): return f(n + 1)\nfor _ in range(3):\n    try: f(0)\n"
        "    except RecursionError as error: print(error)\nf(1)",
        {},
    ),
    "often": (f"{CALLED}\nprint(fib(15), sum(P(k).twice() for k in range(1000)))", {}),
}  # fmt: skip
"""Programs with their limits, as above."""


@pytest.mark.parametrize("text", CALLS)
def test_calls(text: str) -> None:
    line = f"print(repr(({text})))"
    program = f"{CALLED}\n{line}\ndef f():\n    {line}\nf()\nf()\n"
    found = _outcome(program, True)
    assert found == _outcome(program, False)
    assert found == Outcome(_by_cpython(program), None)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("text", sampled(FAILING_CALLS, 3))
def test_failing_calls(text: str) -> None:
    for program in (f"print({text})", f"def f(x):\n    return [{text}]\nf(3)"):
        whole = f"import torch\n{VALUES}\n{CALLED}\n{program}\n"
        found = _outcome(whole, True)
        assert found.error is not None
        assert found == _outcome(whole, False)


@pytest.mark.parametrize("name", LIMITED_CALLS)
def test_limits_of_calls(name: str) -> None:
    text, limits = LIMITED_CALLS[name]
    found = _outcome(text, True, **limits)
    assert found == _outcome(text, False, **limits)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(_outcome(text, True, **limits)))
    thread.start()
    thread.join()
    assert outcomes == [found]


@pytest.mark.parametrize("steps", [10**6, 7000, 20_000])
def test_loops_that_nothing_compiles(steps: int) -> None:
    found = _outcome(_LOOPED, True, compiles=False, steps=steps)
    assert found.error is not None
    assert found == _outcome(_LOOPED, False, compiles=False, steps=steps)
    assert found == _outcome(_LOOPED, True, steps=steps)


@pytest.mark.parametrize("in_c", [True, False])
def test_depth_where_the_host_ends_it(in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_HOST_FRAMES", 0)
    text = "def f(n):\n    global d\n    d = n\n    match n:\n        case _: f(n + 1)\n"
    found = _outcome(f"{text}try: f(1)\nexcept RecursionError as error: print(d, error)", in_c)
    depth, message = found.printed.split(" ", 1)
    told = re.fullmatch(r"f\(\) was called (\d+) calls deep\n", message)
    assert told is not None
    assert 0 <= int(depth) - int(told[1]) < 10  # the error itself takes some of the last frames
    assert int(depth) < 1000


def test_deep_operators() -> None:
    text = f"{CALLED}\nM.__add__ = lambda s, o: 1 + (s + o)\nM(1) + 1"
    found = _outcome(text, True)
    assert found.error is not None
    assert found.error[:2] == ("E601", "RecursionError")
    assert "1000 calls deep" in found.error[2]


# --- random expressions ---------------------------------------------------------------------------

_LEAVES = [
    "a", "b", "c", "d", "e", "s", "t", "xs", "ks", "u", "0", "1", "2", "-3", "0.5", "1e300", "'x'",
    "'ab'", "None", "True", "False", "2j", "10**30", "[]", "()", "{}", "g(1)", "h()", "(a := 4)",
    "(s := 'q')", "gone",
]  # fmt: skip
_OPERATORS = [
    *("+", "-", "*", "/", "//", "%", "&", "|", "^", ">>", "<", "<=", "==", "!=", ">", ">="),
    *("in", "not in", "and", "or"),
]
_COMPOUND = [
    "($ is None)", "($ is not None)", "(xs is $)",
    "xs[$]", "$[@]", "ks[$]", "t[$:@]", "[$, @]", "($, @)", "{$: @}", "f'{$}{@}'", "f'{$:.2f}'",
    "[$ for n in @]", "[n for n in $ if @]", "[n for n in range(3) if n != $]", "u[0:$]", "$.real",
    "len($)", "str($)", "int($)", "float($)", "isinstance($, (int, str))", "list($)", "min($, @)",
    "max($)", "sum($)", "abs($)", "t.split($)",
    "t.find($)", "ks.get($, @)", "xs.append($)", "xs.pop()",
    "'-'.join($)", "bool($)", "tuple($)", "t.upper()", "ks.pop($, 0)", "$.append(@)",
]  # fmt: skip
_BEFORE = """
g = lambda n: n + 1
calls = 0
def h():
    global calls
    calls = calls + 1
    return calls
def f(a, b, c, d, e, s, t, xs, ks, u):
"""
_ARGUMENTS = "3, -2, 2.5, True, 10**25, 'ab', 'ba', [1, 2, 3], {'ab': 1, 3: 'x'}, (1, 'x')"


def _expression(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.15:
        return random.choice(_LEAVES)

    def part() -> str:
        return _expression(random, depth - 1)

    kind = random.random()
    if kind < 0.65:
        return f"({part()} {random.choice(_OPERATORS)} {part()})"
    if kind < 0.75:
        return f"({part()} + {part()} - {part()} * {part()})"
    if kind < 0.85:
        return f"({part()} if {part()} else {part()})"
    if kind < 0.9:
        return f"({part()} < {part()} <= {part()})"
    if kind < 0.93:
        return f"({random.choice(['-', '+', '~', 'not '])}{part()})"
    return random.choice(_COMPOUND).replace("$", part()).replace("@", part())


def _random_program(number: int) -> str:
    random = Random(f"nodes {number}")
    lines = [_BEFORE]
    for _ in range(25):
        lines.append("    try:")
        lines.append(f"        print(repr({_expression(random, random.randint(1, 4))}))")
        lines.append("    except Exception as error:")
        lines.append("        print('failed', type(error).__name__, error)")
    return "\n".join([*lines, f"f({_ARGUMENTS})", "print(calls)", ""])


def _compare(number: int) -> None:
    text = _random_program(number)
    found = _outcome(text, True)
    assert found == _outcome(text, False), text
    try:
        there = _by_cpython(text).splitlines()
    except SyntaxError:  # a `:=` in what a comprehension goes through
        return
    if found.error is None:
        pairs = zip(found.printed.splitlines()[:-1], there[:-1], strict=True)  # but the calls
        for here, other in pairs:
            assert here == other or "failed" in here + other, text


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("number", range(12))
def test_random_expressions(number: int) -> None:
    _compare(number)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("hundred", range(40))
def test_many_random_expressions(hundred: int) -> None:
    for number in range(100 * hundred, 100 * hundred + 100):
        _compare(number)


# --- statements -----------------------------------------------------------------------------------

_LOOPS = """
def loops(values, few):
    for k in values:
        if k == 2:
            continue
        elif k == 5:
            break
        else:
            print(k, end=' ')
    else:
        print('whole')
    for k in few: pass
    else: print('else', k)
    n = 0
    while n < 5:
        n += 1
        if n == 2: continue
        if n == few[0]: return 'left', n
    else:
        print('ended')
    return n, [k for k in values]
print(loops(range(9), [9]), loops([1, 2, 3], (3,)), loops((1, 5), [4]), loops([], [7]))
for a, b in [(1, 2), [3, 4], 'xy']: print(a, b)
for k, v in {'x': 1, 2: 'y'}.items(): print(k, v)
for n, (a, b) in enumerate(zip('ab', [1, 2, 3])): print(n, a, b)
for k in {3: 4}: print(k)
for k in {5}: print(k)
for k in reversed([1, 2]): print(k)
for c in 'h\u00e9': print(c)
for v in {1: 2}.values(): print(v)
for row in [[0] * 3] * 30:
    for k in row: k += 1
    for _ in range(12): k += 1
print(k, row)
"""

_ASSIGNMENTS = """
class Box:
    kind = 'box'
    def __init__(self): self.n, self.items = 0, [1, 2, 3]
    def __setitem__(self, at, value): print('set', at, value)
    def __getitem__(self, at): return at
    def __iadd__(self, other): return ('iadd', other)
class Checked:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)
class Property:
    @property
    def n(self): return 3
    @n.setter
    def n(self, value): print('setter', value)
x = y = [1, 2]
x += [3]
x += (4, 5)
x *= 2
print(x, y, x is y)
box = Box()
box.n += 2; box.n *= 3; box.kind += '!'; box.items[0] -= 4; box.items[-1] **= 2
box[1] = 2; box[3] += 4; box.new = box.n
print(box.n, box.items, box.kind, Box.kind, box.new)
box += 1
print(box)
checked = Checked(); checked.a = 2; checked.a += 1; print(checked.a)
owned = Property(); owned.n = 4; owned.n += 1
d = {}
d['a'], d[1, 2], (d[None], *d['rest']) = 1, 2, (3, 4, 5)
d['a'] += 5; d['l'] = [0]; d['l'] += [1]; d['l'] += d['l']
print(d)
m = [[0, 0], [0, 0]]
for i in range(2):
    for j in range(2): m[i][j], m[j][i] = i + j, i - j
print(m)
m[0][0:1] = [7, 8]
m[True] = 9
print(m)
a, b = 1, 2
a, b = b, a + b
(a, [b, c]), d2 = (a, (b, 5)), 6
s = 'a'; s += 'b'; t = (1,); t += (2,); f = 1.5; f -= 1; f /= 4; i = 7
i //= 2; i %= 2; i <<= 3; i |= 1
print(a, b, c, d2, s, t, f, i)
def nested():
    total, text = 0, ''
    def add(n):
        nonlocal total, text
        global everything
        total += n
        text += 'x'
        everything = total
        return total
    return [add(n) for n in range(4)], text
print(nested(), everything)
z = {1}; z |= {2}; z -= {1}; print(z)
"""

_COUNTED = """
def pairs(n):
    found = []
    for i in range(n):
        for j in range(i):
            if (i + j) % 7 == 0:
                found.append((i, j))
                break
        else:
            continue
    return found
print(pairs(60)[-3:], len(pairs(60)))
n, seen = 0, 0
while n < 2000:
    n += 1
    if n % 2: continue
    seen += n
print(n, seen)
count = 0
for round in range(30):
    for k in {'a': 1, 'b': 2}: count += 1
    for k, v in zip([1, 2, 3], 'xyz'): count += k
    for k in (x for x in range(3)): count += k
print(count)
"""

_CHANGED = """
xs = [1, 2, 3]
for x in xs:
    if len(xs) < 6: xs.append(x)
print(xs)
def gone():
    for k in [1]:
        del k
        print('gone')
gone()
class Loud:
    def __iter__(self):
        yield from (1, 2)
    def __bool__(self): return False
for k in Loud(): print(k)
if Loud(): print('true')
elif not Loud(): print('false')
while Loud(): pass
def deep(n):
    if n:
        for _ in range(1):
            while True:
                return deep(n - 1)
    return 'deep'
print(deep(80))
"""

_GENERATORS = """
log = []
def inner(n):
    try:
        for k in range(n): yield k
    finally:
        log.append('closed')
def f(n):
    for k in inner(n):
        if k == 1:
            continue
        elif k == 3:
            yield 'three'
            break
        else:
            yield k
            if k == 7: break
    else:
        yield 'else'
    log.append('after')
    i = 0
    while i < 4:
        i += 1
        if i == 2:
            yield 'two'
            continue
        if i == 3: break
        yield i
    else:
        yield 'no'
    while (yield 'sent') is not None:
        yield 'got'
    for a in [1, 2]:
        for b in (yield 'list') or [5]:
            if b > 1: return 'r'
            yield a, b
        else:
            yield 'inner else'
            if a == 1: continue
        yield 'never'
    yield
g = f(9)
print(list(g), log); log.clear()
g = f(2); out = [next(g)]; sends = [1, None]
while out[-1] != 'r' and len(out) < 40:
    value = None
    if out[-1] == 'list': value = [0, 1]
    if out[-1] == 'sent': value = sends.pop(0)
    try: out.append(g.send(value))
    except StopIteration as e: out.append(e.value)
print(out, log)
def t():
    for k in range(5):
        try:
            if k == 1: continue
            if k == 3: break
            yield k
        finally:
            yield 'f', k
    yield 'end'
print(list(t()))
def w():
    with open_() as h:
        for x in h: yield x
class open_:
    def __enter__(self): return [1, 2]
    def __exit__(self, *a): log.append('exit')
print(list(w()), log)
def gen(n):
    if n: yield n; yield from gen(n - 1)
    elif n == 0: yield 'zero'
print(list(gen(3)))
"""

_CLOSED = """
import contextlib
def told(act, *values):
    try: print(act(*values))
    except BaseException as error: print(type(error).__name__, error)
def goes_on():
    try: yield 1
    except GeneratorExit as end: print('closed', repr(end))
    print('after')
def ignores():
    try: yield 1
    except GeneratorExit: print('ignored')
    yield 2
def returns():
    try: yield 1
    finally: return 5
def waits():
    try: yield 1
    finally:
        yield 2
        print('behind')
def fails():
    try: yield 1
    except GeneratorExit: raise ValueError('mine')
def nested():
    try:
        try: yield 1
        finally: print('inner')
    except Exception: print('no')
    except: print('outer')
    else: print('no')
    finally: print('last')
    print('end')
def loops():
    for k in range(3):
        try: yield k
        except GeneratorExit: break
        except ValueError as error: print(error)
    print('left', k)
class Manager:
    def __init__(self, takes): self.takes = takes
    def __enter__(self): return self
    def __exit__(self, kind, error, _):
        print('exit', kind and kind.__name__, repr(error))
        return self.takes
def within(takes=False):
    with Manager(takes): yield 1
    print('taken')
def within_twice():
    with Manager(True): yield 1
    yield 2
def inner():
    try: yield 1
    except GeneratorExit:
        print('inner')
        return 3
def delegates():
    try: print('no', (yield from inner()))
    except GeneratorExit: print('outer')
    print('goes on')
def delegates_alone():
    yield from inner()
    print('only where it is thrown no GeneratorExit')
def delegates_twice():
    try: x = yield from delegates()
    finally: print('deep')
def delegates_ignoring():
    try: yield from ignores()
    except RuntimeError as error: print('runtime', error)
def of_list():
    try: yield from [1, 2]
    except GeneratorExit: print('list')
    print('goes on')
@contextlib.contextmanager
def managed(takes):
    try: yield 1
    except GeneratorExit:
        if not takes: raise
    finally: print('shut')
def managing(takes):
    with managed(False), managed(takes): yield 1
    print('goes on')
def expression():
    try: print([1, (yield 2)])
    except GeneratorExit: print('expression')
    return 4
def handling():
    try: raise KeyError('k')
    except KeyError:
        try: yield 1
        except GeneratorExit: print('handling')
    print('goes on')
def case():
    match 1:
        case 1:
            try: yield 1
            except GeneratorExit: print('case')
    print('goes on')
def close(g): g.close()  # what it returns is new in Python 3.13
def closes():
    g = goes_on()
    try: yield next(g)
    except BaseException: g.close()
makers = [goes_on, ignores, returns, waits, fails, nested, loops, within, within_twice]
makers += [delegates, delegates_alone, delegates_twice, delegates_ignoring, of_list, expression]
makers += [lambda: within(True), lambda: managing(False), lambda: managing(True)]
makers += [handling, case, closes]
for make in makers:
    g = make()
    told(close, g); told(next, g)
    for end in ['close', GeneratorExit, ValueError('thrown'), 'del']:
        g = make()
        print(next(g), end)
        if end == 'del': del g
        elif end == 'close': told(close, g); told(close, g)
        else: told(g.throw, end); told(next, g, 'over'); told(close, g)
    told(make().throw, GeneratorExit('unstarted'))
"""

_DRAWN = """
def naturals(n):
    k = 0
    while k < n:
        yield k
        k += 1
pairs = [(x, y) for x in naturals(3) for y in naturals(x)]
g = (x * y for x in naturals(4) if x % 2 for y in [1, 2, 3] if y != 2)
print(pairs, list(g), list(g), next(g, 'over'))
print(sum(x for x in range(5)), max(x for x in 'abc'), sorted(-x for x in {1: 2, 3: 4}))
print(any(x > 2 for x in naturals(9)), all(x for x in []), list(zip(naturals(3), 'abcd')))
print(dict((k, v) for k, v in enumerate('ab')), ''.join(c.upper() for c in 'abc'))
print([*(x for x in naturals(2)), *naturals(2)], 3 in naturals(9), 9 in (x for x in naturals(3)))
a, *b = naturals(4)
print(a, b, min(naturals(3)), tuple(map(str, naturals(3))), set(x for x in (1, 1)))
def f():
    y = 3
    g = (x + y for x in range(2))
    y = 10
    return list(g), [list(x + k for x in range(k)) for k in range(3)]
print(f())
class Own:
    def __iter__(self): return iter([7, 8])
class Drawn:
    def __init__(self): self.n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        if self.n > 3: raise StopIteration
        return self.n
print(list(x for x in Own()), list(x for x in Drawn() if x > 1), sum(Drawn()))
def inner():
    got = yield 1
    print('got', got)
    try:
        yield 2
    except ValueError as error:
        yield str(error)
    return 'result'
def outer():
    result = yield from inner()
    print(result)
    yield from inner()
    yield from [5, 6]
    yield from (x for x in 'ab')
    yield from Drawn()
    yield from {7: 8}
    yield from zip('ab', naturals(9))
    return 9
g = outer()
print(next(g), g.send('sent'), g.throw(ValueError('mine')), next(g), next(g))
print(list(g), next(g, None), list(outer()))
def ended():
    return (yield from outer())
g, seen = ended(), []
while True:
    try:
        seen.append(next(g))
    except StopIteration as end:
        print(seen, end.value)
        break
g = (print('drawn', x) for x in range(3))
next(g)
g.close()
print(list(g))
def closes():
    try:
        yield from naturals(5)
    finally:
        print('closed')
g = closes()
next(g); g.close(); g.close()
print(list(g))
g = closes()
next(g)
del g
g = closes()
print(next(g), list(g))
for k in closes():
    if k: break
print(list(closes()), closes().close())
class Inside:
    def __enter__(self): return 'entered'
    def __exit__(self, kind, error, trace):
        print('left', kind and kind.__name__)
        return True
def within():
    with Inside() as x:
        yield x
        raise KeyError(1)
    yield 'after'
print(list(within()))
def handles():
    for k in range(3):
        try:
            yield k
            if k == 1: raise KeyError('one')
        except KeyError as error:
            yield repr(error)
            try:
                raise
            except KeyError:
                yield 'again'
        else:
            yield 'else'
        finally:
            yield 'finally'
print(list(handles()))
def refuses():
    try: yield 1
    except GeneratorExit: yield 2
g = refuses(); next(g)
try: g.close()
except RuntimeError as error: print(error)
def itself():
    yield next(running)
running = itself()
try: next(running)
except ValueError as error: print(error)
again = (next(again) for _ in range(2))
try: next(again)
except ValueError as error: print(error)
g = naturals(3)
try: g.send(1)
except TypeError as error: print(error)
print(next(g))
try: g.throw(KeyError('thrown'))
except KeyError as error: print(error, list(g))
try: g.throw(KeyError('over'))
except KeyError as error: print(error)
fresh = naturals(3)
try: fresh.throw(KeyError('fresh'))
except KeyError as error: print(error, list(fresh))
def stops():
    yield 1
    raise StopIteration('mine')
try: list(stops())
except RuntimeError as error: print(error)
def fails():
    yield 1
    yield {}['missing']
g = fails()
print(next(g))
try: next(g)
except KeyError as error: print(error, list(g))
def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
for k in fibonacci():
    if k > 50: break
print(k, [x for x, _ in zip(fibonacci(), range(6))])
def walk(n):
    if n:
        yield from walk(n - 1)
        yield n
        yield from walk(n - 1)
print(list(walk(4)))
def accumulates():
    total = 0
    while True:
        value = yield total
        if value is None: return total
        total += value
g = accumulates()
next(g)
print([g.send(k) for k in range(4)])
try: g.send(None)
except StopIteration as end: print(end.value)
print(type(g).__name__, g.__name__)
"""

_HANDLED = """
log = []
class Mine(ValueError): pass
class Deeper(Mine):
    def __init__(self, n):
        super().__init__(f'deeper {n}')
        self.n = n
class Context:
    def __init__(self, name, takes=False): self.name, self.takes = name, takes
    def __enter__(self):
        log.append('enter ' + self.name)
        return self.name
    def __exit__(self, kind, error, trace):
        log.append(('exit', self.name, kind and kind.__name__, str(error)))
        return self.takes
def f(what):
    try:
        if what == 'mine': raise Mine('a')
        if what == 'deeper': raise Deeper(3)
        if what == 'class': raise Mine
        if what == 'zero': 1 / 0
        if what == 'key': {}['k']
        if what == 'index': [][2]
        if what == 'int': int('x')
        if what == 'assert': assert what == 'other', what
        if what == 'bare': assert False
        if what == 'return': return 'returned'
    except Deeper as error:
        return error.n, str(error), error.args
    except (Mine, ZeroDivisionError) as error:
        return type(error).__name__, str(error), repr(error)
    except LookupError as error:
        return repr(error)
    except AssertionError as error:
        return error.args
    except:
        return 'any'
    else:
        log.append('else')
    finally:
        log.append(what)
    return 'end'
kinds = 'mine deeper class zero key index int assert bare return none'.split()
print([f(what) for what in kinds * 2], log)
log.clear()
def loops():
    for k in range(8):
        try:
            if k == 1: continue
            if k == 6: break
            if k % 2: raise Mine(k)
        except Mine as error:
            if k == 3: continue
            log.append(error.args)
        finally:
            log.append(k)
    while True:
        try: return 'tried'
        finally: break
    for _ in range(2):
        try: raise Mine('lost')
        finally: continue
    try: return 1
    finally: return 2
print(loops(), log)
def lost():
    try: raise Mine('lost')
    finally: return 'instead'
print(lost())
def chained():
    try:
        try: raise Mine('first')
        except Mine as error: raise KeyError('second') from error
    except KeyError as error:
        first = error.__cause__
        try:
            try: 1 / 0
            except ZeroDivisionError: [][0]
        except IndexError as error:
            return repr(first), type(error.__context__).__name__
print(chained())
class Leaves:
    def __enter__(self): return self
    def __exit__(self, *error): raise KeyError('left')
def left():
    try:
        with Leaves(): raise Mine('body')
    except KeyError as error: return type(error.__context__).__name__
print(left())
def again():
    try:
        try: raise Mine('again')
        except Mine: raise
    except ValueError as error:
        try: raise error
        except Mine as same: return same is error, str(same)
print(again())
try: raise Mine('outer')
except Mine as e:
    try: raise Mine('inner')
    except Mine as e: pass
    try: print(e)
    except NameError as error: print(error)
def nested(n):
    try:
        if n: return nested(n - 1)
        raise Mine(n)
    finally:
        log.append(n)
log.clear()
try: nested(4)
except Mine: print(log)
log.clear()
for name in ('a', 'b') * 2:
    with Context(name, name == 'b') as entered, Context('inner') as inner:
        log.append((entered, inner))
        try:
            if name == 'b': raise Mine(name)
        finally:
            log.append('finally')
print(log)
log.clear()
def within(k):
    with Context('in'):
        for j in range(3):
            with Context('loop'):
                if j == k: break
                continue
        if k == 1: return 'returned'
    with Context('takes', True): raise Deeper(k)
    return 'end'
print(within(0), within(1), log)
log.clear()
try:
    with Context('out'): {}['missing']
except KeyError as error: print(repr(error), log)
Context.__exit__ = lambda self, *given: len(given)
with Context('changed'): raise Mine('taken')
class Fails:
    def __enter__(self): return 1
    def __exit__(self, kind, error, trace): raise KeyError('exit')
try:
    with Fails(): raise Mine('body')
except KeyError as error: print(error)
try:
    with Fails(): pass
except KeyError as error: print(error)
def pick(error): return Mine if error else KeyError
for each in (1, 0, 1):
    try:
        try: raise Deeper(each)
        except pick(each): print('picked')
    except ValueError: print('not picked')
def takes_groups():
    try: raise ExceptionGroup('g', [Mine(1), KeyError(2)])
    except* Mine as group: log.append(len(group.exceptions))
    except* KeyError: log.append('key')
    return log[-2:]
print(takes_groups())
items = iter([1])
try:
    while True: next(items)
except StopIteration: print('stopped')
try: raise Mine('note')
except Mine as error:
    error.extra = 5
    kept = error
print(kept.extra, kept.args, isinstance(kept, ValueError))
def calls(n):
    try: return calls(n + 1)
    except RecursionError: return 'deep'
print(calls(0))
"""

_WITHIN = """
import torch
@torch.no_grad()
def ungraded(w):
    for k in range(2): yield (w * k).requires_grad
    yield [(w * 2).requires_grad for _ in range(1)]
w = torch.ones(2, requires_grad=True)
print([(each, (w * 2).requires_grad) for each in ungraded(w)])
"""

_EXCEPTIONS = """
class Own(ValueError): pass
class Worded(Own):
    def __str__(self): return 'own words'
class Kept(KeyError):
    def __init__(self, key, more=0):
        super().__init__(key)
        self.more = more
class Many(Own, LookupError): pass
def told(make, *given):
    try: raise make(*given)
    except Exception as error:
        same = error.args is error.args, type(error) is make, isinstance(error, LookupError)
        return type(error).__name__, str(error), repr(error), error.args, same
for make in (ValueError, KeyError, AssertionError, StopIteration, Own, Worded, Many, Exception):
    print(told(make), told(make, 'a'), told(make, ''), told(make, 'a', 1), told(make, [1], None))
print(told(Kept, 'a'), told(Kept, 'b', 2), told(Own, Own('in')), told(KeyError, "it's"))
try: raise SystemExit('a')
except SystemExit as error: print(error.code, error.args)
error = Own('kept')
error.more, error.args = 1, ['new', 2]
print(error, error.more, error.args, Own('a') is Own('a'), ValueError('a') == ValueError('a'))
try: error.args = 5
except TypeError as other: print(other)
Own.__name__ = 'Other'
print(told(Own, 'a'), told(Own), Own.__name__)
try: Own.__name__ = 5
except TypeError as other: print(other)
def asserted(value, *words):
    try:
        if words: assert value, words[0]
        else: assert value
    except AssertionError as error: return error.args, str(error), type(error)
    return 'holds'
print(asserted(0), asserted(1), asserted(0, 'text'), asserted(0, 5), asserted('', [1]))
"""

_UNNAMED = """
def kept(text):
    try: value = int(text)
    except ValueError as error: value = str(error)
    try: return value, error
    except UnboundLocalError as error: return value, str(error), [str(error) for _ in 'ab']
print(kept('1'), kept('x'), kept('2'))
def twice(n, error=None):
    try:
        try: return 1 / n
        except ZeroDivisionError as error:
            held = error
            if n is False: del error
            else: error = 'another'
            raise KeyError(held)
        except TypeError as problem: return type(problem).__name__, error
    except KeyError as error: return repr(error), held.args
    finally: last.append(n)
last = []
print(twice(0), twice(False), twice('a'), twice('a', 5), last)
def around(n):
    found = None
    def inside():
        nonlocal found
        try: return n / 0
        except ZeroDivisionError as found: return found.args
    return inside(), inside(), found is None
try: print(around(1))
except NameError as error: print(type(error).__name__, str(error))
def top():
    global shown
    try: [][1]
    except IndexError as shown: return repr(shown)
shown = 1
print(top(), 'shown' in globals())
class K:
    try: {}['a']
    except KeyError as e: held = repr(e)
print(K.held, hasattr(K, 'e'))
def drawn(values):
    for value in values:
        try: yield 1 / value
        except ZeroDivisionError as error: yield repr(error)
        try: error
        except UnboundLocalError: yield 'none'
print(list(drawn([1, 0, 2])))
"""

_WITHIN_BLOCKS = """
import contextlib, io
class Both:
    def __enter__(self): return self
    def __exit__(self, *given): print('left', given[0] and given[0].__name__); return self.takes
    takes = False
def within(context, fails):
    try:
        with context as value:
            if fails: raise KeyError('in')
            return type(value).__name__
    except (AttributeError, KeyError, TypeError) as error: return type(error).__name__
for fails in (0, 1):
    print(within(contextlib.suppress(KeyError), fails), within(contextlib.nullcontext(1), fails))
    print(within(Both(), fails), within(contextlib.redirect_stdout(io.StringIO()), fails))
    print(within(contextlib.ExitStack(), fails), within(5, fails), within(Both, fails))
Both.takes = True
print(within(Both(), 1))
Both.__exit__ = None
print(within(Both(), 0))
"""

_PARAMETERS = """
def a(*args): return args
def b(**named): return named
def c(x, *args, y=2, **named): return x, args, y, named
def d(x, /, y, *, z): return x, y, z
def e(x, /, **named): return x, named
def f(x, y=1, *rest, z, k=[5]):
    x, rest = rest, x
    k.append(z)
    return x, y, rest, z, k
def g(*values, **named):
    for value in values: yield value
    yield from named.items()
def h(*args, depth=3): return (depth, h(*args, depth=depth - 1)) if depth else args
def i(*args, **named):
    del args
    try: return args
    except UnboundLocalError as error: return str(error), named
def j(*, only): return only
def told(function, *given, **named):
    try: return function(*given, **named)
    except TypeError as error: return str(error)
for function in (a, b, c, d, e, f, h, i, j):
    print(told(function), told(function, 1), told(function, 1, 2), told(function, 1, 2, 3))
    print(told(function, x=1), told(function, 1, z=3), told(function, 1, 2, z=3))
    print(told(function, only=4), told(function, x=1, only=4))
    print(told(function, 1, x=2), told(function, 1, 2, 3, z=4, w=5), told(function, y=1, x=2, z=3))
print(list(g(1, 2, k=3)), list(g()), told(c, 1, *[2, 3], **{'y': 4, 'q': 5}))
more = {'k': 1}
print(b(**more) is more, b(**more), more, a(*[1]), (lambda *a, b=1, **c: (a, b, c))(1, b=3, d=4))
"""

_BEGUN = """
def nested(n):
    t = 0
    for i in range(n):
        for j in range(i % 7):
            if j == 5:
                break
            t += i * j
        else:
            t += 1
    return t, i, j
def whiles(n):
    k, t = 0, 0
    while k < n:
        m = k % 5
        while m:
            m -= 1
            t += m
        k += 1
        if t > 10**6:
            break
    else:
        t += 3
    return k, t, m
def fails(n, at):
    for i in range(n):
        last = i
        try:
            if i == at:
                raise ValueError(i)
        except ValueError as e:
            got = str(e)
    return last, got
def raised(n):
    s = 0
    for i in range(n):
        s += i
        if i == n - 1:
            raise KeyError(s)
def rec(d, n):
    t = 0
    for i in range(n):
        if d:
            t += rec(d - 1, n)
        t += i
    return t
def gen(n):
    for i in range(n):
        s = 0
        for k in range(i % 4):
            s += k
        yield s
def dels(n):
    for i in range(n):
        x = i
        if i % 2:
            del x
    return n
def unbound(n):
    for i in range(n):
        y = i
    return y
def early(n):
    for i in range(n):
        if i == 90:
            return i
    return -1
def values(v, *more, k=2, **named):
    out = []
    for x in v:
        out.append(x * k)
    for x in more:
        out.append(x)
    for name in named:
        out.append(name)
    return out
print([nested(k) for k in (1+6, 20, 63, 64, 65, 200, 3000)])
print([whiles(k) for k in (1, 10, 64, 65, 66, 500, 4000)])
print([fails(k, k // 2) for k in (2, 60, 64, 65, 66, 130, 3000)])
for k in (3, 63, 64, 65, 66, 3000):
    try:
        raised(k)
    except KeyError as e:
        print(e)
print([rec(2, k) for k in (1, 2, 5, 9, 13)])
print(sum(gen(10)), sum(gen(500)), sum(gen(3000)))
print([dels(k) for k in (2, 70, 3000)])
try:
    unbound(0)
except UnboundLocalError as e:
    print("none")
print(unbound(100), early(64), early(91), early(89))
for _ in range(100):
    r = values(range(8), 1, 2, 3, k=3, a=1, b=2)
print(r)
for _ in range(3000):
    r = values([1, 2, 3], 5)
    q = early(70)
print(r, q)
"""
"""Loops whose iterations begin to be compiled or written while locals stand in no dict."""

STATEMENTS = [
    _BEGUN,
    _EXCEPTIONS,
    _PARAMETERS,
    _UNNAMED,
    _WITHIN_BLOCKS,
    _OBJECTS_CHANGED,
    _SHADOWED,
    _DELETED_TWICE,
    _LOOPS,
    _ASSIGNMENTS,
    _COUNTED,
    _CHANGED,
    _GENERATORS,
    _DRAWN,
    _CLOSED,
    _HANDLED,
]

FAILING_STATEMENTS = [
    "for k in 5: pass", "for k in None: pass", "for a, b in [(1, 2), (3,)]: print(a)",
    "for a, b in [1]: pass", "a, b = 1, 2, 3", "a, b = 5", "a, b = 'abc'", "a, *b, c = [1]",
    "x = [1]\nx[3] = 2", "x = [1]\nx['a'] = 2", "x = (1,)\nx[0] = 2", "{}[[]] = 1", "'a'[0] = 'b'",
    "x = {}\nx[[1]] = 1", "x = {}\nx['a'] += 1", "x = [1]\nx[2] += 1", "x = 1\nx += 'a'",
    "x = 'a'\nx += 1", "x = [1]\nx += 5", "x = None\nx -= 1", "missing += 1", "x = 1\nx /= 0",
    "x = 5\nx.y = 1", "x = 5\nx.y += 1", "x = Length(2)\nx.missing += 1",
    "x = Length(2)\nx.n += 'a'",
    "if fails(): pass", "if 0: pass\nelif fails(): pass", "while fails(): pass",
    "for k in [1]: fails()", "for k in fails(): pass", "x = Length(2)\nx[0] = 1",
    "for k in (fails() for _ in range(2)): pass", "for k in map(int, ['1', 'x']): print(k)",
    "d = {1: 2}\nfor k in d: d[k + 1] = 3", "d = {1}\nfor k in d: d.add(k + 1)",
    "for k in [1, 2]:\n    while True:\n        1 / 0", "for k in zip([1], 5): pass",
    "x = torch.ones(2)\nx[5] = 1.0", "x = torch.ones(2)\nx += torch.ones(3)", "x = 1\nx @= 2",
    "x = torch.ones(2)\nfor row in x: row + 'a'", "x = torch.tensor(1.0)\nfor row in x: pass",
    "if torch.ones(2): pass", "while torch.ones(2): pass", "fails().n = 1", "[1][fails()] = 2",
    "Length(2).n = fails()", "x = y = z", "x = [0]\nx[0] = x[1] = 2",
    "list(1 / x for x in [1, 0])", "sum(x for x in 5)", "sum(x for x in ['a'])",
    "max(x for x in [])",
    "list(x for x in [1] if torch.ones(2))", "list(y for x in [1] for y in x)",
    "next(x for x in [])", "list(int(x) for x in map(int, ['1', 'x']))",
    "d = {1: 2}\nlist(d.update({3: 4}) for _ in d)", "list(fails() for x in [1])",
    "list(a for a, b in [(1, 2, 3)])", "sorted(x for x in [1, 'a'])",
    "def g():\n    yield 1\n    yield 1 / 0\nfor k in g(): print(k)",
    "def g():\n    for k in 5: yield k\nlist(g())", "def g():\n    yield from 5\nlist(g())",
    "def g():\n    yield from map(int, ['1', 'x'])\nlist(g())",
    "def g():\n    yield [fails() for _ in range(2)]\nsum(g())",
    "def g():\n    if torch.ones(2): yield\nlist(g())",
    "def g():\n    while torch.ones(2): yield\nlist(g())",
    "def g():\n    yield 1\n    raise StopIteration\nprint(list(g()))",
    "def g():\n    yield missing\nlist(g())", "def g():\n    yield 1\ng().send(5)",
    "def g():\n    yield 1\nx = g()\nnext(x)\nx.throw(KeyError('mine'))",
    "def g():\n    yield 1\nx = g()\nnext(x)\nx.throw(5)",
    "def g():\n    try:\n        yield 1\n    finally: fails()\nx = g()\nnext(x)\nx.close()",
    "def g():\n    for a, b in [1]: yield a\nlist(g())",
    "x = (next(x) for _ in 'a')\nnext(x)",
    "def g():\n    with 5: yield 1\nlist(g())",
    "def g():\n    yield 1\nx = g()\nprint(next(x))\nnext(x)",
    "raise 5", "raise KeyError", "raise KeyError('k') from 5", "raise", "raise fails()", "assert 0",
    "assert [], missing", "assert torch.ones(2)", "assert fails()", "assert 1 < 0, 'message'",
    "try: 1 / 0\nexcept 5: pass", "try: 1 / 0\nexcept (ValueError, 5): pass",
    "try: 1 / 0\nexcept missing: pass", "try: 1 / 0\nexcept KeyError: pass",
    "try: 1 / 0\nexcept ZeroDivisionError as e: raise KeyError(1) from e",
    "try: 1 / 0\nexcept ZeroDivisionError: missing", "try: 1 / 0\nexcept ZeroDivisionError: raise",
    "try: 1 / 0\nfinally: missing", "try: pass\nfinally: 1 / 0", "try: pass\nelse: 1 / 0",
    "try: int('x')\nexcept ValueError as e: print(e)\nelse: pass\ne", "with 5: pass",
    "with Length(2): pass", "with torch.no_grad: pass", "with torch.no_grad() as (a, b): pass",
    "with missing: pass", "with fails(): pass", "with torch.no_grad(): 1 / 0",
    "class C:\n    def __enter__(self): return 1\nwith C(): pass",
    "class C:\n    def __enter__(self): return fails()\n    __exit__ = None\nwith C(): pass",
    "class C:\n    def __enter__(s): return fails()\n    def __exit__(self): pass\nwith C(): pass",
    "class C:\n    def __enter__(self): return 1\n    def __exit__(self): pass\nwith C(): pass",
    "class C:\n    def __enter__(s): return 1\n    def __exit__(self): pass\nwith C(): fails()",
    "class C:\n    def __enter__(self, x): return 1\n    def __exit__(s, *a): 0\nwith C(): 1",
    "class C:\n    def __enter__(self): return 1\n    def __exit__(s, *a): 1 / 0\nwith C(): 1",
    "class C:\n    def __enter__(s): 1\n    def __exit__(s, *a): 1 / 0\nwith C(): fails()",
    "class C:\n    def __enter__(s): 1\n    def __exit__(*a): return torch.ones(2)\nwith C(): []()",
    "class C:\n    def __enter__(s): 1\n    def __exit__(s, *a): 0\nwith C() as (a, b): 1",
    "x = [int('x')]", "float('x')", "int([])", "int('1', 99)",
]  # fmt: skip

_TENSORS = """
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
for step in range(4):
    loss = ((w - 3) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
    kept = loss
print(w, kept, [p.grad_fn for p in (w, kept)])
def f():
    a = b = w * 2
    for row in b: c = row
    a[0] = 5.0
    return a, c
print(f())
x, y = torch.ones(2), torch.zeros(2)
x[0], y[1] = 3.0, 4.0
x += y
x *= 2
print(x, y)
def cleared(p):
    p.grad, p.requires_grad = None, False
    p.data = torch.zeros(3)
    return p, p.grad, p.requires_grad
print(cleared(w), cleared(torch.ones(2)))
for name in ("shape", "nothing"):
    try:
        if name == "shape": w.shape = 1
        else: w.nothing = 1
    except AttributeError as error: print(name)
w.grad = torch.ones(5)
"""

_NATURALS = """
def naturals():
    n = 0
    while True:
        yield n
        n += 1
"""

LIMITED_STATEMENTS = {
    "steps of for": ("n = 0\nfor k in range(50): n = k\nprint(n)", {"steps": 20}),
    "steps of while": ("n = 0\nwhile n < 50: n += 1", {"steps": 20}),
    "steps at the end": ("for k in range(20): pass\nprint(k)\nfor k in [1]: pass", {"steps": 20}),
    "steps of hot loops": ("for k in range(9000): j = k\nprint(j)", {"steps": 8000}),
    "elements": ("x = [1, 2]\nx += [3]\nx += x\nprint(x)", {"elements": 5}),
    "characters": ("x = 'ab'\nx += 'c'\nx += x\nprint(x)", {"elements": 5}),
    "steps of generators": (f"{_NATURALS}\nfor k in naturals(): n = k", {"steps": 200}),
    "steps of drawn": (f"{_NATURALS}\nsum(x for x in naturals())", {"steps": 200}),
    "steps in lists": (f"{_NATURALS}\nprint(list(naturals()))", {"steps": 200}),
    "elements drawn": (f"{_NATURALS}\nprint(list(naturals()))", {"elements": 20}),
    "iterators": ("g = iter([1])\nfor _ in range(20): g = (x for x in g)\nprint(list(g))", {}),
    "generators": (
        "def g(inner):\n    for k in inner: yield k\nx = [1]\n"
        "for _ in range(500): x = g(x)\nprint(list(x))",
        {},
    ),
    "generators of generators": ("def g(n):\n    yield from g(n + 1)\nlist(g(0))", {}),
    "depth": ("def f(n):\n    for k in [n]:\n        if k >= 0: return f(k + 1)\nf(0)", {}),
    "tensors": (_TENSORS, {}),
}


@pytest.mark.parametrize("program", STATEMENTS)
def test_statements(program: str) -> None:
    found = _outcome(program, True)
    assert found == _outcome(program, False)
    assert found == Outcome(_by_cpython(program), None)


@pytest.mark.parametrize("in_c", [False, True])
def test_a_function_keeps_what_is_around_it_if_it_reads_that(
    in_c: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object with a `lambda: 0` of its own is in no cycle: it is gone as soon as in Python."""
    if not in_c:
        monkeypatch.setattr(nodes, "load", lambda builtins: None)
    session = Session(lambda event: None)
    text = """def make(big):
    inside = lambda: [big for _ in range(1)]
    return [lambda: 0, lambda x: x + make(x)[0](), lambda: big, lambda: lambda: big, inside]
functions = make(7)"""
    for _ in session.run(text, "program"):
        pass
    values = session.interpreter.values
    kept = [function.parent is not values for function in values["functions"]]
    assert kept == [False, False, True, True, True]


def test_generators_within_contexts() -> None:
    found = _outcome(_WITHIN, True)
    assert found == _outcome(_WITHIN, False)
    assert found.printed == "[(False, True), (False, True), ([False], True)]\n"


@pytest.mark.parametrize("text", sampled(FAILING_STATEMENTS, 2))
def test_statements_that_fail(text: str) -> None:
    inside = "def f():\n    " + text.replace("\n", "\n    ") + "\nf()"
    for program in (
        text,
        inside,
        f"try:\n    {text.replace(chr(10), chr(10) + '    ')}\nfinally: pass",
    ):
        whole = f"import torch\n{VALUES}\n{program}\n"
        found = _outcome(whole, True)
        assert found.error is not None
        assert found == _outcome(whole, False)


@pytest.mark.parametrize("steps", [1, 40, 1050, 1 << 30, (1 << 30) + 5, 1 << 60, 10**30])
def test_steps_are_counted(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes count some of them in place, in the integer itself."""
    text = f"{_NATURALS}\nfor k in range(30): len([k, k])\nheld = [*zip(naturals(), range(9))]"

    def left() -> int:
        session = Session(lambda event: None, limits=Limits(steps=steps))
        with suppress(GradcliError):
            for _ in session.run(text, "program"):
                pass
        return session.interpreter.steps.left

    found = left()
    monkeypatch.setattr(nodes, "load", lambda builtins: None)
    assert found == left() == max(steps - 60, -1)
    assert Limits(steps=steps).steps == steps


@pytest.mark.parametrize("name", LIMITED_STATEMENTS)
def test_limits_of_statements(name: str) -> None:
    text, limits = LIMITED_STATEMENTS[name]
    found, expected = _outcome(text, True, **limits), _outcome(text, False, **limits)
    bounds_c = sys.version_info[:2] == (3, 12)  # calls through C by 1,500, in closures too
    if name in ("depth", "generators", "generators of generators") and bounds_c:
        assert found.error is not None
        assert expected.error is not None
        assert found.error[:2] == expected.error[:2]
    else:
        assert found == expected
