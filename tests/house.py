"""The imports, folders and functions of the package, as the tests of its order see them.

`python -m tests.house` prints each place that breaks a rule.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import gradcli

PACKAGE = Path(gradcli.__file__).parent

ROOMS = (
    "__main__",
    "cli",
    "doors",
    "repl",
    "questions",
    "running",
    "show",
    "recorded",
    "session",
    "loops",
    "library",
    "language",
    "ops",
    "autograd",
    "trace",
    "arrays",
    "state",
    "limits | packages",
    "errors",
    "record",
)
"""The rooms from the top down: one may import itself and what stands below it. Rooms of one line
do not see each other.
"""

INSIDE = {
    "arrays": "files kernels fusion random layout gpu flat native",
    "arrays.kernels": "special",
    "autograd": "inplace recording engine",
    "cli": "commands documents sweep",
    "doors": "torch notebook agents editors python",
    "language": "compiler native functions objects parser hints tree",
    "language.compiler": "written statements expressions",
    "language.parser": "actions errors",
    "library": "drawing numpy python torch",
    "library.python": "system numbers classes",
    "library.torch": "func distributions optim data nn",
    "library.torch.nn": "utils layers",
    "ops": (
        "signal nn linalg special reduction elementwise indexing shape "
        "creation arithmetic binding codegen definition"
    ),
    "ops.nn": "normalisation spatial loss",
    "questions": "check derive explain blame notes why plot port",
    "running": "recordings arguments process",
    "show": "help page pictures graph plots diagnostics",
}
"""The folders of a room from the top down. A module that stands beside them has no place in this
order, only in that of all imports, which has no circle.
"""

CAUSES = ("start-up", "family", "command")
"""Why an import may stand inside a function: its package costs start-up time, it is a family of
ops that few programs need, it is a command's body.
"""

MOST_ENTRIES = 15
LONGEST_FUNCTION = 60
SHORTEST_MODULE = 40

LONG = {
    "gradcli.autograd.engine.engine: _run_ready": (
        "one loop over local names: a call would be paid for by every node of every pass"
    ),
    "gradcli.ops.nn.normalisation.formula: normalising": (
        "rules of one entry; their parameters, a line each, are the names of what is saved"
    ),
    "gradcli.ops.definition.op: __init__": "the fields of an entry, each with its line",
    "gradcli.ops.definition.op: op": "the fields of an entry, each with its default and its line",
}
"""The functions that are longer, and why."""

SHORT = {
    "gradcli.__main__": "what `python -m gradcli` runs",
    "gradcli.doors.editors.pygments_lexer": "Pygments imports it by the name in pyproject.toml",
    "gradcli.show.diagnostics.short": "a form of messages, as `human` and `json` beside it",
}
"""The modules of a few lines, and why."""

WITH_CODE = {
    "gradcli": "the version, which the build reads",
}
"""The folders whose `__init__` holds more than a sentence, and what."""

BY_NAME = {
    "gradcli": "what `import gradcli` has, which loads nothing at once",
    "gradcli.arrays.gpu.runtime": "CuPy, where a tensor goes to a GPU",
    "gradcli.arrays.native.dispatch": "the C core, which an installation may lack",
    "gradcli.cli.group": "commands, by the word that a person types",
    "gradcli.doors.torch.recorder": "torch, beside which alone it stands",
    "gradcli.library.namespace": "tables of names, by the module that a program imports",
    "gradcli.ops.binding.lazy": "families, by the name that a program looks up",
    "gradcli.ops.definition.refs": "families, by the names that a stub declares",
    "gradcli.packages": "packages that an installation may lack",
}
"""The modules that import others by name, and which."""

TABLES = (
    "DTYPES",
    "FUNCTIONS",
    "OS_PATH",
    "inplace_operators",
    "methods",
    "operators",
    "properties",
    "registry",
    "setters",
    "unary_operators",
)
"""The tables that names of programs lead to, beside those in `modules`; what stands there has a
symbol too.
"""

ROOT = ("gradcli", "gradcli.__main__", "gradcli.build_backend")
"""What stands outside of the rooms: whoever asks for the version imports the first one."""


class Import(NamedTuple):
    """One import of a module of ours.

    Attributes:
        importer, imported: the modules; of an `import_module` with a text that is not whole, the
            folder that it names.
        line: where it stands.
        inside: whether it stands inside a function.
        types: whether it serves type annotations only.
        cause: what stands behind `# lazy:` in its line.
        by_name: whether it is a call of `import_module`.
    """

    importer: str
    imported: str
    line: int
    inside: bool
    types: bool
    cause: str
    by_name: bool = False


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file; whoever walks one of the package's takes it from here."""
    return ast.parse(_text(path))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def files() -> list[Path]:
    """The modules of the package."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Module(NamedTuple):
    """A module of the house: its text and tree, and whether it is a folder's `__init__`."""

    text: str
    tree: ast.Module
    is_folder: bool


