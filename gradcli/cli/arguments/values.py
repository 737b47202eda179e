"""`NAME=VALUE`: reading the words, and the values that they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError, Label, Source, Span
from gradcli.language.parser.parser import parse_expression
from gradcli.session import Session

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.language import tree as syntax
    from gradcli.limits import Limits


class Argument:
    """One word `NAME=VALUE` or `NAME:const=VALUE` of the command line.

    Attributes:
        name: the name.
        constant: whether the value keeps Python's own type and takes no part in gradients.
        source: the whole word, which diagnostics point into.
        offset: where the value starts in it.
        held: the value where it is given as such, or what its file held when it was read, and None
            before that: a file is read once for all runs, and standard input cannot be read twice.
        plain: whether the arrays in what is held are plain numbers without a dtype.
    """

    __slots__ = ("constant", "held", "name", "offset", "plain", "source")

    def __init__(self, name: str, constant: bool, word: str, offset: int) -> None:
        self.name = name
        self.constant = constant
        self.source = Source(f"argument {name}=…", word)
        self.offset = offset
        self.held: Any = None
        self.plain = False

    @property
    def text(self) -> str:
        """The text of the value."""
        return self.source.text[self.offset :]

    @property
    def file(self) -> str:
        """What it names as a file, "" if its value is none."""
        return self.text[1:] if self.text.startswith("@") else ""

    @property
    def span(self) -> Span:
        """The place of the value, or of the whole word where the value is empty."""
        return Span(self.source, self.offset if self.text else 0, len(self.source.text))

    def wrong(self, message: str, help: str | None = None, code: str = "E501") -> GradcliError:
        """An error about the whole value."""
        return GradcliError(code, message, span=self.span, help=help)


def read_argument(word: str) -> Argument | None:
    """A word as an argument, None if it is none."""
    name, equals, _ = word.partition("=")
    name, colon, kind = name.partition(":")
    if not equals or not name.isidentifier() or (colon and kind != "const"):
        return None
    return Argument(name, bool(colon), word, word.index("=") + 1)


def value_of(argument: Argument, session: Session, dtype: str | None) -> Any:
    """What an argument stands for: a Python value, a tensor, or the tensor in a file.

    Args:
        argument: the argument.
        session: where its text is evaluated.
        dtype: the dtype of floating arrays from files; None leaves it as it is.

    Raises:
        GradcliError: E501 where the text cannot be evaluated, E502, E504, E505 or E506 where a file
            cannot be read.
    """
    if argument.text.startswith("@") and argument.held is None:
        with session.running(argument.span):
            argument.held, argument.plain = _in_file(argument.file)
    elif argument.held is None:
        return evaluate(argument, session)
    value = argument.held
    if argument.constant:
        # The program may change it, and what is held serves further runs.
        from copy import deepcopy

        value = deepcopy(value)
    elif argument.plain:
        return _lists(value)
    if not argument.file:
        return value
    from gradcli.arrays.dtypes import DTYPES, cast
    from gradcli.autograd.tensor import Tensor
    from gradcli.language.library.load_save import tensors

    with session.running(argument.span):
        value = tensors(value, argument.plain)
        if dtype is not None and type(value) is Tensor and value.dtype.is_floating_point:
            value.array = cast(value.array, DTYPES[dtype])
    return value


def hold_stdin(arguments: Iterable[Argument], limits: Limits) -> None:
    """Read the argument that standard input holds, for runs that share it, also among processes.

    Raises what `value_of` does for a file.
    """
    for argument in arguments:
        if argument.file and argument.held is None:
            from gradcli.files.reading import reads_stdin

            if reads_stdin(argument.file):
                with Session(limits=limits).running(argument.span):
                    argument.held, argument.plain = _in_file(argument.file)


def _in_file(text: str) -> tuple[Any, bool]:
    """What `[FORMAT:]FILE[:KEY]` stands for, and whether its arrays are plain numbers, without a
    dtype of their own: those of csv and JSON.
    """
    from gradcli.files.data_file import DataFile
    from gradcli.files.reading import is_text, read_one

    file = DataFile.named(text)
    return read_one(file), is_text(file)


def _lists(value: Any) -> Any:
    """A value whose arrays have become the nested lists that an expression would give."""
    if isinstance(value, dict):
        return {name: _lists(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_lists(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def evaluate(argument: Argument, session: Session) -> Any:
    """The value of an argument's text as an expression; raises E501 with a place inside it."""
    if not argument.text.strip():
        raise argument.wrong(
            f"`{argument.name}` has no value", f"write one behind `=`: {argument.source.text}2"
        )
    source = Source(argument.source.name, argument.text)
    try:
        return session.evaluate(source)
    except GradcliError as error:
        if error.code == "E901":
            raise
        uneven = _uneven(source)
        if error.code == "E204" and uneven is not None:
            error.span = uneven
        raise _moved(error, source, argument) from error


