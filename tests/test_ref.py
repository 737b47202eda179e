"""Names of what stands in a family above, and the stubs that declare them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradcli.library.namespace  # noqa: F401
from gradcli.ops.binding import catalogue, functions
from gradcli.ops.codegen.node_class import on_arrays
from gradcli.ops.definition import refs
from gradcli.ops.definition.op import registry
from gradcli.ops.definition.refs import Ref
from gradcli.ops.reduction.sum import sum_dims
from tests.house import files, parsed

REFS = {name: ref for name, ref in vars(refs).items() if isinstance(ref, Ref)}


def _stub(module: object) -> ast.Module:
    file = Path(str(vars(module)["__file__"])).with_suffix(".pyi")
    return ast.parse(file.read_text(encoding="utf-8"))


def _declared() -> Iterator[str]:
    """`NAMESPACE.NAME` of each name that the stub of functions declares."""
    body = _stub(functions).body
    of_class = {
        each.annotation.id: each.target.id
        for each in body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.annotation, ast.Name)
        and isinstance(each.target, ast.Name)
    }
    for each in body:
        if isinstance(each, ast.ClassDef):
            for line in each.body:
                assert isinstance(line, ast.AnnAssign)
                assert isinstance(line.target, ast.Name)
                yield f"{of_class[each.name]}.{line.target.id}"


def _used(stub: str) -> set[str]:
    """What the package takes from a module: `NAME`, and `NAME.ATTRIBUTE` of the names."""
    used: set[str] = set()
    name = stub.rpartition(".")[2]
    for path in files():
        if name not in path.read_text("utf-8"):
            continue
        nodes = list(ast.walk(parsed(path)))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        given = {
            alias.asname or alias.name: alias.name
            for node in imports
            if node.module == stub
            for alias in node.names
        }
        whole = any(
            f"{node.module}.{alias.name}" == stub for node in imports for alias in node.names
        )
        if not given and not whole:
            continue
        used.update(given.values())
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in given:
                    used.add(f"{given[node.value.id]}.{node.attr}")
                elif whole and node.value.id == name:
                    used.add(node.attr)
    return used


def test_the_stub_declares_the_functions_that_are_used() -> None:
    used = {name for name in _used(functions.__name__) if "." in name}
    assert sorted(_declared()) == sorted(used)


@pytest.mark.parametrize("name", list(_declared()))
def test_a_declared_function_is_there(name: str) -> None:
    namespace, _, attribute = name.partition(".")
    value = getattr(getattr(functions, namespace), attribute)
    assert callable(value) or name == "torch.__version__"


def test_functions_are_those_of_the_tables() -> None:
    """An entry is replaced in its tables at its first call; none in that of operators, which
    `functions.operators` keeps.
    """
    table = catalogue.methods
    assert functions.methods.unsqueeze is table["unsqueeze"]
    replaced = {id(table) for entry in registry.values() for table, _ in entry.bindings}
    assert id(table) in replaced
    assert id(catalogue.operators) not in replaced


def test_the_stub_imports_the_names_that_are_there() -> None:
    imported = {
        f"{node.module}.{alias.asname}"
        for node in _stub(refs).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
    assert imported == {f"gradcli.ops.{ref.family}.{name}" for name, ref in REFS.items()}
    used = {name for name in _used(refs.__name__) if "." not in name}
    assert {*REFS} == used - {Ref.__name__}


@pytest.mark.parametrize("name", REFS)
def test_the_family_has_what_is_named(name: str) -> None:
    assert callable(REFS[name].resolved())


def test_a_rule_on_arrays_calls_what_is_named() -> None:
    rule = registry["repeat"].rules["self"]
    assert type(rule.__globals__["sum_dims"]) is Ref
    given = on_arrays(rule).__globals__["sum_dims"]
    assert given.__code__ is sum_dims.forward.__code__


def test_a_name_that_no_family_has_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        Ref("reduction.sum", "no_such_name")()
