"""Reads and sets attributes, by one table of allowed names per type.

Nothing that is missing from these tables is reachable, whatever the host's objects have.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import RECORDED, GradcliError, type_error
from gradcli.language.hints.spelling import suggestion
from gradcli.language.limits import PLAIN
from gradcli.language.objects.classes.definition import (
    OF_COLLECTIONS,
    OF_OBJECT,
    make_class,
    new_object,
    set_plainly,
)
from gradcli.language.objects.classes.instance_attributes import attribute_names as names_of_class
from gradcli.language.objects.classes.instance_attributes import (
    class_attribute,
    computed_attribute,
    delete_instance_attribute,
    instance_attribute,
    set_instance_attribute,
)
from gradcli.language.objects.classes.special_methods import ARITHMETIC, COMPARISONS
from gradcli.language.objects.classes.user_classes import (
    MISSING,
    OBJECT,
    Instance,
    UserClass,
    find_init,
)
from gradcli.language.objects.exceptions import exception_attribute
from gradcli.language.objects.methods import (
    CLASS_METHODS,
    METHODS,
    VALUES,
    formatting,
    inherited_method,
    method_of_type,
    method_of_value,
)
from gradcli.language.objects.repr import numbered
from gradcli.language.objects.types import (
    TYPE,
    LanguageType,
    class_of_host,
    define,
    type_name,
    type_of,
)
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.functions import methods, operators
from gradcli.record import Record
from gradcli.state import active

_FUNCTIONS = ("function", "builtin_function_or_method")

_HOST_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


class PerSession(Record):
    """A name of a module whose value each session has for itself: `read` gives it, and `write`
    changes it where a program may set it.
    """

    read: Callable[[], Any]
    write: Callable[[Any], None] | None = None


class Module:
    """A module as a value: a name and what it holds. The table may be the catalogue's own,
    which changes as ops are used.

    Attributes:
        assigned: the names that programs gave it, each session for itself.
        is_file: whether it is a program's own file, whose names a program may set.
        load: fills the table when it is first asked for, None for a table that is full.
    """

    __slots__ = ("_names", "assigned", "is_file", "load", "modules", "name")

    def __init__(self, name: str, names: dict[str, Any], is_file: bool = False) -> None:
        self.name = name
        self.is_file = is_file
        self._names = names
        self.modules: dict[str, Any] = {}
        self.assigned: dict[str, PerSession] = {}
        self.load: Callable[[], None] | None = None

    @property
    def names(self) -> dict[str, Any]:
        """What the module holds, by name, submodules aside."""
        if self.load is not None:
            load, self.load = self.load, None
            load()
        return self._names

    def fill(self, names: dict[str, Any]) -> None:
        """Hold the names of a table, which may be one that makes a name when it is asked for."""
        self._names = names

    def __repr__(self) -> str:
        return f"<module '{self.name}'>"

    def get(self, name: str) -> Any:
        """What the module holds under a name; raises KeyError."""
        if name in self.assigned:
            return self.assigned[name].read()
        held = self.modules.get(name)
        if held is None:
            held = self.names[name]
            if type(held) is PerSession:
                return held.read()
            if isinstance(held, type):
                return class_of_host(held)
        return held

    def may_assign(self, name: str) -> bool:
        """Whether a program may set a name: a new one of torch's and NumPy's modules. What one of
        their own names stands for others of them use.
        """
        known = name in self.modules or name in self.names
        return not known and self.name.partition(".")[0] in ("torch", "numpy")

    def assign(self, name: str, new: Any) -> None:
        """Give the module a name that it does not have, in this session alone."""
        key = (self.name, name)
        active.state.library.setdefault("assigned", {})[key] = new
        self.assigned[name] = PerSession(lambda: active.state.library.get("assigned", {})[key])

    def public_names(self) -> list[str]:
        """The names that `from module import *` binds."""
        own = [name for home, name in active.state.library.get("assigned", {}) if home == self.name]
        return [name for name in (*self.names, *self.modules, *own) if not name.startswith("_")]


define("module", Module)


class Method(Record):
    """A bound method of a value: the value of `x.exp`."""

    receiver: Any
    name: str
    function: Callable[..., Any]
    number: int = 0

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.receiver, *args, **kwargs)

    def __repr__(self) -> str:
        kind = type_name(self.receiver)
        return numbered(f"built-in method {self.name} of {kind} object", self)


define("builtin_function_or_method", Method)


def _operator(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: catalogue.operators[symbol](self, other)


def _from_the_right(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: catalogue.operators[symbol](other, self)


def _in_place(symbol: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: catalogue.inplace_operators[symbol](self, other)


def _unary(symbol: str) -> Callable[[Any], Any]:
    return lambda self: catalogue.unary_operators[symbol](self)


_SYMBOLS = {name: symbol for symbol, name in ARITHMETIC.items()} | {"div": "/"}
OPERATOR_METHODS: dict[str, Callable[..., Any]] = {
    **{f"__{name}__": _operator(symbol) for name, symbol in _SYMBOLS.items()},
    **{f"__r{name}__": _from_the_right(symbol) for name, symbol in _SYMBOLS.items()},
    **{f"__i{name}__": _in_place(symbol) for name, symbol in _SYMBOLS.items()},
    **{f"__{name}__": _operator(symbol) for symbol, name in COMPARISONS.items()},
    "__bool__": bool,
    "__float__": float,
    "__getitem__": _operator("[]"),
    "__int__": int,
    "__reversed__": lambda self: methods.flip(self, 0) if self.array.ndim else self,
    "__setitem__": lambda self, key, value: operators.setitem(self, key, value),
    "__abs__": lambda self: methods.abs(self),
    "__invert__": _unary("~"),
    "__len__": len,
    "__neg__": _unary("-"),
    "__pos__": _unary("+"),
}
"""The special methods that a program may call on a tensor: its operators."""


def get_attribute(value: Any, name: str) -> Any:
    """`value.name`; raises E102 where the value has no such attribute in the language."""
    kind = type(value)
    if isinstance(value, Instance):
        reads = value.language_reads
        if reads is not None and name in reads:
            if name in value.values:
                return value.values[name]
            if type(reads[name]) in PLAIN:  # what the class binds, as it is
                return reads[name]
    if kind is Tensor:
        getter = catalogue.properties.get(name)
        if getter is not None:
            return getter(value)
        try:
            return Method(value, name, catalogue.methods[name])
        except KeyError:
            pass
        if name in OPERATOR_METHODS:
            return Method(value, name, OPERATOR_METHODS[name])
        own = attributes_of_tensor(value)
        if name in own:
            return own[name]
        if name == "__dict__":
            meta_of(value).attributes = own
            return own
    elif kind is Module:
        try:
            return value.get(name)
        except KeyError:
            if name == "__name__":
                return value.name
    elif kind in METHODS:
        function = METHODS[kind].get(name)
        if function is not None:
            return Method(value, name, function)
        getter = VALUES.get(kind, {}).get(name)
        if getter is not None:
            return getter(value)
    else:
        attribute = _object_attribute(value, kind, name)
        if attribute is not MISSING:
            return attribute
    if name in _OF_ANYTHING:
        return _OF_ANYTHING[name](value)
    if name.startswith("__"):
        function = method_of_value(value, name)
        if function is not None:
            return Method(value, name, function)
    raise no_attribute(value, name)


def attributes_of_tensor(tensor: Tensor) -> dict[str, Any]:
    """What the program set on a tensor by names of its own."""
    held = None if tensor.meta is None else tensor.meta.attributes
    return {} if held is None else held


def documentation(value: Any) -> str | None:
    """`value.__doc__`: what a program wrote at the top of a function or class."""
    return getattr(value, "language_doc", None)


_OF_ANYTHING: dict[str, Callable[[Any], Any]] = {
    "__class__": type_of,
    "__doc__": documentation,
}
"""The attributes that every value has: its class, which is a value of the language, and text."""


def _in_a_field(value: Any, name: str) -> Any:
    """What a field of a format reads: no name of Python's machinery."""
    if name.startswith("__"):
        raise no_attribute(value, name)
    return get_attribute(value, name)


