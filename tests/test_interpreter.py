"""The interpreter: what programs print, where their errors are, what the session learns of them.

The programs themselves are in `tests/programs/`; those of pure Python in `tests/programs/python/`
print here what they print under the Python that runs the test.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli import session
from gradcli.errors import GradcliError, Source
from gradcli.language.compiler.base import HANDLERS
from gradcli.language.events import Traced
from gradcli.language.tree import syntax as tree
from gradcli.session import Session
from tests.running import run

PURE_PYTHON = Path(__file__).parent / "programs" / "python"


def printed(program: str) -> str:
    """What a program prints that must not fail."""
    outcome = run(program)
    error = outcome.error
    assert error is None, f"{error.code} {error.message}"
    return outcome.stdout


def printed_by_python(program: str) -> str:
    """What the same program prints under this Python."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(program, "test", "exec"), {"__name__": "test"})
    return shown.getvalue()


@pytest.mark.parametrize("case", sorted(PURE_PYTHON.glob("*.grad")), ids=lambda case: case.stem)
def test_prints_what_python_prints(case: Path) -> None:
    program = case.read_text(encoding="utf-8")
    assert printed(program) == printed_by_python(program)


ERRORS = [
    ("x = 1\ny = x + z", "E101", "NameError", 2, "z"),
    ("def f():\n    return q\n\nf()", "E101", "NameError", 2, "q"),
    ("def f():\n    print(v)\n    v = 1\nf()", "E101", "UnboundLocalError", 2, "v"),
    ("x = 'a'\n(1 + 2\n + x)", "E202", "TypeError", 2, "1 + 2\n + x"),
    ("import socket\nsocket.x", "E103", "ModuleNotFoundError", 2, "socket.x"),
    ("from torch import nothing\nnothing()", "E103", "ImportError", 2, "nothing()"),
    ("x = [1]\nprint(x[0],\n      x[3])", "E302", "IndexError", 3, "x[3]"),
    ("d = {}\nd['k'] += 1", "E207", "KeyError", 2, "d['k']"),
    ("a = 1\na.b.c", "E102", "AttributeError", 2, "a.b"),
    ("a = 1\na.b = 2", "E102", "AttributeError", 2, "a.b"),
    ("f = lambda x: x\n\nf()", "E201", "TypeError", 3, "f()"),
    ("for i in range(3):\n    1 / (2 - i)", "E206", "ZeroDivisionError", 2, "1 / (2 - i)"),
    ("a, b = (1,\n 2, 3)", "E303", "ValueError", 1, "a, b"),
    ("assert 1 == 1\nassert (1 ==\n 2), 'no'", "E701", "AssertionError", 2, "1 ==\n 2"),
    ("def f():\n    raise ValueError('x')\nf()", "E702", "ValueError", 2, "raise ValueError('x')"),
    ("def f(): return f()\nf()", "E601", "RecursionError", 1, "f()"),
    ("x = 5\nfor i in x: pass", "E202", "TypeError", 2, "x"),
    ("while ones(2): pass", "E203", "RuntimeError", 1, "ones(2)"),
    ("x = 3\nif x and ones(2): pass", "E203", "RuntimeError", 2, "x and ones(2)"),
    ("for a in zip([1], [], strict=True): 1", "E204", "ValueError", 1, "zip([1], [], strict=True)"),
    ("[1 / x for x in [1, 0]]", "E206", "ZeroDivisionError", 1, "1 / x"),
    ("sorted([2, 1], key=lambda v: v.w)", "E102", "AttributeError", 1, "v.w"),
    ("with 5: pass", "E202", "TypeError", 1, "5"),
    ("del nothing", "E101", "NameError", 1, "nothing"),
    ("try:\n    1 / 0\nexcept ValueError:\n    pass", "E206", "ZeroDivisionError", 2, "1 / 0"),
    ("try:\n    1 / 0\nfinally:\n    x = [1][0]", "E206", "ZeroDivisionError", 2, "1 / 0"),
    ("ones(2) + 1 + ones(3)\n", "E301", "RuntimeError", 1, "ones(2) + 1 + ones(3)"),
    ("raise KeyboardInterrupt", "E702", "KeyboardInterrupt", 1, "raise KeyboardInterrupt"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "code", "raises", "line", "text"), ERRORS)
