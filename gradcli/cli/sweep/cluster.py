"""`--cluster`: the records of a sweep shared out among the workers of a cluster of Dask.

A window of parcels is under way, a few for each thread of the workers, so that any number of
records streams through. Results are handed on in order. A parcel whose worker or process ended
comes back in pieces, each record alone, as with `--jobs`.
"""

from __future__ import annotations

import json
import logging
import pickle
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence, Set
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

import gradcli
from gradcli.cli.sweep import on_worker
from gradcli.cli.sweep.reading import Records
from gradcli.errors import GradcliError
from gradcli.packages import left_out
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.values import Argument
from gradcli.running.process.interruption import raising_on_signals
from gradcli.running.process.terminal import Terminal
from gradcli.running.process.workers import Work

_AHEAD = 4
"""Parcels under way for each thread of the workers."""

_PARCEL_SECONDS = 0.5
"""What a parcel is to take: a cluster spends some milliseconds on each."""

_LARGEST_PARCEL = 1000

_COUNTED_AGAIN = 2.0
"""Seconds after which the workers are counted again: they come and go."""

_LOOKED_AFTER = 3.0
"""Seconds without a result after which it is looked whether there are workers."""

_ANSWER_SECONDS = 15
_DEAD_SECONDS = 30
"""After how much silence a scheduler is not there, and a worker of a local cluster is dead."""

_OWN_SCHEDULER = {
    "distributed.scheduler.worker-ttl": f"{_DEAD_SECONDS}s",
    # What it logs of each task lies in the memory of the run, which is to stay as it is.
    "distributed.admin.log-length": 100,
    "distributed.admin.low-level-log-length": 100,
}
"""Settings of a local cluster's scheduler, which runs in this process."""


def setup_of(text: str, name: str, arguments: Sequence[Argument], options: Options) -> bytes:
    """What the processes of the workers need to know; files of arguments have been read."""
    return pickle.dumps((text, name, list(arguments), options))


def results_of(
    terminal: Terminal, records: Records, work: Work, setup: bytes, options: Options
) -> Generator[bytes, None, None]:
    """The results of all parcels in order, computed on the cluster that the options name.

    Raises:
        GradcliError: E608 where the scheduler does not answer or is gone, E609 without Dask, E610
            for a worker with another gradcli.
    """
    with raising_on_signals():  # the cluster is left as it was
        cluster = _Cluster(terminal, options.sweep.cluster or "", setup, work)
        try:
            cluster.check()
            yield from cluster.results(records, options.sweep.chunk is None)
        finally:
            cluster.close()


