"""The list of ops by family, `gradcli ops`, and that of what PyTorch has and gradcli has not, each
name with its reason, `gradcli help left-out`.

The latter is made by asking a session for each public name, so an op that is added leaves it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.hints.unsupported import RULES, pytorch_names, reason_unsupported
from gradcli.ops.lookup import NAMESPACES, PublicName, family_of, is_bound
from gradcli.session import Session
from gradcli.show.help.manual import rendered
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


_START = """import torch
Tensor = torch.ones(2, requires_grad=True)
Module = torch.nn.Module()
Optimizer = torch.optim.SGD([Tensor], lr=0.1)
"""


def started() -> Session:
    """A session that knows an object of each class whose names are listed."""
    session = Session()
    for _ in session.run(_START, "start"):
        pass
    return session


def left_out(session: Session, home: str) -> Iterator[tuple[str, GradcliError]]:
    """The names of a module or class that a program cannot read, each with its error."""
    for name in sorted(pytorch_names()[home]):
        try:
            for _ in session.run(f"{home}.{name}\n", "name"):
                pass
        except GradcliError as error:
            if error.code not in ("E203", "E301"):  # this tensor has none, as in PyTorch
                yield name, error


def left_out_page(style: Style = PLAIN) -> str:
    """The names by reason."""
    session, names_by_reason = started(), dict.fromkeys((reason for reason, _ in RULES), "")
    known = count = 0
    for home in sorted(pytorch_names()):
        if reason_unsupported(*home.rpartition(".")[::2]) and not _is_there(session, home):
            continue  # its name stands for all in it
        known += len(pytorch_names()[home])
        for name, _ in left_out(session, home):
            reason = reason_unsupported(home, name) or ""
            names_by_reason[reason] = f"{names_by_reason.get(reason, '')} {home}.{name}"
            count += 1
    parts = [
        "# What of PyTorch is left out\n",
        f"gradcli has {known - count:,} of the {known:,} public names that PyTorch 2.13 has in the"
        " modules that are there. The others, by reason; a module's name stands for all in it. A"
        " program that uses one ends in `E205`, and `gradcli port FILE` finds it without running"
        " the program.\n",
    ]
    for reason, names in names_by_reason.items():
        if names:
            listed = textwrap.fill(names.strip(), (style.width or 80) - 2, break_on_hyphens=False)
            parts.append(f"{reason[0].upper()}{reason[1:]}:\n\n```text\n{listed}\n```\n")
    return rendered("\n".join(parts), style)


def _is_there(session: Session, home: str) -> bool:
    try:
        for _ in session.run(f"{home}\n", "name"):
            pass
    except GradcliError:
        return False
    return True
