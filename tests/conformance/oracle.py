"""Runs programs under PyTorch: a script for a Python that has torch and need not have gradcli. With
the word `plain` torch's functions are there under their plain names, as in gradcli.

Reads programs from standard input, one JSON string per line, and writes for each a JSON object with
what it printed (addresses masked) and the class and line of the exception that ended it, or null.
"""

from __future__ import annotations

import builtins
import json
import math
import re
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import torch


def plain_names() -> dict[str, Any]:
    """Torch's names without `torch.`; Python's own come first."""
    named = {name: value for name, value in vars(torch).items() if not name.startswith("_")}
    own = {name: value for name, value in vars(builtins).items() if name in named}
    short = {"nn": torch.nn, "F": torch.nn.functional, "math": math}
    return {"__name__": "__main__", **short, **named, **own}


NAMES = {"torch": torch} | (plain_names() if "plain" in sys.argv else {})


def outcome(program: str) -> dict[str, Any]:
    """What a program prints and how it ends, each run from PyTorch's initial settings."""
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    torch.set_grad_enabled(True)
    torch.manual_seed(0)
    printed, error = StringIO(), None
    try:
        with redirect_stdout(printed), redirect_stderr(StringIO()):
            exec(compile(program, "program", "exec", dont_inherit=True), dict(NAMES))
    except Exception as failure:
        error = {"type": type(failure).__name__, "line": _line(failure)}
    return {"stdout": re.sub(r"0x[0-9a-f]+", "0x", printed.getvalue()), "error": error}


def _line(failure: BaseException) -> int | None:
    """The line of the program that was running when the exception was raised."""
    line = failure.lineno if isinstance(failure, SyntaxError) else None
    traceback = failure.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "program":
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for text in sys.stdin:
        print(json.dumps(outcome(json.loads(text))), flush=True)
