"""The backward graph with its numbers: step by step, `--trace=steps`, and a stop of a walk through
one, `.step`; and as a tree, `--trace=values`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from gradcli.arrays.printing import format_tensor
from gradcli.autograd.graph import Graph
from gradcli.autograd.recording.recorder import Accumulation, Arrival, Event, Step
from gradcli.autograd.tensor import Tensor
from gradcli.record import Record
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.recorded.walk import Walk, before_hooks
from gradcli.show.diagnostics.human import location
from gradcli.show.graph.labels import is_large, norm_text, number_text
from gradcli.show.graph.nodes import gradient_text, is_printed_whole, source_of, target, title
from gradcli.show.graph.tree import FOLDED, LEAST, Line, TreeSettings, tree
from gradcli.show.style import PLAIN, Style, block, columns, cut, padded

# --- stretches that repeat ----------------------------------------------------------------------


_FEWEST = 3
"""Times that a stretch stands there, at least."""

_LEAST_SAVED = 8
"""Items that are left out, at least: a shorter list would be no easier to read."""

_LONGEST = 2_000
"""Items of a stretch, at most."""


class Repeat(Record):
    """A stretch of items that repeats.

    Attributes:
        start: where it stands first.
        length: how many items it has.
        times: how often it stands there in all.
    """

    start: int
    length: int
    times: int

    @property
    def end(self) -> int:
        """Where the last of them ends."""
        return self.start + self.length * self.times


def repeats(keys: Sequence[str]) -> list[Repeat]:
    """The stretches of equal keys that repeat, those first that save most; in the first of each
    others may repeat. In the order of their starts, the longer first.
    """
    numbers: dict[str, int] = {}
    codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    return sorted(_within(codes, 0, len(codes)), key=lambda each: (each.start, -each.end))


def _within(codes: np.ndarray, low: int, high: int) -> Iterator[Repeat]:
    best = _best(codes, low, high)
    if best is None:
        return
    yield best
    first = best.start + best.length
    for start, end in ((low, best.start), (best.start, first), (best.end, high)):
        yield from _within(codes, start, end)


def _best(codes: np.ndarray, low: int, high: int) -> Repeat | None:
    """The stretch between two places that saves most, the shortest of those; None for none."""
    part = codes[low:high]
    best: Repeat | None = None
    most = _LEAST_SAVED - 1
    for length in range(1, min(len(part) // _FEWEST, _LONGEST) + 1):
        # Runs of items that are those so many places on: between the ones that are not.
        unlike = np.flatnonzero(part[:-length] != part[length:])
        bounds = np.concatenate(([-1], unlike, [len(part) - length]))
        runs = np.diff(bounds) - 1
        at = int(np.argmax(runs))
        more = int(runs[at]) // length
        if more >= _FEWEST - 1 and more * length > most:
            most = more * length
            best = Repeat(low + int(bounds[at]) + 1, length, more + 1)
    return best


# --- steps --------------------------------------------------------------------------------------


_GAP = 4

_MOST = 80
"""Events of a pass that are told with all that came in and went out; of more, each is a line."""


def steps(
    graph: Graph,
    events: Sequence[Event],
    style: Style = PLAIN,
    titles: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The events of a backward pass in the order in which they happened.

    A numbered step is a node that ran, with the gradient that came in and what it passed on along
    each edge, or a gradient that reached a leaf. Gradients that meet are added where they do, as
    `old + incoming = new`. Of many events each is a line, and what repeats stands there once.

    Args:
        titles: what modules are titled, by their paths.
    """
    texts = event_texts(graph, events, style)
    if not is_brief(events):
        return "\n".join(texts)
    names = [_head(graph, event, PLAIN)[0] for event in events]
    keys = [_key(graph, event, name) for event, name in zip(events, names, strict=True)]
    lines: list[str] = []
    waiting: list[Repeat] = repeats(keys)
    around: list[Repeat] = []
    at = 0
    while at < len(texts):
        while waiting and waiting[0].start <= at:
            following = waiting.pop(0)
            if following.start == at:
                around.append(following)
        lines.append(texts[at])
        at += 1
        while around and at == around[-1].start + around[-1].length:
            repeat = around.pop()
            limit = around[-1].start + around[-1].length if around else len(texts)
            last = _last_block(events, keys[:limit], repeat)
            lines.append(style.paint(_again(repeat, names, titles, last), "quiet"))
            at = repeat.end + len(last)
    return "\n".join(lines)


def is_brief(events: Sequence[Event]) -> bool:
    """Whether so many events happened that each is told in a line."""
    return len(events) > _MOST and not is_printed_whole()


