"""Says why a parameter does not train: frozen, in no optimizer, in one of a former model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.recording.trace_recorder import is_same
from gradcli.autograd.tensor import Tensor
from gradcli.language.provenance import targets_of
from gradcli.language.tree import syntax as tree
from gradcli.library.torch.nn.module import Module
from gradcli.library.torch.nn.traversal import module_paths
from gradcli.library.torch.optim.lbfgs import LBFGS
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.library.torch.optim.schedules import LRScheduler
from gradcli.questions.why.detachments import Detachment, Why
from gradcli.questions.why.edits import (
    added,
    appended,
    before,
    behind,
    calls_of,
    edited,
    instead,
    with_argument,
)
from gradcli.recorded.patterns import holds
from gradcli.recorded.recorded_run import Recorded

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.language.provenance import Evaluation

_MOST = 3


def not_training(run: Recorded, name: str, tensor: Tensor) -> Why | None:
    """Why no optimizer changes a parameter, None where one does or there is none."""
    if not tensor.requires_grad:
        return buffer(name, tensor, "trains") or frozen(run, name, tensor)
    optimizers = {n: v for n, v in run.values.items() if isinstance(v, Optimizer)}
    if not optimizers:
        return _given_nothing(run, name)
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


def parametrized(name: str, attribute: str) -> Why | None:
    """The answer for a weight that a parametrization computes of others, None for another tensor.

    Args:
        attribute: `grad` or `trains`.
    """
    owner, _, weight = name.rpartition(".")
    modules = dict(module_paths().values())
    inner = f"{owner}.parametrizations.{weight}"
    held = [f"`{inner}.{e}`" for e in getattr(modules.get(inner), "_parameters", {})]
    if not held:  # pruning, and the older norms of weights
        names = getattr(modules.get(owner), "_parameters", {})
        held = [f"`{owner}.{e}`" for e in names if re.fullmatch(rf"{weight}_(orig|g|v)", e)]
    if not held:
        return None
    trains = "which is what trains" if len(held) == 1 else "which are what trains"
    kept = "gradients are kept there" if attribute == "grad" else trains
    mark = ":" if attribute == "grad" else ","
    text = f"it is computed of {' and '.join(held)} at each use{mark} {kept}"
    value, reason = None, f"{name} is no leaf: a parametrization makes it"
    if attribute == "trains":
        value, reason = False, f"{name} is no parameter: a parametrization makes it"
    return Why(f"{name}.{attribute}", value, "parametrized", reason, [Detachment(None, text)])


def frozen(run: Recorded, name: str, tensor: Tensor) -> Why:
    """The answer for a parameter that requires no grad."""
    places = list(_freezing(run, tensor))
    edits = [(e.start, e.end, e.text.replace("False", "True")) for e in places]
    tries = edited(places[0], edits) if places else ()
    text, help = "this says which parameters require grad", "leave it out, or unfreeze it"
    detachments = [Detachment(span, text, help, (), tries) for span in places[:_MOST]]
    detachments = detachments or _made_frozen(run, tensor)
    return _answer(name, "frozen", f"{name} is frozen: its requires_grad is False", detachments)


def _made_frozen(run: Recorded, tensor: Tensor) -> list[Detachment]:
    """Where a module was made that is frozen from the beginning."""
    for each in run.provenance.evaluations:
        span = each.node.span
        called = isinstance(each.node, tree.Call) and "from_pretrained(" in span.text
        if called and _has(each.value, tensor):
            text = "from_pretrained() freezes what it is given"
            tries = with_argument(span, "freeze=False")
            return [Detachment(span, text, "say `freeze=False`", (), tries)]
    return []


def _freezing(run: Recorded, tensor: Tensor) -> list[Span]:
    """Where the program said that a parameter requires no grad; where it says so of any, if it is
    not known.
    """
    own: list[Span] = []
    others: list[Span] = []
    for statement, evaluation in run.provenance.assignments:
        targets = statement.targets if isinstance(statement, tree.Assign) else []
        if any(isinstance(e, tree.Attribute) and e.name == "requires_grad" for e in targets):
            holds = any(part.value is tensor for part in evaluation.parts)
            (own if holds else others).append(statement.span)
    for each in run.provenance.evaluations:
        called = each.node.function if isinstance(each.node, tree.Call) else None
        is_of_flag = isinstance(called, tree.Attribute) and called.name == "requires_grad_"
        if is_of_flag and not re.search(r"\((True|requires_grad=True)?\)$", each.node.span.text):
            (own if _has(each.value, tensor) else others).append(each.node.span)
    if not own and not others and run.provenance.unheard:  # in an iteration that was not recorded
        calls = calls_of(run.program, ".requires_grad_")
        others = [each.span for each in calls if "False" in each.span.text]
    return list(dict.fromkeys(own or others))


def _idle(run: Recorded, name: str, called: str, group: Mapping[str, Any]) -> Why | None:
    """An optimizer that has the parameter and does not change it."""
    place = _assigned(run, called)
    changes = group.get("initial_lr") or any(_SETS_RATE.search(e.span.text) for e in run.program)
    if group.get("lr") == 0 and not changes:
        text = f"`{called}` has lr=0 for it"
        if place is not None and place.source.origins is not None:
            return _answer(name, "no rate", text, [Detachment(place, _RECORDED_RATE)])
        rate = "" if place is None else re.sub(r"\blr\s*=\s*0[.0]*(e-?\d+)?", "lr=0.1", place.text)
        tries = instead(place, rate)
        detachment = Detachment(place, text, "give it a learning rate", (), tries)
        return _answer(name, "no rate", text, [detachment])
    if group.get("lr") == 0 and changes and place is not None and place.source.origins is not None:
        text = f"`{called}` has lr=0 for it at the step()"
        began = f"it began with lr={group.get('initial_lr')}, of which a schedule has made 0"
        return _answer(name, "no rate at step", text, [Detachment(place, began)])
    step, used = _steps(run, called)
    if used or (step is not None and not run.recorder.passes):
        return None
    if step is not None:
        text = f"no step() of `{called}` finds a gradient"
        at_step = Detachment(step, "here there is none", _ORDER, (), _in_order(run, called))
        return _answer(name, "no gradient at step", text, [at_step])
    skipped = _skipped(run, called)
    if skipped is not None:
        text = (
            "the gradients hold a NaN or an infinity, where GradScaler calls no step(): `gradcli"
            " blame` finds the first; where the scale alone is too large, update() makes it smaller"
        )
        reason = f"a GradScaler left out the step() of `{called}`"
        return _answer(name, "skipped step", reason, [Detachment(skipped, text)])
    text = f"`{called}` has it, and its step() is never called"
    written = [e.span for e in calls_of(run.program, ".step") if _steps_it(e, called)]
    if written:
        missed = Detachment(written[0], "the program never comes to this call")
        return _answer(name, "no step", text, [missed])
    last = run.recorder.passes[-1].span if run.recorder.passes else None
    tries = (
        *added(run.program, last, f"{called}.step()"),
        *appended(run.program, f"{called}.step()"),
    )
    detachment = Detachment(place, "made here", f"call `{called}.step()`", (), tries)
    return _answer(name, "no step", text, [detachment])


_RECORDED_RATE = (
    "this is its rate at the step() that was recorded: it was made so, or it was changed since"
)


def _skipped(run: Recorded, called: str) -> Span | None:
    """Where a GradScaler left out the last step of an optimizer in a recording."""
    for each in reversed(run.provenance.evaluations):
        node = each.node
        function = node.function.span.text if isinstance(node, tree.Call) else ""
        if function == "skipped_step" and _is_of(each, called):
            return node.span
    return None


def _steps_it(call: tree.Call, called: str) -> bool:
    """Whether a call is a step of an optimizer, or of a scaler that is given it."""
    given = call.arguments[0].value.span.text if call.arguments else None
    return called in (call.function.span.text.removesuffix(".step"), given)


_SETS_RATE = re.compile(r"""\[['"]lr['"]\]\s*[-+*/]?=(?!=)""")
"""A program that schedules learning rates itself: 0 may be what the last round has come to."""


def resting(run: Recorded, tensor: Tensor) -> str | None:
    """That an optimizer has a rate for a parameter by now at which nothing trains, if it has."""
    for called, group in _groups_with(run, tensor):
        rate = group.get("lr")
        if isinstance(rate, (int, float)) and 0 <= rate < _LEAST_RATE:
            return f"`{called}` has lr={rate:.3g} for it"
    return None


_LEAST_RATE = 1e-15
"""A rate below this is what a schedule has come to, and none that was chosen."""


def _groups_with(run: Recorded, tensor: Tensor) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The groups of optimizers that have a parameter, each with its optimizer's name."""
    for called, optimizer in run.values.items():
        for group in optimizer.param_groups if isinstance(optimizer, Optimizer) else ():
            if any(each is tensor for each in group["params"]):
                yield called, group


def unmoved(run: Recorded, question: str, tensor: Tensor) -> Why | None:
    """Why a parameter that gets gradients is what it was ahead of the first step, None where it is
    not; where steps were not heard, they may have changed it.
    """
    updates = run.recorder.updates.get(id(tensor))
    if updates is None or (updates.changes and not updates.returns):
        return None
    if updates.changes:
        return _put_back(run, question, tensor)
    called = next((n for n, _ in _groups_with(run, tensor)), "the optimizer")
    steps = "the step()" if updates.count == 1 else f"none of {updates.count} step()s"
    if not updates.had_rate:
        text = f"`{called}` has lr=0 for it at each step()"
        places = [Detachment(place, "this sets its rate") for place in _rates(run, called)]
        return Why(question, False, "no rate at step", text, places)
    verb = "does not change" if updates.count == 1 else "changes"
    reason = f"{steps} of `{called}` {verb} it"
    step = _steps(run, called)[0]
    if not updates.had_gradient:
        text = "the gradient is 0 here"
        return Why(question, False, "no gradient at step", reason, [Detachment(step, text)])
    stopped = _at_tolerance(run.values.get(called))
    if stopped is not None:
        return Why(question, False, "converged", reason, [Detachment(step, stopped)])
    largest = np.max(np.abs(to_host(forced(tensor.array))))
    text = (
        f"what it subtracts is lost in rounding: numbers of {tensor.dtype} as large as"
        f" {float(largest):.4g} are {float(np.spacing(largest)):.2g} apart"
    )
    return Why(question, False, "rounded away", reason, [Detachment(step, text)])


def _at_tolerance(optimizer: Any) -> str | None:
    """That LBFGS takes gradients as small as those that there are for none."""
    if not isinstance(optimizer, LBFGS):
        return None
    (group,) = optimizer.param_groups
    found = [each.grad.array for each in group["params"] if each.grad is not None]
    largest = max((float(np.max(np.abs(to_host(forced(each))))) for each in found), default=0.0)
    if not largest <= group["tolerance_grad"]:
        return None
    return (
        f"LBFGS ends where no number of any gradient is above tolerance_grad, which is"
        f" {group['tolerance_grad']:g}: the largest is {largest:.2g}"
    )


def _put_back(run: Recorded, question: str, tensor: Tensor) -> Why | None:
    """The answer for a parameter that each step finds as the first one did."""
    updates = run.recorder.updates[id(tensor)]
    is_back = is_same(to_host(forced(tensor.array)), updates.first)
    if updates.count == 1 and not is_back:
        return None
    own = to_host(forced(tensor.array))
    writes = [
        each.span
        for each in run.recorder.writes  # to `p.data` too
        if np.may_share_memory(to_host(forced(each.tensor.array)), own)
    ]
    places = [
        Detachment(span, "this writes over it", "leave it out", (), instead(span, "pass"))
        for span, _ in Counter(each for each in writes if each is not None).most_common(1)
    ]
    when = "behind the step()" if updates.count == 1 else "after each step()"
    reason = f"it is put back {when} to what it was ahead of the first"
    return Why(question, False, "put back", reason, places)


def _rates(run: Recorded, called: str) -> list[Span]:
    """The lines that set the learning rate of an optimizer: its schedules', or its own."""
    optimizer = run.values.get(called)
    schedules = [
        statement.span
        for statement, each in run.provenance.assignments
        if isinstance(each.value, LRScheduler) and each.value.optimizer is optimizer
    ]
    sets = [each.span for each in run.program if _SETS_RATE.search(each.span.text)]
    made = _assigned(run, called)
    return [*schedules, *sets] or ([] if made is None else [made])


def _in_order(run: Recorded, called: str) -> tuple[str, ...]:
    """The program that clears the gradients before each pass, and nowhere else."""
    cleared = [e.span for e in calls_of(run.program, ".zero_grad")]
    passes = [e.span for e in calls_of(run.program, ".backward")]
    if not passes:
        return ()
    edits = [(e.start, e.end, "None") for e in cleared]
    edits += [e for p in passes for e in before(run.program, p, f"{called}.zero_grad()")]
    return edited(passes[0], edits)


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
        recorded = function == "recorded_step" and _is_of(each, called)
        if recorded or function in (f"{called}.step", f"scaler.step({called})"):
            step, used = each.node.span, used or found
    return step, used


def _is_of(call: Evaluation, called: str) -> bool:
    """Whether the first argument of a call is what a name holds."""
    arguments = call.node.arguments if isinstance(call.node, tree.Call) else []
    return bool(arguments) and arguments[0].value.span.text == called


def _in_none(run: Recorded, name: str, tensor: Tensor, optimizers: Mapping[str, Any]) -> Why:
    for called in optimizers:
        replaced = _replaced(run, name, called)
        if replaced is not None:
            return replaced
    called = next(iter(optimizers))
    return (
        parametrized(name, "trains")
        or _exhausted(run, name, called)
        or _in_a_list(run, name, tensor)
        or _no_parameter(run, name, tensor)
        or _of_another_model(run, name, optimizers)
        or _left_out(run, name, called)
    )


def _replaced(run: Recorded, name: str, called: str) -> Why | None:
    """The answer where the model, or a part of it, was assigned after the optimizer was made."""
    made = _last_of(run, called)
    if made is None:
        return None
    for number, (statement, _) in enumerate(run.provenance.assignments):
        targets = statement.targets if isinstance(statement, tree.Assign) else []
        paths = [_path(each.span.text) for each in targets]
        path = next((e for e in paths if name == e or name.startswith(f"{e}.")), None)
        if number <= made or path is None or not _held_it(run, called, path, made):
            continue
        maker = run.provenance.assignments[made][0]
        moved = [(maker.span.start, maker.span.end, "pass")]
        moved += behind(run.program, statement.span, maker.span.text)
        whole = "." not in path
        part = targets[paths.index(path)].span.text
        what = "another model" if whole else "another one"
        help = f"make `{called}` after " + (
            "the model that it is to train" if whole else "this, or change the numbers in place"
        )
        places = [
            Detachment(
                statement.span,
                f"from here on `{part}` is {what}",
                help,
                (),
                edited(statement.span, moved),
            ),
            Detachment(maker.span, f"`{called}` was given the former parameters"),
        ]
        former = f"the parameters of a former model, and not those of `{part}`"
        held = former if whole else f"what was `{part}` before it was replaced"
        kind = "old model" if whole else "replaced"
        return _answer(name, kind, f"`{called}` holds {held}", places)
    return None


def _held_it(run: Recorded, called: str, path: str, number: int) -> bool:
    """Whether an optimizer, made by the assignment of that number, was given something of what the
    first name of a path stood for.
    """
    root = path.partition(".")[0]
    if re.search(rf"\b{root}\b", run.provenance.assignments[number][0].span.text):
        return True
    groups = run.values[called].param_groups
    return any(
        _has(evaluation.value, each)
        for statement, evaluation in run.provenance.assignments[:number]
        if root in targets_of(statement)
        for group in groups
        for each in group["params"]
    )


def _last_of(run: Recorded, called: str) -> int | None:
    """The number of the assignment that made what a name holds."""
    for number in reversed(range(len(run.provenance.assignments))):
        if called in targets_of(run.provenance.assignments[number][0]):
            return number
    return None


def _path(text: str) -> str:
    """The path of an attribute that the program writes with subscripts."""
    return re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", text)


def _exhausted(run: Recorded, name: str, called: str) -> Why | None:
    """The answer where the optimizer was given an iterator that had been gone through."""
    place = _last_of(run, called)
    module = run.values.get(name.partition(".")[0])
    own = module.parameters() if isinstance(module, Module) else ()
    held = {id(e) for group in run.values[called].param_groups for e in group["params"]}
    if place is None or any(id(each) in held for each in own):
        return None
    return _gone_through(run, name, run.provenance.assignments[place][0].span.text, place)


def _given_nothing(run: Recorded, name: str) -> Why | None:
    """The same where that ended the program."""
    error = run.error
    if error is None or error.code != "E204" or error.span is None:
        return None
    return _gone_through(run, name, error.span.text, len(run.provenance.assignments))


def _gone_through(run: Recorded, name: str, text: str, number: int) -> Why | None:
    """The answer where a text reads an iterator of the parameters that one of the first
    assignments made.
    """
    for statement, _ in run.provenance.assignments[:number]:
        for target in targets_of(statement):
            value = statement.value if isinstance(statement, tree.Assign) else None
            source = "" if value is None else value.span.text
            is_read = re.search(rf"\b{target}\b", text)
            if value is None or not is_read or not _iterates(value, name.partition(".")[0]):
                continue
            detachment = Detachment(
                statement.span,
                f"`{target}` is an iterator: what went through it left nothing for the optimizer",
                f"`{target} = list({source})`",
                (),
                instead(value.span, f"list({source})"),
            )
            reason = f"`{target}` has no parameters left when the optimizer is given it"
            return _answer(name, "exhausted", reason, [detachment])
    return None


def _iterates(value: tree.Expression, root: str) -> bool:
    """Whether an expression makes an iterator of the parameters of a module, which `root` names."""
    source = value.span.text
    if isinstance(value, tree.Comprehension):
        names = re.search(rf"\b{root}\b", source)
        return value.kind == "generator" and "parameters()" in source and names is not None
    own = source.partition(".")[0].partition("[")[0]
    return source.endswith("parameters()") and root == own


def _no_parameter(run: Recorded, name: str, tensor: Tensor) -> Why | None:
    """The answer for a tensor that a module holds and that is no parameter."""
    owner, dot, attribute = name.rpartition(".")
    if not dot or (tensor.meta is not None and tensor.meta.is_parameter):
        return None
    place = _attribute_place(run, attribute)
    statement = next(
        (
            e
            for e in tree.nodes_of(list(run.program))
            if isinstance(e, tree.Assign) and e.span is place
        ),
        None,
    )
    if statement is None:
        return None
    value = statement.value.span
    bare = re.sub(r",?\s*requires_grad\s*=\s*True", "", value.text)
    target = statement.targets[0].span.text
    detachment = Detachment(
        place,
        f"a tensor and no parameter: `{owner}.parameters()` does not have it",
        f"`{target} = nn.Parameter(…)`",
        (),
        instead(value, f"torch.nn.Parameter({bare})"),
    )
    return _answer(
        name,
        "no parameter",
        f"no optimizer holds it: it is no parameter of `{owner}`",
        [detachment],
    )


def _of_another_model(run: Recorded, name: str, optimizers: Mapping[str, Any]) -> Why | None:
    """The answer where an optimizer holds parameters of a model's very shapes, and no operation
    reads them.
    """
    owner = name.partition(".")[0]
    module = run.values.get(owner)
    wanted = [each.array.shape for each in getattr(module, "parameters", tuple)()]
    for called, optimizer in optimizers.items():
        held = [each for group in optimizer.param_groups for each in group["params"]]
        if not wanted or [each.array.shape for each in held] != wanted:
            continue
        if any(
            step.call is not None for each in held for step in run.flow.onward.get(id(each), ())
        ):
            continue
        place = _assigned(run, called)
        tries: tuple[str, ...] = ()
        for each in calls_of(run.program, type(optimizer).__name__):
            if each.arguments and place is not None and each.span.end == place.end:
                tries = instead(each.arguments[0].span, f"{owner}.parameters()")
        text = (
            f"what `{called}` holds has the shapes of `{owner}`'s parameters, and nothing reads it:"
            f" it is of a model that `{owner}` was made from, or that it replaced"
        )
        help = f"make `{called}` behind the line that makes `{owner}` what it is"
        other = _named_with(run, held)
        if other:
            text = f"these are the parameters of `{other}`, and nothing reads them"
            help = f"give `{called}` those of `{owner}`"
        detachment = Detachment(place, text, help, (), tries)
        return _answer(
            name, "old model", f"`{called}` holds the parameters of another model", [detachment]
        )
    return None


def _named_with(run: Recorded, parameters: Sequence[Tensor]) -> str:
    """The name of the model that has some parameters and no others, "" for none."""
    wanted = [id(each) for each in parameters]
    for name, value in run.values.items():
        own = getattr(value, "parameters", None)
        if own is not None and [id(each) for each in own()] == wanted:
            return name
    return ""


def _left_out(run: Recorded, name: str, called: str) -> Why:
    """The answer for a parameter that the optimizer was not given."""
    written = re.sub(r"\.(\d+)", r"[\1]", name)
    owner = written.rpartition(".")[0]
    group = f"list({owner}.parameters())" if owner else f"[{written}]"
    place = _assigned(run, called)
    tries: tuple[str, ...] = ()
    for params in dict.fromkeys([group, f"[{written}]"]):
        add = f"{called}.add_param_group({{'params': {params}}})"
        tries = (*tries, *added(run.program, place, add))
    help = f"`{called}.add_param_group({{'params': [{written}]}})`, or give it to `{called}`"
    text = f"`{name}` is not among the parameters that this is given"
    detachment = Detachment(place, text, help, (), tries[-1:])
    return _answer(name, "no optimizer", "no optimizer holds it", [detachment])


_CONTAINERS: Mapping[type, str] = {list: "ModuleList", tuple: "ModuleList", dict: "ModuleDict"}


def _in_a_list(run: Recorded, name: str, tensor: Tensor) -> Why | None:
    """The answer for a parameter of a module that a plain list or dict of another module holds."""
    for path, module in module_paths().values():
        for attribute, value in getattr(module, "_values", {}).items():
            container = _CONTAINERS.get(type(value))
            held = value.values() if type(value) is dict else value
            if container is None or not any(_has(each, tensor) for each in held):
                continue
            owner = f"{path}.{attribute}"
            text = f"a Python {type(value).__name__}: `{path}.parameters()` does not look into it"
            place = _attribute_place(run, attribute)
            places = [
                Detachment(
                    place,
                    text,
                    f"wrap it: `nn.{container}(…)`",
                    (),
                    _wrapped(run, place, container),
                )
            ]
            reason = f"no optimizer holds it: `{owner}` hides it from `{path}`"
            return _answer(name, "hidden", reason, places)
    return None


def _wrapped(run: Recorded, place: Span | None, container: str) -> tuple[str, ...]:
    """The program whose assignment at a place makes a container of modules."""
    for each in tree.nodes_of(list(run.program)):
        if isinstance(each, tree.Assign) and each.span is place:
            value = each.value.span
            return instead(value, f"torch.nn.{container}({value.text})")
    return ()


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


def copied(run: Recorded, tensor: Tensor, name: str) -> Detachment | None:
    """Where the module of a parameter was copied, whose copy has the gradient."""
    for each in reversed(run.provenance.evaluations):
        node = each.node
        if not isinstance(node, tree.Call) or not isinstance(each.value, Module):
            continue
        given = [part.value for part in each.parts[1:] if isinstance(part.value, Module)]
        holds_it = [m for m in given if any(p is tensor for p in m.parameters())]
        if not holds_it or node.function.span.text.rpartition(".")[2] != "deepcopy":
            continue
        if all(p.grad is None for p in each.value.parameters()):
            continue
        text = "this copies the module, and the copy has parameters of its own"
        path = name.partition(".")[2]
        statement = next((s for s, value in run.provenance.assignments if value is each), None)
        called = targets_of(statement)[:1] if statement is not None else []
        if called and path:
            text += f": `{called[0]}.{path}.grad` has a gradient"
        return Detachment(node.span, text)
    return None


def never_called(run: Recorded, name: str) -> Detachment | None:
    """Where a parameter's module was made, if no call of the module was recorded."""
    owner, _, _ = name.rpartition(".")
    module = next((each for path, each in module_paths().values() if path == owner), None)
    if module is None:
        return None
    if any(call.module is module for call in run.recorder.modules.values()):
        return None
    for each in run.provenance.evaluations:  # what it calls makes the nodes of a module
        if isinstance(each.node, tree.Call) and each.parts and each.parts[0].value is module:
            return None
    place = _attribute_place(run, owner.rpartition(".")[2]) or _assigned(run, owner)
    text = f"{owner} is made here, and no forward() that ran has called it"
    return Detachment(place, f"{text}: call it in forward(), or do not make it")


def made_anew(run: Recorded) -> list[Detachment]:
    """The layers that a `forward()` makes at each call."""
    forwards = [
        each.span
        for each in tree.nodes_of(list(run.program))
        if isinstance(each, tree.Def) and each.name == "forward"
    ]
    detachments: dict[int, Detachment] = {}
    for each in run.provenance.evaluations:
        span = each.node.span
        if not isinstance(each.node, tree.Call) or not isinstance(each.value, Module):
            continue
        has_weights = next(iter(each.value.parameters()), None) is not None
        if has_weights and any(holds(outer, span) for outer in forwards):
            text = (
                "forward() makes this layer anew at each call, with new weights that no"
                " optimizer holds: make it in __init__()"
            )
            detachments[span.start] = Detachment(span, text)
    return list(detachments.values())


def decayed(run: Recorded, tensor: Tensor) -> str | None:
    """The optimizer whose weight decay moves a parameter that has a gradient of zero."""
    for called, group in _groups_with(run, tensor):
        if group.get("weight_decay"):
            return called if tensor.version and _steps(run, called)[1] else None
    return None


def clearing_misses(run: Recorded, name: str, tensor: Tensor, detachment: Detachment) -> None:
    """Let the last of several passes say how to clear a gradient between them, which the program's
    own zero_grad() did not.
    """
    optimizers = {n: v for n, v in run.values.items() if isinstance(v, Optimizer)}
    texts = [e.function.span.text for e in calls_of(run.program, ".zero_grad")]
    calling = [called for called in optimizers if f"{called}.zero_grad" in texts]
    if len(calling) < len(set(texts)):
        calling = []  # a module's, say, which may have it
    holding = {called for called, _ in _groups_with(run, tensor)}
    others = [each for each in calling or optimizers if each not in holding]
    written = re.sub(r"\.(\d+)", r"[\1]", name)
    clears = f"{written}.grad = None"
    detachment.help = f"clear it in between: `{clears}`, or `zero_grad()`"
    if others and len(others) == len(calling or optimizers):
        root = name.partition(".")[0]
        clears = clears if root == name else f"{root}.zero_grad()"
        detachment.help = (
            f"`{others[0]}` does not hold it, so `{others[0]}.zero_grad()` does not clear it:"
            f" `{clears}` does"
        )
    detachment.tries = added(run.program, detachment.place, clears, first=True)


def skipped_hooks(run: Recorded) -> list[Detachment]:
    """The calls of a module's `forward()` that run none of the hooks registered on it."""
    hooked = {
        each.function.value.span.text
        for each in calls_of(run.program, "_hook")
        if isinstance(each.function, tree.Attribute) and each.function.name in _FORWARD_HOOKS
    }
    return [
        Detachment(
            each.span,
            f"`{each.function.span.text}()` runs no hooks, and `{owner}` has one",
            f"call `{owner}(…)`",
            (),
            instead(each.function.span, owner),
        )
        for each in calls_of(run.program, ".forward")
        if (owner := each.function.span.text.removesuffix(".forward")) in hooked
    ]


_FORWARD_HOOKS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)
