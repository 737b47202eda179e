"""Special functions beside their values in 20 digits, with the kernels in C and without.

`special_rows.txt` has the values; `FARTHEST` says how far each function may be from them, in units
of the last place of float64.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.arrays.kernels.special import error_function, gamma
from gradcli.arrays.native import dispatch
from gradcli.ops.special import bessel

Rows = list[tuple[tuple[float, ...], Fraction]]

FARTHEST = {
    "erf": 1.0,
    "erfc": 4.0,
    "erfcx": 3.0,
    "log_ndtr": 6.0,
    "ndtri": 3.0,
    "erfinv": 1.5,
    "gammaln": 10.0,  # beside the roots below 0
    "psi": 20.0,
    "i0": 4.0,
    "i1": 4.0,
    "i0e": 3.0,
    "i1e": 3.0,
    "zeta": 4.0,
    "gammainc": 150.0,  # where it is close to 0
    "gammaincc": 150.0,
}

INF, NAN = math.inf, math.nan

LIMITS = [
    ("erf", (0.0, -0.0, INF, -INF, NAN), (0.0, -0.0, 1.0, -1.0, NAN)),
    ("erfc", (0.0, 30.0, INF, -INF, NAN), (1.0, 0.0, 0.0, 2.0, NAN)),
    ("erfcx", (0.0, -30.0, INF, -INF, NAN), (1.0, INF, 0.0, INF, NAN)),
    ("log_ndtr", (0.0, -1e300, INF, -INF, NAN), (math.log(0.5), -INF, 0.0, -INF, NAN)),
    ("ndtri", (0.5, 0.0, 1.0, -0.1, 1.1, NAN), (0.0, -INF, INF, NAN, NAN, NAN)),
    ("erfinv", (0.0, -0.0, 1.0, -1.0, 1.1, NAN), (0.0, -0.0, INF, -INF, NAN, NAN)),
    ("gammaln", (0.0, -3.0, 1.0, 2.0, INF, -INF, NAN), (INF, INF, 0.0, 0.0, INF, INF, NAN)),
    ("psi", (0.0, -3.0, INF, NAN), (-INF, NAN, INF, NAN)),
    ("i0", (0.0, 800.0, -INF, INF, NAN), (1.0, INF, NAN, NAN, NAN)),
    ("i1", (0.0, -0.0, -INF, INF, NAN), (0.0, -0.0, NAN, NAN, NAN)),
    ("i0e", (0.0, -INF, INF, NAN), (1.0, 0.0, 0.0, NAN)),
    ("i1e", (0.0, -INF, INF, NAN), (0.0, -0.0, 0.0, NAN)),
]
"""Name, arguments and values, where a function ends or its pieces would lose it."""


def _rows() -> dict[str, Rows]:
    rows = defaultdict(list)
    for line in (Path(__file__).parent / "special_rows.txt").read_text().splitlines()[1:]:
        name, *arguments, value = line.split()
        rows[name].append((tuple(map(float, arguments)), Fraction(value)))
    return rows


ROWS = _rows()


def _function(name: str) -> Any:
    places = (bessel, f"{name}_of"), (error_function, name), (gamma, name)
    return next(getattr(*place) for place in places if hasattr(*place))


@pytest.fixture(params=["in C", "in Python"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there are kernels in C; warnings are the session's to switch off."""
    if request.param == "in Python":
        monkeypatch.setattr(dispatch, "_kernels", {})
        monkeypatch.setattr(dispatch, "core", lambda: None)
    elif dispatch.core() is None:
        pytest.skip("the kernels in C are not built")


def _distance(found: Any, value: Fraction, dtype: Any) -> float:
    unit = np.spacing(np.abs(dtype(float(value))))
    return float(abs(Fraction(float(found)) - value) / Fraction(float(unit)))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", FARTHEST)
