"""Files: program texts, and results written with `-o`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from gradcli.arrays.files.gate import LARGEST_PROGRAM, opened
from gradcli.errors import GradcliError, Source, Span
from gradcli.running.arguments.options import DRAWN

if TYPE_CHECKING:
    from gradcli.recorded.result import Result
    from gradcli.running.arguments.options import Options


# --- programs -----------------------------------------------------------------------------------


STDIN = "-"
"""The file that is standard input."""


def read_program(path: str) -> str:
    """The text of a program file; raises E503, and E602 where it is too large."""
    try:
        with opened(path, is_program=True) as file:
            return decoded(_checked(file.read(LARGEST_PROGRAM + 1), path), path)
    except OSError as error:
        raise GradcliError("E503", f"{path}: {_reason(error)}") from error
    except ValueError as error:  # a zero byte, half of a surrogate pair
        raise GradcliError("E503", f"{path!r} cannot be the name of a file") from error


RECORDING = ".gradrun"
"""The suffix of what `gradcli record` writes."""


def program_in(path: str, options: Options) -> str:
    """The text of a program file, or of the program in a recording, which the options then hold.

    Raises:
        GradcliError: as `read_program`; E502 and E504 for a recording.
    """
    options.recording = options.watched = None
    if not path.endswith(RECORDING):
        return read_program(path)
    from gradcli.recorded.watched import opened_recording  # lazy: start-up: few are recordings

    options.recording, options.watched = opened_recording(path)
    return "" if options.recording is None else options.recording.program_in(options.dtype)


def _checked(data: bytes, name: str) -> bytes:
    if len(data) > LARGEST_PROGRAM:
        raise GradcliError(
            "E602",
            f"{name}: a program is too large beyond {LARGEST_PROGRAM:,} bytes",
            help="values belong into files: x=@x.npy",
        )
    return data


def decoded(data: bytes, name: str, first_line: int = 1) -> str:
    """UTF-8 text without its byte order mark, each line end a `\\n`, as Python reads programs.

    Raises E503 with the line of what is not UTF-8, E002 for a mark inside and for a zero byte.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise GradcliError(
            "E503",
            f"{name}: line {line} holds the byte 0x{data[error.start]:02x}, which is not UTF-8",
            help="programs are UTF-8 text",
        ) from error
    if first_line == 1:
        text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    at = 0 if text.startswith("\ufeff") else text.find("\0")
    if at >= 0:
        span = Span(Source(name, text, first_line), at, at + 1)
        raise GradcliError("E002", f"unexpected character U+{ord(text[at]):04X}", span=span)
    return text


def decoded_lines(stream: IO[bytes], name: str) -> Iterator[str]:
    """The lines of a stream as they arrive; raises E503, and E602 for an endless one."""
    number = 1
    while line := stream.readline(LARGEST_PROGRAM + 1):
        for text in StringIO(decoded(_checked(line, name), name, number)):
            yield text
            number += 1


# --- results ------------------------------------------------------------------------------------


def check_output(path: str) -> str | None:
    """Why a result cannot be written to a path, known before the run; None if it can."""
    from gradcli.arrays.files.formats import SUFFIXES  # lazy: start-up: few results go to a file

    if path == STDIN:
        return "-o takes a file: standard output is where --json and --format write"
    if not path.endswith((*SUFFIXES, *DRAWN)):
        return f"the suffix of {path} is none of {', '.join((*SUFFIXES, *DRAWN))}"
    return None


def check_folder(path: str) -> None:
    """Raise E603, before a run that may take hours, where a file's folder takes no file."""
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        raise GradcliError("E603", f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise GradcliError("E603", f"{path}: the folder {folder} may not be written to")


def write_result(
    path: str, result: Result | None, text: Callable[[], str], header: bool = True
) -> None:
    """Write a result to a file, whole or not at all.

    Archives hold the output under its name and the gradients as `NAME.grad`; `.csv` and `.npy` hold
    gradients only, `.npy` one of them; `.json` and `.svg` hold `text()`, `.png` its picture.

    Args:
        header: whether a `.csv` begins with the names of its columns.

    Raises:
        GradcliError: E603 where the file cannot be written or does not hold such a result.
    """
    from gradcli.arrays.files.formats import (  # lazy: start-up: few results go to a file
        write_arrays,
    )

    if path.endswith((".json", *DRAWN)):
        write_text(path, text())
        return
    output, gradients = ({}, {}) if result is None else arrays_of(result)
    if not path.endswith((".npy", ".csv")):
        write_arrays(path, output | gradients)
        return
    arrays = gradients or output
    if path.endswith(".npy") and len(arrays) > 1:
        raise GradcliError(
            "E603",
            f"{path}: npy holds one array, and there are {', '.join(arrays)}",
            help=f"choose one: --wrt {next(iter(arrays)).removesuffix('.grad')}",
        )
    write_arrays(path, arrays, header)


def arrays_of(result: Result) -> tuple[dict[str, Any], dict[str, Any]]:
    """The output under its name, and the gradients there are as `NAME.grad`."""
    from gradcli.arrays.backend import to_host  # lazy: start-up: NumPy
    from gradcli.arrays.fusion.lazy import forced  # lazy: start-up: NumPy

    gradients = {
        f"{each.name or f'#{each.node}'}.grad": to_host(forced(each.tensor.grad.array))
        for each in result.gradients
        if each.tensor.grad is not None
    }
    return {result.name or "output": to_host(forced(result.output.array))}, gradients


def write_text(path: str, text: str) -> None:
    """Write a text to a file, whole or not at all; an SVG as pixels where the file is a PNG.

    Raises E603, E606.
    """
    from gradcli.arrays.files.formats import replace  # lazy: start-up: few results go to a file

    content = text.encode("utf-8", "backslashreplace")
    if path.endswith(".png"):
        from gradcli.running.process.programs import png  # lazy: start-up: few pictures

        content = png(content)
    replace(path, lambda file: file.write(content))


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
