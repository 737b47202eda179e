"""Modules in a traced round: layers of ours that do nothing but compute, and the program's own
classes whose `forward` does.
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.functions.calls import Function
from gradcli.language.objects.instances import UserClass, is_dunder
from gradcli.nn.module import Module
from gradcli.trace.graph_break import GraphBreak

# fmt: off
_LAYERS = frozenset(
    {
        "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "BCELoss", "BCEWithLogitsLoss", "Bilinear",
        "CELU", "Conv1d", "Conv2d", "ConvTranspose2d", "CosineSimilarity", "CrossEntropyLoss",
        "ELU", "Flatten", "GELU", "GroupNorm", "Hardsigmoid", "Hardswish", "Hardtanh", "HuberLoss",
        "Identity", "KLDivLoss", "L1Loss", "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid",
        "LogSoftmax", "MSELoss", "MaxPool1d", "MaxPool2d", "Mish", "NLLLoss", "PReLU",
        "PoissonNLLLoss", "ReLU", "ReLU6", "SELU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss",
        "Softmax", "Softmin", "Softplus", "Softsign", "Tanh", "Tanhshrink", "Unflatten",
    }
)
# fmt: on
"""Layers of ours whose result depends on their input, parameters and settings alone."""


def forward_functions(module: Module) -> list[tuple[Function, Module]]:
    """The `forward` of each module of the program's own classes, from a module on.

    Raises:
        GraphBreak: for a module with hooks, and for one that does more than compute.
    """
    found = []
    for _, each in module.each_module():
        assert isinstance(each, Module)
        if each._hooks is not None or "forward" in each._values:
            raise GraphBreak("B06", "a module has hooks, or a forward of its own")
        if "language_class" in vars(type(each)):
            found.append((_own_forward(each), each))
        elif type(each).__name__ not in _LAYERS or not _is_ours(type(each)):
            raise GraphBreak("B06", "a layer does more than compute")
    return found


def _own_forward(module: Module) -> Function:
    """The `forward` of a module of the program's own class."""
    for host in type(module).__mro__:
        cls = vars(host).get("language_class")
        if cls is None:
            if host is not Module:
                raise GraphBreak("B06", "a layer was changed by the program")
            break
        if any(is_dunder(name) and name != "__init__" for name in cls.names):
            raise GraphBreak("B06", "a module's class defines special methods")
    return method_of(module, "forward")


def method_of(module: Module, name: str) -> Function:
    """A method of the program's; raises GraphBreak for anything else."""
    cls = getattr(type(module), "language_class", None)
    found = cls.find(name) if isinstance(cls, UserClass) and name not in module._values else None
    if type(found) is not Function:
        raise GraphBreak("B06", "what is called is no method that the program defines")
    return found


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("gradcli.nn.")


def tensors_of(module: Module) -> list[Tensor]:
    """The parameters and buffers of a module and all below it."""
    tables = ("_parameters", "_buffers")
    return [tensor for table in tables for _, tensor in module.each_tensor(table)]


def members_of(module: Module) -> list[Any]:
    """Everything that a module and those below it hold, which a traced round takes for constant."""
    found: list[Any] = []
    for _, each in module.each_module():
        found += [each, each.training, getattr(each, "_hooks", None)]
        for table in (each._values, each._parameters, each._buffers, each._modules):
            found += table.values()
        for host in type(each).__mro__:
            if "language_class" in vars(host):
                found += vars(host)["language_class"].names.values()
    return found
