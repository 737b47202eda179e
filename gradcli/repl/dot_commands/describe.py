"""Describes the value of a name: the answer to `name?`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli.arrays.printing import format_tensor
from gradcli.autograd.tensor import Tensor
from gradcli.language.objects.attributes import Module
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import type_name
from gradcli.running.lookup import UNKNOWN, signature_of, value_of
from gradcli.show.diagnostics.human import location
from gradcli.show.help.ops import op_help
from gradcli.show.style import block, clipped, one_line

if TYPE_CHECKING:
    from gradcli.library.torch.nn import module as nn
    from gradcli.running.run import Run


_LONGEST_SOURCE = 72
_PLAIN = (int, float, complex, str, list, tuple, dict, set, range, slice, type(None))


def answer(run: Run, name: str) -> str | None:
    """What a dotted name stands for, None where it has no value.

    Ops are explained; of a value its type, shape, dtype and history are shown, and where it was
    assigned.
    """
    with run.session.running():
        op = _op_name(run, name)
        text = None if op is None else op_help(op, run.terminal.style.width or 80)
        if text is not None:
            return text
        chain = name.split(".")
        value = value_of(run.session, chain)
        if value is UNKNOWN:
            return None
        return _described(run, name, value, assigned=len(chain) == 1)


def _op_name(run: Run, name: str) -> str | None:
    """The name of the op that a dotted name stands for, if one."""
    *owner, last = name.split(".")
    values = run.session.values
    if not owner:
        return None if last in values else last
    if owner[0] not in values:
        return name
    value = value_of(run.session, owner)
    if type(value) is Tensor:
        return f"Tensor.{last}"
    return f"{value.name}.{last}" if type(value) is Module else None


# --- values -------------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """The type of a value in a few words; dtype and shape of a tensor."""
    if hasattr(type(value), "named_parameters"):
        return kind_of_module(value)
    if type(value) is not Tensor:
        return type_name(value)
    text = f"{value.dtype.name}{list(value.array.shape)}"
    if value.grad_fn is not None:
        return f"{text} {value.grad_fn.node_name}"
    return f"{text} requires_grad" if value.requires_grad else text


def preview(value: Any) -> str:
    """A value on one line."""
    if type(value) is Tensor:
        return one_line(format_tensor(value.array))
    if hasattr(type(value), "named_parameters"):
        return ""
    if callable(value):
        return signature_of(value)
    # The text of an object of ours would give it a printed number.
    return one_line(display(value)) if isinstance(value, _PLAIN) else ""


def _described(run: Run, name: str, value: Any, assigned: bool) -> str:
    rows = []
    below: list[str] = []
    if type(value) is Tensor:
        rows += _tensor_rows(value)
    elif hasattr(type(value), "named_parameters"):
        rows += [("type", kind_of_module(value)), ("training", str(value.training))]
        below = ["", *(f"  {row}" for row in layers(name, value))]
    else:
        rows.append(("type", type_name(value)))
        if callable(value):
            rows.append(("signature", f"{name.rpartition('.')[2]}{signature_of(value) or '(...)'}"))
        if isinstance(value, (str, list, tuple, dict, set)):
            rows.append(("length", f"{len(value):,}"))
    rows += _assigned(run, name) if assigned else []
    if not callable(value) and not below:
        rows.append(("value", display(value)))
    width = max(len(head) for head, _ in rows) + 2
    lines = [block(f"  {head.ljust(width)}", text) for head, text in rows]
    return "\n".join([name, *lines, *below]) + "\n"


def _assigned(run: Run, name: str) -> list[tuple[str, str]]:
    """Where a name got its value."""
    span = run.transcript.assignment(name)
    if span is None:
        return []
    shown = clipped(one_line(span.text), _LONGEST_SOURCE)
    return [("assigned", f"{location(span)}  {shown}")]


def _tensor_rows(tensor: Tensor) -> list[tuple[str, str]]:
    rows = [
        ("type", "tensor"),
        ("shape", str(list(tensor.array.shape))),
        ("dtype", str(tensor.dtype)),
        ("requires_grad", str(tensor.requires_grad)),
    ]
    if tensor.grad_fn is not None:
        node = tensor.grad_fn
        source = "" if node.place is None else f"  {one_line(node.place.text)[:_LONGEST_SOURCE]}"
        rows.append(("grad_fn", f"{node.node_name}{source}"))
    elif tensor.requires_grad:
        gradient = tensor.grad
        text = "None" if gradient is None else preview(gradient)
        rows.append(("grad", f"{text}  (a leaf)"))
    return rows


def kind_of_module(module: nn.Module) -> str:
    """`Net, 17 parameters`: a module in a few words."""
    counts = [parameter.array.size for parameter in module.parameters()]
    frozen = sum(each.array.size for each in module.parameters() if not each.requires_grad)
    text = f"{type(module).__name__}, {sum(counts):,} parameters"
    return f"{text}, {frozen:,} of them frozen" if frozen else text


def layers(name: str, module: nn.Module) -> list[str]:
    """A line for each layer: its path, its class, the shapes of its parameters, whether they
    train.
    """
    rows = [("layer", "class", "parameters", "count", "trains")]
    for path, each in module.named_modules(None, name):
        own = list(each.named_parameters("", False))
        if not own and each._modules:
            continue
        shapes = ", ".join(f"{key} {list(parameter.array.shape)}" for key, parameter in own)
        trains = {parameter.requires_grad for _, parameter in own}
        count = sum(parameter.array.size for _, parameter in own)
        shown = (
            "" if not own else "partly" if len(trains) > 1 else "yes" if True in trains else "no"
        )
        rows.append((path, type(each).__name__, shapes, f"{count:,}" if own else "", shown))
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table as lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
