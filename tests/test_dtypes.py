"""Dtypes, their promotion and conversion, against what PyTorch 2.13 answered."""

from __future__ import annotations

import itertools
import subprocess
import sys
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DTYPES, DType, cast, of_array, promote_types, result_dtype
from gradcli.arrays.scalars import finfo, iinfo
from gradcli.errors import GradcliError
from gradcli.state import State
from tests.rows import each_row

SHORT = {
    "b8": "bool",
    "u8": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}

# Both operands have dimensions, or neither has.
PEERS = """
         b8    u8    i8   i16   i32   i64   f16  bf16   f32   f64   c64  c128
b8       b8    u8    i8   i16   i32   i64   f16  bf16   f32   f64   c64  c128
u8       u8    u8   i16   i16   i32   i64   f16  bf16   f32   f64   c64  c128
i8       i8   i16    i8   i16   i32   i64   f16  bf16   f32   f64   c64  c128
i16     i16   i16   i16   i16   i32   i64   f16  bf16   f32   f64   c64  c128
i32     i32   i32   i32   i32   i32   i64   f16  bf16   f32   f64   c64  c128
i64     i64   i64   i64   i64   i64   i64   f16  bf16   f32   f64   c64  c128
f16     f16   f16   f16   f16   f16   f16   f16   f32   f32   f64   c64  c128
bf16   bf16  bf16  bf16  bf16  bf16  bf16   f32  bf16   f32   f64   c64  c128
f32     f32   f32   f32   f32   f32   f32   f32   f32   f32   f64   c64  c128
f64     f64   f64   f64   f64   f64   f64   f64   f64   f64   f64  c128  c128
c64     c64   c64   c64   c64   c64   c64   c64   c64   c64  c128   c64  c128
c128   c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128
"""

# A row's operand has dimensions, a column's is 0-dim. c32 is outside the language.
ZERO_DIM = """
         b8    u8    i8   i16   i32   i64   f16  bf16   f32   f64   c64  c128
b8       b8    u8    i8   i16   i32   i64   f16  bf16   f32   f64   c64  c128
u8       u8    u8    u8    u8    u8    u8   f16  bf16   f32   f64   c64  c128
i8       i8    i8    i8    i8    i8    i8   f16  bf16   f32   f64   c64  c128
i16     i16   i16   i16   i16   i16   i16   f16  bf16   f32   f64   c64  c128
i32     i32   i32   i32   i32   i32   i32   f16  bf16   f32   f64   c64  c128
i64     i64   i64   i64   i64   i64   i64   f16  bf16   f32   f64   c64  c128
f16     f16   f16   f16   f16   f16   f16   f16   f16   f16   f16   c32   c32
bf16   bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16  bf16   c64   c64
f32     f32   f32   f32   f32   f32   f32   f32   f32   f32   f32   c64   c64
f64     f64   f64   f64   f64   f64   f64   f64   f64   f64   f64  c128  c128
c64     c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64   c64
c128   c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128  c128
"""

# A row's operand is a tensor, with dimensions or without; a column's is a Python number.
NUMBERS = """
       True     2   1.5    1j
b8       b8   i64   f32   c64
u8       u8    u8   f32   c64
i8       i8    i8   f32   c64
i16     i16   i16   f32   c64
i32     i32   i32   f32   c64
i64     i64   i64   f32   c64
f16     f16   f16   f16   c32
bf16   bf16  bf16  bf16   c64
f32     f32   f32   f32   c64
f64     f64   f64   f64  c128
c64     c64   c64   c64   c64
c128   c128  c128  c128  c128
"""

PYTHON_NUMBERS = {"True": True, "2": 2, "1.5": 1.5, "1j": 1j}


def _cells(table: str) -> list[tuple[str, str, str]]:
    """The rows, columns and entries of a table."""
    header, *rows = [line.split() for line in table.strip().splitlines()]
    return [
        (row, column, found)
        for row, *entries in rows
        for column, found in zip(header, entries, strict=True)
    ]


def _dtype(short: str) -> DType:
    return DTYPES[SHORT[short]]


def _dimensioned(short: str) -> Any:
    return np.ones(2, _dtype(short).numpy_dtype)


def _zero_dim(short: str) -> Any:
    return _dtype(short).numpy_dtype.type(1)


