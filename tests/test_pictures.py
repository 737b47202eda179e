"""The backward graph for Mermaid and Graphviz: what is in it, and that their grammars accept it."""

from __future__ import annotations

import re

import pytest

from tests.command_line import CommandLine

PROGRAMS = [
    ("e = (a + b) * d", "a=2 b=3 d=4"),
    ("y = (x * x + 1).sum()", "x=[1,2]"),
    ("y = (x < 3) * x * 2", "x=2"),
    ('y = {"a|b`c": x * 2}["a|b`c"] * x', "x=2"),
    ("y = x[1:] @ x[:2] & 1 if False else x.sum()", "x=[1,2,3]"),
    ("y = sum(x.unbind())", "x=[1,2,3]"),
    ("h = x @ w\ny = F.cross_entropy(h, tensor([0, 1]))", "x=ones(2,3) w=ones(3,2)"),
    ("y = x", "x=2"),
]

_TEXT = r'"(?:[^"<&`\\|#\n]|#\w+;|<br/>)*"'
"""A quoted label: entities for what Mermaid or HTML would read as something else."""

_NODE = re.compile(rf"    (n\d+|c\d+_\d+)(?:\[{_TEXT}\]|\(\[{_TEXT}\]\))(?::::constant)?")
_LINK = re.compile(rf"    (n\d+) (?:-->|-\.->)\|{_TEXT}\| (n\d+|c\d+_\d+)")
_CLASS = re.compile(r"    classDef constant [\w-]+: \d+")


def _read_mermaid(text: str) -> tuple[set[str], list[tuple[str, str]]]:
    """The nodes and links of a flowchart; fails on a line that is none of its grammar's."""
    first, *lines = text.splitlines()
    assert first == "flowchart TD"
    nodes: set[str] = set()
    links: list[tuple[str, str]] = []
    for line in lines:
        node, link = _NODE.fullmatch(line), _LINK.fullmatch(line)
        assert node or link or _CLASS.fullmatch(line), line
        if node:
            assert node[1] not in nodes
            nodes.add(node[1])
        if link:
            links.append((link[1], link[2]))
    return nodes, links


_DOT_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_DOT_NODE = re.compile(rf"    (n\d+|c\d+_\d+) \[label={_DOT_TEXT}(?:, style=\w+)?\];")
_DOT_LINK = re.compile(rf"    (n\d+) -> (n\d+|c\d+_\d+) \[label={_DOT_TEXT}(?:, style=dashed)?\];")


@pytest.mark.parametrize(("program", "inputs"), PROGRAMS)
@pytest.mark.parametrize("command", [[], ["explain"]])
def test_mermaid(gradcli: CommandLine, command: list[str], program: str, inputs: str) -> None:
    found = gradcli(*command, program, *inputs.split(), "--format", "mermaid")
    assert found.code == 0, found.err
    nodes, links = _read_mermaid(found.out)
    assert nodes == {"n1", *(name for link in links for name in link)}


@pytest.mark.parametrize(("program", "inputs"), PROGRAMS)
def test_dot(gradcli: CommandLine, program: str, inputs: str) -> None:
    found = gradcli(program, *inputs.split(), "--format", "dot")
    assert found.code == 0, found.err
    first, second, *lines, last = found.out.splitlines()
    assert (first, last) == ("digraph backward {", "}")
    assert second.startswith("    node [")
    for line in lines:
        assert _DOT_NODE.fullmatch(line) or _DOT_LINK.fullmatch(line), line


def test_names_values_and_gradients(gradcli: CommandLine) -> None:
    found = gradcli("e = (a + b) * d", "a=2", "b=3", "d=4", "--format", "mermaid")
    assert '    n1["e = (a + b) * d<br/>MulBackward0<br/>value 20.<br/>grad 1."]' in found.out
    assert '    n2["a + b<br/>AddBackward0<br/>value 5.<br/>grad 4."]' in found.out
    assert '    n5(["d<br/>AccumulateGrad<br/>value 4.<br/>grad 5."])' in found.out
    assert '    n1 -->|"[0] 4."| n2' in found.out
