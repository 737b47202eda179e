"""The contents of the torch module besides ops: dtypes, devices, constants, and settings."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DTYPES, DType
from gradcli.arrays.layout.sizes import Device, Size
from gradcli.arrays.printing import set_printoptions
from gradcli.arrays.scalars import finfo, iinfo
from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error, type_error
from gradcli.ops.binding.catalogue import function, modules, properties
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.definition.doc import STATE, effects
from gradcli.state import active


class Named:
    """A value identified only by its name: `torch.strided`, `torch.contiguous_format`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class Layout(Named):
    """How a tensor's elements lie: `torch.strided` is all there is."""

    __slots__ = ()

    language_name: ClassVar[str] = "torch.layout"


CONTIGUOUS, PRESERVED = Named("contiguous_format"), Named("preserve_format")
CHANNELS_LAST = {4: Named("channels_last"), 5: Named("channels_last_3d")}
"""The formats whose channels are innermost, by the number of dimensions that they are for."""


def wants_channels_last(tensor: Tensor, memory_format: Any) -> bool:
    """Whether a memory format puts channels innermost; raises E301 where it is for tensors of
    another number of dimensions.
    """
    for ndim, known in CHANNELS_LAST.items():
        if memory_format is known and tensor.array.ndim != ndim:
            raise shape_error(f"required rank {ndim} tensor to use {known.name} format")
    return memory_format in CHANNELS_LAST.values()


def by_rows(name: str, memory_format: Any) -> bool:
    """Whether a `memory_format` requires row order, whatever is copied. Raises E202 for what is no
    memory format.
    """
    if memory_format not in (None, CONTIGUOUS, PRESERVED):
        raise type_error(f"{name}(): {memory_format!r} is no memory format known here")
    return memory_format is CONTIGUOUS


STRIDED = Layout("strided")

modules["torch"].update(DTYPES)
modules["torch"].update(
    channels_last=CHANNELS_LAST[4],
    channels_last_3d=CHANNELS_LAST[5],
    strided=STRIDED,
    contiguous_format=CONTIGUOUS,
    preserve_format=PRESERVED,
)
modules["torch"].update(
    __version__="2.13.0+cpu",
    Size=Size.of,
    device=Device,
    e=math.e,
    inf=math.inf,
    nan=math.nan,
    newaxis=None,
    pi=math.pi,
    finfo=finfo,
    iinfo=iinfo,
    set_printoptions=effects(STATE)(set_printoptions),
)
properties["layout"] = lambda tensor: STRIDED


@function("set_default_dtype", effects=(STATE,))
def set_default_dtype(d: DType) -> None:
    """Set the dtype of new floating tensors. Raises E202 for what is no floating dtype.

    Example: torch.set_default_dtype(torch.float32)
    """
    if not isinstance(d, DType) or not d.is_floating_point:
        raise type_error(
            f"only a floating dtype can be the default, not {d}",
            text="only floating-point types are supported as the default type",
        )
    active.state.default_dtype = d.name


@function("get_default_dtype")
def get_default_dtype() -> DType:
    """The dtype of new floating tensors."""
    return dtypes.default_dtype()


@function("result_type")
def result_type(tensor: Any, other: Any) -> DType:
    """The dtype of an operation on two tensors or numbers.

    Example: torch.result_type(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    operands = [v.array if isinstance(v, Tensor) else v for v in (tensor, other)]
    return dtypes.result_dtype(operands)


@function("promote_types")
def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that both convert to.

    Example: torch.promote_types(torch.int64, torch.float32)
    """
    for argument, value in (("type1", type1), ("type2", type2)):
        if type(value) is not DType:
            raise type_error(
                f"promote_types(): argument '{argument}' must be a dtype, not {type_name(value)}"
            )
    return dtypes.promote_types(type1, type2)


@function("can_cast")
def can_cast(from_: DType, to: DType) -> bool:
    """Whether values of one dtype may be written to a tensor of another.

    Example: torch.can_cast(torch.int64, torch.float32)
    """
    return dtypes.can_cast(from_, to)
