"""Maps of colours: names, and the colours of values between 0 and 1."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gradcli.errors import value_error
from gradcli.language.objects.repr import display
from gradcli.library.numpy.array import NDArray, compute, unwrap
from gradcli.record import Record

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
