"""`derive` has a formula for the gradient of every differentiable entry of the catalogue.

Each row of `tests/op_table/` that brings an entry not met before is derived: `derive` itself runs
the formulas and compares them with the engine's gradients. The rows are taken twice, the second
time with the gradient's gradient, where the entries that only gradients record are differentiated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Source
from gradcli.language.parser.parser import parse_program
from gradcli.ops.definition.op import Op, registry
from gradcli.questions.derive.program import Derivation, derive
from gradcli.questions.derive.tell import NumpyWriter, Unspoken, numpy_text
from gradcli.recorded.result import Gradient, Result
from gradcli.recorded.symbols.reading import derivative_formulas
from gradcli.running.source import run_program
from gradcli.session import Session
from tests.op_table.check import graph_of
from tests.op_table.rows import Row
from tests.test_gradients import ROWS, _fixed

WITHOUT_NUMPY = """
F.adaptive_max_pool2d F.adaptive_max_pool3d F.binary_cross_entropy F.fractional_max_pool2d
F.fractional_max_pool3d F.gelu F.nll_loss F.pad F.soft_margin_loss _grouped_mm aminmax
as_strided_scatter
cholesky_inverse cholesky_solve digamma dist erfinv frexp index_reduce lu_unpack masked_scatter mode
nanmedian pdist polygamma std_mean torch.linalg.eig torch.linalg.lu torch.linalg.lu_factor
torch.linalg.lu_solve torch.linalg.matrix_exp torch.special.erfcx
torch.special.i0e torch.special.i1 torch.special.i1e torch.special.log_ndtr torch.special.ndtri
torch.special.zeta triangular_solve unfold view_as_complex_copy
"""
"""Functions of formulas that NumPy has nothing for."""

NOT_IN_THE_TABLE = {
    # Their module and distributions are rows of tests/test_derive.py.
    "mkldnn_rnn_layer", "_standard_gamma", "_sample_dirichlet",
    "_to_copy.device", "_pack_padded_sequence", "rrelu_with_noise.RreluWithNoiseBackward0",
    "rrelu_with_noise_.RreluWithNoiseBackward1", "rrelu_with_noise_backward",
    "rrelu_with_noise_backward.RreluWithNoiseBackwardBackward0",
}  # fmt: skip
"""Entries that no row of the table can bring; see `test_every_op_has_a_row`."""


ONCE = {"_scaled_dot_product_flash_attention_for_cpu_backward"}
"""Entries whose joint rule says that there is no second derivative."""


def _tensors(value: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors in a value that require grad, each with what leads to it."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield path, value
    elif isinstance(value, (tuple, list)):
        for number, each in enumerate(value):
            yield from _tensors(each, f"{path}[{number}]")


class Derived:
    """A row run as a program that ends in one number, ready to be derived.

    Args:
        second: whether that number is of the row's gradient, in the seed too.

    Attributes:
        ops: the entries that are differentiated.
    """

    def __init__(self, row: Row, second: bool) -> None:
        self.session = Session()
        self.recorder = TraceRecorder(keeps=True, arrays=True)
        self.session.state.recorder = self.recorder
        self.session.state.lazy_from = 1 << 62
        self.random = row.generator()
        self.leaves: dict[str, Tensor] = {}
        self.second = second
        values = row.values()
        with self.session.running():
            for name, operand in row.operands.items():
                if operand.differentiable:
                    self.leaves[name] = Tensor(np.array(values[name])[()], True)
                    self.session.bind(name, self.leaves[name])
                else:
                    self.session.bind(name, Tensor(_fixed(values[name], np.float64)))
        last = parse_program(Source("row", row.expression))[-1].span
        head, tail = row.expression[: last.start], row.expression[last.start : last.end]
        self._run(f"{head}\n_out = ({tail})\n")
        self._total("_out", "_loss")
        if second:
            names = "".join(f"{name}, " for name in self.leaves)
            settings = "create_graph=True, allow_unused=True"
            self._run(f"_grads = torch.autograd.grad(_loss, ({names}), {settings})\n")
            self._total("_grads", "_loss")
        self.output = self.session.values["_loss"]  # the number 0 where nothing is differentiable
        roots = [self.output] if isinstance(self.output, Tensor) else []
        self.ops = {node.op for node in graph_of(roots) if hasattr(node, "op")}

    def _run(self, text: str) -> None:
        for _ in self.session.run(text, "row"):
            pass

    def _total(self, name: str, total: str) -> None:
        """Name the sum of what a name holds, each element times a random number."""
        terms = ["0"]
        with self.session.running():
            for number, (path, tensor) in enumerate(_tensors(self.session.values[name])):
                seed, shape = f"seed{name}{number}", tensor.array.shape
                if not shape:
                    terms.append(f"{name}{path} * {number + 1}")
                    continue
                array = self.random.normal(size=shape).astype(tensor.array.dtype)
                self.session.bind(seed, Tensor(array, self.second))
                if self.second:
                    self.leaves[seed] = self.session.values[seed]
                terms.append(f"({name}{path} * {seed}).sum()")
        self._run(f"{total} = {' + '.join(terms)}\n")

    def derivation(self) -> Derivation:
        """The formulas, which `derive` compares with the engine's numbers."""
        with self.session.running():
            graph = self.session.graph(self.output)
            gradients = [Gradient(n, leaf, graph, "") for n, leaf in self.leaves.items()]
            result = Result(None, self.output, None, gradients, graph)
            return derive(result, self.recorder, run_program)


