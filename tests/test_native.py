"""The kernels in C beside the Python kernels, on arrays of many shapes, strides and special values.

A row of `ROWS` is a function of an array that reaches a kernel, and how far the two may differ. All
of it is skipped where the kernels are not built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gradcli.arrays import dtypes
from gradcli.arrays.flat import planned
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.special import error_function, gamma
from gradcli.arrays.kernels.windows import Windows
from gradcli.arrays.native import dispatch, half
from gradcli.arrays.random.generator import Generator, fill_blocks
from gradcli.arrays.threads import TILE
from gradcli.library.torch.optim.adaptive import Adam
from gradcli.library.torch.optim.optimizer import add_scaled
from gradcli.ops.definition.op import registry
from gradcli.ops.indexing import along, basic
from gradcli.ops.linalg import linear_systems, triangular
from gradcli.ops.linalg.products import matrix_products
from gradcli.ops.nn import activations, attention, recurrent, softmax
from gradcli.ops.nn.normalisation import batch, formula, layer
from gradcli.ops.nn.spatial import convolution, pooling
from gradcli.ops.reduction import cumulative, sorting
from gradcli.ops.special import error_functions
from tests.rows import sampled

CORE = dispatch.core()
NAMES = (
    {name for name in dir(CORE) if not name.startswith("_")} - {"use", "serves", "Program", "nodes"}
    if CORE
    else ()
)
LEVELS = ("baseline", "avx2", "avx512")

built = pytest.mark.skipif(CORE is None, reason="the kernels in C are not built")


class Row(NamedTuple):
    """What reaches a kernel.

    Attributes:
        compute: an array, or several, from an array of at least one dimension.
        within: how far the results may be apart, in terms of the larger of them and 1; 0 for the
            same bits.
    """

    compute: Callable[[Any], Any]
    within: float = 0


def _drawn(array: Any) -> Any:
    """Numbers from a generator that stands somewhere inside its words, and where it stands then."""
    generator = Generator()
    generator.manual_seed(array.size)
    generator.words(array.size % 700)
    return generator.uniform(32768 + 3 * array.size, array.dtype), generator.state_bytes()


def _normal(array: Any) -> Any:
    blocks = (np.abs(np.resize(array, (8, 16))) % 1).astype(np.float32)
    blocks[~(blocks < 1)] = 0.5
    fill_blocks(blocks, 0.25, 3.0)
    return blocks


def _tame(array: Any, *shape: int) -> Any:
    """The values in a shape, those that no sum overflows with."""
    values = np.resize(array, shape) if shape else array
    return np.where(np.abs(values) < 100, values, 0.5).astype(array.dtype)


def _factors(array: Any) -> Any:
    values = np.resize(array, (3, 9, 7)) if array.size else np.zeros((0, 9, 7), array.dtype)
    return [
        each
        for dtype in (np.float32, np.float64)
        for matrices in (values, values[:, :7], values[:, :5], values[:, :3, :3])
        for each in linear_systems.lu_arrays(matrices.astype(dtype))
    ]


def _regular(array: Any, dtype: Any) -> Any:
    """Matrices with inverses of ordinary size."""
    return (_tame(array, 2, 43, 43) / 100 + 8 * np.eye(43)).astype(dtype)


def _solutions(array: Any, dtype: Any) -> Any:
    matrices = _regular(array, dtype)
    return [
        linear_systems.substituted(triangles, right, upper, unit, by_columns)
        for triangles in (matrices / 8, matrices.swapaxes(1, 2) / 8, matrices[:, :3, :3])
        for width in (1, 3, 43)
        for right in (matrices[:, : triangles.shape[1], :width],)
        for upper in (True, False)
        for unit in (True, False)
        for by_columns in (True, False)
    ]


def _cholesky_factors(array: Any, dtype: Any) -> Any:
    matrices = _regular(array, dtype)
    definite = matrices @ matrices.swapaxes(1, 2)
    definite[1, 30, 30] *= 1 if array.size % 2 else -1
    some = definite, definite[:, 5:13, 5:13], definite[:, :1, :1]
    return [each for one in some for each in triangular._cholesky_array(one, array.size % 3 == 0)]


def _line(array: Any, length: int) -> Any:
    """Numbers for weights and gradients that depend on the array."""
    return np.cos(np.arange(length) + array.size).astype(array.dtype)


def _step_of_adam(array: Any) -> Any:
    group = {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False}
    found = []
    for decoupled in (False, True):
        parameter = array.copy()
        state: dict[str, Any] = {}
        step = partial(Adam.update, object.__new__(Adam), parameter)
        for slope in (array, _tame(array)):
            step(slope, state, {**group, "decoupled_weight_decay": decoupled})
        found += [parameter, state["exp_avg"].array, state["exp_avg_sq"].array]
    return found


def _add_scaled(array: Any) -> Any:
    total = array.copy()
    add_scaled(total, _tame(array), 0.3)
    return total


def _layer_norm(array: Any) -> Any:
    values = _tame(array)
    weight = _line(array, array.shape[-1])
    kind = layer.RowStatistics(
        values.shape, (array.ndim - 1,), (1,) * (array.ndim - 1) + weight.shape, 1e-5
    )
    return _normalised(formula.normalised, array, values, weight, kind)


def _normalised(function: Any, array: Any, values: Any, weight: Any, kind: Any) -> Any:
    """What one of the functions makes of values, with each of weight and bias or without, and the
    gradients.
    """
    pairs = (weight, weight + 1), (weight, None), (None, weight), (None, None)
    found = [function(values, w, b, kind) for w, b in pairs]
    _, mean, rstd = found[0]
    grad = _line(array, values.size).reshape(values.shape)
    for one in (weight, None):
        needs = (True, one is not None, True)
        found.append(
            formula.normalised_backward(grad, values, mean, rstd, one, weight, kind, needs)
        )
    return [array / max(1, np.abs(array).max(initial=0)) for each in found for array in each]


def _batch_norm(array: Any) -> Any:
    values = _tame(array, 3, 5, 4, 1 + array.size % 9)
    weight = _line(array, 5)
    kind = batch.ChannelStatistics(values.shape, (0, 2, 3), (1, 5, 1, 1), 1e-5)
    return _normalised(formula.normalised_by_channel, array, values, weight, kind)


def _convolutions(array: Any) -> Any:
    found: list[Any] = []
    if array.ndim < 3:
        return found
    for rows, columns, above, before in ((3, 3, 1, 1), (1, 1, 0, 0), (2, 5, 0, 2)):
        images = _tame(array, 4, 9, 11, 13)
        weight = _line(array, 10 * 9 * rows * columns).reshape(10, 9, rows, columns)
        windows = Windows((rows, columns), (1, 1), (above, before), (1, 1))
        counts = windows.counts(images.shape[2:])
        made = convolution.convolve(images, weight, windows, 1, counts, _line(array, 10))
        found += [
            made,
            convolution.input_gradient(made, weight, windows, 1, images.shape[2:]),
            convolution.weight_gradient(images, made, windows, 1),
            *[convolution.weight_gradient(images[:, :few], made, windows, 1) for few in (1, 2)],
        ]
    return [array / max(1, np.abs(array).max()) for array in found]


def _products(array: Any) -> Any:
    """Products of matrices by rows and by columns; tiles begin before their edges, the last ones
    have fewer vectors, and long sums are taken in parts. What lies far apart is copied first.
    """
    found = []
    for rows, inner, columns in ((130, 97, 101), (43, 700, 80), (517, 9, 530)):
        left, right = _tame(array, rows, inner), _line(array, inner * columns)
        right = right.reshape(inner, columns)
        assert left.size * columns >= matrix_products.MIDDLE
        found += [
            matrix_products.matrix_product(one, other)
            for one in (left, np.asfortranarray(left))
            for other in (right, np.asfortranarray(right))
        ]
    return [each / max(1, np.abs(each).max()) for each in found]


def _attention(array: Any) -> Any:
    rows = np.resize(array, (2, 3, 8, 16))
    mask = np.where(np.tri(8, 16, array.size % 9 - 4) > 0, 0, -np.inf).astype(array.dtype)
    found = [
        attention._weights_of_heads(rows, np.resize(rows, (2, 3, 16, 16)), m, 0.3)
        for m in (mask, None)
    ]
    return [*found, attention._safe_softmax_array(rows, 3)]


def _heads(array: Any) -> Any:
    """Attention by blocks of queries, masked for all heads, for each, or for each sample."""
    rng = np.random.default_rng(8)
    found: list[Any] = []
    cases: list[tuple[int, int, int, list[tuple[int, ...] | None]]] = [
        (70, 77, 16, [None, (70, 77), (3, 70, 77), (2, 3, 70, 77)]),
        (140, 48, 53, [(140, 48), (2, 1, 1, 48), (2, 1, 140, 48), (1, 3, 140, 48)]),
    ]
    for length, keys, features, masks in cases:
        query = np.sin(_tame(array, 2, length, 3, features)).swapaxes(1, 2)
        key, value = np.cos(_tame(array, 2, 2, 3, keys, features))
        grad = _line(array, query.size).reshape(query.shape)
        causal = np.tri(length, keys, -3) > 0
        for shape in masks:
            mask = None
            if shape is not None:
                shown = causal[-shape[-2] :] | (rng.random(shape) < 0.01)
                mask = np.where(shown, 0, -np.inf).astype(array.dtype)
            out = attention.attended(query, key, value, mask, 0.3)
            operands = (grad, query, key, value, out, mask, 0.3)
            found += [out, *attention.attention_gradients(*operands)]
    return found


def _pools(array: Any) -> Any:
    images = np.resize(array, (2, 3, 9, 8))
    found = []
    for kernel, stride, padding, dilation in (
        ((2, 2), (2, 2), (0, 0), (1, 1)),
        ((3, 2), (1, 3), (1, 0), (1, 2)),
        ((3, 3), (2, 2), (1, 1), (2, 3)),
    ):
        windows = Windows(kernel, stride, padding, dilation)
        values, indices = pooling.largest_of_windows(images, windows, array.size % 2 == 0)
        slopes = _line(array, values.size).reshape(values.shape)
        found += [values, indices, pooling._put_at(slopes, images, indices, 2, windows.apart())]
    return found


def _put(array: Any) -> Any:
    """Values at places along the last dimension, of which the last one of several stays."""
    if not array.ndim or not array.size:
        return []
    whole = np.ones_like(array)
    places = np.arange(array.size).reshape(array.shape) * 7 % array.shape[-1]
    few = np.ascontiguousarray(places[..., :2])
    return [
        along._scattered(whole, dim, index, array)
        for dim, index in ((-1, places), (array.ndim - 1, few), (-1, few[:1]), (0, few * 0))
    ]


def _added(array: Any) -> Any:
    """Elements and rows added to those of a table, some of them several times."""
    found = []
    for rows, width in ((array.size, 1), (len(array), array.size // max(1, len(array)))):
        at = np.arange(rows, dtype=np.int64) * 7 % 5 - rows % 3
        table = np.resize(array[::-1], (5, width))
        values = array.reshape(rows, width)
        basic.add_rows(table, at, values)
        basic.add_at(table, at[:, None] % 5 * width + np.arange(width), values)
        found.append(table)
    return found


def _lstm(array: Any) -> Any:
    values = _tame(array, 6, 3, 4) / 4
    weights = _line(array, 4 * 5 * 9).reshape(20, 9)
    first = values[0, :, :1] + np.zeros(5, array.dtype)
    given = values, weights[:, :4].copy(), weights[:, 4:].copy()
    found: list[Any] = []
    for reverse in (False, True):
        made = recurrent.lstm_layer(*given, _line(array, 20), (first, first + 1), reverse)
        output, hidden, cell, kept = made
        for grads in ((output + 1, hidden, cell), (None, None, cell), (output, None, None)):
            found += recurrent.lstm_layer_gradients(
                grads, *given, (first, first + 1), output, kept, reverse
            )
        found += made
    return found


OF_UFUNCS = ("add", "sub", "mul", "div", "maximum", "minimum", "lt", "ge", "eq")


def _half_precision(array: Any) -> list[Any]:
    """Conversions, and ufuncs of operands that lie in memory alike, otherwise, or are numbers."""
    found = []
    for dtype in (np.dtype(np.float16), dtypes.bfloat16.numpy_dtype):
        if array.dtype == np.float32:
            found.append(half.converted(array, dtype))
        x = array.astype(dtype)
        found.append(half.converted(x[::-1], np.float32))
        for op in map(registry.__getitem__, OF_UFUNCS):
            for y in (x[::-1].copy(), x[::-1], x[:1], *x[:1], dtype.type(-0.0), dtype.type(2.5)):
                for one, other in ((x, y), (y, x)):
                    made = half.computed(op.ufunc, one, other)
                    found.append(op.forward(one, other) if made is None else made)
    return [each.astype(np.float32) if each.dtype.itemsize == 2 else each for each in found]


ROWS = {
    "half_to_single, single_to_half, half_arithmetic": Row(_half_precision),
    "lstm_step, lstm_step_backward": Row(_lstm, 2e-5),
    "softmax": Row(lambda x: [softmax._softmax_array(x, x.ndim - 1), *_attention(_tame(x))], 1e-6),
    "softmax_backward": Row(
        lambda x: softmax._softmax_backward_array(_tame(x), np.cos(_tame(x)), x.ndim - 1), 1e-4
    ),
    "attention, attention_backward": Row(_heads, 1e-5),
    "max_pool, add_at": Row(_pools, 1e-6),
    "add_at": Row(_added),
    "put_at": Row(_put),
    "gelu": Row(lambda x: activations._gelu_array(x, "none", True), 2e-7),
    "gelu_backward": Row(
        lambda x: activations._gelu_backward_array(x, x[::-1].copy(), "none"), 4e-7
    ),
    "erf": Row(error_functions._erf_array, 2e-7),
    "erf_wide": Row(lambda x: error_function.erf(x.astype(np.float64)), 4e-16),
    "erfc_wide": Row(lambda x: error_function.erfc(x.astype(np.float64)), 1e-15),
    "lgamma_wide": Row(lambda x: gamma.gammaln(_tame(x).astype(np.float64)), 4e-15),
    "quotient": Row(lambda x: error_function.erfcx(x.astype(np.float64))),
    "eliminate, eliminate_wide": Row(_factors),
    "substitute": Row(lambda x: _solutions(x, np.float32), 2e-6),
    "substitute_wide": Row(lambda x: _solutions(x, np.float64), 4e-15),
    "cholesky": Row(lambda x: _cholesky_factors(x, np.float32), 1e-7),
    "cholesky_wide": Row(lambda x: _cholesky_factors(x, np.float64), 2e-14),
    "adam": Row(_step_of_adam),
    "add_scaled": Row(_add_scaled),
    "layer_norm, layer_norm_backward": Row(_layer_norm, 2e-5),
    "batch_moments, batch_norm, batch_norm_backward": Row(_batch_norm, 2e-5),
    "matrix_product": Row(_products, 2e-6),
    "convolution, weight_gradient": Row(_convolutions, 2e-6),
    "running_sum": Row(lambda x: cumulative._accumulated(np.add, x, x.ndim - 1, None)),
    "running_sum, first dimension": Row(lambda x: cumulative._accumulated(np.add, x, 0, None)),
    "running_sum, backwards": Row(lambda x: cumulative._sum_from_the_end(x, 0)),
    "sorted_rows": Row(lambda x: sorting._sort_array(x, x.ndim - 1, False, False)),
    "sorted_rows, falling": Row(lambda x: sorting._sort_array(x, 0, True, False)),
    "sorted_rows, stable": Row(lambda x: sorting._sort_array(x, 0, False, True)),
    "selected_rows": Row(lambda x: sorting._topk_array(x, min(2, len(x)), 0, True, True)),
    "selected_rows, many": Row(lambda x: sorting._topk_array(x, (1 + len(x)) // 2, 0, False, True)),
    "mersenne_seed, mersenne_words, mersenne_uniform": Row(_drawn),
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
    apart = np.frombuffer(b"_" + rng.standard_normal(700).astype(np.float32).tobytes(), np.uint8)
    yield apart[1:].view(np.float32).reshape(20, 35)  # not aligned
    yield np.zeros((0, 3), np.float32)
    yield rng.standard_normal((6, 3001)).astype(np.float32)
    yield np.round(rng.standard_normal((300, 400)).astype(np.float32), 1)
    yield rng.standard_normal((5, 6))  # float64


def _with(kernels: Any, compute: Callable[[Any], Any], array: Any) -> Any:
    """What is computed with some kernels in C."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "_kernels", kernels)
        return compute(array)


