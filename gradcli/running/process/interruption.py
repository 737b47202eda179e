"""What ends a run from outside: Ctrl-C, a request to terminate, and the limit of time; and the
ceiling on its memory.

A run that is not a session of the REPL leaves from inside the signal's handler. Raising an
exception instead would be lost wherever the host clears exceptions (a finalizer, a callback out of
C), would leave a traceback if it came while modules are imported, and would run the `finally` of
the program. All that has to be put in order is what is being written: the temporary files are
removed, and standard output gets what was printed.

Python runs a handler between two of its instructions, so not while NumPy or LAPACK are at work for
minutes. A thread therefore hears of each signal too, and does the handler's work where the main
thread does not get to it.
"""

from __future__ import annotations

import importlib.machinery
import os
import signal
import sys
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import FrameType, ModuleType
from typing import Any, ClassVar, NoReturn

from gradcli.errors import GradcliError
from gradcli.limits import MEMORY, Limits
from gradcli.state import State, active

_AGAIN = 1.0
"""Seconds after which the end of time is called out again: Python drops an exception that is
raised inside a finalizer.
"""

_SOON = 0.01
"""Seconds after which that, or Ctrl-C, is called out again when it came in the middle of an
import.
"""

_PATIENCE = 0.5
"""Seconds that the main thread has for answering a signal itself."""


AT_END: list[Callable[[], None]] = []
"""What is done before the process ends in the middle of a run."""

AT_WORK: list[Callable[[], str]] = []
"""What says where the runs at hand are, and how far; the innermost is the last."""


class OutOfTime(KeyboardInterrupt):
    """The limit of time was reached; `error` says so, with its span.

    It passes through everything that Ctrl-C passes through, so that a program cannot catch it.
    """

    def __init__(self, error: GradcliError) -> None:
        super().__init__()
        self.error = error


# --- leaving --------------------------------------------------------------------------------------


def leave_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end this process quietly with 130 and 143, whatever it does."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    if not hasattr(signal, "setitimer"):
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    if started(_listen, reading):
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)


def started(work: Callable[..., object], *arguments: object) -> bool:
    """Start a thread; whether the host has threads."""
    try:
        threading.Thread(target=work, args=arguments, daemon=True).start()
    except RuntimeError:
        return False
    return True


@contextmanager
def raising_on_signals() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt and SIGTERM SystemExit within the block."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before_fd = signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, partial(_interrupt, _imports_at(sys._getframe())))
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd, warn_on_full_buffer=False)


def is_ours() -> bool:
    """Whether this process is a command line's, which ends as `end` says and not as the host."""
    return signal.getsignal(signal.SIGTERM) in (_leave, _exit)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # once more is at once
    end(128 + number)


def _interrupt(imports: int, _number: int, frame: FrameType | None) -> None:
    """Ctrl-C's handler, in a block that itself stands in so many imports. It waits for others to
    end, as the end of time does.
    """
    if _imports_at(frame) > imports and started(_interrupt_soon):
        return
    # Where the program is, nobody knows any more once its statements are left.
    raise_when_whole(KeyboardInterrupt(*[describe() for describe in AT_WORK[-1:]]))


def call_again(dropped: sys.UnraisableHookArgs) -> None:
    """Call Ctrl-C out again where Python drops it, as it does in a finalizer and in a callback of
    a weak reference; a hook of `sys`. The end of time comes again by itself, and of all else that
    is dropped nobody is told.
    """
    if dropped.exc_type is KeyboardInterrupt:
        started(_interrupt_soon)


def _interrupt_soon() -> None:
    time.sleep(_SOON)
    if hasattr(signal, "pthread_kill"):  # which wakes a main thread that waits
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
    else:
        interrupt_main()


def _exit(number: int, _frame: FrameType | None) -> None:
    raise_when_whole(SystemExit(128 + number))


