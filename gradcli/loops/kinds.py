"""The classes by which a capture tells modules, optimizers and their like from all else.

None of their modules is loaded for it: a class that was never loaded has no instances.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from gradcli.language.objects.classes.extensible import Extensible

if TYPE_CHECKING:
    from gradcli.autograd.custom_function import FunctionNode
    from gradcli.library.torch.distributions.distribution import Distribution
    from gradcli.library.torch.nn.module import BackwardHooks, Module
    from gradcli.library.torch.nn.state_dict import OrderedDict as StateDict
    from gradcli.library.torch.nn.traversal import Walk
    from gradcli.library.torch.optim.optimizer import Optimizer
    from gradcli.library.tqdm import Tqdm


class _NotLoaded:
    """Stands for a class that was never loaded."""


STATE_VIEWS: frozenset[type] = frozenset(
    map(type, (OrderedDict().items(), OrderedDict().keys(), OrderedDict().values()))
)
"""The views of what `model.state_dict()` gives."""


def module_class() -> type[Module]:
    """`nn.Module`."""
    return _loaded("gradcli.library.torch.nn.module", "Module")


def state_dict_class() -> type[StateDict]:
    """What `model.state_dict()` gives."""
    return _loaded("gradcli.library.torch.nn.state_dict", "OrderedDict")


def bar_class() -> type[Tqdm]:
    """`tqdm.tqdm`."""
    return _loaded("gradcli.library.tqdm", "Tqdm")


def walk_class() -> type[Walk]:
    """What `model.parameters()` and its like give."""
    return _loaded("gradcli.library.torch.nn.traversal", "Walk")


def optimizer_class() -> type[Optimizer]:
    """`optim.Optimizer`."""
    return _loaded("gradcli.library.torch.optim.optimizer", "Optimizer")


def context_class() -> type[FunctionNode]:
    """The node of a custom function, which is the `ctx` of its methods."""
    return _loaded("gradcli.autograd.custom_function", "FunctionNode")


def backward_hooks_class() -> type[BackwardHooks]:
    """What calls the backward hooks of a module."""
    return _loaded("gradcli.library.torch.nn.module", "BackwardHooks")


def distribution_class() -> type[Distribution]:
    """`torch.distributions.Distribution`."""
    return _loaded("gradcli.library.torch.distributions.distribution", "Distribution")


def goes_by_fields(value: Any) -> bool:
    """Whether a value is a distribution, a transform, a data set or their like: what the library
    does with it goes by what stands in its fields.
    """
    return isinstance(value, Extensible) and not (
        isinstance(value, optimizer_class()) or hasattr(type(value), "get_last_lr")
    )


def is_of_library(value: Any) -> bool:
    """Whether a value is a layer, or of a class that extends one: its own methods read what it
    holds.
    """
    base = module_class()
    above = type(value).__mro__[: -len(base.__mro__)] if isinstance(value, base) else ()
    return any("language_class" not in vars(each) for each in above)


def _loaded(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, _NotLoaded)
