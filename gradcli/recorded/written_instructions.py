"""Calls in a trace written in the language: which function or method computes them.

The ops that the language has under another name than that of their entry are spelled here; the
others have the name of their entry, or are opened up: their forward function is read with symbols.
A function takes the arguments of its entry under their names, so which argument goes where follows
from both signatures.

Which elements a view shows is read from positions in memory: selections, slices, diagonals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np

from gradcli.arrays.backend import address_of
from gradcli.autograd.recording.trace_recorder import Call as OpCall
from gradcli.errors import GradcliError
from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import Op, registry
from gradcli.recorded.symbols.reading import Reading
from gradcli.recorded.symbols.tree import (
    BUILTINS,
    Call,
    Constant,
    Item,
    Keyword,
    Name,
    Operation,
    Symbol,
    Unreadable,
    call_of,
    in_language,
    lifted,
    shown,
)
from gradcli.trace.ir import values_in

# --- spellings ------------------------------------------------------------------------------------


# --- memory that a view shows ---------------------------------------------------------------------


Region = tuple[str, tuple[Any, ...]]
"""The method that writes to a part of a tensor, and its arguments: `select_scatter`, dim, index."""


def shared_positions(view: Any, base: Any) -> Any:
    """The position in row order that each element of a view has in a base, None where some element
    has none.
    """
    if view.dtype != base.dtype or not np.may_share_memory(view, base):
        return None
    offsets = {offset: number for number, offset in enumerate(_offsets(base).ravel().tolist())}
    start = address_of(view) - address_of(base)
    positions = [offsets.get(start + offset) for offset in _offsets(view).ravel().tolist()]
    if None in positions:
        return None
    return np.array(positions, np.int64).reshape(view.shape)


def _offsets(array: Any) -> Any:
    """The distance of each element from the first one in bytes."""
    total = np.zeros(array.shape, np.int64)
    for dim, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        shape = [1] * array.ndim
        shape[dim] = size
        total = total + (np.arange(size) * stride).reshape(shape)
    return total


def region_of(positions: Any, shape: Sequence[int]) -> Region | None:
    """How the elements at positions of a tensor of a shape are written to; None for a region that
    is no selection, slice or diagonal.
    """
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    for dim, size in enumerate(shape):
        for index in range(size):
            if np.array_equal(whole.take(index, dim), positions):
                return "select_scatter", (dim, index)
        if positions.ndim == whole.ndim and positions.size:
            length = positions.shape[dim]
            for start in range(size - length + 1):
                if np.array_equal(whole.take(range(start, start + length), dim), positions):
                    return "slice_scatter", (dim, start, start + length)
    if whole.ndim == 2 and np.array_equal(np.diagonal(whole), positions):
        return "diagonal_scatter", ()
    return None


def read_at(value: Symbol, positions: Any, shape: Sequence[int]) -> Symbol:
    """The elements of a value of a shape at positions."""
    if positions.shape == tuple(shape) and (positions.ravel() == np.arange(positions.size)).all():
        return value
    if np.array_equal(positions.ravel(), np.arange(int(np.prod(shape)))):
        return Call("reshape", (value, Constant(positions.shape)), True)
    region = region_of(positions, shape)
    if region is None:
        where = Call("tensor", (Constant(positions.tolist()),))
        return Call("torch.take", (value, where))
    name, arguments = region
    if name == "diagonal_scatter":
        return Call("diagonal", (value,), True)
    dim, start, *end = arguments
    index: Any = slice(start, end[0]) if end else start
    return Item(value, Constant((*[slice(None)] * dim, index) if dim else index))


def written_at(value: Symbol, new: Symbol, positions: Any, shape: Sequence[int]) -> Symbol:
    """A value of a shape with the elements at positions replaced by a new tensor of theirs."""
    if positions.shape == tuple(shape) and (positions.ravel() == np.arange(positions.size)).all():
        return new
    region = region_of(positions, shape)
    if region is None:
        where = Call("tensor", (Constant(positions.tolist()),))
        return Call("put", (value, where, new), True)
    name, arguments = region
    return Call(name, (value, new, *map(Constant, arguments)), True)


# --- spellings ------------------------------------------------------------------------------------


Bound = Mapping[str, Any]
Writer = Callable[[Bound, tuple[int, ...]], Symbol]
"""From the operands (symbols) and arguments of a step, and the shape of its output, to its text.
Under "" stands the name of the output's dtype, under "sizes" and
"value_sizes" the shapes of the first and the second operand.
"""


class Unwritten(Exception):
    """A step that no expression of the language computes."""


def method(name: str, *args: Any) -> Call:
    """A call of a method of the first operand, of a tensor where that is a number."""
    if isinstance(args[0], Constant) and not isinstance(args[0].value, (tuple, list)):
        args = (Call("tensor", (Constant(float(args[0].value)),)), *args[1:])
    return Call(name, tuple(literal(each) for each in args), method=True)


def function(name: str, *args: Any) -> Call:
    """A call of a function."""
    return Call(name, tuple(literal(each) for each in args))


def literal(value: Any) -> Symbol:
    """A value as a symbol; tuples and lists of numbers as they are written."""
    if isinstance(value, np.ndarray):
        return Constant(value.tolist())
    return lifted(value)


def listed(values: Any) -> Symbol:
    """A list of symbols."""
    return Call("[]", tuple(values))


def _item(value: Symbol, dim: int, ndim: int, index: Any) -> Symbol:
    """`value[:, index]`."""
    dim %= max(ndim, 1)
    return Item(value, Constant((*[slice(None)] * dim, index) if dim else index))


def _slice(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    step = None if bound["step"] == 1 else bound["step"]
    cut = slice(bound["start"], bound["end"], step)
    return _item(bound["self"], bound["dim"], len(shape), cut)


def _scaled(operator: str) -> Writer:
    def write(bound: Bound, shape: tuple[int, ...]) -> Symbol:
        other = lifted(bound["other"])
        alpha = bound.get("alpha", 1)
        if alpha != 1:
            scaled = bound["other"] if operator != "rsub" else bound["self"]
            scaled = Operation("*", lifted(scaled), Constant(alpha))
            if operator == "rsub":
                return Operation("-", other, scaled)
            other = scaled
        left = lifted(bound["self"])
        return (
            Operation("-", other, left) if operator == "rsub" else Operation(operator, left, other)
        )

    return write


def _div(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    quotient = Operation("/", lifted(bound["self"]), lifted(bound["other"]))
    mode = bound.get("rounding_mode")
    return quotient if mode is None else function("floor" if mode == "floor" else "trunc", quotient)


def _product(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    left, right, *_ = bound.values()
    return Operation("@", lifted(left), lifted(right))


def _added_product(one: str, other: str, outer: bool = False) -> Writer:
    """A product of matrices and what is added to it, each times a number."""

    def scaled(symbol: Symbol, number: Any) -> Symbol:
        return symbol if number == 1 else Operation("*", lifted(number), symbol)

    def write(bound: Bound, _shape: tuple[int, ...]) -> Symbol:
        factors = bound[one], bound[other]
        product: Symbol = function("outer", *factors) if outer else Operation("@", *factors)
        return Operation("+", scaled(product, bound["alpha"]), scaled(bound["self"], bound["beta"]))

    return write


def _pow(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    base = bound["self"] if "self" in bound else bound["base"]
    return Operation("**", lifted(base), lifted(bound["exponent"]))


def _reduction(name: str) -> Writer:
    def write(bound: Bound, shape: tuple[int, ...]) -> Symbol:
        dims = bound.get("dims", bound.get("dim"))
        dims = (dims,) if isinstance(dims, int) else dims
        args = [] if dims is None else [tuple(dims), *([True] if bound.get("keepdim") else [])]
        return method(name, bound["self"], *args)

    return write


def _along(name: str) -> Writer:
    return lambda bound, shape: method(name, bound["self"], bound["dim"])


def _arguments(name: str, *parameters: str) -> Writer:
    def write(bound: Bound, _shape: tuple[int, ...]) -> Symbol:
        defaults = signature(catalogue.methods[name]).parameters
        # `diag` of a matrix has no dimensions: they are those of the method's defaults.
        values = [bound[each] if each in bound else defaults[each].default for each in parameters]
        for each in reversed(parameters[1:]):
            default = defaults[each].default if each in defaults else Parameter.empty
            if isinstance(values[-1], Symbol) or values[-1] != default:
                break
            values.pop()
        return method(name, *values)

    return write


def _transpose(bound: Bound, _shape: tuple[int, ...]) -> Symbol:
    dims = bound["dim0"], bound["dim1"]
    if len(bound["sizes"]) == 2 and dims[0] != dims[1]:
        return method("t", bound["self"])
    return method("transpose", bound["self"], *dims)


def _zeros(bound: Bound, shape: tuple[int, ...] | None = None) -> Symbol:
    """Zeros of the shape that a gradient is put into, and of its dtype."""
    shape = tuple(bound["self_sizes"]) if shape is None else shape
    return Call("zeros", (Constant(shape), *dtype_argument(bound[""])))


def dtype_argument(name: str) -> tuple[Symbol, ...]:
    """The argument that asks for a dtype; none for the default one."""
    return () if name == "float32" else (Keyword("dtype", Name(f"torch.{name}")),)


def _joined(name: str) -> Writer:
    return lambda bound, shape: Call(name, (listed(bound["tensors"]), literal(bound["dim"])))


def _scattered(name: str, *parameters: str) -> Writer:
    """The gradient of a part of a tensor: zeros, but for that part."""
    return lambda bound, shape: method(
        name, _zeros(bound), bound["grad_output"], *(bound[each] for each in parameters)
    )


def _softmax_backward(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    grad, output = bound["grad_output"], bound["output"]
    product = Operation("*", grad, output)
    total = method("sum", product, (bound["dim"],), True)
    return Operation("-", product, Operation("*", output, total))


def _log_softmax_backward(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    grad, output = bound["grad_output"], bound["output"]
    total = method("sum", grad, (bound["dim"],), True)
    return Operation("-", grad, Operation("*", function("exp", output), total))


def _indexed(indices: Any) -> Symbol:
    if any(isinstance(each, Symbol) for each in indices):
        every = [Constant(slice(None)) if each is None else literal(each) for each in indices]
        return every[0] if len(every) == 1 else Call("", tuple(every))
    index = tuple(each.tolist() if isinstance(each, np.ndarray) else each for each in indices)
    return Constant(index if len(index) > 1 else index[0])


def _is_whole(index: Any) -> bool:
    """Whether an index is `:`."""
    return isinstance(index, slice) and index == slice(None)


def _index_put(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    indices: list[Any] = [None if _is_whole(each) else each for each in bound["indices"]]
    values = bound["values"]
    while indices[-1] is None:
        indices.pop()
    target = _zeros(bound, shape) if bound["self"] is None else bound["self"]
    if isinstance(values, Constant):
        values = _tensor_of(values, bound[""])
    arguments = (values, True) if bound["accumulate"] else (values,)
    if any(isinstance(each, Symbol) for each in indices) and None not in indices:
        return method("index_put", target, Call("", tuple(map(literal, indices))), *arguments)
    *front, last = indices
    is_line = isinstance(last, np.ndarray) and last.ndim == 1 and last.dtype.kind == "i"
    if bound["accumulate"] and is_line and not any(each is not None for each in front):
        dim = len(front)
        if bound["value_sizes"] == (*shape[:dim], last.size, *shape[dim + 1 :]):
            return method("index_add", target, dim, function("tensor", last), values)
    if all(isinstance(each, np.ndarray) for each in indices):
        tensors = Call("", tuple(function("tensor", each) for each in indices))
        return method("index_put", target, tensors, *arguments)
    if any(isinstance(each, Symbol) for each in indices):
        raise Unwritten("index_put")
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    places = whole[tuple(slice(None) if each is None else each for each in indices)]
    if bound["value_sizes"] != places.shape:
        arguments = (method("expand", values, places.shape), *arguments[1:])
    return method("put", target, function("tensor", places), *arguments)


def _segments(bound: Bound, _shape: tuple[int, ...]) -> Symbol:
    named = {"axis": bound["axis"] or None, "initial": bound["initial"]}
    lengths = Keyword("lengths", function("tensor", list(bound["lengths"])))
    more = [Keyword(name, Constant(value)) for name, value in named.items() if value is not None]
    operands = (lifted(bound["data"]), Constant(bound["reduce"]))
    return Call("torch.segment_reduce", (*operands, lengths, *more))


def _padded(mode: str) -> Writer:
    """A padding with the tensor's own elements."""
    return lambda bound, _shape: Call(
        "F.pad", (bound["self"], literal(bound["pad"]), Keyword("mode", Constant(mode)))
    )