def _key(graph: Graph, event: Event, name: str) -> str:
    """What an event has in common with that of another block or another round."""
    grads = event.grads if isinstance(event, Step) else (event.new,)
    shapes = [None if grad is None else grad.shape for grad in grads]
    # Gradients that meet at a block's input meet at the last node before it: before the first
    # block that is another one.
    node = graph.find(event.node)
    if isinstance(event, Accumulation) and node is not None and node.leaf is None:
        name = ""
    return f"{type(event).__name__} {_NUMBER.sub('.', name)} {shapes}"


_NUMBER = re.compile(r"\.\d+(?=\.)")


def _last_block(events: Sequence[Event], keys: Sequence[str], repeat: Repeat) -> Sequence[int]:
    """The events of the first round, by their places, that happened once more behind all rounds in
    a block that passes no gradient to its input, as none is wanted there; none for no such block.
    """
    first = range(repeat.start, repeat.start + repeat.length)
    nodes = [events[at].node for at in first if isinstance(events[at], Step)]
    # What leads to a variable of the block happens in each: the other steps lead to its input.
    arrived = {events[at].node for at in first if isinstance(events[at], Arrival)}
    for node in reversed(nodes):
        if not arrived.isdisjoint(node.next_nodes):
            arrived.add(node)
    places = [at for at in first if events[at].node in arrived]
    block_keys = [keys[at] for at in places]
    alike = keys[repeat.end : repeat.end + len(places)] == block_keys
    return places if alike and len(places) < repeat.length else ()


def _again(
    repeat: Repeat, names: Sequence[str], titles: Mapping[str, str], last: Sequence[int]
) -> str:
    """The line in place of what repeats, with the modules that it belongs to.

    Args:
        last: what `_last_block` finds.
    """
    length, more = repeat.length, repeat.times - 1
    for at in range(repeat.start, repeat.start + length):
        places = [at + length * number for number in (0, 1, more)]
        if at in last:
            places[2] = repeat.end + last.index(at)
        parts = [names[place].split(".") for place in places]
        depth = next((n for n, (x, y) in enumerate(zip(*parts[:2], strict=False)) if x != y), None)
        if depth is not None:
            first, second, final = (".".join(each[: depth + 1]) for each in parts)
            title = titles.get(first, "").partition("(")[0] or "block"
            times = repeat.times + bool(last)
            text = f"     ⋮ {title} × {times}: as in {first}, so in {second} … {final}"
            return f"{text}, whose input gets nothing" if last else text
    again = f"     ⋮ these {length} lines {more} times more"
    return f"{again}, then {len(last)} of them" if last else again


def event_texts(
    graph: Graph, events: Sequence[Event], style: Style = PLAIN, brief: bool = True
) -> list[str]:
    """The text of each event, as `steps` shows it; `brief` for a line each where there are many."""
    heads = [_head(graph, event, style) for event in events]
    if brief and is_brief(events):
        return _lines(events, heads)
    column = max((len(plain) for plain, _, _ in heads), default=0) + _GAP
    texts = []
    number = 0
    hooked = before_hooks(events)
    for event, (plain, painted, source), before in zip(events, heads, hooked, strict=True):
        if isinstance(event, Accumulation):
            lead = f"       at {plain}: "
            texts.append(_sum(lead, event.old, event.incoming, event.new))
            continue
        number += 1
        count = f"{number}. ".rjust(4)
        if isinstance(event, Arrival):
            text = _sum(f"{count}{plain} = ", event.old, event.incoming, event.new)
            lead = "       a hook was given: "
            hook = [block(lead, gradient_text(each)) for each in before.values()]
            texts.append("\n".join([*hook, text]))
            continue
        blanks = " " * (column - len(plain))
        right = style.shortened(source, 4 + column)
        lines = [f"{count}{painted}{blanks}{right}".rstrip(), *_step(graph, event, before)]
        texts.append("\n".join(lines))
    return texts


def _lines(events: Sequence[Event], heads: Sequence[tuple[str, str, str]]) -> list[str]:
    """A line for each event: what came into a node, and what gradients that meet come to."""
    leads = [
        "       at " if isinstance(event, Accumulation) else f"{number}. ".rjust(4)
        for number, event in _numbered(events)
    ]
    widths = [len(lead) + len(plain) for lead, (plain, _, _) in zip(leads, heads, strict=True)]
    column = max(widths) + 2
    lines = []
    for event, lead, (_, painted, _), width in zip(events, leads, heads, widths, strict=True):
        came = event.grads if isinstance(event, Step) else (event.new,)
        text = " ".join(", ".join(map(gradient_text, came)).split())
        lines.append(f"{lead}{painted}{' ' * (column - width)}{text}")
    return lines


