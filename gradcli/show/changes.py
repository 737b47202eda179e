"""What changed between the outputs of two runs."""

from __future__ import annotations

from difflib import SequenceMatcher

from gradcli.show.style import Style, escaped

_AROUND = 2
"""Lines of what stayed that are shown around what changed."""

_MOST = 2_000
"""Lines of an output that are compared; of a longer one the last."""


def changes(before: str, after: str, style: Style) -> str:
    """The lines that went (`-`) and came (`+`), with those around them; "" where none did."""
    old, new = (text.splitlines()[-_MOST:] for text in (before, after))
    if old == new:
        return ""
    lines: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_AROUND):
        if group[0][1] > 0 or lines:
            lines.append(style.paint("…", "quiet"))
        for tag, first, last, start, end in group:
            if tag == "equal":
                lines += [f"  {escaped(line)}".rstrip() for line in old[first:last]]
                continue
            lines += [style.paint(f"- {escaped(line)}", "error") for line in old[first:last]]
            lines += [style.paint(f"+ {escaped(line)}", "series2") for line in new[start:end]]
        if group[-1][2] < len(old):
            lines.append(style.paint("…", "quiet"))
    return "\n".join(line for n, line in enumerate(lines) if n == 0 or line != lines[n - 1]) + "\n"