def test_values(name: str) -> None:
    """Of many elements at once, and of one; of float32 rounded once."""
    compute, rows = _function(name), ROWS[name]
    arguments = np.array([each for each, _ in rows]).T
    with np.errstate(all="ignore"):
        found = compute(*np.repeat(arguments, 4, axis=1))[::4]
        alone = [compute(*map(np.float64, each)) for each, _ in rows]
        single = compute(*arguments.astype(np.float32))
        wide = compute(*arguments.astype(np.float32).astype(np.float64))
    assert (found.dtype, single.dtype) == (np.float64, np.float32)
    far = [
        (each, one)
        for (each, value), *both in zip(rows, found, alone, strict=True)
        for one in both
        if not _distance(one, value, np.float64) <= FARTHEST[name]
    ]
    assert far == []
    np.testing.assert_array_equal(single, wide.astype(np.float32))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("name", "arguments", "values"), LIMITS)
def test_limits(name: str, arguments: tuple[float, ...], values: tuple[float, ...]) -> None:
    compute = _function(name)
    with np.errstate(all="ignore"):
        for found in (
            compute(np.array(arguments)),
            compute(np.tile(arguments, 9))[: len(values)],
            np.array([compute(np.float64(each)) for each in arguments]),
        ):
            np.testing.assert_allclose(found, values, 3e-16)
            assert [*np.signbit(found)] == [*np.signbit(values)] or np.isnan(values).any()


def test_limits_of_the_incomplete_gamma_functions() -> None:
    a = np.array([0, 0, 0, 1, 1, INF, INF, -1, 1, NAN, 2.0])
    x = np.array([0, 1, INF, 0, INF, 1, INF, 1, -1, 1, NAN])
    below = np.array([NAN, 1, 1, 0, 1, 0, NAN, NAN, NAN, NAN, NAN])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(gamma.gammainc(a, x), below)
        np.testing.assert_array_equal(gamma.gammaincc(a, x), 1 - below)


def test_limits_of_the_zeta_function() -> None:
    """Its poles, what lies below 0, and exponents that no power is finite with."""
    s = np.array([1.0, 0.5, 2.0, 2.0, 2.5, 2.0, 3.0, INF, 2.0, 1e200])
    q = np.array([2.0, 2.0, 0.0, -3.0, -0.5, -0.5, -1.5, 2.0, INF, 0.5])
    above = math.pi**2 / 2 + 4
    with np.errstate(all="ignore"):
        odd = gamma.zeta(3.0, 0.5) - 2**3 - (2 / 3) ** 3
        wanted = [INF, NAN, INF, INF, NAN, above, odd, 0.0, 0.0, INF]
        np.testing.assert_allclose(gamma.zeta(s, q), wanted, 1e-13)
        assert gamma.zeta(2.0, np.float64(-0.5)) == pytest.approx(above, 1e-15)
        assert gamma.zeta(np.full((2, 1), 2.0), np.ones(3)).shape == (2, 3)


@pytest.mark.usefixtures("kernels")
def test_shapes() -> None:
    """Arrays with gaps, of no dimensions and of no elements; what is written to memory that is
    given.
    """
    erf = error_function.erf
    x = np.linspace(-3, 3, 60).reshape(3, 4, 5)
    for each in (x, x.T, x[:, ::-2], x[1, 2, 3:4], x[:0]):
        found = erf(each)
        assert found.shape == each.shape
        assert found.strides == np.sqrt(each).strides or not each.size
        assert found.tolist() == erf(each.copy()).tolist()
        out = np.zeros(each.shape, np.float32).T
        assert erf(each.T, out=out) is out
        np.testing.assert_array_equal(out.T, found.astype(np.float32))
    assert type(erf(np.array(0.5))) is np.float64
    assert type(erf(np.float32(0.5))) is np.float32
    assert erf(1) == math.erf(1)


def test_what_is_no_number() -> None:
    with pytest.raises(TypeError):
        error_function.erf("x")