METHODS[str]["format"] = formatting(_in_a_field)


def _object_attribute(value: Any, kind: type, name: str) -> Any:
    """An attribute of an object of ours or of the program's, `MISSING` where there is none."""
    cls = getattr(kind, "language_class", None)
    if cls is None:
        return _declared_attribute(value, kind, name)
    gets = getattr(kind, "language_gets", None)
    if gets is None or name == "__class__":
        attribute = _own_attribute(value, kind, cls, name)
    else:
        try:
            attribute = gets(value, name)
        except GradcliError as error:
            if error.raises != "AttributeError" or cls.find("__getattr__") is MISSING:
                raise
            attribute = MISSING
    return computed_attribute(value, cls, name) if attribute is MISSING else attribute


def _own_attribute(value: Any, kind: type, cls: UserClass, name: str) -> Any:
    """What the program's classes and ours make of a name, `MISSING` where there is nothing."""
    if isinstance(value, UserClass):  # its class is the program's too, and comes second
        attribute = _declared_attribute(value, kind, name)
        return instance_attribute(value, cls, name) if attribute is MISSING else attribute
    attribute = instance_attribute(value, cls, name)
    return _declared_attribute(value, kind, name) if attribute is MISSING else attribute


def _plain_attribute(value: Any, name: Any, /) -> Any:
    """`object.__getattribute__(value, name)`: what a `__getattribute__` of the program's hides."""
    kind = type(value)
    cls = getattr(kind, "language_class", None)
    attribute = MISSING if cls is None else _own_attribute(value, kind, cls, name)
    if attribute is MISSING:
        raise no_attribute(value, name)
    return attribute


