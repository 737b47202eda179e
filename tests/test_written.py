"""Functions of a program that are called often run as functions of the host's: what they give,
print and raise, and where, is what their closures do.

The whole is `pytest tests/test_programs.py --written-after 0`, which `.ci/run` does; here are the
cases in which the two could part.
"""

from __future__ import annotations

from textwrap import dedent
from types import CodeType

import pytest

from gradcli.language.compiler.written import bodies
from gradcli.language.functions import hot_bodies
from gradcli.limits import Limits
from tests.running import Outcome, run

PROGRAMS = {
    "a variable without a value": """
        def f(a):
            if a:
                b = 1
            return b
        print(f(1))
        f(0)
    """,
    "a variable that another function binds": """
        def f(n):
            count = 0
            def more(by=1):
                nonlocal count
                count += by
                return count
            more()
            more(by=n)
            return count + more(2)
        print(f(3), f(4))
    """,
    "a name that is unbound again": """
        def f(n):
            k = n
            del k
            return k
        f(1)
    """,
    "arguments": """
        def f(a, b=2, c=3):
            return a, b, c
        print(f(1), f(1, 5), f(1, c=9), f(b=1, a=2), f(1, 2, 3))
        try:
            f()
        except TypeError as error:
            print(error)
        f(1, 2, 3, 4)
    """,
    "operators of objects": """
        class V:
            def __init__(self, x):
                self.x = x
            def __add__(self, other):
                return V(self.x + other.x) if isinstance(other, V) else NotImplemented
            def __radd__(self, other):
                return V(self.x + other)
            def __mul__(self, other):
                print("mul")
                return NotImplemented
            def __lt__(self, other):
                return self.x < other.x
        class W(V):
            def __radd__(self, other):
                return "W first"
        def add(a, b):
            return a + b
        def times(a, b):
            return a * b
        print(add(V(1), V(2)).x, add(3, V(4)).x, add(V(1), W(2)), V(1) < V(2))
        try:
            times(V(1), 2)
        except TypeError as error:
            print(error)
        add(V(1), "a")
    """,
    "a class that changes after it was seen": """
        class P:
            def __init__(self):
                self.x = 1
            def m(self):
                return "method"
        def read(p):
            return p.x, p.m()
        p = P()
        print(read(p), read(p))
        p.m = lambda: "own"
        print(read(p))
        P.m = lambda self: "other"
        print(read(p), read(P()))
        P.x = property(lambda self: "property")
        print(read(p))
    """,
    "an attribute that is missing comes before the arguments": """
        def f(p):
            p.missing(print("argument"))
        f([])
    """,
    "comparisons in a row, tests and logic": """
        import torch
        def f(a, b, c):
            return a < b <= c, not a, a and b or c, a in [b], b is c, -a, a ** 2, a // b
        print(f(1, 2, 3), f(2, 2.5, 2.5), f(0, 1, 1))
        def g(t):
            return 1 if t > 0 else 2
        print(g(torch.tensor(1.0)))
        g(torch.ones(2))
    """,
    "loops": """
        def f(values):
            found = []
            for i, v in enumerate(values):
                if v < 0:
                    continue
                if v > 5:
                    break
                found.append((i, v))
            else:
                found.append("all")
            k = 0
            while k < 3:
                k += 1
                if k == len(values):
                    break
            else:
                found.append(k)
            return found, {k: v for k, v in found[:1]}, [a * b for a in range(3) for b in range(a)]
        print(f([1, -1, 2]), f([7]))
        f([1, "a"])
    """,
    "long loops of the program": """
        total, odd, seen = 0, [], {}
        for i in range(90):
            if i % 2:
                odd.append(i)
                continue
            total += i * 2
            seen[i] = [k for k in range(i % 3)]
            if i > 80:
                break
        print(total, len(odd), len(seen), i, k if False else "no k")
        n = 0
        while n < 100:
            n += 1
            for j in range(3):
                if j == 2:
                    break
        print(n, j)
        def f(limit):
            found = []
            for i in range(limit):
                def g(by):
                    return i + by
                found.append(g(1))
                if i == 88:
                    return found[-1], len(found)
        print(f(100))
        for i in range(80):
            late = 1 / (70 - i)
    """,
    "what stays a closure": """
        def f(n):
            try:
                return [x for x in (lambda k: range(k))(n)], sum(i for i in range(n))
            except TypeError as error:
                return str(error)
            finally:
                print("finally", n)
        print(f(3), f("a"))
        def g(n):
            with open_ as h:
                return h + n
        class C:
            def __enter__(self):
                return 4
            def __exit__(self, *error):
                print("left")
        open_ = C()
        print(g(1), sorted(locals())[:0])
        def names(a):
            b = a
            return sorted(vars())
        print(names(1))
    """,
    "targets": """
        def f(d, pair):
            a, (b, *c) = pair
            d["k"] = d.get("k", 0) + a
            d["l"] = [b]
            d["l"] += c
            d["l"][0] *= 2
            return d
        print(f({}, (1, (2, 3, 4))))
        f({}, (1, 2))
    """,
    "an item that is missing": """
        def f(d, k):
            d[k] += 1
        f([1], 0)
        f({}, "k")
    """,
    "a call that fails inside a call": """
        def outer(x):
            return inner(x) + 1
        def inner(x):
            return x @ x
        import torch
        outer(torch.ones(2, 3))
    """,
    "calls without an end": """
        def f(n):
            return f(n + 1)
        f(0)
    """,
    "instances of a class that changes": """
        class V:
            def __init__(self, x, y=2):
                self.x, self.y = x, y
            def __add__(self, other):
                return V(self.x + other.x, self.y)
        class W(V):
            def __init__(self, x):
                self.x, self.y = x, "W"
        def make(x):
            return V(x)
        def show(*values):
            print([(type(v).__name__, sorted(v.__dict__.items())) for v in values])
        def add(a, b):
            return a + b
        def is_v(value):
            return isinstance(value, V)
        show(make(1), make(2), add(V(1), V(2)), add(W(1), V(2)), add(V(1), W(2)), V(x=1, y=3))
        print(is_v(V(1)), is_v(W(1)), is_v(1), is_v(None), is_v(V))
        V.__add__ = lambda self, other: V(self.x * 100, other.x)
        show(add(V(1), V(2)), add(W(1), V(2)))
        W.__add__ = lambda self, other: W("own")
        show(add(W(1), V(2)), add(V(1), W(2)))
        del W.__add__
        show(add(W(1), V(2)))
        V.__init__ = lambda self, x: setattr(self, "z", x)
        show(make(1), make(2))
        V.__setattr__ = lambda self, name, value: object.__setattr__(self, name, [value])
        show(make(1))
        V.__new__ = lambda cls, *values: object.__new__(W)
        show(make(1))
        del V.__new__, V.__setattr__, V.__init__
        try:
            make(1)
        except TypeError as error:
            print(error)
        V.__init__ = lambda self, x: None
        show(make(1), make(1))
        V = lambda x: W(x)
        show(make(4))
        isinstance = lambda value, cls: "own"
        print(is_v(1))
    """,
    "an `__init__` that is another's, or takes anything": """
        class A:
            def __init__(self, *values, k=1, **named):
                self.found = values, k, named
        class B(A):
            pass
        class C(A):
            __slots__ = ("x",)
            def __init__(self, x):
                super().__init__(x, k=2)
        class D:
            __slots__ = ("x",)
            def __init__(self, x):
                self.x = x
        class E:
            def __init__(self, x):
                self._x = x
            @property
            def x(self):
                return self._x
            @x.setter
            def x(self, value):
                self._x = -value
            def __getattr__(self, name):
                return name
        class M(type):
            def __call__(cls, x):
                return "metaclass", x
        class F(metaclass=M):
            def __init__(self, x):
                self.x = x
        def make(x):
            e = E(x)
            e.x = 4
            return A(x).found, A().found, B(x, 2, a=3).found, C(x).found, D(x).x, e.x, e.y, F(x)
        print(make(1), make(2))
        def check(x):
            return isinstance(x, F), isinstance(x, (F, int)), isinstance(x, D)
        print(check(1), check(D(1)))
        def wrong(x):
            d = D(x)
            d.y = 1
        wrong(1)
    """,
    **{
        f"an `__init__` that fails: {what}": f"""
            class V:
                def __init__(self, x, y=2):
                    self.x = x
                    {body}
            def make(x):
                return V({arguments})
            for k in range(3):
                try:
                    make(1)
                except Exception as error:
                    print(type(error).__name__, error)
            make("a")
        """
        for what, body, arguments in (
            ("it returns a value", "return self", "x"),
            ("it raises", "raise KeyError(x)", "x"),
            ("an operator", "self.y = x @ y", "x"),
            ("too many arguments", "pass", "x, x, x"),
            ("too few", "pass", ""),
            ("an unknown keyword", "pass", "x, z=3"),
            ("it has no end", "V(x)", "x"),
        )
    },
    "objects that are called": """
        class V:
            def __init__(self, x):
                self.x = x
            def __call__(self, y, by=1):
                return self.x * y * by
        class W(V):
            def __call__(self, n):
                return n and self(n - 1) + 1
        class N:
            pass
        def calls(v):
            return v(2), v(3, 4)
        print(calls(V(2)), W(0)(300))
        V.__call__ = lambda self, *values: values
        print(calls(V(2)))
        for v in (W(0), N(), 3):
            try:
                calls(v)
            except Exception as error:
                print(type(error).__name__, error)
        V.__call__ = lambda self, y: y @ y
        calls(V(2))
    """,
    "operators without an end": """
        class V:
            def __init__(self, x):
                self.x = x
            def __add__(self, other):
                return self + V(other)
        try:
            V(1) + 2
        except RecursionError:
            print("too deep")
    """,
    "comparisons of objects": """
        class V:
            def __init__(self, x):
                self.x = x
            def __lt__(self, other):
                return self.x < other.x if isinstance(other, V) else NotImplemented
            def __eq__(self, other):
                print("eq", self.x)
                return self.x == other.x if isinstance(other, V) else NotImplemented
            def __ge__(self, other):
                return "at least"
            def __gt__(self, other):
                print("gt")
                return NotImplemented
        class W(V):
            def __gt__(self, other):
                return "W first"
        def compare(a, b):
            return a < b, a == b, a != b, a >= b
        v = V(1)
        print(compare(v, V(2)), compare(V(2), V(1)), compare(v, v), v == 3, v != 3, v != "v")
        def less(a, b):
            return a < b
        def more(a, b):
            return a > b
        def same(a, b):
            return a == b, b == a, a != b
        print(less(V(1), W(2)), more(W(1), 2), same(V(1), 2), same(v, v), same(v, None))
        for f, a, b in ((less, V(1), 2), (less, 2, V(1)), (more, V(1), V(2)), (more, V(1), "a")):
            try:
                print(f(a, b))
            except TypeError as error:
                print(error)
        class L(list):
            def __lt__(self, other):
                return "of lists"
        inside = []
        inside.append(inside)
        print(less(L(), 1), less(L(), L()), less(V(1), V(1)))
        for a in (V(1), L([inside])):
            try:
                print(less(a, inside))
            except Exception as error:
                print(type(error).__name__)
        V.__eq__ = lambda self, other: NotImplemented
        print(same(v, v), same(v, V(1)))
        V.__lt__ = lambda self, other: self.y
        less(V(1), V(2))
    """,
    "operators that fail": """
        class V:
            def __init__(self, x):
                self.x = x
            def __add__(self, other):
                return V(self.x + other.x)
            def __sub__(self, other):
                return NotImplemented
        def add(a, b):
            return a + b
        def subtract(a, b):
            return a - b
        for f, other in ((add, 1), (subtract, V(1)), (subtract, 2), (add, V("a"))):
            try:
                print(f(V(1), other))
            except Exception as error:
                print(type(error).__name__, error)
        V.__radd__ = lambda self, other: "right"
        print(add(1, V(1)))
        add(V(1), [])
    """,
    "a tensor learns its name": """
        import torch
        def f(w):
            loss = (w * 2).sum()
            return loss
        w = torch.ones(2, requires_grad=True)
        y = f(w)
        print(y, y.grad_fn)
        y.backward()
        print(w.grad)
    """,
}