def _check(found: Any, wanted: Any, within: float) -> None:
    if isinstance(wanted, tuple | list):
        for one, other in zip(found, wanted, strict=True):
            _check(one, other, within)
    elif isinstance(wanted, bytes) or not within:
        found, wanted = np.asarray(found), np.asarray(wanted)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        if wanted.dtype.kind == "f":
            here = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found)[here], np.signbit(wanted)[here])
    else:
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, within, within)


@built
@pytest.mark.parametrize("level", sampled(LEVELS, 2))
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_as_in_python(row: Row, level: str) -> None:
    if CORE.use(level) != level:
        pytest.skip(f"this processor has no {level}")
    try:
        with np.errstate(all="ignore"):
            for array in _arrays():
                before = array.copy()
                found = _with({name: getattr(CORE, name) for name in NAMES}, row.compute, array)
                np.testing.assert_array_equal(array, before)
                wanted = _with(dict.fromkeys(NAMES), row.compute, array)
                _check(found, wanted, row.within)
    finally:
        CORE.use("")


@built
@pytest.mark.parametrize("level", sampled(LEVELS, 2))
def test_conversions_keep_every_bit(level: str) -> None:
    """All 65,536 of float16; and for each pattern of 19 bits of float32, of 16 for bfloat16, what
    lies next to it, next to the middle of it and the following, and in that middle. Among these are
    overflows, subnormals and nans.
    """
    if CORE.use(level) != level:
        pytest.skip(f"this processor has no {level}")
    try:
        every = np.arange(1 << 16, dtype=np.uint16)
        singles = half.converted(every.view(np.float16), np.float32)
        wanted = every.view(np.float16).astype(np.float32)
        np.testing.assert_array_equal(singles.view(np.uint32), wanted.view(np.uint32))
        for dtype, kept in ((np.dtype(np.float16), 19), (dtypes.bfloat16.numpy_dtype, 16)):
            one = 1 << (32 - kept)
            ends = np.array([0, 1, one // 2 - 1, one // 2, one // 2 + 1, one - 1], np.uint32)
            near = (np.arange(1 << kept, dtype=np.uint32)[:, None] * np.uint32(one) + ends).ravel()
            for values in (near.view(np.float32), near[near % (1 << 31) <= 0x7F800000]):
                found = half.converted(values.view(np.float32), dtype)
                with np.errstate(all="ignore"):
                    wanted = values.view(np.float32).astype(dtype)
                np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))
    finally:
        CORE.use("")


