"""The click options that commands share, and the checks of options against each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from gradcli.cli.arguments.files import check_output
from gradcli.cli.arguments.options import (
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
from gradcli.cli.arguments.shell_completion import values
from gradcli.cli.arguments.words import UsageError
from gradcli.cli.process.terminal import ERROR_FORMATS, Terminal
from gradcli.state import active

Decorator = Callable[[Any], Any]


def _size(_ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """A size in bytes."""
    if text is None:
        return None
    size = read_size(text)
    if size is None:
        raise click.BadParameter(f"{text!r} is no size such as 500MB or 2GB", param=parameter)
    return size


def _seconds(
    _ctx: click.Context, parameter: click.Parameter, seconds: float | None
) -> float | None:
    """A length of time, which also holds for what the command reads; a range lets NaN through."""
    if seconds is not None and math.isnan(seconds):
        raise click.BadParameter("nan is no number of seconds", param=parameter)
    if seconds is not None:
        active.state.limits.timeout = seconds
    return seconds


def _sandbox(_ctx: click.Context, _parameter: click.Parameter, given: bool) -> bool:
    """Shut the gate before the command looks at its words."""
    active.state.limits.files = not given
    return given


def _device(_ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """A device's name."""
    if text is not None and not is_device(text):
        raise click.BadParameter(f"{text!r} is none of cpu, cuda and cuda:N", param=parameter)
    return text


