"""What a program came to, for Python: NumPy arrays, and the graph as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd import graph as recorded
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span, Warned
from gradcli.language.objects.repr import display
from gradcli.library.numpy.array import NDArray
from gradcli.recorded import result as found
from gradcli.running.arguments.bindings import mapped
from gradcli.running.arguments.options import PICTURES
from gradcli.running.picture import picture_text
from gradcli.running.run import Run
from gradcli.show.json import document, text


@dataclass(frozen=True)
class Place:
    """Where an operation stands in its program: lines and columns count from 1."""

    file: str
    line: int
    column: int
    text: str


@dataclass(frozen=True)
class Edge:
    """One entry of `next_functions`.

    Attributes:
        node: the id of the node that the gradient of this operand goes to, None where it needs
            none.
        output_nr: which of that node's outputs the operand was.
        constant: an operand without a node, where it is known.
    """

    node: int | None
    output_nr: int
    constant: Any = None


@dataclass(frozen=True)
class Node:
    """A node of the backward graph.

    Attributes:
        id: its number, from 1 for the output's.
        name: as PyTorch has it, `MulBackward0`.
        variable: the name that its value was assigned to first.
        module: the path of the module whose call made it.
        shape: of the value that it made; for a leaf, its own.
        value: a leaf's value, None for an operation.
    """

    id: int
    name: str
    variable: str | None
    module: str | None
    place: Place | None
    shape: tuple[int, ...]
    dtype: str
    value: Any
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Graph:
    """The backward graph of an output: each node once, the output's first."""

    nodes: tuple[Node, ...]

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __getitem__(self, id: int) -> Node:
        """The node of an id, from 1."""
        if not 1 <= id <= len(self.nodes):
            raise KeyError(id)
        return self.nodes[id - 1]


class Result:
    """What a run came to.

    Attributes:
        name: the output's variable, None for the value of an expression or where there is none.
        value: the output: a NumPy array for a tensor, else what Python has for it.
        grads: the gradients as NumPy arrays, by the names of inputs, leaves and parameters; that
            of a list, tuple or dict of arrays has its structure, with None where there is none.
        missing: the inputs that got no gradient, with the reason.
        printed: what the program printed.
        warnings: what is likely a mistake in it.
    """

    _kept: tuple[str, dict[str, Any]] | None = None
    """Its text and its document, of one that came from another process without its run."""

    def __init__(
        self,
        run: Run,
        result: found.Result | None,
        value: Any,
        printed: str,
        warnings: tuple[Warned, ...],
        again: Callable[[], Result] | None = None,
    ) -> None:
        self._run = run
        self._result = result
        self._again = again
        self.printed = printed
        self.warnings = warnings
        self.name = None if result is None else result.name
        self.grads: dict[str, Any] = {}
        self.missing: dict[str, str] = {}
        with run.session.running():
            self.value: Any = python_value(value if result is None else result.output)
            for each in () if result is None else result.gradients:
                name = each.name or f"#{each.node}"
                if each.tensor.grad is None:
                    self.missing[name] = each.reason
                else:
                    self.grads[name] = array_of(each.tensor.grad)
            for name, bound, paths in run.structures():
                for path in paths:
                    self.grads.pop(path, None)
                self.grads |= gradients_in(name, bound)

    def __getstate__(self) -> dict[str, Any]:
        """What another process gets: everything but the run, and so no pictures and no steps."""
        own = ("name", "value", "grads", "missing", "printed", "warnings")
        state = {name: getattr(self, name) for name in own}
        return {**state, "graph": self.graph, "_kept": (repr(self), self.to_dict())}

    @cached_property
    def graph(self) -> Graph:
        """The backward graph, without nodes where the output does not require grad."""
        if self._result is None:
            return Graph(())
        with self._run.session.running():
            return Graph(tuple(_node(each) for each in self._result.graph.nodes))

    def to_dict(self, *, steps: bool = False) -> dict[str, Any]:
        """The result as the object that `--json` prints, of the schema `gradcli.result/1`.

        Args:
            steps: whether the steps of the backward pass are in it, for which the program runs
                once more.
        """
        if self._kept is not None and not steps:
            return self._kept[1]
        shown = self._recorded() if steps else self
        with shown._run.session.running():
            return document(shown._result, self.printed, steps=steps)

    def to_json(self, *, indent: bool = False, steps: bool = False) -> str:
        """`to_dict` as a text: numbers are never shortened, NaN is the string "NaN"."""
        return text(self.to_dict(steps=steps), compact=not indent).removesuffix("\n")

    def picture(self, format: str = "svg") -> str:
        """The graph with values and gradients, as `svg`, as a `html` page that steps through both
        passes, or for `mermaid` or `dot`. The program runs once more, recorded.

        Raises:
            ValueError: there is no such format, or the output has no graph.
            GradcliError: E602 where the picture is too large.
        """
        if format not in PICTURES:
            raise ValueError(f"a picture is one of {', '.join(PICTURES)}, not {format!r}")
        shown = self._recorded()
        if shown._result is None or shown._result.graph.root is None:
            raise ValueError("the output has no graph")
        with shown._run.session.running():
            return picture_text(shown._run, shown._result, format)

    def _recorded(self) -> Result:
        """The result of a run that recorded every step."""
        if self._kept is not None:
            raise ValueError("the run of this result is in another process: ask there")
        return self if self._again is None else self._again()

    def _repr_html_(self) -> str | None:
        """The picture of the graph, for notebooks; None where there is none."""
        if self._kept is not None or self._result is None or self._result.graph.root is None:
            return None
        return self.picture()

    def __repr__(self) -> str:
        if self._kept is not None:
            return self._kept[0]
        if self._result is None:
            return f"Result({self.value!r})"
        with self._run.session.running():
            lines = [f"{self.name or 'output'} = {display(self._result.output)}"]
            for each in self._result.gradients:
                lines.append(f"{each.name or f'#{each.node}'}.grad = {display(each.tensor.grad)}")
        return "\n".join(lines)


