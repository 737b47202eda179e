"""Small float32 convolutions and their gradients to the last bit, as PyTorch 2.13 adds them up on a
CPU with two threads. Each number is the checksum of an array's bytes that PyTorch gave.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from gradcli.arrays.fusion.lazy import forced
from tests.running import run

SETUP = """
import torch
import torch.nn.functional as F

def made(*sizes):
    count = 1
    for size in sizes:
        count *= size
    return (torch.arange(count) * 7919 % 1009 / 1009 - 0.5).reshape(sizes).requires_grad_()

"""

# A call, the sizes of its input, weights and bias, and the checksums of the result and of the
# gradients of input, weights and bias.
ROWS = [
    pytest.param(
        "conv2d(x, w, b)",
        "1, 2, 6, 6",
        "3, 2, 3, 3",
        3,
        [3628700481, 193809902, 955593512, 3287213230],
        id="three channels out: rows in lanes: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "1, 1, 6, 6",
        "1, 1, 3, 3",
        1,
        [257029639, 3365081730, 4249687667, 649368830],
        id="one channel: a product with a vector: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b, padding=1)",
        "1, 2, 5, 5",
        "6, 2, 3, 3",
        6,
        [2772048737, 2694103981, 1774054494, 1415075631],
        id="four of six channels rounded once: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b, stride=2, dilation=2)",
        "1, 3, 9, 8",
        "4, 3, 2, 3",
        4,
        [3773529231, 3692278628, 87837, 1683175024],
        id="strides: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "1, 2, 3, 3",
        "3, 2, 3, 3",
        3,
        [688037776, 2850431883, 1748023110, 3448635992],
        id="one window: conv2d",
    ),
    pytest.param(
        "conv1d(x, w, b)",
        "1, 3, 20",
        "5, 3, 3",
        5,
        [2410435871, 2004749584, 902580495, 702082995],
        id="one dimension: conv1d",
    ),
    pytest.param(
        "conv3d(x, w, b)",
        "1, 2, 4, 4, 4",
        "3, 2, 2, 2, 2",
        3,
        [3605396748, 3805946220, 1894924164, 2902074445],
        id="three dimensions: conv3d",
    ),
    pytest.param(
        "conv_transpose2d(x, w, b)",
        "1, 2, 5, 5",
        "2, 3, 3, 3",
        3,
        [1328280398, 2954048184, 1945703155, 2349328393],
        id="transposed: conv_transpose2d",
    ),
    pytest.param(
        "conv_transpose1d(x, w, b, stride=2)",
        "1, 2, 9",
        "2, 3, 3",
        3,
        [1213992841, 1318793393, 3989982472, 8992248],
        id="transposed: conv_transpose1d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "1, 24, 5, 6",
        "4, 24, 3, 3",
        4,
        [3255230119, 3497522289, 1134946731, 2486301717],
        id="a long sum: halves of blocks: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "1, 3, 8, 8",
        "4, 3, 3, 3",
        4,
        [2263121131, 3508028561, 2215143469, 2154351812],
        id="four channels out: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "3, 2, 5, 5",
        "3, 2, 3, 3",
        3,
        [1857675688, 2875559487, 4251107703, 3390906042],
        id="several samples: place by place: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "2, 20, 3, 3",
        "3, 20, 2, 2",
        3,
        [3003729206, 1663628014, 1410188359, 3772253346],
        id="more channels than a register holds: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "3, 4, 4, 5",
        "4, 4, 2, 2",
        4,
        [1662489027, 2204923630, 2636297634, 2289102656],
        id="shorter registers: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "3, 3, 5, 5",
        "4, 3, 1, 1",
        4,
        [3221042302, 4170886544, 426056199, 1535406580],
        id="single elements: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b, padding=1)",
        "2, 2, 4, 4",
        "3, 2, 1, 3",
        3,
        [4168800793, 1969232262, 3029237945, 213930039],
        id="windows in the padding: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b)",
        "1, 2, 7, 7",
        "3, 2, 4, 4",
        3,
        [1887149380, 1518726473, 1370244941, 3491516483],
        id="a large window: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b, groups=2)",
        "2, 4, 5, 5",
        "6, 2, 2, 2",
        6,
        [1985101226, 1206128888, 3751241613, 1167433776],
        id="groups: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b, groups=2)",
        "3, 4, 5, 4",
        "2, 2, 2, 2",
        2,
        [1990005244, 1721972039, 1952875400, 3420597133],
        id="groups of one channel out: conv2d",
    ),
    pytest.param(
        "conv2d(x, w, b, groups=3)",
        "2, 3, 5, 5",
        "3, 1, 2, 2",
        3,
        [2459483665, 104367152, 863917019, 1769398376],
        id="groups of one channel in and out: conv2d",
    ),
    pytest.param(
        "conv3d(x, w, b)",
        "3, 2, 4, 3, 3",
        "3, 2, 2, 2, 2",
        3,
        [4203309061, 1758652141, 2189953249, 330766922],
        id="shared slices: conv3d",
    ),
    pytest.param(
        "conv_transpose2d(x, w, b)",
        "3, 2, 4, 4",
        "2, 3, 3, 3",
        3,
        [2679961478, 697035169, 3936679519, 1157255560],
        id="transposed, several samples: conv_transpose2d",
    ),
    pytest.param(
        "conv_transpose2d(x, w, b, groups=2)",
        "2, 4, 4, 4",
        "4, 2, 2, 2",
        4,
        [1231965983, 1571564150, 2858484845, 3908208937],
        id="transposed, groups: conv_transpose2d",
    ),
]


def program(call: str, input: str, weight: str, bias: int) -> str:
    return (
        SETUP
        + f"x = made({input})\nw = made({weight})\nb = made({bias})\n"
        + f"result = F.{call}\nshown = result.detach()\n"
        + "(result * made(*result.shape).detach()).sum().backward()\n"
        + "given = [shown, x.grad, w.grad, b.grad]\n"
    )


def checksums(arrays: list[np.ndarray]) -> list[int]:
    return [zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in arrays]


@pytest.mark.parametrize(("call", "input", "weight", "bias", "recorded"), ROWS)
def test_last_bits(call: str, input: str, weight: str, bias: int, recorded: list[int]) -> None:
    outcome = run(program(call, input, weight, bias))
    assert outcome.error is None
    given = outcome.session.interpreter.values["given"]
    assert checksums([forced(tensor.array) for tensor in given]) == recorded
