"""The expressions that random programs are made of: one row each, by family.

A row is a template, the shape of its result (that of `$x` unless it says another), the kinds of
dtype and the numbers of dimensions that `$x` may have. `writing.py` says what the slots mean.
"""

from __future__ import annotations

import numpy as np

from tests.differential.values import Shape
from tests.differential.writing import Filled, Row, scalar

# --- shapes of results ----------------------------------------------------------------------------


def broadcast(filled: Filled) -> Shape:
    """The shape of `$x` and `$y` together."""
    return np.broadcast_shapes(filled["x"].shape, filled["y"].shape)


def dropped(filled: Filled) -> Shape:
    """The shape of `$x` without `$dim`."""
    shape, dim = filled["x"].shape, filled["dim"]
    return tuple(size for i, size in enumerate(shape) if i != dim % max(1, len(shape)))


def kept(filled: Filled) -> Shape:
    """The shape of `$x` with `$dim` shrunk to one element."""
    shape, dim = filled["x"].shape, filled["dim"]
    return tuple(1 if i == dim % len(shape) else size for i, size in enumerate(shape))


def indexed(filled: Filled) -> Shape:
    """The shape that the index gives."""
    return filled["indexed"]


def flat(filled: Filled) -> Shape:
    """All elements in one dimension."""
    return (filled["elements"],) if "elements" in filled else (int(np.prod(filled["x"].shape)),)


def turned(filled: Filled) -> Shape:
    """The last two dimensions of `$x` swapped."""
    shape = filled["x"].shape
    return (*shape[:-2], *shape[:-3:-1])


def backwards(filled: Filled) -> Shape:
    """All dimensions of `$x` in reverse order."""
    return filled["x"].shape[::-1]


def multiplied(filled: Filled) -> Shape:
    """The shape of `$x @ $factor`."""
    return (*filled["x"].shape[:-1], filled["factor"].shape[-1])


def rows(text: str, *names: str, **settings: object) -> list[Row]:
    """One row for each of the names, parted by spaces, that can stand for `NAME` in the text."""
    every = " ".join(names).split()
    return [Row(text.replace("NAME", name), **settings) for name in every]  # type: ignore[arg-type]


def square(shape: Shape) -> bool:
    """Whether the last two dimensions are equal and not empty."""
    return len(shape) >= 2 and shape[-1] == shape[-2] > 0


def filled_dimensions(shape: Shape) -> bool:
    """Whether there is at least one element."""
    return 0 not in shape


# --- the tables -----------------------------------------------------------------------------------

ARITHMETIC = [
    *[Row("$x $operator $y", broadcast)] * 8,
    *[Row("$y $operator $x", broadcast)] * 2,
    Row("$x + $number"),
    Row("$number - $x"),
    Row("$x * $number"),
    Row("$number / $x"),
    Row("$x / $number"),
    Row("$x ** $exponent"),
    Row("$x ** $y", broadcast),
    Row("2 ** $x"),
    Row("-$x"),
    Row("$x % $number"),
    Row("$x // $number"),
    Row("($x + $y) * $x", broadcast),
    Row("torch.add($x, $y, alpha=$number)", broadcast),
    Row("torch.sub($x, $y)", broadcast),
    Row("torch.maximum($x, $y)", broadcast),
    Row("torch.minimum($x, $y)", broadcast),
    Row("torch.atan2($x, $y)", broadcast),
    Row("torch.hypot($x, $like)"),
    Row("torch.addcmul($x, $like, $like, value=$number)"),
    Row("torch.addcdiv($x, $like, $like1)"),
    Row("torch.lerp($x, $like, $number)"),
    Row("torch.fmod($x, $number)"),
    Row("torch.remainder($x, $y)", broadcast),
    Row("$x.true_divide($y)", broadcast),
    Row("torch.div($x, $y, rounding_mode='floor')", broadcast),
    Row("torch.div($x, $number, rounding_mode='trunc')"),
    Row("$x.pow($exponent)"),
    Row("$x.rsub($number)"),
    Row("torch.logaddexp($x, $y)", broadcast),
    Row("torch.copysign($x, $like)"),
    Row("torch.fmax($x, $y)", broadcast),
    Row("torch.xlogy($x, $y)", broadcast),
]

