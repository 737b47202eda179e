"""How the language spells the ops that it has under another name than that of their entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np

from gradcli.ops.binding import catalogue
from gradcli.recorded.formulas.memory import read_at
from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Item,
    Keyword,
    Name,
    Operation,
    Symbol,
    lifted,
)

Given = Mapping[str, Any]
Writer = Callable[[Given, tuple[int, ...]], Symbol]
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


def _slice(given: Given, shape: tuple[int, ...]) -> Symbol:
    step = None if given["step"] == 1 else given["step"]
    cut = slice(given["start"], given["end"], step)
    return _item(given["self"], given["dim"], len(shape), cut)


def _scaled(operator: str) -> Writer:
    def write(given: Given, shape: tuple[int, ...]) -> Symbol:
        other = lifted(given["other"])
        alpha = given.get("alpha", 1)
        if alpha != 1:
            scaled = given["other"] if operator != "rsub" else given["self"]
            scaled = Operation("*", lifted(scaled), Constant(alpha))
            if operator == "rsub":
                return Operation("-", other, scaled)
            other = scaled
        left = lifted(given["self"])
        return (
            Operation("-", other, left) if operator == "rsub" else Operation(operator, left, other)
        )

    return write


def _div(given: Given, shape: tuple[int, ...]) -> Symbol:
    quotient = Operation("/", lifted(given["self"]), lifted(given["other"]))
    mode = given.get("rounding_mode")
    return quotient if mode is None else function("floor" if mode == "floor" else "trunc", quotient)


def _product(given: Given, shape: tuple[int, ...]) -> Symbol:
    left, right, *_ = given.values()
    return Operation("@", lifted(left), lifted(right))


def _added_product(one: str, other: str, outer: bool = False) -> Writer:
    """A product of matrices and what is added to it, each times a number."""

    def scaled(symbol: Symbol, number: Any) -> Symbol:
        return symbol if number == 1 else Operation("*", lifted(number), symbol)

    def write(given: Given, _shape: tuple[int, ...]) -> Symbol:
        factors = given[one], given[other]
        product: Symbol = function("outer", *factors) if outer else Operation("@", *factors)
        return Operation("+", scaled(product, given["alpha"]), scaled(given["self"], given["beta"]))

    return write


def _pow(given: Given, shape: tuple[int, ...]) -> Symbol:
    base = given["self"] if "self" in given else given["base"]
    return Operation("**", lifted(base), lifted(given["exponent"]))


def _reduction(name: str) -> Writer:
    def write(given: Given, shape: tuple[int, ...]) -> Symbol:
        dims = given.get("dims", given.get("dim"))
        dims = (dims,) if isinstance(dims, int) else dims
        args = [] if dims is None else [tuple(dims), *([True] if given.get("keepdim") else [])]
        return method(name, given["self"], *args)

    return write


def _along(name: str) -> Writer:
    return lambda given, shape: method(name, given["self"], given["dim"])


def _arguments(name: str, *parameters: str) -> Writer:
    def write(given: Given, _shape: tuple[int, ...]) -> Symbol:
        defaults = signature(catalogue.methods[name]).parameters
        values = [given[each] for each in parameters]
        for each in reversed(parameters[1:]):
            default = defaults[each].default if each in defaults else Parameter.empty
            if isinstance(values[-1], Symbol) or values[-1] != default:
                break
            values.pop()
        return method(name, *values)

    return write


def _transpose(given: Given, _shape: tuple[int, ...]) -> Symbol:
    dims = given["dim0"], given["dim1"]
    if len(given["sizes"]) == 2 and dims[0] != dims[1]:
        return method("t", given["self"])
    return method("transpose", given["self"], *dims)


def _zeros(given: Given, shape: tuple[int, ...] | None = None) -> Symbol:
    """Zeros of the shape that a gradient is put into, and of its dtype."""
    shape = tuple(given["self_sizes"]) if shape is None else shape
    return Call("zeros", (Constant(shape), *dtype_argument(given[""])))


def dtype_argument(name: str) -> tuple[Symbol, ...]:
    """The argument that asks for a dtype; none for the default one."""
    return () if name == "float32" else (Keyword("dtype", Name(f"torch.{name}")),)


def _joined(name: str) -> Writer:
    return lambda given, shape: Call(name, (listed(given["tensors"]), literal(given["dim"])))


def _scattered(name: str, *parameters: str) -> Writer:
    """The gradient of a part of a tensor: zeros, but for that part."""
    return lambda given, shape: method(
        name, _zeros(given), given["grad_output"], *(given[each] for each in parameters)
    )


def _softmax_backward(given: Given, shape: tuple[int, ...]) -> Symbol:
    grad, output = given["grad_output"], given["output"]
    product = Operation("*", grad, output)
    total = method("sum", product, (given["dim"],), True)
    return Operation("-", product, Operation("*", output, total))


def _log_softmax_backward(given: Given, shape: tuple[int, ...]) -> Symbol:
    grad, output = given["grad_output"], given["output"]
    total = method("sum", grad, (given["dim"],), True)
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


def _index_put(given: Given, shape: tuple[int, ...]) -> Symbol:
    indices: list[Any] = [None if _is_whole(each) else each for each in given["indices"]]
    values = given["values"]
    while indices[-1] is None:
        indices.pop()
    target = _zeros(given, shape) if given["self"] is None else given["self"]
    if isinstance(values, Constant):
        values = _tensor_of(values, given[""])
    arguments = (values, True) if given["accumulate"] else (values,)
    if any(isinstance(each, Symbol) for each in indices) and None not in indices:
        return method("index_put", target, Call("", tuple(map(literal, indices))), *arguments)
    *front, last = indices
    is_line = isinstance(last, np.ndarray) and last.ndim == 1 and last.dtype.kind == "i"
    if given["accumulate"] and is_line and not any(each is not None for each in front):
        dim = len(front)
        if given["value_sizes"] == (*shape[:dim], last.size, *shape[dim + 1 :]):
            return method("index_add", target, dim, function("tensor", last), values)
    if all(isinstance(each, np.ndarray) for each in indices):
        tensors = Call("", tuple(function("tensor", each) for each in indices))
        return method("index_put", target, tensors, *arguments)
    if any(isinstance(each, Symbol) for each in indices):
        raise Unwritten("index_put")
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    places = whole[tuple(slice(None) if each is None else each for each in indices)]
    if given["value_sizes"] != places.shape:
        arguments = (method("expand", values, places.shape), *arguments[1:])
    return method("put", target, function("tensor", places), *arguments)


def _segments(given: Given, _shape: tuple[int, ...]) -> Symbol:
    named = {"axis": given["axis"] or None, "initial": given["initial"]}
    lengths = Keyword("lengths", function("tensor", list(given["lengths"])))
    more = [Keyword(name, Constant(value)) for name, value in named.items() if value is not None]
    operands = (lifted(given["data"]), Constant(given["reduce"]))
    return Call("torch.segment_reduce", (*operands, lengths, *more))


def _padded(mode: str) -> Writer:
    """A padding with the tensor's own elements."""
    return lambda given, _shape: Call(
        "F.pad", (given["self"], literal(given["pad"]), Keyword("mode", Constant(mode)))
    )


