"""The modules `contextlib` and `abc`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.autograd.modes import decorated
from gradcli.errors import GradcliError, runtime_error, type_error
from gradcli.language.events import Printed, Reported
from gradcli.language.functions.calls import Function, call
from gradcli.language.functions.generators import is_generator
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.classes.definition import Metaclass, host_of, make_class
from gradcli.language.objects.classes.user_classes import OBJECT, Instance
from gradcli.language.objects.exceptions import handles
from gradcli.language.objects.types import EnteredAsItself, by_name, called, names, type_name
from gradcli.state import active


class GeneratorContext:
    """What a function under `@contextmanager` returns: a context, and a decorator."""

    __slots__ = ("args", "function", "kwargs", "running")

    language_name: ClassVar[str] = "contextlib._GeneratorContextManager"
    language_context: ClassVar[bool] = True

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    def __call__(self, function: Any) -> Any:
        """The function within a context of its own."""

        def inside(*args: Any, **kwargs: Any) -> Any:
            context = GeneratorContext(self.function, self.args, self.kwargs)
            context.__enter__()
            try:
                result = call(function, args, kwargs)
            except GradcliError as error:
                if not context.__exit__(None, error, None):
                    raise
                return None
            context.__exit__(None, None, None)
            return result

        vars(inside)["language_decorated"] = True
        return called(str(getattr(function, "__name__", "function")), inside)

    def __enter__(self) -> Any:
        generator = call(self.function, self.args, self.kwargs)
        if not is_generator(generator):
            raise type_error("a function under @contextmanager has a `yield`")
        self.running = generator.source
        try:
            return next(self.running)
        except StopIteration:
            raise runtime_error("generator didn't yield") from None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if error is None:
            for _ in self.running:
                raise runtime_error("generator didn't stop")
            return False
        try:
            self.running.throw(error)
        except StopIteration:
            return True
        except GradcliError as raised:
            if raised is error:
                return False
            raise
        raise runtime_error("generator didn't stop after throw()")


def contextmanager(func: Any) -> Any:
    """`@contextmanager`: a generator function as a context."""

    def context(*args: Any, **kwargs: Any) -> GeneratorContext:
        return GeneratorContext(func, args, kwargs)

    vars(context)["language_decorated"] = True
    return called(str(getattr(func, "__name__", "context")), context)


class Suppress:
    """`contextlib.suppress(*exceptions)`."""

    __slots__ = ("classes",)

    language_name: ClassVar[str] = "contextlib.suppress"
    language_context: ClassVar[bool] = True

    def __init__(self, *exceptions: Any) -> None:
        self.classes = exceptions

    def __enter__(self) -> None:
        """There is nothing to begin."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        return error is not None and handles(self.classes, error)


class NullContext:
    """`contextlib.nullcontext(value)`."""

    __slots__ = ("value",)

    language_name: ClassVar[str] = "contextlib.nullcontext"
    language_context: ClassVar[bool] = True

    def __init__(self, enter_result: Any = None) -> None:
        self.value = enter_result

    def __enter__(self) -> Any:
        return self.value

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """There is nothing to end."""


class Redirect:
    """`contextlib.redirect_stdout(target)` and `redirect_stderr`."""

    __slots__ = ("before", "event", "target")

    language_name: ClassVar[str] = "contextlib.redirect_stdout"
    language_context: ClassVar[bool] = True

    def __init__(self, target: Any, event: type = Printed) -> None:
        self.target = target
        self.event = event

    def __enter__(self) -> Any:
        state, write = active.state, get_attribute(self.target, "write")
        redirected: Any = self.event
        before = self.before = state.emit

        def emit(event: Any) -> None:
            if isinstance(event, redirected):
                call(write, (event.text,), {})
            else:
                before(event)

        state.emit = emit
        return self.target

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        active.state.emit = self.before