def _shard(
    _ctx: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """A share, `2/8`."""
    if text is None:
        return None
    one, slash, all = text.partition("/")
    if not (slash and one.isdecimal() and all.isdecimal() and 1 <= int(one) <= int(all)):
        raise click.BadParameter(f"{text!r} is no share such as 2/8", param=parameter)
    return int(one), int(all)


def _cluster(_ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """The address of a cluster."""
    kind, _, rest = (text or "").partition(":")
    local = kind == "local" and rest.isdecimal() and 1 <= int(rest) <= _MOST_WORKERS
    if text is not None and not local and not (kind in _PROTOCOLS and rest.startswith("//")):
        raise click.BadParameter(f"{text!r} is no tcp://HOST:PORT or local:N", param=parameter)
    return text


_PROTOCOLS = ("tcp", "tls", "ws", "wss", "ucx")
_MOST_WORKERS = 256

_LIMITS: list[Decorator] = [
    click.option(
        "--timeout",
        type=click.FloatRange(0, 10**6, min_open=True),
        callback=_seconds,
        metavar="SECONDS",
        help="The longest that a program may run; no limit by default.",
    ),
    click.option(
        "--max-memory",
        metavar="SIZE",
        callback=_size,
        help="The memory that a program may take, as 500MB or 2GB; by default half of what there"
        " is, at most 4GB.",
    ),
    click.option(
        "--max-elements",
        type=click.IntRange(1),
        metavar="N",
        help="The elements of one tensor, list or string; 100 million by default.",
    ),
    click.option(
        "--max-steps",
        type=click.IntRange(1),
        metavar="N",
        help="Loop rounds and calls; 10 million by default.",
    ),
    click.option(
        "--sandbox",
        is_flag=True,
        callback=_sandbox,
        help="Let the program read and write no files.",
    ),
]

_OUTPUT: list[Decorator] = [
    click.option("--seed", metavar="VALUE", help="The gradient that backward starts from."),
    click.option("--of", metavar="NAME", help="The output: the tensor assigned last by default."),
    click.option("--wrt", metavar="A,B", help="The inputs whose gradients are wanted."),
]

_RESULT: list[Decorator] = [
    click.option(
        "--trace", type=click.Choice(TRACES), help="Print the backward graph in this style."
    ),
    click.option(
        "--trace-depth",
        type=click.IntRange(0),
        metavar="N",
        help="Print the tree down to this many levels below the output.",
    ),
    click.option("--no-trace", is_flag=True, help="Print no trace."),
    click.option(
        "--format",
        type=click.Choice([*FORMATS, *PICTURES]),
        help="Print the result as text, as a JSON document, as one on a single line, or as a table"
        " of names, shapes, dtypes, values and gradients; or the graph for Mermaid or Graphviz,"
        " as a picture in SVG,"
        " or as a page that steps through both passes."
        " `run` prints a result when one of the"
        " last three is asked for, and its JSON is on a line per file.",
    ),
    click.option("--json", is_flag=True, help="Short for --format json."),
]

_PICTURE: list[Decorator] = [
    click.option(
        "--fold",
        multiple=True,
        metavar="MODULE",
        help="Draw this module as one box of the picture: net.0. May be repeated.",
    ),
    click.option(
        "--expand", is_flag=True, help="Draw each repetition of a loop, and fold nothing."
    ),
    click.option(
        "--saved", is_flag=True, help="Show what nodes save for the backward pass, in the picture."
    ),
]

_NUMBERS: list[Decorator] = [
    click.option(
        "--precision",
        type=click.IntRange(0, 100),
        metavar="N",
        help="Digits behind the point of printed tensors: 4. JSON and files have them all.",
    ),
    click.option("--full", is_flag=True, help="Print large tensors whole, without `...`."),
]

_FILES: list[Decorator] = [
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the result to a file: output and gradients as .npz, .safetensors or .json,"
        " gradients as the columns of a .csv, one gradient as .npy, the graph as .svg or .png,"
        " the page that steps as .html; of --inputs, rows as .npz, .safetensors or .parquet.",
    ),
    click.option(
        "--inputs",
        metavar="FILE",
        help="Run the program for each record of a file of JSON Lines, or of csv with a header;"
        " `-` is standard input. A result in JSON is printed on a line per record.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        default=1,
        metavar="N",
        help="How many processes share the records of --inputs, or the files of `run`.",
    ),
    click.option(
        "--retries",
        type=click.IntRange(0, 1000),
        default=2,
        metavar="N",
        help="How often --jobs tries a record or file again whose process ended.",
    ),
]

_SWEEP: list[Decorator] = [
    click.option(
        "--cluster",
        metavar="ADDRESS",
        callback=_cluster,
        help="Share the records of --inputs among the workers of a Dask cluster: a scheduler at"
        " tcp://HOST:PORT, or local:N for N workers started here.",
    ),
    click.option(
        "--chunk",
        type=click.IntRange(1),
        metavar="N",
        help="How many records of --inputs a process gets at a time; 16 of a file by default.",
    ),
    click.option(
        "--shard",
        metavar="I/N",
        callback=_shard,
        help="Run the I-th of N shares of the records: record I, I+N, I+2N, …",
    ),
    click.option(
        "--resume",
        metavar="FILE",
        help="Write the results of --inputs to this file, after those that it holds already.",
    ),
    click.option(
        "--manual-seed-per-record",
        is_flag=True,
        help="Let the random numbers of record K start from K, or from N+K with --manual-seed N.",
    ),
    click.option(
        "--reduce",
        type=click.Choice(["mean", "sum"]),
        help="Print the mean or sum of the outputs and gradients of all records.",
    ),
]

_DEVICE: Decorator = click.option(
    "--device",
    metavar="DEVICE",
    callback=_device,
    help="Where inputs and new tensors are: cpu, cuda or cuda:N.",
)

_MANUAL_SEED: Decorator = click.option(
    "--manual-seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    help="What random numbers start from, as `torch.manual_seed(N)`, `random.seed(N)` and"
    " `np.random.seed(N)` before the first line.",
)

_NO_COMPILED_LOOPS: Decorator = click.option(
    "--no-compiled-loops",
    is_flag=True,
    help="Interpret every loop and backward pass: what is printed stays the same.",
)

_COLOR: Decorator = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Whether text is coloured.",
)

_DRESS: list[Decorator] = [
    click.option(
        "--dtype",
        type=click.Choice(list(DTYPES)),
        metavar="DTYPE",
        help="The dtype of inputs: float16, bfloat16, float32 or float64.",
    ),
    _DEVICE,
    _MANUAL_SEED,
    _NO_COMPILED_LOOPS,
    click.option("-q", "--quiet", is_flag=True, help="No trace, warnings or notes."),
    _COLOR,
    click.option(
        "--error-format",
        type=click.Choice(ERROR_FORMATS),
        default="full",
        help="Errors and warnings with their source, on one line, or as JSON.",
    ),
    click.option("--strict", is_flag=True, help="Exit with 1 where there were warnings."),
]