def _tensor_of(number: Symbol, dtype: str) -> Call:
    """A number as a tensor of a dtype."""
    assert isinstance(number, Constant)
    return Call("tensor", (Constant(float(number.value)), *dtype_argument(dtype)))


def _where(bound: Bound, _shape: tuple[int, ...]) -> Symbol:
    branches = [lifted(bound["self"]), lifted(bound["other"])]
    if all(isinstance(each, Constant) for each in branches):
        branches = [_tensor_of(branches[0], bound[""]), branches[1]]
    return function("where", bound["condition"], *branches)


def _saturating(slope: Callable[[Symbol], Symbol]) -> Writer:
    """The gradient of an op whose slope is a function of its output."""

    def write(bound: Bound, _shape: tuple[int, ...]) -> Symbol:
        output = lifted(bound["output"])
        if bound[""].startswith("complex"):
            output = method("conj", output)
        return Operation("*", lifted(bound["grad_output"]), slope(output))

    return write


def _strided(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    """Elements of a tensor by their places in its memory."""
    sizes = bound["sizes"]
    own = {at: number for number, at in enumerate(_places(sizes, bound["layout"], 0))}
    positions = [own.get(at) for at in _places(bound["size"], bound["stride"], bound["offset"])]
    if None in positions:
        raise Unwritten("as_strided")
    return read_at(bound["self"], np.array(positions, np.int64).reshape(shape), sizes)


def _places(sizes: Sequence[int], strides: Sequence[int], offset: int) -> list[int]:
    """The place in memory of each element, in row order."""
    total = np.array(offset)
    for size, stride in zip(sizes, strides, strict=True):
        total = total[..., None] + np.arange(size) * stride
    return [int(place) for place in total.ravel()]


def _copy(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    return method("expand", bound["src"], shape) if "src" in bound else lifted(bound["self"])


def _norm(bound: Bound, shape: tuple[int, ...]) -> Symbol:
    order = bound.get("ord", bound.get("p", 2))
    dims = bound.get("dims", bound.get("dim"))
    if dims is None:
        return method("norm", bound["self"], order)
    return method("norm", bound["self"], order, tuple(dims), bound["keepdim"])


def _deviation(name: str) -> Writer:
    def write(bound: Bound, shape: tuple[int, ...]) -> Symbol:
        arguments: list[Symbol] = [bound["self"]]
        arguments += [] if bound["dims"] is None else [Constant(tuple(bound["dims"]))]
        arguments += [Keyword("correction", Constant(bound["correction"]))]
        arguments += [Keyword("keepdim", Constant(True))] if bound["keepdim"] else []
        return Call(name, tuple(arguments), method=True)

    return write


def _extreme(name: str) -> Callable[[Bound, int], Symbol]:
    def write(bound: Bound, output_nr: int) -> Symbol:
        called = f"arg{name}" if output_nr else f"a{name}"
        return method(called, bound["self"], bound["dim"], *([True] if bound["keepdim"] else []))

    return write


def _part(name: str, *parameters: str) -> Callable[[Bound, int], Symbol]:
    """An output of a method of several, by its number."""
    return lambda bound, nr: Item(
        method(name, bound["self"], *(bound[each] for each in parameters)), Constant(nr)
    )


SEVERAL: dict[str, Callable[[Bound, int], Symbol]] = {
    **{
        name: lambda bound, nr: Item(
            method("split", bound["self"], list(bound["sizes"]), bound["dim"]), Constant(nr)
        )
        for name in ("split", "unsafe_split", "split_with_sizes")
    },
    "unbind": lambda bound, nr: _item(bound["self"], bound["dim"], bound["dim"] + 1, nr),
    "sort": _part("sort", "dim", "descending"),
    "topk": _part("topk", "k", "dim", "largest"),
    "kthvalue": _part("kthvalue", "k", "dim", "keepdim"),
    "median": lambda bound, nr: (
        _part("median", "dim", "keepdim")(bound, nr)
        if "dim" in bound
        else method("median", bound["self"])
    ),
    "max": lambda bound, nr: (
        _extreme("max")(bound, nr) if "dim" in bound else method("amax", bound["self"])
    ),
    "min": lambda bound, nr: (
        _extreme("min")(bound, nr) if "dim" in bound else method("amin", bound["self"])
    ),
}
"""Ops of several outputs."""

_METHODS = {
    "t": "", "permute": "dims", "roll": "shifts dims",
    "tril": "diagonal", "triu": "diagonal", "diag_embed": "offset dim1 dim2",
    "diagonal": "offset dim1 dim2", "gather": "dim index", "index_select": "dim index",
    "scatter_add": "dim index src", "clamp": "min max",
    "clamp_min": "min", "clamp_max": "max",
}  # fmt: skip
"""Methods of the same name, with the arguments that they take."""

WRITERS: dict[str, Writer] = {
    **{name: _arguments(name, "self", *taken.split()) for name, taken in _METHODS.items()},
    **{name: _along(name) for name in ("unsqueeze", "cumsum", "cumprod", "softmax", "log_softmax")},
    **{name: _reduction(name) for name in ("sum", "mean", "amax", "amin", "logsumexp")},
    **dict.fromkeys(
        ("alias", "detach", "clone", "contiguous", "contiguous.channels_last", "_to_copy.device",
         "_to_copy.channels_last"),
        lambda bound, shape: lifted(bound["self"]),
    ),
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "_reshape_alias", "squeeze"),
        lambda bound, shape: method("reshape", bound["self"], shape),
    ),
    "view_as_real": lambda bound, shape: function(
        "view_as_real", method("resolve_conj", bound["self"])
    ),
    "zero": lambda bound, shape: _zeros(bound, shape),
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("replicate") for n in (1, 2, 3)},
    "_conj": lambda bound, shape: method("conj", bound["self"]),
    "_neg_view": lambda bound, shape: Operation("-", lifted(bound["self"])),
    "add": _scaled("+"),
    "sub": _scaled("-"),
    "rsub": _scaled("rsub"),
    "div": _div,
    "pow": _pow,
    "where": _where,
    "copy": _copy,
    "tanh_backward": _saturating(lambda y: 1 - y**2),
    "sigmoid_backward": _saturating(lambda y: (1 - y) * y),
    "segment_reduce": _segments,
    "repeat": lambda bound, shape: method("repeat", bound["self"], *bound["repeats"]),
    **dict.fromkeys(
        ("_to_copy", "_to_copy.integer"),
        lambda bound, shape: method("to", bound["self"], Name(str(bound["dtype"]))),
    ),
    "expand": lambda bound, shape: method("expand", bound["self"], shape),
    "addmm": _added_product("mat1", "mat2"),
    "addmv": _added_product("mat", "vec"),
    "addr": _added_product("vec1", "vec2", outer=True),
    "baddbmm": _added_product("batch1", "batch2"),
    "mv": _product,
    "dot": _product,
    "flip": lambda bound, shape: method("flip", bound["self"], tuple(bound["dims"])),
    "select": lambda bound, shape: _item(
        bound["self"], bound["dim"], len(shape) + 1, int(bound["index"])
    ),
    "transpose": _transpose,
    "slice": _slice,
    "narrow": _slice,
    "as_strided": _strided,
    "scatter": lambda bound, shape: method(
        "scatter", bound["self"], bound["dim"], bound["index"], bound.get("src", bound.get("value"))
    ),
    "index": lambda bound, shape: Item(bound["self"], _indexed(bound["indices"])),
    "index_put": _index_put,
    "_index_put_impl": _index_put,
    "embedding": lambda bound, shape: Item(bound["weight"], bound["indices"]),
    "slice_backward": _scattered("slice_scatter", "dim", "start", "end", "step"),
    "select_backward": lambda bound, shape: method(
        "select_scatter", _zeros(bound), bound["grad_output"], bound["dim"], int(bound["index"])
    ),
    "diagonal_backward": _scattered("diagonal_scatter", "offset", "dim1", "dim2"),
    "masked_fill": lambda bound, shape: function(
        "where", bound["mask"], bound["value"], bound["self"]
    ),
    "cat": _joined("cat"),
    "stack": _joined("stack"),
    "prod": lambda bound, shape: method(
        "prod", bound["self"], *([bound["dim"], bound["keepdim"]] if "dim" in bound else [])
    ),
    "linalg_vector_norm": _norm,
    "norm": _norm,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _log_softmax_backward,
    "std": _deviation("std"),
    "var": _deviation("var"),
}  # fmt: skip


