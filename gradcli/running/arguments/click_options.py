"""The click options that commands share, the checks of options against each other, and
the completion of words in a shell, which is computed only when a shell asks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from gradcli.running.arguments.files import check_folder, check_output
from gradcli.running.arguments.options import (
    COLLECTED,
    DTYPES,
    FORMATS,
    PICTURES,
    TRACES,
    Options,
    Sweep,
    is_device,
    limits_of,
    read_size,
)
from gradcli.running.arguments.words import UsageError
from gradcli.running.process.terminal import ERROR_FORMATS, Terminal
from gradcli.state import active

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


# --- completion by the shell ----------------------------------------------------------------------


def topics(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """What `gradcli help` can be asked for."""
    from gradcli.ops.lookup import namespace_of, table_of  # lazy: start-up: all ops
    from gradcli.show.help.ops import load  # lazy: start-up: all ops
    from gradcli.show.help.pages import names  # lazy: start-up: all ops

    matches = names()
    prefix = incomplete.rpartition(".")[0]
    namespace = namespace_of(prefix) if prefix else None
    if namespace is not None:  # full names in the namespace that was begun: `F.`, `Tensor.`, `nn.`
        matches = [*matches, *(f"{prefix}.{name}" for name in table_of(namespace, load))]
    return _starting(incomplete, matches)


def ops(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Names of ops."""
    from gradcli.show.help.ops import load  # lazy: start-up: all ops

    return _starting(incomplete, [*load("torch"), *load("torch.nn.functional")])


