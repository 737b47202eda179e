"""Python's modules of functional programming: `functools`, `itertools`, whose iterators count each
value when it is drawn, and `operator`, the language's own operators as functions.
"""

from __future__ import annotations

import itertools as host
import operator
from collections import OrderedDict
from collections.abc import Callable, Generator
from collections.abc import Iterator as HostIterator
from keyword import iskeyword
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.functions.calls import Function, call, for_host
from gradcli.language.limits import check_collection, check_nesting, too_many_steps
from gradcli.language.objects.attributes import documentation, get_attribute
from gradcli.language.objects.classes.special_methods import ARITHMETIC, COMPARISONS
from gradcli.language.objects.classes.user_classes import OBJECT, Instance, UserClass, bound
from gradcli.language.objects.iteration import Iterator, bounded, drawing, iterate
from gradcli.language.objects.operators import (
    augmented,
    binary,
    contains,
    delete_item,
    get_item,
    identity,
    set_item,
    unary,
)
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import (
    LanguageType,
    by_name,
    called,
    check_kind,
    is_subclass,
    names,
    type_name,
    type_of,
)
from gradcli.library.python.collections import named_tuple
from gradcli.record import Record
from gradcli.state import active

# --- functools ------------------------------------------------------------------------------------


class Partial:
    """`functools.partial(func, …)`: a function with some of its arguments given.

    Attributes:
        args, keywords: the arguments; a call's own come after them, and replace keywords.
    """

    __slots__ = ("args", "func", "keywords")

    copied_by_slots: ClassVar[bool] = True
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


# --- itertools ------------------------------------------------------------------------------------


def _counted(values: Any) -> Generator[Any, None, None]:
    """The values of an iterable, each a step: of some there is no end.

    The iterator is made at once, as by the host: a loader draws its seed when it is asked for one.
    """
    return _stepwise(iterate(values))


def _stepwise(values: HostIterator[Any]) -> Generator[Any, None, None]:
    steps = active.state.steps
    for value in values:
        steps.left -= 1
        if steps.left < 0:
            raise too_many_steps()
        yield value


def _pool(values: Any) -> tuple[Any, ...]:
    return tuple(bounded(values))


def count(start: Any = 0, step: Any = 1) -> Iterator:
    if not all(isinstance(value, (int, float, complex)) for value in (start, step)):
        raise type_error("a number is required")
    return drawing("count", host.count(start, step))


def cycle(iterable: Any, /) -> Iterator:
    return drawing("cycle", host.cycle(_counted(iterable)), iterable)


def repeat(object: Any, times: Any = None) -> Iterator:
    return drawing("repeat", host.repeat(object) if times is None else host.repeat(object, times))


def accumulate(iterable: Any, func: Any = None, *, initial: Any = None) -> Iterator:
    add = for_host(func) or (lambda left, right: binary("+", left, right))
    values = host.accumulate(_counted(iterable), add, initial=initial)
    return drawing("accumulate", values, iterable)


class Chain:
    """`itertools.chain`, a class with a second constructor."""

    __slots__ = ()

    language_name: ClassVar[str] = "type"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"__name__", "from_iterable"})
    __name__ = "chain"

    def __call__(self, *iterables: Any) -> Iterator:
        return drawing("chain", _each(iter(iterables)), *iterables)

    def from_iterable(self, iterable: Any, /) -> Iterator:
        """The values of the iterables that an iterable gives."""
        return drawing("chain", _each(iterate(iterable)), iterable)

    def __repr__(self) -> str:
        return "<class 'itertools.chain'>"


def _each(iterables: HostIterator[Any]) -> Generator[Any, None, None]:
    for values in iterables:
        yield from _counted(values)


def combinations(iterable: Any, r: Any) -> Iterator:
    return drawing("combinations", host.combinations(_pool(iterable), r))


def combinations_with_replacement(iterable: Any, r: Any) -> Iterator:
    check_collection(r if isinstance(r, int) else 0)
    values = host.combinations_with_replacement(_pool(iterable), r)
    return drawing("combinations_with_replacement", values)


def permutations(iterable: Any, r: Any = None) -> Iterator:
    return drawing("permutations", host.permutations(_pool(iterable), r))


def product(*iterables: Any, repeat: Any = 1) -> Iterator:
    pools = [_pool(values) for values in iterables]
    if isinstance(repeat, int):
        check_collection((sum(map(len, pools)) + len(pools)) * repeat)
    return drawing("product", host.product(*pools, repeat=repeat))


def compress(data: Any, selectors: Any) -> Iterator:
    return drawing("compress", host.compress(_counted(data), _counted(selectors)), data, selectors)


def dropwhile(predicate: Any, iterable: Any, /) -> Iterator:
    values = host.dropwhile(for_host(predicate), _counted(iterable))
    return drawing("dropwhile", values, iterable)


def takewhile(predicate: Any, iterable: Any, /) -> Iterator:
    values = host.takewhile(for_host(predicate), _counted(iterable))
    return drawing("takewhile", values, iterable)


def filterfalse(function: Any, iterable: Any, /) -> Iterator:
    values = host.filterfalse(for_host(function), _counted(iterable))
    return drawing("filterfalse", values, iterable)


def groupby(iterable: Any, key: Any = None) -> Iterator:
    groups = host.groupby(_counted(iterable), for_host(key))
    drawn = ((at, drawing("_grouper", values)) for at, values in groups)
    return drawing("groupby", drawn, iterable)


