"""What is known of an op stands on its entry or its function: nothing is missing or wrong."""

from __future__ import annotations

import ast
import re
from inspect import getsource, unwrap
from operator import attrgetter
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.creation.random import generator_of
from gradcli.ops.definition.doc import CHECKS, EFFECTS, LOOPS, RANDOM, READS, WRITES
from gradcli.ops.definition.op import Op, registry
from gradcli.ops.lookup import (
    PublicName,
    doc_of,
    effects_of,
    named_by_numpy,
    numpy_of,
    own_entries,
)
from gradcli.session import Session
from gradcli.show.help.ops import example_of, op_names, signature, takes_of
from gradcli.trace.ir import Effect
from tests.declared import mismatches
from tests.house import PACKAGE, parsed
from tests.rows import each_row

bring_all()
FOUND = list(op_names())
_NOT_CALLED = {
    "torch.optim.Optimizer",
    "torch.optim.lr_scheduler.LRScheduler",
    "Tensor.numpy",
    "Tensor.cuda",
}


def _named(*names: str) -> list[Any]:
    wanted = set(names)
    return [each for each in FOUND if each.full_name in wanted]


# --- rules --------------------------------------------------------------------------------------


@each_row("entry", registry.values())
def test_rules_and_inputs_of_an_entry_match(entry: Op) -> None:
    assert mismatches(entry) == []


# --- no lists of ops elsewhere ------------------------------------------------------------------

LISTS = {
    "questions/blame/nonfinite.py": "what may leave a number out, through which blame looks",
    "questions/blame/rewrites.py": "which fix a pattern of the program has",
    "questions/derive/algebra/matrices.py": "functions that make one number of all elements",
    "questions/derive/algebra/quotients.py": "odd functions, which hand on a sign",
    "recorded/written_instructions.py": "what the language writes in another form",
    "questions/explain/kinks.py": "a function for each, which looks at the numbers of a run",
    "recorded/symbols/tree.py": "names that Python reads otherwise, and those of conditions",
    "library/torch/func/batching/rules.py": "what PyTorch has no batching rule for, recorded",
    "library/torch/func/forward.py": "what PyTorch has no forward mode for, recorded from it",
    "questions/derive/latex.py": "LaTeX's own commands",
    "show/page/page.py": "what the page runs on the numbers of elements",
    "questions/why/zeros.py": "views, through which the line that set a value is looked for",
}
"""The files that list six ops or more by name, and why that is no fact of their entries."""


_LITERALS = re.compile(r"""["']([^"'\s]+)["']""")


def _lists_of_ops(path: Path, names: set[str]) -> bool:
    """Whether a file has a collection that holds six names of ops or more, and little else."""
    text = path.read_text("utf-8")
    if sum(word in names for word in _LITERALS.findall(text)) < 6:  # nothing to be parsed for
        return False
    for node in ast.walk(parsed(path)):
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        texts = [part.value for part in parts if isinstance(part, ast.Constant)]
        known = [text for text in texts if text in names]
        if len(known) >= 6 and len(known) >= 0.8 * len(texts):
            return True
    return False


def test_facts_of_ops_stand_on_their_entries() -> None:
    names = {op.name for op in registry.values()} | {op.node_name for op in registry.values()}
    files = [
        path
        for room in (
            "cli",
            "questions",
            "running",
            "repl",
            "show",
            "recorded",
            "loops",
            "library/torch/func",
            "language/hints",
        )
        for path in (PACKAGE / room).rglob("*.py")
    ]
    found = {str(path.relative_to(PACKAGE)) for path in files if _lists_of_ops(path, names)}
    assert found == set(LISTS)


# --- documentation ------------------------------------------------------------------------------


def test_every_function_says_what_it_does() -> None:
    missing = [each.full_name for each in FOUND if not doc_of(each).summary]
    assert not missing


def test_summaries_and_conventions_are_sentences() -> None:
    for each in FOUND:
        doc = doc_of(each)
        assert doc.summary[-1] in ".:", each.full_name
        assert not doc.conventions or doc.conventions.endswith("."), each.full_name


def test_every_example_calls_what_it_is_an_example_of() -> None:
    for each in FOUND:
        if each.full_name not in _NOT_CALLED:
            assert each.name.removesuffix("_") in example_of(each), each.full_name


def test_a_fact_stands_in_one_place() -> None:
    """An entry that programs reach through a composed function alone leaves the words to it."""
    for each in FOUND:
        said = [op for op in each.entries if op.name == each.name and op.doc.summary]
        if each.function.__doc__ and any(not op.bindings for op in said):
            pytest.fail(f"{each.full_name} is described by its entry and by its docstring")


# --- operands -----------------------------------------------------------------------------------


def test_a_declared_rank_is_checked_in_one_place() -> None:
    """No body raises an error for a rank that `takes` says."""
    twice = []
    for each in FOUND:
        takes, own = takes_of(each), [op.forward for op in own_entries(each) if op.takes]
        for body in [each.function, *own] if takes else []:
            function = unwrap(body)
            if function.__name__ == "<lambda>" or "<" in function.__code__.co_filename:
                continue  # one that is generated
            for node in ast.walk(ast.parse(dedent(getsource(function)))):
                if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
                    test = ast.unparse(node.test)
                    twice += [
                        f"{each.full_name}: {test}"
                        for name in takes
                        if re.search(rf"\b{name}(\.array)?\.ndim", test)
                    ]
    assert twice == []


