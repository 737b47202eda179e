"""`import gradcli`: programs run from Python, and questions about them."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.doors.python.inputs import Settings
from tests.command_line import ROOT, CommandLine

UNTYPED: Any = gradcli
"""For calls that a checker of types refuses."""


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


# --- importing ----------------------------------------------------------------------------------


def _fresh(program: str) -> str:
    """What a program prints in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PATH": ""},
    ).stdout


def test_importing_costs_no_more_than_the_version() -> None:
    program = "import sys\nbefore = set(sys.modules)\nimport gradcli\ngradcli.__version__\n"
    assert _fresh(program + "print(*sorted(set(sys.modules) - before))") == "gradcli\n"


def test_importing_leaves_the_threads_of_blas_alone() -> None:
    program = (
        "import os, gradcli\ngradcli.run('x * x', x=2)\nprint('OPENBLAS_NUM_THREADS' in os.environ)"
    )
    assert _fresh(program) == "False\n"


def test_a_new_process_shows_what_a_program_asks_to_see() -> None:
    program = "import gradcli\nprint(gradcli.run('y = x * x\\nexplain(y)', x=2).printed)"
    assert "x.grad = 4." in _fresh(program)


def test_results_and_errors_go_to_other_processes() -> None:
    result = gradcli.run("e = (a + b) * d", a=2, b=3, d=np.array([4.0, 5.0]), seed=[1.0, 2.0])
    there = pickle.loads(pickle.dumps(result))
    assert repr(there) == repr(result)
    assert there.to_dict() == result.to_dict()
    assert there.graph[1].name == "MulBackward0"
    np.testing.assert_array_equal(there.grads["d"], result.grads["d"])
    with pytest.raises(ValueError, match="in another process"):
        there.picture()
    with pytest.raises(gradcli.GradcliError) as raised:
        gradcli.run("y = x[5]", x=[1, 2])
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.code, str(error), error.exit_code) == ("E302", str(raised.value), 3)
    assert error.span is not None
    assert raised.value.span is not None
    assert error.span.text == raised.value.span.text
    assert error.__notes__ == raised.value.__notes__


def _run_there(program: str) -> gradcli.Result:
    return gradcli.run(program, x=[1.0, 2.0])


def test_a_pool_ends_with_the_error_of_its_worker() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_run_there, ["y = x.sum()"])[0].value == 3
        with pytest.raises(gradcli.GradcliError, match="position 5"):
            pool.map(_run_there, ["y = x[5]"])


def test_an_executor_ends_with_the_error_of_its_worker() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        failed = executor.submit(_run_there, "y = x[5]")
        with pytest.raises(gradcli.GradcliError, match="position 5"):
            failed.result()
        program = gradcli.compile("y = (x * x).sum()")
        assert executor.submit(program, x=[1.0, 2.0]).result().grads["x"].tolist() == [2, 4]


def test_seeds_are_arrays_of_any_size() -> None:
    seed = np.random.default_rng(0).normal(size=100_000)
    found = gradcli.run("y = x * 2", x=np.ones(100_000), seed=seed)
    np.testing.assert_array_equal(found.grads["x"], 2 * seed)
    assert gradcli.grad("y = x * 2", x=np.ones((0, 3)), seed=np.ones((0, 3)))["x"].shape == (0, 3)
    assert gradcli.check("y = x * 2", x=np.ones(3), seed=np.array([1.0, 2.0, 3.0]))
    assert gradcli.why("x.grad", "y = x * 2", x=np.ones(3), seed=np.array([1.0, 2.0, 3.0]))
    with pytest.raises(gradcli.GradcliError, match="shape"):
        gradcli.run("y = x * 2", x=np.ones(3), seed=np.ones(2))


def test_dir_lists_the_names() -> None:
    assert set(dir(gradcli)) == {*gradcli.__all__, "__version__"}


