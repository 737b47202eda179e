"""The module `tqdm`: loops with a bar on standard error, where that is a terminal.

A bar fills the terminal's width but for a column, as tqdm's does; one inside another stands on the
line below it.
"""

from __future__ import annotations

import os
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

_COLUMNS = 80
"""The width of a terminal that does not tell its own."""

_PARTS = "▏▎▍▌▋▊▉"
"""An eighth of a column to seven of them."""

_OPEN = "tqdm"
"""Where a session keeps the bars that are shown, the outermost first."""


class Tqdm(EnteredAsItself):
    """`tqdm(iterable, desc=None, total=None, …)`: gives what the iterable gives, and shows how far
    that has come. The settings of the bar's looks are taken and change nothing.
    """

    __slots__ = (
        "_drawn", "_shown", "_start", "_unit", "depth", "desc", "disable", "iterable", "leave",
        "n", "postfix", "total",
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
        leave: bool | None = True,
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
        self.leave = leave
        self._unit = unit
        # A terminal obeys nothing that comes out of the sandbox, so a bar would be a list of bars.
        is_free = active.state.limits.files
        self._shown = not self.disable and is_free and sys.stderr.isatty()
        self._start = self._drawn = time.monotonic()
        if isinstance(postfix, dict):
            self.set_postfix(postfix, refresh=False)
        if self._shown:
            active.state.library.setdefault(_OPEN, []).append(self)
            self.refresh()

    def __iter__(self) -> Iterator[Any]:
        if self.iterable is None:
            raise type_error("'NoneType' object is not iterable")
        try:
            for value in iterate(self.iterable):
                yield value
                self.update()
        finally:  # a loop that ends early leaves its bar, and the next one stands in its place
            self.close()

    @property
    def drawn_from(self) -> Any:
        """What it gives the values of."""
        return self.iterable

    def __len__(self) -> int:
        if self.total is None:
            raise type_error("the bar has no total, so no length")
        return int(self.total)

    def __bool__(self) -> bool:
        return self.total is None or self.total > 0

    def update(self, n: float = 1) -> bool:
        """So many steps are done."""
        self.n += n
        now = time.monotonic()
        if self._shown and now - self._drawn >= _BETWEEN:
            self._drawn = now
            return self.refresh()
        return False

    def refresh(self, nolock: bool = False, lock_args: Any = None) -> bool:
        """Bring the bar up to date."""
        if self._shown:
            self._draw(repr(self), self._place())
        return self._shown

    display = unpause = refresh

    def close(self) -> None:
        """Leave the bar as it is, or take it away where it is not to be left."""
        if not self._shown:
            return
        place = self._place()
        stays = place == 0 if self.leave is None else self.leave
        self._draw(repr(self) if stays else "", 0 if stays else place)
        if stays:
            active.state.emit(Reported("\n"))
        active.state.library[_OPEN].remove(self)
        self._shown = False

    def clear(self, nolock: bool = False) -> None:
        """Take the bar away."""
        if self._shown:
            self._draw("", self._place())

    def _place(self) -> int:
        """How many bars stand above this one."""
        bars: list[Tqdm] = active.state.library[_OPEN]
        return next(number for number, bar in enumerate(bars) if bar is self)

    @staticmethod
    def _draw(line: str, place: int) -> None:
        below, above = "\n" * place, f"\x1b[{place}A" if place else ""
        active.state.emit(Reported(f"{below}\r\x1b[K{line}{above}", by_clock=True))

    def reset(self, total: float | None = None) -> None:
        """Begin again."""
        self.n = 0
        self.total = self.total if total is None else total
        self._start = time.monotonic()

    def set_description(self, desc: str | None = None, refresh: bool = True) -> None:
        """The words before the bar."""
        self.desc = f"{text(desc)}: " if desc else ""
        if refresh:
            self.refresh()

    def set_description_str(self, desc: str | None = None, refresh: bool = True) -> None:
        """The words before the bar, as they are."""
        self.desc = text(desc) if desc else ""
        if refresh:
            self.refresh()

    def set_postfix(self, ordered_dict: Any = None, refresh: bool = True, **named: Any) -> None:
        """The values behind the bar."""
        values = {**(ordered_dict or {}), **named}
        shown = {n: f"{v:.3g}" if type(v) in (int, float) else text(v) for n, v in values.items()}
        self.set_postfix_str(", ".join(f"{n}={words}" for n, words in shown.items()), refresh)

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        """The words behind the bar."""
        self.postfix = text(s)
        if refresh:
            self.refresh()

    @staticmethod
    def write(s: Any, file: Any = None, end: str = "\n", nolock: bool = False) -> None:
        """Print a line above the bars."""
        bars: list[Tqdm] = active.state.library.get(_OPEN, [])
        line = text(s) + text(end)
        for bar in bars:
            bar.clear()
        if file is None:
            active.state.emit(Printed(line))
        else:
            file.write(line)
        for bar in bars:
            bar.refresh()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        seconds = time.monotonic() - self._start
        rate = self.n / seconds if seconds > 0 and self.n else 0.0
        words = f", {self.postfix}" if self.postfix else ""
        before = self.desc if self.desc[-2:] in ("", ": ") else f"{self.desc}: "
        quick = _speed(rate, self._unit)
        if not self.total:
            return f"{before}{self.n}{self._unit} [{_clock(seconds)}, {quick}{words}]"
        share = min(self.n / self.total, 1.0)
        left = _clock((self.total - self.n) / rate) if rate else "?"
        before += f"{share * 100:3.0f}%|"
        behind = f"| {self.n}/{self.total} [{_clock(seconds)}<{left}, {quick}{words}]"
        return f"{before}{_bar(share, _columns() - len(before) - len(behind))}{behind}"


def _bar(share: float, width: int) -> str:
    """A bar of some columns, to an eighth of a column."""
    whole, eighths = divmod(int(share * max(width, 1) * 8), 8)
    part = _PARTS[eighths - 1] if eighths else ""
    return f"{'█' * whole}{part}".ljust(max(width, 1))


def _speed(rate: float, unit: str) -> str:
    """Steps in a second, or seconds for a step where that is more."""
    if not rate:
        return f"?{unit}/s"
    return f"{1 / rate:5.2f}s/{unit}" if rate < 1 else f"{rate:5.2f}{unit}/s"


def _columns() -> int:
    """The columns of the terminal that standard error is, but for the last, as tqdm has it."""
    try:
        return (os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS) - 1
    except (OSError, ValueError):
        return _COLUMNS - 1


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


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
