"""Binds the arguments of a run to its names: they supply a name that the program reads, or replace
the first value that it assigns, or a later one. One that holds from a later line on is evaluated
there, and takes the place of another of its name.

Before that a value is converted: to a floating leaf, to tensors of a file, or to the type of the
value that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.arrays.backend import moved, on_default_device
from gradcli.arrays.dtypes import DTYPES, can_cast, cast, default_dtype
from gradcli.arrays.storage import own
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import GradcliError, Source, Warned
from gradcli.language.hints.spelling import closest
from gradcli.library.files import tensors
from gradcli.library.namespace import table_of
from gradcli.ops.binding.functions import torch
from gradcli.record import Record
from gradcli.running.arguments.name_uses import ASSIGNED, BOUND, INSIDE, READ, name_uses
from gradcli.running.arguments.words import Argument, evaluate, in_file, moved_into_word, uneven_row

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement
    from gradcli.running.arguments.options import Options
    from gradcli.running.process.terminal import Terminal
    from gradcli.session import Session


# --- values, converted ----------------------------------------------------------------------------


def value_of(argument: Argument, session: Session, dtype: str | None) -> Any:
    """What an argument stands for: a Python value, a tensor, or the tensor in a file.

    Args:
        dtype: the dtype of floating arrays from files; None leaves it as it is.

    Raises:
        GradcliError: E501 where the text cannot be evaluated, E502, E504, E505 or E506 where a file
            cannot be read.
    """
    if argument.text.startswith("@") and argument.held is None:
        with session.running(argument.span):
            argument.held, argument.plain = in_file(argument.file)
    elif argument.held is None:
        return evaluate(argument, session)
    value = argument.held
    if argument.constant:
        from copy import deepcopy  # lazy: start-up

        # The program may change it, and what is held serves further runs.
        value = deepcopy(value)
    elif argument.plain:
        return _lists(value)
    if not argument.file:
        return value
    with session.running(argument.span):
        value = tensors(value, argument.plain)
        if dtype is not None and type(value) is Tensor and value.dtype.is_floating_point:
            value.array = cast(value.array, DTYPES[dtype])
    return value


def _lists(value: Any) -> Any:
    """A value whose arrays have become the nested lists that an expression would give."""
    if isinstance(value, dict):
        return {name: _lists(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_lists(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def as_input(argument: Argument, value: Any, differentiable: bool) -> Any:
    """What a free name is bound to: floating tensors, leaves if `differentiable`."""
    if argument.constant:
        return value
    if type(value) in (int, float, complex) or _holds_numbers(value):
        value = _tensor(argument, value, default_dtype() if _plain(value) else None)
    if type(value) is Tensor:
        return leaf(value, differentiable)
    if argument.held is not None and not argument.file:  # from Python, with arrays inside
        return mapped("", value, lambda _, tensor: leaf(tensor, differentiable))
    return value


def mapped(
    path: str,
    value: Any,
    of: Callable[[str, Tensor], Any],
    other: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """A value with `of(path, tensor)` for each tensor in its lists, tuples and dicts, the paths as
    a program writes them: `params['w'][0]`; and `other(value)` for all else in them.
    """
    if type(value) is Tensor:
        return of(path, value)
    if type(value) in (list, tuple):
        items = [mapped(f"{path}[{n}]", each, of, other) for n, each in enumerate(value)]
        return items if type(value) is list else tuple(items)
    if type(value) is dict:
        return {key: mapped(f"{path}[{key!r}]", each, of, other) for key, each in value.items()}
    return other(value)


def leaf(tensor: Tensor, requires_grad: bool) -> Tensor:
    """A new leaf of a tensor's values; only floating and complex ones can require grad."""
    able = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    return Tensor(on_default_device(own(tensor.array)), requires_grad and able)


def taking_kind(argument: Argument, value: Any, old: Any, differentiable: bool) -> Any:
    """What replaces a script's own value, in its kind; raises E501 where it cannot."""
    if argument.constant:
        return value
    if type(old) is Tensor:
        return _like_tensor(argument, value, old, differentiable and old.requires_grad)
    if type(value) is Tensor and value.array.size == 1 and type(old) in (bool, int, float):
        value = value.item()
    if type(old) is bool:
        if value not in (0, 1):
            raise argument.wrong(f"`{argument.name}` is True or False in the script")
        return bool(value)
    if type(old) is int and isinstance(value, (int, float)):
        if type(value) is float and not value.is_integer():
            raise argument.wrong(f"`{argument.name}` is an integer in the script")
        return int(value)
    if type(old) is float and isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            raise argument.wrong(f"`{argument.name}` is larger than any float") from None
    return value if isinstance(value, type(old)) else as_input(argument, value, differentiable)


def _like_tensor(argument: Argument, value: Any, old: Tensor, requires_grad: bool) -> Tensor:
    if type(value) is not Tensor:
        if type(value) not in (bool, int, float, complex) and not _holds_numbers(value):
            raise argument.wrong(f"`{argument.name}` is a tensor in the script")
        floating = old.dtype.is_floating_point or old.dtype.is_complex
        value = _tensor(argument, value, old.dtype if floating and _plain(value) else None)
    if not can_cast(value.dtype, old.dtype):
        raise argument.wrong(
            f"`{argument.name}` is {old.dtype} in the script, and the value is {value.dtype}"
        )
    new = leaf(Tensor(cast(value.array, old.dtype)), requires_grad)
    new.array = moved(new.array, old.device)
    if old.meta is not None and old.meta.is_parameter:
        meta_of(new).is_parameter = True
    return new


