"""Lints of training loops: what the first steps of an optimizer show."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Label, Span
from gradcli.library.torch.nn.attributes import Attributes, is_initialised
from gradcli.state import active

_MOST = 64
"""So many numbers of a gradient tell whether more was added to it."""

_WRITTEN = re.compile(
    r"set_to_none\s*=\s*False|zero_grad\(False|grad(\.data)?\s*(\[|[-+*/]=|\.\w+_\()"
)
"""What a program writes that changes gradients in place."""


class FirstSteps:
    """The gradients that an optimizer's first step used, until its second step begins."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used: list[tuple[Tensor, Any]] | None = None

    def begin(self, groups: list[dict[str, Any]]) -> FirstSteps | None:
        """Look at the gradients of an optimizer's groups when a step begins; None where the next
        one tells nothing.
        """
        parameters = [each for group in groups for each in group["params"]]
        gradients = [
            each.meta.grad for each in parameters if each.meta and each.meta.grad is not None
        ]
        if self.used is None:
            self.used = [(grad, _sample(grad)) for grad in gradients]
            _check_reached(nothing=not gradients)
            return self
        present = {id(grad) for grad in gradients}
        for grad, before in self.used:
            if id(grad) in present and not np.array_equal(before, _sample(grad), equal_nan=True):
                _warn_of_sum(next(p for p in parameters if p.meta and p.meta.grad is grad))
                break
        return None


def _sample(grad: Tensor) -> Any:
    array = forced(grad.array)
    return np.array(array.flat[:_MOST]) if type(array) is np.ndarray else array


def _called() -> str:
    """What the program calls the optimizer that steps."""
    place = active.state.place
    name, dot, _ = ("" if place is None else place.text).partition(".step(")
    return name if dot else "optimizer"


def _warn_of_sum(parameter: Tensor) -> None:
    """Warn (W017) of a gradient to which another was added after a step had used it."""
    place = active.state.place
    if place is not None and _WRITTEN.search(place.source.text):
        return  # the program looks after its gradients itself
    name = f"`{parameter.name}`" if parameter.name else "a parameter"
    active.state.warn(
        "W017",
        f"the gradient of {name} holds that of the former step too: every backward() adds to .grad",
        help=f"call `{_called()}.zero_grad()` before each backward()",
    )


def note_held(parameters: list[Tensor]) -> None:
    """Remember that an optimizer of the session holds these parameters."""
    active.state.library.setdefault("optimized", set()).update(map(id, parameters))


def _check_reached(*, nothing: bool) -> None:
    """Warn of parameters with a gradient that no optimizer holds: where this one has `nothing` to
    change (W023), and where they are out of sight of `parameters()` (W021).
    """
    held = active.state.library.get("optimized", set())
    modules = [] if active.state.modules is None else list(active.state.modules.values())
    modules = [module for module in modules if is_initialised(module)]
    inner = {id(child) for module in modules for child in module._modules.values()}
    for module in modules:
        for name, value in module._values.items():
            rest = [each for each in _modules_in(value) if id(each) not in inner]
            if any(_left_out(each, held) for each in rest):
                _warn_of_list(module, name, value)
                return
    parameters = {id(each) for module in modules for each in module._parameters.values()}
    help = f"make `{_called()}` after the model that it is to train"
    if held & parameters:
        help = f"give `{_called()}` the parameters that it is to train: these have no gradient"
    for module in modules if nothing else ():
        for name in _left_out(module, held):
            active.state.warn(
                "W023",
                f"`{_called()}` changes nothing: none of its parameters has a gradient, and"
                f" `{name}` of {type(module).__name__}, which has one, is in no optimizer",
                help=help,
            )
            return


def _left_out(module: Any, held: set[int]) -> list[str]:
    """The names of a module's own parameters that have a gradient, and are not held."""
    return [
        name
        for name, each in module._parameters.items()
        if each is not None and each.grad is not None and id(each) not in held
    ]


def _modules_in(value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple, dict)):
        return []
    parts = value.values() if isinstance(value, dict) else value
    return [each for each in parts if isinstance(each, Attributes) and is_initialised(each)]


def _warn_of_list(module: Any, name: str, value: Any) -> None:
    """Warn (W021) of layers in a plain list or dict."""
    owner = type(module).__name__
    kind = "ModuleDict" if isinstance(value, dict) else "ModuleList"
    labels: tuple[Label, ...] = ()
    place = active.state.place
    match = place and re.search(rf"self\.{re.escape(name)}\b *=", place.source.text)
    if place is not None and match:
        end = place.source.text.find("\n", match.end()) % (len(place.source.text) + 1)
        labels = (Label(Span(place.source, match.start(), end), "these layers are not registered"),)
    active.state.warn(
        "W021",
        f"`{name}` of {owner} holds layers that have gradients and are not trained: parameters()"
        f" does not look into a plain {type(value).__name__}",
        help=f"keep them in one that registers them: `self.{name} = nn.{kind}(…)`",
        labels=labels,
    )
