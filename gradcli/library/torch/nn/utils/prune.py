"""`torch.nn.utils.prune`: parameters whose smallest elements, or any others, are held at zero.

A pruned parameter `NAME` becomes `NAME_orig`, the buffer `NAME_mask` says what is kept, and a
pre-hook multiplies the two before each call of the module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, assertion_error, type_error, value_error
from gradcli.language.objects.classes.extensible import Extensible
from gradcli.library.torch.nn.module import check_module
from gradcli.library.torch.nn.utils.clipping import parameters_to_vector
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.tensor_methods import set_data

_MODULE = "torch.nn.utils.prune"


class BasePruningMethod(Extensible):
    """The base of all methods; a program's own gives `PRUNING_TYPE` and `compute_mask`."""

    fields: ClassVar[tuple[str, ...]] = ("_tensor_name",)

    _tensor_name: str

    home = _MODULE
    tables = (_MODULE,)
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"PRUNING_TYPE", "_tensor_name", "apply_mask", "compute_mask", "prune", "remove"}
    )
    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"PRUNING_TYPE", "apply"})
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"_tensor_name"})
    PRUNING_TYPE: ClassVar[str] = "unstructured"

    def __call__(self, module: Any, inputs: Any) -> None:
        """The pre-hook."""
        module.register(self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor, of which `default_mask` is left so far."""
        raise GradcliError("E205", "a pruning method has to define compute_mask()")

    def apply_mask(self, module: Any) -> Tensor:
        """The tensor with zeros where it is pruned."""
        mask = getattr(module, f"{self._tensor_name}_mask")
        original = getattr(module, f"{self._tensor_name}_orig")
        return methods.to(mask, dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, once more where it is pruned already; returns the hook."""
        check_module("apply", module)
        method = getattr(cls, "language_class", cls)(*args, **kwargs)
        return _applied(method, module, name, importance_scores)

    def prune(self, t: Tensor, default_mask: Any = None, importance_scores: Any = None) -> Tensor:
        """A tensor pruned, outside of any module."""
        scores = t if importance_scores is None else importance_scores
        _check_shape(scores, t)
        mask = torch.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Any) -> None:
        """Make the pruned values the parameter's own."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if name in module.language_names():
            module.language_delattr(name)
        original = module._parameters.pop(f"{name}_orig")
        set_data(original, methods.detach(weight))
        del module._buffers[f"{name}_mask"]
        module.register(name, original)


def _check_shape(scores: Tensor, t: Tensor) -> None:
    if scores.array.shape != t.array.shape:
        raise assertion_error("importance_scores should have the same shape as tensor t")


def _hook_of(module: Any, name: str) -> tuple[int, Any] | None:
    """The key and the hook that prune a parameter."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


