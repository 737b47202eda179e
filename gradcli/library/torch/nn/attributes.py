"""What a module holds: parameters, buffers, submodules and plain values, each in a table.

Assigning an attribute stores the value in the table for its type, in built-in layers and in a
program's own classes alike. Programs can reach these tables and the methods that a class allows,
nothing else.
"""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import WeakValueDictionary

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.classes.extensible import Fielded
from gradcli.state import active


def names(text: str) -> frozenset[str]:
    """The names in a text, which spaces separate: the attributes that programs find."""
    return frozenset(text.split())


def shown(value: Any) -> Any:
    """A setting as texts show it: a tensor without dimensions as its number."""
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value


def is_parameter(value: Any) -> bool:
    return isinstance(value, Tensor) and value.meta is not None and value.meta.is_parameter


def persistence(tensor: Tensor) -> bool | None:
    """Whether an `nn.Buffer` is part of a module's saved state, None for another tensor."""
    return None if tensor.meta is None else tensor.meta.persistent


def kind_of(value: Any) -> str:
    """What a value is, for messages."""
    return "a plain tensor" if isinstance(value, Tensor) else f"a value of {type(value).__name__}"


def written_type(value: Any) -> str:
    """The name that PyTorch writes for the type of a value that a module cannot take."""
    if isinstance(value, Tensor):
        return f"torch.{value.dtype.scalar_type}Tensor"
    return type(value).__name__


_BEFORE_INIT = {"_parameters": "parameters", "_buffers": "buffers"}
"""What PyTorch says that a module without its tables cannot be assigned; modules otherwise."""


def _not_assigned(kind: str, name: str, value: Any) -> str:
    """PyTorch's text for a value that cannot take the place of a module's member."""
    sort, wanted = {
        "parameter": ("parameter", "torch.nn.Parameter"),
        "submodule": ("child module", "torch.nn.Module"),
        "buffer": ("buffer", "torch.nn.Buffer, torch.Tensor"),
    }[kind]
    return f"cannot assign '{written_type(value)}' as {sort} '{name}' ({wanted} or None expected)"


def check_name(kind: str, name: Any) -> None:
    """Raise E202 for a name that is no string, E207 for one with a dot or an empty one."""
    if not isinstance(name, str):
        raise type_error(
            f"the name of a {kind} is a string, not {kind_of(name)}",
            text=f"{kind} name should be a string. Got {written_type(name)}",
        )
    if "." in name or not name:
        what = 'contain "."' if name else 'be empty string ""'
        problem = f"{kind} name can't {what}"
        raise GradcliError("E207", problem, text=repr(problem))


def enlist(module: Any) -> None:
    """Let the session know a new module, so that its parameters can be named by their path."""
    state = active.state
    if state.modules is None:
        state.modules = WeakValueDictionary()
    state.module_count += 1
    state.modules[state.module_count] = module


