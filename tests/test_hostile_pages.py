"""Pictures and pages of hostile programs: nothing executes, nothing breaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.browser import BROWSER, Browser
from tests.hostile import NAMES, STRINGS, programs
from tests.rows import sampled
from tests.running import invoke

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "title", "style", "rect", "g", "path", "polygon", "text", "tspan"}
ATTRIBUTES = {
    "width", "height", "viewBox", "role", "aria-labelledby", "id", "class", "x", "y", "rx", "d",
    "transform", "points", "text-anchor",
}  # fmt: skip

UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What turns text around, commands a terminal, or is no character."""

KEYS = [
    *(f"string: {name}" for name in STRINGS),
    *sampled([f"name: {name[:20]}" for name in NAMES], every=8),
    *(f"key: {name}" for name in STRINGS),
    *(f"file: {number}" for number in range(3)),
]


@pytest.fixture(scope="module")
def hostile() -> Iterator[dict[str, list[str]]]:
    with TemporaryDirectory() as folder:
        yield programs(Path(folder))


def _drawn(words: list[str], format: str) -> str:
    found = invoke(*words, "--format", format)
    assert found.code == 0, found.stderr
    return found.stdout


class _Page(HTMLParser):
    """The elements and attributes of a page, and the text of its document."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.data = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        if self.elements[-1:] == ["script"] and not self.data:
            self.data = data


@pytest.mark.parametrize("key", KEYS)
def test_nothing_breaks_out_of_a_picture(key: str, hostile: dict[str, list[str]]) -> None:
    svg = _drawn(hostile[key], "svg")
    assert not UNSEEN.search(svg)
    for each in ElementTree.fromstring(svg).iter():
        assert each.tag.removeprefix(SVG) in DRAWN
        assert set(each.attrib) <= ATTRIBUTES


@pytest.fixture(scope="module")
def plain() -> _Page:
    """The page of a program that wants no harm."""
    page = _Page()
    page.feed(_drawn(["y = x * 2 + x", "x=2"], "html"))
    return page


@pytest.mark.parametrize("key", sampled(KEYS, 2))
def test_nothing_breaks_out_of_a_page(
    key: str, hostile: dict[str, list[str]], plain: _Page
) -> None:
    html = _drawn(hostile[key], "html")
    assert not UNSEEN.search(html)
    page = _Page()
    page.feed(html)
    assert page.attributes <= plain.attributes
    drawn = {"g", "text", "tspan", "rect", "path", "polygon"}
    elements = [each for each in page.elements if each not in drawn]
    assert elements == [each for each in plain.elements if each not in drawn]
    document: Any = json.loads(page.data)
    assert document["rows"]


@pytest.mark.browser
@pytest.mark.skipif(not BROWSER, reason="no browser is here")
def test_nothing_executes(hostile: dict[str, list[str]], tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        for key, words in hostile.items():
            file = tmp_path / "page.html"
            file.write_text(_drawn(words, "html"), "utf-8")
            browser.open(file)
            told = browser.run(
                "steps.forEach((_, number) => show(number));"
                "page.forward.forEach((id) => { describe(id); mark(id); });"
                "for (const { edges } of page.arrows)"
                " edges.forEach(([n, e]) => describeEdge(n, e, 1));"
                "[typeof hit, at === steps.length - 1, document.querySelectorAll('script').length]"
            )
            assert told == ["undefined", True, 2], key
            assert browser.failures == [], key
            assert all(each == file.as_uri() for each in browser.requests), key