POINTWISE = [
    *rows(
        "torch.NAME($x)",
        "exp log sqrt sin cos tan tanh sigmoid relu abs neg square reciprocal rsqrt log1p",
        "expm1 sign floor ceil round trunc frac erf erfc atan asin acos sinh cosh log2",
        "log10 exp2 asinh atanh digamma lgamma sinc nan_to_num deg2rad",
    ),
    *rows("$x.NAME()", "exp log sqrt sin cos tanh sigmoid relu abs neg square rsqrt erf"),
    *rows(
        "F.NAME($x)",
        "softplus elu leaky_relu silu gelu softsign hardtanh relu6 selu celu mish",
        "hardswish hardsigmoid logsigmoid tanhshrink hardshrink softshrink relu",
    ),
    Row("F.gelu($x, approximate='tanh')"),
    Row("F.leaky_relu($x, 0.2)"),
    Row("F.elu($x, alpha=$number)"),
    Row("F.threshold($x, 0.5, -1.0)"),
    Row("$x.clamp(-1, 1.5)"),
    Row("torch.clamp($x, min=$number)"),
    Row("$x.clamp(max=$number)"),
    Row("torch.clamp($x, min=$like)"),
    Row("$x.round(decimals=1)"),
    Row("$x.clone()"),
    Row("$x.detach()"),
    Row("$x.detach().clone()"),
    Row("$x.contiguous()"),
    Row("torch.where($x > $number, $x, $y)", broadcast),
    Row("torch.where($x $comparison $y, $x, $number)", broadcast),
    Row("$x.masked_fill($x > $number, $literal)"),
    Row("torch.zeros_like($x)"),
    Row("torch.ones_like($x) * $x"),
    Row("torch.full_like($x, $literal)"),
    Row("$x.double()", dtype="float64"),
    Row("$x.float()", dtype="float32"),
    Row("$x.to(torch.float64)", dtype="float64"),
    Row("$x.half()", dtype="float16"),
    Row("$x.to(torch.bfloat16)", dtype="bfloat16"),
    Row("$x.to($x.dtype)"),
    Row("$x.type_as($x)"),
]