def islice(iterable: Any, /, *limits: Any) -> Iterator:
    if not 1 <= len(limits) <= 3:
        raise GradcliError("E201", f"islice() takes 2 to 4 arguments, not {1 + len(limits)}")
    source = iterable.source if type(iterable) is Iterator else iterate(iterable)
    return drawing("islice", host.islice(_paced(source), *limits), iterable)


class _paced:
    """An iterator whose values are steps, and which waits where it is left."""

    __slots__ = ("source", "steps")

    def __init__(self, source: HostIterator[Any]) -> None:
        self.source = iter(source)
        self.steps = active.state.steps

    def __iter__(self) -> _paced:
        return self

    def __next__(self) -> Any:
        self.steps.left -= 1
        if self.steps.left < 0:
            raise too_many_steps()
        return next(self.source)


def pairwise(iterable: Any, /) -> Iterator:
    return drawing("pairwise", host.pairwise(_counted(iterable)), iterable)


def starmap(function: Any, iterable: Any, /) -> Iterator:
    values = (call(function, tuple(bounded(arguments)), {}) for arguments in _counted(iterable))
    return drawing("starmap", values, iterable)


def tee(iterable: Any, n: Any = 2, /) -> tuple[Iterator, ...]:
    check_kind(n, int, "tee() takes a number")
    check_collection(max(n, 0))
    return tuple(drawing("_tee", each, iterable) for each in host.tee(_counted(iterable), n))


def zip_longest(*iterables: Any, fillvalue: Any = None) -> Iterator:
    sources = [_counted(values) for values in iterables]
    return drawing("zip_longest", host.zip_longest(*sources, fillvalue=fillvalue), *iterables)


ITERTOOLS: dict[str, Any] = {
    "chain": Chain(),
    **by_name(accumulate, combinations, combinations_with_replacement, compress, count, cycle),
    **by_name(dropwhile, filterfalse, groupby, islice, pairwise, permutations, product, repeat),
    **by_name(starmap, takewhile, tee, zip_longest),
}
"""What `itertools` holds."""


# --- operator -------------------------------------------------------------------------------------


_NAMES = {symbol: f"{name}_" if iskeyword(name) else name for symbol, name in ARITHMETIC.items()}
_UNARY = {"inv": "~", "invert": "~", "neg": "-", "pos": "+"}


def _binary(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b, /: binary(symbol, a, b)


def _unary(symbol: str) -> Callable[[Any], Any]:
    return lambda a, /: unary(symbol, a)


def _augmented(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda a, b, /: augmented(symbol, a, b)


def itemgetter(*items: Any) -> Callable[[Any], Any]:
    """`operator.itemgetter(item, …)`."""
    if not items:
        raise GradcliError("E201", "itemgetter() needs an item")
    if len(items) == 1:
        return lambda obj, /: get_item(obj, items[0])
    return lambda obj, /: tuple([get_item(obj, item) for item in items])


def attrgetter(*attrs: str) -> Callable[[Any], Any]:
    """`operator.attrgetter(name, …)`."""
    if not attrs or not all(isinstance(name, str) for name in attrs):
        raise type_error("attribute name must be a string")

    def read(obj: Any, dotted: str) -> Any:
        for name in dotted.split("."):
            obj = get_attribute(obj, name)
        return obj

    if len(attrs) == 1:
        return lambda obj, /: read(obj, attrs[0])
    return lambda obj, /: tuple([read(obj, name) for name in attrs])


def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """`operator.methodcaller(name, …)`."""
    return lambda obj, /: call(get_attribute(obj, name), args, kwargs)


def _equal_to(a: Any, b: Any) -> list[bool]:
    """For each value of an iterable, whether it is another one."""
    return [each is b or bool(binary("==", each, b)) for each in bounded(a)]


def _index_of(a: Any, b: Any) -> int:
    equal = _equal_to(a, b)
    if True not in equal:
        raise value_error("sequence.index(x): x not in sequence")
    return equal.index(True)


def _length(value: Any, default: int) -> int:
    return len(value) if hasattr(type(value), "__len__") else default


OPERATOR: dict[str, Any] = {
    "abs": called("abs", lambda a, /: abs(a)),
    "attrgetter": attrgetter,
    "countOf": called("countOf", lambda a, b, /: _equal_to(a, b).count(True)),
    "indexOf": called("indexOf", lambda a, b, /: _index_of(a, b)),
    "length_hint": called("length_hint", lambda obj, default=0, /: _length(obj, default)),
    "contains": called("contains", lambda a, b, /: contains(b, a)),
    "delitem": called("delitem", lambda a, b, /: delete_item(a, b)),
    "getitem": called("getitem", lambda a, b, /: get_item(a, b)),
    "index": called("index", lambda a, /: range(a).stop),
    "is_": called("is_", lambda a, b, /: identity(a, b)),
    "is_not": called("is_not", lambda a, b, /: a is not b),
    "itemgetter": itemgetter,
    "methodcaller": methodcaller,
    "not_": called("not_", lambda a, /: not a),
    "setitem": called("setitem", lambda a, b, c, /: set_item(a, b, c)),
    "truth": called("truth", lambda a, /: bool(a)),
    **{n: called(n, _binary(symbol)) for symbol, n in (_NAMES | COMPARISONS).items()},
    "concat": called("concat", _binary("+")),
    **{name: called(name, _unary(symbol)) for name, symbol in _UNARY.items()},
    **{f"i{n}": called(f"i{n}", _augmented(symbol)) for symbol, n in ARITHMETIC.items()},
    "iconcat": called("iconcat", _augmented("+")),
}
"""What `operator` holds."""
