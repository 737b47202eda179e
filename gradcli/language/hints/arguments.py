"""What PyTorch's parser of arguments says of a call whose arguments have wrong types or names.

`signatures.txt` holds the signatures of the functions that this parser serves, in its order:
`KEY(TYPE[SIZE]? name=default, …)`. A SIZE says that one number stands for so many, `?` that None is
taken, `...` stands for the settings of a new tensor, `|deprecated` for what is not shown. A name
behind the key is the one that errors have.

Functions without such a signature do not ask for the type of every number and flag, which would
cost every call. A value of a wrong type makes them fail further in, over a shape or a dtype: it is
found here, by their annotations.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.arrays.layout.sizes import Device
from gradcli.arrays.random.generator import Generator
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error
from gradcli.ops.binding.arguments import NUMPY_NAMES
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.codegen.runtime import not_a_tensor, type_name

Named = dict[str, Any]

_SETTINGS = (
    "torch.dtype? dtype=None, torch.layout? layout=None, torch.device? device=None,"
    " bool? pin_memory=False, bool? requires_grad=False"
)


class _Parameter(NamedTuple):
    """One parameter; `sized` where one number stands for several."""

    kind: str
    name: str
    default: str | None
    sized: bool
    takes_none: bool
    by_name: bool


class _Signature(NamedTuple):
    name: str
    parameters: list[_Parameter]
    hidden: bool

    @property
    def by_place(self) -> list[_Parameter]:
        return [p for p in self.parameters if not p.by_name]

    @property
    def least(self) -> int:
        """How many arguments it needs."""
        return sum(p.default is None for p in self.parameters)

    def shown(self) -> str:
        """As errors show it."""
        parts = []
        for p in self.parameters:
            if p.by_name and "*" not in parts:
                parts.append("*")
            parts.append(f"{p.kind} {p.name}" + (f" = {p.default}" if p.default else ""))
        return f"({', '.join(parts)})"


@cache
def _signatures() -> dict[str, list[_Signature]]:
    with open(os.path.join(os.path.dirname(__file__), "signatures.txt"), encoding="utf-8") as file:
        text = file.read()
    signatures: dict[str, list[_Signature]] = {}
    for line in text.splitlines():
        head, _, rest = line.partition("(")
        key, _, name = head.partition(" ")
        body, _, mark = rest.rpartition(")")
        name = name or key.rpartition(".")[2]
        signatures.setdefault(key, []).append(_Signature(name, _parameters(body), bool(mark)))
    return signatures


_WRITTEN = re.compile(r"(.+?)(\[\d*\])?(\?)? (\w+)(?:=(.*))?$")


def _parameters(body: str) -> list[_Parameter]:
    parameters, by_name = [], False
    for part in body.replace("...", _SETTINGS).split(", ") if body else ():
        written = _WRITTEN.match(part)
        if written is None:
            by_name = True
            continue
        kind, size, optional, name, default = written.groups()
        none = bool(optional) or default == "None"
        parameters.append(_Parameter(kind, name, default, bool(size), none, by_name))
    return parameters


# --- one signature --------------------------------------------------------------------------------


def _is_integer(value: Any) -> bool:
    if type(value) is Tensor:
        return not value.array.ndim and value.dtype.category == "int"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if type(value) is Tensor:
        return not value.array.ndim and not value.requires_grad
    return isinstance(value, (bool, int, float, complex, np.number))


_OF_KIND: dict[str, Callable[[Any], bool]] = {
    "Number": _is_number,
    "Tensor": lambda value: isinstance(value, Tensor),
    "bool": lambda value: type(value) is bool,
    "float": lambda value: _is_number(value) and type(value) is not complex,
    "int": _is_integer,
    "str": lambda value: isinstance(value, str),
    "torch.Generator": lambda value: isinstance(value, Generator),
    "torch.device": lambda value: isinstance(value, (Device, str, int)),
    "torch.dtype": lambda value: isinstance(value, DType) or type_name(value) == "type",
    "tuple of Tensors": lambda value: isinstance(value, (list, tuple)),
}

_NUMBERS_TOO = re.compile(
    r"(add|div|divide|floor_divide|mul|multiply|sub|subtract|true_divide|remainder|fmod|rsub)_?$"
)
"""Functions that take numbers for tensors."""


def _fits(signature: _Signature, parameter: _Parameter, value: Any) -> bool:
    kind = parameter.kind
    if kind in ("tuple of ints", "tuple of floats"):
        if isinstance(value, (list, tuple)):
            return not value or (_is_integer if kind.endswith("ints") else _is_number)(value[0])
        return parameter.sized and _is_integer(value)
    if kind == "Tensor" and _NUMBERS_TOO.match(signature.name) and _is_number(value):
        return True
    check = _OF_KIND.get(kind)
    return check is None or check(value)


def _problem(signature: _Signature, args: Sequence[Any], kwargs: Named) -> str | None:
    """What is wrong with the arguments for one signature, None where they fit."""
    by_place, name = signature.by_place, signature.name
    spread = len(by_place) == 1 and by_place[0].kind == "tuple of ints"
    if len(args) > len(by_place) and not spread:
        return _too_many(signature, len(args))
    left = dict(kwargs)
    place = 0
    for number, parameter in enumerate(signature.parameters):
        if place < len(args) and parameter.by_name:
            return _too_many(signature, len(args))
        named = place >= len(args)
        if named:
            key = next((k for k in kwargs if parameter.name in (k, NUMPY_NAMES.get(k))), None)
            argument = kwargs.get(key) if key is not None else None
            if key is None:
                if parameter.default is None:
                    return _missing(signature, number)
                continue
            left.pop(key, None)
        else:
            argument = args[place]
            place += 1
        if (argument is None and parameter.takes_none) or _fits(signature, parameter, argument):
            continue
        if spread and place == 1 and not named and _is_integer(argument):
            place = len(args)
            continue
        return _wrong(signature, parameter, argument, 0 if named else place)
    for key in left:
        if any(p.name == key for p in signature.parameters):
            return f"{name}() got multiple values for argument '{key}'"
        return f"{name}() got an unexpected keyword argument '{key}'"
    return None


def _too_many(signature: _Signature, count: int) -> str:
    least, most = signature.least, len(signature.by_place)
    takes = f"{most}" if least == most else f"from {least} to {most}"
    many = "" if least == most == 1 else "s"
    were = "was" if least == most and count == 1 else "were"
    return f"{signature.name}() takes {takes} positional argument{many} but {count} {were} given"


def _missing(signature: _Signature, number: int) -> str:
    names = [
        f'"{p.name}"' for p in signature.parameters[number:] if p.default is None and not p.by_name
    ]
    ending = "s" if len(names) == 1 else ""  # as there
    return (
        f"{signature.name}() missing {len(names)} required positional argument{ending}:"
        f" {', '.join(names)}"
    )


def _wrong(signature: _Signature, parameter: _Parameter, argument: Any, place: int) -> str:
    where = f" (position {place})" if place else ""
    start = f"{signature.name}(): argument '{parameter.name}'{where} must be {parameter.kind}, "
    if parameter.kind.startswith("tuple of") and isinstance(argument, (list, tuple)) and place:
        return f"{start}but found element of type {_kind(argument[0])} at pos 0"
    return f"{start}not {_kind(argument)}"


def _kind(value: Any) -> str:
    name = type_name(value)
    return {
        "Device": "torch.device", "DType": "torch.dtype", "ndarray": "numpy.ndarray",
        "Size": "torch.Size",
    }.get(name, name)  # fmt: skip


# --- several signatures -------------------------------------------------------------------------


def _described(value: Any) -> str:
    """The type of an argument that is marked."""
    if isinstance(value, tuple):
        return f"tuple of ({', '.join(map(_kind, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"list of [{', '.join(map(_kind, value))}]"
    return _kind(value)


def _matches(part: str, value: Any) -> bool:
    """Whether an argument is of the type that is written, if there is nothing behind the name."""
    kind, kind_passed = part.rpartition(" ")[0], _kind(value)
    return kind_passed == kind or (kind == "float" and kind_passed == "int")


def _why_not(shown: str, args: Sequence[Any], kwargs: Named) -> str | None:
    """The line below a signature that takes as many arguments as there are."""
    parts = shown[1:-1].split(", ") if shown != "()" else []
    # A function without arguments is split into one empty part.
    if max(len(parts), 1) != len(args) + len(kwargs):
        return None
    last = parts[len(parts) - len(kwargs) :]
    fitting = {part.rpartition(" ")[2]: part for part in last}
    unfit = [k for k, v in kwargs.items() if k not in fitting or not _matches(fitting[k], v)]
    if unfit:
        wrong = f"keywords were incorrect: {', '.join(unfit)}"
    else:
        wrong = f"arguments have invalid types: {_marked(parts, args, kwargs)}"
    return f"      didn't match because some of the {wrong}"


def _marked(parts: list[str], args: Sequence[Any], kwargs: Named) -> str:
    """The types of the arguments, with `!` around those that do not match."""
    texts = []
    for at, (key, value) in enumerate([*((None, a) for a in args), *kwargs.items()]):
        mark = "" if at < len(parts) and _matches(parts[at], value) else "!"
        texts.append(f"{mark}{f'{key}=' if key else ''}{_described(value)}{mark}")
    return f"({', '.join(texts)})"


def _combination(shown: list[_Signature], args: Sequence[Any], kwargs: Named) -> str:
    got = "".join(
        [f"{_kind(a)}, " for a in args] + [f"{k}={_kind(v)}, " for k, v in kwargs.items()]
    )
    got = f"({got[:-2] if args else got})"
    start = f"{shown[0].name}() received an invalid combination of arguments - got "
    texts = [signature.shown() for signature in shown]
    if len(texts) == 1:
        parts = texts[0][1:-1].split(", ")
        if len(parts) == len(args) and not kwargs:
            got = _marked(parts, args, kwargs)
        return f"{start}{got}, but expected {texts[0]}"
    lines = [f"{start}{got}, but expected one of:"]
    for text in texts:
        why = _why_not(text, args, kwargs)
        lines += [f" * {text}", *([why] if why else [])]
    return "\n".join([*lines, ""])


def _key(function: Any, method: str | None) -> str | None:
    """The key of a function, None for one that the parser does not serve."""
    if method is not None:
        return f"Tensor.{method}"
    name = getattr(function, "__name__", None)
    for module in _MODULES:
        if name in modules[module] and modules[module][name] is function:
            return f"{module}.{name}"
    return None


_MODULES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")


def refusal(function: Any, method: str | None, args: Sequence[Any], kwargs: Named) -> str | None:
    """What PyTorch says of the arguments of a function, of which the first is the tensor that the
    method is called on, if it is one; None where its parser takes them, or does not read them.
    """
    if method is not None and not (args and isinstance(args[0], Tensor)):
        return None
    key = _key(function, method)
    signatures = _signatures().get(key) if key is not None else None
    if signatures is None:
        return None
    if method is not None:
        args = args[1:]
    if signatures[0].name == "none":
        passed = len(args)
        return f"TensorBase.{method}() takes no arguments ({passed} given)" if passed else None
    problems = [_problem(signature, args, kwargs) for signature in signatures]
    if None in problems:
        return None
    if len(signatures) == 1:
        return problems[0]
    count = len(args) + len(kwargs)
    shown = [s for s in signatures if not s.hidden]
    plausible = [s for s in shown if s.least <= count <= len(s.parameters)]
    if len(plausible) == 1:
        return problems[signatures.index(plausible[0])]
    return _combination(shown, args, kwargs)


_ACCEPTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("True or False", (bool,)),
    "int": ("an integer", (bool, int)),
    "float": ("a number", (bool, int, float, complex)),
    "str": ("a string", (str,)),
}
"""For an annotation what it asks for, in words and as classes. A tensor without dimensions counts
as its number.
"""


_INPUT = ("input",)
_PAIR = ("input", "target")
_READ_FIRST: dict[str, dict[str, tuple[str, ...]]] = {
    "torch": {"norm": _INPUT, "split": ("tensor",), "stft": _INPUT, "tensordot": ("a", "b")},
    "torch.nn.functional": {
        **dict.fromkeys(
            ("adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d",
             "adaptive_max_pool3d", "dropout1d", "dropout2d", "dropout3d", "embedding_bag",
             "gaussian_nll_loss", "glu", "group_norm", "instance_norm",
             "interpolate", "local_response_norm", "log_softmax", "lp_pool1d", "lp_pool2d",
             "lp_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "normalize", "softmax",
             "softsign", "tanhshrink"),
            _INPUT,
        ),
        **dict.fromkeys(
            ("binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "l1_loss",
             "mse_loss", "smooth_l1_loss"),
            _PAIR,
        ),
        "affine_grid": ("theta",),
        "margin_ranking_loss": ("input1", "input2", "target"),
    },
}  # fmt: skip
"""The arguments of which PyTorch's function reads an attribute before it asks for their type."""


