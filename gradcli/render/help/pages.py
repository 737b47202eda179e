"""What `gradcli help` shows: topics of the manual, the codes of errors and warnings, and ops."""

from __future__ import annotations

from gradcli.codes import CODES, WARNINGS
from gradcli.render.help.manual import code_source, front_source, rendered, sections, source
from gradcli.render.help.manual import topics as manual_topics
from gradcli.render.style import PLAIN, Style

_MADE = ("codes", "mistakes", "ops")
"""The topics that are made from tables."""

_OPS_TOO = frozenset({"numpy", "retain_grad", "trace"})
"""The topics that are the name of an op as well, whose page follows. Loading the ops to find out
would take three times as long as the page.
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
        from gradcli.render.help.mistakes import mistakes_page  # lazy: start-up: the parser

        return mistakes_page(style)
    if name == "ops":
        from gradcli.render.help.op_list import op_list  # lazy: start-up: all ops

        return op_list(style=style)
    text = source(name) or source(name.lower())
    return None if text is None else rendered(text, style)


def page(name: str, style: Style = PLAIN) -> str | None:
    """The page of a topic, a code or an op, or of both; None for any other name."""
    text = topic(name, style)
    if text is None:
        return _op(name, style)
    return f"{text}\n{_op(name, style)}" if name in _OPS_TOO else text


def overview(style: Style = PLAIN) -> str:
    """What there is help on."""
    return rendered(front_source(), style)


def names() -> list[str]:
    """Every name that has a page and is at hand without loading layers and optimizers."""
    from gradcli.render.help.op_page import load  # lazy: start-up: all ops

    ops = [name for place in ("torch", "torch.nn.functional") for name in load(place)]
    return [*topics(), *sections(), *CODES, *WARNINGS, *ops]


def _op(name: str, style: Style) -> str | None:
    from gradcli.render.help.op_page import op_help, op_of_node  # lazy: start-up: all ops

    text = op_help(op_of_node(name) or name, min(style.width or 80, 80))
    if text is None:
        return None
    head, _, rest = text.partition("\n")
    return f"{style.paint(head, 'strong')}\n{rest}"


def _code(code: str, style: Style) -> str:
    found = CODES.get(code) or WARNINGS[code]
    about = f"raised as {found.raises} while {found.stage}; exit code {found.exit_code}"
    lines = [
        style.paint(f"{code}: {found.title}", "strong"),
        "a warning; with --strict the exit code is 1" if code in WARNINGS else about,
        "",
        rendered(code_source(code), style),
    ]
    return "\n".join(lines)


def _codes(style: Style) -> str:
    lines = [style.paint("Codes of errors and warnings", "strong"), ""]
    lines += [f"  {code}  {found.title}" for code, found in (*CODES.items(), *WARNINGS.items())]
    return "\n".join([*lines, "", "gradcli help CODE explains one."]) + "\n"
