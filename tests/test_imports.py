"""What start-up imports, and when families of ops are imported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradcli
from gradcli.ops.binding import lazy
from tests.house import files, module_of

PACKAGE = Path(gradcli.__file__).parent


ONE_SHOT = ["e = (a + b) * d", "a=2", "b=3", "d=4"]

HEAVY = {
    "asyncio",
    "click",
    "cupy",
    "dataclasses",
    "difflib",
    "enum",
    "gradcli.library.drawing",
    "gradcli.arrays.native",
    "gradcli.show.plots",
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


def _modules_after(program: str, home: Path, root: Path = PACKAGE.parent) -> set[str]:
    """The modules that are loaded at the end of a Python program."""
    result = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        cwd=root,
        env={
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home),
            "PATH": "",
            "OPENBLAS_NUM_THREADS": "1",  # threads that nothing is given to cost half of a start
        },
    )
    return set(result.stderr.split())


_ALL = "import gradcli.ops.load; from gradcli.ops.binding.lazy import bring_all; bring_all()"


def _late(home: Path, root: Path = PACKAGE.parent) -> set[str]:
    """The families that the catalogue is imported without, the index being made first."""
    everything = _modules_after(_ALL, home, root)
    loaded = _modules_after("import gradcli.ops.load", home, root)
    return {name for name in everything - loaded if name.startswith("gradcli.ops.")}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose cache holds the grammar's tables and the index of names."""
    folder = tmp_path_factory.mktemp("home")
    _modules_after("from gradcli.cli.main import run; run(['1'])", folder)
    _modules_after(_ALL, folder)
    return folder


@pytest.fixture(scope="module")
def known(home: Path) -> tuple[set[str], set[str]]:
    """The modules that come with NumPy, and the families that are late."""
    return _modules_after("import numpy", home), _late(home)


@pytest.mark.parametrize("words", [ONE_SHOT, ["run", "FILE", "a=2"], ["run", "-"], []])
def test_a_program_without_options_imports_little(
    words: list[str], tmp_path: Path, home: Path, known: tuple[set[str], set[str]]
) -> None:
    """It loads only what it needs, once the grammar's tables are in the cache."""
    file = tmp_path / "program.grad"
    file.write_text("import torch\ntorch.tensor(2.0) * a\n")
    words = [str(file) if word == "FILE" else word for word in words]
    program = f"""
from gradcli.cli.main import main
try:
    main({words!r})
except SystemExit:
    pass
"""
    baseline, late = known
    loaded = _modules_after(program, home)
    assert len(late) > 60
    assert sorted((HEAVY | late) & (loaded - baseline)) == []
    assert [name for name in loaded if name.startswith("gradcli.cli.commands.")] == []


COMPILED = """
import re, sys
from re import _compiler

texts, compile = set(), _compiler.compile

def hear(event, arguments):
    if event == "compile":
        texts.add(str(arguments[1]))

def compiled(pattern, flags):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] == "re":
        frame = frame.f_back
    by = frame.f_globals["__name__"]
    assert not by.startswith("gradcli.") or by == "gradcli.language.parser.lexer", pattern
    return compile(pattern, flags)

sys.addaudithook(hear)
_compiler.compile = compiled
from gradcli.cli.main import main
try:
    main(["run", {path!r}])
except SystemExit as end:
    assert end.code == 0, end.code
assert {backward!r} in texts and not any("recorded backward" in text for text in texts), texts
assert "gradcli.language.native" not in sys.modules
"""


def test_a_short_program_compiles_little(tmp_path: Path, home: Path) -> None:
    """Of the patterns the lexer's, of an op's two backward functions the one that it calls."""
    file = tmp_path / "program.grad"
    text = (
        "import torch\na = torch.tensor(2.0, requires_grad=True)\ne = (a + 1) * a\ne.backward()\n"
    )
    file.write_text(text + "print(a.grad)\n" * 20)
    first = tmp_path / "home"  # the code of ops is not kept yet
    shutil.copytree(home, first, ignore=shutil.ignore_patterns("code-*"))
    _modules_after(COMPILED.format(path=str(file), backward="<backward of mul>"), first)


def test_the_page_of_usage_imports_no_command_but_that_of_programs(tmp_path: Path) -> None:
    program = "from gradcli.cli.main import run\nrun(['--help'])"
    commands = "gradcli.cli.commands."
    loaded = _modules_after(program, tmp_path)
    assert [name for name in loaded if name.startswith(commands)] == [f"{commands}one_shot"]


