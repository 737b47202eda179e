"""Numbers that are written into tensors, against what PyTorch 2.13 stored."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import Any

import pytest

from gradcli.arrays.dtypes import DTYPES, of_array
from gradcli.arrays.scalars import as_zero_dim, checked_cast
from gradcli.errors import GradcliError

STORED: list[tuple[str, list[tuple[Any, Any]]]] = [
    ("bool", [(2, True), (nan, True), (1j, True), (0j, False)]),
    ("uint8", [(255, 255), (-1, 255), (-255, 1)]),
    ("int8", [(127, 127), (-128, -128), (2.9, 2), (-2.9, -2), (2.5 + 0j, 2)]),
    ("int64", [(2**63 - 1, 2**63 - 1), (-(2.0**63), -(2**63))]),
    ("float16", [(65504, 65504.0), (inf, inf), (1 + 0j, 1.0)]),
    ("bfloat16", [(2**64 - 1, 2.0**64)]),
    ("float32", [(3.4028234663852886e38, 3.4028234663852886e38), (-inf, -inf)]),
    ("complex64", [(1, 1), (complex(0, inf), complex(0, inf))]),
]

REFUSED: list[tuple[str, list[Any]]] = [
    ("uint8", [256, -256, -0.5, -1.0, 255.5, 300 + 0j]),
    ("int8", [128, 127.5, -128.5, nan, inf, 1j]),
    ("int32", [2**31, 2.0**31, -(2**31) - 1]),
    ("int64", [2**63, 2.0**64, -inf]),
    ("float16", [65519.0, 65520, -1e300, 1j, complex(0, nan)]),
    ("bfloat16", [3.39e38]),
    ("float32", [3.4028235e38, 1e39]),
    ("complex64", [1e39, complex(0, 1e39)]),
]


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [(name, number, expected) for name, rows in STORED for number, expected in rows],
)
def test_stored(name: str, number: Any, expected: Any) -> None:
    for convert in (checked_cast, as_zero_dim):
        result = convert(number, DTYPES[name])
        assert of_array(result) is DTYPES[name]
        assert result == expected


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, numbers in REFUSED for number in numbers]
)
def test_refused(name: str, number: Any) -> None:
    with pytest.raises(GradcliError) as caught:
        checked_cast(number, DTYPES[name])
    assert (caught.value.code, caught.value.raises) == ("E204", "RuntimeError")


def test_nan_is_stored_as_nan() -> None:
    assert isnan(checked_cast(nan, DTYPES["float16"]))


@pytest.mark.parametrize("number", [65520, -1e300, 2**63])
def test_small_floats_overflow_in_a_zero_dim_tensor(number: Any) -> None:
    assert as_zero_dim(number, DTYPES["float16"]) == (inf if number > 0 else -inf)
    with pytest.raises(GradcliError):
        as_zero_dim(1j, DTYPES["float16"])


def test_integers_beyond_64_bits_fit_no_dtype() -> None:
    for name in ("bool", "int8", "float64"):
        with pytest.raises(GradcliError) as caught:
            checked_cast(2**64, DTYPES[name])
        assert caught.value.raises == "OverflowError"