@built
def test_half_precision_in_tiles() -> None:
    """What is shared among threads, with an operand that each tile repeats."""
    x = np.random.default_rng(6).standard_normal((600, 500)).astype(np.float16)
    assert x.size > TILE
    for other in (x[::-1].copy(), x[0], x.dtype.type(0.3)):
        np.testing.assert_array_equal(half.computed(np.multiply, x, other), x * other)
    np.testing.assert_array_equal(half.converted(x, np.float32), x.astype(np.float32))


@built
@pytest.mark.parametrize("sizes", [(173, 863, 901), (301, 250, 901)])
@pytest.mark.parametrize("level", LEVELS)
def test_products_of_more_than_is_packed_at_once(level: str, sizes: tuple[int, ...]) -> None:
    """Sums in two parts, and more strips than stay near, one of them with columns of another; and
    sums of one part, of a left matrix that is packed too.
    """
    rows, inner, columns = sizes
    rng = np.random.default_rng(8)
    left = rng.standard_normal((rows, inner), np.float32)
    right = rng.standard_normal((inner, columns), np.float32)
    wanted = left.astype(np.float64) @ right.astype(np.float64)
    operands = (left, right), (left.T.copy(), right), (left, right.T.copy())
    if CORE.use(level) != level:
        pytest.skip(f"this processor has no {level}")
    try:
        for turned, (one, other) in enumerate(operands):
            alone, shared = (np.empty((rows, columns), np.float32) for _ in range(2))
            CORE.matrix_product(one, other, alone, rows, inner, columns, turned, 1)
            CORE.matrix_product(one, other, shared, rows, inner, columns, turned, 2)
            np.testing.assert_allclose(alone, wanted, 0, 1e-4)
            np.testing.assert_array_equal(alone, shared)
    finally:
        CORE.use("")


