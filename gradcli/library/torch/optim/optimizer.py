"""The base of optimisers: parameters in groups with settings, and a state for each parameter;
and lints of training loops, what the first steps show.


Their arithmetic, in place on arrays, is rounded as PyTorch's kernels round: these round once after
a multiplication and an addition. Here the product is taken in the next wider format, where it is
exact or nearly so, and the sum is rounded when it is written. Python numbers are rounded to the
array's format first, as in PyTorch; half precision is computed in single.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from weakref import ref

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.fusion.lazy import forced, write_barrier
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.sums import multiply_add_wide, widened
from gradcli.autograd.inplace.writes import check_captured
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.node import RemovableHandle
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import (
    GradcliError,
    Label,
    Span,
    attribute_error,
    runtime_error,
    type_error,
    value_error,
)
from gradcli.language.objects.classes.extensible import Extensible, arguments_of
from gradcli.language.objects.classes.user_classes import own_method
from gradcli.library.torch.nn.attributes import Attributes, is_initialised, kind_of, names, shown
from gradcli.library.torch.nn.module import clear_grads
from gradcli.ops.arithmetic.arithmetic import with_multiple
from gradcli.ops.creation.copies import to
from gradcli.state import active

# --- lints ----------------------------------------------------------------------------------------


_MOST = 64
"""So many numbers of a gradient tell whether more was added to it."""

_WRITTEN = re.compile(
    r"set_to_none\s*=\s*False|zero_grad\(False|grad(\.data)?\s*(\[|[-+*/]=|\.\w+_\()"
)
"""What a program writes that changes gradients in place."""


class FirstSteps:
    """The gradients that an optimizer's first step used, until its second step begins.

    Attributes:
        places: where gradients were cleared, by the parameters' identities, and the version of
            those that are zeros since.
        children: the modules and parameters that modules had when the optimizer was made, with what
            of them this holds; nothing lives longer by that.
    """

    __slots__ = ("children", "optimizer", "places", "used")

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.children: list[tuple[ref[Any], str, ref[Any], set[int]]] = []
        self.used: list[tuple[Tensor, Any]] | None = None
        self.places: dict[int, tuple[Span | None, int]] = {}
        own, known = self._held(), dict[int, set[int]]()
        for module in _living_modules():
            for name, child in _children(module):
                held = _held_by(child, own, known)
                if held:
                    self.children.append((ref(module), name, ref(child), held))
        active.state.library.setdefault("first steps", set()).add(self)

    def _held(self) -> set[int]:
        """The identities of what the optimizer holds."""
        return {id(each) for group in self.optimizer.param_groups for each in group["params"]}

    def cleared(self, parameter: Tensor, place: Span | None) -> None:
        """Hear that the gradient of a parameter was cleared."""
        heard = place, -1 if parameter.grad is None else parameter.grad.version
        if self.places.get(id(parameter)) != heard:  # iterations alike change nothing
            self.places[id(parameter)] = heard

    def begin(self, *, in_closure: bool) -> FirstSteps | None:
        """Look at the gradients of the optimizer's groups when a step begins; None where the next
        one tells nothing.

        Args:
            in_closure: whether the gradients are still to come, in a closure.
        """
        parameters = [each for group in self.optimizer.param_groups for each in group["params"]]
        gradients = [
            each.meta.grad for each in parameters if each.meta and each.meta.grad is not None
        ]
        warns = not self.used and not in_closure and self._warns_of_cleared(parameters)
        if self.used is None and not warns:
            self.used = [(grad, _sample(grad)) for grad in gradients]
            if not self._warns_of_replaced():
                _check_reached(_called(self.optimizer), nothing=not gradients)
            return self
        present = {id(grad) for grad in gradients}
        for grad, before in self.used or ():
            if id(grad) in present and not np.array_equal(before, _sample(grad), equal_nan=True):
                changed = next(p for p in parameters if p.meta and p.meta.grad is grad)
                _warn_of_sum(_called(self.optimizer), changed)
                break
        active.state.library["first steps"].discard(self)
        return None

    def _warns_of_cleared(self, parameters: list[Tensor]) -> bool:
        """Warn (W023) of gradients that were all cleared behind the pass that brought them, before
        a step could use them; returns whether it did.
        """
        known = [(each.grad, self.places.get(id(each), (None, -1))) for each in parameters]
        if any(grad is not None and grad.version != version for grad, (_, version) in known):
            return False
        place = next((place for _, (place, _) in known if place is not None), None)
        if place is None:
            return False
        active.state.warn(
            "W023",
            f"`{_called(self.optimizer)}` steps without gradients: they were cleared behind"
            " backward(), before this step could use them",
            help="the order is zero_grad(), backward(), step()",
            labels=(Label(place, "cleared here"),),
        )
        return True

    def _warns_of_replaced(self) -> bool:
        """Warn (W029) of a parameter that has a gradient and is in no optimizer, as the module or
        the parameter that this one holds was replaced since; returns whether it did.
        """
        own = self._held()
        trained = own | active.state.library.get("optimized", set())
        for owner, name, former, held in self.children:
            module = owner()
            new = None if module is None else dict(_children(module)).get(name)
            if new is None or new is former() or held.isdisjoint(own):
                continue
            if any(each.grad is not None and id(each) not in trained for each in _parameters(new)):
                self._warn_of_replaced(type(module).__name__, name)
                return True
        return False

    def _warn_of_replaced(self, owner: str, name: str) -> None:
        called = _called(self.optimizer)
        place = active.state.place
        labels: tuple[Label, ...] = ()
        if place is not None:
            written = rf"\b(?!self\.)[\w.]+\.{re.escape(name)} *=(?!=).*"
            found = [*re.finditer(written, place.source.text)]
            if len(found) == 1:
                labels = (Label(Span(place.source, *found[0].span()), "replaced here"),)
        active.state.warn(
            "W029",
            f"`{called}` does not train `{name}` of {owner}: it was made before that was replaced,"
            " and holds the former one",
            help=f"make `{called}` behind that line, or give it the new one by add_param_group()",
            labels=labels,
        )


def _living_modules() -> list[Any]:
    """The modules of the session that are made whole."""
    modules = [] if active.state.modules is None else list(active.state.modules.values())
    return [module for module in modules if is_initialised(module)]


def _children(module: Any) -> Iterator[tuple[str, Any]]:
    """A module's own modules and parameters, by name."""
    for kind in (module._modules, module._parameters):
        yield from ((name, each) for name, each in kind.items() if each is not None)


