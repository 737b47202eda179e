"""What programs hand to matplotlib: numbers, colours, maps of colours, short words for styles."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.drawing import COLORS
from gradcli.language.limits import charge, check_text
from gradcli.language.objects.iteration import iterate
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import type_name
from gradcli.library.drawing.undrawn import Undrawn
from gradcli.library.numpy.array import NDArray, compute, unwrap
from gradcli.record import Record

_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), map, zip, filter, set)


def array(value: Any, what: str) -> Any:
    """An array of the host's, of numbers or strings; raises E202 for what cannot be drawn."""
    if isinstance(value, _VIEWS):
        value = list(iterate(value))
    result = compute(np.asarray, (unwrap(value),), {}, 0)
    result = np.asarray(result.data if type(result) is NDArray else result)
    if result.dtype.kind not in "biufcU":
        raise type_error(f"{what} takes numbers, not {type_name(value)}")
    charge(result.size)
    return result


def numbers(value: Any, what: str) -> Any:
    """An array of float64, of complex numbers the real parts."""
    values = array(value, what)
    if values.dtype.kind == "U":
        try:
            return values.astype(np.float64)
        except ValueError:
            raise value_error(f"could not convert string to float: {display(value)}") from None
    return np.real(values).astype(np.float64)


def pair(x: Any, y: Any, what: str) -> tuple[Any, Any, list[str] | None]:
    """Numbers along x and y, and the words that stand for those of x.

    Raises E204 where they differ in number.
    """
    first, second = array(x, what), np.ravel(numbers(y, what))
    words = None
    if first.dtype.kind == "U":
        names = np.ravel(first).tolist()
        words = list(dict.fromkeys(names))
        first = np.array([words.index(each) for each in names], np.float64)
    first = np.ravel(np.real(first).astype(np.float64))
    if first.size != second.size and 1 not in (first.size, second.size):
        raise value_error(
            "x and y must have same first dimension, but have shapes"
            f" ({first.size},) and ({second.size},)",
            text=None,
        )
    first, second = np.broadcast_arrays(first, second)
    return first, second, words


def words_of(value: Any) -> str:
    """A text that stands in a picture: `$x^2$` loses what TeX needs."""
    words = text(value)
    check_text(len(words))
    return re.sub(r"\$([^$]*)\$", lambda tex: _plain(tex[1]), words)


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_SYMBOLS = """alpha α beta β gamma γ delta δ epsilon ε eta η theta θ lambda λ mu μ nu ν pi π rho ρ
    sigma σ tau τ phi φ omega ω nabla ∇ partial ∂ times × cdot · infty ∞ pm ± leq ≤ geq ≥"""
_RAISED = str.maketrans("0123456789+-n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ")


_GREEK = _pairs(_SYMBOLS)


def _plain(tex: str) -> str:
    """Simple TeX in plain characters."""
    tex = re.sub(r"\\(?:text|mathrm|mathbf|mathcal|left|right)\b", "", tex)
    tex = re.sub(r"\\([a-zA-Z]+)", lambda word: _GREEK.get(word[1], word[1]), tex)
    tex = re.sub(r"\^\{?([0-9+\-n]+)\}?", lambda power: power[1].translate(_RAISED), tex)
    return tex.replace("{", "").replace("}", "").strip()


# --- colours ------------------------------------------------------------------------------------

_PALETTE = "blue orange green red purple brown pink gray olive cyan"
_LETTERS = "b C0 g C2 r C3 m C4 c C9 y C8 k ink w #ffffff"
_OTHERS = """black ink white #ffffff grey C7 magenta C4 yellow C8 violet C4 none none silver #c0c0c0
    steelblue #4682b4 navy #000080 crimson #dc143c darkorange #ff8c00 skyblue #87ceeb
    lightblue #add8e6 salmon #fa8072 teal #008080 gold #ffd700 lime #00ff00 coral #ff7f50
    tomato #ff6347 firebrick #b22222 forestgreen #228b22 royalblue #4169e1 dodgerblue #1e90ff
    slategray #708090 lightgray #d3d3d3 lightgrey #d3d3d3 darkgray #a9a9a9 darkgreen #006400
    darkred #8b0000 darkblue #00008b indigo #4b0082 turquoise #40e0d0 maroon #800000
    limegreen #32cd32 seagreen #2e8b57 lightgreen #90ee90 lightcoral #f08080 aqua #00ffff
    cornflowerblue #6495ed orchid #da70d6 deepskyblue #00bfff chocolate #d2691e hotpink #ff69b4
    tan #d2b48c mediumseagreen #3cb371 dimgray #696969 plum #dda0dd"""


