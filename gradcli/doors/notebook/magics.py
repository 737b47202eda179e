"""`%load_ext gradcli`: the magic `%%gradcli`, which runs a cell as a program.

A name that the program reads and does not set is the notebook's own, where that has one: numbers,
lists and arrays go in. The cell's value is the result, which shows the picture of its graph.
"""

from __future__ import annotations

import builtins
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError

from gradcli.doors.python.inputs import SETTINGS
from gradcli.doors.python.program import run
from gradcli.doors.python.result import Result
from gradcli.errors import GradcliError
from gradcli.language.tree.syntax import Statement
from gradcli.library.namespace import table_of
from gradcli.running.arguments.name_uses import READ, name_uses
from gradcli.running.arguments.words import read_argument
from gradcli.session import Session

_FLAGS = ("sandbox", "no_compiled_loops")
_NUMBERS = {"timeout": float, "manual_seed": int, "max_elements": int, "max_steps": int}


def load_ipython_extension(shell: Any) -> None:
    """Add the magic to a shell of IPython."""

    def gradcli(line: str, cell: str | None = None) -> Result | None:
        """%%gradcli [NAME=VALUE…] [--out NAME] [--of NAME] [--wrt A,B] [--seed VALUE] [LIMITS]

        Run the cell as a program of gradcli, and give its result. Names that the program reads and
        does not set come from the notebook. `--out r` puts the result into `r`: `r.value`,
        `r.grads`. In a line of its own, `%gradcli PROGRAM`.
        """
        words, text = (line, cell) if cell is not None else ("", line)
        return _run(shell, words, text)

    shell.register_magic_function(gradcli, "line_cell", "gradcli")


def _run(shell: Any, line: str, text: str) -> Result | None:
    inputs, settings, out = _words(line)
    try:
        inputs = {**_own(Session.parse(text, "cell"), shell.user_ns, inputs), **inputs}
        result = run(text, inputs, **settings)
    except GradcliError as error:
        note = getattr(error, "__notes__", None)
        shown = note or [f"{error.code}: {error.message}"]
        # The program's place, and none of the lines of gradcli that noticed.
        error._render_traceback_ = lambda: shown  # type: ignore[attr-defined]
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    print(result.printed, end="")
    if out is None:
        return result
    shell.user_ns[out] = result
    return None


def _own(
    program: Sequence[Statement], names: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """What a program reads out of the notebook: names that it does not set, and that are neither
    words of the language nor functions, modules and the like.
    """
    own: dict[str, Any] = {}
    known = {name.partition(":")[0] for name in inputs}
    for statement in program:
        for name, how in name_uses(statement).items():
            if name in known:
                continue
            known.add(name)
            if how == READ and name in names and not hasattr(builtins, name):
                value = names[name]
                if hasattr(value, "__array__") or isinstance(value, (bool, int, float, list)):
                    if table_of(name) is None:
                        own[name] = value
                elif isinstance(value, (str, tuple, dict, complex)):
                    own[f"{name}:const"] = value
    return own


def _words(line: str) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """The inputs, the settings and the name for the result in the line of a magic."""
    inputs: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    out = None
    words = iter(shlex.split(line))
    for word in words:
        argument = read_argument(word)
        if argument is not None:
            inputs[f"{argument.name}{':const' if argument.constant else ''}"] = argument.text
            continue
        option, equals, value = word.removeprefix("--").partition("=")
        name = option.replace("-", "_")
        if not word.startswith("--") or name not in (*SETTINGS, "out"):
            raise UsageError(f"`{word}` is no NAME=VALUE and no setting")
        if name in _FLAGS:
            settings[name] = True
            continue
        value = value if equals else next(words, "")
        if name == "out":
            out = value
            if not out.isidentifier():
                raise UsageError("--out takes the name for the result")
            continue
        try:
            settings[name] = _NUMBERS.get(name, str)(value)
        except ValueError:
            raise UsageError(f"--{option} takes a number, not {value!r}") from None
    return inputs, settings, out
