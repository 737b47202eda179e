"""What a module holds, and the gradients of parameters: `net?`, `.grads`, `.vars`."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.library.torch.nn.module import Module


def kind_of_module(module: Module) -> str:
    """`Net, 17 parameters`: a module in a few words."""
    counts = [parameter.array.size for parameter in module.parameters()]
    frozen = sum(each.array.size for each in module.parameters() if not each.requires_grad)
    text = f"{type(module).__name__}, {sum(counts):,} parameters"
    return f"{text}, {frozen:,} of them frozen" if frozen else text


def layers(name: str, module: Module) -> list[str]:
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