def _held_by(child: Any, own: set[int], known: dict[int, set[int]]) -> set[int]:
    """Those of some identities that are a parameter, or parameters of a module; `known` has those
    of the modules that were looked at.
    """
    if isinstance(child, Tensor):
        return own & {id(child)}
    held = known.get(id(child))
    if held is None:
        held = known[id(child)] = set()  # a module may hold itself
        for _, each in _children(child):
            held |= _held_by(each, own, known)
    return held


def _parameters(child: Any) -> list[Tensor]:
    """The parameters of a module, or a parameter itself."""
    return [child] if isinstance(child, Tensor) else list(child.parameters())


def _sample(grad: Tensor) -> Any:
    array = forced(grad.array)
    return np.array(array.flat[:_MOST]) if type(array) is np.ndarray else array


def _called(optimizer: Optimizer) -> str:
    """What the program calls the optimizer that steps, maybe by a scaler."""
    named = (name for name, each in active.state.names().items() if each is optimizer)
    name = next(named, "")
    place = active.state.place
    written = re.match(r"([\w.]+)\.step\(([\w.]*)\)$", "" if place is None else place.text)
    if name or written is None:
        return name or "optimizer"
    return written[2] or written[1]


def _warn_of_sum(called: str, parameter: Tensor) -> None:
    """Warn (W017) of a gradient to which another was added after a step had used it."""
    place = active.state.place
    if place is not None and _WRITTEN.search(place.source.text):
        return  # the program looks after its gradients itself
    name = f"`{parameter.name}`" if parameter.name else "a parameter"
    active.state.warn(
        "W017",
        f"the gradient of {name} holds that of the former step too: every backward() adds to .grad",
        help=f"call `{called}.zero_grad()` before each backward()",
    )


def note_held(parameters: list[Tensor]) -> None:
    """Remember that an optimizer of the session holds these parameters."""
    active.state.library.setdefault("optimized", set()).update(map(id, parameters))