OF_OBJECT["__getattribute__"] = _plain_attribute


def _declared_attribute(value: Any, kind: type, name: str) -> Any:
    """An attribute that an object's class declares or computes, `MISSING` where there is none."""
    if name == "__qualname__" and not hasattr(kind, "language_qualified"):
        name = "__name__"
    if name in getattr(kind, "language_attributes", ()):
        try:
            return getattr(value, name)
        except AttributeError:  # declared for all, and absent from this one
            return MISSING
    if isinstance(value, LanguageType):
        if name == "__name__":
            return value.name
        if name == "__module__":
            return value.full_name.rpartition(".")[0] or "builtins"
        if isinstance(value, UserClass):
            attribute = class_attribute(value, name)
            return attribute if attribute is not MISSING else _of_object(value, name)
        if value is OBJECT or value is TYPE:
            return _of_object(value, name)
        for host in value.hosts:
            function = METHODS.get(host, {}).get(name)
            if function is not None:
                return unbound(host, name, function)
            if name in CLASS_METHODS.get(host, ()):
                return CLASS_METHODS[host][name]
            function = method_of_type(host, name) if name.startswith("__") else None
            if function is not None:
                return unbound(host, name, function)
            if name in OF_COLLECTIONS and host in (dict, list):
                return unbound(host, name, getattr(host, name))
            attribute = _host_attribute(host, name)
            if attribute is not MISSING:
                return attribute
        if name == "__new__" and any(host.__module__ == "builtins" for host in value.hosts):
            return new_object
        return catalogue.methods.get(name, MISSING) if Tensor in value.hosts else MISSING
    if name == "__class__" and getattr(kind, "language_base", False):
        return type_of(value)
    if isinstance(value, GradcliError):
        try:
            return exception_attribute(value, name)
        except AttributeError:
            return MISSING
    inherited = inherited_method(kind, name)
    if inherited is not None:  # Size, the named results, classes derived from list
        return Method(value, name, inherited)
    if name == "__name__" and (kind in _HOST_FUNCTIONS or kind is Method):
        return value.name if kind is Method else value.__name__
    computed = getattr(kind, "language_getattr", None)
    if computed is not None:
        try:
            return computed(value, name)
        except AttributeError:
            pass
    return MISSING


def _of_object(cls: LanguageType, name: str) -> Any:
    """`object.__setattr__` and its like, `MISSING` for others."""
    if name == "__new__":
        return make_class if cls is TYPE else new_object
    if name == "__init__":
        return find_init(Instance)
    if name == "__setattr__":
        return set_plainly
    if name in _OF_EQUALITY:
        return unbound(object, name, getattr(object, name))
    return OF_OBJECT.get(name, MISSING)


