"""The house's order: imports point downward only, and start-up imports little."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradcli
from gradcli.ops.binding.lazy import LATER

PACKAGE = Path(gradcli.__file__).parent

# From the bottom up; a room may import itself and what stands in a line above its own. Rooms of one
# line do not see each other. `""` is the package itself, which everyone may ask for its version.
ORDER = [
    {"", "code"},
    {"codes", "warning_codes"},
    {"errors"},
    {"limits"},
    {"state"},
    {"arrays"},
    {"trace"},
    {"autograd", "files"},
    {"ops"},
    {"nn"},
    {"data", "optim"},
    {"functional"},
    {"language"},
    {"explain"},
    {"build_backend"},
    {"session"},
    {"render"},
    {"cli"},
    {"__main__"},
]

LARGEST_FILE = 450


def _files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def _imported(path: Path) -> Iterator[tuple[int, str]]:
    """The gradcli modules that a file imports anywhere in it, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "gradcli":
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            if node.module == "gradcli":
                for alias in node.names:
                    yield node.lineno, f"gradcli.{alias.name}"
            elif node.module is not None and node.module.startswith("gradcli."):
                yield node.lineno, node.module


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downward(path: Path) -> None:
    levels = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
    relative = path.relative_to(PACKAGE)
    room = relative.parts[0].removesuffix(".py").replace("__init__", "")
    assert room in levels, f"{room} has no place in the order of rooms"
    for line, module in _imported(path):
        target = _room(module)
        if target not in levels:  # `from gradcli import __version__`
            target = ""
        assert target == room or levels[target] < levels[room], f"{relative}:{line}: {module}"


def test_files_are_not_large() -> None:
    lines = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in _files()}
    assert {name: count for name, count in lines.items() if count > LARGEST_FILE} == {}


ONE_SHOT = ["e = (a + b) * d", "a=2", "b=3", "d=4"]

HEAVY = {
    "asyncio",
    "click.testing",
    "cupy",
    "dataclasses",
    "difflib",
    "enum",
    "gradcli.trace",
    "inspect",
    "json",
    "lark",
    "ml_dtypes",
    "prompt_toolkit",
    "scipy",
    "tempfile",
    "torch",
}


def _modules_after(program: str, home: Path) -> set[str]:
    """The modules that are loaded at the end of a Python program."""
    result = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
        env={"HOME": str(home), "XDG_CACHE_HOME": str(home), "PATH": ""},
    )
    return set(result.stderr.split())


def test_one_shot_imports_little(tmp_path: Path) -> None:
    """A one-shot loads only what it needs, once the grammar's tables are in the cache."""
    program = f"""
from gradcli.cli import main
try:
    main({ONE_SHOT!r})
except SystemExit:
    pass
"""
    _modules_after(program, tmp_path)
    baseline = _modules_after("import numpy", tmp_path)
    loaded = _modules_after(program, tmp_path)
    late = {f"gradcli.ops.{family}" for family in LATER}
    assert sorted((HEAVY | late) & (loaded - baseline)) == []


ADDED = """
import importlib
from importlib._bootstrap_external import SourceFileLoader
from gradcli.ops import catalogue, entry, later, families

TABLES = {**catalogue.modules, "Tensor": catalogue.methods, "properties": catalogue.properties}
inside, added = [], {}

def names():
    return {(place, name) for place, table in TABLES.items() for name in dict.keys(table)}

def run(self, module, execute=SourceFileLoader.exec_module):
    before = names()
    inside.append(set())
    execute(self, module)
    new, of_others = names() - before, inside.pop()
    added[module.__name__] = {name for _, name in new - of_others}
    if inside:
        inside[-1] |= new

SourceFileLoader.exec_module = run
for family in later.LATER:
    importlib.import_module("gradcli.ops." + family)
found = {}
for module, new in added.items():
    own = {name for name in new if name[:-1] not in new or name[-1] != "_"}
    if own:
        found[module.removeprefix("gradcli.ops.")] = sorted(own)
assert found == {family: sorted(names.split()) for family, names in later.LATER.items()}
"""


def test_late_families_are_listed(tmp_path: Path) -> None:
    """The names that bring in a family are those that it adds."""
    _modules_after(ADDED, tmp_path)


def test_methods_are_found_first_of_all(tmp_path: Path) -> None:
    _modules_after(
        "from gradcli.ops.lookup import find; assert find('Tensor.add_', lambda place: {})",
        tmp_path,
    )


def test_a_late_name_brings_in_its_family_alone(tmp_path: Path) -> None:
    program = """
from gradcli.ops.binding.catalogue import methods, modules
import gradcli.ops.load
assert "erfinv_" in methods and methods.get("no_such_name") is None
assert "no_such_name" not in modules["torch"]
"""
    loaded = _modules_after(program, tmp_path)
    assert "gradcli.ops.special.error_functions" in loaded
    assert "gradcli.ops.spatial.convolution" not in loaded
    everything = _modules_after(f"{program}list(methods)", tmp_path)
    assert {f"gradcli.ops.{family}" for family in LATER} <= everything
    # A new file of ops belongs to `families` or to `later`; these have none.
    files = {f"gradcli.ops.{path.stem}" for path in (PACKAGE / "ops").glob("[!_]*.py")}
    assert {name.rpartition(".")[2] for name in files - everything} == {
        "bits", "generate", "generate_node", "layout", "lookup", "overlapping", "packing",
        "summaries",
    }  # fmt: skip


def test_wrong_program_needs_no_numpy(tmp_path: Path) -> None:
    """The text is read before NumPy is imported, so a slip of the pen is answered at once."""
    program = """
from gradcli.cli import main
try:
    main(["-e", "e = (a +"])
except SystemExit:
    pass
"""
    _modules_after(program, tmp_path)
    assert "numpy" not in _modules_after(program, tmp_path)