@built
@pytest.mark.parametrize(("level", "serves"), [("avx512", True), ("avx2", False)])
def test_large_products_are_the_cores_where_it_was_measured(
    level: str, serves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not CORE.serves("matrix_product"):
        pytest.skip("this processor has no fused multiply-add")
    monkeypatch.setattr(in_c, "level", lambda: level)
    x = np.ones((512, 512), np.float32)
    assert in_c.matrix_product(x, x[:, :500].copy()) is not None
    assert (in_c.matrix_product(x, x) is not None) is serves


SHARED = """
import os
import numpy as np
from gradcli.arrays.native import dispatch

x, y = np.random.default_rng(7).standard_normal((2, 300, 300)).astype(np.float32)

def product(turned, threads):
    out = np.empty((300, 300), np.float32)
    dispatch.core().matrix_product(x, y, out, 300, 300, 300, turned, threads)
    return out.tobytes()

def step(of_adam, threads):
    parameter, average, square = x.copy(), y.copy(), y * y
    if of_adam:
        numbers = 0.1, 0.9, 0.9, 0.99, 0.5, 1e-8, 0.1
        dispatch.core().adam(parameter, y, average, square, *numbers, threads)
    else:
        dispatch.core().add_scaled(x, y, 0.3, parameter, threads)
    return [each.tobytes() for each in (parameter, average, square)]

def attention(threads):
    gradients = np.empty((3, 300, 300), np.float32)
    sizes = 2, 180, 180, 50, 1, 1, 0.3, threads
    dispatch.core().attention_backward(x, y, x, y, None, *gradients, *sizes)
    return gradients.tobytes()

def result(kind, threads):
    if kind == 5:
        return attention(threads)
    return product(kind, threads) if kind < 3 else step(kind == 4, threads)

alone = [result(kind, 1) for kind in range(6)]
def check():
    for count in range(100):
        assert result(count % 6, 2 + count % 7) == alone[count % 6], count
check()
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
check()
"""


@built
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_threads_change_no_bit() -> None:
    """Neither do they where a process was forked, which leaves the helpers behind."""
    command = [sys.executable, "-W", "ignore", "-c", SHARED]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr


@built
def test_every_kernel_has_a_row() -> None:
    assert set(NAMES) <= {name for row in ROWS for name in row.split(", ")}


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


def test_a_changed_source_is_not_passed_over(tmp_path: Path) -> None:
    """In a checkout, kernels that were built before their sources changed are not used."""
    built, source = tmp_path / "_core.so", tmp_path / "order.h"
    for path in (built, source):
        path.touch()
    os.utime(source, (1, 1))
    assert not dispatch._is_stale(str(built))
    os.utime(built, (0, 0))
    assert dispatch._is_stale(str(built))


def test_turned_off() -> None:
    """The setting leaves the Python kernels, which `gradcli info` says."""
    program = (
        "from gradcli.arrays.native.dispatch import *; print(kernel('running_sum'), description())"
    )
    setting = {**os.environ, "GRADCLI_NATIVE": "0"}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=setting
    )
    assert found.stdout == "None turned off by GRADCLI_NATIVE=0\n"