def built() -> House:
    """The house as it stands."""
    gc.disable()
    try:
        modules = {}
        for path in files():
            tree, is_folder = parsed(path), path.name == "__init__.py"
            modules[module_of(path)] = Module(_text(path), tree, is_folder)
    finally:
        gc.freeze()  # the trees are kept, and the collector would walk a million nodes in vain
        gc.enable()
    return House(modules)


class Statement(NamedTuple):
    """An import or a function, where it stands: inside a function, or for types only."""

    module: str
    node: ast.stmt
    inside: bool
    types: bool


_BY_NAME = re.compile(r"import_module\(f?\"(gradcli\.[\w.]+)")


class House:
    """All modules, by their dotted names, and what the rules ask of them."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = modules

    @cached_property
    def statements(self) -> list[Statement]:
        """The imports and functions of all modules, wherever they stand: one walk serves all
        rules.
        """
        statements: list[Statement] = []

        def visit(module: str, node: ast.AST, inside: bool, types: bool) -> None:
            for child in _statements(node):
                within = inside
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    statements.append(Statement(module, child, inside, types))
                    within = True
                elif isinstance(child, ast.ImportFrom | ast.Import):
                    statements.append(Statement(module, child, inside, types))
                    continue
                for_types = (
                    isinstance(child, ast.If)
                    and isinstance(child.test, ast.Name)
                    and child.test.id == "TYPE_CHECKING"
                )
                visit(module, child, within, types or for_types)

        for name, module in self.modules.items():
            visit(name, module.tree, False, False)
        return statements

    @cached_property
    def imports(self) -> list[Import]:
        """All imports of ours, wherever they stand."""
        imports: list[Import] = []
        lines = {name: text.splitlines() for name, (text, *_) in self.modules.items()}
        for importer, node, inside, types in self.statements:
            if isinstance(node, ast.ImportFrom | ast.Import):
                cause = lines[importer][node.lineno - 1].partition("# lazy: ")[2]
                imports += (
                    Import(importer, module, node.lineno, inside, types, cause)
                    for module in self._imported(node)
                )
        for name, (text, *_) in self.modules.items():
            for match in _BY_NAME.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                folder = match[1].rstrip(".")
                imports.append(Import(name, folder, line, True, False, "", by_name=True))
        return imports

    def _imported(self, node: ast.ImportFrom | ast.Import) -> Iterator[str]:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            home = node.module or ""
            whole = [f"{home}.{alias.name}" for alias in node.names]
            names = [name if name in self.modules else home for name in whole]
        yield from dict.fromkeys(name for name in names if name.split(".")[0] == "gradcli")

    def graph(self, *, types: bool, inside: bool) -> dict[str, set[str]]:
        """Which modules each one imports; those for types, and inside functions, on request."""
        below: dict[str, set[str]] = {name: set() for name in self.modules}
        for each in self.imports:
            counts = (types or not each.types) and (inside or not each.inside)
            ours = each.imported in self.modules and each.imported not in ROOT
            if counts and ours and each.importer != each.imported and each.importer not in ROOT:
                below[each.importer].add(each.imported)
        return below


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly inside one, and the clauses that hold statements."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        yield from getattr(node, part, ())


# --- rules --------------------------------------------------------------------------------------


def upward(house: House) -> Iterator[str]:
    """Imports that point up, from room to room or inside one."""
    levels = {room: number for number, line in enumerate(ROOMS) for room in line.split(" | ")}
    for each in house.imports:
        if each.importer in ROOT[::2] or each.imported in ROOT:
            continue
        mine, theirs = each.importer.split(".")[1:], each.imported.split(".")[1:]
        above, below = levels[mine[0]], levels[theirs[0]]
        if above > below or (above == below and mine[0] != theirs[0]):
            yield f"{each.importer}: {each.imported}"
        elif mine[0] == theirs[0] and not each.types:
            pairs = zip(mine, theirs, strict=False)
            depth = next((depth for depth, (a, b) in enumerate(pairs) if a != b), len(mine))
            order = INSIDE.get(".".join(mine[:depth]), "").split()
            folders = (*mine[depth : depth + 1], *theirs[depth : depth + 1])
            places = [order.index(folder) for folder in folders if folder in order]
            if len(places) == 2 and places[0] > places[1]:
                yield f"{each.importer}: {each.imported}"


def unordered(house: House) -> Iterator[str]:
    """Rooms of several folders whose order `INSIDE` does not have, or has of other folders."""
    folders: dict[str, set[str]] = {}
    for name, module in house.modules.items():
        parent, _, own = name.partition("gradcli.")[2].rpartition(".")
        if module.is_folder and parent:
            folders.setdefault(parent, set()).add(own)
    for room, inner in folders.items():
        if len(inner) > 1 and inner != set(INSIDE.get(room, "").split()):
            yield f"gradcli.{room}: {' '.join(sorted(inner))}"


def circles(house: House) -> Iterator[str]:
    """Modules that import each other, directly or in turn, if only for types."""
    for group in strongly_connected(house.graph(types=True, inside=True)):
        if len(group) > 1:
            yield " ".join(sorted(group))


def strongly_connected(below: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components of a graph, those below first: Tarjan's algorithm, without
    recursion.
    """
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in below:
        work = [] if start in numbers else [(start, iter(below[start]))]
        if work:
            numbers[start] = lowest[start] = len(numbers)
            stack.append(start)
        while work:
            node, rest = work[-1]
            for child in rest:
                if child not in numbers:
                    numbers[child] = lowest[child] = len(numbers)
                    stack.append(child)
                    work.append((child, iter(below[child])))
                    break
                lowest[node] = min(lowest[node], lowest[child])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    for each in stack[at:]:
                        lowest[each] = len(below)  # done: no path back
                    del stack[at:]
    return found


