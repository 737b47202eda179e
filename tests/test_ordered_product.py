"""Small products of float32 matrices to the last bit, as PyTorch 2.13 adds them up on a CPU. Each
number is the checksum of a product's bytes that PyTorch gave.
"""

from __future__ import annotations

import zlib
from itertools import product
from typing import Any

import numpy as np
import pytest

from gradcli.kernels.linalg.small_matmul import ordered_product

# The sizes (n, k, m), and a checksum for either matrix lying by rows or by columns: by rows both,
# the left one by rows, the right one by rows, and by columns both.
ROWS = [
    ((3, 18, 16), [3649004206, 315543697, 3649004206, 3649004206]),
    ((8, 18, 36), [783676775, 783676775, 783676775, 783676775]),
    ((6, 21, 14), [2476931941, 3631599750, 2476931941, 255748050]),
    ((3, 36, 18), [1289398618, 3745203896, 1289398618, 2607317460]),
    ((4, 250, 12), [2038568025, 2038568025, 2038568025, 2038568025]),
    ((5, 401, 13), [2332172566, 1764780789, 2332172566, 2332172566]),
    ((1, 21, 7), [2982564376, 3458285590, 2982564376, 3458285590]),
    ((7, 21, 1), [298771468, 298771468, 4271866619, 4271866619]),
    ((9, 22, 7), [1523178693, 4088508557, 1523178693, 1130150942]),
    ((1, 1, 1), [3685112572, 3685112572, 3685112572, 3685112572]),
    ((6, 12, 20), [1221357613, 2421321414, 1221357613, 1221357613]),
    ((5, 3, 11), [1777413679, 1777413679, 1777413679, 1777413679]),
]


def made(rows: int, columns: int, step: int, by_columns: bool) -> Any:
    numbers = np.arange(rows * columns) * step % 1009
    matrix = (numbers.astype(np.float32) / np.float32(1009) - np.float32(0.5)).reshape(rows, -1)
    return np.asfortranarray(matrix) if by_columns else matrix


@pytest.mark.parametrize(("sizes", "recorded"), ROWS, ids=str)
def test_last_bits(sizes: tuple[int, int, int], recorded: list[int]) -> None:
    rows, length, columns = sizes
    found = []
    for by_columns in product([False, True], repeat=2):
        left = made(rows, length, 7919, by_columns[0])
        right = made(length, columns, 6007, by_columns[1])
        found.append(zlib.crc32(ordered_product(left, right, *by_columns).tobytes()))
    assert found == recorded


def test_a_product_on_top_of_another_array() -> None:
    left, right = made(6, 21, 7919, False), made(21, 14, 6007, False)
    start = made(6, 14, 5003, False)
    exact = left.astype(np.float64) @ right + start
    for left_columns, right_columns in product([False, True], repeat=2):
        result = ordered_product(left, right, left_columns, right_columns, start)
        np.testing.assert_allclose(result, exact, atol=1e-5)