def test_every_name_is_there() -> None:
    for name in gradcli.__all__:
        assert getattr(gradcli, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        UNTYPED.nothing  # noqa: B018


# --- results ------------------------------------------------------------------------------------

INPUTS: list[tuple[str, dict[str, Any], Any, dict[str, Any]]] = [
    ("a * b", {"a": 2, "b": 3.0}, 6.0, {"a": 3.0, "b": 2.0}),
    ("(x * x).sum()", {"x": [1, 2]}, 5.0, {"x": [2.0, 4.0]}),
    ("(x * x).sum()", {"x": np.array([1.0, 2.0])}, 5.0, {"x": [2.0, 4.0]}),
    ("(x * x).sum()", {"x": np.float32(3)}, 9.0, {"x": 6.0}),
    ("(x * k).sum()", {"x": [1.0], "k": np.arange(1, 2)}, 1.0, {"x": [1.0]}),
    ("(x * x).sum()", {"x": np.arange(4.0).reshape(2, 2).T}, 14.0, {"x": [[0, 4], [2, 6]]}),
    ("(x * x).sum()", {"x": np.array([1, 2], ">f4")}, 5.0, {"x": [2.0, 4.0]}),
    ("x[0] * x[1]", {"x": "tensor([2., 5.])"}, 10.0, {"x": [5.0, 2.0]}),
    ("y * len(k)", {"y": 2.0, "k:const": ["a", "b"]}, 4.0, {"y": 2.0}),
    ("x ** k", {"x": 3.0, "k:const": 2}, 9.0, {"x": 6.0}),
    ("a * b", {"a": 2, "b": 3, "wrt": "a"}, 6.0, {"a": 3.0}),
    ("a * b", {"a": 2, "b": 3, "wrt": ["b"]}, 6.0, {"b": 2.0}),
    ("a * b", {"a": [1, 2], "b": 3, "seed": [1, 10]}, [3.0, 6.0], {"a": [3, 30], "b": 21}),
    ("y = a * a\nz = y + 1", {"a": 3, "of": "y"}, 9.0, {"a": 6.0}),
    ("s = 'text'", {}, "text", {}),
    ("[1, (tensor(2), None)]", {}, [1, (np.array(2), None)], {}),
    ("import numpy as np\nnp.arange(3)", {}, np.arange(3), {}),
]


@pytest.mark.parametrize(("program", "named", "value", "grads"), INPUTS)
def test_values_and_gradients(
    program: str, named: dict[str, Any], value: Any, grads: dict[str, Any]
) -> None:
    result = gradcli.run(program, **named)
    np.testing.assert_equal(result.value, value)
    assert set(result.grads) == set(grads)
    for name, expected in grads.items():
        assert isinstance(result.grads[name], np.ndarray)
        np.testing.assert_array_equal(result.grads[name], expected)


def test_an_array_keeps_its_dtype_and_is_not_written() -> None:
    given = np.array([1.0, 2.0])
    result = gradcli.run("with torch.no_grad():\n    x.mul_(2)\n(x * x).sum()", x=given)
    assert (given.tolist(), result.value.dtype) == ([1.0, 2.0], np.float64)
    assert result.grads["x"].tolist() == [4.0, 8.0]
    result.grads["x"][:] = 0


@pytest.mark.parametrize(
    ("asks", "shown"),
    [
        ("trace(y)", "MulBackward0"),
        ("explain(y)", "x.grad = 4."),
        ("derive(y)", "grad_x = 2 * x\n"),
        ("plot([1, 2, 4])", "└──"),
        ("sparkline([1, 2])", "▁█  1 … 2\n"),
        ("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()", ""),
    ],
)
def test_what_a_program_asks_to_see_is_printed(asks: str, shown: str) -> None:
    result = gradcli.run(f"y = x * x\n{asks}", x=2)
    assert shown in result.printed
    assert result.warnings == ()


def test_a_mapping_may_hold_more_than_the_program_uses() -> None:
    assert gradcli.grad("y = x * seed", {"x": 2.0, "unused": 1, "seed:const": 3}) == {"x": 3.0}


def test_the_graph_is_data() -> None:
    graph = gradcli.run("e = (a + b) * d", a=2, b=3, d=4).graph
    assert [node.name for node in graph] == ["MulBackward0", "AddBackward0"] + [
        "AccumulateGrad"
    ] * 3
    top = graph[1]
    assert (top.variable, top.shape, top.dtype) == ("e", (), "float32")
    assert top.place == gradcli.Place("program", 1, 5, "(a + b) * d")
    assert [edge.node for edge in top.edges] == [2, 5]
    assert [graph[5].variable, graph[5].value] == ["d", 4.0]
    constant = gradcli.run("y = x * 3", x=2).graph[1].edges[1]
    assert (constant.node, constant.constant) == (None, 3)
    assert len(gradcli.run("y = 3").graph) == 0


def test_a_result_is_what_the_command_line_prints(command: CommandLine) -> None:
    words = ["print('hi')\ne = (a + b) * d", "a=2", "b=3", "d=4", "--json"]
    result = gradcli.run(words[0], a=2, b=3, d=4)
    assert result.to_dict() == json.loads(command(*words).out)
    steps = json.loads(command(*words, "--trace=steps").out)
    assert json.loads(result.to_json(steps=True)) == steps
    assert result.printed == "hi\n"


def test_the_picture_is_that_of_the_command_line(command: CommandLine) -> None:
    result = gradcli.run("e = (a + b) * d", a=2, b=3, d=4)
    for format in ("svg", "html", "mermaid", "dot"):
        words = ["e = (a + b) * d", "a=2", "b=3", "d=4", "--format", format]
        assert result.picture(format) == command(*words).out
    assert result._repr_html_() == result.picture("svg")
    assert gradcli.run("y = 2")._repr_html_() is None


def test_what_got_no_gradient_is_missing_with_its_reason() -> None:
    result = gradcli.run("y = x.detach() * w", x=2.0, w=3.0)
    assert result.missing == {"x": "no recorded operation leads from it to y"}


def test_warnings_are_pythons() -> None:
    with pytest.warns(gradcli.GradcliWarning, match=r"program:1: \[W\d+\]") as caught:
        result = gradcli.run("((pred - y) ** 2).mean()", pred=[[1], [2]], y=[1, 2])
    assert len(result.warnings) == len(caught) == 1
    assert caught[0].filename == __file__


# --- programs that run often --------------------------------------------------------------------


def test_a_compiled_program_gives_what_a_run_gives() -> None:
    text = "import random\nprint(random.random(), rand(1))\nloss = ((x * w - 1) ** 2).sum()"
    program = gradcli.compile(text, manual_seed=3)
    assert program.names >= {"x", "w"}
    for x in (2.0, [1.0, 2.0]):
        once = gradcli.run(text, x=x, w=3.0, manual_seed=3)
        again = program(x=x, w=3.0)
        assert again.to_dict() == once.to_dict()
        np.testing.assert_equal(program.grad({"x": x, "w": 3.0, "more": 1}), once.grads)
    seeded = program(x=[1.0, 2.0], w=3.0, of="loss", dtype="float64", seed=2.0)
    assert (seeded.value.dtype, seeded.grads["w"]) == (
        np.float64,
        2 * program.grad(x=[1.0, 2.0], w=3.0)["w"],
    )


def test_runs_of_a_compiled_program_share_nothing() -> None:
    program = gradcli.compile("def f():\n    kept.append(1)\nkept = []\nf()\ny = x * len(kept)")
    assert [program(x=2.0).value for _ in range(3)] == [2.0, 2.0, 2.0]
    with pytest.raises(gradcli.GradcliError, match="two"):
        program(x="two")
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda x: found.append(program(x=x).value), args=(float(x),))
        for x in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(8))


