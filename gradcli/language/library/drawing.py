"""`matplotlib` and its kin, and `SummaryWriter`: programs call them, and nothing is drawn.

Whatever a program takes of them is there: a thing that can be called, gives another such thing for
every attribute, and lets any be set. The first call says once that nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import type_error, value_error
from gradcli.language.limits import check_collection
from gradcli.language.objects.types import called, type_name
from gradcli.state import active


def _say(what: str, help: str) -> None:
    """Warn that a library does nothing here: W012, once in a session for each library."""
    if what not in (told := active.state.library.setdefault("drawing", set())):
        told.add(what)
        active.state.warn(
            "W012", f"{what} is accepted: nothing is drawn, no file is written", help=help
        )


class Undrawn:
    """Anything of a library that draws.

    Args:
        name: where a program found it.
        results: what calling it gives, by the last part of its name; else another such thing.
    """

    __slots__ = ("name",)

    language_name: ClassVar[str] = "Undrawn"
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    language_context: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name

    def language_getattr(self, name: str) -> Undrawn:
        """Any attribute but one of Python's machinery; raises AttributeError."""
        return undrawn(name)

    def language_setattr(self, name: str, new: Any) -> None:
        """Nothing is kept."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _say(
            "drawing with matplotlib",
            "print the numbers, or keep them in a file: `save(x, 'x.csv')`",
        )
        result = _RESULTS.get(self.name)
        return Undrawn("result") if result is None else result(*args, **kwargs)

    def __getitem__(self, index: Any) -> Undrawn:
        return Undrawn("item")

    def __setitem__(self, index: Any, new: Any) -> None:
        """Nothing is kept."""

    def __iter__(self) -> Iterator[Undrawn]:
        return iter([Undrawn("item")])

    def __len__(self) -> int:
        return 1

    def __enter__(self) -> Undrawn:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Nothing to leave."""

    def __repr__(self) -> str:
        return f"<{self.name}, not drawn>"


def undrawn(name: str) -> Undrawn:
    """What a library has under a name; raises AttributeError for Python's machinery."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Undrawn(name)


class Axes:
    """The axes of `plt.subplots(rows, columns)`, arranged as there: an array of things to draw on.

    Attributes:
        array: what there is, by row and column.
    """

    __slots__ = ("array",)

    language_name: ClassVar[str] = "numpy.ndarray"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"T", "flat", "flatten", "ndim", "ravel", "reshape", "shape", "size", "tolist"}
    )

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows and columns."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(self.array.size)

    @property
    def T(self) -> Axes:
        return Axes(self.array.T)

    @property
    def flat(self) -> Axes:
        return self.ravel()

    def ravel(self) -> Axes:
        """All in a row."""
        return Axes(self.array.ravel())

    flatten = ravel

    def reshape(self, *shape: Any) -> Axes:
        """In other rows and columns."""
        return Axes(self.array.reshape(*shape))

    def tolist(self) -> Any:
        """As lists."""
        return self.array.tolist()

    def __getitem__(self, index: Any) -> Any:
        for each in index if isinstance(index, tuple) else (index,):
            if not isinstance(each, (int, slice)):
                raise type_error(f"an index of axes is a number, not {type_name(each)}")
        return _one_or_more(self.array[index])

    def __iter__(self) -> Iterator[Any]:
        return map(_one_or_more, self.array)

    def __len__(self) -> int:
        return len(self.array)


def _one_or_more(found: Any) -> Any:
    return Axes(found) if isinstance(found, np.ndarray) else found


def _subplots(nrows: int = 1, ncols: int = 1, *, squeeze: bool = True, **settings: Any) -> Any:
    """`plt.subplots(rows, columns)`: a figure, and one axes or an array of them."""
    for count in (nrows, ncols):
        if not isinstance(count, int) or count < 1:
            raise value_error(f"subplots() takes positive numbers, not {count!r}")
    check_collection(nrows * ncols)
    axes = np.empty((nrows, ncols), object)
    axes[:] = [[Undrawn("axes") for _ in range(ncols)] for _ in range(nrows)]
    if squeeze:
        axes = axes.squeeze()
    return Undrawn("figure"), axes.item() if axes.ndim == 0 else Axes(axes)


def _bounds(*values: Any, **named: Any) -> tuple[float, float]:
    return 0.0, 1.0


def _parts(count: int) -> Callable[..., tuple[Undrawn, ...]]:
    return lambda *values, **named: tuple(Undrawn("item") for _ in range(count))


_RESULTS: dict[str, Callable[..., Any]] = {
    "axis": lambda *values, **named: (0.0, 1.0, 0.0, 1.0),
    "get_fignums": list,
    "hist": _parts(3),
    "hist2d": _parts(4),
    "subplots": _subplots,
    **dict.fromkeys(("get_xlim", "get_ylim", "get_zlim", "xlim", "ylim", "zlim"), _bounds),
}
"""What calls give whose results programs take apart."""


class _Anything(dict[str, Any]):
    """A table that has every name."""

    def __missing__(self, name: str) -> Any:
        try:
            return undrawn(name)
        except AttributeError:
            raise KeyError(name) from None

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if not name.startswith("__") else default


DRAWING: dict[str, Any] = _Anything()
"""What the modules that draw hold: everything."""


class SummaryWriter:
    """`torch.utils.tensorboard.SummaryWriter(log_dir)`: it takes all that it is told."""

    __slots__ = ("log_dir",)

    language_name: ClassVar[str] = "torch.utils.tensorboard.writer.SummaryWriter"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"log_dir"})
    language_context: ClassVar[bool] = True

    def __init__(self, log_dir: Any = None, *args: Any, **settings: Any) -> None:
        _say("SummaryWriter", "print the numbers, or keep them in a file: `save(x, 'x.csv')`")
        self.log_dir = log_dir or "runs"

    def language_getattr(self, name: str) -> Callable[..., None]:
        """`add_scalar`, `flush`, `close` and their like; raises AttributeError for others."""
        if not name.startswith("add_") and name not in ("close", "flush", "get_logdir"):
            raise AttributeError(name)

        def take(*values: Any, **named: Any) -> Any:
            return self.log_dir if name == "get_logdir" else None

        return called(name, take)

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Nothing to close."""


TENSORBOARD: dict[str, Any] = {"SummaryWriter": SummaryWriter}
"""What `torch.utils.tensorboard` holds."""
