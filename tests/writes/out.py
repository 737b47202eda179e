"""`out=` for every function that has it: the calls of `out.txt`, each with a column for each tensor
given as `out`. Recorded again from PyTorch by `python tests/writes/out.py`.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import math
from pathlib import Path

TABLE = Path(__file__).with_name("out.txt")
"""The columns: empty, another shape, float64, int64, complex64, float16, one that requires grad."""

PROGRAM = """
def attempt(make):
    try:
        out = make()
        given = out if type(plain) is torch.Tensor else tuple(out)
        torch.manual_seed(0)
        result = call(given)
        pairs = zip(result, given) if type(given) is tuple else [(result, given)]
        print("ok" if all([a is b for a, b in pairs]) else "other", end=" ")
    except RuntimeError:
        print("RuntimeError", end=" ")
    except Exception as error:
        print(type(error).__name__, end=" ")

def like(plain, dtype, *sizes):
    if type(plain) is torch.Tensor:
        return torch.zeros(*sizes, dtype=dtype or plain.dtype)
    return [torch.zeros(*sizes, dtype=dtype or each.dtype) for each in plain]

torch.manual_seed(0)
plain = {plain}
call = lambda out: {call}
attempt(lambda: like(plain, None, 0))
attempt(lambda: like(plain, None, 7, 3))
attempt(lambda: like(plain, torch.float64, 0))
attempt(lambda: like(plain, torch.int64, 0))
attempt(lambda: like(plain, torch.complex64, 0))
attempt(lambda: like(plain, torch.float16, 0))
attempt(lambda: like(plain, None, 0).requires_grad_())
"""


def program(call: str) -> str:
    """The program that makes a call with each `out`, and prints what happened."""
    return PROGRAM.replace("{plain}", call).replace("{call}", f"{call.strip()[:-1]}, out=out)")


def rows() -> list[tuple[str, str]]:
    """Each call with what it does."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [(call.strip(), facts.strip()) for call, _, facts in (x.rpartition("#") for x in lines)]


def record() -> None:
    """Write the table with what PyTorch does."""
    import torch

    names = {name: each for name, each in vars(torch).items() if not hasattr(builtins, name)}
    names |= {"torch": torch, "F": torch.nn.functional, "inf": math.inf, "nan": math.nan}
    lines = []
    for call, _ in rows():
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(program(call), dict(names))
        lines.append(f"{call}  # {' '.join(shown.getvalue().split())}")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
