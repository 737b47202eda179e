"""What `gradcli help` shows: topics, the codes of errors and warnings, and ops."""

from __future__ import annotations

from gradcli.codes import CODES
from gradcli.render.help.topics import SUMMARIES, TOPICS
from gradcli.render.style import PLAIN, Style
from gradcli.warning_codes import WARNINGS


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
    found = TOPICS.get(name)
    if found is None:
        return None
    head, _, rest = found.partition("\n")
    return f"{style.paint(head, 'strong')}\n{rest}"


def page(name: str, style: Style = PLAIN) -> str | None:
    """The page of a topic, a code or an op, None for a name that is none of them."""
    text = topic(name, style)
    if text is not None:
        return text
    if name == "ops":
        from gradcli.render.help.op_list import op_list  # lazy: start-up: all ops

        return op_list(style=style)
    from gradcli.render.help.op_page import op_help  # lazy: start-up: all ops

    text = op_help(name, min(style.width or 80, 80))
    if text is None:
        return None
    head, _, rest = text.partition("\n")
    return f"{style.paint(head, 'strong')}\n{rest}"


def overview(style: Style = PLAIN) -> str:
    """What there is help on."""
    width = max(map(len, SUMMARIES)) + 2
    lines = [
        style.paint("gradcli help TOPIC", "strong"),
        *(f"  {name.ljust(width)}{summary}" for name, summary in SUMMARIES.items()),
        "",
        f"{style.paint('gradcli help OP', 'strong')}      exp, torch.sum, F.relu, Tensor.add_,"
        " nn.Linear, …",
        f"{style.paint('gradcli help CODE', 'strong')}    an error or a warning, such as E301",
        f"{style.paint('gradcli --help', 'strong')}       commands and options",
    ]
    return "\n".join(lines) + "\n"


def names() -> list[str]:
    """Every name that has a page and is at hand without loading layers and optimizers."""
    from gradcli.render.help.op_page import load  # lazy: start-up: all ops

    ops = [name for place in ("torch", "torch.nn.functional") for name in load(place)]
    return [*SUMMARIES, *CODES, *WARNINGS, *ops]


def _code(code: str, style: Style) -> str:
    found = CODES.get(code) or WARNINGS[code]
    about = f"raised as {found.raises} while {found.stage}; exit code {found.exit_code}"
    lines = [
        style.paint(f"{code}: {found.title}", "strong"),
        "a warning; with --strict the exit code is 1" if code in WARNINGS else about,
        "",
        *_wrapped(found.explanation),
    ]
    if found.example:
        lines += ["", "For example:", "", *(f"    {line}" for line in found.example.split("\n"))]
    return "\n".join(lines) + "\n"


def _codes(style: Style) -> str:
    lines = [style.paint("Codes of errors and warnings", "strong"), ""]
    lines += [f"  {code}  {found.title}" for code, found in (*CODES.items(), *WARNINGS.items())]
    return "\n".join([*lines, "", "gradcli help CODE explains one."]) + "\n"


def _wrapped(text: str, width: int = 80) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