def _applied(method: Any, module: Any, name: str, scores: Any) -> Any:
    """Prune a parameter by a method, after the one that it is pruned by already."""
    method._tensor_name = name
    before = _hook_of(module, name)
    if before is not None:
        key, old = before
        del module._forward_pre_hooks[key]
        container = old if isinstance(old, PruningContainer) else PruningContainer(old)
        container.add_pruning_method(method)
        method = container
    tensor = getattr(module, name)
    if scores is not None:
        _check_shape(scores, tensor)
    if before is None:
        del module._parameters[name]
        module.register_parameter(f"{name}_orig", tensor)
        mask = torch.ones_like(tensor)
    else:
        mask = methods.clone(methods.detach(getattr(module, f"{name}_mask")))
    pruned = method.compute_mask(tensor if scores is None else scores, mask)
    module.register_buffer(f"{name}_mask", pruned)
    module.register(name, method.apply_mask(module))
    module.register_forward_pre_hook(method)
    return method


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other."""

    fields: ClassVar[tuple[str, ...]] = ("_pruning_methods",)

    language_attributes = BasePruningMethod.language_attributes | {"add_pruning_method"}

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: list[Any] = []
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add one as the last."""
        if not isinstance(method, BasePruningMethod):
            raise type_error("a container takes pruning methods")
        if method._tensor_name != self._tensor_name:
            raise value_error(
                "Can only add pruning methods acting on the parameter named"
                f" '{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods.append(method)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        mask = methods.to(default_mask, dtype=t.dtype)
        where: Any = tuple([slice(None)] * t.ndim)
        if method.PRUNING_TYPE == "unstructured":
            where = torch.eq(default_mask, 1)
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim
            others = [each for each in range(t.ndim) if each != dim]
            kept = torch.ne(methods.sum(default_mask, dim=others), 0)
            where = (*where[:dim], kept, *where[dim + 1 :])
        read, write = operators.getitem, operators.setitem
        part = method.compute_mask(read(t, where), default_mask=read(default_mask, where))
        write(mask, where, methods.to(part, dtype=mask.dtype))
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Amount(BasePruningMethod):
    """The base of those that prune a share, or a number, of what there is."""

    fields: ClassVar[tuple[str, ...]] = ("amount",)

    def __init__(self, amount: Any) -> None:
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise type_error(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (isinstance(amount, float) and amount > 1):
            raise value_error(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative"
                " integer"
            )
        self.amount = amount

    def count(self, size: int) -> int:
        """How many of `size` to prune."""
        count = self.amount if isinstance(self.amount, int) else round(self.amount * size)
        if count > size:
            raise value_error(
                f"amount={count} should be smaller than the number of parameters to prune={size}"
            )
        return count


class RandomUnstructured(_Amount):
    """Prunes elements drawn at random."""

    largest: ClassVar[bool] = True

    def scores(self, t: Tensor) -> Tensor:
        """What decides which elements are pruned."""
        return torch.rand_like(t)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self.count(t.array.size)
        mask: Tensor = methods.clone(default_mask)
        if count:
            flat = methods.reshape(self.scores(t), -1)
            chosen = torch.topk(flat, count, largest=self.largest)
            operators.setitem(methods.view(mask, -1), chosen[1], 0)
        return mask


class L1Unstructured(RandomUnstructured):
    """Prunes the elements of the smallest absolute values."""

    largest = False

    def scores(self, t: Tensor) -> Tensor:
        return torch.abs(t)


class RandomStructured(_Amount):
    """Prunes channels drawn at random."""

    fields: ClassVar[tuple[str, ...]] = ("dim",)

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def kept(self, t: Tensor, size: int, count: int) -> Any:
        """An index of the channels that stay."""
        drawn = torch.rand(size)
        return torch.gt(drawn, torch.kthvalue(drawn, count)[0])

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        sizes = t.array.shape
        if len(sizes) <= 1:
            raise value_error(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor"
                f" of shape {t.shape} with {len(sizes)} dims"
            )
        if self.dim >= len(sizes):
            raise GradcliError(
                "E303",
                f"Invalid index {self.dim} for tensor of size {t.shape}",
                raises="IndexError",
            )
        size = sizes[self.dim]
        count = self.count(size)
        if not count:
            return default_mask
        mask: Tensor = torch.zeros_like(t)
        dim = self.dim % len(sizes)
        operators.setitem(mask, (*[slice(None)] * dim, self.kept(t, size, count)), 1)
        methods.mul_(mask, methods.to(default_mask, dtype=mask.dtype))
        return mask


class LnStructured(RandomStructured):
    """Prunes the channels of the smallest norms."""

    fields: ClassVar[tuple[str, ...]] = ("n",)

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def kept(self, t: Tensor, size: int, count: int) -> Any:
        dim = self.dim % t.ndim
        norms = torch.norm(t, p=self.n, dim=[each for each in range(t.ndim) if each != dim])
        return torch.topk(norms, size - count)[1]


class CustomFromMask(BasePruningMethod):
    """Prunes what a mask says."""

    fields: ClassVar[tuple[str, ...]] = ("mask",)

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * methods.to(self.mask, dtype=default_mask.dtype)


# --- functions ------------------------------------------------------------------------------------


@function("identity", module=_MODULE)
def identity(module: Any, name: str) -> Any:
    """Give a parameter a mask of ones; returns the module.

    Example: nn.utils.prune.identity(nn.Linear(2, 1), 'weight').weight_mask
    """
    Identity.apply(module, name)
    return module


@function("random_unstructured", module=_MODULE)
def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune elements drawn at random, a number of them or a share; returns the module.

    Example: nn.utils.prune.random_unstructured(nn.Linear(4, 1), 'weight', 2).weight_mask.sum()
    """
    RandomUnstructured.apply(module, name, amount)
    return module


@function("l1_unstructured", module=_MODULE)
def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the elements of the smallest absolute values, or scores; returns the module.

    Example: nn.utils.prune.l1_unstructured(nn.Linear(4, 1), 'weight', 0.5).weight_mask.sum()
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


@function("random_structured", module=_MODULE)
def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune channels along a dimension drawn at random; returns the module.

    Example: nn.utils.prune.random_structured(nn.Linear(4, 2), 'weight', 1, 1).weight_mask.sum()
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


@function("ln_structured", module=_MODULE)
def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the channels along a dimension that have the smallest norms; returns the module.

    Example: nn.utils.prune.ln_structured(nn.Linear(4, 2), 'weight', 0.5, 2, 0).weight_mask.sum()
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@function("custom_from_mask", module=_MODULE)
def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune what a mask says; returns the module.

    Example: nn.utils.prune.custom_from_mask(nn.Linear(2, 1), 'bias', tensor([0.])).bias
    """
    CustomFromMask.apply(module, name, mask)
    return module


@function("global_unstructured", module=_MODULE)
def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters, pairs of module and name, as if they were one."""
    pairs = list(parameters)
    scores = importance_scores or {}
    if not isinstance(scores, Mapping):
        raise type_error("global_unstructured(): importance_scores is a dict")
    tensors = [getattr(module, name) for module, name in pairs]
    values = [scores.get(pair, own) for pair, own in zip(pairs, tensors, strict=True)]
    left = [
        getattr(module, f"{name}_mask")
        if f"{name}_mask" in module._buffers
        else torch.ones_like(own)
        for (module, name), own in zip(pairs, tensors, strict=True)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise type_error(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method'
            f" {pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    mask = PruningContainer(method).compute_mask(
        parameters_to_vector(values), parameters_to_vector(left)
    )
    parts = torch.split(mask, [own.array.size for own in tensors])
    for (module, name), own, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, methods.view_as(part, own))


@function("remove", module=_MODULE)
def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter an ordinary one with its zeros; returns the module. Raises E204 where
    it is not pruned.

    Example: nn.utils.prune.remove(nn.utils.prune.identity(nn.Linear(2, 1), 'weight'), 'weight')
    """
    check_module("remove", module)
    entry = _hook_of(module, name)
    if entry is None:
        raise value_error(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    key, hook = entry
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


@function("is_pruned", module=_MODULE)
def is_pruned(module: Any) -> bool:
    """Whether a parameter of the module, or of one below it, is pruned.

    Example: nn.utils.prune.is_pruned(nn.Linear(2, 1))
    """
    check_module("is_pruned", module)
    return any(
        isinstance(hook, BasePruningMethod)
        for _, inner in module.each_module()
        for hook in inner._forward_pre_hooks.values()
    )
