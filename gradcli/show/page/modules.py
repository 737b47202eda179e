"""The modules of a page: what they are titled, and which stand in one box, `Block × 6`."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.language.objects.classes.user_classes import Instance
from gradcli.library.torch.nn.layer import FUNCTIONS, REQUIRED, Layer, defaults_of
from gradcli.show.pictures.picture import REPEATED, Box, Path
from gradcli.show.style import escaped


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


class Modules:
    """The modules of a picture as a tree, in which equal neighbours share a parent.

    Attributes:
        titles: by the key of a module or a group, its title, and its path in the program.
    """

    def __init__(self, boxes: Sequence[Box], titles: Mapping[str, str]) -> None:
        self._known = titles
        self._contents: dict[Path, Counter[str]] = {}
        self._children: dict[Path, dict[Path, None]] = {}
        for box in boxes:
            kind = box.rows[1].text.partition(" ")[0] if len(box.rows) > 1 else box.kind
            for depth in range(1, len(box.module) + 1):
                path = box.module[:depth]
                self._contents.setdefault(path, Counter())[f"{kind} {box.module[depth:]}"] += 1
                self._children.setdefault(path[:-1], {})[path] = None
        self._grouped: dict[Path, Path] = {}
        self.titles: dict[str, dict[str, str]] = {}
        for parent, children in self._children.items():
            self._group(parent, [*children])
        for path in self._contents:
            key = self.key(path)[-1]
            name = ".".join(path)
            self.titles.setdefault(key, {"title": titles.get(name, path[-1]), "path": name})

    def _group(self, parent: Path, children: list[Path]) -> None:
        """Give equal neighbours a parent of their own, or their parent where it has no others."""
        run: list[Path] = []
        for child in [*children, None]:
            if child is not None and (not run or self._alike(run[0], child)):
                run.append(child)
                continue
            if len(run) >= REPEATED:
                title = f"{self._known.get('.'.join(run[0]), run[0][-1])} × {len(run)}"
                path = ".".join(parent)
                if len(run) == len(children) and parent:
                    self.titles[_key(parent)] = {"title": title, "path": path}
                else:
                    span = f"{run[0][-1]}–{run[-1][-1]}"
                    self._grouped.update(dict.fromkeys(run, (*parent, span)))
                    name = f"{path}.{span}" if path else span
                    self.titles[_key((*parent, span))] = {"title": title, "path": name}
            run = [] if child is None else [child]

    def _alike(self, one: Path, other: Path) -> bool:
        named = [self._known.get(".".join(path)) for path in (one, other)]
        return (
            named[0] is not None
            and named[0] == named[1]
            and self._contents[one] == self._contents[other]
        )

    def key(self, path: Path) -> list[str]:
        """The keys of the modules and groups that a box stands in, the outermost first."""
        keys = []
        for depth in range(1, len(path) + 1):
            group = self._grouped.get(path[:depth])
            if group is not None:
                keys.append(_key(group))
            keys.append(_key(path[:depth]))
        return keys


def _key(path: Path) -> str:
    """A path as the page's script knows it: what a page spells out is spelled out here too."""
    return escaped("/".join(path))
