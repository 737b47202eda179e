"""Weight and spectral normalisation, as parametrizations and as hooks:
`parametrizations.weight_norm`, `parametrizations.spectral_norm`, `weight_norm`, `spectral_norm`.
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.inplace.writes import overwrite
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.library.torch.nn.utils.parametrize import as_matrix, register_parametrization
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import F, methods, torch
from gradcli.ops.creation.copies import detach
from gradcli.ops.creation.data import parameter
from gradcli.ops.nn.normalisation.weight import length_of, scaled_direction

_PARAMETRIZATIONS = "torch.nn.utils.parametrizations"


class _WeightNorm(Module):
    """A weight from its lengths and its direction."""

    language_name = "torch.nn.utils.parametrizations._WeightNorm"

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled_direction(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths and the direction of a weight."""
        return length_of(weight, self.dim), weight


class _SpectralNorm(Module):
    """A weight over its largest singular value, which power iteration finds."""

    language_name = "torch.nn.utils.parametrizations._SpectralNorm"

    def __init__(self, weight: Tensor, iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps
        self.n_power_iterations = iterations
        if weight.array.ndim > 1:
            u, v = _first_vectors(weight, dim, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            iterate(as_matrix(weight, dim), u, v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.array.ndim == 1:
            return _normalised(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        u, v = self.lookup("_u"), self.lookup("_v")
        if self.training:
            iterate(matrix, u, v, self.n_power_iterations, self.eps)
        u, v = methods.clone(u), methods.clone(v)
        return weight / methods.vdot(u, methods.mv(matrix, v))


def _normalised(vector: Tensor, eps: float) -> Any:
    return F.normalize(vector, dim=0, eps=eps)


def _first_vectors(weight: Tensor, dim: int, eps: float) -> tuple[Any, Any]:
    """Vectors drawn for both sides of a weight's matrix."""
    matrix = as_matrix(detach(weight), dim)
    drawn = [torch.randn(n, dtype=weight.dtype) for n in matrix.array.shape]
    u, v = (_normalised(vector, eps) for vector in drawn)
    return u, v


def iterate(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
    """Steps of power iteration, written into the vectors."""
    with NoGrad():
        adjoint = methods.conj(methods.t(matrix))
        for _ in range(count):
            overwrite(u, _normalised(methods.mv(matrix, v), eps).array)
            overwrite(v, _normalised(methods.mv(adjoint, u), eps).array)


def _weight_of(module: Any, name: str) -> Tensor:
    weight = module._parameters.get(name)
    if weight is None:
        raise GradcliError(
            "E204",
            f"'{module._get_name()}' object has no attribute '{name}'",
            raises="AttributeError",
        )
    return weight


def _side(module: Any, dim: int | None) -> int:
    """The dimension of a weight that counts its outputs."""
    if dim is not None:
        return dim
    return 1 if "ConvTranspose" in type(module).__name__ else 0


@function("weight_norm", module=_PARAMETRIZATIONS)
def parametrized_weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train a weight's lengths and direction; returns the module whose it is."""
    check_module("weight_norm", module)
    _weight_of(module, name)
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


@function("spectral_norm", module=_PARAMETRIZATIONS)
def parametrized_spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value; returns the module whose it is."""
    check_module("spectral_norm", module)
    weight = _weight_of(module, name)
    parametrization = _SpectralNorm(weight, n_power_iterations, _side(module, dim), eps)
    return register_parametrization(module, name, parametrization)


# --- by hooks -------------------------------------------------------------------------------------


class _NormHook:
    """Computes a weight before each call of its module, from parameters of other names."""

    __slots__ = ("dim", "name")

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    def weight(self, module: Any) -> Tensor:
        """The weight that the parameters make."""
        tensors = module._parameters
        return scaled_direction(tensors[f"{self.name}_v"], tensors[f"{self.name}_g"], self.dim)

    def __call__(self, module: Any, args: Any) -> None:
        module._values[self.name] = self.weight(module)


class _SpectralHook(_NormHook):
    """The same over the largest singular value."""

    __slots__ = ("eps", "iterations")

    def __init__(self, name: str, dim: int, iterations: int, eps: float) -> None:
        super().__init__(name, dim)
        self.iterations = iterations
        self.eps = eps

    def weight(self, module: Any) -> Tensor:
        weight = module._parameters[f"{self.name}_orig"]
        u, v = (module._buffers[f"{self.name}_{side}"] for side in "uv")
        matrix = as_matrix(weight, self.dim)
        if module.training:
            with NoGrad():
                for _ in range(self.iterations):
                    step = methods.mv(methods.t(matrix), u)
                    overwrite(v, _normalised(step, self.eps).array)
                    overwrite(u, _normalised(methods.mv(matrix, v), self.eps).array)
        u, v = methods.clone(u), methods.clone(v)
        return weight / methods.dot(u, methods.mv(matrix, v))


@function("weight_norm", module="torch.nn.utils")
def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train a weight's lengths `NAME_g` and direction `NAME_v`; returns the module whose it is.

    Example: nn.utils.weight_norm(nn.Linear(3, 2))
    """
    check_module("weight_norm", module)
    weight = _weight_of(module, name)
    hook = _NormHook(name, -1 if dim is None else dim)
    module.language_delattr(name)
    with NoGrad():
        length = length_of(weight, hook.dim)
    module.register_parameter(f"{name}_g", parameter(length))
    module.register_parameter(f"{name}_v", parameter(detach(weight)))
    module._values[name] = hook.weight(module)
    module.register_forward_pre_hook(hook)
    return module


@function("spectral_norm", module="torch.nn.utils")
def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight `NAME_orig` by its largest singular value; returns the module whose it is.

    Example: nn.utils.spectral_norm(nn.Linear(3, 2))
    """
    check_module("spectral_norm", module)
    weight = _weight_of(module, name)
    hook = _SpectralHook(name, _side(module, dim), n_power_iterations, eps)
    u, v = _first_vectors(weight, hook.dim, eps)
    module.language_delattr(name)
    module.register_parameter(f"{name}_orig", weight)
    module._values[name] = detach(weight)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def _remove(module: Any, name: str, kind: type[_NormHook], parts: str) -> Any:
    """Make the weight that a hook computes of its parts a parameter again; returns the module."""
    hooks = module._hooks.forward_pre if module._hooks is not None else {}
    for key, hook in list(hooks.items()):
        if type(hook) is kind and hook.name == name:
            del hooks[key]
            with NoGrad():
                weight = detach(hook.weight(module))
            for part in (name, *(f"{name}_{part}" for part in parts.split())):
                module.language_delattr(part)
            module.register_parameter(name, parameter(weight))
            return module
    raise value_error(f"the weight '{name}' is not normalised")


@function("remove_weight_norm", module="torch.nn.utils")
def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again; E204 where it was not normalised.

    Example: nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(3, 2)))
    """
    check_module("remove_weight_norm", module)
    return _remove(module, name, _NormHook, "g v")


@function("remove_spectral_norm", module="torch.nn.utils")
def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Make the weight a parameter again; E204 where it was not normalised.

    Example: nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(3, 2)))
    """
    check_module("remove_spectral_norm", module)
    return _remove(module, name, _SpectralHook, "u v orig")
