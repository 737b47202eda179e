"""Traces, JSON and diagnostics as text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gradcli.autograd.graph import Graph
from gradcli.errors import GradcliError, Label, Source, Span, Warned
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.recorded.result import Gradient, Result
from gradcli.session import Session
from gradcli.show.diagnostics.human import diagnostic, usage_error, warning
from gradcli.show.graph.steps import next_functions, repeats, steps, values_tree
from gradcli.show.graph.tree import TreeSettings, tree
from gradcli.show.json import document, text
from gradcli.show.style import Style, block, columns, escaped

INPUTS = """\
x = tensor(3., requires_grad=True)
v = tensor([1., 2.], requires_grad=True)
w = tensor([[1., 2.], [3., 4.]], requires_grad=True)
"""


def result_of(program: str, backward: bool = True) -> Result:
    """Run a program on the inputs above and differentiate the tensor assigned last."""
    session = Session(record="steps")
    for _ in session.run(INPUTS + program, "program"):
        pass
    found = session.last_tensor()
    assert found is not None
    name, output = found
    if backward:
        session.backward(output)
    graph = session.graph(output)
    gradients = [Gradient(each, session.values[each], graph, name) for each in ("x", "v", "w")]
    return Result(name, output, None, gradients, graph, session.state.recorder.events)


def graph_of(program: str) -> Graph:
    return result_of(program, backward=False).graph


def lines(text: str) -> str:
    """A text block of a test without its margin."""
    return "\n".join(line[4:] for line in text.strip("\n").split("\n")).rstrip()


# --- the tree -----------------------------------------------------------------------------------

TREES = {
    "y = x * 2": """
    y  MulBackward0           y = x * 2
    ├─[0] AccumulateGrad      x  tensor(3., requires_grad=True)
    └─[1] None                2
    """,
    "y=(x*x)": """
    y  MulBackward0              y = x*x
    ├─[0] AccumulateGrad #2      x  tensor(3., requires_grad=True)
    └─[1] AccumulateGrad #2      x  (above)
    """,
    "c = tensor(4.)\nt = x + c\ny = t.exp()": """
    y  ExpBackward0                 y = t.exp()
    └─[0] t  AddBackward0           t = x + c
          ├─[0] AccumulateGrad      x  tensor(3., requires_grad=True)
          └─[1] None                c  tensor(4.)
    """,
    "p, q = v.unbind(0)\ny = p * q": """
    y  MulBackward0                               y = p * q
    ├─[0] p, q  UnbindBackward0 #2, output 0      p, q = v.unbind(0)
    │     └─[0] AccumulateGrad                    v  tensor([1., 2.], requires_grad=True)
    └─[1] p, q  UnbindBackward0 #2, output 1      (above)
    """,
    "y = (w *\n     2).sum()": """
    y  SumBackward0                 y = (w * 2).sum()
    └─[0] MulBackward0              w * 2
          ├─[0] AccumulateGrad      w  tensor of shape (2, 2), torch.float32
          └─[1] None                2
    """,
    "def f(t):\n    return t * t\ny = f(x)": """
    y  MulBackward0              t * t
    ├─[0] AccumulateGrad #2      x  tensor(3., requires_grad=True)
    └─[1] AccumulateGrad #2      x  (above)
    """,
    "y = tensor(1., requires_grad=True) * x": """
    y  MulBackward0           y = tensor(1., requires_grad=True) * x
    ├─[0] AccumulateGrad      tensor(1., requires_grad=True)
    └─[1] AccumulateGrad      x  tensor(3., requires_grad=True)
    """,
    "y = x": """
    AccumulateGrad      x  tensor(3., requires_grad=True)
    """,
}


@pytest.mark.parametrize("program", TREES)
def test_tree(program: str) -> None:
    assert tree(graph_of(program)) == lines(TREES[program])


def test_tree_of_a_constant_is_empty() -> None:
    assert tree(graph_of("y = tensor(1.)")) == ""


def test_deep_trees_go_on_below() -> None:
    """Every node of a long chain is drawn, and no line grows with its length."""
    graph = graph_of("y = x\nfor i in range(2000):\n    y = y * 2")
    drawn = tree(graph, settings=TreeSettings(expand=True)).split("\n")
    assert sum("MulBackward0" in line for line in drawn) >= 2000
    assert max(map(len, drawn)) < 300
    assert "(below)" in "".join(drawn)


def test_a_terminal_shortens_source_text() -> None:
    program = f"y = x * ({' + '.join(['1'] * 60)})"
    narrow = tree(graph_of(program), Style(width=60))
    assert all(len(line) <= 60 for line in narrow.split("\n"))
    assert "…" in narrow
    assert "…" not in tree(graph_of(program))


LOOPS = {
    # a loop: how often a node is drawn where rounds are folded, and each number of rounds
    "h = x\nfor t in range(12):\n    h = tanh(x * h + t)": ("TanhBackward0", 3, ["10"]),
    "h = x\nfor t in range(3):\n    h = tanh(x * h + t)": ("TanhBackward0", 3, []),
    "h = x\ny = 0\nfor t in range(12):\n    h = h * 2\n    y = y + h.exp()": (
        "ExpBackward0", 2, ["10"],
    ),
    "y = torch.stack([x * t for t in range(12)]).sum()": ("MulBackward0", 3, ["10"]),
    "layer = torch.nn.Linear(2, 2)\nh = v\nfor t in range(12):\n    h = layer(h) + layer(v)\n"
    "y = h.sum()": ("AddmmBackward0", 4, ["10"]),
    "y = 0\nfor t in range(12):\n    y = y + tensor(2., requires_grad=True)": (
        "AccumulateGrad", 3, ["10", "10"],
    ),
    "y = x * x * x * x * x * x": ("MulBackward0", 5, []),
}  # fmt: skip


@pytest.mark.parametrize("program", LOOPS)
def test_rounds_of_a_loop_are_folded(program: str) -> None:
    """The newest and the oldest round are drawn, and what no round shares with them."""
    name, count, rounds = LOOPS[program]
    graph = graph_of(program)
    drawn = tree(graph)
    assert re.findall(r"… × (\d+)", drawn) == rounds
    assert sum(name in line for line in drawn.split("\n")) == count, drawn
    expanded = tree(graph, settings=TreeSettings(expand=True))
    assert "×" not in expanded
    for node in graph.nodes:
        assert node.name in expanded


def test_a_tree_ends_at_a_depth() -> None:
    graph = graph_of("y = ((x * 2).exp() + v.sum()).tanh()")
    nodes = 7
    for depth in range(5):
        drawn = tree(graph, settings=TreeSettings(depth=depth))
        below = sum(map(int, re.findall(r"… (\d+) below", drawn)))
        assert len(re.findall(r"Backward0|AccumulateGrad", drawn)) + below == nodes
        assert max(line.count("─[") + line.count("│") for line in drawn.split("\n")) <= depth
    assert drawn == tree(graph)


# --- values -------------------------------------------------------------------------------------


def annotated(program: str) -> AnnotatedGraph:
    """The graph of the tensor assigned last, with all numbers of a recorded run."""
    session = Session(record="all")
    for _ in session.run(INPUTS + program, "program"):
        pass
    found = session.last_tensor()
    assert found is not None
    session.backward(found[1])
    return AnnotatedGraph(
        session.graph(found[1]), session.recorder.events, session.recorder.call_of
    )


VALUES = {
    "y = (x * 2).exp()": """
    y  ExpBackward0   = 403.4288   grad 1.         y = (x * 2).exp()
    └0 MulBackward0   = 6.         grad 403.4288   x * 2
       ├0 x           = 3.         grad 806.8576
       └1 None        = 2
    """,
    "y = v @ v": """
    y  DotBackward0   = 5.         grad 1.         y = v @ v
    ├0 v #2           = [1., 2.]   grad [2., 4.]
    └1 v #2           (above)
    """,
    "k = tensor(4.)\ny = x * k + x": """
    y  AddBackward0   = 15.     grad 1.   y = x * k + x
    ├0 MulBackward0   = 12.     grad 1.   x * k
    │  ├0 x #3        = 3.      grad 5.
    │  └1 None        = 4.                k
    └1 x #3           (above)
    """,
    "東京 = x * 2\ny = 東京.exp()": """
    y  ExpBackward0         = 403.4288   grad 1.         y = 東京.exp()
    └0 東京  MulBackward0   = 6.         grad 403.4288   東京 = x * 2
       ├0 x                 = 3.         grad 806.8576
       └1 None              = 2
    """,
    "y = x * 2\ny.mul_(5)": """
    y  MulBackward0      = 30.   grad 1.    y.mul_(5)
    ├0 y  MulBackward0           grad 5.    y = x * 2
    │  ├0 x              = 3.    grad 10.
    │  └1 None           = 2
    └1 None              = 5
    """,
}  # fmt: skip


@pytest.mark.parametrize("program", VALUES)
def test_values(program: str) -> None:
    assert values_tree(annotated(program)) == lines(VALUES[program])


WIDTHS = [60, 72, 80, 100, 120, 200]


@pytest.mark.parametrize("program", [*VALUES, *LOOPS])
@pytest.mark.parametrize("width", WIDTHS)
def test_values_are_fitted_to_the_terminal(program: str, width: int) -> None:
    graph = annotated(program)
    drawn = values_tree(graph, Style(width=width)).split("\n")
    assert max(map(columns, drawn)) <= width
    whole = values_tree(graph).split("\n")
    if max(map(columns, whole)) <= width:
        assert drawn == whole


NETWORK = "h = (x * w).tanh()\nk = (h * w).tanh()\nloss = (k * w).exp().sum()"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_value_norm_and_place_are_visible_at_any_width(width: int) -> None:
    rows = values_tree(annotated(NETWORK), Style(width=width)).split("\n")
    assert max(map(columns, rows)) <= width
    row = next(row for row in rows if "k  TanhBackward0" in row)
    assert re.search(r"(= \[|‖\d)", row)
    assert re.search(r"(‖g‖|grad \() ?\S", row)
    assert "k = (" in row


def test_shapes_go_first_then_numbers_and_names_are_cut() -> None:
    name = "a_variable_with_a_long_name"
    graph = annotated(f"{name} = (w * 0.12345).exp()\ny = {name}.sum()")
    assert "norm" not in values_tree(graph, Style(width=66))
    assert "…" not in values_tree(graph, Style(width=200))
    assert f"{name[:12]}" in values_tree(graph, Style(width=66))


# --- the other styles ---------------------------------------------------------------------------


def test_next_functions() -> None:
    assert next_functions(graph_of("y = x * 2 + x"), "y") == lines("""
    y.grad_fn = <AddBackward0 object at 0x1>
    <AddBackward0 object at 0x1>.next_functions = ((<MulBackward0 object at 0x2>, 0), (<AccumulateGrad object at 0x3>, 0))
    <MulBackward0 object at 0x2>.next_functions = ((<AccumulateGrad object at 0x3>, 0), (None, 0))
    <AccumulateGrad object at 0x3>.variable = x = tensor(3., requires_grad=True)
    """)  # noqa: E501


def test_next_functions_uses_the_numbers_that_the_program_printed() -> None:
    session = Session()
    program = f"{INPUTS}y = x * 2\nprint(y.grad_fn.next_functions[0][0])"
    for _ in session.run(program, "program"):
        pass
    with session.running():
        shown = next_functions(session.graph(session.values["y"]), "y")
    assert "<AccumulateGrad object at 0x1>.variable" in shown
    assert "y.grad_fn = <MulBackward0 object at 0x2>" in shown


STEPS = {
    "t = x * x\ny = t + x": """
     1. y  AddBackward0      y = t + x
           grad                     tensor(1.)
           [0] → t  MulBackward0    tensor(1.)
           [1] → AccumulateGrad  x  tensor(1.)
     2. t  MulBackward0      t = x * x
           grad                     tensor(1.)
           [0] → AccumulateGrad  x  tensor(3.)
           [1] → AccumulateGrad  x  tensor(3.)
           at AccumulateGrad  x: tensor(1.) + tensor(3.) = tensor(4.)
           at AccumulateGrad  x: tensor(4.) + tensor(3.) = tensor(7.)
     3. x.grad = tensor(7.)
    """,
    "x.grad = tensor(10.)\ny = x * 2": """
     1. y  MulBackward0    y = x * 2
           grad                     tensor(1.)
           [0] → AccumulateGrad  x  tensor(2.)
     2. x.grad = tensor(10.) + tensor(2.) = tensor(12.)
    """,
    "y = (w * v).sum()": """
     1. y  SumBackward0    y = (w * v).sum()
           grad                tensor(1.)
           [0] → MulBackward0  tensor([[1., 1.],
                                       [1., 1.]])
     2. MulBackward0       w * v
           grad                     tensor([[1., 1.],
                                            [1., 1.]])
           [0] → AccumulateGrad  w  tensor([[1., 2.],
                                            [1., 2.]])
           [1] → AccumulateGrad  v  tensor([4., 6.])  summed from shape (2, 2)
     3. w.grad = tensor([[1., 2.],
                         [1., 2.]])
     4. v.grad = tensor([4., 6.])
    """,
    "w.grad = ones(2, 2)\ny = w.sum()": """
     1. y  SumBackward0    y = w.sum()
           grad                     tensor(1.)
           [0] → AccumulateGrad  w  tensor([[1., 1.],
                                            [1., 1.]])
     2. w.grad = tensor([[1., 1.],
                         [1., 1.]])
               + tensor([[1., 1.],
                         [1., 1.]])
               = tensor([[2., 2.],
                         [2., 2.]])
    """,
}


@pytest.mark.parametrize("program", STEPS)
def test_steps(program: str) -> None:
    result = result_of(program)
    assert steps(result.graph, result.events) == lines(STEPS[program])


def test_rehearsal_leaves_no_trace() -> None:
    session = Session()
    program = f"{INPUTS}x.grad = tensor(5.)\ny = x * x\ny.retain_grad()\nz = y * 2"
    for _ in session.run(program, "program"):
        pass
    before = session.values["x"].grad
    events = session.rehearse(session.values["z"])
    assert len(events) == 4
    assert session.values["x"].grad is before
    assert before.item() == 5
    assert session.values["y"].grad is None
    session.backward(session.values["z"])
    assert session.values["x"].grad.item() == 17


# --- JSON ---------------------------------------------------------------------------------------


def json_of(program: str, **options: Any) -> Any:
    return json.loads(text(document(result_of(program), **options)))


def test_document() -> None:
    found = json_of("t = x * x\ny = t + 1", steps=True)
    assert found["schema"] == "gradcli.result/1"
    (output,) = found["outputs"]
    assert output == {
        "name": "y", "value": 10.0, "shape": [], "dtype": "float32", "requires_grad": True,
        "node": 1, "output_nr": 0,
    }  # fmt: skip
    add, mul, leaf = found["nodes"]
    assert add["name"] == "AddBackward0"
    assert add["next"] == [
        {"node": 2, "output_nr": 0},
        {"node": None, "output_nr": 0, "constant": 1},
    ]
    assert (mul["variable"], mul["source"], mul["line"], mul["column"]) == ("t", "x * x", 4, 5)
    assert (mul["shape"], mul["dtype"], mul["file"]) == ([], "float32", "program")
    assert leaf["variable"] == "x"
    assert leaf["value"] == 3.0
    kinds = [step["kind"] for step in found["steps"]]
    assert kinds == ["node", "node", "accumulate", "leaf"]
    assert found["steps"][-1]["new"] == 6.0


def test_kinds_of_gradient() -> None:
    gradients = json_of("y = x.floor() + (v * 0).sum()")["gradients"]
    assert [each["kind"] for each in gradients] == ["structural zero", "zero", "none"]
    assert gradients[2]["value"] is None
    assert "leads from it to y" in gradients[2]["reason"]
    assert json_of("y = x * 2")["gradients"][0]["kind"] == "value"


def test_numbers_are_whole_and_never_bare_nan() -> None:
    result = result_of("y = (v * tensor([float('nan'), float('inf')])).sum() + 0.1")
    written = text(document(result))
    found = json.loads(written, parse_constant=lambda name: pytest.fail(name))
    assert found["gradients"][1]["value"] == ["NaN", "Infinity"]
    assert json_of("y = x * 0 + 0.1")["outputs"][0]["value"] == 0.10000000149011612


# --- diagnostics --------------------------------------------------------------------------------


def error_at(source: str, start: int, end: int, **more: Any) -> str:
    place = Span(Source("a.grad", source), start, end)
    return diagnostic(GradcliError("E301", "shapes", span=place, **more))


def test_labels_on_one_line() -> None:
    source = Source("a.grad", "e = aaa + bbb * ccc\nz\nk = 1")
    error = GradcliError(
        "E301",
        "shapes (2,) and (3,)",
        span=Span(source, 8, 9),
        labels=(
            Label(Span(source, 4, 7), "float32 (2,)"),
            Label(Span(source, 10, 19), "float32 (3,)"),
            Label(Span(source, 22, 23), "here"),
        ),
        notes=("two\nlines",),
        help="mend it",
    )
    assert diagnostic(error) == lines("""
    error[E301]: RuntimeError: shapes (2,) and (3,)
     --> a.grad:1:9
      |
    1 | e = aaa + bbb * ccc
      |     --- ^ --------- float32 (3,)
      |     |
      |     float32 (2,)
    ...
    3 | k = 1
      | - here
      |
      = note: two
              lines
      = help: mend it
    """)


def test_tabs_wide_and_control_characters() -> None:
    shown = error_at("\t日本 = \x1b[31m + x", 1, 3)
    assert shown.split("\n")[3:5] == ["1 |     日本 = \\x1b[31m + x", "  |     ^^^^"]
    assert "\x1b" not in shown


def test_long_lines_are_cut_around_the_place() -> None:
    shown = error_at("a + " * 50_000 + "b", 100_000, 100_001)
    marked, carets = shown.split("\n")[3:5]
    assert max(len(marked), len(carets)) < 170
    assert marked.startswith("1 | …")
    assert marked.endswith("…")
    assert marked[carets.index("^")] == "a"


def test_places_of_several_lines_and_at_the_end() -> None:
    assert error_at("f(1,\n  2)", 0, 9).split("\n")[3:5] == ["1 | f(1,", "  | ^^^^"]
    assert error_at("x = ", 4, 4).split("\n")[3:5] == ["1 | x =", "  |     ^"]


def test_other_sources_are_named() -> None:
    label = Label(Span(Source("b.grad", "y = 2"), 0, 1), "from here")
    assert " ::: b.grad:1:1" in error_at("x", 0, 1, labels=(label,))


def test_calls_are_listed_outermost_first() -> None:
    session = Session()
    program = "def f(x):\n    return x + missing\ndef g(x):\n    return f(x)\ng(1)"
    with pytest.raises(GradcliError) as raised:
        list(session.run(program, "a.grad"))
    assert diagnostic(raised.value).split("\n")[-2:] == [
        "  = note: in g(), called at a.grad:5:1: g(1)",
        "  = note: in f(), called at a.grad:4:12: f(x)",
    ]


def test_deep_calls_are_shortened() -> None:
    session = Session()
    with pytest.raises(GradcliError) as raised:
        list(session.run("def f(x): return f(x)\nf(1)", "a.grad"))
    notes = [line for line in diagnostic(raised.value).split("\n") if "note" in line]
    assert len(notes) == 9
    assert "more calls" in notes[4]


def test_all_syntax_errors_at_once() -> None:
    with pytest.raises(GradcliError) as raised:
        Session.parse("x = = 1\ny = 2\nz = (\n", "a.grad")
    shown = diagnostic(raised.value)
    assert "a.grad:1:" in shown
    assert "a.grad:3:" in shown


def test_color() -> None:
    slip = Warned("W001", "slip", None, "mend")
    assert "\x1b[" not in warning(slip)
    assert "\x1b[1;33mwarning" in warning(slip, Style(color=True))
    place = Span(Source("a", "x + y"), 4, 5)
    error = GradcliError("E101", "no", span=place, labels=(Label(Span(place.source, 0, 1), "l"),))
    colored = diagnostic(error, Style(color=True))
    plain = diagnostic(error)
    for code in ("1;31", "1;34", "1", "0"):
        colored = colored.replace(f"\x1b[{code}m", "")
    assert colored == plain


def test_messages_are_escaped() -> None:
    assert escaped("a\x07b\u202ec\ud800\n\t") == "a\\x07b\\u202ec\\ud800\n\t"
    assert "\x07" not in usage_error("a\x07", None)
    assert block("x = ", "1\n2") == "x = 1\n    2"


REPEATED = {
    # (keys, one letter each: the stretches as start, length, times)
    "abcde": [],
    "xababababababy": [(1, 2, 6)],
    "abcdabcdabcd": [(0, 4, 3)],
    "aaaaaaaaaaa": [(0, 1, 11)],
    "abab": [],
    "xabbbbbbbbbbbbcabbbbbbbbbbbbcabbbbbbbbbbbbcy": [(1, 14, 3), (2, 1, 12)],
}


@pytest.mark.parametrize("keys", REPEATED)
def test_stretches_that_repeat_are_found(keys: str) -> None:
    found = [(each.start, each.length, each.times) for each in repeats(keys)]
    assert found == REPEATED[keys]
