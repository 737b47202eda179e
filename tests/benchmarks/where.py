"""`python -m tests.benchmarks --where NAME…`: where the rounds of a program spend their time."""

from __future__ import annotations

import cProfile
import time
from collections import defaultdict
from pathlib import PurePath
from typing import Any

import numpy as np

from gradcli.loops import compiled
from gradcli.session import Session
from gradcli.trace import codegen
from tests.benchmarks.work import Work

PARTS = {
    "interpreter": ("language", "session.py", "cli"),
    "engine": ("autograd", "state.py"),
    "library": ("nn", "optim", "data", "functional", "distributions"),
    "kernels": ("kernels", "native", "arrays", "ops"),
}
"""Which folders of gradcli make which part."""


def where(work: Work, rounds: int) -> None:
    """Print the share of each part, by the processor's time of one thread under a profiler, which
    makes much of small functions. What only a first run does is left out.
    """
    profile, text = cProfile.Profile(time.process_time), work.text(rounds)

    def run() -> None:
        for _ in Session(lambda event: None).run(text, work.name):
            pass

    original = vars(compiled)["functions_of"]
    vars(compiled)["functions_of"] = _with_visible_ufuncs
    try:
        run()
        profile.runcall(run)
    finally:
        vars(compiled)["functions_of"] = original
    spent: dict[str, float] = defaultdict(float)
    for row in profile.getstats():
        spent[_part(row.code)] += row.inlinetime
    total = sum(spent.values())
    ordered = sorted(spent.items(), key=lambda item: -item[1])
    shares = [f"{part} {seconds / total:.0%}" for part, seconds in ordered]
    print(f"{work.name:<20}{total / rounds * 1e3:>9.3f} ms  {', '.join(shares)}", flush=True)


def _with_visible_ufuncs(trace: Any) -> Any:
    """Compiled code in which the profiler sees ufuncs, which are no functions to it."""
    functions = codegen.functions_of(trace)
    namespace = functions[1].__globals__
    namespace.update({k: _visible(v) for k, v in namespace.items() if isinstance(v, np.ufunc)})
    return functions


def _visible(ufunc: Any) -> Any:
    def kernel(*operands: Any) -> Any:
        return ufunc(*operands)

    return kernel


def _part(code: Any) -> str:
    if isinstance(code, str):  # of a function in C
        return "kernels" if "numpy" in code or "_core" in code else "Python's own functions"
    file = code.co_filename
    if file == __file__:
        return "kernels"
    if file.startswith("<"):
        return "compiled loop" if file == "<compiled loop>" else "engine"
    folders = PurePath(file).parts
    if "gradcli" not in folders:
        return "kernels" if {"numpy", "scipy"} & set(folders) else "Python's own functions"
    inside = folders[len(folders) - folders[::-1].index("gradcli") :]
    if "codegen" in inside:
        return "engine"
    return next((part for part, made_of in PARTS.items() if inside[0] in made_of), "the rest")
