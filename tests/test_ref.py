"""Names of what stands in a family above."""

from __future__ import annotations

import re

import pytest

import gradcli.ops.load  # noqa: F401
from gradcli.ops.codegen.node_class import on_arrays
from gradcli.ops.definition.op import registry
from gradcli.ops.definition.ref import Ref, ref
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape import rearranging
from tests.house import files, module_of

REFS = [
    (module_of(path), named)
    for path in files()
    for named in re.findall(r'= ?ref\("([\w.]+)"\)', path.read_text(encoding="utf-8"))
]
"""The module and the path of each `ref(".path")` of the package."""


@pytest.mark.parametrize(("module", "path"), REFS, ids=[" ".join(each) for each in REFS])
def test_the_family_has_what_is_named(module: str, path: str) -> None:
    assert callable(Ref(path).resolved()), module


def test_a_rule_on_arrays_calls_what_is_named() -> None:
    assert type(rearranging.sum_dims) is Ref
    rule = registry["repeat"].rules["self"]
    given = on_arrays(rule).__globals__["sum_dims"]
    assert given.__code__ is sum_dims.forward.__code__


def test_a_name_that_no_family_has_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        ref("reduction.sum.no_such_name")()