# --- convolutions, pools and transforms: the geometry of their windows is one argument ------------


SpelledWindows = Callable[[Bound, tuple[int, ...], int], Symbol]
"""From the operands and arguments of a step, the shape of its first output and the number of the
one that is wanted.
"""


def _sizes(values: Any) -> Any:
    """Sizes as they are written: one number where all dimensions have the same."""
    return values[0] if len(set(values)) == 1 else tuple(values)


def _written(value: Any) -> Symbol:
    if isinstance(value, np.ndarray):
        named = dtype_argument(value.dtype.name) if value.dtype.kind == "f" else ()
        return Call("tensor", (Constant(value.tolist()), *named))
    return lifted(value)


def _call(name: str, operands: list[Any], **named: tuple[Any, Any]) -> Call:
    """A call with the arguments that differ from their defaults, each given with its default."""
    written = [
        Keyword(key, _written(value))
        for key, (value, default) in named.items()
        if isinstance(value, (Symbol, np.ndarray)) or value != default
    ]
    return Call(name, (*map(lifted, operands), *written))


def _convolution(bound: Bound, shape: tuple[int, ...], _nr: int) -> Symbol:
    geometry = bound["geometry"]
    windows, ndim = geometry.windows, len(shape) - 2
    operands = [bound["input"], bound["weight"]]
    operands += [] if bound["bias"] is None else [bound["bias"]]
    named = {
        "stride": (_sizes(windows.stride), 1),
        "padding": (_sizes(windows.padding), 0),
        "groups": (geometry.groups, 1),
        "dilation": (_sizes(windows.dilation), 1),
    }
    if not geometry.transposed:
        return _call(f"F.conv{ndim}d", operands, **named)
    # What is left of the sizes after the last window.
    counts = bound["sizes"][2:]
    rest = [
        size - ((count - 1) * s - 2 * p + d * (k - 1) + 1)
        for size, count, s, p, d, k in zip(
            geometry.sizes, counts, windows.stride, windows.padding, windows.dilation,
            windows.kernel, strict=True,
        )
    ]  # fmt: skip
    named["output_padding"] = (_sizes(rest), 0)
    return _call(f"F.conv_transpose{ndim}d", operands, **named)