def lacks_attribute(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether PyTorch misses an attribute of an argument that should have been a tensor."""
    for module, functions in _READ_FIRST.items():
        for name, arguments in functions.items():
            known: Any = modules[module].get(name)
            if known is not function:
                continue
            try:
                bound = inspect.signature(function).bind_partial(*args, **kwargs).arguments
            except TypeError:
                return False
            return any(type(bound.get(argument)) is not Tensor for argument in arguments)
    return False


def wrong_flag(op: str, function: Any, name: str, value: Any) -> GradcliError | None:
    """The error of a flag that is no bool; None where the function takes any value."""
    function = inspect.unwrap(function)
    annotation = getattr(function, "__annotations__", {}).get(name)
    kinds = annotation.split(" | ") if type(annotation) is str else ()
    if "bool" not in kinds or (value is None and "None" in kinds):
        return None
    if (op, name) in _READ_BY_PYTHON or not function.__module__.startswith("gradcli.ops."):
        return None
    return type_error(f"{op}(): argument '{name}' must be True or False, not {type_name(value)}")


_READ_BY_PYTHON = frozenset({("gaussian_nll_loss", "full"), ("interpolate", "align_corners")})
"""Flags that PyTorch's function looks at in Python, where any value has a truth."""


def wrong_operand(
    name: str, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> GradcliError | None:
    """The error for the first argument that should be a tensor and is not; None without one."""
    try:
        bound = inspect.signature(function).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    for number, parameter in enumerate(bound.signature.parameters.values(), 1):
        value = bound.arguments.get(parameter.name)
        is_operand = parameter.annotation == "Tensor" and parameter.kind is not _EVERY
        if is_operand and parameter.name in bound.arguments and type(value) is not Tensor:
            return not_a_tensor(name, parameter.name, number, value)
    return None


_EVERY = inspect.Parameter.VAR_POSITIONAL


def wrong_argument(
    name: str, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> GradcliError | None:
    """The error of the first argument that is not of its parameter's type, None where all are."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    for argument, value in bound.arguments.items():
        annotation = bound.signature.parameters[argument].annotation
        if type(annotation) is not str:
            continue
        kinds = annotation.split(" | ")
        if any(kind not in _ACCEPTED and kind != "None" for kind in kinds):
            continue
        if value is None and "None" in kinds:
            continue
        accepted = [_ACCEPTED[kind] for kind in kinds if kind != "None"]
        if type(value) is Tensor and not value.array.ndim and {"int", "float"} & {*kinds}:
            continue
        if accepted and not any(type(value) in classes for _, classes in accepted):
            wanted = " or ".join(words for words, _ in accepted)
            return type_error(
                f"{name}(): argument '{argument}' must be {wanted}, not {type_name(value)}"
            )
    return None
