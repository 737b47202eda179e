"""`torch.nn.utils.parametrize`: a parameter that is computed from another one.

The computed tensor stands under the parameter's name; what it is computed from is a parameter of
`module.parametrizations.NAME`. Parametrizations of weights are weight and spectral normalisation,
with and without hooks, and orthogonal matrices.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.autograd.inplace.writes import overwrite
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.library.torch.nn.attributes import is_parameter, kind_of
from gradcli.library.torch.nn.layers.containers import ModuleDict, ModuleList
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import F, linalg, methods, operators, torch
from gradcli.ops.creation.copies import detach
from gradcli.ops.creation.data import parameter
from gradcli.ops.creation.tensor_methods import set_data
from gradcli.ops.nn.normalisation.layer import length_of, scaled_direction
from gradcli.state import active

_MODULE = "torch.nn.utils.parametrize"


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, each from the result of the one before.

    The first takes `original`, or, if its `right_inverse` gave several tensors, `original0`,
    `original1` and so on.
    """

    language_name = "torch.nn.utils.parametrize.ParametrizationList"

    def __init__(self, modules: list[Any], original: Tensor) -> None:
        super().__init__(modules)
        start: Any = original
        with NoGrad():
            for module in reversed(modules):
                inverse = _right_inverse(module)
                if inverse is not None:
                    start = inverse(module, start)
        self.is_tensor = isinstance(start, Tensor)
        if isinstance(start, Tensor):
            self._begin(original, start)
            return
        if not isinstance(start, (tuple, list)):
            raise value_error(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...)."
                f" Got {type(start).__name__}"
            )
        self.ntensors = len(start)
        for number, tensor in enumerate(start):
            self._take(f"original{number}", tensor, original)

    def _begin(self, original: Tensor, start: Tensor) -> None:
        """Let the original hold what the tensor is computed from."""
        if start.dtype != original.dtype:
            raise value_error(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {start.dtype}"
            )
        if start.array.shape != original.array.shape:
            set_data(original, start)
        elif start is not original:
            overwrite(original, start.array)
        self._take("original", original, original)

    def _take(self, name: str, tensor: Tensor, like: Tensor) -> None:
        """Add a tensor as a parameter, or as a buffer, as `like` is one."""
        if not is_parameter(like):
            self.register_buffer(name, tensor)
        elif is_parameter(tensor):
            self.register_parameter(name, tensor)
        else:
            self.register_parameter(name, parameter(detach(tensor), like.requires_grad))

    def right_inverse(self, value: Any) -> None:
        """Let the tensor be a value that a program assigns."""
        with NoGrad():
            for module in reversed(self._modules.values()):
                inverse = _right_inverse(module)
                if inverse is None:
                    raise GradcliError(
                        "E205",
                        f"parametrization {type(module).__name__} does not implement"
                        " right_inverse.",
                        raises="RuntimeError",
                    )
                value = inverse(module, value)
        if self.is_tensor:
            set_data(self.original, value)
            return
        for number, part in enumerate(value):
            set_data(getattr(self, f"original{number}"), part)

    def forward(self) -> Any:
        """The tensor."""
        first, *rest = list(self._modules.values())
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*(getattr(self, f"original{n}") for n in range(self.ntensors)))
        for module in rest:
            value = module(value)
        return value


def _right_inverse(module: Any) -> Any:
    """The method that finds what a value is computed from, None where there is none."""
    written = getattr(type(module), "language_class", None)
    if written is not None:
        inverse = written.find("right_inverse")
        return inverse if callable(inverse) else None
    return getattr(type(module), "right_inverse", None)


