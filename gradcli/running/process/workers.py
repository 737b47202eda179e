"""Work shared among processes: results come in the order of the tasks, and memory stays bounded.

The processes are forks, so they have what was read before; tasks and results are bytes. A thread
per process carries them, which lets a slow input or a slow task hold up nothing but itself. A
process that something ends costs nothing but time: another does its work.

None outlives the process that made it, however that ends: each reads a pipe of its own to whose
other end that process alone holds on. Linux kills the reader when such a pipe closes, even if it is
stopped or at work in C; elsewhere a thread waits for it.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import IO, NoReturn

from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.running.process.interruption import raising_on_signals, started

_AHEAD = 4
"""Tasks that each process may be ahead of the result that is waited for."""

_DONE, _FAILED = b"+", b"-"

_lifelines: set[int] = set()
"""The ends of pipes that processes live by: no fork may have them."""


def _release_lifelines() -> None:
    for end in _lifelines:
        os.close(end)
    _lifelines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_lifelines)


class Work(Record):
    """What processes do with tasks.

    Attributes:
        do: makes the result of a task.
        pieces: the parts of a task that go one by one after the process that had it ended; none
            where it cannot be done again.
        lost: the result of a part whose process ended at each of some attempts.
        retries: how often a part is tried again.
        within: what each process does all its work within.
    """

    do: Callable[[bytes], bytes]
    pieces: Callable[[bytes], list[bytes]]
    lost: Callable[[bytes, int], bytes]
    retries: int
    within: Callable[[], AbstractContextManager[None]] = nullcontext


def lost_process(attempts: int) -> GradcliError:
    """E608, the error of a piece of work whose process ended at each attempt."""
    again = f", at each of {attempts} attempts" if attempts > 1 else ""
    return GradcliError(
        "E608",
        f"the process ended before its work was done{again}",
        help="the system may have ended it for its memory: try fewer --jobs",
    )


def results(tasks: Iterator[bytes], work: Work, jobs: int) -> Generator[bytes, None, None]:
    """The results of each task, in order: one, or one for each of its pieces.

    Args:
        tasks: the tasks, drawn as they are needed.
        work: what is done with them; in other processes where `jobs` is more than 1.
        jobs: how many processes work.

    Raises:
        GradcliError: E608 where no process can be started; what `tasks` raises.
    """
    if jobs == 1 or not hasattr(os, "fork") or not started(lambda: None):
        with work.within():
            yield from map(work.do, tasks)
        return
    with raising_on_signals():  # the processes end with this one
        yield from _shared(tasks, work, jobs)


def _shared(tasks: Iterator[bytes], work: Work, jobs: int) -> Generator[bytes, None, None]:
    maker = os.getpid()
    workers: list[_Worker] = []
    try:
        yield from _Line(tasks, work, jobs, workers).ordered()
    finally:
        if os.getpid() == maker:  # a fork that drops its copy of this leaves the processes alone
            for worker in workers:
                worker.end()


class _Worker:
    """A process that works; it ends with the one that makes it."""

    def __init__(self, work: Work) -> None:
        signals = {signal.SIGINT, signal.SIGTERM}
        # What raises between the fork and `_serve` would run on there as a second parent.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        try:
            task_end, task_start = os.pipe()
            result_end, result_start = os.pipe()
            watched, self._lifeline = os.pipe()
            _lifelines.add(self._lifeline)
            self.process = os.fork()
            if self.process == 0:
                os.close(task_start)
                _serve(work, watched, task_end, result_start, before)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise GradcliError("E608", f"no process can be started: {reason}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for end in (task_end, result_start, watched):
            os.close(end)
        self._tasks = os.fdopen(task_start, "wb")
        self._results = os.fdopen(result_end, "rb")

    def do(self, task: bytes) -> bytes:
        """The result of a task; raises EOFError where the process ended, E901 where it failed."""
        try:
            send(self._tasks, task)
            answer = receive(self._results)
        except (OSError, ValueError) as error:
            raise EOFError from error
        if answer.startswith(_FAILED):
            raise GradcliError("E901", answer[1:].decode("utf-8", "replace"))
        return answer[1:]

    def end(self) -> None:
        """End the process, in the middle of its work if need be."""
        with suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        with suppress(OSError):  # what is left of a task cannot be sent
            self._tasks.close()
        self._results.close()
        _lifelines.discard(self._lifeline)
        os.close(self._lifeline)


def _serve(
    work: Work, lifeline: int, task_end: int, result_start: int, unblocked: Iterable[int]
) -> NoReturn:
    """What a process does: one task after the other."""
    try:
        end_with(lifeline)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        tasks, answers = os.fdopen(task_end, "rb"), os.fdopen(result_start, "wb")
        with work.within():
            while True:
                send(answers, _DONE + work.do(receive(tasks)))
    except Exception as error:
        with suppress(OSError):
            send(answers, _FAILED + f"{type(error).__name__}: {error}".encode())
    finally:  # nothing of it may run on in what the parent was doing
        os._exit(1)


def end_with(lifeline: int) -> None:
    """Let this process end when the one that made it is gone and its end of a pipe closes."""
    import fcntl  # lazy: Unix alone has it, and `fork`

    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # it closed before
            os._exit(1)
    else:

        def wait() -> None:
            os.read(lifeline, 1)
            os._exit(1)

        started(wait)


def send(stream: IO[bytes], content: bytes) -> None:
    """Write a message with its length in front."""
    stream.write(len(content).to_bytes(8, "little") + content)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """The next message; raises EOFError where there is none, or less than one."""
    head = stream.read(8)
    length = int.from_bytes(head, "little")
    content = stream.read(length)
    if len(head) < 8 or len(content) < length:
        raise EOFError
    return content


class _Line:
    """Tasks waiting for processes, and results waiting for their turn.

    A thread for each process carries tasks to it and results back. A process that has ended is
    replaced by `ordered`, in the thread that draws the results: no other may be in the middle of
    writing when the process is forked.
    """

    def __init__(
        self,
        tasks: Iterator[bytes],
        work: Work,
        jobs: int,
        workers: list[_Worker],
    ) -> None:
        self._tasks = enumerate(tasks)
        self._work = work
        self._workers = workers
        self._drawing = threading.Lock()
        self._room = threading.Semaphore(_AHEAD * jobs)
        self._changed = threading.Condition()
        self._done: dict[int, list[bytes]] = {}
        self._ended: set[int] = set()
        self._failure: BaseException | None = None
        self._working = jobs
        for _ in range(jobs):
            workers.append(_Worker(work))
        for place in range(jobs):
            threading.Thread(target=self._carry, args=(place,), daemon=True).start()

    def ordered(self) -> Iterator[bytes]:
        """The results in the order of their tasks."""
        number = 0
        while True:
            with self._changed:
                while number not in self._done and self._working and self._failure is None:
                    if self._ended:
                        self._replace()
                    else:
                        self._changed.wait()
                if number not in self._done:
                    if self._failure is not None:
                        raise self._failure
                    return
                results = self._done.pop(number)
            self._room.release()
            yield from results
            number += 1

    def _replace(self) -> None:
        for place in self._ended:
            self._workers[place].end()
            self._workers[place] = _Worker(self._work)
        self._ended.clear()
        self._changed.notify_all()

    def _carry(self, place: int) -> None:
        """Carry tasks to a process and its results back."""
        try:
            while True:
                self._room.acquire()
                with self._drawing:
                    number, task = next(self._tasks, (-1, b""))
                if number < 0:
                    break
                results = self._results(place, task)
                with self._changed:
                    self._done[number] = results
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._failure = self._failure or error
        with self._changed:
            self._working -= 1
            self._changed.notify_all()

    def _results(self, place: int, task: bytes) -> list[bytes]:
        """The results of a task. Where its process ends they are those of its pieces, each done
        alone: which of them was at fault shows then only.
        """
        result = self._attempt(place, task)
        if result is not None:
            return [result]
        pieces = self._work.pieces(task)
        if not pieces:
            return [self._work.lost(task, 1)]
        return [self._alone(place, piece, len(pieces) == 1) for piece in pieces]

    def _alone(self, place: int, piece: bytes, lost_before: bool) -> bytes:
        attempts = self._work.retries + 1
        for _ in range(lost_before, attempts):
            result = self._attempt(place, piece)
            if result is not None:
                return result
        return self._work.lost(piece, attempts)

    def _attempt(self, place: int, task: bytes) -> bytes | None:
        """The result of a task; None where the process ended, and another is there."""
        try:
            return self._workers[place].do(task)
        except EOFError:
            with self._changed:
                self._ended.add(place)
                self._changed.notify_all()
                while place in self._ended and self._failure is None:
                    self._changed.wait()
            return None
