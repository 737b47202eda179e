"""Writes the page that steps: its document, its picture, its style and its script in one file."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from typing import Any

from gradcli.show.pictures.svg import STYLE
from gradcli.show.style import escaped

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{title}</h1>
<p>made by gradcli; ← → step, Home and End leap, space plays, / finds, + − 0 zoom, a click opens \
a module</p></header>
<nav aria-label="Steps">
<div class="keys">
<button id="first" type="button" aria-label="First step">{first}</button>
<button id="back" type="button" aria-label="Step back">{back}</button>
<button id="play" type="button">Play</button>
<button id="forward" type="button" aria-label="Step forward">{forward}</button>
<button id="last" type="button" aria-label="Last step">{last}</button>
</div>
<label class="speed">Speed <select id="speed"><option value="0.5">½</option>\
<option value="1" selected>1</option><option value="3">3</option><option value="10">10</option>\
<option value="30">30</option></select> / s</label>
<div class="rail"><input id="step" type="range" min="0" value="0" aria-label="Step"></div>
<span id="count" role="status"></span>
</nav>
<main>
<div class="panel">
<section class="card first" aria-label="Program"><h2>Program</h2>
<pre id="program" tabindex="0" aria-label="Lines of the program"></pre></section>
<section class="card now" aria-label="This step"><h2>This step</h2>
<ul id="rows" class="rows mono" aria-live="polite"></ul></section>
<section id="inputs" class="card inputs" aria-label="Inputs"><h2>Inputs</h2>
<p class="hint">Drag or type a number: both passes are computed anew.</p></section>
<section class="card detail" aria-label="Details"><h2 id="what">Details</h2>
<div id="node" aria-live="polite"><p class="hint">Point at a box, an arrow or a name of the \
program, or move there with Tab.</p></div></section>
</div>
<figure class="card" aria-label="Graph">
<div class="canvas" tabindex="0" aria-label="Graph, which can be scrolled">
<svg id="picture" role="group" aria-label="Backward graph of {name}"></svg></div>
<figcaption><span><i></i>value, forward</span><span><i class="up"></i>gradient, back</span>
<span><i class="leaf"></i>leaf</span>
<input id="find" type="search" placeholder="Find a name" aria-label="Find a name in the graph">
<span class="zoom"><button id="open" type="button">Open all</button>
<button id="close" type="button">Close all</button>
<button id="out" type="button" aria-label="Smaller">−</button>
<button id="fit" type="button">Fit</button>
<button id="in" type="button" aria-label="Larger">+</button></span></figcaption>
</figure>
</main>
<section class="sheet"><h2>All steps</h2><ol id="sheet" class="rows mono"></ol></section>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""

_SCRIPTS = ("layout.js", "drawing.js", "tensors.js", "linear.js", "compute.js", "page.js")
"""The parts of the script, each of which uses those before it."""

_ICONS = {
    "first": "M2 2h2v12H2zM14 2v12L5 8z",
    "back": "M12 2v12L3 8z",
    "forward": "M4 2l9 6-9 6z",
    "last": "M12 2h2v12h-2zM2 2l9 6-9 6z",
}


def page(document: dict[str, Any]) -> str:
    """The page of what `page_document` gives, as HTML."""
    # Inside a script element only `<` could end it.
    data = json.dumps(_spelled(document), allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    return _TEMPLATE.format(
        title=escape(escaped(f"Backward pass of {document['title']}")),
        name=escape(escaped(document["title"])),
        style=f"{STYLE}{_part('page.css')}",
        script="".join(map(_part, _SCRIPTS)),
        data=data,
        **{
            name: f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{d}"/></svg>'
            for name, d in _ICONS.items()
        },
    )


def _spelled(value: Any) -> Any:
    """A document whose texts cannot turn the direction of what stands around them."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {key: _spelled(each) for key, each in value.items()}
    return [*map(_spelled, value)] if isinstance(value, list) else value


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