def _tensor_of(number: Symbol, dtype: str) -> Call:
    """A number as a tensor of a dtype."""
    assert isinstance(number, Constant)
    return Call("tensor", (Constant(float(number.value)), *dtype_argument(dtype)))


def _where(given: Given, _shape: tuple[int, ...]) -> Symbol:
    branches = [lifted(given["self"]), lifted(given["other"])]
    if all(isinstance(each, Constant) for each in branches):
        branches = [_tensor_of(branches[0], given[""]), branches[1]]
    return function("where", given["condition"], *branches)


def _saturating(slope: Callable[[Symbol], Symbol]) -> Writer:
    """The gradient of an op whose slope is a function of its output."""

    def write(given: Given, _shape: tuple[int, ...]) -> Symbol:
        output = lifted(given["output"])
        if given[""].startswith("complex"):
            output = method("conj", output)
        return Operation("*", lifted(given["grad_output"]), slope(output))

    return write


def _strided(given: Given, shape: tuple[int, ...]) -> Symbol:
    """Elements of a tensor by their places in its memory."""
    sizes = given["sizes"]
    own = {at: number for number, at in enumerate(_places(sizes, given["layout"], 0))}
    found = [own.get(at) for at in _places(given["size"], given["stride"], given["offset"])]
    if None in found:
        raise Unwritten("as_strided")
    return read_at(given["self"], np.array(found, np.int64).reshape(shape), sizes)


def _places(sizes: Sequence[int], strides: Sequence[int], offset: int) -> list[int]:
    """The place in memory of each element, in row order."""
    total = np.array(offset)
    for size, stride in zip(sizes, strides, strict=True):
        total = total[..., None] + np.arange(size) * stride
    return [int(place) for place in total.ravel()]


def _copy(given: Given, shape: tuple[int, ...]) -> Symbol:
    return method("expand", given["src"], shape) if "src" in given else lifted(given["self"])


def _norm(given: Given, shape: tuple[int, ...]) -> Symbol:
    order = given.get("ord", given.get("p", 2))
    dims = given.get("dims", given.get("dim"))
    if dims is None:
        return method("norm", given["self"], order)
    return method("norm", given["self"], order, tuple(dims), given["keepdim"])