def _moved(error: GradcliError, source: Source, argument: Argument) -> GradcliError:
    """An error in the text of a value as one in the whole word."""

    def place(span: Span) -> Span:
        if span.source is not source:
            return span
        shift = argument.offset
        return Span(argument.source, span.start + shift, max(span.end, span.start + 1) + shift)

    return GradcliError(
        "E501",
        error.message,
        span=argument.span if error.span is None else place(error.span),
        help=error.help,
        notes=error.notes,
        labels=tuple(Label(place(label.span), label.text) for label in error.labels),
    )


def _uneven(source: Source) -> Span | None:
    """The place of the first row of nested lists that differs in length from the rows before."""
    from gradcli.language import tree as syntax

    def walk(tree: syntax.Expression) -> tuple[tuple[int, ...], Span | None]:
        if not isinstance(tree, (syntax.List, syntax.Tuple)):
            return (), None
        shape: tuple[int, ...] | None = None
        for element in tree.elements:
            found, uneven = walk(element)
            if uneven is not None:
                return (), uneven
            if shape is not None and found != shape:
                return (), element.span
            shape = found
        return (len(tree.elements), *(shape or ())), None

    try:
        return walk(parse_expression(source))[1]
    except GradcliError:
        return None


# --- what they bind -----------------------------------------------------------------------------


def as_input(argument: Argument, value: Any, differentiable: bool) -> Any:
    """What a free name is bound to: numbers and lists of them become floating tensors, and floating
    tensors become leaves that require grad, if `differentiable`.
    """
    from gradcli.arrays.dtypes import default_dtype
    from gradcli.autograd.tensor import Tensor

    if argument.constant:
        return value
    if type(value) in (int, float, complex) or _holds_numbers(value):
        value = _tensor(argument, value, default_dtype() if _plain(value) else None)
    if type(value) is Tensor:
        return leaf(value, differentiable)
    return value


def leaf(tensor: Tensor, requires_grad: bool) -> Tensor:
    """A new leaf of a tensor's values; only floating and complex ones can require grad."""
    from gradcli.arrays.backend import on_default_device
    from gradcli.arrays.storage import own
    from gradcli.autograd.tensor import Tensor

    able = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    return Tensor(on_default_device(own(tensor.array)), requires_grad and able)


def taking_kind(argument: Argument, value: Any, old: Any, differentiable: bool) -> Any:
    """What replaces a script's own value: it takes the kind of the value that stood there.

    Raises E501 where it cannot.
    """
    from gradcli.autograd.tensor import Tensor

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
    from gradcli.arrays import dtypes
    from gradcli.arrays.backend import moved
    from gradcli.autograd.tensor import Tensor, meta_of

    if type(value) is not Tensor:
        if type(value) not in (bool, int, float, complex) and not _holds_numbers(value):
            raise argument.wrong(f"`{argument.name}` is a tensor in the script")
        floating = old.dtype.is_floating_point or old.dtype.is_complex
        value = _tensor(argument, value, old.dtype if floating and _plain(value) else None)
    if not dtypes.can_cast(value.dtype, old.dtype):
        raise argument.wrong(
            f"`{argument.name}` is {old.dtype} in the script, and the value is {value.dtype}"
        )
    new = leaf(Tensor(dtypes.cast(value.array, old.dtype)), requires_grad)
    new.array = moved(new.array, old.device)
    if old.meta is not None and old.meta.is_parameter:
        meta_of(new).is_parameter = True
    return new


def _tensor(argument: Argument, value: Any, dtype: Any) -> Tensor:
    """A tensor of numbers; raises E501 where they make none."""
    from gradcli.ops.binding.catalogue import modules

    try:
        made: Tensor = modules["torch"]["tensor"](value, dtype=dtype)
    except GradcliError as error:
        source = Source(argument.source.name, argument.text)
        error.span = _uneven(source)
        raise _moved(error, source, argument) from error
    return made


def _numbers(value: Any) -> list[Any]:
    """What nested lists hold in the end, in order."""
    found = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting += reversed(each)
        else:
            found.append(each)
    return found


def _holds_numbers(value: Any) -> bool:
    """Whether nested lists hold numbers only, so that they are meant as a tensor."""
    if type(value) not in (list, tuple):
        return False
    return all(type(each) in (bool, int, float, complex) for each in _numbers(value))


def _plain(value: Any) -> bool:
    """Whether a number, or all those in nested lists, are real: they bind as floating."""
    return all(type(each) in (int, float) for each in _numbers(value))
