"""The text of tensors, against what PyTorch 2.13 printed."""

from __future__ import annotations

from functools import partial
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pytest

from gradcli.arrays import backend, dtypes
from gradcli.arrays.layout.sizes import Device
from gradcli.arrays.printing import format_tensor, set_printoptions
from gradcli.errors import GradcliError
from gradcli.state import active
from tests.rows import each_row


class Given(NamedTuple):
    """What is printed: an array with suffixes, under a default dtype and print options."""

    array: Any
    suffixes: tuple[str, ...]
    default: str
    options: dict[str, Any]


def given(array: Any, *suffixes: str, default: str = "float32", **options: Any) -> Given:
    return Given(array, suffixes, default, options)


def _array(dtype: str, *values: Any) -> Any:
    return np.array(values, dtypes.DTYPES[dtype].numpy_dtype)


f16, bf16, f32, f64, c64 = (
    partial(_array, name) for name in ("float16", "bfloat16", "float32", "float64", "complex64")
)

# To add a row, print the tensor under PyTorch.
PRINTED = [
    # Notation and width: whole numbers, four decimals, one width for all.
    (given(f32(1.0, 2.0)), "tensor([1., 2.])"),
    (given(f32(1.0, 2.5)), "tensor([1.0000, 2.5000])"),
    (given(f32(-1.0, 10.0)), "tensor([-1., 10.])"),
    (
        given(f32([1.5, -22.25], [100.0, 0.0])),
        """\
tensor([[  1.5000, -22.2500],
        [100.0000,   0.0000]])""",
    ),
    (given(np.float32(3.0)), "tensor(3.)"),
    (given(np.array(0.1, np.float32)), "tensor(0.1000)"),
    (given(f32(0.0, -0.0)), "tensor([0., -0.])"),
    (given(f32(1.0, -0.0)), "tensor([1., -0.])"),
    (given(f32(1.5, -0.0)), "tensor([1.5000, -0.0000])"),
    (given(f32(9.99999, 1.0)), "tensor([10.0000,  1.0000])"),
    (given(f32(1.00005, 2.00015)), "tensor([1.0000, 2.0001])"),
    (given(f32(0.12345, 0.12355)), "tensor([0.1235, 0.1235])"),
    # Exponents: above 1e8, below 1e-4, or a ratio above 1000.
    (given(f32(1.0, 1000.0)), "tensor([   1., 1000.])"),
    (given(f32(1.0, 1001.0)), "tensor([1.0000e+00, 1.0010e+03])"),
    (given(f32(1.5, 1500.0)), "tensor([   1.5000, 1500.0000])"),
    (given(f32(1.5, 1501.0)), "tensor([1.5000e+00, 1.5010e+03])"),
    (given(f32(0.0001, 0.05)), "tensor([1.0000e-04, 5.0000e-02])"),
    (given(f32(0.00009, 0.05)), "tensor([9.0000e-05, 5.0000e-02])"),
    (given(f32(1e8, 1e8)), "tensor([100000000., 100000000.])"),
    (given(f32(1.0e8 + 8, 1.0)), "tensor([1.0000e+08, 1.0000e+00])"),
    (given(f32(123456789.0)), "tensor([1.2346e+08])"),
    (given(f32(12345.5)), "tensor([12345.5000])"),
    (given(f32(0.0, 0.00001)), "tensor([0.0000e+00, 1.0000e-05])"),
    (given(f64(1e300, -1e-300)), "tensor([ 1.0000e+300, -1.0000e-300], dtype=torch.float64)"),
    (given(f64(5e-324)), "tensor([4.9407e-324], dtype=torch.float64)"),
    # NaN, infinities and zeros choose nothing.
    (given(f32(1.0, nan, inf)), "tensor([1., nan, inf])"),
    (given(f32(1.5, -inf, nan)), "tensor([1.5000,   -inf,    nan])"),
    (given(f32(nan)), "tensor([nan])"),
    (given(np.float32(inf)), "tensor(inf)"),
    (given(f32(1e10, inf)), "tensor([1.0000e+10,        inf])"),
    (given(f32(nan, 0.0)), "tensor([nan, 0.])"),
    (given(f32(0.0, 2000.0, nan, 1.0)), "tensor([0.0000e+00, 2.0000e+03,        nan, 1.0000e+00])"),
    # Other dtypes.
    (given(np.array([1, -20, 300])), "tensor([  1, -20, 300])"),
    (given(np.int64(7)), "tensor(7)"),
    (given(np.array([1, 2], np.int32)), "tensor([1, 2], dtype=torch.int32)"),
    (given(np.array([255, 0], np.uint8)), "tensor([255,   0], dtype=torch.uint8)"),
    (given(np.array([[True, False]])), "tensor([[ True, False]])"),
    (given(np.bool_(True)), "tensor(True)"),
    (given(f16(1, 65504)), "tensor([1.0000e+00, 6.5504e+04], dtype=torch.float16)"),
    (given(f16(0.1, 0.2)), "tensor([0.1000, 0.2000], dtype=torch.float16)"),
    (given(bf16(1.0, 3.14159)), "tensor([1.0000, 3.1406], dtype=torch.bfloat16)"),
    (given(bf16(0.1)), "tensor([0.1001], dtype=torch.bfloat16)"),
    (given(f64(1.0)), "tensor([1.], dtype=torch.float64)"),
    (given(c64(1 + 2j, -0.5 - 1j)), "tensor([ 1.0000+2.j, -0.5000-1.j])"),
    (given(np.complex64(1 + 2j)), "tensor(1.+2.j)"),
    (given(c64(complex(nan, -0.0), 1e10j)), "tensor([nan-0.0000e+00j, 0.+1.0000e+10j])"),
    (given(np.array([1.5 - 20j, 3j])), "tensor([1.5000-20.j, 0.0000+3.j], dtype=torch.complex128)"),
    # The default dtype goes without saying.
    (given(f64(1.5), default="float64"), "tensor([1.5000])"),
    (given(f32(1.5), default="float64"), "tensor([1.5000], dtype=torch.float32)"),
    (given(np.array([1j]), default="float64"), "tensor([0.+1.j])"),
    (given(c64(1j), default="float64"), "tensor([0.+1.j], dtype=torch.complex64)"),
    (given(np.array([1]), default="float64"), "tensor([1])"),
    (given(np.zeros(0), default="float64"), "tensor([])"),
    (given(bf16(1.5), default="bfloat16"), "tensor([1.5000])"),
    # Empty.
    (given(f32()), "tensor([])"),
    (given(np.zeros(0, np.int64)), "tensor([], dtype=torch.int64)"),
    (given(np.zeros((0, 3), np.float32)), "tensor([], size=(0, 3))"),
    (given(np.zeros((2, 0))), "tensor([], size=(2, 0), dtype=torch.float64)"),
    (
        given(np.zeros((2, 0), np.float32), "requires_grad=True"),
        "tensor([], size=(2, 0), requires_grad=True)",
    ),
    # Lines: as many elements as fit 80 columns, blocks apart.
    (
        given(np.arange(30, dtype=np.float32)),
        """\
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,
        28., 29.])""",
    ),
    (
        given((np.arange(15) / 3).astype(np.float32)),
        """\
tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667,
        3.0000, 3.3333, 3.6667, 4.0000, 4.3333, 4.6667])""",
    ),
    (
        given(np.arange(26).reshape(1, 26)),
        """\
tensor([[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
         18, 19, 20, 21, 22, 23, 24, 25]])""",
    ),
    (
        given(np.arange(8).reshape(2, 2, 2)),
        """\
tensor([[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]])""",
    ),
    (
        given(np.zeros((2, 2, 1, 2), np.float32)),
        """\
tensor([[[[0., 0.]],

         [[0., 0.]]],


        [[[0., 0.]],

         [[0., 0.]]]])""",
    ),
    (
        given(c64(*[complex(n, n / 4) for n in range(9)])),
        """\
tensor([0.+0.0000j, 1.+0.2500j, 2.+0.5000j, 3.+0.7500j, 4.+1.0000j, 5.+1.2500j,
        6.+1.5000j, 7.+1.7500j, 8.+2.0000j])""",
    ),
    # Suffixes, on a new line where they would pass column 80.
    (given(f32(1.0), "requires_grad=True"), "tensor([1.], requires_grad=True)"),
    (
        given(f64(2.0), "grad_fn=<MulBackward0>"),
        "tensor([2.], dtype=torch.float64, grad_fn=<MulBackward0>)",
    ),
    (given(np.float32(6.0), "grad_fn=<MulBackward0>"), "tensor(6., grad_fn=<MulBackward0>)"),
    (
        given(f32(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7), "requires_grad=True"),
        """\
tensor([0.1000, 0.2000, 0.3000, 0.4000, 0.5000, 0.6000, 0.7000],
       requires_grad=True)""",
    ),
    (
        given(f32(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), "requires_grad=True"),
        "tensor([0.1000, 0.2000, 0.3000, 0.4000, 0.5000, 0.6000], requires_grad=True)",
    ),
    (
        given(f64(0.2, 0.4, 0.6, 0.8, 1.0, 1.2), "grad_fn=<MulBackward0>"),
        """\
tensor([0.2000, 0.4000, 0.6000, 0.8000, 1.0000, 1.2000], dtype=torch.float64,
       grad_fn=<MulBackward0>)""",
    ),
    (
        given(f64(0.2, 0.4, 0.6, 0.8, 1.0), "requires_grad=True"),
        """\
tensor([0.2000, 0.4000, 0.6000, 0.8000, 1.0000], dtype=torch.float64,
       requires_grad=True)""",
    ),
    (
        given((np.arange(9) / 3).astype(np.float32), "requires_grad=True"),
        """\
tensor([0.0000, 0.3333, 0.6667, 1.0000, 1.3333, 1.6667, 2.0000, 2.3333, 2.6667],
       requires_grad=True)""",
    ),
    # More than 1000 elements: the ends of each dimension longer than six.
    (given(np.arange(1001)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        given(np.arange(1200, dtype=np.float32).reshape(30, 40)),
        """\
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 3.7000e+01, 3.8000e+01,
         3.9000e+01],
        [4.0000e+01, 4.1000e+01, 4.2000e+01,  ..., 7.7000e+01, 7.8000e+01,
         7.9000e+01],
        [8.0000e+01, 8.1000e+01, 8.2000e+01,  ..., 1.1700e+02, 1.1800e+02,
         1.1900e+02],
        ...,
        [1.0800e+03, 1.0810e+03, 1.0820e+03,  ..., 1.1170e+03, 1.1180e+03,
         1.1190e+03],
        [1.1200e+03, 1.1210e+03, 1.1220e+03,  ..., 1.1570e+03, 1.1580e+03,
         1.1590e+03],
        [1.1600e+03, 1.1610e+03, 1.1620e+03,  ..., 1.1970e+03, 1.1980e+03,
         1.1990e+03]])""",
    ),
    (
        given(np.arange(1200).reshape(2, 600)),
        """\
tensor([[   0,    1,    2,  ...,  597,  598,  599],
        [ 600,  601,  602,  ..., 1197, 1198, 1199]])""",
    ),
    (
        given(np.arange(1002).reshape(167, 6)),
        """\
tensor([[   0,    1,    2,    3,    4,    5],
        [   6,    7,    8,    9,   10,   11],
        [  12,   13,   14,   15,   16,   17],
        ...,
        [ 984,  985,  986,  987,  988,  989],
        [ 990,  991,  992,  993,  994,  995],
        [ 996,  997,  998,  999, 1000, 1001]])""",
    ),
    (
        given(np.zeros((7, 2, 100), np.float32)),
        """\
tensor([[[0., 0., 0.,  ..., 0., 0., 0.],
         [0., 0., 0.,  ..., 0., 0., 0.]],

        [[0., 0., 0.,  ..., 0., 0., 0.],
         [0., 0., 0.,  ..., 0., 0., 0.]],

        [[0., 0., 0.,  ..., 0., 0., 0.],
         [0., 0., 0.,  ..., 0., 0., 0.]],

        ...,

        [[0., 0., 0.,  ..., 0., 0., 0.],
         [0., 0., 0.,  ..., 0., 0., 0.]],

        [[0., 0., 0.,  ..., 0., 0., 0.],
         [0., 0., 0.,  ..., 0., 0., 0.]],

        [[0., 0., 0.,  ..., 0., 0., 0.],
         [0., 0., 0.,  ..., 0., 0., 0.]]])""",
    ),
    (
        given(np.concatenate([np.zeros(600), [1e9], np.zeros(600)]).astype(np.float32)),
        "tensor([0., 0., 0.,  ..., 0., 0., 0.])",
    ),
    # Options.
    (given(f32(1.23456, 2.0), precision=2), "tensor([1.23, 2.00])"),
    (given(f32(1.23456, 2.0), precision=0), "tensor([1, 2])"),
    (given(f32(1.23456, 2e9), precision=8), "tensor([1.23456001e+00, 2.00000000e+09])"),
    (given(f32(1.0, 2.0), sci_mode=True), "tensor([1.0000e+00, 2.0000e+00])"),
    (given(f32(1e-9, 1e9), sci_mode=False), "tensor([         0.0000, 1000000000.0000])"),
    (given(f32(0.0, nan), sci_mode=True), "tensor([0., nan])"),
    (given(np.arange(7), threshold=6), "tensor([0, 1, 2,  ..., 4, 5, 6])"),
    (given(np.arange(7), threshold=6, edgeitems=2), "tensor([0, 1,  ..., 5, 6])"),
    (
        given(np.arange(16).reshape(4, 4), threshold=5, edgeitems=1),
        """\
tensor([[ 0,  ...,  3],
        ...,
        [12,  ..., 15]])""",
    ),
    (given(np.arange(9), threshold=5, edgeitems=0), "tensor([...], size=(9,))"),
    (given(np.arange(4), edgeitems=0), "tensor([0, 1, 2, 3], size=(4,))"),
    (
        given(np.arange(8).reshape(2, 2, 2), threshold=5, edgeitems=0),
        "tensor([...], size=(2, 2, 2))",
    ),
    (
        given(np.arange(12), linewidth=20),
        """\
tensor([ 0,  1,  2,
         3,  4,  5,
         6,  7,  8,
         9, 10, 11])""",
    ),
    (
        given(np.arange(3), linewidth=0),
        """\
tensor([0,
        1,
        2])""",
    ),
    (
        given(f32(1.5), "requires_grad=True", linewidth=30),
        """\
tensor([1.5000],
       requires_grad=True)""",
    ),
    (
        given((np.arange(40) / 7).astype(np.float32), profile="short", linewidth=40),
        """\
tensor([0.00, 0.14, 0.29, 0.43, 0.57,
        0.71, 0.86, 1.00, 1.14, 1.29,
        1.43, 1.57, 1.71, 1.86, 2.00,
        2.14, 2.29, 2.43, 2.57, 2.71,
        2.86, 3.00, 3.14, 3.29, 3.43,
        3.57, 3.71, 3.86, 4.00, 4.14,
        4.29, 4.43, 4.57, 4.71, 4.86,
        5.00, 5.14, 5.29, 5.43, 5.57])""",
    ),
    (
        given((np.arange(8) / 7).astype(np.float32), profile="short", precision=3),
        "tensor([0.000, 0.143, 0.286, 0.429, 0.571, 0.714, 0.857, 1.000])",
    ),
]


@each_row(("case", "text"), PRINTED, ids=lambda row: row[1][:40])
def test_text_is_pytorchs(case: Given, text: str) -> None:
    active.state.default_dtype = case.default
    set_printoptions(**case.options)
    assert format_tensor(case.array, case.suffixes) == text


def test_long_suffix_takes_a_line_of_its_own() -> None:
    # 15 characters are written before it; PyTorch counts 17, and 2 for the separator.
    fits = "grad_fn=<" + "F" * 51 + ">"
    assert format_tensor(f32(1.5), [fits]) == f"tensor([1.5000], {fits})"
    long = "grad_fn=<" + "F" * 52 + ">"
    assert format_tensor(f32(1.5), [long]) == f"tensor([1.5000],\n       {long})"


def test_scalar_and_zero_dim_array_have_one_text() -> None:
    assert format_tensor(np.float32(2.5)) == format_tensor(np.array(2.5, np.float32))


def test_strides_do_not_show() -> None:
    rows = np.arange(6).reshape(2, 3)
    assert format_tensor(rows.T[::-1]) == format_tensor(np.ascontiguousarray(rows.T[::-1]))


def test_a_huge_tensor_costs_its_corners() -> None:
    one = np.broadcast_to(np.float32(1), (10**5, 10**5, 10**5))  # holds a single element
    assert format_tensor(one).count("1.") == 6**3


class OnGpu:
    """An array as CuPy has them, as far as printing asks."""

    class device:
        id = 1

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def get(self) -> Any:
        return self.array


def test_device_is_written_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for devices in ("_gpus", "_elsewhere"):
        monkeypatch.setattr(backend, devices, [Device("cuda", 1)])
    text = format_tensor(OnGpu(f64(1.0)), ["requires_grad=True"])
    assert text == "tensor([1.], device='cuda:1', dtype=torch.float64, requires_grad=True)"


def test_options_stay_until_they_are_set() -> None:
    set_printoptions(precision=2, sci_mode=True)
    set_printoptions(linewidth=40)
    options = active.state.print_options
    assert (options.precision, options.linewidth) == (2, 40)
    assert options.sci_mode is None  # every call sets it, given or not
    set_printoptions(profile="full", edgeitems=1)
    assert (options.precision, options.threshold, options.edgeitems) == (4, inf, 1)
    assert options.linewidth == 80


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ({"precision": -1}, "E204"),
        ({"edgeitems": -1}, "E204"),
        ({"precision": 2.5}, "E202"),
        ({"threshold": "all"}, "E202"),
        ({"linewidth": inf}, "E202"),
        ({"precision": 10**9}, "E602"),
    ],
)
def test_bad_options_change_nothing(option: dict[str, Any], code: str) -> None:
    with pytest.raises(GradcliError) as caught:
        set_printoptions(**{"linewidth": 10, **option})
    assert caught.value.code == code
    assert active.state.print_options.linewidth == 80
