"""How the language spells the ops that it has under another name than that of their entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradcli.explain.symbols.tree import Call, Constant, Item, Name, Operation, Symbol, lifted

Given = Mapping[str, Any]
Writer = Callable[[Given, tuple[int, ...]], Symbol]
"""From the operands (symbols) and arguments of a step, and the shape of its output, to its text.
Under "" stands the name of the output's dtype.
"""


class Unwritten(Exception):
    """A step that no expression of the language computes."""


def method(name: str, *args: Any) -> Call:
    """A call of a method of the first operand."""
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
        left, right = lifted(given["self"]), other
        return (
            Operation("-", right, left) if operator == "rsub" else Operation(operator, left, right)
        )

    return write


def _div(given: Given, shape: tuple[int, ...]) -> Symbol:
    quotient = Operation("/", lifted(given["self"]), lifted(given["other"]))
    mode = given.get("rounding_mode")
    return quotient if mode is None else function("floor" if mode == "floor" else "trunc", quotient)


def _product(given: Given, shape: tuple[int, ...]) -> Symbol:
    left, right, *_ = given.values()
    return Operation("@", lifted(left), lifted(right))


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
    return lambda given, shape: method(name, *(given[p] for p in parameters))


def _zeros(given: Given, shape: tuple[int, ...] | None = None) -> Symbol:
    """Zeros of the shape that a gradient is put into, and of its dtype."""
    shape = tuple(given["self_sizes"]) if shape is None else shape
    return Call("zeros", (Constant(shape), *dtype_argument(given[""])))


def dtype_argument(name: str) -> tuple[Symbol, ...]:
    """The argument that asks for a dtype; none for the default one."""
    return () if name == "float32" else (Name(f"dtype=torch.{name}"),)


def _joined(name: str) -> Writer:
    def write(given: Given, shape: tuple[int, ...]) -> Symbol:
        return Call(name, (listed(given["tensors"]), literal(given["dim"])))

    return write


def _softmax_backward(given: Given, shape: tuple[int, ...]) -> Symbol:
    grad, output = given["grad_output"], given["output"]
    product = Operation("*", grad, output)
    total = method("sum", product, (given["dim"],), True)
    return Operation("-", product, Operation("*", output, total))


def _log_softmax_backward(given: Given, shape: tuple[int, ...]) -> Symbol:
    grad, output = given["grad_output"], given["output"]
    total = method("sum", grad, (given["dim"],), True)
    return Operation("-", grad, Operation("*", function("exp", output), total))


def _nll_loss_backward(given: Given, shape: tuple[int, ...]) -> Symbol:
    """The gradient of a picked log-probability is -1 where it was picked."""
    grad, target, reduction = given["grad_output"], given["target"], given["reduction"]
    if given["weight"] is not None or len(shape) != 2:
        raise Unwritten("nll_loss_backward")
    picked: Symbol = Operation("-", grad)
    if reduction == 1:
        picked = Operation("/", picked, Constant(shape[0]))
    if reduction == 0:
        picked = method("unsqueeze", picked, 1)
    elif isinstance(grad, Constant):
        picked = Constant(-grad.value / (shape[0] if reduction == 1 else 1))
    else:
        picked = method("expand", picked, (shape[0], 1))
    return method("scatter", _zeros(given, shape), 1, method("unsqueeze", target, 1), picked)


def _embedding_backward(given: Given, shape: tuple[int, ...]) -> Symbol:
    if given["padding_idx"] >= 0 or given["scale_by_freq"]:
        raise Unwritten("embedding_dense_backward")
    rows = method("reshape", given["grad_output"], (-1, shape[-1]))
    flat = method("reshape", given["indices"], (-1,))
    return method("index_add", _zeros(given, shape), 0, flat, rows)


def _indexed(indices: Any) -> Symbol:
    if any(isinstance(each, Symbol) for each in indices):
        raise Unwritten("index")
    index = tuple(each.tolist() if isinstance(each, np.ndarray) else each for each in indices)
    return Constant(index if len(index) > 1 else index[0])


def _index_put(given: Given, shape: tuple[int, ...]) -> Symbol:
    arrays = given["indices"]
    if not all(isinstance(each, np.ndarray) and each.dtype.kind == "i" for each in arrays):
        raise Unwritten("index_put")
    tensors = Call("", tuple(function("tensor", each) for each in arrays))
    values = (given["values"], True) if given["accumulate"] else (given["values"],)
    target = _zeros(given, shape) if given["self"] is None else given["self"]
    return method("index_put", target, tensors, *values)


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
        arguments += [Name(f"correction={given['correction']}")]
        arguments += [Name("keepdim=True")] if given["keepdim"] else []
        return Call(name, tuple(arguments), method=True)

    return write


def _extreme(name: str) -> Callable[[Given, int], Symbol]:
    def write(given: Given, output_nr: int) -> Symbol:
        called = f"arg{name}" if output_nr else f"a{name}"
        return method(called, given["self"], given["dim"], *([True] if given["keepdim"] else []))

    return write


def _first(name: str, *operands: str) -> Callable[[Given, int], Symbol]:
    """An op whose further outputs only its own rule needs."""

    def write(given: Given, output_nr: int) -> Symbol:
        if output_nr or given.get("left", True) is not True or given.get("upper"):
            raise Unwritten(name)
        return function(name, *(given[operand] for operand in operands))

    return write


def _part(name: str, *parameters: str) -> Callable[[Given, int], Symbol]:
    """An output of a method of several, by its number."""
    return lambda given, nr: Item(
        method(name, given["self"], *(given[each] for each in parameters)), Constant(nr)
    )


SEVERAL: dict[str, Callable[[Given, int], Symbol]] = {
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
    "linalg_inv_ex": _first("torch.linalg.inv", "A"),
    "linalg_solve_ex": _first("torch.linalg.solve", "A", "B"),
    "linalg_cholesky_ex": _first("torch.linalg.cholesky", "self"),
    "linalg_det": _first("torch.linalg.det", "A"),
}
"""Ops of several outputs."""

_METHODS = {
    "t": "", "transpose": "dim0 dim1", "permute": "dims", "roll": "shifts dims",
    "tril": "diagonal", "triu": "diagonal", "diag_embed": "offset dim1 dim2",
    "diagonal": "offset dim1 dim2", "gather": "dim index", "index_select": "dim index",
    "scatter_add": "dim index src", "index_add": "dim index source", "clamp": "min max",
    "clamp_min": "min", "clamp_max": "max",
}  # fmt: skip
"""Methods of the same name, with the arguments that they take."""

WRITERS: dict[str, Writer] = {
    **{name: _arguments(name, "self", *taken.split()) for name, taken in _METHODS.items()},
    **{name: _along(name) for name in ("unsqueeze", "cumsum", "cumprod", "softmax", "log_softmax")},
    **{name: _reduction(name) for name in ("sum", "mean", "amax", "amin", "logsumexp")},
    **dict.fromkeys(
        ("alias", "detach", "clone", "contiguous"),
        lambda given, shape: lifted(given["self"]),
    ),
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "_reshape_alias", "squeeze"),
        lambda given, shape: method("reshape", given["self"], shape),
    ),
    "add": _scaled("+"),
    "sub": _scaled("-"),
    "rsub": _scaled("rsub"),
    "div": _div,
    "pow": _pow,
    "copy": _copy,
    "_to_copy": lambda given, shape: method("to", given["self"], Name(str(given["dtype"]))),
    "expand": lambda given, shape: method("expand", given["self"], shape),
    "mv": _product,
    "dot": _product,
    "flip": lambda given, shape: method("flip", given["self"], tuple(given["dims"])),
    "select": lambda given, shape: _item(
        given["self"], given["dim"], len(shape) + 1, int(given["index"])
    ),
    "slice": _slice,
    "scatter": lambda given, shape: method(
        "scatter", given["self"], given["dim"], given["index"], given.get("src", given.get("value"))
    ),
    "index": lambda given, shape: Item(given["self"], _indexed(given["indices"])),
    "index_put": _index_put,
    "_index_put_impl": _index_put,
    "embedding": lambda given, shape: Item(given["weight"], given["indices"]),
    "embedding_dense_backward": _embedding_backward,
    "slice_backward": lambda given, shape: method(
        "slice_scatter", _zeros(given), given["grad_output"], given["dim"], given["start"],
        given["end"], given["step"],
    ),
    "select_backward": lambda given, shape: method(
        "select_scatter", _zeros(given), given["grad_output"], given["dim"], int(given["index"])
    ),
    "diagonal_backward": lambda given, shape: method(
        "diagonal_scatter", _zeros(given), given["grad_output"], given["offset"], given["dim1"],
        given["dim2"],
    ),
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
    "nll_loss_backward": _nll_loss_backward,
    "std": _deviation("std"),
    "var": _deviation("var"),
}  # fmt: skip
