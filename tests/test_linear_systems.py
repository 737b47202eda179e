"""Linear systems in blocks and in one, in C and in Python."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from gradcli.arrays.native import dispatch
from gradcli.ops.linalg import linear_systems
from gradcli.ops.linalg.linear_systems import lu_arrays, lu_solved, row_order, solved, substituted

SHAPES = [(6, 6), (2, 40, 40), (3, 2, 20, 20), (25, 40), (40, 25), (0, 20, 20)]


@pytest.fixture(params=["in C", "in Python"], autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(dispatch, "_kernels", defaultdict(lambda: None))
    elif dispatch.core() is None:
        pytest.skip("the kernels in C are not built")


def made(*shape: int, dtype: Any = np.float64) -> Any:
    generator = np.random.default_rng(7)
    values = generator.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors(shape: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """L @ U is the matrix with its rows in order, in blocks of any size."""
    matrices = made(*shape, dtype=dtype)
    tolerance: Any = 100 * np.finfo(dtype).eps
    rows, count = shape[-2], min(shape[-2:])
    for block in (1, 100):
        monkeypatch.setattr(linear_systems, "_BLOCK", block)
        lu, pivots, info = lu_arrays(matrices)
        lower: Any = np.tril(lu[..., :count], -1) + np.eye(rows, count, dtype=dtype)
        order = row_order(pivots, rows)[..., None]
        due = np.take_along_axis(matrices, np.broadcast_to(order, matrices.shape), -2)
        np.testing.assert_allclose(lower @ np.triu(lu[..., :count, :]), due, atol=tolerance)
        assert (lu.dtype, pivots.dtype, info.dtype) == (np.dtype(dtype), np.int32, np.int32)
        assert info.shape == shape[:-2]
        assert not info.any()


@pytest.mark.parametrize("dtype", ["f", "D"])
@pytest.mark.parametrize("columns", [0, 1, 5])
@pytest.mark.parametrize(("upper", "unit"), [(False, False), (False, True), (True, False)])
def test_triangles(
    columns: int, upper: bool, unit: bool, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    triangle = made(2, 20, 20, dtype=dtype) / 20 + np.eye(20, dtype=dtype)
    right = made(3, 1, 20, columns, dtype=dtype)
    read: Any = np.triu(triangle) if upper else np.tril(triangle)
    if unit:
        read = np.tril(triangle, -1) + np.eye(20, dtype=dtype)
    for block in (1, 100):
        monkeypatch.setattr(linear_systems, "_BLOCK", block)
        found = substituted(triangle, right, upper, unit)
        assert found.shape == (3, 2, 20, columns)
        due, tolerance = np.broadcast_to(right, found.shape), float(200 * np.finfo(dtype).eps)
        np.testing.assert_allclose(read @ found, due, atol=tolerance)


@pytest.mark.parametrize("size", [3, 30])
def test_solutions(size: int) -> None:
    matrices, right = made(4, size, size), made(size, 2)
    found, info = solved(matrices, right)
    np.testing.assert_allclose(found, np.linalg.solve(matrices, right[None]), rtol=1e-9)
    assert info.tolist() == [0, 0, 0, 0]
    lu, pivots, _ = lu_arrays(matrices)
    adjoint = lu_solved(lu, pivots, right, adjoint=True)
    np.testing.assert_allclose(matrices.swapaxes(-2, -1) @ adjoint, right[None] + 0 * adjoint)


def test_swaps_of_few_and_of_many() -> None:
    swaps = np.random.default_rng(5).integers(1, 6, (50, 5))
    swaps = np.maximum(swaps, np.arange(1, 6))
    many = row_order(swaps, 5)
    assert [row_order(each, 5).tolist() for each in swaps] == many.tolist()
    assert row_order(swaps[:0], 5).shape == (0, 5)


def test_singular_matrices_are_told_by_elimination() -> None:
    """LAPACK's last pivot may be rounded to 0 or not, as its kernels multiply and add."""
    generator = np.random.default_rng(3)
    singular = 0
    for number in range(300):
        size = int(generator.integers(2, 7))
        rank = int(generator.integers(1, size + 1))
        factors = generator.integers(-3, 4, (size, rank)), generator.integers(-3, 4, (rank, size))
        matrix = (factors[0] @ factors[1]).astype("fd"[number % 2]) / (1 + 6 * (number % 3 == 0))
        with np.errstate(all="ignore"):
            _, info = solved(matrix, np.eye(size, dtype=matrix.dtype))
        assert info == lu_arrays(matrix)[2]
        singular += info > 0
    assert 50 < singular < 250
