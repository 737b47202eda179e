"""The module `argparse`: the words behind `--` on the command line, or the defaults."""

from __future__ import annotations

import argparse as host
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.events import Printed, Reported
from gradcli.language.functions.calls import call
from gradcli.language.objects.classes.extensible import (
    discard_value,
    store_value,
    stored_names,
    stored_value,
)
from gradcli.language.objects.exceptions import Raised, handles
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import EXCEPTIONS, Hosted, names
from gradcli.state import active


class Namespace:
    """What the arguments are: `args.name`."""

    __slots__ = ("values",)

    language_name: ClassVar[str] = "argparse.Namespace"

    def __init__(self, **kwargs: Any) -> None:
        self.values = dict(kwargs)

    language_getattr = stored_value
    language_setattr = store_value
    language_delattr = discard_value

    language_names = stored_names

    def __eq__(self, other: object) -> bool:
        return type(other) is Namespace and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, key: Any) -> bool:
        return key in self.values

    def __repr__(self) -> str:
        shown = [f"{name}={display(value)}" for name, value in self.values.items()]
        return f"Namespace({', '.join(shown)})"


class _Parser(host.ArgumentParser):
    """The host's parser, which shows its words through the session and ends only the program."""

    def _print_message(self, message: str, file: Any = None) -> None:
        active.state.emit(Printed(message))

    def exit(self, status: int = 0, message: str | None = None) -> Any:
        if message:
            active.state.emit(Reported(message))
        raise EXCEPTIONS["SystemExit"](status)

    def error(self, message: str) -> Any:
        active.state.emit(Reported(self.format_usage()))
        self.exit(2, f"{self.prog}: error: {message}\n")


_ACTIONS = names("""append append_const count extend help store store_const store_false store_true
    version""")
_TEXTS = ("description", "epilog", "help", "metavar", "prog", "usage", "version", "title")


@contextmanager
def _clashes() -> Iterator[None]:
    """Raise the host's error of two options or commands of one name as the program's own."""
    try:
        yield
    except host.ArgumentError as error:
        raise Raised("ArgumentError", str(error), (str(error),), "E204") from error


class Group(Hosted):
    """What `add_argument_group` returns: arguments are added to the parser."""

    __slots__ = ()

    language_name: ClassVar[str] = "argparse._ArgumentGroup"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"add_argument"})

    def add_argument(self, *names: str, **options: Any) -> None:
        """`parser.add_argument("--name", type=…, default=…)`."""
        action = options.get("action", "store")
        optional = type(action).__name__ == "BooleanOptional"
        if not optional and action not in _ACTIONS:
            raise GradcliError("E205", f"the action {display(action)} is outside the language")
        settings = {name: _checked(name, value) for name, value in options.items()}
        if optional:
            settings["action"] = host.BooleanOptionalAction
        if callable(options.get("type")):
            settings["type"] = _converter(options["type"])
        with _clashes():
            self.host.add_argument(*names, **settings)


def _checked(name: str, value: Any) -> Any:
    """A setting of an argument: texts are plain, and a `%` in them names a setting only."""
    if name in _TEXTS and value is not None:
        if isinstance(value, tuple):
            return tuple(_checked(name, each) for each in value)
        if value == host.SUPPRESS:
            return value
        if not isinstance(value, str):
            raise type_error(f"{name} is a string")
        # A width in a `%` field would have the host write any number of blanks.
        words = value.split("%(")
        if any(part.partition(")")[2][:1].isdigit() for part in words[1:]):
            raise value_error("a width in a help text is outside the language")
    if name == "choices":
        return list(bounded(value))
    return value


def _settings(named: dict[str, Any], known: str) -> dict[str, Any]:
    """The settings of some names; others change nothing here."""
    return {name: _checked(name, named[name]) for name in named if name in known.split()}


def _converter(kind: Any) -> Any:
    def convert(word: str) -> Any:
        try:
            return call(kind, (word,), {})
        except GradcliError as error:
            if handles((EXCEPTIONS["ValueError"], EXCEPTIONS["TypeError"]), error):
                raise ValueError(str(error)) from error
            raise

    convert.__name__ = str(getattr(kind, "__name__", getattr(kind, "name", "value")))
    return convert


class ArgumentParser(Group):
    """`argparse.ArgumentParser(description=…)`."""

    __slots__ = ()

    language_name: ClassVar[str] = "argparse.ArgumentParser"
    language_attributes = names("""add_argument add_argument_group add_mutually_exclusive_group
        add_subparsers error format_help format_usage get_default parse_args parse_known_args
        print_help print_usage set_defaults""")

    def __init__(self, prog: Any = None, description: Any = None, **options: Any) -> None:
        settings = _settings(options, "add_help allow_abbrev conflict_handler epilog usage")
        script = active.state.library.get("argv", [""])[0]
        name = prog if isinstance(prog, str) else script.rpartition("/")[2] or "program"
        super().__init__(
            _Parser(prog=name, description=_checked("description", description), **settings)
        )

    def add_argument_group(self, *titles: Any, **named: Any) -> Group:
        """A group of arguments."""
        texts = [_checked("title", each) for each in titles]
        return Group(
            self.host.add_argument_group(*texts, **{n: _checked(n, v) for n, v in named.items()})
        )

    def add_mutually_exclusive_group(self, required: Any = False) -> Group:
        """A group of which one argument may be given."""
        return Group(self.host.add_mutually_exclusive_group(required=bool(required)))

    def add_subparsers(self, **named: Any) -> Subparsers:
        """What commands are added to."""
        settings = _settings(named, "dest help metavar prog required title description")
        return Subparsers(self.host.add_subparsers(parser_class=_Parser, **settings))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Namespace:
        """The arguments; a wrong word ends the program with exit code 2."""
        return Namespace(**vars(self.host.parse_args(_words(args))))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """The arguments, and the words that are none."""
        arguments, rest = self.host.parse_known_args(_words(args))
        return Namespace(**vars(arguments)), rest


class Subparsers(Hosted):
    """What `add_subparsers` returns: each command has a parser of its own."""

    __slots__ = ()

    language_name: ClassVar[str] = "argparse._SubParsersAction"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"add_parser"})

    def add_parser(self, name: str, **named: Any) -> ArgumentParser:
        """The parser of a command."""
        parser = ArgumentParser.__new__(ArgumentParser)
        settings = _settings(named, "aliases description epilog help usage")
        with _clashes():
            parser.host = self.host.add_parser(name, **settings)
        return parser


def _words(args: Any) -> list[str]:
    words = active.state.library.get("argv", [""])[1:] if args is None else list(bounded(args))
    for word in words:
        if not isinstance(word, str):
            raise type_error(f"a word of the command line is a string, not {display(word)}")
    return list(words)


class BooleanOptional:
    """`argparse.BooleanOptionalAction`."""

    __slots__ = ()

    language_name: ClassVar[str] = "argparse.BooleanOptionalAction"


class Formatter:
    """The classes that say how the help looks; they are named, and change nothing."""

    language_name: ClassVar[str] = "argparse.HelpFormatter"


ARGPARSE: dict[str, Any] = {
    "ArgumentDefaultsHelpFormatter": Formatter,
    "ArgumentError": EXCEPTIONS["ArgumentError"],
    "ArgumentParser": ArgumentParser,
    "ArgumentTypeError": EXCEPTIONS["ValueError"],
    "BooleanOptionalAction": BooleanOptional(),
    "Namespace": Namespace,
    "RawDescriptionHelpFormatter": Formatter,
    "REMAINDER": host.REMAINDER,
    "SUPPRESS": host.SUPPRESS,
}
"""What `argparse` holds."""
