"""Samplers: in which order the items of a data set are taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.random.generator import Generator
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.language.objects.classes.extensible import Extensible
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import methods, torch
from gradcli.state import charge_steps


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

    __slots__ = ()

    language_generic: ClassVar[bool] = True
    home = "torch.utils.data.sampler"
    tables = ("torch.utils.data",)

    def __init__(self, data_source: Any = None) -> None:
        """Nothing to set up."""

    def __iter__(self) -> Iterator[Any]:
        raise GradcliError("E205", "a sampler has to define __iter__()")


class SequentialSampler(Sampler):
    """One after the other."""

    __slots__ = ("data_source",)

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

    __slots__ = ("data_source", "generator", "num_samples", "replacement")

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
        generator, wanted = self.generator, self.num_samples
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed(None))
        count = len(self.data_source)
        part = 32 if self.replacement else count
        while wanted > 0:
            size = min(wanted, part)
            charge_steps(size)
            if self.replacement:
                yield from _numbers("randint", count, (size,), generator=generator)
            else:
                yield from _numbers("randperm", count, generator=generator)[:size]
            wanted -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Some items, in an order that is drawn anew each time."""

    __slots__ = ("generator", "indices")

    language_attributes = frozenset({"indices"})

    def __init__(self, indices: Sequence[Any], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        for number in _numbers("randperm", len(self.indices), generator=self.generator):
            yield self.indices[number]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Items by their weights.

    Raises E204 for a number of draws that is not positive.
    """

    __slots__ = ("generator", "num_samples", "replacement", "weights")

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

    __slots__ = ("batch_size", "drop_last", "sampler")

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