_NAMED = {name: f"C{number}" for number, name in enumerate(_PALETTE.split())}
_NAMED |= _pairs(_LETTERS) | _pairs(_OTHERS)
"""Colours by name. Those of everyday take the palette's, which the colour-blind tell apart."""


def color_of(value: Any) -> str:
    """A colour of the document; raises E204 for what is none."""
    shade = _color(value)
    if shade is None:
        shown = display(value)
        raise value_error(
            f"{shown} is not a valid value for color", f"{shown} is not a valid color"
        )
    return shade


def _color(value: Any) -> str | None:
    if isinstance(value, str):
        name = value.removeprefix("tab:").removeprefix("xkcd:").lower()
        if name in _NAMED:
            return _NAMED[name]
        if re.fullmatch(r"c\d+", name):
            return f"C{int(name[1:]) % COLORS}"
        if re.fullmatch(r"#[0-9a-f]{6}([0-9a-f]{2})?", name):
            return name[:7]
        if re.fullmatch(r"#[0-9a-f]{3}", name):
            return "#" + "".join(2 * each for each in name[1:])
        try:
            shade = float(name)
        except ValueError:
            return None
        return _hex([shade] * 3) if 0 <= shade <= 1 else None
    if isinstance(value, Undrawn):
        return "C0"
    try:
        parts = np.ravel(numbers(value, "color")).tolist()
    except GradcliError:
        return None
    return _hex(parts[:3]) if len(parts) in (3, 4) and all(0 <= p <= 1 for p in parts) else None


def _hex(parts: list[float]) -> str:
    return "#" + "".join(f"{round(255 * each):02x}" for each in parts)


# --- styles -------------------------------------------------------------------------------------

DASHES = {
    "-": "solid", "--": "dashed", "-.": "dashdot", ":": "dotted",
    "solid": "solid", "dashed": "dashed", "dashdot": "dashdot", "dotted": "dotted",
    "None": "none", "none": "none", " ": "none", "": "none",
}  # fmt: skip

MARKERS = frozenset("o.,xX+*sSdD^v<>|_pPhH12348")

_FORMAT = re.compile(r"(--|-\.|-|:)|(C\d|[bgrcmykw])|([o.,xX+*sdD^v<>|_pPhH1-48])")


def format_of(short: str) -> dict[str, str]:
    """What a format such as `r--o` says: `color`, `dash`, `marker`; raises E204 for another."""
    looks: dict[str, str] = {}
    at = 0
    if short and _color(short) is not None and len(short) > 2:
        return {"color": short}
    while at < len(short):
        part = _FORMAT.match(short, at)
        if part is None:
            words = f"{display(short)} is not a valid format string"
            raise value_error(words, f"{words} (unrecognized character {display(short[at])})")
        for name, value in zip(("dash", "color", "marker"), part.groups(), strict=True):
            if value is not None:
                looks[name] = DASHES[value] if name == "dash" else value
        at = part.end()
    if "marker" in looks:
        looks.setdefault("dash", "none")
    return looks


def dash(value: Any) -> str:
    """A kind of line; raises E204 for what is none."""
    if value is None:
        return "solid"
    if isinstance(value, str) and value in DASHES:
        return DASHES[value]
    if isinstance(value, tuple):
        return "dashed"
    raise value_error(f"{display(value)} is not a valid value for ls")


def map_name(value: Any) -> str:
    """The name of a map of colours; that of an object that is not drawn is the usual one."""
    return value if isinstance(value, str) else getattr(value, "name", "viridis")


# --- maps of colours ------------------------------------------------------------------------------


