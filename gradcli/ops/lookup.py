"""The catalogue's ops by the names that people write: `exp`, `torch.exp`, `F.relu`, `Tensor.add_`.

Help pages, search and other descriptions of ops look names up here; programs have their own lookup.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dis import get_instructions
from functools import cache
from inspect import cleandoc, unwrap
from typing import Any

import numpy as np

import gradcli.ops.load  # noqa: F401  (fills the catalogue)
from gradcli.ops.binding import catalogue
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.doc import BY_VALUES, CHECKS, NO_DOC, OpDoc
from gradcli.ops.definition.op import Op, registry

TENSOR = "Tensor"
"""The namespace of methods and attributes."""

NAMESPACES = {
    "torch": "torch",
    "torch.nn.functional": "F",
    TENSOR: TENSOR,
    "torch.linalg": "linalg",
    "torch.special": "special",
    "torch.fft": "fft",
    "torch.nn": "nn",
    "torch.nn.init": "nn.init",
    "torch.nn.utils": "nn.utils",
    "torch.optim": "optim",
    "torch.optim.lr_scheduler": "lr_scheduler",
    "torch.autograd": "autograd",
}
"""Where ops live, with the short name that pages use, in the order in which a bare name is looked
up.
"""

_PREFIXES = {
    **{short: namespace for namespace, short in NAMESPACES.items()},
    **{namespace: namespace for namespace in NAMESPACES},
    **{namespace.removeprefix("torch."): namespace for namespace in NAMESPACES},
    "torch.Tensor": TENSOR,
    "torch.optim.lr_scheduler": "torch.optim.lr_scheduler",
}

Load = Callable[[str], Mapping[str, Any]]
"""The names that a module holds, loaded where they are not yet."""


class PublicName:
    """What a name stands for.

    Attributes:
        namespace: the module that holds it, or `Tensor`.
        name: its name there.
        value: the function or class.
        entries: the entries of the catalogue that it records.
        inplace: whether it writes its result to its tensor.
    """

    __slots__ = ("entries", "inplace", "name", "namespace", "value")

    def __init__(self, namespace: str, name: str, value: Any) -> None:
        self.namespace = namespace
        self.name = name
        self.value = value
        body = _written_body(value)
        self.inplace = body is not None
        self.entries = _entries(name.rstrip("_"), value if body is None else body)

    @property
    def function(self) -> Any:
        """Its function; for an in-place form the one whose result is written."""
        body = _written_body(self.value)
        return self.value if body is None else body

    @property
    def full_name(self) -> str:
        """The name as a program writes it: `torch.exp`, `F.relu`, `nn.Linear`, `Tensor.add_`."""
        short = NAMESPACES[self.namespace]
        abbreviated = short in ("F", TENSOR) or short.startswith("nn")
        return f"{short if abbreviated else self.namespace}.{self.name}"


def find(name: str, load: Load) -> PublicName | None:
    """What a name stands for, None where it is nothing."""
    prefix, _, last = name.rpartition(".")
    if prefix:
        namespace = _PREFIXES.get(prefix)
        return None if namespace is None else _find_in(namespace, last, load)
    for namespace in NAMESPACES:
        if (match := _find_in(namespace, last, load)) is not None:
            return match
    return None


def namespace_of(prefix: str) -> str | None:
    """The namespace that a prefix such as `F`, `nn` or `torch.linalg` stands for."""
    return _PREFIXES.get(prefix)


def names_in(namespace: str, load: Load) -> Iterator[str]:
    """The public callables of a namespace, by name."""
    for name, value in table_of(namespace, load).items():
        if not name.startswith("_") and callable(value) and not _is_plain_class(value):
            yield name


def table_of(namespace: str, load: Load) -> Mapping[str, Any]:
    """The contents of a namespace, by name."""
    return catalogue.methods if namespace == TENSOR else load(namespace)


def _find_in(namespace: str, name: str, load: Load) -> PublicName | None:
    if name.startswith("_"):
        return None
    value = table_of(namespace, load).get(name)
    if value is None or not callable(value) or _is_plain_class(value):
        return None
    return PublicName(namespace, name, value)


def _is_plain_class(value: Any) -> bool:
    """Whether a value is a class that records no op, such as an exception."""
    unmade = hasattr(value, "construct") and value.construct is None
    return unmade or hasattr(value, "ancestors")


# --- what a function records --------------------------------------------------------------------


def _written_body(value: Any) -> Any:
    """The function whose result an in-place form writes, None for any other function."""
    if getattr(value, "__qualname__", "").endswith("_") and isinstance(value, types.FunctionType):
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        if value.__code__.co_name == "write_result" and "body" in cells:
            return cells["body"].cell_contents
    return None


def _entries(name: str, value: Any) -> list[Op]:
    """The entries that a function records: those of its own name, or else all that it calls."""
    called_by = getattr(value, "__name__", "")
    bound = [op for op in registry.values() if op.name == called_by and is_bound(op, value)]
    if bound:
        return bound
    if not isinstance(value, types.FunctionType):
        return []
    called = list(dict.fromkeys(_called(_unchecked(value), 3, set())))
    same = [op for op in called if op.name in (name, f"linalg_{name}", f"{name}_")]
    if same or len(called) == 1:
        return same or called
    return [op for op in called if op.node_name][:4]


def is_bound(op: Op, value: Any) -> bool:
    """Whether a function is the `apply` of an entry, generated or not yet."""
    if value is op.apply or getattr(value, "__wrapped__", None) is op.apply:
        return True
    return any(table.get(name) is value for table, name in op.bindings)


def _called(function: types.FunctionType, depth: int, seen: set[Any]) -> Iterator[Op]:
    """The entries that a function names, itself and through the functions that it calls."""
    if function in seen:
        return
    seen.add(function)
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    names = _globals_read(function.__code__)
    values += [function.__globals__[name] for name in names if name in function.__globals__]
    wrapped = getattr(function, "__wrapped__", None)
    for value in map(_unchecked, [*values, wrapped]):
        if isinstance(value, Op):
            yield value
        elif isinstance(value, types.FunctionType) and depth and _may_record(value):
            yield from _called(value, depth - 1, seen)


def _unchecked(value: Any) -> Any:
    """A function without the check of what it takes, any other value as it is."""
    is_check = isinstance(value, types.FunctionType) and value.__code__.co_name == "checked"
    return vars(value)["__wrapped__"] if is_check else value


@cache
def _globals_read(code: types.CodeType) -> tuple[str, ...]:
    """The names of the globals that a function reads; `co_names` has those of attributes too."""
    read = (each.argval for each in get_instructions(code) if each.opname == "LOAD_GLOBAL")
    return tuple(dict.fromkeys(read))


def _may_record(function: types.FunctionType) -> bool:
    """Whether a function is one of the catalogue's, and none that only checks arguments."""
    if function.__name__.startswith(("check_", "refuse_", "in_place")):
        return False
    return (function.__module__ or "").startswith("gradcli.ops.")