def raise_when_whole(interruption: BaseException) -> None:
    """Raise, as soon as a compiled iteration that is in the middle of its effects has ended."""
    state = active.state
    if not state.is_in_effects:
        raise interruption
    state.interruption = interruption


def remove_temporary() -> None:
    """Delete the files and folders that do not outlive the process."""
    for path in State.temporary:
        with suppress(OSError):
            if os.path.isdir(path):
                from shutil import rmtree  # lazy: few programs make temporary folders

                rmtree(path)
            else:
                os.unlink(path)


def end(code: int) -> NoReturn:
    """End the process; nothing is left half-written."""
    remove_temporary()
    for action in (*AT_END, sys.stdout.flush):
        with suppress(OSError, ValueError, RuntimeError):  # closed, or in the middle of writing
            action()
    os._exit(code)


def _listen(reading: int) -> NoReturn:
    """Answer signals that the main thread does not answer."""
    while True:
        number = os.read(reading, 1)[0]
        clock = _Clock.running
        time.sleep(_PATIENCE)
        if number in (signal.SIGINT, signal.SIGTERM):
            end(128 + number)
        if number == signal.SIGALRM and clock is not None and not clock.answered:
            clock.end()


# --- time -----------------------------------------------------------------------------------------


class _Clock:
    """The limit of time of the run at hand, kept by the host's timer.

    Attributes:
        answered: whether the run is over, or the main thread has noticed that its time is.
        before: what handled its signal before the run.
        imports: the imports that the run itself stands in, as that of a module which asks.
        running: the clock of this process, None while there is no limit.
    """

    running: _Clock | None = None

    def __init__(self, state: State, report: Callable[[GradcliError], None]) -> None:
        self.state = state
        self.report = report
        self.answered = False
        self.imports = _imports_at(sys._getframe())
        self.before: Any = self.listen()

    def error(self) -> GradcliError:
        """The error of the end of time, at the span that the program has reached."""
        error = self.state.limits.out_of_time()
        error.span = self.state.place
        error.stack = tuple(self.state.stack)
        return error

    def ring(self, _number: int, frame: FrameType | None) -> None:
        """The signal's handler.

        It waits for an import to end: a module that is left in its middle is taken out again while
        others keep parts of it, and an exception in a callback of the import system is lost.
        """
        self.answered = True
        if _imports_at(frame) > self.imports:
            self.ring_soon()
        else:
            raise_when_whole(OutOfTime(self.error()))

    def ring_soon(self) -> None:
        """Call the end of time out again, when an import may have ended."""
        self.start(_SOON)

    def end(self) -> NoReturn:
        """End the process, whose main thread does not answer."""
        error = self.error()
        self.report(error)
        end(error.exit_code)

    def listen(self) -> Any:
        """Handle the signal from now on; gives what handled it before."""
        return signal.signal(signal.SIGALRM, self.ring)

    def start(self, seconds: float) -> None:
        """Call the end of time out in so many seconds, and again after that."""
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)

    def stop(self) -> None:
        """Call nothing out from now on."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def leave(self) -> None:
        """Let the signal be handled as it was before."""
        signal.signal(signal.SIGALRM, self.before)


class _Watchdog(_Clock):
    """The same where the host has no timer: a thread waits, and calls by the signal of Ctrl-C.

    Attributes:
        due: whether the signal that comes is the thread's.
        over: set once the run is over.
    """

    def __init__(self, state: State, report: Callable[[GradcliError], None]) -> None:
        super().__init__(state, report)
        self.due = False
        self.over = threading.Event()

    def ring(self, number: int, frame: FrameType | None) -> None:
        if self.due:
            super().ring(number, frame)
        elif callable(self.before):
            self.before(number, frame)

    def listen(self) -> Any:
        return signal.signal(signal.SIGINT, self.ring)

    def start(self, seconds: float) -> None:
        if not started(self._watch, seconds):
            raise GradcliError(
                "E607",
                "the limit of time cannot be kept: there are neither timers nor threads here",
                help="run it without `--timeout`",
            )

    def ring_soon(self) -> None:
        """The thread calls again by itself."""

    def stop(self) -> None:
        self.over.set()

    def leave(self) -> None:
        signal.signal(signal.SIGINT, self.before)

    def _watch(self, wait: float) -> None:
        while not self.over.wait(wait):
            self.due = True
            interrupt_main()
            if self.over.wait(_PATIENCE):
                return
            if not self.answered:
                self.end()
            wait = _AGAIN


def _imports_at(frame: FrameType | None) -> int:
    """How many frames of the host's import system a frame stands in."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return count