def _check_reached(called: str, *, nothing: bool) -> None:
    """Warn of parameters with a gradient that no optimizer holds: where this one, which has a name,
    has `nothing` to change (W023), and where they are out of sight of `parameters()` (W021).
    """
    held = active.state.library.get("optimized", set())
    modules = _living_modules()
    inner = {id(child) for module in modules for child in module._modules.values()}
    for module in modules:
        for name, value in module._values.items():
            rest = [each for each in _modules_in(value) if id(each) not in inner]
            if any(_left_out(each, held) for each in rest):
                _warn_of_list(module, name, value)
                return
    parameters = {id(each) for module in modules for each in module._parameters.values()}
    help = f"make `{called}` after the model that it is to train"
    if held & parameters:
        help = f"give `{called}` the parameters that it is to train: these have no gradient"
    for module in modules if nothing else ():
        for name in _left_out(module, held):
            active.state.warn(
                "W023",
                f"`{called}` changes nothing: none of its parameters has a gradient, and"
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


# --- arithmetic ---------------------------------------------------------------------------------


_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


def rounded(number: Any, array: Any) -> Any:
    """A number, or an array of one, in the format that an array is computed in."""
    if array.dtype is _DOUBLE:
        return number
    return number.astype(_SINGLE) if hasattr(number, "astype") else np.float32(number)


def narrowed(value: Any, array: Any) -> Any:
    """A result in an array's format, in which each step of half precision is kept."""
    return value if value.dtype is array.dtype else value.astype(array.dtype)


def add_scaled(total: Any, term: Any, factor: float) -> None:
    """total += factor · term."""
    if total.dtype.itemsize == 2:
        total[...] = with_multiple(total, term, factor)
        return
    if not in_c.add_scaled(total, term, factor, total):
        total[...] = multiply_add_wide(total, term, widened(factor, total))


def scaled_sum(left: Any, right: Any, factor: float) -> Any:
    """left + factor · right, as a new array."""
    if left.dtype.itemsize == 2:
        return with_multiple(left, right, factor)
    return multiply_add_wide(left, right, widened(factor, left)).astype(left.dtype)


def scale(array: Any, factor: float) -> None:
    """array *= factor."""
    array[...] = array * rounded(factor, array)


def interpolate(start: Any, end: Any, weight: float) -> None:
    """start += weight · (end - start), from whichever end is nearer."""
    if start.dtype.itemsize == 2:
        _in_single(interpolate, start, end, weight)
        return
    share = rounded(weight, start)
    if abs(weight) < 0.5:
        start[...] = multiply_add_wide(start, end - start, widened(share, start))
    else:
        start[...] = multiply_add_wide(end, end - start, -widened(1 - share, start))


def add_product(total: Any, left: Any, right: Any, factor: float) -> None:
    """total += factor · left · right."""
    if total.dtype.itemsize == 2:
        _in_single(add_product, total, left, right, factor)
        return
    total[...] = multiply_add_wide(total, left * rounded(factor, total), right)


def add_quotient(total: Any, left: Any, right: Any, factor: float) -> None:
    """total += factor · left / right."""
    if total.dtype.itemsize == 2:
        _in_single(add_quotient, total, left, right, factor)
        return
    total += left * rounded(factor, total) / right


def _in_single(step: Callable[..., None], total: Any, *operands: Any) -> None:
    """Do a step on half precision in single precision, and round the result."""
    single = total.astype(_SINGLE)
    step(single, *(v.astype(_SINGLE) if isinstance(v, np.ndarray) else v for v in operands))
    total[...] = single


# --- optimizers ---------------------------------------------------------------------------------


Group = dict[str, Any]
State = dict[str, Any]


class States(dict[Tensor, State]):
    """The state of each parameter, empty at first."""

    __slots__ = ()

    language_name: ClassVar[str] = "collections.defaultdict"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"clear", "get", "items", "keys", "pop", "setdefault", "update", "values"}
    )

    def __missing__(self, parameter: Tensor) -> State:
        state: State = {}
        self[parameter] = state
        return state

    def __repr__(self) -> str:
        return f"defaultdict(<class 'dict'>, {dict(self)!r})"