def family_of(module: str) -> str:
    """The family of a module of ops, "linalg" or "loss": its folder below `gradcli.ops`."""
    folder, *inner = module.removeprefix("gradcli.ops.").split(".")
    return inner[0] if folder == "nn" and len(inner) > 1 else folder


# --- what is said of it -------------------------------------------------------------------------


def doc_of(public: PublicName) -> OpDoc:
    """The documentation of a function or class: from its docstring, from the entry that it records,
    or from the function whose result it writes.
    """
    doc, body = documented(public.function), public.function
    if not doc.summary:
        described = next((op for op in public.entries[:1] if op.doc.summary), None)
        if described is not None:
            doc, body = described.doc, described.forward
    if doc.summary and not doc.example:
        doc = OpDoc(doc.summary, _usual_example(public, body), doc.conventions)
    if public.name.endswith("_") and not (doc.summary and doc.example):
        value = table_of(public.namespace, _loaded).get(public.name.removesuffix("_"))
        if value is not None:
            plain = doc_of(PublicName(public.namespace, public.name.removesuffix("_"), value))
            return OpDoc(doc.summary or plain.summary, plain.example, plain.conventions)
    return doc


def _usual_example(public: PublicName, body: Any) -> str:
    """The example of a function of the usual operands that has none of its own: a call on those of
    its family. "" for any other function.
    """
    body = unwrap(body)
    home = str(getattr(body, "__module__", ""))
    code = getattr(body, "__code__", None)
    if not home.startswith("gradcli.ops.") or code is None:
        return ""
    needed = code.co_varnames[: code.co_argcount - len(body.__defaults__ or ())]
    apart = public.name not in catalogue.modules["torch"]
    family = public.namespace if apart and public.namespace in _USUAL else family_of(home)
    first, second = _MATRICES if "dim" in needed else _USUAL.get(family, _VECTORS)
    usual = {"dim": "0", "tensors": f"[{', '.join(_VECTORS)}]"}
    usual |= dict.fromkeys(("input", "self", "A"), first)
    usual |= dict.fromkeys(("other", "target", "B"), second)
    if not usual.keys() >= set(needed):
        return ""
    operands = [usual[parameter] for parameter in needed]
    if apart and public.namespace == TENSOR and operands:
        return f"{operands[0]}.{public.name}({', '.join(operands[1:])})"
    namespace = family if family == public.namespace else "torch"
    return f"{namespace}.{public.name}({', '.join(operands)})"


_VECTORS = ("tensor([0.5, 1., 2.])", "tensor([2., 1., 3.])")
_MATRICES = ("tensor([[2., 1.], [1., 3.]])", "tensor([[1., 0.], [2., 1.]])")
_USUAL = {
    "linalg": _MATRICES,
    "nn": ("tensor([-1.5, 0., 2.5])", _VECTORS[1]),
    "shape": _MATRICES,
    "torch.fft": ("tensor([0.5, 1., 2.5])", _VECTORS[1]),
    "torch.special": ("tensor([0.5, 1., 2.5])", _VECTORS[1]),
}
"""The operands in the examples of a room's functions, or of those that only one module has, where
they are not `_VECTORS`.
"""


