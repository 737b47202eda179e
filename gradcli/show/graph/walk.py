"""A stop of a walk through a backward pass, as text."""

from __future__ import annotations

from gradcli.arrays.printing import format_tensor
from gradcli.recorded.walk import Walk
from gradcli.show.diagnostics.snippet import location
from gradcli.show.graph.steps import event_texts
from gradcli.show.style import PLAIN, Style, block

KEYS = """\
n [COUNT]   the next step; so does an empty line
b [COUNT]   the step before
NUMBER      go to that step
break NAME  stop at a node or a variable; once more takes it back
c           go on to the next break point
g           the gradients so far
l           all steps
q           leave
EXPRESSION  its value: x.grad, h * 2
"""


def stop_text(walk: Walk, style: Style = PLAIN) -> str:
    """The current step with its span: the gradient that came in, and what was passed on."""
    texts = event_texts(walk.graph, walk.events, style)
    shown = "\n".join(texts[number] for number in walk.stops[walk.at])
    span = walk.event().node.place
    where = "" if span is None else f", {location(span)}"
    return f"step {walk.at + 1} of {len(walk.stops)}{where}\n{shown}\n"


def gradients_text(walk: Walk, style: Style = PLAIN) -> str:
    """The gradients of the leaves up to the step at hand."""
    gradients = walk.gradients()
    if not gradients:
        return "no gradient has reached a leaf yet\n"
    lines = []
    for name, array in gradients.items():
        lead = f"{name}.grad = "
        text = block(lead, format_tensor(array))[len(lead) :]
        lines.append(f"{style.paint(f'{name}.grad', 'variable')} = {text}\n")
    return "".join(lines)


def list_text(walk: Walk) -> str:
    """One line for each step; the one at hand has an arrow, break points a star."""
    texts = event_texts(walk.graph, walk.events)
    lines = []
    for stop, numbers in enumerate(walk.stops):
        arrow = "→" if stop == walk.at else " "
        star = "*" if walk.names(stop) & walk.breaks else " "
        lines.append(f"{arrow}{star}{texts[numbers[0]].partition(chr(10))[0]}".rstrip())
    return "\n".join(lines) + "\n"