def test_a_program_that_is_read_once_runs_in_less_time() -> None:
    text = "\n".join(f"x{n + 1} = x{n} * w + {n}" for n in range(20)) + "\nx20.sum()"
    program = gradcli.compile(text)

    def seconds(call: Callable[[], Any]) -> float:
        before = time.thread_time()
        call()
        return time.thread_time() - before

    # In turns, so that what else the machine does slows down both.
    read, anew = [], []
    for _ in range(30):
        read.append(seconds(lambda: program.grad(x0=1.0, w=0.5)))
        anew.append(seconds(lambda: gradcli.grad(text, x0=1.0, w=0.5)))
    assert min(read) < 0.8 * min(anew)


def _loss(x: Any, w: Any, power: int = 2, *, shift: float = 1.0) -> Any:
    y = x * w - shift

    def scaled(z: Any) -> Any:
        return z * math.sqrt(4.0)

    return scaled(y**power).sum()


def test_a_function_is_a_program() -> None:
    grads = gradcli.grad(_loss, x=[1.0, 2.0], w=3.0)
    assert grads["x"].tolist() == [24.0, 60.0]
    assert gradcli.compile(_loss).grad(x=[1.0, 2.0], w=3.0, power=1)["w"] == 6.0
    assert gradcli.check(_loss, x=[1.0, 2.0], w=3.0)


