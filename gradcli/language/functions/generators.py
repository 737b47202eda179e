"""Generators of a program as the host's iterators: what `next` and `send` go on with."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from types import GeneratorType
from typing import Any, NoReturn

from gradcli.errors import GradcliError, runtime_error
from gradcli.language.functions.calls import locate, too_many_calls
from gradcli.language.limits import (
    DEEPEST_CALL,
    DEEPEST_HOST_CALL,
    enter_host_call,
    too_many_steps,
)
from gradcli.language.objects.exceptions import Raised
from gradcli.language.objects.iteration import Iterator, iterate
from gradcli.state import State, active

Frame = Generator[Any, Any, "tuple[Any] | None"]
"""A body that waits at its `yield`; it ends with what a block ends with."""


def within(contexts: tuple[Any, ...], enter: Callable[[Any], Any], value: Any) -> Any:
    """What a call gives within contexts, the innermost first."""
    with ExitStack() as around:
        for context in reversed(contexts):
            around.enter_context(context)
        return enter(value)


def ended_by(error: Exception, state: State) -> NoReturn:
    """Raise what a program sees of the error that ended a generator."""
    if isinstance(error, StopIteration):
        raise RuntimeError("generator raised StopIteration") from error
    if isinstance(error, GradcliError):
        locate(error, state)
        if error.raises == "StopIteration":
            failure = runtime_error("generator raised StopIteration")
            failure.cause = error
            raise locate(failure, state) from error
    raise error


def generator_exit() -> Raised:
    """The exception that `close` raises in a body."""
    return Raised("GeneratorExit", "", ())


def may_close(state: State) -> bool:
    """Whether a generator that nothing leads to any more is closed: only while its session runs,
    whose limits hold for its body. That of another one could print in this one's name.
    """
    return active.state is state


class Running:
    """One generator that was called.

    Attributes:
        contexts: what it is in while it runs, the innermost first.
        name: its function's name.
        frame: its body.
        handled: the errors whose `except` is running, which the whole session shares.
        kept: those of them that are the generator's own, while it waits.
        is_running: whether it has been gone on with and has not come to its next `yield`.
    """

    __slots__ = (
        "__weakref__",
        "contexts",
        "frame",
        "handled",
        "is_running",
        "kept",
        "name",
        "state",
    )

    def __init__(self, name: str, frame: Frame, handled: list[GradcliError], state: State) -> None:
        self.contexts: tuple[Any, ...] = ()
        self.name = name
        self.frame = frame
        self.handled = handled
        self.kept: list[GradcliError] = []
        self.state = state
        self.is_running = False

    def __iter__(self) -> Running:
        return self

    def __next__(self) -> Any:
        return self._go_on(self.frame.send, None)

    def send(self, value: Any) -> Any:
        """Go on with a value for the `yield` that it waits at."""
        return self._go_on(self.frame.send, value)

    def throw(self, error: BaseException) -> Any:
        """Go on with an error raised at that `yield`."""
        return self._go_on(self.frame.throw, error)

    def close(self) -> None:
        """End it: the program's own GeneratorExit is raised at that `yield`."""
        try:
            self.throw(generator_exit())
        except StopIteration:
            return
        except GradcliError as error:
            if error.raises != "GeneratorExit":
                raise
            error.__traceback__ = None  # its frames hold what the caller has, and the error itself
            return
        raise runtime_error("generator ignored GeneratorExit")

    def __del__(self) -> None:
        with suppress(BaseException):  # nobody is left to hear of it
            frame = self.frame
            waits = isinstance(frame, GeneratorType) and frame.gi_yieldfrom is not None
            if waits and may_close(self.state):
                self.close()  # it waits in a `try` or a `with`

    def _go_on(self, enter: Callable[[Any], Any], value: Any) -> Any:
        """Run up to the next `yield`; raises StopIteration with what the body returned."""
        if self.is_running:
            raise ValueError("generator already executing")
        state, handled = self.state, self.handled
        steps, stack, place = state.steps, state.stack, state.place
        steps.left -= 1
        if steps.left < 0:
            raise too_many_steps()
        if len(stack) >= DEEPEST_CALL:
            raise too_many_calls(self.name)
        if steps.nested >= DEEPEST_HOST_CALL:
            enter_host_call(steps)  # which says so
        steps.nested += 1
        own = len(handled)
        if self.kept:
            handled += self.kept
        stack.append((self.name, place))
        self.is_running = True
        try:
            return within(self.contexts, enter, value) if self.contexts else enter(value)
        except StopIteration as ended:
            result = ended.value
            raise StopIteration(*([] if result is None else result)) from None
        except GradcliError as error:
            ended_by(error, state)
        finally:
            self.is_running = False
            if self.kept or len(handled) > own:
                self.kept = handled[own:]
                del handled[own:]
            stack.pop()
            steps.nested -= 1
            state.place = place


class Delegate:
    """What `yield from generator` draws from: one that is closed, and told nothing else, where
    GeneratorExit is raised around it.
    """

    __slots__ = ("source",)

    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Delegate:
        return self

    def __next__(self) -> Any:
        return next(self.source)

    def send(self, value: Any) -> Any:
        """Go on with a value."""
        return self.source.send(value)

    def throw(self, error: BaseException) -> Any:
        """Go on with an error, but for the one that ends what is around it."""
        if isinstance(error, GradcliError) and error.raises == "GeneratorExit":
            self.source.close()
            raise error
        return self.source.throw(error)


def delegate(values: Any) -> Generator[Any, Any, Any]:
    """`yield from values`, and the result of it."""
    if is_generator(values):
        return (yield from Delegate(values.source))
    yield from iterate(values)
    return None


KINDS: set[type] = {Running}
"""The classes of generators: nodes have one in C."""


def is_generator(values: Any) -> bool:
    """Whether a value is a generator of a function of the program's."""
    return type(values) is Iterator and type(values.source) in KINDS