def _largest(ndim: int) -> SpelledWindows:
    def write(bound: Bound, _shape: tuple[int, ...], nr: int) -> Symbol:
        windows = bound["windows"]
        named = {
            "stride": (_sizes(windows.stride), _sizes(windows.kernel)),
            "padding": (_sizes(windows.padding), 0),
            "dilation": (_sizes(windows.dilation), 1),
            "ceil_mode": (bound["ceil_mode"], False),
            "return_indices": (nr == 1, False),
        }
        call = _call(f"F.max_pool{ndim}d", [bound["self"], _sizes(windows.kernel)], **named)
        return Item(call, Constant(1)) if nr else call

    return write


def _mean(ndim: int) -> SpelledWindows:
    def write(bound: Bound, _shape: tuple[int, ...], _nr: int) -> Symbol:
        how = bound["argument"]
        windows = how.windows
        named = {
            "stride": (_sizes(windows.stride), _sizes(windows.kernel)),
            "padding": (_sizes(windows.padding), 0),
            "ceil_mode": (how.ceil_mode, False),
            "count_include_pad": (how.count_include_pad, True),
            "divisor_override": (how.divisor, None),
        }
        return _call(f"F.avg_pool{ndim}d", [bound["self"], _sizes(windows.kernel)], **named)

    return write