# --- structures ---------------------------------------------------------------------------------

LAYERS: dict[str, Any] = {
    "w": [np.array([1.0, 2.0]), np.float32(3)], "b": (np.array(1.0),), "size": 2, "name": "net",
}  # fmt: skip

LAYERED = "loss = ((p['w'][0] * p['w'][1] + p['b'][0]) ** p['size']).sum()"


def test_gradients_have_the_structure_of_their_input() -> None:
    result = gradcli.run(LAYERED, p=LAYERS)
    first = np.array([4.0, 7.0]) * 2
    expected = {
        "w": [first * 3, (first * [1, 2]).sum()],
        "b": (first.sum(),),
        "size": None,
        "name": None,
    }
    np.testing.assert_equal(result.grads, {"p": expected})
    assert [each["name"] for each in result.to_dict()["gradients"]] == [
        "p['w'][0]",
        "p['w'][1]",
        "p['b'][0]",
    ]
    np.testing.assert_equal(gradcli.grad(LAYERED, p=LAYERS, wrt=["p"]), {"p": expected})
    assert gradcli.grad(LAYERED + "\nq * q", p=LAYERS, q=2.0, of="loss", wrt="p").keys() == {"p"}
    session = gradcli.Session()
    session.run(LAYERED + "\nloss.backward()", p=LAYERS)
    np.testing.assert_equal(session.run("1").grads, {"p": expected})
    assert session.check("loss")
    assert LAYERS["w"][0].tolist() == [1.0, 2.0]


def test_questions_about_structures() -> None:
    assert gradcli.check(LAYERED, p=LAYERS)
    assert not gradcli.check(LAYERED, p=LAYERS, against={"p['w'][0]": np.ones(2)})
    assert "grad_p_w_1 =" in gradcli.derive(LAYERED, p=LAYERS).text
    assert "p['b'][0].grad = " in gradcli.explain(LAYERED, p=LAYERS).text


def test_an_array_of_a_structure_without_gradient_is_missing() -> None:
    result = gradcli.run(
        "y = p[0] * p[0].detach() * p[1].detach()", p=[np.array(2.0), np.array(3.0)]
    )
    np.testing.assert_equal(result.grads, {"p": [6.0, None]})
    assert list(result.missing) == ["p[1]"]


# --- types --------------------------------------------------------------------------------------

CALLS = """
import gradcli
reveal_type(gradcli.run("x", x=1, timeout=5, wrt=["x"], seed=[1.0]))
reveal_type(gradcli.compile("x", max_memory="1GB")(x=2).grads)
reveal_type(gradcli.explain("x", x=2.0))
gradcli.Session(manual_seed=0).run("x = 1")
gradcli.run("x", x=1, timeout="5")
gradcli.grad("x", x=1, sandbox="yes")
gradcli.check("x", x=1, order=3)
gradcli.compile("x", max_steps="5")
gradcli.Session(timeout="5")
gradcli.run(3)
"""