def with_options(command: Any) -> Any:
    """Give a command the options that one-shot and batch share."""
    kinds = (_OUTPUT, _RESULT, _PICTURE, _NUMBERS, _FILES, _SWEEP, _DRESS, _LIMITS)
    return _with(command, *(option for kind in kinds for option in kind))


PROGRAM_LINES = click.option(
    "-e",
    "programs",
    multiple=True,
    metavar="PROGRAM",
    help="A program, or a line of one; repeatable.",
)


def with_program(command: Any) -> Any:
    """Give a command the words and options of one that explains a program."""
    words = click.argument(
        "words", nargs=-1, metavar="PROGRAM|FILE [NAME=VALUE]…", shell_complete=values
    )
    file = click.option("--file", metavar="FILE", help="The file that the program is in.")
    record = click.option(
        "--torch",
        is_flag=True,
        help="The program is a script of PyTorch's, and the words behind it are its own: it is"
        " recorded first.",
    )
    python = click.option("--python", metavar="PYTHON", help="The Python that runs it by --torch.")
    return _with(
        command, PROGRAM_LINES, file, record, python, *_OUTPUT, *_NUMBERS, *_DRESS, *_LIMITS, words
    )


def with_answer_file(*suffixes: str) -> Decorator:
    """Give a command the option that puts its answer into a file with one of the suffixes."""

    def checked(_ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
        if path is not None and not path.endswith(suffixes):
            message = f"the suffix of {path} is none of {', '.join(suffixes)}"
            raise click.BadParameter(message, param=parameter)
        return path

    return click.option(
        "-o",
        "--output",
        metavar="FILE",
        callback=checked,
        help=f"Write the answer to a file instead, in the format of its suffix:"
        f" {', '.join(suffixes)}.",
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
    return click.option("--json", is_flag=True, help="Print the answer as JSON.")(command)


def _with(command: Any, *options: Decorator) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


def terminal_of(given: dict[str, Any], made: Callable[..., Terminal] = Terminal) -> Terminal:
    """The terminal that the options ask for, which are taken out."""
    color = given.pop("color")
    error_format, strict = given.pop("error_format", "full"), given.pop("strict", False)
    return made(color, given.get("quiet", False), error_format, strict)


def options_of(given: dict[str, Any]) -> Options:
    """The options as they were given; raises a usage error for those that exclude each other."""
    if given.get("inputs") is not None:
        _check_inputs(given)
    else:
        _check_no_inputs(given)
    if given.get("json") and given.get("format") not in (None, "json"):
        raise UsageError(f"--json and --format {given['format']} exclude each other")
    sweep = Sweep(**{name: given.pop(name) for name in Sweep.fields if name in given})
    options = Options(limits=limits_of(given), sweep=sweep, **given)
    if options.saved and not (options.draws or options.format in ("svg", "html")):
        raise UsageError("--saved is for pictures: -o graph.svg, or `gradcli explain --saved`")
    if options.output is not None:
        options.limits.check_file(options.output)
        problem = None if options.inputs else check_output(options.output)
        if problem is not None:
            raise UsageError(problem)
    return options


def _check_inputs(given: dict[str, Any]) -> None:
    """Raise a usage error for what `--inputs` leaves no room for."""
    if given["format"] in ("text", "table", *PICTURES):
        raise UsageError(f"--inputs prints JSON Lines, and not --format {given['format']}")
    output = given["output"]
    if output is not None and not output.endswith(COLLECTED):
        raise UsageError(f"-o with --inputs writes {', '.join(COLLECTED)}")
    if output is not None and output.endswith(".parquet") and given["reduce"] is not None:
        raise UsageError("--reduce gives one result and no rows: -o sum.npz")
    if given["resume"] is not None and (output is not None or given["reduce"] is not None):
        other = "-o" if output is not None else "--reduce"
        raise UsageError(f"--resume goes on with lines of JSON, and {other} writes none")


def _check_no_inputs(given: dict[str, Any]) -> None:
    """Raise a usage error for an option of `--inputs` where that is not given."""
    for name in Sweep.fields:
        if given.get(name):
            raise UsageError(f"--{name.replace('_', '-')} goes with --inputs")