class ExitStack(EnteredAsItself):
    """`contextlib.ExitStack()`: contexts that are left in reverse."""

    __slots__ = ("leaves",)

    language_name: ClassVar[str] = "contextlib.ExitStack"
    language_attributes = names("callback close enter_context push")

    def __init__(self) -> None:
        self.leaves: list[Any] = []

    def enter_context(self, cm: Any) -> Any:
        """Enter a context, to be left with the others."""
        if not getattr(type(cm), "language_context", False):
            raise type_error(f"a value of type {type_name(cm)} is no context")
        entered = cm.__enter__()
        self.leaves.append(cm.__exit__)
        return entered

    def push(self, exit: Any) -> Any:
        """Leave a context that was entered elsewhere with the others, or call a function as one is
        left.
        """
        is_context = getattr(type(exit), "language_context", False)
        self.leaves.append(exit.__exit__ if is_context else lambda *error: call(exit, error, {}))
        return exit

    def callback(self, callback: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function at the end."""
        self.leaves.append(lambda *_: call(callback, args, kwargs) and None)
        return callback

    def close(self) -> None:
        """Leave them all."""
        self.__exit__(None, None, None)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        taken = False
        while self.leaves:
            if self.leaves.pop()(kind, error, traceback):
                taken, kind, error = True, None, None
        return taken


def redirect_stderr(new_target: Any) -> Redirect:
    """`contextlib.redirect_stderr(target)`."""
    return Redirect(new_target, Reported)


class closing(NullContext):
    """`contextlib.closing(thing)`: its `close()` is called at the end."""

    __slots__ = ()

    language_name: ClassVar[str] = "contextlib.closing"

    def __init__(self, thing: Any) -> None:
        super().__init__(thing)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        call(get_attribute(self.value, "close"), (), {})


class ContextDecorator(Instance):
    """`contextlib.ContextDecorator`: a class of contexts whose objects decorate functions too."""

    language_name: ClassVar[str] = "contextlib.ContextDecorator"

    def __call__(self, func: Any) -> Callable[..., Any]:
        return decorated(self, func)


class AbstractContextManager(EnteredAsItself, Instance):
    """`contextlib.AbstractContextManager`: a context that is entered as itself."""

    language_name: ClassVar[str] = "contextlib.AbstractContextManager"


CONTEXTLIB: dict[str, Any] = {
    **by_name(AbstractContextManager, ContextDecorator, ExitStack, closing, contextmanager),
    **by_name(redirect_stderr),
    "nullcontext": NullContext,
    "redirect_stdout": Redirect,
    "suppress": Suppress,
}
"""What `contextlib` holds."""


class ABC(Instance):
    """`abc.ABC`: the base of classes with abstract methods."""

    language_name: ClassVar[str] = "abc.ABC"

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        _check_concrete(cls)
        return super().__new__(cls)

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        make: Any = cls.__new__
        if make is ABC.__new__:
            return

        def new(kind: Any, *args: Any, **kwargs: Any) -> Any:  # another base makes the object
            _check_concrete(kind)
            return make(kind, *args, **kwargs)

        cls.__new__ = staticmethod(new)  # type: ignore[assignment]


class ABCMeta(Metaclass):
    """`abc.ABCMeta`: the class of classes with abstract methods."""

    language_name: ClassVar[str] = "abc.ABCMeta"

    @staticmethod
    def language_new(metaclass: Any, name: Any, bases: Any, names: Any, **keywords: Any) -> Any:
        """The class, derived from `ABC`."""
        known = [host_of(base) for base in bases]
        if not any(issubclass(base, ABC) for base in known):
            bases = (*[base for base in bases if base is not OBJECT], ABC)
        return make_class(metaclass, name, bases, names, **keywords)


def _check_concrete(host: Any) -> None:
    """Raise E202 where a class of the program's leaves methods abstract."""
    missing = _abstract(host.language_class) if hasattr(host, "language_class") else []
    if missing:
        many = "methods" if len(missing) > 1 else "method"
        raise type_error(
            f"Can't instantiate abstract class {host.language_class.name} with abstract {many}"
            f" {', '.join(missing)}"
        )


def _abstract(cls: Any) -> list[str]:
    """The methods that a class leaves abstract."""
    classes = [vars(host).get("language_class") for host in cls.host.__mro__]
    abstract = []
    for name in sorted({name for each in classes if each is not None for name in each.names}):
        value = cls.find(name)
        inner = getattr(value, "fget", None) or getattr(value, "function", value)
        if type(inner) is Function and getattr(inner, "wrapped", None) is abstractmethod:
            abstract.append(name)
    return abstract


def abstractmethod(funcobj: Any) -> Any:
    """`@abstractmethod`."""
    if type(funcobj) is Function:
        funcobj.wrapped = abstractmethod
    return funcobj


ABSTRACT_CLASSES: dict[str, Any] = {
    **by_name(ABC, ABCMeta, abstractmethod),
}
"""What `abc` holds."""
