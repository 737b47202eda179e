"""Scripts: their arguments, how they leave, and the files beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import invoke

EXITS = [
    ("import sys\nsys.exit()", 0, ""),
    ("import sys\nsys.exit(3)", 3, ""),
    ("import sys\nsys.exit('no data')", 1, "no data\n"),
    ("exit(4)", 4, ""),
    ("raise SystemExit(5)", 5, ""),
    ("try:\n    exit(6)\nexcept Exception:\n    pass", 6, ""),
    ("try:\n    exit(7)\nexcept SystemExit as end:\n    print(end.code)", 0, ""),
    ("try:\n    exit(8)\nfinally:\n    print('last')", 8, ""),
]
"""Programs, the exit code they leave with, and what stands on standard error, as in Python."""


@pytest.mark.parametrize(("program", "code", "stderr"), EXITS)
def test_a_program_leaves_with_its_exit_code(
    program: str, code: int, stderr: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(program)
    finished = invoke("run", str(script))
    assert (finished.code, finished.stderr) == (code, stderr)


def test_the_words_behind_the_dashes_are_the_script_s(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import argparse, sys\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr', type=float, default=0.5)\n"
        "parser.add_argument('names', nargs='*')\n"
        "print(sys.argv[1:], parser.parse_args(), a)\n"
    )
    finished = invoke("run", str(script), "a:const=1", "--", "--lr=2", "x=3", "b")
    assert finished.stdout == "['--lr=2', 'x=3', 'b'] Namespace(lr=2.0, names=['x=3', 'b']) 1\n"
    finished = invoke("run", str(script), "a:const=1")
    assert finished.stdout == "[] Namespace(lr=0.5, names=[]) 1\n"
    finished = invoke("run", str(script), "a:const=1", "--", "--lr=no")
    assert finished.code == 2
    assert finished.stderr == (
        "usage: script.py [-h] [--lr LR] [names ...]\n"
        "script.py: error: argument --lr: invalid float value: 'no'\n"
    )


def _project(folder: Path) -> Path:
    (folder / "model.py").write_text(
        "from settings import WIDTH\nfrom layers import double\ncount = 0\n"
        "class Net(nn.Module):\n    def forward(self, x): return double(x) * WIDTH\n"
        "def step():\n    global count\n    count += 1\n    return count\n"
        "if __name__ == '__main__':\n    print('not when it is imported')\n"
    )
    (folder / "settings.py").write_text("WIDTH = 3\nprint('settings', __name__)\n")
    (folder / "layers").mkdir()
    (folder / "layers" / "__init__.py").write_text(
        "from .inner import FACTOR\nfrom . import inner\n"
        "def double(x): return x * FACTOR * inner.FACTOR\n"
    )
    (folder / "layers" / "inner.py").write_text("FACTOR = 2\n")
    (folder / "wrong.py").write_text("x = 1\ny = x.no\n")
    (folder / "unreadable.py").write_text("x = (\n")
    script = folder / "main.py"
    script.write_text(
        "import model, layers.inner\nfrom model import Net, step\nimport settings as again\n"
        "print(Net()(tensor(1.)), step(), step(), model.count, layers.inner.FACTOR)\n"
        "again.WIDTH = 5\nprint(Net()(tensor(1.)), again)\n"
    )
    return script


def test_a_program_imports_the_files_beside_it(tmp_path: Path) -> None:
    finished = invoke("run", str(_project(tmp_path)))
    assert finished.stderr == ""
    assert finished.stdout == (
        "settings settings\ntensor(12.) 1 2 2 2\ntensor(12.) <module 'settings'>\n"
    )


def test_a_function_takes_the_place_of_the_file_that_it_is_named_as(tmp_path: Path) -> None:
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "__init__.py").write_text("from .solve import solve\n")
    (tmp_path / "solver" / "solve.py").write_text("def solve(x): return x + 1\nSTEPS = 3\n")
    (tmp_path / "solver" / "other.py").write_text("from .solve import STEPS\n")
    script = tmp_path / "main.py"
    script.write_text(
        "from solver import solve, other\nimport solver.solve\n"
        "print(solve(1), solver.solve(2), other.STEPS, solver.other)\n"
    )
    assert invoke("run", str(script)).stdout == "2 3 3 <module 'solver.other'>\n"


OWN = {
    "sklearn.py": "def fit():\n    return 'fitted'\n",
    "scipy.py": "from random import random\n",
    "random.py": "def random():\n    return 4\n",
    "torchvision/__init__.py": "size = 5\n",
    "torchvision/transforms.py": "def crop():\n    return 6\n",
    "plain/inner.py": "value = 7\n",
    "tqdm/other.py": "value = 8\n",
    "torch.py": "raise ValueError\n",
    "math.py": "raise ValueError\n",
    "statistics.grad": "raise ValueError\n",
}
"""Files of a program's own, most of them with the names of packages."""

IMPORTING = """
import torch, math, statistics
import scipy, sklearn, torchvision
import torchvision.transforms as T
import plain.inner
from tqdm import tqdm
print(sklearn.fit(), scipy.random(), torchvision.size, T.crop(), plain.inner.value, torch.ones(1))
for name in ("scipy.special", "torchvision.models"):
    try:
        if name == "scipy.special":
            import scipy.special
        else:
            from torchvision import models
    except ImportError:
        print(name)
"""


def test_own_files_go_before_modules_of_their_names(tmp_path: Path) -> None:
    for name, text in {**OWN, "main.py": IMPORTING}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    finished = invoke("run", str(tmp_path / "main.py"))
    assert finished.stderr == ""
    assert finished.stdout == "fitted 4 5 6 7 tensor([1.])\nscipy.special\ntorchvision.models\n"
    assert invoke("port", str(tmp_path / "main.py")).code == 0
    refused = invoke("run", str(tmp_path / "main.py"), "--sandbox")
    assert "error[E103]" in refused.stderr


@pytest.mark.parametrize(
    ("program", "options", "code", "place"),
    [
        ("import wrong", [], "E102", "wrong.py:2:5"),
        ("import unreadable", [], "E003", "unreadable.py:1:5"),
        ("import there_is_none\nthere_is_none.x", [], "E103", "main.py:2:1"),
        ("from model import nothing\nnothing.x", [], "E103", "main.py:2:1"),
        ("import model\nmodel.step()", ["--sandbox"], "E606", "main.py:2:1"),
        ("from ..model import Net\nNet()", [], "E103", "main.py:2:1"),
    ],
)
def test_what_is_wrong_there_is_said(
    program: str, options: list[str], code: str, place: str, tmp_path: Path
) -> None:
    script = _project(tmp_path)
    script.write_text(program)
    finished = invoke("run", str(script), *options)
    assert f"error[{code}]" in finished.stderr
    assert place in finished.stderr


def test_a_program_without_a_file_has_none_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _project(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "E103" in invoke("import model; model.step()").stderr
    assert "E103" in invoke("run", "-", stdin=b"import model\nmodel.step()\n").stderr