def _tensor(argument: Argument, value: Any, dtype: Any) -> Tensor:
    """A tensor of numbers; raises E501 where they make none."""
    try:
        tensor: Tensor = torch.tensor(value, dtype=dtype)
    except GradcliError as error:
        source = Source(argument.source.name, argument.text)
        error.span = uneven_row(source)
        raise moved_into_word(error, source, argument) from error
    return tensor


def _numbers(value: Any) -> list[Any]:
    """What nested lists hold in the end, in order."""
    numbers = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting += reversed(each)
        else:
            numbers.append(each)
    return numbers


def _holds_numbers(value: Any) -> bool:
    """Whether nested lists hold numbers only, so that they are meant as a tensor."""
    if type(value) not in (list, tuple):
        return False
    return all(type(each) in (bool, int, float, complex) for each in _numbers(value))


def _plain(value: Any) -> bool:
    """Whether a number, or all those in nested lists, are real: they bind as floating."""
    return all(type(each) in (int, float) for each in _numbers(value))


# --- values, bound to names -----------------------------------------------------------------------


_MOST_NAMES = 10


class Binding(Record):
    """An argument and its state in the run.

    Attributes:
        bound: what its name was bound to, None while it is not.
        settled: whether the program has used its name where it runs.
        useless: whether the program gives the name a value that cannot be replaced.
    """

    argument: Argument
    value: Any
    bound: Any = None
    settled: bool = False
    useless: bool = False

    def tensors(self) -> list[tuple[str, Tensor]]:
        """The tensors that its name was bound to, with their paths in a structure from Python."""
        if type(self.bound) is Tensor:
            return [(self.argument.name, self.bound)]
        tensors: list[tuple[str, Tensor]] = []
        if self.argument.held is not None and not self.argument.file:
            mapped(self.argument.name, self.bound, lambda *each: tensors.append(each))
        return tensors


class Bindings:
    """The arguments of one run.

    Raises:
        GradcliError: E501, E502 from a value.
    """

    def __init__(self, arguments: Sequence[Argument], session: Session, options: Options) -> None:
        self.session = session
        self.wrt = options.wrt
        self.dtype = options.dtype
        self.bindings: dict[str, Binding] = {}
        self.names: dict[str, None] = {}
        later = (argument for argument in arguments if argument.since > 1)
        self._later = sorted(later, key=lambda argument: argument.since)
        self._evaluate(argument for argument in arguments if argument.since == 1)

    def _evaluate(self, arguments: Iterable[Argument]) -> None:
        for argument in arguments:
            value = value_of(argument, self.session, self.dtype)
            self.bindings[argument.name] = Binding(argument, value)

    def meet(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        """The statements, each after the arguments were bound whose names it uses first."""
        if not self.bindings and not self._later:
            yield from statements
            return
        for statement in statements:
            while self._later and self._later[0].since <= statement.span.line:
                self._evaluate([self._later.pop(0)])
            for name, how in name_uses(statement).items():
                self.names.setdefault(name)
                binding = self.bindings.get(name)
                if binding is not None and not binding.settled:
                    # A function's body runs later: by then the program may have assigned the name.
                    binding.settled = how != INSIDE
                    binding.useless = how == BOUND and binding.bound is None
                    self._bind(name, binding, how)
            yield statement

    def _bind(self, name: str, binding: Binding, how: str) -> None:
        session = self.session
        differentiable = self.wrt is None or name in self.wrt
        argument = binding.argument
        left = argument.passes
        if how in (READ, INSIDE) and binding.bound is None and not left:
            with session.running(argument.span):
                binding.bound = as_input(argument, binding.value, differentiable)
            session.bind(name, binding.bound)
            for path, tensor in binding.tensors():
                tensor.set_name(path)

        def replace(old: Any) -> Any:
            nonlocal left
            if left:
                left -= 1
                session.override(name, replace)
                return old
            binding.bound = taking_kind(argument, binding.value, old, differentiable)
            return binding.bound

        replaces = how in (ASSIGNED, INSIDE) or left > 0
        session.override(name, replace if replaces else None)

    def inputs(self) -> list[tuple[str, Tensor]]:
        """The arguments that were bound to tensors."""
        return [each for binding in self.bindings.values() for each in binding.tensors()]

    def warn_unused(
        self, terminal: Terminal, statements: Iterable[Statement] = (), meant: str | None = None
    ) -> None:
        """Warn of arguments never used, in `statements` that did not run either.

        Args:
            meant: an argument that an error has spoken of already.
        """
        for statement in statements if self.bindings else ():
            self.names.update(dict.fromkeys(name_uses(statement)))
        for name, binding in self.bindings.items():
            if name != meant and (name not in self.names or binding.useless):
                warned = unused(binding.argument, self.names, self.bindings)
                if binding.useless:
                    warned.help = "it sets the name itself, and not by an assignment"
                terminal.warning(warned)


def unused(argument: Argument, names: Iterable[str], bound: Container[str]) -> Warned:
    """The warning of an argument that a program, with these names, does not use."""
    own = [name for name in names if table_of(name) is None]
    near = closest(argument.name, [name for name in own if name not in bound])
    help = f"did you mean `{near}`?" if near is not None else None
    if near is None and own:
        help = f"its names are {', '.join(own[:_MOST_NAMES])}"
    message = f"the program does not use `{argument.name}`"
    return Warned("W009", message, argument.span, help)
