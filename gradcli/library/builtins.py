"""Python's built-in functions and classes, as far as the language has them.

A function's own parameters are its signature in the language, so a wrong call is noticed by the
host and explained from there.
"""

from __future__ import annotations

import builtins as host
from collections.abc import Callable
from functools import wraps
from itertools import starmap
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.events import Asked, Explained, Printed, Shown, Traced
from gradcli.language.functions.calls import Function, call, offer_op
from gradcli.language.limits import check_integer, check_nesting, check_text
from gradcli.language.objects.attributes import (
    Module,
    attribute_names,
    delete_attribute,
    get_attribute,
    set_attribute,
)
from gradcli.language.objects.classes.definition import Super, make_class
from gradcli.language.objects.classes.instance_attributes import attributes_of
from gradcli.language.objects.classes.user_classes import (
    MISSING,
    OBJECT,
    ClassMethod,
    Property,
    StaticMethod,
    UserClass,
    is_dunder,
)
from gradcli.language.objects.exceptions import Absent, Raised
from gradcli.language.objects.iteration import (
    IN_C,
    Iterator,
    bounded,
    drawing,
    ended_iteration,
    iterate,
    side_by_side,
)
from gradcli.language.objects.methods import dict_of, members_of, rounded
from gradcli.language.objects.operators import NUMBERS, binary, extreme, sort_values
from gradcli.language.objects.repr import ascii_of, display, format_value, text
from gradcli.language.objects.types import (
    EXCEPTIONS,
    TYPE,
    LanguageType,
    called,
    check_kind,
    define,
    is_subclass,
    names,
    type_name,
    type_of,
)
from gradcli.library.files import FILES
from gradcli.ops.binding.functions import methods
from gradcli.ops.definition.lints import check_constant
from gradcli.state import active

BUILTINS: dict[str, Any] = {**FILES}
"""The built-in functions and classes by name."""

_ABSENT: Any = object()