def _numbered(events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """Each event with the number of the step that it is, or belongs to."""
    number = 0
    for event in events:
        number += not isinstance(event, Accumulation)
        yield number, event


def _head(graph: Graph, event: Event, style: Style) -> tuple[str, str, str]:
    """The words for an event's node, plain and painted, and its source text."""
    node = graph.find(event.node)
    if isinstance(event, Arrival):
        name = event.node.variable.name or (f"#{node.id}" if node else event.node.node_name)
        return f"{name}.grad", f"{name}.grad", ""
    if node is None:  # a node that the program differentiated, outside this graph
        return event.node.node_name, style.paint(event.node.node_name, "node"), ""
    plain = title(node, PLAIN)
    if isinstance(event, Accumulation) and node.leaf is not None and node.variable is not None:
        plain = f"{plain}  {node.variable}"
    return plain, title(node, style), source_of(node)


def _step(graph: Graph, event: Step, before: Mapping[int, Any]) -> list[str]:
    """What came into a node and what it passed on; `before` hooks changed it."""
    node = graph.find(event.node)
    several = len(event.grads) > 1
    rows = []
    for number, grad in enumerate(event.grads):
        if number in before:
            rows.append(("a hook was given", before[number], ""))
        note = "  which the hook returned" if number in before else ""
        rows.append((f"grad of output {number}" if several else "grad", grad, note))
    hooks = event.node.extra is not None and event.node.extra.hooks
    edges = [] if node is None else node.edges
    for number, following in enumerate(event.node.next_nodes):
        if following is None:
            continue
        words = target(edges[number]) if node is not None else following.node_name
        fitted, raw = event.fitted[number], event.gradients[number]
        remark = "  after the node's hook" if hooks else _fitting(raw, fitted)
        rows.append((f"[{number}] → {words}", fitted, remark))
    column = max(len(words) for words, _, _ in rows) + 2
    lines = []
    for words, gradient, remark in rows:
        text = block(f"       {words.ljust(column)}", gradient_text(gradient))
        lines.append(f"{text}{remark}")
    return lines


def _fitting(raw: Any, fitted: Any) -> str:
    """What the engine did to make a rule's gradient fit its input."""
    if raw is None or fitted is None:
        return ""
    if raw.shape != fitted.shape:
        return f"  summed from shape {tuple(raw.shape)}"
    if raw.dtype is not fitted.dtype:
        return f"  cast from {raw.dtype.name}"
    return ""


def _sum(lead: str, old: Any, incoming: Any, new: Any) -> str:
    """`old + incoming = new`, or just the gradient where there was none before."""
    if old is None:
        return block(lead, gradient_text(new))
    texts = [gradient_text(array) for array in (old, incoming, new)]
    if not any("\n" in text for text in texts):
        return f"{lead}{' + '.join(texts[:2])} = {texts[2]}"
    blanks = " " * (len(lead) - 2)
    return "\n".join(
        [
            block(lead, texts[0]),
            block(f"{blanks}+ ", texts[1]),
            block(f"{blanks}= ", texts[2]),
        ]
    )


def next_functions(graph: Graph, name: str | None, style: Style = PLAIN) -> str:
    """`next_functions` of every node as a program prints it: `--trace=next`."""
    if graph.root is None:
        return f"{name or 'the output'}.grad_fn = None"
    lines = []
    if name is not None and graph.root.leaf is None:
        lines.append(f"{name}.grad_fn = {graph.root.node!r}")
    for node in graph.nodes:
        shown = style.paint(repr(node.node), "node")
        if node.leaf is None:
            lines.append(f"{shown}.next_functions = {node.node.next_functions!r}")
        else:
            variable = "" if node.variable is None else f"{node.variable} = "
            lines.append(block(f"{shown}.variable = {variable}", repr(node.leaf)))
    return "\n".join(lines)


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
    texts = event_texts(walk.graph, walk.events, style, False)
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


# --- trees ----------------------------------------------------------------------------------------


_TREE_GAP = 3

_VALUE, _GRADIENT = 8, 11
"""The columns of a value and of the norm of a gradient where there are too few for both whole."""

_PLACE = 24
"""The columns of source text that shapes give way to."""


def values_tree(
    values: AnnotatedGraph, style: Style = PLAIN, settings: TreeSettings | None = None
) -> str:
    """The tree of a graph with the value and the gradient of each node.

    Lines fit into the width of the style: shapes go first, then places, numbers and names are cut.
    """
    settings = settings or TreeSettings()
    settings = TreeSettings(settings.depth, settings.expand, settings.named, True)
    return tree(values.graph, style, settings, partial(_written, values))


class _Columns(Record):
    """The columns of a line: how wide each is, and what is between two of them.

    Attributes:
        left: those of branches and names; None where nothing is cut.
        place: those of source text; None where nothing is cut.
    """

    left: int | None
    value: int
    gradient: int
    place: int | None
    gap: int


def _written(values: AnnotatedGraph, lines: Sequence[Line], style: Style) -> str:
    """The lines, with value, gradient and place in columns."""
    lines = [*map(_named, lines)]
    names = max(line.width for line in lines)
    cells = [_cells(line, values, _whole) for line in lines]
    value, gradient, place = (max(columns(each[at]) for each in cells) for at in range(3))
    layout = _Columns(None, value, gradient, None, _TREE_GAP)
    if style.width is not None:
        room = style.width - names - value - gradient - 3 * _TREE_GAP
        layout = _Columns(names, value, gradient, room, _TREE_GAP)
        if room < min(place, _PLACE):
            cells = [_cells(line, values, _norms) for line in lines]
            widths = [max(columns(each[at]) for each in cells) for at in range(2)]
            layout = _narrow(names, widths, style.width)
    texts = zip(lines, cells, strict=True)
    return "\n".join(_line(line, each, layout, names, style) for line, each in texts)


def _narrow(names: int, widths: Sequence[int], width: int) -> _Columns:
    """The columns of a terminal that is too narrow for shapes."""
    gap = 2 if width >= 80 else 1
    value, gradient = min(widths[0], _VALUE), min(widths[1], _GRADIENT)
    room = width - value - gradient - 3 * gap
    left = min(names, max(room - LEAST, LEAST))
    spare = room - left - _PLACE
    if spare > 0:  # numbers are worth more than a long place
        value = min(widths[0], value + spare)
        room = width - value - gradient - 3 * gap
    return _Columns(left, value, gradient, max(room - left, 0), gap)


def _line(
    line: Line, cells: tuple[str, str, str], layout: _Columns, names: int, style: Style
) -> str:
    """One line: branches and names, value, gradient, place."""
    shown, grad, place = cells
    gap = " " * layout.gap
    left = names if layout.left is None else layout.left
    text = line.left(style, layout.left)
    text += " " * (left - min(line.width, left)) + gap
    shown = padded(cut(shown, layout.value), layout.value)
    text += f"{shown if line.source else style.paint(shown, 'quiet')}{gap}"
    grad = cut(grad, layout.gradient)
    text += style.paint(grad, "gradient") + " " * (layout.gradient - columns(grad))
    used = left + layout.value + layout.gradient + 3 * layout.gap
    place = style.shortened(place, used) if layout.place is None else cut(place, layout.place)
    return f"{text}{gap}{place}".rstrip()


def _named(line: Line) -> Line:
    """A line of a leaf with the leaf's name alone, which is cut last."""
    node = line.edge.node
    if node is None or node.leaf is None or node.variable is None:
        return line
    words = [(node.variable, "variable")]
    return Line(line.lead, words, line.edge, line.ending, line.mark, line.source)


def _whole(array: Any, lead: str) -> str:
    """A small array on one line, shape and norm of another."""
    return f"{lead} {number_text(array)}"


def _norms(array: Any, lead: str) -> str:
    """A value in a few columns, the norm of a large one; the norm of a gradient."""
    if lead == "=" and not is_large(array):
        return f"= {number_text(array)}"
    return f"‖{norm_text(array)}‖" if lead == "=" else f"‖g‖ {norm_text(array)}"


def _cells(
    line: Line, values: AnnotatedGraph, number: Callable[[Any, str], str]
) -> tuple[str, str, str]:
    """The value, the gradient and the place of a line."""
    node, constant = line.edge.node, line.edge.constant
    if node is None:
        name = getattr(constant, "name", None) or line.mark
        if isinstance(constant, Tensor):
            return number(constant.array, "="), "", name
        return "" if constant is None else f"= {constant!r}", "", name
    if not line.source:
        return line.mark, "", ""
    place = "" if node.leaf is not None else source_of(node)
    if line.mark == FOLDED:
        return "", "", place
    value, gradient = values.value(node), values.gradient(node)
    return (
        "" if value is None else number(value, "="),
        "" if gradient is None else number(gradient, "grad"),
        place,
    )