REDUCTIONS = [
    *rows("$x.NAME()", "sum", "mean", "prod", "sum", "std", "var", "norm", shape=scalar),
    *rows("$x.NAME()", "max", "min", "amax", "median", shape=scalar, fits=filled_dimensions),
    *rows("torch.NAME($x)", "sum mean", shape=scalar),
    *rows("$x.NAME($dim)", "sum mean prod std var logsumexp", shape=dropped, rank=(1, 3)),
    *rows(
        "$x.NAME($dim, keepdim=True)",
        "sum mean prod std var amax amin",
        shape=kept,
        rank=(1, 3),
        fits=filled_dimensions,
    ),
    *rows(
        "torch.NAME($x, dim=$dim)",
        "amax amin sum mean nansum",
        shape=dropped,
        rank=(1, 3),
        fits=filled_dimensions,
    ),
    *rows(
        "$x.NAME($dim).values",
        "max min median mode",
        shape=dropped,
        rank=(1, 3),
        fits=filled_dimensions,
    ),
    *rows(
        "$x.NAME(dim=$dim)[0]", "max", "min", shape=dropped, rank=(1, 3), fits=filled_dimensions
    ),
    Row("$x.var(unbiased=False)", scalar),
    Row("torch.var($x, $dim, correction=0)", dropped, rank=(1, 3)),
    Row("$x.norm(dim=$dim)", dropped, rank=(1, 3)),
    Row("$x.norm(p=1)", scalar),
    Row("$x.norm(1, $dim)", dropped, rank=(1, 3)),
    Row("torch.linalg.norm($x)", scalar),
    Row("torch.linalg.vector_norm($x, 3)", scalar),
    Row("$x.sum((0, 1))", lambda filled: filled["x"].shape[2:], rank=(2, 3)),
    Row("$x.mean((0, -1))", lambda filled: filled["x"].shape[1:-1], rank=(2, 3)),
    *rows("$x.NAME($dim)", "cumsum", "logcumsumexp", "cumsum", rank=(1, 3)),
    Row("$x.cumprod($dim)", rank=(1, 3)),
    Row("$x.cummax($dim).values", rank=(1, 3)),
    *rows("$x.NAME($dim)", "softmax", "log_softmax", rank=(1, 3)),
    Row("torch.softmax($x, dim=$dim)", rank=(1, 3)),
    Row("F.softmin($x, dim=$dim)", rank=(1, 3)),
    Row("F.normalize($x, dim=$dim)", rank=(1, 3)),
    Row("$x.sort($dim)[0]", rank=(1, 3)),
    Row("$x.sort($dim, descending=True).values", rank=(1, 3)),
    Row("$x.topk(1, $dim).values", kept, rank=(1, 3), fits=filled_dimensions),
    Row("$x.diff(dim=0)", lambda f: (f["x"].shape[0] - 1, *f["x"].shape[1:]), rank=(1, 3),
        fits=lambda shape: shape[0] > 1),
    Row("torch.trapezoid($x)", lambda f: f["x"].shape[:-1], rank=(1, 2), fits=filled_dimensions),
    Row("F.layer_norm($x, $x.shape[-1:])", rank=(1, 3), fits=filled_dimensions),
    Row("torch.renorm($x, 2, 0, 1.5)", rank=(2, 3)),
]  # fmt: skip

