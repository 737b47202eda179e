"""The module `pathlib`: paths as they are written, and what the gate of files says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, ClassVar

from gradcli.errors import GradcliError, value_error
from gradcli.language.limits import check_text
from gradcli.language.objects.types import check_kind, host_name
from gradcli.library.files import file_name, read_file
from gradcli.library.python.system.folders import makedirs, mkdir
from gradcli.library.python.system.process import abspath, exists, getcwd, isdir, isfile

_TEXTS = ("anchor", "drive", "name", "root", "stem", "suffix")

_WRITES = {
    "iterdir glob rglob": "`glob.glob(pattern)` and `os.listdir(path)` list folders",
    "rename replace rmdir touch unlink": "a program here changes no files but those that it saves",
    "write_bytes write_text": "`print` what is to be kept, or write tensors with `save`",
}


class PurePath:
    """`pathlib.PurePath("data") / "x.csv"`: a path as it is written.

    Attributes:
        path: the host's path, which touches no file.
    """

    __slots__ = ("path",)

    language_str: ClassVar[bool] = True
    language_name: ClassVar[str] = "pathlib.PurePosixPath"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {*_TEXTS, "as_posix", "is_absolute", "is_relative_to", "joinpath", "match", "parent"}
        | {"parents", "parts", "relative_to", "suffixes", "with_name", "with_stem", "with_suffix"}
    )

    def __init__(self, *pathsegments: Any) -> None:
        self.path = PurePosixPath(*_segments(pathsegments))

    @property
    def language_path(self) -> str:
        """The text that functions of files take it for."""
        return str(self.path)

    def __getattr__(self, name: str) -> Any:
        if name in _TEXTS or name in ("parts", "suffixes"):
            return getattr(self.path, name)
        raise AttributeError(name)

    def _like(self, path: PurePosixPath) -> PurePath:
        other = object.__new__(type(self))
        other.path = path
        return other

    def _checked(self, method: Callable[..., PurePosixPath], *values: str) -> PurePath:
        """The path that a method of the host's gives; raises E204 as it refuses."""
        try:
            return self._like(method(*_segments(values)))
        except ValueError as error:
            raise value_error(str(error)) from None

    @property
    def parent(self) -> PurePath:
        """The path without its last part."""
        return self._like(self.path.parent)

    @property
    def parents(self) -> list[PurePath]:
        """All paths above it, the nearest first."""
        return [self._like(each) for each in self.path.parents]

    def as_posix(self) -> str:
        """The path as a text."""
        return str(self.path)

    def is_absolute(self) -> bool:
        """Whether it starts at the root."""
        return self.path.is_absolute()

    def is_relative_to(self, other: Any) -> bool:
        """Whether it lies below another path."""
        return self.path.is_relative_to(*_segments((other,)))

    def joinpath(self, *pathsegments: Any) -> PurePath:
        """The path with others behind it."""
        return self._like(self.path.joinpath(*_segments(pathsegments)))

    def match(self, path_pattern: str) -> bool:
        """Whether it has the form of a pattern, `*.csv`."""
        check_kind(path_pattern, str, "a pattern is a string")
        return self.path.match(path_pattern)

    def relative_to(self, other: Any) -> PurePath:
        """The path below another one; raises E204 where it is not."""
        return self._checked(self.path.relative_to, other)

    def with_name(self, name: Any) -> PurePath:
        """The path with another last part."""
        return self._checked(self.path.with_name, name)

    def with_stem(self, stem: Any) -> PurePath:
        """The path with another last part, and the suffix that it has."""
        return self._checked(self.path.with_stem, stem)

    def with_suffix(self, suffix: Any) -> PurePath:
        """The path with another suffix."""
        return self._checked(self.path.with_suffix, suffix)

    def __truediv__(self, other: Any) -> Any:
        return self.joinpath(other) if isinstance(other, (str, PurePath)) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return type(self)(other, self) if isinstance(other, str) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PurePath) and self.path == other.path

    def __lt__(self, other: Any) -> Any:
        return self.path < other.path if isinstance(other, PurePath) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return self.path <= other.path if isinstance(other, PurePath) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"{host_name(type(self)).rpartition('.')[2]}({str(self.path)!r})"


class Path(PurePath):
    """`pathlib.Path("x.csv")`: a path whose file is read through the gate."""

    __slots__ = ()

    language_name: ClassVar[str] = "pathlib.PosixPath"
    language_attributes: ClassVar[frozenset[str]] = PurePath.language_attributes | {
        *("absolute", "exists", "is_dir", "is_file", "mkdir", "open", "read_bytes", "read_text"),
        *("resolve", *" ".join(_WRITES).split()),
    }
    language_class_attributes: ClassVar[frozenset[str]] = frozenset({"cwd"})

    def __getattr__(self, name: str) -> Any:
        for names, instead in _WRITES.items():
            if name in names.split():
                raise GradcliError("E205", f"Path.{name}() is outside the language", help=instead)
        return PurePath.__getattr__(self, name)

    @staticmethod
    def cwd() -> Path:
        """The folder of the run."""
        return Path(getcwd())

    def absolute(self) -> Path:
        """The path from the root; raises E606 where files are out of bounds."""
        return Path(getcwd(), self)

    def resolve(self, strict: bool = False) -> Path:
        """The path from the root, without `..`; raises E606 where files are out of bounds."""
        return Path(abspath(self))

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return bool(exists(self))

    def is_file(self) -> bool:
        """Whether there is a file."""
        return bool(isfile(self))

    def is_dir(self) -> bool:
        """Whether there is a folder."""
        return bool(isdir(self))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Make the folder, with `parents` those around it; raises E603 where it is there, unless
        that is `exist_ok`.
        """
        if parents:
            makedirs(self, mode, exist_ok)
        elif not (exist_ok and self.is_dir()):
            mkdir(self, mode)

    def open(self, mode: str = "r", *values: Any, **named: Any) -> Any:
        """As `open(path)`."""
        return read_file(str(self.path), mode, *values, **named)

    def read_bytes(self) -> bytes:
        """All bytes of the file."""
        content: bytes = self.open("rb").read()
        return content

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """All of the file's text."""
        content: str = self.open("r", encoding=encoding, errors=errors).read()
        return content


def _segments(parts: Any) -> list[str]:
    """Parts of a path as texts; raises E202 for others, E602 where they are too long."""
    texts = [file_name("Path", each, "texts and paths") for each in parts]
    check_text(sum(map(len, texts)) + len(texts))
    return texts


PATHLIB: dict[str, Any] = {
    "Path": Path,
    "PosixPath": Path,
    "PurePath": PurePath,
    "PurePosixPath": PurePath,
}
"""What `pathlib` holds."""