class Attributes(Fielded):
    """An object whose attributes are kept in tables.

    Attributes:
        _parameters: parameters by name, None where one is left out on purpose.
        _buffers: tensors that belong to the state and are no parameters.
        _modules: submodules.
        _values: everything else that was assigned.
        _transient: the names of the buffers that are not saved.
        training: whether the module is being trained; layers such as dropout depend on it.
    """

    fields: ClassVar[tuple[str, ...]] = (
        "_buffers",
        "_modules",
        "_parameters",
        "_transient",
        "_values",
        "training",
    )

    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _values: dict[str, Any]
    _transient: set[str]
    training: bool

    def language_prepare(self) -> None:
        """A program's class may assign plain values before it calls `super().__init__()`."""
        enlist(self)
        object.__setattr__(self, "_values", {})

    def __init__(self) -> None:
        object.__setattr__(self, "_parameters", {})
        object.__setattr__(self, "_buffers", {})
        object.__setattr__(self, "_modules", {})
        object.__setattr__(self, "_transient", set())
        object.__setattr__(self, "training", True)

    # --- reading and assigning ----------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name in Attributes.fields:
            raise GradcliError(
                "E102",
                f"{type(self).__name__} has no {name.strip('_')} yet",
                text=f"cannot assign {_BEFORE_INIT.get(name, 'module')} before"
                " Module.__init__() call",
                help="call `super().__init__()` first in __init__",
            )
        try:
            return self.lookup(name)
        except AttributeError:
            # Python and the language look up which protocols the object supports.
            if name.startswith(("_", "language_")):
                raise
            raise GradcliError(
                "E102", f"'{type(self).__name__}' object has no attribute '{name}'"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        # A data set, say, that is a module too keeps what it needs itself where it looks for it.
        if name not in self.all_fields:
            self.register(name, value)
        elif self.language_takes(value):
            vars(self).pop(name, None)
            self.register(name, value)
        else:
            object.__setattr__(self, name, value)

    def lookup(self, name: str) -> Any:
        """The attribute of a name; raises AttributeError where there is none."""
        if name in self._values:
            return self._values[name]
        if is_initialised(self):
            for table in (self._parameters, self._buffers, self._modules):
                if name in table:
                    return table[name]
            computed = self._modules.get("parametrizations")
            if computed is not None and name in computed._modules:
                return _computed(computed._modules[name])
        raise AttributeError(name)

    def language_hides(self, name: str) -> bool:
        """Whether an attribute of a program's class comes before what a table has for its name."""
        return is_initialised(self) and name in self._modules

    def language_takes(self, value: Any) -> bool:
        """Whether a value goes to a table, past a property of a program's class."""
        return is_parameter(value) or isinstance(value, Attributes) or _is_buffer(value)

    def register(self, name: str, value: Any) -> None:
        """Assign an attribute: a parameter, a submodule and a buffer's new value go to their
        tables, everything else to the plain values.

        Raises E202 for a value that does not fit the table that has the name, E102 where a
        program's class did not call `super().__init__()` before.
        """
        computed = self._modules.get("parametrizations") if is_initialised(self) else None
        if name == "training" and not self.language_takes(value):
            object.__setattr__(self, name, value)
        elif computed is not None and name in computed._modules:
            computed._modules[name].right_inverse(value)
        elif is_parameter(value):
            if name not in self._parameters:  # a new value stays in the place of the old one
                self._forget(name)
            self.register_parameter(name, value)
        elif is_initialised(self) and name in self._parameters:
            self._check_none("parameter", name, value)
            self._parameters[name] = None
        elif isinstance(value, Attributes):
            if name not in self._modules:
                self._forget(name)
            self._modules[name] = value
        elif not is_initialised(self):
            self._values[name] = value
        elif name in self._modules:
            self._check_none("submodule", name, value)
            self._modules[name] = None
        elif _is_buffer(value):
            self.register_buffer(name, value, bool(persistence(value)))
        elif name in self._buffers:
            if not isinstance(value, Tensor):
                self._check_none("buffer", name, value)
            self._buffers[name] = value
        else:
            self._values[name] = value

    def language_hold(self, name: str, value: Any) -> None:
        """Assign an attribute that is no part of the module: a network that is not trained."""
        if name == "training":
            object.__setattr__(self, name, value)
        else:
            self._values[name] = value

    def language_names(self) -> list[str]:
        """The names of everything that was assigned."""
        tables = (self._parameters, self._buffers, self._modules) if is_initialised(self) else ()
        return [name for table in (self._values, *tables) for name in table]

    def language_delattr(self, name: str) -> None:
        """Delete an attribute; raises AttributeError where there is none."""
        self.lookup(name)
        self._forget(name)

    @staticmethod
    def _check_none(kind: str, name: str, value: Any) -> None:
        if value is not None:
            raise type_error(
                f"'{name}' is a {kind}, and cannot become {kind_of(value)}",
                text=_not_assigned(kind, name, value),
                help="a parameter is made by nn.Parameter(tensor)" if kind == "parameter" else None,
            )

    def _forget(self, name: str) -> None:
        """Remove a name from every table."""
        for table in (self._parameters, self._buffers, self._modules, self._values):
            table.pop(name, None)
        self._transient.discard(name)

    # --- registering by name ------------------------------------------------------------------

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Add a parameter; None registers the name without one.

        Raises E207 for a name that is taken, E202 for a value that is no parameter, E204 for one
        that is no leaf.
        """
        check_name("parameter", name)
        if name not in self._parameters:
            self._check_free(name)
        if param is not None and not is_parameter(param):
            raise type_error(
                f"{kind_of(param)} is no parameter, and '{name}' should be one",
                text=f"cannot assign '{written_type(param)}' object to parameter '{name}'"
                " (torch.nn.Parameter or None required)",
                help="a parameter is made by nn.Parameter(tensor)",
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the state and is not trained.

        Args:
            name: its name; E207 if it is taken.
            tensor: the tensor, or None; E202 for anything else.
            persistent: whether `state_dict` has it.
        """
        check_name("buffer", name)
        if name not in self._buffers:
            self._check_free(name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise type_error(
                f"{kind_of(tensor)} cannot be the buffer '{name}'",
                text=f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (torch"
                " Tensor or None required)",
            )
        self._buffers[name] = tensor
        if persistent:
            self._transient.discard(name)
        else:
            self._transient.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a submodule; raises E207 for a name that is taken, E202 for what is no module."""
        if module is not None and not isinstance(module, Attributes):
            raise type_error(
                f"{kind_of(module)} is no module, and '{name}' should be one",
                text=f"{written_type(module)} is not a Module subclass",
            )
        check_name("module", name)
        if name not in self._modules:
            self._check_free(name)
        self._modules[name] = module

    def register_module(self, name: str, module: Any) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _check_free(self, name: str) -> None:
        tables = [self._parameters, self._buffers, self._modules, self._values]
        for kind in type(self).__mro__:
            cls = vars(kind).get("language_class")
            if cls is not None:
                tables.append(cls.names)
        declared = name in getattr(type(self), "language_attributes", ())
        declared = declared and (hasattr(type(self), name) or name in vars(self))
        if declared or any(name in table for table in tables):
            text = f"attribute '{name}' already exists"
            raise GradcliError("E207", text, text=repr(text))


def _is_buffer(value: Any) -> bool:
    """Whether a value was made by `nn.Buffer`."""
    return isinstance(value, Tensor) and persistence(value) is not None


def _computed(parametrization: Any) -> Any:
    """What a parametrization computes: once only inside `parametrize.cached()`."""
    cache = active.state.library.get("parametrize")
    if cache is None:
        return parametrization()
    if id(parametrization) not in cache:
        cache[id(parametrization)] = parametrization, parametrization()
    return cache[id(parametrization)][1]


def is_initialised(module: Attributes) -> bool:
    """Whether `Module.__init__` has run, which a program's class may have left out."""
    try:
        object.__getattribute__(module, "_modules")
    except AttributeError:
        return False
    return True