def _result(*operands: Any) -> str:
    """The short name of the result's dtype."""
    try:
        dtype = result_dtype(operands)
    except GradcliError as error:
        return "c32" if error.code == "E205" else error.code
    return next(short for short, name in SHORT.items() if name == dtype.name)


@each_row(("first", "second", "expected"), _cells(PEERS))
def test_peers(first: str, second: str, expected: str) -> None:
    assert promote_types(_dtype(first), _dtype(second)) is _dtype(expected)
    assert _result(_dimensioned(first), _dimensioned(second)) == expected
    assert _result(_zero_dim(first), _zero_dim(second)) == expected


@each_row(("first", "second", "expected"), _cells(ZERO_DIM))
def test_zero_dim_operands(first: str, second: str, expected: str) -> None:
    for operands in itertools.permutations((_dimensioned(first), _zero_dim(second))):
        assert _result(*operands) == expected
    assert _result(_dimensioned(first), np.array(_zero_dim(second))) == expected


@each_row(("first", "number", "expected"), _cells(NUMBERS))
def test_numbers(first: str, number: str, expected: str) -> None:
    for tensor in (_dimensioned(first), _zero_dim(first)):
        for operands in itertools.permutations((tensor, PYTHON_NUMBERS[number])):
            assert _result(*operands) == expected


@pytest.mark.parametrize(
    ("default", "real", "both"),
    [("f16", "f16", "c32"), ("bf16", "bf16", "c64"), ("f32", "f32", "c64"), ("f64", "f64", "c128")],
)
def test_numbers_stand_for_the_default_dtype(
    default: str, real: str, both: str, fresh_state: State
) -> None:
    fresh_state.default_dtype = SHORT[default]
    assert _result(_dimensioned("i8"), 1.5) == real
    assert _result(_dimensioned("i8"), 1j) == both
    assert _result(1, 1.5) == real
    assert _result(True, 2) == "i64"
    # The default plays no part where the tensor is floating itself.
    assert _result(_dimensioned("f32"), 1j) == "c64"


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((_dimensioned("i8"), _zero_dim("i64"), 1.5), "f32"),
        ((_dimensioned("i8"), _zero_dim("f64"), 1.5), "f64"),
        ((_dimensioned("i8"), _dimensioned("f16"), _zero_dim("f64")), "f16"),
        ((_zero_dim("i8"), _zero_dim("u8"), 2), "i16"),
        ((_dimensioned("f64"), _zero_dim("c64"), 2), "c128"),
    ],
)
def test_several_operands(operands: tuple[Any, ...], expected: str) -> None:
    for order in itertools.permutations(operands):
        assert _result(*order) == expected


def test_in_place_results_never_leave_their_category() -> None:
    categories = ["b8", "i8", "f16", "c64"]
    for source, target in itertools.product(categories, repeat=2):
        allowed = categories.index(source) <= categories.index(target)
        assert dtypes.can_cast(_dtype(source), _dtype(target)) is allowed
    assert dtypes.can_cast(_dtype("i64"), _dtype("u8"))
    assert dtypes.can_cast(_dtype("f64"), _dtype("bf16"))


# --- dtypes -------------------------------------------------------------------------------------


def test_names() -> None:
    assert str(DTYPES["long"]) == repr(DTYPES["int64"]) == "torch.int64"
    assert DTYPES["half"] is dtypes.float16
    for name, dtype in DTYPES.items():
        assert np.dtype(dtype.numpy_dtype).itemsize == dtype.itemsize, name
        assert of_array(np.zeros(1, dtype.numpy_dtype)) is dtype


def test_properties() -> None:
    assert dtypes.bfloat16.is_floating_point
    assert not dtypes.complex64.is_floating_point
    assert dtypes.complex64.is_complex
    assert dtypes.complex64.is_signed
    assert [name for name in SHORT.values() if not DTYPES[name].is_signed] == ["bool", "uint8"]
    assert dtypes.complex128.to_real() is dtypes.float64
    assert dtypes.bfloat16.to_complex() is dtypes.complex64
    assert dtypes.int8.to_real() is dtypes.int8
    with pytest.raises(GradcliError, match="no complex dtype"):
        dtypes.int8.to_complex()


def test_foreign_arrays() -> None:
    with pytest.raises(GradcliError) as caught:
        of_array(np.zeros(1, np.uint16))
    assert caught.value.code == "E203"