def check_range(name: str, value: float, low: float = 0.0, high: float = float("inf")) -> None:
    """Raise E204 for a setting outside [low, high), or a negative one."""
    if not low <= value or (value >= high and high != float("inf")):
        wanted = f"from {low:g} to {high:g}" if high != float("inf") else f"{low:g} or more"
        what = _SETTINGS.get(name, f"Invalid {name} value")
        raise value_error(f"{name} has to be {wanted}, and is {value}", text=f"{what}: {value}")


_SETTINGS = {
    "lr": "Invalid learning rate",
    "eps": "Invalid epsilon value",
    "betas[0]": "Invalid beta parameter at index 0",
    "betas[1]": "Invalid beta parameter at index 1",
}
"""How PyTorch's errors name settings, where not by their own names."""


def number(value: Any) -> float:
    """A setting as a number; a tensor of one element counts as one."""
    return value.item() if isinstance(value, Tensor) else value


_FLAGS = {
    "foreach": None,
    "maximize": False,
    "capturable": False,
    "differentiable": False,
    "fused": None,
}
"""The settings that most optimisers have, with their defaults."""


def _constructor(owner: str, settings: str, before: dict[str, str]) -> Callable[..., None]:
    """The `__init__` of an optimiser with these settings, made of text so that Python's own errors
    about arguments are those of a function that was written.
    """
    for flag, default in _FLAGS.items():
        settings = settings.replace(f", {flag}", f", {flag}={default}")

    def listed(arguments: Group) -> Group:
        names = [name for name in arguments_of(arguments) if name != "params"]
        for name, other in before.items():
            names.remove(name)
            names.insert(names.index(other) if other else len(names), name)
        return {name: arguments[name] for name in names}

    namespace: dict[str, Any] = {"listed": listed}
    exec(f"def made(self, params, {settings}): self.begin(params, listed(locals()))", namespace)
    made: Callable[..., None] = namespace["made"]
    made.__name__, made.__qualname__ = "__init__", f"{owner}.__init__"
    return made


class _Required:
    """A default that stands for none: each group has to set what it is the default of."""

    __slots__ = ()

    language_name: ClassVar[str] = "torch.optim.optimizer._RequiredParameter"

    def __repr__(self) -> str:
        return "<required parameter>"


_REQUIRED = _Required()