ADDED = """
import importlib
from importlib._bootstrap_external import SourceFileLoader
from gradcli.ops.binding import lazy as later

inside, added = [], {}

def run(self, module, execute=SourceFileLoader.exec_module):
    before = names()
    inside.append(set())
    execute(self, module)
    new, of_others = names() - before, inside.pop()
    added[module.__name__] = new - of_others
    if inside:
        inside[-1] |= new

def names():
    from gradcli.ops.binding import catalogue
    c = catalogue
    operators = [c.operators, c.inplace_operators, c.unary_operators]
    tables = [*c.modules.values(), c.methods, *operators]
    tables = [table for table in tables if isinstance(table, later.Table)]
    return {(table.name, name) for table in tables for name in dict.keys(table)}

from gradcli.ops.binding import catalogue
SourceFileLoader.exec_module = run
import gradcli.ops.load
later.bring_all()
found = {(place, name): family for family, new in added.items() for place, name in new}
index = later._index
assert found == {(p, n): f for p, names in index.items() for n, f in names.items()}
assert len(found) > 1000, len(found)
"""


def test_the_index_tells_what_families_add(tmp_path: Path) -> None:
    """The names that bring in a family are those that it adds, as the index is made and read."""
    _modules_after(ADDED, tmp_path)
    _modules_after(ADDED, tmp_path)


NEWCOMER = """
from gradcli.ops.binding.catalogue import expose
from gradcli.ops.definition.op import pointwise
newcomer = pointwise("newcomer", lambda self: self + 1)
expose(newcomer, inplace=True)
"""

EDITED, NEW = Path("gradcli/ops/elementwise/rounding.py"), Path("gradcli/ops/newcomer.py")

ASK = """
from gradcli.ops.binding.catalogue import methods, modules
import gradcli.ops.load
assert ("newcomer" in modules["torch"]) is {there} and ("newcomer_" in methods) is {there}
assert modules["torch.nn.functional"]["softplus"]
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with its byte code, for all tests of this file."""
    folder = tmp_path_factory.mktemp("copied")
    skipped = shutil.ignore_patterns("*.marshal")
    shutil.copytree(PACKAGE, folder / "gradcli", ignore=skipped)
    shutil.copytree(PACKAGE.parent / "grammar", folder / "grammar", ignore=skipped)
    return folder


@pytest.fixture
def root(copied: Path) -> Iterator[Path]:
    """The copy, which is as it was for the next test."""
    edited = copied / EDITED
    text = edited.read_text()
    yield copied
    edited.write_text(text)
    for added in (copied / NEW, *copied.rglob("*.marshal")):
        added.unlink(missing_ok=True)


def test_a_new_name_is_found_where_the_index_is_older(tmp_path: Path, root: Path) -> None:
    for there in (False, True, False):
        if there:
            (root / NEW).write_text(NEWCOMER)
        else:
            (root / NEW).unlink(missing_ok=True)
        for _ in range(3):  # made, read, and read again after it was made anew
            loaded = _modules_after(ASK.format(there=there), tmp_path, root)
        assert "gradcli.ops.nn.activations" in loaded
        assert "gradcli.ops.nn.spatial.convolution" not in loaded


def test_a_name_in_a_file_that_was_edited_is_found(tmp_path: Path, root: Path) -> None:
    _modules_after(ASK.format(there=False), tmp_path, root)
    with (root / EDITED).open("a") as file:
        file.write(NEWCOMER)
    program = """
from gradcli.cli.main import main
try:
    main(["y = newcomer(x)", "x=2"])
except SystemExit as end:
    assert end.code == 0, end.code
"""
    _modules_after(program, tmp_path, root)
    loaded = _modules_after(ASK.format(there=True), tmp_path, root)
    assert "gradcli.ops.nn.spatial.convolution" not in loaded


def test_an_installation_carries_its_index(tmp_path: Path, root: Path) -> None:
    write = "import gradcli.ops.load; from gradcli.ops.binding import lazy; lazy.write_installed()"
    _modules_after(write, tmp_path / "builder", root)
    nowhere = tmp_path / "file"
    nowhere.write_text("no folder for a cache")
    loaded = _modules_after(ASK.format(there=False), nowhere, root)
    assert "gradcli.ops.nn.activations" in loaded
    assert "gradcli.ops.nn.spatial.convolution" not in loaded
    (root / NEW).write_text(NEWCOMER)  # which no installation gets
    assert "gradcli.ops.nn.spatial.convolution" not in _modules_after(
        ASK.format(there=False), nowhere, root
    )