def values(
    _ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Files, also behind `NAME=@`."""
    from glob import escape, glob  # lazy: start-up: click's completion

    from click.shell_completion import CompletionItem  # lazy: start-up: click's completion

    head, at, path = incomplete.partition("=@")
    if not at:
        return [CompletionItem(incomplete, type="file")]
    matches = sorted(glob(f"{escape(path)}*"))
    return [
        CompletionItem(f"{head}=@{each}{os.sep if os.path.isdir(each) else ''}") for each in matches
    ]


def _starting(incomplete: str, names: Iterable[str]) -> list[CompletionItem[str]]:
    from click.shell_completion import CompletionItem  # lazy: start-up: click's completion

    return [
        CompletionItem(name)
        for name in dict.fromkeys(names)
        if name.startswith(incomplete) and not name.startswith("_")
    ]


# --- options --------------------------------------------------------------------------------------


Decorator = Callable[[Any], Any]


def _option(names: str, help: str, metavar: str | None = None, **settings: Any) -> Decorator:
    """An option by its names, separated by blanks."""
    return click.option(*names.split(), help=help, metavar=metavar, **settings)


def _flag(names: str, help: str, **settings: Any) -> Decorator:
    """An option without a value."""
    return _option(names, help, is_flag=True, **settings)


class _Number(click.FloatRange):
    """A number within bounds, by the name that a person gives it."""

    name = "number"


def _count(name: str, help: str, least: int = 1, most: int | None = None, **more: Any) -> Decorator:
    """An option of a whole number."""
    return _option(name, help, "N", type=click.IntRange(least, most), **more)


def _read(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of an option: what `read` makes of its value, or why that is none."""

    def callback(_ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(str(error), param=parameter) from None

    return callback


def _names(name: str, help: str, metavar: str) -> Decorator:
    """An option of names between commas; given again it adds to them."""

    def joined(_ctx: click.Context, _parameter: click.Parameter, value: Any) -> str | None:
        return ",".join(value) if value else None

    return _option(name, help, metavar, multiple=True, callback=joined)


def _size(text: str) -> int:
    """A size in bytes."""
    size = read_size(text)
    if size is None:
        raise ValueError(f"{text!r} is no size such as 500MB or 2GB")
    return size


def _aspect(text: str) -> float:
    """The width over the height that `16:9` asks for."""
    width, _, height = text.partition(":")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise ValueError(f"{text!r} is no width and height such as 16:9")
    ratio = int(width) / int(height)
    if not 1 / _NARROWEST <= ratio <= _NARROWEST:
        raise ValueError(f"of {text} one side is more than {_NARROWEST} times the other")
    return ratio


def _seconds(seconds: float) -> float:
    """A length of time, which also holds for what the command reads; a range lets NaN through."""
    if math.isnan(seconds):
        raise ValueError("nan is no number of seconds")
    active.state.limits.timeout = seconds
    return seconds


def _sandbox(sandboxed: bool) -> bool:
    """Shut the gate before the command looks at its words."""
    active.state.limits.files = not sandboxed
    return sandboxed


def _device(text: str) -> str:
    """A device's name."""
    if not is_device(text):
        raise ValueError(f"{text!r} is none of cpu, cuda and cuda:N")
    return text


def _shard(text: str) -> tuple[int, int]:
    """A share, `2/8`."""
    one, slash, all = text.partition("/")
    if not (slash and one.isdecimal() and all.isdecimal() and 1 <= int(one) <= int(all)):
        raise ValueError(f"{text!r} is no share such as 2/8")
    return int(one), int(all)


def _cluster(text: str) -> str:
    """The address of a cluster."""
    kind, _, rest = text.partition(":")
    local = kind == "local" and rest.isdecimal() and 1 <= int(rest) <= _MOST_WORKERS
    if not local and not (kind in _PROTOCOLS and rest.startswith("//")):
        raise ValueError(f"{text!r} is no tcp://HOST:PORT or local:N")
    return text


_NARROWEST = 10
_PROTOCOLS = ("tcp", "tls", "ws", "wss", "ucx")
_MOST_WORKERS = 256

_LIMITS: list[Decorator] = [
    _option(
        "--timeout",
        "The longest that a program may run; no limit by default.",
        "SECONDS",
        type=_Number(0, 10**6, min_open=True),
        callback=_read(_seconds),
    ),
    _option(
        "--max-memory",
        "The memory that a program may take, as 500MB or 2GB; by default half of what there is, at"
        " most 4GB.",
        "SIZE",
        callback=_read(_size),
    ),
    _count("--max-elements", "The elements of one tensor, list or string; 100 million by default."),
    _count("--max-steps", "Loop rounds and calls; 10 million by default."),
    _flag("--sandbox", "Let the program read and write no files.", callback=_read(_sandbox)),
]

_OUTPUT: list[Decorator] = [
    _option("--seed", "The gradient that backward starts from.", "VALUE"),
    _names("--of", "The output: the tensor assigned last by default.", "NAME"),
    _names("--wrt", "The inputs whose gradients are wanted.", "A,B"),
]

_RESULT: list[Decorator] = [
    _option("--trace", "Print the backward graph in this style.", type=click.Choice(TRACES)),
    _count("--trace-depth", "Print the tree down to this many levels below the output.", 0),
    _flag("--no-trace", "Print no trace."),
    _option(
        "--format",
        "Print the result as text, as a JSON document, as one on a single line, or as a table of"
        " names, shapes, dtypes, values and gradients; or the graph for Mermaid or Graphviz, as a"
        " picture in SVG, or as a page that steps through both passes. `run` prints a result when"
        " one of the last three is asked for, and its JSON is on a line per file.",
        type=click.Choice([*FORMATS, *PICTURES]),
    ),
    _flag("--json", "Short for --format json."),
]

_PICTURE: list[Decorator] = [
    _option(
        "--fold",
        "Draw this module as one box of the picture: net.0. May be repeated.",
        "MODULE",
        multiple=True,
    ),
    _flag("--expand", "Draw each repetition of a loop, and fold nothing."),
    _option(
        "--aspect",
        "Draw the picture this wide for its height: 16:9 for a slide.",
        "W:H",
        callback=_read(_aspect),
    ),
    _flag("--saved", "Show what nodes save for the backward pass, in the picture."),
]

_NUMBERS: list[Decorator] = [
    _count(
        "--precision",
        "Digits behind the point of printed tensors: 4. JSON and files have them all.",
        0,
        100,
    ),
    _flag("--full", "Print large tensors whole, without `...`."),
]

_FILES: list[Decorator] = [
    _option(
        "-o --output",
        "Write the result to a file: output and gradients as .npz, .safetensors or .json,"
        " gradients as the columns of a .csv, one gradient as .npy, the graph as .svg or .png,"
        " the page that steps as .html; of --inputs, rows as .npz, .safetensors or .parquet.",
        "FILE",
    ),
    _flag("--no-header", "Write a .csv without the names of its columns."),
    _option(
        "--inputs",
        "Run the program for each record of a file of JSON Lines, or of csv with a header; `-` is"
        " standard input. A result in JSON is printed on a line per record.",
        "FILE",
    ),
    _count(
        "--jobs",
        "How many processes share the records of --inputs, or the files of `run`.",
        most=256,
        default=1,
    ),
    _count(
        "--retries",
        "How often --jobs tries a record or file again whose process ended.",
        0,
        1000,
        default=2,
    ),
]

_SWEEP: list[Decorator] = [
    _option(
        "--cluster",
        "Share the records of --inputs among the workers of a Dask cluster: a scheduler at"
        " tcp://HOST:PORT, or local:N for N workers started here.",
        "ADDRESS",
        callback=_read(_cluster),
    ),
    _count(
        "--chunk", "How many records of --inputs a process gets at a time; 16 of a file by default."
    ),
    _option(
        "--shard",
        "Run the I-th of N shares of the records: record I, I+N, I+2N, …",
        "I/N",
        callback=_read(_shard),
    ),
    _option(
        "--resume",
        "Write the results of --inputs to this file, after those that it holds already.",
        "FILE",
    ),
    _flag(
        "--manual-seed-per-record",
        "Let the random numbers of record K start from K, or from N+K with --manual-seed N.",
    ),
    _option(
        "--reduce",
        "Print the mean or sum of the outputs and gradients of all records.",
        type=click.Choice(["mean", "sum"]),
    ),
]

_DEVICE: Decorator = _option(
    "--device",
    "Where inputs and new tensors are: cpu, cuda or cuda:N.",
    "DEVICE",
    callback=_read(_device),
)

_MANUAL_SEED: Decorator = _count(
    "--manual-seed",
    "What random numbers start from, as `torch.manual_seed(N)`, `random.seed(N)` and"
    " `np.random.seed(N)` before the first line.",
    0,
    2**32 - 1,
)

_NO_COMPILED_LOOPS: Decorator = _flag(
    "--no-compiled-loops",
    "Interpret every loop and backward pass: what is printed stays the same.",
)

_COLOR: Decorator = _option(
    "--color",
    "Whether text is coloured.",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
)

_DRESS: list[Decorator] = [
    _option(
        "--dtype",
        "The dtype of inputs: float16, bfloat16, float32 or float64.",
        "DTYPE",
        type=click.Choice(list(DTYPES)),
    ),
    _DEVICE,
    _MANUAL_SEED,
    _NO_COMPILED_LOOPS,
    _flag("-q --quiet", "No trace, warnings or notes."),
    _COLOR,
    _option(
        "--error-format",
        "Errors and warnings with their source, on one line, or as JSON.",
        type=click.Choice(ERROR_FORMATS),
        default="full",
    ),
    _flag("--strict", "Exit with 1 where there were warnings."),
]


def with_options(command: Any) -> Any:
    """Give a command the options that one-shot and batch share."""
    kinds = (_OUTPUT, _RESULT, _PICTURE, _NUMBERS, _FILES, _SWEEP, _DRESS, _LIMITS)
    return _with(command, *(option for kind in kinds for option in kind))


PROGRAM_LINES = _option(
    "-e programs", "A program, or a line of one; repeatable.", "PROGRAM", multiple=True
)


def with_program(command: Any) -> Any:
    """Give a command the words and options of one that explains a program."""
    words = click.argument(
        "words", nargs=-1, metavar="PROGRAM|FILE [NAME=VALUE]…", shell_complete=values
    )
    file = _option("--file", "The file that the program is in.", "FILE")
    record = _flag(
        "--torch",
        "The program is a script of PyTorch's, and the words behind it are its own: it is"
        " recorded first.",
    )
    python = _option("--python", "The Python that runs it by --torch.", "PYTHON")
    return _with(
        command, PROGRAM_LINES, file, record, python, *_OUTPUT, *_NUMBERS, *_DRESS, *_LIMITS, words
    )


def with_answer_file(*suffixes: str) -> Decorator:
    """Give a command the option that puts its answer into a file with one of the suffixes."""

    def checked(path: str) -> str:
        if not path.endswith(suffixes):
            raise ValueError(f"the suffix of {path} is none of {', '.join(suffixes)}")
        return path

    return _option(
        "-o --output",
        f"Write the answer to a file instead, in the format of its suffix: {', '.join(suffixes)}.",
        "FILE",
        callback=_read(checked),
    )


def with_picture(command: Any) -> Any:
    """Give a command the options that say how much a picture shows."""
    return _with(command, *_PICTURE[:-1])


def with_session(command: Any) -> Any:
    """Give a command the options of a session: its colour, where tensors are and random numbers
    start, whether loops are compiled, limits.
    """
    return _with(command, _COLOR, _DEVICE, _MANUAL_SEED, _NO_COMPILED_LOOPS, *_LIMITS)


def with_limits(command: Any) -> Any:
    """Give a command the options of limits."""
    return _with(command, *_LIMITS)


def with_settings(command: Any) -> Any:
    """Give a command the options of a run that is not about a result."""
    return _with(command, *_DRESS, *_LIMITS)


def with_json(command: Any) -> Any:
    """Give a command the option that asks for its answer as JSON."""
    return _with(command, _flag("--json", "Print the answer as JSON."))


def _with(command: Any, *options: Decorator) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


def terminal_of(parameters: dict[str, Any], kind: Callable[..., Terminal] = Terminal) -> Terminal:
    """The terminal that the options ask for, which are taken out."""
    color = parameters.pop("color")
    error_format, strict = parameters.pop("error_format", "full"), parameters.pop("strict", False)
    return kind(color, parameters.get("quiet", False), error_format, strict)


def options_of(parameters: dict[str, Any]) -> Options:
    """The options of a run; raises a usage error for those that exclude each other."""
    if parameters.get("inputs") is not None:
        _check_inputs(parameters)
    else:
        _check_no_inputs(parameters)
    if parameters.get("json") and parameters.get("format") not in (None, "json"):
        raise UsageError(f"--json and --format {parameters['format']} exclude each other")
    sweep = Sweep(**{name: parameters.pop(name) for name in Sweep.fields if name in parameters})
    options = Options(limits=limits_of(parameters), sweep=sweep, **parameters)
    if options.saved and not (options.draws or options.format in ("svg", "html")):
        raise UsageError("--saved is for pictures: -o graph.svg, or `gradcli explain --saved`")
    paints = options.format == "svg" or (options.output or "").endswith((".svg", ".png"))
    if options.aspect and not paints:
        raise UsageError("--aspect is for pictures: -o graph.svg, -o graph.png")
    if options.output is not None:
        options.limits.check_file(options.output)
        problem = None if options.inputs else check_output(options.output)
        if problem is not None:
            raise UsageError(problem)
        check_folder(options.output)
    return options


def _check_inputs(parameters: dict[str, Any]) -> None:
    """Raise a usage error for what `--inputs` leaves no room for."""
    if parameters["format"] not in (None, "json", "jsonl"):
        raise UsageError(f"--inputs prints JSON Lines, and not --format {parameters['format']}")
    output = parameters["output"]
    if output is not None and not output.endswith(COLLECTED):
        raise UsageError(f"-o with --inputs writes {', '.join(COLLECTED)}")
    if output is not None and output.endswith(".parquet") and parameters["reduce"] is not None:
        raise UsageError("--reduce gives one result and no rows: -o sum.npz")
    if parameters["resume"] is not None and (
        output is not None or parameters["reduce"] is not None
    ):
        other = "-o" if output is not None else "--reduce"
        raise UsageError(f"--resume goes on with lines of JSON, and {other} writes none")


def _check_no_inputs(parameters: dict[str, Any]) -> None:
    """Raise a usage error for an option of `--inputs` where that is not given."""
    for name in Sweep.fields:
        if parameters.get(name):
            raise UsageError(f"--{name.replace('_', '-')} goes with --inputs")