@contextmanager
def limited_time(state: State, report: Callable[[GradcliError], None]) -> Iterator[None]:
    """End the block with E607 when it takes longer than the session's limit of time, or where the
    host or this thread cannot keep such a limit: only the main thread can be stopped so.

    Args:
        report: shows the error where a long call must be ended with the whole process.
    """
    seconds = state.limits.seconds
    if seconds is None:
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        raise GradcliError(
            "E607",
            "the limit of time cannot be kept in this thread: signals reach the main one alone",
            help="run it in the main thread, or in a process of its own",
        )
    kind = _Clock if hasattr(signal, "setitimer") else _Watchdog
    clock = _Clock.running = kind(state, report)
    try:
        try:
            clock.start(seconds)
            yield
        finally:  # the alarm may come in here, too
            clock.stop()
    except OutOfTime as end:
        raise end.error from None
    finally:
        clock.answered = True
        _Clock.running = None
        clock.stop()
        clock.leave()


# --- memory ---------------------------------------------------------------------------------------


Report = Callable[[GradcliError], object]

_CGROUP_FILES = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


@cache
def default_memory() -> int:
    """Half of the memory that the machine, or the container, has; at most `MEMORY`."""
    sizes = [2 * MEMORY]
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP_FILES:
        # "max" where there is no limit
        with suppress(OSError, ValueError), open(path, "rb") as file:
            sizes.append(int(file.read()))
    return min(each for each in sizes if each > 0) // 2


_RESERVE = 16_000_000
"""Bytes for reporting an error in the middle of a program. `bytes(n)` has them from the system
already zero and touches none, where `bytearray(n)` would write to each page at every start.
"""


@contextmanager
def memory_ceiling(limits: Limits, report: Report) -> Iterator[None]:
    """Let allocations fail with MemoryError, within the block, that take the process further than
    `limits.memory` bytes beyond what it has now.

    The ceiling is gone before an error of the block is reported, which needs memory of its own.

    Args:
        limits: the session's.
        report: shows the error where a library ends the process.
    """
    if limits.memory is None or _data() is None:
        yield
        return
    import resource

    with _GivenUp.during(limits, report):
        _prepare(os.getpid())
        used = _data() or 0
        before = resource.getrlimit(resource.RLIMIT_DATA)
        soft, hard = before
        ceiling = min(used + limits.memory + _RESERVE, sys.maxsize)
        for other in (soft, hard):
            if other != resource.RLIM_INFINITY:
                ceiling = min(ceiling, other)
        if ceiling == soft:  # inside a block of the same kind; setting it anew takes 0.2 ms
            limits.reserve = _reserve() if limits.reserve is None else limits.reserve
            yield
            return
        resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))
        loading = _Loading(limits)
        sys.meta_path.insert(0, loading)
        try:
            limits.reserve = _reserve()
            yield
        finally:
            limits.reserve = None
            sys.meta_path.remove(loading)
            resource.setrlimit(resource.RLIMIT_DATA, before)


# --- libraries ------------------------------------------------------------------------------------


