"""`matplotlib.pyplot`, and the other modules of matplotlib as far as they are drawn; and figures:
panels in a grid, shown on the terminal or written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import value_error
from gradcli.language.drawing import Plot, panel
from gradcli.language.events import Plotted, Printed
from gradcli.language.limits import check_collection
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.repr import display as representation
from gradcli.language.objects.types import called, check_kind, define, names
from gradcli.library.drawing.arguments import MAPS, color_map, numbers, words_of
from gradcli.library.drawing.axes import Artist, Axes
from gradcli.library.drawing.undrawn import Anything, Undrawn, not_drawn, undrawn
from gradcli.library.python.system.pathlib import Path
from gradcli.record import Record
from gradcli.state import active

# --- figures --------------------------------------------------------------------------------------


_INCH = 100.0
"""Pixels of an inch, as matplotlib counts."""

_SMALLEST, _LARGEST = 50.0, 20_000.0

_FIGURE_LOOKS = names("""align_labels autofmt_xdate canvas dpi draw legend patch set_dpi
    set_facecolor set_tight_layout subplots_adjust tight_layout set_constrained_layout""")


class Grid(Record):
    """The axes of `plt.subplots(rows, columns)`, arranged as there: an array of things to draw on.

    Attributes:
        array: what there is, by row and column.
    """

    array: Any

    language_name: ClassVar[str] = "numpy.ndarray"
    language_attributes = names("T flat flatten ndim ravel reshape shape size tolist")

    @property
    def flat(self) -> Grid:
        """All in a row."""
        return Grid(self.array.ravel())

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        attribute = getattr(self.array, name)
        if not callable(attribute):
            return _one_or_more(attribute)
        return called(name, lambda *shape: _one_or_more(attribute(*shape)))

    def __getitem__(self, index: Any) -> Any:
        for each in index if isinstance(index, tuple) else (index,):
            check_kind(each, (int, slice), "an index of axes is a number")
        return _one_or_more(self.array[index])

    def __iter__(self) -> Iterator[Any]:
        return map(_one_or_more, self.array)

    def __len__(self) -> int:
        return len(self.array)


def _one_or_more(picked: Any) -> Any:
    return Grid(picked) if isinstance(picked, np.ndarray) else picked


class Figure:
    """`matplotlib.figure.Figure`."""

    __slots__ = ("axes", "current", "number", "plot")

    language_name: ClassVar[str] = "matplotlib.figure.Figure"
    language_attributes = names("""add_axes add_subplot axes clear clf colorbar gca number savefig
        set_size_inches show subplots suptitle""")

    def __init__(self, number: int, figsize: Any = None) -> None:
        width, height = (6.4, 4.8) if figsize is None else numbers(figsize, "figsize").ravel()
        self.plot = Plot(_pixels(width), _pixels(height), [])
        self.axes: list[Axes] = []
        self.current: Axes | None = None
        self.number = number

    def language_getattr(self, name: str) -> Undrawn:
        """What gradcli does not draw."""
        return undrawn(name, quiet=name in _FIGURE_LOOKS)

    def __repr__(self) -> str:
        return f"<Figure size {self.plot.width:g}x{self.plot.height:g} with {len(self.axes)} Axes>"

    def gca(self) -> Axes:
        """The axes that were made or named last."""
        return self.current or self.add_subplot()

    def add_subplot(self, *args: Any, projection: Any = None, **looks: Any) -> Any:
        """`add_subplot(rows, columns, index)`, or the three digits in one: axes in a grid."""
        if projection not in (None, "rectilinear"):
            not_drawn(f"a {projection} projection")
            return undrawn("axes", quiet=True)
        if len(args) == 1 and isinstance(args[0], int):
            args = tuple(map(int, str(args[0])))
        if args and (len(args) != 3 or not all(isinstance(each, int) for each in args[:2])):
            raise value_error("add_subplot() takes rows, columns and an index")
        rows, columns, index = args or (1, 1, 1)
        first, last = index if isinstance(index, tuple) else (index, index)
        check_collection(rows * columns)
        if not 1 <= first <= last <= rows * columns:
            raise value_error(
                f"num must be an integer with 1 <= num <= {rows * columns}, not {index}"
            )
        (row, column), (end, right) = divmod(first - 1, columns), divmod(last - 1, columns)
        cell = _in_grid(self.plot, rows, columns, (row, column, end + 1, right + 1))
        same = next((each for each in self.axes if each.panel.cell == cell), None)
        return self._with(same or Axes(self, panel(cell)))

    def add_axes(self, *args: Any, **looks: Any) -> Any:
        """Axes in the whole figure; where they are to stand is not kept."""
        return self.add_subplot(**looks)

    def _with(self, axes: Axes) -> Axes:
        if axes not in self.axes:
            self.axes.append(axes)
            self.plot.panels.append(axes.panel)
        self.current = axes
        return axes

    def subplots(
        self, nrows: int = 1, ncols: int = 1, *, squeeze: bool = True, **settings: Any
    ) -> Any:
        """One axes, or an array of them."""
        for count in (nrows, ncols):
            if not isinstance(count, int) or count < 1:
                raise value_error(f"subplots() takes positive numbers, not {count!r}")
        check_collection(nrows * ncols)
        axes = np.empty((nrows, ncols), object)
        flat = (settings.get("subplot_kw") or {}).get("projection")
        for row in range(nrows):
            for column in range(ncols):
                index = row * ncols + column + 1
                axes[row, column] = self.add_subplot(nrows, ncols, index, projection=flat)
        if squeeze:
            axes = axes.squeeze()
        return axes.item() if axes.ndim == 0 else Grid(axes)

    def suptitle(self, t: Any, **looks: Any) -> None:
        """The title above all panels."""
        self.plot.title = words_of(t)

    def colorbar(self, mappable: Any = None, *args: Any, **looks: Any) -> Undrawn:
        """A scale of the colours of an image, of contours or of points."""
        axes = mappable.axes if isinstance(mappable, Artist) else self.current
        if isinstance(axes, Axes):
            axes.panel.bar = words_of(looks.get("label") or "")
        return undrawn("colorbar", quiet=True)

    def set_size_inches(self, w: Any, h: Any = None, **looks: Any) -> None:
        """Another size."""
        both = numbers(w if h is None else [w, h], "set_size_inches()").ravel()
        self.plot.width, self.plot.height = _pixels(both[0]), _pixels(both[1])

    def clf(self, *args: Any) -> None:
        """Take everything away."""
        self.plot.panels.clear()
        self.axes.clear()
        self.current = None

    clear = clf

    def savefig(self, fname: Any, **looks: Any) -> None:
        """Write the figure to a file, .svg or .png."""
        check_kind(fname, (str, Path), "savefig() takes the name of a file here")
        active.state.emit(Plotted(self.plot, str(fname)))

    def show(self, *args: Any, **looks: Any) -> None:
        """Show the figure on the terminal."""
        active.state.emit(Plotted(self.plot, None))


def _pixels(inches: float) -> float:
    size = float(inches) * _INCH
    if not size > 0:
        raise value_error(f"figure size must be positive finite, not {inches}")
    return min(max(size, _SMALLEST), _LARGEST)


def _in_grid(
    plot: Plot, rows: int, columns: int, cell: tuple[int, int, int, int]
) -> tuple[int, int, int, int]:
    """A cell in the figure's grid, which is made finer where another one is asked for."""
    before = plot.grid
    grid = int(np.lcm(before[0], rows)), int(np.lcm(before[1], columns))
    check_collection(grid[0] * grid[1])
    if grid != before:
        plot.grid = grid
        by = grid[0] // before[0], grid[1] // before[1]
        for each in plot.panels:
            top, left, bottom, right = each.cell
            each.cell = top * by[0], left * by[1], bottom * by[0], right * by[1]
    down, across = grid[0] // rows, grid[1] // columns
    return cell[0] * down, cell[1] * across, cell[2] * down, cell[3] * across


