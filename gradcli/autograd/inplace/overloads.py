"""The names of PyTorch's overloads of writing ops, which errors say: `aten::add_.Tensor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor

_BY_TENSOR = {
    ("Tensor", "Tensor"): "add_ sub_ mul_ div_ subtract_ multiply_ divide_ true_divide_"
    " floor_divide_",
    ("Tensor", "Scalar"): "pow_ remainder_ fmod_ fill_ masked_fill_ copysign_ float_power_ lerp_"
    " bitwise_and_ bitwise_or_ bitwise_xor_ eq_ ne_ lt_ le_ gt_ ge_ not_equal_ less_ less_equal_"
    " greater_ greater_equal_",
    ("Tensor", ""): "clamp_ clip_ clamp_min_ clamp_max_",
    ("Tensor", "Tensor_Scalar"): "bitwise_left_shift_ bitwise_right_shift_",
    ("Tensor", "Scalar_Other"): "xlogy_",
    ("int_Tensor", "int_Scalar"): "index_fill_",
    ("Tensor", "float"): "bernoulli_",
    ("src", "value"): "scatter_",
    ("two", "two"): "scatter_reduce_",
}
"""The overloads where the last operand is a tensor, and where it is none; a number that is added
becomes a tensor.
"""

_BY_COUNT = {"random_": ("", "to", "from"), "squeeze_": ("", "dim")}


def overload(name: str, operands: Sequence[Any], named: Mapping[str, Any]) -> str:
    """PyTorch's name of the writing op that such operands, and named ones, choose."""
    options = [key for key in ("rounding_mode", "decimals", "reduce") if named.get(key) is not None]
    values = [*operands, *(named[key] for key in named if key not in options)]
    if name in _BY_COUNT:
        chosen = _BY_COUNT[name][len(values)]
        if name == "squeeze_" and values and isinstance(values[0], (tuple, list)):
            chosen = "dims"
    else:
        last = values[-1] if values else None
        overloads = next((o for o, names in _BY_TENSOR.items() if name in names.split()), ("", ""))
        chosen = overloads[not isinstance(last, Tensor)]
    if "rounding_mode" in options:
        chosen = f"{chosen}_mode"
    elif options == ["decimals"]:
        chosen = "decimals"
    elif name == "scatter_" and options:
        chosen = "reduce" if chosen == "src" else "value_reduce"
    return f"{name}.{chosen}" if chosen else name
