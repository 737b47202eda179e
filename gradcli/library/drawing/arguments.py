"""What programs hand to matplotlib: numbers, colours, and short words for styles."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.drawing import COLORS
from gradcli.language.limits import charge, check_text
from gradcli.language.objects.iteration import iterate
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.types import type_name
from gradcli.library.drawing.undrawn import Undrawn
from gradcli.library.numpy.array import NDArray, compute, unwrap

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
