"""The modules of a picture: what they are titled, and which stand in one box, `Block × 6`."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gradcli.language.objects.classes.user_classes import Instance
from gradcli.library.torch.nn.layer import FUNCTIONS, REQUIRED, Layer, defaults_of

REPEATED = 3
"""Equal modules side by side, and operations of one place, are one box from this many on."""

Path = tuple[str, ...]
"""Where a module stands: `("net", "0")`."""


def module_title(module: Any) -> str:
    """The class of a module and its arguments, without those that have their default:
    `Linear(4, 8)`; of a class of the program's the name alone.
    """
    name = type(module).__name__
    extra = "" if isinstance(module, Instance) else str(module.extra_repr())
    if not extra or "\n" in extra:
        return name
    defaults = {
        name: each.default
        for name, each in inspect.signature(type(module).__init__).parameters.items()
    }
    if isinstance(module, Layer):
        defaults = {**defaults_of(FUNCTIONS[module.function]), **module.defaults}
    arguments = []
    for part in _parts(extra):
        key, equals, value = part.partition("=")
        value = _uniform(value if equals else key)
        if not equals or defaults.get(key) in (inspect.Parameter.empty, REQUIRED):
            arguments.append(value)
        elif key not in defaults or value != _uniform(repr(defaults[key])):
            arguments.append(f"{key}={value}")
    return f"{name}({', '.join(arguments)})" if arguments else name


def _parts(text: str) -> list[str]:
    """A list of arguments, parted at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _uniform(value: str) -> str:
    """A tuple of equal numbers as one of them: `3` for `(3, 3)`."""
    elements = value.strip("()").replace(",", " ").split()
    return elements[0] if value.startswith("(") and len({*elements}) == 1 else value


class Span(str):
    """In a path the equal modules that stand in one box, `1–5`; no part of their own names."""


def own_parts(path: Path) -> Path:
    """The parts of a path as the program has it, and at its end perhaps those of equal modules."""
    return (*(each for each in path[:-1] if not isinstance(each, Span)), *path[-1:])


def module_name(path: Path) -> str:
    """The name of a module or of equal ones side by side: `net.3.inner`, `net.1–5`."""
    return ".".join(own_parts(path))


class Modules:
    """The modules of a picture as a tree, in which equal neighbours share a parent.

    Args:
        parts: the module of each box, and whether the box is a leaf's.
        titles: what modules are titled, by their names.

    Attributes:
        titles: what modules and groups are titled, by their paths in the tree.
        groups: those among them that stand for equal modules.
    """

    def __init__(self, parts: Iterable[tuple[Path, bool]], titles: Mapping[str, str]) -> None:
        self._known = titles
        self._contents: dict[Path, Counter[Path]] = {}
        self._children: dict[Path, dict[Path, None]] = {}
        for module, is_leaf in parts:
            for depth in range(1, len(module) + 1):
                path = module[:depth]
                # Of equal modules the first may have fewer nodes: nobody asks for its input's
                # gradient. Their parameters are the same.
                contents = self._contents.setdefault(path, Counter())
                if is_leaf:
                    contents[module[depth:]] += 1
                self._children.setdefault(path[:-1], {})[path] = None
        self._spans: dict[Path, Span] = {}
        several: dict[Path, str] = {}
        for parent, children in self._children.items():
            self._group(parent, [*children], several)
        self.titles = {
            self.grouped(path): titles.get(".".join(path), path[-1]) for path in self._contents
        }
        for path, title in several.items():
            grouped = self.grouped(path[:-1]) + path[-1:]
            self.titles[grouped] = title
        self.groups = frozenset(self.grouped(path[:-1]) + path[-1:] for path in several)

    def _group(self, parent: Path, children: list[Path], several: dict[Path, str]) -> None:
        """Give equal neighbours a parent of their own, or their parent where it has no others;
        `several` gets what such parents are titled.
        """
        run: list[Path] = []
        for child in [*children, None]:
            if child is not None and (not run or self._alike(run[0], child)):
                run.append(child)
                continue
            if len(run) >= REPEATED:
                title = f"{self._known.get('.'.join(run[0]), run[0][-1])} × {len(run)}"
                if len(run) == len(children) and parent:
                    several[parent] = title
                else:
                    span = Span(f"{run[0][-1]}–{run[-1][-1]}")
                    self._spans.update(dict.fromkeys(run, span))
                    several[*parent, span] = title
            run = [] if child is None else [child]

    def _alike(self, one: Path, other: Path) -> bool:
        named = [self._known.get(".".join(path)) for path in (one, other)]
        return (
            named[0] is not None
            and named[0] == named[1]
            and self._contents[one] == self._contents[other]
        )

    def title(self, path: Path) -> str:
        """What a module or a group is titled; of an unknown one the last part of its name."""
        return self.titles.get(path, path[-1])

    def grouped(self, path: Path) -> Path:
        """Where a module of the program stands in the tree."""
        place: list[str] = []
        for depth in range(1, len(path) + 1):
            span = self._spans.get(path[:depth])
            place += path[depth - 1 : depth] if span is None else (span, path[depth - 1])
        return tuple(place)
