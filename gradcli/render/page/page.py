"""Writes the page that steps: its document, its picture, its style and its script in one file."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from typing import Any

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
<header><h1>{title}</h1></header>
<nav aria-label="Steps">
<button id="first" type="button" aria-label="First step">|◀</button>
<button id="back" type="button" aria-label="Step back">◀</button>
<button id="play" type="button">Play</button>
<button id="forward" type="button" aria-label="Step forward">▶</button>
<button id="last" type="button" aria-label="Last step">▶|</button>
<input id="step" type="range" min="0" value="0" aria-label="Step">
<span id="count" role="status"></span>
</nav>
<main>
<section aria-label="Program and step">
<pre id="program" tabindex="0" aria-label="Program"></pre>
<div class="now"><h2>This step</h2><ul id="rows" class="rows" aria-live="polite"></ul></div>
<div id="inputs" class="now" hidden><h2>Inputs</h2></div>
<div class="now"><h2>Node</h2>
<div id="node" class="detail" aria-live="polite">Point at a box, or move to it with Tab.</div></div>
</section>
<figure tabindex="0" aria-label="Graph">
{picture}</figure>
</main>
<section class="sheet"><h2>All steps</h2><ul id="sheet" class="rows"></ul></section>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def page(document: dict[str, Any], picture: str) -> str:
    """The page as HTML.

    Args:
        document: what `page_document` gives.
        picture: the same graph as SVG.
    """
    # Inside a script element only `<` could end it.
    data = json.dumps(document, ensure_ascii=False).replace("<", "\\u003c")
    return _TEMPLATE.format(
        title=escape(f"Backward pass of {document['title']}"),
        style=_part("page.css"),
        script=_part("page.js"),
        picture=picture,
        data=data.encode("utf-8", "backslashreplace").decode(),
    )


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