VIEWS = [
    Row("$x.reshape(-1)", flat),
    Row("$x.flatten()", flat),
    Row("$x.ravel()", flat),
    Row("$x.T", backwards, rank=(2, 2)),
    Row("$x.t()", backwards, rank=(1, 2)),
    Row("$x.mT", turned, rank=(2, 3)),
    Row("$x.transpose(0, -1)", lambda f: _swapped(f["x"].shape, 0, -1), rank=(1, 3)),
    Row("$x.transpose(-1, -2)", turned, rank=(2, 3)),
    Row("$x.permute(1, 0)", backwards, rank=(2, 2)),
    Row("$x.permute(2, 0, 1)", lambda f: tuple(f["x"].shape[i] for i in (2, 0, 1)), rank=(3, 3)),
    Row("$x.movedim(0, -1)", lambda f: (*f["x"].shape[1:], f["x"].shape[0]), rank=(2, 3)),
    Row("$x.unsqueeze($dim)", lambda f: _unsqueezed(f["x"].shape, f["dim"])),
    Row("$x.squeeze()", lambda f: tuple(size for size in f["x"].shape if size != 1)),
    Row("$x.squeeze($dim)", lambda f: tuple(
        size for i, size in enumerate(f["x"].shape)
        if size != 1 or i != f["dim"] % max(1, len(f["x"].shape)))),
    Row("$x.view(-1, 1)", lambda f: (int(np.prod(f["x"].shape)), 1)),
    Row("$x.reshape(1, -1)", lambda f: (1, int(np.prod(f["x"].shape)))),
    Row("$x.reshape($x.shape)"),
    Row("$x.expand(2, *$x.shape)", lambda f: (2, *f["x"].shape), rank=(0, 2)),
    Row("$x.expand(2, 3)", lambda f: (2, 3),
        fits=lambda shape: shape in ((), (1,), (3,), (1, 3), (2, 1))),
    Row("$x.expand_as(torch.zeros(2, 3))", lambda f: (2, 3), fits=lambda s: s in ((), (3,))),
    Row("$x.narrow(0, 0, 1)", lambda f: (1, *f["x"].shape[1:]), rank=(1, 3),
        fits=lambda shape: shape[0] > 0),
    Row("$x.select($dim, 0)", dropped, rank=(1, 3), fits=filled_dimensions),
    Row("$x.diagonal()", lambda f: (min(f["x"].shape),), rank=(2, 2)),
    Row("torch.diag($x)", lambda f: (min(f["x"].shape),), rank=(2, 2)),
    Row("torch.diag($x)", lambda f: f["x"].shape * 2, rank=(1, 1)),
    Row("$x.unbind($dim)[0]", dropped, rank=(1, 3), fits=filled_dimensions),
    Row("$x.unbind()[-1]", lambda f: f["x"].shape[1:], rank=(1, 3), fits=filled_dimensions),
    Row("$x.split(1)[-1]", lambda f: (1, *f["x"].shape[1:]), rank=(1, 3), fits=filled_dimensions),
    Row("$x.chunk(2)[0]", lambda f: ((f["x"].shape[0] + 1) // 2, *f["x"].shape[1:]), rank=(1, 3),
        fits=filled_dimensions),
    Row("$x.view_as($x)"),
    # Windows that do not overlap: what a write to overlapping ones does PyTorch leaves open.
    Row("$x.unfold(0, 2, 2)", lambda f: (f["x"].shape[0] // 2, 2), rank=(1, 1),
        fits=lambda shape: shape[0] > 1),
    Row("$x.flip(0)", rank=(1, 3)),
    Row("$x.flip($dim)", rank=(1, 3)),
    Row("$x.roll(1, $dim)", rank=(1, 3)),
    Row("$x.repeat(2)", lambda f: (2 * f["x"].shape[0],), rank=(1, 1)),
    Row("$x.repeat(2, 1)", lambda f: (2 * f["x"].shape[0], f["x"].shape[1]), rank=(2, 2)),
    Row("$x.repeat_interleave(2)", lambda f: (2 * int(np.prod(f["x"].shape)),)),
    Row("$x.tril()", rank=(2, 3)),
    Row("$x.triu(1)", rank=(2, 3)),
    Row("F.pad($x, (1, 1))", lambda f: (*f["x"].shape[:-1], f["x"].shape[-1] + 2), rank=(1, 3)),
    Row("$x.as_strided((2,), (1,))", lambda f: (2,), rank=(1, 1), fits=lambda shape: shape[0] > 1),
    Row("torch.rot90($x)", backwards, rank=(2, 2)),
]  # fmt: skip

INDEXING = [
    *[Row("$x[$index]", indexed, rank=(1, 3))] * 4,
    *[Row("$x[$advanced]", indexed, rank=(1, 3), fits=filled_dimensions)] * 3,
    Row("$x[None]", lambda f: (1, *f["x"].shape)),
    Row("$x[..., None]", lambda f: (*f["x"].shape, 1)),
    Row("$x[:, None]", lambda f: (f["x"].shape[0], 1, *f["x"].shape[1:]), rank=(1, 2)),
    Row("$x[$x > 100]", lambda f: (0,)),
    Row("$x.index_select(0, torch.tensor([0, 0]))", lambda f: (2, *f["x"].shape[1:]),
        rank=(1, 3), fits=filled_dimensions),
    Row("$x.gather(0, torch.zeros_like($x, dtype=torch.int64))", rank=(1, 3)),
    Row("torch.take($x, torch.tensor([0, 0]))", lambda f: (2,), fits=filled_dimensions),
    Row("$x.masked_select($x < 100)", flat),
    Row("torch.take_along_dim($x, $x.argsort($dim), $dim)", rank=(1, 3)),
    Row("$x.scatter(0, torch.zeros_like($x, dtype=torch.int64), $number)", rank=(1, 3)),
    Row("$x.scatter_add(0, torch.zeros_like($x, dtype=torch.int64), $like)", rank=(1, 3)),
    Row("$x.index_add(0, torch.tensor([0]), $x[:1])", rank=(1, 3), fits=filled_dimensions),
    Row("$x.index_fill(0, torch.tensor([0]), $number)", rank=(1, 3), fits=filled_dimensions),
]  # fmt: skip

JOINING = [
    Row("torch.cat([$x, $like])", lambda f: (2 * f["x"].shape[0], *f["x"].shape[1:]), rank=(1, 3)),
    Row("torch.cat(($x, $x), dim=-1)",
        lambda f: (*f["x"].shape[:-1], 2 * f["x"].shape[-1]), rank=(1, 3)),
    Row("torch.stack([$x, $like])", lambda f: (2, *f["x"].shape)),
    Row("torch.stack([$x, $like, $x], -1)", lambda f: (*f["x"].shape, 3), rank=(0, 2)),
    Row("torch.hstack([$x, $x])", lambda f: (2 * f["x"].shape[0],), rank=(1, 1)),
    Row("torch.vstack([$x, $like])", lambda f: (2, f["x"].shape[0]), rank=(1, 1)),
    Row("torch.cat([$x.reshape(-1), $y.reshape(-1)])",
        lambda f: (int(np.prod(f["x"].shape) + np.prod(f["y"].shape)),)),
]  # fmt: skip

LOSSES = [
    *rows(
        "F.NAME($x, $like)", "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss",
        shape=scalar,
    ),
    Row("F.mse_loss($x, $like, reduction='sum')", scalar),
    Row("F.l1_loss($x, $like, reduction='none')"),
    Row("F.binary_cross_entropy_with_logits($x, $like.sigmoid())", scalar),
    Row("F.binary_cross_entropy($x.sigmoid(), torch.ones_like($x))", scalar),
    Row("F.cross_entropy($x, torch.zeros($x.shape[0], dtype=torch.int64), reduction='sum')",
        scalar, rank=(2, 2), fits=filled_dimensions),
    Row("F.cross_entropy($x, torch.zeros($x.shape[0], dtype=torch.long), label_smoothing=0.1)",
        scalar, rank=(2, 2), fits=filled_dimensions),
    Row("F.nll_loss($x.log_softmax(1), torch.zeros($x.shape[0], dtype=torch.int64))",
        scalar, rank=(2, 2), fits=filled_dimensions),
    Row("F.kl_div($x.log_softmax(-1), (2 * $like + 1).softmax(-1), reduction='batchmean')",
        scalar, rank=(1, 2), fits=filled_dimensions),
    Row("F.cosine_similarity($x, $like, dim=-1)", lambda f: f["x"].shape[:-1], rank=(1, 2)),
    Row("($x - $y).abs().mean()", scalar),
    Row("($x * $like).sum()", scalar),
    Row("$x.pow(2).sum()", scalar),
]  # fmt: skip

MIXTURES = [
    *[Row("$x $operator $y", broadcast, kinds="ib")] * 2,
    Row("$x * 2", kinds="ib", dtype="int64"),
    Row("$x + 0.5", kinds="ib", dtype="float32"),
    Row("$x / 2", kinds="ib", dtype="float32"),
    Row("$x // 2", kinds="i"),
    Row("$x % 3", kinds="i"),
    Row("$x.sum()", scalar, kinds="ib", dtype="int64"),
    Row("$x.sum($dim)", dropped, kinds="ib", dtype="int64", rank=(1, 3)),
    Row("$x.float()", kinds="ib", dtype="float32"),
    Row("$x.to(torch.float64)", kinds="ib", dtype="float64"),
    Row("$x.exp()", kinds="i", dtype="float32"),
    Row("$x.bool()", kinds="fhi", dtype="bool"),
    Row("$x.long()", kinds="fhb", dtype="int64"),
    Row("$x[$index]", indexed, kinds="ib", rank=(1, 3)),
    Row("$x $comparison $y", broadcast, kinds="fhi", dtype="bool"),
    Row("($x > $number).float()", kinds="fhi", dtype="float32"),
    Row("~$x", kinds="b", dtype="bool"),
    Row("$x & $like", kinds="ib"),
    Row("$x.any()", scalar, kinds="fhib", dtype="bool"),
    Row("$x.argmax()", scalar, kinds="fhi", dtype="int64", fits=filled_dimensions),
    Row(
        "$x.argmax($dim)", dropped, kinds="fhi", dtype="int64", rank=(1, 3), fits=filled_dimensions
    ),
    Row("$x.sort(dim=$dim).indices", kinds="fhi", dtype="int64", rank=(1, 3)),
    Row("torch.isnan($x)", kinds="f", dtype="bool"),
    Row("$x * torch.tensor(2.0, dtype=torch.float64)", kinds="fhi", dtype="float64"),
    Row("$x * torch.tensor(3)", kinds="fhi"),
    Row("$x.cumsum(0)", kinds="i", rank=(1, 3)),
    Row("torch.where($x, 1.0, 2.0)", kinds="b", dtype="float32"),
    Row("F.one_hot($x.abs())", lambda f: (0,), kinds="i", rank=(1, 1), dtype="int64"),
    Row("torch.arange($count) + $x.sum()", lambda f: (2,), kinds="fhi"),
]

CREATION = [
    Row("torch.zeros(2, 3) + $x", lambda f: (2, 3), fits=lambda s: s in ((), (3,), (1, 3))),
    Row("torch.ones($x.shape) * $x"),
    Row("torch.arange($count)", lambda f: (2,), dtype="int64"),
    Row("torch.arange(0, 1, 0.25)", lambda f: (4,), dtype="float32"),
    Row("torch.linspace(-1, 1, 3)", lambda f: (3,), dtype="float32"),
    Row("torch.eye($count)", lambda f: (2, 2), dtype="float32"),
    Row("torch.full((2, 2), $literal)", lambda f: (2, 2), dtype="float32"),
    Row("torch.randn($x.shape)", dtype="float32"),
    Row("torch.rand(2, 3)", lambda f: (2, 3), dtype="float32"),
    Row("torch.randint(0, 10, (3,))", lambda f: (3,), dtype="int64"),
    Row("torch.randperm(4)", lambda f: (4,), dtype="int64"),
    Row("torch.rand_like($x)"),
    Row("torch.randn_like($x)"),
    Row("torch.bernoulli(torch.full((4,), 0.5))", lambda f: (4,), dtype="float32"),
    Row("torch.normal(0.0, 1.0, (2, 2))", lambda f: (2, 2), dtype="float32"),
    Row("$x.new_zeros(2)", lambda f: (2,)),
    Row("torch.empty_like($x).fill_($number)"),
    Row("F.dropout($x, 0.5)"),
    Row("torch.tensor($x.tolist())"),
]

FAMILIES: dict[str, tuple[int, list[Row]]] = {
    "arithmetic": (10, ARITHMETIC),
    "pointwise": (10, POINTWISE),
    "reductions": (8, REDUCTIONS),
    "views": (8, VIEWS),
    "indexing": (7, INDEXING),
    "joining": (3, JOINING),
    "losses": (3, LOSSES),
    "mixtures": (4, MIXTURES),
    "creation": (2, CREATION),
}
"""Each family of expressions, and how often it is drawn beside the others."""


def _swapped(shape: Shape, first: int, second: int) -> Shape:
    sizes = list(shape)
    sizes[first], sizes[second] = sizes[second], sizes[first]
    return tuple(sizes)


def _unsqueezed(shape: Shape, dim: int) -> Shape:
    position = dim if dim >= 0 else dim + len(shape) + 1
    return (*shape[:position], 1, *shape[position:])
