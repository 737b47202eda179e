"""Data sets: collections with a length and items by index."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, assertion_error, attribute_error, value_error
from gradcli.language.objects.classes.extensible import Extensible
from gradcli.library.torch.nn.attributes import kind_of
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import operators, torch
from gradcli.state import active, charge_tensors, is_unobserved

TABLE = modules["torch.utils.data"]


class Dataset(Extensible):
    """The base of a program's own data sets, which define `__getitem__` and `__len__`."""

    __slots__ = ()

    language_generic: ClassVar[bool] = True
    home = "torch.utils.data.dataset"
    tables = ("torch.utils.data",)

    def __init__(self) -> None:
        """Nothing to set up."""

    def __getitem__(self, index: Any) -> Any:
        raise GradcliError("E205", "Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """The base of a program's own data sets that only give their items one after the other: they
    define `__iter__`.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        raise GradcliError("E205", "an iterable data set has to define __iter__()")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    __slots__ = ("datasets",)

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

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return items_of(self, range(len(self)))


class TensorDataset(_Finite):
    """The rows of tensors side by side; an item is a tuple of them.

    Raises E204 for tensors of different lengths.
    """

    __slots__ = ("tensors",)

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

    __slots__ = ("dataset", "indices")

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

    __slots__ = ("cumulative_sizes", "datasets")

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

    __slots__ = ("datasets",)

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


def get_worker_info() -> None:
    """Nothing: items are taken by the program's own process."""


TABLE["get_worker_info"] = get_worker_info
TABLE["random_split"] = random_split