# --- what pyplot has ------------------------------------------------------------------------------


_LOOKS = names("""clabel draw get_current_fig_manager ion ioff isinteractive locator_params margins
    minorticks_on pause rc rcParams rcdefaults rc_context setp style subplots_adjust switch_backend
    tick_params ticklabel_format tight_layout use get_backend box""")


class _Figures:
    """The open figures of a session, the current one last."""

    __slots__ = ("count", "open")

    def __init__(self) -> None:
        self.open: list[Figure] = []
        self.count = 0


def _figures() -> _Figures:
    figures: _Figures = active.state.library.setdefault("figures", _Figures())
    return figures


def figure(num: Any = None, figsize: Any = None, *args: Any, **looks: Any) -> Figure:
    """A new figure, or the one of a number, which becomes the current one."""
    figures = _figures()
    for each in figures.open:
        if num is not None and each.number == num:
            figures.open.remove(each)
            figures.open.append(each)
            return each
    check_collection(len(figures.open) + 1)
    figures.count += 1
    new = Figure(num if isinstance(num, int) else figures.count, figsize)
    figures.open.append(new)
    return new


def gcf() -> Figure:
    """The current figure; a new one where there is none."""
    figures = _figures()
    return figures.open[-1] if figures.open else figure()


def gca(**looks: Any) -> Any:
    """The current axes; new ones where there are none."""
    return gcf().add_subplot(**looks) if looks else gcf().gca()


def sca(ax: Any) -> None:
    """Make axes the current ones."""
    if isinstance(ax, Axes):
        ax.figure.current = ax


def subplots(
    nrows: int = 1, ncols: int = 1, *, figsize: Any = None, squeeze: bool = True, **settings: Any
) -> Any:
    """A figure, and one axes or an array of them."""
    new = figure(settings.pop("num", None), figsize)
    return new, new.subplots(nrows, ncols, squeeze=squeeze, **settings)


def subplot(*args: Any, **looks: Any) -> Any:
    """Axes of the current figure, `subplot(2, 1, 1)` or `subplot(211)`."""
    return gcf().add_subplot(*args, **looks)


