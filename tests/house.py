"""The imports, folders and functions of the package, as the tests of its order see them.

`python -m tests.house` prints each place that breaks a rule.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import gradcli

PACKAGE = Path(gradcli.__file__).parent

ROOMS = (
    "__main__",
    "doors",
    "cli",
    "render",
    "session",
    "explain",
    "language",
    "functional",
    "optim",
    "data",
    "distributions",
    "nn",
    "ops",
    "autograd",
    "trace | kernels | files",
    "arrays",
    "state",
    "limits | packages | native",
    "errors",
    "codes | record",
)
"""The rooms from the top down: one may import itself and what stands below it. Rooms of one line
do not see each other.
"""

INSIDE = {
    "arrays": "fusion random gpu",
    "autograd": "custom inplace recording engine",
    "cli": (
        "commands repl dot_commands documents sweep plots program recordings arguments process"
    ),
    "explain": "ledger derive blame why check symbols",
    "kernels": "windows linalg sums",
    "language": "loops compiler library functions objects parser hints tree",
    "nn": "utils layers",
    "ops": (
        "signal normalisation spatial loss nn linalg special reduction elementwise indexing shape "
        "creation arithmetic binding codegen definition"
    ),
    "render": "help answers formulas graph diagnostics",
}
"""The folders of a room from the top down. A module that stands beside them has no place in this
order, only in that of all imports, which has no circle.
"""

CAUSES = ("start-up", "family", "command")
"""Why an import may stand inside a function: its package costs start-up time, it is a family of
ops that few programs need, it is a command's body.
"""

MOST_ENTRIES = 18
MOST_ENTRIES_OF_THE_PACKAGE = 26
LONGEST_FUNCTION = 60

LONG = {
    "gradcli.autograd.engine.engine: _run_ready": (
        "one loop over local names: a call would be paid for by every node of every pass"
    ),
    "gradcli.ops.normalisation.formula: normalising": (
        "rules of one entry; their parameters, a line each, are the names of what is saved"
    ),
    "gradcli.ops.definition.op: __init__": "the fields of an entry, each with its line",
    "gradcli.ops.definition.op: op": "the fields of an entry, each with its default and its line",
}
"""The functions that are longer, and why."""


class Import(NamedTuple):
    """One import of a module of ours.

    Attributes:
        importer, imported: the modules.
        line: where it stands.
        inside: whether it stands inside a function.
        types: whether it serves type annotations only.
        cause: what stands behind `# lazy:` in its line.
    """

    importer: str
    imported: str
    line: int
    inside: bool
    types: bool
    cause: str


def files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


@cache
def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in files()}


def imports_of(path: Path, text: str, tree: ast.Module) -> Iterator[Import]:
    """All imports of ours in a file, wherever they stand."""
    lines = text.splitlines()

    def visit(node: ast.AST, inside: bool, types: bool) -> Iterator[Import]:
        for child in _statements(node):
            if isinstance(child, ast.ImportFrom | ast.Import):
                cause = lines[child.lineno - 1].partition("# lazy: ")[2]
                for module in _imported(child, path):
                    yield Import(module_of(path), module, child.lineno, inside, types, cause)
            within = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            for_types = (
                isinstance(child, ast.If)
                and isinstance(child.test, ast.Name)
                and child.test.id == "TYPE_CHECKING"
            )
            yield from visit(child, inside or within, types or for_types)

    yield from visit(tree, False, False)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly inside one, and the clauses that hold statements."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        yield from getattr(node, part, ())


def _imported(node: ast.ImportFrom | ast.Import, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        assert node.level == 0, f"{path}:{node.lineno}: a relative import"
        given = node.module or ""
        whole = [f"{given}.{alias.name}" for alias in node.names]
        names = [name if name in MODULES else given for name in whole]
    yield from dict.fromkeys(name for name in names if name.split(".")[0] == "gradcli")


# --- rules --------------------------------------------------------------------------------------


def upward(imports: list[Import]) -> Iterator[str]:
    """Imports that point up, from room to room or inside one."""
    levels = {
        room: number for number, line in enumerate(ROOMS) for room in line.split(" | ")
    }  # the package itself, which everyone may ask for its version, has none
    for each in imports:
        mine, theirs = each.importer.split("."), each.imported.split(".")
        if len(mine) < 2 or len(theirs) < 2 or mine[1] == "build_backend":
            continue
        above, below = levels[mine[1]], levels[theirs[1]]
        if above > below or (above == below and mine[1] != theirs[1]):
            yield f"{each.importer}: {each.imported}"
        elif mine[1] == theirs[1] and not each.types:
            order = INSIDE.get(mine[1], "").split()
            folders = [name for name in (mine[2], *theirs[2:3]) if name in order]
            if len(folders) == 2 and order.index(folders[0]) > order.index(folders[1]):
                yield f"{each.importer}: {each.imported}"


def circles(imports: list[Import]) -> list[list[str]]:
    """Modules that import each other, directly or in turn; imports for types only do not count."""
    below: dict[str, set[str]] = {module: set() for module in MODULES}
    for each in imports:
        if not each.types and each.imported in MODULES and each.importer != each.imported:
            below[each.importer].add(each.imported)
    reached = {module: _reached(module, below) for module in MODULES}
    found = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in MODULES
    }
    return [list(circle) for circle in sorted(found) if circle]


def _reached(module: str, below: dict[str, set[str]]) -> set[str]:
    """The modules that are reached from one, itself only where it is in a circle."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        new = below[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


