"""What a worker of a cluster does: it hands parcels of records to processes of its own.

A process of gradcli, and not the worker's thread, runs the programs: limits of time need a main
thread, limits of memory a process, and a record that ends its process ends no worker. The processes
end with the worker, however that ends.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

import gradcli
from gradcli.running.process.workers import receive, send

DONE, DIED, REFUSED, FAILED = b"+", b"x", b"v", b"-"
"""How an answer begins: a result, a process that ended, another version, an error of ours."""


_LOOKED_AFTER = 2.0
_MISSED = 3
"""After how many seconds it is looked whether a run's client is there, and how often in a row it is
not, until its processes end.
"""


class _Runs:
    """The processes of this worker, by run.

    Attributes:
        held: what the cluster calls the setup that each run's client holds as long as it is there.
        ended: the runs that are over: no process is started for what is left of them.
    """

    lock = Lock()
    idle: dict[str, list[_Process]]
    all: dict[str, set[_Process]]
    held: dict[str, str]
    ended: set[str]
    idle, all, held, ended = {}, {}, {}, set()


class _Process:
    """A process that runs one program for many records."""

    def __init__(self, setup: bytes) -> None:
        watched, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gradcli.cli.sweep.child", str(watched)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(watched,),
                env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
            )
        finally:
            os.close(watched)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._tasks, self._results = self._process.stdin, self._process.stdout
        send(self._tasks, setup)

    def do(self, parcel: bytes) -> bytes:
        """The answer to a parcel."""
        try:
            send(self._tasks, parcel)
            return receive(self._results)
        except (OSError, EOFError, ValueError):
            return DIED

    def end(self) -> None:
        """End the process, in the middle of its work if need be."""
        self._process.kill()
        self._process.wait()
        for stream in (self._tasks, self._results):
            with suppress(OSError, ValueError):
                stream.close()
        with suppress(OSError):
            os.close(self._lifeline)


def do(version: str, run: str, held: str, setup: bytes, parcel: bytes) -> bytes:
    """The answer to a parcel of a run, by a process of this worker.

    Args:
        version: that of the gradcli which asks.
        run: the name of the run.
        held: what the cluster calls the setup.
        setup: what the processes of the run need to know.
    """
    if version != gradcli.__version__:
        return REFUSED + gradcli.__version__.encode()
    _Runs.held[run] = held
    try:
        process = _taken(run, setup)
    except OSError as error:
        return FAILED + f"no process can be started: {error}".encode()
    answer = DIED if process is None else process.do(parcel)
    with _Runs.lock:
        over = process is None or answer == DIED or run in _Runs.ended
        if process is not None and not over:
            _Runs.idle[run].append(process)
    if process is not None and over:
        process.end()
        _Runs.all.get(run, set()).discard(process)
    return answer


def _taken(run: str, setup: bytes) -> _Process | None:
    """A process that has nothing to do, or a new one; None where the run is over."""
    with _Runs.lock:
        if run in _Runs.ended:
            return None
        idle = _Runs.idle.setdefault(run, [])
        if idle:
            return idle.pop()
        process = _Process(setup)
        if run not in _Runs.all:
            from distributed import get_worker  # lazy: command: the processes read this file too

            Thread(target=_watch, args=(get_worker(), run), daemon=True).start()
        _Runs.all.setdefault(run, set()).add(process)
        return process


def _watch(worker: Any, run: str) -> None:
    """End the processes of a run whose client has gone without ending them: it was killed."""
    missed = 0
    while missed < _MISSED and run not in _Runs.ended:
        time.sleep(_LOOKED_AFTER)
        asked = worker.scheduler.who_has(keys=[_Runs.held[run]])
        try:
            held = asyncio.run_coroutine_threadsafe(asked, worker.loop.asyncio_loop).result(
                _LOOKED_AFTER
            )
        except Exception:  # the worker ends with its scheduler, and the processes with the worker
            continue
        missed = 0 if any(held.values()) else missed + 1  # one that is lost is made again
    end(run)


def end(run: str) -> None:
    """End all processes of a run."""
    with _Runs.lock:
        _Runs.ended.add(run)
        _Runs.idle.pop(run, None)
        processes = _Runs.all.pop(run, set())
    for process in processes:
        process.end()