def test_the_index_is_the_same_without_numpy(tmp_path: Path) -> None:
    """What builds a wheel has no NumPy: it would take longer to install than all else to build."""
    pytest.importorskip("setuptools")
    write = f"""
import json, sys
from gradcli.build_backend import FindAbsent
sys.meta_path.insert(0, FindAbsent())
import gradcli.ops.load
from gradcli.ops.binding import lazy
lazy.bring_all()
assert not hasattr(sys.modules["numpy"], "__version__")
with open({str(tmp_path / "index.json")!r}, "w") as file:
    json.dump(lazy._index, file)
"""
    _modules_after(write, tmp_path)
    lazy.bring_all()
    assert json.loads((tmp_path / "index.json").read_text()) == lazy._index


def test_without_a_cache_all_names_are_found(tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.write_text("no folder for a cache")
    _modules_after(ASK.format(there=False), nowhere)


def test_methods_are_found_first_of_all(tmp_path: Path) -> None:
    _modules_after(
        "from gradcli.ops.lookup import find; assert find('Tensor.add_', lambda place: {})",
        tmp_path,
    )


def test_attributes_of_tensors_wait_for_no_family(home: Path) -> None:
    names = "from gradcli.ops.binding.catalogue import properties, setters; at_first = "
    all_names = "{*properties}, {*setters}"
    start = f"import gradcli.language.interpreter; {names}{all_names}; "
    _modules_after(f"{start}{_ALL}; assert ({all_names}) == at_first", home)


def test_functions_of_the_catalogue_stand_in_families() -> None:
    """Elsewhere the index would not name them, nor the list of ops."""
    decorated = re.compile(r"^@(function|method)\(", re.MULTILINE)
    modules = [
        module_of(path) for path in files() if decorated.search(path.read_text(encoding="utf-8"))
    ]
    assert len(modules) > 70
    assert [module for module in modules if not lazy.is_of_family(module)] == []


def test_a_late_name_brings_in_its_family_alone(home: Path) -> None:
    program = """
from gradcli.ops.binding.catalogue import methods, modules
import gradcli.ops.load
assert "erfinv_" in methods and methods.get("no_such_name") is None
assert "no_such_name" not in modules["torch"]
"""
    assert "gradcli.ops.special.error_functions" not in _modules_after(program, home)
    program += "methods['erfinv_']; "
    loaded = _modules_after(program, home)
    assert "gradcli.ops.special.error_functions" in loaded
    assert "gradcli.ops.nn.spatial.convolution" not in loaded
    for table, brought in (("methods", False), ("modules['torch']", True)):
        loaded = _modules_after(f"{program}list({table})", home)
        assert ("gradcli.ops.nn.spatial.convolution" in loaded) == brought


FAMILIES = [
    # a name of a module, the family that it brings in, and what stays out
    ("torch.nn", "Linear", "nn.layers.linear", "nn.layers.transformer"),
    ("torch.nn", "Module", "nn.module", "nn.layers"),
    ("torch.nn.utils", "clip_grad_norm_", "nn.utils.clipping", "nn.layers"),
    ("torch.optim", "SGD", "optim.sgd", "optim.lbfgs"),
    ("torch.utils.data", "TensorDataset", "data.loading", "nn.layers"),
    ("torch.func", "grad", "func.derivatives", "func.gradcheck"),
    ("torch.distributions", "Normal", "distributions.elementary", "nn.layers"),
]


def test_a_name_of_a_module_brings_in_its_family_alone(tmp_path: Path, home: Path) -> None:
    """Each is asked for in a copy of one process, which has asked for none."""
    program = """
import os, sys
from gradcli.library.namespace import MODULES
for number, (module, name) in enumerate({names}):
    if os.fork() == 0:
        MODULES[module].get(name)
        with open(os.path.join({folder!r}, str(number)), "w") as file:
            print(*sys.modules, file=file)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    names = [row[:2] for row in FAMILIES]
    _modules_after(program.format(names=names, folder=str(tmp_path)), home)
    for number, (_, name, family, left) in enumerate(FAMILIES):
        loaded = (tmp_path / str(number)).read_text().split()
        assert f"gradcli.library.torch.{family}" in loaded, name
        assert f"gradcli.library.torch.{left}" not in loaded, name


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["explain", "e = (a +"]])
def test_help_and_wrong_programs_need_no_numpy(home: Path, words: list[str]) -> None:
    program = f"""
from gradcli.cli.main import main
try:
    main({words!r})
except SystemExit:
    pass
"""
    assert "numpy" not in _modules_after(program, home)


def test_wrong_program_needs_no_numpy(home: Path) -> None:
    """The text is read before NumPy is imported, so a slip of the pen is answered at once."""
    program = """
from gradcli.cli.main import main
try:
    main(["-e", "e = (a +"])
except SystemExit:
    pass
"""
    assert "numpy" not in _modules_after(program, home)
