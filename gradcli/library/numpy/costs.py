"""What NumPy's functions are about to make: elements and work, said before they are called.

An entry takes the arguments of NumPy's function, under NumPy's names, and gives the number of
elements of the result, or that and the work beyond it. A function without an entry makes no more
than its operands broadcast to and hold together. A wrong argument counts for nothing: NumPy refuses
it before it makes anything.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.library.numpy.array import broadcast_size, product_size

Cost = Callable[..., Any]


def count(value: Any) -> int:
    """A number that is given for a count, at least 0."""
    return max(operator.index(value), 0)


def room(shape: Any) -> int:
    """The elements of a shape: an integer or a sequence of them."""
    if shape is None:
        return 1
    try:
        return count(shape)
    except TypeError:
        return math.prod(map(count, shape))


def usual(*args: Any, **kwargs: Any) -> int:
    """The cost of a function that has no entry."""
    values = [*args, *kwargs.values()]
    arrays = [each for each in values if isinstance(each, (np.ndarray, list, tuple))]
    if not arrays:
        return 1
    if len(arrays) == 1 and type(arrays[0]) is np.ndarray:
        return int(arrays[0].size)
    return held(arrays) + broadcast_size(*[each for each in arrays if type(each) is np.ndarray], 0)


def held(values: Any) -> int:
    """The elements of an array, or of what a nested list holds."""
    if isinstance(values, np.ndarray):
        return int(values.size)
    if isinstance(values, (list, tuple, range)):
        nested = any(isinstance(each, (list, tuple, range, np.ndarray)) for each in values)
        return sum(map(held, values)) if nested else len(values)
    return 1


def _arange(start: Any, stop: Any = None, step: Any = 1, **_: Any) -> int:
    first, last = (0, start) if stop is None else (start, stop)
    length = (last - first) / (1 if step is None else step)
    return math.ceil(abs(length)) if np.isfinite(length) else 0


def _einsum(subscripts: Any, *operands: Any, **_: Any) -> tuple[int, int]:
    """The sizes of the letters give the elements of the result, and of the whole sum."""
    if not isinstance(subscripts, str):
        raise TypeError("in this language einsum takes its subscripts as a string")
    terms, arrow, result = subscripts.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    dots = 1
    for term, value in zip(terms.split(","), operands, strict=True):
        shape = list(np.shape(value))
        before, ellipsis, after = term.partition("...")
        if ellipsis:
            hidden = shape[len(before) : len(shape) - len(after)]
            dots = max(dots, math.prod(hidden))
            shape[len(before) : len(shape) - len(after)] = []
        for letter, size in zip(before + after, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    letters = terms.replace(",", "").replace("...", "")
    kept = set(result.replace("...", "")) if arrow else {x for x in letters if letters.count(x) < 2}
    whole = dots * math.prod(sizes.values())
    return dots * math.prod(sizes[letter] for letter in kept), whole


def _like(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, **_: Any
) -> int:
    return max(held(a), room(shape))


def _histogram(a: Any, bins: Any = 10, *_: Any, **__: Any) -> int:
    if isinstance(bins, str):  # as many as the values ask for, which nobody knows before
        return held(a) + 10**6
    return held(a) + (room(bins) if np.ndim(bins) == 0 else held(bins))


def _bins(sample: Any, bins: Any = 10, **_: Any) -> int:
    each = [count(b) if np.ndim(b) == 0 else held(b) for b in (bins if np.ndim(bins) else [bins])]
    return held(sample) + (math.prod(each) if len(each) > 1 else each[0] ** 2)


def _tensordot(a: Any, b: Any, axes: Any = 2) -> tuple[int, int]:
    left, right = np.shape(a), np.shape(b)
    if np.ndim(axes) == 0:
        summed = left[len(left) - count(axes) :]
    else:
        summed = tuple([left[axis] for axis in np.atleast_1d(axes[0])])
    inner = max(math.prod(summed), 1)
    elements = math.prod(left) // inner * (math.prod(right) // inner)
    return elements, elements * inner >> 6


def _repeat(a: Any, repeats: Any, axis: Any = None) -> int:
    times = np.asarray(repeats)
    if times.ndim == 0:
        return held(a) * count(times[()])
    along = held(a) if axis is None else np.shape(a)[axis]
    total = sum(map(count, times.reshape(-1)))
    return total * (held(a) // max(along, 1)) * (along if times.size == 1 else 1)


def _pad(array: Any, pad_width: Any, *_: Any, **__: Any) -> int:
    if isinstance(pad_width, dict):
        raise TypeError("in this language pad_width is an integer or pairs of them")
    widths = np.broadcast_to(np.asarray(pad_width), (np.ndim(array), 2))
    return math.prod(
        size + count(before) + count(after)
        for size, (before, after) in zip(np.shape(array), widths, strict=True)
    )


def _square(a: Any, *_: Any, **__: Any) -> tuple[int, int]:
    """A decomposition of matrices: their elements, and a cube of work for each."""
    shape = np.shape(a)
    size = math.prod(shape)
    return 3 * size + max(shape[-2:], default=1) ** 2, size * max(shape[-2:], default=1) >> 3


def _diag(v: Any, k: Any = 0) -> int:
    shape = np.shape(v)
    return (shape[0] + abs(operator.index(k))) ** 2 if len(shape) == 1 else held(v)


def _transform(a: Any, n: Any = None, axis: Any = -1, *_: Any, **__: Any) -> tuple[int, int]:
    size = held(a)
    along = max(np.shape(a)[axis], 1)
    elements = size // along * max(along, 2 * count(n)) if n is not None else 2 * size
    return elements, 16 * elements


def _transforms(a: Any, s: Any = None, *_: Any, **__: Any) -> tuple[int, int]:
    elements = max(2 * held(a), 2 * (room(s) if s is not None else 0) * held(a))
    return elements, 16 * elements


def _covariance(m: Any, y: Any = None, rowvar: Any = True, *_: Any, **__: Any) -> tuple[int, int]:
    shape = np.shape(m)
    rows = (shape[0] if rowvar else shape[-1]) if len(shape) > 1 else 1
    more = 0 if y is None else np.shape(y)[0]
    return (rows + more) ** 2 + held(m), (rows + more) * held(m) >> 6


def _matrix_power(a: Any, n: Any) -> tuple[int, int]:
    size, work = _square(a)
    return size, work * max(operator.index(n).bit_length(), 1)


def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> int:
    places = held(obj) if not isinstance(obj, slice) else held(arr)
    return (held(arr) + held(values)) * (1 if axis is None else max(1, places))


def _sections(ary: Any, indices_or_sections: Any, *_: Any) -> tuple[int, int]:
    parts = held(indices_or_sections)
    if np.ndim(indices_or_sections) == 0:
        parts = count(indices_or_sections)
    return max(held(ary), parts), parts << 10


_COSTS: dict[str, Cost] = {
    "arange": _arange,
    "array_split dsplit hsplit split vsplit": _sections,
    "bincount": lambda x, weights=None, minlength=0: (
        max(int(np.max(np.asarray(x), initial=0)) + 1, count(minlength)) + held(x)
    ),
    "bartlett blackman hamming hanning": count,
    "broadcast_to": lambda array, shape, **_: room(shape),
    (
        "cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_rank pinv qr slogdet "
        "solve svd svdvals tensorinv"
    ): _square,
    "convolve correlate": lambda a, v, *_: (held(a) + held(v), held(a) * held(v) >> 2),
    "corrcoef cov": _covariance,
    "diag": _diag,
    "diag_indices": lambda n, ndim=2: count(n) * count(ndim),
    "diagflat": lambda v, k=0: (held(v) + abs(operator.index(k))) ** 2,
    "dot": product_size,
    "einsum": _einsum,
    "empty full ones zeros": lambda shape, *_, **__: room(shape),
    "empty_like": lambda prototype, *more, **named: _like(prototype, *more, **named),
    "eye tri": lambda N, M=None, *_, **__: count(N) * (count(N) if M is None else count(M)),
    "fft hfft ifft ihfft irfft rfft": _transform,
    "fft2 fftn ifft2 ifftn irfft2 irfftn rfft2 rfftn": _transforms,
    "fftfreq rfftfreq": lambda n, *_, **__: count(n),
    "full_like": lambda a, fill_value, *more, **named: _like(a, *more, **named),
    "geomspace linspace logspace": lambda start, stop, num=50, *_, **__: (
        count(num) * broadcast_size(start, stop)
    ),
    "histogram histogram_bin_edges": _histogram,
    "histogram2d": lambda x, y, bins=10, *_, **__: held(y) + _bins(x, bins),
    "identity": lambda n, *_, **__: count(n) ** 2,
    "indices": lambda dimensions, *_, **__: held(dimensions) * room(dimensions),
    "inner": lambda a, b: (
        held(a) * held(b) // max(np.shape(a)[-1:] + np.shape(b)[-1:] + (1,)) ** 2,
        held(a) * held(b) // max(1, *np.shape(a)[-1:]) >> 6,
    ),
    "insert": _insert,
    "interp": lambda x, xp, fp, *_, **__: held(x) + held(xp),
    "isin": lambda element, test_elements, *_, **__: 2 * (held(element) + held(test_elements)),
    "ix_": lambda *args: sum(map(held, args)),
    "kaiser": lambda M, beta: count(M),
    "kron": lambda a, b: held(a) * held(b),
    "matmul": lambda a, b, *_, **__: product_size(a, b),
    "matrix_power": _matrix_power,
    "meshgrid": lambda *xi, **_: len(xi) * math.prod(map(held, xi)),
    "multi_dot": lambda arrays, **_: max(product_size(a, b) for a in arrays for b in arrays),
    "nanpercentile nanquantile percentile quantile": lambda value, q, *_, **__: (
        held(value) * (1 if np.ndim(q) == 0 else max(1, held(q)))
    ),
    "ones_like zeros_like": _like,
    "outer": lambda a, b, *_: held(a) * held(b),
    "pad": _pad,
    "poly": lambda seq: (held(seq), held(seq) ** 2),
    "polydiv": lambda u, v: (held(u) + held(v), held(u) * held(v)),
    "polyfit": lambda x, y, deg, *_, **__: (
        held(y) + held(x) * (1 + room(deg)),
        held(x) * (1 + room(deg)) ** 2 >> 4,
    ),
    "polymul": lambda a1, a2: (held(a1) + held(a2), held(a1) * held(a2)),
    "polyval": lambda p, x: (held(x), held(p) * held(x)),
    "repeat": _repeat,
    "resize": lambda a, new_shape: room(new_shape),
    "roots": lambda p: (held(p) ** 2, held(p) ** 3 >> 3),
    "take": lambda a, indices, axis=None, *_, **__: (
        held(indices) * (1 if axis is None else held(a) // max(1, np.shape(a)[axis]))
    ),
    "tensordot": _tensordot,
    "tile": lambda A, reps: held(A) * room(reps),
    "tril_indices triu_indices": lambda n, k=0, m=None: (
        2 * count(n) * (count(n) if m is None else count(m))
    ),
    "unravel_index": lambda indices, shape, *_: held(indices) * max(1, held(shape)),
    "vander": lambda x, N=None, *_, **__: held(x) * (held(x) if N is None else count(N)),
    "vdot": lambda a, b: (1, held(a)),
}

COSTS = {name: cost for names, cost in _COSTS.items() for name in names.split()}
"""The costs by the names of the functions."""


def cost_of(name: str, args: Any, kwargs: dict[str, Any]) -> tuple[int, int]:
    """The elements and the work of a call with unwrapped arguments."""
    cost: Cost = COSTS.get(name, usual)
    try:
        total = cost(*args, **kwargs)
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
        if name in ("einsum", "pad"):  # NumPy takes more there than is counted
            raise
        total = usual(*args, **kwargs)
    elements, work = total if isinstance(total, tuple) else (total, 0)
    return int(elements), int(work)
