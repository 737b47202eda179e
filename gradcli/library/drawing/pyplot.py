"""`matplotlib.pyplot`, and the other modules of matplotlib as far as they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.language.limits import check_collection
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.types import called, define, names
from gradcli.library.drawing.axes import Axes
from gradcli.library.drawing.figure import Figure
from gradcli.library.drawing.maps import MAPS, color_map
from gradcli.library.drawing.undrawn import Anything, Undrawn, undrawn
from gradcli.state import active

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
