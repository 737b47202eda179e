"""The families that every program needs; importing a family registers its ops."""

from __future__ import annotations

from gradcli.ops.arithmetic import half_precision, operators  # noqa: F401
from gradcli.ops.codegen import apply  # noqa: F401
from gradcli.ops.creation import data, devices, fill, tensor_methods  # noqa: F401
from gradcli.ops.elementwise import comparison, complex, power  # noqa: F401
from gradcli.ops.indexing import assignment, basic, strided  # noqa: F401
from gradcli.ops.linalg import matmul  # noqa: F401
from gradcli.ops.reduction import sum  # noqa: F401
from gradcli.ops.shape import splitting  # noqa: F401
