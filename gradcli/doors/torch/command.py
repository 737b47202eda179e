"""`gradcli record`: runs a PyTorch program under its own Python and leaves a recording."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from io import UnsupportedOperation
from pathlib import Path

import click

from gradcli.errors import GradcliError
from gradcli.ops.lookup import names_in
from gradcli.running.arguments.files import check_folder
from gradcli.running.arguments.words import UsageError
from gradcli.running.process.terminal import Terminal
from gradcli.show.help.ops import load

RECORDER = Path(__file__).with_name("recorder.py")

_ROOMS = {
    "torch.nn.functional": "F.",
    "torch": "torch.",
    "Tensor": ".",
    "torch.linalg": "torch.linalg.",
    "torch.special": "torch.special.",
    "torch.fft": "torch.fft.",
    "torch.nn.init": "nn.init.",
}

_PRIVATE = ("torch._grouped_mm", "torch._weight_norm")
"""Functions without a public name that modules of PyTorch call."""

_MOMENT = re.compile(r"(backward|step):([1-9]\d{0,8})|(first-nonfinite)")


@click.command(
    "record",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--python",
    metavar="PYTHON",
    help="The Python that runs the script, with its PyTorch: a path, or a command.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="The recording; by default the script's name with .gradrun, in the current folder.",
)
@click.option(
    "--at",
    metavar="MOMENT",
    help="What is recorded: the backward pass backward:N, what led to step:N, from 1, or the first"
    " backward pass with a NaN or infinity, first-nonfinite; by default what ran since an optimizer"
    " last stepped, up to the last backward pass.",
)
@click.option(
    "--no-data", is_flag=True, help="Leave arrays, the run's numbers, texts and arguments out."
)
@click.option(
    "--watch",
    is_flag=True,
    help="Watch every step instead, at any size: a line of figures for each parameter, and the"
    " first step that is not finite run again and explained.",
)
@click.option(
    "--sandbox", is_flag=True, help="Refused: the script runs as any program of the host does."
)
@click.argument("words", nargs=-1, metavar="SCRIPT|-m MODULE [ARGS]…", type=click.UNPROCESSED)
def command(
    python: str | None,
    output: str | None,
    at: str | None,
    no_data: bool,
    watch: bool,
    sandbox: bool,
    words: Sequence[str],
) -> int:
    """Record what PyTorch runs, to be asked about as a program.

    The script runs under its own Python, which has PyTorch; what it prints and its exit code stay
    its own. `-m MODULE` runs a module, as `python -m` does; the words behind it are the module's.
    All questions take the recording where they take a file.
    """
    if sandbox:
        raise GradcliError(
            "E606",
            "`gradcli record` runs the script by Python, and --sandbox forbids that",
            help="a recording that was made elsewhere can be asked about in the sandbox",
        )
    if watch and (at or no_data):
        raise UsageError("--watch records no moment and no arrays, and takes no --at or --no-data")
    _moment(at)
    script = list(words)
    module = script[1] if script[:1] == ["-m"] and len(script) > 1 else None
    if not script or script == ["-m"]:
        raise UsageError("`gradcli record` needs a script of Python, or -m MODULE")
    if output is None:
        output = f"{_name_of(module, script)}.gradrun"
    elif not output.endswith(".gradrun"):
        raise UsageError(f"the suffix of {output} is not .gradrun")
    if module is None and not os.path.isfile(script[0]):
        if script[0].startswith("-"):
            raise UsageError(f"no such option '{script[0]}'")
        reason = "is a directory" if os.path.isdir(script[0]) else "no such file or directory"
        raise GradcliError("E503", f"{script[0]}: {reason}")
    check_folder(output)
    program = python_of(python)
    shown = module if module is not None else script[0]
    Terminal().note(f"runs {shown} by {program}, and writes {output}")
    return record(program, script, output, at, data=not no_data, watch=watch)


def _name_of(module: str | None, words: Sequence[str]) -> str:
    """The name of what runs: of a launcher's script, a module, or a script."""
    if module is None:
        return Path(words[0]).stem
    scripts = [word for word in words if word.endswith(".py")]
    if module in ("torch.distributed.run", "torch.distributed.launch") and scripts:
        return Path(scripts[0]).stem
    return module.rpartition(".")[2]


def python_of(python: str | None) -> str:
    """The Python that has PyTorch; raises E609 where there is none."""
    if python is not None:
        path = shutil.which(python)
        if path is None:
            raise UsageError(f"--python: there is no {python}")
        return path
    if find_spec("torch") is not None:
        return sys.executable
    path = shutil.which("python3") or shutil.which("python")
    if path is None or os.path.realpath(path) == os.path.realpath(sys.executable):
        raise GradcliError(
            "E609",
            "PyTorch is not installed beside gradcli",
            help="name the Python that has it: gradcli record --python .venv/bin/python …",
        )
    return path


def _moment(at: str | None) -> re.Match[str] | None:
    """When to record, None for the last step; raises UsageError where `at` is no moment."""
    moment = _MOMENT.fullmatch(at) if at else None
    if at and moment is None:
        raise UsageError(f"--at {at} is none of backward:N, step:N and first-nonfinite")
    return moment


def record(
    python: str,
    script: Sequence[str],
    output: str,
    at: str | None,
    *,
    data: bool = True,
    watch: bool = False,
) -> int:
    """Run a script with the recorder in the place of this process, where the host can do that.

    Raises:
        UsageError: `at` is no moment.
    """
    moment = _moment(at)
    settings = {
        "path": os.path.abspath(output),
        "at": (moment[1] or moment[3]) if moment else "",
        "number": int(moment[2] or 0) if moment else 0,
        "data": data,
        "watch": watch,
    }
    with tempfile.TemporaryFile() as catalogue:
        catalogue.write(" ".join(known_functions()).encode())
        catalogue.seek(0)
        settings["catalogue"] = catalogue.fileno()
        words = [python, str(RECORDER), json.dumps(settings), *script]
        os.set_inheritable(catalogue.fileno(), True)
        streams = [sys.stdin, sys.stdout, sys.stderr]
        for each in streams[1:]:
            each.flush()
        try:
            numbers = [each.fileno() for each in streams]
        except UnsupportedOperation:  # the streams of a program that this one runs inside
            done = subprocess.run(
                words, close_fds=False, capture_output=True, text=True, check=False
            )
            sys.stdout.write(done.stdout)
            sys.stderr.write(done.stderr)
            return done.returncode
        if os.name == "posix":
            for number, name in zip(numbers, range(3), strict=True):
                os.dup2(number, name)
            os.execv(python, words)
        return subprocess.run(words, close_fds=False, check=False).returncode


def known_functions() -> list[str]:
    """The functions and methods that a recorded program may call, as the recorder spells them."""
    return [
        *(
            f"{prefix}{name}"
            for namespace, prefix in _ROOMS.items()
            for name in names_in(namespace, load)
        ),
        *_PRIVATE,
    ]
