"""Walking through a module: its parameters, buffers and submodules, with and without names;
and its path, `net.layers.2.weight`, from the names of the program down.

A path is worked out when a report names a module, from the tree of modules as it is then, so that
naming costs a running program nothing. An error names by it the layer that it left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor, is_usable_leaf, meta_of
from gradcli.errors import GradcliError, attribute_error, value_error
from gradcli.language.objects.classes.instance_attributes import attributes_of
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.library.torch.nn.attributes import Attributes, is_initialised, kind_of
from gradcli.state import State, active, charge_tensors


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

    @property
    def names_its_own(self) -> bool:
        """Whether the class replaces `named_parameters`, which `parameters` then reads."""
        return type(self).named_parameters is not Members.named_parameters

    # --- what programs call -------------------------------------------------------------------

    def parameters(self, recurse: bool = True) -> Walk:
        """The parameters, each once; those of the submodules too with `recurse`."""
        if self.names_its_own:
            return Walk("parameters", (each for _, each in self.named_parameters(recurse=recurse)))
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


# --- paths ----------------------------------------------------------------------------------------


_DEEPEST = 3
"""So many lists, dicts and objects of the program's are looked into, one inside the other."""

_MOST = 1000
"""So many elements of each."""


def module_paths() -> dict[int, tuple[str, Any]]:
    """Every module that is alive, by its `id`, with its path.

    A path begins with the name of the program that leads to the module, or else with a function's
    variable, where such are kept, or else with the module's class.
    """
    state = active.state
    paths: dict[int, tuple[str, Any]] = {}
    own = state.values
    # A model's own name comes before a list that holds its layers too.
    for name, value in sorted(
        state.names().items(),
        key=lambda each: (
            each[0] not in own,
            each[0] == "self",
            not isinstance(each[1], Attributes),
        ),
    ):
        for path, module in _modules_in(name, value, _DEEPEST):
            _enter(paths, path, module)
    living = [] if state.modules is None else list(state.modules.values())
    rest = [module for module in living if id(module) not in paths]
    inner = {id(child) for module in rest for child in _children(module)}
    taken = {path for path, _ in paths.values()}
    for module in rest:
        if id(module) not in inner and id(module) not in paths:
            path = name = type(module).__name__
            number = 1
            while path in taken:
                number += 1
                path = f"{name}#{number}"
            taken.add(path)
            _enter(paths, path, module)
    return paths