UNDER_SANITIZERS = """
import importlib.util, pytest, sys
spec = importlib.util.spec_from_file_location("gradcli.arrays.native._core", sys.argv[1])
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
chosen = ["-m", "not sanitizer", "-k", "not many_random"]
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *chosen, *sys.argv[2:]]))
"""


@pytest.mark.sanitizer
def test_under_sanitizers(tmp_path: Path) -> None:
    """This file, flat programs and nodes, with a core that watches each access to memory."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    pytest.importorskip("setuptools")
    from gradcli.build_backend import FLAGS

    library = tmp_path / "_core.so"
    others = [str(Path(__file__).with_name(f"test_{name}.py")) for name in ("flat", "nodes")]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]
    package = Path(dispatch.__file__).parents[2]
    sources = [str(path) for room in dispatch.SOURCES for path in (package / room).glob("*.c")]
    include = f"-I{sysconfig.get_path('include')}"
    command = [compiler, *FLAGS, *sanitizers, "-fPIC", "-shared", include, *sources]
    subprocess.run([*command, "-o", str(library), "-lm", "-pthread"], check=True)
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    setting = {
        **os.environ,
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "GRADCLI_NATIVE": "",
    }
    found = subprocess.run(
        [sys.executable, "-c", UNDER_SANITIZERS, str(library), __file__, *others],
        capture_output=True,
        text=True,
        env=setting,
    )
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    assert "passed" in found.stdout


@built
def test_what_is_written_anew_does_not_depend_on_what_was_there() -> None:
    """Flat programs give the memory of such kernels to others, and take other memory by turns."""
    called = set()

    def twice(name: str, kernel: Any) -> Any:
        def run(*arguments: Any) -> None:
            kinds = [*zip(dispatch.letters(name), arguments, strict=True)]
            read = [each for kind, each in kinds if kind.islower() and type(each) is np.ndarray]
            written = [each for kind, each in kinds if kind.isupper() and each is not None]
            if any(np.may_share_memory(one, other) for one in written for other in read):
                kernel(*arguments)
                return
            called.add(name)
            made = []
            for value in (3, 0xA5):
                for each in written:
                    each.view(np.uint8)[...] = value
                kernel(*arguments)
                made.append([each.tobytes() for each in written])
            assert made[0] == made[1], name

        return run if name in planned.WRITES_ANEW else kernel

    arrays = [each for each in _arrays() if each.shape not in ((130, 70), (300, 400))]
    with dispatch.replaced(twice):
        for row, array in product(ROWS.values(), arrays):
            made = row.compute(array)
            _check(made, made, 0)  # which computes what is deferred
    assert called == planned.WRITES_ANEW & {name for name in NAMES if CORE.serves(name)}