def hidden(house: House) -> Iterator[str]:
    """Imports inside functions that name none of the causes."""
    for each in house.imports:
        if each.inside and not each.by_name and not each.cause.startswith(CAUSES):
            yield f"{each.importer}: {each.imported}"


def untrue(house: House) -> Iterator[str]:
    """Imports inside functions that save nothing: the module is imported with the importer."""
    below = house.graph(types=False, inside=False)
    reached: dict[str, set[str]] = {}
    for group in strongly_connected(below):
        whole = {*group}.union(*(reached.get(b, {b}) for a in group for b in below[a]))
        reached |= dict.fromkeys(group, whole)
    for each in house.imports:
        if each.cause and each.imported in reached[each.importer] and each.imported not in ROOT:
            yield f"{each.importer}: {each.imported}"


def crowded(house: House) -> Iterator[str]:
    """Folders of more modules and folders than a reader takes in at once."""
    entries: dict[str, int] = {}
    for name in house.modules:
        parent = name.rpartition(".")[0]
        entries[parent] = entries.get(parent, 0) + 1
    for folder, count in entries.items():
        if folder not in ("", "gradcli") and count > MOST_ENTRIES:
            yield f"{folder}: {count} entries"


def _length(node: ast.stmt) -> int:
    """The lines of a statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def long_functions(house: House) -> Iterator[str]:
    """Functions of more lines than a reader takes in at once, docstrings apart."""

    for module, node, *_ in house.statements:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = _length(node)
            if lines > LONGEST_FUNCTION and ast.get_docstring(node):
                lines -= _length(node.body[0])
            if lines > LONGEST_FUNCTION and f"{module}: {node.name}" not in LONG:
                yield f"{module}: {node.name}"


def short_modules(house: House) -> Iterator[str]:
    """Modules of a few lines that no more than two others import: they belong into one of them. A
    command and what it tells have files of their own, and a folder's `__init__` is its sentence.
    """
    readers: dict[str, set[str]] = {}
    for each in house.imports:
        readers.setdefault(each.imported, set()).add(each.importer)
    for name, module in house.modules.items():
        own = name.endswith((".command", ".tell")) or name.startswith("gradcli.cli.commands.")
        lines = module.text.count("\n")
        few = lines < SHORTEST_MODULE and len(readers.get(name, ())) <= 2
        if few and not (module.is_folder or own or name in SHORT):
            yield f"{name}: {lines} lines"


def code_in_inits(house: House) -> Iterator[str]:
    """Folders whose `__init__` holds more than its sentence."""
    for name, module in house.modules.items():
        body = module.tree.body
        has_code = len(body) != 1 or not isinstance(body[0], ast.Expr)
        if module.is_folder and has_code and name not in WITH_CODE:
            yield name


def looked_up(house: House) -> Iterator[str]:
    """Functions that another module defines and this one finds by a string: an arrow that no tool
    sees. To store a function in a table is to name it; a look-up by a variable serves a program.
    """
    bound = re.compile(r"^(\w+) = (?:catalogue\.)?modules\[\"", re.MULTILINE)
    own = {name: bound.findall(module.text) for name, module in house.modules.items()}
    every = {alias for aliases in own.values() for alias in aliases}
    aliases: dict[str, set[str]] = {name: set() for name in house.modules}
    for name, statement, *_ in house.statements:
        if isinstance(statement, ast.ImportFrom):
            known = {*TABLES, *own.get(statement.module or "", ())}
            aliases[name] |= {a.asname or a.name for a in statement.names if a.name in known}
    every |= {alias for named in aliases.values() for alias in named}
    words = {"modules", *TABLES, *every}
    signs = ["import_module(", "Ref(", *(word + way for word in words for way in ("[", ".get("))]
    for name, module in house.modules.items():
        if not any(sign in module.text for sign in signs):
            continue
        tables = {*TABLES, *own[name], *aliases[name]}
        lines = module.text.splitlines()
        texts = ("\n".join(lines[p.lineno - 1 : p.end_lineno]) for p in module.tree.body)
        parts = zip(module.tree.body, texts, strict=True)
        signed = [part for part, text in parts if any(sign in text for sign in signs)]
        for node in (node for part in signed for node in ast.walk(part)):
            if isinstance(node, ast.Call) and _last(node.func) in ("import_module", "Ref"):
                by_name = _last(node.func) == "import_module"
                if name not in BY_NAME if by_name else name != "gradcli.ops.definition.refs":
                    yield f"{name}: {ast.unparse(node)}"
            table, key = _key(node)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                outer, _ = _key(table)
                if _last(table) in tables or _last(outer) == "modules":
                    yield f"{name}: {ast.unparse(node)}"


def _last(node: ast.AST | None) -> str | None:
    """The name that an expression ends in."""
    return getattr(node, "attr", getattr(node, "id", None))


def _key(node: ast.AST | None) -> tuple[ast.expr, ast.expr] | tuple[None, None]:
    """The table that an expression reads and the key, of `table[key]` and `table.get(key)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return node.value, node.slice
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return (node.func.value, node.args[0]) if node.func.attr == "get" else (None, None)
    return None, None


RULES = {
    "imports that point up": upward,
    "rooms without an order": unordered,
    "circles": circles,
    "imports inside functions": hidden,
    "lazy imports that save nothing": untrue,
    "crowded folders": crowded,
    "long functions": long_functions,
    "short modules": short_modules,
    "code in __init__": code_in_inits,
    "look-ups by string": looked_up,
}


def breaches(house: House) -> list[str]:
    """Each place that breaks a rule, in a line."""
    return [
        f"{rule}: {place}" for rule, find in RULES.items() for place in sorted(set(find(house)))
    ]


if __name__ == "__main__":
    print(*breaches(built()), sep="\n")