_TEXTS = {
    "viridis": "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
    "plasma": "0d0887 4c02a1 7e03a8 aa2395 cc4778 e66c5c f89540 fdc527 f0f921",
    "inferno": "000004 210c4a 57106e 8a226a bc3754 e45a31 f98e09 f9cb35 fcffa4",
    "magma": "000004 1d1147 51127c 832681 b73779 e75263 fc8961 fec488 fcfdbf",
    "cividis": "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 fee838",
    "gray": "000000 ffffff",
    "binary": "ffffff 000000",
    "Blues": "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b",
    "Reds": "fff5f0 fee0d2 fcbba1 fc9272 fb6a4a ef3b2c cb181d a50f15 67000d",
    "Greens": "f7fcf5 e5f5e0 c7e9c0 a1d99b 74c476 41ab5d 238b45 006d2c 00441b",
    "coolwarm": "3b4cc0 6788ee 9abbff c9d7f0 dddddd f4c4ac f08a6c d65244 b40426",
    "RdBu": "67001f b2182b d6604d f4a582 f7f7f7 92c5de 4393c3 2166ac 053061",
    "RdYlBu": "a50026 d73027 f46d43 fdae61 ffffbf abd9e9 74add1 4575b4 313695",
    "RdYlGn": "a50026 d73027 f46d43 fdae61 ffffbf a6d96a 66bd63 1a9850 006837",
    "Spectral": "9e0142 d53e4f f46d43 fdae61 ffffbf abdda4 66c2a5 3288bd 5e4fa2",
    "bwr": "0000ff ffffff ff0000",
    "seismic": "00004c 0000ff ffffff ff0000 7f0000",
    "hot": "0b0000 5c0000 b00000 ff0000 ff5700 ffab00 ffff00 ffff80 ffffff",
    "jet": "00007f 0000ff 007fff 00ffff 7fff7f ffff00 ff7f00 ff0000 7f0000",
}
"""Colours at even steps, between which those of a map lie."""

_ALIASES = {
    "Greys": "binary", "gist_gray": "gray", "gray_r": "binary", "Greys_r": "gray", "rainbow": "jet",
    "turbo": "jet", "hsv": "jet", "PiYG": "RdYlGn", "PRGn": "RdBu", "BrBG": "RdBu", "Set1": "jet",
    "tab10": "jet", "Paired": "jet", "Oranges": "Reds", "Purples": "Blues", "YlGnBu": "Blues",
    "YlOrRd": "Reds", "winter": "viridis", "summer": "Greens", "cool": "coolwarm",
}  # fmt: skip
"""Maps that the nearest one stands for."""


def rgb(name: str, shares: Any) -> Any:
    """Red, green and blue of values between 0 and 1, each from 0 to 1, along a new last dimension;
    unknown maps are `viridis`.
    """
    turned = name.endswith("_r") and name not in _ALIASES
    name = name.removesuffix("_r") if turned else name
    text = _TEXTS.get(_ALIASES.get(name, name), _TEXTS["viridis"])
    steps = np.array([[int(each[at : at + 2], 16) for at in (0, 2, 4)] for each in text.split()])
    at = np.clip(np.nan_to_num(shares), 0, 1) * (len(steps) - 1)
    places = np.arange(len(steps))
    steps = steps[::-1] if turned else steps
    return np.stack([np.interp(at, places, steps[:, part]) for part in range(3)], axis=-1) / 255


class ColorMap(Record):
    """A map of colours as a value: `plt.cm.viridis(0.5)` gives red, green, blue and 1."""

    name: str

    language_name: ClassVar[str] = "matplotlib.colors.Colormap"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"name", "N"})
    N: ClassVar[int] = 256

    def __call__(self, X: Any, alpha: Any = None, bytes: bool = False) -> Any:
        numbers = compute(np.asarray, (unwrap(X),), {}, 0)
        values = np.real(numbers.data if type(numbers) is NDArray else numbers)
        shares = values / (self.N - 1) if values.dtype.kind in "iu" else values.astype(np.float64)
        colors = rgb(self.name, shares)
        alphas = np.full((*colors.shape[:-1], 1), 1.0 if alpha is None else float(alpha))
        whole = np.concatenate([colors, alphas], axis=-1)
        return tuple(whole.tolist()) if whole.ndim == 1 else NDArray(whole)

    def __repr__(self) -> str:
        return f"<matplotlib.colors.Colormap object '{self.name}'>"


MAPS = {
    f"{name}{turned}": ColorMap(f"{name}{turned}")
    for name in (*_TEXTS, *_ALIASES)
    for turned in ("", "_r")
    if not name.endswith("_r")
} | {name: ColorMap(name) for name in ("gray_r", "Greys_r")}
"""The maps by name."""


def color_map(name: Any = None, lut: Any = None) -> ColorMap:
    """`plt.get_cmap(name)`."""
    if isinstance(name, ColorMap):
        return name
    chosen = MAPS.get("viridis" if name is None else name)
    if chosen is None:
        raise value_error(f"{display(name)} is not a valid value for cmap")
    return chosen
