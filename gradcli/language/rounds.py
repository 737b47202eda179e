"""Which iterations of a program's long loops a run records: the first and the last, where that is
enough for an answer; then those between them run compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.autograd.graph import Graph
    from gradcli.language.compiler.base import Running
    from gradcli.language.long_loops import Rounds


class NotRecorded(Exception):
    """An answer needs iterations of long loops that were not recorded.

    Attributes:
        wanted: those iterations, None for all.
    """

    def __init__(self, wanted: frozenset[Rounds] | None = None) -> None:
        super().__init__()
        self.wanted = wanted


def hear_passes(interpreter: Running) -> None:
    """Let a run note the backward passes of iterations that it does not record."""
    from gradcli.autograd.recording.recorder import Passes  # lazy: start-up: NumPy
    from gradcli.language.long_loops import follow_loops  # lazy: start-up: NumPy

    loops = interpreter.long_loops or follow_loops(interpreter)
    loops.listener = passes = Passes(interpreter.state.recorder.recorder, loops.place)
    loops.began = passes.begin


def passes_of(interpreter: Running) -> Any:
    """What a run noted of these passes, None where it noted none."""
    loops = interpreter.long_loops
    listener = None if loops is None else loops.listener
    return listener if hasattr(listener, "lost") else None


def arrivals_of(interpreter: Running) -> dict[Any, int]:
    """How many gradients reached each leaf in these passes."""
    passes = passes_of(interpreter)
    return {} if passes is None else passes.counts()


def record_rounds(interpreter: Running, wanted: frozenset[Rounds] | None) -> None:
    """Let a run record the first and the last iterations of long loops, and those wanted; all for
    None.
    """
    loops = interpreter.long_loops
    if loops is not None:
        loops.wanted, loops.recorder = wanted, interpreter.state.recorder


def check_recorded(interpreter: Running) -> None:
    """Raise `NotRecorded` where the program left a long loop in an iteration that was not, or ran
    its last backward pass of a place in one.
    """
    loops, passes = interpreter.long_loops, passes_of(interpreter)
    if loops is None:
        return
    if passes is not None:
        loops.missed += passes.lost()
    if loops.missed or loops.left:
        raise NotRecorded(loops.windows())


def check_graph(interpreter: Running, graph: Graph) -> None:
    """Raise `NotRecorded` where a graph has nodes of iterations that were not."""
    loops = interpreter.long_loops
    if loops is not None and loops.unheard:
        numbers = (each.node.sequence_nr for each in graph.nodes if each.leaf is None)
        if not all(map(loops.was_heard, numbers)):
            raise NotRecorded
