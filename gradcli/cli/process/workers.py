"""Work shared among processes: results come in the order of the tasks, and memory stays bounded.

The processes are forks, so they have what was read before; tasks and results are bytes. A thread
per process carries them, which lets a slow input or a slow task hold up nothing but itself.
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

_AHEAD = 4
"""Tasks that each process may be ahead of the result that is waited for."""

_DONE, _FAILED = b"+", b"-"


def results(
    tasks: Iterator[bytes],
    work: Callable[[bytes], bytes],
    jobs: int,
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Generator[bytes, None, None]:
    """The result of each task, in order.

    Args:
        work: makes a result; it runs in another process where `jobs` is more than 1.
        jobs: how many processes work.
        within: what each process does all its work within.

    Raises:
        GradcliError: E608 where a process ended before its work was done; what `tasks` raises.
    """
    if jobs == 1 or not hasattr(os, "fork"):
        with within():
            yield from map(work, tasks)
        return
    with raising_on_signals():  # the processes end with this one
        yield from _shared(tasks, work, jobs, within)


def _shared(
    tasks: Iterator[bytes],
    work: Callable[[bytes], bytes],
    jobs: int,
    within: Callable[[], AbstractContextManager[None]],
) -> Generator[bytes, None, None]:
    workers: list[_Worker] = []
    try:
        lifeline = os.pipe()
        workers += [_Worker(work, within, lifeline) for _ in range(jobs)]
        yield from _Line(tasks, workers).ordered()
    finally:
        for worker in workers:
            worker.end()
        for end in lifeline:
            os.close(end)


class _Worker:
    """A process that works.

    Args:
        lifeline: a pipe that nobody writes to; it closes when this process ends, however it does.
    """

    def __init__(
        self,
        work: Callable[[bytes], bytes],
        within: Callable[[], AbstractContextManager[None]],
        lifeline: tuple[int, int],
    ) -> None:
        task_end, task_start = os.pipe()
        result_end, result_start = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(lifeline[1])
            os.close(task_start)
            _serve(work, within, lifeline[0], task_end, result_start)
        os.close(task_end)
        os.close(result_start)
        self._tasks = os.fdopen(task_start, "wb")
        self._results = os.fdopen(result_end, "rb")

    def do(self, task: bytes) -> bytes:
        """The result of a task; raises E608 where the process has ended, E901 where it failed."""
        try:
            _send(self._tasks, task)
            answer = _receive(self._results)
        except (OSError, EOFError, ValueError) as error:
            raise GradcliError(
                "E608",
                "a process of --jobs ended before its work was done",
                help="the system may have ended it for its memory: try fewer --jobs",
            ) from error
        if answer.startswith(_FAILED):
            raise GradcliError("E901", answer[1:].decode("utf-8", "replace"))
        return answer[1:]

    def end(self) -> None:
        """End the process, in the middle of its work if need be."""
        with suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)


def _serve(
    work: Callable[[bytes], bytes],
    within: Callable[[], AbstractContextManager[None]],
    lifeline: int,
    task_end: int,
    result_start: int,
) -> NoReturn:
    """What a process does: one task after the other."""
    try:
        tasks, answers = os.fdopen(task_end, "rb"), os.fdopen(result_start, "wb")
        threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
        with within():
            while True:
                _send(answers, _DONE + work(_receive(tasks)))
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
    """Tasks waiting for processes, and results waiting for their turn."""

    def __init__(self, tasks: Iterator[bytes], workers: list[_Worker]) -> None:
        self._tasks = enumerate(tasks)
        self._drawing = threading.Lock()
        self._room = threading.Semaphore(_AHEAD * len(workers))
        self._changed = threading.Condition()
        self._done: dict[int, bytes] = {}
        self._failure: BaseException | None = None
        self._working = len(workers)
        for worker in workers:
            threading.Thread(target=self._carry, args=(worker,), daemon=True).start()

    def ordered(self) -> Iterator[bytes]:
        """The results in the order of their tasks."""
        number = 0
        while True:
            with self._changed:
                while number not in self._done and self._working and self._failure is None:
                    self._changed.wait()
                if number not in self._done:
                    if self._failure is not None:
                        raise self._failure
                    return
                result = self._done.pop(number)
            self._room.release()
            yield result
            number += 1

    def _carry(self, worker: _Worker) -> None:
        """Carry tasks to a process and its results back."""
        try:
            while True:
                self._room.acquire()
                with self._drawing:
                    number, task = next(self._tasks, (-1, b""))
                if number < 0:
                    break
                result = worker.do(task)
                with self._changed:
                    self._done[number] = result
                    self._changed.notify()
        except BaseException as error:
            with self._changed:
                self._failure = self._failure or error
        with self._changed:
            self._working -= 1
            self._changed.notify()