def own_entries(public: PublicName) -> list[Op]:
    """The entries that are the function itself, by one of its names, so that what is known of them
    is known of it.
    """
    names = {public.name.removesuffix("_"), *(name for _, name in same(public))}
    return [
        op
        for op in public.entries
        if is_bound(op, public.function) or op.name.removeprefix("linalg_") in names
    ]


def same(public: PublicName) -> Iterator[tuple[str, str]]:
    """The namespaces and names under which a function can be reached, with the one found."""
    own = (public.value, public.function)
    for namespace in NAMESPACES:
        table = _loaded(namespace)
        for name, value in list(table.items()):
            if any(value is each for each in own):
                yield namespace, name


def _loaded(namespace: str) -> Mapping[str, Any]:
    """The contents of a namespace as far as they are loaded."""
    return catalogue.methods if namespace == TENSOR else catalogue.modules.get(namespace, {})


# --- effects ------------------------------------------------------------------------------------


def effects_of(function: Any) -> frozenset[str]:
    """The side effects of a function, of `EFFECTS`: those declared for it
    and the functions that it wraps, and those of the entries that it calls. `CHECKS` is among them
    where an entry says that values make it raise.
    """
    declared: frozenset[str] = frozenset()
    body = function
    while body is not None:
        declared |= getattr(body, "__dict__", {}).get("effects", frozenset())
        function, body = body, getattr(body, "__wrapped__", None)
    for op in _entries(getattr(function, "__name__", ""), function):
        declared |= op.effects
        if op.raises == BY_VALUES:
            declared |= {CHECKS}
    return declared


# --- NumPy --------------------------------------------------------------------------------------


def numpy_of(name: str) -> str:
    """NumPy's equivalent of a function, by the function's name in the language: see `Op.numpy`; ""
    where there is none.
    """
    namespace, _, last = name.removeprefix("torch.").replace("linalg_", "linalg.").rpartition(".")
    value = catalogue.modules.get(_PREFIXES.get(namespace or "torch", ""), {}).get(last)
    value = catalogue.methods.get(last) if value is None else value
    for op in registry.values():
        if op.name in (last, f"{namespace}_{last}") and (op.numpy or _ufunc(op) is not None):
            return op.numpy or last
    return str(vars(unwrap(value)).get("numpy", "")) if callable(value) else ""


def named_by_numpy(function: Any) -> str | None:
    """The language's name of a function that NumPy has as well, by NumPy's function."""
    name = str(function.__name__)
    if not isinstance(function, np.ufunc):
        return name if numpy_of(name) == name else None
    catalogue.modules["torch"].get(name)  # which may import the entry's family
    for everything in (False, True):
        if everything:
            bring_all()
        pointwise = [op for op in registry.values() if op.pointwise]
        same_name = (op.name for op in pointwise if _ufunc(op) is function)
        other_name = (op.name for op in pointwise if getattr(np, op.numpy, None) is function)
        if (entry_name := next(same_name, None) or next(other_name, None)) is not None:
            return entry_name
    return name if numpy_of(name) == name else None


def _ufunc(op: Op) -> Any:
    """The ufunc of NumPy that has an entry's name and so computes the same."""
    ufunc = getattr(np, op.name, None) if op.pointwise and not op.numpy else None
    return ufunc if isinstance(ufunc, np.ufunc) else None


# --- what a docstring says ----------------------------------------------------------------------


def documented(value: Any) -> OpDoc:
    """What the docstring of a function or class says, or that of the function it wraps or loads."""
    value = getattr(value, "construct", None) or value
    value = value.loaded() if hasattr(value, "loaded") else value
    while not value.__doc__ and getattr(value, "__wrapped__", None) is not None:
        value = value.__wrapped__
    if not value.__doc__:
        return NO_DOC
    parts = cleandoc(value.__doc__).split("\n\n")
    words = " ".join(parts[0].split())
    sentence, dot, _ = words.partition(". ")
    sections = {"Conventions": "", "Example": ""}
    for part in parts[1:]:
        head, colon, text = part.partition(":")
        if colon and head in sections:
            sections[head] = cleandoc(text) if text.startswith("\n") else text.strip()
    return OpDoc(
        sentence + "." if dot else words,
        "\n".join(_whole_lines(sections["Example"].split("\n"))),
        " ".join(sections["Conventions"].split()),
    )


def _whole_lines(lines: Iterable[str]) -> list[str]:
    """Lines, those inside brackets joined."""
    joined: list[str] = []
    depth = 0
    for line in lines:
        if depth > 0:
            joined[-1] += " " * (joined[-1][-1] not in "([{" and line.strip()[0] not in ")]}")
            joined[-1] += line.strip()
        else:
            joined.append(line)
        depth += sum((sign in "([{") - (sign in ")]}") for sign in line)
    return joined
