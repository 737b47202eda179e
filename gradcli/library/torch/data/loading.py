"""`torch.utils.data`: data sets, collections with a length and items by index; `DataLoader`,
batches of a data set's items; and the samplers, which pick them in order or at random.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain, cycle, islice, repeat
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.random.generator import SOURCES, Generator, RandomSource
from gradcli.autograd.tensor import Tensor
from gradcli.errors import (
    GradcliError,
    assertion_error,
    attribute_error,
    runtime_error,
    type_error,
    value_error,
)
from gradcli.language.objects.classes.extensible import Extensible
from gradcli.library.copy import Forked
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.data import tensor as made_tensor
from gradcli.ops.creation.random import generator_of
from gradcli.ops.shape.joining import stack_function
from gradcli.record import Record
from gradcli.state import active, charge_steps, charge_tensors, is_unobserved

# --- data sets ------------------------------------------------------------------------------------


TABLE = modules["torch.utils.data"]


class Dataset(Extensible):
    """The base of a program's own data sets, which define `__getitem__` and `__len__`."""

    language_generic: ClassVar[bool] = True
    home = "torch.utils.data.dataset"
    tables = ("torch.utils.data",)

    def __getitem__(self, index: Any) -> Any:
        raise GradcliError("E205", "Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """The base of a program's own data sets that only give their items one after the other: they
    define `__iter__`.
    """

    def __iter__(self) -> Iterator[Any]:
        raise GradcliError("E205", "an iterable data set has to define __iter__()")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    fields: ClassVar[tuple[str, ...]] = ("datasets",)

    language_attributes = frozenset({"datasets"})

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class _Finite(Dataset):
    """The base of data sets of known length: iteration."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return items_of(self, range(len(self)))


class TensorDataset(_Finite):
    """The rows of tensors side by side; an item is a tuple of them.

    Raises E204 for tensors of different lengths.
    """

    fields: ClassVar[tuple[str, ...]] = ("tensors",)

    language_attributes = frozenset({"tensors"})

    def __init__(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise attribute_error(f"TensorDataset() takes tensors, not {kind_of(tensor)}")
        if len({len(tensor) for tensor in tensors}) > 1:
            raise assertion_error(
                "the tensors are of different lengths", text="Size mismatch between tensors"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(operators.getitem(tensor, index) for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(_Finite):
    """Some items of a data set, by their numbers."""

    fields: ClassVar[tuple[str, ...]] = ("dataset", "indices")

    language_attributes = frozenset({"dataset", "indices"})

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Any:
        return next(items_of(self.dataset, [self.indices[index]]))

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(_Finite):
    """Data sets one after the other."""

    fields: ClassVar[tuple[str, ...]] = ("cumulative_sizes", "datasets")

    language_attributes = frozenset({"cumulative_sizes", "datasets"})

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise assertion_error("datasets should not be an empty iterable")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> Any:
        count = len(self)
        if not -count <= index < count:
            raise value_error(f"index {index} is out of range: there are {count} items")
        index %= count
        number = bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(_Finite):
    """Data sets side by side: an item is a tuple of theirs, or a dictionary by their names."""

    fields: ClassVar[tuple[str, ...]] = ("datasets",)

    language_attributes = frozenset({"datasets"})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not args and not kwargs:
            raise value_error("At least one dataset should be passed")
        if args and kwargs:
            raise value_error(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like"
                " input/output, but both types are given."
            )
        self.datasets: Any = args or kwargs
        if len({len(each) for each in args or kwargs.values()}) > 1:
            raise value_error("Size mismatch between datasets")

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: next(items_of(each, [index])) for name, each in self.datasets.items()}
        return tuple(next(items_of(each, [index])) for each in self.datasets)

    def __len__(self) -> int:
        parts = self.datasets
        return len(next(iter(parts.values())) if isinstance(parts, dict) else parts[0])


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """A data set cut at random into parts.

    Args:
        dataset: what to cut.
        lengths: how many items each part has, or which shares of them, which sum to 1.
        generator: draws the order.

    Raises E204 for lengths that do not sum to the data set's.
    """
    count = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = [math.floor(count * share) for share in lengths]
        for number in range(count - sum(sizes)):
            sizes[number % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != count:
        raise value_error("Sum of input lengths does not equal the length of the input dataset!")
    order = torch.randperm(count, generator=generator).array.tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def items_of(dataset: Any, numbers: Sequence[Any]) -> Iterator[Any]:
    """Items of a data set by their numbers."""
    for number in numbers:
        tensor = isinstance(dataset, Tensor)
        yield operators.getitem(dataset, number) if tensor else dataset[number]


def stacked(dataset: Any, numbers: Sequence[Any]) -> list[Tensor] | None:
    """What `default_collate` makes of items of a data set, taken by one index; None where that may
    be seen, and for data sets of other things than tensors on the host.
    """
    if type(dataset) is Subset and type(dataset.indices) is list:
        if not _are_positions(numbers, len(dataset.indices)):
            return None
        dataset, numbers = dataset.dataset, [dataset.indices[number] for number in numbers]
    tensors = _tensors_of(dataset) if is_unobserved(active.state) else None
    if not tensors:
        return None
    if any(each.requires_grad or type(each.array) is not np.ndarray for each in tensors):
        return None
    if not _are_positions(numbers, min(each.array.shape[:1] or (0,) for each in tensors)[0]):
        return None
    charge_tensors(len(numbers) * len(tensors))
    return [Tensor(each.array.take(numbers, 0)) for each in tensors]


def _tensors_of(dataset: Any) -> Sequence[Tensor] | None:
    """The tensors whose rows make up the items of a data set; None where other things do."""
    if type(dataset) is TensorDataset:
        return dataset.tensors
    function = getattr(getattr(type(dataset), "__getitem__", None), "function", None)
    rows_of = getattr(function, "rows_of", None)
    return None if rows_of is None else rows_of(dataset)


def _are_positions(numbers: Sequence[Any], count: int) -> bool:
    return set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) < count


TABLE["random_split"] = random_split


# --- workers --------------------------------------------------------------------------------------

# PyTorch's are processes: each has random numbers of its own and a copy of the data set. Here they
# take turns in the one process, with the same numbers.


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


TABLE["get_worker_info"] = get_worker_info


# --- samplers and loaders -------------------------------------------------------------------------


def draw_seed(generator: Any) -> int:
    """A seed, drawn as PyTorch draws one for its workers."""
    drawn = Tensor(np.zeros((), np.int64))
    methods.random_(drawn, generator=generator)
    return int(drawn.array)


def _numbers(name: str, *args: Any, **kwargs: Any) -> list[int]:
    return modules["torch"][name](*args, **kwargs).array.tolist()


def _check_positive(name: str, count: Any) -> None:
    """Raise E204 for a number of items that is no positive integer."""
    if type(count) is not int or count <= 0:
        raise value_error(f"{name} should be a positive integer value, but got {name}={count}")


class Sampler(Extensible):
    """The base of a program's own samplers, which define `__iter__` and `__len__`."""

    language_generic: ClassVar[bool] = True
    home = "torch.utils.data.sampler"
    tables = ("torch.utils.data",)

    def __iter__(self) -> Iterator[Any]:
        raise GradcliError("E205", "a sampler has to define __iter__()")


class SequentialSampler(Sampler):
    """One after the other."""

    fields: ClassVar[tuple[str, ...]] = ("data_source",)

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """In an order that is drawn anew each time.

    Args:
        replacement: whether one item may come several times.
        num_samples: how many are drawn, all for None.

    Raises E204 for a number that is not positive.
    """

    fields: ClassVar[tuple[str, ...]] = ("data_source", "generator", "num_samples", "replacement")

    language_attributes = frozenset({"num_samples", "replacement"})

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        _check_positive("num_samples", self.num_samples)

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed(None))
        count = len(self.data_source)
        part = 32 if self.replacement else count
        whole, rest = divmod(self.num_samples, part)
        # PyTorch draws an order for the rest where there is none too: a generator of the program's
        # has moved by it when the next epoch begins.
        for size in chain(repeat(part, whole), (rest,)):
            charge_steps(size)
            if self.replacement:
                yield from _numbers("randint", count, (size,), generator=generator)
            else:
                yield from _numbers("randperm", count, generator=generator)[:size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Some items, in an order that is drawn anew each time."""

    fields: ClassVar[tuple[str, ...]] = ("generator", "indices")

    language_attributes = frozenset({"indices"})

    def __init__(self, indices: Sequence[Any], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        for number in _numbers("randperm", len(self.indices), generator=self.generator):
            yield self.indices[number]

    def __len__(self) -> int:
        return len(self.indices)


class DistributedSampler(Sampler):
    """The share of the items that one of several processes goes through; without others all.

    Args:
        dataset: whose items are numbered.
        num_replicas, rank: how many processes there are, and which this one is.
        shuffle: whether the order is drawn, by `seed` and the epoch.
        drop_last: whether what is left over is left out, where some come twice otherwise.

    Raises E204 for a rank out of range, and where the processes are not told.
    """

    fields: ClassVar[tuple[str, ...]] = (
        *("dataset", "drop_last", "epoch", "num_replicas", "num_samples"),
        *("rank", "seed", "shuffle", "total_size"),
    )

    home = "torch.utils.data.distributed"
    language_attributes = frozenset({*fields, "set_epoch"})

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise value_error(
                "Default process group has not been initialized, please make sure to call"
                " init_process_group."
            )
        if not 0 <= rank < num_replicas:
            raise value_error(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        count = len(dataset)
        if drop_last and count % num_replicas != 0:
            count -= num_replicas
        self.dataset = dataset
        self.num_replicas, self.rank, self.epoch = num_replicas, rank, 0
        self.drop_last, self.shuffle, self.seed = drop_last, shuffle, seed
        self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        numbers = list(range(count))
        if self.shuffle:
            generator = Generator("cpu")
            generator.manual_seed(self.seed + self.epoch)
            numbers = _numbers("randperm", count, generator=generator)
        numbers = list(islice(cycle(numbers), self.total_size))
        return iter(numbers[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Have the next order be that of an epoch."""
        self.epoch = epoch


class WeightedRandomSampler(Sampler):
    """Items by their weights.

    Raises E204 for a number of draws that is not positive.
    """

    fields: ClassVar[tuple[str, ...]] = ("generator", "num_samples", "replacement", "weights")

    language_attributes = frozenset({"num_samples", "replacement", "weights"})

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        _check_positive("num_samples", num_samples)
        if isinstance(weights, Tensor):
            self.weights = methods.to(weights, dtypes.float64)
        else:
            self.weights = torch.tensor(list(weights), dtype=dtypes.float64)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        wanted = (self.num_samples, self.replacement)
        return iter(_numbers("multinomial", self.weights, *wanted, generator=self.generator))

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """What another sampler gives, in lists."""

    fields: ClassVar[tuple[str, ...]] = ("batch_size", "drop_last", "sampler")

    language_attributes = frozenset({"batch_size", "drop_last", "sampler"})

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        return batches(iter(self.sampler), self.batch_size, self.drop_last)

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def batches(values: Iterator[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Values in lists of a size, the last of which may be shorter."""
    batch: list[Any] = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch


def default_collate(batch: Any) -> Any:
    """Items as one: tensors and arrays stacked, numbers as a tensor, what is in lists, tuples and
    dictionaries in the same way.

    Raises E202 for items of other kinds, E204 for sequences of different lengths.
    """
    if isinstance(batch, Tensor):
        raise type_error("default_collate() takes a list of items, not a tensor")
    first = batch[0]
    if isinstance(first, Tensor):
        return stack_function(list(batch))
    if hasattr(type(first), "to_tensor"):  # an array of NumPy's
        return stack_function([item.to_tensor() for item in batch])
    if isinstance(first, (int, float, np.generic)):
        charge_steps(len(batch))
        return made_tensor(list(batch), dtype=dtypes.float64 if type(first) is float else None)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        collated = {key: default_collate([item[key] for item in batch]) for key in first}
        return collated if type(first) is dict else type(first)(collated)
    if isinstance(first, (list, tuple)):
        if any(len(item) != len(first) for item in batch):
            raise runtime_error("each element in list of batch should be of equal size")
        parts = [default_collate(part) for part in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "language_fields") else parts
    raise type_error(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found"
        f" <class '{type(first).__name__}'>"
    )


def default_convert(data: Any) -> Any:
    """An item as it is, arrays and numbers of NumPy's as tensors, also inside lists, tuples and
    dictionaries.
    """
    if isinstance(data, np.generic):
        return made_tensor(data)
    if hasattr(type(data), "to_tensor"):  # an array of NumPy's
        return data.to_tensor()
    if type(data) is dict:
        return {key: default_convert(value) for key, value in data.items()}
    if type(data) in (list, tuple):
        return [default_convert(value) for value in data]
    return data


def _check_workers(num_workers: int, prefetch_factor: int | None, persistent: bool) -> None:
    """Raise E204 for settings of workers that exclude each other."""
    if num_workers < 0:
        raise value_error(
            "num_workers option should be non-negative; use num_workers=0 to disable"
            " multiprocessing."
        )
    if prefetch_factor is not None and (not num_workers or prefetch_factor < 0):
        raise value_error(
            "prefetch_factor option should be non-negative"
            if num_workers
            else "prefetch_factor option could only be specified in multiprocessing.let"
            " num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent and not num_workers:
        raise value_error("persistent_workers option needs num_workers > 0")


class DataLoader:
    """Goes through a data set in batches.

    Args:
        dataset: the data set.
        batch_size: how many items are in a batch; None for the items as they are.
        shuffle: whether the order is drawn anew each time.
        sampler: gives the numbers of the items in the order wanted.
        batch_sampler: gives the lists of numbers, one for each batch.
        num_workers: how many workers there are, each with random numbers and a copy of the data set
            of its own, as in PyTorch; they take turns.
        worker_init_fn: called in each worker with its number.
        prefetch_factor: how many batches are drawn ahead for each worker.
        persistent_workers: whether the next epoch has the same workers.
        pin_memory, timeout, multiprocessing_context: change nothing.
        collate_fn: makes a batch of a list of items.
        drop_last: whether a last batch that is not full is left out.
        generator: draws the order.

    Raises E204 for settings that exclude each other.
    """

    __slots__ = (
        "batch_size",
        "dataset",
        "drop_last",
        "generator",
        "multiprocessing_context",
        "num_workers",
        "own_collate",
        "own_sampler",
        "persistent_workers",
        "pin_memory",
        "prefetch_factor",
        "sampler",
        "timeout",
        "worker_init_fn",
        "workers",
    )

    language_generic: ClassVar[bool] = True
    language_name: ClassVar[str] = "torch.utils.data.dataloader.DataLoader"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {*__slots__, "batch_sampler", "collate_fn"} - {"own_collate", "own_sampler", "workers"}
    )

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ) -> None:
        _check_workers(num_workers, prefetch_factor, persistent_workers)
        if sampler is not None and shuffle:
            raise value_error("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler or drop_last):
            raise value_error(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and"
                " drop_last"
            )
        if batch_size is None and drop_last:
            raise value_error("without batches there is no last one to drop")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size <= 0):
            raise value_error(
                f"batch_size is a positive integer, not {batch_size}",
                text="batch_size should be a positive integer value, but got"
                f" batch_size={batch_size}",
            )
        if isinstance(dataset, IterableDataset) and (shuffle or sampler or batch_sampler):
            raise value_error("an iterable data set has an order of its own")
        self.dataset = dataset
        self.batch_size = batch_size
        if sampler is None and not isinstance(dataset, IterableDataset):
            drawn_by = RandomSampler(dataset, generator=generator) if shuffle else None
            sampler = drawn_by or SequentialSampler(dataset)
        self.sampler = sampler
        self.own_sampler = batch_sampler
        self.own_collate = collate_fn
        self.drop_last = drop_last
        self.generator = generator
        self.multiprocessing_context = multiprocessing_context
        self.num_workers = num_workers
        self.persistent_workers = persistent_workers
        self.pin_memory = pin_memory
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.workers: list[Worker] = []

    @property
    def runs_program(self) -> bool:
        """Whether code of the program may run where a batch is drawn: for a data set, a sampler or
        a collate function of its own.
        """
        order = type(self.sampler) in (SequentialSampler, RandomSampler)
        settings = (self.own_sampler, self.own_collate, self.worker_init_fn)
        return type(self.dataset) is not TensorDataset or not order or any(settings)

    @property
    def batch_sampler(self) -> Any:
        """What gives the lists of numbers; None without batches."""
        if self.own_sampler is not None or self.batch_size is None or self.sampler is None:
            return self.own_sampler
        return BatchSampler(self.sampler, self.batch_size, self.drop_last)

    @property
    def collate_fn(self) -> Callable[[Any], Any]:
        """What makes a batch of a list of items, or of an item where there are no batches."""
        plain = default_convert if self.batch_size is None else default_collate
        return self.own_collate or plain

    def __len__(self) -> int:
        if self.own_sampler is not None:
            return len(self.own_sampler)
        count = len(self.dataset if self.sampler is None else self.sampler)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def language_iterator(self) -> str:
        """The name of the class of its iterators."""
        kind = "MultiProcessing" if self.num_workers else "SingleProcess"
        return f"torch.utils.data.dataloader._{kind}DataLoaderIter"

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers:
            return self._by_workers()
        draw_seed(self.generator)  # PyTorch draws one for its workers, also where there are none
        return self._by_one()

    def _by_one(self) -> Iterator[Any]:
        items = iter(self.dataset) if self._is_iterable else None
        for index in self._indices():
            batch = self._fetched(self.dataset, items, index)
            if batch is _OVER:
                return
            yield batch

    def _by_workers(self) -> Iterator[Any]:
        """Batches by workers in turn. As in PyTorch, what each batch is of is drawn ahead, and one
        that is through an iterable data set does no more.
        """
        if not self.prefetch_factor:
            raise value_error(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter",
                raises="AssertionError",
            )
        workers = self._begun()
        indices, turns = iter(self._indices()), cycle(workers)
        tasks: deque[tuple[Worker, Any]] = deque()
        at_work = set(workers)

        def ask() -> None:
            for index in islice(indices, 1):
                worker = next(each for each in turns if each in at_work)
                tasks.append((worker, index))

        for _ in range((self.prefetch_factor or 0) * len(workers)):
            ask()
        return self._answers(tasks, ask, at_work)

    def _answers(
        self, tasks: deque[tuple[Worker, Any]], ask: Callable[[], None], at_work: set[Worker]
    ) -> Iterator[Any]:
        while tasks:
            worker, index = tasks.popleft()
            if worker not in at_work:
                continue
            batch = worker.run(self._fetched, worker.info.dataset, worker.items, index)
            if batch is _OVER:
                at_work.remove(worker)
            if at_work:
                ask()
            if batch is not _OVER:
                yield batch

    def _begun(self) -> list[Worker]:
        """Workers at the begin of an epoch, the same ones in each where they are persistent."""
        workers = self.workers
        if not workers:
            seed = draw_seed(self.generator)
            numbers = range(self.num_workers)
            workers = [Worker(each, self.num_workers, seed, self.dataset) for each in numbers]
            if self.worker_init_fn is not None:
                for worker in workers:
                    worker.run(self.worker_init_fn, worker.info.id)
            if self.persistent_workers:
                self.workers = workers
        if self._is_iterable:
            for worker in workers:
                worker.items = worker.run(iter, worker.info.dataset)
        return workers

    @property
    def _is_iterable(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    def _indices(self) -> Iterable[Any]:
        """What is asked for, batch by batch: the numbers of its items, or the number of one item
        where there are no batches; always None of an iterable data set.
        """
        if self._is_iterable:
            return repeat(None)
        if self.own_sampler is not None:
            return map(list, self.own_sampler)
        if self.batch_size is None:
            return self.sampler
        return batches(iter(self.sampler), self.batch_size, self.drop_last)

    def _fetched(self, dataset: Any, items: Iterator[Any] | None, index: Any) -> Any:
        """A batch, or an item where there are no batches; `_OVER` behind the last one of an
        iterable data set, whose items are drawn.
        """
        collate, size = self.own_collate, self.batch_size
        if items is not None and size is not None:
            batch = list(islice(items, size))
            if not batch or (self.drop_last and len(batch) < size):
                return _OVER
            return (collate or default_collate)(batch)
        if size is None and self.own_sampler is None:
            item = next(items_of(dataset, [index]) if items is None else items, _OVER)
            return item if item is _OVER else (collate or default_convert)(item)
        if collate is None or collate is default_collate:
            stack = stacked(dataset, index)
            if stack is not None:
                return stack
        return (collate or default_collate)(list(items_of(dataset, index)))


_OVER = object()


TABLE["DataLoader"] = DataLoader
TABLE["default_collate"] = default_collate
TABLE["default_convert"] = default_convert
