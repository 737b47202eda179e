"""The classes of the language: what `type(x)` returns and `isinstance` takes.

A class is an object of ours that stands for one or several host classes, so no host class is ever
a program's value.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error

Named = TypeVar("Named", bound=Callable[..., Any])


def called(name: str, function: Named) -> Named:
    """The function, with the name that programs and errors have for it."""
    function.__name__ = function.__qualname__ = name
    return function


def by_name(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions and classes by their names, as the table of a module has them."""
    return {function.__name__: function for function in functions}


def names(text: str) -> frozenset[str]:
    """The names in a text, such as those of the attributes that programs reach."""
    return frozenset(text.split())


def check_kind(value: Any, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Raise E202 for a value of none of these classes, where `wanted` says what is taken."""
    if not isinstance(value, kinds):
        raise type_error(f"{wanted}, not {type_name(value)}")


class Hosted:
    """A value that shows of a host's object the attributes that its class allows: data that are
    plain, and methods with plain results.
    """

    __slots__ = ("host",)

    language_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, host: Any) -> None:
        self.host = host

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        attribute = getattr(self.host, name)
        if not callable(attribute):
            return attribute
        return called(name, lambda *values, **named: attribute(*values, **named))

    def __repr__(self) -> str:
        return repr(self.host)


class EnteredAsItself:
    """The base of contexts that are entered as themselves; by default nothing ends with them."""

    __slots__ = ()

    language_context: ClassVar[bool] = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        """Nothing ends."""


class LanguageType:
    """A class as a value.

    Attributes:
        absent: what the error says of an attribute that it has not: of its name and that one's.
        full_name: with the module, as it is printed.
        construct: makes an instance, None where programs cannot.
    """

    __slots__ = ("construct", "full_name", "hosts", "name")

    absent: ClassVar[str] = "type object '{0}' has no attribute '{1}'"

    def __init__(
        self,
        full_name: str,
        hosts: tuple[type, ...] = (),
        construct: Callable[..., Any] | None = None,
    ) -> None:
        self.full_name = full_name
        self.name = full_name.rpartition(".")[2]
        self.hosts = hosts
        self.construct = construct

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A new instance; raises E202 where the class has no constructor in the language."""
        if self.construct is None:
            raise type_error(f"instances of {self.name} cannot be made by calling it")
        return self.construct(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<class '{self.full_name}'>"

    def has_instance(self, value: Any) -> bool:
        """Whether a value is an instance; members of enumerations may be numbers or text too."""
        if isinstance(value, self.hosts):
            return True
        # Of the value: a name that a class lacks costs the host an exception.
        return getattr(value, "language_also", None) in self.hosts


_DERIVED = {
    "": "BaseException",
    "BaseException": "Exception BaseExceptionGroup GeneratorExit KeyboardInterrupt SystemExit",
    "Exception": """ArgumentError ExceptionGroup ArithmeticError AssertionError AttributeError
        EOFError ImportError LookupError MemoryError NameError OSError RuntimeError StopIteration
        Warning SyntaxError TypeError ValueError Error error""",
    "ValueError": "AxisError JSONDecodeError LinAlgError UnicodeError",
    "ArithmeticError": "DecimalException FloatingPointError OverflowError ZeroDivisionError",
    "ZeroDivisionError": "DivisionByZero",
    "OSError": """FileExistsError FileNotFoundError IsADirectoryError NotADirectoryError
        PermissionError TimeoutError""",
    "RuntimeError": "GradcheckError NotImplementedError RecursionError _LinAlgError",
    "AttributeError": "FrozenInstanceError",
    "LookupError": "IndexError KeyError",
    "DecimalException": "InvalidOperation Overflow",
    "ImportError": "ModuleNotFoundError",
    "ModuleNotFoundError": "PackageNotFoundError",
    "Warning": """UserWarning DeprecationWarning FutureWarning RuntimeWarning ResourceWarning
        SyntaxWarning""",
    "NameError": "UnboundLocalError",
    "UnicodeError": "UnicodeDecodeError",
}
_BASES = {name: base for base, derived in _DERIVED.items() for name in derived.split()}
"""Each class of exceptions with the one that it derives from."""


def lineage(name: str) -> list[str]:
    """The name of a class of exceptions and those of all above it, "" for none."""
    classes = []
    while name:
        classes.append(name)
        name = _BASES[name]
    return classes


class ExceptionType(LanguageType):
    """A class of exceptions; `ancestors` has its own name and those of all its bases."""

    __slots__ = ("ancestors",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ancestors = frozenset(lineage(name))

    def has_instance(self, value: Any) -> bool:
        """Whether a value is an exception of this class or of one that derives from it."""
        if not isinstance(value, GradcliError):
            return False
        ancestors = getattr(value, "ancestors", None) or exception_type(value.raises).ancestors
        return self.name in ancestors


EXCEPTIONS = {name: ExceptionType(name) for name in _BASES}
"""The exception classes by name."""


def is_exception(value: Any) -> bool:
    """Whether a value is a class of exceptions, the language's or the program's."""
    return isinstance(value, ExceptionType) or (
        isinstance(value, LanguageType)
        and bool(value.hosts)
        and issubclass(value.hosts[0], GradcliError)
    )


def exception_type(name: str) -> ExceptionType:
    """The exception class of a name; Exception for one that the language does not have."""
    return EXCEPTIONS.get(name, EXCEPTIONS["Exception"])


def is_subclass(cls: LanguageType | type, base: LanguageType | type) -> bool:
    """Whether a class is, or derives from, another one."""
    hosts = cls.hosts if isinstance(cls, LanguageType) else (cls,)
    if isinstance(base, ExceptionType):
        return base.name in getattr(hosts[0] if hosts else cls, "ancestors", ())
    bases = base.hosts if isinstance(base, LanguageType) else (base,)
    return bool(hosts) and all(
        issubclass(host, bases) or getattr(host, "language_also", None) in bases for host in hosts
    )


_by_host: dict[type, LanguageType] = {}

_errors_of_ours: set[type] = set()
"""Host classes of errors that say by `raises` alone what class they are of."""


def define(
    full_name: str, *hosts: type, construct: Callable[..., Any] | None = None
) -> LanguageType:
    """Make a class of the language for host classes."""
    cls = LanguageType(full_name, hosts, construct)
    for host in hosts:
        _by_host[host] = cls
    return cls


def class_of_host(host: type) -> LanguageType:
    """The class of the language for a host class that programs name, and make instances of."""
    cls = _by_host.get(host) or define(host_name(host), host)
    if cls.construct is None:
        cls.construct = host
    return cls


def known_type(host: type) -> LanguageType | None:
    """The class of the language that stands for a host class, None for none."""
    return _by_host.get(host)


def host_name(host: type) -> str:
    """The full name of a host class of ours: what it declares as `language_name`, or its own."""
    name: str = getattr(host, "language_name", host.__name__)
    return name


class _ParameterType(LanguageType):
    """The class of those tensors that are parameters."""

    __slots__ = ()

    def has_instance(self, value: Any) -> bool:
        return type(value) is Tensor and value.meta is not None and value.meta.is_parameter


class _UninitializedType(LanguageType):
    """The class of those tensors that have no shape yet."""

    __slots__ = ()

    def has_instance(self, value: Any) -> bool:
        if type(value) is not Tensor or not hasattr(type(value.array), "named"):
            return False
        return bool(value.array.named == self.name)


def type_of(value: Any) -> LanguageType:
    """The class of a value."""
    host = type(value)
    if host is Tensor and hasattr(type(value.array), "named"):
        return UNINITIALIZED[value.array.named]
    if host is Tensor and PARAMETER.has_instance(value):
        return PARAMETER
    cls = _by_host.get(host)
    if cls is None:
        if host in _errors_of_ours:
            return exception_type(value.raises)
        cls = getattr(host, "language_class", None)  # the program's own
        if hasattr(host, "language_type"):
            cls = value.language_type()
        if cls is None and isinstance(value, GradcliError):
            _errors_of_ours.add(host)
            return exception_type(value.raises)
        if cls is None and isinstance(value, (LanguageType, type)):
            return TYPE
        if cls is None:
            # An object of ours: its class is named as it is, once for all sessions.
            cls = define(host_name(host), host)
    return cls


def type_name(value: Any) -> str:
    """The name of a value's class, for messages."""
    return type_of(value).name


_WITH_MODULE = frozenset({"torch.Size", "torch.device", "torch.dtype"})
"""The classes that PyTorch's texts name with their module: those that it defines in C."""


def full_type_name(value: Any) -> str:
    """The name of a value's class as PyTorch's texts have it."""
    kind = type_of(value)
    return kind.full_name if kind.full_name in _WITH_MODULE else kind.name


def not_callable(value: Any) -> GradcliError:
    """The error of a call of a value that is no function."""
    return type_error(
        f"a value of type {type_name(value)} cannot be called",
        text=f"'{full_type_name(value)}' object is not callable",
    )


# Classes that programs see as `type(x)` and never call.
define("NoneType", type(None))
define("ellipsis", type(...))
define("builtin_function_or_method", types.FunctionType, types.MethodType, types.BuiltinMethodType)
define("dict_keys", type({}.keys()))
define("dict_values", type({}.values()))
define("dict_items", type({}.items()))
TYPE = define("type", LanguageType, type)
TENSOR = define("torch.Tensor", Tensor)
PARAMETER = _ParameterType("torch.nn.parameter.Parameter", (Tensor,))
UNINITIALIZED = {
    name: _UninitializedType(f"torch.nn.parameter.{name}", (Tensor,))
    for name in ("UninitializedParameter", "UninitializedBuffer")
}