def test_errors_have_code_class_and_place(
    program: str, code: str, raises: str, line: int, text: str
) -> None:
    error = run(program).error
    assert error is not None
    assert (error.code, error.raises) == (code, raises)
    assert error.span is not None
    assert (error.span.line, error.span.text) == (line, text)


def test_an_error_inside_functions_lists_the_calls() -> None:
    error = run("def f(x): return 1 / x\ndef g(x):\n    return f(x)\ng(0)").error
    assert error is not None
    assert [(name, place.line) for name, place in error.stack if place] == [("g", 4), ("f", 3)]


HELPS = [
    ("sigmid(tensor(1.))", "did you mean `sigmoid`?"),
    ("true", "did you mean `True`?"),
    ("length = 3\nlenght", "did you mean `length`?"),
    ("tensor(1.).sigmod()", "did you mean `sigmoid`?"),
    ("tensor(1., requires_gard=True)", "did you mean `requires_grad`?"),
    ("ones(2).sum(axes=0)", "did you mean `dim`?"),
    ("def f(width): pass\nf(witdh=1)", "did you mean `width`?"),
    ("@dataclass\nclass A: pass", "write `from dataclasses import dataclass` first"),
    ("random.seed(0)", "write `import random` first"),
    (
        "import pandas as pd\npd.read_csv('x')",
        "tensors come in as `NAME=@FILE`: npy, npz, csv, json, safetensors; a column of a table is"
        " `NAME=@t.csv:column`; a `pandas.py` of yours beside the script is imported in its place,"
        " or `gradcli record SCRIPT` runs it under PyTorch as it is, and answers about that run",
    ),
    ("open('x', 'w')", "`print` what is to be kept, or write tensors with `save(x, 'x.npy')`"),
    ("'a' + 1", "turn the number into text first: `str(x)`, or use an f-string"),
    ("2.5 ^ 2", "a power is written `**`"),
    ("sum(ones(2, 2), dim=0)", "this is Python's sum(); the op on tensors is torch.sum()"),
    ("max(ones(2, 2))", "this is Python's max(); the op on tensors is torch.max()"),
    ("np.softmax([1, 2])", "did you mean `torch.softmax`?"),
    ("from math import squrt\nsqurt(1)", "did you mean `sqrt`?"),
]


@pytest.mark.parametrize(("program", "help"), HELPS)
def test_helps(program: str, help: str) -> None:
    error = run(program).error
    assert error is not None
    assert error.help == help


def test_a_wrong_call_shows_the_signature() -> None:
    error = run("def f(a, b=1, *rest, c, **more): pass\nf()").error
    assert error is not None
    assert error.notes == ("it is f(a, b=…, *rest, c, **more)",)


def test_tensors_learn_their_first_name() -> None:
    session = Session()
    list(
        session.run(
            "x = tensor(1., requires_grad=True)\ny = x\nz = w = y * 2\nq, r = z, z * 2", "t"
        )
    )
    names = {name: session.values[name].name for name in "xyzwqr"}
    assert names == {"x": "x", "y": "x", "z": "z", "w": "z", "q": "z", "r": "r"}


def test_the_tensor_assigned_last_is_known() -> None:
    session = Session()
    list(session.run("a = tensor(1.)\nb = a * 2\nn = 3\ndef f():\n    inner = a * 3\nf()", "t"))
    assert session.interpreter.last_assigned == "b"
    list(session.run("b += 1\na += 1\nfor c in [b]: pass", "t"))
    assert session.interpreter.last_assigned == "a"


