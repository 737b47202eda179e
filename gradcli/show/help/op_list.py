"""The list of ops by family: `gradcli ops`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from gradcli.ops.lookup import NAMESPACES, PublicName, family_of, is_bound
from gradcli.show.help.op_page import op_names, summary_of
from gradcli.show.style import PLAIN, Style

_FAMILIES = {
    "torch.nn.functional": "functions of networks",
    "Tensor": "methods only",
    "torch.linalg": "linear algebra",
    "torch.special": "special functions",
    "torch.fft": "Fourier transforms",
    "torch.nn": "layers",
    "torch.nn.init": "initialisation",
    "torch.nn.utils": "networks' parameters",
    "torch.optim": "optimizers",
    "torch.optim.lr_scheduler": "learning rates",
    "torch.autograd": "autograd",
}

SCHEMA = "gradcli.ops/1"


def op_list(pattern: str | None = None, style: Style = PLAIN) -> str:
    """The ops that match a pattern, by family, in columns: name, node, summary.

    Args:
        pattern: a glob (`*_loss`), or a part of a name or a node's name; all ops when None.
        style: on a terminal families have headings and summaries are cut to its width; elsewhere
            each line is an op, whole, its fields separated by tabs.
    """
    families = matching(pattern)
    if style.width is None:
        every = [op for ops in families.values() for op in ops]
        return "".join(f"{op.full_name}\t{_node(op)}\t{summary_of(op)}\n" for op in every)
    lines: list[str] = []
    for family, ops in families.items():
        names = max(len(op.full_name) for op in ops) + 2
        nodes = min(max(len(_node(op)) for op in ops), 24) + 2
        lines += ["", style.paint(family, "strong")]
        for op in ops:
            head = f"  {op.full_name.ljust(names)}{_node(op).ljust(nodes - 1)} "
            lines.append(style.shortened(head + summary_of(op), 0).rstrip())
    return "\n".join(lines[1:]) + "\n" if lines else ""


def op_list_document(pattern: str | None = None) -> dict[str, Any]:
    """The same as data, for JSON."""
    return {
        "schema": SCHEMA,
        "ops": [
            {
                "name": op.full_name,
                "family": family,
                "nodes": [entry.node_name for entry in op.entries if entry.node_name],
                "summary": summary_of(op),
            }
            for family, ops in matching(pattern).items()
            for op in ops
        ],
    }


def matching(pattern: str | None) -> dict[str, list[PublicName]]:
    """The ops that match a pattern by family, each function once."""
    families: dict[str, list[PublicName]] = {}
    functions: set[str] = set()
    for public in op_names():
        if public.namespace == "Tensor" and public.name.removesuffix("_") in functions:
            continue
        if public.namespace in ("torch", "torch.nn.functional"):
            functions.add(public.name)
        if pattern is None or _matches(pattern, public):
            families.setdefault(_family(public), []).append(public)
    # Those of torch come first, by name.
    order = list(NAMESPACES)
    return dict(sorted(families.items(), key=lambda i: (order.index(i[1][0].namespace), i[0])))


def _matches(pattern: str, public: PublicName) -> bool:
    names = (public.name, public.full_name, *(entry.node_name for entry in public.entries))
    if any(sign in pattern for sign in "*?["):
        return any(fnmatchcase(name, pattern) for name in names)
    return any(pattern.lower() in name.lower() for name in names)


def _family(public: PublicName) -> str:
    """Where the catalogue has an op of torch, as "linalg: solve", else what the place holds."""
    if public.namespace != "torch":
        return _FAMILIES[public.namespace]
    named = [op for op in public.entries if op.name == public.name.removesuffix("_")]
    if named or (public.entries and is_bound(public.entries[0], public.function)):
        module = (named or public.entries)[0].forward.__module__
    else:
        module = getattr(getattr(public.function, "construct", public.function), "__module__", "")
    room, _, file = module.removeprefix("gradcli.").rpartition(".")
    if room.startswith("ops."):
        room = family_of(module)
    room = room.removeprefix("library.torch").removeprefix(".")
    return f"{room}: {file}".removeprefix(": ").replace("_", " ")


def _node(public: PublicName) -> str:
    nodes = list(dict.fromkeys(op.node_name for op in public.entries if op.node_name))
    nodes = [node for node in nodes if node != "NotImplemented"]
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]}, …" if nodes else "-"
