"""What gradcli asks of CuPy, held against CuPy itself, on a machine that needs no GPU.

Programs run on the stand-in, and every call of CuPy is tried on the real one first: the function
exists, takes these keywords and dtypes, and its result has the dtype and the shape that the
stand-in's has. The kernels that gradcli writes are compiled by NVRTC.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from gradcli.arrays import backend
from gradcli.arrays.fusion.gpu_plan import EXPRESSIONS, statement
from gradcli.arrays.fusion.tile_kernels import choose_tile
from gradcli.arrays.layout.sizes import Device
from tests import driverless_cupy, stand_in_cupy, test_gpu
from tests.stand_in_cupy import tried_on_cupy


def _why_not() -> str:
    """Why CuPy cannot be tried here; empty where it can."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        pass
    else:
        return "there is a driver: tests/test_gpu.py runs on the GPU itself"
    try:
        driverless_cupy.load()
    except ImportError as failure:
        return f"CuPy 14 and NVRTC are not installed: {failure}"
    return ""


why_not = _why_not()
pytestmark = pytest.mark.skipif(bool(why_not), reason=why_not)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Device:
    """The stand-in's GPU, with all calls tried on CuPy."""
    stand_in_cupy.install(monkeypatch)
    monkeypatch.setattr(stand_in_cupy, "checked_by", [tried_on_cupy])
    return backend.located("test", "cuda")


@pytest.mark.parametrize("name", test_gpu.REFUSED)
def test_cupy_refuses_what_the_stand_in_does(name: str) -> None:
    cupy = driverless_cupy.load()
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        test_gpu.REFUSED[name](cupy, cupy.asarray(np.ones(3)))


@pytest.mark.parametrize("letter", test_gpu.FAMILIES)
def test_rows(letter: str, cuda: Device) -> None:
    test_gpu.test_rows_on_a_gpu(letter, cuda)


@pytest.mark.parametrize("name", test_gpu.PROGRAMS)
def test_programs(name: str, cuda: Device) -> None:
    test_gpu.test_programs(name, cuda)


# --- kernels ------------------------------------------------------------------------------------

_SLOW_PATHS_IN_DOUBLE = {np.sin, np.cos, np.tan}
"""CUDA's functions of large float32 angles compute in double precision."""


_OPTIONS = ("--fmad=false",)


def _ptx(kernel: Any, types: list[Any], to: Any) -> str:
    names = [f"x{k}" for k in range(len(types))]
    given = ", ".join(f"{each.name} {name}" for each, name in zip(types, names, strict=True))
    body = statement("v", kernel, names, types, to) + " o = v;"
    before = set(driverless_cupy.ptx)
    cupy = driverless_cupy.load()
    made = cupy.ElementwiseKernel(
        given, f"{to.name} o", body, f"gradcli_{kernel.__name__}", no_return=True, options=_OPTIONS
    )
    made(*[cupy.empty(3, each) for each in types], cupy.empty(3, to))
    (text,) = set(driverless_cupy.ptx) - before
    return driverless_cupy.ptx[text]


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64)])
def test_every_expression_compiles(dtype: Any) -> None:
    """In the precision of the operands, with no multiplication and addition contracted."""
    for kernel, expression in EXPRESSIONS.items():
        count = max(int(each) for each in re.findall(r"{(\d)}", expression)) + 1
        types = [dtype] * count
        if kernel is choose_tile:
            types[0] = np.dtype(np.bool_)
        text = _ptx(kernel, types, dtype)
        if dtype == np.float32 and kernel not in _SLOW_PATHS_IN_DOUBLE:
            assert ".f64" not in text, kernel
        if not re.search(r"\w\(", expression):  # a function of CUDA's may contract its own
            assert "fma" not in text, kernel


PLANS = {
    **test_gpu.CHAINS,
    "(x * w).sum(0).sum() + (x * w).sum(0).exp().sum()": {"x": (9, 7), "w": (9, 7)},
}


@test_gpu.needs_compiler
@pytest.mark.parametrize("program", PLANS)
def test_generated_kernels_compile(
    program: str, cuda: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the sums of float32 chains are double."""
    monkeypatch.setattr(test_gpu, "CHAINS", PLANS)
    before = set(driverless_cupy.ptx)
    test_gpu.test_plans(program, np.float32, cuda)
    texts = [driverless_cupy.ptx[each] for each in set(driverless_cupy.ptx) - before]
    assert texts
    for text in texts:
        doubles = {line.split(".")[0].strip() for line in text.splitlines() if ".f64" in line}
        assert doubles <= {"", "add", "cvt", "mov", "ld", "st"}, doubles