class _Cluster:
    """A connection to a scheduler, and the parcels that are under way there."""

    def __init__(self, terminal: Terminal, address: str, setup: bytes, work: Work) -> None:
        try:
            import distributed
        except ImportError as error:
            raise left_out("--cluster", "Dask", "cluster") from error
        for name in logging.root.manager.loggerDict:
            if name.startswith(("distributed", "tornado", "asyncio")):  # what matters is said here
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        self._distributed: Any = distributed
        self._terminal = terminal
        self._work = work
        self._run = uuid4().hex
        self._window: deque[tuple[bytes, Any]] = deque()
        self._others: set[str] = set()  # workers with another gradcli
        self._told_of_none = False
        self._submissions = 0
        self._threads, self._counted = 1, 0.0
        self._own: Any = None
        self._folder = ""
        self.address = address
        self._client: Any = None
        try:
            self._client = self._connected()
            self._setup = self._client.submit(_itself, setup, key=on_worker.setup_key(self._run))
        except BaseException:
            self.close()
            raise

    def _connected(self) -> Any:
        import dask  # it comes with distributed

        local, _, count = self.address.partition(":")
        try:
            if local == "local":
                dask.config.set(_OWN_SCHEDULER)
                self._folder = tempfile.mkdtemp()
                self._own = self._distributed.LocalCluster(
                    n_workers=int(count),
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                    local_directory=self._folder,
                )
                self.address = self._own.scheduler_address
            return self._distributed.Client(
                self.address, timeout=_ANSWER_SECONDS, set_as_default=False
            )
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            raise GradcliError(
                "E608", f"no scheduler answers at {self.address}", help=_words(error)
            ) from error

    def check(self) -> None:
        """Raise E610 for a worker with another gradcli, and note where kernels differ."""

        def about() -> dict[str, Any]:  # sent as it stands: the worker's gradcli may be any
            import os
            from importlib.metadata import version
            from importlib.util import find_spec

            import numpy

            try:
                import gradcli  # lazy: command: on the worker
            except ImportError:
                return {"gradcli": "none"}
            blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
            umath: Any = numpy._core._multiarray_umath  # type: ignore[attr-defined]
            kernels = {
                "processor": sorted(
                    name for name, there in umath.__cpu_features__.items() if there
                ),
                "BLAS": [blas.get("name"), blas.get("version")],
                "NumPy": version("numpy"),
                "threads": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
                "kernels in C": [
                    find_spec("gradcli.arrays.native._core") is not None,
                    os.environ.get("GRADCLI_NATIVE"),
                ],
            }
            return {"gradcli": gradcli.__version__, "kernels": kernels}

        installations = {"": about(), **self._asked(about)}
        for address, each in installations.items():
            if each["gradcli"] != gradcli.__version__:
                raise wrong_version(address, each["gradcli"])
        kinds = installations[""]["kernels"]
        differ = [
            k
            for k in kinds
            if len({str(each["kernels"][k]) for each in installations.values()}) > 1
        ]
        if differ:
            self._terminal.note(
                f"the workers, or this machine, differ in {', '.join(differ)}: last digits may too"
            )

    def _asked(self, function: Any, *arguments: Any) -> dict[str, Any]:
        """What a function gives on each worker."""
        try:
            return dict(self._client.run(function, *arguments))
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            raise self._gone() from error

    def results(self, records: Records, adapts: bool) -> Iterator[bytes]:
        """The results of all parcels in order; `adapts` to choose how many records one has."""
        parcels = records.parcels()
        while True:
            while len(self._window) < _AHEAD * self._thread_count():
                parcel = next(parcels, None)
                if parcel is None:
                    break
                self._window.append((parcel, self._submitted(parcel)))
            if not self._window:
                return
            for answer in self._finished(*self._window[0]):
                if adapts:
                    records.at_once = _right_size(answer, records.at_once)
                yield answer
            self._window.popleft()

    def _thread_count(self) -> int:
        if time.monotonic() > self._counted + _COUNTED_AGAIN:
            self._counted = time.monotonic()
            with suppress(OSError, TimeoutError):
                self._threads = max(1, sum(self._client.nthreads().values()))
        return self._threads

    def _submitted(self, parcel: bytes) -> Any:
        self._submissions += 1
        return self._client.submit(
            on_worker.do,
            gradcli.__version__,
            self._run,
            self._setup,
            parcel,
            key=f"gradcli-{self._run}-{self._submissions}",
            pure=False,
            workers=self._allowed() or None if self._others else None,
        )

    def _finished(self, parcel: bytes, future: Any) -> Iterator[bytes]:
        """The results of a parcel, or those of its records, each tried alone."""
        answer = self._answer(parcel, future)
        if answer is not None:
            yield answer
            return
        pieces = self._work.pieces(parcel)
        attempts = self._work.retries + 1
        left = attempts - (len(pieces) == 1)
        waiting = [self._submitted(piece) for piece in pieces] if left else []
        for number, piece in enumerate(pieces):
            for attempt in range(left):
                if attempt:
                    waiting[number] = self._submitted(piece)
                answer = self._answer(piece, waiting[number])
                if answer is not None:
                    break
            yield self._work.lost(piece, attempts) if answer is None else answer

    def _answer(self, parcel: bytes, future: Any) -> bytes | None:
        """What a worker answered; None where it or its process ended."""
        while True:
            self._wait(future)
            try:
                answer: bytes = future.result()
                kind, content = answer[:1], answer[1:]
                if kind != on_worker.REFUSED:
                    break
                self._leave_out(future, content.decode())
            except self._distributed.KilledWorker:
                return None
            except (OSError, TimeoutError, CancelledError) as error:
                raise self._gone() from error
            except GradcliError:
                raise
            except Exception as error:  # of the cluster's machinery, on the worker or here
                raise GradcliError("E608", f"a worker failed: {_words(error)}") from error
            finally:
                future.release()
            future = self._submitted(parcel)
        if kind == on_worker.FAILED:
            raise GradcliError("E901", content.decode("utf-8", "replace"))
        return None if kind == on_worker.DIED else content

    def _leave_out(self, future: Any, version: str) -> None:
        """Give no more work to a worker that came later, with another gradcli; raises E610 where
        there is no other worker.
        """
        holders = self._client.who_has([future]).values()
        holding = {address for each in holders for address in each}
        if not self._allowed(holding):
            raise wrong_version("", version)
        for address in holding - self._others:
            self._terminal.note(f"the worker at {address} has gradcli {version}, and is left out")
        self._others |= holding

    def _allowed(self, more: Set[str] = frozenset()) -> list[str]:
        """The workers that may get work."""
        left_out = self._others | more
        return [address for address in self._client.nthreads() if address not in left_out]

    def _wait(self, future: Any) -> None:
        """Wait until a future is done; say once where there are no workers to do it."""
        while not future.done():
            with suppress(TimeoutError, CancelledError), self._client.as_current():
                self._distributed.wait(future, timeout=_LOOKED_AFTER)
            if not (future.done() or self._told_of_none or self._client.nthreads()):
                self._terminal.note(f"the cluster at {self.address} has no workers: waiting")
                self._told_of_none = True

    def _gone(self) -> GradcliError:
        return GradcliError(
            "E608",
            f"the scheduler at {self.address} is gone",
            help="what was printed is whole: with --resume FILE the run goes on behind it",
        )

    def close(self) -> None:
        """Take back what is under way, end the processes of this run, and leave."""
        if self._client is not None:
            with suppress(Exception):
                self._client.cancel([future for _, future in self._window], force=True)
                self._client.run(on_worker.end, self._run, on_error="ignore")
            with suppress(Exception):
                self._client.close(timeout=2)
        if self._own is not None:
            with suppress(Exception):
                self._own.close(timeout=_ANSWER_SECONDS)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _itself(value: bytes) -> bytes:
    """A value that workers hand to each other, and that the scheduler can have made again."""
    return value


def _right_size(answer: bytes, before: int) -> int:
    """How many records a parcel is to have, after one that was answered."""
    summary: dict[str, Any] = json.loads(answer.partition(b"\n")[0])
    seconds, done = summary.get("seconds", 0.0), summary.get("done", 0)
    if not seconds or not done:
        return before
    # Towards the measured time, at most twice as many at once: the first records are the slowest.
    wanted = int(_PARCEL_SECONDS * done / seconds)
    return max(1, min(wanted, 2 * before, _LARGEST_PARCEL))


def wrong_version(address: str, version: str) -> GradcliError:
    """E610, the error of a worker with another gradcli."""
    where = f"the worker at {address}" if address else "a worker"
    there = "no gradcli" if version == "none" else f"gradcli {version}"
    return GradcliError(
        "E610",
        f"{where} has {there}, and this is gradcli {gradcli.__version__}",
        help="install the same version on every machine of the cluster",
    )


def _words(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
