"""What a program leaves, as text: every name, to the last bit, with what shares memory."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from gradcli.arrays.random.generator import Generator
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor, TensorMeta, refresh
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Module as Library
from gradcli.language.objects.classes.user_classes import Instance, UserClass
from gradcli.library.builtins import builtin_vars
from gradcli.library.torch.nn.module import Module
from gradcli.library.torch.optim.optimizer import Optimizer
from gradcli.library.torch.optim.schedules import LRScheduler
from gradcli.ops.creation.random import generator_of
from gradcli.session import Session

_NODES = 12
"""Nodes of a graph that are told."""

_CONSTANTS = (types.FunctionType, types.BuiltinFunctionType, type, Library, Function)
"""What a program defines, and does not compute."""


def left_by(session: Session) -> list[str]:
    """A line for each name of a program, and for what the session keeps beside them."""
    told = _Told()
    values = session.values
    told_of = [name for name in sorted(values) if not isinstance(values[name], _CONSTANTS)]
    found = [f"{name} {told.value(values[name])}" for name in told_of]
    state = session.state
    found.append(f"generator {generator_of(None).state_bytes()!r}")
    found.append(f"state {state.grad_enabled} {state.default_dtype} {state.inference}")
    found.append(f"steps {state.steps.left}")
    library = state.library.get("random")
    if library is not None:
        found.append(f"random {hash(library.getstate())}")
    return found


class _Told:
    """Values as text; what was told already is told by its number.

    The name that a tensor was first assigned to is left out: nothing but the text of an error shows
    it, and errors are compared.
    """

    def __init__(self) -> None:
        self.seen: dict[Any, int] = {}
        self.kept: list[Any] = []

    def number(self, key: Any) -> int:
        """The number of a thing, given when it is first met."""
        return self.seen.setdefault(key, len(self.seen))

    def value(self, value: Any) -> str:
        """A value as text."""
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, range)):
            return f"{type(value).__name__}:{value!r}"
        if isinstance(value, np.generic):
            return f"{value.dtype}:{value.tobytes().hex()}"
        if isinstance(value, (tuple, frozenset)):  # one or two of them: nobody can write to either
            self.kept.append(value)
            return self._new(value)
        key = id(value)
        if key in self.seen:
            return f"#{self.seen[key]}"
        self.kept.append(value)
        return f"#{self.number(key)}={self._new(value)}"

    def _new(self, value: Any) -> str:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, dict):
            pairs = [f"{self.value(key)}: {self.value(each)}" for key, each in value.items()]
            return f"{type(value).__name__}{{{', '.join(pairs)}}}"
        if isinstance(value, (list, tuple)):
            return f"{type(value).__name__}[{', '.join(map(self.value, value))}]"
        if isinstance(value, (set, frozenset)):
            return f"{type(value).__name__}{{{', '.join(sorted(map(self.value, value)))}}}"
        if isinstance(value, Node):
            return self._graph(value)
        return self._object(value)

    def _object(self, value: Any) -> str:
        name = type(value).__name__
        if isinstance(value, Optimizer):
            return f"{name}({self.value(value.param_groups)}, {self.value(dict(value.state))})"
        if isinstance(value, Generator):
            return f"{name}({value.state_bytes()!r})"
        if isinstance(value, LRScheduler):
            return f"{name}({value.last_epoch}, {self.value(value._last_lr)})"
        if isinstance(value, Module):
            tables = [value._parameters, value._buffers, value._modules, value._values]
            if not hasattr(type(value), "language_class"):
                tables.append(builtin_vars(value))
            return f"{name}({value.training}, {', '.join(map(self.value, tables))})"
        if isinstance(value, UserClass):
            held = {key: each for key, each in builtin_vars(value).items() if not callable(each)}
            return f"{name}({self.value(held)})"
        if isinstance(value, Instance):
            return f"{name}({self.value(builtin_vars(value))})"
        return name

    def _tensor(self, value: Tensor) -> str:
        if value.storage is not None:
            refresh(value)
        parts = [self._array(np.asarray(value.array)), f"requires_grad={value.requires_grad}"]
        parts.append(f"version={value.version}")
        if value.grad_fn is not None:
            parts.append(f"graph={self._graph(value.grad_fn)}")
        meta = value.meta or TensorMeta()
        parts.append(f"grad={self.value(meta.grad)}")
        if meta.base is not None:
            parts.append(f"base={self.value(meta.base)}")
        return f"Tensor({', '.join(parts)})"

    def _array(self, array: Any) -> str:
        text = f"{array.dtype}{list(array.shape)}"
        if array.ndim and array.size:
            where = self.number(("memory", array.__array_interface__["data"][0]))
            text += f"@{where}/{array.strides}"
        return f"{text} {array.tolist() if array.size < 20 else ''}{array.tobytes().hex()[:400]}"

    def _graph(self, node: Node) -> str:
        names: list[str] = []
        left = [node]
        while left and len(names) < _NODES:
            each = left.pop(0)
            names.append(each.name())
            left += [following for following, _ in each.next_functions if following is not None]
        return " ".join(names)
