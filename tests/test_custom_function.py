"""Custom functions beyond what `tests/programs/custom_functions` shows: what they tell a recorder
and a trace, their errors with code and place, and what they keep alive.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from gradcli.autograd.recording.recorder import Arrival, Step
from gradcli.autograd.recording.trace_recorder import TraceRecorder
from tests.running import invoke, run
from tests.test_recording import recorded

CUBE = """\
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x ** 3 * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * grad * ctx.scale, None


"""


def test_a_recorder_sees_the_call_and_the_step() -> None:
    program = CUBE + "x = tensor([1., 2.], requires_grad=True)\ny = Cube.apply(x, 2)\n"
    session, recorder = recorded(program + "y.sum().backward()\n")
    assert isinstance(recorder, TraceRecorder)
    assert recorder.events is not None
    values = session.interpreter.values
    call = next(each for each in recorder.calls if each.op.name == "Cube")
    assert call.op.node_name == "CubeBackward"
    assert call.op.inputs == ("0",)
    assert call.arguments == {"0": values["x"], "1": 2}
    assert call.output is values["y"]
    assert call.span is not None
    assert call.span.text == "Cube.apply(x, 2)"
    inside = [each for each in recorder.calls if any(name == "forward" for name, _ in each.stack)]
    assert [each.op.name for each in inside] == ["pow", "mul"]
    step = next(
        each
        for each in recorder.events
        if isinstance(each, Step) and each.node is values["y"].grad_fn
    )
    np.testing.assert_array_equal(step.grads[0], [1, 1])
    np.testing.assert_array_equal(step.fitted[0], [6, 24])
    arrival = next(each for each in recorder.events if isinstance(each, Arrival))
    np.testing.assert_array_equal(arrival.new, [6, 24])


def test_a_constant_operand_is_known_to_the_picture() -> None:
    program = """\
class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, n, a, b):
        return a + b
    @staticmethod
    def backward(ctx, g):
        return None, g, g
k = tensor([5., 6.])
y = Add.apply(1, tensor([1., 2.], requires_grad=True), k)
"""
    session, recorder = recorded(program, "graph")
    values = session.interpreter.values
    assert recorder.constants[values["y"].grad_fn] == {1: values["k"]}


def test_a_trace_shows_the_node() -> None:
    finished = invoke(CUBE + "y = Cube.apply(x, 2) + 1", "x=3", "--trace")
    assert finished.code == 0
    assert "x.grad = tensor(54.)" in finished.stdout
    assert "CubeBackward" in finished.stdout
    assert "Cube.apply(x, 2)" in finished.stdout


ERRORS = [
    # program after CUBE; code, class, text at the place, and what is labelled
    ("return_none(x)", "E101", "NameError", "return_none", ()),
    (
        "y = Cube.apply(x, 2).sum()\ny.backward()\ny.backward()",
        "E403",
        "RuntimeError",
        "ctx.saved_tensors",
        ("Cube.apply(x, 2)",),
    ),
    (
        "b = x * 1\ny = Cube.apply(b, 2).sum()\nb.mul_(2)\ny.backward()",
        "E404",
        "RuntimeError",
        "ctx.saved_tensors",
        ("Cube.apply(b, 2)",),
    ),
    (
        "class Few(Cube):\n  @staticmethod\n  def backward(ctx, g): return g\n"
        "Few.apply(x, 2).sum().backward()",
        "E410",
        "RuntimeError",
        None,
        ("Few.apply(x, 2)",),
    ),
    (
        "class Odd(Cube):\n  @staticmethod\n  def backward(ctx, g): return g, g\n"
        "Odd.apply(x, 2).sum().backward()",
        "E410",
        "RuntimeError",
        None,
        ("Odd.apply(x, 2)",),
    ),
    (
        "class Bad(Cube):\n  @staticmethod\n  def forward(ctx, x, k):\n"
        "    ctx.save_for_backward(k)\n    return x * k\nBad.apply(x, 2)",
        "E202",
        "TypeError",
        "Bad.apply(x, 2)",
        (),
    ),
    ("Cube.apply(x)", "E201", "TypeError", "Cube.apply(x)", ()),
    ("Cube()(x, 2)", "E202", "RuntimeError", "Cube()", ()),
    ("Cube.aply(x, 2)", "E102", "AttributeError", "Cube.aply", ()),
]


@pytest.mark.parametrize(("program", "code", "raises", "place", "labels"), ERRORS)
def test_errors_have_a_code_and_a_place(
    program: str, code: str, raises: str, place: str | None, labels: tuple[str, ...]
) -> None:
    error = run(f"{CUBE}x = tensor([1., 2.], requires_grad=True)\n{program}\n").error
    assert error is not None
    assert (error.code, error.raises) == (code, raises)
    assert error.span is not None
    if place is not None:
        assert error.span.text == place
    assert set(labels) <= {label.span.text for label in error.labels}


def test_an_error_in_backward_names_the_open_calls() -> None:
    program = CUBE.replace("* ctx.scale, None", "* ctx.scale.nothing, None")
    error = run(program + "y = Cube.apply(tensor(1., requires_grad=True), 2)\ny.backward()\n").error
    assert error is not None
    assert [name for name, _ in error.stack] == ["backward"]


def test_the_mode_is_restored_after_a_failure_in_forward() -> None:
    program = """\
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise ValueError("no")
x = tensor(1., requires_grad=True)
try:
    Fails.apply(x)
except ValueError:
    print(torch.is_grad_enabled(), (x * 2).requires_grad)
"""
    assert run(program).stdout == "True True\n"


def test_saved_values_are_let_go_after_backward() -> None:
    session, _ = recorded(
        CUBE
        + "x = tensor([1., 2.], requires_grad=True)\nb = x * 1\ny = Cube.apply(b, 2)\n"
        + "y.sum().backward()\n",
        "graph",
    )
    values = session.interpreter.values
    saved = weakref.ref(values.pop("b"))
    gc.collect()
    assert saved() is None


def test_an_output_that_is_saved_does_not_keep_its_node_alive() -> None:
    program = """\
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y
y = Exp.apply(tensor(1., requires_grad=True))
"""
    session, _ = recorded(program, "graph")
    gc.collect()
    gc.disable()
    try:
        node = weakref.ref(session.interpreter.values.pop("y").grad_fn)
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("seed", range(3))
def test_second_derivatives_are_those_of_the_ops(seed: int) -> None:
    """The function and the expression it stands for give the same bits, twice differentiated."""
    program = f"""\
{CUBE}
torch.manual_seed({seed})
x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
v, w = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
def second(f):
    (g,) = torch.autograd.grad(f(x), x, v, create_graph=True)
    return g, torch.autograd.grad(g, x, w)[0]
a, b = second(lambda x: Cube.apply(x, 1.5))
c, d = second(lambda x: x * x * x * 1.5)
print(torch.allclose(a, c), torch.allclose(b, d), torch.allclose(b, 9 * x * v * w))
"""
    assert run(program).stdout == "True True True\n"
