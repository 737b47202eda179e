"""A plugin of pytest: programs with what they print are tests, and gradients made by hand are held
against gradcli's.

It is loaded with every run of pytest where gradcli is installed, so it imports nothing of gradcli
before a test needs it.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

CheckGradients = Callable[..., None]

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")

_ROUNDING = 1e-5
"""How far apart two numbers may be that are alike: kernels differ from processor to processor."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "gradcli_files", "patterns of programs that are tests, such as *.grad", type="args"
    )
    parser.addini("gradcli_args", "further words for `gradcli run` of each program", type="args")
    parser.getgroup("gradcli").addoption(
        "--gradcli-record",
        action="store_true",
        help="write what the programs print beside them, instead of comparing it",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A program of `gradcli_files`, or one that the command line of pytest names."""
    patterns = parent.config.getini("gradcli_files")
    named = file_path.suffix == ".grad" and parent.session.isinitpath(file_path)
    if not named and not any(fnmatch(file_path.name, each) for each in patterns):
        return None
    collector: pytest.Collector = _File.from_parent(parent, path=file_path)
    return collector


class _File(pytest.File):
    def collect(self) -> Iterable[pytest.Item]:
        yield _Program.from_parent(self, name=self.path.stem)


class _Program(pytest.Item):
    """A program, run as `gradcli run` in its folder. Beside `NAME.grad` stand `NAME.out` with what
    it prints, `NAME.err` with what it puts on standard error, where it fails, and `NAME.args` with
    further words.
    """

    def runtest(self) -> None:
        from gradcli.cli.main import run  # lazy: start-up: of every pytest

        words = [*self.config.getini("gradcli_args"), *shlex.split(self._beside(".args") or "")]
        out, err = io.StringIO(), io.StringIO()
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with contextlib.chdir(self.path.parent), streams[0], streams[1]:
            code = run(["run", self.path.name, "--color", "never", *words])
        self._compare(out.getvalue(), err.getvalue(), code)

    def _beside(self, suffix: str) -> str | None:
        path = self.path.with_suffix(suffix)
        return path.read_text(encoding="utf-8") if path.exists() else None

    def _compare(self, out: str, err: str, code: int) -> None:
        if self.config.getoption("gradcli_record"):
            for suffix, text in ((".out", out), (".err", err if code else "")):
                path = self.path.with_suffix(suffix)
                if text or suffix == ".out":
                    path.write_text(text, encoding="utf-8")
                else:
                    path.unlink(missing_ok=True)
            return
        expected, expected_error = self._beside(".out"), self._beside(".err")
        if expected is None and expected_error is None:
            raise Different(
                f"{self.path.stem}.out is missing: --gradcli-record writes what the program prints"
            )
        if code and expected_error is None:
            raise Different(f"the program ended with exit code {code}\n{err}")
        if not code and expected_error is not None:
            raise Different(f"the program was to fail, and did not\n{expected_error}")
        _check_alike("standard output", expected or "", out)
        _check_alike("standard error", err if expected_error is None else expected_error, err)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """What differs, without a traceback of this file."""
        if isinstance(excinfo.value, Different):
            return f"{self.path.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class Different(Exception):
    """A program that does not do what stands beside it."""


def _check_alike(stream: str, expected: str, printed: str) -> None:
    """Raise `Different` at the first line that differs by more than the last digits of numbers."""
    wanted, printed_lines = expected.splitlines(), printed.splitlines()
    for number in range(max(len(wanted), len(printed_lines))):
        left, right = ("".join(lines[number : number + 1]) for lines in (wanted, printed_lines))
        if number >= min(len(wanted), len(printed_lines)) or not _alike(left, right):
            raise Different(
                f"line {number + 1} of {stream}\n  expected  {left}\n  found     {right}"
            )


def _alike(expected: str, printed: str) -> bool:
    """Whether two lines have the same words and, to rounding, the same numbers."""
    if expected == printed:
        return True
    if _NUMBER.sub("#", expected).split() != _NUMBER.sub("#", printed).split():
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(printed), strict=True)
    return all(_near(left, right) for left, right in pairs)


def _near(left: str, right: str) -> bool:
    """Whether two numbers are one and the same but for rounding; integers are to be equal."""
    if left == right:
        return True
    if not re.search(r"[.e]", left + right):
        return False
    digits = len(left.partition("e")[0].partition(".")[2])
    exponent = int(left.partition("e")[2] or 0)
    unit = 10.0 ** (exponent - digits)
    bound = max(unit * 1.01, _ROUNDING * max(abs(float(left)), abs(float(right))))
    return abs(float(left) - float(right)) <= bound


@pytest.fixture
def check_gradients() -> CheckGradients:
    """Fails the test where gradients made by hand are not those of a program:

        def test_my_loss(check_gradients):
            x = np.array([0.5, 1.0])
            check_gradients("loss = (tanh(x) ** 2).sum()", {"x": my_gradient(x)}, x=x)

    The first argument is the program, the second has a gradient for each input, as an array or as
    an expression of the program's names; without it the program's own gradients are checked
    against differences. All others are those of `gradcli.check`.
    """

    def check(text: str, gradients: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        __tracebackhide__ = True
        import gradcli  # lazy: start-up: of every pytest

        expected = {} if gradients is None else gradients
        if not isinstance(expected, Mapping):
            pytest.fail("the second argument has a gradient for each input: {'x': …}", pytrace=True)
        equals = {name: each for name, each in expected.items() if isinstance(each, str)}
        against = {name: each for name, each in expected.items() if name not in equals}
        try:
            answer = gradcli.check(text, equals=equals, against=against or None, **named)
            failure = "" if answer else answer.text
        except gradcli.GradcliError as error:
            failure = "\n".join(error.__notes__)
        except (TypeError, ValueError) as error:
            failure = str(error)
        if failure:
            pytest.fail(failure, pytrace=True)

    return check
