"""The kernels in C beside the Python kernels, on arrays of many shapes, strides and special values.

A row of `ROWS` is a function of an array that reaches a kernel, and how far the two may differ. All
of it is skipped where the kernels are not built.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from gradcli.arrays.random.box_muller import fill_blocks
from gradcli.arrays.random.generator import Generator
from gradcli.native import dispatch
from gradcli.ops.reduction import cumulative, sorting

CORE = dispatch._core()
LEVELS = ("baseline", "avx2", "avx512")

built = pytest.mark.skipif(CORE is None, reason="the kernels in C are not built")


class Row(NamedTuple):
    """What reaches a kernel.

    Attributes:
        compute: an array, or a tuple of them, from an array of at least one dimension.
        ulps: units in the last place that the results may differ by; 0 for the same bits.
    """

    compute: Callable[[Any], Any]
    ulps: int = 0


def _drawn(array: Any) -> Any:
    """Numbers from a generator that stands somewhere inside its words, and where it stands then."""
    generator = Generator()
    generator.manual_seed(array.size)
    generator.words(array.size % 700)
    return generator.uniform(1024 + 3 * array.size, array.dtype), generator.state_bytes()


def _normal(array: Any) -> Any:
    blocks = (np.abs(np.resize(array, (8, 16))) % 1).astype(np.float32)
    blocks[~(blocks < 1)] = 0.5
    fill_blocks(blocks, 0.25, 3.0)
    return blocks


ROWS = {
    "running_sum": Row(lambda x: cumulative._accumulated(np.add, x, x.ndim - 1, None)),
    "running_sum, first dimension": Row(lambda x: cumulative._accumulated(np.add, x, 0, None)),
    "running_sum, backwards": Row(lambda x: cumulative._sum_from_the_end(x, 0)),
    "sorted_rows": Row(lambda x: sorting._sort_array(x, x.ndim - 1, False, False)),
    "sorted_rows, falling": Row(lambda x: sorting._sort_array(x, 0, True, False)),
    "sorted_rows, stable": Row(lambda x: sorting._sort_array(x, 0, False, True)),
    "selected_rows": Row(lambda x: sorting._topk_array(x, min(2, len(x)), 0, True, True)),
    "selected_rows, many": Row(lambda x: sorting._topk_array(x, (1 + len(x)) // 2, 0, False, True)),
    "mersenne_uniform": Row(_drawn),
    "box_muller": Row(_normal),
}

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, 1e-38, 88.7, -104.0],
    np.float32,
)


def _arrays() -> Iterator[Any]:
    """Shapes, strides and values."""
    rng = np.random.default_rng(5)
    for shape in ((1,), (2,), (7,), (3, 5), (1, 40), (40, 1), (9, 17), (4, 19, 3), (130, 70)):
        plain = rng.standard_normal(shape).astype(np.float32)
        yield plain
        yield np.round(plain * 2)  # with ties
        yield rng.choice(SPECIAL, shape)
        yield plain.T
        yield plain[..., ::-1]
        yield np.repeat(plain, 2, axis=0)[::2]
    yield np.zeros((0, 3), np.float32)
    yield rng.standard_normal((6, 3001)).astype(np.float32)
    yield np.round(rng.standard_normal((300, 400)).astype(np.float32), 1)
    yield rng.standard_normal((5, 6))  # float64


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Runs a function without the kernels in C."""

    def run(function: Callable[[], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(dispatch, "_loaded", [None])
            return function()

    return run


def _check(found: Any, wanted: Any, ulps: int) -> None:
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            _check(one, other, ulps)
    elif isinstance(wanted, bytes) or not ulps:
        found, wanted = np.asarray(found), np.asarray(wanted)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        if wanted.dtype.kind == "f":
            here = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found)[here], np.signbit(wanted)[here])
    else:
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_array_max_ulp(found, wanted, ulps)


@built
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_as_in_python(row: Row, level: str, in_python: Callable[[Callable[[], Any]], Any]) -> None:
    if CORE.use(level) != level:
        pytest.skip(f"this processor has no {level}")
    try:
        with np.errstate(all="ignore"):
            for array in _arrays():
                before = array.copy()
                found = row.compute(array)
                np.testing.assert_array_equal(array, before)
                _check(found, in_python(lambda array=array: row.compute(array)), row.ulps)
    finally:
        CORE.use("")


@built
def test_every_kernel_has_a_row() -> None:
    names = {name for name in dir(CORE) if not name.startswith("_")} - {"use"}
    assert names == {name.partition(",")[0] for name in ROWS}


@built
def test_what_does_not_fit_is_refused() -> None:
    """Kinds, sizes, numbers of arguments, memory with gaps or that may not be written to."""
    x, out = np.zeros((4, 6), np.float32), np.zeros((4, 6), np.float32)
    locked = out.copy()
    locked.flags.writeable = False
    CORE.running_sum(x, out, 6, 1, 0, 1, 0)
    for arguments in (
        (x, out, 6, 1, 0, 1),
        (x, out, 7, 1, 0, 1, 0),
        (x, out, 0, 1, 0, 1, 0),
        (x, out, 6, 5, 0, 5, 0),
        (x, out, 6, 1, 0, 2, 0),
        (x, out[:3], 6, 1, 0, 1, 0),
        (x.astype(np.float64), out, 6, 1, 0, 1, 0),
        (x.astype(np.int32), out, 6, 1, 0, 1, 0),
        (x[:, ::2], out[:, ::2], 3, 1, 0, 1, 0),
        (x, locked, 6, 1, 0, 1, 0),
        (None, out, 6, 1, 0, 1, 0),
        (x, out, 6.5, 1, 0, 1, 0),
    ):
        with pytest.raises((ValueError, TypeError, BufferError)):
            CORE.running_sum(*arguments)


def test_turned_off() -> None:
    """The setting leaves the Python kernels, which `gradcli info` says."""
    program = "from gradcli.native.dispatch import *; print(kernel('running_sum'), description())"
    setting = {**os.environ, "GRADCLI_NATIVE": "0"}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=setting
    )
    assert found.stdout == "None turned off by GRADCLI_NATIVE=0\n"