def _adaptive_mean(ndim: int) -> SpelledWindows:
    return lambda bound, _shape, _nr: Call(
        f"F.adaptive_avg_pool{ndim}d", (bound["self"], Constant(tuple(bound["argument"])))
    )


def _picked(name: str, *arguments: str, **named: str) -> SpelledWindows:
    """A pool that gives the largest elements and their places."""

    def write(bound: Bound, _shape: tuple[int, ...], nr: int) -> Symbol:
        keywords: dict[str, tuple[Any, Any]]
        keywords = {key: (bound[source], None) for key, source in named.items()}
        keywords["return_indices"] = (nr == 1, False)
        call = _call(name, [bound[each] for each in arguments], **keywords)
        return Item(call, Constant(1)) if nr else call

    return write


_NORMS = {
    False: {"none": None, "full": "forward"},
    True: {"none": "forward", "full": None},
}
"""The name of a transform's scaling: by whether it is an inverse, and by the entry's word."""


def _fourier(name: str, bound: Bound, inverse: bool, **more: tuple[Any, Any]) -> Symbol:
    dims = tuple(bound["dim"])
    if len(dims) == 1:
        name, dims = name.removesuffix("n"), dims[0]
    norm = _NORMS[inverse].get(bound["normalization"], "ortho")
    return _call(f"torch.fft.{name}", [bound["self"]], **more, dim=(dims, None), norm=(norm, None))


