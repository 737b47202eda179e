"""Files are reached through one gate: nothing else opens them, and it is shut under `--sandbox`."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from gradcli.cli.group import gradcli
from gradcli.library.files import FILES
from gradcli.limits import Limits
from gradcli.repl.editor import EntryHistory
from tests.command_line import ROOT, CommandLine
from tests.house import parsed
from tests.running import run

# --- who may touch files --------------------------------------------------------------------------

OF_ITS_OWN = {
    "build_backend.py": "the wheel",
    "running/arguments/click_options.py": "the shell's own completion of file names",
    "repl/dot_commands/table.py": "the name behind `.read`; the picture that `.show` opens",
    "cli/group.py": "the folders of questions",
    "doors/agents/server.py": "the folder of recordings that the agent may ask about",
    "doors/torch/command.py": "which Python a script runs by",
    "doors/torch/recorder.py": "the recording: it runs under the script's Python, without gradcli",
    "cli/main.py": "the null device",
    "running/process/interruption.py": "temporary files of what is being written; /proc and /sys",
    "repl/candidates.py": "completion, which asks whether files are out of bounds",
    "repl/editor.py": "the history",
    "cli/sweep/records.py": "results that are added to a file line by line",
    "arrays/files/cache.py": "cache files",
    "arrays/files/gate.py": "the gate",
    "arrays/files/formats.py": "the gate for writing",
    "language/hints/arguments.py": "the signatures of ops",
    "language/hints/unsupported.py": "the names of PyTorch",
    "language/parser/tables.py": "the grammar",
    "arrays/native/dispatch.py": "the build of the C core beside the package",
    "ops/binding/lazy.py": "the index of lazy families",
    "library/python/system/folders.py": "folders, behind the check of the path",
    "running/source.py": "the recording that a command makes first",
    "running/arguments/files.py": "the folder of a result, ahead of the run",
    "show/help/manual.py": "the manual",
}
"""The files of gradcli that touch the disk, and what they touch there."""

TOUCHING = {
    "open", "stat", "lstat", "exists", "isfile", "isdir", "listdir", "scandir", "access", "unlink",
    "remove", "rename", "replace", "glob", "realpath",
}  # fmt: skip


_CALLS = re.compile(rf"\b({'|'.join(TOUCHING)})\s*\(")


def _touching(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not _CALLS.search(text):  # most files, which need not be parsed
        return
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in ("open", "glob"):
            yield called.id
        if isinstance(called, ast.Attribute) and called.attr in TOUCHING:
            of = ast.unparse(called.value)
            yield from [of] if of in ("os", "os.path", "Path", "io", "shutil") else []


def test_files_are_touched_behind_the_gate_alone() -> None:
    package = ROOT / "gradcli"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if next(_touching(path), None) is not None
    }
    assert found == set(OF_ITS_OWN)


# --- whatever takes a name ------------------------------------------------------------------------

SECRET = "the secret"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("f", "f.csv", "f.json", "f.jsonl", "f.grad"):
        (tmp_path / name).write_text(json.dumps({SECRET: 1}), encoding="utf-8")
    np.savez(tmp_path / "f.npz", x=np.ones(3))
    np.save(tmp_path / "f.npy", np.ones(3))
    return tmp_path


def _options() -> Iterator[tuple[str, str]]:
    """Every command and option that takes a file."""
    for name, command in _commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and _takes_text(parameter):
                yield name, parameter.opts[-1]


def _commands() -> Iterator[tuple[str, click.Command]]:
    with click.Context(gradcli) as context:
        for name in gradcli.list_commands(context):
            command = gradcli.get_command(context, name)
            assert command is not None
            if any("--sandbox" in parameter.opts for parameter in command.params):
                yield name, command


def _takes_text(option: click.Option) -> bool:
    return not option.is_flag and isinstance(option.type, click.types.StringParamType)


NAMES = ["f", "f.csv", "f.json", "f.jsonl", "f.npz", "f.npy", "@f.npy", "nowhere.npz"]


@pytest.mark.parametrize(("command", "option"), list(_options()))
def test_no_option_reads_or_writes_in_the_sandbox(
    command: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if option == "--file":  # the program itself, which is never out of bounds
        return
    before = sorted(os.listdir(folder))
    program = [] if command == "repl" else ["x.grad" if command == "why" else "y = x * 2"]
    for name in NAMES:
        words = [command, *program, "x=2", "--sandbox", option, name]
        if command == "run":
            words = ["run", "-", "--sandbox", option, name]
        if command == "program":
            words = ["-e", *words[1:]]
        if command == "record":  # what stands behind the script is the script's
            words = ["record", "--sandbox", option, name, "script.py"]
        finished = CommandLine(capsys)(*words, stdin="y = 2\n")
        shown = finished.out + finished.err
        assert SECRET not in shown, shown
        assert "no such file" not in shown, shown
        assert sorted(os.listdir(folder)) == before
        if option in ("--against", "--inputs", "-o", "--output") and finished.code != 2:
            assert "E606" in shown, (words, shown)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", FILES)
def test_no_function_does(function: str, name: str, folder: Path) -> None:
    given = f"ones(1), '{name}'" if function == "save" else f"'{name}'"
    error = run(f"{function}({given})", limits=Limits(files=False)).error
    assert error is not None
    assert error.code == "E606"


_PATH = "from pathlib import Path\n"


@pytest.mark.parametrize(
    "program",
    [
        "np.loadtxt('f.csv')",
        "np.genfromtxt('f.csv')",
        "np.load('f.npy')",
        "np.load('nowhere.npz')",
        "np.save('f.npy', [1])",
        "np.savez('f', [1])",
        f"{_PATH}np.loadtxt(Path('f.csv'))",
        f"{_PATH}Path('f').read_text()",
        f"{_PATH}Path('f').read_bytes()",
        f"{_PATH}Path('f').open()",
        f"{_PATH}Path('f').exists()",
        f"{_PATH}Path('f').is_file()",
        f"{_PATH}Path('f').is_dir()",
        f"{_PATH}Path('f').resolve()",
        f"{_PATH}Path('.').mkdir(exist_ok=True)",
        f"{_PATH}Path.cwd()",
        f"{_PATH}open(Path('f'))",
        f"{_PATH}load(Path('f.npy'))",
        f"{_PATH}torch.load(Path('f'))",
        "import os\nos.getcwd()",
        "import os\nos.path.abspath('f')",
        "import os\nos.makedirs('.', exist_ok=True)",
        "import os\nos.mkdir('nowhere')",
        f"{_PATH}Path('nowhere').mkdir()",
        "import os\nos.listdir()",
        "import os\nos.listdir('nowhere')",
        "import glob\nglob.glob('f*')",
        "import glob\nnext(glob.iglob('f*', root_dir='.'))",
        "import tempfile\ntempfile.gettempdir()",
        "import tempfile\ntempfile.mkdtemp(dir='.')",
        "import tempfile\ntempfile.NamedTemporaryFile(dir='.')",
        "import tempfile\nwith tempfile.TemporaryDirectory(): pass",
    ],
)
def test_no_library_does(program: str, folder: Path) -> None:
    error = run(program, limits=Limits(files=False)).error
    assert error is not None
    assert error.code == "E606"


@pytest.mark.parametrize("command", ["explain", "check", "derive", "blame", "program"])
def test_no_word_tells_whether_there_is_a_file(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [] if command == "program" else [command]
    there = CommandLine(capsys)(*words, "f.grad", "--sandbox")
    (folder / "f.grad").unlink()
    nowhere = CommandLine(capsys)(*words, "f.grad", "--sandbox")
    assert (there.code, there.out, there.err) == (nowhere.code, nowhere.out, nowhere.err)


def test_a_history_is_no_file_of_the_program(folder: Path) -> None:
    EntryHistory(str(folder / "history"), lambda note: None).store_string("x")
    assert (folder / "history").stat().st_mode & 0o777 == 0o600


def test_the_gate_opens_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert CommandLine(capsys)("y = x.sum()", "x=@f.npy", "--sandbox").code == 5
    assert CommandLine(capsys)("y = x.sum()", "x=@f.npy").code == 0


# --- named pipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["y = x * 2", "--inputs", "pipe"],
        ["y = x * 2", "--inputs", "pipe", "--jobs", "2"],
        ["y = x * 2", "x=@pipe"],
        ["check", "y = x * 2", "x=2", "--against", "pipe"],
        ["check", "--file", "pipe", "x=2"],
        ["run", "pipe"],
    ],
)
def test_a_pipe_is_waited_for_as_long_as_the_limit_says(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "pipe")
    finished = CommandLine(capsys)(*words, "--timeout", "0.3")
    assert finished.code == 5
    assert "E607" in finished.err
