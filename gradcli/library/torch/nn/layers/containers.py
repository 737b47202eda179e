"""Modules that hold modules or parameters: `Sequential ModuleList ModuleDict ParameterList
ParameterDict`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.library.torch.nn.attributes import is_parameter, kind_of, names
from gradcli.library.torch.nn.layer import register
from gradcli.library.torch.nn.module import Module, bracketed, indented
from gradcli.library.torch.nn.state_dict import OrderedDict
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.creation.data import parameter
from gradcli.state import charge_tensors


def _position(index: Any, count: int) -> int:
    """An index from 0; raises E302 for one outside, E202 for what is no integer."""
    if isinstance(index, bool) or not hasattr(type(index), "__index__"):
        raise type_error(f"an index is an integer, not {kind_of(index)}")
    at = int(index)
    if not -count <= at < count:
        text = f"index {at} is out of range"
        raise GradcliError("E302", f"{text}: there are {count}", text=text)
    return at % count


def _grouped(texts: list[str]) -> list[str]:
    """Lines of numbered members, equal neighbours in one."""
    lines = []
    start = 0
    while start < len(texts):
        end = start
        while end + 1 < len(texts) and texts[end + 1] == texts[start]:
            end += 1
        several = end > start
        label = f"({start}-{end}): {end - start + 1} x " if several else f"({start}): "
        lines.append(label + indented(texts[start]))
        start = end + 1
    return lines


class _Numbered(Module):
    """Modules in a row, named by their numbers."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return list(self._modules.values())[_position(index, len(self))]

    def __setitem__(self, index: Any, module: Any) -> None:
        name = list(self._modules)[_position(index, len(self))]
        if not isinstance(module, Module):
            raise type_error(f"{kind_of(module)} is no module")
        self._modules[name] = module

    def __delitem__(self, index: Any) -> None:
        inside = list(self._modules.values())
        del inside[index if isinstance(index, slice) else _position(index, len(inside))]
        self._renumber(inside)

    def __iadd__(self, modules: Any) -> Any:
        return self.extend(modules)

    def _part(self, items: list[tuple[str, Any]]) -> Any:
        part = type(self)()
        for name, module in items:
            part.add_module(name, module)
        return part

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def append(self, module: Any) -> Any:
        """Add a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Any) -> Any:
        """Add modules at the end; returns the container."""
        added = list(modules)
        charge_tensors(len(added))
        for module in added:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before another one; returns the container."""
        if not isinstance(module, Module):
            text = "module should be of type: <class 'torch.nn.modules.module.Module'>"
            raise GradcliError("E202", text, raises="AssertionError")
        inside = list(self._modules.values())
        if not -len(inside) <= index <= len(inside):
            raise GradcliError("E302", f"Index out of range: {index}")
        inside.insert(index, module)
        self._renumber(inside)
        return self

    def pop(self, key: Any) -> Any:
        """Take a module out and return it."""
        taken = self[key]
        del self[key]
        return taken


_LISTED = frozenset({"append", "extend", "insert", "pop"})


class Sequential(_Numbered):
    """Modules called one after the other; given one by one, or in a dict by name.

    Example: nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    """

    language_attributes = Module.language_attributes | _LISTED

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            charge_tensors(len(args))
            for number, module in enumerate(args):
                self.add_module(str(number), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise value_error(f"a Sequential cannot be joined to {kind_of(other)}")
        return Sequential(*self, *other)

    def __mul__(self, count: Any) -> Sequential:
        if not isinstance(count, int) or isinstance(count, bool):
            raise type_error(f"a Sequential is repeated by an int, not {kind_of(count)}")
        if count <= 0:
            raise value_error("a Sequential is repeated once at least")
        return Sequential(*list(self) * count)

    __rmul__ = __mul__


class ModuleList(_Numbered):
    """A list of modules, whose parameters belong to the module that holds it.

    Example: nn.ModuleList([nn.Linear(3, 2)])
    """

    language_attributes = Module.language_attributes | _LISTED

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _part(self, items: list[tuple[str, Any]]) -> Any:
        return ModuleList([module for _, module in items])

    def __add__(self, other: Any) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        return bracketed(self._get_name(), _grouped([repr(module) for module in self]))


class _Named(Module):
    """A dictionary of modules or parameters."""

    language_attributes = Module.language_attributes | names("clear items keys pop update values")

    def _table(self) -> dict[str, Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._table())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._table()))

    def __contains__(self, key: Any) -> bool:
        return key in self._table()

    def __getitem__(self, key: str) -> Any:
        return self._table()[key]

    def __delitem__(self, key: str) -> None:
        del self._table()[key]

    def keys(self) -> Any:
        """The names."""
        return self._table().keys()

    def values(self) -> Any:
        """What is held."""
        return self._table().values()

    def items(self) -> Any:
        """Pairs of name and what is held."""
        return self._table().items()

    def pop(self, key: str) -> Any:
        """Take one out and return it; raises KeyError where there is none."""
        return self._table().pop(key)

    def clear(self) -> None:
        """Take all out."""
        self._table().clear()

    def update(self, more: Any) -> None:
        """Add or replace: a dict, or pairs of name and value."""
        for name, value in more.items() if isinstance(more, (dict, _Named)) else more:
            self[name] = value

    def __setitem__(self, key: str, value: Any) -> None:
        raise NotImplementedError


