"""What `gradcli help` shows: topics of the manual, the codes of errors and warnings, and ops; and
the search of `gradcli help WORDS`, pages, sections, codes and commands that hold the words.

The entries of the search are the front page's tables, the headings of the pages and the tables of
codes and commands; what a page says besides counts a little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradcli.errors import CODES, WARNINGS
from gradcli.show.help.manual import (
    code_source,
    front_source,
    headings,
    plain,
    rendered,
    sections,
    source,
)
from gradcli.show.help.manual import topics as topics_of_manual
from gradcli.show.style import PLAIN, Style

_MADE = ("codes", "left-out", "mistakes", "ops")
"""The topics that are made from tables, or by running programs."""

MORE = frozenset(
    (
        "backward",
        "data",
        "detach",
        "is_leaf",
        "jacobian",
        "jvp",
        "modules",
        "next_functions",
        "numpy",
        "optimizer",
        "requires_grad",
        "retain_grad",
        "seed",
        "trace",
        "training",
        "version",
        "vjp",
        "zero_grad",
    )
)
"""The topics that are the name of an op or of a member as well, whose pages follow. Loading the ops
to find out would take three times as long as the page.
"""


def topics() -> list[str]:
    """Every topic that the front page lists."""
    return [*topics_of_manual(), *_MADE]


def topic(name: str, style: Style = PLAIN) -> str | None:
    """The text of a topic or a code, None for one that there is not."""
    code = name.upper()
    if code in CODES or code in WARNINGS:
        return _code(code, style)
    if name == "codes":
        return _codes(style)
    if name == "mistakes":
        from gradcli.show.help.mistakes import mistakes_page  # lazy: start-up: the parser

        return mistakes_page(style)
    if name == "ops":
        from gradcli.show.help.ops import op_list  # lazy: start-up: all ops

        return op_list(style=style)
    if name == "left-out":
        from gradcli.show.help.ops import left_out_page  # lazy: start-up: a session

        return left_out_page(style)
    text = source(name) or source(name.lower())
    return None if text is None else rendered(text, style)


def page(name: str, style: Style = PLAIN) -> str | None:
    """The pages of a word, one for each thing that it means: a topic, a code, an op, a member; None
    for any other word.
    """
    slug = "-".join(name.split())
    text = topic(slug, style)
    if text is None:
        pages = _others(name, style) or _by_other_spelling(name, slug, style)
    else:
        pages = [text, *(_others(slug, style) if slug in MORE else ())]
    return "\n".join(pages) or None


def _by_other_spelling(name: str, slug: str, style: Style) -> list[str]:
    """The pages of `item` for `item()`, `double-backward` for `double_backward`, `version` for
    `_version`; of a namespace, or of the functions that have an argument of that name.
    """
    from gradcli.show.help.members import argument_page, namespace_page  # lazy: start-up: all ops

    bare = slug.partition("(")[0].strip("._")
    for other in (bare, bare.replace("_", "-"), f"{bare}s", bare.lower()):
        text = topic(other, style)
        pages = [text] if text is not None else _others(other, style)
        if pages and other != name:
            return pages
    width = min(style.width or 80, 80)
    text = namespace_page(bare, width) or argument_page(bare, width)
    return [] if text is None else [_with_head(text, style)]


def overview(style: Style = PLAIN) -> str:
    """What there is help on."""
    return rendered(front_source(), style)


def names() -> list[str]:
    """Every word that has a page."""
    from gradcli.show.help.members import member_names  # lazy: start-up: layers and all ops
    from gradcli.show.help.ops import load  # lazy: start-up: all ops

    ops = [name for place in ("torch", "torch.nn.functional") for name in load(place)]
    return [*topics(), *sections(), *CODES, *WARNINGS, *member_names(), *ops]


def _others(name: str, style: Style) -> list[str]:
    from gradcli.show.help.members import member_pages  # lazy: start-up: layers and all ops
    from gradcli.show.help.ops import op_help, op_of_node  # lazy: start-up: all ops

    width = min(style.width or 80, 80)
    text = op_help(op_of_node(name) or name, width)
    pages = [] if text is None else [text]
    # An op's node has the op's page; one of another op's name has a page of its own.
    if text is None or "Backward" not in name:
        pages += member_pages(name, width, is_op=text is not None)
    return [_with_head(each, style) for each in pages]


def _with_head(text: str, style: Style) -> str:
    head, _, rest = text.partition("\n")
    return f"{style.paint(head, 'strong')}\n{rest}"


def _code(code: str, style: Style) -> str:
    entry = CODES.get(code) or WARNINGS[code]
    about = f"raised as {entry.raises} while {entry.stage}; exit code {entry.exit_code}"
    lines = [
        style.paint(f"{code}: {entry.title}", "strong"),
        "a warning; with --strict the exit code is 1" if code in WARNINGS else about,
        "",
        rendered(code_source(code), style),
    ]
    return "\n".join(lines)


def _codes(style: Style) -> str:
    lines = [style.paint("Codes of errors and warnings", "strong"), ""]
    lines += [f"  {code}  {entry.title}" for code, entry in (*CODES.items(), *WARNINGS.items())]
    return "\n".join([*lines, "", "gradcli help CODE explains one."]) + "\n"


_MOST = 8
"""The lines of an answer."""

_SAME = {
    "backpropagation": "backprop",
    "beginner": "learn",
    "blank": "none",
    "course": "learn",
    "diagram": "picture",
    "exploding": "overflow",
    "figure": "picture",
    "freezing": "freeze",
    "gif": "picture",
    "github": "ci",
    "graphviz": "dot",
    "image": "picture",
    "inf": "infinity",
    "ipynb": "notebook",
    "jupyter": "notebook",
    "lesson": "learn",
    "missing": "none",
    "tex": "latex",
    "visualize": "picture",
}
"""Words that people type, by the word that the pages have for them."""

_IGNORED = re.compile(
    r"(an?|and|are|be|can|do|does|for|from|get|how|i|in|is|it|me|my|of|on|or|the|to)"
)

_NOT_ASKED = frozenset(("adding-an-op", "architecture", "contributing"))
"""Pages about the code of gradcli, found by their names and headings alone."""

_LAST = "changes"
"""The page that has a word of every other one: an answer where no other has."""


@dataclass(frozen=True)
class _Entry:
    """Something that may be asked for: what to type, what it is about, and further text."""

    typed: str
    about: str
    body: str = ""
    first: float = 0.0
    """What it is ahead of others that hold as many words."""
    last: bool = False
    """Whether it is told where nothing else holds a word."""

    def matched(self, words: list[str]) -> tuple[int, float]:
        """How many of the words stand in it, and how prominently."""
        places = [(self.typed, 6.0), (self.about, 8.0)]
        hits, score = 0, 0.0
        for word in words:
            pattern = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
            weight = sum(value for text, value in places if pattern.search(text))
            weight += min(3.0, 0.25 * len(pattern.findall(self.body)))
            hits += weight > 0
            score += weight
        return hits, score + self.first


def search(asked: str, commands: Mapping[str, str], style: Style = PLAIN) -> str | None:
    """What there is on words, a line each, the closest first; None where nothing holds them.

    Args:
        commands: what each command of the command line does.
    """
    if not re.fullmatch(r"[\w .,?'-]*\w[\w .,?'-]*", asked):
        return None
    words = [_stem(word) for word in re.findall(r"[\w.-]+", asked.lower())]
    words = [word for word in words if not _IGNORED.fullmatch(word)] or words
    ranked = []
    for number, entry in enumerate(_entries(commands)):
        hits, score = entry.matched(words)
        if hits:
            ranked.append((entry.last, -hits, -score, number, entry))
    if not ranked:
        return None
    ranked.sort()
    best = [rank[-1] for rank in ranked[:_MOST] if rank[:2] == ranked[0][:2]]
    return f"On {asked}:\n{listed([(each.typed, each.about) for each in best], style)}"


def listed(rows: Sequence[tuple[str, str]], style: Style = PLAIN) -> str:
    """What to type and what it is about, a line each that fits the terminal."""
    width = max(len(typed) for typed, _ in rows) + 2
    lines = [
        f"  {style.paint(typed.ljust(width), 'strong')}{style.shortened(about, width + 2)}"
        for typed, about in rows
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def wanted(asked: str) -> bool:
    """Whether a word is one of those by which the front page says what people want."""
    word = _stem(asked.lower())
    return any(re.search(rf"\b{re.escape(word)}\b", entry.about, re.I) for entry in _wants())


def _stem(word: str) -> str:
    """A word without the ending of a plural, in the spelling of the pages."""
    word = _SAME.get(word, word)
    plural = len(word) > 4 and word.endswith("s") and not word.endswith("ss")
    return _SAME.get(word[:-1], word[:-1]) if plural else word


def _entries(commands: Mapping[str, str]) -> Iterator[_Entry]:
    """Everything that can be asked for, the front page's words first."""
    yield from _wants()
    for name, about in commands.items():
        yield _Entry(f"gradcli {name} --help", about)
    described = dict(_rows("topic"))
    for topic in topics_of_manual():
        text = source(topic) or ""
        title = plain(text.split("\n")[0].lstrip("# "))
        body = "" if topic in _NOT_ASKED else text
        last = topic == _LAST
        yield _Entry(f"gradcli help {topic}", described.get(topic, title), body, 0.0, last)
        for slug, heading in headings(topic):
            yield _Entry(f"gradcli help {slug}", f"{plain(heading)} ({topic})", last=last)
    for code, meaning in (*CODES.items(), *WARNINGS.items()):
        yield _Entry(f"gradcli help {code}", meaning.title)


def _wants() -> Iterator[_Entry]:
    """What people want, by the front page."""
    for about, typed in _rows("what you want"):
        yield _Entry(typed, about, first=8.0)


def _rows(title: str) -> Iterator[tuple[str, str]]:
    """The two cells of each row of the front page's table whose first column has a title."""
    inside = False
    for line in front_source().split("\n"):
        cells = [plain(cell) for cell in line.strip("| ").split(" | ")]
        inside = line.startswith("|") and (inside or cells[0] == title)
        if inside and len(cells) == 2 and cells[0] != title:
            yield cells[0], cells[1]