def _found(outcome: Outcome) -> tuple[object, ...]:
    error = outcome.error
    if error is None:
        return (outcome.stdout,)
    span = error.span and (error.span.start, error.span.end)
    labels = [(each.span.start, each.text) for each in error.labels]
    stack = [(name, place and place.start) for name, place in error.stack[:5]]
    return outcome.stdout, error.code, error.text, span, labels, stack, len(error.stack)


def _texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are written from now on."""
    texts: list[str] = []
    code = bodies._code

    def kept(text: str) -> CodeType:
        texts.append(text)
        return code(text)

    monkeypatch.setattr(bodies, "_code", kept)
    return texts


@pytest.mark.parametrize("compiles", [True, False], ids=["with loops", "without"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_written_does_what_closures_do(
    name: str, compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = dedent(PROGRAMS[name])
    texts = _texts(monkeypatch)
    found = []
    for calls in (1 << 60, 0):
        monkeypatch.setattr(hot_bodies, "HOT_AFTER", calls)
        monkeypatch.setattr(hot_bodies, "HOT_ITERATIONS", calls)
        assert not texts
        found.append(_found(run(program, compiles=compiles)))
    assert found[0] == found[1]
    assert texts


def test_steps_of_what_is_written_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    program = dedent("""
        def f(n):
            total = 0
            for i in range(n):
                total += len([k for k in range(3)])
            while total > 5:
                total -= 1
            return total
        print([f(k) for k in range(4)])
        f(100_000)
    """)
    left = []
    for calls in (1 << 60, 0):
        monkeypatch.setattr(hot_bodies, "HOT_AFTER", calls)
        outcome = run(program, compiles=False, limits=Limits(steps=1000))
        assert outcome.error is not None
        assert outcome.error.code == "E605"
        left.append((outcome.stdout, _found(outcome)))
    assert left[0] == left[1]


def test_the_text_holds_nothing_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _texts(monkeypatch)
    monkeypatch.setattr(hot_bodies, "HOT_AFTER", 0)
    program = dedent("""
        def zebra(walrus, otter="lynx"):
            badger = {"heron": walrus}
            badger["newt"] = f"{walrus.ibis} {otter:>9}"
            return [gecko.toad(31337) for gecko in badger if gecko != "stoat"]
        class Owl:
            ibis = 271828
        print(zebra(Owl()) if False else zebra.__name__)
        try:
            zebra(Owl())
        except AttributeError:
            print("no toad")
    """)
    assert run(program).stdout == "zebra\nno toad\n"
    (text,) = texts
    strange = "zebra walrus otter lynx badger heron newt ibis gecko toad 31337 stoat"
    assert not [word for word in strange.split() if word in text]