def _to_real(bound: Bound, shape: tuple[int, ...], _nr: int) -> Symbol:
    dims, size = tuple(bound["dim"]), bound["last_dim_size"]
    if len(dims) == 1:
        return _fourier("irfftn", bound, True, n=(size, None))
    sizes = tuple(shape[dim] for dim in dims)
    return _fourier("irfftn", bound, True, s=(sizes, None))


def _folding(name: str, operands: list[Any], windows: Any) -> Symbol:
    named = {
        "dilation": (_sizes(windows.dilation), 1),
        "padding": (_sizes(windows.padding), 0),
        "stride": (_sizes(windows.stride), 1),
    }
    return _call(name, [*operands, _sizes(windows.kernel)], **named)


OF_WINDOWS: dict[str, SpelledWindows] = {
    "convolution": _convolution,
    **{f"max_pool{n}d_with_indices": _largest(n) for n in (2, 3)},
    **{f"avg_pool{n}d": _mean(n) for n in (2, 3)},
    **{f"_adaptive_avg_pool{n}d": _adaptive_mean(n) for n in (2, 3)},
    **{
        f"adaptive_max_pool{n}d": _picked(f"F.adaptive_max_pool{n}d", "self", "output_size")
        for n in (2, 3)
    },
    **{
        f"fractional_max_pool{n}d": _picked(
            f"F.fractional_max_pool{n}d", "self", "kernel_size", "output_size",
            _random_samples="samples",
        )
        for n in (2, 3)
    },
    "im2col": lambda bound, _shape, _nr: _folding("F.unfold", [bound["self"]], bound["windows"]),
    "col2im": lambda bound, _shape, _nr: _folding(
        "F.fold", [bound["self"], tuple(bound["output_size"])], bound["windows"]
    ),
    "_fft_c2c": lambda bound, _shape, _nr: _fourier(
        "ifftn" if bound["inverse"] else "fftn", bound, bound["inverse"]
    ),
    "_fft_r2c": lambda bound, _shape, _nr: _fourier(
        "rfftn" if bound["onesided"] else "fftn", bound, False
    ),
    "_fft_c2r": _to_real,
}  # fmt: skip