def _host_attribute(host: Any, name: str) -> Any:
    """What a class of ours has under a name, such as `nn.Linear.forward`; `MISSING` for nothing."""
    if name in getattr(host, "language_class_attributes", ()):
        return getattr(host, name)
    if not getattr(host, "language_base", False):
        return MISSING
    if name == "__init__":
        return unbound(host, name, find_init(host))
    if name in _OF_EQUALITY:
        return unbound(host, name, getattr(host, name))
    method = getattr(host, name, None) if name in host.language_attributes else None
    return unbound(host, name, method) if callable(method) else MISSING


_OF_EQUALITY = ("__eq__", "__hash__")
"""What a class that defines `__eq__` may take up again from one above it."""


def unbound(host: type, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method as a function of its own, `str.upper`: it checks its first argument."""

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, host):
            raise type_error(
                f"{host.__name__}.{name}() works on {host.__name__}, not {type_name(self)}"
            )
        return function(self, *args, **kwargs)

    method.__name__ = name
    return method


_OF_ITS_MAKE = frozenset(["__class__", "__dict__"])
"""What no object of the library's takes: it would be stored, and change nothing, in silence."""


def set_attribute(value: Any, name: str, new: Any) -> None:
    """`value.name = new`; raises E102 where the language does not let a program set it."""
    kind = type(value)
    if isinstance(value, Instance):
        writes = value.language_writes
        if writes is not None and name in writes:
            value.values[name] = new
            return
    if kind is Tensor:
        setter = catalogue.setters.get(name)
        if setter is not None:
            setter(value, new)
            return
        set_on_tensor(value, name, new)
        return
    if isinstance(value, UserClass):
        value.bind(name, new)
        return
    if kind is Module and type(setting := value.names.get(name)) is PerSession and setting.write:
        setting.write(new)
        return
    if kind is Module and value.is_file:
        value.names[name] = new
        return
    if kind is Module and value.may_assign(name):
        value.assign(name, new)
        return
    if hasattr(kind, "language_class"):
        set_instance_attribute(value, kind.language_class, name, new)
        return
    if name in getattr(kind, "settable_attributes", ()):
        setattr(value, name, new)
        return
    if hasattr(kind, "language_setattr") and name not in _OF_ITS_MAKE:
        value.language_setattr(name, new)
        return
    try:
        get_attribute(value, name)
    except GradcliError as error:
        if error.code != "E102":
            raise
        raise no_attribute(value, name) from None
    raise _not_writable(value, name)


def set_on_tensor(tensor: Tensor, name: str, new: Any) -> None:
    """Give a tensor an attribute of the program's own; raises E102 for one of PyTorch's, E205 for a
    method's name.
    """
    if name in catalogue.properties or name == "__class__":
        raise _not_writable(tensor, name)
    if name in catalogue.methods or name in _MACHINERY or name.startswith("__"):
        raise GradcliError(
            "E205",
            f"'{name}' of a tensor, which is PyTorch's own, cannot be set",
            raises="AttributeError",
            help=RECORDED,
        )
    own = attributes_of_tensor(tensor)
    own[name] = new
    meta_of(tensor).attributes = own


_MACHINERY = frozenset(
    {"_backward_hooks", "_cdata", "_grad", "_grad_fn", "_has_symbolic_sizes_strides"}
    | {"_is_param", "_post_accumulate_grad_hooks", "_python_dispatch", "grad_dtype", "names"}
    | {"volatile"}
)
"""What a tensor of PyTorch's has, and one here has not."""


def _not_writable(value: Any, name: str) -> GradcliError:
    """The error of an attribute that a value has and that no program may set or delete."""
    kind_name = "torch._C.TensorBase" if type(value) is Tensor else type_name(value)
    return GradcliError(
        "E102",
        f"the attribute '{name}' of {type_name(value)} cannot be set",
        text=f"attribute '{name}' of '{kind_name}' objects is not writable",
        help="make an object of the other class, and put it in this one's place"
        if name == "__class__"
        else None,
    )


def delete_attribute(value: Any, name: str) -> None:
    """`del value.name`; raises E102 for all but what the program set on an object of its own."""
    kind = type(value)
    if hasattr(kind, "language_class"):
        if delete_instance_attribute(value, name):
            return
    elif isinstance(value, UserClass) and name in value.names:
        value.unbind(name)
        return
    elif hasattr(kind, "language_delattr"):
        try:
            value.language_delattr(name)
        except AttributeError:
            raise no_attribute(value, name) from None
        return
    if isinstance(value, Tensor) and name == "grad":
        set_attribute(value, name, None)
        return
    if isinstance(value, Tensor) and name in attributes_of_tensor(value):
        del attributes_of_tensor(value)[name]
        return
    if isinstance(value, Tensor) and name in catalogue.properties:
        raise _not_writable(value, name)
    if get_attribute(value, name) is not None or not hasattr(kind, "language_class"):
        kind_name = type_name(value)
        raise GradcliError("E102", f"the attribute '{name}' of {kind_name} cannot be deleted")


def attribute_names(value: Any) -> list[str]:
    """The names that can be read from a value, for suggestions and completion."""
    kind = type(value)
    if kind is Tensor:
        return [*catalogue.properties, *catalogue.methods, *attributes_of_tensor(value)]
    if kind is Module:
        names: list[str] = value.public_names()
        return names
    if kind in METHODS:
        return [*METHODS[kind], *VALUES.get(kind, ())]
    if isinstance(value, GradcliError):
        return ["args"]
    names = sorted(getattr(kind, "language_attributes", ()))
    if isinstance(value, UserClass):
        return names_of_class(value)
    if hasattr(kind, "language_class"):
        names += names_of_class(kind.language_class)
    return [*names, *value.language_names()] if hasattr(kind, "language_names") else names


_FILES_OF_NUMPY = frozenset({"fromfile", "memmap", "savetxt"})
_FILES = "arrays come in as `NAME=@x.npy` and go out as `save(torch.from_numpy(a), 'x.npy')`"


def _has_host(module: Module, name: str) -> bool:
    """Whether the host's module of the same name has a public name, which this one has not."""
    host = None if module.is_file else sys.modules.get(module.name)
    return not name.startswith("_") and name in getattr(host, "__all__", dir(host))


def no_attribute(value: Any, name: str) -> GradcliError:
    """The error of an attribute that a value does not have, with the one that was likely meant."""
    kind = type_of(value)
    shown = kind.full_name if kind.full_name.startswith("numpy.") else kind.name
    if isinstance(value, LanguageType):
        shown = "type"
    owner = f"module '{value.name}'" if type(value) is Module else f"'{shown}' object"
    from gradcli.language.hints import unsupported  # lazy: start-up

    home = value.name if type(value) is Module else unsupported.home_of(value)
    reason = home and unsupported.reason_unsupported(home, name)
    if reason:
        return GradcliError(
            "E205",
            f"`{home}.{name}` is left out: {reason}",
            raises="AttributeError",
            help=RECORDED,
        )
    if type(value) is Module and _has_host(value, name):
        is_file = value.name == "numpy" and name in _FILES_OF_NUMPY
        return GradcliError(
            "E205",
            f"`{value.name}.{name}` is left out: programs here have a part of `{value.name}`",
            raises="AttributeError",
            help=_FILES if is_file else RECORDED,
        )
    help = None
    if name.startswith("__"):
        help = "attributes of Python's own machinery are not part of the language"
    elif value is None:
        help = "the value is None: a .grad is, until a backward pass has reached its leaf"
    elif type(value) is Module and name in catalogue.modules["torch"]:
        help = f"did you mean `torch.{name}`?"
    elif type_name(value) in _FUNCTIONS and _is_of_tensors(name):
        help = f"this is a function: call it first, and take `.{name}` of what it gives"
    elif type(value) in (list, tuple, int, float) and _is_of_tensors(name):
        help = f"tensors have `{name}`: `tensor(…)` makes one of numbers or a list of them"
    else:
        help = suggestion(name, attribute_names(value))
    text = None
    if isinstance(value, LanguageType):
        text = value.absent.format(value.name, name)
    return GradcliError("E102", f"{owner} has no attribute '{name}'", text=text, help=help)


def _is_of_tensors(name: str) -> bool:
    return name in catalogue.properties or name in catalogue.methods