def test_bfloat16_is_imported_when_it_is_used() -> None:
    program = (
        "import sys; from gradcli.arrays import dtypes; assert 'ml_dtypes' not in sys.modules;"
        "import ml_dtypes, numpy; array = numpy.ones(1, ml_dtypes.bfloat16);"
        "assert dtypes.of_array(array) is dtypes.bfloat16"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- conversion ---------------------------------------------------------------------------------


def test_cast_keeps_what_fits() -> None:
    array = np.ones(2, np.float32)
    assert cast(array, dtypes.float32) is array
    scalar = np.float32(1)
    assert cast(scalar, dtypes.float32) is scalar
    assert type(cast(scalar, dtypes.int8)) is np.int8
    assert type(cast(2.5, dtypes.bfloat16)) is dtypes.bfloat16.numpy_dtype.type


# The value, the dtype that it comes in (None for a Python number) and the one it is cast to.
CAST = [
    (300, None, "int8", 44),
    (-1, None, "uint8", 255),
    (2**63, None, "int64", -(2**63)),
    (2**63, None, "float32", 2.0**63),
    (2**24 + 1, None, "float32", 2.0**24),
    (2, None, "bool", True),
    (-2.7, None, "int64", -2),
    (1e300, None, "float32", inf),
    (1 + 2j, None, "float32", 1.0),
    (1j, None, "bool", True),
    (0.1, None, "float16", 0.0999755859375),
    (300.0, "float32", "int8", 44),
    (-300.7, "float32", "int16", -300),
    (-300.7, "float32", "uint8", 212),
    (nan, "float32", "int64", -(2**63)),
    (inf, "float32", "int32", -(2**31)),
    (inf, "float32", "int8", 0),
    (nan, "float32", "bool", True),
    (-(2.0**40) - 18, "float64", "uint8", 238),
    (1 + 2**-11 + 2**-40, "float64", "float16", 1.0),
    (65519.0, "float32", "float16", 65504.0),
    (65520.0, "float32", "float16", inf),
    (1 + 2**-8 + 2**-40, "float64", "bfloat16", 1.0),
    (1.5 + 2j, "complex64", "int32", 1),
    (2j, "complex64", "bool", True),
    (257, "int16", "uint8", 1),
]


@pytest.mark.parametrize(("value", "source", "target", "expected"), CAST)
def test_cast(value: Any, source: str | None, target: str, expected: Any) -> None:
    dtype = DTYPES[target]
    if source is None:
        results = [cast(value, dtype)]
    else:
        array = np.array([value], DTYPES[source].numpy_dtype)
        results = [cast(array[0], dtype), cast(array, dtype)[0]]
    for result in results:
        assert of_array(result) is dtype
        assert result == expected


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**100])
def test_cast_of_huge_integers(number: int) -> None:
    with pytest.raises(GradcliError) as caught:
        cast(number, dtypes.float32)
    assert caught.value.raises == "OverflowError"


# --- limits -------------------------------------------------------------------------------------

LIMITS = [
    (
        "float16",
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562,"
        " smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)",
    ),
    (
        "bfloat16",
        "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125,"
        " smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)",
    ),
    (
        "complex64",
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07,"
        " smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)",
    ),
    (
        "float64",
        "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16,"
        " smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)",
    ),
    ("uint8", "iinfo(min=0, max=255, dtype=uint8)"),
    ("int64", "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"),
]


@pytest.mark.parametrize(("name", "text"), LIMITS)
def test_limits(name: str, text: str) -> None:
    dtype = DTYPES[name]
    found = iinfo(dtype) if dtype.category == "int" else finfo(dtype)
    assert repr(found) == text


def test_limits_are_exact(fresh_state: State) -> None:
    assert finfo() is finfo(dtypes.float32)
    assert finfo().max == float(np.finfo(np.float32).max)
    assert finfo(dtypes.float64).max == sys.float_info.max
    assert (iinfo(dtypes.int64).min, iinfo(dtypes.int64).bits) == (-(2**63), 64)
    fresh_state.default_dtype = "float64"
    assert finfo().eps == sys.float_info.epsilon


@pytest.mark.parametrize("wrong", [dtypes.boolean, 3, "float32"])
def test_limits_of_what_has_none(wrong: Any) -> None:
    for function in (finfo, iinfo):
        with pytest.raises(GradcliError) as caught:
            function(wrong)
        assert caught.value.code == "E202"