@pytest.mark.sweep  # the whole suite uses it, and its own types are checked as well
def test_the_library_is_typed(tmp_path: Path) -> None:
    """What mypy makes of a program of the user's: the package carries its types."""
    mypy = pytest.importorskip("mypy.api")
    program = tmp_path / "user.py"
    program.write_text(CALLS)
    options = ["--strict", "--follow-imports=silent", "--no-error-summary"]
    out, _, _ = mypy.run([str(program), *options, f"--cache-dir={os.devnull}"])
    lines = out.splitlines()
    wrong = [line.split(":")[1] for line in lines if "error:" in line]
    assert wrong == ["7", "8", "9", "10", "11", "12"], out
    types = [line.rpartition("is ")[2] for line in lines if "Revealed" in line]
    assert types == [
        '"gradcli.doors.python.result.Result"',
        '"dict[str, Any]"',
        '"gradcli.doors.python.questions.Answer"',
    ]
    assert (ROOT / "gradcli" / "py.typed").is_file()


def test_every_call_that_takes_inputs_names_the_settings() -> None:
    stub = ast.parse((ROOT / "gradcli" / "__init__.pyi").read_text())
    functions = [each for each in stub.body if isinstance(each, ast.FunctionDef)]
    for each in functions:
        settings = {argument.arg for argument in each.args.kwonlyargs}
        assert settings >= Settings.__annotations__.keys(), each.name
        own = inspect.signature(getattr(gradcli, each.name)).parameters
        assert settings - Settings.__annotations__.keys() == {
            name for name, one in own.items() if one.kind is inspect.Parameter.KEYWORD_ONLY
        }, each.name
    names = {
        each.asname for part in stub.body if isinstance(part, ast.ImportFrom) for each in part.names
    }
    assert {each.name for each in functions} | names >= set(gradcli.__all__)


# --- errors -------------------------------------------------------------------------------------


def test_an_error_has_its_code_and_its_place() -> None:
    with pytest.raises(gradcli.GradcliError) as caught:
        gradcli.run("y = x * x\nz = y @ w", x=2.0, w=3.0)
    error = caught.value
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.text) == (2, 5, "y @ w")
    assert (error.code, error.exit_code) == ("E301", 3)
    assert " --> program:2:5" in error.__notes__[0]


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: gradcli.run("y = x +", x=2), "E001"),
    (lambda: gradcli.run("y = x * z", x=2), "E101"),
    (lambda: gradcli.run("y = x.detach()\ny.backward()", x=2), "E402"),
    (lambda: gradcli.run("x * 2", x=[1, 2]), "E401"),
    (lambda: gradcli.run("x * 2", x="1 +"), "E501"),
    (lambda: gradcli.run("x * 2", x="@none.npy"), "E502"),
    (lambda: gradcli.run("x * 2", x="@none.npy", sandbox=True), "E606"),
    (lambda: gradcli.run("load('x.npy')", sandbox=True), "E606"),
    (lambda: gradcli.run("while True: pass", timeout=0.05), "E607"),
    (lambda: gradcli.run("while True: pass", max_steps=10), "E605"),
    (lambda: gradcli.run("zeros(11)", max_elements=10), "E602"),
    (lambda: gradcli.run("zeros(9 * 10**7) + zeros(9 * 10**7)", max_memory="20MB"), "E602"),
    (lambda: gradcli.explain("y = 2"), "E402"),
    (lambda: gradcli.derive("y = x +", x=1), "E001"),
    (lambda: gradcli.why("x.grad", "y = x + q", x=1), "E101"),
    (lambda: gradcli.blame("y = x + q", x=1), "E101"),
    (lambda: gradcli.check("y = 2"), "E402"),
    (lambda: gradcli.Session(sandbox=True).run("load('x.npy')"), "E606"),
    (lambda: gradcli.Session(max_steps=9).run("while True: pass"), "E605"),
]


