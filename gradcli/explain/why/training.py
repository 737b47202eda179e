"""Says why a parameter does not train: frozen, in no optimizer, in one of a former model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.explain.recorded_run import Recorded
from gradcli.explain.why.detachments import Detachment
from gradcli.explain.why.finding import Why
from gradcli.language.paths import module_paths, named_parameters
from gradcli.language.tree import syntax as tree
from gradcli.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from gradcli.errors import Span

_MOST = 3


def not_training(run: Recorded, name: str, tensor: Tensor) -> Why | None:
    """Why no optimizer changes a parameter, None where one does or there is none."""
    if not tensor.requires_grad:
        return frozen(run, name)
    optimizers = {n: v for n, v in run.values.items() if isinstance(v, Optimizer)}
    if not optimizers:
        return None
    for called, optimizer in optimizers.items():
        for group in optimizer.param_groups:
            if any(each is tensor for each in group["params"]):
                return _idle(run, name, called, group)
    return _in_none(run, name, optimizers)


def _answer(name: str, kind: str, reason: str, places: list[Detachment]) -> Why:
    return Why(f"{name}.trains", False, kind, reason, places)


def frozen(run: Recorded, name: str) -> Why:
    """The answer for a parameter that requires no grad."""
    places = [
        Detachment(span, "this says which parameters require grad", "leave it out, or unfreeze it")
        for span in list(_freezing(run))[:_MOST]
    ]
    return _answer(name, "frozen", f"{name} is frozen: its requires_grad is False", places)


def _freezing(run: Recorded) -> Iterator[Span]:
    for node in tree.nodes_of(list(run.program)):
        named = [node.function] if isinstance(node, tree.Call) else []
        named += node.targets if isinstance(node, tree.Assign) else []
        if any(
            isinstance(each, tree.Attribute) and each.name in ("requires_grad", "requires_grad_")
            for each in named
        ):
            yield node.span


def _idle(run: Recorded, name: str, called: str, group: Mapping[str, Any]) -> Why | None:
    """An optimizer that has the parameter and does not change it."""
    place = _assigned(run, called)
    if group.get("lr") == 0:
        text = f"`{called}` has lr=0 for it"
        return _answer(name, "no rate", text, [Detachment(place, text, "give it a learning rate")])
    stepped = any(
        isinstance(each.node, tree.Call) and each.node.function.span.text == f"{called}.step"
        for each in run.provenance.evaluations
    )
    if stepped:
        return None
    text = f"`{called}` has it, and its step() is never called"
    return _answer(
        name, "no step", text, [Detachment(place, "made here", f"call `{called}.step()`")]
    )


def _in_none(run: Recorded, name: str, optimizers: Mapping[str, Any]) -> Why:
    current = {
        id(parameter)
        for path, parameter in named_parameters()
        if path.partition(".")[0].partition("[")[0] in run.values
    }
    for called, optimizer in optimizers.items():
        held = [each for group in optimizer.param_groups for each in group["params"]]
        if held and not any(id(each) in current for each in held):
            root = name.partition(".")[0].partition("[")[0]
            places = [
                Detachment(
                    _assigned(run, root),
                    f"from here on `{root}` is another model",
                    f"make `{called}` after the model that it is to train",
                ),
                Detachment(_assigned(run, called), f"`{called}` was given the former parameters"),
            ]
            reason = f"`{called}` holds the parameters of a former model, and not those of `{root}`"
            return _answer(name, "old model", reason, places)
    called = next(iter(optimizers))
    owner = re.sub(r"\.(\d+)", r"[\1]", name.rpartition(".")[0])
    places = [
        Detachment(
            _assigned(run, called),
            f"`{name}` is not among the parameters that this is given",
            f"`{called}.add_param_group({{'params': list({owner}.parameters())}})`, or make"
            f" `{called}` after {owner} is there",
        )
    ]
    return _answer(name, "no optimizer", "no optimizer holds it", places)


def _assigned(run: Recorded, name: str) -> Span | None:
    statement = run.provenance.last_assignment(name)
    return None if statement is None else statement.span


def never_called(run: Recorded, name: str) -> Detachment | None:
    """Where a parameter's module was made, if no call of the module was recorded."""
    owner, _, _ = name.rpartition(".")
    module = next((each for path, each in module_paths().values() if path == owner), None)
    if module is None:
        return None
    if any(call.module is module for call in run.recorder.modules.values()):
        return None
    part = owner.rpartition(".")[2]
    place = None
    for node in tree.nodes_of(list(run.program)):
        if isinstance(node, tree.Assign) and any(
            isinstance(target, tree.Attribute) and target.name == part for target in node.targets
        ):
            place = node.span
    text = f"{owner} is made here, and no forward() that ran has called it"
    return Detachment(place, text, "call it in forward(), or do not make it")
