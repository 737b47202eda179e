"""The families that every program needs; importing a family registers its ops.

The others are imported when one of their names is looked up (`binding/lazy.py`), or one of their
functions is called through what stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd import tensor as tensors
from gradcli.autograd.inplace import views
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic import operators  # noqa: F401
from gradcli.ops.arithmetic.conjugate import conj, negated
from gradcli.ops.binding import catalogue
from gradcli.ops.codegen import apply  # noqa: F401
from gradcli.ops.creation import data, fill, tensor_methods  # noqa: F401
from gradcli.ops.definition.ref import ref
from gradcli.ops.reduction import sum  # noqa: F401

tensors.iterate = ref("shape.splitting.unbind_")
views.as_strided = ref("indexing.strided.strided")
views.conj, views.negated = conj, negated
views.view_as_complex = ref("elementwise.complex.view_as_complex")
views.view_as_real = ref("elementwise.complex.view_as_real")

catalogue.properties.update(
    real=ref("elementwise.complex.real"),
    imag=ref("elementwise.complex.imag"),
    T=ref("shape.reshaping.reversed_dims"),
    mT=ref("shape.reshaping.matrix_transpose"),
    mH=ref("shape.reshaping.matrix_adjoint"),
    H=ref("shape.reshaping.conjugate_transpose"),
)
catalogue.setters.update(
    real=ref("elementwise.complex.set_real"), imag=ref("elementwise.complex.set_imag")
)


def _operator(symbol: str) -> Callable[[Any, Any], Any]:
    """An operator of `Tensor`, whose family is imported when it is first used."""
    return lambda self, other: catalogue.operators[symbol](self, other)


for _name, _symbol in zip(
    ("eq", "ne", "lt", "le", "gt", "ge", "matmul", "pow"),
    ("==", "!=", "<", "<=", ">", ">=", "@", "**"),
    strict=True,
):
    setattr(Tensor, f"__{_name}__", _operator(_symbol))
setattr(Tensor, "__rpow__", lambda self, other: catalogue.operators["**"](other, self))  # noqa: B010