def hidden(imports: list[Import]) -> Iterator[str]:
    """Imports inside functions that name none of the causes."""
    for each in imports:
        if each.inside and not each.cause.startswith(CAUSES):
            yield f"{each.importer}: {each.imported}"


def crowded() -> Iterator[str]:
    """Folders of more modules and folders than a reader takes in at once."""
    for folder in sorted({path.parent for path in files()}):
        entries = {
            path.name
            for path in folder.iterdir()
            if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))
        } - {"__init__.py", "__main__.py", "__pycache__"}
        most = MOST_ENTRIES_OF_THE_PACKAGE if folder == PACKAGE else MOST_ENTRIES
        if len(entries) > most:
            yield f"{module_of(folder / '__init__.py')}: {len(entries)} entries"


def _length(node: ast.stmt) -> int:
    """The lines of a statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def long_functions(path: Path, node: ast.AST) -> Iterator[str]:
    """Functions of more lines than a reader takes in at once, docstrings apart."""
    for child in _statements(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = _length(child)
            if lines > LONGEST_FUNCTION and ast.get_docstring(child):
                lines -= _length(child.body[0])
            if lines > LONGEST_FUNCTION and f"{module_of(path)}: {child.name}" not in LONG:
                yield f"{module_of(path)}: {child.name}"
        yield from long_functions(path, child)


WITH_CODE = {
    "gradcli": "the version, which the build reads",
}
"""The folders whose `__init__` holds more than a sentence, and what."""


def has_code(tree: ast.Module) -> bool:
    """Whether an `__init__` holds more than its sentence."""
    return len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr)


def breaches() -> dict[str, list[str]]:
    """The places that break each rule."""
    imports: list[Import] = []
    long: list[str] = []
    inits: list[str] = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        imports += imports_of(path, text, tree)
        long += long_functions(path, tree)
        if path.name == "__init__.py" and module_of(path) not in WITH_CODE and has_code(tree):
            inits.append(module_of(path))
    return {
        "imports that point up": sorted(set(upward(imports))),
        "circles": [" ".join(circle) for circle in circles(imports)],
        "imports inside functions": sorted(set(hidden(imports))),
        "crowded folders": list(crowded()),
        "long functions": sorted(long),
        "code in __init__": inits,
    }


def report() -> str:
    """Each place that breaks a rule, in a line."""
    return "".join(f"{rule}: {place}\n" for rule, places in breaches().items() for place in places)


if __name__ == "__main__":
    print(report(), end="")
