"""Recorded PyTorch facts, and how a record is run and compared.

A record is a line of one of the files beside this one; `README.md` there says what each holds. A
record's id is `FILE/ID`. `difference` runs one and says how what happened differs from what
PyTorch did.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Arrival, Step
from gradcli.autograd.tensor import AccumulateGrad, Tensor
from gradcli.session import Session
from tests.exactness import difference as difference_of_texts
from tests.exactness import work_of
from tests.running import Outcome, OutOfTime, run, time_limit

FOLDER = Path(__file__).parent
EXPECTED_FAILURES = FOLDER / "expected_failures.txt"

SECONDS = 20
"""The longest that one record may run."""

Record = dict[str, Any]


def records(kind: str) -> list[Record]:
    """The records of a file: transcripts, programs, traces or facts."""
    text = (FOLDER / f"{kind}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def expected_failures() -> set[str]:
    """The ids of the records that do not conform yet."""
    return set(EXPECTED_FAILURES.read_text(encoding="utf-8").split())


def difference(kind: str, record: Record) -> str | None:
    """What differs between a record and what gradcli does; None where it conforms."""
    try:
        with time_limit(SECONDS):
            return COMPARISONS[kind](record)
    except (Exception, OutOfTime) as failure:
        return f"{type(failure).__name__}: {failure}"


# --- printed text ---------------------------------------------------------------------------------

_TRANSCRIPT = """\
import torch
import torch.nn.functional as F
{setup}\
parts = out if isinstance(out, (tuple, list)) else (out,)
total = 0
for p in parts:
    print(p)
    if p.requires_grad and p.grad_fn is not None:
        print(p.grad_fn.name(), [(f if f is None else f.name(), i)
                                 for f, i in p.grad_fn.next_functions])
        weight = torch.linspace(-1, 1, p.numel()).reshape(p.shape)
        total = total + (p * weight).sum()
if isinstance(total, torch.Tensor) and total.requires_grad and not total.is_complex():
    total.backward()
{gradients}"""

_FACT = """\
import torch
import torch.nn.functional as F
def T(data, dtype=None):
    return torch.tensor(data, dtype=dtype, requires_grad=True)
def node_name(node):
    return None if node is None else node.name().split('::')[-1]
def names(x):
    return [node_name(node) for node, number in x.grad_fn.next_functions]
def written(node, number):
    text = str(node_name(node))
    if node is not None and len(node.next_functions) > 0:
        text += '(' + ', '.join([written(n, i) for n, i in node.next_functions]) + ')'
    return text + (f'#{number}' if number else '')
def tree(x):
    print(written(x.grad_fn, x.output_nr))
"""


def program_of(kind: str, record: Record) -> str:
    """The whole program of a record, as it runs under PyTorch too."""
    program: str = record["program"]
    if kind == "transcripts":
        lines = [f"    print('{leaf}', {leaf}.grad)\n" for leaf in record["leaves"]]
        return _TRANSCRIPT.format(setup=program, gradients="".join(lines))
    if kind == "facts":
        return _FACT + program
    return f"import torch\n{program}" if kind == "traces" else program


def _compare_text(kind: str) -> Callable[[Record], str | None]:
    def compare(record: Record) -> str | None:
        program = program_of(kind, record)
        outcome = run(program)
        return _difference_of_error(outcome, record.get("error")) or difference_of_texts(
            outcome.masked, record["stdout"], lambda: work_of(program)
        )

    return compare


def _difference_of_error(outcome: Outcome, due: dict[str, Any] | None) -> str | None:
    error = outcome.error
    if error is None:
        return None if due is None else f"no error, PyTorch raised {due['type']}"
    line = error.span.line if error.span is not None else None
    found = f"{error.raises} at line {line} ({error.code}: {error.message})"
    if due is None:
        return f"{found}, PyTorch raised none"
    if (error.raises, line) != (due["type"], due["line"]):
        return f"{found}, PyTorch raised {due['type']} at line {due['line']}"
    return None


# --- graphs ---------------------------------------------------------------------------------------


def _compare_trace(record: Record) -> str | None:
    retained = [name for name in record["gradients"] if name not in _leaves(record)]
    program = program_of("traces", record)
    program += "".join(f"{name}.retain_grad()\n" for name in retained)
    outcome = run(program, default_dtype="float64", record="steps")
    if outcome.error is not None:
        return _difference_of_error(outcome, None)
    session, seed = outcome.session, record["seed"]
    out = session.values["out"]
    session.state.recorder.events.clear()
    session.backward(out, None if seed is None else Tensor(np.array(seed)))
    events = session.state.recorder.events
    nodes = _numbered(out.grad_fn)
    order = [nodes.index(event.node) for event in events if isinstance(event, (Step, Arrival))]
    described = [_described(node, nodes) for node in nodes]
    return (
        _unequal("nodes", described, [(node["name"], node["next"]) for node in record["nodes"]])
        or _unequal("execution order", order, record["execution_order"])
        or _wrong_grad_fn(record, session, nodes)
        or _wrong_numbers(record, session)
    )


def _leaves(record: Record) -> list[str]:
    return [node["variable"] for node in record["nodes"] if "variable" in node]


def _numbered(root: Node) -> list[Node]:
    """The nodes of a graph, numbered as the records number them: depth first."""
    nodes: list[Node] = []
    stack: list[Node | None] = [root]
    while stack:
        node = stack.pop()
        if node is not None and node not in nodes:
            nodes.append(node)
            stack += reversed(node.next_nodes)
    return nodes


def _described(node: Node, nodes: list[Node]) -> tuple[str, list[list[int | None]]]:
    edges = [[None if n is None else nodes.index(n), nr] for n, nr in node.next_functions]
    return node.node_name, edges


def _wrong_grad_fn(record: Record, session: Session, nodes: list[Node]) -> str | None:
    """What is wrong about which node belongs to which name, if anything."""
    leaves = {
        node["variable"]: number
        for number, node in enumerate(record["nodes"])
        if "variable" in node
    }
    for name, number in {**leaves, **record["grad_fn_of"]}.items():
        node, tensor = nodes[number], session.values[name]
        if (
            tensor is not node.variable
            if isinstance(node, AccumulateGrad)
            else tensor.grad_fn is not node
        ):
            return f"{name} does not belong to node {number}"
    return None


def _wrong_numbers(record: Record, session: Session) -> str | None:
    """Which value or gradient is not the recorded one, if any."""
    values, seed = session.values, record["seed"]
    program = program_of("traces", record)
    program += "out.backward()" if seed is None else f"out.backward(torch.tensor({seed}))"
    found = {name: values[name].grad for name in record["gradients"]}
    expected = {**record["gradients"], "the output": record["output"]}
    for name, tensor in {**found, "the output": values["out"]}.items():
        numbers = expected[name]
        if numbers is None or tensor is None:
            if numbers is not tensor:
                return f"{name}: {tensor}, PyTorch has {numbers}"
        else:
            shown = str(forced(tensor.array).tolist())
            wrong = difference_of_texts(
                shown, str(numbers), lambda: work_of(program, default_dtype="float64")
            )
            if wrong is not None:
                return f"{name}: {wrong}"
    return None


def _unequal(what: str, found: Any, expected: Any) -> str | None:
    return None if found == expected else f"{what}: {found}, PyTorch has {expected}"


COMPARISONS: dict[str, Callable[[Record], str | None]] = {
    "transcripts": _compare_text("transcripts"),
    "programs": _compare_text("programs"),
    "facts": _compare_text("facts"),
    "traces": _compare_trace,
}
