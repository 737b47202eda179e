"""The families that every program needs; importing a family registers its ops.

The others are imported when one of their names is looked up (`binding/lazy.py`), or one of their
functions is called through what stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd import tensor as tensors
from gradcli.autograd.inplace import writes
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import conj, negated
from gradcli.ops.binding import catalogue
from gradcli.ops.codegen import apply  # noqa: F401
from gradcli.ops.creation import data, fill, tensor_methods  # noqa: F401
from gradcli.ops.definition import refs
from gradcli.ops.reduction import sum  # noqa: F401

tensors.iterate = refs.unbind
writes.as_strided = refs.strided
writes.conj, writes.negated = conj, negated
writes.view_as_complex = refs.view_as_complex
writes.view_as_real = refs.view_as_real

catalogue.properties.update(
    real=refs.real,
    imag=refs.imag,
    T=refs.reversed_dims,
    mT=refs.matrix_transpose,
    mH=refs.matrix_adjoint,
    H=refs.conjugate_transpose,
)
catalogue.setters.update(real=refs.set_real, imag=refs.set_imag)


def _operator(symbol: str) -> Callable[[Any, Any], Any]:
    """An operator of `Tensor`, whose family is imported when it is first used."""
    return lambda self, other: catalogue.operators[symbol](self, other)


for _name, _symbol in zip(
    ("eq", "ne", "lt", "le", "gt", "ge", "matmul", "pow"),
    ("==", "!=", "<", "<=", ">", ">=", "@", "**"),
    strict=True,
):
    setattr(Tensor, f"__{_name}__", _operator(_symbol))
_power = _operator("**")
setattr(Tensor, "__rpow__", lambda self, other: _power(other, self))  # noqa: B010