class Optimizer(Extensible):
    """The base of all optimisers; a subclass defines how a parameter is updated by its gradient.

    Attributes:
        defaults: the settings of groups that do not set their own.
        param_groups: dictionaries, each with the list `params` and the settings.
        state: the state of a parameter, by parameter.
        stepped: whether a step was taken since a schedule was made; None without a schedule.
        written_by: the op that changes a parameter first in PyTorch.
        settings: the parameters of `__init__` after `params`; what stands without a default is one
            of the flags that most optimisers have.
        before: settings that PyTorch lists in `param_groups` before others that are parameters
            before them, `eps="rho"`; at the end where the other is "".
        not_negative: the settings that must not be below 0.
    """

    written_by: ClassVar[str] = "add_"
    settings: ClassVar[str]
    before: ClassVar[dict[str, str]] = {}
    not_negative: ClassVar[tuple[str, ...]] = ("lr",)

    fields: ClassVar[tuple[str, ...]] = (
        *("_lint", "_state_hooks", "_step_hooks"),
        *("defaults", "param_groups", "state", "stepped"),
    )

    home = "torch.optim.{lower}"
    tables = ("torch.optim",)
    language_attributes: ClassVar[frozenset[str]] = names(
        "__getstate__ __setstate__ add_param_group defaults load_state_dict param_groups "
        "register_load_state_dict_post_hook register_load_state_dict_pre_hook "
        "register_state_dict_post_hook register_state_dict_pre_hook register_step_post_hook "
        "register_step_pre_hook state state_dict step zero_grad"
    )
    settable_attributes: ClassVar[frozenset[str]] = frozenset({"defaults", "param_groups", "state"})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "settings" in vars(cls):
            made: Any = _constructor(cls.__name__, cls.settings, cls.before)
            cls.__init__ = made  # type: ignore[method-assign]

    def begin(self, params: Any, settings: Group) -> None:
        """Check the settings, and take them as defaults."""
        self.check(settings)
        if settings.get("fused") and settings.get("foreach"):
            raise runtime_error("`fused` and `foreach` cannot be `True` together.")
        Optimizer.__init__(self, params, settings)

    def check(self, settings: Group) -> None:
        """Raise E204 for a setting out of range."""
        for name in self.not_negative:
            check_range(name, number(settings[name]))

    def __init__(self, params: Any, defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise type_error(
                "an optimizer takes a list of tensors, and was given a tensor",
                text="params argument given to the optimizer should be an iterable of Tensors or"
                f" dicts, but got torch.{params.dtype.scalar_type}Tensor",
                help="write `[x]` for one tensor",
            )
        if not isinstance(defaults, dict):
            raise type_error("the defaults of an optimizer are a dict")
        for name in ("differentiable", "capturable"):
            if defaults.get(name):
                raise GradcliError("E205", f"{name}=True is outside the language")
        if isinstance(defaults.get("lr"), Tensor) and defaults["lr"].array.size != 1:
            raise value_error("a learning rate is one number")
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: States = States()
        self._step_hooks: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self._state_hooks: dict[str, dict[int, Any]] = {}
        self._lint: FirstSteps | None = None
        self.stepped: bool | None = None
        entries = list(params)
        if not entries:
            spent = "what went through an iterator before left nothing: `list(net.parameters())`"
            raise value_error(
                "the optimizer was given no parameters",
                text="optimizer got an empty parameter list",
                help=None if isinstance(params, (list, tuple)) else f"{spent} can be read twice",
            )
        for group in entries if isinstance(entries[0], dict) else [{"params": entries}]:
            self.add_param_group(group)
        self._lint = FirstSteps(self)

    # --- groups -------------------------------------------------------------------------------

    def add_param_group(self, param_group: Group) -> None:
        """Add a group: a dict with `params`, and settings where they are not the defaults.

        Raises E202 for what is no tensor, E204 for a tensor that is no leaf or is in another group
        already and for a required setting that is missing, E207 for a group without `params`.
        """
        if not isinstance(param_group, dict):
            raise type_error(
                f"param_group must be a dict, but got <class '{type(param_group).__name__}'>"
            )
        if "params" not in param_group:
            raise GradcliError("E207", "a group needs the key 'params'", text="'params'")
        params = param_group["params"]
        if isinstance(params, set):
            raise type_error("parameters need an order, and a set has none")
        named = [params] if isinstance(params, Tensor) else list(params)
        names = [item[0] for item in named if isinstance(item, tuple)]
        tensors = [item[1] if isinstance(item, tuple) else item for item in named]
        for tensor in tensors:
            _check_parameter(tensor)
        group: Group = {"params": tensors}
        if names:
            group["param_names"] = names
        group.update({key: value for key, value in param_group.items() if key != "params"})
        for key, value in self.defaults.items():
            if group.setdefault(key, value) is _REQUIRED:
                raise value_error(
                    "parameter group didn't specify a value of required optimization parameter"
                    f" {key}"
                )
        taken = {id(tensor) for other in self.param_groups for tensor in other["params"]}
        if any(id(tensor) in taken for tensor in tensors):
            raise value_error("some parameters appear in more than one parameter group")
        self.param_groups.append(group)
        note_held(tensors)

    def _groups(self) -> list[Group]:
        """The groups, which a program may have changed; raises E202 where one is no dict."""
        for group in self.param_groups:
            if not isinstance(group, dict):
                raise type_error(f"a group is a dict, not {kind_of(group)}")
            for parameter in group["params"]:
                if not isinstance(parameter, Tensor):
                    raise attribute_error(f"an optimizer changes tensors, not {kind_of(parameter)}")
        return self.param_groups

    # --- stepping -----------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of the parameters, or set them to zero."""
        clear_grads((each for group in self._groups() for each in group["params"]), set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change each parameter that has a gradient; returns what `closure` returned, which
        computes the loss and its gradients anew.
        """
        if self._lint is not None:
            self._lint = self._lint.begin(in_closure=closure is not None)
        if self.stepped is False:
            self.stepped = True
        before, after = self._step_hooks
        if not before and not after:
            return self._step(closure)
        args: tuple[Any, ...] = (self,) if closure is None else (self, closure)
        kwargs: dict[str, Any] = {}
        for hook in list(before.values()):
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                args, kwargs = _arguments(replaced)
        loss = self._step(*args[1:], **kwargs)
        for hook in list(after.values()):
            hook(self, args, kwargs)
        return loss

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; what it returns replaces both."""
        return RemovableHandle(self._step_hooks[0], hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle(self._step_hooks[1], hook)

    def _state_hook(self, kind: str, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
        return RemovableHandle(self._state_hooks.setdefault(kind, {}), hook, prepend)

    def _called(self, kind: str, *arguments: Any) -> Any:
        """Call the hooks of a kind, each with what the one before returned, if anything; returns
        the last result.
        """
        for hook in list(self._state_hooks.get(kind, {}).values()):
            returned = hook(self, *arguments)
            arguments = arguments if returned is None else (returned,)
        return arguments[0] if arguments else None

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict` reads the optimizer."""
        return self._state_hook("state_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after; what it returns is the state."""
        return self._state_hook("state", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before a state is loaded; what it returns is."""
        return self._state_hook("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` when a state is loaded."""
        return self._state_hook("load", hook, prepend)

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with EnableGrad():
                loss = closure()
        recorder = active.state.recorder
        for group in self._groups():
            negated = group.get("maximize", False)
            for parameter in group["params"]:
                meta = parameter.meta
                if meta is None or meta.grad is None:
                    continue
                storage = parameter.storage or storage_of(parameter)
                gradient = forced(meta.grad.array)
                if negated:
                    gradient = -gradient
                if active.state.born is not None:
                    check_captured(self.written_by, parameter)
                state = self.state[parameter]
                if not parameter.array.ndim:
                    _make_writable(state)
                write_barrier(parameter.array)
                if recorder is not None:
                    recorder.updating(parameter, gradient, group)
                if gradient.dtype.kind == "c":
                    writes = self._update_complex(parameter.array, gradient, state, group)
                else:
                    writes = self.update(parameter.array, gradient, state, group)
                storage.count_write(writes)
                if recorder is not None:
                    recorder.updated(parameter)
                if not state:
                    del self.state[parameter]  # plain gradient descent has no state
        return loss

    def update(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        """Change one parameter's array in place; returns how often PyTorch writes to it."""
        raise NotImplementedError

    def scheduled(self, group: Group) -> tuple[str, ...]:
        """The settings, which schedules change, that `apply` takes from `numbers` alone."""
        return ("lr",)

    def numbers(self, state: State, group: Group) -> tuple[float, ...] | None:
        """Count a step, and the numbers that `apply` takes; None where only `update` can step."""
        return None

    def apply(
        self, array: Any, gradient: Any, state: State, group: Group, numbers: tuple[Any, ...]
    ) -> int:
        """What `update` does, of arrays alone, by numbers that follow from the settings and the
        count of steps; 0 where it cannot be done so.
        """
        return 0

    def _update_complex(self, array: Any, gradient: Any, state: State, group: Group) -> int:
        """`update` of complex numbers as pairs of real ones, as which they are kept complex."""
        shape, dtype = (*array.shape, 2), array.dtype
        pairs = {
            key: Tensor(_as_pairs(kept.array)) if _is_complex(kept) else kept
            for key, kept in state.items()
        }
        writes = self.update(_as_pairs(array), _as_pairs(gradient), pairs, group)
        for key, kept in pairs.items():
            if isinstance(kept, Tensor) and kept.array.shape == shape:
                whole = np.ascontiguousarray(kept.array).view(dtype)[..., 0]
                if _is_complex(state.get(key)):
                    state[key].array = whole
                else:
                    state[key] = Tensor(whole)
            else:
                state[key] = kept
        return writes

    # --- saving -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The groups with numbers for parameters, and the states by those numbers."""
        self._called("state_pre")
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: kept
            for key, kept in self.state.items()
            if kept or not isinstance(key, Tensor)
        }
        return self._called("state", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: Any) -> None:
        """Load the settings and the states of a `state_dict`; tensors are shared with it, as in
        PyTorch.

        Raises E204 where it belongs to groups of other sizes.
        """
        if not isinstance(state_dict, dict):
            raise attribute_error(f"load_state_dict() takes a dict, not {kind_of(state_dict)}")
        state_dict = self._called("load_pre", dict(state_dict))
        saved = state_dict["param_groups"]
        if len(self.param_groups) != len(saved):
            raise value_error("loaded state dict has a different number of parameter groups")
        sizes = [len(group["params"]) for group in self.param_groups]
        if sizes != [len(group["params"]) for group in saved]:
            raise value_error(
                "loaded state dict contains a parameter group that doesn't match the size of"
                " optimizer's group"
            )
        by_number: dict[Any, Tensor] = {}
        groups = []
        for group, packed in zip(self.param_groups, saved, strict=True):
            by_number.update(zip(packed["params"], group["params"], strict=True))
            groups.append({**packed, "params": group["params"]})
        state = States()
        for key, kept in state_dict["state"].items():
            parameter = by_number.get(key)
            if parameter is None:  # what the program keeps beside its parameters
                state[key] = kept
            else:
                state[parameter] = {name: _fitted(parameter, name, kept[name]) for name in kept}
        take = own_method(self, "__setstate__") or Optimizer.__setstate__
        take(self, {"state": state, "param_groups": groups})
        self._called("load")

    def __getstate__(self) -> dict[str, Any]:
        """What a copy is made of."""
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` gave, or a part of it."""
        for name, value in state.items():
            if name in self.settable_attributes:
                setattr(self, name, value)
            else:
                self.values[name] = value

    # --- text ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        parts = []
        for index, group in enumerate(self.param_groups):
            settings = [
                f"    {key}: {shown(group[key])}" for key in sorted(group) if key != "params"
            ]
            parts.append("\n".join([f"Parameter Group {index}", *settings, ""]))
        return f"{type(self).__name__} (\n" + "\n".join(parts) + ")"


def _arguments(replaced: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that a hook returned for a step."""
    if not isinstance(replaced, tuple) or len(replaced) != 2:
        raise runtime_error(
            "a hook before a step has to return None, or arguments and keywords in a tuple"
        )
    args, kwargs = replaced
    return args, kwargs


def _check_parameter(tensor: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise type_error(
            f"an optimizer changes tensors, not {kind_of(tensor)}",
            text="optimizer can only optimize Tensors, but one of the params is"
            f" {type(tensor).__name__}",
        )
    if not tensor.is_leaf and not tensor.retains_grad:
        raise value_error(
            "an optimizer changes leaves, and a tensor is none",
            text="can't optimize a non-leaf Tensor",
        )


def _fitted(parameter: Tensor, name: str, value: Any) -> Any:
    """A loaded state in the dtype of its parameter; step counts keep theirs."""
    if name == "step" or not isinstance(value, Tensor):
        return value
    return to(value, dtype=parameter.dtype)


# --- what is remembered -------------------------------------------------------------------------


def zeros_like(array: Any) -> Tensor:
    """A tensor of zeros like a parameter, for the state."""
    return Tensor(np.zeros_like(array))


def scalar(value: float) -> Tensor:
    """A number for the state, of the default dtype."""
    return Tensor(dtypes.default_dtype().numpy_dtype.type(value))


def _make_writable(state: State) -> None:
    """Let a step write to what was loaded or assigned for a parameter of no dimensions: such a
    tensor's array is a number until someone writes to it.
    """
    for name, kept in state.items():
        if name != "step" and isinstance(kept, Tensor):
            storage_of(kept)


def stepped(state: State) -> float:
    """Increment the step count, and return it."""
    counter = state["step"]
    counter.array = counter.array + 1
    return float(counter.array)


def decayed(array: Any, gradient: Any, weight_decay: float) -> Any:
    """The gradient with that of a penalty on the parameter's square."""
    return scaled_sum(gradient, array, weight_decay) if weight_decay else gradient


def _is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.array.dtype.kind == "c"


def _as_pairs(array: Any) -> Any:
    """A view of complex numbers as pairs of real ones."""
    return array[..., None].view(array.real.dtype)


OPTIMIZER = {"Optimizer": Optimizer, "required": _REQUIRED}
"""What `torch.optim.optimizer` holds."""