@function("register_parametrization", module=_MODULE)
def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a module compute one of its parameters or buffers; returns the module whose it is.

    Args:
        module: the module.
        tensor_name: the name of the parameter or buffer.
        parametrization: a module; its `forward` computes the tensor, its `right_inverse`, if it
            has one, what to begin with.
        unsafe: whether the computed tensor may have another shape or dtype.

    Raises E204 for an unknown name, and for a tensor that does not fit.
    """
    check_module("register_parametrization", module)
    present = module._modules.get("parametrizations")
    if isinstance(parametrization, Module):
        parametrization.train(module.training)
    if present is not None and tensor_name in present._modules:
        if not unsafe:
            _check_added(module, tensor_name, parametrization)
        present._modules[tensor_name].append(parametrization)
        return module
    original = module._parameters.get(tensor_name)
    if original is None:
        original = module._buffers.get(tensor_name)
    if original is None:
        raise value_error(
            f"the module has no parameter or buffer '{tensor_name}'",
            text=f"Module '{module!r}' does not have a parameter, a buffer, or a parametrized"
            f" element with name '{tensor_name}'",
        )
    if not isinstance(parametrization, Module):
        raise type_error(f"a parametrization is a module, not {kind_of(parametrization)}")
    shape, dtype = original.shape, original.dtype
    parametrizations = ParametrizationList([parametrization], original)
    if not unsafe:
        with NoGrad():
            computed = parametrizations()
        _check_returned(computed)
        for what, before, after in (
            ("dtype", dtype, computed.dtype),
            ("shape", shape, computed.shape),
        ):
            if before != after:
                raise value_error(
                    f"Registering a parametrization may not change the {what} of the tensor, unless"
                    f" `unsafe` flag is enabled.\nunparametrized {what}: {before}\nparametrized"
                    f" {what}: {after}"
                )
    if present is None:
        present = ModuleDict()
    module.language_delattr(tensor_name)
    module._modules["parametrizations"] = present
    present[tensor_name] = parametrizations
    return module


def _check_returned(computed: Any) -> None:
    if not isinstance(computed, Tensor):
        kind = type(computed).__name__
        raise value_error(f"A parametrization must return a tensor. Got {kind}.")


def _changes(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    """In what two tensors differ, dtype or shape, and how."""
    pairs = [(what, getattr(before, what), getattr(after, what)) for what in ("dtype", "shape")]
    return [(what, was, now) for what, was, now in pairs if was != now]


def _check_added(module: Any, name: str, parametrization: Any) -> None:
    """Raise E204 where one more parametrization, or its inverse, gives a tensor that does not fit
    the one that is computed so far.
    """
    inverse = _right_inverse(parametrization)
    with NoGrad():
        before = module._modules["parametrizations"]._modules[name]()
        after = parametrization(before)
        _check_returned(after)
        back = before if inverse is None else inverse(parametrization, after)
    for what, was, now in _changes(before, after):
        raise value_error(
            f"Registering a parametrization may not change the {what} of the tensor, unless the"
            f" `unsafe` flag is enabled.\nmodule.{name}.{what}: {was}\nparametrization("
            f"module.{name}).{what}: {now}"
        )
    if not isinstance(back, Tensor):
        raise value_error(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    for what, was, now in _changes(before, back):
        raise value_error(
            f"The tensor returned by parametrization.right_inverse must have the same {what} as"
            f" module.{name}, unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {was}"
            f"\nreturned {what}: {now}"
        )


@function("remove_parametrizations", module=_MODULE)
def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a computed tensor a parameter again: with the computed value, or else the original's.

    Raises E204 where it is not computed, and for several originals with `leave_parametrized` off.
    """
    if not is_parametrized(module, tensor_name):
        text = f"Module {module!r} does not have a parametrization on {tensor_name}"
        raise value_error(f"the tensor '{tensor_name}' is not parametrized", text=text)
    table = module._modules["parametrizations"]._modules
    parametrizations = table.pop(tensor_name)
    if not parametrizations.is_tensor and not leave_parametrized:
        raise value_error(
            "there are several originals, and none can be the parameter",
            text="Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is"
            " parametrized in terms of a sequence of tensors.",
        )
    if parametrizations.is_tensor:
        tensor = parametrizations.original
        if leave_parametrized:
            with NoGrad():
                overwrite(tensor, parametrizations().array)
    else:
        with NoGrad():
            tensor = parameter(detach(parametrizations()))
    if not table:
        del module._modules["parametrizations"]
    if is_parameter(tensor):
        module.register_parameter(tensor_name, tensor)
    else:
        module.register_buffer(tensor_name, tensor)
    return module


@function("is_parametrized", module=_MODULE)
def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module computes a tensor of that name, or any."""
    check_module("is_parametrized", module)
    table = module._modules.get("parametrizations")
    if table is None:
        return False
    return tensor_name is None or tensor_name in table._modules


class Cached:
    """`parametrize.cached()`: a context in which each computed tensor is computed once."""

    __slots__ = ()

    language_name: ClassVar[str] = f"{_MODULE}.cached"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    depth: ClassVar[str] = "parametrize.depth"

    def __enter__(self) -> None:
        kept = active.state.library
        kept.setdefault("parametrize", {})
        kept[self.depth] = kept.get(self.depth, 0) + 1

    def __exit__(self, *exception: object) -> None:
        kept = active.state.library
        kept[self.depth] -= 1
        if not kept[self.depth]:
            del kept["parametrize"]


@function("type_before_parametrizations", module=_MODULE)
def type_before_parametrizations(module: Any) -> Any:
    """The class of a module, parametrized or not.

    Example: nn.utils.parametrize.type_before_parametrizations(nn.Linear(2, 1))
    """
    check_module("type_before_parametrizations", module)
    kind = type(module)
    return getattr(kind, "language_class", None) or catalogue.class_of(kind)


modules[_MODULE].update(ParametrizationList=ParametrizationList, cached=Cached)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix whose rows are its slices along `dim`."""
    if dim != 0:
        order = [dim, *(d for d in range(weight.array.ndim) if d != dim)]
        weight = methods.permute(weight, *order)
    return methods.flatten(weight, 1)


# --- parametrizations of weights ------------------------------------------------------------------


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


def _turned(matrix: Tensor) -> Any:
    return methods.transpose(matrix, -2, -1)


