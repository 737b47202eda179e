"""Says why a parameter does not train: frozen, in no optimizer, in one of a former model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.tree import syntax as tree
from gradcli.library.torch.nn.paths import module_paths, named_parameters
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.questions.why.detachments import Detachment
from gradcli.questions.why.finding import Why
from gradcli.recorded.recorded_run import Recorded

if TYPE_CHECKING:
    from gradcli.errors import Span

_MOST = 3


def not_training(run: Recorded, name: str, tensor: Tensor) -> Why | None:
    """Why no optimizer changes a parameter, None where one does or there is none."""
    if not tensor.requires_grad:
        return buffer(name, tensor, "trains") or frozen(run, name)
    optimizers = {n: v for n, v in run.values.items() if isinstance(v, Optimizer)}
    if not optimizers:
        return None
    for called, optimizer in optimizers.items():
        for group in optimizer.param_groups:
            if any(each is tensor for each in group["params"]):
                return _idle(run, name, called, group)
    return _in_none(run, name, tensor, optimizers)


def _answer(name: str, kind: str, reason: str, places: list[Detachment]) -> Why:
    return Why(f"{name}.trains", False, kind, reason, places)


def buffer(name: str, tensor: Tensor, attribute: str) -> Why | None:
    """The answer for a buffer of a module, None for another tensor."""
    for _, module in module_paths().values():
        if any(each is tensor for each in getattr(module, "_buffers", {}).values()):
            text = "a buffer is saved and moved with its module, and gets no gradient"
            help = "what is to train is an `nn.Parameter`; what is to stay as it is needs nothing"
            reason, places = f"{name} is a buffer of a module", [Detachment(None, text, help)]
            value = None if attribute == "grad" else False
            return Why(f"{name}.{attribute}", value, "buffer", reason, places)
    return None


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
    step, used = _steps(run, called)
    if used or (step is not None and not run.recorder.passes):
        return None
    if step is not None:
        text = f"no step() of `{called}` finds a gradient"
        at_step = Detachment(step, "here there is none", _ORDER)
        return _answer(name, "no gradient at step", text, [at_step])
    text = f"`{called}` has it, and its step() is never called"
    return _answer(
        name, "no step", text, [Detachment(place, "made here", f"call `{called}.step()`")]
    )


_ORDER = "the order is zero_grad(), backward(), step()"


def _steps(run: Recorded, called: str) -> tuple[Span | None, bool]:
    """The last `step()` of an optimizer, and whether one found what a backward pass had left."""
    found, step, used = False, None, False
    for each in run.provenance.evaluations:
        if not isinstance(each.node, tree.Call):
            continue
        function = each.node.function.span.text
        if function.endswith("zero_grad"):
            found = False
        elif function.endswith("backward") or (function == f"{called}.step" and each.parts[1:]):
            found = True  # a closure that is given to step() runs the pass inside it
        if function in (f"{called}.step", f"scaler.step({called})"):
            step, used = each.node.span, used or found
    return step, used


def _in_none(run: Recorded, name: str, tensor: Tensor, optimizers: Mapping[str, Any]) -> Why:
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
    listed = _in_a_list(run, name, tensor, optimizers)
    if listed is not None:
        return listed
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


_CONTAINERS: Mapping[type, str] = {list: "ModuleList", tuple: "ModuleList", dict: "ModuleDict"}


def _in_a_list(
    run: Recorded, name: str, tensor: Tensor, optimizers: Mapping[str, Any]
) -> Why | None:
    """The answer for a parameter of a module that a plain list or dict of another module holds."""
    for path, module in module_paths().values():
        for attribute, value in getattr(module, "_values", {}).items():
            container = _CONTAINERS.get(type(value))
            held = value.values() if type(value) is dict else value
            if container is None or not any(_has(each, tensor) for each in held):
                continue
            owner = f"{path}.{attribute}"
            text = f"a Python {type(value).__name__}: `{path}.parameters()` does not look into it"
            places = [
                Detachment(_attribute_place(run, attribute), text, f"wrap it: `nn.{container}(…)`")
            ]
            reason = f"no optimizer holds it: `{owner}` hides it from `{path}`"
            return _answer(name, "hidden", reason, places)
    return None


def _has(module: Any, tensor: Tensor) -> bool:
    """Whether a value is a module with a parameter."""
    if module is tensor:
        return True
    parameters = getattr(module, "parameters", None)
    return parameters is not None and any(each is tensor for each in parameters())


def _attribute_place(run: Recorded, attribute: str) -> Span | None:
    """The last assignment to an attribute of that name."""
    place = None
    for node in tree.nodes_of(list(run.program)):
        if isinstance(node, tree.Assign) and any(
            isinstance(target, tree.Attribute) and target.name == attribute
            for target in node.targets
        ):
            place = node.span
    return place


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
    place = _attribute_place(run, owner.rpartition(".")[2])
    text = f"{owner} is made here, and no forward() that ran has called it"
    return Detachment(place, text, "call it in forward(), or do not make it")


def clearing_misses(run: Recorded, name: str, tensor: Tensor) -> str:
    """How to clear a gradient between two passes, which the program's own zero_grad() did not."""
    optimizers = {n: v for n, v in run.values.items() if isinstance(v, Optimizer)}
    others = [
        called
        for called, optimizer in optimizers.items()
        if not any(each is tensor for group in optimizer.param_groups for each in group["params"])
    ]
    if others and len(others) == len(optimizers):
        root = name.partition(".")[0]
        instead = f"`{name}.grad = None`" if root == name else f"`{root}.zero_grad()`"
        return (
            f"`{others[0]}` does not hold it, so `{others[0]}.zero_grad()` does not clear it:"
            f" {instead} does"
        )
    return f"clear it in between: `{name}.grad = None`, or `zero_grad()`"
