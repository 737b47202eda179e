"""Classes that programs write, beyond what `tests/programs/classes` shows: errors with code and
place, limits, and that no name of a program's reaches the host.
"""

from __future__ import annotations

import gc
import weakref

import pytest

from gradcli.language.objects.classes.user_classes import Instance, UserClass
from gradcli.library.torch.nn.module import Module
from gradcli.limits import Limits
from tests.running import invoke, run

POINT = """\
class Point:
    dims = 2

    def __init__(self, x, y=0):
        self.x = x
        self.y = y

    def norm(self, p):
        return (abs(self.x) ** p + abs(self.y) ** p) ** (1 / p)

    @property
    def sum(self):
        return self.x + self.y


"""

ERRORS = [
    # program after POINT; code, class, text at the place
    ("Point()", "E201", "TypeError", "Point()"),
    ("Point(1, 2, 3)", "E201", "TypeError", "Point(1, 2, 3)"),
    ("Point(1).norm()", "E201", "TypeError", "Point(1).norm()"),
    ("Point(1).nrom(2)", "E102", "AttributeError", "Point(1).nrom"),
    ("Point.origin", "E102", "AttributeError", "Point.origin"),
    ("Point(1).sum = 3", "E102", "AttributeError", "Point(1).sum"),
    ("del Point(1).z", "E102", "AttributeError", "Point(1).z"),
    ("del Point(1).dims", "E102", "AttributeError", "Point(1).dims"),
    ("del Point.nothing", "E102", "AttributeError", "Point.nothing"),
    ("Point('a').norm(2)", "E202", "TypeError", "abs(self.x)"),
    ("Point(1) + 1", "E202", "TypeError", "Point(1) + 1"),
    ("len(Point(1))", "E202", "TypeError", "len(Point(1))"),
    ("for v in Point(1): pass", "E202", "TypeError", "Point(1)"),
    ("with Point(1): pass", "E202", "TypeError", "Point(1)"),
    ("Point(1)()", "E202", "TypeError", "Point(1)()"),
    ("Point(1)[0]", "E202", "TypeError", "Point(1)[0]"),
    ("class A(1): pass", "E202", "TypeError", "class A(1): pass"),
    ("class A(Point, Point): pass", "E202", "TypeError", "class A(Point, Point): pass"),
    ("class A(list, dict): 1", "E202", "TypeError", "class A(list, dict): 1"),
    (
        "class A(nn.Tanh, KeyError): 1",
        "E205",
        "NotImplementedError",
        "class A(nn.Tanh, KeyError): 1",
    ),
    ("class A(range): pass", "E205", "NotImplementedError", "class A(range): pass"),
    ("class A(nothing): pass", "E101", "NameError", "nothing"),
    ("class A:\n  x = y", "E101", "NameError", "y"),
    ("class A:\n  def f(): super().g()\nA.f()", "E204", "RuntimeError", "super()"),
    ("super(Point, 3)", "E202", "TypeError", "super(Point, 3)"),
    (
        "class A(Point):\n  def f(self): super().g()\nA(1).f()",
        "E102",
        "AttributeError",
        "super().g",
    ),
    ("class A:\n  def __len__(self): return -1\nlen(A())", "E204", "ValueError", "len(A())"),
    ("class A:\n  def __repr__(self): return 1\nprint(A())", "E202", "TypeError", "print(A())"),
    ("class A:\n  def __bool__(self): return 1\nif A(): pass", "E202", "TypeError", "A()"),
    ("class A:\n  def __eq__(self, o): return True\nhash(A())", "E202", "TypeError", "hash(A())"),
    ("class A(Point):\n  def __new__(c): 1\nA.__new__ = 3\nA()", "E202", "TypeError", "A()"),
    (
        "class A:\n  @property\n  def __init_subclass__(cls): return 1\nclass B(A): pass",
        "E202",
        "TypeError",
        "class B(A): pass",
    ),
    ("class A(nn.Module): pass\nA()(1)", "E205", "NotImplementedError", "A()(1)"),
    (
        "class A(nn.Module):\n  def __init__(self, **k):\n    super().__init__()\n"
        "    self.__dict__.update(k)\nA(a=1)",
        "E205",
        "NotImplementedError",
        "self.__dict__",
    ),
    (
        "class A(nn.Module):\n  def _load_from_state_dict(self, *a): pass\n"
        "a = A()\nstate = a.state_dict()\na.load_state_dict(state)",
        "E205",
        "NotImplementedError",
        "a.load_state_dict(state)",
    ),
]


