"""What start-up imports, and when families of ops are imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gradcli
from gradcli.ops.binding.lazy import LATER

PACKAGE = Path(gradcli.__file__).parent


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


ONE_SHOT = ["e = (a + b) * d", "a=2", "b=3", "d=4"]

HEAVY = {
    "asyncio",
    "click.testing",
    "cupy",
    "dataclasses",
    "difflib",
    "enum",
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
from gradcli.cli.main import main
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
    commands = "gradcli.cli.commands."
    assert [name for name in loaded if name.startswith(commands)] == [f"{commands}one_shot"]


ADDED = """
import importlib
from importlib._bootstrap_external import SourceFileLoader
from gradcli.ops import load
from gradcli.ops.binding import catalogue, lazy as later

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
    # A new family is imported by `load` or listed as lazy; these rooms hold none.
    framework = ("gradcli.ops.binding.", "gradcli.ops.codegen.", "gradcli.ops.definition.")
    files = {_module(path) for path in (PACKAGE / "ops").rglob("[!_]*.py")}
    assert {name for name in files - everything if not name.startswith(framework)} == {
        "gradcli.ops.lookup",
        "gradcli.ops.summaries",
    }


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["explain", "e = (a +"]])
def test_help_and_wrong_programs_need_no_numpy(tmp_path: Path, words: list[str]) -> None:
    program = f"""
from gradcli.cli.main import main
try:
    main({words!r})
except SystemExit:
    pass
"""
    _modules_after(program, tmp_path)
    assert "numpy" not in _modules_after(program, tmp_path)


def test_wrong_program_needs_no_numpy(tmp_path: Path) -> None:
    """The text is read before NumPy is imported, so a slip of the pen is answered at once."""
    program = """
from gradcli.cli.main import main
try:
    main(["-e", "e = (a +"])
except SystemExit:
    pass
"""
    _modules_after(program, tmp_path)
    assert "numpy" not in _modules_after(program, tmp_path)
