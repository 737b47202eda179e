"""Custom functions that say how they compute all examples of a `vmap`."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.autograd.batched import batched_tensor
from gradcli.autograd.custom.function import DETAILS
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, value_error
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.structure import leaves, mapped, rebuilt, same_form, spec_of
from gradcli.state import active


def no_tensor(name: str, value: Any) -> GradcliError:
    """The error of what a mapped function returned where a tensor was wanted."""
    return value_error(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {shown_class(value)}. Did"
        " you mean to set out_dims= to None for output?"
    )


def shown_class(value: Any) -> str:
    """The class of a value as PyTorch's errors have it."""
    if isinstance(value, Tensor):
        return "<class 'torch.Tensor'>"
    return f"<class '{getattr(type(value), 'language_name', None) or type(value).__name__}'>"


class VmapInfo:
    """What a custom function's `vmap` receives about the batch.

    Attributes:
        batch_size: how many examples there are.
        randomness: what random numbers they may draw.
    """

    __slots__ = ("batch_size", "randomness")

    language_name: ClassVar[str] = "torch._functorch.autograd_function.VmapInfo"
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.batch_size = batch_size
        self.randomness = randomness


def by_own_rule(frame: Frame, function: Any, args: tuple[Any, ...], mode: bool) -> Any:
    """What a custom function's `vmap` makes of batched arguments, batched again. `mode` says
    whether its ops are recorded.

    Raises E204 for an answer that is no output with its dimensions.
    """

    def dim_of(value: Any) -> int | None:
        return value.array.bdim if frame.is_batched(value) else None

    def computed() -> Any:
        state = active.state
        if frame.below is None:
            state.grad_enabled = mode
        values = mapped(frame.plain, args)
        return function.vmap(VmapInfo(frame.size, frame.randomness), mapped(dim_of, args), *values)

    answer = frame.run(computed)
    if type(answer) is not tuple or len(answer) != 2:
        got = f"{len(answer)} returns" if type(answer) is tuple else f"a {shown_class(answer)}"
        raise runtime_error(
            "vmap(): the vmap staticmethod has to return an output and its out_dims",
            text="Expected the vmap staticmethod to have two returns, an output and out_dims with"
            f" pytree structure compatible with the output. Got {got} instead",
        )
    output, dims = answer
    parts = leaves(output)
    for value in parts:
        if not isinstance(value, Tensor):
            raise no_tensor("apply", value)
    single = dims is None or isinstance(dims, int)
    if not single and not same_form(output, dims):
        raise runtime_error(
            "vmap(): the out_dims of the vmap staticmethod do not fit its output",
            text="The autograd.Function's vmap staticmethod returned an incompatible (output,"
            f" out_dims) tuple. Expected out_dims={dims!r} to be compatible with the structure of"
            f" `output`. out_dims has structure {spec_of(dims)} but output has structure"
            f" {spec_of(output)}. {DETAILS}",
        )
    every = [dims] * len(parts) if single else leaves(dims)
    return rebuilt(
        output,
        [
            value if dim is None else batched_tensor(value, dim % value.array.ndim, frame.level)
            for value, dim in zip(parts, every, strict=True)
        ],
    )
