"""The module `functools`."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import type_error, value_error
from gradcli.language.functions.calls import Function, call
from gradcli.language.limits import check_nesting
from gradcli.language.objects.attributes import documentation
from gradcli.language.objects.classes.descriptors import bound
from gradcli.language.objects.classes.user_classes import OBJECT, Instance, UserClass
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import (
    LanguageType,
    by_name,
    is_subclass,
    names,
    type_name,
    type_of,
)
from gradcli.library.python.classes.named_tuples import named_tuple
from gradcli.record import Record


class Partial:
    """`functools.partial(func, …)`: a function with some of its arguments given.

    Attributes:
        args, keywords: the arguments; a call's own come after them, and replace keywords.
    """

    __slots__ = ("args", "func", "keywords")

    language_name: ClassVar[str] = "functools.partial"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"args", "func", "keywords"})

    def __init__(self, func: Any, /, *args: Any, **keywords: Any) -> None:
        if not callable(func):
            raise type_error(f"partial() takes a function, not {type_name(func)}")
        if isinstance(func, Partial):  # one of a partial is one of its function
            func, args, keywords = func.func, (*func.args, *args), {**func.keywords, **keywords}
        self.func: Callable[..., Any] = func
        self.args = args
        self.keywords = keywords

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.func(*self.args, *args, **{**self.keywords, **keywords})

    def __repr__(self) -> str:
        return display(self)

    def language_write(self, writer: Any) -> None:
        """Write its text."""
        writer.put("functools.partial(")
        writer.write(self.func)
        for value in self.args:
            writer.put(", ")
            writer.write(value)
        for name, value in self.keywords.items():
            writer.put(f", {name}=")
            writer.write(value)
        writer.put(")")


_NONE = object()


def reduce(function: Callable[[Any, Any], Any], iterable: Any, initial: Any = _NONE, /) -> Any:
    """`functools.reduce(function, iterable)`: the values taken together from left to right.

    Raises E202 where there is none and no `initial`.
    """
    values = iter(bounded(iterable))
    result = next(values, _NONE) if initial is _NONE else initial
    if result is _NONE:
        raise type_error(
            "reduce() of nothing needs a value to begin with",
            text="reduce() of empty iterable with no initial value",
        )
    for value in values:
        result = function(result, value)
    return result


class LruCache:
    """A function that keeps what it returned: `functools.lru_cache`."""

    __slots__ = ("function", "hits", "maxsize", "misses", "results", "typed")

    language_name: ClassVar[str] = "functools._lru_cache_wrapper"
    language_decorated: ClassVar[bool] = True  # in a class it is a method
    language_attributes = names("__name__ __wrapped__ cache_clear cache_info cache_parameters")

    def __init__(self, function: Any, maxsize: int | None, typed: bool = False) -> None:
        self.function = function
        self.maxsize = maxsize
        self.typed = typed
        self.cache_clear()

    @property
    def __wrapped__(self) -> Any:
        return self.function

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", "function"))

    @property
    def language_doc(self) -> str | None:
        """What the function says of itself."""
        return getattr(self.function, "language_doc", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key: tuple[Any, ...] = (args, tuple(kwargs.items()))
        if self.typed:
            key += tuple([type_of(each) for each in (*args, *kwargs.values())])
        check_nesting(key)
        if key in self.results:
            self.hits += 1
            self.results.move_to_end(key)
            return self.results[key]
        self.misses += 1
        result = call(self.function, args, kwargs)
        if self.maxsize != 0:
            self.results[key] = result
        if self.maxsize is not None and len(self.results) > self.maxsize:
            self.results.popitem(last=False)
        return result

    def cache_clear(self) -> None:
        """Forget everything."""
        self.results: OrderedDict[Any, Any] = OrderedDict()
        self.hits = self.misses = 0

    def cache_info(self) -> Any:
        """How often it knew the result."""
        return _INFO(self.hits, self.misses, self.maxsize, len(self.results))

    def cache_parameters(self) -> dict[str, Any]:
        """How it was made."""
        return {"maxsize": self.maxsize, "typed": self.typed}


_INFO = named_tuple("CacheInfo", ["hits", "misses", "maxsize", "currsize"], {})


def lru_cache(maxsize: Any = 128, typed: Any = False) -> Any:
    """`@lru_cache` and `@lru_cache(maxsize=…)`."""
    if callable(maxsize):
        return LruCache(maxsize, 128, bool(typed))
    size = None if maxsize is None else max(maxsize, 0)
    return lambda function: LruCache(function, size, bool(typed))


def cache(user_function: Any, /) -> LruCache:
    """`@cache`: without a bound."""
    return LruCache(user_function, None)


class PartialMethod:
    """`functools.partialmethod(func, …)`: a method with some of its arguments given."""

    __slots__ = ("args", "func", "keywords")

    language_name: ClassVar[str] = "functools.partialmethod"

    def __init__(self, func: Any, /, *args: Any, **keywords: Any) -> None:
        self.func = func
        self.args = args
        self.keywords = keywords

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The method of an instance, or (None) the function, with the arguments given."""
        return Partial(bound(self.func, instance, owner), *self.args, **self.keywords)


