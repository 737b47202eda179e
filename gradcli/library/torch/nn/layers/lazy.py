"""Layers that take the number of their inputs from the first input: `LazyLinear LazyConv1d
LazyConvTranspose1d LazyBatchNorm1d LazyInstanceNorm1d`, and those of 2 and 3 dimensions.

Until then a parameter has no shape: its array is an `Uninitialized`.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, value_error
from gradcli.library.torch.nn.attributes import names
from gradcli.library.torch.nn.layer import new_tensor, register
from gradcli.library.torch.nn.layers import convolutions, linear, normalisation  # noqa: F401  (they register)
from gradcli.library.torch.nn.module import Module
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.catalogue import modules


class Uninitialized:
    """What stands for the array of a tensor whose shape is not known yet.

    Attributes:
        named: the class of the tensor, as PyTorch calls it.
        sizes: its shape, with 0 for what the first input decides.
        dtype, device: those of the array that it becomes.
    """

    __slots__ = ("device", "dtype", "named", "sizes")

    def __init__(self, named: str, sizes: tuple[int, ...], dtype: Any) -> None:
        self.named = named
        self.sizes = sizes
        self.dtype = dtype
        self.device = "cpu"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # NumPy asks what it is
            raise AttributeError(name)
        if name == "shape":
            raise runtime_error(
                "Can't access the shape of an uninitialized parameter or buffer. This error usually"
                " happens in `load_state_dict` when trying to load an uninitialized parameter into"
                " an initialized one. Call `forward` to initialize the parameters before accessing"
                " their attributes."
            )
        raise value_error(
            "Attempted to use an uninitialized parameter",
            help="call the layer with an input first: its parameters take their shapes from it",
        )

    def materialize(self, sizes: tuple[int, ...]) -> Any:
        """The array that takes its place, all zeros."""
        return new_tensor(sizes, dtype=dtypes.of_array(self)).array

    def copy(self) -> Uninitialized:
        """The same for another tensor."""
        return Uninitialized(self.named, self.sizes, self.dtype)

    def astype(self, dtype: Any) -> Uninitialized:
        """The same in another dtype."""
        return Uninitialized(self.named, self.sizes, np.dtype(dtype or self.dtype))

    def __repr__(self) -> str:
        return f"<{self.named}>"


def is_uninitialized(value: Any) -> bool:
    """Whether a value is a tensor without a shape."""
    return type(value) is Tensor and type(value.array) is Uninitialized


class Lazy(Module):
    """What the layers share; the class that one becomes stands behind it among its bases.

    Attributes:
        size_name: the attribute that has the number of inputs.
        input_ndims: how many dimensions the input may have, any where there are none.
        channel: which dimension of a batch the number is taken from.
    """

    size_name: ClassVar[str]
    input_ndims: ClassVar[tuple[int, ...]] = ()
    channel: ClassVar[int] = 1
    language_attributes = Module.language_attributes | names(
        "cls_to_become has_uninitialized_params initialize_parameters"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(0, *args, **kwargs)
        except TypeError as error:  # it names the class whose `__init__` it is
            _, _, problem = str(error).partition(".")
            raise TypeError(f"{type(self).__name__}.{problem}") from None
        for table, named in ((self._parameters, "Parameter"), (self._buffers, "Buffer")):
            for tensor in table.values():
                if tensor is not None and tensor.ndim:
                    array: Any = tensor.array
                    tensor.array = Uninitialized(f"Uninitialized{named}", array.shape, array.dtype)

    @property
    def cls_to_become(self) -> Any:
        """The class that it becomes."""
        return catalogue.class_of(self._becomes())

    def _becomes(self) -> type:
        return modules["torch.nn"][type(self).__name__.removeprefix("Lazy")]

    def has_uninitialized_params(self) -> bool:
        """Whether no input was seen and no state loaded."""
        tensors = (*self._parameters.values(), *self._buffers.values())
        return any(map(is_uninitialized, tensors))

    def reset_parameters(self) -> None:
        """Draw the parameters, once they have shapes."""
        if getattr(self, self.size_name, 0) and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters the shapes that fit an input, and draw them."""
        sizes = input.array.shape
        if self.input_ndims and len(sizes) not in self.input_ndims:
            least, most = self.input_ndims
            raise runtime_error(
                f"Expected {least}D (unbatched) or {most}D (batched) input to"
                f" {type(self).__name__}, but got input of size: {input.shape}"
            )
        unbatched = bool(self.input_ndims) and len(sizes) == self.input_ndims[0]
        size = sizes[0 if unbatched else self.channel]
        self._values[self.size_name] = size
        if not self.has_uninitialized_params():
            return
        for tensor in (*self._parameters.values(), *self._buffers.values()):
            if tensor is not None and is_uninitialized(tensor):
                known: Any = tensor.array
                at_second = len(known.sizes) > 1 and not known.sizes[1]
                each = size // self._values.get("groups", 1) if at_second else size
                tensor.array = known.materialize(tuple(n or each for n in known.sizes))
        self.reset_parameters()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(*args, **kwargs)
        object.__setattr__(self, "__class__", self._becomes())
        return self.forward(*args, **kwargs)


def _define(home: str, base: str, size_name: str, **body: Any) -> None:
    """Define the lazy form of a layer."""
    kind = modules["torch.nn"][base]
    doc = f"`torch.nn.{base}` whose `{size_name}` the first input gives.\n\nExample: "
    sizes = "2, 3" if "Conv" in base else "2" if base == "Linear" else ""
    body |= {"__doc__": f"{doc}nn.Lazy{base}({sizes})", "size_name": size_name}
    register(home, type(f"Lazy{base}", (Lazy, kind), body))


def _of_statistics(self: Any, *args: Any, **kwargs: Any) -> None:
    """Instance normalisation that has a weight and statistics by default, as its lazy form does."""
    defaults = dict(zip(("eps", "momentum", "affine", "track_running_stats"), args, strict=False))
    wanted = {"affine": True, "track_running_stats": True}
    missing = {name: value for name, value in wanted.items() if name not in defaults}
    Lazy.__init__(self, *args, **{**missing, **kwargs})


_define("linear", "Linear", "in_features", channel=-1)
for _count in (1, 2, 3):
    _ndims = (_count + 1, _count + 2)
    for _name in ("Conv", "ConvTranspose"):
        _define("conv", f"{_name}{_count}d", "in_channels", input_ndims=_ndims)
    _define("batchnorm", f"BatchNorm{_count}d", "num_features")
    _define("instancenorm", f"InstanceNorm{_count}d", "num_features", __init__=_of_statistics)
