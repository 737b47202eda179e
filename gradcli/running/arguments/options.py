"""The options that one-shot and batch share, as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli.limits import ELEMENTS, STEPS, Limits
from gradcli.record import Record
from gradcli.running.process.interruption import default_memory

if TYPE_CHECKING:
    from gradcli.arrays.files.recording import Recording
    from gradcli.recorded.watched import Watched
    from gradcli.running.recordings.focus import Focus

FORMATS = ("text", "json", "jsonl", "table")

PICTURES = ("mermaid", "dot", "svg", "html")
"""Formats of the graph itself."""

DRAWN = (".svg", ".png", ".html")
"""Suffixes of files that `-o` draws the graph in."""

COLLECTED = (".npz", ".safetensors", ".parquet")
"""Suffixes of files that `-o` collects the results of many records in."""

TABLES = ("markdown", "latex")
"""Formats of the ledger as a table for a text or a paper."""

FORMAT_OF = {
    ".json": "json", ".svg": "svg", ".png": "svg", ".html": "html", ".md": "markdown",
    ".tex": "latex",
}  # fmt: skip
"""What a file of a suffix holds, a PNG the pixels of an SVG; `text` for all others."""

TRACES = ("tree", "values", "next", "steps")

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


def is_device(text: str) -> bool:
    """Whether a text names a device that tensors can be on."""
    kind, colon, number = text.partition(":")
    return text == "cpu" or (kind == "cuda" and (not colon or number.isdecimal()))


_UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("KMGT", 1)
    for ending, base in (("B", 1000), ("IB", 1024))
}


def read_size(text: str) -> int | None:
    """The bytes that a size such as `500MB`, `1.5G` or `2GiB` stands for, None if it is none."""
    number = text.rstrip(" abBgGiIkKmMtT")
    unit = text[len(number) :].strip().upper()
    try:
        size = float(number) * _UNITS[unit]
        return int(size) if size >= 1 else None
    except (KeyError, ValueError, OverflowError):
        return None


def limits_of(parameters: dict[str, Any]) -> Limits:
    """The limits that the options set, taken out of them; defaults for the others."""
    memory = parameters.pop("max_memory", None)
    return Limits(
        elements=parameters.pop("max_elements", None) or ELEMENTS,
        steps=parameters.pop("max_steps", None) or STEPS,
        memory=default_memory() if memory is None else memory,
        timeout=parameters.pop("timeout", None),
        files=not parameters.pop("sandbox", False),
    )


class Sweep(Record):
    """How the records of `--inputs` are run.

    Attributes:
        chunk: the records that a process gets at a time, None to leave that to gradcli.
        shard: the share of the records that is run: the i-th of n, from 1.
        resume: a file of results that the run goes on with.
        manual_seed_per_record: whether each record has random numbers of its own.
        reduce: `sum` or `mean` of the results of all records, None for each result.
        cluster: `local:N`, or the address of a scheduler of Dask; None for processes of this one.
    """

    chunk: int | None = None
    shard: tuple[int, int] | None = None
    resume: str | None = None
    manual_seed_per_record: bool = False
    reduce: str | None = None
    cluster: str | None = None


class Options:
    """What the command line asks for.

    Attributes:
        seed: the gradient that backward starts from, as a text or, from Python, an array; None for
            1.
        of: the name of the output, None for the tensor assigned last.
        wrt: the inputs whose gradients are wanted, None for all.
        trace: one of `TRACES`, `none`, or None where nothing was said.
        trace_depth: how many levels of the tree are shown, None for all.
        format: how the result is printed, one of `FORMATS` or `PICTURES`.
        precision: the digits behind the point of printed tensors, None for 4.
        full: whether large tensors are printed whole.
        retries: how often a record or file is tried again whose process ended.
        sweep: how the records of `inputs` are run.
        dtype: the dtype of new floating tensors and of floating arrays from files; None leaves
            those as they are.
        manual_seed: what random numbers start from, None where nothing was said.
        no_compiled_loops: whether every loop and backward pass is interpreted.
        quiet: whether traces, warnings and notes are kept back.
        script: the words behind `--`, which are the script's own.
        recording: the recording whose program runs, None for other programs.
        graph_alone: whether a recording's program runs for its graph, without numbers.
        focus: the operation of a recording that alone is asked about, None for the whole program.
        watched: what `record --watch` wrote, which has no program; None for all else.
        explain_loops: whether it is said what became of the loops that ran often.
        aspect: the width of a picture over its height, None for what its layout gives.
        fold: the modules that are one box in a picture, as paths such as `net.0`.
        expand: whether each repetition of a loop is drawn, in a picture and in a tree.
        saved: whether it is shown what nodes saved for the backward pass.
        no_header: whether a `.csv` has no names of columns.
        prints: whether the result is printed; one that goes to a file only where a format or a
            trace was named too.
    """

    graph_alone = False
    focus: Focus | None = None
    watched: Watched | None = None

    def __init__(
        self,
        *,
        seed: Any = None,
        of: str | None = None,
        wrt: str | None = None,
        trace: str | None = None,
        no_trace: bool = False,
        trace_depth: int | None = None,
        json: bool = False,
        format: str | None = None,
        precision: int | None = None,
        full: bool = False,
        inputs: str | None = None,
        jobs: int = 1,
        retries: int = 2,
        sweep: Sweep | None = None,
        output: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        manual_seed: int | None = None,
        no_compiled_loops: bool = False,
        quiet: bool = False,
        keep_going: bool = False,
        explain_loops: bool = False,
        fold: Sequence[str] = (),
        aspect: float | None = None,
        expand: bool = False,
        saved: bool = False,
        no_header: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.seed, self.of = seed, of
        self.wrt = None if wrt is None else [name.strip() for name in wrt.split(",")]
        if trace is None and trace_depth is not None:
            trace = "tree"
        self.trace = "none" if no_trace else trace
        self.trace_depth = trace_depth
        if inputs is not None:  # a document on a line per record
            json, format = True, "jsonl"
        self.prints = output is None or json or format is not None or (trace is not None)
        self.format = format or ("json" if json else "text")
        self.precision = precision
        self.full = full
        self.inputs = inputs
        self.jobs = jobs
        self.retries = retries
        self.sweep = sweep or Sweep()
        self.output = output
        self.dtype = None if dtype is None else DTYPES[dtype]
        self.device = None if device == "cpu" else device
        self.manual_seed = manual_seed
        self.no_compiled_loops = no_compiled_loops
        self.quiet, self.keep_going = quiet, keep_going
        self.explain_loops = explain_loops
        self.fold, self.expand, self.aspect, self.saved = fold, expand, aspect, saved
        self.no_header = no_header
        self.limits = limits or Limits()
        self.script: list[str] = []
        self.recording: Recording | None = None

    @property
    def json(self) -> bool:
        """Whether the result is printed as JSON, and what the program prints is part of it."""
        return self.format in ("json", "jsonl")

    @property
    def wants_result(self) -> bool:
        """Whether anything beyond what the program itself prints is asked for."""
        asked: list[Any] = [self.seed, self.of, self.wrt, self.output]
        return self.format != "text" or any(each is not None for each in asked) or self.traces

    @property
    def traces(self) -> bool:
        """Whether a trace is asked for."""
        return self.trace not in (None, "none")

    @property
    def draws(self) -> bool:
        """Whether the file of the result is a picture."""
        return (self.output or "").endswith(DRAWN)

    @property
    def steps(self) -> bool:
        """Whether the result is a page that steps through both passes."""
        return self.format == "html" or (self.output or "").endswith(".html")

    @property
    def draws_shapes(self) -> bool:
        """Whether it is the graph of a recording alone that is drawn: where it has no numbers, or
        very many. A page that steps has numbers.
        """
        recording = self.recording
        if recording is None or self.trace == "values" or self.of is not None:
            return False
        suffix = (self.output or "").rpartition(".")[2]
        is_picture = self.format in ("mermaid", "dot", "svg") or suffix in ("svg", "png")
        return is_picture and not self.steps and not (recording.has_data and recording.is_small)

    @property
    def keeps_arrays(self) -> bool:
        """Whether a run over records collects arrays, and prints no line for each."""
        return self.inputs is not None and (
            self.output is not None or self.sweep.reduce is not None
        )

    @property
    def record(self) -> str:
        """What the session has to record for it."""
        draws = (self.format in PICTURES or self.draws) and not self.draws_shapes
        if draws or self.trace == "values":
            return "all"
        return "steps" if self.trace == "steps" else "graph"
