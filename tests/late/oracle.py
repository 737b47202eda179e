"""The same programs under a Python that has PyTorch: what they print, the class of their error, and
what they leave, as numbers of four digits.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.events import Printed
from gradcli.session import Session
from tests.late.loop import Late, Verdict

_DRIVER = """
import builtins, contextlib, io, json, os, sys, warnings
answers = os.fdopen(os.dup(1), 'w')
os.dup2(2, 1)  # what libraries print there is no answer
import torch
warnings.simplefilter("ignore")
def plain(value, depth=0):
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return repr(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, torch.Tensor):
        flat = value.detach().reshape(-1).tolist()
        grad = plain(value.grad) if value.is_leaf else None
        return [str(value.dtype), list(value.shape), value.requires_grad,
                [plain(each) for each in flat[:50]], grad and grad[3]]
    if depth < 4 and isinstance(value, (list, tuple)):
        return [plain(each, depth + 1) for each in value]
    if depth < 4 and isinstance(value, dict):
        return [[plain(key), plain(each, depth + 1)] for key, each in value.items()]
    return None
known = {}
exec("from math import inf; from torch import *", known)  # as gradcli has them
known = {name: each for name, each in known.items() if not hasattr(builtins, name)}
for line in sys.stdin:
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    torch.manual_seed(0)
    names, printed, error = {"__name__": "__main__", **known}, io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(json.loads(line), "late", "exec"), names)
    except BaseException as failure:
        error = type(failure).__name__
    torch.set_grad_enabled(True)
    left = {name: plain(each) for name, each in names.items() if each is not known.get(name)}
    print(json.dumps([printed.getvalue(), error, left]), file=answers, flush=True)
"""


class _PyTorch:
    """A process that runs programs, begun anew where one of them ends it."""

    def __init__(self, python: str) -> None:
        self.command = [python, "-c", _DRIVER]
        self.process: subprocess.Popen[str] | None = None

    def answer(self, program: str) -> Any:
        """What a program came to; None where it ended the process."""
        pipe = subprocess.PIPE
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.close()
            return None
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def beside(python: str, lates: Sequence[Late]) -> Iterator[Verdict]:
    """Programs run compiled here, and by PyTorch there."""
    torch = _PyTorch(python)
    try:
        for late in lates:
            answer = torch.answer(late.program)
            compiled, found = _run(late.program)
            differs = [] if answer is None else list(_differences(found, answer))
            yield Verdict(late, compiled, differs)
    finally:
        torch.close()


def _run(program: str) -> tuple[int, list[Any]]:
    """How many iterations were compiled; what was printed, the error's class, what is left."""
    printed: list[str] = []
    session = Session(
        lambda event: printed.append(event.text) if isinstance(event, Printed) else None
    )
    error = ""
    try:
        for _ in session.run(program, "late"):
            pass
    except GradcliError as failure:
        error = failure.raises or ""
    compiled = sum(each.compiled_count for each in session.interpreter.hot_loops.values())
    with session.running():
        left = {name: _plain(each) for name, each in session.values.items() if name[:2] != "__"}
    return compiled, ["".join(printed), error, left]


def _plain(value: Any, depth: int = 0) -> Any:
    """A value as the driver gives it."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return repr(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Tensor):
        array = value.array
        flat = [_plain(each) for each in array.reshape(-1)[:50].tolist()]
        grad = _plain(value.grad) if value.grad_fn is None else None
        dtype = f"torch.{array.dtype.name}"
        return [dtype, list(array.shape), value.requires_grad, flat, grad and grad[3]]
    if depth < 4 and isinstance(value, (list, tuple)):
        return [_plain(each, depth + 1) for each in value]
    if depth < 4 and isinstance(value, dict):
        return [[_plain(key), _plain(each, depth + 1)] for key, each in value.items()]
    return None


def _differences(found: list[Any], expected: list[Any]) -> Iterator[str]:
    """How a program's end differs from PyTorch's, in words."""
    for what, here, there in zip(("printed", "error"), found, expected, strict=False):
        if here != there:
            yield f"{what}: {here[-200:]!r}, PyTorch {there[-200:]!r}"
    for name, there in expected[2].items():
        here = found[2].get(name)
        if here is not None and there is not None and here != there:
            yield f"{name}: {str(here)[:200]}, PyTorch {str(there)[:200]}"
