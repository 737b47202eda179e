"""Files: arrays read for `NAME=@FILE`, program texts, and results written with `-o`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.cli.values import Argument
    from gradcli.explain.result import Result

OUTPUT_SUFFIXES = (".npz", ".json")
"""The formats of `-o`, by the suffix of the file."""


# --- arrays -------------------------------------------------------------------------------------


def read_array(argument: Argument) -> Tensor:
    """The tensor in a file `@x.npy`, or `@m.npz:key` for one of several; raises E502."""
    path, key = argument.text[1:], ""
    if not os.path.exists(path) and ":" in path:
        path, _, key = path.rpartition(":")
    problem = _unreadable(path)
    if problem:
        raise argument.wrong(f"{path}: {problem}", code="E502")
    if not path.endswith((".npy", ".npz")):
        raise argument.wrong(f"{path}: gradcli reads arrays from .npy and .npz files", code="E502")
    import numpy as np

    try:
        with open(path, "rb") as file, np.errstate(all="ignore"):
            # Pickled data would run code of the file's choosing.
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.ndarray):
                array = _member(argument, loaded, key)
            elif key:
                raise argument.wrong(
                    f"{path}: the file holds one array, without a key", code="E502"
                )
            else:
                array = loaded
    except (GradcliError, KeyboardInterrupt):
        raise
    except MemoryError:
        raise argument.wrong(f"{path}: the array does not fit into memory", code="E502") from None
    except Exception as error:  # a damaged file can raise anything
        reason = str(error) or type(error).__name__
        raise argument.wrong(f"{path}: not readable as an array: {reason}", code="E502") from error
    return _as_tensor(argument, path, array)


def _member(argument: Argument, archive: Any, key: str) -> Any:
    """One array of an archive: that under a key, or the only one."""
    names = list(archive.files)
    if not key and len(names) == 1:
        key = names[0]
    if key in names:
        return archive[key]
    some = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    holds = f"the file holds {some}" if names else "the file holds no array"
    raise argument.wrong(
        f"there is no array {key!r}: {holds}" if key else holds,
        f"name one: {argument.name}={argument.text.removesuffix(f':{key}')}:{names[0]}"
        if names
        else None,
        code="E502",
    )


def _as_tensor(argument: Argument, path: str, array: Any) -> Tensor:
    import numpy as np

    from gradcli.arrays.dtypes import DTYPES
    from gradcli.autograd.tensor import Tensor

    native = array.dtype.newbyteorder("=")
    if native.name not in DTYPES:
        raise argument.wrong(
            f"{path}: PyTorch has no dtype for an array of {array.dtype}", code="E502"
        )
    # The catalogue compares dtypes by identity.
    own = np.array(array, DTYPES[native.name].numpy_dtype, order="C")
    return Tensor(own if own.ndim else own[()])


def _unreadable(path: str) -> str:
    """Why a file cannot be read, "" if it can."""
    if os.path.isdir(path):
        return "is a folder"
    if not os.path.exists(path):
        return "no such file"
    if not os.path.isfile(path):
        return "is no regular file"
    return "" if os.access(path, os.R_OK) else "may not be read"


# --- programs -----------------------------------------------------------------------------------


def read_program(path: str) -> str:
    """The text of a program file; raises E503."""
    try:
        with open(path, "rb") as file:
            return decoded(file.read(), path)
    except OSError as error:
        raise GradcliError("E503", f"{path}: {_reason(error)}") from error


def decoded(data: bytes, name: str, first_line: int = 1) -> str:
    """UTF-8 text without its byte order mark; raises E503 with the line of what is none."""
    try:
        return data.decode("utf-8-sig" if first_line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise GradcliError(
            "E503",
            f"{name}: line {line} holds the byte 0x{data[error.start]:02x}, which is not UTF-8",
            help="programs are UTF-8 text",
        ) from error


def decoded_lines(stream: IO[bytes], name: str) -> Iterator[str]:
    """The lines of a stream, each as soon as it has arrived; raises E503."""
    for number, line in enumerate(stream, 1):
        yield decoded(line, name, number)


# --- results ------------------------------------------------------------------------------------


def check_output(path: str) -> str | None:
    """Why a result cannot be written to a path, as far as it shows before the run; None if it
    seems possible.
    """
    if not path.endswith(OUTPUT_SUFFIXES):
        return f"the suffix of {path} is none of {', '.join(OUTPUT_SUFFIXES)}"
    return None


def write_result(path: str, result: Result | None, text: Callable[[], str]) -> None:
    """Write a result to a file, whole or not at all.

    A `.npz` file holds the output under its name and the gradients as `NAME.grad`; a `.json` file
    holds `text()`. Raises E603.
    """
    if path.endswith(".json"):
        content = text().encode("utf-8", "backslashreplace")
        _write(path, lambda file: file.write(content))
        return
    arrays: dict[str, Any] = {}
    if result is not None:
        arrays[result.name or "output"] = result.output.array
        for gradient in result.gradients:
            if gradient.tensor.grad is not None:
                name = gradient.name or f"#{gradient.node}"
                arrays[f"{name}.grad"] = gradient.tensor.grad.array
    _write(path, lambda file: _write_npz(file, arrays))


def _write_npz(file: IO[bytes], arrays: dict[str, Any]) -> None:
    import zipfile

    import numpy as np

    # np.savez takes names as keywords, which `file` would clash with.
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def _write(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a temporary name beside a file and move it into place."""
    target = os.path.realpath(path)
    temporary = ""
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as device:  # nothing to move: a pipe, or /dev/null
                write(device)
            return
        temporary = f"{target}.{os.getpid()}.part"
        with open(temporary, "xb") as file:
            write(file)
        os.replace(temporary, target)
        temporary = ""
    except OSError as error:
        raise GradcliError("E603", f"{path}: {_reason(error)}") from error
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