@pytest.mark.parametrize(("call", "code"), ERRORS)
def test_errors(call: Callable[[], Any], code: str) -> None:
    with pytest.raises(gradcli.GradcliError) as caught:
        call()
    assert caught.value.code == code


MISUSES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: gradcli.run("x * x", x=2, y=3), TypeError, "does not use `y`"),
    (lambda: gradcli.run("x * x", x=2, sandbx=True), TypeError, "did you mean `sandbox`"),
    (lambda: gradcli.run("x * x", {"x": 1}, x=2), TypeError, "two values"),
    (lambda: gradcli.run("x * x", x=object()), TypeError, "`x` is of type object, and"),
    (lambda: gradcli.run("x * x", x=np.array(["a"])), ValueError, "PyTorch has not"),
    (lambda: gradcli.run("x * x", x=np.array([object()])), ValueError, "PyTorch has not"),
    (lambda: gradcli.run("x * x", {"x y": 1}), ValueError, "no NAME"),
    (lambda: UNTYPED.run("x * x", x=2, wrt=3), TypeError, "wrt is one name or several, not 3"),
    (lambda: UNTYPED.check("x * x", x=2, equals="x"), TypeError, "equals has an expression for"),
    (lambda: gradcli.run("x * x", x=2, of="z"), ValueError, "^of: the program has no `z`"),
    (lambda: UNTYPED.run("x * x", x=2, dtype="int8"), ValueError, "dtype is one of"),
    (lambda: gradcli.run("x * x", x=2, device="tpu"), ValueError, "device is"),
    (lambda: gradcli.run("x * x", x=2, timeout=float("nan")), ValueError, "timeout"),
    (lambda: gradcli.run("x * x", x=2, max_steps=0), ValueError, "max_steps"),
    (lambda: gradcli.run("x * x", x=2, max_memory="much"), ValueError, "500MB"),
    (lambda: UNTYPED.derive("x * x", x=2, target="c"), ValueError, "target is one of"),
    (lambda: UNTYPED.check("x * x", x=2, order=3), ValueError, "order is 1 or 2"),
    (lambda: gradcli.check("x * x", x=2, against={"z": 1}), ValueError, "no input `z`"),
    (lambda: gradcli.why("x + 1", "x * x", x=2), ValueError, "`x . 1` is no question"),
    (lambda: gradcli.run("x * x", x=2).picture("png"), ValueError, "a picture is one of"),
    (lambda: gradcli.run("2").picture(), ValueError, "no graph"),
    (lambda: UNTYPED.Session(x=2), TypeError, "`x` is none of"),
    (lambda: gradcli.Session().run("x * x", x=2, timeout=1), TypeError, "the whole session"),
    (lambda: UNTYPED.compile("x * x", x=2), TypeError, "`x` is none of"),
    (lambda: gradcli.compile("x * x", timeout=-1), ValueError, "timeout"),
    (lambda: gradcli.compile("x * x")(y=2), TypeError, "does not use `y`"),
    (
        lambda: UNTYPED.run(3, x=2),
        TypeError,
        "a text or a Python function, and this is of type int",
    ),
    (lambda: gradcli.run(lambda x: x, x=2), TypeError, "no plain `def`"),
    (lambda: gradcli.run(_of_a_name, x=2), TypeError, "`_of_a_name` reads `ROOT` from around"),
    (lambda: gradcli.run(_of_many, x=2), TypeError, "names that inputs can have"),
    (lambda: gradcli.run(_closure(3), x=2), TypeError, "reads `k` from around it"),
    (lambda: gradcli.run(_decorated, x=2), TypeError, "no plain `def`"),
    (lambda: gradcli.run(_without_source(), x=2), TypeError, "in no file"),
]


def _of_a_name(x: Any) -> Any:
    return x if ROOT else None


def _of_many(*x: Any) -> Any:
    return x[0]


def _closure(k: int) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return x * k

    return inner


@functools.cache
def _cached(x: Any) -> Any:
    return x


_decorated: Any = _cached.__wrapped__


