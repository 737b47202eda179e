"""Functions of higher families for the families below them, each a `Ref`.

`refs.pyi` imports each from its family, for mypy. A family is named here where its own import would
point up or cost start-up time.
"""

from __future__ import annotations

from gradcli.ops.definition.ref import Ref

_NAMES = {
    "creation.copies": "to",
    "elementwise.comparison": "logical_and where",
    "elementwise.complex": (
        "imag imaginary_part real real_part set_imag set_real view_as_complex view_as_real"
    ),
    "elementwise.unary": "exp",
    "indexing.strided": "strided",
    "reduction.sum": "sum_dims",
    "shape.reshaping": "conjugate_transpose matrix_adjoint matrix_transpose reversed_dims",
    "shape.splitting": "unbind",
}
"""For each family, a module in `gradcli.ops`, the names that stand there."""

globals().update(
    (name, Ref(family, name)) for family, names in _NAMES.items() for name in names.split()
)