# --- instructions ---------------------------------------------------------------------------------


# --- calls by public functions --------------------------------------------------------------------


_PREFIXES = {"linalg_": "torch.linalg", "special_": "torch.special", "fft_": "torch.fft"}

_AS_METHODS = "Tensor"

_SHORT = {"torch.nn.functional": "F", "torch": "torch"}

_NAMES = {
    "_pdist_forward": "pdist", "linalg_inv_ex": "linalg_inv",
    "linalg_solve_ex": "linalg_solve", "linalg_cholesky_ex": "linalg_cholesky",
    "linalg_lu_factor_ex": "linalg_lu_factor", "native_channel_shuffle": "channel_shuffle",
    "affine_grid_generator": "affine_grid",
    "grid_sampler_2d": "grid_sample", "grid_sampler_3d": "grid_sample",
}  # fmt: skip
"""Entries whose function has another name."""

_SINGLE = frozenset({"linalg_inv", "linalg_solve", "linalg_cholesky", "linalg_det", "cholesky"})
"""Functions that give the first output of their entry alone."""

_ORDER = {"linalg_lu": (1, 2, 0), "lu_unpack": (1, 2, 0)}
"""Where functions give the outputs of their entries in another order."""

_REDUCTIONS = ("none", "mean", "sum")

_PARAMETERS = {
    "input": ("self",), "dim": ("dims", "dim"), "upscale_factor": ("factor",),
    "downscale_factor": ("factor",), "storage_offset": ("offset",), "padding_mode": ("padding",),
    "split_sizes": ("sizes",),
}  # fmt: skip
"""Arguments of functions by what entries call them."""


def public_call(
    op: Op, name: str, bound: Mapping[str, Any], output_nr: int, several: bool
) -> Symbol | None:
    """An output of an entry as a call of the function that programs have for it, None where there
    is none that takes its arguments.

    Args:
        name: that of the entry, without the `_` of a form that writes its result.
        several: whether the entry has more than one output.
    """
    known = _NAMES.get(name, name)
    for module, name in _argument_places(known, "reduction" in bound):
        table = catalogue.methods if module == _AS_METHODS else catalogue.modules[module]
        function = table.get(name)
        if function is None:
            continue
        arguments = _named_arguments(op, function, dict(bound))
        if arguments is None:
            continue
        is_method = module == _AS_METHODS
        plain = is_method or (module == "torch" and name not in BUILTINS)
        called = name if plain else f"{_SHORT.get(module, module)}.{name}"
        call = Call(called, tuple(arguments), is_method)
        if not several:
            return call
        if known in _SINGLE:
            return call if output_nr == 0 else None
        return Item(call, Constant(_ORDER.get(known, range(9))[output_nr]))
    return None


def _argument_places(name: str, is_loss: bool) -> Iterator[tuple[str, str]]:
    """Where a function may stand; those of `torch` take the reduction of a loss as a number."""
    for prefix, module in _PREFIXES.items():
        if name.startswith(prefix):
            yield module, name.removeprefix(prefix)
    if not is_loss:
        yield "torch", name
    yield "torch.nn.functional", name
    yield _AS_METHODS, name