class CachedProperty:
    """`functools.cached_property`: computed when it is first read."""

    __slots__ = ("func",)

    language_name: ClassVar[str] = "functools.cached_property"

    def __init__(self, func: Any) -> None:
        self.func = func

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The value, which the instance keeps from now on."""
        if instance is None:
            return self
        value = call(self.func, (instance,), {})
        instance.language_setattr(self.func.__name__, value)
        return value


class SingleDispatch:
    """A function that has another body for each class of its first argument:
    `functools.singledispatch`.

    Attributes:
        bodies: the functions by class, in the order of registering.
    """

    __slots__ = ("bodies", "default")

    language_name: ClassVar[str] = "functools.singledispatch"
    language_decorated: ClassVar[bool] = True  # in a class it is a method
    language_attributes = names("__name__ dispatch register registry")

    def __init__(self, func: Any) -> None:
        self.default = func
        self.bodies: dict[Any, Any] = {OBJECT: func}

    @property
    def __name__(self) -> str:
        return str(getattr(self.default, "__name__", "function"))

    @property
    def registry(self) -> dict[Any, Any]:
        """The functions by class."""
        return dict(self.bodies)

    def register(self, cls: Any, func: Any = None) -> Any:
        """`@f.register(cls)`, and `@f.register` where the function annotates its first parameter;
        raises E202 for no class.
        """
        if func is None and type(cls) is Function:
            known = {} if cls.annotate is None else cls.annotate()
            if not known:
                raise type_error(
                    f"register() takes a class, or a function that annotates its first parameter,"
                    f" which {cls.name}() does not",
                    text=f"Invalid first argument to `register()`: {display(cls)}. Use either"
                    " `@register(some_class)` or plain `@register` on an annotated function.",
                )
            cls, func = next(iter(known.values())), cls
        if not isinstance(cls, (LanguageType, type)):
            raise type_error(
                f"register() takes a class, not {type_name(cls)}",
                help="write the class in brackets: `@f.register(int)`",
            )
        if func is None:
            return lambda function: self.register(cls, function)
        self.bodies[cls] = func
        return func

    def dispatch(self, cls: Any) -> Any:
        """The function for a class: that of the nearest one above it."""
        fitting = [each for each in self.bodies if is_subclass(cls, each)]
        best = fitting[0]
        for each in fitting:
            best = each if is_subclass(each, best) else best
        return self.bodies[best]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not args:
            raise type_error(f"{self.__name__} requires at least 1 positional argument")
        return call(self.dispatch(type_of(args[0])), args, kwargs)


class SingleDispatchMethod(SingleDispatch):
    """`functools.singledispatchmethod`: the class of the argument after `self` decides."""

    __slots__ = ()

    language_name: ClassVar[str] = "functools.singledispatchmethod"

    def language_get(self, instance: Any, owner: LanguageType) -> Any:
        """The method of an instance, or (None) the function itself."""
        if instance is None:
            return self
        return lambda *args, **kwargs: call(
            self.dispatch(type_of(args[0])), (instance, *args), kwargs
        )


def wraps(wrapped: Any, assigned: Any = (), updated: Any = ()) -> Callable[[Any], Any]:
    """`@wraps(function)`: the function below takes its name and text."""
    return lambda wrapper: update_wrapper(wrapper, wrapped)


def update_wrapper(wrapper: Any, wrapped: Any, assigned: Any = (), updated: Any = ()) -> Any:
    """Give a function the name and the text of the one that it wraps."""
    if type(wrapper) is Function:
        wrapper.wrapped = wrapped
        wrapper.name = str(getattr(wrapped, "__name__", wrapper.name))
        wrapper.annotate = getattr(wrapped, "annotate", None)
    elif isinstance(wrapper, Instance):
        wrapper.values |= {
            "__name__": str(getattr(wrapped, "__name__", "")),
            "__doc__": documentation(wrapped),
            "__wrapped__": wrapped,
        }
    return wrapper


def cmp_to_key(mycmp: Any) -> Callable[[Any], Any]:
    """A key for `sorted` from a function that compares two values."""
    return lambda value: _Compared(value, mycmp)


class _Compared(Record):
    value: Any
    compare: Any

    language_name: ClassVar[str] = "functools.KeyWrapper"

    def __lt__(self, other: _Compared) -> bool:
        return bool(call(self.compare, (self.value, other.value), {}) < 0)


_ORDERINGS = {
    "lt": ("gt", "le", "ge"), "gt": ("lt", "ge", "le"),
    "le": ("ge", "lt", "gt"), "ge": ("le", "gt", "lt"),
}  # fmt: skip
"""For each comparison that a class may have those made of it: the same from the other side, the
same with or without equality, the opposite.
"""


def _orderings(root: str) -> dict[str, Callable[[Any, Any], Any]]:
    holds = getattr(operator, root)
    functions: tuple[Callable[[Any, Any], Any], ...]
    if root in ("lt", "gt"):
        functions = (lambda a, b: not (holds(a, b) or a == b), lambda a, b: holds(a, b) or a == b)
    else:
        functions = (lambda a, b: not holds(a, b) or a == b, lambda a, b: holds(a, b) and a != b)
    return dict(zip(_ORDERINGS[root], (*functions, lambda a, b: not holds(a, b)), strict=True))


def total_ordering(cls: Any) -> Any:
    """`@total_ordering`: the comparisons that a class leaves out, from one that it has."""
    own = getattr(cls, "names", ())
    root = next((name for name in _ORDERINGS if f"__{name}__" in own), None)
    if not isinstance(cls, UserClass) or root is None:
        raise value_error("must define at least one ordering operation: < > <= >=")
    for name, function in _orderings(root).items():
        if f"__{name}__" not in own:
            cls.bind(f"__{name}__", function)
    return cls


FUNCTOOLS: dict[str, Any] = {
    **by_name(cache, cmp_to_key, lru_cache, reduce, total_ordering, update_wrapper, wraps),
    "cached_property": CachedProperty,
    "partial": Partial,
    "partialmethod": PartialMethod,
    "singledispatch": SingleDispatch,
    "singledispatchmethod": SingleDispatchMethod,
}
"""What `functools` holds."""
