"""The page that steps: its numbers are the ledger's, its controls work, nothing breaks out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.running import invoke

PROGRAMS = {
    "scalars": ["e = (a + b) * d", "a=2", "b=3", "d=4"],
    "reused": ["y = x * x + x.exp() / x", "x=1.5"],
    "vectors": ["y = (x.sigmoid() @ w).tanh().sum()", "x=[[1,2],[3,4]]", "w=[[0.5,1],[-1,2]]"],
    "large": ["y = (x ** 2).sum()", "x=" + str([*range(100)])],
}


class _Script(HTMLParser):
    """The text of the element `data`, and what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.data = ""
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.loads += [str(named[each]) for each in ("src", "href", "data") if each in named]
        self._inside = named.get("id") == "data"

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data += data


def _document(html: str) -> dict[str, Any]:
    parser = _Script()
    parser.feed(html)
    assert parser.loads == []
    found: dict[str, Any] = json.loads(parser.data)
    return found


@pytest.mark.parametrize("words", PROGRAMS.values(), ids=PROGRAMS)
def test_its_numbers_are_those_of_the_ledger(words: list[str]) -> None:
    html = invoke("explain", *words, "--format", "html").stdout
    ledger = json.loads(invoke("explain", *words, "--json").stdout)["rows"]
    rows = _document(html)["rows"]
    assert len(rows) == len(ledger)
    for row, known in zip(rows, ledger, strict=True):
        for key, value in known.items():
            assert row[key] == value or "norm" in str(row[key])
    assert len(html) < 100_000


def test_forward_steps_come_before_backward_ones() -> None:
    html = invoke(*PROGRAMS["scalars"], "--format", "html").stdout
    found = _document(html)
    names = [found["nodes"][str(node)]["name"] for node in found["forward"]]
    assert names == ["AccumulateGrad"] * 3 + ["AddBackward0", "MulBackward0"]
    kinds = [[found["rows"][place]["kind"] for place in step] for step in found["backward"]]
    assert kinds[0] == ["node", "edge", "edge"]
    assert kinds.count(["leaf"]) == 3


def test_a_program_text_cannot_break_out() -> None:
    text = 'y = x * len("</script><script>alert(1)</script><!-- \\" <img src=x onerror=alert(1)>")'
    html = invoke(text, "x=2", "--format", "html").stdout
    assert html.count("<script") == 2
    assert "<img" not in html
    assert text in _document(html)["program"]["lines"]


def test_a_file_holds_the_page(tmp_path: Path) -> None:
    file = tmp_path / "e.html"
    assert invoke(*PROGRAMS["scalars"], "-o", str(file), "-q").code == 0
    assert file.read_text("utf-8") == invoke(*PROGRAMS["scalars"], "--format", "html").stdout


# --- in a browser -------------------------------------------------------------------------------

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)

PRESS = """
<script>
const said = [], say = (name, value) => said.push([name, value]);
const count = () => document.getElementById("count").textContent;
const rows = () => [...document.querySelectorAll("#rows li")].map((each) => each.textContent);
say("start", [count(), rows()]);
document.getElementById("forward").click(); say("forward", [count(), rows()]);
document.getElementById("back").click(); say("back", count());
document.getElementById("last").click(); say("last", [count(), rows()]);
document.getElementById("first").click(); say("first", count());
const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
key("ArrowRight"); key("ArrowRight"); say("keys", count());
key("End"); say("end", count());
document.getElementById("play").click(); say("play", document.getElementById("play").textContent);
document.getElementById("play").click(); say("pause", document.getElementById("play").textContent);
document.getElementById(`box${boxOf[page.forward[0]]}`).focus();
say("focus", document.getElementById("node").textContent);
const slider = document.querySelector("#inputs input");
slider.value = 3; slider.dispatchEvent(new Event("input"));
say("sheet", document.querySelectorAll("#sheet li").length);
say("moved", page.forward.map((id) => [page.nodes[id].value, page.nodes[id].gradient]));
say("named", [...document.querySelectorAll("button, input")].every(
  (each) => each.textContent || each.getAttribute("aria-label")));
document.body.innerHTML = "";
document.body.textContent = JSON.stringify(said);
</script>
"""


@pytest.mark.browser
@pytest.mark.skipif(not BROWSER, reason="no browser is here")
def test_every_control(tmp_path: Path) -> None:
    html = invoke(*PROGRAMS["reused"], "--format", "html").stdout
    file = tmp_path / "page.html"
    file.write_text(html.replace("</body>", f"{PRESS}</body>"), "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{file}"]
    done = subprocess.run([BROWSER, *flags], capture_output=True, timeout=120, check=True)
    body = re.search(r"<body>(.*)</body>", done.stdout.decode(), re.DOTALL)
    assert body is not None
    said = dict(json.loads(body[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")))
    total = said["sheet"]
    assert said["start"] == [f"step 1 of {total}, forward pass", ["x = 1.5", said["start"][1][1]]]
    assert said["forward"][0] == f"step 2 of {total}, forward pass"
    assert said["back"] == said["first"] == f"step 1 of {total}, forward pass"
    assert said["keys"] == f"step 3 of {total}, forward pass"
    assert said["end"] == said["last"][0] == f"step {total} of {total}, backward pass"
    assert (said["play"], said["pause"]) == ("Pause", "Play")
    assert said["focus"].startswith("x  AccumulateGrad")
    assert said["named"]
    # What the slider computed is what a run with this input computes.
    other = _document(invoke(PROGRAMS["reused"][0], "x=3", "--format", "html").stdout)
    for (value, gradient), node in zip(said["moved"], other["forward"], strict=True):
        known = other["nodes"][str(node)]
        assert value == pytest.approx(known["value"], rel=1e-5)
        assert gradient == pytest.approx(known["gradient"], rel=1e-5)