def _deviation(name: str) -> Writer:
    def write(given: Given, shape: tuple[int, ...]) -> Symbol:
        arguments: list[Symbol] = [given["self"]]
        arguments += [] if given["dims"] is None else [Constant(tuple(given["dims"]))]
        arguments += [Keyword("correction", Constant(given["correction"]))]
        arguments += [Keyword("keepdim", Constant(True))] if given["keepdim"] else []
        return Call(name, tuple(arguments), method=True)

    return write


def _extreme(name: str) -> Callable[[Given, int], Symbol]:
    def write(given: Given, output_nr: int) -> Symbol:
        called = f"arg{name}" if output_nr else f"a{name}"
        return method(called, given["self"], given["dim"], *([True] if given["keepdim"] else []))

    return write


def _part(name: str, *parameters: str) -> Callable[[Given, int], Symbol]:
    """An output of a method of several, by its number."""
    return lambda given, nr: Item(
        method(name, given["self"], *(given[each] for each in parameters)), Constant(nr)
    )


SEVERAL: dict[str, Callable[[Given, int], Symbol]] = {
    **{
        name: lambda given, nr: Item(
            method("split", given["self"], list(given["sizes"]), given["dim"]), Constant(nr)
        )
        for name in ("split", "unsafe_split", "split_with_sizes")
    },
    "unbind": lambda given, nr: Item(method("unbind", given["self"], given["dim"]), Constant(nr)),
    "sort": _part("sort", "dim", "descending"),
    "topk": _part("topk", "k", "dim", "largest"),
    "kthvalue": _part("kthvalue", "k", "dim", "keepdim"),
    "median": lambda given, nr: (
        _part("median", "dim", "keepdim")(given, nr)
        if "dim" in given
        else method("median", given["self"])
    ),
    "max": lambda given, nr: (
        _extreme("max")(given, nr) if "dim" in given else method("amax", given["self"])
    ),
    "min": lambda given, nr: (
        _extreme("min")(given, nr) if "dim" in given else method("amin", given["self"])
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
        lambda given, shape: lifted(given["self"]),
    ),
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "_reshape_alias", "squeeze"),
        lambda given, shape: method("reshape", given["self"], shape),
    ),
    "view_as_real": lambda given, shape: function(
        "view_as_real", method("resolve_conj", given["self"])
    ),
    "zero": lambda given, shape: _zeros(given, shape),
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("replicate") for n in (1, 2, 3)},
    "_conj": lambda given, shape: method("conj", given["self"]),
    "_neg_view": lambda given, shape: Operation("-", lifted(given["self"])),
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
    "repeat": lambda given, shape: method("repeat", given["self"], *given["repeats"]),
    **dict.fromkeys(
        ("_to_copy", "_to_copy.integer"),
        lambda given, shape: method("to", given["self"], Name(str(given["dtype"]))),
    ),
    "expand": lambda given, shape: method("expand", given["self"], shape),
    "addmm": _added_product("mat1", "mat2"),
    "addmv": _added_product("mat", "vec"),
    "addr": _added_product("vec1", "vec2", outer=True),
    "baddbmm": _added_product("batch1", "batch2"),
    "mv": _product,
    "dot": _product,
    "flip": lambda given, shape: method("flip", given["self"], tuple(given["dims"])),
    "select": lambda given, shape: _item(
        given["self"], given["dim"], len(shape) + 1, int(given["index"])
    ),
    "transpose": _transpose,
    "slice": _slice,
    "narrow": _slice,
    "as_strided": _strided,
    "scatter": lambda given, shape: method(
        "scatter", given["self"], given["dim"], given["index"], given.get("src", given.get("value"))
    ),
    "index": lambda given, shape: Item(given["self"], _indexed(given["indices"])),
    "index_put": _index_put,
    "_index_put_impl": _index_put,
    "embedding": lambda given, shape: Item(given["weight"], given["indices"]),
    "slice_backward": _scattered("slice_scatter", "dim", "start", "end", "step"),
    "select_backward": lambda given, shape: method(
        "select_scatter", _zeros(given), given["grad_output"], given["dim"], int(given["index"])
    ),
    "diagonal_backward": _scattered("diagonal_scatter", "offset", "dim1", "dim2"),
    "masked_fill": lambda given, shape: function(
        "where", given["mask"], given["value"], given["self"]
    ),
    "cat": _joined("cat"),
    "stack": _joined("stack"),
    "prod": lambda given, shape: method(
        "prod", given["self"], *([given["dim"], given["keepdim"]] if "dim" in given else [])
    ),
    "linalg_vector_norm": _norm,
    "norm": _norm,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _log_softmax_backward,
    "std": _deviation("std"),
    "var": _deviation("var"),
}  # fmt: skip