def test_a_declared_rank_is_checked() -> None:
    for each in FOUND:
        takes = takes_of(each) if each.namespace != "Tensor" else {}
        needed = re.findall(r"[(,] ?(\w+)(?=[,)])", signature(each))
        for argument, spec in takes.items():
            ranks = {"input": 2} | {name: every.least for name, every in takes.items()}
            ranks[argument] = spec.least - 1 if spec.least else spec.most + 1
            values = {
                name: Tensor(np.ones((2,) * ranks[name], np.float32)) if name in ranks else 2
                for name in needed
            }
            with pytest.raises(GradcliError) as raised:
                each.value(**values)
            assert raised.value.code in ("E301", "E302"), each.full_name


# --- effects ------------------------------------------------------------------------------------


def test_effects_and_loops_are_known_words() -> None:
    for key, op in registry.items():
        assert op.effects <= set(EFFECTS), key
        assert op.loop in LOOPS, key
        assert op.loop == "vector" or op.pointwise, key
    for each in FOUND:
        assert effects_of(each.value) <= set(EFFECTS), each.full_name


_FUNCTIONS = [
    each
    for each in FOUND
    if each.full_name not in _NOT_CALLED
    and each.namespace
    not in ("torch.nn", "torch.optim", "torch.optim.lr_scheduler", "torch.autograd")
    and not isinstance(each.value, type)
]


def _state_of_generator(session: Session) -> Any:
    with session.running():
        return generator_of(None).snapshot()


@each_row("public", _FUNCTIONS, lambda public: public.full_name)
def test_who_draws_says_so(public: PublicName) -> None:
    if public.name in ("manual_seed", "seed") or public.namespace == "torch.nn.utils":
        return  # they set the generator; or make a layer of random weights first
    session = Session()
    before = _state_of_generator(session)
    for _ in session.run(example_of(public), "example"):
        pass
    if _state_of_generator(session) != before:
        assert RANDOM in effects_of(public.value)


def test_who_writes_says_so() -> None:
    for name, form in catalogue.methods.items():
        if name.endswith("_") and not name.startswith("_") and name != "requires_grad_":
            assert WRITES in effects_of(form), name


PURE = [
    "torch.exp", "torch.add", "torch.matmul", "F.relu", "F.conv2d", "torch.softmax", "torch.sum",
    "torch.std", "F.mse_loss", "Tensor.view", "torch.cat", "torch.where", "F.gelu", "torch.einsum",
    "F.layer_norm", "torch.cumsum", "torch.sort", "torch.qr", "torch.fft.fft",
]  # fmt: skip


@pytest.mark.parametrize("public", _named(*PURE), ids=lambda public: public.full_name)
def test_who_only_computes_is_pure(public: PublicName) -> None:
    assert effects_of(public.value) == frozenset()


CHECKED = [
    ("torch.gather", CHECKS), ("torch.linalg.inv", CHECKS), ("F.embedding", CHECKS),
    ("F.cross_entropy", CHECKS), ("Tensor.item", READS), ("torch.nonzero", READS),
    ("torch.masked_select", READS), ("F.batch_norm", WRITES), ("F.dropout", RANDOM),
]  # fmt: skip


@pytest.mark.parametrize(("name", "effect"), CHECKED)
def test_effects(name: str, effect: str) -> None:
    (public,) = _named(name)
    assert effect in effects_of(public.value)


# --- hazards ------------------------------------------------------------------------------------

_WITH_HAZARD = [(key, op) for key, op in registry.items() if op.hazard.values or op.hazard.slopes]


@pytest.mark.parametrize(("key", "op"), _WITH_HAZARD, ids=[key for key, _ in _WITH_HAZARD])
def test_hazards_ask_for_operands(key: str, op: Op) -> None:
    tests = [row[0] for row in op.hazard.values] + [row[0] for row in op.hazard.slopes]
    for code in (test.__code__ for test in tests):
        assert set(code.co_varnames[: code.co_argcount]) <= set(op.parameters), key


_OF_ONE = [(key, op) for key, op in _WITH_HAZARD if len(op.tensors) == 1 == len(op.parameters)]
_POINTS = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(("key", "op"), _OF_ONE, ids=[key for key, _ in _OF_ONE])
def test_hazards_are_where_results_are_not_finite(key: str, op: Op) -> None:
    with np.errstate(all="ignore"):
        for point in _POINTS:
            value = op.forward(np.array([point]))
            told = op.hazard.of_value({"self": point}) is not None
            assert told == (not np.isfinite(value).all()), (key, point)


# --- NumPy --------------------------------------------------------------------------------------


def test_what_numpy_has_is_there() -> None:
    for key, op in registry.items():
        if op.numpy and not op.numpy.startswith(("def ", ".")) and "{" not in op.numpy:
            assert callable(attrgetter(op.numpy.partition("(")[0])(np)), key
        if op.numpy.startswith("def "):
            compile(op.numpy, key, "exec")


NAMES = [
    ("exp", "exp"), ("acos", "arccos"), ("sum", ".sum(axis, keepdims)"), ("clamp_min", "maximum"),
    ("torch.linalg.inv", "linalg.inv"), ("square", "square"), ("gelu", ""), ("no_such_name", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spelled"), NAMES)
def test_spelling_in_numpy(name: str, spelled: str) -> None:
    assert numpy_of(name) == spelled


@pytest.mark.parametrize(
    ("ufunc", "name"),
    [(np.rint, "round"), (np.minimum, "minimum"), (np.absolute, "abs"), (np.arctan2, "atan2")],
)
def test_names_by_numpy(ufunc: Any, name: str) -> None:
    assert named_by_numpy(ufunc) == name


def test_effects_are_those_of_the_trace() -> None:
    """Entries name effects by strings, as the trace's own class would cost start-up time."""
    assert set(EFFECTS) <= {effect.name for effect in Effect}
