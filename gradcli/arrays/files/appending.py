"""Files that grow line by line, and go on where they were cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from gradcli.errors import GradcliError
from gradcli.state import active


def continued(path: str, accept: Callable[[bytes], object]) -> IO[bytes]:
    """A file open for writing behind its whole lines; one that is not there is made.

    Args:
        accept: is given each whole line. What is left of a line that was cut off is taken away
            after that.

    Raises:
        GradcliError: E603 where it cannot be read and written, E606 where files are out of bounds.
    """
    active.state.limits.check_file(path)
    try:
        file = open(path, "a+b")  # noqa: SIM115
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GradcliError("E603", f"{path}: {reason.lower()}") from error
    try:
        end = file.seek(0)
        for line in file:
            if line.endswith(b"\n"):
                accept(line)
                end += len(line)
        file.seek(end)
        file.truncate()
    except OSError as error:
        file.close()
        raise GradcliError("E603", f"{path}: {(error.strerror or '').lower()}") from error
    except BaseException:
        file.close()
        raise
    return file
