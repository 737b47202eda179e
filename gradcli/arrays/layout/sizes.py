"""`torch.Size` and `torch.device`: where and how large a tensor is."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, ClassVar, SupportsIndex

from gradcli.errors import GradcliError, runtime_error, type_error
from gradcli.state import active

_TOO_MANY_DIMENSIONS = ("number of dimensions must be within", "maximum supported dimension")
_TOO_LARGE = ("Maximum allowed dimension exceeded", "array is too big", "maximum dimension size")


def no_such_shape(error: Exception) -> GradcliError | None:
    """The error of a shape that no array has, which NumPy raises under many classes."""
    words = str(error).partition("'")[0]  # a text of the program's stands in quotes
    if "dimension" not in words and "too big" not in words:
        return None
    if any(each in words for each in _TOO_MANY_DIMENSIONS):
        translated = GradcliError(
            "E205", "a tensor has at most 64 dimensions", raises="RuntimeError"
        )
    elif any(each in words for each in _TOO_LARGE):
        translated = GradcliError(
            "E602", "the sizes of the tensor are too large", raises="RuntimeError"
        )
    else:
        return None
    translated.__cause__ = error
    return translated


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple that stays a Size when it is sliced, joined or
    repeated.
    """

    __slots__ = ()

    language_attributes: ClassVar[frozenset[str]] = frozenset({"numel"})

    @classmethod
    def of(cls, sizes: Iterable[Any] = ()) -> Size:
        """The Size that a program makes of integers; raises E202 for anything else.

        Example: torch.Size([1, 0])
        """
        try:
            return cls(map(operator.index, sizes))
        except TypeError:
            wrong = [
                (number, type(size).__name__)
                for number, size in enumerate(sizes if isinstance(sizes, Iterable) else ())
                if not hasattr(type(size), "__index__")
            ]
            text = "torch.Size() takes an iterable of 'int' (item {} is '{}')"
            raise type_error(
                "torch.Size() takes a sequence of integers",
                text=text.format(*wrong[0]) if wrong else None,
            ) from None

    def numel(self) -> int:
        """How many elements a tensor of this size has."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item


def sizes_apart(*shapes: Iterable[int]) -> str:
    """PyTorch's text for shapes that cannot be broadcast; "" for those that can."""
    common: list[int] = []
    for shape in shapes:
        sizes = list(shape)
        ndim = max(len(common), len(sizes))
        common = [1] * (ndim - len(common)) + common
        sizes = [1] * (ndim - len(sizes)) + sizes
        for dim in reversed(range(ndim)):
            a, b = common[dim], sizes[dim]
            if a != b and 1 not in (a, b):
                return (
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at"
                    f" non-singleton dimension {dim}"
                )
            common[dim] = b if a == 1 else a
    return ""


_DEVICE_TYPES = frozenset(
    {
        "cpu", "cuda", "fpga", "hip", "hpu", "ideep", "ipu", "lazy", "maia", "meta", "mkldnn",
        "mps", "mtia", "opencl", "opengl", "privateuseone", "ve", "vulkan", "xla", "xpu",
    }
)  # fmt: skip
"""What PyTorch knows; a tensor can live on `cpu`, `cuda` and `meta`."""


class Device:
    """Where a tensor lives: the `type`, `cpu`, `cuda` or `meta`, and the `index` of the GPU. In a
    `with` statement it is the device of new tensors.

    A device without an index is not equal to one with index 0, as in PyTorch.

    Example: torch.device('cpu')
    """

    __slots__ = ("index", "type")

    language_attributes: ClassVar[frozenset[str]] = frozenset({"index", "type"})
    language_context: ClassVar[bool] = True

    def __init__(self, type: str | int | Device, index: int | None = None) -> None:
        """
        Args:
            type: `"cpu"`, `"cuda"`, `"cuda:1"`, the number of a GPU, or a device to copy.
            index: the number of the GPU, where `type` does not hold it.

        Raises:
            GradcliError: E202 for other types, E204 for text that names no device.
        """
        self.type: str
        self.index: int | None
        if isinstance(type, Device):
            self.type, self.index = type.type, type.index
        elif type.__class__ is int:
            self.type, self.index = "cuda", _checked_index(type)
        elif isinstance(type, str):
            self.type, self.index = _parsed(type)
            if index is not None:
                if self.index is not None:
                    raise _no_device(f"{type!r} and the index {index}", type)
                self.index = _checked_index(index)
        else:
            raise type_error("torch.device() takes a device's name")

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __enter__(self) -> Device:
        active.state.library.setdefault("torch.device", []).append(active.state.default_device)
        active.state.default_device = str(self)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        active.state.default_device = active.state.library["torch.device"].pop()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))


def _parsed(text: str) -> tuple[str, int | None]:
    """The type and index of `cuda:1`."""
    kind, colon, number = text.partition(":")
    if kind not in _DEVICE_TYPES:
        raise _no_device(repr(text), text)
    if not colon:
        return kind, None
    if not (number.isascii() and number.isdecimal()) or (len(number) > 1 and number[0] == "0"):
        raise _no_device(repr(text), text)
    return kind, int(number)


def _checked_index(index: Any) -> int:
    if type(index) is not int:
        raise type_error("the index of a device is an integer")
    if index < 0:
        raise _no_device(f"the index {index}")
    return index


def _no_device(what: str, name: str = "") -> GradcliError:
    return runtime_error(
        f"{what}: there is no such device",
        text="Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga,"
        " maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of"
        f" device string: {name}",
        help="devices are 'cpu', 'cuda' and 'cuda:0'; a dtype is written torch.float64",
    )