def _without_source() -> Any:
    names: dict[str, Any] = {}
    exec("def typed(x):\n    return x", names)
    return names["typed"]


@pytest.mark.parametrize(("call", "kind", "part"), MISUSES)
def test_misuse(call: Callable[[], Any], kind: type[Exception], part: str) -> None:
    with pytest.raises(kind, match=part):
        call()


HELPS: list[tuple[Callable[[], Any], str]] = [
    (lambda: gradcli.run("x * 2", x=[1, 2]), "start from: seed='ones(2)'"),
    (lambda: gradcli.run("zeros(11)", max_elements=10), "`max_elements=100` raises it"),
    (lambda: gradcli.run("while True: pass", timeout=0.05), "`timeout=0.5` gives it"),
]


@pytest.mark.parametrize(("call", "part"), HELPS)
def test_helps_name_arguments(call: Callable[[], Any], part: str) -> None:
    with pytest.raises(gradcli.GradcliError) as caught:
        call()
    assert caught.value.help is not None
    assert part in caught.value.help
    assert part in caught.value.__notes__[0]


def test_paths_are_files_of_programs_and_recordings(tmp_path: Path) -> None:
    (tmp_path / "square.grad").write_text("y = x * x\n")
    assert gradcli.run(tmp_path / "square.grad", x=3.0).grads["x"] == 6
    recording = ROOT / "tests" / "recordings" / "row.gradrun"
    assert "Backward0" in gradcli.explain(recording).text
    with pytest.raises(gradcli.GradcliError, match="none") as caught:
        gradcli.run(tmp_path / "none.grad")
    assert caught.value.code == "E503"


def test_another_thread_runs_programs_but_keeps_no_time() -> None:
    found: list[Any] = []

    def work(**settings: Any) -> None:
        try:
            found.append(gradcli.run("x * x", x=3.0, **settings).value)
        except gradcli.GradcliError as error:
            found.append(error.code)

    for settings in ({}, {"timeout": 5}):
        thread = threading.Thread(target=work, kwargs=settings)
        thread.start()
        thread.join()
    assert found == [9.0, "E607"]


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    result = gradcli.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx * x", x=2)
    gradcli.explain("print(1)\nx * x", x=2)
    assert result.printed == "out\nerr\n"
    assert capsys.readouterr() == ("", "")


# --- questions ----------------------------------------------------------------------------------

PROGRAM = "y = (x.detach() * w + 1 / z).sum()"

QUESTIONS: list[tuple[Callable[..., gradcli.Answer], list[str]]] = [
    (gradcli.explain, ["explain"]),
    (lambda *given, **named: gradcli.explain(*given, saved=True, paths="w", **named),
     ["explain", "--saved", "--paths", "w"]),
    (gradcli.flow, ["explain", "--flow"]),
    (gradcli.derive, ["derive"]),
    (lambda *given, **named: gradcli.why("x.grad", *given, **named), ["why", "x.grad"]),
    (gradcli.blame, ["blame"]),
    (gradcli.check, ["check"]),
    (lambda *given, **named: gradcli.check(*given, equals={"w": "x"}, **named),
     ["check", "--equals", "w=x"]),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "words"), QUESTIONS)
def test_answers_are_those_of_the_command_line(
    command: CommandLine, ask: Callable[..., gradcli.Answer], words: list[str]
) -> None:
    answer = ask(PROGRAM, x=[1.0, 2.0], w=[3.0, 4.0], z=[1.0, 0.0])
    given = [PROGRAM, "x=[1,2]", "w=[3,4]", "z=[1,0]"]
    shown = command(*words, *given)
    assert (answer.text, answer.passed) == (shown.out, shown.code == 0)
    assert answer.data == json.loads(command(*words, "--json", *given).out)
    assert str(answer) == answer.text
    assert answer._repr_html_().startswith("<pre>")


def test_a_gradient_made_by_hand_is_held_against_the_right_one() -> None:
    right = np.array([2.0, 4.0])
    assert gradcli.check("(x * x).sum()", x=[1.0, 2.0], against={"x": right})
    wrong = gradcli.check("(x * x).sum()", x=[1.0, 2.0], against={"x.grad": right / 2})
    assert not wrong
    assert "2" in wrong.text


