"""`gradcli info`: what is in a recording; versions and devices, for reports of bugs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata

import click

from gradcli import __version__
from gradcli.arrays.native.dispatch import description
from gradcli.errors import GradcliError
from gradcli.running.process.terminal import Terminal
from gradcli.show.style import escaped

_PACKAGES = ("lark", "numpy", "click", "prompt_toolkit", "scipy", "ml_dtypes")
_CUPY = ("cupy", "cupy-cuda12x", "cupy-cuda13x")


@click.command("info")
@click.argument("file", required=False)
def command(file: str | None) -> int:
    """Say what is in a recording; without one, versions and devices."""
    if file is None:
        Terminal().write(information())
        return 0
    from gradcli.recorded.watched import opened_recording  # lazy: command: few ask of one

    recording, watched = opened_recording(file)
    if watched is not None:
        Terminal().write(_lined_up(watched.described()))
    elif recording is not None:
        Terminal().write(_lined_up(recording.described()))
    return 0


def information() -> str:
    """Versions and devices, a line each."""
    rows = [
        ("gradcli", __version__),
        ("python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("platform", platform.platform()),
        ("encoding", f"{sys.stdout.encoding}, files {sys.getfilesystemencoding()}"),
        *((package, _version(package)) for package in _PACKAGES),
        ("cupy", next((v for v in map(_version, _CUPY) if v != "absent"), "absent")),
        ("cpu", f"{os.cpu_count()} cores, {platform.machine()}"),
        ("gpu", _gpus()),
        ("kernels in C", description()),
    ]
    return _lined_up(rows)


def _lined_up(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows) + 2
    return "".join(f"{name.ljust(width)}{escaped(value)}\n" for name, value in rows)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _gpus() -> str:
    """The GPUs that tensors can live on, or why there are none."""
    from gradcli.arrays.gpu.runtime import cupy  # lazy: start-up: NumPy

    try:
        runtime = cupy().cuda.runtime
    except GradcliError as error:
        return error.message
    names = (
        runtime.getDeviceProperties(number)["name"].decode()
        for number in range(runtime.getDeviceCount())
    )
    return ", ".join(names)
