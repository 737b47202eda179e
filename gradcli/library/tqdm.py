"""The module `tqdm`: loops with a bar on standard error, where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from gradcli.errors import type_error
from gradcli.language.events import Printed, Reported
from gradcli.language.limits import DEEPEST_ITERATOR, too_deep
from gradcli.language.objects.iteration import iterate
from gradcli.language.objects.repr import text
from gradcli.language.objects.types import EnteredAsItself, define, names, type_name
from gradcli.state import active

_BETWEEN = 0.1
"""Seconds between two states of the bar."""

_WIDTH = 10


class Tqdm(EnteredAsItself):
    """`tqdm(iterable, desc=None, total=None, …)`: gives what the iterable gives, and shows how far
    that has come. The settings of the bar's looks are taken and change nothing.
    """

    __slots__ = (
        "_drawn", "_shown", "_start", "depth", "desc", "disable", "iterable", "n", "postfix",
        "total",
    )  # fmt: skip

    language_name: ClassVar[str] = "tqdm.std.tqdm"
    language_attributes = names("""clear close desc disable display iterable n postfix refresh reset
        set_description set_description_str set_postfix set_postfix_str total unpause update
        write""")
    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"write"})
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"desc", "n", "total"})

    def __init__(
        self,
        iterable: Any = None,
        desc: str | None = None,
        total: float | None = None,
        leave: bool = True,
        file: Any = None,
        ncols: int | None = None,
        mininterval: float = _BETWEEN,
        maxinterval: float = 10.0,
        miniters: Any = None,
        ascii: Any = None,
        disable: bool | None = False,
        unit: str = "it",
        unit_scale: Any = False,
        dynamic_ncols: bool = False,
        smoothing: float = 0.3,
        bar_format: str | None = None,
        initial: int = 0,
        position: int | None = None,
        postfix: Any = None,
        unit_divisor: float = 1000,
        **looks: Any,
    ) -> None:
        self.depth = 1 + getattr(iterable, "depth", 0)
        if self.depth > DEEPEST_ITERATOR:
            raise too_deep("iterators")
        if total is None and hasattr(iterable, "__len__"):
            total = len(iterable)
        self.iterable = iterable
        self.desc = "" if desc is None else desc
        self.total = total
        self.n: float = initial
        self.postfix = ""
        self.disable = bool(disable)
        self._shown = not self.disable and sys.stderr.isatty()
        self._start = self._drawn = time.monotonic()
        if isinstance(postfix, dict):
            self.set_postfix(postfix, refresh=False)

    def __iter__(self) -> Iterator[Any]:
        if self.iterable is None:
            raise type_error("'NoneType' object is not iterable")
        for value in iterate(self.iterable):
            yield value
            self.update()
        self.close()

    def __len__(self) -> int:
        if self.total is None:
            raise type_error("the bar has no total, so no length")
        return int(self.total)

    def __bool__(self) -> bool:
        return self.total is None or self.total > 0

    def update(self, n: float = 1) -> bool:
        """So many steps are done."""
        self.n += n
        if self._shown and time.monotonic() - self._drawn >= _BETWEEN:
            return self.refresh()
        return False

    def refresh(self, nolock: bool = False, lock_args: Any = None) -> bool:
        """Bring the bar up to date."""
        if self._shown:
            self._drawn = time.monotonic()
            active.state.emit(Reported(f"\r\x1b[K{self}"))
        return self._shown

    display = unpause = refresh

    def close(self) -> None:
        """Leave the bar as it is."""
        if self.refresh():
            active.state.emit(Reported("\n"))
        self._shown = False

    def clear(self, nolock: bool = False) -> None:
        """Take the bar away."""
        if self._shown:
            active.state.emit(Reported("\r\x1b[K"))

    def reset(self, total: float | None = None) -> None:
        """Begin again."""
        self.n = 0
        self.total = self.total if total is None else total
        self._start = time.monotonic()

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        """The words before the bar."""
        self.desc = f"{text(desc)}: " if desc else ""

    def set_description_str(self, desc: str | None = None, refresh: bool = True) -> None:
        """The words before the bar, as they are."""
        self.desc = text(desc) if desc else ""

    def set_postfix(self, ordered_dict: Any = None, refresh: bool = True, **named: Any) -> None:
        """The values behind the bar."""
        values = {**(ordered_dict or {}), **named}
        shown = {n: f"{v:.3g}" if type(v) in (int, float) else text(v) for n, v in values.items()}
        self.postfix = ", ".join(f"{name}={words}" for name, words in shown.items())

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        """The words behind the bar."""
        self.postfix = text(s)

    @staticmethod
    def write(s: Any, file: Any = None, end: str = "\n", nolock: bool = False) -> None:
        """Print a line."""
        line = text(s) + text(end)
        if file is None:
            active.state.emit(Printed(line))
        else:
            file.write(line)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        seconds = time.monotonic() - self._start
        rate = self.n / seconds if seconds > 0 else 0.0
        words = f", {self.postfix}" if self.postfix else ""
        if not self.total:
            return f"{self.desc}{self.n}it [{_clock(seconds)}, {rate:.2f}it/s{words}]"
        share = min(self.n / self.total, 1.0)
        left = _clock((self.total - self.n) / rate) if rate else "?"
        bar = "█" * int(share * _WIDTH)
        return (
            f"{self.desc}{share:4.0%}|{bar:<{_WIDTH}}| {self.n}/{self.total}"
            f" [{_clock(seconds)}<{left}, {rate:.2f}it/s{words}]"
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:02}:{rest:02}"


def trange(*bounds: int, **settings: Any) -> Tqdm:
    """`trange(n)`: `tqdm(range(n))`."""
    for bound in bounds:
        if type(bound) is not int:
            raise type_error(f"'{type_name(bound)}' object cannot be interpreted as an integer")
    return Tqdm(range(*bounds), **settings)


_CLASS = define("tqdm.std.tqdm", Tqdm, construct=Tqdm)

TQDM: dict[str, Any] = {
    "tqdm": _CLASS,
    "tqdm_notebook": _CLASS,
    "trange": trange,
    "tnrange": trange,
}
"""What `tqdm` and the modules in it hold."""