def _builtin(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a function under its name, without the `builtin_` that tells it from the host's."""
    name = function.__name__.removeprefix("builtin_")
    called(name, function)
    BUILTINS[name] = function
    return function


def _like_op(function: Callable[..., Any]) -> Callable[..., Any]:
    """A built-in function whose errors name the op of the same name, which was often meant."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except GradcliError as error:
            raise offer_op(error, function.__name__.removeprefix("builtin_"), args) from None

    return call


# --- showing ------------------------------------------------------------------------------


@_builtin
def builtin_print(
    *values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False
) -> None:
    separator = _text_or(sep, " ", "sep")
    line_end = _text_or(end, "\n", "end")
    if active.state.recorder is not None:
        active.state.recorder.shown(values)
    written = separator.join([text(value) for value in values]) + line_end
    if file is None:
        active.state.emit(Printed(written))
    else:
        call(get_attribute(file, "write"), (written,), {})


@_builtin
def builtin_exit(code: Any = None, /) -> None:
    raise EXCEPTIONS["SystemExit"](*(() if code is None else (code,)))


BUILTINS["quit"] = builtin_exit


def _text_or(value: Any, default: str, name: str) -> str:
    if value is None:
        return default
    if isinstance(value, str):
        return value
    raise type_error(f"print(): {name} must be a string, not {type_name(value)}")


@_builtin
def trace(tensor: Any, style: str = "tree") -> None:
    if type(tensor) is not Tensor:
        raise type_error(f"trace() shows the graph of a tensor, not {type_name(tensor)}")
    if style not in ("tree", "values", "next", "steps"):
        raise value_error(
            f"there is no trace style {display(style)}", help="tree, values, next or steps"
        )
    active.state.emit(Traced(tensor, style))


@_builtin
def show(tensor: Any, file: str) -> None:
    check_kind(file, str, "show() takes the name of a file")
    active.state.emit(Shown(_explicable(tensor, "show"), file))


@_builtin
def plot(
    *values: Any, title: str = "", kind: str = "line", file: str | None = None, **named: Any
) -> None:
    from gradcli.library.drawing import axes  # lazy: start-up: few programs draw

    axes.plot(values, named, title, kind, file)


@_builtin
def sparkline(values: Any) -> None:
    from gradcli.library.drawing import axes  # lazy: start-up: few programs draw

    axes.sparkline(values)


@_builtin
def explain(tensor: Any) -> None:
    active.state.emit(Explained(_explicable(tensor, "explain"), False))


@_builtin
def derive(tensor: Any) -> None:
    active.state.emit(Explained(_explicable(tensor, "derive"), True))


@_builtin
def why(question: str) -> None:
    if not isinstance(question, str):
        raise type_error('why() takes a question in quotes: why("x.grad")')
    active.state.emit(Asked("why", question))


@_builtin
def blame() -> None:
    active.state.emit(Asked("blame"))


@_builtin
def check() -> None:
    active.state.emit(Asked("check"))


def _explicable(tensor: Any, what: str) -> Tensor:
    """A tensor with gradients to explain; raises E202 and E402."""
    if type(tensor) is not Tensor:
        raise type_error(f"{what}() explains a tensor, not {type_name(tensor)}")
    if not tensor.requires_grad:
        raise GradcliError("E402", f"{what}() needs a tensor that requires grad")
    return tensor


@_builtin
def builtin_format(value: Any, spec: str = "", /) -> str:
    check_kind(spec, str, "a format spec is a string")
    return format_value(value, spec)


# --- numbers ------------------------------------------------------------------------------


@_builtin
def builtin_abs(x: Any, /) -> Any:
    return methods.abs(x) if type(x) is Tensor else host.abs(x)


@_builtin
@_like_op
def builtin_round(number: Any, ndigits: Any = None) -> Any:
    if type(number) is Tensor:
        raise type_error(
            "a tensor cannot be rounded to a number of Python's",
            text="type Tensor doesn't define __round__ method",
        )
    return rounded(number, ndigits)


@_builtin
def builtin_pow(base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is None:
        return binary("**", base, exp)
    if not all(isinstance(value, int) for value in (base, exp, mod)):
        raise type_error("pow() with three arguments takes integers")
    # Squaring takes a step for each bit of the exponent, and each step the square of the modulus'
    # bits.
    check_integer(exp.bit_length() * mod.bit_length() // 64)
    return host.pow(base, exp, mod)


@_builtin
def builtin_divmod(x: Any, y: Any, /) -> Any:
    if hasattr(type(x), "language_class") or hasattr(type(y), "language_class"):
        return host.divmod(x, y)
    if type(x) is Tensor or type(y) is Tensor:
        raise type_error(
            f"unsupported operand type(s) for divmod(): '{type_name(x)}' and '{type_name(y)}'",
            help="write `x // y, x % y`",
        )
    return binary("//", x, y), binary("%", x, y)


@_builtin
@_like_op
def builtin_sum(iterable: Any, /, start: Any = 0) -> Any:
    if isinstance(start, str):
        raise type_error("sum() adds no strings", help="join them: `''.join(values)`")
    values = bounded(iterable)
    if IN_C.added_up is not None:
        return IN_C.added_up(iter(values), start)
    total = start
    numbers = []
    for value in values:
        # Numbers are left to the host in one go, whose sum of floats may be more exact than
        # adding them one by one.
        if type(value) in NUMBERS and type(total) in NUMBERS:
            numbers.append(value)
            if len(numbers) == _SUMMED_AT_ONCE:
                total = host.sum(numbers, total)
                numbers.clear()
        else:
            total = binary("+", host.sum(numbers, total) if numbers else total, value)
            numbers.clear()
    return host.sum(numbers, total) if numbers else total


_SUMMED_AT_ONCE = 1 << 16


BUILTINS |= {each.__name__: each for each in (host.bin, host.hex, host.oct, host.chr, host.ord)}

# --- iterators ----------------------------------------------------------------------------


@_builtin
def builtin_enumerate(iterable: Any, start: int = 0) -> Iterator:
    return side_by_side("enumerate", host.enumerate(iterate(iterable), start), iterable)


@_builtin
def builtin_zip(*iterables: Any, strict: Any = False) -> Iterator:
    sources = [iterate(values) for values in iterables]
    made = drawing if strict else side_by_side
    return made("zip", host.zip(*sources, strict=bool(strict)), *iterables)


@_builtin
def builtin_map(function: Any, iterable: Any, /, *iterables: Any) -> Iterator:
    sources = [iterate(values) for values in (iterable, *iterables)]
    values = starmap(_applied(function), host.zip(*sources, strict=False))
    return drawing("map", values, iterable, *iterables)


@_builtin
def builtin_filter(function: Any, iterable: Any, /) -> Iterator:
    test = None if function is None else _applied(function)
    return drawing("filter", host.filter(test, iterate(iterable)), iterable)


def _applied(function: Any) -> Callable[..., Any]:
    """A value of a program as a function of the host, whose errors are the language's own."""
    if type(function) is Function:
        return function
    return lambda *args: call(function, args, {})


@_builtin
def builtin_reversed(sequence: Any, /) -> Any:
    if type(sequence) is Tensor:
        return methods.flip(sequence, 0) if sequence.array.ndim else sequence
    kind = type(sequence)
    if not hasattr(kind, "__reversed__") and not (
        hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    ):
        raise type_error(
            f"a value of type {type_name(sequence)} has no reverse order",
            text=f"'{type_name(sequence)}' object is not reversible",
        )
    return drawing("reversed", host.reversed(sequence))


@_builtin
def builtin_iter(iterable: Any, sentinel: Any = _ABSENT, /) -> Iterator:
    if sentinel is not _ABSENT:
        return drawing("callable_iterator", host.iter(_applied(iterable), sentinel))
    if type(iterable) is Iterator:
        return iterable
    named = getattr(type(iterable), "language_iterator", None)
    kind = f"{type_name(iterable)}_iterator" if named is None else named(iterable)
    return drawing(kind, iterate(iterable))


@_builtin
def builtin_next(iterator: Any, default: Any = _ABSENT, /) -> Any:
    if not hasattr(type(iterator), "__next__"):
        raise type_error(
            f"a value of type {type_name(iterator)} is no iterator",
            text=f"'{type_name(iterator)}' object is not an iterator",
        )
    try:
        return next(iterator)
    except StopIteration as error:
        if default is not _ABSENT:
            return default
        raise ended_iteration(error) from error


# --- collections --------------------------------------------------------------------------


@_builtin
def builtin_len(collection: Any, /) -> int:
    if not hasattr(type(collection), "__len__"):
        raise type_error(
            f"a value of type {type_name(collection)} has no length",
            text=f"object of type '{type_name(collection)}' has no len()",
        )
    return len(collection)


_SHORT: dict[str, Callable[..., Any]] = {
    "all": _like_op(called("all", lambda iterable, /: host.all(bounded(iterable)))),
    "any": _like_op(called("any", lambda iterable, /: host.any(bounded(iterable)))),
    "ascii": lambda value, /: ascii_of(display(value)),
    "callable": lambda value, /: callable(value),
    "id": lambda value, /: host.id(value),
    "repr": lambda value, /: display(value),
    "sorted": lambda iterable, /, *, key=None, reverse=False: sort_values(iterable, key, reverse),
}
"""The functions that are one expression."""

for _name, _function in _SHORT.items():
    _builtin(called(_name, _function))
_builtin(_like_op(extreme("min", host.min)))
_builtin(_like_op(extreme("max", host.max)))


# --- values and their classes -------------------------------------------------------------


@_builtin
def builtin_isinstance(value: Any, classes: Any, /) -> bool:
    if type(classes) is tuple:
        return host.any(builtin_isinstance(value, each) for each in classes)
    if isinstance(classes, LanguageType):
        return classes.has_instance(value)
    if type(classes) is Absent:
        classes.refuse()
    if hasattr(type(classes), "language_instance"):
        return bool(classes.language_instance(value))
    dtype = getattr(classes, "tensor_dtype", None)
    if dtype is not None:  # torch.DoubleTensor
        return isinstance(value, Tensor) and value.dtype is dtype
    if isinstance(classes, type):  # a class of the catalogue, such as torch.no_grad
        return isinstance(value, classes)
    raise type_error(
        f"isinstance() takes a class or a tuple of them, not {text(classes)}",
        text="isinstance() arg 2 must be a type, a tuple of types, or a union",
    )


@_builtin
def builtin_issubclass(cls: Any, classes: Any, /) -> bool:
    classes = getattr(classes, "members", None) or classes
    if type(classes) is tuple:
        return host.any(builtin_issubclass(cls, each) for each in classes)
    if type(classes) is Absent:
        classes.refuse()
    if not isinstance(cls, (LanguageType, type)) or not isinstance(classes, (LanguageType, type)):
        first = isinstance(cls, (LanguageType, type))
        must = "2 must be a class, a tuple of classes, or a union" if first else "1 must be a class"
        raise type_error("issubclass() takes two classes", text=f"issubclass() arg {must}")
    return is_subclass(cls, classes)


def builtin_type(value: Any, /, *parts: Any, **keywords: Any) -> LanguageType:
    if not parts:
        return type_of(value)
    if len(parts) != 2:
        raise GradcliError("E201", "type() takes 1 or 3 arguments")
    return make_class(TYPE, value, *parts, **keywords)


TYPE.construct = builtin_type
BUILTINS["type"] = TYPE


@_builtin
def builtin_hash(value: Any, /) -> int:
    check_nesting(value)
    return host.hash(value)


@_builtin
def builtin_vars(value: Any, /) -> dict[str, Any]:
    if type(value) is Module:
        return {name: value.get(name) for name in value.public_names()}
    if isinstance(value, UserClass):
        return {name: each for name, each in value.names.items() if not is_dunder(name)}
    if type(value) is Tensor:
        held: dict[str, Any] = get_attribute(value, "__dict__")
        return held
    return attributes_of(value)


@_builtin
def builtin_dir(value: Any, /) -> list[str]:
    return sorted({*attribute_names(value)})


@_builtin
def builtin_getattr(value: Any, name: str, default: Any = _ABSENT, /) -> Any:
    _check_name(name)
    try:
        return get_attribute(value, name)
    except GradcliError as error:
        if default is _ABSENT or error.raises != "AttributeError":
            raise
        return default


@_builtin
def builtin_hasattr(value: Any, name: str, /) -> bool:
    return builtin_getattr(value, name, MISSING) is not MISSING


@_builtin
def builtin_setattr(value: Any, name: str, new: Any, /) -> None:
    _check_name(name)
    set_attribute(value, name, new)


@_builtin
def builtin_delattr(value: Any, name: str, /) -> None:
    _check_name(name)
    delete_attribute(value, name)


def _check_name(name: Any) -> None:
    check_kind(name, str, "an attribute's name is a string")


# --- classes that are called --------------------------------------------------------------


def _int(x: Any = 0, /, base: Any = _ABSENT) -> int:
    if type(x) is Tensor:
        check_constant(x)
    return int(x) if base is _ABSENT else int(x, base)


def _float(x: Any = 0.0, /) -> float:
    if type(x) is Tensor:
        check_constant(x)
    return float(x)


def _bytes(source: Any = b"", encoding: str = "", errors: str = "strict", /) -> bytes:
    if isinstance(source, str):
        if not encoding:
            raise type_error(
                "bytes() of a string needs its encoding", text="string argument without an encoding"
            )
        return source.encode(encoding, errors)
    if isinstance(source, int):
        check_text(source)
        return bytes(source)
    return source if type(source) is bytes else bytes(bounded(source))


_CONSTRUCTORS: dict[type, Callable[..., Any]] = {
    bool: lambda x=False, /: bool(x),
    int: _int,
    float: _float,
    complex: lambda real=0, imag=_ABSENT: complex(real) if imag is _ABSENT else complex(real, imag),
    str: lambda object="": text(object),
    list: lambda iterable=(), /: list(bounded(iterable)),
    tuple: lambda iterable=(), /: iterable if type(iterable) is tuple else tuple(bounded(iterable)),
    set: lambda iterable=(), /: set(members_of(iterable)),
    frozenset: lambda iterable=(), /: (
        iterable if type(iterable) is frozenset else frozenset(members_of(iterable))
    ),
    bytes: _bytes,
    dict: lambda *values, **named: dict_of(*values, **named),
    range: lambda *limits: range(*limits),
    slice: lambda *limits: slice(*limits),
}
"""The classes of Python's that programs call."""

for _host, _construct in _CONSTRUCTORS.items():
    _name = _host.__name__
    BUILTINS[_name] = define(_name, _host, construct=called(_name, _construct))
BUILTINS.update({"Ellipsis": ..., "NotImplemented": NotImplemented, "__debug__": True})
BUILTINS["object"] = OBJECT
for _own in (ClassMethod, Property, StaticMethod, Super):
    BUILTINS[_own.language_name] = define(_own.language_name, _own, construct=_own)


def _exception(name: str) -> Callable[..., Raised]:
    def make(*arguments: Any) -> Raised:
        if name == "SystemExit" and arguments and isinstance(arguments[0], (int, type(None))):
            message = ""  # a number is the exit code, all else is shown
        elif len(arguments) == 1:
            # A KeyError shows its key as it was written, so that a blank one is seen.
            message = display(arguments[0]) if name == "KeyError" else text(arguments[0])
        else:
            message = display(arguments) if arguments else ""
        code = "E701" if name == "AssertionError" else "E702"
        return Raised(name, message, arguments, code)

    return called(name, make)


_KNOWN_BY_MODULE = names("""ArgumentError AxisError FrozenInstanceError GradcheckError
    JSONDecodeError LinAlgError DecimalException DivisionByZero Error InvalidOperation Overflow
    PackageNotFoundError _LinAlgError error""")


def _group(name: str) -> Callable[..., Raised]:
    def make(message: Any, exceptions: Any, /) -> Raised:
        from gradcli.language.objects.classes.exception_instances import (  # lazy: start-up
            new_group,
        )

        return new_group(name, message, exceptions)

    return called(name, make)


for _name, _kind in EXCEPTIONS.items():
    _kind.construct = _group(_name) if _name.endswith("Group") else _exception(_name)
    if _name not in _KNOWN_BY_MODULE:  # known by their modules
        BUILTINS[_name] = _kind