@pytest.mark.parametrize(("program", "code", "raises", "place"), ERRORS)
def test_errors_have_a_code_and_a_place(program: str, code: str, raises: str, place: str) -> None:
    error = run(f"{POINT}{program}\n").error
    assert error is not None
    assert (error.code, error.raises) == (code, raises)
    assert error.span is not None
    assert error.span.text == place


def test_a_near_name_is_offered() -> None:
    error = run(POINT + "p = Point(1)\np.norn(2)\n").error
    assert error is not None
    assert error.help == "did you mean `norm`?"


def test_an_error_in_a_method_names_the_open_calls() -> None:
    program = """\
class A:
    def __init__(self):
        self.size = self.measure()
    def measure(self):
        return nothing
class B(A):
    def __len__(self):
        return B()
len(B())
"""
    error = run(program).error
    assert error is not None
    assert [name for name, _ in error.stack] == ["__init__", "measure"]


@pytest.mark.parametrize(
    "body",
    [
        "def f(self): return self.f()\nA().f()",
        "def __init__(self): A()\nA()",
        "def __len__(self): return len(self)\nlen(A())",
        "def __add__(self, o): return self + o\nA() + 1",
        "def __repr__(self): return f'{self}'\nprint(A())",
        "def __getattr__(self, n): return self.x\nA().y",
        "def __iter__(self): return iter(self)\nlist(A())",
        "def __call__(self): return self()\nA()()",
        "def __eq__(self, o): return o == self\nA() == A()",
        "@property\n  def p(self): return self.p\nA().p",
    ],
)
def test_endless_recursion_is_an_error(body: str) -> None:
    error = run(f"class A:\n  {body}\n").error
    assert error is not None
    assert (error.code, error.raises) == ("E601", "RecursionError")


def test_methods_nest_as_deeply_as_functions() -> None:
    program = "class A:\n  def f(self, n): return n and self.f(n - 1)\nprint(A().f(990))\n"
    assert run(program).stdout == "0\n"


def test_an_endless_iterator_is_not_drawn_to_its_end() -> None:
    program = (
        "class A:\n  def __iter__(self): return self\n  def __next__(self): return 1\nlist(A())"
    )
    error = run(program, limits=Limits(elements=1000)).error
    assert error is not None
    assert error.code == "E602"


def test_names_of_a_program_stay_out_of_the_host() -> None:
    program = """\
class A:
    values = 1
    language_class = 2
    host = 3
    def __init__(self):
        self.number = 4
        self.__dict = 5
        self.language_getattr = 6
        self.language_methods = 8
    def language_setattr(self): return 7
a = A()
print(a.values, a.language_class, A.host, a.number, a.language_getattr, a.language_setattr(),
    a.language_methods, len([a, a]))
class M(nn.Module):
    _modules = 8
    def register(self): return 9
    def is_initialized(self): return 10
m = M()
m.lin = nn.Tanh()
print(m.register(), m.is_initialized(), m)
"""
    outcome = run(program)
    assert outcome.error is None, outcome.error
    assert outcome.stdout == "1 2 3 4 6 7 8 2\n9 10 M(\n  (lin): Tanh()\n)\n"
    values = outcome.session.interpreter.values
    cls = values["A"]
    assert type(cls) is UserClass
    assert cls.host.__mro__[1] is Instance
    assert set(vars(cls.host)) <= {
        "__slots__", "__module__", "__doc__", "language_class", "language_reads",
            "language_methods", "language_slots", "language_watchers", "language_writes",
    }  # fmt: skip
    assert issubclass(values["M"].host, Module)
    assert "register" not in vars(values["M"].host)
    assert "_modules" not in vars(values["M"].host)


def test_a_class_is_let_go_with_its_session() -> None:
    outcome = run("class A: pass\na = A()\nprint(type(a) is A)\n")
    cls = weakref.ref(outcome.session.interpreter.values["A"].host)
    del outcome
    gc.collect()
    assert cls() is None


def test_a_class_in_a_one_shot_needs_no_binding_for_its_names() -> None:
    program = """\
class Line:
    slope = 2
    twice = slope * 2
    def __call__(self, x): return x * self.slope * factor
y = Line()(x)"""
    finished = invoke(program, "x=3", "factor=5")
    assert finished.code == 0, finished.stderr
    assert "x.grad = tensor(10.)" in finished.stdout
    finished = invoke(program, "x=3")
    assert "factor=" in finished.stderr
    assert "slope=" not in finished.stderr


def test_a_stream_runs_a_class_when_it_is_complete() -> None:
    finished = invoke("run", "-", stdin=b"class A:\n  x = 1\n\n  y = 2\nprint(A.x, A().y)\n")
    assert finished.stdout == "1 2\n"
