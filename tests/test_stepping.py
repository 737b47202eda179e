"""`.step`: a walk through a backward pass, driven by lines of a pipe."""

from __future__ import annotations

import pytest

from tests.command_line import CommandLine

_PROGRAM = "x = tensor([1., 2.], requires_grad=True)\ny = (x * x + x).sum()\n"


class Walk:
    """Walks inside the test process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.command = CommandLine(capsys)

    def __call__(self, *lines: str, start: str = ".step y") -> tuple[str, str]:
        """What a walk shows, and what it says beside that."""
        shown = self.command(stdin="\n".join([_PROGRAM + start, *lines, ""]))
        return shown.out, shown.err


@pytest.fixture
def walk(capsys: pytest.CaptureFixture[str]) -> Walk:
    return Walk(capsys)


def test_forth_and_back(walk: Walk) -> None:
    out, _ = walk("n", "", "b", "q")
    assert [line for line in out.splitlines() if line.startswith("step ")] == [
        "step 1 of 4, stdin:2:5",
        "step 2 of 4, stdin:2:6",
        "step 3 of 4, stdin:2:6",
        "step 2 of 4, stdin:2:6",
    ]


def test_a_step_shows_what_came_in_and_what_was_passed_on(walk: Walk) -> None:
    out, _ = walk("3", "q")
    assert (
        " 3. MulBackward0         x * x\n"
        "       grad                     tensor([1., 1.])\n"
        "       [0] → AccumulateGrad  x  tensor([1., 2.])\n"
        "       [1] → AccumulateGrad  x  tensor([1., 2.])\n"
        "       at AccumulateGrad  x: tensor([1., 1.]) + tensor([1., 2.]) = tensor([2., 3.])\n"
    ) in out


@pytest.mark.parametrize(
    ("name", "stop"),
    [("x", "step 4"), ("MulBackward0", "step 3"), ("Mul", "step 3"), ("x.grad", "step 4")],
)
def test_break_points(walk: Walk, name: str, stop: str) -> None:
    out, _ = walk(f"break {name}", "c", "q")
    assert f"break point at {name}\n{stop} of 4" in out


def test_a_break_point_is_taken_back(walk: Walk) -> None:
    out, err = walk("break Mul", "break Mul", "c", "q")
    assert "no break point at Mul any more\nstep 4 of 4" in out
    assert "this is the last step" in err


def test_gradients_so_far(walk: Walk) -> None:
    out, _ = walk("g", "4", "g", "q")
    assert "no gradient has reached a leaf yet" in out
    assert out.endswith("x.grad = tensor([3., 5.])\n")


def test_all_steps_with_the_one_at_hand(walk: Walk) -> None:
    out, _ = walk("2", "break x", "l", "q")
    assert out.splitlines()[-4:] == [
        "   1. y  SumBackward0      y = (x * x + x).sum()",
        "→  2. AddBackward0         x * x + x",
        "   3. MulBackward0         x * x",
        " * 4. x.grad = tensor([3., 5.])",
    ]


def test_the_session_goes_on_and_no_gradient_has_changed(walk: Walk) -> None:
    out, _ = walk("n", "q", "print(x.grad)", "y.backward()", "print(x.grad)")
    assert out.endswith("None\ntensor([3., 5.])\n")


def test_the_walk_ends_with_the_input(walk: Walk) -> None:
    out, err = walk("n")
    assert "step 2 of 4" in out
    assert err == ""


def test_a_seed(walk: Walk) -> None:
    out, _ = walk("q", start="z = x * 3\n.step z [1., 10.]")
    assert "grad                     tensor([ 1., 10.])" in out


@pytest.mark.parametrize(
    ("start", "code"),
    [(".step v", "E101"), ("c = x.detach()\n.step c", "E402")],
)
def test_what_cannot_be_walked(walk: Walk, start: str, code: str) -> None:
    assert f"error[{code}]" in walk(start=start)[1]


def test_slips_show_the_keys(walk: Walk) -> None:
    out, err = walk("zz", "break Mull", "q")
    assert "n [COUNT]   the next step" in out
    assert "did you mean `Mul`?" in err
