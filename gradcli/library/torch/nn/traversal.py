"""Walking through a module: its parameters, buffers and submodules, with and without names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, attribute_error, value_error
from gradcli.library.torch.nn.attributes import Attributes, kind_of
from gradcli.state import active, charge_tensors


class Walk:
    """What `parameters()` and its like return: an iterator, which goes through once."""

    __slots__ = ("_name", "_number", "_source")

    language_name: ClassVar[str] = "generator"

    def __init__(self, name: str, source: Iterator[Any]) -> None:
        self._name = name
        self._source = source
        self._number = 0

    def __iter__(self) -> Iterator[Any]:
        return self._source

    def __next__(self) -> Any:
        return next(self._source)

    def __repr__(self) -> str:
        if not self._number:
            active.state.object_ids += 1
            self._number = active.state.object_ids
        return f"<generator object Module.{self._name} at {self._number:#x}>"


def _table(name: str) -> Callable[[Attributes], dict[str, Any]]:
    return lambda module: getattr(module, name)


class Members(Attributes):
    """A module's members, in the order in which they were registered, depth first."""

    __slots__ = ()

    # --- walks --------------------------------------------------------------------------------

    def each_module(
        self, prefix: str = "", remove_duplicate: bool = True, seen: set[int] | None = None
    ) -> Iterator[tuple[str, Members]]:
        """Dotted names and modules, from the module itself on."""
        if remove_duplicate:
            seen = set() if seen is None else seen
            if id(self) in seen:
                return
            seen.add(id(self))
        else:
            charge_tensors(4)  # one module may stand in many places
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.each_module(inner, remove_duplicate, seen)

    def each_tensor(
        self, table: str, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Dotted names and tensors of one of the tables, `_parameters` or `_buffers`."""
        seen: set[int] = set()
        modules = self.each_module(prefix, remove_duplicate) if recurse else [(prefix, self)]
        read = _table(table)
        for path, module in modules:
            for name, tensor in read(module).items():
                if tensor is None or (remove_duplicate and id(tensor) in seen):
                    continue
                seen.add(id(tensor))
                yield (f"{path}.{name}" if path else name), tensor

    # --- what programs call -------------------------------------------------------------------

    def parameters(self, recurse: bool = True) -> Walk:
        """The parameters, each once; those of the submodules too with `recurse`."""
        tensors = self.each_tensor("_parameters", "", recurse)
        return Walk("parameters", (tensor for _, tensor in tensors))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Walk:
        """Pairs of dotted name and parameter."""
        tensors = self.each_tensor("_parameters", prefix, recurse, remove_duplicate)
        return Walk("named_parameters", tensors)

    def buffers(self, recurse: bool = True) -> Walk:
        """The buffers, each once."""
        tensors = self.each_tensor("_buffers", "", recurse)
        return Walk("buffers", (tensor for _, tensor in tensors))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Walk:
        """Pairs of dotted name and buffer."""
        tensors = self.each_tensor("_buffers", prefix, recurse, remove_duplicate)
        return Walk("named_buffers", tensors)

    def children(self) -> Walk:
        """The modules directly below, each once."""
        return Walk("children", (module for _, module in self._each_child()))

    def named_children(self) -> Walk:
        """Pairs of name and module directly below."""
        return Walk("named_children", self._each_child())

    def modules(self) -> Walk:
        """The module itself and all below it, each once."""
        return Walk("modules", (module for _, module in self.each_module()))

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Walk:
        """Pairs of dotted name and module, from the module itself on."""
        if memo is not None:
            raise GradcliError("E205", "named_modules(): `memo` is outside the language")
        return Walk("named_modules", self.each_module(prefix, remove_duplicate))

    def _each_child(self) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    # --- by dotted name -----------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module of a dotted name, "" for the module itself; E102 where there is none."""
        module: Any = self
        _check_path(target)
        for name in target.split(".") if target else []:
            above, module = module, module._modules.get(name)
            if module is None:
                raise GradcliError("E102", f"{above._get_name()} has no attribute `{name}`")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a module under a dotted name; E102 where the modules above are not there, or, if
        `strict`, that one.
        """
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if not target:
            raise value_error("Cannot set the submodule without a target name!")
        if strict:
            self.get_submodule(target)
        parent.register(name, module)

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of a dotted name; E102 where there is none."""
        return self._tensor_at("_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name; E102 where there is none."""
        return self._tensor_at("_buffers", target)

    def _tensor_at(self, table: str, target: str) -> Tensor:
        _check_path(target)
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        tensor = _table(table)(module).get(name)
        if tensor is None:
            raise GradcliError("E102", f"{module._get_name()} has no attribute `{name}`")
        return tensor


def _check_path(target: Any) -> None:
    if not isinstance(target, str):
        raise attribute_error(f"a dotted name is a string, not {kind_of(target)}")
