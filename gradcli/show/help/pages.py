"""What `gradcli help` shows: topics of the manual, the codes of errors and warnings, and ops."""

from __future__ import annotations

from gradcli.codes import CODES, WARNINGS
from gradcli.show.help.manual import code_source, front_source, rendered, sections, source
from gradcli.show.help.manual import topics as manual_topics
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
    return [*manual_topics(), *_MADE]


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
        from gradcli.show.help.op_list import op_list  # lazy: start-up: all ops

        return op_list(style=style)
    if name == "left-out":
        from gradcli.show.help.op_list import left_out_page  # lazy: start-up: a session

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
    from gradcli.show.help.op_page import load  # lazy: start-up: all ops

    ops = [name for place in ("torch", "torch.nn.functional") for name in load(place)]
    return [*topics(), *sections(), *CODES, *WARNINGS, *member_names(), *ops]


def _others(name: str, style: Style) -> list[str]:
    from gradcli.show.help.members import member_pages  # lazy: start-up: layers and all ops
    from gradcli.show.help.op_page import op_help, op_of_node  # lazy: start-up: all ops

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