def _diagonal(matrix: Tensor) -> Any:
    return methods.diagonal(matrix, dim1=-2, dim2=-1)


def _is_orthogonal(q: Tensor) -> bool:
    rows, columns = q.array.shape[-2:]
    unit = torch.eye(columns, dtype=q.dtype)
    near = 10.0 * rows * torch.finfo(q.dtype).eps
    product = torch.matmul(methods.conj(_turned(q)), q)
    return bool(torch.allclose(product, methods.expand_as(unit, product), atol=near))


def _orthogonalised(matrix: Tensor) -> Any:
    """The factor Q of a tall matrix Q R, where the diagonal of R is not negative."""
    reflections, tau = torch.geqrf(matrix)
    q = linalg.householder_product(reflections, tau)
    return q * methods.unsqueeze(methods.sgn(_diagonal(reflections)), -2)


class _Orthogonal(Module):
    """An orthogonal matrix from any matrix, in one of three ways, times an orthogonal `base`.

    Attributes:
        orthogonal_map: "matrix_exp", "cayley" or "householder".
    """

    language_name = "torch.nn.utils.parametrizations._Orthogonal"

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.array.shape[-2] < X.array.shape[-1]
        if wide:
            X = _turned(X)
        if self.orthogonal_map == "householder":
            below = methods.tril(X, diagonal=-1)
            tau = operators.truediv(2.0, operators.add(1.0, methods.sum(below * below, dim=-2)))
            q = linalg.householder_product(below, tau)
            q = q * methods.unsqueeze(methods.int(_diagonal(X)), -2)
        else:
            q = self._of_skew(X)
        if "base" in self._buffers:
            q = torch.matmul(self.base, q)
        return _turned(q) if wide else q

    def _of_skew(self, X: Tensor) -> Any:
        """The first columns of an orthogonal matrix, from a skew-symmetric one."""
        rows, columns = X.array.shape[-2:]
        X = methods.tril(X)
        if rows != columns:
            zeros = methods.new_zeros(X, rows, rows - columns)
            zeros = methods.expand(zeros, *X.array.shape[:-2], -1, -1)
            X = torch.cat([X, zeros], dim=-1)
        skew = X - methods.conj(_turned(X))
        if self.orthogonal_map == "matrix_exp":
            q = torch.matrix_exp(skew)
        else:
            unit = torch.eye(rows, dtype=skew.dtype)
            halves = [torch.add(unit, skew, alpha=half) for half in (-0.5, 0.5)]
            q = linalg.solve(*halves)
        return q if rows == columns else operators.getitem(q, (..., slice(None, columns)))

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What a weight is computed from; the base takes up what it was before."""
        with NoGrad():
            return self._inverse(Q)

    def _inverse(self, Q: Tensor) -> Any:
        first = Q
        if Q.shape != self.shape:
            raise value_error(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of"
                f" shape {Q.shape}."
            )
        wide = Q.array.shape[-2] < Q.array.shape[-1]
        if wide:
            Q = _turned(Q)
        rows, columns = Q.array.shape[-2:]
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise GradcliError(
                    "E205",
                    "It is not possible to assign to the matrix exponential or the Cayley"
                    " parametrizations when use_trivialization=False.",
                    raises="NotImplementedError",
                )
            reflections, tau = torch.geqrf(Q)
            methods.sign_(_diagonal(reflections))
            unused = torch.eq(tau, 0.0)
            methods.mul_(_diagonal(reflections), torch.where(unused, -1, 1))
            return _turned(reflections) if wide else reflections
        if rows != columns:
            drawn = torch.randn(*Q.array.shape[:-2], rows, rows - columns, dtype=Q.dtype)
            Q = _orthogonalised(torch.cat([Q, drawn], dim=-1))
        else:
            Q = methods.clone(Q) if _is_orthogonal(Q) else _orthogonalised(Q)
        self.base = Q
        unit = torch.zeros_like(first)
        methods.fill_(_diagonal(unit), -1.0)
        return unit


@function("orthogonal", module="torch.nn.utils.parametrizations")
def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Keep a weight orthogonal; returns the module whose it is.

    Args:
        module: the module.
        name: the name of the parameter, a matrix or a batch of matrices.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; the first for square matrices and
            the last for others where it is not given.
        use_trivialization: whether the weight is relative to the orthogonal one that it was first.

    Example: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)).weight.shape
    """
    check_module("orthogonal", module)
    weight = getattr(module, name, None) if name in module.language_names() else None
    if not isinstance(weight, Tensor):
        raise value_error(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise value_error(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    is_complex = weight.dtype.category == "complex"
    if orthogonal_map is None:
        square = weight.array.shape[-2] == weight.array.shape[-1]
        orthogonal_map = "matrix_exp" if square or is_complex else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise value_error(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got:'
            f" {orthogonal_map}"
        )
    if is_complex and orthogonal_map == "householder":
        raise value_error("The householder parametrization does not support complex tensors.")
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