class _Loading:
    """Loads modules beyond the ceiling, which moves up by what they take: a library is not the
    program's, and one that finds no memory as it starts may hang. Ours are small, and take part
    where the limit is tight.
    """

    def __init__(self, limits: Limits) -> None:
        self._all = limits.is_tight
        self._depth = 0

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's spec, with a loader that gives it room; None leaves it to the others."""
        if self._depth or not (self._all or name.startswith("scipy")):
            return None
        others = (each.find_spec(name, path, target) for each in sys.meta_path if each is not self)
        spec = next((each for each in others if each is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
        return spec

    @contextmanager
    def room(self) -> Iterator[None]:
        """No ceiling within the block."""
        import resource

        before, used = resource.getrlimit(resource.RLIMIT_DATA), _data() or 0
        resource.setrlimit(resource.RLIMIT_DATA, (before[1], before[1]))
        self._depth += 1
        try:
            yield
            blas: Any = sys.modules.get("scipy.linalg.blas")
            if hasattr(blas, "dgemv"):  # OpenBLAS again, with buffers of its own
                import numpy as np

                blas.dsyrk(1.0, np.ones((2, 2)))
                blas.dgemv(1.0, np.ones(_FOR_EACH_THREAD, order="F"), np.ones(_FOR_EACH_THREAD[1]))
        finally:
            self._depth -= 1
            ceiling = min(before[0] + max((_data() or 0) - used, 0), sys.maxsize)
            resource.setrlimit(resource.RLIMIT_DATA, (ceiling, before[1]))


class _Loader:
    """The loader of a module, which it puts back as it runs."""

    def __init__(self, loader: Any, loading: _Loading) -> None:
        self._loader = loader
        self._loading = loading

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        spec.loader = self._loader
        with self._loading.room():
            module: ModuleType | None = self._loader.create_module(spec)
        spec.loader = self  # type: ignore[assignment]
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        with self._loading.room():
            self._loader.exec_module(module)


_FOR_EACH_THREAD = (1024, 16)
"""The shape of a matrix whose product with a vector has work for each thread that BLAS may have."""


def _reserve() -> Any:
    """Memory that nobody writes to: zeros would be written where it was another block's before."""
    import numpy as np

    return np.empty(_RESERVE, np.uint8)


@cache
def _prepare(_process: int) -> None:
    """Load what every program needs, and let OpenBLAS make its buffers: libraries and their
    threads are not the program's. A fork has the buffers, and none of the threads.
    """
    import numpy as np

    one = np.ones((2, 2), np.float32)
    one @ one.T  # with a buffer at any size; a product of two small matrices has none on AVX-512
    np.ones(_FOR_EACH_THREAD, np.float32) @ np.ones(_FOR_EACH_THREAD[1], np.float32)


class _GivenUp:
    """What ends the process where a library does so, as OpenBLAS does without memory: with the
    error of that, and its exit code.

    Attributes:
        running: the limits and what shows an error, of each block that runs.
    """

    running: ClassVar[list[tuple[Limits, Report]]] = []

    @classmethod
    @contextmanager
    def during(cls, limits: Limits, report: Report) -> Iterator[None]:
        """Answer for what a library does within the block, in a process that is ours."""
        if is_ours():
            cls.prepare()
        cls.running.append((limits, report))
        try:
            yield
        finally:
            cls.running.pop()

    @classmethod
    @cache
    def prepare(cls) -> Any:
        """Have the system call `answer` as the process ends; nothing where it has no such list."""
        import ctypes

        answer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(cls.answer)
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None)["__cxa_atexit"](answer, None, None)
        return answer  # the system does not keep it

    @classmethod
    def answer(cls, _nothing: None) -> None:
        """Report the end, in whatever thread it came."""
        if cls.running:
            limits, report = cls.running[-1]
            error = limits.out_of_memory("a computation with matrices")
            error.span, error.stack = active.state.place, tuple(active.state.stack)
            report(error)
            end(error.exit_code)


def _data() -> int | None:
    """The bytes of data that this process has, None where the host does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[5])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