def show(*args: Any, **looks: Any) -> None:
    """Show the open figures on the terminal, and close them, as closing their windows does."""
    figures = _figures()
    while figures.open:
        figures.open.pop(0).show()


def close(fig: Any = None) -> None:
    """Forget the current figure, the one given, or `all`."""
    figures = _figures()
    if fig == "all":
        figures.open.clear()
        return
    for each in figures.open[::-1]:
        if fig is None or each is fig or each.number == fig:
            figures.open.remove(each)
            return


def savefig(fname: Any, **looks: Any) -> None:
    """Write the current figure to a file, .svg or .png."""
    gcf().savefig(fname, **looks)


def suptitle(t: Any, **looks: Any) -> None:
    """The title above all panels."""
    gcf().suptitle(t)


def clf() -> None:
    """Take everything away from the current figure."""
    gcf().clf()


def delaxes(ax: Any = None) -> None:
    """Take axes out of their figure."""
    axes = gcf().gca() if ax is None else ax
    if isinstance(axes, Axes) and axes in axes.figure.axes:
        axes.figure.axes.remove(axes)
        axes.figure.plot.panels.remove(axes.panel)


def colorbar(mappable: Any = None, *args: Any, **looks: Any) -> Undrawn:
    """A scale of colours."""
    return gcf().colorbar(mappable, **looks)


def fignums() -> list[int]:
    """The numbers of the open figures."""
    return sorted(each.number for each in _figures().open)


def _of_axes(method: str) -> Callable[..., Any]:
    return lambda *args, **named: getattr(gca(), method)(*args, **named)


def _limits(axis: str) -> Callable[..., Any]:
    """`plt.xlim`, which sets, or without arguments gives."""

    def limit(*args: Any, **named: Any) -> Any:
        does = "set" if args or named else "get"
        return getattr(gca(), f"{does}_{axis}lim")(*args, **named)

    return limit


def _ticks(axis: str) -> Callable[..., Any]:
    """`plt.xticks`, which gives the places and the texts."""

    def ticks(ticks: Any = None, labels: Any = None, **looks: Any) -> Any:
        axes = gca()
        getattr(axes, f"set_{axis}ticks")(ticks, labels)
        named = axes.panel.ticks["xy".index(axis)] or []
        return [at for at, _ in named], [text for _, text in named]

    return ticks


_OWN = names("""figure cla clear set get_figure set_axis_off twinx get_title invert_xaxis
    invert_yaxis get_legend_handles_labels""")
"""Methods of axes that pyplot has not."""


class _PyPlot(Anything):
    """The names of pyplot; what is not drawn is there all the same."""

    def stand_in(self, name: str) -> Any:
        return MAPS[name] if name in MAPS else undrawn(name, quiet=name in _LOOKS)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "axes": gca, "cla": _of_axes("cla"), "clf": clf, "close": close,
    "colorbar": colorbar, "delaxes": delaxes, "figure": figure, "gca": gca, "gcf": gcf,
    "get_cmap": color_map, "get_fignums": fignums, "savefig": savefig, "sca": sca,
    "show": show, "subplot": subplot, "subplots": subplots, "suptitle": suptitle,
}  # fmt: skip

PYPLOT: dict[str, Any] = _PyPlot(
    {
        **{
            name: called(name, _of_axes(name))
            for name in Axes.language_attributes - _OWN
            if not name.startswith(("set_", "get_", "invert_"))
        },
        **{
            name: called(name, _of_axes(f"set_{name}"))
            for name in ("title", "xlabel", "ylabel", "xscale", "yscale")
        },
        **{f"{axis}lim": called(f"{axis}lim", _limits(axis)) for axis in "xy"},
        **{f"{axis}ticks": called(f"{axis}ticks", _ticks(axis)) for axis in "xy"},
        **{name: called(name, function) for name, function in _FUNCTIONS.items()},
        "Axes": define(Axes.language_name, Axes),
        "Figure": define(Figure.language_name, Figure, construct=figure),
    }
)  # fmt: skip
"""What `matplotlib.pyplot` holds."""

COLOR_MAPS: dict[str, Any] = _PyPlot({"get_cmap": color_map})
"""What `matplotlib.cm` holds."""

PYPLOT["cm"] = Module("matplotlib.cm", COLOR_MAPS)

MATPLOTLIB: dict[str, Any] = _PyPlot({"colormaps": PYPLOT["cm"]})
"""What `matplotlib` holds."""


# --- IPython.display ------------------------------------------------------------------------------


def display(*objs: Any, **settings: Any) -> None:
    """Show values, each on a line of its own as IPython does in a script, and figures as `show()`
    does; the settings say how a notebook would.
    """
    for obj in objs:
        if type(obj) is Figure:
            obj.show()
        else:
            active.state.emit(Printed(f"{representation(obj)}\n"))


DISPLAY: dict[str, Any] = Anything(
    display=display,
    clear_output=called("clear_output", lambda wait=False: None),
)
"""What `IPython.display` holds: all else is accepted, and not drawn."""
