"""What of `matplotlib` and its kin is not drawn, and `SummaryWriter`: programs may call it.

Whatever a program takes of them is there: a thing that can be called, gives another such thing for
every attribute, and lets any be set. The first call of each says once that nothing is drawn,
unless it is `quiet`: what would change only the looks of a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from gradcli.language.objects.types import EnteredAsItself, called
from gradcli.state import active


def _say(what: str, help: str) -> None:
    """Warn that something is not done here: W012, once in a session."""
    if what not in (told := active.state.library.setdefault("drawing", set())):
        told.add(what)
        active.state.warn("W012", what, help=help)


class Undrawn(EnteredAsItself):
    """Anything of a library that draws.

    Args:
        name: where a program found it.
        results: what calling it gives, by the last part of its name; else another such thing.
    """

    __slots__ = ("name", "quiet")

    language_name: ClassVar[str] = "Undrawn"
    language_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, name: str, quiet: bool = False) -> None:
        self.name = name
        self.quiet = quiet

    def language_getattr(self, name: str) -> Undrawn:
        """Any attribute but one of Python's machinery; raises AttributeError."""
        return undrawn(name, self.quiet)

    def language_setattr(self, name: str, new: Any) -> None:
        """Nothing is kept."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.quiet:
            not_drawn(f"{self.name}()")
        result = _RESULTS.get(self.name)
        return Undrawn("result", True) if result is None else result(*args, **kwargs)

    def __getitem__(self, index: Any) -> Undrawn:
        return Undrawn("item", self.quiet)

    def __setitem__(self, index: Any, new: Any) -> None:
        """Nothing is kept."""

    def __iter__(self) -> Iterator[Undrawn]:
        return iter([Undrawn("item", self.quiet)])

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return f"<{self.name}, not drawn>"


def undrawn(name: str, quiet: bool = False) -> Undrawn:
    """What a library has under a name; raises AttributeError for Python's machinery."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Undrawn(name, quiet)


def not_drawn(name: str) -> None:
    """Warn that something of a library that draws has no place in a picture here."""
    _say(
        f"{name} is accepted, and not drawn",
        "`gradcli help plot` lists what is drawn; numbers go to a file with `save(x, 'x.csv')`",
    )


def _parts(count: int) -> Callable[..., tuple[Undrawn, ...]]:
    return lambda *values, **named: tuple(Undrawn("item") for _ in range(count))


_RESULTS: dict[str, Callable[..., Any]] = {
    "axis": lambda *values, **named: (0.0, 1.0, 0.0, 1.0),
    "hist": _parts(3),
    "hist2d": _parts(4),
    **dict.fromkeys(
        ("get_xlim", "get_ylim", "get_zlim", "xlim", "ylim", "zlim"), lambda *_, **__: (0.0, 1.0)
    ),
}
"""What calls give whose results programs take apart."""


class Anything(dict[str, Any]):
    """A table that has every name."""

    def stand_in(self, name: str) -> Any:
        """What stands under a name that the table has not; raises AttributeError."""
        return undrawn(name)

    def __missing__(self, name: str) -> Any:
        try:
            return self.stand_in(name)
        except AttributeError:
            raise KeyError(name) from None

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if not name.startswith("__") else default


DRAWING: dict[str, Any] = Anything()
"""What the modules hold that are not drawn: everything."""


class SummaryWriter(EnteredAsItself):
    """`torch.utils.tensorboard.SummaryWriter(log_dir)`: it takes all calls, and writes nothing."""

    __slots__ = ("log_dir",)

    language_name: ClassVar[str] = "torch.utils.tensorboard.writer.SummaryWriter"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"log_dir"})

    def __init__(self, log_dir: Any = None, *args: Any, **settings: Any) -> None:
        _say(
            "SummaryWriter is accepted: nothing is drawn, no file is written",
            "print the numbers, or keep them in a file: `save(x, 'x.csv')`",
        )
        self.log_dir = log_dir or "runs"

    def language_getattr(self, name: str) -> Callable[..., Any]:
        """`add_scalar`, `flush`, `close` and their like; raises AttributeError for others."""
        if not name.startswith("add_") and name not in ("close", "flush", "get_logdir"):
            raise AttributeError(name)

        result = self.log_dir if name == "get_logdir" else None
        return called(name, lambda *values, **named: result)


TENSORBOARD: dict[str, Any] = {"SummaryWriter": SummaryWriter}
"""What `torch.utils.tensorboard` holds."""