def gradients_in(name: str, structure: Any) -> dict[str, Any]:
    """The gradients of the tensors in lists, tuples and dicts, in the same structure with None for
    all else, under a name; nothing where no tensor has one.
    """
    named: list[Any] = []

    def gradient(_: str, tensor: Tensor) -> Any:
        if tensor.grad is None or not tensor.is_leaf:
            return None
        named.append(array_of(tensor.grad))
        return named[-1]

    if type(structure) not in (list, tuple, dict):
        return {}
    gradients = mapped(name, structure, gradient, lambda _: None)
    return {name: gradients} if named else {}


def array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A copy of a tensor's elements on the host."""
    return np.array(to_host(forced(tensor.array)))


def python_value(value: Any) -> Any:
    """A value of the language as Python's: arrays copied, the text of what Python has not."""
    try:
        return _python_value(value)
    except RecursionError:  # it holds itself
        return display(value)


def _python_value(value: Any) -> Any:
    if isinstance(value, Tensor):
        return array_of(value)
    if isinstance(value, NDArray):
        return np.array(value.data)
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return value
    if type(value) is list:
        return [_python_value(each) for each in value]
    if type(value) is tuple:
        return tuple(_python_value(each) for each in value)
    if type(value) is dict:
        return {_python_value(key): _python_value(each) for key, each in value.items()}
    return value if isinstance(value, np.generic) else display(value)


def _node(node: recorded.GraphNode) -> Node:
    shape, dtype = node.outputs[0]
    value = None if node.leaf is None else array_of(node.leaf)
    edges = tuple(_edge(each) for each in node.edges)
    place = _place(node.place)
    return Node(
        node.id, node.name, node.variable, node.module, place, shape, dtype.name, value, edges
    )


def _edge(edge: recorded.Edge) -> Edge:
    node = None if edge.node is None else edge.node.id
    return Edge(node, edge.output_nr, python_value(edge.constant))


def _place(span: Span | None) -> Place | None:
    return None if span is None else Place(span.source.name, span.line, span.column, span.text)