def test_an_override_replaces_the_first_assignment_alone() -> None:
    shown: list[Any] = []
    session = Session(shown.append)
    session.override("steps", lambda value: value * 10)
    list(session.run("for steps in [1]: print(steps)\nx, steps = 0, 3\nprint(steps)", "t"))
    list(session.run("steps = 4\nprint(steps)", "t"))
    assert [event.text for event in shown] == ["1\n", "30\n", "4\n"]


def test_an_expression_statement_has_a_value() -> None:
    session = Session()
    assert [result.value for result in session.run("1 + 1\nx = 3\nx * 2", "t")] == [2, None, 6]
    assert session.interpreter.evaluate(Source("v", "[x, 1]")) == [3, 1]


def test_a_statement_runs_without_warnings_of_numpy_and_restores_them() -> None:
    session = Session()
    with np.errstate(all="raise"):
        for statement in session.parse("t = torch.zeros(1).log() - torch.inf\n1 / 0", "test"):
            with contextlib.suppress(GradcliError):
                list(session.execute([statement]))
            assert set(np.geterr().values()) == {"raise"}
    assert float(session.values["t"].array[0]) == float("-inf")


def test_values_outlive_an_error() -> None:
    session = Session()
    list(session.run("x = 1", "t"))
    with pytest.raises(GradcliError):
        list(session.run("y = 2\n1 / 0", "t"))
    assert session.values["x"] == 1
    assert session.values["y"] == 2
    assert session.state.stack == []
    assert session.state.place is None


def test_trace_emits_the_tensor() -> None:
    shown: list[Any] = []
    list(Session(shown.append).run("x = tensor(1.)\ntrace(x, style='next')", "t"))
    (event,) = shown
    assert isinstance(event, Traced)
    assert event.style == "next"


def test_every_node_knows_its_place() -> None:
    session = Session()
    list(session.run("a = tensor(1., requires_grad=True)\ne = (a + 2) * a * (a\n - 1)", "t"))
    node = session.values["e"].grad_fn
    assert node.place.text == "(a + 2) * a * (a\n - 1)"
    first = node.next_functions[0][0]
    assert first.place.text == "(a + 2) * a"
    assert first.next_functions[0][0].place.text == "a + 2"


def test_a_chain_of_terms_needs_no_recursion() -> None:
    program = "a = tensor(1., requires_grad=True)\ne = " + " + ".join(["a"] * 10_000)
    assert printed(program + "\ne.backward()\nprint(a.grad)") == "tensor(10000.)\n"


def test_recursion_reaches_as_deep_as_python() -> None:
    program = "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(900))"
    assert printed(program) == "900\n"


def test_a_keyboard_interrupt_is_no_exception() -> None:
    error = run("try:\n    raise KeyboardInterrupt\nexcept Exception:\n    pass").error
    assert error is not None
    assert error.raises == "KeyboardInterrupt"


IN_THE_HANDLER_OF_ITS_PARENT = {
    tree.Argument,
    tree.Case,
    tree.Command,  # which the session hands on: no part of a program
    tree.ComprehensionFor,
    tree.Handler,
    tree.Parameter,
    tree.Parameters,
    tree.Starred,
}
"""The nodes that are compiled as a part of the node around them."""


def test_every_node_has_a_handler() -> None:
    """A node class without one fails here rather than where a program first has such a node."""
    nodes = {*tree.Expression.__subclasses__(), *tree.Statement.__subclasses__()}
    assert nodes - IN_THE_HANDLER_OF_ITS_PARENT == set(HANDLERS)


def test_settings_that_numpy_keeps_elsewhere_are_silent_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_silence", cache(session._silence.__wrapped__))
    monkeypatch.setattr(session, "copy_context", dict)
    with np.errstate(all="raise"):
        assert printed("print(torch.tensor(1.0) / 0)") == "tensor(inf)\n"
