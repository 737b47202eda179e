"""The options that one-shot and batch share, as they were given."""

from __future__ import annotations

from typing import Any

TRACES = ("tree", "next", "steps")

DTYPES = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float32",
    "float64": "float64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
"""The words for `--dtype` and what they stand for."""


class Options:
    """What the command line asks for.

    Attributes:
        seed: the text of the gradient that backward starts from, None for 1.
        of: the name of the output, None for the tensor assigned last.
        wrt: the inputs whose gradients are wanted, None for all.
        trace: `tree`, `next`, `steps`, `none`, or None where nothing was said.
        json: whether the result is printed as JSON.
        output: the file that the result is written to, or None.
        dtype: the dtype of new floating tensors and of floating arrays from files; None leaves
            those as they are.
        quiet: whether traces, warnings and notes are kept back.
        keep_going: whether further files run after one failed.
    """

    __slots__ = (
        "dtype",
        "json",
        "keep_going",
        "of",
        "output",
        "quiet",
        "seed",
        "trace",
        "wrt",
    )

    def __init__(
        self,
        *,
        seed: str | None = None,
        of: str | None = None,
        wrt: str | None = None,
        trace: str | None = None,
        no_trace: bool = False,
        json: bool = False,
        output: str | None = None,
        dtype: str | None = None,
        quiet: bool = False,
        keep_going: bool = False,
    ) -> None:
        self.seed = seed
        self.of = of
        self.wrt = None if wrt is None else [name.strip() for name in wrt.split(",")]
        self.trace = "none" if no_trace else trace
        self.json = json
        self.output = output
        self.dtype = None if dtype is None else DTYPES[dtype]
        self.quiet = quiet
        self.keep_going = keep_going

    @property
    def wants_result(self) -> bool:
        """Whether anything beyond what the program itself prints is asked for."""
        asked: list[Any] = [self.seed, self.of, self.wrt, self.output]
        return self.json or any(each is not None for each in asked) or self.traces

    @property
    def traces(self) -> bool:
        """Whether a trace is asked for."""
        return self.trace not in (None, "none")

    @property
    def record(self) -> str:
        """What the session has to record for it."""
        return "steps" if self.trace == "steps" else "graph"