def _is_differentiable(op: Op) -> bool:
    """Whether an entry's rules give a gradient: some say that there is none."""
    has_rules = bool(op.node_name and (op.rules or op.joint))
    return has_rules and any(each is not None for each in derivative_formulas(op).values())


pytestmark = pytest.mark.sweep  # the rows of tests/test_derive.py are the sample


@pytest.fixture(scope="module")
def covered() -> tuple[set[Op], set[str]]:
    """The entries whose gradients were derived, and the functions among their formulas that NumPy
    has nothing for.
    """
    found: set[Op] = set()
    unspoken: set[str] = set()
    bringing: list[Row] = []
    for row in ROWS:
        if row.order and _derive(row, False, found, unspoken):
            bringing.append(row)
    rest = [row for row in ROWS if row not in bringing]
    left = {registry[key] for key in _missing(found)}
    for row in (*bringing, *rest):
        if row.order == 2 and not left <= found:
            _derive(row, True, found, unspoken)
    return found, unspoken


def _derive(row: Row, second: bool, found: set[Op], unspoken: set[str]) -> bool:
    """Derive a row where it brings entries that were not met, and add them."""
    derived = Derived(row, second)
    if derived.ops <= found:
        return False
    unspoken |= _run_in_numpy(derived.derivation(), row.expression)
    found |= derived.ops
    return True


def _run_in_numpy(found: Derivation, program: str) -> set[str]:
    """Run the file that `derive --to numpy` writes, which checks its numbers; or the functions that
    keep it from being written.
    """
    unspoken = set()
    for line in found.lines:
        try:
            NumpyWriter().text(line.formula)
        except Unspoken as function:
            unspoken.add(str(function))
    if not unspoken:
        exec(numpy_text(found, program), {"__name__": "__main__"})
    return unspoken


def _missing(found: set[Op]) -> list[str]:
    """The differentiable entries that were not derived, and should be."""
    left = [key for key, op in registry.items() if op not in found]
    excused = {*NOT_IN_THE_TABLE, *ONCE}
    return [key for key in left if key not in excused and _is_differentiable(registry[key])]


def test_every_differentiable_entry_has_a_formula(covered: tuple[set[Op], set[str]]) -> None:
    assert _missing(covered[0]) == []


def test_functions_of_formulas_say_what_numpy_has(covered: tuple[set[Op], set[str]]) -> None:
    """`numpy=` of the entry, `in_numpy` of the function: with it the name leaves the list."""
    assert sorted(covered[1]) == WITHOUT_NUMPY.split()
