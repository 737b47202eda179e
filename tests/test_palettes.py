"""The colours of pictures and pages: how far apart they are for the colour-blind, and contrast.

How the colour-blind see a colour is simulated after Machado, Oliveira and Fernandes (2009), for
whom one kind of cone is missing; distances are those of CIELAB, in which 2 can just be told apart.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gradcli.show.pictures.svg import STYLE
from gradcli.show.plots.svg import PALETTE
from tests.command_line import ROOT

SEEN = {
    "everyone else": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip

_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
     [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip
_WHITE = np.array([0.95047, 1.0, 1.08883])

PAPER = {"light": "#ffffff", "dark": "#0d1117"}


def linear(colour: str) -> Any:
    """The linear red, green and blue of `#rrggbb`, 0 to 1."""
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(colour: str, seen: Any) -> Any:
    """Where a colour is in CIELAB for someone who sees it so."""
    xyz = _XYZ @ np.clip(seen @ linear(colour), 0, 1) / _WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, seen: Any) -> float:
    """How far two colours are apart."""
    return float(np.linalg.norm(lab(one, seen) - lab(other, seen)))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours after WCAG, 1 to 21."""
    low, high = sorted(float(_XYZ[1] @ linear(each)) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_the_measures_are_those_of_their_sources() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert lab("#ff0000", SEEN["everyone else"]) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    # Red and green of one lightness are one colour to who lacks the middle cone.
    assert distance("#c40000", "#5f7000", SEEN["deuteranopia"]) < 15
    assert distance("#c40000", "#5f7000", SEEN["everyone else"]) > 60


@pytest.mark.parametrize("kind", SEEN)
@pytest.mark.parametrize("scheme", PAPER)
def test_the_curves_of_a_plot_stay_apart(scheme: str, kind: str) -> None:
    colours = [pair[[*PAPER].index(scheme)] for pair in PALETTE]
    near = {
        pair: found
        for pair in combinations(colours, 2)
        if (found := distance(*pair, SEEN[kind])) < (15 if pair[1] in colours[:6] else 10)
    }
    assert near == {}
    assert [each for each in colours if contrast(each, PAPER[scheme]) < 3] == []


def _of_page(scheme: str) -> dict[str, str]:
    css = (ROOT / "gradcli/show/page/page.css").read_text("utf-8")
    names = dict.fromkeys(re.findall(r"--([a-z-]+): #", css))
    found = {name: re.findall(rf"--{name}: (#[0-9a-f]{{6}})", css) for name in names}
    return {name: colours[[*PAPER].index(scheme)] for name, colours in found.items()}


def _of_picture(scheme: str) -> dict[str, str]:
    light, dark = STYLE.split("@media")
    style = light if scheme == "light" else dark
    wanted = {"forward": r"\.forward \{ stroke", "backward": r"\.backward \{ stroke"}
    found = {name: re.search(rf"{rule}: (#[0-9a-f]{{6}})", style) for name, rule in wanted.items()}
    return {name: each[1] for name, each in found.items() if each is not None}


@pytest.mark.parametrize("kind", SEEN)
@pytest.mark.parametrize("scheme", PAPER)
def test_forward_and_backward_are_told_apart(scheme: str, kind: str) -> None:
    page, picture = _of_page(scheme), _of_picture(scheme)
    assert distance(page["forward"], page["backward"], SEEN[kind]) > 60
    assert distance(picture["forward"], picture["backward"], SEEN[kind]) > 30
    assert distance(page["forward-soft"], page["backward-soft"], SEEN[kind]) > 10
