"""The module `itertools`: iterators of which each value is counted when it is drawn."""

from __future__ import annotations

import itertools as host
from collections.abc import Generator
from collections.abc import Iterator as HostIterator
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error
from gradcli.language.functions.calls import call, for_host
from gradcli.language.limits import check_collection, too_many_steps
from gradcli.language.objects.iteration import Iterator, bounded, drawing, iterate
from gradcli.language.objects.operators import binary
from gradcli.language.objects.types import by_name, check_kind
from gradcli.state import active


def _counted(values: Any) -> Generator[Any, None, None]:
    """The values of an iterable, each a step: of some there is no end."""
    steps = active.state.steps
    for value in iterate(values):
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
    return drawing("cycle", host.cycle(_pool(iterable)), iterable)


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
    source = iterable.source if type(iterable) is Iterator else _counted(iterable)
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
