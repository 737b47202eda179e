"""Work shared among processes: results come in the order of the tasks, and memory stays bounded.

The processes are forks, so they have what was read before; tasks and results are bytes. A thread
per process carries them, which lets a slow input or a slow task hold up nothing but itself. A
process that something ends costs nothing but time: another does its work.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import IO, NoReturn

from gradcli.cli.process.interruption import raising_on_signals
from gradcli.errors import GradcliError
from gradcli.record import Record

_AHEAD = 4
"""Tasks that each process may be ahead of the result that is waited for."""

_DONE, _FAILED = b"+", b"-"


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
    if jobs == 1 or not hasattr(os, "fork"):
        with work.within():
            yield from map(work.do, tasks)
        return
    with raising_on_signals():  # the processes end with this one
        yield from _shared(tasks, work, jobs)


def _shared(tasks: Iterator[bytes], work: Work, jobs: int) -> Generator[bytes, None, None]:
    lifeline = os.pipe()
    workers: list[_Worker] = []
    try:
        yield from _Line(tasks, work, jobs, workers, lifeline).ordered()
    finally:
        for worker in workers:
            worker.end()
        for end in lifeline:
            os.close(end)


class _Worker:
    """A process that works.

    Args:
        work: what it does with each task.
        lifeline: a pipe that nobody writes to; it closes when this process ends, however it does.
    """

    def __init__(self, work: Work, lifeline: tuple[int, int]) -> None:
        try:
            task_end, task_start = os.pipe()
            result_end, result_start = os.pipe()
            self.process = os.fork()
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise GradcliError("E608", f"no process can be started: {reason}") from error
        if self.process == 0:
            os.close(lifeline[1])
            os.close(task_start)
            _serve(work, lifeline[0], task_end, result_start)
        os.close(task_end)
        os.close(result_start)
        self._tasks = os.fdopen(task_start, "wb")
        self._results = os.fdopen(result_end, "rb")

    def do(self, task: bytes) -> bytes:
        """The result of a task; raises EOFError where the process ended, E901 where it failed."""
        try:
            _send(self._tasks, task)
            answer = _receive(self._results)
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


def _serve(work: Work, lifeline: int, task_end: int, result_start: int) -> NoReturn:
    """What a process does: one task after the other."""
    try:
        tasks, answers = os.fdopen(task_end, "rb"), os.fdopen(result_start, "wb")
        threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
        with work.within():
            while True:
                _send(answers, _DONE + work.do(_receive(tasks)))
    except Exception as error:
        with suppress(OSError):
            _send(answers, _FAILED + f"{type(error).__name__}: {error}".encode())
    finally:  # nothing of it may run on in what the parent was doing
        os._exit(1)


def _end_with(lifeline: int) -> None:
    """End this process when the one that made it is gone."""
    os.read(lifeline, 1)
    os._exit(1)


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(len(content).to_bytes(8, "little") + content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    head = stream.read(8)
    content = stream.read(int.from_bytes(head, "little"))
    if len(head) < 8:
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
        lifeline: tuple[int, int],
    ) -> None:
        self._tasks = enumerate(tasks)
        self._work = work
        self._workers = workers
        self._lifeline = lifeline
        self._drawing = threading.Lock()
        self._room = threading.Semaphore(_AHEAD * jobs)
        self._changed = threading.Condition()
        self._done: dict[int, list[bytes]] = {}
        self._ended: set[int] = set()
        self._failure: BaseException | None = None
        self._working = jobs
        for _ in range(jobs):
            workers.append(_Worker(work, lifeline))
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
                found = self._done.pop(number)
            self._room.release()
            yield from found
            number += 1

    def _replace(self) -> None:
        for place in self._ended:
            self._workers[place].end()
            self._workers[place] = _Worker(self._work, self._lifeline)
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
                found = self._results(place, task)
                with self._changed:
                    self._done[number] = found
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
