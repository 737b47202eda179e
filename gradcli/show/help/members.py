"""What a word means beyond topics and ops: a node, an attribute of a tensor, a method of modules
and optimizers, a name of a module that ops do not live in.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gradcli.autograd.custom_function import FunctionNode
from gradcli.autograd.node import Node
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import type_name
from gradcli.library.namespace import MODULES
from gradcli.library.torch.data.loading import DataLoader
from gradcli.library.torch.distributions.distribution import Distribution
from gradcli.library.torch.nn.module import Module
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.library.torch.optim.schedules import LRScheduler
from gradcli.ops.binding.lazy import bring_all
from gradcli.ops.definition.op import registry
from gradcli.ops.lookup import NAMESPACES
from gradcli.show.help.manual import source
from gradcli.show.help.ops import node_rows

_OWNERS: dict[str, tuple[type, frozenset[str]]] = {
    "nn.Module": (Module, frozenset({"Module", "net", "model", "module"})),
    "optim.Optimizer": (Optimizer, frozenset({"Optimizer", "opt", "optimizer"})),
    "lr_scheduler.LRScheduler": (LRScheduler, frozenset({"LRScheduler", "scheduler"})),
    "grad_fn": (Node, frozenset({"Node", "node"})),
    "ctx": (FunctionNode, frozenset({"Function"})),
    "DataLoader": (DataLoader, frozenset({"loader"})),
    "Distribution": (Distribution, frozenset({"dist"})),
}
"""Classes whose members have a page, with the words that stand for their instances."""

_TENSORS = frozenset({"", "Tensor", "tensor", "torch.Tensor", "x"})


def member_pages(name: str, width: int = 80, *, is_op: bool = False) -> list[str]:
    """A text for each thing that a word means, beside the op that it names if it `is_op`."""
    owner, _, last = name.rpartition(".")
    pages = [*_nodes(name, width)]
    if owner in _TENSORS and (text := tensor_attributes().get(last)) is not None:
        pages.append(_page(f"Tensor.{last}", text, width))
    for title, (kind, words) in _OWNERS.items():
        if owner in ("", title, *words) and last in members_of(kind):
            pages.append(_member(title, kind, last, width))
    return pages if pages or is_op else list(_elsewhere(owner, last, width))


def member_names() -> list[str]:
    """Every word that has a page of a member."""
    members = [name for kind, _ in _OWNERS.values() for name in members_of(kind)]
    return [*tensor_attributes(), *dict.fromkeys(members)]


def tensor_attributes() -> dict[str, str]:
    """The attributes of tensors, as the manual's table has them."""
    table = source("attributes-of-tensors") or ""
    rows = re.findall(r"^\| `x\.(\w+)` \| (.*) \|$", table, re.MULTILINE)
    return dict(rows)


def members_of(kind: Any) -> list[str]:
    """The public members of a class that programs reach."""
    return sorted(name for name in kind.language_attributes if not name.startswith("_"))


def _member(title: str, kind: type, name: str, width: int) -> str:
    value = inspect.getattr_static(kind, name, None)
    if callable(value):
        return _page(f"{title}.{name}{_signature(value, method=True)}", _summary(value), width)
    said = _summary(value) if isinstance(value, property) else _attribute_doc(kind, name)
    return _page(f"{title}.{name}", said, width)


def _attribute_doc(kind: type, name: str) -> str:
    """What a class's docstring, or one of its bases', says of an attribute."""
    for each in kind.__mro__:
        match = re.search(
            rf"^ +{name}(?:, \w+)*: (.*(?:\n {{9,}}\S.*)*)", each.__doc__ or "", re.MULTILINE
        )
        if match:
            return " ".join(match[1].split())
    return "an attribute that subclasses set"


def _nodes(name: str, width: int) -> Iterator[str]:
    """The ops that make a node of this name."""
    if "Backward" not in name and name not in ("CopySlices", "CopyBackwards"):
        return
    bring_all()
    for op in registry.values():
        if op.node_name == name:
            yield _page(name, f"The node that `{op.name}` makes.", width) + node_rows(op, width)
            return


def _elsewhere(owner: str, name: str, width: int) -> Iterator[str]:
    """The names of torch's modules that hold no ops, and values that are no functions."""
    for place in MODULES:
        if not place.startswith("torch") or (owner and owner not in (place, place[6:])):
            continue
        table: Mapping[str, Any] = MODULES[place].names
        if name.startswith("_") or name not in table:
            continue
        value = table[name]
        if callable(value):
            yield _page(f"{place}.{name}{_signature(value)}", _summary(value), width)
            return
        if place in NAMESPACES:
            yield _page(f"{place}.{name}", f"a {type_name(value)}: {display(value)}", width)
            return


_BESIDE = ("torch.autograd", "torch.nn.utils", "torch.optim", "torch.optim.lr_scheduler")
"""Modules whose functions have arguments that people ask for, beside `NAMESPACES`."""

_MOST = 12


def namespace_page(name: str, width: int) -> str | None:
    """The names in a module of torch: `linalg`, `torch.func`, `F`; None for another word."""
    name = {"functorch": "func", "F": "nn.functional"}.get(name, name).removeprefix("torch.")
    place = next((p for p in MODULES if p == f"torch.{name}"), None)
    place = place or next(
        (
            place
            for place in MODULES
            if place.startswith("torch.")
            and place.endswith(f".{name}")
            and ".modules." not in place
        ),
        None,
    )
    if place is None:
        return None
    names = sorted(each for each in MODULES[place].names if not each.startswith("_"))
    return _page(place, ", ".join(names), width) if names else None


def argument_page(name: str, width: int) -> str | None:
    """The functions that have an argument of a name; None where there are none."""
    functions = {
        f"{'' if place == 'torch' else place.removeprefix('torch.') + '.'}{called}": None
        for place in (*(p for p in NAMESPACES if p in MODULES), *_BESIDE)
        for called, value in sorted(MODULES[place].names.items())
        if not called.startswith("_") and callable(value) and name in _arguments(value)
    }
    if not functions:
        return None
    shown = list(functions)[:_MOST]
    more = f", and {len(functions) - _MOST} more" if len(functions) > _MOST else ""
    text = f"an argument of {', '.join(shown)}{more}; `gradcli help {shown[0]}` has it"
    return _page(name, text, width)


def _arguments(value: Any) -> Collection[str]:
    """The names of a function's arguments."""
    value = getattr(value, "construct", None) or value
    try:
        return inspect.signature(value).parameters
    except (TypeError, ValueError):
        return ()


# --- layout ---------------------------------------------------------------------------------------


def _summary(value: Any) -> str:
    """The first paragraph of a docstring."""
    text = inspect.getdoc(getattr(value, "construct", None) or value) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _signature(value: Any, *, method: bool = False) -> str:
    has_init = isinstance(value, type) and "__init__" in vars(value)
    called = vars(value)["__init__"] if has_init else value
    try:
        parameters = list(inspect.signature(called).parameters.values())[method or has_init :]
    except (TypeError, ValueError):
        return "(…)"
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(plain))


def _page(head: str, text: str, width: int) -> str:
    lines = textwrap.wrap(head, width, subsequent_indent="    ", break_on_hyphens=False)
    lines += textwrap.wrap(
        f"    {text.strip()}", width, subsequent_indent="    ", break_on_hyphens=False
    )
    return "\n".join(lines) + "\n"
