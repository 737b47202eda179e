from collections.abc import Callable
from typing import Any

from gradcli.ops.creation.copies import to as to
from gradcli.ops.elementwise.comparison import logical_and as logical_and
from gradcli.ops.elementwise.comparison import where as where
from gradcli.ops.elementwise.complex import imag as imag
from gradcli.ops.elementwise.complex import imaginary_part as imaginary_part
from gradcli.ops.elementwise.complex import real as real
from gradcli.ops.elementwise.complex import real_part as real_part
from gradcli.ops.elementwise.complex import set_imag as set_imag
from gradcli.ops.elementwise.complex import set_real as set_real
from gradcli.ops.elementwise.complex import view_as_complex as view_as_complex
from gradcli.ops.elementwise.complex import view_as_real as view_as_real
from gradcli.ops.elementwise.unary import exp as exp
from gradcli.ops.indexing.strided import strided as strided
from gradcli.ops.reduction.sum import sum_dims as sum_dims
from gradcli.ops.shape.joining import unbind as unbind
from gradcli.ops.shape.reshaping import conjugate_transpose as conjugate_transpose
from gradcli.ops.shape.reshaping import matrix_adjoint as matrix_adjoint
from gradcli.ops.shape.reshaping import matrix_transpose as matrix_transpose
from gradcli.ops.shape.reshaping import reversed_dims as reversed_dims

class Ref:
    family: str
    name: str
    def __init__(self, family: str, name: str) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def resolved(self) -> Callable[..., Any]: ...