class ModuleDict(_Named):
    """Modules by name, whose parameters belong to the module that holds it.

    Example: nn.ModuleDict({'a': nn.Linear(3, 2)})
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def _table(self) -> dict[str, Any]:
        return self._modules

    def __setitem__(self, key: str, value: Any) -> None:
        self.add_module(key, value)


class ParameterDict(_Named):
    """Parameters by name; a tensor becomes one.

    Example: nn.ParameterDict({'a': tensor(1.)})
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def _table(self) -> dict[str, Any]:
        return self._parameters

    def __setitem__(self, key: str, value: Any) -> None:
        self.register_parameter(key, _as_parameter(value))

    def update(self, more: Any) -> None:
        """Add or replace; a plain dict's come in the order of their names, as PyTorch has it."""
        unordered = isinstance(more, dict) and not isinstance(more, OrderedDict)
        super().update(sorted(more.items()) if unordered else more)

    def __repr__(self) -> str:
        return _listing("ParameterDict", self._parameters, _old_type)


class ParameterList(Module):
    """A list of parameters; a tensor becomes one.

    Example: nn.ParameterList([tensor(1.)])
    """

    language_attributes = Module.language_attributes | {"append", "extend"}

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parameters.values()))

    def __getitem__(self, index: Any) -> Any:
        inside = list(self._parameters.values())
        if isinstance(index, slice):
            return ParameterList(inside[index])
        return inside[_position(index, len(inside))]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._parameters[str(_position(index, len(self)))] = _as_parameter(value)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end; returns the list."""
        self.register_parameter(str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Any) -> ParameterList:
        """Add parameters at the end; returns the list."""
        for value in list(values):
            self.append(value)
        return self

    def __repr__(self) -> str:
        return _listing("ParameterList", self._parameters, lambda value: str(value.dtype))


def _as_parameter(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise type_error(f"{kind_of(value)} cannot be a parameter")
    return value if is_parameter(value) else parameter(value)


_OLD_TYPES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16"}


def _old_type(tensor: Tensor) -> str:
    """A tensor's type by the name that it had before there were dtypes."""
    name = tensor.dtype.name
    return f"torch.{_OLD_TYPES.get(name, name.title())}Tensor"


def _listing(name: str, parameters: dict[str, Any], typed: Callable[[Tensor], str]) -> str:
    """The text of a container of parameters: types and sizes."""
    shown = [
        f"({key}): Parameter containing: [{typed(value)} of size"
        f" {'x'.join(map(str, value.array.shape))}]"
        for key, value in parameters.items()
    ]
    if len(shown) == 1:
        return f"{name}(  {shown[0]})"
    inner = "".join(f"\n    {line}" for line in shown)
    return f"{name}({inner}\n)" if shown else f"{name}()"


class DataParallel(Module):
    """Calls its module: without several GPUs there is nothing to divide.

    Example: nn.DataParallel(nn.Linear(2, 1))
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


DataParallel.language_name = "torch.nn.parallel.data_parallel.DataParallel"
modules["torch.nn"]["DataParallel"] = DataParallel

for _kind in (Sequential, ModuleList, ModuleDict, ParameterDict, ParameterList):
    register("container", _kind)
