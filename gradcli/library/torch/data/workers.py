"""The workers of a `DataLoader`. PyTorch's are processes: each has random numbers of its own and a
copy of the data set. Here they take turns in the one process, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from gradcli.arrays.random.generator import SOURCES, RandomSource
from gradcli.library.copy import Forked
from gradcli.ops.creation.random import generator_of
from gradcli.record import Record
from gradcli.state import active

SOURCES.append(
    RandomSource(
        lambda seed, number: generator_of(None).manual_seed(seed + number),
        lambda: generator_of(None).snapshot(),
        lambda standing: generator_of(None).restore(standing),
    )
)

_MODULE = "torch.utils.data"


class WorkerInfo(Record):
    """What `get_worker_info()` says inside a worker: its number, how many there are, the seed of
    its random numbers, and its copy of the data set.
    """

    language_name: ClassVar[str] = "torch.utils.data._utils.worker.WorkerInfo"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"dataset", "id", "num_workers", "rng", "seed", "worker_method"}
    )

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None
    worker_method: str = "multiprocessing"


def get_worker_info() -> WorkerInfo | None:
    """What is known inside a worker of a data loader; None outside of one."""
    return active.state.library.get(_MODULE)


class Worker:
    """A worker: what it is told, and where its random numbers stand.

    Attributes:
        info: what `get_worker_info()` says.
        items: what goes through its data set, where that is an iterable.
    """

    __slots__ = ("_seed", "_standing", "info", "items")

    def __init__(self, number: int, count: int, seed: int, dataset: Any) -> None:
        self.info = WorkerInfo(number, count, seed + number, Forked().of(dataset))
        self.items: Iterator[Any] | None = None
        self._seed = seed
        self._standing: dict[RandomSource, Any] = {}

    def run(self, function: Callable[..., Any], *values: Any) -> Any:
        """Call a function inside of it."""
        with self._inside():
            return function(*values)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        outside = {source: source.standing() for source in SOURCES}
        library = active.state.library
        for source in outside:
            if source in self._standing:
                source.stand(self._standing[source])
            else:
                source.seed(self._seed, self.info.id)
        library[_MODULE] = self.info
        try:
            yield
        finally:
            del library[_MODULE]
            for source, standing in outside.items():
                self._standing[source] = source.standing()
                source.stand(standing)