def _named_arguments(op: Op, function: Any, bound: dict[str, Any]) -> list[Symbol] | None:
    """The arguments of a call of a function, None where it does not take them all."""
    operands = [name for name in bound if name in (*op.tensors, *op.lists)]
    parameters = list(signature(function).parameters.values())
    operands = [name for name in operands if name not in {each.name for each in parameters}]
    arguments: list[Symbol] = []
    by_name = False
    for parameter in parameters:
        names = (parameter.name, *_PARAMETERS.get(parameter.name, ()))
        source = next((name for name in names if name in bound), None)
        if source is None and operands and parameter.default is Parameter.empty:
            source = operands[0]
        operands = [name for name in operands if name != source]
        value = parameter.default if source is None else bound.pop(source)
        if parameter.name == "reduction" and type(value) is int:
            value = _REDUCTIONS[value]
        if type(value) is tuple and str(parameter.annotation).startswith("int"):
            value = value[0] if len(value) == 1 else None
        if value is Parameter.empty:
            return None
        by_name = by_name or parameter.kind is Parameter.KEYWORD_ONLY
        if not isinstance(value, Symbol) and value == parameter.default:
            by_name = True
            continue
        if parameter.kind is Parameter.VAR_POSITIONAL:
            arguments += map(lifted, value)
            continue
        written = Call("[]", tuple(value)) if type(value) is list else lifted(value)
        arguments.append(Keyword(parameter.name, written) if by_name else written)
    bound.pop("vector", None)  # whether a right side is a vector shows in its shape
    return None if any(value is not None for value in bound.values()) else arguments


# --- instructions ---------------------------------------------------------------------------------


_GRADIENTS = ("_backward", "_backward_data")
"""How the ops are called that compute gradients alone."""


def written(call: OpCall, bound: Bound, output_nr: int) -> Symbol:
    """The expression of an output of a call; raises Unwritten where there is none."""
    # The form that writes its result is written as the one that makes a new tensor.
    name = call.op.name.rstrip("_") or call.op.name
    if name not in ("_to_copy", "copy", "index_copy"):
        name = name.removesuffix("_copy")  # what a view shows
    array = call.results[output_nr].array
    shape = tuple(array.shape)
    if name in SEVERAL:
        return SEVERAL[name](bound, output_nr)
    shapes = [tuple(each.array.shape) for each in values_in(call.operands.values())]
    first, second = (*shapes, (), ())[:2]
    known = {"": array.dtype.name, "sizes": first, "value_sizes": second}
    if name in OF_WINDOWS:
        return OF_WINDOWS[name]({**bound, **known}, shape, output_nr)
    writer = WRITERS.get(name)
    if writer is not None:
        return writer({**bound, **known}, shape)
    op = call.op
    symbol = _as_operator(call, bound) if len(call.outputs) == 1 and not op.lists else None
    if symbol is None:
        symbol = public_call(op, name, bound, output_nr, len(call.outputs) > 1)
    return _opened(call, bound) if symbol is None else symbol


def _as_operator(call: OpCall, bound: Bound) -> Symbol | None:
    """A call without arguments as an operator or a call of its entry."""
    op = call.op
    name = op.name.rstrip("_")
    operands = [value for key, value in bound.items() if key in op.tensors or op.pointwise]
    rest = [value for key, value in bound.items() if not (key in op.tensors or op.pointwise)]
    if any(value is not None for value in rest):
        return None
    known = shown(name, operands) if len(operands) < 3 else None
    if known is not None or (op.pointwise and len(operands) > len(op.tensors)):
        return known
    named = call_of(name, operands)
    return named if in_language(named) else None


def opened(formula: Symbol, shape: tuple[int, ...], dtype: str) -> Symbol:
    """A formula of an op for gradients alone, in the language's functions; others as they are."""
    if not isinstance(formula, Call) or not formula.function.endswith(_GRADIENTS):
        return formula
    writer = WRITERS.get(formula.function)
    if writer is None or formula.function not in registry:
        return formula
    bound: dict[str, Any] = {"": dtype}
    for name, part in zip(registry[formula.function].parameters, formula.arguments, strict=False):
        bound[name] = part.value if isinstance(part, Constant) else part
        if name == "self_sizes":
            bound[name] = shape
    try:
        return writer(bound, shape)
    except (Unwritten, Unreadable, KeyError):
        return formula


def _opened(call: OpCall, bound: Bound) -> Symbol:
    """A call as the formula that its entry's forward function is."""
    op, arguments = call.op, [_argument(value) for value in bound.values()]
    if len(call.outputs) > 1 or not (op.pointwise or op.name.endswith(_GRADIENTS)):
        raise Unwritten(op.name)
    try:
        reading = Reading()
        symbols = [
            reading.name(each.name) if isinstance(each, Name) else each for each in arguments
        ]
        symbol = lifted(reading.call(op.forward, *symbols))
    except (Unreadable, GradcliError):
        raise Unwritten(op.name) from None
    if not in_language(symbol):
        raise Unwritten(op.name)
    return symbol


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        raise Unwritten("an array that was computed aside")
    return value
