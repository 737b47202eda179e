"""`--cluster`: the records of a sweep shared out among the workers of a cluster of Dask.

A window of parcels is under way, a few for each thread of the workers, so that any number of
records streams through. Results are handed on in order. A parcel whose worker or process ended
comes back in pieces, each record alone, as with `--jobs`. What a worker has that gives no sign of
life, as one that was stopped, is given to the others; the cluster itself is left as it is.
"""

from __future__ import annotations

import asyncio
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
from gradcli.cli.sweep.records import Records
from gradcli.errors import GradcliError
from gradcli.packages import left_out
from gradcli.record import Record
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import Argument
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
"""Seconds without a result after which it is looked whether the workers are there."""

_Places = dict[str, tuple[set[str], bool]]
"""For each key the workers that hold it or have it to do, and whether one is at work on it."""

_ANSWER_SECONDS = 15
_SILENT_SECONDS = 30
"""After how much silence a scheduler is not there, and others get the work of a worker."""

_END_SECONDS = 5
"""How long the workers have to end their processes, when the run leaves."""

_OWN_SCHEDULER = {
    "distributed.scheduler.worker-ttl": f"{_SILENT_SECONDS}s",  # then it is started anew
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


class _Task(Record):
    """A parcel and what will be its result, which is another one when others get it to do."""

    parcel: bytes
    future: Any


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
        self._window: deque[_Task] = deque()
        self._pending: set[_Task] = set()
        self._others: set[str] = set()  # workers with another gradcli
        self._silent: set[str] = set()  # workers whose work others have
        self._told_of_none = False
        self._submissions = 0
        self._setup = setup
        self._held: list[Any] = []  # futures of the setup: the last is what new tasks read
        self._threads, self._counted = 0, 0.0
        self._own: Any = None
        self._folder = ""
        self.address = address
        self._client: Any = None
        try:
            self._client = self._connected()
            self._look()
            self._held.append(self._new_setup())
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

            try:
                import numpy

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

        installations = {"": about(), **self._asked(_SILENT_SECONDS, about)}
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

    def _asked(self, seconds: float, function: Any, *arguments: Any) -> dict[str, Any]:
        """What a function gives on each worker that answers within some seconds."""

        async def answer(address: str) -> dict[str, Any]:
            with suppress(TimeoutError):
                asked = self._client.run(function, *arguments, workers=[address])
                return dict(await asyncio.wait_for(asked, seconds))
            return {}

        async def answers(addresses: list[str]) -> list[dict[str, Any]]:
            return await asyncio.gather(*map(answer, addresses))

        try:
            answered = self._client.sync(answers, self._allowed())
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            raise self._gone() from error
        return {address: each for one in answered for address, each in one.items()}

    def results(self, records: Records, adapts: bool) -> Iterator[bytes]:
        """The results of all parcels in order; `adapts` to choose how many records one has."""
        parcels = records.parcels()
        while True:
            if time.monotonic() > self._counted + _COUNTED_AGAIN:
                self._look()
            while len(self._window) < _AHEAD * max(1, self._threads):
                parcel = next(parcels, None)
                if parcel is None:
                    break
                self._window.append(self._submitted(parcel))
            if not self._window:
                return
            for answer in self._finished(self._window[0]):
                if adapts:
                    records.at_once = _right_size(answer, records.at_once)
                yield answer
            self._window.popleft()

    def _submitted(self, parcel: bytes) -> _Task:
        task = _Task(parcel, self._future(parcel))
        self._pending.add(task)
        return task

    def _future(self, parcel: bytes) -> Any:
        self._submissions += 1
        return self._client.submit(
            on_worker.do,
            gradcli.__version__,
            self._run,
            self._held[-1].key,
            self._held[-1],
            parcel,
            key=f"gradcli-{self._run}-{self._submissions}",
            pure=False,
            **self._on_allowed(),
        )

    def _again(self, task: _Task) -> None:
        """Give a task to a worker that may have it now."""
        task.future.release()
        task.future = self._future(task.parcel)

    def _finished(self, task: _Task) -> Iterator[bytes]:
        """The results of a parcel, or those of its records, each tried alone."""
        answer = self._answer(task)
        if answer is not None:
            yield answer
            return
        pieces = self._work.pieces(task.parcel)
        attempts = self._work.retries + 1
        left = attempts - (len(pieces) == 1)
        waiting = [self._submitted(piece) for piece in pieces] if left else []
        for number, piece in enumerate(pieces):
            for attempt in range(left):
                if attempt:
                    waiting[number] = self._submitted(piece)
                answer = self._answer(waiting[number])
                if answer is not None:
                    break
            yield self._work.lost(piece, attempts) if answer is None else answer

    def _answer(self, task: _Task) -> bytes | None:
        """What a worker answered; None where it or its process ended."""
        while True:
            try:
                answer = self._received(task)
                kind, content = answer[:1], answer[1:]
                if kind != on_worker.REFUSED:
                    break
                self._leave_out(task.future, content.decode())
            except self._distributed.KilledWorker:
                self._drop(task)
                return None
            except (OSError, TimeoutError, CancelledError) as error:
                raise self._gone() from error
            except GradcliError:
                raise
            except Exception as error:  # of the cluster's machinery, on the worker or here
                raise GradcliError("E608", f"a worker failed: {_words(error)}") from error
            self._again(task)
        self._drop(task)
        if kind == on_worker.FAILED:
            raise GradcliError("E901", content.decode("utf-8", "replace"))
        return None if kind == on_worker.DIED else content

    def _drop(self, task: _Task) -> None:
        task.future.release()
        self._pending.discard(task)

    def _received(self, task: _Task) -> bytes:
        """The answer to a task, by whichever worker; looks after the workers meanwhile."""
        patience = _LOOKED_AFTER
        while True:
            if task.future.done():
                with suppress(TimeoutError):  # as where the worker that has it was stopped
                    answer: bytes = task.future.result(patience)
                    return answer
                patience *= 2
            else:
                with suppress(TimeoutError, CancelledError), self._client.as_current():
                    self._distributed.wait(task.future, timeout=_LOOKED_AFTER)
                if task.future.done():
                    continue
            self._look()
            self._tell_of_none()

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
        left_out = self._others | self._silent | more
        return [address for address in self._client.nthreads() if address not in left_out]

    def _on_allowed(self) -> dict[str, Any]:
        """Where a task is to run. Others get it where none of these is left."""
        if not (self._others or self._silent):
            return {}
        return {"workers": self._allowed() or None, "allow_other_workers": True}

    def _look(self) -> None:
        """See which workers are there and give sign of life; others get the work of the rest."""
        keys = [each.key for each in (*self._held, *(task.future for task in self._pending))]
        workers, places = self._state(keys)
        self._counted = time.monotonic()
        silent = {address for address, (_, age) in workers.items() if age > _SILENT_SECONDS}
        for address in sorted(silent - self._silent):
            self._terminal.note(
                f"the worker at {address} gave no sign of life for {_SILENT_SECONDS} seconds: "
                "others get its work"
            )
        self._silent = silent
        may = {
            address: threads for address, (threads, _) in workers.items() if address not in silent
        }
        self._threads = sum(may.values())
        if may and self._held:
            self._hand_on(places)

    def _hand_on(self, places: _Places) -> None:
        """Give others what only silent workers have, and what waits for a setup of theirs."""

        def lost(future: Any) -> bool:
            there, _ = places.get(future.key, (frozenset(), False))
            return bool(there) and there <= self._silent

        setup = lost(self._held[-1])
        if setup:
            self._held.append(self._new_setup())
        for task in self._pending:
            _, at_work = places.get(task.future.key, (frozenset(), True))
            if lost(task.future) or (setup and not (at_work or task.future.done())):
                self._again(task)

    def _new_setup(self) -> Any:
        key = f"gradcli-{self._run}-setup-{len(self._held)}"
        return self._client.submit(_itself, self._setup, key=key, **self._on_allowed())

    def _state(self, keys: Sequence[str]) -> tuple[dict[str, tuple[int, float]], _Places]:
        """The threads of each worker and the seconds since it was heard, and where tasks are."""

        def state(keys: Sequence[str], dask_scheduler: Any) -> Any:  # sent as it stands, as above
            from time import time

            workers = {
                address: (worker.nthreads, time() - worker.last_seen)
                for address, worker in dask_scheduler.workers.items()
            }
            places = {}
            for key in keys:
                if task := dask_scheduler.tasks.get(key):
                    at = {*(task.who_has or ()), task.processing_on} - {None}
                    at_work = any(task in each.executing for each in at)
                    places[key] = ({each.address for each in at}, at_work)
            return workers, places

        try:
            standing: tuple[dict[str, tuple[int, float]], _Places] = self._client.sync(
                self._client.run_on_scheduler, state, keys, callback_timeout=_SILENT_SECONDS
            )
            return standing
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            raise self._gone() from error

    def _tell_of_none(self) -> None:
        """Say once where there are no workers to do anything."""
        if not (self._threads or self._told_of_none):
            which = "workers that answer" if self._silent else "workers"
            self._terminal.note(f"the cluster at {self.address} has no {which}: waiting")
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
                self._client.cancel([task.future for task in self._pending], force=True)
                self._asked(_END_SECONDS, on_worker.end, self._run)
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