def test_an_error_brings_what_could_be_answered() -> None:
    with pytest.raises(gradcli.GradcliError) as caught:
        gradcli.why("x.grad", "y = x.detach() * 2\ny.backward()", x=2.0)
    assert any(note.startswith("x.grad = None\n") for note in caught.value.__notes__)


# --- sessions -----------------------------------------------------------------------------------


def test_a_session_keeps_its_values() -> None:
    session = gradcli.Session()
    first = session.run("w = tensor([1., 2.], requires_grad=True)\ny = (w * x).sum()", x=[3.0, 4.0])
    assert (first.name, first.value, first.grads) == ("y", 11.0, {})
    assert session.grad("y", ["w"])["w"].tolist() == [3.0, 4.0]
    assert set(session.grad("y")) == {"w", "x"}
    assert session.run("print('on'); y.backward()").printed == "on\n"
    assert session.run("_ = 1").grads["w"].tolist() == [3.0, 4.0]
    assert session.run("y + 1").value == 12.0
    assert session["_"] == 12.0
    assert ("y" in session, "q" in session, set(session) >= {"w", "x", "y"}) == (True, False, True)
    with pytest.raises(KeyError):
        session["q"]
    with pytest.raises(gradcli.GradcliError):
        session.run("q")
    assert session["y"] == 11.0
    session.reset()
    assert list(session) == []


def test_a_session_answers_questions() -> None:
    session = gradcli.Session()
    session.run("y = (x * x).sum()", x=[1.0, 2.0])
    session.run("z = y.detach() * 2")
    assert "x.grad = [2., 4.]" in session.explain("y").text
    assert session.derive("y").text.startswith("grad_x = 2 * x")
    assert session.why("x.requires_grad").text.startswith("x.requires_grad = True")
    assert session.blame("y")
    assert session.check("y")


def test_a_session_answers_after_a_name_got_two_values() -> None:
    """Each value holds from its entry on, and texts draw their random numbers there."""
    session = gradcli.Session()
    session.run("a = torch.rand(1).sum()\ny = x * a", x="randn(1)")
    first = session["y"].item()
    session.run("x = 7.0\nz = y.detach() * x * b", x=5.0, b="torch.rand(1).sum()")
    with pytest.raises(gradcli.GradcliError, match="`q` has no value"):
        session.run("q + y")
    found = session.run("t = z * c", c="torch.rand(1).sum()")
    told = session.explain("t").data
    assert told["output"]["value"] == found.value.tolist()
    assert session["x"] == 5.0
    assert f"{first:.4f}"[:5] in session.explain("y").text
    assert session.why("z.requires_grad").text.startswith("z.requires_grad = True")
    assert session.blame("t")
    assert "grad_b" in session.derive("z").text
    with pytest.raises(ValueError, match="`x` was given two values, and differences move one"):
        session.check("t")


def test_a_late_input_is_checked_where_it_holds() -> None:
    session = gradcli.Session()
    session.run("y = 3.0")
    session.run("z = (x * x).sum() * y", x=[1.0, 2.0])
    answer = session.check("z")
    assert answer.passed
    assert answer.data["inputs"][0]["name"] == "x"


def test_a_session_keeps_no_more_inputs_than_a_run_may_have() -> None:
    session = gradcli.Session(max_elements=10)
    for _ in range(3):
        session.run("y = (x * x).sum()", x=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(gradcli.GradcliError) as found:
        session.explain("y")
    assert found.value.code == "E602"


def test_sessions_share_nothing() -> None:
    one, other = gradcli.Session(manual_seed=1), gradcli.Session(manual_seed=1)
    first = [one.run("torch.rand(1)").value, one.run("torch.rand(1)").value]
    assert [other.run("torch.rand(1)").value for _ in range(2)] == first
    assert first[0] != first[1]