def _enter(paths: dict[int, tuple[str, Any]], path: str, module: Any) -> None:
    """Enter a module and all below it, each under the first path that leads to it."""
    waiting = [(path, module)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in paths:
            continue
        paths[id(module)] = path, module
        if not is_initialised(module):
            continue
        below = [(f"{path}.{name}", each) for name, each in module._modules.items()]
        for name, value in module._values.items():
            below += _modules_in(f"{path}.{name}", value, 1)
        waiting += [each for each in reversed(below) if each[1] is not None]


def _children(module: Any) -> list[Any]:
    if not is_initialised(module):
        return []
    held = [each for _, value in module._values.items() for _, each in _modules_in("", value, 1)]
    return [*(each for each in module._modules.values() if each is not None), *held]


def _modules_in(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The modules that a value is or holds, with their paths."""
    if isinstance(value, Attributes):
        yield path, value
        return
    if not depth:
        return
    for inner, part in _parts(path, value):
        yield from _modules_in(inner, part, depth - 1)


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a list, a dict or an object of the program's holds, as a program writes it."""
    if isinstance(value, (list, tuple)):
        names = getattr(value, "language_fields", None)  # of a named tuple
        for n, each in enumerate(value[:_MOST]):
            yield f"{path}[{n}]" if names is None else f"{path}.{names[n]}", each
    elif isinstance(value, dict):
        yield from ((f"{path}[{key!r}]", each) for key, each in list(value.items())[:_MOST])
    elif isinstance(value, Instance):
        yield from ((f"{path}.{name}", each) for name, each in list(attributes_of(value).items()))


def named_parameters() -> Iterator[tuple[str, Tensor]]:
    """Every parameter of a living module, once, with its path."""
    seen = set()
    for path, module in list(module_paths().values()):
        if is_initialised(module):
            for name, parameter in module._parameters.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{path}.{name}", parameter


def name_parameters() -> None:
    """Name the parameters that have no name yet by their path; a variable's name stays."""
    values: Mapping[str, Any] = active.state.values
    for path, parameter in named_parameters():
        meta = parameter.meta
        if meta is None or (meta.name and "." in meta.name):
            continue
        if not meta.name or values.get(meta.name) is not parameter:
            meta.name = path


def held_leaves(state: State, without: Collection[str] = ()) -> Iterator[tuple[str, Tensor]]:
    """The leaves that require grad and that names lead to, once each, under the shortest path: `w`,
    `params['w']`, `net.layers[0]`.
    """
    for path, value in held_values(state, without):
        if isinstance(value, Tensor) and is_usable_leaf(value) and value.requires_grad:
            yield path, value


def held_values(state: State, without: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """The values that names lead to, once each, under the shortest path. What functions' variables
    hold comes behind all that the program's names lead to.

    Args:
        without: names of the program that lead to none.
    """
    seen: set[int] = set()
    own = state.values
    others = {name: each for name, each in state.names().items() if name not in own}
    for values in (own, others):
        level = [(name, each) for name, each in values.items() if name not in without]
        for _ in range(_DEEPEST + 2):
            below: list[tuple[str, Any]] = []
            for path, value in level:
                if id(value) not in seen:
                    seen.add(id(value))
                    yield path, value
                    if not _is_of_numbers(value) and len(below) < _MOST_HELD:
                        below += _held_in(path, value)
            level = below


_MOST_HELD = 20 * _MOST
"""So many values at one depth are looked at."""


def _is_of_numbers(value: Any) -> bool:
    """Whether a value is a long list that begins with a number or a text: none of tensors."""
    return isinstance(value, (list, tuple)) and len(value) > _SHORT and type(value[0]) in _PLAIN


_SHORT, _PLAIN = 20, (bool, int, float, str)


def _held_in(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a list, a dict, an object of the program's or a module holds."""
    if not isinstance(value, Attributes):
        yield from _parts(path, value)
    elif is_initialised(value):
        for table in (value._parameters, value._modules, value._buffers, value._values):
            yield from ((f"{path}.{name}", each) for name, each in list(table.items()))


def name_leaves(leaves: Collection[Tensor]) -> None:
    """Give leaves that only lists, dicts and objects of the program's hold their paths for names;
    those too whose name is a variable that held several of them, as in a loop, or a function's.
    """
    values: Mapping[str, Any] = active.state.values
    names = [(leaf, leaf.name or "") for leaf in leaves]
    counts = Counter(name for _, name in names)
    shared = {name for name, count in counts.items() if count > 1}
    unnamed = {
        id(leaf)
        for leaf, name in names
        if "." not in name and (values.get(name) is not leaf or name in shared)
    }
    for path, leaf in held_leaves(active.state, shared) if unnamed else ():
        if id(leaf) in unnamed and not path.isidentifier():
            meta_of(leaf).name = path


_SIZES = (
    ("in_features", -1),
    ("input_size", -1),
    ("embed_dim", -1),
    ("in_channels", 1),
    ("num_features", 1),
    ("num_channels", 1),
)
"""What a layer asks of a dimension of its input."""


def note_layer(error: GradcliError) -> None:
    """Let an error say in which built-in layer it arose."""
    module, args = error.modules[0]
    outer = error.modules[1][0] if len(error.modules) > 1 else None
    error.modules = ()
    if not type(module).__module__.startswith("gradcli.library.torch.nn"):
        return
    paths = module_paths()
    path = paths.get(id(module), (type(module).__name__, None))[0]
    error.notes += (f"in {path}, {_described(module)}",)
    input = args[0] if args and type(args[0]) is Tensor else None
    if input is None or error.code != "E301":
        return
    misfit = _misfit(module, tuple(input.array.shape))
    if misfit:
        error.notes += (f"{misfit}{_giver(outer, module, paths)}",)


def _described(module: Any) -> str:
    """`Linear(in_features=4, out_features=1), whose weight is (1, 4)`."""
    text = repr(module)
    text = type(module).__name__ if "\n" in text else text
    weight = module._parameters.get("weight")
    return text if weight is None else f"{text}, whose weight is {tuple(weight.array.shape)}"


def _misfit(module: Any, shape: tuple[int, ...]) -> str:
    for name, dim in _SIZES:
        wanted = module._values.get(name)
        if type(wanted) is not int or not -len(shape) <= dim < len(shape):
            continue
        if shape[dim] != wanted:
            where = "the last dimension" if dim == -1 else f"dimension {dim}"
            return f"its input is {shape}: {where} is {shape[dim]}, and {name} is {wanted}"
    normalized = module._values.get("normalized_shape")
    if isinstance(normalized, tuple) and shape[-len(normalized) :] != normalized:
        return f"its input is {shape}, which does not end in normalized_shape, {normalized}"
    return ""


def _giver(outer: Any, module: Any, paths: dict[int, tuple[str, Any]]) -> str:
    """The layer before it in a Sequential, whose output is its input."""
    if type(outer).__name__ != "Sequential":
        return ""
    layers = list(outer._modules.values())
    number = next((n for n, each in enumerate(layers) if each is module), 0)
    if not number:
        return ""
    before = layers[number - 1]
    path = paths.get(id(before), (type(before).__name__, None))[0]
    return f"; {path}, {type(before).__name__}, gives that"
